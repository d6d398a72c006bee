//! The head of a measurement's page: the verdict, the number under its true name, its runs, and the figures beside it.
//!
//! For: what is read first. Not for: findings, which stand below it.

use super::events::Events;
use super::filters;
use super::page::icon;
use super::plot::axis::{Axis, SIDE};
use super::plot::{Label, Plot, band, dots, line};
use super::words::{time, with_micro_sign};
use crate::formats::text::report::{ending, headline};
use crate::page::accepted;
use crate::worst;
use askama::Template;
use model::finding::Finding;
use model::quick::Quick;
use model::report::{CountsAs, Figures, Measured, Report};
use model::study::Studied;
use model::units::{show_count, show_rate, show_share};

/// Runs of which each has a dot with a height of its own.
const MAX_STAGGERED_RUNS: usize = 12;

#[derive(Template)]
#[template(path = "hero.html")]
struct Hero {
    answers: Vec<(String, String, String)>,
    verdict: &'static str,
    icon: &'static str,
    counted: String,
    /// The verdict of the number itself. Empty without a number, and if there is only one result: the verdict above is then its own.
    own_verdict: &'static str,
    own_icon: &'static str,
    number: String,
    raw: String,
    unit: String,
    name: String,
    sentences: Vec<String>,
    runs: String,
    runs_say: String,
}

/// The result that the headline is about, where it is that of one.
pub(super) fn headline_result(report: &Report) -> Option<&Measured> {
    let is_it =
        |r: &&Measured| r.true_name == report.headline.name && r.quoted_rate().value == report.headline.value;
    match report.results.as_slice() {
        [only] => Some(only),
        all => match &report.study {
            Studied::Limit(curve) => all.get(*curve.rests_on.first()?),
            Studied::Sweep(sweep) => all.get(sweep.winner.values().next()?.result?),
            _ => all.iter().find(is_it),
        },
    }
}

/// The first card.
pub(super) fn hero_card(report: &Report, shown: &[Finding]) -> String {
    let value = report.headline.value;
    let whole = headline(&report.headline, report);
    let number = value.map_or_else(|| "no number".to_owned(), show_rate);
    let beyond = whole.strip_prefix(&format!("{number} {}", report.headline.unit)).unwrap_or("").trim();
    let beyond = beyond.trim_start_matches(['(', ',']).trim_end_matches(')').trim();
    let reason = worst::verdict_reason(report, shown).map(str::to_owned);
    let accepted = as_sentence(accepted(&report.headline.accepted).trim_start_matches(", "));
    let busy = report.busy_machine.iter().map(|sentence| as_sentence(sentence));
    let sentences = [Some(as_sentence(beyond)), Some(accepted), reason].into_iter().flatten().chain(busy);
    let sentences = sentences.chain(ending(report)).chain([worst::describe_limiter(report, shown)]);
    let sentences = sentences.filter(|s| !s.is_empty()).map(|s| with_micro_sign(&s));
    let runs =
        headline_result(report).filter(|_| !matches!(report.study, Studied::Limit(_) | Studied::Sweep(_)));
    let drawn = runs.and_then(|result| draw_runs(report, result));
    let has_own = report.results.len() > 1 && value.is_some();
    let own = headline_result(report).filter(|_| has_own).map_or("", |result| result.verdict.word());
    let hero = Hero {
        own_verdict: own,
        own_icon: icon(own),
        answers: answer_lines(report),
        verdict: report.verdict.word(),
        icon: icon(report.verdict.word()),
        counted: report.counts.sentence.clone().unwrap_or_default(),
        raw: value.map_or_else(String::new, |v| v.to_string()),
        unit: if value.is_some() { report.headline.unit.replace("us", "µs") } else { String::new() },
        number,
        name: with_micro_sign(&report.headline.name),
        sentences: sentences.collect(),
        runs_say: if drawn.is_some() { runs.map_or_else(String::new, headline_text) } else { String::new() },
        runs: drawn.map_or_else(String::new, |plot| {
            plot.html().replacen("class=\"plot\"", "class=\"plot narrow\"", 1)
        }),
    };
    hero.render().unwrap_or_default()
}

/// Makes a sentence: a capital first and one full stop at the end. Empty for no words.
fn as_sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), letters.as_str().trim_end_matches('.'))
    })
}

/// What a quick look says of itself, and the answer to what was asked.
fn answer_lines(report: &Report) -> Vec<(String, String, String)> {
    let quick = report
        .quick
        .as_ref()
        .map(|q| (Quick::WORD.to_owned(), String::new(), with_micro_sign(&q.sentence())));
    let answer = report.answer.as_ref().map(|answer| {
        let remark = report.counts_as.map_or("", CountsAs::remark);
        (answer.word.word().to_owned(), remark.to_owned(), with_micro_sign(&answer.sentence))
    });
    let against = report.against.as_ref().map(|rerun| {
        let words = format!("against {}, measured again in turns: {}", rerun.session, rerun.beside.sentence);
        (rerun.beside.answer.word().to_owned(), String::new(), with_micro_sign(&words))
    });
    quick.into_iter().chain(answer).chain(against).collect()
}

fn headline_text(result: &Measured) -> String {
    let count = result.runs.len();
    let events =
        if result.disturbed.iter().any(|d| d.counts) { " Hollow: a run that others disturbed." } else { "" };
    let first = if count <= MAX_STAGGERED_RUNS { ", the first at the top" } else { "" };
    let band = if result.quoted_rate().interval.is_some() { "; band: its 95 % interval" } else { "" };
    format!("{count} runs{first}. Line: their mean{band}.{events}")
}

/// Every run beside the mean and its interval; `None` where there is one run or no number.
fn draw_runs(report: &Report, result: &Measured) -> Option<Plot> {
    let quoted = result.quoted_rate();
    let value = quoted.value.filter(|_| result.runs.len() > 1)?;
    let rate = |r: &model::report::RunFigures| if quoted.unit == "IOPS" { r.iops } else { r.mb_per_s };
    let rates: Vec<f64> = result.runs.iter().map(rate).collect();
    let (low, high) = rates.iter().fold((value, value), |(l, h), v| (l.min(*v), h.max(*v)));
    // Three runs can have an absurd interval: no more of it than some times what they span.
    let room = (4.0 * (high - low)).max(0.02 * value);
    let [from, to] = quoted.interval.map_or([low, high], |[l, h]| [l.max(low - room), h.min(high + room)]);
    let around = 0.08 * (to.max(high) - from.min(low)).max(1e-9 * value);
    let x = Axis::linear(from.min(low) - around, to.max(high) + around);
    let events = Events::from_result(report, result);
    let height = |at: usize| {
        if rates.len() > MAX_STAGGERED_RUNS { 500.0 } else { SIDE * (at as f64 + 0.5) / rates.len() as f64 }
    };
    let mut plot = Plot {
        title: "Each run beside their mean".into(),
        says: format!(
            "Runs {}; mean {}",
            rates.iter().take(20).map(|v| show_rate(*v)).collect::<Vec<_>>().join(", "),
            show_rate(value)
        ),
        height: if rates.len() > MAX_STAGGERED_RUNS { 56 } else { 26 + 13 * rates.len() as u32 },
        ..Plot::default()
    };
    if let Some([low, high]) = quoted.interval {
        plot.draw("band", &band::full_height(x.within(low), x.within(high)));
    }
    plot.draw("ours", &line::line([(x.along(value), 0.0), (x.along(value), SIDE)]));
    let places = || rates.iter().enumerate().map(|(at, v)| (x.along(*v), height(at)));
    plot.draw("dot", &dots::dots(places()));
    let hollow =
        places().zip(&result.runs).filter(|(_, run)| events.is_disturbed(run.run)).map(|(place, _)| place);
    plot.draw("hollow-in", &dots::dots(hollow));
    let mark = |v: f64, label: String| super::plot::axis::Tick { at: x.within(v), label };
    let ends = quoted.interval.map(|[low, high]| {
        let cut = |v: f64, sign: &str| {
            if (0.0..=SIDE).contains(&x.along(v)) { show_rate(v) } else { format!("{sign} {}", show_rate(v)) }
        };
        [mark(low, cut(low, "◂")), mark(high, cut(high, "▸"))]
    });
    plot.labels = Vec::<Label>::new();
    plot.x = ends.into_iter().flatten().collect();
    plot.x.retain(|tick| (tick.at - x.along(value)).abs() > 60.0);
    Some(plot)
}

#[derive(Template)]
#[template(path = "tiles.html")]
struct Tiles {
    tiles: Vec<Tile>,
}

struct Tile {
    name: String,
    value: String,
    note: String,
}

/// Figures of a result in a row: latencies, rate, cost, and what the kernel counted beside ours.
pub(super) fn tiles(result: &Measured) -> String {
    if result.void {
        return String::new();
    }
    let main = [&result.read, &result.write, &result.trim].into_iter().flatten().max_by_key(|f| f.ops);
    let tiles: Vec<Tile> =
        main.map(|f| latency_tiles(f, result)).into_iter().flatten().chain(rate_tiles(result)).collect();
    if tiles.is_empty() { String::new() } else { Tiles { tiles }.render().unwrap_or_default() }
}

fn latency_tiles(figures: &Figures, result: &Measured) -> Vec<Tile> {
    let of = |d: super::directions::Direction| d.figures(result).is_some_and(|f| std::ptr::eq(f, figures));
    let several = super::directions::result_directions(result).count() > 1;
    let word = super::directions::result_directions(result).find(|d| of(*d)).map_or("", |d| d.word);
    let prefix = if several { format!("{word} ") } else { String::new() };
    let value = |rank: &str| figures.latency_ns.percentiles.get(rank).copied().flatten();
    let last = ["99.99", "99.9"].into_iter().find(|rank| value(rank).is_some()).unwrap_or("99.9");
    let names = [
        ("50", "Median latency".to_owned()),
        ("99", "99 % within".into()),
        (last, format!("{last} % within")),
    ];
    let tile = |(rank, name): (&str, String)| Tile {
        name,
        value: super::words::time_or_dash(value(rank).map(|ns| ns as f64)),
        note: if value(rank).is_some() { format!("{prefix}p{rank}") } else { "not enough operations".into() },
    };
    names.into_iter().map(tile).collect()
}

fn rate_tiles(result: &Measured) -> Vec<Tile> {
    let mut out = Vec::new();
    if let Some(total) = &result.total {
        let (value, note) = if result.quoted_rate().unit == "IOPS" {
            (format!("{} MB/s", show_rate(total.mb_per_s)), format!("{} MiB/s", show_rate(total.mib_per_s)))
        } else {
            (format!("{} IOPS", show_rate(total.iops)), format!("{} MiB/s", show_rate(total.mib_per_s)))
        };
        out.push(Tile { name: "Throughput".into(), value, note });
    }
    if let Some(cost) = &result.cost {
        let note = format!("{} in user space", time(cost.user_ns));
        out.push(Tile { name: "CPU per operation".into(), value: time(cost.user_ns + cost.system_ns), note });
    }
    let mut accounts = result.ledger.iter().flat_map(|l| [l.read.as_ref(), l.write.as_ref()]).flatten();
    if let Some(entry) = accounts.find_map(|a| a.layers.first()) {
        let counted = entry.with_sync.or(entry.counted);
        let value = entry.difference.map_or_else(
            || "not counted".into(),
            |d| format!("{}{}", if d >= 0.0 { "+" } else { "" }, show_share(d)),
        );
        let note = counted.map_or_else(
            || entry.word.clone(),
            |m| format!("bytes on {}, in {} requests", entry.name, show_count(m.ios as f64)),
        );
        out.push(Tile { name: "Device against ours".into(), value, note });
    }
    out
}
