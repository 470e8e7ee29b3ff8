//! Collective operations of which a member has recorded one end only.
//!
//! Such an operation took place: it has a number among those of its communicator. Where its end was recorded, the number is known, and the instance is left out with all its
//! members. Where its begin was recorded only, nobody knows on which communicator it was: all that the member did later on a communicator may have a higher number than it seems, unless the
//! members have done equally much on it.

use crate::comm::{ReduceOp, Transport};
use crate::matching::collectives::fences::Ours;
use crate::matching::collectives::homes::{exchange, home_of, tell_hosts};
use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::extracted::{Extract, HalfRecorded, LoneEnd, Participation};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::placement::Placement;
use clc_trace::{CollectiveOp, CommRank, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The numbers of a communicator's instances of which a member has recorded the end only, with the operation.
type Holes = BTreeMap<u64, u8>;

/// From where on the numbers of a member's operations are in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Doubt {
    /// The first operation that has perhaps another number.
    first: u64,
    /// Equal for members of which those that are left with equally many have lost the same operations; none for those that nobody can be compared with.
    lacks: Option<u64>,
}

/// What a member of a communicator lacks.
#[derive(Debug, Default)]
struct Lacking {
    /// The numbers of operations that are certain.
    holes: Holes,
    /// Their ends.
    hole_ends: Vec<u32>,
    /// The other ones are in doubt from these events on.
    doubts: Vec<u32>,
}

impl Lacking {
    /// Of the operations in `list`, by begin, and `ends` without a begin. `ordered`: the list has the order of the events.
    fn of(list: &[Participation], ends: &[LoneEnd], ordered: bool) -> Lacking {
        let mut lacking = Lacking::default();
        // Of the list: what began before an end.
        let mut before = 0;
        for end in ends {
            before += list[before..].iter().take_while(|one| one.begin < end.event).count();
            match list[..before].first().filter(|_| end.immediate) {
                // A non-blocking operation may have begun before any of them.
                Some(first) => lacking.doubts.push(first.begin),
                None if !ordered => lacking.doubts.push(end.event),
                None => {
                    lacking.holes.insert((before + lacking.holes.len()) as u64, end.op.0);
                    lacking.hole_ends.push(end.event);
                }
            }
        }
        lacking
    }

    /// The number that the first operation in doubt seems to have, of those in `list`, with `begins` without an end besides: as many come before it. Numbers at and behind it are other ones if what
    /// began there was on this communicator.
    fn number_in_doubt(&self, list: &[Participation], begins: &[u32]) -> Option<u64> {
        let first = *self.doubts.iter().chain(begins).min()?;
        let before = list.iter().filter(|one| one.begin < first).count();
        Some((before + self.hole_ends.iter().filter(|&&end| end < first).count()) as u64)
    }

    /// From where on the numbers of the operations in `list` are in doubt, with `begins` without an end besides, when the instances of all holes have been taken out. `comparable`: none of these was
    /// at or behind the first one in doubt. `only_begins`: no end without a begin was recorded anywhere.
    fn doubt(
        &self,
        list: &[Participation],
        begins: &[u32],
        (ordered, comparable, only_begins): (bool, bool, bool),
    ) -> Option<Doubt> {
        let events = || self.doubts.iter().chain(begins);
        let place = |event: u32| match ordered {
            true => list.partition_point(|one| one.begin < event),
            false => list.iter().position(|one| one.begin >= event).unwrap_or(list.len()),
        };
        let first = place(*events().min()?) as u64;
        let places: BTreeSet<usize> = begins.iter().map(|&begin| place(begin)).collect();
        // Of several places one member may lack the first and another one the second; but what a tracer never records, all of them lack. And nobody knows where an operation began whose end alone was recorded,
        // and is in doubt.
        let compares = ordered && comparable && self.doubts.is_empty() && (places.len() == 1 || only_begins);
        let lacks = compares.then(|| {
            // `new` uses fixed keys, so that all ranks (which run the same binary) agree.
            let mut hasher = DefaultHasher::new();
            places.hash(&mut hasher);
            hasher.finish()
        });
        Some(Doubt { first, lacks })
    }
}

/// Takes instances out of `ours` of which a member has recorded the end only, and tells the homes of communicators what is in doubt, by member. `left_out` has the operations of the instances
/// whose communicators have their home here. Nothing is done if everything was recorded. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn settle(
    transport: &mut dyn Transport,
    (placement, table): (&Placement, &CommTable<'_>),
    extracts: &mut [Extract],
    ours: &mut Ours,
    left_out: &mut Vec<CollectiveOp>,
) -> Result<BTreeMap<CommIndex, BTreeMap<CommRank, Doubt>>> {
    let half = |extract: &Extract| {
        let HalfRecorded { ends, begins, window_begins } = &extract.half_recorded;
        !(ends.is_empty() && begins.is_empty() && window_begins.is_empty())
    };
    let ends = |extract: &Extract| !extract.half_recorded.ends.is_empty();
    let mut any = [i64::from(extracts.iter().any(half)), i64::from(extracts.iter().any(ends))];
    transport.all_reduce(ReduceOp::Max, &mut any)?;
    if any[0] == 0 {
        return Ok(BTreeMap::new());
    }
    let only_begins = any[1] == 0;
    let home = |comm: CommIndex| home_of(placement, table, comm);
    let is_ordered =
        |extract: &Extract, comm: CommIndex| extract.part_of.is_empty() && !extract.loose.contains_key(&comm);
    let mut lacking: BTreeMap<(CommIndex, CommRank), Lacking> = BTreeMap::new();
    for (&comm, members) in ours.iter() {
        for (rank, local, list) in members {
            let extract = &extracts[*local];
            let ends = extract.half_recorded.ends.get(&comm).map_or(&[][..], Vec::as_slice);
            lacking.insert((comm, *rank), Lacking::of(list, ends, is_ordered(extract, comm)));
        }
    }
    let told = lacking.iter().filter(|(_, lacking)| !lacking.holes.is_empty());
    let told = told.map(|((comm, _), lacking)| (home(*comm), (*comm, lacking.holes.clone())));
    let mut holes: BTreeMap<CommIndex, Holes> = BTreeMap::new();
    for (comm, own) in exchange(transport, told)? {
        holes.entry(comm).or_default().extend(own);
    }
    left_out.extend(holes.values().flat_map(|holes| holes.values().copied().map(CollectiveOp)));
    let holes = tell_hosts(transport, placement, table, &holes)?;
    let begins_of = |extracts: &[Extract], local: LocalTimeline, comm: CommIndex| -> Vec<u32> {
        let HalfRecorded { begins, window_begins, .. } = &extracts[local].half_recorded;
        if table.is_window(comm) { window_begins.clone() } else { begins.clone() }
    };
    let mut behind: BTreeSet<(CommIndex, CommRank)> = BTreeSet::new();
    for (&comm, members) in ours.iter_mut() {
        let Some(holes) = holes.get(&comm) else { continue };
        for (rank, local, list) in members {
            let number = lacking[&(comm, *rank)].number_in_doubt(list, &begins_of(extracts, *local, comm));
            if number.is_some_and(|number| holes.range(number..).next().is_some()) {
                behind.insert((comm, *rank));
            }
            let own = &lacking[&(comm, *rank)].holes;
            let stays = remaining(list.len(), own, holes);
            if let Some(certain) = extracts[*local].loose.get_mut(&comm) {
                let mut stays = stays.iter();
                certain.retain(|_| stays.next().is_none_or(|stays| *stays));
            }
            let mut stays = stays.iter();
            list.retain(|_| stays.next().is_none_or(|stays| *stays));
        }
    }
    let mut doubts = Vec::new();
    for (&comm, members) in ours.iter() {
        for (rank, local, list) in members {
            let begins = begins_of(extracts, *local, comm);
            let known = (is_ordered(&extracts[*local], comm), !behind.contains(&(comm, *rank)), only_begins);
            let doubt = lacking[&(comm, *rank)].doubt(list, &begins, known);
            doubts.extend(doubt.map(|doubt| (home(comm), (comm, *rank, doubt))));
        }
    }
    let mut by_member: BTreeMap<CommIndex, BTreeMap<CommRank, Doubt>> = BTreeMap::new();
    for (comm, rank, doubt) in exchange(transport, doubts.into_iter())? {
        by_member.entry(comm).or_default().insert(rank, doubt);
    }
    Ok(by_member)
}

/// Which of so many operations stay, of a member that lacks those with its `own` numbers, if those with the numbers of all `holes` are taken out.
fn remaining(count: usize, own: &Holes, holes: &Holes) -> Vec<bool> {
    let numbers = (0..).filter(|number| !own.contains_key(number));
    numbers.take(count).map(|number: u64| !holes.contains_key(&number)).collect()
}

/// How many instances of a communicator have the same number with all members, which have recorded `counts` of them: all, if nobody lacks anything, or if all have recorded equally many and those that
/// lack some lack the same.
pub(super) fn certain(counts: &[u64], doubts: &BTreeMap<CommRank, Doubt>) -> Option<u64> {
    let first = doubts.values().map(|doubt| doubt.first).min()?;
    let equal = counts.windows(2).all(|pair| pair[0] == pair[1]);
    let one = doubts.values().next()?.lacks;
    let alike = doubts.values().all(|doubt| doubt.lacks.is_some() && doubt.lacks == one);
    (!(equal && alike)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::Root;
    use controlled_logical_clock::semantics::MemberRecord;

    /// Operations with these begins and ends.
    fn operations<const N: usize>(of: [(u32, u32); N]) -> Vec<Participation> {
        let part =
            MemberRecord { op: CollectiveOp::BARRIER, root: Root::None, sent: false, received: false, accessed: false };
        of.map(|(begin, end)| Participation { begin, end, part }).into()
    }

    fn end(event: u32, immediate: bool) -> LoneEnd {
        LoneEnd { event, op: CollectiveOp::BARRIER, immediate }
    }

    #[test]
    fn an_end_has_a_number_among_the_others() {
        let list = operations([(0, 1), (3, 4), (6, 7)]);
        let lacking = Lacking::of(&list, &[end(2, false), end(5, false), end(8, false)], true);
        assert_eq!(lacking.holes.into_keys().collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!(lacking.doubts, [0; 0]);
        // A non-blocking one may have begun before any that began before it ended.
        let immediate = operations([(3, 4), (6, 7)]);
        let lacking = Lacking::of(&immediate, &[end(2, true), end(5, true), end(8, false)], true);
        assert_eq!((lacking.holes.into_keys().collect::<Vec<_>>(), lacking.doubts), (vec![0, 3], vec![3]));
        let of_threads = Lacking::of(&list, &[end(5, false)], false);
        assert!(of_threads.holes.is_empty() && of_threads.doubts == [5]);
    }

    #[test]
    fn instances_are_taken_out_by_their_numbers() {
        let holes = |numbers: &[u64]| -> Holes { numbers.iter().map(|&number| (number, 0)).collect() };
        assert_eq!(remaining(4, &holes(&[1]), &holes(&[1, 3])), [true, true, false, true]);
        assert_eq!(remaining(3, &holes(&[]), &holes(&[0, 7])), [false, true, true]);
        assert_eq!(remaining(0, &holes(&[0]), &holes(&[0])), [false; 0]);
    }

    #[test]
    fn what_began_before_and_ends_alone_have_numbers_before_the_first_in_doubt() {
        let list = operations([(0, 1), (3, 4), (6, 7)]);
        let lacking = Lacking::of(&list, &[end(5, false), end(8, false)], true);
        let number = |begins: &[u32]| lacking.number_in_doubt(&list, begins);
        assert_eq!([number(&[]), number(&[2, 9]), number(&[6]), number(&[9])], [None, Some(1), Some(3), Some(5)]);
    }

    #[test]
    fn a_begin_puts_what_follows_in_doubt_unless_all_did_the_same() {
        let list = operations([(0, 1), (3, 4), (6, 7)]);
        let doubt = |begins: &[u32]| Lacking::default().doubt(&list, begins, (true, true, false));
        assert_eq!(doubt(&[]), None);
        let (second, other, last) = (doubt(&[2]).unwrap(), doubt(&[5]).unwrap(), doubt(&[9]).unwrap());
        assert_eq!([second.first, other.first, last.first], [1, 2, 3]);
        let of = |doubts: &[Doubt]| -> BTreeMap<CommRank, Doubt> {
            (0..).zip(doubts).map(|(rank, &doubt)| (CommRank(rank), doubt)).collect()
        };
        assert_eq!(certain(&[3, 4], &of(&[])), None);
        assert_eq!(certain(&[3, 3], &of(&[second])), None, "it was on another communicator");
        assert_eq!(certain(&[3, 4], &of(&[second])), Some(1));
        assert_eq!(certain(&[3, 3], &of(&[second, second])), None, "both lack the same");
        assert_eq!(certain(&[3, 3], &of(&[second, other])), Some(1));
        let several = doubt(&[2, 5]).unwrap();
        assert_eq!(
            certain(&[3, 3], &of(&[several, several])),
            Some(1),
            "one may lack the first, the other one the second"
        );
        assert_eq!(certain(&[3, 3], &of(&[doubt(&[9, 10, 12]).unwrap(); 2])), None);
        // Unless ends are never recorded.
        let never = |begins: &[u32]| Lacking::default().doubt(&list, begins, (true, true, true)).unwrap();
        assert_eq!(certain(&[3, 3], &of(&[never(&[2, 5]), never(&[1, 2, 5])])), None);
        assert_eq!(certain(&[3, 3], &of(&[never(&[2, 5]), never(&[2, 9])])), Some(1));
        // Where instances were taken out, some have lost others than they seem to have.
        let behind = Lacking::default().doubt(&list, &[5], (true, false, false)).unwrap();
        assert_eq!(certain(&[3, 3], &of(&[behind])), Some(2));
        assert_eq!(certain(&[3, 4], &of(&[last])), Some(3));
        // So may those that lack the begin of a non-blocking one.
        let ended = Lacking { doubts: vec![0], ..Lacking::default() }.doubt(&list, &[], (true, true, true)).unwrap();
        assert_eq!(certain(&[3, 3], &of(&[ended, ended])), Some(0));
    }
}
