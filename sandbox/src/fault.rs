//! Who has to answer for a sandbox that could not do its part while an agent worked in it.
//!
//! An agent may fill its sandbox's memory, disk or process table, kill its shell, take away the
//! programs that a shell needs, or make everything hang. If that counted as trouble of the backend, an
//! agent could have its episode played anew as often as it liked. So trouble is the backend's only
//! where something speaks against the backend or the host; otherwise it is the agent's own.

use std::time::Duration;

use tokio::time::timeout;

use crate::{Death, Sandbox, SandboxError};

/// How long a sandbox may take to say how it is.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);

/// Who has to answer for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Whoever gave the commands: the episode is scored.
    Agent,
    /// The backend, the host or the caller of this crate: the episode is played anew and never scored.
    Infrastructure,
}

/// How a sandbox is after it could not do its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Vitals {
    /// Its backend says that it is there.
    #[default]
    Lives,
    /// Its backend says that it is gone.
    Gone(Death),
    /// Its backend says nothing, or that it cannot tell.
    Unknown,
}

/// What can be found out after a sandbox could not do its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence {
    /// How it is.
    pub vitals: Vitals,
    /// Whether it has a limit of memory of its own.
    pub has_memory_limit: bool,
    /// Whether what it wrote has filled its disk, or the host's where it has no limit of its own.
    pub filled_disk: bool,
    /// Whether the host's disk, on which it writes, is full, and not by what it wrote.
    pub is_host_disk_full: bool,
    /// Whether a fresh sandbox of the same spec could do the same at the same time; absent where that
    /// was not tried, or none was to be had.
    pub control: Option<bool>,
}

impl Evidence {
    /// What a sandbox and its backend say now; `control` is for the caller to try.
    pub async fn of(sandbox: &dyn Sandbox) -> Self {
        let vitals = match timeout(SIGN_OF_LIFE, sandbox.check()).await {
            Ok(Ok(())) => Vitals::Lives,
            Ok(Err(SandboxError::Died { death, .. })) => Vitals::Gone(death),
            Ok(Err(_)) | Err(_) => Vitals::Unknown,
        };
        let limits = &sandbox.spec().limits;
        let stats = match vitals {
            Vitals::Lives => timeout(SIGN_OF_LIFE, sandbox.stats()).await.ok(),
            _ => None,
        };
        let stats = stats.and_then(Result::ok).unwrap_or_default();
        Self {
            vitals,
            has_memory_limit: limits.memory_bytes.is_some(),
            filled_disk: stats.has_filled_disk(limits),
            is_host_disk_full: stats.is_host_disk_full(limits),
            control: None,
        }
    }
}

impl SandboxError {
    /// Who has to answer for this error, which came while an agent worked in the sandbox or its work was
    /// judged. Before the agent began, everything is the infrastructure's.
    ///
    /// | error | further evidence | fault |
    /// | --- | --- | --- |
    /// | the backend cannot be used | | infrastructure |
    /// | died: killed, daemon gone, expired, closed, out of the host's memory | | infrastructure |
    /// | died: out of memory | a limit of its own | agent |
    /// | | no limit of its own | infrastructure |
    /// | its own limit of processes or of its disk is used up | | agent |
    /// | the disk is full | it has filled it | agent |
    /// | | it has not | infrastructure |
    /// | the port of an allow-list's proxy is held by what runs in it | | agent |
    /// | a path that is missing or refused, something too large | | agent |
    /// | nobody listens on a port | | agent |
    /// | getting or making a sandbox, an image, set-up, a file of the host | | infrastructure |
    /// | anything else, and whatever took too long | it is gone | as it died |
    /// | | its backend cannot tell how it is | infrastructure |
    /// | | it has filled the disk | agent |
    /// | | the disk of the host is full otherwise | infrastructure |
    /// | | a fresh sandbox cannot do it either | infrastructure |
    /// | | a fresh sandbox can do it, or none was to be had | agent |
    pub fn fault(&self, evidence: &Evidence) -> Fault {
        let agent_if = |is_agent: bool| if is_agent { Fault::Agent } else { Fault::Infrastructure };
        let of_death = |death: Death| match death {
            Death::OutOfMemory => agent_if(evidence.has_memory_limit),
            Death::HostOutOfMemory
            | Death::Killed
            | Death::DaemonGone
            | Death::Expired
            | Death::Closed => Fault::Infrastructure,
        };
        match self {
            Self::Died { death, .. } => of_death(*death),
            Self::UsedUp { .. }
            | Self::PortTaken { .. }
            | Self::NoSpace { .. }
            | Self::NotListening { .. }
            | Self::NotFound { .. }
            | Self::PathRefused { .. }
            | Self::TooLarge { .. } => Fault::Agent,
            Self::DiskFull { .. } => agent_if(evidence.filled_disk),
            Self::Unavailable { .. }
            | Self::UnknownBackend { .. }
            | Self::InvalidSpec { .. }
            | Self::ImageMissing { .. }
            | Self::ImageBuild { .. }
            | Self::CreateTimedOut { .. }
            | Self::Setup { .. }
            | Self::Saturated { .. }
            | Self::Host { .. } => Fault::Infrastructure,
            Self::Unsupported { .. }
            | Self::ConnectRefused { .. }
            | Self::ConnectTimedOut { .. }
            | Self::Backend { .. } => match evidence.vitals {
                Vitals::Gone(death) => of_death(death),
                Vitals::Unknown => Fault::Infrastructure,
                Vitals::Lives if evidence.is_host_disk_full => Fault::Infrastructure,
                Vitals::Lives => agent_if(evidence.filled_disk || evidence.control != Some(false)),
            },
        }
    }

    /// Whether [`SandboxError::fault`] depends on what a fresh sandbox can do.
    pub fn needs_control(&self, evidence: &Evidence) -> bool {
        let with = |control| self.fault(&Evidence { control: Some(control), ..*evidence });
        with(true) != with(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::fake::FakeBackend;
    use crate::{ExecEnd, Image, Limits, SandboxBackend, SandboxSpec, SandboxStats};

    fn died(death: Death) -> SandboxError {
        SandboxError::Died { sandbox: "s".into(), death }
    }

    fn backend() -> SandboxError {
        SandboxError::Backend { doing: "start a shell".into(), source: "it was not there".into() }
    }

    fn unsupported() -> SandboxError {
        SandboxError::Unsupported {
            backend: "b",
            what: "open a shell in an image without `cat`".into(),
        }
    }

    fn lives() -> Evidence {
        Evidence { has_memory_limit: true, ..Evidence::default() }
    }

    fn with(vitals: Vitals) -> Evidence {
        Evidence { vitals, ..lives() }
    }

    #[test]
    fn every_row_of_the_table_holds() {
        use Fault::{Agent, Infrastructure};
        let text = String::new;
        let no_limit = Evidence { has_memory_limit: false, ..lives() };
        let full = Evidence { filled_disk: true, ..lives() };
        let host_full = Evidence { is_host_disk_full: true, ..lives() };
        let control = |control| Evidence { control: Some(control), ..lives() };
        let unavailable = SandboxError::Unavailable { backend: "b", reason: text(), hint: text() };
        let disk_full = || SandboxError::DiskFull { doing: text() };
        let rows = [
            (unavailable, lives(), Infrastructure),
            (died(Death::Killed), lives(), Infrastructure),
            (died(Death::DaemonGone), lives(), Infrastructure),
            (died(Death::Expired), lives(), Infrastructure),
            (died(Death::Closed), lives(), Infrastructure),
            (died(Death::HostOutOfMemory), lives(), Infrastructure),
            (died(Death::OutOfMemory), lives(), Agent),
            (died(Death::OutOfMemory), no_limit, Infrastructure),
            (SandboxError::UsedUp { what: "processes" }, lives(), Agent),
            (SandboxError::NoSpace { path: text() }, lives(), Agent),
            (disk_full(), full, Agent),
            (disk_full(), lives(), Infrastructure),
            (SandboxError::NotFound { path: text() }, lives(), Agent),
            (SandboxError::NotListening { port: 80 }, with(Vitals::Unknown), Agent),
            (
                SandboxError::ConnectTimedOut { port: 80, after: Duration::from_secs(10) },
                control(false),
                Infrastructure,
            ),
            (
                SandboxError::ConnectRefused { port: 80, source: std::io::ErrorKind::Other.into() },
                lives(),
                Agent,
            ),
            (SandboxError::PathRefused { path: text(), reason: text() }, lives(), Agent),
            (SandboxError::TooLarge { path: text(), limit_bytes: 1 }, lives(), Agent),
            (SandboxError::Saturated { reason: text() }, lives(), Infrastructure),
            (SandboxError::CreateTimedOut { seconds: 1 }, lives(), Infrastructure),
            (SandboxError::ImageBuild { image: text(), reason: text() }, lives(), Infrastructure),
            (
                SandboxError::ImageMissing { image: text(), reason: text(), hint: text() },
                lives(),
                Infrastructure,
            ),
            (
                SandboxError::Setup { command: text(), end: ExecEnd::TimedOut, output: text() },
                lives(),
                Infrastructure,
            ),
            (SandboxError::InvalidSpec { problems: Vec::new() }, lives(), Infrastructure),
            (
                SandboxError::UnknownBackend { name: text(), known: Vec::new() },
                lives(),
                Infrastructure,
            ),
            (
                SandboxError::Host {
                    doing: "read",
                    path: "a".into(),
                    source: std::io::ErrorKind::NotFound.into(),
                },
                lives(),
                Infrastructure,
            ),
            (backend(), with(Vitals::Gone(Death::OutOfMemory)), Agent),
            (backend(), with(Vitals::Gone(Death::Killed)), Infrastructure),
            (backend(), with(Vitals::Unknown), Infrastructure),
            (backend(), Evidence { control: Some(false), ..full }, Agent),
            (backend(), control(false), Infrastructure),
            (backend(), control(true), Agent),
            (backend(), lives(), Agent),
            (backend(), host_full, Infrastructure),
            (backend(), Evidence { control: Some(true), ..host_full }, Infrastructure),
            (SandboxError::NoSpace { path: text() }, host_full, Agent),
            (unsupported(), control(true), Agent),
            (unsupported(), control(false), Infrastructure),
        ];
        for (error, evidence, fault) in rows {
            assert_eq!(error.fault(&evidence), fault, "{error:?} with {evidence:?}");
        }
    }

    #[test]
    fn a_fresh_sandbox_is_asked_for_only_where_it_decides() {
        assert!(backend().needs_control(&lives()) && unsupported().needs_control(&lives()));
        assert!(!backend().needs_control(&with(Vitals::Unknown)));
        assert!(!backend().needs_control(&Evidence { filled_disk: true, ..lives() }));
        assert!(!backend().needs_control(&Evidence { is_host_disk_full: true, ..lives() }));
        assert!(!died(Death::Killed).needs_control(&lives()));
        assert!(!SandboxError::UsedUp { what: "processes" }.needs_control(&lives()));
        // Who holds the port of the way out does so whatever a fresh sandbox can.
        let taken = SandboxError::PortTaken { port: 3128 };
        assert!(!taken.needs_control(&lives()) && taken.fault(&lives()) == Fault::Agent);
    }

    #[test]
    fn a_disk_is_full_by_whoever_filled_it() {
        let limits = |disk_bytes| Limits { disk_bytes, ..Limits::default() };
        let stats = |written: u64, free: u64| SandboxStats {
            disk_bytes: Some(written),
            free_disk_bytes: Some(free),
            ..SandboxStats::default()
        };
        for (stats, limit, by_itself, by_others) in [
            (stats(1000, 1 << 40), None, false, false),
            (stats(1000, 1000), None, false, true),
            (stats(2 << 30, 1000), None, true, false),
            // A limit is its own, whatever of it is used up.
            (stats(1000, 0), Some(1 << 30), false, false),
            (stats(1 << 30, 0), Some(1 << 30), true, false),
        ] {
            let limits = limits(limit);
            let found = (stats.has_filled_disk(&limits), stats.is_host_disk_full(&limits));
            assert_eq!(found, (by_itself, by_others), "{stats:?} with {limits:?}");
        }
        assert!(!SandboxStats::default().is_host_disk_full(&limits(None)));
    }

    #[tokio::test]
    async fn evidence_is_what_the_sandbox_says() {
        let backend = FakeBackend::new();
        let sandbox = backend.create(&SandboxSpec::new(Image::Default)).await.unwrap();
        let found = Evidence::of(&*sandbox).await;
        assert_eq!((found.vitals, found.filled_disk, found.control), (Vitals::Lives, false, None));
        assert!(found.has_memory_limit, "as specs have it by default");
        assert!(backend.kill(sandbox.id()));
        assert_eq!(Evidence::of(&*sandbox).await.vitals, Vitals::Gone(Death::Killed));
    }
}
