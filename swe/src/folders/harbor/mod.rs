//! Task folders of Harbor, whose `task.toml` is of schema 1.

mod config;
mod environment;
mod hosts;
mod mcp;
mod names;
mod verifier;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::config::{Config, Step};
use self::environment::EnvironmentConfig;
use self::verifier::VerifierConfig;
use super::{compose, files};
use crate::error::LoadError;
use crate::instance::{
    Gold, HiddenFiles, Instance, Issue, Limits, NetworkPolicy, RewardStrategy, SandboxSource,
    Stage, Verification, VerifierSandbox,
};

/// Where tests are put.
const TESTS: &str = "/tests";
/// Where the solution is put.
const SOLUTION: &str = "/solution";
/// Where rewards are written, the first that exists.
const REWARDS: [&str; 2] = ["/logs/verifier/reward.json", "/logs/verifier/reward.txt"];
/// The service that the agent works in.
const MAIN: &str = "main";
/// Fields that only such folders have: a `task.toml` without any of them is of another kind.
const OWN_FIELDS: [&str; 8] = [
    "schema_version",
    "task",
    "metadata",
    "agent",
    "environment",
    "steps",
    "source",
    "multi_step_reward_strategy",
];

pub(super) fn matches(folder: &Path) -> bool {
    let path = folder.join("task.toml");
    path.is_file()
        && match files::read_toml(&path) {
            Ok(fields) => {
                OWN_FIELDS.iter().any(|name| fields.has(name))
                    || fields.has("version") && folder.join("environment").is_dir()
            }
            // One that cannot be read is told as such, and not as missing.
            Err(_) => folder.join("environment").is_dir(),
        }
}

pub(super) fn read(folder: &Path) -> Result<Instance, LoadError> {
    let mut instance = Instance { id: files::folder_name(folder), ..Instance::default() };
    let config = Config::read(files::read_toml(&folder.join("task.toml"))?, &mut instance)?;
    let Config { environment, verifier, .. } = &config;
    instance.difficulty.clone_from(&config.difficulty);
    instance.tags.clone_from(&config.tags);
    instance.source = source(folder, environment, &mut instance)?;
    environment.put_into(&mut instance);
    instance.limits = Limits {
        agent_secs: config.agent.secs,
        test_secs: verifier.secs,
        build_secs: environment.build_secs,
        cpus: environment.cpus.or(instance.limits.cpus),
        memory_mb: environment.memory_mb.or(instance.limits.memory_mb),
        storage_mb: environment.storage_mb,
    };
    instance.network = config.agent.network.clone().unwrap_or_else(|| environment.network.clone());
    instance.agent_user.clone_from(&config.agent.user);
    instance.gold_env.clone_from(&config.solution_env);
    instance.artifacts.clone_from(&config.artifacts);
    if config.steps.is_empty() {
        single(folder, &config, &mut instance)?;
    } else {
        stages(folder, &config, &mut instance)?;
    }
    for name in ["trajectory.json"] {
        if folder.join(name).is_file() {
            instance
                .unsupported
                .push(format!("`{name}`: the agent does not begin in the midst of an episode"));
        }
    }
    Ok(instance)
}

/// A task that is judged once.
fn single(folder: &Path, config: &Config, instance: &mut Instance) -> Result<(), LoadError> {
    let path = folder.join("instruction.md");
    let text = files::read_text(&path, files::MAX_TEXT_BYTES)?;
    instance.issue = Issue { problem: without_canary(&text).to_owned(), ..Issue::default() };
    let place = verifier_place(folder, config, None, instance)?;
    instance.verifier_network = verifier_network(config, None, &place);
    instance.hidden.extend(hidden_tests(folder, &place, &folder.join("tests"))?);
    if !place.has_bundled_tests {
        require_test(&[folder.join("tests")], is_windows(config, None))?;
    }
    instance.verifier_sandbox = place.sandbox;
    instance.verifier_env.clone_from(&config.verifier.env);
    instance.verifier_user.clone_from(&config.verifier.user);
    instance.collect.clone_from(&config.verifier.collect);
    instance.verification = Some(verification());
    instance.gold = solution(folder, &folder.join("solution"))?;
    Ok(())
}

/// A task of several steps, each judged.
fn stages(folder: &Path, config: &Config, instance: &mut Instance) -> Result<(), LoadError> {
    instance.stage_reward = Some(config.reward_strategy.unwrap_or(RewardStrategy::Mean));
    instance.verifier_user.clone_from(&config.verifier.user);
    instance.collect.clone_from(&config.verifier.collect);
    let shared = files::collect(folder, &folder.join("tests"), TESTS)?;
    for step in &config.steps {
        let stage = stage(folder, config, step, shared.as_ref(), instance)?;
        instance.stages.push(stage);
    }
    Ok(())
}

fn stage(
    folder: &Path,
    config: &Config,
    step: &Step,
    shared: Option<&HiddenFiles>,
    instance: &mut Instance,
) -> Result<Stage, LoadError> {
    let own = folder.join("steps").join(&step.name);
    let text = files::read_text(&own.join("instruction.md"), files::MAX_TEXT_BYTES)?;
    let place = verifier_place(folder, config, Some(step), instance)?;
    // A step's tests lie over those of all steps.
    let mut hidden = shared
        .cloned()
        .unwrap_or_else(|| HiddenFiles { into: TESTS.to_owned(), ..HiddenFiles::default() });
    if let Some(found) = files::collect(folder, &own.join("tests"), TESTS)? {
        hidden.files.extend(found.files);
    }
    if !place.has_bundled_tests {
        require_test(&[own.join("tests"), folder.join("tests")], is_windows(config, Some(step)))?;
    }
    let workdir = instance.workdir.clone().or_else(|| instance.source.workdir());
    let is_known = workdir.is_some();
    let workdir = workdir.unwrap_or_else(|| "/app".to_owned());
    let staged = files::collect(folder, &own.join("workdir"), &workdir)?;
    if staged.is_some() && !is_known {
        instance.unsupported.push(format!(
            "`steps/{}/workdir`: nothing tells where commands start; it is put into `{workdir}`",
            step.name
        ));
    }
    let has_setup = staged.as_ref().is_some_and(|staged| staged.files.contains_key("setup.sh"));
    let mut env = config.verifier.env.clone();
    env.extend(step.verifier.env.clone());
    if own.join("trajectory.json").is_file() {
        instance.unsupported.push(format!(
            "`steps/{}/trajectory.json`: the agent does not begin in the midst of an episode",
            step.name
        ));
    }
    Ok(Stage {
        name: step.name.clone(),
        instruction: without_canary(&text).to_owned(),
        files: staged.into_iter().collect(),
        setup: match has_setup {
            true => {
                let place = workdir.replace('\'', "'\\''");
                vec![format!("cd '{place}' && bash setup.sh && rm -f setup.sh")]
            }
            false => Vec::new(),
        },
        health: step.health.clone(),
        hidden: if place.has_bundled_tests { Vec::new() } else { vec![hidden] },
        verification: Some(verification()),
        verifier_env: env,
        gold: solution(folder, &own.join("solution"))?,
        min_reward: step.min_reward.clone(),
        agent_secs: step.agent.secs.or(config.agent.secs),
        test_secs: step.verifier.secs,
        network: step.agent.network.clone(),
        agent_user: step.agent.user.clone(),
        verifier_network: verifier_network(config, Some(step), &place),
        verifier_sandbox: place.sandbox,
        verifier_user: step.verifier.user.clone(),
        artifacts: step.artifacts.clone(),
        collect: step.verifier.collect.clone(),
    })
}

/// What the sandbox of the agent is made of.
fn source(
    folder: &Path,
    environment: &EnvironmentConfig,
    instance: &mut Instance,
) -> Result<SandboxSource, LoadError> {
    let built = folder.join("environment");
    if environment.image.is_none() && !built.is_dir() {
        let detail =
            "expected a folder with a Dockerfile, or `environment.docker_image` in `task.toml`";
        return Err(LoadError::file(&built, detail));
    }
    let file = built.join("docker-compose.yaml");
    let mut context = (built, "Dockerfile".to_owned());
    if file.is_file() {
        let service = compose::read(&file, MAIN, instance)?;
        context = service.build.unwrap_or(context);
    }
    let mut source = std::mem::take(&mut instance.source);
    source.image = environment.image.clone().or(source.image);
    if environment.image.is_none() {
        source.dockerfile = compose::dockerfile(&context.0, &context.1)?;
    }
    if source.is_empty() {
        let detail = "expected a Dockerfile, and there is none; `environment.docker_image` in `task.toml` names no image";
        return Err(LoadError::file(&context.0.join(&context.1), detail));
    }
    Ok(source)
}

/// Where a verification runs.
struct VerifierPlace {
    /// A sandbox of its own, if it has one.
    sandbox: Option<VerifierSandbox>,
    /// What that can reach where nothing is said of the verification.
    network: Option<NetworkPolicy>,
    /// Whether its image has the tests.
    has_bundled_tests: bool,
}

/// The image of a step's verifier comes before the task's, and each before what its folder of tests builds; where there
/// is none of these, it is the agent's.
fn verifier_place(
    folder: &Path,
    config: &Config,
    step: Option<&Step>,
    instance: &mut Instance,
) -> Result<VerifierPlace, LoadError> {
    let own = step.and_then(|step| step.verifier.is_separate());
    if !own.unwrap_or_else(|| config.verifier.is_separate().unwrap_or(false)) {
        return Ok(VerifierPlace { sandbox: None, network: None, has_bundled_tests: false });
    }
    // Its limits, variables, working directory and network are those of one table, whichever has its image.
    let said = step.and_then(|step| step.verifier.environment.as_ref());
    let said = said.or(config.verifier.environment.as_ref());
    let (limits, env, workdir) = match said {
        Some(own) => (
            Limits {
                build_secs: own.build_secs,
                cpus: own.cpus,
                memory_mb: own.memory_mb,
                storage_mb: own.storage_mb,
                ..Limits::default()
            },
            own.env.clone(),
            own.workdir.clone(),
        ),
        None => (
            Limits { agent_secs: None, test_secs: None, ..instance.limits },
            instance.env.clone(),
            instance.workdir.clone(),
        ),
    };
    let network = Some(said.unwrap_or(&config.environment).network.clone());
    let place = |source: Option<SandboxSource>| VerifierPlace {
        has_bundled_tests: source.is_some(),
        sandbox: Some(VerifierSandbox { source, limits, env, workdir }),
        network,
    };
    let of_step =
        step.map(|step| (&step.verifier, folder.join("steps").join(&step.name).join("tests")));
    let candidates = of_step.into_iter().chain([(&config.verifier, folder.join("tests"))]);
    for (verifier, tests) in candidates {
        if let Some(image) =
            verifier.environment.as_ref().and_then(|environment| environment.image.clone())
        {
            return Ok(place(Some(SandboxSource {
                image: Some(image),
                ..SandboxSource::default()
            })));
        }
        if tests.join("docker-compose.yaml").is_file() {
            let why = "`tests/docker-compose.yaml`: services of a verifier are not started";
            instance.unsupported.push(why.to_owned());
        }
        if let Some(dockerfile) = compose::dockerfile(&tests, "Dockerfile")? {
            let source = SandboxSource { dockerfile: Some(dockerfile), ..SandboxSource::default() };
            return Ok(place(Some(source)));
        }
    }
    Ok(place(None))
}

/// What a verification can reach, where that is not what the agent can.
fn verifier_network(
    config: &Config,
    step: Option<&Step>,
    place: &VerifierPlace,
) -> Option<NetworkPolicy> {
    let own = step.and_then(|step| step.verifier.network.clone());
    let own = own.or_else(|| config.verifier.network.clone()).or_else(|| place.network.clone());
    let of_agent = step.and_then(|step| step.agent.network.as_ref());
    let of_agent = of_agent.or(config.agent.network.as_ref());
    // What is said of the agent alone does not hold for who judges it.
    own.or_else(|| of_agent.map(|_| config.environment.network.clone()))
}

/// The tests, unless the verifier's image has them.
fn hidden_tests(
    folder: &Path,
    place: &VerifierPlace,
    tests: &Path,
) -> Result<Option<HiddenFiles>, LoadError> {
    match place.has_bundled_tests {
        true => Ok(None),
        false => files::collect(folder, tests, TESTS),
    }
}

/// Whether the verification is run on Windows, where another script is needed.
fn is_windows(config: &Config, step: Option<&Step>) -> bool {
    let verifiers = step.map(|step| &step.verifier).into_iter().chain([&config.verifier]);
    let own = verifiers
        .filter_map(|verifier| verifier.environment.as_ref())
        .find_map(|environment| environment.is_windows);
    own.or(config.environment.is_windows).unwrap_or(false)
}

fn require_test(folders: &[PathBuf], is_windows: bool) -> Result<(), LoadError> {
    let name = if is_windows { "test.bat" } else { "test.sh" };
    match folders.iter().any(|folder| folder.join(name).is_file()) {
        true => Ok(()),
        false => Err(LoadError::file(
            &folders[0].join(name),
            "expected the script that judges, and there is none",
        )),
    }
}

fn verification() -> Verification {
    Verification::RewardFile {
        // Who may not change its mode runs it all the same.
        script: format!(
            "mkdir -p /logs/verifier\nchmod +x {TESTS}/test.sh 2>/dev/null\n\
             if [ -x {TESTS}/test.sh ]; then {TESTS}/test.sh; else bash {TESTS}/test.sh; fi\n"
        ),
        files: REWARDS.map(str::to_owned).into(),
    }
}

fn solution(folder: &Path, solution: &Path) -> Result<Option<Gold>, LoadError> {
    let Some(files) = files::collect(folder, solution, SOLUTION)? else {
        return Ok(None);
    };
    Ok(files
        .files
        .contains_key("solve.sh")
        .then(|| Gold::Script { command: format!("bash {SOLUTION}/solve.sh"), files: vec![files] }))
}

/// A text without the lines at its beginning by which others find it in what models were trained on.
fn without_canary(text: &str) -> &str {
    let mut rest = text;
    let next = |rest: &str| {
        rest.split_once('\n')
            .map_or((rest.len(), rest.len()), |(line, _)| (line.len(), line.len() + 1))
    };
    while !rest.is_empty() {
        let (end, after) = next(rest);
        let line = rest[..end].trim().to_ascii_lowercase();
        let is_comment = line.starts_with('#') || line.starts_with("<!--") && line.ends_with("-->");
        if !(is_comment && line.contains("canary")) {
            break;
        }
        rest = &rest[after..];
    }
    while !rest.is_empty() {
        let (end, after) = next(rest);
        if !rest[..end].trim().is_empty() {
            break;
        }
        rest = &rest[after..];
    }
    rest
}

/// Environment variables of a role, which may stand for variables of the host.
type Env = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_provenance_are_left_out() {
        let text = "<!-- my Canary GUID 1 -->\n# canary 2\n\n  \nDo it.\n# canary stays\n";
        assert_eq!(without_canary(text), "Do it.\n# canary stays\n");
        assert_eq!(without_canary("# Title\n"), "# Title\n");
        assert_eq!(without_canary("# canary"), "");
    }
}
