//! For whom or what all that wait do so in the end.
//!
//! | file | what |
//! | --- | --- |
//! | `processes` | what has happened to processes and nodes themselves |
//! | `missing` | ranks for which others wait, and what these do instead |
//! | `unresolved` | ranks that all wait: for each other, in different operations, or nobody knows for whom |

mod missing;
mod processes;
mod unresolved;

use super::Snapshot;
use super::waits::{Strength, WaitGraph};
use super::words::{Ranks, duration};
use crate::state::{Life, Operation, Phase, RankState};

/// Why others wait.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cause {
    /// In words.
    pub sentence: String,
    /// The ranks that are to blame, or in the cycle.
    pub ranks: Vec<u32>,
    /// The longest time that somebody has waited, in seconds.
    pub waited: f64,
    /// It is one whether anybody waits or not.
    pub grave: bool,
}

/// The gravest cause that there is.
pub(super) fn find(now: &Snapshot, all: &WaitGraph) -> Option<Cause> {
    let context = Context { now, all };
    context
        .dead()
        .or_else(|| context.silent())
        .or_else(|| context.stopped())
        .or_else(|| context.absent())
        .or_else(|| context.different())
        .or_else(|| context.left())
        .or_else(|| context.cycle(Strength::Certain))
        .or_else(|| context.missing(Strength::Partial))
        .or_else(|| context.missing(Strength::Looks))
        .or_else(|| context.cycle(Strength::Looks))
        .or_else(|| context.rest())
        .or_else(|| context.unfollowed())
}

/// So many others wait for so many ranks.
fn more_wait(count: usize, for_ranks: usize) -> String {
    let whom = if for_ranks == 1 { "it" } else { "them" };
    if count == 1 { format!("1 more rank waits for {whom}") } else { format!("{count} more ranks wait for {whom}") }
}

struct Context<'a> {
    now: &'a Snapshot,
    all: &'a WaitGraph<'a>,
}

impl Context<'_> {
    /// How many wait for any of these in the end, and for how long the longest of them.
    fn waiting(&self, ranks: &[u32]) -> (usize, f64) {
        let waits = self.all.waits.iter().filter(|&(&rank, _)| {
            let closure = self.all.closure(rank, Strength::Looks);
            ranks.iter().any(|rank| closure.contains(rank))
        });
        waits.fold((0, 0.0), |(count, longest), (_, wait)| (count + 1, f64::max(longest, self.now.time - wait.since)))
    }

    fn and_others_wait(&self, ranks: &[u32]) -> String {
        match self.waiting(ranks) {
            (0, _) => String::new(),
            (1, longest) => format!("; 1 rank waits, for {}", duration(longest)),
            (count, longest) => format!("; {count} ranks wait, for up to {}", duration(longest)),
        }
    }

    /// Where a rank is.
    fn place(&self, state: &RankState) -> String {
        let region = state.regions.last().map(|region| format!(" in region {region}")).unwrap_or_default();
        match (state.phase, self.all.comms.call(state)) {
            (Phase::Init, _) => "in MPI_Init".to_owned(),
            (Phase::Finalizing, _) => "in MPI_Finalize".to_owned(),
            (_, Some(call)) => format!("in {call}{region}"),
            (_, None) if state.moves == 0 => format!("after MPI_Init{region}"),
            (_, None) => format!("outside of MPI{region}"),
        }
    }

    fn longest(&self, ranks: &[u32]) -> f64 {
        let waits = ranks.iter().filter_map(|rank| self.all.waits.get(rank));
        waits.map(|wait| self.now.time - wait.since).fold(0.0, f64::max)
    }

    /// An operation that a rank waits for, with the call in which it does.
    fn within(&self, state: &RankState, operation: &Operation, rank: u32) -> String {
        let text = self.all.comms.operation(operation, rank);
        match &state.call {
            Some(call) if call.what.as_ref() != Some(operation) => {
                let among = match call.requests {
                    0 | 1 => String::new(),
                    count => format!("{count} requests, among them "),
                };
                format!("{}{} for {among}{text}", if call.polls { "repeated " } else { "" }, call.function)
            }
            _ => text,
        }
    }

    fn operations<'a>(&self, state: &'a RankState) -> impl Iterator<Item = &'a Operation> + use<'a> {
        state.call.iter().flat_map(|call| call.what.iter().chain(&call.waits))
    }

    /// Who is outside of MPI.
    fn outside(&self) -> Vec<u32> {
        let outside =
            |state: &RankState| state.life == Life::Runs && state.phase == Phase::Running && state.call.is_none();
        self.all.states.iter().filter(|(_, state)| outside(state)).map(|(&rank, _)| rank).collect()
    }

    /// What these do, by their ranks.
    fn those(&self, ranks: &[u32]) -> String {
        let sleeps = |rank: &&u32| self.all.states.get(rank).is_some_and(|state| state.sleeps());
        let (asleep, awake): (Vec<u32>, Vec<u32>) = ranks.iter().partition(sleeps);
        let what = [(awake, "compute"), (asleep, "sleep")].map(|(ranks, verb)| {
            let since = ranks.iter().filter_map(|rank| self.all.states.get(rank));
            let since = since.map(|state| state.moved.max(state.phase_since)).fold(self.now.time, f64::min);
            let outside = duration(self.now.time - since);
            (!ranks.is_empty()).then(|| format!("{}, outside of MPI for {outside}", Ranks(&ranks).are(verb)))
        });
        what.into_iter().flatten().collect::<Vec<String>>().join("; ")
    }
}
