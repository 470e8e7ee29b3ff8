//! The recording of this process, from `MPI_Init` to `MPI_Finalize`.

use crate::abi::Abi;
use crate::buffers::Buffers;
use crate::calls::TABLE;
use crate::clock;
use crate::control::Control;
use crate::format::{self, COMMUNICATOR, INTER, LONGEST_TEXT, MAPS, NAME, NAME_OF_WINDOW, field};
use crate::functions;
use crate::layout;
use crate::monitor::{self, Board, NewMembership};
use crate::offsets::Meter;
use crate::openmp_runtime;
use crate::say;
use crate::stream::{LONGEST, Stream};
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
    let (rank, size) = (get(abi.mpi.comm_rank, abi.world), get(abi.mpi.comm_size, abi.world));
    let parent = {
        let mut parent = 0_u64;
        // SAFETY: it has room for a handle of either kind.
        unsafe { (abi.mpi.comm_get_parent)(&raw mut parent as usize) };
        abi.handle_of(parent as usize)
    };
    if parent != abi.no_comm {
        // Its ranks are not those of the recording.
        if rank == 0 {
            say("processes started by MPI_Comm_spawn are not recorded");
        }
        return null_mut();
    }
    let host = host();
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let (node, machine) = (fingerprint(&[&host, &boot]), fingerprint(&[&boot]));
    let mut session = Session {
        control: Control::of_environment(),
        directory: PathBuf::from(directory),
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
    // All processes take part in it, whether they can record or not.
    if !session.discard {
        session.meter = Meter::new(&session.abi, &session.directory, rank as usize, size as usize, node);
    }
    if let Some(meter) = &session.meter {
        meter.measure(&session.abi);
    }
    // SAFETY: it has room for a handle of either kind.
    unsafe { (session.abi.mpi.comm_group)(session.abi.world as usize, &raw mut session.world_group as usize) };
    let session = SESSION.get_or_init(|| session);
    let made = session.make_stream(session.new_thread(), true);
    let stream = match made {
        Ok(stream) => stream,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            if rank == 0 {
                say("another program has already been recorded; this one is not");
            }
            return null_mut();
        }
        Err(error) => {
            say(&format!("rank {rank}: {}: {error}; nothing is recorded", session.directory.display()));
            return null_mut();
        }
    };
    // SAFETY: it has just been made, and is this thread's.
    let first = unsafe { &mut *stream };
    if !first.reserve(64) {
        return null_mut();
    }
    functions::begin(first);
    first.enter_at(number, entered);
    first.leave(clock::after(), false);
    first.commit();
    // A second one, for a process that is killed soon.
    first.buffers.file.anchor(clock::anchor());
    session.control.begin();
    // SAFETY: a function that only sets a flag is safe to call in a child.
    unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    if let Some(board) = monitor::board() {
        board.initialised(session.rank, session.size, [session.abi.world, session.abi.own]);
    }
    RECORDING.store(true, Ordering::Release);
    stream
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

    /// What a function says of a communicator; 0 for none, of which MPI would complain before the program asks it.
    fn of_comm(&self, function: unsafe extern "C" fn(usize, usize) -> c_int, comm: u64) -> c_int {
        if comm == self.abi.no_comm || comm == 0 { 0 } else { get(function, comm) }
    }

    /// Rank of this process in a communicator.
    pub(crate) fn rank_in(&self, comm: u64) -> usize {
        self.of_comm(self.abi.mpi.comm_rank, comm).max(0) as usize
    }

    /// Number of processes of a communicator, or of the own group of an inter-communicator.
    pub(crate) fn size_of(&self, comm: u64) -> usize {
        self.of_comm(self.abi.mpi.comm_size, comm).max(0) as usize
    }

    /// Whether this process has a rank of an intra-communicator, which is where roots are given by their ranks in the own group.
    pub(crate) fn is_rank(&self, comm: u64, rank: i64) -> bool {
        self.of_comm(self.abi.mpi.comm_test_inter, comm) == 0
            && i64::from(self.of_comm(self.abi.mpi.comm_rank, comm)) == rank
    }

    /// With how many processes this one exchanges data in a collective operation.
    pub(crate) fn peers(&self, comm: u64) -> usize {
        if self.of_comm(self.abi.mpi.comm_test_inter, comm) == 0 {
            return self.size_of(comm);
        }
        self.of_comm(self.abi.mpi.comm_remote_size, comm).max(0) as usize
    }

    /// Records a communicator that this process has become a member of, with its members if `list` is set or there is no other way to tell which
    /// one it is. Its group is that of `comm`, which is the communicator itself unless that cannot be asked yet. Returns what it is, if it is one; nothing
    /// at all if there was no room.
    #[cold]
    pub(crate) fn describe(
        &self,
        stream: &mut Stream,
        handle: u64,
        comm: u64,
        list: bool,
    ) -> Option<Option<NewMembership>> {
        if handle == self.abi.no_comm || handle == 0 {
            return Some(None);
        }
        let mpi = &self.abi.mpi;
        let (rank, size) = (get(mpi.comm_rank, comm).max(0) as usize, get(mpi.comm_size, comm).max(0) as usize);
        let inter = get(mpi.comm_test_inter, comm) != 0;
        let list = list || inter || rank == 0;
        let members = self.global_ranks(mpi.comm_group, comm, if list { size } else { 1 });
        let others = if inter { get(mpi.comm_remote_size, comm).max(0) as usize } else { 0 };
        if !stream.reserve(members.len() + others + 16) {
            return None;
        }
        stream.unsigned(COMMUNICATOR);
        stream.comm(handle);
        stream.unsigned(rank as u64);
        stream.unsigned(if inter { INTER } else { 0 });
        let write = |stream: &mut Stream, ranks: &[c_int]| {
            stream.unsigned(ranks.len() as u64);
            ranks.iter().for_each(|&rank| stream.unsigned(rank as u32 as u64));
        };
        write(stream, if list { &members } else { &[] });
        stream.unsigned(members.first().map_or(u64::MAX, |&member| member as u32 as u64));
        let tell = |ranks: &[c_int]| {
            let ranks: Vec<u64> = ranks.iter().map(|&rank| rank as u32 as u64).collect();
            (ranks.first().copied().unwrap_or(u64::MAX), layout::identity(&ranks))
        };
        let (first, all) = tell(&members);
        let mut remote = None;
        if inter {
            let ranks = self.global_ranks(mpi.comm_remote_group, comm, others);
            write(stream, &ranks);
            remote = Some(tell(&ranks));
        }
        Some(Some(NewMembership { handle, rank, size, first, members: all, others: remote }))
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

    /// Appends a group: number of members and their global ranks. Returns whether there was room.
    pub(crate) fn group(&self, stream: &mut Stream, group: u64) -> bool {
        let mpi = &self.abi.mpi;
        let count = get(mpi.group_size, group).max(0) as usize;
        if !stream.reserve(count + 16) {
            return false;
        }
        let ranks = stream.scratch(8 * count.max(1)).cast::<c_int>();
        if ranks.is_null() {
            return false;
        }
        // SAFETY: the scratch has room for twice as many ranks.
        unsafe {
            let global = ranks.add(count);
            (0..count).for_each(|k| *ranks.add(k) = k as c_int);
            let world = self.world_group as usize;
            (mpi.group_translate_ranks)(group as usize, count, ranks as usize, world, global as usize);
            stream.group(count);
        }
        true
    }

    /// Records the name that a communicator or a window has now. Returns whether there was room.
    #[cold]
    pub(crate) fn name(&self, stream: &mut Stream, class: u64, handle: u64) -> bool {
        // MPI_MAX_OBJECT_NAME is 64 or 128.
        let mut name = [0_u8; 1024];
        let mut length: c_int = 0;
        let mpi = &self.abi.mpi;
        let ask = if class == NAME_OF_WINDOW { mpi.win_get_name } else { mpi.comm_get_name };
        // SAFETY: the name is longer than any.
        unsafe { ask(handle as usize, name.as_mut_ptr() as usize, &raw mut length as usize) };
        if !stream.reserve(LONGEST_TEXT / LONGEST + 16) {
            return false;
        }
        stream.unsigned(NAME);
        stream.unsigned(class);
        if class == NAME_OF_WINDOW {
            stream.win(handle)
        } else {
            stream.comm(handle)
        }
        stream.text(&name[..(length.max(0) as usize).min(name.len())]);
        true
    }

    /// Ranks in `MPI_COMM_WORLD` of the first `count` members of a group of a communicator.
    fn global_ranks(
        &self,
        group_of: unsafe extern "C" fn(usize, usize) -> c_int,
        comm: u64,
        count: usize,
    ) -> Vec<c_int> {
        let ranks: Vec<c_int> = (0..count as c_int).collect();
        let mut global = vec![-1; count];
        let (mut group, mut world) = (0_u64, 0_u64);
        let mpi = &self.abi.mpi;
        // SAFETY: groups have room for a handle of either kind, and the lists have `count` elements.
        unsafe {
            group_of(comm as usize, &raw mut group as usize);
            (mpi.comm_group)(self.abi.world as usize, &raw mut world as usize);
            let (from, to) = (ranks.as_ptr() as usize, global.as_mut_ptr() as usize);
            (mpi.group_translate_ranks)(group as usize, count, from, world as usize, to);
            (mpi.group_free)(&raw mut group as usize);
            (mpi.group_free)(&raw mut world as usize);
        }
        global
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
