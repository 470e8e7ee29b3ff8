//! The agents of other nodes: gossip with them, by UDP.

use super::clock;
use super::inbox::Inbox;
use super::leads::Lead;
use super::neighbours::Neighbours;
use super::settings::{AgentSettings, InForce};
use super::together::{Together, of_group, of_others, wanted};
use crate::clocks::log::{ClockLog, ClockLogEntry, Name};
use crate::gossip::{Arrival, Config, Liveness, MAX_DATUM, Node, NodeId, RoundTrip};
use crate::jobs::{AgentFile, Job};
use crate::query::{AgentTraffic, ClockRemark, Computed, PeerAgent, SystemClocks};
use crate::resources::{GroupAggregates, Quantity, Reading, Sensors};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Error, ErrorKind, Result};
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Data of an agent: the user's, as JSON; what the real time is ahead of the clock that gossip measures by ([`Lead`]).
const DATA: u16 = 0x100;
const REAL: u16 = 0x101;
/// The resources of its node, and those of its group, by its lowest living node.
const RESOURCES: u16 = 0x102;
const SUMMARY: u16 = 0x103;

/// How often the directory is looked at for new agents, and how often the clocks are read. Chosen by hand: more often burdens a shared file system,
/// less often meets new agents later.
const LOOK: Duration = Duration::from_secs(1);
/// The same for new agents once as many are known as there are nodes: those that come then take the place of others, and ask for admission themselves. Chosen by hand.
const LOOK_SELDOM: Duration = Duration::from_secs(10);
/// How often what is known of others is written down for those who ask, if nothing happens to a node. Chosen by hand: more often takes time for nothing,
/// less often makes the data of nodes older.
const TELL: Duration = Duration::from_millis(150);
/// The same while nobody asks.
const TELL_NOBODY: Duration = Duration::from_secs(1);
/// How often a group tells all others what it has and does: some 80 bytes, which each node passes on four times; in large jobs less often.
const SUMMARISE: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(30)];
/// So many of the latest round trips to a node are looked at for the quickest one. Chosen by hand: with more, a route that has become slower is
/// noticed later; with fewer, none of them may be quick.
const TRIPS: usize = 32;
/// How often the next node of the group gets a packet that only tells of clocks, in jobs of so many nodes at most: 70 kbit/s. When a clock has jumped is known as well as packets are dense, but an
/// agent that sends one every 10 ms takes 0.23 % of a core more, which many nodes pay for a jump of one of them. In larger jobs there are none: with one every 50 ms, an agent of 64 takes 0.54 %, without 0.40 %.
const CLOCKS: (u32, Duration) = (16, Duration::from_millis(10));
/// So many packets that only tell of clocks follow a message within the group, in such jobs and in larger ones.
const FOLLOWERS: [u32; 2] = [2, 1];
/// So many nodes are a large job, in which groups tell others less often. Chosen by hand: in smaller ones, that is little beside the rest.
const LARGE: u32 = 256;

/// What is known of other agents.
#[derive(Debug, Clone, Default)]
pub(super) struct PeerView {
    /// When this was written down.
    pub at: Option<Instant>,
    /// Whether they live.
    pub members: Vec<PeerAgent>,
    /// The user's data, of all nodes.
    pub data: Vec<Datum>,
    /// The resources of this node: name, value, unit.
    pub resources: Vec<(String, f64, String)>,
    /// What came and went.
    pub traffic: AgentTraffic,
    /// What is looked at less often.
    pub slow: Arc<Slow>,
}

/// What is known of the whole job, as of a second ago at most.
#[derive(Debug, Default)]
pub(super) struct Slow {
    /// What the nodes of the group read: number, node.
    pub readings: Vec<(u32, String, Reading)>,
    /// What the nodes of the job have and do together: name, value, unit.
    pub job: Vec<(String, f64, String)>,
    /// The user's formulas.
    pub formulas: Vec<Computed>,
    /// Files with numbers of this node that become data: name and path.
    pub sensors: Vec<(String, String)>,
    /// The time that the clocks make together.
    pub clocks: SystemClocks,
    /// Clocks that have failed.
    pub remarks: Vec<ClockRemark>,
}

/// A datum of the user's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Datum {
    /// Number of the agent that has it.
    pub number: u32,
    /// Its node.
    pub host: String,
    /// Its name.
    pub key: String,
    /// What it says.
    pub value: String,
}

/// Whether there is room for so many data of the user's.
pub(super) fn fits(data: &BTreeMap<String, String>) -> bool {
    serde_json::to_vec(data).is_ok_and(|bytes| bytes.len() <= MAX_DATUM)
}

/// This node among others.
pub(super) struct AgentPeers {
    node: Node,
    socket: UdpSocket,
    joined: BTreeSet<u32>,
    looked: Option<Instant>,
    /// How many nodes the job has, if that is known, and when the directory was looked at last for their agents.
    nodes: Option<u32>,
    sought: Option<Instant>,
    /// When others were told last what is known, and whether a node has come, gone or fallen silent since.
    told: Option<Instant>,
    changed: bool,
    trips: BTreeMap<u32, VecDeque<RoundTrip>>,
    data: BTreeMap<String, String>,
    sensors: Sensors,
    reading: Reading,
    /// Whether there are many nodes.
    large: bool,
    summarised: Option<Instant>,
    neighbours: Neighbours,
    slow: Arc<Slow>,
    inbox: Inbox,
    /// When packets went and came; none if it cannot be written.
    log: Option<ClockLog>,
}

impl AgentPeers {
    /// For the agent with this file.
    ///
    /// # Errors
    /// The interval of the job makes no sense.
    pub(super) fn new(job: &Job, own: &AgentFile, socket: UdpSocket) -> Result<AgentPeers> {
        let begun = (own.begun * 1e9) as u64;
        let mut config = Config::new(NodeId(own.number), own.gossip, job.key);
        config.name = own.host.clone();
        config.incarnation = begun;
        config.seed = begun ^ u64::from(own.process);
        config.interval = (job.about.interval * 1e9) as u64;
        config.cleanup = 10 * config.interval;
        config.consensus = config.interval;
        config.gather = config.interval / 2;
        let large = job.about.nodes.is_some_and(|nodes| nodes > LARGE);
        config.clock_packets = clock_packets(job.about.nodes);
        config.clock_every = clock_packets_every(job.about.nodes);
        if let Some(nodes) = job.about.nodes {
            config = config.layered(nodes);
        }
        let node = Node::new(config, clock::steady())
            .map_err(|error| Error::new(ErrorKind::InvalidInput, error.to_string()))?;
        let mut peers = AgentPeers {
            node,
            inbox: Inbox::new(&socket),
            socket,
            joined: BTreeSet::new(),
            looked: None,
            nodes: job.about.nodes,
            sought: None,
            told: None,
            changed: false,
            trips: BTreeMap::new(),
            data: BTreeMap::new(),
            sensors: Sensors::new(Path::new("/")),
            reading: Reading::default(),
            large,
            summarised: None,
            neighbours: Neighbours::new(own.number, job.about.begun),
            slow: Arc::default(),
            log: ClockLog::create(&AgentFile::clocks(job, own.number)).ok(),
        };
        peers.look(job);
        Ok(peers)
    }

    /// Gossips for so long.
    ///
    /// # Errors
    /// The socket cannot be used any more.
    pub(super) fn run(&mut self, job: &Job, length: Duration) -> Result<()> {
        let begun = Instant::now();
        if self.looked.is_none_or(|looked| looked.elapsed() > LOOK) {
            self.look(job);
        }
        loop {
            self.send();
            let now = clock::steady();
            let gather = Duration::from_nanos(self.node.may_wait(now));
            let left = length.saturating_sub(begun.elapsed());
            // Who wakes seldom does not wake again just for what is left.
            if left <= gather / 2 {
                break;
            }
            let deadline = Duration::from_nanos(self.node.next_deadline().saturating_sub(now));
            self.inbox.wait(&self.socket, left.min(deadline), gather)?;
            self.receive();
        }
        for trip in self.node.round_trips() {
            self.neighbours.add(&trip);
            let trips = self.trips.entry(trip.peer.0).or_default();
            trips.push_back(trip);
            if trips.len() > TRIPS {
                trips.pop_front();
            }
        }
        // Members say what became of others.
        self.changed |= !self.node.events().is_empty();
        Ok(())
    }

    /// Sends what is due.
    fn send(&mut self) {
        self.node.prepare(clock::steady());
        while let Some(packet) = self.node.next_packet(clock::raw()) {
            let name = Name { incarnation: self.node.config().incarnation, sequence: packet.sequence };
            self.note(ClockLogEntry::Sent(name, clock::raw()));
            // What gets lost is said again.
            let _ = self.socket.send_to(&packet.bytes, packet.to);
        }
    }

    /// Takes in what has come.
    fn receive(&mut self) {
        let (node, log) = (&mut self.node, &mut self.log);
        self.inbox.take(&self.socket, |packet| {
            node.receive_stamped(clock::steady(), packet.waited, packet.came, packet.from, packet.bytes);
            if let Some(Arrival { incarnation, sequence, .. }) = node.arrived()
                && let Some(log) = log
            {
                log.push(ClockLogEntry::Came(Name { incarnation, sequence }, packet.came));
            }
        });
    }

    /// Looks at what the nodes have together, and tells other groups of this one.
    fn look_together(&mut self) {
        let in_force = InForce::of(&self.node);
        let group = of_group(&self.node, RESOURCES);
        let readings: Vec<Reading> = group.members.iter().map(|member| member.2.clone()).collect();
        let own = GroupAggregates::of(&readings, &wanted(&in_force));
        let mut groups = of_others(&self.node, SUMMARY);
        let every = SUMMARISE[usize::from(self.large)];
        let due = self.summarised.is_none_or(|last| last.elapsed() > every);
        if group.is_lowest && due && self.node.groups().count() > 1 {
            self.summarised = Some(Instant::now());
            // Short enough: 64 aggregates.
            let _ = self.node.put_everywhere(SUMMARY, &own.encode());
        }
        groups.push(own);
        let data = self.data();
        let together = Together::new(groups, data.iter().map(|datum| (datum.key.as_str(), datum.value.as_str())));
        self.slow = Arc::new(Slow {
            readings: group.members,
            job: together.usual(),
            formulas: together.formulas(&in_force),
            sensors: in_force.sensors().map(|(name, path)| (name.to_owned(), path.to_owned())).collect(),
            clocks: self.neighbours.clocks(clock::raw()),
            remarks: self.neighbours.remarks(),
        });
    }

    /// Tells others what this one was told to have all agents do.
    pub(super) fn set(&mut self, settings: &mut AgentSettings) {
        settings.tell(&mut self.node);
    }

    /// Looks for agents that are new, at resources, and at the clocks.
    fn look(&mut self, job: &Job) {
        self.looked = Some(Instant::now());
        self.flush();
        // Not every launcher tells how many nodes there are.
        let many = self.node.member_ids().count() > CLOCKS.0 as usize;
        if many || self.log.as_ref().is_none_or(ClockLog::is_half_full) {
            self.node.stop_clock_packets(if many { FOLLOWERS[1] } else { FOLLOWERS[0] });
        }
        let complete = self.nodes.is_some_and(|nodes| self.joined.len() + 1 >= nodes as usize);
        if !complete || self.sought.is_none_or(|sought| sought.elapsed() > LOOK_SELDOM) {
            self.seek(job);
        }
        self.reading = self.sensors.read(clock::steady());
        // Both are short enough.
        let _ = self.node.put(RESOURCES, &self.reading.encode());
        // For the group: told to all nodes, those of a large job would leave no room for anything else.
        let _ = self.node.put(REAL, &clock::lead().encode());
        self.compare_clocks();
        self.look_together();
    }

    /// Looks at the clocks of all nodes that tell theirs.
    fn compare_clocks(&mut self) {
        let told = self.node.member_ids().filter_map(|id| Some((id, Lead::decode(self.node.get(id, REAL)?)?)));
        told.for_each(|(id, lead)| self.neighbours.lead(id, lead));
        let name = |id| self.node.member(id).map(|member| member.name.to_owned());
        self.neighbours.compare(clock::raw(), name);
    }

    /// Looks for agents that are new.
    fn seek(&mut self, job: &Job) {
        self.sought = Some(Instant::now());
        let own = self.node.id().0;
        for agent in AgentFile::those(job, |number| number != own && !self.joined.contains(&number)) {
            self.joined.insert(agent.number);
            if agent.ended.is_none() {
                self.node.join(agent.gossip);
            }
        }
    }

    /// Tells the clock log that a rank is here.
    pub(super) fn note_rank(&mut self, rank: u32) {
        self.note(ClockLogEntry::Rank(rank));
    }

    fn note(&mut self, entry: ClockLogEntry) {
        if let Some(log) = &mut self.log {
            log.push(entry);
        }
    }

    /// Whoever reads the clock log sees all of it.
    pub(super) fn flush(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
    }

    /// Tells others that this one goes.
    pub(super) fn leave(&mut self) {
        self.node.leave();
        for packet in self.node.poll(clock::steady()) {
            let _ = self.socket.send_to(&packet.bytes, packet.to);
        }
    }

    /// Tells others the user's data, for which there is room.
    pub(super) fn put(&mut self, data: &BTreeMap<String, String>) {
        if *data != self.data
            && let Ok(bytes) = serde_json::to_vec(data)
            && self.node.put_everywhere(DATA, &bytes).is_ok()
        {
            self.data.clone_from(data);
        }
    }

    /// All that is known of others, if that is due or something has happened to one of them; it is due more often while somebody asks.
    pub(super) fn heard(&mut self, asked: bool) -> Option<PeerView> {
        let every = if asked { TELL } else { TELL_NOBODY };
        if !self.changed && self.told.is_some_and(|told| told.elapsed() < every) {
            return None;
        }
        Some(self.tell())
    }

    /// All that is known of others, and a reading of the resources that is not older than what was noted last.
    pub(super) fn fresh(&mut self, job: &Job) -> PeerView {
        if self.looked.is_none_or(|looked| looked.elapsed() > LOOK / 2) {
            self.look(job);
        }
        self.tell()
    }

    fn tell(&mut self) -> PeerView {
        (self.changed, self.told) = (false, Some(Instant::now()));
        self.view()
    }

    fn view(&self) -> PeerView {
        let resources = Quantity::ALL.iter().filter_map(|quantity| {
            let value = self.reading.get(*quantity)?;
            Some((quantity.name().to_owned(), value, quantity.unit().to_owned()))
        });
        PeerView {
            at: Some(Instant::now()),
            members: self.known(),
            data: self.data(),
            resources: resources.collect(),
            traffic: self.traffic(),
            slow: Arc::clone(&self.slow),
        }
    }

    /// The user's data at all nodes that are there.
    fn data(&self) -> Vec<Datum> {
        let mut all = Vec::new();
        for member in self.node.members().filter(|member| member.liveness.is_there()) {
            let own = member.data.iter().find(|(key, _)| *key == DATA);
            let data: BTreeMap<String, String> =
                own.and_then(|(_, bytes)| serde_json::from_slice(bytes).ok()).unwrap_or_default();
            let datum = |(key, value)| Datum { number: member.id.0, host: member.name.to_owned(), key, value };
            all.extend(data.into_iter().map(datum));
        }
        all
    }

    /// What is known of other agents.
    fn known(&self) -> Vec<PeerAgent> {
        let now = clock::steady();
        let others = self.node.members().filter(|member| member.id != self.node.id());
        let known = others.map(|member| PeerAgent {
            number: member.id.0,
            host: member.name.to_owned(),
            liveness: match member.liveness {
                Liveness::Alive => "alive",
                Liveness::Suspect => "suspect",
                Liveness::Dead => "dead",
                Liveness::Left => "left",
            }
            .to_owned(),
            // Of one that is silent, since when nothing was heard of it.
            seconds: now.saturating_sub(if member.liveness == Liveness::Alive { member.since } else { member.heard })
                as f64
                * 1e-9,
            clock: self.clock(member.id),
        });
        known.collect()
    }

    /// Numbers of agents that are dead or have left.
    pub(super) fn gone(&self) -> BTreeSet<u32> {
        let gone = self.node.members().filter(|member| matches!(member.liveness, Liveness::Dead | Liveness::Left));
        gone.map(|member| member.id.0).collect()
    }

    /// What the real time of a node is ahead of that of this one, and how far that may be wrong, in seconds.
    fn clock(&self, id: NodeId) -> Option<(f64, f64)> {
        let quickest = self.trips.get(&id.0)?.iter().min_by_key(|trip| trip.delay())?;
        let ahead = i128::from(quickest.offset()) + i128::from(self.neighbours.leads_by(id)?);
        Some((ahead as f64 * 1e-9, quickest.delay().max(0) as f64 * 0.5e-9))
    }

    /// What came and went.
    fn traffic(&self) -> AgentTraffic {
        let counters = self.node.counters();
        AgentTraffic {
            sent: counters.sent,
            sent_bytes: counters.sent_bytes,
            received: counters.received,
            forged: counters.forged + counters.malformed + counters.misdirected,
            replayed: counters.replayed,
        }
    }
}

/// How many packets that only tell of clocks follow a message within the group: 7 kbit/s each. The first is already as quick as any; a second one costs a node some 20 packets per second, which come and go.
fn clock_packets(nodes: Option<u32>) -> u32 {
    FOLLOWERS[usize::from(nodes.is_some_and(|nodes| nodes > CLOCKS.0))]
}

/// How often the next node of the group gets a packet that only tells of clocks, in nanoseconds; 0 is never.
fn clock_packets_every(nodes: Option<u32>) -> u64 {
    let (most, every) = CLOCKS;
    if nodes.is_none_or(|nodes| nodes <= most) { every.as_nanos() as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_tell_of_clocks_only_where_there_are_few_nodes() {
        let every = [None, Some(2), Some(16), Some(17), Some(100_000)].map(clock_packets_every);
        assert_eq!(every.map(|every| every / 1_000_000), [10, 10, 10, 0, 0]);
        assert_eq!([None, Some(16), Some(17), Some(100_000)].map(clock_packets), [2, 2, 1, 1]);
    }
}
