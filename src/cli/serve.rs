//! `spar serve` and `spar audit`.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{DecoderArguments, DrawRuleArguments};

/// Arguments of `spar serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// What is served.
    #[command(subcommand)]
    pub(crate) command: ServeCommand,
}

/// What can be served.
#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Serve a checkpoint with OpenAI's interface, until Ctrl-C.
    Policy(ServePolicyArguments),
    /// Serve a corpus with Search-R1's interface (`POST /retrieve`), until Ctrl-C.
    Retrieval(ServeRetrievalArguments),
}

/// Arguments of `spar serve retrieval`.
#[derive(Debug, Args)]
pub(crate) struct ServeRetrievalArguments {
    /// A file with a document on every line, `id` with `contents`, or with `title` and `text`, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) corpus: PathBuf,
    /// Folder in which indexes of larger files are kept; left out, spar/search in the user's folder of caches.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) index_folder: Option<PathBuf>,
    /// Address to listen at; 0.0.0.0 is all addresses of this machine.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen at; 0 lets the system choose one.
    #[arg(long, default_value_t = 8000)]
    pub(crate) port: u16,
    /// Documents for a query of which no number is asked.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "DOCUMENTS")]
    pub(crate) topk: u16,
    /// Queries that one request may have.
    #[arg(long, default_value = "512", value_name = "QUERIES")]
    pub(crate) max_queries: NonZeroUsize,
    /// Bytes that a request may have.
    #[arg(long, default_value = "4MiB", value_name = "BYTES", value_parser = bytes)]
    pub(crate) max_body: usize,
    /// Connections at the same time.
    #[arg(long, default_value = "1024", value_name = "CONNECTIONS")]
    pub(crate) max_connections: NonZeroUsize,
    /// Seconds that an answer may take.
    #[arg(long, default_value = "60", value_name = "SECONDS")]
    pub(crate) answer_timeout: NonZeroU64,
    /// Seconds that answers under way may take when the server is told to stop.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub(crate) grace: u64,
}

/// Arguments of `spar serve policy`.
#[derive(Debug, Args)]
pub(crate) struct ServePolicyArguments {
    /// A checkpoint, a run (its best checkpoint), a folder of a Hugging Face model, or a GGUF file.
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) checkpoint: PathBuf,
    /// Address to listen at; 0.0.0.0 is all addresses of this machine.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen at; 0 lets the system choose one.
    #[arg(long, default_value_t = 8000)]
    pub(crate) port: u16,
    /// Name of the model; left out, that of its folder.
    #[arg(long, value_name = "NAME")]
    pub(crate) served_model_name: Option<String>,
    /// The key that clients have to show.
    #[arg(long, env = "SPAR_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
    /// Tokens that prompt and answer may have together; left out, what the model can read.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_model_len: Option<NonZeroUsize>,
    /// Requests that may wait; further ones are told to come back.
    #[arg(long, default_value = "1024", value_name = "REQUESTS")]
    pub(crate) max_queue: NonZeroUsize,
    /// Answers under way per thread.
    #[arg(long, default_value = "256", value_name = "ANSWERS")]
    pub(crate) max_active: NonZeroUsize,
    /// Memory for keys and values, prefixes included, such as 512MiB or 8GiB; left out, without
    /// bound.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) kv_memory: Option<usize>,
    /// Memory for keys and values of prefixes.
    #[arg(long, default_value = "256MiB", value_name = "BYTES", value_parser = bytes)]
    pub(crate) prefix_memory: usize,
    /// Tokens of prompts that a step reads, so that long prompts do not hold up other answers.
    #[arg(long, default_value = "512", value_name = "TOKENS")]
    pub(crate) prefill_tokens: NonZeroUsize,
    /// Bytes that a request may have.
    #[arg(long, default_value = "16MiB", value_name = "BYTES", value_parser = bytes)]
    pub(crate) max_body: usize,
    /// Connections at the same time.
    #[arg(long, default_value = "1024", value_name = "CONNECTIONS")]
    pub(crate) max_connections: NonZeroUsize,
    /// Seconds that an answer may take.
    #[arg(long, default_value = "600", value_name = "SECONDS")]
    pub(crate) answer_timeout: NonZeroU64,
    /// Seconds that answers under way may take when the server is told to stop.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub(crate) grace: u64,
    /// Folder that `POST /weights` may load checkpoints below; left out, it loads none.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) weights_root: Option<PathBuf>,
    /// How tool calls are written; left out, as the model's chat template has them.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) tool_format: Option<ToolFormat>,
    #[command(flatten)]
    pub(crate) drawing: DrawRuleArguments,
    #[command(flatten)]
    pub(crate) decoder: DecoderArguments,
}

/// How a model writes tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolFormat {
    /// Between <tool_call> and </tool_call>, as Hermes and Qwen.
    Hermes,
    /// The answer as a JSON object, as Llama 3.
    Llama3,
}

/// Arguments of `spar merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// A checkpoint, a run (its best checkpoint), a folder with a model or an adapter, a GGUF file, or a
    /// model's name on the hub.
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) checkpoint: PathBuf,
    /// The folder to write, which must not exist.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Type of the stored weights.
    #[arg(long, default_value = "f32")]
    pub(crate) number_type: StoredNumbers,
}

/// How weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StoredNumbers {
    /// Single precision, which loses nothing.
    F32,
    /// bfloat16.
    Bf16,
    /// Half precision.
    F16,
}

/// Arguments of `spar audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// A checkpoint, a run (its best checkpoint), a folder of a Hugging Face model, or a GGUF file.
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) checkpoint: PathBuf,
    /// Tokens to sample.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) tokens: usize,
    /// Divides the logits.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) temperature: f32,
    /// How many of the most probable tokens can be drawn; left out, all.
    #[arg(long)]
    pub(crate) top_k: Option<usize>,
    /// Probability of the tokens that can be drawn.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) top_p: f32,
    /// Share of the most probable token's probability below which a token cannot be drawn.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) min_p: f32,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) drawing: DrawRuleArguments,
    #[command(flatten)]
    pub(crate) decoder: DecoderArguments,
}

/// A number of bytes, with a unit or without.
fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: usize = match &text[digits.len()..] {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        other => return Err(format!("unit `{other}`, known are B, KiB, MiB, GiB")),
    };
    let number: usize = digits.trim().parse().map_err(|_| format!("`{digits}` is no number"))?;
    number.checked_mul(unit).ok_or_else(|| "more than there can be".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes("512MiB"), Ok(512 << 20));
        assert_eq!(bytes("8G"), Ok(8 << 30));
        assert_eq!(bytes("77"), Ok(77));
        for wrong in ["", "x", "1.5G", "9TB", "-1", "99999999999999999999"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
