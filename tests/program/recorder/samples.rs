//! How busy the nodes were, and clocks that are measured while the program waits.

use super::{App, OPEN_MPI, events};
use crate::common::run;
use std::path::Path;
use std::process::Command;

/// Time and values of each sample, as the OTF2 library's own tool prints them.
fn samples(archive: &Path) -> Vec<(i64, [f64; 2])> {
    let printed = run(Command::new("otf2-print").arg(archive.join("traces.otf2"))).expect(0, "otf2-print");
    let lines = printed.stdout.lines().filter(|line| line.starts_with("METRIC "));
    let sample = |line: &str| {
        let time = line.split_whitespace().nth(2).and_then(|word| word.parse().ok()).expect("a time");
        let value = |name: &str| {
            let (_, rest) = line.split_once(&format!("(\"{name}\" ")).expect("the metric");
            let value = rest.split([';', ')']).nth(2).and_then(|word| word.trim().parse().ok());
            value.expect("a value")
        };
        (time, [value("CPU utilisation"), value("Link utilisation")])
    };
    lines.map(sample).collect()
}

#[test]
fn nodes_are_sampled_at_their_times() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "unbalanced.c", &[]);
    // With a clock of its own for each process: there is still one sample for the node.
    let options = ["--sample", "50ms", "--clock", "drift=20ppm,offset=5ms"];
    let recorded = run(&mut app.record(&options, 2, &["40"])).expect(0, "a recording");
    assert!(recorded.stderr.contains("2 processes on 1 node, 3 locations"), "{}", recorded.stderr);
    assert!(!app.path("run.raw").exists());
    let counts = events(&app.recorded());
    let samples = samples(&app.recorded());
    assert_eq!(counts["METRIC"], samples.len() as u64);
    // 1.6 s are 32 periods; where others keep the machine busy, some come late.
    assert!((8..=40).contains(&samples.len()), "{samples:?}");
    for (time, values) in &samples {
        // Rank 0 has the reference clock, so all are multiples of the period apart, but for the bound of a tenth.
        let off = (time - samples[0].0 + 25_000_000).rem_euclid(50_000_000) - 25_000_000;
        assert!(off.abs() <= 6_000_000, "{off} ns off: {samples:?}");
        assert!(values.iter().all(|value| (0.0..=1.0).contains(value)), "{values:?}");
    }
    // One of the processes always computes.
    let busy = samples.iter().map(|(_, [cpu, _])| cpu).sum::<f64>() / samples.len() as f64;
    assert!(busy > 0.1 / std::thread::available_parallelism().map_or(1, |cores| cores.get()) as f64, "{busy}");
    let definitions = run(Command::new("otf2-print").arg("-G").arg(app.recorded().join("traces.otf2"))).stdout;
    assert!(definitions.contains("METRIC_INSTANCE") && definitions.contains("Type: METRIC"), "{definitions}");
    // They are corrected with the rest, and the truth has their times.
    run(Command::new(crate::common::with_recorder()).arg(app.recorded()).env("CLC_REPLAY_MPI", "never"))
        .expect(0, "a correction");
    super::evaluation(&app.path("run-clc"), &app.recorded());
    assert_eq!(events(&app.path("run-clc"))["METRIC"], samples.len() as u64);
}

#[test]
fn without_being_asked_nothing_is_sampled() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "unbalanced.c", &[]);
    run(&mut app.record(&["--keep-raw"], 2, &["5"])).expect(0, "a recording");
    assert_eq!(events(&app.recorded()).get("METRIC"), None);
    assert!(!app.path("run.raw/0.samples").exists());
}

#[test]
fn clocks_are_measured_while_the_program_waits() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "unbalanced.c", &[]);
    // Every process measures its own clock, which is that of the machine.
    let options = ["--offsets", "every=100ms", "--clock", "perfect"];
    run(&mut app.record(&options, 2, &["60"])).expect(0, "a recording");
    let print = |options: &[&str]| {
        let mut command = Command::new("otf2-print");
        run(command.args(options).arg(app.recorded().join("traces.otf2"))).expect(0, "otf2-print").stdout
    };
    let number = |text: &str| text.trim().trim_end_matches(',').parse::<i64>().expect("a number");
    let measured: Vec<i64> = print(&["-C"])
        .lines()
        .filter(|line| line.starts_with("CLOCK_OFFSET"))
        .filter(|line| line.split_whitespace().nth(1) == Some("1"))
        .map(|line| number(line.split("Time: ").nth(1).and_then(|rest| rest.split(',').next()).expect("a time")))
        .collect();
    // Without the first and the last one, in MPI_Init and MPI_Finalize.
    let between = &measured[1..measured.len() - 1];
    let events = print(&[]);
    let time = |line: &str| number(line.split_whitespace().nth(2).expect("a time"));
    let of_rank_1 = |kind: &str| -> Vec<i64> {
        let those = events.lines().filter(|line| line.starts_with(kind) && line.contains("MPI_Barrier"));
        those.filter(|line| line.split_whitespace().nth(1) == Some("1")).map(time).collect()
    };
    let (enters, leaves) = (of_rank_1("ENTER"), of_rank_1("LEAVE"));
    let inside = |time: &&i64| enters.iter().zip(&leaves).any(|(enter, leave)| (enter..=leave).contains(time));
    let waiting = between.iter().filter(inside).count();
    // It waits for half of the time; those that others on the machine have spoilt are left out.
    assert!(between.len() >= 5 && waiting * 4 >= between.len() * 3, "{waiting} of {} while it waits", between.len());
}
