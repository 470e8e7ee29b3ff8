//! Micro-benchmarks of the kernels, in one process: `cargo bench --bench kernels [-- FILTER]`.
//!
//! Whole runs are `scripts/bench`; these tell which kernel has changed. The items of the rates are events, or messages where
//! the name says so. Input is one simulated trace (halo, 8 processes), made anew for every run of this program.

use clc_archive::{Archive, SynchronisationVisitor};
use clc_clock::{Clock, LinearClock, Method};
use clc_engine::comm::local::LocalTransport;
use clc_engine::matching::collectives::{Rules, match_collectives};
use clc_engine::matching::communicators::CommTable;
use clc_engine::matching::extract::Extractor;
use clc_engine::matching::extracted::Extract;
use clc_engine::matching::messages::match_messages;
use clc_engine::matching::sync::EventCoordinates;
use clc_engine::replay::bounds::bounds;
use clc_engine::replay::{amortise as amortisation, dataflow, passes};
use clc_replay::pipeline::generated::write_simulated;
use clc_replay::pipeline::load::{LoadOptions, LocalTrace, load};
use clc_replay::pipeline::open::{TraceHandle, open};
use clc_replay::report::Warnings;
use clc_simulate::{PatternKind, Scenario};
use clc_trace::progress::Silent;
use clc_trace::workers::Workers;
use clc_trace::{
    CurveStretch, Event, EventNumber, Fraction, MpiRank, OneSided, Position, Result, Shape, Ticks, TimelineNumber,
};
use controlled_logical_clock::Parameters;
use controlled_logical_clock::backward::{Corner, amortise};
use controlled_logical_clock::forward::{ForwardClock, ForwardParameters};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use std::sync::LazyLock;

fn main() {
    divan::main();
}

/// Events of the times that the kernels of one timeline work on.
const EVENTS: usize = 1 << 17;

/// The trace, opened and loaded in one process.
struct Sample {
    /// Removed with the sample.
    _directory: tempfile::TempDir,
    opened: TraceHandle,
    loaded: LocalTrace,
    parameters: Parameters,
}

static SAMPLE: LazyLock<Sample> = LazyLock::new(|| {
    let scenario = Scenario {
        ranks: 8,
        ranks_per_node: 2,
        events: 60_000,
        pattern: PatternKind::Halo2d,
        clock: "linear,sine=20us/20ms".parse().expect("a clock"),
        ..Scenario::default()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    std::fs::create_dir(&path).expect("a directory");
    write_simulated(&scenario, &path, clc_archive::Format::Otf2, false).expect("a trace");
    let opened = open(&mut LocalTransport::alone(), &path).expect("a trace");
    let parameters = Parameters::default();
    let loaded = load_again(&opened, &parameters);
    Sample { _directory: directory, opened, loaded, parameters }
});

fn load_again(opened: &TraceHandle, parameters: &Parameters) -> LocalTrace {
    let options = LoadOptions {
        presync: Method::Linear,
        latency: parameters.latency,
        alltoallv: false,
        handles: false,
        fences: clc_engine::matching::collectives::fences::Fences::default(),
        separation: parameters.minimum_separation,
    };
    load(&mut LocalTransport::alone(), opened, &options, &Silent, &mut Warnings::default()).expect("a trace")
}

/// Nondecreasing times, a few microseconds apart.
fn times() -> Vec<i64> {
    let mut state = 1u64;
    let mut time = 1_000_000;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        time += 1 + (state >> 52) as i64;
        time
    };
    std::iter::repeat_with(next).take(EVENTS).collect()
}

/// Every record of the event files, decoded.
#[divan::bench]
fn decode_records(bencher: Bencher) {
    let Sample { opened, loaded, .. } = &*SAMPLE;
    let archive: &Archive = &opened.archive;
    bencher.counter(ItemsCount::new(loaded.events())).bench(|| {
        let mut seen = 0u64;
        for location in &opened.definitions.locations {
            let local = archive.local_definitions(location.id).expect("definitions");
            let count = |number: EventNumber, time, event| {
                seen = seen.wrapping_add(number.0 ^ time);
                black_box(event);
                Ok(())
            };
            archive.scan_with(location.id, &local, count).expect("events");
        }
        seen
    });
}

/// Reading the event files, keeping what synchronises, and matching it.
#[divan::bench]
fn scan_and_match(bencher: Bencher) {
    let Sample { opened, loaded, parameters, .. } = &*SAMPLE;
    bencher.counter(ItemsCount::new(loaded.events())).bench(|| load_again(opened, parameters));
}

/// Joining channels and instances, of events that have been read.
#[divan::bench]
fn match_events(bencher: Bencher) {
    let Sample { opened, loaded, .. } = &*SAMPLE;
    let table = CommTable::new(&opened.definitions);
    let read = || -> Vec<Extract> {
        let timelines = opened.timelines.all.iter();
        timelines.map(|timeline| extract(opened, &table, timeline.process, timeline.locations[0])).collect()
    };
    let messages = loaded.program.messages.counts.matched;
    bencher.counter(ItemsCount::new(messages)).with_inputs(read).bench_values(|mut extracts| {
        let transport = &mut LocalTransport::alone();
        let placement = &opened.placement;
        let messages = match_messages(transport, placement, TimelineNumber(0), &mut extracts, false, Workers::ONE)
            .expect("channels");
        let collectives =
            match_collectives(transport, placement, &table, &|_| 0, TimelineNumber(0), &mut extracts, Rules::default())
                .expect("instances");
        (messages, collectives, extracts)
    });
}

fn extract(opened: &TraceHandle, table: &CommTable<'_>, process: Option<MpiRank>, location: usize) -> Extract {
    let id = opened.definitions.locations[location].id;
    let local = opened.archive.local_definitions(id).expect("definitions");
    let mut reads = Reads(Extractor::new(table, process));
    opened.archive.scan_synchronisation(id, &local, &[], &mut reads).expect("events");
    reads.0.finish()
}

/// Without clocks, and without a look at events that are close to each other.
struct Reads<'a>(Extractor<'a>);

impl SynchronisationVisitor for Reads<'_> {
    fn passes(&mut self, _first: EventNumber, _times: &[u64]) -> bool {
        true
    }

    fn others(&mut self, _first: EventNumber, _times: &[u64]) -> Result<()> {
        Ok(())
    }

    fn event(&mut self, number: EventNumber, time: u64, event: Event) -> Result<()> {
        let at = EventCoordinates { time: time as i64, raw: time as i64, number, location: 0 };
        self.0.event(at, &event).map(|_| ())
    }
}

/// Local times to global ones, piecewise linear.
#[divan::bench]
fn presync_map(bencher: Bencher) {
    let points = [(0, 5_000), (100_000_000, 7_000), (200_000_000, 4_000), (400_000_000, 9_000)];
    let clock = Clock::from(LinearClock::through(&points.map(|(t, o)| (Ticks(t), Ticks(o)))).expect("a clock"));
    let times = times();
    bencher.counter(ItemsCount::new(times.len())).bench(|| {
        let mut cursor = clock.cursor();
        times.iter().map(|&time| cursor.map(Ticks(time)).0).fold(0i64, i64::wrapping_add)
    });
}

/// The formula of the controlled logical clock alone; one event in eight is a receive, one in 64 violates.
#[divan::bench]
fn forward_formula(bencher: Bencher) {
    let times = times();
    let bound = |i: usize| match i % 64 {
        0 => 3_000,
        k if k % 8 == 0 => -3_000,
        _ => i64::MIN / 2,
    };
    let events: Vec<(i64, i64)> = times.iter().enumerate().map(|(i, &time)| (time, time + bound(i))).collect();
    let parameters =
        ForwardParameters { decay: controlled_logical_clock::Decay::START.fraction(), separation: Ticks(1) };
    bencher.counter(ItemsCount::new(events.len())).bench(|| {
        let mut clock = ForwardClock::new(parameters);
        let mut previous = None;
        for &(time, bound) in &events {
            let step = clock.step(Ticks(time), previous, Ticks(bound));
            previous = Some((Ticks(time), step.time));
        }
        previous
    });
}

/// One pass of the dataflow replay in one process.
#[divan::bench]
fn forward_replay(bencher: Bencher) {
    let Sample { loaded, parameters, .. } = &*SAMPLE;
    let constants = ForwardParameters { decay: parameters.decay.fraction(), separation: Ticks(1) };
    bencher
        .counter(ItemsCount::new(loaded.program.events()))
        .bench(|| dataflow::replay(&mut LocalTransport::alone(), &loaded.program, constants).expect("a replay"));
}

/// Bounds of all logical receives, from known times: one check of the clock condition.
#[divan::bench]
fn receive_bounds(bencher: Bencher) {
    let program = &SAMPLE.loaded.program;
    let times = program.times();
    bencher
        .counter(ItemsCount::new(program.events()))
        .bench(|| bounds(&mut LocalTransport::alone(), program, &times).expect("bounds"));
}

/// The curve of the backward amortisation alone; items are messages, of which the given share per mille violates.
#[divan::bench(args = [1, 100, 900])]
fn backward_curve(bencher: Bencher, per_mille: usize) {
    let times = times();
    let mut level = 0;
    let (mut corners, mut bounds) = (Vec::new(), vec![None; times.len()]);
    for i in 0..times.len() / 2 {
        // A send with some room, then a receive.
        let (send, room) = (2 * i, 500 + (i as i64 * 37) % 5_000);
        bounds[send] = Some(Ticks(level + room));
        if (i * 7919) % 1000 < per_mille {
            level += 400;
            corners.push(Corner { index: send as u32 + 1, level: Ticks(level) });
        }
    }
    let slope = Fraction::from_f64(0.01).expect("a slope");
    let mut segments = Vec::new();
    bencher.counter(ItemsCount::new(EVENTS / 2)).bench_local(|| {
        amortise(|index| times[index as usize], &corners, |index, _| bounds[index as usize], slope, &mut segments);
    });
}

/// From the last pass to one correction per timeline: upper bounds of the sends, the forward formula again, the curve.
#[divan::bench(sample_count = 20)]
fn backward_amortisation(bencher: Bencher) {
    let Sample { loaded, parameters, .. } = &*SAMPLE;
    let replay = || {
        passes::run(&mut LocalTransport::alone(), Workers::ONE, &loaded.program, parameters, &Silent).expect("a replay")
    };
    bencher.counter(ItemsCount::new(loaded.program.events())).with_inputs(replay).bench_values(|mut passes| {
        amortisation::run(
            &mut LocalTransport::alone(),
            Workers::ONE,
            &loaded.program,
            &mut passes,
            parameters,
            Ticks::ZERO,
        )
        .expect("corrections")
    });
}

/// Pre-synchronised times to corrected ones; the advance and the curve begin anew every 32 events.
#[divan::bench]
fn correction_map(bencher: Bencher) {
    let times = times();
    let decay = controlled_logical_clock::Decay::START.fraction();
    let mut correction = OneSided::with_capacity(decay, Fraction::from_f64(0.01).expect("a slope"), 0, 0);
    for (&time, number) in times.iter().step_by(32).zip(EventNumber::FIRST.and_following()) {
        let (start, level) = (Position { time: Ticks(time), location: 0, number }, Ticks(400 * number.0 as i64));
        correction.push_advance(start, Ticks(2_000), level);
        correction.push_stretch(Some(start), CurveStretch { level, shape: Shape::Ramp });
    }
    bencher.counter(ItemsCount::new(times.len())).bench(|| {
        let mut cursor = correction.cursor();
        let position = |&time: &i64| Position { time: Ticks(time), location: 0, number: EventNumber::END };
        times.iter().map(|time| cursor.map(position(time)).0).fold(0i64, i64::wrapping_add)
    });
}
