texture<float, 2, cudaReadModeElementType> image;
texture<int, 1> line;
namespace tint {
texture<uchar4, 2, cudaReadModeNormalizedFloat> colours;
}

__device__ float taken(cudaTextureObject_t from, float x, float y) { return tex2D<float>(from, x, y); }

__global__ void by_reference(const float2* at, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2D(image, at[i].x, at[i].y);
}

template <bool LAID>
__global__ void by_object(cudaTextureObject_t from, const float2* at, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (LAID)
    tex2D(&out[i], from, at[i].x, at[i].y);
  else
    out[i] = taken(from, at[i].x, at[i].y);
}

__global__ void by_number(const int* at, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch(line, at[i]);
}

__global__ void tinted(const float2* at, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2D(tint::colours, at[i].x, at[i].y);
}

__global__ void in_space(cudaTextureObject_t from, const float2* at, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex3D<float>(from, at[i].x, at[i].y, 0.5f * (i % 9));
}
