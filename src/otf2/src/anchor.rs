//! The anchor file `NAME.otf2`.

use crate::bytes::{ByteOrder, Reader, Writer};
use crate::framing::control;
use clc_trace::{Error, Result};
use serde::{Deserialize, Serialize};

/// Property of an archive: "true" if for all communication by MPI both ends were recorded, "false" if not.
pub const COMMUNICATION_COMPLETE: &str = "OTF2::MPI_COMMUNICATION_COMPLETE";

/// Smallest and largest chunk that libotf2 accepts, in bytes.
pub(crate) const CHUNK_SIZES: std::ops::RangeInclusive<u64> = 256 * 1024..=16 * 1024 * 1024;

/// Contents of the anchor file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorFile {
    /// Its byte order; the other files may differ.
    pub order: ByteOrder,
    /// Version of the anchor's own layout.
    pub format: u8,
    /// Version of the trace format.
    pub trace_format: u8,
    /// Version of the library that wrote it.
    pub version: [u8; 3],
    /// Size of the chunks of event files, in bytes.
    pub event_chunk: u64,
    /// Size of the chunks of definition files, in bytes.
    pub definition_chunk: u64,
    /// Number of locations.
    pub locations: u64,
    /// Number of records in the global definition file.
    pub definitions: u64,
    /// Name of the machine.
    pub machine: String,
    /// The tool that wrote the archive.
    pub creator: String,
    /// Free text.
    pub description: String,
    /// Named properties.
    pub properties: Vec<(String, String)>,
    /// Identifies the trace.
    pub trace_id: u64,
    /// Number of snapshots.
    pub snapshots: u32,
    /// Number of thumbnails.
    pub thumbnails: u32,
    /// Where in the file the two counts stand, if they are there.
    pub counts_at: Option<usize>,
}

const NO_ANCHOR: &str = "not an OTF2 anchor file";

impl AnchorFile {
    /// Reads the bytes of an anchor file.
    ///
    /// # Errors
    /// Not an anchor file, an unknown version, a container (SIONlib) or compression that is not supported, chunk sizes out of
    /// range.
    pub fn read(bytes: &[u8]) -> Result<AnchorFile> {
        let order = match bytes {
            [control::CHUNK, tag, b'O', b'T', b'F', b'2', 0, ..] => ByteOrder::from_tag(*tag),
            _ => None,
        };
        let order = order.ok_or_else(|| Error::damaged(NO_ANCHOR))?;
        AnchorFile::fields(Reader::new(&bytes[7..], order), order, bytes.len()).map_err(|error| {
            if error.message.contains("middle of a field") {
                Error::damaged("the anchor file is truncated")
            } else {
                error
            }
        })
    }

    fn fields(mut reader: Reader<'_>, order: ByteOrder, length: usize) -> Result<AnchorFile> {
        let format = reader.u8()?;
        let trace_format = reader.u8()?;
        if format == 0 {
            return Err(Error::unsupported("unknown anchor file version 0"));
        }
        if !(1..=2).contains(&trace_format) {
            return Err(Error::unsupported(format!("unknown trace format version {trace_format}"))
                .hint("clc-replay reads versions 1 and 2 of the OTF2 trace format"));
        }
        let version = [reader.u8()?, reader.u8()?, reader.u8()?];
        let event_chunk = reader.full_u64()?;
        let definition_chunk = reader.full_u64()?;
        for (what, size) in [("event", event_chunk), ("definition", definition_chunk)] {
            if !CHUNK_SIZES.contains(&size) {
                return Err(Error::damaged(format!("the {what} chunk size {size} is not between 256 KiB and 16 MiB")));
            }
        }
        match reader.u8()? {
            1 => {}
            2 => {
                return Err(Error::unsupported("the archive uses the SIONlib substrate, which is not supported")
                    .hint("record it with the POSIX substrate, e.g. SCOREP_TRACING_USE_SION=false"));
            }
            other => return Err(Error::unsupported(format!("unknown file substrate {other}"))),
        }
        match reader.u8()? {
            1 => {}
            2 => {
                return Err(Error::unsupported("the archive is compressed (zlib), which is not supported")
                    .hint("record it without compression"));
            }
            other => return Err(Error::unsupported(format!("unknown compression {other}"))),
        }
        let mut anchor = AnchorFile {
            order,
            format,
            trace_format,
            version,
            event_chunk,
            definition_chunk,
            locations: reader.full_u64()?,
            definitions: reader.full_u64()?,
            machine: reader.string()?,
            creator: reader.string()?,
            description: reader.string()?,
            properties: Vec::new(),
            trace_id: 0,
            snapshots: 0,
            thumbnails: 0,
            counts_at: None,
        };
        if format >= 2 {
            for _ in 0..reader.full_u32()? {
                anchor.properties.push((reader.string()?, reader.string()?));
            }
            anchor.trace_id = reader.full_u64()?;
        }
        if format >= 3 {
            anchor.counts_at = Some(length - reader.rest().len());
            anchor.snapshots = reader.full_u32()?;
            anchor.thumbnails = reader.full_u32()?;
        }
        Ok(anchor)
    }

    /// The bytes of the anchor file, in layout 3.
    pub fn write(&self) -> Vec<u8> {
        let mut writer = Writer::new(self.order);
        writer.bytes.extend([control::CHUNK, self.order.tag()]);
        writer.string("OTF2");
        writer.bytes.extend([3, self.trace_format]);
        writer.bytes.extend(self.version);
        writer.full_u64(self.event_chunk);
        writer.full_u64(self.definition_chunk);
        writer.bytes.extend([1, 1]);
        writer.full_u64(self.locations);
        writer.full_u64(self.definitions);
        for text in [&self.machine, &self.creator, &self.description] {
            writer.string(text);
        }
        writer.full_u32(self.properties.len() as u32);
        for (name, value) in &self.properties {
            writer.string(name);
            writer.string(value);
        }
        writer.full_u64(self.trace_id);
        writer.full_u32(self.snapshots);
        writer.full_u32(self.thumbnails);
        writer.bytes.extend([control::END_OF_FILE, control::END_OF_BUFFER, control::END_OF_CHUNK]);
        writer.bytes
    }
}
