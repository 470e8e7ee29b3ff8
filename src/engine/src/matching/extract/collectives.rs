//! Collective operations of a process: their two ends, and its part in them.

use super::Extractor;
use crate::matching::comm_index::CommIndex;
use crate::matching::extract::calls::SynchronisingCall;
use crate::matching::extracted::Participation;
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
        if self.open_begins.insert(at.location, begin).is_some() {
            self.out.leftovers.open_collectives += 1;
        }
        Ok(true)
    }

    pub(super) fn begin_immediate_collective(&mut self, at: EventCoordinates, request: u64) -> Result<bool> {
        let begin = self.near(at)?;
        if let Some(EndedElsewhere { process, comm, end, part }) = self.ended_elsewhere.remove(&request) {
            return self.participate(process, comm, Participation { begin, end, part }).map(|()| true);
        }
        if self.collective_requests.insert(request, begin).is_some() {
            self.out.leftovers.open_collectives += 1;
        }
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
        if self.ended_elsewhere.insert(request, ended).is_some() {
            self.out.leftovers.open_collectives += 1;
        }
        Ok(())
    }

    pub(super) fn collective_end(
        &mut self,
        at: EventCoordinates,
        begin: Option<u32>,
        collective: &Collective,
    ) -> Result<()> {
        let process = self.own_process()?;
        let comm = self.comm(collective.comm)?;
        let end = self.near(at)?;
        let Some(begin) = begin else {
            self.out.leftovers.open_collectives += 1;
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
