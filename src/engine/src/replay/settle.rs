//! Channels in doubt, and fences without operations, that contradict the rest of the trace.
//!
//! What is inferred where records are missing holds if they are missing at one end of a channel only. If that is wrong, events may have to
//! wait for each other in a cycle. Then the inference is taken back, and all that is sure stays. A cycle of messages without doubt stays, too:
//! such a trace contradicts itself.

use crate::comm::{AnalysisRank, ReduceOp, Transport};
use crate::matching::collectives::fences::Fences;
use crate::replay::assumed_fences;
use crate::replay::dataflow;
use crate::replay::program::{Program, TakenBack};
use crate::replay::stall::{ChannelId, doubtful};
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

/// Takes channels in doubt out of `program` until none is in a cycle of waiting events.
fn settle_channels(transport: &mut dyn Transport, program: &mut Program) -> Result<()> {
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
