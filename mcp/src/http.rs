//! Servers that are reached over HTTP.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::McpLimits;

/// A server that is reached over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct McpHttpServer {
    /// Its URL, `http` or `https`.
    pub url: String,
    /// What is sent with every request beside what the protocol has, by the header's name.
    pub headers: BTreeMap<String, String>,
    /// The Unix socket that all connections are made to, whatever host the URL names. Absent: the URL's host.
    pub socket: Option<PathBuf>,
    /// What a name in the URL stands for: connections are made to these addresses, at the URL's port and through no proxy, and nothing is
    /// looked up. Absent: what this machine takes it for.
    pub addresses: Option<Vec<SocketAddr>>,
}

impl McpHttpServer {
    /// The transport; an error says what is wrong with the URL or a header.
    pub(crate) fn transport(
        &self,
        limits: &McpLimits,
    ) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
        let (url, client) = (self.parsed_url()?, self.client(limits)?);
        let headers: HashMap<_, _> = self.header_values()?.into_iter().collect();
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

    pub(crate) fn parsed_url(&self) -> Result<Url, String> {
        let url: Url =
            self.url.parse().map_err(|error| format!("`{}` is no URL: {error}", self.url))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(format!("`{}` is no URL of http or https", self.url));
        }
        Ok(url)
    }

    /// The headers of every request.
    pub(crate) fn header_map(&self) -> Result<HeaderMap, String> {
        Ok(self.header_values()?.into_iter().collect())
    }

    fn header_values(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            let parsed: Result<HeaderName, _> = name.parse();
            let name = parsed.map_err(|_| format!("`{name}` is no name of a header"))?;
            // What the value is may be a secret.
            let parsed = HeaderValue::from_str(value);
            let mut value = parsed.map_err(|_| format!("the value of header `{name}` is none"))?;
            value.set_sensitive(true);
            headers.push((name, value));
        }
        Ok(headers)
    }

    /// What requests are made by.
    pub(crate) fn client(&self, limits: &McpLimits) -> Result<reqwest::Client, String> {
        // The process may have chosen another provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .connect_timeout(limits.start.min(Duration::from_secs(30)))
            // Headers may be secrets, and are for this server alone.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("spar/", env!("CARGO_PKG_VERSION")));
        if let Some(socket) = &self.socket {
            // No proxy of this machine's environment stands in between.
            client = client.unix_socket(socket.as_path()).no_proxy();
        }
        if let Some(addresses) = &self.addresses {
            let url = self.parsed_url()?;
            let host = url.host_str().unwrap_or_default();
            client = client.resolve_to_addrs(host, addresses).no_proxy();
        }
        client.build().map_err(|error| error.to_string())
    }
}

/// The port of a URL of plain HTTP whose host is this machine itself, by an address or one of these names; absent for all
/// others.
pub fn loopback_port(url: &str, names: &[&str]) -> Option<u16> {
    let url: Url = url.parse().ok()?;
    let host = url.host_str()?;
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_own = address.is_ok_and(|it| it.is_loopback() || it.is_unspecified());
    let is_inside = url.scheme() == "http" && (is_own || names.contains(&host));
    url.port_or_known_default().filter(|_| is_inside)
}

/// `HOST:PORT` of a URL of HTTP or HTTPS; absent for all others.
pub fn authority(url: &str) -> Option<String> {
    let url: Url = url.parse().ok()?;
    let is_http = ["http", "https"].contains(&url.scheme());
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    is_http.then(|| format!("{host}:{port}"))
}

/// How often a stream of events that broke off is taken up again.
#[derive(Debug)]
struct FewRetries;

impl SseRetryPolicy for FewRetries {
    fn retry(&self, times: usize) -> Option<Duration> {
        (times < 3).then_some(Duration::from_secs(1))
    }
}
