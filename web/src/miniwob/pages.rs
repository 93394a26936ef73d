//! The pages of MiniWoB++, from where the user has them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::wheel::read_wheel;
use crate::files::{media_type, read_folder};
use crate::{Request, Response, Server, WebError};

/// Names where the package is: its folder, a folder with its `html`, or its wheel.
pub const MINIWOB_VARIABLE: &str = "SPAR_MINIWOB";
/// The origin of the pages, for which nobody but [`Pages`] answers.
pub const ORIGIN: &str = "http://miniwob.test";

/// What scripts say that keep something beyond their page.
const KEEPING: [&str; 9] = [
    "localStorage",
    "sessionStorage",
    "document.cookie",
    "cookieStore",
    "indexedDB",
    "openDatabase",
    "caches.",
    "getDirectory",
    "serviceWorker",
];

/// The pages of MiniWoB++ in memory. They are all that its windows see.
#[derive(Debug)]
pub struct Pages {
    files: HashMap<String, Arc<[u8]>>,
    tasks: Vec<String>,
    keep_anything: bool,
}

impl Pages {
    /// The pages of the package that `SPAR_MINIWOB` names, that scripts/get_miniwob.sh has fetched, or that is installed for
    /// `python3`; read once.
    ///
    /// # Errors
    ///
    /// [`WebError::Pages`] where they are nowhere, or cannot be read.
    pub fn shared() -> Result<Arc<Self>, WebError> {
        static SHARED: OnceLock<Arc<Pages>> = OnceLock::new();
        if let Some(pages) = SHARED.get() {
            return Ok(Arc::clone(pages));
        }
        let pages = Arc::new(Self::open(&Self::find()?)?);
        Ok(Arc::clone(SHARED.get_or_init(|| pages)))
    }

    /// Where the package is.
    ///
    /// # Errors
    ///
    /// [`WebError::Pages`] where it is nowhere.
    pub fn find() -> Result<PathBuf, WebError> {
        if let Some(named) = std::env::var_os(MINIWOB_VARIABLE).filter(|named| !named.is_empty()) {
            return Ok(named.into());
        }
        let cache =
            std::env::var_os("XDG_CACHE_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        if let Some(folder) = cache.map(|cache| cache.join("spar/miniwob")) {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let mut wheels: Vec<PathBuf> = entries
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "whl"))
                .collect();
            wheels.sort();
            if let Some(wheel) = wheels.pop() {
                return Ok(wheel);
            }
        }
        const ASK: &str = "import importlib.util as u; print(u.find_spec('miniwob').submodule_search_locations[0])";
        let asked = std::process::Command::new("python3").args(["-c", ASK]).output();
        if let Ok(output) = asked.map_err(drop)
            && output.status.success()
        {
            let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
            if path.join("html/miniwob").is_dir() {
                return Ok(path);
            }
        }
        Err(refuse("there is no package `miniwob`".to_owned()))
    }

    /// The pages of a package: its folder, a folder with its `html`, that one itself, or a wheel.
    ///
    /// # Errors
    ///
    /// [`WebError::Pages`] where there are none.
    pub fn open(path: &Path) -> Result<Self, WebError> {
        let told = |error: std::io::Error| refuse(format!("`{}`: {error}", path.display()));
        let mut files = HashMap::new();
        if path.is_file() {
            let bytes = std::fs::read(path).map_err(told)?;
            files = read_wheel(&bytes, "miniwob/html/")
                .map_err(|detail| refuse(format!("`{}`: {detail}", path.display())))?;
        } else {
            let places = [path.join("html"), path.join("miniwob/html"), path.to_owned()];
            let Some(root) = places.into_iter().find(|place| place.join("core/core.js").is_file())
            else {
                return Err(refuse(format!("`{}` has no `html/core/core.js`", path.display())));
            };
            // FlightWoB is a benchmark of its own and not played.
            read_folder(&root, &["flight"], &mut files).map_err(told)?;
        }
        let name =
            |path: &String| Some(path.strip_prefix("miniwob/")?.strip_suffix(".html")?.to_owned());
        let mut tasks: Vec<String> = files.keys().filter_map(name).collect();
        tasks.sort();
        if tasks.is_empty() {
            return Err(refuse(format!("`{}` has no pages", path.display())));
        }
        // Those that MiniWoB++ comes with keep nothing; others may be given.
        let keeps = |file: &[u8]| {
            KEEPING.iter().any(|word| memchr::memmem::find(file, word.as_bytes()).is_some())
        };
        // Whatever its name, a file may be a script.
        let keep_anything = files.iter().any(|(_, file)| keeps(file));
        Ok(Self { files, tasks, keep_anything })
    }

    /// Whether any of the pages may keep something beyond itself, such as a cookie.
    pub(super) fn keep_anything(&self) -> bool {
        self.keep_anything
    }

    /// The same pages, as if they kept something.
    #[cfg(test)]
    pub(super) fn keeping(&self) -> Self {
        Self { files: self.files.clone(), tasks: self.tasks.clone(), keep_anything: true }
    }

    /// The names of the tasks, sorted.
    pub fn tasks(&self) -> &[String] {
        &self.tasks
    }

    /// The addresses of all pictures that a task's page may show: those in folders that it names.
    pub(super) fn pictures(&self, task: &str) -> Vec<String> {
        let Some(page) = self.files.get(&format!("miniwob/{task}.html")) else { return Vec::new() };
        let is_named = |path: &str| {
            let is_picture = [".png", ".gif", ".jpg", ".svg"].iter().any(|end| path.ends_with(end));
            let folder = path.rsplit_once('/').map_or(0, |(folder, _)| folder.len() + 1);
            is_picture && memchr::memmem::find(page, &path.as_bytes()[..folder]).is_some()
        };
        let paths = self.files.keys().filter(|path| is_named(path));
        let mut pictures: Vec<String> = paths.map(|path| format!("{ORIGIN}/{path}")).collect();
        pictures.sort();
        pictures
    }

    /// The address of a task's page.
    pub fn url(task: &str) -> String {
        format!("{ORIGIN}/miniwob/{task}.html")
    }
}

impl Server for Pages {
    fn answer(&self, request: &Request) -> Option<Response> {
        let path = request.url.strip_prefix(ORIGIN)?.strip_prefix('/')?;
        let path = path.split('?').next().unwrap_or_default();
        let Some(body) = self.files.get(path).filter(|_| request.method == "GET") else {
            return Some(Response::not_found());
        };
        let content_type = media_type(path);
        // Scripts and styles stay in the memory of a page's process, and are not asked for, and read, with every episode.
        let headers = match path.ends_with(".html") {
            true => Vec::new(),
            false => vec![("Cache-Control".into(), "max-age=86400, immutable".to_owned())],
        };
        Some(Response {
            status: 200,
            content_type: Cow::Borrowed(content_type),
            headers,
            body: Arc::clone(body),
        })
    }

    fn is_allowed(&self, url: &str) -> bool {
        // By its origin alone: the pages of other tasks end the episode, their sources cannot be asked for.
        url == "about:blank"
            || crate::server::split_url(url)
                .is_some_and(|(scheme, host, _)| (scheme, host) == ("http", "miniwob.test"))
    }
}

fn refuse(detail: String) -> WebError {
    WebError::Pages { benchmark: "MiniWoB++", detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_pages_is_all_that_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let html = folder.path().join("html");
        for (name, text) in [
            ("core/core.js", "var core"),
            ("miniwob/click-test.html", "<p style='content: url(../common/b/one.png)'>"),
            ("common/b/one.png", "1"),
            ("common/b/two.png", "2"),
            ("common/b/three.css", "3"),
            ("common/c/four.png", "4"),
            ("flight/x.html", "no"),
        ] {
            let path = html.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let pages = Pages::open(folder.path()).unwrap();
        assert_eq!(pages.tasks(), ["click-test"]);
        assert!(!pages.keep_anything());
        std::fs::write(html.join("core/more.js"), "window.localStorage.x = 1").unwrap();
        assert!(Pages::open(folder.path()).unwrap().keep_anything());
        let pictures =
            ["one", "two"].map(|name| format!("http://miniwob.test/common/b/{name}.png"));
        assert_eq!(pages.pictures("click-test"), pictures);
        let ask = |url: &str| {
            let request = Request {
                method: "GET".to_owned(),
                url: url.to_owned(),
                body: String::new(),
                cookies: String::new(),
                headers: Vec::new(),
            };
            pages
                .answer(&request)
                .map(|response| (response.status, response.content_type.into_owned()))
        };
        let html = (200, "text/html; charset=utf-8".to_owned());
        assert_eq!(ask(&Pages::url("click-test")), Some(html));
        assert_eq!(ask("http://miniwob.test/../etc/passwd").unwrap().0, 404);
        assert_eq!(ask("http://miniwob.test/flight/x.html").unwrap().0, 404);
        assert_eq!(ask("http://miniwob.test.evil/miniwob/click-test.html"), None);
        assert_eq!(ask("file:///etc/passwd"), None);
        for refused in [
            "javascript:core.endEpisode(1)",
            "file:///",
            "view-source:http://miniwob.test/",
            "data:text/html,x",
            "http://miniwob.test:80@a.test/",
            "https://miniwob.test/",
        ] {
            assert!(!pages.is_allowed(refused), "{refused}");
        }
        assert!(pages.is_allowed("http://miniwob.test/miniwob/click-test.html"));
        let error = Pages::open(&folder.path().join("nowhere")).unwrap_err();
        assert!(error.to_string().contains("core.js") && error.hint().is_some(), "{error}");
    }
}
