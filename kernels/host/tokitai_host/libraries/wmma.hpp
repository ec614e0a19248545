// nvcuda::wmma on the cpu device, as the "CUDA C++ Programming Guide" has it (section "Warp Matrix Functions"): each
// lane holds its elements of a fragment, and the products of a warp are summed in order of k, in float for 16-bit
// floats and tf32. Sub-byte types and single bits are left out.
#pragma once

#include <type_traits>

#include "../numbers/bfloat16.hpp"
#include "../numbers/half.hpp"
#include "../warp_operations.hpp"

namespace nvcuda {
namespace wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
namespace precision {
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };
}  // namespace wmma
}  // namespace nvcuda

namespace tokitai {

namespace wmma = nvcuda::wmma;

[[noreturn]] inline void unsound_matrix(const char* why) { __assert_fail(why, "a warp's matrix", 0, ""); }

// Of an element: what it is stored as, and what it is multiplied and added in.
template <class T>
struct MatrixElement {
  using stored = T;
  using number = float;
  static number value(T x) { return float(x); }
};
template <>
struct MatrixElement<wmma::precision::tf32> {
  using stored = float;
  using number = float;
  static number value(float x) {  // the unit leaves out the bits that tf32 does not have
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
  }
};
template <class T, class N>
struct PlainMatrixElement {
  using stored = T;
  using number = N;
  static number value(T x) { return N(x); }
};
template <>
struct MatrixElement<double> : PlainMatrixElement<double, double> {};
template <>
struct MatrixElement<signed char> : PlainMatrixElement<signed char, long long> {};
template <>
struct MatrixElement<unsigned char> : PlainMatrixElement<unsigned char, long long> {};
template <>
struct MatrixElement<int> : PlainMatrixElement<int, long long> {};

template <class Use, int m, int n, int k>
struct MatrixExtents {
  static constexpr int rows = std::is_same_v<Use, wmma::matrix_b> ? k : m;
  static constexpr int columns = std::is_same_v<Use, wmma::matrix_a> ? k : n;
  static constexpr int each = rows * columns / 32;
};

struct MatrixPlace {
  int row, column;
};
// Which element a lane has as its i-th. The guide leaves it open; sums of 16 x 16 lie as on compute capability 8.0.
template <class Use, class Extents>
inline MatrixPlace matrix_place(int lane, int i) {
  if (std::is_same_v<Use, wmma::accumulator> && Extents::rows == 16 && Extents::columns == 16)
    return {lane / 4 + (i & 2) * 4, lane % 4 * 2 + (i & 1) + (i & 4) * 2};
  const int element = i * 32 + lane;
  return {element / Extents::columns, element % Extents::columns};
}

template <class T, int m, int n, int k>
constexpr bool has_shape() {
  const bool wide = (m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32);
  if (std::is_same_v<T, double>) return m == 8 && n == 8 && k == 4;
  if (std::is_same_v<T, wmma::precision::tf32>) return m == 16 && n == 16 && k == 8;
  return (wide && k == 16) || (std::is_same_v<T, float> && m == 16 && n == 16 && k == 8);
}

inline Mask whole_warp() { return Mask(0xffffffffull); }

// Every lane of a warp arrives; `value` of each can be read until it arrives again.
inline const Lane* together(u64 value, Site site) {
  static_assert(warp_size == 32 || warp_size == 64, "a warp");
  if (warp_size != 32) unsound_matrix("matrices of nvcuda::wmma are a warp's of 32 lanes: choose --warp-size 32");
  const Lane& lane = warp_operation(Operation::warp_barrier, whole_warp(), value, 0, site);
  if (lane.members != 0xffffffffull) unsound_matrix("not every lane of a warp takes part in a function of nvcuda::wmma");
  return &armed_block().lanes[linear_thread() / warp_size * warp_size];
}

}  // namespace tokitai

namespace nvcuda {
namespace wmma {

template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment {
 public:
  static_assert(tokitai::has_shape<T, m, n, k>(), "nvcuda::wmma has no fragments of this shape and type");
  using element_type = T;
  using storage_element_type = typename tokitai::MatrixElement<T>::stored;
  using tokitai_extents = tokitai::MatrixExtents<Use, m, n, k>;
  static constexpr int num_elements = tokitai_extents::each, num_storage_elements = num_elements;
  storage_element_type x[num_elements];
};

template <class Use, int m, int n, int k, class T, class Layout, class V>
inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& to, const V& value) {
  for (auto& one : to.x) one = typename tokitai::MatrixElement<T>::stored(value);
}

inline float __float_to_tf32(float x) {
  unsigned bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & ~0x1fffu;
  memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace wmma
}  // namespace nvcuda

namespace tokitai {

template <class Fragment, class Use, class S, class Move>
inline void move_matrix(S* memory, unsigned stride, bool by_rows, Site site, Move move) {
  if (stride * sizeof(S) % 16 != 0) unsound_matrix("the leading dimension of a matrix is no multiple of 16 bytes");
  together(0, site);
  for (int i = 0; i < Fragment::num_elements; i++) {
    const MatrixPlace at = matrix_place<Use, typename Fragment::tokitai_extents>(int(lane_index()), i);
    move(memory[by_rows ? size_t(at.row) * stride + at.column : size_t(at.column) * stride + at.row], i);
  }
}

// What a lane hands over for a product, and where it finds its part of it.
struct MatrixParts {
  const void *a, *b, *c;
  void* result;
};

template <class Use, class F>
TOKITAI_UNSANITIZED inline void gather(const Lane* lanes, const void* MatrixParts::*part,
                                       typename MatrixElement<typename F::element_type>::number* to) {
  using E = typename F::tokitai_extents;
  for (int lane = 0; lane < 32; lane++) {
    const MatrixParts& parts = *reinterpret_cast<const MatrixParts*>(lanes[lane].value);
    const F& from = *static_cast<const F*>(parts.*part);
    for (int i = 0; i < F::num_elements; i++) {
      const MatrixPlace at = matrix_place<Use, E>(lane, i);
      to[at.row * E::columns + at.column] = MatrixElement<typename F::element_type>::value(from.x[i]);
    }
  }
}

// The sums of all lanes, by one of them.
template <class A, class B, class C, class D, int m, int n, int k>
TOKITAI_UNSANITIZED inline void multiply(const Lane* lanes, bool saturate) {
  using NumberA = typename MatrixElement<typename A::element_type>::number;
  using NumberC = typename MatrixElement<typename C::element_type>::number;
  using Out = typename D::storage_element_type;
  NumberA a[m * k], b[k * n];
  NumberC sum[m * n];
  gather<wmma::matrix_a, A>(lanes, &MatrixParts::a, a);
  gather<wmma::matrix_b, B>(lanes, &MatrixParts::b, b);
  gather<wmma::accumulator, C>(lanes, &MatrixParts::c, sum);
  for (int row = 0; row < m; row++)
    for (int i = 0; i < k; i++)
      for (int column = 0; column < n; column++) sum[row * n + column] += a[row * k + i] * b[i * n + column];
  for (int lane = 0; lane < 32; lane++) {
    const MatrixParts& parts = *reinterpret_cast<const MatrixParts*>(lanes[lane].value);
    Out* result = static_cast<Out*>(parts.result);
    for (int i = 0; i < D::num_elements; i++) {
      const MatrixPlace at = matrix_place<wmma::accumulator, typename D::tokitai_extents>(lane, i);
      NumberC value = sum[at.row * n + at.column];
      if constexpr (std::is_same_v<Out, int>) {
        const NumberC least = -2147483648ll, most = 2147483647ll;
        if (saturate) value = value < least ? least : value > most ? most : value;
        result[i] = int(unsigned(value));
      } else {
        (void)saturate;
        result[i] = Out(value);
      }
    }
  }
}

}  // namespace tokitai

namespace nvcuda {
namespace wmma {

template <class Use, int m, int n, int k, class T, class Layout, class S>
inline void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& to, const S* from, unsigned stride, TOKITAI_HERE) {
  using F = fragment<Use, m, n, k, T, Layout>;
  tokitai::move_matrix<F, Use>(from, stride, std::is_same_v<Layout, row_major>, TOKITAI_SITE,
                               [&](const S& element, int i) { to.x[i] = element; });
}
template <int m, int n, int k, class T, class S>
inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& to, const S* from, unsigned stride, layout_t layout,
                             TOKITAI_HERE) {
  using F = fragment<accumulator, m, n, k, T>;
  tokitai::move_matrix<F, accumulator>(from, stride, layout == mem_row_major, TOKITAI_SITE,
                                       [&](const S& element, int i) { to.x[i] = element; });
}
template <int m, int n, int k, class T, class S>
inline void store_matrix_sync(S* to, const fragment<accumulator, m, n, k, T>& from, unsigned stride, layout_t layout,
                              TOKITAI_HERE) {
  using F = fragment<accumulator, m, n, k, T>;
  tokitai::move_matrix<F, accumulator>(to, stride, layout == mem_row_major, TOKITAI_SITE,
                                       [&](S& element, int i) { element = from.x[i]; });
}

template <int m, int n, int k, class A, class LayoutA, class B, class LayoutB, class C, class D>
inline void mma_sync(fragment<accumulator, m, n, k, D>& d, const fragment<matrix_a, m, n, k, A, LayoutA>& a,
                     const fragment<matrix_b, m, n, k, B, LayoutB>& b, const fragment<accumulator, m, n, k, C>& c,
                     bool saturate = false, TOKITAI_HERE) {
  using FA = fragment<matrix_a, m, n, k, A, LayoutA>;
  using FB = fragment<matrix_b, m, n, k, B, LayoutB>;
  using FC = fragment<accumulator, m, n, k, C>;
  using FD = fragment<accumulator, m, n, k, D>;
  static_assert(std::is_same_v<A, B>, "both factors of a product have one type");
  tokitai::used(a.x), tokitai::used(b.x), tokitai::used(c.x);
  typename FD::storage_element_type result[FD::num_elements] = {};
  const tokitai::MatrixParts parts = {&a, &b, &c, result};
  const tokitai::u64 shown = tokitai::to_word(&parts);
  const tokitai::Lane* lanes = tokitai::together(shown, TOKITAI_SITE);
  if (tokitai::lane_index() == 0) tokitai::multiply<FA, FB, FC, FD, m, n, k>(lanes, saturate);
  tokitai::together(shown, TOKITAI_SITE);
  for (int i = 0; i < FD::num_elements; i++) d.x[i] = result[i];
}

}  // namespace wmma
}  // namespace nvcuda
