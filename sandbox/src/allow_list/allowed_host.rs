//! One entry of an allow-list.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::host::{Host, Target, parse_name, parse_port, split_port};

/// A host that may be reached, and on which ports: `HOST` or `HOST:PORT`.
///
/// ```
/// use spar_sandbox::allow_list::{AllowedHost, Target};
///
/// let entry: AllowedHost = "*.example.org:443".parse()?;
/// let target = |text| Target::parse(text, None).unwrap();
/// assert!(entry.allows(&target("files.example.org:443")));
/// assert!(!entry.allows(&target("example.org:443")));
/// # Ok::<(), spar_sandbox::allow_list::AllowedHostError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedHost {
    host: Pattern,
    ports: Ports,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Pattern {
    /// This name or address.
    Is(Host),
    /// Every name that ends in a dot and this one.
    Below(String),
}

/// The ports of an [`AllowedHost`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ports {
    /// 80 and 443; what an entry without a port means.
    Web,
    /// This one.
    One(u16),
    /// All of them, written `*`.
    All,
}

/// An entry that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{entry}` is not HOST or HOST:PORT ({problem}): HOST is a name, *.name, an IPv4 address or an \
     IPv6 address in brackets, PORT a number or *, and without one 80 and 443"
)]
pub struct AllowedHostError {
    entry: String,
    problem: &'static str,
}

impl AllowedHost {
    /// Whether it lets through what is asked for by this name or address.
    pub fn allows(&self, target: &Target) -> bool {
        let is_host = match (&self.host, &target.host) {
            (Pattern::Is(host), asked) => host == asked,
            (Pattern::Below(name), Host::Name(asked)) => {
                asked.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (Pattern::Below(_), Host::Address(_)) => false,
        };
        is_host && self.ports.has(target.port)
    }

    /// The address that it names, if it names one.
    pub fn address(&self) -> Option<IpAddr> {
        match self.host {
            Pattern::Is(Host::Address(address)) => Some(address),
            _ => None,
        }
    }
}

impl Ports {
    fn has(self, port: u16) -> bool {
        match self {
            Self::Web => matches!(port, 80 | 443),
            Self::One(one) => port == one,
            Self::All => true,
        }
    }
}

impl FromStr for AllowedHost {
    type Err = AllowedHostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |problem| AllowedHostError { entry: text.to_owned(), problem };
        let (host, port) = split_port(text.trim());
        let ports = match port {
            None => Ports::Web,
            Some("*") => Ports::All,
            Some(port) => {
                Ports::One(parse_port(port).ok_or_else(|| wrong("a port is 1 to 65535"))?)
            }
        };
        let host = match host.strip_prefix("*.") {
            Some(name) => {
                Pattern::Below(parse_name(name).ok_or_else(|| wrong("after `*.` there is a name"))?)
            }
            None if host.contains('*') => return Err(wrong("a `*` stands first, as in `*.name`")),
            None if host.contains('/') => return Err(wrong("it is no address of a page")),
            None => Pattern::Is(Host::parse(host).ok_or_else(|| wrong("this is no such host"))?),
        };
        Ok(Self { host, ports })
    }
}

impl TryFrom<String> for AllowedHost {
    type Error = AllowedHostError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<AllowedHost> for String {
    fn from(entry: AllowedHost) -> Self {
        entry.to_string()
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Pattern::Is(host) => write!(f, "{host}")?,
            Pattern::Below(name) => write!(f, "*.{name}")?,
        }
        match self.ports {
            Ports::Web => Ok(()),
            Ports::One(port) => write!(f, ":{port}"),
            Ports::All => f.write_str(":*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn allows(entry: &str, target: &str) -> bool {
        let target = Target::parse(target, None).unwrap();
        entry.parse::<AllowedHost>().unwrap().allows(&target)
    }

    #[test]
    fn an_entry_allows_what_it_names_and_nothing_else() {
        for (entry, target) in [
            ("example.org", "example.org:443"),
            ("example.org", "EXAMPLE.org.:80"),
            ("Example.org.:8080", "example.org:8080"),
            ("example.org:*", "example.org:22"),
            ("*.example.org", "a.b.example.org:80"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("127.0.0.1:80", "[::ffff:127.0.0.1]:80"),
            ("[2001:db8::1]:*", "[2001:DB8:0::1]:9"),
        ] {
            assert!(allows(entry, target), "{entry} does not allow {target}");
        }
        for (entry, target) in [
            ("example.org", "example.org:8080"),
            ("example.org:443", "example.org:80"),
            ("example.org", "www.example.org:443"),
            ("example.org", "example.org.evil.net:443"),
            ("*.example.org", "example.org:443"),
            ("*.example.org", "evilexample.org:443"),
            ("*.example.org", "192.0.2.1:443"),
            ("192.0.2.1", "192.0.2.2:443"),
            ("localhost:*", "127.0.0.1:80"),
        ] {
            assert!(!allows(entry, target), "{entry} allows {target}");
        }
    }

    #[test]
    fn a_malformed_entry_says_what_the_form_is() {
        for entry in [
            "",
            "*",
            "*:80",
            "**.a.org",
            "a.*.org",
            "*.",
            "*.1.2.3.4",
            "a:0",
            "a:",
            "a:http",
            "a:99999",
            "https://a.org",
            "a.org/x",
            "user@a.org",
            "::1",
            "[::1",
            "[*.a]",
            "a b",
            "*.[::1]",
            "127.1:80",
        ] {
            let error = entry.parse::<AllowedHost>().unwrap_err().to_string();
            let parts = [&format!("`{entry}`")[..], "HOST:PORT", "*.name", "brackets"];
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn entries_are_strings_in_files() {
        let entry: AllowedHost = serde_json::from_str("\"*.Example.org:443\"").unwrap();
        assert_eq!(serde_json::to_string(&entry).unwrap(), "\"*.example.org:443\"");
        assert!(serde_json::from_str::<AllowedHost>("\"a:b\"").is_err());
    }

    fn name() -> impl Strategy<Value = String> {
        "([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,8}[a-zA-Z0-9_])?\\.){0,3}[a-zA-Z][a-zA-Z0-9]{0,5}"
    }

    fn host() -> impl Strategy<Value = String> {
        prop_oneof![
            name(),
            any::<std::net::Ipv4Addr>().prop_map(|address| address.to_string()),
            any::<std::net::Ipv6Addr>().prop_map(|address| format!("[{address}]")),
        ]
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            if let Ok(entry) = text.parse::<AllowedHost>() {
                prop_assert_eq!(entry.to_string().parse::<AllowedHost>(), Ok(entry));
            }
        }

        #[test]
        fn an_entry_without_a_wildcard_allows_its_own_host_alone(
            one in host(),
            other in host(),
            port in 1u16..,
        ) {
            let entry: AllowedHost = format!("{one}:{port}").parse().unwrap();
            prop_assert_eq!(entry.to_string().parse::<AllowedHost>(), Ok(entry.clone()));
            prop_assert!(entry.allows(&Target::parse(&one, Some(port)).unwrap()));
            let target = Target::parse(&other, Some(port)).unwrap();
            prop_assert_eq!(entry.allows(&target), Host::parse(&one) == Host::parse(&other));
        }

        #[test]
        fn a_wildcard_allows_what_is_below_its_name(base in name(), below in name()) {
            let entry: AllowedHost = format!("*.{base}:*").parse().unwrap();
            let full = Target::parse(&format!("{below}.{base}"), Some(1)).unwrap();
            prop_assert!(entry.allows(&full));
            let glued = Target::parse(&format!("{below}{base}"), Some(1));
            let is_below = glued.as_ref().is_some_and(|glued| {
                glued.to_string().contains(&format!(".{}:", base.to_lowercase()))
            });
            prop_assert_eq!(glued.is_some_and(|glued| entry.allows(&glued)), is_below);
        }
    }
}
