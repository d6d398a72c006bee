//! What a thread costs, where it runs, and which signals it does not take.
//!
//! For: CPU time and switches of the calling thread, its CPUs, its priorities, its timers, and a signal mask for workers.
//! Not for: the nodes of its memory ([`crate::memory_policy`]).

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

/// What the calling thread has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user space, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, ns.
    pub system_ns: u64,
    /// Times it gave up the CPU by itself.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub forced_switches: u64,
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
}

/// Reads the usage of the calling thread (`getrusage(RUSAGE_THREAD)`).
///
/// # Errors
/// Whatever the kernel answers; none is known for a valid call.
pub fn usage() -> io::Result<Usage> {
    usage_of(libc::RUSAGE_THREAD)
}

/// Reads the usage of the whole process (`getrusage(RUSAGE_SELF)`): all its threads, those that ended, and those that the kernel works for
/// it on.
///
/// # Errors
/// Whatever the kernel answers; none is known for a valid call.
pub fn usage_of_process() -> io::Result<Usage> {
    usage_of(libc::RUSAGE_SELF)
}

fn usage_of(whom: libc::c_int) -> io::Result<Usage> {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage that the kernel fills; nothing else is touched.
    if unsafe { libc::getrusage(whom, raw.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
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

/// CPU time that another thread of this process has used since it began, in ns.
///
/// # Errors
/// Where this process has no such thread.
pub fn cpu_ns_of(thread: u32) -> io::Result<u64> {
    // As the kernel makes the number of a thread's clock from its id (`CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED`).
    const OF_A_THREAD: libc::clockid_t = 4 | 2;
    let clock = (!thread.cast_signed() << 3) | OF_A_THREAD;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call takes a number and fills the timespec of this frame; a number of no clock is an error.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64)
}

/// How long the calling thread was ready to run and waited for a CPU (`/proc/thread-self/schedstat`).
#[derive(Debug)]
pub struct RunQueue(File);

impl RunQueue {
    /// Opens the file, which is the larger part of the cost; before what is to be measured.
    ///
    /// # Errors
    /// Where the kernel has no such file or `/proc` is not mounted.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/thread-self/schedstat").map(Self)
    }

    /// ns of waiting since the thread began.
    ///
    /// # Errors
    /// Where the file cannot be read, or the kernel keeps no account.
    pub fn waited_ns(&self) -> io::Result<u64> {
        let mut text = [0_u8; 80];
        let count = self.0.read_at(&mut text, 0)?;
        parse_schedstat(text.get(..count).unwrap_or_default())
            .ok_or_else(|| io::Error::other("the kernel keeps no account of waiting for a CPU (schedstat)"))
    }
}

/// Time on a CPU, time waiting for one, turns on one. All are 0 where the kernel does not count.
fn parse_schedstat(text: &[u8]) -> Option<u64> {
    let numbers: Option<Vec<u64>> =
        std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(|w| w.parse().ok()).collect();
    match numbers?[..] {
        [0, 0, 0] => None,
        [_, waited, _] => Some(waited),
        _ => None,
    }
}

/// Signals that end a process unless it watches for them, and that another process may send: all but `SIGKILL`, faults of the program
/// itself, and those with a meaning of their own here (`SIGUSR1`, `SIGXFSZ`, `SIGPIPE`).
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

/// Blocks all [`ending_signals`] and SIGUSR1 in the calling thread, so that another one reads them and no I/O call is interrupted.
///
/// # Errors
/// Whatever the kernel answers; none is known for a valid call.
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

/// Keeps the calling thread on these CPUs; where none are named, on those of a NUMA node; with neither, anywhere.
///
/// # Errors
/// A sentence where there is no such CPU or node, or the kernel does not allow it.
pub fn place(cpus: &[u32], node: Option<u32>) -> io::Result<()> {
    let of_node = match node {
        Some(node) if cpus.is_empty() => cpus_of(node)?,
        _ => Vec::new(),
    };
    let wanted = if cpus.is_empty() { &of_node } else { cpus };
    if wanted.is_empty() {
        return Ok(());
    }
    let mut set = rustix::thread::CpuSet::new();
    for &cpu in wanted {
        if cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
            return Err(refused(&format!("there is no CPU {cpu}"), None));
        }
        set.set(cpu as usize);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|e| refused(&format!("CPUs {wanted:?} cannot be used"), Some(e.into())))
}

/// What the number behind it is, for `ioprio_set(2)`: a process or thread, of which 0 is the caller.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;

/// Gives the calling thread a nice value (`setpriority(2)`) and a priority of I/O (class and level as `ioprio_set(2)` takes them);
/// what is `None` stays.
///
/// # Errors
/// A sentence where the kernel does not allow it.
pub fn prefer(nice: Option<i32>, io_priority: Option<u32>) -> io::Result<()> {
    if let Some(nice) = nice {
        rustix::process::setpriority_process(None, nice)
            .map_err(|e| refused(&format!("nice value {nice} cannot be had"), Some(e.into())))?;
    }
    let Some(priority) = io_priority else { return Ok(()) };
    // SAFETY: the call takes three numbers and changes nothing but the priority of this thread (0).
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, priority) };
    if answer == 0 {
        return Ok(());
    }
    Err(refused("the priority of I/O cannot be had", Some(io::Error::last_os_error())))
}

/// CPUs of a NUMA node, from sysfs.
///
/// # Errors
/// That there is no such node, and which there are.
pub fn cpus_of(node: u32) -> io::Result<Vec<u32>> {
    let file = |name: &str| std::fs::read_to_string(format!("/sys/devices/system/node/{name}"));
    let list = file(&format!("node{node}/cpulist")).map_err(|e| {
        let there = file("online").unwrap_or_else(|_| "none".into());
        refused(&format!("there is no NUMA node {node}, but {}", there.trim()), Some(e))
    })?;
    let mut cpus = Vec::new();
    for part in list.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number =
            |s: &str| s.parse::<u32>().map_err(|_| refused(&format!("NUMA node {node} lists {part}"), None));
        cpus.extend(number(first)?..=number(last)?);
    }
    Ok(cpus)
}

fn refused(what: &str, why: Option<io::Error>) -> io::Error {
    let kind = why.as_ref().map_or(io::ErrorKind::InvalidInput, io::Error::kind);
    let why = why.map(|e| format!(" ({e})")).unwrap_or_default();
    io::Error::new(kind, format!("{what} by this process{why}; type others, or leave them out"))
}

/// Gives the calling thread a file table of its own, a copy of the one it shared (`unshare(CLONE_FILES)`). The kernel then
/// looks descriptors up without counting references, 80 ns of a cached pread on the reference machine. What is opened or closed
/// afterwards, here or in other threads, is so in one table only; the copy goes with the thread.
///
/// # Errors
/// What the kernel answers; a filter of system calls may refuse it, and then nothing has changed.
pub fn own_file_table() -> io::Result<()> {
    // SAFETY: the call takes a number only. Descriptors stay valid under their numbers, in a table that ends with this
    // thread; owners in other threads keep theirs.
    if unsafe { libc::unshare(libc::CLONE_FILES) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets timers of the calling thread ring as soon as they are due instead of up to 50 us later (`PR_SET_TIMERSLACK`).
///
/// # Errors
/// What the kernel answers; none is known for a valid call.
pub fn precise_timers() -> io::Result<()> {
    // SAFETY: the call takes numbers only, and changes nothing but a property of this thread.
    if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[test]
fn a_thread_stays_where_it_was_put_and_a_missing_cpu_is_named() {
    std::thread::spawn(|| {
        place(&[0], Some(0)).unwrap_or_else(|e| panic!("{e}"));
        let set = rustix::thread::sched_getaffinity(None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((set.count(), set.is_set(0)), (1, true));
        for (cpus, node) in [(&[1000_u32][..], None), (&[4_000_000_000][..], None), (&[][..], Some(999))] {
            let why = place(cpus, node)
                .err()
                .unwrap_or_else(|| panic!("{cpus:?} {node:?} was accepted"))
                .to_string();
            assert!(why.contains("type others"), "{why}");
        }
        place(&[], None).unwrap_or_else(|e| panic!("{e}"));
        precise_timers().unwrap_or_else(|e| panic!("{e}"));
    })
    .join()
    .unwrap_or_else(|_| panic!("the thread panicked"));
}

#[test]
fn work_shows_in_the_usage() {
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
fn waiting_for_a_cpu_is_counted_where_threads_share_one() {
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
