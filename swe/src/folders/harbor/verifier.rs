use super::environment::EnvironmentConfig;
use super::{Env, config, hosts, names};
use crate::columns::Columns;
use crate::error::{LoadError, shortened};
use crate::instance::{CollectHook, Instance, NetworkPolicy};

/// Seconds of a verification where a task does not say.
const SECS: u64 = 600;

/// What a `task.toml` says of a verification.
pub(super) struct VerifierConfig {
    pub(super) secs: Option<u64>,
    pub(super) env: Env,
    pub(super) user: Option<String>,
    pub(super) network: Option<NetworkPolicy>,
    pub(super) environment: Option<EnvironmentConfig>,
    pub(super) collect: Vec<CollectHook>,
    mode: Option<Mode>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Shared,
    Separate,
}

impl VerifierConfig {
    pub(super) fn read_field(
        fields: &mut Columns,
        instance: &mut Instance,
    ) -> Result<Self, LoadError> {
        let mut own = fields.optional_object("verifier")?.unwrap_or_else(|| fields.empty());
        let secs = match own.has("timeout_sec") {
            true => config::secs(&mut own, "timeout_sec", instance)?,
            false => Some(SECS),
        };
        let mode = own.choice("environment_mode", &["shared", "separate"])?;
        let mode = mode.map(|mode| if mode == "shared" { Mode::Shared } else { Mode::Separate });
        let environment = match own.optional_object("environment")? {
            None => None,
            Some(mut environment) => Some(EnvironmentConfig::read(&mut environment, instance)?),
        };
        if mode == Some(Mode::Shared) && environment.is_some() {
            let detail = "`shared` and an environment of its own contradict each other: leave out one of them";
            return Err(own.wrong("environment_mode", detail));
        }
        let found = Self {
            secs,
            env: own.texts("env")?,
            user: config::user(&mut own)?,
            network: hosts::phase(&mut own)?,
            environment,
            collect: collect(&mut own, instance)?,
            mode,
        };
        own.finish(instance);
        Ok(found)
    }

    /// Whether it has a sandbox of its own; absent where it does not say.
    pub(super) fn is_separate(&self) -> Option<bool> {
        match (self.mode, &self.environment) {
            (Some(mode), _) => Some(mode == Mode::Separate),
            (None, Some(_)) => Some(true),
            (None, None) => None,
        }
    }
}

fn collect(fields: &mut Columns, instance: &mut Instance) -> Result<Vec<CollectHook>, LoadError> {
    let mut found = Vec::new();
    for mut hook in fields.objects("collect", None)? {
        let own = CollectHook {
            command: hook.text("command")?,
            timeout_secs: hook.number("timeout_sec")?.unwrap_or(60.0),
            user: config::user(&mut hook)?,
        };
        let service = match hook.has("service") {
            true => hook.text("service")?.trim().to_owned(),
            false => super::MAIN.to_owned(),
        };
        if !names::is_service(&service) {
            return Err(
                hook.wrong("service", format!("`{}` is no name of a service", shortened(&service)))
            );
        }
        hook.finish(instance);
        match service == super::MAIN {
            true => found.push(own),
            false => instance.unsupported.push(format!(
                "`verifier.collect`: nothing is run in the service `{}`",
                shortened(&service)
            )),
        }
    }
    Ok(found)
}
