//! Who judges what a command plays.

use anyhow::ensure;
use spar::agent::policies::HttpPolicyConfig;
use spar::agent::spend::Budget;
use spar::judging::{JudgeConfig, Judging, JudgingConfig};
use spar::recipe::Recipe;
use spar::tasks::Suite;
use spar::tasks::graders::GradingModel;

use super::hub_model::local_model;
use super::player::locate;
use crate::cli::JudgeArguments;

/// Opens what judges the tasks of these splits: graders as the recipe has them, the judge as it was typed, or else as the
/// recipe has it.
///
/// # Errors
///
/// When graders lack something, or a judge was typed that none of them asks; nothing has been played then.
pub(super) async fn open_judging(
    arguments: &JudgeArguments,
    recipe: Option<&Recipe>,
    has_policy: bool,
    suite: &dyn Suite,
    splits: &[String],
    budget: &Budget,
) -> anyhow::Result<Judging> {
    let typed = typed(arguments).await?;
    let own = recipe.and_then(|recipe| recipe.judge.as_ref());
    let config = JudgingConfig {
        graders: recipe.map(|recipe| &recipe.graders[..]).unwrap_or_default(),
        judge: typed.as_ref().or(own),
        reference: recipe.and_then(|recipe| recipe.start_from.as_deref()),
        has_policy,
    };
    let problems = config.problems(suite, splits)?;
    ensure!(problems.is_empty(), "have episodes judged:\n{}", problems.join("\n"));
    let asks = config.judge.is_some() && config.asks(GradingModel::Judge, suite, splits)?;
    ensure!(
        typed.is_none() || asks,
        "ask a judge: no grader of these tasks asks one, so --judge and --judge-checkpoint have no effect"
    );
    // A run's own judge is not loaded for tasks that do not ask it.
    let config = JudgingConfig { judge: config.judge.filter(|_| asks), ..config };
    config.open(config.asks(GradingModel::Reference, suite, splits)?, budget).await
}

async fn typed(arguments: &JudgeArguments) -> anyhow::Result<Option<JudgeConfig>> {
    let JudgeArguments { judge, judge_model, judge_api_key_env, judge_prices, judge_checkpoint } =
        arguments;
    let endpoint = judge.clone().map(|base_url| HttpPolicyConfig {
        base_url,
        model: judge_model.clone().unwrap_or_default(),
        api_key_env: judge_api_key_env.clone(),
        prices: judge_prices.clone(),
        ..HttpPolicyConfig::default()
    });
    let checkpoint = match judge_checkpoint {
        Some(path) => Some(locate(&local_model(path).await?)?.0),
        None => None,
    };
    let is_typed = endpoint.is_some() || checkpoint.is_some();
    Ok(is_typed.then_some(JudgeConfig { endpoint, checkpoint }))
}
