//! Short runs of what `scripts/monitor_simulation` does at length.

use super::*;

#[test]
fn a_killed_node_of_64_is_named_by_all_within_two_seconds() {
    for seed in 1..4 {
        let faults = vec![(SECOND, Fault::Kill(21..22))];
        let outcome =
            GossipScenario { faults, seed, loss: 10_000, duration: 6 * SECOND, ..GossipScenario::new(64) }.run();
        let all = outcome.detections[0].all.unwrap_or_else(|| panic!("seed {seed}: {outcome:?}"));
        assert!((SECOND..=1_700 * MILLISECOND).contains(&all), "seed {seed}: {} ms", all / MILLISECOND);
        assert_eq!((outcome.false_deaths, outcome.wrong_at_end, outcome.incomplete_at_end), (0, 0, 0));
    }
}

/// In one group word takes longest.
#[test]
fn a_killed_node_of_one_group_of_64_is_named_by_all_within_two_seconds() {
    for seed in 1..5 {
        let faults = vec![(SECOND, Fault::Kill(21..22))];
        let mut scenario =
            GossipScenario { faults, seed, loss: 10_000, duration: 4 * SECOND, ..GossipScenario::new(64) };
        scenario.config.group_sizes = Vec::new();
        let outcome = scenario.run();
        let all = outcome.detections[0].all.unwrap_or_else(|| panic!("seed {seed}: {outcome:?}"));
        assert!((SECOND..2 * SECOND).contains(&all), "seed {seed}: {} ms", all / MILLISECOND);
        assert_eq!((outcome.false_deaths, outcome.wrong_at_end), (0, 0));
    }
}

/// Twenty deaths in turn, as the series of docs/monitor.md have them.
fn twenty_deaths() -> Vec<(Time, Fault)> {
    let death = |place: u32| {
        let node = (2 * place + 1) * 64 / 40;
        (SECOND * u64::from(place * 10 + 1) + 37 * MILLISECOND * u64::from(place), Fault::Kill(node..node + 1))
    };
    (0..20).map(death).collect()
}

/// Word of the last heartbeat comes late to some, who are not silent for as long as others when these begin to suspect a node.
#[test]
fn though_packets_are_lost_one_group_of_64_names_every_dead_node_within_two_seconds() {
    for seed in [1, 6, 7, 18] {
        let mut scenario = GossipScenario {
            faults: twenty_deaths(),
            seed,
            loss: 50_000,
            duration: 210 * SECOND,
            ..GossipScenario::new(64)
        };
        scenario.config.group_sizes = Vec::new();
        let outcome = scenario.run();
        let all = outcome.detections.iter().map(|death| death.all.unwrap_or(Time::MAX)).max();
        assert!(all.is_some_and(|all| all <= 2 * SECOND), "seed {seed}: {:?} ms", all.map(|all| all / MILLISECOND));
        assert_eq!((outcome.false_deaths, outcome.wrong_at_end), (0, 0), "seed {seed}");
    }
}

/// Who stands still when a node dies does not say that it suspects it.
#[test]
fn though_nodes_stand_still_every_dead_node_is_named_within_two_seconds() {
    for seed in [13, 17, 19] {
        let pauses = Some(Pauses { every: 60 * SECOND, longest: 800 * MILLISECOND });
        let mut scenario = GossipScenario {
            faults: twenty_deaths(),
            seed,
            pauses,
            loss: 10_000,
            duration: 210 * SECOND,
            ..GossipScenario::new(64)
        };
        scenario.config.group_sizes = vec![8];
        let outcome = scenario.run();
        let all = outcome.detections.iter().map(|death| death.all.unwrap_or(Time::MAX)).max();
        assert!(all.is_some_and(|all| all <= 2 * SECOND), "seed {seed}: {:?} ms", all.map(|all| all / MILLISECOND));
        assert_eq!((outcome.false_deaths, outcome.false_suspicions, outcome.wrong_at_end), (0, 0, 0), "seed {seed}");
    }
}

/// The last group of a layer may be one node, of which seven others hear late. Unless they ask it before, it is called dead within the four minutes with each of these seeds, pauses and losses coming together.
#[test]
fn a_group_of_one_node_beside_another_is_not_called_dead() {
    let pauses = Some(Pauses { every: 20 * SECOND, longest: 800 * MILLISECOND });
    let mut scenario = GossipScenario { pauses, loss: 10_000, duration: 240 * SECOND, ..GossipScenario::new(57) };
    (scenario.config.group_sizes, scenario.config.directory) = (vec![7, 7], false);
    // With the number of nodes there would be no such group.
    scenario.config.nodes = 0;
    for seed in [1, 8, 17, 19] {
        assert_eq!(GossipScenario { seed, ..scenario.clone() }.run().false_deaths, 0, "seed {seed}");
    }
}

/// As an entry of the layer above, a group of one node would be named after more than three seconds.
#[test]
fn the_last_node_is_named_as_soon_as_any_other_one() {
    for (seed, nodes) in [(1, 57), (2, 57), (3, 58), (4, 73)] {
        let faults = vec![(SECOND, Fault::Kill(nodes - 1..nodes))];
        let outcome =
            GossipScenario { faults, seed, loss: 10_000, duration: 6 * SECOND, ..GossipScenario::new(nodes) }.run();
        let all = outcome.detections[0].all.unwrap_or(Time::MAX);
        assert!(all <= 1_700 * MILLISECOND, "{nodes} nodes, seed {seed}: {} ms", all / MILLISECOND);
        assert_eq!((outcome.false_deaths, outcome.wrong_at_end, outcome.incomplete_at_end), (0, 0, 0));
    }
}

#[test]
fn nobody_is_called_dead_while_nodes_still_meet() {
    for (seed, group_sizes) in [(1, vec![]), (2, vec![]), (3, vec![8]), (4, vec![4, 4])] {
        let mut scenario =
            GossipScenario { settle: 0, seed, loss: 10_000, duration: 8 * SECOND, ..GossipScenario::new(64) };
        scenario.config.group_sizes = group_sizes;
        assert_eq!(scenario.run().false_deaths, 0, "seed {seed}");
    }
}

#[test]
fn a_start_of_many_nodes_with_names_and_data_alarms_nobody() {
    let sensors = Some((2 * SECOND, 104));
    let scenario =
        GossipScenario { settle: 0, loss: 10_000, duration: 8 * SECOND, sensors, ..GossipScenario::new(400) };
    let outcome = scenario.run();
    assert_eq!((outcome.false_deaths, outcome.wrong_at_end, outcome.refused), (0, 0, 0));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let scenario = GossipScenario { loss: 50_000, duration: 3 * SECOND, ..GossipScenario::new(20) };
    assert_eq!(scenario.run(), scenario.run());
    assert_ne!(scenario.run(), GossipScenario { seed: 2, ..scenario }.run());
}

#[test]
fn pauses_below_the_patience_alarm_nobody_and_longer_ones_are_named_and_forgiven() {
    let pauses = Some(Pauses { every: 5 * SECOND, longest: 800 * MILLISECOND });
    let outcome = GossipScenario { pauses, loss: 10_000, duration: 60 * SECOND, ..GossipScenario::new(36) }.run();
    assert_eq!((outcome.false_deaths, outcome.wrong_at_end), (0, 0));
    let faults = vec![(SECOND, Fault::Pause(7..8, 5 * SECOND))];
    let outcome = GossipScenario { faults, duration: 12 * SECOND, ..GossipScenario::new(36) }.run();
    assert_eq!((outcome.wrong_at_end, outcome.incomplete_at_end), (0, 0));
}

#[test]
fn a_network_that_was_cut_heals() {
    for group_sizes in [vec![], vec![6]] {
        let faults = vec![(SECOND, Fault::Cut(0..18, 10 * SECOND))];
        let mut scenario = GossipScenario { faults, duration: 40 * SECOND, ..GossipScenario::new(36) };
        scenario.config.group_sizes = group_sizes;
        let outcome = scenario.run();
        assert_eq!((outcome.wrong_at_end, outcome.incomplete_at_end), (0, 0), "{:?}", scenario.config.group_sizes);
    }
}

#[test]
fn a_failing_group_is_named_and_comes_back() {
    let mut scenario = GossipScenario { duration: 8 * SECOND, ..GossipScenario::new(36) };
    scenario.faults = vec![(SECOND, Fault::Kill(6..12))];
    let outcome = scenario.run();
    assert!(outcome.detections.iter().all(|death| death.all.is_some_and(|all| all <= 4 * SECOND)), "{outcome:?}");
    scenario.faults.push((8 * SECOND, Fault::Restart(6..12)));
    scenario.duration = 20 * SECOND;
    let outcome = scenario.run();
    assert_eq!((outcome.wrong_at_end, outcome.incomplete_at_end, outcome.false_deaths), (0, 0, 0), "{outcome:?}");
}

#[test]
fn three_layers_without_a_directory_find_a_death() {
    let mut scenario = GossipScenario { duration: 8 * SECOND, ..GossipScenario::new(125) };
    (scenario.config.group_sizes, scenario.config.directory) = (vec![5, 5], false);
    scenario.faults = vec![(SECOND, Fault::Kill(63..64))];
    let outcome = scenario.run();
    assert!(outcome.detections[0].all.is_some_and(|all| all <= 4 * SECOND), "{outcome:?}");
    assert_eq!((outcome.false_deaths, outcome.wrong_at_end, outcome.incomplete_at_end), (0, 0, 0));
}

#[test]
fn data_arrive_and_stay_fresh() {
    let sensors = Some((SECOND, 100));
    let outcome = GossipScenario { sensors, loss: 10_000, duration: 10 * SECOND, ..GossipScenario::new(64) }.run();
    assert!((0.01..2.0).contains(&outcome.data_age), "{} s", outcome.data_age);
    assert!(outcome.round_trips > 64);
}

#[test]
fn all_meet_though_one_packet_in_five_is_lost() {
    for (seed, group_sizes) in [(1, vec![]), (2, vec![6]), (3, vec![6]), (4, vec![3, 4])] {
        let mut scenario =
            GossipScenario { seed, loss: 200_000, settle: 0, duration: 20 * SECOND, ..GossipScenario::new(36) };
        scenario.config.group_sizes = group_sizes;
        scenario.faults = vec![(12 * SECOND, Fault::Kill(5..6))];
        let outcome = scenario.run();
        assert!(outcome.detections[0].all.is_some(), "seed {seed}: {outcome:?}");
        assert_eq!((outcome.wrong_at_end, outcome.false_deaths), (0, 0), "seed {seed}");
        // With so much loss, of 36 nodes in one group about one suspects another one falsely at any moment; nobody is unknown.
        assert!(outcome.incomplete_at_end <= 2, "seed {seed}: {outcome:?}");
    }
}

/// Many small groups, as at the start of a large job: most nodes know nobody of most other groups yet.
#[test]
fn many_small_groups_meet_without_a_false_alarm() {
    let mut scenario =
        GossipScenario { settle: 6 * SECOND, loss: 10_000, duration: 10 * SECOND, ..GossipScenario::new(512) };
    (scenario.config.group_sizes, scenario.config.directory) = (vec![4], false);
    scenario.faults = vec![(2 * SECOND, Fault::Kill(77..78))];
    let outcome = scenario.run();
    assert_eq!((outcome.false_deaths, outcome.wrong_at_end, outcome.incomplete_at_end), (0, 0, 0));
    assert!(outcome.detections[0].all.is_some_and(|all| all <= 4 * SECOND), "{outcome:?}");
}

/// A death is told down the layers, from each group to the groups of the layer below it.
#[test]
fn four_layers_hear_of_a_death_in_time() {
    let mut scenario =
        GossipScenario { settle: 12 * SECOND, loss: 10_000, duration: 6 * SECOND, ..GossipScenario::new(625) };
    (scenario.config.group_sizes, scenario.config.directory) = (vec![5, 5, 5], false);
    scenario.faults = vec![(SECOND, Fault::Kill(377..378))];
    let outcome = scenario.run();
    let Detection { first, all, .. } = outcome.detections[0];
    let (first, all) = (first.expect("named"), all.unwrap_or_else(|| panic!("by all: {outcome:?}")));
    assert!(all - first <= 200 * MILLISECOND, "{} ms", (all - first) / MILLISECOND);
    assert_eq!((outcome.false_deaths, outcome.wrong_at_end, outcome.incomplete_at_end), (0, 0, 0));
}
