//! What the ranks of a job are doing: the state files that the recorder writes, as whoever asks gets them.

mod functions;
#[allow(dead_code)] // the recorder uses all of it
pub(crate) mod layout;
mod process;
mod read;
#[cfg(test)]
mod tests;

pub(crate) use functions::function_name;
pub use functions::table;
pub(crate) use process::ProcessStatus;
pub use process::{CoreTime, now};
pub use read::StateFile;

use serde::{Deserialize, Serialize};

/// Where a process is in its life with MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// In `MPI_Init`.
    Init,
    /// Between `MPI_Init` and `MPI_Finalize`.
    Running,
    /// In `MPI_Finalize`.
    Finalizing,
    /// After it.
    Finalized,
    /// The recorder has given up: what it does is not known any more.
    Unwatched,
}

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// It has work, or sleeps until something comes.
    Runs,
    /// It was stopped by a signal or a debugger.
    Stopped,
    /// There is none any more.
    Gone,
}

/// All that [`RankState::word`] says.
pub const WORDS: [&str; 10] =
    ["computes", "waits", "tests", "starts", "finalizes", "finished", "stopped", "ended", "unknown", "sleeps"];

/// What one process of the job is doing at a moment. Times are seconds since 1970 by the clock of its node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankState {
    /// Rank in `MPI_COMM_WORLD`, if it is known yet.
    pub rank: Option<u32>,
    /// Size of `MPI_COMM_WORLD`, likewise.
    pub size: Option<u32>,
    /// Name of its node.
    pub host: String,
    /// Process id.
    pub process: u32,
    /// Where it is in its life with MPI.
    pub phase: Phase,
    /// When that began.
    pub phase_since: f64,
    /// What the kernel says of it.
    pub life: Life,
    /// When it was seen to have ended or been stopped.
    pub life_since: Option<f64>,
    /// The call that it is in, or tests again and again; none if it is outside of MPI.
    pub call: Option<MpiCall>,
    /// The regions of the program that it is in, from the outside.
    pub regions: Vec<String>,
    /// Calls that have done something, of all threads.
    pub moves: u64,
    /// When the last such call ended.
    pub moved: f64,
    /// Tests and probes in vain.
    pub vain: u64,
    /// Processor time that it has used, in seconds.
    pub cpu: f64,
    /// Processor time that it has had and waited for since it was seen not to move: nothing while it moves.
    #[serde(default)]
    pub unmoved: CoreTime,
    /// The communicators that were asked for, of which it is a member.
    pub comms: Vec<CommMembership>,
    /// Of the windows among them, the epochs that it is in, and those that were the last of their kind.
    #[serde(default)]
    pub epochs: Vec<WindowEpoch>,
    /// Communicators and threads that there was no room for.
    pub lost: u64,
}

/// A call of MPI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MpiCall {
    /// Its function.
    pub function: String,
    /// When it began: seconds since 1970.
    pub since: f64,
    /// What it is about; none for a call that waits for requests.
    pub what: Option<Operation>,
    /// The first requests that it was given.
    pub waits: Vec<Operation>,
    /// How many it was given.
    pub requests: u64,
    /// It does not wait, but tests again and again.
    pub polls: bool,
}

/// A message or a collective operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// The function that began it.
    pub function: String,
    /// Identity of its communicator, if that is known.
    pub comm: Option<u64>,
    /// Peer, root or target; `layout::NOBODY`, `layout::ANY`.
    pub peer: i32,
    /// Tag of a message; 1 for an exclusive lock.
    pub tag: i32,
    /// Number of a collective operation among those of its communicator, from 1; 0 for messages.
    pub sequence: u64,
}

/// An epoch of a window, of the process that has called for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowEpoch {
    /// Identity of the window.
    pub window: u64,
    /// What it is.
    pub kind: EpochKind,
    /// Rank in the window of the part that is locked; `layout::NOBODY` where none or all are.
    pub target: i32,
    /// Global ranks of its group, the first ones if it has more than `layout::MEMBERS`.
    pub members: Vec<u32>,
    /// When it began: seconds since 1970.
    pub since: f64,
    /// When it ended, if it has.
    pub ended: Option<f64>,
}

/// What an epoch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochKind {
    /// From `MPI_Win_start` to `MPI_Win_complete`.
    Access,
    /// From `MPI_Win_post` to `MPI_Win_wait`.
    Exposure,
    /// A shared lock of all.
    All,
    /// A shared lock of one.
    Shared,
    /// An exclusive lock of one.
    Exclusive,
}

/// A communicator as a member knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommMembership {
    /// Its identity: the same in all members.
    pub comm: u64,
    /// Rank in it.
    pub rank: u32,
    /// Number of members (of the own group).
    pub size: u32,
    /// It is an inter-communicator.
    pub inter: bool,
    /// Of its two groups, this is the one whose first member has the higher global rank.
    #[serde(default)]
    pub second: bool,
    /// It is a window of memory, whose fences are its operations.
    #[serde(default)]
    pub window: bool,
    /// It is a file that its members have opened.
    #[serde(default)]
    pub file: bool,
    /// What the program calls it.
    #[serde(default)]
    pub name: Option<String>,
    /// Collective operations that have begun.
    pub sequence: u64,
}

/// Whether a function leaves what was stored about collective operations as it was.
fn leaves_sequence(function: &str) -> bool {
    function.ends_with("robe") || on_epoch(function)
}

/// Functions of epochs that have a target; the others have none, and leave what was stored of one as it was.
const WITH_TARGET: [&str; 4] = ["lock", "unlock", "flush", "flush_local"];

fn on_epoch(function: &str) -> bool {
    let others =
        ["start", "complete", "post", "wait", "test", "lock_all", "unlock_all", "flush_all", "flush_local_all"];
    function.strip_prefix("MPI_Win_").is_some_and(|name| WITH_TARGET.contains(&name) || others.contains(&name))
}

fn has_target(function: &str) -> bool {
    function.strip_prefix("MPI_Win_").is_some_and(|name| WITH_TARGET.contains(&name))
}

impl Operation {
    /// It looks whether something has come, and returns at once.
    pub(crate) fn only_looks(&self) -> bool {
        matches!(&*self.function, "MPI_Iprobe" | "MPI_Improbe" | "MPI_Win_test")
    }

    /// It is a collective operation with a root.
    pub(crate) fn has_root(&self) -> bool {
        let name = self.function.trim_start_matches("MPI_").trim_start_matches('I').to_lowercase();
        let name = name.trim_end_matches("_init");
        ["bcast", "gather", "gatherv", "scatter", "scatterv", "reduce"].contains(&name)
    }

    /// It is a collective operation in which ranks wait for their neighbours only.
    pub(crate) fn of_neighbours(&self) -> bool {
        self.function.contains("eighbor_")
    }

    /// Some of the members of its communicator call it; which ones is not known.
    pub(crate) fn of_some_members(&self) -> bool {
        self.function == "MPI_Comm_create_group"
    }

    /// It begins or ends an epoch of a window, but that of all its members.
    pub(crate) fn on_epoch(&self) -> bool {
        on_epoch(&self.function)
    }

    /// It is a message that comes: receives and probes; also those that send one as well.
    pub(crate) fn receives(&self) -> bool {
        ["Recv", "recv", "Probe", "probe"].iter().any(|part| self.function.contains(part))
    }
}

impl RankState {
    /// The communicators that its call is about.
    pub(crate) fn comms_of_call(&self) -> impl Iterator<Item = u64> {
        let call = self.call.iter();
        call.flat_map(|call| call.what.iter().chain(&call.waits)).filter_map(|operation| operation.comm)
    }

    /// What it does, in a word: one of [`WORDS`].
    pub fn word(&self) -> &'static str {
        match (self.life, self.phase, &self.call) {
            (Life::Gone, Phase::Finalized, _) => "finished",
            (Life::Gone, _, _) => "ended",
            (Life::Stopped, _, _) => "stopped",
            (_, Phase::Init, _) => "starts",
            (_, Phase::Finalizing, _) => "finalizes",
            (_, Phase::Finalized, _) => "finished",
            (_, Phase::Unwatched, _) => "unknown",
            (_, Phase::Running, Some(call)) => {
                if call.polls {
                    "tests"
                } else {
                    "waits"
                }
            }
            (_, Phase::Running, None) if self.sleeps() => "sleeps",
            (_, Phase::Running, None) => "computes",
        }
    }

    /// It is outside of MPI, and does nothing there: it waits for something that is no business of MPI's.
    pub(crate) fn sleeps(&self) -> bool {
        self.call.is_none() && self.phase == Phase::Running && self.unmoved.slept()
    }

    /// It ended before `MPI_Finalize` was over.
    pub(crate) fn died(&self) -> bool {
        self.life == Life::Gone && !matches!(self.phase, Phase::Finalized | Phase::Unwatched)
    }
}
