//! Whether processes that share a clock see the same: exchanges through common memory between two cores of a node.
//!
//! All times of a node come from one counter, so offsets within it are zero by construction and are not measured. That the cores show the same is what the processor and the
//! kernel promise (an invariant time stamp counter by which the kernel keeps time). A word that one core has written and another one has seen puts it to the test: seen before it was
//! written, by these readings, it shows that they differ, and by how much at least; otherwise how much they differ at most.

use crate::recording::clocks::measured::Batch;
use crate::recording::raw::format::measured::SAME;
use std::collections::BTreeMap;

/// What the exchanges of processes with the leaders of their nodes have shown, in ticks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedClocks {
    /// By rank: how long words took at least, there and back, each up to what the counters differ by.
    seen: BTreeMap<u32, [i64; 2]>,
}

impl SharedClocks {
    /// Takes those batches out of what was measured.
    pub(crate) fn take(batches: &mut BTreeMap<u32, Vec<Batch>>) -> SharedClocks {
        let mut seen = BTreeMap::new();
        for (&rank, list) in batches.iter_mut() {
            let exchanges = list.iter().filter(|batch| batch.method == SAME).flat_map(|batch| &batch.exchanges);
            let took = exchanges.map(|one| [(one.came, one.asked), (one.answered, one.left)]);
            let took = took.map(|ways| ways.map(|(later, earlier)| later.wrapping_sub(earlier) as i64));
            seen.extend(took.reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1])]).map(|least| (rank, least)));
            list.retain(|batch| batch.method != SAME);
        }
        SharedClocks { seen }
    }

    /// Processes whose counter certainly differs from that of the leader of their node, and by how many ticks at least.
    pub(crate) fn apart(&self) -> impl Iterator<Item = (u32, u64)> {
        self.seen.iter().filter_map(|(&rank, ways)| {
            let least = ways.iter().copied().min().filter(|&least| least < 0)?;
            Some((rank, least.unsigned_abs()))
        })
    }

    /// All that were compared, and by how many ticks their counter differs from that of the leader at most.
    pub(crate) fn within(&self) -> impl Iterator<Item = (u32, u64)> {
        self.seen.iter().filter_map(|(&rank, ways)| Some((rank, ways.iter().copied().max()?.unsigned_abs())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::clocks::measured::Exchange;
    use crate::recording::raw::format::measured::KERNEL;

    fn batch(method: u64, times: &[[u64; 3]]) -> Batch {
        let exchange = |&[asked, came, answered]: &[u64; 3]| Exchange { asked, answered, came, left: came };
        Batch { partner: 0, method, exchanges: times.iter().map(exchange).collect() }
    }

    #[test]
    fn cores_that_agree_do_so_within_a_bound_and_others_are_named() {
        let mut batches = BTreeMap::from([
            (1, vec![batch(KERNEL, &[[0, 50, 90]]), batch(SAME, &[[100, 170, 260], [300, 380, 440]])]),
            // Its counter is behind by 500: words seem to come back before they left.
            (2, vec![batch(SAME, &[[100, 670, 260]])]),
            (3, vec![batch(KERNEL, &[[0, 50, 90]])]),
        ]);
        let shared = SharedClocks::take(&mut batches);
        assert_eq!(shared.within().collect::<Vec<_>>(), [(1, 70), (2, 570)]);
        assert_eq!(shared.apart().collect::<Vec<_>>(), [(2, 410)]);
        assert_eq!(batches.values().map(Vec::len).collect::<Vec<_>>(), [1, 0, 1]);
    }
}
