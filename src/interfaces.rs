//! The table of interfaces that `fathom api` compares, each with its engine.
//!
//! Simple interfaces come first: of two equally fast interfaces, the first one is recommended.

use Concurrency::{Depth, One, Threads};
use Directions::{Both, In, Out};
use model::job::Cache::{self, Buffered, Direct, Dsync, Mmap, Sync};
use model::job::{FALLOCATE, NEW};

/// The cargo feature of the only optional interface.
pub(crate) const CXX: &str = "cxx";

/// One interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// Name in the table.
    pub name: &'static str,
    /// Description in one line, for `--list`.
    pub about: &'static str,
    /// Engine with its options, as for `--engine`.
    pub engine: &'static str,
    /// Cache mode of the file.
    pub cache: Cache,
    /// Supported directions.
    pub directions: Directions,
    /// How the interface keeps several operations in flight.
    pub concurrency: Concurrency,
    /// Whether the bytes pass through the program's memory.
    pub delivers_bytes: bool,
}

/// Directions that an interface supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// Reading and writing.
    Both,
    /// Only reading.
    In,
    /// Only writing.
    Out,
}

/// How an interface keeps several operations in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// One operation at a time.
    One,
    /// One thread has `--depth` operations in flight.
    Depth,
    /// `--depth` threads have one operation in flight each.
    Threads,
}

impl Interface {
    /// Whether the interface writes to a new file.
    pub(crate) fn renews_file(&self) -> bool {
        [NEW, FALLOCATE].iter().any(|option| self.engine.ends_with(option))
    }

    /// The name in rows of reads or of writes: `pread O_DIRECT` is called `pwrite O_DIRECT` in rows of writes.
    pub(crate) fn name_for(&self, writes: bool) -> String {
        let (call, rest) = self.name.split_at(self.name.find(' ').unwrap_or(self.name.len()));
        match WRITE_CALLS.iter().find(|(read, _)| writes && *read == call) {
            Some((_, write)) => format!("{write}{rest}"),
            None => self.name.to_owned(),
        }
    }
}

/// Calls that read, each with the call that writes.
const WRITE_CALLS: [(&str, &str); 8] = [
    ("pread", "pwrite"),
    ("preadv2", "pwritev2"),
    ("read", "write"),
    ("readv", "writev"),
    ("BufReader", "BufWriter"),
    ("fread", "fwrite"),
    ("fgetc", "fputc"),
    ("getc_unlocked", "putc_unlocked"),
];

const fn row(
    name: &'static str,
    engine: &'static str,
    cache: Cache,
    directions: Directions,
    concurrency: Concurrency,
    about: &'static str,
) -> Interface {
    Interface { name, about, engine, cache, directions, concurrency, delivers_bytes: true }
}

/// Marks an interface whose bytes do not pass through the program's memory.
const fn without_memory(interface: Interface) -> Interface {
    Interface { delivers_bytes: false, ..interface }
}

/// All interfaces, one per line.
#[rustfmt::skip]
pub const INTERFACES: &[Interface] = &[
    row("pread",                  "sync",                               Buffered, Both, One,     "pread and pwrite"),
    row("read",                   "rw",                                 Buffered, Both, One,     "read and write at the file position, with lseek for jumps"),
    row("std::fs::File",          "std",                                Buffered, Both, One,     "Rust's File: read, write and seek"),
    row("BufReader",              "std:buffer=0",                       Buffered, Both, One,     "Rust's BufReader and BufWriter with their own 8 KiB"),
    row("BufReader 128K",         "std:buffer=131072",                  Buffered, Both, One,     "BufReader and BufWriter with 128 KiB"),
    row("fread",                  "stdio",                              Buffered, Both, One,     "fread and fwrite with the C library's own buffer"),
    row("fread 64K",              "stdio:buffer=65536",                 Buffered, Both, One,     "fread and fwrite with setvbuf of 64 KiB"),
    row("fread 1M",               "stdio:buffer=1048576",               Buffered, Both, One,     "fread and fwrite with setvbuf of 1 MiB"),
    row("fread unbuffered",       "stdio:buffer=0",                     Buffered, Both, One,     "fread and fwrite without a buffer (setvbuf)"),
    row("fgetc",                  "stdio:getc",                         Buffered, Both, One,     "fgetc and fputc, byte by byte"),
    row("getc_unlocked",          "stdio:getc-unlocked",                Buffered, Both, One,     "getc_unlocked and putc_unlocked, byte by byte without the lock"),
    row("fstream",                "fstream",                            Buffered, Both, One,     "C++ std::fstream: read and write (only if built with the feature cxx)"),
    row("readv",                  "rw:vectors=4",                       Buffered, Both, One,     "readv and writev with four buffers per operation"),
    row("preadv2",                "vsync",                              Buffered, Both, One,     "preadv2 and pwritev2 without flags"),
    row("preadv2 NOWAIT",         "vsync:nowait,retry",                 Buffered, Both, One,     "preadv2 with RWF_NOWAIT, and a second call if the first would block"),
    row("preadv2 DONTCACHE",      "vsync:dontcache",                    Buffered, Both, One,     "preadv2 with RWF_DONTCACHE: no data remain in the page cache"),
    row("readahead",              "sync:readahead=1048576",             Buffered, In,   One,     "readahead of 1 MiB ahead of pread"),
    row("pread threads",          "sync",                               Buffered, Both, Threads, "pread and pwrite by as many threads as --depth"),
    row("mmap",                   "mmap:late",                          Mmap,     Both, One,     "load and store, MAP_SHARED"),
    row("mmap private",           "mmap:late,private",                  Mmap,     In,   One,     "load, MAP_PRIVATE"),
    row("mmap populate",          "mmap:late,populate",                 Mmap,     Both, One,     "mmap with MAP_POPULATE, which reads all pages first; this time counts"),
    row("mmap sequential",        "mmap:late,sequential",               Mmap,     Both, One,     "mmap with MADV_SEQUENTIAL"),
    row("mmap random",            "mmap:late,random",                   Mmap,     Both, One,     "mmap with MADV_RANDOM"),
    row("mmap hugepage",          "mmap:late,hugepage",                 Mmap,     Both, One,     "mmap with MADV_HUGEPAGE"),
    row("splice",                 "splice",                             Buffered, Both, One,     "splice to a pipe and read from it; vmsplice and splice to write"),
    without_memory(row("splice to null",         "splice:discard",                     Buffered, In,   One,     "splice to a pipe and on to /dev/null")),
    row("sendfile",               "sendfile",                           Buffered, Both, One,     "sendfile between the file and a file in memory"),
    without_memory(row("copy_file_range",        "copy_file_range:bare",               Buffered, Both, One,     "copy_file_range between the file and another file")),
    row("POSIX aio",              "posixaio",                           Buffered, Both, Depth,   "aio_read and aio_write: threads of the C library"),
    row("libaio",                 "libaio",                             Buffered, Both, Depth,   "io_submit through the page cache: the call blocks"),
    row("io_uring",               "io_uring:plain-buffers,plain-files", Buffered, Both, Depth,   "io_uring without registered buffers and files"),
    row("io_uring fixed",         "io_uring",                           Buffered, Both, Depth,   "io_uring with registered buffers and files"),
    row("pread O_DIRECT",         "sync",                               Direct,   Both, One,     "pread and pwrite past the page cache"),
    row("pread O_DIRECT threads", "sync",                               Direct,   Both, Threads, "pread and pwrite past the page cache by as many threads as --depth"),
    row("preadv2 HIPRI",          "vsync:hipri",                        Direct,   Both, One,     "preadv2 with RWF_HIPRI: the device is polled"),
    row("libaio O_DIRECT",        "libaio",                             Direct,   Both, Depth,   "io_submit past the page cache"),
    row("io_uring O_DIRECT",      "io_uring",                           Direct,   Both, Depth,   "io_uring past the page cache, with registered buffers and files"),
    row("io_uring SQPOLL",        "io_uring:sqpoll",                    Direct,   Both, Depth,   "io_uring past the page cache, with a kernel thread that takes submissions"),
    row("io_uring IOPOLL",        "io_uring:iopoll",                    Direct,   Both, Depth,   "io_uring past the page cache: the device is polled"),
    row("pwrite new file",        "sync:new",                           Buffered, Out,  One,     "pwrite to a file without blocks, as after ftruncate"),
    row("fallocate",              "sync:fallocate",                     Buffered, Out,  One,     "fallocate, then pwrite"),
    row("pwrite O_DSYNC",         "sync",                               Dsync,    Out,  One,     "each pwrite stable before it returns"),
    row("pwrite O_SYNC",          "sync",                               Sync,     Out,  One,     "each pwrite stable with its metadata"),
    row("pwritev2 DSYNC",         "vsync:dsync",                        Buffered, Out,  One,     "pwritev2 with RWF_DSYNC on each call"),
];

/// The default interfaces, which most programs use.
const COMMON: [&str; 6] = ["pread", "BufReader", "mmap", "io_uring", "pread O_DIRECT", "io_uring O_DIRECT"];
/// The interfaces that are compared by default in addition if io_uring is denied.
const IF_IO_URING_IS_DENIED: [&str; 2] = ["libaio", "libaio O_DIRECT"];

/// The default interfaces, in the order of the table.
pub fn common(is_io_uring_denied: bool) -> impl Iterator<Item = &'static Interface> {
    let is_common = move |i: &&Interface| {
        COMMON.contains(&i.name) || (is_io_uring_denied && IF_IO_URING_IS_DENIED.contains(&i.name))
    };
    INTERFACES.iter().filter(is_common)
}

/// Finds an interface by its name in rows of reads or of writes, ignoring case.
pub fn find(name: &str) -> Option<&'static Interface> {
    let is_named = |i: &&Interface| [false, true].iter().any(|w| i.name_for(*w).eq_ignore_ascii_case(name));
    INTERFACES.iter().find(is_named)
}

#[test]
fn rows_of_writes_name_the_call_that_writes() {
    let writes = |name: &str| find(name).map(|i| i.name_for(true)).unwrap_or_default();
    assert_eq!(writes("pread"), "pwrite");
    assert_eq!(writes("pread O_DIRECT threads"), "pwrite O_DIRECT threads");
    assert_eq!(writes("BufReader 128K"), "BufWriter 128K");
    assert_eq!((writes("mmap"), writes("pwrite new file")), ("mmap".into(), "pwrite new file".into()));
    assert_eq!(find("fwrite 64k").map(|i| i.name), Some("fread 64K"));
    let mut names: Vec<String> = INTERFACES.iter().map(|i| i.name_for(true)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), INTERFACES.len(), "two rows of writes have one name");
}

#[test]
fn six_interfaces_are_common_and_libaio_joins_them_if_io_uring_is_denied() {
    let names = |is_denied| common(is_denied).map(|i| i.name).collect::<Vec<_>>();
    assert_eq!(names(false), COMMON);
    assert!(IF_IO_URING_IS_DENIED.iter().all(|name| names(true).contains(name)) && names(true).len() == 8);
}

#[test]
fn interface_names_are_unique_and_engines_exist() {
    use model::spec::values;
    for (at, one) in INTERFACES.iter().enumerate() {
        assert!(INTERFACES[..at].iter().all(|i| !i.name.eq_ignore_ascii_case(one.name)), "{}", one.name);
        assert!(!one.name.contains(','), "a comma separates names in --interface: {}", one.name);
        let spec = values::engine(one.engine).unwrap_or_else(|e| panic!("{}: {e}", one.engine));
        let Some(entry) = ::engine::engines::find(&spec.name) else {
            assert_eq!(one.name, "fstream");
            continue;
        };
        assert!(entry.caches.contains(&one.cache), "{}", one.name);
        assert!(spec.options.keys().all(|o| entry.options.iter().any(|e| e.name == o)), "{}", one.name);
        assert_eq!(entry.max_depth > 1, one.concurrency == Depth, "{}", one.name);
    }
}
