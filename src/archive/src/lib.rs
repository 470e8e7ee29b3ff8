//! Traces of either format, as everything above sees them: stream events in, stream events out.
//!
//! [`Archive`] is an OTF2 archive ([`clc_otf2`]) or a native trace ([`native`]): it decides once per file, the loops over events belong to the
//! formats. [`truth`] keeps the true times of a simulated or disturbed trace beside it.
//!
//! ```
//! use clc_archive::{Format, directory_of};
//! use std::path::Path;
//!
//! assert_eq!(Format::of_name(Path::new("run.clct")), Format::Native);
//! assert_eq!(Format::of_name(Path::new("run")), Format::Otf2);
//! assert_eq!(directory_of(Path::new("run/traces.otf2")), Path::new("run"));
//! ```
#![deny(missing_docs)]
#![deny(clippy::cast_lossless)]
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod any;
mod looks;
pub mod native;
pub mod truth;

/// The file by which the program knows its own outputs (`output/manifest.rs`). It says what lies in one directory, and is copied to no other.
pub const WRITTEN_LIST: &str = ".clc-replay";

pub use any::{Archive, Format, directory_of};
pub use clc_otf2::{
    ConversionLoss, Lost, MappedFile, Marker, MarkerScope, RegionVisitor, ScanSummary, Sibling, SiblingKind,
    SynchronisationVisitor, TimeMap, copy, mapped_at, open_file,
};
