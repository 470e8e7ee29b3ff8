//! The one map from a time that was recorded to the pre-synchronised and to the written one.
//!
//! ```text
//! recorded --(clock of the location)--> + shift = pre-synchronised --(correction of its timeline)--> written
//! ```
//!
//! Whoever needs a time of an event gets it from here; nobody else adds the shift.

use crate::pipeline::load::LocalTrace;
use crate::pipeline::local_trace::LocationTie;
use clc_clock::{Clock, ModelKind, RANGE};
use clc_engine::matching::local_timeline::LocalTimeline;
use clc_trace::{Correction, CorrectionCursor, EventNumber, Position, Ticks};

/// The clock of one location.
#[derive(Debug, Clone, Copy)]
pub struct LocationClock<'a> {
    clock: &'a Clock,
    shift: Ticks,
    location: u32,
    ties: &'a [LocationTie],
}

impl LocalTrace {
    /// The clock of a location: the hosted timeline, and its place in it.
    pub fn clock(&self, timeline: LocalTimeline, location: usize) -> LocationClock<'_> {
        let own = &self.locations[timeline][location];
        LocationClock { clock: &own.clock, shift: self.shift, location: location as u32, ties: &own.ties }
    }
}

impl<'a> LocationClock<'a> {
    /// The pre-synchronised time at a recorded one, which need not be that of an event: beyond the range of clocks it is that of the range's end.
    pub(crate) fn presynchronised(&self, recorded: u64) -> Ticks {
        self.clock.map(Ticks(recorded.min(RANGE as u64) as i64)) + self.shift
    }

    /// The same of event `number`, as a place in the order of its timeline.
    pub(crate) fn position(&self, number: EventNumber, recorded: u64) -> Position {
        self.position_at(number, self.presynchronised(recorded))
    }

    /// The place of event `number`, which has the pre-synchronised time `time`.
    #[inline]
    fn position_at(&self, number: EventNumber, time: Ticks) -> Position {
        let position = Position { time, location: self.location, number };
        if self.ties.is_empty() { position } else { position.in_layer(self.layer(number, time)) }
    }

    /// The layer of that event among those of its time.
    #[inline(never)]
    fn layer(&self, number: EventNumber, time: Ticks) -> u32 {
        Position::layer_among(
            self.ties,
            |tie| tie.number <= number,
            |tie| self.presynchronised(tie.recorded) == time,
            |tie| tie.layer,
        )
    }

    /// Whether recorded times are pre-synchronised ones.
    pub(crate) fn is_identity(&self) -> bool {
        self.clock.kind() == ModelKind::Identity && self.shift == Ticks::ZERO
    }

    /// For the events of the location, in order.
    pub fn cursor(&self) -> LocationCursor<'a> {
        LocationCursor { clock: self.clock.cursor(), shift: self.shift.0, of: *self }
    }

    /// For the events of the location, in order, with the correction of its timeline.
    pub(crate) fn corrected_by(&self, correction: &'a Correction) -> CorrectedCursor<'a> {
        CorrectedCursor { location: self.cursor(), correction: correction.cursor() }
    }
}

/// Pre-synchronises the times of the events of one location. They have been checked when the trace was loaded: all lie in the range of clocks.
#[derive(Debug, Clone)]
pub struct LocationCursor<'a> {
    clock: clc_clock::ClockCursor<'a>,
    shift: i64,
    of: LocationClock<'a>,
}

impl LocationCursor<'_> {
    /// Event `number`, recorded no earlier than the one asked for last.
    #[inline(always)]
    pub(crate) fn position(&mut self, number: EventNumber, recorded: u64) -> Position {
        let time = Ticks(self.clock.map(Ticks(recorded as i64)).0 + self.shift);
        self.of.position_at(number, time)
    }
}

impl LocationCursor<'_> {
    /// As [`LocationCursor::position`] for many recorded times, in ticks; those in `presynchronised`, which is as long, are replaced.
    fn map_all(&mut self, recorded: &[i64], presynchronised: &mut [i64]) {
        self.clock.map_all(recorded, presynchronised);
        if self.shift != 0 {
            presynchronised.iter_mut().for_each(|time| *time += self.shift);
        }
    }
}

/// Pre-synchronises and corrects the times of the events of one location.
#[derive(Debug, Clone)]
pub(crate) struct CorrectedCursor<'a> {
    location: LocationCursor<'a>,
    correction: CorrectionCursor<'a>,
}

impl CorrectedCursor<'_> {
    /// Before and after the correction: event `number`, recorded no earlier than the one asked for last.
    #[inline(always)]
    pub(crate) fn map(&mut self, number: EventNumber, recorded: u64) -> (i64, i64) {
        let position = self.location.position(number, recorded);
        (position.time.0, self.correction.map(position).0)
    }

    /// As [`CorrectedCursor::map`] for the events from number `first` on, which were `recorded`: puts their times `before` and `after` the correction into
    /// these, which are as long.
    pub(crate) fn map_all(&mut self, first: EventNumber, recorded: &[i64], before: &mut [i64], after: &mut [i64]) {
        self.location.map_all(recorded, before);
        let Some(&time) = before.first() else { return };
        let of = &self.location.of;
        if of.ties.is_empty() {
            self.correction.map_all(of.position_at(first, Ticks(time)), before, after);
            return;
        }
        for ((&time, corrected), number) in before.iter().zip(after).zip(first.and_following()) {
            *corrected = self.correction.map(of.position_at(number, Ticks(time))).0;
        }
    }
}

/// A time that is global already (those of snapshots and markers are made from pre-synchronised ones), shifted and corrected. It comes after every event
/// of that time.
pub(crate) fn map_global(correction: &Correction, shift: Ticks, location: u32, time: u64) -> u64 {
    let time = Ticks(time.min(RANGE as u64) as i64) + shift;
    correction.map(Position { time, location, number: EventNumber::END }).0.max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_clock::LinearClock;
    use clc_trace::ClockOffset;
    use proptest::prelude::*;

    /// A clock through two offsets.
    fn clock(drift: i64) -> Clock {
        let offset = |time, offset| ClockOffset { time, offset, standard_deviation: 0.0 };
        Clock::from(LinearClock::new(&[offset(0, 5), offset(1_000_000, 5 + drift)]).expect("a clock"))
    }

    proptest! {
        #[test]
        fn cursors_say_what_the_map_says(
            drift in -5000i64..5000, shift in 0i64..100, mut times in prop::collection::vec(0u64..2_000_000, 1..50)
        ) {
            times.sort_unstable();
            let (clock, correction) = (clock(drift), Correction::identity());
            let clock = LocationClock { clock: &clock, shift: Ticks(shift), location: 3, ties: &[] };
            let (mut cursor, mut corrected) = (clock.cursor(), clock.corrected_by(&correction));
            for (number, &time) in EventNumber::FIRST.and_following().zip(&times) {
                let position = clock.position(number, time);
                prop_assert_eq!((position.location, position.number), (3, number));
                prop_assert_eq!(cursor.position(number, time), position);
                prop_assert_eq!(corrected.map(number, time), (position.time.0, position.time.0));
                prop_assert_eq!(map_global(&correction, Ticks(shift), 3, time), time + shift as u64);
            }
            let recorded: Vec<i64> = times.iter().map(|&time| time as i64).collect();
            let (mut before, mut after) = (vec![0; times.len()], vec![0; times.len()]);
            clock.corrected_by(&correction).map_all(EventNumber::FIRST, &recorded, &mut before, &mut after);
            prop_assert_eq!(&before, &after);
            prop_assert!(before.iter().zip(&times).all(|(&before, &time)| before == clock.presynchronised(time).0));
        }
    }

    #[test]
    fn events_of_the_time_of_a_tie_are_in_its_layer() {
        let (clock, correction) = (clock(0), Correction::identity());
        let ties = [LocationTie { number: EventNumber(2), recorded: 50, layer: 3 }];
        let clock = LocationClock { clock: &clock, shift: Ticks(0), location: 1, ties: &ties };
        let mut cursor = clock.cursor();
        for (number, recorded, layer) in [(1, 50, 0), (2, 50, 3), (3, 50, 3), (4, 51, 0)] {
            let expected =
                Position { time: Ticks(recorded + 5), location: 1, number: EventNumber(number) }.in_layer(layer);
            assert_eq!(clock.position(EventNumber(number), recorded as u64), expected);
            assert_eq!(cursor.position(EventNumber(number), recorded as u64), expected);
        }
        let (mut before, mut after) = ([0; 4], [0; 4]);
        clock.corrected_by(&correction).map_all(EventNumber(1), &[50, 50, 50, 51], &mut before, &mut after);
        assert_eq!((before, after), ([55, 55, 55, 56], [55, 55, 55, 56]));
    }

    #[test]
    fn a_time_beyond_all_clocks_is_that_of_their_end() {
        let clock = clock(0);
        let clock = LocationClock { clock: &clock, shift: Ticks(1), location: 0, ties: &[] };
        assert_eq!(clock.presynchronised(u64::MAX), clock.presynchronised(RANGE as u64));
        assert!(!clock.is_identity());
    }
}
