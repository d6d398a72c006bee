//! What a job file of fio's asks of the machine: its variables, `$ncpus` and the like, and files that it includes.
//!
//! For: values that stand in a text for what is around it. Not for: what the text means.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use sys::open_file;

/// Largest file that is included, in bytes.
const MAX_INCLUDED: u64 = crate::MAX_FILE_BYTES as u64;

/// What a text asks of its surroundings.
pub(super) trait Around {
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// The number behind `$ncpus`, `$pagesize` or `$mb_memory`.
    fn number(&self, keyword: &str) -> Result<u64, String>;
    /// The first bytes of a file.
    fn bytes(&self, name: &str, most: usize) -> Result<Vec<u8>, String>;
    /// Bytes of a file or block device.
    fn length(&self, name: &str) -> Result<u64, String>;
    /// Whether it is a block device.
    fn is_device(&self, name: &str) -> bool;
    /// Whether it is a directory.
    fn is_directory(&self, name: &str) -> bool;
    /// The text of a file that the file `by` includes.
    fn include(&self, by: &str, name: &str) -> Result<String, String>;
    /// The NUMA nodes that have memory, such as `0-1`.
    fn nodes(&self) -> Result<String, String>;
    /// The CPUs of one of them, such as `0-3,8`; empty where it has none.
    fn cpus_of_node(&self, node: u32) -> Result<String, String>;
}

/// This machine.
pub(super) struct Here;

impl Around for Here {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn number(&self, keyword: &str) -> Result<u64, String> {
        match keyword {
            "$pagesize" => Ok(rustix::param::page_size() as u64),
            "$ncpus" => read("/sys/devices/system/cpu/online").and_then(|text| cpus(&text)),
            _ => read("/proc/meminfo").and_then(|text| memory_mib(&text)),
        }
    }

    fn bytes(&self, name: &str, most: usize) -> Result<Vec<u8>, String> {
        let file = open_file::open(Path::new(name)).map_err(|e| e.to_string())?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes)
    }

    fn length(&self, name: &str) -> Result<u64, String> {
        let facts = std::fs::metadata(name).map_err(|e| e.to_string())?;
        if facts.is_file() {
            return Ok(facts.len());
        }
        if !facts.file_type().is_block_device() {
            return Err("it is neither file nor block device".into());
        }
        let device = std::fs::File::open(name).and_then(|mut device| device.seek(SeekFrom::End(0)));
        device.map_err(|e| e.to_string())
    }

    fn is_device(&self, name: &str) -> bool {
        std::fs::metadata(name).is_ok_and(|facts| facts.file_type().is_block_device())
    }

    fn is_directory(&self, name: &str) -> bool {
        Path::new(name).is_dir()
    }

    fn include(&self, by: &str, name: &str) -> Result<String, String> {
        let path = Path::new(by).parent().unwrap_or(Path::new("")).join(name);
        let mut text = String::new();
        let file = open_file::open(&path).map_err(|e| e.to_string())?;
        file.take(MAX_INCLUDED + 1).read_to_string(&mut text).map_err(|e| e.to_string())?;
        if text.len() as u64 > MAX_INCLUDED {
            return Err(format!("it has more than {MAX_INCLUDED} bytes"));
        }
        Ok(text)
    }

    fn nodes(&self) -> Result<String, String> {
        read(&format!("{NODES}/has_memory")).map(|list| list.trim().into())
    }

    fn cpus_of_node(&self, node: u32) -> Result<String, String> {
        match read(&format!("{NODES}/node{node}/cpulist")) {
            Ok(list) => Ok(list.trim().into()),
            Err(_) => Err(format!("there is no NUMA node {node}; type one of {}", self.nodes()?)),
        }
    }
}

/// Where the kernel shows its NUMA nodes.
const NODES: &str = "/sys/devices/system/node";

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))
}

/// How many CPUs a list such as `0-3,8` names.
fn cpus(list: &str) -> Result<u64, String> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.trim()
        .split(',')
        .map(count)
        .sum::<Option<u64>>()
        .ok_or_else(|| format!("'{list}' is no list of CPUs"))
}

fn memory_mib(text: &str) -> Result<u64, String> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib / 1024).ok_or_else(|| "/proc/meminfo has no MemTotal".into())
}

#[test]
fn kernel_text_is_counted() {
    assert_eq!((cpus("0-3,8\n"), cpus("0")), (Ok(5), Ok(1)));
    assert!(cpus("").is_err() && cpus("3-1").is_err() && cpus("0-18446744073709551615").is_err());
    assert_eq!(memory_mib("MemTotal:       2048 kB\n"), Ok(2));
    assert!(memory_mib("").is_err());
}
