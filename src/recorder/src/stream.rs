//! What one thread records: records appended to a buffer of its file. No allocation, no lock and no system call, unless nobody has written full buffers away.

mod polls;

use crate::buffers::Buffers;
use crate::clock;
use crate::format::{CALLS, FAILED, HEADER, LEAVE, LONGEST_TEXT, SEGMENT, TEXT};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// What the records that follow build upon.
#[derive(Clone, Copy, Default)]
struct EncoderState {
    time: u64,
    comm: u64,
    request: u64,
    win: u64,
    address: u64,
    /// The call that has begun and not ended: its function plus 1 and how many requests it was given.
    open: u64,
    requests: u64,
}

/// Polls in vain in a row.
struct JoinedPolls {
    /// How many there were, not counting those that were joined.
    row: u32,
    /// Where the record of the last one ends: if there is another one, they are in a row no more.
    end: usize,
    /// Where the values of the record of those that are joined are; null if there are none.
    values: *mut u64,
    /// The call that has begun last has requests that are not null.
    requests: bool,
}

impl JoinedPolls {
    /// No such polls.
    const NONE: JoinedPolls = JoinedPolls { row: 0, end: 0, values: null_mut(), requests: false };
}

/// The records of one thread. Only this thread writes; the helper looks at the buffers.
pub(crate) struct Stream {
    /// Where they go.
    pub buffers: Buffers,
    /// The buffer that is being filled: where it begins, up to where it may be written to, and the next byte.
    base: *mut u8,
    limit: usize,
    position: usize,
    /// Where the last whole record ends.
    committed: usize,
    state: EncoderState,
    /// The state after the last whole record.
    kept: EncoderState,
    /// Texts that later records can refer to: for each number a checksum; null before the first.
    texts: *mut u64,
    /// When the call began that the thread is in; 0 if it is in none.
    pub inside_since: AtomicU64,
    /// When the first and the last of the polls in vain began and ended that were joined last. Zero the last, if the thread did other things for half of the time.
    pub polled: [AtomicU64; 2],
    /// Room for statuses that the program does not want to know.
    scratch: *mut u8,
    scratch_size: usize,
    /// How many members the group had that is in it.
    members: usize,
    /// Polls in vain, one after the other.
    polls: JoinedPolls,
    /// The next one of the process.
    pub next: AtomicPtr<Stream>,
}

/// So many texts are known at the same time. Chosen by hand: 8 KiB a thread; with fewer, texts are written again more often.
const TEXTS: usize = 1024;

/// Most bytes of an integer.
pub(crate) const LONGEST: usize = 10;

/// Integers of the record that begins a buffer.
const STATE: usize = 9;

impl Stream {
    /// Into empty buffers.
    pub(crate) fn new(buffers: Buffers) -> Stream {
        let (base, limit) = buffers.current();
        let mut stream = Stream {
            buffers,
            base,
            limit,
            position: HEADER,
            committed: HEADER,
            state: EncoderState::default(),
            kept: EncoderState::default(),
            texts: null_mut(),
            inside_since: AtomicU64::new(0),
            polled: [AtomicU64::new(0), AtomicU64::new(0)],
            scratch: null_mut(),
            scratch_size: 0,
            members: 0,
            polls: JoinedPolls::NONE,
            next: AtomicPtr::default(),
        };
        stream.begin_buffer();
        stream
    }

    /// Makes sure that so many integers can be appended; returns whether they can.
    #[inline]
    pub(crate) fn reserve(&mut self, integers: usize) -> bool {
        let needed = self.position + integers * LONGEST;
        needed <= self.limit || self.turn(integers * LONGEST)
    }

    /// Goes on in the next buffer: with the record that has begun, of which so many bytes are still to come.
    #[cold]
    fn turn(&mut self, bytes: usize) -> bool {
        let (from, length) = (self.base, self.position - self.committed);
        let begun = self.committed;
        let state = self.state;
        // What they have been joined into is in the old buffer.
        self.forget_polls();
        if !self.buffers.turn() {
            return false;
        }
        (self.base, self.limit) = self.buffers.current();
        self.state = self.kept;
        self.begin_buffer();
        // Where buffers get lost, so do texts.
        if self.buffers.is_ring() && !self.texts.is_null() {
            // SAFETY: it has so many.
            unsafe { std::ptr::write_bytes(self.texts, 0, TEXTS) };
        }
        let needed = self.position + length + bytes;
        if needed > self.limit {
            match self.buffers.grow(needed) {
                Some(limit) => self.limit = limit,
                None => return false,
            }
        }
        // SAFETY: the old buffer stays as it is until this thread needs it again, and the new one has room.
        unsafe { std::ptr::copy_nonoverlapping(from.add(begun), self.base.add(self.position), length) };
        self.position += length;
        self.state = state;
        true
    }

    /// What precedes all records of a buffer: it can be read without the one before it.
    fn begin_buffer(&mut self) {
        self.position = HEADER;
        let EncoderState { time, comm, request, win, address, open, requests } = self.state;
        for value in [SEGMENT, time, comm, request, win, address, open, requests] {
            self.unsigned(value);
        }
        debug_assert!(self.position <= HEADER + STATE * LONGEST);
        self.kept = self.state;
        self.committed = self.position;
        self.buffers.commit(self.position - HEADER);
    }

    /// Appends an unsigned integer, for which there is room.
    #[inline]
    pub(crate) fn unsigned(&mut self, mut value: u64) {
        debug_assert!(self.position + LONGEST <= self.limit);
        // SAFETY: `reserve` has made sure of the room.
        unsafe {
            let mut place = self.base.add(self.position);
            while value >= 0x80 {
                *place = value as u8 | 0x80;
                place = place.add(1);
                value >>= 7;
            }
            *place = value as u8;
            self.position = place.add(1) as usize - self.base as usize;
        }
    }

    /// Appends a signed one.
    #[inline]
    pub(crate) fn signed(&mut self, value: i64) {
        self.unsigned((value << 1 ^ value >> 63) as u64);
    }

    /// Appends the difference of a handle to the last one of its class, plus 1.
    #[inline]
    fn handle(&mut self, handle: u64, last: u64) {
        let difference = handle.wrapping_sub(last) as i64;
        self.unsigned(((difference << 1 ^ difference >> 63) as u64).wrapping_add(1));
    }

    /// Appends a handle of a communicator.
    #[inline]
    pub(crate) fn comm(&mut self, handle: u64) {
        let last = std::mem::replace(&mut self.state.comm, handle);
        self.handle(handle, last);
    }

    /// Appends a handle of a window.
    #[inline]
    pub(crate) fn win(&mut self, handle: u64) {
        let last = std::mem::replace(&mut self.state.win, handle);
        self.handle(handle, last);
    }

    /// Appends a handle of a request; `None` is the null handle.
    #[inline]
    pub(crate) fn request(&mut self, handle: Option<u64>) {
        let Some(handle) = handle else { return self.unsigned(0) };
        self.polls.requests = true;
        let last = std::mem::replace(&mut self.state.request, handle);
        self.handle(handle, last);
    }

    /// Appends the number of requests of the call that has begun.
    #[inline]
    pub(crate) fn request_count(&mut self, count: usize) {
        self.state.requests = count as u64;
        self.unsigned(count as u64);
    }

    /// Appends the address of a function.
    #[inline]
    pub(crate) fn address(&mut self, address: usize) {
        let last = std::mem::replace(&mut self.state.address, address as u64);
        self.signed((address as u64).wrapping_sub(last) as i64);
    }

    /// Number of a text, for which there is room: it is appended unless it has been before.
    pub(crate) fn number_of(&mut self, text: &[u8]) -> u64 {
        let hash = text
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let hash = hash.max(1);
        if self.texts.is_null() {
            // SAFETY: it is this one's from now on.
            self.texts = unsafe { libc::calloc(TEXTS, 8) }.cast();
        }
        let mut slot = (hash >> 32) as usize % TEXTS;
        if !self.texts.is_null() {
            // What is beyond the last try is forgotten: then the number gets another meaning.
            for _ in 0..8 {
                // SAFETY: the slot is less than the number of them.
                match unsafe { *self.texts.add(slot) } {
                    0 => break,
                    known if known == hash => return slot as u64,
                    _ => slot = (slot + 1) % TEXTS,
                }
            }
            // SAFETY: as above.
            unsafe { *self.texts.add(slot) = hash };
        }
        self.unsigned(TEXT);
        self.unsigned(slot as u64);
        self.text(text);
        slot as u64
    }

    /// Appends a text, for which there is room: its length, and [`LONGEST_TEXT`] bytes of it at most.
    pub(crate) fn text(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(LONGEST_TEXT)];
        self.unsigned(text.len() as u64);
        // SAFETY: `reserve` has made sure of the room.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.base.add(self.position), text.len()) };
        self.position += text.len();
    }

    /// Appends a time.
    #[inline]
    pub(crate) fn stamp(&mut self, now: u64) {
        // Two cores may disagree by some cycles when a thread moves.
        self.unsigned(now.saturating_sub(self.state.time));
        self.state.time = self.state.time.max(now);
    }

    /// Begins the record of a call at a time.
    #[inline]
    pub(crate) fn enter_at(&mut self, function: u64, now: u64) {
        self.unsigned(CALLS + function);
        self.stamp(now);
        self.state.open = function + 1;
        self.inside_since.store(now, Ordering::Relaxed);
    }

    /// Begins the record of a call, now.
    #[inline]
    pub(crate) fn enter(&mut self, function: u64) {
        self.enter_at(function, clock::before());
    }

    /// Begins the record of the end of a call.
    #[inline]
    pub(crate) fn leave(&mut self, now: u64, failed: bool) {
        self.unsigned(if failed { FAILED } else { LEAVE });
        self.stamp(now);
        self.state.open = 0;
        self.state.requests = 0;
        self.inside_since.store(0, Ordering::Relaxed);
    }

    /// Everything up to here counts, whatever happens to the process.
    #[inline]
    pub(crate) fn commit(&mut self) {
        self.committed = self.position;
        self.kept = self.state;
        self.buffers.commit(self.position - HEADER);
    }

    /// What was appended since the last whole record is forgotten.
    #[inline]
    pub(crate) fn roll_back(&mut self) {
        self.position = self.committed;
        self.state = self.kept;
        self.inside_since.store(0, Ordering::Relaxed);
    }

    /// The communicator of the record that has begun, if it has one; else that of an earlier one.
    #[inline]
    pub(crate) fn last_comm(&self) -> u64 {
        self.state.comm
    }

    /// Appends the members of a group, of which there are `count`: global ranks behind as many others in the scratch.
    ///
    /// # Safety
    /// They are there.
    pub(crate) unsafe fn group(&mut self, count: usize) {
        self.members = count;
        self.unsigned(count as u64);
        for k in 0..count {
            // SAFETY: the caller says so.
            let rank = unsafe { *self.scratch.cast::<c_int>().add(count + k) };
            self.unsigned(rank as u32 as u64);
        }
    }

    /// The members of the last group, if nothing else has been in the scratch since.
    pub(crate) fn last_group(&self) -> &[c_int] {
        if self.members == 0 {
            return &[];
        }
        // SAFETY: they were put there, and it never gets smaller.
        unsafe { std::slice::from_raw_parts(self.scratch.cast::<c_int>().add(self.members), self.members) }
    }

    /// Room for so many bytes, until the next call; null if there is no memory. It is allocated when more is needed than ever before.
    pub(crate) fn scratch(&mut self, bytes: usize) -> *mut u8 {
        if bytes > self.scratch_size {
            let size = bytes.next_power_of_two().max(4096);
            // SAFETY: it is this one's, or null.
            let room = unsafe { libc::realloc(self.scratch.cast(), size) };
            if room.is_null() {
                return null_mut();
            }
            self.scratch = room.cast();
            self.scratch_size = size;
        }
        self.scratch
    }
}
