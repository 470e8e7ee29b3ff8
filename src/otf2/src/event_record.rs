//! All event records of OTF2 1.0 to 3.0, from one table.

use crate::fields::{
    CallingContextId, Few, InterruptGeneratorId, IoFileId, IoHandleId, Many, MetricId, MetricValue, Stamp, StringId,
};
use crate::table::records;
use clc_trace::{CommId, GroupId, ParameterId, RegionId, WindowId};

records! {
    /// An event, with the fields and the names of its record. Ranks, tags, requests, locks and the like are what the program knows them by; references
    /// are those of the location until [`EventRecord::globalised`].
    pub enum EventRecord {
        /// The tracer wrote its buffers until `stop_time`.
        10 BufferFlush framed { stop_time: Stamp }
        /// 1: recording goes on, 2: it is off.
        11 MeasurementOnOff framed { mode: u8 }
        /// A region was entered.
        12 Enter single { region: RegionId }
        /// A region was left.
        13 Leave single { region: RegionId }
        /// A blocking send.
        14 MpiSend framed { receiver: u32, communicator: CommId, tag: u32, length: u64 }
        /// A send was begun.
        15 MpiIsend framed { receiver: u32, communicator: CommId, tag: u32, length: u64, request: u64 }
        /// A send has completed.
        16 MpiIsendComplete single { request: u64 }
        /// A receive was posted.
        17 MpiIrecvRequest single { request: u64 }
        /// A blocking receive.
        18 MpiRecv framed { sender: u32, communicator: CommId, tag: u32, length: u64 }
        /// A posted receive has completed.
        19 MpiIrecv framed { sender: u32, communicator: CommId, tag: u32, length: u64, request: u64 }
        /// A request was tested in vain.
        20 MpiRequestTest single { request: u64 }
        /// A request was cancelled.
        21 MpiRequestCancelled single { request: u64 }
        /// A collective operation begins.
        22 MpiCollectiveBegin framed {}
        /// A collective operation ends.
        23 MpiCollectiveEnd framed { operation: u8, communicator: CommId, root: u32, sent: u64, received: u64 }
        /// Superseded by `ThreadFork`.
        24 OmpFork single { requested_threads: u32 }
        /// Superseded by `ThreadJoin`.
        25 OmpJoin framed {}
        /// Superseded by `ThreadAcquireLock`.
        26 OmpAcquireLock framed { lock: u32, acquisition_order: u32 }
        /// Superseded by `ThreadReleaseLock`.
        27 OmpReleaseLock framed { lock: u32, acquisition_order: u32 }
        /// Superseded by `ThreadTaskCreate`.
        28 OmpTaskCreate single { task: u64 }
        /// Superseded by `ThreadTaskSwitch`.
        29 OmpTaskSwitch single { task: u64 }
        /// Superseded by `ThreadTaskComplete`.
        30 OmpTaskComplete single { task: u64 }
        /// Values of metrics.
        31 Metric framed { metric: MetricId, values: Few<MetricValue> }
        /// The value of a parameter.
        32 ParameterString framed { parameter: ParameterId, value: StringId }
        /// The value of a parameter.
        33 ParameterInt framed { parameter: ParameterId, value: i64 }
        /// The value of a parameter.
        34 ParameterUnsignedInt framed { parameter: ParameterId, value: u64 }
        /// A window was made.
        35 RmaWinCreate framed { window: WindowId }
        /// A window was freed.
        36 RmaWinDestroy framed { window: WindowId }
        /// A collective operation on a window begins.
        37 RmaCollectiveBegin framed {}
        /// A collective operation on a window ends.
        38 RmaCollectiveEnd framed {
            operation: u8, sync_level: u32, window: WindowId, root: u32, sent: u64, received: u64,
        }
        /// Some processes of a window synchronise.
        39 RmaGroupSync framed { sync_level: u32, window: WindowId, group: GroupId }
        /// A lock is asked for.
        40 RmaRequestLock framed { window: WindowId, remote: u32, lock: u64, lock_type: u8 }
        /// A lock was got.
        41 RmaAcquireLock framed { window: WindowId, remote: u32, lock: u64, lock_type: u8 }
        /// A lock was tried in vain.
        42 RmaTryLock framed { window: WindowId, remote: u32, lock: u64, lock_type: u8 }
        /// A lock was given back.
        43 RmaReleaseLock framed { window: WindowId, remote: u32, lock: u64 }
        /// Memory or a process is synchronised.
        44 RmaSync framed { window: WindowId, remote: u32, sync_type: u8 }
        /// A change in a window was waited for.
        45 RmaWaitChange framed { window: WindowId }
        /// Data are put.
        46 RmaPut framed { window: WindowId, remote: u32, bytes: u64, matching: u64 }
        /// Data are got.
        47 RmaGet framed { window: WindowId, remote: u32, bytes: u64, matching: u64 }
        /// An atomic operation.
        48 RmaAtomic framed { window: WindowId, remote: u32, kind: u8, sent: u64, received: u64, matching: u64 }
        /// An operation completed, and was waited for.
        49 RmaOpCompleteBlocking framed { window: WindowId, matching: u64 }
        /// An operation completed without being waited for.
        50 RmaOpCompleteNonBlocking framed { window: WindowId, matching: u64 }
        /// An operation was tested in vain.
        51 RmaOpTest framed { window: WindowId, matching: u64 }
        /// An operation completed at its target.
        52 RmaOpCompleteRemote framed { window: WindowId, matching: u64 }
        /// Threads are forked.
        53 ThreadFork framed { model: u8, requested_threads: u32 }
        /// Threads have joined.
        54 ThreadJoin framed { model: u8 }
        /// A thread begins in a team.
        55 ThreadTeamBegin framed { team: CommId }
        /// A thread ends in a team.
        56 ThreadTeamEnd framed { team: CommId }
        /// A lock was got.
        57 ThreadAcquireLock framed { model: u8, lock: u32, acquisition_order: u32 }
        /// A lock was given back.
        58 ThreadReleaseLock framed { model: u8, lock: u32, acquisition_order: u32 }
        /// A task was made.
        59 ThreadTaskCreate framed { team: CommId, creating_thread: u32, generation: u32 }
        /// A task goes on.
        60 ThreadTaskSwitch framed { team: CommId, creating_thread: u32, generation: u32 }
        /// A task has completed.
        61 ThreadTaskComplete framed { team: CommId, creating_thread: u32, generation: u32 }
        /// A thread is made.
        62 ThreadCreate framed { contingent: CommId, sequence: u64 }
        /// A thread begins.
        63 ThreadBegin framed { contingent: CommId, sequence: u64 }
        /// A thread was waited for.
        64 ThreadWait framed { contingent: CommId, sequence: u64 }
        /// A thread ends.
        65 ThreadEnd framed { contingent: CommId, sequence: u64 }
        /// A calling context was entered.
        66 CallingContextEnter framed { context: CallingContextId, unwind_distance: u32 }
        /// A calling context was left.
        67 CallingContextLeave framed { context: CallingContextId }
        /// A sample of a calling context.
        68 CallingContextSample framed {
            context: CallingContextId, unwind_distance: u32, generator: InterruptGeneratorId,
        }
        /// A file was opened.
        69 IoCreateHandle framed { handle: IoHandleId, mode: u8, creation_flags: u32, status_flags: u32 }
        /// A file was closed.
        70 IoDestroyHandle framed { handle: IoHandleId }
        /// A handle was duplicated.
        71 IoDuplicateHandle framed { old: IoHandleId, new: IoHandleId, status_flags: u32 }
        /// The place in a file was changed.
        72 IoSeek framed { handle: IoHandleId, offset_request: i64, whence: u8, offset_result: u64 }
        /// Flags of a handle were changed.
        73 IoChangeStatusFlags framed { handle: IoHandleId, status_flags: u32 }
        /// A file was deleted.
        74 IoDeleteFile framed { paradigm: u8, file: IoFileId }
        /// An operation on a file begins.
        75 IoOperationBegin framed {
            handle: IoHandleId, mode: u8, operation_flags: u32, bytes_request: u64, matching: u64,
        }
        /// An operation was tested in vain.
        76 IoOperationTest framed { handle: IoHandleId, matching: u64 }
        /// An operation was issued.
        77 IoOperationIssued framed { handle: IoHandleId, matching: u64 }
        /// An operation has completed.
        78 IoOperationComplete framed { handle: IoHandleId, bytes_result: u64, matching: u64 }
        /// An operation was cancelled.
        79 IoOperationCancelled framed { handle: IoHandleId, matching: u64 }
        /// A lock of a file was got.
        80 IoAcquireLock framed { handle: IoHandleId, lock_type: u8 }
        /// A lock of a file was given back.
        81 IoReleaseLock framed { handle: IoHandleId, lock_type: u8 }
        /// A lock of a file was tried in vain.
        82 IoTryLock framed { handle: IoHandleId, lock_type: u8 }
        /// The program begins.
        83 ProgramBegin framed { name: StringId, arguments: Many<StringId> }
        /// The program ends.
        84 ProgramEnd framed { exit_status: i64 }
        /// A collective operation was begun.
        85 NonBlockingCollectiveRequest framed { request: u64 }
        /// A collective operation has completed.
        86 NonBlockingCollectiveComplete framed {
            operation: u8, communicator: CommId, root: u32, sent: u64, received: u64, request: u64,
        }
        /// A communicator was made.
        87 CommCreate framed { communicator: CommId }
        /// A communicator was freed.
        88 CommDestroy framed { communicator: CommId }
    }
}
