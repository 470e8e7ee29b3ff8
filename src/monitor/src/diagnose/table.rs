//! One line per rank and per communicator.

use super::words::Comms;
use super::{Ranks, Snapshot, duration};
use crate::jobs::FailedAgent;
use crate::state::{Life, Phase, RankState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is said of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRow {
    /// Its rank.
    pub rank: Option<u32>,
    /// Its node.
    pub host: String,
    /// Process id.
    pub process: u32,
    /// In a word: computes, waits, tests, stopped, ended, ...
    pub state: String,
    /// For how long, in seconds.
    pub seconds: f64,
    /// The call that it is in.
    pub call: String,
    /// The innermost region.
    pub region: String,
    /// Calls that have done something.
    pub moves: u64,
}

/// What is said of one communicator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommRow {
    /// Its identity.
    pub comm: u64,
    /// Its name.
    pub name: String,
    /// The latest operation that somebody waits in, and its function.
    pub sequence: u64,
    /// See above.
    pub function: String,
    /// How many of its members wait in it, of how many.
    pub waiting: u32,
    /// See above.
    pub size: u32,
    /// Members that have not begun it.
    pub behind: Vec<u32>,
}

/// A line for each process, in the order of ranks.
pub(super) fn ranks(now: &Snapshot) -> Vec<RankRow> {
    let comms = Comms::new(&now.ranks);
    let mut rows: Vec<RankRow> = now.ranks.iter().map(|state| row(now, &comms, state)).collect();
    rows.sort_by(|one, other| {
        (one.rank.unwrap_or(u32::MAX), one.process).cmp(&(other.rank.unwrap_or(u32::MAX), other.process))
    });
    rows
}

fn row(now: &Snapshot, comms: &Comms, state: &RankState) -> RankRow {
    let call = state.call.as_ref();
    let word = state.word();
    let since = match (state.life, state.phase, call) {
        (Life::Gone, Phase::Finalized, _) => state.phase_since,
        (Life::Gone | Life::Stopped, _, _) => state.life_since.unwrap_or(now.time),
        (_, Phase::Running, Some(call)) => call.since,
        (_, Phase::Running, None) => state.moved,
        _ => state.phase_since,
    };
    let call = match state.phase {
        Phase::Init => "MPI_Init".to_owned(),
        Phase::Finalizing => "MPI_Finalize".to_owned(),
        _ => comms.call(state).unwrap_or_default(),
    };
    RankRow {
        rank: state.rank,
        host: state.host.clone(),
        process: state.process,
        state: word.to_owned(),
        seconds: (now.time - since).max(0.0),
        call,
        region: state.regions.last().cloned().unwrap_or_default(),
        moves: state.moves,
    }
}

/// A line for each communicator in whose operations somebody waits.
pub(super) fn comms(now: &Snapshot) -> Vec<CommRow> {
    let known = Comms::new(&now.ranks);
    let mut latest: BTreeMap<u64, (u64, &str, u32)> = BTreeMap::new();
    for operation in
        now.ranks.iter().filter_map(|state| state.call.as_ref()).flat_map(|call| call.what.iter().chain(&call.waits))
    {
        let Some(comm) = operation.comm.filter(|_| operation.sequence > 0) else { continue };
        let entry = latest.entry(comm).or_insert((0, "", 0));
        if operation.sequence > entry.0 {
            *entry = (operation.sequence, &operation.function, 0);
        }
        entry.2 += u32::from(operation.sequence == entry.0);
    }
    let row = |(comm, (sequence, function, waiting)): (u64, (u64, &str, u32))| {
        let behind = now.ranks.iter().filter_map(|state| {
            let membership = state.comms.iter().find(|membership| membership.comm == comm)?;
            (membership.sequence < sequence).then_some(state.rank?)
        });
        CommRow {
            comm,
            name: known.name(Some(comm)),
            sequence,
            function: function.to_owned(),
            waiting,
            size: known.size(comm),
            behind: behind.collect(),
        }
    };
    latest.into_iter().map(row).collect()
}

impl RankRow {
    /// Rank as text; `-` if it is not known.
    pub fn name(&self) -> String {
        self.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string())
    }
}

impl CommRow {
    /// Who is behind, as text.
    pub fn behind(&self) -> String {
        if self.behind.is_empty() { "nobody".to_owned() } else { Ranks(&self.behind).to_string() }
    }
}

impl super::Diagnosis {
    /// The sentence, then the tables, as lines of text that fit into 80 columns but for long names.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.sentence);
        if !self.rows.is_empty() {
            text += &format!(
                "\n{:>6}  {:<12} {:>8}  {:<9} {:>8}  {}\n",
                "rank", "node", "process", "state", "for", "call, region"
            );
        }
        for row in &self.rows {
            let region = if row.region.is_empty() { String::new() } else { format!("[{}]", row.region) };
            let gap = if row.call.is_empty() || region.is_empty() { "" } else { " " };
            let (rank, seconds) = (row.name(), duration(row.seconds));
            let line = format!(
                "{rank:>6}  {:<12} {:>8}  {:<9} {seconds:>8}  {}{gap}{region}",
                row.host, row.process, row.state, row.call
            );
            text += line.trim_end();
            text.push('\n');
        }
        for failed in &self.unmonitored {
            text += &format!("\n{}\n", unmonitored(failed));
        }
        for comm in &self.comms {
            text += &format!(
                "\n{}: operation {} ({}): {} of {} wait, behind: {}\n",
                comm.name,
                comm.sequence,
                comm.function,
                comm.waiting,
                comm.size,
                comm.behind()
            );
        }
        text
    }
}

/// That a node has no agent, and why.
pub(super) fn unmonitored(failed: &FailedAgent) -> String {
    format!("node {} is not monitored: {}", failed.host, failed.why)
}
