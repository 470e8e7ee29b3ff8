//! Polls in vain that the recorder has joined: what the archive and the summary say of them.

use crate::recording::raw::format::POLLS;
use crate::recording::raw::records::JoinedPolls;
use clc_otf2::JOINED_POLLS;
use clc_trace::format::{count, plural};
use clc_trace::{Region, RegionId};

/// How many there were: of a process, or of all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct JoinedPollsSum {
    counts: [u64; POLLS.len()],
    /// Into how many regions they were joined.
    regions: u64,
}

impl JoinedPollsSum {
    /// Those of one region.
    pub(super) fn of(polls: &JoinedPolls) -> JoinedPollsSum {
        JoinedPollsSum { counts: polls.counts, regions: 1 }
    }

    /// Others as well.
    pub(super) fn add(&mut self, other: &JoinedPollsSum) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        self.regions += other.regions;
    }

    /// What the summary says of them, if there were any.
    pub(super) fn said(&self) -> Option<String> {
        let names: Vec<&str> = called(&self.counts).map(|(_, name, _)| name).collect();
        (self.regions > 0).then(|| {
            format!(
                "{} calls of MPI_{} that found nothing were joined into {} (--polls all records each of them)",
                count(clc_trace::format::sum(self.counts)),
                names.join(", MPI_"),
                plural(self.regions, "region")
            )
        })
    }
}

/// Which of the [`POLLS`] were called, their names without `MPI_`, and how often.
fn called(counts: &[u64; POLLS.len()]) -> impl Iterator<Item = (usize, &'static str, u64)> {
    let all = POLLS.iter().zip(counts).enumerate();
    all.filter(|(_, (_, count))| **count > 0).map(|(place, ((name, _), count))| (place, *name, *count))
}

/// The region of joined polls in the archive, and its parameters.
#[derive(Debug, Default)]
pub(super) struct PollNames {
    /// The region, if there were any.
    pub region: Option<RegionId>,
    /// Number of the parameter with the count of each of the [`POLLS`] that occurs.
    counts: [Option<u32>; POLLS.len()],
    /// Names of the parameters in the order of their numbers: the first is the time.
    pub parameters: Vec<String>,
}

impl PollNames {
    /// For all that there were; the region has this number.
    pub(super) fn new(sum: &JoinedPollsSum, region: RegionId) -> PollNames {
        let mut names = PollNames::default();
        if sum.regions > 0 {
            names.region = Some(region);
            names.parameters.push("nanoseconds in joined calls".to_owned());
            for (place, name, _) in called(&sum.counts) {
                names.counts[place] = Some(names.parameters.len() as u32);
                names.parameters.push(format!("joined calls of MPI_{name}"));
            }
        }
        names
    }

    /// Its definition.
    pub(super) fn definition(&self) -> Option<Region> {
        self.region.map(|id| Region { id, name: JOINED_POLLS.to_owned() })
    }

    /// Numbers and values of the parameters of one such region, within whose calls so many nanoseconds have passed.
    pub(super) fn values<'a>(&'a self, polls: &'a JoinedPolls, within: f64) -> impl Iterator<Item = (u32, u64)> + 'a {
        let counts = called(&polls.counts).filter_map(|(place, _, count)| Some((self.counts[place]?, count)));
        std::iter::once((0, within.round() as u64)).chain(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_occur_have_parameters() {
        let mut sum = JoinedPollsSum::default();
        assert_eq!((sum.said(), PollNames::new(&sum, RegionId(4)).definition()), (None, None));
        let polls = JoinedPolls { within: 0, counts: [0, 0, 1200, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0] };
        (0..2).for_each(|_| sum.add(&JoinedPollsSum::of(&polls)));
        let said = sum.said().unwrap();
        assert!(
            said.starts_with("2,414 calls of MPI_Testany, MPI_Iprobe that found nothing were joined into 2 regions"),
            "{said}"
        );
        let names = PollNames::new(&sum, RegionId(4));
        assert_eq!(names.parameters.len(), 3);
        assert_eq!(names.values(&polls, 89.6).collect::<Vec<_>>(), [(0, 90), (1, 1200), (2, 7)]);
    }
}
