//! A disk of the host that others fill while an episode goes on.

use std::fs::File;
use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;

use spar_core::{Seed, Verdict};
use spar_sandbox::backends::local::LocalBackend;
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_swe::grade::Outcome;
use spar_tasks::Task;
use tempfile::TempDir;

use super::fixture::{Runner, task, write};
use super::harbor_tests::judged_by_file;
use super::tests::image;
use super::{Swe, SweVerdict};
use crate::{Environment, EnvironmentError, Resources, SandboxPhase, Sandboxes};

/// Namespaces whose state lies on a disk of its own, which others can fill.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128m", "spar-test"]).arg(folder.path());
        assert!(mount.status().unwrap().success());
        Self(folder)
    }

    fn sandboxes(&self) -> Sandboxes {
        let cache = std::env::temp_dir().join("spar-test-images");
        let backend = LocalBackend::in_folders(self.0.path(), &cache).unwrap();
        let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
        let pool = SandboxPool::new(Arc::new(backend), config).unwrap();
        let mut sandboxes = Sandboxes::new(Arc::new(pool));
        sandboxes.image = image("local");
        sandboxes
    }

    /// Others use up all of it.
    fn fill(&self) {
        let mut file = File::create(self.0.path().join("filler")).unwrap();
        for piece in [1 << 16, 1] {
            while file.write_all(&vec![0; piece]).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Plays a command, and fills the disk before the verdict.
async fn judged_on_a_full_disk(disk: &SmallDisk, task: &Task, command: &str) -> Verdict {
    let mut env = Swe::open(task, &Resources::with_sandboxes(disk.sandboxes())).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    env.step(&command.into()).await.unwrap();
    disk.fill();
    let verdict = env.verify().await;
    disk.make_room();
    env.close().await.unwrap();
    verdict.unwrap().unwrap()
}

fn is_of_the_disk(verdict: &Verdict) -> SweVerdict {
    let found = SweVerdict::of(verdict).unwrap();
    assert_eq!((found.outcome, found.reward), (Outcome::Infrastructure, 0.0), "{}", found.reason);
    assert!(found.reason.contains("the disk of the host is full"), "{}", found.reason);
    assert!(found.reason.contains("free disk space"), "{}", found.reason);
    found
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_do_not_blame_the_agent_for_a_full_disk_of_the_host() {
    let disk = SmallDisk::new();
    // 1. What git cannot write is no patch of the agent's.
    let folder = tempfile::tempdir().unwrap();
    let repository = task(write(folder.path(), Runner::Unittest), folder.path());
    let fix = "sed -i 's/a - b/a + b/' calc/__init__.py";
    is_of_the_disk(&judged_on_a_full_disk(&disk, &repository, fix).await);
    // 2. Nor is what a script cannot write a failure of the agent's, whose sandbox is judged.
    let (_folder, in_place) = judged_by_file();
    is_of_the_disk(&judged_on_a_full_disk(&disk, &in_place, "echo 42 >/app/out").await);
    // 3. A patch of others waits until there is room to test it.
    let resources = Resources::with_sandboxes(disk.sandboxes());
    let patch = "diff --git a/calc/__init__.py b/calc/__init__.py\n--- a/calc/__init__.py\n+++ b/calc/__init__.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n";
    disk.fill();
    let error = Swe::grade(&repository, &resources, patch).await;
    disk.make_room();
    match error {
        Ok(verdict) => {
            assert_eq!(verdict.outcome, Outcome::Infrastructure, "{}", verdict.reason);
            assert_eq!(verdict.patch.as_deref(), Some(patch));
        }
        Err(error) => panic!("{error}"),
    }
    // 4. A sandbox that cannot be made is told as such, and what is to be done.
    let mut env = Swe::open(&in_place, &Resources::with_sandboxes(disk.sandboxes())).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    disk.fill();
    let error = env.prepare().await;
    disk.make_room();
    let Err(EnvironmentError::Sandbox { phase, source }) = error else { panic!("{error:?}") };
    assert!(matches!(phase, SandboxPhase::Create | SandboxPhase::SetUp), "{phase}");
    assert!(source.is_host_disk_full() && source.hint().is_some(), "{source:?}");
    env.close().await.unwrap();
    // 5. With room, the same attempt is what it is.
    let mut env = Swe::open(&in_place, &Resources::with_sandboxes(disk.sandboxes())).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    env.step(&"echo 42 >/app/out".into()).await.unwrap();
    assert!(env.verify().await.unwrap().unwrap().success);
    env.close().await.unwrap();
    // 6. Who fills what it has to itself has done it.
    let mut env = Swe::open(&in_place, &Resources::with_sandboxes(disk.sandboxes())).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    let fill = "rm -rf /dev/shm/x /logs; mkdir /dev/shm/x; ln -s /dev/shm/x /logs; mkdir /logs/verifier; cat /dev/zero >/dev/shm/x/full 2>/dev/null; echo 42 >/app/out";
    env.step(&fill.into()).await.unwrap();
    let found = SweVerdict::of(&env.verify().await.unwrap().unwrap()).unwrap();
    assert_ne!(found.outcome, Outcome::Infrastructure, "{}", found.reason);
    env.close().await.unwrap();
}
