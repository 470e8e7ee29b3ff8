//! Records the MPI calls of the program that it is preloaded into (`LD_PRELOAD`), for `clc-replay record`.
//!
//! The library has a function of the name of each MPI function in `calls.txt`. Such a *wrapper* writes what the call was given into the file of its
//! thread (`stream`), calls the function of the MPI library, and writes what came back. Nothing is interpreted here: which request belongs to
//! which message, and what a communicator's number is, `clc-replay` finds out after the run.
//!
//! It is not linked to an MPI library, but finds the one of the program when it is first called (`real`), and which of the two binary
//! interfaces it has (`abi`).
//!
//! What threads of OpenMP do it is told by their runtime (`ompt`). Threads that the program makes itself begin in the recorder (`pthreads`).
//!
//! It must never harm the program: every failure of its own ends the recording with one line, and the program goes on.

mod abi;
mod arguments;
mod buffers;
mod calls;
mod clock;
mod control;
mod endpoint;
mod exchange;
mod file;
mod functions;
mod global_time;
mod helper;
mod hooks;
mod line;
mod load;
mod monitor;
mod offset_rounds;
mod offsets;
mod ompt;
mod openmp_runtime;
mod pthreads;
mod real;
mod samples;
mod session;
mod stream;
mod streams;
mod thread_birth;
mod threads;
mod user;
mod waits;
mod wrappers;

#[allow(dead_code)]
#[path = "../../recording/raw/format/mod.rs"]
mod format;

#[allow(dead_code)]
#[path = "../../monitor/src/state/layout.rs"]
mod layout;

use std::io::Write;

/// Says one line on standard error, as the recorder.
fn say(text: &str) {
    // Nobody is left to be told if it fails.
    let _ = std::io::stderr().write_all(format!("clc-replay record: {text}\n").as_bytes());
}
