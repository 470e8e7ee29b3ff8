//! What is odd about a trace is said by every command, whichever rank reads the file that shows it.

use crate::common::damage::{Copy, edit};
use crate::common::{Finished, alone, run, with_ranks};
use serde_json::Value;
use std::process::Command;

/// A trace whose last process has event files with wrong counters in the headers of their chunks.
fn odd() -> Copy {
    let copy = Copy::of("recorded-halo-4");
    // A chunk header is tag, byte order, and the numbers of its first and last event.
    edit(&copy.events(3), |bytes| bytes[10] ^= 1);
    copy
}

/// The program alone, and as three ranks.
fn alone_and_as_three() -> [Command; 2] {
    [alone(), with_ranks(3)]
}

#[test]
fn evaluate_has_the_warnings_of_all_ranks() {
    let copy = odd();
    let directory = copy.directory.path();
    let warnings = alone_and_as_three().map(|mut command| {
        let file = directory.join("evaluate.json");
        command.arg("evaluate").arg(&copy.trace).arg("--truth").arg(&copy.trace);
        run(command.args(["--force", "-q", "--report"]).arg(&file)).expect(0, "evaluate");
        let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        report["warnings"].clone()
    });
    assert!(warnings[0].to_string().contains("chunk"), "{}", warnings[0]);
    assert_eq!(warnings[0], warnings[1]);
}

#[test]
fn export_has_the_warnings_of_all_ranks() {
    let copy = odd();
    for format in ["perfetto", "violations-csv"] {
        let said = alone_and_as_three().map(|mut command| {
            command.arg("export").arg(&copy.trace).args(["--format", format, "--force", "-o"]).arg(copy.output());
            let Finished { stdout, .. } = run(&mut command).expect(0, "export");
            stdout
        });
        assert!(said[0].contains("Warning:") && said[0].contains("chunk"), "{}", said[0]);
        assert_eq!(said[0], said[1]);
    }
}

/// Corrected times are global; offsets would be applied a second time.
#[test]
fn an_output_is_not_said_to_need_offsets() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let simulate = "--ranks 4 --events 500 --clock offset=1ms --measurements 0 --ranks-per-node 1 --quiet";
    run(alone().arg("simulate").arg(at("wrong")).args(simulate.split(' '))).expect(0, "simulate");
    run(alone().arg(at("wrong")).arg("-o").arg(at("right"))).expect(0, "correct");
    run(alone().arg("convert").arg(at("right")).arg(at("right.clct"))).expect(0, "convert");
    run(alone().arg("perturb").arg(at("right")).arg(at("bent")).args(["--clock", "offset=1us"])).expect(0, "perturb");
    for (trace, needed) in [("wrong", true), ("right", false), ("right.clct", false), ("bent", false)] {
        let said = run(alone().arg("check").arg(at(trace)));
        assert!(said.status == 0 || trace == "wrong" || trace == "bent", "{}", said.stdout);
        assert_eq!(said.stdout.contains("4 of 4 locations have no clock offset"), needed, "{trace}: {}", said.stdout);
    }
}
