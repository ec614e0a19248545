// GPUs through the HIP runtime API: AMD's by hipcc, NVIDIA's by nvcc over the headers of
// kernels/cuda. Buffers are device copies with their guards; results are copied back into the
// memory file after each repetition. Every call is checked, and a failure names it.
#pragma once

#include <fcntl.h>
#include <hip/hip_runtime.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tokitai_faults.hpp"
#include "tokitai_starter_hip.hpp"

// Text of a macro's value: the runtime's own name of a call, where a header gives it another one.
#define TOKITAI_TEXT_OF(text) #text
#define TOKITAI_TEXT(text) TOKITAI_TEXT_OF(text)
// The error of a call, with the call's name.
#define TOKITAI_CALL(function, ...) tokitai::Outcome{function(__VA_ARGS__), TOKITAI_TEXT(function)}

#ifndef TOKITAI_BUILT_FOR
#error "the recipe says what the build is for: -DTOKITAI_BUILT_FOR=\"gfx1101\""
#endif

namespace tokitai {

struct Outcome {
  hipError_t error;
  const char* call;
};

// What a signal's handler can say: kernels run elsewhere, so it came from the runtime or the source's
// own host code.
inline void describe_fault_place(char* text, size_t size) {
  snprintf(text, size, "; on the host, where no kernel runs");
}
inline void note_fault(const char*, const void*, const void*) {}
inline bool explain_address(const unsigned char* address, char* text, size_t size) {
  snprintf(text, size, "access of %p", static_cast<const void*>(address));
  return true;
}

// The part of an architecture's name in front of its features: gfx90a of "gfx90a:sramecc+:xnack-".
inline size_t base_length(const char* arch) { return strcspn(arch, ":"); }

// Whether code for `built` runs on `present`; equal names, and for sm_XY the same X and no lesser Y
// (CUDA C++ Programming Guide, binary compatibility). A generic target is the runtime's to judge.
inline bool arch_serves(const char* built, const char* present) {
  if (strstr(built, "generic")) return true;
  unsigned built_number, present_number;
  if (sscanf(built, "sm_%u", &built_number) == 1 && sscanf(present, "sm_%u", &present_number) == 1) {
    const bool specific = built[strlen(built) - 1] == 'a';
    return built_number / 10 == present_number / 10 &&
           (specific ? built_number == present_number : built_number <= present_number);
  }
  const size_t length = base_length(built);
  return length == base_length(present) && strncmp(built, present, length) == 0;
}

class Device {
 public:
#ifdef __HIP_PLATFORM_NVIDIA__
  static constexpr const char* name = "cuda";
#else
  static constexpr const char* name = "rocm";
#endif

  // --keep-unwritten leaves outputs and workspaces as they were allocated, where a tool watches for
  // reads of what nobody wrote: a fill would count as a write.
  bool take_option(const char* option) {
    int gpu;
    if (strcmp(option, "--keep-unwritten") == 0) return keep_unwritten_ = true;
    if (sscanf(option, "--gpu=%d", &gpu) != 1 || gpu < 0) return false;
    gpu_ = gpu;
    return true;
  }

  // Chooses the GPU; says what there is in the words of the hello frame.
  bool start(int memory, char* hello, size_t size) {
    memory_ = memory;
    int count = 0;
    Outcome outcome = TOKITAI_CALL(hipGetDeviceCount, &count);
    if (outcome.error == hipSuccess && count == 0) outcome.error = hipErrorNoDevice;
    if (outcome.error == hipSuccess) outcome = TOKITAI_CALL(hipSetDevice, gpu_);
    if (outcome.error == hipSuccess) outcome = TOKITAI_CALL(hipGetDeviceProperties, &properties_, gpu_);
    if (outcome.error == hipSuccess) outcome = TOKITAI_CALL(hipEventCreate, &begin_);
    if (outcome.error == hipSuccess) outcome = TOKITAI_CALL(hipEventCreate, &end_);
    if (outcome.error != hipSuccess) {
      char why[512];
      describe(outcome, why, sizeof why);
      snprintf(hello, size,
               "status=no-device\ndevice=%s\nwarp_size=0\nmessage=%s; the runtime shows %d GPUs, and "
               "GPU %d was asked for\n",
               name, why, count, gpu_);
      return false;
    }
    read_arch();
    write_facts(hello, size);
    return true;
  }

  bool open(const Program& program, Case& request) {
    if (!arch_serves(TOKITAI_BUILT_FOR, arch_))
      return request.fail(Status::runtime_error, "%s", mismatch());
    if (!map_file(request)) return false;
    needed_ = 0;
    for (const Buffer& buffer : request.buffers)
      needed_ += block_bytes(buffer) * (int(buffer.has_content()) + int(buffer.is_result()));
    for (Buffer& buffer : request.buffers) {
      if (buffer.in_symbol && !check_symbol(program, request, buffer)) return false;
      if (buffer.kind == Kind::symbol || (buffer.kind == Kind::structure && !buffer.room)) continue;
      if (buffer.has_content()) {
        buffer.kept = allocate(request, buffer, 0);
        if (!buffer.kept ||
            !check(request, TOKITAI_CALL(hipMemcpy, buffer.kept - buffer.front,
                                         file_ + buffer.content - buffer.front,
                                         block_bytes(buffer), hipMemcpyHostToDevice)))
          return false;
      }
      buffer.pointer = buffer.is_result() ? allocate(request, buffer, 1) : buffer.kept;
      if (!buffer.pointer) return false;
    }
    return allow_shared(program, request);
  }

  // Brings every buffer into its first state. The guards of a region are filled when the kernel first
  // gets it; where all repetitions share one, only once.
  bool prepare(const Program& program, Case& request, size_t repetition) {
    const unsigned char* fill = file_ + request.repetitions[repetition].place;
    for (Buffer& buffer : request.buffers) {
      if (buffer.kind == Kind::symbol &&
          !check(request, TOKITAI_CALL(hipMemcpyToSymbol, program.symbols[buffer.symbol].device,
                                       file_ + buffer.content, buffer.bytes)))
        return false;
      if (!buffer.is_result()) continue;
      const Word region = buffer.region + repetition * buffer.stride;
      if (buffer.mapped_region != region && !fill_guards(request, buffer)) return false;
      buffer.mapped_region = region;
      if (!fill_payload(request, buffer, fill)) return false;
      const bool unwritten = keep_unwritten_ && buffer.fill == Fill::pattern;
      if (buffer.in_symbol && !unwritten &&
          !check(request, TOKITAI_CALL(hipMemcpyToSymbol, program.symbols[buffer.symbol].device,
                                       buffer.pointer, buffer.bytes, 0, hipMemcpyDeviceToDevice)))
        return false;
    }
    for (Buffer& buffer : request.buffers) {
      if (buffer.kind != Kind::list) continue;
      unsigned char* content = file_ + buffer.content;
      point(request, buffer, reinterpret_cast<Word*>(content));
      if (!copy(request, buffer.pointer, content, buffer.bytes, hipMemcpyHostToDevice)) return false;
    }
    request.begun = true;
    return lay_first_structs(*this, program, request,
                             [this, &request](Buffer& buffer) { return write_struct(request, buffer); }) &&
           check(request, TOKITAI_CALL(hipDeviceSynchronize));
  }

  // The time is that between two events around the whole sequence, as the device tells it.
  bool run(const Program& program, Case& request, size_t, Word& nanoseconds) {
    if (!check(request, TOKITAI_CALL(hipEventRecord, begin_, nullptr))) return false;
    for (const Launch& launch : request.launches)
      if (!start_launch(program, request, launch)) return false;
    float milliseconds = 0;
    if (!check_run(program, request, TOKITAI_CALL(hipEventRecord, end_, nullptr)) ||
        !check_run(program, request, TOKITAI_CALL(hipEventSynchronize, end_)) ||
        !check(request, TOKITAI_CALL(hipEventElapsedTime, &milliseconds, begin_, end_)))
      return false;
    nanoseconds = Word(double(milliseconds) * 1e6 + 0.5);
    return true;
  }

  bool collect(const Program& program, Case& request, size_t repetition) {
    for (const Buffer& buffer : request.buffers) {
      if (!buffer.is_result()) continue;
      if (buffer.in_symbol &&
          !check(request, TOKITAI_CALL(hipMemcpyFromSymbol, buffer.pointer,
                                       program.symbols[buffer.symbol].device, buffer.bytes, 0,
                                       hipMemcpyDeviceToDevice)))
        return false;
      const Word region = buffer.region + repetition * buffer.stride;
      if (!check(request, TOKITAI_CALL(hipMemcpy, file_ + region - buffer.front,
                                       buffer.pointer - buffer.front, block_bytes(buffer),
                                       hipMemcpyDeviceToHost)))
        return false;
    }
    return true;
  }

  // Counts the bytes of an input, guards included, that are not as in the file any more.
  bool compare_input(Case& request, Buffer& buffer) {
    constexpr size_t chunk = size_t(16) << 20;
    if (buffer.bytes_changed) return true;
    const size_t bytes = block_bytes(buffer);
    Array<unsigned char> now;
    now.allocate(bytes < chunk ? bytes : chunk);
    for (size_t at = 0; at < bytes; at += chunk) {
      const size_t part = bytes - at < chunk ? bytes - at : chunk;
      if (!check(request, TOKITAI_CALL(hipMemcpy, now.items, buffer.kept - buffer.front + at, part,
                                       hipMemcpyDeviceToHost)))
        return false;
      const unsigned char* then = file_ + buffer.content - buffer.front + at;
      if (memcmp(now.items, then, part) == 0) continue;
      for (size_t i = 0; i < part; i++) {
        if (now[i] == then[i]) continue;
        if (buffer.bytes_changed++ == 0)
          buffer.first_changed = int64_t(at + i) - int64_t(buffer.front);
      }
    }
    return true;
  }

  // A child whose device failed is replaced, so what freeing says then is of no use.
  void close(Case& request) {
    for (Buffer& buffer : request.buffers)
      for (unsigned slot = 0; slot < 2; slot++) {
        if (buffer.reserved[slot]) (void)hipFree(buffer.reserved[slot]);
        buffer.reserved[slot] = nullptr;
      }
  }

 private:
  int memory_ = -1;
  int gpu_ = 0;
  bool keep_unwritten_ = false;
  hipDeviceProp_t properties_ = {};
  hipEvent_t begin_ = {}, end_ = {};
  char arch_[256] = "";
  unsigned char* file_ = nullptr;
  size_t mapped_ = 0;
  Word needed_ = 0;

  static void describe(const Outcome& outcome, char* text, size_t size) {
    snprintf(text, size, "%s: %s (%s)", outcome.call, hipGetErrorName(outcome.error),
             hipGetErrorString(outcome.error));
  }

  // Errors after which no call on this device can succeed, whatever the kernel did.
  static bool is_lost(hipError_t error) {
    return error == hipErrorNoDevice || error == hipErrorInvalidDevice ||
           error == hipErrorECCNotCorrectable || error == hipErrorDeinitialized ||
           error == hipErrorContextIsDestroyed
#ifdef __HIP_PLATFORM_NVIDIA__
           || error == cudaErrorDevicesUnavailable || error == cudaErrorNvlinkUncorrectable ||
           error == cudaErrorSystemNotReady
#endif
        ;
  }

  static bool check(Case& request, const Outcome& outcome, const char* where = "") {
    if (outcome.error == hipSuccess) return true;
    char what[512];
    describe(outcome, what, sizeof what);
    const Status status = is_lost(outcome.error)                     ? Status::device_lost
                          : outcome.error == hipErrorOutOfMemory ? Status::out_of_memory
                                                                     : Status::runtime_error;
    return request.fail(status, "%s%s", what, where);
  }

  // A failure that shows after the launches belongs to one of them.
  static bool check_run(const Program& program, Case& request, const Outcome& outcome) {
    if (outcome.error == hipSuccess) return true;
    char where[1024] = " after launching";
    size_t used = strlen(where);
    for (size_t i = 0; i < request.launches.count && used < sizeof where - 64; i++)
      used += size_t(snprintf(where + used, sizeof where - used, "%s %s", i ? "," : "",
                              program.kernels[request.launches[i].kernel].name));
    return check(request, outcome, where);
  }

  void read_arch() {
    snprintf(arch_, sizeof arch_, "%s", properties_.gcnArchName);
  }

  const char* mismatch() const {
    static char text[1024];
    snprintf(text, sizeof text,
             "the kernels were built for %s and the GPU is %s (%s), which cannot run them; give "
             "--arch %.*s",
             TOKITAI_BUILT_FOR, arch_, properties_.name, int(base_length(arch_)), arch_);
    return text;
  }

  void write_facts(char* hello, size_t size) const {
    int runtime = 0, driver = 0;
    if (hipRuntimeGetVersion(&runtime) != hipSuccess) runtime = 0;
    if (hipDriverGetVersion(&driver) != hipSuccess) driver = 0;
    char bus[64] = "";
    if (hipDeviceGetPCIBusId(bus, int(sizeof bus), gpu_) != hipSuccess) bus[0] = 0;
    const char* source = TOKITAI_TEXT(hipGetDeviceProperties);
    snprintf(hello, size,
             "status=ok\ndevice=%s\nwarp_size=%d\n"
             "fact.gpu-name=%s|%s\nfact.gpu-arch=%s|%s\nfact.gpu-index=%d|--gpu\n"
             "fact.built-for=%s|compiled in\nfact.warp-size=%d|%s\nfact.compute-units=%d|%s\n"
             "fact.gpu-memory-bytes=%llu|%s\nfact.shared-bytes-per-block=%llu|%s\n"
             "fact.threads-per-block=%d|%s\nfact.pci-bus=%s|%s\n"
             "fact.runtime-version=%d|%s\nfact.driver-version=%d|%s\n",
             name, properties_.warpSize, properties_.name, source, arch_, source, gpu_,
             TOKITAI_BUILT_FOR, properties_.warpSize, source, properties_.multiProcessorCount, source,
             (unsigned long long)properties_.totalGlobalMem, source,
             (unsigned long long)properties_.sharedMemPerBlock, source,
             properties_.maxThreadsPerBlock, source, bus, TOKITAI_TEXT(hipDeviceGetPCIBusId), runtime,
             TOKITAI_TEXT(hipRuntimeGetVersion), driver, TOKITAI_TEXT(hipDriverGetVersion));
  }

  static size_t block_bytes(const Buffer& buffer) {
    return size_t(buffer.front + buffer.bytes + buffer.back);
  }

  // The whole memory file, mapped once and again when the tool has made it larger.
  bool map_file(Case& request) {
    struct stat status;
    if (fstat(memory_, &status) != 0 || Word(status.st_size) < request.file_bytes)
      end_with(exit_garbage, "the memory file is shorter than the request says");
    if (mapped_ >= request.file_bytes) return true;
    if (file_) munmap(file_, mapped_);
    mapped_ = 0;
    void* range = mmap(nullptr, size_t(request.file_bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
                       memory_, 0);
    file_ = range == MAP_FAILED ? nullptr : static_cast<unsigned char*>(range);
    if (!file_)
      return request.fail(Status::out_of_memory, "mmap of %llu bytes: %s",
                          (unsigned long long)request.file_bytes, strerror(errno));
    mapped_ = size_t(request.file_bytes);
    return true;
  }

  // Device memory for guards and payload; returns the payload's address or null. The payload is
  // aligned as an allocation of its own would be.
  unsigned char* allocate(Case& request, Buffer& buffer, unsigned slot) {
    constexpr size_t alignment = 256;
    const size_t bytes = block_bytes(buffer) + alignment;
    void* memory = nullptr;
    const Outcome outcome = TOKITAI_CALL(hipMalloc, &memory, bytes);
    if (outcome.error != hipSuccess) {
      char where[256];
      size_t free_bytes = 0, all_bytes = 0;
      (void)hipGetLastError();
      if (hipMemGetInfo(&free_bytes, &all_bytes) != hipSuccess) free_bytes = all_bytes = 0;
      snprintf(where, sizeof where,
               " for %zu bytes; the case needs %llu bytes on the GPU, of its %zu bytes %zu were free",
               bytes, (unsigned long long)needed_, all_bytes, free_bytes);
      check(request, outcome, where);
      return nullptr;
    }
    buffer.reserved[slot] = static_cast<unsigned char*>(memory);
    buffer.reserved_bytes[slot] = bytes;
    const uintptr_t least = reinterpret_cast<uintptr_t>(memory) + buffer.front;
    return reinterpret_cast<unsigned char*>((least + alignment - 1) / alignment * alignment);
  }

  static bool check_symbol(const Program& program, Case& request, const Buffer& buffer) {
    const SymbolEntry& symbol = program.symbols[buffer.symbol];
    if (symbol.bytes == buffer.bytes) return true;
    return request.fail(Status::argument_misfit,
                        "symbol %s has %llu bytes in the kernel source, the spec gives %llu",
                        symbol.name, (unsigned long long)symbol.bytes,
                        (unsigned long long)buffer.bytes);
  }

  static bool fill_guards(Case& request, Buffer& buffer) {
    return check(request, TOKITAI_CALL(hipMemset, buffer.pointer - buffer.front, guard_fill,
                                       size_t(buffer.front))) &&
           check(request, TOKITAI_CALL(hipMemset, buffer.pointer + buffer.bytes, guard_fill,
                                       size_t(buffer.back)));
  }

  static bool copy(Case& request, unsigned char* to, const unsigned char* from, size_t bytes,
                   hipMemcpyKind kind) {
    return bytes == 0 || check(request, TOKITAI_CALL(hipMemcpy, to, from, bytes, kind));
  }

  // One period of the fill from the file, turned to where the payload begins in it; the device doubles it.
  static bool write_fill(Case& request, const Buffer& buffer, const unsigned char* fill) {
    unsigned char* to = buffer.pointer;
    const size_t bytes = size_t(buffer.bytes), head = fill_bytes - size_t(buffer.start);
    const size_t first = bytes < head ? bytes : head;
    size_t done = bytes < fill_bytes ? bytes : fill_bytes;
    if (!copy(request, to, fill + buffer.start, first, hipMemcpyHostToDevice) ||
        !copy(request, to + first, fill, done - first, hipMemcpyHostToDevice))
      return false;
    for (size_t part; done < bytes; done += part) {
      part = bytes - done < done ? bytes - done : done;
      if (!copy(request, to + done, to, part, hipMemcpyDeviceToDevice)) return false;
    }
    return true;
  }

  bool fill_payload(Case& request, Buffer& buffer, const unsigned char* fill) const {
    switch (buffer.fill) {
      case Fill::pattern: return keep_unwritten_ || write_fill(request, buffer, fill);
      case Fill::zero_once:
        if (request.begun) return true;
        [[fallthrough]];
      case Fill::zero:
        return check(request, TOKITAI_CALL(hipMemset, buffer.pointer, 0, buffer.bytes));
      case Fill::content:
        return check(request, TOKITAI_CALL(hipMemcpy, buffer.pointer, buffer.kept, buffer.bytes,
                                           hipMemcpyDeviceToDevice));
      case Fill::kept:
        return request.begun || copy(request, buffer.pointer, file_ + buffer.region, buffer.bytes,
                                     hipMemcpyHostToDevice);
      case Fill::nothing: break;
    }
    return true;
  }

  // How a launch is told of in a failure.
  void describe_launch(const Launch& launch, char* text, size_t size) const {
    snprintf(text, size,
             " at grid (%llu,%llu,%llu), block (%llu,%llu,%llu), %llu bytes of dynamic shared memory; "
             "the GPU allows %d threads and by default %llu bytes a block",
             (unsigned long long)launch.grid[0], (unsigned long long)launch.grid[1],
             (unsigned long long)launch.grid[2], (unsigned long long)launch.block[0],
             (unsigned long long)launch.block[1], (unsigned long long)launch.block[2],
             (unsigned long long)launch.shared_bytes, properties_.maxThreadsPerBlock,
             (unsigned long long)properties_.sharedMemPerBlock);
  }

  bool allow_shared(const Program& program, Case& request) const {
    for (const Launch& launch : request.launches) {
      const KernelEntry& kernel = program.kernels[launch.kernel];
      if (launch.shared_bytes <= properties_.sharedMemPerBlock) continue;
      const bool fits = launch.shared_bytes <= Word(INT_MAX);
      const Outcome outcome = {
          fits ? kernel.device->allow_shared(size_t(launch.shared_bytes)) : hipErrorInvalidValue,
          TOKITAI_TEXT(hipFuncSetAttribute)};
      if (outcome.error != hipSuccess) return fail_launch(request, kernel, launch, outcome);
    }
    return true;
  }

  bool write_struct(Case& request, const Buffer& buffer) const {
    memcpy(file_ + buffer.content, buffer.room, buffer.bytes);
    return copy(request, buffer.pointer, buffer.room, buffer.bytes, hipMemcpyHostToDevice);
  }

  bool start_launch(const Program& program, Case& request, const Launch& launch) {
    const KernelEntry& kernel = program.kernels[launch.kernel];
    if (!lay_structs(*this, program, request, launch, false,
                     [this, &request](Buffer& buffer) { return write_struct(request, buffer); }))
      return false;
    Word words[argument_limit];
    point_words(request, kernel, launch, words);
    Word largest = launch.shared_bytes;
    for (unsigned d = 0; d < 3; d++) {
      if (launch.grid[d] > largest) largest = launch.grid[d];
      if (launch.block[d] > largest) largest = launch.block[d];
    }
    Outcome outcome = {hipErrorInvalidConfiguration, "launch"};
    if (largest <= Word(UINT_MAX))
      outcome.error = kernel.device->start(words, extent(launch.grid), extent(launch.block),
                                           size_t(launch.shared_bytes));
    outcome.call = starting_call;
    if (outcome.error == hipSuccess) return true;
    return fail_launch(request, kernel, launch, outcome);
  }

  static dim3 extent(const Word* words) {
    return dim3(unsigned(words[0]), unsigned(words[1]), unsigned(words[2]));
  }

  bool fail_launch(Case& request, const KernelEntry& kernel, const Launch& launch,
                   const Outcome& outcome) const {
    char place[512], where[1024];
    describe_launch(launch, place, sizeof place);
    snprintf(where, sizeof where, " of kernel %s%s; built for %s, the GPU is %s", kernel.name, place,
             TOKITAI_BUILT_FOR, arch_);
    return check(request, outcome, where);
  }
};

}  // namespace tokitai
