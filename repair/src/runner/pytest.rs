use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::place::{Running, io};
use super::{Coverage, Place, Python, RunRequest, TestOutcome, TestResult, TestRun};
use crate::RunnerError;

/// The program that runs the tests.
const SERVER: &str = include_str!("fork_server.py");
/// Bytes of one answer.
const MAX_ANSWER: u64 = 96 << 20;
/// How long the server may take beyond a run's own deadline.
const MARGIN: Duration = Duration::from_secs(60);
/// Bytes kept of the last words of the server.
const LAST_WORDS: usize = 4000;

/// A process that has pytest loaded and runs tests in forks of itself.
pub struct PytestServer {
    running: Running,
    answers: BufReader<tokio::io::Take<Box<dyn tokio::io::AsyncRead + Send + Unpin>>>,
    last_words: Arc<Mutex<Vec<u8>>>,
}

/// What the server is told of a package.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loading {
    /// Folders that modules are imported from, relative to the package.
    pub(crate) paths: Vec<String>,
    /// Modules from elsewhere that are imported beforehand.
    pub(crate) modules: Vec<String>,
    /// Files of tests, which are compiled beforehand.
    pub(crate) tests: Vec<String>,
    /// Arguments of pytest.
    pub(crate) arguments: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    records: Vec<Record>,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    cpu_seconds: f64,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Record {
    Collected {},
    CollectError {
        id: String,
        text: String,
    },
    Test {
        id: String,
        status: TestOutcome,
        #[serde(default)]
        text: String,
        #[serde(default)]
        message: String,
    },
    Covered {
        id: String,
        files: Coverage,
    },
    Modules {
        names: Vec<String>,
    },
    End {},
}

impl PytestServer {
    /// Starts it in a place.
    ///
    /// # Errors
    ///
    /// [`RunnerError`] when it cannot be started or does not come up.
    pub(crate) async fn start(
        place: &Place,
        python: &Python,
        loading: &Loading,
    ) -> Result<Self, RunnerError> {
        let program = python.program.to_string_lossy().into_owned();
        let folder = python.program.parent().map(|folder| folder.to_string_lossy().into_owned());
        let path = folder.into_iter().chain(["/usr/local/bin:/usr/bin:/bin".to_owned()]);
        let env = [
            ("PATH", path.collect::<Vec<_>>().join(":")),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ("PYTHONHASHSEED", "0".to_owned()),
            ("PYTHONUTF8", "1".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
        ];
        let env: BTreeMap<String, String> =
            env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let command = [program, "-u".to_owned(), "-c".to_owned(), SERVER.to_owned()];
        let mut running = place.spawn(command.into(), env).await?;
        let nothing: Box<dyn tokio::io::AsyncRead + Send + Unpin> = Box::new(tokio::io::empty());
        let stdout = std::mem::replace(&mut running.stdout, nothing);
        let mut stderr = std::mem::replace(&mut running.stderr, Box::new(tokio::io::empty()));
        let last_words = Arc::new(Mutex::new(Vec::new()));
        let words = Arc::clone(&last_words);
        // Ends with the process, whose stream it reads.
        tokio::spawn(async move {
            let mut part = [0; 4096];
            while let Ok(len @ 1..) = stderr.read(&mut part).await {
                let mut kept = words.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&part[..len]);
                let surplus = kept.len().saturating_sub(LAST_WORDS);
                kept.drain(..surplus);
            }
        });
        let answers = BufReader::new(stdout.take(MAX_ANSWER));
        let mut server = Self { running, answers, last_words };
        let Loading { paths, modules, tests, arguments } = loading;
        let request = json!({
            "op": "load", "root": place.root(), "paths": paths, "modules": modules, "tests": tests, "arguments": arguments,
        });
        server.ask(&request, Duration::from_secs(120)).await?;
        Ok(server)
    }

    /// Runs tests.
    ///
    /// # Errors
    ///
    /// [`RunnerError::Server`] when the process ended or is silent; then it is of no more use.
    pub(crate) async fn run(&mut self, request: &RunRequest) -> Result<TestRun, RunnerError> {
        let asked = json!({
            "op": "run",
            "files": request.files,
            "targets": request.targets,
            "only": request.only,
            "max_failing": request.max_failing,
            "coverage": request.with_coverage,
            "seconds": request.timeout.as_secs_f64(),
            "memory": request.memory_bytes,
        });
        let answer = self.ask(&asked, request.timeout + MARGIN).await?;
        let mut run = TestRun {
            has_timed_out: answer.timed_out,
            wall: seconds(answer.seconds),
            cpu: seconds(answer.cpu_seconds),
            ..TestRun::default()
        };
        for record in answer.records {
            match record {
                Record::Collected {} => {}
                Record::CollectError { id, text } => run.collect_errors.push((id, text)),
                Record::Test { id, status, text, message } => {
                    let result = TestResult { outcome: status, text, message };
                    // A test may fail and then fail again where it is put away: the first counts, unless it passed.
                    let old = run.tests.get(&id);
                    if old.is_none_or(|old| !old.outcome.is_failure()) {
                        run.tests.insert(id, result);
                    }
                }
                Record::Covered { id, files } => {
                    run.coverage.insert(id, files);
                }
                Record::Modules { names } => run.modules = names,
                Record::End {} => run.is_whole = true,
            }
        }
        Ok(run)
    }

    /// Ends the process.
    pub(crate) async fn close(mut self) {
        self.running.end.kill().await;
    }

    async fn ask(&mut self, request: &Value, timeout: Duration) -> Result<Answer, RunnerError> {
        let mut line = request.to_string();
        line.push('\n');
        self.answers.get_mut().set_limit(MAX_ANSWER);
        let mut answer = Vec::new();
        let asking = async {
            self.running.stdin.write_all(line.as_bytes()).await?;
            self.running.stdin.flush().await?;
            self.answers.read_until(b'\n', &mut answer).await
        };
        let asked = match tokio::time::timeout(timeout, asking).await {
            Ok(asked) => asked.map_err(io("talk to the process that runs the tests")),
            Err(_) => Err(self.broken("does not answer")),
        };
        if let Err(error) = asked {
            self.running.end.kill().await;
            return Err(error);
        }
        if answer.last() != Some(&b'\n') {
            self.running.end.kill().await;
            return Err(self.broken("ended, or told too much"));
        }
        let answer: Answer = serde_json::from_slice(&answer)
            .map_err(|error| self.broken(&format!("says what cannot be read: {error}")))?;
        match answer.ok {
            true => Ok(answer),
            false => Err(self.broken(&format!("failed: {}", answer.error))),
        }
    }

    fn broken(&self, what: &str) -> RunnerError {
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let words = String::from_utf8_lossy(&words);
        let what = match words.trim() {
            "" => what.to_owned(),
            words => format!("{what}; its last words:\n{words}"),
        };
        RunnerError::Server { what }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
