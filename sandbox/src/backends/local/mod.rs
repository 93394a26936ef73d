//! Linux namespaces without a daemon.
