//! What can be typed about spending and secrets.

use std::path::PathBuf;

use clap::Args;
use spar::agent::spend::SpendConfig;
use spar::core::redaction::SecretRule;
use spar::secrets::SecretsConfig;

/// What may be spent; of `spar eval`, `spar rollout` and `spar resume`.
#[derive(Debug, Args)]
pub(crate) struct SpendArguments {
    /// Stop when models have cost so much, the judge included; every endpoint needs prices then.
    #[arg(long, value_name = "COST", help_heading = "Spending")]
    pub(crate) max_cost: Option<f64>,
    /// Stop when prompts had so many tokens.
    #[arg(long, value_name = "TOKENS", help_heading = "Spending")]
    pub(crate) max_input_tokens: Option<u64>,
    /// Stop when answers had so many tokens.
    #[arg(long, value_name = "TOKENS", help_heading = "Spending")]
    pub(crate) max_output_tokens: Option<u64>,
    /// Stop when prompts and answers had so many tokens together.
    #[arg(long, value_name = "TOKENS", help_heading = "Spending")]
    pub(crate) max_total_tokens: Option<u64>,
    /// Stop after so many requests to endpoints, those that are sent again among them.
    #[arg(long, value_name = "NUMBER", help_heading = "Spending")]
    pub(crate) max_requests: Option<u64>,
    /// Stop after so many seconds.
    #[arg(long, value_name = "SECONDS", help_heading = "Spending")]
    pub(crate) max_wall_secs: Option<u64>,
    /// What an hour of this machine costs, for models in this process.
    #[arg(long, value_name = "COST", help_heading = "Spending")]
    pub(crate) hour_price: Option<f64>,
    /// What costs are in; left out, the run's, or USD.
    #[arg(long, value_name = "NAME", help_heading = "Spending")]
    pub(crate) currency: Option<String>,
}

impl SpendArguments {
    /// The limits that were typed.
    pub(crate) fn config(&self) -> SpendConfig {
        let default = SpendConfig::default();
        SpendConfig {
            currency: self.currency.clone().unwrap_or(default.currency),
            hour_price: self.hour_price,
            max_cost: self.max_cost,
            max_input_tokens: self.max_input_tokens,
            max_output_tokens: self.max_output_tokens,
            max_total_tokens: self.max_total_tokens,
            max_requests: self.max_requests,
            max_wall_secs: self.max_wall_secs,
        }
    }
}

/// What must not stand in anything that is written; of `spar eval`, `spar rollout` and `spar redact`.
#[derive(Debug, Args)]
pub(crate) struct SecretArguments {
    /// An environment variable whose value is secret; may be given several times.
    #[arg(long, value_name = "NAME", help_heading = "Secrets")]
    pub(crate) secret_env: Vec<String>,
    /// A file of secrets as `.env` has them; may be given several times.
    #[arg(long, value_name = "FILE", help_heading = "Secrets")]
    pub(crate) secret_file: Vec<PathBuf>,
    /// What looks like a secret: api_key, github, gitlab, hugging_face, slack, aws, google, bearer, private_key; may be
    /// given several times.
    #[arg(long, value_name = "RULE", help_heading = "Secrets")]
    pub(crate) secret_rule: Vec<SecretRule>,
}

impl SecretArguments {
    /// Those that were typed.
    pub(crate) fn config(&self) -> SecretsConfig {
        SecretsConfig {
            environment: self.secret_env.clone(),
            files: self.secret_file.clone(),
            rules: self.secret_rule.clone(),
        }
    }
}

/// Arguments of `spar redact`.
#[derive(Debug, Args)]
pub(crate) struct RedactArguments {
    /// A run, a folder of trajectories, or a file.
    pub(crate) path: PathBuf,
    /// Tell what holds secrets, change nothing, and exit with 1 if something does.
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) secrets: SecretArguments,
    /// Print what was found as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
