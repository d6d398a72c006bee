//! Settings with the place they came from, for `--explain` and the record.
//!
//! For: choosing between what was said and a default, and remembering which it was. Not for: the choices themselves.

use crate::request::Request;
use model::plan::Origin;

/// The origin of a setting that the user left to fathom.
const DEFAULT: &str = "default";

/// Every setting chosen so far.
pub(super) struct Origins<'a> {
    all: Vec<Origin>,
    request: &'a Request,
    /// Put before settings of one stream among several: `oltp: `.
    prefix: String,
    /// Settings that a profile says differently for each test; its table tells them better.
    left_out: &'static [&'static str],
}

impl<'a> Origins<'a> {
    pub(super) fn new(request: &'a Request, left_out: &'static [&'static str]) -> Self {
        Self { all: Vec::new(), request, prefix: String::new(), left_out }
    }

    /// From now on these are said differently for each job.
    pub(super) fn leave_out(&mut self, settings: &'static [&'static str]) {
        self.left_out = settings;
    }

    /// Where a setting was said.
    fn source(&self, setting: &str) -> String {
        self.request.origin(setting.trim_start_matches('-'))
    }

    /// From now on settings belong to this stream.
    pub(super) fn enter(&mut self, stream: &str) {
        self.prefix = if stream.is_empty() { String::new() } else { format!("{stream}: ") };
    }

    /// What is said there belongs to a part of the stream.
    pub(super) fn inside(&mut self, part: &str, say: impl FnOnce(&mut Self)) {
        let stream = self.prefix.clone();
        self.prefix += &format!("{part}: ");
        say(self);
        self.prefix = stream;
    }

    /// What was said, or the default.
    pub(super) fn choose<T>(
        &mut self,
        setting: &str,
        said: Option<T>,
        default: T,
        words: impl Fn(&T) -> String,
    ) -> T {
        self.choose_from(setting, said, default, DEFAULT, words)
    }

    /// What was said, or the default, with a word for where the default comes from.
    pub(super) fn choose_from<T>(
        &mut self,
        setting: &str,
        said: Option<T>,
        default: T,
        from: &str,
        words: impl Fn(&T) -> String,
    ) -> T {
        let from = if said.is_some() { self.source(setting) } else { from.to_owned() };
        let value = said.unwrap_or(default);
        self.fixed(setting, &words(&value), &from);
        value
    }

    /// A setting that nobody could choose.
    pub(super) fn fixed(&mut self, setting: &str, value: &str, from: &str) {
        let origin =
            Origin { setting: format!("{}{setting}", self.prefix), value: value.into(), from: from.into() };
        if !self.left_out.contains(&setting) && !self.all.contains(&origin) {
            self.all.push(origin);
        }
    }

    /// A setting without which things are as everybody expects: kept only where it was said.
    pub(super) fn note<T>(&mut self, setting: &str, said: Option<T>, words: impl Fn(&T) -> String) {
        if let Some(value) = said {
            let from = self.source(setting);
            self.fixed(setting, &words(&value), &from);
        }
    }

    /// Notes that another engine replaces the default one, which something denies.
    pub(super) fn replace_engine(&mut self, denied: &str, instead: &str, cause: &str) {
        for origin in &mut self.all {
            if origin.setting.ends_with("--engine") && origin.value == denied && origin.from == DEFAULT {
                origin.value = instead.into();
                origin.from = format!("the default {denied} cannot be used: {cause}");
            } else if origin.from == format!("engine {denied}") {
                origin.from = format!("engine {instead}");
            }
        }
    }

    /// All of them, in the order of choosing.
    pub(super) fn into_all(self) -> Vec<Origin> {
        self.all
    }
}
