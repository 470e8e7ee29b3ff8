//! The machine: full disks, missing permissions, limits, files that vanish, several runs at once.

use crate::case::{Case, SOON, Scene, corrected, one_line, paused, send, special, wait};
use crate::common::{self, Finished, alone, run, tree};
use crate::shim;
use crate::signals;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = outputs();
    cases.extend(space());
    cases.extend(permissions());
    cases.extend(vanishing());
    cases.extend(signals::cases());
    cases.extend(several_runs());
    cases
}

const REFUSED: &str = "status 2, one line";

/// A correction with other arguments than usual, which is refused.
fn arguments(
    name: &str,
    fault: &str,
    words: &'static [&'static str],
    says: &'static [&'static str],
    make: fn(&Scene),
) -> Case {
    special(
        name,
        fault,
        REFUSED,
        move |s| {
            make(s);
            s.options = words.iter().map(|&word| word.to_owned()).collect();
            s.says = says.iter().map(|&text| text.to_owned()).collect();
        },
        |s, ranks| {
            let before = tree(s.directory());
            let mut command = s.program(ranks);
            let finished = run(command.args(&s.options));
            one_line(&finished, ranks, &s.says);
            assert!(before == tree(s.directory()), "something on disk has changed");
        },
    )
}

fn outputs() -> Vec<Case> {
    let nothing = |_: &Scene| {};
    vec![
        arguments(
            "output_is_trace",
            "the output is the trace",
            &["trace", "-o", "trace", "--force"],
            &["trace: the output is the trace itself"],
            nothing,
        ),
        arguments(
            "output_in_trace",
            "the output lies in the trace",
            &["trace", "-o", "trace/traces/x"],
            &["trace/traces/x: the output lies inside the trace"],
            nothing,
        ),
        special(
            "output_contains_trace",
            "the output contains the trace",
            REFUSED,
            |_| {},
            |s, ranks| {
                let mut command = s.program(ranks);
                let finished = run(command.arg("trace").arg("-o").arg(s.directory()).arg("--force"));
                one_line(&finished, ranks, &["the output contains the trace".into()]);
            },
        ),
        arguments(
            "output_by_link",
            "the output is a link to the trace",
            &["trace", "-o", "link", "--force"],
            &["link: the output is the trace itself"],
            |s| {
                std::os::unix::fs::symlink(&s.copy.trace, s.directory().join("link")).unwrap();
            },
        ),
        arguments(
            "output_exists",
            "the output exists",
            &["trace", "-o", "out"],
            &["out: output directory already exists", "--force"],
            |s| {
                std::fs::create_dir(s.copy.output()).unwrap();
                std::fs::write(s.copy.output().join("thesis.tex"), "years of work").unwrap();
            },
        ),
        arguments(
            "output_is_no_trace",
            "the output exists and is no trace, with --force",
            &["trace", "-o", "out", "--force"],
            &[
                "out: refusing to replace the existing output",
                "remove it if nobody needs it, or choose another location",
            ],
            |s| {
                std::fs::create_dir(s.copy.output()).unwrap();
                std::fs::write(s.copy.output().join("thesis.tex"), "years of work").unwrap();
            },
        ),
        arguments(
            "output_is_a_recording",
            "the output exists and is a recording, with --force",
            &["trace", "-o", "out", "--force"],
            &["out: refusing to replace the existing output", "it may be a recording"],
            |s| common::copy_tree(&s.copy.trace, &s.copy.output()),
        ),
        arguments(
            "output_with_others",
            "the output exists, and somebody else's files lie in it, with --force",
            &["trace", "-o", "out", "--force"],
            &["out: refusing to replace the existing output: clc-replay did not write thesis.tex, traces/notes in it"],
            |s| {
                run(&mut s.correction(1)).expect(0, "an earlier output");
                for name in ["thesis.tex", "traces/notes"] {
                    std::fs::write(s.copy.output().join(name), "years of work").unwrap();
                }
            },
        ),
        arguments(
            "output_changed",
            "the output exists and was changed since, with --force",
            &["trace", "-o", "out", "--force"],
            &["out: refusing to replace the existing output: traces/2.evt in it has changed since clc-replay wrote it"],
            |s| {
                run(&mut s.correction(1)).expect(0, "an earlier output");
                std::fs::write(s.copy.output().join("traces/2.evt"), "somebody else's events").unwrap();
            },
        ),
        arguments(
            "report_on_a_file",
            "somebody else's file in the place of the report",
            &["trace", "-o", "out", "--report", "notes.md"],
            &["notes.md: the file exists and is not a report written by clc-replay", "--force"],
            |s| std::fs::write(s.directory().join("notes.md"), "years of work").unwrap(),
        ),
        arguments(
            "output_is_a_file",
            "the output exists and is a file, with --force",
            &["trace", "-o", "out", "--force"],
            &["out: ", "not a directory"],
            |s| {
                std::fs::write(s.copy.output(), "a file").unwrap();
            },
        ),
        arguments(
            "output_nowhere",
            "the directory above the output is missing",
            &["trace", "-o", "not/there/out"],
            &["not/there: ", "cannot write the output there"],
            nothing,
        ),
        arguments(
            "output_below_file",
            "a file in the place of the directory above the output",
            &["trace", "-o", "file/out"],
            &["file", "cannot write the output there"],
            |s| {
                std::fs::write(s.directory().join("file"), "").unwrap();
            },
        ),
        arguments(
            "output_without_name",
            "an output without a name",
            &["trace", "-o", "..", "--force"],
            &["not a valid name for an output directory"],
            nothing,
        ),
        special(
            "output_long_name",
            "an output whose name is as long as names may be, and one that is longer",
            "corrected; status 2, one line",
            |_| {},
            |s, ranks| {
                for (length, status) in [(255, 0), (256, 2)] {
                    let name = "n".repeat(length);
                    let finished = run(s.program(ranks).args(["trace", "-o", &name]));
                    assert_eq!(finished.status, status, "{finished:?}");
                    assert_eq!(s.directory().join(&name).exists(), status == 0);
                    if status == 2 {
                        one_line(&finished, ranks, &[format!("{name}: "), "File name too long".into()]);
                    }
                }
                assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
            },
        ),
        arguments(
            "report_nowhere",
            "the report cannot be written",
            &["check", "trace", "--report", "not/there.json"],
            &["not/there.json", "cannot write"],
            nothing,
        ),
        arguments(
            "corrected_report_nowhere",
            "the directory above the report of a correction is missing",
            &["trace", "-o", "out", "--report", "not/there.json"],
            &["not/there.json: cannot write: No such file or directory (os error 2) (the parent directory has to \
                exist)"],
            nothing,
        ),
        arguments(
            "corrected_page_is_a_directory",
            "a directory in the place of the page of a correction",
            &["trace", "-o", "out", "--html", "there"],
            &["there: cannot write: it is a directory"],
            |s| std::fs::create_dir(s.directory().join("there")).unwrap(),
        ),
        arguments(
            "tables_below_file",
            "a file in the place of a directory above the tables of an analysis",
            &["analyze", "trace", "--csv", "file/tables"],
            &["file/tables: cannot write: Not a directory"],
            |s| std::fs::write(s.directory().join("file"), "").unwrap(),
        ),
        special(
            "output_kept",
            "damage found late, with --force and an earlier output",
            "status 2, one line, the earlier output is still there",
            |s| {
                run(&mut s.correction(1)).expect(0, "an earlier output");
                crate::common::damage::edit(&s.copy.events(3), |bytes| {
                    let end = crate::common::damage::items(bytes, true).last().unwrap().whole.start;
                    bytes.truncate(end);
                });
                s.options(&["--force"]);
                s.says(["3.evt: location 3", "truncated"]);
            },
            unchanged,
        ),
    ]
}

/// The correction is refused, and nothing on disk has changed.
fn unchanged(scene: &Scene, ranks: usize) {
    let before = tree(scene.directory());
    one_line(&run(&mut scene.correction(ranks)), ranks, &scene.says);
    assert!(before == tree(scene.directory()), "something on disk has changed");
}

/// A run that failed has said so once, and has left nothing.
fn refused_cleanly(scene: &Scene, ranks: usize, finished: &Finished, says: &[&str]) {
    let says: Vec<String> = says.iter().map(|&text| text.to_owned()).collect();
    one_line(finished, ranks, &says);
    scene.nobody_is_left();
    wait("something is left", || scene.unfinished().is_empty());
    assert!(!scene.copy.output().exists());
}

fn space() -> Vec<Case> {
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
        special(
            "file_descriptors",
            "a process may have 20 open files (ulimit -n)",
            "corrected",
            |_| {},
            |s, _| {
                run(&mut s.correction_after("ulimit -n 20", 1)).expect(0, "few descriptors");
                s.output_is_right();
            },
        )
        .on(&[1]),
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

/// A directory of files of which one cannot be written.
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

/// Kilobytes of address space of a program that has started.
fn needs(ranks: usize) -> u64 {
    let scene = Scene::new();
    let running = paused(&scene, ranks, "scan", 0, &[]);
    let process = scene.processes()[&0];
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmSize:")).expect("the size");
    let size = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    end(&scene, running);
    size
}

/// Ends a run that stands still.
#[allow(unsafe_code)]
fn end(scene: &Scene, running: common::Running) {
    let processes = scene.processes();
    send(libc::SIGKILL, running.child.id());
    running.finish();
    for process in processes.into_values() {
        // SAFETY: no memory is involved; most have ended already.
        unsafe { libc::kill(process as libc::pid_t, libc::SIGKILL) };
    }
    scene.nobody_is_left();
}

fn permissions() -> Vec<Case> {
    vec![
        special(
            "read_only_directory",
            "the directory above the output is read-only",
            REFUSED,
            |_| {},
            |s, ranks| {
                set_mode(s.directory(), 0o555);
                let finished = run(&mut as_nobody(s, s.correction(ranks)));
                set_mode(s.directory(), 0o755);
                refused_cleanly(s, ranks, &finished, &["cannot write the output there", "Permission denied"]);
                assert!(!finished.stderr.contains(".out.part-"), "a name that nobody has asked for: {finished:?}");
            },
        ),
        special(
            "read_only_directory_of_report",
            "the directory above the report is read-only",
            "status 2, one line, nothing left",
            |s| s.options(&["--report", "closed/r.json"]),
            |s, ranks| {
                let closed = s.directory().join("closed");
                std::fs::create_dir(&closed).unwrap();
                set_mode(&closed, 0o555);
                open_to_all(s);
                let finished = run(&mut as_nobody(s, s.correction(ranks)));
                refused_cleanly(s, ranks, &finished, &["closed/r.json: cannot write: Permission denied (os error 13)"]);
            },
        ),
        special(
            "events_unreadable",
            "no permission to read one event file",
            REFUSED,
            |_| {},
            |s, ranks| {
                open_to_all(s);
                set_mode(&s.copy.events(2), 0o000);
                let finished = run(&mut as_nobody(s, s.correction(ranks)));
                set_mode(&s.copy.events(2), 0o644);
                refused_cleanly(s, ranks, &finished, &["2.evt: location 2: ", "Permission denied"]);
            },
        ),
        special(
            "definitions_unreadable",
            "no permission to read the definitions",
            REFUSED,
            |_| {},
            |s, ranks| {
                open_to_all(s);
                set_mode(&s.copy.definitions(), 0o000);
                let finished = run(&mut as_nobody(s, s.correction(ranks)));
                set_mode(&s.copy.definitions(), 0o644);
                refused_cleanly(s, ranks, &finished, &["traces.def: ", "Permission denied"]);
            },
        ),
        corrected("trace_read_only", "a read-only trace", |s| {
            for path in tree(&s.copy.trace).into_keys().filter(|path| !s.copy.trace.join(path).is_dir()) {
                set_mode(&s.copy.trace.join(path), 0o444);
            }
        }),
    ]
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn open_to_all(scene: &Scene) {
    set_mode(scene.directory(), 0o777);
}

/// The command as a user without rights, if the tests run as root, who may do everything.
#[allow(unsafe_code)]
fn as_nobody(scene: &Scene, mut command: Command) -> Command {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    // SAFETY: no arguments, never fails.
    if unsafe { libc::geteuid() } == 0 {
        // MPI libraries want to write something.
        let home = scene.go_on_file().with_file_name("home");
        std::fs::create_dir_all(&home).unwrap();
        set_mode(home.parent().unwrap(), 0o755);
        set_mode(&home, 0o777);
        command.env("HOME", &home).env("TMPDIR", &home).uid(NOBODY).gid(NOBODY);
    }
    command
}

fn vanishing() -> Vec<Case> {
    vec![
        special(
            "events_removed",
            "an event file is removed between reading and writing",
            "status 2, one line, nothing left",
            |_| {},
            |s, ranks| {
                let running = paused(s, ranks, "backward", 0, &[]);
                let aside = s.directory().join("aside");
                std::fs::rename(s.copy.events(2), &aside).unwrap();
                let finished = go_on(s, running);
                std::fs::rename(&aside, s.copy.events(2)).unwrap();
                refused_cleanly(s, ranks, &finished, &["2.evt: location 2: the file is missing"]);
            },
        ),
        special(
            "events_truncated",
            "an event file is truncated between reading and writing",
            "status 2, one line, nothing left",
            |_| {},
            |s, ranks| {
                let running = paused(s, ranks, "backward", 0, &[]);
                let whole = std::fs::read(s.copy.events(2)).unwrap();
                std::fs::write(s.copy.events(2), &whole[..whole.len() / 2]).unwrap();
                let finished = go_on(s, running);
                std::fs::write(s.copy.events(2), &whole).unwrap();
                refused_cleanly(s, ranks, &finished, &["2.evt: location 2"]);
            },
        ),
        changed("events_changed", "an event file is written to, with the same length", |s| s.copy.events(2), true),
        changed(
            "events_replaced",
            "another event file of the same length is put in its place",
            |s| s.copy.events(2),
            false,
        ),
        changed("events_grow", "an event file becomes longer", |s| s.copy.events(3), true),
        changed("definitions_changed", "the definitions are written to", |s| s.copy.definitions(), true),
        changed("anchor_changed", "the anchor is written to", |s| s.copy.trace.join("traces.otf2"), true),
        special(
            "output_gets_others",
            "somebody puts a file into the earlier output while it is about to be replaced",
            "status 2, one line, the earlier output is still there",
            |s| {
                run(&mut s.correction(1)).expect(0, "an earlier output");
                s.options(&["--force"]);
            },
            |s, ranks| {
                let running = paused(s, ranks, "publish", 0, &[]);
                std::fs::write(s.copy.output().join("notes"), "years of work").unwrap();
                let there = tree(&s.copy.output());
                let finished = go_on(s, running);
                one_line(&finished, ranks, &["out: ".into(), "clc-replay did not write notes in it".into()]);
                assert!(there == tree(&s.copy.output()), "the earlier output has changed");
                assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
            },
        ),
        mapped("definitions_truncated", "the definitions are truncated while they are read", "traces.def", 0),
        mapped(
            "local_definitions_truncated",
            "local definitions are truncated while they are written anew",
            "traces/2.def",
            1,
        ),
        special(
            "output_removed",
            "the unfinished output is removed by somebody else",
            "status 2, one line, nothing left",
            |_| {},
            |s, ranks| {
                let running = paused(s, ranks, "backward", 0, &[]);
                for path in s.unfinished() {
                    std::fs::remove_dir_all(path).unwrap();
                }
                let finished = go_on(s, running);
                refused_cleanly(s, ranks, &finished, &[".evt: ", "No such file or directory"]);
            },
        ),
        special(
            "events_slow",
            "one rank reads from a slow disk",
            "corrected; the others say whom they wait for",
            |s| {
                std::fs::remove_dir_all(&s.copy.trace).unwrap();
                let mut simulate = alone();
                simulate.arg("simulate").arg(&s.copy.trace).args([
                    "--ranks",
                    "3",
                    "--events",
                    "400k",
                    "--pattern",
                    "ring",
                    "-q",
                ]);
                run(&mut simulate).expect(0, "a large trace");
            },
            |s, ranks| {
                let mut command = s.correction(ranks);
                command.env("LD_PRELOAD", shim::library()).env("SHIM_READ", "/2.evt").env("SHIM_DELAY", "120");
                let finished = run(command.env("CLC_REPLAY_WATCH", "1")).expect(0, "a slow disk");
                assert!(finished.stderr.contains("for slower ranks: rank 2 (process "), "{finished:?}");
                assert!(finished.stderr.contains(", in scan, "), "{finished:?}");
                s.output_is_right();
            },
        )
        .on(&[3]),
    ]
}

/// A file of the trace is changed between reading and publishing. The trace has perfect clocks, so that all event files are copied as they are.
fn changed(name: &'static str, fault: &str, file: fn(&Scene) -> PathBuf, in_place: bool) -> Case {
    let fault = format!("{fault} between reading and publishing");
    let make = move |s: &mut Scene| {
        s.word = name.into();
        std::fs::remove_dir_all(&s.copy.trace).unwrap();
        let mut simulate = alone();
        simulate
            .arg("simulate")
            .arg(&s.copy.trace)
            .args("--ranks 4 --events 500 --clock perfect --measurements 0 --no-truth -q".split(' '));
        run(&mut simulate).expect(0, "a trace without violations");
        let path = file(s);
        s.says = vec![path.strip_prefix(s.directory()).unwrap().display().to_string(), in_place.to_string()];
    };
    special(name, &fault, "status 2, one line, nothing left", make, |s, ranks| {
        let path = s.directory().join(&s.says[0]);
        let whole = std::fs::read(&path).unwrap();
        let mut other = whole.clone();
        // In the middle of a file it is a time, or a text.
        other[whole.len() / 2] ^= 1;
        if s.word == "events_grow" {
            other.push(0);
        }
        let running = paused(s, ranks, "write", 0, &[]);
        let aside = s.directory().join("aside");
        // At once in both ways: other ranks still read, and a file that is missing or empty for a moment is another fault.
        if s.says[1] == "true" {
            std::fs::copy(&path, &aside).unwrap();
            let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, &other).unwrap();
        } else {
            std::fs::hard_link(&path, &aside).unwrap();
            let new = s.directory().join("new");
            std::fs::write(&new, other).unwrap();
            std::fs::rename(new, &path).unwrap();
        }
        let finished = go_on(s, running);
        std::fs::rename(&aside, &path).unwrap();
        // While it was read, or while another rank copied it, which need not wait for rank 0.
        refused_cleanly(s, ranks, &finished, &[&s.says[0], "the file changed while "]);
    })
}

/// Lets a run that stands still go on, and waits for its end.
fn go_on(scene: &Scene, running: common::Running) -> Finished {
    std::fs::write(scene.go_on_file(), "").unwrap();
    running.finish()
}

/// A definition file is emptied after it has been mapped into memory, the time after `before` others.
fn mapped(name: &str, fault: &str, file: &'static str, before: usize) -> Case {
    let fault = format!("{fault} (a mapped file: SIGBUS)");
    let make = move |s: &mut Scene| s.word = format!("{file} {before}");
    special(name, &fault, "status 2, one line, nothing left", make, |s, ranks| {
        let (file, before) = s.word.split_once(' ').unwrap();
        let path = s.copy.trace.join(file);
        let whole = std::fs::read(&path).unwrap();
        let mut command = s.correction(ranks);
        command.env("LD_PRELOAD", shim::library()).env("SHIM_CUT", file).env("SHIM_AFTER", before);
        let finished = run(&mut command);
        std::fs::write(path, whole).unwrap();
        let says = format!("{file}: the file became shorter or unreadable");
        refused_cleanly(s, ranks, &finished, &[&says]);
    })
}

fn several_runs() -> Vec<Case> {
    vec![
        special(
            "two_runs",
            "two runs on the same output at once",
            "one succeeds, the other: status 2, one line",
            |_| {},
            |s, ranks| {
                let first = paused(s, ranks, "publish", 0, &[]);
                // It sees the first one's unfinished output.
                let second = run(&mut s.correction(ranks)).expect(0, "the faster run");
                assert!(second.stdout.contains("appears to be writing the same output"), "{second:?}");
                let there = tree(&s.copy.output());
                let finished = go_on(s, first);
                one_line(&finished, ranks, &["out: the output appeared during this run".into()]);
                assert!(there == tree(&s.copy.output()), "the output of the other run was touched");
                assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
                s.output_is_right();
            },
        ),
        special(
            "two_runs_force",
            "two runs on the same output at once, with --force",
            "both succeed",
            |s| s.options(&["--force"]),
            |s, ranks| {
                let first = paused(s, ranks, "publish", 0, &[]);
                run(&mut s.correction(ranks)).expect(0, "the faster run");
                go_on(s, first).expect(0, "the slower run");
                assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
                assert!(s.copy.output().join("traces.otf2").exists());
            },
        ),
        special(
            "stale_output",
            "unfinished outputs of a killed run and of another computer",
            "corrected; the one is removed, the other named",
            |_| {},
            |s, ranks| {
                let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
                let usable = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
                let host: String = host.trim().chars().map(usable).take(40).collect();
                // No process has a number that large.
                for name in [format!(".out.part-{host}-4294967295-abc"), ".out.part-_elsewhere-1-abc".into()] {
                    std::fs::create_dir(s.directory().join(&name)).unwrap();
                    std::fs::write(s.directory().join(&name).join("file"), "").unwrap();
                }
                let finished = run(&mut s.correction(ranks)).expect(0, "a run after others");
                let said = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
                for text in [
                    "removed the unfinished output of a run that was killed",
                    "of a run on _elsewhere; if that has ended",
                ] {
                    assert!(said.contains(text), "{said}");
                }
                assert_eq!(s.unfinished(), [s.directory().join(".out.part-_elsewhere-1-abc")]);
                s.output_is_right();
            },
        ),
        special(
            "killed_replacing",
            "SIGKILL while an earlier output is being replaced",
            "the earlier output is still there",
            |s| {
                run(&mut s.correction(1)).expect(0, "an earlier output");
                s.options(&["--force"]);
            },
            |s, ranks| {
                let there = tree(&s.copy.output());
                let running = paused(s, ranks, "publish", 0, &[]);
                send(libc::SIGKILL, s.processes()[&0]);
                assert_ne!(running.finish().status, 0);
                s.nobody_is_left();
                assert!(there == tree(&s.copy.output()), "the earlier output has changed");
                run(&mut s.correction(1)).expect(0, "the next run");
                assert_eq!(s.unfinished(), Vec::<PathBuf>::new());
            },
        ),
        special(
            "launcher_foreign",
            "started by the launcher of another MPI library",
            REFUSED,
            |_| {},
            |s, _| {
                let mut command = s.correction(1);
                command.env("CLC_REPLAY_MPI", "always").env("MV2_COMM_WORLD_SIZE", "3");
                one_line(
                    &run(&mut command),
                    1,
                    &["the launcher started 3 processes, but MPI sees only this one".into()],
                );
            },
        )
        .on(&[1]),
    ]
}
