//! Where each value of the plan comes from: a flag, a job file or a default.
//!
//! [`Origins`] chooses between the typed value and the default, and records which one it was, for `--explain` and the record.

use crate::request::Request;
use model::plan::Origin;

/// The origin of a default.
const DEFAULT: &str = "default";

/// All settings chosen so far.
pub(crate) struct Origins<'a> {
    /// The settings in the order in which they were chosen.
    pub(super) all: Vec<Origin>,
    request: &'a Request,
    /// Prefix of settings of one stream among several: `oltp: `.
    prefix: String,
    /// Settings that differ between jobs. They are not recorded, because the table of jobs shows
    /// them.
    left_out: &'static [&'static str],
}

impl<'a> Origins<'a> {
    pub(crate) fn new(request: &'a Request) -> Self {
        Self { all: Vec::new(), request, prefix: String::new(), left_out: &[] }
    }

    /// Omits these settings from now on: they differ between jobs.
    pub(crate) fn leave_out(&mut self, settings: &'static [&'static str]) {
        self.left_out = settings;
    }

    /// Where the user set a value.
    fn source(&self, setting: &str) -> String {
        self.request.origin(setting.trim_start_matches('-'))
    }

    /// Attributes the following settings to this stream. An empty name adds no prefix: there is only one stream.
    pub(crate) fn enter(&mut self, stream: &str) {
        self.prefix = if stream.is_empty() { String::new() } else { format!("{stream}: ") };
    }

    /// Attributes the settings recorded by `record` to a part of the stream.
    pub(crate) fn inside(&mut self, part: &str, record: impl FnOnce(&mut Self)) {
        let stream = self.prefix.clone();
        self.prefix += &format!("{part}: ");
        record(self);
        self.prefix = stream;
    }

    /// Returns the typed value or the default, and records it.
    pub(crate) fn choose<T>(
        &mut self,
        setting: &str,
        given: Option<T>,
        default: T,
        words: impl Fn(&T) -> String,
    ) -> T {
        self.choose_from(setting, given, default, DEFAULT, words)
    }

    /// Returns the typed value or the default, and records it. `from` describes the origin of the default.
    pub(crate) fn choose_from<T>(
        &mut self,
        setting: &str,
        given: Option<T>,
        default: T,
        from: &str,
        words: impl Fn(&T) -> String,
    ) -> T {
        let from = if given.is_some() { self.source(setting) } else { from.to_owned() };
        let value = given.unwrap_or(default);
        self.record(setting, &words(&value), &from);
        value
    }

    /// Records a setting with its value and its origin, unless it is left out or already recorded.
    pub(crate) fn record(&mut self, setting: &str, value: &str, from: &str) {
        let origin =
            Origin { setting: format!("{}{setting}", self.prefix), value: value.into(), from: from.into() };
        if !self.left_out.contains(&setting) && !self.all.contains(&origin) {
            self.all.push(origin);
        }
    }

    /// Records a setting only if the user typed it: its default needs no mention.
    pub(crate) fn note<T>(&mut self, setting: &str, given: Option<T>, words: impl Fn(&T) -> String) {
        if let Some(value) = given {
            let from = self.source(setting);
            self.record(setting, &words(&value), &from);
        }
    }

    /// Records that another engine replaces the denied default.
    pub(crate) fn replace_engine(&mut self, denied: &str, instead: &str, cause: &str) {
        for origin in &mut self.all {
            if origin.setting.ends_with("--engine") && origin.value == denied && origin.from == DEFAULT {
                origin.value = instead.into();
                origin.from = format!("the default {denied} cannot be used: {cause}");
            } else if origin.from == format!("engine {denied}") {
                origin.from = format!("engine {instead}");
            }
        }
    }
}
