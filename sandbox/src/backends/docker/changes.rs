//! What differs in a container's files from its image.
//!
//! The engine tells paths and what happened to them; what lies there, the helper tells, as the container's user and
//! as those that commands named.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ChangeType, FilesystemChange};
use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt};
use serde::Deserializer;
use serde::de::{SeqAccess, Visitor};

use super::conversation::Input;
use super::engine::{SLOW_REQUEST, within};
use super::sandbox::Shared;
use crate::changes::is_apart;
use crate::{Change, ChangeKind, Changes, FileKind, FileState, SandboxError};

/// The longest path and the longest target of a link; no path of a process is longer.
const PATH_BYTES: usize = 4096;
/// Numbers at the beginning of an answer of the helper.
const ANSWER_BYTES: usize = 17;
/// Folders in which Podman puts files of its own, which it does not tell.
const PODMAN_WRITES: [&str; 1] = ["/etc"];
/// Paths that the helper is asked for at a time.
const AT_A_TIME: usize = 1000;
/// Bytes of the engine's answer that are read, which tell of some hundred thousand paths. It has no bound of its own, as whoever
/// works in a sandbox may make any number of files.
const TOLD_BYTES: usize = 32 << 20;

impl Shared {
    /// As [`Sandbox::changes`](crate::Sandbox::changes).
    pub(super) async fn changes(&self, limit: usize) -> Result<Changes, SandboxError> {
        self.check_open()?;
        let asked = first_of(answer(&self.engine.docker, &self.name), TOLD_BYTES);
        let (bytes, is_answer_cut) = match within(SLOW_REQUEST, asked).await {
            Ok(told) => told,
            Err(error) => return Err(self.trouble("tell what has changed", error).await),
        };
        let told = read(&bytes, is_answer_cut).map_err(|error| SandboxError::Backend {
            doing: "tell what has changed".into(),
            source: error.into(),
        })?;
        drop(bytes);
        let written: &[&str] = if self.engine.is_podman() { &PODMAN_WRITES } else { &[] };
        let told = sift(told, written, |path| is_apart(path.as_bytes(), &self.spec));
        // One more than wanted tells that there are more.
        let Changes { changes: told, is_cut } = Changes::settle(told, &self.spec, limit);
        let is_cut = is_cut || is_answer_cut;
        let mut found = Vec::with_capacity(told.len());
        for some in told.chunks(AT_A_TIME) {
            found.extend(self.look(some).await?);
        }
        let changes = Changes::settle(found, &self.spec, limit);
        Ok(Changes { is_cut: is_cut || changes.is_cut, ..changes })
    }

    /// The same changes with what lies there now.
    async fn look(&self, told: &[Change]) -> Result<Vec<Change>, SandboxError> {
        let mut looked: Vec<Option<Looked>> = vec![None; told.len()];
        for user in std::iter::once(None).chain(self.named_users().into_iter().map(Some)) {
            let is_open = |at: &usize| matches!(looked[*at], None | Some(Looked::Hidden));
            let left: Vec<usize> = (0..told.len()).filter(is_open).collect();
            if left.is_empty() {
                break;
            }
            let answers = self.ask(left.iter().map(|at| &told[*at]), user.as_deref()).await?;
            for (at, answer) in left.into_iter().zip(answers) {
                looked[at] = Some(answer);
            }
        }
        Ok(told.iter().zip(looked).map(|(told, looked)| refined(told, looked)).collect())
    }

    /// Asks the helper, as the container's user or another one, what lies at the paths of these changes.
    async fn ask<'c>(
        &self,
        told: impl ExactSizeIterator<Item = &'c Change>,
        user: Option<&str>,
    ) -> Result<Vec<Looked>, SandboxError> {
        let count = told.len();
        let limit_bytes = (count * (ANSWER_BYTES + 2 * PATH_BYTES)) as u64;
        let (mut request, mut seen) = (Vec::new(), BTreeMap::<&str, u16>::new());
        for change in told {
            // What is too long for the kernel is told to be nowhere.
            let path = Some(change.path.as_bytes()).filter(|path| path.len() < PATH_BYTES);
            let number = seen.entry(&change.path).or_default();
            request.extend(number.to_le_bytes());
            *number = number.saturating_add(1);
            let path = path.unwrap_or_default();
            request.extend((path.len() as u16).to_le_bytes());
            request.extend(path);
        }
        let answer = self
            .gather_as(user, vec!["look".into()], Input::Bytes(&request), ("changes", limit_bytes))
            .await?;
        let answers = parse(answer.into());
        if answers.len() == count {
            return Ok(answers);
        }
        Err(SandboxError::Backend {
            doing: "look at what has changed".into(),
            source: "the helper told of fewer paths than it was asked for".into(),
        })
    }
}

/// The engine's answer as it comes. `Docker::container_changes` would hold all of it, whatever its size.
fn answer(docker: &Docker, name: &str) -> impl Stream<Item = Result<Bytes, Error>> + use<> {
    // The one request that streams what an engine says of a container by its name. What stands behind `#` is not sent.
    Box::pin(docker.export_container(&format!("{name}/changes#")))
}

/// The first bytes of an answer, at most `limit`, and whether there are more, which nobody reads.
async fn first_of(
    mut answer: impl Stream<Item = Result<Bytes, Error>> + Unpin,
    limit: usize,
) -> Result<(Vec<u8>, bool), Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.next().await {
        let piece = piece?;
        let room = limit - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return Ok((bytes, true));
        }
    }
    Ok((bytes, false))
}

/// What an answer tells; where it is cut, as far as that is whole. Its last change is left out then: if it is a folder, the
/// answer does not say whether that is told for itself or for what lies in it.
fn read(bytes: &[u8], is_cut: bool) -> serde_json::Result<Vec<FilesystemChange>> {
    struct Told<'a>(&'a mut Vec<FilesystemChange>);

    impl<'de> Visitor<'de> for Told<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of changes, or nothing")
        }

        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
            while let Some(change) = list.next_element()? {
                self.0.push(change);
            }
            Ok(())
        }
    }

    let mut told = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    match reader.deserialize_any(Told(&mut told)) {
        Err(error) if is_cut && error.is_eof() => {
            told.pop();
        }
        done => done?,
    }
    Ok(told)
}

/// What was found at a path.
#[derive(Debug, Clone, PartialEq)]
enum Looked {
    At {
        path: Vec<u8>,
        state: FileState,
    },
    Nothing,
    /// This user may not look there.
    Hidden,
}

fn refined(told: &Change, looked: Option<Looked>) -> Change {
    match (told.kind, looked) {
        (kind, Some(Looked::At { path, state })) => {
            // A folder that was removed and made anew is told as removed.
            let kind = if kind == ChangeKind::Deleted { ChangeKind::Modified } else { kind };
            Change::new(&path, kind, Some(state))
        }
        _ => told.clone(),
    }
}

/// What is worth telling of what the engine tells: of folders in which something changed, and of those that it has
/// `written` in itself, it cannot say whether they did themselves.
fn sift(
    told: Vec<FilesystemChange>,
    written: &[&str],
    is_apart: impl Fn(&str) -> bool,
) -> Vec<Change> {
    let mut above: HashSet<&str> = written.iter().copied().collect();
    for change in &told {
        let mut path = change.path.as_str();
        while let Some(at) = path.rfind('/').filter(|at| *at > 0) {
            path = &path[..at];
            if !above.insert(path) {
                break;
            }
        }
    }
    let wanted = told.iter().filter(|change| {
        let is_of_contents =
            matches!(change.kind, ChangeType::_0) && above.contains(change.path.as_str());
        !is_of_contents && !is_apart(&change.path)
    });
    let changes = wanted.map(|change| {
        let kind = match change.kind {
            ChangeType::_0 => ChangeKind::Modified,
            ChangeType::_1 => ChangeKind::Added,
            ChangeType::_2 => ChangeKind::Deleted,
        };
        Change::new(change.path.as_bytes(), kind, None)
    });
    changes.collect()
}

/// The helper's answers, as far as they are whole.
fn parse(mut bytes: Bytes) -> Vec<Looked> {
    let mut answers = Vec::new();
    while bytes.len() >= ANSWER_BYTES {
        let letter = bytes.get_u8();
        let (mode, size_bytes) = (bytes.get_u32_le(), bytes.get_u64_le());
        let lengths = (usize::from(bytes.get_u16_le()), usize::from(bytes.get_u16_le()));
        if bytes.len() < lengths.0 + lengths.1 {
            break;
        }
        let (path, link) = (bytes.split_to(lengths.0), bytes.split_to(lengths.1));
        let kind = match letter {
            b'x' => {
                answers.push(Looked::Nothing);
                continue;
            }
            b'f' => FileKind::File,
            b'd' => FileKind::Folder,
            b'l' => FileKind::Link,
            b'o' => FileKind::Other,
            _ => {
                answers.push(Looked::Hidden);
                continue;
            }
        };
        let is_link = kind == FileKind::Link;
        let link = is_link.then(|| String::from_utf8_lossy(&link).into_owned());
        let state = FileState { kind, mode: mode & 0o7777, size_bytes, link };
        answers.push(Looked::At { path: path.to_vec(), state });
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str, kind: ChangeType) -> FilesystemChange {
        FilesystemChange { path: path.to_owned(), kind }
    }

    #[test]
    fn folders_are_not_told_for_what_lies_in_them() {
        use ChangeType::{_0, _1, _2};
        let all = vec![
            told("/etc", _0),
            told("/etc/passwd", _2),
            told("/home", _0),
            told("/new", _1),
            told("/new/a", _1),
            told("/dev/x", _1),
        ];
        let sifted = sift(all.clone(), &[], |path| path.starts_with("/dev"));
        let paths: Vec<&str> = sifted.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["/etc/passwd", "/home", "/new", "/new/a"]);
        assert_eq!(sifted[0].kind, ChangeKind::Deleted);
        let sifted = sift(all, &["/home"], |path| path.starts_with("/dev"));
        assert_eq!(sifted.iter().filter(|change| change.path == "/home").count(), 0);
    }

    #[tokio::test]
    async fn of_an_answer_no_more_is_read_than_its_limit() {
        let begun = b"[{\"Path\":\"/a\",\"Kind\":1},{\"Path\":\"/b}\",\"Kind\":0},{\"Pa";
        let whole = begun.len();
        let endless = || {
            let more = || Ok::<_, Error>(Bytes::from_static(b"th\":\"/c\",\"Kind\":2},{\"Pa"));
            futures::stream::iter([Ok(Bytes::from_static(begun))])
                .chain(futures::stream::repeat_with(more))
        };
        let (bytes, is_cut) = first_of(endless(), whole + 3).await.unwrap();
        assert!(is_cut && bytes.len() == whole + 3);
        // The last whole one may be a folder of which not all is there.
        let paths = |told: Vec<FilesystemChange>| -> Vec<String> {
            told.into_iter().map(|change| change.path).collect()
        };
        assert_eq!(paths(read(&bytes, true).unwrap()), ["/a"]);
        assert!(read(&bytes, false).unwrap_err().is_eof());

        let all = || futures::stream::iter([Ok::<_, Error>(Bytes::from_static(b"null"))]);
        assert_eq!(first_of(all(), 4).await.unwrap(), (b"null".to_vec(), false));
        assert_eq!(first_of(all(), 3).await.unwrap(), (b"nul".to_vec(), true));
        assert!(read(b"null", false).unwrap().is_empty());
        let whole = b"[{\"Path\":\"/a\",\"Kind\":1}]";
        assert_eq!(paths(read(whole, false).unwrap()), ["/a"]);
        assert!(read(b"{}", true).is_err() && read(b"[7]", true).is_err());
    }

    #[tokio::test]
    async fn the_engine_is_asked_for_changes_alone() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let engine = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut asked, mut byte) = (Vec::new(), [0]);
            while !asked.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).await.unwrap();
                asked.push(byte[0]);
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnull";
            stream.write_all(answer).await.unwrap();
            String::from_utf8(asked).unwrap()
        });
        let address = format!("unix://{}", socket.display());
        let docker = Docker::connect_with_unix(&address, 20, bollard::API_DEFAULT_VERSION).unwrap();
        let told = first_of(answer(&docker, "box-1"), TOLD_BYTES).await.unwrap();
        assert_eq!(told, (b"null".to_vec(), false));
        let asked = engine.await.unwrap();
        let line = asked.lines().next().unwrap();
        assert!(line.ends_with("/containers/box-1/changes HTTP/1.1"), "{line}");
    }

    #[test]
    fn answers_are_taken_as_far_as_they_are_whole_whatever_they_say() {
        let mut bytes = vec![b'l'];
        bytes.extend(0o120_777u32.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.extend([3, 0, 2, 0]);
        bytes.extend(b"/a\xff..");
        let whole = bytes.len();
        bytes.extend([b'x'; ANSWER_BYTES]);
        let [Looked::At { path, state }] = &parse(bytes.clone().into())[..] else { panic!() };
        assert_eq!((path.as_slice(), state.mode), (b"/a\xff".as_slice(), 0o777));
        assert_eq!((state.kind, state.link.as_deref()), (FileKind::Link, Some("..")));
        for length in 0..whole {
            assert!(parse(bytes[..length].to_vec().into()).is_empty());
        }
    }
}
