//! The head of a server's answer to a plain request.

use super::request::{Malformed, copy_headers};

/// The most headers that are taken.
const MAX_HEADERS: usize = 256;

/// The head as it is sent to the client, and whether the real answer is still to come.
///
/// The client is told that the connection ends with this answer, since another request might be
/// for another host.
pub(super) fn rewrite(head: &[u8]) -> Result<(Vec<u8>, bool), Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        _ => return Err(Malformed("the answer is not HTTP")),
    }
    let code = response.code.ok_or(Malformed("the answer has no code"))?;
    if code == 101 {
        return Err(Malformed("the answer changes the protocol, which nobody asked for"));
    }
    let is_interim = (100..200).contains(&code);
    let reason: String = response.reason.unwrap_or_default().into();
    let version = response.version.unwrap_or(1);
    let mut new = format!("HTTP/1.{version} {code} {reason}\r\n").into_bytes();
    copy_headers(response.headers, &[], &mut new);
    if !is_interim {
        new.extend_from_slice(b"Connection: close\r\n");
    }
    new.extend_from_slice(b"\r\n");
    Ok((new, is_interim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_its_connection() {
        let head = b"HTTP/1.1 200 All Right\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\n";
        let (new, is_interim) = rewrite(head).unwrap();
        let wanted = "HTTP/1.1 200 All Right\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
        assert_eq!((String::from_utf8(new).unwrap().as_str(), is_interim), (wanted, false));
        let (new, is_interim) = rewrite(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        assert_eq!((&new[..], is_interim), (&b"HTTP/1.1 100 Continue\r\n\r\n"[..], true));
        assert!(rewrite(b"HTTP/1.1 101 Switching\r\n\r\n").is_err());
        assert!(rewrite(b"SSH-2.0-OpenSSH\r\n\r\n").is_err());
    }
}
