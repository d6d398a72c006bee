//! A table is filled column by column: each column has a heading, an alignment and a field of each item.

use crate::view::table::Table;

/// A table of raw values.
pub(crate) struct Records {
    pub(crate) headings: Vec<String>,
    /// Whether the headings are printed: a table that continues another one has none.
    pub(crate) has_headings: bool,
    pub(crate) rows: Vec<Vec<String>>,
}

/// A value that has a field: a missing one is empty.
pub(crate) trait Field {
    fn field(self) -> String;
}

macro_rules! fields {
    ($($kind:ty)*) => {$(
        impl Field for $kind {
            fn field(self) -> String {
                self.to_string()
            }
        }
    )*};
}

fields! { String &str bool u8 u32 u64 i32 usize f64 }

impl<F: Field> Field for Option<F> {
    fn field(self) -> String {
        self.map_or_else(String::new, Field::field)
    }
}

/// Formats a known value, or `-`.
pub(crate) fn or_dash<V>(value: Option<V>, show: impl Fn(V) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

/// Items and the columns that were filled from them.
pub(crate) struct Columns<R> {
    items: Vec<R>,
    pub(crate) headings: Vec<String>,
    /// Whether each column is aligned to the left.
    is_text: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl<R> Columns<R> {
    pub(crate) fn new(items: impl IntoIterator<Item = R>) -> Self {
        let items: Vec<R> = items.into_iter().collect();
        let rows = items.iter().map(|_| Vec::new()).collect();
        Self { items, headings: Vec::new(), is_text: Vec::new(), rows }
    }

    /// Adds a column of borrowed text.
    pub(crate) fn text(self, heading: &str, field: impl for<'r> Fn(&'r R) -> &'r str) -> Self {
        self.label(heading, |item| field(item).to_owned())
    }

    /// Adds a column that is aligned to the left.
    pub(crate) fn label<F: Field>(self, heading: impl Into<String>, field: impl Fn(&R) -> F) -> Self {
        self.column(heading.into(), true, field)
    }

    /// Adds a column that is aligned to the right.
    pub(crate) fn value<F: Field>(self, heading: impl Into<String>, field: impl Fn(&R) -> F) -> Self {
        self.column(heading.into(), false, field)
    }

    fn column<F: Field>(mut self, heading: String, is_text: bool, field: impl Fn(&R) -> F) -> Self {
        self.headings.push(heading);
        self.is_text.push(is_text);
        for (row, item) in self.rows.iter_mut().zip(&self.items) {
            row.push(field(item).field());
        }
        self
    }

    /// Returns the table of raw values.
    pub(crate) fn records(self) -> Records {
        Records { headings: self.headings, has_headings: true, rows: self.rows }
    }

    /// Returns the table for people. If the width is too small, the columns of `drop_order` are dropped in this order; of two columns
    /// with the same heading, the first one is dropped first.
    pub(crate) fn table(self, drop_order: &[&str]) -> Table {
        let mut table = self.empty_table(drop_order);
        table.add_all(self.rows);
        table
    }

    /// Returns the table with a title above the first row of each group.
    pub(crate) fn grouped(self, title: impl for<'r> Fn(&'r R) -> &'r str, drop_order: &[&str]) -> Table {
        let mut table = self.empty_table(drop_order);
        let mut before = None;
        for (item, row) in self.items.iter().zip(self.rows) {
            let title = title(item);
            if before.replace(title) != Some(title) {
                table.add_title(title);
            }
            table.add(row);
        }
        table
    }

    fn empty_table(&self, drop_order: &[&str]) -> Table {
        let mut order: Vec<usize> = Vec::new();
        for name in drop_order {
            let at = (0..self.headings.len()).find(|at| self.headings[*at] == *name && !order.contains(at));
            order.extend(at);
        }
        let table = Table::new(&self.headings, &order);
        self.is_text.iter().enumerate().fold(table, |table, (at, left)| table.aligned(at, *left))
    }
}
