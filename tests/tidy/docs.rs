//! Finds doc comments that only repeat the name of their item, such as `/// The device.` for `device`, and doc comments that mean nothing
//! without the item above, such as `/// The same of writes.`. The compiler finds missing doc comments.

use crate::Untidy;
use crate::source::Source;
use proc_macro2::Ident;
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Words that add nothing to a name.
const EMPTY: &[&str] =
    &["a", "an", "and", "are", "as", "at", "by", "for", "in", "is", "its", "of", "on", "the", "this", "to"];

/// Words after "The same" that refer to the item above.
const REFERRING: &[&str] = &[
    "and", "as", "at", "before", "between", "by", "for", "from", "if", "in", "inside", "of", "on", "once",
    "out", "over", "that", "through", "to", "under", "until", "when", "where", "while", "with", "within",
    "without",
];

/// Finds the doc comments of a file that repeat a name or mean nothing alone.
pub(crate) fn find(source: &Source) -> Option<Untidy> {
    let path = source.path.display().to_string();
    let mut docs = Docs { path: path.clone(), owner: None, found: Vec::new() };
    docs.visit_file(&source.syntax);
    let (key, figure) = (format!("docs {path}"), docs.found.len());
    (figure > 0).then(|| Untidy { key, figure, sentence: docs.found.join("\n") })
}

struct Docs {
    path: String,
    /// The struct, enum, trait or variant whose items are being visited; `None` in an `impl`.
    owner: Option<String>,
    found: Vec<String>,
}

impl Docs {
    fn check_doc(&mut self, attributes: &[Attribute], name: &Ident) {
        let comment: Vec<String> = attributes.iter().filter_map(doc).collect();
        let full = self.owner.iter().fold(name.to_string(), |name, owner| format!("{owner}::{name}"));
        let text = comment.join(" ");
        let what = match text.trim() {
            "" => return,
            text if only_repeats(text, &full) => "only repeats the name",
            text if refers(text) => "means nothing without the item above it",
            _ => return,
        };
        let line = name.span().start().line;
        self.found.push(format!("{}:{line} {full}: '{}' {what}", self.path, text.trim()));
    }

    fn within(&mut self, owner: &Ident, visit: impl FnOnce(&mut Self)) {
        let before = self.owner.replace(owner.to_string());
        visit(self);
        self.owner = before;
    }
}

fn doc(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether each word of the doc comment is in the name, or is one of [`EMPTY`].
fn only_repeats(doc: &str, name: &str) -> bool {
    let (doc, name) = (split_words(doc), split_words(name));
    !doc.is_empty() && doc.iter().all(|word| name.contains(word))
}

/// Whether a doc comment refers to the item above: `The same of writes.`
fn refers(doc: &str) -> bool {
    doc.strip_prefix("The same").is_some_and(|rest| {
        rest.starts_with([',', '.', ';', ':'])
            || rest
                .split_whitespace()
                .next()
                .is_some_and(|word| REFERRING.contains(&word.trim_end_matches(',')))
    })
}

/// Splits a text into words, in lower case and without a plural `s`; `TwoWords` and `two_words` are two words.
fn split_words(text: &str) -> BTreeSet<String> {
    let mut spaced = String::new();
    let mut before = ' ';
    for c in text.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.extend(c.to_lowercase());
        before = c;
    }
    let all = spaced.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty() && !EMPTY.contains(w));
    all.map(|word| word.strip_suffix('s').unwrap_or(word).to_owned()).collect()
}

impl<'s> Visit<'s> for Docs {
    fn visit_item_struct(&mut self, item: &'s syn::ItemStruct) {
        self.check_doc(&item.attrs, &item.ident);
        self.within(&item.ident, |d| visit::visit_item_struct(d, item));
    }

    fn visit_item_enum(&mut self, item: &'s syn::ItemEnum) {
        self.check_doc(&item.attrs, &item.ident);
        self.within(&item.ident, |d| visit::visit_item_enum(d, item));
    }

    fn visit_item_trait(&mut self, item: &'s syn::ItemTrait) {
        self.check_doc(&item.attrs, &item.ident);
        self.within(&item.ident, |d| visit::visit_item_trait(d, item));
    }

    fn visit_field(&mut self, field: &'s syn::Field) {
        if let Some(name) = &field.ident {
            self.check_doc(&field.attrs, name);
        }
    }

    fn visit_variant(&mut self, variant: &'s syn::Variant) {
        self.check_doc(&variant.attrs, &variant.ident);
        self.within(&variant.ident, |d| visit::visit_variant(d, variant));
    }

    fn visit_item_fn(&mut self, item: &'s syn::ItemFn) {
        self.check_doc(&item.attrs, &item.sig.ident);
    }

    fn visit_impl_item_fn(&mut self, item: &'s syn::ImplItemFn) {
        self.check_doc(&item.attrs, &item.sig.ident);
    }

    fn visit_trait_item_fn(&mut self, item: &'s syn::TraitItemFn) {
        self.check_doc(&item.attrs, &item.sig.ident);
    }

    fn visit_item_const(&mut self, item: &'s syn::ItemConst) {
        self.check_doc(&item.attrs, &item.ident);
    }

    fn visit_item_type(&mut self, item: &'s syn::ItemType) {
        self.check_doc(&item.attrs, &item.ident);
    }
}

#[test]
fn a_doc_comment_must_say_more_than_the_name() {
    let text = "/// A job of the plan.\npub struct PlanJob {\n    /// The targets.\n    pub target: u8,\n    /// The target, opened.\n    \
                pub other: u8,\n}\n/// Runs.\nfn run() {}\n/// Runs it to the end.\nfn run_on() {}\n";
    let source = Source { path: "src/x.rs".into(), syntax: syn::parse_file(text).unwrap() };
    let found = find(&source).unwrap();
    assert_eq!((found.key.as_str(), found.figure), ("docs src/x.rs", 3));
    assert_eq!(
        found.sentence.lines().collect::<Vec<_>>(),
        [
            "src/x.rs:2 PlanJob: 'A job of the plan.' only repeats the name",
            "src/x.rs:4 PlanJob::target: 'The targets.' only repeats the name",
            "src/x.rs:9 run: 'Runs.' only repeats the name",
        ]
    );
}

#[test]
fn a_doc_comment_must_say_something_without_the_one_above() {
    let reported = ["The same of writes.", "The same, in ns.", "The same.", "The same where it is known."];
    assert!(reported.iter().all(|doc| refers(doc)));
    let accepted = ["The same work at each layer.", "The samest.", "Bytes of the same file."];
    assert!(!accepted.iter().any(|doc| refers(doc)));
}
