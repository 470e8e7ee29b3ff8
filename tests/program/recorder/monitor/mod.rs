//! `clc-replay record --monitor` and `clc-replay watch`: who is missing where is said of programs that hang in known ways, and nothing is said of one that does not.

mod agents;

use super::{App, Library, MPICH, OPEN_MPI, clc_replay};
use crate::common::run;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A job that runs, until this is dropped.
struct Running {
    app: App,
    child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        // The launcher ends its processes, and waits for them.
        let _ = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// A test that takes longer has failed, and a program that hangs ends by itself then.
const PATIENCE: u64 = 40;

impl Running {
    fn start(library: Library, way: &str, ranks: u32, options: &[&str]) -> Running {
        let header = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/src/marks");
        let app = App::build(library, library.compiler, "hangs.c", &[header]);
        let limit = PATIENCE.to_string();
        let options = [&["--monitor"][..], options].concat();
        let mut command = app.record(&options, ranks, &[way, &limit]);
        let child = command
            .env("CLC_REPLAY_JOBS", app.path("jobs"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a job");
        Running { app, child }
    }

    /// What `watch --why` says, and its exit status.
    fn why(&self) -> (Value, i32) {
        self.why_with(&[])
    }

    fn why_with(&self, options: &[&str]) -> (Value, i32) {
        let mut watch = clc_replay("watch");
        watch.arg("run").args(["--why", "--json", "-"]).args(options).env("CLC_REPLAY_JOBS", self.app.path("jobs"));
        let said = run(watch.current_dir(self.app.path("")));
        (serde_json::from_str(&said.stdout).unwrap_or_default(), said.status)
    }

    /// What it says as soon as this is the case.
    #[track_caller]
    fn until(&self, what: impl Fn(&Value) -> bool) -> (Value, i32) {
        let begun = Instant::now();
        loop {
            let (said, status) = self.why();
            if what(&said) {
                return (said, status);
            }
            assert!(begun.elapsed() < Duration::from_secs(PATIENCE), "{}", said["sentence"]);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Nothing moves, and this is why.
    #[track_caller]
    fn hangs(&self, ranks: &[u32], parts: &[&str]) -> Value {
        let holds = |said: &Value| {
            let sentence = said["sentence"].as_str().unwrap_or_default();
            said["verdict"] == "still" && parts.iter().all(|part| sentence.contains(part))
        };
        let (said, status) = self.until(holds);
        assert_eq!(status, 1, "{}", said["sentence"]);
        assert_eq!(said["ranks_to_blame"], serde_json::json!(ranks), "{}", said["sentence"]);
        said
    }
}

#[test]
fn a_rank_that_computes_is_missing_in_a_barrier() {
    for library in [OPEN_MPI, MPICH] {
        let job = Running::start(library, "missing", 3, &["--alarm", "1s"]);
        let parts = [
            "rank 1 is missing in MPI_Barrier, operation 3 of MPI_COMM_WORLD, where ranks 0, 2",
            "computes in region solve",
        ];
        let said = job.hangs(&[1], &parts);
        // The agent sees it at the latest a second after the patience is over.
        let alarm = job.app.path("run.monitor/alarm.txt");
        let begun = Instant::now();
        while !alarm.exists() {
            assert!(begun.elapsed() < Duration::from_secs(10), "no alarm");
            std::thread::sleep(Duration::from_millis(20));
        }
        let text = std::fs::read_to_string(&alarm).expect("an alarm");
        assert!(text.contains(parts[0]) && text.contains("mpi"), "{text}");
        let row = &said["ranks"][1];
        assert_eq!((&row["state"], &row["region"]), (&Value::from("computes"), &Value::from("solve")));
        let mut list = clc_replay("jobs");
        let list = run(list.env("CLC_REPLAY_JOBS", job.app.path("jobs"))).expect(0, "jobs");
        assert!(list.stdout.contains("run ") && list.stdout.contains("still"), "{}", list.stdout);
    }
}

#[test]
fn a_cycle_of_receives_is_told_with_its_tags() {
    let job = Running::start(OPEN_MPI, "cycle", 3, &[]);
    let parts = [
        "ranks 0-2 wait in a cycle",
        "rank 1 in MPI_Recv from rank 2 (tag 41)",
        "rank 2 in MPI_Recv from rank 0 (tag 42)",
    ];
    job.hangs(&[0, 1, 2], &parts);
}

#[test]
fn a_rank_that_does_not_come_to_mpi_init_is_named() {
    for library in [OPEN_MPI, MPICH] {
        let job = Running::start(library, "init", 3, &[]);
        job.hangs(&[1], &["rank 1 has not called MPI_Init, in which ranks 0, 2 have waited"]);
    }
}

#[test]
fn a_stopped_process_is_named() {
    let job = Running::start(OPEN_MPI, "stop", 3, &[]);
    let said = job.hangs(&[1], &["rank 1 has been stopped", "2 ranks wait"]);
    assert_eq!(said["ranks"][1]["state"], "stopped");
}

/// Names of the functions that a thread is in, from the inside.
fn functions(thread: &Value) -> Vec<&str> {
    let frames = thread["frames"].as_array().map(Vec::as_slice).unwrap_or_default();
    frames.iter().filter_map(|frame| frame["function"].as_str()).collect()
}

#[test]
fn stacks_are_told_on_request() {
    for library in [OPEN_MPI, MPICH] {
        let job = Running::start(library, "missing", 3, &[]);
        job.hangs(&[1], &["rank 1 is missing in MPI_Barrier"]);
        assert_eq!(job.why().0["stacks"], serde_json::json!([]));
        // Of those to blame: the one that computes.
        let (said, _) = job.why_with(&["--stacks"]);
        let stacks = said["stacks"].as_array().expect("stacks");
        assert_eq!((stacks.len(), &stacks[0]["rank"]), (1, &Value::from(1)));
        assert_eq!(stacks[0]["process"], said["ranks"][1]["process"]);
        // Those of the recorder are no concern of the program's.
        let threads = stacks[0]["threads"].as_array().expect("threads");
        assert!(
            threads.iter().all(|thread| !thread["name"].as_str().unwrap_or("clc").starts_with("clc")),
            "{threads:?}"
        );
        let names = functions(&stacks[0]["threads"][0]);
        let place = |name: &str| names.iter().position(|known| *known == name);
        assert!(place("compute").is_some() && place("compute") < place("main"), "{:#}", stacks[0]);
        // Of others by their numbers: they are in the barrier; and one that there is not.
        let (said, _) = job.why_with(&["--stack", "2,0,9"]);
        let stacks = said["stacks"].as_array().expect("stacks");
        let ranks: Vec<_> = stacks.iter().filter_map(|stack| stack["rank"].as_u64()).collect();
        assert_eq!(ranks, [2, 0, 9]);
        for stack in &stacks[..2] {
            let names = functions(&stack["threads"][0]);
            assert!(names.iter().any(|name| name.contains("MPI_Barrier")) && names.contains(&"main"), "{stack:#}");
        }
        assert_eq!(stacks[2]["note"], "no process with this rank is known");
        // The same as text, and the job goes on.
        let mut watch = clc_replay("watch");
        let said = run(watch.arg(job.app.path("run")).args(["--why", "--stack", "1"]));
        let (_, below) = said.stdout.split_once("\nstack of rank 1, process ").expect("a stack below the table");
        assert!(below.contains("compute (") && below.contains("main ("), "{below}");
        job.hangs(&[1], &["rank 1 is missing in MPI_Barrier"]);
    }
}

#[test]
fn stacks_of_stopped_and_killed_processes_are_told_as_well() {
    let job = Running::start(OPEN_MPI, "stop", 3, &[]);
    job.hangs(&[1], &["rank 1 has been stopped"]);
    for _ in 0..2 {
        let (said, _) = job.why_with(&["--stacks"]);
        let names = functions(&said["stacks"][0]["threads"][0]);
        assert!(names.contains(&"main") && names.iter().any(|name| name.contains("raise")), "{:#}", said["stacks"]);
    }
    job.hangs(&[1], &["rank 1 has been stopped"]);
    let job = Running::start(OPEN_MPI, "kill", 3, &[]);
    job.until(|said| said["verdict"] == "failed");
    let (said, _) = job.why_with(&["--stacks"]);
    assert_eq!(said["stacks"][0]["note"], "the process is gone", "{:#}", said["stacks"]);
}

#[test]
fn different_operations_are_told() {
    let job = Running::start(OPEN_MPI, "differ", 4, &[]);
    job.hangs(&[1], &["ranks disagree on operation 3 of MPI_COMM_WORLD", "rank 1 is in MPI_Allreduce", "MPI_Bcast"]);
}

#[test]
fn requests_and_tests_in_vain_lead_to_who_computes() {
    let job = Running::start(OPEN_MPI, "waitall", 3, &[]);
    let said = job.hangs(
        &[2],
        &["rank 1 has waited for rank 2", "MPI_Irecv from rank 2 (tag 9)", "1 more rank waits for", "it computes"],
    );
    assert_eq!((&said["ranks"][0]["state"], &said["ranks"][1]["state"]), (&"waits".into(), &"tests".into()));
}

#[test]
fn a_thousand_communicators_are_told_apart() {
    let job = Running::start(OPEN_MPI, "comms", 3, &[]);
    job.hangs(
        &[1],
        &["rank 1 is missing in MPI_Barrier, operation 1 of communicator ", "of 3 ranks 0-2, where ranks 0, 2"],
    );
}

#[test]
fn parts_of_a_split_have_names_of_their_own() {
    for library in [OPEN_MPI, MPICH] {
        let job = Running::start(library, "split", 4, &[]);
        job.hangs(
            &[2],
            &["rank 2 is missing in MPI_Allreduce, operation 2 of communicator ", "of 2 ranks 0, 2, where rank 0 has"],
        );
    }
}

#[test]
fn the_groups_of_an_inter_communicator_are_told_apart() {
    let name = "inter-communicator ";
    let groups = " of 2 ranks 0, 2 and 2 ranks 1, 3";
    for (library, way) in [(OPEN_MPI, "inter"), (MPICH, "inter"), (OPEN_MPI, "between"), (MPICH, "between")] {
        let job = Running::start(library, way, 4, &[]);
        match way {
            "inter" => {
                let parts = ["rank 0 has waited for rank 3", "in MPI_Recv from rank 3 (tag 7, ", name, groups];
                job.hangs(&[3], &parts);
            }
            _ => {
                let parts = ["rank 3 is missing in MPI_Barrier, operation 2 of ", name, groups];
                job.hangs(&[3], &parts);
            }
        }
    }
}

#[test]
fn who_is_missing_in_a_fence_of_a_window_is_named() {
    for library in [OPEN_MPI, MPICH] {
        let job = Running::start(library, "fence", 3, &[]);
        let parts = ["rank 1 is missing in MPI_Win_fence, operation 2 of window ", "of 3 ranks 0-2, where ranks 0, 2"];
        let said = job.hangs(&[1], &parts);
        assert_eq!(said["communicators"][0]["behind"], serde_json::json!([1]));
    }
}

#[test]
fn who_is_missing_where_files_and_neighbours_are_concerned_is_named() {
    for library in [OPEN_MPI, MPICH] {
        let job = Running::start(library, "file", 3, &[]);
        let parts =
            ["rank 1 is missing in MPI_File_write_all, operation 1 of file ", "of 3 ranks 0-2, where ranks 0, 2"];
        job.hangs(&[1], &parts);
        drop(job);
        let job = Running::start(library, "neighbours", 4, &[]);
        let parts =
            ["rank 2 is missing in MPI_Neighbor_allgather, operation 1 of communicator \"ring\" of 4 ranks 0-3"];
        job.hangs(&[2], &parts);
        job.until(|said| said["ranks"][2]["state"] == "sleeps");
    }
}

#[test]
fn who_is_in_finalize_does_not_come_any_more() {
    let job = Running::start(OPEN_MPI, "left", 3, &[]);
    let parts =
        ["ranks 1, 2 are missing in MPI_Barrier, operation 3 of MPI_COMM_WORLD", "they have been in MPI_Finalize"];
    job.hangs(&[1, 2], &parts);
}

#[test]
fn who_holds_a_lock_of_a_window_is_named() {
    for library in [OPEN_MPI, MPICH] {
        let job = Running::start(library, "lock", 3, &[]);
        // Libraries wait in different calls for it.
        let parts = ["rank 0 has waited for rank 1 for ", "in MPI_Win_", "on which rank 1 holds a lock", "it computes"];
        job.hangs(&[1], &parts);
    }
}

#[test]
fn who_does_not_come_to_the_epoch_of_a_group_is_named() {
    for library in [OPEN_MPI, MPICH] {
        let job = Running::start(library, "post", 3, &[]);
        let parts = ["rank 0 has waited for rank 1 for ", "which needs MPI_Win_post on rank 1", "it computes"];
        job.hangs(&[1], &parts);
        drop(job);
        let job = Running::start(library, "complete", 3, &[]);
        let parts =
            ["rank 0 has waited for rank 1 for ", "in MPI_Win_wait (window ", "which needs MPI_Win_complete on rank 1"];
        job.hangs(&[1], &parts);
    }
}

#[test]
fn who_is_probed_for_is_named() {
    for library in [OPEN_MPI, MPICH] {
        let job = Running::start(library, "probe", 3, &[]);
        job.hangs(&[1], &["rank 0 has waited for rank 1", "in MPI_Probe from rank 1 (tag 5)", "it computes"]);
    }
}

#[test]
fn who_is_looked_for_again_and_again_is_named() {
    for (library, way, function) in [(OPEN_MPI, "iprobe", "MPI_Iprobe"), (MPICH, "improbe", "MPI_Improbe")] {
        let job = Running::start(library, way, 3, &[]);
        let parts = [
            "rank 0 has waited for rank 1",
            &format!("in repeated {function} from rank 1 (tag 5) (1 more rank waits for it); it computes"),
        ];
        let said = job.hangs(&[1], &parts);
        assert_eq!((&said["ranks"][0]["state"], &said["ranks"][2]["state"]), (&"tests".into(), &"waits".into()));
    }
}

#[test]
fn a_killed_process_is_named_within_a_second() {
    let killed = [OPEN_MPI, MPICH].map(|library| {
        let job = Running::start(library, "kill", 3, &[]);
        let (said, status) = job.until(|said| said["verdict"] == "failed");
        assert_eq!(status, 3);
        assert_eq!(said["ranks_to_blame"], serde_json::json!([1]), "{}", said["sentence"]);
        assert!(said["starved_ranks"].is_array(), "{said}");
        let sentence = said["sentence"].as_str().expect("a sentence");
        assert!(sentence.starts_with("rank 1 (process ") && sentence.contains("without MPI_Finalize"), "{sentence}");
        let ago = said["ranks"][1]["seconds"].as_f64().expect("a number");
        assert!(ago < 1.0, "{ago} s after its end");
        (job, said)
    });
    for (job, said) in killed {
        // The agent says so after the end of the job, too, and ends by itself.
        let agent = agents::agent(&job.app.path("run.monitor"));
        let begun = Instant::now();
        while Path::new(&format!("/proc/{agent}")).exists() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the agent has not ended");
            std::thread::sleep(Duration::from_millis(50));
        }
        let (later, status) = job.why();
        assert_eq!(
            (&later["verdict"], &later["ranks_to_blame"], status),
            (&"failed".into(), &said["ranks_to_blame"], 3)
        );
    }
}
