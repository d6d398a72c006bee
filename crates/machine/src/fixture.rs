//! Trees of kernel files for tests: recorded elsewhere or thought out, and read as if they were here.
//!
//! For: the unit tests of this crate. Not for: anything that is built into the program.

use std::fs;
use std::path::Path;

/// Writes a file of the tree, and the directories that lead to it. A leading slash means the tree's root.
pub(crate) fn put(tree: &Path, path: &str, text: &str) {
    let path = below(tree, path);
    fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Makes a symbolic link in the tree, and the directories that lead to it. A leading slash of `at` means the tree's root.
pub(crate) fn link(tree: &Path, target: &str, at: &str) {
    let at = below(tree, at);
    std::os::unix::fs::symlink(target, &at).unwrap_or_else(|e| panic!("{}: {e}", at.display()));
}

fn below(tree: &Path, path: &str) -> std::path::PathBuf {
    let path = tree.join(path.trim_start_matches('/'));
    path.parent().map(fs::create_dir_all);
    path
}
