//! Descriptions of columns, in the files that BIRD has beside its databases.

use std::path::Path;

use crate::DatabaseError;
use crate::schema::Descriptions;

/// The most that is read of a file.
const MOST_BYTES: u64 = 4 << 20;
/// Characters of a description that are shown.
const MOST_WORDS: usize = 300;

/// What is known of a column beside its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnDescription {
    /// What the column is called in plain words; may be empty.
    pub name: String,
    /// What it holds; may be empty.
    pub about: String,
    /// What its values mean; may be empty.
    pub values: String,
}

impl ColumnDescription {
    /// It in one line.
    pub(crate) fn words(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for part in [&self.name, &self.about, &self.values] {
            let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
            if !part.is_empty() && !parts.contains(&part) {
                parts.push(part);
            }
        }
        let words = parts.join("; ");
        match words.char_indices().nth(MOST_WORDS) {
            Some((end, _)) => format!("{}...", &words[..end]),
            None => words,
        }
    }
}

/// Reads the descriptions in a folder such as BIRD's `database_description`: a CSV file for every table, named like it, whose
/// columns are `original_column_name`, `column_name`, `column_description`, `data_format` and `value_description`. Bytes that are
/// no UTF-8 are read as Windows-1252 is by and large. Keys are table and column in small letters; none where there is no such
/// folder.
///
/// # Errors
///
/// [`DatabaseError::Descriptions`] names a file that cannot be read, or lacks `original_column_name`.
pub fn read_descriptions(folder: &Path) -> Result<Descriptions, DatabaseError> {
    let mut found = Descriptions::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    let refuse =
        |path: &Path, detail: String| DatabaseError::Descriptions { path: path.to_owned(), detail };
    let entries = std::fs::read_dir(folder).map_err(|error| refuse(folder, error.to_string()))?;
    for entry in entries {
        let path = entry.map_err(|error| refuse(folder, error.to_string()))?.path();
        if !path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv")) {
            continue;
        }
        let length = path.metadata().map_err(|error| refuse(&path, error.to_string()))?.len();
        if length > MOST_BYTES {
            return Err(refuse(
                &path,
                format!("it has {length} bytes, at most {MOST_BYTES} are read"),
            ));
        }
        let bytes = std::fs::read(&path).map_err(|error| refuse(&path, error.to_string()))?;
        let table = path.file_stem().unwrap_or_default().to_string_lossy().trim().to_lowercase();
        let lines = records(&decoded(&bytes));
        let mut lines = lines.into_iter();
        let header = lines.next().unwrap_or_default();
        let place = |name: &str| header.iter().position(|it| it.trim().eq_ignore_ascii_case(name));
        let Some(original) = place("original_column_name") else {
            return Err(refuse(&path, "its first line names no `original_column_name`".to_owned()));
        };
        let (name, about, values) =
            (place("column_name"), place("column_description"), place("value_description"));
        for line in lines {
            let cell = |place: Option<usize>| {
                place.and_then(|place| line.get(place)).map_or("", |it| it.trim()).to_owned()
            };
            let column = cell(Some(original)).to_lowercase();
            if column.is_empty() {
                continue;
            }
            let described =
                ColumnDescription { name: cell(name), about: cell(about), values: cell(values) };
            found.insert((table.clone(), column), described);
        }
    }
    Ok(found)
}

/// Bytes as text: UTF-8, without its mark at the beginning, or else a character for every byte.
fn decoded(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.trim_start_matches('\u{feff}').to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// The records of a CSV file: cells between commas, in double quotes where they hold commas, quotes (doubled) or line breaks.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut record = Vec::new();
    let mut cell = String::new();
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            '"' if cell.is_empty() => is_quoted = true,
            ',' if !is_quoted => record.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut cell));
                found.push(std::mem::take(&mut record));
            }
            c => cell.push(c),
        }
    }
    if !cell.is_empty() || !record.is_empty() {
        record.push(cell);
        found.push(record);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_by_table_and_column() {
        let folder = std::env::temp_dir().join(format!("spar-described-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let header = "\u{feff}original_column_name,column_name,column_description,data_format,value_description\r\n";
        let body =
            "Cost,price,\"what it costs, in \"\"cents\"\"\",integer,\"low\n= cheap\"\r\n,,,,\r\n";
        std::fs::write(folder.join("Items.csv"), format!("{header}{body}")).unwrap();
        std::fs::write(folder.join("notes.txt"), "none").unwrap();
        let found = read_descriptions(&folder).unwrap();
        assert_eq!(found.len(), 1);
        let key = ("items".to_owned(), "cost".to_owned());
        assert_eq!(found[&key].words(), "price; what it costs, in \"cents\"; low = cheap");
        std::fs::write(folder.join("bad.csv"), b"a,b\n\xff,1\n").unwrap();
        let told = read_descriptions(&folder).unwrap_err().to_string();
        assert!(told.contains("bad.csv") && told.contains("original_column_name"), "{told}");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(read_descriptions(&folder).unwrap().is_empty());
    }
}
