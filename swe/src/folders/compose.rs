//! What a file of Docker Compose says of the service that an agent works in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::files;
use crate::columns::{Columns, described};
use crate::error::{LoadError, shortened};
use crate::instance::{Compose, Dockerfile, Instance};

/// Variables that harnesses put in for themselves: what names them changes nothing of a task.
const OWN_VARIABLES: [&str; 7] = [
    "T_BENCH_",
    "CONTEXT_DIR",
    "MAIN_IMAGE_NAME",
    "TEST_DIR",
    "CPUS",
    "MEMORY",
    "COMPOSE_PROJECT_NAME",
];

/// What is read beside the fields of the instance that it changes.
pub(super) struct MainService {
    /// The folder in which its image is built, and the Dockerfile's name, if it is built.
    pub(super) build: Option<(PathBuf, String)>,
}

/// Reads a file of Docker Compose with the service `main` for the agent; whatever else it has is told as unsupported.
pub(super) fn read(
    path: &Path,
    main: &str,
    instance: &mut Instance,
) -> Result<MainService, LoadError> {
    let mut fields = files::read_yaml(path)?;
    let mut services = fields.object("services")?;
    let name = match services.has(main) {
        true => main.to_owned(),
        false => services
            .first_name()
            .ok_or_else(|| services.wrong(main, "expected a service, and there is none"))?,
    };
    let mut service = services.optional_object(&name)?.unwrap_or_else(|| services.empty());
    let mut rest = services.into_row();
    rest.retain(|_, value| !value.is_null());
    for other in rest.keys() {
        let (file, other) = (file_name(path), shortened(other));
        instance
            .unsupported
            .push(format!("`{file}`: the service `{other}` beside `{name}` is not started"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let build = build(&mut service, folder)?;
    let mut compose = Compose { service: name, ..Compose::default() };
    compose.command = command(&mut service)?;
    compose.env = environment(&mut service)?;
    if let Some(image) = service.optional_text("image")?
        && !is_own(&image)
    {
        instance.source.image.get_or_insert(image);
    }
    if let Some(workdir) = service.optional_text("working_dir")?
        && !is_own(&workdir)
    {
        instance.workdir.get_or_insert(workdir);
    }
    limits(&mut service, instance)?;
    if let Some(user) = service.optional_word("user")? {
        instance.agent_user.get_or_insert(user);
    }
    volumes(&mut service, instance);
    if service.optional_text("network_mode")?.as_deref() == Some("none") {
        instance.network = crate::NetworkPolicy::None;
    }
    service.harmless(&[
        "container_name",
        "tty",
        "stdin_open",
        "expose",
        "hostname",
        "init",
        "restart",
        "pull_policy",
    ]);
    // What it waits for is told with the services themselves.
    service.harmless(&["depends_on"]);
    service.finish(instance);
    fields.harmless(&["version", "name"]);
    fields.finish(instance);
    instance.source.compose = Some(compose);
    Ok(MainService { build })
}

/// The Dockerfile of a folder.
pub(super) fn dockerfile(folder: &Path, name: &str) -> Result<Option<Dockerfile>, LoadError> {
    let text = files::optional_text(&folder.join(name))?;
    text.map(|text| Ok(Dockerfile { text, context: Some(files::absolute(folder)?) })).transpose()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_own(text: &str) -> bool {
    text.strip_prefix("${")
        .is_some_and(|name| OWN_VARIABLES.iter().any(|own| name.starts_with(own)))
}

fn build(service: &mut Columns, folder: &Path) -> Result<Option<(PathBuf, String)>, LoadError> {
    let (context, name) = match service.take("build") {
        None => return Ok(None),
        Some(Value::String(context)) => (context, None),
        Some(object @ Value::Object(_)) => {
            service.put("build", object);
            let mut build = service.object("build")?;
            let context = build.optional_text("context")?.unwrap_or_else(|| ".".to_owned());
            (context, build.optional_text("dockerfile")?)
        }
        Some(other) => {
            return Err(service.wrong(
                "build",
                format!("expected a folder or an object, found {}", described(&other)),
            ));
        }
    };
    let context = if is_own(&context) { ".".to_owned() } else { context };
    let name = name.unwrap_or_else(|| "Dockerfile".to_owned());
    for path in [&context, &name] {
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            let detail = format!("`{}` leads out of the task's folder", shortened(path));
            return Err(service.wrong("build", detail));
        }
    }
    Ok(Some((folder.join(context.trim_start_matches("./")), name)))
}

/// The command, unless it is one that only waits.
fn command(service: &mut Columns) -> Result<Vec<String>, LoadError> {
    let words = match service.take("command") {
        None => return Ok(Vec::new()),
        Some(Value::String(text)) => vec!["sh".to_owned(), "-c".to_owned(), text],
        Some(list) => {
            service.put("command", list);
            service.list("command")?
        }
    };
    let waits = words.last().is_some_and(|last| {
        ["sleep infinity", "infinity", "tail -f /dev/null", "/dev/null"].contains(&last.as_str())
    });
    Ok(if waits { Vec::new() } else { words })
}

/// Environment variables, as a list of `NAME=VALUE` or by name. One without a value is the host's.
fn environment(service: &mut Columns) -> Result<BTreeMap<String, String>, LoadError> {
    let mut env = BTreeMap::new();
    match service.take("environment") {
        None => {}
        Some(Value::Array(entries)) => {
            for entry in entries {
                let Value::String(entry) = entry else {
                    let detail =
                        format!("expected texts `NAME=VALUE`, found {}", described(&entry));
                    return Err(service.wrong("environment", detail));
                };
                match entry.split_once('=') {
                    Some((name, value)) => env.insert(name.to_owned(), value.to_owned()),
                    None => env.insert(entry.clone(), format!("${{{entry}}}")),
                };
            }
        }
        Some(Value::Object(entries)) => {
            for (name, value) in entries {
                let text = match value {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    Value::Bool(is) => is.to_string(),
                    Value::Null => format!("${{{name}}}"),
                    other => {
                        let detail = format!(
                            "expected texts by name, found {} for `{name}`",
                            described(&other)
                        );
                        return Err(service.wrong("environment", detail));
                    }
                };
                env.insert(name, text);
            }
        }
        Some(other) => {
            return Err(service.wrong(
                "environment",
                format!("expected a list or an object, found {}", described(&other)),
            ));
        }
    }
    env.retain(|_, value| !is_own(value));
    Ok(env)
}

fn limits(service: &mut Columns, instance: &mut Instance) -> Result<(), LoadError> {
    let Some(mut deploy) = service.optional_object("deploy")? else {
        return Ok(());
    };
    if let Some(mut resources) = deploy.optional_object("resources")? {
        if let Some(mut limits) = resources.optional_object("limits")? {
            if let Some(cpus) = limits.optional_word("cpus")?
                && !is_own(&cpus)
            {
                let number = cpus
                    .parse()
                    .map_err(|_| limits.wrong("cpus", "expected a number of processors"))?;
                instance.limits.cpus.get_or_insert(number);
            }
            if let Some(memory) = limits.optional_word("memory")?
                && !is_own(&memory)
            {
                let bytes = memory_mb(&memory)
                    .ok_or_else(|| limits.wrong("memory", "expected a size as `512M` or `2G`"))?;
                instance.limits.memory_mb.get_or_insert(bytes);
            }
            limits.finish(instance);
        }
        resources.unsupported("reservations", "nothing is reserved", instance);
        resources.finish(instance);
    }
    deploy.finish(instance);
    Ok(())
}

/// MiB of a size in Docker's notation.
fn memory_mb(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix('b').unwrap_or(&text);
    let (number, bytes) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1024.0),
        b'm' => (&text[..text.len() - 1], 1_048_576.0),
        b'g' => (&text[..text.len() - 1], 1_073_741_824.0),
        _ => (text, 1.0),
    };
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| (number * bytes / 1_048_576.0).ceil() as u64)
}

/// Volumes that harnesses take logs out by are their own; others are not mounted.
fn volumes(service: &mut Columns, instance: &mut Instance) {
    match service.take("volumes") {
        None => {}
        Some(Value::Array(volumes)) => {
            for volume in volumes {
                match volume.as_str() {
                    Some(text) if is_own(text) => {}
                    Some(text) => {
                        instance
                            .unsupported
                            .push(format!("`volumes`: `{}` is not mounted", shortened(text)));
                    }
                    None => {
                        instance.unsupported.push("`volumes`: an object is not mounted".to_owned())
                    }
                }
            }
        }
        Some(other) => {
            instance.unsupported.push(format!("`volumes`: {} is not mounted", described(&other)))
        }
    }
}
