//! The raw files of a recording: what the recorder in the application writes and the conversion reads. This folder is compiled into both.
//!
//! Every thread that calls MPI has a file `<rank>-<thread>.raw`: a header of one page and records, little-endian. The recorder maps it into
//! memory, so everything up to the committed length survives the death of the process.
//!
//! Integers are LEB128 (`u`), or LEB128 of a zigzag number (`z`). A record begins with a `u` code:
//!
//! ```text
//! LEAVE, FAILED     u time since the last time; what the call gave back (nothing if it failed)
//! COMMUNICATOR      a communicator that this process has become a member of
//! WINDOW, NAME      a window that it has a part of; the name of either
//! FUNCTION_*        u time since the last time; a function of the program is entered or left
//! TEXT, REGION_*    what the program marks itself: regions, markers, metrics
//! OPENMP            u time since the last time; a step of a thread of OpenMP
//! PTHREAD           u time since the last time; a step of a thread that the program makes itself
//! JOINED            u time since the last time; polls in vain, one after the other
//! CALLS + n         u time since the last time; what the call of function n was given
//! ```
//!
//! A time is a reading of the counter that the header names. The first one of a file follows a last time of 0. What belongs to a call
//! depends on its [`Effect`](calls::Effect). Handles (`h`) are 0 for a null handle, else 1 + the zigzag difference to the last handle of their class in the file
//! (communicators, requests, windows), modulo 2^64.

pub(crate) mod calls;

/// First bytes of a raw file; the last two are the version.
pub(crate) const MAGIC: [u8; 8] = *b"CLCRAW05";
/// Where records begin: the size of the header.
pub(crate) const HEADER: usize = 4096;

/// Byte offsets of the fields of the header: all u64 unless noted.
pub(crate) mod field {
    /// [`super::MAGIC`].
    pub(crate) const MAGIC: usize = 0;
    /// Bytes of whole records after the header.
    pub(crate) const COMMITTED: usize = 8;
    /// [`super::RUNNING`], [`super::FINISHED`] or [`super::STOPPED`].
    pub(crate) const STATE: usize = 16;
    /// CRC-32 of the table of functions.
    pub(crate) const TABLE: usize = 24;
    /// Rank in `MPI_COMM_WORLD`.
    pub(crate) const RANK: usize = 32;
    /// Size of `MPI_COMM_WORLD`.
    pub(crate) const SIZE: usize = 40;
    /// Number of the thread within its process, 0 for the one that initialised MPI.
    pub(crate) const THREAD: usize = 48;
    /// Process id.
    pub(crate) const PROCESS: usize = 56;
    /// [`super::OPEN_MPI`], [`super::MPICH`] or [`super::MPI_5`].
    pub(crate) const ABI: usize = 64;
    /// [`super::TSC`] or [`super::NANOSECONDS`].
    pub(crate) const TIMER: usize = 72;
    /// Identifies the node, and the time since it was booted.
    pub(crate) const NODE: usize = 80;
    /// Handle of `MPI_COMM_WORLD`.
    pub(crate) const WORLD: usize = 88;
    /// Handle of `MPI_COMM_SELF`.
    pub(crate) const SELF: usize = 96;
    /// Handle of requests that are complete from the start, in Open MPI and by the interface of MPI 5; 0 elsewhere.
    pub(crate) const EMPTY: usize = 104;
    /// Identifies the machine, and the time since it was booted: nodes that are containers of one machine share its counter.
    pub(crate) const MACHINE: usize = 112;
    /// Checksum of the fields from [`TABLE`] up to here, which never change.
    pub(crate) const CHECK: usize = 120;
    /// An anchor: a reading of the counter, `CLOCK_MONOTONIC_RAW` and `CLOCK_REALTIME` in nanoseconds at the same moment.
    pub(crate) const FIRST_ANCHOR: usize = 128;
    /// Two more, the later ones, written in turn; the one with [`LATEST_ANCHOR`] is complete.
    pub(crate) const ANCHORS: [usize; 2] = [152, 176];
    /// Which of them is the latest: 0 none, 1 or 2.
    pub(crate) const LATEST_ANCHOR: usize = 200;
    /// Another handle as [`EMPTY`], of collective operations; 0 if there is none. Not part of [`CHECK`].
    pub(crate) const EMPTY_COLLECTIVE: usize = 208;
    /// Whether there is OpenMP: 0, [`super::RECORDED`] or [`super::UNSEEN`]. Of the file of the thread that ends the recording, at its end.
    pub(crate) const OPENMP: usize = 216;
    /// Host name, text that ends in zero.
    pub(crate) const HOST: usize = 256;
    /// Length of that field.
    pub(crate) const HOST_LENGTH: usize = 256;
    /// What `MPI_Get_library_version` says, likewise.
    pub(crate) const LIBRARY: usize = 512;
    /// Length of that field.
    pub(crate) const LIBRARY_LENGTH: usize = 512;
    /// The command line of the application, with spaces between its words, likewise.
    pub(crate) const COMMAND: usize = 1024;
    /// Length of that field.
    pub(crate) const COMMAND_LENGTH: usize = 3072;
}

/// Files with measurements of clocks: `<rank>.clock`, of the processes that measure. After [`measured::MAGIC`] batches of exchanges, all
/// numbers u64, little-endian: rank of the partner, method, number of exchanges that were made and of those that follow; for each the counter
/// when the question left and when the answer came, then by the counter of the partner when the question came and when the answer left.
pub(crate) mod measured {
    /// First bytes.
    pub(crate) const MAGIC: [u8; 8] = *b"CLCCLK01";
    /// End of the file names.
    pub(crate) const SUFFIX: &str = "clock";
    /// Method: messages of the kernel (UDP).
    pub(crate) const KERNEL: u64 = 0;
    /// Method: messages of MPI.
    pub(crate) const MPI: u64 = 1;
    /// Method: memory that both processes have mapped.
    pub(crate) const MEMORY: u64 = 2;
    /// No measurement of a clock: through such memory, the counter of this process beside that of the leader of its node, whose clock both have.
    pub(crate) const SAME: u64 = 3;
}

/// Files with samples of nodes: `<rank>.samples`, of the first process of each node. After [`sampled::MAGIC`] u64, little-endian: the period and how late a sample may
/// come, in nanoseconds; then for each sample the number of its agreed time (in periods of `CLOCK_MONOTONIC_RAW` of the node of rank 0), the counter, and the bits of two
/// doubles: shares of the cores' time and of the links' capacity since the sample before, 0 to 1.
pub(crate) mod sampled {
    /// First bytes.
    pub(crate) const MAGIC: [u8; 8] = *b"CLCSMP01";
    /// End of the file names.
    pub(crate) const SUFFIX: &str = "samples";
}

/// Buffers of a thread: files `<rank>-<thread>.<number>.buffer` beside its file, while it records or if it was killed. Records follow after a page
/// with these fields, all u64.
pub(crate) mod buffer {
    /// End of the file names.
    pub(crate) const EXTENSION: &str = "buffer";
    /// Bytes of whole records after the first page.
    pub(crate) const COMMITTED: usize = 8;
    /// Bytes of whole records that the file of the thread had when these were written to it, or [`NOWHERE`]: if it has more now, it has these.
    pub(crate) const PLACE: usize = 16;
    /// Place among all buffers of the thread, from 1.
    pub(crate) const SEQUENCE: usize = 24;
    /// They have not been written.
    pub(crate) const NOWHERE: u64 = u64::MAX;
}

/// The process is recording, or was killed.
pub(crate) const RUNNING: u64 = 0;
/// `MPI_Finalize` was reached.
pub(crate) const FINISHED: u64 = 1;
/// Recording ended early: there was no room for more.
pub(crate) const STOPPED: u64 = 2;

/// The runtime of OpenMP tells what its threads do.
pub(crate) const RECORDED: u64 = 1;
/// There is a runtime of OpenMP with several threads, which does not.
pub(crate) const UNSEEN: u64 = 2;

/// Handles are pointers.
pub(crate) const OPEN_MPI: u64 = 1;
/// Handles are integers.
pub(crate) const MPICH: u64 = 2;
/// The interface of MPI 5: handles are pointers, some of which are small numbers.
pub(crate) const MPI_5: u64 = 3;

/// The counter is the processor's time stamp counter, whose rate the anchors tell.
pub(crate) const TSC: u64 = 0;
/// The counter is `CLOCK_MONOTONIC_RAW` in nanoseconds.
pub(crate) const NANOSECONDS: u64 = 1;

/// Code of the end of a call.
pub(crate) const LEAVE: u64 = 0;
/// Code of the end of a call that returned an error: it has no results.
pub(crate) const FAILED: u64 = 1;
/// Code of a communicator: `h` handle, `u` rank in it, `u` flags ([`INTER`]), `u` number of members that follow (all or none) and as many `u` global
/// ranks, `u` global rank of rank 0; of an inter-communicator also `u` number and global ranks of the remote group.
pub(crate) const COMMUNICATOR: u64 = 2;
/// Code of a window that has been made: `h` handle.
pub(crate) const WINDOW: u64 = 16;
/// Code of a name that the program gives: `u` [`NAME_OF_COMMUNICATOR`] or [`NAME_OF_WINDOW`], `h` handle of that class, text (`u` length, bytes).
pub(crate) const NAME: u64 = 17;
/// Code of the beginning of a function of the program: `u` time since the last time, `z` difference of its address to the last one in the file.
pub(crate) const FUNCTION_ENTER: u64 = 18;
/// Code of the end of a function: likewise.
pub(crate) const FUNCTION_LEAVE: u64 = 19;
/// Code of a text that later records of the file refer to: `u` number, text (`u` length, bytes).
pub(crate) const TEXT: u64 = 20;
/// Code of the beginning of a region of the program's own: `u` time since the last time, `u` number of the text that is its name.
pub(crate) const REGION_BEGIN: u64 = 21;
/// Code of its end: likewise.
pub(crate) const REGION_END: u64 = 22;
/// Code of a marker: likewise.
pub(crate) const MARKER: u64 = 23;
/// Code of a value of a metric: likewise, and `u` the bits of the value (a double), their order of bytes reversed.
pub(crate) const METRIC: u64 = 24;
/// Code of the beginning of a buffer: `u` last time, handles of the last communicator, request and window, last address, number plus 1 of the function
/// whose call has begun and not ended, and how many requests it was given. What precedes it may be missing.
pub(crate) const SEGMENT: u64 = 25;
/// Code of a step of a thread of OpenMP: `u` time since the last time, `u` which step ([`openmp`]), and what belongs to it.
pub(crate) const OPENMP: u64 = 26;
/// Code of a step of a thread that was made by `pthread_create`, or of one that makes or waits for it: `u` time since the last time, `u` which step ([`pthread`]), and what
/// belongs to it.
pub(crate) const PTHREAD: u64 = 27;
/// Code of polls in vain that were joined, since nothing else was recorded between them: `u` time since the last time, when the first one began; then u64, little-endian, which
/// the recorder changes as long as there are more: time until the last one ended, time within them, and how many there were of each of the [`POLLS`]. The end of the last
/// one is the last time of what follows.
pub(crate) const JOINED: u64 = 28;
/// Code of function 0.
pub(crate) const CALLS: u64 = 32;

/// Functions that ask whether something has happened, and the argument that says so; and those that wait for requests, which do nothing if all of these are null.
pub(crate) const POLLS: [(&str, u8); 13] = [
    ("Test", 1),
    ("Testall", 2),
    ("Testany", 3),
    ("Testsome", 2),
    ("Iprobe", 3),
    ("Improbe", 3),
    ("Request_get_status", 1),
    ("Win_test", 1),
    ("Parrived", 2),
    ("Wait", 0),
    ("Waitall", 0),
    ("Waitany", 0),
    ("Waitsome", 0),
];

/// Steps of threads of OpenMP. Parallel regions and tasks have numbers from 1, locks their addresses. A place is `z`, the difference of its address to the last one in the file.
pub(crate) mod openmp {
    /// A parallel region begins: `u` its number, `u` threads that are wanted, place.
    pub(crate) const FORK: u64 = 0;
    /// It has ended: `u` its number.
    pub(crate) const JOIN: u64 = 1;
    /// The thread is one of its team: `u` number of the region, `u` threads of the team, `u` which of them this is.
    pub(crate) const TEAM_BEGIN: u64 = 2;
    /// It is so no more: `u` number of the region. Of threads other than the first it may come at any later time.
    pub(crate) const TEAM_END: u64 = 3;
    /// A region within it begins: `u` its [`kind`] * 2, plus 1 if a place follows.
    pub(crate) const BEGIN: u64 = 4;
    /// It ends: `u` its kind.
    pub(crate) const END: u64 = 5;
    /// The thread has a lock: `u` which.
    pub(crate) const ACQUIRED: u64 = 6;
    /// It has it no more: `u` which. Others may have had it before this was recorded.
    pub(crate) const RELEASED: u64 = 7;
    /// The thread has made a task: `u` its number, place.
    pub(crate) const TASK_CREATE: u64 = 8;
    /// It goes on with a task: `u` its number, 0 for that of the thread.
    pub(crate) const TASK_SWITCH: u64 = 9;
    /// A task is complete: `u` its number.
    pub(crate) const TASK_COMPLETE: u64 = 10;

    /// Kinds of regions, as indices of their names.
    pub(crate) mod kind {
        /// The parallel region itself.
        pub(crate) const PARALLEL: u64 = 0;
        /// At the end of it, and of constructs that share work.
        pub(crate) const IMPLICIT_BARRIER: u64 = 1;
        /// Of the program's own.
        pub(crate) const BARRIER: u64 = 2;
        /// A loop whose iterations are shared.
        pub(crate) const FOR: u64 = 3;
        /// Sections.
        pub(crate) const SECTIONS: u64 = 4;
        /// At the thread that executes it.
        pub(crate) const SINGLE: u64 = 5;
        /// Fortran's `workshare`.
        pub(crate) const WORKSHARE: u64 = 6;
        /// A loop whose iterations become tasks.
        pub(crate) const TASKLOOP: u64 = 7;
        /// At the thread that executes it.
        pub(crate) const MASTER: u64 = 8;
        /// Waiting for it included.
        pub(crate) const CRITICAL: u64 = 9;
        /// Waiting for a lock.
        pub(crate) const SET_LOCK: u64 = 10;
        /// Waiting for tasks.
        pub(crate) const TASKWAIT: u64 = 11;
        /// A group of tasks ends.
        pub(crate) const TASKGROUP: u64 = 12;
        /// A task, from when it begins until it is complete. It has no records of its own.
        pub(crate) const TASK: u64 = 13;

        /// What the regions are called.
        pub(crate) const NAMES: [&str; 14] = [
            "!$omp parallel",
            "!$omp implicit barrier",
            "!$omp barrier",
            "!$omp for",
            "!$omp sections",
            "!$omp single",
            "!$omp workshare",
            "!$omp taskloop",
            "!$omp master",
            "!$omp critical",
            "omp_set_lock",
            "!$omp taskwait",
            "!$omp taskgroup",
            "!$omp task",
        ];
    }
}

/// Steps of such threads. They have numbers from 1; the system's name of a thread is another one's as soon as somebody has waited for it.
pub(crate) mod pthread {
    /// The thread makes another one: `u` its number.
    pub(crate) const CREATE: u64 = 0;
    /// The thread has begun: `u` its number, `u` the system's name of it.
    pub(crate) const BEGIN: u64 = 1;
    /// It ends: `u` 0.
    pub(crate) const END: u64 = 2;
    /// The thread has waited for another one: `u` the system's name of it.
    pub(crate) const WAITED: u64 = 3;

    /// The thread has made another one: `u` its number, `u` the system's name of it.
    pub(crate) const CREATED: u64 = 4;

    /// Name of the region in which a thread is made.
    pub(crate) const CREATING: &str = "pthread_create";
    /// Name of the region in which one is waited for.
    pub(crate) const WAITING: &str = "pthread_join";
}

/// See [`NAME`].
pub(crate) const NAME_OF_COMMUNICATOR: u64 = 0;
/// See [`NAME`].
pub(crate) const NAME_OF_WINDOW: u64 = 1;

/// Files `<rank>.maps`: which files are where in the memory of the process, as `/proc/self/maps` says it.
pub(crate) const MAPS: &str = "maps";

/// Largest length of a text, in bytes: longer ones are cut.
pub(crate) const LONGEST_TEXT: usize = 256;

/// Flag of an inter-communicator.
pub(crate) const INTER: u64 = 1;

/// Source of what `MPI_Isendrecv` is to receive: nobody.
pub(crate) const NOBODY: i64 = -1;
/// Likewise: whoever sends.
pub(crate) const ANYBODY: i64 = -2;

/// Roots as `z`: none, the process itself and another one of its group (inter-communicators).
pub(crate) const NO_ROOT: i64 = -3;
/// `MPI_ROOT`.
pub(crate) const THIS_PROCESS: i64 = -1;
/// `MPI_PROC_NULL`.
pub(crate) const OWN_GROUP: i64 = -2;

/// Checksum (CRC-32 of IEEE 802.3) of the table, so that a recording is not read with another one, and of headers.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    u64::from(!crc)
}
