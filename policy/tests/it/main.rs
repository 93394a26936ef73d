//! The decoder, adapters and sampling against other implementations, in one binary.

mod families;
mod gguf;
mod lora;
mod sampling;
