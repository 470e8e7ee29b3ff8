//! Times of the visited events of a timeline in few bytes.

/// Events of a block. Chosen by hand: with fewer, what a block takes counts; with more, more of them are long.
pub(crate) const BLOCK: usize = 64;

/// What stands in the place of the earliest time of a long block: this and its number among those, of which there are fewer than 2³².
const LONG: i64 = i64::MIN;
const LAST_LONG: i64 = LONG + u32::MAX as i64;

/// Times in ticks, in any order: by how much they are later than the earliest one of their block, in four bytes as long as that is enough, and in eight where a block is longer than
/// 2³² ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// The earliest time of each block.
    earliest: Vec<i64>,
    /// Of each event, the lower half of how much later it is than that.
    later: Vec<u32>,
    long: Vec<LongBlock>,
}

/// The rest of a block that is long.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LongBlock {
    earliest: i64,
    /// The upper halves.
    later: [u32; BLOCK],
}

impl LongBlock {
    /// The time of one of its events, of which the lower half is given.
    fn at(&self, place: usize, later: u32) -> i64 {
        self.earliest.wrapping_add((i64::from(self.later[place]) << 32) | i64::from(later))
    }
}

impl Times {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.later.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.later.is_empty()
    }

    /// The time of an event.
    #[inline(always)]
    pub fn at(&self, event: usize) -> i64 {
        let (earliest, later) = (self.earliest[event / BLOCK], self.later[event]);
        if earliest <= LAST_LONG { self.in_long(event, earliest, later) } else { earliest + i64::from(later) }
    }

    #[cold]
    fn in_long(&self, event: usize, mark: i64, later: u32) -> i64 {
        self.long[Times::number(mark)].at(event % BLOCK, later)
    }

    /// The number of a long block.
    fn number(mark: i64) -> usize {
        mark.wrapping_sub(LONG) as usize
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).map(|event| self.at(event))
    }

    /// Appends the time of the next event.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: i64) {
        let fits = match self.earliest.last() {
            Some(&earliest) if !self.len().is_multiple_of(BLOCK) && earliest > LAST_LONG && time >= earliest => {
                u32::try_from(time.wrapping_sub(earliest) as u64).ok()
            }
            _ => None,
        };
        match fits {
            // Nearly all of them.
            Some(later) => self.later.push(later),
            None => self.push_any(time),
        }
    }

    /// As [`Times::push`], at the beginning of a block or if the block is or becomes a long one.
    #[inline(never)]
    fn push_any(&mut self, time: i64) {
        let (block, place) = (self.len() / BLOCK, self.len() % BLOCK);
        if place == 0 {
            self.earliest.push(time);
        }
        let mut times = [0; BLOCK];
        self.copy(block, &self.long, &mut times[..place]);
        times[place] = time;
        if self.earliest[block] <= LAST_LONG && place > 0 {
            // The last one of them.
            self.long.pop();
        }
        self.later.push(0);
        self.put(block, &times[..=place]);
    }

    /// Replaces the times of a block.
    #[inline(always)]
    fn put(&mut self, block: usize, times: &[i64]) {
        // Nearly always that is the first one.
        let mut earliest = times.first().copied().unwrap_or(0);
        let longest = |earliest: i64| times.iter().fold(0, |all, time| all | time.wrapping_sub(earliest) as u64);
        if longest(earliest) > u64::from(u32::MAX) {
            earliest = times.iter().copied().min().unwrap_or(0);
        }
        if earliest <= LAST_LONG || longest(earliest) > u64::from(u32::MAX) {
            return self.put_long(block, earliest, times);
        }
        self.earliest[block] = earliest;
        for (later, time) in self.later[block * BLOCK..].iter_mut().zip(times) {
            *later = time.wrapping_sub(earliest) as u32;
        }
    }

    #[inline(never)]
    fn put_long(&mut self, block: usize, earliest: i64, times: &[i64]) {
        self.earliest[block] = LONG + self.long.len() as i64;
        let mut long = LongBlock { earliest, later: [0; BLOCK] };
        for ((high, low), time) in long.later.iter_mut().zip(&mut self.later[block * BLOCK..]).zip(times) {
            let later = time.wrapping_sub(earliest) as u64;
            (*high, *low) = ((later >> 32) as u32, later as u32);
        }
        self.long.push(long);
    }

    /// Replaces all times: `change` gets those of some events that follow each other, at most [`BLOCK`], and the number of the first one.
    pub(crate) fn change(&mut self, mut change: impl FnMut(usize, &mut [i64])) {
        let long = std::mem::take(&mut self.long);
        let mut times = [0; BLOCK];
        for block in 0..self.earliest.len() {
            let first = block * BLOCK;
            let some = &mut times[..BLOCK.min(self.later.len() - first)];
            self.copy(block, &long, some);
            change(first, some);
            self.put(block, some);
        }
    }

    /// The first times of a block.
    #[inline(always)]
    fn copy(&self, block: usize, long: &[LongBlock], times: &mut [i64]) {
        let (earliest, later) = (self.earliest[block], &self.later[block * BLOCK..]);
        if earliest > LAST_LONG {
            times.iter_mut().zip(later).for_each(|(time, &later)| *time = earliest + i64::from(later));
        } else {
            let places = times.iter_mut().zip(later).enumerate();
            places.for_each(|(place, (time, &later))| *time = long[Times::number(earliest)].at(place, later));
        }
    }

    /// Makes all times later.
    pub(crate) fn shift(&mut self, by: i64) {
        self.change(|_, times| times.iter_mut().for_each(|time| *time += by));
    }
}

impl FromIterator<i64> for Times {
    fn from_iter<I: IntoIterator<Item = i64>>(all: I) -> Times {
        let mut times = Times::default();
        all.into_iter().for_each(|time| times.push(time));
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Times of which most are close to those before.
    fn times() -> impl Strategy<Value = Vec<i64>> {
        let step = prop_oneof![200 => 0i64..1000, 2 => (1i64 << 31)..(1 << 33), 1 => -1000i64..0, 1 => any::<i64>()];
        prop::collection::vec(step, 0..300).prop_map(|steps| {
            steps
                .into_iter()
                .scan(0i64, |time, step| {
                    *time = time.wrapping_add(step);
                    Some(*time)
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn times_come_back_as_they_were_pushed_and_changed(first in times(), second in times()) {
            let mut kept: Times = first.iter().copied().collect();
            prop_assert_eq!(kept.iter().collect::<Vec<i64>>(), first.clone());
            let second: Vec<i64> = second.into_iter().chain(0..).take(first.len()).collect();
            // There and back again: blocks become long ones, and short.
            for (old, new) in [(&first, &second), (&second, &first), (&first, &second)] {
                kept.change(|begin, times| {
                    assert_eq!(times, &old[begin..][..times.len()]);
                    times.copy_from_slice(&new[begin..][..times.len()]);
                });
                prop_assert_eq!(kept.iter().collect::<Vec<i64>>(), new.clone());
            }
            prop_assert_eq!(kept.len(), first.len());
        }
    }

    #[test]
    fn only_long_blocks_take_more() {
        let mut times: Times = (0..200).map(|event| event * 1_000_000).collect();
        assert_eq!((times.earliest.len(), times.long.len()), (4, 0));
        times.push(1 << 40);
        times.shift(5);
        assert_eq!((times.long.len(), times.at(0), times.at(200)), (1, 5, (1 << 40) + 5));
    }
}
