// The server of docs/internals/protocol.md, the same for every device: reads run requests, has the device
// carry them out, answers. It is a unit of its own, so that no macro of a kernel's source can touch it.
#pragma once

#ifndef TOKITAI_RUNS_GFX
#include <hip/hip_runtime.h>
#endif

#include "tokitai_case.hpp"

// The host headers that stand for HIP's say that they are there.
#ifdef TOKITAI_RUNS_GFX
#include "tokitai_device_gfx.hpp"
#elif defined(TOKITAI_DEVICE_CPU)
#include "tokitai_device_cpu.hpp"
#else
#include "tokitai_device_hip.hpp"
#endif

namespace tokitai {

inline bool is_in_range(const Parameter& parameter, int64_t value) {
  return value >= parameter.lowest && (value < 0 || Word(value) <= parameter.highest);
}

// Every integer must fit the kernel's own parameter before anything runs.
inline bool arguments_fit(const Program& program, Case& request) {
  for (const Launch& launch : request.launches) {
    const KernelEntry& kernel = program.kernels[launch.kernel];
    for (unsigned i = 0; i < launch.argument_count; i++) {
      if (kernel.parameters[i].kind != Argument::integer) continue;
      const auto value = int64_t(launch.arguments[2 * i + 1]);
      if (!is_in_range(kernel.parameters[i], value))
        return request.fail(Status::argument_misfit,
                            "argument %s (counted from 0) of kernel %s: %lld does not fit the "
                            "kernel's type, which holds %lld to %llu",
                            kernel.parameters[i].place, kernel.name, (long long)value,
                            (long long)kernel.parameters[i].lowest,
                            (unsigned long long)kernel.parameters[i].highest);
    }
  }
  return true;
}

inline bool run_repetitions(Device& device, const Program& program, Case& request) {
  Word untimed;
  for (Word i = 0; i < request.warmups; i++)
    if (!device.prepare(program, request, 0) || !device.run(program, request, 0, untimed))
      return false;
  for (size_t r = 0; r < request.repetitions.count; r++) {
    if (!device.prepare(program, request, r) ||
        !device.run(program, request, r, request.nanoseconds[r]) || !device.collect(program, request, r))
      return false;
    request.repetitions_done++;
  }
  return true;
}

inline bool run_case(Device& device, const Program& program, Case& request) {
  if (!arguments_fit(program, request) || !device.open(program, request) ||
      !run_repetitions(device, program, request))
    return false;
  for (Buffer& buffer : request.buffers) {
    if (buffer.is_read_only() && !device.compare_input(request, buffer)) return false;
    const int64_t at = buffer.first_changed;
    if (buffer.made && buffer.bytes_changed && at >= 0 && at < int64_t(buffer.bytes))
      buffer.first_changed |= int64_t(field_at(*buffer.made, Word(at)) << 32);
  }
  return true;
}

inline bool answer(int response, Case& request) {
  if (request.status != Status::ok) {
    const Word words[] = {opcode_run, request.number, Word(request.status)};
    return write_frame(response, words, 3, request.message);
  }
  Array<Word> words;
  words.allocate(5 + request.nanoseconds.count + 2 * request.buffers.count);
  size_t at = 0;
  words[at++] = opcode_run;
  words[at++] = request.number;
  words[at++] = Word(request.status);
  words[at++] = request.repetitions_done;
  for (Word nanoseconds : request.nanoseconds) words[at++] = nanoseconds;
  words[at++] = request.buffers.count;
  for (const Buffer& buffer : request.buffers) {
    words[at++] = buffer.bytes_changed;
    words[at++] = Word(buffer.first_changed);
  }
  return write_frame(response, words.items, words.count, request.message);
}

struct Descriptors {
  int request = -1, response = -1, memory = -1;
};

inline void read_options(int argc, char** argv, Device& device, Descriptors& descriptors) {
  for (int i = 1; i < argc; i++) {
    const char* option = argv[i];
    if (sscanf(option, "--request-fd=%d", &descriptors.request) == 1 ||
        sscanf(option, "--response-fd=%d", &descriptors.response) == 1 ||
        sscanf(option, "--memory-fd=%d", &descriptors.memory) == 1 || device.take_option(option))
      continue;
    fprintf(stderr, "tokitai child: cannot read the option %s\n", option);
    exit(exit_usage);
  }
  if (descriptors.request < 0 || descriptors.response < 0 || descriptors.memory < 0)
    end_with(exit_usage, "needs --request-fd=N --response-fd=N --memory-fd=N; the tool starts it");
}

inline void say_hello(int response, Device& device, int memory) {
  char facts[4096] = "", hello[4200];
  const bool usable = device.start(memory, facts, sizeof facts);
  snprintf(hello, sizeof hello, "tokitai-child 1 u64le\n%s", facts);
  if (!write_frame(response, nullptr, 0, hello)) end_with(exit_pipe, "the response pipe is closed");
  if (!usable) exit(exit_no_device);
}

// Serves until the request pipe ends; never returns anything but the exit code 0.
inline int serve(int argc, char** argv, const Program& program) {
  static Device device;
  Descriptors descriptors;
  read_options(argc, argv, device, descriptors);
  // What a kernel prints must reach the log even where the kernel then dies.
  setvbuf(stdout, nullptr, _IOLBF, 0);
  catch_faults(descriptors.response);
  say_hello(descriptors.response, device, descriptors.memory);
  for (;;) {
    Word length;
    const Read got = read_all(descriptors.request, &length, sizeof length);
    if (got == Read::end_of_file) exit(0);
    if (got != Read::whole) end_with(exit_garbage, "a frame's length was cut off");
    if (length > frame_limit || length % sizeof(Word) != 0)
      end_with(exit_garbage, "a frame's length is not one that the tool sends");
    Array<Word> frame;
    frame.allocate(length / sizeof(Word));
    if (read_all(descriptors.request, frame.items, length) != Read::whole)
      end_with(exit_garbage, "a frame was cut off");
    Case request;
    if (!parse_case(frame.items, frame.count, program, request))
      end_with(exit_garbage, "a frame is no run request for this harness");
    faults.running = &request;
    run_case(device, program, request);
    faults.running = nullptr;
    fflush(stdout);
    // From the answer on the memory file is the tool's again.
    device.close(request);
    if (!answer(descriptors.response, request)) end_with(exit_pipe, "the response pipe is closed");
  }
}

}  // namespace tokitai
