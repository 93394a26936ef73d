//! Clients that speak SOCKS 5 (RFC 1928) instead of HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::host::{Host, Target};
use super::request::Malformed;

/// The first byte of everything in this protocol.
pub(super) const VERSION: u8 = 5;

/// What a client says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocksGreeting {
    /// Whether it would go on without a password.
    pub without_password: bool,
}

/// What it asks for then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocksRequest {
    /// Whether it is a connection to a host, which alone is known.
    pub is_connect: bool,
    /// Where to.
    pub target: Target,
}

impl SocksGreeting {
    /// Reads it, and how many bytes it has; absent where more are to come.
    ///
    /// # Errors
    ///
    /// [`Malformed`] for another version.
    pub fn find(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        match bytes {
            [] | [VERSION] => Ok(None),
            [VERSION, count, rest @ ..] => {
                let methods = rest.get(..usize::from(*count));
                let greeting = |methods: &[u8]| Self { without_password: methods.contains(&0) };
                Ok(methods.map(|methods| (greeting(methods), 2 + methods.len())))
            }
            _ => Err(Malformed("it is not SOCKS 5")),
        }
    }
}

impl SocksRequest {
    /// Reads it, and how many bytes it has; absent where more are to come.
    ///
    /// # Errors
    ///
    /// [`Malformed`] for another version, a kind of address that is not known, or no host.
    pub fn find(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let [VERSION, command, 0, kind, ref rest @ ..] = *bytes else {
            return match bytes {
                [] | [VERSION] | [VERSION, _] | [VERSION, _, 0] => Ok(None),
                _ => Err(Malformed("it is not SOCKS 5")),
            };
        };
        let (host, after) = match kind {
            1 => {
                let Some((address, after)) = rest.split_first_chunk::<4>() else { return Ok(None) };
                (Some(Host::Address(Ipv4Addr::from(*address).into())), after)
            }
            4 => {
                let Some((address, after)) = rest.split_first_chunk::<16>() else {
                    return Ok(None);
                };
                let address = IpAddr::V6(Ipv6Addr::from(*address));
                (Some(Host::Address(address.to_canonical())), after)
            }
            3 => {
                let Some((length, rest)) = rest.split_first() else { return Ok(None) };
                let Some((name, after)) = rest.split_at_checked(usize::from(*length)) else {
                    return Ok(None);
                };
                (std::str::from_utf8(name).ok().and_then(Host::parse), after)
            }
            _ => return Err(Malformed("it names a host in a way that is not known")),
        };
        let Some((port, after)) = after.split_first_chunk::<2>() else { return Ok(None) };
        let target = host.and_then(|host| Target::new(host, u16::from_be_bytes(*port)));
        let target = target.ok_or(Malformed("it names no host and port"))?;
        Ok(Some((Self { is_connect: command == 1, target }, bytes.len() - after.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_once_they_are_whole() {
        let request = [&[5, 1, 0, 3, 5][..], b"a.org", &[1, 187, 99]].concat();
        for end in 0..request.len() - 1 {
            assert_eq!(SocksRequest::find(&request[..end]), Ok(None));
        }
        let (read, length) = SocksRequest::find(&request).unwrap().unwrap();
        assert_eq!((read.target.to_string().as_str(), length), ("a.org:443", request.len() - 1));
        assert!(read.is_connect);
        let (read, _) = SocksRequest::find(&[5, 3, 0, 1, 127, 0, 0, 1, 0, 80]).unwrap().unwrap();
        assert_eq!((read.target.to_string().as_str(), read.is_connect), ("127.0.0.1:80", false));
        let mut mapped = vec![5, 1, 0, 4];
        mapped.extend("::ffff:10.0.0.1".parse::<Ipv6Addr>().unwrap().octets());
        mapped.extend([0, 80]);
        let (read, _) = SocksRequest::find(&mapped).unwrap().unwrap();
        assert_eq!(read.target.to_string(), "10.0.0.1:80");
        for bytes in [
            &[4, 1][..],
            &[5, 1, 0, 9],
            &[5, 1, 0, 3, 1, b'/', 0, 80],
            &[5, 1, 0, 1, 1, 1, 1, 1, 0, 0],
        ] {
            assert!(SocksRequest::find(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn greetings_list_what_a_client_can_do() {
        assert_eq!(SocksGreeting::find(&[5, 2, 2]), Ok(None));
        let (greeting, length) = SocksGreeting::find(&[5, 2, 2, 0, 7]).unwrap().unwrap();
        assert_eq!((greeting.without_password, length), (true, 4));
        assert!(!SocksGreeting::find(&[5, 1, 2]).unwrap().unwrap().0.without_password);
        assert!(SocksGreeting::find(&[4, 1]).is_err());
    }
}
