//! The decentralised system time of Umansky and Leontev: no clock is the right one; the time of all is their median, their mean or their
//! harmonic mean.

/// What is made of the clocks of all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SystemTime {
    /// The middle one, or the mean of the two in the middle: fewer than half of the clocks can be anything.
    #[default]
    Median,
    /// The arithmetic mean: best of clocks that are all good.
    Mean,
    /// The harmonic mean of what the clocks have counted since `elapsed` was 0: a clock that runs ahead counts less than one that stays behind.
    Harmonic,
}

/// What the system time is ahead of this node's clock, in nanoseconds. `differences` are what the clocks are ahead of it, its own
/// one with 0 among them; `elapsed` is what its clock has counted since all clocks were compared first, which only the harmonic mean needs. None
/// of no clocks, and none where a harmonic mean does not exist, because a clock has counted nothing.
pub fn system_time(differences: &[f64], elapsed: f64, how: SystemTime) -> Option<f64> {
    let values: Vec<f64> = differences.iter().copied().filter(|value| value.is_finite()).collect();
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    match how {
        SystemTime::Median => {
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
            Some(low + (high - low) / 2.0)
        }
        SystemTime::Mean => Some(values.iter().sum::<f64>() / count),
        SystemTime::Harmonic => {
            if elapsed.is_nan() || elapsed <= 0.0 || values.iter().any(|value| elapsed + value <= 0.0) {
                return None;
            }
            // H - elapsed = sum(d / (elapsed + d)) / sum(1 / (elapsed + d)): without the difference of two large numbers.
            let weights = values.iter().map(|value| 1.0 / (elapsed + value));
            let shares = values.iter().map(|value| value / (elapsed + value));
            Some(shares.sum::<f64>() / weights.sum::<f64>())
        }
    }
}

/// What each clock is ahead of the system time.
pub fn distances(differences: &[f64], elapsed: f64, how: SystemTime) -> Option<Vec<f64>> {
    let system = system_time(differences, elapsed, how)?;
    Some(differences.iter().map(|value| value - system).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [SystemTime; 3] = [SystemTime::Median, SystemTime::Mean, SystemTime::Harmonic];

    #[test]
    fn three_clocks_of_which_one_runs_away() {
        let differences = [0.0, 100.0, 9e8];
        let elapsed = 1e9;
        let [median, mean, harmonic] = ALL.map(|how| system_time(&differences, elapsed, how).expect("three clocks"));
        assert_eq!(median, 100.0);
        assert!((mean - (9e8 + 100.0) / 3.0).abs() < 1e-3);
        let direct = 3.0 / (1.0 / 1e9 + 1.0 / (1e9 + 100.0) + 1.0 / 1.9e9) - 1e9;
        assert!((harmonic - direct).abs() < 1e-3 && harmonic < mean, "{harmonic}");
        let all = distances(&differences, elapsed, SystemTime::Median).expect("three clocks");
        assert_eq!(all, [-100.0, 0.0, 9e8 - 100.0]);
    }

    #[test]
    fn of_nothing_there_is_no_time() {
        for how in ALL {
            assert_eq!(system_time(&[], 1e9, how), None);
            assert_eq!(system_time(&[f64::NAN], 1e9, how), None);
        }
        assert_eq!(system_time(&[0.0, -2e9], 1e9, SystemTime::Harmonic), None, "a clock that counted backwards");
        assert_eq!(system_time(&[0.0, 4.0], f64::NAN, SystemTime::Harmonic), None);
    }

    proptest! {
        #[test]
        fn all_times_are_between_the_clocks_and_move_with_them(
            differences in proptest::collection::vec(-1e6f64..1e6, 1..40), shift in -1e6f64..1e6,
        ) {
            let least = differences.iter().copied().fold(f64::INFINITY, f64::min);
            let most = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for how in ALL {
                let time = system_time(&differences, 1e10, how).expect("clocks");
                prop_assert!((least - 1e-3..=most + 1e-3).contains(&time));
                // Seen from a clock that is `shift` behind, all is that much more.
                let seen: Vec<f64> = differences.iter().map(|value| value + shift).collect();
                let there = system_time(&seen, 1e10 - shift, how).expect("clocks");
                prop_assert!((there - time - shift).abs() < 1e-2, "{how:?}: {there} {time} {shift}");
            }
        }

        #[test]
        fn fewer_than_half_of_the_clocks_do_not_move_the_median(
            good in proptest::collection::vec(-1e3f64..1e3, 3..20), wild in proptest::collection::vec(-1e15f64..1e15, 0..2),
        ) {
            let all: Vec<f64> = good.iter().chain(&wild).copied().collect();
            let time = system_time(&all, 0.0, SystemTime::Median).expect("clocks");
            prop_assert!(time.abs() <= 1e3);
        }
    }
}
