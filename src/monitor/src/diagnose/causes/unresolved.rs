//! Ranks that all wait: for each other, in different operations, or nobody knows for whom.

use super::{Cause, Context, more_wait};
use crate::diagnose::waits::Strength;
use crate::diagnose::words::{Ranks, duration};
use crate::state::layout::NOBODY;
use crate::state::{Life, MpiCall, Operation, Phase, RankState};
use std::collections::{BTreeMap, BTreeSet};

/// So many ranks of a cycle are told one by one. Chosen by hand: with more, the sentence cannot be read; the number of the others follows.
const TOLD: usize = 6;

impl Context<'_> {
    /// The same operation of a communicator is another one in different ranks.
    pub(super) fn different(&self) -> Option<Cause> {
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

    pub(super) fn cycle(&self, least: Strength) -> Option<Cause> {
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
            count => format!("; {}", more_wait(count, cycle.len())),
        };
        let sentence = format!(
            "{} in a cycle, for up to {}: {}{more}{}{beside}",
            Ranks(&cycle).are("wait"),
            duration(longest),
            parts.join(", "),
            self.mismatch(&cycle)
        );
        Some(Cause { sentence, ranks: cycle, waited: longest, grave: false })
    }

    /// Two ranks of which one sends to the other one what that one does not receive.
    fn mismatch(&self, cycle: &[u32]) -> &'static str {
        let &[one, other] = cycle else { return "" };
        let towards = |rank: u32, peer: u32| {
            let state = self.all.states.get(&rank);
            let messages = state.into_iter().flat_map(|state| self.operations(state));
            let messages = messages.filter(|message| message.sequence == 0 && !message.on_epoch());
            let to_it =
                move |message: &&Operation| self.all.comms.global(message.comm, message.peer, rank) == Some(peer);
            messages.filter(to_it).collect::<Vec<&Operation>>()
        };
        let (ours, theirs) = (towards(one, other), towards(other, one));
        let ([ours], [theirs]) = (&ours[..], &theirs[..]) else { return "" };
        let both = ours.function.contains("Sendrecv") || theirs.function.contains("Sendrecv");
        match () {
            () if both || ours.receives() == theirs.receives() => "",
            () if ours.comm != theirs.comm => "; their communicators differ",
            () if ours.tag != theirs.tag => "; their tags differ",
            () => "",
        }
    }

    /// Ranks wait, but it cannot be told for whom.
    pub(super) fn rest(&self) -> Option<Cause> {
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
    pub(super) fn unfollowed(&self) -> Option<Cause> {
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
            "{} in {} for {}; for whom is unknown{beside}",
            Ranks(&same).are("have been"),
            longest.function,
            duration(waited)
        );
        Some(Cause { sentence, ranks: if outside.is_empty() { same } else { outside }, waited, grave: false })
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
