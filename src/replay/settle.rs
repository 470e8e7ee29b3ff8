//! Channels in doubt that contradict the rest of the trace.
//!
//! What is inferred where records are missing holds if they are missing at one end of a channel only. If that is wrong, events may have to
//! wait for each other in a circle. Then the inference is taken back, and all that is sure stays. A circle of messages without doubt stays, too:
//! such a trace contradicts itself.

use crate::comm::{ReduceOp, Transport};
use crate::matching::messages::Trust;
use crate::matching::sync::SyncKind;
use crate::replay::dataflow::{self, Stopped};
use crate::replay::program::Program;
use crate::replay::stall::{Ends, doubtful};
use crate::trace::Result;

/// Takes channels in doubt out of `program` until none is in a circle of waiting events. Costs nothing where no channel is in doubt. Collective
/// over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn settle(transport: &mut dyn Transport, program: &mut Program) -> Result<()> {
    let in_doubt = program.messages.incoming.iter().any(|channel| channel.trust != Trust::Sound);
    let mut any = [i64::from(in_doubt)];
    transport.all_reduce(ReduceOp::Max, &mut any)?;
    if any[0] == 0 {
        return Ok(());
    }
    while let Some(Stopped { position, bounds }) = dataflow::stopped_at(transport, program)? {
        let channels = doubtful(transport, program, &position, &bounds)?;
        if channels.is_empty() {
            break;
        }
        let here = transport.rank() as u32;
        channels.iter().for_each(|channel| program.take_back(here, channel));
    }
    Ok(())
}

impl Program {
    /// Takes the pairs of a channel out of the replay, if an end of it is on this rank, `here`.
    fn take_back(&mut self, here: u32, channel: &Ends) {
        if channel.sending.0 == here {
            let end = &mut self.messages.outgoing[channel.sending.1 as usize];
            let timeline = &mut self.timelines[end.source as usize];
            end.sends.drain(..).for_each(|event| timeline.activate(event, SyncKind::Local, 0));
        }
        if channel.receiving.0 == here {
            let end = &mut self.messages.incoming[channel.receiving.1 as usize];
            let pair = (end.source, self.first + end.destination);
            self.messages.counts.take_back(pair, end.trust, end.receives.len());
            let timeline = &mut self.timelines[end.destination as usize];
            end.receives.drain(..).for_each(|event| timeline.activate(event, SyncKind::Local, 0));
        }
    }
}
