//! Times of messages on their way between ranks: in rounds, so that they take little memory.

use crate::comm::{AnalysisRank, ReduceOp, Transport, sparse_exchange};
use clc_trace::{Error, Result};
use std::collections::BTreeMap;
use std::ops::Range;

/// Words that a rank sends at once. Chosen by hand: 8 MiB; more take more memory, fewer more exchanges.
const ROUND: usize = 1 << 20;

/// Divides lists of values, one per channel, into rounds of limited size: memory for an exchange does not grow with the trace.
pub(super) struct Rounds {
    lengths: Vec<usize>,
    channel: usize,
    offset: usize,
    /// Rounds that all ranks still make.
    left: i64,
}

impl Rounds {
    /// For channels with these `lengths`. Collective over the analysis ranks, which all make the same number of rounds.
    pub(super) fn new(transport: &mut dyn Transport, lengths: impl Iterator<Item = usize>) -> Result<Rounds> {
        let lengths: Vec<usize> = lengths.collect();
        let mut left = [lengths.iter().sum::<usize>().div_ceil(ROUND) as i64];
        transport.all_reduce(ReduceOp::Max, &mut left)?;
        Ok(Rounds { lengths, channel: 0, offset: 0, left: left[0] })
    }

    /// What this rank sends next: parts of channels, in order. `None` after the last round of all ranks.
    pub(super) fn next(&mut self) -> Option<Vec<(usize, Range<usize>)>> {
        self.left -= 1;
        if self.left < 0 {
            return None;
        }
        let mut parts = Vec::new();
        let mut room = ROUND;
        while room > 0 && self.channel < self.lengths.len() {
            let end = self.lengths[self.channel].min(self.offset + room);
            if end > self.offset {
                parts.push((self.channel, self.offset..end));
                room -= end - self.offset;
            }
            self.offset = end;
            if end == self.lengths[self.channel] {
                (self.channel, self.offset) = (self.channel + 1, 0);
            }
        }
        Some(parts)
    }

    /// Whether anything is sent at all.
    pub(super) fn any(&self) -> bool {
        self.left > 0
    }
}

/// Times that have come from another rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReceivedTimes<'a>(&'a [u64]);

impl<'a> ReceivedTimes<'a> {
    /// How many.
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    /// In their order.
    pub(super) fn iter(self) -> impl Iterator<Item = i64> + 'a {
        self.0.iter().map(|&time| time as i64)
    }
}

/// Lists of times for other ranks, each of a channel there. One of the few kinds of messages that are not values, since there are as many times as
/// messages in the trace. Words: channel, number of times, times.
#[derive(Debug, Default)]
pub(super) struct TimeLists(BTreeMap<AnalysisRank, Vec<u64>>);

impl TimeLists {
    /// Adds times for the channel that has this index at `host`.
    pub(super) fn push(&mut self, host: AnalysisRank, channel: u32, times: impl ExactSizeIterator<Item = i64>) {
        let words = self.0.entry(host).or_default();
        words.extend([u64::from(channel), times.len() as u64]);
        words.extend(times.map(|time| time as u64));
    }

    /// Sends them, and calls `visit` with those that have come here: index of the channel and times. Collective over the analysis ranks.
    ///
    /// # Errors
    /// Failures of the transport; a damaged message.
    pub(super) fn exchange(
        self,
        transport: &mut dyn Transport,
        mut visit: impl FnMut(usize, ReceivedTimes<'_>),
    ) -> Result<()> {
        for (_, words) in sparse_exchange(transport, self.0.into_iter().collect())? {
            let mut rest = &words[..];
            while let Some(([channel, length], tail)) = rest.split_first_chunk() {
                let Some((times, next)) = tail.split_at_checked(*length as usize) else {
                    return Err(Error::new("received a truncated list of times"));
                };
                visit(*channel as usize, ReceivedTimes(times));
                rest = next;
            }
        }
        Ok(())
    }
}
