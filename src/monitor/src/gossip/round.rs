//! What a node sends: one gossip message per interval, in higher layers some, answers, and all it knows to newcomers.

use super::config::Choice;
use super::layer::Layer;
use super::message::{Contact, PacketContent, RecordKey};
use super::node::Node;
use super::outgoing::Outgoing;
use super::seal::{ANYBODY, PacketHeader, PacketKind, seal};
use super::types::{Liveness, NodeId, Packet, Time};
use crate::random::Random;

/// Every how many rounds one who is dead gets a message all the same, in case it is not. Chosen by hand: more often wastes packets on the dead, less
/// often lets those that are cut off come back later.
const TRY_DEAD: u64 = 10;
/// Every how many rounds a node that knows nobody asks again. Chosen by hand: more often wastes packets on who is not there yet, less often meets
/// others later.
const ASK_AGAIN: u64 = 5;
/// Messages per interval while a member of the group is suspected. Chosen by hand: more cost packets at a bad time, fewer let the living be suspected
/// for longer.
const HURRIED: u64 = 3;
/// Most silent groups of a layer whose nodes are asked at once. Chosen by hand: more are a burst of packets when much is silent at once, fewer find
/// out later.
const MOST_ASKED: usize = 4;
/// To how many a farewell is said. Chosen by hand: with fewer, loss of packets may hide it and the node is taken for dead; those told pass it on.
const FAREWELLS: usize = 5;
/// Most of a layer to whom news are told at once. Chosen by hand: a group of usual size is told completely; more are a burst of packets.
const MOST_TOLD: usize = 64;
/// Most news told at once: one packet holds them.
const MOST_NEWS: usize = 64;
/// Least and most contacts in a message while nodes meet; between them, one for eight groups. At first the nodes of most groups know nobody of most others, so a
/// group that nobody tells of seems to be silent. With the most, a message still fits into a packet.
const CONTACTS_WHILE_MEETING: [usize; 2] = [6, 24];
/// Contacts for a newcomer. Chosen by hand: with fewer, all may be dead or far; more leave less of a packet for records.
const INTRODUCTIONS: usize = 8;

impl Node {
    /// Does what is due, and gives the packets to send now.
    pub fn poll(&mut self, now: Time) -> Vec<Packet> {
        self.prepare(now);
        std::iter::from_fn(|| self.next_packet(now)).collect()
    }

    /// Does what is due: then packets wait to be taken by [`next_packet`](Self::next_packet).
    pub fn prepare(&mut self, now: Time) {
        self.notice(now);
        if now >= self.next_round {
            if self.leaving {
                self.farewell();
            } else {
                self.gossip_round(now);
                self.next_round = (self.next_round + self.config.interval).max(now + self.config.interval / 2);
            }
        } else if now >= self.next_hurry {
            self.hurried_round(now);
        }
        if now >= self.next_clock {
            self.clock_packet(now);
        }
        self.broadcast();
    }

    /// The next packet that waits to be sent; `stamp` is the time for those who compare clocks, by the clock of which [`receive_stamped`](Self::receive_stamped) gets stamps.
    pub fn next_packet(&mut self, stamp: Time) -> Option<Packet> {
        let outgoing = self.outgoing.pop_front()?;
        Some(self.packet(outgoing, stamp))
    }

    /// A member is suspected, here or by others: until all have said whether they suspect it too, messages are more frequent.
    pub(crate) fn hurry(&mut self, now: Time) {
        self.hurry_until = now + self.config.cleanup;
        self.hurry_on(now);
    }

    fn hurry_on(&mut self, now: Time) {
        let next = now + self.config.interval / HURRIED;
        self.next_hurry = if next < self.hurry_until { next } else { Time::MAX };
    }

    /// Gossip lists and suspicions only. Heartbeats do not get more frequent, but who has come to suspect somebody does not wait with its next one.
    fn hurried_round(&mut self, now: Time) {
        self.tick(0, now);
        if self.unsaid {
            self.gossip_round(now);
            self.next_round += self.config.interval;
        } else if let Some(contact) = self.next_in_group().and_then(|id| self.peers.get(id)) {
            self.outgoing.push_back(Outgoing::Suspicions(contact));
        }
        if self.hurried && self.layers[0].others(|state| state == Liveness::Suspect).is_empty() {
            (self.hurried, self.hurry_until) = (false, now);
        }
        self.hurry_on(now);
    }

    fn tick(&mut self, level: usize, now: Time) {
        let mut changes = Vec::new();
        self.layers[level].tick(now, &mut changes);
        self.apply(level, changes, now);
    }

    fn next_in_group(&mut self) -> Option<NodeId> {
        self.turn += 1;
        self.target(self.turn).map(|index| NodeId(self.layers[0].base + index as u32))
    }

    fn farewell(&mut self) {
        (self.next_round, self.next_hurry, self.next_clock) = (Time::MAX, Time::MAX, Time::MAX);
        self.outgoing.clear();
        let own = self.layers[0].own;
        self.publish(0, own, Liveness::Left);
        let mut others = self.layers[0].others(|state| state == Liveness::Alive);
        for _ in 0..FAREWELLS.min(others.len()) {
            let index = others.swap_remove(self.random.below(others.len() as u64) as usize);
            self.gossip_with(NodeId(self.layers[0].base + index as u32));
        }
        if let Some(other) = self.upper_target(1, |state| state == Liveness::Alive) {
            self.gossip_with(other);
        }
    }

    fn gossip_round(&mut self, now: Time) {
        self.round += 1;
        let round = self.round;
        (self.answers, self.replies) = (0, 0);
        (0..self.layers.len()).for_each(|level| self.tick(level, now));
        self.layers[0].beat(now, 0);
        self.unsaid = false;
        if round % ASK_AGAIN == 1 {
            self.outgoing.extend(self.joining.iter().map(|&(address, _)| Outgoing::Join(address)));
            self.joining.retain_mut(|(_, times)| {
                *times = times.saturating_sub(u32::from(*times < u32::MAX));
                *times > 0
            });
        }
        if let Some(id) = self.next_in_group() {
            self.gossip_with(id);
            let followers =
                self.peers.get(id).into_iter().flat_map(|contact| (0..self.config.clock_packets).map(move |_| contact));
            self.outgoing.extend(followers.map(|contact| Outgoing::News(contact, Vec::new())));
        }
        let every = u64::from(self.config.upper_every);
        for level in (1..self.layers.len()).filter(|&level| (round + level as u64).is_multiple_of(every)) {
            self.layers[level].beat(now, 0);
            if let Some(other) = self.upper_target(level, |state| state != Liveness::Dead) {
                self.gossip_with(other);
            }
            self.ask_silent_groups(level, now);
        }
        if round.is_multiple_of(TRY_DEAD) {
            self.try_dead();
        }
    }

    /// An empty packet to the next member of the group, for those who compare the times of packets.
    fn clock_packet(&mut self, now: Time) {
        let (ring, place) = self.living();
        let next = NodeId(self.layers[0].base + ring[(place + 1) % ring.len()] as u32);
        let contact = self.peers.get(next).filter(|_| next != self.config.id);
        self.outgoing.extend(contact.map(|contact| Outgoing::News(contact, Vec::new())));
        // What a caller that stood still has missed is not made up for.
        self.next_clock = (self.next_clock + self.config.clock_every).max(now + self.config.clock_every / 2);
    }

    /// Word of a group may have got lost on its way through other nodes; before it is called dead, its own nodes are asked.
    fn ask_silent_groups(&mut self, level: usize, now: Time) {
        let layer = self.layers[level].level;
        let mut groups = self.layers[level].to_ask(now);
        groups.retain(|&index| self.peers.knows_group(layer, index));
        for _ in 0..MOST_ASKED.min(groups.len()) {
            let index = groups.swap_remove(self.random.below(groups.len() as u64) as usize);
            let asked = self.peers.of_group(layer, index, &mut self.random).and_then(|id| self.peers.get(id));
            self.outgoing.extend(asked.map(Outgoing::Question));
        }
    }

    /// Tells deaths and returns at once, down the layers: those found here to two nodes of each other group of each layer; those told
    /// by a node that is near in some layer only, to two nodes of each other group of the layers below; both to the own group. Gossip
    /// carries them to whom that does not reach.
    fn broadcast(&mut self) {
        let mut news = std::mem::take(&mut self.news);
        news.truncate(MOST_NEWS);
        if news.is_empty() || self.leaving {
            return;
        }
        let near = self.layers[0].others(|state| state == Liveness::Alive);
        let mut targets: Vec<NodeId> = near.iter().map(|&index| NodeId(self.layers[0].base + index as u32)).collect();
        let everything: Vec<RecordKey> = news.iter().map(|&(key, _)| key).collect();
        targets.truncate(MOST_TOLD);
        let group: Vec<Contact> = targets.into_iter().filter_map(|id| self.peers.get(id)).collect();
        self.outgoing.extend(group.into_iter().map(|contact| Outgoing::News(contact, everything.clone())));
        for (level, layer) in self.layers.iter().enumerate().skip(1) {
            let told: Vec<RecordKey> = news.iter().filter(|&&(_, from)| from > level).map(|&(key, _)| key).collect();
            if told.is_empty() {
                continue;
            }
            let mut groups = layer.others(|state| state == Liveness::Alive);
            if groups.len() > MOST_TOLD {
                // Each that tells chooses others.
                let first = self.random.below(groups.len() as u64) as usize;
                groups.rotate_left(first);
                groups.truncate(MOST_TOLD);
            }
            for index in groups {
                // Two, for one packet may be lost.
                let others = [(); 2].map(|()| self.peers.of_group(layer.level, index, &mut self.random));
                let second = others[1].filter(|_| others[0] != others[1]);
                for contact in others[0].into_iter().chain(second).filter_map(|id| self.peers.get(id)) {
                    self.outgoing.push_back(Outgoing::News(contact, told.clone()));
                }
            }
        }
    }

    /// Somebody who is dead may be behind a network that was cut.
    fn try_dead(&mut self) {
        let dead = self.layers[0].others(|state| state == Liveness::Dead);
        if let Some(&index) = self.random.choose(&dead) {
            self.gossip_with(NodeId(self.layers[0].base + index as u32));
        }
        for level in 1..self.layers.len() {
            if let Some(other) = self.upper_target(level, |state| state == Liveness::Dead) {
                self.gossip_with(other);
            }
        }
    }

    /// Whom to gossip with in the group, by local index.
    fn target(&mut self, turn: u64) -> Option<usize> {
        let layer = &self.layers[0];
        // Of some members only the heartbeat has come so far, not the address.
        let known = |index: &usize| self.peers.knows(NodeId(layer.base + *index as u32));
        let at_random = self.config.choice == Choice::Random || turn.is_multiple_of(4);
        if at_random {
            let living = layer.others(Liveness::is_there);
            let living: Vec<usize> = living.into_iter().filter(known).collect();
            return self.random.choose(&living).copied();
        }
        let (ring, place) = self.living();
        let steps = u64::from(ring.len().next_power_of_two().trailing_zeros()).max(1);
        let turn = turn - turn / 4;
        let target = ring[(place + (1usize << (turn % steps))) % ring.len()];
        (target != layer.own).then_some(target)
    }

    /// The living members of the group that can be reached, this node among them, by local index; and its place.
    fn living(&self) -> (Vec<usize>, usize) {
        let layer = &self.layers[0];
        let mut ring = layer.others(|state| state == Liveness::Alive);
        ring.retain(|&index| self.peers.knows(NodeId(layer.base + index as u32)));
        let place = ring.partition_point(|&index| index < layer.own);
        ring.insert(place, layer.own);
        (ring, place)
    }

    /// A node of another group of a higher layer.
    fn upper_target(&mut self, level: usize, wanted: impl Fn(Liveness) -> bool) -> Option<NodeId> {
        let layer = self.layers.get(level)?;
        let mut groups = layer.others(wanted);
        let level = layer.level;
        // Of some groups only the heartbeat has come so far. Whoever still knows nobody of most groups must not be silent for it.
        groups.retain(|&index| self.peers.knows_group(level, index));
        let &index = self.random.choose(&groups)?;
        self.peers.of_group(level, index, &mut self.random)
    }

    fn gossip_with(&mut self, id: NodeId) {
        if let Some(contact) = self.peers.get(id).filter(|_| id != self.config.id) {
            self.outgoing.push_back(Outgoing::Gossip(contact));
        }
    }

    /// The lowest layer in whose group both this node and another are, and the other's local index there.
    pub(crate) fn common(&self, id: NodeId) -> Option<(usize, usize)> {
        self.layers.iter().enumerate().find_map(|(level, layer)| Some((level, layer.local(id.0)?)))
    }

    fn packet(&mut self, outgoing: Outgoing, stamp: Time) -> Packet {
        let (kind, to) = match outgoing {
            Outgoing::Join(address) => (PacketKind::Join, Contact { id: ANYBODY, address, incarnation: 0 }),
            Outgoing::Welcome(contact) => (PacketKind::Welcome, contact),
            Outgoing::Hello(contact)
            | Outgoing::Gossip(contact)
            | Outgoing::Question(contact)
            | Outgoing::Suspicions(contact)
            | Outgoing::Everything(contact, _)
            | Outgoing::News(contact, _)
            | Outgoing::Answer(contact, ..) => (PacketKind::Gossip, contact),
        };
        self.sequence += 1;
        let header = PacketHeader {
            kind,
            from: self.config.id,
            to: to.id,
            addressee: to.incarnation as u32,
            incarnation: self.config.incarnation,
            sequence: self.sequence,
            time: stamp,
            heartbeat: self.heartbeat(),
        };
        let mut keys = Vec::new();
        let mut message = PacketContent::default();
        match outgoing {
            Outgoing::Join(_) => {}
            Outgoing::Welcome(contact) => message.contacts = self.introductions(contact.id),
            Outgoing::Hello(contact) => {
                (message, keys) = self.gossip(contact, stamp);
                message.hello = true;
            }
            Outgoing::Gossip(contact) => (message, keys) = self.gossip(contact, stamp),
            Outgoing::Question(contact) => {
                (message, keys) = self.gossip(contact, stamp);
                message.asks = true;
            }
            Outgoing::Suspicions(_) => message.sections = vec![self.layers[0].section()],
            Outgoing::Everything(contact, records) => {
                message.contacts = self.introductions(contact.id);
                keys = records;
            }
            Outgoing::News(_, records) => keys = records,
            Outgoing::Answer(_, t1, t2) => message.echo = Some((t1, t2)),
        }
        message.records = keys.iter().filter_map(|&key| self.records.get(key)).collect();
        let mut bytes = Vec::with_capacity(512);
        header.encode(&mut bytes);
        message.encode(header.heartbeat, &mut bytes);
        seal(&self.config.key, &mut bytes);
        self.counters.sent += 1;
        self.counters.sent_bytes += bytes.len() as u64;
        Packet { to: to.address, bytes, sequence: header.sequence }
    }

    /// A gossip message for that node, and the keys of the records in it.
    fn gossip(&mut self, to: Contact, stamp: Time) -> (PacketContent<'static>, Vec<RecordKey>) {
        let level = self.common(to.id).map_or(self.layers.len(), |(level, _)| level);
        // At random, for the targets of every second or third round may never be some of the group.
        let upper = level > 0 || self.random.below(u64::from(self.config.upper_every)) == 0;
        let layers = self.layers.iter().skip(level).filter(|layer| layer.level == 1 || upper);
        let mut message =
            PacketContent { sections: layers.map(|layer| layer.section()).collect(), ..PacketContent::default() };
        let keys = self.records.pick(self.config.budget, level > 0);
        if !self.config.directory && self.layers.len() > 1 {
            let mut groups = Vec::new();
            for layer in self.layers.iter().skip(level.max(1)) {
                groups.extend(
                    layer.others(|state| state != Liveness::Left).into_iter().map(|index| (layer.level, index)),
                );
            }
            groups.retain(|&(layer, index)| self.peers.knows_group(layer, index));
            let meeting = self.layers[1..].iter().any(|layer| layer.meets(self.last_call));
            let [least, most] = CONTACTS_WHILE_MEETING;
            for _ in 0..if meeting { (groups.len() / 8).clamp(least, most) } else { 1 } {
                // Of nodes that send, all of a group are equally many; of those that others tell of, those that many know would get ever more.
                let heard = if meeting { None } else { self.peers.sender(&mut self.random) };
                let contact = heard.or_else(|| self.peers.any(&groups, &mut self.random));
                message.contacts.extend(contact.filter(|contact| !message.contacts.contains(contact)));
            }
        }
        if self.asks_for_times() {
            message.probe = true;
            self.peers.probed(to.id, stamp);
        }
        (message, keys)
    }

    /// Whether a message asks for an answer with times: one in so many, in no pattern. If it were every so many, targets that take turns, packets that follow messages and answers could fall into a rhythm in
    /// which some are never asked.
    fn asks_for_times(&self) -> bool {
        let probes = u64::from(self.config.probe_every);
        probes > 0 && Random::new(self.sequence ^ self.config.seed).below(probes) == 0
    }

    /// Those this node knows who are nearest to a newcomer.
    fn introductions(&self, newcomer: NodeId) -> Vec<Contact> {
        let distance = |id: NodeId| {
            let group = |layer: &Layer, id: NodeId| layer.shape.group(layer.shape.entry(id.0));
            self.layers.iter().position(|layer| group(layer, id) == group(layer, newcomer))
        };
        let mut contacts: Vec<Contact> = self.peers.contacts().collect();
        contacts.retain(|contact| contact.id != newcomer && contact.id != self.config.id);
        contacts.sort_by_key(|contact| (distance(contact.id).unwrap_or(usize::MAX), contact.id));
        contacts.truncate(INTRODUCTIONS);
        contacts
    }
}
