//! The ledger as text: issued, charged, completed by each layer, one under the other.
//!
//! For: `--ledger`. Not for: the table of results, where only the topmost device stands beside the tool.

use crate::page::{Page, short_bytes};
use crate::table::Table;
use model::ledger::{Account, Entry, Moved};
use model::report::Measured;
use model::units::{show_bytes, show_count, show_ns};

const LEDGER_HEADINGS: [&str; 7] =
    ["ledger", "requests", "bytes", "merged", "size", "their time", "against issued"];
/// Columns that leave where there is no room, the first of them first.
const LEDGER_DROP_ORDER: [usize; 4] = [3, 5, 4, 1];
/// What a word begins with where there is no count; the reason stands below the table.
const NOT_COUNTED: &str = "not counted";

pub(super) fn show_ledger(out: &mut Page, results: &[Measured]) {
    let mut table = Table::new(&LEDGER_HEADINGS, &LEDGER_DROP_ORDER);
    let mut reasons: Vec<String> = Vec::new();
    for result in results {
        let Some(ledger) = &result.ledger else {
            table.add(ledger_title_row(&result.name, "no storage"));
            continue;
        };
        for (word, account) in [("reads", &ledger.read), ("writes", &ledger.write)] {
            let Some(account) = account else { continue };
            table.add(ledger_title_row(&format!("{}, {word}", result.name), ""));
            table.add_all(ledger_rows(account, &mut reasons));
        }
    }
    out.table(&table);
    out.line("All runs together, from the snapshot before the first operation to the one behind the last.");
    for reason in reasons {
        out.prose("  ", "    ", &reason);
    }
    out.line("");
}

fn ledger_title_row(name: &str, word: &str) -> [String; LEDGER_HEADINGS.len()] {
    let mut cells = std::array::from_fn(|_| String::new());
    name.clone_into(&mut cells[0]);
    word.clone_into(&mut cells[LEDGER_HEADINGS.len() - 1]);
    cells
}

fn ledger_rows(account: &Account, reasons: &mut Vec<String>) -> Vec<[String; LEDGER_HEADINGS.len()]> {
    let mut out = vec![ledger_row("  issued by fathom", &account.issued, "")];
    out.push(ledger_entry_row(&account.charged, &format!("  charged to {}", account.charged.name), reasons));
    for layer in &account.layers {
        // Nothing stops a file from naming a step without end.
        let indent = "  ".repeat(layer.step.min(8) as usize + 1);
        out.push(ledger_entry_row(layer, &format!("{indent}{}", layer.name), reasons));
        out.extend(synced_row(layer, &indent));
    }
    out
}

fn ledger_entry_row(entry: &Entry, name: &str, reasons: &mut Vec<String>) -> [String; LEDGER_HEADINGS.len()] {
    if let Some(moved) = &entry.counted {
        return ledger_row(name, moved, &entry.word);
    }
    let reason = format!("{}: {}", entry.name, entry.word);
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
    ledger_title_row(name, NOT_COUNTED)
}

/// What a layer had completed when the final sync was over, where that is more.
fn synced_row(entry: &Entry, indent: &str) -> Option<[String; LEDGER_HEADINGS.len()]> {
    let with_sync = entry.with_sync.as_ref().filter(|m| entry.counted.is_some_and(|c| c.ios != m.ios))?;
    Some(ledger_row(&format!("{indent}  with the final sync"), with_sync, ""))
}

fn ledger_row(name: &str, moved: &Moved, word: &str) -> [String; LEDGER_HEADINGS.len()] {
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
