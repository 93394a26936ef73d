//! Results of queries.

use crate::Cell;

/// Characters of a cell that are shown.
const MOST_PER_CELL: usize = 80;

/// The result of a query: names of columns, and rows of as many cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultTable {
    /// What the columns are called.
    pub columns: Vec<String>,
    /// The rows, in their order.
    pub rows: Vec<Vec<Cell>>,
    /// Whether rows were left out, since there were too many.
    pub is_cut: bool,
    /// Whether some text was no UTF-8.
    pub has_invalid_text: bool,
    /// Steps of SQLite's virtual machine that it took, in whole thousands.
    pub steps: u64,
}

impl ResultTable {
    /// The result in words: names, a line, up to `most_rows` rows of it and how many there are; at most about `most_bytes`
    /// bytes.
    pub fn to_text(&self, most_rows: usize, most_bytes: usize) -> String {
        let mut text = String::new();
        if !self.columns.is_empty() {
            let names: Vec<String> = self
                .columns
                .iter()
                .map(|it| Cell::Text(it.clone()).to_words(MOST_PER_CELL))
                .collect();
            text = names.join(" | ");
            let width = text.chars().count().min(MOST_PER_CELL);
            cut(&mut text, most_bytes);
            text.push('\n');
            text.push_str(&"-".repeat(width));
            text.push('\n');
        }
        let mut num_shown = 0;
        for row in self.rows.iter().take(most_rows) {
            let before = text.len();
            for (place, cell) in row.iter().enumerate() {
                if place > 0 {
                    text.push_str(" | ");
                }
                text.push_str(&cell.to_words(MOST_PER_CELL));
                if text.len() > most_bytes {
                    break;
                }
            }
            if text.len() > most_bytes {
                text.truncate(before);
                break;
            }
            text.push('\n');
            num_shown += 1;
        }
        let num_rows = self.rows.len();
        text.push_str(&match (num_rows, self.is_cut) {
            (_, true) => format!("({num_shown} of more than {num_rows} rows)"),
            (1, _) if num_shown == 1 => "(1 row)".to_owned(),
            (num_rows, _) if num_shown == num_rows => format!("({num_rows} rows)"),
            (num_rows, _) => format!("({num_shown} of {num_rows} rows)"),
        });
        text
    }
}

/// Leaves out what is beyond so many bytes, and half a character before that.
pub(crate) fn cut(text: &mut String, most_bytes: usize) {
    let mut end = most_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_bounded_and_says_what_is_left_out() {
        let row = |number: i64| vec![Cell::Integer(number), Cell::Text("a\nb\0".to_owned())];
        let table = ResultTable {
            columns: vec!["n".to_owned(), "text".to_owned()],
            rows: (0..30).map(row).collect(),
            ..ResultTable::default()
        };
        let text = table.to_text(2, 1_000);
        assert_eq!(text, "n | text\n--------\n0 | a\\nb\\u{0}\n1 | a\\nb\\u{0}\n(2 of 30 rows)");
        assert!(table.to_text(30, 60).ends_with("(3 of 30 rows)"), "{}", table.to_text(30, 60));
        let wide = ResultTable {
            columns: vec!["x".repeat(10_000)],
            rows: vec![vec![Cell::Blob(vec![7; 10_000])], vec![Cell::Text("ä".repeat(1_000))]],
            is_cut: true,
            ..ResultTable::default()
        };
        let text = wide.to_text(20, 10_000);
        assert!(text.len() < 1_000 && text.ends_with("(2 of more than 2 rows)"), "{text}");
        let none = ResultTable { columns: vec!["a".to_owned()], ..ResultTable::default() };
        assert_eq!(none.to_text(5, 100), "a\n-\n(0 rows)");
    }
}
