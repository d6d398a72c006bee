//! Makes the table of the guide's chapters, which `fathom help` prints: part, title, path and text of each page in `docs/SUMMARY.md`.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=docs");
    let docs = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("docs");
    let mut table = String::from("&[\n");
    let mut part = String::new();
    for line in fs::read_to_string(docs.join("SUMMARY.md"))?.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            title.clone_into(&mut part);
        } else if line == "---" {
            part.clear();
        }
        let link = line.strip_prefix("- [").and_then(|rest| rest.split_once(".md)"));
        let Some((title, path)) = link.and_then(|(link, _)| link.split_once("](")) else { continue };
        let file = docs.join(path).with_extension("md");
        // `tests/tidy` reports a page that is missing.
        if file.exists() {
            let file = file.to_string_lossy();
            let chapter = format!("part: {part:?}, title: {title:?}, path: {path:?}");
            writeln!(table, "    Chapter {{ {chapter}, text: include_str!({file:?}) }},")
                .map_err(io::Error::other)?;
        }
    }
    let out = Path::new(&env::var("OUT_DIR").map_err(io::Error::other)?).join("chapters.rs");
    fs::write(out, table + "]\n")
}
