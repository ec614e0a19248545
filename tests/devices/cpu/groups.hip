// Cooperative groups, hipCUB and rocPRIM; expected values are in test_groups.py.
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>
#include <rocprim/rocprim.hpp>

namespace cg = cooperative_groups;

// --- cooperative groups --------------------------------------------------------------------------------
struct Big {
  int part[5];
};

__global__ void groups(const int* in, int* out, int n) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  const auto quad = cg::tiled_partition<4>(tile);
  const cg::thread_group dynamic = cg::tiled_partition(block, 16);
  const int i = block.thread_rank(), x = in[i];
  int* next = out + i;
  const auto put = [&](int value) { *next = value, next += n; };
  put(block.size() + block.group_index().x), put(block.thread_index().x);
  put(tile.thread_rank() + 100 * tile.size()), put(tile.meta_group_rank());
  put(tile.meta_group_size()), put(quad.thread_rank()), put(dynamic.thread_rank());
  put(tile.shfl(x, 3)), put(tile.shfl_down(x, 2)), put(tile.shfl_up(x, 2)), put(tile.shfl_xor(x, 5));
  put(tile.any(x == in[8])), put(tile.all(x > 0)), put(int(tile.ballot(x % 2)));
  put(int(tile.match_any(x % 3)));
  put(cg::reduce(tile, x, cg::plus<int>())), put(cg::reduce(tile, x, cg::greater<int>()));
  put(cg::inclusive_scan(quad, x, cg::plus<int>())), put(cg::exclusive_scan(tile, x, cg::plus<int>()));
  Big big = {{x, 2 * x, 3 * x, 4 * x, 5 * x}};
  big = tile.shfl(big, 1);
  put(big.part[0] + big.part[4]);
  const cg::coalesced_group odd = cg::binary_partition(tile, x % 2 == 1);
  put(odd.size()), put(odd.thread_rank()), put(odd.shfl(x, 0)), put(cg::reduce(odd, x, cg::plus<int>()));
  const cg::coalesced_group pair = cg::tiled_partition(odd, 2);
  put(pair.size() + 10 * pair.meta_group_rank());
  const auto label = cg::labeled_partition(tile, x % 3);
  put(label.thread_rank());
  tile.sync(), quad.sync(), dynamic.sync(), cg::sync(block);
  const cg::grid_group grid = cg::this_grid();
  put(int(grid.thread_rank())), put(int(grid.size())), put(int(grid.num_blocks()));
  put(int(cg::thread_rank(tile) + 10 * cg::group_size(quad)));
  if (i % 3 == 0) {
    const cg::coalesced_group active = cg::coalesced_threads();
    put(active.size()), put(active.thread_rank()), put(active.shfl_down(x, 1));
  } else {
    put(0), put(0), put(0);
  }
}

// A tile's barrier orders shared memory within it.
__global__ void tile_sums(const int* in, int* out) {
  __shared__ int cells[256];
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = threadIdx.x;
  cells[i] = in[i];
  for (int d = 16; d; d /= 2) {
    tile.sync();
    const int other = cells[i ^ d];
    tile.sync();
    cells[i] += other;
  }
  out[i] = cells[i];
}

// --- warps of hipCUB ---------------------------------------------------------------------------------
template <int width>
__global__ void warp_primitives(const int* in, int* out, int n) {
  using Reduce = hipcub::WarpReduce<int, width>;
  using Scan = hipcub::WarpScan<int, width>;
  __shared__ typename Reduce::TempStorage reduces[64];
  __shared__ typename Scan::TempStorage scans[64];
  const int i = threadIdx.x, x = in[i], warp = i / width, lane = i % width;
  int* next = out + i;
  const auto put = [&](int value) { *next = value, next += n; };
  const int sum = Reduce(reduces[warp]).Sum(x), most = Reduce(reduces[warp]).Reduce(x, hipcub::Max());
  const int some = Reduce(reduces[warp]).Sum(x, 3);
  const int heads = Reduce(reduces[warp]).HeadSegmentedSum(x, lane % 3 == 0);
  const int tails = Reduce(reduces[warp]).TailSegmentedReduce(x, lane % 3 == 2, hipcub::Min());
  put(lane ? -1 : sum), put(lane ? -1 : most), put(lane ? -1 : some);
  put(lane % 3 ? -1 : heads), put(lane % 3 ? -1 : tails);
  int inclusive, exclusive, whole, both, first;
  Scan(scans[warp]).InclusiveSum(x, inclusive);
  Scan(scans[warp]).ExclusiveSum(x, exclusive, whole);
  Scan(scans[warp]).ExclusiveScan(x, first, 7, hipcub::Max());
  put(inclusive), put(exclusive), put(whole), put(first);
  Scan(scans[warp]).Scan(x, both, exclusive = -5, hipcub::Sum());
  put(both), put(exclusive), put(Scan(scans[warp]).Broadcast(x, width - 1));
}

// --- blocks of hipCUB --------------------------------------------------------------------------------
constexpr int threads = 96, items = 3;  // three warps of 32 lanes, one and a half of 64
struct Running {
  int before;
  __device__ int operator()(int whole) {
    const int old = before;
    before += whole;
    return old;
  }
};

__global__ void block_reductions(const int* in, int* out) {
  using Reduce = hipcub::BlockReduce<int, threads>;
  using Pair = hipcub::KeyValuePair<int, float>;
  using Best = hipcub::BlockReduce<Pair, 48, hipcub::BLOCK_REDUCE_RAKING, 2>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ typename Best::TempStorage best;
  const int i = threadIdx.x + blockDim.x * threadIdx.y, x = in[i];
  int several[items] = {x, 2 * x, 3 * x};
  const int sum = Reduce(storage).Sum(x);
  __syncthreads();
  const int most = Reduce(storage).Reduce(x, hipcub::Max());
  __syncthreads();
  const int some = Reduce(storage).Sum(x, 40);
  __syncthreads();
  const int all = Reduce(storage).Sum(several);
  __syncthreads();
  // Not commutative: digits in the threads' order.
  const int last = Reduce(storage).Reduce(x, [](int, int right) { return right; });
  const Pair pair = Best(best).Reduce(Pair(i, float(x % 7)), hipcub::ArgMax());
  const int own = Reduce().Sum(1);
  if (i == 0)
    out[0] = sum, out[1] = most, out[2] = some, out[3] = all, out[4] = last, out[5] = pair.key,
    out[6] = own;
}

__global__ void block_scans(const int* in, int* out, int n) {
  using Scan = hipcub::BlockScan<int, threads>;
  __shared__ typename Scan::TempStorage storage;
  const int i = threadIdx.x, x = in[i];
  int* next = out + i;
  const auto put = [&](int value) {
    __syncthreads();
    *next = value, next += n;
  };
  int a, b, c, d, e, whole, most;
  Scan(storage).InclusiveSum(x, a), put(a);
  Scan(storage).ExclusiveSum(x + 1, b, whole), put(b), put(whole);
  Scan(storage).ExclusiveScan(x, c, 5, hipcub::Max(), most), put(c), put(most);
  d = -1, Scan(storage).ExclusiveScan(x, d, hipcub::Max()), put(d);
  Running running = {1000};
  Scan(storage).ExclusiveSum(x, e, running), put(e);
  Scan(storage).InclusiveScan(x, e, hipcub::Sum(), running), put(e);
  int several[items] = {x, 2 * x, 3 * x};
  Scan(storage).ExclusiveSum(several, several, whole);
  put(several[0]), put(several[2]), put(whole);
  Scan(storage).InclusiveScan(several, several, hipcub::Max()), put(several[1]);
  int more[items] = {x, x, x};
  Scan(storage).InclusiveSum(more, more, running), put(more[2]), put(i ? -1 : running.before);
}

template <hipcub::BlockLoadAlgorithm from, hipcub::BlockStoreAlgorithm to>
__global__ void block_transfers(const int* in, int* out, int valid) {
  using Load = hipcub::BlockLoad<int, threads, items, from>;
  using Store = hipcub::BlockStore<int, threads, items, to>;
  using Exchange = hipcub::BlockExchange<int, threads, items>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Exchange::TempStorage exchange;
  } storage;
  int values[items], ranks[items];
  Load(storage.load).Load(in, values, valid, -7);
  __syncthreads();
  for (int j = 0; j < items; j++) values[j] *= 2;
  Exchange(storage.exchange).StripedToBlocked(values);
  __syncthreads();
  Exchange(storage.exchange).BlockedToStriped(values, values);
  __syncthreads();
  for (int j = 0; j < items; j++) ranks[j] = threads * items - 1 - (threadIdx.x * items + j);
  Exchange(storage.exchange).ScatterToBlocked(values, values, ranks);  // the other way round
  __syncthreads();
  Store(storage.store).Store(out, values, valid);
}

__global__ void warp_exchange(const int* in, int* out) {
  using Exchange = hipcub::WarpExchange<int, items, 16>;
  __shared__ typename Exchange::TempStorage storage[threads / 16];
  int values[items];
  for (int j = 0; j < items; j++) values[j] = in[threadIdx.x * items + j];
  Exchange(storage[threadIdx.x / 16]).BlockedToStriped(values, values);
  for (int j = 0; j < items; j++) out[threadIdx.x * items + j] = values[j];
}

template <class Key>
__global__ void block_sorts(const Key* in, Key* out, int* values, int n) {
  using Sort = hipcub::BlockRadixSort<Key, threads, items, int>;
  using Merge = hipcub::BlockMergeSort<Key, threads, items>;
  __shared__ union {
    typename Sort::TempStorage radix;
    typename Merge::TempStorage merge;
  } storage;
  const int first = threadIdx.x * items;
  Key keys[items];
  int places[items];
  const auto put = [&](int row) {
    for (int j = 0; j < items; j++) out[row * n + first + j] = keys[j];
    for (int j = 0; j < items; j++) keys[j] = in[first + j], places[j] = first + j;
    __syncthreads();
  };
  put(0);
  Sort(storage.radix).Sort(keys, places);
  for (int j = 0; j < items; j++) values[first + j] = places[j];
  put(0), Sort(storage.radix).SortDescending(keys), put(1);
  Sort(storage.radix).Sort(keys, 0, 4), put(2);
  Merge(storage.merge).Sort(keys, [](Key a, Key b) { return b < a; }), put(3);
  Sort(storage.radix).SortBlockedToStriped(keys), put(4);
}

__global__ void block_neighbours(const int* in, int* out, int n) {
  using Difference = hipcub::BlockAdjacentDifference<int, threads>;
  using Flags = hipcub::BlockDiscontinuity<int, threads>;
  using Shuffle = hipcub::BlockShuffle<int, threads>;
  using Histogram = hipcub::BlockHistogram<unsigned char, threads, items, 16>;
  __shared__ typename Difference::TempStorage differences;
  __shared__ typename Flags::TempStorage flags;
  __shared__ typename Shuffle::TempStorage shuffles;
  __shared__ typename Histogram::TempStorage histograms;
  __shared__ unsigned counts[16];
  const int first = threadIdx.x * items;
  int x[items], y[items];
  unsigned char small[items];
  for (int j = 0; j < items; j++) x[j] = in[first + j], small[j] = (unsigned char)(x[j] % 16);
  int row = 0;
  const auto put = [&] {
    for (int j = 0; j < items; j++) out[row * n + first + j] = y[j];
    row++;
    __syncthreads();
  };
  Difference(differences).SubtractLeft(x, y, hipcub::Difference()), put();
  Difference(differences).SubtractLeft(x, y, hipcub::Difference(), 1000), put();
  Difference(differences).SubtractRight(x, y, hipcub::Difference()), put();
  Flags(flags).FlagHeads(y, x, hipcub::Inequality()), put();
  Flags(flags).FlagTails(y, x, hipcub::Inequality()), put();
  y[0] = -1, Shuffle(shuffles).Up(x, y), put();
  y[0] = y[1] = y[2] = -1, Shuffle(shuffles).Offset(x[0], y[0], -2), put();
  Shuffle(shuffles).Rotate(x[0], y[1], 5), put();
  Histogram(histograms).Histogram(small, counts);
  for (int j = 0; j < items; j++) y[j] = int(counts[(first + j) % 16]);
  put();
}

// Storage that is used anew without a barrier: some order of threads shows it.
__global__ void reused_storage(const int* in, int* out) {
  using Reduce = hipcub::BlockReduce<int, threads>;
  __shared__ typename Reduce::TempStorage storage;
  const int one = Reduce(storage).Sum(in[threadIdx.x]);
  const int two = Reduce(storage).Sum(2 * in[threadIdx.x]);
  if (threadIdx.x == 0) out[0] = one, out[1] = two;
}

__global__ void key_bits(const float* in, unsigned* out) {
  using Traits = hipcub::Traits<float>;
  const unsigned bits = Traits::TwiddleIn(__float_as_uint(in[threadIdx.x]));
  out[threadIdx.x] = bits;
  out[blockDim.x + threadIdx.x] = Traits::TwiddleOut(bits);
}

// --- rocPRIM -----------------------------------------------------------------------------------------
__global__ void rocprim_primitives(const int* in, int* out, int n) {
  using Reduce = rocprim::block_reduce<int, threads>;
  using Scan = rocprim::block_scan<int, threads>;
  using Load = rocprim::block_load<int, threads, items, rocprim::block_load_method::block_load_transpose>;
  using Store = rocprim::block_store<int, threads, items>;
  __shared__ typename Reduce::storage_type reduces;
  __shared__ typename Scan::storage_type scans;
  __shared__ typename Load::storage_type loads;
  __shared__ typename Store::storage_type stores;
  int x[items], sum, most, whole;
  Load().load(in, x, loads);
  Reduce().reduce(x, sum, reduces);
  __syncthreads();
  Reduce().reduce(x, most, reduces, rocprim::maximum<int>());
  Scan().exclusive_scan(x, x, 10, whole, scans);
  Store().store(out, x, stores);
  if (rocprim::flat_block_thread_id() == 0) out[n] = sum, out[n + 1] = most, out[n + 2] = whole;
}
