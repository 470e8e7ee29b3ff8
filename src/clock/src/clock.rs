//! The clock of a location as the pipeline uses it: interpolated measurements, and what was learnt from the messages on top.

use super::ModelKind;
use super::linear::{LinearClock, LinearClockCursor};
use clc_trace::vector::widest;
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
        ClockCursor { base: self.base.cursor(), refinement: self.refinement.as_ref().map(LinearClock::cursor) }
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

/// A [`Clock`] with a memory of where the last time was, amortised constant time for nondecreasing times.
#[derive(Debug, Clone)]
pub struct ClockCursor<'clock> {
    base: LinearClockCursor<'clock>,
    refinement: Option<LinearClockCursor<'clock>>,
}

/// So many times at once: if one of them is not mapped easily, all of them are mapped again.
const BATCH: usize = 32;

impl ClockCursor<'_> {
    /// Global time at `local`, as [`Clock::map`].
    #[inline(always)]
    pub fn map(&mut self, local: Ticks) -> Ticks {
        let time = self.base.map(local);
        match &mut self.refinement {
            Some(refinement) => refinement.map(time),
            None => time,
        }
    }

    /// As [`ClockCursor::map`] for many times, in ticks: puts the global ones in `global`, which is as long.
    pub fn map_all(&mut self, local: &[i64], global: &mut [i64]) {
        widest(
            #[inline(always)]
            || {
                for (local, global) in local.chunks(BATCH).zip(global.chunks_mut(BATCH)) {
                    self.base.map_some(local, global);
                    if let Some(refinement) = &mut self.refinement {
                        let mut between = [0; BATCH];
                        let between = &mut between[..global.len()];
                        between.copy_from_slice(global);
                        refinement.map_some(between, global);
                    }
                }
            },
        );
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
