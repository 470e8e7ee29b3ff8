//! What the program tells of itself: its functions, if it was compiled with `-finstrument-functions`, and regions, markers and metrics of
//! the interface in `src/marks/clc_recorder.h`.

use crate::clock;
use crate::format::{FUNCTION_ENTER, FUNCTION_LEAVE, LONGEST_TEXT, MARKER, METRIC, REGION_BEGIN, REGION_END};
use crate::functions::{self, ROOM};
use crate::hooks;
use crate::monitor::Board;
use crate::session;
use crate::stream::LONGEST;
use std::ffi::{CStr, c_char, c_void};

/// Called by compilers at the beginning of a function (`-finstrument-functions`).
#[unsafe(no_mangle)]
extern "C" fn __cyg_profile_func_enter(function: *mut c_void, _: *mut c_void) {
    if session::recording().is_some() {
        hooks::region(Some(|_: &_| function as u64));
        hooks::append(ROOM, |stream| {
            stream.unsigned(FUNCTION_ENTER);
            stream.stamp(clock::before());
            stream.address(function as usize);
        });
        functions::recorded();
    } else if !session::has_begun() {
        functions::enter_early(function as usize, session::first_time);
    }
}

/// Called by compilers at the end of a function.
#[unsafe(no_mangle)]
extern "C" fn __cyg_profile_func_exit(function: *mut c_void, _: *mut c_void) {
    if session::recording().is_some() {
        hooks::region(NONE);
        hooks::append(ROOM, |stream| {
            stream.unsigned(FUNCTION_LEAVE);
            stream.stamp(clock::before());
            stream.address(function as usize);
        });
    } else if !session::has_begun() {
        functions::leave_early();
    }
}

/// No region.
const NONE: Option<fn(&Board) -> u64> = None;

/// Appends a record with a time and a text.
///
/// # Safety
/// The name is a text that ends in zero, or null.
unsafe fn named(code: u64, name: *const c_char, value: Option<f64>) {
    if name.is_null() || session::recording().is_none() {
        return;
    }
    // SAFETY: the caller says so.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let name = &name[..name.len().min(LONGEST_TEXT)];
    if code == REGION_BEGIN
        && let Some(session) = session::recording()
    {
        session.control.begun(name);
        hooks::region(Some(|board: &Board| board.name(name)));
    } else if code == REGION_END {
        hooks::region(NONE);
    }
    marked(code, name, value);
    if code == REGION_END
        && let Some(session) = session::recording()
    {
        session.control.ended(name);
    }
}

/// Appends it.
fn marked(code: u64, name: &[u8], value: Option<f64>) {
    hooks::append(2 * ROOM + LONGEST_TEXT / LONGEST, |stream| {
        let number = stream.number_of(name);
        stream.unsigned(code);
        stream.stamp(clock::before());
        stream.unsigned(number);
        if let Some(value) = value {
            stream.unsigned(value.to_bits().swap_bytes());
        }
    });
}

/// A region of a function of the system begins, which the recorder stands in for.
pub(crate) fn region_begins(name: &str) {
    marked(REGION_BEGIN, name.as_bytes(), None);
}

/// It ends.
pub(crate) fn region_ends(name: &str) {
    marked(REGION_END, name.as_bytes(), None);
}

/// A region of the program's own begins.
#[unsafe(no_mangle)]
unsafe extern "C" fn clc_recorder_region_begin(name: *const c_char) {
    // SAFETY: as the interface says.
    unsafe { named(REGION_BEGIN, name, None) };
}

/// It ends.
#[unsafe(no_mangle)]
unsafe extern "C" fn clc_recorder_region_end(name: *const c_char) {
    // SAFETY: as the interface says.
    unsafe { named(REGION_END, name, None) };
}

/// Something has happened.
#[unsafe(no_mangle)]
unsafe extern "C" fn clc_recorder_marker(name: *const c_char) {
    // SAFETY: as the interface says.
    unsafe { named(MARKER, name, None) };
}

/// A metric has a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn clc_recorder_metric(name: *const c_char, value: f64) {
    // SAFETY: as the interface says.
    unsafe { named(METRIC, name, Some(value)) };
}
