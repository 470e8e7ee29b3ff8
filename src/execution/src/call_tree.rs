//! Call paths as a tree: each node is a region called from its parent.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Call paths of one process, or of several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTree {
    /// Parent and region of every node but the root; parents come before their children.
    nodes: Vec<(u32, u32)>,
    /// Nesting of every node but the root.
    depths: Vec<u16>,
    children: HashMap<(u32, u32), u32, foldhash::fast::FixedState>,
}

impl CallTree {
    /// The root: outside of any region.
    pub const ROOT: u32 = 0;
    /// Most nodes of the tree of one process; calls beyond that belong to their callers. Chosen by hand: bounds the memory that a recursive program
    /// takes; with fewer, more calls are only seen as their callers.
    pub(crate) const NODES: usize = 1 << 16;
    /// Deepest nesting; calls beyond that belong to their callers. Chosen by hand: bounds what recursion takes; with less, calls of deeply layered
    /// libraries are only seen as their callers.
    pub(crate) const DEPTH: u16 = 64;

    /// The node of `region` when it is called at `node`, made if it is new.
    pub fn call(&mut self, node: u32, region: u32) -> u32 {
        let depth = self.depth(node);
        if let Some(&child) = self.children.get(&(node, region)) {
            return child;
        }
        if depth >= Self::DEPTH || self.nodes.len() >= Self::NODES {
            return node;
        }
        self.insert(node, region)
    }

    fn insert(&mut self, node: u32, region: u32) -> u32 {
        let depth = self.depth(node);
        self.nodes.push((node, region));
        self.depths.push(depth + 1);
        // There are far fewer: who enters them stops at a limit.
        let child = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.children.insert((node, region), child);
        child
    }

    fn depth(&self, node: u32) -> u16 {
        (node as usize).checked_sub(1).map_or(0, |index| self.depths[index])
    }

    /// The regions of a node, outermost first.
    pub(crate) fn regions(&self, mut node: u32) -> Vec<u32> {
        let mut regions = Vec::new();
        while let Some(&(parent, region)) = (node as usize).checked_sub(1).and_then(|index| self.nodes.get(index)) {
            regions.push(region);
            node = parent;
        }
        regions.reverse();
        regions
    }

    /// The innermost region of every node, by its number; that of the root is `outside`.
    pub fn innermost(&self, outside: u32) -> Vec<u32> {
        std::iter::once(outside).chain(self.nodes.iter().map(|&(_, region)| region)).collect()
    }

    /// The node here of a node of another tree, made with its callers if it is new. Without limit: those are for single processes.
    pub(crate) fn adopt(&mut self, other: &CallTree, node: u32) -> u32 {
        self.path(other.regions(node))
    }

    /// The node of these regions, outermost first, made with its callers if it is new.
    fn path(&mut self, regions: impl IntoIterator<Item = u32>) -> u32 {
        let mut here = Self::ROOT;
        for region in regions {
            here = match self.children.get(&(here, region)) {
                Some(&child) => child,
                None => self.insert(here, region),
            };
        }
        here
    }
}

/// Sums by call path that can be merged, whatever trees they were made with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ByCallPath<K: std::hash::Hash + Eq, V> {
    tree: CallTree,
    sums: HashMap<(K, u32), V, foldhash::fast::FixedState>,
}

impl<K: std::hash::Hash + Eq, V> Default for ByCallPath<K, V> {
    fn default() -> Self {
        ByCallPath { tree: CallTree::default(), sums: HashMap::default() }
    }
}

impl<K: std::hash::Hash + Eq + Copy + Ord, V: Default> ByCallPath<K, V> {
    /// The sum of `key` at `node` of `tree`.
    pub fn at(&mut self, tree: &CallTree, node: u32, key: K) -> &mut V {
        let node = self.tree.adopt(tree, node);
        self.sums.entry((key, node)).or_default()
    }

    /// Adds all sums of another one.
    pub fn merge(&mut self, other: ByCallPath<K, V>, add: impl Fn(&mut V, V)) {
        let ByCallPath { tree, sums } = other;
        for ((key, node), value) in sums {
            add(self.at(&tree, node, key), value);
        }
    }

    /// The same with one region in place of all that are the `same`; sums of call paths that are one then are added.
    pub fn joined(self, same: impl Fn(u32) -> u32, add: impl Fn(&mut V, V)) -> ByCallPath<K, V> {
        let mut joined = ByCallPath::default();
        for (key, regions, value) in self.sorted() {
            let node = joined.tree.path(regions.into_iter().map(&same));
            add(joined.sums.entry((key, node)).or_default(), value);
        }
        joined
    }

    /// All sums with key and regions, in an order that depends on those only.
    pub fn sorted(self) -> Vec<(K, Vec<u32>, V)> {
        let ByCallPath { tree, sums } = self;
        let mut all: Vec<_> = sums.into_iter().map(|((key, node), sum)| (key, tree.regions(node), sum)).collect();
        all.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_paths_of_regions_that_are_the_same_are_one() {
        let mut tree = CallTree::default();
        let main = tree.call(CallTree::ROOT, 7);
        let other = tree.call(CallTree::ROOT, 17);
        let mut sums = ByCallPath::<char, i64>::default();
        for (node, sum) in [(tree.call(main, 8), 1), (tree.call(other, 18), 10), (tree.call(main, 9), 100)] {
            *sums.at(&tree, node, 'a') += sum;
        }
        let joined = sums.joined(|region| region % 10, |sum, more| *sum += more);
        assert_eq!(joined.sorted(), [('a', vec![7, 8], 11), ('a', vec![7, 9], 100)]);
    }

    #[test]
    fn equal_paths_of_different_trees_meet() {
        let (mut a, mut b) = (CallTree::default(), CallTree::default());
        let main = a.call(CallTree::ROOT, 7);
        let solve = a.call(main, 8);
        let other_main = b.call(CallTree::ROOT, 7);
        let io = b.call(other_main, 9);
        let other_solve = b.call(other_main, 8);
        assert_eq!(a.call(main, 8), solve);
        assert_eq!(b.regions(other_solve), [7, 8]);
        assert_eq!(b.innermost(99), [99, 7, 9, 8]);
        let (mut left, mut right) = (ByCallPath::default(), ByCallPath::default());
        *left.at(&a, solve, 0u8) += 3;
        *right.at(&b, other_solve, 0) += 4;
        *right.at(&b, io, 0) += 1;
        *right.at(&b, io, 1) += 5;
        *right.at(&b, CallTree::ROOT, 0) += 9;
        left.merge(right, |sum, more| *sum += more);
        let expected = [(0, vec![], 9), (0, vec![7, 8], 7), (0, vec![7, 9], 1), (1, vec![7, 9], 5)];
        assert_eq!(left.sorted(), expected);
    }

    #[test]
    fn a_recursion_without_end_stays_small() {
        let mut tree = CallTree::default();
        let mut node = CallTree::ROOT;
        for _ in 0..1_000_000 {
            node = tree.call(node, 1);
        }
        assert_eq!(tree.regions(node).len(), usize::from(CallTree::DEPTH));
        for region in 2..200_000 {
            tree.call(CallTree::ROOT, region);
        }
        assert_eq!(tree.nodes.len(), CallTree::NODES);
        assert_eq!(tree.call(CallTree::ROOT, 1_000_000), CallTree::ROOT);
    }
}
