//! What few programs do: communicators that threads make at the same time, handles that are used again, jumps out of MPI, closed files, other tools.

use super::{App, Library, MPICH, OPEN_MPI, clc_replay, events};
use crate::common::{report, run, with_recorder};
use std::process::Command;

fn corners(library: Library) -> App {
    App::build(library, library.compiler, "corners.c", &[])
}

/// Records two processes of the program; number of messages, all of which are checked and none of which is violated.
#[track_caller]
fn messages(app: &App, arguments: &[&str]) -> u64 {
    run(&mut app.record(&["--force"], 2, arguments)).expect(0, "record");
    checked(app)
}

#[track_caller]
fn checked(app: &App) -> u64 {
    let said = report(&app.recorded(), &["check"], 0);
    assert_eq!(said["matching"]["unmatched_sends"], 0, "{}", said["matching"]);
    assert_eq!(said["matching"]["unmatched_receives"], 0, "{}", said["matching"]);
    said["violations"]["presynchronised"]["point_to_point"]["checked"].as_u64().expect("a number")
}

#[test]
fn communicators_that_threads_make_at_the_same_time_are_told_apart_by_their_tags() {
    for library in [OPEN_MPI, MPICH] {
        assert_eq!(messages(&corners(library), &["groups"]), 100);
    }
}

/// MPICH gives the handle of a communicator that one thread frees to the one that another thread is waiting for.
#[test]
fn a_communicator_is_there_when_the_call_that_makes_it_ends() {
    for library in [OPEN_MPI, MPICH] {
        let app = corners(library);
        assert_eq!(messages(&app, &["handles"]), 40);
        // Init and Finalize, two duplicates, the barrier, and two frees; another duplicate.
        assert_eq!(events(&app.recorded())["MPI_COLLECTIVE_END"], 2 * 8);
    }
}

#[test]
fn calls_after_a_jump_out_of_mpi_are_recorded() {
    for library in [OPEN_MPI, MPICH] {
        let app = corners(library);
        assert_eq!(messages(&app, &["jump"]), 20);
        let counts = events(&app.recorded());
        assert_eq!(counts["ENTER"], counts["LEAVE"]);
        assert_eq!(counts["MPI_SEND"], 20, "the one that has failed is none");
    }
}

#[test]
fn a_message_from_nobody_is_none() {
    for library in [OPEN_MPI, MPICH] {
        let app = corners(library);
        run(&mut app.record(&[], 2, &["nobody"])).expect(0, "record");
        let counts = events(&app.recorded());
        for kind in ["MPI_RECV", "MPI_IRECV", "MPI_IRECV_REQUEST", "MPI_REQUEST_CANCELLED"] {
            assert_eq!(counts.get(kind), None, "{counts:?}");
        }
    }
}

/// A ring of each process begins somewhere within the run. Counted from there, each message would be taken for another one, as would each barrier.
#[test]
fn in_rings_messages_and_collective_operations_are_counted_from_the_end() {
    for library in [OPEN_MPI, MPICH] {
        let app = corners(library);
        let recorded = run(&mut app.record(&["--ring", "--memory", "64K"], 2, &["ahead"])).expect(0, "record");
        assert!(recorded.stderr.contains("have no counterpart"), "{}", recorded.stderr);
        let messages = checked(&app);
        assert!((1_000..40_000).contains(&messages), "{messages}");
        let counts = events(&app.recorded());
        assert!(counts["MPI_COLLECTIVE_END"] > 10, "{counts:?}");
        assert_eq!(counts["MPI_COLLECTIVE_BEGIN"], counts["MPI_COLLECTIVE_END"]);
    }
}

/// Where recording begins and ends within the run, nobody knows which messages belong together: that is said by whoever reads the archive.
#[test]
fn a_part_of_a_run_is_called_incomplete() {
    let app = corners(OPEN_MPI);
    let part = ["--start", "time=1ms", "--stop", "time=20ms"];
    let recorded = run(&mut app.record(&part, 2, &["ahead"])).expect(0, "record");
    assert!(recorded.stderr.contains("nobody knows which messages"), "{}", recorded.stderr);
    let info = run(clc_replay("info").arg(app.recorded())).expect(0, "info");
    let said = info.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("communication was not recorded completely"), "{said}");
    let mut correct = Command::new(with_recorder());
    correct.arg(app.recorded()).args(["-q", "-o"]).arg(app.path("out")).env("CLC_REPLAY_MPI", "never");
    run(&mut correct).expect(3, "a correction");
}

#[test]
fn nothing_is_written_into_files_of_the_program() {
    let app = corners(OPEN_MPI);
    let (name, own) = ("run.raw", app.path("own").display().to_string());
    let recorded = run(&mut app.record(&["--keep-raw"], 2, &["files", name, &own])).expect(0, "record");
    assert_eq!(recorded.stdout, "");
    assert!(recorded.stderr.contains("the program has closed the files of the recorder"), "{}", recorded.stderr);
}

/// A tool that is linked to the program as a library, and stands in for functions of MPI as the recorder does.
#[test]
fn another_tool_is_called_as_without_the_recorder() {
    for library in [OPEN_MPI, MPICH] {
        let tool = App::build(library, library.compiler, "corners.c", &["-DTOOL", "-shared", "-fPIC"]);
        let file = tool.path("app").display().to_string();
        // Libraries come behind the source only by the linker's grace.
        let app = App::build(library, library.compiler, "corners.c", &["-Wl,--no-as-needed", &file]);
        let recorded = run(&mut app.record(&[], 2, &["tool"])).expect(0, "record");
        let mut lines: Vec<&str> = recorded.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["the tool has seen 0 sends", "the tool has seen 1 sends"], "{}", recorded.stderr);
        assert_eq!(checked(&app), 1);
    }
}

/// The module of MPICH 4.0 counts places of requests from 0, and the entry before may be null as well.
#[test]
fn requests_among_null_ones_are_found_in_fortran() {
    for library in [OPEN_MPI, MPICH] {
        let app = App::build(library, library.fortran, "waitany.F90", &[]);
        assert_eq!(messages(&app, &[]), 40);
        let counts = events(&app.recorded());
        assert_eq!([counts["MPI_ISEND_COMPLETE"], counts["MPI_IRECV"]], [40, 40]);
    }
}

/// Rank 0 is the one that makes the archive. Where it cannot, the others would wait for it in `MPI_Init`, for which some launchers let them.
#[test]
fn no_process_waits_where_the_output_cannot_be_made() {
    let app = corners(MPICH);
    std::fs::create_dir(app.recorded()).expect("a directory in its place");
    let refused = || {
        let mut command = Command::new("timeout");
        command.args(["60", "mpiexec.mpich", "-n", "2"]).arg(with_recorder());
        command.args(["record", "-o"]).arg(app.recorded()).arg("--").arg(app.path("app")).arg("jump");
        run(command.env("CLC_REPLAY_MPI", "never"))
    };
    // The launcher itself is sometimes ended by SIGPIPE where processes end so early.
    let launched = |status: i32| status != 128 + libc::SIGPIPE;
    let mut runs = std::iter::repeat_with(refused).take(5);
    let refused = runs.find(|run| launched(run.status)).expect("a launcher that lives");
    assert_eq!(refused.status, 2, "{}", refused.stderr);
    assert_eq!(refused.stderr.matches("output directory already exists").count(), 1, "{}", refused.stderr);
}

/// Accesses to windows, in a native trace: what completes them is interpreted.
#[test]
fn one_sided_operations_are_recorded_into_a_native_trace() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "windows.c", &[]);
    let mut command = clc_replay("record");
    command.arg("-o").arg(app.path("run.clct")).arg("--").args(app.launch(4)).arg(app.path("app"));
    run(&mut command).expect(0, "record");
    // Nobody knows the order of accesses under locks.
    run(clc_replay("check").arg(app.path("run.clct"))).expect(3, "check");
}
