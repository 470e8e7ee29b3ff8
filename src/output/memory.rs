//! Running out of memory: one line and the usual exit status, and no unfinished output, instead of an abort.
#![allow(unsafe_code)]

use crate::output::signals;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// The system's allocator, for the program (not for those who use the library). When it has nothing left to give, the program says so
/// and ends.
pub struct ReportingAllocator;

// SAFETY: everything is done by the system's allocator; null is never returned, which is allowed.
unsafe impl GlobalAlloc for ReportingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        signals::wait_if_ending();
        // SAFETY: the caller keeps the rules of `alloc`.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        signals::wait_if_ending();
        // SAFETY: the caller keeps the rules of `alloc_zeroed`.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        signals::wait_if_ending();
        // SAFETY: the caller keeps the rules of `realloc`.
        granted(unsafe { System.realloc(old, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the rules of `dealloc`.
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn granted(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        refused(bytes);
    }
    pointer
}

/// Whether this is the program: those who use the library decide on their memory themselves.
static IS_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Prepares for little memory: what grows has pages of its own as soon as it is no longer small, which are moved instead of copied and leave no gaps. Where address space is limited
/// (`ulimit -v`), threads share what they allocate from, since the C library would reserve 64 MiB of it for each; elsewhere they would only wait for each other. Called once, at the start.
pub fn expect_little() {
    IS_PROGRAM.store(true, Ordering::Relaxed);
    return_large_blocks();
    #[cfg(target_env = "gnu")]
    if limit_of(libc::RLIMIT_AS).is_none_or(|bytes| bytes < libc::RLIM_INFINITY) {
        // SAFETY: a parameter of malloc(3), set while there is one thread.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// A limit of this process that is in force; none if the system does not tell.
fn limit_of(resource: Resource) -> Option<libc::rlim_t> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the answer.
    let told = unsafe { libc::getrlimit(resource, &raw mut limit) };
    (told == 0).then_some(limit.rlim_cur)
}

/// Whether the stack of the main thread is limited (`ulimit -s`) to less than the program may need: reading its arguments alone takes some 100 KiB.
pub fn is_stack_small() -> bool {
    limit_of(libc::RLIMIT_STACK).is_some_and(|bytes| bytes < (1 << 20))
}

/// Returns to the system what was freed between blocks that are still in use: what grows step by step leaves gaps, which larger blocks do not fit in.
pub(crate) fn return_gaps() {
    #[cfg(target_env = "gnu")]
    if IS_PROGRAM.load(Ordering::Relaxed) {
        // SAFETY: malloc_trim(3) may be called at any time.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

/// For work in which large blocks come and go: they are kept for the next ones, since the system would have to clear new pages each time.
pub(crate) fn keep_large_blocks() {
    own_pages_from(32 << 20, 64 << 20);
}

/// For work in which large blocks stay: they have pages of their own again, and what was kept is returned to the system.
pub(crate) fn return_large_blocks() {
    own_pages_from(128 << 10, 8 << 20);
    return_gaps();
}

/// Blocks of so many bytes have pages of their own, which go back to the system with them, as does what is `free` behind the last of the others.
fn own_pages_from(bytes: i32, free: i32) {
    #[cfg(target_env = "gnu")]
    if IS_PROGRAM.load(Ordering::Relaxed) {
        // SAFETY: parameters of malloc(3), which takes its lock to set them.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, bytes);
            libc::mallopt(libc::M_TRIM_THRESHOLD, free);
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = (bytes, free);
}

/// Nothing here allocates.
#[cold]
fn refused(bytes: usize) -> ! {
    let mut line = [0u8; 200];
    let mut rest = &mut line[..];
    let _ = writeln!(
        rest,
        "clc-replay: error: out of memory: the system refused another {bytes} bytes (raise the limit, or use more \
        nodes with fewer analysis ranks each)"
    );
    let length = 200 - rest.len();
    signals::end_now(&[&line[..length]])
}
