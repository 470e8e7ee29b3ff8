//! Collective operations of a process: their two ends, and its part in them.

use super::Extractor;
use crate::matching::comm_index::CommIndex;
use crate::matching::extract::calls::SynchronisingCall;
use crate::matching::extracted::{LoneEnd, Participation};
use crate::matching::sync::EventCoordinates;
use clc_trace::{Collective, CollectiveOp, CommMembers, Error, MpiRank, Result};
use controlled_logical_clock::semantics::MemberRecord;

/// The end of a non-blocking operation whose begin has not been read.
#[derive(Debug)]
pub(super) struct EndedElsewhere {
    process: MpiRank,
    comm: CommIndex,
    end: u32,
    part: MemberRecord,
}

impl Extractor<'_> {
    pub(super) fn begin_collective(&mut self, at: EventCoordinates) -> Result<bool> {
        let begin = self.near(at)?;
        let before = self.open_begins.insert(at.location, begin);
        self.lone_begins(before);
        Ok(true)
    }

    pub(super) fn begin_immediate_collective(&mut self, at: EventCoordinates, request: u64) -> Result<bool> {
        let begin = self.near(at)?;
        if let Some(EndedElsewhere { process, comm, end, part }) = self.ended_elsewhere.remove(&request) {
            return self.participate(process, comm, Participation { begin, end, part }).map(|()| true);
        }
        let before = self.collective_requests.insert(request, begin);
        self.lone_begins(before);
        Ok(true)
    }

    /// A non-blocking operation is complete that another location has begun, later by its clock.
    pub(super) fn end_before_begin(
        &mut self,
        at: EventCoordinates,
        collective: &Collective,
        request: u64,
    ) -> Result<()> {
        let process = self.own_process()?;
        let comm = self.comm(collective.comm)?;
        let end = self.near(at)?;
        let part = MemberRecord { root: collective.root, ..MemberRecord::from(collective) };
        let part = MemberRecord { op: part.op.on_communicator(), ..part };
        let ended = EndedElsewhere { process, comm, end, part };
        if let Some(EndedElsewhere { comm, end, part, .. }) = self.ended_elsewhere.insert(request, ended) {
            self.lone_end(comm, LoneEnd { event: end, op: part.op, immediate: true });
        }
        Ok(())
    }

    pub(super) fn collective_end(
        &mut self,
        at: EventCoordinates,
        begin: Option<u32>,
        collective: &Collective,
        immediate: bool,
    ) -> Result<()> {
        let process = self.own_process()?;
        let comm = self.comm(collective.comm)?;
        let end = self.near(at)?;
        let Some(begin) = begin else {
            self.lone_end(comm, LoneEnd { event: end, op: collective.op.on_communicator(), immediate });
            return Ok(());
        };
        let part = MemberRecord { root: collective.root, ..MemberRecord::from(collective) };
        let op = match part.op.on_communicator() {
            CollectiveOp::CREATE_HANDLE if self.inside_of(at, SynchronisingCall::CreatesHandle).is_some() => {
                CollectiveOp::CREATE_HANDLE_OF_ALL
            }
            op => op,
        };
        let part = MemberRecord { op, ..part };
        self.participate(process, comm, Participation { begin, end, part })
    }

    /// An operation on communicator or window `comm` has ended whose begin was not recorded.
    pub(super) fn lone_end(&mut self, comm: CommIndex, end: LoneEnd) {
        self.out.half_recorded.ends.entry(comm).or_default().push(end);
    }

    /// Operations on communicators have begun whose ends were not recorded.
    pub(super) fn lone_begins(&mut self, begins: impl IntoIterator<Item = u32>) {
        self.out.half_recorded.begins.extend(begins);
    }

    /// Nothing more will be recorded of what is open.
    pub(super) fn abandon_collectives(&mut self) {
        for (_, EndedElsewhere { comm, end, part, .. }) in std::mem::take(&mut self.ended_elsewhere) {
            self.lone_end(comm, LoneEnd { event: end, op: part.op, immediate: true });
        }
        let open: Vec<u32> = self.open_begins.values().copied().chain(self.collective_requests.values()).collect();
        self.lone_begins(open);
        let half = &mut self.out.half_recorded;
        half.window_begins.extend(self.open_window_begins.values());
        half.begins.sort_unstable();
        half.window_begins.sort_unstable();
        half.ends.values_mut().for_each(|ends| ends.sort_unstable_by_key(|end| end.event));
        let ends: usize = half.ends.values().map(Vec::len).sum();
        self.out.leftovers.open_collectives += (half.begins.len() + half.window_begins.len() + ends) as u64;
    }

    /// A collective operation on communicator or window `comm` that has both ends.
    pub(super) fn participate(&mut self, process: MpiRank, comm: CommIndex, mut own: Participation) -> Result<()> {
        match self.table.members(comm) {
            CommMembers::Intra(members) if members.len() == 1 => self.out.leftovers.solo_collectives += 1,
            CommMembers::SelfOnly => self.out.leftovers.solo_collectives += 1,
            CommMembers::Intra(members) => {
                let participations = self.out.collectives.entry(comm).or_default();
                // Once per communicator: member lists can be long.
                if participations.is_empty() && !members.contains(&process) {
                    return Err(Error::new(format!(
                        "collective operation on {}, of which process {process} is not a member",
                        self.table.name(comm)
                    )));
                }
                own.part.root = self.table.root(comm, own.part.root);
                participations.push(own);
            }
            // Of two groups that overlap nobody could say which one a process speaks for.
            CommMembers::Inter(..) if self.table.rank_of(comm, process).is_none() => {
                self.out.leftovers.inter_collectives += 1;
            }
            CommMembers::Inter(..) => self.out.collectives.entry(comm).or_default().push(own),
            // Not a communicator of MPI processes: the same errors as for messages.
            CommMembers::NotMpi | CommMembers::Undefined => {
                self.table.peer(comm, 0, process)?;
            }
        }
        Ok(())
    }
}
