//! What a node has left and what it is busy with: read from the kernel's tables, told in few bytes, put together per group.
//!
//! [`Sensors`] reads, a [`Reading`] is what was read and how it travels, [`Aggregate`] is what many readings have in common,
//! [`Formula`] an aggregate of the user's own.

mod aggregate;
mod formula;
mod quantity;
mod reading;
mod sensors;

pub use aggregate::{Aggregate, GroupAggregates, MAX_AGGREGATES};
pub use formula::{Formula, MAX_FORMULA, NoFormula, Variable};
pub use quantity::Quantity;
pub use reading::Reading;
pub use sensors::Sensors;
