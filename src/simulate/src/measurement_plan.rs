//! How clock offsets are measured in a simulated run.

use clc_trace::{Error, Result};

/// When and how often clock offsets are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasurementPlan {
    /// Measurements: 0 none, 1 at the start, 2 at start and end, more at equal distances between.
    pub count: u32,
    /// Ping-pong exchanges per measurement; the best counts.
    pub exchanges: u32,
}

impl Default for MeasurementPlan {
    fn default() -> Self {
        MeasurementPlan { count: 2, exchanges: 10 }
    }
}

impl MeasurementPlan {
    /// Checks the bounds.
    ///
    /// # Errors
    /// More than 10,000 measurements, or exchanges outside 1 to 10,000.
    pub fn validate(&self) -> Result<()> {
        if self.count > 10_000 {
            return Err(Error::new(format!("{} offset measurements", self.count)).hint("allowed: 0 to 10000"));
        }
        if !(1..=10_000).contains(&self.exchanges) {
            return Err(Error::new(format!("{} exchanges", self.exchanges)).hint("allowed: 1 to 10000"));
        }
        Ok(())
    }
}
