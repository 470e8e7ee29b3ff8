//! The three binary interfaces: handles, constants and the layout of a status, found at run time by the symbols and the name of the library.
//!
//! Sources: `mpi.h` of Open MPI 4.1 (the same in 3 and 5), and of MPICH 4.0 (the same for all members of the MPICH ABI compatibility initiative);
//! the chapter on the ABI and the constants of MPI 5.0.

use crate::format;
use crate::real::{find, find_variable, library_of};
use std::ffi::{CStr, c_int, c_void};

/// Functions of the MPI library that the recorder itself calls, by their numbers of arguments.
type F1 = unsafe extern "C" fn(usize) -> c_int;
type F2 = unsafe extern "C" fn(usize, usize) -> c_int;
type F3 = unsafe extern "C" fn(usize, usize, usize) -> c_int;
type F4 = unsafe extern "C" fn(usize, usize, usize, usize) -> c_int;
type F5 = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> c_int;
type F6 = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> c_int;
type F7 = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> c_int;
type Convert = unsafe extern "C" fn(c_int) -> usize;

macro_rules! functions {
    ($($field:ident: $type:ty = $name:literal),* $(,)?) => {
        /// What the recorder calls itself.
        #[allow(missing_docs)]
        pub(crate) struct Functions { $(pub $field: $type),* }

        impl Functions {
            fn find() -> Option<Functions> {
                Some(Functions {
                    // SAFETY: the MPI function of this name has so many arguments, all of which are passed as integers.
                    $($field: { let address = find($name); if address.is_null() { return None; } unsafe { std::mem::transmute::<*mut c_void, $type>(address) } }),*
                })
            }
        }
    };
}

functions! {
    comm_rank: F2 = c"PMPI_Comm_rank",
    comm_size: F2 = c"PMPI_Comm_size",
    comm_remote_size: F2 = c"PMPI_Comm_remote_size",
    comm_test_inter: F2 = c"PMPI_Comm_test_inter",
    comm_group: F2 = c"PMPI_Comm_group",
    comm_remote_group: F2 = c"PMPI_Comm_remote_group",
    comm_dup: F2 = c"PMPI_Comm_dup",
    comm_free: F1 = c"PMPI_Comm_free",
    comm_get_parent: F1 = c"PMPI_Comm_get_parent",
    comm_set_errhandler: F2 = c"PMPI_Comm_set_errhandler",
    comm_get_name: F3 = c"PMPI_Comm_get_name",
    comm_create_keyval: F4 = c"PMPI_Comm_create_keyval",
    comm_set_attr: F3 = c"PMPI_Comm_set_attr",
    win_get_name: F3 = c"PMPI_Win_get_name",
    group_size: F2 = c"PMPI_Group_size",
    group_translate_ranks: F5 = c"PMPI_Group_translate_ranks",
    group_free: F1 = c"PMPI_Group_free",
    type_size: F2 = c"PMPI_Type_size",
    allgather: F7 = c"PMPI_Allgather",
    ibarrier: F2 = c"PMPI_Ibarrier",
    test: F3 = c"PMPI_Test",
    iprobe: F5 = c"PMPI_Iprobe",
    send: F6 = c"PMPI_Send",
    recv: F7 = c"PMPI_Recv",
    library_version: F2 = c"PMPI_Get_library_version",
}

/// Size in bytes of a data type that is larger than an `int` holds; 0 if the library has no function that says it.
#[cold]
fn large_size_of(datatype: u64) -> u64 {
    let names = [c"PMPI_Type_size_x", c"PMPI_Type_size_c"];
    let Some(address) = names.into_iter().map(find).find(|address| !address.is_null()) else { return 0 };
    // SAFETY: both take a data type and the address of an `MPI_Count`.
    let ask = unsafe { std::mem::transmute::<*mut c_void, F2>(address) };
    let mut size = 0_i64;
    // SAFETY: the program passes this data type to MPI itself, and the size has room.
    let result = unsafe { ask(datatype as usize, &raw mut size as usize) };
    if result == 0 { size.max(0) as u64 } else { 0 }
}

/// What stands for a special argument: a constant of C, and the addresses of variables of Fortran.
struct Standins {
    constant: usize,
    objects: [usize; 4],
    /// Variables that hold such an address, from the first call of Fortran on.
    holders: [usize; 3],
}

impl Standins {
    #[inline]
    fn contain(&self, address: usize) -> bool {
        // SAFETY: each holder is a variable of the MPI library that holds an address.
        let held = |&holder: &usize| holder != 0 && unsafe { *(holder as *const usize) } == address;
        address == self.constant || address != 0 && (self.objects.contains(&address) || self.holders.iter().any(held))
    }
}

/// What a status says can only be asked for where its layout is the library's own business: `MPI_Get_count_c`, `MPI_Test_cancelled`.
struct Asked {
    count: F3,
    cancelled: F2,
}

/// One of the interfaces.
pub(crate) struct Abi {
    /// [`format::OPEN_MPI`], [`format::MPICH`] or [`format::MPI_5`].
    pub kind: u64,
    /// Size of a handle in bytes.
    pub handle: usize,
    /// Size of an `MPI_Status`, and offsets of its source and tag.
    pub status: usize,
    source: usize,
    tag: usize,
    /// `MPI_COMM_WORLD`, `MPI_COMM_SELF` and the null handles.
    pub world: u64,
    pub own: u64,
    pub no_comm: u64,
    no_request: u64,
    /// The request that is complete from the start, of Open MPI and by the interface of MPI 5; 0 elsewhere.
    pub empty: u64,
    /// Another one, of collective operations; 0 if there is none.
    pub empty_collective: u64,
    no_type: u64,
    /// `MPI_BYTE`, `MPI_ERRORS_RETURN`.
    pub byte: u64,
    pub errors_return: u64,
    /// `MPI_ROOT`, `MPI_PROC_NULL`.
    root: i64,
    proc_null: i64,
    /// What stands for an ignored status, and for a buffer in place.
    ignore: Standins,
    ignore_all: Standins,
    in_place: Standins,
    /// From Fortran's handles to those of C, where they differ.
    comm_f2c: Option<Convert>,
    type_f2c: Option<Convert>,
    win_f2c: Option<Convert>,
    group_f2c: Option<Convert>,
    op_f2c: Option<Convert>,
    /// `MPI_NO_OP`, `MPI_LOCK_EXCLUSIVE`.
    no_op: u64,
    exclusive: i64,
    /// How a status is read, where not from its bytes.
    asked: Option<Asked>,
    /// What the recorder calls itself.
    pub mpi: Functions,
}

/// What a status says: the actual source and tag, the length in bytes, and whether the request was cancelled.
pub(crate) struct Status {
    pub source: i64,
    pub tag: i64,
    pub bytes: u64,
    pub cancelled: bool,
}

impl Abi {
    /// The interface of the library that the program uses.
    ///
    /// # Errors
    /// There is none that is known, as a clause for the user.
    pub(crate) fn detect() -> Result<Abi, String> {
        let Some(mpi) = Functions::find() else { return Err("the MPI library lacks functions of MPI 3".to_owned()) };
        if library_of(mpi.send as *const c_void).is_some_and(|name| name.to_bytes().starts_with(b"libmpi_abi.")) {
            return Abi::of_mpi_5(mpi).ok_or_else(|| "the MPI library lacks functions of MPI 5".to_owned());
        }
        Ok(if find_variable(c"ompi_mpi_comm_world").is_null() { Abi::of_mpich(mpi) } else { Abi::of_open_mpi(mpi) })
    }

    fn of_open_mpi(mpi: Functions) -> Abi {
        let address = |name: &CStr| find_variable(name) as u64;
        let variables = |names: [&CStr; 4], constant: usize| Standins {
            constant,
            objects: names.map(|name| find_variable(name) as usize),
            holders: [0; 3],
        };
        let convert = |name: &CStr| {
            let address = find(name);
            // SAFETY: PMPI_X_f2c takes a Fortran handle and returns one of C.
            (!address.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Convert>(address) })
        };
        Abi {
            kind: format::OPEN_MPI,
            handle: 8,
            status: 24,
            source: 0,
            tag: 4,
            world: address(c"ompi_mpi_comm_world"),
            own: address(c"ompi_mpi_comm_self"),
            no_comm: address(c"ompi_mpi_comm_null"),
            no_request: address(c"ompi_request_null"),
            empty: address(c"ompi_request_empty"),
            empty_collective: 0,
            no_type: address(c"ompi_mpi_datatype_null"),
            byte: address(c"ompi_mpi_byte"),
            errors_return: address(c"ompi_mpi_errors_return"),
            root: -4,
            proc_null: -2,
            ignore: variables(
                [
                    c"mpi_fortran_status_ignore_",
                    c"mpi_fortran_status_ignore",
                    c"mpi_fortran_status_ignore__",
                    c"MPI_FORTRAN_STATUS_IGNORE",
                ],
                0,
            ),
            ignore_all: variables(
                [
                    c"mpi_fortran_statuses_ignore_",
                    c"mpi_fortran_statuses_ignore",
                    c"mpi_fortran_statuses_ignore__",
                    c"MPI_FORTRAN_STATUSES_IGNORE",
                ],
                0,
            ),
            in_place: variables(
                [c"mpi_fortran_in_place_", c"mpi_fortran_in_place", c"mpi_fortran_in_place__", c"MPI_FORTRAN_IN_PLACE"],
                1,
            ),
            comm_f2c: convert(c"PMPI_Comm_f2c"),
            type_f2c: convert(c"PMPI_Type_f2c"),
            win_f2c: convert(c"PMPI_Win_f2c"),
            group_f2c: convert(c"PMPI_Group_f2c"),
            op_f2c: convert(c"PMPI_Op_f2c"),
            no_op: address(c"ompi_mpi_op_no_op"),
            exclusive: 1,
            asked: None,
            mpi,
        }
    }

    fn of_mpich(mpi: Functions) -> Abi {
        let held = |names: [&CStr; 3], object: &CStr, constant: usize| Standins {
            constant,
            objects: [find_variable(object) as usize, 0, 0, 0],
            holders: names.map(|name| find_variable(name) as usize),
        };
        Abi {
            kind: format::MPICH,
            handle: 4,
            status: 20,
            source: 8,
            tag: 12,
            world: 0x4400_0000,
            own: 0x4400_0001,
            no_comm: 0x0400_0000,
            no_request: 0x2c00_0000,
            empty: 0,
            empty_collective: 0,
            no_type: 0x0c00_0000,
            byte: 0x4c00_010d,
            errors_return: 0x5400_0001,
            root: -3,
            proc_null: -1,
            ignore: held(
                [c"MPI_F_STATUS_IGNORE", c"MPIR_F_MPI_STATUS_IGNORE", c"MPI_F08_STATUS_IGNORE"],
                c"MPIR_F08_MPI_STATUS_IGNORE_OBJ",
                1,
            ),
            ignore_all: held(
                [c"MPI_F_STATUSES_IGNORE", c"MPIR_F_MPI_STATUSES_IGNORE", c"MPI_F08_STATUSES_IGNORE"],
                c"MPIR_F08_MPI_STATUSES_IGNORE_OBJ",
                1,
            ),
            in_place: held(
                [c"MPIR_F_MPI_IN_PLACE", c"MPIR_F_InPlace", c"MPI_F_IN_PLACE"],
                c"MPIR_F08_MPI_IN_PLACE",
                usize::MAX,
            ),
            comm_f2c: None,
            type_f2c: None,
            win_f2c: None,
            group_f2c: None,
            op_f2c: None,
            no_op: 0x5800_000e,
            exclusive: 234,
            asked: None,
            mpi,
        }
    }

    /// That of MPI 5. None if something is missing.
    fn of_mpi_5(mpi: Functions) -> Option<Abi> {
        let function = |name: &CStr| Some(find(name)).filter(|address| !address.is_null());
        // SAFETY: the MPI functions of these names have so many arguments, all of which are passed as integers.
        let (asked, isend, wait) = unsafe {
            let count = std::mem::transmute::<*mut c_void, F3>(function(c"PMPI_Get_count_c")?);
            let cancelled = std::mem::transmute::<*mut c_void, F2>(function(c"PMPI_Test_cancelled")?);
            let isend = std::mem::transmute::<*mut c_void, F7>(function(c"PMPI_Isend")?);
            (Asked { count, cancelled }, isend, std::mem::transmute::<*mut c_void, F2>(function(c"PMPI_Wait")?))
        };
        let convert = |name: &CStr| {
            // SAFETY: PMPI_X_fromint takes a Fortran handle and returns one of C.
            function(name).map(|address| unsafe { std::mem::transmute::<*mut c_void, Convert>(address) })
        };
        let alone = |constant: usize| Standins { constant, objects: [0; 4], holders: [0; 3] };
        let mut abi = Abi {
            kind: format::MPI_5,
            handle: 8,
            status: 32,
            source: 0,
            tag: 4,
            world: 0x101,
            own: 0x102,
            no_comm: 0x100,
            no_request: 0x180,
            empty: 0,
            empty_collective: 0,
            no_type: 0x200,
            byte: 0x247,
            errors_return: 0x143,
            root: -4,
            proc_null: -3,
            ignore: alone(0),
            ignore_all: alone(0),
            in_place: alone(1),
            comm_f2c: convert(c"PMPI_Comm_fromint"),
            type_f2c: convert(c"PMPI_Type_fromint"),
            win_f2c: convert(c"PMPI_Win_fromint"),
            group_f2c: convert(c"PMPI_Group_fromint"),
            op_f2c: convert(c"PMPI_Op_fromint"),
            no_op: 0x3d,
            exclusive: 301,
            asked: Some(asked),
            mpi,
        };
        // Which requests share a handle, it does not say: those of what is complete from the start, such as a message to nobody, and a barrier with nobody else.
        let (nobody, own, byte) = (abi.proc_null as usize, abi.own as usize, abi.byte as usize);
        let shared = |begin: &dyn Fn(usize) -> c_int| {
            let (mut request, mut status) = (0x180_u64, [0_u64; 8]);
            if begin(&raw mut request as usize) != 0 {
                return 0;
            }
            let made = request;
            // SAFETY: the request has been made, and the status has room for its own.
            unsafe { wait(&raw mut request as usize, status.as_mut_ptr() as usize) };
            made
        };
        // SAFETY: the request has room for its own.
        abi.empty = shared(&|request| unsafe { isend(0, 0, byte, nobody, 0, own, request) });
        // SAFETY: likewise.
        abi.empty_collective = shared(&|request| unsafe { (abi.mpi.ibarrier)(own, request) });
        Some(abi)
    }

    /// A handle of C as it is passed.
    #[inline]
    pub(crate) fn handle_of(&self, word: usize) -> u64 {
        if self.handle == 4 { word as u32 as u64 } else { word as u64 }
    }

    /// Handle `index` of an array of C; 0 where a program passes no array: MPI tells it.
    ///
    /// # Safety
    /// The array has it.
    #[inline]
    pub(crate) unsafe fn handle_at(&self, array: usize, index: usize) -> u64 {
        if array == 0 {
            return 0;
        }
        // SAFETY: the caller says so.
        unsafe {
            match self.handle {
                4 => u64::from(*(array as *const u32).add(index)),
                _ => *(array as *const u64).add(index),
            }
        }
    }

    /// A communicator of Fortran.
    #[inline]
    pub(crate) fn comm_of(&self, fortran: i32) -> u64 {
        // SAFETY: takes any number; what is none of its handles gives the null handle.
        self.comm_f2c.map_or(fortran as u32 as u64, |convert| unsafe { convert(fortran) } as u64)
    }

    /// A data type of Fortran.
    #[inline]
    pub(crate) fn type_of(&self, fortran: i32) -> u64 {
        // SAFETY: as above.
        self.type_f2c.map_or(fortran as u32 as u64, |convert| unsafe { convert(fortran) } as u64)
    }

    /// A window of Fortran.
    pub(crate) fn win_of(&self, fortran: i32) -> u64 {
        // SAFETY: as above.
        self.win_f2c.map_or(fortran as u32 as u64, |convert| unsafe { convert(fortran) } as u64)
    }

    /// A group of Fortran.
    pub(crate) fn group_of(&self, fortran: i32) -> u64 {
        // SAFETY: as above.
        self.group_f2c.map_or(fortran as u32 as u64, |convert| unsafe { convert(fortran) } as u64)
    }

    /// An operation of Fortran.
    pub(crate) fn op_of(&self, fortran: i32) -> u64 {
        // SAFETY: as above.
        self.op_f2c.map_or(fortran as u32 as u64, |convert| unsafe { convert(fortran) } as u64)
    }

    /// Whether an operation is `MPI_NO_OP`.
    pub(crate) fn is_no_op(&self, op: u64) -> bool {
        op == self.no_op
    }

    /// Whether a type of lock is `MPI_LOCK_EXCLUSIVE`.
    pub(crate) fn is_exclusive(&self, lock: i64) -> bool {
        lock == self.exclusive
    }

    /// Whether a request handle of C (or of Fortran) is `MPI_REQUEST_NULL`.
    #[inline]
    pub(crate) fn is_no_request(&self, handle: u64, fortran: bool) -> bool {
        // In Open MPI, handle 0 of Fortran is the null handle.
        if fortran && self.kind == format::OPEN_MPI {
            handle == 0
        } else {
            handle == self.no_request || handle == 0 && self.handle == 8
        }
    }

    /// Size of a data type in bytes; 0 for none.
    #[inline]
    pub(crate) fn size_of(&self, datatype: u64) -> u64 {
        if datatype == self.no_type || datatype == 0 {
            return 0;
        }
        let mut size: c_int = 0;
        // SAFETY: the program passes this data type to MPI itself.
        let result = unsafe { (self.mpi.type_size)(datatype as usize, &raw mut size as usize) };
        match u64::try_from(size) {
            _ if result != 0 => 0,
            Ok(size) => size,
            Err(_) => large_size_of(datatype),
        }
    }

    /// Whether the address stands for an ignored status. That of nothing does not, with MPICH: it refuses it.
    #[inline]
    pub(crate) fn ignores(&self, address: usize) -> bool {
        self.ignore.contain(address) || self.ignore_all.contain(address)
    }

    /// Whether the address stands for a buffer in place.
    #[inline]
    pub(crate) fn is_in_place(&self, buffer: usize) -> bool {
        self.in_place.contain(buffer)
    }

    /// A root as it is recorded.
    #[inline]
    pub(crate) fn root_of(&self, rank: i64) -> i64 {
        match rank {
            rank if rank >= 0 => rank,
            rank if rank == self.root => format::THIS_PROCESS,
            _ => format::OWN_GROUP,
        }
    }

    /// A peer as it is recorded: all negative ones are nobody.
    #[inline]
    pub(crate) fn peer_of(&self, rank: i64) -> i64 {
        rank.max(-1)
    }

    /// Whether a rank is `MPI_PROC_NULL`.
    #[inline]
    pub(crate) fn is_nobody(&self, rank: i64) -> bool {
        rank == self.proc_null
    }

    /// Length in bytes, and whether it was cancelled, of the status at this address.
    ///
    /// # Safety
    /// There is one.
    #[cold]
    unsafe fn ask(&self, asked: &Asked, address: usize) -> (u64, bool) {
        let (mut bytes, mut cancelled) = (0_i64, 0_i32);
        // SAFETY: the caller says so; the results have room.
        unsafe {
            (asked.count)(address, self.byte as usize, &raw mut bytes as usize);
            (asked.cancelled)(address, &raw mut cancelled as usize);
        }
        // Undefined is negative.
        (bytes.max(0) as u64, cancelled != 0)
    }

    /// Reads a status. That of Fortran has the same layout. What is nowhere is empty.
    ///
    /// # Safety
    /// There is one at this address, unless it is 0.
    #[inline]
    pub(crate) unsafe fn read_status(&self, address: usize) -> Status {
        if address == 0 {
            return Status { source: -1, tag: 0, bytes: 0, cancelled: false };
        }
        // SAFETY: all offsets lie in it; it need not be aligned for a u64.
        unsafe {
            let int = |offset: usize| ((address + offset) as *const i32).read_unaligned();
            let (bytes, cancelled) = if let Some(asked) = &self.asked {
                self.ask(asked, address)
            } else if self.kind == format::OPEN_MPI {
                (((address + 16) as *const u64).read_unaligned(), int(12) != 0)
            } else {
                let high = int(4) as u32;
                (u64::from(high >> 1) << 32 | u64::from(int(0) as u32), high & 1 != 0)
            };
            Status {
                source: self.peer_of(i64::from(int(self.source))),
                tag: i64::from(int(self.tag)),
                bytes,
                cancelled,
            }
        }
    }
}
