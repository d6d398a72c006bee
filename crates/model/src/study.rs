//! Studies: what jobs measured together are to answer, and what came of it.
//!
//! For: one enum for what is meant, which a plan carries, and one for what was concluded, which a report carries. Not for: the
//! work of a study; that is one file each in the crates `analysis` and `report`.
//! In JSON each study has a key of its own beside the other keys of its plan or report, as it always had.

use crate::api::{Api, InterfaceComparison};
use crate::command::{CommandResults, CommandStudy};
use crate::ledger::{LayerComparison, Layers};
use crate::load::{LatencyTarget, LoadCurve};
use crate::scaling::{HostSteps, Scaling};
use crate::sweep::{Grid, Sweep};
use crate::targets::{TargetComparison, Targets};
use crate::tool_layout::{ToolLayout, ToolResults};
use serde::{Deserialize, Serialize};

/// What the jobs of a plan are to answer together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StudyKeys", into = "StudyKeys")]
pub enum Study {
    /// No more than what each is: jobs side by side.
    #[default]
    Jobs,
    /// What each layer of one place costs: the same work at all of them.
    Layers(LayerComparison),
    /// Which load is served in time: the latency target, as the plan's strategy has it, which chooses the loads.
    Limit(LatencyTarget),
    /// Which settings are best: the same work at different ones.
    Sweep(Grid),
    /// Which interface to use: the same work through different ones.
    Interfaces(InterfaceComparison),
    /// What a well-known tool would show: its tests, and how it shows them.
    Profile(ToolLayout),
    /// Which target is faster: the same tests on each.
    Targets(TargetComparison),
    /// How much more hosts bring: the same work on growing numbers of them.
    Hosts(HostSteps),
    /// What commands of the user do to the storage, and how long they take.
    Commands(CommandStudy),
}

/// What a study came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StudiedKeys", into = "StudiedKeys")]
pub enum Studied {
    /// Nothing beside the results.
    #[default]
    Jobs,
    /// The same work at each layer of one place, from the lowest layer up.
    Layers(Layers),
    /// Latency against offered load.
    Limit(LoadCurve),
    /// The same work at every setting of a grid.
    Sweep(Box<Sweep>),
    /// The same bytes through every interface.
    Interfaces(Api),
    /// The results as a well-known tool shows them.
    Profile(ToolResults),
    /// The same tests on several targets.
    Targets(Targets),
    /// The same work on growing numbers of hosts.
    Hosts(Scaling),
    /// Commands of the user with their runs.
    Commands(Box<CommandResults>),
}

impl Study {
    /// The settings, where the study is of settings.
    pub fn grid(&self) -> Option<&Grid> {
        if let Self::Sweep(grid) = self { Some(grid) } else { None }
    }
}

impl Studied {
    /// Commands of the user with their runs, if that is what was measured.
    pub fn commands(&self) -> Option<&CommandResults> {
        if let Self::Commands(results) = self { Some(results) } else { None }
    }

    /// What came of the settings, where the study was of settings.
    pub fn sweep(&self) -> Option<&Sweep> {
        if let Self::Sweep(sweep) = self { Some(sweep) } else { None }
    }
}

/// The keys of a study in a plan: one of them at most. A load curve has none: its plan's strategy tells.
#[derive(Default, Serialize, Deserialize)]
struct StudyKeys {
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<LayerComparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<Grid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "contest")]
    comparison: Option<InterfaceComparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<ToolLayout>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<TargetComparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scaling: Option<HostSteps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<CommandStudy>,
}

impl From<StudyKeys> for Study {
    fn from(keys: StudyKeys) -> Self {
        let StudyKeys { layers, sweep, comparison, form, beside, scaling, commands } = keys;
        let found = [
            layers.map(Self::Layers),
            sweep.map(Self::Sweep),
            comparison.map(Self::Interfaces),
            form.map(Self::Profile),
            beside.map(Self::Targets),
            scaling.map(Self::Hosts),
            commands.map(Self::Commands),
        ];
        found.into_iter().flatten().next().unwrap_or_default()
    }
}

impl From<Study> for StudyKeys {
    fn from(study: Study) -> Self {
        let none = Self::default();
        match study {
            Study::Jobs | Study::Limit(_) => none,
            Study::Layers(comparison) => Self { layers: Some(comparison), ..none },
            Study::Sweep(grid) => Self { sweep: Some(grid), ..none },
            Study::Interfaces(comparison) => Self { comparison: Some(comparison), ..none },
            Study::Profile(form) => Self { form: Some(form), ..none },
            Study::Targets(sides) => Self { beside: Some(sides), ..none },
            Study::Hosts(steps) => Self { scaling: Some(steps), ..none },
            Study::Commands(commands) => Self { commands: Some(commands), ..none },
        }
    }
}

/// The keys of a study in a report: one of them at most, none where it is of jobs alone.
#[derive(Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StudiedKeys {
    /// The same work at each layer of one place, from the lowest layer up; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Layers>,
    /// The same work at every setting of a grid; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<Box<Sweep>>,
    /// The same bytes through every interface; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<Api>,
    /// The results as a well-known tool shows them; absent where that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<ToolResults>,
    /// Latency against offered load; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<LoadCurve>,
    /// The same tests on several targets; absent where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Targets>,
    /// The same work on growing numbers of hosts; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    scaling: Option<Scaling>,
    /// Commands of the user with their runs; absent where none was timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<Box<CommandResults>>,
}

impl From<StudiedKeys> for Studied {
    fn from(keys: StudiedKeys) -> Self {
        let StudiedKeys { layers, sweep, api, card, limit, beside, scaling, commands } = keys;
        let found = [
            layers.map(Self::Layers),
            limit.map(Self::Limit),
            sweep.map(Self::Sweep),
            api.map(Self::Interfaces),
            card.map(Self::Profile),
            beside.map(Self::Targets),
            scaling.map(Self::Hosts),
            commands.map(Self::Commands),
        ];
        found.into_iter().flatten().next().unwrap_or_default()
    }
}

impl From<Studied> for StudiedKeys {
    fn from(studied: Studied) -> Self {
        let none = Self::default();
        match studied {
            Studied::Jobs => none,
            Studied::Layers(layers) => Self { layers: Some(layers), ..none },
            Studied::Limit(curve) => Self { limit: Some(curve), ..none },
            Studied::Sweep(sweep) => Self { sweep: Some(sweep), ..none },
            Studied::Interfaces(api) => Self { api: Some(api), ..none },
            Studied::Profile(card) => Self { card: Some(card), ..none },
            Studied::Targets(targets) => Self { beside: Some(targets), ..none },
            Studied::Hosts(scaling) => Self { scaling: Some(scaling), ..none },
            Studied::Commands(commands) => Self { commands: Some(commands), ..none },
        }
    }
}

#[test]
fn the_keys_of_a_study_are_those_of_old_files() {
    let comparison = || LayerComparison { layers: Vec::new(), missing: Vec::new() };
    let json = serde_json::json!({ "layers": { "rungs": [], "missing": [] } });
    assert_eq!(serde_json::to_value(Study::Layers(comparison())).ok(), Some(json.clone()));
    assert_eq!(serde_json::from_value(json).ok(), Some(Study::Layers(comparison())));
    let comparison = serde_json::json!({ "contest": { "entrants": [], "missing": [] } });
    assert_eq!(
        serde_json::from_value(comparison).ok(),
        Some(Study::Interfaces(InterfaceComparison::default()))
    );
    for nothing in [serde_json::json!({}), serde_json::json!({ "layers": null })] {
        assert_eq!(serde_json::from_value(nothing.clone()).ok(), Some(Study::Jobs));
        assert_eq!(serde_json::from_value(nothing).ok(), Some(Studied::Jobs));
    }
    let (rows, missing) = (Vec::new(), Vec::new());
    let (not_measured, advice, no_advice) = (Vec::new(), Vec::new(), Vec::new());
    let api = Studied::Interfaces(Api { rows, missing, not_measured, advice, no_advice });
    let json = serde_json::json!({ "api": { "rows": [], "missing": [], "not_measured": [], "advice": [] } });
    assert_eq!(serde_json::to_value(&api).ok(), Some(json.clone()));
    assert_eq!(serde_json::from_value(json).ok(), Some(api));
}
