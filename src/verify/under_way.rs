//! A verification under way: the target made or opened, written, read back.
//!
//! For: the steps on the machine, and what came of each. Not for: what is asked for ([`super::request`]), nor showing it
//! (crate `report`).

use super::request::HostTask;
use super::state::Keeper;
use super::{Options, ToWrite};
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live::{Left, Live};
use crate::run;
use crate::target::Ready;
use engine::engines;
use engine::source::own_blocks;
use engine::verifier::{self, Through, Writing};
use machine::rest;
use machine::root::Root;
use model::Known;
use model::evidence::BlockStat;
use model::job::{Kind, Stream};
use model::machine::{LayerKind, Machine, Place};
use model::name;
use model::payload::split_mix;
use model::plan::{Plan, Role};
use model::units::{show_bytes, show_count};
use model::verification::{Mark, State, Verification};
use model::verified::{Ending, Failures, Verified};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A verification under way.
pub(super) struct VerifyRun {
    root: Root,
    plan: Plan,
    fleet: Fleet,
    targets: Vec<Ready>,
    place: Place,
    verification: Verification,
    through: Through,
    cached: bool,
    /// How many hosts on the one is whose data are read back.
    shift_hosts: Option<u32>,
    stop: Arc<AtomicBool>,
    live: Live,
    notes: Vec<String>,
}

impl VerifyRun {
    /// Makes or opens the target, with whatever the other hosts make.
    pub(super) fn prepare(
        asked: &Options,
        (plan, machine): (Plan, Machine),
        meant: &HostTask,
        (stop, fleet): (Arc<AtomicBool>, &Fleet),
    ) -> Result<Self, Failure> {
        let root = Root::real();
        let live = Live::plain(asked.quiet || !fleet.tells());
        let Some((stream, target)) = streams(&plan).next().zip(plan.targets.first()) else {
            return Err(Failure::Usage("there is nothing to verify".into()));
        };
        run::name_leftovers(&plan, &live);
        let targets = run::prepare_targets(&root, &plan, (&stop, &live, None), fleet)?;
        let mut place = machine.places.into_iter().next().unwrap_or_default();
        if let Some(handle) = targets[0].handle().filter(|_| target.role == Role::Made)
            && let Ok(found) = machine::resolve::resolve_open(&root, handle, &name::path(&target.path))
        {
            place = found;
        }
        let mut notes: Vec<String> = targets.iter().flat_map(Ready::notes).cloned().collect();
        notes.extend(analysis::engine_fallbacks(&plan));
        let engine = engines::find(&stream.engine)
            .ok_or_else(|| Failure::Usage(format!("--engine {}: there is no such engine", stream.engine)))?;
        if engine.max_depth < stream.depth {
            notes.push(format!(
                "the engine {} has {} operation in flight at most",
                engine.name, engine.max_depth
            ));
        }
        if let Some(ram) = &place.ram {
            notes.push(format!("this is memory ({ram}): it says nothing about what storage does with data"));
        }
        let verification = match meant {
            HostTask::Write(to_write, _) => new_verification(to_write, &plan, stream, targets[0].bytes())?,
            HostTask::Check(state) => state.verification,
        };
        verification.check().map_err(Failure::Usage)?;
        let (clock, _) = sys::clock::Clock::calibrate(false);
        let through = Through {
            engine,
            options: stream.options.clone(),
            cache: stream.cache,
            depth: stream.depth,
            clock,
        };
        let (cached, shift_hosts, fleet) = (asked.cached, asked.shift_hosts, fleet.clone());
        Ok(Self {
            root,
            plan,
            fleet,
            targets,
            place,
            verification,
            through,
            cached,
            shift_hosts,
            stop,
            live,
            notes,
        })
    }

    /// Writes, and reads back what this host or another one has written.
    pub(super) fn write_and_read(
        &mut self,
        to_write: &ToWrite,
        state: Option<&Path>,
    ) -> Result<Verified, Failure> {
        let v = self.verification;
        let path = self.plan.targets.first().map_or_else(String::new, |t| t.path.clone());
        let kept = State::new(path.clone(), v, v.mark(0));
        let mut keeper = match state {
            Some(file) => Some(Keeper::create(file, kept.clone())?),
            None => None,
        };
        let file = self.targets[0].open(&self.root, self.through.cache, true)?;
        let words = |pass: u64| format!("writing pass {pass} of {}", v.passes);
        self.live.begin(&words(1));
        let since = Instant::now();
        let live = &self.live;
        let writing = Writing {
            verification: &v,
            until: to_write.time_ns.and_then(|ns| since.checked_add(Duration::from_nanos(ns))),
            stop: &self.stop,
            progress: &mut |done| self.show(since, done, v.writes()),
            marked: &mut |mark| {
                if mark.synced.is_multiple_of(v.blocks) && mark.synced < v.writes() {
                    live.begin(&words(mark.synced / v.blocks + 1));
                }
                keeper.as_mut().map_or(Ok(()), |k| k.keep(mark))
            },
        };
        let written = verifier::write(&self.through, file, writing).map_err(|e| refused(&path, &e))?;
        let took = since.elapsed();
        if let Some(refusal) = refusal(&path, &written.failures) {
            return Err(refusal);
        }
        if written.ending == Ending::Time {
            self.notes.push(format!(
                "--time ended the writing after {} of {} writes",
                show_count(written.mark.begun as f64),
                show_count(v.writes() as f64)
            ));
        }
        let mut outcome = self.outcome(written.mark);
        outcome.state = state.map(name::text);
        let (mark, ending) = (written.mark, written.ending);
        outcome.written = Some((written, took));
        if ending != Ending::Interrupted {
            self.read_whose(&State { mark, ..kept }, &mut outcome)?;
        }
        outcome.notes.append(&mut self.notes);
        Ok(outcome)
    }

    /// Reads back what this host has written, or another one, as soon as all have.
    fn read_whose(&mut self, own: &State, outcome: &mut Verified) -> Result<(), Failure> {
        if self.shift_hosts.is_some() {
            self.live.begin("waiting for the other hosts");
        }
        match self.fleet.written(own.clone(), self.shift_hosts) {
            Ok(theirs) => self.read(&theirs, outcome),
            // What was written here is told by whoever tells it all.
            Err(_) if self.fleet.over_code().is_some() || self.stop.load(Ordering::Relaxed) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Reads back what the state says.
    pub(super) fn check(&mut self, state: &State) -> Result<Verified, Failure> {
        let mut outcome = self.outcome(state.mark);
        self.read(state, &mut outcome)?;
        outcome.notes.append(&mut self.notes);
        Ok(outcome)
    }

    fn outcome(&self, mark: Mark) -> Verified {
        Verified {
            verification: self.verification,
            mark,
            target: self.plan.targets.first().map_or_else(String::new, |t| t.path.clone()),
            place: self.place.clone(),
            written: None,
            read: None,
            source: String::new(),
            notes: Vec::new(),
            state: None,
            read_of: self.fleet.host_behind(self.shift_hosts),
        }
    }

    /// Reads back, past the page cache as far as that can be had.
    fn read(&self, what: &State, outcome: &mut Verified) -> Result<(), Failure> {
        let last = streams(&self.plan).last().and_then(|stream| self.targets.get(*stream.targets.first()?));
        let Some(target) = last else { return Err(Failure::Usage("there is nothing to read back".into())) };
        let evicted = self.evict(target);
        let before = read_by_last_devices(&self.root, &self.place);
        let v = &what.verification;
        let file = target.open(&self.root, self.through.cache, false)?;
        self.live.begin("reading back");
        let since = Instant::now();
        let mut progress = |done| self.show(since, done, v.blocks);
        let seen = verifier::read_back(&self.through, file, v, what.mark, &self.stop, &mut progress)
            .map_err(|e| refused(&outcome.target, &e))?;
        let none_read = seen.blocks == 0 && !seen.interrupted;
        if let Some(refusal) = refusal(&outcome.target, &seen.failures).filter(|_| none_read) {
            return Err(refusal);
        }
        let failed = outcome.failed_writes() > 0;
        let sound = seen.damaged == 0 && seen.failures == Failures::default();
        if seen.must == 0 && sound && !failed && !seen.interrupted {
            return Err(Failure::Refused(format!(
                "{}: nothing to verify: no write was known to be stable when the writer stopped; let it write for longer, or \
                 use a smaller --sync-every",
                outcome.target
            )));
        }
        outcome.source = match evicted {
            Evicted::All => {
                let after = read_by_last_devices(&self.root, &self.place);
                let read = before.and_then(|before| Ok(after?.saturating_sub(before)));
                source_of_reads(&self.place, outcome.bytes_of(seen.blocks), read)
            }
            Evicted::NotAll(words) => words,
        };
        outcome.read = Some((seen, since.elapsed()));
        Ok(())
    }

    /// How far it is; and a look at whether another host has fallen silent.
    fn show(&self, since: Instant, done: u64, total: u64) {
        self.live.tick_step(done, total, Left::by(since, done, total));
        for words in self.fleet.progress(done, || None) {
            self.live.tell(&words);
        }
    }

    /// Evicts the target from the page cache.
    fn evict(&self, target: &Ready) -> Evicted {
        if self.cached {
            return Evicted::NotAll(
                "the page cache as it was: this says what the kernel holds, not what the device does".into(),
            );
        }
        let Some(handle) = target.handle() else { return Evicted::NotAll("the target as it was".into()) };
        Evicted::NotAll(match rest::evict(handle) {
            Ok(pages) if pages.cached == 0 => return Evicted::All,
            Ok(pages) => format!(
                "the device, but for {} pages ({}) that stayed in the page cache and may have been read instead",
                show_count(pages.cached as f64),
                show_bytes(pages.cached.saturating_mul(pages.page_bytes))
            ),
            Err(why) => format!("the device or the page cache; which is not known: {why}"),
        })
    }
}

/// The outcome of a check of a file or device that ends before the first whole block: nothing can be planned there, and everything is
/// lost. `None` where there is something to read.
pub(super) fn cut_off(asked: &Options, state: &State) -> Option<Verified> {
    let (v, path) = (state.verification, super::request::checked(asked, state));
    let end = super::request::end_of(&path);
    if v.check().is_err() || end >= v.offset_bytes.saturating_add(u64::from(v.block_bytes)) {
        return None;
    }
    let read = verifier::all_lost(&v, state.mark, end);
    if read.damaged == 0 {
        return None;
    }
    Some(Verified {
        verification: v,
        mark: state.mark,
        target: name::text(&path),
        place: machine::resolve::resolve(&Root::real(), &path).unwrap_or_default(),
        written: None,
        read: Some((read, Duration::ZERO)),
        source: "the length of the target, which ends before the first block".into(),
        notes: Vec::new(),
        state: None,
        read_of: None,
    })
}

/// What became of the target's pages before it was read back.
enum Evicted {
    /// No page of it is in the page cache.
    All,
    /// Some may be; where the reads will come from, in words.
    NotAll(String),
}

/// Part of what was read back that the last devices must have read, to be called the source.
const ARRIVES_FROM: f64 = 0.95;

/// Bytes that the last devices of a chain have read so far.
///
/// # Errors
/// Why the chain is not known to its end, or a device does not count.
fn read_by_last_devices(root: &Root, place: &Place) -> Known<u64> {
    if let Some(why) = &place.blind {
        return Err(why.clone());
    }
    let mut sum = None;
    for device in place.leaves() {
        if let Some(why) = device.blind() {
            return Err(why);
        }
        let read = BlockStat::parse(&root.read(&device.stat_file)?)?.read.bytes;
        sum = Some(sum.unwrap_or(0_u64).saturating_add(read));
    }
    sum.ok_or_else(|| format!("no block device is known below {}", place.kind()))
}

/// Describes where the reads came from, after no page of the target was left in the page cache: `asked` bytes were read back, and the last
/// devices read `read` bytes meanwhile.
fn source_of_reads(place: &Place, asked: u64, read: Known<u64>) -> String {
    let evicted = "no page of the target was left in the page cache";
    if let Some(ram) = &place.ram {
        return format!("memory ({ram})");
    }
    let read = match read {
        Ok(read) => read,
        Err(why) => return format!("{evicted}, but whether a device was read is not known: {why}"),
    };
    let names: Vec<&str> = place.leaves().map(|l| l.name.as_str()).collect();
    let names = names.join(", ");
    let (done, wanted) = (show_bytes(read), show_bytes(asked));
    if (read as f64) < ARRIVES_FROM * asked as f64 {
        return format!(
            "a cache or memory above {names}, at least in part: {evicted}, but {names} read {done} of {wanted}; nothing is known \
             about what is stored there"
        );
    }
    // More than was asked for may hide that an image's page cache answered.
    let cached = place.layers.iter().find(|l| l.kind == LayerKind::Loop && l.backing_direct != Some(true));
    match cached {
        Some(device) if read as f64 * ARRIVES_FROM > asked as f64 => format!(
            "{names} or the page cache of the image of {}; which is not known: {names} read {done} for {wanted}, and others may \
             have caused that",
            device.name
        ),
        _ => format!("the device: {evicted}, and {names} read {done}"),
    }
}

#[test]
fn the_device_is_the_source_only_if_the_last_one_read_as_much() {
    let layer = |name: &str, kind, below: &[usize]| model::machine::Layer {
        name: name.into(),
        kind,
        below: below.to_vec(),
        ..Default::default()
    };
    let mut place = Place {
        layers: vec![layer("loop0", LayerKind::Loop, &[1]), layer("vda", LayerKind::Disk, &[])],
        tops: vec![0],
        ..Place::default()
    };
    let mib = |n: u64| n << 20;
    let source = |place: &Place, read| source_of_reads(place, mib(64), read);
    assert!(source(&place, Ok(8192)).starts_with("a cache or memory above vda"));
    assert!(source(&place, Ok(mib(500))).contains("which is not known"), "a neighbour read vda too");
    assert!(source(&place, Ok(mib(64))).starts_with("the device: "));
    place.layers[0].backing_direct = Some(true);
    assert!(source(&place, Ok(mib(500))).starts_with("the device: "));
    // The same below a volume that caches.
    place.layers[0].kind = LayerKind::DeviceMapper;
    assert!(source(&place, Ok(mib(10))).contains("vda read 10 MiB of 64 MiB"));
    assert!(source(&place, Err("no stat".into())).contains("is not known: no stat"));
    place.ram = Some("zram0".into());
    assert_eq!(source(&place, Ok(mib(64))), "memory (zram0)");
}

/// The streams of a plan: what writes, and behind it what reads what another host has written.
fn streams(plan: &Plan) -> impl Iterator<Item = &Stream> {
    plan.jobs.iter().flat_map(|job| &job.phases).flat_map(|phase| &phase.streams)
}

/// What this host is to write.
///
/// # Errors
/// Where not a single block fits.
fn new_verification(
    to_write: &ToWrite,
    plan: &Plan,
    stream: &Stream,
    bytes: u64,
) -> Result<Verification, Failure> {
    let none_fits =
        || Failure::Usage("not a single block fits; use a smaller --bs or a larger --size".into());
    let offset = stream.access.offset_bytes;
    let span = stream.access.span_bytes.min(bytes.checked_sub(offset).ok_or_else(none_fits)?);
    let part = match stream.shared {
        Some(shared) => own_blocks((stream, shared), span, plan.tasks(0, stream))
            .map_err(Failure::Usage)?
            .places()
            .next()
            .ok_or_else(none_fits)?,
        None => 0..span,
    };
    let blocks = (part.end - part.start).checked_div(u64::from(to_write.block_bytes)).filter(|b| *b > 0);
    let now = jiff::Timestamp::now().as_nanosecond() as u64;
    let here = u64::from(std::process::id()) ^ split_mix(plan.drawn_by());
    Ok(Verification {
        id: split_mix(now ^ split_mix(here)),
        seed: plan.drawn_by(),
        offset_bytes: offset + part.start,
        block_bytes: to_write.block_bytes,
        blocks: blocks.ok_or_else(none_fits)?,
        passes: to_write.passes,
        sync_every: to_write.sync_every,
    })
}

fn refused(path: &str, why: &str) -> Failure {
    Failure::Refused(format!("{path}: {why}"))
}

/// The refusal behind failed operations, where what failed says what a target cannot do and nothing about what it does with data.
fn refusal(path: &str, failures: &Failures) -> Option<Failure> {
    failures.counts.iter().find_map(|c| {
        let error = io::Error::from_raw_os_error(c.errno);
        let cure = match error.kind() {
            // A sync that finds no room has lost writes that were accepted.
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded if c.kind != Kind::Sync => {
                "make room, or use a smaller --size"
            }
            ErrorKind::FileTooLarge => "use a smaller --size, or raise `ulimit -f`",
            ErrorKind::InvalidInput | ErrorKind::Unsupported => {
                "type --cache buffered, or another --engine or --bs"
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "name a target that may be written"
            }
            _ => return None,
        };
        Some(Failure::Refused(format!("{path}: {error}; {cure}")))
    })
}
