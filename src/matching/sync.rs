//! The synchronisation events of one timeline.

use crate::trace::{Error, Result};

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
}

/// Visited events of one timeline, in its order, as parallel arrays.
#[derive(Debug, Clone, Default)]
pub struct SyncTimeline {
    /// Pre-synchronised time C in ticks; nondecreasing.
    pub time: Vec<i64>,
    /// Raw local time in ticks, as recorded.
    pub raw: Vec<i64>,
    /// 1-based event number in its location.
    pub number: Vec<u64>,
    /// Index of its location within the timeline.
    pub location: Vec<u32>,
    /// What it does.
    pub kind: Vec<SyncKind>,
    /// Meaning depends on the kind.
    pub link: Vec<u32>,
}

impl SyncTimeline {
    /// Number of visited events.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether no event is visited.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Appends an event and returns its index.
    pub fn push(&mut self, time: i64, raw: i64, number: u64, location: u32) -> Result<u32> {
        let index = u32::try_from(self.time.len())
            .map_err(|_| Error::new("more than 2^32 synchronisation events in one process").at_event(number))?;
        self.time.push(time);
        self.raw.push(raw);
        self.number.push(number);
        self.location.push(location);
        self.kind.push(SyncKind::Local);
        self.link.push(0);
        Ok(index)
    }

    /// Gives event `index` its part in the replay.
    pub fn activate(&mut self, index: u32, kind: SyncKind, link: u32) {
        self.kind[index as usize] = kind;
        self.link[index as usize] = link;
    }
}
