//! Questions to an agent, and its answers: over TCP, sealed with the key of the job.
//!
//! The agent sends 16 random bytes. The question and the answer are a length (`u32`, little-endian), a seal of 32 bytes, and JSON. The seal of a question is over the
//! random bytes and it; that of the answer besides over the seal of the question: neither can be replayed. What has no valid seal is counted and dropped.

use crate::jobs::{Key, random};
use crate::setting::Setting;
use crate::state::RankState;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What an agent is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// What the ranks of its node do, with their places in these communicators, and what it knows of others.
    Report(Vec<u64>),
    /// The call stacks of these ranks, as far as they are on its node: [`crate::stacks::ProcessStacks`] of each.
    Stacks(Vec<u32>),
    /// To keep a datum of the user's for all to see.
    Put(String, String),
    /// To tell all agents a formula or a sensor.
    Set(Setting),
}

/// What an agent knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Its number.
    pub number: u32,
    /// Its node.
    pub host: String,
    /// When this was said: seconds since 1970.
    pub time: f64,
    /// What the ranks of its node do.
    pub ranks: Vec<RankState>,
    /// What it knows of other agents.
    pub members: Vec<PeerAgent>,
    /// The user's data, of all nodes.
    pub data: Vec<(String, String)>,
    /// Resources of its node: name, value, unit.
    pub resources: Vec<(String, f64, String)>,
    /// What came and went.
    pub traffic: AgentTraffic,
    /// What the nodes of the job have and do together: name, value, unit.
    #[serde(default)]
    pub job: Vec<(String, f64, String)>,
    /// The user's formulas.
    #[serde(default)]
    pub formulas: Vec<Computed>,
    /// The time that the clocks of the nodes make together, as far as this one compares them.
    #[serde(default)]
    pub clocks: SystemClocks,
    /// Clocks that have failed, as this agent saw it, the latest ones.
    #[serde(default)]
    pub remarks: Vec<ClockRemark>,
}

impl AgentReport {
    /// The user's data of its own node, as text.
    pub fn own_data(&self) -> Vec<String> {
        let own = |(key, value): &(String, String)| {
            let key = key.strip_prefix(&*self.host)?.strip_prefix(": ")?;
            Some(format!("{key} = {value}"))
        };
        self.data.iter().filter_map(own).collect()
    }
}

/// A formula of the user's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    /// Its name.
    pub name: String,
    /// As it was written.
    pub formula: String,
    /// Its value, if all that it needs is known and it has a finite one.
    pub value: Option<f64>,
}

/// The decentralised system time (Umansky and Leontev), in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemClocks {
    /// What it is ahead of the clock of this node, as the median of all clocks.
    pub median: Option<f64>,
    /// As their mean.
    pub mean: Option<f64>,
    /// As the harmonic mean of what they have counted since the job was started.
    pub harmonic: Option<f64>,
    /// What each clock is ahead of the median, and how far that may be wrong: number of the agent first.
    pub distances: Vec<(u32, f64, f64)>,
}

/// A clock that has failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockRemark {
    /// When that was seen: seconds since 1970.
    pub time: f64,
    /// Number of the agent of its node.
    pub number: u32,
    /// Its node.
    pub host: String,
    /// What is wrong, as a sentence without its subject: `jumped by 5.0 ms`.
    pub what: String,
    /// Which clock of the node: `system time`, or `raw clock`, by which recordings are made.
    pub clock: String,
}

/// What an agent knows of another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerAgent {
    /// Its number.
    pub number: u32,
    /// Its node.
    pub host: String,
    /// `alive`, `suspect`, `dead` or `left`.
    pub liveness: String,
    /// For how many seconds.
    pub seconds: f64,
    /// What its clock is ahead by, and how far that may be wrong, in seconds: of the quickest of the latest messages to it and back.
    pub clock: Option<(f64, f64)>,
}

/// What came and went at an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTraffic {
    /// Packets and bytes that were sent.
    pub sent: u64,
    /// See above.
    pub sent_bytes: u64,
    /// Packets that were taken.
    pub received: u64,
    /// Packets and questions without a valid seal.
    pub forged: u64,
    /// Packets that had come before.
    pub replayed: u64,
}

/// Longest question and answer in bytes.
const QUESTION: u32 = 1 << 20;
const ANSWER: u32 = 1 << 28;

type Nonce = [u8; 16];
type Seal = [u8; 32];

fn seal(key: &Key, parts: &[&[u8]]) -> blake3::Hash {
    let own = blake3::derive_key("clc-replay questions to agents 1", key);
    let mut hasher = blake3::Hasher::new_keyed(&own);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize()
}

fn write(stream: &mut TcpStream, seal: &Seal, body: &[u8]) -> Result<()> {
    let mut bytes = Vec::with_capacity(body.len() + 36);
    bytes.extend_from_slice(&u32::try_from(body.len()).map_err(|_| ErrorKind::InvalidInput)?.to_le_bytes());
    bytes.extend_from_slice(seal);
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)
}

fn read(stream: &mut TcpStream, most: u32) -> Result<(Seal, Vec<u8>)> {
    let mut head = [0; 36];
    stream.read_exact(&mut head)?;
    let length = u32::from_le_bytes(head[..4].try_into().unwrap_or_default());
    if length > most {
        return Err(ErrorKind::InvalidData.into());
    }
    // No more memory than what really comes.
    let mut body = Vec::new();
    stream.take(u64::from(length)).read_to_end(&mut body)?;
    if body.len() != length as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok((head[4..].try_into().unwrap_or_default(), body))
}

/// Asks an agent.
///
/// # Errors
/// It does not answer in time, or not with the key of the job.
pub fn ask<T: DeserializeOwned>(agent: SocketAddr, key: &Key, question: &Question, patience: Duration) -> Result<T> {
    ask_reached(agent, key, question, [patience; 2], || ())
}

/// Asks an agent, and says as soon as its node has accepted the connection. The kernel does that, however busy the agent is. `patience` is that with the connection,
/// then that with the answer.
///
/// # Errors
/// It does not answer in time, or not with the key of the job.
pub fn ask_reached<T: DeserializeOwned>(
    agent: SocketAddr,
    key: &Key,
    question: &Question,
    [connect, patience]: [Duration; 2],
    reached: impl FnOnce(),
) -> Result<T> {
    let mut stream = TcpStream::connect_timeout(&agent, connect)?;
    reached();
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut nonce: Nonce = [0; 16];
    stream.read_exact(&mut nonce)?;
    let body = serde_json::to_vec(question)?;
    let asked = seal(key, &[b"question", &nonce, &body]);
    write(&mut stream, asked.as_bytes(), &body)?;
    let (found, answer) = read(&mut stream, ANSWER)?;
    if seal(key, &[b"answer", asked.as_bytes(), &answer]) != found {
        return Err(Error::new(ErrorKind::PermissionDenied, "the answer is not authenticated with the key of the job"));
    }
    Ok(serde_json::from_slice(&answer)?)
}

/// Answers one question; returns whether it was one of somebody who knows the key.
///
/// # Errors
/// The connection breaks.
pub(crate) fn answer(mut stream: TcpStream, key: &Key, reply: impl FnOnce(Question) -> Vec<u8>) -> Result<bool> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let nonce: Nonce = random()?;
    stream.write_all(&nonce)?;
    let (found, body) = read(&mut stream, QUESTION)?;
    let asked = seal(key, &[b"question", &nonce, &body]);
    if asked != found {
        return Ok(false);
    }
    let Ok(question) = serde_json::from_slice(&body) else { return Ok(false) };
    let body = reply(question);
    write(&mut stream, seal(key, &[b"answer", asked.as_bytes(), &body]).as_bytes(), &body)?;
    Ok(true)
}

/// How long somebody who asks may take. Chosen by hand: shorter refuses busy nodes, longer lets those who say nothing keep a thread.
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn serve(key: Key) -> (SocketAddr, std::thread::JoinHandle<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            answer(stream, &key, |question| serde_json::to_vec(&question).unwrap()).unwrap_or(false)
        });
        (address, served)
    }

    #[test]
    fn only_who_knows_the_key_is_answered() {
        let question = Question::Put("phase".into(), "solve".into());
        let second = Duration::from_secs(1);
        let (address, served) = serve([7; 32]);
        assert_eq!(ask::<Question>(address, &[7; 32], &question, second).unwrap(), question);
        assert!(served.join().unwrap());
        let (address, served) = serve([7; 32]);
        assert!(ask::<Question>(address, &[8; 32], &question, second).is_err());
        assert!(!served.join().unwrap());
        let (address, served) = serve([7; 32]);
        TcpStream::connect(address).unwrap().write_all(&[0xff; 100]).unwrap();
        assert!(!served.join().unwrap());
    }
}
