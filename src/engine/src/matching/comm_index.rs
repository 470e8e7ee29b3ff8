//! Which communicator or window.

use clc_trace::number;

number! {
    /// A communicator by its index in the definitions; windows follow the communicators, since each is a communicator of its own
    /// ([`CommTable`](crate::matching::communicators::CommTable)).
    CommIndex(u32), one per "communicator or window"
}
