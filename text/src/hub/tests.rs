use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A server that imitates the hub, on a port of its own, for as long as the tests run.
struct FakeHub {
    address: String,
    /// What was asked for, with the token.
    requests: Arc<Requests>,
}

/// Paths with the token that was sent along.
type Requests = Mutex<Vec<(String, Option<String>)>>;

/// Status, headers and body by path.
type Answers = HashMap<String, (u16, Vec<(&'static str, String)>, Vec<u8>)>;

impl FakeHub {
    fn new(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that hangs up is no concern of the others.
                let _ = serve(stream.unwrap(), &answers, &seen);
            }
        });
        Self { address, requests }
    }

    fn paths(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

fn serve(mut stream: TcpStream, answers: &Answers, seen: &Requests) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().ok_or(std::io::ErrorKind::UnexpectedEof)??;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut token = None;
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("authorization: ") {
            token = Some(value.to_owned());
        }
    }
    seen.lock().unwrap().push((path.clone(), token));
    let nothing = (404, Vec::new(), b"no such thing".to_vec());
    let (status, headers, body) = answers.get(&path).unwrap_or(&nothing);
    write!(stream, "HTTP/1.1 {status} X\r\nconnection: close\r\n")?;
    if !headers.iter().any(|(name, _)| *name == "content-length") {
        write!(stream, "content-length: {}\r\n", body.len())?;
    }
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "\r\n")?;
    stream.write_all(body)
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A hub with one model: small files of its own, weights in two files elsewhere.
fn hub_with(change: impl FnOnce(&mut Answers, &FakeHub)) -> (FakeHub, FakeHub) {
    let parts = [b"first part".to_vec(), b"second part".to_vec()];
    let elsewhere = FakeHub::new(HashMap::from([
        ("/store/1?signature=s".to_owned(), (200, vec![], parts[0].clone())),
        ("/store/2?signature=s".to_owned(), (200, vec![], parts[1].clone())),
    ]));
    let names = [
        "config.json",
        "README.md",
        "additional_chat_templates/rag.jinja",
        "pytorch_model.bin",
        "model.safetensors.index.json",
        "model-1.safetensors",
        "model-2.safetensors",
        "model-unused.safetensors",
    ];
    let siblings = names.map(|name| serde_json::json!({ "rfilename": name }));
    let info = serde_json::json!({ "sha": COMMIT, "siblings": siblings }).to_string();
    let index = r#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#;
    let resolve = |file: &str| format!("/org/name/resolve/{COMMIT}/{file}");
    let small = |etag: &str, body: &str| {
        (200, vec![("etag", format!("\"{etag}\""))], body.as_bytes().to_vec())
    };
    let mut answers: Answers = HashMap::from([
        ("/api/models/org/name/revision/main".to_owned(), (200, vec![], info.clone().into())),
        ("/api/models/org/name/revision/refs%2Fpr%2F1".to_owned(), (200, vec![], info.into())),
        (resolve("config.json"), small("c0ffee", "{}")),
        (resolve("additional_chat_templates/rag.jinja"), small("beef", "by documents")),
        (resolve("model.safetensors.index.json"), small("1d", index)),
    ]);
    for (number, part) in (1..).zip(&parts) {
        let headers = vec![
            ("x-linked-etag", format!("\"{}\"", sha256(part))),
            ("x-linked-size", part.len().to_string()),
            ("location", format!("{}/store/{number}?signature=s", elsewhere.address)),
        ];
        answers.insert(resolve(&format!("model-{number}.safetensors")), (302, headers, vec![]));
    }
    change(&mut answers, &elsewhere);
    (FakeHub::new(answers), elsewhere)
}

fn settings(server: &FakeHub, cache: &Path) -> Hub {
    Hub {
        cache: cache.to_owned(),
        endpoint: server.address.clone(),
        offline: false,
        token: Some("secret".to_owned()),
    }
}

fn fetch(hub: &Hub, name: &str) -> Result<(PathBuf, Vec<(String, u64)>), HubError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut told = Vec::new();
    let mut progress = |progress: DownloadProgress<'_>| {
        told.push((progress.file.to_owned(), progress.received));
    };
    let folder = runtime.block_on(hub.fetch(&name.parse().unwrap(), &mut progress))?;
    Ok((folder, told))
}

#[test]
fn a_model_is_downloaded_once_into_the_shared_cache() {
    let (server, elsewhere) = hub_with(|_, _| {});
    let cache = tempfile::tempdir().unwrap();
    let hub = settings(&server, cache.path());
    let (folder, told) = fetch(&hub, "org/name").unwrap();
    let model = cache.path().join("models--org--name");
    assert_eq!(folder, model.join("snapshots").join(COMMIT));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("config.json"), "{}");
    assert_eq!(read("model-2.safetensors"), "second part");
    assert_eq!(read("additional_chat_templates/rag.jinja"), "by documents");
    assert_eq!(std::fs::read_to_string(model.join("refs/main")).unwrap(), COMMIT);
    let target = std::fs::read_link(folder.join("config.json")).unwrap();
    assert_eq!(target, Path::new("../../blobs/c0ffee"));
    assert!(model.join("blobs").join(sha256(b"first part")).exists());
    for unwanted in ["README.md", "pytorch_model.bin", "model-unused.safetensors"] {
        assert!(!folder.join(unwanted).exists());
    }
    assert!(told.contains(&("model-1.safetensors".to_owned(), 10)), "{told:?}");
    // Only the hub itself sees the token.
    let seen = |server: &FakeHub, token: Option<&str>| {
        let requests = server.requests.lock().unwrap();
        requests.iter().all(|(_, seen)| seen.as_deref() == token)
    };
    assert!(seen(&server, Some("bearer secret")) && seen(&elsewhere, None));
    assert_eq!(elsewhere.paths().len(), 2);

    // A second time only the commit is asked for; another name of the commit downloads nothing.
    let before = server.paths().len();
    fetch(&hub, "org/name").unwrap();
    let (same, _) = fetch(&hub, "org/name@refs/pr/1").unwrap();
    assert_eq!(
        (server.paths().len(), elsewhere.paths().len(), same),
        (before + 2, 2, folder.clone())
    );
    // Without the hub: by branch, by commit, and not what was never there.
    let offline = Hub { offline: true, endpoint: "http://127.0.0.1:1".to_owned(), ..hub };
    assert_eq!(fetch(&offline, "org/name").unwrap().0, folder);
    assert_eq!(fetch(&offline, "org/name@refs/pr/1").unwrap().0, folder);
    assert_eq!(fetch(&offline, &format!("org/name@{COMMIT}")).unwrap().0, folder);
    let error = fetch(&offline, "org/other").unwrap_err();
    assert!(matches!(&error, HubError::NotCached { .. }), "{error}");
    assert!(error.to_string().contains("HF_HUB_OFFLINE"), "{error}");
    // Without a network.
    let alone = Hub { offline: false, ..offline };
    let error = fetch(&alone, "org/name").unwrap_err();
    assert!(error.to_string().contains("HF_HUB_OFFLINE=1 uses"), "{error}");
    let error = fetch(&alone, "org/other").unwrap_err();
    assert!(error.to_string().contains("HF_HUB_CACHE"), "{error}");
}

#[test]
fn what_arrives_broken_is_not_kept() {
    let file = format!("/org/name/resolve/{COMMIT}/model-1.safetensors");
    let (server, _elsewhere) = hub_with(|answers, _| {
        let (_, headers, _) = answers.get_mut(&file).unwrap();
        headers[0].1 = sha256(b"something else");
    });
    let cache = tempfile::tempdir().unwrap();
    let error = fetch(&settings(&server, cache.path()), "org/name").unwrap_err();
    assert!(matches!(&error, HubError::Broken { .. }), "{error}");
    let blobs = cache.path().join("models--org--name/blobs");
    let names: Vec<_> = std::fs::read_dir(&blobs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| !name.contains("incomplete")), "{names:?}");
    assert!(!names.contains(&sha256(b"first part")), "{names:?}");
    let refs = cache.path().join("models--org--name/refs/main");
    assert!(!refs.exists(), "the branch does not point to a model that is not whole");

    let (server, _elsewhere) = hub_with(|answers, _| {
        let (_, headers, _) = answers.get_mut(&file).unwrap();
        headers[1].1 = "11".to_owned();
    });
    let error = fetch(&settings(&server, cache.path()), "org/name").unwrap_err();
    assert!(error.to_string().contains("10 of 11 bytes"), "{error}");
}

#[test]
fn answers_that_make_no_sense_are_refused() {
    let main = "/api/models/org/name/revision/main".to_owned();
    let config = format!("/org/name/resolve/{COMMIT}/config.json");
    let cache = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&mut Answers)| {
        let (server, _elsewhere) = hub_with(|answers, _| change(answers));
        fetch(&settings(&server, cache.path()), "org/name").unwrap_err()
    };
    for body in ["", "[]", r#"{"sha": "../x", "siblings": []}"#, r#"{"sha": "abc"}"#] {
        let error = refused(&|answers| answers.get_mut(&main).unwrap().2 = body.into());
        assert!(matches!(error, HubError::Answer { .. }), "{body}: {error}");
    }
    let error = refused(&|answers| {
        answers.get_mut(&main).unwrap().2 = r#"{"sha": "abc", "siblings": []}"#.into();
    });
    assert!(matches!(error, HubError::NoWeights { .. }), "{error}");
    // Names that lead out of the folder.
    let index = format!("/org/name/resolve/{COMMIT}/model.safetensors.index.json");
    let error = refused(&|answers| {
        answers.get_mut(&index).unwrap().2 = r#"{"weight_map": {"a": "../../x"}}"#.into();
    });
    assert!(error.to_string().contains("leads out"), "{error}");
    for status in [401, 404, 500] {
        let error = refused(&|answers| answers.get_mut(&main).unwrap().0 = status);
        assert!(matches!(error, HubError::Refused { status: s, .. } if s == status), "{error}");
    }
    let error = refused(&|answers| {
        *answers.get_mut(&config).unwrap() = (302, vec![("location", config.clone())], vec![]);
    });
    // What was got before is in the cache by now.
    assert!(matches!(error, HubError::Answer { .. } | HubError::Refused { .. }), "{error}");
}

#[test]
fn the_environment_says_where_models_are() {
    let hub = |variables: &[(&str, &str)]| {
        Hub::from_variables(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    };
    let cache = |variables: &[(&str, &str)]| hub(variables).unwrap().cache;
    let all = [("HF_HUB_CACHE", "/a"), ("HF_HOME", "/b"), ("XDG_CACHE_HOME", "/c"), ("HOME", "/d")];
    assert_eq!(cache(&all), Path::new("/a"));
    assert_eq!(cache(&all[1..]), Path::new("/b/hub"));
    assert_eq!(cache(&all[2..]), Path::new("/c/huggingface/hub"));
    assert_eq!(cache(&all[3..]), Path::new("/d/.cache/huggingface/hub"));
    assert!(matches!(hub(&[]), Err(HubError::Variable { variable: "HF_HUB_CACHE", .. })));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "from file\n").unwrap();
    let home = ("HF_HOME", folder.path().to_str().unwrap());
    let found = hub(&[home, ("HF_HUB_OFFLINE", "true"), ("HF_ENDPOINT", "http://x/")]).unwrap();
    assert_eq!((found.offline, &*found.endpoint), (true, "http://x"));
    assert_eq!(found.token.as_deref(), Some("from file"));
    let found = hub(&[home, ("HF_TOKEN", "own"), ("HF_HUB_OFFLINE", "0")]).unwrap();
    assert_eq!((found.token.as_deref(), found.offline), (Some("own"), false));
}
