//! The calling thread: its CPU time and switches, its CPUs and priorities, the NUMA nodes of its memory (`set_mempolicy(2)`), and its
//! signal mask.

use crate::check;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::{fs, io};

/// Resources that a thread or process has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user space in ns.
    pub user_ns: u64,
    /// CPU time in the kernel in ns.
    pub system_ns: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub forced_switches: u64,
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
}

/// Reads the usage of the calling thread (`getrusage(RUSAGE_THREAD)`).
///
/// # Errors
/// An error of the kernel; none is known for a valid call.
pub fn usage() -> io::Result<Usage> {
    usage_of(libc::RUSAGE_THREAD)
}

/// Reads the usage of the whole process (`getrusage(RUSAGE_SELF)`): all its threads, including ended ones and kernel threads of io_uring.
///
/// # Errors
/// An error of the kernel; none is known for a valid call.
pub fn usage_of_process() -> io::Result<Usage> {
    usage_of(libc::RUSAGE_SELF)
}

fn usage_of(scope: libc::c_int) -> io::Result<Usage> {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage that the kernel fills; nothing else is touched.
    check(unsafe { libc::getrusage(scope, raw.as_mut_ptr()) })?;
    // SAFETY: zeroed at first and filled by a call that succeeded; every bit pattern of its integers is valid.
    let raw = unsafe { raw.assume_init() };
    let ns = |t: libc::timeval| (t.tv_sec as u64) * 1_000_000_000 + (t.tv_usec as u64) * 1000;
    Ok(Usage {
        user_ns: ns(raw.ru_utime),
        system_ns: ns(raw.ru_stime),
        voluntary_switches: raw.ru_nvcsw as u64,
        forced_switches: raw.ru_nivcsw as u64,
        minor_faults: raw.ru_minflt as u64,
        major_faults: raw.ru_majflt as u64,
    })
}

/// Returns the CPU time of another thread of this process in ns.
///
/// # Errors
/// `EINVAL` if this process has no such thread.
pub fn cpu_ns_of(thread: u32) -> io::Result<u64> {
    // The kernel derives the clock of a thread from its id with `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED`.
    const THREAD_CPU_CLOCK: libc::clockid_t = 4 | 2;
    let clock = (!thread.cast_signed() << 3) | THREAD_CPU_CLOCK;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call takes a number and fills the timespec of this frame; an unknown clock is an error.
    check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok((time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64)
}

/// The open file `/proc/thread-self/schedstat`. It shows how long the thread that opened it was
/// ready to run but waited for a CPU.
#[derive(Debug)]
pub struct RunQueue(File);

impl RunQueue {
    /// Opens the file `schedstat`. Call it before the measurement, because opening costs more than reading.
    ///
    /// # Errors
    /// `ENOENT` if the kernel has no such file or `/proc` is not mounted.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/thread-self/schedstat").map(Self)
    }

    /// Returns the waiting time since the thread began, in ns.
    ///
    /// # Errors
    /// If the file cannot be read, or the kernel does not count the waiting time.
    pub fn waited_ns(&self) -> io::Result<u64> {
        let mut text = [0_u8; 80];
        let count = self.0.read_at(&mut text, 0)?;
        parse_schedstat(text.get(..count).unwrap_or_default()).ok_or_else(|| {
            io::Error::other("the kernel does not count the time that threads wait for a CPU (schedstat)")
        })
    }
}

/// Parses the three numbers of `schedstat`: the time on a CPU, the time waiting for one, and the number of time slices. Returns the
/// waiting time; `None` if all three are 0, because then the kernel does not count them, or if the text is invalid.
fn parse_schedstat(text: &[u8]) -> Option<u64> {
    let numbers: Option<Vec<u64>> =
        std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(|w| w.parse().ok()).collect();
    match numbers?[..] {
        [0, 0, 0] => None,
        [_, waited, _] => Some(waited),
        _ => None,
    }
}

/// Returns the signals that end a process by default and that another process may send: all except `SIGKILL`, faults of the program, and
/// signals that fathom uses (`SIGUSR1`, `SIGXFSZ`, `SIGPIPE`).
pub fn ending_signals() -> Vec<i32> {
    let named = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGABRT,
        libc::SIGTERM,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGXCPU,
        libc::SIGIO,
        libc::SIGPWR,
        libc::SIGSTKFLT,
    ];
    named.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()).collect()
}

/// Blocks all [`ending_signals`] and SIGUSR1 in the calling thread, so that another thread reads them and no I/O call is interrupted.
///
/// # Errors
/// An error of the kernel; none is known for a valid call.
pub fn block_signals() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigemptyset initialises the set that the next calls read; all pointers are to this frame.
    let answer = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in ending_signals().into_iter().chain([libc::SIGUSR1]) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

/// Binds the calling thread to CPUs. Without CPUs, binds the thread to the CPUs of a NUMA node. Does nothing if neither is given.
///
/// # Errors
/// A message if a CPU or node does not exist, or the kernel does not allow it.
pub fn place(cpus: &[u32], node: Option<u32>) -> io::Result<()> {
    let node_cpus = match node {
        Some(node) if cpus.is_empty() => cpus_of(node)?,
        _ => Vec::new(),
    };
    let wanted = if cpus.is_empty() { &node_cpus } else { cpus };
    if wanted.is_empty() {
        return Ok(());
    }
    let present = fs::read_to_string(PRESENT_CPUS).unwrap_or_default();
    let mut set = rustix::thread::CpuSet::new();
    for &cpu in wanted {
        // The kernel ignores a missing CPU if others exist.
        if cpu as usize >= rustix::thread::CpuSet::MAX_CPU || is_beyond(cpu, &present) {
            let why = format!("there is no CPU {cpu}; type some of {}", present.trim());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        set.set(cpu as usize);
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| {
        let allowed = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let allowed = allowed.map_or_else(String::new, |list| format!(", only on {}", list.trim()));
        let list = wanted.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let noun = if wanted.len() == 1 { "CPU" } else { "CPUs" };
        let why =
            format!("this process is not allowed to run on {noun} {list}{allowed} ({e}); type other CPUs");
        io::Error::new(io::Error::from(e).kind(), why)
    })
}

/// File that lists the CPUs of the machine, such as `0-7`.
pub const PRESENT_CPUS: &str = "/sys/devices/system/cpu/present";

/// Whether a CPU has a higher number than all CPUs in a list of the kernel. False if the list is empty.
pub fn is_beyond(cpu: u32, present: &str) -> bool {
    let last = present.trim().rsplit([',', '-']).next();
    last.and_then(|last| last.parse::<u32>().ok()).is_some_and(|last| cpu > last)
}

/// Value of `which` in `ioprio_set(2)`: the id is that of a process or thread. The id 0 means the caller.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;

/// Sets the nice value (`setpriority(2)`) and the I/O priority (class and level as in `ioprio_set(2)`) of the calling thread. `None`
/// keeps the present value.
///
/// # Errors
/// A message if the kernel does not allow it.
pub fn prefer(nice: Option<i32>, io_priority: Option<u32>) -> io::Result<()> {
    if let Some(nice) = nice {
        rustix::process::setpriority_process(None, nice)
            .map_err(|e| refused(&format!("nice value {nice} cannot be set"), &e.into()))?;
    }
    let Some(priority) = io_priority else { return Ok(()) };
    // SAFETY: the call takes three numbers and changes nothing but the priority of this thread (0).
    check(unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, priority) })
        .map_err(|e| refused("the I/O priority cannot be set", &e))
}

/// The kernel's largest `NR_CPUS`.
const MAX_CPUS: usize = 8192;

/// Reads the CPUs of a NUMA node from sysfs.
///
/// # Errors
/// A message with the existing nodes if the node does not exist, or what to do if it has no CPUs.
pub fn cpus_of(node: u32) -> io::Result<Vec<u32>> {
    let file = |name: &str| fs::read_to_string(format!("/sys/devices/system/node/{name}"));
    let list = file(&format!("node{node}/cpulist")).map_err(|e| {
        let advice = match file("online") {
            Ok(nodes) => format!("the nodes are: {}", nodes.trim()),
            Err(_) => "remove the option that names it".into(),
        };
        io::Error::new(e.kind(), format!("there is no NUMA node {node}; {advice}"))
    })?;
    parse_list(&list, MAX_CPUS).ok_or_else(|| {
        let why = format!(
            "NUMA node {node} has no CPUs; name it only for the memory (`--memory-nodes bind:{node}`), or name CPUs too"
        );
        io::Error::new(io::ErrorKind::InvalidInput, why)
    })
}

fn refused(what: &str, error: &io::Error) -> io::Error {
    let why = format!("{what} by this process ({error}); type other values, or remove the option");
    io::Error::new(error.kind(), why)
}

/// Files that list the nodes with memory. Older kernels have only the second file, which lists the online nodes.
const NODE_LISTS: [&str; 2] = ["/sys/devices/system/node/has_memory", "/sys/devices/system/node/online"];
/// Bits of a node mask: the kernel's largest `MAX_NUMNODES`.
const MAX_NODES: usize = 1024;
const WORD_BITS: usize = libc::c_ulong::BITS as usize;

/// How memory is allocated from NUMA nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum MemoryPolicy {
    /// From the node of the CPU that touches the memory.
    Local = libc::MPOL_LOCAL,
    /// Only from these nodes.
    Bind = libc::MPOL_BIND,
    /// Preferably from this node.
    Prefer = libc::MPOL_PREFERRED,
    /// From these nodes in turn, one page each.
    Interleave = libc::MPOL_INTERLEAVE,
}

/// Sets the nodes for memory that the calling thread allocates from now on. `nodes` is empty with [`MemoryPolicy::Local`].
///
/// # Errors
/// A message if a node does not exist, or the kernel does not allow it.
pub fn set_memory_policy(policy: MemoryPolicy, nodes: &[u32]) -> io::Result<()> {
    let mut mask = [0 as libc::c_ulong; MAX_NODES / WORD_BITS];
    // The nodes are checked here because the kernel silently ignores missing ones.
    let existing = if nodes.is_empty() { Vec::new() } else { nodes_with_memory()? };
    for &node in nodes {
        let word = mask.get_mut(node as usize / WORD_BITS).filter(|_| existing.contains(&node));
        *word.ok_or_else(|| missing_node(node, &existing))? |= 1 << (node as usize % WORD_BITS);
    }
    // The number of bits is one more than the mask has, because the kernel ignores the highest bit.
    let (mask, bits) = if nodes.is_empty() { (std::ptr::null(), 0) } else { (mask.as_ptr(), MAX_NODES + 1) };
    // SAFETY: the mask lives in this frame. The kernel reads one bit less than the given number,
    // which is the length of the mask; a null mask has 0 bits. The call changes nothing but the
    // policy of this thread.
    check(unsafe { libc::syscall(libc::SYS_set_mempolicy, policy as libc::c_int, mask, bits) }).map_err(|e| {
        let why = format!(
            "this process is not allowed to choose NUMA nodes for its memory ({e}); remove the option that names them"
        );
        io::Error::new(e.kind(), why)
    })
}

/// Builds the error for a missing node, which lists the existing ones.
fn missing_node(node: u32, existing: &[u32]) -> io::Error {
    let list: Vec<String> = existing.iter().map(u32::to_string).collect();
    let why = format!("there is no NUMA node {node} with memory; the nodes are: {}", list.join(", "));
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Reads the nodes with memory.
fn nodes_with_memory() -> io::Result<Vec<u32>> {
    let text = NODE_LISTS.iter().find_map(|path| fs::read_to_string(path).ok());
    let nodes = text.as_deref().and_then(|text| parse_list(text, MAX_NODES));
    nodes.ok_or_else(|| {
        let why =
            "the kernel shows no NUMA nodes in /sys/devices/system/node; remove the option that names them";
        io::Error::new(io::ErrorKind::Unsupported, why)
    })
}

/// Parses a list of numbers below `limit`, such as `0-1,4`; `None` for an empty list.
fn parse_list(list: &str, limit: usize) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok().filter(|n| (*n as usize) < limit)?);
    }
    Some(all)
}

/// Gives the calling thread its own copy of the file table (`unshare(CLONE_FILES)`). The kernel then looks up descriptors without
/// reference counts, which saves 80 ns of a cached pread on the reference machine. Later opens and closes affect only one of the tables.
/// The copy is freed with the thread.
///
/// # Errors
/// An error of the kernel or of a system call filter; then nothing has changed.
pub fn own_file_table() -> io::Result<()> {
    // SAFETY: the call takes a number only. Descriptors keep their numbers in a table that ends with this thread; other threads keep
    // the old table.
    check(unsafe { libc::unshare(libc::CLONE_FILES) })
}

/// Returns the memory policy of the calling thread, and the nodes of the policy (`get_mempolicy(2)`).
#[cfg(test)]
fn current_policy() -> (libc::c_int, Vec<u32>) {
    let mut mode: libc::c_int = -1;
    let mut mask = [0 as libc::c_ulong; MAX_NODES / WORD_BITS];
    let (none, flags) = (std::ptr::null::<libc::c_void>(), 0);
    // SAFETY: the kernel fills a number and a mask of this frame. The mask has the given number of bits.
    let answer = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, mask.as_mut_ptr(), MAX_NODES, none, flags)
    };
    assert_eq!(answer, 0, "{}", io::Error::last_os_error());
    let is_in = |node: &u32| mask[*node as usize / WORD_BITS] & (1 << (*node as usize % WORD_BITS)) != 0;
    (mode, (0..MAX_NODES as u32).filter(is_in).collect())
}

#[test]
fn a_thread_stays_on_its_cpu_and_a_missing_cpu_is_named() {
    std::thread::spawn(|| {
        place(&[0], Some(0)).unwrap_or_else(|e| panic!("{e}"));
        let set = rustix::thread::sched_getaffinity(None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((set.count(), set.is_set(0)), (1, true));
        for (cpus, node, named) in [
            (&[1000_u32][..], None, "there is no CPU 1000; type some of 0"),
            (&[4_000_000_000][..], None, "there is no CPU 4000000000"),
            (&[][..], Some(999), "there is no NUMA node 999; the nodes are: 0"),
        ] {
            let why = place(cpus, node)
                .err()
                .unwrap_or_else(|| panic!("{cpus:?} {node:?} was accepted"))
                .to_string();
            assert!(why.contains(named), "{why}");
        }
        place(&[], None).unwrap_or_else(|e| panic!("{e}"));
    })
    .join()
    .unwrap_or_else(|_| panic!("the thread panicked"));
}

#[test]
fn cpu_time_is_counted() {
    let before = usage().unwrap_or_default();
    let start = std::time::Instant::now();
    while start.elapsed().as_millis() < 30 {
        std::hint::spin_loop();
    }
    let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let after = usage().unwrap_or_default();
    let by_clock = cpu_ns_of(own).unwrap_or_default();
    assert!(
        by_clock >= after.user_ns + after.system_ns
            && by_clock < after.user_ns + after.system_ns + 1_000_000_000
    );
    assert!(cpu_ns_of(5_000_000).is_err());
    assert!(after.user_ns + after.system_ns > before.user_ns + before.system_ns);
    let all = usage_of_process().unwrap_or_default();
    assert!(all.user_ns + all.system_ns >= after.user_ns + after.system_ns && all.minor_faults > 0);
}

#[test]
fn waiting_for_a_shared_cpu_is_counted() {
    assert_eq!(parse_schedstat(b"0 19864572 1\n"), Some(19_864_572));
    assert_eq!(
        (parse_schedstat(b"0 0 0\n"), parse_schedstat(b"1 x 2"), parse_schedstat(b"")),
        (None, None, None)
    );
    let spin = |queue: &RunQueue| {
        let before = queue.waited_ns().unwrap_or(0);
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 60 {
            std::hint::spin_loop();
        }
        queue.waited_ns().unwrap_or(0) - before
    };
    let threads = [0, 1].map(|_| {
        std::thread::spawn(move || {
            place(&[0], None)?;
            RunQueue::open().map(|queue| spin(&queue))
        })
    });
    for waited in threads.map(|t| t.join().unwrap_or_else(|_| panic!("the thread panicked"))) {
        match waited {
            Ok(ns) => assert!(ns > 5_000_000, "{ns}"),
            Err(e) => println!("skipped: {e}"),
        }
    }
}

#[test]
fn the_kernel_reports_the_policy_that_was_set() {
    let Ok(there) = nodes_with_memory() else { return println!("SKIPPED: the kernel shows no NUMA nodes") };
    let all = there.as_slice();
    for (policy, nodes) in [
        (MemoryPolicy::Bind, all),
        (MemoryPolicy::Interleave, all),
        (MemoryPolicy::Prefer, &all[..1]),
        (MemoryPolicy::Local, &[]),
    ] {
        let asked = nodes.to_vec();
        let seen =
            std::thread::spawn(move || set_memory_policy(policy, &asked).map(|()| current_policy())).join();
        let seen = seen.unwrap_or_else(|_| panic!("the thread panicked"));
        match seen {
            Ok(seen) => assert_eq!(seen, (policy as libc::c_int, nodes.to_vec()), "{policy:?}"),
            Err(e) => println!("SKIPPED: {e}"),
        }
    }
}

#[test]
fn touched_memory_has_the_policy() {
    let touched = std::thread::spawn(|| -> io::Result<String> {
        set_memory_policy(MemoryPolicy::Bind, &nodes_with_memory()?[..1])?;
        let arena = crate::arena::Arena::new(4, 4096)?;
        let maps = fs::read_to_string("/proc/thread-self/numa_maps")?;
        let start = |line: &&str| {
            line.split(' ').next().and_then(|at| usize::from_str_radix(at, 16).ok()).unwrap_or(usize::MAX)
        };
        let before = maps.lines().filter(|line| start(line) <= arena.address(0) as usize);
        Ok(before.max_by_key(start).unwrap_or_default().to_owned())
    });
    match touched.join().unwrap_or_else(|_| panic!("the thread panicked")) {
        Ok(line) => assert!(line.contains(" bind:") && line.contains(" N"), "{line:?}"),
        Err(e) => println!("SKIPPED: {e}"),
    }
}

#[test]
fn a_missing_node_is_refused_with_the_existing_ones() {
    let Ok(there) = nodes_with_memory() else { return println!("SKIPPED: the kernel shows no NUMA nodes") };
    for nodes in [&[1023][..], &[there[0], 1000], &[u32::MAX]] {
        let why = set_memory_policy(MemoryPolicy::Bind, nodes)
            .map_or_else(|e| e.to_string(), |()| panic!("{nodes:?} was accepted"));
        assert!(
            why.contains("no NUMA node") && why.contains(&format!("the nodes are: {}", there[0])),
            "{why}"
        );
    }
    assert_eq!(parse_list("0-1,4\n", 8), Some(vec![0, 1, 4]));
    // A node without CPUs has an empty list.
    for list in ["\n", "x", "0-4000000000", "0-8"] {
        assert_eq!(parse_list(list, 8), None, "{list:?}");
    }
}
