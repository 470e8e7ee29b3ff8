//! The numbers of threads that were made by `pthread_create`.

use std::collections::HashMap;

/// The threads of a process, while its records are read.
#[derive(Debug, Default)]
pub(super) struct ThreadNumbers {
    /// Numbers by what the system calls the threads, from their beginning until somebody has waited for them.
    pub(super) named: HashMap<u64, u64>,
    /// Numbers by index of the thread.
    pub(super) own: HashMap<usize, u64>,
}
