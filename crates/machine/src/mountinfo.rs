//! `/proc/self/mountinfo` (kernel `Documentation/filesystems/proc.rst`, section 3.5).
//!
//! For: the mounts that this process sees. Not for: deciding which one a path is on.

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its id, which statx names too.
    pub id: u64,
    /// `major:minor` of `st_dev`.
    pub number: String,
    /// Where it is mounted.
    pub point: String,
    /// Options of the mount.
    pub options: String,
    /// Type of the file system.
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// Options of the file system.
    pub super_options: String,
}

/// Reads the whole file; lines that are not of the format are passed over.
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // Optional fields stand between the options and the hyphen, so the line is read from both sides of it.
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let id = left.next()?.parse().ok()?;
    let number = left.nth(1)?.to_owned();
    let point = unescape(left.nth(1)?);
    let options = left.next()?.to_owned();
    let mut right = right.split(' ');
    let kind = right.next()?.to_owned();
    let source = unescape(right.next()?);
    let super_options = right.next().unwrap_or_default().to_owned();
    Some(Mount { id, number, point, options, kind, source, super_options })
}

/// Undoes the kernel's octal escapes of space, tab, line feed and backslash.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let octal = (bytes[i] == b'\\').then(|| bytes.get(i + 1..i + 4)).flatten();
        let code =
            octal.and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| u8::from_str_radix(d, 8).ok());
        out.push(code.unwrap_or(bytes[i]));
        i += if code.is_some() { 4 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Mount {
    /// Value of an option such as `upperdir=/x` among the file system's.
    pub fn super_option(&self, key: &str) -> Option<&str> {
        self.super_options.split(',').find_map(|o| o.strip_prefix(key)?.strip_prefix('='))
    }
}

#[test]
fn mounts_are_read_with_optional_fields_and_escapes() {
    let text = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,errors=continue\n\
                22 1 0:21 / /proc rw - proc proc rw\njunk\n1 2 3\n";
    let mounts = parse(text);
    assert_eq!(mounts.len(), 2);
    assert_eq!((mounts[0].id, mounts[0].point.as_str()), (36, "/mnt 2"));
    assert_eq!(
        (mounts[0].number.as_str(), mounts[0].kind.as_str(), mounts[0].source.as_str()),
        ("98:0", "ext3", "/dev/root")
    );
    assert_eq!(mounts[0].super_option("errors"), Some("continue"));
    assert_eq!(unescape("a\\04"), "a\\04");
    assert_eq!(unescape("\\999\\134"), "\\999\\");
}
