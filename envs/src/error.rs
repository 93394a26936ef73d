//! What can go wrong with environments.

use std::fmt;
use std::sync::Arc;

use spar_core::Boundary;
use spar_core::registry::RowError;
use spar_mcp::McpError;
use spar_ors::OrsError;
use spar_sandbox::SandboxError;
use spar_search::{RetrieverError, SearchError};
use spar_tasks::GraderError;
use spar_web::WebError;

use crate::household::HouseholdError;
use crate::process::ProgramError;

/// The environment could not do its part; the action is not to blame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// No environment has this name.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A task's parameters are not this environment's.
    #[error("understand the parameters of task `{task}` for environment `{environment}`: {detail}")]
    Parameters {
        /// The task.
        task: String,
        /// The environment.
        environment: &'static str,
        /// What is wrong with them.
        detail: String,
    },
    /// A household game cannot be used.
    #[error("open a household game")]
    Household(#[from] HouseholdError),
    /// Its episodes need sandboxes, and nobody has said where to take them from.
    #[error(
        "open environment `{environment}`: its episodes need sandboxes, and no backend was named"
    )]
    NoSandboxes {
        /// The environment.
        environment: &'static str,
    },
    /// Its sandbox could not do its part.
    #[error("{phase}")]
    Sandbox {
        /// When.
        phase: SandboxPhase,
        /// What the sandbox reported.
        #[source]
        source: SandboxError,
    },
    /// Its program did something that it should not, or not what it should.
    #[error("have a program {doing}")]
    Program {
        /// What it was to do.
        doing: &'static str,
        /// What it did, and its last words.
        #[source]
        source: Arc<ProgramError>,
    },
    /// All programs of its kind are taken, and there may be no more of them.
    #[error("get a place in a program within {seconds} s (`limits.programs`, `limits.wait_secs`)")]
    NoPlace {
        /// How long it was waited for one.
        seconds: u64,
    },
    /// A server of tools did something that it should not, or not what it should.
    #[error("use a server of tools")]
    Server(#[source] Box<McpError>),
    /// A server that gives tasks did something that it should not, or not what it should.
    #[error("use a server of tasks")]
    TaskServer(#[source] Box<OrsError>),
    /// A server of tools cannot be had as the task names it.
    #[error("use server `{server}` of tools: {detail}")]
    NoServer {
        /// What it is called.
        server: String,
        /// Why.
        detail: String,
    },
    /// What it would take to bring a second episode here must not be done.
    #[error("fork an episode in its course: {detail}")]
    NotForkable {
        /// Why.
        detail: String,
    },
    /// A grader could not judge an episode, or graders cannot be used as they are named.
    #[error("have an episode judged")]
    Grader(#[source] GraderError),
    /// It has no sandbox in which scripts of graders could run.
    #[error("run a script of a grader: environment `{environment}` plays in no sandbox")]
    NoScripts {
        /// The environment.
        environment: &'static str,
    },
    /// A corpus that its episodes search cannot be had.
    #[error("open the corpus of an episode")]
    Corpus(#[source] RetrieverError),
    /// What searches its corpus could not do its part.
    #[error("search the corpus of an episode")]
    Search(#[source] SearchError),
    /// Its browser could not do its part, or there is none, or nobody has the pages.
    #[error("use a browser")]
    Browser(#[from] WebError),
    /// The same thing twice came out differently, so that episodes cannot share a past.
    #[error("{doing}: something else was shown than the first time")]
    NotRepeatable {
        /// What was done again.
        doing: &'static str,
    },
    /// It did not answer in time.
    #[error("{doing} within {seconds} s")]
    Late {
        /// What it was to do.
        doing: &'static str,
        /// The time it had.
        seconds: u64,
    },
    /// A wrapper cannot be around this environment.
    #[error("put `{wrapper}` around environment `{environment}`: {detail}")]
    Wrapper {
        /// The wrapper.
        wrapper: &'static str,
        /// The environment.
        environment: &'static str,
        /// Why not.
        detail: String,
    },
    /// A toolset could not begin to work at its machine.
    #[error("begin with the tools of the scaffold: could not {reason}")]
    Toolset {
        /// Why.
        reason: String,
    },
    /// Called in an order that makes no sense, such as a step before the first reset.
    #[error("call `{call}` {when}")]
    Misused {
        /// The call.
        call: &'static str,
        /// When it came.
        when: &'static str,
    },
}

/// What a sandbox was to do for an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SandboxPhase {
    /// To be there.
    Create,
    /// To take in the task's files and run its set-up.
    SetUp,
    /// To carry out an action.
    Step,
    /// To run the verifier.
    Verify,
    /// To be forked.
    Fork,
    /// To be removed.
    Close,
}

impl fmt::Display for SandboxPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "get a sandbox for the task",
            Self::SetUp => "set up the task in its sandbox",
            Self::Step => "carry out a command in the sandbox",
            Self::Verify => "verify the task in its sandbox",
            Self::Fork => "fork the sandbox",
            Self::Close => "close the sandbox",
        })
    }
}

impl From<McpError> for EnvironmentError {
    fn from(error: McpError) -> Self {
        Self::Server(Box::new(error))
    }
}

impl From<OrsError> for EnvironmentError {
    fn from(error: OrsError) -> Self {
        Self::TaskServer(Box::new(error))
    }
}

impl From<GraderError> for EnvironmentError {
    /// What happened at the environment itself, while it did something for a grader, is its own error.
    fn from(error: GraderError) -> Self {
        match error {
            GraderError::Place(source) => match source.downcast::<Self>() {
                Ok(own) => *own,
                Err(source) => Self::Grader(GraderError::Place(source)),
            },
            error => Self::Grader(error),
        }
    }
}

impl EnvironmentError {
    /// Where an episode broke that ends with it.
    pub fn boundary(&self) -> Boundary {
        match self {
            Self::Sandbox { .. } => Boundary::Sandbox,
            Self::Grader(_) => Boundary::Grader,
            _ => Boundary::Environment,
        }
    }

    /// Whether no sandbox was to be had, because the backend is failing or too much is asked of it, no place in a program, or no
    /// window of a browser. No episode has begun then; later there may be one.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Sandbox { source: SandboxError::Saturated { .. }, .. }
                | Self::NoPlace { .. }
                | Self::Browser(WebError::NoWindow { .. })
        )
    }

    /// Whether no sandbox was made because of its backend, whatever was asked for. No episode has
    /// begun then; when the backend works again there may be one.
    pub fn is_backend_failure(&self) -> bool {
        matches!(
            self,
            Self::Sandbox { phase: SandboxPhase::Create, source } if source.is_backend_failure()
        )
    }
}
