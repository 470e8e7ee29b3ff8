//! Calls of which one end only was recorded: which of the others keep their number among those of a communicator or window.

use std::collections::BTreeSet;

/// An end without a begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoneEnd {
    pub index: usize,
    /// Others may have begun since the call did.
    pub immediate: bool,
}

/// What a member of a communicator or window lacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Halves {
    /// Ends there, in order.
    pub ends: Vec<LoneEnd>,
    /// Begins there or elsewhere, in order.
    pub begins: Vec<usize>,
}

/// Takes the instances out of the `calls` of all members, in order of their begins, that one of them has recorded half of; up to which number the others are the same for all. `span` has the ends of a call; `only_begins`: nothing in
/// the trace ends without having begun, so what is missing was never recorded.
pub(crate) fn settle<T>(
    calls: &mut [Vec<T>],
    halves: &[Halves],
    span: impl Fn(&T) -> (usize, usize),
    only_begins: bool,
) -> usize {
    let mut doubts: Vec<BTreeSet<usize>> = halves.iter().map(|half| half.begins.iter().copied().collect()).collect();
    // Of every member its calls by number, those that it has recorded half of included.
    let mut numbered: Vec<Vec<Option<usize>>> = Vec::new();
    // The number that the first call in doubt seems to have.
    let mut before_doubt: Vec<Option<usize>> = Vec::new();
    // Whether nobody knows which of several numbers a member lacks.
    let mut several = vec![false; calls.len()];
    for (((own, half), doubts), several) in calls.iter().zip(halves).zip(&mut doubts).zip(&mut several) {
        let mut events: Vec<(usize, Option<usize>)> =
            own.iter().enumerate().map(|(k, call)| (span(call).0, Some(k))).collect();
        for end in &half.ends {
            let first = own.iter().map(|call| span(call).0).min().filter(|&begin| begin < end.index);
            match first.filter(|_| end.immediate) {
                Some(begin) => {
                    doubts.insert(begin);
                    *several = true;
                }
                None => events.push((end.index, None)),
            }
        }
        events.sort_unstable();
        before_doubt.push(doubts.first().map(|&doubt| events.iter().filter(|event| event.0 < doubt).count()));
        numbered.push(events.into_iter().map(|(_, call)| call).collect());
    }
    let of_member =
        |own: &Vec<Option<usize>>| -> Vec<usize> { (0..own.len()).filter(|&number| own[number].is_none()).collect() };
    let holes: BTreeSet<usize> = numbered.iter().flat_map(of_member).collect();
    // Of those at and behind it, others may have been taken out than those with the same numbers.
    for (several, before) in several.iter_mut().zip(&before_doubt) {
        *several |= before.is_some_and(|before| holes.range(before..).next().is_some());
    }
    for (own, numbered) in calls.iter_mut().zip(&numbered) {
        let stays: BTreeSet<usize> = (0..numbered.len())
            .filter(|number| !holes.contains(number))
            .filter_map(|number| numbered[number])
            .collect();
        let mut place = 0;
        own.retain(|_| {
            place += 1;
            stays.contains(&(place - 1))
        });
    }
    let least = calls.iter().map(Vec::len).min().unwrap_or(0);
    let places = |(own, doubts): (&Vec<T>, &BTreeSet<usize>)| -> BTreeSet<usize> {
        doubts.iter().map(|&event| own.iter().filter(|call| span(call).0 < event).count()).collect()
    };
    let places: Vec<BTreeSet<usize>> =
        calls.iter().zip(&doubts).map(places).filter(|places| !places.is_empty()).collect();
    let equal = calls.iter().all(|own| own.len() == least);
    let alike = places.iter().all(|other| *other == places[0] && (other.len() == 1 || only_begins));
    let same = alike && !several.contains(&true);
    match places.iter().flatten().min() {
        Some(&first) if !(equal && same) => first.min(least),
        _ => least,
    }
}
