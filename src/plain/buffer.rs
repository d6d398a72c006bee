//! A buffer as a plain tool has it: memory of the allocator, from the beginning of a page on.
//!
//! For: calls with the buffer that the real tool makes them with. Not for: operations of workloads, whose memory is on huge pages
//! (`sys::arena`): a disk takes a large request of those in fewer pieces, and is up to 1.6 times as fast. Here, as in the real tool, it is
//! another matter in each process whether the kernel found the pages of 1 MiB side by side, and so whether it is one request or two.

/// Page-aligned bytes.
#[derive(Debug)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Buffer {
    /// Bytes that are all zero; `None` where there is no memory for them.
    pub(super) fn new(bytes: usize) -> Option<Self> {
        let page = rustix::param::page_size();
        let mut memory = Vec::new();
        let whole = bytes.checked_add(page)?;
        memory.try_reserve_exact(whole).ok()?;
        memory.resize(whole, 0);
        let start = memory.as_ptr().align_offset(page);
        Some(Self { memory, start, bytes })
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}

#[test]
fn it_begins_with_a_page_and_what_cannot_be_had_is_none() {
    for bytes in [1, 512, 4096, 3 << 20] {
        let mut buffer = Buffer::new(bytes).unwrap_or_else(|| panic!("no memory"));
        assert_eq!((buffer.bytes().len(), buffer.bytes().as_ptr() as usize % 4096), (bytes, 0));
    }
    assert!(Buffer::new(usize::MAX).is_none() && Buffer::new(isize::MAX as usize - 8192).is_none());
}
