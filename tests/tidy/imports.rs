//! Finds which file of a crate imports which.
//!
//! Follows paths in `use`, in code and in macros through re-exports to the file that has the item. Leaves test code out.

use crate::source::{Source, attributes, is_test};
use proc_macro2::{Spacing, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

/// Maximum number of re-exports that a name is followed through.
const HOPS: usize = 8;

/// The names of a path, as it is written in a module.
type Names = Vec<String>;

/// The files of a crate, and which file imports which.
#[derive(Default)]
pub(crate) struct Imports {
    /// The files, relative to the root of the repository.
    pub(crate) files: Vec<PathBuf>,
    /// Indices of the importing and the imported file, with the first line that imports it.
    pub(crate) edges: BTreeMap<(usize, usize), usize>,
}

/// A module, inline or in a separate file.
#[derive(Default)]
struct Module {
    file: usize,
    /// Names of the items that the module defines.
    items: BTreeSet<String>,
    /// Names that a glob import of the module brings in.
    offered: BTreeSet<String>,
    /// Paths that `use` imports into the module, by their names there.
    aliases: BTreeMap<String, Names>,
    /// Paths whose items `use ...::*` imports into the module.
    globs: Vec<Names>,
}

#[derive(Default)]
struct Crate {
    modules: BTreeMap<Names, Module>,
    files: Vec<PathBuf>,
    /// Each path in the code, with its module and line.
    paths: Vec<(Names, usize, Names)>,
}

impl Imports {
    /// Finds the imports of the crate whose first file is `entry`, in the repository at `root`.
    pub(crate) fn from_crate(root: &Path, entry: &Path) -> Self {
        let mut all = Crate::default();
        all.add_file(root, entry, &[]);
        let mut imports = Self { files: all.files.clone(), edges: BTreeMap::new() };
        for (module, line, path) in &all.paths {
            let from = all.modules[module].file;
            if let Some(to) = all.file_of(module, path, HOPS)
                && to != from
            {
                let first = imports.edges.entry((from, to)).or_insert(*line);
                *first = (*first).min(*line);
            }
        }
        imports
    }
}

impl Crate {
    fn add_file(&mut self, root: &Path, path: &Path, module: &[String]) {
        let source = Source::read(root, path);
        let file = self.files.len();
        self.files.push(source.path.clone());
        // The folder with the files of its modules.
        let stem = path.file_stem().unwrap();
        let own = ["lib", "main", "mod"].iter().any(|name| stem == *name);
        let folder = if own { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        self.add_items(root, &folder, file, &source.syntax.items, module);
    }

    fn add_items(&mut self, root: &Path, folder: &Path, file: usize, items: &[Item], module: &[String]) {
        self.modules.entry(module.to_vec()).or_default().file = file;
        let mut inside = Paths { found: Vec::new() };
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let below = [module, std::slice::from_ref(&name)].concat();
                    match &inner.content {
                        Some((_, items)) => self.add_items(root, &folder.join(&name), file, items, &below),
                        None => self.add_file(root, &file_of_module(folder, &name), &below),
                    }
                    continue;
                }
                Item::Use(item) => self.add_use(module, item),
                _ => {}
            }
            let here = self.modules.get_mut(module).unwrap();
            here.items.extend(name_of(item));
            here.offered.extend(name_of(item));
            inside.visit_item(item);
        }
        self.paths.extend(inside.found.into_iter().map(|(line, path)| (module.to_vec(), line, path)));
    }

    fn add_use(&mut self, module: &[String], item: &syn::ItemUse) {
        let module = self.modules.get_mut(module).unwrap();
        let is_public = !matches!(item.vis, Visibility::Inherited);
        for (path, name) in flat(&item.tree, &[]) {
            let Some(name) = name else {
                module.globs.push(path);
                continue;
            };
            module.offered.extend(is_public.then(|| name.clone()));
            module.aliases.insert(name, path);
        }
    }

    /// Returns the file that defines the item of a path in a module; `None` if the item is in another crate.
    fn file_of(&self, module: &Names, path: &[String], hops: usize) -> Option<usize> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module.split_last()?.1.to_vec(),
            _ => {
                rest = path;
                module.clone()
            }
        };
        let is_ours = rest.len() < path.len();
        while rest.first().is_some_and(|name| name == "super") {
            (at, rest) = (at.split_last()?.1.to_vec(), &rest[1..]);
        }
        let mut entered = is_ours;
        while let Some(below) = rest.first().and_then(|name| self.below(&at, name)) {
            (at, rest, entered) = (below, &rest[1..], true);
        }
        let here = self.modules.get(&at).filter(|_| entered)?;
        let Some(name) = rest.first().filter(|name| hops > 0 && !here.items.contains(*name)) else {
            return Some(here.file);
        };
        let follow = |path: &Names| self.file_of(&at, &[path, &rest[1..]].concat(), hops - 1);
        let by_glob = |path: &Names| {
            let to = self.file_of(&at, path, hops - 1)?;
            let has = |m: &&Module| m.file == to && m.offered.contains(name);
            let _ = self.modules.values().find(has)?;
            self.file_of(&at, &[path, rest].concat(), hops - 1)
        };
        let found = match here.aliases.get(name) {
            Some(path) => follow(path),
            None => here.globs.iter().find_map(by_glob),
        };
        // A re-export from another crate counts as an item of this file.
        Some(found.unwrap_or(here.file))
    }

    fn below(&self, module: &Names, name: &String) -> Option<Names> {
        let below = [module.as_slice(), std::slice::from_ref(name)].concat();
        self.modules.contains_key(&below).then_some(below)
    }
}

fn file_of_module(folder: &Path, name: &str) -> PathBuf {
    let flat = folder.join(name).with_extension("rs");
    if flat.exists() { flat } else { folder.join(name).join("mod.rs") }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(i) => &i.ident,
        Item::Enum(i) => &i.ident,
        Item::Fn(i) => &i.sig.ident,
        Item::Static(i) => &i.ident,
        Item::Struct(i) => &i.ident,
        Item::Trait(i) => &i.ident,
        Item::Type(i) => &i.ident,
        Item::Union(i) => &i.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns every path of a `use` with the name that it gets; `None` for `*`.
fn flat(tree: &UseTree, before: &[String]) -> Vec<(Names, Option<String>)> {
    let with = |name: &dyn ToString| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => flat(&path.tree, &with(&path.ident)),
        UseTree::Group(group) => group.items.iter().flat_map(|tree| flat(tree, before)).collect(),
        UseTree::Glob(_) => vec![(before.to_vec(), None)],
        UseTree::Name(name) if name.ident == "self" => vec![(before.to_vec(), before.last().cloned())],
        UseTree::Name(name) => vec![(with(&name.ident), Some(name.ident.to_string()))],
        UseTree::Rename(name) => vec![(with(&name.ident), Some(name.rename.to_string()))],
    }
}

/// Paths of two or more names in an item, with their lines.
struct Paths {
    found: Vec<(usize, Names)>,
}

impl Paths {
    fn add_tokens(&mut self, tokens: TokenStream) {
        let (mut names, mut line, mut colons) = (Names::new(), 0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.add(line, &mut names);
                        line = ident.span().start().line;
                    }
                    names.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(p)
                    if p.as_char() == ':' && (colons == 1 || p.spacing() == Spacing::Joint) =>
                {
                    colons += 1;
                }
                other => {
                    self.add(line, &mut names);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.add(line, &mut names);
    }

    fn add(&mut self, line: usize, names: &mut Names) {
        let names = std::mem::take(names);
        if names.len() > 1 {
            self.found.push((line, names));
        }
    }
}

impl<'s> Visit<'s> for Paths {
    fn visit_item(&mut self, item: &'s Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'s syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'s syn::ItemUse) {
        let line = item.use_token.span.start().line;
        self.found.extend(flat(&item.tree, &[]).into_iter().map(|(path, _)| (line, path)));
    }

    fn visit_path(&mut self, path: &'s syn::Path) {
        let line = path.segments.first().map_or(0, |s| s.ident.span().start().line);
        self.add(line, &mut path.segments.iter().map(|s| s.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'s syn::Macro) {
        self.visit_path(&call.path);
        self.add_tokens(call.tokens.clone());
    }

    // `pub(in crate::x)` takes nothing from there.
    fn visit_visibility(&mut self, _: &'s Visibility) {}
}
