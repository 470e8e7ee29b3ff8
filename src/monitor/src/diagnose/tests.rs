//! Snapshots made by hand, and what they say.

use super::*;
use crate::state::layout::{ANY, NOBODY, WORLD};
use crate::state::{Call, Membership, Operation};

const NOW: f64 = 1_000_000.0;
/// When everything stopped.
const SINCE: f64 = NOW - 42.0;

/// A job whose ranks compute outside of MPI, and have begun so many operations of `MPI_COMM_WORLD`.
fn job(size: u32, sequence: u64) -> Snapshot {
    let rank = |rank| RankState {
        rank: Some(rank),
        size: Some(size),
        host: format!("n{}", rank / 4),
        process: 100 + rank,
        phase: Phase::Running,
        phase_since: SINCE - 100.0,
        life: Life::Runs,
        life_since: None,
        call: None,
        regions: Vec::new(),
        moves: 1000,
        moved: SINCE,
        vain: 0,
        cpu: 1.0,
        comms: vec![Membership { comm: WORLD, rank, size, inter: false, window: false, sequence }],
        lost: 0,
    };
    Snapshot { time: NOW, ranks: (0..size).map(rank).collect(), silent: Vec::new() }
}

fn operation(function: &str, comm: u64, peer: i32, tag: i32, sequence: u64) -> Operation {
    Operation { function: format!("MPI_{function}"), comm: Some(comm), peer, tag, sequence }
}

impl Snapshot {
    /// A rank is in a call.
    fn put(&mut self, rank: u32, operation: Operation) -> &mut RankState {
        let state = &mut self.ranks[rank as usize];
        for membership in &mut state.comms {
            if Some(membership.comm) == operation.comm && operation.sequence > 0 {
                membership.sequence = operation.sequence;
            }
        }
        let function = operation.function.clone();
        state.call =
            Some(Call { function, since: SINCE, what: Some(operation), waits: Vec::new(), requests: 0, polls: false });
        state
    }

    fn barrier(&mut self, rank: u32, sequence: u64) {
        self.put(rank, operation("Barrier", WORLD, NOBODY, 0, sequence));
    }

    #[track_caller]
    fn says(&self, verdict: Verdict, ranks: &[u32], parts: &[&str]) {
        let found = diagnose(None, self);
        for part in parts {
            assert!(found.sentence.contains(part), "{part:?} is not in: {}", found.sentence);
        }
        assert_eq!((found.verdict, &found.ranks[..]), (verdict, ranks), "{}", found.sentence);
        assert_eq!(found.rows.len(), self.ranks.len());
        assert_eq!(found.text().lines().next(), Some(&found.sentence[..]));
    }
}

#[test]
fn who_is_missing_in_a_collective_operation_is_named() {
    let mut job = job(8, 16);
    (0..8).filter(|&rank| rank != 3).for_each(|rank| job.barrier(rank, 17));
    job.ranks[3].regions = vec!["main".into(), "solve".into()];
    let parts = [
        "nothing has moved for 42.0 s: rank 3 is missing in MPI_Barrier, operation 17 of MPI_COMM_WORLD",
        "where ranks 0-2, 4-7 have waited for 42.0 s",
        "it computes in region solve, outside of MPI for 42.0 s",
    ];
    job.says(Verdict::Still, &[3], &parts);
    let comm = &diagnose(None, &job).comms[0];
    assert_eq!((comm.sequence, comm.waiting, comm.size, &comm.behind[..]), (17, 7, 8, &[3][..]));
}

#[test]
fn who_waits_for_those_that_wait_is_traced_to_the_end() {
    // 1 computes, 0 waits for its message, the others wait for 0 in a barrier.
    let mut job = job(4, 0);
    job.put(0, operation("Recv", WORLD, 1, 7, 0));
    (2..4).for_each(|rank| job.barrier(rank, 1));
    job.ranks[1].comms[0].sequence = 1;
    job.says(
        Verdict::Still,
        &[1],
        &["rank 0 has waited for rank 1 for 42.0 s, in MPI_Recv from rank 1 (tag 7)", "(2 more"],
    );
}

#[test]
fn circles_of_receives_are_told_with_their_tags() {
    let mut job = job(4, 0);
    for rank in 0..3_u32 {
        job.put(rank, operation("Recv", WORLD, (rank as i32 + 1) % 3, 10 + rank as i32, 0));
    }
    job.barrier(3, 1);
    let parts = [
        "ranks 0-2 wait in a circle, for up to 42.0 s: rank 0 in MPI_Recv from rank 1 (tag 10)",
        "rank 2 in MPI_Recv from rank 0 (tag 12)",
        "1 more waits for these",
    ];
    job.says(Verdict::Still, &[0, 1, 2], &parts);
}

#[test]
fn a_message_on_its_way_is_no_circle() {
    let mut one = job(2, 0);
    one.put(0, operation("Send", WORLD, 1, 5, 0));
    one.put(1, operation("Recv", WORLD, 0, ANY, 0));
    assert!(!diagnose(None, &one).sentence.contains("circle"));
    // With another tag it is.
    one.put(1, operation("Recv", WORLD, 0, 6, 0));
    one.says(Verdict::Still, &[0, 1], &["in a circle", "MPI_Send to rank 1 (tag 5)", "MPI_Recv from rank 0 (tag 6)"]);
}

#[test]
fn requests_that_may_be_complete_make_no_circle_where_somebody_computes() {
    // A halo exchange in a row: 2 computes; 0 and 1 have each other's messages already.
    let mut job = job(3, 0);
    for (rank, peers) in [(0, &[1][..]), (1, &[0, 2])] {
        let state = job.put(rank, operation("Waitall", WORLD, NOBODY, 0, 0));
        let call = state.call.as_mut().unwrap();
        call.what = None;
        call.requests = 2;
        call.waits = peers.iter().map(|&peer| operation("Irecv", WORLD, peer, 1, 0)).collect();
    }
    job.says(Verdict::Still, &[2], &["rank 1 has waited for rank 2", "MPI_Irecv from rank 2 (tag 1)", "it computes"]);
}

#[test]
fn different_operations_and_roots_are_told() {
    let mut job = job(4, 4);
    (0..3).for_each(|rank| drop(job.put(rank, operation("Bcast", WORLD, 0, 0, 5)).call.clone()));
    job.put(3, operation("Allreduce", WORLD, NOBODY, 0, 5));
    let parts =
        ["operation 5 of MPI_COMM_WORLD is not the same", "rank 3 is in MPI_Allreduce", "ranks 0-2 are in MPI_Bcast"];
    job.says(Verdict::Still, &[3], &parts);
    job.put(3, operation("Bcast", WORLD, 1, 0, 5));
    job.says(Verdict::Still, &[3], &["rank 3 is in MPI_Bcast with root 1", "ranks 0-2 are in MPI_Bcast with root 0"]);
}

#[test]
fn communicators_are_told_by_their_members() {
    // Even and odd ranks have communicators of their own; 6 is missing in one of them.
    let mut job = job(8, 3);
    for rank in 0..8_u32 {
        let comm = if rank % 2 == 0 { 0xabcd_0123_0000_0001 } else { 0x1234_5678_0000_0002 };
        job.ranks[rank as usize].comms.push(Membership {
            comm,
            rank: rank / 2,
            size: 4,
            inter: false,
            window: false,
            sequence: 8,
        });
        if rank % 2 == 0 && rank != 6 {
            job.put(rank, operation("Allreduce", comm, NOBODY, 0, 9));
        }
    }
    let parts = ["rank 6 is missing in MPI_Allreduce, operation 9 of communicator abcd0123 of 4 ranks 0, 2, 4, 6"];
    job.says(Verdict::Still, &[6], &parts);
    // Peers are ranks of the communicator.
    job.put(0, operation("Recv", 0xabcd_0123_0000_0001, 3, 2, 0));
    assert!(diagnose(None, &job).rows[0].call.contains("MPI_Recv from rank 6 (tag 2, communicator abcd0123"));
}

#[test]
fn fences_of_windows_are_operations_of_their_own() {
    let mut job = job(4, 3);
    let window = 0xabcd_0123_0000_0007;
    for rank in 0..4_u32 {
        let part = Membership { comm: window, rank, size: 4, inter: false, window: true, sequence: 1 };
        job.ranks[rank as usize].comms.push(part);
        if rank != 2 {
            job.put(rank, operation("Win_fence", window, NOBODY, 0, 2));
        }
    }
    let parts =
        ["rank 2 is missing in MPI_Win_fence, operation 2 of window abcd0123 of 4 ranks 0-3, where ranks 0, 1, 3"];
    job.says(Verdict::Still, &[2], &parts);
    // Who frees it where the others meet in a fence is told.
    job.put(2, operation("Win_free", window, NOBODY, 0, 2));
    job.says(Verdict::Still, &[2], &["operation 2 of window abcd0123", "rank 2 is in MPI_Win_free"]);
}

#[test]
fn who_is_probed_for_is_waited_for() {
    let mut job = job(3, 0);
    job.put(0, operation("Probe", WORLD, 1, 5, 0));
    job.says(Verdict::Still, &[1], &["rank 0 has waited for rank 1 for 42.0 s, in MPI_Probe from rank 1 (tag 5)"]);
    // Its message is on its way.
    job.put(1, operation("Send", WORLD, 0, 5, 0));
    assert!(!diagnose(None, &job).sentence.contains("circle"));
}

#[test]
fn dead_stopped_and_silent_ones_come_first() {
    let mut job = job(8, 16);
    (0..8).filter(|&rank| rank != 3).for_each(|rank| job.barrier(rank, 17));
    job.ranks[5].life = Life::Stopped;
    job.ranks[5].life_since = Some(NOW - 40.0);
    job.says(
        Verdict::Still,
        &[5],
        &["rank 5 is stopped (process 105 on n1) by a signal or a debugger, for 40.0 s", "in MPI_Barrier"],
    );
    job.silent.push(SilentNode { host: "n7".into(), since: NOW - 3.0, ranks: vec![8, 9] });
    job.says(Verdict::Failed, &[8, 9], &["node n7 has been silent for 3.0 s, where ranks 8, 9 are"]);
    job.ranks[3].life = Life::Gone;
    job.ranks[3].life_since = Some(NOW - 0.5);
    job.ranks[6].life = Life::Gone;
    job.ranks[6].life_since = Some(NOW - 0.4);
    let parts =
        ["rank 3 (process 103 on n0) ended 0.5 s ago without MPI_Finalize, outside of MPI; after it rank 6 ended"];
    job.says(Verdict::Failed, &[3], &parts);
}

#[test]
fn the_beginning_and_the_end_of_mpi() {
    let mut job = job(4, 0);
    job.ranks.iter_mut().for_each(|state| state.phase = Phase::Init);
    job.ranks.iter_mut().for_each(|state| state.phase_since = SINCE);
    job.says(Verdict::Still, &[0, 1, 2, 3], &["all 4 ranks have been in MPI_Init for 42.0 s"]);
    job.ranks.remove(2);
    job.says(Verdict::Still, &[2], &["rank 2 has not called MPI_Init, where ranks 0, 1, 3 wait for 42.0 s"]);
    let mut job = self::job(3, 2);
    for rank in [0, 2] {
        job.ranks[rank].phase = Phase::Finalizing;
        job.ranks[rank].phase_since = SINCE;
    }
    job.says(Verdict::Still, &[1], &["rank 1 is missing in MPI_Finalize, where ranks 0, 2 have waited"]);
    job.put(1, operation("Recv", WORLD, 0, 9, 0));
    job.says(Verdict::Still, &[0, 1], &["in a circle", "rank 1 in MPI_Recv from rank 0 (tag 9)"]);
    job.ranks.iter_mut().for_each(|state| (state.phase, state.life) = (Phase::Finalized, Life::Gone));
    job.says(Verdict::Finished, &[], &["all 3 ranks have left MPI"]);
    Snapshot { time: NOW, ..Snapshot::default() }.says(Verdict::Unknown, &[], &["no process"]);
}

#[test]
fn slow_is_not_hanging() {
    let mut earlier = job(4, 16);
    (0..3).for_each(|rank| earlier.barrier(rank, 17));
    let mut now = earlier.clone();
    now.time += 0.5;
    // Rank 3 receives messages, while the others wait for it.
    now.ranks[3].moves += 2;
    let found = diagnose(Some(&earlier), &now);
    assert_eq!(found.verdict, Verdict::Moves);
    assert!(
        found
            .sentence
            .starts_with("the job moves: 1 of 4 ranks have made calls of MPI in 0.5 s; but rank 3 is missing")
    );
    // Short waits are no matter for words.
    now.ranks[..3].iter_mut().for_each(|state| state.call.as_mut().unwrap().since = now.time - 1.0);
    assert_eq!(diagnose(Some(&earlier), &now).sentence, "the job moves: 1 of 4 ranks have made calls of MPI in 0.5 s");
}

#[test]
fn waits_for_anybody_and_tests_in_vain_are_told() {
    let mut job = job(2, 0);
    job.put(0, operation("Recv", WORLD, ANY, ANY, 0));
    job.put(1, operation("Recv", WORLD, ANY, ANY, 0));
    job.says(
        Verdict::Still,
        &[0, 1],
        &["wait in MPI_Recv from any rank (any tag)", "nobody has sent it a message that fits"],
    );
    let call = job.put(1, operation("Recv", WORLD, 0, 3, 0)).call.as_mut().unwrap();
    call.polls = true;
    assert_eq!(diagnose(None, &job).rows[1].state, "tests");
}

#[test]
fn ranks_and_times_are_readable() {
    assert_eq!(Ranks(&[3]).to_string(), "rank 3");
    assert_eq!(Ranks(&[5, 0, 1, 2, 7, 8]).to_string(), "ranks 0-2, 5, 7, 8");
    let odd: Vec<u32> = (0..40).map(|rank| 2 * rank).collect();
    assert!(Ranks(&odd).to_string().ends_with("14, ..."));
    assert_eq!(Ranks(&[1]).are("have waited"), "rank 1 has waited");
    assert_eq!([0.02, 0.5, 42.0, 600.0, 9000.0].map(duration), ["20 ms", "0.5 s", "42.0 s", "10 min", "2.5 h"]);
}
