//! The one way in which a table of records becomes a type, its reader, its writer, and the bounds of its size.

/// Makes an enum of records from lines of number, name, framing (`single`: one packed integer without a length; `framed`) and fields.
macro_rules! records {
    (
        $(#[$meta:meta])*
        pub enum $table:ident {
            $($(#[$doc:meta])* $number:literal $name:ident $framing:ident { $($field:ident: $kind:ty),* $(,)? })*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs)] // fields are called what the records of OTF2 call them
        #[non_exhaustive]
        pub enum $table {
            $($(#[$doc])* $name { $($field: $kind),* },)*
            /// A record of a type that this version does not know.
            Unknown {
                /// Its number.
                number: u8,
                /// Its fields, as they are.
                payload: Vec<u8>,
            },
        }

        impl $table {
            /// Number, name, and most bytes of the fields of every record, without the elements of lists.
            pub const TABLE: &'static [(u8, &'static str, u16)] =
                &[$(($number, stringify!($name), 0 $(+ <$kind as $crate::fields::Field>::MOST)*)),*];

            /// Numbers of the records that have no length: they are one packed integer.
            #[allow(dead_code)] // definitions have none
            pub(crate) const SINGLES: &'static [(u8, bool)] = &[$(($number, records!(@single $framing))),*];

            /// The record `number` from its fields. What follows the fields that are known belongs to later versions of the format, and is left.
            ///
            /// # Errors
            /// It ends within a field, or one is longer than it can be.
            pub fn read(number: u8, reader: &mut $crate::bytes::Reader<'_>) -> clc_trace::Result<$table> {
                Ok(match number {
                    $($number => $table::$name { $($field: $crate::fields::Field::read(reader)?),* },)*
                    _ => $table::Unknown { number, payload: reader.rest().to_vec() },
                })
            }

            /// Appends the fields; returns the number of the record.
            pub fn write(&self, writer: &mut $crate::bytes::Writer) -> u8 {
                match self {
                    $($table::$name { $($field),* } => {
                        $(
                            if $crate::fields::Field::is_left_out($field) {
                                return $number;
                            }
                            $crate::fields::Field::write($field, writer);
                        )*
                        $number
                    })*
                    $table::Unknown { number, payload } => {
                        writer.bytes.extend_from_slice(payload);
                        *number
                    }
                }
            }

            /// The same with global ids instead of those of a location.
            #[must_use]
            #[allow(unused_mut, unused_variables)] // records without references
            pub fn globalised(mut self, local: &$crate::local::LocalDefinitions) -> $table {
                match &mut self {
                    $($table::$name { $($field),* } => {
                        $($crate::fields::Field::globalise($field, local);)*
                    })*
                    $table::Unknown { .. } => {}
                }
                self
            }

            /// Number of the record.
            pub fn number(&self) -> u8 {
                match self {
                    $($table::$name { .. } => $number,)*
                    $table::Unknown { number, .. } => *number,
                }
            }

            /// Name of the record, as OTF2 has it.
            pub fn name(&self) -> &'static str {
                match self {
                    $($table::$name { .. } => stringify!($name),)*
                    $table::Unknown { .. } => "Unknown",
                }
            }
        }
    };
    (@single single) => { true };
    (@single framed) => { false };
}

pub(crate) use records;
