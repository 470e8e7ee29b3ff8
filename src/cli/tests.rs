//! Tests of the command line as a whole.

use super::*;
use clc_archive::Format;
use clc_clock::Method;
use clc_trace::Ticks;
use controlled_logical_clock::{Parameters, Slope};
use std::path::{Path, PathBuf};

fn parse(line: &str) -> Result<Invocation, Stop> {
    Invocation::parse(std::iter::once("clc-replay").chain(line.split_whitespace()))
}

fn correct(line: &str) -> CorrectOptions {
    match parse(line) {
        Ok(Invocation::Correct(options)) => options,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> String {
    let stop = parse(line).expect_err(line);
    assert_eq!(stop.status(), 2, "{line}");
    let text = stop.to_string();
    assert!(text.starts_with("clc-replay: error: ") && text.lines().count() == 1, "{text}");
    text
}

#[test]
fn clap_finds_no_contradiction() {
    command().debug_assert();
}

#[test]
fn a_trace_alone_is_corrected_with_the_defaults() {
    let options = correct("tracedir");
    assert_eq!(options.trace, Path::new("tracedir"));
    assert_eq!(options.output_directory(), Ok(PathBuf::from("tracedir-clc")));
    assert_eq!(options.parameters(1_000_000_000), Ok(Parameters::default()));
    assert_eq!(options.synchronisation.presync.unwrap_or_default(), Method::Auto);
    assert!(
        !options.common.force && !options.dry_run && !options.synchronisation.alltoallv && !options.common.log.quiet
    );
}

#[test]
fn subcommands_and_traces_coexist() {
    assert!(
        matches!(parse("check tracedir"), Ok(Invocation::Check(options)) if options.trace == Path::new("tracedir"))
    );
    assert!(matches!(parse("info --all tracedir"), Ok(Invocation::Info(options)) if options.all));
    assert!(matches!(parse("check check"), Ok(Invocation::Check(options)) if options.trace == Path::new("check")));
    assert_eq!(correct("./check").trace, Path::new("./check"));
    assert_eq!(correct("--quiet ./info").trace, Path::new("./info"));
    assert_eq!(correct("-- check").trace, Path::new("check"));
}

#[test]
fn a_command_to_record_keeps_its_own_options() {
    let Ok(Invocation::Record(options)) = parse("record -o run --clock walk -- mpirun -n 4 --quiet ./app -o x") else {
        panic!()
    };
    assert_eq!((options.output.as_path(), options.clock.as_deref()), (Path::new("run"), Some("walk")));
    assert_eq!(options.command, ["mpirun", "-n", "4", "--quiet", "./app", "-o", "x"]);
    assert!(!options.written.log.quiet && !options.clock_per_node);
    // The two dashes can be left out: the first word ends the options.
    let Ok(Invocation::Record(options)) = parse("record -o run ./app -o x") else { panic!() };
    assert_eq!(options.command, ["./app", "-o", "x"]);
    assert!(refusal("record -o run").contains("COMMAND"));
    assert!(refusal("record ./app").contains("--output"));
    assert!(refusal("record -o run --clock bogus ./app").contains("unknown clock model"));
    assert!(refusal("record -o run --clock-per-node ./app").contains("--clock"));
    assert!(matches!(parse("recover run"), Ok(Invocation::Recover(options)) if options.output == Path::new("run")));
}

#[test]
fn every_option_arrives() {
    let options = correct(
        "-o out --force --latency same-node=300ns,other-node=1.2us --gamma 0.999 --max-passes 3 --max-error 2 \
         --slope 1e-3 --presync none --alltoallv --log debug --quiet --report r.json tracedir",
    );
    assert_eq!(options.output_directory(), Ok(PathBuf::from("out")));
    assert!(options.common.force && options.synchronisation.alltoallv && options.common.log.quiet);
    assert_eq!(options.synchronisation.presync, Some(Method::None));
    assert_eq!(options.common.report.as_deref(), Some(Path::new("r.json")));
    assert_eq!(options.common.log.filter.as_deref(), Some("debug"));
    let parameters = options.parameters(1_000_000_000).expect("fits");
    assert_eq!(parameters.latency.same_node, Ticks(300));
    assert_eq!(parameters.latency.other_node, Ticks(1200));
    assert_eq!(parameters.decay.gamma(), 0.999);
    assert_eq!(parameters.max_passes, 3);
    assert_eq!(parameters.max_error.value(), 2.0);
    assert_eq!(Some(parameters.slope), Slope::from_ratio(1, 1000));
    assert!(matches!(parse("check --latency 1us --presync none --alltoallv -q t"), Ok(Invocation::Check(_))));
}

#[test]
fn the_name_of_the_target_tells_its_format() {
    let format = |line: &str| match parse(line) {
        Ok(Invocation::Convert(options)) => options.format(),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(format("convert a b.clct"), Ok(Format::Native));
    assert_eq!(format("convert a b"), Ok(Format::Otf2));
    assert_eq!(format("convert a b --to native -q --force"), Ok(Format::Native));
    assert_eq!(format("convert --to otf2 a b.clct"), Ok(Format::Otf2));
    assert!(format("convert a b.otf2").is_err());
    assert_eq!(correct("./convert").trace, Path::new("./convert"));
}

#[test]
fn usage_errors_are_one_line_and_status_2() {
    assert!(refusal("").contains("TRACE"));
    assert!(refusal("check").contains("TRACE"));
    assert!(refusal("a b").contains("unexpected argument 'b': pass a single TRACE"));
    assert!(refusal("--quiet check t").contains("a subcommand has to come first"));
    assert!(refusal("a check b").contains("a subcommand has to come first"));
    assert!(refusal("--latency 5 t").contains("write for example 5us"));
    assert!(refusal("--gamma 0.1 t").contains("0.5..=1"));
    assert!(refusal("--gamma 2 t").contains("0.5..=1"));
    assert!(refusal("--slope 0 t").contains("1e-6..=1"));
    assert!(refusal("--max-passes 0 t").contains("1..=100"));
    assert!(refusal("--max-error 0.5 t").contains("no error is below 1"));
    assert!(refusal("--presync cubic t").contains("linear"));
    assert!(refusal("--log loud t").contains("not a level"));
    assert!(refusal("--dry-run -o out t").contains("--output"));
    assert!(refusal("--forse t").contains("'--forse' found; tip: a similar argument exists: '--force' (see"));
    assert!(refusal("check --output out t").contains("--output"));
    // The help that has the option, and no advice to take an option for a file.
    assert!(refusal("--foo t").ends_with("'--foo' found (see `clc-replay --help`)"), "{}", refusal("--foo t"));
    assert!(refusal("analyze t --foo").ends_with("'--foo' found (see `clc-replay analyze --help`)"));
    assert!(refusal("export t --slope 0.1").ends_with("(see `clc-replay export --help`)"));
    assert!(refusal("simulate d --events 5x").contains("'5x' is not a count"));
    for count in ["18446744073709551615", "99999999999999999999", "2000000G"] {
        assert!(
            refusal(&format!("simulate d --events {count}")).contains("is too large (at most 1000000G)"),
            "{count}"
        );
    }
}

#[test]
fn a_slip_in_a_subcommand_is_seen() {
    for (line, meant) in [
        ("chek t", "check"),
        ("chek", "check"),
        ("anaylze t", "analyze"),
        ("evalute t --truth t", "evaluate"),
        ("infos", "info"),
    ] {
        assert!(
            refusal(line).contains(&format!("did you mean the subcommand '{meant}'?")),
            "{line}: {}",
            refusal(line)
        );
    }
    for line in ["./chek", "chef", "run1", "in", "x", "check t", "traces"] {
        assert!(parse(line).is_ok(), "{line}");
    }
    for number in ["0", "many", "1025"] {
        assert!(refusal(&format!("--threads {number} t")).contains("from 1 to 1024"), "{number}");
    }
}

#[test]
fn help_teaches_and_ends_well() {
    for line in ["--help", "-h", "--version", "check --help", "info --help", "convert --help"] {
        assert_eq!(parse(line).expect_err(line).status(), 0, "{line}");
    }
    let help = parse("--help").expect_err("help").to_string();
    assert!(help.starts_with("Corrects the timestamps"));
    for word in ["Exit status", "docs/report.md", "mpirun", "0.99999", "check", "[default: 5]", "--latency"] {
        assert!(help.contains(word), "{word}\n{help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}
