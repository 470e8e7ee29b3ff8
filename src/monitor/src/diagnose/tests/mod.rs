//! Snapshots made by hand, and what they say.

mod communicators;
mod outside;
mod windows;

use super::*;
use crate::state::layout::{ANY, NOBODY, WORLD};
use crate::state::{CommMembership, MpiCall, Operation};

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
        unmoved: CoreTime::default(),
        comms: vec![CommMembership { comm: WORLD, rank, size, sequence, ..CommMembership::default() }],
        epochs: Vec::new(),
        lost: 0,
    };
    Snapshot { time: NOW, ranks: (0..size).map(rank).collect(), ..Snapshot::default() }
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
        state.call = Some(MpiCall {
            function,
            since: SINCE,
            what: Some(operation),
            waits: Vec::new(),
            requests: 0,
            polls: false,
        });
        state
    }

    fn barrier(&mut self, rank: u32, sequence: u64) {
        self.put(rank, operation("Barrier", WORLD, NOBODY, 0, sequence));
    }

    #[track_caller]
    fn says(&self, verdict: JobVerdict, ranks: &[u32], parts: &[&str]) {
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
        "no progress for 42.0 s: rank 3 is missing in MPI_Barrier, operation 17 of MPI_COMM_WORLD",
        "where ranks 0-2, 4-7 have waited for 42.0 s",
        "it computes in region solve, outside of MPI for 42.0 s",
    ];
    job.says(JobVerdict::Still, &[3], &parts);
    let comm = &diagnose(None, &job).comms[0];
    assert_eq!((comm.sequence, comm.waiting, comm.size, &comm.behind[..]), (17, 7, 8, &[3][..]));
}

#[test]
fn ranks_without_a_core_are_told_from_those_that_hang() {
    let mut job = job(4, 16);
    [0, 1].into_iter().for_each(|rank| job.barrier(rank, 17));
    let core = |ran, waited, turns| CoreTime { ran, waited, turns, ..CoreTime::default() };
    // Of those that are missing one has hardly had a core; the other one does not want one. Whoever waits for them is no reason.
    job.ranks[3].unmoved = core(0.02, 41.0, 100);
    job.ranks[2].unmoved = core(0.0, 0.1, 1);
    job.ranks[0].unmoved = core(0.02, 41.0, 10);
    let parts = [
        "no progress for 42.0 s, in which rank 3 has waited for a processor core that others have taken: ranks 2, 3 are missing in MPI_Barrier",
    ];
    job.says(JobVerdict::Still, &[2, 3], &parts);
    assert_eq!(diagnose(None, &job).starved, [3]);
    for (ran, waited) in [(0.3, 41.0), (0.02, 20.0)] {
        job.ranks[3].unmoved = core(ran, waited, 100);
        assert_eq!(diagnose(None, &job).starved, [] as [u32; 0]);
    }
    // Where all wait in a call, a look or two per second would do.
    [2, 3].into_iter().for_each(|rank| job.barrier(rank, 17));
    job.ranks[1].unmoved = core(0.02, 41.0, 4000);
    assert_eq!(diagnose(None, &job).starved, [0]);
    job.ranks[0].life = Life::Stopped;
    assert_eq!(diagnose(None, &job).starved, [] as [u32; 0]);
}

#[test]
fn who_waits_for_those_that_wait_is_traced_to_the_end() {
    // 1 computes, 0 waits for its message, the others wait for 0 in a barrier.
    let mut job = job(4, 0);
    job.put(0, operation("Recv", WORLD, 1, 7, 0));
    (2..4).for_each(|rank| job.barrier(rank, 1));
    job.ranks[1].comms[0].sequence = 1;
    job.says(
        JobVerdict::Still,
        &[1],
        &["rank 0 has waited for rank 1 for 42.0 s, in MPI_Recv from rank 1 (tag 7)", "(2 more"],
    );
}

#[test]
fn cycles_of_receives_are_told_with_their_tags() {
    let mut job = job(4, 0);
    for rank in 0..3_u32 {
        job.put(rank, operation("Recv", WORLD, (rank as i32 + 1) % 3, 10 + rank as i32, 0));
    }
    job.barrier(3, 1);
    let parts = [
        "ranks 0-2 wait in a cycle, for up to 42.0 s: rank 0 in MPI_Recv from rank 1 (tag 10)",
        "rank 2 in MPI_Recv from rank 0 (tag 12)",
        "1 more rank waits for them",
    ];
    job.says(JobVerdict::Still, &[0, 1, 2], &parts);
}

#[test]
fn a_message_on_its_way_is_no_cycle() {
    let mut one = job(2, 0);
    one.put(0, operation("Send", WORLD, 1, 5, 0));
    one.put(1, operation("Recv", WORLD, 0, ANY, 0));
    assert!(!diagnose(None, &one).sentence.contains("cycle"));
    // With another tag it is.
    one.put(1, operation("Recv", WORLD, 0, 6, 0));
    one.says(JobVerdict::Still, &[0, 1], &["in a cycle", "MPI_Send to rank 1 (tag 5)", "MPI_Recv from rank 0 (tag 6)"]);
}

#[test]
fn requests_that_may_be_complete_make_no_cycle_where_somebody_computes() {
    // A halo exchange in a row: 2 computes; 0 and 1 have each other's messages already.
    let mut job = job(3, 0);
    for (rank, peers) in [(0, &[1][..]), (1, &[0, 2])] {
        let state = job.put(rank, operation("Waitall", WORLD, NOBODY, 0, 0));
        let call = state.call.as_mut().unwrap();
        call.what = None;
        call.requests = 2;
        call.waits = peers.iter().map(|&peer| operation("Irecv", WORLD, peer, 1, 0)).collect();
    }
    job.says(
        JobVerdict::Still,
        &[2],
        &["rank 1 has waited for rank 2", "MPI_Irecv from rank 2 (tag 1)", "it computes"],
    );
}

#[test]
fn who_is_probed_for_is_waited_for() {
    let mut job = job(3, 0);
    job.put(0, operation("Probe", WORLD, 1, 5, 0));
    job.says(JobVerdict::Still, &[1], &["rank 0 has waited for rank 1 for 42.0 s, in MPI_Probe from rank 1 (tag 5)"]);
    // Its message is on its way.
    job.put(1, operation("Send", WORLD, 0, 5, 0));
    assert!(!diagnose(None, &job).sentence.contains("cycle"));
}

#[test]
fn who_is_looked_for_again_and_again_is_waited_for_the_least() {
    // 0 looks for a message of 1, which computes; 2 and 3 wait for 0.
    let mut job = job(4, 0);
    job.put(0, operation("Iprobe", WORLD, 1, 5, 0)).call.as_mut().unwrap().polls = true;
    [2, 3].iter().for_each(|&rank| drop(job.put(rank, operation("Recv", WORLD, 0, 1, 0)).call.clone()));
    let parts =
        ["rank 0 has waited for rank 1 for 42.0 s, in repeated MPI_Iprobe from rank 1 (tag 5) (2 more ranks wait"];
    job.says(JobVerdict::Still, &[1], &parts);
    assert_eq!(diagnose(None, &job).rows[0].call, "repeated MPI_Iprobe from rank 1 (tag 5)");
    // Where somebody waits more than that for somebody else, that one is named.
    job.put(2, operation("Recv", WORLD, 3, 1, 0));
    job.ranks[3].call = None;
    job.says(JobVerdict::Still, &[3], &["rank 2 has waited for rank 3"]);
    // A cycle over it is one, if there is no better reason.
    job.put(3, operation("Recv", WORLD, 2, 1, 0));
    job.says(JobVerdict::Still, &[2, 3], &["ranks 2, 3 wait in a cycle"]);
    job.put(1, operation("Send", WORLD, 0, 6, 0));
    [2, 3].iter().for_each(|&rank: &usize| job.ranks[rank].call = None);
    let parts = ["ranks 0, 1 wait in a cycle", "rank 0 in MPI_Iprobe from rank 1 (tag 5)", "rank 1 in MPI_Send to"];
    job.says(JobVerdict::Still, &[0, 1], &parts);
    // Its message is on its way; then it would take one of anybody, so it holds up the other one.
    job.put(1, operation("Send", WORLD, 0, 5, 0));
    assert!(!diagnose(None, &job).sentence.contains("cycle"));
    job.put(0, operation("Improbe", WORLD, ANY, ANY, 0)).call.as_mut().unwrap().polls = true;
    job.put(1, operation("Recv", WORLD, 0, 6, 0));
    let parts =
        ["rank 1 has waited for rank 0", "it has been in repeated MPI_Improbe from any rank (any tag) for 42.0 s"];
    job.says(JobVerdict::Still, &[0], &parts);
}

#[test]
fn who_waits_for_anybody_may_be_missing_elsewhere() {
    let mut job = job(3, 0);
    [0, 2].iter().for_each(|&rank| job.barrier(rank, 1));
    job.put(1, operation("Recv", WORLD, ANY, ANY, 0));
    job.says(
        JobVerdict::Still,
        &[1],
        &[
            "rank 1 is missing in MPI_Barrier, operation 1",
            "it has been in MPI_Recv from any rank (any tag) for 42.0 s",
        ],
    );
}

#[test]
fn dead_stopped_and_silent_ones_come_first() {
    let mut job = job(8, 16);
    (0..8).filter(|&rank| rank != 3).for_each(|rank| job.barrier(rank, 17));
    job.ranks[5].life = Life::Stopped;
    job.ranks[5].life_since = Some(NOW - 40.0);
    job.says(
        JobVerdict::Still,
        &[5],
        &["rank 5 has been stopped by a signal or a debugger for 40.0 s (process 105 on n1)", "in MPI_Barrier"],
    );
    job.silent.push(SilentNode { host: "n7".into(), since: NOW - 3.0, ranks: vec![8, 9] });
    job.says(JobVerdict::Failed, &[8, 9], &["node n7 (ranks 8, 9) has been silent for 3.0 s"]);
    job.ranks[3].life = Life::Gone;
    job.ranks[3].life_since = Some(NOW - 0.5);
    job.ranks[6].life = Life::Gone;
    job.ranks[6].life_since = Some(NOW - 0.4);
    let parts =
        ["rank 3 (process 103 on n0) ended 0.5 s ago without MPI_Finalize, outside of MPI; rank 6 ended after it"];
    job.says(JobVerdict::Failed, &[3], &parts);
    // Nobody is blamed for having been seen first.
    job.ranks[1].life = Life::Gone;
    job.ranks[1].life_since = Some(NOW - 0.5);
    let parts = [
        "ranks 1, 3 ended 0.5 s ago without MPI_Finalize, it is not known which of them first; rank 6 ended after them",
    ];
    job.says(JobVerdict::Failed, &[1, 3], &parts);
}

#[test]
fn the_beginning_and_the_end_of_mpi() {
    let mut job = job(4, 0);
    job.ranks.iter_mut().for_each(|state| state.phase = Phase::Init);
    job.ranks.iter_mut().for_each(|state| state.phase_since = SINCE);
    job.says(JobVerdict::Still, &[0, 1, 2, 3], &["all 4 ranks have been in MPI_Init for 42.0 s"]);
    job.ranks.remove(2);
    job.says(
        JobVerdict::Still,
        &[2],
        &["rank 2 has not called MPI_Init, in which ranks 0, 1, 3 have waited for 42.0 s"],
    );
    let mut job = self::job(3, 2);
    for rank in [0, 2] {
        job.ranks[rank].phase = Phase::Finalizing;
        job.ranks[rank].phase_since = SINCE;
    }
    job.says(JobVerdict::Still, &[1], &["rank 1 is missing in MPI_Finalize, where ranks 0, 2 have waited"]);
    job.put(1, operation("Recv", WORLD, 0, 9, 0));
    job.says(JobVerdict::Still, &[0], &["rank 1 has waited for rank 0 for 42.0 s, in MPI_Recv from rank 0 (tag 9)"]);
    job.ranks.iter_mut().for_each(|state| (state.phase, state.life) = (Phase::Finalized, Life::Gone));
    job.says(JobVerdict::Finished, &[], &["all 3 ranks have left MPI"]);
    Snapshot { time: NOW, ..Snapshot::default() }.says(JobVerdict::Unknown, &[], &["no process"]);
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
    assert_eq!(found.verdict, JobVerdict::Moves);
    assert!(found.sentence.starts_with(
        "the job makes progress: 1 of 4 ranks have completed MPI calls in the last 0.5 s; but rank 3 is missing"
    ));
    // Short waits are no matter for words.
    now.ranks[..3].iter_mut().for_each(|state| state.call.as_mut().unwrap().since = now.time - 1.0);
    assert_eq!(
        diagnose(Some(&earlier), &now).sentence,
        "the job makes progress: 1 of 4 ranks have completed MPI calls in the last 0.5 s"
    );
}

#[test]
fn waits_for_anybody_and_tests_in_vain_are_told() {
    let mut job = job(2, 0);
    job.put(0, operation("Recv", WORLD, ANY, ANY, 0));
    job.put(1, operation("Recv", WORLD, ANY, ANY, 0));
    job.says(
        JobVerdict::Still,
        &[0, 1],
        &["wait in MPI_Recv from any rank (any tag)", "no matching message has been sent"],
    );
    let call = job.put(1, operation("Recv", WORLD, 0, 3, 0)).call.as_mut().unwrap();
    call.polls = true;
    assert_eq!(diagnose(None, &job).rows[1].state, "tests");
}

/// Of those that are missing, 0 is in a call whose waits are not followed, perhaps for 1.
#[test]
fn all_that_the_missing_ones_do_is_told_and_who_computes_first() {
    let mut job = job(4, 0);
    (2..4).for_each(|rank| job.barrier(rank, 1));
    job.put(0, operation("Comm_create_group", WORLD, NOBODY, 0, 0)).call.as_mut().unwrap().what = None;
    let parts = [
        "ranks 0, 1 are missing in MPI_Barrier, operation 1 of MPI_COMM_WORLD, where ranks 2, 3 have waited",
        "; rank 1 computes, outside of MPI for 42.0 s, rank 0 has been in MPI_Comm_create_group for 42.0 s",
    ];
    job.says(JobVerdict::Still, &[0, 1], &parts);
    job.ranks[0].call = None;
    job.says(JobVerdict::Still, &[0, 1], &["; they compute, outside of MPI for 42.0 s"]);
}

/// 0 waits for 1 and 2 for 3: nobody waits for both.
#[test]
fn of_two_ranks_that_are_missing_each_is_told_where_it_is() {
    let mut job = job(4, 0);
    job.put(0, operation("Recv", WORLD, 1, 1, 0));
    job.put(2, operation("Recv", WORLD, 3, 2, 0));
    let parts = [
        "rank 0 has waited for rank 1 for 42.0 s, in MPI_Recv from rank 1 (tag 1), and rank 2 has waited for rank 3 for 42.0 s",
        "in MPI_Recv from rank 3 (tag 2); they compute",
    ];
    job.says(JobVerdict::Still, &[1, 3], &parts);
}

/// 2 may have sent to 0 what that waits for, but not to 1.
#[test]
fn a_wait_that_is_certain_is_told_before_one_of_several_requests() {
    let mut job = job(3, 0);
    let call = job.put(0, operation("Waitall", WORLD, NOBODY, 0, 0)).call.as_mut().unwrap();
    let requests = vec![operation("Irecv", WORLD, 1, 7, 0), operation("Irecv", WORLD, 2, 8, 0)];
    (call.what, call.waits, call.requests) = (None, requests, 2);
    let call = job.put(1, operation("Test", WORLD, NOBODY, 0, 0)).call.as_mut().unwrap();
    (call.what, call.waits, call.requests, call.polls) = (None, vec![operation("Irecv", WORLD, 2, 9, 0)], 1, true);
    let parts =
        ["rank 1 has waited for rank 2 for 42.0 s, in repeated MPI_Test for MPI_Irecv from rank 2 (tag 9) (1 more"];
    job.says(JobVerdict::Still, &[2], &parts);
}

/// Both requests belong to collective operations; rank 1 has come to the first one.
#[test]
fn of_several_requests_the_one_is_told_that_is_waited_for() {
    let mut job = job(2, 4);
    let call = job.put(0, operation("Ibarrier", WORLD, NOBODY, 0, 5)).call.as_mut().unwrap();
    let requests = [4, 5].map(|sequence| operation("Ibarrier", WORLD, NOBODY, 0, sequence)).to_vec();
    (call.function, call.what, call.waits, call.requests) = ("MPI_Waitall".into(), None, requests, 2);
    job.says(
        JobVerdict::Still,
        &[1],
        &["rank 1 is missing in MPI_Ibarrier, operation 5 of MPI_COMM_WORLD, where rank 0"],
    );
    job.put(1, operation("Recv", WORLD, 0, 7, 0));
    let parts =
        ["rank 0 in MPI_Waitall for 2 requests, among them MPI_Ibarrier, operation 5 of MPI_COMM_WORLD, rank 1"];
    job.says(JobVerdict::Still, &[0, 1], &parts);
}

#[test]
fn who_is_in_a_call_that_is_not_followed_does_not_compute() {
    let mut job = job(4, 0);
    for rank in [0, 2, 3] {
        job.put(rank, operation("File_open", WORLD, NOBODY, 0, 0)).call.as_mut().unwrap().what = None;
    }
    let parts = [
        "ranks 0, 2, 3 have been in MPI_File_open for 42.0 s; for whom is unknown",
        "; rank 1 computes, outside of MPI for 42.0 s",
    ];
    job.says(JobVerdict::Still, &[1], &parts);
    job.put(1, operation("File_open", WORLD, NOBODY, 0, 0)).call.as_mut().unwrap().what = None;
    job.says(JobVerdict::Still, &[0, 1, 2, 3], &["ranks 0-3 have been in MPI_File_open for 42.0 s"]);
}

/// As in `MPI_Intercomm_create`, in which one leader waits for the other.
#[test]
fn who_computes_is_told_beside_a_wait_for_somebody_unknown() {
    let mut job = job(4, 0);
    for rank in [0, 2] {
        job.put(rank, operation("Intercomm_create", WORLD, NOBODY, 0, 0));
    }
    let parts = ["ranks 0, 2 wait in MPI_Intercomm_create", "cannot be determined; ranks 1, 3 compute, outside of MPI"];
    job.says(JobVerdict::Still, &[1, 3], &parts);
}

#[test]
fn a_request_is_told_with_the_call_that_waits_for_it() {
    let mut job = job(3, 0);
    let call = job.put(0, operation("Wait", WORLD, NOBODY, 0, 0)).call.as_mut().unwrap();
    (call.what, call.waits, call.requests) = (None, vec![operation("Recv_init", WORLD, 1, 8, 0)], 1);
    job.says(JobVerdict::Still, &[1], &["rank 0 has waited", "in MPI_Wait for MPI_Recv_init from rank 1 (tag 8); it"]);
    let call = job.ranks[0].call.as_mut().unwrap();
    (call.function, call.requests) = ("MPI_Waitany".into(), 4);
    job.says(JobVerdict::Still, &[1], &["in MPI_Waitany for 4 requests, among them MPI_Recv_init from rank 1 (tag 8)"]);
    (job.ranks[0].call.as_mut().unwrap().function, job.ranks[0].call.as_mut().unwrap().requests) =
        ("MPI_Wait".into(), 1);
    job.put(1, operation("Recv", WORLD, 0, 1, 0));
    job.says(JobVerdict::Still, &[0, 1], &["in a cycle", "rank 0 in MPI_Wait for MPI_Recv_init from rank 1 (tag 8)"]);
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

/// An agent that could not start said so to nobody, and its ranks were blamed for not having called `MPI_Init`.
#[test]
fn ranks_of_a_node_without_an_agent_are_not_blamed() {
    let mut here = job(4, 1);
    here.ranks.truncate(2);
    here.ranks.iter_mut().for_each(|rank| (rank.phase, rank.call) = (Phase::Init, None));
    let without = diagnose(None, &here);
    assert!(without.sentence.contains("ranks 2, 3 have not called MPI_Init"), "{}", without.sentence);
    let failed = FailedAgent { host: "n2".to_owned(), why: "this node has no network interface ib0".to_owned() };
    here.unmonitored = vec![failed];
    let found = diagnose(None, &here);
    assert!(!found.sentence.contains("not called MPI_Init"), "{}", found.sentence);
    let told = "node n2 is not monitored: this node has no network interface ib0";
    assert!(found.text().contains(told), "{}", found.text());
    here.ranks.clear();
    let found = diagnose(None, &here);
    assert_eq!(found.sentence, format!("no process of the job is known: {told}"));
}
