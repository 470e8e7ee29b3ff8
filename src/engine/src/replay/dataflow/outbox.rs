//! Timestamps under way between analysis ranks, of all replays that run at the same time.

use crate::comm::{AnalysisRank, Channel, Transport};
use clc_trace::Result;
use std::collections::BTreeMap;

/// Words collected for one rank before they are sent. Chosen by hand: 32 KiB; larger batches keep timestamps back that others wait for, smaller ones
/// cost more messages.
const BATCH: usize = 4096;

/// Collects what other ranks have to know, and sends it in batches.
pub struct Outbox<'a> {
    pub(super) transport: &'a mut dyn Transport,
    /// This rank.
    pub here: AnalysisRank,
    /// Words collected per destination.
    batches: BTreeMap<AnalysisRank, Vec<u64>>,
    /// Whether there are any.
    collected: bool,
    pub(super) sent: i64,
    pub(super) received: i64,
}

impl<'a> Outbox<'a> {
    /// Nothing yet.
    pub fn new(transport: &'a mut dyn Transport) -> Outbox<'a> {
        let here = transport.rank();
        Outbox { transport, here, batches: BTreeMap::new(), collected: false, sent: 0, received: 0 }
    }

    /// An entry of a batch for rank `host`. The bit [`WHICH`](super::schedule::WHICH) of its first word says which of the replays it belongs to.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn post(&mut self, host: AnalysisRank, head: &[u64], times: &[u64]) -> Result<()> {
        self.collected = true;
        let batch = self.batches.entry(host).or_default();
        batch.extend_from_slice(head);
        batch.extend_from_slice(times);
        if batch.len() >= BATCH {
            let batch = std::mem::take(batch);
            self.sent += 1;
            self.transport.post(host, Channel::Replay, batch)?;
        }
        Ok(())
    }

    /// Sends what there is.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.collected, false) {
            return Ok(());
        }
        for (&host, batch) in &mut self.batches {
            if !batch.is_empty() {
                self.sent += 1;
                self.transport.post(host, Channel::Replay, std::mem::take(batch))?;
            }
        }
        Ok(())
    }

    /// The next batch that has arrived.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u64>>> {
        let batch = self.transport.poll(Channel::Replay)?;
        self.received += i64::from(batch.is_some());
        Ok(batch.map(|(_, words)| words))
    }
}
