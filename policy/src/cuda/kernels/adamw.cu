// AdamW in one pass over f32 weights, with a copy of them in the number type of the products; see
// `ops::elementwise::adamw`.

struct Step {
    float beta1, beta2, epsilon;
    // Share of the weights that stays.
    float keep;
    // Learning rate over 1 - beta1^k.
    float step;
    // Root of 1 - beta2^k.
    float root;
    // Factor of the gradient.
    float scale;
};

template <typename T>
DEVICE void adamw(float* weights, T* copy, float* first, float* second, const float* gradient, u64 count,
                  Step by) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float g = gradient[i] * by.scale;
    float m = fmaf(1.0f - by.beta1, g - first[i], first[i]);
    float v = fmaf(by.beta2, second[i], (1.0f - by.beta2) * g * g);
    float w = by.keep * weights[i] - by.step * m / (sqrtf(v) / by.root + by.epsilon);
    first[i] = m;
    second[i] = v;
    weights[i] = w;
    store(copy[i], w);
}

#define DEFINE(suffix, T)                                                                                \
    KERNEL(256) adamw_##suffix(float* weights, T* copy, float* first, float* second,                     \
                               const float* gradient, u64 count, Step by) {                              \
        adamw(weights, copy, first, second, gradient, count, by);                                        \
    }                                                                                                    \
    EXPORT(adamw_##suffix)
FOR_TYPES(DEFINE)
