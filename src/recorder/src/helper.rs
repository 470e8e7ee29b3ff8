//! A thread of its own, which gives files room before it is needed and keeps anchors, so that a killed process leaves a rate for its counter.

use crate::clock;
use crate::file::CHUNK;
use crate::format::{HEADER, field};
use crate::session::{self, Session};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often it looks.
const PERIOD: Duration = Duration::from_millis(20);

/// Starts it. Without it, files grow when they are full.
pub fn start(session: &'static Session) {
    let _ = spawn("clc-recorder", move || run(session));
}

/// Starts a thread to which no signal of the program is ever delivered. None if the system refuses.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<()> {
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

fn run(session: &'static Session) {
    // Soon after the start, then every second.
    let (mut looks, mut next) = (0_u64, 1);
    while session::recording().is_some() {
        std::thread::sleep(PERIOD);
        let mut stream = session.streams.load(Ordering::Acquire);
        looks += 1;
        let anchor = (looks == next).then(|| {
            next = (2 * looks).min(looks + 50);
            clock::anchor()
        });
        // SAFETY: streams live as long as the process; of those of other threads only the files are used, which allow it.
        while let Some(file) = unsafe { stream.as_ref() }.map(|stream| &stream.file) {
            if session::recording().is_none() {
                return;
            }
            let used = HEADER + file.number(field::COMMITTED).load(Ordering::Relaxed) as usize;
            if file.limit() < used + CHUNK && file.grow(used + CHUNK).is_err() {
                session::stop("there is no more room on the disk");
            }
            file.prepare_pages(used);
            if let Some(anchor) = anchor {
                file.anchor(anchor);
            }
            // SAFETY: as above.
            stream = unsafe { (*stream).next.load(Ordering::Acquire) };
        }
    }
}
