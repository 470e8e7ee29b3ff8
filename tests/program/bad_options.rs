//! Options that make no sense, and jobs beside the correction on damaged traces: exit status 2, one line that says what, and nothing on disk
//! has changed. Everything else that can be wrong is in `tests/faults`.

use crate::common::damage::{Copy, edit};
use crate::common::{Finished, alone, copy_tree, program, run, tree, with_ranks, with_recorder};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

const HALO: &str = "tracer-halo-4";

#[track_caller]
fn refused_by<S: AsRef<OsStr>>(
    mut command: Command,
    copy: &Copy,
    arguments: impl IntoIterator<Item = S>,
    says: &[&str],
) {
    let launched = command.get_program() != program().as_os_str();
    let before = tree(copy.directory.path());
    let finished = run(command.args(arguments).current_dir(copy.directory.path()));
    // Neither an output, nor a `.out.part-*`, nor another byte in the trace.
    assert!(before == tree(copy.directory.path()), "something on disk has changed: {finished:?}");
    refusal(finished, launched, says);
}

/// Checks status and message. A launcher adds its own lines on a failure, the program alone must not.
#[track_caller]
fn refusal(finished: Finished, launched: bool, says: &[&str]) {
    let Finished { stderr, .. } = finished.expect(2, "not refused");
    let errors: Vec<&str> = stderr.lines().filter(|line| !launched || line.starts_with("clc-replay: error:")).collect();
    assert_eq!(errors.len(), 1, "not one line: {stderr}");
    assert!(errors[0].starts_with("clc-replay: error: "), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for text in says {
        assert!(errors[0].contains(text), "'{text}' is missing in: {}", errors[0]);
    }
}

#[test]
fn options_that_make_no_sense() {
    let copy = Copy::of(HALO);
    let cases: [(&[&str], &str); 23] = [
        (&["trace", "--latency", "5"], "--latency"),
        (&["trace", "--latency", "-1us"], "--latency"),
        (&["trace", "--latency", "1fortnight"], "--latency"),
        (&["trace", "--latency", "same-node=1us,same-node=2us"], "--latency"),
        (&["trace", "--latency", "1000000000000000000000s"], "latency"),
        (&["trace", "--gamma", "2"], "--gamma"),
        (&["trace", "--gamma", "0.1"], "--gamma"),
        (&["trace", "--gamma", "nan"], "--gamma"),
        (&["trace", "--slope", "0"], "--slope"),
        (&["trace", "--slope", "2"], "--slope"),
        (&["trace", "--max-passes", "0"], "--max-passes"),
        (&["trace", "--max-error", "0.5"], "--max-error"),
        (&["trace", "--presync", "cubic"], "--presync"),
        (&["trace", "--log", "loud,=,"], "--log"),
        (&["trace", "--unknown"], "--unknown"),
        (&["check", "trace", "--gamma", "0.9"], "--gamma"),
        (&["info", "trace", "--latency", "1us"], "--latency"),
        (&["trace", "other"], "other"),
        (&["trace", "--dry-run", "-o", "out"], "--output"),
        (&["export", "trace", "-o", "e", "--gamma", "0.9"], "--gamma has no effect without --corrected"),
        (&["export", "trace", "-o", "e", "--max-passes", "5"], "--max-passes has no effect without --corrected"),
        (&["analyze", "trace", "--as-recorded", "--slope", "0.1"], "--slope has no effect with --as-recorded"),
        (&[], "TRACE"),
    ];
    for (arguments, says) in cases {
        refused_by(alone(), &copy, arguments, &[says]);
    }
    for arguments in [&["trace", "--gamma", "2"][..], &["check", "trace", "--gamma", "0.9"]] {
        refused_by(with_ranks(3), &copy, arguments, &["--gamma"]);
    }
    let mut command = alone();
    command.env("CLC_REPLAY_MPI", "perhaps");
    refused_by(command, &copy, ["trace"], &["CLC_REPLAY_MPI is 'perhaps'"]);
    for (name, value) in [
        ("CLC_REPLAY_WATCH", "abc"),
        ("CLC_REPLAY_WATCH", "-1"),
        ("CLC_REPLAY_PAUSE", "foo"),
        ("CLC_REPLAY_PAUSE", "scan@x"),
    ] {
        for mut command in [alone(), with_ranks(3)] {
            command.env(name, value);
            refused_by(command, &copy, ["trace"], &[&format!("{name} is '{value}'")]);
        }
    }
    std::fs::write(copy.directory.path().join("file"), "mine").unwrap();
    refused_by(alone(), &copy, ["trace", "-o", "file"], &["file: the output exists and is not a directory (remove it"]);
    refused_by(alone(), &copy, ["chek", "trace"], &["there is no trace 'chek'; did you mean the subcommand 'check'?"]);
}

/// What a command reads is in the place of what it writes, or two outputs are in the same.
#[test]
fn outputs_that_hit_something() {
    let copy = Copy::of(HALO);
    let there = copy.directory.path();
    let make = |words: &[&str]| run(alone().args(words).current_dir(there));
    make(&["simulate", "s", "--pattern", "ring", "--ranks", "2", "--events", "200", "-q"])
        .expect(0, "a trace with its truth");
    make(&["convert", "trace", "n.clct", "-q"]).expect(0, "a native trace");
    make(&["check", "trace", "-q", "--report", "rep.json"]).expect(1, "a report");
    std::os::unix::fs::symlink("trace/traces.def", there.join("link")).unwrap();
    std::os::unix::fs::symlink("trace/new", there.join("dangling")).unwrap();
    // An event file that lies elsewhere belongs to the trace as well.
    std::fs::rename(copy.events(1), there.join("elsewhere.evt")).unwrap();
    std::os::unix::fs::symlink(there.join("elsewhere.evt"), copy.events(1)).unwrap();
    let input = "would write into the trace that is read";
    let cases: [(&str, &str); 35] = [
        ("check trace --report trace/traces.otf2", input),
        ("check trace --html trace/traces.def", input),
        ("check trace/traces.otf2 --html trace/traces.def", input),
        ("check trace --report elsewhere.evt", input),
        ("check trace --report link", "link: --report would write into the trace"),
        ("check trace --report dangling", "dangling: --report would write into the trace"),
        ("trace -o out --report trace/traces/0.evt", "trace/traces/0.evt: --report would write into the trace"),
        ("trace --dry-run --html trace/new.html", input),
        ("info trace --report trace/traces.def", input),
        ("info n.clct/definitions.clcd --report n.clct/definitions.clcd", input),
        ("convert n.clct new --report n.clct/new.json", input),
        ("perturb trace new --report trace/new.json", input),
        ("export trace --force -o trace/traces/0.evt", "--output would write into the trace"),
        ("analyze trace --csv trace", "--csv would write into the trace"),
        ("analyze trace --csv trace/tables", "--csv would write into the trace"),
        ("analyze trace --csv s", "s: --csv would write into a trace"),
        ("analyze trace --report trace/traces.def", input),
        ("report rep.json --html rep.json", "rep.json: --html would write into the file that is read"),
        ("evaluate s --truth s --plot s/truth/0.truth", "s/truth/0.truth: --plot would write into the trace"),
        ("evaluate trace --truth s/truth --plot s/traces.def", input),
        ("evaluate s --truth s --report s/traces.def", input),
        ("trace --dry-run --report rr --html rr", "--html are the same"),
        ("trace --dry-run --report rr --html ./s/../rr", "--html are the same"),
        ("trace -o out --html out", "--output are the same"),
        ("trace --report trace-clc/x", "--report would write into the directory of --output"),
        ("convert trace m.clct --report m.clct/x", "--report would write into the directory of TARGET"),
        ("simulate trace/sub", "trace/sub: the output lies inside another trace"),
        ("simulate trace/traces/sub", "trace/traces/sub: the output lies inside another trace"),
        ("simulate n.clct/events/sub", "n.clct/events/sub: the output lies inside another trace"),
        ("man trace", "trace: DIR would write into a trace"),
        ("check trace --report - --html -", "--report and --html both go to standard output"),
        (
            "trace -o -",
            "--output is a directory and cannot be written to standard output (use ./- for a directory of that \
            name)",
        ),
        ("simulate -", "DIR is a directory and cannot be written to standard output"),
        ("analyze trace --csv -", "--csv is a directory and cannot be written to standard output"),
        ("man -", "DIR is a directory and cannot be written to standard output"),
    ];
    for (words, says) in cases {
        refused_by(alone(), &copy, words.split(' '), &[says]);
    }
    for (words, says) in [cases[0], cases[21]] {
        refused_by(with_ranks(3), &copy, words.split(' '), &[says]);
    }
    // What is no file is nobody's, and beside the trace is place enough.
    for words in [
        "check trace -q --report /dev/null --html /dev/null",
        "check trace -q --report beside.json --html trace.html",
        "check trace -q --report beside.json --html trace.html",
        "check trace --report /dev/stdout",
        "check trace --report -",
    ] {
        make(&words.split(' ').collect::<Vec<_>>()).expect(1, words);
    }
}

/// A file that is there is overwritten if it is an earlier output of the same kind, otherwise with --force only, and a file of a trace never.
#[test]
fn files_that_are_there() {
    let copy = Copy::of(HALO);
    let there = copy.directory.path();
    let make = |words: &str| run(alone().args(words.split(' ')).current_dir(there));
    std::fs::write(there.join("notes.md"), "years of work").unwrap();
    std::fs::create_dir(there.join("tables")).unwrap();
    std::fs::write(there.join("tables/waits.csv"), "mine").unwrap();
    std::fs::write(there.join("tables/clc-replay-check.1"), "mine").unwrap();
    make("simulate s --pattern ring --ranks 2 --events 200 -q").expect(0, "another trace");
    let foreign = "the file exists and is not a report written by clc-replay (overwrite it with --force";
    for (words, says) in [
        ("check trace --report notes.md", foreign),
        ("trace --dry-run --report notes.md", foreign),
        ("info trace --report notes.md", foreign),
        ("analyze trace --report notes.md", foreign),
        ("evaluate s --truth s --report notes.md", foreign),
        ("simulate new --report notes.md", foreign),
        ("perturb trace new --anyway --report notes.md", foreign),
        ("convert trace new.clct --report notes.md", foreign),
        ("check trace --html notes.md", "is not a page written by"),
        ("evaluate s --truth s --plot notes.md", "is not a plot written by clc-replay"),
        ("export trace -o notes.md", "is not an export of this format written by clc-replay"),
        ("analyze trace --csv tables", "tables/waits.csv: the file exists and is not such a table written"),
        ("man tables", "tables/clc-replay-check.1: the file exists and is not a man page written"),
        ("check trace --report s/traces.otf2", "s/traces.otf2: files that belong to a trace are never overwritten"),
        (
            "check trace --force --report s/traces.otf2",
            "s/traces.otf2: files that belong to a trace are never \
            overwritten",
        ),
        (
            "check trace --force --html s/traces/0.evt",
            "s/traces/0.evt: files that belong to a trace are never \
            overwritten",
        ),
        (
            "export trace --force -o s/truth/0.truth",
            "s/truth/0.truth: files that belong to a trace are never \
            overwritten",
        ),
    ] {
        refused_by(alone(), &copy, words.split(' '), &[says]);
    }
    refused_by(with_ranks(3), &copy, ["check", "trace", "--report", "notes.md"], &[foreign]);
    // An earlier one of the same kind.
    for (words, status) in [
        ("check trace -q --report r.json --html r.html", 1),
        ("trace --dry-run -q --report r.json --html r.html", 0),
        ("info trace -q --report r.json", 0),
        ("export trace -q -o e.json", 0),
        ("export trace -q --format violations-csv -o e.csv", 0),
        ("evaluate s --truth s -q --plot p.svg --report e.r", 0),
        ("analyze trace -q --csv t", 0),
        ("man -q m", 0),
    ] {
        for time in ["new", "again"] {
            make(words).expect(status, &format!("{words}, {time}"));
        }
    }
    // One kind is not another.
    for words in
        ["export trace -o r.json", "check trace --html r.json", "check trace --report e.json", "export trace -o e.csv"]
    {
        refused_by(alone(), &copy, words.split(' '), &["the file exists"]);
    }
    // Asked for.
    for words in ["check trace -q --force --report notes.md", "check trace -q --force --html notes.md"] {
        make(words).expect(1, words);
    }
    assert!(std::fs::read_to_string(there.join("notes.md")).unwrap().starts_with("<!DOCTYPE html>"));
    make("analyze trace -q --force --csv tables").expect(0, "tables by force");
    // What was written before the page could not be.
    let full = make("analyze trace -q --csv late --html /dev/full").expect(2, "no room for the page");
    assert!(full.stderr.ends_with("the tables were written to late\n"), "{}", full.stderr);
    assert!(there.join("late/waits.csv").exists());
    // A file that somebody has just made for it.
    std::fs::write(there.join("empty"), "").unwrap();
    make("check trace -q --report empty").expect(1, "an empty file");
    // Standard output instead of the text.
    for (words, begins) in [("check trace --html -", "<!DOCTYPE html>"), ("evaluate s --truth s --plot -", "<svg")] {
        let finished = make(words);
        assert!(
            finished.stdout.starts_with(begins) && !finished.stdout.contains("Trace "),
            "{words}: {}",
            finished.stdout
        );
        assert!(!there.join("-").exists());
    }
}

/// --force replaces what clc-replay wrote, and nothing else.
#[test]
fn directories_that_are_there() {
    let copy = Copy::of(HALO);
    let there = copy.directory.path();
    let make = |words: &str| run(alone().args(words.split(' ')).current_dir(there));
    let commands = [
        "trace -q --force -o out",
        "simulate out -q --force --pattern ring --ranks 2 --events 200",
        "perturb trace out -q --force --anyway",
        "convert n.clct out -q --force",
        "convert trace out -q --force --to native",
    ];
    make("convert trace n.clct -q").expect(0, "a native trace");
    let out = there.join("out");
    let recording = "out: refusing to replace the existing output: it has no file list (.clc-replay)";
    for words in commands {
        // A recording, and a directory with one file of a trace and others.
        copy_tree(&copy.trace, &out);
        refused_by(alone(), &copy, words.split(' '), &[recording]);
        std::fs::remove_dir_all(&out).unwrap();
        std::fs::create_dir(&out).unwrap();
        std::fs::copy(copy.trace.join("traces.otf2"), out.join("traces.otf2")).unwrap();
        std::fs::write(out.join("thesis.tex"), "years of work").unwrap();
        refused_by(alone(), &copy, words.split(' '), &[recording]);
        std::fs::remove_dir_all(&out).unwrap();
        // An output with something else in it, or changed.
        make(words).expect(0, words);
        std::fs::write(out.join("thesis.tex"), "years of work").unwrap();
        refused_by(alone(), &copy, words.split(' '), &["out: ", "clc-replay did not write thesis.tex in it"]);
        std::fs::remove_file(out.join("thesis.tex")).unwrap();
        let is_other = |path: &Path, contents: &Option<Vec<u8>>| contents.is_some() && path != Path::new(".clc-replay");
        let file = tree(&out).into_iter().find(|(path, contents)| is_other(path, contents)).unwrap().0;
        let contents = std::fs::read(out.join(&file)).unwrap();
        std::fs::write(out.join(&file), "changed").unwrap();
        refused_by(alone(), &copy, words.split(' '), &["in it has changed since clc-replay wrote it"]);
        std::fs::write(out.join(&file), &contents).unwrap();
        std::fs::remove_dir_all(&out).unwrap();
        // Again and again.
        for _ in 0..2 {
            make(words).expect(0, words);
        }
        // The list of an input is not taken along.
        assert!(!tree(&out).contains_key(Path::new("out")));
        std::fs::remove_dir_all(&out).unwrap();
    }
    // By another command, and from an output.
    for words in [commands[1], commands[0], "convert out again.clct -q", "out -q -o twice", "twice -q -o out --force"] {
        make(words).expect(0, words);
    }
    for name in ["out", "twice", "again.clct"] {
        let list = std::fs::read_to_string(there.join(name).join(".clc-replay")).unwrap();
        assert!(list.contains(" traces") || list.contains(" definitions.clcd"), "{name}: {list}");
        assert!(!list.contains(".clc-replay"), "{name}: {list}");
    }
}

/// What cannot be written to standard output is an error; what nobody wants to read is none.
#[test]
fn standard_output_that_is_full() {
    let copy = Copy::of(HALO);
    let there = copy.directory.path();
    run(alone().args(["check", "trace", "-q", "--report", "rep.json"]).current_dir(there)).expect(1, "a report");
    for words in [
        "export trace -o - -q",
        "check trace --report -",
        "check trace",
        "info trace",
        "trace --dry-run",
        "report rep.json",
        "completions bash",
        "--help",
        "check --help",
        "--version",
    ] {
        let program = alone().get_program().to_owned();
        let shell = |end: &str| {
            let mut command = Command::new("bash");
            command.args(["-o", "pipefail", "-c", &format!("\"$0\" {words} {end}")]).arg(&program).current_dir(there);
            run(command.env("CLC_REPLAY_MPI", "never").env_remove("RUST_LOG"))
        };
        refusal(shell(">/dev/full"), false, &["cannot write to standard output: No space left on device"]);
        assert_ne!(shell("| true").status, 2, "{words}");
    }
}

/// Pipes into which nobody writes, and files without an end, in the place of what lies beside a trace.
#[test]
fn pipes_and_files_without_an_end() {
    let copy = Copy::of(HALO);
    let there = copy.directory.path();
    let make = |line: &str| run(alone().args(line.split(' ')).current_dir(there));
    make("check trace -q --report rep.json").expect(1, "a report");
    make("simulate s --pattern ring --ranks 2 --events 200 -q").expect(0, "a trace with its truth");
    make("convert s s.clct -q").expect(0, "a native trace with its truth");
    for path in ["s/truth/0.truth", "s.clct/truth/0.truth", "pipe"] {
        let _ = std::fs::remove_file(there.join(path));
        run(Command::new("mkfifo").arg(path).current_dir(there)).expect(0, "mkfifo");
    }
    for (line, says) in [
        ("evaluate s --truth s", "s/truth/0.truth: not a regular file"),
        ("convert s new.clct", "s/truth/0.truth: "),
        ("convert s.clct new --to otf2", "s.clct/truth/0.truth: "),
        ("report pipe", "pipe: not a regular file"),
        ("report /dev/zero", "/dev/zero: not a regular file"),
    ] {
        refused_by(alone(), &copy, line.split(' '), &[says, "not a regular file"]);
    }
    refused_by(with_ranks(3), &copy, ["evaluate", "s", "--truth", "s"], &["not a regular file"]);
    // What a shell hands over is read to its end, if it has one.
    let shell = |line: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", line]).arg(alone().get_program()).current_dir(there);
        run(command.env("CLC_REPLAY_MPI", "never").env_remove("RUST_LOG"))
    };
    for line in [
        "cat rep.json | \"$0\" report /dev/stdin",
        "\"$0\" report <(cat rep.json)",
        "\"$0\" report /dev/stdin <rep.json",
    ] {
        shell(line).expect(1, line);
    }
    refusal(
        shell("\"$0\" report /dev/stdin </dev/zero"),
        false,
        &["/dev/stdin: the file is too large for a stored \
        report"],
    );
}

/// The commands of the README can be typed in one after the other.
#[test]
fn the_commands_of_the_readme_in_their_order() {
    let copy = Copy::of(HALO);
    let there = copy.directory.path();
    std::fs::rename(&copy.trace, there.join("tracedir")).unwrap();
    // The application that is recorded.
    with_recorder();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apps/recorded.c");
    let mut compiler = Command::new("mpicc.openmpi");
    run(compiler.args(["-w", "-lpthread", "-o"]).arg(there.join("app")).arg(source).arg("-lm"))
        .expect(0, "an application");
    let (_, use_of_it) = include_str!("../../README.md").split_once("\n## Use\n").unwrap();
    let mut ran = 0;
    for line in use_of_it.lines().filter_map(|line| line.strip_prefix("    ")) {
        let line = line.split('#').next().unwrap_or_default().trim();
        // A shorter trace than one would have, and a smaller one than one would make.
        let line =
            line.replace("1.2s:1.3s", ":1ms").replace("100k", "1k").replace("-- mpirun -n", "-- mpirun.openmpi -n");
        for words in line.split(" && ") {
            let launched = words.strip_prefix("mpirun -n 64 ");
            let mut command = if launched.is_some() { with_ranks(3) } else { alone() };
            let arguments = launched.unwrap_or(words).strip_prefix("clc-replay ").expect(words);
            let launcher =
                ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"];
            command.envs(launcher.map(|name| (name, "1")));
            let finished = run(command.args(arguments.split_whitespace()).current_dir(there));
            // The trace has violations, which check says.
            assert_eq!(finished.status, i32::from(words.starts_with("clc-replay check")), "{words}: {finished:?}");
            ran += 1;
        }
    }
    assert!(ran >= 15, "{ran}");
}

#[test]
fn check_and_info_refuse_damage_too() {
    let copy = Copy::of(HALO);
    edit(&copy.events(1), |bytes| bytes.truncate(bytes.len() / 2));
    for job in ["check", "info"] {
        for command in [alone(), with_ranks(3)] {
            refused_by(command, &copy, [job, "trace"], &["1.evt: location 1, event ", "truncated"]);
        }
    }
}
