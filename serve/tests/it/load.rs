//! Many clients at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use spar_core::Seed;
use spar_policy::GeneratorConfig;
use spar_serve::ServerConfig;

use super::client::{open, post, read, read_chunk, read_head};
use super::support::{checkpoint, eventually, metric, start_with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_clients_come_and_go_while_weights_are_swapped() {
    let root = tempfile::tempdir().unwrap();
    for seed in 1..4 {
        checkpoint(&root.path().join(seed.to_string()), seed);
    }
    let generator = GeneratorConfig {
        threads: 2,
        max_active: 20,
        prefill_tokens: 64,
        kv_memory_bytes: Some(1 << 20),
        prefix_memory_bytes: 1 << 18,
        ..GeneratorConfig::default()
    };
    let config =
        ServerConfig { weights_root: Some(root.path().to_owned()), ..ServerConfig::default() };
    let server = start_with(generator, config).await;
    let address = server.address;
    // The version published last, and whether clients are still coming.
    let published = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let swaps = {
        let (published, is_over) = (published.clone(), is_over.clone());
        tokio::spawn(async move {
            let mut swap = 0;
            while !is_over.load(Ordering::Relaxed) {
                swap += 1;
                let body = json!({ "path": (swap % 3 + 1).to_string() });
                let version = post(address, "/weights", &body).await.ok()["version"].clone();
                published.store(version.as_u64().unwrap(), Ordering::SeqCst);
                tokio::time::sleep(std::time::Duration::from_millis(30)).await;
            }
            swap
        })
    };
    let clients = (0..100_u64).map(|client| {
        let published = published.clone();
        tokio::spawn(async move {
            for turn in 0..3_u64 {
                let draw = |name: &str| Seed::from_u64(client).derive(name, turn).as_u64();
                let is_stream = draw("stream") % 2 == 0;
                let body = json!({
                    "prompt": "You see a door. ".repeat(1 + (draw("prompt") % 6) as usize),
                    "max_tokens": 1 + draw("tokens") % 40,
                    "seed": draw("seed") % 5,
                    "stream": is_stream,
                    "return_token_ids": true,
                    "ignore_eos": true,
                });
                let text = body.to_string();
                let before = published.load(Ordering::SeqCst);
                let mut stream =
                    open(address, "POST", "/v1/completions", "", text.as_bytes()).await;
                if draw("hang up") % 4 == 0 {
                    if is_stream {
                        assert_eq!(read_head(&mut stream).await.0, 200);
                        read_chunk(&mut stream).await;
                    }
                    continue;
                }
                let answer = read(&mut stream).await;
                let versions: Vec<Value> = if is_stream {
                    let events = answer.events();
                    let of = |event: &Value| event["choices"][0]["policy_versions"].clone();
                    events
                        .iter()
                        .flat_map(|event| of(event).as_array().cloned().unwrap_or_default())
                        .collect()
                } else {
                    answer.ok()["choices"][0]["policy_versions"].as_array().unwrap().clone()
                };
                let versions: Vec<u64> = versions.iter().map(|v| v.as_u64().unwrap()).collect();
                assert_eq!(versions.len() as u64, body["max_tokens"].as_u64().unwrap());
                assert!(versions.is_sorted(), "{versions:?}");
                // None is older than what was published before the request, or newer than what
                // may have been by now.
                let after = published.load(Ordering::SeqCst) + 1;
                assert!(versions.iter().all(|v| (before..=after).contains(v)), "{versions:?}");
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(swaps.await.unwrap() > 0);
    eventually(async || metric(address, "spar_requests_running").await == 0.0).await;
    eventually(async || metric(address, "spar_kv_memory_used_bytes").await == 0.0).await;
    assert!(metric(address, "spar_kv_memory_prefix_bytes").await <= f64::from(1 << 18));
    assert_eq!(metric(address, "spar_requests_waiting").await, 0.0);
    assert_eq!(server.stop().await, 0);
}
