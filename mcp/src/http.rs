//! Servers that are reached over HTTP.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::McpLimits;

/// A server that is reached over streamable HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpHttpServer {
    /// Its URL, `http` or `https`.
    pub url: String,
    /// What is sent with every request beside what the protocol has, by the header's name.
    pub headers: BTreeMap<String, String>,
}

impl McpHttpServer {
    /// The transport; an error says what is wrong with the URL or a header.
    pub(crate) fn transport(
        &self,
        limits: &McpLimits,
    ) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
        let url: reqwest::Url =
            self.url.parse().map_err(|error| format!("`{}` is no URL: {error}", self.url))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(format!("`{}` is no URL of http or https", self.url));
        }
        let mut headers = HashMap::new();
        for (name, value) in &self.headers {
            let parsed: Result<HeaderName, _> = name.parse();
            let name = parsed.map_err(|_| format!("`{name}` is no name of a header"))?;
            // What the value is may be a secret.
            let parsed = HeaderValue::from_str(value);
            let mut value = parsed.map_err(|_| format!("the value of header `{name}` is none"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // The process may have chosen another provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .connect_timeout(limits.start.min(Duration::from_secs(30)))
            // Headers may be secrets, and are for this server alone.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("spar/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.to_string())?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .custom_headers(headers)
            .max_sse_event_size(limits.message_bytes)
            .max_json_response_size(limits.message_bytes)
            .max_error_response_size(4096)
            // A session that has ended has taken the episode's state along.
            .reinit_on_expired_session(false);
        config.retry_config = Arc::new(FewRetries);
        Ok(StreamableHttpClientTransport::with_client(client, config))
    }
}

/// How often a stream of events that broke off is taken up again.
#[derive(Debug)]
struct FewRetries;

impl SseRetryPolicy for FewRetries {
    fn retry(&self, times: usize) -> Option<Duration> {
        (times < 3).then_some(Duration::from_secs(1))
    }
}
