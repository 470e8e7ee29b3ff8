//! Collective operations in flight, and how what they combine travels.

use crate::comm::MaxExcluding;
use crate::matching::collectives::instances::Slot;
use crate::replay::program::NO_LOWER_BOUND;
use clc_trace::{CommRank, Error, Result};
use std::collections::{BTreeMap, VecDeque};

/// Instances of one communicator that have begun and are not complete.
#[derive(Debug, Default)]
pub(super) struct OpenInstances<const CLOCKS: usize> {
    /// The first instance that is not complete.
    base: usize,
    /// Where the state of each from there on is: an instance that nobody has begun takes only that.
    places: VecDeque<InstancePlace>,
    states: Vec<InstanceState<CLOCKS>>,
    /// States of instances that are complete.
    free: Vec<u32>,
}

/// Where the state of an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InstancePlace(u32);

impl InstancePlace {
    /// Nobody has begun it.
    const NONE: InstancePlace = InstancePlace(u32::MAX);
    /// It is complete.
    const DONE: InstancePlace = InstancePlace(u32::MAX - 1);
}

/// A logical time of each clock.
pub(super) type Times<const CLOCKS: usize> = [i64; CLOCKS];
/// The largest contributions to each clock.
pub(super) type MaximaExcluding<const CLOCKS: usize> = [MaxExcluding; CLOCKS];

/// How far one instance is. There can be many of them, so it is kept small.
#[derive(Debug, Clone)]
pub(super) struct InstanceState<const CLOCKS: usize> {
    /// The largest contributions; of a prefix operation, of those of the ranks that are complete.
    pub top: MaximaExcluding<CLOCKS>,
    /// Contributions so far.
    pub count: u32,
    /// Members hosted here that have begun.
    pub begun: u32,
    /// Contributions of a prefix operation by rank.
    #[allow(clippy::box_collection)] // a pointer instead of a tree: most operations have none
    pub values: Option<Box<BTreeMap<CommRank, Times<CLOCKS>>>>,
}

impl<const CLOCKS: usize> InstanceState<CLOCKS> {
    const NEW: Self = InstanceState { top: [MaxExcluding::NONE; CLOCKS], count: 0, begun: 0, values: None };
}

impl<const CLOCKS: usize> OpenInstances<CLOCKS> {
    /// Of an instance that is not complete.
    pub(super) fn state(&mut self, slot: Slot) -> &mut InstanceState<CLOCKS> {
        let at = slot.place() - self.base;
        if at >= self.places.len() {
            self.places.resize(at + 1, InstancePlace::NONE);
        }
        let place = &mut self.places[at];
        if *place == InstancePlace::NONE {
            *place = InstancePlace(self.free.pop().unwrap_or(self.states.len() as u32));
            if place.0 as usize == self.states.len() {
                self.states.push(InstanceState::NEW);
            }
        }
        &mut self.states[place.0 as usize]
    }

    /// Marks an instance complete and forgets the complete ones at the front.
    pub(super) fn finish(&mut self, slot: Slot) {
        let at = slot.place() - self.base;
        if at >= self.places.len() {
            self.places.resize(at + 1, InstancePlace::NONE);
        }
        let place = std::mem::replace(&mut self.places[at], InstancePlace::DONE);
        if let Some(state) = self.states.get_mut(place.0 as usize) {
            *state = InstanceState::NEW;
            self.free.push(place.0);
        }
        while self.places.front() == Some(&InstancePlace::DONE) {
            self.places.pop_front();
            self.base += 1;
        }
    }
}

/// `latency` after `time`, if there is such a time.
pub(super) fn later(time: i64, latency: i64) -> i64 {
    if time == NO_LOWER_BOUND { NO_LOWER_BOUND } else { time + latency }
}

/// For a batch.
pub(super) fn words_of<const CLOCKS: usize>(maxima: MaximaExcluding<CLOCKS>) -> [[u64; 3]; CLOCKS] {
    maxima.map(|top| [top.max, top.holder, top.second].map(i64::cast_unsigned))
}

/// The times at the beginning of `words`, and the rest.
pub(super) fn times_in<const CLOCKS: usize>(words: &[u64]) -> Result<(Times<CLOCKS>, &[u64])> {
    let (times, rest) = words.split_first_chunk().ok_or_else(damaged)?;
    Ok((times.map(u64::cast_signed), rest))
}

/// What [`words_of`] wrote at the beginning of `words`, and the rest.
pub(super) fn maxima_in<const CLOCKS: usize>(mut words: &[u64]) -> Result<(MaximaExcluding<CLOCKS>, &[u64])> {
    let mut maxima = [MaxExcluding::NONE; CLOCKS];
    for top in &mut maxima {
        let ([max, holder, second], rest) = times_in(words)?;
        *top = MaxExcluding { max, holder, second };
        words = rest;
    }
    Ok((maxima, words))
}

/// What is wrong with a batch that cannot be read.
pub(super) fn damaged() -> Error {
    Error::new("malformed timestamp batch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_that_nobody_has_begun_have_no_state() {
        let mut open = OpenInstances::<1>::default();
        open.state(Slot(1000)).count = 3;
        open.state(Slot(7)).count = 2;
        open.finish(Slot(500));
        assert_eq!((open.states.len(), open.state(Slot(1000)).count, open.state(Slot(7)).count), (2, 3, 2));
        open.finish(Slot(1000));
        // In its memory, and nothing of it is left.
        assert_eq!((open.state(Slot(8)).count, open.states.len()), (0, 2));
        (0..1000).filter(|slot| *slot != 500).for_each(|slot| open.finish(Slot(slot)));
        assert_eq!((open.base, open.places.len(), open.free.len()), (1001, 0, 2));
        assert_eq!(open.state(Slot(1001)).begun, 0);
    }
}
