//! Access patterns of a job: `rw`, block sizes, random distributions and mixes of directions.

use super::value::{number_triplet, percent, triplet};
use crate::fio::job_file::{Fault, Job};
use crate::fio::options::ZONED;
use model::job::{Kind, Mix, Order, PerKind, Positions, Sizes, Strided};
use model::spec::number::{MAX_BLOCK_BYTES, MAX_SPLIT};
use model::spec::{Rw, StreamSpec, kinds, operations};

/// Maximum number of bytes of one call to Linux (`MAX_RW_COUNT`).
const KERNEL_MOST: u64 = 0x7fff_f000;
/// fio's default block size.
pub(super) const BLOCK_BYTES: u32 = 4096;

/// The parsed option `rw`.
pub(super) struct ParsedRw {
    pub(super) kind: Rw,
    /// For sequential accesses: bytes that are skipped after each operation, backwards if negative. For random accesses: number of
    /// operations at each offset.
    pub(super) step: i64,
}

/// Sequential reads.
pub(super) const READS: ParsedRw = ParsedRw { kind: Rw::Read, step: 0 };
/// Sequential reads and writes.
pub(super) const BOTH: ParsedRw = ParsedRw { kind: Rw::Rw, step: 0 };

impl ParsedRw {
    /// Indices of the directions that the pattern has: 0 reads, 1 writes, 2 trims.
    pub(super) fn directions(&self) -> &'static [usize] {
        match self.kind {
            Rw::Read | Rw::Randread => &[0],
            Rw::Write | Rw::Randwrite => &[1],
            Rw::Trim | Rw::Randtrim => &[2],
            Rw::Rw | Rw::Randrw => &[0, 1],
            Rw::Trimwrite | Rw::Randtrimwrite => &[1, 2],
        }
    }

    /// Whether the pattern writes.
    pub(super) fn writes(&self) -> bool {
        self.directions().contains(&1)
    }

    /// Whether the pattern only writes. Existing contents do not matter then.
    pub(super) fn only_writes(&self) -> bool {
        self.directions() == [1]
    }
}

/// Parses `rw`. With `verify_only`, writes become reads.
pub(super) fn parse_rw(job: &Job) -> Result<ParsedRw, Fault> {
    let text = job.text("rw").unwrap_or("read");
    let (word, number) = text.split_once(':').unwrap_or((text, ""));
    let word = if word == "readwrite" { "rw" } else { word };
    let why = "fio has no such pattern; type read, write, rw, trim, trimwrite, randread, randwrite, randrw, randtrim or randtrimwrite";
    let known = Rw::WORDS.iter().find(|(known, _)| *known == word);
    let kind = known.map(|(_, kind)| *kind).ok_or_else(|| job.fault("rw", why))?;
    let step = if number.is_empty() {
        0
    } else if kind.is_random() {
        // fio reads the digits and ignores what follows them: 8k is 8.
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let count: Option<u32> = number[..end].parse().ok().filter(|count| *count > 0);
        let why =
            "the number of operations at each random offset is not valid; type one such as rw=randread:8";
        i64::from(count.ok_or_else(|| job.fault("rw", why))?)
    } else {
        let (sign, digits) = number.strip_prefix('-').map_or((1, number), |digits| (-1, digits));
        let bytes = job.units("rw").whole(digits).map_err(|why| job.fault("rw", why))?;
        sign * i64::try_from(bytes).unwrap_or(i64::MAX)
    };
    let why = "fathom does not support several operations at each random offset of randtrimwrite; leave the number out";
    job.refuse_if(kind == Rw::Randtrimwrite && step > 1, "rw", why)?;
    let kind = match kind {
        kind if !job.on("verify_only", false)? => kind,
        Rw::Write | Rw::Trimwrite => Rw::Read,
        Rw::Randwrite | Rw::Randtrimwrite => Rw::Randread,
        kind => {
            let why = "verify_only needs to know which blocks were written, and fathom cannot tell this for a mix; type rw=write or randwrite";
            job.refuse_if(matches!(kind, Rw::Rw | Rw::Randrw), "verify_only", why)?;
            kind
        }
    };
    Ok(ParsedRw { kind, step })
}

/// Refuses jobs that write or trim.
pub(super) fn only_reading(jobs: &[Job]) -> Result<(), Fault> {
    for job in jobs {
        if job.is_replay() {
            only_reading_log(job)?;
        } else {
            let why = "--readonly forbids writes and trims, but the job has some; type rw=read or randread, or leave --readonly out";
            job.refuse_if(parse_rw(job)?.directions() != [0], "rw", why)?;
        }
    }
    Ok(())
}

/// Refuses a replay that may write or trim, because the operations in the log are not known in advance.
fn only_reading_log(job: &Job) -> Result<(), Fault> {
    let skip = job.text("replay_skip").and_then(|text| kinds(text).ok()).unwrap_or_default();
    if [Kind::Write, Kind::Trim].iter().all(|kind| skip.contains(kind)) {
        return Ok(());
    }
    let why =
        "--readonly forbids writes and trims, and the log may contain some; type replay_skip=write,trim too";
    Err(job.fault("read_iolog", why))
}

/// Sets direction, mix, sizes and order of the blocks.
pub(super) fn set_blocks(job: &Job, rw: &ParsedRw, stream: &mut StreamSpec) -> Result<(), Fault> {
    stream.rw = Some(rw.kind);
    if rw.kind.is_mixed() {
        stream.mix = Some(mix(job)?);
    }
    let sizes = sizes(job, rw)?;
    let align = job.same_for("ba", rw.directions(), |text| job.units("ba").whole(text))?.filter(|a| *a > 0);
    if rw.kind.is_random() {
        stream.line.align_bytes = align.unwrap_or(0);
        let fixed = single_size(&sizes, rw).is_some();
        let row = u32::try_from(rw.step).ok().filter(|n| *n > 1);
        if job.text("rw_sequencer") == Some("identical") && row.is_some() {
            let why = "identical needs a single direction and a single block size; type rw_sequencer=sequential, or one rw and one bs";
            job.refuse_if(!fixed || rw.kind.is_mixed(), "rw_sequencer", why)?;
            stream.line.times = row.unwrap_or(1);
        } else {
            stream.line.consecutive = row.unwrap_or(1);
        }
        // As in fio, an alignment to the block size keeps the random map.
        let has_own_align =
            align.is_some_and(|align| used_sizes(&sizes, rw).any(|sizes| u64::from(sizes.least()) != align));
        stream.random = Some(random_order(job, rw, fixed, has_own_align)?);
        let misses = stream.random == Some(Order::Once) && !used_sizes(&sizes, rw).all(covers_blocks);
        let option = if job.text("bssplit").is_some() { "bssplit" } else { "bsrange" };
        let why =
            "a size is not a multiple of the smallest, so a pass would miss blocks; type norandommap too";
        job.refuse_if(misses, option, why)?;
    } else {
        set_step(job, rw, &sizes, stream)?;
    }
    // In a mix, each sequential direction continues from its own last operation.
    let is_partly_random = matches!(stream.random, Some(Order::Mixed(_) | Order::MixedEach(_)));
    let continues = stream.random.is_none() || is_partly_random || stream.line.consecutive > 1;
    if rw.kind.is_mixed() && continues {
        stream.line.positions = Positions::Own;
    }
    stream.bs = Some(sizes);
    Ok(())
}

/// Whether each size is a multiple of the smallest. Operations then cover whole blocks.
fn covers_blocks(sizes: &Sizes) -> bool {
    match sizes {
        Sizes::Split(split) => split.iter().all(|(size, _)| size % sizes.least().max(1) == 0),
        Sizes::Fixed(_) | Sizes::Range(..) => true,
    }
}

/// The sizes of the directions that `rw` has.
fn used_sizes<'s>(sizes: &'s PerKind<Sizes>, rw: &ParsedRw) -> impl Iterator<Item = &'s Sizes> + use<'s> {
    let all = [&sizes.read, &sizes.write, &sizes.trim];
    rw.directions().iter().filter_map(move |at| all.get(*at).copied())
}

/// The size of all operations; `None` if there are several sizes.
fn single_size(sizes: &PerKind<Sizes>, rw: &ParsedRw) -> Option<u32> {
    let mut all = used_sizes(sizes, rw).map(Sizes::fixed);
    let first = all.next()??;
    all.all(|size| size == Some(first)).then_some(first)
}

fn mix(job: &Job) -> Result<Mix, Fault> {
    let Some(option) = job.last("rwmixread", "rwmixwrite") else {
        return Ok(Mix::EVEN);
    };
    let typed = job.percent(option)?.unwrap_or(0);
    Ok(Mix::from_percents(if option == "rwmixread" { typed } else { 100 - typed }, 0))
}

/// The block sizes of each direction. A direction that the job does not have gets the sizes of the job's first direction.
fn sizes(job: &Job, rw: &ParsedRw) -> Result<PerKind<Sizes>, Fault> {
    let sizes_of = |direction: usize| -> Result<Sizes, Fault> {
        let get = |option: &'static str| -> Result<Option<&str>, Fault> {
            let Some(text) = job.text(option) else { return Ok(None) };
            let values = if option == "bs" { number_triplet(text) } else { triplet(text) };
            Ok(values.map_err(|why| job.fault(option, why))?.get(direction).copied().flatten())
        };
        if let Some(text) = get("bssplit")? {
            return split(job, text).map_err(|why| job.fault("bssplit", why));
        }
        if let Some(text) = get("bsrange")? {
            return range(job, text).map_err(|why| job.fault("bsrange", why));
        }
        let size = get("bs")?.map(|text| block(job, text)).transpose().map_err(|why| job.fault("bs", why))?;
        Ok(Sizes::Fixed(size.unwrap_or(BLOCK_BYTES)))
    };
    match rw.directions() {
        // In fio, the trim and the write of a pair may have different sizes in sequential orders, so their offsets would diverge.
        [write, trim] if rw.kind.writes_after_trims() => match sizes_of(*trim)? {
            sizes if rw.kind.is_random() || sizes_of(*write)? == sizes => Ok(PerKind::all(sizes)),
            _ => Err(job.fault("bs", "each write has the size of its trim; type one size for both")),
        },
        [read, write] => {
            let read = sizes_of(*read)?;
            Ok(PerKind { trim: read.clone(), write: sizes_of(*write)?, read })
        }
        directions => sizes_of(directions.first().copied().unwrap_or(0)).map(PerKind::all),
    }
}

fn block(job: &Job, text: &str) -> Result<u32, String> {
    let typed = ["bssplit", "bsrange", "bs"].into_iter().find(|option| job.text(option).is_some());
    let bytes = job.units(typed.unwrap_or("bs")).whole(text)?;
    if (1..=MAX_BLOCK_BYTES).contains(&bytes) {
        return Ok(bytes as u32);
    }
    if bytes > KERNEL_MOST {
        return Err("one call to Linux moves at most 2 GiB - 4 KiB; type bs=1g or less".into());
    }
    Err("a block has 1 byte to 1 GiB; type a size in this range".into())
}

fn range(job: &Job, text: &str) -> Result<Sizes, String> {
    let (least, most) = text
        .split_once(['-', ':'])
        .ok_or("the value is not a range; type the smallest and the largest size, such as 4k-64k")?;
    match (block(job, least)?, block(job, most)?) {
        (least, most) if least == most => Ok(Sizes::Fixed(least)),
        (least, most) if least < most => multiples(job, least, most),
        _ => Err("the first size is larger than the second; type the smaller size first".into()),
    }
}

/// Every multiple of the smallest size, and the largest size even if it is not a multiple. As in fio, the weight of the largest size is
/// its distance to the size before it.
fn multiples(job: &Job, least: u32, most: u32) -> Result<Sizes, String> {
    if job.on("bs_unaligned", false).is_ok_and(|on| on) {
        return Err(
            "fathom only uses multiples of the smallest size of a range; leave bs_unaligned out, or type bssplit".into(),
        );
    }
    let rest = most % least;
    if rest == 0 {
        return Ok(Sizes::Range(least, most));
    }
    let count = most / least;
    if count as usize >= MAX_SPLIT {
        return Err(
            "the largest size is not a multiple of the smallest; type a multiple of the smallest".into()
        );
    }
    let whole = (1..=count).map(|n| (n * least, least));
    Ok(Sizes::Split(whole.chain([(most, rest)]).collect()))
}

/// Parses sizes with shares such as `4k/60:64k/40`. Sizes without a share divide the rest. As in fio, each size is rounded down to a
/// multiple of the smallest one, except with `bs_unaligned`.
fn split(job: &Job, text: &str) -> Result<Sizes, String> {
    let mut sizes: Vec<(u32, Option<u32>)> = Vec::new();
    for piece in text.split(':') {
        let (size, share) = piece.split_once('/').unwrap_or((piece, ""));
        // As in fio, a share is the whole number at its beginning, and 0 if there is none.
        let digits = share.trim().split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        if digits.is_empty() && !share.trim().is_empty() {
            return Err("a percentage is not a number; type 4k/60:64k/40".into());
        }
        let share = digits.parse().ok().map(|share: u32| share.min(100)).filter(|share| *share > 0);
        // As in fio, only the first size of a range counts.
        let size = size.split_once('-').map_or(size, |(first, _)| first);
        sizes.push((block(job, size)?, share));
        if sizes.len() > MAX_SPLIT {
            return Err(format!("there are more than {MAX_SPLIT} sizes; leave some out"));
        }
    }
    let given: u32 = sizes.iter().filter_map(|(_, share)| *share).sum();
    let open = sizes.iter().filter(|(_, share)| share.is_none()).count() as u32;
    if given > 100 && open > 0 {
        return Err("the percentages add up to more than 100; type percentages that add up to 100".into());
    }
    let each = 100_u32.saturating_sub(given) / open.max(1);
    let mut sizes: Vec<(u32, u32)> =
        sizes.into_iter().map(|(size, share)| (size, share.unwrap_or(each))).collect();
    // As in fio, the largest share is what the other shares leave of 100.
    let mut shares: Vec<&mut u32> = sizes.iter_mut().map(|(_, share)| share).collect();
    shares.sort_by_key(|share| **share);
    let mut left = 100;
    let largest = shares.len().saturating_sub(1);
    for (at, share) in shares.into_iter().enumerate() {
        *share = if at == largest { left } else { left.min(*share) };
        left -= *share;
    }
    if !job.on("bs_unaligned", false).map_err(|fault| fault.message)? {
        let least = sizes.iter().map(|(size, _)| *size).min().unwrap_or(1);
        for (size, _) in &mut sizes {
            *size -= *size % least;
        }
    }
    let mut split: Vec<(u32, u32)> = Vec::new();
    for (size, share) in sizes {
        // Add the shares of equal sizes, and leave out sizes whose share is 0.
        match split.iter_mut().find(|(known, _)| *known == size) {
            Some((_, sum)) => *sum += share,
            None if share > 0 => split.push((size, share)),
            None => {}
        }
    }
    match split.as_slice() {
        [] => Err("every size has 0 %; type 4k/60:64k/40".into()),
        [(size, _)] => Ok(Sizes::Fixed(*size)),
        _ => Ok(Sizes::Split(split)),
    }
}

/// How random offsets are drawn.
fn random_order(job: &Job, rw: &ParsedRw, is_fixed: bool, has_own_align: bool) -> Result<Order, Fault> {
    let typed = job.text("random_distribution").unwrap_or("random");
    // As in fio, a shift register with as many states as blocks reaches each block once, if all blocks have one size.
    let is_register = job.text("random_generator") == Some("lfsr") && is_fixed;
    let may_repeat = (job.on("norandommap", false)? && !is_register) || has_own_align;
    let shares = random_shares(job)?;
    let used: Vec<u32> = rw.directions().iter().filter_map(|at| shares.get(*at).copied()).collect();
    let is_partly_random = used.iter().any(|share| *share < 100);
    if typed != "random" {
        let why = "this works only with uniform offsets; remove random_distribution";
        job.refuse_if(is_partly_random, "percentage_random", why)?;
        return distribution(typed).map_err(|why| job.fault("random_distribution", why));
    }
    if is_partly_random {
        let [read, write, trim] = shares.map(f64::from);
        let first = used.first().copied().unwrap_or(100);
        return Ok(if used.iter().all(|share| *share == first) {
            Order::Mixed(first.into())
        } else {
            Order::MixedEach(PerKind { read, write, trim })
        });
    }
    Ok(if may_repeat { Order::Random } else { Order::Once })
}

/// For reads, writes and trims: the percentage of operations at random offsets.
fn random_shares(job: &Job) -> Result<[u32; 3], Fault> {
    let units = job.units("percentage_random");
    let share = |text: &str| units.whole(text.trim_end_matches('%')).and_then(percent);
    Ok(job.by_direction("percentage_random", share)?.map(|share| share.unwrap_or(100).into()))
}

/// Remarks about partly random jobs that should access each block once, and about sizes that look like a range.
pub(super) fn remarks(jobs: &[Job]) -> impl Iterator<Item = String> {
    const REPEATS: &str = "percentage_random: a random operation may repeat a block, as with norandommap=1; fio skips the blocks that it has touched";
    const SIZES: &str = "bs: as in fio, the first size is for reads, and the second one for writes and trims; type bsrange for a range of sizes";
    let differs = |job: &Job| {
        let is_random = parse_rw(job).is_ok_and(|rw| rw.kind.is_random());
        let has_map = job.on("norandommap", false).is_ok_and(|on| !on);
        is_random && has_map && random_shares(job).is_ok_and(|all| all.iter().any(|share| *share < 100))
    };
    let has_range = |job: &Job| {
        let is_used = job.text("bsrange").or(job.text("bssplit")).is_none();
        is_used && job.text("bs").is_some_and(|bs| bs.contains('-') && !bs.contains([',', ':', '(']))
    };
    let repeats = jobs.iter().any(differs).then_some(REPEATS);
    let sizes = jobs.iter().any(has_range).then_some(SIZES);
    repeats.into_iter().chain(sizes).map(str::to_owned)
}

fn distribution(text: &str) -> Result<Order, String> {
    if text.contains(',') {
        return Err("fathom uses one distribution for all directions; type only one".into());
    }
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "zipf" | "pareto" | "normal" if rest.contains(':') => {
            Err(format!("fathom does not support a center of the distribution; type {name}:{}", rest.split(':').next().unwrap_or_default()))
        }
        "zipf" if rest.is_empty() => Ok(Order::Zipf(1.1)),
        "pareto" if rest.is_empty() => Ok(Order::Pareto(0.2)),
        "zipf" | "pareto" => operations::random(text),
        "normal" => normal(rest.trim_end_matches('%')),
        "zoned" | "zoned_abs" => translate_zones(rest, name == "zoned_abs").and_then(|zones| operations::random(&format!("zones:{zones}"))),
        _ => Err("fathom does not know this distribution; type random, zipf:1.1, pareto:0.2, normal:10 or zoned:60/10:40/90".into()),
    }
}

/// Returns the normal distribution with the standard deviation of fio's distribution `normal`. In
/// fio, an offset is the mean of 12 uniform offsets, plus a uniform number from a range of
/// `deviation` percent of the region, or 50 percent if `deviation` is above 50.
fn normal(deviation: &str) -> Result<Order, String> {
    let typed = if deviation.is_empty() { Some(0.0) } else { deviation.parse::<f64>().ok() };
    let typed = typed.filter(|percent| (0.0..100.0).contains(percent));
    let added = typed.ok_or("the deviation is not a percentage below 100; type normal:10")?.min(50.0);
    Ok(Order::Normal((100.0 * 100.0 / 144.0 + added * added / 12.0).sqrt()))
}

/// Translates fio's zones into fathom's syntax. As in fio, zones without a size divide the rest of the region equally.
fn translate_zones(text: &str, absolute: bool) -> Result<String, String> {
    let mut zones = Vec::new();
    let (mut taken, mut open) = (0.0, 0_u32);
    for piece in text.split(':') {
        let (access, size) =
            piece.split_once('/').ok_or("a zone needs two percentages; type zoned:60/10:40/90")?;
        let (access, size) = (access.trim_end_matches('%'), size.trim_end_matches('%'));
        taken += size.parse::<f64>().unwrap_or(0.0);
        open += u32::from(size.is_empty());
        zones.push((access, size));
    }
    let each = (100.0 - taken).max(0.0) / f64::from(open.max(1));
    let translated = zones.iter().map(|(access, size)| match *size {
        "" if absolute => Err("a zone has no size; type zoned_abs:60/10g:40/90g".to_owned()),
        "" => Ok(format!("{access}/{each}")),
        // fathom would read a bare number as a percentage.
        size if absolute && size.bytes().all(|b| b.is_ascii_digit()) => Ok(format!("{access}/{size}b")),
        size => Ok(format!("{access}/{size}")),
    });
    Ok(translated.collect::<Result<Vec<_>, _>>()?.join(","))
}

/// Sets the holes or backward steps of a sequential order.
fn set_step(job: &Job, rw: &ParsedRw, sizes: &PerKind<Sizes>, stream: &mut StreamSpec) -> Result<(), Fault> {
    match rw.step {
        0 => {}
        hole if hole > 0 => stream.steps.hole_bytes = hole.unsigned_abs(),
        back => {
            // fio counts the step from the end of an operation, fathom from its start.
            let size = single_size(sizes, rw).map(u64::from);
            if size == Some(back.unsigned_abs()) {
                // The region is reduced to its first block, which fio repeats.
                return Ok(());
            }
            let stride = size.and_then(|size| back.unsigned_abs().checked_sub(size)).filter(|s| *s > 0);
            let (Some(size), Some(stride)) = (size, stride) else {
                return Err(job.fault("rw", "a step back needs a single block size, and must be larger than a block; type for example rw=read:-8k with bs=4k"));
            };
            stream.steps.backwards = true;
            stream.steps.stride_bytes = if stride == size { 0 } else { stride };
        }
    }
    Ok(())
}

/// The zones of a job; `None` if the region is not divided.
pub(super) fn strided_zones(
    job: &Job,
    rw: &ParsedRw,
    files: u32,
    stream: &StreamSpec,
) -> Result<Option<Strided>, Fault> {
    let bytes = job.bytes("zonesize")?.filter(|bytes| *bytes > 0);
    match (job.text("zonemode"), bytes) {
        (None | Some("none"), None) => {
            let alone = ["zonerange", "zoneskip"].into_iter().find(|option| job.text(option).is_some());
            return alone.map_or(Ok(None), |option| {
                Err(job.fault(option, "zones are missing; type zonemode=strided and zonesize too"))
            });
        }
        (Some("none"), Some(_)) => {
            return Err(job.fault("zonesize", "zones need zonemode=strided; type it, or remove zonesize"));
        }
        (Some("strided"), None) => {
            return Err(job.fault("zonemode", "strided needs the size of a zone; type zonesize=256m too"));
        }
        (None | Some("strided"), Some(_)) => {}
        (Some(_), _) => return Err(job.fault("zonemode", ZONED)),
    }
    let bytes = bytes.unwrap_or(0);
    let range_bytes = job.bytes("zonerange")?.filter(|range| *range > 0).unwrap_or(bytes);
    let skip_bytes = job.bytes("zoneskip")?.unwrap_or(0);
    let why = "fathom only supports zones of a single file; remove the option, or type one file";
    job.refuse_if(files > 1, "zonesize", why)?;
    let why = "fathom does not combine zones with a number in rw; leave the number out";
    job.refuse_if(rw.step != 0, "rw", why)?;
    let has_law = job.text("random_distribution").is_some_and(|law| law != "random");
    let why = "offsets within a zone are always uniform; remove the option, or the zones";
    job.refuse_if(has_law, "random_distribution", why)?;
    let sizes = |bs: &PerKind<Sizes>| [&bs.read, &bs.write, &bs.trim].map(Sizes::fixed);
    let cut = stream
        .bs
        .as_ref()
        .into_iter()
        .flat_map(sizes)
        .flatten()
        .any(|size| range_bytes % u64::from(size) > 0);
    let option = if job.text("zonerange").is_some() { "zonerange" } else { "zonesize" };
    let why = "an operation would cross the end of a zone; type a multiple of the block size";
    job.refuse_if(cut, option, why)?;
    let both = rw.kind.writes_after_trims() || (rw.kind.is_mixed() && !rw.kind.is_random());
    let why = "fio counts the bytes of both directions together, so a zonesize above zonerange would start the same zone again; type at most the size of zonerange";
    job.refuse_if(both && bytes > range_bytes, "zonesize", why)?;
    Ok(Some(Strided { bytes, range_bytes, skip_bytes }))
}

/// The number of bytes that a job with zones moves: the size of its region, or twice the size if
/// writes follow trims (`pairs`). If the end of the region cuts off a zone, fio ends after one
/// round over the zones.
pub(super) fn zoned_bytes(zones: Strided, region_bytes: u64, stream: &StreamSpec, pairs: bool) -> u64 {
    let times = if pairs { 2 } else { 1 };
    let size = stream.bs.as_ref().and_then(|bs| bs.write.fixed()).map_or(1, u64::from);
    let all = region_bytes / size * size * times;
    if zones.cut_off(region_bytes) == 0 {
        return all;
    }
    let in_order = stream.random.is_none();
    let last = if in_order { zones.last_bytes(region_bytes, size, times) } else { 0 };
    if last == zones.moved(size * times) {
        // The operations end before the part that is cut off.
        return all;
    }
    let round = zones.whole(region_bytes).saturating_mul(zones.moved(size * times)).saturating_add(last);
    round.min(all)
}
