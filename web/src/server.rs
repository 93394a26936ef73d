//! Who answers the requests of pages in place of the network.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// An answer that takes its time; none where the request is blocked after all.
pub type SlowAnswer = Pin<Box<dyn Future<Output = Option<Response>> + Send>>;

/// Answers the requests of pages. Nothing that a page asks for ever reaches a network or the machine's files: what a server
/// does not answer is blocked.
pub trait Server: Send + Sync + fmt::Debug {
    /// The answer to a request, or none, whereupon it is blocked. It is called on the browser's own task: it has to be quick.
    fn answer(&self, request: &Request) -> Option<Response>;

    /// As [`Server::answer`], for servers that wait for somebody else; `None`, the default, of those that do not, which are
    /// asked at once.
    fn answer_slowly(&self, _: &Request) -> Option<SlowAnswer> {
        None
    }

    /// Whether a window may be sent to this address, which may be of any scheme.
    fn is_allowed(&self, url: &str) -> bool;
}

/// What a page asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST` and the like.
    pub method: String,
    /// The address, with its query and without its fragment.
    pub url: String,
    /// What is sent along; at most 1 MiB, beyond which requests are blocked.
    pub body: String,
    /// The value of the header `Cookie`; empty where there is none.
    pub cookies: String,
    /// The other headers, as the browser tells them.
    pub headers: Vec<(String, String)>,
}

/// An answer to a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status of HTTP, such as 200.
    pub status: u16,
    /// The media type, with its encoding.
    pub content_type: Cow<'static, str>,
    /// Further headers.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// What is sent.
    pub body: Arc<[u8]>,
}

impl Response {
    /// A page.
    pub fn html(text: impl Into<String>) -> Self {
        let body: String = text.into();
        Self {
            status: 200,
            content_type: Cow::Borrowed("text/html; charset=utf-8"),
            headers: Vec::new(),
            body: body.into_bytes().into(),
        }
    }

    /// The way to another page, which is then asked for with `GET`.
    pub fn redirect(to: impl Into<String>) -> Self {
        Self { status: 303, headers: vec![("Location".into(), to.into())], ..Self::html("") }
    }

    /// That there is nothing.
    pub fn not_found() -> Self {
        Self {
            status: 404,
            ..Self::html("<!doctype html><title>Not found</title><h1>Not found</h1>")
        }
    }
}

/// Blocks everything but empty pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nothing;

impl Server for Nothing {
    fn answer(&self, _: &Request) -> Option<Response> {
        None
    }

    fn is_allowed(&self, url: &str) -> bool {
        url == "about:blank"
    }
}

/// The scheme, host with port, and path with query of an address; `None` where it has no host.
pub(crate) fn split_url(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    Some((scheme, host, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_fall_into_their_parts() {
        assert_eq!(split_url("http://a.test/b?c=d#e"), Some(("http", "a.test", "/b?c=d#e")));
        assert_eq!(split_url("http://a.test?x"), Some(("http", "a.test", "?x")));
        assert_eq!(split_url("file:///etc"), Some(("file", "", "/etc")));
        assert_eq!(split_url("javascript:alert(1)"), None);
        assert!(Nothing.is_allowed("about:blank") && !Nothing.is_allowed("http://a.test/"));
    }
}
