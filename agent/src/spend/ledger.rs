//! What was spent, kept as it is.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spar_core::{Spend, redaction};

use super::{Bound, SpendConfig, SpendError, SpendReport};

/// Lines behind the last sum, beyond which they are summed up.
const MAX_LINES: usize = 50_000;
/// Seconds after which the time is kept where nothing else was.
const IDLE_SECS: f64 = 10.0;
/// Bytes of a ledger that is read.
const MAX_BYTES: u64 = 64 << 20;

/// A file of JSON lines with what was spent, beside what it was spent for.
///
/// A line is written before a request is sent, with what it may take at the most, and one when it is over, with what it
/// took; both outlive the process, however that ends. What has begun and not ended when the file is opened again was
/// broken off: its tokens and its cost are unknown. Sums take the place of lines where these become many, in a file that
/// is renamed into its place. Half a line at the end is cut off.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    len: u64,
    lines: usize,
    /// Whether there is something behind the last time that was kept.
    has_changed: bool,
    kept: Kept,
}

/// What a ledger comes to.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Kept {
    /// By account, such as `policy` and `judge`.
    pub(super) accounts: BTreeMap<String, Spend>,
    /// What was begun and is not known to have ended, by its number.
    open: BTreeMap<u64, (String, Bound)>,
    /// What requests may have taken whose tokens are unknown.
    pub(super) possible: Bound,
    /// Seconds of wall-clock time.
    pub(super) wall_secs: f64,
    /// Limits that were given after it had begun.
    pub(super) limits: Option<SpendConfig>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    /// A request is about to be sent.
    Begun { number: u64, account: String, bound: Bound },
    /// It is over.
    Ended {
        number: u64,
        spend: Spend,
        #[serde(default, skip_serializing_if = "Bound::is_none")]
        possible: Bound,
    },
    /// Something was spent that nobody had reserved.
    Spent { account: String, spend: Spend },
    /// So much time had gone by.
    Time { wall_secs: f64 },
    /// Limits from here on.
    Limits { limits: SpendConfig },
    /// All before this line, summed up.
    Sum {
        accounts: BTreeMap<String, Spend>,
        possible: Bound,
        wall_secs: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<SpendConfig>,
        /// What had begun and not ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        open: Vec<Open>,
    },
}

/// A request under way.
#[derive(Debug, Serialize, Deserialize)]
struct Open {
    number: u64,
    account: String,
    bound: Bound,
}

impl Kept {
    fn take(&mut self, line: Line) {
        match line {
            Line::Begun { number, account, bound } => {
                self.open.insert(number, (account, bound));
            }
            Line::Ended { number, spend, possible } => {
                if let Some((account, _)) = self.open.remove(&number) {
                    *self.accounts.entry(account).or_default() += spend;
                    self.possible += possible;
                }
            }
            Line::Spent { account, spend } => *self.accounts.entry(account).or_default() += spend,
            Line::Time { wall_secs } => self.wall_secs = self.wall_secs.max(wall_secs),
            Line::Limits { limits } => self.limits = Some(limits),
            Line::Sum { accounts, possible, wall_secs, limits, open } => {
                let open = open.into_iter();
                let open = open.map(|it| (it.number, (it.account, it.bound))).collect();
                *self = Self { accounts, open, possible, wall_secs, limits };
            }
        }
    }

    /// Whoever was to end what is open is gone.
    fn close(&mut self) {
        for (account, bound) in std::mem::take(&mut self.open).into_values() {
            *self.accounts.entry(account).or_default() += BROKEN_OFF;
            self.possible += bound;
        }
    }
}

/// A request of which nobody knows what it took.
pub(super) const BROKEN_OFF: Spend = Spend {
    requests: 1,
    unknown: 1,
    unpriced: 1,
    failed: 0,
    local_turns: 0,
    input_tokens: 0,
    cached_tokens: 0,
    output_tokens: 0,
    reasoning_tokens: 0,
    cost: 0.0,
};

/// What the ledger at `path` comes to, in the currency and at the price of an hour that `config` has; it is not changed, and
/// may be written meanwhile. Absent where there is none.
///
/// # Errors
///
/// [`SpendError::Ledger`] when it cannot be read.
pub fn read_ledger(path: &Path, config: &SpendConfig) -> Result<Option<SpendReport>, SpendError> {
    if !path.exists() {
        return Ok(None);
    }
    let mut kept = read(path)?;
    kept.close();
    let Kept { accounts, wall_secs, limits, .. } = kept;
    let config = config.clone().or(limits.unwrap_or_default());
    Ok(Some(SpendReport::new(&config, accounts, wall_secs, None)))
}

/// What it comes to.
fn read(path: &Path) -> Result<Kept, SpendError> {
    let fail = |detail: String| SpendError::Ledger { path: path.to_owned(), detail };
    let size = fs::metadata(path).map_err(|error| fail(error.to_string()))?.len();
    if size > MAX_BYTES {
        return Err(fail(format!("it has {size} bytes, more than any ledger of spar")));
    }
    let bytes = fs::read(path).map_err(|error| fail(error.to_string()))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let (mut kept, mut lines) = (Kept::default(), 0);
    for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        lines += 1;
        let line = serde_json::from_slice(line)
            .map_err(|error| fail(format!("its line {lines} is none: {error}")))?;
        kept.take(line);
    }
    Ok(kept)
}

impl Ledger {
    /// Opens the ledger at `path`, which is made where it is not there. What was under way when it was written last
    /// counts as broken off.
    ///
    /// # Errors
    ///
    /// [`SpendError::Ledger`] when it cannot be read or written.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SpendError> {
        let path = path.into();
        let mut kept = Kept::default();
        if path.exists() {
            kept = read(&path)?;
            kept.close();
        }
        let (file, len) = sum_up(&path, &kept)?;
        Ok(Self { path, file, len, lines: 0, has_changed: false, kept })
    }

    pub(super) fn kept(&self) -> &Kept {
        &self.kept
    }

    pub(super) fn begin(
        &mut self,
        number: u64,
        account: &str,
        bound: Bound,
    ) -> Result<(), SpendError> {
        self.append(Line::Begun { number, account: account.to_owned(), bound })
    }

    pub(super) fn end(
        &mut self,
        number: u64,
        spend: Spend,
        possible: Bound,
    ) -> Result<(), SpendError> {
        self.append(Line::Ended { number, spend, possible })
    }

    pub(super) fn spent(&mut self, account: &str, spend: Spend) -> Result<(), SpendError> {
        self.append(Line::Spent { account: account.to_owned(), spend })
    }

    pub(super) fn limits(&mut self, limits: &SpendConfig) -> Result<(), SpendError> {
        self.append(Line::Limits { limits: limits.clone() })
    }

    /// Keeps the time where something else was kept since, or else now and then.
    pub(super) fn tick(&mut self, wall_secs: f64) -> Result<(), SpendError> {
        match self.has_changed || wall_secs >= self.kept.wall_secs + IDLE_SECS {
            true => self.time(wall_secs),
            false => Ok(()),
        }
    }

    pub(super) fn time(&mut self, wall_secs: f64) -> Result<(), SpendError> {
        self.append(Line::Time { wall_secs })
    }

    fn append(&mut self, line: Line) -> Result<(), SpendError> {
        let fail = |error: std::io::Error| SpendError::Ledger {
            path: self.path.clone(),
            detail: error.to_string(),
        };
        let mut written = redaction::to_json(&line).expect("a line is JSON");
        written.push(b'\n');
        // What an append before left behind that was not whole is overwritten.
        self.file
            .seek(SeekFrom::Start(self.len))
            .and_then(|_| self.file.write_all(&written))
            .map_err(fail)?;
        self.len += written.len() as u64;
        self.has_changed = !matches!(line, Line::Time { .. });
        self.kept.take(line);
        self.lines += 1;
        if self.lines >= MAX_LINES {
            (self.file, self.len) = sum_up(&self.path, &self.kept)?;
            self.lines = 0;
        }
        Ok(())
    }

    /// Waits until all is on the disk.
    ///
    /// # Errors
    ///
    /// [`SpendError::Ledger`] when the system says that it could not be written.
    pub fn sync(&self) -> Result<(), SpendError> {
        let fail = |error: std::io::Error| SpendError::Ledger {
            path: self.path.clone(),
            detail: error.to_string(),
        };
        self.file.sync_data().map_err(fail)
    }
}

/// Puts a file with one line, the sum, in the place of the ledger; the file and its bytes.
fn sum_up(path: &Path, kept: &Kept) -> Result<(File, u64), SpendError> {
    let Kept { accounts, open, possible, wall_secs, limits } = kept.clone();
    let open = open.into_iter();
    let open = open.map(|(number, (account, bound))| Open { number, account, bound }).collect();
    let line = Line::Sum { accounts, possible, wall_secs, limits, open };
    let mut bytes = redaction::to_json(&line).expect("a line is JSON");
    bytes.push(b'\n');
    let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        OpenOptions::new().write(true).open(path)
    };
    let fail = |error: std::io::Error| SpendError::Ledger {
        path: path.to_owned(),
        detail: error.to_string(),
    };
    Ok((write().map_err(fail)?, bytes.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(input_tokens: u64) -> Spend {
        Spend { requests: 1, input_tokens, cost: 0.5, ..Spend::default() }
    }

    const BOUND: Bound = Bound { requests: 1, input_tokens: 9, output_tokens: 8, cost: 2.0 };

    #[test]
    fn what_was_under_way_when_the_process_died_is_unknown_and_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spend.jsonl");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.begin(1, "policy", BOUND).unwrap();
        ledger.begin(2, "policy", BOUND).unwrap();
        ledger.begin(3, "judge", BOUND).unwrap();
        ledger.end(1, spend(5), Bound::default()).unwrap();
        ledger.time(7.5).unwrap();
        // Nobody closes it, as when the process is killed, in the middle of a line.
        drop(ledger);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend(br#"{"kind":"ended","num"#);
        fs::write(&path, bytes).unwrap();
        let mut expected = spend(5);
        expected += BROKEN_OFF;
        for _ in 0..2 {
            let told = read_ledger(&path, &SpendConfig::default()).unwrap().unwrap().accounts;
            assert_eq!((told["policy"], told["judge"]), (expected, BROKEN_OFF));
            let ledger = Ledger::open(&path).unwrap();
            assert_eq!(ledger.kept().wall_secs, 7.5);
            assert_eq!(ledger.kept().possible.cost, 4.0);
            assert_eq!(ledger.kept().accounts, told);
        }
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1, "it was summed up");
    }

    #[test]
    fn lines_beyond_measure_are_summed_up_with_what_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spend.jsonl");
        let count = || fs::read_to_string(&path).unwrap().lines().count();
        let mut ledger = Ledger::open(&path).unwrap();
        // One is always under way.
        ledger.begin(0, "policy", BOUND).unwrap();
        let pairs = MAX_LINES as u64;
        for number in 1..=pairs {
            ledger.begin(number, "policy", BOUND).unwrap();
            ledger.end(number - 1, spend(1), Bound::default()).unwrap();
        }
        assert!(count() <= MAX_LINES, "{} lines", count());
        let config = SpendConfig::default();
        let told = read_ledger(&path, &config).unwrap().unwrap().accounts["policy"];
        assert_eq!((told.requests, told.unknown, told.input_tokens), (pairs + 1, 1, pairs));
        ledger.end(pairs, spend(1), Bound::default()).unwrap();
        drop(ledger);
        let ledger = Ledger::open(&path).unwrap();
        let kept = ledger.kept();
        assert_eq!((kept.accounts["policy"].unknown, kept.possible), (0, Bound::default()));
        assert_eq!(kept.accounts["policy"].input_tokens, pairs + 1);
        assert!(read_ledger(&folder.path().join("absent"), &config).unwrap().is_none());
    }

    #[test]
    fn time_alone_is_kept_now_and_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spend.jsonl");
        let count = || fs::read_to_string(&path).unwrap().lines().count();
        let mut ledger = Ledger::open(&path).unwrap();
        (1..=9).for_each(|secs| ledger.tick(f64::from(secs)).unwrap());
        assert_eq!(count(), 1);
        ledger.tick(IDLE_SECS).unwrap();
        assert_eq!(count(), 2);
        ledger.spent("policy", spend(1)).unwrap();
        (11..=12).for_each(|secs| ledger.tick(f64::from(secs)).unwrap());
        assert_eq!((count(), ledger.kept().wall_secs), (4, 11.0));
    }

    #[test]
    fn what_is_no_ledger_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spend.jsonl");
        fs::write(&path, "{\"kind\":\"rent\"}\n").unwrap();
        let error = Ledger::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
        assert!(read_ledger(&path, &SpendConfig::default()).is_err());
    }
}
