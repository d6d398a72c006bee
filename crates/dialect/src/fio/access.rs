//! Access patterns of a job: `rw`, block sizes, random distributions and mixes of directions.

use super::value::triplet;
use crate::fio::job_file::{Fault, Job};
use crate::fio::options::ZONED;
use model::job::{Kind, Mix, Order, PerKind, Positions, Sizes, Strided};
use model::spec::number::{MAX_BLOCK_BYTES, MAX_SPLIT};
use model::spec::{Rw, StreamSpec, kinds, operations};

/// Most bytes of one call to Linux (`MAX_RW_COUNT`).
const KERNEL_MOST: u64 = 0x7fff_f000;
/// fio's default block size.
pub(super) const BLOCK_BYTES: u32 = 4096;

/// The parsed option `rw`.
pub(super) struct ParsedRw {
    pub(super) rw: Rw,
    /// Bytes that are skipped after each operation, backwards if negative; for random accesses, operations at
    /// each offset.
    pub(super) step: i64,
}

/// Reads in order, and reads and writes.
pub(super) const READS: ParsedRw = ParsedRw { rw: Rw::Read, step: 0 };
pub(super) const BOTH: ParsedRw = ParsedRw { rw: Rw::Rw, step: 0 };

impl ParsedRw {
    /// Indices of its directions: reads, writes, trims.
    pub(super) fn directions(&self) -> &'static [usize] {
        match self.rw {
            Rw::Read | Rw::Randread => &[0],
            Rw::Write | Rw::Randwrite => &[1],
            Rw::Trim | Rw::Randtrim => &[2],
            Rw::Rw | Rw::Randrw => &[0, 1],
            Rw::Trimwrite | Rw::Randtrimwrite => &[1, 2],
        }
    }

    /// Whether it has a number, which changes the order of the blocks.
    pub(super) fn has_number(&self) -> bool {
        self.step != 0
    }

    /// Whether it writes.
    pub(super) fn writes(&self) -> bool {
        self.directions().contains(&1)
    }

    /// Whether it only writes, so that existing contents do not matter.
    pub(super) fn only_writes(&self) -> bool {
        self.directions() == [1]
    }
}

/// Order and direction.
pub(super) fn way(job: &Job) -> Result<ParsedRw, Fault> {
    let text = job.text("rw").unwrap_or("read");
    let (word, number) = text.split_once(':').unwrap_or((text, ""));
    let fault = |why: &str| Err(job.fault("rw", why));
    let rw = match word {
        "readwrite" => Rw::Rw,
        _ => match Rw::WORDS.iter().find(|(known, _)| *known == word) {
            Some((_, rw)) => *rw,
            None => {
                return fault(
                    "it is no direction; type read, write, rw, trim, trimwrite, randread, randwrite, randrw, randtrim or randtrimwrite",
                );
            }
        },
    };
    let step = if number.is_empty() {
        0
    } else {
        let (sign, digits) = number.strip_prefix('-').map_or((1, number), |digits| (-1, digits));
        let bytes = job.units("rw").whole(digits).map_err(|why| job.fault("rw", why))?;
        sign * i64::try_from(bytes).unwrap_or(i64::MAX)
    };
    if rw.is_random() && u32::try_from(step).is_err() {
        return fault(
            "it is how many operations follow each other from a random offset on; type one such as rw=randread:8",
        );
    }
    if rw == Rw::Randtrimwrite && step > 1 {
        return fault(
            "operations from an offset on are counted with the writes between them; leave the number out",
        );
    }
    // Writes become reads.
    let rw = match rw {
        Rw::Write | Rw::Trimwrite if job.on("verify_only", false)? => Rw::Read,
        Rw::Randwrite | Rw::Randtrimwrite if job.on("verify_only", false)? => Rw::Randread,
        Rw::Rw | Rw::Randrw if job.on("verify_only", false)? => {
            return Err(
                job.fault("verify_only", "what a mix would write is not told; type rw=write or randwrite")
            );
        }
        rw => rw,
    };
    Ok(ParsedRw { rw, step })
}

/// The jobs if none of them writes or trims.
pub(super) fn only_reading(jobs: Vec<Job>) -> Result<Vec<Job>, Fault> {
    for job in &jobs {
        if job.is_replay() {
            only_reading_log(job)?;
        } else if way(job)?.directions() != [0] {
            return Err(job.fault("rw", "it writes, and --readonly is said; leave one of them out"));
        }
    }
    Ok(jobs)
}

/// Refuses a replay that includes writes, which are not known in advance.
fn only_reading_log(job: &Job) -> Result<(), Fault> {
    let skip = job.text("replay_skip").and_then(|text| kinds(text).ok()).unwrap_or_default();
    if [Kind::Write, Kind::Trim].iter().all(|kind| skip.contains(kind)) {
        return Ok(());
    }
    let why =
        "--readonly is said, and what a log writes is not known before; type replay_skip=write,trim too";
    Err(job.fault("read_iolog", why))
}

/// Sets everything about blocks.
pub(super) fn say(job: &Job, way: &ParsedRw, stream: &mut StreamSpec) -> Result<(), Fault> {
    stream.rw = Some(way.rw);
    if way.rw.is_mixed() {
        stream.mix = Some(mix(job)?);
    }
    let sizes = sizes(job, way)?;
    let align = job.same_for("ba", way.directions(), |text| job.units("ba").whole(text))?.filter(|a| *a > 0);
    stream.align = align;
    if way.rw.is_random() {
        let fixed = used(&sizes, way).all(|s| matches!(s, Sizes::Fixed(_)))
            && used(&sizes, way).all(|s| s.least() == used(&sizes, way).next().map_or(0, Sizes::least));
        let row = u32::try_from(way.step).ok().filter(|n| *n > 1);
        if is_identical(job)? && row.is_some() {
            if !fixed || way.rw.is_mixed() {
                let why = "operations on one offset have one direction and one size; type such a job, or rw_sequencer=sequential";
                return Err(job.fault("rw_sequencer", why));
            }
            stream.times = row;
        } else {
            stream.consecutive = row;
        }
        stream.random = Some(law(job, way, fixed, align.is_some())?);
        if stream.random == Some(Order::Once) && !used(&sizes, way).all(fill) {
            let option = if job.text("bssplit").is_some() { "bssplit" } else { "bsrange" };
            let why =
                "a size is no multiple of the smallest, so blocks would be left out; type norandommap too";
            return Err(job.fault(option, why));
        }
    } else {
        steps(job, way, &sizes, stream)?;
    }
    // Each direction continues from its own last operation if it is sequential.
    let is_partly_random = matches!(stream.random, Some(Order::Mixed(_) | Order::MixedEach(_)));
    let goes_on = stream.random.is_none() || is_partly_random || stream.consecutive.is_some();
    stream.positions = Some(Positions::Own).filter(|_| way.rw.is_mixed() && goes_on);
    stream.bs = Some(sizes);
    Ok(())
}

/// Whether further operations at a random offset repeat that offset.
fn is_identical(job: &Job) -> Result<bool, Fault> {
    match job.text("rw_sequencer") {
        None | Some("sequential") => Ok(false),
        Some("identical") => Ok(true),
        Some(_) => Err(job.fault("rw_sequencer", "it is sequential or identical; type one of them")),
    }
}

/// Whether operations of these sizes leave no part of a block out.
fn fill(sizes: &Sizes) -> bool {
    match sizes {
        Sizes::Split(split) => split.iter().all(|(size, _)| size % sizes.least().max(1) == 0),
        Sizes::Fixed(_) | Sizes::Range(..) => true,
    }
}

/// Sizes of the directions that `rw` has.
fn used<'s>(sizes: &'s PerKind<Sizes>, way: &ParsedRw) -> impl Iterator<Item = &'s Sizes> + use<'s> {
    let all = [&sizes.read, &sizes.write, &sizes.trim];
    way.directions().iter().filter_map(move |at| all.get(*at).copied())
}

fn mix(job: &Job) -> Result<Mix, Fault> {
    let Some(option) = job.last("rwmixread", "rwmixwrite") else {
        return Ok(Mix::EVEN);
    };
    let share = job.number(option)?.and_then(|n| u8::try_from(n).ok()).filter(|n| *n <= 100);
    let share = share.ok_or_else(|| job.fault(option, "it is no share; type 0 to 100"))?;
    Ok(Mix::of_percents(if option == "rwmixread" { share } else { 100 - share }, 0))
}

/// Sizes of each direction; a direction that the job does not have gets those of the first one.
fn sizes(job: &Job, way: &ParsedRw) -> Result<PerKind<Sizes>, Fault> {
    let of = |direction: usize| -> Result<Sizes, Fault> {
        let get = |option: &'static str| -> Result<Option<&str>, Fault> {
            let Some(text) = job.text(option) else { return Ok(None) };
            Ok(triplet(text).map_err(|why| job.fault(option, why))?.get(direction).copied().flatten())
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
    match way.directions() {
        // In sequential orders each half of a pair has its own size in fio, so the halves would diverge.
        [write, trim] if way.rw.writes_after_trims() => match of(*trim)? {
            sizes if way.rw.is_random() || of(*write)? == sizes => Ok(PerKind::all(sizes)),
            _ => Err(job.fault("bs", "a write is of the bytes that were trimmed; type one size for both")),
        },
        [read, write] => {
            let read = of(*read)?;
            Ok(PerKind { trim: read.clone(), write: of(*write)?, read })
        }
        one => of(one.first().copied().unwrap_or(0)).map(PerKind::all),
    }
}

fn block(job: &Job, text: &str) -> Result<u32, String> {
    let said = ["bssplit", "bsrange", "bs"].into_iter().find(|option| job.text(option).is_some());
    let bytes = job.units(said.unwrap_or("bs")).whole(text)?;
    if (1..=MAX_BLOCK_BYTES).contains(&bytes) {
        return Ok(bytes as u32);
    }
    if bytes > KERNEL_MOST {
        return Err("one call to Linux moves at most 2 GiB less 4 KiB; type bs=1g or less".into());
    }
    Err("an operation has 1 byte to 1 GiB; type such a size".into())
}

fn range(job: &Job, text: &str) -> Result<Sizes, String> {
    let (least, most) = text
        .split_once(['-', ':'])
        .ok_or("it is no range; type the smallest and the largest size, such as 4k-64k")?;
    match (block(job, least)?, block(job, most)?) {
        (least, most) if least == most => Ok(Sizes::Fixed(least)),
        (least, most) if least < most => multiples(job, least, most),
        _ => Err("it runs backwards; type the smaller size first".into()),
    }
}

/// Every multiple of the smallest size, and the largest size if it is none. As in fio the last one's weight
/// is the distance to the one before it.
fn multiples(job: &Job, least: u32, most: u32) -> Result<Sizes, String> {
    if job.on("bs_unaligned", false).is_ok_and(|on| on) {
        return Err(
            "sizes of a range are multiples of the smallest; leave bs_unaligned out, or type bssplit".into(),
        );
    }
    let rest = most % least;
    if rest == 0 {
        return Ok(Sizes::Range(least, most));
    }
    let count = most / least;
    if count as usize >= MAX_SPLIT {
        return Err("the largest size is no multiple of the smallest; type one that is".into());
    }
    let whole = (1..=count).map(|n| (n * least, least));
    Ok(Sizes::Split(whole.chain([(most, rest)]).collect()))
}

/// `4k/60:64k/40`; sizes without a share divide the rest. As in fio each size is rounded down to a multiple
/// of the smallest.
fn split(job: &Job, text: &str) -> Result<Sizes, String> {
    let mut sizes: Vec<(u32, Option<u32>)> = Vec::new();
    for piece in text.split(':') {
        let (size, share) = piece.split_once('/').unwrap_or((piece, ""));
        // As in fio a share is its leading whole number, and 0 without one.
        let digits = share.trim().split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        if digits.is_empty() && !share.trim().is_empty() {
            return Err("a share is no percentage; type 4k/60:64k/40".into());
        }
        let share = digits.parse().ok().map(|share: u32| share.min(100)).filter(|share| *share > 0);
        // As in fio a range stands for its first size.
        let size = size.split_once('-').map_or(size, |(first, _)| first);
        sizes.push((block(job, size)?, share));
        if sizes.len() > MAX_SPLIT {
            return Err(format!("there are more than {MAX_SPLIT} sizes; leave some out"));
        }
    }
    let said: u32 = sizes.iter().filter_map(|s| s.1).sum();
    let open = sizes.iter().filter(|s| s.1.is_none()).count() as u32;
    if said > 100 && open > 0 {
        return Err("the shares sum to more than 100; type shares that sum to 100".into());
    }
    let each = 100_u32.saturating_sub(said) / open.max(1);
    let mut sizes: Vec<(u32, u32)> =
        sizes.into_iter().map(|(size, share)| (size, share.unwrap_or(each))).collect();
    // As in fio the largest share is what the others leave of 100.
    let mut shares: Vec<&mut u32> = sizes.iter_mut().map(|(_, share)| share).collect();
    shares.sort_by_key(|share| **share);
    let mut left = 100;
    let largest = shares.len().saturating_sub(1);
    for (at, share) in shares.into_iter().enumerate() {
        *share = if at == largest { left } else { left.min(*share) };
        left -= *share;
    }
    if !job.on("bs_unaligned", false).map_err(|fault| fault.1)? {
        let least = sizes.iter().map(|s| s.0).min().unwrap_or(1);
        for (size, _) in &mut sizes {
            *size -= *size % least;
        }
    }
    let mut split: Vec<(u32, u32)> = Vec::new();
    for (size, share) in sizes {
        // Shares of equal sizes are added, and sizes without a share are left out.
        match split.iter_mut().find(|s| s.0 == size) {
            Some(known) => known.1 += share,
            None if share > 0 => split.push((size, share)),
            None => {}
        }
    }
    match split.as_slice() {
        [] => Err("no size has a share; type 4k/60:64k/40".into()),
        [(size, _)] => Ok(Sizes::Fixed(*size)),
        _ => Ok(Sizes::Split(split)),
    }
}

/// How random offsets are drawn.
fn law(job: &Job, way: &ParsedRw, fixed: bool, aligned: bool) -> Result<Order, Fault> {
    let words = job.text("random_distribution").unwrap_or("random");
    // As in fio a shift register of that many states reaches each block of one size once.
    let register = job.text("random_generator") == Some("lfsr") && fixed;
    let may_repeat = (job.on("norandommap", false)? && !register) || aligned;
    let shares = random_shares(job)?;
    let used: Vec<u32> = way.directions().iter().filter_map(|at| shares.get(*at).copied()).collect();
    let is_partly_random = used.iter().any(|share| *share < 100);
    if words != "random" {
        if is_partly_random {
            return Err(
                job.fault("percentage_random", "it goes with uniform offsets; leave random_distribution out")
            );
        }
        return distribution(words).map_err(|why| job.fault("random_distribution", why));
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

/// The shares of random operations among reads, writes and trims, in percent.
fn random_shares(job: &Job) -> Result<[u32; 3], Fault> {
    let Some(text) = job.text("percentage_random") else { return Ok([100; 3]) };
    let mut shares = [100; 3];
    for (share, text) in
        shares.iter_mut().zip(triplet(text).map_err(|why| job.fault("percentage_random", why))?)
    {
        let Some(text) = text else { continue };
        let number =
            job.units("percentage_random").whole(text.trim_end_matches('%')).ok().filter(|n| *n <= 100);
        let number = number.ok_or_else(|| job.fault("percentage_random", "it is no share; type 0 to 100"))?;
        *share = number as u32;
    }
    Ok(shares)
}

/// The remark on partly sequential jobs that were to access each block once.
pub(super) fn remarks(jobs: &[Job]) -> Option<String> {
    let differs = |job: &Job| {
        let is_random = way(job).is_ok_and(|way| way.rw.is_random());
        let has_map = job.on("norandommap", false).is_ok_and(|on| !on);
        is_random && has_map && random_shares(job).is_ok_and(|all| all.iter().any(|share| *share < 100))
    };
    let remark = "percentage_random: a random operation may touch a block again, as with norandommap=1; fio skips the blocks that it touched";
    jobs.iter().any(differs).then(|| remark.into())
}

fn distribution(text: &str) -> Result<Order, String> {
    if text.contains(',') {
        return Err("directions differ in it, which one stream cannot; type one law for all".into());
    }
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "zipf" | "pareto" | "normal" if rest.contains(':') => {
            Err(format!("the hottest block is not moved to a place of its own; type {name}:{}", rest.split(':').next().unwrap_or_default()))
        }
        "zipf" | "pareto" | "normal" => operations::random(&format!("{name}:{rest}")),
        "zoned" | "zoned_abs" => translate_zones(rest, name == "zoned_abs").and_then(|words| operations::random(&format!("zones:{words}"))),
        _ => Err("it is no law that is known here; type random, zipf:1.1, pareto:0.2, normal:10 or zoned:60/10:40/90".into()),
    }
}

/// fio's zones in the form of fathom; an omitted size is the remainder.
fn translate_zones(text: &str, absolute: bool) -> Result<String, String> {
    let mut zones = Vec::new();
    let mut taken = 0.0;
    for piece in text.split(':') {
        let (access, size) = piece.split_once('/').ok_or("a zone has two shares; type zoned:60/10:40/90")?;
        taken += size.trim_end_matches('%').parse::<f64>().unwrap_or(0.0);
        zones.push((access.trim_end_matches('%'), size.trim_end_matches('%')));
    }
    let left = (100.0 - taken).max(0.0);
    let words = zones.iter().map(|(access, size)| match *size {
        "" if absolute => Err("a zone has no size; type zoned_abs:60/10g:40/90g".to_owned()),
        "" => Ok(format!("{access}/{left}")),
        // A bare number would be a percentage here.
        size if absolute && size.bytes().all(|b| b.is_ascii_digit()) => Ok(format!("{access}/{size}b")),
        size => Ok(format!("{access}/{size}")),
    });
    Ok(words.collect::<Result<Vec<_>, _>>()?.join(","))
}

/// Holes and backward steps of a sequential order.
fn steps(job: &Job, way: &ParsedRw, sizes: &PerKind<Sizes>, stream: &mut StreamSpec) -> Result<(), Fault> {
    match way.step {
        0 => {}
        hole if hole > 0 => stream.hole = Some(hole.unsigned_abs()),
        back => {
            // fio counts from the end of an operation, fathom from its start.
            let mut all = used(sizes, way);
            let size = all.next().filter(|s| matches!(s, Sizes::Fixed(_)) && all.all(|other| other == *s));
            let size = size.map(|s| u64::from(s.least()));
            if size == Some(back.unsigned_abs()) {
                // The region is reduced to its first block, which fio repeats.
                return Ok(());
            }
            let stride = size.and_then(|size| back.unsigned_abs().checked_sub(size)).filter(|s| *s > 0);
            let (Some(size), Some(stride)) = (size, stride) else {
                return Err(job.fault("rw", "it does not go backwards; type a number above the size of an operation, such as rw=read:-8k with bs=4k"));
            };
            stream.backwards = Some(true);
            stream.stride = Some(stride).filter(|s| *s != size);
        }
    }
    Ok(())
}

/// Zones of a job; `None` if the whole region is one.
pub(super) fn strided_zones(
    job: &Job,
    way: &ParsedRw,
    files: u32,
    one: &StreamSpec,
) -> Result<Option<Strided>, Fault> {
    let bytes = job.bytes("zonesize")?.filter(|bytes| *bytes > 0);
    match (job.text("zonemode"), bytes) {
        (None | Some("none"), None) => {
            let alone = ["zonerange", "zoneskip"].into_iter().find(|option| job.text(option).is_some());
            return alone.map_or(Ok(None), |option| {
                Err(job.fault(
                    option,
                    "it is about zones; type zonemode=strided and zonesize too, or leave it out",
                ))
            });
        }
        (Some("none"), Some(_)) => {
            return Err(job.fault("zonesize", "it goes with zonemode=strided; type that, or leave it out"));
        }
        (Some("strided"), None) => {
            return Err(job.fault("zonemode", "it says no size of a zone; type zonesize=256m too"));
        }
        (None | Some("strided"), Some(_)) => {}
        (Some("zbd"), _) => return Err(job.fault("zonemode", ZONED)),
        (Some(_), _) => return Err(job.fault("zonemode", "it is no mode; type none or strided")),
    }
    let bytes = bytes.unwrap_or(0);
    let range_bytes = job.bytes("zonerange")?.filter(|range| *range > 0).unwrap_or(bytes);
    let skip_bytes = job.bytes("zoneskip")?.unwrap_or(0);
    if files > 1 {
        return Err(job.fault(
            "zonesize",
            "of several files fio makes no zones of its own; leave it out, or type one file",
        ));
    }
    if way.has_number() {
        return Err(
            job.fault("rw", "holes, ways backwards and rows do not go with zones; leave the number out")
        );
    }
    if job.text("random_distribution").is_some_and(|law| law != "random") {
        return Err(
            job.fault("random_distribution", "in a zone offsets are uniform; leave it out, or the zones")
        );
    }
    let sizes = |bs: &PerKind<Sizes>| [&bs.read, &bs.write, &bs.trim].map(Sizes::fixed);
    let cut =
        one.bs.as_ref().into_iter().flat_map(sizes).flatten().any(|size| range_bytes % u64::from(size) > 0);
    if cut {
        let option = if job.text("zonerange").is_some() { "zonerange" } else { "zonesize" };
        return Err(job.fault(option, "an operation would lie in two zones; type a multiple of its size"));
    }
    let both = way.rw.writes_after_trims() || (way.rw.is_mixed() && !way.rw.is_random());
    if both && bytes > range_bytes {
        let why = "fio begins with a zone again when as many bytes were moved as it has, of both directions; type no more than zonerange";
        return Err(job.fault("zonesize", why));
    }
    Ok(Some(Strided { bytes, range_bytes, skip_bytes }))
}

/// The bytes that a job with zones moves: as many as its region has, round after round; if the end of the
/// region cuts off a zone, the bytes of one round, after which fio ends.
pub(super) fn bytes_in_all(zones: Strided, region_bytes: u64, one: &StreamSpec, pairs: bool) -> u64 {
    let times = if pairs { 2 } else { 1 };
    let size = one.bs.as_ref().and_then(|bs| bs.write.fixed()).map_or(1, u64::from);
    let all = region_bytes / size * size * times;
    if zones.cut_off(region_bytes) == 0 {
        return all;
    }
    let in_order = one.random.is_none();
    let last = if in_order { zones.last_bytes(region_bytes, size, times) } else { 0 };
    if last == zones.moved(size * times) {
        // The part that is cut off would not have been reached.
        return all;
    }
    let round = zones.whole(region_bytes).saturating_mul(zones.moved(size * times)).saturating_add(last);
    round.min(all)
}
