//! The format `html`: a page with plots for each kind of report, complete in one file.
//!
//! The page loads nothing. It consists of templates (`crates/report/templates/`), one style, one optional script, and drawings as SVG
//! ([`plot`]). Templates escape all foreign text; only HTML that was made here is inserted unescaped (`safe`).

mod observed_load;
mod page;
mod plot;
mod report;
mod results;
mod sessions;
mod studies;
mod table_pages;
mod time_series;

use crate::format::{Content, Format, Writer};

pub(super) static FORMAT: Format = Format {
    name: "html",
    extension: "html",
    content: Content::Text,
    has_brief: false,
    report: Some(Writer { about: "a page with plots, complete in one file", write: report::write_report }),
    comparison: Some(Writer {
        about: "a page with every change and its interval",
        write: sessions::write_comparison,
    }),
    comparisons: Some(Writer {
        about: "a page with every change on every side",
        write: sessions::write_several,
    }),
    plan: Some(Writer { about: "a page of the settings and the workloads", write: table_pages::write_plan }),
    sessions: Some(Writer { about: "a page with a table", write: table_pages::write_list }),
    session_table: Some(Writer { about: "a page with a table", write: sessions::write_session_table }),
    pages: Some(Writer { about: "a page of them", write: table_pages::write_check_pages }),
    diagnosis: Some(Writer {
        about: "a page with everything that was looked at",
        write: table_pages::write_diagnosis,
    }),
    devices: Some(Writer { about: "a page with a table", write: table_pages::write_devices }),
    verified: Some(Writer {
        about: "a page with the verdict and the damage",
        write: table_pages::write_verification,
    }),
    watched: None,
    load_over_time: Some(Writer {
        about: "a page with plots of the load over time",
        write: observed_load::write_load,
    }),
    captured: Some(Writer {
        about: "a page with plots over time and over the device",
        write: observed_load::write_capture,
    }),
    fitted: None,
};

/// Filters of templates: keeps flags such as `--time` on one line.
mod filters {
    #![allow(
        unreachable_pub,
        clippy::inline_always,
        clippy::unused_self,
        reason = "what the macro makes of a filter"
    )]

    use askama::filters::{Escaper, Html, Safe};
    use askama::{Result, Values};
    use std::fmt::{Display, Write};

    /// Escapes text and keeps every flag on one line: `--time` is never broken after its dashes.
    #[askama::filter_fn]
    pub(super) fn flags(text: impl Display, _: &dyn Values) -> Result<Safe<String>> {
        let text = text.to_string();
        let mut out = String::with_capacity(text.len() + 32);
        let mut rest = text.as_str();
        while let Some((from, to)) = next_flag(rest) {
            Html.write_escaped_str(&mut out, &rest[..from])?;
            // A flag is letters, digits and dashes.
            write!(out, "<span class=\"flag\">{}</span>", &rest[from..to])?;
            rest = &rest[to..];
        }
        Html.write_escaped_str(&mut out, rest)?;
        Ok(Safe(out))
    }

    /// Returns the range of the next flag: dashes and a letter that do not follow a word.
    fn next_flag(text: &str) -> Option<(usize, usize)> {
        let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        text.match_indices('-').find_map(|(from, _)| {
            if text[..from].ends_with(is_word) {
                return None;
            }
            let dashes = text[from..].bytes().take_while(|b| *b == b'-').count();
            let name = &text[from + dashes..];
            let is_flag = dashes <= 2 && name.starts_with(|c: char| c.is_ascii_alphabetic());
            let is_of_flag = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
            let to = from + dashes + name.bytes().take_while(is_of_flag).count();
            is_flag.then_some((from, to))
        })
    }

    #[cfg(test)]
    mod tests {
        use super::super::filters;
        use super::next_flag;
        use askama::Template;

        #[derive(Template)]
        #[template(source = "{{ text|flags }}", ext = "html")]
        struct Line {
            text: &'static str,
        }

        fn line(text: &'static str) -> String {
            Line { text }.render().unwrap_or_default()
        }

        #[test]
        fn flags_are_not_broken_and_other_text_is_escaped() {
            let whole = |flag: &str| format!("<span class=\"flag\">{flag}</span>");
            assert_eq!(line("longer (--time 20s)."), format!("longer ({} 20s).", whole("--time")));
            assert_eq!(
                line("-o x, --fail-if=a<b"),
                format!("{} x, {}=a&#60;b", whole("-o"), whole("--fail-if"))
            );
            for text in ["A - B", "20261122-144019-20797", "read-ahead", "--- x", "-5", "--", "a--b"] {
                assert_eq!(line(text), text);
            }
            assert!(!line("--x<script>").contains("<script") && !line("<b>").contains("<b>"));
            assert_eq!(next_flag("µ--time"), None, "behind a word");
        }
    }
}
