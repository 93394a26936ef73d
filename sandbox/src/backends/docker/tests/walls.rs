//! What one sandbox, or one user in it, must not be able to do to another.

use std::process::Command;

use super::super::network;
use super::{backend, eventually, processes, sandbox, sh, spec};
use crate::{
    Capabilities, ExecRequest, Image, Mount, NetworkPolicy, Sandbox, SandboxBackend, SandboxError,
    SandboxSpec,
};

#[tokio::test]
#[ignore = "needs Docker"]
async fn killing_the_helper_frees_nobody_of_another_user_either() {
    // Root without powers cannot end what belongs to the user, nor the user what belongs to root.
    for (first, other) in [(None, "1000"), (Some("1000"), "0")] {
        let mut spec = spec();
        spec.user = first.map(str::to_owned);
        let sandbox = backend().await.create(&spec).await.unwrap();
        let script = "(setsid sleep 1234 &); sleep 1234 & kill -9 $PPID; sleep 1234";
        let mut request = ExecRequest::sh(script);
        request.user = Some(other.to_owned());
        let _ = sandbox.exec(&request).await.unwrap();
        eventually(async || processes(&*sandbox).await.is_empty()).await;
        assert_eq!(sh(&*sandbox, "echo lives").await, "lives\n");
        sandbox.close().await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn nobody_inside_can_read_the_helper_or_look_into_it() {
    let sandbox = sandbox().await;
    for user in ["0", "1000"] {
        // Programs that may not be read cannot be looked into from their first instruction on.
        let script = "cat /dev/spar/exec >/tmp/copy && echo READ; \
                      readlink /proc/$PPID/exe; (echo SPOKE >/proc/$PPID/fd/1); \
                      cat /proc/$PPID/environ >/tmp/copy && echo LOOKED; :";
        let mut request = ExecRequest::sh(script);
        request.user = Some(user.to_owned());
        let result = sandbox.exec(&request).await.unwrap();
        assert_eq!(result.stdout.text(), "", "as {user}: {}", result.stderr.text());
    }
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn sandboxes_with_a_network_do_not_reach_each_other() {
    let mut spec = spec();
    spec.network = NetworkPolicy::Bridge;
    let backend = backend().await;
    let one = backend.create(&spec).await.unwrap();
    let two = backend.create(&spec).await.unwrap();
    let listen = "(setsid sh -c 'while :; do echo reached | nc -l -p 5555; done' \
                  </dev/null >/dev/null 2>&1 &); sleep 1; hostname -i";
    let address = sh(&*one, listen).await.trim().to_owned();
    let ask = format!("nc -w 3 {address} 5555 </dev/null; :");
    // It listens, and the other one has a network.
    assert_eq!(sh(&*one, &ask).await, "reached\n");
    let routes = sh(&*two, "cat /proc/net/route").await;
    assert!(routes.lines().count() > 1, "{routes}");
    assert_eq!(sh(&*two, &ask).await, "");
    one.close().await.unwrap();
    two.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_sandbox_joins_and_leaves_the_network_of_sandboxes_while_it_runs() {
    let mut bridged = spec();
    bridged.network = NetworkPolicy::Bridge;
    let backend = backend().await;
    let other = backend.create(&bridged).await.unwrap();
    let sandbox = sandbox().await;
    // How interfaces are numbered is the engine's business: those of before may count.
    let look = "(ls /sys/class/net; cut -f 1,3 /proc/net/route) | sed 's/eth[0-9]*/eth/'";
    let (whole, nothing) = (sh(&*other, look).await, sh(&*sandbox, look).await);
    assert!(whole.contains("eth") && !nothing.contains("eth"), "{whole}\n{nothing}");
    let resolver = "cat /etc/resolv.conf";
    let resolves = sh(&*other, resolver).await;
    let list = NetworkPolicy::allow(["example.org".parse().unwrap()]);
    sh(&*sandbox, "(setsid sleep 1234 &)").await;
    for (network, seen) in [
        (NetworkPolicy::Bridge, &whole),
        (NetworkPolicy::None, &nothing),
        (NetworkPolicy::Bridge, &whole),
        (list, &nothing),
        (NetworkPolicy::Bridge, &whole),
    ] {
        sandbox.set_network(&network).await.unwrap();
        assert_eq!(sh(&*sandbox, look).await, *seen, "{network:?}");
        if network == NetworkPolicy::Bridge {
            assert_eq!(sh(&*sandbox, resolver).await, resolves);
        }
    }
    assert!(processes(&*sandbox).await.iter().any(|name| name.contains("sleep")));
    let fork = sandbox.fork().await.unwrap();
    assert!(sh(&*fork, look).await.contains("eth"));
    fork.close().await.unwrap();
    // Nor does starting it anew bring back what it was made with.
    other.set_network(&NetworkPolicy::None).await.unwrap();
    let engine = backend.engine(0);
    engine.docker.restart_container(other.id(), None).await.unwrap();
    assert!(!sh(&*other, look).await.contains("eth"));
    engine.docker.restart_container(sandbox.id(), None).await.unwrap();
    assert!(sh(&*sandbox, look).await.contains("eth"));
    sandbox.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn two_networks_that_were_made_at_once_become_one() {
    let mut spec = spec();
    spec.network = NetworkPolicy::Bridge;
    let backend = backend().await;
    backend.create(&spec).await.unwrap().close().await.unwrap();
    let engine = backend.engine(0);
    // Engines from 25 on make no second one.
    let second = network::create(engine).await;
    network::forget(engine);
    let sandbox = backend.create(&spec).await.unwrap();
    if let Ok(second) = second {
        let gone = engine.docker.inspect_network(&second.id, None).await;
        assert!(gone.is_err(), "{gone:?}");
    }
    sandbox.close().await.unwrap();
}

/// A folder with another one mounted within it, which is unmounted when this is dropped.
struct Submount(tempfile::TempDir);

impl Submount {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let within = folder.path().join("within");
        std::fs::create_dir(&within).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&within).status().unwrap();
        assert!(mounted.success());
        std::fs::write(within.join("file"), "of the host").unwrap();
        std::fs::write(folder.path().join("file"), "of the host").unwrap();
        Self(folder)
    }
}

impl Drop for Submount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path().join("within")).status();
    }
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn what_is_mounted_within_a_read_only_mount_cannot_be_written() {
    let host = Submount::new();
    let mut spec = spec();
    let (path, guest) = (host.0.path().to_owned(), "/data".to_owned());
    spec.mounts.push(Mount { host: path.clone(), guest, read_only: true });
    let sandbox = backend().await.create(&spec).await.unwrap();
    assert_eq!(sh(&*sandbox, "cat /data/file").await, "of the host");
    let script = "for f in /data/new /data/within/new /data/within/file; do echo x >$f; done; :";
    sandbox.exec(&ExecRequest::sh(script)).await.unwrap();
    sandbox.close().await.unwrap();
    assert!(!path.join("new").exists() && !path.join("within/new").exists());
    assert_eq!(std::fs::read_to_string(path.join("within/file")).unwrap(), "of the host");
}

/// Asking for a fork or a snapshot is refused with what would be lost.
async fn refuses_to_lose(sandbox: &dyn Sandbox, folder: &str) {
    let Capabilities { snapshot, fork, .. } = sandbox.capabilities();
    assert!(!snapshot && !fork);
    for error in [sandbox.fork().await.err().unwrap(), sandbox.snapshot().await.err().unwrap()] {
        assert!(matches!(error, SandboxError::Unsupported { .. }), "{error:?}");
        assert!(error.to_string().contains(folder), "{error}");
    }
    assert_eq!(sh(sandbox, "echo lives").await, "lives\n");
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn what_a_fork_would_lose_is_told_instead() {
    let backend = backend().await;
    let mut read_only = spec();
    read_only.read_only_root = true;
    let sandbox = backend.create(&read_only).await.unwrap();
    refuses_to_lose(&*sandbox, "/tmp").await;
    sandbox.close().await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let dockerfile = format!("FROM {}\nVOLUME [\"/volume\"]\n", super::IMAGE);
    std::fs::write(folder.path().join("Dockerfile"), dockerfile).unwrap();
    let image = Image::Build { context: folder.path().into(), dockerfile: "Dockerfile".into() };
    let sandbox = backend.create(&SandboxSpec { image, ..spec() }).await.unwrap();
    sh(&*sandbox, "echo kept >/volume/file").await;
    refuses_to_lose(&*sandbox, "/volume").await;
    sandbox.close().await.unwrap();
    // All others are forked as ever.
    let sandbox = backend.create(&spec()).await.unwrap();
    sh(&*sandbox, "echo kept >/tmp/file").await;
    let fork = sandbox.fork().await.unwrap();
    assert_eq!(sh(&*fork, "cat /tmp/file").await, "kept\n");
    fork.close().await.unwrap();
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_folder_of_more_names_than_fit_is_too_large_to_be_listed() {
    let sandbox = sandbox().await;
    let fill = "mkdir /many; cd /many; n=$(printf 'x%.0s' $(seq 240)); \
                seq 70000 | while read i; do : >$n$i; done; mkdir /few; : >/few/one";
    sh(&*sandbox, fill).await;
    let error = sandbox.list_files("/many").await.unwrap_err();
    assert!(matches!(error, SandboxError::TooLarge { .. }), "{error:?}");
    assert_eq!(sandbox.list_files("/few").await.unwrap().len(), 1);
    sandbox.close().await.unwrap();
}
