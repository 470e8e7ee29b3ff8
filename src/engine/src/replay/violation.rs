//! By how much the clock condition is violated, in all.

use crate::comm::Transport;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::visited_times::TimelineTimes;
use crate::replay::bounds::{collective_bounds, local_message_bounds, remote_message_bounds};
use crate::replay::common::sum;
use crate::replay::components::mutual;
use crate::replay::observe::channel_shares;
use crate::replay::program::Program;
use clc_trace::workers::Workers;
use clc_trace::{Result, TimelineNumber};

/// Sums over logical receives, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Violation {
    /// By how much the receives are too early.
    pub total: i128,
    /// The part of it by messages between processes of which the receiver never tells the sender anything, not even through others.
    pub one_way: i128,
}

impl Violation {
    /// Of all ranks, under the pre-synchronised times. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn of(transport: &mut dyn Transport, workers: Workers, program: &Program) -> Result<Violation> {
        let mutual = mutual(transport, program)?;
        let apart = |channel: usize| {
            let channel = &program.messages.incoming[channel];
            let set = |timeline: TimelineNumber| mutual.get(timeline.place());
            set(channel.source) != set(program.number(channel.destination))
        };
        let times = program.times();
        let here = Violation::here(transport, workers, program, &times, apart)?;
        let sums = sum(transport, &[here.total, here.one_way])?;
        Ok(Violation { total: sums[0], one_way: sums[1] })
    }

    /// Of the receives of this rank, under given `times`; `apart` are incoming channels that count as one-way. Channels are shared out among `workers`. Collective over the
    /// analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn here<T: TimelineTimes>(
        transport: &mut dyn Transport,
        workers: Workers,
        program: &Program,
        times: &[T],
        apart: impl Fn(usize) -> bool + Sync,
    ) -> Result<Violation> {
        let excess = |timeline: LocalTimeline, event: u32, bound: i64| {
            (i128::from(bound) - i128::from(times[timeline].at(event))).max(0)
        };
        let add = |sums: &mut Violation, channel: usize, event: u32, bound: i64| {
            let excess = excess(program.messages.incoming[channel].destination, event, bound);
            if excess > 0 {
                sums.total += excess;
                sums.one_way += if apart(channel) { excess } else { 0 };
            }
        };
        let (here, shares) = (transport.rank(), channel_shares(program, workers.threads()));
        let parts = workers.map(shares.len(), |share| {
            let mut part = Violation::default();
            let visit = |channel, event, bound| add(&mut part, channel, event, bound);
            local_message_bounds(here, program, times, shares[share].clone(), visit);
            part
        });
        let mut sums = Violation::default();
        for part in parts {
            sums.total += part.total;
            sums.one_way += part.one_way;
        }
        remote_message_bounds(transport, program, times, |channel, event, bound| {
            add(&mut sums, channel, event, bound);
        })?;
        collective_bounds(transport, program, times, |_, _, member, event, bound| {
            sums.total += excess(member.ended_on, event, bound);
        })?;
        Ok(sums)
    }

    /// Whether so much of it is one-way that nothing would contradict an advance that is too large.
    pub(crate) fn is_one_way(&self) -> bool {
        4 * self.one_way > self.total
    }
}
