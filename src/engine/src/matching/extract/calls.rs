//! Calls of MPI that say more than their records: which regions they are, and what is kept of one while a location is in it.

use crate::matching::hash::HashMap;
use clc_trace::{Definitions, RegionId, WindowGroup};

/// What a region of MPI does, as far as it synchronises by more than the records in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SynchronisingCall {
    /// `MPI_Ssend`: not over before its receive is posted.
    SynchronousSend,
    /// `MPI_Issend`: not complete before its receive is posted.
    SynchronousRequest,
    /// Posts receives: `MPI_Recv`, `MPI_Sendrecv`, `MPI_Irecv`, `MPI_Start` and so on.
    Posts,
    /// `MPI_Request_free`: a send request that ends in it is not complete, nobody asks for it any more.
    FreesRequest,
    /// `MPI_Win_post`.
    WinPost,
    /// `MPI_Win_start`.
    WinStart,
    /// `MPI_Win_complete`.
    WinComplete,
    /// `MPI_Win_wait`, and `MPI_Win_test` when it succeeds.
    WinWait,
    /// Creates communicators for all members of another one: `MPI_Comm_split`, `MPI_Comm_dup` and so on.
    CreatesHandle,
}

/// Calls that create communicators for all members of another one.
const CREATE_HANDLES: [&str; 9] = [
    "comm_create",
    "comm_dup",
    "comm_dup_with_info",
    "comm_split",
    "comm_split_type",
    "cart_create",
    "cart_sub",
    "graph_create",
    "dist_graph_create",
];

/// The regions that are such calls.
#[derive(Debug, Default)]
pub struct Calls(HashMap<RegionId, SynchronisingCall>);

impl Calls {
    /// Those among the regions of a trace, by their names.
    pub fn of(definitions: &Definitions) -> Calls {
        let call = |name: &str| {
            let name = name.to_ascii_lowercase();
            let name = name.strip_prefix('p').filter(|rest| rest.starts_with("mpi_")).unwrap_or(&name);
            Some(match name.strip_prefix("mpi_")?.trim_end_matches('_') {
                "ssend" => SynchronisingCall::SynchronousSend,
                "issend" => SynchronisingCall::SynchronousRequest,
                "recv" | "sendrecv" | "sendrecv_replace" | "irecv" | "start" | "startall" => SynchronisingCall::Posts,
                "request_free" => SynchronisingCall::FreesRequest,
                "win_post" => SynchronisingCall::WinPost,
                "win_start" => SynchronisingCall::WinStart,
                "win_complete" => SynchronisingCall::WinComplete,
                "win_wait" | "win_test" => SynchronisingCall::WinWait,
                _ => return None,
            })
        };
        Calls(definitions.regions.iter().filter_map(|region| Some((region.id, call(&region.name)?))).collect())
    }

    /// Together with those that create communicators for all members of another one, which synchronise only if the user says so. Not those that only
    /// some members take part in (`MPI_Comm_create_group`) or that do not block (`MPI_Comm_idup`).
    #[must_use]
    pub fn with_handles(mut self, definitions: &Definitions) -> Calls {
        let creates = |name: &str| {
            let name = name.to_ascii_lowercase();
            let name = name.strip_prefix('p').filter(|rest| rest.starts_with("mpi_")).unwrap_or(&name);
            let name = name.strip_prefix("mpi_").map(|name| name.trim_end_matches('_'));
            name.is_some_and(|name| CREATE_HANDLES.contains(&name))
        };
        let regions = definitions.regions.iter().filter(|region| creates(&region.name));
        self.0.extend(regions.map(|region| (region.id, SynchronisingCall::CreatesHandle)));
        self
    }

    /// Whether any of them creates communicators.
    pub fn create_handles(&self) -> bool {
        self.0.values().any(|&call| call == SynchronisingCall::CreatesHandle)
    }

    /// What a region is.
    pub fn get(&self, region: RegionId) -> Option<SynchronisingCall> {
        self.0.get(&region).copied()
    }

    /// The regions of synchronous sends, ascending.
    pub fn synchronous(&self) -> Vec<RegionId> {
        let of = |call: &SynchronisingCall| {
            matches!(call, SynchronisingCall::SynchronousSend | SynchronisingCall::SynchronousRequest)
        };
        let mut regions: Vec<RegionId> =
            self.0.iter().filter(|(_, call)| of(call)).map(|(region, _)| *region).collect();
        regions.sort_unstable();
        regions
    }
}

/// The call that a location is in.
#[derive(Debug)]
pub(super) struct Inside {
    /// Which one.
    pub call: SynchronisingCall,
    /// Others of them that were entered within.
    pub deeper: u32,
    /// Its visited begin, where that can matter.
    pub entered: Option<u32>,
    /// The send in it.
    pub sent: Option<u32>,
    /// A blocking receive was posted by it, and is complete.
    pub received: bool,
    /// What it synchronises.
    pub groups: Vec<WindowGroup>,
}

impl Inside {
    pub(super) fn new(call: SynchronisingCall) -> Inside {
        Inside { call, deeper: 0, entered: None, sent: None, received: false, groups: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::{ClockProperties, Region};

    #[test]
    fn calls_are_known_by_their_names() {
        let names = [
            "main",
            "MPI_Ssend",
            "PMPI_Issend",
            "mpi_recv_",
            "MPI_Win_test",
            "mpi_request_free",
            "MPI_Ssend_init",
            "pmpi",
        ];
        let regions = (0..).zip(names).map(|(id, name)| Region { id: RegionId(id), name: name.into() }).collect();
        let clock = ClockProperties { resolution: 1, global_offset: 0, trace_length: 0, realtime: None };
        let definitions = Definitions { regions, ..Definitions::empty(clock) };
        let calls = Calls::of(&definitions);
        let found: Vec<Option<SynchronisingCall>> = (0..8).map(|id| calls.get(RegionId(id))).collect();
        let expected = [
            None,
            Some(SynchronisingCall::SynchronousSend),
            Some(SynchronisingCall::SynchronousRequest),
            Some(SynchronisingCall::Posts),
            Some(SynchronisingCall::WinWait),
            Some(SynchronisingCall::FreesRequest),
        ];
        assert_eq!(found[..6], expected);
        assert_eq!(found[6..], [None, None]);
        assert_eq!(calls.synchronous(), [RegionId(1), RegionId(2)]);
        assert!(!calls.create_handles());
    }

    #[test]
    fn handles_are_created_by_calls_of_all_members() {
        let names = [
            "MPI_Comm_split",
            "PMPI_Comm_dup",
            "mpi_cart_create_",
            "MPI_Comm_idup",
            "MPI_Comm_create_group",
            "Comm_split",
        ];
        let regions = (0..).zip(names).map(|(id, name)| Region { id: RegionId(id), name: name.into() }).collect();
        let clock = ClockProperties { resolution: 1, global_offset: 0, trace_length: 0, realtime: None };
        let definitions = Definitions { regions, ..Definitions::empty(clock) };
        let creates = Some(SynchronisingCall::CreatesHandle);
        let calls = Calls::of(&definitions);
        assert!(!calls.create_handles() && calls.get(RegionId(0)).is_none());
        let calls = calls.with_handles(&definitions);
        assert!(calls.create_handles());
        let found: Vec<Option<SynchronisingCall>> = (0..6).map(|id| calls.get(RegionId(id))).collect();
        assert_eq!(found, [creates, creates, creates, None, None, None]);
    }
}
