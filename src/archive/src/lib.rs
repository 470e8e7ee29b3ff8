//! Trace formats: stream events in, stream events out.
//!
//! [`Archive`] is a trace of any format; each format is a module of its own.

mod any;
pub mod native;
pub mod truth;

/// The file by which the program knows its own outputs (`pipeline/manifest.rs`). It says what lies in one directory, and is copied to no other.
pub const WRITTEN_LIST: &str = ".clc-replay";

pub use any::{Archive, Format, directory_of};
pub use clc_otf2::{
    LeftOut, MappedFile, Marker, MarkerScope, ScanSummary, Sibling, SiblingKind, Thing, TimeMap, copy, mapped_at,
    open_file,
};
