//! Matrix products and element-wise operations: GFLOP/s and GB/s at the shapes of a 16M decoder.
//!
//! ```text
//! RAYON_NUM_THREADS=2 cargo bench -p spar-ops --bench products
//! ```

use std::time::{Duration, Instant};

use spar_ops::Matrix;
use spar_ops::elementwise::{rms_norm, swiglu, swiglu_backward};
use spar_ops::matmul::{
    Order, Output, Weight, linear, linear_backward, linear_by, linear_gradient, reorder,
};
use spar_ops::parallel;

/// The shortest of many runs: on a busy machine the one that was disturbed least.
fn shortest(mut work: impl FnMut() + Send) -> f64 {
    parallel::in_pool(|| {
        let end = Instant::now() + Duration::from_millis(400);
        let mut best = f64::INFINITY;
        while Instant::now() < end {
            let started = Instant::now();
            work();
            best = best.min(started.elapsed().as_secs_f64());
        }
        best
    })
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * 0.37).sin()).collect()
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| filter.as_deref().is_none_or(|filter| name.contains(filter));
    println!("{} threads", rayon::current_num_threads());
    // Rows, width of the inputs, width of the outputs.
    for (rows, inputs, outputs) in [
        (1, 384, 2048),
        (1, 1024, 384),
        (1, 384, 8192),
        (1, 2048, 16_384),
        (16, 384, 2048),
        (16, 384, 8192),
        (64, 384, 8192),
        (256, 384, 8192),
        (1024, 384, 640),
        (1024, 384, 384),
        (1024, 384, 2048),
        (1024, 1024, 384),
    ] {
        let name = format!("{rows} x {inputs} x {outputs}");
        if !wanted(&name) {
            continue;
        }
        let (x, w) = (numbers(rows * inputs), numbers(inputs * outputs));
        let (mut y, mut dx) = (numbers(rows * outputs), vec![0.0; rows * inputs]);
        let mut dw = vec![0.0; inputs * outputs];
        let flops = 2e-9 * (rows * inputs * outputs) as f64;
        let gigabytes = 4e-9 * (inputs * outputs) as f64;
        let forward = shortest(|| linear(&x, &w, &mut y, rows, outputs, Output::Set));
        let backward = shortest(|| linear_backward(&y, &w, &mut dx, rows, outputs, Output::Set));
        let gradient = shortest(|| linear_gradient(&y, &x, &mut dw, rows, outputs));
        println!(
            "{name:20} forward {:6.1} GFLOP/s ({:5.1} GB/s of weights), by inputs {:6.1}, by weights {:6.1}",
            flops / forward,
            gigabytes / forward,
            flops / backward,
            flops / gradient
        );
    }
    // Products of few rows with a weight by rows and by panels, in turn.
    for (rows, inputs, outputs) in [
        (1, 384, 2048),
        (1, 1024, 384),
        (1, 384, 40_960),
        (1, 1024, 15_360),
        (1, 2048, 12_288),
        (1, 4096, 8192),
        (3, 384, 40_960),
        (3, 2048, 12_288),
        (16, 384, 8192),
        (64, 384, 8192),
    ] {
        let name = format!("orders {rows} x {inputs} x {outputs}");
        if !wanted(&name) {
            continue;
        }
        let (x, singles) = (numbers(rows * inputs), numbers(inputs * outputs));
        let halves: Vec<u16> = singles.iter().map(|w| (w.to_bits() >> 16) as u16).collect();
        let (mut panels, mut half_panels) = (singles.clone(), halves.clone());
        reorder(&mut panels, outputs, Order::Rows, Order::Panels);
        reorder(&mut half_panels, outputs, Order::Rows, Order::Panels);
        let mut y = vec![0.0; rows * outputs];
        let flops = 2e-9 * (rows * inputs * outputs) as f64;
        for (kind, by_rows, by_panels) in [
            ("f32", Matrix::F32(&singles), Matrix::F32(&panels)),
            ("bf16", Matrix::Bf16(&halves), Matrix::Bf16(&half_panels)),
        ] {
            let mut run = |numbers, order| {
                let weight = Weight { numbers, order };
                shortest(|| linear_by(&x, weight, &mut y, rows, outputs, Output::Set))
            };
            let mut ratios = Vec::new();
            let mut best = [f64::INFINITY; 2];
            for _ in 0..5 {
                let times = [run(by_rows, Order::Rows), run(by_panels, Order::Panels)];
                best = [best[0].min(times[0]), best[1].min(times[1])];
                ratios.push(times[0] / times[1]);
            }
            ratios.sort_by(f64::total_cmp);
            println!(
                "{name:28} {kind:4} by rows {:6.1} GFLOP/s, by panels {:6.1}: {:.2} times ({:.2} to {:.2})",
                flops / best[0],
                flops / best[1],
                ratios[2],
                ratios[0],
                ratios[4]
            );
        }
    }
    let (rows, d, f) = (1024, 384, 1024);
    if wanted("elementwise") {
        let (x, gain) = (numbers(rows * d), numbers(d));
        let (mut out, mut inverse) = (vec![0.0; rows * d], vec![0.0; rows]);
        let seconds = shortest(|| rms_norm(&x, &gain, 1e-6, &mut out, &mut inverse));
        println!("elementwise rms_norm {:6.1} us", seconds * 1e6);
        let (x, dy) = (numbers(rows * 2 * f), numbers(rows * f));
        let (mut y, mut dx) = (vec![0.0; rows * f], vec![0.0; rows * 2 * f]);
        let seconds = shortest(|| swiglu(&x, f, &mut y));
        println!("elementwise swiglu {:6.1} us", seconds * 1e6);
        let seconds = shortest(|| swiglu_backward(&dy, &x, f, &mut dx));
        println!("elementwise swiglu_backward {:6.1} us", seconds * 1e6);
    }
}
