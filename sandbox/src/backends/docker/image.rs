//! Getting images.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use bollard::query_parameters::{BuildImageOptionsBuilder, CreateImageOptionsBuilder};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};

use super::build_context::pack;
use super::credentials;
use super::engine::{Engine, REQUEST, message, status, within};
use crate::{Image, SandboxError, SandboxSpec};

/// What [`Image::Default`] stands for.
const DEFAULT: &str = "spar-busybox:latest";
/// How long pulling, building or importing may take.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Lines of a failed build that are told.
const TOLD_LINES: usize = 20;

/// The name under which the engine has the image; it is pulled, built or imported where it is
/// absent.
///
/// What this process made once is taken to be there; `anew` looks again.
pub(super) async fn prepare(
    engine: &Engine,
    spec: &SandboxSpec,
    anew: bool,
) -> Result<String, SandboxError> {
    let image = &spec.image;
    let known = known(engine, image);
    if let Some(name) = known
        && !anew
    {
        return Ok(name);
    }
    let made = async {
        match image {
            Image::Default => pull(engine, DEFAULT).await,
            Image::Reference(reference) => pull(engine, reference).await,
            Image::RootTar(archive) => import(engine, archive).await,
            Image::Build { context, dockerfile } => build(engine, context, dockerfile).await,
        }
    };
    let seconds = PATIENCE.as_secs();
    let name = tokio::time::timeout(PATIENCE, made)
        .await
        .map_err(|_| failed(&image.to_string(), format!("it took longer than {seconds} s")))??;
    let mut prepared = engine.prepared.lock().expect("no holder panics");
    prepared.retain(|(known, _)| known != image);
    prepared.push((image.clone(), name.clone()));
    Ok(name)
}

fn known(engine: &Engine, image: &Image) -> Option<String> {
    let prepared = engine.prepared.lock().expect("no holder panics");
    prepared.iter().find(|(known, _)| known == image).map(|(_, name)| name.clone())
}

/// Forgets what is known of an image: the engine says that it is gone.
pub(super) fn forget(engine: &Engine, image: &Image) {
    engine.prepared.lock().expect("no holder panics").retain(|(known, _)| known != image);
}

/// That an image is absent, and what to do.
pub(super) fn missing(image: &str, reason: String) -> SandboxError {
    let hint = if image.starts_with("spar-") && !image.contains("sha256:") {
        "build it with docker/build-images.sh".to_owned()
    } else {
        format!("`docker pull {image}` where there is a registry, else `docker load` or a root tar")
    };
    SandboxError::ImageMissing { image: image.into(), reason, hint }
}

fn failed(image: &str, reason: String) -> SandboxError {
    SandboxError::ImageBuild { image: image.into(), reason }
}

async fn exists(engine: &Engine, name: &str) -> Result<bool, SandboxError> {
    match within(REQUEST, engine.docker.inspect_image(name)).await {
        Ok(_) => Ok(true),
        Err(error) if status(&error) == Some(404) => Ok(false),
        Err(error) => Err(engine.error(format!("look for image `{name}`"), error)),
    }
}

async fn pull(engine: &Engine, reference: &str) -> Result<String, SandboxError> {
    if reference.is_empty() || reference.contains(char::is_whitespace) {
        return Err(missing(reference, "that is no reference of an image".into()));
    }
    if exists(engine, reference).await? {
        return Ok(reference.into());
    }
    // Without a tag the engine would pull all of them.
    let last = reference.rsplit('/').next().unwrap_or(reference);
    let tag = if last.contains([':', '@']) { "" } else { "latest" };
    let options = CreateImageOptionsBuilder::new().from_image(reference).tag(tag).build();
    let credentials = credentials::of_reference(reference).await?;
    let mut progress = Box::pin(engine.docker.create_image(Some(options), None, credentials));
    while let Some(step) = progress.next().await {
        let refused = match step {
            Ok(info) => info.error_detail.and_then(|detail| detail.message),
            Err(error) => Some(message(&error)),
        };
        if let Some(reason) = refused {
            return Err(missing(reference, reason));
        }
    }
    if exists(engine, reference).await? {
        Ok(reference.into())
    } else {
        Err(missing(reference, "the engine does not have it after pulling it".into()))
    }
}

/// A root file system becomes an image that is named after the file's path, size and time.
async fn import(engine: &Engine, archive: &Path) -> Result<String, SandboxError> {
    let shown = archive.display().to_string();
    let gone = |error: io::Error| SandboxError::ImageMissing {
        image: archive.display().to_string(),
        reason: error.to_string(),
        hint: "make the archive, for instance with docker/build-images.sh or `docker export`"
            .into(),
    };
    let path = std::fs::canonicalize(archive).map_err(gone)?;
    let meta = std::fs::metadata(&path).map_err(gone)?;
    let changed = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let who = format!("{} {} {:?}", path.display(), meta.len(), changed);
    let tag = blake3::hash(who.as_bytes()).to_hex()[..16].to_owned();
    let name = format!("spar-root:{tag}");
    if exists(engine, &name).await? {
        return Ok(name);
    }
    let file = File::open(&path).map_err(gone)?;
    let options =
        CreateImageOptionsBuilder::new().from_src("-").repo("spar-root").tag(&tag).build();
    let body = bollard::body_try_stream(chunks(file));
    let mut progress = Box::pin(engine.docker.create_image(Some(options), Some(body), None));
    while let Some(step) = progress.next().await {
        let refused = match step {
            Ok(info) => info.error_detail.and_then(|detail| detail.message),
            Err(error) => Some(message(&error)),
        };
        if let Some(reason) = refused {
            return Err(failed(&shown, reason));
        }
    }
    Ok(name)
}

/// A file in pieces, read on threads that may wait.
fn chunks(file: File) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::unfold(Some(file), |file| async move {
        let mut file = file?;
        let read = tokio::task::spawn_blocking(move || {
            let mut buffer = vec![0; 1 << 18];
            let count = file.read(&mut buffer)?;
            buffer.truncate(count);
            Ok((buffer, file))
        });
        match read.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok((buffer, _)) if buffer.is_empty() => None,
            Ok((buffer, file)) => Some((Ok(Bytes::from(buffer)), Some(file))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

/// Builds with the engine's classic builder; the image is named after what is in the folder.
async fn build(engine: &Engine, context: &Path, dockerfile: &str) -> Result<String, SandboxError> {
    let shown = context.join(dockerfile).display().to_string();
    if !context.join(dockerfile).is_file() {
        return Err(SandboxError::ImageMissing {
            image: shown,
            reason: "there is no such file".into(),
            hint: "name the folder that holds the Dockerfile".into(),
        });
    }
    let (folder, file) = (context.to_owned(), dockerfile.to_owned());
    let packed = tokio::task::spawn_blocking(move || pack(&folder, &file)).await;
    let (archive, hash) =
        packed.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|source| {
            SandboxError::Host { doing: "pack the build context", path: context.into(), source }
        })?;
    let who = format!("{hash} {dockerfile}");
    let name = format!("spar-build:{}", &blake3::hash(who.as_bytes()).to_hex()[..16]);
    if exists(engine, &name).await? {
        return Ok(name);
    }
    let options = BuildImageOptionsBuilder::new()
        .dockerfile(dockerfile)
        .t(&name)
        .rm(true)
        .forcerm(true)
        .build();
    let body = bollard::body_try_stream(chunks(archive));
    let credentials = credentials::all().await?;
    let mut progress = Box::pin(engine.docker.build_image(options, Some(credentials), Some(body)));
    let mut lines = Vec::new();
    while let Some(step) = progress.next().await {
        match step {
            Ok(info) => {
                let text = info.stream.unwrap_or_default();
                lines.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
                lines.drain(..lines.len().saturating_sub(TOLD_LINES));
                if let Some(reason) = info.error_detail.and_then(|detail| detail.message) {
                    lines.push(reason);
                    return Err(failed(&shown, lines.join("\n")));
                }
            }
            Err(error) => {
                lines.push(message(&error));
                return Err(failed(&shown, lines.join("\n")));
            }
        }
    }
    if exists(engine, &name).await? { Ok(name) } else { Err(failed(&shown, lines.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_image_of_our_own_names_the_script_that_builds_it() {
        let error = missing(DEFAULT, "not there".into());
        assert_eq!(error.hint(), Some("build it with docker/build-images.sh"));
        assert!(
            missing("python:3", String::new()).hint().unwrap().contains("docker pull python:3")
        );
    }
}
