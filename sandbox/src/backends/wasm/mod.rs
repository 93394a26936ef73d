//! WebAssembly guests through wasmtime.
