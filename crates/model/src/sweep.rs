//! The sweep: the same work at every setting of a grid, the measure that ranks the cells, and the result.
//!
//! A work is an order and direction of operations, such as `randread`, or an access specification.
//! Only cells of the same work compete with each other.
//!
//! The crate `analysis` chooses the next cell and the winner; [`crate::spec::axes`] parses a grid.

use crate::distinct;
use crate::figures::{Estimate, Snia};
use crate::finding::CheckId;
use crate::job::{Cache, Sizes};
use crate::units::{show_bytes, show_count, show_ns, show_rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Default of `--tolerance`, as a share: a setting that is faster than the winner by at most this share counts as
/// equally fast.
pub const TOLERANCE: f64 = 0.05;

/// Returns the tolerance of sessions of earlier versions, which did not store it.
fn earlier_tolerance() -> f64 {
    0.03
}

/// Value of [`Sweep::search`] for a sweep that measures its cells in the order of the grid.
pub const IN_ORDER: &str = "in order";

/// The grid of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// Name of the preset; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Settings that are measured. Two cells share a job if their settings mean the same on this
    /// system.
    pub cells: Vec<Cell>,
    /// Settings that are not measured.
    pub skipped: Vec<Skipped>,
    /// Settings of well-known programs, with which the best setting is compared.
    #[serde(rename = "yardsticks")]
    pub baselines: Vec<Baseline>,
    /// The rule that chooses the next cell to measure.
    pub search: Search,
    /// Tolerance: a cell that may be faster than the winner by at most this share counts as equally fast.
    #[serde(default = "earlier_tolerance")]
    pub tolerance: f64,
    /// Key: a work without its target (`randread`). Value: the measure that ranks the cells of this work. A work without
    /// an entry is ranked by bytes per second.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, Measure>,
}

/// A setting that is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Block size, depth, threads and other axes of the cell.
    pub setting: Setting,
    /// Index of the job that measures this setting.
    pub job: usize,
}

/// A setting that is not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// Block size, depth, threads and other axes of the cell.
    #[serde(flatten)]
    pub setting: Setting,
    /// The reason, without a final period.
    pub why: String,
}

/// A setting of a well-known program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Name of the program: `cp`.
    pub name: String,
    /// Block size, depth and other axes that imitate the program.
    pub setting: Setting,
    /// Index of the job that measures this setting.
    pub job: usize,
}

/// The rule that chooses the next cell to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Search {
    /// Measures every cell as often as the plan states.
    Exhaustive,
    /// Measures every cell once or twice, briefly. Then measures the candidates for the best cell, until no cell
    /// may be faster than the winner by more than the tolerance, or the time is up.
    Adaptive {
        /// Total time from the start of the session, in ns.
        budget_ns: u64,
    },
    /// Measures the cells in the order of the grid, without a search, until this condition holds.
    InOrder(Until),
}

/// The end of a sweep that measures its cells in the order of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The sweep measures each cell once. After a cell that completed at most [`least_iops`] operations per second, it leaves out the cells
    /// that differ only in a larger block size.
    Slow,
    /// The sweep measures all cells in each round. Without `bytes`, it ends when the tracked cell has settled; with `bytes`, when this many
    /// bytes are written. It ends after `rounds_at_most` rounds at the latest.
    Rounds {
        /// Index of the job whose value is tracked.
        tracked: usize,
        /// The tracked value.
        variable: Variable,
        /// Number of written bytes after which the rounds end, settled or not; `None` if they end when the cell has settled.
        bytes: Option<u64>,
        /// Number of rounds after which the rounds end, settled or not.
        rounds_at_most: u32,
    },
}

/// The value of one cell that is tracked over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Variable {
    /// Operations per second.
    Iops,
    /// 10^6 bytes per second.
    MbPerS,
    /// Mean latency of an operation in ns.
    LatencyMeanNs,
}

/// Returns the number of operations per second at which the tool `iops` stops enlarging blocks: at
/// most one of four threads completes an operation within a second. Source: `iops` by Benjamin
/// Schweizer, <https://github.com/cxcv/iops>.
pub fn least_iops(workers: u32) -> u32 {
    (workers / 4).max(1)
}

impl Grid {
    /// Returns the measure that ranks the cells of a work; `None` for a work without cells or without an entry. Older sessions have no
    /// entries and always used bytes per second.
    pub fn measure_of(&self, work: &str) -> Option<Measure> {
        let cell = self.cells.iter().find(|cell| cell.setting.work() == work)?;
        self.measures.get(&cell.setting.work_on_any_target()).copied()
    }

    /// Returns the works in the order of the grid.
    pub fn works(&self) -> Vec<String> {
        works(&self.cells)
    }

    /// Returns the indices of the jobs of a work, each once.
    pub fn jobs_of(&self, work: &str) -> Vec<usize> {
        distinct(self.cells.iter().filter(|c| c.setting.work() == work).map(|c| c.job))
    }

    /// Returns the indices of the jobs of all cells, each once, in the order of the cells.
    pub fn jobs(&self) -> Vec<usize> {
        distinct(self.cells.iter().map(|c| c.job))
    }

    /// Returns the setting of a job: that of the job's first cell, or of its first baseline. `None`
    /// if the job measures neither.
    pub fn setting(&self, job: usize) -> Option<&Setting> {
        let cell = self.cells.iter().find(|c| c.job == job).map(|c| &c.setting);
        cell.or_else(|| {
            self.baselines.iter().find(|baseline| baseline.job == job).map(|baseline| &baseline.setting)
        })
    }
}

/// Returns the distinct works of `cells`, in the order of their first cells.
pub fn works(cells: &[Cell]) -> Vec<String> {
    distinct(cells.iter().map(|c| c.setting.work()))
}

/// The result of a sweep: `sweep` in the JSON of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sweep {
    /// `adaptive`, `exhaustive` or `in order`.
    pub search: String,
    /// Name of the preset; `None` without one.
    pub preset: Option<String>,
    /// Time in seconds from the start of the first run to the end of the last one.
    pub seconds: f64,
    /// Time budget of an adaptive search in seconds, from the start of the session; `None` for any
    /// other sweep.
    pub budget_seconds: Option<f64>,
    /// Tolerance: a cell that may be faster than the winner by at most this share counts as equally fast.
    #[serde(default = "earlier_tolerance")]
    pub tolerance: f64,
    /// Figures of every cell.
    pub cells: Vec<CellFigures>,
    /// Settings that were not measured, with the reason.
    pub skipped: Vec<Skipped>,
    /// The fastest cell of each work (`read`, `write`, ...) that has several cells. Its figures are
    /// from runs after the search had chosen it, if there are enough of them. A work is missing if a finding invalidates its
    /// winner. Empty if the cells were measured in order.
    pub winner: BTreeMap<String, CellFigures>,
    /// The cheapest cell of each work among those that are as fast as the winner: the one with the
    /// least memory, then the least CPU time. Empty if the cells were measured in order.
    pub cheapest: BTreeMap<String, CellFigures>,
    /// How the winner of each work was decided, and the conclusions.
    pub works: Vec<Work>,
    /// A cell that was measured repeatedly, to find out whether the target changed during the
    /// sweep; `None` if the cell has fewer than four runs, or if the cells were measured in order.
    pub reference: Option<Reference>,
    /// The target of a sweep that measured its cells in order; `None` for a search, or if no cell stores data.
    #[serde(default, rename = "place", skip_serializing_if = "Option::is_none")]
    pub target: Option<SweptTarget>,
    /// The rounds; `None` if the sweep was not measured in rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Rounds>,
}

/// The value of one setting of a sweep, as the history stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweptSetting {
    /// Name of the work, such as `read` or `randrw 70/30`.
    pub work: String,
    /// Path of the target that was measured with this setting; `None` unless targets are an axis of the grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// `8 x 512K direct, io_uring`.
    pub setting: String,
    /// The measure that ranks the settings.
    #[serde(rename = "by")]
    pub measure: Measure,
    /// Mean of the measure over the runs, in the unit of the measure; `None` if a finding invalidates the mean.
    pub value: Option<f64>,
    /// Ids of the checks that invalidate the value.
    #[serde(default, rename = "void_by", skip_serializing_if = "Vec::is_empty")]
    pub invalidated_by: Vec<CheckId>,
    /// Whether the sweep names this setting the best for its work and target.
    pub best: bool,
}

/// Devices by settings, for one work: the value of each device at every setting that is the best on at least one
/// device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BestSettings {
    /// Name of the work, such as `read` or `randrw 70/30`.
    pub work: String,
    /// The measure of all values.
    #[serde(rename = "by")]
    pub measure: Measure,
    /// Each setting that is the best on one of the devices: `8 x 512K direct, io_uring`.
    pub settings: Vec<String>,
    /// One row for each device or target.
    pub rows: Vec<DeviceBySettings>,
}

/// A device at several settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceBySettings {
    /// Name of the device or path of the target.
    pub name: String,
    /// Index of the device's best setting in the `settings` of the table; `None` if the device has no best setting,
    /// or if the value of that setting is unknown or invalid.
    pub best: Option<usize>,
    /// The value at each setting, in the order of the table's `settings`; `None` if the device was not measured
    /// at the setting, or if the value is invalid.
    pub values: Vec<Option<f64>>,
    /// Ids of the checks that invalidate the value of the best setting, or of all settings if no setting is the best.
    #[serde(default, rename = "void_by", skip_serializing_if = "Vec::is_empty")]
    pub invalidated_by: Vec<CheckId>,
}

impl BestSettings {
    /// Returns a table for each work and measure. `devices` has the name and the measured settings of
    /// each device.
    pub fn tables(devices: &[(String, Vec<SweptSetting>)]) -> Vec<Self> {
        let all = || devices.iter().flat_map(|(_, settings)| settings);
        let works = distinct(all().map(|one| (one.work.clone(), one.measure)));
        let table = |(work, measure): (String, Measure)| {
            let is_of_table = |one: &&SweptSetting| (&one.work, one.measure) == (&work, measure);
            let settings =
                distinct(all().filter(|one| one.best).filter(is_of_table).map(|one| one.setting.clone()));
            let row = |(device, measured): &(String, Vec<SweptSetting>)| {
                let mine = || measured.iter().filter(is_of_table);
                let best = mine().find(|one| one.best);
                let value = |setting: &String| mine().find(|one| one.setting == *setting)?.value;
                let is_reason = |one: &&SweptSetting| best.is_none_or(|best| *one == best);
                let mut invalidated_by: Vec<CheckId> =
                    mine().filter(is_reason).flat_map(|one| one.invalidated_by.clone()).collect();
                invalidated_by.sort_unstable();
                invalidated_by.dedup();
                Some(DeviceBySettings {
                    name: mine().next()?.target.clone().unwrap_or_else(|| device.clone()),
                    best: best
                        .filter(|best| best.value.is_some())
                        .and_then(|best| settings.iter().position(|setting| *setting == best.setting)),
                    values: settings.iter().map(value).collect(),
                    invalidated_by,
                })
            };
            let rows = devices.iter().filter_map(row).collect();
            Self { work, measure, settings, rows }
        };
        works.into_iter().map(table).collect()
    }
}

/// The target of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweptTarget {
    /// Path of the file or device; for a file that fathom created, its directory.
    pub path: String,
    /// Size in bytes when measured; for a file that fathom created, the size that it reached.
    pub bytes: u64,
}

/// Rounds of all cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rounds {
    /// The cell with the tracked value.
    pub tracked: Setting,
    /// The tracked value.
    pub variable: Variable,
    /// The tracked value in each complete round; `None` if the run failed, or the value is unknown.
    pub by_round: Vec<Option<f64>>,
    /// Number of rounds after which the rounds end, settled or not.
    pub at_most: u32,
    /// Number of written bytes after which the rounds end, settled or not; `None` for no limit.
    #[serde(default)]
    pub bytes_wanted: Option<u64>,
    /// Bytes written in all rounds.
    pub bytes_written: u64,
    /// First and last round of the window, counted from 1. Figures of cells are means over the window. `None` with fewer
    /// than five rounds.
    pub window: Option<[u32; 2]>,
    /// Mean of the tracked value in the window; `None` without a window.
    pub window_mean: Option<f64>,
    /// The steady-state criterion of the SNIA for the values in the window; `None` without a window.
    pub rule: Option<Snia>,
}

impl Sweep {
    /// Returns the subject of a sentence about how the cells were measured: `The adaptive search`.
    pub fn describe_search(&self) -> String {
        if self.is_in_order() { "Measuring in order".into() } else { format!("The {} search", self.search) }
    }

    /// Returns whether the cells were measured in order, without a search.
    pub fn is_in_order(&self) -> bool {
        self.search == IN_ORDER
    }

    /// Returns the value of every measured setting, grouped by target: a single group unless
    /// targets are an axis of the grid. `invalidated_by` takes the index of a result and returns the
    /// checks that invalidate it.
    pub fn settings(&self, invalidated_by: impl Fn(usize) -> Vec<CheckId>) -> Vec<Vec<SweptSetting>> {
        let swept = |cell: &CellFigures| {
            let work = self.works.iter().find(|work| work.name == cell.setting.work())?;
            let winner = self.winner.get(&work.name).or_else(|| self.only_cell(&work.name));
            let best = winner.is_some_and(|winner| winner.setting == cell.setting);
            // The winner may have been measured again at the end.
            let figures = winner.filter(|_| best).unwrap_or(cell);
            let value = figures.value(work.measure)?;
            let invalidated_by = figures.result.map(&invalidated_by).unwrap_or_default();
            Some(SweptSetting {
                work: cell.setting.work_on_any_target(),
                target: cell.setting.target.clone(),
                setting: format!("{} {}", cell.setting.load(), cell.setting.access_path()),
                measure: work.measure,
                value: invalidated_by.is_empty().then_some(value),
                invalidated_by,
                best,
            })
        };
        let all: Vec<SweptSetting> = self.cells.iter().filter_map(swept).collect();
        let targets = distinct(all.iter().map(|one| one.target.clone()));
        let on = |target: Option<String>| all.iter().filter(|one| one.target == target).cloned().collect();
        targets.into_iter().map(on).collect()
    }

    /// Returns the only cell of a work; `None` if the work has several cells, or if its cell has no rate.
    pub fn only_cell(&self, work: &str) -> Option<&CellFigures> {
        let mut mine = self.cells.iter().filter(|c| c.setting.work() == work);
        mine.next().filter(|c| mine.next().is_none() && c.mib_per_s.is_some())
    }
}

/// Figures of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellFigures {
    /// Block size, depth, threads and other axes of the cell.
    #[serde(flatten)]
    pub setting: Setting,
    /// Rate in 2^20 bytes per second: geometric mean over runs, or arithmetic mean over rounds. A run counts all
    /// submitted bytes and the time until the last completion, or until the end of the final sync if writes went to
    /// memory. `None` if no run was complete.
    pub mib_per_s: Option<f64>,
    /// Rate in 10^6 bytes per second, computed like `mib_per_s`.
    pub mb_per_s: Option<f64>,
    /// Rate in operations per second, computed like `mib_per_s`.
    pub iops: Option<f64>,
    /// 95 % interval of `mib_per_s`; `None` with fewer than three runs, and for rounds, because rounds depend on each
    /// other.
    pub interval: Option<[f64; 2]>,
    /// 99th percentile of the latency in ns, as a mean over runs; `None` if there are too few
    /// operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p99_ns: Option<f64>,
    /// 95 % interval of the 99th percentile in ns; `None` with fewer than three runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p99_interval_ns: Option<[f64; 2]>,
    /// 95 % interval of the latency that ranks the cells, in ns; `None` if a rate ranks them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_interval_ns: Option<[f64; 2]>,
    /// Mean latency in ns; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_mean_ns: Option<f64>,
    /// Maximum latency in ns; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_max_ns: Option<u64>,
    /// Number of runs from which the figures are computed.
    pub runs: usize,
    /// Total size of the buffers in bytes.
    pub memory_bytes: u64,
    /// CPU time of the workers in ns per MiB (2^20 bytes); `None` if no worker reported it.
    pub cpu_ns_per_mib: Option<f64>,
    /// Index of the cell's result in the report; `None` without one.
    pub result: Option<usize>,
}

impl CellFigures {
    /// Returns the value of a measure in 10^6 bytes per second, operations per second or ns; `None`
    /// if unknown.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Iops => self.iops,
            Measure::Bandwidth => self.mb_per_s,
            Measure::P99 => self.latency_p99_ns,
            Measure::Latency => self.latency_mean_ns,
        }
    }

    /// Returns the 95 % interval of the value of a measure, in the same unit as [`Self::value`];
    /// `None` if there is no interval.
    pub fn interval_of(&self, measure: Measure) -> Option<[f64; 2]> {
        if measure.is_latency() {
            return self.latency_interval_ns;
        }
        // Convert the interval of MiB/s to the unit of the measure.
        let scale = self.value(measure)? / self.mib_per_s?;
        self.interval.map(|ends| ends.map(|end| end * scale))
    }

    /// Returns the CPU time of the workers divided by elapsed time: 1 for one CPU that was always
    /// busy. `None` if unknown.
    pub fn cpus(&self) -> Option<f64> {
        Some(self.cpu_ns_per_mib? * self.mib_per_s? / 1e9)
    }
}

/// The decision about the best cell of one work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Work {
    /// Name of the work, such as `read` or `randrw 70/30`.
    pub name: String,
    /// The measure that ranks the cells.
    #[serde(default, rename = "by")]
    pub measure: Measure,
    /// Conclusion of the search about the winner.
    #[serde(default)]
    pub chosen: Chosen,
    /// Whether no other cell can be faster than the winner by more than the tolerance, and the winner repeated its
    /// result.
    pub decided: bool,
    /// Upper bound on how much faster than the winner any other cell may be, as a share (95 % confidence). If a latency
    /// ranks the cells: how much lower the latency of any other cell may be. `None` without a winner, or if the noise
    /// between runs is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faster_at_most: Option<f64>,
    /// How the search ended, in a sentence.
    pub sentence: String,
    /// Cells that cannot be distinguished from the winner, starting with the one that is most
    /// likely to be faster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Setting>,
    /// Number of runs of all cells of this work.
    pub runs: usize,
    /// Noise between runs of one cell: the standard deviation of the logarithms of the rates, over
    /// all cells. It excludes single stalls, and effects on all cells of a round. `None` if no cell
    /// was repeated.
    pub spread: Option<f64>,
    /// The rate of the cheapest cell divided by the rate of the winner, with the 95 % interval of the
    /// ratio; `None` if the cheapest cell is the winner, or if one of the two has fewer than three runs.
    pub cheapest_by_winner: Option<Estimate>,
    /// Settings of well-known programs.
    #[serde(rename = "yardsticks")]
    pub baselines: Vec<BaselineLoss>,
    /// For each axis, the smallest value that no larger value beats by more than the tolerance. An
    /// axis is missing if only its largest value qualifies. Empty if runs of one cell differ by more than
    /// a tenth, if the winner did not repeat its result, or if a latency ranks the cells.
    pub knees: Vec<Knee>,
}

/// The conclusion of a search about the winner of a work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// No other cell is faster than the winner by more than the tolerance.
    Fastest,
    /// The winner is the best of the measured cells, but another cell may be faster by more than
    /// the tolerance.
    Tied,
    /// The runs do not decide: there are too few, the target changed during the sweep, or a finding
    /// invalidates the winner.
    #[default]
    CannotTell,
    /// There was no search: the work has one cell, or the cells were measured in order.
    NoChoice,
}

/// The setting of a well-known program, compared with the winner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Loss"))]
pub struct BaselineLoss {
    /// Name of the program: `cp`.
    pub name: String,
    /// Figures of the program's setting.
    pub cell: CellFigures,
    /// Rate of this setting divided by the winner's, with the 95 % interval; `None` if either rate has no interval.
    pub by_winner: Option<Estimate>,
}

/// The smallest value of an axis that no larger value beats by more than the tolerance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knee {
    /// `bs`, `depth`, `workers`, `targets` or `batch`.
    pub axis: String,
    /// The smallest value whose result is within the tolerance of the results of all larger values, with the other settings
    /// as in the winner.
    pub value: u32,
    /// The conclusion in a sentence.
    pub sentence: String,
}

/// The cell that was measured repeatedly, to find out whether the target changed during the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reference {
    /// Block size, depth, threads and other axes of the cell.
    pub setting: Setting,
    /// Number of runs of the cell.
    pub runs: usize,
    /// Change of the cell's rate over the whole sweep as a share, with its 95 % interval, from a line fitted to the
    /// logarithms of the rates.
    pub change: Estimate,
    /// Whether the target changed during the sweep: the whole interval of the change is beyond the
    /// tolerance.
    pub drifted: bool,
}

/// One setting of a grid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Bytes per operation; the largest size if `spec` names the work.
    pub block_bytes: u32,
    /// Operations in flight per worker on each target.
    pub depth: u32,
    /// Number of worker threads.
    pub workers: u32,
    /// Engine with its options, as typed: `io_uring:sqpoll=1`.
    pub engine: String,
    /// Cache mode of the target.
    pub cache: Cache,
    /// Order and direction: `read`, `randwrite`; empty if `spec` names the work.
    pub rw: String,
    /// Percentages of the directions, `70/30`, or the only direction, such as `write`; `None` if
    /// `rw` determines them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<String>,
    /// Number of operations submitted per call; `None` unless the grid sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// The preset's name for the cache mode: `unbuffered-sequential`; `None` without such a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Name of the access specification, such as `File Server`; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// Number of targets of each worker; `None` for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<u32>,
    /// Number of targets of the last worker; `None` if it has as many as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets_of_last: Option<u32>,
    /// Path of the target that is measured with this setting; `None` unless targets are an axis of the grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Offset of the tested region in bytes; `None` unless the grid sets it in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_bytes: Option<u64>,
    /// Offset of the tested region in percent of the target; `None` unless the grid sets it in
    /// percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_percent: Option<u32>,
}

impl Setting {
    /// Creates the setting of one worker with io_uring and direct I/O on one target.
    pub fn plain(rw: &str, block_bytes: u32, depth: u32) -> Self {
        let (engine, rw) = ("io_uring".into(), rw.into());
        Self { block_bytes, depth, workers: 1, engine, rw, ..Self::default() }
    }

    /// Returns the name of the work: `read`, `randrw 70/30`, `File Server`, or `read on /mnt/a` if
    /// targets are an axis. Cells of one work compete, so each target has its own best setting.
    pub fn work(&self) -> String {
        let name = self.work_on_any_target();
        match &self.target {
            Some(target) => format!("{name} on {target}"),
            None => name,
        }
    }

    /// Returns the name of the work without the target: `read`, `randrw 70/30`, `File Server`.
    pub fn work_on_any_target(&self) -> String {
        match (&self.spec, &self.mix) {
            (Some(spec), _) => spec.clone(),
            (None, Some(mix)) => format!("{} {mix}", self.rw),
            (None, None) => self.rw.clone(),
        }
    }

    /// Returns whether offsets are random; false for an access specification, which decides this for each line.
    pub fn is_random(&self) -> bool {
        self.spec.is_none() && self.rw.starts_with("rand")
    }

    /// Returns whether all operations are writes; false for an access specification, which decides this for each line.
    pub fn only_writes(&self) -> bool {
        let word = self.mix.as_ref().unwrap_or(&self.rw);
        self.spec.is_none() && matches!(word.as_str(), "write" | "randwrite")
    }

    /// Returns the number of queues of `depth` operations: one for each target of each worker.
    pub fn queues(&self) -> u64 {
        let each = u64::from(self.targets.unwrap_or(1));
        let last = self.targets_of_last.map_or(each, u64::from);
        u64::from(self.workers.saturating_sub(1)).saturating_mul(each).saturating_add(last)
    }

    /// Returns the total size of the buffers in bytes.
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.block_bytes).saturating_mul(u64::from(self.depth)).saturating_mul(self.queues())
    }

    /// Formats the operations in flight and their size: `8 x 512K`; `depth 8` for an access specification.
    pub fn load(&self) -> String {
        if self.spec.is_some() {
            return format!("depth {}", self.depth);
        }
        format!("{} x {}", self.depth, Sizes::Fixed(self.block_bytes).in_a_name())
    }

    /// Formats the settings that [`Self::load`] leaves out: `direct, io_uring, 4 workers`.
    pub fn access_path(&self) -> String {
        let mut words =
            vec![self.mode.clone().unwrap_or_else(|| self.cache.word().into()), self.engine.clone()];
        words.extend((self.workers > 1).then(|| format!("{} workers", self.workers)));
        words.extend(self.targets.map(|t| if t == 1 { "1 target".into() } else { format!("{t} targets") }));
        words.extend(self.targets_of_last.map(|t| format!("the last worker on {t}")));
        words.extend(self.batch.map(|b| format!("batch {b}")));
        words.extend(self.position().map(|at| format!("at {at}")));
        words.join(", ")
    }

    /// Formats the offset on the target: `25 %`, `4 GiB`; `None` if the grid sets none.
    pub fn position(&self) -> Option<String> {
        let percent = self.offset_percent.map(|p| format!("{p} %"));
        percent.or_else(|| self.offset_bytes.map(show_bytes))
    }

    /// Returns the setting without an offset on the target.
    #[must_use]
    pub fn at_no_position(&self) -> Self {
        Self { offset_bytes: None, offset_percent: None, ..self.clone() }
    }

    /// Formats the setting in one line: `read 8 x 512K direct, io_uring`.
    pub fn describe(&self) -> String {
        format!("{} {} {}", self.work(), self.load(), self.access_path())
    }
}

/// A number that ranks cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Operations per second.
    Iops,
    /// 10^6 bytes per second.
    #[default]
    Bandwidth,
    /// 99th percentile of the latency in ns.
    P99,
    /// Mean latency in ns.
    Latency,
}

impl Measure {
    /// All measures, with the word that `--by` accepts and its meaning.
    pub const WORDS: [(&'static str, Self, &'static str); 4] = [
        ("iops", Self::Iops, "operations per second"),
        ("bandwidth", Self::Bandwidth, "10^6 bytes per second"),
        ("p99", Self::P99, "99th percentile of latency, the lowest is the best"),
        ("latency", Self::Latency, "mean latency, the lowest is the best"),
    ];

    /// Returns the word that `--by` accepts.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, measure, _)| *measure == self).map_or("", |(word, ..)| word)
    }

    /// Returns the heading of a column with this measure.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Bandwidth => "MB/s",
            Self::P99 => "p99",
            Self::Latency => "mean latency",
        }
    }

    /// Whether lower is better.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::P99 | Self::Latency)
    }

    /// Formats how much better another cell is: `more than 3.0 % faster`, or for a latency `lower
    /// by more than 3.0 % in p99`.
    pub fn better_by(self, share: &str) -> String {
        if self.is_latency() {
            format!("lower by more than {share} in {}", self.heading())
        } else {
            format!("more than {share} faster")
        }
    }

    /// Formats a value with its unit: `78,912 IOPS`, `3,558 MB/s`, `85.3 us`.
    pub fn show(self, value: f64) -> String {
        if self.is_latency() { show_ns(value) } else { format!("{} {}", show_rate(value), self.heading()) }
    }

    /// Formats a value for a table whose title names the measure: a rate without its unit, a
    /// latency with its unit.
    pub fn show_in_table(self, value: f64) -> String {
        if self.is_latency() { show_ns(value) } else { show_rate(value) }
    }

    /// Formats a value for a cell of a map: like [`Self::show_in_table`], but a rate has no decimals.
    pub fn show_short(self, value: f64) -> String {
        if self.is_latency() { show_ns(value) } else { show_count(value) }
    }
}

#[test]
fn settings_are_described_in_the_usual_form() {
    let setting = Setting::plain("read", 512 << 10, 8);
    assert_eq!(setting.describe(), "read 8 x 512K direct, io_uring");
    assert_eq!(setting.memory_bytes(), 4 << 20);
    let spec = Setting {
        spec: Some("File Server".into()),
        rw: String::new(),
        targets: Some(3),
        targets_of_last: Some(1),
        workers: 2,
        ..setting.clone()
    };
    assert_eq!(
        spec.describe(),
        "File Server depth 8 direct, io_uring, 2 workers, 3 targets, the last worker on 1"
    );
    assert_eq!(spec.memory_bytes(), 4 * (4 << 20));
    let there = Setting {
        target: Some("/mnt/a".into()),
        offset_bytes: Some(1 << 30),
        ..Setting::plain("read", 512, 1)
    };
    assert_eq!(there.describe(), "read on /mnt/a 1 x 512 B direct, io_uring, at 1 GiB");
    let share = Setting { offset_percent: Some(25), ..there };
    assert_eq!(share.position(), Some("25 %".into()));
    let mixed = Setting { rw: "randrw".into(), mix: Some("70/30".into()), workers: 4, ..setting };
    assert_eq!(
        (mixed.work(), mixed.access_path()),
        ("randrw 70/30".into(), "direct, io_uring, 4 workers".into())
    );
    let only_writes = |rw: &str, mix: Option<&str>, spec: Option<&str>| {
        let [mix, spec] = [mix, spec].map(|text| text.map(Into::into));
        Setting { mix, spec, ..Setting::plain(rw, 4096, 1) }.only_writes()
    };
    assert!(only_writes("write", None, None) && only_writes("randwrite", None, None));
    assert!(only_writes("randrw", Some("write"), None), "a mix of nothing else");
    assert!(!only_writes("randrw", Some("70/30"), None) && !only_writes("randrw", Some("read"), None));
    assert!(!only_writes("read", None, None) && !only_writes("randrw", None, None));
    assert!(!only_writes("", None, Some("write")), "a name says nothing");
}

#[test]
fn each_device_has_its_best_setting_and_its_values_at_the_best_settings_of_others() {
    let one = |work: &str, setting: &str, value: f64, best: bool| SweptSetting {
        work: work.into(),
        target: None,
        setting: setting.into(),
        measure: Measure::Bandwidth,
        value: Some(value),
        invalidated_by: Vec::new(),
        best,
    };
    let void = |one: SweptSetting| SweptSetting { value: None, invalidated_by: vec![CheckId::D08], ..one };
    let fast = vec![one("read", "8 x 512K", 2000.0, true), one("read", "16 x 2M", 1900.0, false)];
    let slow = vec![
        one("read", "1 x 8K", 10.0, false),
        one("read", "16 x 2M", 300.0, true),
        one("write", "8 x 512K", 50.0, true),
    ];
    let disturbed = vec![void(one("read", "4 x 64K", 9.0, true)), one("read", "8 x 512K", 8.0, false)];
    let undecided = vec![one("read", "8 x 512K", 7.0, false)];
    let devices = [("nvme0n1", fast), ("sda", slow), ("sdb", disturbed), ("sdc", undecided)];
    let tables = BestSettings::tables(&devices.map(|(name, settings)| (name.into(), settings)));
    assert_eq!(tables.iter().map(|t| t.work.as_str()).collect::<Vec<_>>(), ["read", "write"]);
    assert_eq!(tables[0].settings, ["8 x 512K", "16 x 2M", "4 x 64K"]);
    let row = |name: &str, best, values: [Option<f64>; 3]| DeviceBySettings {
        name: name.into(),
        best,
        values: values.to_vec(),
        invalidated_by: Vec::new(),
    };
    let rows = [
        row("nvme0n1", Some(0), [Some(2000.0), Some(1900.0), None]),
        row("sda", Some(1), [None, Some(300.0), None]),
        DeviceBySettings { invalidated_by: vec![CheckId::D08], ..row("sdb", None, [Some(8.0), None, None]) },
        row("sdc", None, [Some(7.0), None, None]),
    ];
    assert_eq!(tables[0].rows, rows);
    assert_eq!(tables[1].rows.len(), 1);
}

#[test]
fn every_measure_has_a_word() {
    for measure in [Measure::Iops, Measure::Bandwidth, Measure::P99, Measure::Latency] {
        assert!(!measure.word().is_empty(), "{measure:?}");
    }
    assert_eq!(Measure::P99.better_by("3.0 %"), "lower by more than 3.0 % in p99");
}
