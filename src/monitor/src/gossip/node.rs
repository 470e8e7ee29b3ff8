//! The node: what a caller asks it and tells it. `round` is what it sends, `intake` what it receives.

use super::config::{Config, MAX_DATUM, Unusable};
use super::identity;
use super::layer::{Change, Layer};
use super::message::{Contact, GossipRecord, RecordKey};
use super::outgoing::Outgoing;
use super::peers::PeerContacts;
use super::records::RecordStore;
use super::status;
use super::types::{Arrival, Counters, Event, EventKind, GroupView, KnownNode, Liveness, NodeId, RoundTrip, Time};
use crate::random::Random;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A node that is not in this node's group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Distant {
    pub liveness: Liveness,
    pub since: Time,
    pub heard: Time,
}

/// One node of the protocol. It opens no socket and reads no clock: packets and times come from the caller.
#[derive(Debug)]
pub struct Node {
    pub(crate) config: Config,
    pub(crate) layers: Vec<Layer>,
    pub(crate) records: RecordStore,
    pub(crate) peers: PeerContacts,
    /// Nodes of other groups that a record told of.
    pub(crate) distant: BTreeMap<NodeId, Distant>,
    pub(crate) random: Random,
    pub(crate) sequence: u64,
    pub(crate) round: u64,
    pub(crate) next_round: Time,
    /// Messages within the group so far.
    pub(crate) turn: u64,
    /// Until when there are more messages than one per round, and when the next of them is due; never if there is none before the next round.
    pub(crate) hurry_until: Time,
    pub(crate) next_hurry: Time,
    /// When the next packet for those who compare clocks is due.
    pub(crate) next_clock: Time,
    /// Whether this node has come to suspect somebody since its last round, and whether it suspected anybody when messages were more frequent.
    pub(crate) unsaid: bool,
    pub(crate) hurried: bool,
    /// Answers to nodes of other groups since the last round.
    pub(crate) answers: u32,
    /// Replies since the last round to nodes that had not heard of this node's group.
    pub(crate) replies: u32,
    /// When the caller called last.
    pub(crate) last_call: Time,
    /// Where to ask for admission, until gossip comes from there, and how often still.
    pub(crate) joining: Vec<(SocketAddr, u32)>,
    /// The lowest layer in which a node was greeted so far.
    pub(crate) closest: usize,
    pub(crate) outgoing: VecDeque<Outgoing>,
    /// Deaths and returns to be told at once, and the layer (from 0) in which this node has its nearest group in common with the one that told
    /// it; found here: the number of layers.
    pub(crate) news: Vec<(RecordKey, usize)>,
    pub(crate) events: Vec<Event>,
    pub(crate) round_trips: Vec<RoundTrip>,
    /// The packet that was taken last.
    pub(crate) arrival: Option<Arrival>,
    pub(crate) counters: Counters,
    pub(crate) leaving: bool,
}

/// A datum that cannot be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotPut {
    /// More bytes than [`MAX_DATUM`].
    #[error("a datum has at most {MAX_DATUM} bytes, this one has {0}")]
    TooLong(usize),
    /// The key is the node's own.
    #[error("key 65535 is reserved")]
    Reserved,
}

impl Node {
    /// A node that knows nobody yet.
    pub fn new(mut config: Config, now: Time) -> Result<Self, Unusable> {
        config.check()?;
        config.incarnation = config.incarnation.max(1);
        let mut random = Random::new(config.seed ^ config.incarnation);
        // Larger than at the last start if the incarnation is: it has gone on by one per interval since.
        let heartbeat = config.incarnation / config.interval + 1;
        let layers = Layer::all(&config, now, heartbeat);
        let next_round = now + random.below(config.interval);
        let mut node = Node {
            layers,
            records: RecordStore::default(),
            peers: PeerContacts::default(),
            distant: BTreeMap::new(),
            random,
            sequence: 0,
            round: 0,
            next_round,
            turn: 0,
            hurry_until: 0,
            next_hurry: Time::MAX,
            next_clock: if config.clock_every > 0 { next_round } else { Time::MAX },
            unsaid: false,
            hurried: false,
            answers: 0,
            replies: 0,
            last_call: now,
            joining: Vec::new(),
            closest: usize::MAX,
            outgoing: VecDeque::new(),
            news: Vec::new(),
            events: Vec::new(),
            round_trips: Vec::new(),
            arrival: None,
            counters: Counters::default(),
            leaving: false,
            config,
        };
        let Config { id, address, incarnation, .. } = node.config;
        let bytes = identity::encode(&Contact { id, address, incarnation }, &node.config.name);
        node.store(identity::KEY, &bytes, node.config.directory);
        Ok(node)
    }

    /// Number of this node.
    pub fn id(&self) -> NodeId {
        self.config.id
    }

    /// Its parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Asks whoever receives packets there to be let in, again and again until somebody answers.
    pub fn join(&mut self, address: SocketAddr) {
        self.ask(address, u32::MAX);
    }

    pub(crate) fn ask(&mut self, address: SocketAddr, times: u32) {
        if address != self.config.address && !self.joining.iter().any(|&(asked, _)| asked == address) {
            self.joining.push((address, times));
        }
    }

    /// Says farewell: the next [`poll`](Self::poll) gives the packets that tell it to some others; from then on the node is silent.
    pub fn leave(&mut self) {
        self.leaving = true;
        self.next_round = 0;
    }

    /// Sets a datum of this node for the members of its group. It replaces the last one of that key.
    pub fn put(&mut self, key: u16, bytes: &[u8]) -> Result<(), NotPut> {
        self.put_to(key, bytes, false)
    }

    /// Sets a datum of this node for all nodes of the job.
    pub fn put_everywhere(&mut self, key: u16, bytes: &[u8]) -> Result<(), NotPut> {
        self.put_to(key, bytes, true)
    }

    fn put_to(&mut self, key: u16, bytes: &[u8], everywhere: bool) -> Result<(), NotPut> {
        if bytes.len() > MAX_DATUM {
            return Err(NotPut::TooLong(bytes.len()));
        }
        if key == identity::KEY {
            return Err(NotPut::Reserved);
        }
        self.store(key, bytes, everywhere);
        Ok(())
    }

    pub(crate) fn store(&mut self, key: u16, bytes: &[u8], everywhere: bool) {
        let key = RecordKey { layer: 0, id: self.config.id.0, key };
        let last = self.records.version(key).unwrap_or(0);
        let version = self.heartbeat().max(last.saturating_add(1));
        self.records.take_as(&GossipRecord { key, everywhere, version, bytes }, key.key == identity::KEY);
    }

    /// A datum of a node, by its key.
    pub fn get(&self, id: NodeId, key: u16) -> Option<&[u8]> {
        let record = self.records.get(RecordKey { layer: 0, id: id.0, key })?;
        if key == identity::KEY || record.bytes.is_empty() { None } else { Some(record.bytes) }
    }

    /// No more packets that only tell of clocks, beside those that follow messages: so many at most.
    pub fn stop_clock_packets(&mut self, followers: u32) {
        self.next_clock = Time::MAX;
        self.config.clock_packets = self.config.clock_packets.min(followers);
    }

    /// This node's heartbeat.
    pub fn heartbeat(&self) -> u64 {
        self.layers[0].heartbeat()
    }

    /// All nodes known, this one included, by number.
    pub fn members(&self) -> impl Iterator<Item = KnownNode<'_>> {
        self.member_ids().filter_map(|id| self.member(id))
    }

    /// Their numbers.
    pub fn member_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        let group = &self.layers[0];
        let near = group.iter().map(|(index, _)| NodeId(group.base + index as u32));
        let mut ids: Vec<NodeId> = near.chain(self.distant.keys().copied()).collect();
        ids.sort_unstable();
        ids.into_iter()
    }

    /// One node.
    pub fn member(&self, id: NodeId) -> Option<KnownNode<'_>> {
        let mut name = "";
        let mut address = self.peers.get(id).map(|contact| contact.address);
        let (mut data, mut newest) = (Vec::new(), 0);
        for record in self.records.of(0, id.0) {
            newest = newest.max(record.version);
            if record.key.key == identity::KEY {
                if let Ok((contact, told)) = identity::decode(id, record.bytes) {
                    (name, address) = (told, Some(contact.address));
                }
            } else if !record.bytes.is_empty() {
                data.push((record.key.key, record.bytes));
            }
        }
        let group = &self.layers[0];
        let near = group.local(id.0).and_then(|index| group.get(index));
        let (liveness, since, heard, heartbeat) = match near {
            Some(entry) => (entry.liveness, entry.since, entry.heard, entry.heartbeat),
            None => {
                let distant = self.distant.get(&id)?;
                let (liveness, since) = self.distant_liveness(id, distant);
                (liveness, since, distant.heard, newest)
            }
        };
        let address = address.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
        Some(KnownNode { id, address, name, liveness, heartbeat, since, heard, data })
    }

    /// A node of another group is dead also if a group that it is in is.
    fn distant_liveness(&self, id: NodeId, distant: &Distant) -> (Liveness, Time) {
        let dead = self.layers[1..].iter().find_map(|layer| {
            let entry = layer.get(layer.local(id.0)?)?;
            (entry.liveness == Liveness::Dead).then_some((Liveness::Dead, entry.since))
        });
        dead.filter(|_| distant.liveness == Liveness::Alive).unwrap_or((distant.liveness, distant.since))
    }

    /// Groups of the layers above the first in which this node's own group is one of the entries.
    pub fn groups(&self) -> impl Iterator<Item = GroupView> + '_ {
        self.layers[1..].iter().flat_map(|layer| {
            layer.iter().map(|(index, entry)| GroupView {
                layer: layer.level,
                index: layer.base + index as u32,
                liveness: entry.liveness,
                since: entry.since,
            })
        })
    }

    /// What happened since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Round trips that were completed since the last call.
    pub fn round_trips(&mut self) -> Vec<RoundTrip> {
        std::mem::take(&mut self.round_trips)
    }

    /// The packet that was received last, if it was taken. Requests to join are not among them.
    pub fn arrived(&mut self) -> Option<Arrival> {
        self.arrival.take()
    }

    /// What came and went so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// When [`poll`](Self::poll) has something to do next. At once if packets wait.
    pub fn next_deadline(&self) -> Time {
        let waiting = !self.outgoing.is_empty() || !self.news.is_empty();
        if waiting && !self.leaving { 0 } else { self.next_round.min(self.next_hurry).min(self.next_clock) }
    }

    /// How long the caller may let packets wait that come from now on, to take in several at once: not at all while nodes meet or somebody is suspected, for then each one counts.
    pub fn may_wait(&self, now: Time) -> Time {
        let urgent = self.next_hurry != Time::MAX || self.layers.iter().any(|layer| layer.meets(now));
        if urgent || self.leaving { 0 } else { self.config.gather }
    }

    /// Notices if the caller itself stood still, as a stopped process does: that is no silence of others.
    pub(crate) fn notice(&mut self, now: Time) {
        let gap = now.saturating_sub(self.last_call);
        self.last_call = self.last_call.max(now);
        let usual = self.config.interval * 2;
        if gap > usual {
            self.counters.pauses += u64::from(gap > self.config.cleanup);
            for layer in &mut self.layers {
                layer.forgive(gap - self.config.interval);
            }
        }
    }

    pub(crate) fn tell(&mut self, at: Time, kind: EventKind) {
        self.events.push(Event { at, kind });
    }

    /// Turns what a layer noticed into events, and a consensus into a record for all.
    pub(crate) fn apply(&mut self, level: usize, changes: Vec<Change>, now: Time) {
        let base = self.layers[level].base;
        if level == 0 && changes.iter().any(|change| matches!(change, Change::Suspected(_))) {
            (self.unsaid, self.hurried) = (true, true);
            self.hurry(now);
        }
        for change in changes {
            let kind = match change {
                Change::New(index) if level == 0 => EventKind::Joined(NodeId(base + index as u32)),
                Change::Suspected(index) if level == 0 => EventKind::Suspected(NodeId(base + index as u32)),
                Change::Cleared(index) if level == 0 => EventKind::Cleared(NodeId(base + index as u32)),
                Change::Dead(index) => {
                    self.publish(level, index, Liveness::Dead);
                    died(level, base + index as u32)
                }
                _ => continue,
            };
            self.tell(now, kind);
        }
    }

    /// Tells all nodes what became of an entry of one of this node's groups.
    pub(crate) fn publish(&mut self, level: usize, index: usize, liveness: Liveness) {
        let layer = &self.layers[level];
        let heartbeat = layer.get(index).map_or(0, |entry| entry.heartbeat);
        let key = status::key(layer.level, layer.base + index as u32);
        let version = status::version(heartbeat, liveness);
        if self.records.take(&GossipRecord { key, everywhere: true, version, bytes: &status::encode(liveness) }) {
            self.news.push((key, self.layers.len()));
        }
    }
}

/// The event of a death.
pub(crate) fn died(level: usize, number: u32) -> EventKind {
    if level == 0 { EventKind::Dead(NodeId(number)) } else { EventKind::GroupDead(level as u8 + 1, number) }
}
