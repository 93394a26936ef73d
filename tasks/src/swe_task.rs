//! An instance of software engineering, and how it is played.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spar_sandbox::allow_list::AllowedHost;
use spar_swe::Instance;

/// An instance of software engineering, and how it is played: the parameters of the environment `swe`.
///
/// It has the solution and the hidden tests, which belong to the oracle and to whoever grades: no policy and no agent's
/// sandbox sees them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweTask {
    /// The instance.
    pub instance: Instance,
    /// An image instead of the instance's, as `--image` takes it. Default absent: `--image`, where a run names one, or else
    /// the instance's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A folder of the host with the repository, which is put into `workdir` instead of what the image has there. Where it
    /// is a working copy of git that has the base commit, that is checked out. Default absent: the image has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<PathBuf>,
    /// Whether graded runs are guarded beyond what the benchmarks do: files that configure test runners are put back
    /// where the solution leaves them alone, and what resolves an instance suspiciously has to let a test fail that must. Default
    /// true.
    #[serde(default = "default_guarded", skip_serializing_if = "Clone::clone")]
    pub guarded: bool,
    /// Whether the hints are shown. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hints: bool,
    /// Seconds until a sandbox exists, getting its image left out. Default 120.
    #[serde(default = "default_create_secs")]
    pub create_secs: u64,
    /// Seconds for the repository and all of the set-up. Default 600.
    #[serde(default = "default_setup_secs")]
    pub setup_secs: u64,
    /// Seconds that one command of the agent may take. Default 60.
    #[serde(default = "default_command_secs")]
    pub command_secs: u64,
    /// Seconds that the tests may take, where the instance does not say. Default 1800.
    #[serde(default = "default_test_secs")]
    pub test_secs: u64,
    /// Bytes of each stream that a command's observation shows, the middle left out. Default 10000.
    #[serde(default = "default_output_limit_bytes")]
    pub output_limit_bytes: usize,
    /// Bytes of the largest patch that is graded; a larger one has failed. Default 16 MiB.
    #[serde(default = "default_patch_limit_bytes")]
    pub patch_limit_bytes: usize,
    /// Bytes of all that is carried into a sandbox of the verification's own, before patterns leave anything out; with more the
    /// task has failed. Default 256 MiB.
    #[serde(default = "default_carry_limit_bytes")]
    pub carry_limit_bytes: u64,
    /// Hosts whose servers of tools this program itself reaches for the agent, `HOST`, `*.HOST` or `HOST:PORT` each, without a
    /// port 80 and 443. What the agent does there is seen by other episodes, and none of the sandbox's walls stands
    /// before them. Default none: servers outside of the sandbox are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside_servers: Vec<AllowedHost>,
}

impl SweTask {
    /// An instance, played with the defaults.
    pub fn new(instance: Instance) -> Self {
        Self {
            instance,
            image: None,
            repository: None,
            guarded: default_guarded(),
            hints: false,
            create_secs: default_create_secs(),
            setup_secs: default_setup_secs(),
            command_secs: default_command_secs(),
            test_secs: default_test_secs(),
            output_limit_bytes: default_output_limit_bytes(),
            patch_limit_bytes: default_patch_limit_bytes(),
            carry_limit_bytes: default_carry_limit_bytes(),
            outside_servers: Vec::new(),
        }
    }

    /// What is wrong with it; empty where nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.instance.problems();
        for (name, value) in [
            ("create_secs", self.create_secs),
            ("setup_secs", self.setup_secs),
            ("command_secs", self.command_secs),
            ("test_secs", self.test_secs),
            ("patch_limit_bytes", self.patch_limit_bytes as u64),
            ("carry_limit_bytes", self.carry_limit_bytes),
        ] {
            if value == 0 {
                problems.push(format!("`{name}` is 0, must be at least 1"));
            }
        }
        problems
    }
}

fn default_guarded() -> bool {
    true
}

fn default_create_secs() -> u64 {
    120
}

fn default_setup_secs() -> u64 {
    600
}

fn default_command_secs() -> u64 {
    60
}

fn default_test_secs() -> u64 {
    1800
}

fn default_output_limit_bytes() -> usize {
    10_000
}

fn default_patch_limit_bytes() -> usize {
    16 << 20
}

fn default_carry_limit_bytes() -> u64 {
    256 << 20
}
