//! Where the sandboxes of episodes come from.

use std::sync::Arc;
use std::time::Duration;

use crate::judging::Judging;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use spar_agent::{Concurrency, EpisodeConfig, OpenEnvironment};
use spar_core::{Policy, Seed, ToolSpec};
use spar_envs::{Resources, Sandboxes, needs_sandbox, open_environment, usual_backend};
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_sandbox::{Image, registry};
use spar_tasks::{Suite, SuiteError, Task};

/// Where the sandboxes of episodes come from; matters only to environments that need sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// `docker`, `wasm` or `local`. Default absent: what the environment usually takes, which is `wasm` for `code` and
    /// `docker` for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The image of tasks that name none, as `spar sandbox run --image` takes it. Default `default`:
    /// the backend's smallest.
    pub image: String,
    /// Sandboxes at one time, one for each episode that needs one; at least 1. Default 16.
    pub concurrency: usize,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self { backend: None, image: "default".to_owned(), concurrency: 16 }
    }
}

impl SandboxConfig {
    /// The backend for tasks that need sandboxes.
    ///
    /// # Errors
    ///
    /// When none is named, and their environments usually take different ones.
    fn backend_for(&self, tasks: &[Task]) -> anyhow::Result<String> {
        if let Some(backend) = &self.backend {
            return Ok(backend.clone());
        }
        let mut usual: Vec<_> = tasks.iter().filter_map(usual_backend).collect();
        usual.sort_unstable();
        usual.dedup();
        anyhow::ensure!(
            usual.len() <= 1,
            "choose a sandbox backend: the tasks usually take {}; name one (--backend, or `sandbox.backend`)",
            usual.join(" and ")
        );
        Ok(usual.first().copied().unwrap_or("docker").to_owned())
    }
}

/// A pool of sandboxes that is ready for episodes, or nothing where they need none.
pub struct OpenSandboxes {
    resources: Resources,
    concurrency: Concurrency,
    pool: Option<Arc<SandboxPool>>,
}

impl OpenSandboxes {
    /// Opens the pool for the tasks of a suite, if any of them need one.
    ///
    /// # Errors
    ///
    /// When there is no such backend, it does not work here, or one of the [first tasks](Suite::firsts) of `split` cannot be
    /// brought up with it: nothing has to be played to find that out.
    pub async fn open(
        config: &SandboxConfig,
        suite: &dyn Suite,
        split: &str,
        episode: &EpisodeConfig,
    ) -> anyhow::Result<Self> {
        let concurrency = Concurrency { sandboxes: config.concurrency, ..Concurrency::default() };
        let none = Self { resources: Resources::default(), concurrency, pool: None };
        let mut tasks = first_tasks(suite, split)?;
        tasks.retain(needs_sandbox);
        if tasks.is_empty() {
            return Ok(none);
        }
        let backend = registry::open(&config.backend_for(&tasks)?)?;
        backend.probe().await?;
        let warm = config.concurrency.div_ceil(4);
        let pool_config = PoolConfig {
            // Some are made and some are removed while all episodes have theirs.
            max_live: config.concurrency.saturating_add(2 * warm),
            ..PoolConfig::default()
        };
        let pool = Arc::new(SandboxPool::new(backend, pool_config)?);
        let Ok(image) = config.image.parse::<Image>();
        let mut sandboxes = Sandboxes::new(Arc::clone(&pool)).with_judges(warm);
        (sandboxes.image, sandboxes.warm) = (image, warm);
        sandboxes.commands = Duration::from_secs(episode.command_time_secs);
        sandboxes.answer = Duration::from_secs(episode.turn_timeout_secs);
        sandboxes.max_turns = episode.max_turns;
        let resources = Resources::with_sandboxes(sandboxes);
        let open = Self { resources, concurrency, pool: Some(pool) };
        for task in &tasks {
            if let Err(error) = open.try_out(task).await {
                open.close().await;
                return Err(error.context(format!("bring up task `{}`", task.id)));
            }
        }
        Ok(open)
    }

    /// What environments are opened with.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The same, with these graders beside those that tasks name, and the models that take part in judging.
    #[must_use]
    pub fn judged_by(mut self, judging: &Judging) -> Self {
        let Judging { graders, models } = judging.clone();
        self.resources = self.resources.with_graders(graders, models);
        self
    }

    /// Opens environments with these sandboxes, whose episodes this policy plays.
    pub fn opener(&self, policy: Option<Arc<dyn Policy>>) -> OpenEnvironment {
        let resources = self.resources.clone().with_policy(policy);
        Arc::new(move |task| open_environment(task, &resources))
    }

    /// Opens environments with these sandboxes that judge by themselves, whatever graders tasks name.
    pub fn ungraded_opener(&self) -> OpenEnvironment {
        let resources = self.resources.clone().without_graders();
        Arc::new(move |task| open_environment(task, &resources))
    }

    /// How much may be in use at the same time.
    pub fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    /// Closes all sandboxes, ends all programs of environments, and waits for it; how many sandboxes could not be removed.
    pub async fn close(self) -> u64 {
        self.resources.close_programs().await;
        let Some(pool) = self.pool else { return 0 };
        pool.shutdown().await;
        pool.metrics().close_failures
    }

    async fn try_out(&self, task: &Task) -> anyhow::Result<()> {
        let mut env = self.ungraded_opener()(task)?;
        env.reset(Seed::from_u64(0)).await?;
        let prepared = env.prepare().await;
        env.close().await?;
        prepared.context("prepare an episode")
    }
}

/// Checks that a suite can be played as `episode` says: that its scaffold and the environments fit, and that what they
/// offer as tools are some. Where that takes a sandbox, the tools are looked at as they are offered.
///
/// # Errors
///
/// The first thing that does not fit.
pub async fn check_scaffold(
    suite: &dyn Suite,
    split: &str,
    episode: &EpisodeConfig,
) -> anyhow::Result<()> {
    let resources = Resources::default().without_graders();
    let mut checked = Ok(());
    for task in first_tasks(suite, split)? {
        checked = check_tools(&task, episode, &resources).await;
        if checked.is_err() {
            break;
        }
    }
    resources.close_programs().await;
    checked
}

async fn check_tools(
    task: &Task,
    episode: &EpisodeConfig,
    resources: &Resources,
) -> anyhow::Result<()> {
    episode.fits(task)?;
    if !episode.offers_tools() || needs_sandbox(task) {
        return Ok(());
    }
    let mut env = open_environment(task, resources)?;
    episode.tell(&mut *env)?;
    env.reset(Seed::from_u64(0)).await?;
    let checked = env.tools().iter().try_for_each(ToolSpec::validate);
    env.close().await?;
    Ok(checked?)
}

/// The [first tasks](Suite::firsts) of a split; none where it is empty.
pub fn first_tasks(suite: &dyn Suite, split: &str) -> Result<Vec<Task>, SuiteError> {
    suite.len(split)?;
    suite.firsts(split).into_iter().map(|index| suite.task(split, index)).collect()
}

#[cfg(test)]
mod tests {
    use spar_tasks::graders::GraderConfig;
    use spar_tasks::{SuiteManifest, SuiteOptions, open_suite};

    use super::*;

    /// Tasks that name a judge.
    struct Judged(Box<dyn Suite>);

    impl Suite for Judged {
        fn manifest(&self) -> &SuiteManifest {
            self.0.manifest()
        }

        fn about(&self) -> &str {
            self.0.about()
        }

        fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
            let graders = vec![GraderConfig::new("judge")];
            Ok(Task { graders, ..self.0.make_task(split, index)? })
        }
    }

    #[tokio::test]
    async fn tools_are_looked_at_whoever_judges() {
        let suite = Judged(open_suite("ledger", &SuiteOptions::default()).unwrap());
        let episode: EpisodeConfig = toml::from_str("scaffold = 'tools'").unwrap();
        assert!(episode.offers_tools());
        check_scaffold(&suite, "test", &episode).await.unwrap();
    }
}
