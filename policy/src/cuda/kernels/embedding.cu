// Embeddings, with those of the tokens before mixed in; see `decoder::embed`.

// `before` has `smeared` tokens per row, nearest first, NONE before the first one. One block per row.
template <typename T>
DEVICE void embed(float* states, const T* embedding, const T* smear, const u32* tokens, const u32* before,
                  u32 smeared, u32 width) {
    u64 row = blockIdx.x;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        float state = number(embedding[(u64)tokens[row] * width + c]);
        for (u32 s = 0; s < smeared; s++) {
            u32 previous = before[row * smeared + s];
            if (previous != NONE) {
                float value = number(embedding[(u64)previous * width + c]);
                state = fmaf(number(smear[s * width + c]), value, state);
            }
        }
        states[row * width + c] = state;
    }
}

// Block i adds to the gradient of token `targets[i]` the gradients of the states that its embedding went
// into: entries of (row, 0 for the token itself or 1 + its distance).
template <typename T>
DEVICE void embed_backward(float* gradient, const u32* targets, const u32* starts, const u32* entries,
                           const float* dstates, const T* smear, u32 width) {
    u64 target = (u64)targets[blockIdx.x] * width;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
        float sum = 0.0f;
        for (u32 e = starts[blockIdx.x]; e < starts[blockIdx.x + 1]; e++) {
            float d = dstates[(u64)entries[2 * e] * width + c];
            u32 kind = entries[2 * e + 1];
            sum += kind == 0 ? d : d * number(smear[(kind - 1) * width + c]);
        }
        gradient[target + c] += sum;
    }
}

// The gradient of the weights of the tokens before, from `piece_rows` rows: [piece, smeared, width].
template <typename T>
DEVICE void smear_gradient(float* pieces, const float* dstates, const T* embedding, const u32* before,
                           u32 rows, u32 smeared, u32 width, u32 piece_rows) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= smeared * width) return;
    u32 s = i / width, c = i % width;
    u32 first = blockIdx.y * piece_rows, end = first + piece_rows < rows ? first + piece_rows : rows;
    float sum = 0.0f;
    for (u32 row = first; row < end; row++) {
        u32 previous = before[(u64)row * smeared + s];
        if (previous != NONE) {
            sum = fmaf(dstates[(u64)row * width + c], number(embedding[(u64)previous * width + c]), sum);
        }
    }
    pieces[(u64)blockIdx.y * smeared * width + i] = sum;
}

#define DEFINE(suffix, T)                                                                                \
    KERNEL(256) embed_##suffix(float* states, const T* embedding, const T* smear, const u32* tokens,     \
                               const u32* before, u32 smeared, u32 width) {                              \
        embed(states, embedding, smear, tokens, before, smeared, width);                                 \
    }                                                                                                    \
    EXPORT(embed_##suffix)                                                                               \
    KERNEL(256) embed_backward_##suffix(float* gradient, const u32* targets, const u32* starts,          \
                                        const u32* entries, const float* dstates, const T* smear,        \
                                        u32 width) {                                                     \
        embed_backward(gradient, targets, starts, entries, dstates, smear, width);                       \
    }                                                                                                    \
    EXPORT(embed_backward_##suffix)                                                                      \
    KERNEL(128) smear_gradient_##suffix(float* pieces, const float* dstates, const T* embedding,         \
                                        const u32* before, u32 rows, u32 smeared, u32 width,             \
                                        u32 piece_rows) {                                                \
        smear_gradient(pieces, dstates, embedding, before, rows, smeared, width, piece_rows);            \
    }                                                                                                    \
    EXPORT(smear_gradient_##suffix)
FOR_TYPES(DEFINE)
