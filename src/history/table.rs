//! The table of sessions: which entries are its rows, and which results its columns.
//!
//! For: from entries to the value that is laid out. Not for: finding entries ([`super::index`]), nor their layout (crate `report`).

use model::entry::{Device, Entry, Figure};
use model::session_table::{Column, OtherWork, Row, RowsOf, SessionTable};

/// The table of these entries, newest first. Its columns are what the newest of them measured that has results side by side.
pub(super) fn table_of_latest(entries: &[Entry], rows_of: RowsOf, beyond_limit: u64) -> SessionTable {
    let newest = entries.iter().find(|e| !e.figures.is_empty()).map_or(&[][..], |e| &e.figures);
    let column = |f: &Figure| Column { name: f.name.clone(), unit: f.unit.clone() };
    let columns: Vec<Column> = newest.iter().map(column).collect();
    let mut table = SessionTable { rows_of, columns, beyond_limit, ..SessionTable::default() };
    let mut known: Vec<Vec<String>> = Vec::new();
    for entry in entries {
        let figures: Vec<Option<Figure>> = table.columns.iter().map(|c| figure(entry, c)).collect();
        if figures.iter().all(Option::is_none) {
            count(&mut table.other_work, entry);
            continue;
        }
        let disks = identity(entry);
        if rows_of == RowsOf::Devices && known.contains(&disks) {
            table.older += 1;
            continue;
        }
        known.push(disks);
        table.rows.push(row(entry, figures));
    }
    table
}

/// The table of sessions that were named: each has a row, and whatever one of them measured has a column. Where each measured one thing
/// these stand in one column, whatever they are called: that is what they were named beside each other for.
pub(super) fn of_named(entries: &[Entry]) -> SessionTable {
    let figures = || entries.iter().flat_map(|entry| &entry.figures);
    let is_one_each = entries.iter().all(|entry| entry.figures.len() == 1);
    let is_another = figures().any(|f| figures().next().is_some_and(|first| first.name != f.name));
    let column = |f: &Figure| {
        let name = if is_one_each && is_another { Column::MAIN } else { &f.name };
        Column { name: name.to_owned(), unit: f.unit.clone() }
    };
    let mut columns: Vec<Column> = Vec::new();
    for column in figures().map(column) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let of = |entry: &Entry, c: &Column| entry.figures.iter().find(|f| column(f) == *c).cloned();
    let rows = entries.iter().map(|entry| row(entry, columns.iter().map(|c| of(entry, c)).collect()));
    SessionTable { rows: rows.collect(), columns: columns.clone(), ..SessionTable::default() }
}

fn figure(entry: &Entry, column: &Column) -> Option<Figure> {
    entry.figures.iter().find(|f| (&f.name, &f.unit) == (&column.name, &column.unit)).cloned()
}

fn count(other_work: &mut Vec<OtherWork>, entry: &Entry) {
    let title = entry.title.clone().unwrap_or_else(|| entry.word());
    match other_work.iter_mut().find(|other| other.title == title) {
        Some(other) => other.sessions += 1,
        None => other_work.push(OtherWork { title, sessions: 1 }),
    }
}

fn row(entry: &Entry, figures: Vec<Option<Figure>>) -> Row {
    let names: Vec<String> = disks(entry).map(shown).collect();
    Row {
        session: entry.id.clone(),
        started: entry.started.clone(),
        verdict: entry.verdict,
        device: (!names.is_empty()).then(|| names.join(" + ")),
        targets: entry.targets.clone(),
        tags: entry.words.tags.clone(),
        figures,
    }
}

/// The disks below: those that somebody made, or else what lies topmost.
fn disks(entry: &Entry) -> impl Iterator<Item = &Device> {
    let made = |d: &&Device| d.model.is_some() || d.serial.is_some();
    let any = entry.devices.iter().any(|d| made(&d));
    let topmost = entry.devices.iter().take(1).filter(move |_| !any);
    entry.devices.iter().filter(made).chain(topmost)
}

fn shown(device: &Device) -> String {
    let model = device.model.as_deref().unwrap_or_default();
    format!("{} {model}", device.name).trim().to_owned()
}

/// What tells disks from others: the serial number, which stays with them; else the name on this host, and without any device the
/// targets.
fn identity(entry: &Entry) -> Vec<String> {
    let here = |name: &str| format!("{} {name}", entry.hosts.join(","));
    let of = |d: &Device| d.serial.clone().unwrap_or_else(|| here(&shown(d)));
    let disks: Vec<String> = disks(entry).map(of).collect();
    if disks.is_empty() { entry.targets.iter().map(|t| here(t)).collect() } else { disks }
}

#[cfg(test)]
fn entry(id: &str, device: Device, figures: &[(&str, f64)]) -> Entry {
    let figure = |(name, value): &(&str, f64)| Figure {
        name: (*name).into(),
        unit: "IOPS".into(),
        value: Some(*value),
        interval: None,
        verdict: model::report::Verdict::Valid,
    };
    Entry {
        id: id.into(),
        title: Some(format!("bench {}", figures.len())),
        devices: vec![device],
        figures: figures.iter().map(figure).collect(),
        ..Entry::default()
    }
}

#[cfg(test)]
fn device(name: &str, serial: Option<&str>) -> Device {
    Device { name: name.into(), model: serial.map(|_| "Disk".into()), serial: serial.map(str::to_owned) }
}

#[test]
fn columns_are_those_of_the_newest_and_rows_all_that_share_one() {
    let none = entry("5", device("sda", None), &[]);
    let two = entry("4", device("sda", None), &[("a", 1.0), ("b", 2.0)]);
    let one = entry("3", device("sda", None), &[("b", 3.0)]);
    let other = entry("2", device("sda", None), &[("c", 4.0)]);
    let table = table_of_latest(&[none, two, one, other], RowsOf::Sessions, 7);
    assert_eq!(table.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(table.rows.iter().map(|r| r.session.as_str()).collect::<Vec<_>>(), ["4", "3"]);
    assert!(table.rows[1].figures[0].is_none() && table.rows[1].figures[1].is_some());
    let left: Vec<(&str, u64)> = table.other_work.iter().map(|o| (o.title.as_str(), o.sessions)).collect();
    assert_eq!((left, table.beyond_limit), (vec![("bench 0", 1), ("bench 1", 1)], 7));
}

#[test]
fn each_session_that_was_named_is_a_row_whatever_it_measured() {
    let one = entry("1", device("sda", None), &[("a", 1.0)]);
    let other = entry("2", device("sda", None), &[("b", 2.0), ("a", 3.0)]);
    let table = of_named(&[one, other]);
    assert_eq!(table.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let value = |row: usize, column: usize| table.rows[row].figures[column].as_ref().and_then(|f| f.value);
    assert_eq!((value(0, 0), value(0, 1)), (Some(1.0), None));
    assert_eq!((value(1, 0), value(1, 1)), (Some(3.0), Some(2.0)));
    let each = ["a", "b"].map(|name| entry(name, device("sda", None), &[(name, 1.0)]));
    let table = of_named(&each);
    assert_eq!(table.columns, [Column { name: Column::MAIN.into(), unit: "IOPS".into() }]);
    assert!(table.rows.iter().all(|row| row.figures[0].is_some()));
}

#[test]
fn a_disk_is_itself_under_another_name_and_has_its_newest_session() {
    let named = |id, name, serial| entry(id, device(name, serial), &[("a", 1.0)]);
    let all = [
        named("5", "sda", Some("S1")),
        named("4", "sdb", Some("S1")),
        named("3", "sda", Some("S2")),
        named("2", "loop0", None),
        named("1", "loop0", None),
    ];
    let table = table_of_latest(&all, RowsOf::Devices, 0);
    let rows: Vec<(&str, &str)> =
        table.rows.iter().map(|r| (r.session.as_str(), r.device.as_deref().unwrap_or_default())).collect();
    assert_eq!((rows, table.older), (vec![("5", "sda Disk"), ("3", "sda Disk"), ("2", "loop0")], 2));
    let nowhere = Entry { devices: Vec::new(), targets: vec!["/a".into()], ..named("9", "x", None) };
    assert_eq!(table_of_latest(&[nowhere.clone(), nowhere], RowsOf::Devices, 0).rows.len(), 1);
}
