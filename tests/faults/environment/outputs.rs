//! Outputs in the wrong place.

use super::*;

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

pub(super) fn outputs() -> Vec<Case> {
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
                "remove it if it is no longer needed, or choose another location",
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
