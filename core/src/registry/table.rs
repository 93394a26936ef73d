//! All rows of an axis.

use std::ops::Deref;
use std::slice;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::names::known_names;
use super::{DescribedDetail, DescribedRow, Given, InstallError, Options, Row, RowError};

/// What a table is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// The name, as it is listed: a plural where there is one, such as `objectives`.
    pub name: &'static str,
    /// What one row is, such as `objective`; reads well before a name.
    pub what: &'static str,
    /// One line on what is chosen here.
    pub about: &'static str,
}

/// All rows of an axis: those that ship, and those that other crates add before it is read for the first time.
///
/// Rows are in a fixed order: those that ship as they stand, then those that were added as they came.
#[derive(Debug)]
pub struct Table<O: 'static> {
    axis: Axis,
    shipped: &'static [Row<O>],
    details: fn(&O) -> Vec<DescribedDetail>,
    added: Mutex<Added<O>>,
    rows: OnceLock<Vec<Row<O>>>,
}

#[derive(Debug)]
struct Added<O> {
    rows: Vec<Row<O>>,
    /// Whether the table was read, so that nothing can be added any more.
    is_closed: bool,
}

impl<O: Copy> Table<O> {
    /// The table of an axis with the rows that ship.
    pub const fn new(axis: Axis, shipped: &'static [Row<O>]) -> Self {
        Self::with_details(axis, shipped, |_| Vec::new())
    }

    /// The same, where descriptions of rows also tell what these consist of.
    pub const fn with_details(
        axis: Axis,
        shipped: &'static [Row<O>],
        details: fn(&O) -> Vec<DescribedDetail>,
    ) -> Self {
        let added = Mutex::new(Added { rows: Vec::new(), is_closed: false });
        Self { axis, shipped, details, added, rows: OnceLock::new() }
    }

    /// What it is of.
    pub fn axis(&self) -> Axis {
        self.axis
    }

    /// All rows.
    pub fn rows(&self) -> &[Row<O>] {
        self.rows.get_or_init(|| {
            let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
            added.is_closed = true;
            let mut rows = self.shipped.to_vec();
            rows.append(&mut added.rows);
            rows
        })
    }

    /// Adds a row, before the table is read for the first time. Nothing of it is run, so that no table is read; once all
    /// tables have their rows, [`check`](Self::check) looks at what it says.
    ///
    /// # Errors
    ///
    /// [`InstallError`] when the table has been read, or a row has the name.
    pub fn install(&self, row: Row<O>) -> Result<(), InstallError> {
        let Axis { name: axis, what, .. } = self.axis;
        let name = row.name;
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        if added.is_closed {
            return Err(InstallError::InUse { what, axis, name });
        }
        if self.shipped.iter().chain(&added.rows).any(|other| other.name == name) {
            return Err(InstallError::Duplicate { what, name });
        }
        added.rows.push(row);
        Ok(())
    }

    /// Looks at what a row says about itself. What checks its options may read any table, to which nothing can be added
    /// any more then.
    ///
    /// # Errors
    ///
    /// [`InstallError::Incomplete`] when it does not say what it has to.
    pub fn check(&self, row: &Row<O>) -> Result<(), InstallError> {
        match row.problems() {
            problems if problems.is_empty() => Ok(()),
            problems => {
                Err(InstallError::Incomplete { what: self.axis.what, name: row.name, problems })
            }
        }
    }

    /// The row of a name.
    ///
    /// # Errors
    ///
    /// [`RowError::Unknown`] lists the names there are, those that resemble this one first.
    pub fn find(&self, name: &str) -> Result<&Row<O>, RowError> {
        self.rows().iter().find(|row| row.name == name).ok_or_else(|| RowError::Unknown {
            what: self.axis.what,
            name: name.to_owned(),
            known: known_names(name, self.rows().iter().map(|row| row.name)),
        })
    }

    /// The row of a name, with options that it has.
    ///
    /// # Errors
    ///
    /// [`RowError`] when there is no such row, or tells all that is wrong with the options.
    pub fn choose<'a>(
        &self,
        name: &str,
        options: &'a Options,
    ) -> Result<(&Row<O>, Given<'a>), RowError> {
        let row = self.find(name)?;
        RowError::refuse(self.axis.what, row.name, row.options.check(options))?;
        Ok((row, Given::new(self.axis.what, row.name, row.options, options)))
    }
}

impl<O: Copy> Deref for Table<O> {
    type Target = [Row<O>];

    fn deref(&self) -> &[Row<O>] {
        self.rows()
    }
}

impl<'a, O: Copy> IntoIterator for &'a Table<O> {
    type Item = &'a Row<O>;
    type IntoIter = slice::Iter<'a, Row<O>>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows().iter()
    }
}

/// A table, whatever its rows open.
pub trait AnyTable: Sync {
    /// What it is of.
    fn axis(&self) -> Axis;

    /// What each row says about itself, in order.
    fn describe(&self) -> Vec<DescribedRow>;

    /// All that its rows do not say as they should; empty when nothing is wrong.
    fn problems(&self) -> Vec<String>;
}

impl<O: Copy + Send + Sync> AnyTable for Table<O> {
    fn axis(&self) -> Axis {
        self.axis
    }

    fn describe(&self) -> Vec<DescribedRow> {
        let describe =
            |row: &Row<O>| DescribedRow { details: (self.details)(&row.open), ..row.describe() };
        self.rows().iter().map(describe).collect()
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (index, row) in self.rows().iter().enumerate() {
            let of_row = |problem| format!("{} `{}`: {problem}", self.axis.what, row.name);
            problems.extend(row.problems().into_iter().map(of_row));
            if self.rows()[..index].iter().any(|other| other.name == row.name) {
                problems.push(of_row("another row has its name".to_owned()));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::super::OptionSet;
    use super::*;

    type Open = fn() -> u32;

    const fn row(name: &'static str, open: Open) -> Row<Open> {
        let options = OptionSet::NONE;
        Row { name, about: "A number.", source: "own", formula: "", options, open }
    }

    fn table() -> Table<Open> {
        const SHIPPED: &[Row<Open>] = &[row("one", || 1), row("two", || 2)];
        Table::new(Axis { name: "numbers", what: "number", about: "Numbers." }, SHIPPED)
    }

    #[test]
    fn rows_that_are_added_before_first_use_are_found_like_those_that_ship() {
        let table = table();
        table.install(row("three", || 3)).unwrap();
        let names: Vec<&str> = table.iter().map(|row| row.name).collect();
        assert_eq!(names, ["one", "two", "three"]);
        assert_eq!((table.find("three").unwrap().open)(), 3);
        assert!(AnyTable::problems(&table).is_empty());
        assert_eq!(table.describe()[2].name, "three");
    }

    #[test]
    fn a_table_tells_what_its_rows_consist_of() {
        const SHIPPED: &[Row<Open>] = &[row("one", || 1)];
        let axis = Axis { name: "numbers", what: "number", about: "Numbers." };
        let table: Table<Open> = Table::with_details(axis, SHIPPED, |open| {
            vec![
                DescribedDetail::new("double", 2 * open()),
                DescribedDetail::new("half", None::<u32>),
            ]
        });
        let row = serde_json::to_value(&table.describe()[0]).unwrap();
        let told = r#"[{"name":"double","value":2},{"name":"half","value":null}]"#;
        assert_eq!(row["details"].to_string(), told);
        let plain = serde_json::to_value(&self::table().describe()[0]).unwrap();
        assert_eq!(plain.get("details"), None);
    }

    #[test]
    fn rows_are_refused_behind_first_use_under_a_known_name_or_without_what_they_have_to_say() {
        let table = table();
        table.check(&row("two", || 4)).unwrap();
        let told = table.install(row("two", || 4)).unwrap_err();
        assert_eq!(told.to_string(), "add number `two`: there is one of this name");
        let blank = Row { about: "", source: " ", ..row("No", || 0) };
        let InstallError::Incomplete { problems, .. } = table.check(&blank).unwrap_err() else {
            panic!()
        };
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert_eq!(table.len(), 2);
        let told = table.install(row("three", || 3)).unwrap_err();
        assert!(matches!(told, InstallError::InUse { .. }), "{told}");
    }

    #[test]
    fn unknown_names_and_options_are_refused() {
        let table = table();
        let told = table.find("tow").unwrap_err();
        assert_eq!(told.to_string(), "find number `tow`: known are `two`, `one`");
        let options = serde_json::from_str(r#"{ "a": 1, "b": 2 }"#).unwrap();
        let told = table.choose("one", &options).unwrap_err();
        assert_eq!(told.problems().len(), 2);
        assert!(told.to_string().starts_with("use number `one`: there is no option `a`"), "{told}");
    }
}
