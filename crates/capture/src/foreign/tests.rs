//! Each kind of trace is read and written, and invalid ones give a message.

use crate::foreign::*;
use crate::profile::Profiler;
use model::captured::{Op, Origin, Profile, RequestFilter};
use std::io::Cursor;

fn convert_all(files: &[&[u8]]) -> Result<(Vec<Row>, Names, Ending), String> {
    let language = Language::detect(files[0]).ok_or("unknown format")?;
    let mut rows = Vec::new();
    let from = files.iter().map(|file| Box::new(Cursor::new(file.to_vec())) as Box<dyn BufRead>).collect();
    let converted = language.convert(from, &mut |row, _| {
        rows.push(*row);
        Ok(())
    });
    converted.map(|(names, ending)| (rows, names, ending)).map_err(|why| why.to_string())
}

fn convert(text: &str) -> Result<(Vec<Row>, Names, Ending), String> {
    convert_all(&[text.as_bytes()])
}

fn profile((rows, names, ending): &(Vec<Row>, Names, Ending)) -> Profile {
    let mut profiler = Profiler::new(&Origin::default(), &RequestFilter::default());
    profiler.add(rows, names);
    profiler.finish(Some(ending.duration_ns), names)
}

const V3: &str = "fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n5 /dev/sda read 4096 4096\n\
    900 /dev/sda write 8192 1000\n1000 /dev/sda datasync 0 0\n2000 /dev/sda trim 0 65536\n2000 /dev/sda close\n";

/// An event of blktrace, in big-endian byte order if `high_first`.
fn record(high_first: bool, time: u64, sector: u64, bytes: u32, action: u32, trailing: &[u8]) -> Vec<u8> {
    record_with_error(high_first, time, sector, bytes, action, 0, trailing)
}

/// An event of blktrace with the error that the kernel put into it.
fn record_with_error(
    high_first: bool,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    error: i16,
    trailing: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |bytes: &mut Vec<u8>| {
        if high_first {
            bytes.reverse();
        }
        out.append(bytes);
    };
    put(&mut 0x6561_7407_u32.to_le_bytes().to_vec());
    put(&mut 1_u32.to_le_bytes().to_vec());
    put(&mut time.to_le_bytes().to_vec());
    put(&mut sector.to_le_bytes().to_vec());
    for word in [bytes, action, 42, 0x80_0000, 0] {
        put(&mut word.to_le_bytes().to_vec());
    }
    for half in [error.cast_unsigned(), trailing.len() as u16] {
        put(&mut half.to_le_bytes().to_vec());
    }
    out.extend(trailing);
    out
}

#[test]
fn iologs_of_fio_come_back_unchanged() -> Result<(), String> {
    let all = convert(V3)?;
    let rows_read: Vec<(u64, u64, u32)> =
        all.0.iter().map(|row| (row.issue_ns, row.sector, row.sectors)).collect();
    assert_eq!(rows_read, [(5000, 8, 8), (900_000, 16, 2), (1_000_000, 0, 0), (2_000_000, 0, 128)]);
    assert_eq!(profile(&all).flushes.requested, 1);
    let mut export = Export::new(Vec::new(), "/dev/sda", true).map_err(|e| e.to_string())?;
    for row in &all.0 {
        export.add(row, &all.1).map_err(|e| e.to_string())?;
    }
    let exported = String::from_utf8(export.finish().map_err(|e| e.to_string())?).unwrap_or_default();
    // The exported log has whole sectors: a partly written sector counts as written.
    assert_eq!(exported, V3.replace("8192 1000", "8192 1024"));
    let v2 = "fio version 2 iolog\nf add\ng add\nf open\nf read 0 4096\nf wait 250 0\ng write 0 512\n";
    let rows_read: Vec<(u64, u64)> = convert(v2)?.0.iter().map(|row| (row.issue_ns, row.sector)).collect();
    assert_eq!(rows_read, [(0, 0), (250_000_000, 1 << 32)]);
    Ok(())
}

#[test]
fn an_exported_log_has_every_requested_flush_and_no_empty_operation() -> io::Result<()> {
    let mut names = Names::default();
    let asked = |rwbs: &str| Flags { kind: RowKind::RequestedFlush, ..Flags::parse(rwbs) };
    let rows: Vec<Row> = [
        // A commit of a journal: its flush, its data, and the flushes of the device.
        (asked("FWFSM"), 8),
        (Flags::parse("FF"), 0),
        (Flags::parse("FWFSM"), 8),
        (asked("WFS"), 8),
        (asked("FWS"), 0),
        (Flags::parse("R"), 0),
    ]
    .into_iter()
    .map(|(flags, sectors)| Row { flags: names.flags(&flags), sectors, ..Row::default() })
    .collect();
    let export = |flushes_have_owners, rows: &[Row]| -> io::Result<(Vec<String>, u64)> {
        let mut export = Export::new(Vec::new(), "f", flushes_have_owners)?;
        rows.iter().try_for_each(|row| export.add(row, &names))?;
        let left_out = export.left_out;
        let text = String::from_utf8(export.finish()?).unwrap_or_default();
        let actions = text.lines().skip(3).filter_map(|line| line.split(' ').nth(2));
        Ok((actions.map(ToOwned::to_owned).collect(), left_out))
    };
    let (actions, left_out) = export(true, &rows)?;
    assert_eq!((actions.join(" "), left_out), ("datasync write datasync close".into(), 1));
    // The row of a bio includes its flush.
    assert_eq!(export(false, &rows[1..3])?.0.join(" "), "datasync datasync write close");
    Ok(())
}

#[test]
fn traces_of_msr_have_their_response_times() -> Result<(), String> {
    let text = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
        128166372016382155,usr,0,Write,1317441536,8192,1963\n";
    let all = convert(text)?;
    let profile = profile(&all);
    assert_eq!(profile.requests, 2);
    assert_eq!(profile.operations[0].latency_ns.as_ref().map(|l| l.max), Some(4_128_600));
    assert_eq!(all.0[1].issue_ns, 1_332_052_600);
    assert_eq!((profile.tasks[0].name.as_str(), profile.operations[1].op), ("usr.0", Op::Write));
    let headed = format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{text}");
    assert_eq!(convert(&headed)?.0, all.0);
    assert_eq!(convert(&format!("\n{headed}"))?.0, all.0);
    // Two disks are not laid on top of each other.
    let two = "1,usr,0,Read,0,65536,1\n2,usr,1,Read,0,65536,1\n";
    assert_eq!(self::profile(&convert(two)?).footprint.bytes, 131_072);
    let large = format!("{two}3,usr,0,Read,3000000000000,65536,1\n");
    assert!(convert(&large).is_err_and(|why| why.contains("several disks")));
    Ok(())
}

#[test]
fn blkparse_output_is_paired() -> Result<(), String> {
    let text = "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n\
        \x20 8,0    3        2     0.000036983   697  D   W 223490 + 8 [kjournald]\n\
        \x20 8,0    1        1     0.000040000   700  D  FF  [kworker/1:0]\n\
        \x20 8,0    1        2     0.000050000     0  C  FF 0 + 0 [0]\n\
        \x20 8,0    3        3     0.009507758     0  C   W 223490 + 8 [0]\nCPU3 (8,0):\n Reads Queued: 0\n";
    let all = convert(text)?;
    let rows_read: Vec<_> = all.0.iter().map(|row| (row.issue_ns, row.latency_ns, row.sectors)).collect();
    assert_eq!(rows_read, [(0, Some(9_470_775), 8), (3017, Some(10_000), 0)]);
    assert_eq!(all.1.task_at(all.0[0].task).map(|task| task.name.as_str()), Some("kjournald"));
    assert_eq!(all.2.without_completion, 0);
    Ok(())
}

#[test]
fn many_events_of_one_time_take_no_longer_than_others() -> Result<(), String> {
    // Whenever 65,536 events wait, half of them are paired.
    let requests = 100_000;
    let mut text = String::new();
    for at in 0..requests {
        text +=
            &format!("8,0 0 1 0.000000000 7 D R {} + 8 [a]\n8,0 0 1 0.000000000 0 C R {0} + 8 [0]\n", at * 8);
    }
    let begun = std::time::Instant::now();
    let (rows, _, ending) = convert(&text)?;
    assert_eq!((rows.len(), ending.events, ending.without_completion), (requests, 2 * requests as u64, 0));
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    Ok(())
}

#[test]
fn blkparse_names_with_spaces_and_errors_are_kept() -> Result<(), String> {
    let text = "  8,0    3        1     0.000000000   697  D   R 100 + 8 [Web Content]\n\
        \x20 8,0    3        2     0.000010000   698  D   R 200 + 8 [a [b] c]\n\
        \x20 8,0    3        3     0.000020000   699  D   R 300 + 8 [[in brackets]]\n\
        \x20 8,0    3        4     0.000030000     0  C   R 100 + 8 (   30000) [65531]\n\
        \x20 8,0    3        5     0.000040000     0  C   R 200 + 8 [-28]\n\
        \x20 8,0    3        6     0.000050000     0  C   R 300 + 8 [0]\n";
    let (rows, names, _) = convert(text)?;
    let task = |row: &Row| names.task_at(row.task).map(|task| task.name.clone()).unwrap_or_default();
    let error = |row: &Row| names.flags_at(row.flags).map_or(0, |flags| flags.error);
    let rows_read: Vec<_> = rows.iter().map(|row| (task(row), error(row))).collect();
    assert_eq!(rows_read, [("Web Content".into(), -5), ("a [b] c".into(), -28), ("[in brackets]".into(), 0)]);
    Ok(())
}

#[test]
fn blktrace_files_of_several_cpus_are_read_in_either_byte_order() -> Result<(), String> {
    const ISSUE: u32 = 7 | 1 << 22;
    const COMPLETE: u32 = 8 | 1 << 23;
    let (read, write) = (1 << 16, (1 << 1 | 1 << 3 | 1 << 15) << 16);
    for high_first in [false, true] {
        let mut first = record(high_first, 0, 0, 0, 1 << 26, b"postgres\0\0\0\0");
        first.extend(record(high_first, 1000, 8, 4096, ISSUE | read, &[]));
        first.extend(record(high_first, 5000, 64, 8192, COMPLETE | write, &[]));
        let mut second = record(high_first, 2000, 64, 8192, ISSUE | write, &[]);
        second.extend(record_with_error(high_first, 4000, 8, 4096, COMPLETE | read, -5, &[]));
        second.extend(&record(high_first, 6000, 8, 4096, COMPLETE | read, &[])[..20]);
        let (rows, names, _) = convert_all(&[&first, &second])?;
        let rows_read: Vec<_> =
            rows.iter().map(|r| (r.issue_ns, r.latency_ns, r.sector, r.sectors)).collect();
        assert_eq!(rows_read, [(0, Some(3000), 8, 8), (1000, Some(3000), 64, 16)]);
        assert_eq!(names.flags_at(rows[0].flags).map(|f| f.error), Some(-5));
        assert_eq!(names.flags_at(rows[1].flags).map(|f| (f.rwbs.as_str(), f.error)), Some(("WFS", 0)));
        assert_eq!(names.task_at(rows[1].task).map(|t| t.name.as_str()), Some("postgres"));
    }
    Ok(())
}

#[test]
fn commands_of_blktrace_are_no_reads_or_writes() -> Result<(), String> {
    for direction in [1, 1 << 1] {
        let command = (direction | 1 << 9) << 16;
        let mut trace = record(false, 1000, 0, 4096, 7 | 1 << 22 | command, &[]);
        trace.extend(record(false, 2000, 0, 4096, 8 | 1 << 23 | command, &[]));
        let all = convert_all(&[&trace])?;
        let rows: Vec<_> = all.0.iter().map(|row| (row.sectors, row.latency_ns)).collect();
        assert_eq!(rows, [(0, Some(1000))]);
        assert_eq!(profile(&all).operations.iter().map(|o| o.op).collect::<Vec<_>>(), [Op::Other]);
    }
    Ok(())
}

#[test]
fn a_read_error_is_not_the_end_of_a_trace() {
    struct Broken(Cursor<Vec<u8>>);
    impl io::Read for Broken {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            match self.0.read(to)? {
                0 => Err(io::Error::other("the disk is broken")),
                got => Ok(got),
            }
        }
    }
    let mut trace = record(false, 1000, 8, 4096, 7 | 1 << 16, &[]);
    trace.extend(record(false, 2000, 8, 4096, 8 | 1 << 16, &[7; 64]));
    for end in [trace.len() - 20, trace.len() - 90] {
        let from: Box<dyn BufRead> = Box::new(io::BufReader::new(Broken(Cursor::new(trace[..end].to_vec()))));
        let converted = Language::Blktrace.convert(vec![from], &mut |_, _| Ok(()));
        assert!(converted.is_err_and(|why| why.to_string() == "the disk is broken"), "{end}");
    }
}

#[test]
fn errors_say_where_a_trace_is_invalid() {
    let why = |text: &str| convert(text).map_or_else(|why| why, |_| "converted".into());
    assert!(
        why("fio version 3 iolog\n0 f add\nx f read 0 1\n").starts_with("line 3: the time is not a number")
    );
    assert!(why("fio version 3 iolog\n0 f fly 0 1\n").contains("does not know this action: '0 f fly 0 1'"));
    assert!(why("fio version 2 iolog\nf read 0\n").contains("an offset and a length"));
    assert!(why("fio version 3 iolog\n0 f read 99999999999999 1\n").contains("beyond 2 TiB"));
    assert!(why("1,h,0,Read,0,512,1\n1,h,0,Read,0,x,1\n").starts_with("line 2"));
    assert!(why("8,0 0 1 0.000000000 1 Q R 0 + 8 [a]\n").contains("no issued or completed request"));
    let long = format!("fio version 3 iolog\n0 f add {}\n", "x".repeat(70_000));
    assert!(
        why(&long)
            .starts_with("line 2: the line has 64 KiB or more, so the file is not a trace: '0 f add xx")
    );
    assert_eq!(why("hello\n"), "unknown format");
    let mut trace = record(false, 0, 8, 512, 7 | 1 << 16, &[]);
    trace.extend([0x55; 48]);
    let why = convert_all(&[&trace]).map_or_else(|why| why, |_| String::new());
    assert!(why.contains("at byte 48"), "{why}");
}
