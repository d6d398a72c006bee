//! Where the bytes of a target are stored on a device below it.
//!
//! For: the same bytes read through the file system and from the device beneath, so that the two can be compared. Not for: how
//! the file is stored as a whole (that is `extents`), nor for file systems and volumes that keep their maps to themselves.

use crate::error::describe;
use crate::root::Root;
use model::Known;
use model::evidence::SECTOR_BYTES;
use model::machine::{Layer, LayerKind, Place};
use model::units::show_bytes;
use rustix::fs::fstatfs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use sys::arena::Arena;
use sys::fiemap::{self, Extent};

/// Bytes compared at the beginning of a piece; less where it is shorter.
const PROOF_BYTES: u64 = 4096;
/// Pieces that are compared, evenly spread.
const PROVEN: usize = 16;
/// States of an extent in which its bytes are not found as they are at the place that it names.
const ELSEWHERE: u32 = Extent::UNPLACED
    | Extent::DELAYED
    | Extent::ENCODED
    | Extent::ENCRYPTED
    | Extent::INLINE
    | Extent::UNWRITTEN;
/// `BTRFS_SUPER_MAGIC`, `BCACHEFS_STATFS_MAGIC`: their maps count from the beginning of a space of their own.
const OWN_SPACE: [i64; 2] = [0x9123_683E, 0xCA45_1A4E_u32 as i64];

/// A stretch of a target that is stored in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte in the target.
    pub logical: u64,
    /// First byte on the device.
    pub physical: u64,
    /// How long it is on both.
    pub bytes: u64,
}

/// Where the first `bytes` of a target are on the layer with the index `layer` of its place, in the target's order. What is
/// not stored (holes, unwritten extents) is left out.
///
/// # Errors
/// Why it is not known, in words.
pub fn pieces(root: &Root, place: &Place, target: &File, bytes: u64, layer: usize) -> Known<Vec<Piece>> {
    let [top] = place.tops.as_slice() else {
        return Err(
            "what is above is stored on several devices, and which block is on which is not told".into()
        );
    };
    let whole = Piece { logical: 0, physical: 0, bytes };
    let mut found =
        if place.file_system.is_some() { within(&[whole], &map_of(target, bytes)?) } else { vec![whole] };
    let mut at = *top;
    // A stack that contains itself would otherwise never end.
    for _ in 0..=place.layers.len() {
        if at == layer {
            return if found.is_empty() {
                Err("nothing of what is above is stored there: it was never written".into())
            } else {
                Ok(merge_pieces(&found))
            };
        }
        let upper = place.layers.get(at).ok_or("its chain of devices is broken")?;
        let [below] = upper.below.as_slice() else {
            return Err(format!(
                "{} is stored on several devices, and which block is on which is not told",
                upper.name
            ));
        };
        found = step(root, upper, &found)?;
        at = *below;
    }
    Err("its chain of devices does not end".into())
}

/// Reads the beginning of some pieces from both sides: what a map says is believed where the bytes are the same. `device` is open
/// for direct reads in multiples of `align`.
///
/// # Errors
/// That they differ, or why they cannot be read.
pub fn prove(target: &File, device: &File, pieces: &[Piece], align: u32) -> Known<()> {
    let align = u64::from(align.max(1));
    let mut arena = Arena::new(2, PROOF_BYTES.max(align) as usize).map_err(|e| describe(&e))?;
    let every = pieces.len().div_ceil(PROVEN).max(1);
    for piece in pieces.iter().step_by(every) {
        if !piece.physical.is_multiple_of(align) {
            return Err(format!(
                "it begins at byte {}, and direct I/O needs multiples of {align}",
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
                "at byte {} of the device, where byte {} should be stored, something else stands",
                piece.physical, piece.logical
            ));
        }
    }
    Ok(())
}

/// From the pieces on a layer to those on the one below.
fn step(root: &Root, upper: &Layer, pieces: &[Piece]) -> Known<Vec<Piece>> {
    let moved =
        |by: u64| pieces.iter().map(|p| Piece { physical: p.physical.saturating_add(by), ..*p }).collect();
    match upper.kind {
        LayerKind::Partition => Ok(moved(upper.device_number("start")?.saturating_mul(SECTOR_BYTES))),
        LayerKind::Loop => {
            let path = upper.backing_file.as_deref().ok_or("the file behind the loop device is not known")?;
            let offset = root.read(&format!("/sys/class/block/{}/loop/offset", upper.name))?;
            let offset: u64 =
                offset.trim().parse().map_err(|_| "the offset of the loop device is no number")?;
            let pieces: Vec<Piece> = moved(offset);
            if root.device_number(path).is_some() {
                return Ok(pieces);
            }
            let file = File::open(root.path(path)).map_err(|e| format!("{path}: {}", describe(&e)))?;
            let bytes = file.metadata().map_err(|e| format!("{path}: {}", describe(&e)))?.len();
            Ok(within(&pieces, &map_of(&file, bytes)?))
        }
        _ => Err(format!("{} does not tell where it stores a block", upper.name)),
    }
}

/// Nothing, where the maps of a file's file system count from the beginning of its device.
///
/// # Errors
/// That they do not, or that nobody can tell.
pub(crate) fn counts_from_device(file: &File) -> Known<()> {
    let kind = fstatfs(file).map_err(|e| describe(&e.into()))?.f_type as i64;
    if OWN_SPACE.contains(&kind) {
        return Err(
            "its file system places files in a space of its own and does not tell where on the device".into(),
        );
    }
    Ok(())
}

/// The stored extents of a file.
fn map_of(file: &File, bytes: u64) -> Known<Vec<Piece>> {
    counts_from_device(file)?;
    let all = fiemap::extents(file, bytes).map_err(|e| crate::extents::why(&e))?;
    let stored = all.iter().filter(|e| !e.has(ELSEWHERE));
    Ok(stored.map(|e| Piece { logical: e.logical, physical: e.physical, bytes: e.length }).collect())
}

/// Pieces whose places are in a file, on the device where that file's own pieces (`map`, in order) are.
fn within(pieces: &[Piece], map: &[Piece]) -> Vec<Piece> {
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

/// The pieces, with those made one that follow each other both in the target and on the device.
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

/// `64 MiB in 3 pieces from byte 135266304 on`.
pub fn show(pieces: &[Piece]) -> String {
    let bytes: u64 = pieces.iter().map(|p| p.bytes).sum();
    let first = pieces.iter().map(|p| p.physical).min().unwrap_or(0);
    let many = match pieces.len() {
        1 => "one piece".to_owned(),
        n => format!("{n} pieces"),
    };
    format!("{} in {many} from byte {first} on", show_bytes(bytes))
}

#[cfg(test)]
fn piece(logical: u64, physical: u64, bytes: u64) -> Piece {
    Piece { logical, physical, bytes }
}

#[test]
fn pieces_of_pieces_are_cut_at_both_edges_and_holes_are_left_out() {
    // The file lies in two pieces on a loop device, whose image has a hole from 150 to 200.
    let file = [piece(0, 100, 100), piece(100, 300, 50)];
    let image = [piece(0, 1_000, 150), piece(200, 5_000, 120), piece(320, 5_120, 400)];
    let found = within(&file, &image);
    assert_eq!(found, [piece(0, 1_100, 50), piece(100, 5_100, 20), piece(120, 5_120, 30)]);
    assert_eq!(merge_pieces(&found), [piece(0, 1_100, 50), piece(100, 5_100, 50)]);
    assert_eq!(show(&merge_pieces(&found)), "100 B in 2 pieces from byte 1100 on");
    assert_eq!(within(&file, &[]), []);
}

/// Layers on one another, each with its name and kind; a partition begins at sector 2048.
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
fn a_partition_adds_its_offset_and_volumes_say_that_they_do_not_tell() -> std::io::Result<()> {
    let (root, any) = (Root::at("/nonexistent".into()), tempfile::tempfile()?);
    let disk = |name| (name, LayerKind::Disk);
    let part = stack_of([("vda1", LayerKind::Partition), disk("vda")]);
    assert_eq!(pieces(&root, &part, &any, 4096, 0), Ok(vec![piece(0, 0, 4096)]));
    assert_eq!(pieces(&root, &part, &any, 4096, 1), Ok(vec![piece(0, 2048 * 512, 4096)]));
    let volume = stack_of([("dm-0", LayerKind::DeviceMapper), disk("vda")]);
    assert!(pieces(&root, &volume, &any, 4096, 1).is_err_and(|why| why.contains("dm-0 does not tell")));
    let mut raid = stack_of([("md0", LayerKind::Raid), disk("a")]);
    raid.layers[0].below = vec![1, 1];
    assert!(pieces(&root, &raid, &any, 4096, 1).is_err_and(|why| why.contains("several devices")));
    raid.tops = vec![0, 1];
    assert!(pieces(&root, &raid, &any, 4096, 0).is_err_and(|why| why.contains("several devices")));
    let mut round = stack_of([("a", LayerKind::Partition), disk("b")]);
    round.layers[0].below = vec![0];
    assert!(pieces(&root, &round, &any, 4096, 1).is_err_and(|why| why.contains("does not end")));
    Ok(())
}

#[test]
fn bytes_that_differ_are_no_proof() -> std::io::Result<()> {
    use std::io::Write;
    let (mut above, mut below) = (tempfile::tempfile()?, tempfile::tempfile()?);
    above.write_all(&[7; 8192])?;
    below.write_all(&[0; 4096])?;
    below.write_all(&[7; 8192])?;
    assert_eq!(prove(&above, &below, &[piece(0, 4096, 8192)], 512), Ok(()));
    assert!(
        prove(&above, &below, &[piece(0, 0, 8192)], 512).is_err_and(|why| why.contains("something else"))
    );
    assert!(prove(&above, &below, &[piece(0, 100, 8192)], 512).is_err_and(|why| why.contains("multiples")));
    assert!(prove(&above, &below, &[piece(8192, 4096, 4096)], 512).is_err(), "beyond the end");
    Ok(())
}
