//! Local definitions `NAME/<location>.def`: id mappings and clock offsets.

use crate::bytes::{ByteOrder, Reader, Writer};
use crate::chunks::{FileKind, Records};
use clc_trace::{ClockOffset, Error, Result};
use std::collections::{BTreeMap, HashMap};

/// OTF2 local definition `MappingTable`.
pub const MAPPING_TABLE: u8 = 5;
/// OTF2 local definition `ClockOffset`.
pub const CLOCK_OFFSET: u8 = 6;
/// Kind of a mapping table of regions.
const REGIONS: u8 = 3;
/// Kind of a mapping table of groups.
const GROUPS: u8 = 4;
/// Kind of a mapping table of communicators.
const COMMUNICATORS: u8 = 6;
/// Kind of a mapping table of windows.
const WINDOWS: u8 = 8;

/// From the ids that one location's events use to global ones. Ids that are not covered stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdMap {
    dense: Vec<u32>,
    sparse: HashMap<u32, u32>,
}

impl IdMap {
    /// The global id of `local`.
    #[inline]
    pub fn map(&self, local: u32) -> u32 {
        match self.dense.get(local as usize) {
            Some(&global) => global,
            None if self.sparse.is_empty() => local,
            None => self.sparse.get(&local).copied().unwrap_or(local),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<IdMap> {
        let count = reader.u64()?;
        let mut map = IdMap::default();
        // Every entry takes at least a byte: a count beyond the record ends in an error, not in an allocation.
        match reader.u8()? {
            0 => {
                for _ in 0..count {
                    map.dense.push(reader.u64()? as u32);
                }
            }
            1 => {
                for _ in 0..count {
                    let local = reader.u64()? as u32;
                    map.sparse.insert(local, reader.u64()? as u32);
                }
            }
            other => return Err(Error::new(format!("unknown id map type {other}"))),
        }
        Ok(map)
    }
}

/// What the local definitions of a location say, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LocalDefinitions {
    /// Measured clock offsets, in strictly increasing order of time.
    pub clock_offsets: Vec<ClockOffset>,
    /// Regions.
    pub regions: IdMap,
    /// Communicators.
    pub communicators: IdMap,
    /// Windows.
    pub windows: IdMap,
    /// Groups.
    pub groups: IdMap,
    /// All other tables, by kind (OTF2 `MappingType`); only [`LocalDefinitions::read_in_full`] reads them.
    pub others: BTreeMap<u8, IdMap>,
    /// What is odd.
    pub warnings: Vec<String>,
}

/// The record of a clock offset.
pub(super) fn clock_offset_record(offset: &ClockOffset, order: ByteOrder) -> Vec<u8> {
    let mut payload = Writer::new(order);
    payload.full_u64(offset.time);
    payload.i64(offset.offset);
    payload.full_u64(offset.standard_deviation.to_bits());
    let mut record = Writer::new(order);
    record.record(CLOCK_OFFSET, &payload.bytes, payload.bytes.len());
    record.bytes
}

impl LocalDefinitions {
    /// The global id of what the location calls `id`, in the table of a kind (OTF2 `MappingType`); the same where there is none.
    pub fn map(&self, kind: u8, id: u32) -> u32 {
        let table = match kind {
            REGIONS => Some(&self.regions),
            COMMUNICATORS => Some(&self.communicators),
            WINDOWS => Some(&self.windows),
            GROUPS => Some(&self.groups),
            other => self.others.get(&other),
        };
        table.map_or(id, |table| table.map(id))
    }

    /// Reads the contents of a local definition file, except for the tables in [`LocalDefinitions::others`].
    ///
    /// # Errors
    /// Damaged records, clock offsets that are not in increasing order of time.
    pub fn read(bytes: &[u8], chunk_size: u64) -> Result<LocalDefinitions> {
        LocalDefinitions::read_tables(bytes, chunk_size, false)
    }

    /// Reads the contents of a local definition file with all its tables: for records whose every reference is mapped.
    ///
    /// # Errors
    /// As [`LocalDefinitions::read`].
    pub fn read_in_full(bytes: &[u8], chunk_size: u64) -> Result<LocalDefinitions> {
        LocalDefinitions::read_tables(bytes, chunk_size, true)
    }

    fn read_tables(bytes: &[u8], chunk_size: u64, in_full: bool) -> Result<LocalDefinitions> {
        let mut local = LocalDefinitions::default();
        let mut seen = [false; 256];
        let mut records = Records::new(bytes, FileKind::Definitions, chunk_size);
        while let Some(record) = records.next()? {
            let mut reader = Reader::new(record.payload, record.order);
            match record.kind {
                MAPPING_TABLE => {
                    let kind = reader.u8()?;
                    if std::mem::replace(&mut seen[usize::from(kind)], true) {
                        local.warnings.push(
                            "local definitions hold several id maps of the same type; only the first is \
                                used"
                                .into(),
                        );
                        continue;
                    }
                    match kind {
                        REGIONS => local.regions = IdMap::read(&mut reader)?,
                        COMMUNICATORS => local.communicators = IdMap::read(&mut reader)?,
                        WINDOWS => local.windows = IdMap::read(&mut reader)?,
                        GROUPS => local.groups = IdMap::read(&mut reader)?,
                        // Nothing that is corrected depends on them: damage there is no reason to refuse the trace.
                        other if in_full => {
                            if let Ok(map) = IdMap::read(&mut reader) {
                                local.others.insert(other, map);
                            }
                        }
                        _ => {}
                    }
                }
                CLOCK_OFFSET => {
                    let offset = ClockOffset {
                        time: reader.full_u64()?,
                        offset: reader.i64()?,
                        standard_deviation: reader.f64()?,
                    };
                    if let Some(last) = local.clock_offsets.last()
                        && offset.time <= last.time
                    {
                        return Err(Error::new(format!(
                            "clock offset {} was measured at {}, which is not after the previous one at {}",
                            local.clock_offsets.len() + 1,
                            offset.time,
                            last.time
                        )));
                    }
                    local.clock_offsets.push(offset);
                }
                _ => {}
            }
        }
        Ok(local)
    }
}
