//! Communicators and windows on which members have recorded different numbers of calls: up to which number they are the same ones.
//!
//! Of each shorter list it is asked where it cannot be the beginning of the longest ones, and whether it can be a later part of them. Kinds tell, and, where all wait for all twice in a row, the time in between: all members were
//! in each of the two at one moment.

/// What two members' calls are compared by.
pub(crate) struct Compared {
    /// Equal for calls that may be the same.
    pub kind: (u8, u32),
    pub begin: i64,
    pub end: i64,
    /// Nobody leaves before all have entered.
    pub all_wait: bool,
}

/// The bounds of the time from the moment of one call to that of the next one, if there are such moments.
fn bounds(list: &[Compared], k: usize) -> Option<(i64, i64)> {
    let (before, own) = (list.get(k.checked_sub(1)?)?, &list[k]);
    (before.all_wait && own.all_wait).then_some((own.begin - before.end, own.end - before.begin))
}

/// How many calls have the same number with all members; `violated`, whether the calls with a number contradict the clocks.
pub(crate) fn numbered(lists: &[Vec<Compared>], violated: impl Fn(usize) -> bool) -> usize {
    let most = lists.iter().map(Vec::len).max().unwrap_or(0);
    let least = lists.iter().map(Vec::len).min().unwrap_or(0);
    let longest: Vec<&Vec<Compared>> = lists.iter().filter(|list| list.len() == most).collect();
    let mut certain = least;
    for list in lists.iter().filter(|list| !list.is_empty() && list.len() < most && least > 0) {
        let possible = |k: usize, shift: usize| {
            let of_longest: Vec<Option<(i64, i64)>> = longest.iter().map(|other| bounds(other, k + shift)).collect();
            let times = match (bounds(list, k), of_longest.iter().copied().collect::<Option<Vec<_>>>()) {
                (Some(own), Some(mut all)) => {
                    all.push(own);
                    let (at_least, at_most) =
                        (all.iter().map(|one| one.0).max().unwrap(), all.iter().map(|one| one.1).min().unwrap());
                    at_least <= at_most + at_most.max(0) / 192
                }
                _ => true,
            };
            times && longest[0][k + shift].kind == list[k].kind
        };
        let first = (0..list.len()).find(|&k| !possible(k, 0)).unwrap_or(list.len());
        let later = (1..=most - list.len()).any(|shift| (0..first).all(|k| possible(k, shift)));
        certain = certain.min(first);
        // Where one call does not fit, others before may be wrong.
        if later || first < list.len() {
            certain = (0..certain).find(|&k| violated(k)).unwrap_or(certain);
        }
    }
    certain
}
