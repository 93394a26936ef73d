//! Has a program do what its tests ask for.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use spar_sandbox::interpreter::Language;
use spar_sandbox::{ExecEnd, ExecRequest, Sandbox};
use tokio::time::Instant;

use super::outputs::{is_same_output, is_same_value};
use super::peer::{Peer, Told, call_of, own_fault};
use super::values::{carried, plain};
use super::{CallCase, StreamCase, UnitTests, UnitTestsOptions};
use crate::graders::{FreshSandbox, GradingPlace};
use crate::{CodeInterpreter, GraderError};

/// Where a program lies that is run as such.
const PROGRAM: &str = "/tmp/spar/program";
/// Calls that one test may make of the program.
const MAX_CALLS: usize = 2_000;
/// The longest text of a program's output that is compared.
const MAX_OUTPUT: usize = 16 << 20;

const REMOTE: (&str, &str) = (include_str!("remote.py"), "__import__('spar_remote').answer()");
const JUDGE: (&str, &str) = (include_str!("judge.py"), "__import__('spar_judge').step()");

/// What tests found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Found {
    /// Tests that were passed.
    pub(super) passed: usize,
    /// All of them.
    pub(super) total: usize,
    /// What was wrong first.
    pub(super) reason: Option<String>,
    /// Whether each test was passed as a whole, in their order; what was not run was not passed.
    pub(super) results: Vec<bool>,
}

impl Found {
    fn fail(&mut self, reason: impl FnOnce() -> String) {
        self.reason.get_or_insert_with(reason);
    }
}

/// Runs the tests of a program.
///
/// # Errors
///
/// [`GraderError`] where the tests themselves cannot be run, or a sandbox could not do its part by no doing of the program.
pub(super) async fn run(
    tests: &UnitTests,
    program: &str,
    interpreter: &CodeInterpreter,
    options: &UnitTestsOptions,
    place: &mut dyn GradingPlace,
) -> Result<Found, GraderError> {
    let until = Instant::now() + Duration::from_secs(options.total_secs);
    let limit = Duration::from_secs(options.test_secs);
    let fresh = place.fresh_sandbox(interpreter).await?;
    let mut found = Found { total: tests.len(), ..Found::default() };
    match tests {
        UnitTests::Streams { cases } => {
            let language = interpreter.language;
            streams(cases, program, (language, fresh), (limit, until), options, &mut found).await?;
        }
        UnitTests::Calls { function, prelude, cases } => {
            let mut solution = Solution::new(fresh, format!("{prelude}\n{program}"), limit);
            calls(cases, function, &mut solution, until, options, &mut found).await?;
        }
        UnitTests::Asserts { prelude, setup, tests, entry_point } => {
            let mut solution = Solution::new(fresh, format!("{prelude}\n{program}"), limit);
            let mut judge = Peer::new(place.fresh_sandbox(interpreter).await?, JUDGE, limit);
            let all = json!({ "setup": setup, "tests": tests, "entry_point": entry_point });
            found.total = 0;
            asserts(&all, tests.len(), (&mut solution, &mut judge), until, options, &mut found)
                .await?;
        }
    }
    found.results.resize(tests.len(), false);
    Ok(found)
}

/// The program behind requests; one that is gone is loaded anew with the next.
struct Solution {
    peer: Peer,
    source: String,
}

impl Solution {
    fn new(fresh: FreshSandbox, source: String, limit: Duration) -> Self {
        Self { peer: Peer::new(fresh, REMOTE, limit), source }
    }

    /// The answer to a request, or what kept the program from it, as an error that it might have raised.
    async fn ask(&mut self, asked: Value) -> Result<Value, GraderError> {
        if self.peer.is_gone() {
            let load = json!({ "op": "load", "source": self.source });
            match self.peer.ask(load).await? {
                Told::Answer(told) if told.get("raised").is_some() => {
                    let told = raised("ImportError", &told_error(&told));
                    self.peer.ask(json!({ "op": "load", "source": "" })).await?;
                    return Ok(told);
                }
                Told::Answer(_) => {}
                Told::None { reason, .. } => return Ok(raised("ImportError", &reason)),
            }
        }
        Ok(match self.peer.ask(asked).await? {
            Told::Answer(told) => told,
            Told::None { reason, is_late: true } => raised("TimeoutError", &reason),
            Told::None { reason, .. } => raised("RuntimeError", &reason),
        })
    }
}

fn raised(kind: &str, text: &str) -> Value {
    json!({ "raised": kind, "text": text })
}

fn told_error(told: &Value) -> String {
    let part = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    format!("{}: {}", part("raised"), part("text"))
}

/// Runs a program on texts, each time as a new process.
async fn streams(
    cases: &[StreamCase],
    program: &str,
    (language, fresh): (Language, FreshSandbox),
    (limit, until): (Duration, Instant),
    options: &UnitTestsOptions,
    found: &mut Found,
) -> Result<(), GraderError> {
    let FreshSandbox { sandbox, backend } = fresh;
    let end = match language {
        Language::Python => ".py",
        Language::Javascript => ".js",
    };
    let path = format!("{PROGRAM}{end}");
    if let Err(error) = sandbox.write_file(&path, program.as_bytes(), 0o644).await {
        return Err(GraderError::Place(Box::new(error)));
    }
    for (number, case) in cases.iter().enumerate() {
        if Instant::now() >= until {
            found.fail(|| format!("test {number}: the time for all tests was over"));
            break;
        }
        let mut request = ExecRequest::new(language.run_file(&backend, &path));
        request = request.with_stdin(case.input.as_bytes()).with_timeout(limit);
        request.output_limit_bytes = MAX_OUTPUT.min(2 * case.output.len() + 4096);
        let wrong = one_stream(&sandbox, &request, case).await?;
        found.results.push(wrong.is_none());
        match wrong {
            None => found.passed += 1,
            Some(reason) => found.fail(|| format!("test {number}: {reason}")),
        }
        if options.stop_at_first && found.reason.is_some() {
            break;
        }
    }
    Ok(())
}

/// What is wrong with a program's answer to a text; absent where nothing is.
async fn one_stream(
    sandbox: &Arc<dyn Sandbox>,
    request: &ExecRequest,
    case: &StreamCase,
) -> Result<Option<String>, GraderError> {
    let ran = match sandbox.exec(request).await {
        Ok(ran) => ran,
        Err(error) => return own_fault(&**sandbox, error).await.map(Some),
    };
    Ok(match ran.end {
        ExecEnd::Exited { code: 0 } if ran.stdout.elided_bytes() > 0 => {
            Some("it wrote far more than it has to".to_owned())
        }
        ExecEnd::Exited { code: 0 } => {
            let is_right = is_same_output(&ran.stdout.text(), &case.output);
            (!is_right).then(|| "it wrote something else".to_owned())
        }
        end => {
            let told = ran.stderr.text();
            Some(format!("it {end}: {}", told.trim_end().lines().last().unwrap_or_default()))
        }
    })
}

/// Calls a function of a program.
async fn calls(
    cases: &[CallCase],
    function: &str,
    solution: &mut Solution,
    until: Instant,
    options: &UnitTestsOptions,
    found: &mut Found,
) -> Result<(), GraderError> {
    for (number, case) in cases.iter().enumerate() {
        if Instant::now() >= until {
            found.fail(|| format!("test {number}: the time for all tests was over"));
            break;
        }
        let arguments = case.arguments.iter().map(carried).collect();
        let told = solution.ask(call_of(function, arguments)).await?;
        let value = told.get("value").and_then(plain);
        let is_right = value
            .is_some_and(|value| case.results.iter().any(|right| is_same_value(&value, right)));
        found.results.push(is_right);
        match is_right {
            true => found.passed += 1,
            false => found.fail(|| match told.get("raised") {
                Some(_) => format!("test {number}: {}", told_error(&told)),
                None => format!("test {number}: it returned something else"),
            }),
        }
        if options.stop_at_first && found.reason.is_some() {
            break;
        }
    }
    Ok(())
}

/// Runs asserts in a sandbox, and what they ask of the program in another.
async fn asserts(
    all: &Value,
    count: usize,
    (solution, judge): (&mut Solution, &mut Peer),
    until: Instant,
    options: &UnitTestsOptions,
    found: &mut Found,
) -> Result<(), GraderError> {
    for number in 0..count {
        if found.reason.is_some() && options.stop_at_first {
            found.total += count - number;
            break;
        }
        let mut answer = Value::Null;
        let mut asked = 0;
        let failures = found.total - found.passed;
        loop {
            if Instant::now() >= until || asked > MAX_CALLS {
                found.total += 1;
                found.fail(|| match asked > MAX_CALLS {
                    true => format!("test {number}: it makes more than {MAX_CALLS} calls"),
                    false => format!("test {number}: the time for all tests was over"),
                });
                break;
            }
            let order = json!({ "test": number, "answer": answer });
            let told = match judge_step(judge, all, order).await? {
                Told::Answer(told) => told,
                // A value of the program's may well keep the tests busy for ever.
                Told::None { reason, .. } => {
                    found.total += 1;
                    found.fail(|| format!("test {number}: the test itself: {reason}"));
                    break;
                }
            };
            if let Some(broken) = told["broken"].as_str() {
                let problem = format!("test {number} cannot be run: {broken}");
                return Err(GraderError::Problems { problems: vec![problem] });
            }
            if let Some(request) = told.get("ask") {
                asked += 1;
                answer = solution.ask(request.clone()).await?;
                continue;
            }
            count_asserts(&told, number, found);
            break;
        }
        found.results.push(found.total - found.passed == failures);
    }
    Ok(())
}

/// The next step of a test, whose judge is told of all tests where it was started anew.
async fn judge_step(judge: &mut Peer, all: &Value, order: Value) -> Result<Told, GraderError> {
    if judge.is_gone() {
        // A judge that begins has no test under way.
        if !order["answer"].is_null() {
            return Ok(Told::None { reason: "it has to begin anew".to_owned(), is_late: false });
        }
        let place = |error| GraderError::Place(Box::new(error));
        let bytes = all.to_string();
        judge.sandbox().write_file(TESTS, bytes.as_bytes(), 0o644).await.map_err(place)?;
    }
    judge.ask(order).await
}

/// Where the tests lie in their own sandbox.
const TESTS: &str = "/tmp/spar/tests.json";

fn count_asserts(told: &Value, number: usize, found: &mut Found) {
    let count = |name: &str| told[name].as_u64().unwrap_or(0) as usize;
    let (passed, failed) = (count("passed"), count("failed"));
    found.passed += passed;
    found.total += passed + failed;
    if failed > 0 {
        found.fail(|| format!("test {number}: {failed} of {} asserts failed", passed + failed));
    }
    if let Some(error) = told["error"].as_str() {
        found.total += 1;
        found.fail(|| format!("test {number}: {error}"));
    } else if passed + failed == 0 {
        // A test without asserts is passed by running to its end.
        found.passed += 1;
        found.total += 1;
    }
}
