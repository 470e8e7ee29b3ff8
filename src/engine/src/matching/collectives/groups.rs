//! Collective operations on inter-communicators: what its two groups say about roots.
//!
//! Members of the group that the root is not in record its rank in the other group; the root records that it is the root itself, the others of its group
//! that the root is one of them. Here the members of both groups have one numbering, the first group's before the second's.

use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::extracted::Participation;
use clc_trace::{CommRank, Root};
use controlled_logical_clock::semantics::{CollectiveClass, MemberRecord};

/// What one or more members say of an operation: its number, and the root. As a word: the number in the lowest byte, above it 0 without a root, 1 or 2 for
/// somebody of the first or second group, and for a member its rank and 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(pub u64);

const FIRST_RANK: u64 = 3;

impl Word {
    /// What member `rank` says, if the first group has `first` members.
    pub(super) fn of(participation: &Participation, rank: CommRank, first: u32) -> Word {
        let MemberRecord { op, root, .. } = participation.part;
        let in_first = rank.0 < first;
        let root = match root {
            _ if !CollectiveClass::of(op, false).rooted() => 0,
            Root::None => 0,
            Root::OwnGroup => 1 + u64::from(!in_first),
            Root::ThisProcess => u64::from(rank.0) + FIRST_RANK,
            Root::Rank(other) => u64::from(other) + if in_first { u64::from(first) } else { 0 } + FIRST_RANK,
        };
        Word(root << 8 | u64::from(op.0))
    }

    /// What both say; `None` if they contradict each other.
    pub(super) fn and(self, other: Word, first: u32) -> Option<Word> {
        let (one, two) = (self.0.max(other.0), self.0.min(other.0));
        if one & 0xFF != two & 0xFF {
            return None;
        }
        let group = |root: u64| match root {
            0..FIRST_RANK => root,
            rank => 1 + u64::from(rank - FIRST_RANK >= u64::from(first)),
        };
        let agrees = one == two || (two >> 8 < FIRST_RANK && two >> 8 > 0 && group(one >> 8) == two >> 8);
        agrees.then_some(Word(one))
    }

    /// The root, if somebody has named it.
    pub(super) fn root(self) -> Root {
        match u32::try_from((self.0 >> 8).wrapping_sub(FIRST_RANK)) {
            Ok(rank) => Root::Rank(rank),
            Err(_) => Root::None,
        }
    }
}

/// Whether a communicator has two groups.
pub(super) fn has_two(table: &CommTable<'_>, comm: CommIndex) -> bool {
    table.first_group(comm) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::CollectiveOp;

    fn says(op: CollectiveOp, root: Root, rank: u32) -> Word {
        let part = MemberRecord { op, root, sent: true, received: true, accessed: false };
        Word::of(&Participation { begin: 0, end: 1, part }, CommRank(rank), 2)
    }

    #[test]
    fn both_groups_name_the_same_root() {
        // Two and three members; the root is the second one of the second group.
        let all = [
            says(CollectiveOp::BCAST, Root::OwnGroup, 2),
            says(CollectiveOp::BCAST, Root::Rank(1), 0),
            says(CollectiveOp::BCAST, Root::ThisProcess, 3),
            says(CollectiveOp::BCAST, Root::Rank(1), 1),
        ];
        let whole = all.into_iter().try_fold(all[0], |sum, word| sum.and(word, 2)).unwrap();
        assert_eq!(whole.root(), Root::Rank(3));
        // Somebody of the other group, another rank, another operation.
        assert_eq!(whole.and(says(CollectiveOp::BCAST, Root::OwnGroup, 0), 2), None);
        assert_eq!(whole.and(says(CollectiveOp::BCAST, Root::Rank(0), 0), 2), None);
        assert_eq!(whole.and(says(CollectiveOp::REDUCE, Root::Rank(1), 0), 2), None);
    }

    #[test]
    fn without_a_root_there_is_none() {
        let barrier = says(CollectiveOp::BARRIER, Root::None, 0);
        assert_eq!(barrier.and(says(CollectiveOp::BARRIER, Root::None, 4), 2).unwrap().root(), Root::None);
        assert_eq!(says(CollectiveOp::BCAST, Root::OwnGroup, 4).root(), Root::None);
    }
}
