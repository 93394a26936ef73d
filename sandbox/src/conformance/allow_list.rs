//! Networks of a few hosts: what they let through, and that it is nothing else.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::context::{Context, Finding, ensure, is_unsupported, sh, sh_for};
use super::{Trial, trials};
use crate::{ExecRequest, NetworkPolicy, Sandbox, SandboxError, SandboxSpec, ShellOptions};

pub(super) const TRIALS: &[Trial] = trials![
    "an allow-list lets its hosts through, and programs are told how" => listed,
    "what passes an allow-list arrives unchanged, however much of it" => unchanged,
    "an allow-list lets nobody else through" => others,
    "an allow-list opens no way beside its proxy" => egress,
    "a name on an allow-list does not lead to this machine" => rebinding,
    "each sandbox has an allow-list of its own" => lists_apart,
    "hostile clients do an allow-list's proxy no harm" => hostile,
    "a client of an allow-list that does not read holds up no other" => stalled,
    "forks and snapshots have their allow-list" => forks,
    "closing ends what passes an allow-list" => closing,
    "another network ends what passed by the one before, and nothing else" => changed,
];

/// Sends its standard input to the proxy and writes the answer.
const ASK: &str = "port=${http_proxy##*:}; \
    if command -v bash >/dev/null; then \
    ask() { bash -c 'exec 3<>/dev/tcp/127.0.0.1/$0 || exit 9; cat >&3; cat <&3' \"$port\"; }; \
    else ask() { nc 127.0.0.1 \"$port\"; }; fi; ";

/// A web server of this machine, on its loopback.
struct WebServer {
    port: u16,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicU64,
    /// Of those, the ones that have ended.
    ended: AtomicU64,
}

impl WebServer {
    async fn start() -> Result<Self, Finding> {
        let unable = |error| Finding::Skipped(format!("no server on this machine: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(unable)?;
        let port = listener.local_addr().map_err(unable)?.port();
        let seen = Arc::new(Seen::default());
        let counted = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = Arc::clone(&counted);
                tokio::spawn(async move {
                    seen.connections.fetch_add(1, Ordering::Relaxed);
                    // Those who ask may leave at any time.
                    let _ = answer(stream).await;
                    seen.ended.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        Ok(Self { port, seen, task })
    }

    fn entry(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn num_connections(&self) -> u64 {
        self.seen.connections.load(Ordering::Relaxed)
    }

    fn num_open(&self) -> u64 {
        self.num_connections() - self.seen.ended.load(Ordering::Relaxed)
    }

    /// A plain request for a page of it.
    fn get(&self, page: &str) -> String {
        format!("GET http://127.0.0.1:{}{page} HTTP/1.1\r\nHost: x\r\n\r\n", self.port)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Says hello, gives back what it got, holds the line or floods it, as the page says.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut got = Vec::new();
    let end = loop {
        if let Some(end) = got.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut got).await? == 0 {
            return Ok(());
        }
    };
    let mut body = got.split_off(end);
    let head = String::from_utf8_lossy(&got);
    match head.split(' ').nth(1) {
        Some("/echo") => {
            let length = head.split("Content-Length: ").nth(1);
            let length = length.and_then(|rest| rest.split('\r').next()?.parse().ok());
            let length: usize = length.ok_or(std::io::ErrorKind::InvalidData)?;
            while body.len() < length {
                if stream.read_buf(&mut body).await? == 0 {
                    return Ok(());
                }
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            stream.write_all(&body).await
        }
        Some("/flood") => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            loop {
                stream.write_all(&[b'x'; 1 << 16]).await?;
            }
        }
        Some("/hold") => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            while stream.read(&mut [0; 1024]).await? > 0 {}
            Ok(())
        }
        _ => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n").await,
    }
}

fn spec(context: &Context<'_>, entries: &[&str]) -> Result<SandboxSpec, Finding> {
    let mut hosts = Vec::new();
    for entry in entries {
        let malformed = |error| Finding::Failed(format!("{error}"));
        hosts.push(entry.parse::<crate::allow_list::AllowedHost>().map_err(malformed)?);
    }
    Ok(SandboxSpec { network: NetworkPolicy::allow(hosts), ..context.spec() })
}

/// A sandbox with this list, where the backend keeps one.
async fn sandbox(context: &Context<'_>, entries: &[&str]) -> Result<Box<dyn Sandbox>, Finding> {
    let spec = spec(context, entries)?;
    if !context.can().network_allow_list {
        context.must_refuse(&spec).await?;
    }
    context.needs_posix()?;
    Ok(context.backend.create(&spec).await?)
}

/// What the proxy answers to `request`.
async fn ask(sandbox: &dyn Sandbox, request: impl Into<Vec<u8>>) -> Result<String, Finding> {
    let script = format!("{ASK} ask");
    let request =
        ExecRequest::sh(&script).with_stdin(request).with_timeout(Duration::from_secs(60));
    let result = sandbox.exec(&request).await?;
    let text = result.stdout.text();
    ensure!(!text.is_empty(), "no answer: it {}: {}", result.end, result.stderr.text());
    Ok(text)
}

async fn says_hello(sandbox: &dyn Sandbox, host: &WebServer) -> Result<(), Finding> {
    let text = ask(sandbox, host.get("/hello")).await?;
    ensure!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\nhello\n"), "{text:?}");
    Ok(())
}

async fn listed(context: &Context<'_>) -> Result<(), Finding> {
    let host = WebServer::start().await?;
    let sandbox = sandbox(context, &[&host.entry()]).await?;
    says_hello(&*sandbox, &host).await?;
    let tunnel = format!("CONNECT {} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", host.entry());
    let text = ask(&*sandbox, tunnel).await?;
    ensure!(text.contains("200 Connection Established") && text.ends_with("hello\n"), "{text:?}");
    let mut socks = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
    socks.extend(host.port.to_be_bytes());
    socks.extend(b"GET / HTTP/1.1\r\n\r\n");
    let text = ask(&*sandbox, socks).await?;
    ensure!(text.ends_with("hello\n"), "by SOCKS: {text:?}");
    // What real programs make of the variables.
    let page = format!("http://{}/", host.entry());
    let fetch = format!(
        "if command -v curl >/dev/null; then curl -sS {page}; \
         elif command -v wget >/dev/null; then wget -q -O - {page}; else echo hello; fi"
    );
    let text = sh(&*sandbox, &fetch).await?;
    ensure!(text == "hello\n", "fetched {text:?}");
    let variables = "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY";
    let all = format!("{variables} {}", variables.to_lowercase());
    let script = format!("for v in {all}; do eval \"[ -n \\\"\\${{$v}}\\\" ]\" || echo $v; done");
    let missing = sh(&*sandbox, &script).await?;
    ensure!(missing.is_empty(), "not set: {missing}");
    if context.can().shell {
        let mut shell = sandbox.open_shell(&ShellOptions::default()).await?;
        let result = shell.run(&script, Duration::from_secs(30)).await?;
        let missing = result.stdout.text();
        shell.close().await?;
        ensure!(missing.is_empty() && result.end.is_success(), "not set in a shell: {missing}");
    }
    let stats = sandbox.stats().await?.network;
    ensure!(
        stats.is_some_and(|stats| stats.connections >= 3 && stats.received_bytes > 100),
        "{stats:?}"
    );
    Ok(sandbox.close().await?)
}

async fn unchanged(context: &Context<'_>) -> Result<(), Finding> {
    const PARALLEL: usize = 8;
    let host = WebServer::start().await?;
    let sandbox = sandbox(context, &[&host.entry()]).await?;
    let script = format!(
        "{ASK} cd /tmp; one() {{ head -c 3000000 /dev/urandom >sent.$1; \
         (printf 'POST http://{}/echo HTTP/1.1\\r\\nContent-Length: 3000000\\r\\n\\r\\n'; \
         cat sent.$1) | ask | tail -c 3000000 | cmp - sent.$1 && echo same; }}; \
         i=0; while [ $i -lt {PARALLEL} ]; do i=$((i + 1)); one $i & done; wait",
        host.entry()
    );
    let result = sh_for(&*sandbox, &script, Duration::from_secs(120)).await?;
    let (text, errors) = (result.stdout.text(), result.stderr.text());
    ensure!(text == "same\n".repeat(PARALLEL), "it {}: {text}{errors}", result.end);
    let stats = sandbox.stats().await?.network.unwrap_or_default();
    let wanted = 3_000_000 * PARALLEL as u64;
    ensure!(stats.sent_bytes > wanted && stats.received_bytes > wanted, "{stats:?}");
    Ok(sandbox.close().await?)
}

/// An address of this machine that is not loopback, where it has one.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

async fn others(context: &Context<'_>) -> Result<(), Finding> {
    let (host, other) = (WebServer::start().await?, WebServer::start().await?);
    let sandbox = sandbox(context, &[&host.entry(), "*.example.org:443"]).await?;
    let mut targets = vec![
        // Another port, and other ways to this machine.
        other.entry(),
        "127.0.0.1:3128".to_owned(),
        "example.net:443".to_owned(),
        "example.org:443".to_owned(),
        "a.example.org:80".to_owned(),
        "169.254.169.254:80".to_owned(),
    ];
    let own = own_address().map(|own| own.to_string());
    for name in ["localhost", "127.0.0.2", "0.0.0.0", "[::1]", "[::ffff:127.0.0.2]", "172.17.0.1"]
        .into_iter()
        .chain(own.as_deref())
    {
        targets.push(format!("{name}:{}", host.port));
    }
    for target in &targets {
        let text = ask(&*sandbox, format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await?;
        ensure!(text.starts_with("HTTP/1.1 403 "), "`{target}`: {text:?}");
        ensure!(text.contains("allow-list of this sandbox"), "`{target}`: {text:?}");
        let text = ask(&*sandbox, format!("GET http://{target}/ HTTP/1.1\r\n\r\n")).await?;
        ensure!(text.starts_with("HTTP/1.1 403 "), "`{target}`: {text:?}");
    }
    for target in ["127.1", "2130706433", "0x7f000001", "017700000001", "user@127.0.0.1"] {
        let request = format!("CONNECT {target}:{} HTTP/1.1\r\n\r\n", host.port);
        let text = ask(&*sandbox, request).await?;
        ensure!(text.starts_with("HTTP/1.1 400 "), "`{target}`: {text:?}");
    }
    let num = host.num_connections() + other.num_connections();
    ensure!(num == 0, "{num} connections came");
    let refused = sandbox.stats().await?.network.map(|stats| stats.refused);
    ensure!(refused == Some(2 * targets.len() as u64), "{refused:?} were counted");
    Ok(sandbox.close().await?)
}

async fn egress(context: &Context<'_>) -> Result<(), Finding> {
    let unable = |error| Finding::Skipped(format!("no listener: {error}"));
    let any = (Ipv4Addr::UNSPECIFIED, 0);
    let stream = TcpListener::bind(any).await.map_err(unable)?;
    let datagrams = tokio::net::UdpSocket::bind(any).await.map_err(unable)?;
    let port = |address: std::io::Result<std::net::SocketAddr>| address.map_or(0, |at| at.port());
    let (tcp, udp) = (port(stream.local_addr()), port(datagrams.local_addr()));
    let sandbox = sandbox(context, &[&format!("127.0.0.1:{tcp}")]).await?;
    let own = own_address().map(|own| own.to_string()).unwrap_or_default();
    // Only routes of loopback, no resolver that answers, no packet of any kind that arrives.
    let script = format!(
        "while read -r device target rest; do \
         case $device in Iface|lo) ;; *) echo REACHED a route over $device to $target;; esac; \
         done </proc/net/route; \
         for address in 127.0.0.1 {own} 172.17.0.1 10.0.2.2 192.168.0.1; do \
         if command -v bash >/dev/null; then \
         timeout 1 bash -c \"exec 3<>/dev/tcp/$address/{tcp}\" 2>/dev/null && echo REACHED $address; \
         timeout 1 bash -c \"echo x >/dev/udp/$address/{udp}\" 2>/dev/null; \
         else \
         nc -w 1 $address {tcp} </dev/null >/dev/null 2>&1 && echo REACHED $address; \
         echo x | timeout 1 nc -u -w 1 $address {udp} >/dev/null 2>&1; \
         fi; done; \
         for address in {own} 172.17.0.1 1.1.1.1; do \
         timeout 2 ping -c 1 -W 1 $address >/dev/null 2>&1 && echo REACHED $address by ping; \
         timeout 2 nslookup example.org $address 2>/dev/null | grep -q '^Name' && \
         echo REACHED a resolver at $address; done; \
         timeout 5 getent hosts example.org >/dev/null 2>&1 && echo REACHED a resolver; :"
    );
    let arrives = async {
        let mut datagram = [0; 16];
        tokio::select! {
            _ = stream.accept() => "a connection",
            _ = datagrams.recv_from(&mut datagram) => "a datagram",
        }
    };
    let result = tokio::select! {
        result = sh_for(&*sandbox, &script, Duration::from_secs(90)) => result?,
        what = arrives => return Err(Finding::Failed(format!("{what} came in"))),
    };
    let text = result.stdout.text();
    ensure!(!text.contains("REACHED") && result.end.is_success(), "it {}: {text}", result.end);
    Ok(sandbox.close().await?)
}

async fn rebinding(context: &Context<'_>) -> Result<(), Finding> {
    let host = WebServer::start().await?;
    // The one name that everywhere stands for an address of this machine.
    let name = format!("localhost:{}", host.port);
    let sandbox = sandbox(context, &[&name]).await?;
    for request in
        [format!("CONNECT {name} HTTP/1.1\r\n\r\n"), format!("GET http://{name}/ HTTP/1.1\r\n\r\n")]
    {
        let text = ask(&*sandbox, request).await?;
        ensure!(text.starts_with("HTTP/1.1 403 ") && text.contains("stands for"), "{text:?}");
    }
    ensure!(host.num_connections() == 0, "a connection came");
    Ok(sandbox.close().await?)
}

async fn lists_apart(context: &Context<'_>) -> Result<(), Finding> {
    let hosts = [WebServer::start().await?, WebServer::start().await?];
    let first = sandbox(context, &[&hosts[0].entry()]).await?;
    let second = sandbox(context, &[&hosts[1].entry()]).await?;
    for (own, other, sandbox) in [(&hosts[0], &hosts[1], &first), (&hosts[1], &hosts[0], &second)] {
        says_hello(&**sandbox, own).await?;
        let text = ask(&**sandbox, other.get("/")).await?;
        ensure!(text.starts_with("HTTP/1.1 403 "), "{text:?}");
    }
    first.close().await?;
    says_hello(&*second, &hosts[1]).await?;
    Ok(second.close().await?)
}

async fn hostile(context: &Context<'_>) -> Result<(), Finding> {
    const PARALLEL: usize = 500;
    let host = WebServer::start().await?;
    let entry = host.entry();
    if !context.can().network_allow_list {
        context.must_refuse(&spec(context, &[&entry])?).await?;
    }
    context.needs_posix()?;
    let mut spec = spec(context, &[&entry])?;
    // Each client is a process or three.
    spec.limits.pids = Some(4 * PARALLEL as u32);
    if !context.can().pids_limit {
        spec.limits.pids = None;
    }
    let sandbox = context.backend.create(&spec).await?;
    for (what, script) in [
        ("garbage", "head -c 1000000 /dev/urandom | ask"),
        ("zeros", "head -c 1000000 /dev/zero | ask"),
        ("a huge line", "(printf 'CONNECT '; head -c 10000000 /dev/zero | tr '\\000' a) | ask"),
        (
            "a million headers",
            "(printf 'GET http://a.org/ HTTP/1.1\\r\\n'; yes 'A: b' | head -n 1000000) | ask",
        ),
        ("half a request", "printf 'GET http://a.org/ HT' | ask"),
        ("nothing", "printf '' | ask"),
    ] {
        let script = format!("{ASK} {script} 2>/dev/null | head -c 100; :");
        let result = sh_for(&*sandbox, &script, Duration::from_secs(60)).await?;
        let text = result.stdout.text();
        ensure!(result.end.is_success(), "{what}: it {}", result.end);
        ensure!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{what}: {text:?}");
        says_hello(&*sandbox, &host).await?;
    }
    // More that never say what they want than there are places, and then very many at a time.
    let script = format!(
        "{ASK} cd /tmp; cat >hello; i=0; while [ $i -lt 80 ]; do i=$((i + 1)); \
         (printf 'GET http'; sleep 98763) | ask >/dev/null 2>&1 & done; \
         i=0; while [ $i -lt {PARALLEL} ]; do i=$((i + 1)); \
         ask <hello >answer.$i 2>/dev/null & pids=\"$pids $!\"; done; \
         wait $pids; grep -l '^hello$' answer.* | wc -l"
    );
    let request =
        ExecRequest::sh(&script).with_stdin(host.get("/")).with_timeout(Duration::from_secs(150));
    let result = sandbox.exec(&request).await?;
    let text = result.stdout.text();
    ensure!(
        text.trim() == PARALLEL.to_string(),
        "of {PARALLEL} clients {} had their answer: it {}: {}",
        text.trim(),
        result.end,
        result.stderr.text()
    );
    says_hello(&*sandbox, &host).await?;
    Ok(sandbox.close().await?)
}

async fn stalled(context: &Context<'_>) -> Result<(), Finding> {
    let host = WebServer::start().await?;
    let sandbox = sandbox(context, &[&host.entry()]).await?;
    let script = format!(
        "{ASK} cat >/tmp/flood; for i in 1 2 3; do ask </tmp/flood | sleep 98764 & done; :"
    );
    let request = ExecRequest::sh(&script)
        .with_stdin(host.get("/flood"))
        .with_timeout(Duration::from_secs(60));
    let result = sandbox.exec(&request).await?;
    ensure!(result.end.is_success(), "it {}: {}", result.end, result.stderr.text());
    let until = Instant::now() + Duration::from_secs(60);
    let mut received = 0;
    while Instant::now() < until {
        says_hello(&*sandbox, &host).await?;
        let before = received;
        received = sandbox.stats().await?.network.unwrap_or_default().received_bytes;
        // Only the answers that were asked for just now: nothing of the floods passes any more.
        if host.num_open() == 3 && received - before < 10_000 {
            ensure!(received < 200 << 20, "{received} bytes were taken for nobody");
            return Ok(sandbox.close().await?);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err(Finding::Failed(format!("{received} bytes, and they still come")))
}

async fn forks(context: &Context<'_>) -> Result<(), Finding> {
    let host = WebServer::start().await?;
    let origin = sandbox(context, &[&host.entry()]).await?;
    says_hello(&*origin, &host).await?;
    let mut others = Vec::new();
    if context.can().fork {
        others.push(origin.fork().await?);
    }
    if context.can().snapshot {
        let snapshot = origin.snapshot().await?;
        others.push(context.backend.restore(&snapshot).await?);
        context.backend.remove_snapshot(&snapshot).await?;
    }
    says_hello(&*origin, &host).await?;
    for other in &others {
        says_hello(&**other, &host).await?;
    }
    origin.close().await?;
    for other in others {
        says_hello(&*other, &host).await?;
        let text = ask(&*other, "CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n").await?;
        ensure!(text.starts_with("HTTP/1.1 403 "), "{text:?}");
        other.close().await?;
    }
    Ok(())
}

async fn closing(context: &Context<'_>) -> Result<(), Finding> {
    let host = WebServer::start().await?;
    let sandbox = sandbox(context, &[&host.entry()]).await?;
    hold(&*sandbox, &host).await?;
    sandbox.close().await?;
    settles(&host, 0).await
}

/// Has something in the sandbox hold a connection to a host.
async fn hold(sandbox: &dyn Sandbox, host: &WebServer) -> Result<(), Finding> {
    let tunnel = format!("CONNECT {} HTTP/1.1\r\n\r\nGET /hold HTTP/1.1\r\n\r\n", host.entry());
    let script = format!("{ASK} cat >/tmp/hold; (cat /tmp/hold; sleep 98765) | ask >/dev/null &");
    let request = ExecRequest::sh(&script).with_stdin(tunnel).with_timeout(Duration::from_secs(60));
    sandbox.exec(&request).await?;
    settles(host, 1).await
}

/// Waits until so many connections to a host are open.
async fn settles(host: &WebServer, wanted: u64) -> Result<(), Finding> {
    for _ in 0..300 {
        if host.num_open() == wanted {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(Finding::Failed(format!("{} connections in place of {wanted}", host.num_open())))
}

async fn changed(context: &Context<'_>) -> Result<(), Finding> {
    const TICK: &str = "(while sleep 0.1; do echo >>/tmp/ticks; done) >/dev/null 2>&1 </dev/null &";
    const TICKS: &str = "a=$(wc -l </tmp/ticks); sleep 1; [ $(wc -l </tmp/ticks) -gt $a ]";
    let hosts = [WebServer::start().await?, WebServer::start().await?];
    let lists = [
        spec(context, &[&hosts[0].entry()])?.network,
        spec(context, &[&hosts[1].entry()])?.network,
    ];
    let sandbox = context.create().await?;
    if !context.can().network_change {
        let changed = sandbox.set_network(&lists[0]).await;
        sandbox.close().await?;
        return match changed {
            Ok(()) => Err(Finding::Failed("it does what it says it cannot".into())),
            Err(error) => is_unsupported(error),
        };
    }
    context.needs_posix()?;
    sh(&*sandbox, TICK).await?;
    // Where there was nothing there is a list, and then another.
    for (own, other, list) in [(0, 1, &lists[0]), (1, 0, &lists[1])] {
        sandbox.set_network(list).await?;
        settles(&hosts[other], 0).await?;
        says_hello(&*sandbox, &hosts[own]).await?;
        let text = ask(&*sandbox, hosts[other].get("/")).await?;
        ensure!(text.starts_with("HTTP/1.1 403 "), "{text:?}");
        hold(&*sandbox, &hosts[own]).await?;
        let stats = sandbox.stats().await?.network.unwrap_or_default();
        ensure!((stats.connections, stats.refused) == (3, 1), "counted {stats:?}");
    }
    if context.can().fork {
        let fork = sandbox.fork().await?;
        says_hello(&*fork, &hosts[1]).await?;
        fork.close().await?;
    }
    // And nothing again, whatever a program remembers.
    sandbox.set_network(&NetworkPolicy::None).await?;
    settles(&hosts[1], 0).await?;
    let before = hosts[1].num_connections();
    let script = format!("http_proxy=x:3128; {ASK} ask 2>/dev/null; :");
    let request = ExecRequest::sh(&script)
        .with_stdin(hosts[1].get("/"))
        .with_timeout(Duration::from_secs(60));
    let answer = sandbox.exec(&request).await?.stdout.text();
    ensure!(answer.is_empty() || answer.starts_with("HTTP/1.1 403 "), "{answer:?}");
    ensure!(hosts[1].num_connections() == before, "a connection came");
    let variables = sh(&*sandbox, "env | grep -i _proxy= || :").await?;
    ensure!(variables.is_empty(), "programs are still told of a proxy: {variables}");
    let stats = sandbox.stats().await?.network;
    ensure!(stats.is_none(), "counted {stats:?} without a list");
    sandbox.set_network(&lists[0]).await?;
    if context.can().shell {
        let mut shell = sandbox.open_shell(&ShellOptions::default()).await?;
        let told = shell.run("echo $http_proxy", Duration::from_secs(10)).await?.stdout.text();
        ensure!(told == "http://127.0.0.1:3128\n", "a shell is told of {told:?}");
    }
    says_hello(&*sandbox, &hosts[0]).await?;
    let wrong = sandbox.set_network(&NetworkPolicy::allow([])).await;
    ensure!(matches!(wrong, Err(SandboxError::InvalidSpec { .. })), "{wrong:?}");
    says_hello(&*sandbox, &hosts[0]).await?;
    sh(&*sandbox, TICKS).await?;
    sandbox.close().await?;
    let late = sandbox.set_network(&lists[1]).await;
    ensure!(matches!(late, Err(SandboxError::Died { .. })), "{late:?}");
    Ok(())
}
