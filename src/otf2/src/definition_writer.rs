//! The file of global definitions, record by record.

use crate::bytes::{ByteOrder, Writer};
use crate::definitions::kind;
use crate::options::CreateOptions;
use crate::writer::ChunkWriter;
use clc_trace::Result;
use std::collections::HashMap;
use std::path::Path;

/// A record of type `kind` with these fields.
pub(crate) fn framed(kind: u8, payload: &Writer, order: ByteOrder) -> Vec<u8> {
    let mut record = Writer::new(order);
    record.record(kind, &payload.bytes, payload.bytes.len());
    record.bytes
}

/// A global definition file that is being written.
pub(crate) struct DefinitionWriter<'a> {
    pub(crate) options: &'a CreateOptions,
    chunks: ChunkWriter,
    strings: HashMap<String, u32>,
    records: u64,
}

impl<'a> DefinitionWriter<'a> {
    /// The file `path`, which must not exist.
    pub(crate) fn create(path: &Path, options: &'a CreateOptions) -> Result<DefinitionWriter<'a>> {
        let chunks = ChunkWriter::create(path, options.definition_chunk, options.order, false)?;
        Ok(DefinitionWriter { options, chunks, strings: HashMap::new(), records: 0 })
    }

    /// Appends a record.
    pub(crate) fn write(&mut self, kind: u8, fill: impl FnOnce(&mut Writer)) -> Result<()> {
        let mut payload = Writer::new(self.options.order);
        fill(&mut payload);
        self.records += 1;
        self.chunks.record(&framed(kind, &payload, self.options.order), None)
    }

    /// The id of a string, which is defined if it has not been yet.
    pub(crate) fn string(&mut self, text: &str) -> Result<u32> {
        if let Some(&id) = self.strings.get(text) {
            return Ok(id);
        }
        let id = self.strings.len() as u32;
        self.strings.insert(text.to_owned(), id);
        self.write(kind::STRING, |payload| {
            payload.u32(id);
            payload.string(text);
        })?;
        Ok(id)
    }

    /// Ends the file; the number of its records.
    pub(crate) fn finish(self) -> Result<u64> {
        self.chunks.finish()?;
        Ok(self.records)
    }
}
