//! The text output of CrystalDiskMark, column by column, and KDiskMark's calls of fio with fathom in place of fio.

use crate::fio::fio;
use crate::stage::Stage;
use serde_json::Value;
use std::path::Path;

/// A line of results as CrystalDiskMark 7 printed it.
const LINE: &str = "  SEQ    1MiB (Q=  8, T= 1):  5585.875 MB/s [   5327.1 IOPS] <  1390.62 us>";

#[test]
fn profile_text_matches_crystaldiskmark_to_the_column() {
    let stage = Stage::one_per_cpu();
    let words = "bench --profile cdm --size 16m --time 60ms --warmup 0 --runs 2 --quiet --format cdm";
    let out = stage.fathom(words, &stage.folder("here"));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let lines: Vec<&str> = out.stdout.split("\r\n").collect();
    assert!(lines[0].len() == 78 && lines[3] == lines[0] && lines[0].bytes().all(|b| b == b'-'), "{out:?}");
    assert!(lines[4].starts_with("* MB/s = 1,000,000 bytes/s [SATA/600"), "{out:?}");
    let marks = |line: &str| -> Vec<(usize, char)> {
        line.char_indices().filter(|(_, c)| "(=,):[]<>.".contains(*c)).collect()
    };
    let rows: Vec<&&str> =
        lines.iter().filter(|l| l.starts_with("  SEQ") || l.starts_with("  RND")).collect();
    // A test disturbed by other load has no number, and therefore no line.
    let withheld = out.stdout.split(", ").find_map(|part| part.split_once(" without a number"));
    let withheld = withheld.map_or(0, |(text, _)| text.split(' ').next().unwrap().parse().unwrap());
    assert!(!rows.is_empty() && rows.len() + withheld == 8, "{out:?}");
    for row in &rows {
        assert_eq!((row.len(), marks(row)), (LINE.len(), marks(LINE)), "{row}");
        assert!(row.contains(" MB/s [") && row.contains(" IOPS] <") && row.ends_with(" us>"), "{row}");
        let number = |from: usize, to: usize| row[from..to].trim().parse::<f64>().unwrap();
        let (rate, iops, us) = (number(28, 38), number(45, 55), number(63, 72));
        let block = number(6, 10) * if &row[10..13] == "MiB" { 1_048_576.0 } else { 1024.0 };
        assert!((rate * 1e6 / block / iops - 1.0).abs() < 0.01, "{row}");
        let depth = number(17, 20);
        assert!(iops * us / 1e6 < 1.02 * depth, "one run's figures belong together: {row}");
    }
    let at =
        |text: &str| lines.iter().position(|l| *l == text).unwrap_or_else(|| panic!("no {text}: {out:?}"));
    assert!(at("[Read]") < at("[Write]") && at("[Write]") < at("Profile: Default"), "{out:?}");
    assert!(
        out.stdout.contains("   Test: 16 MiB (x2) [") && out.stdout.contains("Comment: fathom: "),
        "{out:?}"
    );
}

#[test]
fn results_without_a_crystaldiskmark_line_are_counted() {
    let stage = Stage::shared();
    let words =
        "run --rw read --bs 4k/60:64k/40 --size 16m --time 60ms --warmup 0 --runs 1 --quiet --format cdm";
    let out = stage.fathom(words, &stage.folder("here"));
    assert!(out.stdout.contains("1 result that CrystalDiskMark has no line for"), "{out:?}");
    assert!(out.stdout.contains("Profile: Custom"), "{out:?}");
}

/// Like KDiskMark 3: asks for the version, makes an empty file, lays it out, and measures in it.
#[test]
fn kdiskmark_commands_work_with_fathom_as_fio() {
    let stage = Stage::shared();
    let version = fio(&stage, "--version");
    assert!(version.stdout.starts_with("fio-"), "{version:?}");
    let file = stage.path("kdiskmark-AbCdEf.tmp");
    std::fs::write(&file, "").unwrap();
    let answer = |words: &str| {
        let out = fio(&stage, words);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{words}: {out:?}");
        serde_json::from_str::<Value>(&out.stdout).unwrap()
    };
    answer(&format!(
        "--output-format=json --create_only=1 --filename={} --size=16m --zero_buffers=0 --name=prepare",
        file.display()
    ));
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 16 << 20);
    for (rw, block, depth, jobs) in [
        ("read", 1024, 8, 1),
        ("write", 1024, 1, 1),
        ("randread", 4, 32, 2),
        ("randwrite", 4, 1, 1),
        ("randrw", 4, 4, 1),
    ] {
        let json = answer(&format!(
            "--output-format=json --ioengine=libaio --randrepeat=0 --refill_buffers=0 --end_fsync=1 --direct=1 --rwmixread=70 \
             --filename={} --name={rw} --size=16m --zero_buffers=0 --bs={block}k --runtime=1 --rw={rw} --iodepth={depth} \
             --numjobs={jobs} --group_reporting",
            file.display()
        ));
        let job = &json["jobs"][0];
        assert_eq!(
            (json["jobs"].as_array().map(Vec::len), job["error"].as_i64()),
            (Some(1), Some(0)),
            "{rw}: {json:#}"
        );
        for way in ["read", "write"] {
            let is_done = rw.contains(way) || rw == "randrw";
            let figures =
                [&job[way]["bw"], &job[way]["iops"], &job[way]["clat_ns"]["mean"]].map(Value::as_f64);
            assert_eq!(figures.iter().all(|f| f.is_some_and(|f| f > 0.0)), is_done, "{rw} {way}: {job:#}");
        }
    }
    // KDiskMark itself removes the file; fathom leaves nothing else.
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 16 << 20);
    assert!(!Path::new("prepare.0.0").exists());
}
