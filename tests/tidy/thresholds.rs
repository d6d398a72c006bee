//! Finds numbers in the text of `formula!` that are also the value of a constant of the same check: one could be changed without the other.
//!
//! The constants of a check are between it and the check before it in the file.

use crate::Untidy;
use crate::source::{Source, is_test};
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Item, Lit, LitStr};

/// Units in formulas, with the factor to the unit of constants: share, ns or byte.
const UNITS: &[(&str, f64)] = &[
    ("%", 0.01),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// Finds the numbers in the formulas of a file that repeat a constant.
pub(crate) fn find(source: &Source) -> Option<Untidy> {
    let path = source.path.display();
    let mut constants = Vec::new();
    let mut again = Vec::new();
    for item in &source.syntax.items {
        if let Item::Const(constant) = item
            && !is_test(&constant.attrs)
        {
            values(&constant.expr, &mut constants);
        }
        let mut formulas = Formulas(Vec::new());
        formulas.visit_item(item);
        if formulas.0.is_empty() {
            continue;
        }
        let is_constant = |m: &f64| constants.iter().any(|c: &f64| (m - c).abs() <= 1e-9 * c.abs());
        let typed = formulas.0.iter().flat_map(|text| numbers(text));
        again.extend(typed.filter(|(_, meant)| meant.iter().any(is_constant)).map(|(written, _)| {
            format!("{path}: the formula types {written}, the value of a constant; name the constant")
        }));
        constants.clear();
    }
    let (key, figure) = (format!("threshold {path}"), again.len());
    (figure > 0).then(|| Untidy { key, figure, sentence: again.join("\n") })
}

/// Adds the numbers of a constant, including numbers within a share, a list or a structure.
fn values(of: &Expr, into: &mut Vec<f64>) {
    match of {
        Expr::Array(list) => list.elems.iter().for_each(|e| values(e, into)),
        Expr::Call(call) => call.args.iter().for_each(|e| values(e, into)),
        Expr::Struct(fields) => fields.fields.iter().for_each(|f| values(&f.expr, into)),
        Expr::Tuple(list) => list.elems.iter().for_each(|e| values(e, into)),
        other => into.extend(value(other)),
    }
}

/// Returns the value of an expression of literals; `None` for any other expression.
fn value(of: &Expr) -> Option<f64> {
    match of {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            Lit::Float(float) => float.base10_parse().ok(),
            _ => None,
        },
        Expr::Binary(two) => {
            let (left, right) = (value(&two.left)?, value(&two.right)?);
            match two.op {
                BinOp::Shl(_) => Some(left * right.exp2()),
                BinOp::Mul(_) => Some(left * right),
                BinOp::Div(_) => Some(left / right),
                _ => None,
            }
        }
        Expr::Cast(cast) => value(&cast.expr),
        Expr::Paren(inner) => value(&inner.expr),
        _ => None,
    }
}

/// The texts of `formula!`.
struct Formulas(Vec<String>);

impl<'s> Visit<'s> for Formulas {
    fn visit_macro(&mut self, call: &'s syn::Macro) {
        if call.path.is_ident("formula") {
            let literal = call.tokens.clone().into_iter().next();
            let text = literal.and_then(|token| syn::parse2::<LitStr>(token.into()).ok());
            self.0.extend(text.map(|t| t.value()));
        }
        visit::visit_macro(self, call);
    }
}

/// Returns the numbers in a text as they are written, each with the possible values of a constant for it.
fn numbers(text: &str) -> Vec<(String, Vec<f64>)> {
    let plain = |word: &str| word.trim_matches(|c: char| "(),.;:".contains(c)).replace(',', "");
    let words: Vec<String> = text.split_whitespace().map(plain).collect();
    let mut found = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let Ok(number) = word.parse::<f64>() else { continue };
        let next = words.get(i + 1).map_or("", String::as_str);
        match UNITS.iter().find(|(unit, _)| *unit == next) {
            // A constant may also be in seconds.
            Some(("s", factor)) => found.push((format!("{word} s"), vec![number, number * factor])),
            Some((unit, factor)) => found.push((format!("{word} {unit}"), vec![number * factor])),
            None => found.push((word.clone(), vec![number])),
        }
    }
    found
}

#[test]
fn numbers_that_repeat_a_constant_are_found_in_formulas() {
    let text = "const A: f64 = 0.05;\nconst B: Share = Share(0.5);\nconst C: u64 = 1 << 20;\nconst D: u64 = 2_000_000;\n\
                const E: [f64; 2] = [7.0, 200_000.0];\n#[cfg(test)]\nconst F: u64 = 9;\nconst CHECK: Check = Check { formula: formula!(\
                \"above 5 %, from 50 % on, 1 MiB, (2 ms) or 200,000 and 7; not 9, 5, p99 or {A} of 95 %.\", b = Share(B)) };\n";
    let source = Source { path: "src/x.rs".into(), syntax: syn::parse_file(text).unwrap() };
    let found = find(&source).unwrap();
    assert_eq!((found.key.as_str(), found.figure), ("threshold src/x.rs", 6), "{}", found.sentence);
    for written in ["5 %", "50 %", "1 MiB", "2 ms", "200000", "7"] {
        assert!(found.sentence.contains(&format!("types {written},")), "{written}: {}", found.sentence);
    }
}
