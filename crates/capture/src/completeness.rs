//! Completeness of a capture: compares its events with the device's own counters.
//!
//! The kernel counts completed reads, writes, discards and flushes (`Documentation/block/stat.rst`). A flush
//! without data also counts as a write (`Documentation/admin-guide/iostats.rst`). A partition has its own
//! count of writes and no count of flushes.

use model::Known;
use model::captured::{Completeness, Counter, Ending, Origin, RowUnit};
use model::evidence::BlockStat;
use model::units::show_count;

/// Index of the discards among the numbers of a `stat` file.
const DISCARDS: usize = 11;

/// Returns how complete a capture is.
pub fn completeness(origin: &Origin, ending: Option<&Ending>) -> Completeness {
    let unknown = |sentence: String| Completeness { word: "unknown".into(), sentence, counters: Vec::new() };
    if let Some(tool) = &origin.imported {
        return unknown(format!("imported from {tool}, which has no device counters to compare with"));
    }
    let Some(ending) = ending else {
        return unknown("the end of the capture is missing, so the number of lost events is unknown".into());
    };
    match counters(origin, ending) {
        Ok(counters) => judge(origin, ending, counters),
        Err(why) if ending.lost_events == 0 => unknown(format!(
            "the kernel reports no lost events, but there are no device counters to compare with: {why}"
        )),
        Err(why) => Completeness {
            word: "incomplete".into(),
            sentence: format!(
                "{}; there are no device counters to compare with: {why}",
                loss_sentence(ending)
            ),
            counters: Vec::new(),
        },
    }
}

/// Returns the kernel's counts next to the captured ones.
fn counters(origin: &Origin, ending: &Ending) -> Known<Vec<Counter>> {
    let text = |stat: &Option<Known<String>>| {
        stat.clone().unwrap_or_else(|| Err("the capture file has no counters".into()))
    };
    let (before, after) = (text(&origin.stat)?, text(&ending.stat)?);
    let queue = origin.device.as_ref().and_then(|device| device.queue.get("iostats"));
    // With `iostats` 0 the kernel counts no requests, but still counts bios.
    if origin.unit == RowUnit::Requests && queue.is_some_and(|text| text.trim() == "0") {
        return Err("the kernel does not count (iostats is 0)".into());
    }
    let counted = BlockStat::parse(&after)?.since(&BlockStat::parse(&before)?);
    let counted = counted.ok_or("the counters went backwards")?;
    let done = ending.completed;
    let counter = |name: &str, counted, captured| Counter { name: name.into(), counted, captured };
    let mut all = vec![
        counter("reads", counted.read.ios, done.reads),
        counter("writes", counted.write.ios, done.writes + done.empty_flushes),
    ];
    // Kernels before 4.18 do not count discards.
    if let Some((before, after)) = discards(&before).zip(discards(&after)) {
        all.push(counter("discards", after.saturating_sub(before), done.discards));
    }
    if origin.partition.is_none() {
        all.push(counter("flushes", counted.flushes().ios, done.flushes));
    } else if let Some(writes) = all.get_mut(1) {
        // A flush without data has no sector, so its partition is unknown. Any number of these flushes, from none to all, may be
        // counted as writes of this partition.
        writes.captured = writes.counted.clamp(done.writes, done.writes + done.empty_flushes);
    }
    Ok(all)
}

fn discards(stat: &str) -> Option<u64> {
    stat.split_ascii_whitespace().nth(DISCARDS)?.parse().ok()
}

fn judge(origin: &Origin, ending: &Ending, counters: Vec<Counter>) -> Completeness {
    let edges = ending.completed.at_edges;
    let list_excess = |excess: fn(&Counter) -> u64| -> Vec<String> {
        let differing = counters.iter().filter(|c| excess(c) > edges);
        differing.map(|c| format_count(excess(c), &c.name)).collect()
    };
    let missing = list_excess(|c| c.counted.saturating_sub(c.captured));
    let beyond = list_excess(|c| c.captured.saturating_sub(c.counted));
    let (word, sentence) = if !missing.is_empty() {
        let (missing, loss) = (missing.join(", "), loss_sentence(ending));
        ("incomplete", format!("{missing} missing, according to the device's own counters; {loss}"))
    } else if ending.lost_events > 0 {
        (
            "incomplete",
            format!("{}; the device's counters show no missing completions", loss_sentence(ending)),
        )
    } else if !beyond.is_empty() {
        ("unknown", format!("the capture has {} more than the device counted", beyond.join(", ")))
    } else {
        ("complete", agreement_sentence(origin, ending, &counters))
    };
    Completeness { word: word.into(), sentence, counters }
}

fn agreement_sentence(origin: &Origin, ending: &Ending, counters: &[Counter]) -> String {
    let parts: Vec<String> =
        counters.iter().filter(|c| c.counted > 0).map(|c| format_count(c.counted, &c.name)).collect();
    let all = if parts.is_empty() { "nothing completed".to_owned() } else { parts.join(", ") };
    let exact = counters.iter().all(|c| c.counted == c.captured);
    let mut sentence = format!("{all}, as the device counted");
    if ending.completed.empty_flushes > 0 && origin.partition.is_none() {
        let empty = ending.completed.empty_flushes;
        let are = if empty == 1 { "is a flush" } else { "are flushes" };
        sentence += &format!(" ({} of the writes {are} without data)", show_count(empty as f64));
    }
    if !exact {
        let edges = show_count(ending.completed.at_edges as f64);
        sentence += &format!(", except for at most {edges} that completed while the counters were read");
    }
    sentence
}

/// Formats a count: `1 discard`, `12 discards`.
pub(crate) fn format_count(count: u64, name: &str) -> String {
    let name = match (count, name) {
        (1, "flushes") => "flush",
        (1, many) => many.strip_suffix('s').unwrap_or(many),
        (_, many) => many,
    };
    format!("{} {name}", show_count(count as f64))
}

fn loss_sentence(ending: &Ending) -> String {
    match ending.lost_events {
        0 => "the kernel reports no lost events".into(),
        lost => format!(
            "the kernel overwrote {} of {} events before they were read: use a larger --buffer",
            show_count(lost as f64),
            show_count((ending.events + lost) as f64)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::captured::{Completed, Partition};

    fn origin() -> Origin {
        Origin { stat: Some(Ok("100 0 800 1 50 0 400 1 0 2 2 3 0 0 0 9 1".into())), ..Origin::default() }
    }

    fn ending(completed: Completed, lost_events: u64) -> Ending {
        let stat = Some(Ok("110 0 800 1 60 0 400 1 0 2 2 4 0 0 0 12 1".into()));
        Ending { completed, lost_events, events: 26, stat, ..Ending::default() }
    }

    const ALL: Completed =
        Completed { reads: 10, writes: 8, empty_flushes: 2, discards: 1, flushes: 3, at_edges: 0 };

    #[test]
    fn captures_are_complete_if_the_counters_agree() {
        let whole = completeness(&origin(), Some(&ending(ALL, 0)));
        assert_eq!(whole.word, "complete");
        assert!(whole.sentence.contains("10 reads, 10 writes, 1 discard, 3 flushes"), "{}", whole.sentence);
        assert!(whole.sentence.contains("2 of the writes are flushes"), "{}", whole.sentence);
        let some = completeness(&origin(), Some(&ending(Completed { reads: 7, ..ALL }, 6)));
        assert_eq!(some.word, "incomplete");
        assert!(some.sentence.starts_with("3 reads missing") && some.sentence.contains("6 of 32 events"));
        let edge = Completed { reads: 9, at_edges: 1, ..ALL };
        assert_eq!(completeness(&origin(), Some(&ending(edge, 0))).word, "complete");
        let more = completeness(&origin(), Some(&ending(Completed { reads: 12, ..ALL }, 0)));
        assert_eq!(more.word, "unknown");
        assert_eq!(completeness(&origin(), Some(&ending(ALL, 1))).word, "incomplete");
    }

    #[test]
    fn without_counters_completeness_is_unknown() {
        let uncounted = Origin { stat: Some(Err("no such file".into())), ..origin() };
        let result = completeness(&uncounted, Some(&ending(ALL, 0)));
        assert_eq!(result.word, "unknown");
        assert!(result.sentence.contains("no such file"));
        assert_eq!(completeness(&uncounted, Some(&ending(ALL, 5))).word, "incomplete");
        assert_eq!(completeness(&origin(), None).word, "unknown");
        let imported = Origin { imported: Some("fio iolog v3".into()), ..origin() };
        assert_eq!(completeness(&imported, Some(&ending(ALL, 0))).word, "unknown");
    }

    #[test]
    fn writes_of_a_partition_may_include_flushes() {
        let part = Origin { partition: Some(Partition::default()), ..origin() };
        for (writes, word) in [(8, "complete"), (10, "complete"), (7, "incomplete")] {
            let result = completeness(&part, Some(&ending(Completed { writes, ..ALL }, 0)));
            assert_eq!(result.word, word, "{}", result.sentence);
        }
    }
}
