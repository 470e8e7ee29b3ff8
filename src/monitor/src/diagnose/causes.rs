//! For whom or what all that wait do so in the end.

use super::Snapshot;
use super::waits::{Strength, WaitGraph};
use super::windows::Missing;
use super::words::{Ranks, duration};
use crate::state::layout::NOBODY;
use crate::state::{Life, Operation, Phase, RankState};
use std::collections::{BTreeMap, BTreeSet};

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

/// So many ranks of a cycle are told one by one.
const TOLD: usize = 6;

/// The gravest cause that there is.
pub(super) fn find(now: &Snapshot, all: &WaitGraph) -> Option<Cause> {
    let context = Context { now, all };
    context
        .dead()
        .or_else(|| context.silent())
        .or_else(|| context.stopped())
        .or_else(|| context.absent())
        .or_else(|| context.different())
        .or_else(|| context.cycle(Strength::Certain))
        .or_else(|| context.missing(Strength::Partial))
        .or_else(|| context.missing(Strength::Looks))
        .or_else(|| context.cycle(Strength::Looks))
        .or_else(|| context.rest())
}

fn more_wait(count: usize) -> String {
    if count == 1 { "1 more rank waits for them".to_owned() } else { format!("{count} more ranks wait for them") }
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

    fn dead(&self) -> Option<Cause> {
        let mut dead: Vec<&RankState> = self.now.ranks.iter().filter(|state| state.died()).collect();
        dead.sort_by(|one, other| one.life_since.unwrap_or(0.0).total_cmp(&other.life_since.unwrap_or(0.0)));
        let first = *dead.first()?;
        let who = first.rank.map_or_else(|| "a process without a rank".to_owned(), |rank| format!("rank {rank}"));
        let ranks: Vec<u32> = first.rank.into_iter().collect();
        let others: Vec<u32> = dead[1..].iter().filter_map(|state| state.rank).collect();
        let ago = self.now.time - first.life_since.unwrap_or(self.now.time);
        let then = match others.len() {
            0 => String::new(),
            _ => format!("; {} ended after it", Ranks(&others)),
        };
        Some(Cause {
            sentence: format!(
                "{who} (process {} on {}) ended {} ago without MPI_Finalize, {}{then}{}",
                first.process,
                first.host,
                duration(ago),
                self.place(first),
                self.and_others_wait(&ranks)
            ),
            waited: self.waiting(&ranks).1,
            ranks,
            grave: true,
        })
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

    fn silent(&self) -> Option<Cause> {
        let node = self.now.silent.iter().min_by(|one, other| one.since.total_cmp(&other.since))?;
        let ranks = node.ranks.clone();
        let whose = if ranks.is_empty() { String::new() } else { format!(" ({})", Ranks(&ranks)) };
        let more = match self.now.silent.len() {
            1 => String::new(),
            count => format!("; {count} silent nodes in all"),
        };
        let ago = duration(self.now.time - node.since);
        let waits = self.and_others_wait(&ranks);
        Some(Cause {
            sentence: format!("node {}{whose} has been silent for {ago}{more}{waits}", node.host),
            waited: self.waiting(&ranks).1,
            ranks,
            grave: true,
        })
    }

    fn stopped(&self) -> Option<Cause> {
        let stopped: Vec<&RankState> = self.all.states.values().copied().filter(|s| s.life == Life::Stopped).collect();
        let first = stopped
            .iter()
            .min_by(|one, other| one.life_since.unwrap_or(0.0).total_cmp(&other.life_since.unwrap_or(0.0)))?;
        let ranks: Vec<u32> = stopped.iter().filter_map(|state| state.rank).collect();
        let ago = duration(self.now.time - first.life_since.unwrap_or(self.now.time));
        let which = match ranks.len() {
            1 => format!(" (process {} on {})", first.process, first.host),
            _ => String::new(),
        };
        Some(Cause {
            sentence: format!(
                "{} by a signal or a debugger for {ago}{which}, {}{}",
                Ranks(&ranks).are("have been stopped"),
                self.place(first),
                self.and_others_wait(&ranks)
            ),
            waited: self.waiting(&ranks).1,
            ranks,
            grave: true,
        })
    }

    /// Ranks that have not come to `MPI_Init`.
    fn absent(&self) -> Option<Cause> {
        let starting: Vec<u32> = self.in_phase(Phase::Init);
        if starting.is_empty() {
            return None;
        }
        let absent: Vec<u32> = (0..self.all.size).filter(|rank| !self.all.states.contains_key(rank)).collect();
        let longest = self.longest(&starting);
        let waited = duration(longest);
        let sentence = match (absent.is_empty(), self.all.size as usize == starting.len()) {
            (false, _) => format!(
                "{} not called MPI_Init, in which {} for {waited}",
                Ranks(&absent).are("have"),
                Ranks(&starting).are("have waited")
            ),
            (true, true) => format!("all {} ranks have been in MPI_Init for {waited}", starting.len()),
            (true, false) => format!("{} in MPI_Init for {waited}", Ranks(&starting).are("have been")),
        };
        let ranks = if absent.is_empty() { starting } else { absent };
        Some(Cause { sentence, ranks, waited: longest, grave: false })
    }

    fn in_phase(&self, phase: Phase) -> Vec<u32> {
        let there = self.all.states.iter().filter(|(_, state)| state.phase == phase && state.life == Life::Runs);
        there.map(|(&rank, _)| rank).collect()
    }

    fn longest(&self, ranks: &[u32]) -> f64 {
        let waits = ranks.iter().filter_map(|rank| self.all.waits.get(rank));
        waits.map(|wait| self.now.time - wait.since).fold(0.0, f64::max)
    }

    /// The same operation of a communicator is another one in different ranks.
    fn different(&self) -> Option<Cause> {
        type Kind<'a> = (&'a str, i32);
        let mut found: BTreeMap<(u64, u64), BTreeMap<Kind, Vec<u32>>> = BTreeMap::new();
        for (&rank, state) in self.all.states.iter().filter(|(rank, _)| self.all.waits.contains_key(rank)) {
            for operation in self.operations(state) {
                if let (Some(comm), 1..) = (operation.comm, operation.sequence) {
                    // The groups of an inter-communicator name different roots.
                    let root = if self.all.comms.is_inter(comm) { NOBODY } else { operation.peer };
                    let kinds = found.entry((comm, operation.sequence)).or_default();
                    kinds.entry((&operation.function, root)).or_default().push(rank);
                }
            }
        }
        let ((comm, sequence), kinds) = found.into_iter().find(|(_, kinds)| kinds.len() > 1)?;
        let ranks: Vec<u32> = kinds.values().flatten().copied().collect();
        let roots: BTreeSet<i32> = kinds.keys().map(|&(_, root)| root).collect();
        let list: Vec<String> = kinds
            .iter()
            .map(|(&(function, root), ranks)| {
                let root = if roots.len() > 1 && root >= 0 { format!(" with root {root}") } else { String::new() };
                format!("{} in {function}{root}", Ranks(ranks).are("are"))
            })
            .collect();
        let name = self.all.comms.name(Some(comm));
        let longest = self.longest(&ranks);
        let sentence = format!(
            "ranks disagree on operation {sequence} of {name}: {}, for up to {}",
            list.join(", "),
            duration(longest)
        );
        // Who is in the minority is to be looked at.
        let fewest = kinds.into_values().min_by_key(Vec::len).unwrap_or_default();
        Some(Cause { sentence, ranks: fewest, waited: longest, grave: true })
    }

    fn operations<'a>(&self, state: &'a RankState) -> impl Iterator<Item = &'a Operation> + use<'a> {
        state.call.iter().flat_map(|call| call.what.iter().chain(&call.waits))
    }

    /// Ranks that wait for nobody, and for which others wait at least that much.
    fn missing(&self, least: Strength) -> Option<Cause> {
        let mut waited_for: BTreeMap<u32, usize> = BTreeMap::new();
        for &rank in self.all.waits.keys() {
            for other in self.all.closure(rank, least) {
                if self.all.is_end(other) {
                    *waited_for.entry(other).or_insert(0) += 1;
                }
            }
        }
        let most = *waited_for.values().max()?;
        let ranks: Vec<u32> = waited_for.iter().filter(|&(_, &count)| count == most).map(|(&rank, _)| rank).collect();
        let (_, longest) = self.waiting(&ranks);
        let sentence = format!("{}; {}", self.missing_where(&ranks), self.what_they_do(&ranks));
        Some(Cause { sentence, ranks, waited: longest, grave: false })
    }

    /// What others wait for that these ranks have not done.
    fn missing_where(&self, ranks: &[u32]) -> String {
        let on_them =
            |rank: &u32| self.all.waits.get(rank).is_some_and(|wait| ranks.iter().any(|rank| wait.on.contains(rank)));
        let direct: Vec<u32> = self.all.waits.keys().copied().filter(on_them).collect();
        let (count, longest) = self.waiting(ranks);
        let mut groups: BTreeMap<String, (bool, Vec<u32>)> = BTreeMap::new();
        for &rank in &direct {
            let Some(state) = self.all.states.get(&rank) else { continue };
            let (collective, text) = match state.phase {
                Phase::Init => (true, "MPI_Init".to_owned()),
                Phase::Finalizing => (true, "MPI_Finalize".to_owned()),
                _ => {
                    let mut operations = self.operations(state);
                    let about = operations.find(|operation| {
                        let peer = self.all.comms.global(operation.comm, operation.peer, rank);
                        operation.sequence > 0 || operation.on_epoch() || peer.is_some_and(|peer| ranks.contains(&peer))
                    });
                    let again = if about.is_some_and(Operation::only_looks) { "repeated " } else { "" };
                    let epoch = self.all.waits.get(&rank).and_then(|wait| wait.epoch);
                    let needs = match epoch.filter(|_| about.is_some_and(Operation::on_epoch)) {
                        Some(Missing::Unlock) => format!(", on which {} a lock", Ranks(ranks).are("hold")),
                        Some(Missing::Attention) => format!(", which may need {} to be in MPI", Ranks(ranks)),
                        Some(Missing::Post) => format!(", which needs MPI_Win_post on {}", Ranks(ranks)),
                        Some(Missing::Complete) => format!(", which needs MPI_Win_complete on {}", Ranks(ranks)),
                        None => String::new(),
                    };
                    let text = about.map(|about| format!("{again}{}{needs}", self.all.comms.operation(about, rank)));
                    let text = text.unwrap_or_default();
                    (about.is_some_and(|about| about.sequence > 0), text)
                }
            };
            let group = groups.entry(text).or_insert((collective, Vec::new()));
            group.1.push(rank);
        }
        let Some((text, (collective, waiting))) = groups.into_iter().max_by_key(|(_, (_, ranks))| ranks.len()) else {
            return format!("others have waited for {} for {}", Ranks(ranks), duration(longest));
        };
        let rest = match count - waiting.len().min(count) {
            0 => String::new(),
            more => format!(" ({})", more_wait(more)),
        };
        let waited = duration(self.longest(&waiting));
        if collective {
            let wait = Ranks(&waiting).are("have waited");
            format!("{} missing in {text}, where {wait} for {waited}{rest}", Ranks(ranks).are("are"))
        } else {
            format!("{} for {} for {waited}, in {text}{rest}", Ranks(&waiting).are("have waited"), Ranks(ranks))
        }
    }

    /// What those do that are waited for.
    fn what_they_do(&self, ranks: &[u32]) -> String {
        let Some(state) = ranks.first().and_then(|rank| self.all.states.get(rank)) else {
            return format!("nothing is known about {}", if ranks.len() == 1 { "it" } else { "them" });
        };
        let it = if ranks.len() == 1 { "it".to_owned() } else { format!("rank {}", ranks[0]) };
        let since = duration(self.now.time - state.moved.max(state.phase_since));
        let region = state.regions.last().map(|region| format!(" in region {region}")).unwrap_or_default();
        match (state.phase, &state.call) {
            (Phase::Finalized, _) => format!("{it} has left MPI_Finalize"),
            (Phase::Unwatched, _) => format!("what {it} does is not known: its recorder has given up"),
            (Phase::Init, _) => format!("{it} is in MPI_Init"),
            (Phase::Finalizing, _) => format!("{it} has been in MPI_Finalize for {since}"),
            (_, Some(call)) if call.polls => {
                let what = self.all.comms.call(state).unwrap_or_default();
                format!("{it} has been in {what}{region} for {}", duration(self.now.time - call.since))
            }
            (_, Some(call)) => {
                format!("{it} has been in {}{region} for {}", call.function, duration(self.now.time - call.since))
            }
            (_, None) => format!("{it} computes{region}, outside of MPI for {since}"),
        }
    }

    fn cycle(&self, least: Strength) -> Option<Cause> {
        let cycle = self.all.cycle(least)?;
        let parts: Vec<String> = cycle
            .iter()
            .enumerate()
            .take(TOLD)
            .filter_map(|(i, rank)| {
                let (state, next) = (self.all.states.get(rank)?, cycle[(i + 1) % cycle.len()]);
                let on_next = self.operations(state).find(|operation| {
                    let peer = self.all.comms.global(operation.comm, operation.peer, *rank);
                    peer == Some(next) && operation.sequence == 0
                });
                let what = on_next
                    .map(|operation| self.all.comms.operation(operation, *rank))
                    .or_else(|| self.all.comms.call(state))
                    .unwrap_or_else(|| self.place(state).trim_start_matches("in ").to_owned());
                Some(format!("rank {rank} in {what}"))
            })
            .collect();
        let more = if cycle.len() > TOLD { format!(", and {} more", cycle.len() - TOLD) } else { String::new() };
        let longest = self.longest(&cycle);
        let (others, _) = self.waiting(&cycle);
        let beside = match others.saturating_sub(cycle.len()) {
            0 => String::new(),
            count => format!("; {}", more_wait(count)),
        };
        let sentence = format!(
            "{} in a cycle, for up to {}: {}{more}{beside}",
            Ranks(&cycle).are("wait"),
            duration(longest),
            parts.join(", ")
        );
        Some(Cause { sentence, ranks: cycle, waited: longest, grave: false })
    }

    /// Ranks wait, but it cannot be told for whom.
    fn rest(&self) -> Option<Cause> {
        let (&rank, _) = self.all.waits.iter().max_by(|(_, one), (_, other)| other.since.total_cmp(&one.since))?;
        let state = self.all.states.get(&rank)?;
        let same: Vec<u32> = self.all.waits.keys().copied().filter(|other| self.alike(*other, state)).collect();
        let longest = self.longest(&same);
        let anybody = self.all.waits.get(&rank).is_some_and(|wait| wait.anybody);
        let collective = self.operations(state).find(|operation| operation.sequence > 0);
        let inter = collective.and_then(|operation| operation.comm).is_some_and(|comm| self.all.comms.is_inter(comm));
        let why = match (anybody, collective) {
            (true, _) => "no matching message has been sent",
            (_, Some(_)) if inter => "all required members have begun it",
            (_, Some(_)) => "all members have begun it",
            _ => "the cause cannot be determined",
        };
        let place = self.place(state);
        let sentence = format!("{} {place}, for {}: {why}", Ranks(&same).are("wait"), duration(longest));
        Some(Cause { sentence, ranks: same, waited: longest, grave: false })
    }

    fn alike(&self, rank: u32, state: &RankState) -> bool {
        let Some(other) = self.all.states.get(&rank) else { return false };
        other.phase == state.phase
            && match (&other.call, &state.call) {
                (Some(one), Some(other)) => one.what == other.what && one.waits == other.waits,
                (one, other) => one.is_none() == other.is_none(),
            }
    }
}
