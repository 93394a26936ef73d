// The instructions of the tensor cores on the host, by the layouts in NVIDIA's PTX manual.

template <typename T> struct Left;
template <typename T> struct Right;
struct Out;

struct Operands {
    u32 a[4], b[2];
};

DEVICE float half_of(u32 pair, u32 index) { return bits_to_float(pair >> (16 * index) << 16); }

// Elements [row][k] of a left and [k][column] of a right matrix of bf16, depth 16.
DEVICE float left_bf16(const Operands (&lanes)[32], u32 row, u32 k) {
    u32 lane = row % 8 * 4 + k % 8 / 2;
    return half_of(lanes[lane].a[row / 8 + k / 8 * 2], k % 2);
}
DEVICE float right_bf16(const Operands (&lanes)[32], u32 k, u32 column) {
    return half_of(lanes[column * 4 + k % 8 / 2].b[k / 8], k % 2);
}
// The same of tf32, depth 8.
DEVICE float left_tf32(const Operands (&lanes)[32], u32 row, u32 k) {
    return bits_to_float(lanes[row % 8 * 4 + k % 4].a[row / 8 + k / 4 * 2]);
}
DEVICE float right_tf32(const Operands (&lanes)[32], u32 k, u32 column) {
    return bits_to_float(lanes[column * 4 + k % 4].b[k / 4]);
}

typedef float (*Element)(const Operands (&)[32], u32, u32);

DEVICE void emulated_mma(float (&out)[4], const Operands& mine, u32 depth, Element left, Element right) {
    const Operands(&lanes)[32] = emulation::gather(mine);
    u32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (u32 i = 0; i < 4; i++) {
        for (u32 k = 0; k < depth; k++) {
            out[i] = fmaf(left(lanes, g + i / 2 * 8, k), right(lanes, k, 2 * t + i % 2), out[i]);
        }
    }
}

template <typename O, typename A, typename B> DEVICE void mma_bf16(O& out, const A& a, const B& b) {
    Operands mine;
    for (u32 i = 0; i < 4; i++) mine.a[i] = a.pair[i];
    for (u32 i = 0; i < 2; i++) mine.b[i] = b.pair[i];
    emulated_mma(out.value, mine, 16, left_bf16, right_bf16);
}
template <typename O> DEVICE void mma_tf32(O& out, const u32 (&a)[4], const u32 (&b)[2]) {
    Operands mine;
    // The instruction does not read the lowest 13 bits.
    for (u32 i = 0; i < 4; i++) mine.a[i] = a[i] & 0xffffe000;
    for (u32 i = 0; i < 2; i++) mine.b[i] = b[i] & 0xffffe000;
    emulated_mma(out.value, mine, 8, left_tf32, right_tf32);
}

template <u32 N> DEVICE void emulated_load(u32 (&out)[N], const bf16* row, bool transposed) {
    if (reinterpret_cast<size_t>(row) % 16 != 0) emulation::fail("a row of a matrix is aligned");
    const bf16* const(&rows)[32] = emulation::gather(row);
    u32 r = threadIdx.x % 32 / 4, c = threadIdx.x % 4 * 2;
    for (u32 i = 0; i < N; i++) {
        u32 pair[2];
        for (u32 j = 0; j < 2; j++) {
            pair[j] = transposed ? rows[i * 8 + c + j][r].bits : rows[i * 8 + r][c + j].bits;
        }
        out[i] = pair[0] | pair[1] << 16;
    }
    // Nobody overwrites what others still read.
    emulation::gather(row);
}
DEVICE void load_matrices(u32 (&out)[4], const bf16* row) { emulated_load(out, row, false); }
DEVICE void load_matrices(u32 (&out)[2], const bf16* row) { emulated_load(out, row, false); }
DEVICE void load_transposed(u32 (&out)[2], const bf16* row) { emulated_load(out, row, true); }
