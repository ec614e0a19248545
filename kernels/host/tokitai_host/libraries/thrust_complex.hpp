// thrust::complex with its operators and functions.
#pragma once

#include <complex>

#include "../math.hpp"

namespace thrust {

template <class T>
struct complex {
  using value_type = T;
  complex() = default;
  constexpr complex(T re, T im = T()) : x(re), y(im) {}
  template <class U>
  constexpr complex(const complex<U>& other) : x(T(other.real())), y(T(other.imag())) {}
  constexpr complex(const std::complex<T>& other) : x(other.real()), y(other.imag()) {}
  constexpr T real() const { return x; }
  constexpr T imag() const { return y; }
  void real(T value) { x = value; }
  void imag(T value) { y = value; }
  operator std::complex<T>() const { return {x, y}; }
  complex operator-() const { return {-x, -y}; }
  complex operator+() const { return *this; }

#define TOKITAI_COMPLEX_OPERATOR(OP, RESULT)                                                      \
  friend complex operator OP(const complex& a, const complex& b) { return RESULT; }               \
  friend complex operator OP(const complex& a, T b) { return a OP complex(b); }                   \
  friend complex operator OP(T a, const complex& b) { return complex(a) OP b; }                   \
  template <class U>                                                                              \
  complex& operator OP## = (const U& other) {                                                     \
    return *this = *this OP complex(other);                                                       \
  }
  TOKITAI_COMPLEX_OPERATOR(+, complex(a.x + b.x, a.y + b.y))
  TOKITAI_COMPLEX_OPERATOR(-, complex(a.x - b.x, a.y - b.y))
  TOKITAI_COMPLEX_OPERATOR(*, complex(a.x* b.x - a.y * b.y, a.x* b.y + a.y * b.x))
  TOKITAI_COMPLEX_OPERATOR(/, quotient(a, b))
#undef TOKITAI_COMPLEX_OPERATOR
  friend bool operator==(const complex& a, const complex& b) { return a.x == b.x && a.y == b.y; }
  friend bool operator!=(const complex& a, const complex& b) { return !(a == b); }

 private:
  // Scaled, so that a square does not leave the range of T.
  static complex quotient(const complex& a, const complex& b) {
    const T scale = std::fabs(b.x) + std::fabs(b.y), inverse = T(1) / scale;
    const T p = a.x * inverse, q = a.y * inverse, r = b.x * inverse, s = b.y * inverse;
    const T square = T(1) / (r * r + s * s);
    return {(p * r + q * s) * square, (q * r - p * s) * square};
  }
  T x, y;
};

template <class T>
inline T abs(const complex<T>& z) {
  return std::hypot(z.real(), z.imag());
}
template <class T>
inline T norm(const complex<T>& z) {
  return z.real() * z.real() + z.imag() * z.imag();
}
template <class T>
inline T arg(const complex<T>& z) {
  return std::atan2(z.imag(), z.real());
}
template <class T>
inline complex<T> conj(const complex<T>& z) {
  return {z.real(), -z.imag()};
}
template <class T>
inline complex<T> polar(T length, T angle = T()) {
  return {length * std::cos(angle), length * std::sin(angle)};
}
#define TOKITAI_COMPLEX_FUNCTION(NAME)                                                            \
  template <class T>                                                                              \
  inline complex<T> NAME(const complex<T>& z) {                                                   \
    return std::NAME(static_cast<std::complex<T>>(z));                                            \
  }
TOKITAI_COMPLEX_FUNCTION(exp)
TOKITAI_COMPLEX_FUNCTION(log)
TOKITAI_COMPLEX_FUNCTION(sqrt)
TOKITAI_COMPLEX_FUNCTION(sin)
TOKITAI_COMPLEX_FUNCTION(cos)
TOKITAI_COMPLEX_FUNCTION(tan)
TOKITAI_COMPLEX_FUNCTION(sinh)
TOKITAI_COMPLEX_FUNCTION(cosh)
TOKITAI_COMPLEX_FUNCTION(tanh)
#undef TOKITAI_COMPLEX_FUNCTION
template <class T, class U>
inline complex<T> pow(const complex<T>& z, const U& power) {
  return std::pow(static_cast<std::complex<T>>(z),
                  static_cast<std::complex<T>>(complex<T>(power)));
}

}  // namespace thrust
