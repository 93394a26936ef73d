use super::environment::EnvironmentConfig;
use super::{Env, VerifierConfig, hosts, names};
use crate::columns::Columns;
use crate::error::{LoadError, shortened};
use crate::instance::{Artifact, HealthCheck, Instance, NetworkPolicy, RewardStrategy, whole_secs};

/// What a `task.toml` says.
pub(super) struct Config {
    pub(super) environment: EnvironmentConfig,
    pub(super) verifier: VerifierConfig,
    pub(super) agent: AgentConfig,
    pub(super) solution_env: Env,
    pub(super) artifacts: Vec<Artifact>,
    pub(super) steps: Vec<Step>,
    pub(super) reward_strategy: Option<RewardStrategy>,
    pub(super) difficulty: Option<String>,
    pub(super) tags: Vec<String>,
}

/// What it says of the agent.
#[derive(Default)]
pub(super) struct AgentConfig {
    pub(super) secs: Option<u64>,
    pub(super) user: Option<String>,
    pub(super) network: Option<NetworkPolicy>,
}

/// What it says of a step.
pub(super) struct Step {
    pub(super) name: String,
    pub(super) agent: AgentConfig,
    pub(super) verifier: VerifierConfig,
    pub(super) min_reward: std::collections::BTreeMap<String, f64>,
    pub(super) health: Option<HealthCheck>,
    pub(super) artifacts: Vec<Artifact>,
}

impl Config {
    pub(super) fn read(mut fields: Columns, instance: &mut Instance) -> Result<Self, LoadError> {
        schema(&mut fields, instance)?;
        package(&mut fields, instance)?;
        let (difficulty, tags) = metadata(&mut fields, instance)?;
        let mut environment =
            fields.optional_object("environment")?.unwrap_or_else(|| fields.empty());
        let environment = EnvironmentConfig::read(&mut environment, instance)?;
        let verifier = VerifierConfig::read_field(&mut fields, instance)?;
        let agent = AgentConfig::read_field(&mut fields, instance)?;
        let mut solution_env = Env::new();
        if let Some(mut solution) = fields.optional_object("solution")? {
            solution_env = solution.texts("env")?;
            solution.finish(instance);
        }
        let artifacts = artifacts(&mut fields, instance)?;
        let mut steps: Vec<Step> = Vec::new();
        for step in fields.objects("steps", None)? {
            let step = Step::read(step, instance)?;
            if steps.iter().any(|other| names::key(&other.name) == names::key(&step.name)) {
                let detail = format!(
                    "expected names that differ in more than their case, found `{}` twice",
                    shortened(&step.name)
                );
                return Err(fields.wrong("steps", detail));
            }
            steps.push(step);
        }
        let reward_strategy = fields.choice("multi_step_reward_strategy", &["mean", "final"])?;
        let reward_strategy = reward_strategy
            .map(|word| if word == "mean" { RewardStrategy::Mean } else { RewardStrategy::Final });
        // Where the task was found.
        fields.optional_text("source")?;
        fields.finish(instance);
        Ok(Self {
            environment,
            verifier,
            agent,
            solution_env,
            artifacts,
            steps,
            reward_strategy,
            difficulty,
            tags,
        })
    }
}

/// The version of the schema, which older files call `version`.
fn schema(fields: &mut Columns, instance: &mut Instance) -> Result<(), LoadError> {
    let old = fields.take("version");
    if let Some(old) = old
        && !fields.has("schema_version")
    {
        fields.put("schema_version", old);
    }
    if !fields.has("schema_version") {
        return Ok(());
    }
    let version = fields.text("schema_version")?;
    if version != "1" && !version.starts_with("1.") {
        let version = shortened(&version);
        instance
            .unsupported
            .push(format!("`schema_version`: what `{version}` has beyond 1.4 is not known"));
    }
    Ok(())
}

fn package(fields: &mut Columns, instance: &mut Instance) -> Result<(), LoadError> {
    let Some(mut package) = fields.optional_object("task")? else {
        return Ok(());
    };
    let name = package.text("name")?;
    if !names::is_package(&name) {
        let detail = format!(
            "expected `ORG/NAME` of letters, digits, `.`, `_` and `-`, found `{}`",
            shortened(&name)
        );
        return Err(package.wrong("name", detail));
    }
    if package.has("version") && package.text("version")?.is_empty() {
        return Err(package.wrong("version", "expected a version, found an empty text"));
    }
    package.optional_text("description")?;
    package.optional_list("keywords")?;
    for mut author in package.objects("authors", None)? {
        author.text("name")?;
        author.optional_text("email")?;
        author.finish(instance);
    }
    package.finish(instance);
    Ok(())
}

/// What is free in form: difficulty and tags are taken where they are what they are called.
fn metadata(
    fields: &mut Columns,
    _: &mut Instance,
) -> Result<(Option<String>, Vec<String>), LoadError> {
    let Some(mut metadata) = fields.optional_object("metadata")? else {
        return Ok((None, Vec::new()));
    };
    let difficulty = metadata.optional_text("difficulty").ok().flatten();
    let mut tags = metadata.optional_list("tags").ok().flatten().unwrap_or_default();
    tags.extend(metadata.optional_text("category").ok().flatten());
    Ok((difficulty, tags))
}

impl AgentConfig {
    fn read_field(fields: &mut Columns, instance: &mut Instance) -> Result<Self, LoadError> {
        let Some(mut agent) = fields.optional_object("agent")? else {
            return Ok(Self::default());
        };
        let found = Self {
            secs: secs(&mut agent, "timeout_sec", instance)?,
            user: user(&mut agent)?,
            network: hosts::phase(&mut agent)?,
        };
        agent.finish(instance);
        Ok(found)
    }
}

impl Step {
    fn read(mut fields: Columns, instance: &mut Instance) -> Result<Self, LoadError> {
        let name = fields.text("name")?;
        if let Some(problem) = names::step_problem(&name) {
            return Err(fields.wrong("name", format!("`{}` {problem}", shortened(&name))));
        }
        let agent = AgentConfig::read_field(&mut fields, instance)?;
        let verifier = VerifierConfig::read_field(&mut fields, instance)?;
        let mut min_reward = std::collections::BTreeMap::new();
        match fields.take("min_reward") {
            None => {}
            Some(table @ serde_json::Value::Object(_)) => {
                fields.put("min_reward", table);
                let mut table = fields.object("min_reward")?;
                while let Some(key) = table.first_name() {
                    if let Some(reward) = table.number(&key)? {
                        min_reward.insert(key, reward);
                    }
                }
            }
            Some(one) => {
                fields.put("min_reward", one);
                if let Some(reward) = fields.number("min_reward")? {
                    min_reward.insert("reward".to_owned(), reward);
                }
            }
        }
        let found = Self {
            name,
            agent,
            verifier,
            min_reward,
            health: health(&mut fields, instance)?,
            artifacts: artifacts(&mut fields, instance)?,
        };
        fields.finish(instance);
        Ok(found)
    }
}

/// Seconds; what is no time is told, as its own model takes it.
pub(super) fn secs(
    fields: &mut Columns,
    name: &str,
    instance: &mut Instance,
) -> Result<Option<u64>, LoadError> {
    let Some(number) = fields.number(name)? else {
        return Ok(None);
    };
    let found = whole_secs(number);
    if found.is_none() {
        let name = fields.full_name(name);
        instance
            .unsupported
            .push(format!("`{name}`: {number} are no seconds between 0 and thirty days"));
    }
    Ok(found)
}

/// A user, by name or number.
pub(super) fn user(fields: &mut Columns) -> Result<Option<String>, LoadError> {
    match fields.take("user") {
        None => Ok(None),
        Some(serde_json::Value::String(name)) => Ok((!name.is_empty()).then_some(name)),
        Some(other) => {
            fields.put("user", other);
            Ok(fields.integer("user")?.map(|number| number.to_string()))
        }
    }
}

pub(super) fn health(
    fields: &mut Columns,
    instance: &mut Instance,
) -> Result<Option<HealthCheck>, LoadError> {
    let Some(mut health) = fields.optional_object("healthcheck")? else {
        return Ok(None);
    };
    let found = HealthCheck {
        command: health.text("command")?,
        interval_secs: health.number("interval_sec")?.unwrap_or(5.0),
        timeout_secs: health.number("timeout_sec")?.unwrap_or(30.0),
        start_period_secs: health.number("start_period_sec")?.unwrap_or(0.0),
        start_interval_secs: health.number("start_interval_sec")?.unwrap_or(5.0),
        retries: match health.integer("retries")? {
            None => 3,
            Some(retries) => u32::try_from(retries.max(0)).unwrap_or(u32::MAX),
        },
    };
    health.finish(instance);
    Ok(Some(found))
}

fn artifacts(fields: &mut Columns, instance: &mut Instance) -> Result<Vec<Artifact>, LoadError> {
    let of_text =
        |source: String| serde_json::Map::from_iter([("source".to_owned(), source.into())]);
    let mut found = Vec::new();
    for mut artifact in fields.objects("artifacts", Some(of_text))? {
        let service = artifact.optional_text("service")?;
        let own = Artifact {
            source: artifact.text("source")?,
            destination: artifact.optional_text("destination")?,
            exclude: artifact.optional_list("exclude")?.unwrap_or_default(),
        };
        if let Some(service) = &service
            && !names::is_service(service.trim())
        {
            return Err(artifact
                .wrong("service", format!("`{}` is no name of a service", shortened(service))));
        }
        if let Some((name, problem)) =
            names::artifact_problem(&own, service.as_deref().map(str::trim))
        {
            return Err(artifact.wrong(name, problem));
        }
        artifact.finish(instance);
        match service.as_deref().map(str::trim) {
            None | Some(super::MAIN) => found.push(own),
            Some(other) => {
                instance.unsupported.push(format!(
                    "`artifacts`: nothing is carried out of the service `{}`",
                    shortened(other)
                ));
            }
        }
    }
    Ok(found)
}
