//! Who plays.

use std::io::{BufReader, stderr, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use spar::agent::policies::{HttpPolicy, HttpPolicyConfig, HumanPolicy, IdlePolicy, RandomPolicy};
use spar::agent::spend::{Budget, Meter};
use spar::agent::{
    Concurrency, ContextPolicyChoice, EpisodeConfig, ScaffoldChoice, Seating, SharedPlayer,
};
use spar::core::{
    CompletionRequest, Message, Policy, PolicyError, PolicyVersion, Role, Sampling, Seed,
};
use spar::envs::{Actions, actions_of_task};
use spar::players::BuiltIn;
use spar::policy::checkpoint::KeepAs;
use spar::policy::{LocalPolicy, checkpoint};
use spar::recipe::Recipe;
use spar::seats::{SeatsConfig, TaskSeats};
use spar::tasks::{Suite, Task};
use spar::trainer::{Checkpoints, RunFolder};
use spar::training::stages::outline;

use super::drawing::open_drawing;
use super::hub_model::local_model;
use super::suites::Purpose;
use super::train::{named_run, newest_run};
use super::{open_model, threads};
use crate::cli::PlayerArguments;

/// The scaffold of tasks that are played by calls of tools, where nobody chose one.
pub(super) const TOOLS: &str = "tools";

/// A player that is ready to play.
pub(crate) struct OpenPlayer {
    kind: Kind,
    /// The checkpoint it was loaded from.
    pub(crate) checkpoint: Option<PathBuf>,
    /// The recipe of the run the checkpoint belongs to.
    pub(crate) recipe: Option<Recipe>,
    /// Who takes the seats where several act.
    pub(crate) seating: Seating,
    /// What becomes of conversations as they grow, where somebody chose that.
    context_policy: Option<ContextPolicyChoice>,
    is_endpoint: bool,
}

enum Kind {
    Oracle,
    Expert,
    Policy(Arc<dyn Policy>),
    Human(Arc<HumanPolicy>),
}

impl OpenPlayer {
    /// Opens the player that was asked for, within a budget; an endpoint is asked for a word, so that one that
    /// cannot answer is found before anything is played.
    pub(crate) async fn open(arguments: &PlayerArguments, budget: &Budget) -> anyhow::Result<Self> {
        refuse_without_effect(arguments)?;
        let context_policy = chosen_context(arguments)?;
        let of_context = context_policy.clone();
        let without_model = |kind| {
            let seating = Seating::default();
            Ok(Self {
                kind,
                checkpoint: None,
                recipe: None,
                seating,
                context_policy: of_context,
                is_endpoint: arguments.endpoint.is_some(),
            })
        };
        if let Some(built_in) = arguments.policy {
            return without_model(match built_in {
                BuiltIn::Random => Kind::Policy(Arc::new(RandomPolicy)),
                BuiltIn::Idle => Kind::Policy(Arc::new(IdlePolicy)),
                BuiltIn::Oracle => Kind::Oracle,
                BuiltIn::Expert => Kind::Expert,
                // Results go to standard output, so that they can be piped.
                BuiltIn::Human => {
                    let human = HumanPolicy::new(BufReader::new(stdin()), stderr());
                    Kind::Human(Arc::new(human))
                }
            });
        }
        if let Some(base_url) = arguments.endpoint.clone() {
            let default = HttpPolicyConfig::default();
            let concurrent_requests = arguments.concurrency.unwrap_or(default.concurrent_requests);
            let config = HttpPolicyConfig {
                base_url,
                // Who asks for more episodes at a time does not mean them to wait for each other here.
                concurrent_requests: concurrent_requests.max(default.concurrent_requests),
                model: arguments.model.clone().unwrap_or_default(),
                api_key_env: arguments.api_key_env.clone(),
                server: arguments.server.map(Into::into).unwrap_or_default(),
                prices: arguments.prices.clone(),
                ..default
            };
            let meter = budget.meter("policy", config.prices()?)?;
            probe(HttpPolicyConfig { max_requests: 1, ..config.clone() }, meter.clone()).await?;
            let policy = HttpPolicy::open(config)?.metered(meter);
            return without_model(Kind::Policy(Arc::new(policy)));
        }
        let path = match &arguments.checkpoint {
            Some(path) => named_run(path, &arguments.runs),
            None => newest_run(&arguments.runs)?,
        };
        let (folder, recipe) = locate(&local_model(&path).await?)?;
        let (weights, tokenizer) = open_model(&folder, &arguments.decoder)?;
        let (drawing, keep) = (&arguments.drawing, arguments.decoder.weights);
        let model = (&*weights, &tokenizer);
        let rule = open_drawing(drawing, recipe.as_ref(), &folder, model, keep).await?;
        let threads = threads(arguments.decoder.threads);
        let (tokenizer, version, rule) = (Arc::new(tokenizer), PolicyVersion(0), rule.as_ref());
        let policy =
            LocalPolicy::with_draw_rule("local", tokenizer, weights, version, rule, threads)
                .context("start the engine")?;
        let kind = Kind::Policy(Arc::new(policy));
        let seating = Seating::default();
        let checkpoint = Some(folder);
        Ok(Self { kind, checkpoint, recipe, seating, context_policy, is_endpoint: false })
    }

    /// Has the seats of these tasks taken: as it was typed, or else as its run does.
    ///
    /// # Errors
    ///
    /// When a seat that was typed is not there, or somebody cannot be had; nothing has been played then.
    pub(crate) async fn take_seats(
        &mut self,
        arguments: &PlayerArguments,
        suite: &dyn Suite,
        splits: &[String],
        (purpose, budget): (Purpose, &Budget),
    ) -> anyhow::Result<()> {
        let own = |recipe: &Recipe| match purpose {
            Purpose::Evaluation => recipe.seats.in_evaluation(&recipe.evaluation.seats),
            Purpose::Training => recipe.seats.clone(),
        };
        let own = self.recipe.as_ref().map(own).unwrap_or_default();
        let is_named = own != SeatsConfig::default() || !arguments.seat.is_empty();
        let tasks = match TaskSeats::of(suite, splits) {
            // A task that is broken is told of when it is played.
            Err(_) if !is_named => return Ok(()),
            tasks => tasks?,
        };
        // A run's other suites may have seats that these tasks have not.
        let seats = own.within(&tasks).with(&arguments.seat);
        let mut problems = seats.problems();
        if problems.is_empty() {
            problems = seats.problems_in(&tasks);
        }
        ensure!(problems.is_empty(), "have the seats taken:\n{}", problems.join("\n"));
        if purpose == Purpose::Evaluation {
            for problem in seats.idle_scores(&tasks) {
                eprintln!("warning: {problem}; name who it is measured by (--seat)");
            }
        }
        self.seating = seats.open(budget).await?;
        Ok(())
    }

    /// The player.
    pub(crate) fn player(&self) -> SharedPlayer {
        match &self.kind {
            Kind::Oracle => SharedPlayer::Oracle { encoder: None },
            Kind::Expert => SharedPlayer::Expert { encoder: None },
            Kind::Policy(policy) => SharedPlayer::Policy(Arc::clone(policy)),
            Kind::Human(human) => SharedPlayer::Policy(human.clone()),
        }
    }

    /// The policy, where it plays in this process, so that graders can ask it.
    pub(crate) fn local_policy(&self) -> Option<Arc<dyn Policy>> {
        match &self.kind {
            Kind::Policy(policy) if policy.can_score() => Some(Arc::clone(policy)),
            _ => None,
        }
    }

    /// Whether it is behind an endpoint, whose requests are counted as they are sent.
    pub(crate) fn is_endpoint(&self) -> bool {
        self.is_endpoint
    }

    /// Keeps the secrets of its run out of what is written.
    pub(crate) fn keep_secrets(&self) -> anyhow::Result<()> {
        self.recipe.as_ref().map_or(Ok(()), |recipe| recipe.secrets.keep())
    }

    /// Whether it needs the terminal for itself.
    pub(crate) fn is_human(&self) -> bool {
        matches!(self.kind, Kind::Human(_))
    }

    /// How it plays such tasks: as its run does, with what was typed over it. Where nobody chose how tasks are put that
    /// are played by calls of tools alone, tools are offered.
    pub(crate) fn episode(
        &self,
        arguments: &PlayerArguments,
        purpose: Purpose,
        tasks: &[Task],
    ) -> EpisodeConfig {
        let mut episode = match &self.recipe {
            Some(recipe) => {
                let mut episode = recipe.episode.clone();
                if purpose == Purpose::Evaluation {
                    recipe.evaluation.apply_to(&mut episode.sampling);
                    episode.max_turns = recipe.evaluation.max_turns;
                } else {
                    episode.max_turns = turns_in_training(recipe);
                }
                episode
            }
            None => stranger(purpose),
        };
        if self.is_human() {
            (episode.turn_timeout_secs, episode.command_time_secs) = (86_400, 86_400);
        }
        if arguments.endpoint.is_some() {
            // Requests are repeated by the policy itself, and answers may be reasoned about.
            (episode.policy_retries, episode.turn_timeout_secs) = (0, 300);
            (episode.sampling.max_tokens, episode.command_time_secs) = (1024, 3600);
        }
        episode.turn_timeout_secs = arguments.turn_timeout.unwrap_or(episode.turn_timeout_secs);
        let PlayerArguments { temperature, top_k, top_p, min_p, max_tokens, max_turns, .. } =
            *arguments;
        let sampling = &mut episode.sampling;
        sampling.temperature = temperature.unwrap_or(sampling.temperature);
        sampling.top_k = top_k.or(sampling.top_k);
        sampling.top_p = top_p.unwrap_or(sampling.top_p);
        sampling.min_p = min_p.unwrap_or(sampling.min_p);
        episode.sampling.max_tokens = max_tokens.unwrap_or(episode.sampling.max_tokens);
        episode.max_turns = max_turns.or(episode.max_turns);
        episode.constrain_to_admissible =
            arguments.constrain_to_admissible.unwrap_or(episode.constrain_to_admissible);
        let context = &mut episode.context;
        context.instruction = arguments.instruction.unwrap_or(context.instruction);
        context.list_admissible = arguments.list_admissible.unwrap_or(context.list_admissible);
        if self.context_policy.is_some() {
            context.policy.clone_from(&self.context_policy);
        }
        let calls = |task: &Task| actions_of_task(task) == Some(Actions::Calls);
        if self.recipe.is_none() && !tasks.is_empty() && tasks.iter().all(calls) {
            episode.scaffold = ScaffoldChoice::named(TOOLS).expect("it is in the table");
        }
        if let Some(scaffold) = &arguments.scaffold {
            // The parser of another scaffold is not this one's.
            (episode.scaffold, episode.parser) = (scaffold.clone(), None);
        }
        if let Some(parser) = &arguments.parser {
            episode.parser = Some(parser.clone());
        }
        episode
    }

    /// Where its random choices start.
    pub(crate) fn seed(&self, arguments: &PlayerArguments) -> u64 {
        let own = self.recipe.as_ref().map(|recipe| recipe.seed);
        arguments.seed.or(own).unwrap_or_default()
    }

    /// Episodes at the same time: as typed, or else `usual`, but 16 with an endpoint; a person plays one after the other.
    pub(crate) fn concurrency(
        &self,
        arguments: &PlayerArguments,
        usual: Concurrency,
    ) -> Concurrency {
        let default = match (&arguments.endpoint, self.is_human()) {
            (_, true) => 1.into(),
            (Some(_), _) => 16.into(),
            _ => usual,
        };
        arguments.concurrency.map_or(default, Concurrency::from)
    }
}

/// The context policy that was typed.
fn chosen_context(arguments: &PlayerArguments) -> anyhow::Result<Option<ContextPolicyChoice>> {
    let Some(name) = &arguments.context else { return Ok(None) };
    let options = arguments.context_options.iter().cloned().collect();
    let choice = ContextPolicyChoice::new(name, options)?;
    ensure!(
        !matches!(arguments.policy, Some(BuiltIn::Random | BuiltIn::Idle))
            || choice.policy().summaries().is_none(),
        "play with --context {name} by a player who writes nothing: it cannot sum up, name another policy or player"
    );
    Ok(Some(choice))
}

/// Refuses what was typed and the player takes no notice of.
fn refuse_without_effect(arguments: &PlayerArguments) -> anyhow::Result<()> {
    let PlayerArguments { temperature, top_k, top_p, min_p, max_tokens, .. } = *arguments;
    let sampled = [
        ("--temperature", temperature.is_some()),
        ("--top-k", top_k.is_some()),
        ("--top-p", top_p.is_some()),
        ("--min-p", min_p.is_some()),
        ("--max-tokens", max_tokens.is_some()),
    ];
    let shown = [
        ("--list-admissible", arguments.list_admissible.is_some()),
        ("--instruction", arguments.instruction.is_some()),
        ("--context", arguments.context.is_some()),
    ];
    let kept = [
        ("--weights", arguments.decoder.weights != KeepAs::default()),
        // An endpoint draws by itself.
        ("--draw-rule", arguments.drawing.draw_rule.is_some()),
    ];
    let restricted =
        [("--constrain-to-admissible", arguments.constrain_to_admissible == Some(true))];
    let (player, ignored) = match (arguments.policy, &arguments.endpoint) {
        (Some(BuiltIn::Oracle | BuiltIn::Expert), _) => {
            ("a player that reads the environment", [&sampled[..], &shown, &kept].concat())
        }
        (Some(BuiltIn::Random | BuiltIn::Idle | BuiltIn::Human), _) => {
            ("a player that is no model", [&sampled[..], &kept].concat())
        }
        (None, Some(_)) => ("an endpoint", [&restricted[..], &kept].concat()),
        (None, None) => return Ok(()),
    };
    let ignored: Vec<_> = ignored.iter().filter(|(_, is_given)| *is_given).map(|it| it.0).collect();
    ensure!(
        ignored.is_empty(),
        "play with {} by {player}: without effect there, leave it out",
        ignored.join(" and ")
    );
    Ok(())
}

/// How a player plays that was not trained here: it is told all that helps.
fn stranger(purpose: Purpose) -> EpisodeConfig {
    let mut episode = EpisodeConfig::default();
    episode.context.list_admissible = true;
    if purpose == Purpose::Evaluation {
        episode.sampling.temperature = 0.0;
    }
    episode
}

/// The folder of the model that a path means, and the recipe of its run.
pub(crate) fn locate(path: &Path) -> anyhow::Result<(PathBuf, Option<Recipe>)> {
    let read = |run: &RunFolder| -> anyhow::Result<Recipe> {
        Ok(Recipe::of_run(&run.path().display().to_string(), &run.config()?)?)
    };
    if let Ok(run) = RunFolder::open(path) {
        let checkpoints = Checkpoints::view(&run.checkpoints_path());
        let found = match checkpoints.best()? {
            Some(best) => Some(best),
            None => checkpoints.latest()?,
        };
        let Some(found) = found else {
            bail!("find a checkpoint in run `{}`: it has none yet", path.display());
        };
        return Ok((found.path, Some(read(&run)?)));
    }
    if !checkpoint::is_model(path) && !checkpoint::is_adapter(path) {
        bail!(
            "find a model in `{}`: there is neither a `config.json` nor one .gguf file, nor is it a run",
            path.display()
        );
    }
    // `<run>/checkpoints/<checkpoint>`; the path may be relative to the run's own folder.
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let run = full.ancestors().nth(2).and_then(|run| RunFolder::open(run).ok());
    Ok((path.to_owned(), run.as_ref().map(read).transpose()?))
}

/// Asks an endpoint for a word.
async fn probe(config: HttpPolicyConfig, meter: Meter) -> Result<(), PolicyError> {
    let request = CompletionRequest {
        messages: vec![Arc::new(Message::new(Role::User, "Answer with one word: ready"))].into(),
        sampling: Sampling { temperature: 0.0, max_tokens: 16, ..Sampling::default() },
        ..CompletionRequest::new(0, Seed::from_u64(0))
    };
    HttpPolicy::open(config)?.metered(meter).complete(request).await.map(drop)
}

/// Turns that episodes may have in the last stage of a recipe that says so.
fn turns_in_training(recipe: &Recipe) -> Option<u32> {
    let stages = outline(recipe).unwrap_or_default();
    stages.iter().rev().find_map(|stage| stage.max_turns)
}
