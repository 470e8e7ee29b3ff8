//! Data of all nodes, and who is dead or has left, as records that newer ones replace.
//!
//! A record is told on until it has been sent often enough to be with all (a few times the logarithm of the group's size,
//! as rumours are in SWIM), the least told first. Beyond that each message has room for one more, in turn: so one who was cut off
//! gets what it missed.

use super::message::{Record, RecordKey};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct Stored {
    version: u64,
    everywhere: bool,
    bytes: Box<[u8]>,
    place: (u32, u64),
}

/// How often a record is told before it counts as known to all.
const OFTEN: u32 = 12;
/// What it is told of data, which will be replaced soon: 4 times. The others come first.
const OFTEN_BEFORE_DATA: u32 = 8;

/// Everything known, by what it is about.
#[derive(Debug, Default)]
pub(crate) struct Records {
    stored: BTreeMap<RecordKey, Stored>,
    /// What to tell next: how often told, order of arrival, what.
    queue: BTreeSet<(u32, u64, RecordKey)>,
    arrivals: u64,
}

impl Records {
    /// Takes a record in if it is newer than what is there. Whether it is.
    pub(crate) fn take(&mut self, record: &Record) -> bool {
        if self.stored.get(&record.key).is_some_and(|known| known.version >= record.version) {
            return false;
        }
        self.arrivals += 1;
        let urgent = record.key.layer > 0 || record.key.key == super::identity::KEY;
        let place = (if urgent { 0 } else { OFTEN_BEFORE_DATA }, self.arrivals);
        let Record { version, everywhere, .. } = *record;
        let stored = Stored { version, everywhere, bytes: record.bytes.into(), place };
        if let Some(old) = self.stored.insert(record.key, stored) {
            self.queue.remove(&(old.place.0, old.place.1, record.key));
        }
        self.queue.insert((place.0, place.1, record.key));
        true
    }

    pub(crate) fn get(&self, key: RecordKey) -> Option<Record<'_>> {
        let stored = self.stored.get(&key)?;
        Some(Record { key, everywhere: stored.everywhere, version: stored.version, bytes: &stored.bytes })
    }

    pub(crate) fn version(&self, key: RecordKey) -> Option<u64> {
        self.stored.get(&key).map(|stored| stored.version)
    }

    /// The records of one node or entry, by key.
    pub(crate) fn of(&self, layer: u8, id: u32) -> impl Iterator<Item = Record<'_>> {
        let (first, last) = (RecordKey { layer, id, key: 0 }, RecordKey { layer, id, key: u16::MAX });
        self.stored.range(first..=last).map(|(&key, stored)| {
            let Stored { version, everywhere, ref bytes, .. } = *stored;
            Record { key, everywhere, version, bytes }
        })
    }

    /// What to tell in one message: up to `budget` bytes of what was not told often enough, and one record for those who missed it.
    pub(crate) fn pick(&mut self, budget: usize, everywhere_only: bool) -> Vec<RecordKey> {
        let (mut left, mut picked) = (budget, Vec::new());
        for &(told, _, key) in &self.queue {
            let Some(stored) = self.stored.get(&key) else { continue };
            if everywhere_only && !stored.everywhere {
                continue;
            }
            let size = size(stored);
            if size > left && !picked.is_empty() {
                break;
            }
            left = left.saturating_sub(size);
            picked.push(key);
            if told >= OFTEN {
                break;
            }
        }
        for &key in &picked {
            self.told(key);
        }
        picked
    }

    fn told(&mut self, key: RecordKey) {
        let Some(stored) = self.stored.get_mut(&key) else { return };
        self.queue.remove(&(stored.place.0, stored.place.1, key));
        self.arrivals += 1;
        stored.place = (stored.place.0.saturating_add(1), self.arrivals);
        self.queue.insert((stored.place.0, stored.place.1, key));
    }

    /// All keys, cut into lists for one message each.
    pub(crate) fn slices(&self, budget: usize, everywhere_only: bool) -> Vec<Vec<RecordKey>> {
        let (mut slices, mut left) = (Vec::<Vec<RecordKey>>::new(), 0);
        for (&key, stored) in self.stored.iter().filter(|(_, stored)| stored.everywhere || !everywhere_only) {
            let size = size(stored);
            match slices.last_mut() {
                Some(slice) if size <= left => {
                    slice.push(key);
                    left -= size;
                }
                _ => {
                    slices.push(vec![key]);
                    left = budget.saturating_sub(size);
                }
            }
        }
        slices
    }
}

/// Bytes of a record in a packet, about.
fn size(stored: &Stored) -> usize {
    stored.bytes.len() + 10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u32, version: u64, bytes: &[u8]) -> Record<'_> {
        Record { key: RecordKey { layer: 0, id, key: 1 }, everywhere: id.is_multiple_of(2), version, bytes }
    }

    #[test]
    fn newer_data_wins() {
        let mut records = Records::default();
        assert!(records.take(&record(1, 5, b"five")));
        assert!(!records.take(&record(1, 5, b"other")) && !records.take(&record(1, 4, b"four")));
        assert!(records.take(&record(1, 6, b"six")));
        let found: Vec<_> = records.of(0, 1).collect();
        assert_eq!(found, [record(1, 6, b"six")]);
        assert_eq!(records.queue.len(), 1);
    }

    #[test]
    fn news_goes_first_and_the_rest_in_turn() {
        let mut records = Records::default();
        (0..4).for_each(|id| assert!(records.take(&record(id, 1, &[0; 30]))));
        let ids = |keys: Vec<RecordKey>| keys.iter().map(|key| key.id).collect::<Vec<_>>();
        assert_eq!(ids(records.pick(80, false)), [0, 1]);
        assert_eq!(ids(records.pick(80, false)), [2, 3]);
        (0..3).for_each(|_| assert_eq!(ids(records.pick(200, false)), [0, 1, 2, 3]));
        assert_eq!(ids(records.pick(200, false)), [0], "told often enough: one at a time");
        assert_eq!(ids(records.pick(200, false)), [1]);
        assert_eq!(ids(records.pick(200, true)), [2], "only what goes everywhere");
        records.take(&record(3, 2, b"new"));
        let death = Record { key: RecordKey { layer: 1, id: 9, key: 0 }, everywhere: true, version: 1, bytes: b"D" };
        records.take(&death);
        assert_eq!(ids(records.pick(15, false)), [9], "deaths before data");
        assert_eq!(records.slices(80, false).len(), 2);
    }
}
