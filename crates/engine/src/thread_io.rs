//! The kernel's count of a worker's I/O (`/proc/thread-self/io`), which tells the work of one stream from that of the others.
//!
//! The file is opened before the start and read at the worker's first and last stamp, outside the loop. io_uring passes operations
//! that would block to kernel threads named `iou-wrk-TID` after the worker. These have counts of their own and live as long as the
//! ring, so they are read once, at the end. Helper threads that ended earlier, and those of a C library, appear in the count of the
//! process alone; the analysis takes the difference for unattributed.

use model::Known;
use model::record::ThreadIo;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Room for the file: seven lines, each with a number of 20 digits at most.
const MOST_BYTES: usize = 512;
/// How the kernel names the threads that it starts for a ring, before the id of the thread that owns the ring.
const HELPERS: [&str; 2] = ["iou-wrk-", "iou-sqp-"];

/// The count of the calling thread.
pub(crate) struct Account(Known<File>);

impl Account {
    /// Opens the count of the calling thread.
    pub(crate) fn open() -> Self {
        Self(File::open("/proc/thread-self/io").map_err(|e| format!("/proc/thread-self/io: {e}")))
    }

    /// The count since the thread began.
    pub(crate) fn read(&self) -> Known<ThreadIo> {
        parse(self.0.as_ref().map_err(Clone::clone)?)
    }
}

/// The count of the kernel threads that io_uring started for the calling thread. A thread that ends meanwhile is left out.
pub(crate) fn of_ring_helpers() -> ThreadIo {
    let mut sum = ThreadIo::default();
    let Ok(own) = fs::read_link("/proc/thread-self") else { return sum };
    let Some(own) = own.file_name().and_then(|id| id.to_str()) else { return sum };
    let names = HELPERS.map(|before| format!("{before}{own}"));
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let path = thread.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if names.iter().any(|helper| helper == name.trim_end()) {
            let io = File::open(path.join("io")).map_err(|e| e.to_string()).and_then(|file| parse(&file));
            sum = sum.plus(io.unwrap_or_default());
        }
    }
    sum
}

fn parse(file: &File) -> Known<ThreadIo> {
    let mut text = [0_u8; MOST_BYTES];
    let count = file.read_at(&mut text, 0).map_err(|e| format!("/proc/thread-self/io: {e}"))?;
    ThreadIo::parse(&String::from_utf8_lossy(text.get(..count).unwrap_or_default()))
}

#[test]
fn calls_of_this_thread_are_counted_and_those_of_another_are_not() {
    use std::io::Write;
    let Ok(before) = Account::open().read() else { return };
    let wrote = |bytes: usize| {
        let mut file = tempfile::tempfile().unwrap_or_else(|e| panic!("{e}"));
        file.write_all(&vec![1; bytes]).unwrap_or_else(|e| panic!("{e}"));
    };
    wrote(1 << 20);
    std::thread::spawn(move || wrote(1 << 24)).join().unwrap_or_else(|_| panic!("the thread panicked"));
    let own = Account::open().read().unwrap_or_else(|why| panic!("{why}")).since(before);
    assert!((1 << 20..1 << 23).contains(&own.wchar), "{own:?}");
    assert_eq!(of_ring_helpers(), ThreadIo::default());
}
