//! Clocks of the nodes while a job runs: the time that they make together, how far each is from it, and which of them fail.
//!
//! [`Nearest`] makes differences of round trips, [`system_time`] the decentralised system time of differences (Umansky and Leontev),
//! [`ClockWatch`] a word about a clock that jumps, runs away or stands still; a [`ClockKeeper`] does all of it for the clocks that a node hears of. All are plain functions of numbers; times are nanoseconds. [`log`] is what agents write
//! down of their packets.

mod keeper;
pub mod log;
mod nearest;
mod system;
mod watch;

pub use keeper::{ClockComparison, ClockKeeper, Remark};
pub use nearest::{Difference, Nearest};
pub use system::{SystemTime, distances, system_time};
use watch::STILL;
pub use watch::{ClockFault, ClockLimits, ClockWatch};
