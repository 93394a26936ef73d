//! What can be typed.

mod collect;
mod env;
mod sandbox;
mod serve;
mod spend;
mod tasks;

use std::path::PathBuf;
use std::str::FromStr;

use crate::commands::conformance::{RECORDED, Recorded};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use spar::agent::policies::ServerKind;
use spar::agent::spend::PriceSource;
use spar::agent::{ParserChoice, ScaffoldChoice};
use spar::core::registry::{AnyTable, Row};
use spar::players::{BuiltIn, PLAYERS};
use spar::policy::checkpoint::KeepAs;
use spar::policy::cuda::DeviceChoice;
use spar::registry::tables;
use spar::seats::SeatPlayerConfig;
use spar::tasks::WrapperConfig;

pub(crate) use collect::CollectArguments;
pub(crate) use env::{EnvArguments, EnvCommand, EnvInitArguments, EnvKind};
pub(crate) use sandbox::{
    DoctorArguments, Forward, ReapArguments, SandboxArguments, SandboxCommand,
    SandboxListArguments, SandboxRunArguments, SandboxShellArguments, SpecArguments,
};
pub(crate) use serve::{
    AuditArguments, MergeArguments, ServeArguments, ServeCommand, ServePolicyArguments,
    ServeRetrievalArguments, StoredNumbers, ToolFormat,
};
pub(crate) use spend::{RedactArguments, SecretArguments, SpendArguments};
pub(crate) use tasks::{
    BuildImageArguments, GradeArguments, ImportArguments, MakeCommand, MakeRepairArguments,
    TasksArguments, TasksCommand, TasksImpactArguments, TasksListArguments, TasksShowArguments,
    TasksUnsolvedArguments,
};

/// The gym in which language-model agents train.
///
/// Without a sub-command's options everything has a sensible default: `spar train` trains a small
/// model from nothing on household chores and shows that it gets better.
#[derive(Debug, Parser)]
#[command(name = "spar", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed, or a check found something; 2 wrong \
                          usage; 3 stopped at a limit of spending; 130 stopped by Ctrl-C (143 by SIGTERM, 129 by SIGHUP), to be \
                          resumed where that applies. \
                          `spar sandbox` has those of the command inside.";

/// A sub-command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a policy: warm start on demonstrations, then reinforcement learning.
    Train(TrainArguments),
    /// Go on with a run that was stopped or killed.
    Resume(ResumeArguments),
    /// Measure how good a checkpoint, endpoint or built-in player is on a suite.
    Eval(EvalArguments),
    /// Let a player play tasks and keep its trajectories.
    Rollout(RolloutArguments),
    /// Have players of different quality play the same tasks, and keep what they did as a dataset to learn from.
    Collect(CollectArguments),
    /// Play a task yourself.
    Play(PlayArguments),
    /// Play stored trajectories again and check that everything comes out the same.
    Replay(ReplayArguments),
    /// Show a run, read trajectories, or tell all of what has a name.
    Show(ShowArguments),
    /// Compare recipes over several runs each: a table, and a picture with bands.
    Compare(CompareArguments),
    /// Train recipes over settings and seeds, and compare them: one table, one picture.
    Sweep(SweepArguments),
    /// Assign advantages to stored trajectories with any estimator, step by step.
    Credit(CreditArguments),
    /// List the methods that recipes choose among: axis, name, how exact, and where from.
    Methods(MethodsArguments),
    /// Check a suite: can every task be solved, repeated and forked?
    Validate(ValidateArguments),
    /// List the tasks of a suite, show one, import published rows, make tasks, or build images for them.
    Tasks(TasksArguments),
    /// Begin an environment of one's own: a program, a crate, or tasks in files.
    Env(EnvArguments),
    /// List what there is: suites, environments, recipes and the parts recipes name.
    List(ListArguments),
    /// Compare an environment with recordings of its reference.
    Conformance(ConformanceArguments),
    /// Measure how fast an environment is.
    Bench(BenchArguments),
    /// Write generated games as files.
    Generate(GenerateArguments),
    /// Serve a policy or a corpus over HTTP.
    Serve(ServeArguments),
    /// Write the model that a checkpoint stands for, an adapter merged, as a folder of its own.
    Merge(MergeArguments),
    /// Measure how far rollout and training of a checkpoint differ.
    Audit(AuditArguments),
    /// Run commands in a sandbox, work in one, or list them.
    Sandbox(SandboxArguments),
    /// Remove what dead runs left behind: sandboxes, volumes, networks, snapshots, folders.
    Reap(ReapArguments),
    /// Take secrets out of what was written before they were known.
    Redact(RedactArguments),
    /// Tell which backends of sandboxes work here, what they cost, and what is missing.
    Doctor(DoctorArguments),
    /// Print a completion script for a shell.
    Completions(CompletionsArguments),
}

/// Arguments of `spar train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArguments {
    /// A recipe that ships (see `spar list`), or the path of a .toml file.
    #[arg(default_value = "household")]
    pub(crate) recipe: String,
    /// Train on this suite; `alfworld`, or a folder with a recipe.toml, chooses that recipe as well.
    #[arg(long)]
    pub(crate) suite: Option<String>,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// A checkpoint folder, a GGUF file, or a model's name on the hub (`organisation/name[@revision]`), to start
    /// from; its model and tokenizer take the place of the recipe's.
    #[arg(long, value_name = "MODEL")]
    pub(crate) start_from: Option<PathBuf>,
    /// Seed of all random choices.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Override a setting of the recipe; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Name of the run.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Folder that holds the runs.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// Print the resolved recipe and what would happen, and stop.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Threads; results do not depend on it.
    #[arg(long, env = "SPAR_THREADS")]
    pub(crate) threads: Option<usize>,
}

/// Arguments of `spar resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// The run's folder or name; left out, the one that was written last.
    pub(crate) run: Option<PathBuf>,
    /// Folder that holds the runs.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Threads; results do not depend on it.
    #[arg(long, env = "SPAR_THREADS")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) spend: SpendArguments,
}

/// Who plays, and by which rules; of `spar eval` and `spar rollout`.
#[derive(Debug, Args)]
pub(crate) struct PlayerArguments {
    /// A checkpoint, a run (its best checkpoint; by folder or name), a folder of a Hugging Face model, a GGUF file, or a name on
    /// the hub (`organisation/name[@revision]`); left out, the run in `--runs` that was written last.
    #[arg(long, value_name = "FOLDER", group = "who")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// A built-in player.
    #[arg(long, group = "who", value_parser = player_names())]
    pub(crate) policy: Option<BuiltIn>,
    /// An OpenAI-compatible endpoint: its address up to and without `/chat/completions`.
    #[arg(long, value_name = "URL", group = "who", requires = "model")]
    pub(crate) endpoint: Option<String>,
    /// The model's name at the endpoint.
    #[arg(long, requires = "endpoint")]
    pub(crate) model: Option<String>,
    /// The environment variable that holds the endpoint's key.
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    pub(crate) api_key_env: Option<String>,
    /// What its tokens cost: a TOML file with a table for each model in its table `models`, or prices by the million,
    /// such as `input=2.5,cached_input=0.25,output=10`.
    #[arg(long, value_name = "PRICES", requires = "endpoint", value_parser = PriceSource::from_str)]
    pub(crate) prices: Option<PriceSource>,
    /// The program behind the endpoint. Of those that tell tokens, answers are kept as training needs them; left out, no
    /// more is asked of it than OpenAI's interface has.
    #[arg(long, requires = "endpoint")]
    pub(crate) server: Option<Server>,
    /// Folder that holds the runs.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// How tokens are drawn; 0 takes the most probable ones.
    #[arg(long)]
    pub(crate) temperature: Option<f32>,
    /// How many of the most probable tokens can be drawn.
    #[arg(long)]
    pub(crate) top_k: Option<usize>,
    /// The fewest of the most probable tokens can be drawn that have this probability together.
    #[arg(long)]
    pub(crate) top_p: Option<f32>,
    /// Share of the most probable token's probability below which a token cannot be drawn.
    #[arg(long)]
    pub(crate) min_p: Option<f32>,
    /// Tokens an answer may have.
    #[arg(long)]
    pub(crate) max_tokens: Option<usize>,
    /// Turns an episode may have; left out, as the run or else the task says.
    #[arg(long)]
    pub(crate) max_turns: Option<u32>,
    /// Seconds that an answer may take, and a step of the environment; left out, as the run says, or 300 for an endpoint's, or 120.
    /// Who misses them has failed, and is not scored.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) turn_timeout: Option<u64>,
    /// How the task is put to the player, and whether tools are offered; `spar list scaffolds` tells the names.
    /// Left out, as the run says, or `tools` for tasks that are played by calls alone.
    #[arg(long, value_name = "NAME", value_parser = ScaffoldChoice::named)]
    pub(crate) scaffold: Option<ScaffoldChoice>,
    /// How actions are read in answers; `spar list parsers` tells the names. Left out, as scaffold and environment have it.
    #[arg(long, value_name = "NAME", value_parser = ParserChoice::named)]
    pub(crate) parser: Option<ParserChoice>,
    /// What becomes of the conversation as it grows; `spar list contexts` tells the names. Left out, as the run or
    /// else the scaffold says.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// An option of that context policy, as `spar show contexts NAME` tells them; can be given several times.
    #[arg(
        long = "context-option",
        value_name = "NAME=VALUE",
        value_parser = parse_option,
        requires = "context"
    )]
    pub(crate) context_options: Vec<(String, serde_json::Value)>,
    /// Whether observations list the actions that can be executed.
    #[arg(long, value_name = "BOOL")]
    pub(crate) list_admissible: Option<bool>,
    /// Whether a local model may answer only what can be executed; left out, as its run or yes.
    #[arg(long, value_name = "BOOL")]
    pub(crate) constrain_to_admissible: Option<bool>,
    /// Whether the task's instruction opens the conversation.
    #[arg(long, value_name = "BOOL")]
    pub(crate) instruction: Option<bool>,
    /// Who takes a seat where several act: `self` (the player above), `random`, `oracle`, `expert`, `script:FILE`, the folder
    /// of a checkpoint, or `URL#MODEL` of an endpoint; may be given several times. Left out, as the run or else the
    /// environment says.
    #[arg(long, value_name = "NAME=PLAYER", value_parser = seat_player)]
    pub(crate) seat: Vec<(String, SeatPlayerConfig)>,
    /// Seed of all random choices; left out, the run's, or 0.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Episodes in progress at the same time, in sandboxes or not; results do not depend on it. Left out, 128
    /// per core, or 16 with an endpoint or in sandboxes.
    #[arg(long)]
    pub(crate) concurrency: Option<usize>,
    #[command(flatten)]
    pub(crate) drawing: DrawRuleArguments,
    #[command(flatten)]
    pub(crate) decoder: DecoderArguments,
}

/// A seat and who takes it.
fn seat_player(text: &str) -> Result<(String, SeatPlayerConfig), String> {
    let (seat, player) = text.split_once('=').ok_or("it has the form NAME=PLAYER")?;
    Ok((seat.to_owned(), SeatPlayerConfig::typed(player)))
}

/// Reads an option: its value as JSON, or else as text.
fn parse_option(text: &str) -> Result<(String, serde_json::Value), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            Ok((name.to_owned(), value))
        }
        _ => Err("an option is NAME=VALUE".to_owned()),
    }
}

/// What makes the logits that a local model's tokens are drawn from.
#[derive(Debug, Args)]
pub(crate) struct DrawRuleArguments {
    /// What makes the logits that a local model's tokens are drawn from; `spar list draw-rules` tells the names. Left out,
    /// as its run has it; `plain` takes the model's own.
    #[arg(long, value_name = "NAME")]
    pub(crate) draw_rule: Option<String>,
    /// An option of the draw rule, such as `beta=0.5`; `spar show draw-rules NAME` tells them.
    #[arg(long = "draw-option", value_name = "NAME=VALUE", requires = "draw_rule")]
    pub(crate) draw_options: Vec<String>,
}

/// The program behind an endpoint.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Server {
    /// Any, by OpenAI's interface alone.
    Openai,
    /// vLLM.
    Vllm,
    /// `spar serve policy`.
    Spar,
}

impl From<Server> for ServerKind {
    fn from(server: Server) -> Self {
        match server {
            Server::Openai => Self::Openai,
            Server::Vllm => Self::Vllm,
            Server::Spar => Self::Spar,
        }
    }
}

/// Where and in what form a decoder computes.
#[derive(Debug, Args)]
pub(crate) struct DecoderArguments {
    /// Where the decoder computes: auto, cpu, cuda.
    #[arg(long, env = "SPAR_DEVICE", default_value_t)]
    pub(crate) device: DeviceChoice,
    /// In which form weights are kept on the CPU: stored (as the checkpoint has them), f32, bf16,
    /// f16; bf16 and f16 halve the memory, and round what is stored in f32.
    #[arg(long, value_name = "FORM", default_value_t)]
    pub(crate) weights: KeepAs,
    /// Threads; results do not depend on it.
    #[arg(long, env = "SPAR_THREADS")]
    pub(crate) threads: Option<usize>,
}

/// Where the sandboxes of episodes come from; of commands that play tasks.
#[derive(Debug, Args)]
pub(crate) struct EnvironmentArguments {
    /// For environments that need sandboxes: docker, wasm or local (`spar doctor` tells which work
    /// here); left out, the run's, or what the environment usually takes.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// The image of tasks that name none, as `spar sandbox run` takes it; left out, the run's, or
    /// the backend's smallest.
    #[arg(long)]
    pub(crate) image: Option<String>,
}

/// What is put around the environments of tasks; of commands that play them.
#[derive(Debug, Args)]
pub(crate) struct WrapperArguments {
    /// A wrapper around the environment of every task, with its options, such as
    /// `unary_feedback,attempts=3,feedback="Try again."`; given several times, the innermost first. `spar list wrappers` tells the
    /// names, `spar show wrappers NAME` the options. Left out, the run's, if it is about these tasks.
    #[arg(long, value_name = "NAME[,OPTION=VALUE...]", value_parser = WrapperConfig::from_str)]
    pub(crate) wrap: Vec<WrapperConfig>,
}

/// The model that judges, for tasks and runs with graders that ask one; of `spar eval` and `spar rollout`.
#[derive(Debug, Args)]
pub(crate) struct JudgeArguments {
    /// An OpenAI-compatible endpoint that judges: its address up to and without `/chat/completions`; left out, the
    /// run's.
    #[arg(long, value_name = "URL", requires = "judge_model", conflicts_with = "judge_checkpoint")]
    pub(crate) judge: Option<String>,
    /// The model's name at that endpoint.
    #[arg(long, value_name = "NAME", requires = "judge")]
    pub(crate) judge_model: Option<String>,
    /// The environment variable that holds that endpoint's key.
    #[arg(long, value_name = "NAME", requires = "judge")]
    pub(crate) judge_api_key_env: Option<String>,
    /// What that endpoint's tokens cost, as for `--prices`.
    #[arg(long, value_name = "PRICES", requires = "judge", value_parser = PriceSource::from_str)]
    pub(crate) judge_prices: Option<PriceSource>,
    /// A checkpoint, a run (its best checkpoint), or a model's name on the hub, that judges in this process.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) judge_checkpoint: Option<PathBuf>,
}

/// Which tasks; of `spar eval` and `spar rollout`.
#[derive(Debug, Args)]
pub(crate) struct TaskArguments {
    /// A suite (see `spar list suites`), a folder with a suite.toml or an env.toml, or a .jsonl file of tasks; left
    /// out, the run's, or `household`.
    #[arg(long)]
    pub(crate) suite: Option<String>,
    /// A split of the suite; may be given several times. Left out, the suite's test splits, or
    /// for `spar rollout` its training split.
    #[arg(long)]
    pub(crate) split: Vec<String>,
    /// Tasks of each split, drawn as a sample that equal seeds repeat; left out, all of them, or for
    /// `spar rollout` 16.
    #[arg(long)]
    pub(crate) limit: Option<usize>,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wrapping: WrapperArguments,
}

/// Arguments of `spar eval`.
#[derive(Debug, Args)]
pub(crate) struct EvalArguments {
    #[command(flatten)]
    pub(crate) player: PlayerArguments,
    #[command(flatten)]
    pub(crate) tasks: TaskArguments,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArguments,
    #[command(flatten)]
    pub(crate) judge: JudgeArguments,
    #[command(flatten)]
    pub(crate) spend: SpendArguments,
    #[command(flatten)]
    pub(crate) secrets: SecretArguments,
    /// Episodes per task.
    #[arg(long, default_value_t = 1)]
    pub(crate) attempts: usize,
    /// Measure how far the policy goes along what the oracle does, or what was recorded, its own answers in its history: stands for
    /// `--wrap semi_online,patches=0`.
    #[arg(long, conflicts_with = "against")]
    pub(crate) semi_online: bool,
    /// A dataset (see `spar collect`) whose random and expert players scores are normalised between, as D4RL does.
    #[arg(long, value_name = "FOLDER", conflicts_with = "against")]
    pub(crate) normalize: Option<PathBuf>,
    /// Share of the episodes, 0 to below 1, that may be missing because the infrastructure failed; where
    /// more are, there is no score. Left out, the run's, or 0.05.
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_missing: Option<f64>,
    /// Report pass@K, up to the number of attempts; may be given several times.
    #[arg(long, value_name = "K", value_delimiter = ',')]
    pub(crate) pass_at: Vec<usize>,
    /// Play this opponent on a suite of games of two seats, both sides alternately, and everybody else who is named so:
    /// `random`, `oracle`, `expert`, `minimax[:DEPTH]`, `mcts[:ITERATIONS]`, `script:FILE`, the folder of a checkpoint, or
    /// URL#MODEL. Prints a table of points with intervals, and Elo; may be given several times.
    #[arg(long, value_name = "PLAYER")]
    pub(crate) against: Vec<String>,
    /// Print the results as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the results as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Keep the trajectories in this folder, which must not hold any.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
}

/// Which conversations are written for trainers elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ExportWhat {
    /// All of episodes that came about, with what they are worth.
    #[default]
    All,
    /// Those that solved their task.
    Solved,
}

impl EvalArguments {
    /// Puts what measures semi-online performance around the tasks, where that was asked for.
    pub(crate) fn wrap_semi_online(&mut self) {
        if self.semi_online {
            let wrapper = "semi_online,patches=0".parse().expect("it is the form of a wrapper");
            self.tasks.wrapping.wrap.push(wrapper);
        }
    }
}

/// Arguments of `spar rollout`.
#[derive(Debug, Args)]
pub(crate) struct RolloutArguments {
    /// The folder the trajectories are kept in, which must not hold any.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) player: PlayerArguments,
    #[command(flatten)]
    pub(crate) tasks: TaskArguments,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArguments,
    #[command(flatten)]
    pub(crate) judge: JudgeArguments,
    #[command(flatten)]
    pub(crate) spend: SpendArguments,
    #[command(flatten)]
    pub(crate) secrets: SecretArguments,
    /// Episodes per task.
    #[arg(long, default_value_t = 8)]
    pub(crate) group_size: usize,
    /// Write the conversations for trainers elsewhere to this file, a JSON object per line: `messages` and `tools` as OpenAI's
    /// interface has them, with rewards, and with tokens where the policy tells them.
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// Which conversations are written.
    #[arg(long, value_enum, default_value_t, requires = "export", value_name = "WHICH")]
    pub(crate) export_what: ExportWhat,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar play`.
#[derive(Debug, Args)]
pub(crate) struct PlayArguments {
    /// An environment, a suite, a folder with a suite.toml or an env.toml, or a .jsonl file of tasks.
    #[arg(default_value = "household")]
    pub(crate) name: String,
    /// The split the task is taken from; left out, the one that recipes train on.
    #[arg(long)]
    pub(crate) split: Option<String>,
    /// Number of the task, from 0; left out, drawn by the seed.
    #[arg(long)]
    pub(crate) index: Option<usize>,
    /// The seat that you take where several act; left out, the first.
    #[arg(long, value_name = "NAME")]
    pub(crate) seat: Option<String>,
    /// Who takes another seat, as `--seat` of `spar eval` has it; left out, the expert, or who else can.
    #[arg(long, value_name = "NAME=PLAYER", value_parser = seat_player)]
    pub(crate) against: Vec<(String, SeatPlayerConfig)>,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wrapping: WrapperArguments,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArguments,
}

/// Arguments of `spar replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// A run (its folder, or its name in `runs`), a folder of trajectories, or one .jsonl.zst file of it.
    pub(crate) path: PathBuf,
    /// The suite the tasks are in; left out, the one their ids begin with.
    #[arg(long)]
    pub(crate) suite: Option<String>,
    /// Folder of third-party data, for suites that need it; left out, the run's.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wrapping: WrapperArguments,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArguments,
    /// Trajectories, from the oldest.
    #[arg(long, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) limit: Option<usize>,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Runs of one recipe that differ in their seed, by folder or by name in `runs`; may be given several times.
    #[arg(long, value_name = "NAME=RUN,RUN,...", required = true)]
    pub(crate) series: Vec<String>,
    /// Write the picture to this SVG file.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// Recipes that ship, or paths of .toml files.
    #[arg(required = true, value_name = "RECIPE")]
    pub(crate) recipes: Vec<String>,
    /// What a setting is in turn; given several times, every combination is trained.
    #[arg(long, value_name = "NAME=VALUE|VALUE|...")]
    pub(crate) vary: Vec<String>,
    /// Override a setting of all recipes; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seeds, as a list with ranges whose end is left out.
    #[arg(long, default_value = "0..5")]
    pub(crate) seeds: String,
    /// A checkpoint folder, a GGUF file, or a model's name on the hub, to start all runs from.
    #[arg(long, value_name = "MODEL")]
    pub(crate) start_from: Option<PathBuf>,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Folder of the runs, their logs, `comparison.txt`, `.json` and `.svg`; runs that are finished there are not trained
    /// again, others are gone on with [default: sweeps/RECIPES].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Runs at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub(crate) jobs: usize,
    /// Threads of each run; results do not depend on it.
    #[arg(long, default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) threads: usize,
    /// Print which runs there would be, and stop.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the comparison as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar credit`.
#[derive(Debug, Args)]
pub(crate) struct CreditArguments {
    /// A run (its folder, or its name in `--runs`), a folder of trajectories, or one .jsonl.zst file of it;
    /// left out, the run in `--runs` that was written last.
    pub(crate) path: Option<PathBuf>,
    /// Folder that holds the runs.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// The estimator, one that `spar list credit` lists; left out, the one of the run's recipe, else `grpo`.
    #[arg(long, value_name = "NAME")]
    pub(crate) estimator: Option<String>,
    /// An option of the estimator; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Take rewards as they were recorded, without the shapers of the run's recipe.
    #[arg(long)]
    pub(crate) recorded_rewards: bool,
    /// The iteration whose groups are compared; left out, the last one.
    #[arg(long)]
    pub(crate) iteration: Option<u64>,
    /// Show this group alone, from 0.
    #[arg(long)]
    pub(crate) group: Option<usize>,
    /// Groups that are shown at the most.
    #[arg(long, default_value_t = 3, conflicts_with = "group")]
    pub(crate) limit: usize,
    /// Print JSON, advantages of tokens included.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar methods`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MethodsArguments {
    /// What to do with them; left out, they are listed.
    #[command(subcommand)]
    pub(crate) command: Option<MethodsCommand>,
    /// Only those of one axis.
    #[arg(long, value_parser = PossibleValuesParser::new(crate::commands::methods::axes()))]
    pub(crate) axis: Option<String>,
    /// Only those that are as their source has them, in parts reconstructed, or of this project.
    #[arg(long, value_parser = ["exact", "reconstructed", "own"])]
    pub(crate) exactness: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is done with methods.
#[derive(Debug, Subcommand)]
pub(crate) enum MethodsCommand {
    /// Show what a method computes, where it comes from, and its options with their defaults.
    Show {
        /// A name that `spar methods` lists.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `spar show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// A run (its folder, or its name in `--runs`), a folder of trajectories, or one .jsonl.zst file of it;
    /// left out, the run in `--runs` that was written last.
    ///
    /// With a second name, what `spar list` lists: `spar show objectives clip` tells what that computes, where it comes
    /// from, and its options.
    #[arg(value_name = "PATH|AXIS")]
    pub(crate) path: Option<PathBuf>,
    /// A name that `spar list AXIS` lists.
    #[arg(
        requires = "path",
        conflicts_with_all = ["runs", "trajectories", "episode", "failed", "success", "limit", "media"]
    )]
    pub(crate) name: Option<String>,
    /// Folder that holds the runs.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// Show the trajectories of a run instead of its overview.
    #[arg(long)]
    pub(crate) trajectories: bool,
    /// Only the trajectory of this number, from 1.
    #[arg(long)]
    pub(crate) episode: Option<usize>,
    /// Only trajectories that did not solve their task.
    #[arg(long, conflicts_with = "success")]
    pub(crate) failed: bool,
    /// Only trajectories that solved their task.
    #[arg(long, alias = "won")]
    pub(crate) success: bool,
    /// Trajectories that are shown at the most.
    #[arg(long, default_value_t = 3)]
    pub(crate) limit: usize,
    /// Folder in which screenshots and other media of the trajectories that are shown are put, as files that are named
    /// by their hashes.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) media: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    /// A suite, a folder with a suite.toml, or a .jsonl file of tasks; of a folder with an env.toml, the program is
    /// checked as well.
    pub(crate) suite: String,
    /// A split; may be given several times. Left out, all of them.
    #[arg(long)]
    pub(crate) split: Vec<String>,
    /// Tasks of each split, drawn as a sample that is always the same; left out, 200.
    #[arg(long, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) limit: Option<usize>,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wrapping: WrapperArguments,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArguments,
    /// Tasks under way at one time, each with a sandbox of its own where it needs one.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) concurrency: usize,
    /// Tell how long it took as well, and what of that this program itself has computed: all that is not the agent, the tests or
    /// the engine.
    #[arg(long)]
    pub(crate) report: bool,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar list`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// What to list; left out, everything.
    #[arg(value_parser = axis_names())]
    pub(crate) axis: Option<String>,
    /// Print JSON: all that `spar show` tells of each.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The names of what can be listed.
fn axis_names() -> PossibleValuesParser {
    let value = |table: &dyn AnyTable| {
        PossibleValue::new(table.axis().name).help(table.axis().about.trim_end_matches('.'))
    };
    tables().map(value).into()
}

/// Reads the name of a player.
fn player_names() -> impl TypedValueParser<Value = BuiltIn> {
    let value =
        |row: &Row<BuiltIn>| PossibleValue::new(row.name).help(row.about.trim_end_matches('.'));
    let names = PossibleValuesParser::from(PLAYERS.iter().map(value).collect::<Vec<_>>());
    names.map(|name| PLAYERS.find(&name).expect("it is one of their names").open)
}

/// Reads the name of an environment of which there are recordings.
fn recorded_names() -> impl TypedValueParser<Value = &'static Recorded> {
    let value = |recorded: &Recorded| PossibleValue::new(recorded.name).help(recorded.about);
    let names = PossibleValuesParser::from(RECORDED.iter().map(value).collect::<Vec<_>>());
    names.map(|name| {
        RECORDED.iter().find(|recorded| recorded.name == name).expect("it is one of their names")
    })
}

/// Arguments of `spar conformance`.
#[derive(Debug, Args)]
pub(crate) struct ConformanceArguments {
    /// The environment.
    #[arg(value_parser = recorded_names())]
    pub(crate) environment: &'static Recorded,
    /// Folder of its data, where it needs some: games, or the texts of long contexts.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Folder of recordings of the reference, or a file of them.
    #[arg(long)]
    pub(crate) traces: PathBuf,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// The environment.
    pub(crate) environment: Measured,
    /// Folder of its games.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: PathBuf,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// An environment with a reference and games in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measured {
    /// Household chores in text.
    Household,
}

/// Arguments of `spar generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// The environment.
    pub(crate) environment: Measured,
    /// The folder the games are written below.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Name of the split, the folder below it.
    #[arg(long, default_value = "train")]
    pub(crate) split: String,
    /// The rooms: train, dev or unseen; left out, those named like the split, or train.
    #[arg(long, value_parser = super::commands::parse_scenes)]
    pub(crate) scenes: Option<spar::envs::household::generator::SceneSet>,
    /// Number of games, at least 1.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,
    /// Seed of the first game; the next ones follow it.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// How much stands in a room: small, medium, large, or the most receptacles (4 to 60; what a
    /// room of its kind cannot be without stands there all the same).
    #[arg(long, default_value = "large", value_parser = super::commands::parse_size)]
    pub(crate) size: spar::envs::household::generator::RoomSize,
    /// The family of the tasks, such as pick_and_place_simple; left out, any.
    #[arg(long, value_parser = super::commands::parse_family)]
    pub(crate) family: Option<spar::envs::household::TaskFamily>,
}

/// Arguments of `spar completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}
