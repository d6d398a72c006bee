//! Memory for the program, or an end in words.
//!
//! For: a limit on memory (`ulimit -v`) that ends the program as any other refusal does, where Rust would abort it. Not for: buffers
//! of operations, which are mapped and whose refusal is an error ([`crate::arena`]).

use std::alloc::{GlobalAlloc, Layout, System};

/// The exit code where the machine refuses.
const REFUSED: i32 = 3;
const WORDS: &[u8] = b"fathom: no memory is left for this process (`ulimit -v` shows its limit); give it more, or use a smaller \
--depth, --workers or --bs\n";

/// The allocator of the system, which never refuses.
#[derive(Debug)]
pub struct OrEnd;

// SAFETY: every call goes to the allocator of the system with the arguments that it was given, and what that answers is given back
// unless it is a refusal, behind which nothing comes.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        or_end(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        or_end(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        or_end(unsafe { System.realloc(memory, layout, bytes) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn or_end(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end();
    }
    memory
}

#[cold]
fn end() -> ! {
    // SAFETY: the bytes are constant and outlive the call. `_exit` runs no code of ours, which might ask for memory again; files
    // without a name go with the process, and others are found by the next call.
    unsafe {
        let _ = libc::write(libc::STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len());
        libc::_exit(REFUSED)
    }
}
