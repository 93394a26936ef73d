//! The tables of a database.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::result_table::cut;
use crate::{Cell, ColumnDescription, Database, QueryError, QueryLimits, ResultTable};

/// The tables of a database, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// The tables and views.
    pub tables: Vec<SchemaTable>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaTable {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Columns that refer to other tables.
    pub foreign_keys: Vec<ForeignKey>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type as it was declared; may be empty.
    pub kind: String,
    /// Whether it is of the primary key.
    pub is_key: bool,
}

/// A column that refers to another table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// The column.
    pub column: String,
    /// The other table.
    pub table: String,
    /// Its column; absent for its primary key.
    pub to: Option<String>,
}

/// What is known of columns beside their names, by table and column in small letters.
pub type Descriptions = BTreeMap<(String, String), ColumnDescription>;

impl Schema {
    pub(crate) fn read(database: &Database) -> Result<Self, QueryError> {
        let limits = QueryLimits::default();
        let ask = |sql: &str| database.query(sql, &limits);
        let named = ask(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
             ORDER BY rowid",
        )?;
        let mut tables = Vec::new();
        for row in &named.rows {
            let Some(Cell::Text(name)) = row.first() else { continue };
            let quoted = format!("\"{}\"", name.replace('"', "\"\""));
            // A view on something that is no more has no columns.
            let columns = ask(&format!("PRAGMA table_info({quoted})")).unwrap_or_default();
            let keys = ask(&format!("PRAGMA foreign_key_list({quoted})"))?;
            tables.push(SchemaTable {
                name: name.clone(),
                columns: columns.rows.iter().map(|row| Column::of(&columns, row)).collect(),
                foreign_keys: keys.rows.iter().map(|row| ForeignKey::of(&keys, row)).collect(),
            });
        }
        Ok(Self { tables })
    }

    /// The table of a name, in whatever letters.
    pub fn table(&self, name: &str) -> Option<&SchemaTable> {
        self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// All tables in words, one on a line, at most about `most_bytes` bytes; what is left out is told.
    ///
    /// ```text
    /// books(id INTEGER key, title TEXT, author_id INTEGER -> authors.id)
    /// ```
    pub fn to_text(&self, most_bytes: usize) -> String {
        let mut text = String::new();
        for (place, table) in self.tables.iter().enumerate() {
            let line = table.to_line();
            if text.len() + line.len() > most_bytes {
                let left: Vec<&str> = self.tables[place..].iter().map(|it| &*it.name).collect();
                let mut rest = format!("not shown: {}", left.join(", "));
                cut(&mut rest, most_bytes.max(40));
                text.push_str(&rest);
                return text;
            }
            text.push_str(&line);
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        text
    }
}

impl SchemaTable {
    /// The table on one line.
    pub fn to_line(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|it| self.column_words(it)).collect();
        format!("{}({})", plain(&self.name), columns.join(", "))
    }

    /// The table with a column on every line, and what descriptions say of it.
    pub fn to_lines(&self, descriptions: &Descriptions) -> String {
        let mut text = plain(&self.name);
        for column in &self.columns {
            let _ = write!(text, "\n  {}", self.column_words(column));
            let key = (self.name.to_lowercase(), column.name.to_lowercase());
            if let Some(described) = descriptions.get(&key) {
                let words = described.words();
                if !words.is_empty() {
                    let _ = write!(text, ": {words}");
                }
            }
        }
        text
    }

    fn column_words(&self, column: &Column) -> String {
        let mut words = plain(&column.name);
        if !column.kind.is_empty() {
            words.push(' ');
            words.push_str(&plain(&column.kind));
        }
        if column.is_key {
            words.push_str(" key");
        }
        let of_column = |key: &&ForeignKey| key.column.eq_ignore_ascii_case(&column.name);
        if let Some(key) = self.foreign_keys.iter().find(of_column) {
            let _ = write!(words, " -> {}", plain(&key.table));
            if let Some(to) = &key.to {
                let _ = write!(words, ".{}", plain(to));
            }
        }
        words
    }
}

/// A name on one line.
fn plain(name: &str) -> String {
    Cell::Text(name.to_owned()).to_words(100)
}

fn text_of(table: &ResultTable, row: &[Cell], column: &str) -> Option<String> {
    let place = table.columns.iter().position(|name| name == column)?;
    match row.get(place)? {
        Cell::Text(text) => Some(text.clone()),
        _ => None,
    }
}

impl Column {
    fn of(table: &ResultTable, row: &[Cell]) -> Self {
        let place = table.columns.iter().position(|name| name == "pk");
        let key = place.and_then(|place| row.get(place));
        Self {
            name: text_of(table, row, "name").unwrap_or_default(),
            kind: text_of(table, row, "type").unwrap_or_default(),
            is_key: matches!(key, Some(Cell::Integer(number)) if *number > 0),
        }
    }
}

impl ForeignKey {
    fn of(table: &ResultTable, row: &[Cell]) -> Self {
        Self {
            column: text_of(table, row, "from").unwrap_or_default(),
            table: text_of(table, row, "table").unwrap_or_default(),
            to: text_of(table, row, "to"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_told_with_their_columns_and_keys() {
        let database = Database::from_script(
            "CREATE TABLE authors(id INTEGER PRIMARY KEY, name TEXT);
             CREATE TABLE books(id INTEGER PRIMARY KEY, title TEXT, by INTEGER REFERENCES authors(id), x);
             CREATE VIEW titles AS SELECT title FROM books;
             CREATE TABLE \"odd \"\"one\"(\"a\nb\" TEXT)",
        )
        .unwrap();
        let schema = database.schema().unwrap();
        assert_eq!(
            schema.to_text(1_000),
            "authors(id INTEGER key, name TEXT)\n\
             books(id INTEGER key, title TEXT, by INTEGER -> authors.id, x)\n\
             titles(title TEXT)\n\
             odd \"one(a\\nb TEXT)"
        );
        assert!(schema.to_text(50).ends_with("not shown: books, titles, odd \"one"));
        assert_eq!(schema.table("BOOKS").unwrap().columns.len(), 4);
        let lines = schema.table("authors").unwrap().to_lines(&Descriptions::new());
        assert_eq!(lines, "authors\n  id INTEGER key\n  name TEXT");
    }
}
