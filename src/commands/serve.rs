//! `spar serve`.

use std::io::Write;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use spar::policy::GeneratorConfig;
use spar::search::{Corpora, CorpusSource, IndexFolder, Retriever};
use spar::serve::{
    PolicyServer, RetrievalServer, RetrievalServerConfig, ServedModel, ServerConfig, ToolFormat,
};

use super::drawing::open_drawing;
use super::hub_model::local_model;
use super::player::locate;
use super::{Signals, open_model, threads};
use crate::cli::{
    self, ServeArguments, ServeCommand, ServePolicyArguments, ServeRetrievalArguments,
};

/// Serves what was asked for.
pub(crate) async fn serve(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        ServeCommand::Policy(arguments) => policy(arguments).await,
        ServeCommand::Retrieval(arguments) => retrieval(arguments).await,
    }
}

/// Serves a checkpoint until Ctrl-C.
async fn policy(arguments: &ServePolicyArguments) -> anyhow::Result<ExitCode> {
    if let Some(key) = &arguments.api_key {
        ensure!(!key.trim().is_empty(), "use an empty API key");
        // One that is too short to be looked for keeps nobody out.
        let _ = spar::core::redaction::keep("SPAR_API_KEY", key);
    }
    let (folder, recipe) = locate(&local_model(&arguments.checkpoint).await?)?;
    let (weights, tokenizer) = open_model(&folder, &arguments.decoder)?;
    let (drawing, keep) = (&arguments.drawing, arguments.decoder.weights);
    let model = (&*weights, &tokenizer);
    let rule = open_drawing(drawing, recipe.as_ref(), &folder, model, keep).await?;
    let name = match &arguments.served_model_name {
        Some(name) => name.clone(),
        // A name on the hub; what it means there is a folder named by a commit.
        None if !arguments.checkpoint.exists() => arguments.checkpoint.display().to_string(),
        None => {
            let full = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
            full.file_name().map_or("model".into(), |name| name.to_string_lossy().into_owned())
        }
    };
    let generator = GeneratorConfig {
        threads: threads(arguments.decoder.threads),
        max_model_len: arguments.max_model_len.map(NonZeroUsize::get),
        prefill_tokens: arguments.prefill_tokens.get(),
        max_active: arguments.max_active.get(),
        max_queue: arguments.max_queue.get(),
        kv_memory_bytes: arguments.kv_memory,
        prefix_memory_bytes: arguments.prefix_memory,
    };
    // Here nobody else has them, so that it takes no memory.
    let weights = weights.for_generation();
    let (tokenizer, rule) = (Arc::new(tokenizer), rule.as_ref());
    let model = ServedModel::with_draw_rule(&name, tokenizer, &weights, rule, generator)?;
    drop(weights);
    let config = ServerConfig {
        api_key: arguments.api_key.clone(),
        max_body_bytes: arguments.max_body,
        max_connections: arguments.max_connections.get(),
        answer_timeout: Duration::from_secs(arguments.answer_timeout.get()),
        shutdown_grace: Duration::from_secs(arguments.grace),
        weights_root: arguments.weights_root.clone(),
        keep_weights_as: arguments.decoder.weights,
        tool_format: arguments.tool_format.map(|format| match format {
            cli::ToolFormat::Hermes => ToolFormat::Hermes,
            cli::ToolFormat::Llama3 => ToolFormat::Llama3,
        }),
        ..ServerConfig::default()
    };
    // From here on, so that no early signal is missed.
    let signals = Signals::new();
    let address = format!("{}:{}", arguments.host, arguments.port);
    let server = PolicyServer::bind(&address, model, config).await?;
    super::print(&format!("serving `{name}` at http://{}/v1\n", server.address()))?;
    tell_cut_off(server.serve(stopped(signals)).await);
    Ok(ExitCode::SUCCESS)
}

/// Serves a corpus until Ctrl-C.
async fn retrieval(arguments: &ServeRetrievalArguments) -> anyhow::Result<ExitCode> {
    let folder = match &arguments.index_folder {
        Some(folder) => IndexFolder::new(folder),
        None => IndexFolder::of_user(),
    };
    let corpus = arguments.corpus.clone();
    let open = move || Corpora::default().open(&CorpusSource::File(corpus), &folder);
    let opened = tokio::task::spawn_blocking(open).await.context("index the corpus")??;
    let Retriever::Index(index) = opened else { unreachable!("a file is indexed here") };
    let documents = index.len();
    let config = RetrievalServerConfig {
        topk: arguments.topk.into(),
        max_queries: arguments.max_queries.get(),
        max_body_bytes: arguments.max_body,
        max_connections: arguments.max_connections.get(),
        answer_timeout: Duration::from_secs(arguments.answer_timeout.get()),
        shutdown_grace: Duration::from_secs(arguments.grace),
        ..RetrievalServerConfig::default()
    };
    // From here on, so that no early signal is missed.
    let signals = Signals::new();
    let address = format!("{}:{}", arguments.host, arguments.port);
    let server = RetrievalServer::bind(&address, index, config).await?;
    super::print(&format!(
        "serving {documents} documents at http://{}/retrieve\n",
        server.address()
    ))?;
    tell_cut_off(server.serve(stopped(signals)).await);
    Ok(ExitCode::SUCCESS)
}

/// Ready when the server is told to stop.
async fn stopped(mut signals: Signals) {
    signals.next().await;
    // Nobody may be there to read it.
    let _ = writeln!(std::io::stderr(), "stopping; answers under way are finished");
}

fn tell_cut_off(connections: usize) {
    if connections > 0 {
        eprintln!("warning: {connections} connections were cut off when the time was over");
    }
}
