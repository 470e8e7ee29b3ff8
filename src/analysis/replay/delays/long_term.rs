//! Long-term costs: what is blamed on waiting of a delayer has its causes where that one waited.
//!
//! Each wait has led to so much waiting of others. That is divided as the wait itself was, at the host of its delayer: among its delays, and the waiting of the delayer, which has led to that in turn.
//! So every process goes through its waits from the last one to the first: what one has led to is known when all waits of others for later operations have told what they have led to.
//! The result does not depend on the order in which processes go on. Waits that depend on each other in a cycle, as they may where clocks are wrong, are not followed, and neither is what comes before them.

use super::costs::{CostSums, Costs, DelaySums};
use super::divided::DividedWaits;
use crate::analysis::replay::timeline_waits::{OperationWait, TimelineWaits};
use clc_engine::comm::Transport;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::matching::placement::Placement;
use clc_engine::replay::dataflow::outbox::Outbox;
use clc_engine::replay::dataflow::schedule::{Turns, run};
use clc_execution::delays::{PassedOn, pass_on};
use clc_trace::{Error, Result, TimelineNumber};
use std::cmp::Reverse;

/// How far a process has got.
struct ProcessReplay<'a> {
    /// Its waits that have not told what they have led to.
    rest: &'a [OperationWait],
    /// Which of these were waits for something that is known.
    known: &'a [bool],
    divided: DividedWaits,
    /// The places of its divided waits by their waiter.
    by_waiter: Vec<((u32, u32), u32)>,
    /// The next of the divided waits, which are in the order of the ends of their intervals.
    next: usize,
    passed_on: PassedOn,
    queued: bool,
}

impl<'a> ProcessReplay<'a> {
    fn new(mut divided: DividedWaits, rest: &'a [OperationWait], known: &'a [bool]) -> ProcessReplay<'a> {
        divided.waits.sort_unstable_by_key(|wait| (Reverse(wait.interval.until), wait.waiter));
        let mut by_waiter: Vec<((u32, u32), u32)> =
            (0..).zip(&divided.waits).map(|(at, wait)| (wait.waiter, at)).collect();
        by_waiter.sort_unstable();
        let passed_on = PassedOn::default();
        ProcessReplay { rest, known, divided, by_waiter, next: 0, passed_on, queued: false }
    }

    /// The next wait for something that is known, and what it has led to; nothing while that is not known, or if there is none.
    fn next(&mut self) -> Option<(&'a OperationWait, i128)> {
        while let [rest @ .., wait] = self.rest {
            while let Some(divided) =
                self.divided.waits.get(self.next).filter(|divided| divided.interval.until > wait.operation)
            {
                if !divided.told {
                    return None;
                }
                self.passed_on.interval(divided.interval, divided.waited, divided.propagated);
                self.next += 1;
            }
            self.rest = rest;
            let ticks = self.passed_on.wait(wait.operation, wait.ticks);
            if self.known[rest.len()] {
                return Some((wait, ticks));
            }
        }
        None
    }
}

/// Follows what waits have led to in one stage.
struct LongTerm<'a, 'b> {
    costs: CostSums<'a>,
    placement: &'b Placement,
    processes: Vec<ProcessReplay<'b>>,
    /// Processes that may go on.
    runnable: Vec<LocalTimeline>,
}

/// Of the first word of an entry, below the delayer; see [`clc_engine::replay::dataflow::schedule::WHICH`].
const TAG_BITS: u32 = 4;

/// Waits of one process between two looks at the network. Chosen by hand: a larger value lets other ranks wait for costs that are known already, a
/// smaller one looks at the network more often than anything comes.
const BURST: usize = 256;

/// Adds the long-term costs of the `waits` of one stage to `costs`, and returns all of them, and those of each hosted process; `known` says of the waits of each hosted process which of them were told to the hosts of their delayers. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn follow(
    transport: &mut dyn Transport,
    placement: &Placement,
    mut costs: CostSums<'_>,
    waits: &[TimelineWaits],
    known: &[Vec<bool>],
) -> Result<(DelaySums, Vec<Costs>)> {
    let search = costs.search;
    let divided = std::mem::take(&mut costs.divided).into_iter();
    let processes = (0..).map(LocalTimeline).zip(divided).zip(known).map(|((process, divided), known)| {
        let own = &waits[process].waits;
        ProcessReplay::new(divided, &own[..known.len().min(own.len())], known)
    });
    let mut replay = LongTerm { processes: processes.collect(), costs, placement, runnable: Vec::new() };
    // Nobody leaves the step before while messages of this one can arrive.
    transport.barrier()?;
    debug_assert_eq!(replay.processes.len(), search.gaps.len());
    run(&mut [&mut replay], &mut Outbox::new(transport))?;
    Ok((replay.costs.sums, replay.costs.by_process))
}

impl LongTerm<'_, '_> {
    fn wake(&mut self, process: LocalTimeline) {
        if !std::mem::replace(&mut self.processes[process.place()].queued, true) {
            self.runnable.push(process);
        }
    }

    /// A wait for a hosted process has led to so many ticks of waiting of others.
    fn deliver(&mut self, process: LocalTimeline, waiter: (u32, u32), ticks: i128) {
        let Some(own) = self.processes.get_mut(process.place()) else { return };
        let Ok(at) = own.by_waiter.binary_search_by_key(&waiter, |entry| entry.0) else { return };
        let place = own.by_waiter[at].1 as usize;
        let Some(wait) = own.divided.waits.get(place) else { return };
        let costs = &mut self.costs;
        let propagated = pass_on(ticks, own.divided.delays(wait), wait.waited, wait.whole, |region, cost| {
            costs.long_term(process, region, cost);
        });
        let wait = &mut own.divided.waits[place];
        wait.propagated += propagated;
        wait.told = true;
        if place == own.next {
            self.wake(process);
        }
    }
}

impl Turns for LongTerm<'_, '_> {
    fn begin_turns(&mut self, _: u64, _: &mut Outbox<'_>) -> Result<()> {
        (0..self.processes.len()).map(LocalTimeline::at).for_each(|process| self.wake(process));
        Ok(())
    }

    fn urgent(&mut self, _: &mut Outbox<'_>) -> Result<()> {
        Ok(())
    }

    fn turn(&mut self, out: &mut Outbox<'_>) -> Result<bool> {
        let Some(process) = self.runnable.pop() else { return Ok(false) };
        self.processes[process.place()].queued = false;
        let number = self.costs.search.program.number(process).0;
        for _ in 0..BURST {
            let Some((wait, ticks)) = self.processes[process.place()].next() else { return Ok(true) };
            let delayer = TimelineNumber(wait.cause);
            let host = self.placement.host_of(delayer);
            if host == out.here {
                let delayer = LocalTimeline(delayer.0 - self.costs.search.program.first.0);
                self.deliver(delayer, (number, wait.operation), ticks);
                continue;
            }
            let head = [u64::from(delayer.0) << TAG_BITS, u64::from(number) << 32 | u64::from(wait.operation)];
            let ticks = ticks.cast_unsigned();
            out.post(host, &head, &[(ticks >> 64) as u64, ticks as u64])?;
        }
        self.wake(process);
        Ok(true)
    }

    fn has_urgent(&self) -> bool {
        false
    }

    fn has_runnable(&self) -> bool {
        !self.runnable.is_empty()
    }

    fn take<'w>(&mut self, words: &'w [u64], _: &mut Outbox<'_>) -> Result<&'w [u64]> {
        let [head, waiter, high, low, rest @ ..] = words else {
            return Err(Error::new("malformed batch of delay costs"));
        };
        let delayer = (head >> TAG_BITS) as u32;
        let ticks = (u128::from(*high) << 64 | u128::from(*low)).cast_signed();
        if let Some(process) = delayer.checked_sub(self.costs.search.program.first.0) {
            self.deliver(LocalTimeline(process), ((waiter >> 32) as u32, *waiter as u32), ticks);
        }
        Ok(rest)
    }

    fn unfinished(&self) -> i64 {
        self.processes.iter().filter(|own| !own.rest.is_empty()).count() as i64
    }
}
