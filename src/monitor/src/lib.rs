//! A monitor of running parallel jobs by gossip between their nodes.
//!
//! [`agent`] is what runs on each node, [`state`] what it sees there, [`diagnose`] what that says, [`jobs`] where agents are found, [`query`] and [`collect`] how they are asked,
//! [`history`] what they note over time, [`setting`] what they are told, [`stacks`] where in its functions a process is.
//!
//! [`gossip`] is the protocol: who lives, who is dead by consensus, what each node has to tell, and the times of round trips between
//! clocks. It opens no socket and reads no clock, so the same code runs in an agent and in a [`simulation`].
//! [`resources`] are what a node has left, with aggregates over groups; [`clocks`] are the time that all clocks make together, and clocks that fail.
//!
//! ```
//! use clc_monitor::gossip::{Config, MILLISECOND, Node, NodeId};
//!
//! let address = |id: u32| format!("10.0.0.{id}:7000").parse().unwrap();
//! let node = |id| Node::new(Config::new(NodeId(id), address(id), [42; 32]), 0).unwrap();
//! let mut nodes = [node(0), node(1), node(2)];
//! nodes[1].join(address(0));
//! nodes[2].join(address(0));
//! nodes[2].put(1, b"load 0.5").unwrap();
//! for step in 1..100 {
//!     let now = step * 20 * MILLISECOND;
//!     for sender in 0..3 {
//!         for packet in nodes[sender].poll(now) {
//!             let receiver = nodes.iter_mut().find(|node| node.config().address == packet.to);
//!             receiver.unwrap().receive(now, address(sender as u32), &packet.bytes);
//!         }
//!     }
//! }
//! assert_eq!(nodes[0].members().count(), 3);
//! assert_eq!(nodes[0].get(NodeId(2), 1), Some(&b"load 0.5"[..]));
//! ```
#![deny(clippy::cast_lossless)]

pub mod agent;
pub mod clocks;
pub mod collect;
pub mod diagnose;
pub mod gossip;
pub mod history;
pub mod jobs;
pub mod query;
mod random;
pub mod resources;
pub mod setting;
pub mod simulation;
pub mod stacks;
pub mod state;
mod wire;

pub use wire::Malformed;
