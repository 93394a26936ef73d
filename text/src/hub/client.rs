//! Asking the hub.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, ETAG, HeaderMap, LOCATION};
use reqwest::{Response, Url};
use sha2::{Digest, Sha256};

use super::cache::{Cache, is_inside};
use super::{DownloadProgress, Hub, HubError, ModelName};

/// How long nothing may arrive.
const SILENCE: Duration = Duration::from_secs(30);
/// Answers to questions are shorter.
const LONGEST_ANSWER: usize = 16 << 20;
/// Redirections followed.
const MOST_HOPS: usize = 8;

/// Asks one hub.
pub(super) struct Client<'a> {
    hub: &'a Hub,
    client: reqwest::Client,
    /// Whether the cache has a version of the model, for advice.
    is_cached: bool,
}

impl<'a> Client<'a> {
    pub(super) fn new(hub: &'a Hub, is_cached: bool) -> Result<Self, HubError> {
        // An error means that there is a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("spar/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(SILENCE)
            .read_timeout(SILENCE)
            // The first answer of several tells what the contents are, and only the hub itself is
            // to see the token.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|source| unreachable(hub, &hub.endpoint, is_cached, source))?;
        Ok(Self { hub, client, is_cached })
    }

    /// The commit of a revision and its files.
    pub(super) async fn files(&self, name: &ModelName) -> Result<(String, Vec<String>), HubError> {
        let (endpoint, revision) = (&self.hub.endpoint, name.revision().replace('/', "%2F"));
        let url = format!("{endpoint}/api/models/{}/revision/{revision}", name.repository());
        let (_, mut response) = self.open(&url).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.unreachable(&url, e))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > LONGEST_ANSWER {
                return Err(answer(&url, "it is too long"));
            }
        }
        let file: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|error| answer(&url, &error.to_string()))?;
        let commit = file["sha"]
            .as_str()
            .filter(|sha| !sha.is_empty() && sha.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let commit = commit.ok_or_else(|| answer(&url, "it has no commit `sha`"))?;
        let siblings = file["siblings"].as_array();
        let siblings = siblings.ok_or_else(|| answer(&url, "it has no `siblings`"))?;
        let names = siblings.iter().filter_map(|file| file["rfilename"].as_str());
        Ok((commit.to_owned(), names.map(str::to_owned).collect()))
    }

    /// Brings a file of a commit into the cache, where it is not there yet.
    pub(super) async fn get(
        &self,
        name: &ModelName,
        commit: &str,
        file: &str,
        cache: &Cache,
        progress: &mut (dyn FnMut(DownloadProgress<'_>) + Send),
    ) -> Result<(), HubError> {
        let url = format!("{}/{}/resolve/{commit}/{file}", self.hub.endpoint, name.repository());
        if !is_inside(Path::new(file)) {
            return Err(answer(&url, "the name of the file leads out of its folder"));
        }
        if cache.path(commit, file).exists() {
            return Ok(());
        }
        let (first, response) = self.open(&url).await?;
        let (etag, total) = identity(&first, &response).ok_or_else(|| answer(&url, "no ETag"))?;
        let blob = cache.blob(&etag);
        if !blob.exists() {
            self.download(&url, file, response, &etag, total, &blob, progress).await?;
        }
        cache.link(commit, file, &etag)
    }

    #[expect(clippy::too_many_arguments, reason = "what a download is made of")]
    async fn download(
        &self,
        url: &str,
        file: &str,
        mut response: Response,
        etag: &str,
        total: Option<u64>,
        blob: &Path,
        progress: &mut (dyn FnMut(DownloadProgress<'_>) + Send),
    ) -> Result<(), HubError> {
        let partial = blob.with_extension(format!("{}.incomplete", std::process::id()));
        let io = |source| HubError::Io { path: partial.clone(), source };
        let broken = |detail: String| HubError::Broken { url: url.to_owned(), detail };
        let result = async {
            let mut target = File::create(&partial).map_err(io)?;
            let (mut received, mut hash) = (0, Sha256::new());
            progress(DownloadProgress { file, received, total });
            while let Some(chunk) = response.chunk().await.map_err(|e| self.unreachable(url, e))? {
                target.write_all(&chunk).map_err(io)?;
                hash.update(&chunk);
                received += chunk.len() as u64;
                progress(DownloadProgress { file, received, total });
            }
            if let Some(total) = total.filter(|total| *total != received) {
                return Err(broken(format!("{received} of {total} bytes arrived")));
            }
            // Large files go by their hash, small ones by git's.
            let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            if etag.len() == found.len() && etag != found {
                return Err(broken(format!("its SHA-256 is {found}, not {etag}")));
            }
            target.sync_all().map_err(io)?;
            std::fs::rename(&partial, blob).map_err(io)
        }
        .await;
        if result.is_err() {
            // Best effort: the error that is reported is the one that matters.
            let _ = std::fs::remove_file(&partial);
        }
        result
    }

    /// The headers of the first answer, and the last one, whose body is what was asked for.
    async fn open(&self, url: &str) -> Result<(HeaderMap, Response), HubError> {
        let wrong = |detail: &str| answer(url, detail);
        let start = Url::parse(url).map_err(|error| HubError::Variable {
            variable: "HF_ENDPOINT",
            detail: format!("`{url}`: {error}"),
        })?;
        let mut place = start.clone();
        let mut first: Option<HeaderMap> = None;
        for _ in 0..MOST_HOPS {
            let mut request = self.client.get(place.clone());
            let is_hub = place.origin() == start.origin();
            if let Some(token) = self.hub.token.as_ref().filter(|_| is_hub) {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            let response = request.send().await.map_err(|e| self.unreachable(url, e))?;
            let status = response.status();
            if status.is_redirection() {
                let location = response.headers().get(LOCATION);
                let location = location.and_then(|location| location.to_str().ok());
                let next = location.and_then(|location| place.join(location).ok());
                let next = next.ok_or_else(|| wrong("it leads nowhere"))?;
                if place.scheme() == "https" && next.scheme() != "https" {
                    return Err(wrong("it leads from https to what is not"));
                }
                place = next;
                // A renamed model's old name leads to the new one, at the hub itself; what tells
                // about contents stands where the hub leads elsewhere.
                let has_etag = response.headers().contains_key("x-linked-etag");
                if first.is_none() && has_etag {
                    first = Some(response.headers().clone());
                }
                continue;
            }
            if !status.is_success() {
                return Err(HubError::Refused {
                    url: url.to_owned(),
                    status: status.as_u16(),
                    has_token: self.hub.token.is_some(),
                });
            }
            let first = first.unwrap_or_else(|| response.headers().clone());
            return Ok((first, response));
        }
        Err(wrong("it leads on and on"))
    }

    fn unreachable(&self, url: &str, source: reqwest::Error) -> HubError {
        unreachable(self.hub, url, self.is_cached, source)
    }
}

fn unreachable(hub: &Hub, url: &str, is_cached: bool, source: reqwest::Error) -> HubError {
    // Where a download goes in the end may hold a signature.
    let source = source.without_url();
    HubError::Unreachable { url: url.to_owned(), is_cached, cache: hub.cache.clone(), source }
}

fn answer(url: &str, detail: &str) -> HubError {
    HubError::Answer { url: url.to_owned(), detail: detail.to_owned() }
}

/// What tells contents apart, and their bytes.
fn identity(first: &HeaderMap, last: &Response) -> Option<(String, Option<u64>)> {
    let text = |headers: &HeaderMap, name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let etag = text(first, "x-linked-etag").or_else(|| text(first, ETAG.as_str()))?;
    let etag = etag.trim_start_matches("W/").trim_matches('"').to_owned();
    if etag.is_empty() || !etag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return None;
    }
    let size =
        text(first, "x-linked-size").or_else(|| text(last.headers(), CONTENT_LENGTH.as_str()));
    // Where the answer was packed for the way, its length is another.
    let is_packed = last.headers().contains_key("content-encoding");
    Some((etag, size.filter(|_| !is_packed).and_then(|size| size.parse().ok())))
}
