//! Who is missing, where, and since when: what the states of all ranks at a moment say. Nothing here asks anybody; it is a function of a snapshot.
//!
//! | file | what |
//! | --- | --- |
//! | `waits` | who waits for whom |
//! | `windows` | the same in epochs of windows |
//! | `causes` | for whom or what all of them wait in the end |
//! | `words` | ranks, operations and times as text |
//! | `table` | one line per rank and per communicator |

mod causes;
mod table;
mod waits;
mod windows;
mod words;

#[cfg(test)]
mod tests;

pub use table::{CommRow, RankRow};
pub use words::{Ranks, duration, moment};

use crate::jobs::FailedAgent;
use crate::state::{CoreTime, Life, Phase, RankState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The states of all ranks at a moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Seconds since 1970.
    pub time: f64,
    /// What is known of each process.
    pub ranks: Vec<RankState>,
    /// Nodes that do not answer.
    pub silent: Vec<SilentNode>,
    /// Nodes without an agent, of whose ranks nothing is known.
    #[serde(default)]
    pub unmonitored: Vec<FailedAgent>,
}

/// A node that does not answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SilentNode {
    /// Its name.
    pub host: String,
    /// Since when: seconds since 1970.
    pub since: f64,
    /// The ranks that were known to be there.
    pub ranks: Vec<u32>,
}

/// What can be said of a job in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobVerdict {
    /// No process is known.
    Unknown,
    /// Calls of MPI come back.
    Moves,
    /// Nothing has moved for a while.
    Still,
    /// A process has ended too early, or a node is silent.
    Failed,
    /// All processes have left MPI.
    Finished,
}

/// What a snapshot says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// In a word.
    pub verdict: JobVerdict,
    /// In a sentence.
    pub sentence: String,
    /// Seconds since anything moved.
    pub quiet: f64,
    /// Ranks that are the cause, as far as there are any.
    pub ranks: Vec<u32>,
    /// If nothing moves: those of these (or of all, if there are none) that could not, since other processes have taken the cores of their node.
    pub starved: Vec<u32>,
    /// One line for each process.
    pub rows: Vec<RankRow>,
    /// One line for each communicator in whose operations somebody waits.
    pub comms: Vec<CommRow>,
    /// Nodes without an agent.
    #[serde(default)]
    pub unmonitored: Vec<FailedAgent>,
}

/// From so many seconds on without any move, nothing moves. Chosen by hand: shorter calls a job still that computes between two calls of MPI, longer
/// says so later.
const STILL: f64 = 1.0;
/// Who waits for so many seconds while others move is worth a word. Chosen by hand: shorter complains about ordinary imbalance, longer says it later.
const LONG: f64 = 10.0;
/// A rank that does not move lacks a core if it has waited for one for more than this part of the time, and has had less than so many seconds of one, in which it could not have computed much,
/// or, where it waits in a call, so few turns that it cannot have looked often whether the call is complete. Chosen by hand: with a priority of 15 beside twenty busy processes on two cores, a rank that
/// looks actively, and gives up its turn at once, has one for a millisecond per second, but a hundred turns.
const LACKED: f64 = 0.5;
const HARDLY_RAN: f64 = 0.1;
const HARDLY_LOOKED: u64 = 50;

/// What a snapshot says, and what has moved since an `earlier` one.
pub fn diagnose(earlier: Option<&Snapshot>, now: &Snapshot) -> Diagnosis {
    let moving = moving(earlier, now);
    let newest = now.ranks.iter().map(|rank| rank.moved.max(rank.phase_since)).fold(f64::MIN, f64::max);
    let quiet = if newest == f64::MIN || !moving.is_empty() { 0.0 } else { (now.time - newest).max(0.0) };
    let waits = waits::WaitGraph::new(now);
    let cause = causes::find(now, &waits);
    let verdict = verdict(now, quiet);
    let blamed = cause.as_ref().map_or(&[][..], |cause| &cause.ranks);
    let starved = if verdict == JobVerdict::Still { starved(now, blamed, quiet) } else { Vec::new() };
    let sentence = match (verdict, &cause) {
        (JobVerdict::Unknown, _) => unknown(now),
        (JobVerdict::Failed, Some(cause)) => cause.sentence.clone(),
        (JobVerdict::Finished, _) => format!("all {} ranks have left MPI", now.ranks.len()),
        (JobVerdict::Moves, cause) => {
            let moved = match earlier {
                Some(earlier) if now.time > earlier.time && !moving.is_empty() => {
                    let during = duration(now.time - earlier.time);
                    format!(
                        "the job makes progress: {} of {} ranks have completed MPI calls in the last {during}",
                        moving.len(),
                        now.ranks.len()
                    )
                }
                _ => format!(
                    "the job makes progress: {} ranks; the last MPI call returned {} ago",
                    now.ranks.len(),
                    duration(quiet)
                ),
            };
            match cause.as_ref().filter(|cause| cause.waited > LONG || cause.grave) {
                Some(cause) => format!("{moved}; but {}", cause.sentence),
                None => moved,
            }
        }
        (_, Some(cause)) => format!("{}: {}", no_progress(quiet, &starved), cause.sentence),
        (_, None) => format!("{}: no rank waits in MPI; {}", no_progress(quiet, &starved), outside(now)),
    };
    let ranks = cause.filter(|_| verdict != JobVerdict::Finished).map(|cause| cause.ranks).unwrap_or_default();
    Diagnosis {
        verdict,
        sentence,
        quiet,
        ranks,
        starved,
        rows: table::ranks(now),
        comms: table::comms(now),
        unmonitored: now.unmonitored.clone(),
    }
}

fn is_unwatched(rank: &RankState) -> bool {
    rank.phase == Phase::Unwatched
}

/// If nothing has moved for so many seconds.
fn verdict(now: &Snapshot, quiet: f64) -> JobVerdict {
    let over = |rank: &RankState| rank.phase == Phase::Finalized;
    let complete =
        now.ranks.iter().filter_map(|rank| rank.size).max().is_none_or(|size| size as usize <= now.ranks.len());
    match () {
        () if now.ranks.is_empty() && now.silent.is_empty() => JobVerdict::Unknown,
        () if !now.silent.is_empty() || now.ranks.iter().any(RankState::died) => JobVerdict::Failed,
        () if complete && now.ranks.iter().all(over) => JobVerdict::Finished,
        // Whether they move is not known.
        () if now.ranks.iter().all(|rank| is_unwatched(rank) || over(rank)) => JobVerdict::Unknown,
        () if quiet < STILL => JobVerdict::Moves,
        () => JobVerdict::Still,
    }
}

/// Why nothing can be said.
fn unknown(now: &Snapshot) -> String {
    let ranks: Vec<u32> = now.ranks.iter().filter(|rank| is_unwatched(rank)).filter_map(|rank| rank.rank).collect();
    if now.ranks.is_empty() {
        return match &now.unmonitored[..] {
            [] => "no process of the job is known yet".to_owned(),
            [failed, ..] => format!("no process of the job is known: {}", table::unmonitored(failed)),
        };
    }
    let do_ = if ranks.len() == 1 { "does" } else { "do" };
    format!(
        "what {} {do_} is unknown: the recorder has stopped there, and has said why on standard error",
        Ranks(&ranks)
    )
}

/// Ranks that have made calls between two snapshots.
fn moving(earlier: Option<&Snapshot>, now: &Snapshot) -> Vec<u32> {
    let Some(earlier) = earlier else { return Vec::new() };
    let before: BTreeMap<(&str, u32), (u64, Phase)> =
        earlier.ranks.iter().map(|rank| ((rank.host.as_str(), rank.process), (rank.moves, rank.phase))).collect();
    let moved = |rank: &&RankState| {
        before.get(&(rank.host.as_str(), rank.process)).is_none_or(|&known| known != (rank.moves, rank.phase))
    };
    now.ranks.iter().filter(moved).filter_map(|rank| rank.rank).collect()
}

/// Those of the ranks to blame, or of all if there are none, that have had hardly any of a core while nothing moved for so many seconds.
fn starved(now: &Snapshot, blamed: &[u32], quiet: f64) -> Vec<u32> {
    let lacks = |state: &RankState| {
        let CoreTime { ran, waited, turns, .. } = state.unmoved;
        let little = ran < HARDLY_RAN && (state.call.is_none() || turns < HARDLY_LOOKED);
        state.life == Life::Runs && state.phase != Phase::Finalized && little && waited > LACKED * quiet
    };
    let counts = |rank: &u32| blamed.is_empty() || blamed.contains(rank);
    now.ranks.iter().filter(|state| lacks(state)).filter_map(|state| state.rank).filter(counts).collect()
}

/// For how long there has been none, and why, if it is not the program.
fn no_progress(quiet: f64, starved: &[u32]) -> String {
    let time = format!("no progress for {}", duration(quiet));
    if starved.is_empty() {
        time
    } else {
        format!("{time}, in which {} for a processor core that others have taken", Ranks(starved).are("have waited"))
    }
}

/// Where ranks are that do not wait.
fn outside(now: &Snapshot) -> String {
    let ranks = now.ranks.iter().filter(|rank| rank.life == Life::Runs && rank.phase == Phase::Running);
    let (asleep, awake): (Vec<&RankState>, Vec<&RankState>) = ranks.partition(|rank| rank.sleeps());
    let what = [(awake, "compute"), (asleep, "sleep")].map(|(states, verb)| {
        let ranks: Vec<u32> = states.into_iter().filter_map(|rank| rank.rank).collect();
        (!ranks.is_empty()).then(|| format!("{} outside of MPI", Ranks(&ranks).are(verb)))
    });
    let what: Vec<String> = what.into_iter().flatten().collect();
    if what.is_empty() { "none is running".to_owned() } else { what.join(", ") }
}
