//! What one thread is doing: its slot of the state file.

use crate::arguments::Arguments;
use crate::layout::{self, slot};
use std::sync::atomic::{AtomicU64, Ordering};

/// The place of a thread in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(super) *const u8);

impl Slot {
    /// Of a thread that has not asked for one.
    pub(crate) const UNKNOWN: Slot = Slot(std::ptr::null());
    /// Of a thread for which there is none.
    pub(crate) const NONE: Slot = Slot(std::ptr::without_provenance(1));

    /// Whether there is one.
    #[inline]
    pub(crate) fn is_there(self) -> bool {
        self.0.addr() > 1
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= layout::SLOT);
        // SAFETY: the slot lies in the mapped file, which is never unmapped.
        unsafe { &*self.0.add(offset).cast::<AtomicU64>() }
    }

    #[inline]
    pub(super) fn get(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn set(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Relaxed);
    }

    /// Keeps which requests a call was given: argument 1, of which there are as many as argument 0 says.
    ///
    /// # Safety
    /// The arguments are those of such a call.
    #[inline]
    pub(super) unsafe fn waits(&self, given: &Arguments) {
        // SAFETY: the caller says so.
        let count = unsafe { given.int(0) }.max(0) as usize;
        self.set(slot::WAITS, count as u64);
        let mut next = 0;
        // Beyond these, nobody looks.
        for k in 0..count.min(64) {
            // SAFETY: the array has so many.
            if let Some(request) = unsafe { given.request(1, k) } {
                self.set(slot::REQUESTS + 8 * next, request);
                next += 1;
                if next == layout::HANDLES {
                    return;
                }
            }
        }
        self.set(slot::REQUESTS + 8 * next, 0);
    }

    /// Handle of the communicator of the current or last call.
    pub(crate) fn comm(&self) -> u64 {
        self.get(slot::COMM)
    }

    /// A region begins: the place of its name, or its address.
    #[inline]
    pub(crate) fn region_begins(&self, region: u64) {
        let depth = self.get(slot::DEPTH);
        if (depth as usize) < layout::REGIONS {
            self.set(slot::REGIONS + 8 * depth as usize, region);
        }
        self.set(slot::DEPTH, depth + 1);
    }

    /// The innermost one ends.
    #[inline]
    pub(crate) fn region_ends(&self) {
        self.set(slot::DEPTH, self.get(slot::DEPTH).saturating_sub(1));
    }
}
