// Attention of query tiles over their keys.

// The softmax of a query so far: maximum and sum to the base of 2.
struct Softmax {
    float maximum, sum;
};

// The factors for what was summed up under either maximum.
DEVICE void merge(Softmax& total, Softmax part, float& of_total, float& of_part) {
    float maximum = fmaxf(total.maximum, part.maximum);
    if (maximum == minus_infinity()) {
        of_total = of_part = 0.0f;
        return;
    }
    of_total = exp2_fast(total.maximum - maximum);
    of_part = exp2_fast(part.maximum - maximum);
    total.maximum = maximum;
    total.sum = fmaf(total.sum, of_total, part.sum * of_part);
}
DEVICE float merged(float total, float part, float of_total, float of_part) {
    return fmaf(total, of_total, part * of_part);
}

// Block (x, y) does tile x and key head y. With `parts` it does chunk z of the keys alone and leaves the
// result there: per tile, key head, chunk and query DIM + 2 numbers, the last two maximum and sum.
template <typename T>
DEVICE void attention_forward(T* out, float* log_sums, float* parts, const T* queries, const T* pages,
                              const u32* tables, const QueryTile* tiles, Keys keys, Shape shape,
                              Match<T> match) {
    constexpr u32 STAGES = sizeof(T) == 2 ? 2 : 1;
    constexpr u32 TILE_LEN = TILE * STRIDE<T>;
    DYNAMIC_SHARED(memory);
    // Stages of keys and values; the queries pass through the first one; then the totals of the chunks.
    T* stages = (T*)memory;
    float* totals = (float*)(stages + 2 * STAGES * TILE_LEN);
    __shared__ u32 tile_tokens[TILE + 1];

    QueryTile tile = tiles[blockIdx.x];
    u32 key_head = blockIdx.y, group = shape.heads / shape.key_heads;
    const u32* table = tables + tile.table;
    u32 end = tile.position + tile.rows;
    u32 begin = first_key(tile, shape), chunk = begin / CHUNK, last_chunk = (end - 1) / CHUNK;
    if (parts) {
        if (blockIdx.z < chunk || blockIdx.z > last_chunk) return;
        chunk = last_chunk = blockIdx.z;
    }
    if (begin < chunk * CHUNK) begin = chunk * CHUNK;
    u32 stop = end < (last_chunk + 1) * CHUNK ? end : (last_chunk + 1) * CHUNK;
    bool is_many = chunk < last_chunk;

    u32 warp = threadIdx.x / WARP, g = lane() / 4, t = lane() % 4;
    u32 num_queries = tile.rows * group;
    bool is_busy = warp * 16 < num_queries;
    auto [row, position, head] = lane_queries(tile, shape, key_head);

    load_queries(stages, queries, shape, key_head, tile.first_row, 0, num_queries, TILE);
    end_of_copies();
    wait_for_copies<0>();
    block_barrier();
    Left<T> query[DEPTH / 16];
    UNROLL for (u32 k = 0; k < DEPTH / 16; k++) {
        load(query[k], stages + warp * 16 * STRIDE<T> + k * 16, STRIDE<T>);
    }
    block_barrier();

    Out sums[DEPTH / 8];
    Softmax part[2], total[2];
    UNROLL for (u32 i = 0; i < 2; i++) part[i] = total[i] = Softmax{minus_infinity(), 0.0f};
    UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
        UNROLL for (u32 i = 0; i < 4; i++) {
            sums[n].value[i] = 0.0f;
            if (is_many) totals[(n * 4 + i) * THREADS + threadIdx.x] = 0.0f;
        }
    }

    auto load_stage = [&](u32 start) {
        T* stage = stages + (STAGES == 2 ? start / TILE % 2 : 0) * 2 * TILE_LEN;
        load_tile(stage, pages, keys, key_head, shape.key_heads, false, table, start, end, TILE);
        load_tile(stage + TILE_LEN, pages, keys, key_head, shape.key_heads, true, table, start, end, TILE);
        end_of_copies();
    };
    if (STAGES == 2) load_stage(begin);
    for (u32 start = begin; start < stop; start += TILE) {
        if (STAGES == 1) {
            load_stage(start);
            wait_for_copies<0>();
        } else if (start + TILE < stop) {
            load_stage(start + TILE);
            wait_for_copies<1>();
        } else {
            wait_for_copies<0>();
        }
        if (match.bias) {
            for (u32 i = threadIdx.x; i < TILE + 1; i += blockDim.x) {
                bool exists = start + i > 0 && start + i - 1 < end;
                tile_tokens[i] = exists ? token_at(match.page_tokens, table, start + i - 1) : NONE;
            }
        }
        block_barrier();
        T* key = stages + (STAGES == 2 ? start / TILE % 2 : 0) * 2 * TILE_LEN;
        T* value = key + TILE_LEN;
        if (is_busy) {
            // 1. Scores, to the base of 2.
            Out scores[TILE / 8];
            UNROLL for (u32 n = 0; n < TILE / 8; n++) {
                UNROLL for (u32 i = 0; i < 4; i++) scores[n].value[i] = 0.0f;
                UNROLL for (u32 k = 0; k < DEPTH / 16; k++) {
                    Right<T> right;
                    load_columns(right, key + n * 8 * STRIDE<T> + k * 16, STRIDE<T>);
                    multiply_add(scores[n], query[k], right);
                }
                UNROLL for (u32 i = 0; i < 4; i++) {
                    u32 place = n * 8 + 2 * t + i % 2, at = start + place;
                    float score = scores[n].value[i] * shape.scale;
                    bool sees = at <= position[i / 2] && position[i / 2] - at < shape.window;
                    if (match.bias && sees) {
                        score += match_bias(match, head[i / 2], row[i / 2], position[i / 2], at,
                                            tile_tokens[place + 1], tile_tokens[place]);
                    }
                    scores[n].value[i] = sees ? score * LOG2_E : minus_infinity();
                }
            }
            // 2. The softmax goes on.
            UNROLL for (u32 j = 0; j < 2; j++) {
                float maximum = part[j].maximum;
                UNROLL for (u32 n = 0; n < TILE / 8; n++) {
                    maximum = fmaxf(maximum, fmaxf(scores[n].value[2 * j], scores[n].value[2 * j + 1]));
                }
                maximum = fmaxf(maximum, exchange_xor(maximum, 1));
                maximum = fmaxf(maximum, exchange_xor(maximum, 2));
                bool sees = maximum > minus_infinity();
                float factor = sees ? exp2_fast(part[j].maximum - maximum) : 0.0f;
                float sum = 0.0f;
                UNROLL for (u32 n = 0; n < TILE / 8; n++) {
                    UNROLL for (u32 i = 2 * j; i < 2 * j + 2; i++) {
                        float p = sees ? exp2_fast(scores[n].value[i] - maximum) : 0.0f;
                        scores[n].value[i] = p;
                        sum += p;
                    }
                }
                sum += exchange_xor(sum, 1);
                sum += exchange_xor(sum, 2);
                part[j].maximum = maximum;
                part[j].sum = fmaf(part[j].sum, factor, sum);
                UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
                    sums[n].value[2 * j] *= factor;
                    sums[n].value[2 * j + 1] *= factor;
                }
            }
            // 3. Values.
            UNROLL for (u32 k = 0; k < TILE / 16; k++) {
                Left<T> left;
                as_left(left, scores[2 * k], scores[2 * k + 1]);
                UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
                    Right<T> right;
                    load_rows(right, value + k * 16 * STRIDE<T> + n * 8, STRIDE<T>);
                    multiply_add(sums[n], left, right);
                }
            }
            // 4. At the end of a chunk.
            if (is_many && ((start + TILE) % CHUNK == 0 || start + TILE >= stop)) {
                UNROLL for (u32 j = 0; j < 2; j++) {
                    float of_total, of_part;
                    merge(total[j], part[j], of_total, of_part);
                    UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
                        UNROLL for (u32 i = 2 * j; i < 2 * j + 2; i++) {
                            float& sum = totals[(n * 4 + i) * THREADS + threadIdx.x];
                            sum = merged(sum, sums[n].value[i], of_total, of_part);
                            sums[n].value[i] = 0.0f;
                        }
                    }
                    part[j] = Softmax{minus_infinity(), 0.0f};
                }
            }
        }
        block_barrier();
    }

    UNROLL for (u32 j = 0; j < 2; j++) {
        u32 q = warp * 16 + g + j * 8;
        if (q >= num_queries) continue;
        if (!is_many) total[j] = part[j];
        u64 index = (u64)row[j] * shape.heads + head[j];
        float* target = nullptr;
        if (parts) {
            target = parts + (((u64)blockIdx.x * gridDim.y + blockIdx.y) * gridDim.z + blockIdx.z) * TILE *
                                 (DIM + 2) + (u64)q * (DIM + 2);
            if (t == 0) {
                target[DIM] = total[j].maximum;
                target[DIM + 1] = total[j].sum;
            }
        } else if (t == 0) {
            log_sums[index] = total[j].maximum + log2f(total[j].sum);
        }
        float inverse = 1.0f / total[j].sum;
        UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
            UNROLL for (u32 i = 0; i < 2; i++) {
                u32 c = n * 8 + 2 * t + i;
                if (c >= DIM) continue;
                float sum = sums[n].value[2 * j + i];
                if (is_many) sum = totals[(n * 4 + 2 * j + i) * THREADS + threadIdx.x];
                if (target) target[c] = sum;
                else store(out[index * DIM + c], sum * inverse);
            }
        }
    }
}

// Merges the chunks that `attention_forward` left in `parts`. Block (x, y) does tile x and key head y.
template <typename T>
DEVICE void attention_merge(T* out, float* log_sums, const float* parts, const QueryTile* tiles, Shape shape,
                            u32 chunks) {
    QueryTile tile = tiles[blockIdx.x];
    u32 group = shape.heads / shape.key_heads, key_head = blockIdx.y;
    u32 chunk = first_key(tile, shape) / CHUNK, last_chunk = (tile.position + tile.rows - 1) / CHUNK;
    const float* of_block = parts + ((u64)blockIdx.x * gridDim.y + blockIdx.y) * chunks * TILE * (DIM + 2);
    for (u32 i = threadIdx.x; i < tile.rows * group * DIM; i += blockDim.x) {
        u32 q = i / DIM, c = i % DIM;
        Softmax total = {minus_infinity(), 0.0f};
        float sum = 0.0f;
        for (u32 z = chunk; z <= last_chunk; z++) {
            const float* of_chunk = of_block + ((u64)z * TILE + q) * (DIM + 2);
            Softmax part = {of_chunk[DIM], of_chunk[DIM + 1]};
            float of_total, of_part;
            // One chunk alone is not merged with anything.
            if (chunk == last_chunk) {
                total = part;
                sum = of_chunk[c];
            } else {
                merge(total, part, of_total, of_part);
                sum = merged(sum, of_chunk[c], of_total, of_part);
            }
        }
        u64 index = (u64)(tile.first_row + q / group) * shape.heads + key_head * group + q % group;
        store(out[index * DIM + c], sum * (1.0f / total.sum));
        if (c == 0) log_sums[index] = total.maximum + log2f(total.sum);
    }
}

#define DEFINE(suffix, T)                                                                                 \
    KERNEL(128) attention_forward_##suffix(T* out, float* log_sums, float* parts, const T* queries,       \
                                           const T* pages, const u32* tables, const QueryTile* tiles,     \
                                           Keys keys, Shape shape, Match<T> match) {                      \
        attention_forward(out, log_sums, parts, queries, pages, tables, tiles, keys, shape, match);       \
    }                                                                                                     \
    EXPORT(attention_forward_##suffix)                                                                    \
    KERNEL(128) attention_merge_##suffix(T* out, float* log_sums, const float* parts,                     \
                                         const QueryTile* tiles, Shape shape, u32 chunks) {               \
        attention_merge(out, log_sums, parts, tiles, shape, chunks);                                      \
    }                                                                                                     \
    EXPORT(attention_merge_##suffix)
FOR_TYPES(DEFINE)
