//! Results in the layout of a tool: median rates or mean latencies under the row names of a well-known tool,
//! and the score of AS SSD.
//!
//! The weights of the score are points per MB/s. Source: <https://ssd-tester.com/text_score.php>.

use super::{Conclusion, Question};
use crate::findings::CaseAnswers;
use crate::verdict::{Judged, ReportHead};
use model::profile::{
    CellSource, LayoutKind, LayoutRow, Points, Score, ToolCell, ToolLayout, ToolResults, ToolRow,
};
use model::report::{Measured, Verdict};
use model::study::Studied;

/// The weight of a row's rates in a score.
struct Weight {
    row: &'static str,
    read: f64,
    write: f64,
}

const fn weight(row: &'static str, read: f64, write: f64) -> Weight {
    Weight { row, read, write }
}

const READ_WEIGHTS: [Weight; 3] =
    [weight("Seq", 0.1, 0.0), weight("4K", 1.0, 0.0), weight("4K-64Thrd", 1.0, 0.0)];
const WRITE_WEIGHTS: [Weight; 3] =
    [weight("Seq", 0.0, 0.1), weight("4K", 0.0, 1.0), weight("4K-64Thrd", 0.0, 1.0)];
const TOTAL_WEIGHTS: [Weight; 3] =
    [weight("Seq", 0.1, 0.15), weight("4K", 2.0, 1.0), weight("4K-64Thrd", 1.5, 1.0)];

impl Question for ToolLayout {
    fn conclude(&self, judged: &Judged) -> Studied {
        build_tool_results(self, judged.answered, judged.results).into()
    }
}

impl Conclusion for ToolResults {
    fn head(&self, judged: &Judged, quoted: &[&Measured]) -> ReportHead {
        judged.head_of_jobs(quoted)
    }
}

/// Builds the table of results under the tool's names, with the tool's score if it has one.
/// `results` has one entry for each of `answered`.
fn build_tool_results(layout: &ToolLayout, answered: &[CaseAnswers], results: &[Measured]) -> ToolResults {
    let cell = |row: &LayoutRow, source: &Option<CellSource>| {
        let source = source.as_ref()?;
        let result = answered
            .iter()
            .position(|a| a.case.job_index == source.job && a.case.phase_index == source.phase)?;
        Some(build_cell(result, results.get(result)?, row.latency))
    };
    let row = |row: &LayoutRow| ToolRow {
        name: row.name.clone(),
        unit: if row.latency { "ms" } else { "MB/s" }.into(),
        read: cell(row, &row.read),
        write: cell(row, &row.write),
    };
    let rows: Vec<ToolRow> = layout.rows.iter().map(row).collect();
    let score = (layout.kind == LayoutKind::Score).then(|| Score {
        read: add_up_points(&rows, &READ_WEIGHTS),
        write: add_up_points(&rows, &WRITE_WEIGHTS),
        total: add_up_points(&rows, &TOTAL_WEIGHTS),
    });
    ToolResults { tool: layout.tool.clone(), rows, score, differs: layout.differs.clone() }
}

fn build_cell(index: usize, result: &Measured, is_latency: bool) -> ToolCell {
    let has_number = result.total.is_some() && !result.void;
    let mut rates: Vec<f64> = result.runs.iter().map(|r| r.mb_per_s).filter(|_| has_number).collect();
    rates.sort_by(f64::total_cmp);
    let mean_ns =
        result.read.as_ref().or(result.write.as_ref()).map(|f| f.latency_ns.mean).filter(|_| has_number);
    let rate = (!rates.is_empty()).then(|| stats::sample::median(&rates));
    let (value, range) = match (is_latency, rates.as_slice()) {
        (true, _) => (mean_ns.map(|ns| ns / 1e6), None),
        (false, [least, .., most]) => (rate, Some([*least, *most])),
        (false, _) => (rate, None),
    };
    ToolCell { result: index, value, range, verdict: result.verdict }
}

/// Adds up the points of the rows; withheld if a weighted rate has no number.
fn add_up_points(rows: &[ToolRow], weights: &[Weight]) -> Points {
    let parts = weights.iter().flat_map(|w| {
        let row = rows.iter().find(|r| r.name == w.row);
        let sides = [
            ("read", w.read, row.and_then(|r| r.read.as_ref())),
            ("write", w.write, row.and_then(|r| r.write.as_ref())),
        ];
        sides.map(|(side, factor, cell)| (format!("{} {side}", w.row), factor, cell))
    });
    let parts: Vec<_> = parts.filter(|(_, factor, _)| *factor > 0.0).collect();
    let lacking = parts.iter().filter(|(.., cell)| cell.and_then(|c| c.value).is_none());
    let lacking: Vec<&str> = lacking.map(|(name, ..)| name.as_str()).collect();
    if !lacking.is_empty() {
        let withheld = Some(format!("no number for {}", lacking.join(", ")));
        return Points { value: None, range: None, verdict: Verdict::Invalid, withheld };
    }
    let sum = |value: &dyn Fn(&ToolCell) -> Option<f64>| -> Option<f64> {
        parts.iter().map(|(_, factor, cell)| Some(factor * value((*cell)?)?)).sum()
    };
    let least = sum(&|c| Some(c.range?[0]));
    let most = sum(&|c| Some(c.range?[1]));
    let is_valid = parts.iter().all(|(.., cell)| cell.is_some_and(|c| c.verdict == Verdict::Valid));
    Points {
        value: sum(&|c| c.value),
        range: least.zip(most).map(|(least, most)| [least, most]),
        verdict: if is_valid { Verdict::Valid } else { Verdict::Suspect },
        withheld: None,
    }
}

#[cfg(test)]
use crate::{Judging, fixture, fixture::Fixture, judge};
#[cfg(test)]
use model::job::Pattern;

/// Rows of AS SSD at these MB/s, read and write.
#[cfg(test)]
fn scored(rates: [(f64, f64); 3], change: impl Fn(usize, Fixture) -> Fixture) -> ToolResults {
    let names = ["Seq", "4K", "4K-64Thrd"];
    let mut fixtures = Vec::new();
    let mut rows = Vec::new();
    for (name, (read, write)) in names.iter().zip(rates) {
        for (read_percent, rate) in [(100, read), (0, write)] {
            let block_bytes = if *name == "Seq" { 16 << 20 } else { 4096 };
            let honest = if read_percent == 100 { Fixture::honest() } else { Fixture::honest_write() };
            let fixture = Fixture {
                name: format!("{name} {read_percent}"),
                pattern: if *name == "Seq" { Pattern::Sequential } else { Pattern::Random },
                block_bytes,
                read_percent,
                ops: (rate * 1e6 / f64::from(block_bytes)).round() as u64,
                ..honest
            };
            fixtures.push(change(fixtures.len(), fixture));
        }
        let at = |job| Some(CellSource { job, phase: 0 });
        let job = fixtures.len() - 2;
        rows.push(LayoutRow { name: (*name).into(), latency: false, read: at(job), write: at(job + 1) });
    }
    let mut record = fixture::together(&fixtures);
    let layout = ToolLayout { tool: "AS SSD".into(), kind: LayoutKind::Score, rows, differs: Vec::new() };
    record.header.plan.study = layout.into();
    let report = judge(&record, &Judging::default());
    report.study.profile().unwrap().clone()
}

#[cfg(test)]
const RATES: [(f64, f64); 3] = [(503.31648, 335.54432), (40.96, 81.92), (409.6, 204.8)];

#[test]
fn the_score_follows_the_formula_of_the_tool() {
    let score = scored(RATES, |_, f| f).score.unwrap();
    let close = |points: &Points, to: f64| (points.value.unwrap() / to - 1.0).abs() < 0.02;
    assert!(close(&score.read, 0.1 * 503.3 + 40.96 + 409.6), "{score:?}");
    assert!(close(&score.write, 0.1 * 335.5 + 81.92 + 204.8), "{score:?}");
    let total = 0.15 * 335.5 + 0.1 * 503.3 + 2.0 * 40.96 + 81.92 + 204.8 + 1.5 * 409.6;
    assert!(close(&score.total, total), "{score:?}");
    let [least, most] = score.total.range.unwrap();
    assert!(least <= score.total.value.unwrap() && score.total.value.unwrap() <= most);
}

#[test]
fn an_invalid_number_withholds_its_scores() {
    // The fourth is the write of 4K.
    let results = scored(RATES, |i, f| if i == 3 { Fixture { errors: 1, ..f } } else { f });
    let score = results.score.unwrap();
    assert!(score.read.value.is_some() && score.write.value.is_none() && score.total.value.is_none());
    assert_eq!(score.write.withheld.as_deref(), Some("no number for 4K write"));
    assert_eq!(results.rows[1].write.as_ref().map(|c| (c.value, c.verdict)), Some((None, Verdict::Invalid)));
}

#[test]
fn a_relabelled_number_keeps_its_score_with_a_lower_verdict() {
    let results = scored(RATES, |i, f| {
        if i == 0 { Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..f } } else { f }
    });
    let score = results.score.unwrap();
    assert_eq!((score.read.verdict, score.total.verdict), (Verdict::Suspect, Verdict::Suspect));
    assert!(score.read.value.is_some());
}
