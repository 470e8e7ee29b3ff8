//! Channels in doubt, fences without operations, and what threads do in an unknown order, that contradict the rest of the trace.
//!
//! What is inferred where records are missing holds if they are missing at one end of a channel only. If that is wrong, events may have to
//! wait for each other in a cycle. Then the inference is taken back, and all that is sure stays. A cycle of messages without doubt stays, too:
//! such a trace contradicts itself.

use crate::comm::{AnalysisRank, ReduceOp, Transport};
use crate::matching::collectives::fences::Fences;
use crate::matching::event_list::EventList;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::within::steps::Unpaired;
use crate::replay::assumed_fences;
use crate::replay::dataflow;
use crate::replay::program::{Program, TakenBack};
use crate::replay::stall::{ChannelId, doubtful, of_threads};
use clc_trace::Result;
use std::sync::Arc;

/// Which fences without operations are taken for barriers.
#[derive(Debug)]
pub enum SettledFences {
    /// To be found out, unless this choice says it.
    Sought(Fences),
    /// Those that are not are known.
    Known(TakenBack),
}

/// Takes channels in doubt out of `program` until none is in a cycle of waiting events, and fences that were no barriers. Costs nothing where no channel is in doubt, and no fence is without
/// operations. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn settle(transport: &mut dyn Transport, program: &mut Program, fences: SettledFences) -> Result<()> {
    match fences {
        SettledFences::Known(taken_back) => {
            assumed_fences::take_back(transport, program, taken_back);
        }
        SettledFences::Sought(choice) => {
            if choice == Fences::Auto {
                assumed_fences::take_back_by_clocks(transport, program)?;
            }
            assumed_fences::take_back_in_cycles(transport, program)?;
        }
    }
    settle_channels(transport, program)
}

/// Takes channels in doubt out of `program` until none is in a cycle of waiting events; then what threads take part in whose order only clocks tell, though these clocks differ.
fn settle_channels(transport: &mut dyn Transport, program: &mut Program) -> Result<()> {
    let in_doubt = program.messages.incoming.iter().any(|channel| channel.trust.in_doubt());
    let unordered = program.messages.counts.threads.1.contains_key(&Unpaired::Bound) || program.threads_communicate();
    let mut any = [i64::from(in_doubt), i64::from(unordered)];
    transport.all_reduce(ReduceOp::Max, &mut any)?;
    if any == [0; 2] {
        return Ok(());
    }
    while let Some(stopped) = dataflow::stopped_at(transport, program)? {
        let mut channels = doubtful(transport, program, &stopped)?;
        if channels.is_empty() && any[1] != 0 {
            let (comms, of_messages) = of_threads(transport, program, &stopped)?;
            assumed_fences::take_communicators_back(transport, program, &comms);
            channels = of_messages;
            if !comms.is_empty() {
                continue;
            }
        }
        if channels.is_empty() {
            break;
        }
        let here = transport.rank();
        channels.iter().for_each(|channel| program.take_back(here, channel));
    }
    Ok(())
}

impl Program {
    /// Whether several locations that share a timeline send, receive, or take part in collective operations: unless steps tell, it is clocks that tell in which order.
    fn threads_communicate(&self) -> bool {
        let mut of: Vec<Option<u32>> = vec![None; self.timelines.len()];
        let mut several = |local: LocalTimeline, events: &EventList| {
            let timeline = &self.timelines[local];
            self.locations[local].len() > 1
                && events.each().any(|event| {
                    let location = timeline.location(event as usize);
                    *of[local.place()].get_or_insert(location) != location
                })
        };
        let (outgoing, incoming) = (&self.messages.outgoing, &self.messages.incoming);
        outgoing.iter().any(|channel| channel.is_certain() && several(channel.source, &channel.sends))
            || incoming.iter().any(|channel| channel.is_certain() && several(channel.destination, &channel.receives))
            || self
                .collectives
                .comms
                .iter()
                .flat_map(|comm| &comm.members)
                .any(|member| several(member.timeline, &member.begins) || several(member.ended_on, &member.ends))
    }

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
