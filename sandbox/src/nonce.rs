//! Names that nobody can guess.

use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// 32 hexadecimal digits that were never given out before.
pub(crate) fn nonce() -> String {
    static KEY: OnceLock<[u8; 32]> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let key = KEY.get_or_init(|| {
        let mut key = [0; 32];
        File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut key))
            .expect("every Unix has /dev/urandom");
        key
    });
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    blake3::keyed_hash(key, &count.to_le_bytes()).to_hex()[..32].to_owned()
}
