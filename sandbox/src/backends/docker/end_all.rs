//! The end of everything that runs in a container, whatever was done in it.
//!
//! The first process, which nothing inside can kill, ends all others on a signal of the engine; a
//! helper that is started afterwards says when that is done and it is alone. Whatever runs may kill
//! that helper, which is then started again, but nothing runs once the first process is done. Where
//! this does not come to its end, the engine starts the container anew: the kernel ends all of a
//! process namespace with its first process.

use std::time::Duration;

use bollard::query_parameters::{KillContainerOptionsBuilder, RestartContainerOptionsBuilder};
use tokio::time::{Instant, timeout_at};

use super::conversation::{Input, Said, Status, Surroundings};
use super::engine::{REQUEST, SIGN_OF_LIFE, within};
use super::sandbox::Shared;
use crate::SandboxError;

/// How long the first process and the helper may take. The first process gives up after three seconds.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a helper waits until it is alone.
const WAIT: Duration = Duration::from_secs(4);
/// Between two tries to start a helper.
const BETWEEN: Duration = Duration::from_millis(50);

impl Shared {
    /// Ends all processes of the container but the first.
    pub(super) async fn end_all(&self) -> Result<(), SandboxError> {
        let mut num_ended = self.num_ended.lock().await;
        self.check_open()?;
        // The relay may be another user's than the first process, which cannot end it then.
        self.reach.end().await;
        self.dialer.end().await;
        match self.end_by_signal(*num_ended + 1).await {
            Ok(number) => *num_ended = number,
            Err(error @ SandboxError::Died { .. }) => return Err(error),
            // What belongs to another user can resist the first process, but not the kernel.
            Err(error) => {
                tracing::debug!(sandbox = self.name, %error, "a container is started anew");
                self.start_anew().await?;
                *num_ended = self.alone(0, Instant::now() + PATIENCE).await?;
            }
        }
        Ok(())
    }

    /// Has the first process end everything for the time `number`; how often it has then.
    async fn end_by_signal(&self, number: u32) -> Result<u32, SandboxError> {
        let until = Instant::now() + PATIENCE;
        let options = KillContainerOptionsBuilder::new().signal("SIGUSR2").build();
        let sent = self.engine.docker.kill_container(&self.name, Some(options));
        match within(SIGN_OF_LIFE, sent).await {
            Ok(()) => self.alone(number, until).await,
            Err(error) => Err(self.trouble("end what runs in the sandbox", error).await),
        }
    }

    /// Waits until a helper says that it is alone with the first process, which has ended everything
    /// `number` times or more; how often it has.
    async fn alone(&self, number: u32, until: Instant) -> Result<u32, SandboxError> {
        loop {
            let asked = timeout_at(until, self.ask_alone(number)).await;
            match asked.unwrap_or_else(|_| Err(self.not_alone("it did not say in time"))) {
                Ok(Some(number)) => return Ok(number),
                Ok(None) => return Err(self.not_alone("something else runs")),
                Err(error @ SandboxError::Died { .. }) => return Err(error),
                // It was killed with all others, or the engine could not start it beside them.
                Err(error) if Instant::now() + BETWEEN >= until => return Err(error),
                Err(_) => tokio::time::sleep(BETWEEN).await,
            }
        }
    }

    /// Starts the helper once; absent where it waited in vain.
    async fn ask_alone(&self, number: u32) -> Result<Option<u32>, SandboxError> {
        let operation = vec!["alone".into(), WAIT.as_millis().to_string(), number.to_string()];
        let surroundings = Surroundings::default();
        let mut conversation = self.converse(operation, surroundings, Input::Bytes(&[])).await?;
        let mut bytes = Vec::new();
        loop {
            match conversation.next().await {
                Said::Stdout(more) => bytes.extend_from_slice(&more),
                Said::Stderr(_) => {}
                Said::Status(Status { kind: Status::DONE, .. }) => {
                    let number = bytes.try_into().map(u32::from_le_bytes);
                    let half = |_| self.not_alone("the helper said half a number");
                    return number.map(Some).map_err(half);
                }
                Said::Status(_) => return Ok(None),
                Said::Broken(said) => {
                    return Err(match self.death().await {
                        Some(death) => self.died(death),
                        None => self.not_alone(&said),
                    });
                }
            }
        }
    }

    fn not_alone(&self, said: &str) -> SandboxError {
        let said = if said.is_empty() { "the helper was killed" } else { said };
        SandboxError::Backend {
            doing: format!("end all processes of sandbox {}", self.name),
            source: said.to_owned().into(),
        }
    }

    /// Ends the container's process namespace and makes another over the same files.
    async fn start_anew(&self) -> Result<(), SandboxError> {
        if self.spec.read_only_root {
            return Err(self.not_alone("some resist, and starting it anew would lose /tmp"));
        }
        let options = RestartContainerOptionsBuilder::new().t(0).build();
        let restarted = self.engine.docker.restart_container(&self.name, Some(options));
        match within(REQUEST, restarted).await {
            Ok(()) => {
                self.forget_memory_kill();
                Ok(())
            }
            Err(error) => Err(self.engine.error("start the sandbox anew", error)),
        }
    }
}
