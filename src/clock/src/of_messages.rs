//! Clocks from a table of messages, without a trace and without ranks.

use crate::bounds::Bound;
use crate::estimator::{Decision, Estimator, observed_windows};
use crate::grid::Grid;
use crate::kind::BoundKind;
use crate::reference::Reference;
use crate::steps::JumpLimits;
use crate::{
    Clock, ClockEstimate, ClockInterval, ClockMap, Collector, Inspected, LinearClock, MeasurementLimits, Method, RANGE,
    RefinedClocks,
};
use clc_trace::workers::Workers;
use clc_trace::{ClockOffset, Error, Result, Ticks, TimelineNumber};

/// A message between two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockMessage {
    /// The clock of the sender.
    pub from: u32,
    /// The clock of the receiver.
    pub to: u32,
    /// When it was sent, by the sender's clock, in ticks.
    pub sent: i64,
    /// When it was received, by the receiver's clock, in ticks.
    pub received: i64,
}

/// What is known of clocks before messages are looked at, and how they are estimated.
#[derive(Debug, Clone)]
pub struct Options {
    /// Ticks per second of all clocks.
    pub resolution: u64,
    /// [`Method::Network`] (also for [`Method::Auto`]), [`Method::Regression`] or [`Method::Hull`].
    pub method: Method,
    /// What is global time.
    pub reference: Reference,
    /// Which measurements count.
    pub limits: MeasurementLimits,
    /// What is a jump of a clock.
    pub jumps: JumpLimits,
    /// Measured offsets of each clock to global time, in order of time; none for clocks that are not listed.
    pub offsets: Vec<Vec<ClockOffset>>,
    /// Threads to work with; they change no bit.
    pub workers: Workers,
}

impl Default for Options {
    /// Nanoseconds; nothing is known.
    fn default() -> Self {
        Options {
            resolution: 1_000_000_000,
            method: Method::Network,
            reference: Reference::default(),
            limits: MeasurementLimits::default(),
            jumps: JumpLimits::default(),
            offsets: Vec::new(),
            workers: Workers::ONE,
        }
    }
}

/// Estimated clocks.
#[derive(Debug, Clone)]
pub struct Estimated {
    /// From the time of each clock to global time.
    pub clocks: Vec<Clock>,
    /// How well they are known, and what was found on the way.
    pub summary: ClockEstimate,
}

/// Estimates the clocks 0, 1, ... that the messages name.
///
/// This is what a correction does with a trace, but for collectives and for the times that calls took. It looks several times at all messages: from windows over
/// the whole time to as short ones as the messages support, each time with the clocks that the time before has found. Where clocks that may bend run away from all that messages show, they are
/// made by [`Method::Hull`] instead; the summary says so.
///
/// # Errors
/// A method that estimates nothing ([`Method::None`], [`Method::Linear`]); measured offsets that are not in order of time; times beyond [`RANGE`]; no messages between different clocks.
pub fn estimate(messages: &[ClockMessage], options: &Options) -> Result<Estimated> {
    if !options.method.refines() {
        return Err(Error::new(format!("the method '{}' does not use messages", options.method.name()))
            .hint("to estimate clocks, use network, regression, hull or auto"));
    }
    let named = messages.iter().map(|message| message.from.max(message.to) as usize + 1).max().unwrap_or(0);
    let count = named.max(options.offsets.len());
    let offset = |clock: usize| options.offsets.get(clock).cloned().unwrap_or_default();
    let offsets: Vec<Vec<ClockOffset>> = (0..count).map(offset).collect();
    let map = ClockMap {
        of_timeline: (0..count as u32).collect(),
        first_timeline: (0..count as u32).collect(),
        bases: offsets.iter().map(|offsets| LinearClock::new(offsets)).collect::<Result<_>>()?,
        offsets,
        own: Vec::new(),
        together: Vec::new(),
    };
    // What is known of a pair is put together once: messages of different pairs may alternate.
    let mut by_pair = messages.to_vec();
    by_pair.sort_by_key(|message| (message.from, message.to));
    let messages = &by_pair[..];
    let mut estimator = Estimator::new(&map, options.resolution, options.method, options.reference, options.limits)
        .with_workers(options.workers)
        .with_jumps(options.jumps);
    let recorded = RefinedClocks::new(&map, &[])?;
    let mut refined = recorded.clone();
    let mut windows = observed_windows(map.bases.len());
    let mut asked: Option<Vec<ClockInterval>> = None;
    loop {
        let decision = match asked.take() {
            Some(stretches) => estimator.inspected(&inspect(messages, &recorded, &stretches)),
            None => {
                let seen = mapped(messages, &refined);
                let times = || seen.iter().flat_map(|message| [message.sent, message.received]);
                let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
                if first <= -RANGE || last >= RANGE {
                    return Err(Error::new("the times exceed the range of clocks, 2^62 ticks"));
                }
                let grid = Grid::new(first, last, windows);
                let mut collector = Collector::new(&grid);
                for message in &seen {
                    collector.pair((message.from, message.to));
                    let distance = message.received - message.sent;
                    collector.message(Bound { distance, at: message.received, kind: BoundKind::MESSAGE });
                }
                estimator.level(&collector.finish(), grid, &map)
            }
        };
        match decision {
            Decision::Inspect(stretches) => asked = Some(stretches),
            Decision::Level(knots, count) => {
                refined = RefinedClocks::new(&map, &knots)?;
                windows = count;
            }
            Decision::Done(knots, _) => {
                let refined = RefinedClocks::new(&map, &knots)?;
                let clocks = (0..count as u32).map(|clock| refined.of(TimelineNumber(clock)).clone()).collect();
                let summary = estimator.report(options.method, estimator.method(), String::new(), &map);
                return Ok(Estimated { clocks, summary });
            }
            Decision::Nothing(reason) => {
                // Curves can run away from each other, lines keep to what messages permit.
                let lines = Options { method: Method::Hull, ..options.clone() };
                let curves = !matches!(options.method, Method::Regression | Method::Hull);
                let found = curves.then(|| estimate(messages, &lines).ok()).flatten();
                let requested = |found: Estimated| {
                    let summary = ClockEstimate { requested: options.method, reason: reason.clone(), ..found.summary };
                    Estimated { summary, ..found }
                };
                return found.map(requested).ok_or_else(|| Error::new(reason));
            }
            // Every clock has one timeline.
            Decision::Split(_) => {
                return Err(Error::new(
                    "a clock contradicts itself: a message within it was received before it was \
                    sent",
                ));
            }
        }
    }
}

/// The messages in the times of other clocks.
fn mapped(messages: &[ClockMessage], clocks: &RefinedClocks) -> Vec<ClockMessage> {
    let at = |clock: u32, time: i64| clocks.of(TimelineNumber(clock)).map(Ticks(time)).0;
    let map = |message: &ClockMessage| ClockMessage {
        sent: at(message.from, message.sent),
        received: at(message.to, message.received),
        ..*message
    };
    messages.iter().map(map).collect()
}

/// The messages of some clocks in some stretches of time, in order.
fn inspect(messages: &[ClockMessage], clocks: &RefinedClocks, stretches: &[ClockInterval]) -> Vec<Inspected> {
    let mut all = Vec::new();
    for message in mapped(messages, clocks).iter().filter(|message| message.from != message.to) {
        for (index, stretch) in (0..).zip(stretches) {
            let (own, partner, other, received) = match stretch.clock {
                clock if clock == message.from => (message.sent, message.to, message.received, false),
                clock if clock == message.to => (message.received, message.from, message.sent, true),
                _ => continue,
            };
            if (stretch.from..=stretch.until).contains(&own) {
                all.push(Inspected { stretch: index, own, partner, other, received });
            }
        }
    }
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of two clocks, of which the second drifts by so many millionths and is ahead.
    fn round_trips(count: i64, drift: i64, ahead: i64) -> Vec<ClockMessage> {
        let other = |time: i64| time + ahead + time / 1_000_000 * drift;
        let trip = |k: i64| {
            let begin = k * 1_000_000;
            [
                ClockMessage { from: 0, to: 1, sent: begin, received: other(begin + 2000) },
                ClockMessage { from: 1, to: 0, sent: other(begin + 3000), received: begin + 5000 },
            ]
        };
        (0..count).flat_map(trip).collect()
    }

    #[test]
    fn clocks_that_nobody_measured_may_be_further_apart_than_the_run_is_long() {
        // 400 ms, in which messages take 2 us and the clock drifts by 20.
        for ahead in [3_000_000_000, -1_000_000_000_000, 3_600_000_000_000] {
            let options = Options { method: Method::Network, reference: Reference::Process(0), ..Options::default() };
            let found = estimate(&round_trips(400, 50, ahead), &options).expect("clocks");
            for time in [10_000_000i64, 200_000_000, 390_000_000] {
                let shown = time + ahead + time / 1_000_000 * 50;
                let off = found.clocks[1].map(Ticks(shown)).0 - time;
                assert!(off.abs() <= 60, "{ahead}: {off} at {time}");
            }
        }
    }

    #[test]
    fn a_clock_that_drifts_is_found() {
        for method in [Method::Network, Method::Regression, Method::Hull] {
            let options = Options { method, reference: Reference::Process(0), ..Options::default() };
            let found = estimate(&round_trips(400, 50, -7_000_000), &options).expect("clocks");
            for time in [10_000_000i64, 200_000_000, 390_000_000] {
                let shown = time - 7_000_000 + time / 1_000_000 * 50;
                let off = found.clocks[1].map(Ticks(shown)).0 - time;
                assert!(off.abs() <= 60, "{method:?}: {off} at {time}");
            }
            assert_eq!(found.summary.pairs.len(), 1);
        }
    }

    #[test]
    fn a_jump_is_found() {
        let mut messages = round_trips(4000, 0, 0);
        for message in &mut messages {
            let own = if message.from == 1 { &mut message.sent } else { &mut message.received };
            if *own > 2_000_000_000 {
                *own += 5_000_000;
            }
        }
        let options = Options { reference: Reference::Process(0), ..Options::default() };
        let found = estimate(&messages, &options).expect("clocks");
        let shown = |time: i64| found.clocks[1].map(Ticks(time)).0;
        assert_eq!(found.summary.clocks[1].steps.len(), 1, "{}", found.summary.reason);
        assert!((shown(3_005_000_000) - 3_000_000_000).abs() < 2000, "{}", shown(3_005_000_000));
        assert!((shown(1_000_000_000) - 1_000_000_000).abs() < 2000, "{}", shown(1_000_000_000));
    }

    #[test]
    fn a_jump_of_some_round_trips_is_found_among_packets() {
        // For 12 s every 25 ms, 60 to 100 us each way; half a millisecond forward after 6 s.
        let shown = |time: i64| time + if time > 6_003_000_000 { 500_000 } else { 0 };
        let way = |k: i64| 60_000 + k * 7_919 % 40_000;
        let trip = |k: i64| {
            let begin = 1_000_000_000 + k * 25_000_000;
            let (came, left) = (begin + way(k), begin + way(k) + 20_000);
            [
                ClockMessage { from: 0, to: 1, sent: begin, received: shown(came) },
                ClockMessage { from: 1, to: 0, sent: shown(left), received: left + way(k + 1_000) },
            ]
        };
        let messages: Vec<ClockMessage> = (0..480).flat_map(trip).collect();
        let options = Options { reference: Reference::Process(0), jumps: JumpLimits::PACKETS, ..Options::default() };
        let found = estimate(&messages, &options).expect("clocks");
        assert_eq!(found.summary.clocks[1].steps.len(), 1, "{}", found.summary.reason);
        // Between two packets, and nowhere else.
        for time in (2_000_000_000..12_000_000_000_i64).step_by(3_000_000) {
            let off = found.clocks[1].map(Ticks(shown(time))).0 - time;
            assert!(off.abs() < 40_000 || (time - 6_000_000_000).abs() < 30_000_000, "{off} at {time}");
        }
    }

    #[test]
    fn without_messages_there_is_nothing_to_estimate() {
        assert!(estimate(&[], &Options::default()).is_err());
        let alone = [ClockMessage { from: 0, to: 0, sent: 1, received: 2 }];
        assert!(estimate(&alone, &Options::default()).is_err());
        let far = [ClockMessage { from: 0, to: 1, sent: i64::MAX, received: i64::MIN }];
        assert!(estimate(&far, &Options::default()).is_err());
    }

    #[test]
    fn methods_that_estimate_nothing_are_refused() {
        for method in [Method::None, Method::Linear] {
            let name = method.name();
            let error = estimate(&round_trips(400, 50, 0), &Options { method, ..Options::default() }).expect_err(name);
            assert_eq!(error.message, format!("the method '{name}' does not use messages"));
        }
    }
}
