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

impl Anchor {
    /// By how much it is wrong at most, as recorded with it, in ticks; 0 if nothing was: a bound of b to either side has a standard deviation of b / √3.
    pub fn bound(&self) -> f64 {
        3f64.sqrt() * self.stated
    }
}
