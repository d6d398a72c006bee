//! Limits of the cgroups that this process is in and of those above it, as far as they are set.
//!
//! Gives the text of limits on I/O, CPU time and memory, which file counts our throttled CPU time, and which memory limit leaves the least
//! room. Our own cgroup is in `cgroup`.

use crate::cgroup::{self, NO_LIMIT, V1_LIMITS};
use crate::mountinfo::{self, Mount};
use crate::root::Root;
use model::Known;
use std::path::Path;

/// From here on a limit of memory is none: version 1 shows the largest number of whole pages.
const NO_MEMORY_LIMIT: u64 = 1 << 60;
/// Limits of version 2.
const V2_LIMIT_FILES: [&str; 7] =
    ["io.max", "io.latency", "io.weight", "io.cost.qos", "cpu.max", "memory.high", "memory.max"];

/// All limits that are set, a line for each, `path: line`.
///
/// # Errors
/// Where no limit was found and some place could not be looked at. A limit that was found says more than one that was not.
pub(crate) fn read_limits(root: &Root) -> Known<String> {
    let groups = Groups::read(root)?;
    let mut found = LimitTexts::default();
    for limit in V1_LIMITS {
        // Version 1 binds with the present cgroup only, not with those above it.
        let own = groups.path("blkio", 1).map(|dirs| dirs.map(|d| d.into_iter().take(1).collect()));
        found.add(root, own, &format!("blkio.throttle.{limit}"));
    }
    found.add(root, groups.path("cpu", 1), "cpu.cfs_quota_us");
    found.add(root, groups.path("memory", 1), "memory.limit_in_bytes");
    for file in V2_LIMIT_FILES {
        found.add(root, groups.path("", 2), file);
    }
    match found {
        LimitTexts { text, refused: Some(why) } if text.is_empty() => Err(why),
        LimitTexts { text, .. } => Ok(text),
    }
}

/// The `cpu.stat` that tells how long we were throttled: of the nearest cgroup with a limit, else of the nearest that counts.
///
/// # Errors
/// Why there is none.
pub(crate) fn cpu_stat(root: &Root) -> Known<String> {
    let groups = Groups::read(root)?;
    let dirs = groups.path("cpu", 1).or_else(|| groups.path("", 2));
    let dirs = dirs.ok_or("this process is in no cgroup that counts CPU time")??;
    let limited = |dir: &&String| {
        ["cpu.cfs_quota_us", "cpu.max"]
            .iter()
            .any(|f| root.word(&format!("{dir}/{f}")).is_some_and(|line| is_set(f, &line)))
    };
    let text = |dir: &str| root.read(&format!("{dir}/cpu.stat")).unwrap_or_default();
    let counts = |dir: &&String| text(dir).contains("nr_throttled");
    let any = |dir: &&String| !text(dir).is_empty();
    let best = dirs.iter().find(|d| limited(d) && counts(d)).or_else(|| dirs.iter().find(counts));
    let best = best.or_else(|| dirs.iter().find(any));
    best.map(|dir| format!("{dir}/cpu.stat")).ok_or_else(|| "no cgroup above us has a cpu.stat".into())
}

/// A limit on the memory of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The file that sets it.
    pub file: String,
    /// Bytes that all processes of the cgroup may have together.
    pub bytes: u64,
    /// Bytes of them that other processes have, without what the kernel could give back (the page cache).
    pub used_bytes: u64,
}

impl MemoryLimit {
    /// Bytes that are left for this process.
    pub fn room_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.used_bytes)
    }
}

/// The memory limit that leaves this process the least room, of its cgroup and those above; `None` if none is set or can be read.
pub fn memory(root: &Root) -> Option<MemoryLimit> {
    let groups = Groups::read(root).ok()?;
    let own = anonymous_bytes(root);
    let versions = [
        (groups.path("memory", 1), "memory.limit_in_bytes", "total_rss "),
        (groups.path("", 2), "memory.max", "anon "),
    ];
    let limits = versions.into_iter().flat_map(|(dirs, file, counter)| {
        let dirs = dirs.and_then(Result::ok).unwrap_or_default();
        dirs.into_iter().filter_map(move |dir| {
            let file = format!("{dir}/{file}");
            let bytes = root.word(&file)?.parse().ok().filter(|bytes| *bytes < NO_MEMORY_LIMIT)?;
            let stat = root.read(&format!("{dir}/memory.stat")).unwrap_or_default();
            let of_all = stat.lines().find_map(|line| line.strip_prefix(counter)?.trim().parse().ok());
            Some(MemoryLimit { file, bytes, used_bytes: of_all.unwrap_or(0_u64).saturating_sub(own) })
        })
    });
    limits.min_by_key(MemoryLimit::room_bytes)
}

/// Memory of this process that is no file's.
fn anonymous_bytes(root: &Root) -> u64 {
    let status = root.read("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        let value = line.strip_prefix("RssAnon:")?.trim();
        value.strip_suffix(" kB")?.parse::<u64>().ok()
    });
    kib.unwrap_or(0).saturating_mul(1024)
}

/// The cgroups of this process.
struct Groups {
    /// Text of `/proc/self/cgroup`.
    present: String,
    mounts: Vec<Mount>,
}

impl Groups {
    fn read(root: &Root) -> Known<Self> {
        let present = root.read("/proc/self/cgroup").map_err(|why| format!("/proc/self/cgroup: {why}"))?;
        Ok(Self { present, mounts: mountinfo::read(root)? })
    }

    /// Directories of a hierarchy, from the cgroup of this process up to the top that is mounted here; `None` where this
    /// machine has no such hierarchy.
    fn path(&self, controller: &str, version: u8) -> Option<Known<Vec<String>>> {
        // Lines are `id:controllers:path`; version 2 has no controllers there.
        let mut lines = self.present.lines().filter_map(|l| l.split_once(':')?.1.split_once(':'));
        let (kind, has): (_, &dyn Fn(&str) -> bool) = match version {
            1 => ("cgroup", &|list: &str| list.split(',').any(|c| c == controller)),
            _ => ("cgroup2", &|_: &str| true),
        };
        let (_, path) = lines.find(|(list, _)| if version == 1 { has(list) } else { list.is_empty() })?;
        let mount = self.mounts.iter().find(|m| m.kind == kind && has(&m.super_options));
        let Some(mount) = mount else {
            return Some(Err(format!("the cgroups of {} are not mounted here", controller_name(controller))));
        };
        let dir = match cgroup::directory(mount, path) {
            Ok(dir) => dir,
            Err(why) => return Some(Err(format!("limits of {}: {why}", controller_name(controller)))),
        };
        let above = Path::new(&dir).ancestors().take_while(|d| d.starts_with(&mount.point));
        Some(Ok(above.map(|d| d.to_string_lossy().into_owned()).collect()))
    }
}

fn controller_name(controller: &str) -> &str {
    if controller.is_empty() { "version 2" } else { controller }
}

/// Limits that were found, and the first place that could not be looked at.
#[derive(Default)]
struct LimitTexts {
    text: String,
    refused: Option<String>,
}

impl LimitTexts {
    fn add(&mut self, root: &Root, dirs: Option<Known<Vec<String>>>, file: &str) {
        let dirs = match dirs {
            None => return,
            Some(Ok(dirs)) => dirs,
            Some(Err(why)) => return self.refuse(why),
        };
        for dir in dirs {
            let path = format!("{dir}/{file}");
            match root.read(&path) {
                Ok(text) => {
                    for line in text.lines().map(str::trim).filter(|l| is_set(file, l)) {
                        self.text += &format!("{path}: {line}\n");
                        self.period(root, &dir, file);
                    }
                }
                // Most cgroups have no controller and the top has no limits.
                Err(_) if !root.has(&path) => {}
                Err(why) => self.refuse(format!("{path}: {why}")),
            }
        }
    }

    /// A quota says nothing without its period.
    fn period(&mut self, root: &Root, dir: &str, file: &str) {
        if file == "cpu.cfs_quota_us"
            && let Some(period) = root.word(&format!("{dir}/cpu.cfs_period_us"))
        {
            self.text += &format!("{dir}/cpu.cfs_period_us: {period}\n");
        }
    }

    fn refuse(&mut self, why: String) {
        self.refused.get_or_insert(why);
    }
}

/// Whether a line of a file of limits limits anything.
fn is_set(file: &str, line: &str) -> bool {
    let number = || line.split_ascii_whitespace().next_back().and_then(|w| w.parse::<u64>().ok());
    match file {
        "io.max" => line.split('=').skip(1).any(|value| !value.starts_with("max")),
        "io.weight" => !matches!(line, "" | "default 100" | "100"),
        "io.cost.qos" => line.split(' ').any(|word| word == "enable=1"),
        "cpu.max" | "memory.max" | "memory.high" => !line.is_empty() && !line.starts_with("max"),
        "cpu.cfs_quota_us" => number().is_some(),
        "memory.limit_in_bytes" => number().is_some_and(|bytes| bytes < NO_MEMORY_LIMIT),
        // A rule that only makes the kernel count, such as our own, binds nothing.
        _ if file.starts_with("blkio.throttle.") => number().is_some_and(|n| n != NO_LIMIT),
        _ => !line.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::put;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        for (path, text) in files {
            put(dir.path(), path, text);
        }
        dir
    }

    const V2: (&str, &str) = ("/proc/self/mountinfo", "31 1 0:27 / /cg rw - cgroup2 cgroup2 rw\n");

    #[test]
    fn limits_of_version_2_are_found_in_every_cgroup_above() {
        let dir = machine(&[
            V2,
            ("/proc/self/cgroup", "0::/user.slice/me.scope\n"),
            (
                "/cg/user.slice/io.max",
                "8:0 rbps=max wbps=max riops=500 wiops=max\n8:16 rbps=max wbps=max riops=max wiops=max\n",
            ),
            ("/cg/user.slice/cpu.max", "50000 100000\n"),
            ("/cg/user.slice/cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 5\n"),
            ("/cg/user.slice/me.scope/cpu.max", "max 100000\n"),
            ("/cg/user.slice/me.scope/cpu.stat", "usage_usec 1\nnr_periods 0\nnr_throttled 0\n"),
            ("/cg/user.slice/me.scope/memory.max", "max\n"),
            ("/cg/user.slice/me.scope/io.weight", "default 100\n8:0 50\n"),
            ("/cg/io.cost.qos", "8:0 enable=0 ctrl=auto\n8:16 enable=1 ctrl=user\n"),
        ]);
        let root = Root::at(dir.path().to_owned());
        assert_eq!(
            read_limits(&root),
            Ok("/cg/user.slice/io.max: 8:0 rbps=max wbps=max riops=500 wiops=max\n\
                /cg/user.slice/me.scope/io.weight: 8:0 50\n\
                /cg/io.cost.qos: 8:16 enable=1 ctrl=user\n\
                /cg/user.slice/cpu.max: 50000 100000\n"
                .to_owned())
        );
        // The limited one throttles; the one below counts its own quota only, of which it has none.
        assert_eq!(cpu_stat(&root), Ok("/cg/user.slice/cpu.stat".to_owned()));
    }

    #[test]
    fn limits_of_version_1_are_found_and_a_counting_rule_is_none() {
        let limit = format!("254:0 {NO_LIMIT}\n254:16 1000\n");
        let dir = machine(&[
            (
                "/proc/self/mountinfo",
                "31 1 0:27 / /b rw - cgroup cgroup rw,blkio\n32 1 0:28 / /c rw - cgroup cgroup rw,cpu,cpuacct\n33 1 0:29 / /m rw - cgroup cgroup rw,memory\n",
            ),
            ("/proc/self/cgroup", "3:blkio:/a/b\n2:cpu,cpuacct:/x\n1:memory:/\n"),
            ("/b/a/blkio.throttle.read_iops_device", "254:0 7\n"),
            ("/b/a/b/blkio.throttle.read_bps_device", &limit),
            ("/c/x/cpu.cfs_quota_us", "20000\n"),
            ("/c/x/cpu.cfs_period_us", "100000\n"),
            ("/c/x/cpu.stat", "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n"),
            ("/m/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let root = Root::at(dir.path().to_owned());
        assert_eq!(
            read_limits(&root),
            Ok("/b/a/b/blkio.throttle.read_bps_device: 254:16 1000\n\
                /c/x/cpu.cfs_quota_us: 20000\n/c/x/cpu.cfs_period_us: 100000\n"
                .to_owned())
        );
        assert_eq!(cpu_stat(&root), Ok("/c/x/cpu.stat".to_owned()));
    }

    #[test]
    fn the_memory_limit_that_leaves_the_least_room_counts_whichever_cgroup_above_sets_it() {
        let dir = machine(&[
            V2,
            ("/proc/self/cgroup", "0::/pod/me\n"),
            ("/proc/self/status", "Name:\tfathom\nRssAnon:\t    4096 kB\n"),
            ("/cg/pod/me/memory.max", "209715200\n"),
            ("/cg/pod/me/memory.stat", "anon 4194304\nfile 99999999\n"),
            ("/cg/pod/memory.max", "268435456\n"),
            ("/cg/pod/memory.stat", "anon 138412032\nfile 1\n"),
            ("/cg/memory.max", "max\n"),
        ]);
        let found = memory(&Root::at(dir.path().to_owned()));
        let known =
            MemoryLimit { file: "/cg/pod/memory.max".into(), bytes: 256 << 20, used_bytes: 128 << 20 };
        assert_eq!(found, Some(known));
        let dir = machine(&[
            ("/proc/self/mountinfo", "33 1 0:29 / /m rw - cgroup cgroup rw,memory\n"),
            ("/proc/self/cgroup", "1:memory:/a\n"),
            ("/m/a/memory.limit_in_bytes", "67108864\n"),
            ("/m/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let found =
            memory(&Root::at(dir.path().to_owned())).map(|limit| (limit.file.clone(), limit.room_bytes()));
        assert_eq!(found, Some(("/m/a/memory.limit_in_bytes".into(), 64 << 20)));
        assert_eq!(memory(&Root::at("/nonexistent-prefix".into())), None);
    }

    #[test]
    fn a_machine_without_limits_is_empty_and_a_hidden_hierarchy_is_a_reason() {
        let dir = machine(&[V2, ("/proc/self/cgroup", "0::/\n"), ("/cg/cpu.stat", "usage_usec 3\n")]);
        let root = Root::at(dir.path().to_owned());
        assert_eq!((read_limits(&root), cpu_stat(&root)), (Ok(String::new()), Ok("/cg/cpu.stat".to_owned())));
        let dir = machine(&[V2, ("/proc/self/cgroup", "0::/../../other\n")]);
        let root = Root::at(dir.path().to_owned());
        assert!(read_limits(&root).is_err_and(|why| why.contains("container")));
        assert!(cpu_stat(&root).is_err());
        assert!(read_limits(&Root::at("/nonexistent-prefix".into())).is_err());
    }
}
