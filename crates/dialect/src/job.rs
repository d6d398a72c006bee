//! fathom's job file: TOML whose keys are the flags of `fathom run` without dashes. It has `phase`
//! tables, `stream` tables in phases, and `line` and `turn` tables in streams. A `line` is a line of
//! an Iometer access specification. A `turn` is a number of operations of one kind; a stream repeats
//! its turns in order. A key at an outer level applies to everything inside unless an inner level
//! overrides it. [`model::spec::keys`] defines the keys.
//!
//! A level that is not written out exists once: a file without `phase` is one phase, and a phase without
//! `stream` is one stream.

use crate::trouble::{Diagnostic, Trouble, nearest};
use crate::{Language, Tool};
use model::job::{Every, Line};
use model::spec::iometer::LINE_KEYS;
use model::spec::keys::{Counterpart, KEYS, Key, LINE, NAME, OPS, Set, TARGET, TURN};
use model::spec::number::{MAX_JOB_STREAMS, MAX_PHASES, MAX_STREAMS, MAX_TIME_NS, MAX_TURNS, MIN_TIME_NS};
use model::spec::{JobSpec, PhaseSpec, Problem, StreamSpec, TurnSpec, is_turn_key, keys, values};
use model::units::{parse_duration_ns, show_ns};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) const LANGUAGE: Language =
    Language { tool: Tool::Fathom, extension: "toml", parse: |name, text, also| parse(name, text, also) };
/// Table of the phases.
pub const PHASE: &str = "phase";
/// Table of the streams.
pub const STREAM: &str = "stream";
/// Key of a phase: its start, counted from the start of the job.
pub const AT: &str = "at";

/// Reads a job file, which messages call `name`. Checks the job for contradictions. `also` adds checks of the caller, such as whether
/// engines exist.
///
/// # Errors
/// All errors, each with line, column and what to type instead.
pub fn parse(name: &str, text: &str, also: impl Fn(&JobSpec) -> Vec<Problem>) -> Result<JobSpec, Trouble> {
    Trouble::refuse_large(name, text, "a job file")?;
    let (table, errors) = DeTable::parse_recoverable(text);
    Trouble::refuse_errors(name, text, errors.iter().map(|e| syntax(e, text)).collect())?;
    read_tables(table.get_ref(), text, also).map_err(|diagnostics| Trouble::new(name, text, diagnostics))
}

/// Converts an error of the TOML parser to a diagnostic, and adds what to type instead.
fn syntax(error: &toml::de::Error, text: &str) -> Diagnostic {
    let span = error.span().unwrap_or(0..text.len().min(1));
    let what = error.message().replace('\n', ", ");
    let advice = if what.contains("must be quoted") {
        "type it in quotes, such as \"4k\""
    } else if what.contains("duplicate key") {
        "type it once"
    } else if what.contains("visible characters") {
        "type printable characters only"
    } else if what.contains("unclosed") {
        "type the missing bracket or quote"
    } else {
        "type KEY = VALUE, text in quotes"
    };
    Diagnostic::new(span, format!("{}; {advice}", what.replace("; ", ", ")))
}

/// Minimum similarity (Damerau-Levenshtein, 0 to 1) of a suggested key.
const MIN_SIMILARITY: f64 = 0.4;
/// Settings that a stream with `read-back` may have in addition to its name.
const READ_BACK: [&str; 2] = ["read-back", "op-log-interval"];

/// The level of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Top,
    Phase,
    Stream,
    Turn,
}

/// The values of `phase` and `stream` in a table.
#[derive(Clone, Copy, Default)]
struct NestedTables<'t> {
    phases: Option<&'t Spanned<DeValue<'t>>>,
    streams: Option<&'t Spanned<DeValue<'t>>>,
}

/// The settings of a phase and of its streams.
struct PhaseSettings {
    settings: Settings,
    streams: Vec<Settings>,
}

#[derive(Default)]
struct Reader {
    job: JobSpec,
    diagnostics: Vec<Diagnostic>,
    /// Number of streams so far.
    stream_count: usize,
}

/// Reads the job, or returns all its errors.
fn read_tables(
    table: &DeTable<'_>,
    file: &str,
    also: impl Fn(&JobSpec) -> Vec<Problem>,
) -> Result<JobSpec, Vec<Diagnostic>> {
    let start = 0..file.find('\n').unwrap_or(file.len());
    if table.is_empty() {
        return Err(vec![Diagnostic::new(
            start,
            "the file defines no workload; type at least rw = \"randread\"",
        )]);
    }
    let mut reader = Reader::default();
    let mut phase_settings = reader.read_phases(table, start);
    if !reader.diagnostics.is_empty() {
        return Err(reader.diagnostics);
    }
    let mut phases: Vec<&mut Settings> = phase_settings.iter_mut().map(|part| &mut part.settings).collect();
    let mut diagnostics = set_phase_lengths(&mut phases);
    for PhaseSettings { settings, streams } in &phase_settings {
        let streams = streams.iter().map(|s| s.stream.clone()).collect();
        reader.job.phases.push(PhaseSpec { streams, ..settings.phase.clone() });
    }
    let problems = reader.job.check().into_iter().chain(also(&reader.job));
    diagnostics.extend(problems.map(|problem| point(&problem, &phase_settings)));
    if diagnostics.is_empty() { Ok(reader.job) } else { Err(diagnostics) }
}

/// A problem as a diagnostic at its place in the text.
fn point(problem: &Problem, phase_settings: &[PhaseSettings]) -> Diagnostic {
    let Some(settings) = phase_settings.get(problem.phase).and_then(|part| part.streams.get(problem.stream))
    else {
        return Diagnostic::new(0..0, problem.in_toml());
    };
    let mut diagnostic = point_in(settings, problem);
    let inherited = diagnostic.span.start < settings.head.start;
    if inherited {
        diagnostic.context.push((settings.head.clone(), "for this stream"));
    }
    diagnostic
}

/// A problem as a diagnostic. The place is the first of the problem's keys that is set in this table
/// or in an outer one. If no key is set, the place is the table's heading.
fn point_in(settings: &Settings, problem: &Problem) -> Diagnostic {
    let mut places = problem.keys.iter().filter_map(|key| settings.spans.get(key)).cloned();
    let mut diagnostic = Diagnostic::new(places.next().unwrap_or(settings.head.clone()), problem.in_toml());
    diagnostic.context = places.map(|place| (place, "and this")).collect();
    diagnostic
}

impl Reader {
    /// Reads the phases. A file without `phase` tables is itself the only phase.
    fn read_phases(&mut self, table: &DeTable<'_>, start: Range<usize>) -> Vec<PhaseSettings> {
        let mut top = Settings { head: start, ..Settings::default() };
        let inside = self.read_settings(table, Level::Top, &mut top);
        let Some(phases) = inside.phases else {
            return vec![self.read_phase(top, inside)];
        };
        if let Some(streams) = inside.streams {
            self.diagnostics.push(Diagnostic::new(
                streams.span(),
                "streams and phases are on the same level; type [[phase.stream]] below the [[phase]] of each stream",
            ));
        }
        let mut phase_settings = Vec::new();
        for phase in self.tables(phases, PHASE, MAX_PHASES) {
            let Some(table) = phase.get_ref().as_table() else { continue };
            let mut settings = Settings { head: phase.span(), ..top.clone() };
            let inside = self.read_settings(table, Level::Phase, &mut settings);
            phase_settings.push(self.read_phase(settings, inside));
            if self.stream_count > MAX_JOB_STREAMS {
                break;
            }
        }
        phase_settings
    }

    /// Reads the streams of a phase. A phase without `stream` tables is itself the only stream.
    fn read_phase(&mut self, settings: Settings, inside: NestedTables<'_>) -> PhaseSettings {
        let Some(streams) = inside.streams else {
            self.check_is_defined(&settings);
            self.stream_count += 1;
            return PhaseSettings { streams: vec![settings.clone()], settings };
        };
        let mut of_streams = Vec::new();
        for stream in self.tables(streams, STREAM, MAX_STREAMS) {
            let Some(table) = stream.get_ref().as_table() else { continue };
            self.stream_count += 1;
            if self.stream_count > MAX_JOB_STREAMS {
                let message =
                    format!("there are too many streams; type {MAX_JOB_STREAMS} at most in one file");
                self.diagnostics.push(Diagnostic::new(stream.span(), message));
                break;
            }
            let mut inner = Settings { head: stream.span(), ..settings.clone() };
            self.read_settings(table, Level::Stream, &mut inner);
            self.check_is_defined(&inner);
            of_streams.push(inner);
        }
        PhaseSettings { settings, streams: of_streams }
    }

    /// Reports a stream without settings other than `target`: a mistake, not a request for defaults.
    fn check_is_defined(&mut self, settings: &Settings) {
        let is_of_stream = |key: &Key| matches!(key.set, Set::Stream(_) | Set::List(_)) && key.name != TARGET;
        let has_key = KEYS.iter().any(|key| is_of_stream(key) && settings.spans.contains_key(key.name));
        let is_defined = has_key || settings.spans.contains_key(TURN);
        if !is_defined && self.diagnostics.is_empty() {
            self.diagnostics.push(Diagnostic::new(
                settings.head.clone(),
                "no stream is defined here; type at least rw = \"randread\"",
            ));
        }
    }

    /// The elements of an array, or a single value. Reports an empty array.
    fn elements<'t>(&mut self, value: &'t Spanned<DeValue<'t>>, name: &str) -> Vec<&'t Spanned<DeValue<'t>>> {
        let DeValue::Array(list) = value.get_ref() else { return vec![value] };
        if list.is_empty() {
            let message = format!("there is no {name}; type at least one, or leave the key out");
            self.diagnostics.push(Diagnostic::new(value.span(), message));
        }
        list.iter().collect()
    }

    /// The tables of an array, or a single table. Reports any other value, and an array that is
    /// empty or too long; the result is then empty.
    fn tables<'t>(
        &mut self,
        value: &'t Spanned<DeValue<'t>>,
        name: &str,
        most: usize,
    ) -> Vec<&'t Spanned<DeValue<'t>>> {
        let list = self.elements(value, name);
        let fault = list.iter().find(|v| !v.get_ref().is_table());
        let (span, message) = match fault {
            _ if list.len() > most => {
                let span = list.get(most).map_or(value.span(), |v| v.span());
                (span, format!("there are too many `{name}` tables; type {most} at most"))
            }
            Some(other) => {
                let is = kind(other.get_ref());
                (
                    other.span(),
                    format!("`{name}` must be a table, but is {is}; type [[{name}]] and its keys below"),
                )
            }
            None => return list,
        };
        self.diagnostics.push(Diagnostic::new(span, message));
        Vec::new()
    }

    /// Reads the settings of one table into `settings`, which already has those of the outer
    /// levels. Returns the `phase` and `stream` tables in it.
    fn read_settings<'t>(
        &mut self,
        table: &'t DeTable<'t>,
        level: Level,
        settings: &mut Settings,
    ) -> NestedTables<'t> {
        let mut inside = NestedTables::default();
        for (name, value) in table {
            let outcome = match (name.get_ref().as_ref(), level) {
                (PHASE, Level::Top) => {
                    inside.phases = Some(value);
                    continue;
                }
                (STREAM, Level::Top | Level::Phase) => {
                    inside.streams = Some(value);
                    continue;
                }
                (AT, Level::Phase) => {
                    settings.spans.insert(AT, value.span());
                    moment(value.get_ref()).map(|at| settings.at = Some(at))
                }
                (NAME, Level::Stream) => parse_text(NAME, "must be text", value.get_ref(), values::name)
                    .map(|name| settings.stream.name = Some(name)),
                (TURN, Level::Top | Level::Phase | Level::Stream) => {
                    settings.spans.insert(TURN, value.span());
                    self.turns(value, &mut settings.stream);
                    continue;
                }
                (OPS, Level::Turn) => {
                    settings.spans.insert(OPS, value.span());
                    parse_text(OPS, "must be text or a number", value.get_ref(), values::every)
                        .map(|length| settings.length = Some(length))
                }
                (LINE, Level::Top | Level::Phase | Level::Stream) => {
                    settings.spans.insert(LINE, value.span());
                    self.lines(value, &mut settings.stream);
                    continue;
                }
                (word, level) => {
                    if let Some(key) = keys::find(word).filter(|key| belongs(key, level)) {
                        settings.spans.insert(key.name, value.span());
                        self.read_setting(key, value, settings);
                    } else {
                        self.diagnostics
                            .push(Diagnostic::new(name.span(), unknown(word, value.get_ref(), level)));
                    }
                    continue;
                }
            };
            if let Err(why) = outcome {
                self.diagnostics.push(Diagnostic::new(value.span(), why));
            }
        }
        if level != Level::Top && settings.stream.read_back.is_some() {
            self.refuse_settings_of_read_back(table);
        }
        inside
    }

    /// Refuses settings in a table with `read-back`, because the stream has the settings of the
    /// stream that it reads back. Settings of outer levels are allowed: they also apply to other
    /// streams.
    fn refuse_settings_of_read_back(&mut self, table: &DeTable<'_>) {
        for (name, _) in table {
            let word = name.get_ref().as_ref();
            let is_of_stream = keys::find(word)
                .filter(|key| !READ_BACK.contains(&key.name))
                .is_some_and(|key| matches!(key.set, Set::Stream(_) | Set::List(_)));
            if is_of_stream || word == LINE || word == TURN {
                let message = format!(
                    "a stream with `read-back` has the settings of the stream that it reads back, so `{word}` has no effect; remove `{word}`, or set it for the other stream"
                );
                self.diagnostics.push(Diagnostic::new(name.span(), message));
            }
        }
    }

    fn read_setting(&mut self, key: &Key, value: &Spanned<DeValue<'_>>, settings: &mut Settings) {
        let (name, span) = (key.name, value.span());
        if matches!(key.set, Set::List(_)) {
            key.reset(&mut settings.stream);
            return self.list(key, value.get_ref(), span, &mut settings.stream);
        }
        let mut apply = |text: &str| match key.set {
            Set::Job(set) => set(&mut self.job, text),
            Set::Phase(set) => set(&mut settings.phase, text),
            _ => key.parse_into(&mut settings.stream, text),
        };
        let outcome = match value.get_ref() {
            DeValue::Boolean(on) if key.is_switch() => {
                apply(&on.to_string()).map_err(|why| format!("`{name}`: {why}"))
            }
            other if key.is_switch() => {
                Err(format!("`{name}` must be true or false, but is {}; type {name} = true", kind(other)))
            }
            value => parse_text(name, "must be text or a number", value, apply),
        };
        if let Err(why) = outcome {
            self.diagnostics.push(Diagnostic::new(span, why));
        }
    }

    fn list(&mut self, key: &Key, value: &DeValue<'_>, span: Range<usize>, stream: &mut StreamSpec) {
        let name = key.name;
        let mut one = |value: &DeValue<'_>, span: Range<usize>| {
            let added = parse_text(name, "must be text", value, |text| key.parse_into(stream, text));
            added.map_err(|why| Diagnostic::new(span, why)).err()
        };
        match value {
            DeValue::Array(list) if list.is_empty() => {
                let message = format!("`{name}` is empty; type at least one value, or leave the key out");
                self.diagnostics.push(Diagnostic::new(span, message));
            }
            // Only the first wrong value is reported, and an overlong list is not read to its end.
            DeValue::Array(list) => {
                let fault = list.iter().find_map(|value| one(value.get_ref(), value.span()));
                self.diagnostics.extend(fault);
            }
            value => self.diagnostics.extend(one(value, span)),
        }
    }

    /// Reads the turns of a stream. Each turn has only the settings of its own table.
    fn turns(&mut self, value: &Spanned<DeValue<'_>>, stream: &mut StreamSpec) {
        stream.turns.clear();
        for one in self.tables(value, TURN, MAX_TURNS) {
            let Some(table) = one.get_ref().as_table() else { continue };
            let mut settings = Settings { head: one.span(), ..Settings::default() };
            let before = self.diagnostics.len();
            self.read_settings(table, Level::Turn, &mut settings);
            let turn = TurnSpec { operations: settings.length, settings: settings.stream.clone() };
            if self.diagnostics.len() == before {
                self.diagnostics.extend(turn.check().iter().map(|problem| point_in(&settings, problem)));
            }
            stream.turns.push(turn);
        }
    }

    /// Reads the lines of a stream. Each line is a table, or text in the form of `--line`.
    fn lines(&mut self, value: &Spanned<DeValue<'_>>, stream: &mut StreamSpec) {
        stream.resolved.access.lines.clear();
        for value in self.elements(value, LINE) {
            let line = match value.get_ref() {
                DeValue::Table(table) => self.line(table),
                DeValue::String(text) => Line::parse(text),
                other => Err(format!(
                    "`line` must be a table, but is {}; type line = [{{ bs = \"4k\", mix = 70 }}]",
                    kind(other)
                )),
            };
            if let Err(why) = line.and_then(|line| keys::add_line(stream, line)) {
                self.diagnostics.push(Diagnostic::new(value.span(), why));
                return;
            }
        }
    }

    fn line(&mut self, table: &DeTable<'_>) -> Result<Line, String> {
        let mut line = Line::with_iometer_defaults();
        let before = self.diagnostics.len();
        for (name, value) in table {
            let word = name.get_ref().as_ref();
            let Some(key) = LINE_KEYS.iter().find(|k| k.name == word) else {
                let known: Vec<&str> = LINE_KEYS.iter().map(|k| k.name).collect();
                let message = format!("a line has no {}; {}", show(word), offer(word, &known));
                self.diagnostics.push(Diagnostic::new(name.span(), message));
                continue;
            };
            let set = |text: &str| (key.set)(&mut line, text);
            if let Err(why) = parse_text(word, "must be text or a number", value.get_ref(), set) {
                self.diagnostics.push(Diagnostic::new(value.span(), why));
            }
        }
        // Report missing values only if the present values are valid.
        if self.diagnostics.len() > before { Ok(line) } else { line.finished() }
    }
}

/// Parses the text of a key's value. `expected` is a part of the message, such as `must be text`.
fn parse_text<T>(
    key: &str,
    expected: &str,
    value: &DeValue<'_>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    let text = text(value)
        .ok_or_else(|| format!("`{key}` {expected}, but is {}; type it in quotes", kind(value)))?;
    parse(&text).map_err(|why| format!("`{key}`: {why}"))
}

/// Whether a key is allowed in a table of that level.
fn belongs(key: &Key, level: Level) -> bool {
    match key.set {
        _ if level == Level::Turn => is_turn_key(key.name),
        Set::Job(_) => level == Level::Top,
        Set::Phase(_) => level != Level::Stream,
        _ => true,
    }
}

/// The message about a key that is not known at its level.
fn unknown(word: &str, value: &DeValue<'_>, level: Level) -> String {
    match (keys::find(word).map(|key| key.set), word) {
        (Some(Set::Job(_)), _) => {
            return format!(
                "`{word}` applies to the whole job; move it to the top of the file, before the first table"
            );
        }
        // Only tables of turns refuse settings of a stream.
        (Some(Set::Stream(_) | Set::List(_)), _) => {
            return format!("`{word}` applies to a whole stream; move it above the turns, or remove it");
        }
        (Some(_), _) => {
            return format!("`{word}` applies to a phase; move it above the phase's streams, or to the top");
        }
        (None, PHASE) => return "a phase cannot be inside another table; type [[phase]] for each".into(),
        (None, STREAM) => {
            return "a stream cannot be inside another; type [[phase.stream]] for each".into();
        }
        (None, TURN) => return "a turn cannot be inside another; type [[stream.turn]] for each".into(),
        (None, AT) => return "`at` applies to a phase; move it below [[phase]]".into(),
        (None, _) => {}
    }
    let typed = match value {
        DeValue::Boolean(on) => Cow::Borrowed(if *on { "1" } else { "0" }),
        value => text(value).unwrap_or_default(),
    };
    if let Some(meant) = keys::in_other_tools(word, &[&typed]).filter(|m| belongs(m.key, level)) {
        return format!("there is no key {}; type {}", show(word), format_as_toml(&meant));
    }
    let own = match level {
        Level::Top => [PHASE, STREAM, TURN].as_slice(),
        Level::Phase => &[STREAM, TURN, AT],
        Level::Stream => &[NAME, TURN],
        Level::Turn => &[OPS],
    };
    let known = KEYS.iter().filter(|key| belongs(key, level)).map(|key| key.name);
    let known: Vec<&str> = known.chain(own.iter().copied()).collect();
    format!("there is no key {}; {}", show(word), offer(word, &known))
}

/// Formats the setting that corresponds to another tool's option: `depth = 32`, or only the key if
/// fathom has no such value.
fn format_as_toml(meant: &Counterpart) -> String {
    let quoted = |value: &String| {
        let bare = value.bytes().all(|b| b.is_ascii_digit()) || meant.key.is_switch();
        // Rust's string escapes are valid in TOML for everything that can be typed.
        if bare { value.clone() } else { format!("{value:?}") }
    };
    let name = meant.key.name;
    match meant.values.as_slice() {
        [] => name.into(),
        [value] => format!("{name} = {}", quoted(value)),
        values => format!("{name} = [{}]", values.iter().map(quoted).collect::<Vec<_>>().join(", ")),
    }
}

/// The advice about an unknown key: the most similar known key, or all known keys.
fn offer(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied(), MIN_SIMILARITY) {
        Some(key) => format!("type {key}"),
        None => format!("the keys here are {}", known.join(", ")),
    }
}

/// Quotes a word of the file for a message, shortened to 40 characters.
fn show(word: &str) -> String {
    let short: String = word.chars().take(40).collect();
    format!("`{}`", short.escape_debug())
}

/// The settings of a table, including those of the outer levels.
#[derive(Clone, Default)]
struct Settings {
    phase: PhaseSpec,
    stream: StreamSpec,
    /// Byte ranges of the values by key.
    spans: BTreeMap<&'static str, Range<usize>>,
    /// Byte range of the table's heading.
    head: Range<usize>,
    /// Number of operations of a turn.
    length: Option<Every>,
    /// Start of the phase in ns after the start of the job.
    at: Option<u64>,
}

/// Sets the length of each phase without `time` from the `at` of the next phase. Returns the
/// contradictions.
fn set_phase_lengths(phases: &mut [&mut Settings]) -> Vec<Diagnostic> {
    if phases.iter().all(|p| p.at.is_none()) {
        return Vec::new();
    }
    for phase in &mut *phases {
        // The default warm-up would delay all later phases.
        phase.phase.warmup.get_or_insert(0);
    }
    let mut diagnostics = Vec::new();
    // Start of the phase at `index` in ns; `None` if an earlier phase has no known length.
    let mut begin = Some(0_u64);
    for index in 0..phases.len() {
        let next = phases.get(index + 1).and_then(|n| Some((n.at?, n.spans.get(AT)?.clone())));
        let Some(phase) = phases.get_mut(index) else { break };
        if let (0, Some(at)) = (index, phase.at)
            && at != 0
        {
            let span = phase.spans.get(AT).cloned().unwrap_or(phase.head.clone());
            diagnostics.push(Diagnostic::new(
                span,
                "the first phase begins with the job; type at = 0, or remove `at`",
            ));
        }
        let around = phase.phase.warmup.unwrap_or(0).saturating_add(phase.phase.cooldown.unwrap_or(0));
        let start = begin;
        begin = phase.phase.time.and_then(|time| start?.checked_add(time)?.checked_add(around));
        let Some((at, span)) = next else { continue };
        match (start, begin) {
            (_, Some(end)) if end > at => diagnostics.push(diagnostic_with_phase_before(
                span,
                phase,
                format!(
                    "phases overlap: the phase before ends at {}; type at = \"{}\", or a shorter time for the phase before",
                    show_ns(end as f64),
                    typed(end)
                ),
            )),
            (_, Some(end)) if end < at => diagnostics.push(diagnostic_with_phase_before(
                span,
                phase,
                format!(
                    "nothing would run from {} to {}; type at = \"{}\", or a longer time for the phase before",
                    show_ns(end as f64),
                    show_ns(at as f64),
                    typed(end)
                ),
            )),
            (_, Some(_)) => {}
            (Some(start), None) => match at.checked_sub(start).and_then(|whole| whole.checked_sub(around)) {
                Some(time) if (MIN_TIME_NS..=MAX_TIME_NS).contains(&time) => phase.phase.time = Some(time),
                _ => diagnostics.push(diagnostic_with_phase_before(
                    span,
                    phase,
                    format!(
                        "phases overlap or lie more than a day apart: the phase before begins at {}; type a later time, within a day",
                        show_ns(start as f64)
                    ),
                )),
            },
            (None, None) => diagnostics.push(diagnostic_with_phase_before(
                span,
                phase,
                "the start of the phase before is unknown; type `time` or `at` for every earlier phase".into(),
            )),
        }
        begin = Some(at);
    }
    diagnostics
}

fn diagnostic_with_phase_before(
    span: std::ops::Range<usize>,
    before: &Settings,
    message: String,
) -> Diagnostic {
    let place = before.spans.get("time").or_else(|| before.spans.get(AT)).unwrap_or(&before.head);
    Diagnostic { span, message, context: vec![(place.clone(), "the phase before")] }
}

/// A time as the user would type it, such as `10s`.
fn typed(ns: u64) -> String {
    match ns {
        ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns => format!("{ns}ns"),
    }
}

/// The text of a string or a number; `None` for anything else.
fn text<'v>(value: &'v DeValue<'_>) -> Option<Cow<'v, str>> {
    match value {
        DeValue::String(text) => Some(Cow::Borrowed(text)),
        DeValue::Float(number) => Some(Cow::Borrowed(number.as_str())),
        DeValue::Integer(number) if number.radix() == 10 => Some(Cow::Borrowed(number.as_str())),
        // A number above 64 bits keeps its prefix, so that every number parser refuses it.
        DeValue::Integer(number) => Some(match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(value) => Cow::Owned(value.to_string()),
            Err(_) => Cow::Owned(number.to_string()),
        }),
        _ => None,
    }
}

/// The type of a value, for messages.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Parses the value of `at`. Returns ns since the start of the job.
fn moment(value: &DeValue<'_>) -> Result<u64, String> {
    let time = text(value)
        .ok_or_else(|| format!("`at` must be a time, but is {}; type at = \"10s\"", kind(value)))?;
    parse_duration_ns(&time)
        .map_err(|_| "`at` is not a time; type the time since the start of the job, such as \"10s\"".into())
}

/// A caller's check that accepts every job.
#[cfg(test)]
fn nothing(_: &JobSpec) -> Vec<Problem> {
    Vec::new()
}

#[cfg(test)]
fn read(text: &str) -> JobSpec {
    parse("job.toml", text, nothing).unwrap_or_else(|e| panic!("{e}"))
}

/// Asserts that a text is refused at this line and column with all these words.
#[cfg(test)]
#[track_caller]
fn refused(text: &str, place: &str, words: &[&str]) {
    let parsed = parse("job.toml", text, nothing);
    let trouble = parsed.map_or_else(|e| e.to_string(), |job| panic!("{text:?} is {job:?}"));
    assert!(trouble.contains(&format!("--> job.toml:{place}\n")), "not at {place}:\n{trouble}");
    for word in words {
        assert!(trouble.contains(word), "no {word:?} in:\n{trouble}");
    }
}

#[test]
fn three_lines_are_a_job() {
    let job = read("rw = \"randrw\"\nmix = 70\nbs = \"8k\"\n");
    assert_eq!((job.phases.len(), job.phases[0].streams.len()), (1, 1));
    let stream = &job.phases[0].streams[0];
    assert_eq!(stream.mix, Some(model::job::Mix::from_percents(70, 0)));
    assert_eq!(stream.bs.as_ref().map(|b| b.write.least()), Some(8192));
}

#[test]
fn outer_settings_hold_inside_unless_overridden() {
    let job = read(
        r#"
        name = "two by two"
        runs = 3
        seed = 0x10
        depth = 8
        time = "2s"
        cpus = [0, "2-3"]
        [[phase]]
        bs = "4k"
        [[phase.stream]]
        name = "reader"
        target = "a"
        [[phase.stream]]
        rw = "write"
        depth = 2
        [[phase]]
        time = 1.5
        warmup = "100ms"
        rw = "randrw"
        "#,
    );
    assert_eq!((job.name.as_deref(), job.runs, job.seed), (Some("two by two"), Some(3), Some(16)));
    let depths: Vec<_> = job.phases.iter().flat_map(|p| &p.streams).map(|s| s.depth).collect();
    assert_eq!(depths, [Some(8), Some(2), Some(8)]);
    assert_eq!(job.phases[0].streams[0].name.as_deref(), Some("reader"));
    assert_eq!(job.phases[0].streams[1].target, Vec::<String>::new());
    assert_eq!(job.phases[0].streams[1].resolved.place.cpus, vec![0, 2, 3]);
    let times: Vec<_> = job.phases.iter().map(|p| (p.time, p.warmup)).collect();
    assert_eq!(times, [(Some(2_000_000_000), None), (Some(1_500_000_000), Some(100_000_000))]);
}

#[test]
fn turns_have_their_own_keys_and_length() {
    use model::job::Every;
    use model::spec::Rw;
    let job = read(
        r#"
        depth = 64
        [[turn]]
        ops = 61.5
        rw = "write"
        bs = "16k"
        size = "4m"
        think = "lognormal:300us/1ms"
        fdatasync = 1
        drain = true
        [[turn]]
        ops = 480
        rw = "randwrite"
        offset = "4m"
        burst = 480
        think = "2ms"
        "#,
    );
    let stream = &job.phases[0].streams[0];
    let turns: Vec<_> =
        stream.turns.iter().map(|t| (t.operations.map(Every::format_count), t.settings.rw)).collect();
    assert_eq!(turns, [(Some("61.5".into()), Some(Rw::Write)), (Some("480".into()), Some(Rw::Randwrite))]);
    assert_eq!((stream.depth, stream.rw, stream.turns[1].settings.depth), (Some(64), None, None));
}

#[test]
fn lines_are_tables_or_text() {
    let words = read("line = [\"share=60,bs=4k\", \"share=40,bs=8k,mix=0\"]");
    let inline = read("line = [{ share = 60, bs = \"4k\" }, { share = 40, bs = \"8k\", mix = 0 }]");
    let tables = read("[[line]]\nshare = 60\nbs = \"4k\"\n[[line]]\nshare = 40\nbs = \"8k\"\nmix = 0\n");
    assert_eq!((&words, &tables), (&inline, &inline));
    assert_eq!(words.phases[0].streams[0].resolved.access.lines.len(), 2);
}

#[test]
fn a_read_back_stream_has_no_other_settings() {
    let head = "bs = \"8k\"\n[[phase]]\nrw = \"write\"\nverify = \"stamps\"\n[[phase]]\ntime = 1\n";
    let job =
        read(&format!("{head}[[phase.stream]]\nname = \"back\"\nread-back = 1\nop-log-interval = \"1s\"\n"));
    assert_eq!(job.phases[1].streams[0].read_back, Some(1), "settings of outer levels are allowed");
    let turn = "turn = [{ ops = 1, rw = \"read\" }, { ops = 1 }]";
    for key in ["depth = 4", "rw = \"read\"", "target = \"x\"", "line = [\"share=100,bs=4k\"]", turn] {
        let text = format!("{head}[[phase.stream]]\n{key}\nread-back = 1\n");
        refused(&text, "8:1", &["a stream with `read-back` has the settings", "set it for the other stream"]);
    }
    refused(&format!("{head}read-back = 1\n[[phase.stream]]\ndepth = 4\n"), "9:1", &["`depth`"]);
    refused(&format!("{head}depth = 4\nread-back = 1\n"), "7:1", &["`depth`"]);
}

#[test]
fn phases_may_have_a_start_time() {
    let job = read(
        "rw = \"read\"\n[[phase]]\n[[phase]]\nat = \"10s\"\ncooldown = 2\n[[phase]]\nat = 30\ntime = \"5s\"\n",
    );
    let times: Vec<_> = job.phases.iter().map(|p| (p.warmup, p.time)).collect();
    let second = 1_000_000_000;
    assert_eq!(
        times,
        [(Some(0), Some(10 * second)), (Some(0), Some(18 * second)), (Some(0), Some(5 * second))]
    );
    let head = "rw = \"read\"\n[[phase]]\ntime = \"10s\"\n[[phase]]\n";
    refused(&format!("{head}at = \"9s\"\n"), "5:6", &["overlap", "10s", "the phase before"]);
    refused(&format!("{head}at = \"11s\"\n"), "5:6", &["nothing would run", "at = \"10s\""]);
    refused(&format!("{head}at = \"10s\"\n[[phase]]\nat = \"10s\"\n"), "7:6", &["overlap", "later time"]);
    refused("rw = \"read\"\n[[phase]]\nat = 1\n", "3:6", &["first phase", "at = 0"]);
    refused("rw = \"read\"\n[[phase]]\n[[phase]]\n[[phase]]\nat = 1\n", "5:6", &["`time` or `at`"]);
}

#[test]
fn every_error_has_its_place_and_a_suggestion() {
    let rw = "rw = \"randread\"\n";
    for (text, place, words) in [
        ("", "1:1", ["defines no workload", "rw = \"randread\""].as_slice()),
        ("# only a comment\n", "1:1", &["defines no workload"]),
        ("seed = 1\n", "1:1", &["no stream is defined"]),
        ("[[phase]]\n", "1:1", &["no stream is defined"]),
        ("phase = []\n", "1:9", &["no phase"]),
        ("phase = 3\n", "1:9", &["[[phase]]", "a number"]),
        ("stream = [1]\n", "1:11", &["[[stream]]"]),
        ("[[phase]]\nphase = 1\n", "2:1", &["inside another"]),
        ("bs = 4k\n", "1:6", &["quotes"]),
        ("bs = \"4q\"\n", "1:6", &["'4q'", "such as 4k"]),
        ("depth = 20000\n", "1:9", &["too large", "1 to 16384"]),
        ("depth = 99999999999999999999999999\n", "1:9", &["too large"]),
        ("depth = 0xfffffffffffffffffffff\n", "1:9", &["not a whole number"]),
        ("depth = [1]\n", "1:9", &["a list", "quotes"]),
        ("depth = true\n", "1:9", &["true or false"]),
        ("dept = 3\n", "1:1", &["`dept`", "type depth"]),
        ("limit_iops = 3\n", "1:1", &["type limit-iops"]),
        ("iodepth = 32\n", "1:1", &["`iodepth`", "type depth = 32"]),
        ("runtime = 60\n", "1:1", &["type time = \"60s\""]),
        ("direct = false\n", "1:1", &["type cache = \"buffered\""]),
        ("zero_buffers = 1\n", "1:1", &["type zeros = true"]),
        ("filename = \"/dev/a:b\"\n", "1:1", &["type target = [\"/dev/a\", \"b\"]"]),
        ("ioengine = \"rados\"\n", "1:1", &["type engine"]),
        ("[[phase]]\nloops = 3\n", "2:1", &["no key `loops`"]),
        ("xyzzy = 3\n", "1:1", &["the keys here are rw, mix"]),
        ("depth = 3\ndepth = 4\n", "2:1", &["duplicate", "type it once"]),
        ("backwards = 1\n", "1:13", &["backwards = true"]),
        ("time = 1979-05-27\n", "1:8", &["a date"]),
        ("bs = \"4k:60,64k:30\"\n", "1:6", &["sum to 90"]),
        ("target = []\n", "1:10", &["empty"]),
        ("target = [\"a\", 1979-05-27]\n", "1:16", &["a date"]),
        ("line = [{ bs = \"4k\", depht = 3 }]\n", "1:22", &["a line has no `depht`"]),
        ("line = [{ share = 100 }]\n", "1:9", &["type bs"]),
        ("line = [{ share = 60, bs = \"4k\" }]\n", "1:8", &["sum to 60"]),
        ("rw = \"read\"\nmix = 70\n", "2:7", &["`rw = \"randrw\"`", "and this"]),
        ("rw = \"re\u{0}ad\"\n", "1:9", &["type printable characters"]),
        ("[[phase]]\nruns = 3\n", "2:1", &["whole job", "top of the file"]),
        ("[[phase]]\n[[phase.stream]]\ntime = 3\n", "3:1", &["applies to a phase"]),
        ("at = 3\n", "1:1", &["below [[phase]]"]),
        ("[[turn]]\nrw = \"read\"\n[[turn]]\nops = 8\n", "1:1", &["length", "type `ops`"]),
        ("[[turn]]\nops = 0.5\n[[turn]]\nops = 8\n", "2:7", &["less than one"]),
        ("[[turn]]\nops = 8\ndepth = 3\n", "3:1", &["applies to a whole stream"]),
        ("[[turn]]\nops = 8\ntime = 3\n", "3:1", &["applies to a phase"]),
        ("[[turn]]\nops = 8\nrandm = 3\n", "3:1", &["type random"]),
        ("[[turn]]\nops = 8\n[[turn.turn]]\nops = 8\n", "3:8", &["inside another"]),
        ("[[turn]]\nops = 8\nfsync = 1\n[[turn]]\nops = 8\n", "3:9", &["writes nothing"]),
        ("[[turn]]\nops = 8\n", "1:1", &["given once"]),
        ("bs = \"4k\"\n[[turn]]\nops = 8\n[[turn]]\nops = 9\n", "1:6", &["set it in the turns"]),
    ] {
        refused(text, place, words);
    }
    refused(&format!("{rw}a = {}\n", "[".repeat(10_000)), "2:85", &[]);
    let many = format!("{rw}{}", "[[phase]]\n".repeat(1001));
    refused(&many, "1002:1", &["1000 at most"]);
    let large = format!("#{}", "x".repeat(crate::MAX_FILE_BYTES));
    refused(&large, "1:1", &["1048577 bytes", "1048576 at most"]);
}

#[test]
fn all_errors_are_reported_once() {
    let text = "fsync = 1\ndepth = 0\nbs = \"x\"\n";
    let trouble = parse("job.toml", text, nothing).map_or_else(|e| e.to_string(), |_| String::new());
    assert_eq!(trouble.matches("--> job.toml").count(), 2, "{trouble}");
    let text = format!("fsync = 1\n[[phase]]\n{}", "[[phase.stream]]\nrw = \"read\"\n".repeat(50));
    let trouble = parse("job.toml", &text, nothing).map_or_else(|e| e.to_string(), |_| String::new());
    assert!(trouble.contains("for this stream") && !trouble.contains(" more in "), "{trouble}");
}

#[test]
fn a_terminal_gets_colours_and_no_control_characters_of_the_file() {
    let trouble = parse("a\u{1b}b.toml", "bs = \"\u{7f}\u{202e}\"\nrw = \"\\u001b[2J\"\n", nothing);
    let trouble = trouble.map_or_else(|e| e, |job| panic!("{job:?}"));
    assert!(trouble.coloured().contains("\u{1b}[1m"));
    let plain = trouble.to_string();
    assert!(!plain.contains(['\u{1b}', '\u{202e}', '\u{7f}']), "{plain:?}");
}

#[test]
fn objections_of_the_caller_have_a_place() {
    let no_engine = |job: &JobSpec| {
        let has_engine = |s: &model::spec::StreamSpec| s.engine.is_some();
        let found = job.phases.iter().position(|p| p.streams.iter().any(has_engine));
        let problem =
            |phase| Problem { keys: vec!["engine"], phase, stream: 0, message: "{engine x}: no".into() };
        found.map(problem).into_iter().collect()
    };
    let text = "rw = \"read\"\n[[phase]]\ntime = \"1s\"\n[[phase]]\nengine = \"x\"\n";
    let trouble = parse("job.toml", text, no_engine).map_or_else(|e| e.to_string(), |_| String::new());
    assert!(trouble.contains("--> job.toml:5:10\n") && trouble.contains("`engine = \"x\"`"), "{trouble}");
}

#[test]
fn every_name_of_fio_is_translated_to_a_valid_key() {
    use model::spec::foreign::Tool;
    for key in model::spec::keys::KEYS {
        for foreign in key.elsewhere.iter().filter(|f| f.tool == Tool::Fio) {
            let text = format!("{} = \"{}\"\n", foreign.name, foreign.example);
            let trouble =
                parse("job.toml", &text, nothing).map_or_else(|e| e.to_string(), |job| panic!("{job:?}"));
            let (_, advice) = trouble.split_once("^ type ").unwrap_or_else(|| panic!("{text}: {trouble}"));
            let advice = advice.lines().next().unwrap_or_default();
            assert!(advice.starts_with(&format!("{} = ", key.name)), "{text}: {advice}");
            let translated = parse("job.toml", &format!("{advice}\n"), nothing);
            // A single setting may contradict a default, but it must be known.
            let unknown = translated
                .err()
                .map(|e| e.to_string())
                .filter(|e| e.contains("no key") || e.contains("is not known"));
            assert_eq!(unknown, None, "{advice}");
        }
    }
}
