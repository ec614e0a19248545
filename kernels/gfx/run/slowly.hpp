// Regions whose registers are not all set, step by step (unset.hpp).
#pragma once

#include "program.hpp"

namespace tokitai::gfx {

// Registers of one instruction: a product of matrices has the most.
constexpr u32 step_limit = wave_size == 64 ? 80 : 40;

struct Held {
  u32 value[wave_size] = {}, unset[wave_size] = {};  // of a scalar register the first
};

inline bool is_exec(u32 scalar) { return scalar >= exec_scalar; }
inline u32 scalar_value(const Wave& w, u32 scalar) {
  if (is_exec(scalar)) return mask_part(w.exec, scalar - exec_scalar);
  return scalar == scc_scalar ? w.scc : w.s[scalar];
}
inline void read_number(Wave& w, u32 number, u32* values) {
  if (number < scalar_number)
    memcpy(values, w.v[number].lane, sizeof(Row));
  else
    values[0] = scalar_value(w, number - scalar_number);
}
inline void write_number(Wave& w, u32 number, const u32* values) {
  const u32 scalar = number - scalar_number;
  if (number < scalar_number)
    memcpy(w.v[number].lane, values, sizeof(Row));
  else if (is_exec(scalar))
    w.set_exec_part(values[0], scalar - exec_scalar);
  else
    (scalar == scc_scalar ? w.scc : w.s[scalar]) = scalar == scc_scalar ? values[0] & 1 : values[0];
}

// A value with its unset bits all changed, all 0, all 1, those of what it may be compared with (a constant or
// another value), or some changed.
constexpr u32 turns = 7;
inline u32 other_value(u32 value, u32 unset, u32 turn, u32 salt, u32 constant, u32 next) {
  const auto taken = [=](u32 bits) { return (value & ~unset) | (bits & unset); };
  switch (turn) {
    case 0: return value ^ unset;
    case 1: return taken(0);
    case 2: return taken(~0u);
    case 3: return taken(constant);
    case 4: return taken(next);
  }
  u64 mixed = (u64(turn) << 32 | salt) * 0x9e3779b97f4a7c15ull;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9ull;
  return value ^ (unset & u32(mixed >> 24));
}

// Runs the step with its own values, and what is left unset of what it writes by running it with others.
inline void sample(Wave& w, const Step& step, u32 number, const DeviceKernel& kernel) {
  Held in[step_limit], out[step_limit];
  const u16 *ins = step.numbers, *outs = ins + step.in_count;
  Unset& unset = w.unset;
  for (u32 i = 0; i < step.in_count; i++) {
    read_number(w, ins[i], in[i].value);
    for (u32 l = 0; l < wave_size; l++)
      in[i].unset[l] =
          ins[i] < scalar_number ? unset_of(unset, ins[i], l) : l ? 0 : unset.scalar[ins[i] - scalar_number];
  }
  kernel.step(w, number);
  for (u32 i = 0; i < step.out_count; i++) {
    read_number(w, outs[i], out[i].value);
    memset(out[i].unset, 0, sizeof out[i].unset);
  }
  for (u32 turn = 0; turn < turns; turn++) {
    for (u32 i = 0; i < step.in_count; i++) {
      u32 values[wave_size];
      for (u32 l = 0; l < wave_size; l++)
        values[l] = other_value(in[i].value[l], in[i].unset[l], turn, ins[i] * wave_size | l, step.constant,
                                in[(i + 1) % step.in_count].value[l]);
      write_number(w, ins[i], values);
    }
    kernel.step(w, number);
    for (u32 i = 0; i < step.out_count; i++) {
      u32 values[wave_size];
      read_number(w, outs[i], values);
      for (u32 l = 0; l < (outs[i] < scalar_number ? wave_size : 1); l++) out[i].unset[l] |= values[l] ^ out[i].value[l];
    }
  }
  for (u32 i = 0; i < step.in_count; i++) write_number(w, ins[i], in[i].value);
  for (u32 i = 0; i < step.out_count; i++) {
    write_number(w, outs[i], out[i].value);
    if (outs[i] < scalar_number) {
      for (u32 l = 0; l < wave_size; l++) put_unset(unset, outs[i], l, out[i].unset[l]);
      continue;
    }
    const u32 scalar = outs[i] - scalar_number;
    set_scalar(unset, scalar);
    if (!out[i].unset[0]) continue;
    if (is_exec(scalar)) {
      const u32 lane = u32(__builtin_ctz(out[i].unset[0])) + 32 * (scalar - exec_scalar);
      report_unset(w, step.at, lane, Matter::exec);
      continue;
    }
    unset.scalar[scalar] = out[i].unset[0];
    unset.whole[(scalar_half + scalar) >> 6] &= ~(u64(1) << (scalar & 63));
  }
}

inline void check_step(const Wave& w, const Step& step) {
  const u16* check = step.numbers + step.in_count + step.out_count + step.read_count + step.write_count;
  for (u32 i = 0; i < step.check_count; i++, check += 4) {
    const u32 mask = check[2] | u32(check[3]) << 16;
    const auto matter = Matter(check[1]);
    if (check[0] >= scalar_number) {
      if (w.unset.scalar[check[0] - scalar_number] & mask) report_unset(w, step.at, 0, matter);
      continue;
    }
    for (LaneMask lanes = w.exec; lanes; lanes &= lanes - 1) {
      const u32 l = first_of(lanes);
      if (!(unset_of(w.unset, check[0], l) & mask)) continue;
      report_unset(w, step.at, l, matter);
      break;
    }
  }
}

inline void run_region_slowly(Wave& w, const Region& region, const DeviceKernel& kernel) {
  for (u32 number = region.first; number < region.end; number++) {
    const Step& step = kernel.steps[number];
    const u16 *reads = step.numbers + step.in_count + step.out_count, *writes = reads + step.read_count;
    bool good = !step.always;
    for (u32 i = 0; i < step.read_count && good; i++) good = is_set(w, reads[i]);
    if (!good && !step.once) {
      sample(w, step, number, kernel);
      continue;
    }
    if (!good) check_step(w, step);
    for (u32 i = 0; i < step.write_count; i++) set_any(w.unset, writes[i], w.exec);
    kernel.step(w, number);
  }
}

}  // namespace tokitai::gfx
