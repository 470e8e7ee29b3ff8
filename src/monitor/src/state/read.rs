//! Reads a state file while its process writes it, or after its death.

use super::layout::{self, epoch, field, kind, phase, slot};
use super::{
    CommMembership, CoreTime, EpochKind, Life, MpiCall, Operation, Phase, ProcessStatus, RankState, WindowEpoch,
    function_name, has_target, leaves_sequence, now, on_epoch, table,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a slot that are looked at: all but the places beyond the last region.
const SLOT: usize = slot::REGIONS + 8 * layout::REGIONS;
/// Bytes of the header that change.
const HEADER: usize = field::LATEST_ANCHOR + 8;
/// What the kernel knows of a process that nobody asks about may be so many seconds old: its end is told at once by other means. Chosen by hand: shorter reads two files of
/// the kernel's more often, longer sees later that it was stopped.
const STATUS: f64 = 0.35;
/// How long after a test in vain a process still counts as testing, in seconds. Chosen by hand: shorter calls a program that polls now and then
/// computing, longer shows a test that is over.
const TESTING: f64 = 1.0;

/// The state file of one process.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    file: File,
    host: String,
    process: u32,
    started: u64,
    /// What it was seen to be when it was looked at before: tests in vain, when their number changed, and what the kernel said.
    vain: (u64, f64),
    life: (Life, f64),
    /// What the kernel said, and when.
    kernel: Option<(ProcessStatus, f64)>,
    /// What it has had of a core, as of then.
    had: CoreTime,
    /// Its moves and phase, and what it had had of a core when it was first seen to have made no further one.
    unmoved: ((u64, Phase), Option<CoreTime>),
}

/// Bytes of a part of the file.
struct Words(Vec<u8>);

impl Words {
    fn get(&self, offset: usize) -> u64 {
        let bytes = self.0.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    }
}

/// From readings of the counter to seconds since 1970.
struct CounterClock {
    counter: u64,
    real: u64,
    rate: f64,
}

impl CounterClock {
    fn seconds(&self, counter: u64) -> f64 {
        let passed = counter.wrapping_sub(self.counter) as i64;
        (self.real as f64 + passed as f64 * self.rate) * 1e-9
    }
}

impl StateFile {
    /// Opens it.
    ///
    /// # Errors
    /// It is not readable, is not complete yet, or is that of another version of the recorder.
    pub(crate) fn open(path: &Path, host: &str) -> Result<StateFile> {
        let file = File::open(path)?;
        let mut state = StateFile {
            path: path.to_owned(),
            file,
            host: host.to_owned(),
            process: 0,
            started: 0,
            vain: (0, 0.0),
            life: (Life::Runs, now()),
            kernel: None,
            had: CoreTime::default(),
            unmoved: ((u64::MAX, Phase::Init), None),
        };
        let header = state.part(0, HEADER)?;
        let wrong = |what: &str| Err(Error::new(ErrorKind::InvalidData, format!("{}: {what}", path.display())));
        if header.get(field::MAGIC) != layout::MAGIC {
            return wrong("not a state file, or not complete yet");
        }
        if header.get(field::TABLE) != table() {
            return wrong("written by another version of the recorder");
        }
        state.process = u32::try_from(header.get(field::PROCESS)).unwrap_or(0);
        state.started = header.get(field::STARTED);
        Ok(state)
    }

    /// Process id.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// When the process was started, in ticks since boot.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn part(&self, offset: usize, length: usize) -> Result<Words> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset as u64)?;
        Ok(Words(bytes))
    }

    /// Somebody knows when it ended.
    pub(crate) fn ended(&mut self, time: Option<f64>) {
        if let Some(time) = time {
            self.life = (Life::Gone, time);
        }
    }

    /// Whether it lives and moves: what the call is, is not looked at.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn pulse(&mut self) -> Result<RankState> {
        let header = self.part(0, HEADER)?;
        Ok(self.outline(&header, &clock(&header), STATUS)?.0)
    }

    /// What the process is doing now, without its communicators: enough for [`RankState::word`].
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn glance(&mut self) -> Result<RankState> {
        self.look_with(None)
    }

    /// What the process is doing now. Of its communicators, those that the call is about and `wanted` ones are told.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn look(&mut self, wanted: &BTreeSet<u64>) -> Result<RankState> {
        self.look_with(Some(wanted))
    }

    fn look_with(&mut self, wanted: Option<&BTreeSet<u64>>) -> Result<RankState> {
        let header = self.part(0, HEADER)?;
        let clock = clock(&header);
        let (mut state, calls) = self.outline(&header, &clock, 0.0)?;
        let comms = if wanted.is_some() { self.comms()? } else { Vec::new() };
        let tests = now() - self.vain.1 < TESTING;
        // Of several threads the one that has waited longest is the one to look at.
        let inside = |words: &&Words| words.get(slot::CALL) & layout::INSIDE != 0;
        let waiting = calls.iter().filter(inside).min_by_key(|words| words.get(slot::SINCE));
        let testing = |words: &&Words| tests && words.get(slot::VAIN) != 0 && tries(&function_of(words));
        let shown = waiting.or_else(|| calls.iter().find(testing));
        let place = shown.and_then(|shown| calls.iter().position(|words| std::ptr::eq(words, shown))).unwrap_or(0);
        if matches!(state.phase, Phase::Running) {
            state.call = shown.map(|words| self.call(words, &clock, &comms, tests && words.get(slot::VAIN) != 0));
        }
        if let Some(words) = calls.get(place) {
            state.regions = self.regions(words);
        }
        let about: BTreeSet<u64> = state.comms_of_call().collect();
        let told = |comm: &u64| {
            *comm == layout::WORLD || about.contains(comm) || wanted.is_some_and(|wanted| wanted.contains(comm))
        };
        let windows = comms.iter().filter(|(_, comm)| comm.window && told(&comm.comm));
        let windows: Vec<(u64, u64)> = windows.map(|(handle, comm)| (*handle, comm.comm)).collect();
        if !windows.is_empty() {
            state.epochs = self.epochs(&windows, &clock)?;
        }
        state.comms = comms.into_iter().map(|(_, comm)| comm).filter(|comm| told(&comm.comm)).collect();
        for comm in &mut state.comms {
            let place = (comm.sequence / layout::NAMED) as usize;
            comm.sequence %= layout::NAMED;
            if (1..=layout::COMM_NAME_PLACES).contains(&place) {
                let place = layout::COMM_NAMES + (place - 1) * layout::NAME;
                comm.name = Some(text_of(&self.part(place + 8, layout::NAME - 8)?.0)).filter(|name| !name.is_empty());
            }
        }
        Ok(state)
    }

    /// Everything but its call, its regions and its communicators; and the slots of its threads.
    /// What the kernel knows of it may be so many seconds old.
    fn outline(&mut self, header: &Words, clock: &CounterClock, old: f64) -> Result<(RankState, Vec<Words>)> {
        let fresh = self.kernel.is_some_and(|(_, looked)| (0.0..old).contains(&(now() - looked)));
        let kernel = match self.kernel {
            Some((kernel, _)) if fresh => kernel,
            _ => ProcessStatus::look(self.process, self.started),
        };
        if !fresh {
            self.kernel = Some((kernel, now()));
        }
        if kernel.life != self.life.0 && self.life.0 != Life::Gone {
            self.life = (kernel.life, now());
        }
        let threads = (header.get(field::THREADS) as usize).min(layout::THREADS);
        let known = |number: u64| u32::try_from(number).ok();
        let mut state = RankState {
            rank: known(header.get(field::RANK)),
            size: known(header.get(field::SIZE)),
            host: self.host.clone(),
            process: self.process,
            phase: match header.get(field::PHASE) {
                phase::INIT => Phase::Init,
                phase::RUNNING => Phase::Running,
                phase::FINALIZING => Phase::Finalizing,
                phase::FINALIZED => Phase::Finalized,
                _ => Phase::Unwatched,
            },
            phase_since: clock.seconds(header.get(field::PHASE_SINCE)),
            life: self.life.0,
            life_since: (self.life.0 != Life::Runs).then_some(self.life.1),
            call: None,
            regions: Vec::new(),
            moves: 0,
            moved: clock.seconds(header.get(field::PHASE_SINCE)),
            vain: 0,
            cpu: kernel.cpu,
            unmoved: CoreTime::default(),
            comms: Vec::new(),
            epochs: Vec::new(),
            lost: header.get(field::LOST),
        };
        let mut calls = Vec::new();
        for thread in 0..threads {
            let words = self.part(layout::SLOTS + thread * layout::SLOT, SLOT)?;
            state.moves += words.get(slot::CALL) >> layout::COUNT;
            state.vain += words.get(slot::VAIN);
            state.moved = state.moved.max(clock.seconds(words.get(slot::MOVED)));
            calls.push(words);
        }
        if state.vain != self.vain.0 {
            self.vain = (state.vain, now());
        }
        // From when it is first seen not to move on.
        if !fresh || self.unmoved.0 != (state.moves, state.phase) || self.unmoved.1.is_none() {
            self.had = self.core_time((state.moves, state.phase), state.cpu);
        }
        state.unmoved = self.had;
        Ok((state, calls))
    }

    /// What the process has had of a core since it was seen not to move. A process that moves is not asked about.
    fn core_time(&mut self, moves: (u64, Phase), used: f64) -> CoreTime {
        if self.unmoved.0 != moves {
            self.unmoved = (moves, None);
            return CoreTime::default();
        }
        let Some(now) = CoreTime::look(self.process, used) else { return CoreTime::default() };
        now.since(*self.unmoved.1.get_or_insert(now))
    }

    /// All communicators that the process is a member of, with their handles. The number of operations still has that of the name.
    fn comms(&self) -> Result<Vec<(u64, CommMembership)>> {
        let words = self.part(layout::COMMS, layout::COMM_PLACES * layout::COMM)?;
        let places = (0..layout::COMM_PLACES).map(|place| place * layout::COMM);
        let found = places.filter_map(|place| {
            let [handle, comm, sequence, ranks] = [0, 8, 16, 24].map(|offset| words.get(place + offset));
            let membership = CommMembership {
                comm,
                rank: (ranks >> 32) as u32,
                size: (ranks & (layout::FILE - 1)) as u32,
                inter: ranks & layout::INTER != 0,
                second: ranks & layout::SECOND != 0,
                window: ranks & layout::WINDOW != 0,
                file: ranks & layout::FILE != 0,
                name: None,
                sequence,
            };
            (handle > layout::FREED).then_some((handle, membership))
        });
        Ok(found.collect())
    }

    /// Epochs of these windows, given by their handles and identities.
    fn epochs(&self, windows: &[(u64, u64)], clock: &CounterClock) -> Result<Vec<WindowEpoch>> {
        let words = self.part(layout::EPOCHS, layout::EPOCH_PLACES * layout::EPOCH)?;
        let found = (0..layout::EPOCH_PLACES).filter_map(|place| {
            let get = |offset: usize| words.get(place * layout::EPOCH + offset);
            let (_, window) = *windows.iter().find(|(handle, _)| *handle == get(epoch::WIN))?;
            let kind = match get(epoch::KIND) & u64::from(u32::MAX) {
                kind::ACCESS => EpochKind::Access,
                kind::EXPOSURE => EpochKind::Exposure,
                kind::ALL => EpochKind::All,
                kind::SHARED => EpochKind::Shared,
                kind::EXCLUSIVE => EpochKind::Exclusive,
                _ => return None,
            };
            let count = usize::try_from(get(epoch::COUNT)).unwrap_or(0).min(layout::MEMBERS);
            let member = |k: usize| (get(epoch::MEMBERS + 8 * (k / 2)) >> (32 * (k % 2))) as u32;
            Some(WindowEpoch {
                window,
                kind,
                target: (get(epoch::KIND) >> 32) as u32 as i32,
                members: (0..count).map(member).collect(),
                since: clock.seconds(get(epoch::SINCE)),
                ended: Some(get(epoch::ENDED)).filter(|&ended| ended != 0).map(|ended| clock.seconds(ended)),
            })
        });
        Ok(found.collect())
    }

    fn call(&self, words: &Words, clock: &CounterClock, comms: &[(u64, CommMembership)], tests: bool) -> MpiCall {
        let identity = |handle: u64| comms.iter().find(|(known, _)| *known == handle).map(|(_, comm)| comm.comm);
        let operation = |function: u64, [comm, peer, sequence]: [u64; 3]| {
            let function = function_name(function);
            let unknown = comm == 0;
            Operation {
                comm: identity(comm),
                peer: if unknown || on_epoch(&function) && !has_target(&function) {
                    layout::NOBODY
                } else {
                    (peer >> 32) as u32 as i32
                },
                tag: peer as u32 as i32,
                sequence: if unknown || leaves_sequence(&function) { 0 } else { sequence },
                function,
            }
        };
        let call = words.get(slot::CALL);
        let function = call & (layout::INSIDE - 1);
        let name = function_name(function);
        let on_requests = ["MPI_Wait", "MPI_Test", "MPI_Start"].iter().any(|start| name.starts_with(start));
        let fields = [slot::COMM, slot::PEER, slot::SEQUENCE].map(|offset| words.get(offset));
        let count = usize::try_from(words.get(slot::WAITS)).unwrap_or(0).min(layout::HANDLES);
        let handles = (0..count).map(|k| words.get(slot::REQUESTS + 8 * k)).take_while(|&handle| handle != 0);
        let waits = handles.filter_map(|handle| {
            let place = layout::place_of(handle, layout::REQUEST_PLACES) * layout::REQUEST;
            let request = self.part(layout::REQUESTS + place, layout::REQUEST).ok()?;
            let fields = [16, 24, 32].map(|offset| request.get(offset));
            (request.get(0) == handle).then(|| operation(request.get(8), fields))
        });
        let polls = tests && (call & layout::INSIDE == 0 || tries(&name));
        MpiCall {
            since: clock.seconds(words.get(if polls { slot::MOVED } else { slot::SINCE })),
            what: (fields[0] != 0).then(|| operation(function, fields)),
            waits: if on_requests { waits.collect() } else { Vec::new() },
            requests: if on_requests { words.get(slot::WAITS) } else { 0 },
            function: name,
            polls,
        }
    }

    fn regions(&self, words: &Words) -> Vec<String> {
        let depth = usize::try_from(words.get(slot::DEPTH)).unwrap_or(0).min(layout::REGIONS);
        let name = |region: u64| {
            if region == 0 || region > layout::NAME_PLACES as u64 {
                return format!("0x{region:x}");
            }
            let place = layout::NAMES + (region as usize - 1) * layout::NAME;
            self.part(place + 8, layout::NAME - 8).map(|text| text_of(&text.0)).unwrap_or_default()
        };
        (0..depth).map(|k| name(words.get(slot::REGIONS + 8 * k))).collect()
    }
}

/// Name of the function of the current or last call of a thread.
fn function_of(slot: &Words) -> String {
    function_name(slot.get(slot::CALL) & (layout::INSIDE - 1))
}

/// Whether a function looks whether something has come, and returns at once.
fn tries(function: &str) -> bool {
    function.starts_with("MPI_Test")
        || matches!(function, "MPI_Iprobe" | "MPI_Improbe" | "MPI_Win_test" | "MPI_Request_get_status")
}

fn clock(header: &Words) -> CounterClock {
    let anchor = |offset: usize| [0, 8, 16].map(|k| header.get(offset + k));
    let first = anchor(field::FIRST_ANCHOR);
    let latest = match header.get(field::LATEST_ANCHOR) {
        number @ (1 | 2) => anchor(field::ANCHORS[number as usize - 1]),
        _ => first,
    };
    let [ticks, raw] = [0, 1].map(|k| latest[k].wrapping_sub(first[k]) as f64);
    let rate = if ticks > 0.0 && raw > 0.0 { raw / ticks } else { 1.0 };
    CounterClock { counter: latest[0], real: latest[2], rate }
}

/// A text that ends in zero; what would confuse a terminal is left out.
fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
