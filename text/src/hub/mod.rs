//! Models by name from the Hugging Face hub, kept in the cache that its other tools share.
//!
//! The cache has a folder for each model:
//!
//! ```text
//! models--organisation--name/
//!   refs/main                      the commit that the branch is at
//!   blobs/<etag>                   contents
//!   snapshots/<commit>/config.json links to contents
//! ```
//!
//! Environment variables are those of the hub's own library: `HF_HUB_CACHE`, or `HF_HOME` with
//! `/hub`, or `XDG_CACHE_HOME` with `/huggingface/hub`, say where it is; `HF_HUB_OFFLINE` keeps from
//! asking the hub; `HF_ENDPOINT` is its address; `HF_TOKEN`, or the file that `HF_TOKEN_PATH` names
//! (`token` in `HF_HOME`), is sent to it and to no other host.

mod cache;
mod client;
mod name;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use self::cache::Cache;
use self::client::Client;
pub use self::name::ModelName;

/// A model could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The hub must not be asked, and the model is not in the cache.
    #[error(
        "find model `{name}` in the cache `{}` while HF_HUB_OFFLINE is set; unset it to download the \
         model, or set HF_HUB_CACHE to the cache that has it",
        cache.display()
    )]
    NotCached {
        /// The model.
        name: ModelName,
        /// The cache.
        cache: PathBuf,
    },
    /// The hub could not be reached.
    #[error(
        "reach the hub at {url}; {}",
        if *is_cached {
            "HF_HUB_OFFLINE=1 uses what is in the cache".to_owned()
        } else {
            format!("give a folder, or a cache that has the model by HF_HUB_CACHE (now `{}`)", cache.display())
        }
    )]
    Unreachable {
        /// What was asked for.
        url: String,
        /// Whether the cache has a version of the model.
        is_cached: bool,
        /// The cache.
        cache: PathBuf,
        /// What went wrong.
        #[source]
        source: reqwest::Error,
    },
    /// The hub refuses.
    #[error(
        "get {url}: the hub answers {status}; {}",
        match *status {
            404 => "there is no such model, revision or file",
            401 | 403 if *has_token => "the token of HF_TOKEN is not allowed to read it, or there is no such model",
            401 | 403 => "there is no such model, or it needs a token in HF_TOKEN",
            429 => "too many requests; try again later",
            _ => "try again later",
        }
    )]
    Refused {
        /// What was asked for.
        url: String,
        /// The status of the answer.
        status: u16,
        /// Whether a token was sent.
        has_token: bool,
    },
    /// The hub's answer makes no sense.
    #[error("read the answer of {url}: {detail}")]
    Answer {
        /// What was asked for.
        url: String,
        /// What is wrong with it.
        detail: String,
    },
    /// What arrived is not what was to arrive.
    #[error("download {url}: {detail}; try again")]
    Broken {
        /// What was asked for.
        url: String,
        /// The difference.
        detail: String,
    },
    /// The model has no weights of the kind that is read.
    #[error("use model `{name}`: it has no `*.safetensors`; other formats of weights are not read")]
    NoWeights {
        /// The model.
        name: ModelName,
    },
    /// The cache could not be read or written.
    #[error("access `{}` in the cache of models", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A variable of the environment has no value that can be used.
    #[error("use {variable}: {detail}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        detail: String,
    },
}

/// How far a download is.
#[derive(Debug, Clone, Copy)]
pub struct DownloadProgress<'a> {
    /// The file.
    pub file: &'a str,
    /// Bytes of it that have arrived.
    pub received: u64,
    /// Bytes it has, where the hub says so.
    pub total: Option<u64>,
}

/// Where models come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hub {
    /// The folder of all models.
    pub cache: PathBuf,
    /// Address of the hub, without a slash at the end. Default `https://huggingface.co`.
    pub endpoint: String,
    /// Whether only the cache is looked at.
    pub offline: bool,
    /// What tells the hub who asks.
    pub token: Option<String>,
}

impl Hub {
    /// As the environment says.
    ///
    /// # Errors
    ///
    /// When nothing tells where the cache is.
    pub fn from_environment() -> Result<Self, HubError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, HubError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let home = variable("HF_HOME").map(PathBuf::from).or_else(|| {
            let caches = variable("XDG_CACHE_HOME").map(PathBuf::from);
            let caches = caches.or_else(|| Some(Path::new(&variable("HOME")?).join(".cache")));
            Some(caches?.join("huggingface"))
        });
        let cache = variable("HF_HUB_CACHE").or_else(|| variable("HUGGINGFACE_HUB_CACHE"));
        let cache = cache.map(PathBuf::from).or_else(|| Some(home.as_ref()?.join("hub")));
        let cache = cache.ok_or(HubError::Variable {
            variable: "HF_HUB_CACHE",
            detail: "it has to name the cache, for there is no HOME".to_owned(),
        })?;
        let offline = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].iter().any(|name| {
            let value = variable(name).unwrap_or_default().to_uppercase();
            ["1", "ON", "YES", "TRUE"].contains(&&*value)
        });
        let endpoint = variable("HF_ENDPOINT");
        let endpoint = endpoint.unwrap_or_else(|| "https://huggingface.co".to_owned());
        let token = variable("HF_TOKEN").or_else(|| {
            let path = variable("HF_TOKEN_PATH").map(PathBuf::from);
            let path = path.or_else(|| Some(home?.join("token")))?;
            // Without such a file there is no token.
            std::fs::read_to_string(path).ok()
        });
        let token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        if let Some(token) = &token {
            // One that is too short to be looked for is no token of the hub.
            let _ = spar_core::redaction::keep("HF_TOKEN", token);
        }
        Ok(Self { cache, endpoint: endpoint.trim_end_matches('/').to_owned(), offline, token })
    }

    /// A folder with the model's configuration, tokenizer and weights, downloaded where the cache
    /// does not have them; what goes on is told to `progress`.
    ///
    /// # Errors
    ///
    /// When the model is neither in the cache nor to be had, or the cache cannot be written.
    pub async fn fetch(
        &self,
        name: &ModelName,
        progress: &mut (dyn FnMut(DownloadProgress<'_>) + Send),
    ) -> Result<PathBuf, HubError> {
        let cache = Cache::new(&self.cache, name);
        if self.offline {
            return cache.snapshot(name.revision()).ok_or_else(|| HubError::NotCached {
                name: name.clone(),
                cache: self.cache.clone(),
            });
        }
        let is_cached = cache.snapshot(name.revision()).is_some();
        let client = Client::new(self, is_cached)?;
        let (commit, files) = client.files(name).await?;
        let folder = cache.open(&commit)?;
        let mut wanted: Vec<String> =
            files.iter().filter(|file| is_companion(file)).cloned().collect();
        let has = |file: &str| files.iter().any(|name| name == file);
        let index = "model.safetensors.index.json";
        if has("model.safetensors") {
            wanted.push("model.safetensors".to_owned());
        } else if has(index) {
            client.get(name, &commit, index, &cache, progress).await?;
            wanted.extend(shards(&folder.join(index))?);
        } else {
            return Err(HubError::NoWeights { name: name.clone() });
        }
        for file in &wanted {
            client.get(name, &commit, file, &cache, progress).await?;
        }
        // Last, so that the branch only points to what is whole.
        cache.set_reference(name.revision(), &commit)?;
        Ok(folder)
    }
}

/// The folder that `path` means: itself where it exists or is no name of a model, else the model
/// of that name, from the cache or the hub that the environment names.
///
/// # Errors
///
/// As [`Hub::from_environment`] and [`Hub::fetch`].
pub async fn resolve(
    path: &Path,
    progress: &mut (dyn FnMut(DownloadProgress<'_>) + Send),
) -> Result<PathBuf, HubError> {
    let name = path.to_str().and_then(|text| text.parse::<ModelName>().ok());
    match name {
        Some(name) if !path.exists() => Hub::from_environment()?.fetch(&name, progress).await,
        _ => Ok(path.to_owned()),
    }
}

/// The folder of a model of that name in the cache that the environment names, if it is there; the
/// hub is not asked.
pub fn cached(name: &str) -> Option<PathBuf> {
    let name = name.parse::<ModelName>().ok()?;
    Cache::new(&Hub::from_environment().ok()?.cache, &name).snapshot(name.revision())
}

/// Whether a file belongs to a model besides its weights.
fn is_companion(file: &str) -> bool {
    const FILES: [&str; 8] = [
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "chat_template.jinja",
        "chat_template.json",
        "added_tokens.json",
    ];
    let is_template = || {
        let name = file.strip_prefix("additional_chat_templates/");
        name.is_some_and(|name| name.ends_with(".jinja") && !name.contains('/'))
    };
    FILES.contains(&file) || is_template()
}

/// The files that an index of weights names.
fn shards(index: &Path) -> Result<Vec<String>, HubError> {
    let wrong = |detail: &str| HubError::Answer {
        url: index.display().to_string(),
        detail: detail.to_owned(),
    };
    let bytes =
        std::fs::read(index).map_err(|source| HubError::Io { path: index.to_owned(), source })?;
    let file: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| wrong(&error.to_string()))?;
    let map = file["weight_map"].as_object().ok_or_else(|| wrong("it has no `weight_map`"))?;
    let mut names: Vec<String> =
        map.values().filter_map(|file| file.as_str()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}
