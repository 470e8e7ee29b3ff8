//! Gathers what all agents of a job know: `asking` waits for their answers, `stacks` asks for call stacks.

mod asking;
mod stacks;

#[cfg(test)]
mod tests;

pub use stacks::stacks;

use self::asking::{AT_ONCE, Expectations, ask_all};

use crate::diagnose::{SilentNode, Snapshot, duration};
use crate::jobs::{self, AgentFile, Job};
use crate::query::{AgentReport, ClockRemark, Question};
use crate::state::now;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What all agents of a job say, at about the same time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Collected {
    /// The states of all ranks.
    pub snapshot: Snapshot,
    /// What each agent said; of those that have ended what they knew last.
    pub reports: Vec<AgentReport>,
    /// Number of agents that are there.
    pub alive: usize,
    /// Those that have not answered, and since when they have been asked: seconds since 1970.
    pub unheard: BTreeMap<u32, f64>,
}

/// A clock that has failed, as agents say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClockWord {
    /// What is wrong, as the agent says who noticed first.
    pub remark: ClockRemark,
    /// How many agents say so.
    pub agents: usize,
}

/// What agents say of one clock within so many seconds is the same: their windows begin when they like.
const SAME: f64 = 15.0;
/// So many data of nodes are told. Chosen by hand: more cannot be read; `--json` has all of them.
const DATA: usize = 16;

impl Collected {
    /// What the agent knows that knows most nodes: of the whole job there are many who know.
    pub fn best_informed(&self) -> Option<&AgentReport> {
        self.reports.iter().max_by_key(|report| report.members.len())
    }

    /// Clocks that have failed, the latest last.
    pub(crate) fn clock_words(&self) -> Vec<ClockWord> {
        let mut remarks: Vec<&ClockRemark> = self.reports.iter().flat_map(|report| &report.remarks).collect();
        remarks.sort_by(|one, other| one.time.total_cmp(&other.time));
        let kind = |remark: &ClockRemark| remark.what.split(' ').next().map(str::to_owned);
        let mut words: Vec<ClockWord> = Vec::new();
        for remark in remarks {
            let same = |word: &&mut ClockWord| {
                let known = &word.remark;
                (known.number, &known.clock, kind(known)) == (remark.number, &remark.clock, kind(remark))
                    && remark.time - known.time < SAME
            };
            match words.iter_mut().find(same) {
                Some(word) => word.agents += 1,
                None => words.push(ClockWord { remark: remark.clone(), agents: 1 }),
            }
        }
        words
    }

    /// Formulas, data of nodes and clocks as lines of text; nothing if there is nothing to say.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for formula in self.best_informed().into_iter().flat_map(|report| &report.formulas) {
            let value = formula.value.map_or_else(|| "not known".to_owned(), |value| format!("{value:.6}"));
            text += &format!("\n{} = {value} ({})\n", formula.name, formula.formula);
        }
        let data = self.best_informed().map_or(&[][..], |report| &report.data);
        text += if data.is_empty() { "" } else { "\n" };
        for (key, value) in data.iter().take(DATA) {
            text += &format!("{key} = {value}\n");
        }
        match data.len().saturating_sub(DATA) {
            0 => {}
            more => text += &format!("and {more} more data of nodes\n"),
        }
        for ClockWord { remark, agents } in self.clock_words() {
            let ago = duration((self.snapshot.time - remark.time).max(0.0));
            let (clock, host, what) = (&remark.clock, &remark.host, &remark.what);
            text += &format!(
                "\nthe {clock} of {host} {what}, {ago} ago (reported by {agents} of {} agents)\n",
                self.reports.len()
            );
        }
        text
    }
}

/// Asks all agents, for the places of ranks in these communicators too.
pub fn collect(job: &Job, comms: &BTreeSet<u64>) -> Collected {
    collect_again(job, comms, &BTreeMap::new())
}

fn collect_again(job: &Job, comms: &BTreeSet<u64>, unheard: &BTreeMap<u32, f64>) -> Collected {
    let asked_at = now();
    let agents = AgentFile::all(job);
    let question = Question::Report(comms.iter().copied().collect());
    let mut known = Expectations { gone: unheard.keys().copied().collect(), ..Expectations::default() };
    let asked = agents.chunks(AT_ONCE).flat_map(|some| ask_all(job, some, &question, &mut known));
    let answers: Vec<(AgentFile, Option<AgentReport>)> = asked.collect();
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
    let since_when = |number: u32| unheard.get(&number).copied().unwrap_or(asked_at);
    collected.unheard = silent.iter().map(|agent| (agent.number, since_when(agent.number))).collect();
    silent.retain(|agent| !is_replaced(agent, &collected.reports));
    for agent in silent {
        // Others may have noticed before.
        let known = collected.reports.iter().flat_map(|report| &report.members);
        let longest =
            known.filter(|known| known.number == agent.number && known.liveness != "alive").map(|known| known.seconds);
        let since = (time - longest.fold(0.0, f64::max)).min(since_when(agent.number));
        collected.snapshot.silent.push(SilentNode { host: agent.host, since, ranks: agent.ranks });
    }
    collected.snapshot.time = time;
    collected.snapshot.unmonitored = jobs::failures(job);
    collected.snapshot.ranks = collected.reports.iter().flat_map(|report| report.ranks.iter().cloned()).collect();
    collected
}

/// Whether another agent of the same node has seen all that this one had: it was killed, and started anew.
fn is_replaced(agent: &AgentFile, reports: &[AgentReport]) -> bool {
    let sees = |report: &AgentReport, rank: u32| report.ranks.iter().any(|state| state.rank == Some(rank));
    let mut others = reports.iter().filter(|report| report.number != agent.number && report.host == agent.host);
    others.any(|report| agent.ranks.iter().all(|&rank| sees(report, rank)))
}

/// Two snapshots, so long after each other: what has moved in between can be told, and who is behind in the operations that are waited for.
pub fn twice(job: &Job, pause: Duration) -> (Collected, Collected) {
    let first = collect(job, &BTreeSet::new());
    std::thread::sleep(pause);
    let comms = first.snapshot.ranks.iter().flat_map(|state| state.comms_of_call()).collect();
    let second = collect_again(job, &comms, &first.unheard);
    (first, second)
}
