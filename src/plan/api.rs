//! The comparison of `fathom api`: one job per interface, work and size.
//!
//! For: which interfaces can be tried here, the same span, blocks and offsets for each, and a reason for each one that is left
//! out. Not for: measuring (the jobs are ordinary ones) nor for advice (crate `analysis`).

use super::Jobs;
use super::layers::{reads, writes};
use super::origins::Origins;
use super::{fallback, span, target};
use crate::failure::Failure;
use crate::interfaces::{Directions, INTERFACES, Interface, Many};
use crate::request::Request;
use machine::root::Root;
use model::api::{Candidate, InterfaceComparison};
use model::job::{Access, Kind, Order, Pattern, PerKind, Sizes, Start, StopRule};
use model::machine::Place;
use model::not_measured::{NotMeasured, by_reason};
use model::plan::{Role, Target};
use model::spec::{JobSpec, Rw, parsers};
use model::study::Study;
use model::units::{MIB, show_block, show_bytes};
use std::path::PathBuf;

/// Settings that each interface says for itself.
pub(super) const OF_INTERFACES: &[&str] = &[
    "--rw",
    "--bs",
    "--size",
    "--cache",
    "--depth",
    "--workers",
    "--engine",
    "engine options",
    "--batch",
    "--random",
];
/// Sizes of a record in order: that of a page, and what programs that copy files take.
const SIZES: &[u32] = &[4096, 128 << 10];
/// Sizes of a record in random order: that of a page, as databases have them.
const RANDOM_SIZES: &[u32] = &[4096];
/// Span: more than any buffer of a program holds, and read in a fraction of a second; less where there is no room.
const SPANS: [u64; 3] = [64 * MIB, 32 * MIB, 16 * MIB];
/// Operations in flight, where an interface can have several: a fast disk needs as many, and they fit any.
const DEPTH: u32 = 8;
/// What the headline is about.
const HEADLINE: &str = "pread";

/// The place, and what is the same for all.
struct Setup<'a> {
    request: &'a Request,
    said: PathBuf,
    place: Place,
    found: Target,
    span: u64,
    depth: u32,
    /// What denies io_uring.
    denial: Option<String>,
    may_write: Result<(), String>,
}

/// One work: an order, a direction and a size.
#[derive(Clone, Copy)]
struct Work {
    rw: Rw,
    block_bytes: u32,
}

/// Those that were named; all where none were.
fn asked_for(named: &[&'static Interface]) -> impl Iterator<Item = &'static Interface> {
    INTERFACES.iter().filter(|i| named.is_empty() || named.iter().any(|n| n.name == i.name))
}

/// Those that were named and do none of the works.
fn of_other_directions(named: &[&'static Interface], works: &[Work]) -> Vec<NotMeasured> {
    let others = named.iter().filter(|i| !works.iter().any(|work| i.is_for(work.rw)));
    let why = "it does not do what --rw says; type another --rw, or leave it out";
    others.map(|i| NotMeasured { name: i.name.into(), why: why.into() }).collect()
}

/// Finds every interface that can be tried.
pub(super) fn compare(
    request: &Request,
    (sizes, interfaces): (&[u32], &[&'static Interface]),
    (root, denial): (&Root, Option<&str>),
    origins: &mut Origins,
) -> Result<Jobs, Failure> {
    let said = request.targets.first().cloned().unwrap_or_else(|| ".".into());
    let path = said.canonicalize().map_err(|e| target::unreachable_path(&said, &e))?;
    let (found, place) = target::look(root, &said, &path)?;
    let spec = request.job.phases.first().and_then(|p| p.streams.first()).cloned().unwrap_or_default();
    let there = if found.role == Role::Made { u64::MAX } else { found.bytes };
    let fits = |bytes: &u64| machine::test_file::fits(&path, *bytes).is_ok();
    let roomy = if found.role == Role::Made { SPANS.iter().copied().find(fits) } else { None };
    let span = origins.choose("--size", spec.size, roomy.unwrap_or(SPANS[0]).min(there), |b| show_bytes(*b));
    let depth = origins.choose("--depth", spec.depth, DEPTH, u32::to_string);
    origins.fixed("--cache", "as each interface opens its file", "fathom api");
    origins.fixed("--random", "once: no block twice, the same ones for all", "fathom api");
    origins.fixed("ends", "sequential by the whole span, random by half of it, or by --time", "fathom api");
    let works = works(spec.rw, sizes, origins)?;
    let guarded = target::guard_writing(request, root, &said, &path, found.role);
    let may_write = match guarded {
        // Who named it wants it written, and is told why it is not.
        Err(why) if !request.destroy.is_empty() => return Err(why),
        other => other.map_err(|why| why.words().to_owned()),
    };
    if let Some(work) = works.iter().find(|w| u64::from(w.block_bytes) > span) {
        return Err(Failure::Usage(format!(
            "--bs {}: no block of this size fits in {}; use a smaller --bs or a larger --size",
            show_block(work.block_bytes.into()),
            show_bytes(span)
        )));
    }
    let denial = denial.map(str::to_owned);
    let setup = Setup { request, said, place, found, span, depth, denial, may_write };
    let mut asked = Jobs::default();
    let mut comparison = InterfaceComparison::default();
    comparison.missing.extend(of_other_directions(interfaces, &works));
    if request.flags.contains(&"depth") && !asked_for(interfaces).any(|i| i.many != Many::One) {
        return Err(Failure::Usage(
            "--depth changes nothing here: these interfaces have one operation in flight; leave it out, or name others".into(),
        ));
    }
    for work in works {
        for interface in asked_for(interfaces).filter(|i| i.is_for(work.rw)) {
            match setup.spec(interface, work) {
                Ok(spec) => {
                    if interface.name == HEADLINE && asked.headline.is_none() {
                        asked.headline = Some(asked.specs.len());
                    }
                    let (name, sees) = (interface.name.into(), interface.sees);
                    let (job, work) = (asked.specs.len(), work.words());
                    comparison.candidates.push(Candidate { job, interface: name, work, sees });
                    asked.specs.push(spec);
                }
                Err(why) => comparison.missing.push(NotMeasured { name: name(interface, work), why }),
            }
        }
    }
    if comparison.candidates.is_empty() {
        let why = if comparison.missing.is_empty() {
            "none of these interfaces does what --rw says; type another --rw, or leave it out".into()
        } else {
            reasons(&comparison.missing)
        };
        let is_denied =
            setup.denial.is_some() && interfaces.iter().any(|i| i.engine.starts_with(fallback::WANTED));
        let why = if is_denied { format!("{why}; type --interface 'libaio O_DIRECT'") } else { why };
        return Err(Failure::Usage(format!("nothing can be compared: {why}")));
    }
    asked.study = Study::Interfaces(comparison);
    Ok(asked)
}

/// Each reason once, with the first that it keeps away: `pread, 4K random read and 39 others: it is so`.
fn reasons(missing: &[NotMeasured]) -> String {
    let words = by_reason(missing).into_iter().map(|(names, why)| match names.as_slice() {
        [] => why.to_owned(),
        [name] => format!("{name}: {why}"),
        [name, _] => format!("{name} and 1 other: {why}"),
        [name, others @ ..] => format!("{name} and {} others: {why}", others.len()),
    });
    words.collect::<Vec<_>>().join("; ")
}

/// Both orders and both directions, unless one work was asked for.
fn works(said: Option<Rw>, sizes: &[u32], origins: &mut Origins) -> Result<Vec<Work>, Failure> {
    if let Some(rw) = said.filter(|rw| rw.fixed_mix().is_none_or(|m| m.does(Kind::Trim))) {
        return Err(Failure::Usage(format!(
            "--rw {}: interfaces are compared by reads and by writes; type read, write, randread or randwrite",
            rw.word()
        )));
    }
    let all = vec![Rw::Read, Rw::Randread, Rw::Write, Rw::Randwrite];
    let words = |all: &Vec<Rw>| all.iter().map(|w| w.word()).collect::<Vec<_>>().join(", ");
    let rws = origins.choose("--rw", said.map(|rw| vec![rw]), all, words);
    let words = |all: &[u32]| all.iter().map(|b| show_block((*b).into())).collect::<Vec<_>>().join(", ");
    let (value, from) = match sizes {
        [] => (format!("{}; random {}", words(SIZES), words(RANDOM_SIZES)), "default"),
        said => (words(said), "command line"),
    };
    origins.fixed("--bs", &value, from);
    let of = |rw: Rw| match (sizes, rw.is_random()) {
        ([], true) => RANDOM_SIZES,
        ([], false) => SIZES,
        (said, _) => said,
    };
    Ok(rws.into_iter().flat_map(|rw| of(rw).iter().map(move |b| Work { rw, block_bytes: *b })).collect())
}

impl Interface {
    fn is_for(&self, rw: Rw) -> bool {
        match self.ways {
            Directions::Both => true,
            Directions::In => reads(rw),
            Directions::Out => writes(rw),
        }
    }
}

impl Work {
    /// `4K random read`.
    fn words(self) -> String {
        let pattern = if self.rw.is_random() { Pattern::Random } else { Pattern::Sequential };
        Access::plain(pattern, self.block_bytes, if writes(self.rw) { 0 } else { 100 }).words()
    }
}

fn name(interface: &Interface, work: Work) -> String {
    format!("{}, {}", interface.name, work.words())
}

impl Setup<'_> {
    /// The job of an interface.
    fn spec(&self, interface: &Interface, work: Work) -> Result<JobSpec, String> {
        self.can_be_tried(interface, work)?;
        let engine = parsers::engine(interface.engine)?;
        let mut job = self.request.job.clone();
        job.name = Some(name(interface, work));
        let several = |many| if interface.many == many { self.depth } else { 1 };
        let blocks = self.span / u64::from(work.block_bytes);
        let random = work.rw.is_random();
        let operations = if random { (blocks / 2).max(1) } else { blocks };
        let size = Sizes::Fixed(work.block_bytes);
        for stream in job.phases.iter_mut().flat_map(|p| &mut p.streams) {
            stream.target = vec![model::name::text(&self.said)];
            stream.rw = Some(work.rw);
            stream.cache = Some(interface.cache);
            stream.bs = Some(PerKind::all(size.clone()));
            stream.size = Some(self.span);
            stream.engine = Some(engine.clone());
            stream.depth = Some(several(Many::Depth));
            stream.workers = Some(several(Many::Threads));
            stream.random = random.then_some(Order::Once);
            // Each thread takes the next record, as those of a pool do.
            stream.start = (!random).then_some(Start::Interlocked);
            stream.limit = StopRule { operations: Some(operations), ..StopRule::default() };
        }
        Ok(job)
    }

    fn can_be_tried(&self, interface: &Interface, work: Work) -> Result<(), String> {
        let engine = interface.engine.split(':').next().unwrap_or_default();
        if engine::engines::find(engine).is_none() {
            return Err(format!("this fathom was built without it; build it with --features {CXX}"));
        }
        if let Some(cause) = self.denial.as_ref().filter(|_| engine == fallback::WANTED) {
            return Err(format!("io_uring cannot be used here: {cause}"));
        }
        if writes(work.rw) {
            self.may_write.clone()?;
        }
        if interface.renews_file() && self.found.role != Role::Made {
            return Err(
                "it needs a file that may be cut off; name a directory, and fathom makes one there".into()
            );
        }
        if !interface.cache.is_direct() {
            return Ok(());
        }
        if let Some(why) = self.place.without_direct() {
            return Err(format!("there is no direct I/O here ({why})"));
        }
        let align = span::direct_alignment(&self.place);
        if !work.block_bytes.is_multiple_of(align.max(1)) {
            return Err(format!("direct I/O needs multiples of {align} bytes here"));
        }
        Ok(())
    }
}

/// The cargo feature behind the only interface that may be left out.
const CXX: &str = "cxx";
