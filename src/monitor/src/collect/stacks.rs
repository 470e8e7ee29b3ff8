//! Call stacks of ranks, as the agents of their nodes find them.

use super::Collected;
use super::asking::AT_ONCE;
use crate::jobs::{AgentFile, Job};
use crate::query::{AgentReport, Question, ask};
use crate::stacks::ProcessStacks;
use crate::state::Life;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long it may take to tell stacks: longer than it may take to find them.
const STACKS: Duration = Duration::from_secs(5);

/// The call stacks of ranks, in their order, by the agents of their nodes. What cannot be told of one is said there.
pub fn stacks(job: &Job, seen: &Collected, ranks: &[u32]) -> Vec<ProcessStacks> {
    let agents = AgentFile::all(job);
    let state = |rank: u32| seen.snapshot.ranks.iter().find(|state| state.rank == Some(rank));
    let of_agent = |report: &AgentReport| {
        let here = |rank: &u32| report.ranks.iter().any(|state| state.rank == Some(*rank));
        let wanted: Vec<u32> = ranks.iter().copied().filter(here).collect();
        let agent = agents.iter().find(|agent| agent.number == report.number && agent.ended.is_none());
        agent.filter(|_| !wanted.is_empty()).map(|agent| (agent.query, wanted))
    };
    let questions: Vec<_> = seen.reports.iter().filter_map(of_agent).collect();
    let mut found: BTreeMap<u32, ProcessStacks> = BTreeMap::new();
    for some in questions.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let asked = some.iter().map(|(address, wanted)| {
                scope.spawn(|| {
                    let question = Question::Stacks(wanted.clone());
                    ask::<Vec<ProcessStacks>>(*address, &job.key, &question, STACKS).unwrap_or_default()
                })
            });
            let asked: Vec<_> = asked.collect();
            let told = asked.into_iter().filter_map(|answer| answer.join().ok()).flatten();
            found.extend(told.map(|stacks| (stacks.rank, stacks)));
        });
    }
    let none = |rank: u32| match state(rank) {
        Some(state) if state.life == Life::Gone => {
            ProcessStacks::none(rank, state.process, &state.host, "the process is gone")
        }
        Some(state) => ProcessStacks::none(rank, state.process, &state.host, "the agent of its node has not answered"),
        None => match seen.snapshot.silent.iter().find(|node| node.ranks.contains(&rank)) {
            Some(node) => ProcessStacks::none(rank, 0, &node.host, "its node is silent"),
            None => ProcessStacks::none(rank, 0, "", "no process with this rank is known"),
        },
    };
    ranks.iter().map(|&rank| found.remove(&rank).unwrap_or_else(|| none(rank))).collect()
}
