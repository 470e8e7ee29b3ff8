//! Point-to-point messages: joining the sends of one process with the receives of another.
//!
//! Messages of one (sender, receiver, communicator, tag) form a *channel*: the k-th send belongs to the k-th receive in the order of
//! posting (MPI's non-overtaking rule). So it is enough that the two hosts agree on channels, on their numbers of messages, and on a checksum of
//! the messages' lengths; who is whose partner follows without any exchange per message. A channel whose ends disagree is *in doubt*: what is
//! known of it all the same is found out in `doubts`. So is one on which several threads of a process send, or receive.

mod align;
mod doubts;
pub(super) mod offers;
mod orders;

use crate::comm::{AnalysisRank, ReduceOp, Transport, exchange_values};
use crate::matching::channels::{InChannel, Lengths, Trust, checked_index};
use crate::matching::comm_index::CommIndex;
use crate::matching::event_list::EventList;
use crate::matching::extracted::Extract;
use crate::matching::link::link;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::matched::{MessageCounts, Messages};
use crate::matching::message_ends::{MessageEnd, MessageKey};
use crate::matching::messages::doubts::{Doubt, Shared, settle};
use crate::matching::messages::offers::{Offer, events_of};
use crate::matching::placement::Placement;
use crate::matching::undefined::Gaps;
use clc_trace::workers::Workers;
use clc_trace::{Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the host of a sender tells the host of the receiver of a channel.
#[derive(Serialize, Deserialize)]
struct ChannelAnnouncement {
    /// Sender, receiver, communicator and tag.
    source: TimelineNumber,
    destination: TimelineNumber,
    comm: CommIndex,
    tag: u32,
    /// Number of the offer.
    offer: u32,
    /// Number of sends, and checksum of their lengths.
    sends: u64,
    checksum: u64,
    gaps: Gaps,
    /// Several threads send.
    shared: bool,
}

/// What the host of the receiver makes of an offer.
#[derive(Serialize, Deserialize)]
enum ChannelAnswer {
    /// The index of the receiving end, and whether it has the messages that were announced; else it has none.
    End { offer: u32, index: u32, agrees: bool },
    /// The channel is in doubt, or several threads share it: then times matter.
    InDoubt { offer: u32, shared: bool },
}

/// Joins all sends and receives. Collective over the analysis ranks; `extracts` are those of this rank's timelines, the first of
/// which has the global number `first`; `with_orders` if any of them, on any rank, has orders that are no messages. Matched events are activated in their [`crate::matching::sync::SyncTimeline`].
///
/// # Errors
/// Failures of the transport.
pub fn match_messages(
    transport: &mut dyn Transport,
    placement: &Placement,
    first: TimelineNumber,
    extracts: &mut [Extract],
    with_orders: bool,
    workers: Workers,
) -> Result<Messages> {
    let mut messages = Messages::default();
    let (mut offers, announcements) = offers(placement, first, extracts, &mut messages.counts)?;
    let announced = exchange_values(transport, announcements)?;
    let (answers, doubts) = answers(announced, first, extracts, &mut messages)?;
    for (local, extract) in (0..).map(LocalTimeline).zip(&mut *extracts) {
        for (key, receives) in extract.receives.drain().chain(extract.unplaced.drain()) {
            let (source, destination) = (TimelineNumber::of_process(key.peer), local.numbered_from(first));
            messages.counts.leave(source, destination, 0, receives.len());
        }
    }
    let mut asked = take_answers(exchange_values(transport, answers)?, &mut offers);
    let mut in_doubt = [doubts.len() as i64];
    transport.all_reduce(ReduceOp::Sum, &mut in_doubt)?;
    if in_doubt[0] == 0 {
        messages.outgoing = offers.into_iter().map(|offer| offer.into_channel(Trust::Sound)).collect();
    } else {
        asked.sort_unstable();
        let agreeing = messages.counts.matched as i64;
        settle(transport, (first, extracts), &mut messages, offers, &asked, doubts, agreeing)?;
    }
    if with_orders {
        orders::add(transport, placement, first, extracts, &mut messages)?;
    }
    link(&mut messages, extracts, workers);
    Ok(messages)
}

/// What is in [`ChannelAnswer`]s, for each analysis rank.
type Answers = BTreeMap<AnalysisRank, Vec<ChannelAnswer>>;

/// Compares what was announced with the receives of `extracts`: adds the channels on which both ends agree, and those that have one end only. The others
/// are in doubt.
fn answers(
    announced: impl IntoIterator<Item = (AnalysisRank, Vec<ChannelAnnouncement>)>,
    first: TimelineNumber,
    extracts: &mut [Extract],
    messages: &mut Messages,
) -> Result<(Answers, Vec<Doubt>)> {
    let mut doubts = Vec::new();
    let mut answers = Answers::new();
    for (host, announced) in announced {
        let answers = answers.entry(host).or_default();
        for ChannelAnnouncement { source, destination, comm, tag, offer, sends, checksum, gaps, shared } in announced {
            let key = MessageKey { peer: source.process(), comm, tag };
            let local = LocalTimeline(destination.0 - first.0);
            let announced = sends as usize;
            let receives = extracts[local].receives.remove(&key).unwrap_or_default();
            let unplaced = extracts[local].unplaced.remove(&key).unwrap_or_default();
            let nothing = announced == 0 || receives.len() + unplaced.len() == 0;
            let shared = shared || extracts[local].shared[1].contains(&key);
            let agree =
                !shared && receives.len() == announced && unplaced.is_empty() && checksum_of(&receives) == checksum;
            if nothing || agree {
                let index = checked_index(messages.incoming.len())?;
                let matched = if agree { announced } else { 0 };
                messages.counts.matched += matched as u64;
                let alone = receives.len() + unplaced.len() - matched;
                messages.counts.leave(source, destination, announced - matched, alone);
                answers.push(ChannelAnswer::End { offer, index, agrees: agree });
                messages.incoming.push(InChannel {
                    source,
                    host,
                    remote: offer,
                    destination: local,
                    trust: Trust::Sound,
                    lengths: if agree { Lengths::of(&receives) } else { Lengths::default() },
                    receives: if agree { events_of(receives) } else { EventList::default() },
                });
            } else {
                answers.push(ChannelAnswer::InDoubt { offer, shared });
                doubts.push(Doubt {
                    host,
                    offer,
                    key,
                    destination: local,
                    receives,
                    unplaced,
                    send_gaps: gaps,
                    receive_gaps: extracts[local].receive_gaps.remove(&key).unwrap_or_default(),
                    announced: sends,
                    sends: Vec::new(),
                    shared: shared.then(Shared::default),
                });
            }
        }
    }
    Ok((answers, doubts))
}

/// What the receivers' hosts have answered, in the `offers`; those whose channels are in doubt, and whether several threads share them.
fn take_answers(
    answers: impl IntoIterator<Item = (AnalysisRank, Vec<ChannelAnswer>)>,
    offers: &mut [Offer],
) -> Vec<(u32, bool)> {
    let mut asked = Vec::new();
    for (_, answers) in answers {
        for answer in answers {
            match answer {
                ChannelAnswer::InDoubt { offer, shared } => asked.push((offer, shared)),
                ChannelAnswer::End { offer, index, agrees } => {
                    let offer = &mut offers[offer as usize];
                    offer.remote = index;
                    if !agrees {
                        offer.sends = Vec::new();
                    }
                }
            }
        }
    }
    asked
}

/// For each analysis rank.
type Announcements = BTreeMap<AnalysisRank, Vec<ChannelAnnouncement>>;

/// Takes all sends of `extracts`, and what the receivers' hosts have to know of them.
fn offers(
    placement: &Placement,
    first: TimelineNumber,
    extracts: &mut [Extract],
    counts: &mut MessageCounts,
) -> Result<(Vec<Offer>, Announcements)> {
    let mut offers = Vec::new();
    let mut announcements = Announcements::new();
    for (local, extract) in (0..).map(LocalTimeline).zip(extracts) {
        let source = local.numbered_from(first);
        let mut keys: Vec<(MessageKey, Vec<MessageEnd>)> = extract.sends.drain().collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        for (key, sends) in keys {
            // Of a process with several timelines, they go from one to another.
            let destination = TimelineNumber::of_process(key.peer);
            if destination == source && extract.part_of.iter().all(|&part| part == 0) {
                let lists = [extract.receives.remove(&key), extract.unplaced.remove(&key)];
                let receives = lists.iter().flatten().map(Vec::len).sum::<usize>();
                let matched = sends.len().min(receives);
                counts.to_self += matched as u64;
                counts.leave(source, source, sends.len() - matched, receives - matched);
                continue;
            }
            let index = checked_index(offers.len())?;
            let host = placement.host_of(destination);
            let gaps = extract.send_gaps.remove(&key).unwrap_or_default();
            let shared = extract.shared[0].contains(&key);
            announcements.entry(host).or_default().push(ChannelAnnouncement {
                source,
                destination,
                comm: key.comm,
                tag: key.tag,
                offer: index,
                sends: sends.len() as u64,
                checksum: checksum_of(&sends),
                gaps,
                shared,
            });
            offers.push(Offer { source: local, key, host, sends, remote: u32::MAX });
        }
    }
    Ok((offers, announcements))
}

/// Of the lengths in their order. The hosts of the two ends may be different machines: no hash of the standard library.
fn checksum_of(ends: &[MessageEnd]) -> u64 {
    // The odd constant is 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    ends.iter().fold(0, |sum: u64, end| {
        (sum.rotate_left(23) ^ u64::from(end.length)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
