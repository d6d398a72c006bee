//! The ledger as a picture: what was issued, what was charged, and what each layer completed, as wide as it is.
//!
//! For: seeing a merge, a split, a cache or the legs of a RAID at once. Not for: whether they agree, which the ledger says.

use super::plot::flow::{Flow, flow};
use super::table;
use crate::table::Table;
use askama::Template;
use model::ledger::{Account, Entry, Moved};
use model::report::Measured;
use model::units::{show_bytes, show_count};

/// Height of a stage in pixels.
const STAGE_HEIGHT: usize = 46;

#[derive(Template)]
#[template(path = "ledger.html")]
struct LedgerPicture<'l> {
    direction: &'l str,
    stages: Vec<Named>,
    sides: Vec<Side>,
    height: usize,
    table: String,
}

/// Words in the middle of a stage's bar.
struct Named {
    name: String,
    percent: String,
}

struct Side {
    says: String,
    flow: Flow,
    labels: Vec<Words>,
}

struct Words {
    text: String,
    percent: String,
}

/// A stage: its name, what its parts moved, and what is said of it.
struct Stage {
    name: String,
    parts: Vec<Moved>,
    word: String,
}

/// Both directions; nothing where no device was asked.
pub(super) fn ledger_pictures(result: &Measured) -> String {
    let Some(ledger) = &result.ledger else { return String::new() };
    let both = [("Reads", &ledger.read), ("Writes", &ledger.write)];
    both.into_iter()
        .filter_map(|(direction, account)| Some(draw_ledger(direction, account.as_ref()?)))
        .collect()
}

fn draw_ledger(direction: &str, account: &Account) -> String {
    let stages = stages(account);
    // In the middle of the upper half of its part, where its bar is.
    let middle = |at: usize| format!("{:.1}", 100.0 * (at as f64 + 0.25) / stages.len() as f64);
    let named = stages.iter().enumerate().map(|(at, s)| Named { name: s.name.clone(), percent: middle(at) });
    let side = |of: fn(&Moved) -> u64, show: fn(u64) -> String| {
        let sum = |s: &Stage| s.parts.iter().map(|m| of(m) as f64).sum::<f64>() as u64;
        let text = |s: &Stage| if s.parts.is_empty() { "not counted".into() } else { show(sum(s)) };
        let said: Vec<String> = stages.iter().map(|s| format!("{} {}", s.name, text(s))).collect();
        let parts: Vec<Vec<f64>> =
            stages.iter().map(|s| s.parts.iter().map(|m| of(m) as f64).collect()).collect();
        let labels = stages.iter().enumerate().map(|(at, s)| Words { text: text(s), percent: middle(at) });
        Side { says: said.join(", "), flow: flow(&parts), labels: labels.collect() }
    };
    let sides = vec![side(|m| m.ios, |n| show_count(n as f64)), side(|m| m.bytes, show_bytes)];
    let picture = LedgerPicture {
        direction,
        stages: named.collect(),
        sides,
        height: STAGE_HEIGHT * stages.len(),
        table: ledger_table(direction, account, &stages),
    };
    picture.render().unwrap_or_default()
}

/// Issued, charged, and each step of the stack.
fn stages(account: &Account) -> Vec<Stage> {
    let counted = |entry: &Entry| entry.with_sync.or(entry.counted);
    let mut stages =
        vec![Stage { name: "issued by fathom".into(), parts: vec![account.issued], word: String::new() }];
    let charged = &account.charged;
    stages.push(Stage {
        name: "charged by the kernel".into(),
        parts: counted(charged).into_iter().collect(),
        word: charged.word.clone(),
    });
    for step in account.layers.chunk_by(|a, b| a.step == b.step) {
        let names: Vec<&str> = step.iter().map(|e| e.name.as_str()).collect();
        let words: Vec<&str> = step.iter().map(|e| e.word.as_str()).collect();
        let all: Option<Vec<Moved>> = step.iter().map(counted).collect();
        stages.push(Stage {
            name: names.join(" + "),
            parts: all.unwrap_or_default(),
            word: words.first().copied().unwrap_or_default().to_owned(),
        });
    }
    stages
}

fn ledger_table(direction: &str, account: &Account, stages: &[Stage]) -> String {
    let mut of = Table::new(
        &["counted by", "operations", "bytes", "merged before", "mean size", "against issued"],
        &[],
    );
    for stage in stages {
        let ios: u64 = stage.parts.iter().fold(0, |sum, m| sum.saturating_add(m.ios));
        let bytes: u64 = stage.parts.iter().fold(0, |sum, m| sum.saturating_add(m.bytes));
        let merges: Vec<u64> = stage.parts.iter().filter_map(|m| m.merges).collect();
        let is_known = !stage.parts.is_empty();
        let told = |text: String| if is_known { text } else { "-".into() };
        of.add([
            stage.name.clone(),
            told(show_count(ios as f64)),
            told(show_bytes(bytes)),
            if merges.is_empty() { String::new() } else { show_count(merges.iter().sum::<u64>() as f64) },
            bytes.checked_div(ios).map_or_else(|| "-".into(), show_bytes),
            stage.word.clone(),
        ]);
    }
    let has_sync = account.layers.iter().any(|e| e.with_sync.is_some());
    let with = if has_sync { ", the final sync included" } else { "" };
    table::table(&format!("{direction} at each layer{with}"), &of)
}

#[test]
fn every_stage_has_its_number_in_picture_and_table() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/pieces/ledger.json");
    let ledger: model::ledger::Ledger = serde_json::from_str(golden)?;
    let read = ledger.read.as_ref().ok_or("no reads")?;
    let html = draw_ledger("Reads", read);
    for number in ["55,000", "55,165", "0.3 % more", "loop0", "vda", "agrees"] {
        assert!(html.contains(number), "{number}: {html}");
    }
    let stages = stages(read);
    assert_eq!(stages.iter().map(|s| s.parts.len()).collect::<Vec<_>>(), [1, 1, 1, 1]);
    Ok(())
}
