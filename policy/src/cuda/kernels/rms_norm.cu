// RMSNorm of rows; see `ops::elementwise::rms_norm` for the formulas.

// One block per row.
template <typename T>
DEVICE void rms_norm(T* out, float* inverse, const float* x, const T* gain, u32 width, float eps) {
    const float* row = x + (u64)blockIdx.x * width;
    float squares = 0.0f;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) squares = fmaf(row[c], row[c], squares);
    float factor = 1.0f / sqrtf(block_sum(squares) / (float)width + eps);
    if (threadIdx.x == 0) inverse[blockIdx.x] = factor;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        store(out[(u64)blockIdx.x * width + c], row[c] * factor * number(gain[c]));
    }
}

// Adds to `dx`; one block per row.
template <typename T>
DEVICE void rms_norm_backward(float* dx, const T* dy, const float* x, const T* gain, const float* inverse,
                              u32 width) {
    u64 start = (u64)blockIdx.x * width;
    float s = inverse[blockIdx.x], shared = 0.0f;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        shared = fmaf(number(dy[start + c]) * x[start + c], number(gain[c]), shared);
    }
    shared = block_sum(shared) * s * s / (float)width;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        u64 i = start + c;
        dx[i] += s * (number(gain[c]) * number(dy[i]) - x[i] * shared);
    }
}

// The gradient of the gain from `piece_rows` rows, `[piece, width]`: block (x, y) has columns of piece y.
// Row i of x begins at i / heads * stride + start + i % heads * width.
template <typename X, typename Y>
DEVICE void gain_gradient(float* pieces, const Y* dy, const X* x, const float* inverse, u32 rows, u32 width,
                          u32 stride, u32 start, u32 heads, u32 piece_rows) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    u32 first = blockIdx.y * piece_rows, end = first + piece_rows < rows ? first + piece_rows : rows;
    if (c >= width) return;
    float sum = 0.0f;
    for (u32 i = first; i < end; i++) {
        float value = number(x[(u64)(i / heads) * stride + start + i % heads * width + c]);
        sum = fmaf(value * inverse[i], number(dy[(u64)i * width + c]), sum);
    }
    pieces[(u64)blockIdx.y * width + c] = sum;
}

#define DEFINE(suffix, T)                                                                               \
    KERNEL(256) rms_norm_##suffix(T* out, float* inverse, const float* x, const T* gain, u32 width,     \
                                  float eps) {                                                          \
        rms_norm(out, inverse, x, gain, width, eps);                                                    \
    }                                                                                                   \
    EXPORT(rms_norm_##suffix)                                                                           \
    KERNEL(256) rms_norm_backward_##suffix(float* dx, const T* dy, const float* x, const T* gain,       \
                                           const float* inverse, u32 width) {                           \
        rms_norm_backward(dx, dy, x, gain, inverse, width);                                             \
    }                                                                                                   \
    EXPORT(rms_norm_backward_##suffix)                                                                  \
    KERNEL(128) gain_gradient_##suffix(float* pieces, const T* dy, const float* x, const float* inverse, \
                                       u32 rows, u32 width, u32 piece_rows) {                           \
        gain_gradient(pieces, dy, x, inverse, rows, width, width, 0, 1, piece_rows);                    \
    }                                                                                                   \
    EXPORT(gain_gradient_##suffix)                                                                      \
    KERNEL(128) head_gain_gradient_##suffix(float* pieces, const float* dy, const T* x,                 \
                                            const float* inverse, u32 rows, u32 width, u32 stride,      \
                                            u32 start, u32 heads, u32 piece_rows) {                     \
        gain_gradient(pieces, dy, x, inverse, rows, width, stride, start, heads, piece_rows);           \
    }                                                                                                   \
    EXPORT(head_gain_gradient_##suffix)
FOR_TYPES(DEFINE)
