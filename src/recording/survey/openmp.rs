//! Which teams of threads of OpenMP there were in a process, and where its regions are: what a first pass finds out ([`crate::recording::events::openmp`]).

use crate::recording::raw::format::openmp::kind;
use crate::recording::raw::records::OpenMp;
use clc_trace::CommId;
use std::collections::{BTreeSet, HashMap, HashSet};

/// What the first pass finds out about the OpenMP of a process.
#[derive(Debug, Default)]
pub(crate) struct OpenMpSurvey {
    /// Indices of threads that have been in a team.
    pub threads: BTreeSet<usize>,
    /// Kinds of regions and the places they are at, 0 for none.
    pub sites: BTreeSet<(u64, u64)>,
    /// The different teams: indices of their threads, the first one first.
    pub teams: Vec<Vec<usize>>,
    /// The team of each parallel region of which everything is there, by its number.
    pub team_of: HashMap<u64, u32>,
    /// Parallel regions of which something is missing, by their numbers.
    pub incomplete: HashSet<u64>,
    numbers: HashMap<Vec<usize>, u32>,
    begun: HashMap<u64, BegunRegion>,
}

/// A parallel region that has begun.
#[derive(Debug)]
struct BegunRegion {
    fork: usize,
    size: u64,
    /// Threads by their number in the team.
    members: Vec<(u64, usize)>,
}

impl OpenMpSurvey {
    /// Takes note of a step of a thread.
    pub(crate) fn add(&mut self, thread: usize, step: &OpenMp) {
        match *step {
            OpenMp::Fork { region, place, .. } => {
                self.sites.insert((kind::PARALLEL, place));
                self.begun.insert(region, BegunRegion { fork: thread, size: 0, members: Vec::new() });
            }
            OpenMp::TeamBegin { region, threads, index } => {
                self.threads.insert(thread);
                match self.begun.get_mut(&region) {
                    Some(begun) => {
                        begun.size = threads;
                        begun.members.push((index, thread));
                    }
                    None => drop(self.incomplete.insert(region)),
                }
            }
            OpenMp::Join(region) => match self.begun.remove(&region).and_then(BegunRegion::team) {
                Some(team) => {
                    let next = self.teams.len() as u32;
                    let number = *self.numbers.entry(team).or_insert_with_key(|team| {
                        self.teams.push(team.clone());
                        next
                    });
                    self.team_of.insert(region, number);
                }
                None => drop(self.incomplete.insert(region)),
            },
            OpenMp::Begin(kind, place) => {
                self.sites.insert((kind, place));
            }
            OpenMp::TaskCreate(_, place) => {
                self.sites.insert((kind::TASK, place));
            }
            _ => {}
        }
    }

    /// Nothing more follows.
    pub(crate) fn end(&mut self) {
        self.incomplete.extend(std::mem::take(&mut self.begun).into_keys());
        self.numbers = HashMap::new();
    }
}

impl BegunRegion {
    /// Its threads, if all are known: the first one is that which has made it.
    fn team(mut self) -> Option<Vec<usize>> {
        self.members.sort_unstable();
        let all = self.members.iter().zip(0..).all(|(&(index, _), expected)| index == expected);
        let whole = all && self.members.len() as u64 == self.size;
        let first = self.members.first().map(|&(_, thread)| thread);
        (whole && first == Some(self.fork)).then(|| self.members.into_iter().map(|(_, thread)| thread).collect())
    }
}

/// The teams of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessTeams<'a> {
    /// What is known of it.
    pub survey: &'a OpenMpSurvey,
    /// The communicator of its first team; those of the others follow.
    pub first: CommId,
}

impl ProcessTeams<'_> {
    pub(crate) fn of(&self, region: u64) -> Option<CommId> {
        self.survey.team_of.get(&region).map(|team| CommId(self.first.0 + team))
    }
}
