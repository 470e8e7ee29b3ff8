//! Agents: what they write and serve, and what harms neither them nor a job.

use super::*;

/// Process id of the agent of a job.
pub(super) fn agent(directory: &Path) -> u64 {
    let text = std::fs::read_to_string(directory.join("agents/0.json")).expect("an agent");
    let about: Value = serde_json::from_str(&text).expect("JSON");
    about["process"].as_u64().expect("a process")
}

#[test]
fn a_healthy_job_raises_no_alarm_and_leaves_nothing() {
    for library in [OPEN_MPI, MPICH] {
        let header = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/src/marks");
        let app = App::build(library, library.compiler, "hangs.c", &[header]);
        let alarm = app.path("alarm.txt");
        let option = format!("1s={}", alarm.display());
        let mut job = app.record(&["--monitor", "--alarm", &option], 3, &["moves", "3"]);
        job.env("CLC_REPLAY_JOBS", app.path("jobs")).stdout(Stdio::null()).stderr(Stdio::piped());
        let job = job.spawn().expect("a job");
        let begun = Instant::now();
        let mut moved = false;
        while begun.elapsed() < Duration::from_millis(2500) {
            let mut watch = clc_replay("watch");
            let said = run(watch.arg(app.path("run")).arg("--why").env("CLC_REPLAY_JOBS", app.path("jobs")));
            moved |= said.stdout.starts_with("the job makes progress: 3 of 3 ranks");
            std::thread::sleep(Duration::from_millis(100));
        }
        let ended = job.wait_with_output().expect("an end");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success() && moved, "{said}");
        assert!(!alarm.exists(), "{}", std::fs::read_to_string(&alarm).unwrap_or_default());
        assert!(!app.path("run.monitor").exists(), "{said}");
        assert!(super::super::without_polls(&said).len() == 1 && said.contains("3 processes on 1 node"), "{said}");
    }
}

#[test]
fn forged_packets_are_counted_and_dropped_and_data_are_shown() {
    let job = Running::start(OPEN_MPI, "moves", 2, &[]);
    job.until(|said| said["verdict"] == "moves");
    let text = std::fs::read_to_string(job.app.path("run.monitor/agents/0.json")).expect("an agent");
    let agent: Value = serde_json::from_str(&text).expect("JSON");
    let address = |name: &str| agent[name].as_str().expect("an address").to_owned();
    assert!(address("gossip").starts_with("127.0.0.1:") && address("query").starts_with("127.0.0.1:"), "{text}");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for packet in [&b""[..], b"gossip", &[0; 100], &[0xff; 1200]] {
        socket.send_to(packet, address("gossip")).expect("a packet");
    }
    {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(address("query")).expect("a connection");
        let _ = stream.write_all(&[&4_u32.to_le_bytes()[..], &[7; 32], b"null"].concat());
    }
    let mut put = clc_replay("agent");
    run(put.arg(job.app.path("run")).args(["put", "phase", "solve"])).expect(0, "a datum");
    let (said, status) = job.until(|said| said["agents"][0]["traffic"]["forged"].as_u64() >= Some(5));
    assert_eq!((&said["verdict"], status), (&"moves".into(), 0));
    job.until(|said| said["agents"][0]["data"][0][1] == "solve");
    // Without the key, or where others can read it, nothing is asked.
    let key = job.app.path("run.monitor/key");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&key).expect("a key")) & 0o777;
    assert_eq!(mode, 0o600);
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("permissions");
    let refused = run(clc_replay("watch").arg(job.app.path("run")).arg("--why"));
    assert!(refused.status == 2 && refused.stderr.contains("chmod 600"), "{}", refused.stderr);
}

#[test]
fn files_of_others_are_not_overwritten() {
    let job = Running::start(OPEN_MPI, "missing", 2, &[]);
    job.hangs(&[1], &[]);
    for words in [&["jobs"][..], &["watch", "run", "--why"]] {
        let path = job.app.path(&format!("{}.json", words[0]));
        let command = |more: &[&str]| {
            let mut command = clc_replay(words[0]);
            command.args(&words[1..]).arg("--json").arg(&path).args(more).current_dir(job.app.path(""));
            run(command.env("CLC_REPLAY_JOBS", job.app.path("jobs")))
        };
        std::fs::write(&path, "mine").expect("a file");
        let refused = command(&[]);
        assert!(refused.status == 2 && refused.stderr.contains("--force"), "{}", refused.stderr);
        assert_eq!(std::fs::read(&path).expect("a file"), b"mine");
        for more in [&["--force"][..], &[]] {
            assert!(command(more).status < 2, "{words:?} {more:?}");
            let written = std::fs::read(&path).expect("a file");
            let written: Value = serde_json::from_slice(&written).expect("JSON");
            assert_eq!((&written["schema"], &written["generator"]), (&Value::from(1), &Value::from("clc-replay")));
        }
    }
}

#[test]
fn a_page_shows_what_was_seen_over_time_also_after_the_end() {
    let job = Running::start(OPEN_MPI, "kill", 3, &[]);
    job.until(|said| said["verdict"] == "failed");
    let agent = agent(&job.app.path("run.monitor"));
    let begun = Instant::now();
    while Path::new(&format!("/proc/{agent}")).exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the agent has not ended");
        std::thread::sleep(Duration::from_millis(50));
    }
    let path = job.app.path("page.html");
    let watch = |more: &[&str]| {
        let mut command = clc_replay("watch");
        command.arg("run").args(["--html", "page.html"]).args(more).current_dir(job.app.path(""));
        run(command.env("CLC_REPLAY_JOBS", job.app.path("jobs")))
    };
    std::fs::write(&path, "mine").expect("a file");
    let refused = watch(&[]);
    assert!(refused.status == 2 && refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&path).expect("a file"), b"mine");
    for more in [&["--force"][..], &[]] {
        let said = watch(more);
        assert_eq!((said.status, said.stdout.as_str()), (3, ""), "{}", said.stderr);
        let page = std::fs::read_to_string(&path).expect("a page");
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert!(page.contains("without MPI_Finalize") && page.contains("<span class=\"blamed\">1</span>"), "{page}");
        // Rank 1 has ended, and the log says so: it has a line with that state.
        assert!(page.contains("<span class=\"key w7\"></span>ended") && page.contains("<rect class=\"w7\""), "{page}");
    }
    // With --why the sentence is said as well; one place is not enough for two files.
    assert!(watch(&["--why"]).stdout.starts_with("rank 1 (process "));
    assert_eq!(watch(&["--why", "--json", "page.html"]).status, 2);
    // Logs that somebody has damaged are named, and the rest is shown.
    std::fs::write(job.app.path("run.monitor/agents/0.log"), "nonsense").expect("a file");
    assert_eq!(watch(&[]).status, 3);
    let page = std::fs::read_to_string(&path).expect("a page");
    assert!(page.contains("Not read: ") && page.contains("0.log") && page.contains("without MPI_Finalize"));
}

/// An agent that was started alone, until this is dropped.
struct Alone(Child);

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_agent_that_was_killed_is_replaced() {
    let job = Running::start(OPEN_MPI, "missing", 3, &["--alarm", "2s"]);
    job.until(|said| said["ranks"].as_array().is_some_and(|ranks| ranks.len() == 3) && said["verdict"] != "unknown");
    let alone = || {
        let mut command = clc_replay("agent");
        command.arg(job.app.path("run.monitor")).stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    // There is one already.
    let refused = run(&mut alone());
    assert!(refused.status == 2 && refused.stderr.contains("is already running on this node"), "{}", refused.stderr);
    run(Command::new("kill").arg("-KILL").arg(agent(&job.app.path("run.monitor")).to_string())).expect(0, "kill");
    job.until(|said| said["sentence"].as_str().is_some_and(|sentence| sentence.contains("silent")));
    let _alone = Alone(alone().spawn().expect("an agent"));
    job.hangs(&[1], &["rank 1 is missing in MPI_Barrier, operation 3 of MPI_COMM_WORLD, where ranks 0, 2"]);
    let begun = Instant::now();
    while !job.app.path("run.monitor/alarm.txt").exists() {
        assert!(begun.elapsed() < Duration::from_secs(10), "no alarm of the second agent");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_full_disk_for_the_alarm_harms_nobody() {
    let job = Running::start(OPEN_MPI, "missing", 2, &["--alarm", "1s=/dev/full"]);
    job.hangs(&[1], &[]);
    std::thread::sleep(Duration::from_millis(2500));
    // The agent goes on, and so does the job.
    let said = job.hangs(&[1], &["rank 1 is missing in MPI_Barrier"]);
    assert_eq!(said["agents"].as_array().map(Vec::len), Some(1));
}

#[test]
fn metrics_are_served_on_this_node() {
    use std::io::{BufRead, BufReader, Read, Write};
    let job = Running::start(OPEN_MPI, "missing", 3, &[]);
    job.hangs(&[1], &[]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let mut command = clc_replay("watch");
    command.arg(job.app.path("run")).args(["--metrics", &port.to_string()]);
    let mut serving = Alone(command.stdout(Stdio::piped()).spawn().expect("a server"));
    let mut line = String::new();
    let said = serving.0.stdout.take().map(BufReader::new).expect("a pipe").read_line(&mut line);
    assert!(said.is_ok() && line == format!("metrics of run are at http://127.0.0.1:{port}/metrics\n"), "{line}");
    let ask = || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    };
    // On a busy machine the agent may take longer to answer than the server waits for it: then it is said not to be up.
    let begun = Instant::now();
    let text = loop {
        let said = ask();
        let up = |text: &String| text.lines().any(|line| line.starts_with("clc_node_up{") && line.ends_with("} 1"));
        match said {
            Some(text) if up(&text) => break text,
            other if begun.elapsed() > Duration::from_secs(20) => panic!("no metrics of an agent: {other:?}"),
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("version=0.0.4"), "{head}");
    for line in [
        "clc_job_verdict{job=\"run\",verdict=\"still\"} 1",
        "clc_job_ranks{job=\"run\",state=\"computes\"} 1",
        "clc_job_ranks{job=\"run\",state=\"waits\"} 2",
    ] {
        assert!(body.lines().any(|known| known == line), "{body}");
    }
    assert!(body.contains("clc_node_resource{") && body.contains("name=\"load1\""), "{body}");
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit_once("} ").and_then(|(_, value)| value.parse::<f64>().ok());
        assert!(value.is_some(), "{line}");
    }
}
