//! Recordings: from the raw files that the recorder writes inside the application (`src/recorder`) to an OTF2 archive.
//!
//! | file, folder | what |
//! | --- | --- |
//! | `raw` | the raw files: their format, compiled into the recorder as well; one of them and all of a recording; their records, those of all threads of a process merged by time |
//! | `clocks` | from counters to nanoseconds, wrong clocks on purpose; the exchanges that measure clocks, what they say, and what the clock logs of a monitored job add |
//! | `communicators` | which communicators of different processes are the same one |
//! | `survey` | first pass: what there is, and what is missing |
//! | `plan` | what is known after it of all processes, their nodes and clocks |
//! | `windows` | which windows of different processes are the same one, and what is going on on them |
//! | `polls` | polls in vain that were joined: the region that stands for them |
//! | `own` | the program's own functions, regions and metrics; functions by their addresses |
//! | `events`, `extra` | second pass: the events of one process, and those of no interest to corrections |
//! | `cut` | of recordings that begin within the run, what lacks its counterpart |
//! | `nodes` | what the nodes were doing at agreed times, or what their agents noted, as metrics of the trace |
//! | `definitions`, `target`, `written`, `assemble` | the trace |
//! | `settings` | what a recording was asked to be |
//! | `monitored` | monitoring of the job while it runs |
//! | `launch` | starting an application with the recorder |
//! | `publish`, `leftovers` | the archive takes its place; the raw files go |

mod assemble;
mod clocks;
mod communicators;
mod cut;
mod definitions;
mod events;
mod extra;
pub(crate) mod launch;
mod leftovers;
pub(crate) mod monitored;
mod nodes;
mod own;
mod plan;
mod polls;
mod publish;
mod raw;
mod settings;
mod survey;
mod target;
mod windows;
mod written;

pub(crate) use assemble::{AssembledRecording, assemble};
pub(crate) use clocks::gossiped::keep_logs;
pub(crate) use leftovers::remove;
pub(crate) use publish::{PublishOptions, publish};
pub(crate) use raw::files::{holds_records, still_running};
pub(crate) use settings::{RecordingSettings, raw_directory, telling};

/// A directory with such a raw file, for tests.
#[cfg(test)]
fn file_of_words(name: &str, magic: [u8; 8], words: &[u64]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = magic.into_iter().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect();
    std::fs::write(directory.path().join(name), bytes).unwrap();
    directory
}
