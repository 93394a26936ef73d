//! Databases that are only read.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::clock::fix_now;
use crate::error::words;
use crate::guard::{Reads, STEPS_PER_LOOK, Stop, Watch};
use crate::reader::first_statement;
use crate::{Cell, DatabaseError, QueryError, QueryLimits, ResultTable, Schema};

/// Files that are kept open for whoever opens them next.
const MOST_KEPT: usize = 32;
/// Connections that are kept for the next queries.
const MOST_IDLE: usize = 4;
/// Steps and time of a query that is run at once.
const STEPS_AT_ONCE: u64 = 200_000;
const TIME_AT_ONCE: Duration = Duration::from_millis(20);

/// A database that is only read, in a file or in memory; a clone is the same database.
///
/// Queries from any number of threads read it at a time, each on a connection of its own that is taken from those that are
/// idle. A query leaves nothing behind, so that who asks needs no state, and nothing has to be reset or copied.
///
/// What a query may do is to read: SQLite's authorizer refuses everything else (writing, temporary tables, `ATTACH`, pragmas
/// but for those that tell of the schema, `load_extension`), and so does the way in which the database is open. `random` and
/// `randomblob` are refused too, and `now` is 2024-01-01 in functions of time and the local time UTC, so that equal queries have equal
/// results.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    source: Source,
    idle: Mutex<Vec<Session>>,
    schema: OnceLock<Schema>,
}

enum Source {
    File {
        path: PathBuf,
    },
    /// A database in memory by its name; it lives as long as the connection that made it.
    Memory {
        name: String,
        _maker: Mutex<Connection>,
    },
}

/// A guarded connection.
struct Session {
    connection: Connection,
    watch: Arc<Watch>,
    /// Steps between two looks at the budget, as the connection has it.
    steps_per_look: i32,
}

/// Queries run side by side, and one that ran out of memory once more alone: so what others took is no reason.
static MEMORY: RwLock<()> = RwLock::new(());

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.inner.source {
            Source::File { path } => path.display().to_string(),
            Source::Memory { name, .. } => name.clone(),
        };
        f.debug_tuple("Database").field(&name).finish()
    }
}

impl Database {
    /// Opens a file. It is not changed, and must not change while it is open.
    ///
    /// # Errors
    ///
    /// [`DatabaseError`] when there is none, or it is no database.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        if !path.is_file() {
            return Err(DatabaseError::Missing { path: path.to_owned() });
        }
        let refuse = |detail: String| DatabaseError::Open { path: path.to_owned(), detail };
        let absolute = path.canonicalize().map_err(|error| refuse(error.to_string()))?;
        let database = Self::new(Source::File { path: absolute });
        let limits = QueryLimits::default();
        let looked = database.query("SELECT count(*) FROM sqlite_master", &limits);
        looked.map_err(|error| refuse(error.to_string()))?;
        Ok(database)
    }

    /// The database of a file that was opened in this process before and is still kept, or else opens it.
    ///
    /// # Errors
    ///
    /// As [`Database::open`].
    pub fn open_shared(path: &Path) -> Result<Self, DatabaseError> {
        type Key = (PathBuf, u64, Option<SystemTime>);
        static KEPT: Mutex<VecDeque<(Key, Database)>> = Mutex::new(VecDeque::new());
        let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let known = std::fs::metadata(path)
            .map_err(|_| DatabaseError::Missing { path: path.to_owned() })?;
        // Another file at the same place is another database.
        let key = (path.to_owned(), known.len(), known.modified().ok());
        if let Some((_, found)) = kept().iter().find(|(of, _)| *of == key) {
            return Ok(found.clone());
        }
        let opened = Self::open(path)?;
        let mut kept = kept();
        kept.push_back((key, opened.clone()));
        if kept.len() > MOST_KEPT {
            kept.pop_front();
        }
        Ok(opened)
    }

    /// Makes a database in memory of a script of SQL, which is trusted.
    ///
    /// # Errors
    ///
    /// [`DatabaseError::Script`] when it cannot be run.
    pub fn from_script(script: &str) -> Result<Self, DatabaseError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let refuse = |error| DatabaseError::Script { detail: words(error) };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("/spar-{}-{number}", std::process::id());
        let uri = format!("file:{name}?vfs=memdb");
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_URI;
        let make = || {
            let maker = Connection::open_with_flags(&uri, flags)?;
            maker.execute_batch("PRAGMA journal_mode = OFF; BEGIN;")?;
            maker.execute_batch(script)?;
            maker.execute_batch("COMMIT;")?;
            Ok(maker)
        };
        let is_memory =
            |error: &rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::OutOfMemory);
        let maker = alone_if_needed(is_memory, make).map_err(refuse)?;
        Ok(Self::new(Source::Memory { name, _maker: Mutex::new(maker) }))
    }

    fn new(source: Source) -> Self {
        Self { inner: Arc::new(Inner { source, idle: Mutex::default(), schema: OnceLock::new() }) }
    }

    /// Its file; absent where it lies in memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.inner.source {
            Source::File { path } => Some(path),
            Source::Memory { .. } => None,
        }
    }

    /// Its tables.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when they cannot be read.
    pub fn schema(&self) -> Result<&Schema, QueryError> {
        if let Some(schema) = self.inner.schema.get() {
            return Ok(schema);
        }
        let schema = Schema::read(self)?;
        Ok(self.inner.schema.get_or_init(|| schema))
    }

    /// Runs a query.
    ///
    /// # Errors
    ///
    /// [`QueryError`] says why it has no result, in SQLite's words where it is SQLite that says so.
    pub fn query(&self, sql: &str, limits: &QueryLimits) -> Result<ResultTable, QueryError> {
        self.query_timed(sql, limits).0
    }

    /// The same, with the time that it took: that of others, which had to be waited for, does not count.
    pub(crate) fn query_timed(
        &self,
        sql: &str,
        limits: &QueryLimits,
    ) -> (Result<ResultTable, QueryError>, Duration) {
        let taken = std::cell::Cell::new(Duration::ZERO);
        let found = statement_of(sql).and_then(|statement| {
            self.ask(|session| {
                let start = Instant::now();
                let found = session.run(statement, limits, Pace::InTime);
                taken.set(start.elapsed());
                found
            })
        });
        (found, taken.get())
    }

    /// Runs a query if that takes no time to speak of, for who must not be held up; absent where it would have to be
    /// [run](Self::query) elsewhere. What is told is what that tells.
    ///
    /// A query takes no time to speak of that ends within 200,000 steps and 20 ms, has no functions of which one step may take
    /// long, such as `instr` or `LIKE`, and finds the memory that it needs beside the others.
    pub fn query_at_once(
        &self,
        sql: &str,
        limits: &QueryLimits,
    ) -> Option<Result<ResultTable, QueryError>> {
        let statement = match statement_of(sql) {
            Ok(statement) => statement,
            Err(error) => return Some(Err(error)),
        };
        let few = QueryLimits {
            steps: limits.steps.min(STEPS_AT_ONCE),
            time: limits.time.min(TIME_AT_ONCE),
            ..limits.clone()
        };
        let _beside = match MEMORY.try_read() {
            Ok(beside) => beside,
            Err(TryLockError::Poisoned(beside)) => beside.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        match self.with_session(|session| session.run(statement, &few, Pace::AtOnce)) {
            Ok(table) => Some(Ok(table)),
            Err(Failure::Query(QueryError::Steps { .. } | QueryError::Time { .. })) => None,
            Err(Failure::Query(error)) => Some(Err(error)),
            Err(Failure::Memory(_) | Failure::Heavy) => None,
        }
    }

    /// What a query reads, found without running it: the tables and columns that SQLite resolves its names to.
    ///
    /// # Errors
    ///
    /// As [`Database::query`].
    pub fn reads(&self, sql: &str) -> Result<Reads, QueryError> {
        let statement = statement_of(sql)?;
        self.ask(|session| {
            session.watch.begin(&QueryLimits::default());
            session.watch.record();
            let prepared = session.connection.prepare(statement).map(drop);
            let reads = session.watch.recorded();
            match prepared {
                Ok(()) => Ok(reads),
                Err(rusqlite::Error::Empty) => Err(Failure::Query(QueryError::Empty)),
                Err(error) => Err(Failure::of(error)),
            }
        })
    }

    /// Has a session do something, once more alone where it ran out of memory.
    fn ask<T>(&self, run: impl Fn(&mut Session) -> Result<T, Failure>) -> Result<T, QueryError> {
        let is_memory = |failure: &Failure| matches!(failure, Failure::Memory(_));
        alone_if_needed(is_memory, || self.with_session(&run)).map_err(|failure| match failure {
            Failure::Memory(error) | Failure::Query(error) => error,
            Failure::Heavy => unreachable!("only a query that is run at once can be too heavy"),
        })
    }

    fn with_session<T>(
        &self,
        run: impl Fn(&mut Session) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let idle = || self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut session = match taken {
            Some(session) => session,
            None => Session::open(&self.inner.source).map_err(Failure::of)?,
        };
        let done = run(&mut session);
        let mut idle = idle();
        if idle.len() < MOST_IDLE {
            idle.push(session);
        }
        done
    }
}

/// Why a session has no result.
enum Failure {
    /// It ran out of memory, which may be others' doing.
    Memory(QueryError),
    Query(QueryError),
    /// One of its steps may take long, and it was to be run at once.
    Heavy,
}

/// How long a query may take of the time of whoever waits for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// As long as its limits have it.
    InTime,
    /// No time: what may take long in one step, behind which alone the limits are looked at, is not begun.
    AtOnce,
}

impl Failure {
    fn of(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::OutOfMemory) => Self::Memory(QueryError::of(error)),
            _ => Self::Query(QueryError::of(error)),
        }
    }
}

/// Does something beside others, and once more alone where it ran out of the memory that all share.
fn alone_if_needed<T, E>(
    is_memory: impl Fn(&E) -> bool,
    run: impl Fn() -> Result<T, E>,
) -> Result<T, E> {
    let beside = MEMORY.read().unwrap_or_else(PoisonError::into_inner);
    let first = run();
    drop(beside);
    match first {
        Err(error) if is_memory(&error) => {
            let _alone = MEMORY.write().unwrap_or_else(PoisonError::into_inner);
            run()
        }
        other => other,
    }
}

/// The one statement of a query.
fn statement_of(sql: &str) -> Result<&str, QueryError> {
    let allowed = QueryLimits::SQL_BYTES;
    if sql.len() > allowed {
        return Err(QueryError::TooLong { found: sql.len(), allowed });
    }
    if sql.contains('\0') {
        return Err(QueryError::Nul);
    }
    match first_statement(sql) {
        (_, true) => Err(QueryError::Several),
        (statement, false) => Ok(statement),
    }
}

impl Session {
    fn open(source: &Source) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let uri = match source {
            Source::File { path } => format!("file:{}?mode=ro&immutable=1", escaped(path)),
            Source::Memory { name, .. } => format!("file:{name}?vfs=memdb&mode=ro"),
        };
        let mut connection = Connection::open_with_flags(uri, flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // Views and generated columns of a foreign file call no function that could do harm.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.execute_batch(&format!(
            "PRAGMA temp_store = MEMORY; PRAGMA hard_heap_limit = {}",
            QueryLimits::HEAP_BYTES
        ))?;
        let most = |limit, value| connection.set_limit(limit, value);
        most(Limit::SQLITE_LIMIT_LENGTH, QueryLimits::VALUE_BYTES)?;
        most(Limit::SQLITE_LIMIT_SQL_LENGTH, QueryLimits::SQL_BYTES as i32)?;
        most(Limit::SQLITE_LIMIT_EXPR_DEPTH, QueryLimits::EXPRESSION_DEPTH)?;
        most(Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100)?;
        most(Limit::SQLITE_LIMIT_COLUMN, 2_000)?;
        most(Limit::SQLITE_LIMIT_VDBE_OP, 1_000_000)?;
        most(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200)?;
        most(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        most(Limit::SQLITE_LIMIT_WORKER_THREADS, 0)?;
        let watch = Arc::new(Watch::new());
        let guard = Arc::clone(&watch);
        connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| {
            guard.authorize(context)
        }))?;
        let mut session = Self { connection, watch, steps_per_look: 0 };
        fix_now(&session.connection)?;
        session.look_every(STEPS_PER_LOOK)?;
        Ok(session)
    }

    /// Has the watch look at the budget after every so many steps.
    fn look_every(&mut self, steps: i32) -> rusqlite::Result<()> {
        let counter = Arc::clone(&self.watch);
        self.connection.progress_handler(steps, Some(move || counter.look()))?;
        self.steps_per_look = steps;
        Ok(())
    }

    fn run(
        &mut self,
        statement: &str,
        limits: &QueryLimits,
        pace: Pace,
    ) -> Result<ResultTable, Failure> {
        self.watch.begin(limits);
        self.read(statement, limits, pace).map_err(|error| match error {
            Told::Own(error) => Failure::Query(error),
            Told::Heavy => Failure::Heavy,
            Told::Sqlite(error) => match self.watch.stop() {
                Some(Stop::Steps) => Failure::Query(QueryError::Steps { steps: limits.steps }),
                Some(Stop::Time) => {
                    Failure::Query(QueryError::Time { seconds: limits.time.as_secs() })
                }
                None => Failure::of(error),
            },
        })
    }

    fn read(
        &mut self,
        statement: &str,
        limits: &QueryLimits,
        pace: Pace,
    ) -> Result<ResultTable, Told> {
        let failed = |error| match error {
            rusqlite::Error::Empty => Told::Own(QueryError::Empty),
            error => Told::Sqlite(error),
        };
        let mut prepared = self.connection.prepare(statement).map_err(failed)?;
        // What it calls, and so how often the budget has to be looked at, is known only now.
        let wanted = self.watch.steps_per_look();
        if pace == Pace::AtOnce && wanted < STEPS_PER_LOOK {
            return Err(Told::Heavy);
        }
        if wanted != self.steps_per_look {
            drop(prepared);
            self.look_every(wanted).map_err(Told::Sqlite)?;
            prepared = self.connection.prepare(statement).map_err(failed)?;
        }
        let num_parameters = prepared.parameter_count();
        if num_parameters > 0 {
            return Err(Told::Own(QueryError::Parameters(num_parameters)));
        }
        let columns: Vec<String> = prepared.column_names().map(str::to_owned).collect();
        let num_columns = columns.len();
        let mut table = ResultTable { columns, ..ResultTable::default() };
        let mut num_bytes = 0;
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next().map_err(Told::Sqlite)? {
            let mut cells = Vec::with_capacity(num_columns);
            for place in 0..num_columns {
                let value = row.get_ref(place).map_err(Told::Sqlite)?;
                let cell = cell_of(value, &mut table.has_invalid_text);
                num_bytes += cell.num_bytes();
                cells.push(cell);
            }
            num_bytes += size_of::<Vec<Cell>>();
            if table.rows.len() >= limits.rows || num_bytes > limits.result_bytes {
                table.is_cut = true;
                break;
            }
            table.rows.push(cells);
        }
        table.steps = limits.steps.saturating_sub(self.watch.steps_left());
        Ok(table)
    }
}

/// Who says that there is no result.
enum Told {
    Own(QueryError),
    /// Nobody has yet: the query was not begun.
    Heavy,
    Sqlite(rusqlite::Error),
}

fn cell_of(value: ValueRef<'_>, is_invalid: &mut bool) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(bytes) => Cell::Text(match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                *is_invalid = true;
                bytes.utf8_chunks().map(|chunk| chunk.valid()).collect()
            }
        }),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}

/// A path inside a URI.
fn escaped(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) || byte >= 0x80;
    let mut text = String::new();
    for byte in path.to_string_lossy().bytes() {
        if plain(byte) && byte.is_ascii() {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn books() -> Database {
        Database::from_script(
            "CREATE TABLE books(id INTEGER PRIMARY KEY, title TEXT, pages INTEGER);
             INSERT INTO books VALUES (1, 'Ash', 90), (2, 'Bay', 300), (3, 'Cob', NULL);
             CREATE VIEW long AS SELECT title FROM books WHERE pages > 100;
             CREATE INDEX by_title ON books(title);",
        )
        .unwrap()
    }

    fn told(sql: &str) -> String {
        match books().query(sql, &QueryLimits::default()) {
            Ok(table) => panic!("`{sql:.80}` has a result: {}", table.to_text(5, 500)),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn queries_read_and_their_results_are_typed() {
        let found = books()
            .query("SELECT title, pages, pages / 2.0, x'00ff' FROM books;", &QueryLimits::default())
            .unwrap();
        assert_eq!(found.columns, ["title", "pages", "pages / 2.0", "x'00ff'"]);
        let text = |text: &str| Cell::Text(text.to_owned());
        let blob = Cell::Blob(vec![0, 255]);
        assert_eq!(found.rows[0], [text("Ash"), Cell::Integer(90), Cell::Real(45.0), blob.clone()]);
        assert_eq!(found.rows[2], [text("Cob"), Cell::Null, Cell::Null, blob]);
        let cut = QueryLimits { rows: 2, ..QueryLimits::default() };
        let found = books().query("SELECT id FROM books", &cut).unwrap();
        assert!(found.is_cut && found.rows.len() == 2);
        let invalid =
            books().query("SELECT CAST(x'41ff42' AS TEXT)", &QueryLimits::default()).unwrap();
        assert!(invalid.has_invalid_text && invalid.rows[0] == [text("AB")]);
    }

    #[test]
    fn nothing_but_reading_is_authorized() {
        for sql in [
            "DELETE FROM books",
            "INSERT INTO books VALUES (9, 'x', 1)",
            "UPDATE books SET pages = 0",
            "DROP TABLE books",
            "CREATE TABLE t(x)",
            "CREATE TEMP TABLE t AS SELECT * FROM books",
            "CREATE VIEW v AS SELECT 1",
            "ATTACH '/tmp/x.db' AS other",
            "DETACH main",
            "PRAGMA writable_schema = 1",
            "PRAGMA hard_heap_limit = 0",
            "PRAGMA database_list",
            "PRAGMA journal_mode",
            "VACUUM",
            "VACUUM INTO '/tmp/x.db'",
            "BEGIN",
            "SAVEPOINT a",
            "ANALYZE",
            "REINDEX",
            "WITH a AS (SELECT 1) DELETE FROM books",
            "REPLACE INTO books VALUES (1, 'x', 1)",
            "CREATE VIRTUAL TABLE f USING fts5(x)",
        ] {
            let told = told(sql);
            assert!(["not authorized", "authorization denied"].contains(&&*told), "{sql}: {told}");
        }
        for (sql, words) in [
            ("SELECT load_extension('x')", "load_extension"),
            ("SELECT random()", "random"),
            ("SELECT * FROM books ORDER BY RANDOM()", "RANDOM"),
            ("SELECT randomblob(1000000000)", "randomblob"),
            ("SELECT * FROM pragma_database_list", "authorized"),
            ("SELECT * FROM dbstat", "prohibited"),
            ("SELECT writefile('x', 'y')", "no such function: writefile"),
            ("SELECT readfile('/etc/passwd')", "no such function: readfile"),
        ] {
            assert!(told(sql).contains(words), "{sql}: {}", told(sql));
        }
        let told = books().query("PRAGMA table_info(books)", &QueryLimits::default()).unwrap();
        assert_eq!(told.rows.len(), 3);
    }

    #[test]
    fn what_is_no_query_is_told_in_words() {
        assert_eq!(told("SELEC 1"), "near \"SELEC\": syntax error");
        assert_eq!(told("SELECT x FROM books"), "no such column: x");
        assert_eq!(told("SELECT 1 FROM boks"), "no such table: boks");
        for empty in ["", "  \n", "-- nothing", "/* SELECT 1 */", ";"] {
            assert_eq!(told(empty), "the query is empty");
        }
        let several = "You can only execute one statement at a time.";
        for sql in ["SELECT 1; SELECT 2", "SELECT 1;;", "SELECT 1; DROP TABLE books", ";SELECT 1"] {
            assert_eq!(told(sql), several);
        }
        assert_eq!(told("SELECT 1\0"), "the query contains a null character");
        assert!(told("SELECT ?, :a").contains("2 parameters"));
        let long = format!("SELECT '{}'", "a".repeat(10 << 20));
        assert!(told(&long).contains("at most 100000"));
        let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
        assert!(!told(&deep).is_empty());
        let sum = vec!["1"; 2_000].join("+");
        assert!(
            told(&format!("SELECT {sum}")).contains("depth 100"),
            "{}",
            told(&format!("SELECT {sum}"))
        );
        assert!(told("SELECT \u{202e}ключ FROM 数据").contains("数据"));
        assert!(told("SELECT zeroblob(1000000000)").contains("too big"));
        assert!(told("SELECT printf('%.*c', 100000000, 'x')").contains("too big"));
    }

    #[test]
    fn what_has_no_end_is_ended_and_equal_queries_end_equally() {
        let limits = QueryLimits { steps: 300_000, ..QueryLimits::default() };
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let product = "SELECT count(*) FROM books a, books b, books c, books d, books e, books f, books g, books h, \
                       books i, books j, books k, books l, books m, books n";
        for sql in [endless, product] {
            let told = books().query(sql, &limits).unwrap_err();
            assert_eq!(told, QueryError::Steps { steps: 300_000 });
        }
        let quick = QueryLimits { time: Duration::ZERO, ..QueryLimits::default() };
        assert_eq!(books().query(endless, &quick).unwrap_err(), QueryError::Time { seconds: 0 });
        let rows =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
        let few = QueryLimits { rows: 1_000, ..limits.clone() };
        let found = books().query(rows, &few).unwrap();
        assert!(found.is_cut && found.rows.len() == 1_000);
        // The connection goes on as if nothing had been.
        let books = books();
        books.query(endless, &limits).unwrap_err();
        assert_eq!(books.query("SELECT 1", &QueryLimits::default()).unwrap().rows.len(), 1);
    }

    #[test]
    fn memory_has_a_bound() {
        let hog = "WITH RECURSIVE n(i, b) AS (SELECT 1, zeroblob(250000) UNION ALL SELECT i + 1, zeroblob(250000) FROM n \
                   LIMIT 1500) SELECT count(*) FROM (SELECT b FROM n ORDER BY b, i)";
        let told = books().query(hog, &QueryLimits::default()).unwrap_err();
        assert_eq!(told.to_string(), "out of memory");
        let wide = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200) SELECT zeroblob(250000) FROM n";
        let found = books().query(wide, &QueryLimits::default()).unwrap();
        assert!(found.is_cut && found.rows.len() == 134);
    }

    #[test]
    fn what_takes_long_in_one_step_ends_in_time() {
        let (text, half) = (
            "substr(replace(hex(zeroblob(120000)), '00', 'a'), 1, 100000)",
            "replace(hex(zeroblob(50000)), '00', 'a')",
        );
        for call in [
            "instr(a, b || 'b')",
            "replace(a, b || 'b', 'x')",
            "a LIKE '%' || substr(b, 1, 150) || 'b'",
        ] {
            // Some steps of a tenth of a second each, ten thousand times.
            let sql = format!(
                "WITH RECURSIVE t(a, b) AS (SELECT {text}, {half}), n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000) \
                 SELECT count({call} || i) FROM t, n"
            );
            let limits = QueryLimits { time: Duration::from_millis(100), ..QueryLimits::default() };
            let start = Instant::now();
            let error = books().query(&sql, &limits).unwrap_err();
            assert!(matches!(error, QueryError::Time { .. }), "{call}: {error}");
            assert!(start.elapsed() < Duration::from_secs(5), "{call}: {:?}", start.elapsed());
        }
        assert!(told("SELECT json_patch('{}', '{}')").contains("not authorized"));
        assert!(told("SELECT hex(zeroblob(200000))").contains("too big"));
    }

    #[test]
    fn who_must_not_be_held_up_runs_what_takes_no_time() {
        let (books, limits) = (books(), QueryLimits::default());
        let at_once = |sql: &str| books.query_at_once(sql, &limits);
        for sql in [
            "SELECT title FROM books ORDER BY id",
            "SELEC",
            "",
            "SELECT x FROM books",
            "DROP TABLE books",
        ] {
            // Other tests may take all memory for a moment.
            let mut found = at_once(sql);
            while found.is_none() {
                std::thread::sleep(Duration::from_millis(10));
                found = at_once(sql);
            }
            assert_eq!(found.unwrap(), books.query(sql, &limits), "{sql}");
        }
        let heavy = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c LIMIT 500) SELECT \
                     sum(instr(printf('%.200000c','a')||i, printf('%.60000c','a')||'b')) FROM c";
        let long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        // In fewer steps than may be made, but not in the time.
        let slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000) \
                    SELECT sum(length(hex(zeroblob(100000 + i)))) FROM n";
        let hog = "WITH RECURSIVE n(i, b) AS (SELECT 1, zeroblob(250000) UNION ALL SELECT i + 1, zeroblob(250000) FROM n \
                   LIMIT 1500) SELECT count(*) FROM (SELECT b FROM n ORDER BY b, i)";
        for sql in [heavy, long, slow, hog, "SELECT title LIKE 'a%' FROM books"] {
            let start = Instant::now();
            assert!(at_once(sql).is_none(), "{sql}");
            assert!(start.elapsed() < Duration::from_secs(2), "{sql}: {:?}", start.elapsed());
        }
        let _alone = MEMORY.write().unwrap_or_else(PoisonError::into_inner);
        assert!(at_once("SELECT 1").is_none(), "one that needs all memory is not waited for");
    }

    #[test]
    fn who_takes_all_memory_keeps_nobody_from_a_database_of_his_own() {
        let hog = "WITH RECURSIVE n(i, b) AS (SELECT 1, zeroblob(250000) UNION ALL SELECT i + 1, zeroblob(250000) FROM n \
                   LIMIT 1500) SELECT count(*) FROM (SELECT b FROM n ORDER BY b, i)";
        std::thread::scope(|scope| {
            let hogs = scope.spawn(|| books().query(hog, &QueryLimits::default()).is_err());
            while !hogs.is_finished() {
                assert!(books().reads("SELECT title FROM books").is_ok());
            }
            assert!(hogs.join().unwrap());
        });
    }

    #[test]
    fn what_a_query_reads_is_what_its_names_stand_for() {
        let books = books();
        let reads = books.reads("SELECT b.TITLE FROM books AS b WHERE pages > 1").unwrap();
        assert_eq!(reads.tables.iter().collect::<Vec<_>>(), ["books"]);
        let columns: Vec<&str> = reads.columns.iter().map(|(_, column)| &**column).collect();
        assert_eq!(columns, ["pages", "title"]);
        let count = books.reads("SELECT count(*) FROM books").unwrap();
        assert!(count.columns.is_empty() && count.tables.contains("books"));
        assert!(books.reads("SELECT 3").unwrap().tables.is_empty());
        assert!((count.similarity(&reads) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(books.reads("").unwrap_err(), QueryError::Empty);
        assert!(books.reads("SELECT x FROM books").is_err());
    }

    #[test]
    fn files_are_opened_and_never_changed() {
        let folder = std::env::temp_dir().join(format!("spar-sql-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a b#?.sqlite");
        let maker = Connection::open(&path).unwrap();
        maker.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (7)").unwrap();
        drop(maker);
        let before = std::fs::read(&path).unwrap();
        let database = Database::open(&path).unwrap();
        let found = database.query("SELECT x FROM t", &QueryLimits::default()).unwrap();
        assert_eq!(found.rows, [[Cell::Integer(7)]]);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing beside it");
        let missing = Database::open(&folder.join("none.sqlite")).unwrap_err();
        assert!(matches!(missing, DatabaseError::Missing { .. }));
        std::fs::write(&path, b"this is no database, whatever it may be called").unwrap();
        let told = Database::open(&path).unwrap_err().to_string();
        assert!(told.contains("file is not a database"), "{told}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn threads_ask_at_a_time() {
        let books = books();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let found =
                            books.query("SELECT sum(id) FROM books", &QueryLimits::default());
                        assert_eq!(found.unwrap().rows, [[Cell::Integer(6)]]);
                    }
                });
            }
        });
    }
}
