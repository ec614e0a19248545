// rocPRIM's block and warp primitives: hipCUB's under other names, with storage as an argument.
#pragma once

#include "order.hpp"

namespace rocprim {

template <class T = void>
using plus = hipcub::Sum;
template <class T = void>
using minus = hipcub::Difference;
template <class T = void>
using maximum = hipcub::Max;
template <class T = void>
using minimum = hipcub::Min;
template <class T = void>
using less = hipcub::Less;
template <class T = void>
using greater = hipcub::Greater;

enum class block_reduce_algorithm {
  using_warp_reduce,
  raking_reduce,
  raking_reduce_commutative_only,
  default_algorithm = using_warp_reduce
};
enum class block_scan_algorithm {
  using_warp_scan,
  reduce_then_scan,
  default_algorithm = using_warp_scan
};
enum class block_load_method {
  block_load_direct,
  block_load_striped,
  block_load_vectorize,
  block_load_transpose,
  block_load_warp_transpose,
  default_method = block_load_direct
};
enum class block_store_method {
  block_store_direct,
  block_store_striped,
  block_store_vectorize,
  block_store_transpose,
  block_store_warp_transpose,
  default_method = block_store_direct
};

inline unsigned flat_block_thread_id() { return tokitai::linear_thread(); }
inline unsigned flat_block_id() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
inline unsigned lane_id() { return tokitai::lane_index(); }
inline unsigned warp_id() { return tokitai::warp_of_thread(); }
inline void syncthreads(TOKITAI_HERE) { __syncthreads(file, line); }

template <class T, unsigned x,
          block_reduce_algorithm algorithm = block_reduce_algorithm::default_algorithm,
          unsigned y = 1, unsigned z = 1>
class block_reduce {
  using Primitive =
      hipcub::BlockReduce<T, int(x), hipcub::BLOCK_REDUCE_WARP_REDUCTIONS, int(y), int(z)>;

 public:
  using storage_type = typename Primitive::TempStorage;
  template <class In, class Operation = plus<T>>
  void reduce(In&& in, T& out, storage_type& storage, Operation operation = {}, TOKITAI_HERE) {
    if constexpr (std::is_array<typename std::remove_reference<In>::type>::value)
      out = Primitive(storage).Reduce(in, operation, file, line);
    else
      out = Primitive(storage).Reduce(in, operation, int(x * y * z), file, line);
  }
  template <class In, class Operation = plus<T>>
  void reduce(In&& in, T& out, Operation operation = {}, TOKITAI_HERE) {
    reduce(in, out, tokitai::own_storage<storage_type>(), operation, file, line);
  }
};

template <class T, unsigned x,
          block_scan_algorithm algorithm = block_scan_algorithm::default_algorithm, unsigned y = 1,
          unsigned z = 1>
class block_scan {
  using Primitive = hipcub::BlockScan<T, int(x), hipcub::BLOCK_SCAN_WARP_SCANS, int(y), int(z)>;

 public:
  using storage_type = typename Primitive::TempStorage;
  template <class In, class Out, class Operation = plus<T>>
  void inclusive_scan(In&& in, Out& out, storage_type& storage, Operation operation = {},
                      TOKITAI_HERE) {
    Primitive(storage).InclusiveScan(in, out, operation, file, line);
  }
  template <class In, class Out, class Operation = plus<T>>
  void inclusive_scan(In&& in, Out& out, T& whole, storage_type& storage, Operation operation = {},
                      TOKITAI_HERE) {
    Primitive(storage).InclusiveScan(in, out, operation, whole, file, line);
  }
  template <class In, class Out, class Operation = plus<T>>
  void exclusive_scan(In&& in, Out& out, T first, storage_type& storage, Operation operation = {},
                      TOKITAI_HERE) {
    Primitive(storage).ExclusiveScan(in, out, first, operation, file, line);
  }
  template <class In, class Out, class Operation = plus<T>>
  void exclusive_scan(In&& in, Out& out, T first, T& whole, storage_type& storage,
                      Operation operation = {}, TOKITAI_HERE) {
    Primitive(storage).ExclusiveScan(in, out, first, operation, whole, file, line);
  }
};

#define TOKITAI_ROCPRIM_TRANSFER(NAME, WAY, CUB, FUNCTION)                                        \
  template <class T, unsigned x, unsigned items,                                                  \
            NAME##_method method = NAME##_method::default_method, unsigned y = 1, unsigned z = 1> \
  class NAME {                                                                                    \
    using Primitive = hipcub::CUB<T, int(x), int(items),                                          \
                                  static_cast<hipcub::CUB##Algorithm>(method), int(y), int(z)>;   \
                                                                                                  \
   public:                                                                                        \
    using storage_type = typename Primitive::TempStorage;                                         \
    template <class Other>                                                                        \
    void WAY(Other memory, T (&values)[items], TOKITAI_HERE) {                                    \
      Primitive().FUNCTION(memory, values, file, line);                                           \
    }                                                                                             \
    template <class Other>                                                                        \
    void WAY(Other memory, T (&values)[items], unsigned valid, TOKITAI_HERE) {                    \
      Primitive().FUNCTION(memory, values, int(valid), file, line);                               \
    }                                                                                             \
    template <class Other>                                                                        \
    void WAY(Other memory, T (&values)[items], unsigned valid, T other, TOKITAI_HERE) {           \
      Primitive().FUNCTION(memory, values, int(valid), other, file, line);                        \
    }                                                                                             \
    template <class Other>                                                                        \
    void WAY(Other memory, T (&values)[items], storage_type& storage, TOKITAI_HERE) {             \
      Primitive(storage).FUNCTION(memory, values, file, line);                                    \
    }                                                                                             \
    template <class Other>                                                                        \
    void WAY(Other memory, T (&values)[items], unsigned valid, storage_type& storage,             \
             TOKITAI_HERE) {                                                                      \
      Primitive(storage).FUNCTION(memory, values, int(valid), file, line);                        \
    }                                                                                             \
    template <class Other>                                                                        \
    void WAY(Other memory, T (&values)[items], unsigned valid, T other, storage_type& storage,    \
             TOKITAI_HERE) {                                                                      \
      Primitive(storage).FUNCTION(memory, values, int(valid), other, file, line);                 \
    }                                                                                             \
  };
TOKITAI_ROCPRIM_TRANSFER(block_load, load, BlockLoad, Load)
TOKITAI_ROCPRIM_TRANSFER(block_store, store, BlockStore, Store)
#undef TOKITAI_ROCPRIM_TRANSFER

template <class T, unsigned width = tokitai::warp_size>
class warp_reduce {
 public:
  using storage_type = typename hipcub::WarpReduce<T, int(width)>::TempStorage;
  template <class Operation = plus<T>>
  void reduce(T in, T& out, storage_type& storage, Operation operation = {}, TOKITAI_HERE) {
    out = hipcub::WarpReduce<T, int(width)>(storage).Reduce(in, operation, int(width), file, line);
  }
};

}  // namespace rocprim
