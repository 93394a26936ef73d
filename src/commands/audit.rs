//! `spar audit`.

use std::process::ExitCode;
use std::sync::Arc;

use spar::audit::{AuditConfig, audit as carry_out};
use spar::policy::sampling::SamplingOptions;

use super::drawing::open_drawing;
use super::hub_model::local_model;
use super::player::locate;
use super::{open_model, print, print_json, threads};
use crate::cli::AuditArguments;

/// Prints how far rollout and training differ.
pub(crate) async fn audit(arguments: &AuditArguments) -> anyhow::Result<ExitCode> {
    let (folder, recipe) = locate(&local_model(&arguments.checkpoint).await?)?;
    let (weights, tokenizer) = open_model(&folder, &arguments.decoder)?;
    let (drawing, keep) = (&arguments.drawing, arguments.decoder.weights);
    let model = (&*weights, &tokenizer);
    let rule = open_drawing(drawing, recipe.as_ref(), &folder, model, keep).await?;
    let config = AuditConfig {
        tokens: arguments.tokens,
        sampling: SamplingOptions {
            temperature: arguments.temperature,
            top_k: arguments.top_k,
            top_p: arguments.top_p,
            min_p: arguments.min_p,
            ..SamplingOptions::default()
        },
        seed: arguments.seed,
        threads: threads(arguments.decoder.threads),
    };
    let report = carry_out(&Arc::new(tokenizer), &weights, rule.as_ref(), &config).await?;
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&format!("{report}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
