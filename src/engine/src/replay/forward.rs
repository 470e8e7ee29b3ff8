//! State of a forward replay that does not depend on how timestamps travel.

use crate::matching::sync::{ReplayTimeline, SyncKind};
use crate::replay::advances::{Advances, LogicalTimes};
use crate::replay::program::Program;
use clc_trace::Ticks;
use controlled_logical_clock::forward::{ForwardClock, ForwardParameters, ForwardStep};

/// Result of one forward replay on the hosted timelines.
#[derive(Debug, Default)]
pub struct Forward {
    /// LC of every visited event. Before it is visited, R: the bound by its logical sends.
    pub advances: Vec<Advances>,
    /// The largest advance LC - C on the hosted timelines.
    pub largest_advance: Ticks,
    /// Sum of all jumps of the hosted timelines.
    pub jumps: i128,
}

impl Forward {
    /// Before the replay: every logical receive waits for its bound.
    pub(crate) fn new(program: &Program) -> Forward {
        let bounds_of = |timeline: ReplayTimeline<'_>| {
            let mut bounds = Advances::none(timeline.len());
            for event in 0..timeline.len() {
                if matches!(timeline.kind(event), SyncKind::Receive | SyncKind::Join) {
                    bounds.wait(event);
                }
            }
            bounds
        };
        let mut bounds: Vec<Advances> = program.replay_timelines().map(bounds_of).collect();
        for comm in &program.collectives.comms {
            for member in &comm.members {
                let bounds = &mut bounds[member.ended_on];
                for (end, &receives) in member.ends.each().zip(&member.receives) {
                    if receives {
                        bounds.wait(end as usize);
                    }
                }
            }
        }
        Forward { advances: bounds, largest_advance: Ticks::ZERO, jumps: 0 }
    }
}

impl Forward {
    /// Its logical times, if it is of a replay of `program` from its own times.
    pub fn times<'a>(&'a self, program: &'a Program) -> LogicalTimes<'a> {
        LogicalTimes { program, advances: &self.advances }
    }

    /// Makes every end of a collective wait, whether it is a logical receive or not.
    pub(crate) fn wait_at_every_end(&mut self, program: &Program) {
        for comm in &program.collectives.comms {
            for member in &comm.members {
                let bounds = &mut self.advances[member.ended_on];
                member.ends.each().for_each(|end| bounds.wait(end as usize));
            }
        }
    }
}

/// Puts a value into a list, which becomes long enough for it.
#[inline(never)]
fn put<T: Copy>(list: &mut Vec<Option<T>>, place: usize, value: Option<T>) {
    if place >= list.len() {
        list.resize(place + 1, None);
    }
    list[place] = value;
}

/// The clock of one timeline with what it needs of the events before.
#[derive(Debug)]
pub(crate) struct TimelineClock {
    clock: ForwardClock,
    /// (C, LC) of the last visited event of the first location of the timeline: nearly all have only one.
    first: Option<(Ticks, Ticks)>,
    /// The same of each of the others.
    others: Vec<Option<(Ticks, Ticks)>>,
    largest_advance: Ticks,
    /// Sum of the jumps.
    jumps: i128,
}

impl TimelineClock {
    /// At the beginning of a timeline.
    pub(crate) fn new(parameters: ForwardParameters) -> Self {
        TimelineClock {
            clock: ForwardClock::new(parameters),
            first: None,
            others: Vec::new(),
            largest_advance: Ticks::ZERO,
            jumps: 0,
        }
    }

    /// Visits an event of location `location` at `time` with `bound`. Its distance from the event before is that of their
    /// `original` times, which are the same as `time` but where a replay starts from times that were corrected before.
    #[inline(always)]
    pub(crate) fn step(&mut self, location: u32, time: i64, original: i64, bound: i64) -> ForwardStep {
        let previous = match location.checked_sub(1) {
            None => self.first,
            Some(other) => self.others.get(other as usize).copied().flatten(),
        };
        let step = self.clock.step_apart(Ticks(time), Ticks(original), previous, Ticks(bound));
        let visited = Some((Ticks(original), step.time));
        match location.checked_sub(1) {
            None => self.first = visited,
            Some(other) => put(&mut self.others, other as usize, visited),
        }
        self.jumps += i128::from(step.jump.0);
        self.largest_advance = self.largest_advance.max(step.time - Ticks(time));
        step
    }

    /// The largest advance so far.
    pub(crate) fn largest_advance(&self) -> Ticks {
        self.largest_advance
    }

    /// Sum of the jumps so far.
    pub(crate) fn jumps(&self) -> i128 {
        self.jumps
    }

    /// The advance at the beginning of the present decay.
    pub(crate) fn advance(&self) -> Ticks {
        self.clock.advance()
    }
}
