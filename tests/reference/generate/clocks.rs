//! Node clocks that are wrong: an offset, a drift, a slow wave, jumps, and a coarse resolution.

use super::super::model::Recorded;
use super::rng::Rng;
use clc_trace::Event;

/// Readings start about here, so that no clock reads less than zero.
const ORIGIN: i64 = 1_000_000_000;

/// Bounds of the clock errors; each node draws its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockErrors {
    /// Largest constant error, in ticks.
    pub offset: i64,
    /// Largest drift, in parts per million.
    pub drift: i64,
    /// Largest amplitude of the wave, in ticks.
    pub wave: i64,
    /// Number and largest size, in ticks, of jumps in either direction.
    pub jumps: (usize, i64),
    /// All readings are multiples of this, in ticks; at least 1.
    pub resolution: i64,
}

/// The clock of one node.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    offset: i64,
    drift: i64,
    amplitude: i64,
    period: i64,
    /// True time and size of each jump.
    jumps: Vec<(i64, i64)>,
}

impl ClockErrors {
    /// From perfect to bad.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        ClockErrors {
            offset: rng.pick(&[0, 100, 20_000]),
            drift: rng.pick(&[0, 100, 10_000]),
            wave: rng.pick(&[0, 0, 500, 5_000]),
            jumps: rng.pick(&[(0, 0), (0, 0), (3, 10_000)]),
            resolution: rng.pick(&[1, 1, 10, 1_000]),
        }
    }
}

impl Clock {
    /// Draws the clock of one node.
    pub(crate) fn random(rng: &mut Rng, errors: &ClockErrors) -> Self {
        let mut up_to = |bound: i64| rng.between(-bound, bound);
        let (count, size) = errors.jumps;
        Clock {
            offset: up_to(errors.offset),
            drift: up_to(errors.drift),
            amplitude: up_to(errors.wave),
            jumps: (0..count).map(|_| (30_000 + up_to(30_000), up_to(size))).collect(),
            period: rng.between(10_000, 100_000),
        }
    }

    /// What the clock shows; it may step back, and its resolution is perfect.
    fn reading(&self, true_time: i64) -> i64 {
        let drift = true_time * self.drift / 1_000_000;
        let jumps: i64 = self.jumps.iter().filter(|(at, _)| *at <= true_time).map(|(_, size)| size).sum();
        ORIGIN + true_time + self.offset + drift + jumps + self.wave(true_time)
    }

    /// Nearly a sine, and in integers, so that it is the same on every platform: each half-wave is a parabola.
    fn wave(&self, true_time: i64) -> i64 {
        let (half, at) = (self.period / 2, true_time.rem_euclid(self.period));
        let (sign, at) = if at < half { (1, at) } else { (-1, at - half) };
        sign * 4 * self.amplitude * at * (half - at) / (half * half)
    }

    /// What the locations of one process record, from their events in true time.
    ///
    /// Readings never step back within a process. They also keep the order of its events when the threads are merged by
    /// (time, location, number): where rounding would put an event of a later location first, it moves on by a tick.
    pub(crate) fn record(&self, streams: &[Vec<(i64, Event)>], resolution: i64) -> Vec<Vec<Recorded>> {
        let mut order = Vec::new();
        for (location, stream) in streams.iter().enumerate() {
            order.extend(stream.iter().enumerate().map(|(number, &(time, event))| (time, location, number, event)));
        }
        order.sort_by_key(|&(time, location, number, _)| (time, location, number));
        let mut recorded = vec![Vec::new(); streams.len()];
        let (mut last, mut last_location) = (i64::MIN, 0);
        for (true_time, location, _, event) in order {
            let reading = self.reading(true_time);
            let mut time = last.max(reading - reading.rem_euclid(resolution));
            if time == last && location < last_location {
                time += resolution;
            }
            recorded[location].push(Recorded { time, event });
            (last, last_location) = (time, location);
        }
        recorded
    }
}
