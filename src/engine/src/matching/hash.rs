//! Hash tables.

/// Hash tables of small keys, several accesses per event: the hash of the standard library is slower than all else that is done with one.
pub type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// The same for sets.
pub type HashSet<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;
