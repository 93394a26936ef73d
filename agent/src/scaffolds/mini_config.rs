//! A configuration file of mini-swe-agent as a scaffold.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Scaffold, scaffold_registry};

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// A scaffold that stands in a file.
#[derive(Debug, Clone)]
pub(super) struct Configured {
    pub(super) scaffold: &'static Scaffold,
    /// Of the file, as records name it.
    pub(super) hash: String,
}

/// The scaffold of a file. Files of version 1 have a template `action_observation_template`; those of version 2 whose model
/// has an `action_regex`, or a `model_class` with `textbased` in its name, take commands from text, others from calls.
pub(super) fn read(path: &Path) -> Result<Configured, String> {
    let problem = |problem: String| format!("`{}`: {problem}", path.display());
    let size = std::fs::metadata(path).map_err(|error| problem(error.to_string()))?.len();
    if size > MAX_BYTES {
        return Err(problem(format!("it has more than {MAX_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    of_text(&text).map_err(problem)
}

fn of_text(text: &str) -> Result<Configured, String> {
    // Scaffolds live as long as the program: each content is kept once, however often it is named.
    static KNOWN: OnceLock<Mutex<HashMap<String, &'static Scaffold>>> = OnceLock::new();
    let hash = blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
    let mut known =
        KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(scaffold) = known.get(&hash) {
        return Ok(Configured { scaffold, hash });
    }
    let file: File = yaml_serde::from_str(text).map_err(|error| error.to_string())?;
    let scaffold: &'static Scaffold = Box::leak(Box::new(file.scaffold()?));
    known.insert(hash.clone(), scaffold);
    Ok(Configured { scaffold, hash })
}

/// A file. What is about the model's provider, the kind of machine or the program's own window is taken and means
/// nothing here; all else that is not known is refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    agent: Agent,
    environment: Machine,
    model: Model,
    run: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Agent {
    system_template: Option<String>,
    instance_template: Option<String>,
    action_observation_template: Option<String>,
    timeout_template: Option<String>,
    format_error_template: Option<String>,
    action_regex: Option<String>,
    step_limit: f64,
    wall_time_limit_seconds: f64,
    max_consecutive_format_errors: Option<u32>,
    cost_limit: Option<f64>,
    #[serde(rename = "mode")]
    _mode: Value,
    #[serde(rename = "confirm_exit")]
    _confirm_exit: Value,
    #[serde(rename = "whitelist_actions")]
    _whitelist_actions: Value,
    #[serde(rename = "output_path")]
    _output_path: Value,
    #[serde(rename = "agent_class")]
    _agent_class: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Machine {
    timeout: Option<u64>,
    interpreter: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    forward_env: Vec<String>,
    #[serde(rename = "cwd")]
    _cwd: Value,
    #[serde(rename = "image")]
    _image: Value,
    #[serde(rename = "environment_class")]
    _environment_class: Value,
    #[serde(rename = "executable")]
    _executable: Value,
    #[serde(rename = "run_args")]
    _run_args: Value,
    #[serde(rename = "container_timeout")]
    _container_timeout: Value,
    #[serde(rename = "pull_timeout")]
    _pull_timeout: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Model {
    observation_template: Option<String>,
    format_error_template: Option<String>,
    action_regex: Option<String>,
    model_class: Option<String>,
    multimodal_regex: Option<String>,
    #[serde(rename = "model_name")]
    _model_name: Value,
    #[serde(rename = "model_kwargs")]
    _model_kwargs: Value,
    #[serde(rename = "cost_tracking")]
    _cost_tracking: Value,
    #[serde(rename = "set_cache_control")]
    _set_cache_control: Value,
    #[serde(rename = "litellm_model_registry")]
    _litellm_model_registry: Value,
}

/// The expressions that have a parser, each with its scaffold.
const EXPRESSIONS: [(&str, &str); 3] = [
    (r"```mswea_bash_command\s*\n(.*?)\n```", "mini-backticks"),
    ("<mswea_bash_command>(.*?)</mswea_bash_command>", "mini-xml"),
    (r"```bash\s*\n(.*?)\n```", "mini-v1"),
];

impl File {
    /// The scaffold of the table that has what the file leaves out.
    fn base(&self) -> Result<&'static str, String> {
        if self.agent.action_observation_template.is_some() {
            return Ok("mini-v1");
        }
        let expression = self.agent.action_regex.as_ref().or(self.model.action_regex.as_ref());
        if let Some(expression) = expression {
            let known = EXPRESSIONS.iter().find(|(known, _)| known == expression);
            return known.map(|(_, scaffold)| *scaffold).ok_or_else(|| {
                let known = EXPRESSIONS.map(|(known, _)| format!("`{known}`")).join(", ");
                format!("`action_regex` is `{expression}`, which no parser reads: {known} are read")
            });
        }
        let class = self.model.model_class.as_deref().unwrap_or_default();
        Ok(if class.contains("textbased") { "mini-backticks" } else { "mini" })
    }

    fn scaffold(self) -> Result<Scaffold, String> {
        let base = self.base()?;
        let own = scaffold_registry().find(base).map_err(|error| error.to_string())?.open;
        for (is_there, what) in [
            (self.agent.wall_time_limit_seconds != 0.0, "agent.wall_time_limit_seconds"),
            (!self.environment.forward_env.is_empty(), "environment.forward_env"),
            (
                self.model.multimodal_regex.as_ref().is_some_and(|it| !it.is_empty()),
                "model.multimodal_regex",
            ),
            (!self.run.is_empty(), "run"),
        ] {
            if is_there {
                return Err(format!("`{what}` cannot be kept to here"));
            }
        }
        let steps = self.agent.step_limit;
        if steps.fract() != 0.0 || !(0.0..=1e6).contains(&steps) {
            return Err(format!(
                "`agent.step_limit` is {steps}, must be a whole number up to 1000000"
            ));
        }
        let max_cost = match self.agent.cost_limit {
            None => own.max_cost,
            Some(cost) if !cost.is_finite() => {
                return Err(format!("`agent.cost_limit` is {cost}, must be a finite number"));
            }
            // As the original has it, 0 and less is no limit.
            Some(cost) => (cost > 0.0).then_some(cost),
        };
        let format_error = self.model.format_error_template.or(self.agent.format_error_template);
        let observation =
            self.model.observation_template.or(self.agent.action_observation_template);
        let mut toolset: Map<String, Value> = own
            .toolset
            .and_then(|written| serde_json::from_str(written).ok())
            .ok_or_else(|| format!("scaffold `{base}` has no toolset"))?;
        let texts = [
            ("instance", &self.agent.instance_template),
            ("observation", &observation),
            ("format_error", &format_error),
            ("timeout", &self.agent.timeout_template),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                toolset.insert(name.to_owned(), text.clone().into());
            }
        }
        if let Some(seconds) = self.environment.timeout {
            toolset.insert("command_secs".to_owned(), seconds.into());
        }
        if let Some(interpreter) = self.environment.interpreter {
            toolset.insert("interpreter".to_owned(), json!(interpreter));
        }
        if let Some(env) = self.environment.env {
            toolset.insert("env".to_owned(), json!(env));
        }
        let max_format_errors = match self.agent.max_consecutive_format_errors {
            None => own.max_format_errors,
            Some(0) => None,
            Some(most) => Some(most),
        };
        Ok(Scaffold {
            system: self.agent.system_template.map(kept).or(own.system),
            format_error: format_error.map(kept).or(own.format_error),
            toolset: Some(kept(Value::Object(toolset).to_string())),
            max_format_errors,
            max_turns: (steps > 0.0).then_some(steps as u32),
            max_cost,
            ..*own
        })
    }
}

/// A text of a scaffold, which lives as long as the program.
fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScaffoldChoice;
    use crate::scaffolds::ToolUse;

    const TEXT: &str = "agent:\n  system_template: Be brief.\n  instance_template: 'Do {{task}} in {{cwd}}'\n  step_limit: 7\n  \
                        cost_limit: 2.5\nenvironment:\n  timeout: 5\n  environment_class: docker\nmodel:\n  model_name: x/y\n  \
                        format_error_template: '{{error}} {{actions|length}}'\n";

    #[test]
    fn a_file_says_what_it_says_and_the_rest_is_as_in_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.yaml");
        std::fs::write(&path, TEXT).unwrap();
        let name = format!("mini:{}", path.display());
        let choice = ScaffoldChoice::named(&name).unwrap();
        let scaffold = choice.scaffold();
        assert_eq!(choice.name(), name);
        assert_eq!(choice.system("", &[]).unwrap(), "Be brief.");
        assert_eq!((scaffold.max_turns, scaffold.max_format_errors), (Some(7), Some(3)));
        assert_eq!((scaffold.parser, scaffold.tools), ("hermes", ToolUse::Native));
        assert_eq!(scaffold.max_cost, Some(2.5));
        let toolset = choice.toolset().unwrap().toolset();
        assert_eq!(toolset.command_limit().unwrap().as_secs(), 5);
        let briefing = spar_envs::toolsets::Briefing {
            task: "it",
            workdir: "/a",
            is_repository: true,
            command_secs: 5,
        };
        assert_eq!(toolset.opening(&briefing), "Do it in /a");
        assert!(choice.version().starts_with(&format!("{name} 1 ")), "{}", choice.version());
        // Named again, it is not read into memory again.
        assert!(std::ptr::eq(scaffold, ScaffoldChoice::named(&name).unwrap().scaffold()));
    }

    #[test]
    fn what_cannot_be_kept_to_is_refused() {
        let refused = |text: &str| of_text(text).unwrap_err();
        assert!(refused("agent:\n  colour: red\n").contains("colour"));
        assert!(refused("agent:\n  wall_time_limit_seconds: 5\n").contains("wall_time"));
        assert!(refused("model:\n  action_regex: x(.*)y\n").contains("no parser reads"));
        assert!(refused("agent:\n  step_limit: 1.5\n").contains("whole number"));
        assert!(refused("agent:\n  cost_limit: .nan\n").contains("finite"));
        let cost = |text: &str| of_text(text).unwrap().scaffold.max_cost;
        assert_eq!(cost("agent:\n  cost_limit: 0.\n"), None);
        assert_eq!(cost("agent:\n  step_limit: 9\n"), Some(3.0));
        let of = |text: &str| of_text(text).unwrap().scaffold.parser;
        assert_eq!(
            of("model:\n  action_regex: <mswea_bash_command>(.*?)</mswea_bash_command>\n"),
            "mini_xml"
        );
        assert_eq!(of("model:\n  model_class: litellm_textbased\n"), "mini_backticks");
        assert_eq!(of("agent:\n  action_observation_template: '{{output.output}}'\n"), "mini_v1");
        let error = ScaffoldChoice::named("mini:/no/such/file").unwrap_err().to_string();
        assert!(error.contains("/no/such/file"), "{error}");
    }
}
