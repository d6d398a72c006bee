//! Which NUMA nodes memory comes from: `set_mempolicy(2)` for the calling thread.
//!
//! For: what a thread allocates and touches from then on. Not for: where it runs ([`crate::thread`]), nor memory that is there already.

use std::fs;
use std::io;

/// The nodes that have memory; where the kernel does not tell them apart, those that are online.
const WITH_MEMORY: [&str; 2] = ["/sys/devices/system/node/has_memory", "/sys/devices/system/node/online"];
/// Bits of a mask: the kernel's largest `MAX_NUMNODES`.
const NODES: usize = 1024;
const WORD: usize = libc::c_ulong::BITS as usize;

/// How memory is taken from nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// From the node of the CPU that touches it, whatever the process was started with.
    Local,
    /// From these nodes and no others.
    Bind,
    /// From that node first.
    Prefer,
    /// Page by page from these nodes in turn.
    Interleave,
}

impl MemoryPolicy {
    fn number(self) -> libc::c_int {
        match self {
            Self::Local => libc::MPOL_LOCAL,
            Self::Bind => libc::MPOL_BIND,
            Self::Prefer => libc::MPOL_PREFERRED,
            Self::Interleave => libc::MPOL_INTERLEAVE,
        }
    }
}

/// Takes what the calling thread allocates from now on, from these nodes; none are named with [`MemoryPolicy::Local`].
///
/// # Errors
/// A sentence where there is no such node, or the kernel does not allow it.
pub fn set_memory_policy(policy: MemoryPolicy, nodes: &[u32]) -> io::Result<()> {
    let mut mask = [0 as libc::c_ulong; NODES / WORD];
    // The kernel leaves those out of a mask that are not there, and says nothing.
    let there = if nodes.is_empty() { Vec::new() } else { with_memory()? };
    for &node in nodes {
        let word = mask.get_mut(node as usize / WORD).filter(|_| there.contains(&node));
        *word.ok_or_else(|| missing(node, &there))? |= 1 << (node as usize % WORD);
    }
    // One bit more than there are: the kernel takes the highest one of the number for none.
    let (mask, bits) = if nodes.is_empty() { (std::ptr::null(), 0) } else { (mask.as_ptr(), NODES + 1) };
    // SAFETY: the mask lives in this frame and is as long as the number of bits says, or is null with none; the call changes nothing
    // but the policy of this thread.
    let answer = unsafe { libc::syscall(libc::SYS_set_mempolicy, policy.number(), mask, bits) };
    if answer == 0 {
        return Ok(());
    }
    let e = io::Error::last_os_error();
    let why = format!("memory of NUMA nodes cannot be asked for by this process ({e}); leave it out");
    Err(io::Error::new(e.kind(), why))
}

/// That there is no such node, with those that there are.
fn missing(node: u32, there: &[u32]) -> io::Error {
    let list: Vec<String> = there.iter().map(u32::to_string).collect();
    let why = format!("there is no NUMA node {node} with memory; type one of {}", list.join(", "));
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// The nodes that have memory.
fn with_memory() -> io::Result<Vec<u32>> {
    let text = WITH_MEMORY.iter().find_map(|path| fs::read_to_string(path).ok());
    let nodes = text.as_deref().and_then(numbers);
    nodes.ok_or_else(|| {
        let why = "the kernel shows no NUMA nodes in /sys/devices/system/node; leave them out";
        io::Error::new(io::ErrorKind::Unsupported, why)
    })
}

/// The numbers of a list such as `0-1,4`.
fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok().filter(|n| *n < NODES as u32)?);
    }
    Some(all)
}

/// The policy of the calling thread and its nodes (`get_mempolicy(2)`).
#[cfg(test)]
fn of_this_thread() -> (libc::c_int, Vec<u32>) {
    let mut mode: libc::c_int = -1;
    let mut mask = [0 as libc::c_ulong; NODES / WORD];
    let (none, flags) = (std::ptr::null::<libc::c_void>(), 0);
    // SAFETY: the kernel fills a number and a mask of this frame, which is as long as the number of bits says.
    let answer = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, mask.as_mut_ptr(), NODES, none, flags)
    };
    assert_eq!(answer, 0, "{}", io::Error::last_os_error());
    let is_in = |node: &u32| mask[*node as usize / WORD] & (1 << (*node as usize % WORD)) != 0;
    (mode, (0..NODES as u32).filter(is_in).collect())
}

#[test]
fn the_kernel_says_of_the_thread_what_was_asked_for() {
    let Ok(there) = with_memory() else { return println!("SKIPPED: the kernel shows no NUMA nodes") };
    let all = there.as_slice();
    for (policy, nodes) in
        [(MemoryPolicy::Bind, all), (MemoryPolicy::Interleave, all), (MemoryPolicy::Prefer, &all[..1]), (MemoryPolicy::Local, &[])]
    {
        let asked = nodes.to_vec();
        let seen = std::thread::spawn(move || set_memory_policy(policy, &asked).map(|()| of_this_thread())).join();
        let seen = seen.unwrap_or_else(|_| panic!("the thread panicked"));
        match seen {
            Ok(seen) => assert_eq!(seen, (policy.number(), nodes.to_vec()), "{policy:?}"),
            Err(e) => println!("SKIPPED: {e}"),
        }
    }
}

#[test]
fn memory_that_is_touched_afterwards_bears_the_policy() {
    let touched = std::thread::spawn(|| -> io::Result<String> {
        set_memory_policy(MemoryPolicy::Bind, &with_memory()?[..1])?;
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
fn a_node_that_is_not_there_is_refused_with_those_that_are() {
    let Ok(there) = with_memory() else { return println!("SKIPPED: the kernel shows no NUMA nodes") };
    for nodes in [&[1023][..], &[there[0], 1000], &[u32::MAX]] {
        let why =
            set_memory_policy(MemoryPolicy::Bind, nodes).map_or_else(|e| e.to_string(), |()| panic!("{nodes:?} was accepted"));
        assert!(why.contains("no NUMA node") && why.contains(&format!("type one of {}", there[0])), "{why}");
    }
    assert_eq!(numbers("0-1,4\n"), Some(vec![0, 1, 4]));
    assert_eq!((numbers(""), numbers("x"), numbers("0-4000000000")), (None, None, None));
}
