//! The program against the oracle: sparse, distributed and amortised in one sweep on one side, dense, serial and literal on the
//! other. Every event of random traces has to get the same time, bit by bit, on any number of analysis ranks.

mod reference;

use clc_replay::archive::otf2::{ArchiveWriter, CreateOptions};
use clc_replay::clc::latency::MinimumLatency;
use clc_replay::clc::{Decay, Parameters, Slope};
use clc_replay::comm::Transport;
use clc_replay::comm::local::LocalTransport;
use clc_replay::pipeline::load::{LoadOptions, load};
use clc_replay::pipeline::open::open;
use clc_replay::presync::Method;
use clc_replay::replay::survey::survey;
use clc_replay::replay::{amortise, passes};
use clc_replay::report::Warnings;
use clc_replay::trace::progress::Silent;
use clc_replay::trace::{Event, Fraction, Position, Result, Ticks};
use proptest::prelude::*;
use reference::backward::backward;
use reference::forward::{Control, forward_of, lamport_advance};
use reference::generate::generate;
use reference::matching::{Rules, matching};
use reference::model::{PerLocation, Trace};
use reference::properties;
use reference::violations::violations;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many runs used the canonical replay (blocking operations, one rank per process).
static CANONICAL: AtomicUsize = AtomicUsize::new(0);

/// Writes `trace` as an OTF2 archive into `directory`, which must not exist.
fn write(trace: &Trace, directory: &Path) {
    let definitions = trace.definitions();
    let archive = ArchiveWriter::create(directory, "traces", CreateOptions::default()).unwrap();
    let mut counts = HashMap::new();
    for (p, process) in trace.processes.iter().enumerate() {
        for (l, events) in process.locations.iter().enumerate() {
            let id = trace.location_id(p, l);
            archive.local_definitions(id, &[]).unwrap();
            let mut file = archive.events(id).unwrap();
            for recorded in events {
                // MeasurementOnOff stands for all records that are not interpreted.
                match recorded.event {
                    Event::Other => file.raw(recorded.time as u64, 11, &[1]).unwrap(),
                    event => file.event(recorded.time as u64, &event).unwrap(),
                }
            }
            counts.insert(id, file.finish().unwrap());
        }
    }
    archive.finish(&definitions, &counts).unwrap();
}

/// What the program makes of it.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    least_advance: i64,
    /// Corrected time of every event, `[process][location][number]`, of the processes that this rank hosts.
    times: PerLocation,
    /// Violations before and after.
    violated: (u64, u64),
    blocking: bool,
}

fn run(
    transport: &mut dyn Transport,
    path: &Path,
    trace: &Trace,
    parameters: &Parameters,
    rules: &Rules,
) -> Result<Outcome> {
    let opened = open(transport, path)?;
    let options = LoadOptions {
        presync: Method::Linear,
        latency: parameters.latency,
        alltoallv: rules.vector_all_to_all,
        separation: parameters.minimum_separation,
    };
    let loaded = load(transport, &opened, &options, &Silent, &mut Warnings::default())?;
    let before = survey(transport, &loaded.program, &loaded.program.times(|timeline| &timeline.time))?;
    let mut passes = passes::run(transport, &loaded.program, parameters, &Silent)?;
    let result = amortise::run(transport, &loaded.program, &mut passes, parameters)?;
    let after = survey(transport, &loaded.program, &result.times)?;
    let hosted = opened.placement.hosted_by(transport.rank());
    let mut times = Vec::new();
    for (process, correction) in hosted.zip(&result.corrections) {
        let locations = trace.processes[process].locations.iter().enumerate();
        let map = |location: usize, (number, time): (usize, i64)| {
            let at = Position { time: Ticks(time), location: location as u32, number: number as u64 + 1 };
            correction.map(at).0
        };
        times.push(
            locations
                .map(|(l, events)| events.iter().map(|recorded| recorded.time).enumerate().map(|e| map(l, e)).collect())
                .collect(),
        );
    }
    Ok(Outcome {
        least_advance: passes.least_advance.0,
        times,
        violated: (before.violated(), after.violated()),
        blocking: passes.groups.is_some(),
    })
}

/// Runs the program on `ranks` threads and puts the processes together again.
fn on_ranks(ranks: usize, path: &Path, trace: &Trace, parameters: &Parameters, rules: &Rules) -> Outcome {
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = LocalTransport::world(ranks)
            .into_iter()
            .map(|mut transport| scope.spawn(move || run(&mut transport, path, trace, parameters, rules).unwrap()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut outcomes = outcomes.into_iter();
    let mut whole = outcomes.next().unwrap();
    for part in outcomes {
        assert_eq!(
            (part.least_advance, part.violated, part.blocking),
            (whole.least_advance, whole.violated, whole.blocking)
        );
        whole.times.extend(part.times);
    }
    whole
}

/// Parameters of one case.
#[derive(Debug, Clone, Copy)]
struct Choice {
    decay: u64,
    slope: u64,
    delta: i64,
    same_node: i64,
    other_node: i64,
    alltoallv: bool,
}

fn choices() -> impl Strategy<Value = Choice> {
    let decay = prop_oneof![Just(0u64), Just(10_995_116), Just(1 << 30), Just(1 << 36), Just(1 << 39), 0u64..=1 << 39];
    let slope = prop_oneof![Just(10_995_116_278u64), Just(1 << 40), Just(1 << 20), 1u64..=1 << 40];
    let latency = prop_oneof![Just(0i64), 0i64..3000];
    (decay, slope, prop_oneof![Just(0i64), Just(1), 0i64..20], latency.clone(), latency, any::<bool>()).prop_map(
        |(decay, slope, delta, same_node, other_node, alltoallv)| Choice {
            decay,
            slope,
            delta,
            same_node,
            other_node,
            alltoallv,
        },
    )
}

fn compare(trace: &Trace, choice: Choice, ranks: &[usize]) -> std::result::Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(trace, &path);
    let rules =
        Rules { same_node: choice.same_node, other_node: choice.other_node, vector_all_to_all: choice.alltoallv };
    let parameters = Parameters {
        latency: MinimumLatency { same_node: Ticks(choice.same_node), other_node: Ticks(choice.other_node) },
        decay: Decay::from_units(choice.decay).unwrap(),
        slope: Slope::from_ratio(choice.slope, Fraction::ONE.bits()).unwrap(),
        minimum_separation: Ticks(choice.delta),
        max_passes: 1,
        ..Parameters::default()
    };

    let times = trace.times();
    let dependencies = matching(trace, &rules).dependencies;
    let least_advance = lamport_advance(&times, &dependencies).unwrap();
    let control = Control { decay: choice.decay as i64, delta: choice.delta };
    let oracle = forward_of(trace, &dependencies, control).unwrap();
    let expected = trace.split(&backward(&times, &dependencies, &oracle, choice.slope as i64).corrected);

    for &ranks in ranks {
        let outcome = on_ranks(ranks, &path, trace, &parameters, &rules);
        CANONICAL.fetch_add(usize::from(outcome.blocking), Ordering::Relaxed);
        prop_assert_eq!(outcome.least_advance, least_advance, "D0 on {} ranks", ranks);
        prop_assert_eq!(&outcome.times, &expected, "times on {} ranks (blocking: {})", ranks, outcome.blocking);
        prop_assert_eq!(outcome.violated.1, 0, "violations on {} ranks", ranks);
    }
    Ok(())
}

/// An archive of one location per process as plain data; only what takes part in communication is kept.
fn read(path: &Path) -> Trace {
    use clc_replay::archive::otf2::Otf2Archive;
    use reference::model::{Process, Recorded};
    let archive = Otf2Archive::open(path).unwrap();
    let (definitions, _) = archive.read_definitions().unwrap();
    let processes = definitions
        .processes
        .iter()
        .map(|&id| {
            let local = archive.local_definitions(id).unwrap();
            let clock = Method::Linear.clock(&local.clock_offsets).unwrap();
            let mut events = Vec::new();
            archive
                .scan_with(id, &local, |_, time, event| {
                    events.push(Recorded { time: clock.map(Ticks(time as i64)).0, event });
                    Ok(())
                })
                .unwrap();
            events.retain(|recorded| recorded.event != clc_replay::trace::Event::Other);
            Process { node: 0, locations: vec![events] }
        })
        .collect();
    Trace { processes, communicators: definitions.communicators }
}

#[test]
fn recorded_traces_agree_with_the_oracle() {
    let mut compared = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() || path.file_name().unwrap().to_string_lossy().starts_with("eztrace") {
            continue;
        }
        let mut trace = read(&path);
        let least = trace.processes.iter().flat_map(|p| &p.locations[0]).map(|r| r.time).min().unwrap().min(0);
        trace.processes.iter_mut().flat_map(|p| &mut p.locations[0]).for_each(|r| r.time -= least);
        for (latency, delta, decay) in [(0, 1, 10_995_116), (700, 0, 1 << 36), (5000, 15, 1 << 39)] {
            let choice = Choice {
                decay,
                slope: 10_995_116_278,
                delta,
                same_node: latency,
                other_node: latency,
                alltoallv: latency > 0,
            };
            compare(&trace, choice, &[1, 2, 3, trace.processes.len()]).unwrap();
            compared += 1;
        }
    }
    assert!(compared >= 9);
    assert!(CANONICAL.load(Ordering::Relaxed) > 0, "the canonical replay was never used");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_traces_agree_with_the_oracle(seed: u64, choice in choices()) {
        let generated = generate(seed);
        // As many ranks as processes is the canonical replay, where it is possible.
        let processes = generated.trace.processes.len();
        // A program in which Alltoallv does not synchronise contradicts the claim that it does.
        let choice = Choice { alltoallv: choice.alltoallv && generated.options.rules.vector_all_to_all, ..choice };
        compare(&generated.trace, choice, &[1, 2, 3, processes])?;
    }

    #[test]
    fn generated_traces_are_valid_and_the_oracle_corrects_them(seed: u64, choice in choices()) {
        let generated = generate(seed);
        let trace = &generated.trace;
        let rules = generated.options.rules;
        let truth = trace.merge(&generated.truth);
        let in_truth = violations(&matching(trace, &rules).dependencies, &truth);
        prop_assert_eq!(in_truth.pairs.values().map(|count| count.violated).sum::<usize>(), 0, "{:?}", in_truth);

        let rules = Rules { same_node: choice.same_node, other_node: choice.other_node, ..rules };
        let dependencies = matching(trace, &rules).dependencies;
        let control = Control { decay: choice.decay as i64, delta: choice.delta };
        let oracle = forward_of(trace, &dependencies, control).unwrap();
        let amortised = backward(&trace.times(), &dependencies, &oracle, choice.slope as i64);
        prop_assert_eq!(violations(&dependencies, &amortised.corrected).total(), 0);
        prop_assert_eq!(properties::check(&dependencies, &oracle, &amortised), Ok(()));
    }
}
