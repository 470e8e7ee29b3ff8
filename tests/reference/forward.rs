//! Forward replay, event by event:
//!
//! ```text
//! R_j  = max over the senders s of event j of LC_s + mu                          (logical receives only)
//! X_j  = max( C_j + off(C_j),  LC_i + min(delta, C_j - C_i) )      (i: the event before j on the same location, if any)
//! LC_j = max( X_j, R_j )
//! off(t) = max( 0, o - floor(decay * (t - K) / 2^40) )                           (decay / 2^40 = 1 - gamma)
//! ```
//!
//! The anchor (K, o) starts with o = 0 and becomes (C_j, LC_j - C_j) whenever LC_j > C_j + off(C_j).
//! The jump is D_j = LC_j - X_j where R_j > X_j, and 0 elsewhere.

use super::matching::Dependency;
use super::model::{EventRef, PerEvent, Trace};
use std::collections::BTreeMap;

/// Fixed-point one: decay and slopes are integers in units of 2^-40.
pub(crate) const ONE: i64 = 1 << 40;

/// The parameters of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control {
    /// 1 - gamma, in units of 2^-40.
    pub decay: i64,
    /// Minimum distance of distinct events, in ticks.
    pub delta: i64,
}

/// The result of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forward {
    /// LC, the controlled logical clock.
    pub clock: PerEvent,
    /// D, the jumps.
    pub jumps: PerEvent,
}

/// The trace contradicts itself: each of these events waits for another one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cycle(pub Vec<EventRef>);

/// The logical clock of one timeline, between two events.
struct Clock {
    control: Control,
    /// C and LC of the last event, per location.
    last: BTreeMap<usize, (i64, i64)>,
    /// (K, o): the offset o at time K.
    anchor: (i64, i64),
}

impl Clock {
    /// off(t), for t >= K.
    fn offset(&self, t: i64) -> i64 {
        let (since, offset) = self.anchor;
        (offset - scaled(self.control.decay, t - since)).max(0)
    }

    /// LC_j and D_j of the next event, from C_j and R_j.
    fn next(&mut self, location: usize, time: i64, original: i64, bound: Option<i64>) -> (i64, i64) {
        let decayed = time + self.offset(time);
        let candidate = match self.last.get(&location) {
            Some((last_time, last_clock)) => decayed.max(last_clock + self.control.delta.min(original - last_time)),
            None => decayed,
        };
        let clock = candidate.max(bound.unwrap_or(candidate));
        if clock > decayed {
            self.anchor = (time, clock - time);
        }
        self.last.insert(location, (original, clock));
        (clock, clock - candidate)
    }
}

/// floor(factor * ticks / 2^40).
pub(crate) fn scaled(factor: i64, ticks: i64) -> i64 {
    (i128::from(factor) * i128::from(ticks)).div_euclid(i128::from(ONE)) as i64
}

/// The forward replay of a trace.
pub(crate) fn forward_of(trace: &Trace, dependencies: &[Dependency], control: Control) -> Result<Forward, Cycle> {
    let locations: Vec<Vec<usize>> =
        trace.timelines().iter().map(|timeline| timeline.iter().map(|entry| entry.location).collect()).collect();
    replay(&trace.times(), &trace.times(), &locations, dependencies, control)
}

/// The forward replay of timelines with one location each.
pub(crate) fn forward(times: &PerEvent, dependencies: &[Dependency], control: Control) -> Result<Forward, Cycle> {
    let locations: Vec<Vec<usize>> = times.iter().map(|timeline| vec![0; timeline.len()]).collect();
    replay(times, times, &locations, dependencies, control)
}

/// Replays all timelines with the times C: always any event all of whose senders are known. `locations` tells for each event on
/// which location of its process it happened, `originals` the times whose distances delta goes by (C, but for a replay of corrected times).
pub(crate) fn replay(
    times: &PerEvent,
    originals: &PerEvent,
    locations: &[Vec<usize>],
    dependencies: &[Dependency],
    control: Control,
) -> Result<Forward, Cycle> {
    let mut senders: BTreeMap<EventRef, Vec<&Dependency>> = BTreeMap::new();
    for dependency in dependencies {
        senders.entry(dependency.receive).or_default().push(dependency);
    }
    let mut result = Forward { clock: vec![Vec::new(); times.len()], jumps: vec![Vec::new(); times.len()] };
    let first = |process: &Vec<i64>| process.first().copied().unwrap_or(0);
    let mut clocks: Vec<Clock> =
        times.iter().map(|process| Clock { control, last: BTreeMap::new(), anchor: (first(process), 0) }).collect();
    loop {
        let mut progress = false;
        for process in 0..times.len() {
            while let Some(&time) = times[process].get(result.clock[process].len()) {
                let event = EventRef { process, index: result.clock[process].len() };
                let from = senders.get(&event).map_or(&[][..], Vec::as_slice);
                if from.iter().any(|d| result.clock[d.send.process].len() <= d.send.index) {
                    break;
                }
                let bound = from.iter().map(|d| result.clock[d.send.process][d.send.index] + d.latency).max();
                let (clock, jump) =
                    clocks[process].next(locations[process][event.index], time, originals[process][event.index], bound);
                result.clock[process].push(clock);
                result.jumps[process].push(jump);
                progress = true;
            }
        }
        if !progress {
            break;
        }
    }
    let waiting = |process: &usize| result.clock[*process].len() < times[*process].len();
    let stuck: Vec<EventRef> = (0..times.len())
        .filter(waiting)
        .map(|process| EventRef { process, index: result.clock[process].len() })
        .collect();
    if stuck.is_empty() { Ok(result) } else { Err(Cycle(stuck)) }
}

/// The largest advance LC - C of all events.
pub(crate) fn largest_advance(times: &PerEvent, clock: &PerEvent) -> i64 {
    let advance = |(times, clock): (&Vec<i64>, &Vec<i64>)| times.iter().zip(clock).map(|(c, lc)| lc - c).max();
    times.iter().zip(clock).filter_map(advance).max().unwrap_or(0)
}

/// D0: the largest advance that the plain Lamport clock (gamma = 0, delta = 0) needs.
pub(crate) fn lamport_advance(times: &PerEvent, dependencies: &[Dependency]) -> Result<i64, Cycle> {
    let lamport = forward(times, dependencies, Control { decay: ONE, delta: 0 })?;
    Ok(largest_advance(times, &lamport.clock))
}
