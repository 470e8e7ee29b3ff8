//! Messages whose other end the trace does not name: an undefined rank, or one that is not in the communicator.
//!
//! Such an event takes part in nothing. But it may have been part of any channel of its process, kind (send or receive), communicator
//! and tag, and without it the later messages of that channel would be joined with the wrong partners. The rule, channel by channel:
//!
//! - Both ends have the same number of events: nothing is missing here.
//! - The other end has exactly as many more as this process has undefined events of the kind, communicator and tag: they belong here.
//!   Each holds its place in the order; the partner at that place stays unmatched, all others keep theirs.
//! - The other end has another number more: nobody knows which are missing. Only the messages before the first undefined event are matched so.
//!
//! `doubts` uses that for channels of which not more events are missing than are undefined, and only if the lengths of
//! the messages that would be matched agree.

use crate::matching::comm_index::CommIndex;
use crate::matching::hash::HashMap;
use crate::matching::message_ends::{MessageKey, NO_PROCESS};
use clc_trace::{EventNumber, LocationId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A message event without a usable peer, to be named to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndefinedPeer {
    /// Whether it is a send.
    pub sends: bool,
    /// Its location.
    pub location: LocationId,
    /// Its number there.
    pub event: EventNumber,
}

impl UndefinedPeer {
    /// How many are named. Chosen by hand: with more, the message cannot be read.
    pub const EXAMPLES: usize = 8;
}

impl fmt::Display for UndefinedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.sends { "send" } else { "receive" };
        write!(f, "{what} at location {}, event {}", self.location, self.event)
    }
}

/// Where events may be missing in one end of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gaps {
    /// How many.
    pub count: u64,
    /// For each, how many events of the channel come before it; only of the first if there are more than [`Gaps::MOST`].
    pub after: Vec<u32>,
}

impl Gaps {
    /// More than this many are not placed one by one: every channel with the same communicator and tag holds a list of them.
    pub const MOST: usize = 64;

    /// Takes the events without a peer out of `lists`, each of which is in order, and tells where they may be missing in the others.
    pub(crate) fn take<T: Ord + Copy>(lists: &mut HashMap<MessageKey, Vec<T>>) -> (Vec<T>, HashMap<MessageKey, Gaps>) {
        let keys: Vec<MessageKey> = lists.keys().filter(|key| key.peer == NO_PROCESS).copied().collect();
        let undefined: HashMap<(CommIndex, u32), Vec<T>> =
            keys.iter().filter_map(|key| Some(((key.comm, key.tag), lists.remove(key)?))).collect();
        let mut gaps = HashMap::default();
        if !undefined.is_empty() {
            for (key, list) in lists {
                if let Some(missing) = undefined.get(&(key.comm, key.tag)) {
                    let placed = if missing.len() > Gaps::MOST { &missing[..1] } else { missing };
                    let after = placed.iter().map(|event| list.partition_point(|other| other < event) as u32).collect();
                    gaps.insert(*key, Gaps { count: missing.len() as u64, after });
                }
            }
        }
        let mut events: Vec<T> = undefined.into_values().flatten().collect();
        events.sort_unstable();
        (events, gaps)
    }
}

/// Which events of the end of a channel that has `more` events belong to those of the end that has `fewer`, and `gaps`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EndAlignment {
    /// Positions of the longer end, ascending, whose partner is missing.
    pub skipped: Vec<u32>,
    /// How many of the others are matched, from the first one.
    pub matched: usize,
}

impl EndAlignment {
    /// The rule of this module.
    pub(crate) fn new(more: usize, fewer: usize, gaps: Option<&Gaps>) -> EndAlignment {
        match gaps {
            Some(gaps) if gaps.count > 0 && more > fewer => {
                if (more - fewer) as u64 == gaps.count && gaps.after.len() as u64 == gaps.count {
                    let skipped = (0..).zip(&gaps.after).map(|(before, after)| after + before).collect();
                    EndAlignment { skipped, matched: fewer }
                } else {
                    EndAlignment {
                        skipped: Vec::new(),
                        matched: fewer.min(gaps.after.first().map_or(0, |&at| at as usize)),
                    }
                }
            }
            _ => EndAlignment { skipped: Vec::new(), matched: fewer.min(more) },
        }
    }

    /// Leaves the matched events in the list of the longer end.
    pub(crate) fn apply(&self, list: &mut Vec<u32>) {
        if !self.skipped.is_empty() {
            let mut skipped = self.skipped.iter().copied().peekable();
            let mut position = 0;
            list.retain(|_| {
                let skip = skipped.next_if_eq(&position).is_some();
                position += 1;
                !skip
            });
        }
        list.truncate(self.matched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(peer: u32, tag: u32) -> MessageKey {
        MessageKey { peer: clc_trace::MpiRank(peer), comm: CommIndex(0), tag }
    }

    #[test]
    fn gaps_are_places_in_the_channels_of_the_same_tag() {
        let mut lists = HashMap::from_iter([
            (key(1, 7), vec![0, 4, 8]),
            (key(2, 7), vec![6]),
            (key(3, 8), vec![5]),
            (key(NO_PROCESS.0, 7), vec![2, 7]),
        ]);
        let (events, gaps) = Gaps::take(&mut lists);
        assert_eq!((events, lists.len()), (vec![2, 7], 3));
        let expected = |after: [u32; 2]| Gaps { count: 2, after: after.into() };
        assert_eq!(gaps, HashMap::from_iter([(key(1, 7), expected([1, 2])), (key(2, 7), expected([0, 1]))]));
    }

    #[test]
    fn many_gaps_take_little_memory() {
        let mut lists = HashMap::from_iter([(key(1, 7), vec![5]), (key(NO_PROCESS.0, 7), (6..1000).collect())]);
        let (_, gaps) = Gaps::take(&mut lists);
        assert_eq!(gaps[&key(1, 7)], Gaps { count: 994, after: vec![1] });
    }

    fn partners(more: usize, fewer: usize, count: u64, after: &[u32]) -> Vec<u32> {
        let mut list: Vec<u32> = (0..more as u32).collect();
        EndAlignment::new(more, fewer, Some(&Gaps { count, after: after.to_vec() })).apply(&mut list);
        list
    }

    #[test]
    fn places_are_held_where_the_numbers_agree() {
        assert_eq!(partners(4, 3, 1, &[1]), [0, 2, 3]);
        assert_eq!(partners(4, 3, 1, &[0]), [1, 2, 3]);
        assert_eq!(partners(4, 3, 1, &[3]), [0, 1, 2]);
        assert_eq!(partners(5, 3, 2, &[1, 1]), [0, 3, 4]);
        assert!(partners(1, 0, 1, &[0]).is_empty());
    }

    #[test]
    fn otherwise_only_what_comes_before_is_certain() {
        assert_eq!(partners(4, 3, 2, &[2, 2]), [0, 1]);
        assert!(partners(9, 3, 2, &[0, 2]).is_empty());
        assert_eq!(partners(300, 200, 100, &[5]), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn nothing_is_missing_where_nothing_is_missing() {
        assert_eq!(partners(3, 3, 2, &[0, 1]), [0, 1, 2]);
        let mut list = vec![0, 1, 2];
        EndAlignment::new(3, 2, None).apply(&mut list);
        assert_eq!(list, [0, 1]);
    }
}
