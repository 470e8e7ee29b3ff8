//! Whatever happens to a program: nothing is recorded twice, what was recorded is kept, and the program notices nothing.

use super::{App, MPICH, OPEN_MPI, clc_replay, events};
use crate::common::run;

/// The program for these tests, in one of its ways.
fn app(library: super::Library) -> App {
    App::build(library, library.compiler, "children.c", &[])
}

#[test]
fn children_are_not_recorded_again() {
    for library in [OPEN_MPI, MPICH] {
        let app = app(library);
        let plain = {
            let launch = app.launch(2);
            let mut command = std::process::Command::new(&launch[0]);
            command.args(&launch[1..]).arg(app.path("app")).arg("children");
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            run(&mut command).expect(0, "the program alone")
        };
        let recorded = run(&mut app.record(&["--keep-raw"], 2, &["children"])).expect(0, "a recording");
        assert_eq!(recorded.stdout, plain.stdout);
        let counts = events(&app.recorded());
        // 20 barriers of both processes, MPI_Init and MPI_Finalize, and nothing that children did.
        assert_eq!(counts["ENTER"], 2 * 22, "{counts:?}");
        assert_eq!(counts["ENTER"], counts["LEAVE"]);
        let raw: Vec<String> = std::fs::read_dir(app.path("run.raw"))
            .expect("the raw files")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".raw") || name.ends_with(".buffer"))
            .collect();
        assert_eq!(raw.len(), 2, "one file of each process, no buffers: {raw:?}");
    }
}

#[test]
fn abort_and_crashes_leave_what_was_recorded() {
    for library in [OPEN_MPI, MPICH] {
        for (way, within) in [("abort", "in MPI_Abort"), ("crash", "outside of MPI"), ("exit", "outside of MPI")] {
            let app = app(library);
            let recorded = run(&mut app.record(&[], 2, &[way]));
            assert_ne!(recorded.status, 0, "{way}");
            assert!(recorded.stderr.contains(&format!("rank 1 ended {within}")), "{way}: {}", recorded.stderr);
            let counts = events(&app.recorded());
            assert_eq!(counts["ENTER"], counts["LEAVE"], "{way}");
            assert!(counts["MPI_COLLECTIVE_END"] >= 2 * 21 - 1, "{way}: {counts:?}");
        }
    }
}

/// A program that ends in one of its ways, recorded as if it were alone.
#[track_caller]
fn ends_as_if_alone(library: super::Library, way: &str) -> App {
    let app = App::build(library, library.compiler, "farewell.c", &[]);
    // A process that waits for another one in `MPI_Finalize` would wait for ever.
    let within = |command: &mut std::process::Command| {
        let mut limited = std::process::Command::new("timeout");
        limited.arg("60").arg(command.get_program()).args(command.get_args());
        limited.env("CLC_REPLAY_MPI", "never").env_remove("RUST_LOG");
        limited.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        run(&mut limited).expect(0, "a program that ends")
    };
    let launch = app.launch(2);
    let mut alone = std::process::Command::new(&launch[0]);
    let plain = within(alone.args(&launch[1..]).arg(app.path("app")).arg(way));
    let recorded = within(&mut app.record(&["--clock", "offset"], 2, &[way]));
    assert_eq!(recorded.stdout, plain.stdout);
    assert!(!recorded.stderr.contains("clock offsets were measured"), "only once: {}", recorded.stderr);
    let checked = run(clc_replay("check").arg(app.recorded()));
    assert!(!checked.stdout.contains("without a begin or an end"), "{}", checked.stdout);
    app
}

#[test]
fn what_a_program_does_in_finalize_needs_no_other_process_to_be_there() {
    for library in [OPEN_MPI, MPICH] {
        let counts = events(&ends_as_if_alone(library, "attribute").recorded());
        assert_eq!((counts["MPI_SEND"], counts["MPI_RECV"]), (1, 1), "{counts:?}");
        assert_eq!(counts["ENTER"], counts["LEAVE"]);
    }
}

#[test]
fn mpi_may_go_on_for_a_session() {
    let counts = events(&ends_as_if_alone(MPICH, "session").recorded());
    // MPI_Init, MPI_Barrier and MPI_Finalize of both, and MPI_Comm_create_from_group and MPI_Comm_free of the session.
    assert_eq!((counts["ENTER"], counts["LEAVE"]), (8, 8), "{counts:?}");
}

#[test]
fn small_buffers_lose_nothing() {
    let app = App::c(OPEN_MPI);
    let mut command = app.record(&["--memory", "64K", "--keep-raw"], 2, &["60"]);
    let recorded = run(&mut command).expect(0, "a recording");
    super::assert_complete(&app.recorded(), &recorded.stdout);
    let size = std::fs::metadata(app.path("run.raw/0-0.raw")).expect("a raw file").len();
    assert!(size > 3 * (32 << 10), "several buffers have been written: {size} bytes");
    // Written as soon as they are full, the same.
    let again = App::c(OPEN_MPI);
    let mut command = again.record(&["--memory", "64K"], 2, &["60"]);
    let recorded = run(command.env("CLC_RECORDER_WRITE", "static")).expect(0, "a recording");
    super::assert_complete(&again.recorded(), &recorded.stdout);
}

#[test]
fn a_ring_keeps_the_latest_events() {
    let app = App::c(OPEN_MPI);
    run(&mut app.record(&["--ring", "--memory", "128K", "--keep-raw"], 2, &["300"])).expect(0, "a recording");
    let size = std::fs::metadata(app.path("run.raw/0-0.ring.raw")).expect("a raw file").len();
    assert!((64 << 10..=140 << 10).contains(&size), "{size} bytes");
    let counts = events(&app.recorded());
    assert_eq!(counts["ENTER"], counts["LEAVE"]);
    // The last collective operations of the program are there, and most of its sends are not.
    assert!(counts["MPI_ISEND"] > 100 && counts["MPI_ISEND"] < 2 * 300 * 27 / 2, "{counts:?}");
    let checked = run(clc_replay("check").arg(app.recorded()));
    assert!(matches!(checked.status, 0 | 1 | 3), "{}", checked.stderr);
}

#[test]
fn recording_starts_and_stops_at_regions() {
    let header = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/src/marks");
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "marks.c", &[header]);
    run(&mut app.record(&["--start", "iteration=step 1:2", "--stop", "iteration=step 1:2"], 2, &[]))
        .expect(0, "a recording");
    let counts = events(&app.recorded());
    // The second "step 1" with its barrier; MPI_Init and MPI_Finalize always.
    assert_eq!(counts["MPI_COLLECTIVE_END"], 2 * 3, "{counts:?}");
    assert_eq!(counts["ENTER"], 2 * 4, "{counts:?}");
    assert_eq!(counts["METRIC"], 2);
    let wrong = run(clc_replay("record").args(["-o", "x", "--start", "soon", "--", "true"]));
    assert!(wrong.status == 2 && wrong.stderr.contains("iteration=NAME:N"), "{}", wrong.stderr);
}

#[test]
fn a_signal_keeps_what_a_ring_holds() {
    let app = app(OPEN_MPI);
    // The process sends it to itself after 2,000 barriers and goes on with 100,000 probes that would push them out.
    let options = ["--ring", "--memory", "64K", "--on-signal", "USR1", "--keep-raw", "--polls", "all"];
    run(&mut app.record(&options, 1, &["signal"])).expect(0, "a recording");
    let printed = run(std::process::Command::new("otf2-print").arg(app.recorded().join("traces.otf2")));
    let calls =
        |name: &str| printed.stdout.lines().filter(|line| line.starts_with("ENTER") && line.contains(name)).count();
    assert!(calls("\"MPI_Barrier\"") >= 500, "{} barriers", calls("\"MPI_Barrier\""));
    assert!(calls("\"MPI_Iprobe\"") < 50_000, "{} probes", calls("\"MPI_Iprobe\""));
}

#[test]
fn the_rate_of_the_counter_is_known_of_processes_that_end_at_once() {
    for library in [OPEN_MPI, MPICH] {
        let app = App::build(library, library.compiler, "farewell.c", &[]);
        let recorded = run(&mut app.record(&["--keep-raw"], 1, &["at-once"]));
        assert_ne!(recorded.status, 0);
        assert_eq!(events(&app.recorded())["ENTER"], 1);
        let header = std::fs::read(app.path("run.raw/0-0.raw")).expect("a raw file");
        let number = |place: usize| u64::from_le_bytes(header[place..place + 8].try_into().expect("eight bytes"));
        // Nanoseconds of the first anchor and of the latest one, which has been made once or twice: all that MPI_Init took is between them.
        let latest = [0, 160, 184][number(200) as usize];
        let passed = number(latest) - number(136);
        assert!(passed > 5_000_000, "{passed} ns");
    }
}

#[test]
fn arguments_that_mpi_refuses_or_ignores_are_not_looked_at() {
    for library in [OPEN_MPI, MPICH] {
        let app = App::build(library, library.compiler, "oddities.c", &[]);
        let launch = app.launch(3);
        let mut alone = std::process::Command::new(&launch[0]);
        alone.args(&launch[1..]).arg(app.path("app"));
        alone.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let plain = run(&mut alone).expect(0, "the program alone");
        let recorded = run(&mut app.record(&[], 3, &[])).expect(0, "a recording");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&recorded.stdout), sorted(&plain.stdout));
        let counts = events(&app.recorded());
        assert_eq!(counts["ENTER"], counts["LEAVE"]);
        // What failed has communicated nothing.
        assert_eq!(counts.get("MPI_SEND"), None, "{counts:?}");
        assert_eq!(counts["MPI_COLLECTIVE_BEGIN"], counts["MPI_COLLECTIVE_END"]);
        run(clc_replay("check").arg(app.recorded())).expect(0, "check");
    }
}

/// A disk that is slower than the program makes events: nothing is lost, also if a buffer is still being written when the program ends.
#[test]
fn a_slow_disk_loses_nothing() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "phases.c", &[]);
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps/slow_disk.c");
    let library = app.path("slow_disk.so");
    let mut compiler = std::process::Command::new("gcc");
    run(compiler.args(["-O1", "-w", "-shared", "-fPIC"]).arg(source).arg("-o").arg(&library).arg("-ldl"))
        .expect(0, "a library");
    // Beside the recorder, which is preloaded as well.
    let script = app.path("script");
    let text =
        format!("LD_PRELOAD=\"{}:$LD_PRELOAD\" exec \"{}\" 6 20000 1", library.display(), app.path("app").display());
    std::fs::write(&script, text).expect("a script");
    let recorded = |rate: &str| {
        let mut command = clc_replay("record");
        command.args(["--force", "--memory", "1M", "-o"]).arg(app.recorded()).arg("--").args(app.launch(2));
        run(command.arg("sh").arg(&script).env("SLOW_DISK", rate)).expect(0, "a recording");
        run(clc_replay("check").arg(app.recorded())).expect(0, "every message has both ends");
        events(&app.recorded())
    };
    let quick = recorded("100000");
    assert!(quick["ENTER"] > 6 * 20_000, "{quick:?}");
    for rate in ["1", "4"] {
        assert_eq!(recorded(rate), quick, "{rate} MB/s");
    }
}

/// No file may be longer than the raw ones: the archive cannot be written. A launcher would end an application one process of which fails.
#[test]
fn an_archive_that_cannot_be_written_is_no_failure_of_a_launched_application() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "polls.c", &["-rdynamic"]);
    let mut words = app.launch(1);
    let recorder = crate::common::with_recorder().to_string_lossy().into_owned();
    words.extend([recorder.as_str(), "record", "--polls", "all", "-o"].map(str::to_owned));
    words.extend(
        [app.recorded(), "--".into(), app.path("app"), "1000000".into()].map(|path| path.display().to_string()),
    );
    let mut command = std::process::Command::new("sh");
    command.env("CLC_REPLAY_MPI", "never").env_remove("RUST_LOG");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // In units of 512 bytes: more than the raw file has, less than the archive.
    command.args(["-c", "ulimit -f 40000; exec \"$@\"", "sh"]).args(words);
    let said = run(&mut command).expect(0, "the application").stderr;
    assert!(said.contains("error: no trace was written") && said.contains("File too large"), "{said}");
    run(clc_replay("recover").arg(app.recorded())).expect(0, "a recovered recording");
    run(clc_replay("check").arg(app.recorded())).expect(0, "a recovered recording");
}

/// The launcher is gone, and a process of the application is not: it is not said to have ended.
#[test]
fn nothing_is_made_of_what_is_still_recorded() {
    let app = App::build(MPICH, MPICH.compiler, "polls.c", &["-rdynamic"]);
    let mut command = clc_replay("record");
    command.arg("-o").arg(app.recorded()).args([
        "--",
        "sh",
        "-c",
        "\"$0\" 100000000000 & echo $! > \"$0.pid\"; sleep 1; exit 7",
    ]);
    let said = run(command.arg(app.path("app"))).expect(7, "the status of the launcher").stderr;
    let process = std::fs::read_to_string(app.path("app.pid")).expect("a process id").trim().to_owned();
    let signal = |signal: &str| run(std::process::Command::new("kill").args([signal, &process])).status;
    assert_eq!(signal("-KILL"), 0, "it was there");
    assert!(said.contains(&format!("process {process} is still recording")) && !app.recorded().exists(), "{said}");
    while signal("-0") == 0 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    run(clc_replay("recover").arg(app.recorded())).expect(0, "a recovered recording");
    assert!(events(&app.recorded())["ENTER"] >= 10);
}
