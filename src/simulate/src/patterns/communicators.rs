//! The communicators of the patterns: index in the list = id of the definition.

use super::PatternKind;
use crate::random::Random;
use clc_trace::{CommId, CommMembers, Communicator, MpiRank};

/// Index of MPI_COMM_SELF in the communicators of `mix`.
pub(crate) const COMM_SELF: u32 = 1;
/// Index of the inter-communicator of `coupled`.
pub(crate) const INTER: u32 = 1;
/// Domain of the random order of a communicator.
const ORDER: u64 = 5;
/// Domain of the members of the communicators of `subsets`.
const SUBSETS: u64 = 9;
/// Most members of one of them. Chosen by hand: larger ones overlap so much that they synchronise all with all.
const MOST_IN_SUBSET: u32 = 8;

/// A way to split the processes: for each process its communicator and its rank therein.
#[derive(Debug, Clone, Default)]
pub(crate) struct Family {
    /// Communicator index, rank in it; none for a process that is in no communicator of the family.
    pub(super) places: Vec<Option<(u32, u32)>>,
    /// Index and members of each communicator.
    pub(super) comms: Vec<(u32, Vec<MpiRank>)>,
}

/// The communicators that a pattern uses, and the families that they form.
pub(crate) fn communicators(
    kind: PatternKind,
    nodes: &[u32],
    subsets: u32,
    seed: u64,
) -> (Vec<Communicator>, Vec<Family>) {
    let ranks = nodes.len() as u32;
    let mut list = Vec::new();
    let mut families = Vec::new();
    let mut add = |groups: Vec<(String, Vec<MpiRank>)>| {
        let mut family = Family { places: vec![None; ranks as usize], comms: Vec::new() };
        for (name, members) in groups.into_iter().filter(|(_, members)| !members.is_empty()) {
            let index = list.len() as u32;
            for (&process, rank) in members.iter().zip(0..) {
                family.places[process] = Some((index, rank));
            }
            let definition = Communicator {
                id: CommId(index),
                name,
                members: CommMembers::Intra(members.as_slice().into()),
                global_ranks: false,
            };
            list.push(definition);
            family.comms.push((index, members));
        }
        // MPI_COMM_SELF comes second and belongs to no family.
        if index_of_self(kind, list.len()) {
            list.push(Communicator {
                id: CommId(COMM_SELF),
                name: "MPI_COMM_SELF".into(),
                members: CommMembers::SelfOnly,
                global_ranks: false,
            });
        }
        families.push(family);
    };
    let world: Vec<MpiRank> = (0..ranks).map(MpiRank).collect();
    add(vec![("MPI_COMM_WORLD".into(), world.clone())]);
    if kind == PatternKind::Subsets {
        add(random_subsets(ranks, subsets, seed));
    }
    if kind != PatternKind::Mix {
        if kind != PatternKind::Coupled {
            if kind.has_parts() {
                list.extend(communicators_of_parts(kind, ranks));
            }
            return (list, families);
        }
        let (first, second) = world.split_at(world.len() / 2);
        list.push(Communicator {
            id: CommId(INTER),
            name: "coupling".into(),
            members: CommMembers::Inter(first.into(), second.into()),
            global_ranks: false,
        });
        return (list, families);
    }
    add(vec![("reversed".into(), world.iter().rev().copied().collect())]);
    let (even, odd): (Vec<MpiRank>, Vec<MpiRank>) = world.iter().partition(|rank| rank.0.is_multiple_of(2));
    add(vec![("even".into(), even), ("odd reversed".into(), odd.into_iter().rev().collect())]);
    let mut by_node: Vec<(String, Vec<MpiRank>)> = Vec::new();
    for (&rank, &node) in world.iter().zip(nodes) {
        if node as usize == by_node.len() {
            by_node.push((format!("node {node}"), Vec::new()));
        }
        if let Some((_, members)) = by_node.get_mut(node as usize) {
            members.push(rank);
        }
    }
    add(by_node);
    // Two thirds of the processes in random order: the others are in no communicator of this family.
    let mut some = world;
    let mut random = Random::new(seed, &[ORDER]);
    for i in (1..some.len()).rev() {
        some.swap(i, random.below(i as u64 + 1) as usize);
    }
    some.truncate((some.len() * 2).div_ceil(3));
    add(vec![("some".into(), some)]);
    (list, families)
}

/// What no MPI process is a member of: the team of each process, or what hosts and streams have in common.
fn communicators_of_parts(kind: PatternKind, ranks: u32) -> impl Iterator<Item = Communicator> {
    let teams = kind == PatternKind::Hybrid;
    (1..=if teams { ranks } else { 1 }).map(move |id| Communicator {
        id: CommId(id),
        name: if teams { format!("team of rank {}", id - 1) } else { "HIP".into() },
        members: CommMembers::NotMpi,
        global_ranks: false,
    })
}

/// `count` communicators of two to eight processes in random order. A process is in several of them.
fn random_subsets(ranks: u32, count: u32, seed: u64) -> Vec<(String, Vec<MpiRank>)> {
    let mut random = Random::new(seed, &[SUBSETS]);
    let most = u64::from(ranks.min(MOST_IN_SUBSET));
    let subset = |number: u32| {
        let size = 2 + random.below(most - 1) as usize;
        let mut members = Vec::with_capacity(size);
        while members.len() < size {
            let process = MpiRank(random.below(u64::from(ranks)) as u32);
            if !members.contains(&process) {
                members.push(process);
            }
        }
        (format!("subset {number}"), members)
    };
    (0..count).map(subset).collect()
}

fn index_of_self(kind: PatternKind, defined: usize) -> bool {
    kind == PatternKind::Mix && defined == COMM_SELF as usize
}
