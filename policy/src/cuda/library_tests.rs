//! Every kernel compiles, without a device.

use super::kernel_cache::KernelCache;
use super::kernels::{FILES, KernelFile};
use super::library::{compile, compiler_version, options};

/// Widths of heads of the families that there are, and one that fills no vector.
const HEAD_DIMS: &[usize] = &[34, 64, 128, 256];
/// Those that most models have.
const COMMON_HEAD_DIMS: &[usize] = &[64, 128];

/// Calls `visit` with every file and every width it is compiled for.
fn for_each(head_dims: &[usize], mut visit: impl FnMut(&KernelFile, Option<usize>)) {
    for file in FILES {
        if file.is_by_head_dim {
            head_dims.iter().for_each(|head_dim| visit(file, Some(*head_dim)));
        } else {
            visit(file, None);
        }
    }
}

#[test]
#[ignore = "needs NVRTC from PyPI"]
fn nvrtc_compiles_every_kernel_to_ptx() {
    for architecture in ["compute_80", "compute_90"] {
        for_each(HEAD_DIMS, |file, head_dim| {
            let options = options(file, head_dim, architecture);
            let compiled = compile(file, architecture, &options).unwrap();
            let ptx = String::from_utf8_lossy(&compiled.image).into_owned();
            let target = architecture.replace("compute", "sm");
            assert!(ptx.contains(&format!(".target {target}")), "{}", file.name);
            assert!(ptx.contains(".entry"), "{}", file.name);
            assert_eq!(compiled.log, "", "{} {head_dim:?} compiles with warnings", file.name);
            let is_attention = file.name != "attention_backward" && file.is_by_head_dim;
            assert!(!is_attention || ptx.contains("mma.sync.aligned.m16n8k16"), "{}", file.name);
        });
    }
}

/// `(kernel, registers, bytes spilled)` as the assembler tells them.
fn resources(log: &str) -> Vec<(String, usize, usize)> {
    let number_before = |line: &str, word: &str| -> Option<usize> {
        line.split(word).next()?.split_whitespace().last()?.parse().ok()
    };
    let (mut found, mut name, mut spilled) = (Vec::new(), String::new(), 0);
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            name = rest.split('\'').next().unwrap_or_default().to_owned();
        } else if line.contains("spill stores") {
            spilled = number_before(line, " bytes spill stores").unwrap_or(usize::MAX);
        } else if let Some(rest) = line.split("Used ").nth(1) {
            let registers = rest.split_whitespace().next().and_then(|word| word.parse().ok());
            found.push((name.clone(), registers.unwrap_or(0), spilled));
        }
    }
    found
}

#[test]
#[ignore = "needs NVRTC from PyPI"]
fn nvrtc_assembles_every_kernel_and_those_for_tensor_cores_spill_nothing() {
    for architecture in ["sm_80", "sm_90"] {
        for_each(COMMON_HEAD_DIMS, |file, head_dim| {
            let mut options = options(file, head_dim, architecture);
            options.push("--ptxas-options=-v".to_owned());
            let compiled = compile(file, architecture, &options).unwrap();
            assert!(compiled.image.starts_with(b"\x7fELF"), "{}", file.name);
            let found = resources(&compiled.log);
            assert!(!found.is_empty(), "{}", compiled.log);
            for (name, registers, spilled) in found {
                let width = head_dim.map_or_else(String::new, |head_dim| format!(" of {head_dim}"));
                println!("{architecture} {name}{width}: {registers} registers, {spilled} spilled");
                assert!((1..=255).contains(&registers), "{name}");
                if name.ends_with("_bf16") {
                    assert_eq!(spilled, 0, "{architecture} {name}{width}");
                }
            }
        });
    }
}

#[test]
#[ignore = "needs NVRTC from PyPI"]
fn nvrtc_results_are_kept_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let compiler = compiler_version().unwrap();
    let cache = |compiler: &str| {
        let folder = folder.path().join("kernels");
        KernelCache::new(folder, "sm_90".to_owned(), compiler.to_owned())
    };
    let file = KernelFile::find("rms_norm");
    let image = cache(&compiler).load(file, None).unwrap();
    let names = || -> Vec<_> {
        let entries = std::fs::read_dir(folder.path().join("kernels")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let [name] = &names()[..] else { panic!("one file is kept") };
    assert_eq!(std::fs::read(name).unwrap(), image);
    // What is there is not compiled again.
    std::fs::write(name, b"kept").unwrap();
    assert_eq!(cache(&compiler).load(file, None).unwrap(), b"kept");
    // Another compiler's result is another file.
    assert_eq!(cache("another").load(file, None).unwrap(), image);
    assert_eq!(names().len(), 2);
}
