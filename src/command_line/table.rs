//! Tables for people.

use callboard_actors::vocabulary::text::bounded;

use crate::output::{Palette, Tone, harmless};

/// Longest text in one cell, in bytes. Remarks may be longer.
const CELL_BYTES_MAX: usize = 1_024;
/// The widest column except the last, in characters. A longer text makes only its own row wider.
const COLUMN_WIDTH_MAX: usize = 48;

/// One cell.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A text in a tone; an empty text is shown as a dash, so that columns can be distinguished.
    pub(super) fn toned(tone: Tone, text: &str) -> Self {
        let text = if text.is_empty() { "-".to_owned() } else { bounded(text, CELL_BYTES_MAX) };
        Self { text, tone }
    }

    /// A plain text.
    pub(super) fn plain(text: impl AsRef<str>) -> Self {
        Self::toned(Tone::Plain, text.as_ref())
    }
}

/// A table with a head. Below a row there may be remarks, which are not aligned to columns.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<(Vec<Cell>, Vec<String>)>,
}

impl Table {
    /// A table with these columns.
    pub(super) fn new(columns: &[&str]) -> Self {
        let head = columns.iter().map(|column| Cell::toned(Tone::Faint, column)).collect();
        Self { rows: vec![(head, vec![])] }
    }

    /// Adds a row, and the remarks below it.
    pub(super) fn row(&mut self, cells: Vec<Cell>, remarks: Vec<String>) {
        self.rows.push((cells, remarks));
    }

    /// The table as lines, each with a line break.
    pub(super) fn lines(&self, palette: Palette) -> String {
        let columns = self.rows[0].0.len();
        let width = |column: usize| {
            let widths = self.rows.iter().map(|(cells, _)| cells[column].text.chars().count());
            widths.max().unwrap_or(0).min(COLUMN_WIDTH_MAX)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut lines = String::new();
        for (cells, remarks) in &self.rows {
            let last = cells.len() - 1;
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                lines.push_str(&palette.paint(cell.tone, &cell.text));
                if column < last {
                    let padding = width.saturating_sub(cell.text.chars().count()) + 2;
                    lines.extend(std::iter::repeat_n(' ', padding));
                }
            }
            lines.push('\n');
            for remark in remarks {
                lines.push_str(&palette.paint(Tone::Faint, &format!("  └ {}", harmless(remark))));
                lines.push('\n');
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_and_nothing_reaches_the_terminal_raw() {
        let mut table = Table::new(&["NAME", "HEALTH"]);
        table.row(vec![Cell::plain("ä-long-name"), Cell::plain("bad\u{1b}[2J")], vec!["why\n".to_owned()]);
        table.row(vec![Cell::plain("b"), Cell::plain("")], vec![]);
        let lines = table.lines(Palette::plain());
        assert_eq!(lines, "NAME         HEALTH\nä-long-name  bad\\u{1b}[2J\n  └ why\\n\nb            -\n");
    }

    #[test]
    fn a_long_name_widens_its_own_row_and_the_last_text_is_whole() {
        let (name, event) = ("n".repeat(200), "e".repeat(900));
        let mut table = Table::new(&["NAME", "EVENT"]);
        table.row(vec![Cell::plain(&name), Cell::plain("x")], vec![]);
        table.row(vec![Cell::plain("a"), Cell::plain(&event)], vec![]);
        let space = " ".repeat(COLUMN_WIDTH_MAX - 4 + 2);
        let expected = format!("NAME{space}EVENT\n{name}  x\na   {space}{event}\n");
        assert_eq!(table.lines(Palette::plain()), expected);
    }
}
