//! What users and programs tell the agents of a running job, and what those make of it; and the correction itself under the monitor.

use super::{App, OPEN_MPI, clc_replay, events};
use crate::common::{fixture, run, with_ranks, with_recorder};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A test that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(40);

/// What is said of a job as soon as it is the case.
#[track_caller]
fn until(directory: &Path, job: &str, what: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let mut watch = clc_replay("watch");
        watch.arg(job).args(["--why", "--json", "-"]).env("CLC_REPLAY_JOBS", directory.join("jobs"));
        let said = run(watch.current_dir(directory));
        let said: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
        if what(&said) {
            return said;
        }
        assert!(begun.elapsed() < PATIENCE, "{said:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Tells the agents of job `run` something; what is said then, and the exit status.
fn tell(directory: &Path, words: &[&str]) -> (String, i32) {
    let mut agent = clc_replay("agent");
    agent.arg("run").args(words).env("CLC_REPLAY_JOBS", directory.join("jobs"));
    let said = run(agent.current_dir(directory));
    (said.stderr, said.status)
}

fn headers() -> String {
    concat!("-I", env!("CARGO_MANIFEST_DIR"), "/src/marks").to_owned()
}

#[test]
fn formulas_and_sensors_are_loaded_while_the_job_runs() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "hangs.c", &[&headers()]);
    let directory = app.path("");
    let mut command = app.record(&["--monitor"], 2, &["missing", "40"]);
    command.env("CLC_REPLAY_JOBS", app.path("jobs")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut job = command.spawn().expect("a job");
    until(&directory, "run", |said| said["ranks"].as_array().is_some_and(|ranks| ranks.len() == 2));
    let file = app.path("energy");
    std::fs::write(&file, "42.5 joule\n").unwrap();
    assert_eq!(tell(&directory, &["sensor", "energy", file.to_str().unwrap()]), (String::new(), 0));
    assert_eq!(tell(&directory, &["put", "queue", "7"]), (String::new(), 0));
    let formula = "data_energy_max + data_queue_sum / nodes";
    assert_eq!(tell(&directory, &["formula", "both", formula]), (String::new(), 0));
    let value = |said: &Value| said["agents"][0]["formulas"][0].clone();
    let said = until(&directory, "run", |said| value(said)["value"] == 49.5);
    assert_eq!(value(&said), json!({"name": "both", "formula": formula, "value": 49.5}));
    let known = said["agents"][0]["job"].as_array().expect("aggregates");
    assert!(known.iter().any(|value| value[0] == "load1_max"), "{known:?}");
    // As text, and no longer when it is taken back.
    let (begun, shown) = (Instant::now(), format!("both = 49.500000 ({formula})"));
    loop {
        let mut watch = clc_replay("watch");
        watch.args(["run", "--why"]).env("CLC_REPLAY_JOBS", app.path("jobs")).current_dir(&directory);
        let text = run(&mut watch).stdout;
        // On a busy machine an agent may be silent for seconds, and then that is all there is to say.
        if text.contains(&shown) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{text}");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(tell(&directory, &["formula", "both"]), (String::new(), 0));
    until(&directory, "run", |said| said["agents"][0]["formulas"] == json!([]));
    for (words, why) in [
        (&["formula", "bad", "system('id')"][..], "not a formula"),
        (&["formula", "bad", "load1"], "unknown name load1"),
        (&["formula", "a b", "1"], "a name may contain only letters"),
        (&["sensor", "power", "energy"], "a sensor needs the absolute path"),
        (&["sense", "power"], "expected `put KEY VALUE`"),
    ] {
        let (said, status) = tell(&directory, words);
        assert!(status == 2 && said.contains(why), "{words:?}: {said}");
    }
    let _ = Command::new("kill").arg("-TERM").arg(job.id().to_string()).status();
    let _ = job.wait();
}

/// Of the example's only line: its numbers in their order.
fn numbers(line: &str) -> Vec<f64> {
    line.split([' ', ';', ':']).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn the_example_balances_the_load_by_what_programs_tell_each_other() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/marks/examples/load_balancing.c");
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, source, &[&headers()]);
    for method in ["neighbours", "groups"] {
        let mut command = app.record(&["--monitor", "--force"], 4, &[method, "60", "20", "3"]);
        let said = run(command.env("CLC_REPLAY_JOBS", app.path("jobs"))).expect(0, method);
        let &[took, balanced, most, given, transfers] = &numbers(&said.stdout)[..] else { panic!("{}", said.stdout) };
        // How much it helps depends on what else the machine does: docs/monitor.md.
        assert!(given > 0.0 && transfers > 0.0 && balanced <= most && balanced <= took, "{}", said.stdout);
        // What the agent has noted of its node each second is in the trace.
        let noted = events(&app.recorded()).get("METRIC").copied().unwrap_or(0);
        assert!(noted >= 1 && noted as f64 <= took + 3.0, "{noted} in {took} s");
        let definitions = run(Command::new("otf2-print").arg("-G").arg(app.recorded().join("traces.otf2"))).stdout;
        assert!(
            ["\"load1\"", "\"cpu\"", "\"Node metrics\""].iter().all(|name| definitions.contains(name)),
            "{definitions}"
        );
    }
    // Nobody tells anything: the same answers, without help.
    let launch = app.launch(2);
    let mut command = Command::new(&launch[0]);
    command.args(&launch[1..]).arg(app.path("app")).args(["groups", "2", "5"]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let said = run(&mut command).expect(0, "not monitored");
    assert!(said.stderr.contains("not monitored") && said.stdout.contains("0 tasks given away"), "{}", said.stdout);
}

#[test]
fn a_correction_that_is_watched_names_the_rank_that_is_missing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (output, go_on) = (directory.path().join("out"), directory.path().join("go"));
    // The recorder lies beside that program.
    let _ = with_recorder();
    let mut command = with_ranks(3);
    command.arg(fixture("recorded-stencil-4")).arg("-o").arg(&output).args(["--monitor", "--alarm", "1s", "-q"]);
    command.env("CLC_REPLAY_PAUSE", format!("scan@1:{}", go_on.display()));
    command.env("CLC_REPLAY_JOBS", directory.path().join("jobs")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut correction = command.spawn().expect("a correction");
    let said = until(directory.path(), "out", |said| said["verdict"] == "still");
    let sentence = said["sentence"].as_str().unwrap_or_default();
    assert!(sentence.contains("rank 1") && sentence.contains("in region scan"), "{sentence}");
    assert_eq!(said["ranks_to_blame"], json!([1]), "{sentence}");
    let alarm = directory.path().join("out.monitor/alarm.txt");
    let begun = Instant::now();
    while !alarm.exists() {
        assert!(begun.elapsed() < PATIENCE, "no alarm");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::write(&go_on, "").unwrap();
    assert!(correction.wait().expect("an end").success());
    assert!(output.join("traces.otf2").is_file());
    // What the recorder needs has left nothing behind.
    let kept: Vec<_> = directory.path().read_dir().unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(kept.iter().all(|name| ["out", "out.monitor", "jobs", "go"].iter().any(|known| name == known)), "{kept:?}");
}
