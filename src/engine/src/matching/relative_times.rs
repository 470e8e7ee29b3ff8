//! Other times of the visited events of a timeline: how much later they are than those it has.

use crate::matching::times::BLOCK;

/// Times as what they are later than others: clocks differ by little more in the end than at the beginning.
#[derive(Debug, Clone, Default)]
pub(crate) struct RelativeTimes {
    /// How much the first one is later.
    base: i64,
    /// How much more than that the others are.
    more: Differences,
}

/// Differences: four bytes each as long as that is enough.
#[derive(Debug, Clone)]
enum Differences {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl Default for Differences {
    fn default() -> Self {
        Differences::Narrow(Vec::new())
    }
}

impl RelativeTimes {
    /// None, with room for so many.
    pub(crate) fn with_capacity(events: usize) -> RelativeTimes {
        RelativeTimes { base: 0, more: Differences::Narrow(Vec::with_capacity(events)) }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.more {
            Differences::Narrow(more) => more.is_empty(),
            Differences::Wide(more) => more.is_empty(),
        }
    }

    /// By how much the time of an event is later; `None` if it has none.
    #[inline(always)]
    pub(crate) fn later_by(&self, event: usize) -> Option<i64> {
        let more = match &self.more {
            Differences::Narrow(more) => i64::from(*more.get(event)?),
            Differences::Wide(more) => *more.get(event)?,
        };
        Some(self.base.wrapping_add(more))
    }

    /// Appends one that is later by so much.
    #[inline(always)]
    pub(crate) fn push(&mut self, later: i64) {
        match (&mut self.more, i32::try_from(later.wrapping_sub(self.base))) {
            // Nearly all of them.
            (Differences::Narrow(more), Ok(difference)) if !more.is_empty() => more.push(difference),
            _ => self.push_any(later),
        }
    }

    /// As [`RelativeTimes::push`], however late it is.
    #[inline(never)]
    fn push_any(&mut self, later: i64) {
        match &mut self.more {
            Differences::Narrow(more) if more.is_empty() => {
                self.base = later;
                more.push(0);
            }
            Differences::Narrow(_) => {
                self.widen();
                self.push_any(later);
            }
            Differences::Wide(more) => more.push(later.wrapping_sub(self.base)),
        }
    }

    /// An event is later by so much.
    #[inline]
    pub(crate) fn set(&mut self, event: usize, later: i64) {
        let difference = later.wrapping_sub(self.base);
        match (&mut self.more, i32::try_from(difference)) {
            (Differences::Narrow(more), Ok(difference)) => more[event] = difference,
            (Differences::Narrow(_), Err(_)) => {
                self.widen();
                self.set(event, later);
            }
            (Differences::Wide(more), _) => more[event] = difference,
        }
    }

    /// An event becomes later by so much more.
    #[inline]
    pub(crate) fn add(&mut self, event: usize, more: i64) {
        if more != 0 {
            self.set(event, self.later_by(event).unwrap_or(0).wrapping_add(more));
        }
    }

    /// Some of the others, at most [`BLOCK`] that follow each other from event `first` on, become what `new` puts in their place: it gets the times here, which stay as they are. Once for
    /// all events, and then [`RelativeTimes::rebase`] with the same `base`: how much later the first one is then.
    #[inline(always)]
    pub(crate) fn renew_others(
        &mut self,
        first: usize,
        others: &mut [i64],
        base: i64,
        new: impl FnOnce(&[i64], &mut [i64]),
    ) {
        let mut times = [0; BLOCK];
        let times = &mut times[..others.len()];
        times.copy_from_slice(others);
        match &self.more {
            Differences::Narrow(more) => times.iter_mut().zip(&more[first..]).for_each(|(time, more)| {
                *time = time.wrapping_add(self.base).wrapping_add(i64::from(*more));
            }),
            Differences::Wide(more) => times.iter_mut().zip(&more[first..]).for_each(|(time, more)| {
                *time = time.wrapping_add(self.base).wrapping_add(*more);
            }),
        }
        new(times, others);
        let later = |(time, other): (&i64, &i64)| time.wrapping_sub(*other).wrapping_sub(base);
        if let Differences::Narrow(more) = &mut self.more {
            let mut narrow = true;
            for (more, times) in more[first..].iter_mut().zip(times.iter().zip(&*others)) {
                let difference = later(times);
                narrow &= i64::from(difference as i32) == difference;
                *more = difference as i32;
            }
            if narrow {
                return;
            }
            self.widen();
        }
        if let Differences::Wide(more) = &mut self.more {
            let places = more[first..].iter_mut().zip(times.iter().zip(&*others));
            places.for_each(|(more, times)| *more = later(times));
        }
    }

    /// All have been renewed or exchanged.
    pub(crate) fn rebase(&mut self, base: i64) {
        self.base = base;
    }

    /// Exchanges the times of some events, which follow each other from event `first` on, with the others. Once for all events, and then [`RelativeTimes::rebase`] with the opposite
    /// of [`RelativeTimes::base`].
    #[inline]
    pub(crate) fn exchange(&mut self, first: usize, others: &mut [i64]) {
        let base = self.base;
        if let Differences::Narrow(more) = &mut self.more {
            let more = &mut more[first..][..others.len()];
            // The smallest one has no opposite.
            if !more.contains(&i32::MIN) {
                for (other, more) in others.iter_mut().zip(more) {
                    *other = other.wrapping_add(base).wrapping_add(i64::from(*more));
                    *more = -*more;
                }
                return;
            }
        }
        self.widen();
        if let Differences::Wide(more) = &mut self.more {
            for (other, more) in others.iter_mut().zip(&mut more[first..]) {
                *other = other.wrapping_add(base).wrapping_add(*more);
                *more = more.wrapping_neg();
            }
        }
    }

    /// How much the first one is later.
    pub(crate) fn base(&self) -> i64 {
        self.base
    }

    /// From now on differences take eight bytes.
    fn widen(&mut self) {
        if let Differences::Narrow(more) = &self.more {
            self.more = Differences::Wide(more.iter().map(|&more| i64::from(more)).collect());
        }
    }
}
