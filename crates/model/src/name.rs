//! Names of files as text, whatever bytes are in them, and back.
//!
//! For: paths in plans and records, which are text, and have to lead to the same file again. Not for: how a name is shown
//! ([`crate::visible`]).
//!
//! A name may hold any byte but zero. One that is no UTF-8, a control character, or a mark of direction stands in the text as
//! characters of a private range, one a byte; so does whatever was in that range before. Nothing else changes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A name as text.
pub fn text(name: impl AsRef<OsStr>) -> String {
    let mut out = String::new();
    for chunk in name.as_ref().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_plain(c) {
                out.push(c);
            } else {
                out.extend(c.encode_utf8(&mut [0; 4]).as_bytes().iter().copied().map(crate::stand_in::stand_in));
            }
        }
        out.extend(chunk.invalid().iter().copied().map(crate::stand_in::stand_in));
    }
    out
}

/// The name that a text stands for.
pub fn of_text(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match crate::stand_in::byte(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(bytes)
}

/// The path that a text stands for.
pub fn path(text: &str) -> PathBuf {
    PathBuf::from(of_text(text))
}

/// A path as it is shown to people: in one line.
pub fn shown(path: &Path) -> String {
    crate::visible::visible(&text(path)).into_owned()
}

fn is_plain(c: char) -> bool {
    crate::stand_in::byte(c).is_none() && !c.is_control() && !crate::visible::turns(c)
}

#[test]
fn every_name_comes_back_as_it_was() {
    let names: [&[u8]; 6] = [
        b"/data/plain \xc3\xa9",
        b"/a\xff\xfe",
        b"\xc3",
        b"/x\ny\t\x1b[2J\xc2\x9b",
        "\u{202e}".as_bytes(),
        b"\xf4\x8f\xbf\xbf",
    ];
    for name in names {
        let said = text(OsStr::from_bytes(name));
        assert!(!said.contains(char::is_control), "{said:?}");
        assert_eq!(of_text(&said).as_bytes(), name);
        // What stands for a name is a name as well: said twice it still comes back.
        assert_eq!(of_text(&text(&said)), OsStr::new(&said));
    }
    assert_eq!(text("/data/plain é"), "/data/plain é");
    assert_eq!(shown(Path::new(OsStr::from_bytes(b"a\xff\n"))), r"a\xff\x0a");
}
