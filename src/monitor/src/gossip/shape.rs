//! Which nodes form a group in which layer. That follows from their numbers, the sizes of groups and the number of nodes.
//!
//! An entry of layer l stands for as many nodes as the sizes of the groups below it say. The last entry of a layer may stand for more:
//! in a group of one or two, nobody or one member alone would judge of a death, so such a last group joins the one before it.

use super::config::Config;
use super::sets::MOST;
use super::types::NodeId;
use std::ops::Range;

/// A last group of fewer members joins the one before it. Chosen by hand: a smaller group is silent when one or two nodes are; a larger value makes
/// the one before it larger than others.
const LEAST_MEMBERS: u32 = 3;

/// The entries of one layer, and how they form groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayerShape {
    /// How many nodes an entry stands for; the last one may stand for more.
    pub span: u32,
    /// Number of the last entry; the largest number if that is not known, and for nodes, of which there may be more than was said.
    pub last: u32,
    /// Members of a group, 0 if all are in one.
    size: u32,
    /// Number of the last group.
    last_group: u32,
}

impl LayerShape {
    /// Those of all layers, from the first.
    pub(crate) fn all(config: &Config) -> Vec<LayerShape> {
        let (mut span, mut last, mut entries) = (1u32, u32::MAX, config.nodes);
        let mut shapes = Vec::new();
        for size in config.group_sizes.iter().copied().chain([0]) {
            let groups = groups(entries, size);
            let last_group = groups.checked_sub(1).unwrap_or(u32::MAX);
            shapes.push(LayerShape { span, last, size, last_group });
            (span, last, entries) = (span.saturating_mul(size.max(1)), last_group, groups);
        }
        shapes
    }

    /// The entry that a node belongs to.
    pub(crate) fn entry(&self, node: u32) -> u32 {
        (node / self.span).min(self.last)
    }

    /// The group that an entry is in: the number of its first member, and how many there can be.
    pub(crate) fn group(&self, entry: u32) -> (u32, usize) {
        let Some(group) = entry.checked_div(self.size) else { return (0, MOST) };
        let group = group.min(self.last_group);
        (group * self.size, if group == self.last_group { MOST } else { self.size as usize })
    }

    /// The nodes of an entry.
    fn nodes(&self, entry: u32) -> Range<u32> {
        let first = entry.saturating_mul(self.span);
        first..if entry == self.last { u32::MAX } else { first.saturating_add(self.span) }
    }
}

/// How many groups of that size so many entries form.
fn groups(entries: u32, size: u32) -> u32 {
    let rest = entries.checked_rem(size).unwrap_or(0);
    let groups = if size == 0 { 0 } else { entries.div_ceil(size) };
    groups - u32::from(groups > 1 && (1..LEAST_MEMBERS).contains(&rest))
}

impl Config {
    /// The nodes of a group, by the layer in which it is an entry and its number there ([`EventKind::GroupDead`](super::EventKind)); the last one's end is open. All nodes of a layer that there is not.
    pub fn nodes_of(&self, layer: u8, group: u32) -> Range<u32> {
        let shape = usize::from(layer).checked_sub(1).and_then(|at| LayerShape::all(self).get(at).copied());
        shape.map_or(0..u32::MAX, |shape| shape.nodes(group))
    }

    /// The nodes of the group of nodes that a node is in.
    pub fn group_of(&self, node: NodeId) -> Range<u32> {
        LayerShape::all(self).get(1).map_or(0..u32::MAX, |above| above.nodes(above.entry(node.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(nodes: u32, group_sizes: &[u32]) -> Config {
        let address = "10.0.0.1:1".parse().expect("an address");
        Config { nodes, group_sizes: group_sizes.to_vec(), ..Config::new(NodeId(0), address, [0; 32]) }
    }

    #[test]
    fn a_last_group_of_one_or_two_joins_the_one_before_it() {
        let group = |nodes, node| config(nodes, &[8]).group_of(NodeId(node));
        assert_eq!([group(57, 55), group(57, 56)], [48..u32::MAX, 48..u32::MAX]);
        assert_eq!([group(58, 47), group(58, 57)], [40..48, 48..u32::MAX]);
        assert_eq!([group(59, 55), group(59, 56)], [48..56, 56..u32::MAX]);
        assert_eq!([group(64, 55), group(64, 63)], [48..56, 56..u32::MAX]);
        assert_eq!(group(1, 0), 0..u32::MAX, "there is no group before it");
        assert_eq!([group(0, 55), group(0, 56)], [48..56, 56..64], "it is not known which one is the last");
        assert_eq!(group(57, 70), 48..u32::MAX, "more nodes than was said");
        assert_eq!(config(57, &[]).group_of(NodeId(3)), 0..u32::MAX);
    }

    #[test]
    fn groups_of_groups_do_so_as_well() {
        // Eight groups of nodes: the eighth would be alone in its group of groups.
        let config = config(57, &[7, 7]);
        let shapes = LayerShape::all(&config);
        assert_eq!(shapes.iter().map(|shape| shape.entry(56)).collect::<Vec<_>>(), [56, 7, 0]);
        assert_eq!([shapes[1].group(6), shapes[1].group(7)], [(0, MOST), (0, MOST)]);
        assert_eq!(
            [config.nodes_of(2, 6), config.nodes_of(2, 7), config.nodes_of(3, 0)],
            [42..49, 49..u32::MAX, 0..u32::MAX]
        );
    }
}
