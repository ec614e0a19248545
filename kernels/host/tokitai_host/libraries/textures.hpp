// Textures on the cpu device: what a spec binds under `textures`, and fetches from it as the "CUDA C++ Programming
// Guide" has them (appendix "Texture Fetching"). Level 0 is the only one. Surfaces are declared, never called.
#pragma once

#include <math.h>
#include <string.h>

#include <type_traits>

#include "../builtins.hpp"
#include "../vector_types.hpp"

// A texture's array and how it is sampled, as the harness fills it (tokitai_cli/core/model/textures.py).
struct __hip_texture {
  const void* data;
  unsigned long long width, height, depth;
  int dtype, channels, dimensions;
  int linear, normalized, as_float;
  int address_x, address_y, address_z;
};
struct __hip_surface;
using hipTextureObject_t = const __hip_texture*;
using cudaTextureObject_t = const __hip_texture*;
using hipSurfaceObject_t = __hip_surface*;
using cudaSurfaceObject_t = unsigned long long;

namespace tokitai {

enum class Channel : int { float32, float64, int8, int16, int32, uint8, uint16, uint32 };
enum class Border : int { clamp, zero, wrap, mirror };

[[noreturn]] inline void unsound_fetch(const char* why) {
  __assert_fail(why, "the texture of a fetch", 0, "");
}

// A texel's channels: T is a number, or a vector of up to four.
template <class T, class = void>
struct Texel {
  using type = T;
};
template <class T>
struct Texel<T, std::void_t<decltype(std::declval<T&>().x)>> {
  using type = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<T&>().x)>>;
};
template <class T>
using texel_channel = typename Texel<T>::type;
template <class T>
constexpr int texel_channels = int(sizeof(T) / sizeof(texel_channel<T>));

template <class T>
constexpr bool is_of(Channel kind) {
  switch (kind) {
    case Channel::float32: return std::is_same_v<T, float>;
    case Channel::float64: return false;
    default: break;
  }
  const int bytes = kind == Channel::int8 || kind == Channel::uint8     ? 1
                    : kind == Channel::int16 || kind == Channel::uint16 ? 2
                                                                        : 4;
  const bool with_sign = kind == Channel::int8 || kind == Channel::int16 || kind == Channel::int32;
  return std::is_integral_v<T> && sizeof(T) == bytes &&
         (std::is_same_v<T, char> || std::is_signed_v<T> == with_sign);
}

template <class T>
inline T channel_at(const __hip_texture& t, unsigned long long index) {
  T value;
  memcpy(&value, static_cast<const char*>(t.data) + index * sizeof(T), sizeof(T));
  return value;
}

// A channel between -1 or 0 and 1.
inline float channel_as_float(const __hip_texture& t, unsigned long long index) {
  const auto least = [](float x) { return x < -1.0f ? -1.0f : x; };
  switch (Channel(t.dtype)) {
    case Channel::int8: return least(channel_at<signed char>(t, index) / 127.0f);
    case Channel::uint8: return channel_at<unsigned char>(t, index) / 255.0f;
    case Channel::int16: return least(channel_at<short>(t, index) / 32767.0f);
    case Channel::uint16: return channel_at<unsigned short>(t, index) / 65535.0f;
    default: unsound_fetch("whole numbers of 32 bits and floats cannot be read as a normalized float");
  }
}

// Where along an axis of `extent` texels an index lies; -1 for outside of a border.
inline long long placed(long long index, long long extent, Border border) {
  if (index >= 0 && index < extent) return index;
  switch (border) {
    case Border::zero: return -1;
    case Border::wrap: return (index % extent + extent) % extent;
    case Border::mirror: {
      const long long turned = (index % (2 * extent) + 2 * extent) % (2 * extent);
      return turned < extent ? turned : 2 * extent - 1 - turned;
    }
    default: return index < 0 ? 0 : extent - 1;
  }
}

// One axis of a fetch: the texels on either side, and how much of the second one there is, in 256ths.
struct Along {
  long long first, second;
  int part;
};

inline Along along(float x, unsigned long long extent, int border, const __hip_texture& t) {
  const Border kind = Border(border);
  double at = x;
  if (t.normalized) {
    if (kind == Border::wrap) at -= floor(at);
    if (kind == Border::mirror) at -= 2 * floor(at / 2);
    at = double(float(at) * float(extent));
  }
  const double most = 0x1p40;
  at = at != at ? 0 : at < -most ? -most : at > most ? most : at;
  const long long count = (long long)extent;
  if (!t.linear) return {placed((long long)floor(at), count, kind), 0, 0};
  at -= 0.5;
  double before = floor(at);
  int part = int(rint((at - before) * 256));
  if (part == 256) before += 1, part = 0;
  const long long first = (long long)before;
  return {placed(first, count, kind), placed(first + 1, count, kind), part};
}

// One channel at a texel; 0 beyond a border.
template <class T>
inline T channel_of(const __hip_texture& t, long long x, long long y, long long z, int channel) {
  if (x < 0 || y < 0 || z < 0) return T(0);
  const unsigned long long texel = (z * t.height + y) * t.width + x;
  if constexpr (std::is_same_v<T, float>) {
    if (t.as_float) return channel_as_float(t, texel * t.channels + channel);
  }
  return channel_at<T>(t, texel * t.channels + channel);
}

template <class T>
inline T filtered(const __hip_texture& t, Along x, Along y, Along z, int channel) {
  if constexpr (std::is_same_v<T, float>) {
    if (t.linear) {
      float sum = 0;
      for (int corner = 0; corner < 8; corner++) {
        const Along* axes[] = {&x, &y, &z};
        long long at[3];
        float weight = 1;
        for (int i = 0; i < 3; i++) {
          const bool second = corner >> i & 1;
          at[i] = second ? axes[i]->second : axes[i]->first;
          weight *= float(second ? axes[i]->part : 256 - axes[i]->part) / 256;
        }
        if (weight != 0) sum += weight * channel_of<T>(t, at[0], at[1], at[2], channel);
      }
      return sum;
    }
  }
  return channel_of<T>(t, x.first, y.first, z.first, channel);
}

template <class T>
inline T texel(const __hip_texture* object, int coordinates, Along x, Along y, Along z) {
  if (!object) unsound_fetch("a kernel fetches from a texture that the spec does not bind: name it under `textures`");
  using C = texel_channel<T>;
  const __hip_texture& t = *object;
  if (coordinates != t.dimensions)
    unsound_fetch("a kernel fetches by another number of coordinates than the texture's array has extents");
  constexpr int given = texel_channels<T>;
  C channels[given] = {};
  T result;
  if (Channel(t.dtype) == Channel::float64 && sizeof(T) == 8 && std::is_integral_v<C>) {
    // Two words that a kernel makes a double of: textures have none.
    const long long at = x.first < 0 ? -1 : (long long)((z.first * t.height + y.first) * t.width) + x.first;
    if (at >= 0) memcpy(channels, static_cast<const char*>(t.data) + at * 8, sizeof channels);
  } else {
    if (t.as_float ? !std::is_same_v<C, float> : !is_of<C>(Channel(t.dtype)))
      unsound_fetch("a kernel fetches other elements than those of the texture's array");
    if (given != t.channels) unsound_fetch("a kernel fetches another number of channels than the texture has");
    for (int i = 0; i < given; i++) channels[i] = filtered<C>(t, x, y, z, i);
  }
  memcpy(static_cast<void*>(&result), channels, sizeof result);
  return result;
}

// By a whole number, from 0; 0 outside of the array, whatever the texture says.
template <class T>
inline T texel_at(const __hip_texture* object, long long index) {
  if (object && (object->linear || object->normalized))
    unsound_fetch("tex1Dfetch takes the number of an element: the texture is neither filtered nor normalized");
  const bool inside = object && index >= 0 && index < (long long)(object->width);
  return texel<T>(object, 1, {inside ? index : -1, 0, 0}, {0, 0, 0}, {0, 0, 0});
}
template <class T>
inline T texel_at(const __hip_texture* t, float x) {
  return texel<T>(t, 1, t ? along(x, t->width, t->address_x, *t) : Along{}, {0, 0, 0}, {0, 0, 0});
}
template <class T>
inline T texel_at(const __hip_texture* t, float x, float y) {
  return texel<T>(t, 2, t ? along(x, t->width, t->address_x, *t) : Along{},
                  t ? along(y, t->height, t->address_y, *t) : Along{}, {0, 0, 0});
}
template <class T>
inline T texel_at(const __hip_texture* t, float x, float y, float z) {
  return texel<T>(t, 3, t ? along(x, t->width, t->address_x, *t) : Along{},
                  t ? along(y, t->height, t->address_y, *t) : Along{},
                  t ? along(z, t->depth, t->address_z, *t) : Along{});
}
// Layers are not filtered across.
template <class T>
inline T texel_of_layer(const __hip_texture* t, float x, float y, int layer) {
  const long long z = t ? placed(layer, (long long)t->depth, Border::clamp) : 0;
  return texel<T>(t, 3, t ? along(x, t->width, t->address_x, *t) : Along{},
                  t ? along(y, t->height, t->address_y, *t) : Along{}, {z, z, 0});
}

}  // namespace tokitai

#ifdef TOKITAI_TEXTURE_REFERENCES
// `texture<T, dimensions, mode>` at namespace scope, which programs of before CUDA 12 fetch from. The harness sets
// `object` in front of the kernel; the other members are the host's.
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
#define hipTextureReadMode cudaTextureReadMode
#define hipReadModeElementType cudaReadModeElementType
#define hipReadModeNormalizedFloat cudaReadModeNormalizedFloat
enum { cudaTextureType1D = 1, cudaTextureType2D = 2, cudaTextureType3D = 3, cudaTextureType2DLayered = 0xf2 };
#define hipTextureType1D cudaTextureType1D
#define hipTextureType2D cudaTextureType2D
#define hipTextureType3D cudaTextureType3D
template <class T, int dimensions = 1, cudaTextureReadMode mode = cudaReadModeElementType>
struct texture {
  const __hip_texture* object;
  int normalized, filterMode, addressMode[3];
};

namespace tokitai {
template <class T, cudaTextureReadMode mode>
struct Fetched {
  using type = T;
};
template <class T>
struct Fetched<T, cudaReadModeNormalizedFloat> {
  using type = std::conditional_t<
      !std::is_class_v<T>, float,
      std::conditional_t<texel_channels<T> == 1, float1, std::conditional_t<texel_channels<T> == 2, float2, float4>>>;
};
}  // namespace tokitai
#define TOKITAI_FETCH_BY_REFERENCE(NAME, FETCH, ...)                                                      \
  template <class Element, int dimensions, cudaTextureReadMode mode>                                      \
  inline typename tokitai::Fetched<Element, mode>::type NAME(const texture<Element, dimensions, mode>& t, \
                                                             __VA_ARGS__) {                               \
    using T = typename tokitai::Fetched<Element, mode>::type;                                             \
    const __hip_texture* object = t.object;                                                               \
    return FETCH;                                                                                         \
  }
#else
#define TOKITAI_FETCH_BY_REFERENCE(...)
#endif

#define TOKITAI_FETCH(NAME, FETCH, ...)                                        \
  template <class T>                                                           \
  inline T NAME(const __hip_texture* object, __VA_ARGS__) {                    \
    return FETCH;                                                              \
  }                                                                            \
  template <class T>                                                           \
  inline void NAME(T* result, const __hip_texture* object, __VA_ARGS__) {      \
    *result = FETCH;                                                           \
  }                                                                            \
  TOKITAI_FETCH_BY_REFERENCE(NAME, FETCH, __VA_ARGS__)
TOKITAI_FETCH(tex1Dfetch, tokitai::texel_at<T>(object, (long long)x), int x)
TOKITAI_FETCH(tex1D, tokitai::texel_at<T>(object, x), float x)
TOKITAI_FETCH(tex2D, tokitai::texel_at<T>(object, x, y), float x, float y)
TOKITAI_FETCH(tex3D, tokitai::texel_at<T>(object, x, y, z), float x, float y, float z)
TOKITAI_FETCH(tex1DLod, tokitai::texel_at<T>(object, x), float x, float)
TOKITAI_FETCH(tex2DLod, tokitai::texel_at<T>(object, x, y), float x, float y, float)
TOKITAI_FETCH(tex3DLod, tokitai::texel_at<T>(object, x, y, z), float x, float y, float z, float)
TOKITAI_FETCH(tex2DLayered, tokitai::texel_of_layer<T>(object, x, y, layer), float x, float y, int layer)
#undef TOKITAI_FETCH
#undef TOKITAI_FETCH_BY_REFERENCE

// What the device does not have: declared, so that what stands beside a kernel builds.
#define TOKITAI_REFUSED(NAME)                                                  \
  template <class T, class Object, class... More>                              \
  inline T NAME(Object, More...) {                                             \
    tokitai::unsound_fetch("the cpu device has no " #NAME);                    \
  }                                                                            \
  template <class T, class Object, class... More>                              \
  inline void NAME(T, Object, More...) {                                       \
    tokitai::unsound_fetch("the cpu device has no " #NAME);                    \
  }
TOKITAI_REFUSED(tex1DGrad)
TOKITAI_REFUSED(tex2DGrad)
TOKITAI_REFUSED(tex3DGrad)
TOKITAI_REFUSED(tex1DLayered)
TOKITAI_REFUSED(tex2Dgather)
TOKITAI_REFUSED(texCubemap)
TOKITAI_REFUSED(surf1Dread)
TOKITAI_REFUSED(surf2Dread)
TOKITAI_REFUSED(surf3Dread)
TOKITAI_REFUSED(surf1Dwrite)
TOKITAI_REFUSED(surf2Dwrite)
TOKITAI_REFUSED(surf3Dwrite)
#undef TOKITAI_REFUSED
