"""Drafts draw whole numbers with which a kernel's loops, asserts and divisions come to their end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.runs import tokitai_here
from tokitai_cli.drafts.search import drafts_of

SOURCE = """\
#include <hip/hip_runtime.h>
#include <cassert>
#define LAST -1
template <typename K> const K SLOT_EMPTY = K(~0ull);
template <typename K>
__global__ void put(K* table, const K* keys, int* at, int room, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  K slot = keys[i] % room;
  while (true) {
    K had = atomicCAS(&table[slot], SLOT_EMPTY<K>, keys[i]);
    if (had == SLOT_EMPTY<K> || had == keys[i]) break;
    slot = (slot + 1) % room;
  }
  at[i] = slot;
}
__device__ int place(const unsigned* cells, unsigned key, int room) {
  unsigned none = UINT_MAX;
  for (int slot = key % room; true; slot = (slot + 1) % room) {
    if (cells[slot] == key) return slot;
    if (cells[slot] == none) return LAST;
  }
}
__global__ void look(const unsigned* table, const unsigned* keys, int* at, int room, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) at[i] = place(table, keys[i], room);
}
__device__ int root(const int* up, int v) {
  int next;
  while ((next = up[v]) != v) v = next;
  return v;
}
__global__ void roots(const int* parent, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = root(parent, i);
}
__global__ void lengths(const int* after, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, steps = 0;
  if (i < n) {
    for (int at = i; at != LAST; at = after[at]) ++steps;
    out[i] = steps;
  }
}
__global__ void locked(int* locks, int* sums, const int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  while (atomicCAS(&locks[i], 0, 1) != 0) {}
  sums[i] += x[i];
  atomicExch(&locks[i], 0);
}
__global__ void solve(const float* x, float* y, int* done, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (bool ready = i == 0; !ready;) {
    if (atomicAdd(&done[i - 1], 0) == 1) ready = true;
  }
  y[i] = x[i];
  atomicExch(&done[i], 1);
}
__device__ int share(const int* counts, int i, int n) { return n / counts[i]; }
__global__ void shares(const int* parts, const int* one, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int told = one[i];
  assert(told == 1);
  out[i] = share(parts, i, n) + told;
}
__global__ void sizes(const int* extent, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  assert(extent[i] > 2 && extent[i] <= 9);
  out[i] = 8 / (extent[i] - 2);
}
struct Node { int value; int next; };
__global__ void link(Node* nodes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 2 || i >= n) return;
  for (int at = i % 2; ;) {
    int next = atomicCAS(&nodes[at].next, -1, i);
    if (next == -1) break;
    at = next;
  }
}
void host(unsigned long long* t, const unsigned long long* k, int* at, int room, int n) {
  put<unsigned long long><<<(n + 63) / 64, 64>>>(t, k, at, room, n);
}
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    source = tmp_path_factory.mktemp("values") / "loops.hip"
    source.write_text(SOURCE, encoding="utf-8")
    found, _ = drafts_of(source)  # type: ignore[misc]
    return {one.kernel.name: one.spec for one in found}


@pytest.mark.parametrize(
    ("kernel", "array", "draw"),
    [
        ("put", "table", "{kind: constant, value: '2 ** 64 - 1'}"),
        (
            "look",
            "table",
            "{kind: mix, parts: [{draw: {kind: constant, value: 4294967295}, share: 0.5},"
            " {draw: {kind: index-uniform, below: n}, share: 0.5}]}",
        ),
        ("roots", "parent", "{kind: arange}"),
        ("lengths", "after", "{kind: constant, value: -1}"),
        ("locked", "locks", "{kind: constant, value: 0}"),
        ("solve", "done", "{kind: constant, value: 1}"),
        ("shares", "parts", "{kind: uniform, lo: 1, hi: n}"),
        ("shares", "one", "{kind: constant, value: 1}"),
        ("sizes", "extent", "{kind: uniform, lo: 3, hi: 9}"),
        ("link", "nodes", "{kind: constant, value: 255}"),
    ],
)
def test_loops_and_asserts_end_with_what_is_drawn(
    told: dict[str, str], kernel: str, array: str, draw: str
) -> None:
    drawn = yaml.safe_load(told[kernel])["profiles"]["normal"]["inputs"][array]
    assert drawn == yaml.safe_load(draw)


def test_kernels_with_such_loops_run_to_their_end(tmp_path: Path) -> None:
    (tmp_path / "loops.hip").write_text(SOURCE, encoding="utf-8")
    done = tokitai_here("find", tmp_path, "--run", "--json")
    ends = {one["name"]: (one["ended"], one["runs"]) for one in json.loads(done.stdout)["kernels"]}
    assert len(ends) == SOURCE.count("__global__")
    assert set(ends.values()) == {("", 1)}, ends
