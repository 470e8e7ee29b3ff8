//! What one thread records: records appended to its file. No allocation, no lock and no system call, unless the helper has not kept up.

use crate::clock;
use crate::file::RawFile;
use crate::format::{CALLS, FAILED, HEADER, LEAVE, field};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The records of one thread. Only this thread writes; the helper looks at the file.
pub struct Stream {
    /// Where they go.
    pub file: RawFile,
    position: usize,
    time: u64,
    comm: u64,
    request: u64,
    /// Room for statuses that the program does not want to know.
    scratch: *mut u8,
    scratch_size: usize,
    /// The next one of the process.
    pub next: AtomicPtr<Stream>,
}

/// Most bytes of an integer.
pub const LONGEST: usize = 10;

impl Stream {
    /// Into an empty file.
    pub fn new(file: RawFile) -> Stream {
        Stream {
            file,
            position: HEADER,
            time: 0,
            comm: 0,
            request: 0,
            scratch: std::ptr::null_mut(),
            scratch_size: 0,
            next: AtomicPtr::default(),
        }
    }

    /// Makes sure that so many integers can be appended; returns whether they can.
    #[inline]
    pub fn reserve(&mut self, integers: usize) -> bool {
        let needed = self.position + integers * LONGEST;
        needed <= self.file.limit() || self.file.grow(needed).is_ok()
    }

    /// Bytes written so far, header included.
    pub fn length(&self) -> usize {
        self.position
    }

    /// Appends an unsigned integer, for which there is room.
    #[inline]
    pub fn unsigned(&mut self, mut value: u64) {
        debug_assert!(self.position + LONGEST <= self.file.limit());
        // SAFETY: `reserve` has made sure of the room.
        unsafe {
            let mut place = self.file.base.add(self.position);
            while value >= 0x80 {
                *place = value as u8 | 0x80;
                place = place.add(1);
                value >>= 7;
            }
            *place = value as u8;
            self.position = place.add(1) as usize - self.file.base as usize;
        }
    }

    /// Appends a signed one.
    #[inline]
    pub fn signed(&mut self, value: i64) {
        self.unsigned((value << 1 ^ value >> 63) as u64);
    }

    /// Appends a handle of a communicator; `None` is the null handle.
    #[inline]
    pub fn comm(&mut self, handle: u64) {
        let difference = handle.wrapping_sub(self.comm) as i64;
        self.comm = handle;
        self.unsigned(((difference << 1 ^ difference >> 63) as u64).wrapping_add(1));
    }

    /// Appends a handle of a request; `None` is the null handle.
    #[inline]
    pub fn request(&mut self, handle: Option<u64>) {
        let Some(handle) = handle else { return self.unsigned(0) };
        let difference = handle.wrapping_sub(self.request) as i64;
        self.request = handle;
        self.unsigned(((difference << 1 ^ difference >> 63) as u64).wrapping_add(1));
    }

    fn stamp(&mut self, now: u64) {
        // Two cores may disagree by some cycles when a thread moves.
        self.unsigned(now.saturating_sub(self.time));
        self.time = self.time.max(now);
    }

    /// Begins the record of a call at a time.
    #[inline]
    pub fn enter_at(&mut self, function: u64, now: u64) {
        self.unsigned(CALLS + function);
        self.stamp(now);
    }

    /// Begins the record of a call, now.
    #[inline]
    pub fn enter(&mut self, function: u64) {
        self.enter_at(function, clock::before());
    }

    /// Begins the record of the end of a call.
    #[inline]
    pub fn leave(&mut self, now: u64, failed: bool) {
        self.unsigned(if failed { FAILED } else { LEAVE });
        self.stamp(now);
    }

    /// Everything up to here counts, whatever happens to the process.
    #[inline]
    pub fn commit(&self) {
        self.file.number(field::COMMITTED).store((self.position - HEADER) as u64, Ordering::Release);
    }

    /// Room for so many bytes, until the next call; null if there is no memory. It is allocated when more is needed than ever before.
    pub fn scratch(&mut self, bytes: usize) -> *mut u8 {
        if bytes > self.scratch_size {
            let size = bytes.next_power_of_two().max(4096);
            // SAFETY: it is this one's, or null.
            let room = unsafe { libc::realloc(self.scratch.cast(), size) };
            if room.is_null() {
                return std::ptr::null_mut();
            }
            self.scratch = room.cast();
            self.scratch_size = size;
        }
        self.scratch
    }
}
