//! What can go wrong with a browser.

use std::sync::Arc;

/// The browser, or a tab of it, could not do its part; what a policy did is not to blame, unless it made a page that
/// cannot be shown.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// There is no browser.
    #[error("find a browser: {tried}")]
    NoBrowser {
        /// What was looked for, and where.
        tried: String,
    },
    /// The browser did not come up.
    #[error("start browser `{program}`: {detail}")]
    Start {
        /// The program.
        program: String,
        /// What was in the way.
        detail: String,
    },
    /// The browser's process ended, or its connection broke.
    #[error("use the browser: it ended{last_words}")]
    Ended {
        /// The end of what it wrote to its standard error, behind `: `; may be empty.
        last_words: Arc<str>,
    },
    /// The renderer of a tab crashed.
    #[error("use a tab: it crashed")]
    Crashed,
    /// A tab was closed while it was used.
    #[error("use a tab: it is closed")]
    Closed,
    /// The browser or a page did not do something in time.
    #[error("{doing} within {millis} ms")]
    Late {
        /// What it was to do.
        doing: &'static str,
        /// The time it had, in milliseconds.
        millis: u64,
    },
    /// The browser refused a command.
    #[error("have the browser do `{method}`: {message}")]
    Refused {
        /// The command of the DevTools protocol.
        method: &'static str,
        /// What it said.
        message: String,
    },
    /// An answer is larger than any that is read.
    #[error("read the answer to `{method}`: it has more than {limit} bytes")]
    TooLarge {
        /// The command of the DevTools protocol.
        method: &'static str,
        /// The most bytes that are read.
        limit: usize,
    },
    /// An answer does not have the form that the protocol gives it.
    #[error("understand the answer to `{method}`: {detail}")]
    Foreign {
        /// The command of the DevTools protocol.
        method: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// A script of ours raised in a page.
    #[error("run a script in the page: {message}")]
    Script {
        /// What it raised.
        message: String,
    },
    /// More is under way in a browser than is kept track of.
    #[error("keep track of a browser: {what}")]
    Flooded {
        /// What there is too much of.
        what: &'static str,
    },
    /// The pages of a benchmark cannot be had.
    #[error("read the pages of {benchmark}: {detail}")]
    Pages {
        /// The benchmark.
        benchmark: &'static str,
        /// Why not.
        detail: String,
    },
    /// All windows of the browser are taken.
    #[error("get a window of the browser within {seconds} s")]
    NoWindow {
        /// How long it was waited for one.
        seconds: u64,
    },
}

impl WebError {
    /// The one thing to do about it, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoBrowser { .. } => Some(
                "install Chromium (on Debian: apt-get install -y chromium), or name it in SPAR_CHROMIUM",
            ),
            Self::Pages { benchmark: "MiniWoB++", .. } => Some(
                "run scripts/get_miniwob.sh, or name the package's folder or wheel in SPAR_MINIWOB",
            ),
            _ => None,
        }
    }

    /// Whether what it came at can be used no longer, so that a fresh window is needed.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::Refused { .. } | Self::Script { .. } | Self::TooLarge { .. })
    }
}
