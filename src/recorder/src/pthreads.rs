//! Threads that the program makes by `pthread_create` and waits for by `pthread_join`.
//!
//! Both functions are passed on to the system's library. A thread is made to begin in a function of the recorder, which notes when that was and goes on to the
//! program's. Only threads that record something have a file, and only then it says when they began and ended; a creation by a thread without a file is not recorded.
//! Which thread was waited for follows after the run from what the system calls it: that name belongs to no other thread before somebody has waited for it. So no list
//! of threads has to be kept, and calls of MPI cost nothing more.

use crate::clock;
use crate::format::{PTHREAD, pthread};
use crate::functions::ROOM;
use crate::hooks;
use crate::real::Real;
use crate::thread_birth;
use crate::user;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A thread may be ended by unwinding its stack (`pthread_exit`, `pthread_cancel`): nothing is dropped in between.
type Work = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C-unwind" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Work, *mut c_void) -> c_int;
type Join = unsafe extern "C-unwind" fn(libc::pthread_t, *mut *mut c_void) -> c_int;

/// What a thread is to do, and its number.
struct Start {
    work: Work,
    argument: *mut c_void,
    number: u64,
}

static CREATE: Real = Real::new(c"pthread_create");
static JOIN: Real = Real::new(c"pthread_join");
/// Threads that have been made.
static MADE: AtomicU64 = AtomicU64::new(0);
/// Has [`end`] called for a thread that ends; none if the system has no more of these.
static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

/// Appends a step of this thread, which has a file.
fn step<const N: usize>(time: u64, step: u64, values: [u64; N]) {
    hooks::append(ROOM, |stream| {
        stream.unsigned(PTHREAD);
        stream.stamp(time);
        stream.unsigned(step);
        values.into_iter().for_each(|value| stream.unsigned(value));
    });
}

/// Begins a thread.
unsafe extern "C-unwind" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: it comes from `Box::into_raw` in `pthread_create`, once.
    let Start { work, argument, number } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    thread_birth::began(number, clock::after());
    if let Some(&Some(key)) = KEY.get() {
        // SAFETY: the key has been made; the value is never looked at.
        unsafe { libc::pthread_setspecific(key, std::ptr::dangling::<u8>().cast()) };
    }
    // SAFETY: as the program wants it.
    unsafe { work(argument) }
}

/// This thread ends.
unsafe extern "C" fn end(_: *mut c_void) {
    if hooks::is_recorded() {
        step(clock::before(), pthread::END, [0]);
    }
}

fn key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: the function has the type that the system expects.
    (unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } == 0).then_some(key)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    work: Work,
    argument: *mut c_void,
) -> c_int {
    let address = CREATE.address();
    if address.is_null() {
        return libc::EAGAIN;
    }
    // SAFETY: this is its type.
    let real: Create = unsafe { std::mem::transmute(address) };
    if !hooks::is_recorded() {
        // SAFETY: the arguments of the caller.
        return unsafe { real(thread, attributes, work, argument) };
    }
    KEY.get_or_init(key);
    let number = MADE.fetch_add(1, Ordering::Relaxed) + 1;
    let start = Box::into_raw(Box::new(Start { work, argument, number }));
    user::region_begins(pthread::CREATING);
    step(clock::before(), pthread::CREATE, [number]);
    // SAFETY: the arguments of the caller, but that the thread begins in `run`, which takes what it is given.
    let result = unsafe { real(thread, attributes, run, start.cast()) };
    if result == 0 {
        // SAFETY: the system has stored it there.
        step(clock::after(), pthread::CREATED, [number, unsafe { *thread }]);
    } else {
        // SAFETY: no thread has it.
        drop(unsafe { Box::from_raw(start) });
    }
    user::region_ends(pthread::CREATING);
    result
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_join(thread: libc::pthread_t, value: *mut *mut c_void) -> c_int {
    let address = JOIN.address();
    if address.is_null() {
        return libc::ESRCH;
    }
    // SAFETY: this is its type.
    let real: Join = unsafe { std::mem::transmute(address) };
    let recorded = hooks::is_recorded();
    if recorded {
        user::region_begins(pthread::WAITING);
    }
    // SAFETY: the arguments of the caller.
    let result = unsafe { real(thread, value) };
    if recorded {
        if result == 0 {
            step(clock::after(), pthread::WAITED, [thread]);
        }
        user::region_ends(pthread::WAITING);
    }
    result
}
