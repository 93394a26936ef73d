// Norms and rotary positions of query and key heads; see `ops::heads`.
//
// The heads stand at `start` in rows of `stride`; a warp does one of them. `angles` has cosine and sine
// by position and frequency, `half` frequencies each.

DEVICE u32 warp_of_grid() { return (blockIdx.x * blockDim.x + threadIdx.x) / WARP; }

// Without a gain there is no norm. `inverse` is [row, head].
template <typename T>
DEVICE void heads_forward(T* out, float* inverse, const T* rows, u32 num_rows, u32 stride, u32 start,
                          u32 heads, u32 dim, const T* gain, float eps, const Pair* angles,
                          const u32* positions, u32 half) {
    u32 index = warp_of_grid(), l = threadIdx.x % WARP;
    bool exists = index < num_rows * heads;
    u32 row = exists ? index / heads : 0;
    const T* head = rows + (u64)row * stride + start + (exists ? index % heads * dim : 0);
    float factor = 1.0f;
    if (gain) {
        float squares = 0.0f;
        for (u32 c = l; c < dim; c += WARP) squares = fmaf(number(head[c]), number(head[c]), squares);
        factor = 1.0f / sqrtf(warp_sum(squares) / (float)dim + eps);
        if (exists && l == 0) inverse[index] = factor;
    }
    if (!exists) return;
    T* target = out + (u64)index * dim;
    const Pair* turn = angles + (u64)positions[row] * half;
    for (u32 c = l; c < half; c += WARP) {
        float a = number(head[c]) * factor, b = number(head[c + half]) * factor;
        if (gain) {
            a *= number(gain[c]);
            b *= number(gain[c + half]);
        }
        store(target[c], a * turn[c].first - b * turn[c].second);
        store(target[c + half], b * turn[c].first + a * turn[c].second);
    }
    for (u32 c = 2 * half + l; c < dim; c += WARP) {
        float a = number(head[c]) * factor;
        store(target[c], gain ? a * number(gain[c]) : a);
    }
}

// Turns `dout`, [row, head, dim], back in place and writes the gradient to the heads' columns of `drows`.
template <typename T>
DEVICE void heads_backward(T* drows, float* dout, const T* rows, const float* inverse, u32 num_rows,
                           u32 stride, u32 start, u32 heads, u32 dim, const T* gain, const Pair* angles,
                           const u32* positions, u32 half) {
    u32 index = warp_of_grid(), l = threadIdx.x % WARP;
    bool exists = index < num_rows * heads;
    u32 row = exists ? index / heads : 0;
    u64 at = (u64)row * stride + start + (exists ? index % heads * dim : 0);
    float* d = dout + (u64)(exists ? index : 0) * dim;
    if (exists) {
        const Pair* turn = angles + (u64)positions[row] * half;
        for (u32 c = l; c < half; c += WARP) {
            float a = d[c], b = d[c + half];
            d[c] = a * turn[c].first + b * turn[c].second;
            d[c + half] = b * turn[c].first - a * turn[c].second;
        }
    }
    // The lanes have turned other channels than they go on with.
    warp_barrier();
    float shared = 0.0f, s = 1.0f;
    if (gain) {
        s = exists ? inverse[index] : 0.0f;
        if (exists) {
            for (u32 c = l; c < dim; c += WARP) {
                shared = fmaf(d[c] * number(rows[at + c]), number(gain[c]), shared);
            }
        }
        shared = warp_sum(shared) * s * s / (float)dim;
    }
    if (!exists) return;
    for (u32 c = l; c < dim; c += WARP) {
        float value = gain ? s * (number(gain[c]) * d[c] - number(rows[at + c]) * shared) : d[c];
        store(drows[at + c], value);
    }
}

// Keys, [row, width], and values, in the columns from `value_start` on of the rows of the projection, go
// to their places: entry i is (place, row), a place being 32 times the page plus the token in it. Pages
// are `page_stride` apart; a layer's part begins at `layer_start`, keys [head, token, dim], then values.
template <typename T>
DEVICE void write_pages(T* pages, const u32* entries, const T* keys, const T* rows, u64 page_stride,
                        u64 layer_start, u32 width, u32 dim, u32 stride, u32 value_start) {
    u32 place = entries[2 * blockIdx.x], row = entries[2 * blockIdx.x + 1];
    T* page = pages + place / PAGE * page_stride + layer_start;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        u64 at = ((u64)(c / dim) * PAGE + place % PAGE) * dim + c % dim;
        page[at] = keys[(u64)row * width + c];
        page[(u64)width * PAGE + at] = rows[(u64)row * stride + value_start + c];
    }
}

#define DEFINE(suffix, T)                                                                                \
    KERNEL(128) heads_forward_##suffix(T* out, float* inverse, const T* rows, u32 num_rows, u32 stride,  \
                                       u32 start, u32 heads, u32 dim, const T* gain, float eps,          \
                                       const Pair* angles, const u32* positions, u32 half) {             \
        heads_forward(out, inverse, rows, num_rows, stride, start, heads, dim, gain, eps, angles,        \
                      positions, half);                                                                  \
    }                                                                                                    \
    EXPORT(heads_forward_##suffix)                                                                       \
    KERNEL(128) heads_backward_##suffix(T* drows, float* dout, const T* rows, const float* inverse,      \
                                        u32 num_rows, u32 stride, u32 start, u32 heads, u32 dim,         \
                                        const T* gain, const Pair* angles, const u32* positions,         \
                                        u32 half) {                                                      \
        heads_backward(drows, dout, rows, inverse, num_rows, stride, start, heads, dim, gain, angles,    \
                       positions, half);                                                                 \
    }                                                                                                    \
    EXPORT(heads_backward_##suffix)                                                                      \
    KERNEL(128) write_pages_##suffix(T* pages, const u32* entries, const T* keys, const T* rows,         \
                                     u64 page_stride, u64 layer_start, u32 width, u32 dim, u32 stride,   \
                                     u32 value_start) {                                                  \
        write_pages(pages, entries, keys, rows, page_stride, layer_start, width, dim, stride,            \
                    value_start);                                                                        \
    }                                                                                                    \
    EXPORT(write_pages_##suffix)
FOR_TYPES(DEFINE)

// The tokens of a call in the pages that they went to; entry i is (place, row).
KERNEL(128) write_tokens(u32* page_tokens, const u32* entries, const u32* tokens, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) page_tokens[entries[2 * i]] = tokens[entries[2 * i + 1]];
}
EXPORT(write_tokens)
