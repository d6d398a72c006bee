//! What the kernel of a forged machine says.
//!
//! For: facts, files and layers of an honest machine that hardly anything changes. Not for: what depends on a run (`super`).

use model::Known;
use model::kernel_files as kept;
use model::machine::{Layer, LayerKind};
use std::collections::BTreeMap;

/// What an honest machine says of itself.
pub(super) const FACTS: &[(&str, &str)] = &[
    (kept::LIMITS, ""),
    (kept::GOVERNORS, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor: performance\n"),
    (kept::SLEEPS, ""),
    (kept::VENDOR, "ACME\n"),
    (kept::PRODUCT, "Server 1\n"),
    (kept::LIBRARIES, "/usr/lib/libc.so.6\n"),
    (kept::NODES, "/sys/devices/system/node/node0/cpulist: 0-1\n"),
];

/// The machine's own counters at a time: two CPUs, nearly idle, nothing swapped, nothing dirty, nobody short of anything.
pub(super) fn system_files(at_ns: u64) -> BTreeMap<String, Known<String>> {
    let jiffies = at_ns / 10_000_000;
    let pressure =
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    let memory = "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\nDirty: 0 kB\nWriteback: 0 kB\n";
    let vmstat = "nr_dirty 0\nnr_writeback 0\nnr_dirty_threshold 300000\nnr_dirty_background_threshold 150000\n\
                  nr_dirtied 0\nnr_written 0\npgmajfault 0\npswpin 0\npswpout 0\n";
    let io =
        "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n";
    let texts = [
        ("/proc/meminfo", memory.to_owned()),
        ("/proc/vmstat", vmstat.to_owned()),
        ("/proc/stat", format!("cpu  {0} 0 {0} {1} 0 0 0 0 0 0\n", jiffies / 4, jiffies * 3 / 2)),
        ("/proc/pressure/io", pressure.to_owned()),
        ("/proc/pressure/cpu", pressure.to_owned()),
        ("/proc/pressure/memory", pressure.to_owned()),
        ("/proc/self/io", io.to_owned()),
        (kept::LIMITS, String::new()),
        (kept::HOUSEKEEPERS, String::new()),
        (kept::THREADS, "100: fathom\n101: fathom-0\n".to_owned()),
        (kept::TEMPERATURES, String::new()),
        (kept::RAID, "Personalities :\nunused devices: <none>\n".to_owned()),
        (kept::CPU_STAT, "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n".to_owned()),
        (kept::SUSPENDED, "0\n".to_owned()),
    ];
    texts.into_iter().map(|(name, text)| (name.to_owned(), Ok(text))).collect()
}

/// The queue of an honest solid-state disk without a volatile cache.
const QUEUE: &[(&str, &str)] = &[
    ("iostats", "1"),
    ("io_poll", "0"),
    ("logical_block_size", "512"),
    ("max_sectors_kb", "1280"),
    ("max_segments", "254"),
    ("nomerges", "0"),
    ("nr_requests", "256"),
    ("physical_block_size", "4096"),
    ("read_ahead_kb", "128"),
    ("rotational", "0"),
    ("scheduler", "[none] mq-deadline"),
    ("write_cache", "write through"),
];

pub(super) fn layer(name: &str, number: &str, kind: LayerKind, below: Vec<usize>) -> Layer {
    let offset = (kind == LayerKind::Loop).then(|| ("loop/offset".to_owned(), "0".to_owned()));
    Layer {
        name: name.into(),
        number: number.into(),
        kind,
        bytes: 1 << 34,
        stat_file: format!("/sys/block/{name}/stat"),
        queue: QUEUE.iter().map(|(k, v)| ((*k).to_owned(), format!("{v}\n"))).collect(),
        device: [("mq", "4"), ("alignment_offset", "0"), ("device/numa_node", "0")]
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .chain(offset)
            .collect(),
        below,
        ..Layer::default()
    }
}
