//! A corpus behind Search-R1's HTTP interface.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use spar_search::wire::{RetrieveRequest, answer};
use spar_search::{Hit, MAX_RESULTS, SearchIndex};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::ServeError;
use crate::api_error::ApiError;
use crate::body::{self, AnswerBody};
use crate::connections::{self, ConnectionLimits};

/// Bytes of documents that one answer may have: 64 MiB, each document counted with what is told of it beside its contents.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// How a retrieval server behaves.
#[derive(Debug, Clone)]
pub struct RetrievalServerConfig {
    /// Documents for a query of which no number is asked; 1 to 1000. Default 3.
    pub topk: usize,
    /// Queries that one request may have. Default 512.
    pub max_queries: usize,
    /// Bytes that a request may have. Default 4 MiB.
    pub max_body_bytes: usize,
    /// Connections at the same time; further ones wait to be accepted. Default 1024.
    pub max_connections: usize,
    /// How long a request's head may take to arrive, and a connection may idle. Default 30 s.
    pub head_timeout: Duration,
    /// How long a request's body may take to arrive. Default 60 s.
    pub body_timeout: Duration,
    /// How long a client may leave bytes unread. Default 60 s.
    pub write_timeout: Duration,
    /// How long an answer may take. Default 60 s.
    pub answer_timeout: Duration,
    /// How long answers under way may go on when the server is told to stop. Default 30 s.
    pub shutdown_grace: Duration,
}

impl Default for RetrievalServerConfig {
    fn default() -> Self {
        Self {
            topk: 3,
            max_queries: 512,
            max_body_bytes: 4 << 20,
            max_connections: 1024,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(30),
        }
    }
}

/// A corpus behind Search-R1's HTTP interface: `POST /retrieve`, and `GET /health`.
///
/// ```
/// use spar_search::{Document, SearchIndex};
/// use spar_serve::{RetrievalServer, RetrievalServerConfig};
///
/// let index = SearchIndex::in_memory(vec![Document::from_contents("0", "Graz\nA town.")])?;
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// runtime.block_on(async {
///     let config = RetrievalServerConfig::default();
///     let server = RetrievalServer::bind("127.0.0.1:0", index, config).await?;
///     println!("serving at http://{}/retrieve", server.address());
///     // Serves until the future is ready; here, at once.
///     server.serve(async {}).await;
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RetrievalServer {
    listener: TcpListener,
    address: SocketAddr,
    service: Arc<Retrieval>,
}

impl RetrievalServer {
    /// Listens at `address`; port 0 lets the system choose one.
    ///
    /// # Errors
    ///
    /// [`ServeError::Bind`] when the address cannot be listened at.
    pub async fn bind(
        address: &str,
        index: SearchIndex,
        config: RetrievalServerConfig,
    ) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Bind { address: address.to_owned(), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let apart = Arc::new(Semaphore::new(cores));
        Ok(Self { listener, address, service: Arc::new(Retrieval { index, config, apart }) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready, then finishes the answers under way, or cancels them when the
    /// grace is over. Returns how many connections were cut off.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> usize {
        connections::serve(self.listener, self.service, stop).await
    }
}

/// All that answers need.
struct Retrieval {
    index: SearchIndex,
    config: RetrievalServerConfig,
    /// Room for searches, on threads apart.
    apart: Arc<Semaphore>,
}

impl connections::Service for Retrieval {
    fn limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            max_connections: self.config.max_connections,
            head_timeout: self.config.head_timeout,
            write_timeout: self.config.write_timeout,
            shutdown_grace: self.config.shutdown_grace,
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<AnswerBody> {
        match self.route(request).await {
            Ok(told) => body::json(&told),
            Err(error) => body::error(&error),
        }
    }
}

impl Retrieval {
    async fn route(self: &Arc<Self>, request: Request<Incoming>) -> Result<Value, ApiError> {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        match (&method, path.as_str()) {
            (&Method::POST, "/retrieve") => self.retrieve(request).await,
            (&Method::GET | &Method::HEAD, "/health") => {
                Ok(json!({ "status": "ok", "documents": self.index.len() }))
            }
            (_, "/retrieve") => Err(ApiError::wrong_method(&path, "POST")),
            (_, "/health") => Err(ApiError::wrong_method(&path, "GET")),
            _ => Err(ApiError::unknown_path(method.as_str(), &path, "/retrieve, /health")),
        }
    }

    async fn retrieve(self: &Arc<Self>, request: Request<Incoming>) -> Result<Value, ApiError> {
        let (limit, patience) = (self.config.max_body_bytes, self.config.body_timeout);
        let bytes = body::read(request.into_body(), limit, patience).await?;
        let asked: RetrieveRequest = serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        self.check(&asked)?;
        let search = async {
            let permit = self.apart.clone().acquire_owned().await;
            let permit = permit.map_err(|_| ApiError::closed())?;
            let service = Arc::clone(self);
            let searched = tokio::task::spawn_blocking(move || {
                let told = service.search(&asked);
                drop(permit);
                told
            });
            searched.await.map_err(|_| ApiError::closed())?
        };
        let late = |_| {
            let message =
                format!("the answer took longer than {} s", self.config.answer_timeout.as_secs());
            ApiError::timeout(StatusCode::GATEWAY_TIMEOUT, message)
        };
        tokio::time::timeout(self.config.answer_timeout, search).await.map_err(late)?
    }

    fn check(&self, asked: &RetrieveRequest) -> Result<(), ApiError> {
        let most = self.config.max_queries;
        if asked.queries.len() > most {
            let message = format!("{} queries, allowed are {most}", asked.queries.len());
            return Err(ApiError::invalid("queries", message));
        }
        if asked.topk.is_some_and(|topk| topk > MAX_RESULTS) {
            return Err(ApiError::invalid("topk", format!("allowed are up to {MAX_RESULTS}")));
        }
        Ok(())
    }

    fn search(&self, asked: &RetrieveRequest) -> Result<Value, ApiError> {
        let topk = asked.topk.filter(|topk| *topk > 0).unwrap_or(self.config.topk);
        let mut bytes = 0_usize;
        let mut found = Vec::with_capacity(asked.queries.len());
        for (place, query) in asked.queries.iter().enumerate() {
            let hits =
                self.index.search(query, topk).map_err(|error| match error.is_about_query() {
                    true => {
                        ApiError::invalid(format!("queries[{place}]"), format!("could not {error}"))
                    }
                    false => ApiError::broken(format!("could not {error}")),
                })?;
            // Contents, and title and text apart, are told.
            let of_hit = |hit: &Hit| 256 + 2 * (hit.document.title.len() + hit.document.text.len());
            bytes = hits.iter().map(of_hit).fold(bytes, usize::saturating_add);
            check_answer(bytes, MAX_ANSWER_BYTES)?;
            found.push(hits);
        }
        Ok(answer(&found, asked.return_scores))
    }
}

/// Refuses an answer that would be too large to be put together.
fn check_answer(bytes: usize, most: usize) -> Result<(), ApiError> {
    if bytes <= most {
        return Ok(());
    }
    let message = format!(
        "the answer would have more than {most} bytes: ask for fewer documents, or with fewer queries at a time"
    );
    Err(ApiError::invalid("topk", message))
}
