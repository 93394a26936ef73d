//! What can keep a server from starting.

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address could not be listened at.
    #[error("listen at {address}")]
    Bind {
        /// The address.
        address: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The engines could not be started.
    #[error("start the engines")]
    Engines(#[source] std::io::Error),
    /// The folder that checkpoints may be loaded below cannot be used.
    #[error("use `{}` as the root of weights", path.display())]
    WeightsRoot {
        /// The folder.
        path: std::path::PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}
