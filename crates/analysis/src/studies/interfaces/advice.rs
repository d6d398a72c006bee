//! Advice: which interface to use for each work, or why none is recommended.
//!
//! For: choosing among rows by their intervals, and saying so. Not for: the rows ([`super`]).

use model::api::{Advice, Api, ApiRow, NoAdvice};
use model::job::Stream;
use model::report::{Answer, AnswerWord, Measured};
use model::units::show_rate;

/// Part of a figure from which on two of them are a reason for a difference.
const CLEARLY_LESS: f64 = 0.8;
/// An interval this much higher than low ties with anything: no advice comes of it.
const TOO_WIDE: f64 = 2.0;
/// Most names in a sentence.
const NAMES: usize = 4;

/// A row with what it is ranked by: the rate until the bytes are where they belong, in MB/s with its interval.
struct Scored<'a> {
    row: &'a ApiRow,
    rate: f64,
    interval: [f64; 2],
}

/// What is recommended for each work, in the order of the table; and for which nothing is, and why.
pub(super) fn advise(rows: &[(bool, ApiRow)], results: &[Measured]) -> (Vec<Advice>, Vec<NoAdvice>) {
    let (mut advice, mut none) = (Vec::new(), Vec::new());
    for work in works(rows) {
        match of_work(&work, results) {
            Ok(one) => advice.push(one),
            Err(why) => {
                none.extend(work.first().map(|row| NoAdvice { work: row.work.clone(), why }));
            }
        }
    }
    (advice, none)
}

/// The rows of each work, in the order of the table.
fn works(rows: &[(bool, ApiRow)]) -> Vec<Vec<&ApiRow>> {
    let mut works: Vec<Vec<&ApiRow>> = Vec::new();
    for row in rows.iter().filter(|(sees, _)| *sees).map(|(_, row)| row) {
        match works.iter_mut().find(|w| w.first().is_some_and(|first| first.work == row.work)) {
            Some(work) => work.push(row),
            None => works.push(vec![row]),
        }
    }
    works
}

/// The plainest interface of a work that is not slower than the fastest one by more than chance, or why none is recommended.
fn of_work(work: &[&ApiRow], results: &[Measured]) -> Result<Advice, String> {
    let scored: Vec<Scored> = work.iter().filter_map(|row| Scored::new(row)).collect();
    let by_rate = |a: &&Scored, b: &&Scored| a.rate.total_cmp(&b.rate);
    let (Some(fastest), Some(slowest)) = (scored.iter().max_by(by_rate), scored.iter().min_by(by_rate))
    else {
        return Err(without_scores(work));
    };
    let is_tied = |one: &&Scored| one.interval[1] >= fastest.interval[0];
    if let [only] = scored.as_slice() {
        return Err(format!("{} alone has a rate with an interval", only.row.interface));
    }
    if scored.iter().all(|one| is_tied(&one)) {
        let all = scored.len();
        return Err(format!(
            "none of {all} is faster than the others by more than chance; more --runs would tell"
        ));
    }
    let is_narrow = |one: &&Scored| one.interval[1] <= TOO_WIDE * one.interval[0];
    let Some(pick) = scored.iter().find(is_tied).filter(is_narrow) else {
        return Err(
            "the runs of the fastest differ too much; more --runs or a longer --time would tell".into()
        );
    };
    let also: Vec<String> =
        scored.iter().filter(is_tied).skip(1).map(|one| one.row.interface.clone()).collect();
    let first = work.first().is_some_and(|first| first.interface == pick.row.interface);
    let plainest = scored.first().filter(|plainest| plainest.row.interface != pick.row.interface);
    let sentence = pick.sentence(plainest, first, slowest, &also, results);
    Ok(Advice { work: pick.row.work.clone(), interface: pick.row.interface.clone(), also, sentence })
}

/// Why no row of a work can be ranked.
fn without_scores(work: &[&ApiRow]) -> String {
    if work.iter().any(|row| row.mb_per_s.is_some()) {
        return "no rate has an interval, which takes three runs (--runs 3)".into();
    }
    "no row has a number".into()
}

impl<'a> Scored<'a> {
    fn new(row: &'a ApiRow) -> Option<Self> {
        let (rate, interval) = match (row.synced_mb_per_s, row.stored_after.is_some()) {
            (Some(rate), _) => (rate, row.synced_mb_per_s_interval?),
            (None, true) => return None,
            (None, false) => (row.mb_per_s?, row.mb_per_s_interval?),
        };
        Some(Self { row, rate, interval })
    }

    /// Why this one. `plainest` is another that is plainer and slower; `first` tells that there is none plainer at all.
    fn sentence(
        &self,
        plainest: Option<&Scored>,
        first: bool,
        slowest: &Scored,
        also: &[String],
        results: &[Measured],
    ) -> String {
        let stable = if self.row.stored_after.is_some() { " until it is stable" } else { "" };
        let [low, high] = self.interval.map(show_rate);
        let ApiRow { work, interface, .. } = self.row;
        let rate = show_rate(self.rate);
        let mut sentence = format!("{work}: use {interface}: {rate} MB/s{stable} ({low} to {high}).");
        if let Some(plainest) = plainest {
            sentence += &format!(" {} does {}", plainest.row.interface, show_rate(plainest.rate));
            if let Some(why) = reason(self.row, plainest.row, results) {
                sentence += &format!("; {why}");
            }
        } else {
            let plainest = if first { "the plainest" } else { "the plainest with a number" };
            sentence += &format!(" It is {plainest}, and none is faster by more than chance");
        }
        sentence += &format!("; slowest is {} with {}.", slowest.row.interface, show_rate(slowest.rate));
        if !also.is_empty() {
            sentence += &format!(" As fast within their intervals: {}.", some_of(also));
        }
        sentence
    }
}

/// Which interface to use, in all works together; or that none is recommended, and why.
pub(crate) fn answer(api: &Api) -> Answer {
    let Api { advice, no_advice, .. } = api;
    let word = match advice.as_slice() {
        [] => AnswerWord::CannotTell,
        all if no_advice.is_empty() && all.iter().all(|a| a.also.is_empty()) => AnswerWord::Fastest,
        _ => AnswerWord::Tied,
    };
    let sentence = match (advice.as_slice(), no_advice.as_slice()) {
        ([], []) if api.rows.is_empty() => "No recommendation, because no run was complete.".into(),
        ([], []) => "No recommendation, because no byte of what was measured reaches the program.".into(),
        ([], none) => not_recommended(none, true),
        ([only], []) => only.sentence.clone(),
        (some, none) => [recommended(some), not_recommended(none, false)].join(" ").trim().into(),
    };
    Answer { word, sentence }
}

/// `Use pread for 4K random read; mmap for 4K sequential read.`
fn recommended(advice: &[Advice]) -> String {
    let of_interfaces = grouped(advice.iter().map(|a| (a.interface.as_str(), a.work.as_str())));
    let words =
        of_interfaces.iter().map(|(interface, works)| format!("{interface} for {}", works.join(", ")));
    format!("Use {}.", words.collect::<Vec<_>>().join("; "))
}

/// `No recommendation, because ...`, a sentence for each reason, with the works where these are not `all`.
fn not_recommended(none: &[NoAdvice], all: bool) -> String {
    let by_reason = grouped(none.iter().map(|n| (n.why.as_str(), n.work.as_str())));
    let unnamed = all && by_reason.len() == 1;
    let sentence = |(why, works): &(&str, Vec<&str>)| {
        let named = if unnamed { String::new() } else { format!(" for {}", works.join(", ")) };
        format!("No recommendation{named}, because {why}.")
    };
    by_reason.iter().map(sentence).collect::<Vec<_>>().join(" ")
}

/// What belongs to each key, both in the order of their first coming.
fn grouped<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// `a, b, c, d and 3 more`.
fn some_of(names: &[String]) -> String {
    if names.len() <= NAMES {
        return names.join(", ");
    }
    format!("{} and {} more", names[..NAMES].join(", "), names.len() - NAMES)
}

/// What differs most plainly between a row and the plainest one.
fn reason(pick: &ApiRow, plainest: &ApiRow, results: &[Measured]) -> Option<String> {
    let stream =
        |row: &ApiRow| -> Option<&Stream> { results.get(row.result)?.job.phases.first()?.streams.first() };
    let in_flight = |row: &ApiRow| stream(row).map(Stream::total_depth);
    let direct = |row: &ApiRow| stream(row).is_some_and(|s| s.cache.is_direct());
    let less = |a: f64, b: f64| a < CLEARLY_LESS * b;
    if let (Some(own), Some(other)) = (in_flight(pick), in_flight(plainest))
        && own > other
    {
        return Some(format!("this one has {own} operations in flight, and that one {other}"));
    }
    if let (Ok(own), Ok(other)) = (&pick.device_bytes_per_byte, &plainest.device_bytes_per_byte)
        && less(own[0] + own[1], other[0] + other[1])
    {
        let (own, other) = (own[0] + own[1], other[0] + other[1]);
        return Some(format!("for it the device moves {own:.2} bytes per byte instead of {other:.2}"));
    }
    if direct(pick) && !direct(plainest) {
        return Some("it goes past the page cache".into());
    }
    if let (Ok(own), Ok(other)) = (&pick.calls_per_mib, &plainest.calls_per_mib)
        && less(*own, *other)
    {
        let (own, other) = (show_rate(*own), show_rate(*other));
        return Some(format!("it makes {own} instead of {other} system calls per MiB"));
    }
    let cpu = |row: &ApiRow| Some(row.user_ns_per_byte? + row.system_ns_per_byte?);
    if let (Some(own), Some(other)) = (cpu(pick), cpu(plainest))
        && less(own, other)
    {
        return Some(format!("it takes {own:.2} ns of CPU per byte instead of {other:.2}"));
    }
    None
}

#[cfg(test)]
use super::{compared, comparison, table};
#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn the_plainest_of_the_fastest_is_recommended_and_never_what_sees_no_byte() {
    let advice = table(&compared(|_| {})).advice;
    assert_eq!(advice.len(), 1, "{advice:?}");
    assert_eq!(advice[0].interface, "ring");
    assert!(advice[0].sentence.contains("8 operations in flight, and that one 1"), "{}", advice[0].sentence);
    // As fast as the other: then the plain one will do.
    let mut equal = compared(|fixtures| fixtures[0].ops = 9_000);
    comparison(&mut equal).candidates[2].sees = true;
    let advice = table(&equal).advice;
    assert_eq!(advice[0].interface, "blind");
    let mut shaky = equal.clone();
    for run in shaky.runs.iter_mut().filter(|r| r.start.job == 2) {
        run.end.as_mut().unwrap().streams[0].window_ns *= 1 + 3 * u64::from(run.start.repeat % 2);
    }
    assert!(table(&shaky).advice.is_empty(), "an interval that ties with anything");
    comparison(&mut equal).candidates[2].sees = false;
    assert!(table(&equal).advice.is_empty(), "no interval lies apart");
}

#[test]
fn writes_are_ranked_by_what_is_stable() {
    let late = |ops, sync_ns| Fixture { ops, sync_ns: Some(sync_ns), ..Fixture::honest_write() };
    let record = compared(|fixtures| {
        fixtures[0] = Fixture { name: "pread, reads".into(), ..late(9_000, 9_000_000_000) };
        fixtures[1] = Fixture { name: "ring, reads".into(), ..late(5_000, 1_000_000) };
    });
    let api = table(&record);
    assert!(api.rows[0].mb_per_s > api.rows[1].mb_per_s);
    assert!(api.rows[0].synced_mb_per_s < api.rows[1].synced_mb_per_s);
    assert_eq!(api.advice[0].interface, "ring");
    assert!(api.advice[0].sentence.contains("until it is stable"), "{}", api.advice[0].sentence);
}

#[test]
fn where_nothing_is_recommended_the_first_line_says_why() {
    let mut equal = compared(|fixtures| fixtures[0].ops = 9_000);
    let api = table(&equal);
    let said = answer(&api);
    assert_eq!(said.word, AnswerWord::CannotTell);
    let because = "No recommendation, because none of 2 is faster than the others by more than chance";
    assert!(said.sentence.starts_with(because), "{}", said.sentence);
    equal.runs.retain(|run| run.start.repeat == 0);
    let one_run = answer(&table(&equal)).sentence;
    assert!(one_run.contains("no rate has an interval") && one_run.contains("--runs 3"), "{one_run}");
    equal.runs.clear();
    let none = answer(&table(&equal)).sentence;
    assert!(none.starts_with("No recommendation, because no"), "{none}");
    comparison(&mut equal).candidates.clear();
    assert_eq!(answer(&table(&equal)).sentence, "No recommendation, because no run was complete.");
}

#[test]
fn several_works_are_answered_in_one_line() {
    let advice = |work: &str, interface: &str, also: &[&str]| Advice {
        work: work.into(),
        interface: interface.into(),
        also: also.iter().map(|a| (*a).into()).collect(),
        sentence: format!("{work}: use {interface}."),
    };
    let none = |work: &str, why: &str| NoAdvice { work: work.into(), why: why.into() };
    let of = |advice: Vec<Advice>, no_advice: Vec<NoAdvice>| {
        let rows = Vec::new();
        answer(&Api { rows, missing: Vec::new(), not_measured: Vec::new(), advice, no_advice })
    };
    let both = of(vec![advice("4K", "pread", &[]), advice("128K", "mmap", &[])], Vec::new());
    assert_eq!(
        (both.word, both.sentence.as_str()),
        (AnswerWord::Fastest, "Use pread for 4K; mmap for 128K.")
    );
    let one = of(vec![advice("4K", "pread", &["read"])], Vec::new());
    assert_eq!((one.word, one.sentence.as_str()), (AnswerWord::Tied, "4K: use pread."));
    let mixed = of(
        vec![advice("4K", "pread", &[]), advice("8K", "pread", &[])],
        vec![none("1M", "of this"), none("2M", "of this")],
    );
    let said = "Use pread for 4K, 8K. No recommendation for 1M, 2M, because of this.";
    assert_eq!((mixed.word, mixed.sentence.as_str()), (AnswerWord::Tied, said));
    let two = of(Vec::new(), vec![none("1M", "of this"), none("2M", "of that")]).sentence;
    assert_eq!(two, "No recommendation for 1M, because of this. No recommendation for 2M, because of that.");
}
