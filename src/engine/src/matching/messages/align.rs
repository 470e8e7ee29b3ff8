//! Which sends and receives of a channel belong together when records of some are missing.
//!
//! Both ends are in the order of MPI, and both record the length of a message. A *possible* alignment joins ends of equal length
//! without crossing, and leaves out as few as can be:
//!
//! - If every receive finds its send (receives are missing), the first send it can have and the last one are its bounds. If they are the same, the pair
//!   is certain. In any case the first one comes before the receive: its own send is that one or a later one.
//! - If every send finds its receive (sends are missing), the same the other way round: a send comes before the last receive it can have, which
//!   got that send or a later one.
//! - If both ends have some that find nobody, a pair is certain if all longest alignments contain it. Nothing else is known.
//!
//! With all lengths equal that is: of m sends and n receives nothing is certain unless m = n; if m > n, the k-th send comes before the k-th
//! receive; if n > m, before the (n - m + k)-th.

use crate::matching::hash::HashMap;

/// Most pairs of equal length that are looked at where records are missing at both ends; a channel with more of them is left out.
const MOST_POINTS: usize = 1 << 22;

/// What is known of a channel: positions of a send and of a receive, ascending in both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Alignment {
    /// Messages.
    pub pairs: Vec<(u32, u32)>,
    /// Sends that come before receives which need not be theirs. Nobody is in both lists, or in one of them twice.
    pub implied: Vec<(u32, u32)>,
    /// Length of the longest alignment: how many ends agree in their lengths.
    pub common: usize,
}

/// Aligns the lengths of the `sends` with those of the `receives`, each in order. Of the `unplaced` receives nobody knows where they belong
/// in the order.
pub(super) fn align(sends: &[u32], receives: &[u32], unplaced: &[u32]) -> Alignment {
    let all = receives.len() + unplaced.len();
    if sends.len() >= all
        && let Some(first) = first_places(receives, sends)
        && let Some(last) = last_places(receives, sends)
    {
        return embedded(&first, &last, &first, |receive, send| (send, receive));
    }
    if !unplaced.is_empty() {
        return unique(sends, receives, unplaced);
    }
    if all >= sends.len()
        && let Some(first) = first_places(sends, receives)
        && let Some(last) = last_places(sends, receives)
    {
        return embedded(&first, &last, &last, |send, receive| (send, receive));
    }
    longest(sends, receives)
}

/// Where each of `few` is found in `many` if all are taken as early as can be; `None` if they are not all there in this order.
fn first_places(few: &[u32], many: &[u32]) -> Option<Vec<u32>> {
    let mut places = (0u32..).zip(many);
    few.iter().map(|wanted| places.find(|(_, found)| *found == wanted).map(|(place, _)| place)).collect()
}

/// The same as late as can be.
fn last_places(few: &[u32], many: &[u32]) -> Option<Vec<u32>> {
    let mut places = many.iter().enumerate().rev();
    let mut place_of = |wanted| places.find(|(_, found)| *found == wanted).map(|(place, _)| place as u32);
    let mut found: Vec<u32> = few.iter().rev().map(&mut place_of).collect::<Option<_>>()?;
    found.reverse();
    Some(found)
}

/// Every element of one end has a first and a last place in the other: it is certain if they are the same, else `bound` by one of them.
fn embedded(first: &[u32], last: &[u32], bound: &[u32], pair: impl Fn(u32, u32) -> (u32, u32)) -> Alignment {
    let mut alignment = Alignment { common: first.len(), ..Alignment::default() };
    for (element, ((first, last), &bound)) in (0..).zip(first.iter().zip(last).zip(bound)) {
        let list = if first == last { &mut alignment.pairs } else { &mut alignment.implied };
        list.push(pair(element, bound));
    }
    alignment
}

/// Messages whose length nobody else in the channel has. If the order contradicts that, nothing is known.
fn unique(sends: &[u32], receives: &[u32], unplaced: &[u32]) -> Alignment {
    let mut seen: HashMap<u32, [(u32, u32); 2]> = HashMap::default();
    for (end, lengths) in [(0, sends), (1, receives)] {
        for (place, &length) in (0..).zip(lengths) {
            let (count, last) = &mut seen.entry(length).or_default()[end];
            (*count, *last) = (*count + 1, place);
        }
    }
    for &length in unplaced {
        seen.entry(length).or_default()[1].0 += 1;
    }
    let placed = |place: u32, length: u32| receives.get(place as usize) == Some(&length);
    let mut pairs: Vec<(u32, u32)> = seen
        .into_iter()
        .filter_map(|(length, ends)| match ends {
            [(1, send), (1, receive)] if placed(receive, length) => Some((send, receive)),
            _ => None,
        })
        .collect();
    pairs.sort_unstable();
    if !pairs.is_sorted_by_key(|(_, receive)| *receive) {
        pairs.clear();
    }
    Alignment { common: pairs.len(), pairs, implied: Vec::new() }
}

/// What all longest alignments agree on: along each of them the pairs have the ranks 1, 2, ..., and a pair is in all of them if no other
/// that is in any has its rank.
fn longest(sends: &[u32], receives: &[u32]) -> Alignment {
    let mut places: HashMap<u32, Vec<u32>> = HashMap::default();
    for (place, &length) in (0..).zip(receives) {
        places.entry(length).or_default().push(place);
    }
    let of = |length: &u32| places.get(length).map_or(&[][..], Vec::as_slice);
    if sends.iter().map(|length| of(length).len()).sum::<usize>() > MOST_POINTS {
        return Alignment::default();
    }
    // For each rank: the earliest receive of a pair so far that has it. The rank of a pair is how many it can have before it, and one.
    let mut points: Vec<(u32, u32, u32)> = Vec::new();
    let mut earliest: Vec<u32> = Vec::new();
    for (send, length) in (0..).zip(sends) {
        for &receive in of(length).iter().rev() {
            let rank = earliest.partition_point(|&other| other < receive);
            set(&mut earliest, rank, receive);
            points.push((send, receive, rank as u32));
        }
    }
    let common = earliest.len();
    // The same from behind: `latest` has the latest receives, in falling order. What is on a longest alignment has the rest of it behind.
    let mut latest: Vec<u32> = Vec::new();
    let mut of_rank: Vec<Option<(u32, u32)>> = vec![None; common];
    let mut several = vec![false; common];
    for &(send, receive, rank) in points.iter().rev() {
        let behind = latest.partition_point(|&other| other > receive);
        set(&mut latest, behind, receive);
        let rank = rank as usize;
        if rank + 1 + behind == common {
            several[rank] |= of_rank[rank].replace((send, receive)).is_some();
        }
    }
    let pairs = of_rank.into_iter().zip(several).filter(|(_, several)| !several).filter_map(|(pair, _)| pair).collect();
    Alignment { pairs, implied: Vec::new(), common }
}

fn set(list: &mut Vec<u32>, at: usize, value: u32) {
    if at == list.len() {
        list.push(value);
    } else {
        list[at] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_lengths_leave_only_what_the_order_implies() {
        let receives_missing = align(&[8; 5], &[8; 3], &[]);
        assert_eq!((receives_missing.pairs, receives_missing.implied), (vec![], vec![(0, 0), (1, 1), (2, 2)]));
        let sends_missing = align(&[8; 2], &[8; 5], &[]);
        assert_eq!((sends_missing.pairs, sends_missing.implied), (vec![], vec![(0, 3), (1, 4)]));
        assert_eq!(align(&[8; 3], &[8; 3], &[]).pairs, [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn lengths_tell_where_a_receive_is_missing() {
        // Every second one is missing, and the lengths repeat.
        let sends: Vec<u32> = (0..400).map(|k| 8 * (k % 5 + 1)).collect();
        let receives: Vec<u32> = sends.iter().step_by(2).copied().collect();
        let found = align(&sends, &receives, &[]);
        assert_eq!(found.pairs, (0..200).map(|k| (2 * k, k)).collect::<Vec<_>>());
        // Only the stretch that is ambiguous is left.
        let found = align(&[1, 2, 2, 3], &[1, 2, 3], &[]);
        assert_eq!((found.pairs, found.implied), (vec![(0, 0), (3, 2)], vec![(1, 1)]));
        let found = align(&[1, 2, 3], &[1, 2, 2, 3], &[]);
        assert_eq!((found.pairs, found.implied), (vec![(0, 0), (2, 3)], vec![(1, 2)]));
    }

    #[test]
    fn where_both_are_missing_only_the_common_is_certain() {
        assert_eq!(align(&[1, 2, 3], &[2, 3, 4], &[]).pairs, [(1, 0), (2, 1)]);
        assert!(align(&[1, 2, 1], &[2, 1, 2], &[]).pairs.is_empty());
        assert_eq!(align(&[8, 16], &[16, 8], &[]), Alignment { common: 1, ..Alignment::default() });
    }

    #[test]
    fn an_unplaced_receive_may_belong_anywhere() {
        // A send is missing, too: the numbers say nothing.
        let found = align(&[8; 4], &[8; 4], &[8]);
        assert_eq!((found.pairs, found.implied), (vec![], vec![]));
        assert_eq!(align(&[8, 9, 10], &[9, 10, 11], &[8]).pairs, [(1, 0), (2, 1)]);
        // It may as well have been received before.
        let found = align(&[8; 4], &[8; 3], &[8]);
        assert_eq!((found.pairs, found.implied), (vec![], vec![(0, 0), (1, 1), (2, 2)]));
    }

    /// All longest ways to join equal lengths without crossing.
    fn all_longest(sends: &[u32], receives: &[u32]) -> Vec<Vec<(u32, u32)>> {
        fn extend(
            sends: &[u32],
            receives: &[u32],
            from: (usize, usize),
            path: &mut Vec<(u32, u32)>,
            all: &mut Vec<Vec<(u32, u32)>>,
        ) {
            all.push(path.clone());
            for i in from.0..sends.len() {
                for j in (from.1..receives.len()).filter(|&j| receives[j] == sends[i]) {
                    path.push((i as u32, j as u32));
                    extend(sends, receives, (i + 1, j + 1), path, all);
                    path.pop();
                }
            }
        }
        let mut all = Vec::new();
        extend(sends, receives, (0, 0), &mut Vec::new(), &mut all);
        let longest = all.iter().map(Vec::len).max().unwrap_or(0);
        all.retain(|path| path.len() == longest);
        all
    }

    proptest! {
        #[test]
        fn certain_is_what_all_longest_alignments_share(
            sends in prop::collection::vec(0u32..4, 0..7),
            receives in prop::collection::vec(0u32..4, 0..7),
        ) {
            let all = all_longest(&sends, &receives);
            let found = align(&sends, &receives, &[]);
            prop_assert_eq!(found.common, all[0].len());
            let shared: Vec<(u32, u32)> =
                all[0].iter().filter(|pair| all.iter().all(|path| path.contains(pair))).copied().collect();
            prop_assert_eq!(found.pairs, shared);
        }

        #[test]
        fn what_is_missing_at_one_end_makes_nothing_wrong(
            lengths in prop::collection::vec(0u32..3, 0..30),
            kept in prop::collection::vec(any::<bool>(), 30),
            receives_are_missing: bool,
            unplaced in prop::collection::vec(prop::bool::weighted(0.1), 30),
        ) {
            let all: Vec<u32> = (0..lengths.len() as u32).collect();
            let some: Vec<u32> = all.iter().copied().filter(|&k| kept[k as usize]).collect();
            let (sends, receives) = if receives_are_missing { (all, some) } else { (some, all) };
            let (unplaced, receives): (Vec<u32>, Vec<u32>) = receives.iter().partition(|&&k| unplaced[k as usize]);
            let of = |list: &[u32]| -> Vec<u32> { list.iter().map(|&k| lengths[k as usize]).collect() };
            let found = align(&of(&sends), &of(&receives), &of(&unplaced));
            for &(send, receive) in &found.implied {
                prop_assert!(sends[send as usize] <= receives[receive as usize], "{:?}", found);
            }
            for &(send, receive) in &found.pairs {
                prop_assert_eq!(sends[send as usize], receives[receive as usize], "{:?}", &found);
            }
        }
    }
}
