//! `spar merge`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use spar::policy::checkpoint::{self, NumberType, SaveOptions};

use super::hub_model::local_model;
use super::player::locate;
use super::print;
use crate::cli::{MergeArguments, StoredNumbers};

/// Writes the model that a checkpoint stands for.
pub(crate) async fn merge(arguments: &MergeArguments) -> anyhow::Result<ExitCode> {
    let out = &arguments.out;
    ensure!(!out.exists(), "write the model to `{}`: something is there already", out.display());
    let (folder, _) = locate(&local_model(&arguments.checkpoint).await?)?;
    let (config, parameters, tokenizer) = checkpoint::load_model(&folder)
        .with_context(|| format!("load checkpoint `{}`", folder.display()))?;
    let number_type = match arguments.number_type {
        StoredNumbers::F32 => NumberType::F32,
        StoredNumbers::Bf16 => NumberType::Bf16,
        StoredNumbers::F16 => NumberType::F16,
    };
    let options = SaveOptions { number_type, ..SaveOptions::default() };
    // Under another name until it is whole; a folder of a part is of no use to anybody.
    let mut partial = out.components().collect::<PathBuf>().into_os_string();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = checkpoint::save_model_with(&partial, &config, &parameters, &tokenizer, &options)
        .map_err(anyhow::Error::from)
        .and_then(|()| Ok(std::fs::rename(&partial, out)?));
    if written.is_err() {
        let _ = std::fs::remove_dir_all(&partial);
    }
    written.with_context(|| format!("write the model to `{}`", out.display()))?;
    print(&format!(
        "{} weights of `{}` in `{}`\n",
        parameters.data.len(),
        folder.display(),
        out.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
