//! How programs inside are told of the proxy.

use super::AllowedHost;

/// The port of the sandbox's loopback on which the proxy answers: the usual one of proxies, and
/// always the same, so that what programs wrote into their files holds in forks and snapshots.
pub(crate) const PORT: u16 = 3128;

/// What of a sandbox's own is reached without the proxy.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The environment variables that programs look for.
///
/// An address of loopback that the list names means the host's, and is not among what is reached
/// directly.
pub(crate) fn variables(hosts: &[AllowedHost]) -> Vec<(String, String)> {
    let proxy = format!("http://127.0.0.1:{PORT}");
    let is_listed = |own: &&str| {
        own.parse().is_ok_and(|own| hosts.iter().any(|entry| entry.address() == Some(own)))
    };
    let direct: Vec<&str> = OWN.into_iter().filter(|own| !is_listed(own)).collect();
    let mut variables = Vec::new();
    for (name, value) in [
        ("HTTP_PROXY", proxy.as_str()),
        ("HTTPS_PROXY", proxy.as_str()),
        ("ALL_PROXY", proxy.as_str()),
        ("NO_PROXY", &direct.join(",")),
    ] {
        variables.push((name.to_owned(), value.to_owned()));
        variables.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_reached_directly_unless_the_list_means_the_hosts() {
        let direct = |entry: &str| {
            let variables = variables(&[entry.parse().unwrap()]);
            assert_eq!(variables.len(), 8);
            variables.into_iter().find(|(name, _)| name == "no_proxy").unwrap().1
        };
        assert_eq!(direct("example.org"), "localhost,127.0.0.1,::1");
        assert_eq!(direct("127.0.0.1:8080"), "localhost,::1");
        assert_eq!(direct("[::1]:8080"), "localhost,127.0.0.1");
    }
}
