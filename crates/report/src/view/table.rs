//! A table as data: headings, alignments, rows, and what to do if there is too little room.

/// A table. The first and the last column are text; numbers are right-aligned.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) headings: Vec<String>,
    pub(crate) is_text: Vec<bool>,
    pub(crate) min_widths: Vec<usize>,
    pub(crate) drop_order: Vec<usize>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) stacked: bool,
    /// A column whose cells are shortened to the remaining room, and its minimum width.
    pub(crate) cut: Option<(usize, usize)>,
}

impl Table {
    /// Returns an empty table. If the width is too small, the columns of `drop_order` are dropped in this order.
    pub(crate) fn new<H: AsRef<str>>(headings: &[H], drop_order: &[usize]) -> Self {
        let last = headings.len().saturating_sub(1);
        Self {
            headings: headings.iter().map(|h| h.as_ref().to_owned()).collect(),
            is_text: (0..headings.len()).map(|at| at == 0 || at == last).collect(),
            min_widths: vec![0; headings.len()],
            drop_order: drop_order.to_vec(),
            rows: Vec::new(),
            stacked: false,
            cut: None,
        }
    }

    /// Draws the words of each heading on separate lines, since figures are shorter.
    #[must_use]
    pub(crate) fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }

    /// Aligns a column to the left or to the right.
    #[must_use]
    pub(crate) fn aligned(mut self, column: usize, left: bool) -> Self {
        if let Some(side) = self.is_text.get_mut(column) {
            *side = left;
        }
        self
    }

    /// Sets the minimum width of a column.
    #[must_use]
    pub(crate) fn at_least(mut self, column: usize, columns: usize) -> Self {
        if let Some(least) = self.min_widths.get_mut(column) {
            *least = columns;
        }
        self
    }

    /// Shortens the cells of this column to the remaining room, down to `least`, before a column
    /// is dropped.
    #[must_use]
    pub(crate) fn cut_to(mut self, column: usize, least: usize) -> Self {
        self.cut = Some((column, least));
        self
    }

    /// Adds a row, a cell for each heading.
    pub(crate) fn add(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Changes every cell of a column.
    pub(crate) fn edit(&mut self, column: usize, change: impl Fn(&str) -> String) {
        for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = change(cell);
        }
    }

    /// Adds rows.
    pub(crate) fn add_all<R: IntoIterator<Item = String>>(&mut self, rows: impl IntoIterator<Item = R>) {
        rows.into_iter().for_each(|row| self.add(row));
    }

    /// Adds a title of the following rows.
    pub(crate) fn add_title(&mut self, title: &str) {
        let blank = self.headings.iter().skip(1).map(|_| String::new());
        self.rows.push(std::iter::once(format!("{title}:")).chain(blank).collect());
    }

    /// Adds the rows of a table with the same columns.
    pub(crate) fn append(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a cell contains this text.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.rows.iter().any(|row| row.iter().skip(1).any(|cell| cell.contains(text)))
    }

    /// Returns all rows.
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Returns the heading of a column.
    pub(crate) fn heading(&self, column: usize) -> &str {
        self.headings.get(column).map_or("", String::as_str)
    }

    /// Whether a column is text.
    pub(crate) fn is_left(&self, column: usize) -> bool {
        self.is_text.get(column).copied().unwrap_or(true)
    }

    /// Returns the first column and all non-empty columns; all columns if there is no row.
    pub(crate) fn filled_columns(&self) -> Vec<usize> {
        let has = |at: usize| self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()));
        (0..self.headings.len()).filter(|at| *at == 0 || self.is_empty() || has(*at)).collect()
    }
}
