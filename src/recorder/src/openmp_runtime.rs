//! Whether there is a runtime of OpenMP, and whether it tells what its threads do (`ompt`).

use crate::format::{RECORDED, UNSEEN};
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

/// The runtime calls.
static CALLED: AtomicBool = AtomicBool::new(false);

/// The runtime has accepted the functions of the tool.
pub(crate) fn is_seen() {
    CALLED.store(true, Ordering::Release);
}

/// What the header of a raw file says of OpenMP: 0 where there is none, or where only one thread is used without being seen.
pub(crate) fn state() -> u64 {
    if CALLED.load(Ordering::Acquire) {
        return RECORDED;
    }
    const MOST: &CStr = c"omp_get_max_threads";
    // SAFETY: a function of this name is that of the specification, without arguments.
    unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, MOST.as_ptr());
        if function.is_null() {
            return 0;
        }
        let most: unsafe extern "C" fn() -> c_int = std::mem::transmute(function);
        if most() > 1 { UNSEEN } else { 0 }
    }
}
