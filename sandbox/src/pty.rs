//! Processes on a pseudo-terminal.

#[cfg(any(feature = "docker", feature = "local", test))]
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(any(feature = "docker", feature = "local", test))]
use crate::ExecRequest;
use crate::{ByteStream, ProcessHandle, SandboxError};

/// What programs find as their kind of terminal where nobody says another: what every terminal understands.
#[cfg(any(feature = "docker", feature = "local", test))]
const TERM: &str = "xterm";

/// Characters that a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PtySize {
    /// Lines. Default 24.
    pub rows: u16,
    /// Characters of a line. Default 80.
    pub columns: u16,
}

impl Default for PtySize {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// A process that runs in a sandbox on a pseudo-terminal of its own, which is its standard input, output
/// and error.
pub struct PtyProcess {
    /// The terminal: what is written to it is typed, and what is read from it is shown, what was typed
    /// included unless the process turns that off. Control characters are keys: 3 is Ctrl-C, 4 the end
    /// of the input. Its end comes once the process has ended.
    ///
    /// Shutting it down or dropping it hangs it up: the process gets SIGHUP, and what ignores that goes on
    /// without a terminal. What was typed and is not taken within seconds is lost then.
    pub terminal: ByteStream,
    /// Changes its size.
    pub window: PtyWindow,
    /// The end of the process.
    pub handle: ProcessHandle,
}

impl fmt::Debug for PtyProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PtyProcess").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// What changes the size of a terminal.
pub struct PtyWindow {
    resize: Box<dyn Fn(PtySize) -> Result<(), SandboxError> + Send + Sync>,
}

impl PtyWindow {
    /// One whose changes `resize` makes.
    pub fn new(
        resize: impl Fn(PtySize) -> Result<(), SandboxError> + Send + Sync + 'static,
    ) -> Self {
        Self { resize: Box::new(resize) }
    }

    /// Gives the terminal another size, of which the processes on it are told by SIGWINCH. Does nothing
    /// where the terminal is gone.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    pub fn resize(&self, size: PtySize) -> Result<(), SandboxError> {
        (self.resize)(size)
    }
}

impl fmt::Debug for PtyWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PtyWindow").finish_non_exhaustive()
    }
}

/// `request` with a kind of terminal, unless it or `env`, that of its sandbox, names one.
#[cfg(any(feature = "docker", feature = "local", test))]
pub(crate) fn with_term(request: &ExecRequest, env: &BTreeMap<String, String>) -> ExecRequest {
    let mut request = request.clone();
    if !env.contains_key("TERM") {
        request.env.entry("TERM".into()).or_insert_with(|| TERM.into());
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_terminal_is_the_callers_before_the_sandboxs_before_ours() {
        let term = |request: &ExecRequest, env: &[(&str, &str)]| {
            let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            with_term(request, &env).env.get("TERM").cloned()
        };
        let mut request = ExecRequest::new(["top"]);
        assert_eq!(term(&request, &[]).as_deref(), Some("xterm"));
        assert_eq!(term(&request, &[("TERM", "dumb")]), None);
        request.env.insert("TERM".into(), "vt100".into());
        assert_eq!(term(&request, &[("TERM", "dumb")]).as_deref(), Some("vt100"));
    }
}
