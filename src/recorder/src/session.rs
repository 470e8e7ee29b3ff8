//! The recording of this process, from `MPI_Init` to `MPI_Finalize`.

mod communicators;

use crate::abi::Abi;
use crate::buffers::Buffers;
use crate::calls::TABLE;
use crate::clock;
use crate::control::Control;
use crate::format::{self, MAPS, field};
use crate::functions;
use crate::layout;
use crate::monitor::{self, Board};
use crate::offsets::Meter;
use crate::openmp_runtime;
use crate::say;
use crate::stream::Stream;
use crate::streams::Streams;
use std::ffi::c_int;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// All there is to know about it.
pub(crate) struct Session {
    /// The interface of the MPI library.
    pub abi: Abi,
    /// What the user wants.
    pub control: Control,
    /// Where the raw files go.
    pub directory: PathBuf,
    /// Of this process in `MPI_COMM_WORLD`.
    pub rank: u64,
    size: u64,
    timer: u64,
    node: u64,
    machine: u64,
    host: Vec<u8>,
    library: Vec<u8>,
    command: Vec<u8>,
    /// Number of the next thread.
    threads: AtomicU64,
    /// Those of all threads.
    pub streams: Streams,
    /// Who measures the clocks, unless MPI refuses.
    pub meter: Option<Meter>,
    /// Group of `MPI_COMM_WORLD`.
    world_group: u64,
    /// Only what it is doing is of interest: nothing of the recording is to stay.
    discard: bool,
    /// What it is doing is also kept there.
    pub board: Option<&'static Board>,
}

static SESSION: OnceLock<Session> = OnceLock::new();
static RECORDING: AtomicBool = AtomicBool::new(false);
/// The recording has ended with MPI.
static ENDED: AtomicBool = AtomicBool::new(false);
static TIMER: OnceLock<u64> = OnceLock::new();
/// Made before MPI starts: a process that ends soon after that has a rate, too, and what is measured in `MPI_Init` is not before it.
static FIRST_ANCHOR: OnceLock<[u64; 3]> = OnceLock::new();

/// The session, if events are recorded.
#[inline]
pub(crate) fn recording() -> Option<&'static Session> {
    if RECORDING.load(Ordering::Acquire) { SESSION.get() } else { None }
}

/// The session, whether events are recorded or not; none before `MPI_Init`, or where nothing is to be recorded.
pub(crate) fn begun() -> Option<&'static Session> {
    SESSION.get()
}

/// Whether `MPI_Init` has been called, recorded or not.
pub(crate) fn has_begun() -> bool {
    begun().is_some()
}

/// The time of the first event, when nothing has been set up.
pub(crate) fn first_time() -> u64 {
    TIMER.get_or_init(clock::choose);
    FIRST_ANCHOR.get_or_init(clock::anchor);
    clock::before()
}

/// Ends the recording for lack of something; what there is stays.
#[cold]
pub(crate) fn stop(why: &str) {
    if RECORDING.swap(false, Ordering::AcqRel)
        && let Some(session) = SESSION.get()
    {
        for stream in session.streams.all() {
            stream.buffers.file.number(field::STATE).store(format::STOPPED, Ordering::Release);
        }
        if let Some(board) = monitor::board() {
            board.phase(layout::phase::UNWATCHED);
        }
        say(&format!("rank {}: {why}; recording stops, the application continues", session.rank));
    }
}

/// After `MPI_Init`, which was function `number` and was called at `entered`: begins the recording. Returns the stream of this thread; null if
/// there is nothing to record.
#[cold]
pub(crate) fn start(number: u64, entered: u64) -> *mut Stream {
    let Some(directory) = std::env::var_os("CLC_RECORDER_DIR").filter(|name| !name.is_empty()) else {
        return null_mut();
    };
    let abi = match Abi::detect() {
        Ok(abi) => abi,
        Err(why) => {
            say(&format!("{why}; nothing is recorded"));
            return null_mut();
        }
    };
    if is_spawned(&abi) {
        // Its ranks are not those of the recording.
        if get(abi.mpi.comm_rank, abi.world) == 0 {
            say("processes started by MPI_Comm_spawn are not recorded");
        }
        return null_mut();
    }
    let session = Session::new(abi, PathBuf::from(directory));
    let session = SESSION.get_or_init(|| session);
    let stream = match session.make_stream(session.new_thread(), true) {
        Ok(stream) => stream,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            if session.rank == 0 {
                say("another program has already been recorded; this one is not");
            }
            return null_mut();
        }
        Err(error) => {
            say(&format!("rank {}: {}: {error}; nothing is recorded", session.rank, session.directory.display()));
            return null_mut();
        }
    };
    // SAFETY: it has just been made, and is this thread's.
    if session.begin(unsafe { &mut *stream }, number, entered) { stream } else { null_mut() }
}

/// Whether this process was started by `MPI_Comm_spawn`.
fn is_spawned(abi: &Abi) -> bool {
    let mut parent = 0_u64;
    // SAFETY: it has room for a handle of either kind.
    unsafe { (abi.mpi.comm_get_parent)(&raw mut parent as usize) };
    abi.handle_of(parent as usize) != abi.no_comm
}

/// In a child of a fork: the mapping is shared with the parent, to which it belongs.
extern "C" fn forget() {
    RECORDING.store(false, Ordering::Release);
}

/// In `MPI_Finalize`, which is a function that was called at a time: ends the recording. `measure` says whether MPI can still be used.
#[cold]
pub(crate) fn finish(stream: *mut Stream, (number, entered): (u64, u64), measure: bool) {
    let Some(session) = SESSION.get().filter(|_| !ENDED.swap(true, Ordering::AcqRel)) else { return };
    // SAFETY: streams live as long as the process, and this one belongs to this thread.
    let mut own = unsafe { stream.as_mut() }.filter(|_| RECORDING.load(Ordering::Acquire));
    if let Some(stream) = &mut own
        && stream.reserve(32)
    {
        stream.enter_at(number, entered);
        stream.commit();
    }
    // All processes take part in it, whether they have recorded or not.
    if let Some(meter) = &session.meter {
        meter.stop();
        if measure {
            meter.measure(&session.abi);
        }
    }
    if let Some(stream) = own
        && stream.reserve(32)
    {
        stream.leave(clock::after(), false);
        stream.commit();
    }
    session.keep_addresses();
    if RECORDING.swap(false, Ordering::AcqRel) {
        let anchor = clock::anchor();
        let openmp = openmp_runtime::state();
        for stream in session.streams.all() {
            stream.buffers.file.anchor(anchor);
            stream.buffers.file.number(field::OPENMP).store(openmp, Ordering::Relaxed);
            let complete = stream.buffers.end();
            let state = if complete.is_ok() { format::FINISHED } else { format::STOPPED };
            stream.buffers.file.number(field::STATE).store(state, Ordering::Release);
            if let Err(error) = complete {
                say(&format!("rank {}: cannot write the last events: {error}", session.rank));
            }
        }
    }
    if measure {
        let mut group = session.world_group;
        // SAFETY: it is the recorder's own, and not used any more.
        unsafe { (session.abi.mpi.group_free)(&raw mut group as usize) };
    }
    // When one process goes on, the files of all are complete.
    if let Some(meter) = session.meter.as_ref().filter(|_| measure) {
        meter.end(&session.abi);
    }
}

impl Session {
    /// The session of this process. All processes make theirs together: they measure their clocks, whether they can record or not.
    fn new(abi: Abi, directory: PathBuf) -> Session {
        let (rank, size) = (get(abi.mpi.comm_rank, abi.world), get(abi.mpi.comm_size, abi.world));
        let host = host();
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let (node, machine) = (fingerprint(&[&host, &boot]), fingerprint(&[&boot]));
        let mut session = Session {
            control: Control::of_environment(),
            directory,
            rank: rank as u64,
            size: size as u64,
            timer: *TIMER.get_or_init(clock::choose),
            node,
            machine,
            host,
            library: library(&abi),
            command: command(),
            threads: AtomicU64::new(0),
            streams: Streams::default(),
            meter: None,
            world_group: 0,
            discard: std::env::var_os("CLC_RECORDER_DISCARD").is_some(),
            board: monitor::board(),
            abi,
        };
        if !session.discard {
            session.meter = Meter::new(&session.abi, &session.directory, rank as usize, size as usize, [node, machine]);
        }
        if let Some(meter) = &session.meter {
            meter.measure(&session.abi);
        }
        // SAFETY: it has room for a handle of either kind.
        unsafe { (session.abi.mpi.comm_group)(session.abi.world as usize, &raw mut session.world_group as usize) };
        session
    }

    /// Records `MPI_Init` in the first stream, and has events recorded from now on. Returns whether there was room.
    fn begin(&self, first: &mut Stream, number: u64, entered: u64) -> bool {
        if !first.reserve(64) {
            return false;
        }
        functions::begin(first);
        first.enter_at(number, entered);
        first.leave(clock::after(), false);
        first.commit();
        // A second one, for a process that is killed soon.
        first.buffers.file.anchor(clock::anchor());
        self.control.begin();
        // SAFETY: a function that only sets a flag is safe to call in a child.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
        if let Some(board) = monitor::board() {
            board.initialised(self.rank, self.size, [self.abi.world, self.abi.own]);
        }
        RECORDING.store(true, Ordering::Release);
        true
    }

    /// Number of a thread that has none.
    pub(crate) fn new_thread(&self) -> u64 {
        self.threads.fetch_add(1, Ordering::Relaxed)
    }

    /// The stream of a thread that has none, for records that are `kept` in a ring or for others; null if it cannot be made, then recording ends.
    #[cold]
    pub(crate) fn new_stream(&self, thread: u64, kept: bool) -> *mut Stream {
        self.make_stream(thread, kept).unwrap_or_else(|error| {
            stop(&format!("{}: {error}", self.directory.display()));
            null_mut()
        })
    }

    fn make_stream(&self, thread: u64, kept: bool) -> std::io::Result<*mut Stream> {
        let ring = self.control.ring && !kept;
        let name = format!("{}-{thread}.{}", self.rank, if ring { "ring.raw" } else { "raw" });
        let (count, size) = self.control.buffers(kept);
        let path = self.directory.join(name);
        let buffers = Buffers::create(&path, count, size, ring)?;
        if self.discard {
            buffers.hide(&path);
        }
        let file = &buffers.file;
        for (offset, value) in [
            (field::TABLE, TABLE),
            (field::RANK, self.rank),
            (field::SIZE, self.size),
            (field::THREAD, thread),
            (field::PROCESS, u64::from(std::process::id())),
            (field::ABI, self.abi.kind),
            (field::TIMER, self.timer),
            (field::NODE, self.node),
            (field::WORLD, self.abi.world),
            (field::SELF, self.abi.own),
            (field::EMPTY, self.abi.empty),
            (field::EMPTY_COLLECTIVE, self.abi.empty_collective),
            (field::MACHINE, self.machine),
        ] {
            file.number(offset).store(value, Ordering::Relaxed);
        }
        for (i, &value) in FIRST_ANCHOR.get_or_init(clock::anchor).iter().enumerate() {
            file.number(field::FIRST_ANCHOR + 8 * i).store(value, Ordering::Relaxed);
        }
        file.seal();
        file.text(field::HOST, field::HOST_LENGTH, &self.host);
        file.text(field::LIBRARY, field::LIBRARY_LENGTH, &self.library);
        file.text(field::COMMAND, field::COMMAND_LENGTH, &self.command);
        file.begin();
        Ok(self.streams.add(Stream::new(buffers)))
    }

    /// Keeps which files are where in memory, if functions of the program have been recorded: `<rank>.maps`. It may be called again when there are more.
    #[cold]
    pub(crate) fn keep_addresses(&self) -> bool {
        if functions::has_functions() && !self.discard {
            // Without it functions have no names.
            let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
            let _ = std::fs::write(self.directory.join(format!("{}.{MAPS}", self.rank)), maps);
        }
        functions::has_functions()
    }
}

/// A number that MPI tells about a communicator.
fn get(function: unsafe extern "C" fn(usize, usize) -> c_int, comm: u64) -> c_int {
    let mut value: c_int = 0;
    // SAFETY: the communicator is one of the program's, and the number has room.
    unsafe { function(comm as usize, &raw mut value as usize) };
    value
}

fn host() -> Vec<u8> {
    let mut name = [0_u8; 256];
    // SAFETY: it is as long as said; the last byte stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    name.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()
}

fn library(abi: &Abi) -> Vec<u8> {
    // MPI_MAX_LIBRARY_VERSION_STRING is 256 or 8192.
    let mut text = vec![0_u8; 8192 + 1];
    let mut length: c_int = 0;
    // SAFETY: the text is longer than any.
    unsafe { (abi.mpi.library_version)(text.as_mut_ptr() as usize, &raw mut length as usize) };
    text.truncate(text.iter().position(|&byte| byte == 0 || byte == b'\n').unwrap_or(0));
    text
}

fn command() -> Vec<u8> {
    let mut words = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    while words.last() == Some(&0) {
        words.pop();
    }
    words.iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect()
}

/// FNV-1a of several texts.
fn fingerprint(texts: &[&[u8]]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.iter().chain(std::iter::once(&0)));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
