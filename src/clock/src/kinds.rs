//! Makes collective operations comparable with messages.
//!
//! The end of a collective operation comes several latencies after its last begin: as a bound that is never wrong, but the quickest of a window in which
//! there is nothing else looks like a message that was late. By how much longer operations of one kind take than messages the trace shows
//! itself, since both are seen with the same clocks: where the distances of one kind begin, from where those of the messages between the same clocks begin,
//! does not depend on what the clocks are off. Without that they are measurements like messages.

use super::bounds::DirectedBounds;
use super::kind::BoundKind;
use super::windows::BoundTable;
use std::collections::BTreeMap;

/// Share of the distances that stay below where they are taken to begin. Chosen by hand: nearer to the minimum, single messages decide; nearer to the
/// median, delays do.
const QUICK: usize = 5;
/// Distances of a kind in the whole trace without which nothing is known of it, and of the messages of one direction. Chosen by hand: a fifth of
/// fewer is a message or two; with more, rare kinds stay unknown.
const FEWEST: usize = 32;
const FEWEST_OF_PAIR: usize = 8;

/// What kinds take longer than messages, in ticks; those that take no longer, or of which too little is known, are not in it.
pub(crate) fn extra(table: &BoundTable) -> BTreeMap<BoundKind, i64> {
    let mut longer: BTreeMap<BoundKind, Vec<i64>> = BTreeMap::new();
    for bounds in table.pairs.values() {
        let messages = bounds.windows().iter().filter(|(_, bound)| bound.kind.is_message());
        let mut messages: Vec<i64> = messages.map(|(_, bound)| bound.distance).collect();
        if messages.len() < FEWEST_OF_PAIR {
            continue;
        }
        let begin = quick(&mut messages);
        for (_, bound) in bounds.windows() {
            let kind = if bound.kind.is_message() { BoundKind::MESSAGE } else { bound.kind };
            longer.entry(kind).or_default().push(bound.distance.saturating_sub(begin));
        }
    }
    let mut known = BTreeMap::new();
    for (kind, mut values) in longer {
        if values.len() >= FEWEST {
            known.insert(kind, quick(&mut values));
        }
    }
    let Some(messages) = known.remove(&BoundKind::MESSAGE) else { return BTreeMap::new() };
    let known = known.into_iter().map(|(kind, begin)| (kind, begin - messages));
    known.filter(|(_, extra)| *extra > 0).collect()
}

/// The table with distances as if everything were messages, if the trace tells how to: for the pairs of clocks that have messages in both directions, but fewer
/// windows of them than of collective operations. Where there are more messages, they are the better measurements.
pub(crate) fn levelled(table: &BoundTable) -> Option<BoundTable> {
    let messages =
        |bounds: &DirectedBounds| bounds.windows().iter().filter(|(_, bound)| bound.kind.is_message()).count();
    let of_pair = |(&(a, b), there): (&(u32, u32), &DirectedBounds)| {
        let back = table.pairs.get(&(b, a))?;
        let (one, two) = (messages(there), messages(back));
        let few = 2 * (one + two) < there.windows().len() + back.windows().len();
        (one.min(two) >= FEWEST_OF_PAIR && few).then_some((a, b))
    };
    let pairs: Vec<(u32, u32)> = table.pairs.iter().filter_map(of_pair).collect();
    let extra = if pairs.is_empty() { BTreeMap::new() } else { extra(table) };
    (!extra.is_empty()).then(|| {
        let mut table = table.clone();
        for pair in pairs {
            if let Some(bounds) = table.pairs.get_mut(&pair) {
                bounds.shorten(|bound| extra.get(&bound.kind).copied().unwrap_or(0));
            }
        }
        table
    })
}

/// What a fifth of the values stays below.
fn quick(values: &mut [i64]) -> i64 {
    let at = values.len() / QUICK;
    if values.is_empty() { 0 } else { *values.select_nth_unstable(at).1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bound;
    use clc_trace::CollectiveOp;

    /// Two clocks with `messages` of 20 ticks and operations of 80 in as many windows as come then, in both directions; the second clock is 1000 ahead.
    fn table(messages: usize, operations: usize) -> BoundTable {
        let mut table = BoundTable::default();
        for window in 0..messages + operations {
            let operation = BoundKind::collective(CollectiveOp::ALLREDUCE, 16);
            let (kind, takes) = if window < messages { (BoundKind::MESSAGE, 20) } else { (operation, 80) };
            for (pair, ahead) in [((0, 1), 1000), ((1, 0), -1000)] {
                let distance = takes + ahead + (window % 3) as i64;
                table.pairs.entry(pair).or_default().add(window, Bound { distance, at: 0, kind }, 1);
            }
        }
        table
    }

    #[test]
    fn operations_become_as_quick_as_messages() {
        let levelled = levelled(&table(20, 60)).expect("a table");
        for (pair, ahead) in [((0, 1), 1000), ((1, 0), -1000)] {
            let takes = |bound: &Bound| bound.distance - ahead;
            assert!(levelled.pairs[&pair].windows().iter().all(|(_, bound)| (20..23).contains(&takes(bound))));
        }
    }

    #[test]
    fn where_messages_are_many_or_none_nothing_changes() {
        assert_eq!(levelled(&table(60, 40)), None);
        assert_eq!(levelled(&table(0, 60)), None);
        assert_eq!(levelled(&table(7, 60)), None);
    }

    #[test]
    fn kinds_differ() {
        let kinds = [
            BoundKind::MESSAGE,
            BoundKind::waited(1000),
            BoundKind::waited(5000),
            BoundKind::blocked(1000),
            BoundKind::collective(CollectiveOp::BARRIER, 4),
            BoundKind::collective(CollectiveOp::BARRIER, 5),
            BoundKind::collective(CollectiveOp::BCAST, 4),
        ];
        let different: std::collections::BTreeSet<BoundKind> = kinds.into_iter().collect();
        assert_eq!(different.len(), kinds.len());
        assert_eq!(BoundKind::waited(1000), BoundKind::waited(1023));
    }
}
