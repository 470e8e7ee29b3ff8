//! What a program tells of itself: functions, regions, markers and metrics.

use super::{App, MPICH, OPEN_MPI, events};
use crate::common::run;
use std::path::Path;
use std::process::Command;

fn app(options: &[&str]) -> App {
    let header = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/src/marks");
    let mut all = vec![header];
    all.extend(options);
    App::build(OPEN_MPI, OPEN_MPI.compiler, "marks.c", &all)
}

/// The events of a location, one word of kind and one of region each.
fn calls(archive: &Path, location: u64) -> Vec<String> {
    let printed = run(Command::new("otf2-print").arg(archive.join("traces.otf2"))).expect(0, "otf2-print").stdout;
    let mut calls = Vec::new();
    for line in printed.lines() {
        let mut words = line.split_whitespace();
        let (Some(kind), Some(of)) = (words.next(), words.next()) else { continue };
        if of == location.to_string() && matches!(kind, "ENTER" | "LEAVE") {
            let name = line.split('"').nth(1).expect("the name of the region");
            calls.push(format!("{} {name}", kind.to_lowercase()));
        }
    }
    calls
}

/// `calls` without those of MPI, as a path for each region that is entered.
fn paths(calls: &[String]) -> Vec<String> {
    let (mut stack, mut paths): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for call in calls {
        match call.split_once(' ') {
            Some(("enter", name)) => {
                stack.push(name);
                paths.push(stack.join("/"));
            }
            Some((_, name)) => assert_eq!(stack.pop(), Some(name), "regions nest"),
            None => {}
        }
    }
    assert!(stack.is_empty(), "{stack:?}");
    paths
}

#[test]
fn functions_and_regions_make_call_paths() {
    // Position independent or not, static and inlined functions.
    for options in [&["-finstrument-functions", "-O0"][..], &["-finstrument-functions", "-O2", "-no-pie"]] {
        let app = app(options);
        run(&mut app.record(&[], 2, &[])).expect(0, "a recording");
        events(&app.recorded());
        for rank in 0..2 {
            let paths = paths(&calls(&app.recorded(), rank));
            let count = |path: &str| paths.iter().filter(|&found| found == path).count();
            assert_eq!(count("main"), 1, "entered before MPI_Init: {paths:?}");
            assert_eq!(count("main/MPI_Init_thread"), 1);
            assert_eq!(count("main/solve/solve/step 0/relax/square"), 20, "{paths:?}");
            assert_eq!(count("main/solve/solve/step 1/MPI_Barrier"), 2, "{paths:?}");
            assert_eq!(count("main/solve/solve/restart"), 1, "{paths:?}");
        }
        let thread: Vec<String> = paths(&calls(&app.recorded(), 1 << 32));
        assert_eq!(thread.iter().filter(|path| *path == "worker/relax/square").count(), 10, "{thread:?}");
    }
}

#[test]
fn what_was_left_by_a_jump_ends_with_its_caller() {
    let app = app(&["-finstrument-functions", "-O0"]);
    run(&mut app.record(&[], 2, &["jump"])).expect(0, "a recording");
    let counts = events(&app.recorded());
    assert_eq!(counts["ENTER"], counts["LEAVE"]);
    let paths = paths(&calls(&app.recorded(), 0));
    assert!(paths.contains(&"main/leap".to_owned()), "{paths:?}");
    assert!(!paths.iter().any(|path| path.contains("not begun") && !path.ends_with("not begun")), "{paths:?}");
}

#[test]
fn metrics_have_their_values() {
    let app = app(&[]);
    run(&mut app.record(&[], 2, &[])).expect(0, "a recording");
    let counts = events(&app.recorded());
    assert_eq!(counts["METRIC"], 8);
    let anchor = app.recorded().join("traces.otf2");
    let printed = run(Command::new("otf2-print").arg(anchor)).expect(0, "otf2-print").stdout;
    let values: Vec<&str> = printed.lines().filter(|line| line.starts_with("METRIC")).collect();
    assert!(values.iter().any(|line| line.contains("residual") && line.contains("0.25")), "{values:?}");
    assert!(
        !printed.contains("\"before\"") && !printed.contains("\"after\""),
        "only between MPI_Init and MPI_Finalize"
    );
}

#[test]
fn without_the_recorder_the_calls_do_nothing() {
    for library in [OPEN_MPI, MPICH] {
        let header = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/src/marks");
        let app = App::build(library, library.compiler, "marks.c", &[header, "-no-pie"]);
        let launch = app.launch(2);
        let mut command = Command::new(&launch[0]);
        command.args(&launch[1..]).arg(app.path("app"));
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        run(&mut command).expect(0, "the program alone");
    }
}
