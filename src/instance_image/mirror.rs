use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::ImageError;
use super::interpreter::make;
use crate::child;

/// Bytes of a file of the repository that is read whole.
const MAX_FILE_BYTES: usize = 4 << 20;
/// Commands of git that carry all of a commit about.
const CARRYING: [&str; 2] = ["fetch", "checkout"];

/// A repository on this machine: a bare one, or a working copy.
#[derive(Debug, Clone)]
pub struct Mirror {
    folder: PathBuf,
}

impl Mirror {
    /// Opens a repository.
    ///
    /// # Errors
    ///
    /// [`ImageError::Mirror`] where there is none.
    pub async fn open(folder: &Path) -> Result<Self, ImageError> {
        let folder = folder.canonicalize().map_err(|source| ImageError::Io {
            doing: "find the repository",
            path: folder.to_owned(),
            source,
        })?;
        let mirror = Self { folder };
        let directory = mirror.git(&["rev-parse", "--git-dir"]).await?;
        // git looks in the folders above as well.
        let is_bare = mirror.folder.join(directory.trim()).canonicalize().ok().as_deref()
            == Some(&*mirror.folder);
        if !is_bare && !mirror.folder.join(".git").exists() {
            return Err(mirror.refuse("it is no repository of git".to_owned()));
        }
        Ok(mirror)
    }

    fn refuse(&self, why: String) -> ImageError {
        ImageError::Mirror { folder: self.folder.clone(), why }
    }

    async fn run(&self, folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, ImageError> {
        let mut command = Command::new("git");
        command
            .args([
                "-c",
                "safe.directory=*",
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "gc.auto=0",
                "-c",
                "advice.detachedHead=false",
            ])
            .args(arguments)
            .current_dir(folder)
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            // A copy with holes must not ask a server for what it lacks.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_ALL", "C");
        let carries = arguments.iter().any(|argument| CARRYING.contains(argument));
        let patience = if carries { child::TRANSFER } else { child::ANSWER };
        let ran = child::output(&mut command, patience).await?;
        match ran.status.success() {
            true => Ok(ran.stdout),
            false => Err(self.refuse(String::from_utf8_lossy(&ran.stderr).trim().to_owned())),
        }
    }

    async fn git(&self, arguments: &[&str]) -> Result<String, ImageError> {
        let told = self.run(&self.folder, arguments).await?;
        Ok(String::from_utf8_lossy(&told).into_owned())
    }

    /// The hash of a commit's files.
    ///
    /// # Errors
    ///
    /// [`ImageError::Mirror`] where the commit is not there.
    pub(super) async fn tree(&self, commit: &str) -> Result<String, ImageError> {
        let name = format!("{commit}^{{tree}}");
        match self.git(&["rev-parse", "--verify", "--quiet", &name]).await {
            Ok(tree) => Ok(tree.trim().to_owned()),
            Err(_) => Err(self.refuse(format!("it has no commit `{commit}`"))),
        }
    }

    /// A file of a commit as text; absent where there is none.
    pub(super) async fn file(
        &self,
        commit: &str,
        path: &str,
    ) -> Result<Option<String>, ImageError> {
        let name = format!("{commit}:{path}");
        let Ok(size) = self.git(&["cat-file", "-s", &name]).await else { return Ok(None) };
        if size.trim().parse().unwrap_or(usize::MAX) > MAX_FILE_BYTES {
            return Err(self.refuse(format!("`{path}` is larger than {MAX_FILE_BYTES} bytes")));
        }
        let bytes = self.run(&self.folder, &["cat-file", "blob", &name]).await?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// What the tags make of a commit's version, as `setuptools_scm` counts it; absent where no tag is an ancestor.
    pub(super) async fn version(&self, commit: &str) -> Result<Option<String>, ImageError> {
        let told = self.git(&["describe", "--tags", "--long", "--match", "*[0-9]*", commit]).await;
        Ok(told.ok().and_then(|told| version_of(told.trim())))
    }

    /// Writes a working copy of one commit into a folder that is not there: the commit has its name, and nothing else of the
    /// history is in it, no other ref and no log.
    pub(super) async fn check_out(&self, commit: &str, target: &Path) -> Result<(), ImageError> {
        make(target)?;
        self.run(target, &["init", "--quiet", "--template=", "."]).await?;
        // A server sends commits without a ref only where it is told so.
        let pack = "--upload-pack=git -c safe.directory=* -c uploadpack.allowAnySHA1InWant=true upload-pack";
        let from = format!("file://{}", self.folder.display());
        let whole = self.git(&["rev-parse", "--verify", &format!("{commit}^{{commit}}")]).await?;
        let whole = whole.trim();
        self.run(target, &["fetch", "--quiet", "--depth=1", "--no-tags", pack, &from, whole])
            .await?;
        self.run(target, &["checkout", "--quiet", "--force", "--detach", whole]).await?;
        for left in ["FETCH_HEAD", "ORIG_HEAD", "logs"] {
            let path = target.join(".git").join(left);
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            match removed {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ImageError::Io { doing: "remove", path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The version of `TAG-DISTANCE-gHASH`: that of the tag, or the next one's development version behind it. None where the tag
/// ends in no number, or in one that none follows.
fn version_of(told: &str) -> Option<String> {
    let (rest, hash) = told.rsplit_once("-g")?;
    let (tag, distance) = rest.rsplit_once('-')?;
    let start = tag.find(|c: char| c.is_ascii_digit())?;
    let tag = &tag[start..];
    if distance == "0" {
        return Some(tag.to_owned());
    }
    let digits = tag.len() - tag.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (head, last) = tag.split_at(tag.len() - digits);
    let next = last.parse::<u64>().ok()?.checked_add(1)?;
    Some(format!("{head}{next}.dev{distance}+g{hash}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_counted_from_tags() {
        for (told, version) in [
            ("5.4.0-0-g0123abc", Some("5.4.0")),
            ("5.4.0-12-g0123abc", Some("5.4.1.dev12+g0123abc")),
            ("v2.0rc1-3-gff", Some("2.0rc2.dev3+gff")),
            ("release-1.2-0-gff", Some("1.2")),
            ("none", None),
            ("18446744073709551614-1-gff", Some("18446744073709551615.dev1+gff")),
            ("18446744073709551615-1-gff", None),
            ("18446744073709551616-1-gff", None),
            ("1.x-1-gff", None),
        ] {
            assert_eq!(version_of(told).as_deref(), version, "{told}");
        }
    }

    async fn repository(folder: &Path) -> (Mirror, String) {
        let mirror = Mirror { folder: folder.to_owned() };
        mirror.git(&["init", "-q", "--initial-branch=main"]).await.unwrap();
        std::fs::write(folder.join("a.txt"), "one\n").unwrap();
        let commit = [
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "-qam",
            "c",
        ];
        mirror.git(&["add", "-A"]).await.unwrap();
        mirror.git(&commit).await.unwrap();
        let first = mirror.git(&["rev-parse", "HEAD"]).await.unwrap().trim().to_owned();
        std::fs::write(folder.join("a.txt"), "two\n").unwrap();
        mirror.git(&commit).await.unwrap();
        (Mirror::open(folder).await.unwrap(), first)
    }

    #[tokio::test]
    async fn a_working_copy_has_one_commit_and_no_history() {
        let folder = tempfile::tempdir().unwrap();
        let (mirror, first) = repository(folder.path()).await;
        let target = tempfile::tempdir().unwrap();
        let copy = target.path().join("copy");
        mirror.check_out(&first, &copy).await.unwrap();
        assert_eq!(std::fs::read_to_string(copy.join("a.txt")).unwrap(), "one\n");
        let here = Mirror::open(&copy).await.unwrap();
        assert_eq!(here.git(&["log", "--all", "--format=%H"]).await.unwrap().trim(), first);
        assert_eq!(here.git(&["for-each-ref"]).await.unwrap(), "");
        assert_eq!(mirror.file(&first, "a.txt").await.unwrap().as_deref(), Some("one\n"));
        assert_eq!(mirror.file(&first, "b.txt").await.unwrap(), None);
        let told = mirror.tree("0123456789").await.unwrap_err().to_string();
        assert!(told.contains("it has no commit `0123456789`"), "{told}");
        let inside = copy.join("inside");
        std::fs::create_dir(&inside).unwrap();
        assert!(Mirror::open(&inside).await.is_err(), "a folder of a repository is none");
    }
}
