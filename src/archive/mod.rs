//! Trace formats: stream events in, stream events out.
//!
//! [`Archive`] is a trace of any format; each format is a module of its own.

mod any;
mod left_out;
pub(crate) mod mmap;
pub mod native;
pub mod otf2;
mod scan;
mod siblings;
mod times;
pub mod truth;

pub use any::{Archive, Format, directory_of};
pub use left_out::{LeftOut, Thing};
pub use mmap::{MappedFile, mapped_at, open_file};
pub use scan::ScanSummary;
pub use siblings::{Sibling, SiblingKind, WRITTEN_LIST, copy};
pub use times::{Marker, MarkerScope, TimeMap};
