//! The synchronisation events of one timeline.

use crate::matching::parts::Parts;
use crate::matching::relative_times::RelativeTimes;
use crate::matching::times::Times;
use clc_trace::{Error, EventNumber, Places, Position, Result, Ticks};

/// The coordinates of an event: its times, its location and its number there.
#[derive(Debug, Clone, Copy)]
pub struct EventCoordinates {
    /// Pre-synchronised time C.
    pub time: i64,
    /// Raw local time.
    pub raw: i64,
    /// Number in its location.
    pub number: EventNumber,
    /// Index of its location within the timeline.
    pub location: u32,
}

/// What a visited event does in the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SyncKind {
    /// Synchronises with nobody: unmatched, unconstrained, or only close to its neighbour (δ).
    Local,
    /// A logical send of a message; the link is the index of the outgoing channel.
    Send,
    /// A logical receive of a message; the link is the index of the incoming channel.
    Receive,
    /// Begin of a collective; the link is the index of the membership.
    Begin,
    /// End of a collective; the link is the index of the membership.
    End,
    /// A logical send on several channels; the link is the index of their list.
    Fan,
    /// A logical receive on several channels; the link is the index of their list.
    Join,
}

impl SyncKind {
    /// That of a part.
    #[inline]
    fn of(bits: u32) -> SyncKind {
        match bits {
            1 => SyncKind::Send,
            2 => SyncKind::Receive,
            3 => SyncKind::Begin,
            4 => SyncKind::End,
            5 => SyncKind::Fan,
            6 => SyncKind::Join,
            _ => SyncKind::Local,
        }
    }
}

/// Lowest bits of a part that hold the kind.
const KIND_BITS: u32 = 3;

/// Visited events of one timeline, in its order, as parallel arrays: 14 bytes each, and 4 less when the recorded times have been
/// forgotten (`forget_recorded_times`).
#[derive(Debug, Clone, Default)]
pub struct SyncTimeline {
    /// Pre-synchronised time C in ticks; nondecreasing.
    time: Times,
    /// Raw local time as recorded.
    recorded: RelativeTimes,
    /// Which event it is.
    places: Places,
    /// Link and kind; none of those that are [`SyncKind::Local`] at last.
    part: Parts,
    /// Where layers of events of one time begin, by location and number; mostly none.
    ties: Vec<LayerStart>,
}

/// What makes times of visited events of a timeline, in order for each location, of those at which they were recorded.
pub trait EventClock {
    /// Maps the times `recorded` of some events, which follow each other from event `first` on, into `times`, which is as long. All are in ticks; `places` has the locations of the events, as the
    /// timeline counts them.
    fn map(&mut self, places: &Places, first: usize, recorded: &[i64], times: &mut [i64]);
}

/// From a visited event on, those of its location that have the same time are in a layer ([`Position::in_layer`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerStart {
    /// The visited event.
    pub event: u32,
    /// The layer.
    pub layer: u32,
}

impl SyncTimeline {
    /// Links have to be below this.
    pub(crate) const LINKS: usize = 1 << (u32::BITS - KIND_BITS);

    /// Number of visited events.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Pre-synchronised time C of a visited event, in ticks.
    #[inline(always)]
    pub fn time(&self, event: usize) -> i64 {
        self.time.at(event)
    }

    /// Pre-synchronised times C of all visited events, in ticks; nondecreasing.
    pub fn times(&self) -> &Times {
        &self.time
    }

    /// Raw local time of a visited event in ticks, as it was recorded, if that was not forgotten.
    #[inline]
    pub fn recorded_time(&self, event: usize) -> Option<i64> {
        self.recorded.later_by(event).map(|later| self.time.at(event).wrapping_add(later))
    }

    /// Raw local times of all visited events; none if they were forgotten.
    pub fn recorded_times(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).map_while(|event| self.recorded_time(event))
    }

    /// Whether no event is visited.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Number of a visited event in its location.
    #[inline]
    pub fn number(&self, event: usize) -> EventNumber {
        self.places.number(event)
    }

    /// Index of a visited event's location within the timeline.
    #[inline]
    pub fn location(&self, event: usize) -> u32 {
        self.places.location(event)
    }

    /// Where a visited event stands in the timeline.
    #[inline]
    pub fn position(&self, event: usize) -> Position {
        let (location, number) = (self.location(event), self.number(event));
        Position { time: Ticks(self.time(event)), location, number }.in_layer(self.layer(event))
    }

    /// The layer of a visited event among those of its time.
    #[inline]
    fn layer(&self, event: usize) -> u32 {
        if self.ties.is_empty() { 0 } else { self.searched_layer(event) }
    }

    #[inline(never)]
    fn searched_layer(&self, event: usize) -> u32 {
        let place = |event: usize| (self.location(event), self.number(event));
        let same = |start: usize| self.time(start) == self.time(event) && self.location(start) == self.location(event);
        Position::layer_among(
            &self.ties,
            |start| place(start.event as usize) <= place(event),
            |start| same(start.event as usize),
            |start| start.layer,
        )
    }

    /// Where layers begin.
    pub(crate) fn layer_starts(&self) -> &[LayerStart] {
        &self.ties
    }

    /// Sets where layers begin, in any order.
    pub fn set_layers(&mut self, mut starts: Vec<LayerStart>) {
        starts.sort_unstable_by_key(|start| (self.location(start.event as usize), self.number(start.event as usize)));
        self.ties = starts;
    }

    /// What a visited event does.
    #[inline]
    pub fn kind(&self, event: usize) -> SyncKind {
        SyncKind::of(self.part.at(event) & ((1 << KIND_BITS) - 1))
    }

    /// With whom it does that; the meaning depends on the kind.
    #[inline]
    pub fn link(&self, event: usize) -> usize {
        (self.part.at(event) >> KIND_BITS) as usize
    }

    /// Kind and link of every visited event.
    pub fn parts(&self) -> impl Iterator<Item = (SyncKind, usize)> + '_ {
        (0..self.len()).map(|event| (self.kind(event), self.link(event)))
    }

    /// Appends an event and returns its index.
    ///
    /// # Errors
    /// There are too many.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: i64, raw: i64, number: EventNumber, location: u32) -> Result<u32> {
        let index = u32::try_from(self.time.len())
            .map_err(|_| Error::new("more than 2^32 synchronisation events in one process").at_event(number))?;
        self.time.push(time);
        self.recorded.push(raw.wrapping_sub(time));
        self.places.push(location, number);
        Ok(index)
    }

    /// Gives event `index` its part in the replay; `link` is below [`SyncTimeline::LINKS`].
    #[inline]
    pub(crate) fn activate(&mut self, index: u32, kind: SyncKind, link: u32) {
        self.part.set(index as usize, link << KIND_BITS | kind as u32);
    }

    /// As [`SyncTimeline::activate`] for a send or receive, of an event that may have that part on another channel already: then all of them are a list among
    /// `several`. Whether that list is a new one.
    #[inline]
    pub(crate) fn link_to(&mut self, index: u32, kind: SyncKind, channel: u32, several: &mut Vec<Vec<u32>>) -> bool {
        match self.kind(index as usize) {
            SyncKind::Fan | SyncKind::Join => several[self.link(index as usize)].push(channel),
            own if own == kind => {
                several.push(vec![self.link(index as usize) as u32, channel]);
                let kind = if kind == SyncKind::Send { SyncKind::Fan } else { SyncKind::Join };
                self.activate(index, kind, several.len() as u32 - 1);
                return true;
            }
            _ => self.activate(index, kind, channel),
        }
        false
    }

    /// Takes an event's part on one channel back.
    pub(crate) fn unlink(&mut self, index: u32, channel: u32, several: &mut [Vec<u32>]) {
        match self.kind(index as usize) {
            SyncKind::Fan | SyncKind::Join => {
                let left = &mut several[self.link(index as usize)];
                left.retain(|&other| other != channel);
                if left.is_empty() {
                    self.activate(index, SyncKind::Local, 0);
                }
            }
            _ => self.activate(index, SyncKind::Local, 0),
        }
    }

    /// Takes all parts back.
    pub(crate) fn forget_parts(&mut self) {
        self.part = Parts::default();
    }

    /// Frees the memory of the recorded times, which the replay does not need.
    pub(crate) fn forget_recorded_times(&mut self) {
        self.recorded = RelativeTimes::default();
    }

    /// Whether visited events are in the order of their positions ([`SyncTimeline::position`]).
    pub fn is_in_order(&self) -> bool {
        if self.is_empty() || self.times().iter().is_sorted_by(|one, other| one < other) {
            return true;
        }
        (0..self.len()).map(|event| self.position(event)).is_sorted()
    }

    /// Makes all pre-synchronised times later.
    pub fn shift(&mut self, by: i64) {
        self.time.shift(by);
        self.recorded.rebase(self.recorded.base().wrapping_sub(by));
    }

    /// Exchanges pre-synchronised and recorded times, if these were not forgotten.
    pub(crate) fn exchange_times(&mut self) {
        if self.recorded.is_empty() {
            return;
        }
        let SyncTimeline { time, recorded, .. } = self;
        time.change(|first, times| recorded.exchange(first, times));
        recorded.rebase(recorded.base().wrapping_neg());
    }

    /// Other clocks: `clock` makes pre-synchronised times of the times at which visited events were recorded, if these were not forgotten.
    pub(crate) fn retime(&mut self, mut clock: impl EventClock) {
        let Some(raw) = self.recorded_time(0) else { return };
        let SyncTimeline { time, recorded, places, .. } = self;
        let mut earliest = [0];
        clock.map(places, 0, &[raw], &mut earliest);
        let base = raw.wrapping_sub(earliest[0]);
        time.change(|first, times| {
            recorded.renew_others(first, times, base, |raw, times| clock.map(places, first, raw, times));
        });
        recorded.rebase(base);
    }
}

/// A timeline as a replay goes through it: as it is, or mirrored, from its last event to its first at negated times, with sends and receives exchanged.
/// A mirrored one takes no memory of its own.
#[derive(Debug, Clone, Copy)]
pub struct ReplayTimeline<'a> {
    of: &'a SyncTimeline,
    /// All bits if it is mirrored, or none: what is counted from the end, and negated, needs no branch.
    mask: usize,
    /// The number of events if it is mirrored, or zero.
    end: usize,
    /// What each kind is, four bits each.
    kinds: u32,
    links: Option<&'a MirroredLinks>,
}

/// Each kind as it is, and with sends and receives exchanged.
const KINDS: u32 = 0x654_3210;
const MIRRORED_KINDS: u32 = 0x563_4120;

/// Links of the mirrored replay: that of each incoming channel, which is an outgoing one there. All other links are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirroredLinks {
    /// By incoming channel.
    pub outgoing: Vec<u32>,
}

impl<'a> ReplayTimeline<'a> {
    /// Of a timeline; with `mirrored` for the mirrored replay.
    #[inline]
    pub(crate) fn new(of: &'a SyncTimeline, mirrored: Option<&'a MirroredLinks>) -> Self {
        match mirrored {
            Some(_) => ReplayTimeline { of, mask: usize::MAX, end: of.len(), kinds: MIRRORED_KINDS, links: mirrored },
            None => ReplayTimeline { of, mask: 0, end: 0, kinds: KINDS, links: None },
        }
    }

    /// Number of visited events.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.of.len()
    }

    /// The index of an event in the timeline as it is.
    #[inline]
    fn own(self, event: usize) -> usize {
        (event ^ self.mask).wrapping_add(self.end)
    }

    /// Pre-synchronised time C of an event.
    #[inline]
    pub(crate) fn time(self, event: usize) -> i64 {
        let mask = self.mask as i64;
        (self.of.time.at(self.own(event)) ^ mask) - mask
    }

    /// Number of an event in its location.
    #[inline]
    pub(crate) fn number(self, event: usize) -> EventNumber {
        self.of.number(self.own(event))
    }

    /// Index of an event's location within the timeline.
    #[inline]
    pub(crate) fn location(self, event: usize) -> u32 {
        self.of.location(self.own(event))
    }

    /// Where an event stands in the timeline.
    #[inline]
    pub(crate) fn position(self, event: usize) -> Position {
        let (location, number) = (self.location(event), self.number(event));
        Position { time: Ticks(self.time(event)), location, number }.in_layer(self.of.layer(self.own(event)))
    }

    /// What an event does.
    #[inline]
    pub(crate) fn kind(self, event: usize) -> SyncKind {
        let bits = self.of.part.at(self.own(event)) & ((1 << KIND_BITS) - 1);
        SyncKind::of(self.kinds >> (4 * bits) & ((1 << KIND_BITS) - 1))
    }

    /// With whom it does that; the meaning depends on the kind.
    #[inline]
    pub(crate) fn link(self, event: usize) -> usize {
        let own = self.own(event);
        let link = self.of.link(own);
        match self.links {
            Some(links) if self.of.kind(own) == SyncKind::Receive => links.outgoing[link] as usize,
            _ => link,
        }
    }
}

#[cfg(test)]
mod tests;
