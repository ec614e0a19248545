// One step of AdamW (I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, ICLR 2019), in place:
// one thread a parameter, blocks of 256 threads.
//
//   w  <- w - lr decay w                        the decay acts on the parameter, not on the gradient
//   m  <- beta1 m + (1 - beta1) g
//   v  <- beta2 v + (1 - beta2) g^2
//   w  <- w - lr (m / c1) / (sqrt(v / c2) + eps)
//
// c1 = 1 - beta1^step and c2 = 1 - beta2^step come from the caller, who counts the steps.
#include "storage.hpp"

template <typename T>
__global__ void adamw_step(float* parameter, float* first, float* second, const T* gradient, int n,
                           float lr, float beta1, float beta2, float eps, float decay,
                           float correction1, float correction2) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float g = load(gradient, i);
  const float m = beta1 * first[i] + (1.0f - beta1) * g;
  const float v = beta2 * second[i] + (1.0f - beta2) * g * g;
  first[i] = m;
  second[i] = v;
  const float decayed = parameter[i] - lr * decay * parameter[i];
  parameter[i] = decayed - lr * (m / correction1) / (sqrtf(v / correction2) + eps);
}
