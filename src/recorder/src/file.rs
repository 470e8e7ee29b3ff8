//! The file of a thread, mapped into memory.
//!
//! A large range of addresses is reserved at once, and the file grows beneath it: the disk space of the next megabytes is allocated before
//! anything is written there, so that a full disk is an error of that allocation and not a signal in the middle of an event.

use crate::format::{self, HEADER, MAGIC, field};
use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The file grows by so many bytes at once.
pub const CHUNK: usize = 4 << 20;

/// Largest file that this process may write: growing beyond it would be answered by a signal.
fn largest_file() -> usize {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// A mapped file.
pub struct RawFile {
    descriptor: c_int,
    /// Where it begins in memory.
    pub base: *mut u8,
    /// Size of the range of addresses.
    reserved: usize,
    /// Bytes that may be written to.
    limit: AtomicUsize,
    growing: AtomicBool,
    /// What the helper has seen in use, and up to where it has asked for pages.
    seen: AtomicUsize,
    pages: AtomicUsize,
}

impl RawFile {
    /// Makes the file, which must not exist, and maps it.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn create(path: &Path) -> io::Result<RawFile> {
        let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let descriptor = file.into_raw_fd();
        let mut last = io::Error::from(io::ErrorKind::OutOfMemory);
        // As much as there is address space for: it costs nothing.
        for bits in [36, 33, 30, 27] {
            let reserved = 1_usize << bits;
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
            // SAFETY: a new mapping of an open file; nothing is accessed before the file has grown there.
            let base =
                unsafe { libc::mmap(null_mut(), reserved, libc::PROT_READ | libc::PROT_WRITE, flags, descriptor, 0) };
            if base == libc::MAP_FAILED {
                last = io::Error::last_os_error();
                continue;
            }
            let raw = RawFile {
                descriptor,
                base: base.cast(),
                reserved,
                limit: AtomicUsize::new(0),
                growing: AtomicBool::new(false),
                seen: AtomicUsize::new(0),
                pages: AtomicUsize::new(0),
            };
            if let Err(error) = raw.grow(HEADER + 1) {
                // It says nothing about the run: a conversion need not find it.
                let name = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
                // SAFETY: the mapping and the descriptor are this function's, the name ends in zero.
                unsafe {
                    libc::munmap(base, reserved);
                    libc::unlink(name.as_ptr());
                    libc::close(descriptor);
                }
                return Err(error);
            }
            return Ok(raw);
        }
        // SAFETY: the descriptor is this function's.
        unsafe { libc::close(descriptor) };
        Err(last)
    }

    /// Bytes that may be written to.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Acquire)
    }

    /// Allocates disk space until at least `needed` bytes may be written to. Called by the thread of the file and by the helper.
    ///
    /// # Errors
    /// There is no space.
    pub fn grow(&self, needed: usize) -> io::Result<()> {
        while self.growing.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let mut result = Ok(());
        while self.limit() < needed {
            let limit = self.limit();
            if limit + CHUNK > self.reserved || limit + CHUNK > largest_file() {
                result = Err(io::Error::from(io::ErrorKind::OutOfMemory));
                break;
            }
            // SAFETY: the descriptor is open as long as this lives.
            let error = unsafe { libc::posix_fallocate(self.descriptor, limit as libc::off_t, CHUNK as libc::off_t) };
            if error == libc::EINTR {
                continue;
            }
            if error != 0 {
                result = Err(io::Error::from_raw_os_error(error));
                break;
            }
            self.limit.store(limit + CHUNK, Ordering::Release);
        }
        self.growing.store(false, Ordering::Release);
        result
    }

    /// Asks for the pages that will be written to next, of which `used` bytes are in use: as many as twice what has been used since it was asked before. Writing to
    /// a new page of a file takes as long as a hundred events, sometimes far longer. Called by the helper only.
    pub fn prepare_pages(&self, used: usize) {
        const PAGE: usize = 4096;
        let since = used.saturating_sub(self.seen.swap(used, Ordering::Relaxed));
        let from = self.pages.load(Ordering::Relaxed).max(used).next_multiple_of(PAGE);
        let to = (used + (2 * since).clamp(CHUNK / 32, CHUNK)).min(self.limit()) / PAGE * PAGE;
        if to > from {
            // SAFETY: pages that are mapped and allocated; their contents do not change. Kernels before 5.14 refuse, which does no harm.
            unsafe { libc::madvise(self.base.add(from).cast(), to - from, libc::MADV_POPULATE_WRITE) };
            self.pages.store(to, Ordering::Relaxed);
        }
    }

    /// Gives back what is allocated beyond `length` bytes. Nothing is written or grown any more.
    pub fn end_at(&self, length: usize) {
        while self.growing.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // It stays locked. If it cannot be shortened, it is larger than it need be.
        // SAFETY: the descriptor is open.
        let _ = unsafe { libc::ftruncate(self.descriptor, length as libc::off_t) };
    }

    /// A number of the header that others may read at any time.
    pub fn number(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= HEADER && offset.is_multiple_of(8));
        // SAFETY: the header has been allocated, it is aligned to a page, and the mapping is never removed.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }

    /// Fills in a text of the header; it is cut to `length - 1` bytes.
    pub fn text(&self, offset: usize, length: usize, text: &[u8]) {
        let count = text.len().min(length - 1);
        // SAFETY: the fields of texts lie in the header.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.base.add(offset), count) };
    }

    /// Puts the checksum over the fields that do not change any more.
    pub fn seal(&self) {
        let mut fields = Vec::with_capacity(field::CHECK - field::TABLE);
        for offset in (field::TABLE..field::CHECK).step_by(8) {
            fields.extend_from_slice(&self.number(offset).load(Ordering::Relaxed).to_le_bytes());
        }
        self.number(field::CHECK).store(format::checksum(&fields), Ordering::Relaxed);
    }

    /// Makes the header valid: from now on this is a raw file.
    pub fn begin(&self) {
        self.number(field::MAGIC).store(u64::from_le_bytes(MAGIC), Ordering::Release);
    }

    /// Keeps a later anchor.
    pub fn anchor(&self, anchor: [u64; 3]) {
        let latest = self.number(field::LATEST_ANCHOR);
        let next = if latest.load(Ordering::Relaxed) == 1 { 2 } else { 1 };
        for (i, value) in anchor.into_iter().enumerate() {
            self.number(field::ANCHORS[next - 1] + 8 * i).store(value, Ordering::Relaxed);
        }
        latest.store(next as u64, Ordering::Release);
    }
}
