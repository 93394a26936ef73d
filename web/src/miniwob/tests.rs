//! Tests with a real browser and the package from PyPI.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::{BrowserOptions, Browsers};

fn browsers() -> Browsers {
    Browsers::new(BrowserOptions {
        patience: Duration::from_secs(20),
        max_windows: 2,
        ..BrowserOptions::default()
    })
}

/// Names of tasks in `SPAR_MINIWOB_TASKS`, or all.
fn chosen(pages: &Pages) -> Vec<String> {
    match std::env::var("SPAR_MINIWOB_TASKS") {
        Ok(names) => names.split(',').map(str::to_owned).collect(),
        Err(_) => pages.tasks().to_vec(),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn chromium_miniwob_probe() {
    let Ok(path) = std::env::var("SPAR_TRACES") else { return };
    let pages = Pages::shared().unwrap();
    let browsers = browsers();
    let report = replay_traces(&browsers, &pages, path.as_ref()).await.unwrap();
    println!(
        "{} traces {} records {} mismatches",
        report.traces, report.records, report.mismatches
    );
    for line in &report.described {
        println!("  {line}");
    }
    let _ = (chosen(&pages), Arc::clone(&pages));
}
