//! The records of the events that we interpret, from their values.

use crate::bytes::Writer;
use clc_trace::{Collective, Event, Message, Root, ThreadEvent, WindowLock, WindowTransfer};

fn root(root: Root) -> u32 {
    match root {
        Root::None => u32::MAX,
        Root::ThisProcess => u32::MAX - 1,
        Root::OwnGroup => u32::MAX - 2,
        Root::Rank(rank) => rank,
    }
}

/// A lock, with its type unless it is released.
fn lock(payload: &mut Writer, lock: &WindowLock, kind: u8) -> u8 {
    payload.u32(lock.window.0);
    payload.u32(lock.remote);
    payload.u64(lock.lock);
    if kind != RELEASE {
        payload.u8(lock.kind);
    }
    kind
}

/// OTF2 `RmaReleaseLock`.
const RELEASE: u8 = 43;

fn transfer(payload: &mut Writer, transfer: &WindowTransfer, kind: u8) -> u8 {
    payload.u32(transfer.window.0);
    payload.u32(transfer.remote);
    payload.u64(transfer.bytes);
    payload.u64(transfer.matching);
    kind
}

/// Record type of an event, its fields appended to `payload`.
pub fn encode(event: &Event, payload: &mut Writer) -> Option<u8> {
    let message = |payload: &mut Writer, message: &Message| {
        payload.u32(message.peer);
        payload.u32(message.comm.0);
        payload.u32(message.tag);
        payload.u64(message.length);
    };
    let collective = |payload: &mut Writer, collective: &Collective| {
        payload.u8(collective.op.0);
        payload.u32(collective.comm.0);
        payload.u32(root(collective.root));
        payload.u64(collective.sent);
        payload.u64(collective.received);
    };
    let with_request = |payload: &mut Writer, request: &u64, kind: u8| {
        payload.u64(*request);
        kind
    };
    Some(match event {
        Event::Other => return None,
        Event::Enter(region) => {
            payload.u32(region.0);
            12
        }
        Event::Leave(region) => {
            payload.u32(region.0);
            13
        }
        Event::MpiSend(m) => {
            message(payload, m);
            14
        }
        Event::MpiIsend(m, request) => {
            message(payload, m);
            with_request(payload, request, 15)
        }
        Event::MpiIsendComplete(request) => with_request(payload, request, 16),
        Event::MpiIrecvRequest(request) => with_request(payload, request, 17),
        Event::MpiRecv(m) => {
            message(payload, m);
            18
        }
        Event::MpiIrecv(m, request) => {
            message(payload, m);
            with_request(payload, request, 19)
        }
        Event::MpiRequestTest(request) => with_request(payload, request, 20),
        Event::MpiRequestCancelled(request) => with_request(payload, request, 21),
        Event::MpiCollectiveBegin => 22,
        Event::MpiCollectiveEnd(c) => {
            collective(payload, c);
            23
        }
        Event::RmaCollectiveBegin => 37,
        Event::RmaCollectiveEnd(c) => {
            payload.u8(c.op.0);
            payload.u32(c.level);
            payload.u32(c.window.0);
            payload.u32(root(c.root));
            payload.u64(c.sent);
            payload.u64(c.received);
            38
        }
        Event::RmaGroupSync(sync) => {
            payload.u32(sync.level);
            payload.u32(sync.window.0);
            payload.u32(sync.group.0);
            39
        }
        Event::RmaRequestLock(l) => lock(payload, l, 40),
        Event::RmaAcquireLock(l) => lock(payload, l, 41),
        Event::RmaTryLock(l) => lock(payload, l, 42),
        Event::RmaReleaseLock(l) => lock(payload, l, RELEASE),
        Event::RmaPut(t) => transfer(payload, t, 46),
        Event::RmaGet(t) => transfer(payload, t, 47),
        Event::RmaAtomic(a) => {
            payload.u32(a.window.0);
            payload.u32(a.remote);
            payload.u8(a.kind);
            payload.u64(a.sent);
            payload.u64(a.received);
            payload.u64(a.matching);
            48
        }
        Event::Thread(step) => {
            let (fields, count) = step.fields();
            for (place, field) in fields.into_iter().take(count).enumerate() {
                if place == 0 && ThreadEvent::begins_with_byte(step.kind()) {
                    payload.u8(field as u8);
                } else {
                    // All but the numbers of threads that are created have 32 bits, of which all ones is undefined.
                    match step {
                        ThreadEvent::Create(_) | ThreadEvent::Begin(_) | ThreadEvent::Wait(_) | ThreadEvent::End(_)
                            if place > 0 =>
                        {
                            payload.u64(field);
                        }
                        _ => payload.u32(field as u32),
                    }
                }
            }
            step.kind()
        }
        Event::NonBlockingCollectiveRequest(request) => with_request(payload, request, 85),
        Event::NonBlockingCollectiveComplete(c, request) => {
            collective(payload, c);
            with_request(payload, request, 86)
        }
    })
}
