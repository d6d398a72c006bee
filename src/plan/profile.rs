//! The tests of a profile: one job per test and direction, where this place can do it.
//!
//! For: what flags say beside what a test says, the span of each, sizes that direct I/O does not take, and the rows of the
//! card. Not for: the tests themselves (crate `model`) nor what a card shows (crate `analysis`).

use super::origins::Origins;
use super::{Jobs, engine, span, target};
use crate::failure::Failure;
use crate::request::{BenchSpec, Request};
use machine::root::Root;
use model::plan::Role;
use model::profile::{CellSource, Files, LayoutRow, Profile, Test, ToolLayout, ToolStyle};
use model::spec::{JobSpec, StreamSpec};
use model::study::Study;
use model::units::show_bytes;

/// Settings that the tests of a profile say.
const OF_TESTS: &[&str] = &["--rw", "--mix", "--bs", "--depth", "--workers"];
/// Settings that the tests of a profile say where their files are not one for each host; how many workers there are is shown.
const OF_TASKS: &[&str] = &["--rw", "--mix", "--bs", "--depth", "--shift-hosts"];
/// Settings that the tests of a profile say where they stay in a part of the target.
const OF_SIZED: &[&str] = &["--rw", "--mix", "--bs", "--depth", "--workers", "--size"];
/// Settings that the tests of a profile say where they also say their data, and end when everything was touched.
const OF_REWRITES: &[&str] =
    &["--rw", "--mix", "--bs", "--depth", "--workers", "--size", "data", "--time", "--warmup"];

/// Where a profile is measured, as far as its tests depend on it.
struct TargetFacts {
    role: Role,
    path: String,
    /// Bytes that may be touched; those of a file that will be made are not known yet.
    bytes: Option<u64>,
    /// Alignment that direct I/O needs; `None` where none is done.
    align: Option<u32>,
}

/// Tests while they become jobs.
struct Tests<'a> {
    request: &'a Request,
    profile: &'static Profile,
    target: Option<TargetFacts>,
    asked: Jobs,
    rows: Vec<LayoutRow>,
    /// Tests that cannot be done, by the reason.
    left_out: Vec<(String, Vec<String>)>,
    /// What is not as the profile's tool does it.
    differs: Vec<String>,
}

/// Finds the jobs of a profile.
pub(super) fn tests(
    request: &Request,
    said: &BenchSpec,
    root: &Root,
    origins: &mut Origins,
) -> Result<Jobs, Failure> {
    let profile = origins.choose("--profile", said.profile, said.chosen(), |p| p.name.into());
    let differs = profile.card.map_or(&[][..], |c| c.differs).iter().map(|d| (*d).to_owned());
    let mut tests = Tests {
        request,
        profile,
        target: target_facts(request, root)?,
        asked: Jobs::default(),
        rows: Vec::new(),
        left_out: Vec::new(),
        differs: differs.collect(),
    };
    tests.refuse_times()?;
    tests.refuse_workers()?;
    tests.tell(origins);
    // A bench of a file or device of the user's reads it; writing has to be asked for by name.
    let theirs = tests.target.as_ref().is_some_and(|g| g.role != Role::Made);
    let reads_only = theirs && request.destroy.is_empty();
    if reads_only {
        origins.fixed(
            "directions",
            "reads only",
            "TARGET exists already; --destroy with its name adds writes",
        );
    }
    for (read_percent, test) in profile.rows() {
        if reads_only && read_percent < 100 {
            if profile.read_percents.iter().all(|p| *p < 100) {
                tests.leave_out(
                    test,
                    "it writes, and TARGET exists already; type --destroy with its name to allow that".into(),
                );
            }
        } else {
            tests.add(read_percent, test);
        }
    }
    tests.finish()
}

/// What is below the target; `None` where the engine touches none.
fn target_facts(request: &Request, root: &Root) -> Result<Option<TargetFacts>, Failure> {
    let spec = stream(&request.job);
    let entry = engine::find(&spec).map_err(|problem| Failure::Usage(problem.in_flags()))?;
    if !entry.moves_bytes {
        return Ok(None);
    }
    let said = request.targets.first().cloned().unwrap_or_else(|| ".".into());
    let path = said.canonicalize().map_err(|e| target::unreachable_path(&said, &e))?;
    let (found, place) = target::inspect_target(root, &said, &path)?;
    let cache = spec.cache.or(entry.caches.first().copied());
    let align =
        if cache.is_some_and(model::job::Cache::is_direct) { span::whole_alignment(&place) } else { None };
    let bytes = (found.role != Role::Made).then_some(found.bytes);
    Ok(Some(TargetFacts { role: found.role, path: model::name::text(&path), bytes, align }))
}

fn stream(job: &JobSpec) -> StreamSpec {
    job.phases.first().and_then(|p| p.streams.first()).cloned().unwrap_or_default()
}

impl Tests<'_> {
    /// Half of a file that was written would be read back as what an earlier test left there.
    fn refuse_times(&self) -> Result<(), Failure> {
        match ["time", "warmup"].iter().find(|k| self.rewrites() && self.request.flags.contains(k)) {
            Some(key) => Err(Failure::Usage(format!(
                "--{key} does not go with --profile {}, whose runs end when everything was written and read; use a smaller --size, or fewer --runs",
                self.profile.name
            ))),
            None => Ok(()),
        }
    }

    /// Where threads are part of what a test is called they are no setting; and a file for each of them is one that fathom makes.
    fn refuse_workers(&self) -> Result<(), Failure> {
        let name = self.profile.name;
        if !self.profile.takes_workers() && self.request.flags.contains(&"workers") {
            return Err(Failure::Usage(format!(
                "--workers: the tests of --profile {name} have their own numbers of threads; leave it out, or type `fathom run` with settings of your own"
            )));
        }
        let own = self.profile.tests.iter().any(|t| t.files == Files::Own);
        match self.target.as_ref().filter(|t| own && t.role != Role::Made) {
            Some(target) => Err(Failure::Usage(format!(
                "--profile {name} has a file for each worker, and {} is one; name a directory, and fathom makes them there",
                target.path
            ))),
            None => Ok(()),
        }
    }

    fn rewrites(&self) -> bool {
        self.profile.tests.iter().any(|t| t.rewrites.is_some())
    }

    fn said_size(&self) -> Option<u64> {
        stream(&self.request.job).size
    }

    /// Says what is the same for all tests, and leaves to the list of jobs what is not.
    fn tell(&self, origins: &mut Origins) {
        let tests = self.profile.tests;
        let from = format!("profile {}", self.profile.name);
        if self.rewrites() {
            origins.fixed("ends", "when everything was written, and when everything was read", &from);
        }
        let sized = tests.iter().filter_map(|t| t.span_bytes).max();
        if let (Some(_), Some(said)) = (sized, self.said_size()) {
            origins.fixed("--size", &show_bytes(said), "command line");
        } else if let Some(span) = sized {
            let whole = tests.iter().find(|t| t.span_bytes.is_none());
            let words = whole.map_or(String::new(), |t| format!("; {} in all of the target", t.called));
            let span = self.target.as_ref().and_then(|g| g.bytes).map_or(span, |there| span.min(there));
            origins.fixed("--size", &format!("{}{words}", show_bytes(span)), &from);
        }
        origins.leave_out(match (self.rewrites(), sized) {
            _ if self.profile.takes_workers() => OF_TASKS,
            (true, _) => OF_REWRITES,
            (false, Some(_)) => OF_SIZED,
            (false, None) => OF_TESTS,
        });
    }

    /// Adds one direction of a test, or the reason why it is left out.
    fn add(&mut self, read_percent: u8, test: &'static Test) {
        let mut done = *test;
        if let Some(why) = self.misaligned(test) {
            if !test.raised {
                return self.leave_out(test, why.1);
            }
            done.block_bytes = test.block_bytes.next_multiple_of(why.0);
            let [asked, larger] = [test, &done].map(|t| show_bytes(t.block_bytes.into()));
            let name = test.name_of(read_percent);
            self.differs.push(format!("{name} is done with {larger} instead of {asked}: {}.", why.1));
        }
        let span = self.span(test);
        if let Some(span) = span.filter(|s| *s < u64::from(done.block_bytes) && self.may_leave_out()) {
            return self.leave_out(test, format!("only {} are touched", show_bytes(span)));
        }
        if test.latency && test.span_bytes.is_none() && self.is_a_part() {
            let words =
                "is taken in a part of the drive; name the device itself, without --size, to have all of it";
            self.differs.push(format!("{} {words}.", test.name_of(read_percent)));
        }
        let mut job = self.request.job.clone();
        for stream in job.phases.iter_mut().flat_map(|p| &mut p.streams) {
            stream.size = stream.size.or(span.filter(|_| test.span_bytes.is_some()));
        }
        done.spec(read_percent, span.unwrap_or(target::MADE_BYTES), &mut job);
        let at = self.asked.specs.len();
        if self.profile.tests.get(self.profile.headline) == Some(test) {
            self.asked.headline.get_or_insert(at);
        }
        self.asked.specs.push(job);
        self.row(at, read_percent, test);
    }

    /// Where a card tells what is missing from it. Any other profile is whole or refused.
    fn may_leave_out(&self) -> bool {
        self.profile.card.is_some()
    }

    /// The alignment that its blocks do not have, and that in words.
    fn misaligned(&self, test: &Test) -> Option<(u32, String)> {
        let TargetFacts { path, align, .. } = self.target.as_ref().filter(|_| self.may_leave_out())?;
        let align = align.filter(|a| !test.block_bytes.is_multiple_of(*a))?;
        Some((align, format!("direct I/O to {path} needs multiples of {align} bytes")))
    }

    /// Bytes that a test touches, as far as they are known.
    fn span(&self, test: &Test) -> Option<u64> {
        let there = self.target.as_ref().and_then(|g| g.bytes);
        self.said_size().or_else(|| test.span_bytes.map(|s| s.min(there.unwrap_or(s)))).or(there)
    }

    /// Whether what is touched is not a whole device.
    fn is_a_part(&self) -> bool {
        self.target.as_ref().is_some_and(|g| g.role != Role::Device || self.said_size().is_some())
    }

    /// Both directions of a test are left out for the same reason.
    fn leave_out(&mut self, test: &Test, why: String) {
        let at = self.left_out.iter().position(|l| l.0 == why).unwrap_or_else(|| {
            self.left_out.push((why, Vec::new()));
            self.left_out.len() - 1
        });
        let names = &mut self.left_out[at].1;
        let name = test.row_name();
        if !names.contains(&name) {
            names.push(name);
        }
    }

    /// Gives the job its place on the card.
    fn row(&mut self, job: usize, read_percent: u8, test: &Test) {
        let name = test.row_name();
        let at = self.rows.iter().position(|r| r.name == name).unwrap_or_else(|| {
            self.rows.push(LayoutRow { name, latency: test.latency, read: None, write: None });
            self.rows.len() - 1
        });
        let row = &mut self.rows[at];
        let of = |phase| Some(CellSource { job, phase });
        match (test.rewrites, read_percent) {
            (Some(_), _) => (row.write, row.read) = (of(0), of(1)),
            (None, 100) => row.read = of(0),
            (None, _) => row.write = of(0),
        }
    }

    fn finish(self) -> Result<Jobs, Failure> {
        let Self { profile, rows, left_out, mut differs, mut asked, .. } = self;
        let left_out = left_out.iter().map(|(why, names)| format!("Left out: {}: {why}.", names.join(", ")));
        if asked.specs.is_empty() {
            let why = left_out.collect::<Vec<_>>().join(" ");
            return Err(Failure::Usage(format!(
                "nothing of --profile {} can be measured. {why}",
                profile.name
            )));
        }
        differs.extend(left_out);
        let layout = |card: ToolStyle| ToolLayout { tool: card.tool.into(), look: card.look, rows, differs };
        asked.study = profile.card.map_or(Study::Jobs, |card| Study::Profile(layout(card)));
        Ok(asked)
    }
}
