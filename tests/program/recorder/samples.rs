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
    // 1.6 s are 32 periods; where others keep the machine busy, some come late, and the run takes longer.
    let periods =
        samples.last().zip(samples.first()).map_or(0, |(last, first)| (last.0 - first.0 + 25_000_000) / 50_000_000 + 1);
    assert!(samples.len() >= 8 && samples.len() <= periods as usize, "{periods} periods: {samples:?}");
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

/// The number at a place in a raw file (LEB128), and the place after it.
fn number(bytes: &[u8], place: usize) -> (u64, usize) {
    let length = bytes[place..].iter().take_while(|&&byte| byte >= 0x80).count() + 1;
    let digits = bytes[place..place + length].iter().zip((0..).step_by(7));
    (digits.map(|(&byte, shift)| u64::from(byte & 0x7f) << shift).sum(), place + length)
}

/// When each batch of exchanges of a process began, by its counter.
fn batches(path: &Path) -> Vec<u64> {
    let bytes = std::fs::read(path).expect("measurements");
    let words: Vec<u64> = bytes[8..].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    let (mut place, mut begun) = (0, Vec::new());
    while place + 4 < words.len() {
        begun.push(words[place + 4]);
        place += 4 + 4 * words[place + 3] as usize;
    }
    begun
}

#[test]
fn clocks_are_measured_while_the_program_waits() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "unbalanced.c", &[]);
    // Every process measures its own clock, which is that of the machine; its counter has nanoseconds.
    let options = ["--offsets", "every=100ms", "--clock", "perfect", "--keep-raw"];
    run(app.record(&options, 2, &["60"]).env("CLC_RECORDER_TIMER", "clock")).expect(0, "a recording");
    let printed =
        run(Command::new("otf2-print").arg(app.recorded().join("traces.otf2"))).expect(0, "otf2-print").stdout;
    let of_rank_1 = |kind: &str, region: &str| -> Vec<u64> {
        let those = printed.lines().filter(|line| line.starts_with(kind) && line.contains(region));
        let words = those.map(|line| line.split_whitespace().collect::<Vec<_>>());
        words.filter(|words| words[1] == "1").map(|words| words[2].parse().expect("a time")).collect()
    };
    let (enters, leaves) = (of_rank_1("ENTER", "\"MPI_Barrier\""), of_rank_1("LEAVE", "\"MPI_Barrier\""));
    // Of the first record, the call of MPI_Init, both times are known.
    let raw = std::fs::read(app.path("run.raw/1-0.raw")).expect("a raw file");
    // Eight numbers begin the buffer, then there are its code and its time.
    let place = (0..9).fold(4096, |place, _| number(&raw, place).1);
    let (counter, shown) = (number(&raw, place).0, of_rank_1("ENTER", "\"MPI_Init\"")[0]);
    let begun = batches(&app.path("run.raw/1.clock")).into_iter().map(|begun| begun - counter + shown);
    let between: Vec<u64> = begun.filter(|begun| (enters[0]..leaves[59]).contains(begun)).collect();
    let inside = |begun: &&u64| enters.iter().zip(&leaves).any(|(enter, leave)| (enter..=leave).contains(begun));
    let waiting = between.iter().filter(inside).count();
    // It waits for half of the time. Of a batch that others on the machine have delayed, the first exchange that was kept may be later.
    assert!(between.len() >= 10 && waiting * 5 >= between.len() * 3, "{waiting} of {} while it waits", between.len());
}

/// Method and shortest way there and back, in ticks, of each batch in a file of measurements.
fn measured(path: &Path) -> Vec<(u64, [i64; 2])> {
    let bytes = std::fs::read(path).expect("measurements");
    let words: Vec<u64> =
        bytes[8..].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).collect();
    let (mut batches, mut rest) = (Vec::new(), &words[..]);
    while let [_, method, _, count, more @ ..] = rest {
        let (exchanges, later) = more.split_at(4 * *count as usize);
        let ways = exchanges.chunks_exact(4).map(|one| [one[2] as i64 - one[0] as i64, one[1] as i64 - one[3] as i64]);
        let least = ways.reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1])]).expect("an exchange");
        batches.push((*method, least));
        rest = later;
    }
    batches
}

#[test]
fn processes_of_a_node_compare_their_counters_through_memory() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "unbalanced.c", &[]);
    let record = || {
        run(&mut app.record(&["--keep-raw", "--force"], 2, &["5"])).expect(0, "a recording");
        measured(&app.path("run.raw").join("1.clock")).is_empty()
    };
    // Some tries: each is a few rows in which both processes need a core at the same time.
    for _ in 0..5 {
        let _ = std::fs::remove_dir_all(app.path("run.raw"));
        if !record() {
            break;
        }
    }
    let raw = app.path("run.raw");
    assert!(!raw.join("0.clock").exists() && !raw.join("1.line").exists());
    let batches = measured(&raw.join("1.clock"));
    assert!(!batches.is_empty() && batches.len() <= 2, "in MPI_Init and MPI_Finalize: {batches:?}");
    for (method, ways) in &batches {
        // Of cores that show the same, no word is seen before it is written; 20,000 ticks are some microseconds, the fastest messages of the kernel take longer.
        assert!(*method == 3 && ways.iter().all(|&way| (0..20_000).contains(&way)), "{batches:?}");
    }
    let archive = std::fs::read(app.recorded().join("traces.otf2")).expect("an archive");
    let archive = String::from_utf8_lossy(&archive);
    assert!(archive.contains("CLC_REPLAY::SHARED_CLOCKS") && archive.contains("of their node: 1; the same within "));
    // None of them is an offset: the clock of a node is one.
    let offsets = run(Command::new("otf2-print").arg("-C").arg(app.recorded().join("traces.otf2"))).stdout;
    assert!(offsets.lines().filter(|line| line.starts_with("CLOCK_OFFSET")).all(|line| line.contains("Offset: +0")));
}

#[test]
fn processes_with_clocks_of_their_own_measure_them_through_memory() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "unbalanced.c", &[]);
    run(&mut app.record(&["--keep-raw", "--clock", "perfect"], 2, &["5"])).expect(0, "a recording");
    let batches = measured(&app.path("run.raw").join("1.clock"));
    assert!(batches.iter().any(|&(method, ways)| method == 2 && ways.iter().sum::<i64>() < 20_000), "{batches:?}");
}

#[test]
fn buffers_are_written_while_the_program_waits() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "phases.c", &[]);
    // Three quarters of a buffer in each phase, so that buffers get full at other moments of each; the machine never counts as idle.
    let share = |name: &str, value: &str| {
        let _ = std::fs::remove_dir_all(app.recorded());
        let mut command = app.record(&["--force", "--memory", "1M"], 2, &["20", "38000", "60"]);
        let said = run(command.env(name, value)).expect(0, "a recording").stdout;
        let words: Vec<&str> = said.split_whitespace().collect();
        let [computing, waiting] = [1, 3].map(|place| words[place].parse::<f64>().expect("bytes"));
        assert!(computing + waiting > 2e6, "{said}");
        computing / (computing + waiting)
    };
    let (at_once, adaptive) = (share("CLC_RECORDER_WRITE", "static"), share("CLC_RECORDER_LOAD", "1,1,0"));
    assert!(adaptive < at_once - 0.2, "{at_once} of the bytes while it computed, {adaptive} with adaptive writing");
}
