//! The proxy as its clients see it.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{AllowedHost, Proxy, ServedHosts};
use crate::ByteStream;

/// A host that answers every request with what it got, and says how many connections it had.
async fn echo_host() -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = vec![0; 1 << 16];
                let mut got = 0;
                while !bytes[..got].windows(4).any(|four| four == b"\r\n\r\n") {
                    match stream.read(&mut bytes[got..]).await {
                        Ok(count) if count > 0 => got += count,
                        _ => return,
                    }
                }
                let text = String::from_utf8_lossy(&bytes[..got]);
                let length = text.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                stream.write_all((head + &text).as_bytes()).await.unwrap();
            });
        }
    });
    (port, task)
}

fn proxy(list: &[&str], max_bytes: Option<u64>) -> Arc<Proxy> {
    let list: Vec<AllowedHost> = list.iter().map(|entry| entry.parse().unwrap()).collect();
    Arc::new(Proxy::new("test", &list, max_bytes))
}

fn client(proxy: &Arc<Proxy>) -> (DuplexStream, JoinHandle<()>) {
    let (ours, theirs) = duplex(1 << 16);
    let proxy = Arc::clone(proxy);
    let task = tokio::spawn(async move {
        let permit = proxy.permit().await;
        proxy.serve(theirs, permit).await;
    });
    (ours, task)
}

/// Everything that is answered to `request`.
async fn ask(proxy: &Arc<Proxy>, request: &[u8]) -> String {
    let (mut stream, task) = client(proxy);
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    drop(stream);
    task.await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_listed_host_is_reached_by_each_way_of_asking() {
    let (port, host) = echo_host().await;
    let proxy = proxy(&[&format!("127.0.0.1:{port}")], None);
    let plain = format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\nA: b\r\n\r\n");
    let answer = ask(&proxy, plain.as_bytes()).await;
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    assert!(answer.contains("GET /x HTTP/1.1\r\nHost: 127.0.0.1:"), "{answer}");

    let connect = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nGET /y HTTP/1.1\r\n\r\n");
    let answer = ask(&proxy, connect.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 Connection Established\r\n\r\n"), "{answer}");
    assert!(answer.ends_with("GET /y HTTP/1.1\r\n\r\n"), "{answer}");

    let mut socks = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
    socks.extend(port.to_be_bytes());
    socks.extend(b"GET /z HTTP/1.1\r\n\r\n");
    let answer = ask(&proxy, &socks).await;
    assert!(answer.ends_with("GET /z HTTP/1.1\r\n\r\n"), "{answer:?}");

    let stats = proxy.stats();
    assert_eq!((stats.connections, stats.open, stats.refused, stats.failed), (3, 0, 0, 0));
    assert!(stats.sent_bytes > 50 && stats.received_bytes > 100, "{stats:?}");
    host.abort();
}

#[tokio::test]
async fn whatever_is_not_listed_is_refused_with_its_name_and_the_list() {
    let (port, host) = echo_host().await;
    let proxy = proxy(&[&format!("127.0.0.1:{port}"), &format!("localhost:{port}")], None);
    let targets = [
        ("127.0.0.1:1".to_owned(), "not on the allow-list"),
        (format!("127.0.0.2:{port}"), "not on the allow-list"),
        (format!("0.0.0.0:{port}"), "not on the allow-list"),
        (format!("[::1]:{port}"), "not on the allow-list"),
        ("evil.net:443".to_owned(), "not on the allow-list"),
    ];
    for (target, why) in &targets {
        for request in [
            format!("CONNECT {target} HTTP/1.1\r\n\r\n"),
            format!("GET http://{target}/ HTTP/1.1\r\n\r\n"),
        ] {
            let answer = ask(&proxy, request.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
            let parts = [format!("`{target}`"), (*why).to_owned(), format!("`127.0.0.1:{port}`")];
            assert!(parts.iter().all(|part| answer.contains(part)), "{answer}");
        }
    }
    let answer = ask(&proxy, &[5, 1, 0, 5, 1, 0, 1, 10, 0, 0, 1, 0, 80]).await;
    assert_eq!(answer.as_bytes()[2..4], [5, 2]);
    assert_eq!(proxy.stats().refused, 2 * targets.len() as u64 + 1);
    host.abort();
}

#[tokio::test]
async fn a_listed_name_that_stands_for_this_machine_is_refused() {
    let (port, host) = echo_host().await;
    let only_name = proxy(&[&format!("localhost:{port}")], None);
    let request = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n");
    let answer = ask(&only_name, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("stands for"), "{answer}");
    let both = proxy(&[&format!("localhost:{port}"), &format!("127.0.0.1:{port}")], None);
    let request = format!("GET http://localhost:{port}/ HTTP/1.1\r\n\r\n");
    let answer = ask(&both, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    host.abort();
}

#[tokio::test]
async fn a_second_request_behind_the_first_reaches_nobody() {
    let (port, host) = echo_host().await;
    let proxy = proxy(&[&format!("127.0.0.1:{port}")], None);
    let request = format!(
        "POST http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\
         GET http://127.0.0.1:{port}/second HTTP/1.1\r\n\r\n"
    );
    let answer = ask(&proxy, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && !answer.contains("second"), "{answer}");
    host.abort();
}

#[tokio::test]
async fn clients_that_make_no_sense_are_told_so() {
    let proxy = proxy(&["example.org"], None);
    let many = format!("GET http://a/ HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(1000));
    let huge = format!("CONNECT {}:443 HTTP/1.1\r\n\r\n", "a".repeat(1 << 20));
    for (request, status) in [
        ("\u{16}\u{3}\u{1}garbage\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        (&many, "400"),
        (&huge, "431"),
        (&huge[..100_000], "431"),
    ] {
        let (mut stream, task) = client(&proxy);
        // It answers, and does not listen for ever.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[..], *format!("HTTP/1.1 {status}").as_bytes());
        drop(stream);
        task.await.unwrap();
    }
    assert_eq!((proxy.stats().failed, proxy.stats().refused), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_given_up() {
    let proxy = proxy(&["example.org"], None);
    let (mut silent, _task) = client(&proxy);
    let mut answer = String::new();
    silent.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");

    // One that says a byte a second is not better.
    let (mut slow, _task) = client(&proxy);
    for byte in b"GET http://example.org/ HTTP".iter() {
        let _ = slow.write_all(&[*byte]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    answer.clear();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert_eq!(proxy.stats().open, 0);
}

#[tokio::test]
async fn used_up_bytes_end_what_goes_on_and_refuse_what_comes() {
    let (port, host) = echo_host().await;
    let proxy = proxy(&[&format!("127.0.0.1:{port}")], Some(100));
    let connect = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n");
    let long = format!("{connect}GET /{} HTTP/1.1\r\n\r\n", "x".repeat(170));
    let answer = ask(&proxy, long.as_bytes()).await;
    assert!(!answer.contains("xxx"), "{answer}");
    assert_eq!(proxy.stats().sent_bytes, 0);
    let rest = " HTTP/1.1\r\n\r\n";
    let fill = format!("{connect}GET /{}{rest}", "x".repeat(100 - "GET /".len() - rest.len()));
    let answer = ask(&proxy, fill.as_bytes()).await;
    assert!(!answer.contains("xxx"), "{answer}");
    assert_eq!(proxy.stats().sent_bytes, 100);
    let answer = ask(&proxy, connect.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("100 bytes"), "{answer}");
    host.abort();
}

#[tokio::test]
async fn a_host_that_does_not_answer_as_a_server_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let host = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"SSH-2.0-x\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let proxy = proxy(&[&format!("127.0.0.1:{port}")], None);
    let request = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n");
    let answer = ask(&proxy, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("not HTTP"), "{answer}");
    host.await.unwrap();
    let answer = ask(&proxy, request.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("cannot be reached"),
        "{answer}"
    );
    assert_eq!((proxy.stats().failed, proxy.stats().refused), (2, 0));
}

#[tokio::test]
async fn what_this_process_serves_is_reached_by_name_where_the_list_has_it() {
    let served = ServedHosts::default().with("service.internal", async |port| {
        if port == 81 {
            return Err("it is away".to_owned());
        }
        let (ours, theirs) = duplex(1 << 16);
        tokio::spawn(async move {
            let (mut from, mut to) = tokio::io::split(theirs);
            let mut head = [0; 4];
            from.read_exact(&mut head).await.unwrap();
            let said = String::from_utf8_lossy(&head).into_owned();
            to.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{port}: {said}").as_bytes())
                .await
                .unwrap();
            to.shutdown().await.unwrap();
        });
        Ok(ByteStream::new(ours))
    });
    let list: Vec<AllowedHost> =
        ["service.internal:80", "service.internal:81"].map(|entry| entry.parse().unwrap()).into();
    let proxy = Arc::new(Proxy::new("test", &list, None).with_served(&served));
    for (request, expected) in [
        (&b"GET http://Service.Internal/x HTTP/1.1\r\n\r\n"[..], "80: GET "),
        (b"CONNECT service.internal:80 HTTP/1.1\r\n\r\nPOST", "80: POST"),
        (b"GET http://service.internal:81/ HTTP/1.1\r\n\r\n", "it is away"),
        (b"GET http://service.internal:82/ HTTP/1.1\r\n\r\n", "not on the allow-list"),
        (b"GET http://other.internal/ HTTP/1.1\r\n\r\n", "not on the allow-list"),
    ] {
        let answer = ask(&proxy, request).await;
        assert!(answer.contains(expected), "{expected}: {answer}");
    }
    let stats = proxy.stats();
    assert_eq!((stats.refused, stats.failed), (2, 1));
}
