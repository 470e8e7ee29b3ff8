//! `clc-replay record`: what programs do is in their recordings, once and in full, on Open MPI and MPICH, from C and from Fortran.

mod corners;
mod exchanges;
mod monitor;
mod mpi_5;
mod openmp;
mod own;
mod polls;
mod pthreads;
mod samples;
mod sessions;
mod sizes;
mod survives;
mod told;
mod windows;

use crate::common::{Finished, PYTHON, run, start, with_recorder};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// An MPI library: what its tools are called.
#[derive(Clone, Copy)]
struct Library {
    compiler: &'static str,
    fortran: &'static str,
    launcher: &'static [&'static str],
}

const OPEN_MPI: Library = Library {
    compiler: "mpicc.openmpi",
    fortran: "mpifort.openmpi",
    launcher: &["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"],
};
const MPICH: Library = Library { compiler: "mpicc.mpich", fortran: "mpifort.mpich", launcher: &["mpiexec.mpich"] };

/// A program of `tests/apps` and a place for recordings of it.
struct App {
    directory: tempfile::TempDir,
    library: Library,
}

impl App {
    fn build(library: Library, compiler: &str, source: &str, options: &[&str]) -> App {
        App::build_by(library, &mut Command::new(compiler), source, options)
    }

    fn build_by(library: Library, command: &mut Command, source: &str, options: &[&str]) -> App {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps").join(source);
        command.args(["-O1", "-w"]).args(options).arg(source).arg("-o").arg(directory.path().join("app"));
        run(command.args(["-lm", "-lpthread"])).expect(0, "a compiled program");
        App { directory, library }
    }

    fn c(library: Library) -> App {
        App::build(library, library.compiler, "recorded.c", &[])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The launcher with `ranks` processes.
    fn launch(&self, ranks: u32) -> Vec<String> {
        let mut words: Vec<String> = self.library.launcher.iter().map(|&word| word.to_owned()).collect();
        words.extend(["-n".to_owned(), ranks.to_string()]);
        words
    }

    /// `clc-replay record` with options, for so many processes of the program with arguments.
    fn record(&self, options: &[&str], ranks: u32, arguments: &[&str]) -> Command {
        let mut command = clc_replay("record");
        command.arg("-o").arg(self.path("run")).args(options).arg("--").args(self.launch(ranks));
        command.arg(self.path("app")).args(arguments);
        command
    }

    fn recorded(&self) -> PathBuf {
        self.path("run")
    }
}

/// What the recorder says, except that it has joined polls, of which a program may make any number.
fn without_polls(said: &str) -> Vec<&str> {
    said.lines().filter(|line| !line.contains(" that found nothing were joined into ")).collect()
}

fn clc_replay(subcommand: &str) -> Command {
    let mut command = Command::new(with_recorder());
    command.arg(subcommand).env("CLC_REPLAY_MPI", "never").env_remove("RUST_LOG");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// Numbers of events by kind, as the OTF2 library's own tool prints them; it must have nothing to say against the archive.
fn events(archive: &Path) -> BTreeMap<String, u64> {
    let printed = run(Command::new("otf2-print").arg(archive.join("traces.otf2"))).expect(0, "otf2-print");
    assert_eq!(printed.stderr, "", "otf2-print");
    let mut counts = BTreeMap::new();
    for line in printed.stdout.lines() {
        let mut words = line.split_whitespace();
        if let (Some(kind), Some(Ok(_))) = (words.next(), words.next().map(str::parse::<u64>)) {
            *counts.entry(kind.to_owned()).or_insert(0) += 1;
        }
    }
    counts
}

/// What the program says that it has done has to be in the archive.
#[track_caller]
fn assert_complete(archive: &Path, said: &str) {
    let counts = events(archive);
    let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    let done: BTreeMap<&str, u64> = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, number)| (name, number.trim().parse().expect("a number")))
        .collect();
    let found: BTreeMap<&str, u64> = [
        ("sends", count("MPI_SEND")),
        ("receives", count("MPI_RECV")),
        ("immediate_sends", count("MPI_ISEND")),
        ("immediate_receives", count("MPI_IRECV")),
        ("cancelled", count("MPI_REQUEST_CANCELLED")),
        ("collectives", count("MPI_COLLECTIVE_END")),
        ("immediate_collectives", count("NON_BLOCKING_COLLECTIVE_COMPLETE")),
    ]
    .into();
    assert_eq!(found, done, "{said}");
    assert_eq!(count("MPI_ISEND_COMPLETE"), count("MPI_ISEND"));
    assert_eq!(count("MPI_IRECV_REQUEST"), count("MPI_IRECV") + count("MPI_REQUEST_CANCELLED"));
    assert_eq!(count("NON_BLOCKING_COLLECTIVE_REQUEST"), count("NON_BLOCKING_COLLECTIVE_COMPLETE"));
    assert_eq!(count("MPI_COLLECTIVE_BEGIN"), count("MPI_COLLECTIVE_END"));
    assert_eq!(count("ENTER"), count("LEAVE"));
    // The Python bindings are stricter than otf2-print about definitions, but those of OTF2 3.0 cannot read any inter-communicator: they take its
    // groups for a group and a parent.
    let anchor = archive.join("traces.otf2");
    let definitions = run(Command::new("otf2-print").arg("-G").arg(&anchor)).expect(0, "otf2-print");
    if !definitions.stdout.contains("INTER_COMM") {
        let script = "import otf2, sys\nwith otf2.reader.open(sys.argv[1]) as t: print(sum(1 for _ in t.events))";
        let read = run(Command::new(PYTHON).args(["-c", script]).arg(anchor)).expect(0, "python3-otf2");
        assert_eq!(read.stderr, "", "python3-otf2");
        assert_eq!(read.stdout.trim().parse::<u64>().ok(), Some(counts.values().sum()));
    }
}

/// With the clock of one node, no message comes too early, and every message has both ends.
#[track_caller]
fn assert_consistent(archive: &Path, said: &str) {
    let report = archive.with_extension("json");
    let mut check = clc_replay("check");
    run(check.arg(archive).arg("--report").arg(&report)).expect(0, "check");
    let text = std::fs::read_to_string(report).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let sent = |name: &str| {
        said.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).expect("a number")
    };
    let checked = report["violations"]["raw"]["point_to_point"]["checked"].as_u64();
    assert_eq!(checked, Some(sent("sends ") + sent("immediate_sends ")), "every message has both ends");
}

fn records_everything(app: &App, arguments: &[&str]) {
    let plain = {
        let launch = app.launch(4);
        let mut command = Command::new(&launch[0]);
        command.args(&launch[1..]).arg(app.path("app")).args(arguments);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        run(&mut command).expect(0, "the program alone")
    };
    let recorded = run(&mut app.record(&[], 4, arguments)).expect(0, "the program recorded");
    assert_eq!(recorded.stdout, plain.stdout, "the program's output is its own");
    let lines = without_polls(&recorded.stderr);
    assert!(lines.len() == 1 && lines[0].contains("4 processes on 1 node,"), "{}", recorded.stderr);
    assert_complete(&app.recorded(), &recorded.stdout);
    assert_consistent(&app.recorded(), &recorded.stdout);
    assert!(!app.path("run.raw").exists());
}

#[test]
fn open_mpi() {
    records_everything(&App::c(OPEN_MPI), &["10"]);
}

#[test]
fn mpich() {
    records_everything(&App::c(MPICH), &["10"]);
}

#[test]
fn several_threads_of_open_mpi() {
    records_everything(&App::c(OPEN_MPI), &["1", "threads"]);
}

#[test]
fn several_threads_of_mpich() {
    records_everything(&App::c(MPICH), &["1", "threads"]);
}

#[test]
fn fortran_is_counted_once() {
    for library in [OPEN_MPI, MPICH] {
        for options in [&["-DMODULE=mpi"][..], &["-DMODULE=mpi_f08", "-DF08"]] {
            records_everything(&App::build(library, library.fortran, "recorded.F90", options), &[]);
        }
    }
}

#[test]
fn inside_a_job_every_process_starts_the_recorder() {
    for library in [OPEN_MPI, MPICH] {
        let app = App::c(library);
        let launch = app.launch(4);
        let mut command = Command::new(&launch[0]);
        command.args(&launch[1..]).arg(with_recorder()).arg("record").arg("-o").arg(app.recorded()).arg("--");
        command.arg(app.path("app")).arg("3");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let recorded = run(&mut command).expect(0, "a job");
        assert_complete(&app.recorded(), &recorded.stdout);
        assert_consistent(&app.recorded(), &recorded.stdout);
    }
}

fn evaluation(trace: &Path, truth: &Path) -> serde_json::Value {
    let report = trace.with_extension("evaluation.json");
    run(clc_replay("evaluate").arg(trace).arg("--truth").arg(truth).arg("--report").arg(&report)).expect(0, "evaluate");
    let text = std::fs::read_to_string(report).expect("a report");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn wrong_clocks_are_corrected_towards_the_truth() {
    let app = App::c(OPEN_MPI);
    let clock = "offset=5ms,drift=20ppm,sine=20us/0.5s";
    run(&mut app.record(&["--clock", clock, "--seed", "3"], 4, &["40"])).expect(0, "a recording");
    let raw = run(clc_replay("check").arg(app.recorded())).stdout;
    assert!(raw.contains("VIOLATED"), "{raw}");
    run(Command::new(with_recorder()).arg(app.recorded()).env("CLC_REPLAY_MPI", "never")).expect(0, "a correction");
    let phases = evaluation(&app.path("run-clc"), &app.recorded());
    let error = |phase: &str| {
        let phases = phases["phases"].as_array().expect("phases");
        let phase = phases.iter().find(|found| found["phase"] == phase).expect("the phase");
        phase["clock"]["rms_seconds"].as_f64().expect("a number")
    };
    let (before, after) = (error("raw"), error("final"));
    // The offsets are up to 5 ms; how well the sine is found depends on how busy the machine is.
    assert!(before > 1e-4 && after * 10.0 < before, "{before} s before, {after} s after");
}

#[test]
fn what_a_killed_process_has_recorded_is_kept() {
    for library in [OPEN_MPI, MPICH] {
        let app = App::c(library);
        let Finished { status, stderr, .. } = run(&mut app.record(&[], 4, &["5", "crash"]));
        assert_ne!(status, 0, "the status is the launcher's");
        assert!(stderr.contains("rank 3 ended outside of MPI, without MPI_Finalize"), "{stderr}");
        let counts = events(&app.recorded());
        let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
        assert_eq!(count("ENTER"), count("LEAVE"));
        // Four rounds are complete: 24 immediate sends and 3 persistent ones of each of 4 processes.
        assert!(count("MPI_ISEND") >= 4 * 4 * 27, "{counts:?}");
        // No correction stumbles over it.
        let corrected = run(Command::new(with_recorder()).arg(app.recorded()).env("CLC_REPLAY_MPI", "never"));
        assert!(matches!(corrected.status, 0 | 3), "{}", corrected.stderr);
    }
}

#[test]
fn a_recording_that_was_cut_off_is_recovered() {
    let app = App::c(OPEN_MPI);
    let mut running = start(&mut app.record(&[], 4, &["100000"]));
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    // The number of bytes that count is in the header of a file, and in that of each of its buffers.
    let committed = || {
        let count = |name: &str| {
            let bytes = std::fs::read(app.path(name)).unwrap_or_default();
            bytes.get(8..16).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        };
        ["run.raw/3-0.raw", "run.raw/3-0.0.buffer", "run.raw/3-0.1.buffer"].map(count).into_iter().sum::<u64>()
    };
    while committed() < 100_000 {
        assert!(std::time::Instant::now() < deadline, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
    let refused = run(clc_replay("recover").arg(app.recorded()));
    assert!(refused.status == 2 && refused.stderr.contains("is still recording"), "{}", refused.stderr);
    // All of it at once: the launcher's processes are in other process groups.
    for process in descendants(running.child.id()) {
        let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
    }
    let _ = running.child.wait();
    assert!(!app.recorded().exists());
    let again = run(&mut app.record(&[], 4, &["1"]));
    assert!(again.status == 2 && again.stderr.contains("there is an unfinished recording"), "{}", again.stderr);
    let recovered = run(clc_replay("recover").arg(app.recorded())).expect(0, "recover");
    for rank in 0..4 {
        let line = format!("rank {rank} ended");
        assert!(recovered.stdout.contains(&line), "{}", recovered.stdout);
    }
    let counts = events(&app.recorded());
    assert!(counts["MPI_ISEND"] > 1000 && counts["ENTER"] == counts["LEAVE"], "{counts:?}");
    assert!(!app.path("run.raw").exists());
}

/// A process and everything that it has started, itself first.
fn descendants(process: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("the processes").flatten();
    let parents: Vec<(u32, u32)> = entries
        .filter_map(|entry| {
            let child = entry.file_name().to_str()?.parse().ok()?;
            let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
            Some((child, parent))
        })
        .collect();
    let mut all = vec![process];
    let mut next = 0;
    while let Some(&parent) = all.get(next) {
        next += 1;
        all.extend(parents.iter().filter(|(_, its)| *its == parent).map(|(child, _)| *child));
    }
    all
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    let app = App::c(OPEN_MPI);
    // Files may have 5 MiB: two buffers, and not a third one. A trace of that may not fit either.
    let mut command = Command::new("bash");
    let words: Vec<String> =
        app.launch(2).into_iter().chain([app.path("app").display().to_string(), "3000".into()]).collect();
    let line = format!(
        "ulimit -f 5120; exec {} record --keep-raw -o {} -- {}",
        with_recorder().display(),
        app.recorded().display(),
        words.join(" ")
    );
    command.args(["-c", &line]);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let full = run(&mut command);
    assert!(full.stdout.contains("sends "), "{}\n{}", full.stdout, full.stderr);
    assert!(full.stderr.contains("there is no space left"), "{}", full.stderr);
}

#[test]
fn the_status_of_the_application_is_passed_on() {
    let app = App::c(OPEN_MPI);
    let mut command = clc_replay("record");
    let not_mpi = run(command.arg("-o").arg(app.recorded()).args(["--", "sh", "-c", "echo said; exit 7"]));
    assert_eq!((not_mpi.status, not_mpi.stdout.as_str()), (7, "said\n"));
    assert!(not_mpi.stderr.contains("no process recorded anything"), "{}", not_mpi.stderr);
    // It is not in the way of the next recording.
    assert!(!app.path("run.raw").exists());
    let missing = run(clc_replay("record").arg("-o").arg(app.path("other")).args(["--", "./no such program"]));
    assert_eq!(missing.status, 2);
    assert!(missing.stderr.contains("cannot start the application"), "{}", missing.stderr);
    assert!(!app.path("other.raw").exists());
}

/// Number of parameters of every function that a header declares.
fn declared(library: Library) -> BTreeMap<String, usize> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("header.c");
    std::fs::write(&source, "#include <mpi.h>\n").expect("a file");
    let text = run(Command::new(library.compiler).arg("-E").arg(source)).expect(0, "the preprocessor").stdout;
    let mut found = BTreeMap::new();
    for (start, _) in text.match_indices(" MPI_") {
        let rest = &text[start + 1..];
        let Some((name, after)) = rest.split_once('(') else { continue };
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let Some((list, _)) = after.split_once(')') else { continue };
        let count = if list.trim() == "void" { 0 } else { list.split(',').count() };
        found.entry(name.to_owned()).or_insert(count);
    }
    found
}

#[test]
fn the_table_of_functions_agrees_with_the_headers() {
    let table = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/recorder/calls.txt"))
        .expect("the table");
    let headers = [declared(OPEN_MPI), declared(MPICH)];
    let mut unknown = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let count: usize = words[1].parse().expect("a number");
        let mut names = vec![format!("MPI_{}", words[0])];
        names.extend(words.contains(&"c").then(|| format!("MPI_{}_c", words[0])));
        for name in names {
            let counts: Vec<usize> = headers.iter().filter_map(|header| header.get(&name).copied()).collect();
            assert!(
                counts.iter().all(|&other| other == count),
                "{name}: {count} in the table, {counts:?} in the headers"
            );
            unknown.extend(counts.is_empty().then_some(name));
        }
    }
    // MPICH 4 has all functions of MPI 4.
    assert_eq!(unknown, Vec::<String>::new(), "functions that no library has");
}

#[test]
fn damaged_raw_files_neither_hang_nor_panic() {
    let app = App::c(OPEN_MPI);
    run(&mut app.record(&["--keep-raw", "--clock", "walk"], 2, &["1"])).expect(0, "a recording");
    let whole = app.path("run.raw");
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut made = 0;
    for round in 0..60 {
        let target = app.path(&format!("d{round}"));
        let raw = app.path(&format!("d{round}.raw"));
        crate::common::copy_tree(&whole, &raw);
        let file = raw.join("0-0.raw");
        let mut bytes = std::fs::read(&file).expect("a raw file");
        match round % 3 {
            // In the numbers of the header, in the records, at the end.
            0 => bytes[next(256)] ^= 1 << next(8),
            1 => {
                let place = 4096 + next(bytes.len() - 4096);
                bytes[place] ^= 1 << next(8);
            }
            _ => bytes.truncate(next(bytes.len())),
        }
        std::fs::write(&file, bytes).expect("a raw file");
        let recovered = run(clc_replay("recover").arg(&target));
        assert!(matches!(recovered.status, 0 | 2), "round {round}: {recovered:?}");
        if recovered.status == 0 {
            made += 1;
            events(&target);
        } else {
            assert_eq!(recovered.stderr.lines().count(), 1, "round {round}: {recovered:?}");
        }
    }
    assert!(made > 30, "{made} of 60 were recovered");
}

/// Every message and collective operation of an archive without times, names of communicators and numbers of requests, sorted.
fn communication(archive: &Path) -> Vec<String> {
    let printed = run(Command::new("otf2-print").arg(archive.join("traces.otf2"))).expect(0, "otf2-print").stdout;
    let kinds = [
        "MPI_SEND",
        "MPI_RECV",
        "MPI_ISEND",
        "MPI_IRECV",
        "MPI_REQUEST_CANCELLED",
        "MPI_COLLECTIVE_END",
        "NON_BLOCKING_COLLECTIVE_COMPLETE",
    ];
    let mut found = Vec::new();
    for line in printed.lines() {
        let Some((head, fields)) =
            line.split_once("  Operation:").or(line.split_once("er:")).or(line.split_once("Request:"))
        else {
            continue;
        };
        let mut words = head.split_whitespace();
        let (Some(kind), Some(location)) = (words.next(), words.next()) else { continue };
        if kinds.contains(&kind) {
            let fields = fields
                .split(", ")
                .filter(|field| !field.starts_with("Communicator:") && !field.starts_with("Request:"));
            let fields = if kind == "MPI_REQUEST_CANCELLED" { Vec::new() } else { fields.collect::<Vec<_>>() };
            found.push(format!("{kind} {location} {}", fields.join(", ")));
        }
    }
    found.sort();
    found
}

#[test]
fn another_recorder_has_seen_the_same() {
    for (name, arguments) in [("halo", ["40", "600"]), ("collectives", ["1", "200"])] {
        for library in [OPEN_MPI, MPICH] {
            let app = App::build(library, library.compiler, &format!("{name}.c"), &[]);
            run(&mut app.record(&[], 4, &arguments)).expect(0, "a recording");
            let (ours, theirs) =
                (communication(&app.recorded()), communication(&crate::common::fixture(&format!("tracer-{name}-4"))));
            assert!(theirs.len() > 400, "{}", theirs.len());
            let first = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
            assert!(ours.len() == theirs.len() && first.is_none(), "{} and {}: {first:?}", ours.len(), theirs.len());
        }
    }
}
