//! Compiles the small programs that backends run inside sandboxes; the library embeds them.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_DOCKER").is_some() {
        // No library and no loader: it runs in whatever image there is.
        build_helper(
            "src/backends/docker/helper",
            "spar-exec",
            &["x86_64", "aarch64"],
            &["link-arg=-nostartfiles", "link-arg=-nostdlib", "link-arg=-static"],
        );
    }
    if env::var_os("CARGO_FEATURE_LOCAL").is_some() {
        // It only ever starts on this host.
        build_helper("src/backends/local/helper", "spar-init", &["x86_64", "aarch64"], &[]);
    }
}

/// Compiles `FOLDER/main.rs` into the file `name` of the output folder. Where the target is not
/// Linux on one of `architectures` the file is empty, and the backend says that it cannot be used.
fn build_helper(folder: &str, name: &str, architectures: &[&str], options: &[&str]) {
    println!("cargo::rerun-if-changed={folder}");
    let variable = |name: &str| env::var(name).expect("cargo sets it for build scripts");
    let out = PathBuf::from(variable("OUT_DIR")).join(name);
    let architecture = variable("CARGO_CFG_TARGET_ARCH");
    if variable("CARGO_CFG_TARGET_OS") != "linux" || !architectures.contains(&architecture.as_str())
    {
        std::fs::write(&out, []).expect("the output folder can be written");
        return;
    }
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition", "2024", "--crate-type", "bin", "--crate-name"]);
    rustc.arg(name.replace('-', "_")).arg("--target").arg(variable("TARGET"));
    for option in ["panic=abort", "opt-level=s", "strip=symbols", "relocation-model=static"] {
        rustc.args(["-C", option]);
    }
    for option in options {
        rustc.args(["-C", option]);
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    rustc.arg("-o").arg(&out).arg(format!("{folder}/main.rs"));
    let status = rustc.status().expect("the compiler that cargo names can be run");
    assert!(status.success(), "the helper `{name}` does not compile");
}
