//! The transport between real MPI processes. This test starts itself under `mpirun` (`MPIEXEC` names another launcher): started by
//! a launcher, it is one rank of the job that `CLC_REPLAY_TEST_JOB` names.
#![allow(clippy::print_stdout, clippy::print_stderr)] // for whoever runs it

mod operations;

use clc_engine::comm::mpi::MpiTransport;
use clc_engine::comm::{AnalysisRank, Farewell, Transport};
use std::io::Read;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const JOB: &str = "CLC_REPLAY_TEST_JOB";

fn main() -> ExitCode {
    match std::env::var(JOB) {
        Ok(job) => rank(&job),
        Err(_) if std::env::args().any(|word| word == "--list") => list(),
        Err(_) => launcher(),
    }
}

/// What cargo-nextest asks every test binary: its tests, and then those that are to be ignored.
fn list() -> ExitCode {
    if std::env::args().all(|word| word != "--ignored") {
        println!("transport: test");
    }
    ExitCode::SUCCESS
}

/// One rank of a job.
fn rank(job: &str) -> ExitCode {
    if job == "start" {
        return match clc_engine::comm::start() {
            Ok(transport) => {
                println!("{} of {} with {}", transport.rank(), transport.size(), transport.library());
                ExitCode::SUCCESS
            }
            Err(error) => {
                println!("{error}");
                ExitCode::from(2)
            }
        };
    }
    let mut transport = MpiTransport::initialise().unwrap();
    let last = transport.rank().place() == transport.size() - 1;
    match job {
        "operations" => {
            operations::all(&mut transport);
            if transport.rank() == AnalysisRank::FIRST {
                println!("all operations hold on {} ranks with {}", transport.size(), transport.library());
            }
        }
        "panic" if last => panic!("this rank does not get on"),
        // An error that the others do not have, while they wait.
        "error" if last => {
            assert_eq!(transport.leave(Duration::from_millis(200)), Farewell::First);
            eprintln!("this rank has given up");
            transport.abort(7);
        }
        _ => {
            transport.barrier().unwrap();
            unreachable!("a barrier without the last rank");
        }
    }
    ExitCode::SUCCESS
}

struct Outcome {
    success: bool,
    status: Option<i32>,
    text: String,
    took: Duration,
}

/// Runs a job to its end; a job that hangs is ended and fails.
fn run(command: &mut Command, job: &str) -> Outcome {
    const LIMIT: Duration = Duration::from_secs(240);
    let start = Instant::now();
    command.env(JOB, job).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let readers = [drain(child.stdout.take()), drain(child.stderr.take())];
    let status = wait(&mut child, start + LIMIT);
    let took = start.elapsed();
    let text = readers.map(|reader| reader.join().unwrap()).concat();
    assert!(status.is_some(), "{job} does not end:\n{text}");
    let status = status.unwrap();
    Outcome { success: status.success(), status: status.code(), text, took }
}

fn drain(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, deadline: Instant) -> Option<std::process::ExitStatus> {
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// This program under the launcher. Launchers read what they need for more ranks than cores, and for root, from the environment.
fn mpirun(ranks: usize) -> Command {
    let launcher = std::env::var("MPIEXEC").unwrap_or_else(|_| "mpirun".to_owned());
    let mut words = launcher.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("mpirun"));
    command.args(words);
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
        ("PRTE_MCA_hwloc_default_binding_policy", "none"),
    ] {
        command.env(name, value);
    }
    command.args(["-n", &ranks.to_string()]).arg(std::env::current_exe().unwrap());
    command
}

fn itself() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

fn check(name: &str, holds: impl FnOnce()) {
    let start = Instant::now();
    holds();
    println!("mpi_transport: {name}: ok, {:.1} s", start.elapsed().as_secs_f64());
}

fn launcher() -> ExitCode {
    for ranks in [1, 2, 3, 4, 7] {
        check(&format!("every operation on {ranks} ranks"), || {
            let outcome = run(&mut mpirun(ranks), "operations");
            let expected = format!("all operations hold on {ranks} ranks");
            assert!(outcome.success && outcome.text.contains(&expected), "{}", outcome.text);
        });
    }
    check("a single process without a launcher", || {
        let outcome = run(&mut itself(), "operations");
        assert!(outcome.success && outcome.text.contains("hold on 1 ranks"), "{}", outcome.text);
    });
    check("the choice of a transport", || {
        let chosen = |command: &mut Command| run(command, "start");
        assert!(chosen(&mut itself()).text.starts_with("0 of 1 with none"));
        let forced = chosen(itself().env("CLC_REPLAY_MPI", "always"));
        assert!(forced.text.starts_with("0 of 1 with ") && !forced.text.contains("with none"), "{}", forced.text);
        let two = chosen(&mut mpirun(2)).text;
        assert!(two.contains("0 of 2 with ") && two.contains("1 of 2 with "), "{two}");
        let refused = chosen(mpirun(2).env("CLC_REPLAY_MPI", "never"));
        assert!(!refused.success && refused.text.contains("a launcher started 2 processes"), "{}", refused.text);
    });
    check("the launcher of another library", || {
        // What a process of a foreign launcher sees: the number of ranks, and none of the means to find them.
        let outcome = run(itself().env("MV2_COMM_WORLD_SIZE", "3"), "start");
        assert_eq!(outcome.status, Some(2), "{}", outcome.text);
        assert!(
            outcome.text.contains("the launcher started 3 processes, but MPI sees only this one"),
            "{}",
            outcome.text
        );
    });
    check("a panic on one rank ends the job", || {
        let outcome = run(&mut mpirun(3), "panic");
        assert!(!outcome.success && outcome.took < Duration::from_secs(60), "{:?} {}", outcome.took, outcome.text);
        assert_eq!(outcome.text.matches("this rank does not get on").count(), 1, "{}", outcome.text);
        assert!(outcome.text.contains("analysis rank 2 failed"), "{}", outcome.text);
    });
    check("an error on one rank ends the job", || {
        let outcome = run(&mut mpirun(3), "error");
        assert!(!outcome.success && outcome.took < Duration::from_secs(60), "{:?} {}", outcome.took, outcome.text);
        assert!(outcome.text.contains("this rank has given up"), "{}", outcome.text);
    });
    ExitCode::SUCCESS
}
