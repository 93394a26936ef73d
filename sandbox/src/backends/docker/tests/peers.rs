//! Engines beside the usual one: Podman, one behind TLS, and several as one pool.

use super::private_engine::PrivateEngine;
use super::{sh, spec};
use crate::backends::docker::DockerBackend;
use crate::conformance::{Options, Pins, Programs, run};
use crate::registry::backend_registry;
use crate::{SandboxBackend, SandboxError};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Podman"]
async fn podman_conforms() {
    let engine = PrivateEngine::podman().await;
    let backend = DockerBackend::connect_many([engine.host()]).await.unwrap();
    println!("{}", backend.probe().await.unwrap());
    // Its bridges cannot keep sandboxes apart, and where a link led nowhere it finds that nothing was there.
    let row = backend_registry().iter().find(|entry| entry.name == backend.name()).unwrap().pins;
    let never = [
        row.never,
        &[
            "a network that cannot be had is refused",
            "a link to nowhere that is replaced is told as modified",
        ],
    ]
    .concat();
    let pins = Pins { never: never.leak(), ..row };
    let options = Options { pins: Some(pins), ..Options::new(Programs::posix()) };
    let report = run(&backend, &options).await;
    println!("{report}");
    assert!(report.is_passed(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn an_engine_behind_tls_and_one_on_a_socket_are_one_pool() {
    let (far, near) = (PrivateEngine::docker_with_tls().await, PrivateEngine::docker().await);
    let backend = DockerBackend::connect_many([far.host(), near.host()]).await.unwrap();
    let probed = backend.probe().await.unwrap();
    assert!(probed.contains("https://127.0.0.1:") && probed.contains("unix://"), "{probed}");
    let one = backend.create(&spec()).await.unwrap();
    let two = backend.create(&spec()).await.unwrap();
    assert!(backend.live().iter().all(|(_, live)| *live == 1), "{:?}", backend.live());
    // What is kept of one comes back where it lies.
    for sandbox in [&one, &two] {
        sh(&**sandbox, "echo kept >/state").await;
        sandbox.write_file("/large", &vec![7; 1 << 20], 0o644).await.unwrap();
        let snapshot = sandbox.snapshot().await.unwrap();
        let restored = backend.restore(&snapshot).await.unwrap();
        assert_eq!(sh(&*restored, "cat /state").await, "kept\n");
        restored.close().await.unwrap();
        backend.remove_snapshot(&snapshot).await.unwrap();
    }
    let on = |engine: &PrivateEngine| engine.docker_cli(&["ps", "--format", "{{.Names}}"]);
    let names = [on(&far), on(&near)];
    for sandbox in [&one, &two] {
        assert_eq!(names.iter().filter(|names| names.contains(sandbox.id())).count(), 1);
    }
    // The far one ends: new sandboxes come from the near one.
    let mut far = far;
    tokio::task::block_in_place(|| far.kill());
    let three = backend.create(&spec()).await.unwrap();
    assert!(on(&near).contains(three.id()));
    for sandbox in [&one, &two, &three] {
        let closed = sandbox.close().await;
        assert_eq!(closed.is_ok(), on(&near).is_empty() || !names[0].contains(sandbox.id()));
    }
    assert_eq!(on(&near), "");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn nobody_gets_to_an_engine_behind_tls_without_the_right_certificate() {
    let (engine, other) = (PrivateEngine::docker_with_tls().await, tempfile::tempdir().unwrap());
    // Certificates of somebody else's authority.
    super::private_engine::make_certificates(other.path());
    let host = engine.host().with_certificates(other.path());
    let error = DockerBackend::connect_many([host]).await.err().unwrap();
    assert!(matches!(error, SandboxError::Unavailable { .. }), "{error:?}");
    let empty = tempfile::tempdir().unwrap();
    let host = engine.host().with_certificates(empty.path());
    let error = DockerBackend::connect_many([host]).await.err().unwrap();
    assert!(matches!(error, SandboxError::Unavailable { .. }), "{error:?}");
    assert!(error.hint().is_some());
}
