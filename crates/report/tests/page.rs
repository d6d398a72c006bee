//! Properties of every HTML page: foreign text is escaped, nothing is loaded or run except the page's own script, and a long session makes a
//! small page.

mod forged;

use model::comparison::Comparison;
use model::figures::Ledger;
use model::finding::Pages;
use model::history::{Column, Figure, Listing, SessionRow, SessionTable};
use model::report::{
    DirectionSeries, HostFigures, LatencyBuckets, Measured, Report, RunFigures, Second, TimeSeries,
};
use model::study::Studied;
use report::{ReportKind, Style, find_format};
use std::path::Path;
use std::time::{Duration, Instant};

type Tried = Result<(), Box<dyn std::error::Error>>;

const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;</style>";

fn page<K: ReportKind>(report: &K) -> Result<String, Box<dyn std::error::Error>> {
    let format = find_format::<K>("html").ok_or("there is no format html")?;
    Ok(String::from_utf8(format.bytes(report, Style::default())?)?)
}

fn golden(name: &str) -> Result<Vec<u8>, std::io::Error> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name))
}

/// Returns a golden report with data for every plot.
fn full_report() -> Result<Report, Box<dyn std::error::Error>> {
    let mut report: Report = serde_json::from_slice(&golden("golden/valid.json")?)?;
    let ledger: Option<Ledger> = serde_json::from_slice(&golden("golden/pieces/ledger.json")?)?;
    for result in &mut report.results {
        result.ledger.clone_from(&ledger);
        set_runs(result, 3, 100);
    }
    Ok(report)
}

/// Gives a result `runs` runs of one second, each divided into `stretches` intervals.
fn set_runs(result: &mut Measured, runs: u32, stretches: u32) {
    let first = result.runs.first().cloned();
    let share = |run: u32| Some(f64::from(run * 37 % 100) / 100.0);
    let host = |run| HostFigures {
        worker_cpu: share(run),
        cpu: share(run + 1),
        io_pressure: share(run + 2),
        cpu_pressure: share(run + 3),
        memory_pressure: share(run + 4),
        quota_paused: share(run + 5),
    };
    result.runs =
        (0..runs).filter_map(|run| Some(RunFigures { run, host: host(run), ..first.clone()? })).collect();
    let second = |run| Second {
        run,
        start_s: 0.0,
        seconds: 1.0,
        iops: 1000.0 + f64::from(run % 7),
        mb_per_s: 4.0,
        p99_at_most_ns: Some(100_000),
        device: None,
    };
    result.series = (0..runs).map(second).collect();
    let all: Vec<(u32, u32)> = (0..runs).flat_map(|run| (0..stretches).map(move |at| (run, at))).collect();
    let ns = |value: fn(u32) -> u64| {
        all.iter().map(|(run, at)| Some(value(run * 31 + at * 17))).collect::<Vec<_>>()
    };
    let reads = DirectionSeries {
        iops: all.iter().map(|(run, at)| f64::from(900 + (run * 31 + at * 17) % 200)).collect(),
        mb_per_s: all.iter().map(|_| 4.0).collect(),
        p50_ns: ns(|i| 50_000 + u64::from(i % 997) * 10),
        p99_ns: ns(|i| 90_000 + u64::from(i % 991) * 100),
        max_ns: ns(|i| 200_000 + u64::from(i % 983) * 1000),
    };
    result.time_series = Some(TimeSeries {
        run: all.iter().map(|(run, _)| *run).collect(),
        start_s: all.iter().map(|(_, at)| f64::from(*at) / f64::from(stretches)).collect(),
        seconds: all.iter().map(|_| 1.0 / f64::from(stretches)).collect(),
        depth_mean: all.iter().map(|_| 31.5).collect(),
        directions: [("read".to_owned(), reads)].into(),
        joined: 1,
    });
    let from_ns = (200..400).map(|k| 10_f64.powf(f64::from(k) / LatencyBuckets::PER_DECADE)).collect();
    let buckets = LatencyBuckets { from_ns, ops: (0..200).map(|k| 1 + 1_000_000 / (1 + k * k)).collect() };
    result.latencies = [("read".to_owned(), buckets)].into();
}

/// Checks that a browser runs only the page's own script, and loads and follows nothing.
fn is_closed(html: &str) {
    let lower = html.to_lowercase();
    assert_eq!(lower.matches("<script").count(), 1, "one script, its own");
    assert_eq!(lower.matches("<style").count(), 1);
    for loading in
        ["<img", "<link", "<iframe", "<object", "<embed", "<a ", "url(", "@import", "http:", "https:"]
    {
        assert!(!lower.contains(loading), "{loading}");
    }
    assert!(!lower.contains(" onerror=alert") || lower.contains("&#60;img") || lower.contains("&lt;img"));
    assert!(lower.contains("default-src 'none'") && lower.contains("script-src 'sha256-"));
}

#[test]
fn foreign_text_is_shown_and_never_executed() -> Tried {
    let mut report = full_report()?;
    let hostile = || HOSTILE.to_owned();
    report.title = hostile();
    report.started = hostile();
    report.session = Some(format!("/tmp/{HOSTILE}.fathom"));
    report.command = vec!["fathom".into(), "run".into(), hostile()];
    report.notes.push(hostile());
    report.annotations.tags.push(hostile());
    report.annotations.notes.push(model::report::Note { at: hostile(), text: hostile() });
    report.headline.name = hostile();
    report.headline.unit = hostile();
    report.verdict_reason = hostile();
    report.machine.host = hostile();
    report.machine.kernel = hostile();
    for place in &mut report.machine.places {
        place.path = hostile();
    }
    for finding in &mut report.checks {
        (finding.name, finding.sentence, finding.fix) = (hostile(), hostile(), hostile());
        finding.about = vec![hostile()];
    }
    for result in &mut report.results {
        (result.name, result.true_name, result.job.name) = (hostile(), hostile(), hostile());
        (result.limiter.name, result.limiter.sentence) = (hostile(), hostile());
        for entry in result.ledger.iter_mut().filter_map(|l| l.read.as_mut()).flat_map(|a| &mut a.layers) {
            (entry.name, entry.word) = (hostile(), hostile());
        }
    }
    let html = page(&report)?;
    is_closed(&html);
    assert!(!html.contains("<script>alert") && !html.contains("<img"), "something was not escaped");
    assert!(
        html.contains("&#60;script&#62;alert(1)") || html.contains("&lt;script&gt;alert(1)"),
        "it is shown"
    );
    Ok(())
}

#[test]
fn pages_of_every_kind_load_nothing() -> Tried {
    let mut report = full_report()?;
    is_closed(&page(&report)?);
    for name in ["api", "layers", "limit", "sweep", "bars", "score"] {
        let piece = golden(&format!("golden/pieces/{name}.json"))?;
        report.study = match name {
            "api" => Studied::Interfaces(serde_json::from_slice(&piece)?),
            "layers" => Studied::Layers(serde_json::from_slice(&piece)?),
            "limit" => Studied::Limit(serde_json::from_slice(&piece)?),
            "sweep" => Studied::Sweep(serde_json::from_slice(&piece)?),
            _ => Studied::Profile(serde_json::from_slice(&piece)?),
        };
        is_closed(&page(&report)?);
    }
    for name in ["cannot_tell", "slower", "incomparable"] {
        let comparison: Comparison = serde_json::from_slice(&golden(&format!("comparison/{name}.json"))?)?;
        let html = page(&comparison)?;
        is_closed(&html);
        assert!(html.contains(comparison.answer.word()));
    }
    is_closed(&page(&Pages { pages: Vec::new(), all: false })?);
    is_closed(&page(&Listing::default())?);
    is_closed(&page(&SessionTable::default())?);
    is_closed(&page(&together(&full_report()?, &[HOSTILE, "b", "c"]))?);
    Ok(())
}

/// Returns a table with the first result of a report in several sessions of these names.
fn together(report: &Report, names: &[&str]) -> SessionTable {
    let (name, unit) = report.results.first().map_or(("", ""), |r| (r.name.as_str(), r.quoted_rate().unit));
    let (name, unit) = (name.to_owned(), unit.to_owned());
    let row = |session: &&str| SessionRow {
        session: (*session).into(),
        verdict: Some(report.verdict),
        targets: vec![HOSTILE.into()],
        figures: vec![Some(Figure {
            name: name.clone(),
            unit: unit.clone(),
            value: Some(1.0),
            interval: None,
            verdict: report.verdict,
            mb_per_s: None,
        })],
        ..SessionRow::default()
    };
    SessionTable {
        columns: vec![Column { name: name.clone(), unit: unit.clone() }],
        rows: names.iter().map(row).collect(),
        reports: names.iter().map(|_| report.clone()).collect(),
        ..SessionTable::default()
    }
}

#[test]
fn a_page_of_a_thousand_runs_is_small_and_fast() -> Tried {
    let mut report = full_report()?;
    report.results.truncate(1);
    // A usual number of intervals per run, and many more.
    for stretches in [3, 100] {
        report.results.iter_mut().for_each(|result| set_runs(result, 1000, stretches));
        let since = Instant::now();
        let html = page(&report)?;
        let took = since.elapsed();
        assert!(html.len() < 2_000_000, "{} bytes", html.len());
        assert!(took < Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 }), "{took:?}");
        let html = page(&together(&report, &["a", "b", "c"]))?;
        assert!(html.len() < 2_000_000, "{} bytes of three sessions", html.len());
    }
    Ok(())
}

#[test]
fn withheld_values_have_no_number_and_no_line() -> Tried {
    let mut report = full_report()?;
    report.results.truncate(1);
    for result in &mut report.results {
        result.void = true;
        result.total = None;
        result.latencies.clear();
    }
    report.headline.value = None;
    let html = page(&report)?;
    assert!(html.contains("no number") && !html.contains("NaN") && !html.contains(">inf"), "{html}");
    let cut: Report = serde_json::from_slice(&golden("golden/cut.json")?)?;
    let html = page(&forged::with_seen(cut))?;
    assert!(html.contains("INVALID") && !html.contains("NaN"));
    Ok(())
}
