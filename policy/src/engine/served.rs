//! A model that an engine serves.

use std::sync::Arc;

use spar_core::PolicyVersion;

use super::readers::Readers;
use crate::Adapter;

/// A model that an engine serves: the weights that all of its models share, with an adapter beside them or none.
#[derive(Debug)]
pub(super) struct Served {
    /// Told as the author of answers.
    pub(super) name: Arc<str>,
    /// Absent for the weights alone, or as they were published.
    pub(super) adapter: Option<Arc<Adapter>>,
    pub(super) version: PolicyVersion,
    /// Counts the publications that concern it.
    pub(super) epoch: u64,
    /// Those of its sequences that read for others as well.
    pub(super) readers: Readers,
}

impl Served {
    pub(super) fn new(
        name: Arc<str>,
        adapter: Option<Arc<Adapter>>,
        version: PolicyVersion,
    ) -> Self {
        Self { name, adapter, version, epoch: 0, readers: Readers::default() }
    }
}
