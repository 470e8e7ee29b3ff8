//! A wrong clock applied to a recorded trace.

use crate::clocks::{ClockSpec, SimulatedClock};
use crate::units::{EPOCH, SECOND};
use clc_trace::{Error, Result, Ticks};

/// What the clock of one node would have shown at the times of a trace whose own clocks were right.
#[derive(Debug, Clone)]
pub struct Disturbance {
    clock: SimulatedClock,
    resolution: i64,
    origin: i64,
    start: i64,
    last: i64,
}

impl Disturbance {
    /// The clock of `node` by `spec`, for a trace with `resolution` ticks per second whose first event is at `origin`. The
    /// clock has been running for `start` picoseconds then, and is made for a run of `length` picoseconds.
    pub fn new(
        spec: &ClockSpec,
        (node, seed): (u32, u64),
        resolution: u64,
        origin: Ticks,
        start: i64,
        length: i64,
    ) -> Self {
        let resolution = i64::try_from(resolution).unwrap_or(i64::MAX).max(1);
        Disturbance { clock: spec.clock(node, seed, length), resolution, origin: origin.0, start, last: i64::MIN }
    }

    /// The local time at true time `time`, in ticks. Times must not decrease, and local times do not either; they can be
    /// negative.
    ///
    /// # Errors
    /// The trace is longer than 26 days.
    #[inline]
    pub fn local(&mut self, time: Ticks) -> Result<Ticks> {
        let running = (i128::from(time.0) - i128::from(self.origin)) * i128::from(SECOND) / i128::from(self.resolution);
        let running = i64::try_from(running + i128::from(self.start))
            .ok()
            .filter(|running| (0..i64::MAX / 4).contains(running))
            .ok_or_else(|| Error::new("the trace is longer than 26 days, too long for simulated clocks"))?;
        let error = i128::from(self.clock.read(running)) - i128::from(EPOCH) - i128::from(running);
        let ticks = (error * i128::from(self.resolution)).div_euclid(i128::from(SECOND)) as i64;
        self.last = self.last.max(time.0.saturating_add(ticks));
        Ok(Ticks(self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_clock_changes_nothing() -> Result<()> {
        for resolution in [1_000, 2_400_000_007, 1_000_000_000_000] {
            let spec = ClockSpec::default();
            let mut clock = Disturbance::new(&spec, (3, 1), resolution, Ticks(77), 5, SECOND);
            for time in [77, 78, 1_000, 123_456_789] {
                assert_eq!(clock.local(Ticks(time))?, Ticks(time));
            }
        }
        Ok(())
    }

    #[test]
    fn errors_are_those_of_the_clock() -> Result<()> {
        let spec: ClockSpec = "1:jump=1ms@50%;2:resolution=1us".parse()?;
        let mut jumps = Disturbance::new(&spec, (1, 3), 1_000_000_000, Ticks(500), 0, SECOND);
        assert_eq!(jumps.local(Ticks(500))?, Ticks(500));
        let late = jumps.local(Ticks(900_000_500))?.0;
        assert!(late == 900_000_500 + 1_000_000 || late == 900_000_500 - 1_000_000, "{late}");
        let mut coarse = Disturbance::new(&spec, (2, 3), 1_000_000_000, Ticks(0), 0, SECOND);
        assert_eq!(coarse.local(Ticks(1_999))?, Ticks(1_000));
        Ok(())
    }

    #[test]
    fn a_trace_of_a_year_is_refused() {
        let mut clock = Disturbance::new(&ClockSpec::default(), (1, 1), 1, Ticks(0), 0, SECOND);
        assert!(clock.local(Ticks(31_536_000)).is_err_and(|error| error.message.contains("26 days")));
    }
}
