//! Channels in doubt, and fences without operations, that contradict the rest of the trace.
//!
//! What is inferred where records are missing holds if they are missing at one end of a channel only. If that is wrong, events may have to
//! wait for each other in a cycle. Then the inference is taken back, and all that is sure stays. A cycle of messages without doubt stays, too:
//! such a trace contradicts itself.

use crate::comm::{AnalysisRank, ReduceOp, Transport};
use crate::matching::sync::SyncKind;
use crate::replay::dataflow;
use crate::replay::program::Program;
use crate::replay::stall::{ChannelId, doubtful};
use clc_trace::{CollectiveOp, Result};
use std::sync::Arc;

/// Takes channels in doubt out of `program` until none is in a cycle of waiting events. Costs nothing where no channel is in doubt. Collective
/// over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn settle(transport: &mut dyn Transport, program: &mut Program) -> Result<()> {
    settle_fences(transport, program)?;
    let in_doubt = program.messages.incoming.iter().any(|channel| channel.trust.in_doubt());
    let mut any = [i64::from(in_doubt)];
    transport.all_reduce(ReduceOp::Max, &mut any)?;
    if any[0] == 0 {
        return Ok(());
    }
    while let Some(stopped) = dataflow::stopped_at(transport, program)? {
        let channels = doubtful(transport, program, &stopped)?;
        if channels.is_empty() {
            break;
        }
        let here = transport.rank();
        channels.iter().for_each(|channel| program.take_back(here, channel));
    }
    Ok(())
}

/// If events wait for each other in a cycle, no fence without operations is taken for a barrier any more. Costs nothing where there are none.
fn settle_fences(transport: &mut dyn Transport, program: &mut Program) -> Result<()> {
    let is_assumed = |op: CollectiveOp| op == CollectiveOp::WIN_FENCE_ASSUMED;
    let comms = &program.collectives.comms;
    let assumed = comms.iter().any(|comm| comm.instances.iter().any(|instance| is_assumed(instance.op)));
    let mut any = [i64::from(assumed)];
    transport.all_reduce(ReduceOp::Max, &mut any)?;
    if any[0] == 0 || dataflow::stopped_at(transport, program)?.is_none() {
        return Ok(());
    }
    let here = transport.rank();
    let Program { collectives, timelines, .. } = program;
    for comm in &mut collectives.comms {
        let stays: Vec<bool> = comm.instances.iter().map(|instance| !is_assumed(instance.op)).collect();
        for member in &mut comm.members {
            let timeline = Arc::make_mut(&mut timelines[member.timeline]);
            for (k, _) in stays.iter().enumerate().filter(|(_, stays)| !**stays) {
                timeline.activate(member.begins.at(k), SyncKind::Local, 0);
                timeline.activate(member.ends.at(k), SyncKind::Local, 0);
            }
            keep(member.begins.to_mut(), &stays);
            keep(member.ends.to_mut(), &stays);
            keep(&mut member.sends, &stays);
            keep(&mut member.receives, &stays);
        }
        let taken = stays.iter().filter(|stays| !**stays).count() as u64;
        keep(&mut comm.instances, &stays);
        if comm.home == here && taken > 0 {
            let by_op = &mut collectives.counts.by_op;
            by_op.entry(CollectiveOp::WIN_FENCE_ASSUMED.0).or_default().matched -= taken;
            by_op.entry(CollectiveOp::WIN_FENCE_UNORDERED.0).or_default().unconstrained += taken;
        }
    }
    collectives.counts.by_op.retain(|_, counts| *counts != Default::default());
    Ok(())
}

/// Those elements of a list that stay.
fn keep<T>(list: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    list.retain(|_| stays.next().is_none_or(|stays| *stays));
}

impl Program {
    /// Takes the pairs of a channel out of the replay, if an end of it is on this rank, `here`.
    fn take_back(&mut self, here: AnalysisRank, channel: &ChannelId) {
        if channel.sending.0 == here {
            let end = &mut self.messages.outgoing[channel.sending.1 as usize];
            let timeline = Arc::make_mut(&mut self.timelines[end.source]);
            let index = channel.sending.1;
            end.sends.to_mut().drain(..).for_each(|event| timeline.unlink(event, index, &mut self.messages.fans));
        }
        if channel.receiving.0 == here {
            let end = &self.messages.incoming[channel.receiving.1 as usize];
            // They are told as processes, whichever of their threads it was.
            let pair = (self.process_of(end.source), self.process_of(self.number(end.destination)));
            let end = &mut self.messages.incoming[channel.receiving.1 as usize];
            self.messages.counts.take_back(pair, end.trust, end.receives.len());
            let timeline = Arc::make_mut(&mut self.timelines[end.destination]);
            let index = channel.receiving.1;
            end.receives.to_mut().drain(..).for_each(|event| timeline.unlink(event, index, &mut self.messages.joins));
        }
    }
}
