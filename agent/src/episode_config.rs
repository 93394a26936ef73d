//! How episodes are played.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use spar_core::{GrammarSource, Sampling, ToolSpec};
use spar_envs::{Actions, Environment, TimeRules, actions_of_task, takes_toolsets};
use spar_parsers::CallRules;
use spar_tasks::Task;

use crate::contexts::{ContextPolicy, ReasoningRule};
use crate::scaffolds::ToolUse;
use crate::{ConfigError, ContextConfig, ParserChoice, ScaffoldChoice};

/// How episodes are played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EpisodeConfig {
    /// Turns, after which an episode is truncated; at least 1. Default absent: the task's number.
    pub max_turns: Option<u32>,
    /// Tokens that the policy may sample in an episode, after which it is truncated; at least 1. The
    /// policy has to show its tokens or tell their number. Default absent: what turns and
    /// `sampling.max_tokens` allow.
    pub max_sampled_tokens: Option<usize>,
    /// What requests to models may cost in an episode, in the currency of their prices, after which it is truncated; above 0.
    /// What has no price costs nothing. Default absent: what the scaffold allows, which is 3 in `mini` and its like, and
    /// without a limit in others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Seconds that the policy may take for one answer, and an environment for one step. Whoever
    /// misses them has failed: such an episode is played anew and never scored. Where the agent's own
    /// commands make steps long, the environment bounds these instead. Default 120.
    pub turn_timeout_secs: u64,
    /// Seconds that the agent's own commands may take in all, in environments where it runs any and
    /// the task's rules give no time; after them the episode is truncated. (`episode_timeout_secs` in
    /// older recipes.) Default 600.
    #[serde(alias = "episode_timeout_secs")]
    pub command_time_secs: u64,
    /// Seconds that an episode may lose to environments, tools and graders that broke after a wait, all its tries together: of
    /// each such try, all the time that is no finished turn's: the sandbox's start, a past that is played again and the policy's
    /// answer before it broke count as well, so that one retry is always allowed. From the second such try on, once so many are
    /// lost, it is not played anew, however many further tries it would have, so that what hangs is not waited for again and
    /// again. The opening of a task's environment is bounded in the same way. 0: such tries are repeated once. Default 180.
    pub stall_patience_secs: u64,
    /// What the policy sees.
    pub context: ContextConfig,
    /// How the task is put to the policy, and whether tools are offered: one of `spar list scaffolds`. Default
    /// `plain`.
    pub scaffold: ScaffoldChoice,
    /// How actions are read. Default absent: as the scaffold has it; where that is `plain`, the first line, all of an answer in
    /// environments that find what counts in it by themselves, such as questions and games of TextArena.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parser: Option<ParserChoice>,
    /// Whether a policy that can be held to it must answer with an admissible action, where the
    /// environment lists them. Default true.
    pub constrain_to_admissible: bool,
    /// A grammar that every answer is held to, such as the schema of an action as JSON: `{ kind = "json_schema", schema
    /// = .. }`, or kind `regex` with an `expression`, `lark` with a `grammar`. A policy that cannot be held to it is not
    /// asked. Not beside `constrain_to_admissible`. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grammar: Option<Arc<GrammarSource>>,
    /// Holds every answer to calls of the tools that are offered, with arguments of their schemas: `{ max_calls = 1, words =
    /// "nowhere" }` is one call and nothing else; words may stand `before` the first call, or `instead` of all. The parser
    /// has to write calls as JSON between ordinary text (`hermes`, `llama3_json`, `json_object`), and a policy that
    /// cannot be held to it is not asked. Where admissible actions are listed, those are what it is held to. Not beside
    /// `grammar`. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_grammar: Option<CallRules>,
    /// Strings that end an answer and are no part of it; none is empty. Default none.
    #[serde(skip_serializing_if = "has_none")]
    pub stop: Arc<[Arc<str>]>,
    /// Taken from the reward of a turn in which no action could be read; 0 or more. Default 0.
    pub invalid_penalty: f64,
    /// Whether actions that could not be executed are penalised in the same way. Default false.
    #[serde(alias = "penalize_not_executable")]
    pub penalize_invalid: bool,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// How often a policy that could not be reached is asked again in one turn. Default 2.
    pub policy_retries: u32,
    /// Milliseconds before a policy is asked again; each further wait is twice as long, up to 30 seconds. Default
    /// 200.
    pub retry_delay_ms: u64,
}

fn has_none(strings: &Arc<[Arc<str>]>) -> bool {
    strings.is_empty()
}

impl Default for EpisodeConfig {
    fn default() -> Self {
        Self {
            max_turns: None,
            max_sampled_tokens: None,
            max_cost: None,
            turn_timeout_secs: 120,
            command_time_secs: 600,
            stall_patience_secs: 180,
            context: ContextConfig::default(),
            scaffold: ScaffoldChoice::default(),
            parser: None,
            constrain_to_admissible: true,
            grammar: None,
            tool_grammar: None,
            stop: Arc::default(),
            invalid_penalty: 0.0,
            penalize_invalid: false,
            sampling: Sampling::default(),
            policy_retries: 2,
            retry_delay_ms: 200,
        }
    }
}

impl EpisodeConfig {
    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] lists all settings that are outside their range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::refuse(self.problems())
    }

    /// The parser that reads actions in an environment: the one that is chosen, or else the scaffold's, where `plain` gives way
    /// to `whole` in environments that [find what counts by themselves](Environment::reads_whole_answers).
    pub fn parser_in(&self, environment: &dyn Environment) -> &ParserChoice {
        let is_left_open = self.parser.is_none() && self.parser().is_plain();
        match is_left_open && environment.reads_whole_answers() {
            true => ParserChoice::whole(),
            false => self.parser(),
        }
    }

    /// The parser that reads actions, wherever that does not depend on the environment.
    pub fn parser(&self) -> &ParserChoice {
        self.parser.as_ref().unwrap_or(self.scaffold.parser())
    }

    /// The string that ends answers which go on behind what their calls have shown; absent where none do.
    pub fn in_turn(&self) -> Option<&'static str> {
        self.scaffold.scaffold().in_turn
    }

    /// What ends an answer.
    pub(crate) fn stop_strings(&self) -> Arc<[Arc<str>]> {
        match self.in_turn() {
            Some(stop) => [Arc::from(stop)].into(),
            None => Arc::clone(&self.stop),
        }
    }

    /// What becomes of the conversation as it grows.
    pub fn context_policy(&self) -> &dyn ContextPolicy {
        self.context.policy.as_ref().unwrap_or(self.scaffold.context_policy()).policy()
    }

    /// Whether tools are offered, where the environment has any.
    pub fn offers_tools(&self) -> bool {
        self.scaffold.scaffold().tools != ToolUse::None
    }

    /// Tells an environment how it is played, before it shows anything: whether its tools are called, and what is worked with
    /// in their place.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] where it cannot be worked in with the scaffold's tools.
    pub fn tell(&self, environment: &mut dyn Environment) -> Result<(), ConfigError> {
        if self.offers_tools() {
            environment.use_tools();
        }
        match self.scaffold.toolset() {
            Some(toolset) if !environment.use_toolset(toolset) => {
                Err(self.without_toolsets(environment.name()))
            }
            _ => Ok(()),
        }
    }

    fn without_toolsets(&self, environment: &str) -> ConfigError {
        ConfigError::of(format!(
            "scaffold `{}`: its tools need a machine to work at, which environment `{environment}` does not have; \
             `terminal` and `swe` do",
            self.scaffold.name()
        ))
    }

    /// Checks that a task can be played with this scaffold; one whose environment is in no table can.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the scaffold, the environment and what to take in their place.
    pub fn fits(&self, task: &Task) -> Result<(), ConfigError> {
        match actions_of_task(task) {
            Some(actions) => self.fits_actions(&task.environment, actions),
            None => Ok(()),
        }
    }

    fn fits_actions(&self, environment: &str, actions: Actions) -> Result<(), ConfigError> {
        let scaffold = self.scaffold.name();
        if self.scaffold.toolset().is_some() && !takes_toolsets(environment) {
            return Err(self.without_toolsets(environment));
        }
        let problem = match self.offers_tools() {
            // In words there are no tools to describe.
            _ if self.scaffold.scaffold().tools == ToolUse::InWords => return Ok(()),
            true if !actions.has_calls() => {
                format!("environment `{environment}` has no tools; scaffold `plain` is for words")
            }
            false if !actions.has_words() => format!(
                "environment `{environment}` is played by calls of tools, which scaffold `{scaffold}` does not offer; \
                 scaffold `tools` does"
            ),
            _ => return Ok(()),
        };
        ConfigError::refuse(vec![format!("scaffold `{scaffold}`: {problem}")])
    }

    /// Turns of an episode of a task, after which it is truncated.
    pub(crate) fn turns_of(&self, task: &Task) -> u32 {
        self.max_turns.or(self.scaffold.scaffold().max_turns).unwrap_or(task.max_turns)
    }

    /// What an episode may cost; absent where nothing limits it.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.max_cost.or(self.scaffold.scaffold().max_cost)
    }

    /// Tokens that may be sampled in an episode; absent where nothing limits them.
    pub(crate) fn sampled_tokens(&self) -> Option<usize> {
        self.max_sampled_tokens.or(self.scaffold.scaffold().max_sampled_tokens)
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.context.problems();
        let of_scaffold = self.scaffold.scaffold().problems(self.parser());
        let scaffold = self.scaffold.name();
        problems.extend(of_scaffold.into_iter().map(|p| format!("scaffold `{scaffold}`: {p}")));
        let policy = self.context_policy();
        let of_policy = policy.problems(self).into_iter();
        problems.extend(of_policy.map(|it| format!("context policy `{}`: {it}", policy.name())));
        let window = self.context.window_turns.or(self.scaffold.scaffold().window_turns);
        if window.is_some() && !policy.keeps_all() {
            problems.push(format!(
                "window_turns is given beside context policy `{}`: turns are left out by one of them",
                policy.name()
            ));
        }
        if self.in_turn().is_some() {
            if window.is_some() || !policy.keeps_all() {
                problems.push(format!(
                    "scaffold `{scaffold}` has an answer go on behind what it was shown, of which nothing can be left \
                     out: window_turns and context policies are for others"
                ));
            }
            if !self.stop.is_empty() {
                problems.push(format!(
                    "stop is given beside scaffold `{scaffold}`, which says itself what ends an answer"
                ));
            }
            if self.context.reasoning != ReasoningRule::Inline {
                problems.push(format!(
                    "context.reasoning has to be `inline` with scaffold `{scaffold}`: thoughts and calls are one answer"
                ));
            }
        }
        if self.max_turns == Some(0) {
            problems.push("max_turns is 0, must be at least 1 or absent".to_owned());
        }
        if self.grammar.is_some() && self.constrain_to_admissible {
            let problem =
                "grammar is given beside constrain_to_admissible: an answer is held to one of them";
            problems.push(problem.to_owned());
        }
        if let Some(rules) = self.tool_grammar {
            problems.extend(
                self.problems_of_calls(rules).into_iter().map(|it| format!("tool_grammar: {it}")),
            );
        }
        if self.stop.iter().any(|string| string.is_empty()) {
            problems.push("stop has an empty string, which every answer would end at".to_owned());
        }
        if self.max_sampled_tokens == Some(0) {
            problems.push("max_sampled_tokens is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_cost.is_some_and(|most| !(most.is_finite() && most > 0.0)) {
            problems.push("max_cost must be above 0 or absent".to_owned());
        }
        for (name, value) in [
            ("turn_timeout_secs", self.turn_timeout_secs),
            ("command_time_secs", self.command_time_secs),
        ] {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        if !(self.invalid_penalty.is_finite() && self.invalid_penalty >= 0.0) {
            problems
                .push(format!("invalid_penalty is {}, must be 0 or more", self.invalid_penalty));
        }
        if self.penalize_invalid && self.invalid_penalty == 0.0 {
            problems.push("penalize_invalid has no effect: invalid_penalty is 0".to_owned());
        }
        let of_sampling = self.sampling.problems();
        problems.extend(of_sampling.into_iter().map(|problem| format!("sampling.{problem}")));
        problems
    }

    /// What keeps answers from being held to calls.
    fn problems_of_calls(&self, rules: CallRules) -> Vec<String> {
        let mut problems = rules.problems();
        if self.grammar.is_some() {
            problems
                .push("it is given beside grammar: an answer is held to one of them".to_owned());
        }
        if !self.offers_tools() {
            let scaffold = self.scaffold.name();
            problems.push(format!("it has no effect: scaffold `{scaffold}` offers no tools"));
        } else if problems.is_empty()
            && self.parser().call_grammar(&[ToolSpec::new("f", "", json!({}))], rules).is_none()
        {
            problems.push(format!(
                "parser `{}` cannot hold an answer to {rules}",
                self.parser().name()
            ));
        }
        problems
    }

    pub(crate) fn turn_timeout(&self) -> Duration {
        Duration::from_secs(self.turn_timeout_secs)
    }

    /// How long a reset may take.
    pub(crate) fn reset_timeout(&self, rules: TimeRules) -> Duration {
        self.beyond(rules.reset)
    }

    /// How long a step may take that the agent cannot make long.
    pub(crate) fn step_timeout(&self, rules: TimeRules) -> Duration {
        self.beyond(rules.step)
    }

    /// A turn's time, on top of what an environment sees to by itself.
    fn beyond(&self, own: Option<Duration>) -> Duration {
        self.turn_timeout().saturating_add(own.unwrap_or_default())
    }

    pub(crate) fn command_time(&self) -> Duration {
        Duration::from_secs(self.command_time_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaffold_and_an_environment_have_to_fit() {
        let told = |scaffold: &str, environment: &str| {
            let scaffold = ScaffoldChoice::named(scaffold).unwrap();
            let config = EpisodeConfig { scaffold, ..EpisodeConfig::default() };
            let fits = spar_envs::actions_of(environment)
                .map_or(Ok(()), |actions| config.fits_actions(environment, actions));
            fits.err().map(|error| error.problems).unwrap_or_default()
        };
        let pairs = [
            ("plain", "household"),
            ("tools", "ledger"),
            ("tools", "terminal"),
            ("plain", "terminal"),
            ("react", "household"),
            ("react", "ledger"),
        ];
        for (scaffold, environment) in pairs {
            assert_eq!(told(scaffold, environment), "", "{scaffold}, {environment}");
        }
        assert!(told("plain", "ledger").contains("scaffold `tools` does"));
        assert!(told("tools", "household").contains("`household` has no tools"));
        let problems = |config: &str| {
            serde_json::from_str::<EpisodeConfig>(config)
                .unwrap()
                .validate()
                .err()
                .map(|it| it.problems)
        };
        assert_eq!(
            problems(r#"{ "scaffold": "tools", "tool_grammar": { "words": "before" } }"#),
            None
        );
        for (config, told) in [
            (r#"{ "tool_grammar": {} }"#, "scaffold `plain` offers no tools"),
            (
                r#"{ "scaffold": "tools", "tool_grammar": { "max_calls": 0 } }"#,
                "allowed are 1 to 128",
            ),
            (
                r#"{ "scaffold": "tools", "parser": "json_object", "tool_grammar": { "max_calls": 2 } }"#,
                "parser `json_object` cannot hold an answer to 2 calls without words",
            ),
            (
                r#"{ "scaffold": "tools", "constrain_to_admissible": false, "tool_grammar": {},
                     "grammar": { "kind": "regex", "expression": "a" } }"#,
                "given beside grammar",
            ),
        ] {
            assert!(problems(config).is_some_and(|it| it.contains(told)), "{config}");
        }
        let config: EpisodeConfig =
            serde_json::from_str(r#"{ "scaffold": "tools", "parser": "tags" }"#).unwrap();
        assert!(config.validate().unwrap_err().problems.contains("parser `tags` reads no calls"));
        assert!(serde_json::from_str::<EpisodeConfig>(r#"{ "scaffold": "tool" }"#).is_err());
    }

    #[test]
    fn all_problems_are_told_at_once() {
        assert_eq!(EpisodeConfig::default().validate(), Ok(()));
        let config: EpisodeConfig = serde_json::from_str(
            r#"{ "max_turns": 0, "max_cost": 0, "invalid_penalty": -1, "context": { "window_turns": 0, "max_untried": 2 } }"#,
        )
        .unwrap();
        let problems = config.validate().unwrap_err().problems;
        for name in [
            "max_turns",
            "max_cost",
            "invalid_penalty",
            "context.window_turns",
            "context.max_untried",
        ] {
            assert!(problems.contains(name), "{problems}");
        }
        assert!(serde_json::from_str::<EpisodeConfig>(r#"{ "max_turn": 1 }"#).is_err());
        let held: EpisodeConfig = serde_json::from_str(
            r#"{ "grammar": { "kind": "regex", "expression": "a" }, "stop": ["", "b"] }"#,
        )
        .unwrap();
        let problems = held.validate().unwrap_err().problems;
        assert!(problems.contains("grammar") && problems.contains("stop"), "{problems}");
        let json = serde_json::to_string(&held).unwrap();
        assert_eq!(serde_json::from_str::<EpisodeConfig>(&json).unwrap(), held);
        let older: EpisodeConfig =
            serde_json::from_str(r#"{ "episode_timeout_secs": 5, "max_sampled_tokens": 0 }"#)
                .unwrap();
        assert_eq!(older.command_time_secs, 5);
        assert!(older.validate().unwrap_err().problems.contains("max_sampled_tokens is 0"));
    }
}
