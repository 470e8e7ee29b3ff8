//! Reading the records of a raw file, one after the other.

use crate::recording::raw::RawFile;
use crate::recording::raw::format::calls::{Effect, Function, Gives};
use crate::recording::raw::format::{
    CALLS, COMMUNICATOR, FAILED, FUNCTION_ENTER, FUNCTION_LEAVE, HEADER, INTER, JOINED, LEAVE, LONGEST_TEXT, MARKER,
    METRIC, NAME, NAME_OF_COMMUNICATOR, OPENMP, POLLS, PTHREAD, REGION_BEGIN, REGION_END, SEGMENT, TEXT, WINDOW,
    openmp, pthread,
};
use crate::recording::raw::records::{
    Contribution, Gave, Given, JoinedPolls, NewComm, OpenMp, Own, Posted, Pthread, RawRecord, Status,
};
use clc_trace::{Error, MpiRank, Result};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

/// No event is so long before the first or after the last anchor, in ticks of any counter: more than an hour.
const SLACK: u64 = 1 << 44;

/// The records of a file.
#[derive(Debug)]
pub(crate) struct RawRecords<'a> {
    functions: &'a [Function<'static>],
    /// The piece that is being read, and its file.
    path: &'a Path,
    bytes: &'a [u8],
    /// What follows, in reverse order.
    pieces: Vec<(&'a Path, &'a [u8])>,
    /// Times outside of these are not true.
    times: RangeInclusive<u64>,
    position: usize,
    time: u64,
    comm: u64,
    request: u64,
    win: u64,
    address: u64,
    texts: HashMap<u64, Arc<str>>,
    /// The call that has begun: its function, and how many requests it was given.
    open: Option<(usize, usize)>,
    /// Joined polls have been read, which end then.
    polls_end: Option<u64>,
}

/// A zigzag number.
fn signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

impl<'a> RawRecords<'a> {
    /// All records of a file and of its buffers, from the first one on.
    pub(crate) fn of(file: &'a RawFile, functions: &'a [Function<'static>]) -> RawRecords<'a> {
        let mut pieces = file.pieces();
        pieces.retain(|(_, piece)| !piece.is_empty());
        pieces.reverse();
        let (path, bytes) = pieces.pop().unwrap_or((&file.path, &[]));
        let (first, last) = (file.header.first[0], file.header.latest.map_or(0, |[last, ..]| last));
        let span = last.saturating_sub(first).saturating_add(SLACK);
        let times = first.saturating_sub(SLACK)..=first.saturating_add(span);
        RawRecords {
            functions,
            path,
            bytes,
            pieces,
            times,
            position: 0,
            time: 0,
            comm: 0,
            request: 0,
            win: 0,
            address: 0,
            texts: HashMap::new(),
            open: None,
            polls_end: None,
        }
    }
}

impl RawRecords<'_> {
    /// The next record; none at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn next(&mut self) -> Result<Option<RawRecord>> {
        if let Some(end) = self.polls_end.take() {
            return Ok(Some(RawRecord::PollsEnd(end)));
        }
        loop {
            while self.position >= self.bytes.len() {
                let Some(next) = self.pieces.pop() else { return Ok(None) };
                ((self.path, self.bytes), self.position) = (next, 0);
            }
            let start = self.position;
            match self.record() {
                Some(Some(record)) => return Ok(Some(record)),
                Some(None) => {}
                None => {
                    let message = format!("the recording is damaged at byte {}", HEADER + start);
                    return Err(Error::new(message).in_file(self.path));
                }
            }
        }
    }

    /// The next record; `Some(None)` for what only the records that follow need.
    fn record(&mut self) -> Option<Option<RawRecord>> {
        match self.unsigned()? {
            TEXT => {
                let (number, text) = (self.unsigned()?, self.text()?);
                self.texts.insert(number, Arc::from(text));
                Some(None)
            }
            SEGMENT => {
                let time = self.unsigned()?;
                self.time = Some(time).filter(|time| *time == 0 || self.times.contains(time))?;
                (self.comm, self.request, self.win) = (self.unsigned()?, self.unsigned()?, self.unsigned()?);
                self.address = self.unsigned()?;
                let (function, requests) = (self.unsigned()?, usize::try_from(self.unsigned()?).ok()?);
                let function = function.checked_sub(1).and_then(|function| usize::try_from(function).ok());
                self.open = function.map(|function| (function, requests));
                Some(None)
            }
            code => self.event(code).map(Some),
        }
    }

    fn event(&mut self, code: u64) -> Option<RawRecord> {
        match code {
            code @ (LEAVE | FAILED) => {
                let time = self.stamp()?;
                let (function, requests) = self.open.take()?;
                if code == FAILED {
                    return Some(RawRecord::Failed(time));
                }
                Some(RawRecord::Leave(time, self.gave(function, requests)?))
            }
            COMMUNICATOR => self.communicator().map(RawRecord::Comm),
            WINDOW => self.win().map(RawRecord::Window),
            NAME => {
                if self.unsigned()? == NAME_OF_COMMUNICATOR {
                    Some(RawRecord::CommName(self.comm()?, self.text()?))
                } else {
                    Some(RawRecord::WindowName(self.win()?, self.text()?))
                }
            }
            code @ (FUNCTION_ENTER | FUNCTION_LEAVE) => {
                let time = self.stamp()?;
                self.place()?;
                let function = if code == FUNCTION_ENTER { Own::Function } else { Own::FunctionEnd };
                Some(RawRecord::Own(time, function(self.address)))
            }
            code @ (REGION_BEGIN | REGION_END | MARKER | METRIC) => {
                let time = self.stamp()?;
                let number = self.unsigned()?;
                let name = Arc::clone(self.texts.get(&number)?);
                Some(RawRecord::Own(
                    time,
                    match code {
                        REGION_BEGIN => Own::Region(name),
                        REGION_END => Own::RegionEnd(name),
                        MARKER => Own::Marker(name),
                        _ => Own::Metric(name, f64::from_bits(self.unsigned()?.swap_bytes())),
                    },
                ))
            }
            OPENMP => Some(RawRecord::OpenMp(self.stamp()?, self.openmp()?)),
            PTHREAD => Some(RawRecord::Pthread(self.stamp()?, self.pthread()?)),
            JOINED => {
                let begin = self.stamp()?;
                let (until, within) = (self.fixed()?, self.fixed()?);
                let mut counts = [0; POLLS.len()];
                for count in &mut counts {
                    *count = self.fixed()?;
                }
                self.time = begin.checked_add(until).filter(|end| self.times.contains(end))?;
                self.polls_end = Some(self.time);
                Some(RawRecord::Polls(begin, Box::new(JoinedPolls { within, counts })))
            }
            code => {
                let function = usize::try_from(code.checked_sub(CALLS)?).ok()?;
                let effect = self.functions.get(function)?.effect;
                if self.open.is_some() {
                    return None;
                }
                let time = self.stamp()?;
                let given = self.given(effect)?;
                let requests = if let Given::Requests(list) = &given { list.len() } else { 0 };
                self.open = Some((function, requests));
                Some(RawRecord::Enter(function, time, given))
            }
        }
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.position)?;
            self.position += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A number of eight bytes.
    fn fixed(&mut self) -> Option<u64> {
        let bytes = self.bytes.get(self.position..)?.first_chunk()?;
        self.position += bytes.len();
        Some(u64::from_le_bytes(*bytes))
    }

    fn signed(&mut self) -> Option<i64> {
        self.unsigned().map(signed)
    }

    fn stamp(&mut self) -> Option<u64> {
        self.time = self.time.checked_add(self.unsigned()?)?;
        self.times.contains(&self.time).then_some(self.time)
    }

    /// Length of a list, each element of which takes a byte at least.
    fn length(&mut self) -> Option<usize> {
        let length = usize::try_from(self.unsigned()?).ok()?;
        (length <= self.bytes.len() - self.position).then_some(length)
    }

    fn comm(&mut self) -> Option<u64> {
        let difference = signed(self.unsigned()?.wrapping_sub(1));
        self.comm = self.comm.wrapping_add(difference as u64);
        Some(self.comm)
    }

    fn win(&mut self) -> Option<u64> {
        let difference = signed(self.unsigned()?.wrapping_sub(1));
        self.win = self.win.wrapping_add(difference as u64);
        Some(self.win)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.length().filter(|&length| length <= LONGEST_TEXT)?;
        let text = self.bytes.get(self.position..self.position + length)?;
        self.position += length;
        // One line, whatever the program says.
        Some(String::from_utf8_lossy(text).replace(char::is_control, " "))
    }

    fn request(&mut self) -> Option<Option<u64>> {
        let code = self.unsigned()?;
        if code == 0 {
            return Some(None);
        }
        self.request = self.request.wrapping_add(signed(code - 1) as u64);
        Some(Some(self.request))
    }

    fn requests(&mut self) -> Option<Given> {
        let count = self.length()?;
        (0..count).map(|_| self.request()).collect::<Option<_>>().map(Given::Requests)
    }

    fn ranks(&mut self) -> Option<Vec<MpiRank>> {
        let count = self.length()?;
        (0..count).map(|_| u32::try_from(self.unsigned()?).ok().map(MpiRank)).collect()
    }

    fn status(&mut self) -> Option<Status> {
        let (source, tag, bytes) = (self.signed()?, self.signed()?, self.unsigned()?);
        Some(Status { source, tag, bytes: bytes / 2, cancelled: bytes & 1 != 0 })
    }

    fn communicator(&mut self) -> Option<NewComm> {
        let handle = self.comm()?;
        let rank = u32::try_from(self.unsigned()?).ok()?;
        let inter = self.unsigned()? & INTER != 0;
        let members = self.ranks()?;
        // Unknown where it is not in MPI_COMM_WORLD.
        let leader = MpiRank(u32::try_from(self.unsigned()?).unwrap_or(u32::MAX));
        let remote = if inter { Some(self.ranks()?) } else { None };
        Some(NewComm { handle, rank, members, leader, remote })
    }

    fn place(&mut self) -> Option<u64> {
        self.address = self.address.wrapping_add(self.signed()? as u64);
        Some(self.address)
    }

    fn openmp(&mut self) -> Option<OpenMp> {
        let kind = |kind: u64| (kind < openmp::kind::NAMES.len() as u64).then_some(kind);
        let number = |number: u64| (number > 0).then_some(number);
        Some(match self.unsigned()? {
            openmp::FORK => OpenMp::Fork {
                region: number(self.unsigned()?)?,
                threads: u32::try_from(self.unsigned()?).ok()?,
                place: self.place()?,
            },
            openmp::JOIN => OpenMp::Join(self.unsigned()?),
            openmp::TEAM_BEGIN => OpenMp::TeamBegin {
                region: number(self.unsigned()?)?,
                threads: self.unsigned()?,
                index: self.unsigned()?,
            },
            openmp::TEAM_END => OpenMp::TeamEnd(self.unsigned()?),
            openmp::BEGIN => {
                let value = self.unsigned()?;
                OpenMp::Begin(kind(value >> 1)?, if value & 1 != 0 { self.place()? } else { 0 })
            }
            openmp::END => OpenMp::End(kind(self.unsigned()?)?),
            openmp::ACQUIRED => OpenMp::Acquired(self.unsigned()?),
            openmp::RELEASED => OpenMp::Released(self.unsigned()?),
            openmp::TASK_CREATE => OpenMp::TaskCreate(number(self.unsigned()?)?, self.place()?),
            openmp::TASK_SWITCH => OpenMp::TaskSwitch(self.unsigned()?),
            openmp::TASK_COMPLETE => OpenMp::TaskComplete(self.unsigned()?),
            _ => return None,
        })
    }

    fn pthread(&mut self) -> Option<Pthread> {
        let (step, value) = (self.unsigned()?, self.unsigned()?);
        Some(match step {
            pthread::CREATE => Pthread::Create(value),
            pthread::BEGIN => Pthread::Begin(value, self.unsigned()?),
            pthread::END => Pthread::End,
            pthread::CREATED => Pthread::Created(value, self.unsigned()?),
            pthread::WAITED => Pthread::Waited(value),
            _ => return None,
        })
    }

    fn given(&mut self, effect: Effect) -> Option<Given> {
        Some(match effect {
            Effect::Region
            | Effect::Init
            | Effect::InitThread
            | Effect::Finalize
            | Effect::CommName
            | Effect::WinName => Given::Nothing,
            Effect::WinCreate | Effect::WinAllocate => Given::Comm(self.comm()?),
            Effect::WinFree
            | Effect::WinFence
            | Effect::WinComplete
            | Effect::WinWait
            | Effect::WinTest
            | Effect::WinLockAll
            | Effect::WinUnlockAll
            | Effect::WinFlushAll
            | Effect::WinFlushLocalAll => Given::Window(self.win()?, -1, false),
            Effect::WinUnlock | Effect::WinFlush | Effect::WinFlushLocal => {
                Given::Window(self.win()?, self.signed()?, false)
            }
            Effect::WinLock => Given::Window(self.win()?, self.signed()?, self.unsigned()? != 0),
            Effect::WinStart | Effect::WinPost => Given::Epoch(self.win()?, self.ranks()?),
            Effect::Put
            | Effect::Get
            | Effect::Accumulate
            | Effect::GetAccumulate
            | Effect::FetchAndOp
            | Effect::CompareAndSwap => Given::Access(self.win()?, self.signed()?, self.unsigned()?, self.unsigned()?),
            Effect::Send | Effect::Isend | Effect::SendInit | Effect::Sendrecv | Effect::SendrecvReplace => {
                Given::Send(self.signed()?, self.signed()?, self.comm()?, self.unsigned()?)
            }
            Effect::Isendrecv | Effect::IsendrecvReplace => Given::SendReceive(
                self.signed()?,
                self.signed()?,
                self.comm()?,
                self.unsigned()?,
                Posted { source: self.signed()?, tag: self.signed()?, bytes: self.unsigned()? },
            ),
            Effect::Irecv | Effect::RecvInit | Effect::Mprobe | Effect::Improbe => {
                Given::Receive(self.comm()?, self.unsigned()? != 0)
            }
            Effect::Recv
            | Effect::CommCreate
            | Effect::CommIdup
            | Effect::IntercommCreate
            | Effect::IntercommMerge
            | Effect::CommFree => Given::Comm(self.comm()?),
            Effect::CommCreateGroup => Given::Group(self.comm()?, self.signed()?),
            Effect::Wait | Effect::Test | Effect::GetStatus | Effect::Start | Effect::RequestFree => {
                Given::Requests(vec![self.request()?])
            }
            Effect::Waitall
            | Effect::Testall
            | Effect::Waitany
            | Effect::Testany
            | Effect::Waitsome
            | Effect::Testsome
            | Effect::Startall => self.requests()?,
            Effect::Mrecv | Effect::Imrecv => Given::Message(self.unsigned()?),
            _ => Given::Collective(Contribution {
                comm: self.comm()?,
                root: self.signed()?,
                sent: self.unsigned()?,
                received: self.unsigned()?,
                in_place: self.unsigned()? != 0,
            }),
        })
    }

    fn gave(&mut self, function: usize, requests: usize) -> Option<Gave> {
        let gives = self.functions.get(function).map(|function| function.effect.gives(function.form))?;
        let one = |index: usize, status| Gave::Complete(vec![(index, status)]);
        let asked = matches!(
            gives,
            Gives::Flag | Gives::FlagStatus | Gives::FlagStatuses | Gives::FlagIndexed | Gives::FlagMessage
        );
        if asked && self.unsigned()? == 0 {
            return Some(Gave::NotYet);
        }
        Some(match gives {
            Gives::Nothing => Gave::Nothing,
            Gives::Flag => Gave::Happened,
            Gives::Request => Gave::Request(self.request()?),
            Gives::Status | Gives::FlagStatus => one(0, self.status()?),
            Gives::Statuses | Gives::FlagStatuses => self.statuses(requests)?,
            Gives::Indexed | Gives::FlagIndexed => self.indexed()?,
            Gives::Some => {
                // All ones where no request was active.
                let count = self.length()?;
                let mut element = || Some((usize::try_from(self.unsigned()?).ok()?, self.status()?));
                Gave::Complete((0..count).map(|_| element()).collect::<Option<_>>()?)
            }
            Gives::Message | Gives::FlagMessage => Gave::Message(self.unsigned()?),
        })
    }

    fn statuses(&mut self, count: usize) -> Option<Gave> {
        (0..count).map(|index| Some((index, self.status()?))).collect::<Option<_>>().map(Gave::Complete)
    }

    /// A place among the requests, plus one, and its status; without a place there is none that counts.
    fn indexed(&mut self) -> Option<Gave> {
        let (index, status) = (usize::try_from(self.unsigned()?).ok()?, self.status()?);
        Some(Gave::Complete(index.checked_sub(1).map(|index| (index, status)).into_iter().collect()))
    }
}
