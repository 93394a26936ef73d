//! A retrieval server, asked.

use std::time::Duration;

use reqwest::StatusCode;

use crate::wire::{RetrieveRequest, read_answer};
use crate::{Hit, SearchError};

/// How a retrieval server is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievalConfig {
    /// How long an answer may take, connecting included. Default 30 s.
    pub timeout: Duration,
    /// How often a request is sent at the most; at least 1. Default 4.
    pub attempts: u32,
    /// How long is waited before the second attempt; twice as long before each further one, up to 5 s. Default 200 ms.
    pub back_off: Duration,
    /// The most bytes of an answer. Default 16 MiB.
    pub max_answer_bytes: usize,
}

impl Default for RetrievalConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            attempts: 4,
            back_off: Duration::from_millis(200),
            max_answer_bytes: 16 << 20,
        }
    }
}

const MAX_BACK_OFF: Duration = Duration::from_secs(5);

/// A retrieval server behind Search-R1's interface. Clones share its connections.
#[derive(Debug, Clone)]
pub struct RetrievalClient {
    client: reqwest::Client,
    url: String,
    config: RetrievalConfig,
}

/// Why an attempt came to nothing.
struct Failure {
    detail: String,
    /// Whether another one may come to something.
    is_passing: bool,
}

impl RetrievalClient {
    /// Asks at an address such as `http://127.0.0.1:8000/retrieve`; without a path, `/retrieve` is meant.
    ///
    /// # Errors
    ///
    /// [`SearchError::Config`] tells all that is wrong with address and configuration.
    pub fn new(url: &str, config: RetrievalConfig) -> Result<Self, SearchError> {
        let mut problems = Vec::new();
        let parsed = match reqwest::Url::parse(url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Some(url),
            Ok(other) => {
                problems.push(format!(
                    "`{url}` begins with `{}:`, must be http or https",
                    other.scheme()
                ));
                None
            }
            Err(error) => {
                problems.push(format!("`{url}` is no address: {error}"));
                None
            }
        };
        if config.attempts == 0 {
            problems.push("attempts is 0, must be at least 1".to_owned());
        }
        if config.timeout.is_zero() {
            problems.push("timeout is 0, must be positive".to_owned());
        }
        // The process may have chosen another provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(config.timeout)
            .user_agent(concat!("spar/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| problems.push(format!("HTTP: {error}")));
        match (parsed, client) {
            (Some(mut url), Ok(client)) if problems.is_empty() => {
                if url.path() == "/" {
                    url.set_path("/retrieve");
                }
                Ok(Self { client, url: url.into(), config })
            }
            _ => Err(SearchError::Config { detail: problems.join("; ") }),
        }
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The `k` documents that the server finds best for a query.
    ///
    /// What may pass (no connection, no answer in time, too many requests, an error of the server) is tried again.
    ///
    /// # Errors
    ///
    /// [`SearchError::Server`] when no attempt came to an answer, or it was none.
    pub async fn search(&self, query: &str, k: usize) -> Result<Vec<Hit>, SearchError> {
        let request =
            RetrieveRequest { queries: vec![query.to_owned()], topk: Some(k), return_scores: true };
        let body = serde_json::to_vec(&request).expect("a request has only string keys");
        let mut wait = self.config.back_off;
        for attempt in 1.. {
            let failure = match self.ask(body.clone(), k).await {
                Ok(hits) => return Ok(hits),
                Err(failure) => failure,
            };
            if !failure.is_passing || attempt >= self.config.attempts {
                let (url, detail) = (self.url.clone(), failure.detail);
                return Err(SearchError::Server { url, attempts: attempt, detail });
            }
            tokio::time::sleep(wait.min(MAX_BACK_OFF)).await;
            wait = wait.saturating_mul(2);
        }
        unreachable!("attempts are counted")
    }

    async fn ask(&self, body: Vec<u8>, k: usize) -> Result<Vec<Hit>, Failure> {
        let passing = |error: reqwest::Error| Failure { detail: chain(&error), is_passing: true };
        let last = |detail: String| Failure { detail, is_passing: false };
        let request = self.client.post(&self.url).header("content-type", "application/json");
        let mut response = request.body(body).send().await.map_err(passing)?;
        let (status, mut bytes) = (response.status(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(passing)? {
            if bytes.len() + chunk.len() > self.config.max_answer_bytes {
                return Err(last(format!("more than {} bytes", self.config.max_answer_bytes)));
            }
            bytes.extend_from_slice(&chunk);
        }
        if !status.is_success() {
            let is_passing = status.is_server_error()
                || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
            let said: String = String::from_utf8_lossy(&bytes).chars().take(200).collect();
            return Err(Failure { detail: format!("status {status}: {said}"), is_passing });
        }
        let mut found = read_answer(&bytes, 1, k).map_err(|error| last(error.to_string()))?;
        Ok(found.swap_remove(0))
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that gives each answer to one request, the last one to all that follow.
    async fn server(answers: Vec<String>) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let place = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
                let mut request = vec![0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answers[place].as_bytes()).await;
            }
        });
        (url, asked)
    }

    fn http(status: &str, body: &str) -> String {
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    const GOOD: &str =
        r#"{"result": [[{"document": {"id": "1", "contents": "T\nx"}, "score": 2}]]}"#;

    async fn search(answers: Vec<String>) -> (Result<Vec<Hit>, SearchError>, usize) {
        let (url, asked) = server(answers).await;
        let config = RetrievalConfig {
            back_off: Duration::from_millis(1),
            timeout: Duration::from_millis(400),
            max_answer_bytes: 1000,
            ..RetrievalConfig::default()
        };
        let client = RetrievalClient::new(&url, config).unwrap();
        assert!(client.url().ends_with("/retrieve"));
        let found = client.search("a query", 3).await;
        (found, asked.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn what_may_pass_is_tried_again() {
        let busy = http("503 Service Unavailable", "busy");
        let (found, asked) = search(vec![String::new(), busy.clone(), http("200 OK", GOOD)]).await;
        assert_eq!((found.unwrap()[0].score, asked), (2.0, 3));
        let (found, asked) = search(vec![busy]).await;
        let told = found.unwrap_err();
        assert!(!told.is_about_query());
        assert!(told.to_string().contains("asked 4 times: status 503"), "{told}");
        assert_eq!(asked, 4);
    }

    #[tokio::test]
    async fn what_does_not_pass_is_told_at_once() {
        for (answer, part) in [
            (http("400 Bad Request", "no"), "status 400"),
            (http("200 OK", "<html>"), "no JSON"),
            (http("200 OK", &" ".repeat(2000)), "more than 1000 bytes"),
        ] {
            let (found, asked) = search(vec![answer]).await;
            let told = found.unwrap_err().to_string();
            assert!(told.contains(part) && told.contains("asked 1 times"), "{told}");
            assert_eq!(asked, 1);
        }
    }

    #[tokio::test]
    async fn nobody_there_and_no_answer_are_errors_in_time() {
        // Says nothing and hangs on to the connection.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/find", listener.local_addr().unwrap());
        let config = RetrievalConfig {
            timeout: Duration::from_millis(50),
            attempts: 2,
            back_off: Duration::from_millis(1),
            ..RetrievalConfig::default()
        };
        let client = RetrievalClient::new(&url, config).unwrap();
        assert!(client.url().ends_with("/find"));
        let told = client.search("q", 1).await.unwrap_err().to_string();
        assert!(told.contains("asked 2 times"), "{told}");
        let config = RetrievalConfig { attempts: 0, ..RetrievalConfig::default() };
        let told = RetrievalClient::new("ftp://a", config).unwrap_err().to_string();
        assert!(told.contains("must be http or https") && told.contains("attempts is 0"), "{told}");
    }
}
