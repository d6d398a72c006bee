//! Compares layers: the same work at each layer of one place, fathom's counts next to those of the device, and the cost of each layer
//! over the one below.

use super::interfaces::{checks_acting_on, refusals};
use super::{Conclusion, Question};
use crate::case::{Case, CaseRun, share};
use crate::checks::evidence;
use crate::deductions;
use crate::findings::CaseAnswers;
use crate::verdict::Judged;
use model::figures::{IoTotals, LayerDifference, LayerRow, Layers, OperationFigures};
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::job::Kind;
use model::plan::{ComparedLayer, LayerComparison};
use model::record::Record;
use model::report::{Deduction, Figures, Measured};
use model::study::Studied;
use model::units::{show_bytes, show_count, show_counted, show_share};
use stats::intervals;

/// Findings that rows through the page cache are expected to have. Memory serves their operations, so fathom
/// measures neither the device nor its queue, and the CPU is the limit.
const EXPECTED_CHECKS: &[CheckId] =
    &[CheckId::A01, CheckId::A09, CheckId::A16, CheckId::B05, CheckId::B06, CheckId::B07, CheckId::D06];
/// Below this share of fathom's rate, the device did next to nothing.
const NEXT_TO_NOTHING: f64 = 0.01;

impl Question for LayerComparison {
    fn conclude(&self, judged: &Judged) -> Studied {
        let rows = self.layers.iter().filter_map(|layer| build_row(self, layer, judged));
        let missing = self.missing.iter().cloned().chain(refusals(judged.record));
        Layers { rows: rows.collect(), missing: missing.map(|m| m.to_string()).collect() }.into()
    }

    fn is_expected(&self, _record: &Record, answered: &[CaseAnswers], finding: &Checked) -> bool {
        let cached: Vec<&str> = self
            .layers
            .iter()
            .filter_map(|layer| answered.get(result_of(layer, answered)?))
            .filter(|a| !a.case.stream.cache.is_direct())
            .map(|a| a.case.name.as_str())
            .collect();
        finding.outcome == Outcome::Finding
            && finding.severity > Some(Severity::Invalidates)
            && EXPECTED_CHECKS.contains(&finding.id)
            && finding.about.iter().all(|name| cached.contains(&name.as_str()))
    }

    fn why_expected(&self) -> &'static str {
        "about rows through the page cache do not count for the verdict, because `fathom layers` compares these rows with the device"
    }
}

impl Conclusion for Layers {
    /// Returns the deductions from independent jobs, and the effects of the page cache.
    fn deduce(&self, judged: &Judged) -> Vec<Deduction> {
        let of_row = |row: &LayerRow| deduce_from_row(row, judged.results.get(row.result)?);
        deductions::deduce_from_jobs(judged).into_iter().chain(self.rows.iter().filter_map(of_row)).collect()
    }
}

fn build_row(comparison: &LayerComparison, layer: &ComparedLayer, judged: &Judged) -> Option<LayerRow> {
    let Judged { answered, results, counted_checks, .. } = *judged;
    let at = result_of(layer, answered)?;
    let (case, result) = (&answered.get(at)?.case, results.get(at)?);
    let tool_even_if_invalid = pace_of_tool(result);
    let tool = tool_even_if_invalid.filter(|_| !result.void);
    let with_sync = result.ledger.as_ref().and_then(|l| l.write.as_ref()).and_then(|write| {
        let tops: Option<Vec<IoTotals>> =
            write.layers.iter().filter(|e| e.step == 0).map(|e| e.with_sync).collect();
        tops?.into_iter().reduce(|a, b| IoTotals {
            ios: a.ios.saturating_add(b.ios),
            bytes: a.bytes.saturating_add(b.bytes),
            merges: Some(a.merges.unwrap_or(0).saturating_add(b.merges.unwrap_or(0))),
            ms: Some(a.ms.unwrap_or(0).saturating_add(b.ms.unwrap_or(0))),
        })
    });
    let below = layer.below.and_then(|b| comparison.layers.get(b));
    let against = below.and_then(|b| {
        let other = result_of(b, answered)?;
        compare_with_lower(&b.name, other, result, results.get(other)?)
    });
    Some(LayerRow {
        name: layer.name.clone(),
        work: layer.work.clone(),
        result: at,
        tool,
        tool_even_if_invalid,
        iops_interval: tool.and(result.total.as_ref()?.iops_interval),
        latency_interval_ns: tool.and_then(|_| latency_interval(case)),
        device: tool_even_if_invalid.and_then(|t| pace_of_device(case, t.iops)),
        device_with_sync: with_sync,
        against,
        findings: checks_acting_on(result, counted_checks).collect(),
    })
}

/// Returns the index of a layer's result; `None` if the layer has no result.
fn result_of(layer: &ComparedLayer, answered: &[CaseAnswers]) -> Option<usize> {
    answered.iter().position(|a| a.case.job_index == layer.job)
}

/// Returns the rate, mean operation size and mean latency that fathom measured, even if a finding
/// invalidates the number; `None` if no operation completed.
fn pace_of_tool(result: &Measured) -> Option<OperationFigures> {
    let total = result.total.as_ref().filter(|t| t.iops > 0.0)?;
    let parts: Vec<&Figures> = [&result.read, &result.write].into_iter().flatten().collect();
    let ops: f64 = parts.iter().map(|f| f.ops as f64).sum();
    let time: f64 = parts.iter().map(|f| f.ops as f64 * f.latency_ns.mean).sum();
    Some(OperationFigures {
        iops: total.iops,
        bytes: Some(total.mb_per_s * 1e6 / total.iops),
        latency_ns: (ops > 0.0).then(|| time / ops),
    })
}

/// Returns the 95 % interval of the mean latency in ns, computed from the mean of each run; `None`
/// if a run moved no data, or with too few runs.
fn latency_interval(case: &Case) -> Option<[f64; 2]> {
    let mean_ns = |ran: &CaseRun| {
        let latencies =
            || Kind::MOVING.iter().filter_map(|kind| ran.stream.kinds.get(kind)).map(|k| &k.latency);
        let ops: f64 = latencies().map(|h| h.count() as f64).sum();
        (ops > 0.0).then(|| latencies().map(|h| h.sum_ns() as f64).sum::<f64>() / ops)
    };
    intervals::mean(&case.runs.iter().map(mean_ns).collect::<Option<Vec<f64>>>()?)?.interval
}

/// Returns the rate, mean request size and mean latency of the topmost devices in the directions of the case;
/// `None` if the counters of the devices are unknown. Both the counters and the issued operations include
/// warm-up and drain, so their ratio also applies to the window.
fn pace_of_device(case: &Case, tool_iops: f64) -> Option<OperationFigures> {
    let counted = case.device_io().ok()?;
    let issued = case.issued_total().ops as f64;
    let flows = [(Kind::Read, counted.read), (Kind::Write, counted.write)];
    let done =
        flows.into_iter().filter(|(kind, _)| case.does(*kind)).map(|(_, f)| f).reduce(|a, b| a.plus(&b))?;
    let per_request = |n: f64| (done.ios > 0).then(|| n / done.ios as f64);
    (issued > 0.0).then(|| OperationFigures {
        iops: tool_iops * done.ios as f64 / issued,
        bytes: per_request(done.bytes as f64),
        // The kernel counts whole ms, so a sum of zero shows nothing about a request.
        latency_ns: per_request(done.ms as f64 * 1e6).filter(|ns| *ns > 0.0),
    })
}

/// Returns the mean ratio of the upper layer's rate to the lower layer's rate. Each ratio is computed
/// within a round, so that a slow drift of the device affects both rates. `None` if a finding
/// invalidates one of the layers, or without a common round.
fn compare_with_lower(
    name: &str,
    other: usize,
    upper: &Measured,
    lower: &Measured,
) -> Option<LayerDifference> {
    if upper.void || lower.void {
        return None;
    }
    let ratio = |run: &model::report::RunFigures| {
        let below = lower.runs.iter().find(|l| l.run == run.run).filter(|l| l.iops > 0.0)?;
        Some(run.iops / below.iops)
    };
    let mean = intervals::mean(&upper.runs.iter().filter_map(ratio).collect::<Vec<_>>())?;
    Some(LayerDifference { name: name.into(), result: other, factor: mean.value, interval: mean.interval })
}

fn deduce_from_row(row: &LayerRow, result: &Measured) -> Option<Deduction> {
    let phase = result.job.phases.get(result.phase as usize)?;
    let stream = phase.streams.get(result.stream as usize)?;
    let (tool, device) = (row.tool?, row.device?);
    let who = format!("{} does {} {} a second", row.name, show_count(tool.iops), row.work);
    let mut numbers = evidence([("iops", tool.iops), ("device_iops", device.iops)]);
    let sentence = if stream.cache.is_direct() {
        return None;
    } else if !stream.access.writes() {
        if share(device.iops, tool.iops) >= NEXT_TO_NOTHING {
            return None;
        }
        format!("{who}, and the device {}: memory answers, not the storage.", show_count(device.iops))
    } else {
        let (late, issued) = (row.device_with_sync?, result.ledger.as_ref()?.write.as_ref()?.issued);
        let size = late.bytes.checked_div(late.ios).unwrap_or(0);
        numbers.extend(evidence([
            ("writes", issued.ios as f64),
            ("device_writes_with_sync", late.ios as f64),
            ("device_write_bytes", size as f64),
        ]));
        format!(
            "{who}, and the device does {} a second. After the final syncs, {} of {} had reached the device \
             as {} of {}: {} of the bytes.",
            show_count(device.iops),
            show_counted(issued.ios, "write"),
            show_bytes(issued.bytes.checked_div(issued.ios).unwrap_or(0)),
            show_counted(late.ios, "request"),
            show_bytes(size),
            show_share(share(late.bytes as f64, issued.bytes as f64))
        )
    };
    Some(Deduction { name: "what the page cache does".into(), sentence, evidence: numbers })
}

#[cfg(test)]
use crate::{Judging, exit_code, fixture, fixture::Fixture, judge};

/// A disk, its file system, and the page cache: five rounds of reads, and writes that stayed in memory.
#[cfg(test)]
fn stacked(change: impl Fn(&mut Vec<Fixture>)) -> Record {
    use model::job::Cache::Buffered;
    let named = |name: &str, fixture: Fixture| Fixture { name: name.into(), block_bytes: 8192, ..fixture };
    let cached =
        Fixture { cache: Buffered, delivered: 0.0, depth_seen: 0.95, ops: 300_000, ..Fixture::honest() };
    let late =
        Fixture { cache: Buffered, delivered: 0.5, merged: 25, ops: 20_000, ..Fixture::honest_write() };
    let mut fixtures = vec![
        named("vda", Fixture::honest()),
        named("direct", Fixture { ops: 9_000, ..Fixture::honest() }),
        named("buffered", Fixture { cpu_share: 1.0, ..cached }),
        named("late", late),
    ];
    change(&mut fixtures);
    let mut record = fixture::together(&fixtures);
    let layer = |job, name: &str, below, warm| ComparedLayer {
        job,
        name: name.into(),
        work: "random reads".into(),
        below,
        warm,
        stored: false,
    };
    let layers = vec![
        layer(0, "vda", None, false),
        layer(1, "ext4 direct", Some(0), false),
        layer(2, "ext4 buffered", Some(1), true),
        layer(3, "ext4 buffered", Some(1), false),
    ];
    record.header.plan.study = LayerComparison { layers, missing: Vec::new() }.into();
    record
}

#[cfg(test)]
fn table(record: &Record) -> Layers {
    layers_of(&judge(record, &Judging::default()))
}

#[cfg(test)]
fn layers_of(report: &model::report::Report) -> Layers {
    report.study.layers().unwrap().clone()
}

#[test]
fn each_layer_has_device_counts_and_a_ratio_to_the_layer_below() {
    let rows = table(&stacked(|_| {})).rows;
    let lowest = &rows[0];
    let (tool, device) = (lowest.tool.unwrap(), lowest.device.unwrap());
    assert!((tool.iops - 10_000.0).abs() < 1e-6 && (device.iops - 10_000.0).abs() < 1e-6);
    assert_eq!((tool.bytes.map(f64::round), device.bytes), (Some(8192.0), Some(8192.0)));
    assert!(lowest.against.is_none() && device.latency_ns < tool.latency_ns);
    let ([low, high], mean) = (lowest.latency_interval_ns.unwrap(), tool.latency_ns.unwrap());
    assert!(low <= mean * 1.001 && mean <= high * 1.001 && low > 0.9 * mean, "{low} {mean} {high}");
    let cost = rows[1].against.as_ref().unwrap();
    assert_eq!((cost.name.as_str(), cost.result), ("vda", 0));
    assert!((cost.factor - 0.9).abs() < 1e-9 && cost.interval.is_some());
    let gain = rows[2].against.as_ref().unwrap();
    assert!((gain.factor - 300.0 / 9.0).abs() < 1e-6);
    assert_eq!(rows[2].device.map(|d| (d.iops, d.bytes)), Some((0.0, None)));
    let late = rows[3].device_with_sync.unwrap();
    assert_eq!(late.bytes / late.ios, 25 * 8192);
}

#[test]
fn runs_are_compared_within_their_round() {
    // Both drift by the same factor from round to round, so the ratio is constant.
    let mut record = stacked(|_| {});
    for run in &mut record.runs {
        let window = 1_000_000_000 * (1 + u64::from(run.start.repeat));
        run.end.as_mut().unwrap().streams[0].window_ns = window;
    }
    let cost = table(&record).rows[1].against.clone().unwrap();
    let [low, high] = cost.interval.unwrap();
    assert!((cost.factor - 0.9).abs() < 1e-9 && high - low < 1e-9, "{cost:?}");
}

#[test]
fn the_effect_of_the_page_cache_is_reported_with_both_counts() {
    let all = judge(&stacked(|_| {}), &Judging::default()).deductions;
    let sentences: Vec<&str> =
        all.iter().filter(|d| d.name == "what the page cache does").map(|d| d.sentence.as_str()).collect();
    assert_eq!(sentences.len(), 2, "{sentences:?}");
    assert!(sentences[0].contains("300,000 random reads a second, and the device 0"), "{}", sentences[0]);
    assert!(
        sentences[1].contains("requests of 200 KiB") && sentences[1].contains("100 % of the bytes"),
        "{}",
        sentences[1]
    );
}

#[test]
fn the_cache_is_expected_in_its_own_rows_and_nowhere_else() {
    let honest = judge(&stacked(|_| {}), &Judging::default());
    let a01 = honest.checks.iter().find(|f| f.id == CheckId::A01 && f.outcome == Outcome::Finding).unwrap();
    assert!(a01.accepted && a01.about == ["buffered"]);
    assert!(
        honest.notes.iter().any(|n| n.contains("A01") && n.contains("do not count")),
        "{:?}",
        honest.notes
    );
    assert_eq!(honest.verdict, model::report::Verdict::Valid, "{}", honest.verdict_reason);
    let leaking = stacked(|fixtures| fixtures[1].delivered = 0.0);
    let report = judge(&leaking, &Judging::default());
    assert!(report.counts.sentence.as_ref().is_some_and(|s| s.contains("1 suspect")), "{:?}", report.counts);
    assert!(report.checks.iter().any(|f| f.id == CheckId::A01 && !f.accepted && f.about == ["direct"]));
    let rows = layers_of(&report).rows;
    assert!(rows[1].findings.contains(&CheckId::A01) && rows[2].findings.is_empty(), "{rows:?}");
    let mut headline = leaking;
    headline.header.plan.headline = 1;
    assert_eq!(exit_code(&judge(&headline, &Judging::default())), 1);
}

#[test]
fn invalid_rows_have_no_number_and_no_ratio() {
    let rows = table(&stacked(|fixtures| fixtures[1].errors = 1)).rows;
    assert!(rows[1].tool.is_none() && rows[1].against.is_none() && rows[1].iops_interval.is_none());
    assert!(rows[1].tool_even_if_invalid.is_some(), "what was done is shown all the same");
    assert!(rows[2].tool.is_some() && rows[2].against.is_none());
}

#[test]
fn a_forged_stack_has_fewer_rows_and_does_not_panic() {
    let mut record = stacked(|_| {});
    let model::study::Study::Layers(comparison) = &mut record.header.plan.study else { panic!() };
    comparison.layers[0].job = 99;
    comparison.layers[2].below = Some(77);
    let rows = table(&record).rows;
    assert_eq!(rows.len(), 3);
    assert!(rows[0].against.is_none() && rows[1].against.is_none());
}
