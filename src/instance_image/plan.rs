use std::fs;
use std::path::Path;

use spar_swe::{Instance, RepoSpec};

use super::error::ImageError::Io;
use super::interpreter::make;
use super::{ImageError, Interpreter, Mirror, requirements};

/// The image that others are built on, unless another one is named: Debian with git, which `docker/build-images.sh base` makes.
pub const DEFAULT_BASE: &str = "spar-base";
/// Where scripts of evaluation look for the repository.
const WORKDIR: &str = "/testbed";
/// Where they look for the interpreter.
const HOME: &str = "/opt/miniconda3/envs/testbed";
/// Counts changes of how images are built, which makes them other images.
const EDITION: u32 = 1;
const ACTIVATE: &str = include_str!("activate.sh");

/// How images are built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOptions {
    /// The image to build on. Default [`DEFAULT_BASE`].
    pub base: String,
    /// Packages of pip that are installed before the row's own. Default: those that made `setup.py` work when the rows were
    /// published, which newer ones do not.
    pub tools: Vec<String>,
    /// Packages of pip for instances of which nothing is known. Default none: such instances are refused.
    pub packages: Vec<String>,
}

impl Default for PlanOptions {
    fn default() -> Self {
        let tools = ["pip<24.1", "setuptools<69", "wheel<0.43"].map(str::to_owned).into();
        Self { base: DEFAULT_BASE.to_owned(), tools, packages: Vec::new() }
    }
}

/// All that an image is built from.
#[derive(Debug, Clone)]
pub struct ImagePlan {
    /// The name that the row gives its image.
    pub image: String,
    /// A hash of all that goes into it, 64 hexadecimal digits: equal keys are equal images, but for what an index of packages
    /// has that day where versions are not pinned.
    pub key: String,
    /// The image that it is built on.
    pub base: String,
    commit: String,
    mirror: Mirror,
    interpreter: Interpreter,
    dockerfile: String,
    setup: String,
    requirements: Option<String>,
    variables: String,
}

/// The version of Python that an instance needs, such as `3.9`.
///
/// # Errors
///
/// [`ImageError::Unsupported`] where it is not known, or the instance is not one of Python.
pub(super) fn python_of<'a>(
    instance: &'a Instance,
    options: &PlanOptions,
) -> Result<Option<&'a str>, ImageError> {
    let Some(spec) = &instance.source.build else {
        return match options.packages.is_empty() {
            false => Ok(None),
            true => Err(refused(
                instance,
                "nothing is known of what it takes; --pip says what is installed".to_owned(),
            )),
        };
    };
    match (&*spec.language, &spec.python) {
        ("py", Some(version)) => Ok(Some(version)),
        ("py" | "", None) => {
            Err(refused(instance, "its version of Python is not known".to_owned()))
        }
        (other, _) => Err(refused(
            instance,
            format!("its language is `{other}`, and only images of Python are built"),
        )),
    }
}

fn refused(instance: &Instance, why: String) -> ImageError {
    ImageError::Unsupported { id: instance.id.clone(), why }
}

impl ImagePlan {
    /// The version of Python that an instance needs, such as `3.9`; absent where any will do.
    ///
    /// # Errors
    ///
    /// [`ImageError::Unsupported`] where the instance is not one of Python, or nothing is known of what it takes.
    pub fn python<'a>(
        instance: &'a Instance,
        options: &PlanOptions,
    ) -> Result<Option<&'a str>, ImageError> {
        python_of(instance, options)
    }

    /// Looks together what an image is built from. `image` is the name that it gets, `base_id` what the engine calls the base
    /// image by its content.
    ///
    /// # Errors
    ///
    /// [`ImageError`] where the repository lacks something, or the instance needs what is not done here.
    pub async fn of(
        instance: &Instance,
        image: &str,
        mirror: &Mirror,
        interpreter: &Interpreter,
        base_id: &str,
        options: &PlanOptions,
    ) -> Result<Self, ImageError> {
        python_of(instance, options)?;
        let none = RepoSpec { pip_packages: options.packages.clone(), ..RepoSpec::default() };
        let spec = instance.source.build.as_ref().unwrap_or(&none);
        let workdir = instance.workdir.as_deref().unwrap_or(WORKDIR);
        if workdir != WORKDIR {
            return Err(refused(
                instance,
                format!("its repository lies in `{workdir}`, not in `{WORKDIR}`"),
            ));
        }
        let commit = instance
            .base_commit
            .clone()
            .ok_or_else(|| refused(instance, "it names no base commit".to_owned()))?;
        let tree = mirror.tree(&commit).await?;
        let requirements = requirements_of(instance, spec, mirror, &commit).await?;
        let pretended = match counts_tags(mirror, &commit).await? {
            true => mirror.version(&commit).await?,
            false => None,
        };
        // It becomes a line of a Dockerfile and of a script; tags can be called anything.
        let is_version = |text: &String| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_'))
        };
        let pretended = pretended.filter(is_version);
        let setup = setup(instance, spec, requirements.is_some(), &options.tools)?;
        let dockerfile = dockerfile(&options.base, spec, pretended.as_deref());
        let variables = variables(pretended.as_deref());
        let mut hasher = blake3::Hasher::new();
        for part in [
            &EDITION.to_string(),
            base_id,
            &commit,
            &tree,
            &interpreter.version,
            &interpreter.hash,
            &dockerfile,
            &setup,
            &variables,
            requirements.as_deref().unwrap_or_default(),
            ACTIVATE,
        ] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Ok(Self {
            image: image.to_owned(),
            key: hasher.finalize().to_hex().to_string(),
            base: options.base.clone(),
            commit,
            mirror: mirror.clone(),
            interpreter: interpreter.clone(),
            dockerfile,
            setup,
            requirements,
            variables,
        })
    }

    /// Writes the folder that an engine builds from. `certificates` are those that indexes of packages are trusted by, which do
    /// not stay in the image.
    ///
    /// # Errors
    ///
    /// [`ImageError`] where something cannot be copied.
    pub async fn write_context(
        &self,
        folder: &Path,
        certificates: Option<&Path>,
    ) -> Result<(), ImageError> {
        let put = |path: &str, text: &str| {
            let path = folder.join(path);
            make(path.parent().unwrap_or(folder))?;
            fs::write(&path, text).map_err(|source| Io { doing: "write", path, source })
        };
        put("Dockerfile", &self.dockerfile)?;
        put("build/setup.sh", &self.setup)?;
        put("build/requirements.txt", self.requirements.as_deref().unwrap_or_default())?;
        put("conda/bin/activate", ACTIVATE)?;
        put("conda/etc/profile.d/conda.sh", ACTIVATE)?;
        put("conda/etc/testbed.sh", &self.variables)?;
        let libraries = folder.join("build/libraries");
        make(&libraries)?;
        for (name, path) in self.interpreter.libraries().await? {
            let copied = fs::copy(&path, libraries.join(&name));
            copied.map_err(|source| Io { doing: "copy", path: path.clone(), source })?;
        }
        if let Some(path) = certificates {
            let copied = fs::copy(path, folder.join("build/certificates.pem"));
            copied.map_err(|source| Io { doing: "copy", path: path.to_owned(), source })?;
        }
        let (interpreter, home) = (self.interpreter.clone(), folder.join("python"));
        let copied = tokio::task::spawn_blocking(move || interpreter.copy_to(&home)).await;
        copied.expect("copying does not panic")?;
        self.mirror.check_out(&self.commit, &folder.join("repository")).await
    }
}

/// The requirements that a row's `packages` stand for, as the harness takes them.
async fn requirements_of(
    instance: &Instance,
    spec: &RepoSpec,
    mirror: &Mirror,
    base_commit: &str,
) -> Result<Option<String>, ImageError> {
    match spec.packages.as_deref() {
        Some("environment.yml") => Err(refused(
            instance,
            "its packages are an environment of conda, which pip does not make".to_owned(),
        )),
        Some("requirements.txt") => {
            if let Some(text) = &spec.requirements {
                return Ok(Some(text.clone()));
            }
            let commit = spec.environment_commit.as_deref().unwrap_or(base_commit);
            let repo = instance.repo.as_deref().unwrap_or_default();
            let found =
                requirements::of_repository(mirror, repo, commit, &spec.requirement_files).await?;
            found.map(Some).map_err(|why| refused(instance, why))
        }
        _ => Ok(None),
    }
}

/// Whether a repository takes its version from its tags, which a copy of one commit has not.
async fn counts_tags(mirror: &Mirror, commit: &str) -> Result<bool, ImageError> {
    for path in ["setup.py", "setup.cfg", "pyproject.toml"] {
        let text = mirror.file(commit, path).await?.unwrap_or_default();
        if text.contains("setuptools_scm") || text.contains("setuptools-scm") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Commands for the system's packages, which the image needs itself and not only its build.
fn system_commands(spec: &RepoSpec) -> Vec<String> {
    let mut commands: Vec<String> =
        spec.pre_install.iter().filter(|command| command.contains("apt-get")).cloned().collect();
    if !spec.apt_packages.is_empty() {
        let packages = spec.apt_packages.join(" ");
        commands.push(format!(
            "apt-get update && apt-get install -y --no-install-recommends {packages}"
        ));
    }
    commands
}

/// Words that a shell takes as they are.
fn quoted(words: &[String]) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// The packages of conda as those of pip: the words of a command line, with pip's sign of equality.
fn conda_packages(packages: &str) -> Vec<String> {
    packages
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"']))
        .map(|word| match word.split_once('=') {
            // `name=1.2` is conda's, `name==1.2` and `name>=1.2` are both's.
            Some((name, version))
                if !version.starts_with('=') && !name.ends_with(['<', '>', '!', '~']) =>
            {
                format!("{name}=={version}")
            }
            _ => word.to_owned(),
        })
        .collect()
}

/// The script that fills the environment, run in the build's first stage.
fn setup(
    instance: &Instance,
    spec: &RepoSpec,
    has_requirements: bool,
    tools: &[String],
) -> Result<String, ImageError> {
    let mut lines: Vec<String> = [
        "set -exo pipefail",
        "for file in /tmp/build/libraries/*; do",
        "    [ -f \"$file\" ] || continue",
        "    ldconfig -p | grep -qF \"${file##*/} \" || { mkdir -p /opt/miniconda3/lib; cp \"$file\" /opt/miniconda3/lib/; }",
        "done",
        "mkdir -p /opt/miniconda3/lib",
        "printf '%s\\n' /opt/miniconda3/envs/testbed/lib /opt/miniconda3/lib >/etc/ld.so.conf.d/zz-testbed.conf",
        "ldconfig",
        "if [ -f /tmp/build/certificates.pem ]; then",
        "    export PIP_CERT=/tmp/build/certificates.pem SSL_CERT_FILE=/tmp/build/certificates.pem",
        "    export REQUESTS_CA_BUNDLE=/tmp/build/certificates.pem CURL_CA_BUNDLE=/tmp/build/certificates.pem",
        "    export GIT_SSL_CAINFO=/tmp/build/certificates.pem",
        "fi",
        "export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1 HOME=/root",
        "git config --global --add safe.directory /testbed",
        "source /opt/miniconda3/bin/activate",
        "conda activate testbed",
        "cd /testbed",
        "python -c 'import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib'",
        "python -m ensurepip --default-pip",
    ]
    .map(str::to_owned)
    .into();
    let install = |words: &[String]| format!("python -m pip install {}", quoted(words));
    if !tools.is_empty() {
        lines.push(format!("python -m pip install --upgrade {}", quoted(tools)));
    }
    if has_requirements {
        lines.push("python -m pip install -r /tmp/build/requirements.txt".to_owned());
    } else if let Some(packages) = &spec.packages {
        lines.push(install(&conda_packages(packages)));
    }
    if !spec.pip_packages.is_empty() {
        let words: Vec<String> =
            spec.pip_packages.iter().flat_map(|text| conda_free(text)).collect();
        lines.push(install(&words));
    }
    lines.extend(spec.pre_install.iter().filter(|command| !command.contains("apt-get")).cloned());
    lines.extend(spec.install.iter().cloned());
    lines.extend(spec.build.iter().cloned());
    // What the set-up has changed belongs to where work begins.
    lines.push(
        "git diff --quiet HEAD || git -c user.name=base -c user.email=base@localhost -c core.hooksPath=/dev/null commit --quiet -am set-up"
            .to_owned(),
    );
    lines.push("rm -rf .git/logs .git/ORIG_HEAD .git/COMMIT_EDITMSG".to_owned());
    match lines.iter().find(|line| line.contains('\0')) {
        None => Ok(lines.join("\n") + "\n"),
        Some(_) => Err(refused(instance, "a command of its set-up has a zero byte".to_owned())),
    }
}

/// Packages as pip takes them, which tables have in one text or in many.
fn conda_free(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned()).collect()
}

/// Variables that `activate` sets: an archive of the image's files has no others.
fn variables(pretended: Option<&str>) -> String {
    // Without a network pip would try again and again.
    let mut text = "export PIP_RETRIES=0 PIP_DISABLE_PIP_VERSION_CHECK=1\n".to_owned();
    if let Some(version) = pretended {
        text += &format!("export SETUPTOOLS_SCM_PRETEND_VERSION='{version}'\n");
    }
    text
}

fn dockerfile(base: &str, spec: &RepoSpec, pretended: Option<&str>) -> String {
    let apt: String = system_commands(spec)
        .iter()
        .map(|command| format!("RUN {}\n", command.replace('\n', " ")))
        .collect();
    let version = pretended
        .map(|version| format!("ENV SETUPTOOLS_SCM_PRETEND_VERSION={version}\n"))
        .unwrap_or_default();
    format!(
        "FROM {base} AS build\n\
         ENV DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8\n\
         RUN command -v gcc >/dev/null || {{ apt-get update && apt-get install -y --no-install-recommends build-essential; }}\n\
         {apt}\
         {version}\
         ARG PIP_INDEX_URL\nARG PIP_EXTRA_INDEX_URL\nARG PIP_TRUSTED_HOST\nARG PIP_DEFAULT_TIMEOUT\n\
         COPY python/ {HOME}/\n\
         COPY conda/ /opt/miniconda3/\n\
         COPY repository/ {WORKDIR}/\n\
         COPY build/ /tmp/build/\n\
         RUN [\"bash\", \"/tmp/build/setup.sh\"]\n\
         FROM {base}\n\
         ENV DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8\n\
         {apt}\
         {version}\
         COPY --from=build /opt/miniconda3 /opt/miniconda3\n\
         COPY --from=build /etc/ld.so.conf.d/zz-testbed.conf /etc/ld.so.conf.d/zz-testbed.conf\n\
         RUN ldconfig\n\
         COPY --from=build {WORKDIR} {WORKDIR}\n\
         ENV PATH={HOME}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         ENV CONDA_DEFAULT_ENV=testbed CONDA_PREFIX={HOME} PIP_RETRIES=0 PIP_DISABLE_PIP_VERSION_CHECK=1\n\
         WORKDIR {WORKDIR}\n\
         CMD [\"bash\"]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_conda_become_those_of_pip() {
        assert_eq!(
            conda_packages("'numpy==1.19.2' scipy=1.5 'pandas<2.0.0' 'a>=3' pytest"),
            ["numpy==1.19.2", "scipy==1.5", "pandas<2.0.0", "a>=3", "pytest"]
        );
    }

    #[test]
    fn packages_of_the_system_are_in_both_stages_and_all_else_in_the_first() {
        let spec = RepoSpec {
            language: "py".into(),
            python: Some("3.9".into()),
            packages: Some("numpy".into()),
            pip_packages: vec!["pytest==7".into()],
            pre_install: vec![
                "apt-get update && apt-get install -y locales".into(),
                "sed -i s/a/b/ tox.ini".into(),
            ],
            install: vec!["python -m pip install -e .".into()],
            ..RepoSpec::default()
        };
        let text = dockerfile("base", &spec, Some("1.2"));
        assert_eq!(text.matches("RUN apt-get update && apt-get install -y locales\n").count(), 2);
        assert_eq!(text.matches("SETUPTOOLS_SCM_PRETEND_VERSION=1.2").count(), 2);
        let (_, last) = text.rsplit_once("FROM base\n").unwrap();
        assert!(!last.contains("/tmp/build") && !last.contains("ARG"), "{last}");
        let script = setup(&Instance::default(), &spec, false, &["pip<24.1".to_owned()]).unwrap();
        let order = [
            "install --upgrade 'pip<24.1'",
            "install 'numpy'",
            "install 'pytest==7'",
            "sed -i",
            "install -e .",
        ];
        let places: Vec<_> = order.iter().map(|part| script.find(part).unwrap()).collect();
        assert!(places.is_sorted() && !script.contains("apt-get"), "{script}");
    }

    #[test]
    fn what_cannot_be_built_is_told() {
        let told = |spec: Option<RepoSpec>| {
            let mut instance = Instance { id: "a__b-1".into(), ..Instance::default() };
            instance.source.build = spec;
            python_of(&instance, &PlanOptions::default()).unwrap_err().to_string()
        };
        assert!(told(None).contains("--pip"));
        let go = RepoSpec { language: "go".into(), ..RepoSpec::default() };
        assert!(told(Some(go)).contains("`go`"));
    }
}
