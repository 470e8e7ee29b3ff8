//! The sending ends of channels, on their way to those that receive.

use crate::comm::{AnalysisRank, Transport, exchange_values};
use crate::matching::channels::{OutChannel, Trust};
use crate::matching::event_list::EventList;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::matched::Messages;
use crate::matching::message_ends::{MessageEnd, MessageKey};
use clc_trace::{Result, TimelineNumber};
use std::collections::BTreeMap;

/// The sends of a channel, before it is known what belongs to them.
#[derive(Debug)]
pub(super) struct Offer {
    /// The timeline that sends.
    pub source: LocalTimeline,
    /// To whom.
    pub key: MessageKey,
    /// Analysis rank that hosts the receiver.
    pub host: AnalysisRank,
    /// In order.
    pub sends: Vec<MessageEnd>,
    /// Index of the receiving end, where the two agree.
    pub remote: u32,
}

impl Offer {
    /// A channel of all its sends.
    pub(super) fn into_channel(self, trust: Trust) -> OutChannel {
        OutChannel {
            source: self.source,
            destination: TimelineNumber::of_process(self.key.peer),
            host: self.host,
            remote: self.remote,
            trust,
            sends: events_of(self.sends),
        }
    }
}

/// The events of these ends.
pub(super) fn events_of(ends: Vec<MessageEnd>) -> EventList {
    // Collecting may keep the larger buffer.
    let mut events: Vec<u32> = ends.into_iter().map(|end| end.event).collect();
    events.shrink_to_fit();
    events.into()
}

/// Outgoing channels have got their indices: tells them the receiving ends.
pub(in crate::matching) fn tell_indices(transport: &mut dyn Transport, messages: &mut Messages) -> Result<()> {
    // Which receiving end, and its sending end.
    let mut outgoing: BTreeMap<AnalysisRank, Vec<(u32, u32)>> = BTreeMap::new();
    for (index, channel) in (0..).zip(&messages.outgoing) {
        outgoing.entry(channel.host).or_default().push((channel.remote, index));
    }
    for (_, ends) in exchange_values(transport, outgoing)? {
        for (receiving, sending) in ends {
            messages.incoming[receiving as usize].remote = sending;
        }
    }
    Ok(())
}
