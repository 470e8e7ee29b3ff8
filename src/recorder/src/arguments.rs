//! The arguments of a call, whatever language it comes from.

use crate::abi::Abi;
use crate::calls::Mode;
use crate::format;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes the handle of a file another one than that of a communicator or a window.
const FILE: u64 = 0xf11e << 48;

thread_local! {
    /// Which requests of the last call were not null before it, as [`Arguments::note_active`] was told.
    static ACTIVE: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
}

/// The module `mpi_f08` of this library counts the places of requests from 0: what the last call that told has shown.
static COUNTS_FROM_0: AtomicBool = AtomicBool::new(false);

fn was_active(index: usize) -> bool {
    ACTIVE.with_borrow(|list| list.get(index).copied().unwrap_or(false))
}

/// What a function was given, and may be given instead.
pub(crate) struct Arguments<'a> {
    /// As they are passed.
    pub words: &'a [usize],
    /// How it was called.
    pub mode: Mode,
    /// The interface of the library.
    pub abi: &'a Abi,
}

/// All functions are unsafe: argument `i` must be of the type that they say, and what it points to must exist.
#[allow(clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)] // said once for all of them
impl Arguments<'_> {
    #[inline]
    fn word(&self, i: usize) -> usize {
        self.words.get(i).copied().unwrap_or(0)
    }

    /// An `int`, or an `INTEGER`.
    #[inline]
    pub(crate) unsafe fn int(&self, i: usize) -> i64 {
        let word = self.word(i);
        i64::from(if self.mode.fortran() { unsafe { *(word as *const i32) } } else { word as i32 })
    }

    /// A number of elements; there are none below 0.
    #[inline]
    pub(crate) unsafe fn count(&self, i: usize) -> u64 {
        let count = if self.mode.large() { self.word(i) as i64 } else { unsafe { self.int(i) } };
        count.max(0) as u64
    }

    /// Element `k` of an array of numbers of elements; 0 where a program passes no array: MPI tells it.
    #[inline]
    pub(crate) unsafe fn count_at(&self, i: usize, k: usize) -> u64 {
        let word = self.word(i);
        if word == 0 {
            return 0;
        }
        let count = unsafe {
            if self.mode.large() { *(word as *const i64).add(k) } else { i64::from(*(word as *const i32).add(k)) }
        };
        count.max(0) as u64
    }

    /// Bytes of so many elements of a type. Where there are none, the type need not be one.
    #[inline]
    pub(crate) unsafe fn bytes(&self, count: usize, datatype: usize) -> u64 {
        match unsafe { self.count(count) } {
            0 => 0,
            count => count * unsafe { self.size(datatype) },
        }
    }

    /// A communicator.
    #[inline]
    pub(crate) unsafe fn comm(&self, i: usize) -> u64 {
        if self.mode.fortran() {
            self.abi.comm_of(unsafe { self.int(i) } as i32)
        } else {
            self.abi.handle_of(self.word(i))
        }
    }

    /// A window.
    #[inline]
    pub(crate) unsafe fn win(&self, i: usize) -> u64 {
        if self.mode.fortran() {
            self.abi.win_of(unsafe { self.int(i) } as i32)
        } else {
            self.abi.handle_of(self.word(i))
        }
    }

    /// The window at an address.
    #[inline]
    pub(crate) unsafe fn new_win(&self, i: usize) -> u64 {
        let word = self.word(i);
        unsafe {
            if self.mode.fortran() { self.abi.win_of(*(word as *const i32)) } else { self.abi.handle_at(word, 0) }
        }
    }

    /// A file: its handle as the program holds it, unlike that of any communicator.
    #[inline]
    pub(crate) unsafe fn file(&self, i: usize) -> u64 {
        if self.mode.fortran() {
            return unsafe { self.new_file(i) };
        }
        FILE ^ self.word(i) as u64
    }

    /// The file at an address.
    #[inline]
    pub(crate) unsafe fn new_file(&self, i: usize) -> u64 {
        let word = self.word(i);
        let fortran = self.mode.fortran();
        FILE ^ unsafe { if fortran { u64::from(*(word as *const u32)) } else { *(word as *const u64) } }
    }

    /// A group.
    #[inline]
    pub(crate) unsafe fn group(&self, i: usize) -> u64 {
        if self.mode.fortran() {
            self.abi.group_of(unsafe { self.int(i) } as i32)
        } else {
            self.abi.handle_of(self.word(i))
        }
    }

    /// Whether an operation is `MPI_NO_OP`.
    #[inline]
    pub(crate) unsafe fn no_op(&self, i: usize) -> bool {
        let op = if self.mode.fortran() {
            self.abi.op_of(unsafe { self.int(i) } as i32)
        } else {
            self.abi.handle_of(self.word(i))
        };
        self.abi.is_no_op(op)
    }

    /// The communicator at an address, where a function has put it.
    #[inline]
    pub(crate) unsafe fn new_comm(&self, i: usize) -> u64 {
        let word = self.word(i);
        unsafe {
            if self.mode.fortran() { self.abi.comm_of(*(word as *const i32)) } else { self.abi.handle_at(word, 0) }
        }
    }

    /// Size of a data type in bytes.
    #[inline]
    pub(crate) unsafe fn size(&self, i: usize) -> u64 {
        let word = self.word(i);
        let datatype = if self.mode.fortran() {
            self.abi.type_of(unsafe { self.int(i) } as i32)
        } else {
            self.abi.handle_of(word)
        };
        self.abi.size_of(datatype)
    }

    /// Size of data type `k` of an array.
    #[inline]
    pub(crate) unsafe fn size_at(&self, i: usize, k: usize) -> u64 {
        let word = self.word(i);
        let datatype = unsafe {
            if self.mode.fortran() {
                self.abi.type_of(*(word as *const i32).add(k))
            } else {
                self.abi.handle_at(word, k)
            }
        };
        self.abi.size_of(datatype)
    }

    /// Request `k` of an array; none if it is null.
    #[inline]
    pub(crate) unsafe fn request(&self, i: usize, k: usize) -> Option<u64> {
        let word = self.word(i);
        let fortran = self.mode.fortran();
        let handle =
            unsafe { if fortran { u64::from(*(word as *const u32).add(k)) } else { self.abi.handle_at(word, k) } };
        (!self.abi.is_no_request(handle, fortran)).then_some(handle)
    }

    /// A request that is passed itself, not its address; none if it is null.
    #[inline]
    pub(crate) unsafe fn request_itself(&self, i: usize) -> Option<u64> {
        if self.mode.fortran() {
            return unsafe { self.request(i, 0) };
        }
        let handle = self.abi.handle_of(self.word(i));
        (!self.abi.is_no_request(handle, false)).then_some(handle)
    }

    /// A matched message: its handle as the program holds it.
    #[inline]
    pub(crate) unsafe fn message(&self, i: usize) -> u64 {
        let word = self.word(i);
        unsafe { if self.mode.fortran() { u64::from(*(word as *const u32)) } else { self.abi.handle_at(word, 0) } }
    }

    /// A number at an address, where a function has put it.
    #[inline]
    pub(crate) unsafe fn result(&self, i: usize, k: usize) -> i64 {
        i64::from(unsafe { *(self.word(i) as *const i32).add(k) })
    }

    /// Place of a request that is complete, counted from 0, at an address; none is undefined. The requests are argument 1.
    #[inline]
    pub(crate) unsafe fn index(&self, i: usize, k: usize) -> Option<usize> {
        let place = unsafe { self.result(i, k) };
        let index = usize::try_from(place - i64::from(self.mode.fortran())).ok();
        if !self.mode.f08() || self.abi.kind != format::MPICH {
            return index;
        }
        // There, MPICH 4.0 counts from 0, against the standard. A request that is complete is null now, and was not before; persistent ones stay.
        let count = unsafe { self.count(0) } as usize;
        let ended = |index: usize| index < count && was_active(index) && unsafe { self.request(1, index) }.is_none();
        let other = usize::try_from(place).ok();
        match (index.is_some_and(ended), other.is_some_and(ended)) {
            (true, false) => COUNTS_FROM_0.store(false, Ordering::Relaxed),
            (false, true) => COUNTS_FROM_0.store(true, Ordering::Relaxed),
            _ => {}
        }
        if COUNTS_FROM_0.load(Ordering::Relaxed) { other } else { index }
    }

    /// Before a call that completes some of its requests: which of them are not null.
    pub(crate) unsafe fn note_active(&self, count: usize) {
        if self.mode.f08() && self.abi.kind == format::MPICH {
            let active = |k| unsafe { self.request(1, k) }.is_some();
            ACTIVE.with_borrow_mut(|list| {
                list.clear();
                list.extend((0..count).map(active));
            });
        }
    }

    /// Whether a buffer stands for one in place.
    #[inline]
    pub(crate) unsafe fn in_place(&self, i: usize) -> bool {
        let word = self.word(i);
        // A descriptor begins with the address of the data.
        let address = if self.mode.descriptors() && word != 0 { unsafe { *(word as *const usize) } } else { word };
        self.abi.is_in_place(address)
    }

    /// Where the status of index `k` is, in an array from argument `i` on.
    #[inline]
    pub(crate) fn status(&self, i: usize, k: usize) -> usize {
        self.word(i) + k * self.abi.status
    }
}
