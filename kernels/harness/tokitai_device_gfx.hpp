// The gfx device: machine code of an AMD GPU, translated to functions of the host that run its waves.
#pragma once

#include "gfx/run/findings.hpp"
#include "gfx/run/slowly.hpp"
#include "tokitai_faults.hpp"
#include "tokitai_regions.hpp"

namespace tokitai {

namespace gfx {

Nearby nearby = Nearby::nominal;

const Area* area_at(const Wave& w, u64 address, u64 bytes) {
  const Launch& launch = *w.group->launch;
  for (unsigned i = 0; i < launch.area_count; i++) {
    const Area& area = launch.areas[i];
    const u64 offset = address - reinterpret_cast<u64>(area.begin);
    if (offset < area.bytes && area.bytes - offset >= bytes) return &area;
  }
  return nullptr;
}
void report(const Wave& w, const Found& found) { keep(w, found); }
void report_unset(const Wave& w, u32 at, u32 lane, Matter matter) {
  static const char* const words[] = {"an address", "what is stored", "a branch", "which lanes go on", kept_in_lds};
  report(w, {Fault::unset, at, lane, 0, 0, false, words[unsigned(matter)], 0, 0, false});
}
void run_slowly(Wave& w, const Region& region) { run_region_slowly(w, region, *w.group->launch->kernel); }
u64 code_at(const Wave& w, u64 address) { return w.group->launch->image + address; }
void trapped(Wave& w, u32 at) {
  w.state = State::stopped;
  stop(*w.group->launch, "s_trap, as of a failed assertion", at);
}
void unmodelled(Wave& w, u32 at, const char* what) {
  w.state = State::stopped;
  stop(*w.group->launch, what, at, true);
}
void lost(Wave& w) {
  w.state = State::stopped;
  stop(*w.group->launch, "code goes on where none was translated", w.pc, true);
}

}  // namespace gfx

inline void describe_fault_place(char* text, size_t size) { snprintf(text, size, "; in translated code"); }
inline bool explain_address(const unsigned char*, char*, size_t) { return false; }
inline void note_fault(const char*, const void*, const void*) {}

class Device : public Regions {
 public:
  static constexpr const char* name = "gfx";
  static constexpr size_t shared_limit = TOKITAI_SHARED_LIMIT;

  bool take_option(const char* option) {
    constexpr unsigned most_threads = 256;
    unsigned threads;
    if (sscanf(option, "--threads=%u", &threads) != 1 || threads > most_threads) return false;
    threads_ = threads;
    return true;
  }

  bool start(int memory, char* hello, size_t size) {
    attach(memory);
    if (!threads_) threads_ = usable_cores();
    const bool loaded = image_.load();
    snprintf(hello, size,
             "status=%s\ndevice=gfx\nwarp_size=%u\nfact.threads=%u|child\n"
             "fact.compiler of the translation=%s|__VERSION__\n",
             loaded ? "ok" : "no memory for the code object", gfx::wave_size, threads_, __VERSION__);
    return loaded;
  }

  bool open(const Program& program, Case& request) {
    written_.allocate(request.buffers.count);
    gfx::nearby = gfx::Nearby(request.approximation);
    return Regions::open(program, request);
  }

  bool prepare(const Program& program, Case& request, size_t repetition) {
    if (!Regions::prepare(program, request, repetition)) return false;
    for (size_t b = 0; b < request.buffers.count; b++) {
      const Buffer& buffer = request.buffers[b];
      if (!buffer.is_result() || buffer.fill != Fill::pattern) continue;
      free(written_[b]);
      written_[b] = static_cast<unsigned char*>(calloc(1, buffer.bytes + 1));
      if (!written_[b]) return request.fail(Status::out_of_memory, "no memory to note what is written");
    }
    for (const Launch& launch : request.launches) {
      const KernelEntry& kernel = program.kernels[launch.kernel];
      if (!launch_is_valid(kernel, request, launch, kernel.device->lds_bytes, shared_limit)) return false;
    }
    return true;
  }

  bool run(const Program& program, Case& request, size_t repetition, Word& nanoseconds) {
    const Word begin = now();
    for (const Launch& launch : request.launches)
      if (!start_launch(program, request, launch, repetition)) return false;
    nanoseconds = now() - begin;
    return true;
  }

  void close(Case& request) {
    if (request.status == Status::ok) gfx::tell_findings(request.message, sizeof request.message);
    gfx::forget_findings();
    for (size_t b = 0; b < written_.count; b++) free(written_[b]);
    written_.allocate(0);
    forget_words();
    Regions::close(request);
  }

 protected:
  void* symbol_address(const SymbolEntry& symbol) const override {
    return image_.memory + reinterpret_cast<uintptr_t>(symbol.device);
  }

 private:
  unsigned threads_ = 0;
  gfx::Image image_;
  Array<unsigned char*> written_;

  gfx::Words words_[gfx::area_limit];  // of the areas of a launch
  uint64_t first_number_ = 1;

  // Numbers of the launch's blocks, of which none was used before in uses that are kept.
  uint32_t take_numbers(uint64_t count) {
    if (first_number_ + count >> 31) forget_words();
    const auto first = uint32_t(first_number_);
    first_number_ += count;
    return first;
  }
  void forget_words() {
    for (gfx::Words& words : words_) words.clear();
    first_number_ = 1;
  }

  void add_areas(const Case& request, gfx::Launch& made) {
    const unsigned shift = made.kernel->word_shift;
    const auto add = [this, &made, shift](unsigned char* begin, uint64_t bytes, unsigned char* written,
                                          bool writable, bool watched, int buffer, const char* what) {
      if (!begin || !bytes || made.area_count >= gfx::area_limit) return;
      gfx::WordUse* uses = watched ? words_[made.area_count].of((bytes >> shift) + 1) : nullptr;
      made.areas[made.area_count++] = {begin, bytes, written, writable, buffer, what, uses, shift};
    };
    for (size_t b = 0; b < request.buffers.count; b++) {
      const Buffer& buffer = request.buffers[b];
      if (!buffer.in_symbol)
        add(buffer.pointer, buffer.bytes, written_[b], true, buffer.is_result(), int(b), "a buffer");
    }
    for (unsigned i = 0; i < gfx::image_data.segment_count; i++) {
      const gfx::Segment& segment = gfx::image_data.segments[i];
      add(image_.memory + segment.address, segment.bytes, nullptr, segment.writable, segment.writable, -1,
          "the code object");
    }
  }

  static uint64_t value_of(const gfx::Slot& slot, const Case& request, const KernelEntry& kernel,
                           const Launch& launch) {
    using gfx::Source;
    switch (slot.source) {
      case Source::word: {
        Word words[argument_limit];
        point_words(request, kernel, launch, words);
        return words[slot.index];
      }
      case Source::block_count_x: return launch.grid[0];
      case Source::block_count_y: return launch.grid[1];
      case Source::block_count_z: return launch.grid[2];
      case Source::group_size_x: return launch.block[0];
      case Source::group_size_y: return launch.block[1];
      case Source::group_size_z: return launch.block[2];
      case Source::grid_dims:
        return launch.grid[2] * launch.block[2] > 1 ? 3 : launch.grid[1] * launch.block[1] > 1 ? 2 : 1;
      case Source::dynamic_lds_size: return launch.shared_bytes;
      case Source::private_base: return gfx::scratch_aperture;
      case Source::shared_base: return gfx::lds_aperture;
      default: return 0;
    }
  }

  bool start_launch(const Program& program, Case& request, const Launch& launch, size_t repetition) {
    const KernelEntry& kernel = program.kernels[launch.kernel];
    const DeviceKernel& code = *kernel.device;
    if (!lay(program, request, launch)) return false;
    static gfx::Launch made;
    made = {};
    made.kernel = &code;
    made.name = kernel.name;
    for (int d = 0; d < 3; d++) {
      made.grid[d] = uint32_t(launch.grid[d]);
      made.block[d] = uint32_t(launch.block[d]);
    }
    made.lds_bytes = uint32_t(code.lds_bytes + launch.shared_bytes);
    made.fill = fill_of(repetition);
    made.seed = request.repetitions[repetition].seed;
    made.image = reinterpret_cast<uint64_t>(image_.memory);
    alignas(64) static unsigned char arguments[4096 + 64], packet[64];
    if (code.argument_bytes > 4096) return request.fail(Status::runtime_error, "too many arguments");
    memset(arguments, 0, sizeof arguments);
    for (unsigned i = 0; i < code.slot_count; i++) {
      const uint64_t value = value_of(code.slots[i], request, kernel, launch);
      memcpy(arguments + code.slots[i].offset, &value, code.slots[i].bytes);
    }
    describe_dispatch(packet, made, code, arguments);
    made.arguments = arguments;
    made.packet = packet;
    made.first_number = take_numbers(launch.grid[0] * launch.grid[1] * launch.grid[2]);
    add_areas(request, made);
    const auto add = [](unsigned char* begin, uint64_t bytes) {
      made.areas[made.area_count++] = {begin, bytes, nullptr, false, -1, "arguments", nullptr, 0};
    };
    add(arguments, code.argument_bytes ? code.argument_bytes : 1);
    add(packet, sizeof packet);
    if (gfx::run(made, threads_)) return true;
    return request.fail(made.not_modelled ? Status::not_modelled : Status::runtime_error, "%s", made.why);
  }

  // A dispatch packet (HSA Platform System Architecture Specification 1.2, 2.9.6).
  static void describe_dispatch(unsigned char* packet, const gfx::Launch& launch, const DeviceKernel& kernel,
                                const unsigned char* arguments) {
    memset(packet, 0, 64);
    const auto put = [packet](size_t at, auto value) { memcpy(packet + at, &value, sizeof value); };
    for (unsigned d = 0; d < 3; d++) {
      put(4 + 2 * d, uint16_t(launch.block[d]));
      put(12 + 4 * d, launch.grid[d] * launch.block[d]);
    }
    put(2, uint16_t(3));
    put(24, kernel.scratch_bytes);
    put(28, launch.lds_bytes);
    put(40, reinterpret_cast<uint64_t>(arguments));
  }
};

}  // namespace tokitai
