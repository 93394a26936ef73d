use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

use super::{ImageError, ImagePlan};

/// The label that has an image's key.
const LABEL: &str = "spar.instance-image.key";
/// Lines of a build that failed which are told.
const LAST_LINES: usize = 40;
/// Bytes of a line of a build that are kept.
const MAX_LINE_BYTES: usize = 4096;
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
        let mut child = command
            .arg(context)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(no_docker)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let last = std::sync::Mutex::new(std::collections::VecDeque::new());
        let hear = |text: &str| {
            line(text);
            let mut last = last.lock().expect("no holder panics");
            last.push_back(text.to_owned());
            if last.len() > LAST_LINES {
                last.pop_front();
            }
        };
        let (out, err, status) = tokio::join!(lines(out, &hear), lines(err, &hear), child.wait());
        let doing = || format!("build `{}`", plan.image);
        for heard in [out, err] {
            heard.map_err(no_docker)?;
        }
        if status.map_err(no_docker)?.success() {
            return Ok(());
        }
        let last: Vec<String> = last.into_inner().expect("no holder panics").into();
        Err(ImageError::Engine { doing: doing(), why: last.join("\n") })
    }

    /// Writes the root file system of an image as an archive, for backends without an engine.
    ///
    /// # Errors
    ///
    /// [`ImageError`] where the engine refuses; there is no archive then.
    pub async fn export(&self, image: &str, archive: &Path) -> Result<(), ImageError> {
        let doing = format!("write image `{image}` to `{}`", archive.display());
        let container = run(&["create", image], &doing).await?;
        let container = container.trim();
        let mut partial = archive.as_os_str().to_owned();
        partial.push(".part");
        let to = partial.to_string_lossy();
        let written = run(&["export", "--output", &to, container], &doing).await;
        let removed = run(&["rm", "--force", "--volumes", container], &doing).await;
        written?;
        removed?;
        std::fs::rename(&partial, archive).map_err(|source| ImageError::Io {
            doing: "write",
            path: archive.to_owned(),
            source,
        })
    }
}

fn no_docker(source: std::io::Error) -> ImageError {
    ImageError::Program { program: "docker".to_owned(), source }
}

async fn run(arguments: &[&str], doing: &str) -> Result<String, ImageError> {
    let ran = Command::new("docker")
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(no_docker)?;
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
}
