//! Results as text, in lines of less than 80 columns.

pub mod analysis;
pub mod conversion;
pub mod correction;
pub mod evaluation;
pub mod info;
pub mod locks;
pub mod made;
pub mod pairs;
pub mod table;
