use super::product::{DEPTH_BLOCK, product};
use super::right::Right;
use super::*;
use crate::kernel::{Isa, multiply_add};
use crate::parallel;

fn numbers(count: usize, step: f32) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * step).sin()).collect()
}

#[test]
fn products_agree_with_the_definition() {
    for (rows, depth, width) in [(1, 1, 1), (5, 33, 70), (100, 600, 31), (13, 128, 64)] {
        let a = numbers(rows * depth, 0.7);
        let b = numbers(depth * width, 0.3);
        let mut expected = vec![0.0_f64; rows * width];
        for i in 0..rows {
            for p in 0..depth {
                for j in 0..width {
                    expected[i * width + j] +=
                        f64::from(a[i * depth + p]) * f64::from(b[p * width + j]);
                }
            }
        }
        let check = |out: &[f32]| {
            for (found, expected) in out.iter().zip(&expected) {
                assert!((f64::from(*found) - expected).abs() < 1e-3, "{found} {expected}");
            }
        };
        let panels = Panels::from_rows(&b, depth, width);
        let mut out = vec![9.0; rows * width];
        multiply(&a, &panels, &mut out, rows, Output::Set);
        check(&out);
        let packed = Panels::from_transposed(&transpose(&b, depth, width), width, depth);
        assert_eq!(packed.data, panels.data);
        let mut out = vec![0.0; rows * width];
        let at = transpose(&a, rows, depth);
        multiply_left_transposed(&at, &panels, &mut out, rows, Output::Add);
        check(&out);
    }
}

fn transpose(m: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| m[(i % rows) * columns + i / rows]).collect()
}

#[test]
fn storage_pieces_and_threads_do_not_change_a_bit() {
    for (rows, depth, width) in [
        (1, 600, 90),
        (2, 40, 31),
        (3, 300, 64),
        (5, 257, 17),
        (6, 1000, 200),
        (7, 513, 33),
        (70, 300, 130),
        (500, 270, 300),
    ] {
        let (a, b) = (numbers(rows * depth, 0.7), numbers(depth * width, 0.3));
        let start = numbers(rows * width, 0.9);
        // One element after the other, as the kernels promise to.
        let mut expected = start.clone();
        for (i, out) in expected.iter_mut().enumerate() {
            let (i, j) = (i / width, i % width);
            for block in (0..depth).step_by(DEPTH_BLOCK) {
                let mut sum = 0.0_f32;
                for p in block..depth.min(block + DEPTH_BLOCK) {
                    let (a, b) = (a[i * depth + p], b[p * width + j]);
                    // The vector instructions are fused whatever the tests are compiled for.
                    let is_portable = Isa::detect() == Isa::Portable;
                    sum = if is_portable { multiply_add(a, b, sum) } else { a.mul_add(b, sum) };
                }
                *out += sum;
            }
        }
        let (at, bt) = (transpose(&a, rows, depth), transpose(&b, depth, width));
        let panels = Panels::from_rows(&b, depth, width);
        let lefts = [
            Left { data: &a, row_stride: depth, column_stride: 1 },
            Left { data: &at, row_stride: 1, column_stride: rows },
        ];
        let rights = [
            Right::Panels(&panels),
            Right::Rows { data: Matrix::F32(&b), stride: width, depth, width },
            Right::Columns { data: Matrix::F32(&bt), stride: depth, depth, width },
        ];
        for (left, right) in lefts.iter().flat_map(|l| rights.iter().map(move |r| (l, r))) {
            let run = || {
                let mut out = start.clone();
                product(*left, *right, &mut out, width, rows, Output::Add);
                out
            };
            let found = run();
            assert!(found == expected, "{rows} x {depth} x {width}");
            assert!(parallel::serially(run) == expected, "{rows} x {depth} x {width}");
            let pool = rayon::ThreadPoolBuilder::new().num_threads(7).build().unwrap();
            assert!(pool.install(run) == expected, "{rows} x {depth} x {width}");
        }
    }
}

#[test]
fn linear_and_its_gradients_are_the_products_they_should_be() {
    let (rows, inputs, outputs) = (9, 20, 35);
    let (x, w) = (numbers(rows * inputs, 0.7), numbers(outputs * inputs, 0.3));
    let dy = numbers(rows * outputs, 0.2);
    let multiplied = |left: &[f32], right: &[f32], depth: usize, width: usize| {
        let rows = left.len() / depth;
        let mut out = vec![0.0; rows * width];
        multiply(left, &Panels::from_rows(right, depth, width), &mut out, rows, Output::Set);
        out
    };
    let mut y = vec![9.0; rows * outputs];
    linear(&x, &w, &mut y, rows, outputs, Output::Set);
    assert_eq!(y, multiplied(&x, &transpose(&w, outputs, inputs), inputs, outputs));
    let mut dx = vec![9.0; rows * inputs];
    linear_backward(&dy, &w, &mut dx, rows, outputs, Output::Set);
    assert_eq!(dx, multiplied(&dy, &w, outputs, inputs));
    let mut dw = vec![0.0; outputs * inputs];
    linear_gradient(&dy, &x, &mut dw, rows, outputs);
    assert_eq!(dw, multiplied(&transpose(&dy, rows, outputs), &x, rows, inputs));
}

#[test]
fn halves_give_the_bits_of_the_same_numbers_in_single_precision() {
    let bf16 = |bits: &[u16]| Matrix::Bf16(bits).widened(&mut Vec::new()).to_vec();
    let f16 = |bits: &[u16]| Matrix::F16(bits).widened(&mut Vec::new()).to_vec();
    for rows in [1, 2, 3, 4, 6, 7, 13, 40] {
        for (inputs, outputs) in [(600, 90), (40, 31), (304, 64), (257, 17), (33, 130)] {
            let (x, dy) = (numbers(rows * inputs, 0.7), numbers(rows * outputs, 0.2));
            // Exponents around that of 1, and some of subnormal numbers of half precision.
            let bits = |spread: u16, least: u16| -> Vec<u16> {
                let bit = |i: usize| {
                    let i = (i as u32).wrapping_mul(2_654_435_761) >> 16;
                    (i as u16 & 0x8000) | (least + i as u16 % spread)
                };
                (0..outputs * inputs).map(bit).collect()
            };
            let (as_bf16, as_f16) = (bits(0x180, 0x3e80), bits(0x3c00, 0));
            for (halves, singles) in
                [(Matrix::Bf16(&as_bf16), bf16(&as_bf16)), (Matrix::F16(&as_f16), f16(&as_f16))]
            {
                let run = |matrix: Matrix<'_>, output| {
                    let mut y = numbers(rows * outputs, 0.9);
                    linear(&x, matrix, &mut y, rows, outputs, output);
                    let mut dx = numbers(rows * inputs, 0.4);
                    linear_backward(&dy, matrix, &mut dx, rows, outputs, output);
                    (y, dx)
                };
                for output in [Output::Set, Output::Add] {
                    let expected = run(Matrix::F32(&singles), output);
                    assert!(expected.0.iter().all(|value| value.is_finite()));
                    assert!(run(halves, output) == expected, "{rows} x {inputs} x {outputs}");
                    let serial = parallel::serially(|| run(halves, output));
                    assert!(serial == expected, "{rows} x {inputs} x {outputs}");
                }
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    let (rows, depth, width) = (37, 700, 90);
    let a = numbers(rows * depth, 0.7);
    let panels = Panels::from_rows(&numbers(depth * width, 0.3), depth, width);
    let mut all = vec![0.0; rows * width];
    multiply(&a, &panels, &mut all, rows, Output::Set);
    for i in 0..rows {
        let mut one = vec![0.0; width];
        multiply(&a[i * depth..(i + 1) * depth], &panels, &mut one, 1, Output::Set);
        assert_eq!(one, all[i * width..(i + 1) * width]);
    }
}
