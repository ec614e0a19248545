#error "the cpu device cannot run cooperative groups; choose another device, or use __syncthreads and the warp operations"
