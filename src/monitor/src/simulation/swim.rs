//! SWIM (Das, Gupta, Motivala 2002) in the same simulated network, for comparison: a model of its messages and times, no implementation that
//! could run elsewhere.
//!
//! Once per period a node pings the next member of a shuffled list; without an answer within a third of the period it asks three others to ping
//! it; without an answer by the end of the period the member is suspected, and dead if it does not protest in time. Who is suspected, lives or
//! is dead travels on pings and answers, the least told first. All nodes know each other from the start.

use super::network::{Network, exponential};
use super::outcome::{Detection, Outcome};
use super::{Fault, GossipScenario, HEADERS};
use crate::gossip::Time;
use crate::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Members that are asked to ping for another one.
const HELPERS: usize = 3;
/// Bytes of a packet without news: the same header and seal as in `gossip`.
const PACKET: u64 = 52;
/// Bytes of one piece of news: member, state, incarnation.
const NEWS: u64 = 6;
/// Most news on one packet. Chosen by hand: more make packets larger, fewer make news take longer; few, as SWIM adds them to packets that are sent
/// anyway.
const MOST_NEWS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SwimState {
    Alive,
    Suspect,
    Dead,
}

/// State of a member: of two pieces of news the later incarnation counts, of one incarnation the worse. Death is final.
type News = (u32, u32, SwimState);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SwimMessage {
    /// Who asks (a helper is asked by another node), and its period.
    Ping(Option<u32>, u64),
    /// Who answers for whom.
    Answer(u32, Option<u32>, u64),
    Help(u32, u64),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SwimEvent {
    Deliver(u32, u32, SwimMessage, Vec<News>),
    Period(u32),
    AskHelp(u32, u64),
    Expire(u32, u32, u32),
    Pause(u32),
    Fault(usize),
}

struct SwimNode {
    lives: bool,
    stopped_until: Time,
    excused_until: Time,
    view: Vec<(u32, SwimState)>,
    order: Vec<u32>,
    period: u64,
    pinged: Option<u32>,
    answered: bool,
    queue: Vec<(u32, News)>,
    incarnation: u32,
    sent: u64,
    sent_bytes: u64,
}

struct SwimRun<'a> {
    scenario: &'a GossipScenario,
    period: Time,
    limit: u32,
    random: Random,
    network: Network,
    heap: BinaryHeap<Reverse<(Time, u64, SwimEvent)>>,
    count: u64,
    members: Vec<SwimNode>,
    deaths: Vec<(Time, Detection, Vec<bool>)>,
    outcome: Outcome,
}

/// Runs a scenario with SWIM in place of gossip: its nodes, network, pauses, kills. `period` is its protocol period.
pub fn swim(scenario: &GossipScenario, period: Time) -> Outcome {
    let nodes = scenario.nodes;
    let member = || SwimNode {
        lives: true,
        stopped_until: 0,
        excused_until: 0,
        view: vec![(0, SwimState::Alive); nodes as usize],
        order: Vec::new(),
        period: 0,
        pinged: None,
        answered: true,
        queue: Vec::new(),
        incarnation: 0,
        sent: 0,
        sent_bytes: 0,
    };
    let mut run = SwimRun {
        scenario,
        period,
        // Both the number of times that news are told and the periods of suspicion, as in the publication.
        limit: 3 * (nodes + 1).ilog2().max(1),
        random: Random::new(scenario.seed),
        network: Network::new(scenario),
        heap: BinaryHeap::new(),
        count: 0,
        members: (0..nodes).map(|_| member()).collect(),
        deaths: Vec::new(),
        outcome: Outcome::default(),
    };
    for id in 0..nodes {
        let first = run.random.below(period);
        run.push(first, SwimEvent::Period(id));
        if let Some(pauses) = scenario.pauses {
            let first = exponential(&mut run.random, pauses.every);
            run.push(first, SwimEvent::Pause(id));
        }
    }
    for (place, (at, _)) in scenario.faults.iter().enumerate() {
        run.push(*at, SwimEvent::Fault(place));
    }
    run.finish()
}

impl SwimRun<'_> {
    fn push(&mut self, at: Time, kind: SwimEvent) {
        self.count += 1;
        self.heap.push(Reverse((at, self.count, kind)));
    }

    fn finish(mut self) -> Outcome {
        while let Some(Reverse((now, _, kind))) = self.heap.pop() {
            if now > self.scenario.duration {
                break;
            }
            self.happen(now, kind);
        }
        let seconds = self.scenario.duration as f64 / 1e9;
        let living: Vec<&SwimNode> = self.members.iter().filter(|member| member.lives).collect();
        let count = living.len().max(1) as f64;
        let bits = |member: &SwimNode| ((member.sent_bytes + member.sent * HEADERS) * 8) as f64 / seconds;
        self.outcome.bits_per_second = living.iter().map(|member| bits(member)).sum::<f64>() / count;
        self.outcome.most_bits_per_second = living.iter().map(|member| bits(member)).fold(0.0, f64::max);
        self.outcome.packets_per_second = living.iter().map(|member| member.sent).sum::<u64>() as f64 / seconds / count;
        let wrong = |member: &&SwimNode| {
            let dead = member.view.iter().zip(&self.members).filter(|(view, of)| view.1 == SwimState::Dead && of.lives);
            dead.count() as u64
        };
        self.outcome.wrong_at_end = living.iter().map(wrong).sum();
        for (_, mut detection, knowing) in self.deaths {
            if !self.members.iter().zip(&knowing).all(|(member, knows)| !member.lives || *knows) {
                detection.all = None;
            }
            detection.group = detection.all;
            self.outcome.detections.push(detection);
        }
        self.outcome
    }

    fn happen(&mut self, now: Time, kind: SwimEvent) {
        // What happens to one that stands still happens when it goes on.
        let whom = match kind {
            SwimEvent::Deliver(to, ..)
            | SwimEvent::Period(to)
            | SwimEvent::AskHelp(to, _)
            | SwimEvent::Expire(to, ..) => Some(to),
            SwimEvent::Pause(_) | SwimEvent::Fault(_) => None,
        };
        if let Some(member) = whom.map(|id| &self.members[id as usize]) {
            if !member.lives {
                return;
            }
            if member.stopped_until > now {
                let later = member.stopped_until;
                return self.push(later, kind);
            }
        }
        match kind {
            SwimEvent::Period(id) => self.start_period(id, now),
            SwimEvent::AskHelp(id, period) => self.ask_help(id, period, now),
            SwimEvent::Deliver(to, from, message, news) => self.deliver(to, from, message, news, now),
            SwimEvent::Expire(id, suspect, incarnation) => {
                if self.members[id as usize].view[suspect as usize] == (incarnation, SwimState::Suspect) {
                    self.learn(id, (suspect, incarnation, SwimState::Dead), now);
                }
            }
            SwimEvent::Pause(id) => {
                let Some(pauses) = self.scenario.pauses else { return };
                let time = self.random.below(pauses.longest);
                let member = &mut self.members[id as usize];
                member.stopped_until = now + time;
                member.excused_until = now + time + self.period;
                let next = now + time + exponential(&mut self.random, pauses.every);
                self.push(next, SwimEvent::Pause(id));
            }
            SwimEvent::Fault(place) => {
                if let Fault::Kill(nodes) = &self.scenario.faults[place].1 {
                    for node in nodes.clone() {
                        self.members[node as usize].lives = false;
                        let detection = Detection { node, first: None, group: None, all: None };
                        self.deaths.push((now, detection, vec![false; self.members.len()]));
                    }
                }
            }
        }
    }

    fn start_period(&mut self, id: u32, now: Time) {
        let member = &mut self.members[id as usize];
        if let Some(silent) = member.pinged.take().filter(|_| !member.answered) {
            let (incarnation, state) = member.view[silent as usize];
            if state == SwimState::Alive {
                if self.members[silent as usize].lives && now > self.members[silent as usize].excused_until {
                    self.outcome.false_suspicions += 1;
                }
                self.learn(id, (silent, incarnation, SwimState::Suspect), now);
            }
        }
        let member = &mut self.members[id as usize];
        member.period += 1;
        if member.order.is_empty() {
            let mut order: Vec<u32> = (0..self.scenario.nodes).filter(|&other| other != id).collect();
            (1..order.len()).rev().for_each(|place| order.swap(place, self.random.below(place as u64 + 1) as usize));
            member.order = order;
        }
        let mut next = None;
        while let Some(other) = member.order.pop() {
            if member.view[other as usize].1 != SwimState::Dead {
                next = Some(other);
                break;
            }
        }
        let period = member.period;
        if let Some(other) = next {
            (member.pinged, member.answered) = (Some(other), false);
            self.send(id, other, SwimMessage::Ping(None, period), now);
            self.push(now + self.period / 3, SwimEvent::AskHelp(id, period));
        }
        self.push(now + self.period, SwimEvent::Period(id));
    }

    fn ask_help(&mut self, id: u32, period: u64, now: Time) {
        let member = &self.members[id as usize];
        let Some(silent) = member.pinged.filter(|_| !member.answered && member.period == period) else { return };
        for _ in 0..HELPERS {
            let helper = self.random.below(u64::from(self.scenario.nodes)) as u32;
            if helper != id && helper != silent && self.members[id as usize].view[helper as usize].1 == SwimState::Alive
            {
                self.send(id, helper, SwimMessage::Help(silent, period), now);
            }
        }
    }

    fn deliver(&mut self, to: u32, from: u32, message: SwimMessage, news: Vec<News>, now: Time) {
        for piece in news {
            self.learn(to, piece, now);
        }
        match message {
            SwimMessage::Ping(asker, period) => self.send(to, from, SwimMessage::Answer(to, asker, period), now),
            SwimMessage::Help(silent, period) => self.send(to, silent, SwimMessage::Ping(Some(from), period), now),
            SwimMessage::Answer(of, Some(asker), period) if asker != to => {
                self.send(to, asker, SwimMessage::Answer(of, None, period), now);
            }
            SwimMessage::Answer(of, _, period) => {
                let member = &mut self.members[to as usize];
                member.answered |= member.period == period && member.pinged == Some(of);
            }
        }
    }

    fn send(&mut self, from: u32, to: u32, message: SwimMessage, now: Time) {
        let limit = self.limit;
        let member = &mut self.members[from as usize];
        member.queue.sort_by_key(|(told, _)| *told);
        let news: Vec<News> = member.queue.iter().take(MOST_NEWS).map(|(_, news)| *news).collect();
        member.queue.iter_mut().take(MOST_NEWS).for_each(|(told, _)| *told += 1);
        member.queue.retain(|(told, _)| *told < limit);
        member.sent += 1;
        member.sent_bytes += PACKET + NEWS * news.len() as u64;
        if let Some(arrival) = self.network.arrival(now, from, to) {
            self.push(arrival, SwimEvent::Deliver(to, from, message, news));
        }
    }

    fn learn(&mut self, id: u32, (of, incarnation, state): News, now: Time) {
        let member = &mut self.members[id as usize];
        if of == id {
            // Nobody who lives lets that stand.
            if state != SwimState::Alive && incarnation >= member.incarnation {
                member.incarnation = incarnation + 1;
                let news = (id, member.incarnation, SwimState::Alive);
                member.queue.retain(|(_, (about, ..))| *about != id);
                member.queue.push((0, news));
            }
            return;
        }
        let known = member.view[of as usize];
        let newer = known.1 != SwimState::Dead && (state == SwimState::Dead || (incarnation, state) > known);
        if !newer {
            return;
        }
        member.view[of as usize] = (incarnation, state);
        member.queue.retain(|(_, (about, ..))| *about != of);
        member.queue.push((0, (of, incarnation, state)));
        if state == SwimState::Suspect {
            self.push(now + u64::from(self.limit) * self.period, SwimEvent::Expire(id, of, incarnation));
        } else if state == SwimState::Dead {
            match self.deaths.iter_mut().find(|(_, detection, _)| detection.node == of) {
                Some((at, detection, knowing)) => {
                    detection.first.get_or_insert(now - *at);
                    detection.all = Some(now - *at);
                    knowing[id as usize] = true;
                }
                None => self.outcome.false_deaths += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pauses;
    use super::*;
    use crate::gossip::{MILLISECOND, SECOND};

    #[test]
    fn a_death_is_named_after_the_time_of_suspicion_and_nobody_else() {
        let faults = vec![(2 * SECOND, Fault::Kill(9..10))];
        let pauses = Some(Pauses { every: 20 * SECOND, longest: 300 * MILLISECOND });
        let scenario =
            GossipScenario { faults, pauses, loss: 10_000, duration: 20 * SECOND, ..GossipScenario::new(32) };
        let outcome = swim(&scenario, 200 * MILLISECOND);
        let wait = 15 * 200 * MILLISECOND;
        let all = outcome.detections[0].all.expect("named");
        assert!((wait..wait + 2 * SECOND).contains(&all), "{} ms", all / MILLISECOND);
        assert_eq!((outcome.false_deaths, outcome.wrong_at_end), (0, 0));
        assert!((8.0..30.0).contains(&outcome.packets_per_second), "{outcome:?}");
    }
}
