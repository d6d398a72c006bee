//! Numbers of errors, by the names that Linux has for them.
//!
//! For: those that I/O on files and devices ends with, and the first 34, which every Unix has. Not for: why a device fails.

/// Number, name, and what it says of I/O where a name alone says too little. The numbers are those of all architectures in this range
/// but for the last few, which Linux has otherwise on MIPS, SPARC, Alpha and PA-RISC alone (`include/uapi/asm-generic/errno.h`).
const NAMES: [(i32, &str, &str); 46] = [
    (1, "EPERM", ""),
    (2, "ENOENT", ""),
    (3, "ESRCH", ""),
    (4, "EINTR", ""),
    (5, "EIO", "input/output error"),
    (6, "ENXIO", "no such device"),
    (7, "E2BIG", ""),
    (8, "ENOEXEC", ""),
    (9, "EBADF", "not open for this"),
    (10, "ECHILD", ""),
    (11, "EAGAIN", "would have to wait"),
    (12, "ENOMEM", "no memory"),
    (13, "EACCES", ""),
    (14, "EFAULT", ""),
    (15, "ENOTBLK", ""),
    (16, "EBUSY", "in use"),
    (17, "EEXIST", ""),
    (18, "EXDEV", ""),
    (19, "ENODEV", "the device is gone"),
    (20, "ENOTDIR", ""),
    (21, "EISDIR", ""),
    (22, "EINVAL", "invalid argument"),
    (23, "ENFILE", ""),
    (24, "EMFILE", ""),
    (25, "ENOTTY", ""),
    (26, "ETXTBSY", ""),
    (27, "EFBIG", "file too large"),
    (28, "ENOSPC", "no space left"),
    (29, "ESPIPE", ""),
    (30, "EROFS", "read-only"),
    (31, "EMLINK", ""),
    (32, "EPIPE", ""),
    (33, "EDOM", ""),
    (34, "ERANGE", ""),
    (52, "EBADE", "reservation conflict"),
    (61, "ENODATA", "medium error"),
    (62, "ETIME", "timed out"),
    (67, "ENOLINK", "the path to the device failed"),
    (74, "EBADMSG", "checksum error"),
    (84, "EILSEQ", "data that are not what should be there"),
    (95, "EOPNOTSUPP", "not supported"),
    (110, "ETIMEDOUT", "timed out"),
    (116, "ESTALE", "the server has no such file any more"),
    (117, "EUCLEAN", "the file system is damaged"),
    (121, "EREMOTEIO", "target error"),
    (122, "EDQUOT", "quota exceeded"),
];

/// As a sentence names it: `EIO, input/output error`, or `errno 250` where it has no name here.
pub fn describe_errno(errno: i32) -> String {
    match NAMES.iter().find(|(number, ..)| *number == errno) {
        Some((_, name, "")) => (*name).into(),
        Some((_, name, words)) => format!("{name}, {words}"),
        None => format!("errno {errno}"),
    }
}

/// As it is typed: `EIO`, or its number where it has no name here.
pub fn name(errno: i32) -> String {
    let named = NAMES.iter().find(|(number, ..)| *number == errno);
    named.map_or_else(|| errno.to_string(), |(_, name, _)| (*name).into())
}

/// The number of a name or of a number as text; `None` for what is neither.
pub fn number(text: &str) -> Option<i32> {
    let named = NAMES.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(text));
    let typed = || text.parse().ok().filter(|number| (1..=MOST).contains(number));
    named.map(|(number, ..)| *number).or_else(typed)
}

/// The largest number that the kernel answers with (`MAX_ERRNO`).
const MOST: i32 = 4095;

#[test]
fn names_lead_to_numbers_and_back() {
    for (errno, named, _) in NAMES {
        assert_eq!((name(errno).as_str(), number(named)), (named, Some(errno)));
        assert_eq!(number(&errno.to_string()), Some(errno));
        // The C library knows each of them.
        assert!(!std::io::Error::from_raw_os_error(errno).to_string().contains("Unknown"), "{named}");
    }
    assert_eq!(
        (number("eio"), number("EIOX"), number("0"), number("-5"), number("4096")),
        (Some(5), None, None, None, None)
    );
    assert_eq!(
        (describe_errno(5).as_str(), describe_errno(2).as_str(), describe_errno(250).as_str()),
        ("EIO, input/output error", "ENOENT", "errno 250")
    );
}
