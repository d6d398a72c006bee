//! Names under which kernel text is kept, where they are more than a path that everybody knows.
//!
//! For: one spelling for those who read the files (the crate `machine`) and those who parse the text (the crate `analysis`).
//! Not for: `/proc/meminfo` and others that are their own names.
//!
//! A name with a `*` stands for every file that matches; its text has a line for each, `path: first line`. No match is empty
//! text; what could not be looked at is a reason, as everywhere.

/// A fact, and in snapshots: every limit of the cgroups above us that is set, a line for each, `path: line`: `io.max`, `io.latency`, `io.weight`
/// other than its default, `io.cost.qos` that is on, `blkio.throttle.*_device`, `cpu.max`, `cpu.cfs_quota_us` with
/// `cpu.cfs_period_us`, `memory.max`, `memory.high`, `memory.limit_in_bytes`.
pub const LIMITS: &str = "limits of the cgroups above us";
/// A fact: how CPUs choose their frequency.
pub const GOVERNORS: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
/// A fact: depths of sleep of the first CPU that are not disabled, and how long waking takes, us.
pub const SLEEPS: &str = "/sys/devices/system/cpu/cpu0/cpuidle/state*/latency";
/// A fact: who made the machine or the hypervisor.
pub const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";
/// A fact: what it is called.
pub const PRODUCT: &str = "/sys/class/dmi/id/product_name";
/// A fact: from which order on free pages are told to the host, so that it takes them; no file where the kernel cannot.
pub const PAGE_REPORTING: &str = "/sys/module/*/parameters/page_reporting_order";
/// A fact: what denies io_uring here; empty text if io_uring can be used.
pub const IO_URING: &str = "what denies io_uring";
/// A fact: libraries mapped into fathom, a path a line, and a first line `LD_PRELOAD: ...` where that is set.
pub const LIBRARIES: &str = "libraries of /proc/self/maps";
/// At the end of the idle watch: processes that moved data meanwhile, most first, a line for each, `name (pid): bytes`.
pub const NEIGHBOURS: &str = "/proc/*/io of other processes";
/// In snapshots: the names of the kernel's own threads that do housekeeping, a line for each, `pid: name`.
pub const HOUSEKEEPERS: &str = "/proc/*/comm of kernel threads";
/// In snapshots while workers run: the names of all our threads, a line for each, `tid: name`. Of some hundred threads it is
/// left out where it is the same as before.
pub const THREADS: &str = "/proc/self/task/*/comm";
/// In snapshots: temperatures of the drives below the targets in thousandths of a degree, with their limits: `temp1_input`,
/// `temp1_max`, `temp1_crit`, `temp1_alarm`. Empty where none of these drives has a thermometer that the kernel shows.
pub const TEMPERATURES: &str = "/sys/class/hwmon/hwmon*/temp1_*";
/// In snapshots: the part of `/proc/self/mountstats` about the targets' mounts, where one is of a network.
pub const MOUNT_STATS: &str = "/proc/self/mountstats";
/// In snapshots: state of software RAID.
pub const RAID: &str = "/proc/mdstat";
/// In snapshots: CPU time and throttling of the nearest cgroup, ours or above, that has a quota, or else that counts.
pub const CPU_STAT: &str = "cpu.stat of our cgroup";
/// In snapshots: `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC` in ns: it grows while the machine is suspended.
pub const SUSPENDED: &str = "CLOCK_BOOTTIME - CLOCK_MONOTONIC";
/// A fact: the number of the core of each CPU, which counts within its package.
pub const CORES: &str = "/sys/devices/system/cpu/cpu*/topology/core_id";
/// A fact: the number of the package of each CPU.
pub const PACKAGES: &str = "/sys/devices/system/cpu/cpu*/topology/physical_package_id";
/// A fact: the CPUs of each memory node, as lists such as `0-3,8`.
pub const NODES: &str = "/sys/devices/system/node/node*/cpulist";
