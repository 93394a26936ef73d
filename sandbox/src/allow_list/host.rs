//! Where a connection is to go.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A name or an address, each in its one spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name in lower case, without the dot at the end.
    Name(String),
    /// An address; IPv4 written as IPv6 is IPv4.
    Address(IpAddr),
}

/// A host and a port of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
}

impl Host {
    /// Reads `example.org`, `192.0.2.1` or `[2001:db8::1]`.
    ///
    /// Absent for anything else. Other spellings of addresses that resolvers take for some
    /// (`127.1`, `0x7f.1`, `2130706433`) are no names.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        parse_name(text).map(Self::Name)
    }
}

/// A name in its one spelling.
pub(super) fn parse_name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() || text.len() > 253 {
        return None;
    }
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len())
            && label.bytes().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    (text.split('.').all(is_label) && !is_number).then(|| text.to_ascii_lowercase())
}

impl Target {
    /// Reads `HOST:PORT`, or `HOST` where there is a usual port.
    pub fn parse(text: &str, usual_port: Option<u16>) -> Option<Self> {
        let (host, port) = split_port(text);
        let port = match port {
            Some(port) => parse_port(port)?,
            None => usual_port?,
        };
        Some(Self { host: Host::parse(host)?, port })
    }
}

/// Takes `HOST:PORT` apart; the colons of an address in brackets are no such colon.
pub(super) fn split_port(text: &str) -> (&str, Option<&str>) {
    let host_end = text.rfind(']').map_or(0, |end| end + 1);
    match text[host_end..].split_once(':') {
        Some((rest, port)) => (&text[..host_end + rest.len()], Some(port)),
        None => (text, None),
    }
}

/// A port number, written with digits alone.
pub(super) fn parse_port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_plain && *port > 0)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_spelling() {
        let read = |text: &str| Host::parse(text).map(|host| host.to_string());
        for (text, spelling) in [
            ("Example.ORG.", "example.org"),
            ("localhost", "localhost"),
            ("a-b._tcp.x1", "a-b._tcp.x1"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:DB8:0::1]", "[2001:db8::1]"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ] {
            assert_eq!(read(text).as_deref(), Some(spelling), "{text}");
        }
        for text in [
            "",
            ".",
            "a..b",
            ".a",
            "-a.b",
            "a-.b",
            "a b",
            "a@b",
            "a/b",
            "a%00.org",
            "127.1",
            "0177.0.0.1",
            "0x7f.0x1",
            "2130706433",
            "1.2.3.4.5",
            "::1",
            "[::1",
            "[fe80::1%eth0]",
            "[127.0.0.1]",
            "exämple.org",
            &"a".repeat(64),
            &"a.".repeat(130),
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn targets_have_a_port() {
        let read = |text: &str| Target::parse(text, None).map(|target| target.to_string());
        assert_eq!(read("A.org:443").as_deref(), Some("a.org:443"));
        assert_eq!(read("[::1]:80").as_deref(), Some("[::1]:80"));
        for text in ["a", "a:", "a:0", "a:+80", "a:65536", "a:80:80", "[::1]80", "[::1]", ":80"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(Target::parse("a", Some(80)).unwrap().port, 80);
    }
}
