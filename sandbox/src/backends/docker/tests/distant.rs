//! Engines that are reached over a network with faults of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

use super::{eventually, sh, spec};
use crate::backends::docker::{DockerBackend, DockerHost};
use crate::{ExecRequest, SandboxBackend, SandboxError};

const SOCKET: &str = "/var/run/docker.sock";

/// A way to the usual engine over TCP, until this is dropped. What is idle for so long is cut, as
/// by a router that forgets it.
async fn way(idle: Duration) -> (DockerHost, JoinSet<()>) {
    lossy_way(idle, Arc::default()).await
}

/// The same, where so many answers to removals are lost.
async fn lossy_way(idle: Duration, lost: Arc<AtomicUsize>) -> (DockerHost, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("tcp://{}", listener.local_addr().unwrap()).parse().unwrap();
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            connections.spawn(carry(client, idle, Arc::clone(&lost)));
        }
    });
    (host, task)
}

async fn carry(mut client: TcpStream, idle: Duration, lost: Arc<AtomicUsize>) {
    let Ok(mut engine) = UnixStream::connect(SOCKET).await else { return };
    let (mut there, mut back) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let (mut client_ended, mut engine_ended) = (false, false);
    while !(client_ended && engine_ended) {
        let moved = tokio::select! {
            count = client.read(&mut there), if !client_ended => match count {
                Ok(count @ 1..) => {
                    let sent = engine.write_all(&there[..count]).await;
                    let less = |left: usize| left.checked_sub(1);
                    if there.starts_with(b"DELETE /")
                        && lost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
                    {
                        return;
                    }
                    sent
                }
                _ => {
                    client_ended = true;
                    engine.shutdown().await
                }
            },
            count = engine.read(&mut back), if !engine_ended => match count {
                Ok(count @ 1..) => client.write_all(&back[..count]).await,
                _ => {
                    engine_ended = true;
                    client.shutdown().await
                }
            },
            () = tokio::time::sleep(idle) => return,
        };
        if moved.is_err() {
            return;
        }
    }
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_command_that_says_nothing_keeps_its_connection_by_signs_of_life() {
    let (host, _way) = way(Duration::from_secs(2)).await;
    let backend = DockerBackend::connect_many([host]).await.unwrap();
    let sandbox = backend.create(&spec()).await.unwrap();
    let quiet = ExecRequest::sh("sleep 5; echo done").with_timeout(Duration::from_secs(60));
    let beat = |ms| backend.engine(0).heartbeat_ms.store(ms, Ordering::Relaxed);
    beat(500);
    let result = sandbox.exec(&quiet).await.unwrap();
    assert_eq!(result.stdout.text(), "done\n", "{}", result.end);
    // Without them the way is cut, which shows that it would be.
    beat(60_000);
    let cut = sandbox.exec(&quiet).await;
    assert!(!cut.is_ok_and(|result| result.stdout.text() == "done\n"));
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_removal_whose_answer_is_lost_is_asked_for_again() {
    let lost = Arc::new(AtomicUsize::new(0));
    let (host, _way) = lossy_way(Duration::from_secs(60), Arc::clone(&lost)).await;
    let backend = DockerBackend::connect_many([host]).await.unwrap();
    let near = super::backend().await;
    // Every answer is lost in the end: then it is an error.
    for (answers, is_closed) in [(2, true), (100, false)] {
        let sandbox = backend.create(&spec()).await.unwrap();
        let name = sandbox.id().to_owned();
        lost.store(answers, Ordering::Relaxed);
        assert_eq!(sandbox.close().await.is_ok(), is_closed, "{answers} answers lost");
        lost.store(0, Ordering::Relaxed);
        drop(sandbox);
        eventually(async || !super::is_listed(&near, &name).await).await;
    }
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_silent_engine_is_noticed_long_before_the_command_has_to_end() {
    let (host, way) = way(Duration::from_secs(600)).await;
    let backend = DockerBackend::connect_many([host]).await.unwrap();
    backend.engine(0).heartbeat_ms.store(250, Ordering::Relaxed);
    let sandbox = backend.create(&spec()).await.unwrap();
    let name = sandbox.id().to_owned();
    let long = ExecRequest::sh("sleep 1234").with_timeout(Duration::from_secs(1200));
    let begun = Instant::now();
    let (ended, ()) = tokio::join!(sandbox.exec(&long), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Nothing comes any more, and nobody can be asked.
        drop(way);
    });
    assert!(matches!(ended, Err(SandboxError::Died { .. })), "{ended:?}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    drop(sandbox);
    let near = super::backend().await;
    eventually(async || {
        let removed = std::process::Command::new("docker").args(["rm", "-f", &name]).output();
        removed.is_ok() && !super::is_listed(&near, &name).await
    })
    .await;
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn an_engine_that_swallows_everything_holds_up_nobody_for_long() {
    // It takes connections, and that is all.
    let hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let black: DockerHost = format!("tcp://{}", hole.local_addr().unwrap()).parse().unwrap();
    let hosts = [black, SOCKET.parse().unwrap()];
    let begun = Instant::now();
    let backend = Arc::new(DockerBackend::connect_many(hosts).await.unwrap());
    let mut made = Vec::new();
    let mut slowest = Duration::ZERO;
    for _ in 0..4 {
        let begun = Instant::now();
        let sandbox = backend.create(&spec()).await.unwrap();
        slowest = slowest.max(begun.elapsed());
        assert_eq!(sandbox.engine(), format!("unix://{SOCKET}"));
        made.push(sandbox);
    }
    println!("four sandboxes after {:?}, the slowest took {slowest:?}", begun.elapsed());
    // It would be first by its number of sandboxes each time, at five seconds each.
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    assert_eq!(sh(&*made[0], "echo lives").await, "lives\n");
    for sandbox in made {
        sandbox.close().await.unwrap();
    }
}
