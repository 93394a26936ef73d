//! The rollout strategies that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, RowError, Table};

use super::{
    Branching, BranchingOptions, Continuations, ContinuationsOptions, CriticalTokens,
    CriticalTokensOptions, Demonstrated, DemonstratedOptions, GreedyBaseline, Hints, HintsOptions,
    Independent, Lookahead, LookaheadOptions, Paraphrases, ParaphrasesOptions, Partial,
    PartialOptions, Pruned, PrunedOptions, Rethink, RethinkOptions, Retry, RetryOptions,
    RolloutStrategy, RubricScaffold, RubricScaffoldOptions, ToolBranching, ToolBranchingOptions,
};

/// Which rollout strategy, with which options.
///
/// ```
/// use spar_agent::strategies::{StrategyConfig, open_strategy};
///
/// let config: StrategyConfig =
///     serde_json::from_str(r#"{ "kind": "branching", "trunks": 4 }"#)?;
/// assert_eq!(open_strategy(&config).unwrap().name(), "branching");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StrategyConfig {
    /// The strategy's name.
    pub kind: String,
    /// Its options; those left out have the defaults that it documents.
    #[serde(flatten)]
    pub options: Options,
}

impl Default for StrategyConfig {
    /// `independent`.
    fn default() -> Self {
        Self { kind: "independent".to_owned(), options: Options::new() }
    }
}

/// Makes a rollout strategy from its options.
pub type OpenStrategy = fn(&Given<'_>) -> Result<Box<dyn RolloutStrategy>, StrategyError>;

/// A rollout strategy that has a name.
pub type StrategyRow = Row<OpenStrategy>;

/// A rollout strategy cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// No strategy has the name, or it does not have the options.
    #[error(transparent)]
    Row(#[from] RowError),
}

impl StrategyError {
    /// Refuses a strategy where there are problems with it.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] when there are any.
    pub fn refuse(name: &str, problems: Vec<String>) -> Result<(), Self> {
        Ok(RowError::refuse(AXIS.what, name, problems)?)
    }
}

const AXIS: Axis = Axis {
    name: "strategies",
    what: "rollout strategy",
    about: "How the episodes of a group come about.",
};

const ROWS: &[StrategyRow] = &[
    Row {
        name: "independent",
        about: "Every trajectory is an episode of its own from the group's start.",
        source: "DeepSeekMath, arXiv 2402.03300",
        formula: "",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(Independent)),
    },
    Row {
        name: "branching",
        about: "Some episodes are trunks; the others fork off from them at a turn or a token.",
        source: "Tree-GRPO, arXiv 2509.21240, section 3.2; branch points are drawn over a group, not over each tree",
        formula: "P(turn) is uniform, or with `unsure` in proportion to -mean log pi of its tokens",
        options: OptionSet::of::<BranchingOptions>(),
        open: |given| Ok(Box::new(Branching::new(given.read()?)?)),
    },
    Row {
        name: "tool_branching",
        about: "Episodes fork behind calls of tools where the policy is less sure than it was to begin with.",
        source: "ARPO, arXiv 2507.19849, and its code's rule; reconstructed: entropies are surprises at what was sampled",
        formula: "fork iff clip(u - weight (H_t - H_0), 0, 1) <= probability, behind calls of tools",
        options: OptionSet::of::<ToolBranchingOptions>(),
        open: |given| Ok(Box::new(ToolBranching::new(given.read()?)?)),
    },
    Row {
        name: "critical_tokens",
        about: "Answers are sampled anew from the tokens that the policy was least sure of.",
        source: "CURE, arXiv 2508.11016, reconstructed from its abstract",
        formula: "the `candidates` tokens of the greatest -log pi in each trunk, drawn evenly",
        options: OptionSet::of::<CriticalTokensOptions>(),
        open: |given| Ok(Box::new(CriticalTokens::new(given.read()?)?)),
    },
    Row {
        name: "continuations",
        about: "All episodes of a group go on from one turn of an episode that is none of it.",
        source: "REFUEL, arXiv 2410.04612, section 3.2; TRPO's vine, arXiv 1502.05477, section 5.2; DR-PO, arXiv 2404.08495",
        formula: "h ~ U{0, .., T - 1}; y_i ~ pi(. | s_h)",
        options: OptionSet::of::<ContinuationsOptions>(),
        open: |given| Ok(Box::new(Continuations::new(given.read()?)?)),
    },
    Row {
        name: "demonstrated",
        about: "Some episodes of a group are demonstrations, which are trained with those of the policy.",
        source: "RL-PLUS, arXiv 2508.00222; LUFFY, arXiv 2504.14945; demonstrations are played anew where the papers have a dataset of them",
        formula: "",
        options: OptionSet::of::<DemonstratedOptions>(),
        open: |given| Ok(Box::new(Demonstrated::new(given.read()?)?)),
    },
    Row {
        name: "greedy_baseline",
        about: "One episode of a group takes the most probable tokens, and is what the others are compared with.",
        source: "ReMax, arXiv 2310.10505, algorithm 2",
        formula: "b = R(argmax pi)",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(GreedyBaseline)),
    },
    Row {
        name: "hints",
        about: "Groups that all fail are played again with ever more of the solution as a hint.",
        source: "GHPO, arXiv 2507.10628, and its code",
        formula: "hint = first 25%, 50%, 75% of the solution, while all returns are failures",
        options: OptionSet::of::<HintsOptions>(),
        open: |given| Ok(Box::new(Hints::new(given.read()?)?)),
    },
    Row {
        name: "retry",
        about: "Failed episodes are tried again behind guidance, from the start or from where they went wrong.",
        source: "Agent-RLVR, arXiv 2506.11425; Critique-GRPO, arXiv 2506.03106; R3L, arXiv 2601.03715; SCOPE, arXiv 2602.24110; pivots are found by rules",
        formula: "",
        options: OptionSet::of::<RetryOptions>(),
        open: |given| Ok(Box::new(Retry::new(given.read()?)?)),
    },
    Row {
        name: "rethink",
        about: "Some episodes go back to before the last turn of another one, and are told to think its answer over again.",
        source: "VL-Rethinker, arXiv 2504.08837, forced rethinking, reconstructed from its abstract and a summary; assumed: one message, and the share",
        formula: "",
        options: OptionSet::of::<RethinkOptions>(),
        open: |given| Ok(Box::new(Rethink::new(given.read()?)?)),
    },
    Row {
        name: "paraphrases",
        about: "The members of a group are shared out to a task and its paraphrases.",
        source: "PS-GRPO, arXiv 2510.04392, reconstructed from its abstract; deviation: a paraphrase is said behind the question",
        formula: "",
        options: OptionSet::of::<ParaphrasesOptions>(),
        open: |given| Ok(Box::new(Paraphrases::new(given.read()?)?)),
    },
    Row {
        name: "partial",
        about: "More groups are under way than are trained: those that are not complete in time are kept, and go on in the next iteration.",
        source: "APRIL, arXiv 2509.18521, reconstructed from its abstract; episodes are stopped at numbers of tokens, so that runs repeat",
        formula: "ceil(over N) groups under way, until N are complete; tokens keep the log pi that they were drawn with",
        options: OptionSet::of::<PartialOptions>(),
        open: |given| Ok(Box::new(Partial::new(given.read()?)?)),
    },
    Row {
        name: "pruned",
        about: "All episodes are paused, and those go on whose expected share of successes is nearest one half.",
        source: "ARRoL, arXiv 2603.24840, reconstructed from its abstract; its head is a logistic function of what the record tells",
        formula: "S = argmin_{|S| = keep} |mean_{i in S} p_i - 1/2|, p = sigmoid(b + w . x), among the least and most promising",
        options: OptionSet::of::<PrunedOptions>(),
        open: |given| Ok(Box::new(Pruned::new(given.read()?)?)),
    },
    Row {
        name: "rubric_scaffold",
        about: "The criteria of a task's rubric are said to the members of a group in different amounts, which fade.",
        source: "RuscaRL, arXiv 2508.16949; reconstructed: its numbers are not known, and where there is no rubric it is the solution",
        formula: "share(i, t) = (G - i) / (G - 1) sigmoid(steepness (half - t))",
        options: OptionSet::of::<RubricScaffoldOptions>(),
        open: |given| Ok(Box::new(RubricScaffold::new(given.read()?)?)),
    },
    Row {
        name: "lookahead",
        about: "Episodes fork at tokens that were in doubt, and forks that go on as their origin did are let go.",
        source: "LATR, its rules as its code has them; reconstructed: forks are played to their end before they are compared",
        formula: "keep a fork iff likeness(its next tokens, those of its origin) <= threshold",
        options: OptionSet::of::<LookaheadOptions>(),
        open: |given| Ok(Box::new(Lookahead::new(given.read()?)?)),
    },
];

static TABLE: Table<OpenStrategy> = Table::new(AXIS, ROWS);

/// All rollout strategies that have a name; a new one is one file and one row here.
pub fn strategy_registry() -> &'static Table<OpenStrategy> {
    &TABLE
}

/// Makes a rollout strategy.
///
/// # Errors
///
/// [`StrategyError::Row`] when none has the name, it does not have the options, or one is out of range.
pub fn open_strategy(config: &StrategyConfig) -> Result<Box<dyn RolloutStrategy>, StrategyError> {
    let (row, given) = strategy_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(config: &str) -> String {
        open_strategy(&serde_json::from_str(config).unwrap()).err().unwrap().to_string()
    }

    #[test]
    fn every_strategy_opens_with_its_defaults() {
        for entry in strategy_registry() {
            let config = StrategyConfig { kind: entry.name.to_owned(), options: Options::new() };
            let strategy = open_strategy(&config).unwrap();
            assert_eq!(strategy.name(), entry.name);
            assert!(open_strategy(&config).unwrap().load(&strategy.state()).is_ok());
            strategy.check(8).unwrap();
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let unknown = error(r#"{ "kind": "tree" }"#);
        assert!(unknown.starts_with("find rollout strategy `tree`: known are "), "{unknown}");
        assert!(error(r#"{ "kind": "independent", "trunks": 1 }"#).contains("no option `trunks`"));
        let range = error(r#"{ "kind": "branching", "trunks": 0, "rounds": 0 }"#);
        assert!(range.contains("trunks is 0") && range.contains("rounds is 0"), "{range}");
    }
}
