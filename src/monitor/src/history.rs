//! What agents have seen over time, as each of them notes it: a file of lines of JSON beside its clock log, from which a page is made.
//!
//! The first line names the node; each further one is a [`Moment`]. Of states, what has changed is noted. Moments are a second apart at first, and twice as far each time that
//! there are 2,048 more: a day takes some 10,000 of them.

use crate::jobs::{AgentFile, Job};
use crate::query::PeerAgent;
use crate::state::RankState;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::path::Path;

/// How the name of such a file ends.
pub const EXTENSION: &str = "log";

/// Between two moments at first, in seconds. Chosen by hand: with less, logs of long jobs are coarsened sooner; with more, those of short ones have
/// few moments.
pub(crate) const FIRST_INTERVAL: f64 = 1.0;
/// After so many moments they are twice as far apart.
const DOUBLED: u32 = 2048;
/// No log gets longer, in bytes.
const MOST: u64 = 64 << 20;
/// Of one that is longer, no more is read.
const MOST_READ: u64 = 2 * MOST;

/// What is noted of the resources of a node.
pub const RESOURCES: [&str; 8] =
    ["load1", "cpu", "memory", "memory_total", "net_in", "net_out", "disk_read", "disk_written"];

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Head {
    number: u32,
    host: String,
}

/// What an agent saw at a moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since 1970, by the clock of the node.
    pub time: f64,
    /// The same by `CLOCK_MONOTONIC_RAW`, in nanoseconds; 0 if it is not known.
    #[serde(default)]
    pub raw: u64,
    /// Ranks of the node whose state is not what it was at the moment before, and that state: see [`RankState::word`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<(u32, String)>,
    /// Agents that are not what they were at the moment before (see [`PeerAgent::liveness`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<(u32, String)>,
    /// Calls of MPI that have done something, of all ranks of the node since their beginning.
    #[serde(default)]
    pub moves: u64,
    /// Those of [`RESOURCES`] that the kernel tells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, f64>,
    /// Clocks of other nodes: number of the agent, what its clock is ahead of this one by, and how far that may be wrong, in seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<(u32, f64, f64)>,
}

/// The log of an agent as it is written.
#[derive(Debug)]
pub(crate) struct HistoryWriter {
    file: File,
    written: u64,
    moments: u32,
    due: f64,
    interval: f64,
    ranks: BTreeMap<u32, &'static str>,
    nodes: BTreeMap<u32, String>,
}

impl HistoryWriter {
    /// Begins a log.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn create(path: &Path, number: u32, host: &str) -> Result<HistoryWriter> {
        let mut writer = HistoryWriter {
            file: File::create(path)?,
            written: 0,
            moments: 0,
            due: 0.0,
            interval: FIRST_INTERVAL,
            ranks: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        writer.line(&Head { number, host: host.to_owned() })?;
        Ok(writer)
    }

    /// Whether a moment is to be noted now.
    pub(crate) fn is_due(&self, time: f64) -> bool {
        // A clock that was set back is no reason to be silent.
        time >= self.due || time < self.due - 2.0 * self.interval
    }

    /// Notes a moment.
    ///
    /// # Errors
    /// It cannot be written, or the log is long enough.
    pub(crate) fn note(
        &mut self,
        time: f64,
        raw: u64,
        states: &[RankState],
        members: &[PeerAgent],
        resources: &[(String, f64, String)],
    ) -> Result<()> {
        let mut moment = Moment { time, raw, moves: states.iter().map(|state| state.moves).sum(), ..Moment::default() };
        for (rank, word) in states.iter().filter_map(|state| Some((state.rank?, state.word()))) {
            if self.ranks.insert(rank, word) != Some(word) {
                moment.ranks.push((rank, word.to_owned()));
            }
        }
        for known in members {
            if self.nodes.get(&known.number) != Some(&known.liveness) {
                self.nodes.insert(known.number, known.liveness.clone());
                moment.nodes.push((known.number, known.liveness.clone()));
            }
        }
        let noted = |name: &str| RESOURCES.contains(&name);
        let finite = resources.iter().filter(|(name, value, _)| noted(name) && value.is_finite());
        moment.resources = finite.map(|(name, value, _)| (name.clone(), *value)).collect();
        moment.clocks = members
            .iter()
            .filter(|known| known.liveness == "alive")
            .filter_map(|known| known.clock.map(|(ahead, error)| (known.number, ahead, error)))
            .collect();
        self.line(&moment)?;
        self.moments += 1;
        if self.moments.is_multiple_of(DOUBLED) {
            self.interval *= 2.0;
        }
        self.due = time + self.interval;
        Ok(())
    }

    fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let mut bytes = serde_json::to_vec(value)?;
        bytes.push(b'\n');
        if self.written + bytes.len() as u64 > MOST {
            return Err(ErrorKind::FileTooLarge.into());
        }
        // Whole lines, so who reads meanwhile misses at most the last one.
        self.file.write_all(&bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// The log of an agent as it is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log {
    /// Number of the agent.
    pub number: u32,
    /// Its node.
    pub host: String,
    /// In the order of the file.
    pub moments: Vec<Moment>,
    /// Lines that are none, the last one aside, which may not be complete yet.
    pub damaged: usize,
}

impl Log {
    /// Reads one.
    ///
    /// # Errors
    /// It cannot be read, or its first line does not name the node.
    pub fn read(path: &Path) -> Result<Log> {
        let mut lines = BufReader::new(File::open(path)?.take(MOST_READ)).split(b'\n');
        let head = lines.next().transpose()?.unwrap_or_default();
        let head: Head = serde_json::from_slice(&head)
            .map_err(|error| Error::new(ErrorKind::InvalidData, format!("not the log of an agent: {error}")))?;
        let mut log = Log { number: head.number, host: head.host, ..Log::default() };
        let mut lines = lines.peekable();
        while let Some(line) = lines.next() {
            match serde_json::from_slice::<Moment>(&line?) {
                Ok(moment) if moment.time.is_finite() => log.moments.push(moment),
                _ if lines.peek().is_none() => {}
                _ => log.damaged += 1,
            }
        }
        Ok(log)
    }

    /// How far the moment after this one is away, if it was noted in time, in seconds.
    pub fn interval_after(&self, index: usize) -> f64 {
        let doubled = (index + 1) / DOUBLED as usize;
        FIRST_INTERVAL * 2f64.powi(doubled.min(32) as i32)
    }

    /// The logs of all agents of a job, in the order of their numbers, and the names of those that cannot be read.
    pub fn all(job: &Job) -> (Vec<Log>, Vec<String>) {
        let (mut logs, mut unread) = (Vec::new(), Vec::new());
        let entries = job.directory.join("agents").read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION)) {
            match Log::read(&path) {
                Ok(log) => logs.push(log),
                Err(error) => unread.push(format!("{}: {error}", path.display())),
            }
        }
        logs.sort_by_key(|log| log.number);
        unread.sort();
        (logs, unread)
    }
}

impl AgentFile {
    /// Where an agent notes what it sees over time.
    pub(crate) fn log(job: &Job, number: u32) -> std::path::PathBuf {
        job.directory.join("agents").join(format!("{number}.{EXTENSION}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{CoreTime, Life, Phase};

    fn state(rank: u32, life: Life) -> RankState {
        RankState {
            rank: Some(rank),
            size: Some(2),
            host: "n1".into(),
            process: 100 + rank,
            phase: Phase::Running,
            phase_since: 0.0,
            life,
            life_since: None,
            call: None,
            regions: Vec::new(),
            moves: 5,
            moved: 0.0,
            vain: 0,
            cpu: 0.0,
            unmoved: CoreTime::default(),
            comms: Vec::new(),
            epochs: Vec::new(),
            lost: 0,
        }
    }

    fn known(liveness: &str) -> PeerAgent {
        let clock = Some((2e-6, 1e-6));
        PeerAgent { number: 4, host: "n4".into(), liveness: liveness.into(), seconds: 1.0, clock }
    }

    #[test]
    fn what_was_noted_is_read_and_only_changes_are_noted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("3.log");
        let mut writer = HistoryWriter::create(&path, 3, "n1").unwrap();
        let load = [("load1".to_owned(), 0.5, String::new()), ("swap".to_owned(), 1.0, "bytes".to_owned())];
        writer.note(10.0, 7, &[state(0, Life::Runs), state(1, Life::Runs)], &[known("alive")], &load).unwrap();
        assert!(!writer.is_due(10.5) && writer.is_due(11.0) && writer.is_due(5.0));
        writer.note(11.0, 8, &[state(0, Life::Runs), state(1, Life::Stopped)], &[known("dead")], &load).unwrap();
        let log = Log::read(&path).unwrap();
        assert_eq!((log.number, log.host.as_str(), log.damaged, log.moments.len()), (3, "n1", 0, 2));
        assert_eq!((log.moments[0].time, log.moments[0].raw), (10.0, 7));
        assert_eq!(log.moments[0].ranks, [(0, "computes".to_owned()), (1, "computes".to_owned())]);
        assert_eq!(log.moments[0].clocks, [(4, 2e-6, 1e-6)]);
        assert_eq!(log.moments[0].resources, BTreeMap::from([("load1".to_owned(), 0.5)]));
        // Of a clock of a dead node nothing is known.
        let second = &log.moments[1];
        assert_eq!((&second.ranks, &second.clocks), (&vec![(1, "stopped".to_owned())], &Vec::new()));
        assert_eq!((&second.nodes, second.moves), (&vec![(4, "dead".to_owned())], 10));
    }

    #[test]
    fn damaged_lines_are_counted_and_an_incomplete_last_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.log");
        let good = "{\"time\":1.0}\n";
        std::fs::write(&path, format!("{{\"number\":0,\"host\":\"n\"}}\n{good}\u{1}nonsense\n{good}{{\"time\":2"))
            .unwrap();
        let log = Log::read(&path).unwrap();
        assert_eq!((log.moments.len(), log.damaged), (2, 1));
        for wrong in ["", "nonsense\n", "{}\n"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(Log::read(&path).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn moments_grow_apart() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = HistoryWriter::create(&directory.path().join("0.log"), 0, "n").unwrap();
        let mut noted = 0;
        for second in 0..86_400 {
            if writer.is_due(f64::from(second)) {
                writer.note(f64::from(second), 0, &[], &[], &[]).unwrap();
                noted += 1;
            }
        }
        assert!((8_000..12_000).contains(&noted), "{noted} in a day");
    }
}
