//! The largest entries of a list that is spread over the analysis ranks.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// At most so many entries, those with the largest values; every entry is known at one rank only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Largest<T> {
    most: usize,
    entries: Vec<(i128, T)>,
    /// How many entries there were, those that were dropped included.
    all: u64,
}

impl<T: Ord + Clone> Largest<T> {
    /// None yet, and at most `most`.
    pub(crate) fn new(most: usize) -> Largest<T> {
        Largest { most, entries: Vec::new(), all: 0 }
    }

    /// How many it keeps.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, value: i128, entry: T) {
        self.entries.push((value, entry));
        self.all += 1;
        // Not each time.
        if self.entries.len() >= 2 * self.most.max(512) {
            self.shorten();
        }
    }

    /// Adds those of another rank.
    pub(crate) fn merge(&mut self, other: Largest<T>) {
        self.entries.extend(other.entries);
        self.all += other.all;
        self.shorten();
    }

    fn shorten(&mut self) {
        // Equal values in an order that does not depend on who found them.
        self.entries.sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
        self.entries.truncate(self.most);
    }

    /// The entries, largest first, and how many others there are.
    pub(crate) fn finish(mut self) -> (Vec<T>, u64) {
        self.shorten();
        let further = self.all - self.entries.len() as u64;
        (self.entries.into_iter().map(|(_, entry)| entry).collect(), further)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_stay_however_they_are_spread() {
        let value = |entry: u32| i128::from(entry * 7919 % 1000);
        let all = |parts: u32| {
            let mut whole = Largest::new(10);
            for part in 0..parts {
                let mut own = Largest::new(10);
                (0..5000).filter(|entry| entry % parts == part).for_each(|entry| own.add(value(entry), entry));
                whole.merge(own);
            }
            whole.finish()
        };
        let (largest, further) = all(1);
        assert_eq!((largest.len(), further), (10, 4990));
        assert!(largest.iter().all(|&entry| value(entry) >= 998));
        assert_eq!(all(3), (largest, further));
    }
}
