//! Sessions that contradict themselves: real sessions with a changed file. These checks guard fathom's own arithmetic, and no command makes
//! them fire. Damaged files are refused earlier ([`crate::history`]).

use crate::stage::Stage;
use serde_json::{Value, json};

/// The value of a frame that is changed.
type Lie = fn(&mut Value);

/// A check, and the false value that it must detect.
const LIES: &[(&str, Lie)] = &[
    // 3 % more reads than any device did. This is too little to come from the page cache.
    ("A22", |frame| grow(frame, "/run_end/streams/0/issued/read/bytes", 1.03)),
    // The plan asks for half reads and half writes, but the run only read.
    ("B13", |frame| put(frame, "/header/plan/jobs/0/phases/0/streams/0/access/lines/0/mix/read_percent", 50)),
    // The depth integral is half as large again as the operations allow.
    ("B18", |frame| grow(frame, "/run_end/streams/0/depth_ns", 1.5)),
    // The time series has more operations than the totals.
    ("E17", |frame| grow(frame, "/intervals/rows/0/k/read/0", 2.0)),
];

fn put(frame: &mut Value, at: &str, number: u64) {
    if let Some(value) = frame.pointer_mut(at) {
        *value = json!(number);
    }
}

fn grow(frame: &mut Value, at: &str, times: f64) {
    let number = frame.pointer(at).and_then(Value::as_u64);
    put(frame, at, (number.unwrap_or(0) as f64 * times) as u64);
}

/// The file with the false value in each frame that can contain it, and correct checksums.
fn forge_session(session: &str, lie: Lie) -> String {
    let reported = |line: &str| -> Option<String> {
        let mut frame: Value = serde_json::from_str(line.split_once(' ')?.1).ok()?;
        lie(&mut frame);
        let json = frame.to_string();
        Some(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())))
    };
    // The first line is no frame.
    session.lines().map(|line| reported(line).unwrap_or_else(|| format!("{line}\n"))).collect()
}

#[test]
fn contradictory_sessions_are_detected() {
    let stage = Stage::watching();
    let file = stage.file("data", 64);
    let words = "run --rw randread --depth 4 --time 300ms --warmup 50ms --runs 2 --quiet --format json";
    let honest = stage.fathom(words, &file).report();
    let session = std::fs::read_to_string(&stage.sessions()[0]).unwrap();
    for (id, lie) in LIES {
        honest.expect_answer(id, "holds");
        let path = stage.path(&format!("{id}.fathom"));
        let lied = forge_session(&session, *lie);
        assert_ne!(lied, session, "{id}: the lie is nowhere");
        std::fs::write(&path, lied).unwrap();
        let report = stage.fathom("show --format json", &path).report();
        report.expect_answer(id, "finding");
        assert_ne!(report.verdict(), "VALID", "{id}");
    }
}
