//! hdparm: its two timings as it takes them, its lines, and what they really measured.
//!
//! For: `-T` and `-t`, of block devices, which are only read. Not for: their options (crate `dialect`).
//!
//! hdparm reads 2 MiB at a time, and looks at each sector of them: for `-T` the first of the device for two seconds, less what going
//! back there takes; for `-t`, after three seconds of rest, one behind the other for three seconds, from a device that nothing is
//! cached of.

use super::buffer::Buffer;
use super::look::{Disk, Subject, flow};
use super::words::{reason, say_ours};
use crate::failure::Failure;
use crate::{stderr, stdout};
use dialect::hdparm::Timings;
use machine::rest;
use machine::root::Root;
use model::Known;
use model::name;
use model::units::{GIB, show_bytes, show_share};
use rustix::fs::{Mode, OFlags, SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Bytes of a read.
const BLOCK_BYTES: usize = 2 << 20;
/// A read in MB as hdparm's lines count them, of 2^20 bytes.
const BLOCK_MB: u64 = 2;
/// How long the same bytes are read.
const CACHED: Duration = Duration::from_secs(2);
/// How long one is read behind the other.
const READS: Duration = Duration::from_secs(3);
/// How long it rests before that. It matters: where a hypervisor takes freed memory back (free page reporting), the page cache has to
/// be given that memory again, and a guest then reads at a third of the rate.
const REST: Duration = Duration::from_secs(3);
/// Bytes from one that is looked at to the next.
const SECTOR_BYTES: usize = 512;
/// Share of the time on a CPU from which that, and no device, set the rate.
const CPU_BOUND_FROM: f64 = 0.9;
/// hdparm's exit code where a device cannot be read: EIO.
const NOT_READ: u8 = 5;
/// What `-V` prints.
pub const VERSION: &str = "hdparm v9.65 (fathom)";

/// Times each device; the exit code is that of the last that failed, as hdparm has it.
pub fn hdparm(said: &Timings) -> ExitCode {
    let mut code = 0;
    for device in &said.devices {
        if let Err(failed) = one(said, device) {
            code = failed;
        }
    }
    ExitCode::from(code)
}

fn one(said: &Timings, device: &str) -> Result<(), u8> {
    let path = name::path(device);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = if said.direct { flags | OFlags::DIRECT } else { flags };
    let file: File = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(e) => {
            stderr::say(&format!("{}: {}", name::shown(&path), reason(&e.into())));
            return Err(number(e));
        }
    };
    if !file.metadata().is_ok_and(|facts| facts.file_type().is_block_device()) {
        stderr::say(&format!(
            "fathom: {0} is no block device, and hdparm times devices; type fathom dd if={0} of=/dev/null bs=2M, or name one of \
             those that `fathom devices` lists",
            name::shown(&path)
        ));
        return Err(NOT_READ);
    }
    let timing = Timing::new(file, &path)?;
    print(&format!("\n{}:\n", name::shown(&path)))?;
    if said.cached {
        timing.cached(said.direct)?;
    }
    if said.reads {
        timing.reads(said.direct, said.offset_gib)?;
    }
    Ok(())
}

/// The exit code of an error, which is its number.
fn number(error: Errno) -> u8 {
    u8::try_from(error.raw_os_error()).unwrap_or(NOT_READ)
}

/// Prints to standard output, where hdparm's lines go.
fn print(text: &str) -> Result<(), u8> {
    stdout::text(text).map_err(|failure: Failure| {
        let _ = failure.tell();
        NOT_READ
    })
}

/// A device that is timed.
struct Timing {
    root: Root,
    file: File,
    subject: Option<Subject>,
    bytes: u64,
}

/// What a timing came to.
struct Timed {
    reads: u64,
    seconds: f64,
    /// What the disk did meanwhile.
    disk: Known<Disk>,
    /// CPU time by time.
    cpu_share: Option<f64>,
}

impl Timing {
    fn new(file: File, path: &Path) -> Result<Self, u8> {
        let root = Root::real();
        let bytes = sys::ioctl::device_bytes(&file).map_err(|e| {
            stderr::say(&format!(" BLKGETSIZE failed: {}", reason(&e)));
            NOT_READ
        })?;
        let subject = Subject::of(&root, &file, path);
        Ok(Self { root, file, subject, bytes })
    }

    fn buffer() -> Result<Buffer, u8> {
        Buffer::new(BLOCK_BYTES).ok_or_else(|| {
            stderr::say("could not allocate sharedmem buf");
            NOT_READ
        })
    }

    fn go_to(&self, offset: u64) -> Result<(), u8> {
        seek(&self.file, SeekFrom::Start(offset)).map(|_| ()).map_err(|e| {
            stderr::say(&format!("lseek() failed: {}", reason(&e.into())));
            number(e)
        })
    }

    /// One read, and a look at all that it brought; that there is less than a block left is an error, as there.
    fn read(&self, buffer: &mut Buffer) -> Result<(), u8> {
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.file, buffer.bytes())) {
            Ok(BLOCK_BYTES) => {
                let sectors = buffer.bytes().chunks_mut(SECTOR_BYTES);
                sectors.filter_map(<[u8]>::first_mut).for_each(|byte| *byte = black_box(*byte & 1));
                return Ok(());
            }
            Ok(0) => stderr::say("read() hit EOF - device too small"),
            Ok(read) => stderr::say(&format!("read({BLOCK_BYTES}) returned {read} bytes")),
            Err(e) => {
                stderr::say(&format!("read() failed: {}", reason(&e.into())));
                return Err(number(e));
            }
        }
        Err(NOT_READ)
    }

    /// Carries a loop out between two looks. It gives its reads and its seconds.
    fn timed(&self, work: impl FnOnce() -> Result<(u64, f64), u8>) -> Result<Timed, u8> {
        let cpu = || sys::thread::usage().ok().map(|u| u.user_ns + u.system_ns);
        let look = || self.subject.as_ref().map(|s| s.look(&self.root));
        let (before, cpu_before, began) = (look(), cpu(), Instant::now());
        let (reads, seconds) = work()?;
        let (took, cpu_after, after) = (began.elapsed(), cpu(), look());
        let disk = match (&self.subject, before, after) {
            (Some(subject), Some(before), Some(after)) => subject.disk_between(&before, &after),
            _ => Err("what is below this device could not be looked at".into()),
        };
        let cpu_share =
            cpu_before.zip(cpu_after).map(|(a, b)| b.saturating_sub(a) as f64 / took.as_nanos() as f64);
        Ok(Timed { reads, seconds, disk, cpu_share })
    }

    fn cached(&self, direct: bool) -> Result<(), u8> {
        let mut buffer = Self::buffer()?;
        print(&format!(" Timing {}cached reads:   ", if direct { "O_DIRECT " } else { "" }))?;
        // What is read over and over is there from the beginning.
        self.go_to(0)?;
        self.read(&mut buffer)?;
        let timed = self.timed(|| {
            let began = Instant::now();
            let mut reads = 0;
            while reads == 0 || began.elapsed() < CACHED {
                self.go_to(0)?;
                self.read(&mut buffer)?;
                reads += 1;
            }
            let took = began.elapsed();
            let began = Instant::now();
            for _ in 0..reads {
                self.go_to(0)?;
                let _ = began.elapsed();
            }
            Ok((reads, took.saturating_sub(began.elapsed()).as_secs_f64()))
        })?;
        print(&format!("{}\n", line(&timed)))?;
        say_ours(&[of_cached(&timed, direct)]);
        Ok(())
    }

    fn reads(&self, direct: bool, offset_gib: Option<u64>) -> Result<(), u8> {
        let mut buffer = Self::buffer()?;
        let evicted = rest::evict(&self.file);
        std::thread::sleep(REST);
        let place = offset_gib.map_or_else(String::new, |gib| format!(" (offset {gib} GB)"));
        print(&format!(" Timing {} disk reads{place}: ", if direct { "O_DIRECT" } else { "buffered" }))?;
        let offset = offset_gib.unwrap_or(0).saturating_mul(GIB);
        let left = self.bytes.saturating_sub(offset) / BLOCK_BYTES as u64;
        self.go_to(offset)?;
        let timed = self.timed(|| {
            let began = Instant::now();
            let mut reads = 0;
            while reads == 0 || (reads < left && began.elapsed() < READS) {
                self.read(&mut buffer)?;
                reads += 1;
            }
            Ok((reads, began.elapsed().as_secs_f64()))
        })?;
        print(&format!("{}\n", line(&timed)))?;
        let mut said = vec![of_reads(&timed, direct)];
        match evicted {
            Ok(pages) if pages.cached > 0 && !direct => said.push(format!(
                "{} of it stayed in the page cache and may have been read from there",
                show_bytes(pages.cached.saturating_mul(pages.page_bytes))
            )),
            Ok(_) => {}
            Err(why) => said.push(format!("whether any of it was in the page cache is not known: {why}")),
        }
        let part = timed.reads.saturating_mul(BLOCK_BYTES as u64) as f64 / self.bytes.max(1) as f64;
        said.push(format!(
            "{} of the device was read, from {}: a hard disk is about half as fast at its end (--offset GiB), and an SSD may be \
             faster where nothing was ever written",
            show_share(part),
            if offset == 0 { "its beginning".to_owned() } else { show_bytes(offset) }
        ));
        say_ours(&said);
        Ok(())
    }
}

/// hdparm's line of a timing.
fn line(timed: &Timed) -> String {
    let mb = timed.reads * BLOCK_MB;
    let rate = mb as f64 / timed.seconds;
    if rate >= 1.0 {
        format!("{mb:3} MB in {:5.2} seconds = {rate:6.2} MB/sec", timed.seconds)
    } else {
        format!("{mb:3} MB in {:5.2} seconds = {:6.2} kB/sec", timed.seconds, rate * 1024.0)
    }
}

/// What `-T` measured.
fn of_cached(timed: &Timed, direct: bool) -> String {
    let copied = timed.reads.saturating_mul(BLOCK_BYTES as u64);
    let cpu = timed
        .cpu_share
        .map_or_else(String::new, |share| format!(", a CPU {} busy", show_share(share.min(1.0))));
    match &timed.disk {
        Err(why) => format!("the same 2 MiB, over and over{cpu}; what the disk did is not known: {why}"),
        Ok(disk) if disk.did.read.bytes < copied / 100 => format!(
            "no speed of a disk: {} read {} while {} were read of it, the same 2 MiB of the page cache over and over{cpu}",
            disk.name,
            flow(&disk.did.read),
            show_bytes(copied)
        ),
        Ok(disk) => format!(
            "{} read {}, the same 2 MiB over and over{}: a cache of the drive or of its host may have answered",
            disk.name,
            flow(&disk.did.read),
            if direct { ", past the page cache" } else { "" }
        ),
    }
}

/// What `-t` measured.
fn of_reads(timed: &Timed, direct: bool) -> String {
    let disk = match &timed.disk {
        Err(why) => return format!("what the disk did is not known: {why}"),
        Ok(disk) => disk,
    };
    let depth = disk.did.queue_ms as f64 / 1000.0 / timed.seconds;
    let how = if direct {
        "which the kernel made of reads of 2 MiB"
    } else {
        "as the kernel's read-ahead asked for them"
    };
    let bound = timed.cpu_share.filter(|share| *share >= CPU_BOUND_FROM).map_or_else(String::new, |share| {
        format!(
            ". A CPU was {} busy: finding memory and copying set the rate, and not the device",
            show_share(share.min(1.0))
        )
    });
    format!(
        "{} read {}, {how}, {depth:.1} in flight on average{bound}; several at once: fathom run --rw read --bs 2m --depth 8 DEVICE",
        disk.name,
        flow(&disk.did.read)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::evidence::{BlockFlow, BlockStat};

    fn timed(reads: u64, seconds: f64, ios: u64, bytes: u64) -> Timed {
        let read = BlockFlow { ios, bytes, ..BlockFlow::default() };
        let did = BlockStat { read, queue_ms: 6000, ..BlockStat::default() };
        Timed { reads, seconds, disk: Ok(Disk { name: "sda".into(), did }), cpu_share: Some(0.99) }
    }

    /// As hdparm 9.65 printed them.
    #[test]
    fn the_lines_are_those_of_hdparm() {
        assert_eq!(line(&timed(6771, 1.8844, 0, 0)), "13542 MB in  1.88 seconds = 7186.37 MB/sec");
        assert_eq!(line(&timed(128, 1.0219, 0, 0)), "256 MB in  1.02 seconds = 250.51 MB/sec");
        assert_eq!(line(&timed(32, 0.20652, 0, 0)), " 64 MB in  0.21 seconds = 309.90 MB/sec");
        assert_eq!(line(&timed(1, 4.0, 0, 0)), "  2 MB in  4.00 seconds = 512.00 kB/sec");
    }

    #[test]
    fn memory_is_told_from_a_disk_by_what_the_disk_read() {
        let memory = of_cached(&timed(6771, 2.0, 0, 0), false);
        assert!(
            memory.starts_with("no speed of a disk: sda read nothing while 13.22 GiB")
                && memory.contains("99 %"),
            "{memory}"
        );
        let drive = of_cached(&timed(100, 2.0, 200, 200 << 20), true);
        assert!(drive.contains("past the page cache: a cache of the drive"), "{drive}");
        let reads = of_reads(&timed(128, 3.0, 2048, 256 << 20), false);
        assert!(reads.contains("2,048 requests of 128 KiB") && reads.contains("2.0 in flight"), "{reads}");
        assert!(reads.contains("A CPU was 99 % busy"), "{reads}");
        let waited = Timed { cpu_share: Some(0.4), ..timed(128, 3.0, 2048, 256 << 20) };
        assert!(!of_reads(&waited, false).contains("CPU"));
    }
}
