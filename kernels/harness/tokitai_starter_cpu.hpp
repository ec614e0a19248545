// How the cpu device starts a kernel: all threads of a block as a loop, or one thread.
#pragma once

#include "tokitai_arguments.hpp"
#include "tokitai_host/block.hpp"

namespace tokitai {

struct DeviceKernel {
  void (*all_threads)(const void* arguments, Block& block);
  void (*one_thread)(const void* arguments);
  const void* (*address)();  // the function's own
};

// A kernel's argument. Payloads lie at multiples of a page: a compiler that knows leaves out the checks
// of accesses that cannot be misaligned.
template <class P>
__attribute__((no_sanitize("alignment"))) inline P cpu_argument(Word word) {
  if constexpr (std::is_pointer_v<P>) {
    const volatile void* place = argument_from<P>(word);
    return static_cast<P>(
        __builtin_assume_aligned(const_cast<const void*>(place), payload_alignment));
  } else
    return argument_from<P>(word);
}

template <class Maker, class P>
inline P made(const Word* words) {
  if constexpr (std::is_same_v<Maker, Plain>)
    return cpu_argument<P>(*words);
  else
    return Maker::template tokitai_make<P>(words);
}

// `Call` calls the kernel by its name, which knows the default arguments that the spec leaves to it.
template <auto function, class Call, class... Makers>
struct Starter {
  using Traits = KernelTraits<function>;
  using Indices = std::index_sequence_for<Makers...>;
  template <size_t i>
  using At = typename Traits::template At<i>;

  template <size_t... i>
  static constexpr auto called(std::index_sequence<i...>) {
    if constexpr (Traits::count == sizeof...(Makers))
      return function;
    else
      return &Call::template tokitai_run<At<i>...>;
  }
  static constexpr auto run = called(Indices());

  template <size_t... i>
  static void all(const Word* words, Block& block, std::index_sequence<i...>) {
    for_each_thread<run>(block, made<Makers, At<i>>(words + first_word<Makers...>(i))...);
  }
  template <size_t... i>
  static void one(const Word* words, std::index_sequence<i...>) {
    run(made<Makers, At<i>>(words + first_word<Makers...>(i))...);
  }
  TOKITAI_VALUES_SET static void all_threads(const void* words, Block& block) {
    all(static_cast<const Word*>(words), block, Indices());
  }
  TOKITAI_VALUES_SET static void one_thread(const void* words) { one(static_cast<const Word*>(words), Indices()); }
  static const void* address() { return reinterpret_cast<const void*>(function); }
  static constexpr DeviceKernel kernel = {all_threads, one_thread, address};
};

}  // namespace tokitai
