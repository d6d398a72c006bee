//! System calls that move data or make them stable: their numbers on this architecture, and their names.
//!
//! For: telling calls of the kernel's trace. Not for: making any.

/// A call: its number, and its name as its manual page has it.
pub type IoCall = (i64, &'static str);

/// All of them.
pub const IO_CALLS: [IoCall; 22] = [
    (libc::SYS_read, "read"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_preadv, "preadv"),
    (libc::SYS_preadv2, "preadv2"),
    (libc::SYS_write, "write"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_pwritev2, "pwritev2"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_sync_file_range, "sync_file_range"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_io_uring_enter, "io_uring_enter"),
    (libc::SYS_io_submit, "io_submit"),
    (libc::SYS_io_getevents, "io_getevents"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_splice, "splice"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_readahead, "readahead"),
];

#[test]
fn no_number_stands_for_two_calls() {
    let mut numbers = IO_CALLS.map(|(number, _)| number);
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|two| two[0] < two[1]));
}
