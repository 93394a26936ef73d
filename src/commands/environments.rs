//! What the environments of a command need.

use anyhow::ensure;
use spar::agent::EpisodeConfig;
use spar::envs::needs_sandbox;
use spar::recipe::Recipe;
use spar::sandboxes::{OpenSandboxes, SandboxConfig, first_tasks};
use spar::tasks::Suite;

use crate::cli::EnvironmentArguments;

/// Where the sandboxes for the tasks of a suite come from: as was typed, or else as the recipe has
/// it.
///
/// # Errors
///
/// When something was typed that has no effect, or the backend does not work here.
pub(super) async fn open_sandboxes(
    arguments: &EnvironmentArguments,
    recipe: Option<&Recipe>,
    concurrency: Option<usize>,
    suite: &dyn Suite,
    split: &str,
    episode: &EpisodeConfig,
) -> anyhow::Result<OpenSandboxes> {
    let EnvironmentArguments { backend, image } = arguments;
    let tasks = first_tasks(suite, split)?;
    if (backend.is_some() || image.is_some()) && !tasks.is_empty() {
        let environments: Vec<_> = tasks.iter().map(|task| task.environment.as_str()).collect();
        ensure!(
            tasks.iter().any(needs_sandbox),
            "take sandboxes for environment `{}`: it needs none, so --backend and \
             --image have no effect",
            environments.join("`, `")
        );
    }
    let own = recipe.map(|recipe| recipe.sandbox.clone()).unwrap_or_default();
    let config = SandboxConfig {
        backend: backend.clone().or(own.backend),
        image: image.clone().unwrap_or(own.image),
        concurrency: concurrency.unwrap_or(own.concurrency).max(1),
    };
    OpenSandboxes::open(&config, suite, split, episode).await
}

/// Does `work` and closes the sandboxes, however it ends.
pub(super) async fn within<T>(
    sandboxes: OpenSandboxes,
    work: impl AsyncFnOnce(&OpenSandboxes) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let done = work(&sandboxes).await;
    warn_of_leftovers(sandboxes.close().await);
    done
}

/// Tells of sandboxes that could not be removed.
pub(super) fn warn_of_leftovers(count: u64) {
    if count > 0 {
        eprintln!("warning: could not remove {count} sandboxes; `spar reap` tries again");
    }
}
