//! How the bytes of a target are stored, added up from its extents.
//!
//! For: the sums of [`Extents`] over a region of a file. Not for: judging them.

use crate::error::describe;
use crate::root::{Root, number_of};
use model::Known;
use model::evidence::Extents;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use sys::ioctl;
use sys::ioctl::Extent;

/// Looks at a whole file. Dirty pages are written back only where they hide how the file will be stored.
pub(crate) fn map_file_extents(file: &File) -> Known<Extents> {
    look_at(file, 0..u64::MAX)
}

/// Looks at a region of a file, as far as there is any.
pub(crate) fn look_at(file: &File, region: Range<u64>) -> Known<Extents> {
    let facts = file.metadata().map_err(|e| describe(&e))?;
    if !facts.is_file() {
        return Err("only files have extents".into());
    }
    read(file, region.start..region.end.min(facts.len()))
}

/// Looks at the file behind a loop device; `None` where the device is no such one.
pub(crate) fn look_behind(root: &Root, device: &File) -> Option<Known<Extents>> {
    let facts = device.metadata().ok().filter(|f| f.file_type().is_block_device())?;
    let dir = format!("/sys/dev/block/{}/loop", number_of(facts.rdev()));
    let path = root.word(&format!("{dir}/backing_file"))?;
    if root.word(&format!("{dir}/offset")).is_none_or(|o| o != "0") {
        return Some(Err(format!("it begins somewhere in {path}")));
    }
    Some(
        File::open(root.path(&path))
            .map_err(|e| format!("{path}: {}", describe(&e)))
            .and_then(|f| map_file_extents(&f)),
    )
}

fn read(file: &File, region: Range<u64>) -> Known<Extents> {
    let end = region.end;
    let mut sum = Sum::of_region(region);
    for extent in ioctl::extents(file, end).map_err(|e| why(&e))? {
        sum.add(&extent);
    }
    Ok(sum.close())
}

pub(crate) fn why(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::OPNOTSUPP.raw_os_error() => {
            "this file system does not tell how it stores a file (no FIEMAP)".into()
        }
        _ => format!("FIEMAP: {}", describe(error)),
    }
}

struct Sum {
    out: Extents,
    /// End of the region.
    end: u64,
    /// End of the last extent; what lies between it and the next is a hole.
    reached: u64,
    /// All bits of all places on the device: the lowest of them is what they agree on.
    places: u64,
    /// The stretch in one piece that the last extent belongs to: its bytes, and where on the file and on the device it ends.
    piece: (u64, [u64; 2]),
}

impl Sum {
    fn of_region(region: Range<u64>) -> Self {
        let span_bytes = region.end.saturating_sub(region.start);
        let out = Extents { span_bytes, ..Extents::default() };
        Self { out, end: region.end, reached: region.start, places: 0, piece: (0, [0; 2]) }
    }

    fn close(mut self) -> Extents {
        self.out.hole_bytes += self.end.saturating_sub(self.reached);
        self.out.physical_align = (self.places != 0).then(|| 1 << self.places.trailing_zeros());
        self.out
    }

    fn add(&mut self, extent: &Extent) {
        // What was allocated beyond the end of the file is never read.
        let start = extent.logical.clamp(self.reached, self.end.max(self.reached));
        let end = extent.logical.saturating_add(extent.length).min(self.end);
        if end <= start {
            return;
        }
        let bytes = end - start;
        self.out.count += 1;
        self.out.hole_bytes += start - self.reached;
        self.reached = end;
        let flags = extent.flags;
        if !extent.has(Extent::DELAYED | Extent::INLINE | Extent::UNPLACED) {
            self.places |= extent.physical;
            self.lengthen(extent, start, end);
        }
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

    /// Adds the part of an extent from `start` to `end` to the piece before it, where it goes on there.
    fn lengthen(&mut self, extent: &Extent, start: u64, end: u64) {
        let place = extent.physical.saturating_add(start.saturating_sub(extent.logical));
        let before = if self.piece.1 == [start, place] { self.piece.0 } else { 0 };
        let bytes = before + (end - start);
        self.piece = (bytes, [end, place.saturating_add(end - start)]);
        let largest = &mut self.out.largest_piece_bytes;
        *largest = Some(largest.unwrap_or(0).max(bytes));
    }
}

#[test]
fn extents_that_follow_each_other_on_the_device_are_one_piece() {
    let mut sum = Sum::of_region(0..400);
    for (logical, physical, length) in [(0, 1000, 100), (100, 1100, 50), (150, 5000, 200), (360, 5210, 999)] {
        let mut e = Extent::default();
        (e.logical, e.physical, e.length) = (logical, physical, length);
        sum.add(&e);
    }
    assert_eq!(sum.close().largest_piece_bytes, Some(200));
}

#[test]
fn holes_tails_and_states_are_added_up() {
    let mut sum = Sum::of_region(0..100);
    let piece = |logical, length, flags| {
        let mut e = Extent::default();
        (e.logical, e.physical, e.length, e.flags) = (logical, (logical + 2) << 12, length, flags);
        e
    };
    sum.add(&piece(10, 20, Extent::UNWRITTEN));
    sum.add(&piece(30, 10, Extent::ENCODED | Extent::SHARED));
    sum.add(&piece(60, 4096, 0));
    sum.add(&piece(8192, 4096, Extent::UNWRITTEN));
    assert_eq!(sum.reached, 100);
    let e = sum.close();
    assert_eq!((e.count, e.hole_bytes, e.unwritten_bytes), (3, 30, 20));
    assert_eq!((e.encoded_bytes, e.shared_bytes), (10, 10));
    assert_eq!(e.physical_align, Some(4096 << 1));
}

#[test]
fn what_lies_outside_of_the_region_counts_neither_as_stored_nor_as_a_hole() {
    let at = |logical, length| {
        let mut e = Extent::default();
        (e.logical, e.physical, e.length) = (logical, logical, length);
        e
    };
    let sums = |region| {
        let mut sum = Sum::of_region(region);
        sum.add(&at(0, 50));
        sum.add(&at(100, 50));
        let e = sum.close();
        (e.span_bytes, e.hole_bytes, e.count)
    };
    assert_eq!((sums(0..50), sums(50..100), sums(25..125)), ((50, 0, 1), (50, 50, 0), (100, 50, 2)));
    assert_eq!((sums(200..300), sums(120..130)), ((100, 100, 0), (10, 0, 1)));
}

#[test]
fn places_that_are_not_told_or_beyond_the_end_say_nothing_of_alignment() {
    let mut sum = Sum::of_region(0..4096);
    let pieces =
        [(0, 512, Extent::INLINE), (1024, 1, Extent::DELAYED), (2048, 3, Extent::UNPLACED), (8192, 7, 0)];
    for (logical, physical, flags) in pieces {
        let mut extent = Extent::default();
        (extent.logical, extent.physical, extent.length, extent.flags) = (logical, physical, 1024, flags);
        sum.add(&extent);
    }
    assert_eq!(sum.close().physical_align, None);
}

#[test]
fn a_file_of_holes_is_one_hole() -> io::Result<()> {
    let file = tempfile::tempfile()?;
    file.set_len(1 << 20)?;
    match map_file_extents(&file) {
        Ok(e) => assert_eq!((e.count, e.hole_bytes), (0, 1 << 20)),
        Err(why) => println!("skipped: {why}"),
    }
    Ok(())
}
