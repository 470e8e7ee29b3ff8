//! Regions, markers and metrics of a program's own in what `clc-replay record` records. Without the recorder these calls do nothing.
//!
//! ```
//! let _solve = clc_marks::region(c"solve");
//! clc_marks::metric(c"residual", 1e-6);
//! clc_marks::marker(c"restart");
//! ```
//!
//! Any thread may call them, after `MPI_Init` and before `MPI_Finalize`; earlier and later calls are not recorded. The same for C and C++:
//! `clc_recorder.h`.
#![deny(clippy::cast_lossless)]

pub mod monitor;

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

type Named = unsafe extern "C" fn(*const c_char);
type Valued = unsafe extern "C" fn(*const c_char, f64);

/// What the recorder exports, where it has been loaded before the program.
struct Recorder {
    begin: Named,
    end: Named,
    marker: Named,
    metric: Valued,
}

fn recorder() -> Option<&'static Recorder> {
    static FOUND: OnceLock<Option<Recorder>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let find = |name: &CStr| {
                // SAFETY: the name ends in zero.
                let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
                (!address.is_null()).then_some(address)
            };
            // SAFETY: the recorder's function of this name has this type.
            let named = |address| unsafe { std::mem::transmute::<*mut c_void, Named>(address) };
            Some(Recorder {
                begin: named(find(c"clc_recorder_region_begin")?),
                end: named(find(c"clc_recorder_region_end")?),
                marker: named(find(c"clc_recorder_marker")?),
                // SAFETY: as above.
                metric: unsafe { std::mem::transmute::<*mut c_void, Valued>(find(c"clc_recorder_metric")?) },
            })
        })
        .as_ref()
}

/// A region that ends when this is dropped. Regions of a thread nest, so it cannot be sent to another one.
#[derive(Debug)]
#[must_use = "the region ends when this is dropped"]
pub struct Region<'a>(&'a CStr, std::marker::PhantomData<*const ()>);

/// Begins a region: an Enter event, and a Leave event when the value is dropped.
pub fn region(name: &CStr) -> Region<'_> {
    if let Some(recorder) = recorder() {
        // SAFETY: the name ends in zero.
        unsafe { (recorder.begin)(name.as_ptr()) };
    }
    Region(name, std::marker::PhantomData)
}

impl Drop for Region<'_> {
    fn drop(&mut self) {
        if let Some(recorder) = recorder() {
            // SAFETY: the name ends in zero.
            unsafe { (recorder.end)(self.0.as_ptr()) };
        }
    }
}

/// Something has happened: a region of no length.
pub fn marker(name: &CStr) {
    if let Some(recorder) = recorder() {
        // SAFETY: the name ends in zero.
        unsafe { (recorder.marker)(name.as_ptr()) };
    }
}

/// The metric has this value from now on: a Metric event.
pub fn metric(name: &CStr, value: f64) {
    if let Some(recorder) = recorder() {
        // SAFETY: the name ends in zero.
        unsafe { (recorder.metric)(name.as_ptr(), value) };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn without_the_recorder_nothing_happens() {
        let region = super::region(c"region");
        super::marker(c"marker");
        super::metric(c"metric", 1.0);
        drop(region);
    }
}
