//! How long each part of an episode in a sandbox may take.

use std::time::Duration;

use spar_sandbox::Lifetimes;
use spar_tasks::{TerminalTask, TerminalVerifier};

/// What opening shells, ending processes and moving files may add to a part.
const SLACK: Duration = Duration::from_secs(60);
/// What a shell may need beside a command, to end what resists and to begin anew.
const RECOVERY: Duration = Duration::from_secs(180);
/// What the sandbox lives beyond everything else.
const MARGIN: Duration = Duration::from_secs(300);
/// So many others like it may be judged before a service is: a run has room for a quarter of its episodes.
const TURNS: u32 = 4;

/// How long each part of an episode in a sandbox may take; the one place where the life of the
/// sandbox follows from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Until the sandbox exists, waiting for a place in the pool and getting its image left out.
    pub create: Duration,
    /// The task's files and set-up commands.
    pub set_up: Duration,
    /// One command of the agent.
    pub command: Duration,
    /// All turns of the agent, its policy's answers included.
    pub agent: Duration,
    /// The verifier's command, or all scripts of graders with what each needs beside it.
    pub verify: Duration,
    /// Until the second sandbox of an episode whose services are judged may be asked for; zero for others.
    pub turn: Duration,
}

impl Deadlines {
    /// Those of a task whose agent may take `agent` for all of its turns, where a place in the pool may take
    /// `acquire`.
    pub fn of(task: &TerminalTask, agent: Duration, acquire: Duration) -> Self {
        let judging = services(task, acquire);
        let verify = Duration::from_secs(task.verifier.verify_secs);
        let turn = if judging.is_zero() {
            Duration::ZERO
        } else {
            judging.saturating_add(verify).saturating_mul(TURNS)
        };
        Self {
            create: Duration::from_secs(task.create_secs),
            set_up: Duration::from_secs(task.setup_secs),
            command: Duration::from_secs(task.command_secs),
            agent,
            verify: verify.saturating_add(judging).saturating_add(turn),
            turn,
        }
    }

    /// All that happens in set-up.
    pub(crate) fn whole_set_up(&self) -> Duration {
        self.set_up + SLACK
    }

    /// One command with all that comes of it.
    pub(crate) fn whole_command(&self) -> Duration {
        self.command + RECOVERY
    }

    /// The same, the task being judged by its verifier and by these scripts, one after the other.
    pub(super) fn with_scripts<'a>(
        self,
        scripts: impl IntoIterator<Item = &'a TerminalVerifier>,
    ) -> Self {
        let scripts = scripts.into_iter().map(whole_script);
        Self { verify: scripts.fold(self.verify, Duration::saturating_add), ..self }
    }

    /// All that happens in verifying.
    pub(crate) fn whole_verify(&self) -> Duration {
        self.verify + SLACK
    }

    /// What the sandbox is made with: it outlives the agent and the verifier by a margin, however
    /// long it was kept warm before.
    ///
    /// Set-up is counted as the agent's, since it runs after the sandbox was handed out: what the
    /// backend allows for set-up may have passed on the shelf of the pool by then.
    pub fn lifetimes(&self) -> Lifetimes {
        let seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Lifetimes {
            create_secs: seconds(self.create),
            setup_secs: seconds(self.set_up),
            exec_secs: seconds(self.command),
            // The last command may be under way when the agent's time is over.
            agent_secs: seconds(
                self.whole_set_up().saturating_add(self.agent).saturating_add(self.whole_command()),
            ),
            verify_secs: seconds(self.whole_verify()),
            margin_secs: seconds(MARGIN),
        }
    }
}

/// What judging services takes beyond the verifier's command and its turn: the agent's sandbox lives until another
/// one is there, and a place of the pool for that.
fn services(task: &TerminalTask, acquire: Duration) -> Duration {
    if task.verifier.service_ports.is_empty() {
        return Duration::ZERO;
    }
    let waits = task.verifier.service_secs.saturating_mul(task.verifier.service_ports.len() as u64);
    let seconds = waits.saturating_add(task.create_secs).saturating_add(task.setup_secs);
    Duration::from_secs(seconds).saturating_add(acquire).saturating_add(RECOVERY)
}

/// All that happens in running one script.
pub(super) fn whole_script(script: &TerminalVerifier) -> Duration {
    let waits = script.service_secs.saturating_mul(script.service_ports.len() as u64);
    Duration::from_secs(script.verify_secs.saturating_add(waits)) + SLACK
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_sandbox_outlives_all_that_happens_in_it(
            create in 1..5_000u64, set_up in 1..5_000u64, command in 1..5_000u64,
            agent in 1..100_000u64, verify in 1..5_000u64, serves: bool,
        ) {
            let mut task = TerminalTask::new("a", "true");
            (task.create_secs, task.setup_secs, task.command_secs) = (create, set_up, command);
            task.verifier.verify_secs = verify;
            let acquire = Duration::from_secs(60);
            let agent = Duration::from_secs(agent);
            if serves {
                task.verifier.service_ports = vec![80];
            }
            let deadlines = Deadlines::of(&task, agent, acquire);
            prop_assert_eq!(deadlines.turn > Duration::ZERO, serves);
            if serves {
                let parts = create + set_up + verify + task.verifier.service_secs;
                let judging = Duration::from_secs(parts) + acquire;
                prop_assert!(deadlines.turn > judging);
                prop_assert!(deadlines.whole_verify() > deadlines.turn + judging);
            }
            let lifetimes = deadlines.lifetimes();
            // A pool hands out what has been there for so long at the most.
            let margin = lifetimes.margin_secs;
            let shelf = lifetimes.create_secs + lifetimes.setup_secs + margin / 2;
            let left = lifetimes.time_to_live() - Duration::from_secs(shelf);
            let needed = deadlines.whole_set_up() + deadlines.agent + deadlines.whole_verify();
            prop_assert!(left >= needed + Duration::from_secs(margin / 2));
            prop_assert_eq!(lifetimes.create_secs, create);
            prop_assert_eq!(lifetimes.exec_secs, command);
            prop_assert!(deadlines.whole_verify() > Duration::from_secs(verify));
        }
    }
}
