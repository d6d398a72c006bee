//! Counts the system calls of threads with the event `raw_syscalls:sys_enter`.

use crate::{Field, Format, PageLayout, Records, UnknownFormat};
use std::collections::BTreeMap;

/// Counts system calls by thread and call number.
#[derive(Debug)]
pub struct SyscallCounter {
    layout: PageLayout,
    event: u16,
    kind: Field,
    thread: Field,
    number: Field,
    counts: BTreeMap<(u32, u64), u64>,
    /// Number of records that the kernel overwrote, according to the headers of the pages.
    pub lost: u64,
}

impl SyscallCounter {
    /// Creates a counter from the text of `events/header_page` and of the event's format.
    ///
    /// # Errors
    /// The part of the kernel's text that cannot be parsed.
    pub fn new(header_page: &str, format: &str) -> Result<Self, UnknownFormat> {
        let format = Format::parse(format)?;
        Ok(Self {
            layout: PageLayout::parse(header_page)?,
            event: format.id,
            kind: format.field("common_type")?,
            thread: format.field("common_pid")?,
            number: format.field("id")?,
            counts: BTreeMap::new(),
            lost: 0,
        })
    }

    /// Returns the size of a trace buffer page in bytes.
    pub fn page_bytes(&self) -> usize {
        self.layout.bytes
    }

    /// Counts the calls of a page.
    pub fn page(&mut self, page: &[u8]) {
        let records = Records::parse(page, &self.layout);
        self.lost = self.lost.saturating_add(records.missed);
        for (_, record) in records {
            if self.kind.number(record) as u16 == self.event {
                let place = (self.thread.number(record) as u32, self.number.number(record));
                *self.counts.entry(place).or_default() += 1;
            }
        }
    }

    /// Returns the threads that made calls since the last [`Self::take`], each once.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        let mut last = None;
        self.counts.keys().map(|(thread, _)| *thread).filter(move |one| last.replace(*one) != Some(*one))
    }

    /// Returns the number of calls by thread id and call number, and resets the counts.
    pub fn take(&mut self) -> BTreeMap<(u32, u64), u64> {
        std::mem::take(&mut self.counts)
    }
}

#[test]
fn calls_are_counted_by_thread_and_number() -> Result<(), UnknownFormat> {
    use crate::tests::{HEADER, page, record};
    let format = "name: sys_enter\nID: 414\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n";
    let mut calls = SyscallCounter::new(HEADER, format)?;
    let call = |event: u16, thread: u32, number: u64| {
        let mut bytes = vec![0_u8; 64];
        bytes[..2].copy_from_slice(&event.to_ne_bytes());
        bytes[4..8].copy_from_slice(&thread.to_ne_bytes());
        bytes[8..16].copy_from_slice(&number.to_ne_bytes());
        record(1, &bytes)
    };
    let data: Vec<u8> =
        [call(414, 7, 17), call(414, 7, 17), call(9, 7, 17), call(414, 8, 0), call(414, 7, 74)].concat();
    calls.page(&page(100, 3 << 30, &data, 5));
    assert_eq!((calls.lost, calls.threads().collect::<Vec<_>>()), (5, vec![7, 8]));
    let all: Vec<_> = calls.take().into_iter().collect();
    assert_eq!(all, [((7, 17), 2), ((7, 74), 1), ((8, 0), 1)]);
    assert!(calls.take().is_empty());
    assert!(SyscallCounter::new(HEADER, "name: x\nID: 1\n").is_err());
    Ok(())
}
