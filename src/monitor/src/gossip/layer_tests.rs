use super::super::{Config, MILLISECOND, NodeId, SECOND};
use super::*;

/// Layer 1 of node 0 with others of heartbeat 10, after the time in which nobody is called dead.
fn layer(others: &[usize]) -> (Layer, Time) {
    let address = "10.0.0.1:1".parse().expect("an address");
    let config = Config { group_sizes: vec![8], ..Config::new(NodeId(0), address, [0; 32]) };
    let mut layer = Layer::all(&config, 0, 10).remove(0);
    let heartbeats = others.iter().map(|&index| (index as u32, 10)).collect();
    layer.merge(&Section { level: 1, heartbeats, rows: Vec::new() }, 0, 0, &mut Vec::new());
    (layer, 10 * SECOND)
}

/// A section that tells of heartbeats and of rows.
fn section(heartbeats: &[(u32, u64)], rows: &[(usize, usize)]) -> Section {
    let rows = rows.iter().map(|&(giver, suspect)| ([giver].into_iter().collect(), [suspect].into_iter().collect()));
    Section { level: 1, heartbeats: heartbeats.to_vec(), rows: rows.collect() }
}

fn merged(layer: &mut Layer, section: &Section, now: Time) -> Vec<Change> {
    let mut changes = Vec::new();
    layer.merge(section, now, now, &mut changes);
    changes
}

fn ticked(layer: &mut Layer, now: Time) -> Vec<Change> {
    let mut changes = Vec::new();
    layer.tick(now, &mut changes);
    changes
}

#[test]
fn a_node_is_dead_when_all_that_are_not_suspected_suspect_it() {
    let (mut layer, now) = layer(&[1, 2, 3]);
    merged(&mut layer, &section(&[(1, 11), (2, 11)], &[]), now);
    assert_eq!(ticked(&mut layer, now), [Change::Suspected(3)]);
    merged(&mut layer, &section(&[(1, 12)], &[(1, 3)]), now);
    assert_eq!(ticked(&mut layer, now), [], "2 does not suspect it");
    merged(&mut layer, &section(&[(1, 13), (2, 12)], &[(1, 3), (2, 3)]), now);
    assert_eq!(ticked(&mut layer, now), [], "the consensus has to last");
    assert_eq!(ticked(&mut layer, now + 100 * MILLISECOND), [Change::Dead(3)]);
    assert!(layer.section().heartbeats.iter().all(|&(index, _)| index != 3), "the dead are not gossiped about");
}

#[test]
fn a_row_counts_only_with_a_newer_heartbeat_and_is_taken_back_by_one() {
    let (mut layer, now) = layer(&[1, 3]);
    merged(&mut layer, &section(&[(1, 11)], &[]), now);
    ticked(&mut layer, now);
    merged(&mut layer, &section(&[(1, 11)], &[(1, 3)]), now);
    assert!(!layer.consensus(3, now), "not newer");
    merged(&mut layer, &section(&[(1, 12)], &[(1, 3)]), now);
    assert!(layer.consensus(3, now));
    merged(&mut layer, &section(&[(1, 13)], &[]), now);
    assert!(!layer.consensus(3, now), "1 has heard of it");
    assert_eq!(merged(&mut layer, &section(&[(3, 11)], &[]), now), [Change::Cleared(3)]);
}

#[test]
fn suspicions_of_others_are_joined_if_nothing_newer_is_known() {
    let told = section(&[(1, 11), (2, 10), (3, 11)], &[(1, 2)]);
    let joined = |heartbeat: u64, silent: Time| {
        let (mut layer, now) = layer(&[1, 2, 3]);
        merged(&mut layer, &section(&[(2, heartbeat)], &[]), now);
        layer.get_mut(2).expect("there").heard = now;
        let mut changes = Vec::new();
        let doubted = layer.join_suspicions(&told, now + silent, &mut changes);
        (doubted, changes)
    };
    let suspected = vec![Change::Suspected(2)];
    assert_eq!(joined(10, 400 * MILLISECOND), (false, vec![]));
    assert_eq!(joined(10, 490 * MILLISECOND), (false, vec![]), "not silent for long enough");
    assert_eq!(joined(10, 550 * MILLISECOND), (true, suspected));
    assert_eq!(joined(12, 850 * MILLISECOND), (true, vec![]), "a newer heartbeat is known here");
}

/// One that stands still itself cannot say what it thinks of another one.
#[test]
fn a_member_that_is_overdue_does_not_hold_up_a_consensus_of_most() {
    let agreeing = |givers: &[usize]| {
        let (mut layer, now) = layer(&[1, 2, 3, 4, 5]);
        let heartbeats: Vec<(u32, u64)> = (1..5).map(|index| (index, 11)).collect();
        merged(&mut layer, &section(&heartbeats, &[]), now);
        assert_eq!(ticked(&mut layer, now), [Change::Suspected(5)]);
        let rows: Vec<(usize, usize)> = givers.iter().map(|&giver| (giver, 5)).collect();
        let heartbeats: Vec<(u32, u64)> = givers.iter().map(|&giver| (giver as u32, 12)).collect();
        merged(&mut layer, &section(&heartbeats, &rows), now + 450 * MILLISECOND);
        [400, 600].map(|silent| layer.consensus(5, now + silent * MILLISECOND))
    };
    assert_eq!(agreeing(&[1, 2, 3]), [false, true], "4 is overdue");
    assert_eq!(agreeing(&[1]), [false, false], "two of six are not most of them");
}

#[test]
fn own_pauses_are_forgiven_and_suspects_are_told() {
    let (mut layer, now) = layer(&[1, 2]);
    layer.forgive(now);
    assert_eq!(ticked(&mut layer, now + SECOND / 2), []);
    assert_eq!(ticked(&mut layer, now + 2 * SECOND).len(), 2);
    layer.beat(now, 0);
    let suspects: Set = [1, 2].into_iter().collect();
    assert_eq!(layer.section().rows, [([0].into_iter().collect(), suspects)]);
    assert!(!layer.consensus(1, now), "one witness is not enough");
}

#[test]
fn the_layers_of_a_node_follow_from_its_number() {
    let address = "10.0.0.1:1".parse().expect("an address");
    let config = Config { group_sizes: vec![4, 3], ..Config::new(NodeId(17), address, [0; 32]) };
    let layers = Layer::all(&config, 0, 1);
    let places: Vec<_> = layers.iter().map(|layer| (layer.level, layer.base, layer.own, layer.shape.span)).collect();
    assert_eq!(places, [(1, 16, 1, 1), (2, 3, 1, 4), (3, 0, 1, 12)]);
    assert_eq!((layers[0].local(19), layers[0].local(20), layers[1].local(20)), (Some(3), None, Some(2)));
    assert_eq!((layers[1].local(11), layers[2].local(11)), (None, Some(0)));
}

/// The patience with a group is longer than with a node, since word of it takes longer. When that time is over it is asked, and then has as much time as a node.
#[test]
fn silent_groups_are_asked_before_they_are_suspected() {
    let address = "10.0.0.1:1".parse().expect("an address");
    let config = Config { group_sizes: vec![4], ..Config::new(NodeId(0), address, [0; 32]) };
    let mut layers = Layer::all(&config, 0, 10);
    for layer in &mut layers {
        merged(layer, &Section { level: layer.level, heartbeats: vec![(1, 10), (2, 10)], rows: Vec::new() }, 0);
    }
    let usual = layers[1].patience() - SECOND;
    let asked = [usual, usual + 1].map(|silent| layers[1].to_ask(silent));
    assert_eq!(asked, [vec![], vec![1, 2]]);
    assert_eq!(ticked(&mut layers[1], usual + SECOND), []);
    assert_eq!(ticked(&mut layers[1], usual + SECOND + 1), [Change::Suspected(1), Change::Suspected(2)]);
    assert_eq!(layers[1].to_ask(usual + SECOND + 1), [1, 2], "and as long as they are suspected");
    assert!(layers[0].to_ask(usual + 1).is_empty(), "members of the group say themselves that they live");
}
