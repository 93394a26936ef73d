//! The time that queries see, which is always the same.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use crate::QueryLimits;

/// What the time is.
const NOW: &str = "2024-01-01 00:00:00";

/// SQLite's functions of time: how many arguments each has, -1 for any number, and which of these are times.
const FUNCTIONS: [(&str, i32, std::ops::Range<usize>); 7] = [
    ("date", -1, 0..1),
    ("time", -1, 0..1),
    ("datetime", -1, 0..1),
    ("julianday", -1, 0..1),
    ("unixepoch", -1, 0..1),
    ("strftime", -1, 1..2),
    ("timediff", 2, 0..2),
];

/// Puts functions of time in the place of SQLite's own that call these with a fixed time for now: for `now` and `subsec`, however
/// a query comes to them, for a time that is left out, and for `CURRENT_TIMESTAMP`, `CURRENT_DATE` and `CURRENT_TIME`. The
/// local time is UTC. So a query tells the same whenever and wherever it is run.
pub(crate) fn fix_now(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    let (date, time) = (&NOW[..10], &NOW[11..]);
    for (name, value) in
        [("current_timestamp", NOW), ("current_date", date), ("current_time", time)]
    {
        connection.create_scalar_function(name, 0, flags, move |_| Ok(value))?;
    }
    let original = Arc::new(Mutex::new(None));
    for (name, num_arguments, times) in FUNCTIONS {
        let original = Arc::clone(&original);
        connection.create_scalar_function(name, num_arguments, flags, move |call| {
            // A message of its own would hide the code, by which one who runs out of memory is known.
            let code_of = |error: rusqlite::Error| match error.sqlite_error() {
                Some(code) => rusqlite::Error::SqliteFailure(*code, None),
                None => error,
            };
            let arguments = at_fixed_time(call, times.clone());
            ask(&original, name, arguments).map_err(code_of)
        })?;
    }
    Ok(())
}

/// The arguments of a call, with the fixed time for now.
fn at_fixed_time<'a>(call: &'a Context<'_>, times: std::ops::Range<usize>) -> Vec<ToSqlOutput<'a>> {
    let text = |text: &'static str| ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()));
    let mut arguments = Vec::with_capacity(call.len() + 1);
    for place in 0..call.len() {
        let value = call.get_raw(place);
        let word = match value {
            // SQLite reads no further than to a NUL.
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                bytes.split(|byte| *byte == 0).next().unwrap_or_default()
            }
            _ => &[],
        };
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let is_time = times.contains(&place);
        if is_time && is("now") {
            arguments.push(text(NOW));
        } else if is_time && (is("subsec") || is("subsecond")) {
            arguments.extend([text(NOW), text("subsec")]);
        } else if place >= times.end && (is("localtime") || is("utc")) {
            arguments.push(text("+0 days"));
        } else {
            arguments.push(ToSqlOutput::Borrowed(value));
        }
    }
    // Without its format `strftime` has no time to lack.
    if arguments.len() == times.start && times.len() == 1 {
        arguments.push(text(NOW));
    }
    arguments
}

/// What SQLite's own function says, on a connection that has no other.
fn ask(
    original: &Mutex<Option<Connection>>,
    name: &str,
    arguments: Vec<ToSqlOutput<'_>>,
) -> rusqlite::Result<Value> {
    let mut original = original.lock().unwrap_or_else(PoisonError::into_inner);
    let connection = match &mut *original {
        Some(connection) => connection,
        none => {
            let opened = Connection::open_in_memory()?;
            opened.set_limit(Limit::SQLITE_LIMIT_LENGTH, QueryLimits::VALUE_BYTES)?;
            none.insert(opened)
        }
    };
    let marks = vec!["?"; arguments.len()].join(",");
    let mut call = connection.prepare(&format!("SELECT {name}({marks})"))?;
    call.query_row(params_from_iter(arguments), |row| {
        Ok(match row.get_ref(0)? {
            ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            _ => row.get(0)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Database};

    fn rows(sql: &str) -> Vec<Vec<Cell>> {
        let database = Database::from_script(
            "CREATE TABLE t(d, \"now\"); INSERT INTO t VALUES ('now', '2020-02-31');",
        );
        database.unwrap().query(sql, &QueryLimits::default()).unwrap().rows
    }

    #[test]
    fn now_is_one_moment_however_a_query_comes_to_it() {
        let date = Cell::Text("2024-01-01".to_owned());
        for now in [
            "date('now')",
            "date(\"now\")",
            "date('no' || 'w')",
            "date('NoW')",
            "date(x'6e6f77')",
            "date('now' || char(0) || 'x')",
            "date()",
            "date((SELECT d FROM t))",
            "date('now', 'localtime')",
            "date(max('now', 'mow'))",
            "date('subsec')",
            "CURRENT_DATE",
            "strftime('%Y-%m-%d')",
            "strftime('%Y-%m-%d', 'now')",
            "substr(datetime('now', 'utc'), 1, 10)",
            "substr(CURRENT_TIMESTAMP, 1, 10)",
            "date(julianday('now'))",
            "date(unixepoch(), 'unixepoch')",
            "(WITH n(x) AS (VALUES ('now')) SELECT date(x) FROM n)",
        ] {
            assert_eq!(rows(&format!("SELECT {now}")), [[date.clone()]], "{now}");
        }
        let text = |text: &str| Cell::Text(text.to_owned());
        assert_eq!(rows("SELECT time('now'), CURRENT_TIME"), [[(); 2].map(|()| text("00:00:00"))]);
        assert_eq!(
            rows("SELECT timediff('now', '2023-12-31')"),
            [[text("+0000-00-01 00:00:00.000")]]
        );
        assert_eq!(rows("SELECT time('subsec', '+1 hour')"), [[text("01:00:00.000")]]);
    }

    #[test]
    fn what_is_no_time_of_now_is_left_as_it_is() {
        let text = |text: &str| Cell::Text(text.to_owned());
        // A column of that name is a column.
        assert_eq!(rows("SELECT date(\"now\"), d FROM t"), [[text("2020-03-02"), text("now")]]);
        assert_eq!(rows("SELECT strftime('now', 'now', '+1 day')"), [[text("now")]]);
        assert_eq!(rows("SELECT date('2020-01-31', '+1 month')"), [[text("2020-03-02")]]);
        assert_eq!(rows("SELECT strftime('%s', 0.5, 'unixepoch', 'subsec')"), [[text("0.500")]]);
        for null in ["date(NULL)", "date('soon')", "strftime()", "date('now', 'then')"] {
            assert_eq!(rows(&format!("SELECT {null}")), [[Cell::Null]], "{null}");
        }
        let told = |sql: &str| {
            let database = Database::from_script("").unwrap();
            database.query(sql, &QueryLimits::default()).unwrap_err().to_string()
        };
        assert!(told("SELECT timediff('now')").contains("wrong number of arguments"));
        let long = told("SELECT strftime(replace(hex(zeroblob(50000)), '00', '%f'), 'now')");
        assert_eq!(long, "string or blob too big");
    }
}
