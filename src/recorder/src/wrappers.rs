//! The functions that stand in for those of MPI.
//!
//! All arguments of MPI functions are integers, handles and addresses, so that each of them is passed in an integer register or a slot of eight bytes
//! on the stack, by the calling conventions of all 64-bit Linux systems. A wrapper takes them as such and passes them on as they are; whoever
//! looks at one cuts it to its type.

use crate::calls::{Call, Mode};
use crate::format::calls::{Effect, Form};
use crate::hooks::{begin, end};
use crate::real::Real;
use std::ffi::c_int;

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
