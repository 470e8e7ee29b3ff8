//! The files of local definitions, `NAME/<location>.def`.

use crate::bytes::{ByteOrder, Reader, Writer};
use crate::chunks::{FileKind, RecordReader};
use crate::local::{
    ATTRIBUTES, COMMUNICATORS, GROUPS, IdMap, LOCATIONS, LocalDefinitions, PARAMETERS, REGIONS, WINDOWS,
};
use clc_trace::{ClockOffset, Error, Result};
use std::collections::BTreeMap;

/// OTF2 local definition `MappingTable`.
pub(crate) const MAPPING_TABLE: u8 = 5;
/// OTF2 local definition `ClockOffset`.
pub(crate) const CLOCK_OFFSET: u8 = 6;

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

/// A table of 64-bit ids.
fn read_locations(reader: &mut Reader<'_>) -> Result<BTreeMap<u64, u64>> {
    let (count, dense) = (reader.u64()?, reader.u8()? == 0);
    // Every entry takes at least a byte, as below.
    (0..count).map(|place| Ok((if dense { place } else { reader.u64()? }, reader.u64()?))).collect()
}

/// An id of a definition, which has 32 bits wherever records refer to it, though tables have room for more.
fn read_id(reader: &mut Reader<'_>) -> Result<u32> {
    match reader.u64()? {
        u64::MAX => Ok(u32::MAX),
        id => {
            u32::try_from(id).map_err(|_| Error::damaged(format!("id {id} in a mapping table has more than 32 bits")))
        }
    }
}

impl IdMap {
    fn read(reader: &mut Reader<'_>) -> Result<IdMap> {
        let count = reader.u64()?;
        let mut map = IdMap::default();
        // Every entry takes at least a byte: a count beyond the record ends in an error, not in an allocation.
        match reader.u8()? {
            0 => {
                for _ in 0..count {
                    map.dense.push(read_id(reader)?);
                }
            }
            1 => {
                for _ in 0..count {
                    let local = read_id(reader)?;
                    map.sparse.insert(local, read_id(reader)?);
                }
            }
            other => return Err(Error::damaged(format!("unknown id map type {other}"))),
        }
        Ok(map)
    }
}

impl LocalDefinitions {
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
        let mut records = RecordReader::new(bytes, FileKind::Definitions, chunk_size);
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
                        // What accelerators do is found by these; without them it is left out.
                        PARAMETERS => local.parameters = IdMap::read(&mut reader).unwrap_or_default(),
                        ATTRIBUTES => local.attributes = IdMap::read(&mut reader).unwrap_or_default(),
                        LOCATIONS => local.locations = read_locations(&mut reader).unwrap_or_default(),
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
                        return Err(Error::damaged(format!(
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of so many entries, of a type (0 dense, 1 sparse).
    fn table(count: u64, kind: u8, ids: &[u64]) -> Result<IdMap> {
        let mut payload = Writer::new(ByteOrder::Little);
        payload.u64(count);
        payload.u8(kind);
        ids.iter().for_each(|&id| payload.u64(id));
        IdMap::read(&mut Reader::new(&payload.bytes, ByteOrder::Little))
    }

    /// They are not those of the definitions that their lower 32 bits would name.
    #[test]
    fn ids_of_more_than_32_bits_are_refused() {
        let long = 1_u64 << 32 | 5;
        assert_eq!(table(2, 0, &[7, u64::MAX]).unwrap().dense, [7, u32::MAX]);
        assert_eq!(table(1, 1, &[7, 9]).unwrap().map(7), 9);
        for refused in [table(2, 0, &[7, long]), table(1, 1, &[long, 9]), table(1, 1, &[7, long])] {
            assert_eq!(refused.unwrap_err().message, "id 4294967301 in a mapping table has more than 32 bits");
        }
    }
}
