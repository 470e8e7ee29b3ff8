//! What is written, and what is refused.

use super::hand_made::{RECEIVE, SEND, USER, hand_made_of, message, region};
use super::{analysis, clc, number, report, simulated};
use crate::common::{PYTHON, alone, fixture, run};
use clc_trace::Event;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Python's own readers of JSON and CSV, as strict as they can be.
const READ: &str = r#"
import csv, glob, json, sys
def refuse(name): raise ValueError(name)
json.load(open(sys.argv[1]), parse_constant=refuse)
for name in sorted(glob.glob(sys.argv[2] + "/*.csv")):
    header, *rows = list(csv.reader(open(name, newline=""), strict=True))
    assert len(set(header)) == len(header), name
    for row in rows:
        assert len(row) == len(header), (name, row)
        for column, cell in zip(header, row):
            if cell and any(part in column for part in ("seconds", "count", "share", "messages", "bytes")):
                assert float(cell) >= 0, (name, column, cell)
    print(name.split("/")[-1], len(rows))
    if len(sys.argv) > 3 and name.endswith("critical_path_by_region.csv"):
        print(*(repr(row[header.index("region")]) for row in rows))
"#;

#[track_caller]
fn read(report: &Path, tables: &Path, more: &[&str]) -> String {
    let mut command = Command::new(PYTHON);
    run(command.arg("-c").arg(READ).arg(report).arg(tables).args(more)).expect(0, "Python's readers").stdout
}

#[test]
fn tables_and_page_and_the_stored_report() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let trace = simulated(directory.path(), "trace", "--pattern mix --ranks 4 --events 1k --clock ntp --seed 1");
    let at = |name: &str| directory.path().join(name);
    let printed = run(alone()
        .arg("analyze")
        .arg(&trace)
        .args(["--top", "2", "--windows", "20"])
        .arg("--csv")
        .arg(at("tables"))
        .arg("--report")
        .arg(at("r.json"))
        .arg("--html")
        .arg(at("a.html")))
    .expect(0, "analyze");
    assert!(printed.stdout.contains("ANALYSED") && printed.stdout.contains("artefact"), "{}", printed.stdout);
    let found = read(&at("r.json"), &at("tables"), &[]);
    let rows = |name: &str| -> usize {
        let line = found.lines().find_map(|line| line.strip_prefix(&format!("{name}.csv ")));
        line.unwrap_or_else(|| panic!("no {name}.csv: {found}")).parse().expect("a number of rows")
    };
    assert_eq!([rows("waits"), rows("execution"), rows("parallelism"), rows("processes")], [11, 2, 2 * 20, 2 * 4]);
    for name in ["waits_by_call_path", "waits_by_process", "waits_by_pair", "traffic_by_pair", "traffic_over_time"] {
        assert!(rows(name) > 0, "{name}");
    }
    for name in ["by_call_path", "by_region", "by_process", "stretches"] {
        assert!(rows(&format!("critical_path_{name}")) > 1, "{name}");
    }
    // The tables are the report.
    let report: Value = serde_json::from_slice(&std::fs::read(at("r.json")).expect("a report")).expect("JSON");
    let table = std::fs::read_to_string(at("tables").join("waits.csv")).expect("a table");
    let kinds = report["analysis"]["waits"]["kinds"].as_array().expect("kinds");
    for (line, kind) in table.lines().skip(1).zip(kinds) {
        let cells: Vec<f64> = line.split(',').skip(1).map(|cell| cell.parse().unwrap_or(f64::NAN)).collect();
        let fields = ["before_seconds", "after_seconds", "artefact_seconds", "hidden_seconds"];
        let expected: Vec<f64> = fields.iter().map(|field| number(&kind["waiting"][field])).collect();
        assert_eq!(cells[..4], expected, "{line}");
    }

    let again = run(alone().arg("report").arg(at("r.json")).arg("--html").arg(at("b.html"))).expect(0, "report");
    assert!(again.stdout.contains("ANALYSED"), "{}", again.stdout);
    let bytes = |name: &str| std::fs::read(at(name)).expect(name);
    assert!(bytes("a.html") == bytes("b.html"), "another page from the stored report");
}

#[test]
fn names_of_regions_may_be_anything() {
    let names = ["f<int, \"a b\">(\n)", "MPI_Send", "MPI_Recv, \"the second\""];
    let sender = [region(USER, 0, 30, &[]), region(SEND, 30, 31, &[(30, Event::MpiSend(message(1, 0)))])].concat();
    let receiver = region(RECEIVE, 10, 40, &[(35, Event::MpiRecv(message(0, 0)))]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let trace = hand_made_of(directory.path(), &names, &[sender, receiver]);
    let (tables, json) = (directory.path().join("tables"), directory.path().join("r.json"));
    let mut command = alone();
    command.arg("analyze").arg(&trace).arg("--csv").arg(&tables).arg("--report").arg(&json);
    run(&mut command).expect(0, "odd names");
    let found = read(&json, &tables, &["regions"]);
    assert!(found.contains(r#"'f<int, "a b">(\n)'"#) && found.contains(r#"'MPI_Recv, "the second"'"#), "{found}");
    // The tables may be there: they are written anew.
    run(&mut command).expect(0, "a second time");
    let piped = run(alone().arg("analyze").arg(&trace).args(["--report", "-"])).expect(0, "standard output");
    let piped: Value = serde_json::from_str(&piped.stdout).expect("JSON and nothing else");
    assert!(piped["analysis"] == analysis(&trace, &[]));
}

/// An error is one line on standard error and nothing on standard output.
#[track_caller]
fn refused(command: &mut Command, text: &str) {
    let refused = run(command).expect(2, text);
    assert_eq!((refused.stderr.lines().count(), refused.stdout.as_str()), (1, ""), "{refused:?}");
    assert!(refused.stderr.contains(text), "{refused:?}");
}

#[test]
fn a_truncated_file_is_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let trace = simulated(directory.path(), "trace", "--pattern mix --ranks 3 --events 1k --seed 1");
    let events = trace.join("traces").join("1.evt");
    let bytes = std::fs::read(&events).expect("an event file");
    std::fs::write(&events, &bytes[..bytes.len() / 2]).expect("written");
    let tables = directory.path().join("tables");
    refused(alone().arg("analyze").arg(&trace).arg("--csv").arg(&tables), "1.evt");
    assert!(!tables.exists());
}

#[test]
fn options_that_make_no_sense_are_one_line() {
    let good = fixture("tracer-halo-4");
    for (option, value, text) in [
        ("--windows", "0", "--windows"),
        ("--windows", "99999", "--windows"),
        ("--windows", "ten", "--windows"),
        ("--top", "0", "--top"),
        ("--top", "-1", "-1"),
        ("--presync", "wrong", "--presync"),
        ("--nonsense", "1", "--nonsense"),
    ] {
        refused(alone().arg("analyze").arg(&good).args([option, value]), text);
    }
    refused(alone().arg("analyze"), "TRACE");
    refused(alone().args(["analyze", "no-such-trace"]), "no-such-trace");
    // A directory and a file that cannot be made.
    let file = good.join("traces.otf2");
    refused(alone().arg("analyze").arg(&good).arg("--csv").arg(file.join("no")), "traces.otf2");
    refused(alone().arg("analyze").arg(&good).arg("--report").arg(file.join("no")), "traces.otf2");
}

#[test]
fn the_example_of_the_documentation_is_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/analysis.md");
    let text = std::fs::read_to_string(path).expect("docs/analysis.md");
    let (_, rest) = text.split_once("<!-- example: begin -->\n").expect("an example");
    let (example, _) = rest.split_once("<!-- example: end -->").expect("its end");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut printed = String::new();
    let (mut commands, mut compared) = (0, 0);
    for line in example.lines().filter_map(|line| line.strip_prefix("    ")) {
        match line.strip_prefix("$ clc-replay ") {
            Some(command) => {
                printed = clc(command, directory.path(), 0).stdout;
                commands += 1;
            }
            // Times of the run, which are others every time, are left out there.
            None => {
                let found = printed.lines().position(|other| other == line);
                let found = found.unwrap_or_else(|| panic!("'{line}' is not printed (any more, or there):\n{printed}"));
                // In this order.
                printed = printed.lines().skip(found + 1).collect::<Vec<_>>().join("\n");
                compared += 1;
            }
        }
    }
    assert!(commands >= 2 && compared > 20, "{commands} {compared}");
}

/// EZTrace defines the regions of each process anew.
#[test]
fn call_paths_of_one_name_are_one_row() {
    let analysis = &report(alone(), &fixture("eztrace-halo-4"), &[])["analysis"];
    for rows in [&analysis["waits"]["by_call_path"], &analysis["critical_path"]["after"]["by_call_path"]] {
        let rows = rows.as_array().expect("rows");
        let names: BTreeSet<String> = rows.iter().map(|row| format!("{} {}", row["kind"], row["call_path"])).collect();
        assert!(rows.len() > 2 && names.len() == rows.len(), "{rows:?}");
    }
}
