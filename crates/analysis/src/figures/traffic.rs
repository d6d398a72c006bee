//! Traffic of other processes: their requests and bytes on the disks below the targets.
//!
//! 1. The traffic is counted on the disks of the targets and on every disk below them: other users may share the disk below
//!    a loop device, a volume or an array.
//! 2. fathom's own part is the charge of its cgroup. The kernel charges a request to the process that caused it on
//!    every disk that the request passes, even if a thread of a loop device forwards it.
//! 3. Late write-back and the journal below a loop device are charged to no process. So writes on lower disks count as traffic of others
//!    only if the session writes nothing, not even a test file.
//! 4. Read-ahead that no operation used is fathom's own traffic.

pub(crate) use crate::case::AMPLIFICATION;
use crate::case::{Amount, Case, MIN_CHARGED_SHARE, amplified};
use crate::threshold::Share;
use model::Known;
use model::evidence::{BlockFlow, CgroupIo};
use model::job::{Advice, Kind, Pattern, Stream};
use model::machine::{Layer, LayerKind, Place};
use model::plan::Role;
use model::units::show_bytes;
use std::collections::BTreeSet;

/// Bytes per run that are never taken for traffic of other processes: a journal commit, fathom's own session file, a
/// log line.
pub(crate) const FLOOR_BYTES: u64 = 1 << 20;

/// Requests per run that are never taken for traffic of other processes.
pub(crate) const FLOOR_IOS: u64 = 48;

/// Up to this size, an operation is one request to the device. The device's limits may split larger operations.
pub(crate) const MAX_BYTES_OF_ONE_REQUEST: u32 = 64 << 10;

/// File systems that write no more for themselves than [`AMPLIFICATION`] allows, and that submit
/// direct writes in the calling process instead of in their own threads.
const MODEST_FILE_SYSTEMS: &[&str] =
    &["ext4", "ext3", "ext2", "xfs", "vfat", "exfat", "f2fs", "block device"];

/// Arrays that only read what was requested from them.
const PLAIN_ARRAYS: &[&str] = &["raid0", "raid1", "raid10", "linear"];

/// Traffic of other processes on some disks in all runs of a case, and the total traffic of these disks.
pub(crate) struct Traffic {
    /// The disks: `vda`, or `vda and vdb`.
    pub(crate) disks: String,
    pub(crate) read: Amount,
    pub(crate) write: Amount,
    /// Bytes written in addition to fathom's own that may belong to other processes, or to the file
    /// system and its journal. `write` does not include them.
    pub(crate) unattributed_bytes: u64,
    /// Total traffic of the disks.
    pub(crate) total: BlockFlow,
    /// Whether fathom's part was inferred from the issued operations, because the kernel charged nothing.
    pub(crate) is_inferred: bool,
    /// Share of the runs' time in which a request was in flight, on the busiest disk.
    pub(crate) busy_share: f64,
}

impl Traffic {
    /// Reads and writes of other processes together.
    pub(crate) fn all(&self) -> Amount {
        self.read.plus(self.write)
    }
}

/// fathom's part of the traffic of a disk.
struct OwnTraffic {
    read: Amount,
    write: Amount,
    is_inferred: bool,
}

/// Returns the traffic of other processes on the disks of the targets, then on each disk below.
///
/// # Errors
/// For each disk, why it was not counted, or why fathom's part cannot be separated.
pub(crate) fn traffic_of_others(case: &Case) -> Vec<Known<Traffic>> {
    // A device does not count streams separately, so the traffic of all its streams counts as fathom's.
    let case = &case.with_sharers();
    std::iter::once(traffic_of_shared_disks(case))
        .chain(lower_disks(case).iter().map(|disk| disk.traffic(case)))
        .collect()
}

fn traffic_of_shared_disks(case: &Case) -> Known<Traffic> {
    let disks = case.shared_layers()?;
    let device = case.layer_io(&disks)?;
    let own = own_traffic(case)?;
    let names: Vec<&str> = disks.iter().map(|l| l.name.as_str()).collect();
    let write = foreign_writes(case, device.write, own.write);
    Ok(Traffic {
        disks: names.join(" and "),
        read: excess(device.read, own.read),
        write,
        unattributed_bytes: excess(device.write, own.write).bytes.saturating_sub(write.bytes),
        total: device.total(),
        is_inferred: own.is_inferred,
        busy_share: case.busiest_share(&disks)?,
    })
}

/// Whether each operation of fathom is one request of the device. Only then can requests of others be
/// counted.
pub(crate) fn has_countable_requests(case: &Case) -> bool {
    case.largest_bytes() <= MAX_BYTES_OF_ONE_REQUEST
}

/// Whether all file systems are in [`MODEST_FILE_SYSTEMS`].
pub(crate) fn has_modest_overhead(case: &Case) -> bool {
    case.places().all(|p| MODEST_FILE_SYSTEMS.contains(&p.kind()))
}

/// Whether any job of the session writes.
pub(crate) fn session_writes(case: &Case) -> bool {
    case.record.header.plan.streams().any(Stream::changes_targets)
}

fn own_traffic(case: &Case) -> Known<OwnTraffic> {
    let (read, written) = (case.issued(Kind::Read), case.issued(Kind::Write));
    match case.own_io() {
        // With cgroup v1, the kernel charges the write-back of fathom's pages to the root cgroup, so the issued bytes
        // may exceed the charge.
        Ok(own) => Ok(OwnTraffic {
            read: Amount { ops: own.ios[0], bytes: own.bytes[0] },
            write: Amount { ops: own.ios[1].max(written.ops), bytes: own.bytes[1].max(written.bytes) },
            is_inferred: false,
        }),
        Err(_) if case.is_direct() => {
            case.need_separate_targets()?;
            Ok(OwnTraffic { read, write: written, is_inferred: true })
        }
        Err(why) => {
            Err(format!("fathom's buffered I/O cannot be separated from that of other processes: {why}"))
        }
    }
}

/// Returns the writes that exceed fathom's own writes and the overhead of the file system. Returns zero for synchronous
/// writes, or for file systems that are not in [`MODEST_FILE_SYSTEMS`], because their overhead has no known bound.
fn foreign_writes(case: &Case, device: BlockFlow, own: Amount) -> Amount {
    if !case.does(Kind::Write) {
        return excess(device, own);
    }
    if case.any_sync() || !has_modest_overhead(case) {
        return Amount::default();
    }
    excess(device, Amount { ops: amplified(own.ops), bytes: amplified(own.bytes) })
}

fn excess(device: BlockFlow, own: Amount) -> Amount {
    Amount { ops: device.ios.saturating_sub(own.ops), bytes: device.bytes.saturating_sub(own.bytes) }
}

/// A disk below the disks of the targets.
struct LowerDisk<'a> {
    disk: &'a Layer,
    /// The layers directly above the disk.
    above: Vec<&'a Layer>,
    /// A layer above the disk that reads and writes for itself; `None` if there is no such layer.
    independent: Option<&'a Layer>,
}

/// Returns every disk below the disks of the targets once, from the top down. Empty if the disks above are unknown.
fn lower_disks<'a>(case: &Case<'a>) -> Vec<LowerDisk<'a>> {
    let shared = case.shared_layers().unwrap_or_default();
    let mut out: Vec<LowerDisk> = Vec::new();
    if shared.is_empty() {
        return out;
    }
    for place in case.places() {
        for (at, disk) in place.layers.iter().enumerate() {
            // The disk of a partition counts the partition's traffic.
            if disk.kind == LayerKind::Partition || shared.iter().any(|l| l.stat_file == disk.stat_file) {
                continue;
            }
            let above = place.layers.iter().filter(|l| l.below.contains(&at));
            let independent = independent_layer_above(place, at);
            if let Some(known) = out.iter_mut().find(|l| l.disk.stat_file == disk.stat_file) {
                let new = |l: &&Layer| known.above.iter().all(|k| k.stat_file != l.stat_file);
                let more: Vec<&Layer> = above.filter(new).collect();
                known.above.extend(more);
                known.independent = known.independent.or(independent);
            } else {
                out.push(LowerDisk { disk, above: above.collect(), independent });
            }
        }
    }
    out
}

/// Returns a layer above the layer with the index `at` that does I/O of its own (parity, tables, copies); `None` if there is none.
fn independent_layer_above(place: &Place, at: usize) -> Option<&Layer> {
    let mut over = BTreeSet::from([at]);
    // Layers come before the layers below them.
    for (i, layer) in place.layers.iter().enumerate().take(at).rev() {
        if layer.below.iter().any(|below| over.contains(below)) {
            if !only_forwards(place, layer) {
                return Some(layer);
            }
            over.insert(i);
        }
    }
    None
}

/// Whether a layer only forwards its requests: it reads nothing for itself, such as parity, tables or data to copy.
/// Also true for plain mirrors, although they write the same data to several disks.
fn only_forwards(place: &Place, layer: &Layer) -> bool {
    let device_file = |layer: &'_ Layer, file: &str| layer.device.get(file).cloned().unwrap_or_default();
    let hidden = |uuid: &str| uuid.strip_prefix("LVM-").is_some_and(|id| id.contains('-'));
    match layer.kind {
        LayerKind::Disk | LayerKind::Partition | LayerKind::Loop => true,
        LayerKind::Raid => PLAIN_ARRAYS.contains(&device_file(layer, "md/level").as_str()),
        LayerKind::DeviceMapper => {
            // A volume on hidden volumes is thin, cached, mirrored or has a snapshot.
            let parts = layer.below.iter().filter_map(|i| place.layers.get(*i));
            let uuid = device_file(layer, "dm/uuid");
            let crypt = uuid.strip_prefix("CRYPT-").is_some_and(|kind| !kind.starts_with("VERITY-"));
            let plain = crypt || uuid.starts_with("mpath-") || uuid.starts_with("LVM-");
            plain && !hidden(&uuid) && !parts.into_iter().any(|part| hidden(&device_file(part, "dm/uuid")))
        }
        LayerKind::Zram | LayerKind::Ram | LayerKind::Virtual => false,
    }
}

impl LowerDisk<'_> {
    fn traffic(&self, case: &Case) -> Known<Traffic> {
        let name = &self.disk.name;
        if let Some(why) = self.disk.counters_off_reason() {
            return Err(why);
        }
        if let Some(layer) = self.independent {
            return Err(format!("{} does its own I/O on {name} below it", layer.name));
        }
        let done = case.layer_io(&[self.disk])?;
        let carried = case.layer_io(&self.above)?;
        // Charges near zero prove nothing if both the disk and the layers above it read.
        let matters = done.read.bytes > FLOOR_BYTES.saturating_mul(case.runs.len() as u64);
        let possible = done.read.bytes.min(carried.read.bytes) as f64;
        let charged = match case.charged_on(&[self.disk]) {
            Ok(own) if matters && (own.bytes[0] as f64) < MIN_CHARGED_SHARE * possible => {
                let part = match own.bytes[0] {
                    0 => "nothing".to_owned(),
                    _ => format!("less than {}", Share(MIN_CHARGED_SHARE)),
                };
                Err(format!(
                    "{name} read {}, and {part} of that was charged to fathom's cgroup",
                    show_bytes(done.read.bytes)
                ))
            }
            charged => charged,
        };
        let (own, is_inferred) = match charged {
            Ok(own) => (own, false),
            // The file system between a loop device and its disk, and perhaps a cache, are not visible.
            Err(why) if self.above.iter().any(|l| l.kind == LayerKind::Loop) => {
                return Err(format!(
                    "traffic of other processes on {name} cannot be separated from fathom's: {why}"
                ));
            }
            Err(_) => {
                let flows = [carried.read, carried.write];
                // Requests are split and merged on the way down.
                (CgroupIo { bytes: flows.map(|f| f.bytes), ios: [done.read.ios, done.write.ios] }, true)
            }
        };
        let beyond_ours =
            |flow: BlockFlow, i: usize| excess(flow, Amount { ops: own.ios[i], bytes: own.bytes[i] });
        let makes_file = case.record.header.plan.targets.iter().any(|t| t.role == Role::Made);
        let (mut write, mut unattributed_bytes) = (beyond_ours(done.write, 1), 0);
        if makes_file || session_writes(case) {
            unattributed_bytes = write.bytes.min(done.write.bytes.saturating_sub(carried.write.bytes));
            write = Amount::default();
        }
        Ok(Traffic {
            disks: name.clone(),
            read: beyond_ours(done.read, 0),
            write,
            unattributed_bytes,
            total: done.total(),
            is_inferred,
            busy_share: case.busiest_share(&[self.disk])?,
        })
    }
}

/// Read-ahead windows of each lane that reads in sequence: the current one and the next.
pub(crate) const READ_AHEAD_WINDOWS: u64 = 2;

/// Factor of the read-ahead after `POSIX_FADV_SEQUENTIAL` (`mm/fadvise.c`).
const ADVISED_FACTOR: u64 = 2;

/// Returns the largest read-ahead setting of the disks, in bytes; 0 if none is known.
pub(crate) fn read_ahead_setting_bytes(case: &Case) -> u64 {
    largest_setting_bytes(case, "read_ahead_kb")
}

/// Returns the largest value of a setting in KiB among the queues of the disks, in bytes; 0 if none is known.
fn largest_setting_bytes(case: &Case, file: &str) -> u64 {
    let disks = case.shared_layers().unwrap_or_default();
    disks.iter().filter_map(|disk| disk.queue_number(file).ok()).max().unwrap_or(0).saturating_mul(1024)
}

/// Returns the bytes that may be read ahead and not used when a run ends.
pub(crate) fn unread_bytes(case: &Case) -> u64 {
    let streams = case.member_streams();
    let (setting, request) = (read_ahead_setting_bytes(case), largest_setting_bytes(case, "max_sectors_kb"));
    let unread = |s: &Stream| {
        let lanes = u64::from(s.workers.max(1)).saturating_mul(s.lanes());
        let advised = if s.advice == Some(Advice::Sequential) { ADVISED_FACTOR } else { 1 };
        // A large read makes the window as large as the largest request.
        let window = setting.saturating_mul(advised).max(request);
        READ_AHEAD_WINDOWS.saturating_mul(lanes).saturating_mul(window)
    };
    streams.into_iter().filter(|s| reads_ahead(s)).map(unread).fold(0, u64::saturating_add)
}

/// Whether the stream reads in sequence through the page cache.
fn reads_ahead(stream: &Stream) -> bool {
    // A mixed order has sequential stretches.
    stream.access.pattern() != Some(Pattern::Random)
        && !stream.cache.is_direct()
        && stream.kinds().any(|k| k == Kind::Read)
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::record::Record;

/// A record whose disk `vda` completed `ios_per_run` more requests in each run: reads in slot 0 of its `stat` file, writes in slot 4.
#[cfg(test)]
pub(crate) fn with_foreign_requests(fixture: &Fixture, slot: usize, ios_per_run: u64) -> Record {
    let mut record = fixture.record();
    let mut done = 0;
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        if snapshot.moment == model::evidence::Moment::Stop {
            done += ios_per_run;
        }
        let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
        let mut fields: Vec<u64> = text.split_ascii_whitespace().map(|w| w.parse().unwrap()).collect();
        fields[slot] += done;
        fields[slot + 2] += done * 8;
        *text = fields.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    }
    record
}

/// Returns the reads and writes of others on the disk below the loop device, per run, and whether fathom's part was
/// inferred.
#[cfg(test)]
fn seen_below(record: &Record) -> Known<(Amount, Amount, bool)> {
    let cases = crate::case::cases(record);
    let mut all = traffic_of_others(&cases[0]);
    assert_eq!(all.len(), 2, "the loop device and its disk");
    let per_run = |a: Amount| Amount { ops: a.ops / 5, bytes: a.bytes / 5 };
    all.remove(1).map(|t| (per_run(t.read), per_run(t.write), t.is_inferred))
}

#[cfg(test)]
const NOTHING: Amount = Amount { ops: 0, bytes: 0 };

#[cfg(test)]
const THOUSAND: Amount = Amount { ops: 1_000, bytes: 4_096_000 };

#[test]
fn uncharged_reads_below_a_loop_device_belong_to_others() {
    let honest = Fixture::honest_loop();
    assert_eq!(seen_below(&honest.record()), Ok((NOTHING, NOTHING, false)));
    assert_eq!(seen_below(&with_foreign_requests(&honest, 0, 1_000)), Ok((THOUSAND, NOTHING, false)));
    let on_a_user_file = Fixture { role: Role::File, ..Fixture::honest_loop() };
    assert_eq!(seen_below(&with_foreign_requests(&on_a_user_file, 4, 1_000)), Ok((NOTHING, THOUSAND, false)));
    // A new test file is still written back.
    assert_eq!(seen_below(&with_foreign_requests(&honest, 4, 1_000)), Ok((NOTHING, NOTHING, false)));
    let cached = Fixture { leaf_share: Some(0.3), ..Fixture::honest() };
    assert_eq!(seen_below(&with_foreign_requests(&cached, 0, 1_000)), Ok((THOUSAND, NOTHING, false)));
}

#[test]
fn writes_below_a_loop_device_are_not_judged_if_the_session_writes() {
    let writes = Fixture { leaf_share: Some(1.0), ..Fixture::honest_write() };
    assert_eq!(seen_below(&with_foreign_requests(&writes, 4, 1_000)), Ok((NOTHING, NOTHING, false)));
    assert_eq!(seen_below(&with_foreign_requests(&writes, 0, 1_000)), Ok((THOUSAND, NOTHING, false)));
}

#[test]
fn traffic_below_a_loop_device_is_unknown_without_charges() {
    let without = Fixture { cgroup: false, ..Fixture::honest_loop() };
    assert!(seen_below(&without.record()).is_err_and(|why| why.contains("vda cannot be separated")));
    let charged_below = |bytes_per_run: u64| {
        let mut record = Fixture::honest_loop().record();
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            let charge = if snapshot.moment == model::evidence::Moment::Start { 0 } else { bytes_per_run };
            for text in snapshot.files.values_mut().filter_map(|t| t.as_mut().ok()) {
                if text.contains("254:0 Read") {
                    let above = text.lines().filter(|l| !l.starts_with("254:0")).map(str::to_owned);
                    let below = [format!("254:0 Read {charge}"), "254:0 Write 0".to_owned()];
                    *text = above.chain(below).collect::<Vec<_>>().join("\n");
                }
            }
        }
        seen_below(&record)
    };
    assert!(charged_below(0).is_err_and(|why| why.contains("nothing of that was charged")));
    assert!(charged_below(4096).is_err_and(|why| why.contains("less than 1 % of that was charged")));
}

/// A record of a layer of this kind with these sysfs files, on a disk that completed 1,000 more requests in each run.
#[cfg(test)]
fn on(kind: LayerKind, files: &[(&str, &str)], fixture: &Fixture) -> Record {
    let mut record = with_foreign_requests(fixture, 0, 1_000);
    let top = &mut record.header.hosts[0].places[0].layers[0];
    top.kind = kind;
    top.device = files.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    record
}

#[test]
fn plain_volumes_and_arrays_forward_requests_and_others_do_not() {
    let (charged, without) = (Fixture::honest_loop(), Fixture { cgroup: false, ..Fixture::honest_loop() });
    let volume = format!("LVM-{}", "a".repeat(64));
    let hidden = format!("{volume}-tpool");
    for (kind, file, content, passes) in [
        (LayerKind::Raid, "md/level", "raid1", true),
        (LayerKind::Raid, "md/level", "raid5", false),
        (LayerKind::DeviceMapper, "dm/uuid", volume.as_str(), true),
        (LayerKind::DeviceMapper, "dm/uuid", hidden.as_str(), false),
        (LayerKind::DeviceMapper, "dm/uuid", "CRYPT-LUKS2-0-x", true),
        (LayerKind::DeviceMapper, "dm/uuid", "CRYPT-VERITY-0-x", false),
        (LayerKind::DeviceMapper, "dm/uuid", "", false),
        (LayerKind::Virtual, "dm/uuid", "", false),
    ] {
        let seen = |fixture: &Fixture| seen_below(&on(kind, &[(file, content)], fixture));
        if passes {
            assert_eq!(seen(&charged), Ok((THOUSAND, NOTHING, false)), "{content}");
            let bytes = Amount { ops: 0, ..THOUSAND };
            assert_eq!(
                seen(&without),
                Ok((bytes, NOTHING, true)),
                "{content}: bytes suffice without charges"
            );
        } else {
            assert!(seen(&charged).is_err_and(|why| why.contains("its own I/O on vda")), "{content}");
        }
    }
}

#[test]
fn a_volume_on_hidden_volumes_does_its_own_io() {
    let volume = format!("LVM-{}", "a".repeat(64));
    let mut record = on(LayerKind::DeviceMapper, &[("dm/uuid", &volume)], &Fixture::honest_loop());
    let lower = &mut record.header.hosts[0].places[0].layers[1];
    lower.kind = LayerKind::DeviceMapper;
    lower.device.insert("dm/uuid".into(), format!("{volume}-real"));
    assert!(seen_below(&record).is_err());
}

#[test]
fn sequential_advice_doubles_the_read_ahead() {
    let mut record = crate::fixture::Fixture {
        cache: model::job::Cache::Buffered,
        pattern: Pattern::Sequential,
        ..crate::fixture::Fixture::honest()
    }
    .record();
    let queue = &mut record.header.hosts[0].places[0].layers[0].queue;
    queue.insert("read_ahead_kb".into(), "8192\n".into());
    let unread = |record: &model::record::Record| unread_bytes(&crate::case::cases(record)[0]);
    let before = unread(&record);
    record.header.plan.jobs[0].phases[0].streams[0].advice = Some(Advice::Sequential);
    assert!(before > 0 && unread(&record) == ADVISED_FACTOR * before, "{before}");
}
