//! Polls in vain: the first ones in a row are recorded, the others counted.

use super::{App, Library, MPICH, OPEN_MPI, clc_replay};
use crate::common::run;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// So many in a row are recorded.
const KEPT: u64 = 8;
const COUNT: u64 = 1000;
/// By which `polls.c` polls, one after the other.
const FUNCTIONS: [&str; 8] = [
    "MPI_Test",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Iprobe",
    "MPI_Improbe",
    "MPI_Request_get_status",
    "MPI_Win_test",
];

/// What the OTF2 library's own tool prints of an archive.
struct Printed {
    /// How often each region was entered.
    entered: BTreeMap<String, u64>,
    /// Values of parameters, in their order.
    parameters: Vec<(String, u64)>,
    /// Records of tests that did not complete a request.
    tests: u64,
}

fn printed(archive: &Path) -> Printed {
    let said = run(Command::new("otf2-print").arg(archive.join("traces.otf2"))).expect(0, "otf2-print");
    assert_eq!(said.stderr, "", "otf2-print");
    let mut printed = Printed { entered: BTreeMap::new(), parameters: Vec::new(), tests: 0 };
    for line in said.stdout.lines() {
        let quoted = || line.split('"').nth(1).expect("a name").to_owned();
        match line.split_whitespace().next() {
            Some("ENTER") => *printed.entered.entry(quoted()).or_default() += 1,
            Some("PARAMETER_UINT64") => {
                let value = line.rsplit(' ').next().and_then(|word| word.parse().ok());
                printed.parameters.push((quoted(), value.expect("a value")));
            }
            Some("MPI_REQUEST_TEST") => printed.tests += 1,
            _ => {}
        }
    }
    printed
}

impl Printed {
    fn entered(&self, region: &str) -> u64 {
        self.entered.get(region).copied().unwrap_or(0)
    }

    /// Of all regions together.
    fn joined(&self, function: &str) -> u64 {
        let name = format!("joined calls of {function}");
        self.parameters.iter().filter(|(parameter, _)| *parameter == name).map(|(_, count)| count).sum()
    }
}

/// All calls are in the recording or counted, but for the test that process 0 repeats until it is done.
#[track_caller]
fn assert_all_counted(recorded: &Printed) {
    for function in FUNCTIONS {
        // How often in turn with others, and how many of these are kept.
        let (in_turns, first) = match function {
            "MPI_Test" | "MPI_Iprobe" => (COUNT, KEPT / 2),
            "MPI_Request_get_status" => (COUNT, KEPT.div_ceil(3)),
            _ => (0, 0),
        };
        let kept = KEPT + first;
        if function != "MPI_Testall" {
            assert_eq!(recorded.entered(function), kept, "{function}");
            assert_eq!(recorded.joined(function), COUNT + in_turns - kept, "{function}");
        } else {
            assert!(recorded.entered(function) >= kept && recorded.joined(function) >= COUNT - kept, "{function}");
        }
    }
    // Those of null requests only among others.
    assert_eq!((recorded.entered("MPI_Wait"), recorded.joined("MPI_Wait")), (COUNT + 3, COUNT - 3));
    assert_eq!((recorded.entered("MPI_Waitsome"), recorded.joined("MPI_Waitsome")), (2, COUNT - 2));
    assert!(recorded.entered("MPI polls in vain") >= 10);
}

fn build(library: Library) -> App {
    App::build(library, library.compiler, "polls.c", &["-rdynamic"])
}

fn joined_by(library: Library) {
    let app = build(library);
    let count = COUNT.to_string();
    let said = run(&mut app.record(&["--keep-raw"], 2, &[&count])).expect(0, "a recording").stderr;
    assert!(said.contains(" that found nothing were joined into "), "{said}");
    let recorded = printed(&app.recorded());
    assert_all_counted(&recorded);
    run(clc_replay("check").arg(app.recorded())).expect(0, "no violation");
    run(clc_replay("-o").arg(app.path("corrected")).arg(app.recorded())).expect(0, "a correction");
    assert_all_counted(&printed(&app.path("corrected")));
    // As a native trace, all but the numbers is there.
    std::fs::rename(app.path("run.raw"), app.path("run.clct.raw")).expect("raw files");
    run(clc_replay("recover").arg(app.path("run.clct"))).expect(0, "a native trace");
    run(clc_replay("check").arg(app.path("run.clct"))).expect(0, "no violation");
    run(clc_replay("convert").arg(app.path("run.clct")).arg(app.path("converted"))).expect(0, "an archive again");
    let converted = printed(&app.path("converted"));
    assert_eq!((converted.entered("MPI polls in vain") >= 10, converted.parameters.len()), (true, 0));
}

#[test]
fn polls_in_vain_are_joined_on_open_mpi() {
    joined_by(OPEN_MPI);
}

#[test]
fn polls_in_vain_are_joined_on_mpich() {
    joined_by(MPICH);
}

#[test]
fn all_polls_are_recorded_if_wanted() {
    let app = build(MPICH);
    let count = COUNT.to_string();
    let mut command = app.record(&["--polls", "all"], 2, &[&count]);
    let said = run(command.env("UCX_TLS", "sm,self")).expect(0, "a recording").stderr;
    assert!(!said.contains("joined"), "{said}");
    let archive = std::fs::read(app.recorded().join("traces.otf2")).expect("an archive");
    let archive = String::from_utf8_lossy(&archive);
    assert!(archive.contains("CLC_REPLAY::ENVIRONMENT") && archive.contains("UCX_TLS=sm,self"), "{archive}");
    let recorded = printed(&app.recorded());
    assert_eq!((recorded.entered("MPI polls in vain"), recorded.parameters.len()), (0, 0));
    assert_eq!((recorded.entered("MPI_Test"), recorded.entered("MPI_Win_test")), (2 * COUNT, COUNT));
    // Test, Testall, Testany, Testsome, Request_get_status, Test, Request_get_status; and those until it is done.
    assert!(recorded.tests >= COUNT * (1 + 2 + 2 + 2 + 1 + 1 + 1), "{}", recorded.tests);
}

#[test]
fn joined_polls_take_no_room() {
    let app = build(MPICH);
    // 1,800,000 calls of some seven bytes.
    let said = run(&mut app.record(&["--keep-raw", "--ring", "--memory", "64K"], 2, &["200000"]));
    said.expect(0, "a recording");
    let recorded = printed(&app.recorded());
    assert_eq!(recorded.joined("MPI_Win_test"), 200_000 - KEPT);
    assert_eq!(recorded.joined("MPI_Test"), 400_000 - KEPT - KEPT / 2);
}

#[test]
fn polls_of_a_killed_process_are_counted() {
    let app = build(OPEN_MPI);
    let said = run(&mut app.record(&[], 2, &[&COUNT.to_string(), "kill"])).stderr;
    assert!(said.contains("rank 0 ended outside of MPI, or in a poll, without MPI_Finalize"), "{said}");
    let recorded = printed(&app.recorded());
    assert_eq!(recorded.joined("MPI_Iprobe"), 2 * COUNT - KEPT - KEPT / 2);
    assert_eq!(recorded.joined("MPI_Win_test"), COUNT - KEPT);
}

#[test]
fn polls_from_fortran_are_joined() {
    for library in [OPEN_MPI, MPICH] {
        for options in [&["-DF08", "-fallow-argument-mismatch"][..], &["-fallow-argument-mismatch"]] {
            let app = App::build(library, library.fortran, "polls.F90", options);
            run(&mut app.record(&[], 2, &[])).expect(0, "a recording");
            let recorded = printed(&app.recorded());
            for function in ["MPI_Test", "MPI_Testany", "MPI_Iprobe"] {
                assert_eq!(recorded.entered(function) + recorded.joined(function), 100, "{function} {options:?}");
                assert!(recorded.entered(function) <= KEPT.div_ceil(3), "{function} {options:?}");
            }
        }
    }
}
