//! A signal that ends the program takes an unfinished output with it.
//!
//! This needs a moment, which a launcher need not give: Open MPI 4 kills right after it has sent SIGTERM. What is left then is found by
//! the next run (`pipeline/stale.rs`). The handler only writes to a pipe; a thread at the other end removes the directory and then lets the signal do what it does by default.
#![allow(unsafe_code)]

use crate::archive;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// Signals by which users and batch systems end programs.
const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Directories and files to be removed.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The writing end of the pipe.
static PIPE: AtomicI32 = AtomicI32::new(-1);

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While this exists, a signal removes the directory or file.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// For a directory that is there.
    pub fn new(directory: &Path) -> Unfinished {
        listen_once();
        unfinished().push(directory.to_path_buf());
        Unfinished(directory.to_path_buf())
    }

    /// For a file that `act` makes.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn make<T>(path: &Path, act: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<(T, Unfinished)> {
        listen_once();
        let mut list = unfinished();
        let made = act()?;
        list.push(path.to_path_buf());
        Ok((made, Unfinished(path.to_path_buf())))
    }

    /// Does something that no signal interrupts; after it the directory is safe.
    pub fn finish<T>(self, act: impl FnOnce() -> T) -> T {
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

/// Exit status of an error.
const ERROR: c_int = 2;

/// How long a thread that cannot go on waits for unfinished outputs to be removed.
const LAST_WORK: Duration = Duration::from_secs(5);

/// Most parts of a line of `end_now`.
const MOST_PARTS: usize = 4;

/// Says why (in up to four parts), removes what is unfinished, and ends this process with the status of an error, and so the job if there are other ranks.
/// For places from which there is no return: allocates nothing, and may be called in a signal handler.
pub fn end_now(why: &[&[u8]]) -> ! {
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
pub fn wait_if_ending() {
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
/// initialised.
pub fn expect_faults() {
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
            b": the file became shorter, or could not be read any more, while it was read\n",
        ]),
        // Not ours: the instruction is repeated, and the default action ends the program.
        // SAFETY: may be called in a handler.
        None => unsafe {
            libc::signal(signal, libc::SIG_DFL);
        },
    }
}

fn listen_once() {
    static LISTEN: Once = Once::new();
    LISTEN.call_once(listen);
}

/// Installs the handlers, but for signals that are ignored (`nohup`) or that somebody else handles. Without them all is as it was.
fn listen() {
    let mut ends = [0; 2];
    // SAFETY: pipe2(2) writes two file descriptors into the array.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return;
    }
    // SAFETY: the descriptor is open and belongs to nobody else.
    let pipe = unsafe { std::fs::File::from_raw_fd(ends[0]) };
    // SAFETY: the layout is not empty.
    RESERVE.store(unsafe { System.alloc(RESERVED) }, Ordering::SeqCst);
    PIPE.store(ends[1], Ordering::SeqCst);
    let ready = Arc::new(Barrier::new(2));
    let its = Arc::clone(&ready);
    let cleaner = move || {
        CLEANING.set(true);
        its.wait();
        clean_up(pipe);
    };
    if std::thread::Builder::new().name("signals".into()).spawn(cleaner).is_err() {
        PIPE.store(-1, Ordering::SeqCst);
        return;
    }
    // From here on the thread needs no memory until it is asked for help.
    ready.wait();
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
}

/// Waits for a signal, removes what is unfinished, ends the program.
fn clean_up(mut pipe: std::fs::File) {
    let mut signal = [0];
    if pipe.read_exact(&mut signal).is_err() {
        return;
    }
    if signal[0] == FAULT {
        free_reserve();
    }
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

/// Makes the memory that was set aside available, when others have done what they were about to do with the rest.
fn free_reserve() {
    std::thread::sleep(Duration::from_millis(10));
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
