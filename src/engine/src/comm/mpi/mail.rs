//! Messages under way: those sent, which keep their buffers until MPI is done with them, and those arriving.

use crate::comm::Channel;
use crate::comm::mpi::call::{ImmediateOperation, MpiCommunicator};
use crate::comm::mpi::operations::Incoming;
use clc_trace::Result;

/// Tag of a timestamp; the channels have those below.
pub(super) const TIME_TAG: i32 = Channel::COUNT as i32;

/// Messages of one rank, in and out.
#[derive(Default)]
pub(super) struct Mail {
    /// In no order: MPI keeps the order of messages, this only keeps buffers.
    sending: Vec<ImmediateOperation<Box<[u64]>>>,
    /// Which one to look at next.
    next: usize,
    /// Look at all when there are so many.
    full: usize,
    /// One per channel, so that messages come out in the order in which MPI matched them.
    arriving: [Option<Incoming>; Channel::COUNT],
}

impl Mail {
    /// Looked at per call; an incomplete send costs a call of MPI each time. Chosen by hand: with fewer, buffers of messages that have been sent stay
    /// longer; with a smaller backlog, all are looked at too often.
    const GLANCE: usize = 8;
    const SMALLEST_FULL: usize = 64;

    /// Sends without waiting.
    pub(super) fn send(&mut self, on: &MpiCommunicator, destination: usize, tag: i32, words: Vec<u64>) -> Result<()> {
        let mut request = on.send(destination, tag, words)?;
        // Short messages are usually delivered at once.
        if request.test()? {
            return Ok(());
        }
        self.sending.push(request);
        if self.sending.len() >= self.full.max(Self::SMALLEST_FULL) {
            self.look(self.sending.len())?;
            // Only again when as many more are under way, so that the cost per message stays the same however many there are.
            self.full = 2 * self.sending.len();
        }
        Ok(())
    }

    /// Frees the buffers of messages that have been sent, looking at a few.
    pub(super) fn progress(&mut self) -> Result<()> {
        self.look(self.sending.len().min(Self::GLANCE))
    }

    fn look(&mut self, turns: usize) -> Result<()> {
        for _ in 0..turns {
            if self.next >= self.sending.len() {
                self.next = 0;
            }
            let Some(request) = self.sending.get_mut(self.next) else { break };
            if request.test()? {
                self.sending.swap_remove(self.next);
            } else {
                self.next += 1;
            }
        }
        Ok(())
    }

    /// Whether all messages have been sent.
    pub(super) fn is_sent(&self) -> bool {
        self.sending.is_empty()
    }

    /// The next message of a channel that is complete.
    pub(super) fn receive(&mut self, on: &MpiCommunicator, channel: Channel) -> Result<Option<(usize, Vec<u64>)>> {
        let arriving = &mut self.arriving[channel as usize];
        if arriving.is_none() {
            *arriving = on.receive(channel as i32)?;
        }
        // A long message takes several looks: its sender has to take part.
        let Some(incoming) = arriving else { return Ok(None) };
        if !incoming.request.test()? {
            return Ok(None);
        }
        match arriving.take() {
            Some(Incoming { source, request }) => Ok(Some((source, request.finish()?.into_vec()))),
            None => Ok(None),
        }
    }
}
