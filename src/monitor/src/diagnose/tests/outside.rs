//! Ranks that will not come, or do nothing: what is said of them.

use super::*;

/// A rank that has neither run nor been ready to.
fn asleep(job: &mut Snapshot, rank: usize) {
    job.ranks[rank].unmoved = CoreTime { turns: 1, within: 42.0, ..CoreTime::default() };
}

#[test]
fn who_sleeps_does_not_compute() {
    let mut job = job(3, 0);
    [0, 2].into_iter().for_each(|rank| job.barrier(rank, 1));
    asleep(&mut job, 1);
    // Whoever waits in a call and sleeps meanwhile waits.
    asleep(&mut job, 0);
    job.says(JobVerdict::Still, &[1], &["rank 1 is missing in MPI_Barrier", "it sleeps, outside of MPI for 42.0 s"]);
    assert_eq!(
        diagnose(None, &job).rows.iter().map(|row| &*row.state).collect::<Vec<_>>(),
        ["waits", "sleeps", "waits"]
    );
    job.ranks[0].call = None;
    job.ranks[2].call = None;
    asleep(&mut job, 2);
    job.ranks[0].unmoved.ran = 40.0;
    job.says(
        JobVerdict::Still,
        &[],
        &["no rank waits in MPI; rank 0 computes outside of MPI, ranks 1, 2 sleep outside of MPI"],
    );
}

#[test]
fn who_is_in_finalize_does_not_come_any_more() {
    // All would wait for each other: 0 in a barrier for 1 to 3, and these in MPI_Finalize for 0.
    let mut job = job(4, 0);
    job.barrier(0, 1);
    for rank in 1..4 {
        job.ranks[rank].phase = Phase::Finalizing;
        job.ranks[rank].phase_since = SINCE;
    }
    let parts = [
        "ranks 1-3 are missing in MPI_Barrier, operation 1 of MPI_COMM_WORLD, where rank 0 has waited for 42.0 s",
        "they have been in MPI_Finalize for 42.0 s",
    ];
    job.says(JobVerdict::Still, &[1, 2, 3], &parts);
    // One of two requests may be complete, and 2 computes.
    let state = job.put(0, operation("Waitall", WORLD, NOBODY, 0, 0));
    let call = state.call.as_mut().unwrap();
    call.what = None;
    call.requests = 2;
    call.waits = [1, 2].iter().map(|&peer| operation("Irecv", WORLD, peer, 1, 0)).collect();
    job.ranks[2].phase = Phase::Running;
    job.says(JobVerdict::Still, &[2], &["it computes"]);
}

#[test]
fn messages_that_do_not_match_are_told() {
    let mut one = job(3, 0);
    one.put(0, operation("Send", WORLD, 1, 5, 0));
    one.put(1, operation("Recv", WORLD, 0, 6, 0));
    one.says(JobVerdict::Still, &[0, 1], &["MPI_Recv from rank 0 (tag 6); their tags differ"]);
    // Both receive: nothing is to match.
    one.put(0, operation("Recv", WORLD, 1, 5, 0));
    assert!(!diagnose(None, &one).sentence.contains("differ"));
    const OTHER: u64 = 0xabcd_0123_4567_89ab;
    for rank in 0..2 {
        let other = CommMembership { comm: OTHER, rank, size: 2, ..CommMembership::default() };
        one.ranks[rank as usize].comms.push(other);
    }
    one.put(0, operation("Send", OTHER, 1, 6, 0));
    one.says(JobVerdict::Still, &[0, 1], &["; their communicators differ"]);
}

#[test]
fn who_waits_for_nobody_else_comes_first() {
    // 1 computes: 0 waits for its message, 2 and 3 in a barrier for 0 as well.
    let mut job = job(4, 0);
    job.put(0, operation("Recv", WORLD, 1, 7, 0));
    (2..4).for_each(|rank| job.barrier(rank, 1));
    job.says(
        JobVerdict::Still,
        &[1],
        &["rank 0 has waited for rank 1 for 42.0 s, in MPI_Recv from rank 1 (tag 7) (2 more ranks wait for it)"],
    );
}

#[test]
fn ranks_wait_for_neighbours_that_have_not_come() {
    // Only 1 and 3 have 2 as a neighbor; 0 is in the next barrier, for which it needs all.
    let mut job = job(4, 4);
    for rank in [1, 3] {
        job.put(rank, operation("Neighbor_allgather", WORLD, NOBODY, 0, 5));
    }
    job.barrier(0, 6);
    let parts =
        ["rank 2 is missing in MPI_Neighbor_allgather, operation 5 of MPI_COMM_WORLD, where ranks 1, 3 have waited"];
    job.says(JobVerdict::Still, &[2], &parts);
}

#[test]
fn communicators_and_files_have_their_names() {
    const OF: u64 = 0xabcd_0123_4567_89ab;
    let mut job = job(3, 0);
    for rank in 0..3 {
        let name = Some("solver".to_owned());
        let of = CommMembership { comm: OF, rank, size: 3, name, sequence: 1, ..CommMembership::default() };
        job.ranks[rank as usize].comms.push(of);
    }
    for rank in [0, 1] {
        job.put(rank, operation("Barrier", OF, NOBODY, 0, 2));
    }
    job.says(JobVerdict::Still, &[2], &["operation 2 of communicator \"solver\" of 3 ranks 0-2"]);
    for rank in &mut job.ranks {
        rank.comms[1].file = true;
        rank.comms[1].name = None;
    }
    job.says(JobVerdict::Still, &[2], &["operation 2 of file abcd0123 of 3 ranks 0-2"]);
}

#[test]
fn a_job_that_has_moved_just_now_is_not_said_to_move_all_the_time() {
    let mut job = job(2, 0);
    job.ranks.iter_mut().for_each(|rank| rank.moved = NOW - 0.5);
    let earlier = Snapshot { time: NOW - 0.3, ..job.clone() };
    let said = diagnose(Some(&earlier), &job);
    assert_eq!(said.verdict, JobVerdict::Moves);
    assert_eq!(said.sentence, "the job makes progress: 2 ranks; the last MPI call returned 0.5 s ago");
}

#[test]
fn where_the_recorder_has_stopped_nothing_is_known() {
    let mut job = job(3, 0);
    job.ranks.iter_mut().for_each(|rank| rank.phase = Phase::Unwatched);
    job.says(JobVerdict::Unknown, &[], &["what ranks 0-2 do is unknown: the recorder has stopped there"]);
    job.ranks[0].phase = Phase::Finalized;
    job.ranks[2].phase = Phase::Finalized;
    job.says(JobVerdict::Unknown, &[], &["what rank 1 does is unknown"]);
    // Others wait for it.
    job.ranks[0].phase = Phase::Running;
    job.put(0, operation("Recv", WORLD, 1, 7, 0));
    job.says(JobVerdict::Still, &[1], &["it has been unmonitored, since the recorder stopped"]);
}

#[test]
fn ranks_that_make_a_communicator_of_some_may_wait_for_who_is_outside() {
    let mut job = job(4, 0);
    for rank in [0, 2] {
        job.put(rank, operation("Comm_create_group", WORLD, NOBODY, 0, 0));
    }
    let parts =
        ["ranks 0, 2 have waited for ranks 1, 3 for 42.0 s, in MPI_Comm_create_group, which may need ranks 1, 3"];
    job.says(JobVerdict::Still, &[1, 3], &parts);
    job.barrier(3, 1);
    let parts = ["rank 1 is missing in MPI_Barrier, operation 1 of MPI_COMM_WORLD, where rank 3 has waited for 42.0 s"];
    job.says(JobVerdict::Still, &[1], &parts);
    // All are inside.
    job.put(1, operation("Recv", WORLD, 3, 1, 0));
    job.says(JobVerdict::Still, &[1, 3], &["in a cycle"]);
}
