//! What the readings of a group have in common (the aggregates of GEMS: Raman, Raj, George et al. 2002).

use super::{Quantity, Reading};
use crate::wire::{Malformed, PacketReader, put_number};

/// Most nodes of a group. Chosen by hand: the largest group that can be configured; a limit for damaged packets.
const MOST: u32 = 4_096;
/// Most aggregates in one summary. Chosen by hand: a summary has to fit into a packet beside others; a limit for damaged ones.
pub const MAX_AGGREGATES: usize = 64;

/// A way to make one number of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Aggregate {
    /// Sum over number.
    Mean,
    /// The middle one, or the mean of the two in the middle.
    Median,
    /// The largest.
    Maximum,
    /// The smallest.
    Minimum,
    /// All together.
    Sum,
    /// Bits that any has, of the numbers without their fractions: for flags.
    Or,
}

impl Aggregate {
    /// All of them.
    pub const ALL: [Aggregate; 6] =
        [Aggregate::Mean, Aggregate::Median, Aggregate::Maximum, Aggregate::Minimum, Aggregate::Sum, Aggregate::Or];

    /// Its name in tables and formulas.
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Mean => "mean",
            Aggregate::Median => "median",
            Aggregate::Maximum => "max",
            Aggregate::Minimum => "min",
            Aggregate::Sum => "sum",
            Aggregate::Or => "or",
        }
    }

    /// The aggregate of some numbers; of none there is none. Numbers that are not finite do not count.
    pub fn of(self, values: impl IntoIterator<Item = f64>) -> Option<f64> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        if values.is_empty() {
            return None;
        }
        let count = values.len();
        Some(match self {
            Aggregate::Sum => values.iter().sum(),
            Aggregate::Mean => values.iter().sum::<f64>() / count as f64,
            Aggregate::Maximum => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Aggregate::Minimum => values.iter().copied().fold(f64::INFINITY, f64::min),
            Aggregate::Or => values.iter().fold(0u64, |bits, &value| bits | value as u64) as f64,
            Aggregate::Median => {
                values.sort_by(f64::total_cmp);
                (values[(count - 1) / 2] + values[count / 2]) / 2.0
            }
        })
    }

    /// The aggregate of one quantity over readings that have it.
    pub fn of_readings(self, readings: &[Reading], quantity: Quantity) -> Option<f64> {
        self.of(readings.iter().filter_map(|reading| reading.get(quantity)))
    }
}

/// Aggregates of a group, as its lowest living node tells them to all groups.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupAggregates {
    /// How many nodes they are of.
    pub nodes: u32,
    /// What was aggregated how, and the number.
    pub values: Vec<(Quantity, Aggregate, f64)>,
}

impl GroupAggregates {
    /// Those of `wanted` that the readings give, the first [`MAX_AGGREGATES`].
    pub fn of(readings: &[Reading], wanted: &[(Quantity, Aggregate)]) -> Self {
        let value =
            |&(quantity, how): &(Quantity, Aggregate)| Some((quantity, how, how.of_readings(readings, quantity)?));
        let values = wanted.iter().filter_map(value).take(MAX_AGGREGATES).collect();
        GroupAggregates { nodes: readings.len() as u32, values }
    }

    /// One of its values.
    pub fn get(&self, quantity: Quantity, how: Aggregate) -> Option<f64> {
        self.values.iter().find(|value| (value.0, value.1) == (quantity, how)).map(|value| value.2)
    }

    /// An aggregate of all groups. Exact but for medians, which are the medians of the groups' medians, each as often as it has nodes, and for means of what
    /// only some nodes of a group can read; none if no group has it.
    pub fn together(groups: &[GroupAggregates], quantity: Quantity, how: Aggregate) -> Option<f64> {
        let values = groups.iter().filter_map(|group| Some((group.nodes.clamp(1, MOST), group.get(quantity, how)?)));
        match how {
            Aggregate::Mean => {
                let (sum, nodes) = values.fold((0.0, 0.0), |(sum, nodes), (count, mean)| {
                    (sum + f64::from(count) * mean, nodes + f64::from(count))
                });
                (nodes > 0.0).then(|| sum / nodes)
            }
            Aggregate::Median => {
                let each = values.flat_map(|(count, median)| std::iter::repeat_n(median, count as usize));
                Aggregate::Median.of(each)
            }
            _ => how.of(values.map(|(_, value)| value)),
        }
    }

    /// Its bytes: what `Node::put_everywhere` takes. Numbers in the steps of their quantities.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, u64::from(self.nodes));
        for &(quantity, how, value) in self.values.iter().take(MAX_AGGREGATES) {
            out.push(quantity as u8);
            out.push(how as u8);
            put_number(&mut out, (value / quantity.step()).round() as u64);
        }
        out
    }

    /// Reads what [`encode`](Self::encode) wrote, from bytes that may be anything.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = PacketReader::new(bytes);
        let mut summary = GroupAggregates { nodes: reader.number32()?, values: Vec::new() };
        while !reader.is_empty() {
            let quantity = *Quantity::ALL.get(usize::from(reader.byte()?)).ok_or(Malformed::Unknown)?;
            let how = *Aggregate::ALL.get(usize::from(reader.byte()?)).ok_or(Malformed::Unknown)?;
            summary.values.push((quantity, how, reader.number()? as f64 * quantity.step()));
        }
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn aggregates_of_small_lists() {
        let list = [4.0, 1.0, 3.0, 2.0];
        let all = Aggregate::ALL.map(|how| how.of(list));
        assert_eq!(all, [Some(2.5), Some(2.5), Some(4.0), Some(1.0), Some(10.0), Some(7.0)]);
        assert_eq!(Aggregate::Median.of([9.0, f64::NAN, 1.0, 2.0]), Some(2.0));
        assert!(Aggregate::ALL.iter().all(|how| how.of([f64::INFINITY]).is_none()));
    }

    #[test]
    fn a_summary_comes_back() {
        let mut readings = vec![Reading::default(); 3];
        for (place, reading) in readings.iter_mut().enumerate().skip(1) {
            reading.set(Quantity::CpuUse, 10.0 * place as f64);
        }
        let wanted = [
            (Quantity::CpuUse, Aggregate::Mean),
            (Quantity::CpuUse, Aggregate::Maximum),
            (Quantity::Temperature, Aggregate::Maximum),
        ];
        let summary = GroupAggregates::of(&readings, &wanted);
        assert_eq!(summary.nodes, 3);
        let means = [(Quantity::CpuUse, Aggregate::Mean, 15.0), (Quantity::CpuUse, Aggregate::Maximum, 20.0)];
        assert_eq!(summary.values, means, "nobody has a temperature");
        assert_eq!(GroupAggregates::decode(&summary.encode()), Ok(summary));
    }

    #[test]
    fn groups_together_are_what_all_nodes_are() {
        let readings: Vec<Reading> = (0..7)
            .map(|place| {
                let mut reading = Reading::default();
                reading.set(Quantity::Load1, f64::from(place * place));
                reading
            })
            .collect();
        let wanted = Aggregate::ALL.map(|how| (Quantity::Load1, how));
        let groups = [GroupAggregates::of(&readings[..2], &wanted), GroupAggregates::of(&readings[2..], &wanted)];
        for how in Aggregate::ALL.into_iter().filter(|&how| how != Aggregate::Median) {
            let all = how.of_readings(&readings, Quantity::Load1);
            assert_eq!(GroupAggregates::together(&groups, Quantity::Load1, how), all, "{how:?}");
        }
        assert_eq!(
            GroupAggregates::together(&groups, Quantity::Load1, Aggregate::Median),
            Some(16.0),
            "2 of 0.5, 5 of 16"
        );
        assert_eq!(GroupAggregates::together(&groups, Quantity::CpuUse, Aggregate::Mean), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = GroupAggregates::decode(&bytes);
        }

        #[test]
        fn the_median_splits_the_list(values in proptest::collection::vec(-1e6f64..1e6, 1..50)) {
            let median = Aggregate::Median.of(values.iter().copied()).expect("not empty");
            let below = values.iter().filter(|&&value| value < median).count();
            let above = values.iter().filter(|&&value| value > median).count();
            prop_assert!(below <= values.len() / 2 && above <= values.len() / 2);
        }
    }
}
