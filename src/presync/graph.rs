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
pub fn strongest_tree(nodes: usize, mut edges: Vec<(u64, u32, u32)>) -> Vec<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_ring_is_one_component_and_a_chain_is_none() {
        assert_eq!(components(3, [(0, 1), (1, 2), (2, 0)].into_iter()), [0, 0, 0]);
        assert_eq!(components(3, [(0, 1), (1, 2), (7, 9)].into_iter()), [0, 1, 2]);
    }
}
