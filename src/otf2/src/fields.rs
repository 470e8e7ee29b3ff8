//! What the fields of records are: how each kind is read, written, bounded, and mapped from local to global ids.

use crate::bytes::{Reader, Writer};
use crate::local::LocalDefinitions;
use clc_trace::{
    CommId, Error, GroupId, LocationGroupId, LocationId, ParameterId, RegionId, Result, SystemTreeNodeId, WindowId,
};
use std::ops::Deref;

/// A field of a record.
pub trait Field: Sized {
    /// Most bytes of one; of a list, without its elements.
    const MOST: u16;

    /// The next field of a record.
    ///
    /// # Errors
    /// The record ends within it, or it is longer than it can be.
    fn read(reader: &mut Reader<'_>) -> Result<Self>;

    /// Appends it.
    fn write(&self, writer: &mut Writer);

    /// Whether it is left out, and with it all that would follow.
    fn is_left_out(&self) -> bool {
        false
    }

    /// Makes a global id of a local one.
    fn globalise(&mut self, _local: &LocalDefinitions) {}
}

macro_rules! integer {
    ($kind:ty, $most:literal, $read:ident, $write:ident) => {
        impl Field for $kind {
            const MOST: u16 = $most;

            #[inline(always)]
            fn read(reader: &mut Reader<'_>) -> Result<Self> {
                reader.$read()
            }

            fn write(&self, writer: &mut Writer) {
                writer.$write(*self);
            }
        }
    };
}

integer!(u8, 1, u8, u8);
// Packed: their length in a byte, then so many bytes.
integer!(u32, 5, u32, u32);
integer!(u64, 9, u64, u64);
integer!(i64, 9, i64, i64);

/// A time in ticks, always of eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

impl Field for Stamp {
    const MOST: u16 = 8;

    #[inline(always)]
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        reader.full_u64().map(Stamp)
    }

    fn write(&self, writer: &mut Writer) {
        writer.full_u64(self.0);
    }
}

/// References whose ids are mapped by a table of the location ([`LocalDefinitions`]).
macro_rules! reference {
    ($kind:ident, $table:literal) => {
        impl Field for $kind {
            const MOST: u16 = 5;

            #[inline(always)]
            fn read(reader: &mut Reader<'_>) -> Result<Self> {
                reader.u32().map($kind)
            }

            fn write(&self, writer: &mut Writer) {
                writer.u32(self.0);
            }

            fn globalise(&mut self, local: &LocalDefinitions) {
                self.0 = local.map($table, self.0);
            }
        }
    };
    ($(#[$doc:meta])* new $kind:ident, $table:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $kind(pub u32);

        reference!($kind, $table);
    };
}

// The numbers are those of OTF2's `MappingType`.
reference!(RegionId, 3);
reference!(GroupId, 4);
reference!(CommId, 6);
reference!(ParameterId, 7);
reference!(WindowId, 8);
reference!(
    /// A string (OTF2 `String`).
    new StringId, 0
);
reference!(
    /// A class or an instance of metrics (OTF2 `MetricClass`, `MetricInstance`).
    new MetricId, 5
);
reference!(
    /// A calling context (OTF2 `CallingContext`).
    new CallingContextId, 10
);
reference!(
    /// What makes samples (OTF2 `InterruptGenerator`).
    new InterruptGeneratorId, 11
);
reference!(
    /// A file or directory (OTF2 `IoRegularFile`, `IoDirectory`).
    new IoFileId, 12
);
reference!(
    /// An open file (OTF2 `IoHandle`).
    new IoHandleId, 13
);
// Definitions name these; no event does. Nodes have no table.
reference!(LocationGroupId, 14);
reference!(SystemTreeNodeId, 0xFF);

impl Field for LocationId {
    const MOST: u16 = 9;

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        reader.u64().map(LocationId)
    }

    fn write(&self, writer: &mut Writer) {
        writer.u64(self.0);
    }
}

impl Field for String {
    /// Ends with a zero; no event has one.
    const MOST: u16 = 1;

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        reader.string()
    }

    fn write(&self, writer: &mut Writer) {
        writer.string(self);
    }
}

/// A field at the end that older versions of the format do not have.
impl<T: Field> Field for Option<T> {
    const MOST: u16 = T::MOST;

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        if reader.is_empty() { Ok(None) } else { T::read(reader).map(Some) }
    }

    fn write(&self, writer: &mut Writer) {
        if let Some(field) = self {
            field.write(writer);
        }
    }

    fn is_left_out(&self) -> bool {
        self.is_none()
    }

    fn globalise(&mut self, local: &LocalDefinitions) {
        if let Some(field) = self {
            field.globalise(local);
        }
    }
}

/// So many of the same: their number, then they.
macro_rules! list {
    ($(#[$doc:meta])* $name:ident, $count:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $name<T>(Vec<T>);

        impl<T> $name<T> {
            /// # Errors
            /// There are more than can be counted.
            pub fn new(all: Vec<T>) -> Result<Self> {
                match <$count>::try_from(all.len()) {
                    Ok(_) => Ok($name(all)),
                    Err(_) => Err(Error::damaged(format!("a list of {} elements where at most {} are possible", all.len(), <$count>::MAX))),
                }
            }
        }

        impl<T> Deref for $name<T> {
            type Target = [T];

            fn deref(&self) -> &[T] {
                &self.0
            }
        }

        impl<T: Field> Field for $name<T> {
            const MOST: u16 = <$count as Field>::MOST;

            fn read(reader: &mut Reader<'_>) -> Result<Self> {
                let count = <$count as Field>::read(reader)?;
                // Each takes at least a byte: a wrong number ends in an error, not in an allocation.
                let mut all = Vec::with_capacity((count as usize).min(reader.rest().len()));
                for _ in 0..count {
                    all.push(T::read(reader)?);
                }
                Ok($name(all))
            }

            fn write(&self, writer: &mut Writer) {
                (self.0.len() as $count).write(writer);
                self.0.iter().for_each(|field| field.write(writer));
            }

            fn globalise(&mut self, local: &LocalDefinitions) {
                self.0.iter_mut().for_each(|field| field.globalise(local));
            }
        }
    };
}

list!(
    /// Up to 255 of the same.
    Few, u8
);
list!(
    /// Up to 4,294,967,295 of the same.
    Many, u32
);

/// A value with its type (OTF2 `Type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Typed {
    /// The type: 1 to 4 unsigned of 8, 16, 32, 64 bits, 5 to 8 signed, 9 and 10 floating point, 11 and more references.
    pub kind: u8,
    /// The value: of integers and references as it is, sign-extended; of floating point the bits. As many of them are written as the type has.
    pub bits: u64,
}

impl Field for Typed {
    const MOST: u16 = 10;

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let kind = reader.u8()?;
        Ok(Typed { kind, bits: Typed::read_as(kind, reader)? })
    }

    fn write(&self, writer: &mut Writer) {
        writer.u8(self.kind);
        self.write_bits(writer);
    }
}

impl Typed {
    fn read_as(kind: u8, reader: &mut Reader<'_>) -> Result<u64> {
        Ok(match kind {
            0 => 0,
            1 => u64::from(reader.u8()?),
            5 => i64::from(reader.u8()? as i8) as u64,
            2 => u64::from(reader.full_u16()?),
            6 => i64::from(reader.full_u16()? as i16) as u64,
            9 => u64::from(reader.full_u32()?),
            10 => reader.full_u64()?,
            7 => i64::from(reader.u32()? as i32) as u64,
            3 | 11 | 12 | 14..=25 => u64::from(reader.u32()?),
            _ => reader.u64()?,
        })
    }

    fn write_bits(&self, writer: &mut Writer) {
        match self.kind {
            0 => {}
            1 | 5 => writer.u8(self.bits as u8),
            2 | 6 => writer.full_u16(self.bits as u16),
            9 => writer.full_u32(self.bits as u32),
            10 => writer.full_u64(self.bits),
            3 | 7 | 11 | 12 | 14..=25 => writer.u32(self.bits as u32),
            _ => writer.u64(self.bits),
        }
    }
}

/// The value of a metric at an event: its type, and its bits as a packed integer whatever the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricValue {
    /// OTF2 `Type`: 4 unsigned, 8 signed, 10 floating point.
    pub kind: u8,
    /// The value's bits.
    pub bits: u64,
}

impl Field for MetricValue {
    const MOST: u16 = 10;

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(MetricValue { kind: reader.u8()?, bits: reader.u64()? })
    }

    fn write(&self, writer: &mut Writer) {
        writer.u8(self.kind);
        writer.u64(self.bits);
    }
}

/// Properties of a paradigm of input and output: all their names, all their types, all their values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties(Vec<(u8, Typed)>);

impl Properties {
    /// Each by its name and value.
    ///
    /// # Errors
    /// There are more than 255.
    pub fn new(all: Vec<(u8, Typed)>) -> Result<Self> {
        Few::new(all).map(|few| Properties(few.0))
    }
}

impl Deref for Properties {
    type Target = [(u8, Typed)];

    fn deref(&self) -> &[(u8, Typed)] {
        &self.0
    }
}

impl Field for Properties {
    const MOST: u16 = 1;

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let count = reader.u8()?;
        let names = reader.take(usize::from(count))?;
        let kinds = reader.take(usize::from(count))?;
        let mut all = Vec::with_capacity(usize::from(count));
        for (&name, &kind) in names.iter().zip(kinds) {
            all.push((name, Typed { kind, bits: Typed::read_as(kind, reader)? }));
        }
        Ok(Properties(all))
    }

    fn write(&self, writer: &mut Writer) {
        writer.u8(self.0.len() as u8);
        self.0.iter().for_each(|(name, _)| writer.u8(*name));
        self.0.iter().for_each(|(_, value)| writer.u8(value.kind));
        self.0.iter().for_each(|(_, value)| value.write_bits(writer));
    }
}
