//! An interpreter in a fresh sandbox that answers requests.

use std::time::Duration;

use serde_json::{Value, json};
use spar_sandbox::interpreter::{CellEnd, Interpreter, InterpreterOptions, Language};
use spar_sandbox::{Evidence, Fault, Sandbox, SandboxError};

use crate::GraderError;
use crate::graders::FreshSandbox;

/// Where requests and answers lie. What is inside can write there as well, which tells lies about nothing but itself.
const ASKED: &str = "/tmp/spar/asked.json";
const TOLD: &str = "/tmp/spar/told.json";
/// The most bytes of an answer.
const MAX_ANSWER: u64 = 8 << 20;

/// An interpreter in a fresh sandbox that answers requests, by a program that is run in it first.
pub(super) struct Peer {
    fresh: FreshSandbox,
    interpreter: Option<Interpreter>,
    /// What it runs first, and has answer a request.
    programs: (&'static str, &'static str),
    limit: Duration,
    number: u64,
}

/// What came of a request.
pub(super) enum Told {
    /// The answer.
    Answer(Value),
    /// There is none, for what runs inside: a deadline, no memory, a crash, an answer that is none.
    None {
        /// Why.
        reason: String,
        /// Whether it was the deadline.
        is_late: bool,
    },
}

impl Peer {
    /// One that is started with its first request.
    pub(super) fn new(
        fresh: FreshSandbox,
        programs: (&'static str, &'static str),
        limit: Duration,
    ) -> Self {
        Self { fresh, interpreter: None, programs, limit, number: 0 }
    }

    pub(super) fn sandbox(&self) -> &dyn Sandbox {
        &*self.fresh.sandbox
    }

    /// Whether what it held is gone, or it was never started.
    pub(super) fn is_gone(&self) -> bool {
        self.interpreter.is_none()
    }

    /// Has it answer a request.
    ///
    /// # Errors
    ///
    /// [`GraderError::Place`] where its sandbox could not do its part, by no doing of what runs inside.
    pub(super) async fn ask(&mut self, mut asked: Value) -> Result<Told, GraderError> {
        self.number += 1;
        asked["number"] = self.number.into();
        match self.exchange(&asked).await {
            Ok(told) => {
                if matches!(told, Told::None { .. }) {
                    self.forget().await;
                }
                Ok(told)
            }
            Err(error) => {
                let reason = own_fault(self.sandbox(), error).await?;
                self.forget().await;
                Ok(Told::None { reason, is_late: false })
            }
        }
    }

    async fn exchange(&mut self, asked: &Value) -> Result<Told, SandboxError> {
        let sandbox = &self.fresh.sandbox;
        let interpreter = match &mut self.interpreter {
            Some(interpreter) => interpreter,
            none => {
                let options =
                    InterpreterOptions { cell: self.limit, ..InterpreterOptions::default() };
                let mut new = Interpreter::open(sandbox, Language::Python, &options).await?;
                let begun = new.run(self.programs.0).await?;
                if !begun.end.is_success() {
                    let (doing, source) =
                        ("start a program of the tests".into(), begun.text.into());
                    return Err(SandboxError::Backend { doing, source });
                }
                none.insert(new)
            }
        };
        sandbox.write_file(ASKED, asked.to_string().as_bytes(), 0o644).await?;
        let cell = interpreter.run(self.programs.1).await?;
        let gone =
            |reason: String| Ok(Told::None { reason, is_late: cell.end == CellEnd::TimedOut });
        if cell.restarted || !cell.end.is_success() {
            return gone(cell.text.lines().last().unwrap_or_default().to_owned());
        }
        let bytes = match sandbox.read_file(TOLD, MAX_ANSWER).await {
            Ok(bytes) => bytes,
            Err(error @ (SandboxError::NotFound { .. } | SandboxError::TooLarge { .. })) => {
                return gone(format!("could not {error}"));
            }
            Err(error) => return Err(error),
        };
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(told) if told["number"] == asked["number"] => Ok(Told::Answer(told)),
            Ok(_) => gone("it answers another request".to_owned()),
            Err(error) => gone(format!("its answer cannot be read: {error}")),
        }
    }

    /// Ends the interpreter; the next request starts another.
    async fn forget(&mut self) {
        if let Some(mut interpreter) = self.interpreter.take() {
            // What resists goes with its sandbox.
            let _ = interpreter.close().await;
        }
    }
}

/// Why a sandbox could not do its part, where that is the doing of what runs inside.
///
/// # Errors
///
/// [`GraderError::Place`] where it is not.
pub(super) async fn own_fault(
    sandbox: &dyn Sandbox,
    error: SandboxError,
) -> Result<String, GraderError> {
    let evidence = Evidence::of(sandbox).await;
    match error.fault(&evidence) {
        Fault::Agent => Ok(format!("could not {error}")),
        Fault::Infrastructure => Err(GraderError::Place(Box::new(error))),
    }
}

/// The request that calls a function of the program by its name.
pub(super) fn call_of(function: &str, arguments: Vec<Value>) -> Value {
    json!({ "op": "call", "target": { "n": function }, "arguments": arguments })
}
