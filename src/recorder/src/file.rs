//! Files that are mapped into memory: the buffers of a thread, and the header of its file.
//!
//! Their disk space is allocated before anything is written there, so that a full disk is an error of that allocation and not a signal in the middle of an event. A large
//! range of addresses is reserved at once, beneath which a buffer can grow for a record that is longer than it.

use crate::format::{self, HEADER, MAGIC, field};
use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// A file grows by so many bytes at once.
const CHUNK: usize = 4 << 20;

/// The last error that tells why files cannot be written; 0 for none.
static FAILURE: AtomicI32 = AtomicI32::new(0);

fn note(error: &io::Error) {
    FAILURE.store(error.raw_os_error().unwrap_or(0), Ordering::Relaxed);
}

/// Why a file could not be written, in words.
#[cold]
pub(crate) fn why_not() -> &'static str {
    match FAILURE.load(Ordering::Relaxed) {
        libc::EBADF => "the program has closed the files of the recorder",
        libc::EMFILE | libc::ENFILE => "too many files are open",
        _ => "there is no space left on the disk",
    }
}

/// Largest file that this process may write: growing beyond it would be answered by a signal.
fn largest_file() -> usize {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// The same file by a descriptor in the middle of those that there may be: should the program close it, what it opens next gets a lower number.
fn out_of_the_way(descriptor: c_int) -> c_int {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let middle = c_int::try_from(limit.rlim_cur / 2).unwrap_or(c_int::MAX).min(1 << 14);
    // SAFETY: the descriptor is the caller's; it is closed only if there is another one.
    unsafe {
        let other = libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, middle);
        if other < 0 {
            return descriptor;
        }
        libc::close(descriptor);
        other
    }
}

/// A mapped file.
pub(crate) struct RawFile {
    /// The open file.
    pub descriptor: c_int,
    /// Device and number of the file, by which it is found out whether the program has closed it.
    identity: (u64, u64),
    /// Where it begins in memory.
    pub base: *mut u8,
    /// Size of the range of addresses.
    reserved: usize,
    /// Bytes that may be written to.
    limit: AtomicUsize,
    growing: AtomicBool,
}

impl RawFile {
    /// Makes the file, which must not exist, with so many bytes, and maps it. It may grow to `most` bytes.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn create(path: &Path, bytes: usize, most: usize) -> io::Result<RawFile> {
        let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(path).inspect_err(note)?;
        let known = file.metadata()?;
        let identity = (known.dev(), known.ino());
        let descriptor = out_of_the_way(file.into_raw_fd());
        let mut last = io::Error::from(io::ErrorKind::OutOfMemory);
        // As much as there is address space for: it costs nothing.
        for bits in [33, 30, 27] {
            let reserved = (1_usize << bits).max(bytes).min(most);
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
                identity,
                base: base.cast(),
                reserved,
                limit: AtomicUsize::new(0),
                growing: AtomicBool::new(false),
            };
            if let Err(error) = raw.grow_by(bytes) {
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
            // Writing to a new page of a file takes as long as a hundred events: now is better. Kernels before 5.14 refuse, which does no harm.
            // SAFETY: pages that are mapped and allocated; their contents do not change.
            unsafe { libc::madvise(base, bytes, libc::MADV_POPULATE_WRITE) };
            return Ok(raw);
        }
        // SAFETY: the descriptor is this function's.
        unsafe { libc::close(descriptor) };
        Err(last)
    }

    /// Bytes that may be written to.
    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Acquire)
    }

    /// Allocates disk space until at least `needed` bytes may be written to. Called by the thread of the file and by the helper.
    ///
    /// # Errors
    /// There is no space.
    pub(crate) fn grow(&self, needed: usize) -> io::Result<()> {
        while self.growing.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let mut result = Ok(());
        while self.limit() < needed && result.is_ok() {
            result = self.grow_by(CHUNK);
        }
        self.growing.store(false, Ordering::Release);
        result
    }

    /// Fails if the descriptor is not that of the file any more: the program has closed it, and may have opened another file.
    fn check_descriptor(&self) -> io::Result<()> {
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: it has room for what is known of a descriptor, and is only read if that was written.
        let same = unsafe {
            libc::fstat(self.descriptor, found.as_mut_ptr()) == 0 && {
                let found = found.assume_init();
                (found.st_dev, found.st_ino) == self.identity
            }
        };
        if same { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EBADF)).inspect_err(note) }
    }

    fn grow_by(&self, bytes: usize) -> io::Result<()> {
        self.check_descriptor()?;
        let limit = self.limit();
        if limit + bytes > self.reserved || limit + bytes > largest_file() {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        loop {
            // SAFETY: the descriptor is open as long as this lives.
            match unsafe { libc::posix_fallocate(self.descriptor, limit as libc::off_t, bytes as libc::off_t) } {
                libc::EINTR => {}
                0 => break,
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
        self.limit.store(limit + bytes, Ordering::Release);
        Ok(())
    }

    /// Writes bytes of another mapped file to a place in this one.
    ///
    /// # Errors
    /// There is no space.
    pub(crate) fn write_at(&self, from: &RawFile, start: usize, length: usize, place: usize) -> io::Result<()> {
        self.check_descriptor()?;
        // Growing beyond the limit would be answered by a signal.
        if place + length > largest_file() {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let mut done = 0;
        while done < length {
            // SAFETY: so many bytes of the other file are mapped and allocated.
            let written = unsafe {
                let bytes = from.base.add(start + done).cast();
                libc::pwrite(self.descriptor, bytes, length - done, (place + done) as libc::off_t)
            };
            match usize::try_from(written) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(written) => done += written,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// A number of the header that others may read at any time.
    pub(crate) fn number(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= HEADER && offset.is_multiple_of(8));
        // SAFETY: the header has been allocated, it is aligned to a page, and the mapping is never removed.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }

    /// Fills in a text of the header; it is cut to `length - 1` bytes.
    pub(crate) fn text(&self, offset: usize, length: usize, text: &[u8]) {
        let count = text.len().min(length - 1);
        // SAFETY: the fields of texts lie in the header.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.base.add(offset), count) };
    }

    /// Puts the checksum over the fields that do not change any more.
    pub(crate) fn seal(&self) {
        let mut fields = Vec::with_capacity(field::CHECK - field::TABLE);
        for offset in (field::TABLE..field::CHECK).step_by(8) {
            fields.extend_from_slice(&self.number(offset).load(Ordering::Relaxed).to_le_bytes());
        }
        self.number(field::CHECK).store(format::checksum(&fields), Ordering::Relaxed);
    }

    /// Makes the header valid: from now on this is a raw file.
    pub(crate) fn begin(&self) {
        self.number(field::MAGIC).store(u64::from_le_bytes(MAGIC), Ordering::Release);
    }

    /// Keeps a later anchor.
    pub(crate) fn anchor(&self, anchor: [u64; 3]) {
        let latest = self.number(field::LATEST_ANCHOR);
        let next = if latest.load(Ordering::Relaxed) == 1 { 2 } else { 1 };
        for (i, value) in anchor.into_iter().enumerate() {
            self.number(field::ANCHORS[next - 1] + 8 * i).store(value, Ordering::Relaxed);
        }
        latest.store(next as u64, Ordering::Release);
    }
}
