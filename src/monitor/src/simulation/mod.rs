//! Discrete-event simulation of the protocol: the nodes are [`gossip::Node`](crate::gossip::Node)s, the very code that an
//! agent runs; only network and time are made up.
//!
//! A [`GossipScenario`] says how many nodes, which network, what fails when; [`GossipScenario::run`] gives an [`Outcome`]: who was named
//! dead when, who falsely, and the bytes that it took. Everything follows from the seed.

mod network;
mod outcome;
mod run;
mod swim;

#[cfg(test)]
mod tests;

pub use outcome::{Detection, Outcome};
pub use swim::swim;

use crate::gossip::{Config, MILLISECOND, NodeId, SECOND, Time};
use std::net::SocketAddr;
use std::ops::Range;

/// What happens to nodes at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The agents of these nodes are gone.
    Kill(Range<u32>),
    /// They are started anew.
    Restart(Range<u32>),
    /// They neither send nor read for so long, as processes that got SIGSTOP; their sockets keep what comes.
    Pause(Range<u32>, Time),
    /// Nothing gets from these nodes to the others, or back, for so long.
    Cut(Range<u32>, Time),
}

/// Pauses of nodes at random for the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// Mean time between two pauses of a node.
    pub every: Time,
    /// Their length: anything up to that.
    pub longest: Time,
}

/// A run.
#[derive(Debug, Clone)]
pub struct GossipScenario {
    /// How many nodes.
    pub nodes: u32,
    /// Parameters of all nodes but number, address, name, incarnation, seed.
    pub config: Config,
    /// Seed of network and faults.
    pub seed: u64,
    /// Lost packets of a million.
    pub loss: u32,
    /// Least delay of a packet.
    pub delay: Time,
    /// Mean of what comes on top, exponentially distributed.
    pub jitter: Time,
    /// How long the nodes have to meet: nothing before counts in the outcome.
    pub settle: Time,
    /// How long the run is after that.
    pub duration: Time,
    /// Faults by time after `settle`.
    pub faults: Vec<(Time, Fault)>,
    /// Pauses at random.
    pub pauses: Option<Pauses>,
    /// Every node puts a datum of so many bytes for its group so often: period, bytes.
    pub sensors: Option<(Time, usize)>,
    /// The lowest live node of each group puts one of so many bytes for all: period, bytes.
    pub aggregates: Option<(Time, usize)>,
}

impl GossipScenario {
    /// Nodes in layers of about the square root, a network with 50 us and some jitter, no faults.
    pub fn new(nodes: u32) -> Self {
        GossipScenario {
            nodes,
            config: Config::new(NodeId(0), address(0), [7; 32]).layered(nodes),
            seed: 1,
            loss: 0,
            delay: 50 * 1_000,
            jitter: 20 * 1_000,
            settle: 10 * SECOND,
            duration: 10 * SECOND,
            faults: Vec::new(),
            pauses: None,
            sensors: None,
            aggregates: None,
        }
    }

    /// Runs it.
    ///
    /// # Panics
    /// If `config` is not usable ([`Config::check`]).
    pub fn run(&self) -> Outcome {
        run::GossipRun::new(self).finish()
    }

    fn node_config(&self, id: u32, incarnation: u64) -> Config {
        Config {
            id: NodeId(id),
            address: address(id),
            name: format!("n{id}"),
            incarnation,
            seed: self.seed ^ u64::from(id) << 20,
            ..self.config.clone()
        }
    }

    /// Of the nodes of a group, those that there are.
    fn existing(&self, group: Range<u32>) -> Range<u32> {
        group.start..group.end.min(self.nodes)
    }

    /// Whom a node asks for admission: the first of its group, that one the first of the next larger group, and so on.
    fn door(&self, id: u32) -> u32 {
        let mut span = 1u32;
        for &size in &self.config.group_sizes {
            span = span.saturating_mul(size);
            if !id.is_multiple_of(span) {
                return id / span * span;
            }
        }
        0
    }
}

/// The address of a node in the simulated network.
fn address(id: u32) -> SocketAddr {
    let [_, a, b, c] = id.to_be_bytes();
    SocketAddr::from(([10, a, b, c], 7_000))
}

/// The node with that address.
fn number(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V4(v4) => {
            let [ten, a, b, c] = v4.ip().octets();
            (ten == 10).then(|| u32::from_be_bytes([0, a, b, c]))
        }
        SocketAddr::V6(_) => None,
    }
}

/// What the simulated clocks show at the start: as incarnations, they have to be larger than nothing.
const START: Time = 1_000 * SECOND;

/// Bytes of the headers of UDP and IPv4, which count in all figures.
pub(crate) const HEADERS: u64 = 28;

/// How often the run looks at events of nodes. Chosen by hand: finer takes longer, coarser tells times of detection less exactly.
const LOOK: Time = 10 * MILLISECOND;
