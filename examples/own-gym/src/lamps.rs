//! Lamps that are lit by calls of a tool, and a suite of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use spar::core::registry::{OptionSet, Row};
use spar::core::{Action, Observation, RewardPart, Seed, Step, ToolCall, ToolResult, ToolSpec};
use spar::envs::{Actions, Environment, EnvironmentError, EnvironmentRow, NamedEnvironment};
use spar::tasks::{NamedSuite, SuiteRow, Task, TemplateSuite};

pub(crate) const ENVIRONMENT: EnvironmentRow = Row {
    name: "lamps",
    about: "Light the lamp that is asked for, by calling a tool with its colour.",
    source: "own",
    formula: "",
    options: OptionSet::NONE,
    open: NamedEnvironment {
        suite: Some("lamps"),
        needs_sandbox: false,
        actions: Actions::Calls,
        open: |task, _| Ok(Box::new(Lamps::open(task)?)),
        stratum: |_| None,
    },
};

pub(crate) const SUITE: SuiteRow = Row {
    name: "lamps",
    about: "One of three lamps to be lit.",
    source: "own",
    formula: "",
    options: OptionSet::NONE,
    open: NamedSuite {
        needs_data: false,
        open: |_| {
            let text = include_str!("../lamps/suite.toml");
            Ok(Box::new(TemplateSuite::parse(text, Path::new("lamps/suite.toml"))?))
        },
    },
};

const COLOURS: [&str; 3] = ["red", "green", "blue"];

/// Three lamps, of which one is to be lit. Parameters: `seed`.
///
/// Its only tool `light` takes a `colour`. A call that cannot be carried out is answered with an error.
#[derive(Debug, Clone)]
struct Lamps {
    wanted: &'static str,
    tools: Arc<[ToolSpec]>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeReset,
    Playing,
    Over,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
}

impl Lamps {
    /// Makes the lamps of a task.
    fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let Parameters { seed } = Parameters::deserialize(&task.parameters).map_err(|error| {
            EnvironmentError::Parameters {
                task: task.id.clone(),
                environment: "lamps",
                detail: error.to_string(),
            }
        })?;
        let wanted = Seed::from_u64(seed).derive("wanted", 0).as_u64() as usize % COLOURS.len();
        let light = ToolSpec::new(
            "light",
            "Lights a lamp.",
            json!({
                "type": "object",
                "properties": { "colour": { "type": "string", "enum": COLOURS } },
                "required": ["colour"],
            }),
        );
        Ok(Self { wanted: COLOURS[wanted], tools: [light].into(), state: State::BeforeReset })
    }

    /// The colour that a call asks for; an error is for the policy to read.
    fn colour(call: &ToolCall) -> Result<&'static str, String> {
        if call.name != "light" {
            return Err(format!("There is no tool `{}`, only `light`.", call.name));
        }
        let asked = call.arguments.get("colour").and_then(Value::as_str);
        let known = COLOURS.into_iter().find(|colour| Some(*colour) == asked);
        known.ok_or_else(|| format!("`colour` has to be one of {}.", COLOURS.join(", ")))
    }

    fn observation(&self, text: String) -> Observation {
        let state_key = format!("{} {:?}", self.wanted, self.state);
        Observation { state_key, ..Observation::new(text) }
    }
}

#[async_trait]
impl Environment for Lamps {
    fn name(&self) -> &'static str {
        "lamps"
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.state = State::Playing;
        Ok(self.observation(format!("Light the {} lamp.", self.wanted)))
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.tools)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        match self.state {
            State::Playing => {}
            State::BeforeReset => {
                return Err(EnvironmentError::Misused { call: "step", when: "before reset" });
            }
            State::Over => {
                return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
            }
        }
        let calls = action.tool_calls();
        let lit: Vec<_> = calls.iter().map(Self::colour).collect();
        let success = lit.contains(&Ok(self.wanted));
        if success {
            self.state = State::Over;
        }
        let result = |(call, lit): (&ToolCall, &Result<&str, String>)| match lit {
            Ok(colour) => ToolResult::new(call, format!("The {colour} lamp is lit.")),
            Err(told) => ToolResult::error(call, told),
        };
        let text = if calls.is_empty() { "Nothing happens: call a tool." } else { "" };
        let mut observation = self.observation(text.to_owned());
        observation.results = calls.iter().zip(&lit).map(result).collect();
        let reward = RewardPart { name: "success".to_owned(), value: 1.0 };
        Ok(Step {
            observation,
            rewards: if success { vec![reward] } else { Vec::new() },
            terminated: success,
            success,
            valid: !lit.is_empty() && lit.iter().all(Result::is_ok),
            wall_time: Duration::ZERO,
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let arguments = [("colour".to_owned(), self.wanted.into())].into_iter().collect();
        (self.state == State::Playing)
            .then(|| Action::calls(vec![ToolCall::new("light", arguments)]))
    }
}
