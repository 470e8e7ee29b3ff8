//! What is in the memory of another process.
#![allow(unsafe_code)]

use std::io::{Error, Result};
use std::ops::Range;

/// The memory of a process, which goes on meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProcessMemory {
    process: libc::pid_t,
}

impl ProcessMemory {
    /// Of the process with this id.
    pub(super) fn of(process: u32) -> ProcessMemory {
        ProcessMemory { process: process as libc::pid_t }
    }

    /// What is at an address; less than `length` bytes if there is no more.
    ///
    /// # Errors
    /// There is nothing, or the kernel forbids it.
    pub(super) fn read(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes: Vec<u8> = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| Error::from(std::io::ErrorKind::OutOfMemory))?;
        bytes.resize(length, 0);
        let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
        let there = libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: length };
        // SAFETY: what is written is as long as said; the address is one of the other process, which the kernel checks.
        let read = unsafe { libc::process_vm_readv(self.process, &raw const here, 1, &raw const there, 1, 0) };
        let read = usize::try_from(read).map_err(|_| Error::last_os_error())?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The number at an address.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        self.read(address, 8).ok()?.try_into().ok().map(u64::from_ne_bytes)
    }
}

/// A part of the memory of a process as it was at a moment.
#[derive(Debug, Default)]
pub(super) struct Copied {
    start: u64,
    bytes: Vec<u8>,
}

impl Copied {
    /// As much of a range as can be read.
    pub(super) fn of(memory: &ProcessMemory, range: Range<u64>) -> Copied {
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        Copied { start: range.start, bytes: memory.read(range.start, length).unwrap_or_default() }
    }

    /// The number at an address, if it is in it.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(offset..offset.checked_add(8)?)?;
        bytes.try_into().ok().map(u64::from_ne_bytes)
    }
}

/// Where a thread was at a moment.
pub(super) struct ThreadSnapshot {
    /// Address of the next instruction.
    pub code: u64,
    /// Stack pointer.
    pub stack: u64,
    /// Frame pointer; none if the thread was not stopped.
    pub frame: Option<u64>,
    /// The innermost part of its stack.
    pub copy: Copied,
}
