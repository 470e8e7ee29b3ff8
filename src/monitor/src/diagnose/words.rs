//! Ranks, operations and times as text.

use crate::state::layout::{self, ANY, NOBODY};
use crate::state::{CommMembership, Operation, RankState};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// A list of ranks as text: `rank 3`, `ranks 0-2, 5`.
#[derive(Debug, Clone, Copy)]
pub struct Ranks<'a>(pub &'a [u32]);

/// So many ranges of a list are shown. Chosen by hand: with more, the sentence cannot be read.
const RANGES: usize = 8;

impl Ranks<'_> {
    /// With a verb, in the form for one or for several of them: `rank 3 computes`.
    pub(crate) fn are(&self, verb: &str) -> String {
        if self.0.len() != 1 {
            return format!("{self} {verb}");
        }
        let (first, rest) =
            verb.split_once(' ').map_or((verb, String::new()), |(first, rest)| (first, format!(" {rest}")));
        let first = match first {
            "are" => "is".to_owned(),
            "have" => "has".to_owned(),
            other => format!("{other}s"),
        };
        format!("{self} {first}{rest}")
    }
}

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut sorted = self.0.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for rank in sorted {
            match ranges.last_mut() {
                Some((_, last)) if rank == last.saturating_add(1) => *last = rank,
                _ => ranges.push((rank, rank)),
            }
        }
        let one = matches!(ranges[..], [(first, last)] if first == last);
        f.write_str(if one { "rank " } else { "ranks " })?;
        for (i, (first, last)) in ranges.iter().take(RANGES).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first}, {last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        if ranges.len() > RANGES { write!(f, ", ...") } else { Ok(()) }
    }
}

/// A time of day in UTC, from seconds since 1970.
pub fn moment(seconds: f64) -> String {
    // Later than the year 8000 nothing is said, which a damaged file might.
    if !(0.0..2e11).contains(&seconds) {
        return "an unknown time".to_owned();
    }
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs_f64(seconds)).to_string()
}

/// A length of time, as one would say it.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    match seconds {
        0.0..0.0995 => format!("{:.0} ms", seconds * 1e3),
        0.0..99.95 => format!("{seconds:.1} s"),
        0.0..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// What is known of communicators.
#[derive(Debug, Default)]
pub(super) struct Comms {
    /// Members' ranks in the whole job by their ranks in the communicator. An inter-communicator has two groups.
    members: BTreeMap<(u64, Group), BTreeMap<u32, u32>>,
    about: BTreeMap<(u64, Group), CommMembership>,
    /// Members of the second groups of inter-communicators, by their ranks in the job.
    second: BTreeSet<(u64, u32)>,
}

/// One of the two groups of an inter-communicator; others have the first one only.
type Group = bool;
/// See [`CommMembership::second`].
const FIRST: Group = false;

impl Comms {
    /// Of all ranks.
    pub(super) fn new(ranks: &[RankState]) -> Comms {
        let mut comms = Comms::default();
        for state in ranks {
            let Some(rank) = state.rank else { continue };
            for membership in &state.comms {
                let group = (membership.comm, membership.second);
                comms.members.entry(group).or_default().insert(membership.rank, rank);
                comms.about.entry(group).or_insert_with(|| membership.clone());
                if membership.second {
                    comms.second.insert((membership.comm, rank));
                }
            }
        }
        comms
    }

    /// Rank in the job of a peer in a communicator, as one of its members calls it, if that can be told.
    pub(super) fn global(&self, comm: Option<u64>, peer: i32, member: u32) -> Option<u32> {
        let peer = u32::try_from(peer).ok()?;
        let comm = comm?;
        match comm {
            layout::WORLD => Some(peer),
            // Peers are those of the other group.
            _ if self.is_inter(comm) => self.members.get(&(comm, !self.group(comm, member)))?.get(&peer).copied(),
            _ => self.members.get(&(comm, FIRST))?.get(&peer).copied(),
        }
    }

    /// In which group of an inter-communicator a rank is.
    fn group(&self, comm: u64, rank: u32) -> Group {
        self.second.contains(&(comm, rank))
    }

    /// Whether two ranks are in different groups of an inter-communicator.
    pub(super) fn apart(&self, comm: u64, one: u32, other: u32) -> bool {
        self.group(comm, one) != self.group(comm, other)
    }

    /// Members of a group that are known, by their ranks in the job.
    fn members(&self, comm: u64, group: Group) -> Vec<u32> {
        self.members.get(&(comm, group)).map(|members| members.values().copied().collect()).unwrap_or_default()
    }

    /// All members that are known, by their ranks in the job.
    pub(super) fn all_members(&self, comm: u64) -> Vec<u32> {
        [FIRST, !FIRST].into_iter().flat_map(|group| self.members(comm, group)).collect()
    }

    fn size_of(&self, comm: u64, group: Group) -> u32 {
        self.about.get(&(comm, group)).map_or(0, |membership| membership.size)
    }

    /// Number of members, of both groups; 0 if it is not known.
    pub(super) fn size(&self, comm: u64) -> u32 {
        self.size_of(comm, FIRST) + self.size_of(comm, !FIRST)
    }

    fn about(&self, comm: u64) -> Option<&CommMembership> {
        self.about.get(&(comm, FIRST)).or_else(|| self.about.get(&(comm, !FIRST)))
    }

    /// It is an inter-communicator.
    pub(super) fn is_inter(&self, comm: u64) -> bool {
        self.about(comm).is_some_and(|membership| membership.inter)
    }

    /// What it is called.
    pub(super) fn name(&self, comm: Option<u64>) -> String {
        match comm {
            None => "an unknown communicator".to_owned(),
            Some(layout::WORLD) => "MPI_COMM_WORLD".to_owned(),
            Some(layout::SELF) => "MPI_COMM_SELF".to_owned(),
            Some(comm) => {
                let group = |group| format!("{} {}", self.size_of(comm, group), Ranks(&self.members(comm, group)));
                let about = self.about(comm);
                let kind = match about {
                    Some(about) if about.inter => "inter-communicator",
                    Some(about) if about.window => "window",
                    Some(about) if about.file => "file",
                    _ => "communicator",
                };
                let called = match about.and_then(|about| about.name.as_ref()) {
                    Some(name) => format!("\"{name}\""),
                    None => format!("{:08x}", comm >> 32),
                };
                let other = if self.is_inter(comm) { format!(" and {}", group(!FIRST)) } else { String::new() };
                format!("{kind} {called} of {}{other}", group(FIRST))
            }
        }
    }

    /// An operation of a rank, with whom or what it is about.
    pub(super) fn operation(&self, operation: &Operation, of: u32) -> String {
        let Operation { function, comm, peer, tag, sequence } = operation;
        if *sequence > 0 {
            let other = if comm.is_some_and(|comm| self.is_inter(comm)) { " of the other group" } else { "" };
            let root = if *peer >= 0 { format!(" with root {peer}{other}") } else { String::new() };
            return format!("{function}{root}, operation {sequence} of {}", self.name(*comm));
        }
        if operation.on_epoch() {
            let kind = match (function.as_str(), *tag) {
                ("MPI_Win_lock", 1) => "exclusive, ",
                ("MPI_Win_lock", _) => "shared, ",
                _ => "",
            };
            let target = match (*peer, self.global(*comm, *peer, of)) {
                (NOBODY, _) => String::new(),
                (_, Some(rank)) => format!(" on rank {rank}"),
                (peer, None) => format!(" on its rank {peer}"),
            };
            return format!("{function}{target} ({kind}{})", self.name(*comm));
        }
        let way = if operation.receives() { "from" } else { "to" };
        let whom = match (*peer, self.global(*comm, *peer, of)) {
            (NOBODY, _) => return function.clone(),
            (ANY, _) => "any rank".to_owned(),
            (_, Some(rank)) => format!("rank {rank}"),
            (peer, None) => format!("rank {peer} of {}", self.name(*comm)),
        };
        let tag = if *tag == ANY { "any tag".to_owned() } else { format!("tag {tag}") };
        let on = if *comm == Some(layout::WORLD) { String::new() } else { format!(", {}", self.name(*comm)) };
        format!("{function} {way} {whom} ({tag}{on})")
    }

    /// The call that a rank is in.
    pub(super) fn call(&self, state: &RankState) -> Option<String> {
        let call = state.call.as_ref()?;
        let polls = if call.polls { "repeated " } else { "" };
        // In the whole job and in windows it does not matter who it is.
        let operation = |operation| self.operation(operation, state.rank.unwrap_or(0));
        let text = match (&call.what, &call.waits[..]) {
            (Some(what), _) => operation(what),
            (None, []) => call.function.clone(),
            (None, [only]) if call.requests <= 1 => format!("{} for {}", call.function, operation(only)),
            (None, [first, ..]) => {
                format!("{} for {} requests, first {}", call.function, call.requests, operation(first))
            }
        };
        Some(format!("{polls}{text}"))
    }
}
