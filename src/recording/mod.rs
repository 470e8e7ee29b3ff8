//! Recordings: from the raw files that the recorder writes inside the application (`src/recorder`) to an OTF2 archive.
//!
//! | file | what |
//! | --- | --- |
//! | `format` | the raw format; compiled into the recorder as well |
//! | `raw` | one raw file, record by record |
//! | `merge` | the records of all threads of a process in the order of time |
//! | `clocks` | from counters to nanoseconds, measured offsets, wrong clocks on purpose |
//! | `communicators` | which communicators of different processes are the same one |
//! | `survey` | first pass: what there is, and what is missing |
//! | `requests`, `events` | second pass: the events of one process |
//! | `assemble` | both passes, and the archive |
//! | `launch` | starting an application with the recorder |

mod assemble;
mod clocks;
mod communicators;
mod events;
#[allow(dead_code)] // the recorder uses all of it
mod format;
pub mod launch;
mod merge;
mod raw;
mod requests;
mod survey;

pub use assemble::{Recorded, Settings, assemble, raw_directory, still_running};
