//! What the main location of a process does between its operations: time by region, which delay costs compare.

use clc_engine::matching::hash::HashMap;

/// Time between operations by region, in the order of the operations.
///
/// There may be as many entries as operations, so they are kept as bytes: of each operation the number of entries before it, of each entry the region (its place
/// in [`Gaps::regions`]), the time in the first stage and how much longer the second one is, in 7 bits per byte.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// The regions in which the location was.
    pub regions: Vec<u32>,
    /// How MPI was initialised; what was before is not kept.
    pub initialised: Option<Initialised>,
    operations: u32,
    bytes: Vec<u8>,
    /// Where every [`INDEXED`]-th operation begins in the bytes.
    starts: Vec<usize>,
}

/// The call that initialised MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Initialised {
    /// The place of its region in [`Gaps::regions`].
    pub place: u32,
    /// When it was entered, by stage.
    pub enter: [i64; 2],
    /// When it was left.
    pub leave: [i64; 2],
}

/// Of so many operations one has its place in the bytes kept.
const INDEXED: u32 = 4;

impl Gaps {
    /// In the place of a region: outside of all.
    pub(crate) const OUTSIDE: u32 = u32::MAX;

    /// Number of operations of the main location, which are the first ones of its timeline.
    pub(crate) fn operations(&self) -> u32 {
        self.operations
    }

    /// From the entries before `operation` on.
    pub(crate) fn from(&self, operation: u32) -> GapReader<'_> {
        let start = self.starts.get((operation / INDEXED) as usize).copied().unwrap_or(self.bytes.len());
        let mut reader = GapReader { bytes: &self.bytes, next: start };
        (0..operation % INDEXED).for_each(|_| reader.operation(|_, _| {}));
        reader
    }
}

/// Gives what was before one operation after the other.
pub(crate) struct GapReader<'a> {
    bytes: &'a [u8],
    next: usize,
}

impl GapReader<'_> {
    /// The place of the region in [`Gaps::regions`], and its time by stage, of each entry before the next operation; none behind the last one.
    #[inline]
    pub(crate) fn operation(&mut self, mut visit: impl FnMut(u32, [i64; 2])) {
        for _ in 0..self.number() {
            let (region, first, more) = (self.number(), self.number() as i64, self.number());
            // An even number is twice what is more, an odd one twice what is less, less one.
            let more = (more >> 1) as i64 ^ -((more & 1) as i64);
            visit(region as u32, [first, first.wrapping_add(more)]);
        }
    }

    #[inline]
    fn number(&mut self) -> u64 {
        read(self.bytes, &mut self.next)
    }
}

/// Finds them, event by event.
#[derive(Debug, Default)]
pub(super) struct GapRecorder {
    /// Until when time is accounted for; none before the first event.
    until: Option<[i64; 2]>,
    /// Since the last operation, by region.
    sums: Vec<(u32, [i64; 2])>,
    /// The place of each region.
    places: HashMap<u32, u32>,
    gaps: Gaps,
}

impl GapRecorder {
    /// Until `time` the location was in `region`; in an operation if there is none.
    #[inline]
    pub(super) fn until(&mut self, region: Option<u32>, time: [i64; 2]) {
        let (Some(since), Some(region)) = (self.until.replace(time), region) else { return };
        let last = [0, 1].map(|stage| (time[stage] - since[stage]).max(0));
        if last == [0, 0] {
            return;
        }
        match self.sums.iter_mut().find(|(known, _)| *known == region) {
            Some((_, sums)) => (0..2).for_each(|stage| sums[stage] += last[stage]),
            None => self.sums.push((region, last)),
        }
    }

    /// Whether there was no operation yet.
    pub(super) fn is_first(&self) -> bool {
        self.gaps.operations == 0
    }

    /// MPI was initialised in `region` between these times: what was before does not count, unless there was an operation.
    pub(super) fn initialised(&mut self, region: u32, enter: [i64; 2], leave: [i64; 2]) {
        if self.is_first() {
            self.sums.clear();
            self.gaps.initialised = Some(Initialised { place: self.place(region), enter, leave });
        }
    }

    fn place(&mut self, region: u32) -> u32 {
        *self.places.entry(region).or_insert_with(|| {
            self.gaps.regions.push(region);
            self.gaps.regions.len() as u32 - 1
        })
    }

    /// The next operation begins.
    pub(super) fn operation(&mut self) {
        let mut sums = std::mem::take(&mut self.sums);
        if self.gaps.operations.is_multiple_of(INDEXED) {
            self.gaps.starts.push(self.gaps.bytes.len());
        }
        self.gaps.operations += 1;
        write(&mut self.gaps.bytes, sums.len() as u64);
        for (region, times) in sums.drain(..) {
            let place = self.place(region);
            let more = times[1].wrapping_sub(times[0]);
            write(&mut self.gaps.bytes, place.into());
            write(&mut self.gaps.bytes, times[0] as u64);
            write(&mut self.gaps.bytes, ((more << 1) ^ (more >> 63)) as u64);
        }
        self.sums = sums;
    }

    /// All of them.
    pub(super) fn finish(mut self) -> Gaps {
        self.gaps.bytes.shrink_to_fit();
        self.gaps.starts.shrink_to_fit();
        self.gaps
    }
}

/// The number at place `next` of the bytes, behind which `next` is then.
#[inline]
pub(crate) fn read(bytes: &[u8], next: &mut usize) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let Some(&byte) = bytes.get(*next) else { return number };
        *next += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// Appends a number, 7 bits per byte.
#[inline]
pub(crate) fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn before(gaps: &Gaps, operation: u32) -> Vec<(u32, [i64; 2])> {
        let mut all = Vec::new();
        gaps.from(operation).operation(|place, times| all.push((gaps.regions[place as usize], times)));
        all
    }

    #[test]
    fn times_between_operations() {
        let mut recorder = GapRecorder::default();
        recorder.until(Some(7), [10, 11]);
        recorder.until(Some(7), [15, 16]);
        recorder.until(Some(8), [17, 18]);
        recorder.until(Some(7), [20, 24]);
        recorder.operation();
        recorder.until(None, [30, 30]);
        recorder.operation();
        recorder.until(None, [31, 31]);
        recorder.until(Some(Gaps::OUTSIDE), [32, 33]);
        recorder.operation();
        let gaps = recorder.finish();
        assert_eq!(gaps.operations(), 3);
        assert_eq!(before(&gaps, 0), [(7, [8, 11]), (8, [2, 2])]);
        assert_eq!(before(&gaps, 1), []);
        assert_eq!(before(&gaps, 2), [(Gaps::OUTSIDE, [1, 2])]);
        assert_eq!(before(&gaps, 3), []);
    }

    #[test]
    fn what_was_before_mpi_was_initialised_is_not_kept() {
        let mut recorder = GapRecorder::default();
        recorder.until(Some(7), [10, 10]);
        recorder.until(Some(7), [15, 15]);
        recorder.until(Some(9), [20, 21]);
        recorder.initialised(9, [15, 15], [20, 21]);
        recorder.until(Some(7), [22, 24]);
        recorder.operation();
        // Another one after an operation says nothing.
        recorder.initialised(7, [22, 24], [23, 25]);
        let gaps = recorder.finish();
        let call = gaps.initialised.expect("a call");
        assert_eq!((gaps.regions[call.place as usize], call.enter, call.leave), (9, [15, 15], [20, 21]));
        assert_eq!(before(&gaps, 0), [(7, [2, 3])]);
    }

    proptest! {
        #[test]
        fn whatever_is_recorded_is_read(
            all in prop::collection::vec(prop::collection::btree_map(0u32.., [0i64..1 << 62, 0i64..1 << 62], 0..4), 0..40),
            from in 0usize..40,
        ) {
            let mut recorder = GapRecorder::default();
            for entries in &all {
                recorder.sums = entries.iter().map(|(&region, &times)| (region, times)).collect();
                recorder.operation();
            }
            let gaps = recorder.finish();
            let mut reader = gaps.from(from as u32);
            for entries in all.iter().skip(from) {
                let mut read = Vec::new();
                reader.operation(|place, times| read.push((gaps.regions[place as usize], times)));
                prop_assert_eq!(&read, &entries.iter().map(|(&region, &times)| (region, times)).collect::<Vec<_>>());
            }
            reader.operation(|_, _| panic!("behind the last one"));
        }
    }
}
