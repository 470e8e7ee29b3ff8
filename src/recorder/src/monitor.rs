//! What this process is doing right now, in a file that is mapped into memory: for whoever watches the job (`clc-replay watch`). A process that is stuck need not
//! be asked. The file is described in `state/layout.rs` of the monitor.
//!
//! A call costs a handful of stores into one cache line.

use crate::arguments::Arguments;
use crate::calls::{Call, TABLE};
use crate::clock;
use crate::file::RawFile;
use crate::format::Effect;
use crate::layout::{self, epoch, field, kind, phase, slot};
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The state file of this process.
pub struct Board {
    file: RawFile,
    /// How often communicators that are told by their members alone have been made.
    made: Mutex<BTreeMap<u64, u64>>,
}

// SAFETY: the mapping belongs to the process and is never removed; what is in it is accessed as atomic numbers, texts before anybody else knows of them.
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

static BOARD: OnceLock<Option<Board>> = OnceLock::new();

/// The state file, if the job is watched.
#[inline]
pub fn board() -> Option<&'static Board> {
    BOARD.get()?.as_ref()
}

/// The place of a thread in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Slot(*const u8);

impl Slot {
    /// Of a thread that has not asked for one.
    pub const UNKNOWN: Slot = Slot(std::ptr::null());
    /// Of a thread for which there is none.
    pub const NONE: Slot = Slot(std::ptr::without_provenance(1));

    /// Whether there is one.
    #[inline]
    pub fn is_there(self) -> bool {
        self.0.addr() > 1
    }
}

/// A communicator that this process has become a member of, with what all its members know of it.
pub struct NewMembership {
    /// Its handle.
    pub handle: u64,
    /// Rank of this process in it, and number of members.
    pub rank: usize,
    /// See above.
    pub size: usize,
    /// Global rank of its first member, and a number that tells its members.
    pub first: u64,
    /// See above.
    pub members: u64,
    /// The same of the other group.
    pub others: Option<(u64, u64)>,
}

/// When `MPI_Init` is called: makes the file if the job is watched, and starts the agent of the node if this is its first process.
#[cold]
pub fn begin() {
    BOARD.get_or_init(|| {
        let directory = std::env::var_os("CLC_RECORDER_STATE").filter(|name| !name.is_empty())?;
        let directory = PathBuf::from(directory).join(std::ffi::OsString::from(host()));
        let board = Board::create(&directory).ok()?;
        start_agent(&directory);
        Some(board)
    });
}

/// Name of the node, as a file can have it.
fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: it is as long as said; the last byte stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).replace('/', "_")
}

/// The first process of a node starts its agent; the others find its mark.
fn start_agent(directory: &Path) {
    let (Some(program), Some(job)) = (std::env::var_os("CLC_RECORDER_AGENT"), std::env::var_os("CLC_RECORDER_JOB"))
    else {
        return;
    };
    // Locked by the agent as long as it is there, by the descriptor that it inherits.
    let Ok(mark) = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(directory.join("agent"))
    else {
        return;
    };
    // SAFETY: the descriptor is open.
    if unsafe { libc::flock(mark.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        return;
    }
    // SAFETY: the descriptor is open; the new one is not closed when a program is executed.
    let inherited = unsafe { libc::dup(mark.as_raw_fd()) };
    remove_old(directory);
    // It makes itself independent of this process and returns at once. It is neither recorded nor a part of the application.
    let started = Command::new(program)
        .arg("agent")
        .arg("--detach")
        .arg(job)
        .env_remove("LD_PRELOAD")
        .env_remove("CLC_RECORDER_DIR")
        .env_remove("CLC_RECORDER_STATE")
        .env("CLC_RECORDER_LOCK", inherited.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // SAFETY: it was opened here, and is not used any more.
    unsafe { libc::close(inherited) };
    if !started.is_ok_and(|status| status.success()) {
        crate::say("the agent that watches this node cannot be started; the program goes on");
    }
}

/// States of an earlier job in the same place, whose agent was killed.
fn remove_old(directory: &Path) {
    for path in directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()) {
        let process = path.file_stem().and_then(|name| name.to_str()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = std::fs::remove_file(path);
        }
    }
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
    pub fn phase(&self, phase: u64) {
        self.word(field::PHASE_SINCE).store(clock::before(), Ordering::Relaxed);
        self.word(field::PHASE).store(phase, Ordering::Release);
    }

    /// MPI has said who this is.
    #[cold]
    pub fn initialised(&self, rank: u64, size: u64, [world, own]: [u64; 2]) {
        self.word(field::RANK).store(rank, Ordering::Relaxed);
        self.word(field::SIZE).store(size, Ordering::Relaxed);
        self.add(world, layout::WORLD, rank << 32 | size);
        self.add(own, layout::SELF, 1);
        // A second one: a process that is stopped soon has a rate, too.
        self.anchor();
        self.phase(phase::RUNNING);
    }

    /// Keeps a later anchor.
    pub fn anchor(&self) {
        let latest = self.word(field::LATEST_ANCHOR);
        let next = if latest.load(Ordering::Relaxed) == 1 { 2 } else { 1 };
        for (i, value) in clock::anchor().into_iter().enumerate() {
            self.word(field::ANCHORS[next - 1] + 8 * i).store(value, Ordering::Relaxed);
        }
        latest.store(next as u64, Ordering::Release);
    }

    /// A place for a thread that has none.
    #[cold]
    pub fn new_slot(&self) -> Slot {
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

    /// A call begins, at a time; its communicator, if it has one, is `comm`. That the thread is inside of it is stored last.
    ///
    /// # Safety
    /// The arguments are those of the function.
    #[inline(always)]
    pub unsafe fn enter(&self, slot: Slot, call: &Call, given: &Arguments, comm: u64, now: u64) {
        // SAFETY: positions are those of the C binding, and of types that the effect says.
        unsafe {
            let peer = |from: usize| {
                let (rank, tag) = (given.int(from), given.int(from + 1));
                let rank = if given.abi.is_nobody(rank) { layout::NOBODY } else { rank.max(-1) as i32 };
                slot.set(slot::PEER, (rank as u32 as u64) << 32 | u64::from(tag.max(-1) as u32));
            };
            let envelope = |from: usize| {
                slot.set(slot::COMM, comm);
                peer(from);
                slot.set(slot::SEQUENCE, 0);
            };
            match call.effect {
                Effect::Send | Effect::Isend | Effect::SendInit | Effect::Recv | Effect::Irecv | Effect::RecvInit => {
                    envelope(3)
                }
                Effect::Sendrecv | Effect::Isendrecv => envelope(8),
                Effect::SendrecvReplace | Effect::IsendrecvReplace => envelope(5),
                Effect::Mprobe | Effect::Improbe => envelope(0),
                // Who reads it knows that probes are no collective operations: one that is repeated is to cost little.
                Effect::Region if call.looks => {
                    slot.set(slot::COMM, given.comm(2));
                    peer(0);
                }
                Effect::WinFence | Effect::WinFree => {
                    let win = if call.effect == Effect::WinFence { given.win(1) } else { given.new_win(0) };
                    slot.set(slot::COMM, win);
                    slot.set(slot::PEER, u64::from(layout::NOBODY as u32) << 32);
                    slot.set(slot::SEQUENCE, self.count(win));
                }
                // Who reads it knows which of these have a target, and that none is a collective operation.
                Effect::WinStart | Effect::WinPost => slot.set(slot::COMM, given.win(2)),
                Effect::WinComplete
                | Effect::WinWait
                | Effect::WinTest
                | Effect::WinUnlockAll
                | Effect::WinFlushAll
                | Effect::WinFlushLocalAll => slot.set(slot::COMM, given.win(0)),
                Effect::WinLockAll => slot.set(slot::COMM, given.win(1)),
                Effect::WinUnlock | Effect::WinFlush | Effect::WinFlushLocal => {
                    slot.set(slot::COMM, given.win(1));
                    slot.set(slot::PEER, target(given, 0) << 32);
                }
                Effect::WinLock => {
                    slot.set(slot::COMM, given.win(3));
                    let exclusive = given.abi.is_exclusive(given.int(0));
                    slot.set(slot::PEER, target(given, 1) << 32 | u64::from(exclusive));
                }
                // Without a communicator nobody looks at peer and sequence number.
                Effect::Wait | Effect::Test | Effect::Start | Effect::RequestFree => {
                    slot.set(slot::COMM, 0);
                    slot.set(slot::WAITS, 1);
                    slot.set(slot::REQUESTS, given.request(0, 0).unwrap_or(0));
                }
                Effect::Waitall
                | Effect::Testall
                | Effect::Waitany
                | Effect::Testany
                | Effect::Waitsome
                | Effect::Testsome
                | Effect::Startall => {
                    slot.set(slot::COMM, 0);
                    slot.waits(given);
                }
                effect if is_collective(effect) => {
                    let root = match effect {
                        Effect::Bcast => given.int(3),
                        Effect::Gather | Effect::Scatter => given.int(6),
                        Effect::Gatherv | Effect::Scatterv => given.int(7),
                        Effect::Reduce => given.int(5),
                        _ => -1,
                    };
                    let root = if root >= 0 { root as i32 } else { layout::NOBODY };
                    slot.set(slot::COMM, comm);
                    slot.set(slot::PEER, u64::from(root as u32) << 32);
                    slot.set(slot::SEQUENCE, self.count(comm));
                }
                Effect::CommCreateGroup | Effect::IntercommCreate => {
                    slot.set(slot::COMM, comm);
                    slot.set(slot::PEER, u64::from(layout::NOBODY as u32) << 32);
                    slot.set(slot::SEQUENCE, 0);
                }
                _ => slot.set(slot::COMM, 0),
            }
        }
        slot.set(slot::SINCE, now);
        let calls = slot.get(slot::CALL) & !((1 << layout::COUNT) - 1);
        slot.set(slot::CALL, calls | layout::INSIDE | (call.number + 1));
    }

    /// The call has ended; it `did` something, or was a test in vain. `request` is the one that it has made.
    #[inline(always)]
    pub fn leave(&self, slot: Slot, did: bool, request: Option<u64>, now: u64) {
        let call = slot.get(slot::CALL) & !layout::INSIDE;
        if let Some(request) = request {
            let place = layout::REQUESTS + layout::place_of(request, layout::REQUEST_PLACES) * layout::REQUEST;
            let function = call & (layout::INSIDE - 1);
            for (i, value) in [request, function, slot.get(slot::COMM), slot.get(slot::PEER), slot.get(slot::SEQUENCE)]
                .into_iter()
                .enumerate()
            {
                self.word(place + 8 * i).store(value, Ordering::Relaxed);
            }
        }
        if did {
            slot.set(slot::MOVED, now);
            slot.set(slot::CALL, call.wrapping_add(1 << layout::COUNT));
        } else {
            slot.set(slot::VAIN, slot.get(slot::VAIN).wrapping_add(1));
            slot.set(slot::CALL, call);
        }
    }

    /// Where a communicator is in the file.
    #[inline]
    fn find(&self, handle: u64) -> Option<usize> {
        let first = layout::place_of(handle, layout::COMM_PLACES);
        let place = layout::COMMS + first * layout::COMM;
        if self.word(place).load(Ordering::Relaxed) == handle { Some(place) } else { self.find_from(handle, first) }
    }

    #[cold]
    fn find_from(&self, handle: u64, first: usize) -> Option<usize> {
        for probe in 0..layout::PROBES {
            let place = layout::COMMS + ((first + probe) & (layout::COMM_PLACES - 1)) * layout::COMM;
            match self.word(place).load(Ordering::Relaxed) {
                0 => return None,
                found if found == handle => return Some(place),
                _ => {}
            }
        }
        None
    }

    /// A collective operation begins: its number; 0 if the communicator is not known.
    #[inline]
    fn count(&self, handle: u64) -> u64 {
        let Some(place) = self.find(handle) else { return 0 };
        let word = self.word(place + 16);
        // MPI allows only one thread at a time to be here.
        let number = word.load(Ordering::Relaxed) + 1;
        word.store(number, Ordering::Relaxed);
        number
    }

    fn add(&self, handle: u64, identity: u64, rank_and_size: u64) {
        let first = layout::place_of(handle, layout::COMM_PLACES);
        let _one_at_a_time = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        for probe in 0..layout::PROBES {
            let place = layout::COMMS + ((first + probe) & (layout::COMM_PLACES - 1)) * layout::COMM;
            let found = self.word(place).load(Ordering::Relaxed);
            if matches!(found, 0 | layout::FREED) || found == handle {
                self.word(place + 8).store(identity, Ordering::Relaxed);
                self.word(place + 16).store(0, Ordering::Relaxed);
                self.word(place + 24).store(rank_and_size, Ordering::Relaxed);
                self.word(place).store(handle, Ordering::Release);
                return;
            }
        }
        self.word(field::LOST).fetch_add(1, Ordering::Relaxed);
    }

    /// This process has become a member of a communicator, by the call that the thread is in, on another one.
    #[cold]
    pub fn joined(&self, slot: Slot, effect: Effect, parent: u64, new: &NewMembership) {
        let of_parent = self.find(parent).map_or(0, |place| self.word(place + 8).load(Ordering::Relaxed));
        let identity = match (effect, new.others) {
            // Told by its members, and how often the same have made one.
            (Effect::CommCreateGroup, _) => self.nth(layout::identity(&[3, new.members])),
            (_, Some((first, members))) => {
                let own = (new.first, new.members);
                let (one, other) = if own.0 < first { (own, (first, members)) } else { ((first, members), own) };
                let both = layout::identity(&[4, one.1, other.1]);
                if effect == Effect::IntercommCreate {
                    self.nth(both)
                } else {
                    layout::identity(&[5, of_parent, slot.get(slot::SEQUENCE), both])
                }
            }
            // All members of the other one have called it in the same order.
            _ => layout::identity(&[6, of_parent, slot.get(slot::SEQUENCE), new.first]),
        };
        let group = match new.others {
            Some((first, _)) if first < new.first => layout::INTER | layout::SECOND,
            Some(_) => layout::INTER,
            None => 0,
        };
        let size = new.size as u64 | group;
        self.add(new.handle, identity, (new.rank as u64) << 32 | size);
    }

    /// This process has a part of a window now, by the call that the thread is in: fences of windows are counted as collective operations of communicators are.
    #[cold]
    pub fn window(&self, slot: Slot, handle: u64) {
        let Some(parent) = self.find(slot.comm()) else { return };
        let [of_parent, ranks] = [8, 24].map(|offset| self.word(parent + offset).load(Ordering::Relaxed));
        self.add(handle, layout::identity(&[7, of_parent, slot.get(slot::SEQUENCE)]), ranks | layout::WINDOW);
    }

    /// An epoch of a window begins with a group, by the call that the thread is in.
    #[cold]
    pub fn epoch_begins(&self, slot: Slot, effect: Effect, members: &[std::ffi::c_int], now: u64) {
        let kind = if effect == Effect::WinStart { kind::ACCESS } else { kind::EXPOSURE };
        self.epoch(slot.comm(), kind, layout::NOBODY, members, now);
    }

    /// A lock of a window is there, or an epoch is over, by the call that the thread is in.
    #[cold]
    pub fn epoch_changes(&self, slot: Slot, effect: Effect, now: u64) {
        let (win, peer) = (slot.comm(), slot.get(slot::PEER));
        let target = (peer >> 32) as u32 as i32;
        let ended = match effect {
            Effect::WinLock if target == layout::NOBODY => return,
            Effect::WinLock => {
                let kind = if peer as u32 == 1 { kind::EXCLUSIVE } else { kind::SHARED };
                return self.epoch(win, kind, target, &[], now);
            }
            Effect::WinLockAll => return self.epoch(win, kind::ALL, layout::NOBODY, &[], now),
            Effect::WinUnlock => layout::place_of_epoch(win, kind::SHARED, target),
            Effect::WinUnlockAll => layout::place_of_epoch(win, kind::ALL, layout::NOBODY),
            Effect::WinComplete => layout::place_of_epoch(win, kind::ACCESS, layout::NOBODY),
            _ => layout::place_of_epoch(win, kind::EXPOSURE, layout::NOBODY),
        };
        let place = layout::EPOCHS + ended * layout::EPOCH;
        if self.word(place + epoch::WIN).load(Ordering::Relaxed) == win {
            self.word(place + epoch::ENDED).store(now, Ordering::Relaxed);
        }
    }

    fn epoch(&self, win: u64, kind: u64, target: i32, members: &[std::ffi::c_int], now: u64) {
        let place = layout::EPOCHS + layout::place_of_epoch(win, kind, target) * layout::EPOCH;
        let set = |offset: usize, value: u64| self.word(place + offset).store(value, Ordering::Relaxed);
        set(epoch::WIN, 0);
        set(epoch::KIND, kind | u64::from(target as u32) << 32);
        set(epoch::SINCE, now);
        set(epoch::ENDED, 0);
        set(epoch::COUNT, members.len() as u64);
        for (i, two) in members.chunks(2).take(layout::MEMBERS / 2).enumerate() {
            let second = two.get(1).map_or(0, |&rank| u64::from(rank as u32));
            set(epoch::MEMBERS + 8 * i, u64::from(two[0] as u32) | second << 32);
        }
        self.word(place + epoch::WIN).store(win, Ordering::Release);
    }

    fn nth(&self, identity: u64) -> u64 {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let count = made.entry(identity).or_insert(0);
        *count += 1;
        layout::identity(&[identity, *count])
    }

    /// A communicator or a window has been freed.
    #[cold]
    pub fn freed(&self, handle: u64) {
        if let Some(place) = self.find(handle) {
            self.word(place).store(layout::FREED, Ordering::Relaxed);
        }
    }

    /// The place of a name plus 1; 0 if there is no room for it.
    pub fn name(&self, name: &[u8]) -> u64 {
        let hash = name
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
            .max(2);
        let first = layout::place_of(hash, layout::NAME_PLACES);
        for probe in 0..16 {
            let number = (first + probe) & (layout::NAME_PLACES - 1);
            let place = layout::NAMES + number * layout::NAME;
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

impl Slot {
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= layout::SLOT);
        // SAFETY: the slot lies in the mapped file, which is never unmapped.
        unsafe { &*self.0.add(offset).cast::<AtomicU64>() }
    }

    #[inline]
    fn get(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Relaxed);
    }

    /// Keeps which requests a call was given: argument 1, of which there are as many as argument 0 says.
    ///
    /// # Safety
    /// The arguments are those of such a call.
    #[inline]
    unsafe fn waits(&self, given: &Arguments) {
        // SAFETY: the caller says so.
        let count = unsafe { given.int(0) }.max(0) as usize;
        self.set(slot::WAITS, count as u64);
        let mut next = 0;
        // Beyond these, nobody looks.
        for k in 0..count.min(64) {
            // SAFETY: the array has so many.
            if let Some(request) = unsafe { given.request(1, k) } {
                self.set(slot::REQUESTS + 8 * next, request);
                next += 1;
                if next == layout::HANDLES {
                    return;
                }
            }
        }
        self.set(slot::REQUESTS + 8 * next, 0);
    }

    /// Handle of the communicator of the current or last call.
    pub fn comm(&self) -> u64 {
        self.get(slot::COMM)
    }

    /// A region begins: the place of its name, or its address.
    #[inline]
    pub fn region_begins(&self, region: u64) {
        let depth = self.get(slot::DEPTH);
        if (depth as usize) < layout::REGIONS {
            self.set(slot::REGIONS + 8 * depth as usize, region);
        }
        self.set(slot::DEPTH, depth + 1);
    }

    /// The innermost one ends.
    #[inline]
    pub fn region_ends(&self) {
        self.set(slot::DEPTH, self.get(slot::DEPTH).saturating_sub(1));
    }
}

/// The target of a call on a window, as it is stored.
///
/// # Safety
/// The argument is a rank.
unsafe fn target(given: &Arguments, argument: usize) -> u64 {
    // SAFETY: the caller says so.
    let rank = unsafe { given.int(argument) };
    u64::from(if given.abi.is_nobody(rank) { layout::NOBODY } else { rank.max(-1) as i32 } as u32)
}

/// Whether all members of a communicator call it in the same order.
#[inline]
fn is_collective(effect: Effect) -> bool {
    matches!(
        effect,
        Effect::Barrier
            | Effect::Bcast
            | Effect::Gather
            | Effect::Gatherv
            | Effect::Scatter
            | Effect::Scatterv
            | Effect::Allgather
            | Effect::Allgatherv
            | Effect::Alltoall
            | Effect::Alltoallv
            | Effect::Alltoallw
            | Effect::Allreduce
            | Effect::Reduce
            | Effect::ReduceScatter
            | Effect::ReduceScatterBlock
            | Effect::Scan
            | Effect::Exscan
            | Effect::CommCreate
            | Effect::CommIdup
            | Effect::IntercommMerge
            | Effect::CommFree
            | Effect::WinCreate
            | Effect::WinAllocate
    )
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
