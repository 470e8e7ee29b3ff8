//! How a command tells how far it is, without knowing whether anybody looks.

/// Events between two calls of [`Progress::advance`]. Signs of life go out at these calls only, so the block has to be short enough that a
/// rank that reads from a slow disk (0.5 MB/s) is not taken for a silent one. Chosen by hand: 0.1 s there, 0.1 ms otherwise.
pub const BLOCK: u64 = 1 << 12;

/// Receives the progress of a run. Phases follow each other; a new one ends the last.
pub trait Progress {
    /// A phase begins that will handle `events` events on this analysis rank.
    fn phase(&self, name: &'static str, events: u64);

    /// So many more events of the phase are done. Call it per [`BLOCK`] of events, not per event.
    fn advance(&self, events: u64);

    /// The phase is over.
    fn finish(&self);

    /// A part of the run begins that handles no events one by one, or whose length nobody knows. It ends with the next part or phase.
    fn step(&self, _name: &'static str) {}
}

/// Nobody looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn phase(&self, _: &'static str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
}
