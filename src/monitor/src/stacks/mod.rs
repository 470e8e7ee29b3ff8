//! Call stacks of processes on this node, when somebody asks: of each thread, from the inside.
//!
//! The process need not do anything for it. One thread after the other is stopped by `ptrace`, for as long as it takes to read its registers and to copy what is innermost on its stack, and goes
//! on before anything is worked out of that. One that sleeps in a system call that would come back with `EINTR` after such a stop (`epoll_wait` and few others) is not stopped at all: the
//! kernel tells where it sleeps. What a thread that has ended was attached to, the kernel lets go of; so each process is looked at by a thread of its own, and none stays stopped whatever happens to it.
//! A process that was stopped before stays stopped.
//!
//! | file | what |
//! | --- | --- |
//! | `memory` | what is in the memory of another process |
//! | `threads` | registers and stacks of its threads |
//! | `modules` | which files are where in its memory, and their tables for unwinding |
//! | `symbols` | names of functions |

mod memory;
mod modules;
pub mod symbols;
mod threads;

use crate::state::{Life, ProcessStatus};
use memory::ProcessMemory;
use modules::{CodeAddress, ProcessModules};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use symbols::Symbols;

/// So many frames of a thread are told, from the inside. Chosen by hand: deeper ones take longer to read and to send; the inner ones say what a
/// thread waits for.
pub(crate) const DEPTH: usize = 64;
/// So many threads of a process are looked at. Chosen by hand: each is stopped for a moment; with fewer, threads of large nodes are left out.
const THREADS: usize = 64;
/// How many processes that the kernel does not answer for may keep a thread of this one. Chosen by hand: bounds the threads where the kernel answers
/// for none; with fewer, one bad file system ends all looks.
const HANGING: usize = 16;
/// Of the time that there is, what names may take after all stacks are known. Chosen by hand: with more, fewer stacks are found in time; with less,
/// more of them have no names.
const FOR_NAMES: f64 = 0.4;

/// The stacks of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessStacks {
    /// Its rank.
    pub rank: u32,
    /// Process id; 0 if it is not known.
    pub process: u32,
    /// Its node; empty if it is not known.
    pub host: String,
    /// Its threads, the first one of the process first.
    pub threads: Vec<ThreadStack>,
    /// Why there is nothing, or not all.
    pub note: Option<String>,
}

/// The stack of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadStack {
    /// Its id.
    pub thread: u32,
    /// What the kernel calls it.
    pub name: String,
    /// The functions that it is in, from the inside.
    pub frames: Vec<StackFrame>,
    /// Why there is nothing, or no more.
    pub note: Option<String>,
}

/// A function that a thread is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// Its name, if there is a symbol.
    pub function: Option<String>,
    /// The file that it is in; empty if there is none.
    pub file: String,
    /// The address in that file; of all but the innermost frame that behind the call.
    pub address: u64,
    /// File and line of the source, if there is debug information.
    pub source: Option<String>,
    /// The compiler has put it into the next one: both have the same address.
    pub inlined: bool,
}

/// A process whose stacks are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackRequest {
    /// Its rank.
    pub rank: u32,
    /// Process id.
    pub process: u32,
    /// When it was started, in ticks since boot; 0 if that does not matter.
    pub started: u64,
}

/// A thread, and where it is: addresses, which get their names later.
struct UnwoundThread {
    thread: u32,
    name: String,
    places: Vec<CodeAddress>,
    note: Option<String>,
}

/// The threads of a process that were unwound.
struct UnwoundProcess {
    threads: Vec<UnwoundThread>,
    note: Option<String>,
}

/// The stacks of these processes of this node, after so long at the latest.
pub(crate) fn of(wanted: &[StackRequest], host: &str, limit: Duration) -> Vec<ProcessStacks> {
    let end = Instant::now() + limit;
    let unwound = end - limit.mul_f64(FOR_NAMES);
    let one_of = |(place, one): (usize, &StackRequest)| {
        // A process that the kernel does not answer for leaves time for the others.
        let left = unwound.saturating_duration_since(Instant::now());
        let share = if place + 1 < wanted.len() { left / 2 } else { left };
        aside(*one, Instant::now() + share)
    };
    let found: Vec<_> = wanted.iter().enumerate().map(one_of).collect();
    let mut symbols = Symbols::default();
    let with_names = |(one, found): (&StackRequest, Result<UnwoundProcess, String>)| {
        let seen = found.unwrap_or_else(|why| UnwoundProcess { threads: Vec::new(), note: Some(why) });
        let threads = seen.threads.into_iter().map(|found| named(found, &mut symbols, end)).collect();
        ProcessStacks { rank: one.rank, process: one.process, host: host.to_owned(), threads, note: seen.note }
    };
    wanted.iter().zip(found).map(with_names).collect()
}

/// Processes that the kernel has not answered for.
static ASIDE: AtomicUsize = AtomicUsize::new(0);

/// Looks at a process in a thread of its own: whatever the kernel does with it, this one goes on in time, and what that thread was attached to is let go of when it ends.
fn aside(one: StackRequest, end: Instant) -> Result<UnwoundProcess, String> {
    if ASIDE.load(Ordering::Relaxed) >= HANGING {
        return Err("the kernel has not yet answered earlier requests about processes of this node".to_owned());
    }
    let (tell, told) = mpsc::channel();
    ASIDE.fetch_add(1, Ordering::Relaxed);
    let spawned = std::thread::Builder::new().name("stacks".into()).spawn(move || {
        let found = look(one, end);
        ASIDE.fetch_sub(1, Ordering::Relaxed);
        let _ = tell.send(found);
    });
    let thread = spawned.map_err(|error| {
        ASIDE.fetch_sub(1, Ordering::Relaxed);
        format!("the agent cannot start a thread: {error}")
    })?;
    let left = end.saturating_duration_since(Instant::now());
    let found = told.recv_timeout(left).map_err(|_| "there was not enough time".to_owned())?;
    // What it was attached to is let go of now.
    let _ = thread.join();
    found
}

fn look(one: StackRequest, end: Instant) -> Result<UnwoundProcess, String> {
    let gone = || "the process is gone".to_owned();
    if ProcessStatus::look(one.process, one.started).life == Life::Gone {
        return Err(gone());
    }
    let memory = ProcessMemory::of(one.process);
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", one.process))
        .map_err(|error| threads::refused(&error, one.process))?;
    let modules = ProcessModules::read(&maps, &memory);
    let mut list = threads::list(one.process);
    if list.is_empty() {
        return Err(gone());
    }
    let left_out = list.len().saturating_sub(THREADS);
    list.truncate(THREADS);
    let mut found = Vec::new();
    for thread in list {
        let name = threads::name(one.process, thread);
        let one_more = |places, note| found.push(UnwoundThread { thread, name, places, note });
        if Instant::now() >= end {
            one_more(Vec::new(), Some("there was not enough time".to_owned()));
            continue;
        }
        match threads::look(one.process, thread, &memory, &modules, end) {
            Ok(snapshot) => {
                let (places, note) = modules.unwind(&snapshot, &memory);
                one_more(places, note);
            }
            Err(why) => one_more(Vec::new(), Some(why)),
        }
    }
    // What is said of all threads is said once.
    let first = found.first().and_then(|found| found.note.clone());
    match first {
        Some(why) if found.iter().all(|found| found.places.is_empty() && found.note.as_ref() == Some(&why)) => Err(why),
        _ => {
            let note = (left_out > 0).then(|| format!("{left_out} more threads are not shown"));
            Ok(UnwoundProcess { threads: found, note })
        }
    }
}

fn named(found: UnwoundThread, symbols: &mut Symbols, end: Instant) -> ThreadStack {
    let mut frames: Vec<StackFrame> = Vec::new();
    let mut unnamed = false;
    for place in &found.places {
        let in_time = Instant::now() < end;
        unnamed |= place.has_file && !in_time;
        let functions =
            if place.has_file && in_time { symbols.functions(&place.file, place.looked_up) } else { Vec::new() };
        let frame = |function, source, inlined| StackFrame {
            function,
            file: place.file.clone(),
            address: place.address,
            source,
            inlined,
        };
        match functions.len().checked_sub(1) {
            None => frames.push(frame(None, None, false)),
            Some(last) => frames
                .extend(functions.into_iter().enumerate().map(|(i, one)| frame(Some(one.name), one.source, i < last))),
        }
    }
    let mut note = found.note;
    if frames.len() > DEPTH {
        frames.truncate(DEPTH);
        note = Some(modules::DEEPER.to_owned());
    }
    if unnamed && note.is_none() {
        note = Some("there was not enough time to find all names".to_owned());
    }
    ThreadStack { thread: found.thread, name: found.name, frames, note }
}

impl StackFrame {
    /// Function, and where that is: one line.
    pub fn text(&self) -> String {
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let place = match (&self.source, self.file.is_empty()) {
            (Some(source), _) => last(source),
            (None, true) => format!("0x{:x}", self.address),
            (None, false) => format!("{}+0x{:x}", last(&self.file), self.address),
        };
        let inlined = if self.inlined { ", inlined" } else { "" };
        match &self.function {
            Some(function) => format!("{function} ({place}{inlined})"),
            None => place,
        }
    }
}

impl ProcessStacks {
    /// Of a rank that nobody can be asked about.
    pub(crate) fn none(rank: u32, process: u32, host: &str, why: &str) -> ProcessStacks {
        ProcessStacks { rank, process, host: host.to_owned(), threads: Vec::new(), note: Some(why.to_owned()) }
    }

    /// All of it, as lines of text.
    pub fn text(&self) -> String {
        let mut text = match (self.process, &*self.host) {
            (0, "") => format!("stack of rank {}:", self.rank),
            (0, host) => format!("stack of rank {}, on {host}:", self.rank),
            (process, host) => format!("stack of rank {}, process {process} on {host}:", self.rank),
        };
        if let Some(note) = self.note.as_ref().filter(|_| self.threads.is_empty()) {
            return text + &format!(" {note}\n");
        }
        text.push('\n');
        for thread in &self.threads {
            text += &format!("  thread {} ({}):", thread.thread, thread.name);
            match (&thread.note, thread.frames.is_empty()) {
                (Some(note), true) => text += &format!(" {note}\n"),
                _ => text.push('\n'),
            }
            for (number, frame) in thread.frames.iter().enumerate() {
                text += &format!("    {number:>2}  {}\n", frame.text());
            }
            if let Some(note) = thread.note.as_ref().filter(|_| !thread.frames.is_empty()) {
                text += &format!("        {note}\n");
            }
        }
        if let Some(note) = &self.note {
            text += &format!("  {note}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests;
