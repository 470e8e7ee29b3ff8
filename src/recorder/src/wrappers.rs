//! The functions that stand in for those of MPI.
//!
//! All arguments of MPI functions are integers, handles and addresses, so that each of them is passed in an integer register or a slot of eight bytes
//! on the stack, by the calling conventions of all 64-bit Linux systems. A wrapper takes them as such and passes them on as they are; whoever
//! looks at one cuts it to its type.

use crate::format::{Effect, Form};
use crate::hooks::{begin, end};
use crate::real::Real;
use std::ffi::c_int;

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode(u8);

impl Mode {
    /// From C.
    pub const C: Mode = Mode(0);
    /// From C, with counts of 64 bits.
    pub const LARGE: Mode = Mode(1);
    /// From Fortran: addresses of everything.
    pub const FORTRAN: Mode = Mode(2);
    /// From Fortran, by the module mpi_f08.
    pub const F08: Mode = Mode(2 | 8);
    /// From Fortran, by the module mpi_f08 with descriptors of buffers.
    pub const DESCRIPTORS: Mode = Mode(2 | 4 | 8);

    /// Whether counts have 64 bits.
    pub fn large(self) -> bool {
        self.0 & 1 != 0
    }
    /// Whether arguments are addresses.
    pub fn fortran(self) -> bool {
        self.0 & 2 != 0
    }
    /// Whether the module mpi_f08 is used.
    pub fn f08(self) -> bool {
        self.0 & 8 != 0
    }
    /// Whether buffers are descriptors.
    pub fn descriptors(self) -> bool {
        self.0 & 4 != 0
    }
}

/// What is known of a wrapper when it is compiled.
pub struct Call {
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
}

/// An error class that both libraries have for what nobody expects (`MPI_ERR_OTHER` or near it); the function does not exist.
const NO_SUCH_FUNCTION: c_int = 16;

macro_rules! word {
    ($name:ident) => {
        usize
    };
}

macro_rules! wrapper {
    (c $symbol:literal, $real:literal, $call:expr, [$($a:ident),*]) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn wrapper($($a: usize),*) -> c_int {
                static REAL: Real = Real::new($real);
                const CALL: &Call = &$call;
                let address = REAL.address();
                if address.is_null() {
                    return NO_SUCH_FUNCTION;
                }
                // SAFETY: an MPI function of this name takes so many arguments, see above.
                let real: unsafe extern "C" fn($(word!($a)),*) -> c_int = unsafe { std::mem::transmute(address) };
                let mut arguments = [$($a),*];
                // SAFETY: they are the arguments of this function, and may be looked at as those.
                let recorded = unsafe { begin(CALL, &mut arguments) };
                let [$($a),*] = arguments;
                // SAFETY: with the arguments of the caller; an ignored status has been replaced by a real one.
                let result = unsafe { real($($a),*) };
                if recorded {
                    // SAFETY: as before.
                    unsafe { end(CALL, &arguments, result) };
                }
                result
            }
        };
    };
    (fortran $symbol:literal, $real:literal, $call:expr, $error:literal, [$($a:ident),*]) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn wrapper($($a: usize),*) {
                static REAL: Real = Real::new($real);
                const CALL: &Call = &$call;
                let address = REAL.address();
                if address.is_null() {
                    return;
                }
                // SAFETY: a Fortran subroutine of this name takes so many arguments, see above.
                let real: unsafe extern "C" fn($(word!($a)),*) = unsafe { std::mem::transmute(address) };
                let mut arguments = [$($a),*];
                // SAFETY: they are the arguments of this subroutine, and may be looked at as those.
                let recorded = unsafe { begin(CALL, &mut arguments[..$error]) };
                let [$($a),*] = arguments;
                // SAFETY: with the arguments of the caller; an ignored status has been replaced by a real one.
                unsafe { real($($a),*) };
                if recorded {
                    // SAFETY: this argument is the address of the error code, or null where it is optional and left out.
                    unsafe {
                        let error = arguments[$error] as *const c_int;
                        let result = if error.is_null() { 0 } else { *error };
                        end(CALL, &arguments[..$error], result);
                    }
                }
            }
        };
    };
}

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
