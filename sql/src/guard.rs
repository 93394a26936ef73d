//! What a query may do: read, and nothing else.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::QueryLimits;

/// Steps between two looks at the budget.
pub(crate) const STEPS_PER_LOOK: i32 = 1_000;
/// The same for a query with functions of which one step may take long.
pub(crate) const STEPS_PER_LOOK_IF_HEAVY: i32 = 10;

/// Pragmas that only tell something of the schema.
const PRAGMAS: &[&str] = &[
    "collation_list",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Functions that reach outside the database, tell something else every time, or take the square of the length of what they are given.
const FUNCTIONS: &[&str] =
    &["fts3_tokenizer", "json_patch", "jsonb_patch", "load_extension", "random", "randomblob"];

/// Functions that look for one text in another: their time is both lengths multiplied, in one step.
const HEAVY: &[&str] = &["glob", "instr", "like", "ltrim", "replace", "rtrim", "trim"];

/// Tables that show the pages of the file.
const TABLES: &[&str] = &["dbstat", "sqlite_dbpage"];

/// Columns, and tables of which no column, that a query reads, in small letters as `(table, column)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reads {
    /// Tables.
    pub tables: BTreeSet<String>,
    /// Columns of tables.
    pub columns: BTreeSet<(String, String)>,
}

impl Reads {
    /// Whether some table is read by both.
    pub fn shares_a_table_with(&self, other: &Self) -> bool {
        !self.tables.is_disjoint(&other.tables)
    }

    /// How alike what is read is: of the tables and columns that either reads, the share that both read, 0 to 1; 0 where
    /// nothing is read.
    pub fn similarity(&self, other: &Self) -> f64 {
        let both = self.tables.intersection(&other.tables).count()
            + self.columns.intersection(&other.columns).count();
        let either =
            self.tables.union(&other.tables).count() + self.columns.union(&other.columns).count();
        if either == 0 { 0.0 } else { both as f64 / either as f64 }
    }

    pub(crate) fn add(&mut self, table: &str, column: &str) {
        let table = table.to_ascii_lowercase();
        if table.starts_with("sqlite_") || table.starts_with("pragma_") {
            return;
        }
        if !column.is_empty() {
            self.columns.insert((table.clone(), column.to_ascii_lowercase()));
        }
        self.tables.insert(table);
    }
}

/// Why a query was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Steps,
    Time,
}

/// What watches the queries of one connection: what they have left, and what they read.
#[derive(Debug)]
pub(crate) struct Watch {
    /// When the connection was opened; deadlines count from there.
    epoch: Instant,
    steps_left: AtomicU64,
    deadline_nanos: AtomicU64,
    stop: AtomicU8,
    /// Steps between two looks at the budget of this query.
    steps_per_look: AtomicI32,
    is_recording: AtomicBool,
    reads: Mutex<Reads>,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self {
            epoch: Instant::now(),
            steps_left: AtomicU64::new(0),
            deadline_nanos: AtomicU64::new(u64::MAX),
            stop: AtomicU8::new(0),
            steps_per_look: AtomicI32::new(STEPS_PER_LOOK),
            is_recording: AtomicBool::new(false),
            reads: Mutex::new(Reads::default()),
        }
    }

    /// Begins a query.
    pub(crate) fn begin(&self, limits: &QueryLimits) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let deadline = nanos(self.epoch.elapsed()).saturating_add(nanos(limits.time));
        self.deadline_nanos.store(deadline, Ordering::Relaxed);
        self.steps_left.store(limits.steps, Ordering::Relaxed);
        self.stop.store(0, Ordering::Relaxed);
        self.steps_per_look.store(STEPS_PER_LOOK, Ordering::Relaxed);
    }

    /// Steps between two looks at the budget, known once the query is prepared.
    pub(crate) fn steps_per_look(&self) -> i32 {
        self.steps_per_look.load(Ordering::Relaxed)
    }

    /// As many steps were made as lie between two looks; whether the query has to end.
    pub(crate) fn look(&self) -> bool {
        let per_look = self.steps_per_look().unsigned_abs().into();
        let left = self.steps_left.load(Ordering::Relaxed);
        if left < per_look {
            self.stop.store(1, Ordering::Relaxed);
            return true;
        }
        self.steps_left.store(left - per_look, Ordering::Relaxed);
        let is_late = self.epoch.elapsed().as_nanos()
            > u128::from(self.deadline_nanos.load(Ordering::Relaxed));
        if is_late {
            self.stop.store(2, Ordering::Relaxed);
        }
        is_late
    }

    /// Steps that are left.
    pub(crate) fn steps_left(&self) -> u64 {
        self.steps_left.load(Ordering::Relaxed)
    }

    /// Why the query was interrupted, if it was.
    pub(crate) fn stop(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Stop::Steps),
            _ => Some(Stop::Time),
        }
    }

    /// Records what is read from now on.
    pub(crate) fn record(&self) {
        *self.reads.lock().expect("nobody panics with it") = Reads::default();
        self.is_recording.store(true, Ordering::Relaxed);
    }

    /// What was read since [`Watch::record`].
    pub(crate) fn recorded(&self) -> Reads {
        self.is_recording.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.reads.lock().expect("nobody panics with it"))
    }

    /// Whether SQLite may do something.
    pub(crate) fn authorize(&self, context: AuthContext<'_>) -> Authorization {
        let is_one_of =
            |name: &str, names: &[&str]| names.iter().any(|it| it.eq_ignore_ascii_case(name));
        let is_allowed = match context.action {
            AuthAction::Select | AuthAction::Recursive => true,
            AuthAction::Read { table_name, column_name } => {
                if self.is_recording.load(Ordering::Relaxed) {
                    let mut reads = self.reads.lock().expect("nobody panics with it");
                    reads.add(table_name, column_name);
                }
                !is_one_of(table_name, TABLES)
            }
            AuthAction::Function { function_name } => {
                if is_one_of(function_name, HEAVY) {
                    self.steps_per_look.store(STEPS_PER_LOOK_IF_HEAVY, Ordering::Relaxed);
                }
                !is_one_of(function_name, FUNCTIONS)
            }
            AuthAction::Pragma { pragma_name, .. } => is_one_of(pragma_name, PRAGMAS),
            _ => false,
        };
        if is_allowed { Authorization::Allow } else { Authorization::Deny }
    }
}
