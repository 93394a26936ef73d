// Log-probabilities and entropies over the vocabulary, tile by tile; see `head`.
//
// A head row is a state with what could be drawn behind it: `allowed[allowed_starts[r]..]`, ascending, or
// the whole vocabulary where that is empty. Its draws are `draws[draw_starts[r]..draw_starts[r + 1]]`.
// Logits are [row, width] for the tokens from `first` on, not yet divided by the temperature.

struct Running {
    float maximum;
    float sum;
    // Of the exponentials, each times its logit.
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

// Takes up the logits `logit(i)` for i from `low` to `high`; every thread gets the result.
template <typename F> DEVICE Running absorb(Running old, u32 low, u32 high, F logit) {
    float maximum = minus_infinity();
    for (u32 i = low + threadIdx.x; i < high; i += blockDim.x) maximum = fmaxf(maximum, logit(i));
    float together = fmaxf(block_max(maximum), old.maximum);
    float sum = 0.0f, weighted = 0.0f;
    for (u32 i = low + threadIdx.x; i < high; i += blockDim.x) {
        float e = expf(logit(i) - together);
        sum += e;
        weighted = fmaf(e, logit(i), weighted);
    }
    sum = block_sum(sum);
    weighted = block_sum(weighted);
    float factor = old.sum == 0.0f ? 0.0f : expf(old.maximum - together);
    return {together, fmaf(old.sum, factor, sum), fmaf(old.weighted, factor, weighted), 0.0f};
}

// Takes a tile up. One block per head row.
KERNEL(256) head_absorb(Running* running, float* drawn, const float* logits, u32 first, u32 width,
                        float inverse_temperature, const u32* allowed_starts, const u32* allowed,
                        const u32* draw_starts, const u32* draws, u32 is_last) {
    u32 r = blockIdx.x;
    const float* row = logits + (u64)r * width;
    u32 start = allowed_starts[r], end = allowed_starts[r + 1];
    bool all = start == end;
    u32 low = all ? 0 : start + lower_bound(allowed, start, end, first);
    u32 high = all ? width : start + lower_bound(allowed, start, end, first + width);
    Running old = first == 0 ? Running{minus_infinity(), 0.0f, 0.0f, 0.0f} : running[r];
    Running now = absorb(old, low, high, [&](u32 i) {
        return row[all ? i : allowed[i] - first] * inverse_temperature;
    });
    if (threadIdx.x == 0) {
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

// How a token is drawn, here or by the host.
struct Drawing {
    float inverse_temperature;
    // Between 0 and 1.
    float uniform;
    // Of those below.
    u32 flags;
    // Of candidates: at most so many and those as good as the last of them; 0 is all.
    u32 top_k;
    // Of candidates: those whose log-probability is at least this, and this below that of the best one.
    float least, below_best;
};
constexpr u32 BEST = 1;        // the first of the most probable tokens is taken
constexpr u32 RAW = 2;         // the log-probability at temperature 1 is wanted, too
constexpr u32 CANDIDATES = 4;  // nothing is drawn: the tokens that may be are listed

struct Drawn {
    // Or the number of candidates.
    u32 token;
    // Or the logarithm of the sum of the exponentials of all logits.
    float logprob;
    float entropy;
    // Or, of candidates, the same logarithm at temperature 1.
    float raw_logprob;
};

// The smallest of the threads' numbers; every thread gets it.
DEVICE u32 block_min(u32 value) {
    __shared__ u32 parts[256];
    block_barrier();
    parts[threadIdx.x] = value;
    block_barrier();
    u32 least = parts[0];
    for (u32 i = 1; i < blockDim.x; i++) least = parts[i] < least ? parts[i] : least;
    return least;
}

// Where numbers that are added up in their order first exceed `left`: the thread whose share it is in, by
// what each of the shares is, and what is left there; NONE where they never do. Every thread gets both.
DEVICE u32 find_share(float share, float& left) {
    __shared__ float parts[256];
    block_barrier();
    parts[threadIdx.x] = share;
    block_barrier();
    for (u32 i = 0; i < blockDim.x; i++) {
        if (left < parts[i]) return i;
        left -= parts[i];
    }
    return NONE;
}

// The number of logits before those of each thread, which has `own`, and of all in `all`.
DEVICE u32 count_before(u32 own, u32& all) {
    __shared__ u32 parts[256];
    block_barrier();
    parts[threadIdx.x] = own;
    block_barrier();
    u32 before = 0;
    all = 0;
    for (u32 i = 0; i < blockDim.x; i++) {
        if (i == threadIdx.x) before = all;
        all += parts[i];
    }
    return before;
}

// Numbers whose order is that of the logits, none below all others.
DEVICE u32 rank_of(float logit) {
    u32 bits = float_to_bits(logit);
    if (logit != logit) return 0;
    return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

// The rank of the k-th best logit of a row, byte by byte.
DEVICE u32 kth_best(const float* row, u32 width, u32 k) {
    __shared__ u32 counts[256];
    u32 prefix = 0;
    for (u32 shift = 32; shift > 0;) {
        shift -= 8;
        block_barrier();
        for (u32 i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
        block_barrier();
        for (u32 i = threadIdx.x; i < width; i += blockDim.x) {
            u32 rank = rank_of(row[i]);
            // Of those that agree in the bytes before.
            if (shift == 24 || rank >> (shift + 8) == prefix >> (shift + 8)) {
                count_one(&counts[rank >> shift & 0xff]);
            }
        }
        block_barrier();
        u32 byte = 255;
        while (byte > 0 && counts[byte] < k) k -= counts[byte--];
        prefix |= byte << shift;
    }
    return prefix;
}

// Lists in `list`, ascending, the first `room` tokens of a row that may be drawn, with their logits, and
// returns how many there are.
DEVICE u32 list_candidates(u32* list, u32 room, const float* row, u32 width, Drawing how, Running now) {
    bool by_rank = how.top_k > 0 && how.top_k < width;
    u32 rank = by_rank ? kth_best(row, width, how.top_k) : 0;
    float least = fmaxf(now.log_sum + how.least, now.maximum + how.below_best);
    auto may_come = [&](u32 i) {
        return by_rank ? rank_of(row[i]) >= rank : row[i] * how.inverse_temperature >= least;
    };
    // Each thread has neighbours to itself.
    u32 count = (width + blockDim.x - 1) / blockDim.x;
    u32 begin = threadIdx.x * count, end = begin + count < width ? begin + count : width;
    u32 own = 0, all;
    for (u32 i = begin; i < end; i++) own += may_come(i);
    u32 place = count_before(own, all);
    for (u32 i = begin; i < end && place < room; i++) {
        if (!may_come(i)) continue;
        list[2 * place] = i;
        list[2 * place + 1] = float_to_bits(row[i]);
        place++;
    }
    return all;
}

// Draws a token for every row of logits over the whole vocabulary, which is gone through in the tiles of
// `head_absorb`. One block per row.
KERNEL(256) head_draw(Drawn* out, u32* lists, const float* logits, const Drawing* drawings, u32 width,
                      u32 tile, u32 room) {
    __shared__ u32 found;
    Drawing how = drawings[blockIdx.x];
    const float* row = logits + (u64)blockIdx.x * width;
    auto logit = [&](u32 i) { return row[i] * how.inverse_temperature; };
    auto tile_end = [&](u32 first) { return width - first < tile ? width : first + tile; };
    auto absorb_all = [&](auto of) {
        Running running = {minus_infinity(), 0.0f, 0.0f, 0.0f};
        for (u32 first = 0; first < width; first += tile) {
            running = absorb(running, first, tile_end(first), of);
        }
        running.log_sum = running.maximum + logf(running.sum);
        return running;
    };
    Running now = absorb_all(logit);
    if (how.flags & CANDIDATES) {
        u32 count = list_candidates(lists + (u64)blockIdx.x * 2 * room, room, row, width, how, now);
        float raw = how.flags & RAW ? absorb_all([&](u32 i) { return row[i]; }).log_sum : 0.0f;
        if (threadIdx.x == 0) out[blockIdx.x] = Drawn{count, now.log_sum, 0.0f, raw};
        return;
    }
    u32 token = NONE;
    if (how.flags & BEST) {
        for (u32 i = threadIdx.x; i < width && token == NONE; i += blockDim.x) {
            if (logit(i) == now.maximum) token = i;
        }
        token = block_min(token);
    } else {
        // 1. The tile that the draw falls into.
        float left = how.uniform * now.sum;
        u32 first = 0, end = 0;
        bool is_inside = false;
        for (; first < width; first = end) {
            end = tile_end(first);
            float sum = 0.0f;
            for (u32 i = first + threadIdx.x; i < end; i += blockDim.x) sum += expf(logit(i) - now.maximum);
            sum = block_sum(sum);
            is_inside = left < sum;
            if (is_inside) break;
            left -= sum;
        }
        if (is_inside) {
            // 2. In it, each thread has neighbours to itself.
            u32 count = (end - first + blockDim.x - 1) / blockDim.x;
            u32 begin = first + threadIdx.x * count, stop = begin + count < end ? begin + count : end;
            float share = 0.0f;
            for (u32 i = begin; i < stop; i++) share += expf(logit(i) - now.maximum);
            u32 owner = find_share(share, left);
            if (threadIdx.x == 0) found = NONE;
            block_barrier();
            if (threadIdx.x == owner) {
                for (u32 i = begin; i < stop; i++) {
                    float e = expf(logit(i) - now.maximum);
                    // Where rounding leaves something over, the last one has it.
                    if (e > 0.0f) found = i;
                    if (left < e) break;
                    left -= e;
                }
            }
            block_barrier();
            token = found;
        }
        if (token == NONE) {
            // Rounding has left something over: the last one that can be drawn has it.
            u32 last = 0;
            for (u32 i = threadIdx.x; i < width; i += blockDim.x) {
                if (logit(i) > minus_infinity()) last = i;
            }
            token = width - 1 - block_min(width - 1 - last);
        }
    }
    if (token == NONE) token = width - 1;
    float raw = 0.0f;
    if (how.flags & RAW) {
        raw = row[token] - absorb_all([&](u32 i) { return row[i]; }).log_sum;
    }
    if (threadIdx.x == 0) {
        float entropy = now.log_sum - now.weighted / now.sum;
        out[blockIdx.x] = Drawn{token, logit(token) - now.log_sum, entropy, raw};
    }
}
EXPORT(head_draw)

// The derivatives by the logits of a tile, from those by log-probability and entropy of each draw: pairs.
template <typename T>
DEVICE void head_gradient(T* dlogits, const Running* running, const float* logits, u32 first, u32 width,
                          float inverse_temperature, const u32* allowed_starts, const u32* allowed,
                          const u32* draw_starts, const u32* draws, const Pair* derivatives) {
    u32 r = blockIdx.x;
    const float* row = logits + (u64)r * width;
    T* target = dlogits + (u64)r * width;
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
    KERNEL(256) head_gradient_##suffix(T* dlogits, const Running* running, const float* logits,         \
                                       u32 first, u32 width, float inverse_temperature,                 \
                                       const u32* allowed_starts, const u32* allowed,                   \
                                       const u32* draw_starts, const u32* draws,                        \
                                       const Pair* derivatives) {                                       \
        head_gradient(dlogits, running, logits, first, width, inverse_temperature, allowed_starts,      \
                      allowed, draw_starts, draws, derivatives);                                        \
    }                                                                                                   \
    EXPORT(head_gradient_##suffix)
FOR_TYPES(DEFINE)
