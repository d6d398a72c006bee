//! Files of a job: their names, the region that is used (`size`, `filesize`, `io_size`, `offset`), what is
//! created if they are missing, and what ends the job (`loops`, `number_ios`).

use crate::fio::access;
use crate::fio::access::ParsedRw;
use crate::fio::job_file::{Environment, Fault, Job, Times, is_time_based, visible};
use crate::fio::value::Size;
use model::job::{Clones, Create, Filling, Order, PerKind, Positions, Sizes};
use model::spec::number::MAX_TARGETS;
use model::spec::{JobSpec, StreamSpec};
use model::units::MIB;
use std::collections::BTreeMap;

/// Sets the region of each file, how missing files are created, and what ends the job. Returns the
/// distance between the starts of clones.
pub(super) fn region(
    job: &Job,
    rw: &ParsedRw,
    files: u32,
    environment: &dyn Environment,
    times: Times,
    stream: &mut StreamSpec,
) -> Result<Increment, Fault> {
    let is_null = stream.engine.as_ref().is_some_and(|e| e.name == "null");
    let range = filesize_range(job)?;
    // With a size, fio stops at the size instead of filling the device.
    let has_size = ["size", "filesize"].iter().any(|option| job.text(option).is_some());
    let fills_files = job.on("fill_device", false)? && !has_size && !on_devices(job, files, environment);
    let why =
        "fathom never fills a file system, and keeps 5 % free; type a size, or a block device as filename";
    job.refuse_if(fills_files, "fill_device", why)?;
    let appends = job.on("file_append", false)? && !on_devices(job, files, environment);
    job.refuse_if(appends, "file_append", "fathom does not append to files; remove the option")?;
    let repeats = job.count("loops", 1)?.unwrap_or(1) > 1 || is_time_based(job)? || has_io_size(job)?;
    let unlinks = job.on("unlink_each_loop", false)? && repeats && !on_devices(job, files, environment);
    job.refuse_if(unlinks, "unlink_each_loop", "fathom keeps files between passes; remove the option")?;
    let shares = Shares { job, environment, files, block_bytes_min: smallest_block(stream) };
    let each = file_size(job)?;
    let offset = match job.size("offset")? {
        Some(Size::Percent(percent)) => shares.offset(percent)?,
        Some(Size::Bytes(bytes)) => bytes,
        None => 0,
    };
    stream.resolved.access.offset_bytes = offset;
    let typed_size =
        match job.text("size").filter(|text| !text.starts_with('(')).and_then(|text| text.rsplit_once('-')) {
            // fio uses the last number of a range.
            Some((_, last)) => Some(job.units("size").size(last).map_err(|why| job.fault("size", why))?),
            None => job.size("size")?,
        };
    let is_share = range.is_some() && matches!(typed_size, Some(Size::Percent(p)) if p > 0.0 && p < 100.0);
    job.refuse_if(is_share, "size", "the files have different sizes; type a size instead of a percentage")?;
    let (size, part) = match (typed_size, each) {
        // Use the whole file, as without `size`.
        (None | Some(Size::Percent(0.0 | 100.0)), _) => (None, None),
        (Some(Size::Bytes(bytes)), _) => {
            (Some(shares.limit_to_device(bytes, offset)).filter(|s| *s > 0), None)
        }
        (Some(Size::Percent(percent)), Some(each)) => {
            let bytes = (each as f64 * percent / 100.0) as u64;
            let bytes = bytes.min(each.saturating_sub(offset));
            let block = u64::from(shares.block_bytes_min);
            (None, Some(bytes / block * block).filter(|bytes| *bytes > 0))
        }
        (Some(Size::Percent(percent)), None) => (None, Some(shares.bytes_of_each("size", percent, offset)?)),
    };
    // The size of a file includes the bytes before the offset.
    let rest = each.map(|each| each.saturating_sub(offset));
    job.refuse_if(rest == Some(0), "offset", "the offset is not below filesize; type a smaller offset")?;
    let file = part.or(rest).or(size.map(|size| size / u64::from(files)));
    let file = file.filter(|_| range.is_none());
    job.refuse_if(file == Some(0), "size", "each file would have 0 bytes; type a larger size")?;
    let why = "ioengine=null has no file, so a size is needed; type size=1g";
    job.refuse_if(is_null && file.is_none(), "size", why)?;
    stream.size = file;
    // A file to verify must have been written before, so a missing file is not created.
    let checks = stream.resolved.verify.as_ref().is_some_and(|verify| verify.checks);
    // A percentage refers to existing files, so files are created only if all are missing.
    let may_create =
        job.on("allow_file_create", true)? && !is_null && !checks && (part.is_none() || shares.are_missing());
    if let Some(file) = file.or(range.map(|(_, most)| most)).filter(|_| may_create) {
        let is_empty = job.on("create_on_open", false)? && !rw.writes() && shares.are_missing();
        let why = "fio makes an empty file, so nothing can be read; leave create_on_open out";
        job.refuse_if(is_empty, "create_on_open", why)?;
        let bytes = file.saturating_add(offset);
        stream.create = Some(Create { bytes, filling: filling(job, rw)?, unlink: job.on("unlink", false)? });
    }
    set_end(&shares, rw, size.filter(|_| range.is_none()), each, times, stream)?;
    repeat_first_block(&shares, rw, stream)?;
    shares.increment(stream)
}

/// The typed size of each file in bytes; `None` if none is typed, and for a range of sizes.
pub(super) fn file_size(job: &Job) -> Result<Option<u64>, Fault> {
    if filesize_range(job)?.is_some() {
        return Ok(None);
    }
    // Both ends of a range may be the same size.
    let first = |text: &str| text.split_once('-').map_or(text, |(first, _)| first).to_owned();
    match job.parse("filesize", |text| job.units("filesize").size(&first(text)))? {
        Some(Size::Percent(_)) => Err(job.fault("filesize", "fathom takes no percentage here; type a size")),
        Some(Size::Bytes(bytes)) => Ok(Some(bytes).filter(|bytes| *bytes > 0)),
        None => Ok(None),
    }
}

/// The smallest and the largest size of `filesize=4k-64k` in bytes; `None` if they are equal or no
/// range is typed.
pub(super) fn filesize_range(job: &Job) -> Result<Option<(u64, u64)>, Fault> {
    let text = job.text("filesize").filter(|text| !text.starts_with('('));
    let Some((least, most)) = text.and_then(|text| text.split_once('-')) else { return Ok(None) };
    let bytes = |text: &str| job.units("filesize").whole(text).map_err(|why| job.fault("filesize", why));
    let (least, most) = (bytes(least)?, bytes(most)?);
    let why = "the first size is 0, or larger than the second; type a range such as 4k-64k";
    job.refuse_if(least == 0 || least > most, "filesize", why)?;
    Ok(Some((least, most)).filter(|_| least < most))
}

/// Gives each file of a clone its own size if `filesize` is a range, and limits the clone to
/// `size`. The drawn sizes are the same as in fio.
pub(super) fn draw_sizes(
    job: &Job,
    clone: u32,
    files: u32,
    environment: &dyn Environment,
    stream: &mut StreamSpec,
) -> Result<(), Fault> {
    let (Some((least, most)), Some(_)) = (filesize_range(job)?, stream.create) else { return Ok(()) };
    let block = u64::from(smallest_block(stream));
    let mut random = Taus88::for_file_sizes(job, clone)?;
    for path in paths(job, clone, files) {
        let length = environment.length(&path);
        let why = format!("the size of {path} is not in this range; remove the file, or type its size");
        let is_other = length.as_ref().is_ok_and(|length| !(least..=most).contains(length));
        job.refuse_if(is_other, "filesize", why)?;
        let drawn = length.unwrap_or_else(|_| {
            let bytes = least + ((most - least) as f64 * random.share()) as u64;
            bytes - bytes % block
        });
        job.refuse_if(drawn == 0, "filesize", "a file would have 0 bytes; type a larger size")?;
        stream.create_bytes.push(drawn);
    }
    let offset = stream.resolved.access.offset_bytes;
    let region: u64 = stream.create_bytes.iter().map(|all| all.saturating_sub(offset)).sum();
    if let Some(Size::Bytes(bytes)) = job.size("size")?
        && bytes > 0
        && bytes < region
        && stream.passes.take().is_some()
    {
        let loops = u64::from(job.count("loops", 1)?.unwrap_or(1));
        stream.resolved.limit.bytes = Some(bytes.div_ceil(block) * block * loops);
    }
    Ok(())
}

/// The random numbers of fio's file sizes: L'Ecuyer's generator taus88 (1996).
struct Taus88([u32; 3]);

impl Taus88 {
    /// The generator of a clone, with the seed that fio gives it.
    fn for_file_sizes(job: &Job, clone: u32) -> Result<Self, Fault> {
        // fio's default of `randseed`, the factor between the seeds of its generators, and the number of the generator of file sizes.
        const RANDSEED: u64 = 0x89;
        const FACTOR: u64 = 0x9e37_0001;
        const NUMBER: u32 = 7;
        let seed = job.number("randseed")?.unwrap_or(RANDSEED).wrapping_mul(FACTOR.wrapping_pow(4 + NUMBER));
        // fio numbers its threads in the order in which it makes them: the first clone, then from the last to the second.
        let count = job.count("numjobs", 1)?.unwrap_or(1);
        let thread = u64::from(job.threads_before) + u64::from((count - clone) % count) + 1;
        let seed = seed.wrapping_mul(thread).wrapping_add(u64::from(NUMBER)) as u32;
        let next = |before: u32, least: u32| {
            let state = before.wrapping_mul(69069) ^ seed;
            if state < least { state + least } else { state }
        };
        let first = next(53, 1);
        let second = next(first, 7);
        let mut random = Self([first, second, next(second, 15)]);
        (0..6).for_each(|_| _ = random.share());
        Ok(random)
    }

    /// A random number from 0 to below 1.
    fn share(&mut self) -> f64 {
        let [a, b, c] = &mut self.0;
        *a = ((*a & !1) << 12) ^ (((*a << 13) ^ *a) >> 19);
        *b = ((*b & !7) << 4) ^ (((*b << 2) ^ *b) >> 25);
        *c = ((*c & !15) << 17) ^ (((*c << 3) ^ *c) >> 11);
        f64::from(*a ^ *b ^ *c) / (f64::from(u32::MAX) + 1.0)
    }
}

/// Reduces the region to the first block if a step back is as large as a block, because fio then repeats this block.
fn repeat_first_block(shares: &Shares, rw: &ParsedRw, stream: &mut StreamSpec) -> Result<(), Fault> {
    if rw.step >= 0 || rw.kind.is_random() || stream.steps.backwards {
        return Ok(());
    }
    if let Some(passes) = stream.passes.take() {
        let region = shares.region("rw", stream)?;
        stream.resolved.limit.bytes = Some(region.saturating_mul(passes.into()));
    }
    stream.size = Some(shares.block_bytes_min.into());
    Ok(())
}

/// The distance between the starts of two consecutive clones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Increment {
    pub(super) bytes: u64,
    /// The start of each clone is rounded up to a multiple of this many bytes: 1 unless the
    /// distance is a percentage.
    align: u64,
}

impl Increment {
    /// The first byte of a clone if the first clone starts at the byte `first`.
    pub(super) fn offset(self, first: u64, clone: u32) -> u64 {
        let offset = first.saturating_add(self.bytes.saturating_mul(u64::from(clone)));
        offset.checked_next_multiple_of(self.align).unwrap_or(offset)
    }
}

/// Whether all files of a job are block devices, whose size is fixed.
fn on_devices(job: &Job, files: u32, environment: &dyn Environment) -> bool {
    !own_files(job) && paths(job, 0, files).iter().all(|path| environment.is_device(path))
}

/// The smallest operation in bytes.
fn smallest_block(stream: &StreamSpec) -> u32 {
    let sizes = |bs: &PerKind<Sizes>| [&bs.read, &bs.write, &bs.trim].map(Sizes::least).into_iter().min();
    stream.bs.as_ref().and_then(sizes).unwrap_or(1).max(1)
}

/// The largest operation in bytes.
fn largest_block(stream: &StreamSpec) -> u32 {
    let sizes = |bs: &PerKind<Sizes>| [&bs.read, &bs.write, &bs.trim].map(Sizes::most).into_iter().max();
    stream.bs.as_ref().and_then(sizes).unwrap_or(1)
}

/// Computes percentages of a job's files. The files must exist and have the same length.
struct Shares<'j> {
    job: &'j Job,
    environment: &'j dyn Environment,
    files: u32,
    /// The smallest operation in bytes, to which sizes and offsets are aligned.
    block_bytes_min: u32,
}

impl Shares<'_> {
    /// Converts a percentage of each file to bytes. The result is at most the part of the file after the offset, in whole operations.
    fn bytes_of_each(&self, option: &str, percent: f64, offset: u64) -> Result<u64, Fault> {
        let length = self.length(option)?;
        let bytes = ((length as f64 * percent / 100.0) as u64).min(length.saturating_sub(offset));
        let operations = bytes / u64::from(self.block_bytes_min);
        self.job.refuse_if(operations == 0, option, "the size is less than one block; type a larger size")?;
        Ok(operations * u64::from(self.block_bytes_min))
    }

    /// A percentage of each file as an offset in bytes, rounded up to a multiple of `offset_align`
    /// or, without that option, of the smallest operation. 0 if all files are missing.
    fn offset(&self, percent: f64) -> Result<u64, Fault> {
        // A missing file has size 0 when fio computes the offset.
        if percent == 0.0 || self.are_missing() {
            return Ok(0);
        }
        let offset = (self.length("offset")? as f64 * percent / 100.0) as u64;
        let align = self.job.bytes("offset_align")?.filter(|a| *a > 0).unwrap_or(self.block_bytes_min.into());
        let next = offset.checked_next_multiple_of(align);
        next.ok_or_else(|| {
            self.job.fault("offset_align", "the aligned offset is beyond 2^64; type a smaller offset")
        })
    }

    /// Limits a size on devices to the bytes after the offset. Sizes of files remain unchanged.
    fn limit_to_device(&self, size: u64, offset: u64) -> u64 {
        if !on_devices(self.job, self.files, self.environment) {
            return size;
        }
        let Ok(length) = self.length("size") else { return size };
        let (files, block) = (u64::from(self.files), u64::from(self.block_bytes_min));
        let room = length.saturating_sub(offset);
        // If the offset is beyond the end, another check refuses it.
        if size / files <= room || room < block { size } else { (room - room % block) * files }
    }

    /// Bytes of the region in each file.
    fn region_of_each(&self, option: &str, stream: &StreamSpec) -> Result<u64, Fault> {
        match stream.size {
            Some(size) => Ok(size),
            None => Ok(self.length(option)?.saturating_sub(stream.resolved.access.offset_bytes)),
        }
    }

    /// Bytes of the region in all files together.
    fn region(&self, option: &str, stream: &StreamSpec) -> Result<u64, Fault> {
        Ok(self.region_of_each(option, stream)?.saturating_mul(self.files.into()))
    }

    /// Whether a job with holes starts again at the beginning of a file until it has moved the file's size. As in fio, this requires that
    /// the region is the whole file, and that the file ends with a hole or with a part of a hole.
    fn wraps(&self, stream: &StreamSpec) -> bool {
        let hole = stream.steps.hole_bytes;
        if hole == 0 || stream.resolved.access.offset_bytes > 0 {
            return false;
        }
        let length = self.length("size").ok();
        let Some(region) = stream.size.or(length) else { return false };
        let block = u64::from(self.block_bytes_min);
        let is_whole = length.is_none_or(|length| length <= region);
        let after_last_hole = region % block.saturating_add(hole);
        is_whole && region >= block && (after_last_hole == 0 || after_last_hole > block)
    }

    /// Whether all of the files are missing.
    fn are_missing(&self) -> bool {
        let clones =
            if own_files(self.job) { self.job.count("numjobs", 1).ok().flatten().unwrap_or(1) } else { 1 };
        let mut paths = (0..clones).flat_map(|clone| paths(self.job, clone, self.files));
        paths.all(|path| self.environment.length(&path).is_err())
    }

    /// The increment of offsets. A percentage refers to the size of the file when the clone starts: files that the first clone creates
    /// exist for the other clones.
    fn increment(&self, stream: &StreamSpec) -> Result<Increment, Fault> {
        let percent = match self.job.size("offset_increment")? {
            None => return Ok(Increment { bytes: 0, align: 1 }),
            Some(Size::Bytes(bytes)) => return Ok(Increment { bytes, align: 1 }),
            Some(Size::Percent(percent)) => percent,
        };
        let align =
            self.job.bytes("offset_align")?.filter(|a| *a > 0).unwrap_or(u64::from(self.block_bytes_min));
        let length = match stream.create {
            Some(_) if self.are_missing() && own_files(self.job) => 0,
            Some(create) if self.are_missing() => create.bytes,
            _ => self.length("offset_increment")?,
        };
        Ok(Increment { bytes: (length as f64 * percent / 100.0) as u64, align })
    }

    /// The length of each file. Files of different lengths are refused.
    fn length(&self, option: &str) -> Result<u64, Fault> {
        let clones = if own_files(self.job) { self.job.count("numjobs", 1)?.unwrap_or(1) } else { 1 };
        let mut length = None;
        for path in (0..clones).flat_map(|clone| paths(self.job, clone, self.files)) {
            let bytes = self.environment.length(&path).map_err(|why| {
                self.job.fault(option, format!("a percentage needs the length of {path}: {why}; type a size"))
            })?;
            let why = "the files have different lengths, so a percentage is ambiguous; type a size";
            self.job.refuse_if(length.is_some_and(|length| length != bytes), option, why)?;
            length = Some(bytes);
        }
        Ok(length.unwrap_or(0))
    }
}

/// The contents of created files. Files that are only written need none.
fn filling(job: &Job, rw: &ParsedRw) -> Result<Filling, Fault> {
    let creates_on_open = rw.only_writes() && job.on("create_on_open", false)?;
    if !creates_on_open && (!rw.only_writes() || job.on("overwrite", false)?) {
        return Ok(Filling::Data);
    }
    Ok(match job.text("fallocate").unwrap_or("native") {
        _ if creates_on_open => Filling::Nothing,
        "none" | "0" => Filling::Nothing,
        "truncate" => Filling::Hole,
        "keep" => Filling::Reserved,
        _ => Filling::Blocks,
    })
}

/// Whether `io_size` limits the bytes of a job. Neither 0 nor 100 % is a limit.
pub(super) fn has_io_size(job: &Job) -> Result<bool, Fault> {
    Ok(!matches!(job.size("io_size")?, None | Some(Size::Bytes(0) | Size::Percent(0.0 | 100.0))))
}

/// Makes a job with holes end after `loops` passes over its files, unless `io_size` or `time_based` decides when it ends. In fio, jobs with
/// an offset end in this way. A job without an offset may start again at the beginning until it has moved `size`.
pub(super) fn end_after_one_pass_with_holes(job: &Job, stream: &mut StreamSpec) -> Result<(), Fault> {
    if stream.steps.hole_bytes == 0 || has_io_size(job)? || is_time_based(job)? {
        return Ok(());
    }
    stream.resolved.limit.bytes = None;
    stream.passes = Some(job.count("loops", 1)?.unwrap_or(1));
    if let Some(length) = file_size(job)? {
        stream.size = Some(length.saturating_sub(stream.resolved.access.offset_bytes));
    }
    Ok(())
}

/// The bytes of `io_size`; `None` without a limit. A percentage refers to the bytes of one pass
/// over all files; 100 % is no limit.
fn io_size(shares: &Shares, size: Option<u64>, stream: &StreamSpec) -> Result<Option<u64>, Fault> {
    let job = shares.job;
    let percent = match job.size("io_size")? {
        Some(Size::Bytes(bytes)) => return Ok(Some(bytes).filter(|bytes| *bytes > 0)),
        None | Some(Size::Percent(0.0 | 100.0)) => return Ok(None),
        Some(Size::Percent(percent)) => percent,
    };
    let share = (shares.region("io_size", stream)? as f64 * percent / 100.0) as u64;
    Ok(Some(size.map_or(share, |size| size.min(share))))
}

/// Sets what ends the job: a number of passes, bytes or operations. As in fio, a `time_based` job ends only by time.
fn set_end(
    shares: &Shares,
    rw: &ParsedRw,
    size: Option<u64>,
    file_size: Option<u64>,
    times: Times,
    stream: &mut StreamSpec,
) -> Result<(), Fault> {
    let job = shares.job;
    // fio counts a trim and its write as one operation, fathom as two.
    let all = |n: u64| if rw.kind.writes_after_trims() { n.saturating_mul(2) } else { n };
    let loops = job.count("loops", 1)?.unwrap_or(1);
    let operations = job.number("number_ios")?.filter(|n| *n > 0);
    let is_time_based = is_time_based(job)?;
    stream.resolved.limit.operations = match operations {
        // `create_only` creates the files and runs no operation.
        _ if job.on("create_only", false)? => Some(0),
        _ if is_time_based => None,
        operations => operations.map(|n| all(n.saturating_mul(loops.into()))),
    };
    if is_time_based {
        return Ok(());
    }
    let why = "fio counts the bytes moved during the ramp towards the size, but fathom does not; type time_based and runtime";
    job.refuse_if(times.ramp > 0 && times.runtime.is_none(), "ramp_time", why)?;
    // Without io_size a job moves at most the bytes of its files after the offset.
    let files = u64::from(shares.files);
    let within = stream.size.map_or(u64::MAX, |each| each.saturating_mul(files));
    let is_part = |size: &u64| file_size.is_some_and(|each| each.saturating_mul(files) != *size);
    let size_alone = size.filter(is_part).map(|size| size.min(within));
    let io_size = io_size(shares, size, stream)?;
    let amount = io_size.or(size_alone);
    let passes_over = amount.zip(size).is_some_and(|(amount, size)| amount > size);
    if stream.line.positions == Positions::Own && (loops > 1 || passes_over) {
        // If one direction of a mix reaches the end, fio restarts both.
        stream.line.positions = Positions::OwnRestart;
    }
    let is_above = amount.zip(stream.size).is_some_and(|(amount, size)| amount > size);
    let why =
        "fathom does not support io_size above size with trimwrite; type loops, or time_based and runtime";
    job.refuse_if(rw.kind.writes_after_trims() && is_above, "io_size", why)?;
    // If blocks may repeat, fio moves the whole size even if the size is not a multiple of the blocks of all files.
    let may_repeat = stream.random.as_ref().is_some_and(|order| *order != Order::Once)
        && rw.step == 0
        && stream.resolved.verify.is_none();
    let moved = size.or_else(|| shares.region("size", stream).ok());
    let block = u64::from(shares.block_bytes_min);
    let exceeds_blocks = may_repeat && moved.is_some_and(|bytes| bytes % (block * files) > 0);
    let why = "fathom does not combine loops with zones; type io_size";
    job.refuse_if(stream.resolved.access.strided.is_some() && loops > 1, "loops", why)?;
    match (amount, stream.resolved.access.strided) {
        (None, Some(zones)) => {
            let region = shares.region_of_each("zonesize", stream)?;
            stream.resolved.limit.bytes =
                Some(access::zoned_bytes(zones, region, stream, rw.kind.writes_after_trims()));
        }
        (Some(bytes), _) => {
            // As in fio, the last operation may exceed io_size, but not the size.
            let whole = if io_size.is_some() { bytes.div_ceil(block) } else { bytes / block } * block;
            job.refuse_if(whole == 0, "io_size", "the size is less than one block; type a larger size")?;
            let ends_by_pass = matches!(stream.random, None | Some(Order::Once)) && rw.step == 0;
            let passes = match shares.region("io_size", stream) {
                // A pass ends at the end of the files. fio runs `loops` passes, and further passes until it has moved io_size.
                Ok(region)
                    if ends_by_pass && io_size.is_some() && stream.resolved.access.strided.is_none() =>
                {
                    let region = (region / files / block).max(1) * block * files;
                    region.saturating_mul(bytes.div_ceil(region).max(loops.into()))
                }
                _ => u64::MAX,
            };
            let total = if may_repeat {
                bytes.saturating_mul(loops.into()).div_ceil(block) * block
            } else {
                whole.saturating_mul(loops.into())
            };
            stream.resolved.limit.bytes = Some(all(if loops > 1 { total.min(passes) } else { total }));
        }
        (None, None) if exceeds_blocks => {
            let bytes = moved.unwrap_or(0).saturating_mul(loops.into());
            stream.resolved.limit.bytes = Some(all(bytes.div_ceil(block) * block));
        }
        // With several operations at each offset, fio ends after the size and not after a pass.
        (None, None) if shares.wraps(stream) || stream.line.times > 1 => {
            // If the size is not a multiple of the number of files, the files together are smaller than the size, but fio moves the full
            // size.
            let region = size.map_or_else(|| shares.region("size", stream), Ok)?;
            // fio starts another operation as long as any byte of the size is left.
            let whole = region.saturating_mul(loops.into()).div_ceil(block).saturating_mul(block);
            // The last operation may have the largest block size, but the total must not exceed `whole`.
            let rest = u64::from(largest_block(stream).saturating_sub(shares.block_bytes_min));
            stream.resolved.limit.bytes = Some(all(whole).saturating_sub(rest));
        }
        (None, None) => stream.passes = Some(loops),
    }
    Ok(())
}

/// The lines in which fio announces the files that it makes or extends, one for each clone of a job. `from` has the index of each stream's
/// job. With `create_on_open` fio makes files without a line.
pub(super) fn layout_lines(
    spec: &JobSpec,
    jobs: &[Job],
    from: &[Vec<usize>],
    environment: &dyn Environment,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut lengths: BTreeMap<&str, u64> = BTreeMap::new();
    for (stream, at) in spec.streams().zip(from.iter().flatten()) {
        let (Some(create), Some(job)) = (stream.create, jobs.get(*at)) else { continue };
        if job.on("create_on_open", false).is_ok_and(|on| on) {
            continue;
        }
        let clones = if stream.resolved.clones == Some(Clones::Own) { stream.resolved.workers } else { 1 };
        let of_clone = stream.target.len() / clones.max(1) as usize;
        for targets in stream.target.chunks(of_clone.max(1)) {
            let (mut count, mut total) = (0_u64, 0_u64);
            for (index, path) in targets.iter().enumerate() {
                let bytes = stream.create_bytes.get(index).copied().unwrap_or(create.bytes);
                let length =
                    lengths.entry(path).or_insert_with(|| environment.length(path).unwrap_or_default());
                if *length < bytes && !environment.is_device(path) {
                    *length = bytes;
                    count += 1;
                    total = total.saturating_add(bytes);
                }
            }
            let (name, mib) = (job.name(), total / MIB);
            match count {
                0 => {}
                1 => lines.push(format!("{name}: Laying out IO file (1 file / {mib}MiB)")),
                _ => lines.push(format!("{name}: Laying out IO files ({count} files / total {mib}MiB)")),
            }
        }
    }
    lines
}

/// The remark for jobs whose `offset` is a percentage of missing files that are used more than once.
pub(super) fn remarks(jobs: &[Job], environment: &dyn Environment) -> Option<String> {
    let all_paths = |job: &Job| files(job).map_or_else(|_| Vec::new(), |count| paths(job, 0, count));
    let is_reused = |(at, job): (usize, &Job)| {
        let own = all_paths(job);
        let is_percent = matches!(job.size("offset"), Ok(Some(Size::Percent(percent))) if percent > 0.0);
        let has_file = job.text("ioengine") != Some("null") && !job.is_replay();
        if !is_percent || !has_file || own.iter().any(|path| environment.length(path).is_ok()) {
            return false;
        }
        let many = |option: &str| job.count(option, 1).is_ok_and(|count| count.unwrap_or(1) > 1);
        let has_passes = many("loops") && is_time_based(job).is_ok_and(|on| !on);
        let earlier = jobs.get(..at).unwrap_or_default();
        let is_shared = earlier.iter().any(|other| all_paths(other).iter().any(|path| own.contains(path)));
        has_passes || (many("numjobs") && !own_files(job)) || is_shared
    };
    jobs.iter().enumerate().any(is_reused).then(|| {
        "offset: a percentage of a missing file is 0; in fio it is 0 only until the file exists, so further passes, clones and jobs start later in the file"
            .into()
    })
}

/// Default format of file names.
const FORMAT: &str = "$jobname.$jobnum.$filenum";

/// The paths of a clone's files.
pub(super) fn paths(job: &Job, clone: u32, files: u32) -> Vec<String> {
    let folder = job.text("directory").map(|text| {
        let folders = split(text);
        folders.get(clone as usize % folders.len().max(1)).cloned().unwrap_or_default()
    });
    let within = |name: String| match &folder {
        Some(folder) if !folder.is_empty() => format!("{}/{name}", folder.trim_end_matches('/')),
        _ => name,
    };
    if let Some(names) = job.text("filename") {
        return split(names).into_iter().map(within).collect();
    }
    // A job named like a device uses that device.
    if job.section.starts_with("/dev/") {
        return vec![job.section.clone()];
    }
    let format = job.text("filename_format").filter(|f| !f.is_empty()).unwrap_or(FORMAT);
    let name = |file: u32| {
        let name = format.replace("$clientuid", "localhost").replace("$jobname", &job.section);
        name.replace("$jobnum", &clone.to_string()).replace("$filenum", &file.to_string())
    };
    (0..files).map(|file| within(name(file))).collect()
}

/// Refuses a directory as `filename`, since fathom would create a file in it.
pub(super) fn refuse_directories(job: &Job, environment: &dyn Environment) -> Result<(), Fault> {
    if job.text("filename").is_none() || job.text("ioengine") == Some("null") {
        return Ok(());
    }
    let mut directories = paths(job, 0, 1).into_iter().filter(|path| environment.is_directory(path));
    directories.next().map_or(Ok(()), |path| {
        let path = visible(&path);
        let why = format!("{path} is a directory; type directory={path}, or the name of a file");
        Err(job.fault("filename", why))
    })
}

/// Number of files of each clone.
pub(super) fn files(job: &Job) -> Result<u32, Fault> {
    let count = job.count("nrfiles", 1)?;
    if let Some(names) = job.text("filename") {
        let named = split(names);
        let why = "a name is empty, or means standard input (-); type names separated by :";
        job.refuse_if(named.iter().any(|n| n.is_empty() || n == "-"), "filename", why)?;
        return Ok(u32::try_from(named.len()).unwrap_or(u32::MAX));
    }
    if job.section.starts_with("/dev/") {
        return Ok(1);
    }
    let files = count.unwrap_or(1);
    let why = format!("a job has at most {MAX_TARGETS} files; type a smaller number");
    job.refuse_if(files as usize > MAX_TARGETS, "nrfiles", why)?;
    let format = job.text("filename_format").unwrap_or(FORMAT);
    let why = "all files would have the same name; type $filenum in the format";
    job.refuse_if(files > 1 && !format.contains("$filenum"), "filename_format", why)?;
    Ok(files)
}

/// Whether each clone has its own files.
pub(super) fn own_files(job: &Job) -> bool {
    paths(job, 0, 1) != paths(job, 1, 1)
}

/// Splits names at colons; a backslash escapes a colon.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = c == '\\' && chars.peek() == Some(&':');
        match names.last_mut() {
            Some(name) if c != ':' => name.extend(if escaped { chars.next() } else { Some(c) }),
            _ => names.push(String::new()),
        }
    }
    names
}
