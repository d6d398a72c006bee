//! Regions: which part of its files a job uses, what is made where there is none, and what it ends by.
//!
//! For: `size`, `filesize`, `io_size`, `offset`, `loops`, `number_ios` and how files are allocated. Not for: the names of files
//! ([`super::names`]), nor the order of blocks ([`super::access`]).

use super::access::ParsedRw;
use super::around::Around;
use super::jobs::{Fault, Job};
use super::names;
use super::times::Times;
use super::value::Size;
use super::zones;
use model::job::{Create, Filling, PerKind, Sizes};
use model::spec::StreamSpec;

/// How much of each file, what is made where there is none, and what ends it.
pub(super) fn region(
    job: &Job,
    way: &ParsedRw,
    (files, around): (u32, &dyn Around),
    times: Times,
    one: &mut StreamSpec,
) -> Result<(), Fault> {
    let nothing = one.engine.as_ref().is_some_and(|e| e.name == "null");
    if job.text("filesize").is_some_and(|text| text.contains('-')) {
        return Err(job.fault("filesize", "sizes of files are not drawn; type one size"));
    }
    if job.on("fill_device", false)? && !on_devices(job, files, around) {
        let why =
            "fathom never fills a file system: it keeps 5 % free; type a size, or a block device as filename";
        return Err(job.fault("fill_device", why));
    }
    let shares = Shares { job, around, files, least: least(one) };
    let offset = match job.size("offset")? {
        Some(Size::Percent(percent)) => shares.offset(percent)?,
        Some(Size::Bytes(bytes)) => bytes,
        None => 0,
    };
    one.offset = Some(offset).filter(|o| *o > 0);
    let (size, part) = match job.size("size")? {
        // All that is there, which it is anyway.
        None | Some(Size::Percent(0.0 | 100.0)) => (None, None),
        Some(Size::Bytes(bytes)) => (Some(shares.cut(bytes, offset)).filter(|s| *s > 0), None),
        Some(Size::Percent(percent)) => (None, Some(shares.of_each("size", percent, offset)?)),
    };
    let each = job.bytes("filesize")?.filter(|s| *s > 0);
    // A file of that size begins before the offset.
    let rest = each.map(|each| each.saturating_sub(one.offset.unwrap_or(0)));
    if rest == Some(0) {
        return Err(job.fault("offset", "it is beyond the filesize; type less"));
    }
    let file = part.or(rest).or(size.map(|size| size / u64::from(files)));
    if file == Some(0) {
        return Err(job.fault("size", "it leaves nothing for each file; type more"));
    }
    if nothing && file.is_none() {
        return Err(job.fault("size", "the engine null has no file whose size it could take; type size=1g"));
    }
    one.size = file;
    // What is compared was written before: a new file has nothing that could be right.
    let checks = one.verify.as_ref().is_some_and(|verify| verify.checks);
    let makes = job.on("allow_file_create", true)? && !checks;
    // Whatever is a share of a file is of one that is there.
    if let (false, Some(file), true) = (nothing, file, makes && part.is_none()) {
        let bytes = file.saturating_add(one.offset.unwrap_or(0));
        one.create = Some(Create { bytes, filling: filling(job, way)?, unlink: job.on("unlink", false)? });
    }
    ends(&shares, way, (size, each), times, one)?;
    repeat_first_block(&shares, way, one)
}

/// Goes back by the size of an operation: fio then moves the first block again and again.
fn repeat_first_block(shares: &Shares, way: &ParsedRw, one: &mut StreamSpec) -> Result<(), Fault> {
    if way.step >= 0 || way.rw.is_random() || one.backwards.is_some() {
        return Ok(());
    }
    if let Some(passes) = one.passes.take() {
        let region = shares.region("rw", one)?;
        one.limit.bytes = Some(region.saturating_mul(passes.into()));
    }
    one.size = Some(shares.least.into());
    Ok(())
}

/// Whether all that a job touches are block devices, which end where they end.
fn on_devices(job: &Job, files: u32, around: &dyn Around) -> bool {
    !names::own_files(job) && names::paths(job, 0, files).iter().all(|path| around.is_device(path))
}

/// The smallest operation in bytes.
fn least(one: &StreamSpec) -> u32 {
    let sizes = |bs: &PerKind<Sizes>| [&bs.read, &bs.write, &bs.trim].map(Sizes::least).into_iter().min();
    one.bs.as_ref().and_then(sizes).unwrap_or(1).max(1)
}

/// The largest operation in bytes.
fn most(one: &StreamSpec) -> u32 {
    let sizes = |bs: &PerKind<Sizes>| [&bs.read, &bs.write, &bs.trim].map(Sizes::most).into_iter().max();
    one.bs.as_ref().and_then(sizes).unwrap_or(1)
}

/// Shares of the files of a job, which are there and alike.
struct Shares<'j> {
    job: &'j Job,
    around: &'j dyn Around,
    files: u32,
    /// What they are multiples of, in bytes.
    least: u32,
}

impl Shares<'_> {
    /// A percentage of each file in bytes, at most what follows the offset, in whole operations.
    fn of_each(&self, option: &str, percent: f64, offset: u64) -> Result<u64, Fault> {
        let length = self.length(option)?;
        let bytes = ((length as f64 * percent / 100.0) as u64).min(length.saturating_sub(offset));
        let operations = bytes / u64::from(self.least);
        if operations == 0 {
            return Err(self.job.fault(option, "it is less than one operation; type more"));
        }
        Ok(operations * u64::from(self.least))
    }

    /// A percentage of each file as an offset: the next multiple of `offset_align`, or of the smallest operation.
    fn offset(&self, percent: f64) -> Result<u64, Fault> {
        if percent == 0.0 {
            return Ok(0);
        }
        let offset = (self.length("offset")? as f64 * percent / 100.0) as u64;
        let align = self.job.bytes("offset_align")?.filter(|a| *a > 0).unwrap_or(self.least.into());
        let next = offset.checked_next_multiple_of(align);
        next.ok_or_else(|| self.job.fault("offset_align", "it is more than any file has; type less"))
    }

    /// A size of all files, of which devices have only what follows the offset.
    fn cut(&self, size: u64, offset: u64) -> u64 {
        if !on_devices(self.job, self.files, self.around) {
            return size;
        }
        let Ok(length) = self.length("size") else { return size };
        let (files, least) = (u64::from(self.files), u64::from(self.least));
        let room = length.saturating_sub(offset);
        // What lies beyond the end altogether is refused elsewhere.
        if size / files <= room || room < least { size } else { (room - room % least) * files }
    }

    /// Bytes of the region in all files together.
    fn region(&self, option: &str, one: &StreamSpec) -> Result<u64, Fault> {
        let each = match one.size {
            Some(size) => size,
            None => self.length(option)?.saturating_sub(one.offset.unwrap_or(0)),
        };
        Ok(each.saturating_mul(self.files.into()))
    }

    /// Whether operations with holes between them begin again at the start of a file until its size is moved, as in fio: only if
    /// the region is a whole file, and no operation ends exactly at its end.
    fn wraps(&self, one: &StreamSpec) -> bool {
        let Some(hole) = one.hole.filter(|_| one.offset.is_none()) else { return false };
        let length = self.length("size").ok();
        let Some(region) = one.size.or(length) else { return false };
        let least = u64::from(self.least);
        let is_whole = length.is_none_or(|length| length <= region);
        is_whole && region >= least && !(region - least).is_multiple_of(least.saturating_add(hole))
    }

    /// Bytes of each file.
    fn length(&self, option: &str) -> Result<u64, Fault> {
        let clones = if names::own_files(self.job) { self.job.count("numjobs", 1)?.unwrap_or(1) } else { 1 };
        let mut length = None;
        for path in (0..clones).flat_map(|clone| names::paths(self.job, clone, self.files)) {
            let is = self.around.length(&path).map_err(|why| {
                self.job.fault(option, format!("{path}: {why}, and a share is of what is there; type a size"))
            })?;
            if length.is_some_and(|length| length != is) {
                let why = "the files have several lengths, of which it is not the same share; type a size";
                return Err(self.job.fault(option, why));
            }
            length = Some(is);
        }
        Ok(length.unwrap_or(0))
    }
}

/// What is in a file that is made: what is only written need not be there before.
fn filling(job: &Job, way: &ParsedRw) -> Result<Filling, Fault> {
    if !way.only_writes() || job.on("overwrite", false)? {
        return Ok(Filling::Data);
    }
    match job.text("fallocate").unwrap_or("native") {
        "native" | "posix" | "1" => Ok(Filling::Blocks),
        "none" | "0" => Ok(Filling::Nothing),
        _ => Err(job
            .fault("fallocate", "files are allocated with their length, or not at all; type native or none")),
    }
}

/// What ends it: so many passes, bytes or operations; nothing but the time where it is `time_based`.
fn ends(
    shares: &Shares,
    way: &ParsedRw,
    (size, each): (Option<u64>, Option<u64>),
    times: Times,
    one: &mut StreamSpec,
) -> Result<(), Fault> {
    let job = shares.job;
    // A trim and its write are counted as one.
    let all = |n: u64| if way.rw.writes_after_trims() { n.saturating_mul(2) } else { n };
    let loops = job.count("loops", 1)?.unwrap_or(1);
    let operations = job.number("number_ios")?.filter(|n| *n > 0);
    one.limit.operations = operations.map(|n| all(n.saturating_mul(loops.into())));
    if job.on("create_only", false)? {
        // Its files are made, and that is all.
        one.limit.operations = Some(0);
    }
    if job.on("time_based", false)? {
        return Ok(());
    }
    if times.ramp > 0 && times.runtime.is_none() {
        return Err(job.fault("ramp_time", "fio counts what it moves in the ramp to the size, and fathom does not; type time_based and runtime"));
    }
    // Without io_size a job moves no more than its files have after the offset.
    let within = one.size.map_or(u64::MAX, |each| each.saturating_mul(shares.files.into()));
    let size_alone = size.filter(|_| each.is_some() && each != size).map(|size| size.min(within));
    let amount = job.bytes("io_size")?.filter(|a| *a > 0).or(size_alone);
    let passes_over = amount.zip(size).is_some_and(|(amount, size)| amount > size);
    if one.positions.is_some() && (loops > 1 || passes_over) {
        let option = if loops > 1 { "loops" } else { "io_size" };
        let why = "where one direction of a mix comes to the end, fio begins again with both, and fathom with that one; type time_based and runtime, or less";
        return Err(job.fault(option, why));
    }
    if way.rw.writes_after_trims() && amount.zip(one.size).is_some_and(|(amount, size)| amount > size) {
        let why = "beyond the end of the region fio counts trims and writes together; type loops, or time_based and runtime";
        return Err(job.fault("io_size", why));
    }
    if one.strided.is_some() && loops > 1 {
        return Err(job.fault("loops", "each of them would begin at the first zone again; type io_size"));
    }
    match (amount, one.strided) {
        (None, Some(zones)) => {
            let region = match one.size {
                Some(size) => size,
                None => shares.length("zonesize")?.saturating_sub(one.offset.unwrap_or(0)),
            };
            one.limit.bytes = Some(zones::bytes_in_all(zones, region, one, way.rw.writes_after_trims()));
        }
        (Some(bytes), _) => {
            // An operation that would go beyond is not begun.
            let least = least(one);
            let whole = bytes / u64::from(least) * u64::from(least);
            if whole == 0 {
                return Err(job.fault("io_size", "it is less than one operation; type more"));
            }
            one.limit.bytes = Some(all(whole).saturating_mul(u64::from(loops)));
        }
        (None, None) if shares.wraps(one) => {
            let region = shares.region("size", one)?;
            let whole = region - region % u64::from(shares.least);
            // The last operation may be the largest, and must not go beyond.
            let rest = u64::from(most(one).saturating_sub(shares.least));
            one.limit.bytes = Some(all(whole).saturating_mul(loops.into()).saturating_sub(rest));
        }
        (None, None) => one.passes = Some(loops),
    }
    Ok(())
}
