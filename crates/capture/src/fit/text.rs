//! The text of a job file.
//!
//! For: a file that people read and `fathom run` takes. Not for: what stands in it ([`super::stream`]).

use super::entry::Entry;
use super::stream::{Described, Fitted};
use model::units::{show_bytes, show_count, show_ns};
use std::fmt::Write as _;

/// Column that comments begin at; where values are longer they stand above.
const COMMENTS: usize = 40;

/// What a file says of where it comes from.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The file that was captured, as it is typed.
    pub capture: String,
    /// What it was captured of.
    pub device: String,
    /// Whether it is complete, in words.
    pub completeness: String,
    /// Why the capture ends early.
    pub damage: Option<String>,
    /// The job file as it is typed.
    pub file: String,
}

impl Fitted {
    /// The job file.
    pub fn toml(&self, head: &Head) -> String {
        let mut out = String::new();
        let mut say = |line: &str| {
            let _ = writeln!(out, "# {}", harmless(line));
        };
        say(&format!(
            "A job that behaves like {}, by fathom fit {}",
            head.capture,
            env!("CARGO_PKG_VERSION")
        ));
        say(&format!(
            "{} operations of {} in {}, tasks: {}",
            show_count(self.operations as f64),
            head.device,
            show_ns(self.span_ns as f64),
            self.tasks,
        ));
        say(&head.completeness);
        if let Some(damage) = &head.damage {
            say(&format!("The capture is {damage}; this is fitted to what is before that"));
        }
        self.remarks.iter().for_each(|remark| say(remark));
        say(&format!(
            "Run:     fathom run {} TARGET   (it touches the first {})",
            head.file,
            show_bytes(self.end_bytes)
        ));
        if self.writes {
            say(
                "It writes: to a device or a file that is there it needs --destroy NAME; in a directory it makes a test file",
            );
        }
        say(&format!("Compare: fathom fit --check {} TARGET", head.capture));
        say(
            "KS: largest difference of the distribution functions of capture and job. IDC: Var N / E N of the number in a stretch of time",
        );
        let file = head.capture.rsplit('/').next().unwrap_or_default();
        let name: String = format!("fit of {file}").chars().filter(|c| !c.is_control()).collect();
        let name: String = name.chars().take(model::spec::number::MAX_NAME).collect();
        let _ = write!(
            out,
            "\nname = {}\ntime = \"{}us\"\nwarmup = 0\nruns = 1\n",
            quoted(&name),
            (self.span_ns / 1000).max(1000)
        );
        self.streams.iter().for_each(|stream| write_stream(&mut out, stream));
        out
    }
}

fn write_stream(out: &mut String, stream: &Described) {
    out.push('\n');
    for line in &stream.about {
        let _ = writeln!(out, "# {}", harmless(line));
    }
    let _ = writeln!(out, "[[stream]]\nname = {}", quoted(&stream.name));
    write_entries(out, &stream.entries);
    for turn in &stream.turns {
        out.push_str("\n[[stream.turn]]\n");
        write_entries(out, turn);
    }
}

fn write_entries(out: &mut String, entries: &[Entry]) {
    for entry in entries {
        let line = format!("{} = {}", entry.key, entry.value);
        let comment = harmless(&entry.comment);
        let _ = match line.chars().count() {
            0..=COMMENTS => writeln!(out, "{line:COMMENTS$}  # {comment}"),
            _ => writeln!(out, "# {}: {comment}\n{line}", entry.key),
        };
    }
}

/// Text between quotes; the escapes of TOML for what a name may have.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out + "\""
}

/// A comment is one line, whatever a name holds.
fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
