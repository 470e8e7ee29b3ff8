//! Running out of memory: one line and the usual exit status, and no unfinished output, instead of an abort.
#![allow(unsafe_code)]

use crate::output::signals;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

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

/// Prepares for little memory: threads share what they allocate from, since the C library would reserve 64 MiB of address space for
/// each. Called once, at the start.
pub fn expect_little() {
    #[cfg(target_env = "gnu")]
    // SAFETY: a parameter of malloc(3), set while there is one thread.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns to the system what was freed between blocks that are still in use: what grows step by step leaves gaps, which larger blocks do not fit in.
pub fn return_gaps() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
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
