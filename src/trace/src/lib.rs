//! The vocabulary of a trace: ids, ticks, definitions, events, corrections, errors.
//!
//! The lowest layer. It knows no file format, no MPI and no command line; everything else builds on it.

pub mod codec;
mod common_time;
mod correction;
mod definitions;
mod error;
mod event;
mod fixed;
pub mod format;
mod ids;
mod one_sided;
mod places;
pub mod progress;
mod threads;
mod ticks;
mod timeline;
pub mod workers;

pub use common_time::{CommonCursor, CommonTime};
pub use correction::{Correction, Cursor, Finish};
pub use definitions::{
    ClockProperties, CommMembers, Communicator, Definitions, Location, LocationGroup, LocationKind, Region, Shipped,
    SystemTreeNode, Window,
};
pub use error::{Error, Result};
pub use event::{
    ClockOffset, Collective, CollectiveOp, Event, Message, Root, WindowAtomic, WindowCollective, WindowGroup,
    WindowLock, WindowTransfer,
};
pub use fixed::Fraction;
pub use ids::{CommId, GroupId, LocationGroupId, LocationId, RegionId, SystemTreeNodeId, WindowId};
pub use one_sided::{Advance, Curve, OneSided, Position, Shape, SideCursor, Stretch};
pub use places::Places;
pub use threads::{ThreadEvent, ThreadLock, ThreadStart, ThreadTask};
pub use ticks::Ticks;
pub use timeline::{OwnTimeline, Timeline, Timelines};
