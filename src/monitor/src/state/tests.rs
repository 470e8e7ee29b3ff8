//! State files written by hand, as the recorder writes them.

use super::layout::{self, epoch, field, kind, phase, slot};
use super::*;
use std::collections::BTreeSet;

const WORLD: u64 = 0x1000;
const WINDOW: u64 = 0x2000;
const INTER: u64 = 0x3000;
/// Identities.
const OF_WINDOW: u64 = 77;
const OF_INTER: u64 = 99;
/// The counter when the call began, in nanoseconds since 1970.
const SINCE: u64 = 5_000_000_000;

struct StateBytes(Vec<u8>);

impl StateBytes {
    /// The state of this process, as if it was rank 2 of 4.
    fn new() -> StateBytes {
        let mut written = StateBytes(vec![0; layout::SIZE]);
        for (offset, value) in [
            (field::MAGIC, layout::MAGIC),
            (field::TABLE, table()),
            (field::PROCESS, u64::from(std::process::id())),
            (field::RANK, 2),
            (field::SIZE, 4),
            (field::PHASE, phase::RUNNING),
            (field::THREADS, 1),
        ] {
            written.set(offset, value);
        }
        for (handle, comm, ranks) in [
            (WORLD, layout::WORLD, 2 << 32 | 4),
            (WINDOW, OF_WINDOW, 2 << 32 | 4 | layout::WINDOW),
            (INTER, OF_INTER, 1 << 32 | 2 | layout::INTER | layout::SECOND),
        ] {
            let place = layout::COMMS + layout::place_of(handle, layout::COMM_PLACES) * layout::COMM;
            [handle, comm, 3, ranks].into_iter().enumerate().for_each(|(i, value)| written.set(place + 8 * i, value));
        }
        written
    }

    fn set(&mut self, offset: usize, value: u64) {
        self.0[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
    }

    /// The thread is in a call, with these fields in its slot.
    fn inside(&mut self, function: &str, comm: u64, peer: u64, sequence: u64) {
        let number = (1..1000).find(|&number| function_name(number) == function).unwrap();
        for (offset, value) in [
            (slot::CALL, 7 << layout::COUNT | layout::INSIDE | number),
            (slot::SINCE, SINCE),
            (slot::COMM, comm),
            (slot::PEER, peer),
            (slot::SEQUENCE, sequence),
        ] {
            self.set(layout::SLOTS + offset, value);
        }
    }

    fn epoch(&mut self, kind: u64, target: i32, ended: u64, members: &[u32]) {
        let place = layout::EPOCHS + layout::place_of_epoch(WINDOW, kind, target) * layout::EPOCH;
        self.set(place + epoch::WIN, WINDOW);
        self.set(place + epoch::KIND, kind | u64::from(target as u32) << 32);
        self.set(place + epoch::SINCE, SINCE);
        self.set(place + epoch::ENDED, ended);
        self.set(place + epoch::COUNT, members.len() as u64);
        for (k, &member) in members.iter().enumerate().take(layout::MEMBERS) {
            let from = place + epoch::MEMBERS + 4 * k;
            self.0[from..from + 4].copy_from_slice(&member.to_ne_bytes());
        }
    }

    fn read(&self) -> RankState {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.state");
        std::fs::write(&path, &self.0).unwrap();
        StateFile::open(&path, "here").unwrap().look(&BTreeSet::new()).unwrap()
    }
}

fn what(state: &RankState) -> &Operation {
    state.call.as_ref().unwrap().what.as_ref().unwrap()
}

#[test]
fn messages_and_collective_operations_are_read() {
    let mut written = StateBytes::new();
    written.inside("MPI_Recv", WORLD, 3 << 32 | 9, 0);
    let state = written.read();
    let Operation { comm, peer, tag, sequence, .. } = *what(&state);
    assert_eq!((comm, peer, tag, sequence), (Some(layout::WORLD), 3, 9, 0));
    assert_eq!((state.rank, state.moves, state.word(), state.epochs.len()), (Some(2), 7, "waits", 0));
    written.inside("MPI_Barrier", WORLD, u64::from(layout::NOBODY as u32) << 32, 3);
    let state = written.read();
    assert_eq!((what(&state).sequence, what(&state).peer), (3, layout::NOBODY));
    let world = CommMembership { comm: layout::WORLD, rank: 2, size: 4, sequence: 3, ..CommMembership::default() };
    assert_eq!(state.comms, [world]);
}

#[test]
fn groups_of_inter_communicators_are_read() {
    let mut written = StateBytes::new();
    written.inside("MPI_Send", INTER, 1 << 32 | 5, 0);
    let state = written.read();
    let found = state.comms.iter().find(|comm| comm.comm == OF_INTER).unwrap();
    assert_eq!((found.rank, found.size, found.inter, found.second, found.window), (1, 2, true, true, false));
}

#[test]
fn what_calls_leave_in_a_slot_is_not_taken_for_theirs() {
    // Before it was a collective operation with a root: probes have their own peer, epochs of windows none or a target.
    let mut written = StateBytes::new();
    written.inside("MPI_Iprobe", WORLD, 1 << 32 | 5, 3);
    assert_eq!((what(&written.read()).peer, what(&written.read()).sequence), (1, 0));
    written.inside("MPI_Win_wait", WINDOW, 1 << 32, 3);
    assert_eq!((what(&written.read()).peer, what(&written.read()).sequence), (layout::NOBODY, 0));
    written.inside("MPI_Win_lock", WINDOW, 1 << 32 | 1, 3);
    let state = written.read();
    assert_eq!((what(&state).peer, what(&state).tag, what(&state).sequence), (1, 1, 0));
    written.inside("MPI_Win_fence", WINDOW, u64::from(layout::NOBODY as u32) << 32, 3);
    assert_eq!(what(&written.read()).sequence, 3);
}

#[test]
fn epochs_are_read_for_the_windows_that_a_call_is_about() {
    let many: Vec<u32> = (0..40).collect();
    let mut written = StateBytes::new();
    written.epoch(kind::ACCESS, layout::NOBODY, 0, &[1, 3, 70_000]);
    written.epoch(kind::EXPOSURE, layout::NOBODY, SINCE + 1_000_000_000, &many);
    written.epoch(kind::EXCLUSIVE, 3, 0, &[]);
    written.inside("MPI_Recv", WORLD, 3 << 32 | 9, 0);
    assert_eq!(written.read().epochs, []);
    written.inside("MPI_Win_start", WINDOW, 0, 0);
    let mut epochs = written.read().epochs;
    epochs.sort_by_key(|epoch| epoch.kind as u32);
    let [access, exposure, lock] = &epochs[..] else { panic!("{epochs:?}") };
    assert_eq!((access.window, access.kind, &access.members[..]), (OF_WINDOW, EpochKind::Access, &[1, 3, 70_000][..]));
    assert_eq!((access.since, access.ended), (5.0, None));
    assert_eq!(
        (exposure.kind, exposure.ended, exposure.members.len()),
        (EpochKind::Exposure, Some(6.0), layout::MEMBERS)
    );
    assert_eq!(exposure.members, many[..layout::MEMBERS]);
    assert_eq!((lock.kind, lock.target, lock.members.len()), (EpochKind::Exclusive, 3, 0));
}

#[test]
fn locks_of_a_part_have_one_place_whatever_they_are() {
    for target in 0..100 {
        let place = |kind| layout::place_of_epoch(WINDOW, kind, target);
        assert_eq!(place(kind::SHARED), place(kind::EXCLUSIVE));
    }
    let kinds = [kind::ACCESS, kind::EXPOSURE, kind::ALL, kind::SHARED];
    let places: BTreeSet<usize> = kinds.iter().map(|&kind| layout::place_of_epoch(WINDOW, kind, 0)).collect();
    assert_eq!(places.len(), 4);
}

#[test]
fn time_with_and_without_a_core_is_counted_while_nothing_moves() {
    let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("1.state");
    let mut written = StateBytes::new();
    written.set(field::PROCESS, u64::from(busy.id()));
    std::fs::write(&path, &written.0).unwrap();
    let mut file = StateFile::open(&path, "here").unwrap();
    let mut looks = Vec::new();
    for k in 0..9 {
        // It makes a move, then another phase begins.
        written.set(layout::SLOTS + slot::CALL, (if k < 3 { 7 } else { 8 }) << layout::COUNT);
        written.set(field::PHASE, if k < 6 { phase::INIT } else { phase::RUNNING });
        std::fs::write(&path, &written.0).unwrap();
        let CoreTime { ran, waited, .. } = file.pulse().unwrap().unmoved;
        looks.push(ran + waited);
        // The kernel is asked less often than that; not so when the process moves, and has moved.
        std::thread::sleep(std::time::Duration::from_millis(if k % 3 == 1 { 400 } else { 50 }));
    }
    busy.kill().unwrap();
    busy.wait().unwrap();
    // The kernel need not have counted the last slice yet.
    let counts = |looks: &[f64]| looks[..2] == [0.0, 0.0] && looks[2] > 0.02 && looks[2] < 10.0;
    assert!(looks.chunks(3).all(counts), "{looks:?}");
}

#[test]
fn names_and_files_are_read() {
    let mut written = StateBytes::new();
    let place = layout::COMMS + layout::place_of(WORLD, layout::COMM_PLACES) * layout::COMM;
    written.set(place + 16, (5 * layout::NAMED) | 3);
    let name = layout::COMM_NAMES + 4 * layout::NAME;
    written.0[name + 8..name + 14].copy_from_slice(b"solver");
    let other = layout::COMMS + layout::place_of(WINDOW, layout::COMM_PLACES) * layout::COMM;
    written.set(other + 24, 2 << 32 | 4 | layout::FILE);
    written.inside("MPI_File_sync", WINDOW, u64::from(layout::NOBODY as u32) << 32, 3);
    let state = written.read();
    assert_eq!((state.comms.len(), what(&state).comm), (2, Some(OF_WINDOW)));
    for comm in state.comms {
        let found = (comm.sequence, comm.size, comm.file, comm.window, comm.name.as_deref());
        let expected = if comm.file { (3, 4, true, false, None) } else { (3, 4, false, false, Some("solver")) };
        assert_eq!(found, expected);
    }
    // What was stored of an earlier call is none of one without a communicator.
    written.inside("MPI_File_read", 0, 7, 3);
    assert_eq!(written.read().call.unwrap().what, None);
}
