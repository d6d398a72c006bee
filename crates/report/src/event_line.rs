//! A request of a capture as a line.
//!
//! For: lists of any length, written line by line, as text and as CSV. Not for: the profile of a capture.

use model::captured::Op;

/// Bytes of a sector as the kernel counts.
const SECTOR: u64 = 512;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct EventLine<'r> {
    /// When it was issued, ns since the capture began.
    pub issue_ns: u64,
    /// From issue to completion; `None` where that was not seen.
    pub latency_ns: Option<u64>,
    /// From insertion into the scheduler to issue.
    pub queued_ns: Option<u64>,
    /// What it does.
    pub op: Op,
    /// Whether it is a flush as its owner asked for it, and none that the device got.
    pub asked: bool,
    /// The kernel's letters.
    pub letters: &'r str,
    /// Negative `errno`, or 0.
    pub error: i32,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Length, in units of 512 bytes.
    pub sectors: u32,
    /// Name of the task.
    pub task: &'r str,
    /// Number of the thread.
    pub tid: u32,
    /// Number of the process, where it is known.
    pub pid: Option<u32>,
}

impl EventLine<'_> {
    /// The line above lines of text.
    pub fn heading() -> String {
        format!(
            "{:>13} {:>11} {:<6} {:>15} {:>9}  {}\n",
            "issue s", "latency us", "rwbs", "offset", "bytes", "task"
        )
    }

    /// The line above lines of CSV.
    pub fn csv_heading() -> String {
        "issue_ns,latency_ns,queued_ns,op,asked,rwbs,error,offset_bytes,bytes,task,tid,pid\r\n".into()
    }

    /// In 80 columns where names are short; what few lines have stands behind the task.
    pub fn text(&self) -> String {
        let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        let latency = self.latency_ns.map_or_else(|| "-".into(), us);
        let queued = self.queued_ns.map_or_else(String::new, |ns| format!(" queued {} us", us(ns)));
        let asked = if self.asked { " asks" } else { "" };
        let error = if self.error == 0 { String::new() } else { format!(" error {}", self.error) };
        format!(
            "{:>13.6} {latency:>11} {:<6} {:>15} {:>9}  {}:{}{asked}{queued}{error}\n",
            self.issue_ns as f64 / 1e9,
            self.letters,
            self.sector.saturating_mul(SECTOR),
            u64::from(self.sectors) * SECTOR,
            self.task,
            self.tid,
        )
    }

    /// As the heading says; what is not known is empty.
    pub fn csv(&self) -> String {
        let known = |figure: Option<u64>| figure.map_or_else(String::new, |figure| figure.to_string());
        format!(
            "{},{},{},{},{},{},{},{},{},{},{},{}\r\n",
            self.issue_ns,
            known(self.latency_ns),
            known(self.queued_ns),
            self.op.word(),
            u8::from(self.asked),
            quoted(self.letters),
            self.error,
            self.sector.saturating_mul(SECTOR),
            u64::from(self.sectors) * SECTOR,
            quoted(self.task),
            self.tid,
            known(self.pid.map(u64::from)),
        )
    }
}

/// A field of CSV: in quotes where it has to be (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

#[test]
fn a_request_is_one_line_of_each_kind() {
    let line = EventLine {
        issue_ns: 1_500_000_000,
        latency_ns: Some(85_300),
        queued_ns: None,
        op: Op::Write,
        asked: false,
        letters: "FWFSM",
        error: -5,
        sector: 229_396,
        sectors: 2,
        task: "a,\"b\"",
        tid: 7,
        pid: None,
    };
    let text = line.text();
    assert!(text.contains("1.500000 ") && text.contains("85.3") && text.ends_with("a,\"b\":7 error -5\n"));
    assert_eq!(line.csv(), "1500000000,85300,,write,0,FWFSM,-5,117450752,1024,\"a,\"\"b\"\"\",7,\r\n");
    assert_eq!(EventLine::csv_heading().matches(',').count(), 11);
    let unseen = EventLine { latency_ns: None, asked: true, error: 0, task: "postgres", ..line };
    assert!(unseen.text().contains(" - ") && unseen.text().ends_with("postgres:7 asks\n"));
    assert!(unseen.text().trim_end().len() <= 80 && EventLine::heading().trim_end().len() <= 80);
}
