//! Registers and stacks of the threads of another process.
#![allow(unsafe_code)]

use super::memory::{Copied, ProcessMemory, ThreadSnapshot};
use super::modules::ProcessModules;
use std::io::Error;
use std::time::{Duration, Instant};

/// How long a thread may take to stop; and one that waits for a processor. Chosen by hand: shorter leaves out threads of a busy node, longer takes
/// the time of all others.
const PATIENCE: Duration = Duration::from_millis(100);
const BUSY: Duration = Duration::from_secs(1);
/// How often it is looked whether it has. Chosen by hand: a thread stands still as long; more often takes the core that it may need to stop.
const LOOK: Duration = Duration::from_micros(20);
/// So much of a stack is copied while its thread is stopped. Chosen by hand: more stops the thread for longer; frames beyond it are missing.
const INNERMOST: u64 = 256 << 10;

/// System calls that come back with `EINTR` if their thread is stopped and goes on, although no signal has a handler (signal(7)).
const FRAGILE: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
];

/// Threads that the recorder has started, by what the kernel calls them: they are none of the program's.
const OF_RECORDER: [&str; 4] = ["clc-recorder", "clc-clock", "clc-offsets", "clc-samples"];

/// Ids of the threads of a process, the first one of it first.
pub(super) fn list(process: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut threads: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    threads.retain(|&thread| thread == process || !OF_RECORDER.contains(&&*name(process, thread)));
    threads.sort_unstable_by_key(|&thread| (thread != process, thread));
    threads
}

fn of_thread(process: u32, thread: u32, file: &str) -> String {
    let bytes = std::fs::read(format!("/proc/{process}/task/{thread}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a thread does, in a letter of the kernel's.
fn state(process: u32, thread: u32) -> Option<char> {
    of_thread(process, thread, "stat").rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
}

/// What the kernel calls a thread.
pub(super) fn name(process: u32, thread: u32) -> String {
    of_thread(process, thread, "comm").trim_end().to_owned()
}

/// One line about what the kernel does not allow.
pub(super) fn refused(error: &Error, process: u32) -> String {
    let of_status = |process: u32, what: &str| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        status.lines().find_map(|line| line.strip_prefix(what)?.trim().parse().ok())
    };
    // It is a thread of the one that traces it.
    let tracer = of_status(process, "TracerPid:").unwrap_or(0);
    let tracer = of_status(tracer, "Tgid:").unwrap_or(tracer);
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    why_refused(error, tracer, scope.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0))
}

fn why_refused(error: &Error, tracer: u32, scope: u32) -> String {
    match (error.raw_os_error(), tracer, scope) {
        (Some(libc::ESRCH | libc::ENOENT), ..) => "it is gone".to_owned(),
        (Some(libc::EPERM | libc::EACCES), 1.., _) => {
            format!("process {tracer} (a debugger) is already attached to it")
        }
        (Some(libc::EPERM | libc::EACCES), _, 1..) => {
            format!("the kernel does not permit the agent to look: kernel.yama.ptrace_scope is {scope}, not 0")
        }
        (Some(libc::EPERM | libc::EACCES), ..) => {
            "the kernel does not permit the agent to look: the process has another user or other capabilities"
                .to_owned()
        }
        _ => format!("the kernel refuses: {error}"),
    }
}

/// Where a thread is. It goes on, or stays as it was, when this comes back, or else when the calling thread ends.
///
/// # Errors
/// In one line: the kernel forbids it, the thread does not stop, or it has ended.
pub(super) fn look(
    process: u32,
    thread: u32,
    memory: &ProcessMemory,
    modules: &ProcessModules,
    end: Instant,
) -> Result<ThreadSnapshot, String> {
    if let Some(snapshot) = asleep(process, thread, memory, modules) {
        return Ok(snapshot);
    }
    let attached = Attached::to(process, thread, end)?;
    let [code, stack, frame] = attached.registers()?;
    Ok(ThreadSnapshot { code, stack, frame: Some(frame), copy: innermost(stack, memory, modules) })
}

fn innermost(stack: u64, memory: &ProcessMemory, modules: &ProcessModules) -> Copied {
    let end = modules.end_of_mapping(stack).unwrap_or(stack).min(stack.saturating_add(INNERMOST));
    Copied::of(memory, stack..end)
}

/// A thread that sleeps in a system call that must not be disturbed.
fn asleep(process: u32, thread: u32, memory: &ProcessMemory, modules: &ProcessModules) -> Option<ThreadSnapshot> {
    let place = || {
        // Number, six arguments, stack pointer, next instruction; or a word.
        let text = of_thread(process, thread, "syscall");
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[number, .., stack, code] = &words[..] else { return None };
        let hexadecimal = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        let fragile = number.parse().is_ok_and(|number: libc::c_long| FRAGILE.contains(&number));
        fragile.then_some((hexadecimal(stack)?, hexadecimal(code)?))
    };
    let (stack, code) = place()?;
    let copy = innermost(stack, memory, modules);
    // If it has not moved, all of it is of the same moment.
    (place() == Some((stack, code))).then_some(ThreadSnapshot { code, stack, frame: None, copy })
}

/// A thread that is stopped as long as this is there.
struct Attached {
    thread: libc::pid_t,
    /// A signal that it was about to get: it gets it when it goes on.
    signal: libc::c_int,
}

impl Attached {
    fn to(process: u32, thread: u32, end: Instant) -> Result<Attached, String> {
        let ended = || "it has ended".to_owned();
        let id = thread as libc::pid_t;
        request(libc::PTRACE_SEIZE, id, 0, 0).map_err(|error| {
            if matches!(state(process, thread), None | Some('Z' | 'X')) { ended() } else { refused(&error, thread) }
        })?;
        // From here on, if it does not stop, it is let go of when this thread ends.
        request(libc::PTRACE_INTERRUPT, id, 0, 0).map_err(|error| refused(&error, process))?;
        let begun = Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: the status has room.
            match unsafe { libc::waitpid(id, &raw mut status, libc::__WALL | libc::WNOHANG) } {
                0 if begun.elapsed() < PATIENCE => std::thread::sleep(LOOK),
                0 if state(process, thread) == Some('R') => {
                    if begun.elapsed() > BUSY || Instant::now() >= end {
                        return Err("it did not get a processor in time".to_owned());
                    }
                    std::thread::sleep(LOOK * 50);
                }
                0 => {
                    let place = of_thread(process, thread, "wchan");
                    let place = if place.is_empty() || place == "0" { String::new() } else { format!(" ({place})") };
                    return Err(format!("it is in an uninterruptible wait in the kernel{place}"));
                }
                found if found == id && libc::WIFSTOPPED(status) => {
                    let by_us = status >> 16 == libc::PTRACE_EVENT_STOP;
                    return Ok(Attached { thread: id, signal: if by_us { 0 } else { libc::WSTOPSIG(status) } });
                }
                _ => return Err(ended()),
            }
        }
    }

    /// Next instruction, stack pointer and frame pointer.
    #[cfg(target_arch = "x86_64")]
    fn registers(&self) -> Result<[u64; 3], String> {
        // SAFETY: numbers only, for which zero is a value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let mut area = libc::iovec {
            iov_base: (&raw mut registers).cast(),
            iov_len: std::mem::size_of::<libc::user_regs_struct>(),
        };
        /// The general registers, in the numbering of core dumps.
        const PRSTATUS: usize = 1;
        request(libc::PTRACE_GETREGSET, self.thread, PRSTATUS, (&raw mut area) as usize)
            .map_err(|error| format!("cannot read its registers: {error}"))?;
        Ok([registers.rip, registers.rsp, registers.rbp])
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn registers(&self) -> Result<[u64; 3], String> {
        Err("stacks cannot be unwound on this processor architecture".to_owned())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // If it was killed meanwhile, there is nothing to let go of.
        let _ = request(libc::PTRACE_DETACH, self.thread, 0, self.signal as usize);
    }
}

/// None of the requests that are made here writes more than what `data` describes.
fn request(what: libc::c_uint, thread: libc::pid_t, address: usize, data: usize) -> Result<(), Error> {
    // SAFETY: see above; the thread is one of another process, which the kernel checks.
    let done = unsafe { libc::ptrace(what, thread, address, data) };
    if done == -1 { Err(Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Holds the first thread of a process, as a debugger does, until what it returns is dropped.
    pub(crate) fn hold(process: u32) -> impl Drop {
        struct Held(std::sync::mpsc::Sender<()>, Option<std::thread::JoinHandle<()>>);
        impl Drop for Held {
            fn drop(&mut self) {
                let _ = self.0.send(());
                let _ = self.1.take().map(std::thread::JoinHandle::join);
            }
        }
        let (tell, told) = std::sync::mpsc::channel();
        let (held, is_held) = std::sync::mpsc::channel();
        let holder = std::thread::spawn(move || {
            let attached = Attached::to(process, process, Instant::now() + BUSY);
            held.send(attached.is_ok()).unwrap();
            let _ = told.recv();
        });
        assert!(is_held.recv().unwrap());
        Held(tell, Some(holder))
    }

    #[test]
    fn what_is_forbidden_is_said_in_one_line() {
        let said = |error, tracer, scope| why_refused(&Error::from_raw_os_error(error), tracer, scope);
        assert!(said(libc::EPERM, 0, 1).ends_with("kernel.yama.ptrace_scope is 1, not 0"));
        assert!(said(libc::EPERM, 7, 1).starts_with("process 7 (a debugger) is already attached"));
        assert!(said(libc::EACCES, 0, 0).contains("another user"));
        assert_eq!(said(libc::ESRCH, 0, 3), "it is gone");
        assert!(said(libc::EIO, 0, 0).starts_with("the kernel refuses: "));
    }
}
