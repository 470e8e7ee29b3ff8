//! A signal that ends the program takes an unfinished output with it.
//!
//! This needs a moment, which a launcher need not give: Open MPI 4 kills right after it has sent SIGTERM. What is left then is found by
//! the next run (`output/orphans.rs`). The handler only writes to a pipe; a thread at the other end removes the directory and then lets the signal do what it does by default.
#![allow(unsafe_code)]

use clc_archive as archive;
use clc_trace::{Error, Result};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Signals by which users and batch systems end programs.
const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Whether this process is ours, and not one that embeds us.
static OURS: AtomicBool = AtomicBool::new(false);

/// Directories and files to be removed.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The writing end of the pipe.
static PIPE: AtomicI32 = AtomicI32::new(-1);

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// File descriptors for removing directories, each of which has to be opened.
static SPARE: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// An output and the directories in it are two levels; one more for whatever else is opened meanwhile.
const SPARES: usize = 3;

fn keep_spare(files: Vec<File>) {
    *SPARE.lock().unwrap_or_else(PoisonError::into_inner) = files;
}

/// While this exists, there is enough to remove an unfinished output when nothing more can be had: a thread, memory, file descriptors. It
/// is dropped right before this thread removes one itself.
#[derive(Debug)]
#[must_use]
pub(crate) struct SetAside(());

impl SetAside {
    /// To be made before the directory of the output.
    ///
    /// # Errors
    /// There is not enough.
    pub(crate) fn new() -> Result<SetAside> {
        let failed = |error: io::Error| {
            Error::new(format!("cannot reserve the resources for cleaning up after an error: {error}"))
                .hint("raise the limits for memory and for open files, ulimit -v and ulimit -n")
        };
        listening().map_err(failed)?;
        // An output before this one has taken it.
        if OURS.load(Ordering::SeqCst) && RESERVE.load(Ordering::SeqCst).is_null() {
            reserve().map_err(failed)?;
        }
        let spare: io::Result<Vec<File>> = (0..SPARES).map(|_| File::open("/")).collect();
        keep_spare(spare.map_err(failed)?);
        // Entering an output into the list shall not need memory.
        unfinished().reserve(SPARES);
        Ok(SetAside(()))
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        keep_spare(Vec::new());
        // Looking into a directory that is to be removed takes memory, which may be what was lacking.
        free_reserve();
    }
}

/// While this exists, a signal removes the directory or file.
#[derive(Debug)]
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    /// For an existing directory, with what is set aside for it.
    pub(crate) fn new(directory: &Path, _: &SetAside) -> Unfinished {
        unfinished().push(directory.to_path_buf());
        Unfinished(directory.to_path_buf())
    }

    /// For a file that `act` makes.
    ///
    /// # Errors
    /// Those of `act`.
    pub(crate) fn make<T>(path: &Path, act: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<(T, Unfinished)> {
        listening()?;
        let mut list = unfinished();
        let made = act()?;
        list.push(path.to_path_buf());
        Ok((made, Unfinished(path.to_path_buf())))
    }

    /// Does something that no signal interrupts; after it the directory is safe.
    pub(crate) fn finish<T>(self, act: impl FnOnce() -> T) -> T {
        let mut list = unfinished();
        let outcome = act();
        list.retain(|directory| *directory != self.0);
        outcome
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().retain(|directory| *directory != self.0);
    }
}

extern "C" fn on_signal(signal: c_int) {
    let byte = signal as u8;
    // SAFETY: write(2) may be called in a signal handler; it reads one byte that is there. If it fails, nothing can be done here.
    unsafe { libc::write(PIPE.load(Ordering::SeqCst), (&raw const byte).cast(), 1) };
}

/// Written to the pipe instead of a signal's number by a thread that cannot go on.
const FAULT: u8 = 0;

thread_local! {
    /// Whether this is the thread that removes what is unfinished.
    static CLEANING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a thread cannot go on, so that the program ends.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Memory for the thread that removes what is unfinished when there is no other. It takes address space only.
static RESERVE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
const RESERVED: Layout = Layout::new::<[u8; 1 << 20]>();

/// The stack of that thread, which removes directories and does nothing else.
const STACK: usize = 128 << 10;

/// Exit status of an error.
const ERROR: c_int = 2;

/// How long a thread that cannot go on waits for unfinished outputs to be removed. Chosen by hand: shorter may leave unfinished outputs behind,
/// longer delays the end that was asked for.
const LAST_WORK: Duration = Duration::from_secs(5);

/// Most parts of a line of `end_now`.
const MOST_PARTS: usize = 4;

/// Says why (in up to four parts), removes what is unfinished, and ends this process with the status of an error, and so the job if there are other ranks.
/// For places from which there is no return: allocates nothing, and may be called in a signal handler.
pub(crate) fn end_now(why: &[&[u8]]) -> ! {
    if !ENDING.swap(true, Ordering::SeqCst) {
        // One write: other processes of the job may say something, too.
        let mut parts = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; MOST_PARTS];
        for (place, part) in parts.iter_mut().zip(why) {
            *place = libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
        }
        // SAFETY: write(2) and writev(2) may be called anywhere; the bytes are there and are only read.
        unsafe {
            libc::writev(libc::STDERR_FILENO, parts.as_ptr(), MOST_PARTS as c_int);
            if libc::write(PIPE.load(Ordering::SeqCst), [FAULT].as_ptr().cast(), 1) != 1 {
                libc::_exit(ERROR);
            }
        }
    }
    wait_for_the_end()
}

/// Stops this thread if the program ends because one cannot go on: it shall not take the memory that is needed now. Allocates nothing.
#[inline]
pub(crate) fn wait_if_ending() {
    if ENDING.load(Ordering::Relaxed) && !CLEANING.get() {
        wait_for_the_end();
    }
}

/// Gives the thread at the other end of the pipe time to end the program. If this is that thread, nobody else can do it.
#[cold]
fn wait_for_the_end() -> ! {
    // SAFETY: usleep(3) and _exit(2) may be called anywhere.
    unsafe {
        if !CLEANING.get() {
            for _ in 0..LAST_WORK.as_millis() / 10 {
                libc::usleep(10_000);
            }
        }
        libc::_exit(ERROR)
    }
}

/// Makes errors of what is fatal by default: a file that is larger than the limit for files (writing then fails), and a mapped file of the
/// trace that somebody truncates, or that a broken disk cannot give back (one line, and the end). Called at the start, before and after MPI is
/// initialised. Without it, in a program that embeds a correction, signals are that program's business.
pub fn expect_faults() {
    OURS.store(true, Ordering::SeqCst);
    // SAFETY: as in `listen`; the handler does only what a handler may.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_fault as *const () as libc::sighandler_t;
        ours.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut());
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the system gives a valid pointer to a handler with SA_SIGINFO, and for SIGBUS an address in it.
    let address = unsafe { (*info).si_addr() } as usize;
    match archive::mapped_at(address) {
        Some(name) => end_now(&[
            b"clc-replay: error: ",
            name,
            b": the file became shorter or unreadable while it was being read\n",
        ]),
        // Not ours: the instruction is repeated, and the default action ends the program.
        // SAFETY: may be called in a handler.
        None => unsafe {
            libc::signal(signal, libc::SIG_DFL);
        },
    }
}

/// As `listen`, once; not in a program of somebody else.
fn listening() -> io::Result<()> {
    if !OURS.load(Ordering::SeqCst) {
        return Ok(());
    }
    static LISTENS: OnceLock<std::result::Result<(), c_int>> = OnceLock::new();
    let outcome = LISTENS.get_or_init(|| listen().map_err(|error| error.raw_os_error().unwrap_or(libc::ENOMEM)));
    (*outcome).map_err(io::Error::from_raw_os_error)
}

/// Starts the thread that removes what is unfinished and installs the handlers, but for signals that are ignored (`nohup`) or that
/// somebody else handles.
fn listen() -> io::Result<()> {
    let (reader, writer) = io::pipe()?;
    // The thread takes less than is reserved. So it gets its stack, and whatever else a thread begins with, or this is an error.
    reserve()?;
    free_reserve();
    let ready = Arc::new(Barrier::new(2));
    let its = Arc::clone(&ready);
    let cleaner = move || {
        CLEANING.set(true);
        its.wait();
        clean_up(reader);
    };
    std::thread::Builder::new().name("signals".into()).stack_size(STACK).spawn(cleaner)?;
    // From here on the thread needs no memory until it is asked for help.
    ready.wait();
    reserve()?;
    PIPE.store(writer.into_raw_fd(), Ordering::SeqCst);
    for signal in SIGNALS {
        // SAFETY: all-zero is a valid `sigaction` (default action, no flags, empty mask), and both pointers are valid; the
        // handler does only what a handler may. A second signal of the kind finds the default action and ends the program at once.
        unsafe {
            let mut present: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut present) == 0 && present.sa_sigaction == libc::SIG_DFL {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = on_signal as *const () as libc::sighandler_t;
                ours.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
                libc::sigaction(signal, &ours, std::ptr::null_mut());
            }
        }
    }
    Ok(())
}

/// Waits for a signal, removes what is unfinished, ends the program.
fn clean_up(mut pipe: PipeReader) {
    let mut signal = [0];
    if pipe.read_exact(&mut signal).is_err() {
        return;
    }
    if signal[0] == FAULT {
        // When others have done what they were about to do with the rest.
        std::thread::sleep(Duration::from_millis(10));
        free_reserve();
    }
    keep_spare(Vec::new());
    // Whoever puts an output into place finishes that first; nobody starts it after this.
    let list = unfinished();
    list.iter().for_each(|directory| remove(directory));
    if signal[0] == FAULT {
        // SAFETY: ends the process.
        unsafe { libc::_exit(ERROR) }
    }
    // SAFETY: resetting a signal and sending it to this process.
    unsafe {
        libc::signal(c_int::from(signal[0]), libc::SIG_DFL);
        libc::kill(libc::getpid(), c_int::from(signal[0]));
    }
    loop {
        std::thread::park();
    }
}

/// Sets memory aside.
fn reserve() -> io::Result<()> {
    // SAFETY: the layout is not empty.
    let reserve = unsafe { System.alloc(RESERVED) };
    RESERVE.store(reserve, Ordering::SeqCst);
    if reserve.is_null() { Err(io::Error::from_raw_os_error(libc::ENOMEM)) } else { Ok(()) }
}

/// Makes the memory that was set aside available.
fn free_reserve() {
    let reserve = RESERVE.swap(ptr::null_mut(), Ordering::SeqCst);
    if !reserve.is_null() {
        // SAFETY: it was allocated with this layout, and only the one who took it out has it.
        unsafe { System.dealloc(reserve, RESERVED) };
    }
}

/// Removes a file, or a directory into which threads and other ranks may still write for a moment.
fn remove(path: &Path) {
    for _ in 0..50 {
        match if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) } {
            Ok(()) => return,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
