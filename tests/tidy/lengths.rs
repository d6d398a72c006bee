//! Long functions and long files.
//!
//! For: what nobody reads at once. Not for: files that are mostly a table, which are as long as what they list.

use crate::Untidy;
use crate::source::Source;
use proc_macro2::Span;
use syn::token::Brace;
use syn::visit::{self, Visit};
use syn::{Item, Type};

/// Lines of a function, from its name to its last brace.
const FUNCTION: usize = 70;
/// Lines of a file, with its tests.
const FILE: usize = 500;

/// What is longer than it may be.
pub(crate) fn find(source: &Source) -> Vec<Untidy> {
    let mut functions =
        Functions { path: source.path.display().to_string(), owner: String::new(), found: Vec::new() };
    functions.visit_file(&source.syntax);
    let mut found = functions.found;
    if source.lines > FILE && !is_table(source) {
        found.push(Untidy {
            key: format!("file {}", source.path.display()),
            figure: source.lines,
            sentence: format!(
                "{}: {} lines, and a file has at most {FILE}",
                source.path.display(),
                source.lines
            ),
        });
    }
    found
}

/// More than half of its lines belong to constants.
fn is_table(source: &Source) -> bool {
    let constant = |item: &Item| match item {
        Item::Const(i) => Some(lines(i.const_token.span, i.semi_token.span)),
        Item::Static(i) => Some(lines(i.static_token.span, i.semi_token.span)),
        _ => None,
    };
    2 * source.syntax.items.iter().filter_map(constant).sum::<usize>() > source.lines
}

fn lines(from: Span, to: Span) -> usize {
    to.end().line - from.start().line + 1
}

struct Functions {
    path: String,
    /// The type or trait that has the function, and `::`.
    owner: String,
    found: Vec<Untidy>,
}

impl Functions {
    fn look(&mut self, signature: &syn::Signature, body: Brace) {
        let (start, end) = (signature.fn_token.span, body.span.close());
        let (from, figure) = (start.start().line, lines(start, end));
        let name = format!("{}{}", self.owner, signature.ident);
        if figure > FUNCTION {
            self.found.push(Untidy {
                key: format!("function {} {name}", self.path),
                figure,
                sentence: format!(
                    "{}:{from} {name}: {figure} lines, and a function has at most {FUNCTION}",
                    self.path
                ),
            });
        }
    }

    fn of(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.owner, owner);
        visit(self);
        self.owner = before;
    }
}

impl<'s> Visit<'s> for Functions {
    fn visit_item_impl(&mut self, item: &'s syn::ItemImpl) {
        let name = match &*item.self_ty {
            Type::Path(path) => path.path.segments.last().map(|s| format!("{}::", s.ident)),
            _ => None,
        };
        self.of(name.unwrap_or_default(), |f| visit::visit_item_impl(f, item));
    }

    fn visit_item_trait(&mut self, item: &'s syn::ItemTrait) {
        self.of(format!("{}::", item.ident), |f| visit::visit_item_trait(f, item));
    }

    fn visit_item_fn(&mut self, item: &'s syn::ItemFn) {
        self.look(&item.sig, item.block.brace_token);
        self.of(format!("{}::", item.sig.ident), |f| visit::visit_item_fn(f, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'s syn::ImplItemFn) {
        self.look(&item.sig, item.block.brace_token);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'s syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.look(&item.sig, body.brace_token);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source {
            path: "src/x.rs".into(),
            lines: text.lines().count(),
            syntax: syn::parse_file(text).unwrap(),
        }
    }

    #[test]
    fn a_function_is_measured_from_its_name_to_its_last_brace() {
        let of = |lines: usize| {
            let body = "let _ = 1;\n".repeat(lines - 2);
            find(&source(&format!("struct T;\nimpl T {{\n/// Says.\nfn f() {{\n{body}}}\n}}\n")))
        };
        assert_eq!(of(FUNCTION), []);
        let found = of(FUNCTION + 1);
        assert_eq!(
            (found[0].key.as_str(), found[0].figure),
            ("function src/x.rs T::f", FUNCTION + 1),
            "{found:?}"
        );
        assert!(found[0].sentence.starts_with("src/x.rs:4 T::f:"), "{found:?}");
    }

    #[test]
    fn a_long_file_is_found_and_a_long_table_is_none() {
        let statements = "fn f() {}\n".repeat(FILE + 1);
        assert_eq!(find(&source(&statements))[0].key, "file src/x.rs");
        let table = format!("const T: &[u8] = &[\n{}];\n", "1,\n".repeat(FILE + 1));
        assert_eq!(find(&source(&table)), []);
    }
}
