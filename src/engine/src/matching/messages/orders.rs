//! Orders between two processes that are no messages: the end of a synchronous send after the posting of its receive, and the steps of
//! post, start, complete and wait.
//!
//! They are channels like those of messages ([`Trust::Acknowledged`], [`Trust::Grouped`]), so that all replays treat them alike.
//!
//! | from | to |
//! | --- | --- |
//! | the call that posts a receive is entered | the synchronous send of its message is over; on a channel of several threads, the k-th for the k-th |
//! | `MPI_Win_post` is entered by a target | `MPI_Win_complete` is left by each of its origins |
//! | `MPI_Win_complete` is entered by an origin | `MPI_Win_wait` is left by each of its targets |
//!
//! The k-th epoch of two processes on a window is the k-th for both. Where their numbers differ, records are missing at one of the ends: then the k-th
//! of the end with more belongs to the k-th of the other or an earlier one (counted from the begin where receives are missing, from the end where
//! sends are), so that an order is implied all the same ([`Trust::Implied`]). It is only implied as well where several threads of a process have made the
//! steps and have clocks of their own, unless they have shown in which order: else clocks that disagree tell which of them is the k-th.

use crate::comm::{AnalysisRank, Transport, exchange_values};
use crate::matching::channels::{InChannel, Lengths, OutChannel, Trust, checked_index};
use crate::matching::comm_index::CommIndex;
use crate::matching::event_list::EventList;
use crate::matching::extracted::{Extract, GroupKey};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::matched::Messages;
use crate::matching::messages::doubts::are_apart;
use crate::matching::messages::offers::tell_indices;
use crate::matching::placement::Placement;
use clc_trace::{Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a host tells another one.
#[derive(Serialize, Deserialize)]
enum OrderAnnouncement {
    /// Of these messages of an incoming channel of the other host, the sends are synchronous: their ends are the receiving end `index` here.
    Synchronous { channel: u32, index: u32, places: Vec<u32> },
    /// So many steps of a process, for which another one waits.
    Group {
        source: TimelineNumber,
        destination: TimelineNumber,
        window: CommIndex,
        completes: bool,
        offer: u32,
        steps: u32,
        /// They are in several timelines, and only clocks tell their order.
        apart: bool,
    },
}

/// What the other host answers.
#[derive(Serialize, Deserialize)]
enum OrderAnswer {
    /// The postings of these of the places are known.
    Synchronous { index: u32, kept: Vec<u32> },
    /// So many steps of an offer belong to the receiving end `index`; whether they are only implied.
    Group { offer: u32, index: u32, implied: bool, steps: u32 },
}

/// Adds the orders of the timelines of `extracts`, the first of which has the global number `first`, to the channels of the messages. Collective over the
/// analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn add(
    transport: &mut dyn Transport,
    placement: &Placement,
    first: TimelineNumber,
    extracts: &mut [Extract],
    messages: &mut Messages,
) -> Result<()> {
    let mut outgoing: BTreeMap<AnalysisRank, Vec<OrderAnnouncement>> = BTreeMap::new();
    acknowledgements(extracts, messages, &mut outgoing)?;
    let offers = groups(placement, first, extracts, &mut outgoing);

    let mut answers: BTreeMap<AnalysisRank, Vec<OrderAnswer>> = BTreeMap::new();
    for (host, announced) in exchange_values(transport, outgoing)? {
        let answers = answers.entry(host).or_default();
        for announcement in announced {
            answers.push(match announcement {
                OrderAnnouncement::Synchronous { channel, index, places } => {
                    acknowledge(extracts, messages, host, (channel, index), &places)
                }
                OrderAnnouncement::Group { source, destination, window, completes, offer, steps, apart } => {
                    let key = GroupKey { peer: source.process(), window, completes };
                    let local = LocalTimeline(destination.0 - first.0);
                    let receives = extracts[local].group_receives.remove(&key).unwrap_or_default();
                    let apart = apart || of_unknown_order(&extracts[local], window, &receives);
                    pair(messages, host, local, source, receives, (offer, steps as usize, apart))?
                }
            });
        }
    }
    let left = extracts.iter_mut().flat_map(|extract| std::mem::take(&mut extract.group_receives).into_values());
    messages.counts.loose_steps += left.map(|receives| receives.len() as u64).sum::<u64>();

    for answer in exchange_values(transport, answers)?.into_iter().flat_map(|(_, answers)| answers) {
        match answer {
            OrderAnswer::Synchronous { index, kept } => {
                let channel = &mut messages.incoming[index as usize];
                channel.receives = kept.iter().map(|&place| channel.receives.at(place as usize)).collect();
                messages.counts.acknowledged += kept.len() as u64;
            }
            OrderAnswer::Group { offer, index, implied, steps } => {
                let offer = &offers[offer as usize];
                let destination = TimelineNumber::of_process(offer.key.peer);
                messages.outgoing.push(OutChannel {
                    source: offer.source,
                    destination,
                    host: placement.host_of(destination),
                    remote: index,
                    trust: if implied { Trust::Implied } else { Trust::Grouped },
                    sends: offer.sends[..steps as usize].to_vec().into(),
                });
            }
        }
    }
    messages.outgoing.sort_by_key(|channel| channel.source);
    checked_index(messages.outgoing.len())?;
    tell_indices(transport, messages)
}

/// Whether some of the events are of other locations than others.
fn of_several_locations(extract: &Extract, events: &EventList) -> bool {
    let mut locations = events.each().map(|event| extract.sync.location(event as usize));
    locations.next().is_some_and(|first| locations.any(|location| location != first))
}

/// The synchronous sends of messages that are certain: their ends are the receives of new channels, and the hosts of the receivers are asked which of
/// their postings they know.
///
/// Threads that send on one channel may overtake each other, so of those nobody knows whose send a posting belongs to. But when k of the sends are over, k receives
/// have been posted: the k-th end belongs to the k-th posting.
fn acknowledgements(
    extracts: &[Extract],
    messages: &mut Messages,
    outgoing: &mut BTreeMap<AnalysisRank, Vec<OrderAnnouncement>>,
) -> Result<()> {
    for channel in messages.outgoing.iter().filter(|channel| channel.is_certain()) {
        let extract = &extracts[channel.source];
        let ends = &extract.synchronous;
        if ends.is_empty() {
            continue;
        }
        let found = (0u32..).zip(channel.sends.each()).filter_map(|(k, send)| Some((k, *ends.get(&send)?)));
        let (mut places, mut receives): (Vec<u32>, Vec<u32>) = found.unzip();
        if channel.trust == Trust::Aligned && of_several_locations(extract, &channel.sends) {
            receives.sort_unstable();
            places = (0..receives.len() as u32).filter(|_| messages.calls_in_order).collect();
            receives.truncate(places.len());
        }
        if places.is_empty() {
            continue;
        }
        let index = checked_index(messages.incoming.len())?;
        let announcement = OrderAnnouncement::Synchronous { channel: channel.remote, index, places };
        outgoing.entry(channel.host).or_default().push(announcement);
        messages.incoming.push(InChannel {
            source: channel.destination,
            host: channel.host,
            remote: u32::MAX,
            destination: channel.source,
            trust: Trust::Acknowledged,
            receives: receives.into(),
            lengths: Lengths::default(),
        });
    }
    Ok(())
}

/// The postings of the messages `places` of an incoming channel, as the sends of a new one to the receiving end `index` at `host`; the answer says which
/// are known.
fn acknowledge(
    extracts: &[Extract],
    messages: &mut Messages,
    host: AnalysisRank,
    (channel, index): (u32, u32),
    places: &[u32],
) -> OrderAnswer {
    let channel = &messages.incoming[channel as usize];
    let extract = &extracts[channel.destination];
    let mut posts: Vec<Option<u32>> =
        channel.receives.each().map(|receive| extract.posts.get(&receive).copied()).collect();
    if channel.trust == Trust::Aligned && of_several_locations(extract, &channel.receives) {
        // Which of the calls of several threads was the first to post is not known either, but how many had been made.
        if messages.calls_in_order && posts.iter().all(Option::is_some) {
            posts.sort_unstable();
        } else {
            posts.fill(None);
        }
    }
    let found = (0u32..).zip(places).filter_map(|(at, &place)| Some((at, posts[place as usize]?)));
    let (mut kept, mut sends): (Vec<u32>, Vec<u32>) = found.unzip();
    // Sends of a channel have to be in the order of the timeline.
    debug_assert!(sends.is_sorted());
    if !sends.is_sorted() {
        (kept, sends) = Default::default();
    }
    messages.outgoing.push(OutChannel {
        source: channel.destination,
        destination: channel.source,
        host,
        remote: index,
        trust: Trust::Acknowledged,
        sends: sends.into(),
    });
    OrderAnswer::Synchronous { index, kept }
}

/// What a process does with a group, before it is known what the others did.
struct GroupOffer {
    source: LocalTimeline,
    key: GroupKey,
    sends: Vec<u32>,
}

/// Whether steps on a window are in several timelines, and the threads have not shown in which order.
fn of_unknown_order(extract: &Extract, window: CommIndex, steps: &[u32]) -> bool {
    are_apart(extract, steps.iter().copied()) && !extract.ordered_windows.contains(&window)
}

fn groups(
    placement: &Placement,
    first: TimelineNumber,
    extracts: &mut [Extract],
    outgoing: &mut BTreeMap<AnalysisRank, Vec<OrderAnnouncement>>,
) -> Vec<GroupOffer> {
    let mut offers = Vec::new();
    for (local, extract) in (0..).map(LocalTimeline).zip(extracts) {
        let mut keys: Vec<(GroupKey, Vec<u32>)> = extract.group_sends.drain().collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        for (key, mut sends) in keys {
            if !extract.ordered_windows.contains(&key.window) {
                sends.sort_unstable();
            }
            let destination = TimelineNumber::of_process(key.peer);
            outgoing.entry(placement.host_of(destination)).or_default().push(OrderAnnouncement::Group {
                source: local.numbered_from(first),
                destination,
                window: key.window,
                completes: key.completes,
                offer: offers.len() as u32,
                steps: sends.len() as u32,
                apart: of_unknown_order(extract, key.window, &sends),
            });
            offers.push(GroupOffer { source: local, key, sends });
        }
    }
    offers
}

/// The receiving end of an offer with `count` sends; these or the receives are in an order that only clocks tell if they are `apart`; the answer to it.
fn pair(
    messages: &mut Messages,
    host: AnalysisRank,
    local: LocalTimeline,
    source: TimelineNumber,
    mut receives: Vec<u32>,
    (offer, count, apart): (u32, usize, bool),
) -> Result<OrderAnswer> {
    let paired = receives.len().min(count);
    let implied = apart || receives.len() != count;
    messages.counts.loose_steps += receives.len().abs_diff(count) as u64;
    if implied {
        messages.counts.implied += paired as u64;
    } else {
        messages.counts.grouped += paired as u64;
    }
    // Of too many receives the last ones: sends are missing before them.
    receives.drain(..receives.len() - paired);
    let index = checked_index(messages.incoming.len())?;
    messages.incoming.push(InChannel {
        source,
        host,
        remote: u32::MAX,
        destination: local,
        trust: if implied { Trust::Implied } else { Trust::Grouped },
        receives: receives.into(),
        lengths: Lengths::default(),
    });
    Ok(OrderAnswer::Group { offer, index, implied, steps: paired as u32 })
}
