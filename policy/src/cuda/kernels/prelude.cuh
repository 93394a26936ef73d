// What all kernels share: number types, reductions, and the words that the compilers of the device and
// of the host (`emulation.hpp`) understand differently.
//
// All functions of a warp or a block are called by all of its threads together.

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 WARP = 32;
constexpr u32 PAGE = 32;        // tokens of a page
constexpr u32 NONE = 0xffffffff;  // no token, no row
constexpr float LOG2_E = 1.4426950408889634f;

#ifndef EMULATED
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define EXPORT(name)
#define DEVICE __device__ __forceinline__
#define ALIGNED16 __align__(16)
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#define UNROLL _Pragma("unroll")
// Minus infinity, which no header names here.
DEVICE float minus_infinity() { return __int_as_float(0xff800000); }
DEVICE float bits_to_float(u32 bits) { return __uint_as_float(bits); }
DEVICE u32 float_to_bits(float value) { return __float_as_uint(value); }
// 2^x.
DEVICE float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE float exchange_xor(float value, u32 by) { return __shfl_xor_sync(0xffffffff, value, by); }
// Counts, whose order does not matter.
DEVICE void count_one(u32* shared) { atomicAdd(shared, 1u); }
DEVICE void block_barrier() { __syncthreads(); }
DEVICE void warp_barrier() { __syncwarp(); }
// Sixteen bytes to shared memory, zeros where `exists` is false; there after `wait_for_copies` and a
// barrier.
DEVICE void copy_later(void* shared, const void* global, bool exists) {
    u32 target = (u32)__cvta_generic_to_shared(shared);
    u32 bytes = exists ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(global), "r"(bytes));
}
DEVICE void end_of_copies() { asm volatile("cp.async.commit_group;"); }
// Until all but the last `LEFT` groups have arrived.
template <int LEFT> DEVICE void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT)); }
#endif

// The upper half of a 32-bit number.
struct bf16 {
    unsigned short bits;
};
struct ALIGNED16 Sixteen {
    u32 word[4];
};
struct Pair {
    float first, second;
};

DEVICE float number(float value) { return value; }
DEVICE float number(bf16 value) { return bits_to_float((u32)value.bits << 16); }
// Rounded to the nearest, ties to even; no number stays none.
DEVICE bf16 to_bf16(float value) {
    u32 bits = float_to_bits(value);
    u32 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    bf16 result;
    result.bits = (unsigned short)(value != value ? 0x7fff : rounded);
    return result;
}
DEVICE void store(float& target, float value) { target = value; }
DEVICE void store(bf16& target, float value) { target = to_bf16(value); }

// Pairs are combined in an order of their own, whatever the operation; every lane gets the result.
template <typename F> DEVICE float warp_combine(float value, F combine) {
    for (u32 by = WARP / 2; by > 0; by /= 2) value = combine(value, exchange_xor(value, by));
    return value;
}
// Over all threads of a block, whose number is a multiple of 32; every thread gets the result.
template <typename F> DEVICE float block_combine(float value, F combine) {
    __shared__ float parts[WARP];
    value = warp_combine(value, combine);
    block_barrier();
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = value;
    block_barrier();
    float result = parts[0];
    for (u32 i = 1; i < blockDim.x / WARP; i++) result = combine(result, parts[i]);
    return result;
}
DEVICE float warp_sum(float value) {
    return warp_combine(value, [](float a, float b) { return a + b; });
}
DEVICE float block_sum(float value) {
    return block_combine(value, [](float a, float b) { return a + b; });
}
DEVICE float block_max(float value) {
    return block_combine(value, [](float a, float b) { return fmaxf(a, b); });
}

// A kernel for the number types that the file is compiled for, `define(suffix, T)` being a macro.
#ifdef NUMBER_F32
#define FOR_TYPES(define) define(f32, float)
#elif defined(NUMBER_BF16)
#define FOR_TYPES(define) define(bf16, bf16)
#else
#define FOR_TYPES(define) \
    define(f32, float)         \
    define(bf16, bf16)
#endif
