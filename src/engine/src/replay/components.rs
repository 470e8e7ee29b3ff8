//! Which processes constraints tie to each other, and which of them can contradict each other.

use crate::comm::{AnalysisRank, Transport, broadcast_value, gather_values, merge_values};
use crate::replay::program::Program;
use clc_clock::graph;
use clc_trace::{CommRank, Result};
use controlled_logical_clock::semantics::CollectiveClass;
use std::collections::BTreeSet;

/// For each process the smallest one that constraints tie it to, directly or through others; the same on all ranks. Collective over the
/// analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn components(transport: &mut dyn Transport, program: &Program) -> Result<Vec<u32>> {
    let mut forest = Forest::new(program.nodes.len());
    for channel in program.messages.outgoing.iter().filter(|channel| !channel.sends.is_empty()) {
        forest.join(program.number(channel.source).0, channel.destination.0);
    }
    for comm in program.collectives.comms.iter().filter(|comm| !comm.instances.is_empty()) {
        comm.processes.windows(2).for_each(|pair| forest.join(pair[0].0, pair[1].0));
    }
    join_members(program, &mut forest);
    joined(transport, forest)
}

/// Members of communicators whose operations are made by a location with a timeline of its own count as their process, too.
fn join_members(program: &Program, forest: &mut Forest) {
    for comm in program.collectives.comms.iter().filter(|comm| !comm.instances.is_empty()) {
        for member in &comm.members {
            for timeline in [member.timeline, member.ended_on] {
                forest.join(program.number(timeline).0, comm.processes[member.rank].0);
            }
        }
    }
}

/// For each process the smallest one that it reaches along constraints and that reaches it; the same on all ranks. Collective over the
/// analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn mutual(transport: &mut dyn Transport, program: &Program) -> Result<Vec<u32>> {
    let here = transport.rank();
    let mut forest = Forest::new(program.nodes.len());
    let mut edges: BTreeSet<(u32, u32)> = BTreeSet::new();
    for channel in program.messages.outgoing.iter().filter(|channel| !channel.sends.is_empty()) {
        edges.insert((program.number(channel.source).0, channel.destination.0));
    }
    for channel in program.messages.incoming.iter().filter(|channel| !channel.receives.is_empty()) {
        edges.insert((channel.source.0, program.number(channel.destination).0));
    }
    join_members(program, &mut forest);
    for comm in program.collectives.comms.iter().filter(|comm| comm.home == here) {
        let kinds: BTreeSet<(CollectiveClass, CommRank)> =
            comm.instances.iter().map(|instance| (instance.class, instance.root)).collect();
        for (class, root) in kinds {
            let (rank, root) = (root, comm.processes[root].0);
            let all = || comm.processes.iter().map(|process| process.0);
            // Of an inter-communicator, those of the other group.
            let members = || {
                (0..comm.size)
                    .map(CommRank)
                    .filter(|&member| member == rank || comm.constrains(rank, member))
                    .map(|member| comm.processes[member].0)
            };
            match class {
                CollectiveClass::NToN => all().for_each(|member| forest.join(root, member)),
                CollectiveClass::OneToN => edges.extend(members().map(|member| (root, member))),
                CollectiveClass::NToOne => edges.extend(members().map(|member| (member, root))),
                CollectiveClass::Prefix => edges.extend(comm.processes.windows(2).map(|pair| (pair[0].0, pair[1].0))),
                CollectiveClass::Unconstrained => {}
            }
        }
    }
    // Most are neighbours in both directions, which one rank sees.
    edges.iter().filter(|(a, b)| edges.contains(&(*b, *a))).for_each(|&(a, b)| forest.join(a, b));
    let roots = joined(transport, forest)?;
    let edges: BTreeSet<(u32, u32)> =
        edges.into_iter().map(|(a, b)| (roots[a as usize], roots[b as usize])).filter(|(a, b)| a != b).collect();
    let parts = gather_values(transport, AnalysisRank::FIRST, &edges)?;
    let strong = parts.map(|parts| {
        let strong = graph::components(roots.len(), parts.into_iter().flatten());
        roots.iter().map(|&root| strong[root as usize] as u32).collect()
    });
    broadcast_value(transport, AnalysisRank::FIRST, strong.unwrap_or_default())
}

/// The sets that the forests of all ranks make together, each named by its smallest process.
fn joined(transport: &mut dyn Transport, forest: Forest) -> Result<Vec<u32>> {
    merge_values(transport, forest.roots(), |all, part| {
        let mut forest = Forest(std::mem::take(all));
        (0..).zip(part).for_each(|(process, root)| forest.join(process, root));
        *all = forest.roots();
    })
}

/// Disjoint sets of processes: each knows a smaller one of its set, or is the smallest.
struct Forest(Vec<u32>);

impl Forest {
    fn new(processes: usize) -> Forest {
        Forest((0..processes as u32).collect())
    }

    fn root(&mut self, mut process: u32) -> u32 {
        while self.0[process as usize] != process {
            let above = self.0[process as usize];
            self.0[process as usize] = self.0[above as usize];
            process = above;
        }
        process
    }

    fn join(&mut self, a: u32, b: u32) {
        if (a.max(b) as usize) < self.0.len() {
            let (a, b) = (self.root(a), self.root(b));
            self.0[a.max(b) as usize] = a.min(b);
        }
    }

    fn roots(mut self) -> Vec<u32> {
        (0..self.0.len() as u32).map(|process| self.root(process)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::local::LocalTransport;
    use crate::matching::channels::{OutChannel, Trust};
    use crate::matching::local_timeline::LocalTimeline;
    use crate::matching::matched::Messages;
    use clc_trace::TimelineNumber;

    /// A pipeline 0 to 1 to 2, with answers of 1 to 0.
    fn program() -> Program {
        let out = |source, destination| OutChannel {
            source: LocalTimeline(source),
            destination: TimelineNumber(destination),
            host: AnalysisRank(0),
            remote: 0,
            trust: Trust::Sound,
            sends: vec![0].into(),
        };
        let messages = Messages { outgoing: vec![out(0, 1), out(1, 0), out(1, 2)], ..Messages::default() };
        Program { messages, nodes: vec![0; 4], ..Program::default() }
    }

    #[test]
    fn who_never_answers_is_tied_but_not_mutual() {
        let mut transport = LocalTransport::alone();
        assert_eq!(components(&mut transport, &program()).unwrap(), [0, 0, 0, 3]);
        assert_eq!(mutual(&mut transport, &program()).unwrap(), [0, 0, 2, 3]);
    }

    #[test]
    fn sets_are_named_by_their_smallest() {
        let mut forest = Forest::new(7);
        for (a, b) in [(5, 6), (6, 2), (4, 1), (9, 0)] {
            forest.join(a, b);
        }
        assert_eq!(forest.roots(), [0, 1, 2, 3, 1, 2, 2]);
    }
}
