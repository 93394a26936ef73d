// SwiGLU, biases, conversions, sums.

DEVICE u64 element() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// `gate_up` has rows of the gate's channels and then the up's.
template <typename T> DEVICE void swiglu(T* out, const T* gate_up, u64 count, u32 width) {
    u64 i = element();
    if (i >= count) return;
    u64 at = i / width * 2 * width + i % width;
    float gate = number(gate_up[at]), up = number(gate_up[at + width]);
    store(out[i], gate / (1.0f + expf(-gate)) * up);
}

template <typename T>
DEVICE void swiglu_backward(T* dgate_up, const T* dout, const T* gate_up, u64 count, u32 width) {
    u64 i = element();
    if (i >= count) return;
    u64 at = i / width * 2 * width + i % width;
    float gate = number(gate_up[at]), up = number(gate_up[at + width]), d = number(dout[i]);
    float s = 1.0f / (1.0f + expf(-gate));
    store(dgate_up[at], d * up * (s + gate * s * (1.0f - s)));
    store(dgate_up[at + width], d * gate * s);
}

// Adds a bias to every row.
template <typename T> DEVICE void add_bias(T* rows, const T* bias, u64 count, u32 width) {
    u64 i = element();
    if (i < count) store(rows[i], number(rows[i]) + number(bias[i % width]));
}

template <typename T> DEVICE void convert(T* out, const float* x, u64 count) {
    u64 i = element();
    if (i < count) store(out[i], x[i]);
}

// Rows of `in`, by their indices.
template <typename T> DEVICE void gather_rows(T* out, const T* in, const u32* rows, u32 width) {
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        out[(u64)blockIdx.x * width + c] = in[(u64)rows[blockIdx.x] * width + c];
    }
}

// The gradient of the values, [row, width], to their columns of the rows of the projection.
template <typename T>
DEVICE void put_columns(T* rows, const float* values, u64 count, u32 width, u32 stride, u32 start) {
    u64 i = element();
    if (i < count) store(rows[i / width * stride + start + i % width], values[i]);
}

// The sum of the columns over `piece_rows` rows, [piece, width]: block (x, y) has columns of piece y.
template <typename T>
DEVICE void column_sums(float* pieces, const T* rows, u32 num_rows, u32 width, u32 piece_rows) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= width) return;
    u32 first = blockIdx.y * piece_rows;
    u32 end = first + piece_rows < num_rows ? first + piece_rows : num_rows;
    float sum = 0.0f;
    for (u32 i = first; i < end; i++) sum += number(rows[(u64)i * width + c]);
    pieces[(u64)blockIdx.y * width + c] = sum;
}

#define DEFINE(suffix, T)                                                                               \
    KERNEL(256) swiglu_##suffix(T* out, const T* gate_up, u64 count, u32 width) {                       \
        swiglu(out, gate_up, count, width);                                                             \
    }                                                                                                   \
    EXPORT(swiglu_##suffix)                                                                             \
    KERNEL(256) swiglu_backward_##suffix(T* dgate_up, const T* dout, const T* gate_up, u64 count,       \
                                         u32 width) {                                                   \
        swiglu_backward(dgate_up, dout, gate_up, count, width);                                         \
    }                                                                                                   \
    EXPORT(swiglu_backward_##suffix)                                                                    \
    KERNEL(256) add_bias_##suffix(T* rows, const T* bias, u64 count, u32 width) {                       \
        add_bias(rows, bias, count, width);                                                             \
    }                                                                                                   \
    EXPORT(add_bias_##suffix)                                                                           \
    KERNEL(256) convert_##suffix(T* out, const float* x, u64 count) { convert(out, x, count); }         \
    EXPORT(convert_##suffix)                                                                            \
    KERNEL(256) gather_rows_##suffix(T* out, const T* in, const u32* rows, u32 width) {             \
        gather_rows(out, in, rows, width);                                                              \
    }                                                                                                   \
    EXPORT(gather_rows_##suffix)                                                                        \
    KERNEL(256) put_columns_##suffix(T* rows, const float* values, u64 count, u32 width, u32 stride,    \
                                     u32 start) {                                                       \
        put_columns(rows, values, count, width, stride, start);                                         \
    }                                                                                                   \
    EXPORT(put_columns_##suffix)                                                                        \
    KERNEL(128) column_sums_##suffix(float* pieces, const T* rows, u32 num_rows, u32 width,             \
                                     u32 piece_rows) {                                                  \
        column_sums(pieces, rows, num_rows, width, piece_rows);                                         \
    }                                                                                                   \
    EXPORT(column_sums_##suffix)
FOR_TYPES(DEFINE)

// Numbers by their places.
KERNEL(256) gather(float* out, const float* in, const u32* places, u64 count) {
    u64 i = element();
    if (i < count) out[i] = in[places[i]];
}
EXPORT(gather)

// Adds the pieces, [piece, width], in order.
KERNEL(256) add_pieces(float* out, const float* pieces, u32 num_pieces, u32 width) {
    u64 c = element();
    if (c >= width) return;
    float sum = 0.0f;
    for (u32 i = 0; i < num_pieces; i++) sum += pieces[(u64)i * width + c];
    out[c] += sum;
}
EXPORT(add_pieces)

// Adds to row `targets[i]` of `out` the rows `entries[starts[i]..starts[i + 1]]` of `in`, in order; block
// i does target i.
KERNEL(256) collect_rows(float* out, const u32* targets, const u32* starts, const u32* entries,
                         const float* in, u32 width) {
    u64 target = (u64)targets[blockIdx.x] * width;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        float sum = 0.0f;
        for (u32 e = starts[blockIdx.x]; e < starts[blockIdx.x + 1]; e++) {
            sum += in[(u64)entries[e] * width + c];
        }
        out[target + c] += sum;
    }
}
EXPORT(collect_rows)

// The sum of the squares of each block's share, [block].
KERNEL(256) square_sums(float* sums, const float* x, u64 count) {
    float sum = 0.0f;
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = element(); i < count; i += stride) sum = fmaf(x[i], x[i], sum);
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
EXPORT(square_sums)
