//! Who talks to whom: messages and collective instances, resolved before any replay.
//!
//! [`extract`] turns the events of one timeline into its synchronisation events ([`extracted`]); [`messages`] joins sends and receives over all
//! analysis ranks to [`channels`], which [`matched`] gathers (`doubts` and `align` where records are missing), `orders` what is no message but orders two
//! processes as well, [`collectives`] the members of collective instances (`groups`
//! of inter-communicators, [`fences`] of windows). What threads of a process do with each other is in [`threads`], with streams of accelerators in
//! [`accelerators`] (both make [`steps`], `teams` the first, `through` finds contradictions among them), and [`split`] gives those whose clocks
//! differ timelines of their own. Uses the transport, the semantics of operations and
//! the trace's vocabulary; knows neither files nor clocks.

pub mod accelerators;
mod align;
pub mod calls;
mod channel_ends;
pub mod channels;
pub mod collectives;
pub mod comm_index;
pub mod communicators;
mod doubts;
pub(crate) mod event_list;
pub mod extract;
pub mod extracted;
pub mod fences;
mod groups;
pub mod hash;
mod homes;
pub mod instances;
pub mod local_timeline;
pub mod matched;
pub(crate) mod message_ends;
pub mod messages;
mod offers;
mod orders;
pub mod placement;
pub mod requests;
pub mod split;
pub mod steps;
pub mod sync;
mod teams;
pub mod threads;
mod through;
pub mod undefined;
