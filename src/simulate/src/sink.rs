//! The seam between the simulation and whatever keeps its events.

use clc_trace::{Event, Result, Ticks};

/// Receives the events of a simulation as they happen. Events of one location come in their order; those of different
/// locations are interleaved in no particular one.
pub trait EventSink {
    /// One event of the location with this index in `Definitions::locations`: its true time and what its clock shows,
    /// both in ticks, 0 or more and nondecreasing per location.
    ///
    /// # Errors
    /// Whatever keeps the sink from taking it; the simulation stops with that error.
    fn event(&mut self, location: usize, true_time: Ticks, local_time: Ticks, event: &Event) -> Result<()>;
}

/// A sink that forgets everything.
#[derive(Debug, Default, Clone, Copy)]
pub struct Discard;

impl EventSink for Discard {
    #[inline]
    fn event(&mut self, _: usize, _: Ticks, _: Ticks, _: &Event) -> Result<()> {
        Ok(())
    }
}
