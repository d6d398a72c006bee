//! Text of `events/GROUP/NAME/format` and `events/header_page`: where a field of a record stands.
//!
//! For: offsets and sizes as this kernel has them. Not for: what a field means.

use super::Foreign;

/// A field of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// First byte.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

impl Field {
    /// Its bytes; `None` where the record is too short.
    pub fn bytes<'r>(&self, record: &'r [u8]) -> Option<&'r [u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Its value as a number without a sign, of the machine's byte order; 0 where the record is too short.
    pub fn number(&self, record: &[u8]) -> u64 {
        let Some(bytes) = self.bytes(record) else { return 0 };
        if let Ok(eight) = <[u8; 8]>::try_from(bytes) {
            return u64::from_ne_bytes(eight);
        }
        match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => 0,
        }
    }

    /// Its value as a number of four bytes with a sign, of the machine's byte order; 0 where the record is too short.
    pub fn signed(&self, record: &[u8]) -> i32 {
        self.number(record) as u32 as i32
    }
}

/// A record's format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Its number in records; 0 of the page's header.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Reads the text.
    ///
    /// # Errors
    /// The line that is no field.
    pub fn parse(text: &str) -> Result<Self, Foreign> {
        let mut format = Self::default();
        for line in text.lines() {
            let line = line.trim();
            if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().map_err(|_| foreign(line))?;
            } else if let Some(rest) = line.strip_prefix("field:") {
                format.fields.push(field(rest).ok_or_else(|| foreign(line))?);
            }
        }
        Ok(format)
    }

    /// The field of this name.
    ///
    /// # Errors
    /// That there is none.
    pub fn field(&self, name: &str) -> Result<Field, Foreign> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found
            .map(|(_, field)| *field)
            .ok_or_else(|| Foreign(format!("the kernel's event has no field {name}")))
    }

    /// The field of this name, where there is one.
    pub fn has(&self, name: &str) -> Option<Field> {
        self.field(name).ok()
    }
}

/// `unsigned int nr_sector; offset:24; size:4; signed:0;`, with tabs.
fn field(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.split_whitespace().next_back()?.split('[').next()?;
    let mut value = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    let (offset, size) = (value("offset:")?, value("size:")?);
    Some((name.to_owned(), Field { offset, size }))
}

fn foreign(line: &str) -> Foreign {
    Foreign(format!("the kernel's format has a line that is not understood: {line}"))
}

#[cfg(test)]
pub(crate) const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
    \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
    \tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n\
    \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"%d\", REC->dev\n";

#[test]
fn a_format_is_read_as_the_kernel_prints_it() -> Result<(), Foreign> {
    let format = Format::parse(ISSUE)?;
    assert_eq!(format.id, 2104);
    assert_eq!(format.field("sector")?, Field { offset: 16, size: 8 });
    assert_eq!(format.field("rwbs")?, Field { offset: 34, size: 10 });
    assert_eq!(format.field("cmd")?, Field { offset: 60, size: 4 });
    assert!(format.field("error").is_err() && format.has("error").is_none());
    assert!(Format::parse("field:int x;\toffset:y;").is_err());
    let mut record = vec![0_u8; 32];
    record[24..28].copy_from_slice(&8_u32.to_ne_bytes());
    assert_eq!(format.field("nr_sector")?.number(&record), 8);
    assert_eq!(format.field("rwbs")?.number(&record), 0, "a record that is too short");
    assert_eq!(Field { offset: usize::MAX, size: 8 }.bytes(&record), None);
    Ok(())
}
