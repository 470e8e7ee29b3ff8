//! The state file of a process: what it is doing in MPI right now. The recorder in the application maps it and writes; whoever watches the job reads it, also
//! when the process is stuck, stopped or dead. This file is compiled into both.
//!
//! All fields are u64 in the order of bytes of the machine: the file never leaves its node. They are written one by one with relaxed stores, so what
//! is read while the process moves may belong to two calls; what has not changed for a while is consistent.
//!
//! ```text
//! header                          who this is, and how its counter becomes a time
//! SLOTS    slots of threads       the call that a thread is in or was in last, and the regions that it is in
//! REQUESTS requests               what a request was made for, found by its handle
//! COMMS    communicators          handle, identity, number of collective operations that have begun
//! NAMES    names of regions
//! COMM_NAMES  names of communicators and windows
//! EPOCHS   epochs of windows
//! ```

/// First bytes of a state file; the last two are the version.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"CLCSTA03");

/// End of the file names: `<process id>.state`.
pub(crate) const EXTENSION: &str = "state";

/// Byte offsets of the fields of the header.
pub(crate) mod field {
    /// [`super::MAGIC`], written when all that does not change is there.
    pub(crate) const MAGIC: usize = 0;
    /// Checksum of the table of functions.
    pub(crate) const TABLE: usize = 8;
    /// Process id.
    pub(crate) const PROCESS: usize = 16;
    /// When the process started, in ticks since boot (field 22 of `/proc/PID/stat`): tells it from a later one with the same id.
    pub(crate) const STARTED: usize = 24;
    /// Rank in `MPI_COMM_WORLD`: as the launcher says before `MPI_Init` has returned; [`super::UNKNOWN`] if it does not.
    pub(crate) const RANK: usize = 32;
    /// Size of `MPI_COMM_WORLD`, likewise.
    pub(crate) const SIZE: usize = 40;
    /// One of [`super::phase`].
    pub(crate) const PHASE: usize = 48;
    /// Reading of the counter when the phase began.
    pub(crate) const PHASE_SINCE: usize = 56;
    /// Number of slots in use.
    pub(crate) const THREADS: usize = 64;
    /// Communicators and threads for which there was no room.
    pub(crate) const LOST: usize = 72;
    /// An anchor: a reading of the counter, `CLOCK_MONOTONIC_RAW` and `CLOCK_REALTIME` in nanoseconds at the same moment.
    pub(crate) const FIRST_ANCHOR: usize = 80;
    /// Two more, written in turn; the one with [`LATEST_ANCHOR`] is complete.
    pub(crate) const ANCHORS: [usize; 2] = [104, 128];
    /// Which of them is the latest: 0 none, 1 or 2.
    pub(crate) const LATEST_ANCHOR: usize = 152;
    /// Command line of the process, text that ends in zero.
    pub(crate) const COMMAND: usize = 256;
    /// Length of that field.
    pub(crate) const COMMAND_LENGTH: usize = 1024;
}

/// Where a process is in its life with MPI.
pub(crate) mod phase {
    /// In `MPI_Init`.
    pub(crate) const INIT: u64 = 1;
    /// Between `MPI_Init` and `MPI_Finalize`.
    pub(crate) const RUNNING: u64 = 2;
    /// In `MPI_Finalize`.
    pub(crate) const FINALIZING: u64 = 3;
    /// After it.
    pub(crate) const FINALIZED: u64 = 4;
    /// The recorder has given up: what the process does is not known any more.
    pub(crate) const UNWATCHED: u64 = 5;
}

/// A number that is not known.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// Where slots begin, how many there are, and their size in bytes.
pub(crate) const SLOTS: usize = 4096;
/// See [`SLOTS`].
pub(crate) const THREADS: usize = 16;
/// See [`SLOTS`].
pub(crate) const SLOT: usize = 1024;

/// Byte offsets of the fields of a slot: the first ones share a cache line.
pub(crate) mod slot {
    /// [`super::INSIDE`], if the thread is in the call; the number of the function of the current or last call plus 1 in the bits below it; above it the number of
    /// calls that have done something (all but tests and probes in vain).
    pub(crate) const CALL: usize = 0;
    /// Reading of the counter when the current or last call began.
    pub(crate) const SINCE: usize = 8;
    /// Reading of the counter when the last call ended that has done something.
    pub(crate) const MOVED: usize = 16;
    /// Tests and probes in vain.
    pub(crate) const VAIN: usize = 24;
    /// Handle of the communicator of the current or last call; 0 if it has none.
    pub(crate) const COMM: usize = 32;
    /// Peer or root in the upper half ([`super::NOBODY`], [`super::ANY`]), tag in the lower one: both `i32`.
    pub(crate) const PEER: usize = 40;
    /// Number of the collective operation among those of its communicator, from 1; 0 if it is none. Probes and epochs of windows leave it as it was.
    pub(crate) const SEQUENCE: usize = 48;
    /// Number of requests that the current or last call was given.
    pub(crate) const WAITS: usize = 56;
    /// The first [`super::HANDLES`] of them that are not null.
    pub(crate) const REQUESTS: usize = 64;
    /// Number of regions that the thread is in.
    pub(crate) const DEPTH: usize = 128;
    /// The first [`super::REGIONS`] of them, from the outside: the place of a name plus 1, or the address of a function.
    pub(crate) const REGIONS: usize = 136;
}

/// Flag of [`slot::CALL`].
pub(crate) const INSIDE: u64 = 1 << 15;
/// Shift of the number of calls in [`slot::CALL`].
pub(crate) const COUNT: u32 = 16;
/// Peers: `MPI_PROC_NULL` or no root.
pub(crate) const NOBODY: i32 = -2;
/// Peers and tags: `MPI_ANY_SOURCE`, `MPI_ANY_TAG`.
pub(crate) const ANY: i32 = -1;
/// See [`slot::REQUESTS`].
pub(crate) const HANDLES: usize = 8;
/// See [`slot::REGIONS`].
pub(crate) const REGIONS: usize = 64;

/// Where requests begin: places of [`REQUEST`] bytes with handle, function plus 1, handle of the communicator, peer and tag, sequence number. A later one with the
/// same place takes it.
pub(crate) const REQUESTS: usize = SLOTS + THREADS * SLOT;
/// Number of places for requests.
pub(crate) const REQUEST_PLACES: usize = 1024;
/// See [`REQUESTS`].
pub(crate) const REQUEST: usize = 64;

/// Where communicators begin: places of [`COMM`] bytes with handle, identity, number of collective operations (and [`NAMED`]), and own rank and size in the upper and lower half.
pub(crate) const COMMS: usize = REQUESTS + REQUEST_PLACES * REQUEST;
/// Number of places for communicators.
pub(crate) const COMM_PLACES: usize = 8192;
/// See [`COMMS`].
pub(crate) const COMM: usize = 32;
/// A communicator is found in one of so many places from that of its handle on.
pub(crate) const PROBES: usize = 64;
/// Handle in the place of a communicator that was freed.
pub(crate) const FREED: u64 = 1;
/// So many times the place of the name of a communicator plus 1 is added to the number of its operations.
pub(crate) const NAMED: u64 = 1 << 48;
/// Flag in the size of an inter-communicator, whose peers are those of the other group.
pub(crate) const INTER: u64 = 1 << 31;
/// Flag in the size of an inter-communicator: of its two groups, this process is in the one whose first member has the higher global rank.
pub(crate) const SECOND: u64 = 1 << 29;
/// Flag in the size of a file, which is in a place of a communicator.
pub(crate) const FILE: u64 = 1 << 28;
/// Flag in the size of a window, which is in a place of a communicator.
pub(crate) const WINDOW: u64 = 1 << 30;

/// Where names begin: places of [`NAME`] bytes with a hash and a text that ends in zero.
pub(crate) const NAMES: usize = COMMS + COMM_PLACES * COMM;
/// Number of places for names.
pub(crate) const NAME_PLACES: usize = 256;
/// See [`NAMES`].
pub(crate) const NAME: usize = 64;

/// Where names of communicators and windows begin: the same for them.
pub(crate) const COMM_NAMES: usize = NAMES + NAME_PLACES * NAME;
/// Number of places for names of communicators.
pub(crate) const COMM_NAME_PLACES: usize = 256;

/// Where epochs of windows begin: places of [`EPOCH`] bytes. A later one with the same place takes it.
pub(crate) const EPOCHS: usize = COMM_NAMES + COMM_NAME_PLACES * NAME;
/// Number of places for epochs.
pub(crate) const EPOCH_PLACES: usize = 256;
/// See [`EPOCHS`].
pub(crate) const EPOCH: usize = 128;
/// So many members of the group of an epoch are known, two in a word.
pub(crate) const MEMBERS: usize = 2 * (EPOCH - epoch::MEMBERS) / 8;

/// Byte offsets of the fields of an epoch.
pub(crate) mod epoch {
    /// Handle of its window; 0 if there is none.
    pub(crate) const WIN: usize = 0;
    /// One of [`super::kind`]; in the upper half the target of a lock, its rank in the window.
    pub(crate) const KIND: usize = 8;
    /// Reading of the counter when it began: the call of `MPI_Win_start` and `MPI_Win_post`, and when a lock was there.
    pub(crate) const SINCE: usize = 16;
    /// Reading of the counter when it ended; 0 if it has not.
    pub(crate) const ENDED: usize = 24;
    /// Number of members of its group.
    pub(crate) const COUNT: usize = 32;
    /// Their global ranks, the first ones.
    pub(crate) const MEMBERS: usize = 40;
}

/// What an epoch is.
pub(crate) mod kind {
    /// From `MPI_Win_start` to `MPI_Win_complete`.
    pub(crate) const ACCESS: u64 = 1;
    /// From `MPI_Win_post` to `MPI_Win_wait`.
    pub(crate) const EXPOSURE: u64 = 2;
    /// A shared lock of all.
    pub(crate) const ALL: u64 = 3;
    /// A shared lock of one.
    pub(crate) const SHARED: u64 = 4;
    /// An exclusive lock of one.
    pub(crate) const EXCLUSIVE: u64 = 5;
}

/// Size of the file.
pub(crate) const SIZE: usize = EPOCHS + EPOCH_PLACES * EPOCH;

/// The first place of a handle among `places`, which are a power of two.
#[inline]
pub(crate) fn place_of(handle: u64, places: usize) -> usize {
    (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (places - 1)
}

/// The place of an epoch of a window: that of its kind, or of the lock of a target.
pub(crate) fn place_of_epoch(win: u64, kind: u64, target: i32) -> usize {
    let own = match kind {
        kind::SHARED | kind::EXCLUSIVE => kind::SHARED + u64::from(target as u32),
        other => other,
    };
    place_of(win ^ own.wrapping_mul(0xff51_afd7_ed55_8ccd), EPOCH_PLACES)
}

/// Identity of `MPI_COMM_WORLD`.
pub(crate) const WORLD: u64 = 1;
/// Identity of `MPI_COMM_SELF`.
pub(crate) const SELF: u64 = 2;

/// The identity that follows from several numbers, which all members know: never one of those above.
pub(crate) fn identity(numbers: &[u64]) -> u64 {
    let mixed = numbers.iter().fold(0x51_7c_c1_b7_27_22_0a_95_u64, |mixed, &number| {
        let next = (mixed ^ number).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (next ^ (next >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53).rotate_left(29)
    });
    mixed.max(16)
}
