//! WASI preview 2 for components: files in memory, clocks of the sandbox, the rest wasmtime's.

mod clocks;
mod files;
mod streams;

use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::host::{ComponentHost, GuestState};

/// Handles that a component may have at one time.
const MAX_HANDLES: usize = 4096;

/// Makes all interfaces of `wasi:cli/imports` known to `linker`. Sockets are there and refuse
/// everything; files are those of [`GuestState::tree`].
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<GuestState, HasSelf<GuestState>>(linker, |host| host)?;
    files::bindings::wasi::filesystem::types::add_to_linker::<GuestState, HasSelf<GuestState>>(
        linker,
        |host| host,
    )?;
    files::bindings::wasi::filesystem::preopens::add_to_linker::<GuestState, HasSelf<GuestState>>(
        linker,
        |host| host,
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// What a component needs beside the rest of `host`.
pub(crate) fn component_host(host: &GuestState) -> Box<ComponentHost> {
    let mut builder = WasiCtx::builder();
    builder
        .args(&host.arguments)
        .envs(&host.environment)
        .stdin(streams::In(host.stdin.clone()))
        .stdout(streams::Out::new(&host.output, crate::Stream::Stdout))
        .stderr(streams::Out::new(&host.output, crate::Stream::Stderr))
        .wall_clock(clocks::Clock(host.surroundings.clone()))
        .monotonic_clock(clocks::Clock(host.surroundings.clone()))
        .secure_random(host.surroundings.generator())
        .insecure_random(host.surroundings.generator())
        .insecure_random_seed({
            let mut seed = [0; 16];
            host.surroundings.fill_random(&mut seed);
            u128::from_le_bytes(seed)
        })
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false);
    if let Some((_, workdir)) = host.environment.iter().find(|(name, _)| name == "PWD") {
        builder.initial_cwd(workdir);
    }
    let mut resources = ResourceTable::new();
    resources.set_max_capacity(MAX_HANDLES);
    Box::new(ComponentHost { wasi: builder.build(), resources })
}

impl GuestState {
    fn resources(&mut self) -> &mut ResourceTable {
        &mut self.component.as_mut().expect("only components call preview 2").resources
    }
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let component = self.component.as_mut().expect("only components call preview 2");
        WasiCtxView { ctx: &mut component.wasi, table: &mut component.resources }
    }
}
