//! Random programs of several threads whose clocks are not those of their processes: the program and the oracle come to the same times.

use crate::reference::against::{on_ranks, write};
use crate::reference::backward::backward;
use crate::reference::common::{Constants, Passes, common as common_time};
use crate::reference::forward::{Control, forward_of, lamport_advance};
use crate::reference::matching::{Rules, matching};
use crate::reference::model::PerLocation;
use crate::reference::threads::own_clocks::{divided, in_true_order, with_own_clocks};
use crate::reference::threads::{disturb, hybrid};
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::{Fraction, Ticks};
use controlled_logical_clock::latency::MinimumLatency;
use controlled_logical_clock::{Centre, CorrectionForm, Decay, Parameters, Slope};
use proptest::prelude::*;

/// Decay, slope, δ, latency, and the form.
type Choice = (u64, u64, i64, i64, CorrectionForm);

/// What was compared: how many locations had timelines of their own, and whether threads took turns at collective operations.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    own: usize,
    turns: bool,
}

/// The program and the oracle come to the same times of all events, and to the same timelines.
/// Collective operations of threads are in their true order, which the program has to find.
fn compare(seed: u64, (decay, slope, delta, latency, form): Choice, ranks: &[usize]) -> Result<Outcome, String> {
    let mut program = hybrid(seed);
    let truth = program.trace.clone();
    disturb(&mut program, seed.rotate_left(17));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(&program.trace, &path);
    let rules = Rules {
        same_node: latency,
        other_node: latency,
        vector_all_to_all: false,
        fences: Fences::Auto,
        handles: false,
    };
    let parameters = Parameters {
        latency: MinimumLatency { same_node: Ticks(latency), other_node: Ticks(latency) },
        decay: Decay::from_units(decay).unwrap(),
        slope: Slope::from_ratio(slope, Fraction::ONE.bits()).unwrap(),
        minimum_separation: Ticks(delta),
        max_passes: 1,
        form,
        centre: Centre::Mean,
        ..Parameters::default()
    };
    let own = with_own_clocks(&program);
    let true_matching = matching(&truth, &rules);
    let found = in_true_order(&program, (&truth, &true_matching), matching(&program.trace, &rules));
    let (trace, matching) = divided(&program, &own, &found);
    let control = Control { decay: decay as i64, delta };
    // Events wait for each other in a cycle where threads share a clock that is wrong for one of them, or a tag: the oracle knows no way out.
    let Ok(oracle) = forward_of(&trace, &matching.dependencies, control) else { return Ok(Outcome::default()) };
    let times = trace.times();
    let least_advance = lamport_advance(&times, &matching.dependencies).unwrap();
    let constants =
        Constants { control, slope: slope as i64, passes: Passes { most: 1, max_error: 3 << 39 }, median: false };
    let corrected = match form {
        CorrectionForm::Paper => backward(&times, &matching.dependencies, &oracle, slope as i64).corrected,
        CorrectionForm::Common => common_time(&trace, &matching, constants).0,
    };
    // Back to where the locations were.
    let mut expected: PerLocation = trace.split(&corrected);
    let further = expected.split_off(program.trace.processes.len());
    for (&(process, location), mut list) in own.iter().zip(further) {
        expected[process].insert(location, list.remove(0));
    }
    for &ranks in ranks {
        let outcome = on_ranks(ranks, &path, &program.trace, &parameters, &rules)
            .map_err(|error| format!("on {ranks} ranks: {error}"))?;
        let found: Vec<(usize, usize)> = outcome.own.iter().map(|&(p, l)| (p as usize, l as usize)).collect();
        if found != own {
            return Err(format!("own timelines on {ranks} ranks: {found:?}, expected {own:?}"));
        }
        if outcome.least_advance != least_advance {
            return Err(format!("D0 on {ranks} ranks: {}, expected {least_advance}", outcome.least_advance));
        }
        if outcome.times != expected {
            return Err(format!("times on {ranks} ranks: {:?}, expected {expected:?}", outcome.times));
        }
        if outcome.violated.1 != 0 {
            return Err(format!("{} violations on {ranks} ranks", outcome.violated.1));
        }
    }
    Ok(Outcome { own: own.len(), turns: program.turns })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn hybrid_programs_agree_with_the_oracle(
        seed in any::<u64>(),
        decay in prop_oneof![Just(0u64), Just(10_995_116), Just(1 << 30), Just(1 << 39)],
        slope in prop_oneof![Just(10_995_116_278u64), Just(1 << 40)],
        delta in 0i64..3,
        latency in prop_oneof![Just(0i64), 0i64..20],
        paper in any::<bool>(),
    ) {
        let form = if paper { CorrectionForm::Paper } else { CorrectionForm::Common };
        compare(seed, (decay, slope, delta, latency, form), &[1, 2, 3, 5]).map_err(TestCaseError::fail)?;
    }
}

/// Threads of a timeline begin in a region that a thread with a clock of its own has forked: only the first of them tells something.
#[test]
fn orders_that_follow_from_others_do_not_communicate() {
    let choice = (0, 1 << 40, 0, 0, CorrectionForm::Common);
    compare(1_755_902_449_755_645_244, choice, &[1, 3]).unwrap();
}

/// A thread joins a team that has ended at the same time and at another location, and is late because of a further one.
#[test]
fn events_of_one_time_are_corrected_in_the_order_of_their_layers() {
    compare(6_490_093_991_457_882_601, (1 << 39, 10_995_116_278, 2, 0, CorrectionForm::Paper), &[1, 3]).unwrap();
}

#[test]
fn some_of_the_random_programs_have_timelines_of_their_own() {
    let choice = (10_995_116, 10_995_116_278, 1, 0, CorrectionForm::Common);
    let outcomes: Vec<Outcome> = (0..12).map(|seed| compare(seed, choice, &[2]).unwrap()).collect();
    let own = |turns: bool| outcomes.iter().filter(|of| of.turns == turns).map(|of| of.own).sum::<usize>();
    assert!(own(false) >= 6 && own(true) >= 6, "{outcomes:?}");
}
