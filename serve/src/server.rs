//! The server of a policy.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::net::TcpListener;

use crate::body::AnswerBody;
use crate::connections::{self, ConnectionLimits};
use crate::routes::Service;
use crate::{ServeError, ServedModel, ServerConfig};

/// A policy behind OpenAI's HTTP interface.
pub struct PolicyServer {
    listener: TcpListener,
    address: SocketAddr,
    service: Arc<Service>,
}

impl PolicyServer {
    /// Listens at `address`; port 0 lets the system choose one.
    ///
    /// # Errors
    ///
    /// When the address cannot be listened at, or the root of weights is no folder.
    pub async fn bind(
        address: &str,
        model: ServedModel,
        config: ServerConfig,
    ) -> Result<Self, ServeError> {
        let service = Arc::new(Service::new(model, config)?);
        let failed = |source| ServeError::Bind { address: address.to_owned(), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, service })
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

impl connections::Service for Service {
    fn limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            max_connections: self.config.max_connections,
            head_timeout: self.config.head_timeout,
            write_timeout: self.config.write_timeout,
            shutdown_grace: self.config.shutdown_grace,
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<AnswerBody> {
        Self::answer(&self, request).await
    }
}
