//! The context policies that have a name.

use std::sync::Arc;

use spar_core::registry::{Axis, Given, OptionSet, Row, RowError, Table};

use super::{Compact, ContextPolicy, ElideObservations, KeepAll, Window};
use super::{CompactOptions, ElideOptions, WindowOptions};

/// Makes a context policy from its options.
pub type OpenContextPolicy = fn(&Given<'_>) -> Result<Arc<dyn ContextPolicy>, RowError>;

/// A context policy that has a name.
pub type ContextPolicyRow = Row<OpenContextPolicy>;

pub(super) const AXIS: Axis = Axis {
    name: "contexts",
    what: "context policy",
    about: "What becomes of a conversation as it grows.",
};

const ROWS: &[ContextPolicyRow] = &[
    Row {
        name: "keep_all",
        about: "Everything stays in the prompt, until the context is full.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: |_| Ok(Arc::new(KeepAll)),
    },
    Row {
        name: "elide_observations",
        about: "Of older observations and results a line is left that tells how much they were.",
        source: "SWE-agent's `last_n_observations`, whose n is `keep_last`; heads, tails, media and thoughts: own",
        formula: "left out are observations keep_first to floor(n / polling) * polling - keep_last of n",
        options: OptionSet::of::<ElideOptions>(),
        open: |given| Ok(Arc::new(ElideObservations::new(given.read()?))),
    },
    Row {
        name: "window",
        about: "The oldest turns are dropped when a prompt becomes too long.",
        source: "own",
        formula: "beyond `tokens`, turns are dropped until about keep * tokens are left",
        options: OptionSet::of::<WindowOptions>(),
        open: |given| Ok(Arc::new(Window::new(given.read()?))),
    },
    Row {
        name: "compact",
        about: "The policy sums the conversation up when it becomes too long: a turn that is trained like any other.",
        source: "SUPO, arXiv 2510.06727; words of the prompt: own",
        formula: "beyond `tokens`: a turn that writes a summary; then task, summary and the last keep_turns turns",
        options: OptionSet::of::<CompactOptions>(),
        open: |given| {
            let options: CompactOptions = given.read()?;
            let refuse = |problems| RowError::Options {
                what: AXIS.what,
                name: "compact".to_owned(),
                problems,
            };
            Ok(Arc::new(Compact::new(&options).map_err(refuse)?))
        },
    },
];

static TABLE: Table<OpenContextPolicy> = Table::new(AXIS, ROWS);

/// All context policies that have a name; a new one is one file and one row here.
pub fn context_registry() -> &'static Table<OpenContextPolicy> {
    &TABLE
}
