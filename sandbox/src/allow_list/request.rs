//! What a client of the proxy asks for.

use super::body::Body;
use super::host::{Host, Target};

/// The longest head of a request that is taken.
pub(super) const MAX_HEAD_BYTES: usize = 32 << 10;
/// The most headers that are taken.
const MAX_HEADERS: usize = 128;

/// The beginning of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Where it is to go.
    pub target: Target,
    /// What is to happen there.
    pub kind: Kind,
}

/// What a request wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `CONNECT`: bytes both ways.
    Tunnel,
    /// One request of plain HTTP.
    Forward {
        /// The head as it is sent on: to this one server, for this one request.
        head: Vec<u8>,
        /// What of the client's bytes follows it.
        body: Body,
    },
}

/// Why something is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(super) &'static str);

impl Request {
    /// Reads the head of a request up to the empty line that ends it.
    ///
    /// # Errors
    ///
    /// [`Malformed`] for everything but `CONNECT HOST:PORT` and `METHOD http://HOST[:PORT]/...`,
    /// and where a body could be read in two ways.
    pub fn parse(head: &[u8]) -> Result<Self, Malformed> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(head) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => {}
            Ok(_) => return Err(Malformed("it does not end where it should")),
            Err(httparse::Error::TooManyHeaders) => return Err(Malformed("too many headers")),
            Err(_) => return Err(Malformed("it is not HTTP")),
        }
        let method = request.method.ok_or(Malformed("it has no method"))?;
        let path = request.path.ok_or(Malformed("it has no target"))?;
        let version = request.version.ok_or(Malformed("it has no version"))?;
        if method == "CONNECT" {
            let target = Target::parse(path, None).ok_or(Malformed("CONNECT takes HOST:PORT"))?;
            return Ok(Self { target, kind: Kind::Tunnel });
        }
        let Some((scheme, rest)) = path.split_once("://") else {
            return Err(Malformed("a proxy is asked for http://HOST/..."));
        };
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(Malformed("of other addresses than http://HOST/... only CONNECT is known"));
        }
        let (authority, page) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let target = Target::parse(authority, Some(80))
            .ok_or(Malformed("after http:// there is HOST or HOST:PORT"))?;
        let page = page.split('#').next().unwrap_or_default();
        let body = framing(request.headers, version)?;
        let slash = if page.starts_with('/') { "" } else { "/" };
        let mut line = format!("{method} {slash}{page} HTTP/1.{version}\r\nHost: {}", target.host);
        if target.port != 80 {
            line += &format!(":{}", target.port);
        }
        line += "\r\nConnection: close\r\n";
        let mut head = line.into_bytes();
        copy_headers(request.headers, &["host"], &mut head);
        head.extend_from_slice(b"\r\n");
        Ok(Self { target, kind: Kind::Forward { head, body } })
    }

    /// Reads any bytes as the head of a request, up to the end of that, if there is one: what the
    /// proxy does with what comes first on a connection.
    ///
    /// # Errors
    ///
    /// As [`Request::parse`].
    pub fn find(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some(end) = head_end(bytes, 0) else { return Ok(None) };
        if end > MAX_HEAD_BYTES {
            return Err(Malformed("its head is too long"));
        }
        Ok(Some((Self::parse(&bytes[..end])?, end)))
    }
}

/// The end of the empty line that ends a head, looked for from `from` on.
pub(super) fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    let from = from.saturating_sub(3);
    let line_feeds = bytes[from..].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    line_feeds.map(|(at, _)| from + at).find_map(|at| match bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// Copies all headers but those that are about the connection itself, and `others`.
pub(super) fn copy_headers(headers: &[httparse::Header<'_>], others: &[&str], to: &mut Vec<u8>) {
    const OWN: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "upgrade", "te"];
    /// These say where a body ends and are never one connection's alone.
    const KEPT: [&str; 2] = ["content-length", "transfer-encoding"];
    let is = |name: &str, list: &[&str]| list.iter().any(|one| name.eq_ignore_ascii_case(one));
    let named: Vec<String> = headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("connection"))
        .flat_map(|header| header.value.split(|byte| *byte == b','))
        .map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned())
        .collect();
    let is_named = |name: &str| named.iter().any(|one| name.eq_ignore_ascii_case(one));
    for header in headers {
        let name = header.name;
        let is_proxys = name.len() >= 6 && name.as_bytes()[..6].eq_ignore_ascii_case(b"proxy-");
        if is(name, &OWN) || is(name, others) || is_proxys || is_named(name) && !is(name, &KEPT) {
            continue;
        }
        to.extend_from_slice(name.as_bytes());
        to.extend_from_slice(b": ");
        to.extend_from_slice(header.value);
        to.extend_from_slice(b"\r\n");
    }
}

/// Where the body ends; where two headers could disagree about that, it is refused.
fn framing(headers: &[httparse::Header<'_>], version: u8) -> Result<Body, Malformed> {
    let values = |name: &'static str| {
        let is_it = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        headers.iter().filter(is_it).map(|header| header.value.trim_ascii())
    };
    let encodings: Vec<&[u8]> = values("transfer-encoding").collect();
    let lengths: Vec<&[u8]> = values("content-length").collect();
    match (&encodings[..], &lengths[..]) {
        ([], []) => Ok(Body::Length(0)),
        ([], [length]) => std::str::from_utf8(length)
            .ok()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .map(Body::Length)
            .ok_or(Malformed("its length is no number")),
        ([encoding], []) if version == 1 && encoding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Body::Chunked)
        }
        ([], _) => Err(Malformed("it has several lengths")),
        (_, []) => Err(Malformed("of transfer encodings only `chunked` is known")),
        _ => Err(Malformed("it has both a length and a transfer encoding")),
    }
}

impl Target {
    /// From a SOCKS request.
    pub(super) fn new(host: Host, port: u16) -> Option<Self> {
        (port > 0).then_some(Self { host, port })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Request, Malformed> {
        Request::parse(text.as_bytes())
    }

    fn forwarded(text: &str) -> (String, String, Body) {
        let Request { target, kind: Kind::Forward { head, body } } = parse(text).unwrap() else {
            panic!("{text} is a tunnel")
        };
        (target.to_string(), String::from_utf8(head).unwrap(), body)
    }

    #[test]
    fn connect_names_a_host_and_a_port() {
        let request = parse("CONNECT Example.org:443 HTTP/1.1\r\nHost: other.org\r\n\r\n").unwrap();
        assert_eq!(
            (request.target.to_string().as_str(), request.kind),
            ("example.org:443", Kind::Tunnel)
        );
        for target in ["example.org", "example.org:0", "u@example.org:1", "http://a:1", "*", "/"] {
            assert!(parse(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).is_err(), "{target}");
        }
    }

    #[test]
    fn a_plain_request_is_sent_on_to_the_host_it_names_and_no_other() {
        let (target, head, body) = forwarded(
            "POST http://a.org:8080/x?y#z HTTP/1.1\r\nHost: evil.net\r\nProxy-Connection: \
             keep-alive\r\nConnection: X-Own, content-length\r\nx-own: 1\r\nAccept: */*\r\n\
             Proxy-Authorization: secret\r\nContent-Length: 5\r\n\r\n",
        );
        assert_eq!((target.as_str(), body), ("a.org:8080", Body::Length(5)));
        assert_eq!(
            head,
            "POST /x?y HTTP/1.1\r\nHost: a.org:8080\r\nConnection: close\r\nAccept: */*\r\n\
             Content-Length: 5\r\n\r\n"
        );
        let (target, head, _) = forwarded("GET HTTP://a.org?q HTTP/1.0\r\n\r\n");
        assert_eq!(target, "a.org:80");
        assert!(head.starts_with("GET /?q HTTP/1.0\r\nHost: a.org\r\n"), "{head}");
    }

    #[test]
    fn what_is_no_request_to_a_proxy_is_refused() {
        for line in [
            "GET / HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "GET https://a.org/ HTTP/1.1",
            "GET ftp://a.org/ HTTP/1.1",
            "GET http:///x HTTP/1.1",
            "GET http://user:pass@a.org/ HTTP/1.1",
            "GET http://a.org:b/ HTTP/1.1",
            "GET http://127.1/ HTTP/1.1",
            "GET http://a.org\\@b.org/ HTTP/1.1",
            "GET http://a.org/",
            "PRI * HTTP/2.0",
            "\u{16}\u{3}\u{1}",
        ] {
            assert!(parse(&format!("{line}\r\n\r\n")).is_err(), "{line}");
        }
        let many = "X: y\r\n".repeat(MAX_HEADERS + 1);
        let error = parse(&format!("GET http://a.org/ HTTP/1.1\r\n{many}\r\n")).unwrap_err();
        assert!(error.to_string().contains("too many headers"));
    }

    #[test]
    fn bodies_that_could_be_read_in_two_ways_are_refused() {
        let with = |headers: &str| parse(&format!("POST http://a/ HTTP/1.1\r\n{headers}\r\n"));
        for headers in [
            "Content-Length: 1\r\nContent-Length: 2\r\n",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: 1, 1\r\n",
            "Content-Length: \r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ] {
            assert!(with(headers).is_err(), "{headers}");
        }
        let chunked = with("transfer-encoding: Chunked\r\n").unwrap();
        assert!(matches!(chunked.kind, Kind::Forward { body: Body::Chunked, .. }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Request::find(&bytes);
        }

        /// What is sent on is one request of one head, whatever was in the one that came.
        #[test]
        fn what_is_sent_on_is_a_single_request(
            path in "[!-~]{0,20}",
            headers in proptest::collection::vec(("[A-Za-z-]{1,12}", "[ -~]{0,20}"), 0..8),
        ) {
            let mut text = format!("GET http://a.org/{path} HTTP/1.1\r\n");
            for (name, value) in &headers {
                text += &format!("{name}: {value}\r\n");
            }
            text += "\r\n";
            if let Ok(Request { target, kind: Kind::Forward { head, .. } }) = parse(&text) {
                prop_assert_eq!(target.to_string(), "a.org:80");
                prop_assert_eq!(head_end(&head, 0), Some(head.len()));
                let head = String::from_utf8(head).unwrap().to_lowercase();
                prop_assert_eq!(head.matches("\r\nhost:").count(), 1);
                prop_assert_eq!(head.matches("\r\nconnection: close\r\n").count(), 1);
                prop_assert!(!head.contains("\r\nproxy-"));
            }
        }
    }
}
