//! Which messages of two processes belong to operations that have waited.

use super::{ByProcess, DelaySearch};
use crate::analysis::replay::operations::Operations;
use crate::analysis::replay::timeline_waits::TimelineWaits;
use clc_engine::comm::Transport;
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_engine::replay::bounds::remote_message_bounds;
use clc_engine::replay::upper_bounds::of_receives;
use clc_execution::waiting::WaitKind;
use clc_trace::{Result, TimelineNumber};
use std::collections::BTreeMap;

impl DelaySearch<'_> {
    /// Finds the messages whose operations have waited for them. Collective over the analysis ranks.
    pub(super) fn find_messages(
        &mut self,
        transport: &mut dyn Transport,
        waiting: &[Vec<TimelineWaits>],
    ) -> Result<()> {
        let (program, operations) = (self.program, self.operations);
        let here = transport.rank();
        let whole = |number: TimelineNumber| program.process_of(number) == number;
        let received = |timeline: LocalTimeline, event: u32| operations[timeline].of_event[event as usize];
        let posted = |timeline: LocalTimeline, event: u32| match operations[timeline].partner[event as usize] {
            Operations::NONE => received(timeline, event),
            operation => operation,
        };
        let (mut all_received, mut all_posted) =
            (vec![ByProcess::new(); self.gaps.len()], vec![ByProcess::new(); self.gaps.len()]);
        let late_senders = have_waited(operations, self.gaps.len(), waiting, WaitKind::LateSender);
        let late_receivers = have_waited(operations, self.gaps.len(), waiting, WaitKind::LateReceiver);
        let late = |late: &[Vec<bool>], timeline: LocalTimeline, operation: u32| {
            late.get(timeline.place()).is_some_and(|late| late.get(operation as usize).is_some_and(|&late| late))
        };
        let enter = |lists: &mut [ByProcess],
                     timeline: LocalTimeline,
                     process: u32,
                     both: &mut dyn Iterator<Item = (u32, u32)>| {
            let mut both =
                both.filter(|&(own, other)| self.is_main(timeline, own) && other != Operations::NONE).peekable();
            if both.peek().is_some() {
                lists[timeline.place()].entry(process).or_default().extend(both);
            }
        };

        // From other ranks: places of operations take the way of times.
        let remote = program.messages.outgoing.iter().any(|channel| channel.host != here);
        let own: Vec<Vec<i64>> = match remote {
            true => operations.iter().map(|own| own.of_event.iter().map(|&of| i64::from(of)).collect()).collect(),
            false => vec![Vec::new(); operations.len()],
        };
        remote_message_bounds(transport, program, &own, |channel, event, sent| {
            let channel = &program.messages.incoming[channel];
            let both = (received(channel.destination, event), sent as u32);
            if channel.is_certain() && whole(channel.source) && late(&late_senders, channel.destination, both.0) {
                enter(&mut all_received, channel.destination, channel.source.0, &mut std::iter::once(both));
            }
        })?;
        drop(own);
        let starts = of_receives(transport, program, |channel, event| posted(channel.destination, event).into())?;

        for (index, channel) in program.messages.outgoing.iter().enumerate().filter(|(_, channel)| channel.is_certain())
        {
            let (source, destination, own) = (channel.source, channel.destination, &operations[channel.source]);
            let local = program.messages.incoming.get(channel.remote as usize).filter(|_| channel.host == here);
            if let Some(end) = local.filter(|end| whole(end.source)) {
                let sends = channel.sends.each().map(|send| own.of_event[send as usize]);
                let receives = end.receives.each().map(|event| received(end.destination, event));
                let mut both = receives.zip(sends).filter(|both| late(&late_senders, end.destination, both.0));
                enter(&mut all_received, end.destination, end.source.0, &mut both);
            }
            if !whole(destination) || late_receivers.get(source.place()).is_none_or(Vec::is_empty) {
                continue;
            }
            let start = |k: usize| match local {
                Some(end) => end.receives.get(k).map(|event| posted(end.destination, event)),
                None => starts[index].get(k).map(|&operation| operation as u32),
            };
            let completed = channel.sends.each().enumerate().map(|(k, send)| (k, own.partner[send as usize]));
            let completed = completed.filter(|&(_, operation)| late(&late_receivers, source, operation));
            let mut both = completed.filter_map(|(k, operation)| Some((operation, start(k)?)));
            enter(&mut all_posted, source, destination.0, &mut both);
        }
        for list in [&mut all_received, &mut all_posted].into_iter().flatten().flat_map(BTreeMap::values_mut) {
            list.sort_unstable();
            list.shrink_to_fit();
        }
        (self.received, self.posted) = (all_received, all_posted);
        Ok(())
    }
}

/// Which operations of each hosted process have waited for this in any stage; nothing of processes without such.
fn have_waited(
    operations: &[Operations],
    processes: usize,
    waiting: &[Vec<TimelineWaits>],
    kind: WaitKind,
) -> Vec<Vec<bool>> {
    let mut have: Vec<Vec<bool>> = vec![Vec::new(); processes];
    for stage in waiting {
        for ((have, own), operations) in have.iter_mut().zip(stage).zip(operations) {
            for wait in own.waits.iter().filter(|wait| wait.kind == kind) {
                have.resize(operations.len(), false);
                have[wait.operation as usize] = true;
            }
        }
    }
    have
}
