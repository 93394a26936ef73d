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

// The first key of the first tile of keys that a tile of queries meets.
DEVICE u32 first_key(const QueryTile& tile, const Shape& shape) {
    u32 begin = tile.position + 1 > shape.window ? tile.position + 1 - shape.window : 0;
    return begin / TILE * TILE;
}

// The two queries of a tile whose results a lane holds; behind the last one, that one again.
struct LaneQueries {
    u32 row[2], position[2], head[2];
};
DEVICE LaneQueries lane_queries(const QueryTile& tile, const Shape& shape, u32 key_head) {
    u32 group = shape.heads / shape.key_heads, num_queries = tile.rows * group;
    LaneQueries found;
    UNROLL for (u32 i = 0; i < 2; i++) {
        u32 q = threadIdx.x / WARP * 16 + lane() / 4 + i * 8;
        if (q >= num_queries) q = num_queries - 1;
        found.row[i] = tile.first_row + q / group;
        found.position[i] = tile.position + q / group;
        found.head[i] = key_head * group + q % group;
    }
    return found;
}

// Rows of a head to shared memory, [count][STRIDE]: row i begins at the place in `memory` that `find(i,
// place)` sets, or is zero where that is false.
template <typename T, typename F> DEVICE void load_heads(T* shared, const T* memory, u32 count, F find) {
    constexpr u32 VECTOR = 16 / sizeof(T);
    constexpr bool IS_WHOLE = DIM % VECTOR == 0;
    constexpr u32 STEP = IS_WHOLE ? VECTOR : 1, STEPS = DEPTH / STEP;
    for (u32 i = threadIdx.x; i < count * STEPS; i += blockDim.x) {
        u32 row = i / STEPS, c = i % STEPS * STEP;
        u64 place = 0;
        bool exists = c < DIM && find(row, place);
        T* target = shared + row * STRIDE<T> + c;
        if constexpr (IS_WHOLE) {
            copy_later(target, memory + (exists ? place + c : 0), exists);
        } else {
            store(*target, 0.0f);
            if (exists) *target = memory[place + c];
        }
    }
}

// Keys (or values) of the tile that begins at `start`, [64][STRIDE], zero from `end` on.
template <typename T>
DEVICE void load_tile(T* shared, const T* pages, Keys keys, u32 key_head, u32 key_heads, bool values,
                      const u32* table, u32 start, u32 end, u32 count) {
    u64 head = keys.layer_start + (u64)(key_head + (values ? key_heads : 0)) * PAGE * DIM;
    load_heads(shared, pages, count, [&](u32 row, u64& place) {
        u32 position = start + row;
        if (position >= end) return false;
        place = table[position / PAGE] * keys.page_stride + head + position % PAGE * DIM;
        return true;
    });
}

// Row q of the tile, [count][STRIDE], has head q % group of row `first_row` + q / group; `first` is the
// first of them, and those from `total` on are zero.
template <typename T>
DEVICE void load_queries(T* shared, const T* queries, Shape shape, u32 key_head, u32 first_row, u32 first,
                         u32 total, u32 count) {
    u32 group = shape.heads / shape.key_heads;
    load_heads(shared, queries, count, [&](u32 row, u64& place) {
        u32 q = first + row;
        if (q >= total) return false;
        place = ((u64)(first_row + q / group) * shape.heads + key_head * group + q % group) * DIM;
        return true;
    });
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
