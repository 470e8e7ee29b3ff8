//! What is known of the functions of MPI when the recorder is compiled.

use crate::format::calls::{Effect, Form};

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode(u8);

impl Mode {
    /// From C.
    pub(crate) const C: Mode = Mode(0);
    /// From C, with counts of 64 bits.
    pub(crate) const LARGE: Mode = Mode(1);
    /// From Fortran: addresses of everything.
    pub(crate) const FORTRAN: Mode = Mode(2);
    /// From Fortran, by the module mpi_f08.
    pub(crate) const F08: Mode = Mode(2 | 8);
    /// From Fortran, by the module mpi_f08 with descriptors of buffers.
    pub(crate) const DESCRIPTORS: Mode = Mode(2 | 4 | 8);

    /// Whether counts have 64 bits.
    pub(crate) fn large(self) -> bool {
        self.0 & 1 != 0
    }
    /// Whether arguments are addresses.
    pub(crate) fn fortran(self) -> bool {
        self.0 & 2 != 0
    }
    /// Whether the module mpi_f08 is used.
    pub(crate) fn f08(self) -> bool {
        self.0 & 8 != 0
    }
    /// Whether buffers are descriptors.
    pub(crate) fn descriptors(self) -> bool {
        self.0 & 4 != 0
    }
}

/// What is known of a wrapper when it is compiled.
pub(crate) struct Call {
    /// Its number in the table.
    pub number: u64,
    /// What the function does.
    pub effect: Effect,
    /// Of a collective operation.
    pub form: Form,
    /// How it is called.
    pub mode: Mode,
    /// Whether it only looks at something, and nothing is known of what it saw.
    pub probe: bool,
    /// Whether its first arguments are source, tag and communicator, of which nothing is recorded.
    pub looks: bool,
    /// What the state file has to learn after it, of [`notes`]: nothing, for most functions.
    pub notes: u8,
    /// Its place among [`format::POLLS`](crate::format::POLLS) plus 1; 0 if it is none of them.
    pub poll: u8,
    /// Whether it is one of those that wait for requests.
    pub waits: bool,
}

/// See [`Call::notes`].
pub(crate) mod notes {
    /// It makes a request.
    pub(crate) const REQUEST: u8 = 1;
    /// A result says whether it did anything.
    pub(crate) const TEST: u8 = 2;
    /// It frees a communicator or a window.
    pub(crate) const FREES: u8 = 4;
    /// After it, somebody holds a lock of a window who did not before, or an epoch is over.
    pub(crate) const EPOCH: u8 = 8;
}

include!(concat!(env!("OUT_DIR"), "/table.rs"));
