// Products of small matrices by the tensor cores, one warp at a time.
//
// A left matrix has 16 rows and a depth of 16, a right one a depth of 16 and 8 columns, and their
// product is added up in f32. A row of the product depends on the same row of the left matrix alone.
// The lanes hold the elements as `mma.sync.m16n8k16` has them: with g = lane / 4 and t = lane % 4,
// left [g | g + 8][2t, 2t + 1 | 2t + 8, 2t + 9], right [2t, 2t + 1 | 2t + 8, 2t + 9][g],
// out [g | g + 8][2t, 2t + 1].
//
// f32 is multiplied as three products of tf32, each number being the sum of two: 21 bits count.

template <typename T> struct Left;
template <typename T> struct Right;
template <> struct Left<bf16> {
    u32 pair[4];
};
template <> struct Right<bf16> {
    u32 pair[2];
};
template <> struct Left<float> {
    float value[8];
};
template <> struct Right<float> {
    float value[4];
};
struct Out {
    float value[4];
};

DEVICE u32 lane() { return threadIdx.x % WARP; }

#ifndef EMULATED
DEVICE void mma_bf16(Out& out, const Left<bf16>& a, const Right<bf16>& b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(out.value[0]), "+f"(out.value[1]), "+f"(out.value[2]), "+f"(out.value[3])
        : "r"(a.pair[0]), "r"(a.pair[1]), "r"(a.pair[2]), "r"(a.pair[3]), "r"(b.pair[0]), "r"(b.pair[1]));
}
// A depth of 8: left [g | g + 8][t | t + 4], right [t | t + 4][g].
DEVICE void mma_tf32(Out& out, const u32 (&a)[4], const u32 (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(out.value[0]), "+f"(out.value[1]), "+f"(out.value[2]), "+f"(out.value[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Two or four matrices of 8 rows of 8 numbers each: lane l gives the address of row l % 8 of matrix
// l / 8, and gets [l / 4][2 (l % 4), + 1] of each.
DEVICE void load_matrices(u32 (&out)[4], const bf16* row) {
    u32 address = (u32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
        : "r"(address) : "memory");
}
DEVICE void load_matrices(u32 (&out)[2], const bf16* row) {
    u32 address = (u32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
        : "=r"(out[0]), "=r"(out[1]) : "r"(address) : "memory");
}
// As above, each matrix being transposed.
DEVICE void load_transposed(u32 (&out)[2], const bf16* row) {
    u32 address = (u32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
        : "=r"(out[0]), "=r"(out[1]) : "r"(address) : "memory");
}
#endif

// From shared memory, rows being `stride` apart.
DEVICE void load(Left<bf16>& a, const bf16* tile, u32 stride) {
    u32 l = lane();
    load_matrices(a.pair, tile + (l % 16) * stride + l / 16 * 8);
}
DEVICE void load(Left<float>& a, const float* tile, u32 stride) {
    u32 g = lane() / 4, t = lane() % 4;
    UNROLL for (u32 i = 0; i < 8; i++) {
        a.value[i] = tile[(g + (i / 2 % 2) * 8) * stride + 2 * t + i % 2 + i / 4 * 8];
    }
}
// A right matrix whose columns lie in rows, [8][depth].
DEVICE void load_columns(Right<bf16>& b, const bf16* tile, u32 stride) {
    u32 l = lane() % 16;
    load_matrices(b.pair, tile + (l % 8) * stride + l / 8 * 8);
}
DEVICE void load_columns(Right<float>& b, const float* tile, u32 stride) {
    u32 g = lane() / 4, t = lane() % 4;
    UNROLL for (u32 i = 0; i < 4; i++) b.value[i] = tile[g * stride + 2 * t + i % 2 + i / 2 * 8];
}
// A right matrix as it is, [depth][8].
DEVICE void load_rows(Right<bf16>& b, const bf16* tile, u32 stride) {
    load_transposed(b.pair, tile + (lane() % 16) * stride);
}
DEVICE void load_rows(Right<float>& b, const float* tile, u32 stride) {
    u32 g = lane() / 4, t = lane() % 4;
    UNROLL for (u32 i = 0; i < 4; i++) b.value[i] = tile[(2 * t + i % 2 + i / 2 * 8) * stride + g];
}

// Two products side by side as the left matrix of the next.
DEVICE u32 packed(float low, float high) {
    return (u32)to_bf16(low).bits | (u32)to_bf16(high).bits << 16;
}
DEVICE void as_left(Left<bf16>& a, const Out& low, const Out& high) {
    a.pair[0] = packed(low.value[0], low.value[1]);
    a.pair[1] = packed(low.value[2], low.value[3]);
    a.pair[2] = packed(high.value[0], high.value[1]);
    a.pair[3] = packed(high.value[2], high.value[3]);
}
DEVICE void as_left(Left<float>& a, const Out& low, const Out& high) {
    UNROLL for (u32 i = 0; i < 4; i++) {
        a.value[i] = low.value[i];
        a.value[i + 4] = high.value[i];
    }
}

DEVICE void multiply_add(Out& out, const Left<bf16>& a, const Right<bf16>& b) { mma_bf16(out, a, b); }
DEVICE void multiply_add(Out& out, const Left<float>& a, const Right<float>& b) {
    // The depth in another order, the same for both: 2t and 2t + 1 as t and t + 4.
    UNROLL for (u32 half = 0; half < 2; half++) {
        u32 high_a[4], low_a[4], high_b[2], low_b[2];
        UNROLL for (u32 i = 0; i < 4; i++) {
            float value = a.value[half * 4 + i % 2 * 2 + i / 2];
            high_a[i] = float_to_bits(value) & 0xffffe000;
            low_a[i] = float_to_bits(value - bits_to_float(high_a[i])) & 0xffffe000;
        }
        UNROLL for (u32 i = 0; i < 2; i++) {
            float value = b.value[half * 2 + i];
            high_b[i] = float_to_bits(value) & 0xffffe000;
            low_b[i] = float_to_bits(value - bits_to_float(high_b[i])) & 0xffffe000;
        }
        mma_tf32(out, low_a, high_b);
        mma_tf32(out, high_a, low_b);
        mma_tf32(out, high_a, high_b);
    }
}
