//! Which hosts can be reached, by Harbor's rules.

use std::net::{IpAddr, Ipv6Addr};

use crate::columns::Columns;
use crate::error::{LoadError, shortened};
use crate::instance::NetworkPolicy;

/// The words for networks.
const MODES: [&str; 3] = ["no-network", "public", "allowlist"];

/// The network of a sandbox: everything where it does not say.
pub(super) fn baseline(fields: &mut Columns) -> Result<NetworkPolicy, LoadError> {
    let mode = fields.choice("network_mode", &MODES)?.unwrap_or("public");
    let hosts = allowed(fields)?.unwrap_or_default();
    policy(fields, mode, hosts)
}

/// The network of the agent or the verification; absent where it is the sandbox's.
pub(super) fn phase(fields: &mut Columns) -> Result<Option<NetworkPolicy>, LoadError> {
    let mode = fields.choice("network_mode", &MODES)?;
    let hosts = allowed(fields)?;
    match (mode, hosts) {
        (None, None) => Ok(None),
        (None, Some(_)) => {
            Err(fields.wrong("allowed_hosts", "it goes with `network_mode = \"allowlist\"` alone"))
        }
        (Some(mode), hosts) => policy(fields, mode, hosts.unwrap_or_default()).map(Some),
    }
}

fn policy(fields: &Columns, mode: &str, hosts: Vec<String>) -> Result<NetworkPolicy, LoadError> {
    match mode {
        "allowlist" => Ok(NetworkPolicy::Allowlist(hosts)),
        _ if !hosts.is_empty() => {
            Err(fields.wrong("allowed_hosts", "it goes with `network_mode = \"allowlist\"` alone"))
        }
        "public" => Ok(NetworkPolicy::Full),
        _ => Ok(NetworkPolicy::None),
    }
}

fn allowed(fields: &mut Columns) -> Result<Option<Vec<String>>, LoadError> {
    let Some(hosts) = fields.optional_list("allowed_hosts")? else {
        return Ok(None);
    };
    let normal = |host: &String| {
        normalized(host).ok_or_else(|| {
            let detail = format!(
                "expected names of hosts, `*.` before such a name, addresses or ranges of them, found `{}`",
                shortened(host)
            );
            fields.wrong("allowed_hosts", detail)
        })
    };
    hosts.iter().map(normal).collect::<Result<_, _>>().map(Some)
}

/// A host as it is compared; absent where it is none.
fn normalized(host: &str) -> Option<String> {
    let host = host.trim().to_lowercase();
    let host = host.trim_end_matches('.');
    if host.contains('/') {
        return range(host);
    }
    if host.contains(':') {
        return host.parse::<Ipv6Addr>().ok().map(|address| address.to_string());
    }
    let name = match host.strip_prefix("*.") {
        Some(name) if name.parse::<IpAddr>().is_ok() => return None,
        Some(name) => name,
        None => host,
    };
    let is_label = |label: &str| {
        let is_end = |byte: Option<u8>| {
            byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        label.len() <= 63
            && is_end(label.bytes().next())
            && is_end(label.bytes().last())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    name.split('.').all(is_label).then(|| host.to_owned())
}

/// A range of addresses: an address without bits behind its prefix, and the prefix's length or mask.
fn range(text: &str) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let (bits, width) = match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let is_digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let length: u32 = match is_digits {
        true => length.parse().ok()?,
        false => mask_length(length.parse().ok()?, width)?,
    };
    if length > width {
        return None;
    }
    let behind = if length == width { 0 } else { (u128::MAX >> (128 - width)) >> length };
    (bits & behind == 0).then(|| format!("{address}/{length}"))
}

/// The length of a prefix that a mask of IPv4 stands for, either way round.
fn mask_length(mask: IpAddr, width: u32) -> Option<u32> {
    let IpAddr::V4(mask) = mask else {
        return None;
    };
    let mask = u32::from(mask);
    let length = mask.leading_ones();
    if width != 32 {
        return None;
    }
    if mask.count_ones() == length {
        return Some(length);
    }
    let host = mask.leading_zeros();
    (mask.count_ones() == 32 - host).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_from_what_is_none() {
        for (host, expected) in [
            (" Example.COM. ", "example.com"),
            ("*.example.com", "*.example.com"),
            ("192.0.2.1", "192.0.2.1"),
            ("2001:DB8:0::1", "2001:db8::1"),
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("10.0.0.0/255.0.0.0", "10.0.0.0/8"),
            ("2001:db8::/32", "2001:db8::/32"),
        ] {
            assert_eq!(normalized(host).as_deref(), Some(expected), "{host}");
        }
        for host in [
            "",
            ".",
            "a b",
            "http://a.b",
            "a.b:80",
            "a.b/c",
            "192.0.2.1/24",
            "*",
            "*.",
            "*.1.2.3.4",
            "a*.b",
            "-a.b",
            "a_b.c",
            "[::1]",
            "10.0.0.0/33",
            "ü.de",
        ] {
            assert_eq!(normalized(host), None, "{host}");
        }
    }
}
