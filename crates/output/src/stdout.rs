//! Standard output: prints text, reports and bytes completely, or returns an error.
//!
//! Text cannot control the terminal, because control characters that fathom did not write itself
//! are replaced.

use crate::failure::{Failure, cause};
use crate::stream;
use model::name::{visible, visible_json};
use report::{Content, Format, ReportKind, Style, TEXT};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// The line end of CSV.
const LINE_END: &str = "\r\n";
/// File descriptor of standard output.
pub(crate) const STDOUT: i32 = 1;

/// Prints text without colours.
///
/// # Errors
/// [`Failure::Refused`] if standard output cannot be written. A closed pipe is not an error.
pub fn print_text(text: &str) -> Result<(), Failure> {
    print_bytes(&escape_control_characters(text.as_bytes(), Content::Text))
}

/// Prints a report of any kind in a format, fitted to the terminal's width and colours.
///
/// # Errors
/// As [`print_text`], and if the format cannot write this kind of report.
pub fn print_report<K: ReportKind + ?Sized>(
    format: &Format,
    report: &K,
    style: Style,
) -> Result<(), Failure> {
    print_bytes(&render_to_fit(format, report, style, &io::stdout())?)
}

/// Renders a report for a stream, fitted to the stream's width and colours.
///
/// # Errors
/// A failure if the format cannot write this kind of report.
pub fn render_to_fit<K: ReportKind + ?Sized>(
    format: &Format,
    report: &K,
    style: Style,
    stream: &(impl IsTerminal + AsFd),
) -> Result<Vec<u8>, Failure> {
    let style = Style { width: stream::columns(Some(stream.as_fd())), ..style };
    let plain = render(format, report, style)?;
    let shown = escape_control_characters(&plain, format.content);
    let may_colour = format.content == Content::Text && shown == plain;
    if may_colour && stream::has_colours(stream) {
        return render(format, report, Style { colour: true, ..style });
    }
    Ok(shown)
}

/// Renders a report for a file: without colours.
///
/// # Errors
/// If the format cannot write this kind of report.
pub fn render_for_file<K: ReportKind + ?Sized>(
    format: &Format,
    report: &K,
    style: Style,
) -> Result<Vec<u8>, Failure> {
    let style = Style { width: stream::columns(None), ..style };
    Ok(escape_control_characters(&render(format, report, style)?, format.content))
}

/// Renders a report as a string, to print it after the message that its file could not be written.
/// Uses the text format if `format` is binary. If the report cannot be rendered, returns the reason.
pub fn render_as_text<K: ReportKind + ?Sized>(format: &Format, report: &K, style: Style) -> String {
    let format = if format.content == Content::Bytes { TEXT } else { format };
    let bytes = render(format, report, style).unwrap_or_else(|why| why.message().as_bytes().to_vec());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn render<K: ReportKind + ?Sized>(format: &Format, report: &K, style: Style) -> Result<Vec<u8>, Failure> {
    let refuse = |e| Failure::Refused(format!("--format {}: {e}", format.name));
    format.bytes(report, style).map_err(refuse)
}

/// Prints a text: `coloured` on a terminal with colours, otherwise `plain`.
///
/// # Errors
/// As [`print_text`].
pub fn print_coloured(plain: &str, coloured: &str) -> Result<(), Failure> {
    // Without control characters in `plain`, every escape sequence in `coloured` is fathom's own.
    let ours = escape_control_characters(plain.as_bytes(), Content::Text) == plain.as_bytes();
    if ours && stream::has_colours(&io::stdout()) {
        print_bytes(coloured.as_bytes())
    } else {
        print_text(plain)
    }
}

/// Prints JSON.
///
/// # Errors
/// As [`print_text`].
pub fn print_json(json: impl AsRef<[u8]>) -> Result<(), Failure> {
    print_bytes(&escape_control_characters(json.as_ref(), Content::Json))
}

/// Prints bytes unchanged.
///
/// # Errors
/// As [`print_text`].
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    print_piece(bytes).map(|_| ())
}

/// Prints one report of a continuing output. Returns the number of printed lines; `None` if the
/// reader has closed the pipe.
///
/// # Errors
///
/// As [`print_report`].
pub fn print_next<K: ReportKind + ?Sized>(format: &Format, part: &K) -> Result<Option<usize>, Failure> {
    let style = Style { width: stream::columns(Some(rustix::stdio::stdout())), ..Style::default() };
    let shown = escape_control_characters(&render(format, part, style)?, format.content);
    let lines = shown.split(|byte| *byte == b'\n').count().saturating_sub(1);
    Ok(print_piece(&shown)?.then_some(lines))
}

/// Returns the number of lines of the terminal; `None` if standard output is not a terminal, or if
/// the terminal does not report it.
pub fn screen_rows() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    stream::rows(rustix::stdio::stdout())
}

/// Prints a piece of a long output. Returns `false` if the reader has closed the pipe.
///
/// # Errors
///
/// As [`print_text`].
pub fn print_piece(bytes: &[u8]) -> Result<bool, Failure> {
    let written = if sys::process::was_closed(STDOUT) {
        Err(io::Error::other("it was closed when fathom was started"))
    } else if stream::is_disk(rustix::stdio::stdout()) {
        Err(io::Error::other("it is a block device, which fathom never writes to"))
    } else {
        stream::write(rustix::stdio::stdout(), bytes)
    };
    match written {
        Ok(()) => Ok(true),
        // `fathom ... | head` closes the pipe early: not an error.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => {
            let advice = match e.kind() {
                io::ErrorKind::StorageFull => "; make room there, or redirect the output elsewhere",
                _ => cause(&e),
            };
            Err(Failure::Refused(format!("standard output cannot be written: {e}{advice}")))
        }
    }
}

/// Makes the control characters of text and JSON harmless for a terminal: replaces them in text, and
/// escapes them in JSON. Returns other content unchanged.
pub fn escape_control_characters(document: &[u8], content: Content) -> Vec<u8> {
    let text = String::from_utf8_lossy(document);
    match content {
        Content::Bytes => document.to_vec(),
        Content::Json => visible_json(&text).into_owned().into_bytes(),
        // `\r\n`, the line end of CSV, is harmless.
        Content::Text => {
            let lines: Vec<_> = text.split(LINE_END).map(visible).collect();
            lines.join(LINE_END).into_bytes()
        }
    }
}

/// Returns whether the terminal can move the cursor, according to `TERM`: not if it is unset, empty
/// or `dumb`.
pub fn can_place_text() -> bool {
    std::env::var_os("TERM").is_some_and(|kind| !kind.is_empty() && kind != "dumb")
}

#[test]
fn control_characters_are_removed_and_line_ends_kept() {
    let shown = |text: &str| {
        String::from_utf8(escape_control_characters(text.as_bytes(), Content::Text)).unwrap_or_default()
    };
    assert_eq!(shown("a,b\r\n1,\"x\ry\"\r\n"), "a,b\r\n1,\"x\\u{d}y\"\r\n");
    assert_eq!(shown("a\u{1b}[1m\n"), "a\\u{1b}[1m\n");
}

#[test]
fn binary_content_is_unchanged() {
    let picture = b"\x89PNG\r\n\x1a\n\x00\xff";
    assert_eq!(escape_control_characters(picture, Content::Bytes), picture);
    assert_ne!(escape_control_characters(picture, Content::Text), picture);
}
