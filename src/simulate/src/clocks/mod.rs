//! Clocks that are wrong in known ways.
//!
//! A clock shows `EPOCH + t + x(t)` at true time `t`, where the error `x` is the sum of independent parts (offset,
//! drift, temperature, noise, steps, ...). Every part is piecewise linear in `t`, so a reading is one multiplication,
//! and the sum is evaluated exactly in integers: the same bits on every machine. What is drawn at random belongs to the
//! node and the seed alone, hence all locations of a node read the same clock.
//!
//! **Readings never go back.** Where the error falls faster than time goes on (a backward jump), the clock stands still
//! at its largest reading until it is overtaken, as timers of tracers do. That depends on true time only, not on when the
//! clock was read before.

mod parts;
mod presets;
mod spec;

pub use spec::{ClockSpec, PartSpec};

use crate::units::EPOCH;
use parts::{ErrorPart, FRACTION};

/// The clock of one node. Reading it costs a comparison and a multiplication while the error stays on one straight
/// piece, and its memory is constant.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    parts: Vec<ErrorPart>,
    /// The current straight piece of the sum: its true start and end, error at the start (2^-48 ps) and slope (2^-48).
    start: i64,
    end: i64,
    error: i128,
    slope: i64,
    /// Largest reading up to `start`.
    floor: i64,
    /// Readings are multiples of this, in picoseconds.
    quantum: i64,
}

impl SimulatedClock {
    /// A clock without error.
    pub(crate) fn perfect() -> Self {
        SimulatedClock::new(Vec::new(), 1)
    }

    fn new(parts: Vec<ErrorPart>, quantum: i64) -> Self {
        let mut clock = SimulatedClock {
            parts,
            start: 0,
            end: i64::MAX,
            error: 0,
            slope: 0,
            floor: i64::MIN,
            quantum: quantum.max(1),
        };
        clock.enter(0);
        clock.floor = clock.raw(0);
        clock
    }

    /// What the clock shows at true time `time` (picoseconds since the start of the simulation, 0 or more), in
    /// picoseconds, 0 or more. Successive calls must not go back in time; a call that does is answered from the
    /// current straight piece.
    #[inline]
    pub fn read(&mut self, time: i64) -> i64 {
        if time >= self.end {
            self.advance(time);
        }
        let shown = self.raw(time).max(self.floor);
        if self.quantum == 1 { shown } else { shown - shown % self.quantum }
    }

    #[inline]
    fn raw(&self, time: i64) -> i64 {
        let error = self.error + i128::from(time - self.start) * i128::from(self.slope);
        // The largest error is bounded by the specification; the lower bound keeps any walk off negative times.
        EPOCH.saturating_add(time).saturating_add((error >> FRACTION) as i64).max(0)
    }

    #[cold]
    fn advance(&mut self, time: i64) {
        while time >= self.end && self.end < i64::MAX {
            let boundary = self.end;
            let before = self.raw(boundary);
            self.enter(boundary);
            self.floor = self.floor.max(before).max(self.raw(boundary));
        }
    }

    /// Makes the piece that starts at `boundary` the current one.
    fn enter(&mut self, boundary: i64) {
        self.start = boundary;
        self.end = i64::MAX;
        self.error = 0;
        self.slope = 0;
        for part in &mut self.parts {
            let piece = part.piece_at(boundary);
            self.end = self.end.min(piece.end);
            self.error += piece.at(boundary);
            self.slope = self.slope.saturating_add(piece.slope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::presets::PRESETS;
    use super::*;
    use crate::units::SECOND;
    use clc_trace::Result;
    use proptest::prelude::*;

    const RUN: i64 = SECOND;

    fn clock(text: &str, node: u32, seed: u64) -> Result<SimulatedClock> {
        Ok(text.parse::<ClockSpec>()?.clock(node, seed, RUN))
    }

    /// Clock error at `n + 1` equidistant times of the run.
    fn errors(clock: &mut SimulatedClock, n: i64) -> Vec<i64> {
        (0..=n).map(|i| clock.read(RUN / n * i) - EPOCH - RUN / n * i).collect()
    }

    #[test]
    fn offset_and_drift_stay_within_their_bounds() -> Result<()> {
        for node in 1..50 {
            let e = errors(&mut clock("offset=5ms", node, 1)?, 10);
            assert!(e.iter().all(|&x| x == e[0] && x.abs() <= 5_000_000_000 && x != 0));
            let e = errors(&mut clock("drift=20ppm", node, 1)?, 10);
            assert_eq!(e[0], 0);
            assert!(e[10].abs() <= 20 * SECOND / 1_000_000 && e[10].abs() > 1000);
            assert!((e[5] * 2 - e[10]).abs() <= 2, "constant");
        }
        Ok(())
    }

    #[test]
    fn drift_can_begin_later() -> Result<()> {
        let e = errors(&mut clock("drift=20ppm@50%", 1, 1)?, 10);
        assert!(e[..=5].iter().all(|&x| x == 0) && e[10] != 0);
        Ok(())
    }

    #[test]
    fn sine_has_its_amplitude_and_period() -> Result<()> {
        let e = errors(&mut clock("sine=20us/0.25s", 3, 9)?, 4000);
        let (low, high) = (e.iter().min().copied(), e.iter().max().copied());
        assert!(high.is_some_and(|x| (x - 20_000_000).abs() < 2_000));
        assert!(low.is_some_and(|x| (x + 20_000_000).abs() < 2_000));
        for i in 0..3000 {
            assert!((e[i] - e[i + 1000]).abs() < 20, "period of 1000 samples");
        }
        Ok(())
    }

    #[test]
    fn walk_spreads_as_its_sigma_says() -> Result<()> {
        // Frequency of 1 ppm per sqrt(s) integrated over 1 s: standard deviation of 1 us / sqrt(3).
        let n = 2000;
        let mut squares = 0.0;
        for node in 1..=n {
            let mut clock = clock("walk=1ppm", node, 5)?;
            squares += ((clock.read(RUN) - EPOCH - RUN) as f64).powi(2);
        }
        let sigma = (squares / f64::from(n)).sqrt();
        assert!((sigma / 577_350.0 - 1.0).abs() < 0.06, "{sigma}");
        Ok(())
    }

    #[test]
    fn noise_spreads_as_its_sigma_says() -> Result<()> {
        // 1000 independent steps of 1 ms at 1 ppm: 1 ns * sqrt(1000).
        let n = 2000;
        let mut squares = 0.0;
        for node in 1..=n {
            squares += ((clock("noise=1ppm/1ms", node, 5)?.read(RUN) - EPOCH - RUN) as f64).powi(2);
        }
        let sigma = (squares / f64::from(n)).sqrt();
        assert!((sigma / 31_623.0 - 1.0).abs() < 0.06, "{sigma}");
        Ok(())
    }

    #[test]
    fn steps_of_a_generator_are_off_by_twice_the_deviation_at_most() -> Result<()> {
        // 1000 steps of 1 ms; cut at twice its deviation, a Gaussian has one of 0.8796 (and values at the limit count as it).
        let (n, mut squares, mut at_limit) = (500, 0.0, 0);
        for node in 1..=n {
            let mut clock = clock("generator=1ms/1ns", node, 5)?;
            let e = errors(&mut clock, 1000);
            let steps: Vec<i64> = e.windows(2).map(|w| w[1] - w[0]).collect();
            assert!(steps.iter().all(|step| step.abs() <= 2_001), "node {node}");
            at_limit += steps.iter().filter(|step| step.abs() >= 1_999).count();
            squares += (e[1000] as f64).powi(2);
        }
        let sigma = (squares / f64::from(n)).sqrt();
        assert!((sigma / 31_623.0 - 0.96).abs() < 0.1, "{sigma}");
        let share = at_limit as f64 / (1000.0 * f64::from(n));
        assert!((share - 0.0455).abs() < 0.005, "{share}");
        // Half the step, half the error of a step: as wrong as before per second, over the square root of two.
        let mut squares = 0.0;
        for node in 1..=n {
            squares += ((clock("generator=0.5ms/0.5ns", node, 5)?.read(RUN) - EPOCH - RUN) as f64).powi(2);
        }
        let finer = (squares / f64::from(n)).sqrt();
        assert!((sigma / finer / std::f64::consts::SQRT_2 - 1.0).abs() < 0.12, "{sigma} {finer}");
        Ok(())
    }

    #[test]
    fn ntp_slews_no_faster_than_its_rate() -> Result<()> {
        let e = errors(&mut clock("ntp=100us/200ms/500ppm", 1, 2)?, 1000);
        let step = RUN / 1000 / 2000;
        assert!(e.windows(2).all(|w| (w[1] - w[0]).abs() <= step + 1));
        assert!(e.windows(2).any(|w| (w[1] - w[0]).abs() >= step - 1), "it does slew");
        assert!(e.windows(2).any(|w| w[1] == w[0]), "it rests at the target");
        Ok(())
    }

    #[test]
    fn jump_and_stuck_happen_at_their_time() -> Result<()> {
        let mut signs = [false; 2];
        for node in 1..20 {
            let mut clock = clock("jump=1ms@50%", node, 2)?;
            assert_eq!(clock.read(RUN / 2 - 1), EPOCH + RUN / 2 - 1);
            let error = clock.read(RUN / 2) - EPOCH - RUN / 2;
            signs[usize::from(error > 0)] = true;
            assert!(error == 1_000_000_000 || (-1..=0).contains(&error), "{error}");
            let late = clock.read(RUN) - EPOCH - RUN;
            assert_eq!(late, if error > 0 { 1_000_000_000 } else { -1_000_000_000 });
        }
        assert_eq!(signs, [true; 2]);

        let mut stuck = clock("stuck=1ms@50%", 1, 2)?;
        let stop = stuck.read(RUN / 2);
        assert_eq!(stuck.read(RUN / 2 + 500_000_000), stop);
        assert_eq!(stuck.read(RUN / 2 + 1_000_000_000), stop);
        assert_eq!(stuck.read(RUN / 2 + 1_500_000_000), stop + 1_000_000_000, "twice as fast");
        assert_eq!(stuck.read(RUN), EPOCH + RUN);
        Ok(())
    }

    #[test]
    fn what_lies_after_the_end_is_named() -> Result<()> {
        let spec: ClockSpec = "offset=1ms,drift=1ppm@2s;1:jump=1ms@50%;2:jump=1ms,stuck=1ms@1500ms".parse()?;
        assert_eq!(spec.after_the_end(RUN.max(2 * crate::units::SECOND)), Vec::<String>::new());
        let late = spec.after_the_end(crate::units::SECOND);
        assert_eq!(late.len(), 2, "{late:?}");
        assert_eq!(late[1], "the standstill at 1.50 s comes too late: the run ends at 1.00 s");
        Ok(())
    }

    #[test]
    fn resolution_rounds_down_to_multiples() -> Result<()> {
        let mut clock = clock("all:offset=5ms,drift=9ppm,resolution=1us", 0, 2)?;
        for i in 0..1000 {
            let time = i * 777_777;
            let shown = clock.read(time);
            assert_eq!(shown % 1_000_000, 0);
            assert!((shown - EPOCH - time).abs() <= 5_000_000_000 + 2_000_000);
        }
        Ok(())
    }

    #[test]
    fn parts_add_up() -> Result<()> {
        // A part draws from its own stream, which its position in the specification numbers.
        let mut sum = clock("offset=5ms,drift=20ppm", 4, 7)?;
        let mut offset = clock("offset=5ms", 4, 7)?;
        let together = sum.read(RUN) - sum.clone().read(0);
        assert_eq!(clock("offset=5ms,drift=20ppm", 4, 7)?.read(0), offset.read(0));
        assert!((together - RUN).abs() <= 20_000_000 && together != RUN);
        Ok(())
    }

    #[test]
    fn the_reference_node_is_perfect_unless_named() -> Result<()> {
        for preset in PRESETS {
            if !preset.text.contains("all:") && !preset.text.contains("decentralised") {
                assert!(errors(&mut clock(preset.name, 0, 3)?, 100).iter().all(|&x| x == 0), "{}", preset.name);
            }
        }
        assert_ne!(clock("all:offset=5ms", 0, 3)?.read(0), EPOCH);
        assert_eq!(clock("offset=1ms;2:jump=1us@50%", 0, 3)?.read(RUN), EPOCH + RUN);
        Ok(())
    }

    proptest! {
        #[test]
        fn readings_never_go_back_and_depend_on_true_time_only(
            seed in any::<u64>(),
            preset in 0..PRESETS.len(),
            node in 0u32..4,
            mut times in proptest::collection::vec(0..RUN, 1..200),
        ) {
            times.sort_unstable();
            let spec: ClockSpec = PRESETS[preset].name.parse().map_err(|e| TestCaseError::fail(format!("{e}")))?;
            let mut often = spec.clock(node, seed, RUN);
            let mut last = 0;
            for &time in &times {
                let shown = often.read(time);
                prop_assert!(shown >= last);
                last = shown;
                prop_assert_eq!(shown, spec.clock(node, seed, RUN).read(time), "as a fresh clock says");
            }
        }
    }
}
