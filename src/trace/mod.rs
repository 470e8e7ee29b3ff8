//! The vocabulary of a trace: ids, ticks, definitions, events, corrections, errors.
//!
//! The lowest layer. It knows no file format, no MPI and no command line; everything else builds on it.

pub mod codec;
mod correction;
mod definitions;
mod error;
mod event;
mod fixed;
mod ids;
mod places;
pub mod progress;
mod ticks;
mod timeline;

pub use correction::{Advance, Correction, Cursor, Curve, Position, Shape, Stretch};
pub use definitions::{
    ClockProperties, CommMembers, Communicator, Definitions, Location, LocationGroup, LocationKind, Region, Shipped,
    SystemTreeNode,
};
pub use error::{Error, Result};
pub use event::{ClockOffset, Collective, CollectiveOp, Event, Message, Root};
pub use fixed::Fraction;
pub use ids::{CommId, LocationGroupId, LocationId, RegionId, SystemTreeNodeId};
pub use places::Places;
pub use ticks::Ticks;
pub use timeline::{Timeline, Timelines};
