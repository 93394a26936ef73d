// The gradients of attention, scores being computed once more: one kernel for the queries, tile by tile,
// and one for keys and values, page by page, so that nobody adds to what others add to.
//
// With P the probabilities and D = sum(dout * out): dV = P^T dout, dS = P * (dout V^T - D),
// dQ = dS K / sqrt(dim), dK = dS^T Q / sqrt(dim), and a bias collects dS where it was added.

// D by row and head; one warp each.
template <typename T> DEVICE void attention_deltas(float* deltas, const T* out, const T* dout, u32 count) {
    u32 index = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    bool exists = index < count;
    u64 start = exists ? (u64)index * DIM : 0;
    float sum = 0.0f;
    for (u32 c = lane(); c < DIM; c += WARP) sum = fmaf(number(out[start + c]), number(dout[start + c]), sum);
    sum = warp_sum(sum);
    if (exists && lane() == 0) deltas[index] = sum;
}

// Scores of 16 rows with 8 N others, and the products of their gradients' rows; all lie in shared memory.
template <typename T, u32 N>
DEVICE void multiply_heads(Out (&scores)[N], Out (&dscores)[N], const T* rows, const T* others,
                           const T* drows, const T* dothers) {
    UNROLL for (u32 n = 0; n < N; n++) {
        UNROLL for (u32 i = 0; i < 4; i++) scores[n].value[i] = dscores[n].value[i] = 0.0f;
    }
    UNROLL for (u32 k = 0; k < DEPTH / 16; k++) {
        Left<T> left, dleft;
        load(left, rows + k * 16, STRIDE<T>);
        load(dleft, drows + k * 16, STRIDE<T>);
        UNROLL for (u32 n = 0; n < N; n++) {
            Right<T> right;
            load_columns(right, others + n * 8 * STRIDE<T> + k * 16, STRIDE<T>);
            multiply_add(scores[n], left, right);
            load_columns(right, dothers + n * 8 * STRIDE<T> + k * 16, STRIDE<T>);
            multiply_add(dscores[n], dleft, right);
        }
    }
}

// Block (x, y) does tile x and key head y. `dbias` is [row, head, 2].
template <typename T>
DEVICE void attention_backward_queries(float* dqueries, float* dbias, const T* queries, const T* dout,
                                       const float* log_sums, const float* deltas, const T* pages,
                                       const u32* tables, const QueryTile* tiles, Keys keys, Shape shape,
                                       Match<T> match) {
    constexpr u32 TILE_LEN = TILE * STRIDE<T>;
    DYNAMIC_SHARED(memory);
    T* query = (T*)memory;
    T* dquery_out = query + TILE_LEN;
    T* key = dquery_out + TILE_LEN;
    T* value = key + TILE_LEN;
    __shared__ u32 tile_tokens[TILE + 1];

    QueryTile tile = tiles[blockIdx.x];
    u32 key_head = blockIdx.y, group = shape.heads / shape.key_heads;
    const u32* table = tables + tile.table;
    u32 end = tile.position + tile.rows;
    u32 warp = threadIdx.x / WARP, g = lane() / 4, t = lane() % 4;
    u32 num_queries = tile.rows * group;
    bool is_busy = warp * 16 < num_queries;
    auto [row, position, head] = lane_queries(tile, shape, key_head);
    float log_sum[2], delta[2], same[2] = {0.0f, 0.0f}, next[2] = {0.0f, 0.0f};
    UNROLL for (u32 i = 0; i < 2; i++) {
        log_sum[i] = log_sums[(u64)row[i] * shape.heads + head[i]];
        delta[i] = deltas[(u64)row[i] * shape.heads + head[i]];
    }
    load_queries(query, queries, shape, key_head, tile.first_row, 0, num_queries, TILE);
    load_queries(dquery_out, dout, shape, key_head, tile.first_row, 0, num_queries, TILE);

    Out dquery[DEPTH / 8];
    UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
        UNROLL for (u32 i = 0; i < 4; i++) dquery[n].value[i] = 0.0f;
    }
    for (u32 start = first_key(tile, shape); start < end; start += TILE) {
        load_tile(key, pages, keys, key_head, shape.key_heads, false, table, start, end, TILE);
        load_tile(value, pages, keys, key_head, shape.key_heads, true, table, start, end, TILE);
        end_of_copies();
        if (match.bias) {
            for (u32 i = threadIdx.x; i < TILE + 1; i += blockDim.x) {
                bool exists = start + i > 0 && start + i - 1 < end;
                tile_tokens[i] = exists ? token_at(match.page_tokens, table, start + i - 1) : NONE;
            }
        }
        wait_for_copies<0>();
        block_barrier();
        if (is_busy) {
            Out scores[TILE / 8], dscores[TILE / 8];
            u32 first = warp * 16 * STRIDE<T>;
            multiply_heads(scores, dscores, query + first, key, dquery_out + first, value);
            UNROLL for (u32 n = 0; n < TILE / 8; n++) {
                UNROLL for (u32 i = 0; i < 4; i++) {
                    u32 j = i / 2, place = n * 8 + 2 * t + i % 2, at = start + place;
                    bool sees = at <= position[j] && position[j] - at < shape.window;
                    float score = scores[n].value[i] * shape.scale;
                    if (match.bias && sees) {
                        score += match_bias(match, head[j], row[j], position[j], at, tile_tokens[place + 1],
                                            tile_tokens[place]);
                    }
                    float p = sees ? exp2_fast(score * LOG2_E - log_sum[j]) : 0.0f;
                    float d = p * (dscores[n].value[i] - delta[j]);
                    dscores[n].value[i] = d;
                    if (match.bias) {
                        u32 token = match.row_tokens[row[j]];
                        if (at < position[j] && tile_tokens[place + 1] == token) same[j] += d;
                        if (tile_tokens[place] == token) next[j] += d;
                    }
                }
            }
            UNROLL for (u32 k = 0; k < TILE / 16; k++) {
                Left<T> left;
                as_left(left, dscores[2 * k], dscores[2 * k + 1]);
                UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
                    Right<T> right;
                    load_rows(right, key + k * 16 * STRIDE<T> + n * 8, STRIDE<T>);
                    multiply_add(dquery[n], left, right);
                }
            }
        }
        block_barrier();
    }
    UNROLL for (u32 j = 0; j < 2; j++) {
        if (match.bias) {
            same[j] += exchange_xor(same[j], 1);
            same[j] += exchange_xor(same[j], 2);
            next[j] += exchange_xor(next[j], 1);
            next[j] += exchange_xor(next[j], 2);
        }
        if (warp * 16 + g + j * 8 >= num_queries) continue;
        u64 index = (u64)row[j] * shape.heads + head[j];
        if (match.bias && t == 0) {
            dbias[2 * index] = same[j];
            dbias[2 * index + 1] = next[j];
        }
        UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
            UNROLL for (u32 i = 0; i < 2; i++) {
                u32 c = n * 8 + 2 * t + i;
                if (c < DIM) dqueries[index * DIM + c] = dquery[n].value[2 * j + i] * shape.scale;
            }
        }
    }
}

// A page and who sees keys of it.
struct PageQueries {
    // Of its first token.
    u32 position;
    // The token before it.
    u32 token_before;
    u32 first_range, end_range;
};
// Adjacent tokens of one sequence.
struct Rows {
    u32 first_row, rows, position;
};

constexpr u32 QUERIES = 32;

// Block (x, y) does page x and key head y, one warp 16 keys; the results are [page, 32, key head, DIM].
template <typename T>
DEVICE void attention_backward_keys(float* dkeys, float* dvalues, const T* queries, const T* dout,
                                    const float* log_sums, const float* deltas, const T* pages,
                                    const u32* slots, const PageQueries* page_queries, const Rows* ranges,
                                    Keys keys, Shape shape, Match<T> match) {
    DYNAMIC_SHARED(memory);
    T* key = (T*)memory;
    T* value = key + PAGE * STRIDE<T>;
    T* query = value + PAGE * STRIDE<T>;
    T* dquery_out = query + QUERIES * STRIDE<T>;
    __shared__ float log_sum[QUERIES], delta[QUERIES];
    __shared__ u32 positions[QUERIES], query_tokens[QUERIES], tile_tokens[PAGE + 1];
    __shared__ u32 slot;

    PageQueries page = page_queries[blockIdx.x];
    u32 key_head = blockIdx.y, group = shape.heads / shape.key_heads;
    u32 warp = threadIdx.x / WARP, g = lane() / 4, t = lane() % 4;
    // One page is a table by itself, whose first position is 0.
    if (threadIdx.x == 0) slot = slots[blockIdx.x];
    if (match.bias) {
        for (u32 i = threadIdx.x; i < PAGE + 1; i += blockDim.x) {
            tile_tokens[i] = i == 0 ? page.token_before : match.page_tokens[(u64)slots[blockIdx.x] * PAGE + i - 1];
        }
    }
    block_barrier();
    load_tile(key, pages, keys, key_head, shape.key_heads, false, &slot, 0, PAGE, PAGE);
    load_tile(value, pages, keys, key_head, shape.key_heads, true, &slot, 0, PAGE, PAGE);

    Out dkey[DEPTH / 8], dvalue[DEPTH / 8];
    UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
        UNROLL for (u32 i = 0; i < 4; i++) dkey[n].value[i] = dvalue[n].value[i] = 0.0f;
    }
    for (u32 r = page.first_range; r < page.end_range; r++) {
        Rows range = ranges[r];
        u32 total = range.rows * group;
        for (u32 first = 0; first < total; first += QUERIES) {
            load_queries(query, queries, shape, key_head, range.first_row, first, total, QUERIES);
            load_queries(dquery_out, dout, shape, key_head, range.first_row, first, total, QUERIES);
            end_of_copies();
            for (u32 i = threadIdx.x; i < QUERIES; i += blockDim.x) {
                u32 q = first + i;
                bool exists = q < total;
                u32 row = range.first_row + (exists ? q / group : 0);
                u64 index = (u64)row * shape.heads + key_head * group + q % group;
                // Nobody sees a key before the first one.
                positions[i] = exists ? range.position + q / group : NONE;
                log_sum[i] = exists ? log_sums[index] : 0.0f;
                delta[i] = exists ? deltas[index] : 0.0f;
                if (match.bias) query_tokens[i] = match.row_tokens[row];
            }
            wait_for_copies<0>();
            block_barrier();
            // 1. Scores and their gradients, [key, query].
            Out scores[QUERIES / 8], dscores[QUERIES / 8];
            u32 own = warp * 16 * STRIDE<T>;
            multiply_heads(scores, dscores, key + own, query, value + own, dquery_out);
            UNROLL for (u32 n = 0; n < QUERIES / 8; n++) {
                UNROLL for (u32 i = 0; i < 4; i++) {
                    u32 place = warp * 16 + g + i / 2 * 8, at = page.position + place;
                    u32 q = n * 8 + 2 * t + i % 2, position = positions[q];
                    bool sees = position != NONE && at <= position && position - at < shape.window;
                    float score = scores[n].value[i] * shape.scale;
                    if (match.bias && sees) {
                        u32 head = key_head * group + (first + q) % group;
                        u32 token = query_tokens[q];
                        if (at < position && tile_tokens[place + 1] == token) {
                            score += number(match.bias[2 * head]);
                        }
                        if (tile_tokens[place] == token) score += number(match.bias[2 * head + 1]);
                    }
                    float p = sees ? exp2_fast(score * LOG2_E - log_sum[q]) : 0.0f;
                    scores[n].value[i] = p;
                    dscores[n].value[i] = sees ? p * (dscores[n].value[i] - delta[q]) : 0.0f;
                }
            }
            // 2. What they give to keys and values.
            UNROLL for (u32 k = 0; k < QUERIES / 16; k++) {
                Left<T> left, dleft;
                as_left(left, scores[2 * k], scores[2 * k + 1]);
                as_left(dleft, dscores[2 * k], dscores[2 * k + 1]);
                UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
                    Right<T> right;
                    load_rows(right, dquery_out + k * 16 * STRIDE<T> + n * 8, STRIDE<T>);
                    multiply_add(dvalue[n], left, right);
                    load_rows(right, query + k * 16 * STRIDE<T> + n * 8, STRIDE<T>);
                    multiply_add(dkey[n], dleft, right);
                }
            }
            block_barrier();
        }
    }
    // Nobody may have waited for the keys.
    wait_for_copies<0>();
    UNROLL for (u32 n = 0; n < DEPTH / 8; n++) {
        UNROLL for (u32 i = 0; i < 4; i++) {
            u32 place = warp * 16 + g + i / 2 * 8, c = n * 8 + 2 * t + i % 2;
            if (c >= DIM) continue;
            u64 index = (((u64)blockIdx.x * PAGE + place) * shape.key_heads + key_head) * DIM + c;
            dkeys[index] = dkey[n].value[i] * shape.scale;
            dvalues[index] = dvalue[n].value[i];
        }
    }
}

#define DEFINE(suffix, T)                                                                               \
    KERNEL(128) attention_deltas_##suffix(float* deltas, const T* out, const T* dout, u32 count) {      \
        attention_deltas(deltas, out, dout, count);                                                     \
    }                                                                                                   \
    EXPORT(attention_deltas_##suffix)                                                                   \
    KERNEL(128) attention_backward_queries_##suffix(                                                    \
        float* dqueries, float* dbias, const T* queries, const T* dout, const float* log_sums,          \
        const float* deltas, const T* pages, const u32* tables, const QueryTile* tiles, Keys keys,      \
        Shape shape, Match<T> match) {                                                                  \
        attention_backward_queries(dqueries, dbias, queries, dout, log_sums, deltas, pages, tables,     \
                                   tiles, keys, shape, match);                                          \
    }                                                                                                   \
    EXPORT(attention_backward_queries_##suffix)                                                         \
    KERNEL(64) attention_backward_keys_##suffix(                                                        \
        float* dkeys, float* dvalues, const T* queries, const T* dout, const float* log_sums,           \
        const float* deltas, const T* pages, const u32* slots, const PageQueries* page_queries,         \
        const Rows* ranges, Keys keys, Shape shape, Match<T> match) {                                   \
        attention_backward_keys(dkeys, dvalues, queries, dout, log_sums, deltas, pages, slots,          \
                                page_queries, ranges, keys, shape, match);                              \
    }                                                                                                   \
    EXPORT(attention_backward_keys_##suffix)
FOR_TYPES(DEFINE)
