//! Which clocks hold each other: the graph of clocks along which messages travel.

/// The strongly connected component of every node, named by its smallest node: nodes of one component reach each other along
/// directed edges. Edges that name nodes outside of `0..nodes` are ignored.
pub fn components(nodes: usize, edges: impl Iterator<Item = (u32, u32)>) -> Vec<usize> {
    let mut forward: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut backward = forward.clone();
    for (a, b) in edges.map(|(a, b)| (a as usize, b as usize)).filter(|(a, b)| *a < nodes && *b < nodes) {
        forward[a].push(b);
        backward[b].push(a);
    }
    // Kosaraju: the order in which a depth-first search leaves the nodes, then searches against the edges.
    let mut left = Vec::with_capacity(nodes);
    let mut seen = vec![false; nodes];
    for start in 0..nodes {
        let mut path = vec![(start, 0)];
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        while let Some((node, next)) = path.last_mut() {
            match forward[*node].get(*next) {
                Some(&to) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[to], true) {
                        path.push((to, 0));
                    }
                }
                None => {
                    left.push(*node);
                    path.pop();
                }
            }
        }
    }
    let mut component = vec![usize::MAX; nodes];
    for &start in left.iter().rev().filter(|_| nodes > 0) {
        if component[start] != usize::MAX {
            continue;
        }
        let mut members = vec![start];
        component[start] = start;
        let mut next = 0;
        while let Some(&node) = members.get(next) {
            next += 1;
            for &from in &backward[node] {
                if component[from] == usize::MAX {
                    component[from] = start;
                    members.push(from);
                }
            }
        }
        let name = members.iter().copied().min().unwrap_or(start);
        members.iter().for_each(|&member| component[member] = name);
    }
    component
}

/// The weights of the edges, as (weight, node, node), of the spanning tree (of each connected part) whose edges are heaviest (Kruskal).
/// Edges that name nodes outside of `0..nodes` are ignored.
pub(crate) fn strongest_tree(nodes: usize, mut edges: Vec<(u64, u32, u32)>) -> Vec<u64> {
    edges.sort_unstable_by_key(|&(weight, a, b)| (std::cmp::Reverse(weight), a, b));
    let mut parent: Vec<usize> = (0..nodes).collect();
    let root = |parent: &mut Vec<usize>, mut node: usize| {
        while parent[node] != node {
            parent[node] = parent[parent[node]];
            node = parent[node];
        }
        node
    };
    let mut tree = Vec::new();
    for (weight, a, b) in edges {
        if a as usize >= nodes || b as usize >= nodes {
            continue;
        }
        let (a, b) = (root(&mut parent, a as usize), root(&mut parent, b as usize));
        if a != b {
            parent[a] = b;
            tree.push(weight);
        }
    }
    tree
}

/// The largest weight for which the edges, as (weight, from, to), that weigh at least as much bring half of the nodes together in cycles: what the
/// typical node is held by from both sides, be it by a neighbour or around a ring. 0 if they never do.
pub(crate) fn strongest_cycles(nodes: usize, edges: &[(u64, u32, u32)]) -> u64 {
    let joined = |least: u64| {
        let heavy = edges.iter().filter(|edge| edge.0 >= least).map(|&(_, a, b)| (a, b));
        components(nodes, heavy).iter().enumerate().filter(|(node, of)| node != *of).count()
    };
    let mut weights: Vec<u64> = edges.iter().map(|edge| edge.0).collect();
    weights.sort_unstable_by(|a, b| b.cmp(a));
    weights.dedup();
    let wanted = nodes.saturating_sub(1).div_ceil(2).max(1);
    let first = weights.partition_point(|weight| joined(*weight) < wanted);
    weights.get(first).copied().unwrap_or(0)
}

/// The ways between nodes that avoid heavy edges, kept as the trees in which Kruskal joins them: by the lightest edges first, a small tree below a large one.
#[derive(Debug)]
pub struct Bottlenecks {
    /// What each node was joined to, by an edge of which weight; the weights grow towards the root, whose own is infinite.
    joined: Vec<(u32, f64)>,
}

impl Bottlenecks {
    /// Of edges as (weight, node, node).
    pub fn new(mut edges: Vec<(f64, u32, u32)>) -> Bottlenecks {
        edges.sort_unstable_by(|x, y| x.0.total_cmp(&y.0).then((x.1, x.2).cmp(&(y.1, y.2))));
        let nodes = edges.iter().map(|edge| edge.1.max(edge.2) + 1).max().unwrap_or(0);
        let mut joined: Vec<(u32, f64)> = (0..nodes).map(|node| (node, f64::INFINITY)).collect();
        let mut sizes = vec![1_u32; nodes as usize];
        for (weight, a, b) in edges {
            let root = |mut node: u32| {
                while joined[node as usize].0 != node {
                    node = joined[node as usize].0;
                }
                node
            };
            let (a, b) = (root(a), root(b));
            if a != b {
                let (small, large) = if sizes[a as usize] < sizes[b as usize] { (a, b) } else { (b, a) };
                sizes[large as usize] += sizes[small as usize];
                joined[small as usize] = (large, weight);
            }
        }
        Bottlenecks { joined }
    }

    /// The heaviest edge on the way between two nodes whose heaviest edge is lightest. None if no way joins them.
    pub fn between(&self, mut a: u32, mut b: u32) -> Option<f64> {
        let mut heaviest = 0.0;
        while a != b {
            let (up_a, up_b) = (self.joined.get(a as usize)?, self.joined.get(b as usize)?);
            let (node, up) = if up_a.1 <= up_b.1 { (&mut a, up_a) } else { (&mut b, up_b) };
            if up.1 == f64::INFINITY {
                return None;
            }
            (*node, heaviest) = *up;
        }
        Some(heaviest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_one_way_edges_holds_its_nodes() {
        let ring = |weight: u64| (0..6).map(move |node| (weight + u64::from(node), node, (node + 1) % 6));
        let mut edges: Vec<(u64, u32, u32)> = ring(100).chain((0..6).map(|node| (7, (node + 1) % 6, node))).collect();
        assert_eq!(strongest_cycles(6, &edges), 100);
        // A chain holds nobody.
        edges.retain(|edge| edge.0 > 7 && edge.2 != 0);
        assert_eq!(strongest_cycles(6, &edges), 0);
        assert_eq!(strongest_cycles(0, &[]), 0);
        // Pairs that talk in both directions, by the weaker of them.
        assert_eq!(strongest_cycles(3, &[(9, 0, 1), (5, 1, 0), (3, 1, 2), (4, 2, 1)]), 5);
    }

    #[test]
    fn the_strongest_tree_leaves_out_weak_edges() {
        // A ring of strong edges with one weak link, and weak edges across; node 5 is alone.
        let edges = vec![(9, 0, 1), (8, 1, 2), (7, 2, 3), (6, 3, 4), (1, 4, 0), (1, 0, 2), (1, 1, 3), (4, 9, 0)];
        assert_eq!(strongest_tree(6, edges), [9, 8, 7, 6]);
        assert_eq!(strongest_tree(0, vec![(1, 0, 1)]), [0u64; 0]);
    }
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn members_reach_each_other_and_nobody_else_does(edges in prop::collection::vec((0u32..9, 0u32..9), 0..25)) {
            let mut reach = [[false; 9]; 9];
            (0..9).for_each(|i| reach[i][i] = true);
            edges.iter().for_each(|&(a, b)| reach[a as usize][b as usize] = true);
            for k in 0..9 { for i in 0..9 { for j in 0..9 { reach[i][j] |= reach[i][k] && reach[k][j]; } } }
            let found = components(9, edges.iter().copied());
            for i in 0..9 { for j in 0..9 {
                prop_assert_eq!(found[i] == found[j], reach[i][j] && reach[j][i]);
                prop_assert!(found[i] <= i);
            } }
        }
    }

    proptest! {
        #[test]
        fn no_way_has_a_lighter_bottleneck(edges in prop::collection::vec((0u8..9, 0u32..9, 0u32..9), 0..25)) {
            let edges: Vec<_> = edges.iter().map(|&(weight, a, b)| (f64::from(weight), a, b)).collect();
            let mut least = [[f64::INFINITY; 9]; 9];
            (0..9).for_each(|i| least[i][i] = 0.0);
            for &(weight, a, b) in &edges { for (a, b) in [(a as usize, b as usize), (b as usize, a as usize)] {
                least[a][b] = least[a][b].min(weight);
            } }
            for k in 0..9 { for i in 0..9 { for j in 0..9 { least[i][j] = least[i][j].min(least[i][k].max(least[k][j])); } } }
            let found = Bottlenecks::new(edges);
            for (i, row) in least.iter().enumerate() { for (j, expected) in row.iter().enumerate() {
                prop_assert_eq!(found.between(i as u32, j as u32).unwrap_or(f64::INFINITY), *expected);
            } }
        }
    }

    #[test]
    fn a_ring_is_one_component_and_a_chain_is_none() {
        assert_eq!(components(3, [(0, 1), (1, 2), (2, 0)].into_iter()), [0, 0, 0]);
        assert_eq!(components(3, [(0, 1), (1, 2), (7, 9)].into_iter()), [0, 1, 2]);
    }
}
