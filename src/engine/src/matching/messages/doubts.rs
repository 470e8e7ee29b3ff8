//! Channels whose two ends disagree: records of messages are missing, or lengths mean different things at both ends.
//!
//! Only for these the senders' hosts tell the lengths of all sends, and the receivers' hosts decide ([`crate::matching::messages::align`]). Where the events
//! that name no peer ([`crate::matching::undefined`]) explain what is missing, they hold its place.
//!
//! Between threads that send, or that receive, on the same channel MPI knows no order, and they need not be served in the order in which they entered their
//! calls. But when k receives of a channel are complete, k sends have begun: the k-th begin comes before the k-th completion, whichever messages these
//! are. Where the order of calls is violated, this may be due to the clocks or to that order. Wrong clocks that violate one channel may hide that another one is in a
//! wrong order. So if it is violated anywhere, only those are messages of such channels that were complete in the order of the
//! calls; of the others, the k-th begin comes before the k-th completion. So it is for all of a channel where such threads
//! have clocks of their own: the order in which several of them called is that of clocks which disagree.
//!
//! Lengths are not used if the tracer seems to have recorded the sizes of the receives' buffers: if more lengths of the whole trace disagree than
//! agree, while in the channels in doubt with as many sends as receives, which have `ENOUGH` messages, no send is longer than the receive at its
//! place.

use crate::comm::{AnalysisRank, ReduceOp, Transport, exchange_values};
use crate::matching::channels::{InChannel, Lengths, OutChannel, Trust, checked_index};
use crate::matching::extracted::Extract;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::matched::{InDoubt, MessageCounts, Messages};
use crate::matching::message_ends::{MessageEnd, MessageKey};
use crate::matching::messages::align::{Alignment, align};
use crate::matching::messages::offers::{Offer, tell_indices};
use crate::matching::undefined::{EndAlignment, Gaps};
use clc_trace::{Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A channel in doubt at the host of its receiver.
#[derive(Debug)]
pub(super) struct Doubt {
    /// The sender's host.
    pub host: AnalysisRank,
    /// Number of the sender's offer there.
    pub offer: u32,
    /// The sender, communicator and tag.
    pub key: MessageKey,
    /// The timeline that receives.
    pub destination: LocalTimeline,
    /// As posted.
    pub receives: Vec<MessageEnd>,
    /// Those of which nobody knows when they were posted.
    pub unplaced: Vec<MessageEnd>,
    /// Where sends without a peer may belong here.
    pub send_gaps: Gaps,
    /// Where receives without a peer may belong here.
    pub receive_gaps: Gaps,
    /// Number of sends.
    pub announced: u64,
    /// Their lengths, when they have arrived.
    pub sends: Vec<u32>,
    /// If several threads send or receive.
    pub shared: Option<Shared>,
}

/// When the events of a channel that several threads share took place, in the order of its lists (of receives, those whose posting is not known come last), in
/// ticks by the clocks before the replay.
#[derive(Debug, Default)]
pub(super) struct Shared {
    sends: Vec<i64>,
    receives: Vec<i64>,
    /// Those that send, or those that receive, are in several timelines.
    apart: bool,
}

/// What is decided about the sends of an offer: which of them are messages, which are only before some receive.
#[derive(Debug, Serialize, Deserialize)]
struct OfferDecision {
    /// Number of the offer.
    offer: u32,
    /// Index of the receiving end, and positions among the sends; by [`Trust::Aligned`] and [`Trust::Implied`].
    parts: [(u32, Vec<u32>); 2],
}

/// So many messages tell that no send is longer than its receive. Chosen by hand: fewer may be in order by chance, and lengths would be discarded
/// that are right; with more, lengths of short traces count that are those of buffers.
const ENOUGH: i64 = 16;

const TRUSTS: [Trust; 2] = [Trust::Aligned, Trust::Implied];

/// Decides about all channels in doubt, and makes the outgoing channels of all `offers`, those that are `asked` for (ascending) and the others.
/// `agreeing` is the number of messages of this rank in channels without doubt; `extracts` are those of this rank's timelines, the first of which has the global
/// number `first`. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn settle(
    transport: &mut dyn Transport,
    (first, extracts): (TimelineNumber, &[Extract]),
    messages: &mut Messages,
    offers: Vec<Offer>,
    asked: &[(u32, bool)],
    mut doubts: Vec<Doubt>,
    agreeing: i64,
) -> Result<()> {
    let sound = messages.incoming.len();
    hear_sends(transport, extracts, &offers, asked, &mut doubts)?;
    let mut alignments: Vec<Alignment> = doubts.iter().map(|doubt| doubt.align(true)).collect();
    // Lengths that agree and that do not; messages of channels with equal numbers, and those of them that fit into no buffer of the receive's length; channels
    // in which the order of the calls of threads is violated.
    let mut sums = [agreeing, 0, 0, 0, 0];
    sums[4] = doubts.iter().filter(|doubt| doubt.is_called_in_wrong_order()).count() as i64;
    for (doubt, alignment) in
        doubts.iter().zip(&alignments).filter(|(doubt, _)| doubt.unplaced.is_empty() && doubt.shared.is_none())
    {
        sums[0] += alignment.common as i64;
        sums[1] += doubt.shorter() as i64 - alignment.common as i64;
        if doubt.sends.len() == doubt.receives.len() {
            let larger = doubt.sends.iter().zip(&doubt.receives).filter(|(sent, received)| **sent > received.length);
            sums[2] += doubt.shorter() as i64;
            sums[3] += larger.count() as i64;
        }
    }
    transport.all_reduce(ReduceOp::Sum, &mut sums)?;
    let [agree, disagree, equal, larger, wrong_order] = sums;
    messages.calls_in_order = wrong_order == 0;
    let lengths_count = disagree <= agree || equal < ENOUGH || larger > 0;
    if !lengths_count {
        doubts.iter_mut().filter(|doubt| doubt.shared.is_none()).for_each(Doubt::forget_lengths);
    }
    if !lengths_count || wrong_order > 0 {
        alignments = doubts.iter().map(|doubt| doubt.align(wrong_order == 0)).collect();
    }
    let mut answers: BTreeMap<AnalysisRank, Vec<OfferDecision>> = BTreeMap::new();
    for (doubt, alignment) in doubts.into_iter().zip(alignments) {
        let answers = answers.entry(doubt.host).or_default();
        answers.push(doubt.decide(first, alignment, messages)?);
    }
    let decided = exchange_values(transport, answers)?.into_iter().flat_map(|(_, decisions)| decisions);
    let mut decisions: BTreeMap<u32, OfferDecision> = decided.map(|decision| (decision.offer, decision)).collect();
    for (number, offer) in (0..).zip(offers) {
        match decisions.remove(&number) {
            None => messages.outgoing.push(offer.into_channel(Trust::Sound)),
            Some(decision) => decision.apply(&offer, &mut messages.outgoing),
        }
    }
    checked_index(messages.outgoing.len())?;
    debug_assert!(messages.incoming[..sound].iter().all(|channel| channel.trust == Trust::Sound));
    tell_indices(transport, messages)
}

/// The sends of an offer: its number, their lengths, and their times if they matter, with whether they are in several timelines.
type OfferedSends = (u32, Vec<u32>, Vec<i64>, bool);

/// Tells the hosts of the receivers the lengths of the sends that they asked for, and the times of those of channels that several threads share.
fn hear_sends(
    transport: &mut dyn Transport,
    extracts: &[Extract],
    offers: &[Offer],
    asked: &[(u32, bool)],
    doubts: &mut [Doubt],
) -> Result<()> {
    let time = |timeline: LocalTimeline, end: &MessageEnd| extracts[timeline].sync.time(end.event as usize);
    let mut outgoing: BTreeMap<AnalysisRank, Vec<OfferedSends>> = BTreeMap::new();
    for &(number, shared) in asked {
        let offer = &offers[number as usize];
        let lengths = offer.sends.iter().map(|end| end.length).collect();
        let timed = if shared { &offer.sends[..] } else { &[] };
        let times = timed.iter().map(|end| time(offer.source, end)).collect();
        let apart = are_apart(&extracts[offer.source], timed.iter().map(|end| end.event));
        outgoing.entry(offer.host).or_default().push((number, lengths, times, apart));
    }
    let places: BTreeMap<(AnalysisRank, u32), usize> =
        doubts.iter().enumerate().map(|(place, doubt)| ((doubt.host, doubt.offer), place)).collect();
    for (host, offers) in exchange_values(transport, outgoing)? {
        for (offer, lengths, times, apart) in offers {
            if let Some(&place) = places.get(&(host, offer)) {
                let Doubt { sends, receives, unplaced, destination, shared, .. } = &mut doubts[place];
                *sends = lengths;
                if let Some(shared) = shared {
                    let extract = &extracts[*destination];
                    let apart = apart || are_apart(extract, receives.iter().chain(&*unplaced).map(|end| end.event));
                    let receives = receives.iter().chain(&*unplaced).map(|end| time(*destination, end)).collect();
                    *shared = Shared { sends: times, receives, apart };
                }
            }
        }
    }
    Ok(())
}

/// Whether events of a process are in several timelines.
pub(super) fn are_apart(extract: &Extract, events: impl IntoIterator<Item = u32>) -> bool {
    let part = |event: u32| extract.part_of.get(extract.sync.location(event as usize) as usize);
    let mut parts = events.into_iter().map(part);
    parts.next().is_some_and(|first| parts.any(|part| part != first))
}

impl Doubt {
    fn shorter(&self) -> usize {
        self.sends.len().min(self.receives.len())
    }

    fn receive(&self, place: usize) -> &MessageEnd {
        let unplaced = place.checked_sub(self.receives.len());
        unplaced.map_or_else(|| &self.receives[place], |place| &self.unplaced[place])
    }

    fn lengths(&self) -> (Vec<u32>, Vec<u32>) {
        let of = |ends: &[MessageEnd]| ends.iter().map(|end| end.length).collect();
        (of(&self.receives), of(&self.unplaced))
    }

    /// Makes all lengths equal.
    fn forget_lengths(&mut self) {
        self.sends.fill(0);
        self.receives.iter_mut().chain(&mut self.unplaced).for_each(|end| end.length = 0);
    }

    /// What is known; whether threads may be taken to be served in the order of their calls.
    fn align(&self, in_order: bool) -> Alignment {
        if let Some(shared) = &self.shared {
            return self.of_threads(shared, in_order);
        }
        let (receives, unplaced) = self.lengths();
        let (m, n) = (self.sends.len(), receives.len());
        let gaps = if m > n { &self.receive_gaps } else { &self.send_gaps };
        if unplaced.is_empty() && m != n && m.abs_diff(n) as u64 <= gaps.count {
            let fit = EndAlignment::new(m.max(n), m.min(n), Some(gaps));
            let kept = |length: usize| -> Vec<u32> {
                let mut places: Vec<u32> = (0..length as u32).collect();
                fit.apply(&mut places);
                places
            };
            let same = (0..fit.matched as u32).collect();
            let (sends, receives_of) = if m > n { (kept(m), same) } else { (same, kept(n)) };
            let pairs: Vec<(u32, u32)> = sends.into_iter().zip(receives_of).collect();
            if pairs.iter().all(|&(send, receive)| self.sends[send as usize] == receives[receive as usize]) {
                // What comes before the first gap is in its place; behind the pairs nothing holds but the order.
                if !fit.skipped.is_empty() {
                    return Alignment { common: pairs.len(), pairs, implied: Vec::new() };
                }
                let at = pairs.len();
                let rest = align(&self.sends[at..], &receives[at..], &[]);
                let later = |list: Vec<(u32, u32)>| {
                    list.into_iter().map(move |(send, receive)| (send + at as u32, receive + at as u32))
                };
                return Alignment {
                    common: at + rest.common,
                    pairs: pairs.into_iter().chain(later(rest.pairs)).collect(),
                    implied: later(rest.implied).collect(),
                };
            }
        }
        align(&self.sends, &receives, &unplaced)
    }

    /// Whether the k-th call that sends may belong to the k-th one that receives.
    fn may_be_called_in_order(&self, shared: &Shared) -> bool {
        !shared.apart && self.unplaced.is_empty() && self.lengths().0 == self.sends
    }

    /// Whether several threads share the channel, and a message in the order of their calls is complete before it is sent.
    fn is_called_in_wrong_order(&self) -> bool {
        let is_broken =
            |shared: &Shared| shared.sends.iter().zip(&shared.receives).any(|(sent, received)| received < sent);
        self.shared.as_ref().is_some_and(|shared| self.may_be_called_in_order(shared) && is_broken(shared))
    }

    /// All messages in the order of the calls, if nothing speaks against it (`in_order`); else those that both orders agree on, and what the numbers of begun sends
    /// and of complete receives imply of the others.
    fn of_threads(&self, shared: &Shared, in_order: bool) -> Alignment {
        let Shared { sends, receives, .. } = shared;
        let may_be = self.may_be_called_in_order(shared);
        if may_be && in_order {
            let pairs: Vec<(u32, u32)> = (0..sends.len() as u32).map(|k| (k, k)).collect();
            return Alignment { common: pairs.len(), pairs, implied: Vec::new() };
        }
        let mut completed: Vec<u32> = (0..receives.len() as u32).collect();
        completed.sort_by_key(|&place| receives[place as usize]);
        // Where sends are missing, the first receives may be theirs.
        let first = completed.len().saturating_sub(sends.len());
        let counted = (0..sends.len() as u32).zip(completed.split_off(first));
        // The k-th call belongs to the k-th completion where that is its own, and all calls before are complete before: nobody has overtaken it.
        let mut called = 0;
        let is_sure = |&(send, receive): &(u32, u32)| {
            let all_before = called <= send;
            called = called.max(receive + 1);
            may_be && all_before && send == receive
        };
        let (pairs, implied): (Vec<_>, Vec<_>) = counted.partition(is_sure);
        Alignment { common: pairs.len(), pairs, implied }
    }

    /// Makes the receiving ends and counts; what the sender's host has to know.
    fn decide(self, first: TimelineNumber, alignment: Alignment, messages: &mut Messages) -> Result<OfferDecision> {
        let (sender, receiver) = (TimelineNumber::of_process(self.key.peer), self.destination.numbered_from(first));
        let receives = self.receives.len() + self.unplaced.len();
        let (matched, implied) = (alignment.pairs.len(), alignment.implied.len());
        let counts = &mut messages.counts;
        counts.matched += matched as u64;
        counts.implied += implied as u64;
        let shared = self.shared.is_some();
        let paired = matched + if shared { implied } else { 0 };
        counts.leave(sender, receiver, self.announced as usize - paired, receives - paired);
        if !shared || implied > 0 {
            counts.doubtful += 1;
            counts.shared += u64::from(shared);
            counts.in_doubt.push(InDoubt {
                sender,
                receiver,
                comm: self.key.comm,
                tag: self.key.tag,
                sends: self.announced,
                receives: receives as u64,
                matched: matched as u64,
                implied: implied as u64,
                shared,
            });
        }
        if counts.in_doubt.len() > 4 * MessageCounts::EXAMPLES {
            counts.keep_examples();
        }
        let mut decision = OfferDecision { offer: self.offer, parts: Default::default() };
        let found = TRUSTS.into_iter().zip([alignment.pairs, alignment.implied]);
        for ((trust, pairs), part) in found.zip(&mut decision.parts).filter(|((_, pairs), _)| !pairs.is_empty()) {
            let index = checked_index(messages.incoming.len())?;
            *part = (index, pairs.iter().map(|(send, _)| *send).collect());
            messages.incoming.push(InChannel {
                source: sender,
                host: self.host,
                remote: u32::MAX,
                destination: self.destination,
                trust,
                receives: pairs.iter().map(|(_, receive)| self.receive(*receive as usize).event).collect(),
                lengths: Lengths::default(),
            });
        }
        Ok(decision)
    }
}

impl OfferDecision {
    fn apply(self, offer: &Offer, outgoing: &mut Vec<OutChannel>) {
        for (trust, (remote, places)) in
            TRUSTS.into_iter().zip(self.parts).filter(|(_, (_, places))| !places.is_empty())
        {
            outgoing.push(OutChannel {
                source: offer.source,
                destination: TimelineNumber::of_process(offer.key.peer),
                host: offer.host,
                remote,
                trust,
                sends: places.iter().map(|&place| offer.sends[place as usize].event).collect(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::comm_index::CommIndex;

    /// A channel that threads with one clock share: times and lengths of sends and of receives in the order of their calls.
    fn shared(sends: &[(i64, u32)], receives: &[(i64, u32)]) -> Alignment {
        shared_by(sends, receives, false)
    }

    /// As [`shared`]; the threads may be `apart`.
    fn shared_by(sends: &[(i64, u32)], receives: &[(i64, u32)], apart: bool) -> Alignment {
        let ends =
            |list: &[(i64, u32)]| (0..).zip(list).map(|(event, end)| MessageEnd { event, length: end.1 }).collect();
        let times = |list: &[(i64, u32)]| list.iter().map(|end| end.0).collect();
        let doubt = Doubt {
            host: AnalysisRank(0),
            offer: 0,
            key: MessageKey { peer: clc_trace::MpiRank(1), comm: CommIndex(0), tag: 0 },
            destination: LocalTimeline(0),
            receives: ends(receives),
            unplaced: Vec::new(),
            send_gaps: Gaps::default(),
            receive_gaps: Gaps::default(),
            announced: sends.len() as u64,
            sends: sends.iter().map(|end| end.1).collect(),
            shared: Some(Shared { sends: times(sends), receives: times(receives), apart }),
        };
        doubt.align(!doubt.is_called_in_wrong_order())
    }

    #[test]
    fn the_order_of_calls_of_threads_is_kept_while_nothing_speaks_against_it() {
        let sends = [(10, 8), (20, 8)];
        let kept = Alignment { pairs: vec![(0, 0), (1, 1)], implied: Vec::new(), common: 2 };
        assert_eq!(shared(&sends, &[(30, 8), (25, 8)]), kept);
        // What was called second was complete before its send, while two sends were before the second completion.
        let counted = |implied: Vec<(u32, u32)>| Alignment { implied, ..Alignment::default() };
        assert_eq!(shared(&sends, &[(30, 8), (15, 8)]), counted(vec![(0, 1), (1, 0)]));
        // Nor does this order help, so the clocks are wrong: that makes the order of the calls no better.
        assert_eq!(shared(&sends, &[(16, 8), (15, 8)]), counted(vec![(0, 1), (1, 0)]));
    }

    #[test]
    fn calls_that_nobody_has_overtaken_are_messages_even_if_clocks_are_wrong() {
        let sends = [(10, 8), (20, 8), (30, 8), (40, 8), (50, 8)];
        // The clock of the receiver is behind.
        let late = [(1, 8), (12, 8), (23, 8), (31, 8), (45, 8)];
        let all = (0..5).map(|k| (k, k)).collect();
        assert_eq!(shared(&sends, &late), Alignment { pairs: all, implied: Vec::new(), common: 5 });
        // The second and the third call were complete in the other order.
        let overtaken = [(1, 8), (23, 8), (12, 8), (31, 8), (45, 8)];
        let expected = Alignment { pairs: vec![(0, 0), (3, 3), (4, 4)], implied: vec![(1, 2), (2, 1)], common: 3 };
        assert_eq!(shared(&sends, &overtaken), expected);
        // The one in the middle is the third in both orders, but others have overtaken it.
        let turned = [(45, 8), (31, 8), (23, 8), (12, 8), (1, 8)];
        let expected = vec![(0, 4), (1, 3), (2, 2), (3, 1), (4, 0)];
        assert_eq!(shared(&sends, &turned), Alignment { implied: expected, ..Alignment::default() });
    }

    #[test]
    fn threads_with_clocks_of_their_own_have_called_in_no_order_that_is_known() {
        let sends = [(10, 8), (20, 8)];
        let counted = |implied: Vec<(u32, u32)>| Alignment { implied, ..Alignment::default() };
        assert_eq!(shared_by(&sends, &[(30, 8), (25, 8)], true), counted(vec![(0, 1), (1, 0)]));
        assert_eq!(shared_by(&sends, &[(16, 8), (15, 8)], true), counted(vec![(0, 1), (1, 0)]));
    }

    #[test]
    fn where_records_of_threads_disagree_numbers_count() {
        let counted = |implied: Vec<(u32, u32)>| Alignment { implied, ..Alignment::default() };
        assert_eq!(shared(&[(10, 8), (20, 16)], &[(30, 16), (40, 8)]), counted(vec![(0, 0), (1, 1)]));
        assert_eq!(shared(&[(10, 8)], &[(30, 8), (25, 8), (28, 8)]), counted(vec![(0, 0)]));
        assert_eq!(shared(&[(10, 8), (20, 8), (30, 8)], &[(50, 8), (40, 8)]), counted(vec![(0, 1), (1, 0)]));
    }
}
