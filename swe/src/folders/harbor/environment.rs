use super::{Env, config, hosts, mcp};
use crate::columns::Columns;
use crate::error::{LoadError, shortened};
use crate::instance::{HealthCheck, Instance, McpServer, NetworkPolicy};

/// What a `task.toml` says of a sandbox.
pub(super) struct EnvironmentConfig {
    pub(super) image: Option<String>,
    pub(super) build_secs: Option<u64>,
    pub(super) cpus: Option<f64>,
    pub(super) memory_mb: Option<u64>,
    pub(super) storage_mb: Option<u64>,
    pub(super) network: NetworkPolicy,
    pub(super) workdir: Option<String>,
    /// Whether it is one of Windows; absent where nothing is said.
    pub(super) is_windows: Option<bool>,
    pub(super) env: Env,
    mcp_servers: Vec<McpServer>,
    health: Option<HealthCheck>,
}

impl EnvironmentConfig {
    pub(super) fn read(fields: &mut Columns, instance: &mut Instance) -> Result<Self, LoadError> {
        let found = Self {
            image: fields.optional_text("docker_image")?,
            build_secs: config::secs(fields, "build_timeout_sec", instance)?,
            cpus: cpus(fields, instance)?,
            memory_mb: size(fields, "memory", "memory_mb", instance)?,
            storage_mb: size(fields, "storage", "storage_mb", instance)?,
            network: network(fields)?,
            workdir: workdir(fields, instance)?,
            is_windows: is_windows(fields, instance)?,
            env: fields.texts("env")?,
            mcp_servers: mcp::read(fields, instance)?,
            health: config::health(fields, instance)?,
        };
        accelerators(fields, instance)?;
        if fields.optional_text("skills_dir")?.is_some() {
            instance.unsupported.push(format!(
                "`{}`: agents have no folder of skills",
                fields.full_name("skills_dir")
            ));
        }
        std::mem::replace(fields, fields.empty()).finish(instance);
        Ok(found)
    }

    /// What holds for the instance as a whole.
    pub(super) fn put_into(&self, instance: &mut Instance) {
        if self.workdir.is_some() {
            instance.workdir.clone_from(&self.workdir);
        }
        instance.env.extend(self.env.clone());
        instance.mcp_servers.clone_from(&self.mcp_servers);
        instance.health.clone_from(&self.health);
    }
}

/// Where commands start; what no engine takes is told.
fn workdir(fields: &mut Columns, instance: &mut Instance) -> Result<Option<String>, LoadError> {
    let found = fields.optional_text("workdir")?;
    let is_fine = |path: &String| path.starts_with('/') && path.split('/').all(|part| part != "..");
    if let Some(path) = found.as_ref().filter(|path| !is_fine(path)) {
        let (name, path) = (fields.full_name("workdir"), shortened(path));
        instance.unsupported.push(format!("`{name}`: `{path}` is not absolute, or has `..`"));
    }
    Ok(found.filter(is_fine))
}

fn is_windows(fields: &mut Columns, instance: &mut Instance) -> Result<Option<bool>, LoadError> {
    match fields.take("os") {
        None => return Ok(None),
        Some(serde_json::Value::String(os)) => fields.put("os", os.to_lowercase()),
        Some(other) => fields.put("os", other),
    }
    let is_windows = fields.choice("os", &["linux", "windows"])? == Some("windows");
    if is_windows {
        instance
            .unsupported
            .push(format!("`{}`: there are no sandboxes of Windows", fields.full_name("os")));
    }
    Ok(Some(is_windows))
}

fn cpus(fields: &mut Columns, instance: &mut Instance) -> Result<Option<f64>, LoadError> {
    match fields.number("cpus")? {
        Some(cpus) if !cpus.is_finite() => {
            Err(fields.wrong("cpus", format!("expected a finite number, found {cpus}")))
        }
        Some(cpus) if cpus <= 0.0 => {
            instance
                .unsupported
                .push(format!("`{}`: {cpus} is no number of processors", fields.full_name("cpus")));
            Ok(None)
        }
        cpus => Ok(cpus),
    }
}

/// MiB, also by the older name, whose texts are as `512M` or `2G`.
fn size(
    fields: &mut Columns,
    old: &str,
    new: &str,
    instance: &mut Instance,
) -> Result<Option<u64>, LoadError> {
    let by_text = match fields.take(old) {
        Some(serde_json::Value::String(text)) => match megabytes(&text) {
            Some(found) => Some(found),
            None => {
                return Err(fields.wrong(
                    old,
                    format!("expected a size as `512M` or `2G`, found `{}`", shortened(&text)),
                ));
            }
        },
        // Whatever is no text is passed over, as its own model does.
        Some(_) => {
            instance
                .unsupported
                .push(format!("`{}`: it is no text as `2G`", fields.full_name(old)));
            None
        }
        None => None,
    };
    let found = match (by_text, fields.integer(new)?) {
        (Some(old_mb), Some(new_mb)) if old_mb != new_mb => {
            let detail =
                format!("expected the same size under both names, found {old_mb} and {new_mb} MiB");
            return Err(fields.wrong(new, detail));
        }
        (old_mb, new_mb) => new_mb.or(old_mb),
    };
    match found {
        Some(megabytes) if megabytes <= 0 => {
            instance
                .unsupported
                .push(format!("`{}`: {megabytes} MiB are no size", fields.full_name(new)));
            Ok(None)
        }
        found => Ok(found.and_then(|megabytes| u64::try_from(megabytes).ok())),
    }
}

fn megabytes(text: &str) -> Option<i64> {
    let text = text.trim().to_uppercase();
    let (last, factor) = [('G', 1024.0), ('M', 1.0), ('K', 1.0 / 1024.0)]
        .into_iter()
        .find(|(letter, _)| text.ends_with(*letter))?;
    let number: f64 = text.strip_suffix(last)?.trim().parse().ok()?;
    let megabytes = (number * factor).trunc();
    (megabytes.abs() < 1e15).then_some(megabytes as i64)
}

/// The network of a sandbox: everything, unless it says otherwise, also by the older field.
fn network(fields: &mut Columns) -> Result<NetworkPolicy, LoadError> {
    let old = fields.optional_flag("allow_internet")?;
    let is_explicit = fields.has("network_mode") || fields.has("allowed_hosts");
    match (hosts::baseline(fields)?, old) {
        (_, Some(false)) if !is_explicit => Ok(NetworkPolicy::None),
        (network, _) => Ok(network),
    }
}

/// What no sandbox has here.
fn accelerators(fields: &mut Columns, instance: &mut Instance) -> Result<(), LoadError> {
    if fields.integer("gpus")?.is_some_and(|gpus| gpus != 0) {
        instance
            .unsupported
            .push(format!("`{}`: sandboxes have no accelerators", fields.full_name("gpus")));
    }
    if fields.optional_list("gpu_types")?.is_some_and(|types| !types.is_empty()) {
        instance
            .unsupported
            .push(format!("`{}`: sandboxes have no accelerators", fields.full_name("gpu_types")));
    }
    if let Some(mut tpu) = fields.optional_object("tpu")? {
        if tpu.text("type")?.is_empty() {
            return Err(tpu.wrong("type", "expected a type, found an empty text"));
        }
        let topology = tpu.text("topology")?;
        let axes: Vec<&str> = topology.trim().split('x').collect();
        let is_axis = |axis: &&str| {
            !axis.starts_with('0')
                && !axis.is_empty()
                && axis.bytes().all(|byte| byte.is_ascii_digit())
        };
        if axes.len() < 2 || !axes.iter().all(is_axis) {
            return Err(tpu.wrong(
                "topology",
                format!("expected dimensions as `2x4`, found `{}`", shortened(&topology)),
            ));
        }
        tpu.finish(instance);
        instance
            .unsupported
            .push(format!("`{}`: sandboxes have no accelerators", fields.full_name("tpu")));
    }
    Ok(())
}
