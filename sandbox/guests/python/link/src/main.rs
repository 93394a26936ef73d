//! `link COMPONENT ADAPTER OUTPUT`: one module out of a component. `link --memory COMPONENT`: the size of
//! its memory in bytes, which is where the adapter's data can begin.
//!
//! A component made by `componentize-py` is a dozen of core modules that share one memory, wired up by
//! name when it is instantiated. Here the wiring is done once: functions, tables, globals and data of
//! all of them become one module, and calls between them direct calls. The functions of the host that
//! the component imports (WASI preview 2) are looked up in ADAPTER, a core module that implements them
//! with preview 1. So the interpreter's whole state is one memory that its host can copy.
//!
//! Names in ADAPTER:
//!
//! - an export `wasi:io/poll#poll` is what the component imports under that name, of any version;
//! - an export `env#write` takes the place of `write` in all modules of the component;
//! - an import `component` `NAME` is the component's export of that name, or else the function that its
//!   libraries export under it, `env#` left aside;
//! - its only global is `__stack_pointer`, exported, which is replaced by the component's;
//! - imports from `wasi_snapshot_preview1` stay imports, all other exports become exports.

mod component;
mod merge;
mod renumber;
mod unit;

use anyhow::{Context, Result, bail};

use component::Component;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let read = |path: &str| std::fs::read(path).with_context(|| format!("read {path}"));
    let (component, adapter, output) = match &arguments[..] {
        [option, component] if option == "--memory" => {
            let component = read(component)?;
            let component = Component::parse(&component).context("read the component")?;
            println!("{}", merge::memory_bytes(&component)?);
            return Ok(());
        }
        [component, adapter, output] => (read(component)?, read(adapter)?, output),
        _ => bail!("usage: link COMPONENT ADAPTER OUTPUT, or link --memory COMPONENT"),
    };
    let component = Component::parse(&component).context("read the component")?;
    let module = merge::merge(&component, &adapter).context("merge the modules")?;
    std::fs::write(output, module).with_context(|| format!("write {output}"))
}
