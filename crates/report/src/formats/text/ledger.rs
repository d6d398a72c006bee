//! The ledger as text: issued, charged, completed by each layer, one under the other.
//!
//! For: `--ledger`. Not for: the table of results, where only the topmost device stands beside the tool.

use crate::page::{Page, short_bytes};
use crate::table::Table;
use model::figures::{Account, Entry, Moved};
use model::report::Measured;
use model::units::{show_bytes, show_count, show_ns};

const HEADINGS: [&str; 7] = ["ledger", "requests", "bytes", "merged", "size", "their time", "against issued"];
/// Columns that leave where there is no room, the first of them first.
const LEAVING: [usize; 4] = [3, 5, 4, 1];
/// What a word begins with where there is no count; the reason stands below the table.
const NOT_COUNTED: &str = "not counted";

pub(super) fn show(out: &mut Page, results: &[Measured]) {
    let mut table = Table::new(&HEADINGS, &LEAVING);
    let mut reasons: Vec<String> = Vec::new();
    for result in results {
        let Some(ledger) = &result.ledger else {
            table.add(titled(&result.name, "no storage"));
            continue;
        };
        for (word, account) in [("reads", &ledger.read), ("writes", &ledger.write)] {
            let Some(account) = account else { continue };
            table.add(titled(&format!("{}, {word}", result.name), ""));
            table.add_all(rows(account, &mut reasons));
        }
    }
    out.table_of(&table);
    out.line("All runs together, from the snapshot before the first operation to the one behind the last.");
    for reason in reasons {
        out.prose("  ", "    ", &reason);
    }
    out.line("");
}

fn titled(name: &str, word: &str) -> [String; HEADINGS.len()] {
    let mut cells = std::array::from_fn(|_| String::new());
    name.clone_into(&mut cells[0]);
    word.clone_into(&mut cells[HEADINGS.len() - 1]);
    cells
}

fn rows(account: &Account, reasons: &mut Vec<String>) -> Vec<[String; HEADINGS.len()]> {
    let mut out = vec![row("  issued by fathom", &account.issued, "")];
    out.push(entry(&account.charged, &format!("  charged to {}", account.charged.name), reasons));
    for layer in &account.layers {
        // Nothing stops a file from naming a step without end.
        let indent = "  ".repeat(layer.step.min(8) as usize + 1);
        out.push(entry(layer, &format!("{indent}{}", layer.name), reasons));
        out.extend(synced(layer, &indent));
    }
    out
}

fn entry(entry: &Entry, name: &str, reasons: &mut Vec<String>) -> [String; HEADINGS.len()] {
    if let Some(moved) = &entry.counted {
        return row(name, moved, &entry.word);
    }
    let reason = format!("{}: {}", entry.name, entry.word);
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
    titled(name, NOT_COUNTED)
}

/// What a layer had completed when the final sync was over, where that is more.
fn synced(entry: &Entry, indent: &str) -> Option<[String; HEADINGS.len()]> {
    let with_sync = entry.with_sync.as_ref().filter(|m| entry.counted.is_some_and(|c| c.ios != m.ios))?;
    Some(row(&format!("{indent}  with the final sync"), with_sync, ""))
}

fn row(name: &str, moved: &Moved, word: &str) -> [String; HEADINGS.len()] {
    [
        name.to_owned(),
        show_count(moved.ios as f64),
        show_bytes(moved.bytes),
        moved.merges.map_or_else(String::new, |m| show_count(m as f64)),
        moved.bytes.checked_div(moved.ios).map_or_else(|| "-".into(), short_bytes),
        moved.ms.filter(|_| moved.ios > 0).map_or_else(String::new, |ms| show_ns(ms as f64 * 1e6)),
        word.to_owned(),
    ]
}
