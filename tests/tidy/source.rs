//! Lists the source files, parses them, and distinguishes test code from other code.

use proc_macro2::{TokenStream, TokenTree};
use std::path::{Path, PathBuf};
use syn::{Attribute, Item};

/// A parsed Rust file.
pub(crate) struct Source {
    /// Path relative to the root of the repository.
    pub(crate) path: PathBuf,
    pub(crate) syntax: syn::File,
}

impl Source {
    /// Reads every Rust file in and below these folders of the repository, in the order of their paths.
    pub(crate) fn all(root: &Path, folders: &[&str]) -> Vec<Self> {
        let mut paths = Vec::new();
        for folder in folders {
            list(&root.join(folder), &mut paths);
        }
        paths.sort();
        paths.iter().map(|path| Self::read(root, path)).collect()
    }

    /// Reads a file of the repository at `root`.
    pub(crate) fn read(root: &Path, path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let syntax = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self { path: path.strip_prefix(root).unwrap().to_owned(), syntax }
    }
}

fn list(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            list(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// Whether an item is compiled only for tests.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let of_tests = || {
            attribute
                .meta
                .require_list()
                .is_ok_and(|list| has(&list.tokens, "test") && !has(&list.tokens, "not"))
        };
        path.is_ident("test") || path.is_ident("cfg") && of_tests()
    })
}

fn has(tokens: &TokenStream, word: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => has(&group.stream(), word),
        _ => false,
    })
}

/// The attributes of an item of any kind.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}
