//! The definitions of the archive of a recording, but for the regions and the times.

use crate::recording::communicators::{Catalogue, Members, own, world};
use crate::recording::plan::Plan;
use crate::recording::raw::files::Files;
use crate::recording::raw::format::UNSEEN;
use crate::recording::survey::openmp::ProcessTeams;
use crate::recording::survey::pthreads::ProcessPthreads;
use crate::recording::windows::WindowCatalogue;
use clc_otf2::COMMUNICATION_COMPLETE;
use clc_trace::{
    ClockProperties, CommId, CommMembers, Communicator, Definitions, Location, LocationGroup, LocationGroupId,
    LocationId, LocationKind, MpiRank, SystemTreeNode, SystemTreeNodeId, Window,
};
use std::collections::{BTreeMap, HashMap};

/// Ticks per second: nanoseconds.
pub(super) const RESOLUTION: u64 = 1_000_000_000;

/// Id of the location of a thread: that of the first one is the rank, as Score-P has it.
pub(super) fn location(rank: u32, thread: u32) -> LocationId {
    LocationId(u64::from(thread) << 32 | u64::from(rank))
}

impl Plan {
    /// `complete`: all communication in it has its counterpart, as far as that is known.
    pub(super) fn properties(&self, complete: bool) -> Vec<(String, String)> {
        let header = self.processes.values().flatten().map(|file| &file.header).next();
        let mut list = vec![("CLC_REPLAY::COMMAND".to_owned(), self.settings.command.clone())];
        if !complete {
            list.push((COMMUNICATION_COMPLETE.to_owned(), "false".to_owned()));
        }
        if !self.settings.environment.is_empty() {
            list.push(("CLC_REPLAY::ENVIRONMENT".to_owned(), self.settings.environment.clone()));
        }
        if let Some(header) = header {
            list.push(("CLC_REPLAY::APPLICATION".to_owned(), header.command.clone()));
            list.push(("CLC_REPLAY::MPI_LIBRARY".to_owned(), header.library.clone()));
        }
        let shared = self.shared.within().filter_map(|(rank, ticks)| Some(self.counter(rank)?.length(ticks)));
        if let Some(most) = shared.reduce(f64::max) {
            let compared = self.shared.within().count();
            list.push((
                "CLC_REPLAY::SHARED_CLOCKS".to_owned(),
                format!("compared with the leader of their node: {compared}; the same within {most:.0} ns"),
            ));
        }
        if let Some(clock) = self.settings.clock.as_ref().filter(|_| self.clock.is_some()) {
            list.push(("CLC_REPLAY::CLOCK".to_owned(), clock.clone()));
            list.push(("CLC_REPLAY::CLOCK_SEED".to_owned(), self.settings.seed.to_string()));
        }
        // One line each.
        list.iter_mut().for_each(|(_, value)| *value = value.replace(char::is_control, " "));
        list
    }

    /// All definitions but the regions and the times.
    pub(super) fn definitions(&self, catalogue: &Catalogue, windows: &WindowCatalogue) -> Definitions {
        let mut system_tree = vec![SystemTreeNode {
            id: SystemTreeNodeId(0),
            name: "machine".into(),
            class: "machine".into(),
            parent: None,
        }];
        // With clocks of their own, processes are as those of different nodes.
        let mut places: Vec<Option<SystemTreeNodeId>> = Vec::new();
        let mut place_of: HashMap<(usize, u32), SystemTreeNodeId> = HashMap::new();
        for rank in 0..self.size {
            places.push(self.node(rank).map(|node| {
                let clock = if self.apart() { rank } else { 0 };
                *place_of.entry((node, clock)).or_insert_with(|| {
                    let id = SystemTreeNodeId(system_tree.len() as u32);
                    let host = self.nodes.get(node).map_or("", |(_, host)| host);
                    let name = if self.apart() { format!("{host} clock {rank}") } else { host.to_owned() };
                    system_tree.push(SystemTreeNode {
                        id,
                        name,
                        class: "node".into(),
                        parent: Some(SystemTreeNodeId(0)),
                    });
                    id
                })
            }));
        }
        let group = |(rank, parent): (u32, &Option<SystemTreeNodeId>)| LocationGroup {
            id: LocationGroupId(rank),
            name: format!("MPI Rank {rank}"),
            accelerator: false,
            parent: Some(parent.unwrap_or(SystemTreeNodeId(0))),
            creator: None,
        };
        let location_groups = (0..self.size).zip(&places).map(group).collect();
        let of_thread = |rank: u32, (index, thread): (usize, u32)| Location {
            id: location(rank, thread),
            name: match thread {
                0 => "Master thread".into(),
                _ if self.is_of_openmp(rank, index) => format!("OMP thread {thread}"),
                _ => format!("MPI thread {thread}"),
            },
            kind: LocationKind::CpuThread,
            group: LocationGroupId(rank),
            claimed_events: 0,
        };
        let mut locations = Vec::new();
        for rank in 0..self.size {
            locations.extend(self.threads(rank).into_iter().enumerate().map(|thread| of_thread(rank, thread)));
            locations.extend(self.sample_location(rank).map(|id| Location {
                id,
                name: "Node metrics".into(),
                kind: LocationKind::Metric,
                group: LocationGroupId(rank),
                claimed_events: 0,
            }));
        }
        Definitions {
            clock: ClockProperties { resolution: RESOLUTION, global_offset: 0, trace_length: 0, realtime: None },
            locations,
            location_groups,
            system_tree,
            processes: (0..self.size).map(|rank| location(rank, 0)).collect(),
            communicators: self.communicators(catalogue),
            regions: Vec::new(),
            windows: windows
                .windows()
                .filter_map(|(id, comm, name)| Some(Window { id, name: name.to_owned(), comm: catalogue.id(comm)? }))
                .collect(),
            groups: windows.groups(),
            thread_barriers: Vec::new(),
            callsites: Vec::new(),
            accelerator_attributes: Default::default(),
        }
    }

    /// Whether a thread has been in a team of OpenMP.
    fn is_of_openmp(&self, rank: u32, index: usize) -> bool {
        self.surveys.get(&rank).is_some_and(|survey| survey.openmp.threads.contains(&index))
    }

    /// The number after those of the communicators of MPI.
    fn after_communicators(&self, catalogue: &Catalogue) -> u32 {
        let after = |communicator: &Communicator| communicator.id.0 + 1;
        self.communicators(catalogue).iter().map(after).max().unwrap_or(0)
    }

    /// The threads that processes made themselves, with a communicator for those of each process, after those of teams.
    pub(super) fn pthreads(
        &self,
        catalogue: &Catalogue,
        teams: &BTreeMap<u32, ProcessTeams<'_>>,
    ) -> BTreeMap<u32, ProcessPthreads<'_>> {
        let of_teams: usize = teams.values().map(|of| of.survey.teams.len()).sum();
        let first = self.after_communicators(catalogue) + of_teams as u32;
        let with_threads = self.surveys.iter().filter(|(_, survey)| !survey.pthreads.known.is_empty());
        let numbered = with_threads.zip((first..).map(CommId));
        numbered
            .map(|((&rank, survey), contingent)| (rank, ProcessPthreads { survey: &survey.pthreads, contingent }))
            .collect()
    }

    /// Their definitions.
    pub(super) fn pthread_definitions(&self, pthreads: &BTreeMap<u32, ProcessPthreads<'_>>) -> Vec<Communicator> {
        let define = |(rank, of): (&u32, &ProcessPthreads<'_>)| Communicator {
            id: of.contingent,
            name: format!("Threads made by rank {rank}"),
            members: CommMembers::NotMpi,
            global_ranks: false,
        };
        pthreads.iter().map(define).collect()
    }

    /// The teams of all processes, with communicators after those of MPI.
    pub(super) fn teams(&self, catalogue: &Catalogue) -> BTreeMap<u32, ProcessTeams<'_>> {
        let mut next = self.after_communicators(catalogue);
        let with_teams = self.surveys.iter().filter(|(_, survey)| !survey.openmp.teams.is_empty());
        with_teams
            .map(|(&rank, survey)| {
                let first = CommId(next);
                next += survey.openmp.teams.len() as u32;
                (rank, ProcessTeams { survey: &survey.openmp, first })
            })
            .collect()
    }

    /// Their definitions.
    pub(super) fn team_definitions(&self, teams: &BTreeMap<u32, ProcessTeams<'_>>) -> Vec<Communicator> {
        let mut list = Vec::new();
        for (rank, of) in teams {
            list.extend(of.survey.teams.iter().zip(of.first.0..).map(|(team, id)| Communicator {
                id: CommId(id),
                name: format!("OpenMP team of {} threads of rank {rank}", team.len()),
                members: CommMembers::NotMpi,
                global_ranks: false,
            }));
        }
        list
    }

    /// Says what of OpenMP is not in the trace.
    pub(super) fn openmp_missing(&self) -> Vec<String> {
        let mut list = Vec::new();
        let unseen = |files: &&Files| files.iter().any(|file| file.header.openmp == UNSEEN);
        let processes = self.processes.values().filter(unseen).count();
        if processes > 0 {
            list.push(format!(
                "the OpenMP runtime of {processes} processes offers no tool interface (OMPT: LLVM's has one, for one tool; GCC's has none): their threads and \
                regions are not recorded"
            ));
        }
        let incomplete: usize = self.surveys.values().map(|survey| survey.openmp.incomplete.len()).sum();
        if incomplete > 0 {
            list.push(format!(
                "{incomplete} parallel regions were recorded only in part: their threads have no fork and join"
            ));
        }
        list
    }

    pub(super) fn communicators(&self, catalogue: &Catalogue) -> Vec<Communicator> {
        let everybody = CommMembers::Intra((0..self.size).map(MpiRank).collect());
        let predefined = [(world(), "MPI_COMM_WORLD", everybody), (own(), "MPI_COMM_SELF", CommMembers::SelfOnly)];
        let mut list: Vec<Communicator> = Vec::new();
        let mut add = |id, name: &str, members| {
            list.push(Communicator { id, name: name.to_owned(), members, global_ranks: false });
        };
        for (identity, name, members) in predefined {
            if let Some(id) = catalogue.id(&identity) {
                add(id, catalogue.name(&identity).unwrap_or(name), members);
            }
        }
        for (identity, members) in &catalogue.members {
            if let (Some(id), Some(members)) = (catalogue.id(identity), members) {
                let members = match members {
                    Members::Intra(group) => CommMembers::Intra(group.clone()),
                    Members::Inter(one, other) => CommMembers::Inter(one.clone(), other.clone()),
                };
                add(id, catalogue.name(identity).unwrap_or_default(), members);
            }
        }
        list
    }
}
