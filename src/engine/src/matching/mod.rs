//! Who talks to whom: messages and collective instances, resolved before any replay.
//!
//! [`extract`] turns the events of one timeline into its synchronisation events ([`extracted`]); [`messages`] joins sends and receives over all
//! analysis ranks to [`channels`], which [`matched`] gathers; [`collectives`] joins the members of collective instances, also those of windows. What the
//! threads of a process and the streams of its accelerators do with each other is in [`within`], and [`split`] gives those whose clocks
//! differ timelines of their own. The other files have what these share: events, channels, communicators, ranks. Uses the transport, the semantics of operations and
//! the trace's vocabulary; knows neither files nor clocks.

pub mod channels;
pub mod collectives;
pub mod comm_index;
pub mod communicators;
pub(crate) mod event_list;
pub mod extract;
pub mod extracted;
pub mod hash;
mod link;
pub mod local_timeline;
pub mod matched;
pub(crate) mod message_ends;
pub mod messages;
pub(crate) mod nearly_sorted;
pub mod operation_begin;
mod parts;
pub mod placement;
pub(crate) mod relative_times;
pub mod split;
pub mod sync;
pub mod times;
pub mod undefined;
pub mod visited_times;
pub mod within;
