//! Matrix products by cuBLASLt.
#![expect(unsafe_code, reason = "calls of cuBLASLt")]

use std::ffi::c_void;

use cudarc::cublaslt::result as blas;
use cudarc::cublaslt::sys;
use cudarc::driver::result as driver;

use super::DeviceError;
use super::driver::{Number, Product};
use super::plans::Plans;

/// Memory for the library's own use; what Hopper's kernels ask for.
const WORKSPACE_BYTES: usize = 32 << 20;
/// Plans that are kept: prompts have any number of tokens, so that there are ever new shapes.
const MOST_PLANS: usize = 4096;

/// Matrix products by cuBLASLt, summed up in f32; the way of each shape is chosen once.
#[derive(Debug)]
pub(super) struct Products {
    handle: sys::cublasLtHandle_t,
    /// Allocated at the first product.
    workspace: u64,
    plans: Plans<Shape, Plan>,
}

/// What a way is chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Shape {
    rows: usize,
    columns: usize,
    depth: usize,
    left_transposed: bool,
    right_transposed: bool,
    left_stride: usize,
    out_stride: usize,
    inputs: Number,
    output: Number,
    /// Of left, right and out.
    alignments: [u32; 3],
}

/// A product in the library's order, in which matrices lie column by column: the transpose of the
/// result is the product of the transposed right and left operands.
#[derive(Debug, Clone, Copy)]
struct Plan {
    product: sys::cublasLtMatmulDesc_t,
    first: sys::cublasLtMatrixLayout_t,
    second: sys::cublasLtMatrixLayout_t,
    out: sys::cublasLtMatrixLayout_t,
    way: sys::cublasLtMatmulAlgo_t,
}

fn failed(what: &'static str) -> impl Fn(blas::CublasError) -> DeviceError {
    move |error| DeviceError::Call { what, detail: format!("{error:?}") }
}

fn data_type(number: Number) -> sys::cudaDataType {
    match number {
        Number::F32 => sys::cudaDataType_t::CUDA_R_32F,
        Number::Bf16 => sys::cudaDataType_t::CUDA_R_16BF,
    }
}

/// The largest power of two up to 256 that divides the address.
fn alignment(address: u64) -> u32 {
    1 << address.trailing_zeros().min(8)
}

impl Plan {
    /// Gives the memory of a plan back that nobody uses any more: what the device works on has no part of it.
    fn destroy(self) {
        // SAFETY: they were made with the plan, and this is its end. What cannot be destroyed stays, which
        // costs memory alone.
        unsafe {
            for layout in [self.first, self.second, self.out] {
                let _ = blas::destroy_matrix_layout(layout);
            }
            let _ = blas::destroy_matmul_desc(self.product);
        }
    }
}

impl Products {
    pub(super) fn new() -> Result<Self, DeviceError> {
        let handle = blas::create_handle().map_err(failed("open cuBLASLt"))?;
        Ok(Self { handle, workspace: 0, plans: Plans::new(MOST_PLANS) })
    }

    /// # Safety
    ///
    /// The operands belong to the caller; the stream is valid, its context is current.
    pub(super) unsafe fn multiply(
        &mut self,
        product: &Product,
        stream: cudarc::driver::sys::CUstream,
    ) -> Result<(), DeviceError> {
        let shape = Shape {
            rows: product.rows,
            columns: product.columns,
            depth: product.depth,
            left_transposed: product.left_transposed,
            right_transposed: product.right_transposed,
            left_stride: product.left_stride,
            out_stride: product.out_stride,
            inputs: product.inputs,
            output: product.output,
            alignments: [product.left, product.right, product.out].map(alignment),
        };
        if self.workspace == 0 {
            // SAFETY: the memory is kept for the life of the process.
            let workspace = unsafe { driver::malloc_sync(WORKSPACE_BYTES) };
            self.workspace = workspace.map_err(|error| DeviceError::Call {
                what: "allocate cuBLASLt's workspace",
                detail: format!("{error:?}"),
            })?;
        }
        let plan = match self.plans.get(&shape).copied() {
            Some(plan) => plan,
            None => {
                let plan = self.plan(&shape)?;
                self.plans.insert(shape, plan).into_iter().for_each(Plan::destroy);
                plan
            }
        };
        let (alpha, beta) = (product.scale, if product.adds { 1.0_f32 } else { 0.0 });
        let pointer = |address: u64| address as *mut c_void;
        // SAFETY: the plan's parts are destroyed where it is given up; the caller owns the operands.
        unsafe {
            blas::matmul(
                self.handle,
                plan.product,
                (&raw const alpha).cast(),
                (&raw const beta).cast(),
                pointer(product.right),
                plan.first,
                pointer(product.left),
                plan.second,
                pointer(product.out),
                plan.out,
                pointer(product.out),
                plan.out,
                &raw const plan.way,
                pointer(self.workspace),
                WORKSPACE_BYTES,
                stream.cast(),
            )
        }
        .map_err(failed("multiply"))
    }

    fn plan(&self, shape: &Shape) -> Result<Plan, DeviceError> {
        let plan = failed("plan a product");
        // A matrix of `rows` lies row by row, which is its transpose column by column.
        let layout = |number, rows: usize, columns: usize, stride: usize| {
            let (rows, columns) = (columns as u64, rows as u64);
            blas::create_matrix_layout(data_type(number), rows, columns, stride as i64)
        };
        let Shape { rows, columns, depth, inputs, output, .. } = *shape;
        let first = if shape.right_transposed {
            layout(inputs, columns, depth, depth)
        } else {
            layout(inputs, depth, columns, columns)
        };
        let second = if shape.left_transposed {
            layout(inputs, depth, rows, shape.left_stride)
        } else {
            layout(inputs, rows, depth, shape.left_stride)
        };
        let (first, second) = (first.map_err(&plan)?, second.map_err(&plan)?);
        let out = layout(output, rows, columns, shape.out_stride).map_err(&plan)?;
        let product = blas::create_matmul_desc(
            sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
            sys::cudaDataType_t::CUDA_R_32F,
        )
        .map_err(&plan)?;
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        let transposes = [
            (Attribute::CUBLASLT_MATMUL_DESC_TRANSA, shape.right_transposed),
            (Attribute::CUBLASLT_MATMUL_DESC_TRANSB, shape.left_transposed),
        ];
        for (attribute, transposed) in transposes {
            let value = i32::from(transposed);
            // SAFETY: the attribute has 4 bytes: 0 for as it is, 1 for transposed.
            unsafe {
                let value: *const c_void = (&raw const value).cast();
                blas::set_matmul_desc_attribute(product, attribute, value, 4).map_err(&plan)?;
            }
        }
        let preference = blas::create_matmul_pref().map_err(&plan)?;
        use sys::cublasLtMatmulPreferenceAttributes_t as Preference;
        let [left, right, written] = shape.alignments;
        let aligned = [
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, right),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, left),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, written),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, written),
        ];
        // SAFETY: the attributes have 8 and 4 bytes; all handles have just been made.
        let way = unsafe {
            let bytes = WORKSPACE_BYTES as u64;
            let bytes: *const c_void = (&raw const bytes).cast();
            let most = Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
            blas::set_matmul_pref_attribute(preference, most, bytes, 8).map_err(&plan)?;
            for (attribute, value) in aligned {
                let value: *const c_void = (&raw const value).cast();
                blas::set_matmul_pref_attribute(preference, attribute, value, 4).map_err(&plan)?;
            }
            let way = blas::get_matmul_algo_heuristic(
                self.handle,
                product,
                first,
                second,
                out,
                out,
                preference,
            );
            let _ = blas::destroy_matmul_pref(preference);
            way.map_err(&plan)?.algo
        };
        Ok(Plan { product, first, second, out, way })
    }
}
