//! Gathers what all agents of a job know.

use crate::diagnose::{SilentNode, Snapshot};
use crate::jobs::{AgentFile, Job, read_json};
use crate::query::{Question, Report, ask};
use crate::state::now;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_millis(800);
/// So many agents are asked at the same time.
const AT_ONCE: usize = 64;

/// What all agents of a job say, at about the same time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Collected {
    /// The states of all ranks.
    pub snapshot: Snapshot,
    /// What each agent said; of those that have ended what they knew last.
    pub reports: Vec<Report>,
    /// Number of agents that are there.
    pub alive: usize,
}

/// Asks all agents, for the places of ranks in these communicators too.
pub fn collect(job: &Job, comms: &BTreeSet<u64>) -> Collected {
    let agents = AgentFile::all(job);
    let question = Question::Report(comms.iter().copied().collect());
    let mut answers: Vec<(AgentFile, Option<Report>)> = Vec::new();
    for some in agents.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let asked: Vec<_> = some
                .iter()
                .map(|agent| {
                    let question = &question;
                    (agent, scope.spawn(move || report(job, agent, question)))
                })
                .collect();
            answers.extend(asked.into_iter().map(|(agent, answer)| (agent.clone(), answer.join().ok().flatten())));
        });
    }
    let mut collected = Collected::default();
    let mut silent = Vec::new();
    for (agent, answer) in answers {
        match answer {
            Some(report) => {
                collected.alive += usize::from(agent.ended.is_none());
                collected.reports.push(report);
            }
            None => silent.push(agent),
        }
    }
    let time = now();
    silent.retain(|agent| !is_replaced(agent, &collected.reports));
    for agent in silent {
        // Others may have noticed before.
        let known = collected.reports.iter().flat_map(|report| &report.members);
        let longest =
            known.filter(|known| known.number == agent.number && known.liveness != "alive").map(|known| known.seconds);
        let since = time - longest.fold(0.0, f64::max);
        collected.snapshot.silent.push(SilentNode { host: agent.host, since, ranks: agent.ranks });
    }
    collected.snapshot.time = time;
    collected.snapshot.ranks = collected.reports.iter().flat_map(|report| report.ranks.iter().cloned()).collect();
    collected
}

/// Whether another agent of the same node has seen all that this one had: it was killed, and started anew.
fn is_replaced(agent: &AgentFile, reports: &[Report]) -> bool {
    let sees = |report: &Report, rank: u32| report.ranks.iter().any(|state| state.rank == Some(rank));
    let mut others = reports.iter().filter(|report| report.number != agent.number && report.host == agent.host);
    others.any(|report| agent.ranks.iter().all(|&rank| sees(report, rank)))
}

fn report(job: &Job, agent: &AgentFile, question: &Question) -> Option<Report> {
    if agent.ended.is_some() {
        return read_json(&AgentFile::last(job, agent.number)).ok();
    }
    match ask(agent.query, &job.key, question, PATIENCE) {
        Ok(report) => Some(report),
        // It may have ended since its file was read.
        Err(_) => read_json(&AgentFile::last(job, agent.number)).ok(),
    }
}

/// Two snapshots, so long after each other: what has moved in between can be told, and who is behind in the operations that are waited for.
pub fn twice(job: &Job, pause: Duration) -> (Collected, Collected) {
    let first = collect(job, &BTreeSet::new());
    std::thread::sleep(pause);
    let comms = first.snapshot.ranks.iter().flat_map(|state| state.comms_of_call()).collect();
    let second = collect(job, &comms);
    (first, second)
}
