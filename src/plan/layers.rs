//! `fathom layers`: one job per layer below the target and per mode of the page cache. Each job is compared with the job of the layer
//! below. A layer that cannot be measured has a reason instead of a job.
//!
//! The jobs are ordinary ones. Crate `analysis` computes the costs.

use super::{Jobs, stream, target};
use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::request::Request;
use engine::engines::Entry;
use machine::root::Root;
use machine::safety;
use model::figures::NotMeasured;
use model::job::{Cache, Kind, PerKind, Sizes};
use model::machine::Place;
use model::plan::{ComparedLayer, LayerComparison, Role};
use model::spec::{JobSpec, Rw};
use model::units::{GIB, show_bytes};
use std::path::{Path, PathBuf};

/// Settings that each layer defines.
pub(super) const OF_LAYERS: &[&str] = &["--rw", "--bs", "--size", "--cache", "--mix"];
/// Bytes per operation: a page of many databases.
const BLOCK_BYTES: u32 = 8192;
/// Span of the comparison. It fits in the page cache of most machines, and is read completely before buffered reads.
const SPAN_BYTES: u64 = GIB;

/// The jobs while they are made, and how they relate.
#[derive(Default)]
struct LayerJobs {
    /// One job per layer, in the order of the layers.
    specs: Vec<JobSpec>,
    comparison: LayerComparison,
    /// Index of the headline's job: the first one with direct I/O at the place itself; `None` if that cannot be measured.
    headline: Option<usize>,
}

/// The target's place in the block stack, and the settings that the jobs of all layers share.
struct Setup<'a> {
    request: &'a Request,
    root: &'a Root,
    given: PathBuf,
    path: PathBuf,
    place: Place,
    role: Role,
    engine: &'static Entry,
    /// Why buffered layers cannot be measured with the engine that replaces the default one; `None`
    /// if they can.
    no_buffered: Option<String>,
    bs: PerKind<Sizes>,
    span: u64,
}

/// Makes a job for each layer.
pub(super) fn layer_jobs(
    request: &Request,
    root: &Root,
    denial: Option<&str>,
    origins: &mut Origins,
) -> Result<Jobs, Failure> {
    target::refuse_destroy_without_target(request)?;
    let given = request.targets.first().cloned().unwrap_or_else(|| ".".into());
    let path = given.canonicalize().map_err(|e| target::explain_unreachable(&given, &e))?;
    let target::PlacedTarget { target, place } = target::inspect_target(root, &given, &path)?;
    let spec = request.job.streams().next().cloned().unwrap_or_default();
    let engine = crate::plan::engine::find(&spec).map_err(|problem| Failure::Usage(problem.in_flags()))?;
    if !engine.moves_bytes {
        let name = engine.name;
        return Err(Failure::Usage(format!(
            "--engine {name}: it moves no bytes, so layers cannot differ; leave --engine out"
        )));
    }
    let works = choose_works(spec.rw, origins)?;
    let default_sizes = PerKind::all(Sizes::Fixed(BLOCK_BYTES));
    let bs = origins.choose("--bs", spec.bs, default_sizes, stream::describe_sizes);
    let available_bytes = if target.role == Role::Made { u64::MAX } else { target.bytes };
    let span = origins.choose("--size", spec.size, SPAN_BYTES.min(available_bytes), |b| show_bytes(*b));
    origins.record("--cache", "each in turn", "fathom layers");
    // The default depth is above 1 for sequential and for random access.
    let no_buffered = denial.filter(|_| spec.engine.is_none() && spec.depth != Some(1)).map(|cause| {
        format!(
            "io_uring cannot be used ({cause}), and libaio does buffered operations one at a time; type --depth 1 to measure this layer"
        )
    });
    let setup = Setup { request, root, given, path, place, role: target.role, engine, no_buffered, bs, span };
    let mut jobs = LayerJobs::default();
    for rw in works {
        setup.add_work(rw, &mut jobs)?;
    }
    jobs.comparison.missing.extend(
        setup.place.unresolved_reason.iter().map(|why| NotMeasured {
            name: format!("what is below {}", setup.base_name()),
            why: why.clone(),
        }),
    );
    if jobs.comparison.layers.is_empty() {
        let reasons: Vec<String> = jobs.comparison.missing.iter().map(ToString::to_string).collect();
        return Err(Failure::Refused(format!("no layer can be measured: {}", reasons.join("; "))));
    }
    let LayerJobs { specs, comparison, headline } = jobs;
    Ok(Jobs { specs, headline, study: comparison.into(), ..Jobs::default() })
}

/// Chooses random reads and random writes, unless the user typed another order and direction.
fn choose_works(given: Option<Rw>, origins: &mut Origins) -> Result<Vec<Rw>, Failure> {
    if let Some(rw) = given.filter(|rw| rw.fixed_mix().is_some_and(|m| m.does(Kind::Trim))) {
        return Err(Failure::Usage(format!(
            "--rw {}: layers are compared by reads and writes; type read, write, rw, randread, randwrite or randrw",
            rw.word()
        )));
    }
    let both = vec![Rw::Randread, Rw::Randwrite];
    let list_directions = |all: &Vec<Rw>| all.iter().map(|w| w.word()).collect::<Vec<_>>().join(", ");
    Ok(origins.choose("--rw", given.map(|rw| vec![rw]), both, list_directions))
}

/// Returns the heading of the rows of one order and direction.
fn row_heading(rw: Rw) -> String {
    let order = if rw.is_random() { "random" } else { "sequential" };
    let directions = match (reads(rw), writes(rw)) {
        (true, true) => "reads and writes",
        (true, false) => "reads",
        (false, _) => "writes",
    };
    format!("{order} {directions}")
}

pub(super) fn reads(rw: Rw) -> bool {
    !matches!(rw, Rw::Write | Rw::Randwrite)
}

pub(super) fn writes(rw: Rw) -> bool {
    !matches!(rw, Rw::Read | Rw::Randread)
}

impl Setup<'_> {
    /// Name of the place: its file system, or its device.
    fn base_name(&self) -> &str {
        let top = self.place.tops.first().and_then(|t| self.place.layers.get(*t));
        match (&self.place.file_system, top) {
            (Some(fs), _) => &fs.kind,
            (None, Some(layer)) => &layer.name,
            (None, None) => "target",
        }
    }

    /// Adds all layers for one kind of access, from the lowest layer upwards.
    fn add_work(&self, rw: Rw, jobs: &mut LayerJobs) -> Result<(), Failure> {
        let below = self.add_devices(rw, jobs);
        let may_write = || target::guard_writing(self.request, self.root, &self.given, &self.path, self.role);
        if writes(rw)
            && let Err(why) = may_write()
        {
            // The user permitted writing to the target by name, so report why it is refused.
            if !self.request.destroy.is_empty() {
                return Err(why.into());
            }
            add_missing(jobs, self.base_name(), rw, &why.to_string());
            return Ok(());
        }
        let direct = self.add_layer(rw, Cache::Direct, "direct", below, jobs);
        jobs.headline = jobs.headline.or(direct);
        let against = direct.or(below);
        if writes(rw) {
            self.add_layer(rw, Cache::DirectSync, "direct + sync", against, jobs);
        }
        self.add_layer(rw, Cache::Buffered, "buffered", against, jobs);
        Ok(())
    }

    /// Adds a layer that accesses the target itself in this cache mode. Returns the index of its job; `None` if the layer
    /// cannot be measured, which is noted with the reason.
    fn add_layer(
        &self,
        rw: Rw,
        cache: Cache,
        how: &str,
        below: Option<usize>,
        jobs: &mut LayerJobs,
    ) -> Option<usize> {
        let name = format!("{} {how}", self.base_name());
        if !self.engine.caches.contains(&cache) {
            let why = format!("the engine {} does not work with --cache {}", self.engine.name, cache.word());
            add_missing(jobs, &name, rw, &why);
            return None;
        }
        let refuses = |d: &model::machine::DirectIo| d.offset_align == 0;
        if cache.is_direct() && self.place.direct.as_ref().is_some_and(refuses) {
            add_missing(jobs, &name, rw, "its file system has no direct I/O");
            return None;
        }
        if let Some(why) = self.no_buffered.as_ref().filter(|_| !cache.is_direct()) {
            add_missing(jobs, &name, rw, why);
            return None;
        }
        let warm = cache == Cache::Buffered && reads(rw);
        Some(self.add_job(
            jobs,
            ComparedLayer { job: 0, name, work: row_heading(rw), below, warm, stored: false },
            rw,
            &self.given,
            cache,
            self.span,
        ))
    }

    /// Adds the block devices below the place, from the lowest one upwards. Returns the index of the job of the layer right below the
    /// place; `None` if that layer has no job, or if there are several such layers.
    fn add_devices(&self, rw: Rw, jobs: &mut LayerJobs) -> Option<usize> {
        let layers = &self.place.layers;
        let is_target = |at: usize| self.role == Role::Device && self.place.tops.contains(&at);
        let mut indices: Vec<Option<usize>> = vec![None; layers.len()];
        // In `layers`, each layer precedes the layers below it.
        for (at, layer) in layers.iter().enumerate().rev().filter(|(at, _)| !is_target(*at)) {
            if writes(rw) {
                add_missing(jobs, &layer.name, rw, "it stores the layers above, so fathom only reads it");
                continue;
            }
            let device = PathBuf::from(format!("/dev/{}", layer.name.replace('!', "/")));
            if let Err(why) = self.check_reading(&device) {
                add_missing(jobs, &layer.name, rw, &why);
                continue;
            }
            let below = only_element(&layer.below).and_then(|b| indices.get(b).copied().flatten());
            let compared = ComparedLayer {
                job: 0,
                name: layer.name.clone(),
                work: row_heading(rw),
                below,
                warm: false,
                stored: true,
            };
            let index = self.add_job(jobs, compared, rw, &device, Cache::Direct, self.span.min(layer.bytes));
            if let Some(slot) = indices.get_mut(at) {
                *slot = Some(index);
            }
        }
        let below = match self.place.tops.as_slice() {
            [top] if is_target(*top) => layers.get(*top).and_then(|l| only_element(&l.below)),
            tops => only_element(tops),
        };
        below.and_then(|b| indices.get(b).copied().flatten())
    }

    fn check_reading(&self, device: &Path) -> Result<(), String> {
        if !self.engine.caches.contains(&Cache::Direct) {
            return Err(format!("the engine {} does not work with --cache direct", self.engine.name));
        }
        safety::open_device(self.root, device, None, false, Cache::Direct)
            .map(drop)
            .map_err(|e| e.to_string())
    }

    fn add_job(
        &self,
        jobs: &mut LayerJobs,
        layer: ComparedLayer,
        rw: Rw,
        path: &Path,
        cache: Cache,
        span: u64,
    ) -> usize {
        let mut job = self.request.job.clone();
        job.name = Some(format!("{}: {}", layer.name, layer.work));
        for stream in job.streams_mut() {
            stream.target = vec![model::name::text(path)];
            stream.rw = Some(rw);
            stream.cache = Some(cache);
            stream.bs = Some(self.bs.clone());
            stream.size = Some(span);
        }
        let index = jobs.specs.len();
        jobs.specs.push(job);
        jobs.comparison.layers.push(ComparedLayer { job: index, ..layer });
        index
    }
}

fn add_missing(jobs: &mut LayerJobs, name: &str, rw: Rw, why: &str) {
    let name = format!("{name}, {}", row_heading(rw));
    jobs.comparison.missing.push(NotMeasured { name, why: why.into() });
}

/// Returns the only element; `None` if there are none or several. A layer on top of several layers
/// cannot be compared with a single one.
fn only_element(all: &[usize]) -> Option<usize> {
    if let [one] = all { Some(*one) } else { None }
}
