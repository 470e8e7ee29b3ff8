//! The ends of messages of one process by channel, while it is read.

use crate::matching::hash::HashMap;
use crate::matching::message_ends::{MessageEnd, MessageKey};
use clc_trace::{CommId, Message};

/// Channels that were used lately, found by the fields of the record alone. A power of two; halos have fewer.
const RECENT: usize = 64;

/// Both lists of a channel.
#[derive(Debug)]
pub(super) struct ChannelEnds {
    /// Which one it is.
    pub key: MessageKey,
    /// Sends in program order.
    pub sends: Vec<MessageEnd>,
    /// Receives with the order in which they were posted.
    pub posted: Vec<(u32, MessageEnd)>,
    /// Who sends.
    pub senders: Callers,
    /// Who receives.
    pub receivers: Callers,
}

/// The locations of a process that call MPI for one end of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callers {
    /// None so far.
    None,
    /// This one.
    One(u32),
    /// Threads between which MPI knows no order.
    Several,
}

impl Callers {
    /// Adds a location.
    #[inline]
    pub(super) fn add(&mut self, location: u32) {
        *self = match *self {
            Callers::None => Callers::One(location),
            Callers::One(known) if known == location => return,
            _ => Callers::Several,
        }
    }
}

/// All channels of a process.
#[derive(Debug)]
pub(super) struct ChannelLists {
    by_key: HashMap<MessageKey, u32>,
    channels: Vec<ChannelEnds>,
    recent: Box<[Option<(Fields, u32)>; RECENT]>,
}

/// What a record says: rank within the communicator, communicator, tag.
type Fields = (u32, CommId, u32);

impl Default for ChannelLists {
    fn default() -> Self {
        ChannelLists { by_key: HashMap::default(), channels: Vec::new(), recent: Box::new([None; RECENT]) }
    }
}

impl ChannelLists {
    /// Number of the channel of `message`, whose key `key` finds out if it is not known. What it says of a message must not change.
    ///
    /// # Errors
    /// Those of `key`.
    #[inline(always)]
    pub(super) fn number<E>(
        &mut self,
        message: &Message,
        key: impl FnOnce() -> Result<MessageKey, E>,
    ) -> Result<u32, E> {
        let fields = (message.peer, message.comm, message.tag);
        let place = (message.peer ^ message.tag.wrapping_mul(7) ^ message.comm.0.wrapping_mul(31)) as usize % RECENT;
        if let Some((known, number)) = self.recent[place]
            && known == fields
        {
            return Ok(number);
        }
        let number = self.number_of(key()?);
        self.recent[place] = Some((fields, number));
        Ok(number)
    }

    /// Number of the channel with this key.
    #[inline(never)]
    pub(super) fn number_of(&mut self, key: MessageKey) -> u32 {
        let channels = &mut self.channels;
        *self.by_key.entry(key).or_insert_with(|| {
            let (senders, receivers) = (Callers::None, Callers::None);
            channels.push(ChannelEnds { key, sends: Vec::new(), posted: Vec::new(), senders, receivers });
            // Each has an event of its own, and those are counted in 32 bits.
            channels.len() as u32 - 1
        })
    }

    /// The lists of a channel.
    #[inline]
    pub(super) fn at(&mut self, number: u32) -> &mut ChannelEnds {
        &mut self.channels[number as usize]
    }

    /// All channels, in the order of their first use.
    pub(super) fn into_channels(self) -> Vec<ChannelEnds> {
        self.channels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::comm_index::CommIndex;
    use clc_trace::MpiRank;
    use proptest::prelude::*;
    use std::convert::Infallible;

    proptest! {
        #[test]
        fn every_message_finds_the_channel_of_its_key(messages in prop::collection::vec((0u32..9, 0u32..3, prop_oneof![0u32..4, any::<u32>()]), 0..300)) {
            let mut lists = ChannelLists::default();
            // Two ranks of a communicator may be the same process.
            let key = |&(peer, comm, tag): &(u32, u32, u32)| MessageKey { peer: MpiRank(peer / 2), comm: CommIndex(comm), tag };
            for (event, fields) in (0..).zip(&messages) {
                let message = Message { peer: fields.0, comm: CommId(fields.1), tag: fields.2, length: 0 };
                let number = lists.number(&message, || Ok::<_, Infallible>(key(fields))).unwrap();
                lists.at(number).sends.push(MessageEnd { event, length: 0 });
            }
            let found = lists.into_channels();
            prop_assert_eq!(found.iter().map(|channel| channel.sends.len()).sum::<usize>(), messages.len());
            for channel in &found {
                let expected: Vec<u32> = (0..).zip(&messages).filter(|(_, fields)| key(fields) == channel.key).map(|(event, _)| event).collect();
                prop_assert_eq!(channel.sends.iter().map(|end| end.event).collect::<Vec<u32>>(), expected);
            }
        }
    }
}
