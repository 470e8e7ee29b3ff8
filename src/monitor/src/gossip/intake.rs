//! What a node does with a packet.

use super::identity;
use super::layer::Change;
use super::message::{Contact, GossipRecord, PacketContent, RecordKey};
use super::node::{Distant, Node, died};
use super::outgoing::Outgoing;
use super::seal::{ANYBODY, PacketHeader, PacketKind, Refused, open};
use super::status;
use super::types::{Arrival, EventKind, Liveness, NodeId, RoundTrip, Time};
use std::net::SocketAddr;

/// Most answers to requests to join that wait to be sent. Chosen by hand: with fewer, newcomers of a large job have to ask again; more are a burst of
/// packets.
const MOST_WELCOMES: usize = 64;
/// Most answers to requests of other groups for the time, per interval. Chosen by hand: whoever asks has others to ask; more cost packets.
const MOST_ANSWERS: u32 = 1;
/// Most replies to nodes that have not heard of this node's group, per interval. Chosen by hand: bounds the packets where a whole group asks at once;
/// who gets none asks again.
const MOST_REPLIES: u32 = 16;
/// How often a nearer node that somebody told of is asked, if the first packet is lost. Chosen by hand: with fewer, loss of packets keeps a node from
/// its own group; more are packets to one that may be gone.
const ASK_NEARER: u32 = 20;
/// Most packets with all that is known for one newcomer. Chosen by hand: with fewer, newcomers of large jobs learn the rest by gossip, later; more
/// are a burst that sockets drop.
const MOST_PACKETS: usize = 48;
/// Bytes of records in each of them: with header, seal, UDP and IPv6 less than the 1,500 bytes of an Ethernet frame, so packets are not fragmented.
const PACKET: usize = 1_200;

impl Node {
    /// Takes a packet in that arrived now.
    pub fn receive(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) {
        self.receive_stamped(now, 0, now, from, bytes);
    }

    /// Takes a packet in that has waited for so long, and arrived at `stamp` by the clock that is compared with others, such as the kernel's receive timestamp. That clock may be another one than that of
    /// `now`: one that stands still does not keep the node from gossip.
    pub fn receive_stamped(&mut self, now: Time, waited: Time, stamp: Time, from: SocketAddr, bytes: &[u8]) {
        self.notice(now);
        self.arrival = None;
        if self.leaving {
            return;
        }
        // The key is copied so that the message can be read while the node changes.
        let key = self.config.key;
        let (header, content) = match open(&key, bytes) {
            Ok(opened) => opened,
            Err(Refused::Forged) => return self.counters.forged += 1,
            Err(Refused::Malformed) => return self.counters.malformed += 1,
        };
        let sender = Contact { id: header.from, address: from, incarnation: header.incarnation };
        if header.from == self.config.id || header.from == ANYBODY {
            return self.counters.misdirected += 1;
        }
        if header.kind == PacketKind::Join {
            if self.outgoing.len() < MOST_WELCOMES {
                self.outgoing.push_back(Outgoing::Welcome(sender));
            }
            self.counted(bytes);
            return;
        }
        if header.to != self.config.id || header.addressee != self.config.incarnation as u32 {
            return self.counters.misdirected += 1;
        }
        if !self.peers.admit(header.from, header.incarnation, header.sequence) {
            return self.counters.replayed += 1;
        }
        let Ok(message) = PacketContent::decode(content, header.heartbeat) else { return self.counters.malformed += 1 };
        self.counted(bytes);
        let PacketHeader { from: peer, incarnation, sequence, .. } = header;
        self.arrival = Some(Arrival { peer, incarnation, sequence });
        let restarted = self.learn(sender, false);
        if self.common(sender.id).is_some_and(|(level, _)| level > 0) {
            self.peers.heard(sender.id);
        }
        self.greet(&header, sender, &message);
        self.heard_directly(&header, restarted, now);
        let common = self.common(header.from).map_or(usize::MAX, |(level, _)| level);
        for section in &message.sections {
            let level = usize::from(section.level).wrapping_sub(1);
            if level < common {
                continue;
            }
            let Some(layer) = self.layers.get_mut(level) else { continue };
            let mut changes = Vec::new();
            layer.merge(section, now, now.saturating_sub(waited), &mut changes);
            if level == 0 && layer.join_suspicions(section, now, &mut changes) {
                self.hurry(now);
            }
            self.apply(level, changes, now);
        }
        for record in &message.records {
            self.take_record(record, common, now);
        }
        if message.asks {
            self.reply(common, sender, now);
        }
        if message.probe && self.answers_to(common) {
            self.outgoing.push_back(Outgoing::Answer(sender, header.time, stamp));
        }
        if let Some((t1, t2)) = message.echo.filter(|&(t1, _)| self.peers.answered(header.from, t1)) {
            self.round_trips.push(RoundTrip { peer: header.from, t1, t2, t3: header.time, t4: stamp });
        }
    }

    /// Gossip for a node that has not heard of this node's group for long, with a heartbeat that it cannot know yet.
    fn reply(&mut self, common: usize, sender: Contact, now: Time) {
        if let Some(layer) = self.layers.get_mut(common).filter(|_| common > 0 && self.replies < MOST_REPLIES) {
            layer.beat(now, 0);
            self.replies += 1;
            self.outgoing.push_back(Outgoing::Gossip(sender));
        }
    }

    /// Whether a request for the time is answered: all of the group's, and few of others, which may have chosen this node more often than others of its group.
    fn answers_to(&mut self, common: usize) -> bool {
        self.answers += u32::from(common > 0);
        common == 0 || self.answers <= MOST_ANSWERS
    }

    fn counted(&mut self, bytes: &[u8]) {
        self.counters.received += 1;
        self.counters.received_bytes += bytes.len() as u64;
    }

    /// Remembers how to reach a node. Whether it was started anew since it was known.
    fn learn(&mut self, contact: Contact, keep: bool) -> bool {
        let group = match self.common(contact.id) {
            Some((0, _)) => None,
            Some((level, index)) => Some((self.layers[level].level, index)),
            None => return false,
        };
        contact.id != self.config.id && self.peers.learn(contact, group, keep, &mut self.random)
    }

    /// Newcomers get everything; a newcomer itself goes on to ever nearer nodes until it is in its group.
    fn greet(&mut self, header: &PacketHeader, sender: Contact, message: &PacketContent) {
        if header.kind == PacketKind::Welcome {
            self.outgoing.push_back(Outgoing::Hello(sender));
            self.closest = self.closest.min(self.common(sender.id).map_or(usize::MAX, |(level, _)| level));
        }
        if header.kind == PacketKind::Gossip {
            self.joining.retain(|&(address, _)| address != sender.address);
        }
        let mut nearest = self.closest;
        let own = self.config.id;
        for &contact in message.contacts.iter().filter(|contact| contact.id != own) {
            self.learn(contact, false);
            let level = self.common(contact.id).map_or(usize::MAX, |(level, _)| level);
            if level < self.closest {
                self.outgoing.push_back(Outgoing::Hello(contact));
                self.ask(contact.address, ASK_NEARER);
                nearest = nearest.min(level);
            }
        }
        self.closest = nearest;
        if message.hello {
            let near = self.common(sender.id).is_some_and(|(level, _)| level == 0);
            let mut slices = self.records.slices(PACKET, !near);
            if slices.is_empty() {
                // Until it gets something, it asks again.
                slices.push(Vec::new());
            }
            let packets = slices.into_iter().take(MOST_PACKETS);
            self.outgoing.extend(packets.map(|keys| Outgoing::Everything(sender, keys)));
        }
    }

    /// A packet from a node itself is the proof that it lives, and so does its group.
    fn heard_directly(&mut self, header: &PacketHeader, restarted: bool, now: Time) {
        let Some((level, index)) = self.common(header.from) else { return };
        let layer = &mut self.layers[level];
        let number = layer.base + index as u32;
        if layer.get(index).is_none() && level == 0 && layer.add(index, header.heartbeat, now) {
            return self.apply(level, vec![Change::New(index)], now);
        }
        let Some(state) = layer.get(index).map(|entry| entry.liveness) else { return };
        let told = self.records.version(status::key(layer.level, number)).map_or(0, status::heartbeat);
        let back = match state {
            Liveness::Dead => level > 0 || restarted || header.heartbeat > told,
            Liveness::Left => restarted,
            Liveness::Alive | Liveness::Suspect => false,
        };
        if back {
            layer.set(index, Liveness::Alive, now);
            layer.raise(index, if level == 0 { header.heartbeat.max(told + 1) } else { told + 1 });
            self.publish(level, index, Liveness::Alive);
        }
        if level == 0 && (back || restarted) {
            self.tell(now, EventKind::Rejoined(header.from));
        } else if back {
            self.tell(now, EventKind::GroupBack(level as u8 + 1, number));
        }
    }

    fn take_record(&mut self, record: &GossipRecord, common: usize, now: Time) {
        let RecordKey { layer, id, key } = record.key;
        if layer == 0 && id == self.config.id.0 {
            return self.keep_own(record);
        }
        // Nobody can gossip with a member of the group before its address is known.
        let near = self.layers[0].local(id).is_some();
        if !self.records.take_as(record, layer > 0 || near && key == identity::KEY) {
            return;
        }
        if layer > 0 {
            if common > 0 {
                self.news.push((record.key, common.min(self.layers.len())));
            }
            if let Some(liveness) = status::decode(record.bytes) {
                self.take_status(usize::from(layer) - 1, id, status::heartbeat(record.version), liveness, now);
            }
            return;
        }
        let id = NodeId(id);
        let mut restarted = false;
        if key == identity::KEY {
            let Ok((contact, _)) = identity::decode(id, record.bytes) else { return };
            restarted = self.learn(contact, true);
        }
        if near {
            return;
        }
        let known = self.distant.contains_key(&id);
        let distant = self.distant.entry(id).or_insert(Distant { liveness: Liveness::Alive, since: now, heard: now });
        distant.heard = now;
        if restarted {
            (distant.liveness, distant.since) = (Liveness::Alive, now);
            self.tell(now, EventKind::Rejoined(id));
        } else if !known {
            self.tell(now, EventKind::Joined(id));
        }
    }

    /// What this node said before it was started anew comes back from others: it is replaced.
    fn keep_own(&mut self, record: &GossipRecord) {
        let mine = self.records.get(record.key).map(|mine| (mine.version, mine.everywhere, mine.bytes.to_vec()));
        let (version, everywhere, bytes) = mine.unwrap_or((0, record.everywhere, Vec::new()));
        if record.version > version || (record.version == version && record.bytes != bytes) {
            let version = record.version.saturating_add(1);
            self.records.take(&GossipRecord { key: record.key, everywhere, version, bytes: &bytes });
        }
    }

    /// Another node tells that an entry is dead, has left or is back.
    fn take_status(&mut self, level: usize, number: u32, heartbeat: u64, liveness: Liveness, now: Time) {
        let local = self.layers.get(level).and_then(|layer| layer.local_entry(number));
        let (Some(index), Some(layer)) = (local, self.layers.get_mut(level)) else {
            return self.take_distant_status(level, number, liveness, now);
        };
        if index == layer.own {
            if liveness != Liveness::Alive {
                layer.raise(index, heartbeat + 1);
                self.publish(level, index, Liveness::Alive);
            }
            return;
        }
        let Some((state, known)) = layer.get(index).map(|entry| (entry.liveness, entry.heartbeat)) else {
            if layer.add(index, heartbeat, now) {
                layer.set(index, liveness, now);
            }
            return;
        };
        let believed = match liveness {
            Liveness::Dead => state == Liveness::Suspect || (state == Liveness::Alive && heartbeat >= known),
            Liveness::Alive => matches!(state, Liveness::Dead | Liveness::Left),
            Liveness::Left | Liveness::Suspect => state != Liveness::Left,
        };
        if !believed || !layer.set(index, liveness, now) {
            return;
        }
        layer.raise(index, heartbeat);
        let kind = match (level, liveness) {
            (_, Liveness::Dead) => died(level, number),
            (0, Liveness::Left) => EventKind::Left(NodeId(number)),
            (0, _) => EventKind::Rejoined(NodeId(number)),
            _ => EventKind::GroupBack(level as u8 + 1, number),
        };
        self.tell(now, kind);
    }

    fn take_distant_status(&mut self, level: usize, number: u32, liveness: Liveness, now: Time) {
        let id = NodeId(number);
        if level > 0 {
            let back = EventKind::GroupBack(level as u8 + 1, number);
            return self.tell(now, if liveness == Liveness::Dead { died(level, number) } else { back });
        }
        let distant = self.distant.entry(id).or_insert(Distant { liveness: Liveness::Alive, since: now, heard: now });
        if distant.liveness == liveness {
            return;
        }
        (distant.liveness, distant.since) = (liveness, now);
        self.tell(
            now,
            match liveness {
                Liveness::Dead => EventKind::Dead(id),
                Liveness::Left => EventKind::Left(id),
                Liveness::Alive | Liveness::Suspect => EventKind::Rejoined(id),
            },
        );
    }
}
