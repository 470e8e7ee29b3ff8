//! Which communicator or window.

use serde::{Deserialize, Serialize};

/// A communicator by its index in the definitions; windows follow the communicators, since each is a communicator of its own
/// ([`CommTable`](crate::matching::communicators::CommTable)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommIndex(pub u32);

impl CommIndex {
    /// The place in a list of all of them.
    pub fn place(self) -> usize {
        self.0 as usize
    }
}
