//! The fields of event records that we interpret, read fast.

use crate::bytes::{Reader, truncated};
use crate::chunks::{Record, RecordFields};
use crate::interpret::root_of;
use crate::local::LocalDefinitions;
use clc_trace::{
    CallParameter, Collective, CollectiveOp, CommId, Event, GroupId, Message, ParameterId, RegionId, Result, Root,
    ThreadEvent, WindowAtomic, WindowCollective, WindowGroup, WindowId, WindowLock, WindowTransfer,
};

/// Whether events of a type can take part in the synchronisation of processes, or belong to requests that do.
#[inline]
pub(crate) const fn synchronises(kind: u8) -> bool {
    matches!(kind, 14..=19 | 21..=23 | 37..=43 | 46..=48 | 85 | 86)
}

/// The fields that we interpret, with ids mapped to global ones. A record of another type is [`Event::Other`].
#[inline(always)]
pub(crate) fn decode(record: &Record<'_>, local: &LocalDefinitions) -> Result<Event> {
    let mut fields = record.fields();
    let event = decode_fields(record.kind, &mut fields, local)?;
    if record.within(&fields) { Ok(event) } else { Err(truncated()) }
}

/// As [`decode`], from the fields of a record of type `kind`.
#[inline(always)]
pub(crate) fn decode_within(kind: u8, mut fields: RecordFields<'_>, local: &LocalDefinitions) -> Result<Event> {
    let event = decode_fields(kind, &mut fields.reader, local)?;
    if fields.are_enough() { Ok(event) } else { Err(truncated()) }
}

/// The fields of a record that consists of the number of a request.
#[inline(always)]
pub(crate) fn request(mut fields: RecordFields<'_>) -> Result<u64> {
    let request = fields.reader.u64()?;
    if fields.are_enough() { Ok(request) } else { Err(truncated()) }
}

/// What [`crate::EventRecord`] says in general, by hand for what a correction reads: this is the innermost loop of a scan. That both say the same is tested.
#[inline(always)]
pub(crate) fn decode_fields(kind: u8, reader: &mut Reader<'_>, local: &LocalDefinitions) -> Result<Event> {
    Ok(match kind {
        12 => Event::Enter(RegionId(local.regions.map(reader.u32()?))),
        13 => Event::Leave(RegionId(local.regions.map(reader.u32()?))),
        14 => Event::MpiSend(message(reader, local)?),
        15 => {
            let (message, request) = message_with_request(reader, local)?;
            Event::MpiIsend(message, request)
        }
        16 => Event::MpiIsendComplete(reader.u64()?),
        17 => Event::MpiIrecvRequest(reader.u64()?),
        18 => Event::MpiRecv(message(reader, local)?),
        19 => {
            let (message, request) = message_with_request(reader, local)?;
            Event::MpiIrecv(message, request)
        }
        20 => Event::MpiRequestTest(reader.u64()?),
        21 => Event::MpiRequestCancelled(reader.u64()?),
        22 => Event::MpiCollectiveBegin,
        23 => Event::MpiCollectiveEnd(collective(reader, local)?),
        34 => Event::Parameter(CallParameter {
            parameter: ParameterId(local.parameters.map(reader.u32()?)),
            value: reader.u64()?,
        }),
        37 => Event::RmaCollectiveBegin,
        38..=43 | 46..=48 => one_sided(kind, reader, local)?,
        49 => Event::RmaOpCompleteBlocking(WindowId(local.windows.map(reader.u32()?)), reader.u64()?),
        53..=65 => Event::Thread(thread(kind, reader, local)?),
        85 => Event::NonBlockingCollectiveRequest(reader.u64()?),
        86 => {
            let collective = collective(reader, local)?;
            Event::NonBlockingCollectiveComplete(collective, reader.u64()?)
        }
        _ => Event::Other,
    })
}

#[inline(always)]
fn message(reader: &mut Reader<'_>, local: &LocalDefinitions) -> Result<Message> {
    let fields = match reader.packed_in_a_row([4, 4, 4, 8]) {
        Some(fields) => fields,
        None => message_fields(reader)?,
    };
    Ok(message_of(fields, local))
}

#[inline(always)]
fn message_with_request(reader: &mut Reader<'_>, local: &LocalDefinitions) -> Result<(Message, u64)> {
    let [peer, communicator, tag, length, request] = match reader.packed_in_a_row([4, 4, 4, 8, 8]) {
        Some(fields) => fields,
        None => {
            let [peer, communicator, tag, length] = message_fields(reader)?;
            [peer, communicator, tag, length, reader.u64()?]
        }
    };
    Ok((message_of([peer, communicator, tag, length], local), request))
}

/// The fields of a message, one by one.
#[inline(never)]
fn message_fields(reader: &mut Reader<'_>) -> Result<[u64; 4]> {
    Ok([u64::from(reader.u32()?), u64::from(reader.u32()?), u64::from(reader.u32()?), reader.u64()?])
}

#[inline(always)]
fn message_of([peer, communicator, tag, length]: [u64; 4], local: &LocalDefinitions) -> Message {
    let comm = CommId(local.communicators.map(communicator as u32));
    Message { peer: peer as u32, comm, tag: tag as u32, length }
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
    // By far the most of them.
    if let TEAM_BEGIN | TEAM_END = kind {
        let team = CommId(local.communicators.map(reader.u32()?));
        return Ok(if kind == TEAM_BEGIN { ThreadEvent::TeamBegin(team) } else { ThreadEvent::TeamEnd(team) });
    }
    let mut fields = [0; 3];
    for (place, field) in fields.iter_mut().take(ThreadEvent::field_count(kind)).enumerate() {
        *field = match (place, kind) {
            (0, kind) if ThreadEvent::begins_with_byte(kind) => u64::from(reader.u8()?),
            (0, _) => u64::from(local.communicators.map(reader.u32()?)),
            (_, CREATE..=END) => reader.u64()?,
            _ => u64::from(reader.u32()?),
        };
    }
    ThreadEvent::from_fields(kind, fields).ok_or_else(truncated)
}

/// OTF2 `ThreadTeamBegin` and `ThreadTeamEnd`.
const TEAM_BEGIN: u8 = 55;
const TEAM_END: u8 = 56;

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
    reader.u32().map(root_of)
}
