//! What this process is doing right now, in a file that is mapped into memory: for whoever watches the job (`clc-replay watch`). A process that is stuck need not
//! be asked. The file is described in `state/layout.rs` of the monitor.
//!
//! A call costs a handful of stores into one cache line.

mod agent;
mod calls;
mod communicators;
mod epochs;
mod slots;

pub(crate) use communicators::NewMembership;
pub(crate) use slots::Slot;

use crate::calls::TABLE;
use crate::clock;
use crate::file::RawFile;
use crate::layout::{self, field, phase, slot};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// The state file of this process.
pub(crate) struct Board {
    file: RawFile,
    /// How often communicators that are told by their members alone have been made.
    made: Mutex<BTreeMap<u64, u64>>,
}

// SAFETY: the mapping belongs to the process and is never removed; what is in it is accessed as atomic numbers, texts before anybody else knows of them.
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

static BOARD: OnceLock<Option<Board>> = OnceLock::new();

/// The state file, if the job is monitored.
#[inline]
pub(crate) fn board() -> Option<&'static Board> {
    BOARD.get()?.as_ref()
}

/// When `MPI_Init` is called: makes the file if the job is monitored, and starts the agent of the node if this is its first process.
#[cold]
pub(crate) fn begin() {
    BOARD.get_or_init(|| {
        let directory = std::env::var_os("CLC_RECORDER_STATE").filter(|name| !name.is_empty())?;
        let directory = PathBuf::from(directory).join(std::ffi::OsString::from(agent::host()));
        let board = Board::create(&directory).ok()?;
        agent::start(&directory);
        admit_agent();
        Some(board)
    });
}

/// Lets the agent read the stacks of this process where only parents may look into others (`kernel.yama.ptrace_scope` 1, as on Ubuntu): it is no parent of any process, and that of another process of the
/// node, so any process of the user may. Other kernels do not know this call.
fn admit_agent() {
    // SAFETY: the call takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

impl Board {
    fn create(directory: &Path) -> std::io::Result<Board> {
        std::fs::create_dir_all(directory)?;
        let process = std::process::id();
        let path = directory.join(format!("{process}.{}", layout::EXTENSION));
        let _ = std::fs::remove_file(&path);
        let file = RawFile::create(&path, layout::SIZE.next_multiple_of(4096), layout::SIZE.next_multiple_of(4096))?;
        // Kept as long as this process is there: without it, and without an agent, what is left of a job is removed by the next one.
        // SAFETY: the descriptor is open.
        unsafe { libc::flock(file.descriptor, libc::LOCK_SH | libc::LOCK_NB) };
        let board = Board { file, made: Mutex::default() };
        let launched = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| std::env::var(name).ok()?.trim().parse::<u64>().ok())
                .unwrap_or(layout::UNKNOWN)
        };
        let rank = launched(&["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"]);
        let size = launched(&["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"]);
        let anchor = clock::anchor();
        for (offset, value) in [
            (field::TABLE, TABLE),
            (field::PROCESS, u64::from(process)),
            (field::STARTED, started().unwrap_or(0)),
            (field::RANK, rank),
            (field::SIZE, size),
            (field::PHASE, phase::INIT),
            (field::PHASE_SINCE, anchor[0]),
        ] {
            board.word(offset).store(value, Ordering::Relaxed);
        }
        for (i, value) in anchor.into_iter().enumerate() {
            board.word(field::FIRST_ANCHOR + 8 * i).store(value, Ordering::Relaxed);
        }
        board.file.text(field::COMMAND, field::COMMAND_LENGTH, &command());
        board.word(field::MAGIC).store(layout::MAGIC, Ordering::Release);
        Ok(board)
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= layout::SIZE && offset.is_multiple_of(8));
        // SAFETY: the whole file has been allocated, it is aligned to a page, and the mapping is never removed.
        unsafe { &*self.file.base.add(offset).cast::<AtomicU64>() }
    }

    /// A phase begins.
    #[cold]
    pub(crate) fn phase(&self, phase: u64) {
        self.word(field::PHASE_SINCE).store(clock::before(), Ordering::Relaxed);
        self.word(field::PHASE).store(phase, Ordering::Release);
    }

    /// MPI has said who this is.
    #[cold]
    pub(crate) fn initialised(&self, rank: u64, size: u64, [world, own]: [u64; 2]) {
        self.word(field::RANK).store(rank, Ordering::Relaxed);
        self.word(field::SIZE).store(size, Ordering::Relaxed);
        self.add(world, layout::WORLD, rank << 32 | size);
        self.add(own, layout::SELF, 1);
        // A second one: a process that is stopped soon has a rate, too.
        self.anchor();
        self.phase(phase::RUNNING);
    }

    /// Keeps a later anchor.
    pub(crate) fn anchor(&self) {
        let latest = self.word(field::LATEST_ANCHOR);
        let next = if latest.load(Ordering::Relaxed) == 1 { 2 } else { 1 };
        for (i, value) in clock::anchor().into_iter().enumerate() {
            self.word(field::ANCHORS[next - 1] + 8 * i).store(value, Ordering::Relaxed);
        }
        latest.store(next as u64, Ordering::Release);
    }

    /// A place for a thread that has none.
    #[cold]
    pub(crate) fn new_slot(&self) -> Slot {
        let number = self.word(field::THREADS).fetch_add(1, Ordering::Relaxed) as usize;
        if number >= layout::THREADS {
            self.word(field::LOST).fetch_add(1, Ordering::Relaxed);
            return Slot::NONE;
        }
        // SAFETY: the slot lies in the mapped file.
        let slot = Slot(unsafe { self.file.base.add(layout::SLOTS + number * layout::SLOT) });
        slot.set(slot::MOVED, clock::before());
        slot
    }

    /// The place of the name of a region plus 1; 0 if there is no room for it.
    pub(crate) fn name(&self, name: &[u8]) -> u64 {
        self.name_in(layout::NAMES, layout::NAME_PLACES, name)
    }

    /// The same in a table of so many names.
    fn name_in(&self, names: usize, places: usize, name: &[u8]) -> u64 {
        let hash = name
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
            .max(2);
        let first = layout::place_of(hash, places);
        for probe in 0..16 {
            let number = (first + probe) & (places - 1);
            let place = names + number * layout::NAME;
            let word = self.word(place);
            let mut found = word.load(Ordering::Acquire);
            if found == 0 {
                match word.compare_exchange(0, hash, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        let count = name.len().min(layout::NAME - 9);
                        // SAFETY: the place lies in the file, and is this thread's from now on.
                        unsafe {
                            std::ptr::copy_nonoverlapping(name.as_ptr(), self.file.base.add(place + 8), count);
                        }
                        found = hash;
                    }
                    Err(other) => found = other,
                }
            }
            if found == hash {
                return number as u64 + 1;
            }
        }
        0
    }
}

/// Ticks since boot at which this process was started.
fn started() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Its name may contain anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

fn command() -> Vec<u8> {
    let mut text = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    while text.last() == Some(&0) {
        text.pop();
    }
    text.iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect()
}
