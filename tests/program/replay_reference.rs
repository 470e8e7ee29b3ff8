//! The program against the oracle: sparse, distributed and amortised in one sweep on one side, dense, serial and literal on the
//! other. Every event of random traces has to get the same time, bit by bit, on any number of analysis ranks.

use crate::reference::against::{CANONICAL, Choice, compare};
use crate::reference::backward::backward;
use crate::reference::forward::{Control, forward_of};
use crate::reference::generate::generate;
use crate::reference::matching::{Rules, matching};
use crate::reference::model::Trace;
use crate::reference::properties;
use crate::reference::violations::violations;
use clc_clock::Method;
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::Ticks;
use controlled_logical_clock::CorrectionForm;
use proptest::prelude::*;
use std::path::Path;
use std::sync::atomic::Ordering;

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
            form: CorrectionForm::Paper,
            median: false,
            fences: Fences::Auto,
            handles: false,
        },
    )
}

/// An archive of one location per process as plain data; only what takes part in communication is kept.
fn read(path: &Path) -> Trace {
    use crate::reference::model::{Process, Recorded};
    use clc_otf2::Otf2Archive;
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
            events.retain(|recorded| recorded.event != clc_trace::Event::Other);
            Process { node: 0, locations: vec![events] }
        })
        .collect();
    let (windows, groups) = (definitions.windows, definitions.groups);
    Trace { processes, communicators: definitions.communicators, windows, groups, ..Trace::default() }
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
        for (latency, delta, decay, form) in [
            (0, 1, 10_995_116, CorrectionForm::Paper),
            (700, 0, 1 << 36, CorrectionForm::Paper),
            (5000, 15, 1 << 39, CorrectionForm::Paper),
            (0, 1, 10_995_116, CorrectionForm::Common),
            (700, 15, 10_995_116, CorrectionForm::Common),
        ] {
            let choice = Choice {
                decay,
                slope: 10_995_116_278,
                delta,
                same_node: latency,
                other_node: latency,
                alltoallv: latency > 0,
                form,
                median: delta == 15,
                fences: Fences::Auto,
                handles: delta > 0,
            };
            assert_eq!(compare(&trace, choice, &[1, 2, 3, trace.processes.len()]), Ok(true));
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
        // So does one in which some fences do not synchronise, or making communicators does not.
        let alltoallv = choice.alltoallv && generated.options.rules.vector_all_to_all;
        let Rules { fences, handles, .. } = generated.options.rules;
        let choice = Choice { alltoallv, fences, handles, ..choice };
        prop_assert_eq!(compare(&generated.trace, choice, &[1, 2, 3, processes]), Ok(true));
    }

    #[test]
    fn random_traces_have_the_common_time_of_the_oracle(seed: u64, choice in choices(), median: bool, from_zero: bool) {
        let mut generated = generate(seed);
        if from_zero {
            // Sends that would be moved to before 0.
            let events = || generated.trace.processes.iter().flat_map(|process| process.locations.iter().flatten());
            let first = events().map(|recorded| recorded.time).min().unwrap_or(0);
            let locations = generated.trace.processes.iter_mut().flat_map(|process| &mut process.locations);
            locations.flatten().for_each(|recorded| recorded.time -= first);
        }
        let processes = generated.trace.processes.len();
        let alltoallv = choice.alltoallv && generated.options.rules.vector_all_to_all;
        let Rules { fences, handles, .. } = generated.options.rules;
        let choice = Choice { alltoallv, fences, handles, form: CorrectionForm::Common, median, ..choice };
        prop_assert_eq!(compare(&generated.trace, choice, &[1, 2, 3, processes]), Ok(true));
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

#[test]
fn random_programs_make_communicators_together() {
    let all: usize = (0..60)
        .map(generate)
        .map(|generated| {
            let rules = generated.options.rules;
            let pairs = |handles| matching(&generated.trace, &Rules { handles, ..rules }).dependencies.len();
            if rules.handles { pairs(true) - pairs(false) } else { 0 }
        })
        .sum();
    assert!(all > 100, "{all} pairs");
}
