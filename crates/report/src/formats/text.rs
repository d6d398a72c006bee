//! The format `text`: what an engineer reads first, and pastes.
//!
//! For: the verdict, the number under its true name, what limits it, the table, the findings, and what could not be checked.
//! Not for: machines to read; that is `json`.

use super::course;
use crate::Style;
use crate::prose::prose;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use model::check_id::CheckId;
use model::finding::{Finding, Outcome, Severity};
use model::report::{Ending, Figures, Headline, Latency, Measured, Report, Verdict};
use model::study::Studied;
use model::sweep::Sweep;
use model::units::{MIB, show_bytes, show_count, show_ns, show_rate, show_share};
use std::path::Path;

/// One rule below the headings: frames cost columns, and pasted text has few.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));
/// Change of a rate by the final sync from which it is worth a line; the JSON always has it.
const WORTH_SAYING: f64 = 0.01;
/// Most results of which a finding is told each: those of `--profile mix`.
const MANY: usize = 12;
/// Headings of the table. The two last say what the topmost device saw of it.
const HEADINGS: [&str; 11] =
    ["test", "MB/s", "MiB/s", "IOPS", "±95 %", "p50", "p99", "p99.9", "depth", "device IOPS", "limited by"];

pub(crate) fn render(report: &Report, style: Style) -> Vec<u8> {
    let mut out = Page::new(style.colour);
    out.head(report);
    match &report.study {
        Studied::Layers(layers) => super::layers::show(&mut out, layers),
        Studied::Limit(curve) => super::limit::show(&mut out, curve),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => super::pts::show(&mut out, report, sweep),
        Studied::Sweep(sweep) if sweep.is_in_order() => super::iops::show(&mut out, report, sweep),
        Studied::Sweep(sweep) => super::sweep::show(&mut out, sweep, report),
        Studied::Interfaces(api) => super::api::show(&mut out, api),
        Studied::Jobs => out.table(&report.results),
        Studied::Profile(card) => {
            out.table(&report.results);
            super::card::show(&mut out, card);
        }
    }
    if let Some(against) = &report.against {
        super::against::show(&mut out, against);
    }
    if style.course {
        report.results.iter().for_each(|r| out.course(r));
    }
    // Of hundreds of rows only what is worth reading; the JSON has it all.
    let less = matches!(report.study, Studied::Interfaces(_)).then(|| super::api::worth_reading(report));
    if less.is_none() {
        out.deductions(report);
    }
    if style.ledger {
        super::ledger::show(&mut out, &report.results);
    }
    let shown = less.as_ref().unwrap_or(report);
    out.findings(shown);
    out.foot(shown);
    out.into_bytes()
}

/// Text under way.
pub(crate) struct Page {
    text: String,
    colour: bool,
}

/// A table with one rule below its headings; the first and the last column are words, and numbers stand to the right.
pub(crate) fn ruled(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(RULED).set_header(headings.iter().copied());
    for (i, column) in table.column_iter_mut().enumerate() {
        let left = i == 0 || i + 1 == headings.len();
        column.set_padding((0, 1));
        column.set_cell_alignment(if left { CellAlignment::Left } else { CellAlignment::Right });
    }
    table
}

impl Page {
    pub(crate) fn new(colour: bool) -> Self {
        Self { text: String::new(), colour }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.text.into_bytes()
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// A paragraph broken at the width, its further lines indented.
    pub(crate) fn prose(&mut self, first: &str, indent: &str, text: &str) {
        self.text += &prose(first, indent, text);
    }

    pub(crate) fn table_of(&mut self, table: &Table) {
        for line in table.to_string().lines() {
            self.line(line.trim_end());
        }
    }

    pub(crate) fn paint(&self, text: &str, code: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn head(&mut self, report: &Report) {
        let (word, code) = match report.verdict {
            Verdict::Valid => ("VALID", "1;32"),
            Verdict::Suspect => ("SUSPECT", "1;33"),
            Verdict::Invalid => ("INVALID", "1;31"),
        };
        let verdict = self.paint(word, code);
        let number = self.paint(&headline(&report.headline, report), "1");
        if let Some(answer) = &report.answer {
            let word = self.paint(answer.word.word(), "1");
            self.prose(&format!("{word}  "), "  ", &answer.sentence);
        }
        // The first word is about all that stands below it, so how many hold comes before the one that is quoted.
        match &report.counts.sentence {
            Some(counted) => {
                self.prose(&format!("{verdict}  "), "  ", &format!("{counted}."));
                self.line(&format!("  {}: {number}", report.headline.name));
            }
            None => self.line(&format!("{verdict}  {}: {number}", report.headline.name)),
        }
        if report.verdict != Verdict::Valid {
            self.prose("  ", "  ", &report.verdict_reason);
        }
        match &report.ending {
            Ending::Complete => {}
            Ending::Interrupted => self.line("  Interrupted: what was measured until then is shown."),
            Ending::Failed(why) => self.prose("  ", "  ", &format!("Ended by an error: {why}.")),
            Ending::Cut => self
                .line("  The session has no end: fathom was killed. What was measured until then is shown."),
        }
        self.prose("  ", "  ", &format!("Limited by: {}. {}", report.limiter.name, report.limiter.sentence));
        self.line("");
    }

    fn table(&mut self, results: &[Measured]) {
        if results.is_empty() {
            return;
        }
        let mut table = ruled(&HEADINGS);
        for row in results.iter().flat_map(rows) {
            table.add_row(row);
        }
        self.table_of(&table);
        self.line("MB/s = 10^6 bytes per second, MiB/s = 2^20; latencies from hand-over to completion; - = too few to say.");
        for result in results.iter().filter(|r| !r.void) {
            self.open_loop(result);
            self.final_sync(result);
        }
        if let [only] = results {
            self.cost(only);
        }
        for result in results.iter().filter(|r| !r.void && r.renamed) {
            self.line(&format!("  {} is {}", result.name, result.true_name));
        }
        super::runs::show(self, results);
        self.line("");
    }

    /// In an open loop the table's latencies are not what the storage took: the parts of them.
    fn open_loop(&mut self, result: &Measured) {
        for (word, figures) in [("reads", &result.read), ("writes", &result.write), ("trims", &result.trim)] {
            let Some(figures) = figures else { continue };
            let (Some(service), Some(late)) = (&figures.service_ns, &figures.lateness_ns) else { continue };
            let text = format!(
                "{}, {word}: open loop, so latencies count from the intended start; service {}; lateness of the hand-over {}.",
                result.name,
                median_and_tail(service),
                median_and_tail(late)
            );
            self.prose("  ", "    ", &text);
        }
    }

    fn final_sync(&mut self, result: &Measured) {
        let (Some(with), Some(without)) = (&result.with_final_sync, &result.total) else { return };
        if with.iops > (1.0 - WORTH_SAYING) * without.iops {
            return;
        }
        let text = format!(
            "{}: with the sync after the last write ({}) in the time {} MB/s, {} IOPS.",
            result.name,
            show_ns(with.sync_ns),
            show_rate(with.mb_per_s),
            show_rate(with.iops)
        );
        self.prose("  ", "    ", &text);
    }

    fn cost(&mut self, result: &Measured) {
        let Some(cost) = &result.cost else { return };
        let mut text = format!(
            "An operation cost {} of CPU in user space, {} in the kernel, {} context switches",
            show_ns(cost.user_ns),
            show_ns(cost.system_ns),
            show_rate(cost.switches)
        );
        if let (Some(cycles), Some(instructions)) = (cost.cycles, cost.instructions) {
            text += &format!(", {} cycles, {} instructions", show_rate(cycles), show_rate(instructions));
        }
        if let Some(tool) = cost.tool_ns {
            text += &format!("; fathom's own loop takes {}", show_ns(tool));
        }
        self.prose("  ", "  ", &(text + "."));
    }

    fn course(&mut self, result: &Measured) {
        for line in course::lines(result) {
            self.line(&line);
        }
    }

    fn deductions(&mut self, report: &Report) {
        if report.deductions.is_empty() {
            return;
        }
        self.line("What the figures say");
        for d in &report.deductions {
            self.prose("  ", "    ", &format!("{}: {}", d.name, d.sentence));
        }
        self.line("");
    }

    fn findings(&mut self, report: &Report) {
        if report.findings.is_empty() {
            return;
        }
        let told = told(report);
        let of = |outcome| told.iter().filter(move |f| f.outcome == outcome);
        let all = report.results.len();
        // What any finding says of one load, or of one of many results, differs from the next in its numbers alone.
        let brief = of_many(report) || all > MANY;
        if of(Outcome::Finding).next().is_some() {
            self.line("Findings");
        }
        let mut findings = of(Outcome::Finding).peekable();
        while let Some(f) = findings.next() {
            let severity = f.severity.unwrap_or(Severity::Note);
            let code = match severity {
                Severity::Void => "1;31",
                Severity::Rename | Severity::Biased => "1;33",
                Severity::Note => "1",
            };
            let accepted = if f.accepted { ", accepted" } else { "" };
            let mark = self.paint(&format!("{} {} ({}{accepted})", f.id, f.name, severity.word()), code);
            let about = about(f, all);
            self.prose("  ", "      ", &format!("{mark}{about}: {}", f.sentence));
            // So does what a note says of the other results; the JSON has all of them.
            let mut alike: Vec<String> = Vec::new();
            while (severity == Severity::Note || brief)
                && let Some(next) = findings.next_if(|n| n.id == f.id && n.severity == f.severity)
            {
                alike.extend(next.about.iter().cloned());
            }
            if !alike.is_empty() {
                let more = alike.len().saturating_sub(if brief { MANY } else { alike.len() });
                let named = listed(&alike[..alike.len() - more]);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                self.prose("      also ", "           ", &(named + &more));
            }
            if !f.cure.is_empty() {
                self.prose("      -> ", "         ", &f.cure);
            }
        }
        if of(Outcome::NotChecked).next().is_some() {
            self.line("Not checked");
        }
        let mut unchecked = of(Outcome::NotChecked).peekable();
        // Checks that need the same thing to be seen have the same reason.
        let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
        while let Some(f) = unchecked.next() {
            let why = format!("{}: {}", about(f, all), f.sentence);
            let name = format!("{} {}", f.id, f.name);
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
            while brief && unchecked.next_if(|n| n.id == f.id).is_some() {}
        }
        for (why, names) in &reasons {
            self.prose("  ", "      ", &format!("{}{why}", names.join(", ")));
        }
        // A check that found something about one result did not hold, whatever it says of the others.
        let silent = |f: &&Finding| !told.iter().any(|g| g.id == f.id && g.outcome != Outcome::Holds);
        let mut held: Vec<CheckId> = of(Outcome::Holds).filter(silent).map(|f| f.id).collect();
        held.dedup();
        if !held.is_empty() {
            self.prose("Held  ", "      ", &CheckId::list(&held, " "));
        }
        if told.len() < report.findings.len() {
            self.line("What was found about other cells is in the JSON.");
        }
        self.line("");
    }

    fn foot(&mut self, report: &Report) {
        let m = &report.machine;
        let unknown = || "unknown".to_owned();
        let memory = m.memory_bytes.as_ref().map_or_else(|_| unknown(), |b| show_bytes(*b));
        let cpu = m.cpu.clone().unwrap_or_else(|_| unknown());
        self.prose(
            "Host    ",
            "        ",
            &format!("{}, {cpu}, {} CPUs, {memory}, {}", m.host, m.cpus, m.kernel),
        );
        let mut chains: Vec<String> = m.places.iter().map(model::machine::Place::chain).collect();
        chains.dedup();
        for chain in &chains {
            self.prose("Target  ", "        ", chain);
        }
        for note in &report.notes {
            self.prose("Note    ", "        ", note);
        }
        self.line(&format!("When    {}, fathom {}, {}", report.started, report.fathom.version, report.title));
        if !report.words.tags.is_empty() {
            self.prose("Tags    ", "        ", &report.words.tags.join(" "));
        }
        for note in &report.words.notes {
            self.prose("Said    ", "        ", &format!("{}: {}", note.at, note.text));
        }
        match &report.session {
            Some(session) => {
                self.line(&format!("Session {session}"));
                let id = Path::new(session).file_stem().unwrap_or_default().to_string_lossy();
                self.line(&format!("        (fathom show {id} judges and prints it again)"));
            }
            None => self.line("Session not kept"),
        }
    }
}

fn headline(headline: &Headline, report: &Report) -> String {
    let Some(value) = headline.value else { return "no number".into() };
    let of_grid = report.study.sweep().and_then(|s| s.winner.get(&s.works.first()?.name)).map(|c| c.runs);
    let runs = of_grid.or_else(|| report.results.iter().map(|r| r.runs.len()).max()).unwrap_or(0);
    let number = format!("{} {}", show_rate(value), headline.unit);
    if let Studied::Limit(curve) = &report.study {
        return match curve.promise.as_ref().map(|p| p.broken_iops) {
            Some(Some(missed)) => format!("{number}, missed at {}", show_count(missed as f64)),
            Some(None) => format!("{number}, and no load that was offered missed it"),
            None => number,
        };
    }
    if let Some([first, last]) = report.study.sweep().and_then(|s| s.rounds.as_ref()?.window) {
        return format!("{number} (mean of rounds {first} to {last})");
    }
    match headline.interval {
        Some([low, high]) => {
            format!("{number} (95 % interval {} to {} over {runs} runs)", show_rate(low), show_rate(high))
        }
        None if runs == 1 => format!("{number} (one run: no interval)"),
        None => format!("{number} ({runs} runs: no interval)"),
    }
}

/// `p50 180 us, p99 1.20 ms`.
fn median_and_tail(latency: &Latency) -> String {
    format!("p50 {}, p99 {}", percentile(latency, "50"), percentile(latency, "99"))
}

/// A percentile by its name, `-` where too few operations support it.
pub(crate) fn percentile(latency: &Latency, name: &str) -> String {
    let value = latency.percentiles.get(name).copied().flatten();
    value.map_or_else(|| "-".into(), |ns| show_ns(ns as f64))
}

/// A row per direction; a mix has a row for both together first.
fn rows(result: &Measured) -> Vec<[String; HEADINGS.len()]> {
    let parts: Vec<(&str, &Figures)> =
        [("read", &result.read), ("write", &result.write), ("trim", &result.trim)]
            .into_iter()
            .filter_map(|(w, f)| Some((w, f.as_ref()?)))
            .collect();
    let syncs = result.sync.as_ref().map(sync_row);
    // Without its article the longest of these fits the width.
    let limit = result.limiter.name.replace("the ", "");
    if result.void || parts.is_empty() {
        let mut row: [String; HEADINGS.len()] = std::array::from_fn(|_| "-".into());
        row[0].clone_from(&result.name);
        row[1] = if result.void { "void".into() } else { "none".into() };
        row[HEADINGS.len() - 1] = if result.void { String::new() } else { limit };
        return vec![row];
    }
    if let [(_, only)] = parts[..] {
        return [row(&result.name, only, device(result), limit)].into_iter().chain(syncs).collect();
    }
    let mut out = Vec::new();
    if let Some(t) = &result.total {
        let mut total: [String; HEADINGS.len()] = std::array::from_fn(|_| String::new());
        total[0].clone_from(&result.name);
        total[1] = show_rate(t.mb_per_s);
        total[2] = show_rate(t.mib_per_s);
        total[3] = show_rate(t.iops);
        total[4] = half_width(t.iops, t.iops_interval);
        total[9] = device(result);
        total[10] = limit;
        out.push(total);
    }
    out.extend(
        parts
            .iter()
            .map(|(word, figures)| row(&format!("  {word}s of it"), figures, String::new(), String::new())),
    );
    out.extend(syncs);
    out
}

/// The row of the calls that made writes stable: they move nothing, and share the depth of the writes.
fn sync_row(figures: &Figures) -> [String; HEADINGS.len()] {
    let mut cells = row("  syncs of it", figures, String::new(), String::new());
    for moved in [1, 2, 8] {
        cells[moved].clear();
    }
    cells
}

fn row(name: &str, f: &Figures, device: String, limit: String) -> [String; HEADINGS.len()] {
    let at = |p: &str| percentile(&f.latency_ns, p);
    [
        name.to_owned(),
        show_rate(f.mb_per_s),
        show_rate(f.mib_per_s),
        show_rate(f.iops),
        half_width(f.iops, f.iops_interval),
        at("50"),
        at("99"),
        at("99.9"),
        show_rate(f.depth_mean),
        device,
        limit,
    ]
}

/// Half the interval in percent of the value.
pub(super) fn half_width(value: f64, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) if value > 0.0 => show_share((high - low) / 2.0 / value),
        _ => "-".into(),
    }
}

/// What the topmost device completed per second and of which size, in the same time; from the runs that have it.
pub(crate) fn device(result: &Measured) -> String {
    // A device does not know streams: what it did for several at once is nobody's alone.
    if result.job.phases.get(result.phase as usize).is_some_and(|p| p.streams.len() > 1) {
        return "-".into();
    }
    let seen: Vec<_> = result.runs.iter().filter_map(|r| Some((r.iops, r.device?))).collect();
    let (issued, ios, bytes) =
        seen.iter().fold((0, 0, 0), |(i, o, b), (_, d)| (i + d.issued_ops, o + d.ios, b + d.bytes));
    if seen.is_empty() || issued == 0 {
        return "-".into();
    }
    // The device's counters span warm-up and drain as the issued operations do; their ratio carries over to the window.
    let iops =
        seen.iter().map(|(iops, _)| iops).sum::<f64>() / seen.len() as f64 * ios as f64 / issued as f64;
    if ios == 0 {
        return "0".into();
    }
    format!("{} x {}", show_count(iops), short_bytes(bytes / ios))
}

/// A mean size in few letters: `4K`, `1023K`, `1M`.
pub(super) fn short_bytes(bytes: u64) -> String {
    match bytes {
        b if b >= MIB && b.is_multiple_of(MIB) => format!("{}M", b / MIB),
        b if b >= 10 << 10 => format!("{:.0}K", b as f64 / 1024.0),
        b if b >= 1 << 10 => format!("{:.1}K", b as f64 / 1024.0).replace(".0K", "K"),
        b => b.to_string(),
    }
}

/// The findings that are told: of a grid those about its best cells, and of these only about these.
fn told(report: &Report) -> Vec<Finding> {
    let Some(sweep) = report.study.sweep().filter(|s| !s.is_in_order()) else {
        return report.findings.clone();
    };
    let best = sweep.winner.values().chain(sweep.cheapest.values());
    let names: Vec<&str> = best.filter_map(|c| Some(report.results.get(c.result?)?.name.as_str())).collect();
    let mut out = Vec::new();
    for finding in &report.findings {
        let about: Vec<String> =
            finding.about.iter().filter(|a| names.contains(&a.as_str())).cloned().collect();
        if !about.is_empty() {
            out.push(Finding { about, ..finding.clone() });
        }
    }
    out
}

/// Whether results are many of one kind, so that a finding says the same of each with other numbers.
fn of_many(report: &Report) -> bool {
    matches!(report.study, Studied::Limit(_)) || report.study.sweep().is_some_and(Sweep::is_in_order)
}

/// Which results a finding is about, where not all.
fn about(finding: &Finding, all: usize) -> String {
    match finding.about.len() {
        0 => String::new(),
        n if n == all && all > 1 => String::new(),
        n if n > 3 => format!(" [{} and {} more]", listed(&finding.about[..2]), n - 2),
        _ if all == 1 => String::new(),
        _ => format!(" [{}]", listed(&finding.about)),
    }
}

/// Names in a row; those with commas of their own are told apart otherwise.
fn listed(names: &[String]) -> String {
    names.join(if names.iter().any(|n| n.contains(',')) { "; " } else { ", " })
}
