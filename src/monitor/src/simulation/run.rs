//! The loop over events, and what is measured on the way.

use super::network::{Network, exponential};
use super::outcome::{Detection, Outcome};
use super::{Fault, GossipScenario, HEADERS, LOOK, START, address, number};
use crate::gossip::{EventKind, Liveness, Node, NodeId, Packet, Time};
use crate::random::Random;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// Packets that the socket of a node that stands still holds. Chosen by hand: about what a default buffer of Linux holds; more make a node that goes
/// on again answer for longer to what is old.
const SOCKET: usize = 256;
/// Key of the simulated sensors' datum.
const SENSORS: u16 = 1;
/// Key of the simulated aggregates.
const AGGREGATES: u16 = 2;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GossipEvent {
    Poll(u32),
    Deliver(u32, u32, Vec<u8>),
    Resume(u32),
    Gather(u32),
    RandomPause(u32),
    Sensors(u32),
    Aggregates(u32),
    Fault(usize),
    Look,
}

/// A node of the simulated machine.
struct SimulatedNode {
    node: Option<Node>,
    /// When it is polled next, so that older events of the heap are passed over.
    next: Time,
    stopped_until: Time,
    /// Until when its own or its network's standing still explains silence.
    excused_until: Time,
    /// What has come and was not looked at yet, and when.
    socket: Vec<(u32, Vec<u8>, Time)>,
    /// When it was last looked at what has come, and whether that is to happen again.
    looked: Time,
    gathers: bool,
    sent_before: (u64, u64),
}

/// A death that others have to notice.
struct Death {
    at: Time,
    knowing: HashSet<u32>,
    detection: Detection,
}

pub(super) struct GossipRun<'a> {
    scenario: &'a GossipScenario,
    network: Network,
    random: Random,
    heap: BinaryHeap<Reverse<(Time, u64, GossipEvent)>>,
    order: u64,
    places: Vec<SimulatedNode>,
    deaths: HashMap<u32, Death>,
    outcome: Outcome,
    counting: Time,
    end: Time,
}

impl<'a> GossipRun<'a> {
    pub(super) fn new(scenario: &'a GossipScenario) -> Self {
        let counting = START + scenario.settle;
        let mut run = GossipRun {
            scenario,
            network: Network::new(scenario),
            random: Random::new(scenario.seed),
            heap: BinaryHeap::new(),
            order: 0,
            places: Vec::new(),
            deaths: HashMap::new(),
            outcome: Outcome::default(),
            counting,
            end: counting + scenario.duration,
        };
        for id in 0..scenario.nodes {
            run.places.push(SimulatedNode {
                node: None,
                next: 0,
                stopped_until: 0,
                excused_until: 0,
                socket: Vec::new(),
                looked: 0,
                gathers: false,
                sent_before: (0, 0),
            });
            run.start(id, START);
            if let Some((period, _)) = scenario.sensors {
                let first = START + run.random.below(period);
                run.push(first, GossipEvent::Sensors(id));
            }
            if let Some((period, _)) = scenario.aggregates {
                let first = START + run.random.below(period);
                run.push(first, GossipEvent::Aggregates(id));
            }
            if let Some(pauses) = scenario.pauses {
                let first = counting + exponential(&mut run.random, pauses.every);
                run.push(first, GossipEvent::RandomPause(id));
            }
        }
        for (place, (at, _)) in scenario.faults.iter().enumerate() {
            run.push(counting + at, GossipEvent::Fault(place));
        }
        run.push(counting, GossipEvent::Look);
        run
    }

    fn push(&mut self, at: Time, kind: GossipEvent) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, kind)));
    }

    fn start(&mut self, id: u32, now: Time) {
        let config = self.scenario.node_config(id, now);
        let mut node = Node::new(config, now).unwrap_or_else(|error| panic!("{error}"));
        node.join(address(self.scenario.door(id)));
        self.places[id as usize].node = Some(node);
        self.places[id as usize].sent_before = (0, 0);
        self.schedule(id, now);
    }

    fn schedule(&mut self, id: u32, now: Time) {
        let place = &mut self.places[id as usize];
        let Some(node) = &place.node else { return };
        let next = node.next_deadline().max(now);
        if place.next <= now || next < place.next {
            place.next = next;
            self.push(next, GossipEvent::Poll(id));
        }
    }

    pub(super) fn finish(mut self) -> Outcome {
        while let Some(Reverse((now, _, kind))) = self.heap.pop() {
            if now > self.end {
                break;
            }
            match kind {
                GossipEvent::Poll(id) if self.places[id as usize].next == now => self.poll(id, now),
                GossipEvent::Poll(_) => {}
                GossipEvent::Deliver(to, from, bytes) => self.deliver(to, from, bytes, now),
                GossipEvent::Resume(id) => self.resume(id, now),
                GossipEvent::Gather(id) => self.gather(id, now),
                GossipEvent::RandomPause(id) => self.random_pause(id, now),
                GossipEvent::Sensors(id) => self.put(id, SENSORS, now),
                GossipEvent::Aggregates(id) => self.put(id, AGGREGATES, now),
                GossipEvent::Fault(place) => self.fault(&self.scenario.faults[place].1, now),
                GossipEvent::Look => {
                    self.look(now);
                    self.push(now + LOOK, GossipEvent::Look);
                }
            }
        }
        self.look(self.end);
        self.sum_up();
        self.outcome
    }

    fn poll(&mut self, id: u32, now: Time) {
        let place = &mut self.places[id as usize];
        if now < place.stopped_until {
            place.next = 0;
            return;
        }
        self.take_in(id, now);
        let Some(node) = &mut self.places[id as usize].node else { return };
        for Packet { to, bytes, .. } in node.poll(now) {
            let Some(to) = number(to).filter(|&to| to < self.scenario.nodes) else { continue };
            if let Some(arrival) = self.network.arrival(now, id, to) {
                self.order += 1;
                self.heap.push(Reverse((arrival, self.order, GossipEvent::Deliver(to, id, bytes))));
            }
        }
        self.places[id as usize].next = 0;
        self.schedule(id, now);
    }

    fn deliver(&mut self, to: u32, from: u32, bytes: Vec<u8>, now: Time) {
        let place = &mut self.places[to as usize];
        let Some(node) = &place.node else { return };
        let stands = now < place.stopped_until;
        let wait = node.may_wait(now);
        if !stands || place.socket.len() < SOCKET {
            place.socket.push((from, bytes, now));
        }
        if stands {
            return;
        }
        if wait == 0 {
            self.take_in(to, now);
            self.schedule(to, now);
        } else if !place.gathers {
            place.gathers = true;
            // Who gathers looks at fixed times, whether anything has come or not.
            let next = now + wait - now.saturating_sub(place.looked) % wait;
            self.push(next, GossipEvent::Gather(to));
        }
    }

    fn gather(&mut self, id: u32, now: Time) {
        let place = &mut self.places[id as usize];
        place.gathers = false;
        if now >= place.stopped_until {
            self.take_in(id, now);
            self.schedule(id, now);
        }
    }

    /// A node takes in what has come, in that order.
    fn take_in(&mut self, id: u32, now: Time) {
        let place = &mut self.places[id as usize];
        place.looked = now;
        let come = std::mem::take(&mut place.socket);
        let Some(node) = &mut place.node else { return };
        self.outcome.delivered += come.len() as u64;
        for (from, bytes, came) in come {
            node.receive_stamped(now, now - came, came, address(from), &bytes);
        }
    }

    fn resume(&mut self, id: u32, now: Time) {
        if now < self.places[id as usize].stopped_until {
            return;
        }
        self.take_in(id, now);
        self.places[id as usize].next = 0;
        self.schedule(id, now);
    }

    fn pause(&mut self, id: u32, now: Time, time: Time) {
        let place = &mut self.places[id as usize];
        place.stopped_until = place.stopped_until.max(now + time);
        let until = place.stopped_until;
        // A suspicion of a node that stands still is true; so it is for as long as word of its return takes.
        place.excused_until = place.excused_until.max(until + self.scenario.config.cleanup);
        self.push(until, GossipEvent::Resume(id));
    }

    fn random_pause(&mut self, id: u32, now: Time) {
        let Some(pauses) = self.scenario.pauses else { return };
        let time = self.random.below(pauses.longest);
        self.pause(id, now, time);
        let next = now + time + exponential(&mut self.random, pauses.every);
        self.push(next, GossipEvent::RandomPause(id));
    }

    /// A datum whose first bytes are the time, so that its age can be told.
    fn put(&mut self, id: u32, key: u16, now: Time) {
        let setting = if key == SENSORS { self.scenario.sensors } else { self.scenario.aggregates };
        let Some((period, length)) = setting else { return };
        let random = self.random.next();
        if let Some(node) = &mut self.places[id as usize].node {
            let mut bytes = now.to_le_bytes().to_vec();
            bytes.extend(random.to_le_bytes().iter().cycle().take(length.saturating_sub(8)));
            let put = match key {
                SENSORS => node.put(key, &bytes),
                _ if leads(node) => node.put_everywhere(key, &bytes),
                _ => Ok(()),
            };
            debug_assert!(put.is_ok());
        }
        let kind = if key == SENSORS { GossipEvent::Sensors(id) } else { GossipEvent::Aggregates(id) };
        self.push(now + period, kind);
    }

    fn fault(&mut self, fault: &Fault, now: Time) {
        match fault {
            Fault::Kill(nodes) => {
                for node in nodes.clone() {
                    self.places[node as usize].node = None;
                    self.places[node as usize].socket.clear();
                    let detection = Detection { node, first: None, group: None, all: None };
                    self.deaths.insert(node, Death { at: now, knowing: HashSet::new(), detection });
                }
            }
            Fault::Restart(nodes) => {
                for node in nodes.clone() {
                    if let Some(death) = self.deaths.remove(&node) {
                        self.outcome.detections.push(death.detection);
                    }
                    self.start(node, now);
                    self.places[node as usize].excused_until = now + 2 * self.scenario.config.cleanup;
                }
            }
            Fault::Pause(nodes, time) => nodes.clone().for_each(|node| self.pause(node, now, *time)),
            Fault::Cut(nodes, time) => {
                self.network.cut(nodes.clone(), now + time);
                let until = now + time + 3 * self.scenario.config.cleanup;
                self.places.iter_mut().for_each(|place| place.excused_until = place.excused_until.max(until));
            }
        }
    }

    /// Takes events and round trips of all nodes.
    fn look(&mut self, now: Time) {
        let counts = now >= self.counting;
        for viewer in 0..self.places.len() {
            let Some(node) = &mut self.places[viewer].node else { continue };
            if now == self.counting {
                let counters = node.counters();
                self.places[viewer].sent_before = (counters.sent, counters.sent_bytes);
            }
            let Some(node) = &mut self.places[viewer].node else { continue };
            self.outcome.round_trips += node.round_trips().len() as u64;
            let since = self.counting;
            for event in node.events().into_iter().filter(|event| counts && event.at >= since) {
                let gone: Vec<u32> = match event.kind {
                    EventKind::Dead(id) => vec![id.0],
                    EventKind::GroupDead(layer, group) => {
                        self.scenario.existing(self.scenario.config.nodes_of(layer, group)).collect()
                    }
                    EventKind::Suspected(id) => {
                        let place = &self.places[id.0 as usize];
                        let lives = place.node.is_some() && event.at > place.excused_until;
                        self.outcome.false_suspicions += u64::from(lives);
                        continue;
                    }
                    _ => continue,
                };
                for id in gone {
                    match self.deaths.get_mut(&id) {
                        Some(death) => notice(death, viewer as u32, event.at),
                        None => {
                            let excused = event.at <= self.places[id as usize].excused_until;
                            self.outcome.false_deaths += u64::from(!excused);
                        }
                    }
                }
            }
        }
        // Who stands still can be told nothing; whoever asks the agents is not answered by it either.
        let living =
            |id: &u32| self.places[*id as usize].node.is_some() && now >= self.places[*id as usize].stopped_until;
        for (&id, death) in self.deaths.iter_mut().filter(|(_, death)| death.detection.all.is_none()) {
            let mut group = self.scenario.existing(self.scenario.config.group_of(NodeId(id))).filter(living);
            let after = now - death.at;
            if death.detection.first.is_some() && group.all(|id| death.knowing.contains(&id)) {
                death.detection.group.get_or_insert(after);
                if (0..self.scenario.nodes).filter(living).all(|id| death.knowing.contains(&id)) {
                    death.detection.all.get_or_insert(after);
                }
            }
        }
    }

    fn sum_up(&mut self) {
        let seconds = self.scenario.duration as f64 / 1e9;
        let (mut nodes, mut data, mut ages) = (0u64, 0u64, 0.0);
        let living: Vec<bool> = self.places.iter().map(|place| place.node.is_some()).collect();
        for place in &self.places {
            let Some(node) = &place.node else { continue };
            let counters = node.counters();
            let sent = counters.sent - place.sent_before.0;
            let bits = ((counters.sent_bytes - place.sent_before.1 + sent * HEADERS) * 8) as f64 / seconds;
            nodes += 1;
            self.outcome.bits_per_second += bits;
            self.outcome.packets_per_second += sent as f64 / seconds;
            self.outcome.most_bits_per_second = self.outcome.most_bits_per_second.max(bits);
            self.outcome.refused += counters.forged + counters.replayed + counters.misdirected + counters.malformed;
            let mut complete = true;
            let group = self.scenario.existing(self.scenario.config.group_of(node.id()));
            for id in group.filter(|&id| living[id as usize]) {
                complete &= node.member(NodeId(id)).is_some_and(|member| member.liveness == Liveness::Alive);
                let age =
                    node.get(NodeId(id), SENSORS).filter(|_| id != node.id().0).and_then(|bytes| bytes.first_chunk());
                if let Some(bytes) = age {
                    data += 1;
                    ages += (self.end - Time::from_le_bytes(*bytes).min(self.end)) as f64 / 1e9;
                }
            }
            self.outcome.incomplete_at_end += u64::from(!complete);
            let wrong = |member: &crate::gossip::KnownNode| {
                member.liveness == Liveness::Dead && living.get(member.id.0 as usize) == Some(&true)
            };
            self.outcome.wrong_at_end += node.members().filter(wrong).count() as u64;
        }
        self.outcome.bits_per_second /= nodes.max(1) as f64;
        self.outcome.packets_per_second /= nodes.max(1) as f64;
        self.outcome.data_age = if data > 0 { ages / data as f64 } else { 0.0 };
        self.outcome.detections.extend(self.deaths.values().map(|death| death.detection));
        self.outcome.detections.sort_by_key(|detection| detection.node);
    }
}

fn notice(death: &mut Death, viewer: u32, at: Time) {
    if at < death.at {
        return;
    }
    let after = at - death.at;
    death.detection.first = Some(death.detection.first.map_or(after, |first| first.min(after)));
    death.knowing.insert(viewer);
}

/// Whether a node is the lowest living one of its group.
fn leads(node: &Node) -> bool {
    let first = node.config().group_of(node.id()).start;
    (first..node.id().0).all(|id| node.member(NodeId(id)).is_none_or(|member| member.liveness != Liveness::Alive))
}
