// Objects of textures and surfaces, so that what stands beside their kernels builds. The cpu device has
// none: a fetch ends the kernel.
#pragma once

#include "../builtins.hpp"

struct __hip_texture;
struct __hip_surface;
using hipTextureObject_t = __hip_texture*;
using hipSurfaceObject_t = __hip_surface*;
using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;

namespace tokitai {
[[noreturn]] inline void fetched_from_texture() {
  __assert_fail("the cpu device has no textures and surfaces: choose another device", __FILE__, __LINE__, "");
}
}  // namespace tokitai

#define TOKITAI_TEXTURE(NAME)                        \
  template <class T, class... More>                  \
  inline T NAME(cudaTextureObject_t, More...) {      \
    tokitai::fetched_from_texture();                 \
  }                                                  \
  template <class T, class... More>                  \
  inline T NAME(hipTextureObject_t, More...) {       \
    tokitai::fetched_from_texture();                 \
  }                                                  \
  template <class T, class Object, class... More>    \
  inline void NAME(T*, Object, More...) {            \
    tokitai::fetched_from_texture();                 \
  }
TOKITAI_TEXTURE(tex1Dfetch)
TOKITAI_TEXTURE(tex1D)
TOKITAI_TEXTURE(tex2D)
TOKITAI_TEXTURE(tex3D)
TOKITAI_TEXTURE(tex1DLod)
TOKITAI_TEXTURE(tex2DLod)
TOKITAI_TEXTURE(tex3DLod)
TOKITAI_TEXTURE(tex1DGrad)
TOKITAI_TEXTURE(tex2DGrad)
TOKITAI_TEXTURE(tex3DGrad)
TOKITAI_TEXTURE(tex1DLayered)
TOKITAI_TEXTURE(tex2DLayered)
TOKITAI_TEXTURE(tex2Dgather)
TOKITAI_TEXTURE(texCubemap)
TOKITAI_TEXTURE(surf1Dread)
TOKITAI_TEXTURE(surf2Dread)
TOKITAI_TEXTURE(surf3Dread)
#undef TOKITAI_TEXTURE
#define TOKITAI_SURFACE(NAME)                        \
  template <class T, class Object, class... More>    \
  inline void NAME(T, Object, More...) {             \
    tokitai::fetched_from_texture();                 \
  }
TOKITAI_SURFACE(surf1Dwrite)
TOKITAI_SURFACE(surf2Dwrite)
TOKITAI_SURFACE(surf3Dwrite)
#undef TOKITAI_SURFACE
