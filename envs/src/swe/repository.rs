//! The repository in a sandbox: brought there, its history squashed for the agent, and cut for the tests.

use std::path::Path;
use std::time::Duration;

use spar_sandbox::{ExecRequest, ExecResult, Sandbox, SandboxError};
use spar_tasks::SweTask;

/// Bytes kept of what scripts print that the agent does not see.
const ASIDE_LIMIT_BYTES: usize = 64 << 10;
/// Where a folder of the host is unpacked before it takes its place.
const UNPACKED: &str = "/tmp/.spar-repository";

/// What all scripts begin with: `g` is git with nothing of the sandbox's or the repository's configuration that runs programs.
///
/// `core.fsmonitor`, hooks, external diffs and pagers name programs; so do filters of `.gitattributes`, which need a
/// definition in a configuration, and of these only the repository's own is left.
const GIT: &str = r#"
g() {
    env -i PATH="$PATH" HOME=/nonexistent LC_ALL=C GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0 \
        GIT_AUTHOR_NAME=base GIT_AUTHOR_EMAIL=base@localhost GIT_AUTHOR_DATE='2000-01-01T00:00:00Z' \
        GIT_COMMITTER_NAME=base GIT_COMMITTER_EMAIL=base@localhost GIT_COMMITTER_DATE='2000-01-01T00:00:00Z' \
        ${GIT_INDEX_FILE:+GIT_INDEX_FILE="$GIT_INDEX_FILE"} \
        git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false -c gc.auto=0 \
            -c core.logAllRefUpdates=false -c core.quotePath=true -c core.pager=cat "$@"
}
# Makes the bug, where it is not there yet.
break_it() {
    g apply --check --reverse "$1" 2>/dev/null || g apply --whitespace=nowarn "$1"
    rm -f "$1"
}
command -v git >/dev/null 2>&1 || { echo 'there is no git in the sandbox' >&2; exit 45; }
"#;

/// `$1` is where the repository lies, `$2` the base commit or nothing, `$3` a patch that makes the bug or nothing. Prints the
/// one commit that is left.
///
/// What is committed is what lies there, changes and files that git did not know included, but for what it ignores: so that
/// the agent's patch holds what the agent did, and nothing that the image had before.
const SQUASH: &str = r#"
set -eu
cd "$1"
if top=$(g rev-parse --show-toplevel 2>/dev/null); then
    cd "$top"
    if [ -n "$2" ] && [ "$4" = checkout ]; then g checkout -q -f --detach "$2"; fi
    has_modules=$(g ls-files -s | grep -c '^160000 ' || true)
    g ls-files -z >/tmp/.spar-tracked
    exclude=$(cat .git/info/exclude 2>/dev/null || true)
else
    top=$PWD has_modules=0 exclude=
    : >/tmp/.spar-tracked
fi
find . -name .git -prune -exec rm -rf {} +
g init -q --template= .
mkdir -p .git/info
printf '%s\n' "$exclude" >.git/info/exclude
if [ -n "$3" ]; then break_it "$3"; fi
g add -A .
if [ "$has_modules" != 0 ]; then g add -A -f .; else g update-index --add --remove -z --stdin </tmp/.spar-tracked; fi
rm -f /tmp/.spar-tracked
commit=$(g commit-tree -m base "$(g write-tree)" </dev/null)
printf '%s\n' "$commit" >.git/HEAD
rm -rf .git/refs/heads/* .git/refs/tags/* .git/logs .git/ORIG_HEAD .git/FETCH_HEAD .git/packed-refs
chown -R --reference=. .git 2>/dev/null || true
printf '%s\n%s\n' "$commit" "$top"
"#;

/// As [`SQUASH`], but the base commit keeps its name, since the scripts of benchmarks check out files of it: what no file of it
/// needs is gone, refs and logs included.
const CUT: &str = r#"
set -eu
cd "$1"
if ! top=$(g rev-parse --show-toplevel 2>/dev/null); then
    g init -q --template= .
    g add -A .
    commit=$(g commit-tree -m base "$(g write-tree)" </dev/null)
    printf '%s\n' "$commit" >.git/HEAD
    printf '%s\n%s\n' "$commit" "$PWD"
    exit 0
fi
cd "$top"
if [ -n "$2" ] && [ "$4" = checkout ]; then g checkout -q -f --detach "$2"; fi
if [ -n "$3" ]; then break_it "$3"; fi
if [ -d .git ]; then
    keep=
    for name in HEAD ${2:+"$2"}; do
        commit=$(g rev-parse -q --verify "$name^{commit}" 2>/dev/null) || continue
        case " $keep " in *" $commit "*) ;; *) keep="$keep $commit" ;; esac
    done
    head=$(g rev-parse -q --verify HEAD 2>/dev/null || true)
    rm -rf .git/logs .git/packed-refs .git/FETCH_HEAD .git/ORIG_HEAD .git/MERGE_HEAD .git/objects/info/alternates
    if [ -n "$head" ]; then
        : >.git/shallow
        for commit in $keep; do printf '%s\n' "$commit" >>.git/shallow; done
        printf '%s\n' "$head" >.git/HEAD
        find .git/refs -type f -exec rm -f {} +
        # What is staged and in no commit is needed as well.
        pack=$({ for commit in $keep; do printf '%s\n' "$commit"; done; printf '%s\n' "$(g write-tree)"; } |
            g pack-objects -q --revs --shallow --delta-base-offset --window=0 .git/kept)
        find .git/objects -mindepth 1 -maxdepth 1 -exec rm -rf {} +
        mkdir -p .git/objects/pack .git/objects/info
        mv ".git/kept-$pack.pack" ".git/kept-$pack.idx" .git/objects/pack/
        rm -f ".git/kept-$pack".*
        mv ".git/objects/pack/kept-$pack.pack" ".git/objects/pack/pack-$pack.pack"
        mv ".git/objects/pack/kept-$pack.idx" ".git/objects/pack/pack-$pack.idx"
    fi
fi
printf '%s\n%s\n' "$(g rev-parse -q --verify HEAD 2>/dev/null || echo none)" "$top"
"#;

/// `$1` is the repository, `$2` the one commit that the agent began with. Prints the patch.
const EXTRACT: &str = r#"
set -eu
cd "$1"
rm -rf /tmp/.spar-index
GIT_INDEX_FILE=/tmp/.spar-index
g read-tree "$2"
g add -A . >/dev/null
g -c diff.noprefix=false -c diff.mnemonicPrefix=false diff --cached --binary --full-index --no-color \
    --no-ext-diff --no-textconv --find-renames --src-prefix=a/ --dst-prefix=b/ "$2"
rm -f /tmp/.spar-index
"#;

/// `$1` is the repository, `$2` the patch. Prints the way that worked; exits with 44 where none does.
///
/// What an attempt leaves half done is taken back before the next one. The first fails whole or does all.
const LADDER: &str = r#"
set -u
cd "$1"
clean() { g checkout -q -f -- . >/dev/null 2>&1; g clean -qfd >/dev/null 2>&1; }
echo '> git apply --verbose' >&2
if g apply --verbose "$2" >&2; then echo 'git apply'; exit 0; fi
echo '> git apply --check --reverse' >&2
if g apply --check --reverse "$2" >/dev/null 2>&1; then echo 'already applied'; exit 0; fi
echo '> git apply --verbose --3way' >&2
if g apply --verbose --3way "$2" >&2; then g reset -q >/dev/null 2>&1; echo 'git apply --3way'; exit 0; fi
g reset -q >/dev/null 2>&1; clean
echo '> git apply --verbose --reject' >&2
if g apply --verbose --reject "$2" >&2; then echo 'git apply --reject'; exit 0; fi
clean
if command -v patch >/dev/null 2>&1; then
    echo '> patch --batch --fuzz=5 -p1 -i' >&2
    if patch --batch --fuzz=5 -p1 -i "$2" >&2; then echo 'patch --fuzz=5'; exit 0; fi
    clean
fi
exit 44
"#;

/// The repository of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// Its folder, which may lie above `workdir`.
    pub(super) top: String,
    /// The commit it stands at.
    pub(super) commit: String,
}

/// For whom a repository is made ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// The agent: one commit, and its name tells nothing.
    Agent,
    /// The tests: the base commit has its name.
    Tests,
}

impl Repository {
    /// Brings the repository into a sandbox where it is not there yet, and takes its history away.
    pub(super) async fn ready(
        sandbox: &dyn Sandbox,
        task: &SweTask,
        whom: For,
        limit: Duration,
    ) -> Result<Self, SandboxError> {
        let instance = &task.instance;
        let workdir = instance.workdir.as_deref().unwrap_or("/");
        let is_brought = task.repository.is_some();
        if let Some(folder) = &task.repository {
            bring(sandbox, folder, workdir, limit).await?;
        }
        let mut bug = "";
        if let Some(patch) = &instance.bug_patch {
            bug = "/tmp/.spar-bug.patch";
            sandbox.write_file(bug, patch.as_bytes(), 0o644).await?;
        }
        let base = instance.base_commit.as_deref().unwrap_or_default();
        let checkout = if is_brought { "checkout" } else { "" };
        let script = if whom == For::Agent { SQUASH } else { CUT };
        let what = if whom == For::Agent { "squash the history" } else { "cut the history" };
        let done = run(sandbox, script, &[workdir, base, bug, checkout], limit).await?;
        let printed = expect_success(&done, what)?;
        let mut lines = printed.lines();
        let (commit, top) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        if commit.is_empty() || !top.starts_with('/') {
            return Err(failed(&done, what));
        }
        Ok(Self { top: top.to_owned(), commit: commit.to_owned() })
    }

    /// The request by which what the agent did is printed as a patch.
    pub(super) fn extraction(&self, limit: Duration) -> ExecRequest {
        request(EXTRACT, &[&self.top, &self.commit], limit)
    }

    /// Applies a patch that lies in the sandbox: the way that worked, or the words of those that did not.
    pub(super) async fn apply(
        &self,
        sandbox: &dyn Sandbox,
        patch: &str,
        limit: Duration,
    ) -> Result<Result<String, String>, SandboxError> {
        let done = run(sandbox, LADDER, &[&self.top, patch], limit).await?;
        Ok(match done.end.is_success() {
            true => Ok(done.stdout.text().trim().to_owned()),
            false => Err(done.stderr.text()),
        })
    }

    /// Puts files of the repository back to what they were when it was made ready; those that were not there go.
    pub(super) async fn put_back(
        &self,
        sandbox: &dyn Sandbox,
        paths: &[String],
        limit: Duration,
    ) -> Result<(), SandboxError> {
        const SCRIPT: &str = r#"
set -eu
cd "$1"
shift
for path in "$@"; do
    rm -rf -- "./$path"
    if g cat-file -e "HEAD:$path" 2>/dev/null; then g checkout -q -f HEAD -- "./$path"; fi
done
"#;
        let mut arguments = vec![self.top.as_str()];
        arguments.extend(paths.iter().map(String::as_str));
        let done = run(sandbox, SCRIPT, &arguments, limit).await?;
        expect_success(&done, "put test files back").map(drop)
    }
}

/// Puts a folder of the host in the place of what lies at `workdir`.
pub(super) async fn bring(
    sandbox: &dyn Sandbox,
    folder: &Path,
    workdir: &str,
    limit: Duration,
) -> Result<(), SandboxError> {
    let host = |source| SandboxError::Host {
        doing: "pack the task's repository",
        path: folder.to_owned(),
        source,
    };
    let archive = tempfile::NamedTempFile::new().map_err(host)?;
    let (from, to) = (folder.to_owned(), archive.path().to_owned());
    let packed = tokio::task::spawn_blocking(move || pack(&from, &to)).await;
    packed.expect("packing does not panic").map_err(host)?;
    sandbox.upload_tar(UNPACKED, archive.path()).await?;
    const MOVE: &str = r#"
set -eu
mkdir -p "$1"
find "$1" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
cp -a "$2/." "$1/"
rm -rf "$2"
"#;
    let done = run(sandbox, MOVE, &[workdir, UNPACKED], limit).await?;
    expect_success(&done, "put the repository in its place").map(drop)
}

/// Packs a folder, without owners and times.
fn pack(folder: &Path, archive: &Path) -> std::io::Result<()> {
    let mut builder = tar::Builder::new(std::io::BufWriter::new(std::fs::File::create(archive)?));
    builder.follow_symlinks(false);
    builder.mode(tar::HeaderMode::Deterministic);
    builder.append_dir_all(".", folder)?;
    builder.into_inner()?.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
}

fn request(script: &str, arguments: &[&str], limit: Duration) -> ExecRequest {
    plain_request(&format!("{GIT}{script}"), arguments, limit)
}

/// A script that needs no git.
pub(super) fn plain_request(script: &str, arguments: &[&str], limit: Duration) -> ExecRequest {
    let mut command = vec!["sh".to_owned(), "-c".to_owned(), script.to_owned(), "sh".to_owned()];
    command.extend(arguments.iter().map(|it| (*it).to_owned()));
    let mut request = ExecRequest::new(command).with_timeout(limit);
    request.output_limit_bytes = ASIDE_LIMIT_BYTES;
    request.workdir = Some("/".to_owned());
    request
}

/// Runs a script beside the agent's commands, with `g` for git.
pub(super) async fn run(
    sandbox: &dyn Sandbox,
    script: &str,
    arguments: &[&str],
    limit: Duration,
) -> Result<ExecResult, SandboxError> {
    sandbox.exec(&request(script, arguments, limit)).await
}

/// What a script has printed.
pub(super) fn expect_success(done: &ExecResult, what: &str) -> Result<String, SandboxError> {
    match done.end.is_success() {
        true => Ok(done.stdout.text()),
        false => Err(failed(done, what)),
    }
}

fn failed(done: &ExecResult, what: &str) -> SandboxError {
    let output = done.stdout.text() + &done.stderr.text();
    SandboxError::Setup {
        command: what.to_owned(),
        end: done.end,
        output: output.trim().to_owned(),
    }
}
