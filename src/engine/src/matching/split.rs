//! Timelines of their own for locations whose clock is not that of their process.
//!
//! Messages and collective operations are matched process by process, whichever thread made the call. Afterwards the timelines are taken apart: the
//! process keeps its number, locations with other clocks get numbers behind those of all processes. A channel whose ends are in several timelines then becomes
//! one per pair of them, and a communicator one for each group of timelines that have met (`collectives/split.rs`).

use crate::comm::{AnalysisRank, Transport, exchange_values};
use crate::matching::channels::{InChannel, Lengths, OutChannel, checked_index};
use crate::matching::collectives::instances::Collectives;
use crate::matching::collectives::split as split_operations;
use crate::matching::comm_index::CommIndex;
use crate::matching::event_list::EventList;
use crate::matching::extracted::Extract;
use crate::matching::link::link;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::matched::Messages;
use crate::matching::messages::offers::tell_indices;
use crate::matching::sync::{LayerStart, SyncKind, SyncTimeline};
use clc_trace::workers::Workers;
use clc_trace::{Result, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The timeline of one or more locations that were of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitTimeline {
    /// The timeline that they were in.
    pub of: LocalTimeline,
    /// Their places in it, ascending.
    pub locations: Vec<u32>,
}

/// Where the events of a timeline have gone: timeline and event.
type Moved = Vec<(LocalTimeline, u32)>;

/// The numbers of timelines: the first ones hosted here have the numbers from `first` on, those of their own from `further` on.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// That of the first process hosted here.
    pub first: TimelineNumber,
    /// How many processes are.
    pub shared: u32,
    /// That of the first timeline of its own.
    pub further: TimelineNumber,
}

impl Numbers {
    fn of(&self, local: LocalTimeline) -> TimelineNumber {
        match local.0.checked_sub(self.shared) {
            Some(own) => TimelineNumber(self.further.0 + own),
            None => local.numbered_from(self.first),
        }
    }
}

/// Which timelines of their own `extracts` ask for, in the order of processes.
pub fn parts(extracts: &[Extract]) -> Vec<SplitTimeline> {
    let mut parts = Vec::new();
    for (of, extract) in (0..).map(LocalTimeline).zip(extracts) {
        let most = extract.part_of.iter().copied().max().unwrap_or(0);
        parts.extend((1..=most).map(|part| {
            let locations = (0..).zip(&extract.part_of).filter(|(_, own)| **own == part).map(|(l, _)| l).collect();
            SplitTimeline { of, locations }
        }));
    }
    parts
}

/// Takes timelines apart: those of `parts` are appended to `extracts` as timelines without anything to match. Collective over the analysis ranks; needed if any of
/// them has parts. Communicators get further indexes from `unused` on.
///
/// # Errors
/// Failures of the transport, too many channels.
pub fn split(
    transport: &mut dyn Transport,
    numbers: Numbers,
    unused: CommIndex,
    parts: &[SplitTimeline],
    extracts: &mut Vec<Extract>,
    messages: &mut Messages,
    collectives: &mut Collectives,
) -> Result<()> {
    let moved = take_apart(parts, extracts)?;
    split_channels(transport, numbers, &moved, messages)?;
    split_operations::split(transport, &|local| numbers.of(local), &moved, unused, collectives)?;
    threads(transport, numbers, &moved, extracts, messages)?;
    tell_indices(transport, messages)?;
    link_again(extracts, messages, collectives);
    Ok(())
}

/// Makes the new timelines; where the events of those that were taken apart have gone, by local timeline.
fn take_apart(parts: &[SplitTimeline], extracts: &mut Vec<Extract>) -> Result<BTreeMap<LocalTimeline, Moved>> {
    let shared = extracts.len() as u32;
    let mut moved: BTreeMap<LocalTimeline, Moved> = BTreeMap::new();
    // By location of a timeline: its new timeline, and its place there.
    let mut places: BTreeMap<LocalTimeline, Vec<(LocalTimeline, u32)>> = BTreeMap::new();
    for (number, part) in (shared..).map(LocalTimeline).zip(parts) {
        let old = &extracts[part.of];
        let of = places.entry(part.of).or_insert_with(|| {
            let mut stays = 0;
            let place = |own: &u32| {
                stays += u32::from(*own == 0);
                (part.of, stays.wrapping_sub(1))
            };
            old.part_of.iter().map(place).collect()
        });
        for (&location, place) in part.locations.iter().zip(0..) {
            of[location as usize] = (number, place);
        }
    }
    extracts.extend(parts.iter().map(|_| Extract::default()));
    for (of, places) in places {
        let old = std::mem::take(&mut extracts[of].sync);
        let mut events: Moved = Vec::with_capacity(old.len());
        let mut starts = Vec::new();
        for event in 0..old.len() {
            let (timeline, location) = places[old.location(event) as usize];
            let sync = &mut extracts[timeline].sync;
            let raw = old.recorded_time(event).unwrap_or(0);
            events.push((timeline, sync.push(old.time(event), raw, old.number(event), location)?));
        }
        // Those that have left are alone in their timelines.
        for start in old.layer_starts() {
            let (timeline, event) = events[start.event as usize];
            starts.extend((timeline == of).then_some(LayerStart { event, ..*start }));
        }
        extracts[of].sync.set_layers(starts);
        moved.insert(of, events);
    }
    Ok(moved)
}

/// Channels of a host, and the number of the timeline of each event at the other end.
type Channels = Vec<(u32, Vec<TimelineNumber>)>;

/// What the other ends have told, by channel.
fn told(received: Vec<(AnalysisRank, Channels)>) -> BTreeMap<u32, Vec<TimelineNumber>> {
    received.into_iter().flat_map(|(_, channels)| channels).collect()
}

/// Of a channel at the host of its sending end: where the receiving end of one of its pieces is now.
#[derive(Serialize, Deserialize)]
struct NewEnd {
    channel: u32,
    piece: u32,
    index: u32,
}

/// Channels of timelines that were taken apart become one per pair of timelines.
fn split_channels(
    transport: &mut dyn Transport,
    numbers: Numbers,
    moved: &BTreeMap<LocalTimeline, Moved>,
    messages: &mut Messages,
) -> Result<()> {
    let mut ends: BTreeMap<AnalysisRank, Channels> = BTreeMap::new();
    for channel in &messages.outgoing {
        if let Some(moved) = moved.get(&channel.source) {
            let numbers = channel.sends.each().map(|event| numbers.of(moved[event as usize].0)).collect();
            ends.entry(channel.host).or_default().push((channel.remote, numbers));
        }
    }
    let sources = told(exchange_values(transport, ends)?);
    let mut ends: BTreeMap<AnalysisRank, Channels> = BTreeMap::new();
    for channel in &messages.incoming {
        if let Some(moved) = moved.get(&channel.destination) {
            let numbers = channel.receives.each().map(|event| numbers.of(moved[event as usize].0)).collect();
            ends.entry(channel.host).or_default().push((channel.remote, numbers));
        }
    }
    let destinations = told(exchange_values(transport, ends)?);

    // The pieces of a channel are in the order of the numbers of their two timelines, at both ends.
    let answers = split_incoming(numbers, moved, &sources, messages)?;
    let mut split = split_outgoing(numbers, moved, &destinations, messages);
    for end in exchange_values(transport, answers)?.into_iter().flat_map(|(_, ends)| ends) {
        if let Some(piece) = split[end.channel as usize].get_mut(end.piece as usize) {
            piece.remote = end.index;
        }
    }
    messages.outgoing = split.into_iter().flatten().collect();
    Ok(())
}

/// For each other end, by the place of its channel here: the timeline of each of its events.
type Told = BTreeMap<u32, Vec<TimelineNumber>>;

/// Splits the receiving ends; what the hosts of the sending ends have to know of that.
fn split_incoming(
    numbers: Numbers,
    moved: &BTreeMap<LocalTimeline, Moved>,
    sources: &Told,
    messages: &mut Messages,
) -> Result<BTreeMap<AnalysisRank, Vec<NewEnd>>> {
    let mut answers: BTreeMap<AnalysisRank, Vec<NewEnd>> = BTreeMap::new();
    let mut incoming: Vec<InChannel> = Vec::with_capacity(messages.incoming.len());
    for (index, channel) in (0..).zip(std::mem::take(&mut messages.incoming)) {
        let moved = moved.get(&channel.destination);
        let sources = sources.get(&index);
        let answers = answers.entry(channel.host).or_default();
        if moved.is_none() && sources.is_none() {
            answers.push(NewEnd { channel: channel.remote, piece: 0, index: checked_index(incoming.len())? });
            incoming.push(channel);
            continue;
        }
        let mut pieces: BTreeMap<(TimelineNumber, TimelineNumber), InChannel> = BTreeMap::new();
        for (k, event) in channel.receives.each().enumerate() {
            let source = sources.and_then(|list| list.get(k)).copied().unwrap_or(channel.source);
            let (destination, event) = moved.map_or((channel.destination, event), |moved| moved[event as usize]);
            let piece = pieces.entry((source, numbers.of(destination))).or_insert_with(|| InChannel {
                source,
                destination,
                receives: EventList::default(),
                lengths: channel.lengths.of_some(),
                ..channel
            });
            piece.receives.to_mut().push(event);
        }
        // What a timeline sends to itself constrains nobody.
        let to_itself = |piece: &InChannel| piece.source == numbers.of(piece.destination);
        let itself = pieces.values().filter(|piece| to_itself(piece)).map(|piece| piece.receives.len() as u64).sum();
        messages.counts.keep_to_self(channel.trust, itself);
        for (piece, end) in (0..).zip(pieces.into_values().filter(|piece| !to_itself(piece))) {
            answers.push(NewEnd { channel: channel.remote, piece, index: checked_index(incoming.len())? });
            incoming.push(end);
        }
    }
    messages.incoming = incoming;
    Ok(answers)
}

/// Splits the sending ends: the pieces of each, without those that a timeline sends to itself.
fn split_outgoing(
    numbers: Numbers,
    moved: &BTreeMap<LocalTimeline, Moved>,
    destinations: &Told,
    messages: &mut Messages,
) -> Vec<Vec<OutChannel>> {
    let mut split: Vec<Vec<OutChannel>> = Vec::with_capacity(messages.outgoing.len());
    for (index, channel) in (0..).zip(std::mem::take(&mut messages.outgoing)) {
        let moved = moved.get(&channel.source);
        let destinations = destinations.get(&index);
        if moved.is_none() && destinations.is_none() {
            split.push(vec![channel]);
            continue;
        }
        let mut pieces: BTreeMap<(TimelineNumber, TimelineNumber), OutChannel> = BTreeMap::new();
        for (k, event) in channel.sends.each().enumerate() {
            let destination = destinations.and_then(|list| list.get(k)).copied().unwrap_or(channel.destination);
            let (source, event) = moved.map_or((channel.source, event), |moved| moved[event as usize]);
            let piece = pieces.entry((numbers.of(source), destination)).or_insert_with(|| OutChannel {
                source,
                destination,
                sends: EventList::default(),
                ..channel
            });
            piece.sends.to_mut().push(event);
        }
        split.push(pieces.into_values().filter(|piece| numbers.of(piece.source) != piece.destination).collect());
    }
    split
}

/// The orders between threads of one process, as channels both of whose ends are here.
fn threads(
    transport: &dyn Transport,
    numbers: Numbers,
    moved: &BTreeMap<LocalTimeline, Moved>,
    extracts: &mut [Extract],
    messages: &mut Messages,
) -> Result<()> {
    let here = transport.rank();
    for (of, moved) in moved {
        let taken = std::mem::take(&mut extracts[*of].thread_orders).into_iter();
        let mut orders: Vec<_> = taken
            .map(|(kind, from, to)| {
                let ((source, from), (destination, to)) = (moved[from as usize], moved[to as usize]);
                ((kind, source, destination), (from, to))
            })
            .collect();
        orders.sort_unstable();
        for channel in orders.chunk_by(|(one, _), (other, _)| one == other) {
            let Some(&((trust, source, destination), _)) = channel.first() else { continue };
            let (sends, receives): (Vec<u32>, Vec<u32>) = channel.iter().map(|&(_, pair)| pair).unzip();
            let remote = checked_index(messages.incoming.len())?;
            messages.incoming.push(InChannel {
                source: numbers.of(source),
                host: here,
                remote: u32::MAX,
                destination,
                trust,
                receives: receives.into(),
                lengths: Lengths::default(),
            });
            messages.outgoing.push(OutChannel {
                source,
                destination: numbers.of(destination),
                host: here,
                remote,
                trust,
                sends: sends.into(),
            });
        }
    }
    messages.outgoing.sort_by_key(|channel| channel.source);
    checked_index(messages.outgoing.len()).map(|_| ())
}

/// Gives all events their parts again.
fn link_again(extracts: &mut [Extract], messages: &mut Messages, collectives: &Collectives) {
    extracts.iter_mut().for_each(|extract| extract.sync.forget_parts());
    link(messages, extracts, Workers::ONE);
    for link in 0..collectives.memberships.len() {
        let (_, _, member) = collectives.linked(link);
        let link = link as u32;
        let sync: &mut SyncTimeline = &mut extracts[member.timeline].sync;
        member.begins.each().for_each(|begin| sync.activate(begin, SyncKind::Begin, link));
        let sync: &mut SyncTimeline = &mut extracts[member.ended_on].sync;
        member.ends.each().for_each(|end| sync.activate(end, SyncKind::End, link));
    }
}
