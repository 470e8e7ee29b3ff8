//! The buffers of one thread: while one is filled, the other is written to the file of the thread by somebody else, when it disturbs least.
//!
//! A buffer is a file that is mapped into memory, so that what is in it survives the death of the process. Its first page tells how much of it counts, where that was
//! written to in the file of the thread, and its place in the order. In a ring, the oldest buffer is filled again instead of being written.

use crate::file::RawFile;
use crate::format::{HEADER, buffer, field};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Nothing in it is needed.
const FREE: u32 = 0;
/// The thread writes into it.
const FILLING: u32 = 1;
/// It waits to be written.
const FULL: u32 = 2;
/// It is being written.
const WRITING: u32 = 3;

struct Buffer {
    file: RawFile,
    path: PathBuf,
    state: AtomicU32,
}

impl Buffer {
    fn sequence(&self) -> u64 {
        self.file.number(buffer::SEQUENCE).load(Ordering::Relaxed)
    }

    fn committed(&self) -> usize {
        self.file.number(buffer::COMMITTED).load(Ordering::Acquire) as usize
    }
}

/// The file of a thread and its buffers.
pub(crate) struct Buffers {
    /// The file: its header is mapped, its records are written.
    pub file: RawFile,
    list: Vec<Buffer>,
    /// The one that is being filled: the thread's own business.
    current: usize,
    sequence: u64,
    size: usize,
    ring: bool,
    writing: AtomicBool,
    /// In a ring: buffers up to this one in the order are to be written.
    wanted: AtomicU64,
}

impl Buffers {
    /// The file `path`, which must not exist, and `count` buffers of `size` bytes beside it.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn create(path: &Path, count: usize, size: usize, ring: bool) -> io::Result<Buffers> {
        let file = RawFile::create(path, HEADER, HEADER)?;
        let mut list = Vec::with_capacity(count);
        for index in 0..count {
            let path = path.with_extension(format!("{index}.{}", buffer::EXTENSION));
            match RawFile::create(&path, size, usize::MAX) {
                Ok(file) => list.push(Buffer { file, path, state: AtomicU32::new(FREE) }),
                Err(error) => {
                    list.iter().map(|buffer: &Buffer| &buffer.path).chain([&path]).for_each(remove);
                    remove(file_path(&path));
                    return Err(error);
                }
            }
        }
        let mut buffers = Buffers {
            file,
            list,
            current: 0,
            sequence: 0,
            size,
            ring,
            writing: AtomicBool::new(false),
            wanted: AtomicU64::new(0),
        };
        buffers.begin(0);
        Ok(buffers)
    }

    /// Where the buffer that is being filled is, and how long it is.
    pub(crate) fn current(&self) -> (*mut u8, usize) {
        self.list.get(self.current).map_or((std::ptr::null_mut(), 0), |buffer| (buffer.file.base, buffer.file.limit()))
    }

    /// Nobody is to find them: they last as long as this process.
    pub(crate) fn hide(&self, path: &Path) {
        self.list.iter().map(|buffer| &buffer.path).for_each(remove);
        let _ = std::fs::remove_file(path);
    }

    /// Whether old buffers are filled again without having been written.
    pub(crate) fn is_ring(&self) -> bool {
        self.ring
    }

    /// So many bytes of the current buffer count.
    #[inline]
    pub(crate) fn commit(&self, bytes: usize) {
        if let Some(current) = self.list.get(self.current) {
            current.file.number(buffer::COMMITTED).store(bytes as u64, Ordering::Release);
        }
    }

    fn begin(&mut self, index: usize) {
        self.sequence += 1;
        if let Some(next) = self.list.get(index) {
            // In this order: whatever was in it does not count before it has a new place.
            next.file.number(buffer::COMMITTED).store(0, Ordering::Release);
            next.file.number(buffer::PLACE).store(buffer::NOWHERE, Ordering::Release);
            next.file.number(buffer::SEQUENCE).store(self.sequence, Ordering::Release);
            next.state.store(FILLING, Ordering::Release);
        }
        self.current = index;
    }

    /// The current buffer is full: goes on in the next one. Returns whether there is one.
    #[cold]
    pub(crate) fn turn(&mut self) -> bool {
        if let Some(old) = self.list.get(self.current) {
            old.state.store(FULL, Ordering::Release);
        }
        let index = (self.current + 1) % self.list.len();
        loop {
            let Some(next) = self.list.get(index) else { return false };
            match next.state.load(Ordering::Acquire) {
                FULL if self.ring && next.sequence() > self.wanted.load(Ordering::Relaxed) => {
                    if next.state.compare_exchange(FULL, FREE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                        break;
                    }
                }
                FULL => {
                    if self.write_due().is_err() {
                        return false;
                    }
                }
                WRITING => std::thread::yield_now(),
                _ => break,
            }
        }
        self.begin(index);
        true
    }

    /// Makes the current buffer longer, for a record that is longer than one. Returns its new length.
    #[cold]
    pub(crate) fn grow(&self, needed: usize) -> Option<usize> {
        let current = self.list.get(self.current)?;
        current.file.grow(needed).ok()?;
        Some(current.file.limit())
    }

    fn oldest(&self, state: u32) -> Option<&Buffer> {
        let those = self.list.iter().filter(|buffer| buffer.state.load(Ordering::Acquire) == state);
        those.min_by_key(|buffer| buffer.sequence())
    }

    /// Whether a buffer is full and has to be written.
    pub(crate) fn is_due(&self) -> bool {
        self.oldest(FULL).is_some_and(|buffer| buffer.sequence() <= self.last_wanted())
    }

    fn last_wanted(&self) -> u64 {
        if self.ring { self.wanted.load(Ordering::Relaxed) } else { u64::MAX }
    }

    /// Whether the other buffer is so full that writing cannot wait.
    pub(crate) fn is_urgent(&self) -> bool {
        self.ring || self.oldest(FILLING).is_some_and(|buffer| buffer.committed() > self.size / 4 * 3)
    }

    /// In a ring: everything up to now is to be written.
    pub(crate) fn want_all(&self) {
        let last = self.list.iter().map(Buffer::sequence).max();
        self.wanted.store(last.unwrap_or(0), Ordering::Relaxed);
    }

    /// Writes the oldest full buffer, if one is due. By any thread.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn write_due(&self) -> io::Result<()> {
        self.write_oldest(self.last_wanted())
    }

    fn write_oldest(&self, last: u64) -> io::Result<()> {
        self.take_turn();
        let mut result = Ok(());
        if let Some(buffer) = self.oldest(FULL).filter(|buffer| buffer.sequence() <= last)
            && buffer.state.compare_exchange(FULL, WRITING, Ordering::AcqRel, Ordering::Acquire).is_ok()
        {
            result = self.write(buffer);
            buffer.state.store(if result.is_ok() { FREE } else { FULL }, Ordering::Release);
        }
        self.writing.store(false, Ordering::Release);
        result
    }

    /// Waits until nobody else writes. Until `writing` is false again, nobody else does: two at once would write to the same place of the file.
    fn take_turn(&self) {
        while self.writing.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn write(&self, full: &Buffer) -> io::Result<()> {
        let count = self.file.number(field::COMMITTED);
        let (place, length) = (count.load(Ordering::Relaxed), full.committed());
        // From when the file says that it has it, it is not needed any more.
        full.file.number(buffer::PLACE).store(place, Ordering::Release);
        self.file.write_at(&full.file, HEADER, length, HEADER + place as usize)?;
        count.store(place + length as u64, Ordering::Release);
        Ok(())
    }

    fn write_all(&self) -> io::Result<()> {
        while let Some(full) = self.oldest(FULL) {
            self.write(full)?;
            full.state.store(FREE, Ordering::Release);
        }
        self.oldest(FILLING).map_or(Ok(()), |current| self.write(current))
    }

    /// Writes everything that is left and removes the buffers. Nobody writes into them any more.
    ///
    /// # Errors
    /// There is no room: they stay.
    pub(crate) fn end(&self) -> io::Result<()> {
        // The writer thread may be writing one still, if the disk is slow.
        self.take_turn();
        let result = self.write_all();
        self.writing.store(false, Ordering::Release);
        result?;
        self.list.iter().map(|buffer| &buffer.path).for_each(remove);
        Ok(())
    }
}

/// The file of the thread whose buffer this is.
fn file_path(buffer: &Path) -> PathBuf {
    buffer.with_extension("").with_extension("raw")
}

fn remove(path: impl AsRef<Path>) {
    let _ = std::fs::remove_file(path);
}
