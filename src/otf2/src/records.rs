//! The event records of OTF2 (versions 1.0 to 3.0): names, framing, upper bounds of their size, and the fields that we interpret.

use crate::bytes::{ByteOrder, Reader};
use crate::chunks::Record;
use crate::local::LocalDefinitions;
use clc_trace::{
    Collective, CollectiveOp, CommId, Error, Event, GroupId, Message, RegionId, Result, Root, ThreadEvent,
    WindowAtomic, WindowCollective, WindowGroup, WindowId, WindowLock, WindowTransfer,
};

/// Control bytes in the place of a record type.
pub mod control {
    /// Nothing more in this chunk.
    pub const END_OF_CHUNK: u8 = 0;
    /// Follows the end of a file.
    pub const END_OF_BUFFER: u8 = 1;
    /// Nothing more in this file.
    pub const END_OF_FILE: u8 = 2;
    /// Begin of a chunk.
    pub const CHUNK: u8 = 3;
    /// The time of the events that follow.
    pub const TIMESTAMP: u8 = 5;
    /// Attributes of the event that follows.
    pub const ATTRIBUTE_LIST: u8 = 6;
}

/// OTF2 `BufferFlush`, the only event with a time among its fields.
pub const BUFFER_FLUSH: u8 = 10;

/// Name and upper bound of the payload of the record types from 10 on; the bounds are sums of field maxima (1 byte: 1, packed
/// 32-bit: 5, packed 64-bit: 9, full 64-bit: 8).
const RECORDS: [(&str, u16); 79] = [
    ("BufferFlush", 8),
    ("MeasurementOnOff", 1),
    ("Enter", 5),
    ("Leave", 5),
    ("MpiSend", 24),
    ("MpiIsend", 33),
    ("MpiIsendComplete", 9),
    ("MpiIrecvRequest", 9),
    ("MpiRecv", 24),
    ("MpiIrecv", 33),
    ("MpiRequestTest", 9),
    ("MpiRequestCancelled", 9),
    ("MpiCollectiveBegin", 0),
    ("MpiCollectiveEnd", 29),
    ("OmpFork", 5),
    ("OmpJoin", 0),
    ("OmpAcquireLock", 10),
    ("OmpReleaseLock", 10),
    ("OmpTaskCreate", 9),
    ("OmpTaskSwitch", 9),
    ("OmpTaskComplete", 9),
    ("Metric", 6),
    ("ParameterString", 10),
    ("ParameterInt", 14),
    ("ParameterUnsignedInt", 14),
    ("RmaWinCreate", 5),
    ("RmaWinDestroy", 5),
    ("RmaCollectiveBegin", 0),
    ("RmaCollectiveEnd", 34),
    ("RmaGroupSync", 15),
    ("RmaRequestLock", 20),
    ("RmaAcquireLock", 20),
    ("RmaTryLock", 20),
    ("RmaReleaseLock", 19),
    ("RmaSync", 11),
    ("RmaWaitChange", 5),
    ("RmaPut", 28),
    ("RmaGet", 28),
    ("RmaAtomic", 38),
    ("RmaOpCompleteBlocking", 14),
    ("RmaOpCompleteNonBlocking", 14),
    ("RmaOpTest", 14),
    ("RmaOpCompleteRemote", 14),
    ("ThreadFork", 6),
    ("ThreadJoin", 1),
    ("ThreadTeamBegin", 5),
    ("ThreadTeamEnd", 5),
    ("ThreadAcquireLock", 11),
    ("ThreadReleaseLock", 11),
    ("ThreadTaskCreate", 15),
    ("ThreadTaskSwitch", 15),
    ("ThreadTaskComplete", 15),
    ("ThreadCreate", 14),
    ("ThreadBegin", 14),
    ("ThreadWait", 14),
    ("ThreadEnd", 14),
    ("CallingContextEnter", 10),
    ("CallingContextLeave", 5),
    ("CallingContextSample", 15),
    ("IoCreateHandle", 16),
    ("IoDestroyHandle", 5),
    ("IoDuplicateHandle", 15),
    ("IoSeek", 24),
    ("IoChangeStatusFlags", 10),
    ("IoDeleteFile", 6),
    ("IoOperationBegin", 29),
    ("IoOperationTest", 14),
    ("IoOperationIssued", 14),
    ("IoOperationComplete", 23),
    ("IoOperationCancelled", 14),
    ("IoAcquireLock", 6),
    ("IoReleaseLock", 6),
    ("IoTryLock", 6),
    ("ProgramBegin", 10),
    ("ProgramEnd", 9),
    ("NonBlockingCollectiveRequest", 9),
    ("NonBlockingCollectiveComplete", 38),
    ("CommCreate", 5),
    ("CommDestroy", 5),
];

const METRIC: u8 = 31;
const PROGRAM_BEGIN: u8 = 83;

/// Name of a record type.
pub fn name(kind: u8) -> String {
    match kind.checked_sub(10).and_then(|index| RECORDS.get(usize::from(index))) {
        Some((name, _)) => (*name).to_owned(),
        None => format!("Unknown{kind}"),
    }
}

/// Some record types have no length: their payload is one packed integer of at most so many bytes.
#[inline]
pub const fn singleton_width(kind: u8) -> Option<u8> {
    match kind {
        12 | 13 | 24 => Some(4),
        16 | 17 | 20 | 21 | 28..=30 => Some(8),
        _ => None,
    }
}

/// In [`FRAMING`]: the record has a length.
pub const FRAMED: u8 = 0x80;

/// In [`FRAMING`]: no record of the common form.
const UNCOMMON: u8 = 0x81;

/// How records of the common form are framed, by type: the largest length of their packed integer, or [`FRAMED`].
pub static FRAMING: [u8; 256] = framing();

const fn framing() -> [u8; 256] {
    let mut framing = [UNCOMMON; 256];
    let mut kind = 10;
    while kind < 256 {
        framing[kind] = match singleton_width(kind as u8) {
            Some(width) => width,
            None => FRAMED,
        };
        kind += 1;
    }
    framing
}

/// Upper bound of type, length and payload of a record, by which libotf2 decides whether a chunk has room.
pub fn bound(kind: u8, payload: &[u8], order: ByteOrder) -> usize {
    if let Some(width) = singleton_width(kind) {
        return 2 + usize::from(width);
    }
    let fixed = kind.checked_sub(10).and_then(|index| RECORDS.get(usize::from(index)));
    let most = match (fixed, kind) {
        (Some((_, most)), METRIC) => {
            let mut reader = Reader::new(payload, order);
            let values = reader.u32().and_then(|_| reader.u8()).unwrap_or(0);
            usize::from(*most) + 10 * usize::from(values)
        }
        (Some((_, most)), PROGRAM_BEGIN) => {
            let mut reader = Reader::new(payload, order);
            let arguments = reader.u32().and_then(|_| reader.u32()).unwrap_or(0);
            // A damaged count must not become a huge number; the payload itself is the other limit.
            usize::from(*most) + 5 * (arguments as usize).min(payload.len())
        }
        (Some((_, most)), _) => usize::from(*most),
        (None, _) => 0,
    }
    .max(payload.len());
    1 + if most >= 255 { 9 } else { 1 } + most
}

/// Upper bound of an attribute list with this payload.
pub fn attribute_bound(payload: &[u8], order: ByteOrder) -> usize {
    let count = Reader::new(payload, order).u32().unwrap_or(0) as usize;
    let most = (15 * count.min(payload.len()) + 5).max(payload.len());
    1 + if most >= 255 { 9 } else { 1 } + most
}

/// Whether events of a type can take part in the synchronisation of processes, or belong to requests that do.
#[inline]
pub const fn synchronises(kind: u8) -> bool {
    matches!(kind, 14..=19 | 21..=23 | 37..=43 | 46..=48 | 85 | 86)
}

/// The fields that we interpret, with ids mapped to global ones. A record of another type is [`Event::Other`].
#[inline(always)]
pub fn decode(record: &Record<'_>, local: &LocalDefinitions) -> Result<Event> {
    let mut fields = record.fields();
    let reader = &mut fields;
    let event = match record.kind {
        12 => Event::Enter(RegionId(local.regions.map(reader.u32()?))),
        13 => Event::Leave(RegionId(local.regions.map(reader.u32()?))),
        14 => Event::MpiSend(message(reader, local)?),
        15 => {
            let message = message(reader, local)?;
            Event::MpiIsend(message, reader.u64()?)
        }
        16 => Event::MpiIsendComplete(reader.u64()?),
        17 => Event::MpiIrecvRequest(reader.u64()?),
        18 => Event::MpiRecv(message(reader, local)?),
        19 => {
            let message = message(reader, local)?;
            Event::MpiIrecv(message, reader.u64()?)
        }
        20 => Event::MpiRequestTest(reader.u64()?),
        21 => Event::MpiRequestCancelled(reader.u64()?),
        22 => Event::MpiCollectiveBegin,
        23 => Event::MpiCollectiveEnd(collective(reader, local)?),
        37 => Event::RmaCollectiveBegin,
        38..=43 | 46..=48 => one_sided(record.kind, reader, local)?,
        53..=65 => Event::Thread(thread(record.kind, reader, local)?),
        85 => Event::NonBlockingCollectiveRequest(reader.u64()?),
        86 => {
            let collective = collective(reader, local)?;
            Event::NonBlockingCollectiveComplete(collective, reader.u64()?)
        }
        _ => Event::Other,
    };
    if record.within(&fields) { Ok(event) } else { Err(ends_early()) }
}

#[cold]
fn ends_early() -> Error {
    Error::new("the record ends in the middle of a field")
}

#[inline(always)]
fn message(reader: &mut Reader<'_>, local: &LocalDefinitions) -> Result<Message> {
    Ok(Message {
        peer: reader.u32()?,
        comm: CommId(local.communicators.map(reader.u32()?)),
        tag: reader.u32()?,
        length: reader.u64()?,
    })
}

/// Records of one-sided communication.
fn one_sided(kind: u8, reader: &mut Reader<'_>, local: &LocalDefinitions) -> Result<Event> {
    let window = |reader: &mut Reader<'_>| reader.u32().map(|id| WindowId(local.windows.map(id)));
    Ok(match kind {
        38 => {
            let (op, level) = (CollectiveOp(reader.u8()?), reader.u32()?);
            let (window, root) = (window(reader)?, root(reader)?);
            let (sent, received) = (reader.u64()?, reader.u64()?);
            Event::RmaCollectiveEnd(WindowCollective { op, level, window, root, sent, received })
        }
        39 => {
            let (level, window) = (reader.u32()?, window(reader)?);
            let group = GroupId(local.groups.map(reader.u32()?));
            Event::RmaGroupSync(WindowGroup { level, window, group })
        }
        40..=43 => {
            let (window, remote, lock) = (window(reader)?, reader.u32()?, reader.u64()?);
            let of = |kind| WindowLock { window, remote, lock, kind };
            match kind {
                40 => Event::RmaRequestLock(of(reader.u8()?)),
                41 => Event::RmaAcquireLock(of(reader.u8()?)),
                42 => Event::RmaTryLock(of(reader.u8()?)),
                _ => Event::RmaReleaseLock(of(0)),
            }
        }
        46 | 47 => {
            let (window, remote) = (window(reader)?, reader.u32()?);
            let transfer = WindowTransfer { window, remote, bytes: reader.u64()?, matching: reader.u64()? };
            if kind == 46 { Event::RmaPut(transfer) } else { Event::RmaGet(transfer) }
        }
        _ => {
            let (window, remote, kind) = (window(reader)?, reader.u32()?, reader.u8()?);
            let (sent, received, matching) = (reader.u64()?, reader.u64()?, reader.u64()?);
            Event::RmaAtomic(WindowAtomic { window, remote, kind, sent, received, matching })
        }
    })
}

/// Records of threads.
fn thread(kind: u8, reader: &mut Reader<'_>, local: &LocalDefinitions) -> Result<ThreadEvent> {
    let mut fields = [0; 3];
    for (place, field) in fields.iter_mut().take(ThreadEvent::field_count(kind)).enumerate() {
        *field = match (place, kind) {
            (0, kind) if ThreadEvent::begins_with_byte(kind) => u64::from(reader.u8()?),
            (0, _) => u64::from(local.communicators.map(reader.u32()?)),
            (_, CREATE..=END) => reader.u64()?,
            _ => u64::from(reader.u32()?),
        };
    }
    ThreadEvent::from_fields(kind, fields).ok_or_else(ends_early)
}

/// OTF2 `ThreadCreate` to `ThreadEnd`.
const CREATE: u8 = 62;
const END: u8 = 65;

fn collective(reader: &mut Reader<'_>, local: &LocalDefinitions) -> Result<Collective> {
    Ok(Collective {
        op: CollectiveOp(reader.u8()?),
        comm: CommId(local.communicators.map(reader.u32()?)),
        root: root(reader)?,
        sent: reader.u64()?,
        received: reader.u64()?,
    })
}

fn root(reader: &mut Reader<'_>) -> Result<Root> {
    Ok(match reader.u32()? {
        u32::MAX => Root::None,
        0xFFFF_FFFE => Root::ThisProcess,
        0xFFFF_FFFD => Root::OwnGroup,
        rank => Root::Rank(rank),
    })
}
