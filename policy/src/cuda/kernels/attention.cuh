// What the attention kernels share; see `ops::attention` for the mathematics.
//
// HEAD_DIM is the width of a head. Queries are worked off in tiles of 64, those of all query heads that
// share a key head counted: query q of a tile is head q % group of row q / group. Keys are met in tiles of
// 64 with borders at multiples of 64, in ascending order, and the softmax is begun anew at every multiple
// of 512 and merged with that of the keys before, whoever computes the two. So a query's result depends on
// nothing but itself and its keys.

constexpr u32 TILE = 64;
constexpr u32 CHUNK = 512;
constexpr u32 THREADS = 128;
constexpr u32 DIM = HEAD_DIM;
constexpr u32 DEPTH = (DIM + 15) / 16 * 16;
// Of rows in shared memory, so that the rows of a matrix lie in different banks.
template <typename T> constexpr u32 STRIDE = DEPTH + 16 / sizeof(T);

// Adjacent tokens of one sequence.
struct QueryTile {
    u32 first_row;
    u32 rows;
    // Of the first row in its sequence.
    u32 position;
    // Where the pages of the sequence stand in the table.
    u32 table;
};

struct Shape {
    u32 heads;
    u32 key_heads;
    // Keys that a query sees.
    u32 window;
    // 1 / sqrt(HEAD_DIM).
    float scale;
};

// Where the keys of a layer lie; the values of a page stand behind all its keys.
struct Keys {
    u64 page_stride;
    u64 layer_start;
};

// Whose tokens are matched: the bias has two numbers per head, for a key with the query's token and for a
// key whose token before is the query's. No bias: null.
template <typename T> struct Match {
    const T* bias;
    const u32* row_tokens;
    // [page, 32].
    const u32* page_tokens;
};

// Keys (or values) of the tile that begins at `start`, [64][STRIDE], zero from `end` on.
template <typename T>
DEVICE void load_tile(T* shared, const T* pages, Keys keys, u32 key_head, u32 key_heads, bool values,
                      const u32* table, u32 start, u32 end, u32 count) {
    u64 head = keys.layer_start + (u64)(key_head + (values ? key_heads : 0)) * PAGE * DIM;
    constexpr u32 VECTOR = 16 / sizeof(T);
    if constexpr (DIM % VECTOR == 0) {
        constexpr u32 VECTORS = DEPTH / VECTOR;
        for (u32 i = threadIdx.x; i < count * VECTORS; i += blockDim.x) {
            u32 place = i / VECTORS, c = i % VECTORS * VECTOR, position = start + place;
            bool exists = position < end && c < DIM;
            u64 page = exists ? table[position / PAGE] : 0;
            u64 from = exists ? page * keys.page_stride + head + position % PAGE * DIM + c : 0;
            copy_later(shared + place * STRIDE<T> + c, pages + from, exists);
        }
    } else {
        for (u32 i = threadIdx.x; i < count * DEPTH; i += blockDim.x) {
            u32 place = i / DEPTH, c = i % DEPTH, position = start + place;
            T value;
            store(value, 0.0f);
            if (position < end && c < DIM) {
                u64 page = table[position / PAGE];
                value = pages[page * keys.page_stride + head + position % PAGE * DIM + c];
            }
            shared[place * STRIDE<T> + c] = value;
        }
    }
}

// Row q of the tile, [count][STRIDE], has head q % group of row `first_row` + q / group; `first` is the
// first of them, and those from `total` on are zero.
template <typename T>
DEVICE void load_queries(T* shared, const T* queries, Shape shape, u32 key_head, u32 first_row, u32 first,
                         u32 total, u32 count) {
    u32 group = shape.heads / shape.key_heads;
    constexpr u32 VECTOR = 16 / sizeof(T);
    if constexpr (DIM % VECTOR == 0) {
        constexpr u32 VECTORS = DEPTH / VECTOR;
        for (u32 i = threadIdx.x; i < count * VECTORS; i += blockDim.x) {
            u32 place = i / VECTORS, c = i % VECTORS * VECTOR, q = first + place;
            bool exists = q < total && c < DIM;
            u64 head = (u64)(first_row + q / group) * shape.heads + key_head * group + q % group;
            copy_later(shared + place * STRIDE<T> + c, queries + (exists ? head * DIM + c : 0), exists);
        }
    } else {
        for (u32 i = threadIdx.x; i < count * DEPTH; i += blockDim.x) {
            u32 place = i / DEPTH, c = i % DEPTH, q = first + place;
            T value;
            store(value, 0.0f);
            if (q < total && c < DIM) {
                u64 head = (u64)(first_row + q / group) * shape.heads + key_head * group + q % group;
                value = queries[head * DIM + c];
            }
            shared[place * STRIDE<T> + c] = value;
        }
    }
}

// What is added to the score of a key, and what of it is there.
template <typename T>
DEVICE float match_bias(const Match<T>& match, u32 head, u32 row, u32 query_position, u32 position,
                        u32 key_token, u32 token_before) {
    u32 token = match.row_tokens[row];
    float bias = position < query_position && key_token == token ? number(match.bias[2 * head]) : 0.0f;
    return token_before == token ? bias + number(match.bias[2 * head + 1]) : bias;
}

// The token at a position of a sequence.
DEVICE u32 token_at(const u32* page_tokens, const u32* table, u32 position) {
    return page_tokens[table[position / PAGE] * PAGE + position % PAGE];
}
