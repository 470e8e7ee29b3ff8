//! What is written, and where: nothing into the input, nothing in the place of what is not ours, complete or not at all.

pub mod conflicts;
pub mod directory;
pub mod files;
mod manifest;
pub mod memory;
mod orphans;
pub mod paths;
mod places;
pub mod signals;
