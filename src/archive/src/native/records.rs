//! One event as bytes. Types of events have the numbers that OTF2 gives to its event records.

use super::numbers::{ByteReader, put};
use super::{FIRST_VERSION, VERSION, WITH_EVENTS, WITH_STREAMS, WITH_THREADS, WITH_WINDOWS};
use clc_trace::{
    AcceleratorReference, CallParameter, Collective, CollectiveOp, CommId, Error, Event, GroupId, LocationId, Message,
    ParameterId, RegionId, Result, Root, ThreadEvent, WindowAtomic, WindowCollective, WindowGroup, WindowId,
    WindowLock, WindowTransfer,
};

/// Most bytes of an event: its time and six fields, each of ten bytes at most, and two single bytes.
pub(super) const LONGEST_EVENT: usize = 7 * super::numbers::LONGEST + 2;

/// What stands for an event of which not even the type is known.
const UNSPECIFIED: u8 = 0;
/// Types of [`NativeRecord::Referring`]: an enter, a leave; the same of calls that refer to an event, and perhaps to a stream.
const ENTER_ON_STREAM: u8 = 1;
const LEAVE_ON_STREAM: u8 = 2;
const ENTER_OF_EVENT: u8 = 3;
const LEAVE_OF_EVENT: u8 = 4;
/// Types of interpreted events.
mod kind {
    pub(super) const BUFFER_FLUSH: u8 = 10;
    pub(super) const ENTER: u8 = 12;
    pub(super) const LEAVE: u8 = 13;
    pub(super) const MPI_SEND: u8 = 14;
    pub(super) const MPI_ISEND: u8 = 15;
    pub(super) const MPI_ISEND_COMPLETE: u8 = 16;
    pub(super) const MPI_IRECV_REQUEST: u8 = 17;
    pub(super) const MPI_RECV: u8 = 18;
    pub(super) const MPI_IRECV: u8 = 19;
    pub(super) const MPI_REQUEST_TEST: u8 = 20;
    pub(super) const MPI_REQUEST_CANCELLED: u8 = 21;
    pub(super) const MPI_COLLECTIVE_BEGIN: u8 = 22;
    pub(super) const MPI_COLLECTIVE_END: u8 = 23;
    pub(super) const PARAMETER: u8 = 34;
    pub(super) const RMA_COLLECTIVE_BEGIN: u8 = 37;
    pub(super) const RMA_COLLECTIVE_END: u8 = 38;
    pub(super) const RMA_GROUP_SYNC: u8 = 39;
    pub(super) const RMA_REQUEST_LOCK: u8 = 40;
    pub(super) const RMA_ACQUIRE_LOCK: u8 = 41;
    pub(super) const RMA_TRY_LOCK: u8 = 42;
    pub(super) const RMA_RELEASE_LOCK: u8 = 43;
    pub(super) const RMA_PUT: u8 = 46;
    pub(super) const RMA_GET: u8 = 47;
    pub(super) const RMA_ATOMIC: u8 = 48;
    pub(super) const RMA_OP_COMPLETE_BLOCKING: u8 = 49;
    pub(super) const NON_BLOCKING_COLLECTIVE_REQUEST: u8 = 85;
    pub(super) const NON_BLOCKING_COLLECTIVE_COMPLETE: u8 = 86;
}

/// What an event file says about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeRecord {
    /// An interpreted event; [`Event::Other`] is written as `NativeRecord::Other(0)`.
    Event(Event),
    /// A region was entered, or left if the last part is false, by a call that refers to something of an accelerator.
    Referring(RegionId, AcceleratorReference, bool),
    /// The measurement system wrote its buffer to disk until this time (OTF2 `BufferFlush`).
    BufferFlush(u64),
    /// An event that is not interpreted: its time and type are kept, its fields are not. The number is that of the OTF2 event record,
    /// or 0.
    Other(u8),
}

impl NativeRecord {
    /// A record of an OTF2 type without its fields, if that type is one that is kept so: 0, or 10 and above, but no type whose fields
    /// are interpreted.
    pub fn other(kind: u8) -> Option<NativeRecord> {
        NativeRecord::other_in(VERSION, kind)
    }

    /// As [`NativeRecord::other`], in that version of the format.
    fn other_in(version: u32, kind: u8) -> Option<NativeRecord> {
        let interpreted = match kind {
            10 | 12..=23 | 85 | 86 => true,
            _ => (FIRST_VERSION + 1..=version).contains(&has_fields_since(kind)),
        };
        (kind == UNSPECIFIED || (kind >= 10 && !interpreted)).then_some(NativeRecord::Other(kind))
    }

    /// What a replay sees of it.
    pub fn event(&self) -> Event {
        match self {
            NativeRecord::Event(event) => *event,
            NativeRecord::Referring(region, _, true) => Event::Enter(*region),
            NativeRecord::Referring(region, _, false) => Event::Leave(*region),
            NativeRecord::BufferFlush(_) | NativeRecord::Other(_) => Event::Other,
        }
    }

    /// An enter or leave by a call that refers to something.
    pub fn referring(event: Event, refers: AcceleratorReference) -> Option<NativeRecord> {
        match event {
            Event::Enter(region) if refers.is_some() => Some(NativeRecord::Referring(region, refers, true)),
            Event::Leave(region) if refers.is_some() => Some(NativeRecord::Referring(region, refers, false)),
            _ => None,
        }
    }

    /// What the call refers to.
    pub(crate) fn reference(&self) -> AcceleratorReference {
        match self {
            NativeRecord::Referring(_, refers, _) => *refers,
            _ => AcceleratorReference::default(),
        }
    }

    /// The number of its type: that of the OTF2 event record, or 0.
    pub fn kind(&self) -> u8 {
        match self {
            NativeRecord::Event(event) => match event {
                Event::Other => UNSPECIFIED,
                Event::Enter(_) => kind::ENTER,
                Event::Leave(_) => kind::LEAVE,
                Event::MpiSend(_) => kind::MPI_SEND,
                Event::MpiIsend(..) => kind::MPI_ISEND,
                Event::MpiIsendComplete(_) => kind::MPI_ISEND_COMPLETE,
                Event::MpiIrecvRequest(_) => kind::MPI_IRECV_REQUEST,
                Event::MpiRecv(_) => kind::MPI_RECV,
                Event::MpiIrecv(..) => kind::MPI_IRECV,
                Event::MpiRequestTest(_) => kind::MPI_REQUEST_TEST,
                Event::MpiRequestCancelled(_) => kind::MPI_REQUEST_CANCELLED,
                Event::MpiCollectiveBegin => kind::MPI_COLLECTIVE_BEGIN,
                Event::MpiCollectiveEnd(_) => kind::MPI_COLLECTIVE_END,
                Event::RmaCollectiveBegin => kind::RMA_COLLECTIVE_BEGIN,
                Event::RmaCollectiveEnd(_) => kind::RMA_COLLECTIVE_END,
                Event::RmaGroupSync(_) => kind::RMA_GROUP_SYNC,
                Event::RmaRequestLock(_) => kind::RMA_REQUEST_LOCK,
                Event::RmaAcquireLock(_) => kind::RMA_ACQUIRE_LOCK,
                Event::RmaTryLock(_) => kind::RMA_TRY_LOCK,
                Event::RmaReleaseLock(_) => kind::RMA_RELEASE_LOCK,
                Event::RmaPut(_) => kind::RMA_PUT,
                Event::RmaGet(_) => kind::RMA_GET,
                Event::RmaAtomic(_) => kind::RMA_ATOMIC,
                Event::NonBlockingCollectiveRequest(_) => kind::NON_BLOCKING_COLLECTIVE_REQUEST,
                Event::NonBlockingCollectiveComplete(..) => kind::NON_BLOCKING_COLLECTIVE_COMPLETE,
                Event::Thread(step) => step.kind(),
                Event::Parameter(_) => kind::PARAMETER,
                Event::RmaOpCompleteBlocking(..) => kind::RMA_OP_COMPLETE_BLOCKING,
            },
            NativeRecord::Referring(_, _, true) => kind::ENTER,
            NativeRecord::Referring(_, _, false) => kind::LEAVE,
            NativeRecord::BufferFlush(_) => kind::BUFFER_FLUSH,
            NativeRecord::Other(kind) => *kind,
        }
    }

    /// Appends type and fields in that version of the format. `time` is that of the event.
    ///
    /// # Errors
    /// A collective's root, or the type of an event that is not interpreted, that the format cannot hold.
    #[inline]
    pub(crate) fn encode(&self, time: u64, into: &mut Vec<u8>, version: u32) -> Result<()> {
        if let NativeRecord::Other(kind) = *self
            && NativeRecord::other_in(version, kind).is_none()
        {
            return Err(Error::new(format!("events of type {kind} cannot be stored without their fields")));
        }
        into.push(match self {
            NativeRecord::Referring(_, AcceleratorReference { event: None, .. }, true) => ENTER_ON_STREAM,
            NativeRecord::Referring(_, AcceleratorReference { event: None, .. }, false) => LEAVE_ON_STREAM,
            NativeRecord::Referring(_, _, true) => ENTER_OF_EVENT,
            NativeRecord::Referring(_, _, false) => LEAVE_OF_EVENT,
            other => other.kind(),
        });
        match self {
            NativeRecord::Referring(region, AcceleratorReference { stream, event }, _) => {
                put(into, u64::from(region.0));
                if event.is_some() {
                    into.push(u8::from(stream.is_some()));
                }
                put(into, stream.map_or(0, |stream| stream.0));
                event.iter().for_each(|event| put(into, *event));
            }
            NativeRecord::Other(_) => {}
            // Modulo 2^64, for a stop before its own event.
            NativeRecord::BufferFlush(stop) => put(into, stop.wrapping_sub(time)),
            NativeRecord::Event(event) => match event {
                Event::Other | Event::MpiCollectiveBegin | Event::RmaCollectiveBegin => {}
                Event::Enter(region) | Event::Leave(region) => put(into, u64::from(region.0)),
                Event::MpiSend(m) | Event::MpiRecv(m) => put_message(into, m),
                Event::MpiIsend(m, request) | Event::MpiIrecv(m, request) => {
                    put_message(into, m);
                    put(into, *request);
                }
                Event::MpiIsendComplete(request)
                | Event::MpiIrecvRequest(request)
                | Event::MpiRequestTest(request)
                | Event::MpiRequestCancelled(request)
                | Event::NonBlockingCollectiveRequest(request) => put(into, *request),
                Event::MpiCollectiveEnd(c) => put_collective(into, c)?,
                Event::RmaCollectiveEnd(c) => {
                    into.push(c.op.0);
                    put_all(
                        into,
                        &[u64::from(c.level), u64::from(c.window.0), root_number(c.root)?, c.sent, c.received],
                    );
                }
                Event::RmaGroupSync(sync) => {
                    put_all(into, &[u64::from(sync.level), u64::from(sync.window.0), u64::from(sync.group.0)]);
                }
                Event::RmaRequestLock(l)
                | Event::RmaAcquireLock(l)
                | Event::RmaTryLock(l)
                | Event::RmaReleaseLock(l) => {
                    into.push(l.kind);
                    put_all(into, &[u64::from(l.window.0), u64::from(l.remote), l.lock]);
                }
                Event::RmaPut(t) | Event::RmaGet(t) => {
                    put_all(into, &[u64::from(t.window.0), u64::from(t.remote), t.bytes, t.matching]);
                }
                Event::RmaAtomic(a) => {
                    into.push(a.kind);
                    let (window, remote) = (u64::from(a.window.0), u64::from(a.remote));
                    put_all(into, &[window, remote, a.sent, a.received, a.matching]);
                }
                Event::Thread(step) => {
                    let (fields, count) = step.fields();
                    put_all(into, &fields[..count]);
                }
                Event::RmaOpCompleteBlocking(window, matching) => put_all(into, &[u64::from(window.0), *matching]),
                Event::Parameter(p) => put_all(into, &[u64::from(p.parameter.0), p.value]),
                Event::NonBlockingCollectiveComplete(c, request) => {
                    put_collective(into, c)?;
                    put(into, *request);
                }
            },
        }
        Ok(())
    }

    /// Reads type and fields in that version of the format; `None` if they are not those of any event.
    #[inline]
    pub(crate) fn decode(bytes: &mut ByteReader<'_>, time: u64, version: u32) -> Option<NativeRecord> {
        let kind = bytes.byte()?;
        if version < has_fields_since(kind) {
            return NativeRecord::other_in(version, kind);
        }
        if let ENTER_ON_STREAM | LEAVE_ON_STREAM | ENTER_OF_EVENT | LEAVE_OF_EVENT = kind {
            let of_event = matches!(kind, ENTER_OF_EVENT | LEAVE_OF_EVENT);
            let region = RegionId(bytes.number32()?);
            let on_stream = !of_event || bytes.flag()?;
            let stream = Some(LocationId(bytes.number()?)).filter(|_| on_stream);
            let event = if of_event { Some(bytes.number()?) } else { None };
            let enters = matches!(kind, ENTER_ON_STREAM | ENTER_OF_EVENT);
            return Some(NativeRecord::Referring(region, AcceleratorReference { stream, event }, enters));
        }
        Some(NativeRecord::Event(match kind {
            kind::ENTER => Event::Enter(RegionId(bytes.number32()?)),
            kind::LEAVE => Event::Leave(RegionId(bytes.number32()?)),
            kind::MPI_SEND => Event::MpiSend(message(bytes)?),
            kind::MPI_ISEND => Event::MpiIsend(message(bytes)?, bytes.number()?),
            kind::MPI_ISEND_COMPLETE => Event::MpiIsendComplete(bytes.number()?),
            kind::MPI_IRECV_REQUEST => Event::MpiIrecvRequest(bytes.number()?),
            kind::MPI_RECV => Event::MpiRecv(message(bytes)?),
            kind::MPI_IRECV => Event::MpiIrecv(message(bytes)?, bytes.number()?),
            kind::MPI_REQUEST_TEST => Event::MpiRequestTest(bytes.number()?),
            kind::MPI_REQUEST_CANCELLED => Event::MpiRequestCancelled(bytes.number()?),
            kind::MPI_COLLECTIVE_BEGIN => Event::MpiCollectiveBegin,
            kind::MPI_COLLECTIVE_END => Event::MpiCollectiveEnd(collective(bytes)?),
            kind::RMA_COLLECTIVE_BEGIN => Event::RmaCollectiveBegin,
            kind::RMA_COLLECTIVE_END => Event::RmaCollectiveEnd(WindowCollective {
                op: CollectiveOp(bytes.byte()?),
                level: bytes.number32()?,
                window: WindowId(bytes.number32()?),
                root: root(bytes)?,
                sent: bytes.number()?,
                received: bytes.number()?,
            }),
            kind::RMA_GROUP_SYNC => Event::RmaGroupSync(WindowGroup {
                level: bytes.number32()?,
                window: WindowId(bytes.number32()?),
                group: GroupId(bytes.number32()?),
            }),
            kind::RMA_REQUEST_LOCK => Event::RmaRequestLock(lock(bytes)?),
            kind::RMA_ACQUIRE_LOCK => Event::RmaAcquireLock(lock(bytes)?),
            kind::RMA_TRY_LOCK => Event::RmaTryLock(lock(bytes)?),
            kind::RMA_RELEASE_LOCK => Event::RmaReleaseLock(lock(bytes)?),
            kind::RMA_PUT => Event::RmaPut(transfer(bytes)?),
            kind::RMA_GET => Event::RmaGet(transfer(bytes)?),
            kind::RMA_ATOMIC => {
                let kind = bytes.byte()?;
                Event::RmaAtomic(WindowAtomic {
                    kind,
                    window: WindowId(bytes.number32()?),
                    remote: bytes.number32()?,
                    sent: bytes.number()?,
                    received: bytes.number()?,
                    matching: bytes.number()?,
                })
            }
            kind::RMA_OP_COMPLETE_BLOCKING => {
                Event::RmaOpCompleteBlocking(WindowId(bytes.number32()?), bytes.number()?)
            }
            kind::PARAMETER => {
                Event::Parameter(CallParameter { parameter: ParameterId(bytes.number32()?), value: bytes.number()? })
            }
            53..=65 => {
                let mut fields = [0; 3];
                for field in fields.iter_mut().take(ThreadEvent::field_count(kind)) {
                    *field = bytes.number()?;
                }
                Event::Thread(ThreadEvent::from_fields(kind, fields)?)
            }
            kind::NON_BLOCKING_COLLECTIVE_REQUEST => Event::NonBlockingCollectiveRequest(bytes.number()?),
            kind::NON_BLOCKING_COLLECTIVE_COMPLETE => {
                Event::NonBlockingCollectiveComplete(collective(bytes)?, bytes.number()?)
            }
            kind::BUFFER_FLUSH => return Some(NativeRecord::BufferFlush(bytes.number()?.wrapping_add(time))),
            _ => return NativeRecord::other_in(version, kind),
        }))
    }
}

/// The version since which events of a type have fields, if any.
fn has_fields_since(kind: u8) -> u32 {
    match kind {
        37..=43 | 46..=48 => WITH_WINDOWS,
        53..=65 => WITH_THREADS,
        ENTER_ON_STREAM | LEAVE_ON_STREAM | kind::PARAMETER | kind::RMA_OP_COMPLETE_BLOCKING => WITH_STREAMS,
        ENTER_OF_EVENT | LEAVE_OF_EVENT => WITH_EVENTS,
        _ => FIRST_VERSION,
    }
}

fn put_message(into: &mut Vec<u8>, message: &Message) {
    put(into, u64::from(message.peer));
    put(into, u64::from(message.comm.0));
    put(into, u64::from(message.tag));
    put(into, message.length);
}

fn message(bytes: &mut ByteReader<'_>) -> Option<Message> {
    Some(Message {
        peer: bytes.number32()?,
        comm: CommId(bytes.number32()?),
        tag: bytes.number32()?,
        length: bytes.number()?,
    })
}

/// Ranks come after the three special roots.
const FIRST_RANK: u32 = 3;

fn put_all(into: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|&number| put(into, number));
}

fn root_number(root: Root) -> Result<u64> {
    Ok(u64::from(match root {
        Root::None => 0,
        Root::ThisProcess => 1,
        Root::OwnGroup => 2,
        Root::Rank(rank) => rank
            .checked_add(FIRST_RANK)
            .ok_or_else(|| Error::new(format!("rank {rank} as the root of a collective operation")))?,
    }))
}

fn root(bytes: &mut ByteReader<'_>) -> Option<Root> {
    Some(match bytes.number32()? {
        0 => Root::None,
        1 => Root::ThisProcess,
        2 => Root::OwnGroup,
        rank => Root::Rank(rank - FIRST_RANK),
    })
}

fn lock(bytes: &mut ByteReader<'_>) -> Option<WindowLock> {
    let kind = bytes.byte()?;
    let (window, remote) = (WindowId(bytes.number32()?), bytes.number32()?);
    Some(WindowLock { window, remote, lock: bytes.number()?, kind })
}

fn transfer(bytes: &mut ByteReader<'_>) -> Option<WindowTransfer> {
    let (window, remote) = (WindowId(bytes.number32()?), bytes.number32()?);
    Some(WindowTransfer { window, remote, bytes: bytes.number()?, matching: bytes.number()? })
}

fn put_collective(into: &mut Vec<u8>, collective: &Collective) -> Result<()> {
    let root = root_number(collective.root)?;
    into.push(collective.op.0);
    put(into, u64::from(collective.comm.0));
    put(into, root);
    put(into, collective.sent);
    put(into, collective.received);
    Ok(())
}

fn collective(bytes: &mut ByteReader<'_>) -> Option<Collective> {
    Some(Collective {
        op: CollectiveOp(bytes.byte()?),
        comm: CommId(bytes.number32()?),
        root: root(bytes)?,
        sent: bytes.number()?,
        received: bytes.number()?,
    })
}
