//! Counts the system calls of a command for `fathom time`: its syncs with their latencies, the flags with which it opens files, and its
//! pipes. Also counts the reads that the kernel makes to start programs, block requests, and how many requests are sequential.
//!
//! 1. Six small programs are assembled here and loaded with `bpf(2)`. They need no compiler, and the kernel verifies them.
//! 2. The thread that starts the command becomes the parent of all followed threads. A thread that a followed thread starts is followed
//!    too (`sched_process_fork`), until it ends (`sched_process_exit`). A thread is identified by the address of its `task_struct`.
//! 3. `sys_enter` looks up the number of the call in a table, so other calls cost a few instructions. `sys_exit` runs to its end only
//!    while a followed thread is in a sync or an `execve`.
//! 4. The kernel reads the headers of a program in `execve`, and counts these reads as the task's. Their number is the growth of the task's
//!    counters in the call.
//! 5. `block_rq_issue` counts the requests of the given disks. The offsets in the kernel's structures are in `/sys/kernel/btf/vmlinux`.
//! 6. All counts are in one array of the kernel, which is read once at the end. Nothing is sampled, and no buffer can overflow.
//!
//! Kernel: `Documentation/bpf/` and `include/uapi/linux/bpf.h`; Linux 5.10 or newer, 5.15 for requests.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// Counts of a command and its descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of processes and threads that the command started, including the command itself.
    pub started: u64,
    /// How often the command made each call that makes data stable, by the name of the call. Has only calls that were made.
    pub syncs: Vec<(&'static str, u64)>,
    /// Latencies of completed syncs: for each bucket its middle in ns and its count. A bucket is at most 1/128 of its value wide.
    pub sync_latencies: Vec<(u64, u64)>,
    /// Exact sum of the sync latencies in ns.
    pub sync_total_ns: u64,
    /// Time in ns in which at least one thread was in a sync, or less: if a long sync contains later ones, its time before
    /// these is left out.
    pub sync_covered_ns: u64,
    /// Number of opens with `O_DIRECT`, including failed ones.
    pub direct_opens: u64,
    /// Number of opens with `O_SYNC` or `O_DSYNC`, including failed ones.
    pub sync_opens: u64,
    /// Number of io_uring rings and contexts of asynchronous I/O.
    pub async_contexts: u64,
    /// Number of pipes and sockets.
    pub pipes: u64,
    /// Requests of all processes to the disks, first reads, then writes. For each: the number of requests, and how many of them began
    /// where one of the last 16 requests of the same direction ended.
    pub requests: [[u64; 2]; 2],
    /// Bytes and number of the reads that the kernel made to start programs. `/proc/PID/io` counts
    /// them as read calls. `None` if the number is 0: each start of a program has reads, so the
    /// layout of a task was unknown.
    pub exec_reads: Option<[u64; 2]>,
}

/// Index of the counter for the first entry of [`SYNCS`]; the counters for the other entries follow. In the table of system calls, the
/// same numbers mark these calls.
const FIRST_SYNC: u8 = 1;
/// Index of the counter of new contexts of asynchronous I/O, and mark of their calls in the table of system calls.
const ASYNC: u8 = 10;
/// Index of the counter of new pipes and sockets, and mark of their calls in the table of system calls.
const PIPES: u8 = 11;
/// Index of the counter of synchronous `pwritev2` calls, and mark of `pwritev2` in the table of system calls.
const PWRITEV2: u8 = FIRST_SYNC + 5;
/// Index of the counter of synchronous `msync` calls, and mark of `msync` in the table of system calls.
const MSYNC: u8 = FIRST_SYNC + 6;
/// Mark of `open` in the table of system calls. The flags of each call decide which counters it increments.
const OPEN: u8 = 12;
/// Mark of `openat` in the table of system calls. The flags of each call decide which counters it increments.
const OPENAT: u8 = 13;
/// Mark of `openat2` in the table of system calls. The flags of each call decide which counters it increments.
const OPENAT2: u8 = 14;
/// Mark, in the table of system calls, of the number that `exit_group` has in 32-bit programs. Every 32-bit program makes this call at its
/// end. Hardly any 64-bit program makes a call with this number.
const END_32: u8 = 15;
/// Mark of `execve` and `execveat` in the table of system calls.
const EXEC: u8 = 16;
/// Index of the counter of started threads.
const STARTED: u8 = 20;
const DIRECT_OPENS: u8 = 21;
const SYNC_OPENS: u8 = 22;
/// Index of the counter of threads that were not followed because there were too many at once. If it is not 0, the counts are incomplete.
const UNFOLLOWED: u8 = 23;
/// Index of the counter of calls of 32-bit programs. If it is not 0, the counts are incomplete.
const CALLS_32: u8 = 24;
/// Index of the counter of opens whose flags could not be read. If it is not 0, the counts are incomplete.
const UNREAD_OPENS: u8 = 25;
/// Index of the first of four counters of requests: reads, writes, sequential reads, sequential writes.
const REQUESTS: u8 = 26;
/// Index of the first of two counters: bytes and number of the kernel's reads in `execve`.
const EXEC_READS: u8 = 30;

const SYNCS: [(libc::c_long, &str); 7] = [
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_sync_file_range, "sync_file_range"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_sync, "sync"),
    (libc::SYS_pwritev2, "pwritev2"),
    (libc::SYS_msync, "msync"),
];

const CALLS: &[(libc::c_long, u8)] = &[
    (libc::SYS_openat, OPENAT),
    (libc::SYS_openat2, OPENAT2),
    (libc::SYS_io_uring_setup, ASYNC),
    (libc::SYS_io_setup, ASYNC),
    (libc::SYS_pipe2, PIPES),
    (libc::SYS_socketpair, PIPES),
    (libc::SYS_socket, PIPES),
    (libc::SYS_execve, EXEC),
    (libc::SYS_execveat, EXEC),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, OPEN),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_pipe, PIPES),
    (EXIT_32, END_32),
];

/// Layout of `struct pt_regs`: offsets of the second, third and sixth argument, and of the register that shows a 32-bit program, then that
/// register's mask and value. [`EXIT_32`] is the number of `exit_group` in the 32-bit interface.
#[cfg(target_arch = "x86_64")]
const REGISTERS: [i32; 6] = [104, 96, 64, 136, 0xffff, 0x23];
#[cfg(target_arch = "x86_64")]
const EXIT_32: libc::c_long = 252;
#[cfg(target_arch = "aarch64")]
const REGISTERS: [i32; 6] = [8, 16, 40, 264, 0x10, 0x10];
#[cfg(target_arch = "aarch64")]
const EXIT_32: libc::c_long = 248;

/// Offset in the array's value, in bytes, of the address of the parent's `task_struct`.
const PARENT: i32 = 0;
/// Offset of the number of threads that are in a sync or an `execve`.
const IN_SYNC: i32 = 8;
/// Offset of the counters.
const COUNTERS: i32 = 16;
/// Offset of the ends of the last requests: for each direction [`MAX_ENDS`] ends and a cursor.
const ENDS: i32 = COUNTERS + 8 * 32;
const MAX_ENDS: i32 = 16;
const END_BYTES: i32 = 8 * (MAX_ENDS + 1);
/// Offset of the sum of the latencies of syncs.
const TOTAL_NS: i32 = ENDS + 2 * END_BYTES;
/// Offset of the time covered by syncs, each moment counted once.
const COVERED_NS: i32 = TOTAL_NS + 8;
/// Offset of the time at which the last sync ended.
const LAST_SYNC_END: i32 = COVERED_NS + 8;
/// Offset of the buckets of latencies.
const BUCKETS: i32 = LAST_SYNC_END + 8;
/// Offset of the table of system calls: one byte for each call number, 0 for calls that are ignored.
const TABLE: i32 = BUCKETS + 8 * MAX_BUCKETS;
/// Size of the array's value.
const STATE_BYTES: i32 = TABLE + MAX_NUMBER;
/// System calls with this number or a higher one are not counted.
const MAX_NUMBER: i32 = 512;
/// log2 of the number of buckets per power of two.
const GROUPING_POWER: i32 = 7;
/// log2 of the longest latency in ns that has its own bucket: 73 minutes.
const MAX_LATENCY_POWER: i32 = 42;
const MAX_BUCKETS: i32 = (MAX_LATENCY_POWER - GROUPING_POWER + 1) << GROUPING_POWER;
/// Maximum number of threads of the command at one moment.
const MAX_THREADS: u64 = 16_384;

/// Offset in a thread's value of the time in ns at which its current sync began. The time is
/// [`IN_EXEC`] during an `execve`, and 0 if the thread is in neither call.
const BEGAN: i32 = 0;
/// Offset of the thread's counters of read bytes and of read calls when its `execve` began.
const READS: i32 = 8;
/// Size of a thread's value.
const THREAD_BYTES: i32 = READS + 2 * 8;
const IN_EXEC: i32 = -1;

/// Commands, types and flags of `bpf(2)`.
const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const PROG_TEST_RUN: libc::c_long = 10;
const RAW_TRACEPOINT_OPEN: libc::c_long = 17;
const HASH_MAP: u64 = 1;
const ARRAY_MAP: u64 = 2;
const RAW_TRACEPOINT: u64 = 17;
/// The kernel lets only programs with a compatible licence read the time and kernel memory.
const LICENCE: &[u8] = b"Dual MIT/GPL\0";

/// Combines two 32-bit fields of `union bpf_attr`.
const fn fields(first: u64, second: u64) -> u64 {
    first | second << 32
}

/// Calls `bpf(2)`. Some commands write results into the attributes, such as the result of a test run.
///
/// # Safety
/// Each address in `attributes` must be of memory that lives during the call and has as many bytes as the command reads or writes there.
unsafe fn bpf(command: libc::c_long, attributes: &mut [u64]) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes the attributes only within the given length, and they are
    // borrowed mutably. The caller is responsible for the addresses in them.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of_val(attributes)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// Calls `bpf(2)` with a command that makes a descriptor.
///
/// # Safety
/// As for [`bpf`]. The command must make a descriptor.
unsafe fn bpf_file(command: libc::c_long, attributes: &mut [u64]) -> io::Result<File> {
    // SAFETY: the caller is responsible for the addresses.
    let descriptor = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

fn number(file: &File) -> u64 {
    file.as_raw_fd().cast_unsigned().into()
}

fn create_map(kind: u64, key_bytes: u64, value_bytes: u64, entries: u64) -> Result<File, String> {
    // SAFETY: the attributes contain no address, and the command makes a descriptor.
    unsafe { bpf_file(MAP_CREATE, &mut [fields(kind, key_bytes), fields(value_bytes, entries)]) }
        .map_err(|e| refused(&e))
}

/// Reads or writes the value of the array, depending on the command.
fn access_state(command: libc::c_long, array: &File, value: &mut [u8]) -> io::Result<i32> {
    assert_eq!(value.len(), STATE_BYTES as usize);
    let key = 0_u32;
    let value_at = value.as_mut_ptr().expose_provenance() as u64;
    let mut attributes = [number(array), (&raw const key).expose_provenance() as u64, value_at, 0];
    // SAFETY: the kernel reads the 4 bytes of the key, and reads or fills the `STATE_BYTES` bytes of the value, whose length was compared
    // above. The array was created with these sizes.
    unsafe { bpf(command, &mut attributes) }
}

/// Runs a program once in this thread, and returns its result.
fn test_run(program: &File) -> io::Result<u32> {
    let mut attributes = [number(program), 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the attributes contain no address: the program reads no context, and gets none.
    unsafe { bpf(PROG_TEST_RUN, &mut attributes) }?;
    // The result is the field after the descriptor.
    Ok((attributes[0] >> 32) as u32)
}

/// Counting in progress. It ends when this value is dropped.
#[derive(Debug)]
pub struct Counting {
    state: File,
    /// The programs run as long as these descriptors are open.
    attached: Vec<File>,
}

impl Counting {
    /// Starts counting the calls of the processes that this thread starts. If `layout` is known, also counts the requests of all
    /// processes to these disks (major and minor number), and the kernel's reads in `execve`.
    ///
    /// # Errors
    /// A message if this user is not allowed to count, or this kernel cannot.
    pub fn start(disks: &[(u32, u32)], layout: Option<&KernelLayout>) -> Result<Self, String> {
        let state = create_map(ARRAY_MAP, 4, STATE_BYTES as u64, 1)?;
        let threads = create_map(HASH_MAP, 8, THREAD_BYTES as u64, MAX_THREADS)?;
        let maps = Maps { state: state.as_raw_fd(), threads: threads.as_raw_fd() };
        let mut initial = vec![0_u8; STATE_BYTES as usize];
        // Fill the ends with a sector at which no request begins.
        initial[ENDS as usize..TOTAL_NS as usize].fill(0xff);
        for (at, (number, _)) in SYNCS.iter().enumerate() {
            initial[TABLE as usize + *number as usize] = FIRST_SYNC + at as u8;
        }
        for (number, call) in CALLS {
            initial[TABLE as usize + *number as usize] = *call;
        }
        access_state(MAP_UPDATE, &state, &mut initial).map_err(|e| refused(&e))?;
        let be_parent = load(&maps.be_parent())?;
        test_run(&be_parent)
            .map_err(|e| format!("this kernel cannot test-run a BPF program (Linux 5.10 can): {e}"))?;
        let mut programs = vec![
            (c"sched_process_exit", maps.end_of_thread()),
            (c"sched_process_fork", maps.start_of_thread()),
            (c"sys_exit", maps.end_of_call(layout)),
            (c"sys_enter", maps.start_of_call(layout)),
        ];
        if let Some(layout) = layout.filter(|_| !disks.is_empty()) {
            programs.push((c"block_rq_issue", maps.request(layout, disks)));
        }
        let mut attached = Vec::new();
        for (point, code) in programs {
            let program = load(&code)?;
            let mut attributes = [point.as_ptr().expose_provenance() as u64, number(&program)];
            // SAFETY: the name is a constant that ends with a zero byte, and the command makes a descriptor.
            let attach = unsafe { bpf_file(RAW_TRACEPOINT_OPEN, &mut attributes) };
            attached
                .push(attach.map_err(|e| {
                    format!("the tracepoint {} cannot be used: {e}", point.to_string_lossy())
                })?);
        }
        Ok(Self { state, attached })
    }

    /// Ends the count and returns it.
    ///
    /// # Errors
    /// A message if the count is incomplete.
    pub fn end(self) -> Result<Counts, String> {
        drop(self.attached);
        let mut state = vec![0_u8; STATE_BYTES as usize];
        access_state(MAP_LOOKUP, &self.state, &mut state)
            .map_err(|e| format!("the BPF map cannot be read: {e}"))?;
        counts(state.as_chunks::<8>().0)
    }
}

/// Converts the words of the array to counts.
fn counts(state: &[[u8; 8]]) -> Result<Counts, String> {
    let word = |offset: i32| state.get(offset as usize / 8).map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    let counter = |which: u8| word(COUNTERS + 8 * i32::from(which));
    let gaps = [
        (UNFOLLOWED, format!("the command had more than {MAX_THREADS} threads at once")),
        (CALLS_32, "the command ran a 32-bit program, whose system calls are not counted".to_owned()),
        (UNREAD_OPENS, "the flags of a call of openat2 could not be read".to_owned()),
    ];
    if let Some((_, why)) = gaps.into_iter().find(|(gap, _)| counter(*gap) > 0) {
        return Err(why);
    }
    let syncs = SYNCS.iter().enumerate().map(|(at, (_, name))| (*name, counter(FIRST_SYNC + at as u8)));
    let latencies = (0..MAX_BUCKETS).map(|bucket| {
        let shift = ((bucket >> GROUPING_POWER) - 1).max(0);
        let first = ((bucket - (shift << GROUPING_POWER)) as u64) << shift;
        (first + ((1_u64 << shift) - 1) / 2, word(BUCKETS + 8 * bucket))
    });
    Ok(Counts {
        started: counter(STARTED),
        syncs: syncs.filter(|(_, count)| *count > 0).collect(),
        sync_latencies: latencies.filter(|(_, count)| *count > 0).collect(),
        sync_total_ns: word(TOTAL_NS),
        sync_covered_ns: word(COVERED_NS),
        direct_opens: counter(DIRECT_OPENS),
        sync_opens: counter(SYNC_OPENS),
        async_contexts: counter(ASYNC),
        pipes: counter(PIPES),
        requests: [0, 1].map(|writes| [counter(REQUESTS + writes), counter(REQUESTS + 2 + writes)]),
        exec_reads: Some([counter(EXEC_READS), counter(EXEC_READS + 1)]).filter(|[_, calls]| *calls > 0),
    })
}

/// Maximum number of attempts to load a program: twice as many as libbpf makes.
const LOAD_ATTEMPTS: u32 = 10;

/// Loads a program. If the kernel's verifier rejects the program, returns the verifier's reason.
fn load(code: &[u64]) -> Result<File, String> {
    let name = u64::from_le_bytes(*b"fathom\0\0");
    let code_at = code.as_ptr().expose_provenance() as u64;
    let licence_at = LICENCE.as_ptr().expose_provenance() as u64;
    let mut attributes = [fields(RAW_TRACEPOINT, code.len() as u64), code_at, licence_at, 0, 0, 0, name, 0];
    let mut attempts = 1;
    let error = loop {
        // SAFETY: the code has as many 8-byte instructions as given, and the licence ends with a zero byte; the kernel reads both. The
        // command makes a descriptor.
        match unsafe { bpf_file(PROG_LOAD, &mut attributes) } {
            Ok(program) => return Ok(program),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) => {
                return Err(refused(&e));
            }
            // The verifier stops with EAGAIN if a signal is pending for this thread.
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) && attempts < LOAD_ATTEMPTS => attempts += 1,
            Err(e) => break e,
        }
    };
    let mut log = vec![0_u8; 1 << 16];
    attributes[3] = fields(1, log.len() as u64);
    attributes[4] = log.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: as above, and the kernel writes to the log no more than its length.
    let _ = unsafe { bpf_file(PROG_LOAD, &mut attributes) };
    let log = String::from_utf8_lossy(&log);
    let why = log.trim_end_matches('\0').lines().rfind(|line| !line.starts_with("processed "));
    Err(format!("the kernel rejects the BPF program: {error} ({})", why.unwrap_or("no reason given")))
}

fn refused(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            format!("bpf(2) is not permitted ({error}); {}", crate::error_advice::own_advice())
        }
        Some(libc::ENOSYS) => format!("the kernel or a seccomp filter does not allow bpf(2) ({error})"),
        _ => format!("bpf(2): {error}"),
    }
}

/// A register of the BPF machine. Register 0 has the result of a call, 1 to 5 its arguments. Calls preserve 6 to 9. Register 10 is the
/// frame.
type Register = u64;
const FRAME: Register = 10;
/// Offsets in the frame of a key or value that a call reads or writes.
const KEY: i32 = -8;
const VALUE: i32 = KEY - THREAD_BYTES;

/// Codes of instructions.
const LOAD_64: u64 = 0x79;
const LOAD_8: u64 = 0x71;
const STORE: u64 = 0x7b;
const STORE_CONSTANT: u64 = 0x7a;
const ADD_ATOMICALLY: u64 = 0xdb;
const LOAD_ADDRESS: u64 = 0x18;
const CALL: u64 = 0x85;
const EXIT: u64 = 0x95;
const JUMP: u64 = 0x05;
const COPY: u64 = 0xbf;
const ADD: u64 = 0x0f;
const SUBTRACT: u64 = 0x1f;
const SHIFT_RIGHT_BY: u64 = 0x7f;
/// Codes of instructions with a constant.
const SET: u64 = 0xb7;
const ADD_CONSTANT: u64 = 0x07;
const MULTIPLY: u64 = 0x27;
const AND: u64 = 0x57;
const OR: u64 = 0x47;
const SHIFT_LEFT: u64 = 0x67;
const SHIFT_RIGHT: u64 = 0x77;
/// Conditions of jumps, which compare with a constant or a register.
const EQUAL: u64 = 0x15;
const NOT_EQUAL: u64 = 0x55;
const LESS: u64 = 0xa5;
const AT_MOST: u64 = 0xb5;
const HAS_BITS: u64 = 0x45;
const EQUAL_REGISTERS: u64 = 0x1d;
const NOT_EQUAL_REGISTERS: u64 = 0x5d;
const AT_LEAST_REGISTERS: u64 = 0x3d;

/// Numbers of the kernel's helper functions.
const LOOKUP: i32 = 1;
const UPDATE: i32 = 2;
const DELETE: i32 = 3;
const NOW_NS: i32 = 5;
const CURRENT_TASK: i32 = 35;
const READ_USER: i32 = 112;
const READ_KERNEL: i32 = 113;

/// File descriptors of the two BPF maps: the array with the state, and the followed threads.
struct Maps {
    state: i32,
    threads: i32,
}

/// A program being assembled. Each method appends instructions, and the comment of the method says
/// what these do when the program runs.
struct Code<'m> {
    maps: &'m Maps,
    code: Vec<u64>,
}

impl Code<'_> {
    fn push(&mut self, operation: u64, to: Register, from: Register, offset: i32, constant: i32) {
        let offset = u64::from(offset as u16);
        self.code.push(operation | to << 8 | from << 12 | offset << 16 | u64::from(constant as u32) << 32);
    }

    /// Appends an instruction that operates on a register and a constant.
    fn constant(&mut self, operation: u64, to: Register, constant: i32) {
        self.push(operation, to, 0, 0, constant);
    }

    /// Appends an instruction that operates on two registers.
    fn registers(&mut self, operation: u64, to: Register, from: Register) {
        self.push(operation, to, from, 0, 0);
    }

    fn load(&mut self, operation: u64, to: Register, from: Register, offset: i32) {
        self.push(operation, to, from, offset, 0);
    }

    fn store(&mut self, to: Register, offset: i32, from: Register) {
        self.push(STORE, to, from, offset, 0);
    }

    /// Stores a 64-bit zero.
    fn store_zero(&mut self, to: Register, offset: i32) {
        self.push(STORE_CONSTANT, to, 0, offset, 0);
    }

    /// Ends the program.
    fn exit(&mut self) {
        self.constant(SET, 0, 0);
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// Ends the program unless the condition holds.
    fn stop_unless(&mut self, condition: u64, register: Register, constant: i32) {
        self.push(condition, register, 0, 2, constant);
        self.exit();
    }

    /// Jumps over the following instructions up to [`Self::land`] if the condition holds. Returns the position of the jump.
    fn skip_if(&mut self, condition: u64, register: Register, other: Register, constant: i32) -> usize {
        self.push(condition, register, other, 0, constant);
        self.code.len() - 1
    }

    fn land(&mut self, jump: usize) {
        let offset = (self.code.len() - jump - 1) as u64;
        self.code[jump] |= offset << 16;
    }

    fn call(&mut self, function: i32) {
        self.constant(CALL, 0, function);
    }

    /// Puts the address of a field of the array into a register.
    fn state(&mut self, to: Register, offset: i32) {
        const PLACE_IN_MAP: Register = 2;
        self.push(LOAD_ADDRESS, to, PLACE_IN_MAP, 0, self.maps.state);
        self.push(0, 0, 0, 0, offset);
    }

    /// Calls a helper function on the map of threads. The key is in the frame.
    fn call_on_threads(&mut self, function: i32) {
        const MAP: Register = 1;
        self.push(LOAD_ADDRESS, 1, MAP, 0, self.maps.threads);
        self.push(0, 0, 0, 0, 0);
        self.registers(COPY, 2, FRAME);
        self.constant(ADD_CONSTANT, 2, KEY);
        self.call(function);
    }

    /// Puts the address of the current `task_struct` into register 6, and the address of the thread's value into register 0. Ends the
    /// program if the thread is not followed.
    fn followed_thread(&mut self) {
        self.call(CURRENT_TASK);
        self.registers(COPY, 6, 0);
        self.store(FRAME, KEY, 0);
        self.call_on_threads(LOOKUP);
        self.stop_unless(NOT_EQUAL, 0, 0);
    }

    /// Adds one to a counter.
    fn count(&mut self, which: u8) {
        self.state(1, COUNTERS + 8 * i32::from(which));
        self.add_one();
    }

    /// Adds one to the 64-bit number at the address in register 1.
    fn add_one(&mut self) {
        self.constant(SET, 2, 1);
        self.push(ADD_ATOMICALLY, 1, 2, 0, 0);
    }

    /// Adds eight times `index` to an address. Overwrites the register `index`.
    fn add_index(&mut self, address: Register, index: Register) {
        self.constant(SHIFT_LEFT, index, 3);
        self.registers(ADD, address, index);
    }

    fn keep_32_bits(&mut self, register: Register) {
        self.constant(SHIFT_LEFT, register, 32);
        self.constant(SHIFT_RIGHT, register, 32);
    }

    /// Reads 8 bytes of memory at an offset from the address in a register, to `KEY` in the frame. Register 0 is 0 on success.
    fn read(&mut self, function: i32, from: Register, offset: i32) {
        self.registers(COPY, 3, from);
        self.constant(ADD_CONSTANT, 3, offset);
        self.registers(COPY, 1, FRAME);
        self.constant(ADD_CONSTANT, 1, KEY);
        self.constant(SET, 2, 8);
        self.call(function);
    }

    /// Reads 8 bytes of the kernel's memory into a register.
    fn read_kernel(&mut self, to: Register, from: Register, offset: i32) {
        self.read(READ_KERNEL, from, offset);
        self.load(LOAD_64, to, FRAME, KEY);
    }
}

impl Maps {
    fn begin(&self) -> Code<'_> {
        Code { maps: self, code: Vec::new() }
    }

    fn end(mut code: Code<'_>) -> Vec<u64> {
        code.exit();
        code.code
    }

    /// Program that stores the current thread as the parent.
    fn be_parent(&self) -> Vec<u64> {
        let mut code = self.begin();
        code.call(CURRENT_TASK);
        code.state(1, PARENT);
        code.store(1, 0, 0);
        Self::end(code)
    }

    /// Program for the start of a thread. Its arguments are the thread that starts another one, and the new thread.
    fn start_of_thread(&self) -> Vec<u64> {
        let mut code = self.begin();
        code.registers(COPY, 6, 1);
        code.load(LOAD_64, 7, 6, 0);
        code.store(FRAME, KEY, 7);
        code.state(1, PARENT);
        code.load(LOAD_64, 2, 1, 0);
        let is_parent = code.skip_if(EQUAL_REGISTERS, 7, 2, 0);
        code.call_on_threads(LOOKUP);
        code.stop_unless(NOT_EQUAL, 0, 0);
        code.land(is_parent);
        code.count(STARTED);
        code.load(LOAD_64, 7, 6, 8);
        code.store(FRAME, KEY, 7);
        (0..THREAD_BYTES / 8).for_each(|word| code.store_zero(FRAME, VALUE + 8 * word));
        code.registers(COPY, 3, FRAME);
        code.constant(ADD_CONSTANT, 3, VALUE);
        code.constant(SET, 4, 0);
        code.call_on_threads(UPDATE);
        code.stop_unless(NOT_EQUAL, 0, 0);
        code.count(UNFOLLOWED);
        Self::end(code)
    }

    /// Program for the end of a thread. Its argument is the thread.
    fn end_of_thread(&self) -> Vec<u64> {
        let mut code = self.begin();
        code.load(LOAD_64, 6, 1, 0);
        code.store(FRAME, KEY, 6);
        code.call_on_threads(DELETE);
        Self::end(code)
    }

    /// Program for the start of a system call. Its arguments are the registers of the thread and the number of the call.
    fn start_of_call(&self, layout: Option<&KernelLayout>) -> Vec<u64> {
        let [second, third, sixth, mode, mode_bits, mode_32] = REGISTERS;
        let mut code = self.begin();
        code.load(LOAD_64, 7, 1, 8);
        code.stop_unless(LESS, 7, MAX_NUMBER);
        code.registers(COPY, 6, 1);
        code.state(1, TABLE);
        code.registers(ADD, 1, 7);
        code.load(LOAD_8, 8, 1, 0);
        code.stop_unless(NOT_EQUAL, 8, 0);
        code.load(LOAD_64, 7, 6, 0);
        code.followed_thread();
        code.registers(COPY, 9, 0);
        // 32-bit programs use other call numbers.
        code.read_kernel(1, 7, mode);
        code.constant(AND, 1, mode_bits);
        let is_64 = code.skip_if(NOT_EQUAL, 1, 0, mode_32);
        code.count(CALLS_32);
        code.exit();
        code.land(is_64);
        code.stop_unless(NOT_EQUAL, 8, i32::from(END_32));
        if let Some(layout) = layout {
            let is_other = code.skip_if(NOT_EQUAL, 8, 0, i32::from(EXEC));
            for (at, counter) in (0..).zip(layout.task_reads()) {
                code.read_kernel(1, 6, counter);
                code.store(9, READS + 8 * at, 1);
            }
            code.push(STORE_CONSTANT, 9, 0, BEGAN, IN_EXEC);
            code.state(1, IN_SYNC);
            code.add_one();
            code.exit();
            code.land(is_other);
        }
        code.stop_unless(NOT_EQUAL, 8, i32::from(EXEC));
        // These calls are syncs only with certain flags.
        for (call, argument, flags) in
            [(PWRITEV2, sixth, libc::RWF_DSYNC | libc::RWF_SYNC), (MSYNC, third, libc::MS_SYNC)]
        {
            let is_other = code.skip_if(NOT_EQUAL, 8, 0, i32::from(call));
            code.read_kernel(1, 7, argument);
            code.constant(AND, 1, flags);
            code.stop_unless(NOT_EQUAL, 1, 0);
            code.land(is_other);
        }
        // A sync, or a call that is only counted.
        let is_open = [OPEN, OPENAT, OPENAT2].map(|call| code.skip_if(EQUAL, 8, 0, i32::from(call)));
        code.state(1, COUNTERS);
        code.registers(COPY, 2, 8);
        code.add_index(1, 2);
        code.add_one();
        code.stop_unless(LESS, 8, i32::from(ASYNC));
        code.state(1, IN_SYNC);
        code.add_one();
        code.call(NOW_NS);
        code.store(9, BEGAN, 0);
        code.exit();
        // Register 7 becomes the flags of the open.
        let [is_open, is_openat, is_openat2] = is_open;
        code.land(is_openat2);
        code.read_kernel(3, 7, third);
        code.registers(COPY, 7, 3);
        // The flags are the first member of `struct open_how`.
        code.read(READ_USER, 7, 0);
        code.load(LOAD_64, 7, FRAME, KEY);
        let is_read = code.skip_if(EQUAL, 0, 0, 0);
        code.count(UNREAD_OPENS);
        code.exit();
        code.land(is_openat);
        code.read_kernel(7, 7, third);
        let is_known = code.skip_if(JUMP, 0, 0, 0);
        code.land(is_open);
        code.read_kernel(7, 7, second);
        code.land(is_known);
        code.land(is_read);
        for (bits, counter) in [(libc::O_DIRECT, DIRECT_OPENS), (libc::O_SYNC | libc::O_DSYNC, SYNC_OPENS)] {
            let has_bits = code.skip_if(HAS_BITS, 7, 0, bits);
            let has_none = code.skip_if(JUMP, 0, 0, 0);
            code.land(has_bits);
            code.count(counter);
            code.land(has_none);
        }
        Self::end(code)
    }

    /// Program for the end of a system call. After a sync it counts the latency in its bucket.
    /// After an `execve` it adds the bytes and the number of the reads that the kernel made in the
    /// call.
    fn end_of_call(&self, layout: Option<&KernelLayout>) -> Vec<u64> {
        let mut code = self.begin();
        code.state(1, IN_SYNC);
        code.load(LOAD_64, 2, 1, 0);
        code.stop_unless(NOT_EQUAL, 2, 0);
        code.followed_thread();
        code.load(LOAD_64, 7, 0, BEGAN);
        code.stop_unless(NOT_EQUAL, 7, 0);
        code.store_zero(0, BEGAN);
        code.registers(COPY, 9, 0);
        code.state(1, IN_SYNC);
        code.constant(SET, 2, -1);
        code.push(ADD_ATOMICALLY, 1, 2, 0, 0);
        if let Some(layout) = layout {
            let is_sync = code.skip_if(NOT_EQUAL, 7, 0, IN_EXEC);
            for (at, counter) in (0..).zip(layout.task_reads()) {
                code.read_kernel(8, 6, counter);
                code.load(LOAD_64, 2, 9, READS + 8 * at);
                code.registers(SUBTRACT, 8, 2);
                code.state(1, COUNTERS + 8 * (i32::from(EXEC_READS) + at));
                code.push(ADD_ATOMICALLY, 1, 8, 0, 0);
            }
            code.exit();
            code.land(is_sync);
        }
        code.call(NOW_NS);
        // The sync covers the time since its beginning, or since the end of the last sync if that is later. Register 2
        // becomes the later one.
        code.state(1, LAST_SYNC_END);
        code.load(LOAD_64, 2, 1, 0);
        code.store(1, 0, 0);
        let is_later = code.skip_if(AT_LEAST_REGISTERS, 2, 7, 0);
        code.registers(COPY, 2, 7);
        code.land(is_later);
        // Another CPU may have stored a later end in between.
        let is_covered = code.skip_if(AT_LEAST_REGISTERS, 2, 0, 0);
        code.registers(COPY, 3, 0);
        code.registers(SUBTRACT, 3, 2);
        code.state(1, COVERED_NS);
        code.push(ADD_ATOMICALLY, 1, 3, 0, 0);
        code.land(is_covered);
        code.registers(SUBTRACT, 0, 7);
        code.state(1, TOTAL_NS);
        code.push(ADD_ATOMICALLY, 1, 0, 0, 0);
        // Limit the latency to the last bucket.
        code.registers(COPY, 1, 0);
        code.constant(SHIFT_RIGHT, 1, MAX_LATENCY_POWER);
        let fits = code.skip_if(EQUAL, 1, 0, 0);
        code.constant(SET, 0, -1);
        code.constant(SHIFT_RIGHT, 0, 64 - MAX_LATENCY_POWER);
        code.land(fits);
        // Register 2 becomes the shift that leaves the leading bits of the latency.
        code.registers(COPY, 1, 0);
        code.constant(OR, 1, 1 << GROUPING_POWER);
        code.constant(SET, 2, 0);
        for step in [32, 16, 8, 4, 2, 1] {
            code.registers(COPY, 3, 1);
            code.constant(SHIFT_RIGHT, 3, GROUPING_POWER + step);
            let is_below = code.skip_if(EQUAL, 3, 0, 0);
            code.constant(SHIFT_RIGHT, 1, step);
            code.constant(ADD_CONSTANT, 2, step);
            code.land(is_below);
        }
        code.registers(SHIFT_RIGHT_BY, 0, 2);
        code.constant(SHIFT_LEFT, 2, GROUPING_POWER);
        code.registers(ADD, 2, 0);
        code.stop_unless(LESS, 2, MAX_BUCKETS);
        code.state(1, BUCKETS);
        code.add_index(1, 2);
        code.add_one();
        Self::end(code)
    }

    /// Program for a block request. Its argument is the request.
    fn request(&self, layout: &KernelLayout, disks: &[(u32, u32)]) -> Vec<u64> {
        let [flags, sector, bytes, queue, disk, major, minor, ..] = layout.0;
        let mut code = self.begin();
        code.load(LOAD_64, 6, 1, 0);
        // The lowest byte of the flags is the operation: 0 reads, 1 writes.
        code.read_kernel(7, 6, flags);
        code.constant(AND, 7, 0xff);
        code.stop_unless(AT_MOST, 7, 1);
        code.read_kernel(8, 6, queue);
        code.read_kernel(8, 8, disk);
        code.read_kernel(9, 8, minor);
        code.keep_32_bits(9);
        code.read_kernel(8, 8, major);
        code.keep_32_bits(8);
        // The kernel gives block devices major numbers below 512 and minor numbers of 20 bits.
        code.constant(SHIFT_LEFT, 8, 20);
        code.registers(ADD, 8, 9);
        let number = |(major, minor): &(u32, u32)| (major << 20 | minor).cast_signed();
        let known: Vec<usize> = disks.iter().map(|disk| code.skip_if(EQUAL, 8, 0, number(disk))).collect();
        code.exit();
        for found in known {
            code.land(found);
        }
        code.read_kernel(8, 6, sector);
        code.read_kernel(9, 6, bytes);
        code.keep_32_bits(9);
        // A flush has no data.
        code.stop_unless(NOT_EQUAL, 9, 0);
        code.constant(SHIFT_RIGHT, 9, 9);
        code.registers(ADD, 9, 8);
        code.state(1, COUNTERS + 8 * i32::from(REQUESTS));
        code.registers(COPY, 3, 7);
        code.add_index(1, 3);
        code.add_one();
        // The request is sequential if one of the last requests of its direction ended where it begins.
        code.state(4, ENDS);
        code.registers(COPY, 3, 7);
        code.constant(MULTIPLY, 3, END_BYTES);
        code.registers(ADD, 4, 3);
        let in_sequence: Vec<usize> = (0..MAX_ENDS)
            .map(|end| {
                code.load(LOAD_64, 3, 4, 8 * end);
                let other = code.skip_if(NOT_EQUAL_REGISTERS, 3, 8, 0);
                code.store(4, 8 * end, 9);
                let found = code.skip_if(JUMP, 0, 0, 0);
                code.land(other);
                found
            })
            .collect();
        code.load(LOAD_64, 3, 4, 8 * MAX_ENDS);
        code.constant(ADD_CONSTANT, 3, 1);
        code.constant(AND, 3, MAX_ENDS - 1);
        code.store(4, 8 * MAX_ENDS, 3);
        code.add_index(4, 3);
        code.store(4, 0, 9);
        code.exit();
        for found in in_sequence {
            code.land(found);
        }
        code.constant(ADD_CONSTANT, 1, 2 * 8);
        code.add_one();
        Self::end(code)
    }
}

/// Offsets in bytes, in this kernel, of the fields that the programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLayout([i32; FIELDS.len()]);

/// Structures and their fields that the programs read.
const FIELDS: [(&str, &str); 10] = [
    ("request", "cmd_flags"),
    ("request", "__sector"),
    ("request", "__data_len"),
    ("request", "q"),
    ("request_queue", "disk"),
    ("gendisk", "major"),
    ("gendisk", "first_minor"),
    ("task_struct", "ioac"),
    ("task_io_accounting", "rchar"),
    ("task_io_accounting", "syscr"),
];

/// The description of the kernel's types (kernel: `Documentation/bpf/btf.rst`).
const BTF: &str = "/sys/kernel/btf/vmlinux";

impl KernelLayout {
    /// Returns the offsets of a task's counters of read bytes and read calls.
    fn task_reads(&self) -> [i32; 2] {
        let [.., io, bytes, calls] = self.0;
        [io + bytes, io + calls]
    }

    /// Reads the layout from the kernel's description of its types (5 MB). Takes less than 1 ms
    /// from Linux 6.16 on, and 4 ms before.
    ///
    /// # Errors
    /// A message if the kernel does not describe its types, or the structures have other fields.
    pub fn read() -> Result<Self, String> {
        let cannot = |e: io::Error| format!("{BTF}: {e}");
        let file = File::open(BTF).map_err(cannot)?;
        let bytes = file.metadata().map_err(cannot)?.len() as usize;
        // SAFETY: the kernel chooses the address, so no other memory is replaced.
        let mapped =
            unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) };
        let found = match mapped {
            Ok(start) => {
                // SAFETY: the mapping has this many bytes until it is unmapped below. The kernel never changes them.
                let found = Self::find(unsafe { std::slice::from_raw_parts(start.cast(), bytes) });
                // SAFETY: the layout contains copies, so nothing refers to the mapping any more.
                let _ = unsafe { munmap(start, bytes) };
                found
            }
            // Before Linux 6.16 the file cannot be mapped.
            Err(_) => Self::find(&std::fs::read(BTF).map_err(cannot)?),
        };
        found.ok_or_else(|| format!("{BTF} does not describe block requests and tasks as Linux 5.15 does"))
    }

    fn find(btf: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(btf.get(at..at.checked_add(4)?)?.try_into().ok()?));
        let header = word(4)? as usize;
        let mut at = header + word(8)? as usize;
        let end = at + word(12)? as usize;
        let names = header + word(16)? as usize;
        let is_named = |offset: u32, name: &str| {
            let text = btf.get(names + offset as usize..).unwrap_or_default();
            text.starts_with(name.as_bytes()) && text.get(name.len()) == Some(&0)
        };
        let mut offsets = [None; FIELDS.len()];
        while at < end && offsets.contains(&None) {
            let (name, info) = (word(at)?, word(at + 4)?);
            let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            at += 12;
            let offset = |(structure, field): (&str, &str)| {
                let mut members = (0..count).map(|index| at + 12 * index);
                (kind == STRUCT && is_named(name, structure)).then(|| {
                    let member = members.find(|at| word(*at).is_some_and(|name| is_named(name, field)))?;
                    // If the flag is set, the upper byte is the width of a bit field.
                    let bits = word(member + 8)? & if info >> 31 == 1 { 0x00ff_ffff } else { u32::MAX };
                    Some((bits / 8) as i32)
                })
            };
            // Another structure of the same name may lack these fields.
            let found = FIELDS.map(offset);
            if !found.contains(&Some(None)) {
                offsets
                    .iter_mut()
                    .zip(found)
                    .for_each(|(offset, found)| *offset = found.flatten().or(*offset));
            }
            at += match kind {
                STRUCT | UNION | DATA_SECTION | ENUM_64 => 12 * count,
                ENUM | FUNCTION_TYPE => 8 * count,
                ARRAY => 12,
                INTEGER | VARIABLE | TAG => 4,
                _ => 0,
            };
        }
        let offsets: Option<Vec<i32>> = offsets.into_iter().collect();
        offsets?.try_into().ok().map(Self)
    }
}

/// Kinds of types whose descriptions are longer than the common 12 bytes.
const INTEGER: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FUNCTION_TYPE: u32 = 13;
const VARIABLE: u32 = 14;
const DATA_SECTION: u32 = 15;
const TAG: u32 = 17;
const ENUM_64: u32 = 19;

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn syncs_of_a_child_are_counted_and_those_of_this_process_are_not() {
        let layout = KernelLayout::read();
        let counting = match Counting::start(&[(1, 0)], layout.as_ref().ok()) {
            Ok(counting) => counting,
            Err(why) => {
                assert!(why.contains("bpf(2)"), "{why}");
                println!("SKIPPED: {why}");
                return;
            }
        };
        let own = File::open("/proc/self/exe").unwrap_or_else(|e| panic!("{e}"));
        let _ = own.sync_all();
        let script = "sync -d /proc/self/exe; sync -f /proc/self/exe; (sync /proc/self/exe); true | true";
        let status = Command::new("sh").args(["-c", script]).status();
        assert!(status.is_ok_and(|status| status.success()));
        let counts = counting.end().unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(counts.syncs, [("fsync", 1), ("fdatasync", 1), ("syncfs", 1)], "{counts:?}");
        let completed: u64 = counts.sync_latencies.iter().map(|(_, count)| count).sum();
        let sum_ns: u64 = counts.sync_latencies.iter().map(|(ns, count)| ns * count).sum();
        assert_eq!((completed, counts.pipes), (3, 1), "{counts:?}");
        assert!(sum_ns.abs_diff(counts.sync_total_ns) <= counts.sync_total_ns / 128 + 3, "{counts:?}");
        // One after the other.
        assert_eq!(counts.sync_covered_ns, counts.sync_total_ns);
        assert!(counts.started >= 6, "{counts:?}");
        // A program that ends without a result.
        let rejected = load(&[EXIT]).map_or_else(|why| why, |program| panic!("{program:?}"));
        assert!(rejected.contains("R0"), "{rejected}");
        // The kernel writes the result of a program into the attributes of the call.
        let program = load(&[SET | 42 << 32, EXIT]).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(test_run(&program).map_err(|e| e.to_string()), Ok(42));
    }

    #[test]
    fn a_layout_is_found_in_valid_text_and_never_panics_in_other() {
        let header =
            |types: usize, names: usize| [0x0001_eb9f, 24, 0, types as u32, types as u32, names as u32];
        let words = FIELDS.iter().flat_map(|(structure, field)| [*structure, *field]);
        let names = words.map(|word| format!("\0{word}\0")).collect::<Vec<_>>().concat();
        let name = |wanted: &str| names.find(&format!("\0{wanted}\0")).map_or(0, |at| at as u32 + 1);
        let mut types: Vec<u32> = vec![name("q"), INTEGER << 24, 4, 32];
        let mut add = |struct_name: &str, members: &[(&str, u32)]| {
            types.extend([name(struct_name), STRUCT << 24 | members.len() as u32, 64]);
            types.extend(members.iter().flat_map(|(member, bytes)| [name(member), 1, bytes * 8]));
        };
        add("request", &[("q", 0)]);
        add("request", &[("q", 0), ("cmd_flags", 8), ("__data_len", 16), ("__sector", 24)]);
        add("request_queue", &[("disk", 32)]);
        add("gendisk", &[("major", 40), ("first_minor", 44)]);
        add("task_struct", &[("ioac", 48)]);
        add("task_io_accounting", &[("rchar", 0), ("syscr", 16)]);
        let words = header(types.len() * 4, names.len()).into_iter().chain(types).flat_map(u32::to_ne_bytes);
        let btf: Vec<u8> = words.chain(names.bytes()).collect();
        assert_eq!(KernelLayout::find(&btf), Some(KernelLayout([8, 24, 16, 0, 32, 40, 44, 48, 0, 16])));
        for end in 0..btf.len() {
            let _ = KernelLayout::find(&btf[..end]);
        }
        assert_eq!(KernelLayout::find(&[0xff; 64]), None);
    }
}
