//! Finding the functions of the MPI library.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Libraries to look into where the program has loaded MPI by itself (`dlopen`), so that it is not in the usual order of search.
const LIBRARIES: [&CStr; 10] = [
    c"libmpi.so.40",
    c"libmpi.so.12",
    c"libmpich.so.12",
    c"libmpi.so.20",
    c"libmpi_mpifh.so.40",
    c"libmpi_usempif08.so.40",
    c"libmpifort.so.12",
    c"libmpichfort.so.12",
    c"libmpi.so",
    c"libmpi_abi.so.1",
];

/// Where a function or variable of the MPI library is; null if there is none.
pub(crate) fn find(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends in zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        return found;
    }
    for library in LIBRARIES {
        // SAFETY: the name ends in zero; nothing is loaded that is not there already.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            continue;
        }
        // SAFETY: the handle is valid. It is kept: the library stays loaded as long as the address is used.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if !found.is_null() {
            return found;
        }
    }
    null_mut()
}

/// Where a variable of the MPI library is; null if there is none. A program may hold a copy of it, which counts for the library as well (copy relocation).
pub(crate) fn find_variable(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends in zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() { find(name) } else { found }
}

/// File name of the library that something is in, without directories.
pub(crate) fn library_of(address: *const c_void) -> Option<&'static CStr> {
    let mut found =
        libc::Dl_info { dli_fname: null_mut(), dli_fbase: null_mut(), dli_sname: null_mut(), dli_saddr: null_mut() };
    // SAFETY: it is writable; what it says of a library holds as long as that is loaded, and an MPI library is never unloaded.
    unsafe {
        if libc::dladdr(address, &mut found) == 0 || found.dli_fname.is_null() {
            return None;
        }
        let path = CStr::from_ptr(found.dli_fname);
        let slash = path.to_bytes().iter().rposition(|&byte| byte == b'/').map_or(0, |place| place + 1);
        Some(CStr::from_ptr(found.dli_fname.add(slash)))
    }
}

/// A function of the MPI library, looked up when it is first called.
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    /// The function `name`.
    pub(crate) const fn new(name: &'static CStr) -> Real {
        Real { name, address: AtomicPtr::new(null_mut()) }
    }

    /// Its address; null if the library has no such function.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.look_up() } else { known }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let found = find(self.name);
        if found.is_null() {
            crate::say(&format!("the MPI library has no function {}", self.name.to_string_lossy()));
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }
}
