//! What is written, and where: nothing into the input, nothing in the place of what is not ours, complete or not at all.

pub mod conflicts;
pub(crate) mod directory;
pub mod files;
pub(crate) mod manifest;
pub mod memory;
mod orphans;
pub(crate) mod paths;
pub mod peak_memory;
mod places;
pub mod signals;
pub(crate) mod truth;
