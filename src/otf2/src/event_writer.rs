//! Writing the events of one location from nothing.

use crate::bytes::{ByteOrder, Reader, Writer};
use crate::definitions::{TYPE_LOCATION, TYPES_UNSIGNED};
use crate::event_record::EventRecord;
use crate::framing::{attribute_bound, bound, control, singleton_width};
use crate::writer::ChunkWriter;
use clc_trace::{AcceleratorAttributes, AcceleratorReference, Error, Event, EventNumber, Result};

/// The event file of one location.
#[derive(Debug)]
pub struct EventFileWriter {
    chunks: ChunkWriter,
    payload: Vec<u8>,
    record: Vec<u8>,
}

impl EventFileWriter {
    pub(super) fn new(chunks: ChunkWriter) -> EventFileWriter {
        EventFileWriter { chunks, payload: Vec::new(), record: Vec::new() }
    }

    /// Byte order of the file, for the fields of raw records.
    pub fn order(&self) -> ByteOrder {
        self.chunks.order()
    }

    /// Appends an event at local time `time`, with global ids unless the location has tables from its own ids to those.
    /// [`Event::Other`] stands for no record and is refused.
    ///
    /// # Errors
    /// Times decrease; the file cannot be written.
    pub fn event(&mut self, time: u64, event: &Event) -> Result<()> {
        let record = EventRecord::of(event).ok_or_else(|| Error::new("this event has no OTF2 record"))?;
        self.record(time, &record)
    }

    /// As [`EventFileWriter::event`], with the attributes that name what the event refers to, the first ones of `names`; what has no name there is left out.
    ///
    /// # Errors
    /// As [`EventFileWriter::event`].
    pub fn event_with_references(
        &mut self,
        time: u64,
        event: &Event,
        names: &AcceleratorAttributes,
        refers: AcceleratorReference,
    ) -> Result<()> {
        let record = EventRecord::of(event).ok_or_else(|| Error::new("this event has no OTF2 record"))?;
        let stream = names.streams.first().zip(refers.stream.map(|stream| stream.0)).map(|of| (TYPE_LOCATION, of));
        let event = names.events.first().zip(refers.event).map(|of| (*TYPES_UNSIGNED.end(), of));
        let mut attributes = Writer::new(self.order());
        attributes.u32(u32::from(stream.is_some()) + u32::from(event.is_some()));
        for (kind, (attribute, value)) in stream.into_iter().chain(event) {
            attributes.u32(attribute.0);
            attributes.u8(kind);
            attributes.u64(value);
        }
        let mut payload = Writer::new(self.order());
        let kind = record.write(&mut payload);
        let some = stream.is_some() || event.is_some();
        self.append(time, some.then_some(&attributes.bytes[..]), kind, &payload.bytes)
    }

    /// Appends a record of any type.
    ///
    /// # Errors
    /// As [`EventFileWriter::event`].
    pub fn record(&mut self, time: u64, record: &EventRecord) -> Result<()> {
        let mut payload = Writer::with_bytes(self.order(), std::mem::take(&mut self.payload));
        let kind = record.write(&mut payload);
        let result = self.append(time, None, kind, &payload.bytes);
        self.payload = payload.bytes;
        result
    }

    /// Appends a record of any type from its fields.
    ///
    /// # Errors
    /// As [`EventFileWriter::event`]; a type that is no event; fields that are not those of the type.
    pub fn raw(&mut self, time: u64, kind: u8, payload: &[u8]) -> Result<()> {
        self.append(time, None, kind, payload)
    }

    /// Appends a record of any type with attributes: their number (packed 32 bit) and for each the id (packed 32 bit), the type (one byte)
    /// and the value.
    ///
    /// # Errors
    /// As [`EventFileWriter::raw`].
    pub fn raw_with_attributes(&mut self, time: u64, attributes: &[u8], kind: u8, payload: &[u8]) -> Result<()> {
        self.append(time, Some(attributes), kind, payload)
    }

    fn append(&mut self, time: u64, attributes: Option<&[u8]>, kind: u8, payload: &[u8]) -> Result<()> {
        let (order, last) = (self.order(), self.chunks.time());
        if time < last {
            return Err(self.refused(format!("time {time} is earlier than the preceding one, {last}")));
        }
        if kind <= control::ATTRIBUTE_LIST {
            return Err(self.refused(format!("{kind} is not an event type")));
        }
        let most = bound(kind, payload, order);
        let mut record = Writer::with_bytes(order, std::mem::take(&mut self.record));
        let mut most_attributes = 0;
        if let Some(attributes) = attributes {
            most_attributes = attribute_bound(attributes, order);
            record.record(control::ATTRIBUTE_LIST, attributes, most_attributes - 2);
        }
        if let Some(width) = singleton_width(kind) {
            let mut reader = Reader::new(payload, order);
            if reader.packed(width).is_err() || !reader.is_empty() {
                return Err(self.refused("the fields are not a single compressed integer".to_owned()));
            }
            record.u8(kind);
            record.bytes.extend_from_slice(payload);
        } else {
            // The long form wherever the largest possible payload needs it, as libotf2 does.
            record.record(kind, payload, most - 2);
        }
        let result = self.chunks.event(time, &record.bytes, || most + most_attributes, None);
        self.record = record.bytes;
        result
    }

    fn refused(&self, why: String) -> Error {
        Error::new(why).in_file(self.chunks.path()).at_event(EventNumber::after(self.chunks.count()))
    }

    /// Ends the file; returns the number of events.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<u64> {
        let count = self.chunks.count();
        self.chunks.finish()?;
        Ok(count)
    }
}
