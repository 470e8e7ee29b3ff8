//! Windows: fences, locks, and epochs with groups.

use super::*;
use crate::state::{EpochKind, WindowEpoch};

#[test]
fn fences_of_windows_are_operations_of_their_own() {
    let mut job = job(4, 3);
    let window = 0xabcd_0123_0000_0007;
    for rank in 0..4_u32 {
        let part =
            CommMembership { comm: window, rank, size: 4, window: true, sequence: 1, ..CommMembership::default() };
        job.ranks[rank as usize].comms.push(part);
        if rank != 2 {
            job.put(rank, operation("Win_fence", window, NOBODY, 0, 2));
        }
    }
    let parts =
        ["rank 2 is missing in MPI_Win_fence, operation 2 of window abcd0123 of 4 ranks 0-3, where ranks 0, 1, 3"];
    job.says(JobVerdict::Still, &[2], &parts);
    // Who frees it where the others meet in a fence is told.
    job.put(2, operation("Win_free", window, NOBODY, 0, 2));
    job.says(JobVerdict::Still, &[2], &["operation 2 of window abcd0123", "rank 2 is in MPI_Win_free"]);
}

const WINDOW: u64 = 0xabcd_0123_0000_0007;

/// A job whose ranks have a part of [`WINDOW`] each.
fn job_with_window(size: u32) -> Snapshot {
    let mut job = job(size, 3);
    for rank in 0..size {
        let part = CommMembership { comm: WINDOW, rank, size, window: true, sequence: 1, ..CommMembership::default() };
        job.ranks[rank as usize].comms.push(part);
    }
    job
}

/// An epoch that began so many seconds ago, and ended later, if it did.
fn epoch(kind: EpochKind, target: i32, members: &[u32], since: f64, ended: Option<f64>) -> WindowEpoch {
    let ended = ended.map(|ended| NOW - ended);
    WindowEpoch { window: WINDOW, kind, target, members: members.to_vec(), since: NOW - since, ended }
}

#[test]
fn who_holds_a_lock_is_waited_for() {
    let mut job = job_with_window(4);
    job.ranks[1].epochs = vec![epoch(EpochKind::Exclusive, 2, &[], 50.0, None)];
    job.put(0, operation("Win_lock", WINDOW, 2, 1, 0));
    let parts = [
        "rank 0 has waited for rank 1 for 42.0 s, in MPI_Win_lock on rank 2 (exclusive, window abcd0123 of 4 ranks 0-3)",
        ", on which rank 1 holds a lock; it computes",
    ];
    job.says(JobVerdict::Still, &[1], &parts);
    // What it has given back is in nobody's way, nor is a lock of another part.
    for other in
        [epoch(EpochKind::Exclusive, 2, &[], 50.0, Some(45.0)), epoch(EpochKind::Exclusive, 3, &[], 50.0, None)]
    {
        job.ranks[1].epochs = vec![other];
        job.says(JobVerdict::Still, &[2], &["rank 0 has waited for rank 2", "which may need rank 2 to be in MPI"]);
    }
    // Shared locks are in the way of exclusive ones only.
    job.ranks[1].epochs = vec![epoch(EpochKind::All, NOBODY, &[], 50.0, None)];
    job.says(JobVerdict::Still, &[1], &["on which rank 1 holds a lock"]);
    job.put(0, operation("Win_lock", WINDOW, 2, 0, 0));
    job.says(JobVerdict::Still, &[2], &["MPI_Win_lock on rank 2 (shared, window"]);
    // Where both believe to have it, as libraries do that get it later, it is the one that is not waiting.
    job.ranks[0].epochs = vec![epoch(EpochKind::Exclusive, 2, &[], 60.0, None)];
    job.put(0, operation("Win_unlock", WINDOW, 2, 0, 0));
    job.ranks[3].epochs = vec![epoch(EpochKind::Shared, 2, &[], 40.0, None)];
    job.put(3, operation("Win_flush", WINDOW, 2, 0, 0));
    job.says(JobVerdict::Still, &[1], &["rank 0 has waited for rank 1", "in MPI_Win_unlock on rank 2 (window"]);
    // The target is in MPI, and nobody has a lock: then nobody is to blame.
    [1, 3].iter().for_each(|&rank: &usize| job.ranks[rank].epochs.clear());
    job.ranks[3].call = None;
    job.put(2, operation("Iprobe", WORLD, ANY, ANY, 0));
    job.says(JobVerdict::Still, &[0], &["rank 0 waits in MPI_Win_unlock", "the cause cannot be determined"]);
}

#[test]
fn locks_that_are_waited_for_by_turns_are_a_cycle() {
    let mut job = job_with_window(2);
    for (rank, target) in [(0, 1), (1, 0)] {
        job.ranks[rank].epochs = vec![epoch(EpochKind::Exclusive, rank as i32, &[], 50.0, None)];
        job.put(rank as u32, operation("Win_lock", WINDOW, target, 1, 0));
    }
    job.says(
        JobVerdict::Still,
        &[0, 1],
        &["ranks 0, 1 wait in a cycle", "rank 0 in MPI_Win_lock on rank 1 (exclusive,"],
    );
}

#[test]
fn groups_of_windows_wait_for_those_that_have_not_come() {
    // 0 wants to write to 1 and 2, of which only 1 lets it.
    let mut job = job_with_window(4);
    job.ranks[0].epochs = vec![epoch(EpochKind::Access, NOBODY, &[1, 2], 42.0, None)];
    job.ranks[1].epochs = vec![epoch(EpochKind::Exposure, NOBODY, &[0, 3], 43.0, None)];
    job.put(0, operation("Win_start", WINDOW, NOBODY, 0, 0));
    let parts =
        ["rank 0 has waited for rank 2", "MPI_Win_start (window abcd0123", "which needs MPI_Win_post on rank 2"];
    job.says(JobVerdict::Still, &[2], &parts);
    // An earlier epoch of it, or one for others, is none for this one.
    for epoch in [
        epoch(EpochKind::Exposure, NOBODY, &[0], 50.0, Some(45.0)),
        epoch(EpochKind::Exposure, NOBODY, &[3], 41.0, None),
    ] {
        job.ranks[2].epochs = vec![epoch];
        job.says(JobVerdict::Still, &[2], &["which needs MPI_Win_post on rank 2"]);
    }
    // 1 waits for 0, which waits for 2, and for 3, which was here before 1 let it in, and has not come again.
    job.put(1, operation("Win_wait", WINDOW, NOBODY, 0, 0));
    job.ranks[3].epochs = vec![epoch(EpochKind::Access, NOBODY, &[1], 50.0, Some(44.0))];
    job.ranks[2].epochs = vec![epoch(EpochKind::Exposure, NOBODY, &[0], 41.0, None)];
    job.ranks[0].call = None;
    job.says(
        JobVerdict::Still,
        &[0, 3],
        &["rank 1 has waited for ranks 0, 3", "which needs MPI_Win_complete on ranks 0, 3"],
    );
    // Both have gone again; or it is not known, since 3 was with others since.
    job.ranks[0].epochs[0].ended = Some(NOW - 2.0);
    job.ranks[3].epochs = vec![epoch(EpochKind::Access, NOBODY, &[2], 30.0, None)];
    job.says(JobVerdict::Still, &[1], &["rank 1 waits in MPI_Win_wait", "the cause cannot be determined"]);
    // Who tests for it waits the least.
    job.ranks[0].epochs[0].ended = None;
    job.put(1, operation("Win_test", WINDOW, NOBODY, 0, 0)).call.as_mut().unwrap().polls = true;
    job.says(JobVerdict::Still, &[0], &["rank 1 has waited for rank 0", "in repeated MPI_Win_test (window"]);
}

/// Everybody has locked all parts, and a library may need the target to be in MPI.
#[test]
fn operations_on_all_parts_of_a_window_may_need_who_is_outside() {
    let mut job = job_with_window(4);
    for rank in [0, 2, 3] {
        job.put(rank, operation("Win_unlock_all", WINDOW, NOBODY, 0, 0));
    }
    for rank in 0..4 {
        job.ranks[rank].epochs = vec![epoch(EpochKind::All, NOBODY, &[], 50.0, None)];
    }
    job.says(JobVerdict::Still, &[1], &["in MPI_Win_unlock_all", "which may need rank 1 to be in MPI; it computes"]);
}
