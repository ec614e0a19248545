// What devices of the host share: the regions of the memory file are what kernels work on, without copies.
//
// Every buffer is mapped on its own, amid addresses that are never accessible, so that an access
// far outside of a buffer faults rather than lands in another one.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "tokitai_case.hpp"
#include "tokitai_host/fill.hpp"

namespace tokitai {

class Regions {
 public:
  void attach(int memory) {
    memory_ = memory;
    page_ = size_t(sysconf(_SC_PAGESIZE));
  }

  bool open(const Program& program, Case& request) {
    struct stat status;
    if (fstat(memory_, &status) != 0 || Word(status.st_size) < request.file_bytes)
      end_with(exit_garbage, "the memory file is shorter than the request says");
    if (!read_fills(request)) return false;
    for (Buffer& buffer : request.buffers) {
      if (buffer.in_symbol && !check_symbol(program, request, buffer)) return false;
      if (!buffer.has_content()) continue;
      const bool is_input = buffer.is_read_only();
      buffer.kept = map(request, buffer, 0, buffer.content,
                        is_input ? PROT_READ | PROT_WRITE : PROT_READ,
                        is_input ? MAP_PRIVATE : MAP_SHARED);
      if (!buffer.kept) return false;
      if (is_input) buffer.pointer = buffer.kept;
    }
    return true;
  }

  // Maps the regions of a repetition and brings every buffer into its first state.
  bool prepare(const Program& program, Case& request, size_t repetition) {
    const FillPattern fill = fill_of(repetition);
    for (Buffer& buffer : request.buffers) {
      if (buffer.kind == Kind::symbol)
        memcpy(symbol_address(program.symbols[buffer.symbol]), buffer.kept, buffer.bytes);
      if (!buffer.is_result()) continue;
      const Word region = buffer.region + repetition * buffer.stride;
      if (!map_region(request, buffer, region)) return false;
      switch (buffer.fill) {
        case Fill::pattern: write_fill(buffer.pointer, buffer.bytes, fill, buffer.start); break;
        case Fill::zero: memset(buffer.pointer, 0, buffer.bytes); break;
        case Fill::content: memcpy(buffer.pointer, buffer.kept, buffer.bytes); break;
        case Fill::zero_once:
          if (!request.begun) memset(buffer.pointer, 0, buffer.bytes);
          break;
        case Fill::nothing:
        case Fill::kept: break;
      }
      if (buffer.in_symbol)
        memcpy(symbol_address(program.symbols[buffer.symbol]), buffer.pointer, buffer.bytes);
    }
    for (Buffer& buffer : request.buffers) {
      if (buffer.kind != Kind::list) continue;
      point(request, buffer, reinterpret_cast<Word*>(buffer.pointer));
      if (!write_content(request, buffer)) return false;
    }
    request.begun = true;
    return lay_first_structs(*this, program, request,
                             [this, &request](Buffer& buffer) { return write_struct(request, buffer); });
  }

  // Brings the structs of a launch into the state that its arguments say.
  bool lay(const Program& program, Case& request, const Launch& launch) {
    return lay_structs(*this, program, request, launch, false,
                       [this, &request](Buffer& buffer) { return write_struct(request, buffer); });
  }

  // The results already lie where the tool looks for them, but for those in symbols.
  bool collect(const Program& program, Case& request, size_t) {
    for (Buffer& buffer : request.buffers)
      if (buffer.in_symbol && buffer.is_result())
        memcpy(buffer.pointer, symbol_address(program.symbols[buffer.symbol]), buffer.bytes);
    return true;
  }

  // Counts the bytes of an input, guards included, that are not as in the file any more.
  bool compare_input(Case& request, Buffer& buffer) {
    if (buffer.bytes_changed) return true;
    const unsigned char* now = buffer.kept;
    unmap(buffer, 1);
    const unsigned char* then = map(request, buffer, 1, buffer.content, PROT_READ, MAP_SHARED);
    if (!then) return false;
    const size_t bytes = buffer.front + buffer.bytes + buffer.back;
    now -= buffer.front;
    then -= buffer.front;
    if (memcmp(now, then, bytes) == 0) return true;
    for (size_t i = 0; i < bytes; i++) {
      if (now[i] == then[i]) continue;
      if (buffer.bytes_changed++ == 0) buffer.first_changed = int64_t(i) - int64_t(buffer.front);
    }
    return true;
  }

  void close(Case& request) {
    for (Buffer& buffer : request.buffers)
      for (unsigned slot = 0; slot < 3; slot++) unmap(buffer, slot);
  }

 protected:
  // Where the unit of the kernels has a symbol.
  virtual void* symbol_address(const SymbolEntry& symbol) const {
    return const_cast<void*>(symbol.device);
  }

  // Limits of AMD GPUs (HIP programming guide): 1024 threads a block, a grid of less than 2^32
  // threads in each dimension, and shared memory, of which the kernel's own is `own`.
  static bool launch_is_valid(const KernelEntry& kernel, Case& request, const Launch& launch, size_t own,
                              size_t shared_limit) {
    constexpr unsigned block_limit = 1024;
    bool valid = true;
    for (unsigned d = 0; d < 3; d++)
      valid = valid && launch.grid[d] > 0 && launch.grid[d] < (Word(1) << 32) &&
              launch.block[d] > 0 && launch.block[d] <= block_limit &&
              launch.grid[d] * launch.block[d] < (Word(1) << 32);
    valid = valid && launch.block[0] * launch.block[1] * launch.block[2] <= block_limit;
    Word blocks = 0;
    valid = valid && !__builtin_mul_overflow(launch.grid[0] * launch.grid[1], launch.grid[2], &blocks);
    if (!valid)
      return request.fail(
          Status::runtime_error,
          "invalid configuration of kernel %s: grid (%llu,%llu,%llu), block (%llu,%llu,%llu); a grid "
          "and a block have at least one element in each dimension, a block at most %u threads",
          kernel.name, (unsigned long long)launch.grid[0], (unsigned long long)launch.grid[1],
          (unsigned long long)launch.grid[2], (unsigned long long)launch.block[0],
          (unsigned long long)launch.block[1], (unsigned long long)launch.block[2], block_limit);
    const Word threads = launch.block[0] * launch.block[1] * launch.block[2];
    if (kernel.thread_bound && threads > kernel.thread_bound)
      return request.fail(Status::runtime_error,
                          "kernel %s is launched with %llu threads a block, its __launch_bounds__ allow %u: "
                          "a GPU refuses the launch",
                          kernel.name, (unsigned long long)threads, kernel.thread_bound);
    if (launch.shared_bytes + own > shared_limit)
      return request.fail(Status::runtime_error,
                          "kernel %s needs %zu bytes of static and %llu bytes of dynamic shared memory; "
                          "the limit is %zu",
                          kernel.name, own, (unsigned long long)launch.shared_bytes, shared_limit);
    return true;
  }

  static Word now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return Word(time.tv_sec) * 1000000000u + Word(time.tv_nsec);
  }

  FillPattern fill_of(size_t repetition) const {
    return {fills_.items + repetition * fill_bytes, fill_bytes};
  }

 private:
  // What the child knows by itself of a content: a list's pointers, a struct.
  bool write_content(Case& request, const Buffer& buffer) const {
    if (pwrite(memory_, buffer.pointer, buffer.bytes, off_t(buffer.content)) == ssize_t(buffer.bytes))
      return true;
    return request.fail(Status::runtime_error, "a list or struct cannot be written: %s", strerror(errno));
  }

  bool write_struct(Case& request, const Buffer& buffer) const {
    memcpy(buffer.pointer, buffer.room, buffer.bytes);
    return write_content(request, buffer);
  }

  int memory_ = -1;
  size_t page_ = 4096;
  Array<unsigned char> fills_;  // of all repetitions, one after another

#ifdef TOKITAI_WATCHED
  static constexpr size_t margin = size_t(1) << 32;
#else
  static constexpr size_t margin = size_t(1) << 20;
#endif

  bool read_fills(Case& request) {
    fills_.allocate(request.repetitions.count * fill_bytes);
    unsigned char* to = fills_.items;
    for (const Repetition& repetition : request.repetitions) {
      if (pread(memory_, to, fill_bytes, off_t(repetition.place)) != ssize_t(fill_bytes))
        return request.fail(Status::runtime_error, "a fill cannot be read: %s", strerror(errno));
      to += fill_bytes;
    }
    return true;
  }

  static bool check_symbol(const Program& program, Case& request, const Buffer& buffer) {
    const SymbolEntry& symbol = program.symbols[buffer.symbol];
    if (symbol.bytes == buffer.bytes) return true;
    return request.fail(Status::argument_misfit,
                        "symbol %s has %llu bytes in the kernel source, the spec gives %llu",
                        symbol.name, (unsigned long long)symbol.bytes,
                        (unsigned long long)buffer.bytes);
  }

  // Maps guards and payload at `offset` of the memory file; returns the payload's address or null.
  unsigned char* map(Case& request, Buffer& buffer, unsigned slot, Word offset, int protection,
                     int sharing) {
    const Word begin = (offset - buffer.front) / page_ * page_;
    const size_t bytes = offset + buffer.bytes + buffer.back - begin;
    const size_t mapped = (bytes + page_ - 1) / page_ * page_;
    const size_t reserved = mapped + 2 * margin;
    void* range = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return out_of_memory(request, reserved);
    buffer.reserved[slot] = static_cast<unsigned char*>(range);
    buffer.reserved_bytes[slot] = reserved;
    unsigned char* at = static_cast<unsigned char*>(range) + margin;
    if (bytes && mmap(at, bytes, protection, sharing | MAP_FIXED, memory_, off_t(begin)) == MAP_FAILED)
      return out_of_memory(request, bytes);
#ifdef MADV_POPULATE_READ
    // Page faults outside of the timing. Populating for writing would copy every private page.
    if (bytes) madvise(at, bytes, MADV_POPULATE_READ);
#endif
    return at + (offset - begin);
  }

  static unsigned char* out_of_memory(Case& request, size_t bytes) {
    request.fail(Status::out_of_memory, "mmap of %zu bytes: %s", bytes, strerror(errno));
    return nullptr;
  }

  static void unmap(Buffer& buffer, unsigned slot) {
    if (buffer.reserved[slot]) munmap(buffer.reserved[slot], buffer.reserved_bytes[slot]);
    buffer.reserved[slot] = nullptr;
  }

  // Only the region of the present repetition is mapped, so that no other one can be written to.
  // Its guards are filled when it is first mapped; where all repetitions share it, only once.
  bool map_region(Case& request, Buffer& buffer, Word region) {
    if (buffer.reserved[2] && (buffer.stride == 0 || buffer.mapped_region == region)) return true;
    unmap(buffer, 2);
    buffer.pointer = map(request, buffer, 2, region, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (!buffer.pointer) return false;
    buffer.mapped_region = region;
    memset(buffer.pointer - buffer.front, guard_fill, buffer.front);
    memset(buffer.pointer + buffer.bytes, guard_fill, buffer.back);
    return true;
  }
};

}  // namespace tokitai
