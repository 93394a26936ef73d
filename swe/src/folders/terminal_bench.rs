//! Task folders of terminal-bench 1.

use std::path::Path;

use serde_json::Value;

use super::{compose, files};
use crate::columns::{Columns, described};
use crate::error::LoadError;
use crate::instance::{
    Gold, HiddenFile, HiddenFiles, Instance, Issue, Limits, NetworkPolicy, ParserName,
    Verification, whole_secs,
};
use crate::log::Origin;

/// Seconds of the agent where a task does not say.
const AGENT_SECS: f64 = 360.0;
/// Seconds of the tests where a task does not say.
const TEST_SECS: f64 = 60.0;
/// Where tests are put.
const TESTS: &str = "/tests";
/// The parsers that its tasks name.
const PARSERS: [&str; 5] = ["pytest", "swebench", "mlebench", "swelancer", "sweperf"];

pub(super) fn matches(folder: &Path) -> bool {
    folder.join("task.yaml").is_file()
}

pub(super) fn read(folder: &Path) -> Result<Instance, LoadError> {
    let mut fields = files::read_yaml(&folder.join("task.yaml"))?;
    let mut instance = Instance {
        id: files::folder_name(folder),
        issue: Issue { problem: instruction(&mut fields)?, ..Issue::default() },
        difficulty: fields.optional_text("difficulty")?,
        language: fields.optional_text("language")?.map(|name| name.to_lowercase()),
        tags: fields.optional_list("tags")?.unwrap_or_default(),
        // Its containers reach whatever their host reaches.
        network: NetworkPolicy::Full,
        ..Instance::default()
    };
    instance.tags.extend(fields.optional_text("category")?);
    let agent = fields.number("max_agent_timeout_sec")?.unwrap_or(AGENT_SECS);
    let test = fields.number("max_test_timeout_sec")?.unwrap_or(TEST_SECS);
    for (name, secs) in [("max_agent_timeout_sec", agent), ("max_test_timeout_sec", test)] {
        if whole_secs(secs).is_none() {
            return Err(fields
                .wrong(name, format!("expected seconds of at most thirty days, found {secs}")));
        }
    }
    instance.limits =
        Limits { agent_secs: whole_secs(agent), test_secs: whole_secs(test), ..Limits::default() };
    if fields.flag("run_tests_in_same_shell")? {
        let why = "`run_tests_in_same_shell`: tests run in a shell of their own, without what the agent set in its";
        instance.unsupported.push(why.to_owned());
    }
    fields.unsupported("env_name", "conda environments are not activated", &mut instance);
    // Who made it, how long people take, and what is recorded.
    fields.harmless(&[
        "author",
        "author_name",
        "author_email",
        "estimated_duration_sec",
        "expert_time_estimate_min",
        "junior_time_estimate_min",
        "disable_asciinema",
    ]);
    let parser = fields.choice("parser_name", &PARSERS)?.unwrap_or("pytest");
    source(folder, &mut instance)?;
    tests(folder, parser, &mut instance)?;
    instance.gold = solution(folder, &mut instance)?;
    fields.finish(&mut instance);
    Ok(instance)
}

/// The instruction; tasks with several name one of them by its key.
fn instruction(fields: &mut Columns) -> Result<String, LoadError> {
    let text = fields.text("instruction")?;
    let mut found = None;
    for mut description in fields.objects("descriptions", None)? {
        let (key, content) = (description.text("key")?, description.text("description")?);
        if key == text {
            found = Some(content);
        }
    }
    Ok(found.unwrap_or(text))
}

fn source(folder: &Path, instance: &mut Instance) -> Result<(), LoadError> {
    let file = folder.join("docker-compose.yaml");
    let built = match file.is_file() {
        true => compose::read(&file, "client", instance)?.build,
        false => Some((folder.to_owned(), "Dockerfile".to_owned())),
    };
    if let Some((context, name)) = built {
        instance.source.dockerfile = compose::dockerfile(&context, &name)?;
        if instance.source.dockerfile.is_none() {
            return Err(LoadError::file(
                &context.join(&name),
                "expected a Dockerfile, and there is none",
            ));
        }
    }
    Ok(())
}

fn tests(folder: &Path, parser: &str, instance: &mut Instance) -> Result<(), LoadError> {
    let mut hidden = files::collect(folder, &folder.join("tests"), TESTS)?
        .unwrap_or_else(|| HiddenFiles { into: TESTS.to_owned(), ..HiddenFiles::default() });
    let run = folder.join("run-tests.sh");
    if !run.is_file() {
        return Err(LoadError::file(
            &run,
            "expected the script that runs the tests, and there is none",
        ));
    }
    hidden.files.insert(
        "run-tests.sh".to_owned(),
        HiddenFile::text(files::read_text(&run, files::MAX_TEXT_BYTES)?),
    );
    instance.hidden.push(hidden);
    instance.env.insert("TEST_DIR".to_owned(), TESTS.to_owned());
    instance.verification = Some(Verification::AllTestsPass {
        script: format!("bash {TESTS}/run-tests.sh\n"),
        parser: ParserName { origin: Origin::TerminalBench, name: parser.to_owned() },
    });
    Ok(())
}

/// The solution: a script, or keys that are typed.
fn solution(folder: &Path, instance: &mut Instance) -> Result<Option<Gold>, LoadError> {
    const INTO: &str = "/oracle";
    let script = match files::optional_text(&folder.join("solution.sh"))? {
        Some(script) => script,
        None => match folder.join("solution.yaml") {
            path if path.is_file() => match typed(&path)? {
                Some(script) => script,
                None => {
                    instance.unsupported.push(
                        "`solution.yaml`: keys that are no whole commands are not typed".to_owned(),
                    );
                    return Ok(None);
                }
            },
            _ => return Ok(None),
        },
    };
    let files = [("solution.sh".to_owned(), HiddenFile::text(script))].into();
    let files = vec![HiddenFiles { into: INTO.to_owned(), files }];
    Ok(Some(Gold::Script { command: format!("bash {INTO}/solution.sh"), files }))
}

/// Typed commands as a script; absent where they are more than commands one after the other.
fn typed(path: &Path) -> Result<Option<String>, LoadError> {
    let text = files::read_text(path, files::MAX_TEXT_BYTES)?;
    let entries: Vec<Value> = yaml_serde::from_str(&text)
        .map_err(|error| LoadError::file(path, format!("expected a list of commands: {error}")))?;
    let mut script = String::new();
    for entry in entries {
        let Some(command) = entry.get("command").and_then(Value::as_str) else {
            return Err(LoadError::file(
                path,
                format!("expected a `command`, found {}", described(&entry)),
            ));
        };
        let is = |name: &str, default| entry.get(name).and_then(Value::as_bool).unwrap_or(default);
        // One that is not waited for, or not ended, is for a program that reads keys.
        if !is("append_enter", true) || !is("block", false) {
            return Ok(None);
        }
        script.push_str(command);
        script.push('\n');
    }
    Ok(Some(script))
}
