//! One channel: the sends and receives of one sender, receiver, communicator and tag, of which records may be missing.
//!
//! Sends match receives in order, and lengths are the same at both ends. So any set of pairs of equal length that do not cross may be
//! what happened; what happened left out as few ends as possible. A pair is a message if it is the same in all of these sets.
//! Everything is decided by tables of how many pairs can be made of the beginnings and of the ends of both lists.

/// The records of a channel, each with its length. Receives in the order of posting; those of which the place in it is not known are apart.
#[derive(Debug, Clone)]
pub(crate) struct Channel<E> {
    pub sends: Vec<(E, u64)>,
    pub receives: Vec<(E, u64)>,
    pub unplaced: Vec<(E, u64)>,
    /// When sends and receives took place (those without a place last), and by which threads.
    pub sent: Vec<(i64, usize)>,
    pub received: Vec<(i64, usize)>,
}

/// What is known of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found<E> {
    /// A send and its receive.
    pub messages: Vec<(E, E)>,
    /// A send that was before a receive which need not be its own.
    pub implied: Vec<(E, E)>,
}

impl<E> Default for Channel<E> {
    fn default() -> Self {
        Channel {
            sends: Vec::new(),
            receives: Vec::new(),
            unplaced: Vec::new(),
            sent: Vec::new(),
            received: Vec::new(),
        }
    }
}

/// Most pairs that can be made of two lists: `before[i][j]` of the first i and j elements, `after[i][j]` of those from i and j on.
struct Tables {
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

impl Tables {
    fn new(a: &[u64], b: &[u64]) -> Tables {
        let mut before = vec![vec![0; b.len() + 1]; a.len() + 1];
        let mut after = before.clone();
        for i in 0..a.len() {
            for j in 0..b.len() {
                before[i + 1][j + 1] =
                    if a[i] == b[j] { before[i][j] + 1 } else { before[i + 1][j].max(before[i][j + 1]) };
                let (k, l) = (a.len() - 1 - i, b.len() - 1 - j);
                after[k][l] = if a[k] == b[l] { after[k + 1][l + 1] + 1 } else { after[k + 1][l].max(after[k][l + 1]) };
            }
        }
        Tables { before, after }
    }

    fn most(&self) -> usize {
        self.after[0][0]
    }
}

/// All pairs (send, receive) that are in any largest set, by the place that they have in it.
fn candidates(a: &[u64], b: &[u64]) -> Vec<Vec<(usize, usize)>> {
    let tables = Tables::new(a, b);
    let mut places = vec![Vec::new(); tables.most()];
    for (i, length) in a.iter().enumerate() {
        for j in (0..b.len()).filter(|&j| *length == b[j]) {
            let place = tables.before[i][j];
            if place + 1 + tables.after[i + 1][j + 1] == tables.most() {
                places[place].push((i, j));
            }
        }
    }
    places
}

/// Whether events are of several threads.
fn several(list: &[(i64, usize)]) -> bool {
    list.iter().any(|(_, thread)| *thread != list[0].1)
}

impl<E: Copy> Channel<E> {
    fn lengths(&self, count: bool) -> [Vec<u64>; 3] {
        [&self.sends, &self.receives, &self.unplaced]
            .map(|list| list.iter().map(|(_, length)| if count { *length } else { 0 }).collect())
    }

    /// Whether the records of both ends agree.
    fn agrees(&self) -> bool {
        let [sends, receives, unplaced] = self.lengths(true);
        sends == receives && unplaced.is_empty()
    }

    fn is_one_sided(&self) -> bool {
        self.sends.is_empty() || self.receives.len() + self.unplaced.len() == 0
    }

    /// Whether several threads send, or receive: MPI knows no order of theirs.
    pub(crate) fn is_shared(&self) -> bool {
        several(&self.sent) || several(&self.received)
    }

    /// Postings of receives and ends of synchronous sends: ends in their order and not in that of the sends if several threads send, postings in theirs if several
    /// receive; those are known only if all are.
    pub(crate) fn in_order_of_threads<O: Copy + Ord>(
        &self,
        both: Vec<(Option<O>, Option<O>)>,
    ) -> Vec<(Option<O>, Option<O>)> {
        let (mut posts, mut ends): (Vec<Option<O>>, Vec<Option<O>>) = both.into_iter().unzip();
        if several(&self.received) {
            if posts.contains(&None) {
                return Vec::new();
            }
            posts.sort();
        }
        if several(&self.sent) {
            ends.retain(Option::is_some);
            ends.sort();
        }
        posts.into_iter().zip(ends).collect()
    }

    /// Whether several threads share the channel, and a message in the order of the calls is received before it is sent.
    pub(crate) fn is_called_in_wrong_order(&self) -> bool {
        let broken = self.sent.iter().zip(&self.received).any(|(sent, received)| received.0 < sent.0);
        !self.is_one_sided() && self.is_shared() && self.agrees() && broken
    }

    /// All in the order of the calls (`in_order`), else those whose call and completion are the k-th, after the same calls as completions; the k-th send of the
    /// others is before the k-th completion.
    fn of_threads(&self, in_order: bool) -> Found<E> {
        let receives: Vec<E> = self.receives.iter().chain(&self.unplaced).map(|(end, _)| *end).collect();
        let called: Vec<usize> = (0..receives.len()).collect();
        let mut completed = called.clone();
        completed.sort_by_key(|&receive| self.received[receive].0);
        // Where sends are missing, the first receives may be theirs.
        let counted = completed.split_off(completed.len().saturating_sub(self.sends.len()));
        let pairs = |order: &[usize]| -> Vec<(E, E)> {
            self.sends.iter().zip(order).map(|((send, _), &receive)| (*send, receives[receive])).collect()
        };
        if self.agrees() && in_order {
            return Found { messages: pairs(&called), implied: Vec::new() };
        }
        let same_before = |k: usize| {
            let before: std::collections::BTreeSet<usize> = counted[..k].iter().copied().collect();
            before.into_iter().eq(0..k)
        };
        let mut found = Found { messages: Vec::new(), implied: Vec::new() };
        for (k, pair) in pairs(&counted).into_iter().enumerate() {
            let is_sure = self.agrees() && counted[k] == k && same_before(k);
            if is_sure { &mut found.messages } else { &mut found.implied }.push(pair);
        }
        found
    }

    /// What is known; whether lengths `count`, and whether threads are served in the order of their calls, are matters of the whole trace.
    pub(crate) fn find(&self, count: bool, in_order: bool) -> Found<E> {
        let nothing = Found { messages: Vec::new(), implied: Vec::new() };
        if self.is_one_sided() {
            return nothing;
        }
        if self.is_shared() {
            return self.of_threads(in_order);
        }
        let count = count || self.agrees();
        let [sends, receives, unplaced] = self.lengths(count);
        let pair = |(i, j): (usize, usize)| (self.sends[i].0, self.receives[j].0);
        let places = candidates(&sends, &receives);
        let (m, n) = (sends.len(), receives.len() + unplaced.len());
        let receives_missing = m >= n && places.len() == receives.len();
        let sends_missing = unplaced.is_empty() && n >= m && places.len() == m;
        if !unplaced.is_empty() && !receives_missing {
            return Found { messages: self.by_unique_lengths(count), ..nothing };
        }
        let mut found = nothing;
        for place in &places {
            // Ascending by sends, and as the k-th pair of a largest set by receives.
            match place[..] {
                [one] => found.messages.push(pair(one)),
                _ if receives_missing => {
                    let first = place.iter().map(|(send, _)| *send).min().expect("a candidate");
                    found.implied.push(pair((first, place[0].1)));
                }
                _ if sends_missing => {
                    let last = place.iter().map(|(_, receive)| *receive).max().expect("a candidate");
                    found.implied.push(pair((place[0].0, last)));
                }
                _ => {}
            }
        }
        found
    }

    /// Messages of a length that occurs once at either end; none if their order is not that of MPI.
    fn by_unique_lengths(&self, count: bool) -> Vec<(E, E)> {
        let [sends, receives, unplaced] = self.lengths(count);
        let once = |list: &[u64], length: u64| list.iter().filter(|other| **other == length).count() == 1;
        let mut pairs = Vec::new();
        for (i, &length) in sends.iter().enumerate() {
            for j in (0..receives.len()).filter(|&j| receives[j] == length) {
                if once(&sends, length) && once(&receives, length) && !unplaced.contains(&length) {
                    pairs.push((i, j));
                }
            }
        }
        if !pairs.is_sorted_by_key(|(_, receive)| *receive) {
            pairs.clear();
        }
        pairs.into_iter().map(|(i, j)| (self.sends[i].0, self.receives[j].0)).collect()
    }
}

/// Whether receives seem to be recorded with the length of their buffers: most lengths disagree, and where the numbers agree (16 messages at least)
/// every message fits into the receive at its place.
pub(crate) fn tracer_records_buffers<'a, E: Copy + 'a>(channels: impl Iterator<Item = &'a Channel<E>>) -> bool {
    let (mut agree, mut disagree, mut equal, mut fits) = (0, 0, 0, true);
    for channel in
        channels.filter(|channel| !channel.is_one_sided() && channel.unplaced.is_empty() && !channel.is_shared())
    {
        let [sends, receives, _] = channel.lengths(true);
        let common = Tables::new(&sends, &receives).most();
        agree += common;
        disagree += sends.len().min(receives.len()) - common;
        if !channel.agrees() && sends.len() == receives.len() {
            equal += sends.len();
            fits &= sends.iter().zip(&receives).all(|(sent, received)| sent <= received);
        }
    }
    disagree > agree && equal >= 16 && fits
}
