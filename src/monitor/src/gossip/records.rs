//! Data of all nodes, and who is dead or has left, as records that newer ones replace.
//!
//! A record is told on until it has been sent often enough to be with all (a few times the logarithm of the group's size,
//! as rumours are in SWIM), the least told first. Beyond that each message has room for one more, in turn: so one who was cut off
//! gets what it missed. What goes to all nodes has at most half of a message if there are data of the group to tell: names of a thousand
//! nodes that start do not hold back what the group has to say.

use super::message::{GossipRecord, RecordKey};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct Stored {
    version: u64,
    everywhere: bool,
    bytes: Box<[u8]>,
    place: (u32, u64),
}

/// How often a record is told before it counts as known to all: hearers double with each round, so 12 would reach 4,096 nodes if no packet were lost; groups
/// are much smaller, and records that are known are repeated in turn.
const OFTEN: u32 = 12;
/// What it is told of data, which will be replaced soon: 4 times. The others come first.
const OFTEN_BEFORE_DATA: u32 = 8;

/// Everything known, by what it is about.
#[derive(Debug, Default)]
pub(crate) struct RecordStore {
    stored: BTreeMap<RecordKey, Stored>,
    /// What to tell next, of the group and everywhere: how often told, order of arrival, what.
    queues: [BTreeSet<(u32, u64, RecordKey)>; 2],
    arrivals: u64,
}

impl RecordStore {
    /// Takes a record in if it is newer than what is there. Whether it is.
    pub(crate) fn take(&mut self, record: &GossipRecord) -> bool {
        self.take_as(record, record.key.layer > 0)
    }

    /// The same; urgent ones are told before others, and more often.
    pub(crate) fn take_as(&mut self, record: &GossipRecord, urgent: bool) -> bool {
        if self.stored.get(&record.key).is_some_and(|known| known.version >= record.version) {
            return false;
        }
        self.arrivals += 1;
        let place = (if urgent { 0 } else { OFTEN_BEFORE_DATA }, self.arrivals);
        let GossipRecord { version, everywhere, .. } = *record;
        let stored = Stored { version, everywhere, bytes: record.bytes.into(), place };
        if let Some(old) = self.stored.insert(record.key, stored) {
            self.queues[usize::from(old.everywhere)].remove(&(old.place.0, old.place.1, record.key));
        }
        self.queues[usize::from(everywhere)].insert((place.0, place.1, record.key));
        true
    }

    pub(crate) fn get(&self, key: RecordKey) -> Option<GossipRecord<'_>> {
        let stored = self.stored.get(&key)?;
        Some(GossipRecord { key, everywhere: stored.everywhere, version: stored.version, bytes: &stored.bytes })
    }

    pub(crate) fn version(&self, key: RecordKey) -> Option<u64> {
        self.stored.get(&key).map(|stored| stored.version)
    }

    /// The records of one node or entry, by key.
    pub(crate) fn of(&self, layer: u8, id: u32) -> impl Iterator<Item = GossipRecord<'_>> {
        let (first, last) = (RecordKey { layer, id, key: 0 }, RecordKey { layer, id, key: u16::MAX });
        self.stored.range(first..=last).map(|(&key, stored)| {
            let Stored { version, everywhere, ref bytes, .. } = *stored;
            GossipRecord { key, everywhere, version, bytes }
        })
    }

    /// What to tell in one message: up to `budget` bytes of what was not told often enough, and one record for those who missed it.
    pub(crate) fn pick(&mut self, budget: usize, everywhere_only: bool) -> Vec<RecordKey> {
        if everywhere_only {
            return self.pick_from(true, budget).0;
        }
        let (mut picked, left) = self.pick_from(true, budget / 2);
        let (group, left) = self.pick_from(false, budget - budget / 2 + left);
        picked.extend(group);
        if left > budget / 4 {
            let more = self.pick_from(true, left).0;
            picked.extend(more.into_iter().filter(|key| !picked.contains(key)).collect::<Vec<_>>());
        }
        picked
    }

    /// Records of one queue, and what is left of the budget.
    fn pick_from(&mut self, everywhere: bool, budget: usize) -> (Vec<RecordKey>, usize) {
        let (mut left, mut picked) = (budget, Vec::new());
        for &(told, _, key) in &self.queues[usize::from(everywhere)] {
            let Some(stored) = self.stored.get(&key) else { continue };
            let size = size(stored);
            // One that is too long for any budget goes alone, lest it never go.
            if size > left && !(picked.is_empty() && told < OFTEN) {
                break;
            }
            left = left.saturating_sub(size);
            picked.push(key);
            if told >= OFTEN {
                left = 0;
                break;
            }
        }
        for &key in &picked {
            self.told(key);
        }
        (picked, left)
    }

    fn told(&mut self, key: RecordKey) {
        let Some(stored) = self.stored.get_mut(&key) else { return };
        let queue = &mut self.queues[usize::from(stored.everywhere)];
        queue.remove(&(stored.place.0, stored.place.1, key));
        self.arrivals += 1;
        stored.place = (stored.place.0.saturating_add(1), self.arrivals);
        queue.insert((stored.place.0, stored.place.1, key));
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

    fn record(id: u32, version: u64, bytes: &[u8]) -> GossipRecord<'_> {
        GossipRecord { key: RecordKey { layer: 0, id, key: 1 }, everywhere: id.is_multiple_of(2), version, bytes }
    }

    #[test]
    fn newer_data_wins() {
        let mut records = RecordStore::default();
        assert!(records.take(&record(1, 5, b"five")));
        assert!(!records.take(&record(1, 5, b"other")) && !records.take(&record(1, 4, b"four")));
        assert!(records.take(&record(1, 6, b"six")));
        let found: Vec<_> = records.of(0, 1).collect();
        assert_eq!(found, [record(1, 6, b"six")]);
        assert_eq!(records.queues.each_ref().map(BTreeSet::len), [1, 0]);
    }

    #[test]
    fn news_goes_first_and_the_rest_in_turn() {
        let mut records = RecordStore::default();
        (0..4).for_each(|id| assert!(records.take(&record(id, 1, &[0; 30]))));
        let ids = |keys: Vec<RecordKey>| keys.iter().map(|key| key.id).collect::<Vec<_>>();
        assert_eq!(ids(records.pick(80, false)), [0, 1], "half for all, half for the group");
        assert_eq!(ids(records.pick(80, false)), [2, 3]);
        (0..3).for_each(|_| assert_eq!(ids(records.pick(160, false)), [0, 2, 1, 3]));
        assert_eq!(ids(records.pick(160, false)), [0, 1], "told often enough: one at a time");
        assert_eq!(ids(records.pick(160, false)), [2, 3]);
        assert_eq!(ids(records.pick(160, true)), [0], "only what goes everywhere");
        records.take(&record(2, 2, b"new"));
        let death =
            GossipRecord { key: RecordKey { layer: 1, id: 9, key: 0 }, everywhere: true, version: 1, bytes: b"D" };
        records.take(&death);
        assert_eq!(ids(records.pick(15, true)), [9], "deaths before data");
        assert_eq!(records.slices(80, false).len(), 2);
    }
}
