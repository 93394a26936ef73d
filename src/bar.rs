//! A progress bar for commands that do one thing many times.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on standard error; invisible where that is no terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar of `len` parts.
    pub(crate) fn new(what: &str, len: usize) -> Self {
        let style =
            ProgressStyle::with_template("{prefix:>12} {bar:32} {pos}/{len} {eta:>4} {msg}")
                .expect("the template is fixed")
                .progress_chars("━╸─");
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(8)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(len as u64), target).with_style(style);
        bar.set_prefix(what.to_owned());
        Self(bar)
    }

    /// A bar that is never seen, for players who need the terminal themselves.
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// One more part is done.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }

    /// So many parts are done.
    pub(crate) fn set(&self, done: usize) {
        self.0.set_position(done as u64);
    }

    /// Words behind the bar.
    pub(crate) fn say(&self, text: String) {
        self.0.set_message(text);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
