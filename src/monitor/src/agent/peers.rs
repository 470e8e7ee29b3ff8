//! The agents of other nodes: gossip with them, by UDP.

use super::clock;
use crate::clocks::log::{ClockLog, Entry, Name};
use crate::gossip::{Arrival, Config, Liveness, MAX_DATUM, Node, NodeId, RoundTrip};
use crate::jobs::{AgentFile, Job};
use crate::query::{Known, Traffic};
use crate::resources::{Quantity, Reading, Sensors};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Error, ErrorKind, Result};
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

/// Data of an agent: the user's, as JSON; what the real time is ahead of the clock that gossip measures by, in nanoseconds.
const DATA: u16 = 0x100;
const REAL: u16 = 0x101;
/// The resources of its node.
const RESOURCES: u16 = 0x102;

/// How often the directory is looked at for new agents, and how often the clocks are read.
const LOOK: Duration = Duration::from_secs(1);
/// So many of the latest round trips to a node are looked at for the quickest one.
const TRIPS: usize = 32;
/// So many nodes are a large job.
const LARGE: u32 = 256;
/// No packet is longer.
const LONGEST: usize = 1 << 16;

/// What is known of other agents.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// Whether they live.
    pub members: Vec<Known>,
    /// The user's data, of all nodes.
    pub data: Vec<(String, String)>,
    /// The resources of this node: name, value, unit.
    pub resources: Vec<(String, f64, String)>,
    /// What came and went.
    pub traffic: Traffic,
}

/// Whether there is room for so many data of the user's.
pub fn fits(data: &BTreeMap<String, String>) -> bool {
    serde_json::to_vec(data).is_ok_and(|bytes| bytes.len() <= MAX_DATUM)
}

/// This node among others.
pub struct Peers {
    node: Node,
    socket: UdpSocket,
    joined: BTreeSet<u32>,
    looked: Option<Instant>,
    trips: BTreeMap<u32, VecDeque<RoundTrip>>,
    buffer: Vec<u8>,
    data: BTreeMap<String, String>,
    sensors: Sensors,
    reading: Reading,
    /// When packets went and came; none if it cannot be written.
    log: Option<ClockLog>,
}

impl Peers {
    /// For the agent with this file.
    ///
    /// # Errors
    /// The interval of the job makes no sense.
    pub fn new(job: &Job, own: &AgentFile, socket: UdpSocket) -> Result<Peers> {
        let begun = (own.begun * 1e9) as u64;
        let mut config = Config::new(NodeId(own.number), own.gossip, job.key);
        config.name = own.host.clone();
        config.incarnation = begun;
        config.seed = begun ^ u64::from(own.process);
        config.interval = (job.about.interval * 1e9) as u64;
        config.cleanup = 10 * config.interval;
        config.consensus = config.interval;
        // 7 kbit/s each: in large jobs lists and data take more.
        config.clock_packets = if job.about.nodes.is_some_and(|nodes| nodes > LARGE) { 1 } else { 2 };
        if let Some(nodes) = job.about.nodes {
            config = config.layered(nodes);
        }
        let node =
            Node::new(config, clock::raw()).map_err(|error| Error::new(ErrorKind::InvalidInput, error.to_string()))?;
        let mut peers = Peers {
            node,
            socket,
            joined: BTreeSet::new(),
            looked: None,
            trips: BTreeMap::new(),
            buffer: vec![0; LONGEST],
            data: BTreeMap::new(),
            sensors: Sensors::new(Path::new("/")),
            reading: Reading::default(),
            log: ClockLog::create(&AgentFile::clocks(job, own.number)).ok(),
        };
        // From now on the kernel notes when packets come.
        clock::came(&peers.socket);
        peers.look(job);
        Ok(peers)
    }

    /// Gossips for so long.
    ///
    /// # Errors
    /// The socket cannot be used any more.
    pub fn run(&mut self, job: &Job, length: Duration) -> Result<()> {
        let end = Instant::now() + length;
        if self.looked.is_none_or(|looked| looked.elapsed() > LOOK) {
            self.look(job);
        }
        loop {
            for packet in self.node.poll(clock::raw()) {
                let name = Name { incarnation: self.node.config().incarnation, sequence: packet.sequence };
                self.note(Entry::Sent(name, clock::raw()));
                // What gets lost is said again.
                let _ = self.socket.send_to(&packet.bytes, packet.to);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let deadline = Duration::from_nanos(self.node.next_deadline().saturating_sub(clock::raw()));
            // At least as long as a timeout can be.
            self.socket.set_read_timeout(Some(left.min(deadline).max(Duration::from_millis(1))))?;
            if let Ok((length, from)) = self.socket.recv_from(&mut self.buffer) {
                let (came, now) = (clock::came(&self.socket), clock::raw());
                self.node.receive_stamped(now, came, from, self.buffer.get(..length).unwrap_or_default());
                if let Some(Arrival { incarnation, sequence, .. }) = self.node.arrived() {
                    self.note(Entry::Came(Name { incarnation, sequence }, came));
                }
            }
        }
        for trip in self.node.round_trips() {
            let trips = self.trips.entry(trip.peer.0).or_default();
            trips.push_back(trip);
            if trips.len() > TRIPS {
                trips.pop_front();
            }
        }
        // Members say what became of others.
        let _ = self.node.events();
        Ok(())
    }

    /// Looks for agents that are new, and at the clocks.
    fn look(&mut self, job: &Job) {
        self.looked = Some(Instant::now());
        self.flush();
        let new =
            AgentFile::all(job).into_iter().filter(|agent| agent.ended.is_none() && agent.number != self.node.id().0);
        for agent in new.collect::<Vec<_>>() {
            if self.joined.insert(agent.number) {
                self.node.join(agent.gossip);
            }
        }
        self.reading = self.sensors.read(clock::raw());
        // Both are short enough.
        let _ = self.node.put(RESOURCES, &self.reading.encode());
        let _ = self.node.put_everywhere(REAL, &clock::real_minus_raw().to_le_bytes());
    }

    /// Tells the clock log that a rank is here.
    pub fn note_rank(&mut self, rank: u32) {
        self.note(Entry::Rank(rank));
    }

    fn note(&mut self, entry: Entry) {
        if let Some(log) = &mut self.log {
            log.push(entry);
        }
    }

    /// Whoever reads the clock log sees all of it.
    pub fn flush(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
    }

    /// Tells others that this one goes.
    pub fn leave(&mut self) {
        self.node.leave();
        for packet in self.node.poll(clock::raw()) {
            let _ = self.socket.send_to(&packet.bytes, packet.to);
        }
    }

    /// Tells others the user's data, for which there is room.
    pub fn put(&mut self, data: &BTreeMap<String, String>) {
        if *data != self.data
            && let Ok(bytes) = serde_json::to_vec(data)
            && self.node.put_everywhere(DATA, &bytes).is_ok()
        {
            self.data.clone_from(data);
        }
    }

    /// All that is known of others.
    pub fn heard(&self) -> Heard {
        let resources = Quantity::ALL.iter().filter_map(|quantity| {
            let value = self.reading.get(*quantity)?;
            Some((quantity.name().to_owned(), value, quantity.unit().to_owned()))
        });
        Heard { members: self.known(), data: self.data(), resources: resources.collect(), traffic: self.traffic() }
    }

    /// The user's data at all nodes: with the name of the node before the key.
    fn data(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for member in self.node.members() {
            let own = member.data.iter().find(|(key, _)| *key == DATA);
            let data: BTreeMap<String, String> =
                own.and_then(|(_, bytes)| serde_json::from_slice(bytes).ok()).unwrap_or_default();
            all.extend(data.into_iter().map(|(key, value)| (format!("{}: {key}", member.name), value)));
        }
        all
    }

    /// What is known of other agents.
    fn known(&self) -> Vec<Known> {
        let now = clock::raw();
        let others = self.node.members().filter(|member| member.id != self.node.id());
        let known = others.map(|member| Known {
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
    pub fn gone(&self) -> BTreeSet<u32> {
        let gone = self.node.members().filter(|member| matches!(member.liveness, Liveness::Dead | Liveness::Left));
        gone.map(|member| member.id.0).collect()
    }

    /// What the real time of a node is ahead of that of this one, and how far that may be wrong, in seconds.
    fn clock(&self, id: NodeId) -> Option<(f64, f64)> {
        let real = |id: NodeId| Some(i64::from_le_bytes(self.node.get(id, REAL)?.try_into().ok()?));
        let quickest = self.trips.get(&id.0)?.iter().min_by_key(|trip| trip.delay())?;
        let ahead = quickest.offset() as i128 + i128::from(real(id)?) - i128::from(real(self.node.id())?);
        Some((ahead as f64 * 1e-9, quickest.delay().max(0) as f64 * 0.5e-9))
    }

    /// What came and went.
    fn traffic(&self) -> Traffic {
        let counters = self.node.counters();
        Traffic {
            sent: counters.sent,
            sent_bytes: counters.sent_bytes,
            received: counters.received,
            forged: counters.forged + counters.malformed + counters.misdirected,
            replayed: counters.replayed,
        }
    }
}
