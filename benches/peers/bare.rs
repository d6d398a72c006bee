//! The least that an io_uring can cost: a loop that reads random blocks and records nothing.
//!
//! The loop has the same depth, batches, buffers and ring setup as fathom, so the difference is the cost of fathom's own loop. It has no
//! clock, no latencies and no counter except the number of reads, and it stops at any error. It is not part of the program. It uses the
//! crate `io-uring`, because a comparison with fathom's own ring code would prove nothing.
#![allow(unsafe_code)]

use io_uring::{IoUring, opcode, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sys::arena::Arena;

const BLOCK_BYTES: u32 = 4096;
/// Linux's `O_NOATIME`. fathom opens files with this flag too if it only reads them.
const O_NOATIME: i32 = 0o1_000_000;

/// Reads blocks of a file at random offsets for this time. Returns reads per second.
///
/// # Errors
/// The error of the ring or of a read.
pub(crate) fn run(path: &Path, depth: u32, batch: u32, time: Duration) -> io::Result<f64> {
    let file = File::options().read(true).custom_flags(O_NOATIME).open(path)?;
    let blocks = file.metadata()?.len() / u64::from(BLOCK_BYTES);
    let mut ring: IoUring =
        IoUring::builder().setup_single_issuer().setup_coop_taskrun().setup_taskrun_flag().build(depth)?;
    let mut arena = Arena::new(depth as usize, BLOCK_BYTES as usize)?;
    let addresses: Vec<*mut u8> = (0..depth as usize).map(|slot| arena.slot_mut(slot).as_mut_ptr()).collect();
    let vector = |address: &*mut u8| libc::iovec { iov_base: address.cast(), iov_len: BLOCK_BYTES as usize };
    let vectors: Vec<libc::iovec> = addresses.iter().map(vector).collect();
    // SAFETY: the arena outlives the ring's last completion: the loop below ends with nothing in flight, and on an error
    // the arena is leaked.
    unsafe { ring.submitter().register_buffers(&vectors)? };
    ring.submitter().register_files(&[file.as_raw_fd()])?;

    // Another thread measures the time, so that the loop does not have to read a clock.
    let over = Arc::new(AtomicBool::new(false));
    let timer = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            std::thread::sleep(time);
            over.store(true, Ordering::Relaxed);
        }
    });
    let start = Instant::now();
    let done = turns(&mut ring, &addresses, blocks, batch, &over);
    let took = start.elapsed();
    if done.is_err() {
        std::mem::forget(arena);
    }
    let _ = timer.join();
    Ok(done? as f64 / took.as_secs_f64())
}

/// Reads until `over` is set and no operation is in flight. Returns the number of reads.
fn turns(
    ring: &mut IoUring,
    addresses: &[*mut u8],
    blocks: u64,
    batch: u32,
    over: &AtomicBool,
) -> io::Result<u64> {
    let mut free: Vec<u16> = (0..addresses.len() as u16).collect();
    let (mut random, mut done, depth) = (0x9e37_79b9_7f4a_7c15_u64, 0, addresses.len());
    let (mut submitter, mut queue, mut completions) = ring.split();
    submitter.register_ring_fd()?;
    loop {
        let ends = over.load(Ordering::Relaxed);
        if ends && free.len() == depth {
            // A thread can register 16 rings, and closing one does not free its place.
            submitter.unregister_ring_fd()?;
            return Ok(done);
        }
        for _ in 0..batch {
            let Some(slot) = free.pop().filter(|_| !ends) else { break };
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let block = (u128::from(random) * u128::from(blocks)) >> 64;
            let read = opcode::ReadFixed::new(types::Fixed(0), addresses[slot as usize], BLOCK_BYTES, slot)
                .offset(block as u64 * u64::from(BLOCK_BYTES))
                .build()
                .user_data(u64::from(slot));
            // SAFETY: the slot was free, so no other read uses its part of the arena. The slot becomes free again only after its
            // completion was seen.
            if unsafe { queue.push(&read) }.is_err() {
                free.push(slot);
                break;
            }
        }
        queue.sync();
        let flying = depth - free.len();
        let wait = if ends || free.is_empty() { flying.min(batch as usize) } else { 0 };
        submitter.submit_and_wait(wait)?;
        completions.sync();
        for entry in completions.by_ref() {
            if entry.result() != BLOCK_BYTES.cast_signed() {
                return Err(io::Error::other(format!("a read gave {}", entry.result())));
            }
            free.push(entry.user_data() as u16);
            done += 1;
        }
    }
}
