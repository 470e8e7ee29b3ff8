//! The directions in which clocks send to each other, numbered: what is learned of each lies in plain lists in this order, and threads take them in blocks.
//! Where a thousand clocks meet in collective operations there are many directions with a few messages each.

use clc_trace::workers::{Workers, blocks};
use std::collections::BTreeSet;
use std::ops::Range;

/// The directions of some messages, in the order of (sending clock, receiving clock).
#[derive(Debug, Default, PartialEq)]
pub struct Directions {
    pairs: Vec<(u32, u32)>,
    /// Where the messages of each begin, and where the last ones end.
    begins: Vec<usize>,
    /// The opposite direction of each.
    back: Vec<Option<u32>>,
    /// Whether a way leads back, so that the quickest messages are held to have met no delay.
    held: Vec<bool>,
    /// All of them, those of one pair of clocks side by side, in the order of the pairs (smaller clock, larger clock).
    by_pair: Vec<u32>,
    /// Blocks of directions, by about [`BLOCK`] messages.
    blocks: Vec<Range<usize>>,
}

/// Messages of a block: enough that a thread which takes it does not wait for the next one.
const BLOCK: usize = 4096;
/// Messages that one thread has looked at before another has begun. Chosen by hand: for fewer, starting threads costs more than it saves.
const ALONE: usize = 8192;

impl Directions {
    /// Of messages between these pairs of clocks, in this order, which is that of the pairs; the directions in `one_sided` are those that no way leads back from.
    pub(super) fn new(messages: impl Iterator<Item = (u32, u32)>, one_sided: &BTreeSet<(u32, u32)>) -> Directions {
        let mut all = Directions { begins: vec![0], ..Directions::default() };
        let mut end = 0;
        for pair in messages {
            end += 1;
            if all.pairs.last() == Some(&pair) {
                all.begins.pop();
            } else {
                all.pairs.push(pair);
            }
            all.begins.push(end);
        }
        all.blocks = blocks(all.begins.windows(2).map(|ends| ends[1] - ends[0]), BLOCK);
        all.held = all.pairs.iter().map(|pair| one_sided.is_empty() || !one_sided.contains(pair)).collect();
        all.by_pair = (0..all.pairs.len() as u32).collect();
        all.by_pair.sort_unstable_by_key(|&direction| {
            let (a, b) = all.pairs[direction as usize];
            (a.min(b), a.max(b), a)
        });
        all.back = vec![None; all.pairs.len()];
        for two in all.by_pair.windows(2) {
            if let &[one, other] = two
                && all.pairs[one as usize] == (all.pairs[other as usize].1, all.pairs[other as usize].0)
            {
                all.back[one as usize] = Some(other);
                all.back[other as usize] = Some(one);
            }
        }
        all
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The clocks of each: (sending, receiving).
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.pairs
    }

    /// The number of a direction.
    pub fn find(&self, pair: (u32, u32)) -> Option<usize> {
        self.pairs.binary_search(&pair).ok()
    }

    /// The messages of one.
    pub fn messages(&self, direction: usize) -> Range<usize> {
        self.begins[direction]..self.begins[direction + 1]
    }

    /// The opposite direction of one.
    pub fn back(&self, direction: usize) -> Option<usize> {
        self.back[direction].map(|back| back as usize)
    }

    /// Whether a way leads back from one, so that its quickest messages are held to have met no delay.
    pub fn is_held(&self, direction: usize) -> bool {
        self.held[direction]
    }

    /// All, those of one pair of clocks side by side, in the order of the pairs.
    pub fn by_pair(&self) -> impl Iterator<Item = usize> {
        self.by_pair.iter().map(|direction| *direction as usize)
    }

    /// What `work` makes of each block of directions, given its number and its directions; in their order, by as many threads as it is worth.
    pub(super) fn map<R: Send>(&self, workers: Workers, work: impl Fn(usize, Range<usize>) -> R + Sync) -> Vec<R> {
        let messages = self.begins.last().copied().unwrap_or(0);
        let workers = if messages < ALONE { Workers::ONE } else { workers };
        workers.map(self.blocks.len(), |block| work(block, self.blocks[block].clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn directions_have_their_messages_and_find_each_other(
            counts in prop::collection::btree_map((0u32..6, 0u32..6), 1usize..1500, 0..20), sides in prop::collection::btree_set((0u32..6, 0u32..6), 0..5)
        ) {
            let counts: Vec<((u32, u32), usize)> = counts.into_iter().filter(|((a, b), _)| a != b).collect();
            let all = counts.iter().flat_map(|(pair, count)| std::iter::repeat_n(*pair, *count));
            let directions = Directions::new(all, &sides);
            prop_assert_eq!(directions.len(), counts.len());
            let mut messages = 0..0;
            for (direction, (pair, count)) in counts.iter().enumerate() {
                messages = messages.end..messages.end + count;
                prop_assert_eq!(directions.messages(direction), messages.clone());
                prop_assert_eq!(directions.find(*pair), Some(direction));
                prop_assert_eq!(directions.is_held(direction), !sides.contains(pair));
                let back = counts.iter().position(|(other, _)| *other == (pair.1, pair.0));
                prop_assert_eq!(directions.back(direction), back);
            }
            let pairs: Vec<(u32, u32, u32)> =
                directions.by_pair().map(|k| directions.pairs()[k]).map(|(a, b)| (a.min(b), a.max(b), a)).collect();
            prop_assert!(pairs.is_sorted() && pairs.len() == counts.len());
            let blocks = directions.map(Workers::ONE, |_, block| block);
            prop_assert_eq!(blocks.into_iter().flatten().collect::<Vec<_>>(), (0..counts.len()).collect::<Vec<_>>());
        }
    }
}
