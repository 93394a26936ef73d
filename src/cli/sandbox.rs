//! What can be typed about sandboxes.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use spar::sandbox::{CapabilitySet, Mount, NetworkPolicy};

/// Arguments of `spar sandbox`.
#[derive(Debug, Args)]
pub(crate) struct SandboxArguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SandboxCommand,
}

/// What can be done with sandboxes.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Run a command in a new sandbox and remove it.
    ///
    /// Output comes as it is written. Standard input is passed on where it is no terminal, once it
    /// has ended; --tty gives the command a terminal instead. The exit code is the command's; 124 after the deadline, 137 out of memory, 152
    /// out of fuel, 134 trapped, 128 + n by signal n. Ctrl-C, SIGTERM and SIGHUP end the command
    /// and remove the sandbox.
    Run(Box<SandboxRunArguments>),
    /// Work in a sandbox line by line; `:help` lists what else can be typed there.
    Shell(Box<SandboxShellArguments>),
    /// List spar's sandboxes, whoever made them, on all backends that work here.
    Ls(SandboxListArguments),
}

/// What a sandbox is made from; of `spar sandbox run` and `spar sandbox shell`.
#[derive(Debug, Args)]
pub(crate) struct SpecArguments {
    /// docker, wasm or local; `spar doctor` tells which work here.
    #[arg(long, default_value = "docker", value_name = "NAME")]
    pub(crate) backend: String,
    /// An image reference, a wasm guest or .wasm file, a root file system (.tar, .tar.gz,
    /// .tar.zst), a folder with a Dockerfile, or `default` for the backend's smallest image.
    #[arg(long, default_value = "default")]
    pub(crate) image: String,
    /// Processor cores [default: 1].
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<f64>,
    /// Memory, such as 512M [default: 2G].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    /// Processes and threads at one time [default: 256].
    #[arg(long, value_name = "N")]
    pub(crate) pids: Option<u32>,
    /// What may be written to the sandbox's own disk, such as 2G.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) disk: Option<u64>,
    /// Size of /dev/shm, memory that processes share [default: 64M].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) shm: Option<u64>,
    /// Files that one process may hold open.
    #[arg(long, value_name = "N")]
    pub(crate) open_files: Option<u64>,
    /// WebAssembly instructions of one command, roughly.
    #[arg(long, value_name = "N")]
    pub(crate) fuel: Option<u64>,
    /// What can be reached: none, bridge (all the host reaches), or only some hosts, through a
    /// proxy that HTTP_PROXY names inside: allow:HOST[:PORT],... with HOST a name, *.name or an
    /// address, and PORT a number or * (without one, 80 and 443).
    #[arg(long, default_value = "none", value_name = "POLICY")]
    pub(crate) network: NetworkPolicy,
    /// What may pass to and from the hosts of --network allow:... together [default: 16G].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) network_bytes: Option<u64>,
    /// Who commands run as: a name, uid or uid:gid.
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// What root may do beyond what files' permissions say: none, or packages (what package managers, useradd and
    /// su need).
    #[arg(long, default_value = "none", value_name = "SET")]
    pub(crate) capabilities: CapabilitySet,
    /// An environment variable; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Where commands run.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) workdir: Option<String>,
    /// A folder of this machine that appears inside, to be read only unless :rw; may be given
    /// several times.
    #[arg(long, value_name = "HOST:GUEST[:rw]", value_parser = parse_mount)]
    pub(crate) mount: Vec<Mount>,
    /// Let only mounts and /tmp be written.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Random numbers from this seed and a clock of its own, so that runs are equal.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Seconds that a command may take.
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    pub(crate) timeout: u64,
}

/// Arguments of `spar sandbox run`.
#[derive(Debug, Args)]
pub(crate) struct SandboxRunArguments {
    #[command(flatten)]
    pub(crate) spec: SpecArguments,
    /// Print how it went as JSON, output included, instead of the output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Run the command on a terminal, operated from this one: keys, colours and sizes as they are.
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) tty: bool,
    /// Lead connections to 127.0.0.1:LOCAL of this machine to PORT of the sandbox, which needs no network
    /// for that; LOCAL is PORT unless given, and any that is free where it is 0. May be given several times.
    #[arg(long, value_name = "[LOCAL:]PORT", value_parser = parse_forward)]
    pub(crate) forward: Vec<Forward>,
    /// Tell which files the command added, modified and deleted, on standard error, or in the JSON; N of them at the
    /// most [default: 1000].
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1000")]
    pub(crate) changes: Option<usize>,
    /// The program and its arguments; for a wasm guest the arguments alone.
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

/// A port of this machine that leads to one of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forward {
    /// Of this machine's loopback; 0 for any that is free.
    pub(crate) local: u16,
    /// Of the sandbox.
    pub(crate) port: u16,
}

/// Arguments of `spar sandbox shell`.
#[derive(Debug, Args)]
pub(crate) struct SandboxShellArguments {
    #[command(flatten)]
    pub(crate) spec: SpecArguments,
}

/// Arguments of `spar sandbox ls`.
#[derive(Debug, Args)]
pub(crate) struct SandboxListArguments {
    /// Only this backend; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar reap`.
#[derive(Debug, Args)]
pub(crate) struct ReapArguments {
    /// Only this backend; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Vec<String>,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Only this backend; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Vec<String>,
    /// Sandboxes that are made to measure what one costs; 0 measures nothing.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) rounds: usize,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a size: a number with K, M, G or T behind it, each 1024 times the one before.
fn parse_size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let short = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    let (number, factor) = match short.char_indices().last() {
        Some((end, unit @ ('K' | 'M' | 'G' | 'T'))) => {
            (&short[..end], 1u64 << (10 * (1 + "KMGT".find(unit).unwrap_or_default())))
        }
        _ => (short, 1),
    };
    let bytes = number.parse::<f64>().ok().map(|number| number * factor as f64);
    bytes
        .filter(|bytes| (0.0..1e18).contains(bytes))
        .map(|bytes| bytes as u64)
        .ok_or_else(|| "a size is a number with K, M, G or T behind it, such as 512M".to_owned())
}

/// Reads a variable.
fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a variable is NAME=VALUE".to_owned()),
    }
}

/// Reads a port that leads to another.
fn parse_forward(text: &str) -> Result<Forward, String> {
    let (local, port) = text.split_once(':').unwrap_or((text, text));
    match (local.parse(), port.parse()) {
        (Ok(local), Ok(port)) if port > 0 => Ok(Forward { local, port }),
        _ => Err("ports are PORT or LOCAL:PORT, numbers up to 65535".to_owned()),
    }
}

/// Reads a mount.
fn parse_mount(text: &str) -> Result<Mount, String> {
    let (paths, read_only) = match text.rsplit_once(':') {
        Some((paths, "rw")) => (paths, false),
        Some((paths, "ro")) => (paths, true),
        _ => (text, true),
    };
    match paths.split_once(':') {
        Some((host, guest)) if !host.is_empty() && guest.starts_with('/') => {
            let host: PathBuf = std::path::absolute(Path::new(host)).map_err(|e| e.to_string())?;
            Ok(Mount { host, guest: guest.to_owned(), read_only })
        }
        _ => Err("a mount is HOST:GUEST or HOST:GUEST:rw, with an absolute path inside".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_lead_to_themselves_or_to_others() {
        assert_eq!(parse_forward("8000"), Ok(Forward { local: 8000, port: 8000 }));
        assert_eq!(parse_forward("0:80"), Ok(Forward { local: 0, port: 80 }));
        for wrong in ["", "0", "80:", ":80", "80:0", "65536", "a:80", "1:2:3"] {
            assert!(parse_forward(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read_as_people_type_them() {
        for (text, bytes) in [
            ("65536", 65536),
            ("512M", 512 << 20),
            ("2g", 2 << 30),
            ("1.5K", 1536),
            ("10MiB", 10 << 20),
            ("1TB", 1 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "12X", "nan", "1e30"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn mounts_are_read_as_people_type_them() {
        let mount = parse_mount("/data:/mnt").unwrap();
        assert_eq!((mount.guest.as_str(), mount.read_only), ("/mnt", true));
        assert!(!parse_mount("/data:/mnt:rw").unwrap().read_only);
        assert!(parse_mount("x:/y").unwrap().host.is_absolute());
        assert!(parse_mount("/data").is_err() && parse_mount("/data:mnt").is_err());
    }
}
