//! What a format asks of those who change the times of a trace.

use clc_trace::{EventNumber, LocationId, Result};

/// The time that says that there is none (OTF2_UNDEFINED_TIMESTAMP).
pub const UNDEFINED_TIME: u64 = u64::MAX;

/// New times for the events of one location.
pub trait TimeMap {
    /// New time of event `number`, recorded at `time`; called in order.
    ///
    /// # Errors
    /// There is no such time.
    fn event(&mut self, number: EventNumber, time: u64) -> Result<u64>;

    /// New times of events that follow each other, from number `first` on: in the place of the recorded ones. The same as one by one, but for a whole
    /// list at once.
    ///
    /// # Errors
    /// As [`TimeMap::event`].
    fn events(&mut self, first: EventNumber, times: &mut [u64]) -> Result<()> {
        for (number, time) in first.and_following().zip(times) {
            *time = self.event(number, *time)?;
        }
        Ok(())
    }

    /// New stop time of the `BufferFlush` event `number`, called after that event got its time, and before the next one.
    fn flush_stop(&mut self, number: EventNumber, stop: u64) -> u64;

    /// The same of a stop time that may not have been recorded, and then stays [`UNDEFINED_TIME`].
    fn recorded_stop(&mut self, number: EventNumber, stop: u64) -> u64 {
        if stop == UNDEFINED_TIME { stop } else { self.flush_stop(number, stop) }
    }
}

/// What a marker refers to (OTF2 `MarkerScope`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerScope {
    /// The whole trace.
    Global,
    /// One location.
    Location(LocationId),
    /// One location group, by id.
    LocationGroup(u32),
    /// Anything else: a node, a group of locations, a communicator.
    Other,
}

/// A marker: a comment that a tool attached to a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// When it begins, in global time.
    pub time: u64,
    /// How long it lasts.
    pub duration: u64,
    /// What it refers to.
    pub scope: MarkerScope,
}
