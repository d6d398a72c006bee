//! From the tables of a job file to a spec, keeping where everything was said.
//!
//! For: levels, inheritance, unknown keys and wrong types. Not for: values (crate `model`) nor times (`timeline`).

use super::level::Level;
use super::value::{kind, moment, text};
use super::{AT, PHASE, STREAM, timeline};
use crate::nearest::nearest;
use crate::trouble::Mark;
use model::job::Every;
use model::spec::counterpart::{self, Counterpart};
use model::spec::keys::{self, KEYS, Key, LINE, NAME, OPS, Set, TARGET, TURN};
use model::spec::limits::{MAX_JOB_STREAMS, MAX_PHASES, MAX_STREAMS, MAX_TURNS};
use model::spec::line::LINE_KEYS;
use model::spec::turn::TURN_KEYS;
use model::spec::{JobSpec, LineSpec, Problem, StreamSpec, TurnSpec, parsers};
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Likeness (Damerau-Levenshtein, 0 to 1) from which a known key is offered for an unknown one.
const LIKENESS: f64 = 0.4;

/// Keys that hold for a stream that reads back.
const READ_BACK: [&str; 2] = ["read-back", "op-log-interval"];

/// Which level a table is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    Top,
    Phase,
    Stream,
    Turn,
}

/// Values that are levels inside.
#[derive(Clone, Copy, Default)]
struct Inside<'t> {
    phases: Option<&'t Spanned<DeValue<'t>>>,
    streams: Option<&'t Spanned<DeValue<'t>>>,
}

/// A phase with the levels of its streams.
struct Part {
    level: Level,
    streams: Vec<Level>,
}

#[derive(Default)]
struct Reader {
    job: JobSpec,
    marks: Vec<Mark>,
    streams: usize,
}

/// The job, or all that is wrong with it.
pub(super) fn read_tables(
    table: &DeTable<'_>,
    file: &str,
    also: impl Fn(&JobSpec) -> Vec<Problem>,
) -> Result<JobSpec, Vec<Mark>> {
    let start = 0..file.find('\n').unwrap_or(file.len());
    if table.is_empty() {
        return Err(vec![Mark::new(start, "the file defines no workload; type at least rw = \"randread\"")]);
    }
    let mut reader = Reader::default();
    let parts = reader.parts(table, start);
    if !reader.marks.is_empty() {
        return Err(reader.marks);
    }
    let mut levels: Vec<Level> = Vec::new();
    let mut streams: Vec<Vec<Level>> = Vec::new();
    for part in parts {
        levels.push(part.level);
        streams.push(part.streams);
    }
    let mut marks = timeline::settle(&mut levels);
    for (level, streams) in levels.iter().zip(&streams) {
        let mut phase = level.phase.clone();
        phase.streams = streams.iter().map(|s| s.stream.clone()).collect();
        reader.job.phases.push(phase);
    }
    let problems = reader.job.check().into_iter().chain(also(&reader.job));
    marks.extend(problems.map(|problem| point(&problem, &streams)));
    if marks.is_empty() { Ok(reader.job) } else { Err(marks) }
}

/// Where a problem was said.
fn point(problem: &Problem, streams: &[Vec<Level>]) -> Mark {
    let Some(level) = streams.get(problem.phase).and_then(|s| s.get(problem.stream)) else {
        return Mark::new(0..0, problem.in_toml());
    };
    let mut mark = point_in(level, problem);
    let inherited = mark.span.start < level.head.start;
    if inherited {
        mark.beside.push((level.head.clone(), "for this stream"));
    }
    mark
}

/// Where in this level a problem was said: at the first of its keys that stands there, else at the head.
fn point_in(level: &Level, problem: &Problem) -> Mark {
    let mut places = problem.keys.iter().filter_map(|key| level.spans.get(key)).cloned();
    let mut mark = Mark::new(places.next().unwrap_or(level.head.clone()), problem.in_toml());
    mark.beside = places.map(|place| (place, "and this")).collect();
    mark
}

impl Reader {
    fn parts(&mut self, table: &DeTable<'_>, start: Range<usize>) -> Vec<Part> {
        let mut top = Level { head: start, ..Level::default() };
        let inside = self.settings(table, Rank::Top, &mut top);
        let Some(phases) = inside.phases else {
            return vec![self.part(top, inside)];
        };
        if let Some(streams) = inside.streams {
            self.marks.push(Mark::new(
                streams.span(),
                "streams stand beside phases here; type [[phase.stream]] behind the [[phase]] they belong to",
            ));
        }
        let mut parts = Vec::new();
        for phase in self.tables(phases, PHASE, MAX_PHASES) {
            let Some(table) = phase.get_ref().as_table() else { continue };
            let mut level = Level { head: phase.span(), ..top.clone() };
            let inside = self.settings(table, Rank::Phase, &mut level);
            parts.push(self.part(level, inside));
            if self.streams > MAX_JOB_STREAMS {
                break;
            }
        }
        parts
    }

    fn part(&mut self, level: Level, inside: Inside<'_>) -> Part {
        let Some(streams) = inside.streams else {
            self.stream_is_said(&level);
            self.streams += 1;
            return Part { streams: vec![level.clone()], level };
        };
        let mut levels = Vec::new();
        for stream in self.tables(streams, STREAM, MAX_STREAMS) {
            let Some(table) = stream.get_ref().as_table() else { continue };
            self.streams += 1;
            if self.streams > MAX_JOB_STREAMS {
                let message =
                    format!("there are too many streams; type {MAX_JOB_STREAMS} at most in one file");
                self.marks.push(Mark::new(stream.span(), message));
                break;
            }
            let mut inner = Level { head: stream.span(), ..level.clone() };
            self.settings(table, Rank::Stream, &mut inner);
            self.stream_is_said(&inner);
            levels.push(inner);
        }
        Part { level, streams: levels }
    }

    /// A stream of which nothing is said is a slip, not a request for defaults alone.
    fn stream_is_said(&mut self, level: &Level) {
        let about_it = |key: &Key| {
            !matches!(key.set, Set::Job(_) | Set::JobSwitch(_) | Set::Phase(_)) && key.name != TARGET
        };
        let said = KEYS.iter().any(|key| about_it(key) && level.spans.contains_key(key.name));
        let said = said || level.spans.contains_key(TURN);
        if !said && self.marks.is_empty() {
            self.marks.push(Mark::new(
                level.head.clone(),
                "no stream is defined here; type at least rw = \"randread\"",
            ));
        }
    }

    /// The tables of a list, or of a single one.
    fn tables<'t>(
        &mut self,
        value: &'t Spanned<DeValue<'t>>,
        name: &str,
        most: usize,
    ) -> Vec<&'t Spanned<DeValue<'t>>> {
        let list: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
            DeValue::Array(list) => list.iter().take(most + 1).collect(),
            _ => vec![value],
        };
        let fault = list.iter().find(|v| !v.get_ref().is_table());
        let (span, message) = match fault {
            _ if list.is_empty() => {
                (value.span(), format!("there is no {name}; type at least one, or leave the key out"))
            }
            _ if list.len() > most => {
                let span = list.get(most).map_or(value.span(), |v| v.span());
                (span, format!("there are too many of `{name}`; type {most} at most"))
            }
            Some(other) => {
                let is = kind(other.get_ref());
                (other.span(), format!("`{name}` is a table, not {is}; type [[{name}]] and its keys below"))
            }
            None => return list,
        };
        self.marks.push(Mark::new(span, message));
        Vec::new()
    }

    /// Reads the settings of one table into its level.
    fn settings<'t>(&mut self, table: &'t DeTable<'t>, rank: Rank, level: &mut Level) -> Inside<'t> {
        let mut inside = Inside::default();
        for (name, value) in table {
            let said = match (name.get_ref().as_ref(), rank) {
                (PHASE, Rank::Top) => {
                    inside.phases = Some(value);
                    continue;
                }
                (STREAM, Rank::Top | Rank::Phase) => {
                    inside.streams = Some(value);
                    continue;
                }
                (AT, Rank::Phase) => {
                    level.spans.insert(AT, value.span());
                    moment(value.get_ref()).map(|at| level.at = Some(at))
                }
                (NAME, Rank::Stream) => stream_name(value.get_ref(), level),
                (TURN, Rank::Top | Rank::Phase | Rank::Stream) => {
                    level.spans.insert(TURN, value.span());
                    self.turns(value, &mut level.stream);
                    continue;
                }
                (OPS, Rank::Turn) => {
                    level.spans.insert(OPS, value.span());
                    turn_length(value.get_ref()).map(|length| level.length = Some(length))
                }
                (LINE, Rank::Top | Rank::Phase | Rank::Stream) => {
                    level.spans.insert(LINE, value.span());
                    self.lines(value, &mut level.stream);
                    continue;
                }
                (word, rank) => {
                    if let Some(key) = keys::find(word).filter(|key| belongs(key, rank)) {
                        level.spans.insert(key.name, value.span());
                        self.setting(key, value, level);
                    } else {
                        self.marks.push(Mark::new(name.span(), unknown(word, value.get_ref(), rank)));
                    }
                    continue;
                }
            };
            if let Err(why) = said {
                self.marks.push(Mark::new(value.span(), why));
            }
        }
        if rank != Rank::Top && level.stream.read_back.is_some() {
            self.reads_back_alone(table);
        }
        inside
    }

    /// Refuses what is said of a stream that has all from the one whose blocks it reads. What stands further out is said of others too.
    fn reads_back_alone(&mut self, table: &DeTable<'_>) {
        for (name, _) in table {
            let word = name.get_ref().as_ref();
            let of_it = keys::find(word)
                .filter(|key| !READ_BACK.contains(&key.name))
                .is_some_and(|key| matches!(key.set, Set::Stream(_) | Set::Switch(_) | Set::List { .. }));
            if of_it || word == LINE {
                let message = format!(
                    "`{word}` changes nothing of a stream with `read-back`, which reads as the other one wrote; leave it out, or say it of that one"
                );
                self.marks.push(Mark::new(name.span(), message));
            }
        }
    }

    fn setting(&mut self, key: &Key, value: &Spanned<DeValue<'_>>, level: &mut Level) {
        let (name, span) = (key.name, value.span());
        let outcome = match (key.set, value.get_ref()) {
            (Set::Switch(set), DeValue::Boolean(on)) => {
                set(&mut level.stream, *on);
                Ok(())
            }
            (Set::JobSwitch(set), DeValue::Boolean(on)) => {
                set(&mut self.job, *on);
                Ok(())
            }
            (Set::Switch(_) | Set::JobSwitch(_), other) => {
                Err(format!("`{name}` is true or false, not {}; type {name} = true", kind(other)))
            }
            (Set::List { clear, add }, value) => {
                clear(&mut level.stream);
                return self.list(key, add, value, span, &mut level.stream);
            }
            (set, value) => match text(value) {
                None => Err(format!("`{name}` is text or a number, not {}; type it in quotes", kind(value))),
                Some(text) => match set {
                    Set::Job(set) => set(&mut self.job, &text),
                    Set::Phase(set) => set(&mut level.phase, &text),
                    Set::Stream(set) => set(&mut level.stream, &text),
                    Set::Switch(_) | Set::JobSwitch(_) | Set::List { .. } => Ok(()),
                }
                .map_err(|why| format!("`{name}`: {why}")),
            },
        };
        if let Err(why) = outcome {
            self.marks.push(Mark::new(span, why));
        }
    }

    fn list(
        &mut self,
        key: &Key,
        add: fn(&mut StreamSpec, &str) -> Result<(), String>,
        value: &DeValue<'_>,
        span: Range<usize>,
        stream: &mut StreamSpec,
    ) {
        let name = key.name;
        let mut one = |value: &DeValue<'_>, span: Range<usize>| {
            let said = text(value)
                .ok_or_else(|| format!("`{name}` takes text, not {}; type it in quotes", kind(value)))
                .and_then(|text| add(stream, &text).map_err(|why| format!("`{name}`: {why}")));
            said.map_err(|why| Mark::new(span, why)).err()
        };
        match value {
            DeValue::Array(list) if list.is_empty() => {
                let message = format!("`{name}` is empty; type at least one value, or leave the key out");
                self.marks.push(Mark::new(span, message));
            }
            // The first wrong value says enough, and a list far too long is not read to its end.
            DeValue::Array(list) => {
                let fault = list.iter().find_map(|value| one(value.get_ref(), value.span()));
                self.marks.extend(fault);
            }
            value => self.marks.extend(one(value, span)),
        }
    }

    /// Turns: what is said of each stands in its table alone.
    fn turns(&mut self, value: &Spanned<DeValue<'_>>, stream: &mut StreamSpec) {
        stream.turns.clear();
        for one in self.tables(value, TURN, MAX_TURNS) {
            let Some(table) = one.get_ref().as_table() else { continue };
            let mut level = Level { head: one.span(), ..Level::default() };
            let before = self.marks.len();
            self.settings(table, Rank::Turn, &mut level);
            let turn = TurnSpec { operations: level.length, what: level.stream.clone() };
            if self.marks.len() == before {
                self.marks.extend(turn.check().iter().map(|problem| point_in(&level, problem)));
            }
            stream.turns.push(turn);
        }
    }

    /// Lines as tables, or in the one word that the flag takes.
    fn lines(&mut self, value: &Spanned<DeValue<'_>>, stream: &mut StreamSpec) {
        stream.lines.clear();
        let one = [value];
        let list: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => one.to_vec(),
        };
        if list.is_empty() {
            self.marks
                .push(Mark::new(value.span(), "there is no line; type at least one, or leave the key out"));
        }
        for value in list {
            let line = match value.get_ref() {
                DeValue::Table(table) => self.line(table),
                DeValue::String(text) => LineSpec::parse(text),
                other => Err(format!(
                    "`line` is a table, not {}; type line = [{{ bs = \"4k\", mix = 70 }}]",
                    kind(other)
                )),
            };
            if let Err(why) = line.and_then(|line| keys::add_line(stream, line)) {
                self.marks.push(Mark::new(value.span(), why));
                return;
            }
        }
    }

    fn line(&mut self, table: &DeTable<'_>) -> Result<LineSpec, String> {
        let mut line = LineSpec::unsaid();
        let before = self.marks.len();
        for (name, value) in table {
            let word = name.get_ref().as_ref();
            let Some(key) = LINE_KEYS.iter().find(|k| k.name == word) else {
                let known: Vec<&str> = LINE_KEYS.iter().map(|k| k.name).collect();
                let message = format!("a line has no {}; {}", show(word), offer(word, &known));
                self.marks.push(Mark::new(name.span(), message));
                continue;
            };
            let said = text(value.get_ref())
                .ok_or_else(|| {
                    format!("`{word}` is text or a number, not {}; type it in quotes", kind(value.get_ref()))
                })
                .and_then(|text| (key.set)(&mut line, &text).map_err(|why| format!("`{word}`: {why}")));
            if let Err(why) = said {
                self.marks.push(Mark::new(value.span(), why));
            }
        }
        // What is missing matters only where what is there was understood.
        if self.marks.len() > before { Ok(line) } else { line.finished() }
    }
}

fn stream_name(value: &DeValue<'_>, level: &mut Level) -> Result<(), String> {
    let said =
        text(value).ok_or_else(|| format!("`name` is text, not {}; type it in quotes", kind(value)))?;
    level.stream.name = Some(parsers::name(&said).map_err(|why| format!("`name`: {why}"))?);
    Ok(())
}

fn turn_length(value: &DeValue<'_>) -> Result<Every, String> {
    let said = text(value)
        .ok_or_else(|| format!("`ops` is text or a number, not {}; type it in quotes", kind(value)))?;
    parsers::every(&said).map_err(|why| format!("`ops`: {why}"))
}

/// Whether a key may stand in a table of that rank.
fn belongs(key: &Key, rank: Rank) -> bool {
    match key.set {
        _ if rank == Rank::Turn => TURN_KEYS.contains(&key.name),
        Set::Job(_) | Set::JobSwitch(_) => rank == Rank::Top,
        Set::Phase(_) => rank != Rank::Stream,
        _ => true,
    }
}

/// What to do about a key that is not known in its place.
fn unknown(word: &str, value: &DeValue<'_>, rank: Rank) -> String {
    let top = "move it to the top of the file, before the first table";
    match (keys::find(word).map(|key| key.set), word) {
        (Some(Set::Job(_) | Set::JobSwitch(_)), _) => {
            return format!("`{word}` is said of the whole job; {top}");
        }
        (Some(Set::Stream(_) | Set::Switch(_) | Set::List { .. }), _) => {
            return format!("`{word}` is said of a whole stream; move it above its turns, or leave it out");
        }
        (Some(_), _) => {
            return format!("`{word}` is said of a phase; move it above the phase's streams, or to the top");
        }
        (None, PHASE) => return format!("a phase cannot stand inside another table; {top}"),
        (None, STREAM) => {
            return "a stream cannot stand inside another; type [[phase.stream]] for each".into();
        }
        (None, TURN) => return "a turn cannot stand inside another; type [[stream.turn]] for each".into(),
        (None, AT) => return "`at` is said of a phase; move it below [[phase]]".into(),
        (None, _) => {}
    }
    let said = match value {
        DeValue::Boolean(on) => Cow::Borrowed(if *on { "1" } else { "0" }),
        value => text(value).unwrap_or_default(),
    };
    if let Some(meant) = counterpart::in_other_tools(word, &[&said]).filter(|m| belongs(m.key, rank)) {
        return format!("there is no key {}; type {}", show(word), in_toml(&meant));
    }
    let own = match rank {
        Rank::Top => [PHASE, STREAM, TURN].as_slice(),
        Rank::Phase => &[STREAM, TURN, AT],
        Rank::Stream => &[NAME, TURN],
        Rank::Turn => &[OPS],
    };
    let known = KEYS.iter().filter(|key| belongs(key, rank)).map(|key| key.name);
    let known: Vec<&str> = known.chain(own.iter().copied()).collect();
    format!("there is no key {}; {}", show(word), offer(word, &known))
}

/// A key with the values that another tool's has, as far as these are known.
fn in_toml(meant: &Counterpart) -> String {
    let quoted = |value: &String| {
        let bare = value.bytes().all(|b| b.is_ascii_digit()) || meant.key.is_switch();
        // The escapes of Rust's strings are TOML's for all that can be typed.
        if bare { value.clone() } else { format!("{value:?}") }
    };
    let name = meant.key.name;
    match meant.values.as_slice() {
        [] => name.into(),
        [value] => format!("{name} = {}", quoted(value)),
        values => format!("{name} = [{}]", values.iter().map(quoted).collect::<Vec<_>>().join(", ")),
    }
}

/// The nearest known key.
fn offer(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied(), LIKENESS) {
        Some(key) => format!("type {key}"),
        None => format!("the keys here are {}", known.join(", ")),
    }
}

/// A word of the file, short.
fn show(word: &str) -> String {
    let short: String = word.chars().take(40).collect();
    format!("`{}`", short.escape_debug())
}
