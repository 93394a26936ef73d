//! A running program, and what it is asked.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use spar_tasks::ProgramSpec;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::driver::{Driver, drive};
use super::launch::Launched;
use super::messages::{AnswerLimits, Call, Hello, PROTOCOL, read};
use super::program_error::{ProgramError, ProgramFault};
use spar_sandbox::output::{LastWords, shortened};

/// Answers that nobody waits for any more, at the most; more, and the program is ended.
const MOST_GIVEN_UP: usize = 256;
/// Characters of a command, and of what a program says itself, that messages have.
const MOST_COMMAND: usize = 60;
const MOST_SAID: usize = 1000;

/// A running program. Dropping it ends it.
pub(super) struct Program {
    shared: Arc<Shared>,
    /// Absent once it is closed.
    stdin: tokio::sync::Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    driver: Mutex<Option<JoinHandle<()>>>,
    /// What it said of itself.
    pub(super) hello: Hello,
    next_request: AtomicU64,
    next_session: AtomicU64,
    spec: Arc<ProgramSpec>,
}

/// What a program and its driver share.
pub(super) struct Shared {
    name: String,
    command: String,
    state: Mutex<State>,
    /// Tells the driver that a fault was found, or that the program shall end.
    pub(super) stop: Notify,
}

#[derive(Default)]
struct State {
    pending: HashMap<u64, Option<oneshot::Sender<Map<String, Value>>>>,
    given_up: usize,
    /// When it last answered.
    last_answer: Option<Instant>,
    /// What was found first.
    fault: Option<ProgramFault>,
    /// That, with the program's last words, once it has ended.
    error: Option<Arc<ProgramError>>,
}

impl Program {
    /// Takes over a program that was started, and has it say who it is.
    ///
    /// # Errors
    ///
    /// [`ProgramError`] where it does not.
    pub(super) async fn meet(
        launched: Launched,
        spec: &Arc<ProgramSpec>,
    ) -> Result<Self, Arc<ProgramError>> {
        let Launched { stdin, stdout, stderr, running } = launched;
        let shared = Arc::new(Shared {
            name: spec.name.clone(),
            command: shortened(&spec.command.join(" "), MOST_COMMAND),
            state: Mutex::default(),
            stop: Notify::new(),
        });
        let driver =
            Driver::new(Arc::clone(&shared), stdout, stderr, running, spec.limits.line_bytes);
        let driver = tokio::spawn(drive(driver));
        let mut program = Self {
            shared,
            stdin: tokio::sync::Mutex::new(Some(stdin)),
            driver: Mutex::new(Some(driver)),
            // Until it has said it itself.
            hello: Hello {
                protocol: PROTOCOL,
                name: String::new(),
                concurrent: 1,
                fork: false,
                snapshot: false,
                tools: false,
            },
            next_request: AtomicU64::new(0),
            next_session: AtomicU64::new(0),
            spec: Arc::clone(spec),
        };
        let limit = Duration::from_secs(spec.timeouts.start_secs);
        let hello: Hello = program.ask(&Call::Hello { protocol: PROTOCOL }, limit).await?;
        program.hello = match hello.check() {
            Ok(hello) => hello,
            Err(detail) => return Err(program.no_answer("hello", detail).await),
        };
        Ok(program)
    }

    /// Whether it can be asked more.
    pub(super) fn is_alive(&self) -> bool {
        self.shared.lock().fault.is_none()
    }

    /// The number of a session that it never had.
    pub(super) fn new_session(&self) -> u64 {
        self.next_session.fetch_add(1, Ordering::Relaxed)
    }

    /// How long it may take for a step.
    pub(super) fn step_limit(&self) -> Duration {
        Duration::from_secs(self.spec.timeouts.step_secs)
    }

    /// What bounds its answers.
    pub(super) fn answer_limits(&self) -> AnswerLimits {
        AnswerLimits { media_bytes: self.spec.limits.media_bytes }
    }

    /// Asks it something, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`ProgramError`]; but for [`ProgramFault::Refused`] it is ended then.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        call: &Call<'_>,
        limit: Duration,
    ) -> Result<T, Arc<ProgramError>> {
        let mut answer = self.exchange(call, limit).await?;
        if let Some(said) = answer.shift_remove("error") {
            let said = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
            let message = shortened(&said, MOST_SAID);
            let fault = ProgramFault::Refused { call: call.name(), message };
            return Err(Arc::new(self.shared.error(fault, LastWords::default())));
        }
        match read(answer) {
            Ok(answer) => Ok(answer),
            Err(detail) => Err(self.no_answer(call.name(), detail).await),
        }
    }

    /// Ends it for an answer that was read, and is none to `call`.
    pub(super) async fn no_answer(&self, call: &'static str, detail: String) -> Arc<ProgramError> {
        let detail = shortened(&format!("to `{call}`: {detail}"), MOST_SAID);
        self.shared.fail(ProgramFault::NotUnderstood { detail });
        self.error().await
    }

    async fn exchange(
        &self,
        call: &Call<'_>,
        limit: Duration,
    ) -> Result<Map<String, Value>, Arc<ProgramError>> {
        let id = self.next_request.fetch_add(1, Ordering::Relaxed);
        let line = call.line(id);
        let (sender, receiver) = oneshot::channel();
        let Some(pending) = self.shared.expect(id, sender) else {
            return Err(self.error().await);
        };
        let patience = Patience { sent: Instant::now(), pending, limit };
        let waiting = Waiting { program: self, id, is_over: false };
        let exchanged = {
            let mut exchange = pin!(async {
                self.write(&line).await;
                receiver.await
            });
            loop {
                let until = patience.until(self.shared.lock().last_answer);
                if let Ok(exchanged) = timeout_at(until, &mut exchange).await {
                    break exchanged.ok();
                }
                if patience.until(self.shared.lock().last_answer) <= until {
                    // Before the line is given up that may be half written, which would be another fault.
                    let seconds = (until - patience.sent).as_secs();
                    self.shared.fail(ProgramFault::Late { call: call.name(), seconds });
                    break None;
                }
            }
        };
        waiting.over();
        match exchanged {
            Some(answer) => Ok(answer),
            None => Err(self.error().await),
        }
    }

    /// Writes a whole line; what keeps it from that is a fault, which ends the program.
    async fn write(&self, line: &[u8]) {
        let mut stdin = self.stdin.lock().await;
        let Some(stdin) = stdin.as_mut() else {
            return self.shared.fail(ProgramFault::ClosedInput);
        };
        let mut half = HalfWritten { shared: &self.shared, is_whole: false };
        let mut written = stdin.write_all(line).await;
        if written.is_ok() {
            written = stdin.flush().await;
        }
        half.is_whole = true;
        if written.is_err() {
            self.shared.fail(ProgramFault::ClosedInput);
        }
    }

    /// What is wrong with it, once it has ended.
    async fn error(&self) -> Arc<ProgramError> {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(driver) = driver {
            // It ends soon: it was told to.
            let _ = driver.await;
        }
        loop {
            {
                let state = self.shared.lock();
                if let Some(error) = &state.error {
                    return Arc::clone(error);
                }
            }
            // Somebody else waits for the driver.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Tells it to end, and waits until it has, with all that it started: whether it has broken before, or did not end by
    /// itself.
    pub(super) async fn end(&self) -> Arc<ProgramError> {
        self.shared.fail(ProgramFault::ToldToEnd);
        // What it reads ends, so that it can end by itself; whoever still writes to it soon fails.
        if let Ok(mut stdin) = self.stdin.try_lock() {
            *stdin = None;
        }
        self.error().await
    }

    /// Writes a line that is no request.
    pub(super) async fn write_nonsense(&self, line: &[u8]) {
        self.write(line).await;
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.shared.fail(ProgramFault::ToldToEnd);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits an answer: how many are awaited then; absent where none can come.
    fn expect(&self, id: u64, sender: oneshot::Sender<Map<String, Value>>) -> Option<usize> {
        let mut state = self.lock();
        if state.fault.is_some() {
            return None;
        }
        state.pending.insert(id, Some(sender));
        Some(state.pending.len())
    }

    /// Takes in an answer.
    ///
    /// # Errors
    ///
    /// [`ProgramFault::NotAsked`] for one that nobody awaits.
    pub(super) fn answered(&self, id: u64, answer: Map<String, Value>) -> Result<(), ProgramFault> {
        let mut state = self.lock();
        state.last_answer = Some(Instant::now());
        match state.pending.remove(&id) {
            Some(Some(sender)) => {
                drop(state);
                // Who asked may have gone.
                let _ = sender.send(answer);
                Ok(())
            }
            Some(None) => {
                state.given_up -= 1;
                Ok(())
            }
            None => Err(ProgramFault::NotAsked { id }),
        }
    }

    /// Says what is wrong, which ends the program; what was found first counts.
    pub(super) fn fail(&self, fault: ProgramFault) {
        self.lock().fault.get_or_insert(fault);
        self.stop.notify_one();
    }

    /// What was found to be wrong.
    pub(super) fn fault(&self) -> Option<ProgramFault> {
        self.lock().fault.clone()
    }

    /// Whether everybody was told that it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.lock().error.is_some()
    }

    /// The program has ended: everybody who waits is told why.
    pub(super) fn over(&self, fault: ProgramFault, last_words: LastWords) {
        let error = Arc::new(self.error(fault, last_words));
        let mut state = self.lock();
        state.fault.get_or_insert(error.fault.clone());
        state.error = Some(error);
        state.pending.clear();
    }

    fn error(&self, fault: ProgramFault, last_words: LastWords) -> ProgramError {
        let (name, command) = (self.name.clone(), self.command.clone());
        ProgramError { name, command, fault, last_words }
    }
}

/// How long an answer is waited for. A program may answer one request after the other, so its time runs from when the
/// request was sent or, where that is later, from the program's last answer; but never is it more than what the requests
/// take that were to be answered when it was sent.
struct Patience {
    sent: Instant,
    /// Requests to be answered, this one included.
    pending: usize,
    limit: Duration,
}

impl Patience {
    fn until(&self, last_answer: Option<Instant>) -> Instant {
        let pending = self.pending.try_into().unwrap_or(u32::MAX);
        let at_last = self.sent + self.limit.saturating_mul(pending);
        let from = last_answer.map_or(self.sent, |answer| answer.max(self.sent));
        (from + self.limit).min(at_last)
    }
}

/// Somebody waits for an answer; dropped before it is over, nobody does any more.
struct Waiting<'a> {
    program: &'a Program,
    id: u64,
    is_over: bool,
}

impl Waiting<'_> {
    fn over(mut self) {
        self.is_over = true;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let shared = &self.program.shared;
        let mut state = shared.lock();
        let is_awaited = state.pending.get_mut(&self.id).is_some_and(|it| it.take().is_some());
        state.given_up += usize::from(is_awaited);
        let is_too_much = state.given_up > MOST_GIVEN_UP || self.program.hello.concurrent == 1;
        drop(state);
        if is_awaited && is_too_much {
            shared.fail(ProgramFault::GivenUp);
        }
    }
}

/// A line that is being written; dropped before it is whole, the program cannot be asked more.
struct HalfWritten<'a> {
    shared: &'a Shared,
    is_whole: bool,
}

impl Drop for HalfWritten<'_> {
    fn drop(&mut self) {
        if !self.is_whole {
            self.shared.fail(ProgramFault::GivenUp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_begins_anew_with_an_answer_and_has_an_end() {
        let sent = Instant::now();
        let seconds = Duration::from_secs;
        let patience = Patience { sent, pending: 3, limit: seconds(10) };
        let before = sent.checked_sub(seconds(1));
        for (last_answer, until) in [(None, 10), (before, 10), (Some(sent + seconds(4)), 14)] {
            assert_eq!(patience.until(last_answer), sent + seconds(until));
        }
        assert_eq!(patience.until(Some(sent + seconds(25))), sent + seconds(30));
        let alone = Patience { pending: 1, ..patience };
        assert_eq!(alone.until(Some(sent + seconds(4))), sent + seconds(10));
    }
}
