//! The MPI calls, each once, with its return code checked and its buffers owned until it is complete.
//!
//! Safety, for all of them: MPI reads or writes a buffer between the start of an immediate operation and its completion. Each
//! operation here is a struct that owns its buffers on the heap (boxed slices do not move when the struct does) and a
//! request; the buffers are not touched before `test` has returned true. An operation that is dropped while incomplete leaks its
//! buffers rather than freeing them under MPI (see [`Request`]). Counts are checked to fit a C int, element types are fixed by
//! the types of the buffers.
#![allow(unsafe_code)]

use crate::comm::{ReduceOp, Top2};
use crate::trace::{Error, Result};
use mpi::ffi;
use std::ffi::{c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};

/// Turns a return code into an error that names the call and what the library says about it.
fn check(what: &str, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let mut text = [0u8; 4096];
    let mut length: c_int = 0;
    // SAFETY: the buffer is larger than MPI_MAX_ERROR_STRING of any library (at most 1024).
    let told = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut length) };
    let text = if told == 0 {
        String::from_utf8_lossy(&text[..length.clamp(0, 4096) as usize]).into_owned()
    } else {
        format!("error {code}")
    };
    Err(Error::new(format!("{what} failed: {text}")))
}

fn count(length: usize, what: &str) -> Result<c_int> {
    c_int::try_from(length).map_err(|_| Error::new(format!("{what}: more than 2^31 elements in one message")))
}

/// Ends all ranks.
pub fn abort(status: i32) {
    // SAFETY: no buffers; MPI is initialised for as long as the panic hook that calls this can run.
    unsafe {
        ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, status);
    }
}

/// A communicator, with the calling process's place in it.
#[derive(Clone, Copy)]
pub struct Communicator {
    raw: ffi::MPI_Comm,
    /// This process.
    pub rank: usize,
    /// Number of processes.
    pub size: usize,
}

impl Communicator {
    /// `MPI_COMM_WORLD`, told to return errors.
    pub fn world() -> Result<Communicator> {
        // SAFETY: constants of the library; MPI is initialised.
        let raw = unsafe { ffi::RSMPI_COMM_WORLD };
        // SAFETY: as above.
        check("MPI_Comm_set_errhandler", unsafe { ffi::MPI_Comm_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN) })?;
        Communicator::describe(raw)
    }

    fn describe(raw: ffi::MPI_Comm) -> Result<Communicator> {
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: plain output arguments.
        check("MPI_Comm_rank", unsafe { ffi::MPI_Comm_rank(raw, &mut rank) })?;
        // SAFETY: as above.
        check("MPI_Comm_size", unsafe { ffi::MPI_Comm_size(raw, &mut size) })?;
        Ok(Communicator { raw, rank: rank as usize, size: size as usize })
    }

    /// A communicator of `members` in that order; called by the members only (`MPI_Comm_create_group`).
    pub fn subset(&self, members: &[usize], tag: u32) -> Result<Communicator> {
        let ranks: Vec<c_int> = members.iter().map(|&member| member as c_int).collect();
        let length = count(ranks.len(), "MPI_Group_incl")?;
        // Every library allows tags up to 32767 at least; equal tags only matter for groups made at the same time.
        let tag = (tag & 0x7fff) as c_int;
        let mut all = MaybeUninit::uninit();
        let mut group = MaybeUninit::uninit();
        let mut new = MaybeUninit::uninit();
        // SAFETY: each handle is written by the call before it is read; `ranks` outlives the call that reads it.
        unsafe {
            check("MPI_Comm_group", ffi::MPI_Comm_group(self.raw, all.as_mut_ptr()))?;
            check(
                "MPI_Group_incl",
                ffi::MPI_Group_incl(all.assume_init(), length, ranks.as_ptr(), group.as_mut_ptr()),
            )?;
            let created = ffi::MPI_Comm_create_group(self.raw, group.assume_init(), tag, new.as_mut_ptr());
            check("MPI_Comm_create_group", created)?;
            check("MPI_Group_free", ffi::MPI_Group_free(group.as_mut_ptr()))?;
            check("MPI_Group_free", ffi::MPI_Group_free(all.as_mut_ptr()))?;
            Communicator::describe(new.assume_init())
        }
    }

    /// The next message of words with `tag`, if one has arrived.
    pub fn poll(&self, tag: i32) -> Result<Option<(usize, Vec<u64>)>> {
        let mut flag: c_int = 0;
        let mut message = MaybeUninit::uninit();
        let mut status: MaybeUninit<ffi::MPI_Status> = MaybeUninit::uninit();
        // SAFETY: message and status are written if the flag is set, and only read then; the receive buffer has the length
        // that the matched message announces, and exists until the blocking receive returns.
        unsafe {
            let probed = ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                tag,
                self.raw,
                &mut flag,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            );
            check("MPI_Improbe", probed)?;
            if flag == 0 {
                return Ok(None);
            }
            let mut length: c_int = 0;
            check("MPI_Get_count", ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT64_T, &mut length))?;
            let mut words = vec![0u64; usize::try_from(length).unwrap_or(0)];
            let source = status.assume_init_ref().MPI_SOURCE as usize;
            let received = ffi::MPI_Mrecv(
                words.as_mut_ptr().cast(),
                length,
                ffi::RSMPI_UINT64_T,
                message.as_mut_ptr(),
                ffi::RSMPI_STATUS_IGNORE,
            );
            check("MPI_Mrecv", received)?;
            Ok(Some((source, words)))
        }
    }
}

/// An immediate operation with the buffers it works on.
struct Request<B> {
    raw: ffi::MPI_Request,
    /// Freed only when the operation is complete.
    buffers: ManuallyDrop<B>,
    done: bool,
    what: &'static str,
}

impl<B> Request<B> {
    /// Starts an operation: `start` makes the call with pointers into the (heap-allocated) buffers.
    fn start(
        what: &'static str,
        buffers: B,
        start: impl FnOnce(&mut B, &mut ffi::MPI_Request) -> c_int,
    ) -> Result<Request<B>> {
        let mut request = Request {
            // SAFETY: a constant of the library.
            raw: unsafe { ffi::RSMPI_REQUEST_NULL },
            buffers: ManuallyDrop::new(buffers),
            done: false,
            what,
        };
        check(what, start(&mut request.buffers, &mut request.raw))?;
        Ok(request)
    }

    fn test(&mut self) -> Result<bool> {
        if !self.done {
            let mut flag: c_int = 0;
            // SAFETY: the request was written by the call that started the operation.
            let tested = unsafe { ffi::MPI_Test(&mut self.raw, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
            check(self.what, tested)?;
            self.done = flag != 0;
        }
        Ok(self.done)
    }

    /// The buffers of a complete operation.
    fn buffers(&mut self) -> &mut B {
        debug_assert!(self.done);
        &mut self.buffers
    }
}

impl<B> Drop for Request<B> {
    fn drop(&mut self) {
        if self.done {
            // SAFETY: MPI has finished with the buffers, and nobody uses them after the drop.
            unsafe { ManuallyDrop::drop(&mut self.buffers) }
        }
    }
}

/// `MPI_Isend` of words.
pub struct PendingSend(Request<Box<[u64]>>);

impl PendingSend {
    /// Starts to send.
    pub fn start(communicator: &Communicator, destination: usize, tag: i32, words: Vec<u64>) -> Result<PendingSend> {
        let length = count(words.len(), "MPI_Isend")?;
        Request::start("MPI_Isend", words.into_boxed_slice(), |words, request| {
            // SAFETY: see the module; `length` is that of the slice.
            unsafe {
                let buffer: *const c_void = words.as_ptr().cast();
                ffi::MPI_Isend(
                    buffer,
                    length,
                    ffi::RSMPI_UINT64_T,
                    destination as c_int,
                    tag,
                    communicator.raw,
                    request,
                )
            }
        })
        .map(PendingSend)
    }

    /// Whether the buffer has been sent.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }
}

/// `MPI_Irecv` of one timestamp.
pub struct ReceiveTime(Request<Box<[i64; 2]>>);

impl ReceiveTime {
    /// Starts to receive from `source`.
    pub fn start(communicator: &Communicator, source: usize, tag: i32) -> Result<ReceiveTime> {
        Request::start("MPI_Irecv", Box::new([0i64; 2]), |words, request| {
            // SAFETY: see the module; two elements are room for the two words that `send_time` sends.
            unsafe {
                let buffer: *mut c_void = words.as_mut_ptr().cast();
                ffi::MPI_Irecv(buffer, 2, ffi::RSMPI_INT64_T, source as c_int, tag, communicator.raw, request)
            }
        })
        .map(ReceiveTime)
    }

    /// Whether it has arrived.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }

    /// The words, once `test` has returned true.
    pub fn result(mut self) -> [i64; 2] {
        **self.0.buffers()
    }
}

/// `MPI_Iallreduce` of integers.
pub struct Vote(Request<(Box<[i64]>, Box<[i64]>)>);

impl Vote {
    /// Starts to combine `values`.
    pub fn start(communicator: &Communicator, op: ReduceOp, values: &[i64]) -> Result<Vote> {
        let length = count(values.len(), "MPI_Iallreduce")?;
        let buffers = (Box::from(values), vec![0i64; values.len()].into_boxed_slice());
        Request::start("MPI_Iallreduce", buffers, |(send, receive): &mut (Box<[i64]>, Box<[i64]>), request| {
            // SAFETY: see the module; both slices have `length` elements; the operations are constants of the library.
            unsafe {
                let op = match op {
                    ReduceOp::Min => ffi::RSMPI_MIN,
                    ReduceOp::Max => ffi::RSMPI_MAX,
                    ReduceOp::Sum => ffi::RSMPI_SUM,
                };
                let (send, receive) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
                ffi::MPI_Iallreduce(send, receive, length, ffi::RSMPI_INT64_T, op, communicator.raw, request)
            }
        })
        .map(Vote)
    }

    /// Whether all ranks have contributed.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }

    /// The combined values, once `test` has returned true.
    pub fn result(mut self) -> Vec<i64> {
        self.0.buffers().1.to_vec()
    }
}

/// `MPI_Ibcast` of bytes.
pub struct Broadcast(Request<Box<[u8]>>);

impl Broadcast {
    /// Starts: the root gives the bytes, the others a buffer of the same length.
    pub fn start(communicator: &Communicator, root: usize, buffer: Vec<u8>) -> Result<Broadcast> {
        let length = count(buffer.len(), "MPI_Ibcast")?;
        Request::start("MPI_Ibcast", buffer.into_boxed_slice(), |bytes, request| {
            // SAFETY: see the module; `length` is that of the slice.
            unsafe {
                let bytes = bytes.as_mut_ptr().cast();
                ffi::MPI_Ibcast(bytes, length, ffi::RSMPI_UINT8_T, root as c_int, communicator.raw, request)
            }
        })
        .map(Broadcast)
    }

    /// Whether the bytes are there.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }

    /// The root's bytes, once `test` has returned true.
    pub fn result(mut self) -> Vec<u8> {
        self.0.buffers().to_vec()
    }
}

/// Buffers of a gather: own bytes, everybody's bytes, counts, displacements.
type GatherBuffers = (Box<[u8]>, Box<[u8]>, Box<[c_int]>, Box<[c_int]>);

/// `MPI_Igatherv` (with a root) or `MPI_Iallgatherv` of bytes.
pub struct Gather {
    request: Request<GatherBuffers>,
    here: bool,
}

impl Gather {
    /// Starts to gather; `lengths` are those of all ranks.
    pub fn start(communicator: &Communicator, root: Option<usize>, bytes: &[u8], lengths: &[i64]) -> Result<Gather> {
        let own = count(bytes.len(), "MPI_Igatherv")?;
        let mut counts = Vec::with_capacity(lengths.len());
        let mut offsets = Vec::with_capacity(lengths.len());
        let mut total = 0usize;
        for &length in lengths {
            offsets.push(count(total, "MPI_Igatherv")?);
            counts.push(count(length as usize, "MPI_Igatherv")?);
            total += length as usize;
        }
        count(total, "MPI_Igatherv")?;
        let here = root.is_none_or(|root| root == communicator.rank);
        let receive = vec![0u8; if here { total } else { 0 }];
        let buffers: GatherBuffers = (Box::from(bytes), receive.into(), counts.into(), offsets.into());
        let request = Request::start("MPI_Igatherv", buffers, |(send, receive, counts, offsets), request| {
            let (send, receive): (*const c_void, *mut c_void) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
            // SAFETY: see the module; counts and displacements have one entry per rank and stay within the receive buffer,
            // which only the root of a gather needs.
            unsafe {
                let byte = ffi::RSMPI_UINT8_T;
                let (counts, offsets) = (counts.as_ptr(), offsets.as_ptr());
                match root {
                    Some(root) => ffi::MPI_Igatherv(
                        send,
                        own,
                        byte,
                        receive,
                        counts,
                        offsets,
                        byte,
                        root as c_int,
                        communicator.raw,
                        request,
                    ),
                    None => {
                        ffi::MPI_Iallgatherv(send, own, byte, receive, counts, offsets, byte, communicator.raw, request)
                    }
                }
            }
        })?;
        Ok(Gather { request, here })
    }

    /// Whether it is complete.
    pub fn test(&mut self) -> Result<bool> {
        self.request.test()
    }

    /// Everybody's bytes where they were gathered, once `test` has returned true.
    pub fn result(mut self, lengths: &[i64]) -> Option<Vec<Vec<u8>>> {
        if !self.here {
            return None;
        }
        let mut rest: &[u8] = &self.request.buffers().1;
        let mut all = Vec::with_capacity(lengths.len());
        for &length in lengths {
            let (bytes, next) = rest.split_at_checked(length as usize)?;
            all.push(bytes.to_vec());
            rest = next;
        }
        Some(all)
    }
}

/// `MPI_Iexscan` MAX of one integer.
pub struct Exscan(Request<Box<[i64; 2]>>);

impl Exscan {
    /// Starts the scan.
    pub fn start(communicator: &Communicator, value: i64) -> Result<Exscan> {
        Request::start("MPI_Iexscan", Box::new([value, i64::MIN]), |pair, request| {
            let send: *mut i64 = pair.as_mut_ptr();
            // SAFETY: see the module; the first element is sent, the second received, they do not overlap.
            unsafe {
                let receive = send.add(1);
                let (int, max) = (ffi::RSMPI_INT64_T, ffi::RSMPI_MAX);
                ffi::MPI_Iexscan(send.cast(), receive.cast(), 1, int, max, communicator.raw, request)
            }
        })
        .map(Exscan)
    }

    /// Whether it is complete.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }

    /// The largest value of the lower ranks (undefined at rank 0), once `test` has returned true.
    pub fn result(mut self) -> i64 {
        self.0.buffers()[1]
    }
}

/// The reduction operation for [`Top2`], and its datatype: three integers that the library must not split.
pub struct TopReduction {
    op: ffi::MPI_Op,
    datatype: ffi::MPI_Datatype,
}

/// What MPI calls to combine two arrays of [`Top2`].
unsafe extern "C" fn merge_tops(
    input: *mut c_void,
    in_out: *mut c_void,
    length: *mut c_int,
    _datatype: *mut ffi::MPI_Datatype,
) {
    // SAFETY: MPI gives two arrays of `length` elements of the datatype, which has the layout of `Top2` (three i64, `repr(C)`); they
    // need not be aligned.
    unsafe {
        for i in 0..(*length).max(0) as usize {
            let one = input.cast::<Top2>().add(i).read_unaligned();
            let two = in_out.cast::<Top2>().add(i);
            two.write_unaligned(one.merge(two.read_unaligned()));
        }
    }
}

impl TopReduction {
    /// Registers operation and datatype.
    pub fn new() -> Result<TopReduction> {
        let mut op = MaybeUninit::uninit();
        let mut datatype = MaybeUninit::uninit();
        // SAFETY: handles are written before they are read; the function stays valid for the whole program.
        unsafe {
            check("MPI_Type_contiguous", ffi::MPI_Type_contiguous(3, ffi::RSMPI_INT64_T, datatype.as_mut_ptr()))?;
            check("MPI_Type_commit", ffi::MPI_Type_commit(datatype.as_mut_ptr()))?;
            check("MPI_Op_create", ffi::MPI_Op_create(Some(merge_tops), 1, op.as_mut_ptr()))?;
            Ok(TopReduction { op: op.assume_init(), datatype: datatype.assume_init() })
        }
    }

    /// Starts `MPI_Ireduce` (with a root) or `MPI_Iallreduce`.
    pub fn start(&self, communicator: &Communicator, root: Option<usize>, value: Top2) -> Result<PendingTop> {
        let buffers = Box::new([value, Top2::NONE]);
        Request::start("MPI_Iallreduce", buffers, |pair, request| {
            let send: *mut Top2 = pair.as_mut_ptr();
            // SAFETY: see the module; the first element is sent, the second received, they do not overlap.
            unsafe {
                let (send, receive): (*const c_void, *mut c_void) = (send.cast(), send.add(1).cast());
                match root {
                    Some(root) => ffi::MPI_Ireduce(
                        send,
                        receive,
                        1,
                        self.datatype,
                        self.op,
                        root as c_int,
                        communicator.raw,
                        request,
                    ),
                    None => ffi::MPI_Iallreduce(send, receive, 1, self.datatype, self.op, communicator.raw, request),
                }
            }
        })
        .map(PendingTop)
    }
}

impl Drop for TopReduction {
    fn drop(&mut self) {
        // SAFETY: both were created by `new` and are freed once, before the universe (dropped later) finalises MPI; operations under way
        // keep them alive. MPICH complains at the end about what was not freed.
        unsafe {
            ffi::MPI_Op_free(&mut self.op);
            ffi::MPI_Type_free(&mut self.datatype);
        }
    }
}

/// A reduction of [`Top2`] under way.
pub struct PendingTop(Request<Box<[Top2; 2]>>);

impl PendingTop {
    /// Whether it is complete.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }

    /// The result (at the root, if there is one), once `test` has returned true.
    pub fn result(mut self) -> Top2 {
        self.0.buffers()[1]
    }
}
