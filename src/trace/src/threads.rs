//! What threads of a process do with each other.

use crate::CommId;
use serde::{Deserialize, Serialize};

/// A thread that is created, begins, ends, and is waited for: both ends of each step have the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadStart {
    /// All threads that can be created, as a communicator's global id.
    pub contingent: CommId,
    /// Which of them.
    pub sequence: u64,
}

/// A lock of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadLock {
    /// OTF2 `Paradigm`.
    pub model: u8,
    /// Which lock.
    pub lock: u32,
    /// The how-manieth acquisition: acquiring and releasing it have the same number.
    pub order: u32,
}

/// A task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadTask {
    /// The team, as a communicator's global id.
    pub team: CommId,
    /// The thread that has created it: its rank in the team.
    pub creator: u32,
    /// The how-manieth of that thread.
    pub generation: u32,
}

/// A step of a thread (OTF2 records 53 to 65).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadEvent {
    /// OTF2 `ThreadFork`: a team of so many threads is wanted.
    Fork {
        /// OTF2 `Paradigm`.
        model: u8,
        /// How many threads.
        threads: u32,
    },
    /// OTF2 `ThreadJoin`: all threads of the team have ended.
    Join {
        /// OTF2 `Paradigm`.
        model: u8,
    },
    /// OTF2 `ThreadTeamBegin`, with the team.
    TeamBegin(CommId),
    /// OTF2 `ThreadTeamEnd`.
    TeamEnd(CommId),
    /// OTF2 `ThreadAcquireLock`.
    AcquireLock(ThreadLock),
    /// OTF2 `ThreadReleaseLock`.
    ReleaseLock(ThreadLock),
    /// OTF2 `ThreadTaskCreate`.
    TaskCreate(ThreadTask),
    /// OTF2 `ThreadTaskSwitch`: from now on this task runs.
    TaskSwitch(ThreadTask),
    /// OTF2 `ThreadTaskComplete`.
    TaskComplete(ThreadTask),
    /// OTF2 `ThreadCreate`.
    Create(ThreadStart),
    /// OTF2 `ThreadBegin`.
    Begin(ThreadStart),
    /// OTF2 `ThreadWait`: the other thread has ended.
    Wait(ThreadStart),
    /// OTF2 `ThreadEnd`.
    End(ThreadStart),
}

impl ThreadEvent {
    /// The number of the OTF2 event record.
    pub fn kind(&self) -> u8 {
        match self {
            ThreadEvent::Fork { .. } => 53,
            ThreadEvent::Join { .. } => 54,
            ThreadEvent::TeamBegin(_) => 55,
            ThreadEvent::TeamEnd(_) => 56,
            ThreadEvent::AcquireLock(_) => 57,
            ThreadEvent::ReleaseLock(_) => 58,
            ThreadEvent::TaskCreate(_) => 59,
            ThreadEvent::TaskSwitch(_) => 60,
            ThreadEvent::TaskComplete(_) => 61,
            ThreadEvent::Create(_) => 62,
            ThreadEvent::Begin(_) => 63,
            ThreadEvent::Wait(_) => 64,
            ThreadEvent::End(_) => 65,
        }
    }

    /// The fields in the order of the record, and how many of them there are; the first one of a fork, a join, and of steps of locks is a single byte.
    pub fn fields(&self) -> ([u64; 3], usize) {
        let list = |a: u64, b: u64, c: u64| [a, b, c];
        match *self {
            ThreadEvent::Fork { model, threads } => (list(model.into(), threads.into(), 0), 2),
            ThreadEvent::Join { model } => (list(model.into(), 0, 0), 1),
            ThreadEvent::TeamBegin(team) | ThreadEvent::TeamEnd(team) => (list(team.0.into(), 0, 0), 1),
            ThreadEvent::AcquireLock(lock) | ThreadEvent::ReleaseLock(lock) => {
                (list(lock.model.into(), lock.lock.into(), lock.order.into()), 3)
            }
            ThreadEvent::TaskCreate(task) | ThreadEvent::TaskSwitch(task) | ThreadEvent::TaskComplete(task) => {
                (list(task.team.0.into(), task.creator.into(), task.generation.into()), 3)
            }
            ThreadEvent::Create(start)
            | ThreadEvent::Begin(start)
            | ThreadEvent::Wait(start)
            | ThreadEvent::End(start) => (list(start.contingent.0.into(), start.sequence, 0), 2),
        }
    }

    /// Whether the first field of a record of this type is a single byte.
    pub fn begins_with_byte(kind: u8) -> bool {
        matches!(kind, 53 | 54 | 57 | 58)
    }

    /// Number of fields of a record of this type; 0 if it is none of threads.
    pub fn field_count(kind: u8) -> usize {
        match kind {
            54..=56 => 1,
            53 | 62..=65 => 2,
            57..=61 => 3,
            _ => 0,
        }
    }

    /// From the type of the record and its fields; `None` if it is no record of threads, or a field is too large.
    pub fn from_fields(kind: u8, fields: [u64; 3]) -> Option<ThreadEvent> {
        let number = |place: usize| u32::try_from(fields[place]).ok();
        let model = || u8::try_from(fields[0]).ok();
        let comm = || number(0).map(CommId);
        let lock = || Some(ThreadLock { model: model()?, lock: number(1)?, order: number(2)? });
        let task = || Some(ThreadTask { team: comm()?, creator: number(1)?, generation: number(2)? });
        let start = || Some(ThreadStart { contingent: comm()?, sequence: fields[1] });
        Some(match kind {
            53 => ThreadEvent::Fork { model: model()?, threads: number(1)? },
            54 => ThreadEvent::Join { model: model()? },
            55 => ThreadEvent::TeamBegin(comm()?),
            56 => ThreadEvent::TeamEnd(comm()?),
            57 => ThreadEvent::AcquireLock(lock()?),
            58 => ThreadEvent::ReleaseLock(lock()?),
            59 => ThreadEvent::TaskCreate(task()?),
            60 => ThreadEvent::TaskSwitch(task()?),
            61 => ThreadEvent::TaskComplete(task()?),
            62 => ThreadEvent::Create(start()?),
            63 => ThreadEvent::Begin(start()?),
            64 => ThreadEvent::Wait(start()?),
            65 => ThreadEvent::End(start()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_back_from_their_fields() {
        for kind in 53..=65 {
            let event = ThreadEvent::from_fields(kind, [3, 7, 9]).expect("a step");
            assert_eq!(event.kind(), kind);
            let (fields, count) = event.fields();
            assert_eq!(count, ThreadEvent::field_count(kind));
            assert_eq!(ThreadEvent::from_fields(kind, fields), Some(event));
        }
        assert_eq!(ThreadEvent::from_fields(52, [0; 3]), None);
        assert_eq!(ThreadEvent::from_fields(57, [256, 0, 0]), None);
    }
}
