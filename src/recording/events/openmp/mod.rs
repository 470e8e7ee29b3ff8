//! Threads of OpenMP: which teams there were, what their regions are called, and the steps of the threads of one process.
//!
//! The runtime tells each thread what it does. Three things it tells late, or not at all; they are put right here:
//!
//! - That a thread other than the first leaves the barrier at the end of a parallel region, and its team: LLVM's says so before the others have arrived, or when the thread has
//!   something else to do. In the trace both are when the first thread, which has waited for all, leaves the team.
//! - That a lock is released: afterwards, when another thread may have it already. Then it was released when that one had it, at the latest.
//! - Which threads make a team: that follows from those that have joined it. A parallel region of which not everything was recorded has no steps of threads.

pub(super) mod state;

use crate::recording::events::ProcessEvents;
use crate::recording::events::openmp::state::{OpenMpLock, OpenMpThread, OpenParallel, OpenTask, OpenTeam};
use crate::recording::raw::format::openmp::kind;
use crate::recording::raw::records::OpenMp;
use clc_trace::{Event, Result, ThreadEvent, ThreadLock, ThreadTask};

/// OTF2 `Paradigm` OpenMP.
const PARADIGM: u8 = 3;

impl ProcessEvents<'_, '_> {
    fn step(&mut self, thread: usize, time: u64, step: ThreadEvent) -> Result<()> {
        self.emit(thread, time, &Event::Thread(step))
    }

    fn of_thread(&mut self, thread: usize) -> Option<&mut OpenMpThread> {
        self.openmp.threads.get_mut(thread)
    }

    /// Something else follows after a thread has left a barrier: it was not the last one of its region, unless its team ends now.
    pub(super) fn leave_barrier(&mut self, thread: usize, ends: bool) -> Result<()> {
        match self.of_thread(thread).and_then(|here| here.barrier_end.take()) {
            Some(time) if !ends => self.end_of_kind(thread, time, kind::IMPLICIT_BARRIER),
            _ => Ok(()),
        }
    }

    /// Leaves the innermost region of a kind.
    fn end_of_kind(&mut self, thread: usize, time: u64, kind: u64) -> Result<()> {
        let Some(here) = self.of_thread(thread) else { return Ok(()) };
        let Some(place) = here.regions.iter().rposition(|&(open, _)| open == kind) else { return Ok(()) };
        let depth = here.regions.get(place).map_or(0, |&(_, depth)| depth);
        here.regions.truncate(place);
        self.leave_to(thread, time, depth)
    }

    /// Leaves what a thread has entered since it was in so many regions.
    fn back_to(&mut self, thread: usize, time: u64, depth: usize) -> Result<()> {
        if let Some(here) = self.of_thread(thread) {
            here.regions.retain(|&(_, before)| before < depth);
        }
        self.leave_to(thread, time, depth)
    }

    /// A step of a thread.
    pub(super) fn openmp(&mut self, thread: usize, time: u64, step: OpenMp) -> Result<()> {
        self.leave_barrier(thread, matches!(step, OpenMp::TeamEnd(_)))?;
        let depth = self.depth(thread);
        let Some(here) = self.openmp.threads.get_mut(thread) else { return Ok(()) };
        match step {
            OpenMp::TeamBegin { .. } => here.over = None,
            OpenMp::TeamEnd(region) if here.over == Some(region) => {
                here.over = None;
                return Ok(());
            }
            OpenMp::Acquired(_) | OpenMp::Released(_) => {}
            _ if here.over.is_some() => return Ok(()),
            _ => {}
        }
        match step {
            OpenMp::Fork { region, threads, place } => {
                let team = self.shared.teams(self.header.rank).and_then(|teams| teams.of(region));
                here.forks.push(OpenParallel { region, team, depth });
                if let Some(id) = self.shared.own.openmp(self.header.rank, kind::PARALLEL, place) {
                    self.enter_region(thread, time, id)?;
                }
                match team {
                    Some(_) => self.step(thread, time, ThreadEvent::Fork { model: PARADIGM, threads }),
                    None => Ok(()),
                }
            }
            OpenMp::Join(region) => {
                let Some(place) = here.forks.iter().rposition(|fork| fork.region == region) else { return Ok(()) };
                let Some(fork) = here.forks.drain(place..).next() else { return Ok(()) };
                self.back_to(thread, time, fork.depth + 1)?;
                if fork.team.is_some() {
                    self.step(thread, time, ThreadEvent::Join { model: PARADIGM })?;
                }
                self.back_to(thread, time, fork.depth)
            }
            OpenMp::TeamBegin { region, index, .. } => {
                let team = self.shared.teams(self.header.rank).and_then(|teams| teams.of(region));
                here.teams.push(OpenTeam { region, team, index: index as u32, depth });
                match team {
                    Some(team) => self.step(thread, time, ThreadEvent::TeamBegin(team)),
                    None => Ok(()),
                }
            }
            OpenMp::TeamEnd(region) => self.arrived(thread, time, region),
            OpenMp::Begin(kind, place) => {
                here.regions.push((kind, depth));
                match self.shared.own.openmp(self.header.rank, kind, place) {
                    Some(id) => self.enter_region(thread, time, id),
                    None => Ok(()),
                }
            }
            OpenMp::End(kind::IMPLICIT_BARRIER) => {
                here.barrier_end = Some(time);
                Ok(())
            }
            OpenMp::End(kind) => self.end_of_kind(thread, time, kind),
            OpenMp::Acquired(lock) => self.acquired(thread, time, lock),
            OpenMp::Released(lock) => match self.openmp.locks.get(&lock) {
                Some(held) if held.owner == Some(thread) => self.released(time, lock),
                _ => Ok(()),
            },
            OpenMp::TaskCreate(..) | OpenMp::TaskSwitch(_) | OpenMp::TaskComplete(_) => self.task(thread, time, step),
        }
    }

    /// A thread has arrived at the end of the team of a region, which it leaves when the first one does.
    fn arrived(&mut self, thread: usize, time: u64, region: u64) -> Result<()> {
        let Some(here) = self.of_thread(thread) else { return Ok(()) };
        let Some(open) = here.teams.iter().rfind(|open| open.region == region) else { return Ok(()) };
        let first = here.forks.last().is_some_and(|fork| fork.region == region);
        if open.team.is_none() {
            return self.end_team(thread, time, region);
        }
        if first {
            // All of them have arrived.
            for other in (0..self.openmp.threads.len()).filter(|&other| other != thread) {
                self.end_team(other, time, region)?;
            }
            self.end_team(thread, time, region)?;
            self.of_thread(thread).into_iter().for_each(|here| here.over = None);
        }
        Ok(())
    }

    /// A thread leaves the team of a region, if it is in it.
    fn end_team(&mut self, thread: usize, time: u64, region: u64) -> Result<()> {
        let Some(here) = self.of_thread(thread) else { return Ok(()) };
        let Some(place) = here.teams.iter().rposition(|open| open.region == region) else { return Ok(()) };
        let Some(open) = here.teams.drain(place..).next() else { return Ok(()) };
        // The barrier ends with the team.
        here.barrier_end = None;
        if open.team.is_some() {
            here.over = Some(region);
        }
        self.back_to(thread, time, open.depth)?;
        match open.team {
            Some(team) => self.step(thread, time, ThreadEvent::TeamEnd(team)),
            None => Ok(()),
        }
    }

    fn acquired(&mut self, thread: usize, time: u64, lock: u64) -> Result<()> {
        self.released(time, lock)?;
        let next = self.openmp.locks.len() as u32;
        let held = self.openmp.locks.entry(lock).or_insert(OpenMpLock { number: next, acquisitions: 0, owner: None });
        held.acquisitions += 1;
        held.owner = Some(thread);
        let acquired = ThreadLock { model: PARADIGM, lock: held.number, order: held.acquisitions };
        self.step(thread, time, ThreadEvent::AcquireLock(acquired))
    }

    /// Whoever has a lock has it no more.
    fn released(&mut self, time: u64, lock: u64) -> Result<()> {
        let Some(held) = self.openmp.locks.get_mut(&lock) else { return Ok(()) };
        let Some(owner) = held.owner.take() else { return Ok(()) };
        let released = ThreadLock { model: PARADIGM, lock: held.number, order: held.acquisitions };
        self.leave_barrier(owner, false)?;
        self.step(owner, time, ThreadEvent::ReleaseLock(released))
    }

    /// A step of a task, in the team that the thread is in.
    fn task(&mut self, thread: usize, time: u64, step: OpenMp) -> Result<()> {
        let open = self.openmp.threads.get(thread).and_then(|here| here.teams.last());
        let own = open.and_then(|open| Some((open.team?, open.index)));
        match step {
            OpenMp::TaskCreate(number, place) => {
                let Some((team, creator)) = own else { return Ok(()) };
                let made = self.openmp.made.entry((team, creator)).or_insert(0);
                *made += 1;
                let task = ThreadTask { team, creator, generation: *made };
                self.openmp.tasks.insert(number, OpenTask { task, place, begun: None });
                self.step(thread, time, ThreadEvent::TaskCreate(task))
            }
            OpenMp::TaskSwitch(0) => {
                let Some((team, creator)) = own else { return Ok(()) };
                self.step(thread, time, ThreadEvent::TaskSwitch(ThreadTask { team, creator, generation: 0 }))
            }
            OpenMp::TaskSwitch(number) => {
                let depth = self.depth(thread);
                let Some(open) = self.openmp.tasks.get_mut(&number) else { return Ok(()) };
                let (task, place) = (open.task, open.place);
                let begins = open.begun.is_none();
                open.begun.get_or_insert((thread, depth));
                self.step(thread, time, ThreadEvent::TaskSwitch(task))?;
                match self.shared.own.openmp(self.header.rank, kind::TASK, place) {
                    Some(id) if begins => self.enter_region(thread, time, id),
                    _ => Ok(()),
                }
            }
            OpenMp::TaskComplete(number) => {
                let Some(open) = self.openmp.tasks.remove(&number) else { return Ok(()) };
                // One that ends on another thread than it began on: its region ends with the one around it.
                if let Some((_, depth)) = open.begun.filter(|&(begun, _)| begun == thread) {
                    self.back_to(thread, time, depth)?;
                }
                self.step(thread, time, ThreadEvent::TaskComplete(open.task))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::survey::openmp::OpenMpSurvey;
    use std::collections::BTreeSet;

    fn survey(steps: &[(usize, OpenMp)]) -> OpenMpSurvey {
        let mut survey = OpenMpSurvey::default();
        steps.iter().for_each(|(thread, step)| survey.add(*thread, step));
        survey.end();
        survey
    }

    fn begin(region: u64, threads: u64, index: u64) -> OpenMp {
        OpenMp::TeamBegin { region, threads, index }
    }

    #[test]
    fn teams_are_their_threads_in_order() {
        let fork = |region| OpenMp::Fork { region, threads: 2, place: 7 };
        let found = survey(&[
            (0, fork(1)),
            (1, begin(1, 2, 1)),
            (0, begin(1, 2, 0)),
            (0, OpenMp::Join(1)),
            // The other way round, by another thread.
            (1, fork(2)),
            (1, begin(2, 2, 0)),
            (0, begin(2, 2, 1)),
            (1, OpenMp::Join(2)),
            (0, fork(3)),
            (0, begin(3, 2, 0)),
            (1, begin(3, 2, 1)),
            (0, OpenMp::Join(3)),
        ]);
        assert_eq!(found.teams, [[0, 1], [1, 0]]);
        assert_eq!([1, 2, 3].map(|region| found.team_of[&region]), [0, 1, 0]);
        assert_eq!((found.incomplete.len(), found.threads.len()), (0, 2));
        assert_eq!(found.sites, BTreeSet::from([(kind::PARALLEL, 7)]));
    }

    #[test]
    fn regions_of_which_something_is_missing_have_no_team() {
        let fork = |region| OpenMp::Fork { region, threads: 2, place: 7 };
        let found = survey(&[
            // A thread is missing, the first one is another one, the fork is missing, the end is.
            (0, fork(1)),
            (0, begin(1, 2, 0)),
            (0, OpenMp::Join(1)),
            (0, fork(2)),
            (1, begin(2, 1, 0)),
            (0, OpenMp::Join(2)),
            (0, begin(3, 1, 0)),
            (0, OpenMp::Join(3)),
            (0, fork(4)),
            (0, begin(4, 1, 0)),
        ]);
        assert!(found.teams.is_empty() && found.team_of.is_empty());
        assert_eq!(found.incomplete.len(), 4);
    }
}
