//! A table by the numbers of nodes that takes little memory: of a job of 100,000 nodes, each hears from ever more of the others.

use super::types::NodeId;

/// Values by number, sorted; numbers stand apart from values, so that a search touches few cache lines.
#[derive(Debug)]
pub(crate) struct NodeTable<V> {
    ids: Vec<NodeId>,
    values: Vec<V>,
}

impl<V> Default for NodeTable<V> {
    fn default() -> Self {
        NodeTable { ids: Vec::new(), values: Vec::new() }
    }
}

impl<V> NodeTable<V> {
    pub(crate) fn get(&self, id: NodeId) -> Option<&V> {
        self.values.get(self.ids.binary_search(&id).ok()?)
    }

    pub(crate) fn get_mut(&mut self, id: NodeId) -> Option<&mut V> {
        self.values.get_mut(self.ids.binary_search(&id).ok()?)
    }

    /// Sets a value; returns the one that it replaces.
    pub(crate) fn insert(&mut self, id: NodeId, value: V) -> Option<V> {
        match self.ids.binary_search(&id) {
            Ok(place) => self.values.get_mut(place).map(|old| std::mem::replace(old, value)),
            Err(place) => {
                if self.ids.len() == self.ids.capacity() {
                    // Less room to spare than twice as much.
                    let more = self.ids.len() / 4 + 4;
                    self.ids.reserve_exact(more);
                    self.values.reserve_exact(more);
                }
                self.ids.insert(place, id);
                self.values.insert(place, value);
                None
            }
        }
    }

    /// Removes a value; returns it.
    pub(crate) fn remove(&mut self, id: NodeId) -> Option<V> {
        let place = self.ids.binary_search(&id).ok()?;
        self.ids.remove(place);
        Some(self.values.remove(place))
    }

    /// All of them, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, &V)> {
        self.ids.iter().copied().zip(&self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_does_what_a_map_does(steps in proptest::collection::vec((0u32..40, any::<Option<u8>>()), 0..300)) {
            let (mut table, mut map) = (NodeTable::default(), BTreeMap::new());
            for (id, value) in steps.into_iter().map(|(id, value)| (NodeId(id), value)) {
                match value {
                    Some(value) => prop_assert_eq!(table.insert(id, value), map.insert(id, value)),
                    None => prop_assert_eq!(table.remove(id), map.remove(&id)),
                }
                prop_assert_eq!(table.get(id), map.get(&id));
                prop_assert_eq!(table.get_mut(id), map.get_mut(&id));
            }
            prop_assert!(table.iter().eq(map.iter().map(|(&id, value)| (id, value))));
        }
    }
}
