//! The vocabulary of a trace: ids, ticks, definitions, events, errors.
//!
//! The lowest layer. It knows no file format, no MPI and no command line; everything else builds on it.

mod definitions;
mod error;
mod event;
mod ids;
mod ticks;

pub use definitions::{
    ClockProperties, CommMembers, Communicator, Definitions, Location, LocationGroup, LocationKind, Region,
    SystemTreeNode,
};
pub use error::{Error, Result};
pub use event::{ClockOffset, Collective, CollectiveOp, Event, Message, Root};
pub use ids::{CommId, LocationGroupId, LocationId, RegionId, SystemTreeNodeId};
pub use ticks::Ticks;
