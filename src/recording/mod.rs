//! Recordings: from the raw files that the recorder writes inside the application (`src/recorder`) to an OTF2 archive.
//!
//! | file | what |
//! | --- | --- |
//! | `format` | the raw format; compiled into the recorder as well |
//! | `files`, `raw`, `records` | the raw files of a recording; one of them; its records |
//! | `merge` | the records of all threads of a process in the order of time |
//! | `clocks` | from counters to nanoseconds, wrong clocks on purpose |
//! | `measured`, `offsets` | the exchanges that measure clocks; what they say |
//! | `gossiped`, `pauses` | what the clock logs of a watched job say of the clocks; in which pause of the events a clock jumped |
//! | `communicators` | which communicators of different processes are the same one |
//! | `survey` | first pass: what there is, and what is missing |
//! | `plan` | what is known after it of all processes, their nodes and clocks |
//! | `windows` | which windows of different processes are the same one, and what is going on on them |
//! | `symbols`, `own` | functions by their addresses; the program's own regions and metrics |
//! | `openmp` | teams of threads, and what they do |
//! | `requests`, `request_ids`, `collectives`, `epochs`, `extra`, `events` | second pass: the events of one process |
//! | `samples`, `noted`, `node_metrics` | what the nodes were doing at agreed times; what their agents noted; either as metrics of the trace |
//! | `definitions`, `target`, `written`, `assemble` | the trace |
//! | `settings` | what a recording was asked to be |
//! | `monitored` | having the job watched while it runs |
//! | `launch` | starting an application with the recorder |
//! | `publish`, `leftovers` | the archive takes its place; the raw files go |

mod assemble;
mod clocks;
mod collectives;
mod communicators;
mod definitions;
mod epochs;
mod events;
mod extra;
mod files;
#[allow(dead_code)] // the recorder uses all of it
mod format;
mod gossiped;
pub(crate) mod launch;
mod leftovers;
mod measured;
mod merge;
pub(crate) mod monitored;
mod node_metrics;
mod noted;
mod offsets;
mod on_window;
mod openmp;
mod openmp_state;
mod openmp_survey;
mod own;
mod pauses;
mod plan;
mod publish;
mod raw;
mod records;
mod request_ids;
mod requests;
mod samples;
mod settings;
mod shared_clocks;
mod survey;
mod symbols;
mod target;
mod windows;
mod written;

pub(crate) use assemble::{AssembledRecording, assemble};
pub(crate) use files::{holds_records, still_running};
pub(crate) use gossiped::keep_logs;
pub(crate) use leftovers::remove;
pub(crate) use publish::{PublishOptions, publish};
pub(crate) use settings::{RecordingSettings, raw_directory};

/// A directory with such a raw file, for tests.
#[cfg(test)]
fn file_of_words(name: &str, magic: [u8; 8], words: &[u64]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = magic.into_iter().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect();
    std::fs::write(directory.path().join(name), bytes).unwrap();
    directory
}
