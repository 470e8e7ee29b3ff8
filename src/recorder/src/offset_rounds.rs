//! Which pairs of processes measure their clocks at the same time.
//!
//! A message that waits for a core, or for a process that answers somebody else, tells nothing of a clock. So a process takes part in one pair at a time, and on a machine
//! no more processes than it has cores: emulated nodes and containers share those of one machine.

use std::collections::{HashMap, HashSet};

/// At most so many rounds: with more pairs on a machine than fit, some share one. Chosen by hand: a round takes 10 to 200 ms at the start and the end of the program.
const MOST: usize = 16;
/// A pair always fits.
const PAIR: usize = 2;

/// Where a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Nodes that share a kernel are on one machine.
    pub machine: u64,
    pub cores: usize,
}

/// The round of each pair of processes, all less than the number of rounds, which is the second value. `places` by process.
pub(crate) fn rounds(pairs: &[[usize; 2]], places: &[Place]) -> (Vec<usize>, usize) {
    let mut busy: HashSet<(usize, usize)> = HashSet::new();
    let mut used: HashMap<(usize, u64), usize> = HashMap::new();
    let mut chosen = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let fits = |round: usize| {
            let free = pair.iter().all(|&process| !busy.contains(&(round, process)));
            free && pair.iter().all(|&process| {
                let Place { machine, cores } = places[process];
                let here = pair.iter().filter(|&&other| places[other].machine == machine).count();
                used.get(&(round, machine)).copied().unwrap_or(0) + here <= cores.max(PAIR)
            })
        };
        let round = (0..MOST).find(|&round| fits(round)).unwrap_or(chosen.len() % MOST);
        for &process in pair {
            busy.insert((round, process));
            *used.entry((round, places[process].machine)).or_default() += 1;
        }
        chosen.push(round);
    }
    let count = chosen.iter().max().map_or(0, |last| last + 1);
    (chosen, count)
}

#[cfg(test)]
mod tests {
    use super::{MOST, Place, rounds};

    /// A binomial tree.
    fn tree(count: usize) -> Vec<[usize; 2]> {
        (1..count).map(|place| [place, place & (place - 1)]).collect()
    }

    #[test]
    fn nodes_of_their_own_take_a_logarithm_of_their_number() {
        for (count, most) in [(2, 1), (4, 2), (8, 4), (64, 8), (1024, 14)] {
            let places: Vec<Place> = (0..count).map(|machine| Place { machine: machine as u64, cores: 1 }).collect();
            let pairs = tree(count);
            let (chosen, number) = rounds(&pairs, &places);
            assert!(number <= most, "{count} nodes: {number} rounds");
            for round in 0..number {
                let mut inside: Vec<usize> =
                    pairs.iter().zip(&chosen).filter(|(_, at)| **at == round).flat_map(|(pair, _)| *pair).collect();
                let all = inside.len();
                inside.sort_unstable();
                inside.dedup();
                assert_eq!(inside.len(), all, "{count} nodes, round {round}");
            }
        }
    }

    #[test]
    fn a_shared_machine_measures_as_many_as_its_cores_allow() {
        let on = |cores| vec![Place { machine: 7, cores }; 8];
        assert_eq!(rounds(&tree(8)[..3], &on(1)), (vec![0, 1, 2], 3));
        let (chosen, _) = rounds(&tree(8), &on(4));
        assert!((0..8).all(|round| chosen.iter().filter(|at| **at == round).count() <= 2));
    }

    #[test]
    fn rounds_are_limited() {
        let (chosen, number) = rounds(&tree(100), &vec![Place { machine: 7, cores: 2 }; 100]);
        assert_eq!(number, MOST);
        assert!((0..MOST).all(|round| chosen.iter().filter(|at| **at == round).count() <= 7));
        assert_eq!(rounds(&[], &[]), (vec![], 0));
    }
}
