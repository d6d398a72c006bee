//! A log of operations as CSV (RFC 4180).
//!
//! For: a row per operation, or per interval, worker and kind. Not for: figures, which the report has. Times are in ns and count from the
//! beginning of the phase, warm-up included; an empty field is not known.

use csv::{Terminator, WriterBuilder};
use model::op_log::{Interval, Operation, Rows, WorkerLog};

const CSV_HEADINGS: [&str; 12] = [
    "run",
    "name",
    "worker",
    "direction",
    "end_ns",
    "operations",
    "bytes",
    "mean_latency_ns",
    "max_latency_ns",
    "mean_service_ns",
    "target",
    "offset",
];

/// All logs, one after another; `names` are those of results by job, phase and stream.
pub(super) fn csv_content(names: &[Vec<Vec<String>>], logs: &[WorkerLog]) -> Vec<u8> {
    let mut out = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    // Into memory, which refuses nothing.
    let _ = out.write_record(CSV_HEADINGS);
    for log in logs {
        let name = names.get(log.job).and_then(|job| job.get(log.phase)?.get(log.stream));
        let name = name.map_or("", String::as_str);
        let who = [log.run.to_string(), name.to_owned(), log.number.to_string()];
        match &log.rows {
            Rows::Each(all) => all.iter().for_each(|one| {
                let _ = out.write_record(who.iter().chain(&operation_fields(one)));
            }),
            Rows::Intervals(intervals) => intervals.all.iter().for_each(|one| {
                let _ = out.write_record(who.iter().chain(&interval_fields(one)));
            }),
        }
    }
    out.into_inner().unwrap_or_default()
}

fn operation_fields(one: &Operation) -> [String; 9] {
    [
        one.kind.word().into(),
        one.end_ns.to_string(),
        "1".into(),
        one.length.to_string(),
        one.latency_ns.to_string(),
        one.latency_ns.to_string(),
        one.service_ns.to_string(),
        one.file.to_string(),
        one.offset.to_string(),
    ]
}

fn interval_fields(one: &Interval) -> [String; 9] {
    [
        one.kind.word().into(),
        one.end_ns.to_string(),
        one.operations.to_string(),
        one.bytes.to_string(),
        (one.latency_ns / one.operations.max(1)).to_string(),
        one.max_ns.to_string(),
        String::new(),
        String::new(),
        String::new(),
    ]
}

#[test]
fn operations_and_intervals_have_the_same_columns() {
    let kind = model::job::Kind::Read;
    let log = |rows| WorkerLog { run: 1, job: 0, phase: 0, stream: 0, number: 2, began_unix_ms: 0, rows };
    let mut each = Rows::new(0, 0);
    let one = Operation {
        end_ns: 9,
        latency_ns: 4,
        service_ns: 3,
        offset: 512,
        length: 8,
        file: 1,
        kind,
        share: 0,
    };
    each.take(&[one, Operation { latency_ns: 8, ..one }]);
    let names = [vec![vec!["a, b".to_owned()]]];
    let text = |rows| String::from_utf8(csv_content(&names, &[log(rows)])).unwrap_or_default();
    let intervals = Rows::Intervals(each.intervals(0, 10));
    assert_eq!(text(each).lines().nth(2), Some("1,\"a, b\",2,read,9,1,8,8,8,3,1,512"));
    assert_eq!(text(intervals).lines().nth(1), Some("1,\"a, b\",2,read,10,2,16,6,8,,,"));
}
