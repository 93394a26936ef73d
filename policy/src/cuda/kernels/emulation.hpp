// Runs the kernels on the host: blocks one after the other, the threads of a block as coroutines that
// take turns at barriers. For tests of the kernels' formulas and indices where there is no device; the
// parts of the language and the instructions that the kernels use have their twins here.
//
// Shared memory starts as no numbers, and the threads take turns in ascending or descending order, so
// that what reads too early, or depends on the order, gives other results.

#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#define EMULATED
#define DEVICE static inline
#define ALIGNED16 alignas(16)
#define UNROLL
#define __shared__ static thread_local
#define DYNAMIC_SHARED(name) unsigned char* name = emulation::state.shared
#define KERNEL(threads) static void

namespace emulation {

struct Index {
    unsigned x, y, z;
};

constexpr unsigned LANES = 32;
constexpr size_t STACK = 1 << 17;
constexpr size_t LANE_BYTES = 64;

struct Fiber {
    ucontext_t context;
    bool is_done;
    // Which of the warp's two buffers the next exchange uses.
    unsigned parity;
};

struct Barrier {
    unsigned arrived, generation;
};

struct Warp {
    Barrier barrier;
    alignas(16) unsigned char lanes[2][LANES][LANE_BYTES];
};

struct State {
    unsigned char* shared = nullptr;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    std::vector<unsigned char> stacks;
    Barrier barrier;
    ucontext_t scheduler;
    unsigned current = 0, progress = 0;
    void (*body)(void*) = nullptr;
    void* arguments = nullptr;
};

static thread_local State state;

}  // namespace emulation

static thread_local emulation::Index threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {

static inline void yield() { swapcontext(&state.fibers[state.current].context, &state.scheduler); }

static inline void arrive(Barrier& barrier, unsigned expected) {
    unsigned generation = barrier.generation;
    state.progress++;
    if (++barrier.arrived == expected) {
        barrier.arrived = 0;
        barrier.generation++;
        return;
    }
    while (barrier.generation == generation) yield();
}

// What each lane of the warp hands in.
template <typename V> static inline const V (&gather(const V& mine))[LANES] {
    static_assert(sizeof(V) <= LANE_BYTES, "a lane has room for it");
    unsigned index = state.current;
    Warp& warp = state.warps[index / LANES];
    unsigned parity = state.fibers[index].parity;
    state.fibers[index].parity ^= 1;
    V* lanes = reinterpret_cast<V*>(warp.lanes[parity]);
    memcpy(static_cast<void*>(&lanes[index % LANES]), &mine, sizeof(V));
    arrive(warp.barrier, LANES);
    return *reinterpret_cast<const V(*)[LANES]>(lanes);
}

static void enter() {
    state.body(state.arguments);
    state.fibers[state.current].is_done = true;
    state.progress++;
    yield();
}

static inline void fail(const char* what) {
    fprintf(stderr, "emulated kernel: %s\n", what);
    abort();
}

static void run_block(unsigned threads, bool descending) {
    state.fibers.resize(threads);
    state.warps.assign(threads / LANES, Warp());
    state.stacks.resize(threads * STACK);
    state.barrier = Barrier();
    for (unsigned i = 0; i < threads; i++) {
        Fiber& fiber = state.fibers[i];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = &state.stacks[i * STACK];
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = nullptr;
        fiber.is_done = false;
        fiber.parity = 0;
        makecontext(&fiber.context, enter, 0);
    }
    for (;;) {
        unsigned running = 0;
        state.progress = 0;
        for (unsigned turn = 0; turn < threads; turn++) {
            unsigned i = descending ? threads - 1 - turn : turn;
            if (state.fibers[i].is_done) continue;
            running++;
            state.current = i;
            threadIdx = {i, 0, 0};
            swapcontext(&state.scheduler, &state.fibers[i].context);
        }
        if (running == 0) return;
        if (state.progress == 0) fail("threads wait for others that do not come to the barrier");
    }
}

struct Launch {
    unsigned grid[3], block, shared_bytes, descending;
};

template <typename... A, size_t... I>
static void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<A*>(arguments[I])...);
}

template <typename... A> static void launch(const Launch& launch, void (*kernel)(A...), void** arguments) {
    if (launch.block % LANES != 0 || launch.block > 1024) fail("a block has whole warps");
    std::vector<unsigned char> shared(launch.shared_bytes + 16);
    size_t offset = (16 - reinterpret_cast<size_t>(shared.data()) % 16) % 16;
    std::pair<void (*)(A...), void**> pair(kernel, arguments);
    typedef decltype(pair) Call;
    state.body = [](void* data) {
        Call& c = *static_cast<Call*>(data);
        call(c.first, c.second, std::index_sequence_for<A...>());
    };
    state.arguments = &pair;
    gridDim = {launch.grid[0], launch.grid[1], launch.grid[2]};
    blockDim = {launch.block, 1, 1};
    for (unsigned z = 0; z < gridDim.z; z++) {
        for (unsigned y = 0; y < gridDim.y; y++) {
            for (unsigned x = 0; x < gridDim.x; x++) {
                blockIdx = {x, y, z};
                memset(shared.data(), 0xff, shared.size());
                state.shared = shared.data() + offset;
                run_block(launch.block, launch.descending);
            }
        }
    }
}

}  // namespace emulation

// The symbol by which the kernel is found.
#define EXPORT(name)                                                                          \
    extern "C" void launch_##name(const emulation::Launch* launch, void** arguments) {        \
        emulation::launch(*launch, name, arguments);                                          \
    }

DEVICE float minus_infinity() { return -INFINITY; }
DEVICE float bits_to_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
DEVICE unsigned float_to_bits(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}
DEVICE float exp2_fast(float x) { return exp2f(x); }
DEVICE float exchange_xor(float value, unsigned by) {
    unsigned lane = threadIdx.x % emulation::LANES;
    return emulation::gather(value)[lane ^ by];
}
DEVICE void count_one(unsigned* shared) { ++*shared; }
DEVICE void block_barrier() { emulation::arrive(emulation::state.barrier, blockDim.x); }
DEVICE void warp_barrier() {
    emulation::arrive(emulation::state.warps[emulation::state.current / emulation::LANES].barrier,
                      emulation::LANES);
}
DEVICE void copy_later(void* shared, const void* global, bool exists) {
    if (exists) {
        if (reinterpret_cast<size_t>(global) % 16 != 0) emulation::fail("a copy is aligned");
        memcpy(shared, global, 16);
    } else {
        memset(shared, 0, 16);
    }
}
DEVICE void end_of_copies() {}
template <int LEFT> DEVICE void wait_for_copies() {}
