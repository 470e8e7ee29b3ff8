//! The vocabulary of event traces of parallel programs: ids, ticks, definitions, events, corrections, errors.
//!
//! The lowest layer of clc-replay. It knows no file format, no MPI and no command line; everything else builds on it. Besides the words it has what every layer
//! above needs: [`progress`] and [`workers`] (threads whose number changes no result), [`mod@format`] (figures for people), [`codec`] (values as bytes), and [`number!`] (integers as
//! types of their own).
//!
//! ```
//! use clc_trace::{Event, EventNumber, LocationId, Message, CommId, Ticks, format};
//!
//! let event = Event::MpiSend(Message { peer: 1, comm: CommId(0), tag: 7, length: 4096 });
//! assert!(matches!(event, Event::MpiSend(message) if message.peer == 1));
//! // Times are ticks of the trace's timer; a resolution makes seconds of them.
//! assert_eq!(format::duration(Ticks(1500).seconds(1_000_000_000)), "1.50 us");
//! // Errors say where they happened.
//! let error = clc_trace::Error::new("times decrease").at_location(LocationId(3)).at_event(EventNumber(17));
//! assert_eq!(error.to_string(), "location 3, event 17: times decrease");
//! ```
#![deny(missing_docs)]
#![deny(clippy::cast_lossless)]

pub mod codec;
mod common_time;
mod correction;
pub mod decimal;
mod definitions;
mod duration;
mod error;
mod event;
mod fixed;
pub mod format;
mod ids;
mod length_class;
mod number;
mod one_sided;
mod places;
pub mod progress;
mod threads;
mod ticks;
mod timeline;
pub mod vector;
pub mod workers;

pub use common_time::{CommonCursor, CommonTime};
pub use correction::{Correction, CorrectionCursor, Finish};
pub use definitions::{
    AcceleratorAttributes, AcceleratorReference, ClockProperties, CommMembers, Communicator, Definitions, Location,
    LocationGroup, LocationKind, Region, SystemTreeNode, Window, WireDefinitions,
};
pub use duration::Duration;
pub use error::{Error, ErrorKind, Result, SystemError};
pub use event::{
    CallParameter, ClockOffset, Collective, CollectiveOp, Event, Message, Root, WindowAtomic, WindowCollective,
    WindowGroup, WindowLock, WindowTransfer,
};
pub use fixed::Fraction;
pub use ids::{
    AttributeId, CommId, CommRank, EventNumber, GroupId, LocationGroupId, LocationId, MpiRank, ParameterId, RegionId,
    SystemTreeNodeId, WindowId,
};
pub use length_class::LengthClass;
pub use one_sided::{Advance, Curve, CurveStretch, OneSided, Position, Shape, SideCursor};
pub use places::Places;
pub use threads::{ThreadEvent, ThreadLock, ThreadStart, ThreadTask};
pub use ticks::Ticks;
pub use timeline::{OwnTimeline, Timeline, TimelineNumber, Timelines};
