//! Threads of the recorder.

/// Starts a thread to which no signal of the program is ever delivered. None if the system refuses.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<()> {
    // SAFETY: masks are filled before they are read, and the program's is restored.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let started = std::thread::Builder::new().name(name.into()).stack_size(1 << 17).spawn(work);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        started.ok().map(|_| ())
    }
}
