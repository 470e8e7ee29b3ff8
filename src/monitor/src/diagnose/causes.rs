//! For whom or what all that wait do so in the end.

use super::Snapshot;
use super::waits::{Strength, WaitGraph};
use super::windows::Missing;
use super::words::{Ranks, duration};
use crate::state::layout::NOBODY;
use crate::state::{Life, MpiCall, Operation, Phase, RankState};
use std::cmp::Reverse;
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
/// So many places in which ranks are missing are told.
const PLACES: usize = 3;
/// So many things that ranks do are told.
const ACTIVITIES: usize = 3;

/// For whom a rank waits, and where.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Needed {
    whom: Vec<u32>,
    /// They have not come to a collective operation.
    collective: bool,
    text: String,
}

/// What a rank does: a verb in the form for several of them, where, and since when.
struct Activity {
    verb: &'static str,
    place: String,
    since: f64,
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
        .or_else(|| context.cycle(Strength::Certain))
        .or_else(|| context.missing(Strength::Partial))
        .or_else(|| context.missing(Strength::Looks))
        .or_else(|| context.cycle(Strength::Looks))
        .or_else(|| context.rest())
        .or_else(|| context.unfollowed())
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
        let (count, longest) = self.waiting(ranks);
        // Those that wait for the same ranks in the same place.
        let mut groups: BTreeMap<Needed, Vec<u32>> = BTreeMap::new();
        for (&rank, _) in self.all.waits.iter() {
            if let Some(needed) = self.needed(rank, ranks) {
                groups.entry(needed).or_default().push(rank);
            }
        }
        let mut groups: Vec<(Needed, Vec<u32>)> = groups.into_iter().collect();
        // Of several requests the one that is told may be complete: what is certain comes first.
        let strength =
            |waiting: &[u32]| waiting.iter().filter_map(|rank| Some(self.all.waits.get(rank)?.strength)).min();
        groups.sort_by_key(|(_, waiting)| Reverse((strength(waiting), waiting.len())));
        let (mut told, mut parts, mut open) = (0, Vec::new(), ranks.iter().copied().collect::<BTreeSet<u32>>());
        for (Needed { whom, collective, text }, waiting) in groups {
            if parts.len() == PLACES || !whom.iter().any(|rank| open.contains(rank)) {
                continue;
            }
            open.retain(|rank| !whom.contains(rank));
            told += waiting.len();
            let waited = duration(self.longest(&waiting));
            let wait = Ranks(&waiting).are("have waited");
            parts.push(if collective {
                format!("{} missing in {text}, where {wait} for {waited}", Ranks(&whom).are("are"))
            } else {
                format!("{wait} for {} for {waited}, in {text}", Ranks(&whom))
            });
        }
        if parts.is_empty() {
            return format!("others have waited for {} for {}", Ranks(ranks), duration(longest));
        }
        let rest = match count - told.min(count) {
            0 => String::new(),
            more => format!(" ({})", more_wait(more)),
        };
        format!("{}{rest}", parts.join(", and "))
    }

    /// What a rank waits for that some of these ranks have not done.
    fn needed(&self, rank: u32, ranks: &[u32]) -> Option<Needed> {
        let (wait, state) = (self.all.waits.get(&rank)?, self.all.states.get(&rank)?);
        let of_these =
            |on: &BTreeSet<u32>| on.iter().copied().filter(|rank| ranks.contains(rank)).collect::<Vec<u32>>();
        let whom = of_these(&wait.on);
        if whom.is_empty() {
            return None;
        }
        let everybody = match state.phase {
            Phase::Init => Some("MPI_Init"),
            Phase::Finalizing => Some("MPI_Finalize"),
            _ => None,
        };
        if let Some(text) = everybody {
            return Some(Needed { whom, collective: true, text: text.to_owned() });
        }
        let mut operations = self.operations(state);
        let Some(about) = operations.find(|about| !of_these(&self.all.needs(rank, about)).is_empty()) else {
            return Some(Needed {
                whom,
                collective: false,
                text: self.place(state).trim_start_matches("in ").to_owned(),
            });
        };
        let collective = about.sequence > 0;
        // Of several messages one is told, but all of their senders are missing.
        let whom = if collective { of_these(&self.all.needs(rank, about)) } else { whom };
        let again = if about.only_looks() { "repeated " } else { "" };
        let needs = match wait.epoch.filter(|_| about.on_epoch()) {
            Some(Missing::Unlock) => format!(", on which {} a lock", Ranks(&whom).are("hold")),
            Some(Missing::Attention) => format!(", which may need {} to be in MPI", Ranks(&whom)),
            Some(Missing::Post) => format!(", which needs MPI_Win_post on {}", Ranks(&whom)),
            Some(Missing::Complete) => format!(", which needs MPI_Win_complete on {}", Ranks(&whom)),
            None => String::new(),
        };
        // Who has not come to a collective operation is missing there, whatever others call to wait for it.
        let place = if collective { self.all.comms.operation(about, rank) } else { self.within(state, about, rank) };
        Some(Needed { whom, collective, text: format!("{again}{place}{needs}") })
    }

    /// What those do that are waited for: first who is outside of MPI, since those in MPI may wait for them in a way that is not followed.
    fn what_they_do(&self, ranks: &[u32]) -> String {
        let mut groups: BTreeMap<(bool, &str, String), (f64, Vec<u32>)> = BTreeMap::new();
        for (rank, state) in ranks.iter().filter_map(|rank| Some((*rank, *self.all.states.get(rank)?))) {
            let Activity { verb, place, since } = self.activity(state);
            let group = groups.entry((state.call.is_some(), verb, place)).or_insert((since, Vec::new()));
            group.0 = group.0.min(since);
            group.1.push(rank);
        }
        if groups.is_empty() {
            return format!("nothing is known about {}", if ranks.len() == 1 { "it" } else { "them" });
        }
        let more = groups.len() - groups.len().min(ACTIVITIES);
        let parts = groups.into_iter().take(ACTIVITIES).map(|((_, verb, place), (since, group))| {
            let they = Ranks(&group).are(verb);
            let they = match they.strip_prefix(&Ranks(&group).to_string()) {
                Some(rest) if ranks.len() == 1 => format!("it{rest}"),
                Some(rest) if group.len() == ranks.len() => format!("they{rest}"),
                _ => they,
            };
            format!("{they}{place} for {}", duration(self.now.time - since))
        });
        let parts: Vec<String> = parts.collect();
        let more = if more > 0 { format!(", and {more} more kinds of places") } else { String::new() };
        format!("{}{more}", parts.join(", "))
    }

    fn activity(&self, state: &RankState) -> Activity {
        let region = state.regions.last().map(|region| format!(" in region {region}")).unwrap_or_default();
        let since = state.moved.max(state.phase_since);
        let (verb, place, since) = match (state.phase, &state.call) {
            (Phase::Finalized, _) => ("have", " left MPI_Finalize".to_owned(), state.phase_since),
            (Phase::Unwatched, _) => ("have", " not been watched, since the recorder has given up,".to_owned(), since),
            (Phase::Init, _) => ("have", " been in MPI_Init".to_owned(), state.phase_since),
            (Phase::Finalizing, _) => ("have", " been in MPI_Finalize".to_owned(), since),
            (_, Some(call)) => {
                let what = self.all.comms.call(state).unwrap_or_default();
                ("have", format!(" been in {what}{region}"), call.since)
            }
            (_, None) => ("compute", format!("{region}, outside of MPI"), since),
        };
        Activity { verb, place, since }
    }

    fn cycle(&self, least: Strength) -> Option<Cause> {
        let cycle = self.all.cycle(least)?;
        let parts: Vec<String> = cycle
            .iter()
            .enumerate()
            .take(TOLD)
            .filter_map(|(i, rank)| {
                let (state, next) = (self.all.states.get(rank)?, cycle[(i + 1) % cycle.len()]);
                let on_next = self.operations(state).find(|operation| self.all.needs(*rank, operation).contains(&next));
                let what = on_next
                    .map(|operation| self.within(state, operation, *rank))
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
        // A lock or a group of a window is none of the business of others.
        let alone = anybody || collective.is_some() || self.operations(state).any(Operation::on_epoch);
        let outside = if alone { Vec::new() } else { self.outside() };
        let beside = if outside.is_empty() { String::new() } else { format!("; {}", self.those(&outside)) };
        let sentence = format!("{} {place}, for {}: {why}{beside}", Ranks(&same).are("wait"), duration(longest));
        let ranks = if outside.is_empty() { same } else { outside };
        Some(Cause { sentence, ranks, waited: longest, grave: false })
    }

    /// Ranks are in calls of which nothing is known but their names.
    fn unfollowed(&self) -> Option<Cause> {
        let runs =
            self.all.states.iter().filter(|(_, state)| state.life == Life::Runs && state.phase == Phase::Running);
        let inside = |call: &MpiCall| !call.polls && call.what.is_none() && call.waits.is_empty();
        let inside: Vec<(u32, &MpiCall)> =
            runs.filter_map(|(&rank, state)| Some((rank, state.call.as_ref().filter(|call| inside(call))?))).collect();
        let (_, longest) = *inside.iter().min_by(|(_, one), (_, other)| one.since.total_cmp(&other.since))?;
        let same: Vec<u32> =
            inside.iter().filter(|(_, call)| call.function == longest.function).map(|&(rank, _)| rank).collect();
        let waited = self.now.time - longest.since;
        let outside = self.outside();
        let beside = if outside.is_empty() { String::new() } else { format!("; {}", self.those(&outside)) };
        let sentence = format!(
            "{} in {} for {}, it is not known for whom{beside}",
            Ranks(&same).are("have been"),
            longest.function,
            duration(waited)
        );
        Some(Cause { sentence, ranks: if outside.is_empty() { same } else { outside }, waited, grave: false })
    }

    /// Who is outside of MPI.
    fn outside(&self) -> Vec<u32> {
        let outside =
            |state: &RankState| state.life == Life::Runs && state.phase == Phase::Running && state.call.is_none();
        self.all.states.iter().filter(|(_, state)| outside(state)).map(|(&rank, _)| rank).collect()
    }

    /// What these do, by their ranks.
    fn those(&self, ranks: &[u32]) -> String {
        let since = ranks.iter().filter_map(|rank| self.all.states.get(rank));
        let since = since.map(|state| state.moved.max(state.phase_since)).fold(self.now.time, f64::min);
        format!("{}, outside of MPI for {}", Ranks(ranks).are("compute"), duration(self.now.time - since))
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
