//! What has happened to processes and nodes themselves: they are dead, silent or stopped, or have not begun.

use super::{Cause, Context};
use crate::diagnose::words::{Ranks, duration};
use crate::state::{Life, Phase, RankState};

impl Context<'_> {
    pub(super) fn dead(&self) -> Option<Cause> {
        let mut dead: Vec<&RankState> = self.now.ranks.iter().filter(|state| state.died()).collect();
        let ended = |state: &RankState| state.life_since.unwrap_or(0.0);
        dead.sort_by(|one, other| ended(one).total_cmp(&ended(other)));
        let first = *dead.first()?;
        // An agent that was not let run sees the ends of several at once; or it does not know when they were.
        let together = dead.partition_point(|state| ended(state) <= ended(first)).max(1);
        let ranks: Vec<u32> = dead[..together].iter().filter_map(|state| state.rank).collect();
        let others: Vec<u32> = dead[together..].iter().filter_map(|state| state.rank).collect();
        let ago = duration(self.now.time - first.life_since.unwrap_or(self.now.time));
        let who = match (together, first.rank) {
            (1, Some(rank)) => format!("rank {rank} (process {} on {})", first.process, first.host),
            (1, None) => format!("a process without a rank (process {} on {})", first.process, first.host),
            _ if ranks.is_empty() => format!("{together} processes without a rank"),
            _ => Ranks(&ranks).to_string(),
        };
        let how = match together {
            1 => self.place(first),
            _ => "it is not known which of them first".to_owned(),
        };
        let then = match others.len() {
            0 => String::new(),
            _ => format!("; {} ended after {}", Ranks(&others), if together == 1 { "it" } else { "them" }),
        };
        Some(Cause {
            sentence: format!(
                "{who} ended {ago} ago without MPI_Finalize, {how}{then}{}",
                self.and_others_wait(&ranks)
            ),
            waited: self.waiting(&ranks).1,
            ranks,
            grave: true,
        })
    }

    pub(super) fn silent(&self) -> Option<Cause> {
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

    pub(super) fn stopped(&self) -> Option<Cause> {
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
    pub(super) fn absent(&self) -> Option<Cause> {
        let starting: Vec<u32> = self.in_phase(Phase::Init);
        if starting.is_empty() {
            return None;
        }
        // What is not known of a node without an agent is no reason to blame its ranks.
        let unknown = |rank: &u32| self.now.unmonitored.is_empty() && !self.all.states.contains_key(rank);
        let absent: Vec<u32> = (0..self.all.size).filter(unknown).collect();
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
}
