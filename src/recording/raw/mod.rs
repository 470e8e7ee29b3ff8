//! One raw file: its header, and where its records are.

pub(super) mod files;
#[allow(dead_code)] // the recorder uses all of it
pub(super) mod format;
pub(super) mod merge;
pub(super) mod reader;
pub(super) mod records;

use crate::recording::raw::format::calls::Function;
use crate::recording::raw::format::{HEADER, MAGIC, buffer, field};
use clc_otf2::MappedFile;
use clc_trace::{Error, Result};
use std::path::{Path, PathBuf};

/// The table of functions that this version of the recorder intercepts.
const TABLE: &str = include_str!("../../recorder/calls.txt");

/// Processes of an application, at most: more are the header of no recording, and would take memory for each.
const MOST_PROCESSES: u32 = 1 << 24;

/// The functions of the table.
pub(super) fn table() -> Vec<Function<'static>> {
    format::calls::functions(TABLE).flatten().collect()
}

/// What the header of a raw file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawFileHeader {
    /// Rank in `MPI_COMM_WORLD`, and its size.
    pub rank: u32,
    /// Number of processes of the application.
    pub size: u32,
    /// Number of the thread in its process.
    pub thread: u32,
    /// Process id on its node.
    pub process: u32,
    /// [`format::RUNNING`], [`format::FINISHED`] or [`format::STOPPED`].
    pub state: u64,
    /// Whether times are nanoseconds already.
    pub nanoseconds: bool,
    /// Identifies the node.
    pub node: u64,
    /// Identifies the machine: the same for nodes that share its counter.
    pub machine: u64,
    /// Handles of the predefined communicators.
    pub world: u64,
    /// `MPI_COMM_SELF`.
    pub own: u64,
    /// Which MPI library's handles these are.
    pub abi: u64,
    /// Handle of requests that are complete from the start; 0 if it tells that itself.
    pub empty: u64,
    /// Another one, of collective operations; 0 if there is none.
    pub empty_collective: u64,
    /// What is known of OpenMP: 0, [`format::RECORDED`] or [`format::UNSEEN`].
    pub openmp: u64,
    /// Counter, raw and real time in nanoseconds: at the start, and the latest if there is one.
    pub first: [u64; 3],
    /// See `first`.
    pub latest: Option<[u64; 3]>,
    /// Name of the node.
    pub host: String,
    /// The MPI library.
    pub library: String,
    /// The command line of the application.
    pub command: String,
}

/// A raw file.
#[derive(Debug)]
pub(super) struct RawFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its header.
    pub header: RawFileHeader,
    map: MappedFile,
    /// End of the records.
    end: usize,
    /// Buffers that were not written to it any more, in their order.
    buffers: Vec<UnwrittenBuffer>,
}

/// A buffer beside a raw file.
#[derive(Debug)]
struct UnwrittenBuffer {
    path: PathBuf,
    map: MappedFile,
    /// End of its records.
    end: usize,
}

impl RawFile {
    /// Opens a raw file.
    ///
    /// # Errors
    /// It cannot be read, is none, or was written by another version.
    pub(super) fn open(path: &Path) -> Result<RawFile> {
        let map = MappedFile::open(path)?;
        let bad = |why: &str| Error::new(why).in_file(path);
        let head = map.get(..HEADER).ok_or_else(|| bad("not a raw recording: it is too short"))?;
        let number = |offset: usize| {
            head.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        let text = |offset: usize, length: usize| {
            let bytes = head.get(offset..offset + length).unwrap_or_default();
            String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
        };
        if number(field::MAGIC) != u64::from_le_bytes(MAGIC) {
            return Err(bad("not a raw recording"));
        }
        let fields = head.get(field::TABLE..field::CHECK).unwrap_or_default();
        if number(field::CHECK) != format::checksum(fields) {
            return Err(bad("the header is damaged"));
        }
        if number(field::TABLE) != format::checksum(TABLE.as_bytes()) {
            return Err(bad("this was written by the recorder of another version of clc-replay")
                .hint("use the version of clc-replay that recorded it"));
        }
        let small = |offset: usize| {
            u32::try_from(number(offset)).ok().filter(|&n| n < 1 << 30).ok_or_else(|| bad("the header is damaged"))
        };
        let anchor = |offset: usize| [number(offset), number(offset + 8), number(offset + 16)];
        let latest = match number(field::LATEST_ANCHOR) {
            1 => Some(anchor(field::ANCHORS[0])),
            2 => Some(anchor(field::ANCHORS[1])),
            _ => None,
        };
        let header = RawFileHeader {
            rank: small(field::RANK)?,
            size: small(field::SIZE)?,
            thread: small(field::THREAD)?,
            process: small(field::PROCESS)?,
            state: number(field::STATE),
            nanoseconds: number(field::TIMER) == format::NANOSECONDS,
            node: number(field::NODE),
            machine: number(field::MACHINE),
            world: number(field::WORLD),
            own: number(field::SELF),
            abi: number(field::ABI),
            empty: number(field::EMPTY),
            empty_collective: number(field::EMPTY_COLLECTIVE),
            openmp: number(field::OPENMP),
            first: anchor(field::FIRST_ANCHOR),
            latest,
            host: text(field::HOST, field::HOST_LENGTH),
            library: text(field::LIBRARY, field::LIBRARY_LENGTH),
            command: text(field::COMMAND, field::COMMAND_LENGTH),
        };
        if header.rank >= header.size {
            return Err(bad("the header is damaged"));
        }
        if header.size > MOST_PROCESSES {
            return Err(bad(&format!(
                "the header says {} processes; no more than {MOST_PROCESSES} are supported",
                header.size
            )));
        }
        let committed = usize::try_from(number(field::COMMITTED)).unwrap_or(usize::MAX);
        let end = HEADER.saturating_add(committed);
        if end > map.len() {
            return Err(bad("the file is shorter than its header says"));
        }
        let buffers = unwritten(path, committed as u64)?;
        Ok(RawFile { path: path.to_path_buf(), header, map, end, buffers })
    }

    /// The pieces with its records, in their order, and the files in which they begin at [`HEADER`].
    pub(super) fn pieces(&self) -> Vec<(&Path, &[u8])> {
        let written = (self.path.as_path(), self.map.get(HEADER..self.end).unwrap_or_default());
        let buffers = self.buffers.iter().map(|buffer| {
            let records = buffer.map.get(HEADER..buffer.end).unwrap_or_default();
            (buffer.path.as_path(), records)
        });
        std::iter::once(written).chain(buffers).collect()
    }
}

/// The buffers beside a file that are not among its `written` bytes, in their order.
fn unwritten(path: &Path, written: u64) -> Result<Vec<UnwrittenBuffer>> {
    let mut found = Vec::new();
    for index in 0.. {
        let path = path.with_extension(format!("{index}.{}", buffer::EXTENSION));
        if !path.exists() {
            break;
        }
        let map = MappedFile::open(&path)?;
        let number = |offset: usize| {
            let bytes = map.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let place = number(buffer::PLACE);
        if place != buffer::NOWHERE && place < written {
            continue;
        }
        let end = usize::try_from(number(buffer::COMMITTED)).unwrap_or(usize::MAX).saturating_add(HEADER);
        if end > map.len() {
            return Err(Error::new("the buffer is shorter than its header says").in_file(&path));
        }
        let sequence = number(buffer::SEQUENCE);
        if sequence > 0 && end > HEADER {
            found.push((sequence, UnwrittenBuffer { path, map, end }));
        }
    }
    found.sort_by_key(|&(sequence, _)| sequence);
    Ok(found.into_iter().map(|(_, buffer)| buffer).collect())
}

impl RawFileHeader {
    /// Whether several requests can have this handle at the same time: they are complete from the start.
    pub(super) fn shares(&self, request: u64) -> bool {
        match self.abi {
            // Its number in Fortran is 1.
            format::OPEN_MPI => request == self.empty || request == 1,
            format::MPI_5 => request == self.empty || request == self.empty_collective,
            // Two bits of a handle of MPICH tell that it stands for a predefined object.
            _ => (request >> 30) & 3 == 1,
        }
    }
}
