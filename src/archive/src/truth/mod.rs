//! Truth files: the true time of every event of one location, beside the trace that a user sees.
//!
//! A file is a header and blocks of up to 16 KiB, all numbers little-endian:
//!
//! ```text
//! header   "CLCTRUTH", version u32, location u64, resolution u64, events u64, crc32 of all that u32
//! block    length of data u32, events u32, data, crc32 of all that u32
//! data     true time of the first event i64, then for each further event the difference to its predecessor (LEB128)
//! ```
//!
//! Times are stored by themselves and not relative to the timestamps of the trace, so the truth of a trace is the truth of
//! every correction of that trace as well. They never decrease. `docs/formats.md` has the full description.

mod read;
mod write;

pub use read::TruthReader;
pub use write::TruthWriter;

use clc_trace::LocationId;
use std::path::{Path, PathBuf};

/// The first bytes of a truth file.
const MAGIC: [u8; 8] = *b"CLCTRUTH";
/// The version that is written, and the only one that is read.
pub(crate) const VERSION: u32 = 1;
/// Size of the header in bytes.
const HEADER: usize = 40;
/// Most bytes of data in a block.
const BLOCK: usize = 16 * 1024;
/// Most bytes of a LEB128 number of 64 bits.
const LONGEST_NUMBER: usize = 10;

/// Name of the directory with the truth in that of an archive.
pub const NAME: &str = "truth";

/// Where the truth of an archive lies: `<archive directory>/truth`.
pub fn directory(archive: &Path) -> PathBuf {
    archive.join(NAME)
}

/// Where the truth of a location lies: `<archive directory>/truth/<location id>.truth`.
pub fn path(archive: &Path, location: LocationId) -> PathBuf {
    directory(archive).join(format!("{location}.truth"))
}

#[cfg(test)]
mod tests;
