//! What is stored in the target, and what of it is in memory already.
//!
//! For: pages and extents of a file, pages of a device. Not for: directories, in which fathom makes a file of its own.

use super::observation::{Observation, TargetKind};
use super::quoted;
use model::check_id::CheckId;
use model::diagnosis::Look;
use model::evidence::{Extents, Pages};
use model::finding::Severity;
use model::units::{GIB, show_bytes, show_count, show_share};

/// Share of a target in memory from which buffered reads are about memory in part, and from which they are about nothing
/// else (A01).
const CACHED_FROM: f64 = 0.05;
const MOSTLY_CACHED_FROM: f64 = 0.5;
/// Share without data from which reads are not about the device (A04).
const HOLLOW_FROM: f64 = 0.001;
/// Share stored in another form, or together with another file, from which it is said (A07, A21).
const OTHER_FROM: f64 = 0.01;
/// Extents per GiB from which a sequential read of a spinning disk is not one: at 10 ms each they take 0.6 s beside the 5 s
/// that the bytes take; and of anything else, where each only costs a request of its own.
const PIECES_SPINNING: f64 = 64.0;
const PIECES: f64 = 1024.0;

pub(super) fn check_stored_data(seen: &Observation) -> Vec<Look> {
    if seen.kind == TargetKind::Directory {
        return vec![Look::ok(
            "test file",
            "fathom makes one in this directory, writes it whole, evicts it from memory, and removes it at the end.",
        )];
    }
    if seen.bytes == 0 {
        return vec![
            Look::finding("size", Severity::Void, "There is nothing in it to read.")
                .cure("name a directory, or a file with content"),
        ];
    }
    let Some(target) = seen.target() else { return Vec::new() };
    let mut looks = match &target.pages {
        // Memory is its own cache.
        _ if seen.place().ram.is_some() => Vec::new(),
        Ok(pages) => vec![cached(seen, pages), dirty(seen, pages)],
        Err(why) => vec![Look::unknown("cached", why).check(CheckId::A01)],
    };
    if seen.kind == TargetKind::File {
        match &target.extents {
            Some(Ok(extents)) => looks.extend(stored(seen, extents)),
            Some(Err(why)) => looks.push(Look::unknown("how it is stored", why).check(CheckId::A04)),
            None => looks.push(
                Look::unknown("how it is stored", "too much of it is not written yet; first type `sync`")
                    .check(CheckId::A04),
            ),
        }
    }
    looks
}

fn cached(seen: &Observation, pages: &Pages) -> Look {
    const ABOUT: &str = "cached";
    let bytes = pages.cached.saturating_mul(pages.page_bytes).min(seen.bytes);
    let share = bytes as f64 / seen.bytes as f64;
    let sentence = format!(
        "{} of its {} are in memory ({}).",
        show_bytes(bytes),
        show_bytes(seen.bytes),
        show_share(share)
    );
    if share < CACHED_FROM {
        return Look::ok(ABOUT, sentence);
    }
    let severity = if share < MOSTLY_CACHED_FROM { Severity::Biased } else { Severity::Rename };
    Look::finding(ABOUT, severity, format!("{sentence} Buffered reads of these do not reach the device."))
        .cure(format!("dd if={} iflag=nocache count=0 (fathom bench does as much before each run), or measure with --cache direct", quoted(&seen.path)))
        .check(CheckId::A01)
}

fn dirty(seen: &Observation, pages: &Pages) -> Look {
    const ABOUT: &str = "not written yet";
    match pages.dirty {
        None => Look::unknown(ABOUT, "this kernel does not tell which pages are dirty (no cachestat)")
            .check(CheckId::D02),
        Some(0) => Look::ok(ABOUT, "Nothing of it waits in memory to be written."),
        Some(dirty) => {
            let bytes = show_bytes(dirty.saturating_mul(pages.page_bytes));
            let sentence = format!(
                "{bytes} of it wait in memory to be written, which would happen during a measurement."
            );
            Look::finding(ABOUT, Severity::Biased, sentence)
                .cure(format!("sync {}", quoted(&seen.path)))
                .check(CheckId::D02)
        }
    }
}

fn stored(seen: &Observation, e: &Extents) -> Vec<Look> {
    let share = |bytes: u64| bytes as f64 / e.span_bytes.max(1) as f64;
    let mut looks = vec![hollow(seen, e, share(e.hole_bytes.saturating_add(e.unwritten_bytes)))];
    if e.count == 0 {
        return looks;
    }
    if e.inline_bytes > 0 {
        let sentence =
            format!("{} of it are inside the inode or packed with other files.", show_bytes(e.inline_bytes));
        looks.push(
            Look::finding("inline", Severity::Rename, sentence)
                .cure("measure a file of 1 MiB or more")
                .check(CheckId::A06),
        );
    }
    looks.push(form(share(e.encoded_bytes)));
    looks.push(sharing(share(e.shared_bytes)));
    looks.push(pieces(seen, e));
    looks.push(alignment(seen, e));
    looks
}

fn hollow(seen: &Observation, e: &Extents, share: f64) -> Look {
    const ABOUT: &str = "holes";
    if share < HOLLOW_FROM {
        return Look::ok(ABOUT, "Every byte of it was written.");
    }
    let sentence = format!(
        "{} of it was never written ({} of holes, {} allocated only): the kernel answers reads of these with zeros, without the device.",
        show_share(share),
        show_bytes(e.hole_bytes),
        show_bytes(e.unwritten_bytes)
    );
    Look::finding(ABOUT, Severity::Void, sentence)
        .cure(format!(
            "name the directory instead, in which fathom makes a file of its own: fathom bench {}",
            quoted(seen.path.parent().unwrap_or(&seen.path))
        ))
        .check(CheckId::A04)
}

fn form(share: f64) -> Look {
    const ABOUT: &str = "compressed";
    if share < OTHER_FROM {
        return Look::ok(ABOUT, "It is stored as it is, neither compressed nor encrypted.");
    }
    let sentence = format!(
        "{} of it is stored compressed or encrypted: bytes read are not bytes on the device.",
        show_share(share)
    );
    Look::finding(ABOUT, Severity::Biased, sentence)
        .cure("name a directory without compression (`chattr +m DIRECTORY` before it is filled)")
        .check(CheckId::A07)
}

fn sharing(share: f64) -> Look {
    const ABOUT: &str = "shared";
    if share < OTHER_FROM {
        return Look::ok(ABOUT, "It shares no blocks with another file or a snapshot.");
    }
    let sentence = format!(
        "{} of it is shared with a copy or a snapshot: the first write of each block goes elsewhere.",
        show_share(share)
    );
    Look::finding(ABOUT, Severity::Biased, sentence)
        .cure("measure a copy of its own: cp --reflink=never FILE COPY")
        .check(CheckId::A21)
}

fn pieces(seen: &Observation, e: &Extents) -> Look {
    const ABOUT: &str = "pieces";
    let per_gib = e.count as f64 * GIB as f64 / e.span_bytes.max(1) as f64;
    let spinning = spinning(seen);
    let most = if spinning { PIECES_SPINNING } else { PIECES };
    let one = if e.count == 1 { "" } else { "s" };
    let sentence = format!("It is stored in {} piece{one}.", show_count(e.count as f64));
    // A small file in a few pieces is not fragmented, whatever that is per GiB.
    if per_gib <= most || e.count as f64 <= most / 16.0 {
        return Look::ok(ABOUT, sentence);
    }
    let severity = if spinning { Severity::Biased } else { Severity::Note };
    Look::finding(
        ABOUT,
        severity,
        format!("{sentence} Reading it from end to end is not sequential on the device."),
    )
    .cure(format!("write it anew: cp --reflink=never {0} {0}.new", quoted(&seen.path)))
    .check(CheckId::B15)
}

/// Whether a head has to move. Hypervisors often leave their disks at the kernel's default, which says that it has.
fn spinning(seen: &Observation) -> bool {
    let bare = matches!(seen.machine.virtual_by, Ok(None));
    bare && seen.leaves().iter().any(|l| l.queue_number("rotational") == Ok(1))
}

fn alignment(seen: &Observation, e: &Extents) -> Look {
    const ABOUT: &str = "place on the device";
    let physical = seen.leaves().iter().filter_map(|l| l.queue_number("physical_block_size").ok()).max();
    match (e.physical_align, physical) {
        (Some(align), Some(block)) if align < block => Look::finding(
            ABOUT,
            Severity::Biased,
            format!(
                "Its extents begin at multiples of {}, the device works in {}.",
                show_bytes(align),
                show_bytes(block)
            ),
        )
        .cure("make the file system with blocks of at least that size: mkfs -b size=4096")
        .check(CheckId::B11),
        (Some(_), Some(block)) => Look::ok(
            ABOUT,
            format!("Its extents begin at whole blocks of the device ({}).", show_bytes(block)),
        ),
        (None, _) => {
            Look::unknown(ABOUT, "the file system does not tell where its extents are").check(CheckId::B11)
        }
        (_, None) => Look::unknown(ABOUT, "no device below tells the size of its blocks").check(CheckId::B11),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::observation::tests::in_order;
    use model::finding::Outcome;

    fn answer(seen: &Observation, about: &str) -> Look {
        let look = check_stored_data(seen).into_iter().find(|l| l.about == about);
        look.unwrap_or_else(|| panic!("nothing about {about}"))
    }

    fn extents(seen: &mut Observation) -> &mut Extents {
        match &mut seen.end.targets[0].extents {
            Some(Ok(extents)) => extents,
            _ => panic!("a forged file has extents"),
        }
    }

    #[test]
    fn a_file_in_order_has_no_finding_and_a_directory_one_line() {
        let mut seen = in_order();
        assert!(check_stored_data(&seen).iter().all(|l| l.outcome == Outcome::Holds), "{:#?}", check_stored_data(&seen));
        seen.kind = TargetKind::Directory;
        assert_eq!(check_stored_data(&seen).len(), 1);
    }

    #[test]
    fn cached_and_dirty_pages_act_by_their_share() {
        let mut seen = in_order();
        let mut pages = |cached: u64, dirty: Option<u64>| {
            seen.end.targets[0].pages = Ok(Pages { page_bytes: 4096, cached, dirty });
            (answer(&seen, "cached").severity, answer(&seen, "not written yet").outcome)
        };
        let all = (1_u64 << 30) / 4096;
        assert_eq!(pages(all / 25, Some(0)), (None, Outcome::Holds));
        assert_eq!(pages(all / 10, Some(1)), (Some(Severity::Biased), Outcome::Finding));
        assert_eq!(pages(all, None), (Some(Severity::Rename), Outcome::NotChecked));
        seen.end.targets[0].pages = Err("not yours".into());
        assert_eq!(answer(&seen, "cached").outcome, Outcome::NotChecked);
    }

    #[test]
    fn holes_and_other_forms_are_found_from_their_threshold_on() {
        let mut seen = in_order();
        extents(&mut seen).hole_bytes = 1 << 19;
        assert_eq!(answer(&seen, "holes").outcome, Outcome::Holds);
        extents(&mut seen).unwritten_bytes = 1 << 20;
        assert_eq!(answer(&seen, "holes").severity, Some(Severity::Void));
        (extents(&mut seen).encoded_bytes, extents(&mut seen).shared_bytes) = (1 << 24, 1 << 23);
        assert_eq!(answer(&seen, "compressed").check, Some(CheckId::A07));
        assert_eq!(answer(&seen, "shared").outcome, Outcome::Holds);
        extents(&mut seen).inline_bytes = 1;
        assert_eq!(answer(&seen, "inline").check, Some(CheckId::A06));
        *extents(&mut seen) = Extents { span_bytes: 1 << 30, hole_bytes: 1 << 30, ..Extents::default() };
        // Of nothing there is only to say that it is nothing.
        assert_eq!(check_stored_data(&seen).len(), 3);
        seen.end.targets[0].extents = None;
        assert_eq!(answer(&seen, "how it is stored").outcome, Outcome::NotChecked);
    }

    #[test]
    fn pieces_matter_more_where_a_head_moves_and_virtual_disks_have_none() {
        let mut seen = in_order();
        extents(&mut seen).count = 100;
        assert_eq!(answer(&seen, "pieces").outcome, Outcome::Holds);
        seen.machine.places[0].layers[1].queue.insert("rotational".into(), "1\n".into());
        assert_eq!(answer(&seen, "pieces").severity, Some(Severity::Biased));
        seen.machine.virtual_by = Ok(Some("KVM".into()));
        assert_eq!(answer(&seen, "pieces").outcome, Outcome::Holds);
        extents(&mut seen).count = 2000;
        assert_eq!(answer(&seen, "pieces").severity, Some(Severity::Note));
    }

    #[test]
    fn extents_across_physical_blocks_are_found() {
        let mut seen = in_order();
        extents(&mut seen).physical_align = Some(1024);
        assert_eq!(answer(&seen, "place on the device").check, Some(CheckId::B11));
        extents(&mut seen).physical_align = None;
        assert_eq!(answer(&seen, "place on the device").outcome, Outcome::NotChecked);
    }
}
