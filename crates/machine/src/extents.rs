//! Extents: how the bytes of files are stored, and where on a device.
//!
//! 1. `map_region_extents` sums the extents (FIEMAP) in a region of a file and in parts of it: holes, unwritten and
//!    shared bytes, alignment.
//! 2. [`locate_pieces`] finds where the bytes of a target are on a layer of its stack, and [`verify_pieces`] compares the
//!    bytes of the target and of the device.
//! 3. [`locate_file_extents`] collects the places of all files below a directory on the device of their file
//!    system.

use crate::error::describe;
use crate::root::{Root, number_of};
use crate::{identity, loop_devices, stack};
use model::Known;
use model::evidence::{Extents, SECTOR_BYTES};
use model::machine::{Layer, LayerKind, Place};
use model::units::show_bytes;
use rustix::fs::{OFlags, fstatfs};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use sys::arena::Arena;
use sys::ioctl;
use sys::ioctl::Extent;

/// Sums the extents of a whole file. The kernel writes the file's dirty pages back first.
pub(crate) fn map_file_extents(file: &File) -> Known<Extents> {
    map_region_extents(file, 0..u64::MAX, &[]).map(|(extents, _)| extents)
}

/// Sums the extents in a region of a file, and in each of these parts of the region. Ignores bytes beyond the end of the
/// file.
pub(crate) fn map_region_extents(
    file: &File,
    region: Range<u64>,
    parts: &[Range<u64>],
) -> Known<(Extents, Vec<Extents>)> {
    let metadata = file.metadata().map_err(|e| describe(&e))?;
    if !metadata.is_file() {
        return Err("only files have extents".into());
    }
    let end = region.end.min(metadata.len());
    let all = ioctl::extents(file, end).map_err(|e| fiemap_reason(&e))?;
    let sum_of = |part: &Range<u64>| {
        let mut sum = ExtentSum::for_region(part.start..part.end.min(end));
        for extent in &all {
            sum.add(extent);
        }
        sum.close()
    };
    Ok((sum_of(&region), parts.iter().map(sum_of).collect()))
}

/// Sums the extents of a loop device's backing file; `None` if `device` is not a bound loop device.
pub(crate) fn map_backing_file(root: &Root, device: &File) -> Option<Known<Extents>> {
    let metadata = device.metadata().ok().filter(|f| f.file_type().is_block_device())?;
    let number = number_of(metadata.rdev());
    let dir = format!("/sys/dev/block/{number}/loop");
    let path = root.word(&format!("{dir}/backing_file"))?;
    if root.word(&format!("{dir}/offset")).is_none_or(|o| o != "0") {
        return Some(Err(format!("the loop device may begin inside {path}, not at the start of the file")));
    }
    let backing = stack::name_of(root, &number).and_then(|name| loop_devices::backing(root, &name));
    let options = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(options).open(root.path(&path));
    let is_backing_file = |file: &File| {
        identity::from_file(file).is_ok_and(|it| backing.as_ref().is_none_or(|b| b.is_same(&it)))
    };
    Some(match file {
        Err(e) => Err(format!("{path}: {}", describe(&e))),
        // The path may lead to another file by now, or in this mount namespace.
        Ok(file) if !is_backing_file(&file) => Err(format!("{path} is not the file below the loop device")),
        Ok(file) => map_file_extents(&file),
    })
}

fn fiemap_reason(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::OPNOTSUPP | Errno::NOTTY) => {
            "this file system does not report how it stores a file (no FIEMAP)".into()
        }
        _ => format!("FIEMAP: {}", describe(error)),
    }
}

struct ExtentSum {
    out: Extents,
    /// End of the region in the file.
    end: u64,
    /// End, in the file, of the extents added so far. The bytes up to the next extent are a hole.
    reached: u64,
    /// Bitwise OR of all device offsets. The lowest set bit is their common alignment.
    device_offsets: u64,
    /// Length of the contiguous piece that ends with the extent added last.
    piece_bytes: u64,
    /// End, in the file and on the device, of the piece that ends with the extent added last.
    piece_end: [u64; 2],
}

impl ExtentSum {
    fn for_region(region: Range<u64>) -> Self {
        let span_bytes = region.end.saturating_sub(region.start);
        let out = Extents { span_bytes, ..Extents::default() };
        Self {
            out,
            end: region.end,
            reached: region.start,
            device_offsets: 0,
            piece_bytes: 0,
            piece_end: [0; 2],
        }
    }

    fn close(mut self) -> Extents {
        self.out.hole_bytes += self.end.saturating_sub(self.reached);
        self.out.physical_align =
            (self.device_offsets != 0).then(|| 1 << self.device_offsets.trailing_zeros());
        self.out
    }

    fn add(&mut self, extent: &Extent) {
        // Space allocated beyond the end of the file is never read.
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
            self.device_offsets |= extent.physical;
            self.extend_piece(extent, start, end);
        }
        let mut add_bytes = |mask: u32, sum: fn(&mut Extents) -> &mut u64| {
            if flags & mask != 0 {
                *sum(&mut self.out) += bytes;
            }
        };
        add_bytes(Extent::UNWRITTEN, |e| &mut e.unwritten_bytes);
        add_bytes(Extent::DELAYED, |e| &mut e.delayed_bytes);
        add_bytes(Extent::INLINE, |e| &mut e.inline_bytes);
        add_bytes(Extent::ENCODED | Extent::ENCRYPTED, |e| &mut e.encoded_bytes);
        add_bytes(Extent::SHARED, |e| &mut e.shared_bytes);
    }

    /// Adds an extent's part from `start` to `end` to the previous piece if it continues that piece. Otherwise begins a
    /// new piece.
    fn extend_piece(&mut self, extent: &Extent, start: u64, end: u64) {
        let place = extent.physical.saturating_add(start.saturating_sub(extent.logical));
        let before = if self.piece_end == [start, place] { self.piece_bytes } else { 0 };
        self.piece_bytes = before + (end - start);
        self.piece_end = [end, place.saturating_add(end - start)];
        let largest = &mut self.out.largest_piece_bytes;
        *largest = Some(largest.unwrap_or(0).max(self.piece_bytes));
    }
}

/// Number of bytes that are compared at the beginning of a piece: more if the alignment is larger, fewer if the piece is shorter.
const PROOF_BYTES: u64 = 4096;
/// Maximum number of pieces that are compared, evenly spread over the file.
const MAX_PROVEN_PIECES: usize = 16;
/// An extent with one of these flags has no place on the device, or the bytes there are not those of the file.
const NOT_STORED_PLAINLY: u32 = Extent::UNPLACED
    | Extent::DELAYED
    | Extent::ENCODED
    | Extent::ENCRYPTED
    | Extent::INLINE
    | Extent::UNWRITTEN;
/// `BTRFS_SUPER_MAGIC` and `BCACHEFS_STATFS_MAGIC`. Extents of these file systems have offsets in an internal
/// address space instead of the device.
const OWN_ADDRESS_SPACE: [i64; 2] = [0x9123_683E, 0xCA45_1A4E_u32 as i64];

/// A contiguous piece of a target and its place on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte in the target.
    pub logical: u64,
    /// Offset of the first byte on the device.
    pub physical: u64,
    /// Length in bytes, which is the same in the file and on the device.
    pub bytes: u64,
}

/// Finds where the first `bytes` of a target are on the layer with index `layer` of the stack in `place`. The pieces are in the target's
/// order, without holes and unwritten extents.
///
/// # Errors
///
/// Why the places are unknown.
pub fn locate_pieces(
    root: &Root,
    place: &Place,
    target: &File,
    bytes: u64,
    layer: usize,
) -> Known<Vec<Piece>> {
    let top = match place.tops.as_slice() {
        [top] => top,
        [] => return Err("the device below the target is not known".into()),
        _ => {
            return Err(
                "the target is on several devices, and the kernel does not report which block is on which"
                    .into(),
            );
        }
    };
    let whole = Piece { logical: 0, physical: 0, bytes };
    let mut found = if place.file_system.is_some() {
        map_pieces(&[whole], &stored_pieces(target, bytes)?)
    } else {
        vec![whole]
    };
    let mut at = *top;
    // Limit the number of steps, because a stack that contains itself would never end.
    for _ in 0..=place.layers.len() {
        if at == layer {
            return if found.is_empty() {
                Err("no part of the target has a known place on this device: the target was never written, is not written back yet, or is stored compressed, encrypted or in an inode".into())
            } else {
                Ok(merge_pieces(&found))
            };
        }
        let upper = place.layers.get(at).ok_or("the chain of devices below the target is broken")?;
        let [below] = upper.below.as_slice() else {
            return Err(format!(
                "{} is on several devices, and the kernel does not report which block is on which",
                upper.name
            ));
        };
        found = pieces_below(root, upper, &found)?;
        at = *below;
    }
    Err("the chain of devices below the target does not end".into())
}

/// Checks that the pieces are correct: reads the beginning of some of them from the target and from
/// the device, and compares the bytes. `device` is open for direct reads in multiples of `align`
/// bytes.
///
/// # Errors
///
/// The first difference, or why a side cannot be read.
pub fn verify_pieces(target: &File, device: &File, pieces: &[Piece], align: u32) -> Known<()> {
    let align = u64::from(align.max(1));
    let mut arena = Arena::new(2, PROOF_BYTES.max(align) as usize).map_err(|e| describe(&e))?;
    let every = pieces.len().div_ceil(MAX_PROVEN_PIECES).max(1);
    for piece in pieces.iter().step_by(every) {
        if !piece.physical.is_multiple_of(align) {
            return Err(format!(
                "a piece of the target begins at byte {} of the device, but direct I/O needs multiples of {align} bytes",
                piece.physical
            ));
        }
        let bytes = piece.bytes.min(PROOF_BYTES.max(align)) as usize;
        let mut read = |slot: usize, file: &File, from: u64| -> Known<Vec<u8>> {
            let whole = bytes.next_multiple_of(align as usize);
            let buffer = arena.slot_mut(slot).get_mut(..whole).ok_or("the buffer is too small")?;
            let got = file.read_at(buffer, from).map_err(|e| describe(&e))?;
            Ok(buffer[..got.min(bytes)].to_vec())
        };
        let (above, below) = (read(0, target, piece.logical)?, read(1, device, piece.physical)?);
        if above.len() < bytes || above != below {
            return Err(format!(
                "the data at byte {} of the device differ from the data at byte {} of the target, which should be stored there",
                piece.physical, piece.logical
            ));
        }
    }
    Ok(())
}

/// Converts pieces on a layer to pieces on the layer below.
fn pieces_below(root: &Root, upper: &Layer, pieces: &[Piece]) -> Known<Vec<Piece>> {
    let moved =
        |by: u64| pieces.iter().map(|p| Piece { physical: p.physical.saturating_add(by), ..*p }).collect();
    match upper.kind {
        LayerKind::Partition => Ok(moved(upper.device_number("start")?.saturating_mul(SECTOR_BYTES))),
        LayerKind::Loop => {
            let path =
                upper.backing_file.as_deref().ok_or("the backing file of the loop device is unknown")?;
            let offset = root.read(&format!("/sys/class/block/{}/loop/offset", upper.name))?;
            let offset: u64 =
                offset.trim().parse().map_err(|_| "the offset of the loop device is not a number")?;
            let pieces: Vec<Piece> = moved(offset);
            if root.device_number(path).is_some() {
                return Ok(pieces);
            }
            let file = File::open(root.path(path)).map_err(|e| format!("{path}: {}", describe(&e)))?;
            let bytes = file.metadata().map_err(|e| format!("{path}: {}", describe(&e)))?.len();
            Ok(map_pieces(&pieces, &stored_pieces(&file, bytes)?))
        }
        _ => Err(format!("{} does not report where it stores a block", upper.name)),
    }
}

/// Refuses a file system whose extents have offsets in its own address space instead of the device.
///
/// # Errors
///
/// The refusal, or why the kind of the file system is unknown.
pub(crate) fn refuse_own_address_space(file: &File) -> Known<()> {
    let kind = fstatfs(file).map_err(|e| describe(&e.into()))?.f_type as i64;
    if OWN_ADDRESS_SPACE.contains(&kind) {
        return Err(
            "the file system maps files to its own address space and does not report where that is on the device".into(),
        );
    }
    Ok(())
}

/// Returns where the first `bytes` of a file are stored, without holes and unwritten extents.
fn stored_pieces(file: &File, bytes: u64) -> Known<Vec<Piece>> {
    refuse_own_address_space(file)?;
    let all = ioctl::extents(file, bytes).map_err(|e| fiemap_reason(&e))?;
    let stored = all.iter().filter(|e| !e.has(NOT_STORED_PLAINLY));
    Ok(stored.map(|e| Piece { logical: e.logical, physical: e.physical, bytes: e.length }).collect())
}

/// Converts pieces with `physical` offsets in a file to pieces on the device that stores the file.
/// `map` has the pieces of the file itself, in order.
fn map_pieces(pieces: &[Piece], map: &[Piece]) -> Vec<Piece> {
    let mut out = Vec::new();
    for piece in pieces {
        let end = piece.physical.saturating_add(piece.bytes);
        let first = map.partition_point(|m| m.logical.saturating_add(m.bytes) <= piece.physical);
        for part in map.iter().skip(first).take_while(|m| m.logical < end) {
            let from = part.logical.max(piece.physical);
            let to = part.logical.saturating_add(part.bytes).min(end);
            if from < to {
                out.push(Piece {
                    logical: piece.logical + (from - piece.physical),
                    physical: part.physical.saturating_add(from - part.logical),
                    bytes: to - from,
                });
            }
        }
    }
    out
}

/// Merges pieces that follow each other both in the target and on the device.
fn merge_pieces(pieces: &[Piece]) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces {
        match out.last_mut() {
            Some(last)
                if last.logical + last.bytes == piece.logical
                    && last.physical + last.bytes == piece.physical =>
            {
                last.bytes += piece.bytes;
            }
            _ => out.push(*piece),
        }
    }
    out
}

/// Formats pieces: `64 MiB in 3 pieces from byte 135266304 on`.
pub fn describe_pieces(pieces: &[Piece]) -> String {
    let bytes: u64 = pieces.iter().map(|p| p.bytes).sum();
    let first = pieces.iter().map(|p| p.physical).min().unwrap_or(0);
    let many = match pieces.len() {
        1 => "one piece".to_owned(),
        n => format!("{n} pieces"),
    };
    format!("{} in {many} from byte {first} on", show_bytes(bytes))
}

/// Maximum number of files that [`locate_file_extents`] reads.
const MAX_FILES: u64 = 1 << 20;
/// Maximum number of extents that [`locate_file_extents`] keeps, after merging those that touch.
const MAX_EXTENTS: usize = 1 << 22;
/// Flags of an extent that has no separate place on the device.
const WITHOUT_PLACE: u32 = Extent::UNPLACED | Extent::DELAYED | Extent::INLINE;

/// Where files are stored at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileExtents {
    /// Number of files.
    pub files: u64,
    /// Ranges on the device as (first byte, byte after the last), in order. No two ranges touch.
    pub device_ranges: Vec<(u64, u64)>,
    /// Bytes of these files that have no separate place on the device: stored in inodes, or not allocated
    /// yet.
    pub unplaced_bytes: u64,
}

/// Finds where a file is stored, or where all files below a directory are stored, except those on other file systems. Dirty pages are
/// written back first.
///
/// # Errors
/// Why the places of the files are unknown.
pub fn locate_file_extents(target: &Path) -> Result<FileExtents, String> {
    let metadata = target.metadata().map_err(|e| describe(&e))?;
    let mut found = FileExtents::default();
    if metadata.is_file() {
        found.add(target)?;
    } else if metadata.is_dir() {
        add_tree(target, metadata.dev(), &mut found)?;
    } else {
        return Err("the target is neither a file nor a directory, and only files have extents".into());
    }
    found.device_ranges = merge_touching(std::mem::take(&mut found.device_ranges));
    Ok(found)
}

/// Adds the extents of all files below a directory. Follows no links, and does not leave the file
/// system `device`.
fn add_tree(top: &Path, device: u64, found: &mut FileExtents) -> Result<(), String> {
    let mut pending: Vec<PathBuf> = vec![top.to_owned()];
    let why = |path: &Path, e: &std::io::Error| format!("{}: {}", path.display(), describe(e));
    while let Some(dir) = pending.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            // The entry was removed after it was listed.
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(why(&dir, &e)),
        };
        for entry in entries {
            let path = entry.map_err(|e| why(&dir, &e))?.path();
            match path.symlink_metadata() {
                Ok(metadata) if metadata.dev() != device => {}
                Ok(metadata) if metadata.is_dir() => pending.push(path),
                Ok(metadata) if metadata.is_file() => found.add(&path)?,
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(why(&path, &e)),
            }
        }
    }
    Ok(())
}

impl FileExtents {
    fn add(&mut self, path: &Path) -> Result<(), String> {
        let why = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file: File =
            match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path) {
                Ok(file) => file,
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(why(&describe(&e))),
            };
        refuse_own_address_space(&file).map_err(|e| why(&e))?;
        // Include space that is allocated beyond the end of a file, because it belongs to the file too.
        let all = ioctl::extents(&file, u64::MAX).map_err(|e| why(&fiemap_reason(&e)))?;
        self.files += 1;
        for extent in &all {
            if extent.has(WITHOUT_PLACE) {
                self.unplaced_bytes = self.unplaced_bytes.saturating_add(extent.length);
            } else if extent.length > 0 {
                self.device_ranges.push((extent.physical, extent.physical.saturating_add(extent.length)));
            }
        }
        if self.device_ranges.len() > MAX_EXTENTS {
            self.device_ranges = merge_touching(std::mem::take(&mut self.device_ranges));
        }
        if self.device_ranges.len() > MAX_EXTENTS || self.files > MAX_FILES {
            return Err(why(&format!(
                "there are too many files or extents; name fewer files (at most {MAX_FILES} files and {MAX_EXTENTS} extents)"
            )));
        }
        Ok(())
    }
}

/// Sorts ranges and merges those that touch.
fn merge_touching(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in ranges {
        match out.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => out.push((begin, end)),
        }
    }
    out
}

#[cfg(test)]
fn piece(logical: u64, physical: u64, bytes: u64) -> Piece {
    Piece { logical, physical, bytes }
}

#[test]
fn a_file_system_without_fiemap_is_named() {
    for errno in [Errno::OPNOTSUPP, Errno::NOTTY] {
        assert!(fiemap_reason(&errno.into()).ends_with("(no FIEMAP)"), "{errno}");
    }
    assert!(fiemap_reason(&Errno::IO.into()).starts_with("FIEMAP: "));
}

#[test]
fn extents_that_follow_each_other_on_the_device_are_one_piece() {
    let mut sum = ExtentSum::for_region(0..400);
    for (logical, physical, length) in [(0, 1000, 100), (100, 1100, 50), (150, 5000, 200), (360, 5210, 999)] {
        let mut e = Extent::default();
        (e.logical, e.physical, e.length) = (logical, physical, length);
        sum.add(&e);
    }
    assert_eq!(sum.close().largest_piece_bytes, Some(200));
}

#[test]
fn holes_tails_and_states_are_added_up() {
    let mut sum = ExtentSum::for_region(0..100);
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
fn bytes_outside_the_region_count_neither_as_stored_nor_as_a_hole() {
    let at = |logical, length| {
        let mut e = Extent::default();
        (e.logical, e.physical, e.length) = (logical, logical, length);
        e
    };
    let sums = |region| {
        let mut sum = ExtentSum::for_region(region);
        sum.add(&at(0, 50));
        sum.add(&at(100, 50));
        let e = sum.close();
        (e.span_bytes, e.hole_bytes, e.count)
    };
    assert_eq!((sums(0..50), sums(50..100), sums(25..125)), ((50, 0, 1), (50, 50, 0), (100, 50, 2)));
    assert_eq!((sums(200..300), sums(120..130)), ((100, 100, 0), (10, 0, 1)));
}

#[test]
fn unknown_places_and_those_beyond_the_end_do_not_affect_the_alignment() {
    let mut sum = ExtentSum::for_region(0..4096);
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
    // The second half holds data, and each part has sums of its own. A part may reach beyond the end of the file.
    file.write_all_at(&vec![1; 1 << 19], 1 << 19)?;
    match map_region_extents(&file, 0..u64::MAX, &[0..1 << 19, 1 << 19..u64::MAX]) {
        Ok((whole, parts)) => {
            let holes: Vec<_> = [whole].iter().chain(&parts).map(|e| (e.span_bytes, e.hole_bytes)).collect();
            assert_eq!(holes, [(1 << 20, 1 << 19), (1 << 19, 1 << 19), (1 << 19, 0)]);
        }
        Err(why) => println!("skipped: {why}"),
    }
    Ok(())
}

#[test]
fn pieces_of_pieces_are_cut_at_both_edges_and_holes_are_left_out() {
    // The file is stored in two pieces on a loop device, whose image has a hole from 150 to 200.
    let file = [piece(0, 100, 100), piece(100, 300, 50)];
    let image = [piece(0, 1_000, 150), piece(200, 5_000, 120), piece(320, 5_120, 400)];
    let found = map_pieces(&file, &image);
    assert_eq!(found, [piece(0, 1_100, 50), piece(100, 5_100, 20), piece(120, 5_120, 30)]);
    assert_eq!(merge_pieces(&found), [piece(0, 1_100, 50), piece(100, 5_100, 50)]);
    assert_eq!(describe_pieces(&merge_pieces(&found)), "100 B in 2 pieces from byte 1100 on");
    assert_eq!(map_pieces(&file, &[]), []);
}

/// Two layers, the first on the second, each with its name and kind. A partition begins at sector 2048.
#[cfg(test)]
fn stack_of(kinds: [(&str, LayerKind); 2]) -> Place {
    let layer = |at: usize| Layer {
        name: kinds[at].0.into(),
        kind: kinds[at].1,
        device: std::iter::once(("start".to_owned(), "2048".to_owned())).collect(),
        below: if at == 0 { vec![1] } else { Vec::new() },
        ..Layer::default()
    };
    Place { layers: vec![layer(0), layer(1)], tops: vec![0], ..Place::default() }
}

#[test]
fn a_partition_adds_its_offset_and_volumes_report_none() -> std::io::Result<()> {
    let (root, any) = (Root::at("/nonexistent".into()), tempfile::tempfile()?);
    let disk = |name| (name, LayerKind::Disk);
    let part = stack_of([("vda1", LayerKind::Partition), disk("vda")]);
    assert_eq!(locate_pieces(&root, &part, &any, 4096, 0), Ok(vec![piece(0, 0, 4096)]));
    assert_eq!(locate_pieces(&root, &part, &any, 4096, 1), Ok(vec![piece(0, 2048 * 512, 4096)]));
    let volume = stack_of([("dm-0", LayerKind::DeviceMapper), disk("vda")]);
    assert!(
        locate_pieces(&root, &volume, &any, 4096, 1).is_err_and(|why| why.contains("dm-0 does not report"))
    );
    let mut raid = stack_of([("md0", LayerKind::Raid), disk("a")]);
    raid.layers[0].below = vec![1, 1];
    assert!(locate_pieces(&root, &raid, &any, 4096, 1).is_err_and(|why| why.contains("several devices")));
    raid.tops = vec![0, 1];
    assert!(locate_pieces(&root, &raid, &any, 4096, 0).is_err_and(|why| why.contains("several devices")));
    let mut round = stack_of([("a", LayerKind::Partition), disk("b")]);
    round.layers[0].below = vec![0];
    assert!(locate_pieces(&root, &round, &any, 4096, 1).is_err_and(|why| why.contains("does not end")));
    Ok(())
}

#[test]
fn different_bytes_disprove_the_map() -> std::io::Result<()> {
    use std::io::Write;
    let (mut above, mut below) = (tempfile::tempfile()?, tempfile::tempfile()?);
    above.write_all(&[7; 8192])?;
    below.write_all(&[0; 4096])?;
    below.write_all(&[7; 8192])?;
    assert_eq!(verify_pieces(&above, &below, &[piece(0, 4096, 8192)], 512), Ok(()));
    assert!(
        verify_pieces(&above, &below, &[piece(0, 0, 8192)], 512)
            .is_err_and(|why| why.contains("differ from the data"))
    );
    assert!(
        verify_pieces(&above, &below, &[piece(0, 100, 8192)], 512)
            .is_err_and(|why| why.contains("multiples"))
    );
    assert!(verify_pieces(&above, &below, &[piece(8192, 4096, 4096)], 512).is_err(), "beyond the end");
    Ok(())
}

#[test]
fn ranges_that_touch_are_one() {
    let all = merge_touching(vec![(50, 60), (0, 10), (10, 20), (15, 18), (55, 70)]);
    assert_eq!(all, [(0, 20), (50, 70)]);
    let none = locate_file_extents(Path::new("/dev/null")).map_err(|e| e.contains("neither a file"));
    assert_eq!(none, Err(true));
}
