//! Files that vanish or change during a run.

use super::*;

pub(super) fn vanishing() -> Vec<Case> {
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
