//! Written rows are read back, and damaged bytes give an error.

use crate::capture_file::{BLOCK_ROWS, Writer, *};
use proptest::prelude::*;
use trace::row::{Flags, RowKind, Task};

fn names() -> Names {
    let mut names = Names::default();
    names.task(&Task { tid: 7, pid: Some(5), kernel: false, name: "postgres".into() });
    names.task(&Task { tid: 9, pid: None, kernel: true, name: "kworker/0:1".into() });
    names.flags(&Flags::parse("RS"));
    names.flags(&Flags { kind: RowKind::RequestedFlush, rwbs: "FWS".into(), error: 0 });
    names.flags(&Flags { error: -5, ..Flags::parse("WS") });
    names
}

fn file(rows: &[Row], queue: bool) -> Vec<u8> {
    let origin = Origin { named_path: "/dev/sda".into(), queue, ..Origin::default() };
    let names = names();
    let mut writer = Writer::new(Vec::new(), &origin).unwrap_or_else(|e| panic!("{e}"));
    for row in rows {
        writer.push(row, &names).unwrap_or_else(|e| panic!("{e}"));
    }
    let ending = Ending { why: "time".into(), ..Ending::default() };
    writer.finish(&names, &ending).unwrap_or_else(|e| panic!("{e}"))
}

fn read(bytes: &[u8]) -> Result<(Vec<Row>, Reader<&[u8]>), Unreadable> {
    let mut reader = Reader::new(bytes)?;
    let mut rows = Vec::new();
    while let Some(block) = reader.block() {
        rows.extend(block);
    }
    Ok((rows, reader))
}

fn row(at: u64) -> Row {
    Row {
        issue_ns: at * 15_000,
        latency_ns: Some(80_000 + at % 7_919),
        queued_ns: None,
        sector: at.wrapping_mul(2_654_435_761) % (1 << 26) * 8,
        sectors: 8,
        flags: 0,
        task: 0,
    }
}

proptest! {
    #[test]
    fn rows_come_back_as_they_were(
        seeds in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u32>(), any::<u16>()), 0..200),
        queue in any::<bool>(),
    ) {
        let rows: Vec<Row> = seeds.into_iter().map(|(a, b, sectors, small)| Row {
            issue_ns: a,
            latency_ns: (small % 3 > 0).then_some(b >> 1),
            queued_ns: (queue && small % 5 > 0).then_some(a >> 40),
            sector: if sectors == 0 { 0 } else { b % (1 << 55) },
            sectors,
            flags: u32::from(small % 3),
            task: u32::from(small % 2),
        }).collect();
        let bytes = file(&rows, queue);
        let (back, reader) = read(&bytes).map_err(|e| TestCaseError::fail(e.to_string()))?;
        // The reader has its own numbers of tasks and flags, so compare tasks and flags themselves.
        let meant = |row: &Row, names: &Names| {
            (names.task_at(row.task).cloned(), names.flags_at(row.flags).cloned(), Row { task: 0, flags: 0, ..*row })
        };
        prop_assert_eq!(back.len(), rows.len());
        for (was, is) in rows.iter().zip(&back) {
            prop_assert_eq!(meant(was, &names()), meant(is, &reader.names));
        }
        prop_assert_eq!(reader.damage, None);
        prop_assert_eq!(reader.ending.map(|ending| ending.rows), Some(rows.len() as u64));
    }

    #[test]
    fn a_changed_byte_is_found(at in 0_usize..4000, other in 1_u8..) {
        let rows: Vec<Row> = (0..500).map(row).collect();
        let mut bytes = file(&rows, false);
        let at = at % bytes.len();
        bytes[at] ^= other;
        if let Ok((back, reader)) = read(&bytes) {
            prop_assert!(reader.damage.is_some() && back.len() <= rows.len());
        }
    }
}

#[test]
fn a_truncated_file_has_all_its_complete_blocks() {
    let rows: Vec<Row> = (0..2 * BLOCK_ROWS as u64 + 5).map(row).collect();
    let bytes = file(&rows, false);
    let per_row = bytes.len() as f64 / rows.len() as f64;
    assert!(per_row < 10.5, "{per_row} bytes a row");
    for (end, whole) in [(bytes.len(), 2 * BLOCK_ROWS + 5), (bytes.len() * 2 / 3, BLOCK_ROWS), (400, 0)] {
        let (back, reader) = read(&bytes[..end]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(back, rows[..whole]);
        assert_eq!(reader.damage.is_none(), end == bytes.len(), "{:?}", reader.damage);
    }
    let why = read(&bytes[..40]).map_or_else(|why| why.to_string(), |_| String::new());
    assert!(why.contains("header is cut off"), "{why}");
}

#[test]
fn every_row_may_have_its_own_long_names() {
    let mut names = Names::default();
    let mut word = 1_u64;
    // Names that cannot be compressed.
    let mut long = |length: usize| -> String {
        let letter = |_| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + (word >> 33) as u8 % 94)
        };
        (0..length).map(letter).collect()
    };
    let rows: Vec<Row> = (0..BLOCK_ROWS as u64 + 3)
        .map(|at| {
            let task = Task { tid: u32::MAX, pid: Some(u32::MAX), kernel: false, name: long(256) };
            let (task, flags) = (names.task(&task), names.flags(&Flags::parse(&long(256))));
            Row { task, flags, issue_ns: at << 40, queued_ns: Some(1 << 60), ..row(at) }
        })
        .collect();
    let origin = Origin { queue: true, ..Origin::default() };
    let mut writer = Writer::new(Vec::new(), &origin).unwrap_or_else(|e| panic!("{e}"));
    for row in &rows {
        writer.push(row, &names).unwrap_or_else(|e| panic!("{e}"));
    }
    let bytes = writer.finish(&names, &Ending::default()).unwrap_or_else(|e| panic!("{e}"));
    let (back, reader) = read(&bytes).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((reader.damage, back), (None, rows));
    assert_eq!(reader.names.all_tasks(), names.all_tasks());
}

#[test]
fn other_files_and_other_versions_are_distinguished() {
    let why = |bytes: &[u8]| read(bytes).map_or_else(|why| why.to_string(), |_| "read".into());
    assert_eq!(why(b"fathom session 1\n"), "the file is not a fathom capture");
    assert!(why(b"fathom capture 2\n").contains("format 2"));
    assert!(why(b"").contains("not a fathom capture") && why(b"\x7fELF").contains("not a fathom capture"));
    // A length that is too large, as a writer with the other byte order would store it.
    let mut hostile = file(&[], false);
    let at = MAGIC.len();
    hostile[at + 1..at + 5].reverse();
    assert!(why(&hostile).contains("header is damaged: a block has"));
}

#[test]
fn a_file_that_cannot_be_read_may_be_a_capture() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is broken"))
        }
    }
    let why = Reader::new(Broken).map_or_else(|why| why.to_string(), |_| String::new());
    assert!(why.ends_with("its header is unreadable: the disk is broken"), "{why}");
}
