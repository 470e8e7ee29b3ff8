//! Recorded offsets as observations.

/// A recorded offset: the correction of a clock, known from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// Clock.
    pub clock: u32,
    /// Window.
    pub window: u32,
    /// Its correction, in ticks.
    pub value: f64,
    /// Standard deviation.
    pub sigma: f64,
    /// Standard deviation that was recorded with it, in ticks; 0 if none was.
    pub stated: f64,
}
