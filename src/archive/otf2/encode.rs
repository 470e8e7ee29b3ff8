//! The records of the events that we interpret, from their values.

use crate::archive::otf2::bytes::Writer;
use crate::trace::{Collective, Event, Message, Root};

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
        payload.u32(match collective.root {
            Root::None => u32::MAX,
            Root::ThisProcess => u32::MAX - 1,
            Root::OwnGroup => u32::MAX - 2,
            Root::Rank(rank) => rank,
        });
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
        Event::NonBlockingCollectiveRequest(request) => with_request(payload, request, 85),
        Event::NonBlockingCollectiveComplete(c, request) => {
            collective(payload, c);
            with_request(payload, request, 86)
        }
    })
}
