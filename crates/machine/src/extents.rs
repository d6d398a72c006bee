//! How the bytes of a target are stored, added up from its extents.
//!
//! For: the sums of [`Extents`] over a whole file. Not for: judging them.

use crate::error::words;
use model::Known;
use model::evidence::Extents;
use std::fs::File;
use std::io;
use sys::fiemap::{self, Extent};

/// Looks at a whole file. Dirty pages are written back only where they hide how the file will be stored.
pub(crate) fn look(file: &File) -> Known<Extents> {
    let facts = file.metadata().map_err(|e| words(&e))?;
    if !facts.is_file() {
        return Err("only files have extents".into());
    }
    read(file, facts.len())
}

fn read(file: &File, bytes: u64) -> Known<Extents> {
    let mut sum = Sum { out: Extents { span_bytes: bytes, ..Extents::default() }, reached: 0 };
    for extent in fiemap::extents(file, bytes).map_err(|e| why(&e))? {
        sum.add(&extent);
    }
    sum.out.hole_bytes += bytes.saturating_sub(sum.reached);
    Ok(sum.out)
}

fn why(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::OPNOTSUPP.raw_os_error() => {
            "this file system does not tell how it stores a file (no FIEMAP)".into()
        }
        _ => format!("FIEMAP: {}", words(error)),
    }
}

struct Sum {
    out: Extents,
    /// End of the last extent; what lies between it and the next is a hole.
    reached: u64,
}

impl Sum {
    fn add(&mut self, extent: &Extent) {
        let span = self.out.span_bytes;
        // What was allocated beyond the end of the file is never read.
        let start = extent.logical.clamp(self.reached, span.max(self.reached));
        let end = extent.logical.saturating_add(extent.length).min(span);
        if end <= start {
            return;
        }
        let bytes = end - start;
        self.out.count += 1;
        self.out.hole_bytes += start - self.reached;
        self.reached = end;
        let flags = extent.flags;
        let mut note = |mask: u32, sum: fn(&mut Extents) -> &mut u64| {
            if flags & mask != 0 {
                *sum(&mut self.out) += bytes;
            }
        };
        note(Extent::UNWRITTEN, |e| &mut e.unwritten_bytes);
        note(Extent::DELAYED, |e| &mut e.delayed_bytes);
        note(Extent::INLINE, |e| &mut e.inline_bytes);
        note(Extent::ENCODED | Extent::ENCRYPTED, |e| &mut e.encoded_bytes);
        note(Extent::SHARED, |e| &mut e.shared_bytes);
    }
}

#[test]
fn holes_tails_and_states_are_added_up() {
    let mut sum = Sum { out: Extents { span_bytes: 100, ..Extents::default() }, reached: 0 };
    let piece = |logical, length, flags| {
        let mut e = Extent::default();
        (e.logical, e.length, e.flags) = (logical, length, flags);
        e
    };
    sum.add(&piece(10, 20, Extent::UNWRITTEN));
    sum.add(&piece(30, 10, Extent::ENCODED | Extent::SHARED));
    sum.add(&piece(60, 4096, 0));
    sum.add(&piece(8192, 4096, Extent::UNWRITTEN));
    let e = sum.out;
    assert_eq!((e.count, e.hole_bytes, e.unwritten_bytes), (3, 30, 20));
    assert_eq!((e.encoded_bytes, e.shared_bytes, sum.reached), (10, 10, 100));
}

#[test]
fn a_file_of_holes_is_one_hole() -> io::Result<()> {
    let file = tempfile::tempfile()?;
    file.set_len(1 << 20)?;
    match look(&file) {
        Ok(e) => assert_eq!((e.count, e.hole_bytes), (0, 1 << 20)),
        Err(why) => println!("skipped: {why}"),
    }
    Ok(())
}
