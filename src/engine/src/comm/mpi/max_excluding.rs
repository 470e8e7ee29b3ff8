//! The reduction of [`MaxExcluding`] in MPI: an operation and a datatype of our own.
#![allow(unsafe_code)]

use crate::comm::MaxExcluding;
use crate::comm::mpi::call::{ImmediateOperation, MpiCommunicator, check, rank_number};
use crate::comm::mpi::operations::SendReceive;
use clc_trace::Result;
use mpi::ffi;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

/// The operation, and the datatype: three integers in one element, so that the library cannot split it. Frees both when dropped, which
/// has to be before MPI is finalised.
pub(super) struct MaxExcludingReduction {
    op: ffi::MPI_Op,
    datatype: ffi::MPI_Datatype,
}

/// What MPI calls to combine two arrays of [`MaxExcluding`].
unsafe extern "C" fn merge_tops(
    input: *mut c_void,
    in_out: *mut c_void,
    length: *mut c_int,
    _datatype: *mut ffi::MPI_Datatype,
) {
    // SAFETY: MPI gives two arrays of `length` elements of the datatype, which has the layout of `MaxExcluding` (three i64, `repr(C)`); they
    // need not be aligned.
    unsafe {
        for i in 0..(*length).max(0) as usize {
            let one = input.cast::<MaxExcluding>().add(i).read_unaligned();
            let two = in_out.cast::<MaxExcluding>().add(i);
            two.write_unaligned(one.merge(two.read_unaligned()));
        }
    }
}

impl MaxExcludingReduction {
    /// Registers operation and datatype.
    pub(super) fn new() -> Result<MaxExcludingReduction> {
        let mut op = MaybeUninit::uninit();
        let mut datatype = MaybeUninit::uninit();
        // SAFETY: handles are written before they are read; the function stays valid for the whole program.
        unsafe {
            check("MPI_Type_contiguous", ffi::MPI_Type_contiguous(3, ffi::RSMPI_INT64_T, datatype.as_mut_ptr()))?;
            check("MPI_Type_commit", ffi::MPI_Type_commit(datatype.as_mut_ptr()))?;
            check("MPI_Op_create", ffi::MPI_Op_create(Some(merge_tops), 1, op.as_mut_ptr()))?;
            Ok(MaxExcludingReduction { op: op.assume_init(), datatype: datatype.assume_init() })
        }
    }

    /// `MPI_Ireduce`, or `MPI_Iallreduce` without a root.
    pub(super) fn start(
        &self,
        on: &MpiCommunicator,
        root: Option<usize>,
        value: MaxExcluding,
    ) -> Result<ImmediateOperation<SendReceive<MaxExcluding>>> {
        let buffers = (Box::from([value]), Box::from([MaxExcluding::NONE]));
        let what = if root.is_some() { "MPI_Ireduce" } else { "MPI_Iallreduce" };
        ImmediateOperation::start(what, buffers, |(send, receive): &mut SendReceive<MaxExcluding>, request| {
            let (send, receive) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
            // SAFETY: see `call`; both slices have one element.
            unsafe {
                match root.map(rank_number) {
                    Some(root) => ffi::MPI_Ireduce(send, receive, 1, self.datatype, self.op, root, on.raw, request),
                    None => ffi::MPI_Iallreduce(send, receive, 1, self.datatype, self.op, on.raw, request),
                }
            }
        })
    }
}

impl Drop for MaxExcludingReduction {
    fn drop(&mut self) {
        // SAFETY: handles made by `new`; MPI frees them once no reduction uses them any more.
        unsafe {
            ffi::MPI_Op_free(&mut self.op);
            ffi::MPI_Type_free(&mut self.datatype);
        }
    }
}
