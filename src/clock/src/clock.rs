//! The clock of a location as the pipeline uses it: interpolated measurements, and what was learnt from the messages on top.

use super::ModelKind;
use super::linear::{self, LinearClock};
use clc_trace::{Result, Ticks};

/// Local time, through the interpolation of recorded offsets, through a refinement: the composition of two nondecreasing
/// functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clock {
    base: LinearClock,
    refinement: Option<LinearClock>,
}

impl From<LinearClock> for Clock {
    fn from(base: LinearClock) -> Self {
        Clock { base, refinement: None }
    }
}

impl Clock {
    /// `base`, and then `refinement` from its times to global time.
    pub fn refined(base: LinearClock, refinement: LinearClock) -> Self {
        let refinement = (refinement.kind() != ModelKind::Identity).then_some(refinement);
        Clock { base, refinement }
    }

    /// Global time at `local`; the same result as [`ClockCursor::map`].
    pub fn map(&self, local: Ticks) -> Ticks {
        let time = self.base.map(local);
        self.refinement.as_ref().map_or(time, |refinement| refinement.map(time))
    }

    /// A reader for many times, best in nondecreasing order.
    pub fn cursor(&self) -> ClockCursor<'_> {
        let base = Holding::new(&self.base, Ticks::ZERO);
        let refinement = self.refinement.as_ref().map(|refinement| Holding::new(refinement, Ticks::ZERO));
        let mut cursor = ClockCursor { base, refinement, from: 0, longer: 0, offset: 0 };
        cursor.go_on(Ticks::ZERO);
        cursor
    }

    /// Local times at least so far apart are mapped to times at least `distance` apart.
    pub fn reach(&self, distance: u64) -> u64 {
        self.base.reach(self.refinement.as_ref().map_or(distance, |refinement| refinement.reach(distance)))
    }

    /// What the clock does.
    pub fn kind(&self) -> ModelKind {
        match &self.refinement {
            None => self.base.kind(),
            // Never the identity, even if the two happened to cancel out.
            Some(refinement) => self.base.kind().max(refinement.kind()).max(ModelKind::Constant),
        }
    }

    /// Checks that the times from `first` to `last` map into the range of times, as [`LinearClock::check_range`].
    ///
    /// # Errors
    /// They do not.
    pub fn check_range(&self, first: Ticks, last: Ticks) -> Result<()> {
        self.base.check_range(first, last)?;
        match &self.refinement {
            Some(refinement) => refinement.check_range(self.base.map(first), self.base.map(last)),
            None => Ok(()),
        }
    }
}

/// A [`Clock`] with a memory of how long the offset stays the same, amortised constant time for nondecreasing times.
///
/// Clocks differ by millionths, so that the offset, rounded to ticks, is the same for many events in a row.
#[derive(Debug, Clone)]
pub struct ClockCursor<'clock> {
    base: Holding<'clock>,
    refinement: Option<Holding<'clock>>,
    /// At this time, and up to so many ticks after it, the offset is that one.
    from: i64,
    longer: u64,
    offset: i64,
}

impl ClockCursor<'_> {
    /// Global time at `local`, as [`Clock::map`].
    #[inline(always)]
    pub fn map(&mut self, local: Ticks) -> Ticks {
        if local.0.wrapping_sub(self.from) as u64 > self.longer {
            self.go_on(local);
        }
        Ticks(local.0.wrapping_add(self.offset))
    }

    /// As [`ClockCursor::map`] for many times, in ticks: puts the global ones in `global`, which is as long.
    pub fn map_all(&mut self, local: &[i64], global: &mut [i64]) {
        let mut done = 0;
        while done < local.len() {
            if local[done].wrapping_sub(self.from) as u64 > self.longer {
                self.go_on(Ticks(local[done]));
            }
            let (from, longer, offset) = (self.from, self.longer, self.offset);
            for (own, other) in local[done..].iter().zip(&mut global[done..]) {
                if own.wrapping_sub(from) as u64 > longer {
                    break;
                }
                *other = own.wrapping_add(offset);
                done += 1;
            }
        }
    }

    /// Finds the offset at `local`.
    #[inline(never)]
    fn go_on(&mut self, local: Ticks) {
        let (mut offset, mut longer) = self.base.at(local);
        if let Some(refinement) = &mut self.refinement {
            let (more, so_long) = refinement.at(Ticks(local.0.wrapping_add(offset)));
            (offset, longer) = (offset.wrapping_add(more), longer.min(so_long));
        }
        (self.from, self.longer, self.offset) = (local.0, longer, offset);
    }
}

/// The offset of one of the two clocks, which holds on when that of the other one has ended.
#[derive(Debug, Clone)]
struct Holding<'clock> {
    cursor: linear::LinearClockCursor<'clock>,
    from: i64,
    longer: u64,
    offset: i64,
}

impl<'clock> Holding<'clock> {
    fn new(clock: &'clock LinearClock, time: Ticks) -> Self {
        let mut holding = Holding { cursor: clock.cursor(), from: 0, longer: 0, offset: 0 };
        holding.renew(time);
        holding
    }

    /// The offset at `time`, and for how many ticks more it certainly is the same.
    #[inline]
    fn at(&mut self, time: Ticks) -> (i64, u64) {
        if time.0.wrapping_sub(self.from) as u64 > self.longer {
            self.renew(time);
        }
        (self.offset, self.longer - time.0.wrapping_sub(self.from) as u64)
    }

    fn renew(&mut self, time: Ticks) {
        let (offset, until) = self.cursor.hold(time);
        (self.from, self.longer, self.offset) = (time.0, until.0.wrapping_sub(time.0) as u64, offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::ClockOffset;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_composition_is_monotone_and_the_cursor_agrees(
            offsets in prop::collection::vec(-400i64..400, 2..5), refinement in prop::collection::vec(-400i64..400, 1..6),
            mut times in prop::collection::vec(0i64..6000, 1..40)
        ) {
            let records: Vec<ClockOffset> = offsets.iter().enumerate()
                .map(|(k, &offset)| ClockOffset { time: 1000 * k as u64, offset, standard_deviation: 0.0 }).collect();
            let points: Vec<(Ticks, Ticks)> = refinement.iter().enumerate()
                .map(|(k, &offset)| (Ticks(1000 * k as i64 - 2000), Ticks(offset))).collect();
            let clock = Clock::refined(LinearClock::new(&records).unwrap(), LinearClock::through(&points).unwrap());
            let mut cursor = clock.cursor();
            times.sort_unstable();
            let mapped: Vec<Ticks> = times.iter().map(|&time| cursor.map(Ticks(time))).collect();
            prop_assert!(mapped.windows(2).all(|pair| pair[0] <= pair[1]));
            for pair in times.windows(2).zip(mapped.windows(2)) {
                let (local, global) = (pair.0[1] - pair.0[0], pair.1[1] - pair.1[0]);
                for distance in [global.0 + 1, 2 * global.0 + 5] {
                    prop_assert!(clock.reach(distance as u64) > local as u64, "{local} ticks become {global}");
                }
            }
            let mut all = vec![0; times.len()];
            clock.cursor().map_all(&times, &mut all);
            prop_assert_eq!(all, mapped.iter().map(|time| time.0).collect::<Vec<i64>>());
            for (&time, &mapped) in times.iter().zip(&mapped) {
                prop_assert_eq!(clock.map(Ticks(time)), mapped);
            }
        }
    }

    #[test]
    fn no_refinement_is_the_clock_itself() {
        let plain = Clock::refined(LinearClock::identity(), LinearClock::identity());
        assert_eq!(plain, Clock::default());
        assert_eq!(plain.kind(), ModelKind::Identity);
        let constant = LinearClock::through(&[(Ticks(-5), Ticks(7))]).unwrap();
        assert_eq!(Clock::refined(LinearClock::identity(), constant).kind(), ModelKind::Constant);
    }
}
