//! Communicators on which members have recorded different numbers of operations.
//!
//! A member that stopped early lacks the last ones, one whose recording began late the first ones, and one on which recording was off for a while some in between: nothing in a record says which. The
//! members of an operation that synchronises all of them were in it at one moment, that at which the last of them entered. So the time from one such operation to the next is for each member, by its own
//! clock, at least that from the end of the first to the begin of the second, and at most that from begin to end ([`fences`](super::fences)). Operations whose times do not agree in this way are not
//! the same. No agreement between the clocks is needed for that.
//!
//! What a member has recorded is compared with what those recorded that have most. Its first operation is their first one, and so on, up to where the times or the kinds contradict that, if they
//! contradict as well that it is their second one, their third one, and so on. Where they do not (the program does the same again and again), the operations up to the first one are certain that would be a violation: if the
//! clocks are right, it belongs to something else.

use crate::matching::collectives::fences::SAME_RATE;
use crate::matching::collectives::kinds::{class_of, signature};
use crate::matching::extracted::{Extract, Participation};
use clc_trace::CommRank;
use controlled_logical_clock::semantics::{CollectiveClass, Role, role_between};
use serde::{Deserialize, Serialize};

/// Comparisons of two operations on one communicator, at most. If more would be needed, the program does the same again and again, or a member lacks too much.
const MOST_COMPARED: usize = 1 << 24;

/// What a member did in one operation, as far as it tells which operation that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Called {
    /// Operation and root.
    signature: u64,
    /// Pre-synchronised times, in ticks.
    begin: i64,
    end: i64,
    sends: bool,
    receives: bool,
    /// Receives only what lower ranks send.
    prefix: bool,
    /// Nobody leaves before all have entered.
    synchronises: bool,
}

impl Called {
    /// Of a member with this rank among so many, on a communicator or a `window`. Fences may not synchronise.
    pub(super) fn of(
        own: &Participation,
        extract: &Extract,
        (rank, size): (CommRank, u32),
        alltoallv: bool,
        window: bool,
    ) -> Called {
        let class = class_of(own.part.op, alltoallv, false);
        let Role { sends, receives } = role_between(class, rank, 0, size, &own.part);
        let time = |event: u32| extract.sync.time(event as usize);
        Called {
            signature: signature(own),
            begin: time(own.begin),
            end: time(own.end),
            sends,
            receives,
            prefix: class == CollectiveClass::Prefix,
            synchronises: class == CollectiveClass::NToN && sends && receives && !window,
        }
    }
}

/// The time between an operation that synchronises and the next one.
#[derive(Debug, Clone, Copy)]
struct Between {
    least: i64,
    most: i64,
}

impl Between {
    /// From operation `k - 1` of a list to operation `k`, if both synchronise.
    fn of(list: &[Called], k: usize) -> Option<Between> {
        let (before, own) = (list.get(k.checked_sub(1)?)?, list.get(k)?);
        (before.synchronises && own.synchronises).then(|| Between {
            least: own.begin.saturating_sub(before.end),
            most: own.end.saturating_sub(before.begin),
        })
    }

    fn and(self, other: Between) -> Between {
        Between { least: self.least.max(other.least), most: self.most.min(other.most) }
    }

    fn is_possible(self) -> bool {
        self.least <= self.most.saturating_add(self.most.max(0) / SAME_RATE)
    }
}

/// How many instances have the same number with all members, of which `lists` has what they recorded, by rank.
pub(super) fn certain(lists: &[Vec<Called>]) -> usize {
    let (least, most) = lists.iter().map(Vec::len).fold((usize::MAX, 0), |(l, m), n| (l.min(n), m.max(n)));
    if least >= most {
        return most;
    }
    let complete: Vec<&Vec<Called>> = lists.iter().filter(|list| list.len() == most).collect();
    let between: Vec<Option<Between>> = (0..most)
        .map(|k| complete.iter().map(|list| Between::of(list, k)).reduce(|one, other| Some(one?.and(other?)))?)
        .collect();
    let mut compared = 0;
    let mut certain = least;
    for list in lists.iter().filter(|list| list.len() < most) {
        // Whether its operation k cannot be number k + shift.
        let contradicts = |k: usize, shift: usize| {
            let other = complete[0][k + shift].signature != list[k].signature;
            let times = match (Between::of(list, k), between[k + shift]) {
                (Some(own), Some(others)) => !own.and(others).is_possible(),
                _ => false,
            };
            other || times
        };
        let first = (0..list.len()).find(|&k| contradicts(k, 0)).unwrap_or(list.len());
        let may_be_later = (1..=most - list.len()).any(|shift| {
            let refuted = (0..first).find(|&k| compared + k >= MOST_COMPARED || contradicts(k, shift));
            compared += refuted.map_or(first, |k| k + 1);
            refuted.is_none() || compared >= MOST_COMPARED
        });
        certain = certain.min(first);
        // What is contradicted somewhere lacks something before, and kinds alone do not tell how long before.
        if may_be_later || first < list.len() {
            certain = (0..certain).find(|&k| is_violated(lists, k)).unwrap_or(certain);
        }
    }
    certain
}

/// Whether someone has left the k-th operation before another one entered that it had to wait for.
fn is_violated(lists: &[Vec<Called>], k: usize) -> bool {
    let all = || lists.iter().map(|list| &list[k]);
    if all().any(|own| own.prefix) {
        let mut latest = i64::MIN;
        return all().any(|own| {
            let violated = own.receives && own.end < latest;
            latest = if own.sends { latest.max(own.begin) } else { latest };
            violated
        });
    }
    let latest = all().filter(|own| own.sends).map(|own| own.begin).max();
    let earliest = all().filter(|own| own.receives).map(|own| own.end).min();
    latest.zip(earliest).is_some_and(|(latest, earliest)| earliest < latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Barriers with these begins and ends.
    fn barriers(of: &[(i64, i64)]) -> Vec<Called> {
        let barrier = |&(begin, end): &(i64, i64)| Called {
            signature: 0,
            begin,
            end,
            sends: true,
            receives: true,
            prefix: false,
            synchronises: true,
        };
        of.iter().map(barrier).collect()
    }

    /// All but the first ones of a member, and all but the last ones.
    const TIMES: [i64; 6] = [100, 250, 700, 800, 1500, 1600];

    fn member(which: &[usize], later: i64) -> Vec<Called> {
        let of: Vec<(i64, i64)> = which.iter().map(|&k| (TIMES[k] + later, TIMES[k] + later + 10)).collect();
        barriers(&of)
    }

    #[test]
    fn one_that_stopped_early_has_the_first_ones() {
        let all = member(&[0, 1, 2, 3, 4, 5], 0);
        // Also with a clock that is far ahead, or behind.
        for later in [0, 5, 100_000, -100_000] {
            assert_eq!(certain(&[all.clone(), member(&[0, 1, 2, 3], later)]), 4, "{later}");
            assert_eq!(certain(&[all.clone(), member(&[0, 1, 2, 3], later), member(&[0, 1, 2], 3)]), 3);
        }
        assert_eq!(certain(&[all.clone(), member(&[], 0)]), 0);
        assert_eq!(certain(&[all.clone(), all]), 6);
        assert_eq!(certain(&[]), 0);
    }

    #[test]
    fn one_that_began_late_has_others() {
        let all = member(&[0, 1, 2, 3, 4, 5], 0);
        for later in [0, 5, 100_000, -100_000] {
            assert_eq!(certain(&[all.clone(), member(&[1, 2, 3, 4, 5], later)]), 0, "{later}");
            // Off for a while: where that began nobody knows, if clocks do not tell.
            let off = certain(&[all.clone(), member(&[0, 1, 2, 4, 5], later)]);
            assert_eq!(off, if (0..10).contains(&later) { 3 } else { 0 }, "{later}");
        }
    }

    #[test]
    fn what_the_program_does_again_and_again_is_certain_as_far_as_nothing_is_violated() {
        let regular = |from: i64, count: i64| {
            barriers(&(from..from + count).map(|k| (100 * k, 100 * k + 10)).collect::<Vec<_>>())
        };
        assert_eq!(certain(&[regular(0, 9), regular(0, 6)]), 6);
        assert_eq!(certain(&[regular(0, 9), regular(3, 6)]), 0);
    }
}
