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
    /// What it is about, of which nothing is recorded.
    pub subject: Subject,
    /// Of a test: the argument that says whether it did anything.
    pub flag: u8,
    /// What the state file has to learn after it, of [`notes`]: nothing, for most functions.
    pub notes: u8,
    /// Its place among [`format::POLLS`](crate::format::POLLS) plus 1; 0 if it is none of them.
    pub poll: u8,
    /// Whether it is one of those that wait for requests.
    pub waits: bool,
}

/// What the state file says of calls that are recorded without their arguments. All but the first two are called by all members of a communicator in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Nothing, or what is recorded.
    Other,
    /// Its first arguments are source, tag and communicator.
    Envelope,
    /// Its first argument is the communicator of the own group.
    Leaders,
    /// Its communicator, with a topology, is the last argument but information and request.
    Neighbours,
    /// Its first argument is a communicator; the last one is the address of the file.
    NewFile,
    /// Its first argument is a file.
    File,
    /// Its first argument is the address of a file.
    OldFile,
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
