//! Models by path or by name on the hub.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use spar::policy::hub::{DownloadProgress, resolve};

use super::train::{RUNS, named_run};

/// The folder that `path` means: itself where it exists, else the run of that name in `runs`, else the model of that
/// name on the hub, downloaded with a bar on standard error.
pub(crate) async fn local_model(path: &Path) -> anyhow::Result<PathBuf> {
    let path = &*named_run(path, Path::new(RUNS));
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(8)
    } else {
        ProgressDrawTarget::hidden()
    };
    let template = "{msg} {bar:32} {bytes}/{total_bytes} {bytes_per_sec} eta {eta}";
    let style = ProgressStyle::with_template(template)
        .expect("the template is fixed")
        .progress_chars("━╸─");
    let bar = ProgressBar::with_draw_target(None, target).with_style(style);
    let mut progress = |progress: DownloadProgress<'_>| {
        if progress.received == 0 {
            bar.set_length(progress.total.unwrap_or(0));
            bar.set_message(progress.file.to_owned());
        }
        bar.set_position(progress.received);
    };
    let folder = resolve(path, &mut progress).await;
    bar.finish_and_clear();
    folder.with_context(|| {
        format!("find model `{}`: it is no folder here, so the hub was asked", path.display())
    })
}
