//! The table of interfaces that `fathom api` compares, each with its engine.
//!
//! Simple interfaces come first: of two equally fast interfaces, the first one is recommended.

use model::job::{Cache, FALLOCATE, NEW};

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
    pub ways: Directions,
    /// How it keeps several operations in flight.
    pub many: Many,
    /// Whether the bytes pass through the program's memory.
    pub sees: bool,
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
pub enum Many {
    /// One operation at a time.
    One,
    /// By its own queue depth.
    Depth,
    /// By several threads with one operation each.
    Threads,
}

impl Interface {
    /// Whether its writes go to a new file.
    pub(crate) fn renews_file(&self) -> bool {
        [NEW, FALLOCATE].iter().any(|option| self.engine.ends_with(option))
    }
}

const fn plain(name: &'static str, engine: &'static str, about: &'static str) -> Interface {
    let (cache, ways, many, sees) = (Cache::Buffered, Directions::Both, Many::One, true);
    Interface { name, about, engine, cache, ways, many, sees }
}

const fn opened(cache: Cache, interface: Interface) -> Interface {
    Interface { cache, ..interface }
}

const fn only(ways: Directions, interface: Interface) -> Interface {
    Interface { ways, ..interface }
}

const fn several(many: Many, interface: Interface) -> Interface {
    Interface { many, ..interface }
}

const fn blind(interface: Interface) -> Interface {
    Interface { sees: false, ..interface }
}

/// All interfaces.
pub const INTERFACES: &[Interface] = &[
    plain("pread", "sync", "pread and pwrite"),
    plain("read", "rw", "read and write at the file position, with lseek for jumps"),
    plain("std::fs::File", "std", "Rust's File: read, write and seek"),
    plain("BufReader", "std:buffer=0", "Rust's BufReader and BufWriter with their own 8 KiB"),
    plain("BufReader 128K", "std:buffer=131072", "the same with 128 KiB"),
    plain("fread", "stdio", "fread and fwrite with the C library's own buffer"),
    plain("fread 64K", "stdio:buffer=65536", "the same with setvbuf of 64 KiB"),
    plain("fread 1M", "stdio:buffer=1048576", "the same with setvbuf of 1 MiB"),
    plain("fread unbuffered", "stdio:buffer=0", "the same with setvbuf of no buffer"),
    plain("fgetc", "stdio:getc", "fgetc and fputc, byte by byte"),
    plain(
        "getc_unlocked",
        "stdio:getc-unlocked",
        "getc_unlocked and putc_unlocked, byte by byte without the lock",
    ),
    plain("fstream", "fstream", "C++ std::fstream: read and write (only if built with the feature cxx)"),
    plain("readv", "rw:vectors=4", "readv and writev with four buffers per operation"),
    plain("preadv2", "vsync", "preadv2 and pwritev2 without flags"),
    plain(
        "preadv2 NOWAIT",
        "vsync:nowait,retry",
        "preadv2 with RWF_NOWAIT, and a second call if it would block",
    ),
    plain(
        "preadv2 DONTCACHE",
        "vsync:dontcache",
        "preadv2 with RWF_DONTCACHE: no data remain in the page cache",
    ),
    only(Directions::In, plain("readahead", "sync:readahead=1048576", "readahead of 1 MiB ahead of pread")),
    several(Many::Threads, plain("pread threads", "sync", "pread and pwrite by --depth threads")),
    opened(Cache::Mmap, plain("mmap", "mmap:late", "load and store, MAP_SHARED")),
    only(
        Directions::In,
        opened(Cache::Mmap, plain("mmap private", "mmap:late,private", "load, MAP_PRIVATE")),
    ),
    opened(
        Cache::Mmap,
        plain(
            "mmap populate",
            "mmap:late,populate",
            "the same with MAP_POPULATE, which reads all pages first; this time counts",
        ),
    ),
    opened(Cache::Mmap, plain("mmap sequential", "mmap:late,sequential", "the same with MADV_SEQUENTIAL")),
    opened(Cache::Mmap, plain("mmap random", "mmap:late,random", "the same with MADV_RANDOM")),
    opened(Cache::Mmap, plain("mmap hugepage", "mmap:late,hugepage", "the same with MADV_HUGEPAGE")),
    plain("splice", "splice", "splice to a pipe and read from it; vmsplice and splice to write"),
    blind(only(
        Directions::In,
        plain("splice to null", "splice:discard", "splice to a pipe and on to /dev/null"),
    )),
    plain("sendfile", "sendfile", "sendfile between the file and a file in memory"),
    blind(plain(
        "copy_file_range",
        "copy_file_range:bare",
        "copy_file_range between the file and another one",
    )),
    several(Many::Depth, plain("POSIX aio", "posixaio", "aio_read and aio_write: threads of the C library")),
    several(Many::Depth, plain("libaio", "libaio", "io_submit through the page cache, which blocks")),
    several(
        Many::Depth,
        plain(
            "io_uring",
            "io_uring:plain-buffers,plain-files",
            "io_uring without registered buffers and files",
        ),
    ),
    several(Many::Depth, plain("io_uring fixed", "io_uring", "io_uring with registered buffers and files")),
    opened(Cache::Direct, plain("pread O_DIRECT", "sync", "pread and pwrite past the page cache")),
    several(
        Many::Threads,
        opened(Cache::Direct, plain("pread O_DIRECT threads", "sync", "the same by threads")),
    ),
    opened(
        Cache::Direct,
        plain("preadv2 HIPRI", "vsync:hipri", "preadv2 with RWF_HIPRI: the device is polled"),
    ),
    several(
        Many::Depth,
        opened(Cache::Direct, plain("libaio O_DIRECT", "libaio", "io_submit past the page cache")),
    ),
    several(
        Many::Depth,
        opened(
            Cache::Direct,
            plain(
                "io_uring O_DIRECT",
                "io_uring",
                "io_uring past the page cache, with registered buffers and files",
            ),
        ),
    ),
    several(
        Many::Depth,
        opened(
            Cache::Direct,
            plain(
                "io_uring SQPOLL",
                "io_uring:sqpoll",
                "the same, with a kernel thread that takes submissions",
            ),
        ),
    ),
    several(
        Many::Depth,
        opened(Cache::Direct, plain("io_uring IOPOLL", "io_uring:iopoll", "the same, the device is polled")),
    ),
    only(
        Directions::Out,
        plain("pwrite new file", "sync:new", "pwrite to a file without blocks, as after ftruncate"),
    ),
    only(Directions::Out, plain("fallocate", "sync:fallocate", "fallocate, then pwrite")),
    only(
        Directions::Out,
        opened(Cache::Dsync, plain("pwrite O_DSYNC", "sync", "each pwrite stable before it returns")),
    ),
    only(
        Directions::Out,
        opened(Cache::Sync, plain("pwrite O_SYNC", "sync", "each pwrite stable with its metadata")),
    ),
    only(Directions::Out, plain("pwritev2 DSYNC", "vsync:dsync", "pwritev2 with RWF_DSYNC on each call")),
];

/// Default interfaces: the usual choices of programs.
const COMMON: [&str; 6] = ["pread", "BufReader", "mmap", "io_uring", "pread O_DIRECT", "io_uring O_DIRECT"];
/// Also compared by default if io_uring is denied.
const INSTEAD_OF_IO_URING: [&str; 2] = ["libaio", "libaio O_DIRECT"];

/// The default interfaces, in the order of the table.
pub fn common(is_io_uring_denied: bool) -> impl Iterator<Item = &'static Interface> {
    let is_common = move |i: &&Interface| {
        COMMON.contains(&i.name) || (is_io_uring_denied && INSTEAD_OF_IO_URING.contains(&i.name))
    };
    INTERFACES.iter().filter(is_common)
}

/// Finds an interface by name, in any case.
pub fn find(name: &str) -> Option<&'static Interface> {
    INTERFACES.iter().find(|i| i.name.eq_ignore_ascii_case(name))
}

#[test]
fn six_interfaces_are_common_and_libaio_joins_them_if_io_uring_is_denied() {
    let names = |is_denied| common(is_denied).map(|i| i.name).collect::<Vec<_>>();
    assert_eq!(names(false), COMMON);
    assert!(INSTEAD_OF_IO_URING.iter().all(|name| names(true).contains(name)) && names(true).len() == 8);
}

#[test]
fn interface_names_are_unique_and_engines_exist() {
    use model::spec::parsers;
    for (at, one) in INTERFACES.iter().enumerate() {
        assert!(INTERFACES[..at].iter().all(|i| !i.name.eq_ignore_ascii_case(one.name)), "{}", one.name);
        assert!(!one.name.contains(','), "a comma separates names in --interface: {}", one.name);
        let spec = parsers::engine(one.engine).unwrap_or_else(|e| panic!("{}: {e}", one.engine));
        let Some(entry) = ::engine::engines::find(&spec.name) else {
            assert_eq!(one.name, "fstream");
            continue;
        };
        assert!(entry.caches.contains(&one.cache), "{}", one.name);
        assert!(spec.options.keys().all(|o| entry.options.iter().any(|e| e.name == o)), "{}", one.name);
        assert_eq!(entry.max_depth > 1, one.many == Many::Depth, "{}", one.name);
    }
}
