//! The immediate MPI operations, each once. Nothing here waits; for safety see [`super::call`].
#![allow(unsafe_code)]

use crate::comm::ReduceOp;
use crate::comm::mpi::call::{ImmediateOperation, MpiCommunicator, check, count, rank_number};
use clc_trace::Result;
use mpi::ffi;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// Values sent, values received.
pub(super) type SendReceive<T> = (Box<[T]>, Box<[T]>);

/// Buffers of a gather: own bytes, everybody's bytes one after the other, counts, displacements.
pub(super) type GatherBuffers = (Box<[u8]>, Box<[u8]>, Box<[c_int]>, Box<[c_int]>);

/// A message on its way in.
pub(super) struct Incoming {
    /// Who has sent it.
    pub source: usize,
    /// Its words, once complete.
    pub request: ImmediateOperation<Box<[u64]>>,
}

fn zeros<T: Clone + Default>(length: usize) -> Box<[T]> {
    vec![T::default(); length].into_boxed_slice()
}

impl MpiCommunicator {
    /// `MPI_Isend` of words.
    pub(super) fn send(
        &self,
        destination: usize,
        tag: c_int,
        words: Vec<u64>,
    ) -> Result<ImmediateOperation<Box<[u64]>>> {
        let length = count(words.len(), "MPI_Isend")?;
        ImmediateOperation::start("MPI_Isend", words.into_boxed_slice(), |words, request| {
            let (words, to) = (words.as_ptr().cast(), rank_number(destination));
            // SAFETY: see `call`; `length` is that of the slice.
            unsafe { ffi::MPI_Isend(words, length, ffi::RSMPI_UINT64_T, to, tag, self.raw, request) }
        })
    }

    /// Starts to receive the next message of words with `tag`, if one has arrived (`MPI_Improbe`, `MPI_Imrecv`).
    pub(super) fn receive(&self, tag: i32) -> Result<Option<Incoming>> {
        let mut flag: c_int = 0;
        let mut message = MaybeUninit::uninit();
        let mut status: MaybeUninit<ffi::MPI_Status> = MaybeUninit::uninit();
        let mut length: c_int = 0;
        // SAFETY: message and status are written if the flag is set, and only read then.
        unsafe {
            let any = ffi::RSMPI_ANY_SOURCE;
            let (message, status) = (message.as_mut_ptr(), status.as_mut_ptr());
            check("MPI_Improbe", ffi::MPI_Improbe(any, tag, self.raw, &mut flag, message, status))?;
            if flag == 0 {
                return Ok(None);
            }
            check("MPI_Get_count", ffi::MPI_Get_count(status, ffi::RSMPI_UINT64_T, &mut length))?;
        }
        // SAFETY: the flag was set.
        let source = usize::try_from(unsafe { status.assume_init_ref() }.MPI_SOURCE).unwrap_or(usize::MAX);
        let words = vec![0u64; usize::try_from(length).unwrap_or(0)].into_boxed_slice();
        let request = ImmediateOperation::start("MPI_Imrecv", words, |words, request| {
            // SAFETY: see the module; the buffer has the length that the matched message announces, which is received once.
            unsafe {
                let words = words.as_mut_ptr().cast();
                ffi::MPI_Imrecv(words, length, ffi::RSMPI_UINT64_T, message.as_mut_ptr(), request)
            }
        })?;
        Ok(Some(Incoming { source, request }))
    }

    /// `MPI_Irecv` of the two words of a timestamp.
    pub(super) fn receive_time(&self, source: usize, tag: c_int) -> Result<ImmediateOperation<Box<[u64]>>> {
        ImmediateOperation::start("MPI_Irecv", zeros(2), |words, request| {
            let (words, from) = (words.as_mut_ptr().cast(), rank_number(source));
            // SAFETY: see `call`; the buffer has two elements.
            unsafe { ffi::MPI_Irecv(words, 2, ffi::RSMPI_UINT64_T, from, tag, self.raw, request) }
        })
    }

    /// `MPI_Ibarrier`.
    pub(super) fn barrier(&self) -> Result<ImmediateOperation<()>> {
        // SAFETY: no buffers.
        ImmediateOperation::start("MPI_Ibarrier", (), |(), request| unsafe { ffi::MPI_Ibarrier(self.raw, request) })
    }

    /// `MPI_Iallreduce` of integers.
    pub(super) fn all_reduce(&self, op: ReduceOp, values: &[i64]) -> Result<ImmediateOperation<SendReceive<i64>>> {
        let length = count(values.len(), "MPI_Iallreduce")?;
        ImmediateOperation::start("MPI_Iallreduce", (values.into(), zeros(values.len())), |(send, receive), request| {
            let (send, receive) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
            // SAFETY: see `call`; both slices have `length` elements; operations and types are constants of the library.
            unsafe {
                let op = match op {
                    ReduceOp::Min => ffi::RSMPI_MIN,
                    ReduceOp::Max => ffi::RSMPI_MAX,
                    ReduceOp::Sum => ffi::RSMPI_SUM,
                };
                ffi::MPI_Iallreduce(send, receive, length, ffi::RSMPI_INT64_T, op, self.raw, request)
            }
        })
    }

    /// `MPI_Ibcast` of bytes: all ranks give a buffer of the same length.
    pub(super) fn broadcast(&self, root: usize, bytes: Vec<u8>) -> Result<ImmediateOperation<Box<[u8]>>> {
        let length = count(bytes.len(), "MPI_Ibcast")?;
        ImmediateOperation::start("MPI_Ibcast", bytes.into_boxed_slice(), |bytes, request| {
            let (bytes, root) = (bytes.as_mut_ptr().cast(), rank_number(root));
            // SAFETY: see `call`; `length` is that of the slice.
            unsafe { ffi::MPI_Ibcast(bytes, length, ffi::RSMPI_UINT8_T, root, self.raw, request) }
        })
    }

    /// `MPI_Igather` of one integer, or `MPI_Iallgather` without a root.
    pub(super) fn gather_one(&self, root: Option<usize>, value: i64) -> Result<ImmediateOperation<SendReceive<i64>>> {
        let here = root.is_none_or(|root| root == self.rank);
        let buffers = (Box::from([value]), zeros(if here { self.size } else { 0 }));
        let what = if root.is_some() { "MPI_Igather" } else { "MPI_Iallgather" };
        ImmediateOperation::start(what, buffers, |(send, receive): &mut SendReceive<i64>, request| {
            let (send, receive) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
            // SAFETY: see `call`; one element is sent, one per rank received where anything is received.
            unsafe {
                let int = ffi::RSMPI_INT64_T;
                match root.map(rank_number) {
                    Some(root) => ffi::MPI_Igather(send, 1, int, receive, 1, int, root, self.raw, request),
                    None => ffi::MPI_Iallgather(send, 1, int, receive, 1, int, self.raw, request),
                }
            }
        })
    }

    /// `MPI_Igatherv` of bytes, or `MPI_Iallgatherv` without a root; `lengths` are those of all ranks, needed where bytes are
    /// received. Together they have to fit a C int.
    pub(super) fn gather(
        &self,
        root: Option<usize>,
        bytes: &[u8],
        lengths: &[i64],
    ) -> Result<ImmediateOperation<GatherBuffers>> {
        let own = count(bytes.len(), "MPI_Igatherv")?;
        let (mut counts, mut offsets, mut total) = (Vec::new(), Vec::new(), 0_usize);
        for &length in lengths {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            offsets.push(count(total, "MPI_Igatherv")?);
            counts.push(count(length, "MPI_Igatherv")?);
            total = total.saturating_add(length);
        }
        count(total, "MPI_Igatherv")?;
        // A slice of nothing may begin where MPI_IN_PLACE is, at 1 in Open MPI.
        let own_bytes = if bytes.is_empty() { zeros(1) } else { bytes.into() };
        let buffers: GatherBuffers = (own_bytes, zeros(total.max(1)), counts.into(), offsets.into());
        let what = if root.is_some() { "MPI_Igatherv" } else { "MPI_Iallgatherv" };
        ImmediateOperation::start(what, buffers, |(send, receive, counts, offsets), request| {
            let (send, receive) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
            let (counts, offsets) = (counts.as_ptr(), offsets.as_ptr());
            // SAFETY: see `call`; where bytes are received, counts and displacements have one entry per rank and stay within
            // the receive buffer.
            unsafe {
                let byte = ffi::RSMPI_UINT8_T;
                match root.map(rank_number) {
                    Some(root) => {
                        ffi::MPI_Igatherv(send, own, byte, receive, counts, offsets, byte, root, self.raw, request)
                    }
                    None => ffi::MPI_Iallgatherv(send, own, byte, receive, counts, offsets, byte, self.raw, request),
                }
            }
        })
    }

    /// `MPI_Iexscan` MAX of one integer; what is received at rank 0 is undefined.
    pub(super) fn exscan(&self, value: i64) -> Result<ImmediateOperation<SendReceive<i64>>> {
        let buffers = (Box::from([value]), Box::from([i64::MIN]));
        ImmediateOperation::start("MPI_Iexscan", buffers, |(send, receive): &mut SendReceive<i64>, request| {
            let (send, receive) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
            // SAFETY: see `call`; both slices have one element.
            unsafe { ffi::MPI_Iexscan(send, receive, 1, ffi::RSMPI_INT64_T, ffi::RSMPI_MAX, self.raw, request) }
        })
    }
}
