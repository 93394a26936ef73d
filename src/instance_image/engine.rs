use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

use super::{ImageError, ImagePlan};
use crate::child::{self, ChildError, Group};

/// The label that has an image's key.
const LABEL: &str = "spar.instance-image.key";
/// Lines of a build that failed which are told.
const LAST_LINES: usize = 40;
/// Bytes of a line of a build that are kept.
const MAX_LINE_BYTES: usize = 4096;
/// Looks for a container that the engine was asked for and did not confirm.
const LOOKS: u32 = 5;
/// Between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(400);
/// Variables of this machine that builds are given, where they are set.
const HANDED_ON: [&str; 12] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "ALL_PROXY",
    "all_proxy",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_DEFAULT_TIMEOUT",
];

/// What came of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildEnd {
    /// The image was there.
    Present,
    /// It was there under the name of its content, and has its own name now.
    Named,
    /// It was built.
    Built,
}

/// The container engine, through its command line.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Whether the command line has BuildKit; else the engine's classic builder is asked for.
    has_buildkit: bool,
    certificates: Option<PathBuf>,
}

impl Engine {
    /// Finds the engine that `docker` talks to.
    ///
    /// # Errors
    ///
    /// [`ImageError`] where there is none.
    pub async fn open() -> Result<Self, ImageError> {
        run(&["version", "--format", "{{.Server.Version}}"], "ask the engine for its version")
            .await?;
        let has_buildkit = run(&["buildx", "version"], "ask for BuildKit").await.is_ok();
        let named = ["PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"];
        let certificates = named
            .iter()
            .filter_map(std::env::var_os)
            .map(PathBuf::from)
            .chain([PathBuf::from("/etc/ssl/certs/ca-certificates.crt")])
            .find(|path| path.is_file());
        Ok(Self { has_buildkit, certificates })
    }

    /// What the engine calls an image by its content.
    ///
    /// # Errors
    ///
    /// [`ImageError::Engine`] where it is not there and cannot be pulled.
    pub async fn base_id(&self, base: &str) -> Result<String, ImageError> {
        let doing = format!("find the base image `{base}`");
        let inspect = ["image", "inspect", "--format", "{{.Id}}", base];
        if let Ok(id) = run(&inspect, &doing).await {
            return Ok(id.trim().to_owned());
        }
        if !base.starts_with("spar-") {
            run(&["pull", "--quiet", base], &doing).await?;
        }
        Ok(run(&inspect, &doing).await?.trim().to_owned())
    }

    /// The key that the image of a name was built by; empty for one that was not built here, absent where there is none.
    async fn key_of(&self, image: &str) -> Option<String> {
        let format = format!("{{{{index .Config.Labels \"{LABEL}\"}}}}");
        let told = run(&["image", "inspect", "--format", &format, image], "look at an image")
            .await
            .ok()?;
        let told = told.trim();
        Some(if told == "<no value>" { String::new() } else { told.to_owned() })
    }

    /// Builds an image, unless it is there. `force` takes the place of one of its name that was built from something else, and
    /// `line` is told what the build says.
    ///
    /// # Errors
    ///
    /// [`ImageError`] with the build's last lines.
    pub async fn build(
        &self,
        plan: &ImagePlan,
        force: bool,
        line: &(dyn Fn(&str) + Sync),
    ) -> Result<BuildEnd, ImageError> {
        match self.key_of(&plan.image).await {
            Some(key) if key == plan.key => return Ok(BuildEnd::Present),
            Some(_) if !force => return Err(ImageError::Taken { image: plan.image.clone() }),
            _ => {}
        }
        let by_content = format!("spar-instance:{}", &plan.key[..16]);
        let doing = format!("name image `{}`", plan.image);
        if self.key_of(&by_content).await.as_ref() == Some(&plan.key) {
            run(&["tag", &by_content, &plan.image], &doing).await?;
            return Ok(BuildEnd::Named);
        }
        let context = tempfile::tempdir().map_err(|source| ImageError::Io {
            doing: "make a folder below",
            path: std::env::temp_dir(),
            source,
        })?;
        plan.write_context(context.path(), self.certificates.as_deref()).await?;
        self.build_context(context.path(), plan, &by_content, line).await?;
        run(&["tag", &by_content, &plan.image], &doing).await?;
        Ok(BuildEnd::Built)
    }

    async fn build_context(
        &self,
        context: &Path,
        plan: &ImagePlan,
        tag: &str,
        line: &(dyn Fn(&str) + Sync),
    ) -> Result<(), ImageError> {
        let mut command = Command::new("docker");
        command.args(["build", "--network=host", "--tag", tag, "--label"]);
        command.arg(format!("{LABEL}={}", plan.key));
        if self.has_buildkit {
            command.arg("--progress=plain");
        } else {
            command.env("DOCKER_BUILDKIT", "0").args(["--rm", "--force-rm"]);
        }
        for name in HANDED_ON {
            if std::env::var_os(name).is_some() {
                // The value is taken from this process's environment, and stands in no list of processes.
                command.args(["--build-arg", name]);
            }
        }
        command.arg(context).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = Group::start(&mut command)?;
        let (out, err) = (group.child.stdout.take(), group.child.stderr.take());
        let last = std::sync::Mutex::new(std::collections::VecDeque::new());
        let hear = |text: &str| {
            line(text);
            let mut last = last.lock().expect("no holder panics");
            last.push_back(text.to_owned());
            if last.len() > LAST_LINES {
                last.pop_front();
            }
        };
        let built = child::in_time("docker", child::BUILD, async {
            tokio::try_join!(lines(out, &hear), lines(err, &hear))?;
            group.child.wait().await
        });
        let no_docker = |source| ChildError::Start { program: "docker".to_owned(), source };
        let status = built.await?.map_err(no_docker)?;
        let doing = || format!("build `{}`", plan.image);
        if status.success() {
            return Ok(());
        }
        let last: Vec<String> = last.into_inner().expect("no holder panics").into();
        Err(ImageError::Engine { doing: doing(), why: last.join("\n") })
    }

    /// Writes the root file system of an image as an archive, for backends without an engine.
    ///
    /// It is written beside its place and renamed when it is whole. Where it is not, or whoever waits for it goes away, neither
    /// the file nor the container that it is read from stays.
    ///
    /// # Errors
    ///
    /// [`ImageError`] where the engine refuses; there is no archive then.
    pub async fn export(&self, image: &str, archive: &Path) -> Result<(), ImageError> {
        let doing = format!("write image `{image}` to `{}`", archive.display());
        let failed = |source| ImageError::Io { doing: "write", path: archive.to_owned(), source };
        let folder = archive.parent().unwrap_or(Path::new("."));
        let mut beside = tempfile::Builder::new();
        beside.prefix(".").suffix(".part");
        // What the user's mask leaves of that, as any other file that is written.
        #[cfg(unix)]
        beside.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let partial = beside.tempfile_in(folder).map_err(failed)?;
        let container = Container::create(image, &doing).await?;
        // The engine's own `--output` leaves a file of its own behind when it is ended.
        let mut export = Command::new("docker");
        export.args(["export", &container.name]);
        export.stdout(Stdio::from(partial.as_file().try_clone().map_err(failed)?));
        let written = child::output_into(&mut export, child::TRANSFER).await?;
        expect_success(written, &doing)?;
        container.remove(&doing).await?;
        partial.as_file().sync_all().map_err(failed)?;
        partial.persist(archive).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// A container that was made to be read from, removed when this is dropped.
struct Container {
    name: String,
    /// Whether the engine has said that it is there; until then it may still come.
    is_there: bool,
    is_removed: bool,
}

impl Container {
    /// Names it before it is there, so that it is found however far the engine came.
    async fn create(image: &str, doing: &str) -> Result<Self, ImageError> {
        let number = std::hash::RandomState::new().build_hasher().finish();
        let name = format!("spar-export-{}-{number:016x}", std::process::id());
        let mut container = Self { name, is_there: false, is_removed: false };
        run(&["create", "--name", &container.name, image], doing).await?;
        container.is_there = true;
        Ok(container)
    }

    fn removal(&self) -> [&str; 4] {
        ["rm", "--force", "--volumes", &self.name]
    }

    async fn remove(mut self, doing: &str) -> Result<(), ImageError> {
        run(&self.removal(), doing).await?;
        self.is_removed = true;
        Ok(())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        // Whoever was waiting is gone, and the process may end next: so it is done here. One that was not there yet is looked
        // for again, since the engine may go on with what it was asked.
        let looks = if self.is_there { 1 } else { LOOKS };
        for look in 0..looks {
            if look > 0 {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            if !is_missing(&self.removal()) {
                return;
            }
        }
    }
}

/// Has `docker` remove something, on this thread: whether it says that there was nothing to remove.
fn is_missing(removal: &[&str]) -> bool {
    let mut command = std::process::Command::new("docker");
    command.args(removal).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // A key at the terminal that has ended the waiting must not end this as well.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let Ok(mut child) = command.spawn() else { return false };
    let began = Instant::now();
    while began.elapsed() < child::ANSWER {
        match child.try_wait() {
            // It tells the name of what it removed, and ends well where there was nothing, too.
            Ok(Some(_)) => {
                return child.wait_with_output().is_ok_and(|ran| ran.stdout.is_empty());
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Err(_) => return false,
        }
    }
    // Nobody can do more than end it.
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// Runs `docker` with patience for an answer.
async fn run(arguments: &[&str], doing: &str) -> Result<String, ImageError> {
    let patience = if arguments[0] == "pull" { child::TRANSFER } else { child::ANSWER };
    let ran = child::output(Command::new("docker").args(arguments), patience).await?;
    expect_success(ran, doing)
}

fn expect_success(ran: std::process::Output, doing: &str) -> Result<String, ImageError> {
    match ran.status.success() {
        true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
        false => {
            let why = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
            Err(ImageError::Engine { doing: doing.to_owned(), why })
        }
    }
}

/// Hands on what a stream says, line by line, the beginning of long ones.
async fn lines(
    stream: Option<impl AsyncRead + Unpin>,
    hear: &(dyn Fn(&str) + Sync),
) -> std::io::Result<()> {
    let Some(stream) = stream else { return Ok(()) };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        let buffered = reader.fill_buf().await?;
        if buffered.is_empty() {
            if !line.is_empty() {
                hear(String::from_utf8_lossy(&line).trim_end());
            }
            return Ok(());
        }
        let end = buffered.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(buffered.len(), |end| end + 1);
        let room = MAX_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&buffered[..taken.min(room)]);
        reader.consume(taken);
        if end.is_some() {
            hear(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_lines_are_cut_and_the_last_needs_no_end() {
        let text = [b"one\n".as_slice(), &vec![b'x'; 3 * MAX_LINE_BYTES], b"\nlast"].concat();
        let heard = std::sync::Mutex::new(Vec::new());
        lines(Some(text.as_slice()), &|line| heard.lock().unwrap().push(line.to_owned()))
            .await
            .unwrap();
        let heard = heard.into_inner().unwrap();
        assert_eq!(
            (heard.len(), &*heard[0], heard[1].len(), &*heard[2]),
            (3, "one", MAX_LINE_BYTES, "last")
        );
    }

    /// An image of one file, whose layer is the only thing that there is in it.
    async fn image_of_one_file(name: &str) {
        let context = tempfile::tempdir().unwrap();
        std::fs::write(context.path().join("a.txt"), "one\n").unwrap();
        let dockerfile = "FROM scratch\nCOPY a.txt /a.txt\nCMD [\"/a.txt\"]\n";
        std::fs::write(context.path().join("Dockerfile"), dockerfile).unwrap();
        let folder = context.path().to_string_lossy().into_owned();
        run(&["build", "--quiet", "--tag", name, &folder], "build").await.unwrap();
    }

    async fn containers() -> String {
        let all = ["ps", "--all", "--quiet", "--filter", "name=spar-export-"];
        run(&all, "list containers").await.unwrap()
    }

    #[tokio::test]
    #[ignore = "needs Docker"]
    async fn docker_exports_an_image_whole_and_leaves_nothing_when_it_is_left() {
        let engine = Engine::open().await.unwrap();
        let name = "spar-test-export:latest";
        image_of_one_file(name).await;
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("image.tar");
        engine.export(name, &archive).await.unwrap();
        let bytes = std::fs::read(&archive).unwrap();
        assert!(bytes.windows(5).any(|window| window == b"a.txt"), "{} bytes", bytes.len());
        let wrong = engine.export("spar-test-none:latest", &archive).await.unwrap_err();
        assert!(wrong.to_string().starts_with("write image `spar-test-none:latest`"), "{wrong}");
        assert_eq!(std::fs::read(&archive).unwrap(), bytes, "what was there stays");
        // Left at whatever it was doing.
        for millis in [1, 30, 60, 90, 150] {
            let other = folder.path().join("left.tar");
            let _ =
                tokio::time::timeout(Duration::from_millis(millis), engine.export(name, &other))
                    .await;
        }
        let names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "left.tar")
            .collect();
        assert_eq!((names, containers().await), (vec!["image.tar".to_owned()], String::new()));
        run(&["image", "rm", "--force", name], "remove").await.unwrap();
    }
}
