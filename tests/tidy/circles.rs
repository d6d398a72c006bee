//! Finds files of a crate that import each other in a circle: none of them can be read, tested or moved without the others.
//!
//! A folder's `mod.rs` may form a circle with its own files, because both are one unit for all other files.

use crate::Untidy;
use crate::imports::Imports;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::path::Path;

/// Maximum number of circles that a message shows.
const SHOWN: usize = 12;

type Files = BTreeSet<usize>;

/// The loops of each crate of the repository at `root`.
pub(crate) fn find(root: &Path) -> Vec<Untidy> {
    let mut crates: Vec<_> =
        std::fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap().path()).collect();
    crates.push(root.to_owned());
    crates.sort();
    crates.iter().filter_map(|dir| circle_in_crate(root, dir)).collect()
}

fn circle_in_crate(root: &Path, dir: &Path) -> Option<Untidy> {
    let entry = ["src/lib.rs", "src/main.rs"].iter().map(|name| dir.join(name)).find(|path| path.exists())?;
    let imports = Imports::from_crate(root, &entry);
    let loops = loops(&imports, &(0..imports.files.len()).collect());
    let largest = loops.iter().max_by_key(|files| files.len())?;
    let name = entry.parent()?.strip_prefix(root).ok()?.display().to_string();
    Some(Untidy {
        key: format!("circle {name}"),
        figure: largest.len(),
        sentence: sentence(&name, &imports, &loops),
    })
}

/// Returns the largest sets of files in which every file imports every other one, directly or through others. Leaves out circles between a
/// folder's `mod.rs` and its own files.
fn loops(imports: &Imports, files: &Files) -> Vec<Files> {
    let reached: BTreeMap<usize, Files> = files.iter().map(|f| (*f, reached(imports, files, *f))).collect();
    let mut seen = Files::new();
    let mut found = Vec::new();
    for file in files {
        let all: Files = reached[file].iter().copied().filter(|to| reached[to].contains(file)).collect();
        if all.is_empty() || !seen.insert(*file) {
            continue;
        }
        seen.extend(&all);
        match head(imports, &all) {
            Some(head) => found.extend(loops(imports, &all.iter().copied().filter(|f| *f != head).collect())),
            None => found.push(all),
        }
    }
    found
}

/// Returns the files that a file imports, directly or through others of `files`.
fn reached(imports: &Imports, files: &Files, from: usize) -> Files {
    let (mut found, mut ahead) = (Files::new(), vec![from]);
    while let Some(file) = ahead.pop() {
        ahead.extend(next(imports, files, file).filter(|to| found.insert(*to)));
    }
    found
}

fn next<'i>(imports: &'i Imports, files: &'i Files, from: usize) -> impl Iterator<Item = usize> + 'i {
    let edges = imports.edges.range((from, 0)..(from + 1, 0));
    edges.map(|((_, to), _)| *to).filter(|to| files.contains(to))
}

/// Returns the file that heads the folder of all others: its `mod.rs`, or `x.rs` next to the folder `x`. `None` if there is no such file.
fn head(imports: &Imports, files: &Files) -> Option<usize> {
    files.iter().copied().find(|head| {
        let path = &imports.files[*head];
        let named = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| path.ends_with(name));
        let folder = if named { path.parent().unwrap_or(path).to_owned() } else { path.with_extension("") };
        files.iter().all(|file| file == head || imports.files[*file].starts_with(&folder))
    })
}

fn sentence(name: &str, imports: &Imports, loops: &[Files]) -> String {
    let sizes: Vec<String> = loops.iter().map(|files| files.len().to_string()).collect();
    let mut text =
        format!("{name}: files import each other in circles (files per circle: {}):", sizes.join(", "));
    let mut circles: Vec<Vec<usize>> = loops
        .iter()
        .flat_map(|files| files.iter().filter_map(|file| shortest(imports, files, *file)))
        .collect();
    circles.sort_by_key(|circle| (circle.len(), circle.clone()));
    circles.dedup();
    for circle in circles.iter().take(SHOWN) {
        text += "\n ";
        for (at, from) in circle.iter().enumerate() {
            let to = circle[(at + 1) % circle.len()];
            let line = imports.edges[&(*from, to)];
            let _ = write!(text, " {}:{line} imports", imports.files[*from].display());
        }
        let _ = write!(text, " {}", imports.files[circle[0]].display());
    }
    if circles.len() > SHOWN {
        let _ = write!(text, "\n  and {} more", circles.len() - SHOWN);
    }
    text
}

/// Returns the shortest circle through a file, starting at the file with the lowest index.
fn shortest(imports: &Imports, files: &Files, start: usize) -> Option<Vec<usize>> {
    let mut before = BTreeMap::new();
    let mut ahead = VecDeque::from([start]);
    while let Some(file) = ahead.pop_front() {
        for to in next(imports, files, file) {
            if to == start {
                let mut circle: Vec<usize> =
                    std::iter::successors(Some(file), |f| before.get(f).copied()).collect();
                circle.reverse();
                let first = circle.iter().enumerate().min_by_key(|(_, file)| **file)?.0;
                circle.rotate_left(first);
                return Some(circle);
            }
            if let std::collections::btree_map::Entry::Vacant(free) = before.entry(to) {
                free.insert(file);
                ahead.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the circles found in a crate of these files.
    fn circles(files: &[(&str, &str)]) -> Vec<Untidy> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join("crates/one/src").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        find(root.path())
    }

    #[track_caller]
    fn has(files: &[(&str, &str)], figure: usize, sentence: &str) {
        let found = circles(files);
        assert_eq!(
            found.iter().map(|u| (u.key.as_str(), u.figure)).collect::<Vec<_>>(),
            [("circle crates/one/src", figure)]
        );
        assert!(found[0].sentence.contains(sentence), "{}", found[0].sentence);
    }

    const LIB: (&str, &str) = ("lib.rs", "mod a;\nmod b;\nmod c;\n");
    const C: (&str, &str) = ("c.rs", "use crate::a::A;\npub struct C(A);\n");

    #[test]
    fn two_files_that_import_each_other_are_a_circle_and_their_importers_are_not() {
        let a = ("a.rs", "//! Says.\nuse std::fs;\nuse crate::{b::{self, B}, c};\npub struct A;\n");
        let b = ("b.rs", "use super::a::A;\npub struct B(A);\n");
        let none = ("c.rs", "pub struct C;\n");
        let both = "crates/one/src/a.rs:3 imports crates/one/src/b.rs:1 imports crates/one/src/a.rs";
        has(&[LIB, a, b, none], 2, both);
        has(&[LIB, a, b, C], 3, both);
        let a = ("a.rs", "pub struct A;\n");
        assert_eq!(circles(&[LIB, a, b, C]), []);
    }

    #[test]
    fn paths_in_code_in_macros_and_through_a_re_export_count_too() {
        let a = |code: &str| format!("pub struct A;\npub fn f() {{ {code} }}\n");
        for code in
            ["crate::c::C::new();", "let _ = vec![1, super::c::new(2)];", "use crate::c as d; d::new();"]
        {
            has(&[LIB, ("a.rs", &a(code)), ("b.rs", ""), C], 2, "a.rs:2 imports crates/one/src/c.rs:1");
        }
        let own = ("b.rs", "use crate::{A, B};\npub struct B(A);\n");
        for lib in
            ["mod a;\nmod b;\npub use a::A;\npub use b::B;", "mod a;\nmod b;\npub use a::*;\npub use b::*;"]
        {
            has(&[("lib.rs", lib), ("a.rs", "use crate::B;\npub struct A;\n"), own], 2, "b.rs:1 imports");
        }
    }

    #[test]
    fn tests_and_a_folder_with_its_own_files_are_no_circle() {
        let test = "pub struct A;\n#[cfg(test)]\nmod tests {\n use crate::c::C;\n}\n#[test]\nfn t() { crate::c::f(); }\n";
        assert_eq!(circles(&[LIB, ("a.rs", test), ("b.rs", ""), C]), []);
        let lib = ("lib.rs", "mod folder;\nmod c;");
        let head =
            ("folder/mod.rs", "mod a;\nmod b;\npub use a::A;\npub struct All(b::B);\npub struct Own;\n");
        let a = ("folder/a.rs", "use super::Own;\npub struct A(Own);\n");
        let b = ("folder/b.rs", "use super::Own;\npub struct B(Own);\n");
        assert_eq!(circles(&[lib, head, a, b, ("c.rs", "use crate::folder::A;\n")]), []);
        let a = ("folder/a.rs", "use super::{Own, b::B};\nuse crate::c;\npub struct A(Own);\n");
        let c = ("c.rs", "use crate::folder::A;\n");
        has(&[lib, head, a, b, c], 4, "folder/a.rs:2 imports crates/one/src/c.rs:1 imports");
        let b = ("folder/b.rs", "use super::a::A;\npub struct B(A);\n");
        has(&[lib, head, a, b, ("c.rs", "")], 2, "folder/a.rs:1 imports crates/one/src/folder/b.rs:1");
    }
}
