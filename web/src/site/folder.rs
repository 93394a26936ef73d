//! A folder of pages as a site.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::files::{media_type, read_folder};
use crate::server::split_url;
use crate::{Request, Response, Server, WebError};

/// The host of its pages.
const HOST: &str = "site.test";

/// The files of a folder, as the pages of `http://site.test/`; they do not change.
///
/// An address that ends with `/` is the `index.html` there. Files of more than 16 MiB and links are left out.
#[derive(Debug)]
pub struct Folder {
    files: HashMap<String, Arc<[u8]>>,
}

impl Folder {
    /// Reads a folder.
    ///
    /// # Errors
    ///
    /// [`WebError::Pages`] where it cannot be read, or has no files.
    pub fn open(folder: &Path) -> Result<Self, WebError> {
        let refuse = |detail: String| WebError::Pages {
            benchmark: "a site",
            detail: format!("`{}`: {detail}", folder.display()),
        };
        let mut files = HashMap::new();
        read_folder(folder, &[], &mut files).map_err(|error| refuse(error.to_string()))?;
        match files.is_empty() {
            true => Err(refuse("it has no files".to_owned())),
            false => Ok(Self { files }),
        }
    }
}

impl Server for Folder {
    fn answer(&self, request: &Request) -> Option<Response> {
        let (_, _, path) = split_url(&request.url).filter(|(_, host, _)| *host == HOST)?;
        if request.method != "GET" {
            return Some(Response { status: 405, ..Response::not_found() });
        }
        let path = path.split('?').next().unwrap_or_default().trim_start_matches('/');
        let index = if path.is_empty() || path.ends_with('/') { "index.html" } else { "" };
        let path = format!("{path}{index}");
        let Some(body) = self.files.get(&path) else { return Some(Response::not_found()) };
        Some(Response {
            status: 200,
            content_type: Cow::Borrowed(media_type(&path)),
            headers: Vec::new(),
            body: Arc::clone(body),
        })
    }

    fn is_allowed(&self, url: &str) -> bool {
        url == "about:blank"
            || split_url(url).is_some_and(|(scheme, host, _)| (scheme, host) == ("http", HOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_what_is_in_it_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (pages, outside) = (folder.path().join("www"), folder.path().join("secret.txt"));
        std::fs::create_dir_all(pages.join("a")).unwrap();
        std::fs::write(&outside, "secret").unwrap();
        assert!(Folder::open(&pages).unwrap_err().to_string().contains("has no files"));
        std::fs::write(pages.join("index.html"), "<p>home").unwrap();
        std::fs::write(pages.join("a/b.txt"), "b").unwrap();
        std::os::unix::fs::symlink(&outside, pages.join("link.txt")).unwrap();
        let site = Folder::open(&pages).unwrap();
        let ask = |method: &str, url: &str| {
            let request = Request {
                method: method.to_owned(),
                url: url.to_owned(),
                body: String::new(),
                cookies: String::new(),
                headers: Vec::new(),
            };
            site.answer(&request).map(|response| (response.status, response.body.len()))
        };
        assert_eq!(ask("GET", "http://site.test/"), Some((200, 7)));
        assert_eq!(ask("GET", "http://site.test/a/b.txt?x=1"), Some((200, 1)));
        for missing in ["link.txt", "../secret.txt", "a", "a/", "%2e%2e/secret.txt"] {
            let found = ask("GET", &format!("http://site.test/{missing}")).unwrap();
            assert_eq!(found.0, 404, "{missing}");
        }
        assert_eq!(ask("POST", "http://site.test/").unwrap().0, 405);
        assert_eq!(ask("GET", "http://other.test/"), None);
        assert!(site.is_allowed("http://site.test/a") && !site.is_allowed("file:///etc/passwd"));
        assert!(
            !site.is_allowed("http://site.test.evil/") && !site.is_allowed("https://site.test")
        );
    }
}
