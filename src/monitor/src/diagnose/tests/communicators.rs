//! Communicators: their names, their operations, and those between two groups.

use super::*;

#[test]
fn communicators_are_told_by_their_members() {
    // Even and odd ranks have communicators of their own; 6 is missing in one of them.
    let mut job = job(8, 3);
    for rank in 0..8_u32 {
        let comm = if rank % 2 == 0 { 0xabcd_0123_0000_0001 } else { 0x1234_5678_0000_0002 };
        job.ranks[rank as usize].comms.push(CommMembership {
            comm,
            rank: rank / 2,
            size: 4,
            sequence: 8,
            ..CommMembership::default()
        });
        if rank % 2 == 0 && rank != 6 {
            job.put(rank, operation("Allreduce", comm, NOBODY, 0, 9));
        }
    }
    let parts = ["rank 6 is missing in MPI_Allreduce, operation 9 of communicator abcd0123 of 4 ranks 0, 2, 4, 6"];
    job.says(JobVerdict::Still, &[6], &parts);
    // Peers are ranks of the communicator.
    job.put(0, operation("Recv", 0xabcd_0123_0000_0001, 3, 2, 0));
    assert!(diagnose(None, &job).rows[0].call.contains("MPI_Recv from rank 6 (tag 2, communicator abcd0123"));
}

#[test]
fn peers_of_inter_communicators_are_in_the_other_group() {
    // Even ranks are the first group, odd ones the second.
    let inter = 0xabcd_0123_0000_0009;
    let mut job = job(6, 0);
    for rank in 0..6_u32 {
        let (second, window) = (rank % 2 == 1, false);
        let part = CommMembership {
            comm: inter,
            rank: rank / 2,
            size: 3,
            inter: true,
            second,
            window,
            sequence: 4,
            ..CommMembership::default()
        };
        job.ranks[rank as usize].comms.push(part);
    }
    // Rank 1 of the other group is 3 for those of the first one, and 2 for those of the second one.
    let name = "inter-communicator abcd0123 of 3 ranks 0, 2, 4 and 3 ranks 1, 3, 5";
    job.put(0, operation("Recv", inter, 1, 7, 0));
    job.says(
        JobVerdict::Still,
        &[3],
        &["rank 0 has waited for rank 3", &format!("MPI_Recv from rank 3 (tag 7, {name})")],
    );
    job.put(3, operation("Recv", inter, 1, 8, 0));
    job.says(JobVerdict::Still, &[2], &["rank 3 has waited for rank 2", "(1 more rank waits for it); it computes"]);
    job.put(3, operation("Recv", inter, 0, 8, 0));
    job.says(JobVerdict::Still, &[0, 3], &["ranks 0, 3 wait in a cycle", "rank 3 in MPI_Recv from rank 0 (tag 8"]);
    job.put(3, operation("Send", inter, 0, 7, 0));
    assert!(!diagnose(None, &job).sentence.contains("cycle"));
    // A barrier needs all; a root is needed by the other group, and needs that.
    (0..6).for_each(|rank| drop(job.put(rank, operation("Barrier", inter, NOBODY, 0, 5)).call.clone()));
    (job.ranks[4].call, job.ranks[4].comms[1].sequence) = (None, 4);
    job.says(
        JobVerdict::Still,
        &[4],
        &[&format!("rank 4 is missing in MPI_Barrier, operation 5 of {name}, where ranks 0-3, 5")],
    );
    let comm = &diagnose(None, &job).comms[0];
    assert_eq!((comm.waiting, comm.size, &comm.behind[..]), (5, 6, &[4][..]));
    let mut bcast = |missing: u32| {
        for rank in 0..6 {
            (job.ranks[rank as usize].call, job.ranks[rank as usize].comms[1].sequence) = (None, 4);
            // Rank 2 is the root; 0 and 4 of its group have come and gone.
            let root = if rank % 2 == 1 { 1 } else { NOBODY };
            if rank != missing {
                job.put(rank, operation("Bcast", inter, root, 0, 5));
            }
            if matches!(rank, 0 | 4) {
                job.ranks[rank as usize].call = None;
            }
        }
        diagnose(None, &job)
    };
    let found = bcast(2);
    assert_eq!(found.ranks, [2], "{}", found.sentence);
    let root = "rank 2 is missing in MPI_Bcast with root 1 of the other group, operation 5 of inter-communicator";
    assert!(found.sentence.contains(root) && found.sentence.contains("where ranks 1, 3, 5"), "{}", found.sentence);
    let found = bcast(5);
    assert_eq!(found.ranks, [5], "{}", found.sentence);
    assert!(found.sentence.contains("where rank 2 has waited"), "{}", found.sentence);
    // One of the root's group that has not come holds up nobody.
    let found = bcast(4);
    assert_eq!(found.ranks, [1, 3, 5], "{}", found.sentence);
    assert!(found.sentence.ends_with("all required members have begun it"), "{}", found.sentence);
    // Other operations are told, other roots of the two groups are none.
    job.put(0, operation("Reduce", inter, NOBODY, 0, 5));
    job.says(JobVerdict::Still, &[0], &["operation 5 of inter-communicator abcd0123", "rank 0 is in MPI_Reduce"]);
}

#[test]
fn different_operations_and_roots_are_told() {
    let mut job = job(4, 4);
    (0..3).for_each(|rank| drop(job.put(rank, operation("Bcast", WORLD, 0, 0, 5)).call.clone()));
    job.put(3, operation("Allreduce", WORLD, NOBODY, 0, 5));
    let parts = [
        "ranks disagree on operation 5 of MPI_COMM_WORLD: ",
        "rank 3 is in MPI_Allreduce",
        "ranks 0-2 are in MPI_Bcast",
    ];
    job.says(JobVerdict::Still, &[3], &parts);
    job.put(3, operation("Bcast", WORLD, 1, 0, 5));
    job.says(
        JobVerdict::Still,
        &[3],
        &["rank 3 is in MPI_Bcast with root 1", "ranks 0-2 are in MPI_Bcast with root 0"],
    );
}
