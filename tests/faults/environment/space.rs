//! Full disks and limits.

use super::*;
use crate::case::paused_in;

pub(super) fn space() -> Vec<Case> {
    vec![
        special(
            "disk_full",
            "the disk is full (a small tmpfs, or write(2) that says so)",
            "status 2, one line, nothing left",
            |_| {},
            |s, ranks| {
                let small = s.directory().join("small");
                std::fs::create_dir(&small).unwrap();
                let mounted =
                    Command::new("mount").args(["-t", "tmpfs", "-o", "size=40k", "tmpfs"]).arg(&small).output();
                let mounted = mounted.is_ok_and(|output| output.status.success());
                let mut command = s.program(ranks);
                command.args(["trace", "-o", "small/out"]);
                if !mounted {
                    command.env("LD_PRELOAD", shim::library()).env("SHIM_WRITE", ".evt");
                    command.env("SHIM_ERRNO", libc::ENOSPC.to_string());
                }
                let finished = run(&mut command);
                let left = tree(&small);
                if mounted {
                    run(Command::new("umount").arg(&small)).expect(0, "umount");
                }
                refused_cleanly(s, ranks, &finished, &["No space left on device"]);
                assert!(left.is_empty(), "something is left: {:?}", left.keys());
                std::fs::remove_dir(small).unwrap();
            },
        ),
        special(
            "disk_full_definitions",
            "the disk is full when the definitions are written",
            "status 2, one line, nothing left",
            |_| {},
            |s, ranks| {
                let mut command = s.correction(ranks);
                command.env("LD_PRELOAD", shim::library()).env("SHIM_WRITE", "/traces.def");
                command.env("SHIM_ERRNO", libc::ENOSPC.to_string());
                refused_cleanly(s, ranks, &run(&mut command), &["traces.def: ", "No space left on device"]);
            },
        ),
        special(
            "disk_full_report",
            "the disk is full when the report is written, after the corrected trace",
            "status 2, one line that says that the trace was written; no report",
            |_| {},
            |s, ranks| {
                let mut command = s.correction(ranks);
                command.args(["--report", "late.json"]);
                command.env("LD_PRELOAD", shim::library()).env("SHIM_WRITE", "late.json");
                command.env("SHIM_ERRNO", libc::ENOSPC.to_string());
                let says = [
                    "late.json: cannot write: No space left on device (os error 28); the trace itself was written to ",
                ];
                one_line(&run(&mut command), ranks, &says.map(str::to_owned));
                assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
                assert!(!s.directory().join("late.json").exists());
                s.output_is_right();
            },
        ),
        tables(
            "disk_full_tables",
            "the disk is full when a table of an analysis is written",
            &["analyze", "trace", "--csv", "new/tables"],
            "waits.csv",
        ),
        tables(
            "disk_full_tables_again",
            "the same, into a directory that is there",
            &["analyze", "trace", "--force", "--csv", "there"],
            "waits.csv",
        ),
        tables(
            "disk_full_export",
            "the disk is full when an export is written",
            &["export", "trace", "-o", "new.json"],
            "new.json",
        ),
        tables(
            "disk_full_manual",
            "the disk is full when a page of the manual is written",
            &["man", "new"],
            "clc-replay-info.1",
        ),
        special(
            "file_limit",
            "files may have 8 KiB at most (ulimit -f)",
            "status 2, one line, nothing left",
            |_| {},
            |s, ranks| {
                let finished = run(&mut s.correction_after("ulimit -f 8", ranks));
                refused_cleanly(s, ranks, &finished, &[".evt: location ", "File too large"]);
            },
        ),
        enough("small_stack", "the stack is limited to 64 KiB (ulimit -s)", "ulimit -s 64"),
        enough("file_descriptors", "a process may have 20 open files (ulimit -n)", "ulimit -n 20"),
        special(
            "file_descriptors_few",
            "a process may have so few open files that it cannot even begin, or cannot go on",
            "corrected, or status 2, one line, nothing left",
            |_| {},
            |s, ranks| {
                let limits = if ranks == 1 { 4..=16 } else { 14..=26 };
                let mut refused = 0;
                for limit in limits.step_by(ranks) {
                    let finished = run(&mut s.correction_after(&format!("ulimit -n {limit}"), ranks));
                    s.nobody_is_left();
                    assert_eq!(s.unfinished(), Vec::<PathBuf>::new(), "{limit}: {finished:?}");
                    if finished.status == 0 {
                        std::fs::remove_dir_all(s.copy.output()).unwrap();
                        continue;
                    }
                    refused += 1;
                    assert!(!s.copy.output().exists(), "{limit}: {finished:?}");
                    // MPI says more, and on each rank, if it is MPI that cannot begin.
                    if ranks == 1 {
                        one_line(&finished, 1, &["Too many open files".into()]);
                    }
                }
                assert!(refused > 0, "no limit was too small");
            },
        ),
        special(
            "memory_at_start",
            "the address space is limited (ulimit -v) to what a start takes, and a little more or less",
            "corrected, or status 2, one line, nothing left",
            |s| s.options(&["--force"]),
            |s, _| {
                let (most, mut refused) = (needs(1), 0);
                for step in 0..50 {
                    let finished = run(&mut s.correction_after(&format!("ulimit -v {}", most - 50 * step), 1));
                    assert_eq!(s.unfinished(), Vec::<PathBuf>::new(), "{step}: {finished:?}");
                    if finished.status == 0 {
                        continue;
                    }
                    // Not even the libraries can be loaded, or the language does not come to the program.
                    match finished.status {
                        127 => break,
                        139 if finished.stderr.is_empty() => continue,
                        134 if finished.stderr.contains("initialization or cleanup bug") => continue,
                        _ => {}
                    }
                    refused += 1;
                    one_line(&finished, 1, &[]);
                    assert!(
                        ["out of memory", "Cannot allocate memory"].iter().any(|why| finished.stderr.contains(why)),
                        "{step}: {finished:?}"
                    );
                }
                assert!(refused > 0, "no limit was too small");
            },
        )
        .on(&[1]),
        special(
            "memory",
            "the address space is limited (ulimit -v), the trace is large",
            "status 2, one line, nothing left",
            |s| {
                std::fs::remove_dir_all(&s.copy.trace).unwrap();
                let mut simulate = alone();
                simulate.arg("simulate").arg(&s.copy.trace).args([
                    "--ranks",
                    "4",
                    "--events",
                    "600k",
                    "--pattern",
                    "ring",
                    "-q",
                ]);
                run(&mut simulate).expect(0, "a large trace");
            },
            |s, ranks| {
                // Some of what a start takes is only reserved: down from there in steps that are smaller than what the trace takes.
                let start = needs(ranks) + 8_000;
                let limits = (0..).map_while(|step| start.checked_sub(step * 10_000));
                let mut finished = None;
                for limit in limits {
                    let last = run(&mut s.correction_after(&format!("ulimit -v {limit}"), ranks));
                    if last.status != 0 {
                        finished = Some(last);
                        break;
                    }
                    std::fs::remove_dir_all(s.copy.output()).unwrap();
                }
                let finished = finished.expect("a limit that is too small");
                assert_ne!(finished.status, 0, "{finished:?}");
                let errors = common_error(&finished, ranks);
                assert!(
                    errors.iter().all(|line| line.contains("out of memory") || line.contains("Cannot allocate memory")),
                    "{finished:?}"
                );
                s.nobody_is_left();
                if ranks == 1 {
                    assert_eq!(finished.status, 2, "{finished:?}");
                    assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
                }
                assert!(!s.copy.output().exists());
            },
        ),
        special(
            "disk_error",
            "reading an event file fails (EIO)",
            "status 2, one line, all end within 5 s",
            |_| {},
            |s, ranks| {
                let library = shim::library().to_str().expect("a text");
                let error = libc::EIO.to_string();
                let faults = [("LD_PRELOAD", library), ("SHIM_READ", "/2.evt"), ("SHIM_ERRNO", &error)];
                // Rank 0 comes last: from then on everybody can know.
                let running = paused(s, ranks, "scan", 0, &faults);
                let start = Instant::now();
                let finished = go_on(s, running);
                assert!(start.elapsed() < SOON, "{:?}: {finished:?}", start.elapsed());
                refused_cleanly(s, ranks, &finished, &["2.evt: location 2", "Input/output error"]);
            },
        ),
        special(
            "errors_unwritable",
            "standard error cannot be written (a log on a full disk)",
            "corrected",
            |s| s.options(&["--force"]),
            |s, ranks| {
                // What is logged, a complaint about the setting, a pause, and ranks that wait for the one that pauses.
                for log in ["info", "%%="] {
                    let mut command = s.correction_after("exec 2>/dev/full", ranks);
                    command.env("RUST_LOG", log).env("CLC_REPLAY_WATCH", "0.3");
                    run(command.env("CLC_REPLAY_PAUSE", format!("scan@{}:1", ranks - 1))).expect(0, log);
                    assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
                    s.output_is_right();
                }
            },
        ),
        special(
            "output_pipe_closed",
            "standard output is closed",
            "corrected",
            |_| {},
            |s, _| {
                run(&mut s.correction_after("exec >&-", 1)).expect(0, "nobody listens");
                s.output_is_right();
            },
        )
        .on(&[1]),
    ]
}

/// A limit that leaves one process enough.
fn enough(name: &str, fault: &str, limit: &'static str) -> Case {
    let make = move |s: &mut Scene| limit.clone_into(&mut s.word);
    special(name, fault, "corrected", make, |s, _| {
        run(&mut s.correction_after(&s.word, 1)).expect(0, &s.word);
        s.output_is_right();
    })
    .on(&[1])
}

/// A file, maybe one of a directory, that cannot be written.
fn tables(name: &str, fault: &str, words: &'static [&'static str], file: &'static str) -> Case {
    let make = move |s: &mut Scene| {
        s.options = words.iter().map(|&word| word.to_owned()).collect();
        s.word = file.to_owned();
        std::fs::create_dir(s.directory().join("there")).unwrap();
        std::fs::write(s.directory().join("there/execution.csv"), "of an earlier run").unwrap();
    };
    special(name, fault, "status 2, one line, nothing has changed", make, |s, ranks| {
        let before = tree(s.directory());
        let mut command = s.program(ranks);
        command.args(&s.options).env("LD_PRELOAD", shim::library()).env("SHIM_WRITE", &s.word);
        let finished = run(command.env("SHIM_ERRNO", libc::ENOSPC.to_string()));
        let says = format!("{}: cannot write: No space left on device (os error 28)", s.word);
        one_line(&finished, ranks, &[says]);
        assert!(before == tree(s.directory()), "something has changed");
    })
}

/// Error lines of a run that may fail on several ranks at once, at most one each.
fn common_error(finished: &Finished, ranks: usize) -> Vec<&str> {
    let errors = crate::case::error_lines(finished);
    assert!(!errors.is_empty() && errors.len() <= ranks, "{finished:?}");
    errors
}

/// Kilobytes of address space of a program that has started where there is enough, but not as much as it asks for: without a limit, each thread reserves some for itself.
fn needs(ranks: usize) -> u64 {
    let scene = Scene::new();
    let running = paused_in(&scene, scene.correction_after("ulimit -v 16777216", ranks), "scan", 0, &[]);
    let process = scene.processes()[&0];
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmSize:")).expect("the size");
    let size = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    end(&scene, running);
    size
}
