//! Comma-separated values in memory.

use csv::Writer;

/// A table of comma-separated values: a header and records, with quotation marks where a field needs them.
pub(crate) struct CsvTable {
    writer: Writer<Vec<u8>>,
}

impl CsvTable {
    /// With the names of the columns.
    pub(crate) fn new<'a>(header: impl IntoIterator<Item = &'a str>) -> CsvTable {
        let mut records = CsvTable { writer: writer() };
        records.add(header);
        records
    }

    /// Adds a record.
    pub(crate) fn add(&mut self, fields: impl IntoIterator<Item = impl AsRef<str>>) {
        for field in fields {
            // Writing to memory cannot fail.
            let _ = self.writer.write_field(field.as_ref());
        }
        let _ = self.writer.write_record(None::<&[u8]>);
    }

    /// The whole table as text.
    pub(crate) fn into_text(mut self) -> String {
        self.take_text()
    }

    /// The text of what was added since it was taken last.
    pub(crate) fn take_text(&mut self) -> String {
        let bytes = std::mem::replace(&mut self.writer, writer()).into_inner().unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }
}

fn writer() -> Writer<Vec<u8>> {
    csv::WriterBuilder::new().flexible(true).from_writer(Vec::new())
}
