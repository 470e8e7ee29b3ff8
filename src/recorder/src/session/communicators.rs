//! What MPI says of the communicators, groups and windows of a program, and how they are recorded.

use super::{Session, get};
use crate::format::{COMMUNICATOR, INTER, LONGEST_TEXT, NAME, NAME_OF_WINDOW};
use crate::layout;
use crate::monitor::NewMembership;
use crate::stream::{LONGEST, Stream};
use std::ffi::c_int;

impl Session {
    /// What a function says of a communicator; 0 for none, of which MPI would complain before the program asks it.
    fn of_comm(&self, function: unsafe extern "C" fn(usize, usize) -> c_int, comm: u64) -> c_int {
        if comm == self.abi.no_comm || comm == 0 { 0 } else { get(function, comm) }
    }

    /// Rank of this process in a communicator.
    pub(crate) fn rank_in(&self, comm: u64) -> usize {
        self.of_comm(self.abi.mpi.comm_rank, comm).max(0) as usize
    }

    /// Number of processes of a communicator, or of the own group of an inter-communicator.
    pub(crate) fn size_of(&self, comm: u64) -> usize {
        self.of_comm(self.abi.mpi.comm_size, comm).max(0) as usize
    }

    /// Whether this process has a rank of an intra-communicator, which is where roots are given by their ranks in the own group.
    pub(crate) fn is_rank(&self, comm: u64, rank: i64) -> bool {
        self.of_comm(self.abi.mpi.comm_test_inter, comm) == 0
            && i64::from(self.of_comm(self.abi.mpi.comm_rank, comm)) == rank
    }

    /// With how many processes this one exchanges data in a collective operation.
    pub(crate) fn peers(&self, comm: u64) -> usize {
        if self.of_comm(self.abi.mpi.comm_test_inter, comm) == 0 {
            return self.size_of(comm);
        }
        self.of_comm(self.abi.mpi.comm_remote_size, comm).max(0) as usize
    }

    /// Records a communicator that this process has become a member of, with its members if `list` is set or there is no other way to tell which
    /// one it is. Its group is that of `comm`, which is the communicator itself unless that cannot be asked yet. Returns what it is, if it is one; nothing
    /// at all if there was no room.
    #[cold]
    pub(crate) fn describe(
        &self,
        stream: &mut Stream,
        handle: u64,
        comm: u64,
        list: bool,
    ) -> Option<Option<NewMembership>> {
        if handle == self.abi.no_comm || handle == 0 {
            return Some(None);
        }
        let mpi = &self.abi.mpi;
        let (rank, size) = (get(mpi.comm_rank, comm).max(0) as usize, get(mpi.comm_size, comm).max(0) as usize);
        let inter = get(mpi.comm_test_inter, comm) != 0;
        let list = list || inter || rank == 0;
        let members = self.global_ranks(mpi.comm_group, comm, if list { size } else { 1 });
        let others = if inter { get(mpi.comm_remote_size, comm).max(0) as usize } else { 0 };
        if !stream.reserve(members.len() + others + 16) {
            return None;
        }
        stream.unsigned(COMMUNICATOR);
        stream.comm(handle);
        stream.unsigned(rank as u64);
        stream.unsigned(if inter { INTER } else { 0 });
        let write = |stream: &mut Stream, ranks: &[c_int]| {
            stream.unsigned(ranks.len() as u64);
            ranks.iter().for_each(|&rank| stream.unsigned(rank as u32 as u64));
        };
        write(stream, if list { &members } else { &[] });
        stream.unsigned(members.first().map_or(u64::MAX, |&member| member as u32 as u64));
        let tell = |ranks: &[c_int]| {
            let ranks: Vec<u64> = ranks.iter().map(|&rank| rank as u32 as u64).collect();
            (ranks.first().copied().unwrap_or(u64::MAX), layout::identity(&ranks))
        };
        let (first, all) = tell(&members);
        let mut remote = None;
        if inter {
            let ranks = self.global_ranks(mpi.comm_remote_group, comm, others);
            write(stream, &ranks);
            remote = Some(tell(&ranks));
        }
        Some(Some(NewMembership { handle, rank, size, first, members: all, others: remote }))
    }

    /// Appends a group: number of members and their global ranks. Returns whether there was room.
    pub(crate) fn group(&self, stream: &mut Stream, group: u64) -> bool {
        let mpi = &self.abi.mpi;
        let count = get(mpi.group_size, group).max(0) as usize;
        if !stream.reserve(count + 16) {
            return false;
        }
        let ranks = stream.scratch(8 * count.max(1)).cast::<c_int>();
        if ranks.is_null() {
            return false;
        }
        // SAFETY: the scratch has room for twice as many ranks.
        unsafe {
            let global = ranks.add(count);
            (0..count).for_each(|k| *ranks.add(k) = k as c_int);
            let world = self.world_group as usize;
            (mpi.group_translate_ranks)(group as usize, count, ranks as usize, world, global as usize);
            stream.group(count);
        }
        true
    }

    /// Records the name that a communicator or a window has now, and tells it. Returns whether there was room.
    #[cold]
    pub(crate) fn name(&self, stream: &mut Stream, class: u64, handle: u64, tell: impl FnOnce(&[u8])) -> bool {
        // MPI_MAX_OBJECT_NAME is 64 or 128.
        let mut name = [0_u8; 1024];
        let mut length: c_int = 0;
        let mpi = &self.abi.mpi;
        let ask = if class == NAME_OF_WINDOW { mpi.win_get_name } else { mpi.comm_get_name };
        // SAFETY: the name is longer than any.
        unsafe { ask(handle as usize, name.as_mut_ptr() as usize, &raw mut length as usize) };
        if !stream.reserve(LONGEST_TEXT / LONGEST + 16) {
            return false;
        }
        stream.unsigned(NAME);
        stream.unsigned(class);
        if class == NAME_OF_WINDOW {
            stream.win(handle)
        } else {
            stream.comm(handle)
        }
        let name = &name[..(length.max(0) as usize).min(name.len())];
        stream.text(name);
        tell(name);
        true
    }

    /// Ranks in `MPI_COMM_WORLD` of the first `count` members of a group of a communicator.
    fn global_ranks(
        &self,
        group_of: unsafe extern "C" fn(usize, usize) -> c_int,
        comm: u64,
        count: usize,
    ) -> Vec<c_int> {
        let ranks: Vec<c_int> = (0..count as c_int).collect();
        let mut global = vec![-1; count];
        let (mut group, mut world) = (0_u64, 0_u64);
        let mpi = &self.abi.mpi;
        // SAFETY: groups have room for a handle of either kind, and the lists have `count` elements.
        unsafe {
            group_of(comm as usize, &raw mut group as usize);
            (mpi.comm_group)(self.abi.world as usize, &raw mut world as usize);
            let (from, to) = (ranks.as_ptr() as usize, global.as_mut_ptr() as usize);
            (mpi.group_translate_ranks)(group as usize, count, from, world as usize, to);
            (mpi.group_free)(&raw mut group as usize);
            (mpi.group_free)(&raw mut world as usize);
        }
        global
    }
}
