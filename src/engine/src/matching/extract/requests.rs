//! Requests that have begun and are not complete.

use crate::matching::hash::HashMap;

/// So many are looked through one by one, which is faster than a hash table; applications rarely have more open at a time.
const FEW: usize = 16;

/// Open requests of one process and what is known of each.
#[derive(Debug)]
pub struct OpenRequests<T> {
    few: Vec<(u64, T)>,
    /// The highest number so far: tracers count requests, so that nearly all new ones are above it, and none of the open ones need be compared.
    highest: Option<u64>,
    /// All of them, once there have been more than a few at a time.
    many: Option<HashMap<u64, T>>,
}

impl<T> Default for OpenRequests<T> {
    fn default() -> Self {
        OpenRequests { few: Vec::new(), highest: None, many: None }
    }
}

impl<T: Copy> OpenRequests<T> {
    /// Opens `request`; returns what was known of an open one of the same number, which is forgotten.
    #[inline(always)]
    pub fn insert(&mut self, request: u64, value: T) -> Option<T> {
        let is_new = self.highest.is_none_or(|highest| request > highest);
        if is_new && self.many.is_none() && self.few.len() < FEW {
            self.highest = Some(request);
            self.few.push((request, value));
            return None;
        }
        self.insert_any(request, value)
    }

    /// As [`OpenRequests::insert`], whether or not it is new and one of a few.
    #[inline(never)]
    fn insert_any(&mut self, request: u64, value: T) -> Option<T> {
        if let Some(many) = &mut self.many {
            return many.insert(request, value);
        }
        let before = self.remove(request);
        self.highest = self.highest.max(Some(request));
        if self.few.len() < FEW {
            self.few.push((request, value));
        } else {
            let all = self.few.drain(..).chain([(request, value)]);
            self.many = Some(all.collect());
        }
        before
    }

    /// Closes `request`.
    #[inline]
    pub fn remove(&mut self, request: u64) -> Option<T> {
        if let Some(many) = &mut self.many {
            return many.remove(&request);
        }
        let at = self.few.iter().position(|(open, _)| *open == request)?;
        Some(self.few.swap_remove(at).1)
    }

    /// What is known of those that are open, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = T> {
        let few = self.few.iter().map(|(_, value)| *value);
        few.chain(self.many.iter().flat_map(|many| many.values().copied()))
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.many.as_ref().map_or(self.few.len(), |many| many.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((any::<bool>(), 0u64..40, any::<u8>()), 0..200)) {
            let (mut requests, mut map) = (OpenRequests::default(), std::collections::BTreeMap::new());
            for (opens, request, value) in steps {
                if opens {
                    prop_assert_eq!(requests.insert(request, value), map.insert(request, value));
                } else {
                    prop_assert_eq!(requests.remove(request), map.remove(&request));
                }
                prop_assert_eq!(requests.count(), map.len());
            }
        }
    }
}
