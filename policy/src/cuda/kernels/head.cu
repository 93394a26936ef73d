// Log-probabilities and entropies over the vocabulary, tile by tile; see `head`.
//
// A head row is a state with what could be drawn behind it: `allowed[allowed_starts[r]..]`, ascending, or
// the whole vocabulary where that is empty. Its draws are `draws[draw_starts[r]..draw_starts[r + 1]]`.
// Scores are [row, width] for the tokens from `first` on, not yet divided by the temperature.

struct Running {
    float maximum;
    float sum;
    // Of the exponentials, each times its score.
    float weighted;
    // Logarithm of the sum once all tiles are taken up.
    float log_sum;
};

// The entries of `allowed[start..end]` below `token`, counted from `start`.
DEVICE u32 lower_bound(const u32* allowed, u32 start, u32 end, u32 token) {
    u32 low = start;
    while (low < end) {
        u32 middle = low + (end - low) / 2;
        if (allowed[middle] < token) low = middle + 1;
        else end = middle;
    }
    return low - start;
}

// Takes a tile up. One block per head row.
KERNEL(256) head_absorb(Running* running, float* drawn, const float* scores, u32 first, u32 width,
                        float inverse_temperature, const u32* allowed_starts, const u32* allowed,
                        const u32* draw_starts, const u32* draws, u32 is_last) {
    u32 r = blockIdx.x;
    const float* row = scores + (u64)r * width;
    u32 start = allowed_starts[r], end = allowed_starts[r + 1];
    bool all = start == end;
    u32 low = all ? 0 : start + lower_bound(allowed, start, end, first);
    u32 high = all ? width : start + lower_bound(allowed, start, end, first + width);
    float maximum = minus_infinity();
    for (u32 i = low + threadIdx.x; i < high; i += blockDim.x) {
        maximum = fmaxf(maximum, row[all ? i : allowed[i] - first] * inverse_temperature);
    }
    maximum = block_max(maximum);
    Running old = first == 0 ? Running{minus_infinity(), 0.0f, 0.0f, 0.0f} : running[r];
    float together = fmaxf(maximum, old.maximum);
    float sum = 0.0f, weighted = 0.0f;
    for (u32 i = low + threadIdx.x; i < high; i += blockDim.x) {
        float score = row[all ? i : allowed[i] - first] * inverse_temperature;
        float e = expf(score - together);
        sum += e;
        weighted = fmaf(e, score, weighted);
    }
    sum = block_sum(sum);
    weighted = block_sum(weighted);
    if (threadIdx.x == 0) {
        float factor = old.sum == 0.0f ? 0.0f : expf(old.maximum - together);
        Running now = {together, fmaf(old.sum, factor, sum), fmaf(old.weighted, factor, weighted), 0.0f};
        if (is_last) now.log_sum = now.maximum + logf(now.sum);
        running[r] = now;
    }
    for (u32 d = draw_starts[r] + threadIdx.x; d < draw_starts[r + 1]; d += blockDim.x) {
        if (draws[d] >= first && draws[d] - first < width) {
            drawn[d] = row[draws[d] - first] * inverse_temperature;
        }
    }
}
EXPORT(head_absorb)

// The derivatives by the scores of a tile, from those by log-probability and entropy of each draw: pairs.
template <typename T>
DEVICE void head_gradient(T* dscores, const Running* running, const float* scores, u32 first, u32 width,
                          float inverse_temperature, const u32* allowed_starts, const u32* allowed,
                          const u32* draw_starts, const u32* draws, const Pair* derivatives) {
    u32 r = blockIdx.x;
    const float* row = scores + (u64)r * width;
    T* target = dscores + (u64)r * width;
    u32 start = allowed_starts[r], end = allowed_starts[r + 1];
    bool all = start == end;
    u32 low = all ? 0 : start + lower_bound(allowed, start, end, first);
    u32 high = all ? width : start + lower_bound(allowed, start, end, first + width);
    Running now = running[r];
    float entropy = now.log_sum - now.weighted / now.sum;
    // All draws of a row are from the same distribution.
    float by_logprob = 0.0f, by_entropy = 0.0f;
    for (u32 d = draw_starts[r]; d < draw_starts[r + 1]; d++) {
        by_logprob += derivatives[d].first;
        by_entropy += derivatives[d].second;
    }
    if (!all) {
        for (u32 c = threadIdx.x; c < width; c += blockDim.x) store(target[c], 0.0f);
        block_barrier();
    }
    for (u32 i = low + threadIdx.x; i < high; i += blockDim.x) {
        u32 c = all ? i : allowed[i] - first;
        float log = row[c] * inverse_temperature - now.log_sum;
        float d = by_logprob + by_entropy * (log + entropy);
        float value = -inverse_temperature * expf(log) * d;
        for (u32 j = draw_starts[r]; j < draw_starts[r + 1]; j++) {
            if (draws[j] == first + c) value = fmaf(derivatives[j].first, inverse_temperature, value);
        }
        store(target[c], value);
    }
}

#define DEFINE(suffix, T)                                                                               \
    KERNEL(256) head_gradient_##suffix(T* dscores, const Running* running, const float* scores,         \
                                       u32 first, u32 width, float inverse_temperature,                 \
                                       const u32* allowed_starts, const u32* allowed,                   \
                                       const u32* draw_starts, const u32* draws,                        \
                                       const Pair* derivatives) {                                       \
        head_gradient(dscores, running, scores, first, width, inverse_temperature, allowed_starts,      \
                      allowed, draw_starts, draws, derivatives);                                        \
    }                                                                                                   \
    EXPORT(head_gradient_##suffix)
FOR_TYPES(DEFINE)
