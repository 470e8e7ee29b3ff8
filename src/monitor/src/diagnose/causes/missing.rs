//! Ranks that wait for nobody, but for which others wait: where they are missing, and what they do instead.

use super::{Cause, Context, more_wait};
use crate::diagnose::waits::Strength;
use crate::diagnose::windows::Missing;
use crate::diagnose::words::{Ranks, duration};
use crate::state::{Phase, RankState};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// So many places in which ranks are missing are told. Chosen by hand: a sentence with more cannot be read.
const PLACES: usize = 3;
/// So many things that ranks do are told. Chosen by hand: a sentence with more cannot be read.
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

impl Context<'_> {
    /// Ranks that wait for nobody, and for which others wait at least that much.
    pub(super) fn missing(&self, least: Strength) -> Option<Cause> {
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

    /// Ranks that have called `MPI_Finalize` without what others wait for.
    pub(super) fn left(&self) -> Option<Cause> {
        let finalizing = |state: &RankState| state.phase == Phase::Finalizing;
        let waits = self.all.waits.iter().filter(|(rank, wait)| {
            wait.strength == Strength::Certain && !self.all.states.get(rank).is_some_and(|state| finalizing(state))
        });
        let needed = waits.flat_map(|(_, wait)| wait.on.iter().copied());
        let left = |rank: &u32| self.all.states.get(rank).is_some_and(|state| finalizing(state));
        let ranks: Vec<u32> = needed.filter(left).collect::<BTreeSet<u32>>().into_iter().collect();
        if ranks.is_empty() {
            return None;
        }
        let (_, longest) = self.waiting(&ranks);
        let sentence = format!("{}; {}", self.missing_where(&ranks), self.what_they_do(&ranks));
        Some(Cause { sentence, ranks, waited: longest, grave: false })
    }

    /// What others wait for that these ranks have not done.
    fn missing_where(&self, ranks: &[u32]) -> String {
        let (count, longest) = self.waiting(ranks);
        // In MPI_Finalize they wait for each other.
        let count = count - ranks.iter().filter(|rank| self.all.waits.contains_key(rank)).count().min(count);
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
        // Who waits for nobody else is nearer to the cause than who would wait for others as well.
        let only = |waiting: &[u32]| {
            let waits = waiting.iter().filter_map(|rank| self.all.waits.get(rank));
            waits.flat_map(|wait| &wait.on).all(|rank| ranks.contains(rank))
        };
        groups.sort_by_key(|(_, waiting)| Reverse((strength(waiting), only(waiting), waiting.len())));
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
            more => format!(" ({})", more_wait(more, ranks.len())),
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
        let needs = match wait.epoch.filter(|_| about.on_epoch() || about.of_some_members()) {
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
            (Phase::Unwatched, _) => ("have", " been unmonitored, since the recorder stopped,".to_owned(), since),
            (Phase::Init, _) => ("have", " been in MPI_Init".to_owned(), state.phase_since),
            (Phase::Finalizing, _) => ("have", " been in MPI_Finalize".to_owned(), since),
            (_, Some(call)) => {
                let what = self.all.comms.call(state).unwrap_or_default();
                ("have", format!(" been in {what}{region}"), call.since)
            }
            (_, None) if state.sleeps() => ("sleep", format!("{region}, outside of MPI"), since),
            (_, None) => ("compute", format!("{region}, outside of MPI"), since),
        };
        Activity { verb, place, since }
    }
}
