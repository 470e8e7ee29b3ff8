//! Collective operations in flight, and how what they combine travels.

use crate::comm::Top2;
use crate::matching::collectives::Slot;
use crate::replay::program::NO_LOWER_BOUND;
use clc_trace::{CommRank, Error, Result};
use std::collections::{BTreeMap, VecDeque};

/// Instances of one communicator that have begun and are not complete.
#[derive(Debug, Default)]
pub struct OpenInstances<const CLOCKS: usize> {
    base: usize,
    states: VecDeque<InstanceState<CLOCKS>>,
}

/// A logical time of each clock.
pub type Times<const CLOCKS: usize> = [i64; CLOCKS];
/// The largest contributions to each clock.
pub type Tops<const CLOCKS: usize> = [Top2; CLOCKS];

/// How far one instance is. There can be one for each instance of a communicator, so it is kept small.
#[derive(Debug, Clone)]
pub struct InstanceState<const CLOCKS: usize> {
    /// The largest contributions; of a prefix operation, of those of the ranks that are complete.
    pub top: Tops<CLOCKS>,
    /// Contributions so far.
    pub count: u32,
    /// Members hosted here that have begun.
    pub begun: u32,
    /// Contributions of a prefix operation by rank.
    #[allow(clippy::box_collection)] // a pointer instead of a tree: most operations have none
    pub values: Option<Box<BTreeMap<CommRank, Times<CLOCKS>>>>,
}

/// In the place of the members that have begun: the instance is complete.
const DONE: u32 = u32::MAX;

impl<const CLOCKS: usize> OpenInstances<CLOCKS> {
    /// Of an instance that is not complete.
    pub fn state(&mut self, slot: Slot) -> &mut InstanceState<CLOCKS> {
        let at = slot.place() - self.base;
        if at >= self.states.len() {
            let top = [Top2::NONE; CLOCKS];
            self.states.resize(at + 1, InstanceState { top, count: 0, begun: 0, values: None });
        }
        &mut self.states[at]
    }

    /// Marks an instance complete and forgets the complete ones at the front.
    pub fn finish(&mut self, slot: Slot) {
        self.state(slot).begun = DONE;
        while self.states.front().is_some_and(|state| state.begun == DONE) {
            self.states.pop_front();
            self.base += 1;
        }
    }
}

/// `latency` after `time`, if there is such a time.
pub fn later(time: i64, latency: i64) -> i64 {
    if time == NO_LOWER_BOUND { NO_LOWER_BOUND } else { time + latency }
}

/// For a batch.
pub fn words_of<const CLOCKS: usize>(tops: Tops<CLOCKS>) -> [[u64; 3]; CLOCKS] {
    tops.map(|top| [top.max, top.holder, top.second].map(i64::cast_unsigned))
}

/// The times at the beginning of `words`, and the rest.
pub fn times_in<const CLOCKS: usize>(words: &[u64]) -> Result<(Times<CLOCKS>, &[u64])> {
    let (times, rest) = words.split_first_chunk().ok_or_else(damaged)?;
    Ok((times.map(u64::cast_signed), rest))
}

/// What [`words_of`] wrote at the beginning of `words`, and the rest.
pub fn tops_in<const CLOCKS: usize>(mut words: &[u64]) -> Result<(Tops<CLOCKS>, &[u64])> {
    let mut tops = [Top2::NONE; CLOCKS];
    for top in &mut tops {
        let ([max, holder, second], rest) = times_in(words)?;
        *top = Top2 { max, holder, second };
        words = rest;
    }
    Ok((tops, words))
}

/// What is wrong with a batch that cannot be read.
pub fn damaged() -> Error {
    Error::new("malformed timestamp batch")
}
