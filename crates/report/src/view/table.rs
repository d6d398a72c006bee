//! Tables of all formats: [`Table`] for people, [`Records`] with raw values.
//!
//! [`Columns`] fills both, column by column: each column has a heading, an alignment and a field for each item. A [`Table`] has headings,
//! alignments, rows, and what to do if there is too little room.

/// Explains the columns of the device in all tables.
pub(crate) const DEVICE_LEGEND: &str =
    "device columns: the topmost device below the target, for all processes";

/// Whether a column counts the requests of a device.
pub(crate) fn has_device_column<H: AsRef<str>>(headings: &[H]) -> bool {
    headings.iter().any(|heading| heading.as_ref().starts_with("device "))
}

/// A table of raw values.
pub(crate) struct Records {
    pub(crate) headings: Vec<String>,
    /// Whether to print the headings. A table that continues another one has none.
    pub(crate) has_headings: bool,
    pub(crate) rows: Vec<Vec<String>>,
}

/// A value that can be written to a field. A missing value is an empty field.
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
    is_left_aligned: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl<R> Columns<R> {
    pub(crate) fn new(items: impl IntoIterator<Item = R>) -> Self {
        let items: Vec<R> = items.into_iter().collect();
        let rows = items.iter().map(|_| Vec::new()).collect();
        Self { items, headings: Vec::new(), is_left_aligned: Vec::new(), rows }
    }

    /// Adds a column of texts that the items own. Otherwise like [`Self::text`].
    pub(crate) fn borrowed_text(self, heading: &str, field: impl for<'r> Fn(&'r R) -> &'r str) -> Self {
        self.text(heading, |item| field(item).to_owned())
    }

    /// Adds a column that is aligned to the left.
    pub(crate) fn text<F: Field>(self, heading: impl Into<String>, field: impl Fn(&R) -> F) -> Self {
        self.column(heading.into(), true, field)
    }

    /// Adds a column that is aligned to the right.
    pub(crate) fn value<F: Field>(self, heading: impl Into<String>, field: impl Fn(&R) -> F) -> Self {
        self.column(heading.into(), false, field)
    }

    fn column<F: Field>(mut self, heading: String, is_left_aligned: bool, field: impl Fn(&R) -> F) -> Self {
        self.headings.push(heading);
        self.is_left_aligned.push(is_left_aligned);
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
        let table = self.empty_table(drop_order);
        Table { rows: self.rows, ..table }
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
        self.is_left_aligned.iter().enumerate().fold(table, |table, (at, left)| table.aligned(at, *left))
    }
}

/// A table for people.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) headings: Vec<String>,
    /// Whether each column is aligned to the left.
    pub(crate) is_left_aligned: Vec<bool>,
    /// The columns to drop if the width is too small, in this order.
    pub(crate) drop_order: Vec<usize>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Whether the words of each heading are on separate lines.
    pub(crate) is_stacked: bool,
    /// The column whose cells are shortened to the remaining room, and its minimum width; `None` if
    /// no column is shortened.
    pub(crate) cut: Option<(usize, usize)>,
}

impl Table {
    /// Returns an empty table, whose first and last column are aligned to the left. If the width is too small, the columns of `drop_order`
    /// are dropped in this order.
    pub(crate) fn new<H: AsRef<str>>(headings: &[H], drop_order: &[usize]) -> Self {
        let last = headings.len().saturating_sub(1);
        Self {
            headings: headings.iter().map(|h| h.as_ref().to_owned()).collect(),
            is_left_aligned: (0..headings.len()).map(|at| at == 0 || at == last).collect(),
            drop_order: drop_order.to_vec(),
            rows: Vec::new(),
            is_stacked: false,
            cut: None,
        }
    }

    /// Draws the words of each heading on separate lines, because the figures below are narrower than a heading.
    #[must_use]
    pub(crate) fn stacked(mut self) -> Self {
        self.is_stacked = true;
        self
    }

    /// Aligns a column to the left or to the right.
    #[must_use]
    pub(crate) fn aligned(mut self, column: usize, left: bool) -> Self {
        if let Some(side) = self.is_left_aligned.get_mut(column) {
            *side = left;
        }
        self
    }

    /// Shortens the cells of this column to the remaining room, down to `min_width`, before a column is dropped.
    #[must_use]
    pub(crate) fn cut_to(mut self, column: usize, min_width: usize) -> Self {
        self.cut = Some((column, min_width));
        self
    }

    /// Adds a row, which has one cell for each heading.
    pub(crate) fn add(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Changes every cell of a column.
    pub(crate) fn edit(&mut self, column: usize, change: impl Fn(&str) -> String) {
        for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = change(cell);
        }
    }

    /// Adds a title of the following rows.
    pub(crate) fn add_title(&mut self, title: &str) {
        let blank = self.headings.iter().skip(1).map(|_| String::new());
        self.rows.push(std::iter::once(format!("{title}:")).chain(blank).collect());
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a cell after the first column contains this text.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.rows.iter().any(|row| row.iter().skip(1).any(|cell| cell.contains(text)))
    }

    /// Returns the indices of the first column and of all non-empty columns; of all columns if there is no row.
    pub(crate) fn filled_columns(&self) -> Vec<usize> {
        let has = |at: usize| self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()));
        (0..self.headings.len()).filter(|at| *at == 0 || self.is_empty() || has(*at)).collect()
    }
}
