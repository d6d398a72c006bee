//! Links between the documents, and the table of contents of the guide.
//!
//! Each relative link must lead to a file that exists, and its anchor to a heading of that page. Each page below `docs/` must be listed in
//! `docs/SUMMARY.md` once: mdBook leaves out other pages, and `fathom help` does not print them.

use std::path::{Path, PathBuf};

/// All documents of the repository: those at its root, and those in these folders.
pub(crate) fn documents(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.join("docs"), root.join("examples"), root.join("packaging")];
    let mut found = pages_in(root, &mut Vec::new());
    while let Some(folder) = folders.pop() {
        found.extend(pages_in(&folder, &mut folders));
    }
    found.sort();
    found
}

/// The Markdown files of a folder. Adds its subfolders to `folders`.
fn pages_in(folder: &Path, folders: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let (inside, files): (Vec<PathBuf>, Vec<PathBuf>) =
        entries.map(|entry| entry.unwrap().path()).partition(|path| path.is_dir());
    folders.extend(inside);
    files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "md")).collect()
}

/// The lines of a page that are not code, without code in backquotes.
fn prose(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    text.lines().filter_map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        // Every second part is between backquotes.
        let plain = || line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        (!fenced && !is_fence && !line.starts_with("    ")).then(plain)
    })
}

/// The targets of the links of a page.
fn links(text: &str) -> Vec<String> {
    let lines: Vec<String> = prose(text).collect();
    let starts = lines.iter().flat_map(|line| line.split("](").skip(1));
    starts.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

/// The anchors of a page: its headings in lower case, with `-` for spaces and without other punctuation.
fn anchors(text: &str) -> Vec<String> {
    let mut fenced = false;
    let headings = text.lines().filter(|line| {
        fenced ^= line.starts_with("```");
        !fenced && line.starts_with('#')
    });
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    headings.map(anchor).collect()
}

/// Why a link of a page leads nowhere, if so.
fn broken(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_owned() } else { page.parent()?.join(path) };
    if !target.exists() {
        return Some(format!("{} links to {link}: there is no such file", page.display()));
    }
    let known = || anchors(&std::fs::read_to_string(&target).unwrap());
    let is_missing = !anchor.is_empty() && !known().iter().any(|known| known == anchor);
    is_missing.then(|| format!("{} links to {link}: the page has no such heading", page.display()))
}

#[test]
fn every_link_of_a_document_leads_to_a_page_and_a_heading() {
    let pages = documents(Path::new(env!("CARGO_MANIFEST_DIR")));
    let broken: Vec<String> = pages
        .iter()
        .flat_map(|page| {
            links(&std::fs::read_to_string(page).unwrap()).into_iter().map(move |link| (page, link))
        })
        .filter_map(|(page, link)| broken(page, &link))
        .collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    let text = "See [it](a.md#b)\nand `[x](no.md)`.\n\n    [y](no.md)\n\n```\n# No\n[z](no.md)\n```\n## A `b`, (c)\n![p](d.png)\n";
    assert_eq!(links(text), ["a.md#b", "d.png"]);
    assert_eq!(anchors(text), ["a-b-c"]);
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    assert!(self::broken(&here, "#no-such-heading").is_some() && self::broken(&here, "none.md").is_some());
    assert_eq!(self::broken(&here, "#install"), None);
}

#[test]
fn every_page_of_the_guide_is_in_its_table_of_contents_once() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let summary = docs.join("SUMMARY.md");
    let mut listed: Vec<PathBuf> =
        links(&std::fs::read_to_string(&summary).unwrap()).iter().map(|link| docs.join(link)).collect();
    listed.sort();
    let mut pages = documents(Path::new(env!("CARGO_MANIFEST_DIR")));
    pages.retain(|page| page.starts_with(&docs) && *page != summary);
    let unlisted: Vec<&PathBuf> = pages.iter().filter(|page| !listed.contains(page)).collect();
    assert!(unlisted.is_empty(), "not in docs/SUMMARY.md: {unlisted:?}");
    assert_eq!(listed, pages, "docs/SUMMARY.md lists a page twice, or one that does not exist");
}
