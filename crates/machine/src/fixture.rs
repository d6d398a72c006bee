//! Trees of kernel files for the unit tests of this crate, recorded or invented.

use std::fs;
use std::path::Path;

/// Writes a file of the tree, and creates its directories. A leading slash means the tree's root.
pub(crate) fn put(tree: &Path, path: &str, text: &str) {
    let path = below(tree, path);
    fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Creates a symbolic link in the tree, and its directories. A leading slash of `at` means the tree's root.
pub(crate) fn link(tree: &Path, target: &str, at: &str) {
    let at = below(tree, at);
    std::os::unix::fs::symlink(target, &at).unwrap_or_else(|e| panic!("{}: {e}", at.display()));
}

fn below(tree: &Path, path: &str) -> std::path::PathBuf {
    let path = tree.join(path.trim_start_matches('/'));
    path.parent().map(fs::create_dir_all);
    path
}
