// Words of global memory that several waves of a launch access. Blocks have no order but what fences of device
// scope give (buffer_gl1_inv, which an acquire of that scope needs): two blocks that have made none yet race
// on a word that one of them writes, in whatever order they came. What a block accesses behind such a fence
// may be ordered by a flag that is not known, and is not held against other blocks. Waves of one block race
// within an interval between barriers in which none made a fence of the block's scope.
#pragma once

#include <stddef.h>
#include <sys/mman.h>

#include "unset.hpp"

namespace tokitai::gfx {

// An access in 64 bits, so that threads of the host exchange it at once: the last one of its kind, and whether
// other waves made one in its interval and other blocks any, atomic ones or others.
struct Access {
  static constexpr u32 last_interval = 511, any_place = 0x7fff;
  static constexpr u64 atomic_flag = 1, waves_flag = 2, blocks_flag = 4, atomic_blocks_flag = 8;
  u64 bits;

  static Access of(u32 block, u32 place, u32 interval, u32 wave, bool atomic) {
    return {u64(block) << 33 | u64(place) << 18 | u64(interval) << 9 | wave << 4 | u64(atomic)};
  }
  u32 block() const { return u32(bits >> 33); }  // numbers go on from launch to launch
  u32 place() const { return u32(bits >> 18) & any_place; }
  u32 interval() const { return u32(bits >> 9) & 511; }
  u32 wave() const { return u32(bits >> 4) & 31; }
  bool has(u64 flag) const { return bits & flag; }
};
struct WordUse {
  u64 write, read;
};

// What of the other accesses no order keeps from `mine`, which is one wave's.
enum class Other : u32 { none, atomic, plain };
inline Other unordered(Access other, Access mine, bool in_block) {
  if (!other.bits) return Other::none;
  const bool far = other.block() != mine.block();
  const bool near = !far && in_block && other.interval() == mine.interval() &&
                    mine.interval() != Access::last_interval &&
                    (other.wave() != mine.wave() || other.has(Access::waves_flag));
  const bool atomic = other.has(Access::atomic_flag);
  if (other.has(Access::blocks_flag) || ((far || near) && !atomic)) return Other::plain;
  return far || near || other.has(Access::atomic_blocks_flag) ? Other::atomic : Other::none;
}

// What is told of the word with this access.
inline Access joined(Access before, Access mine) {
  if (!before.bits) return mine;
  u64 flags = before.bits & (Access::blocks_flag | Access::atomic_blocks_flag);
  if (before.block() != mine.block())
    flags |= before.has(Access::atomic_flag) ? Access::atomic_blocks_flag : Access::blocks_flag;
  else if (before.interval() == mine.interval() && (before.wave() != mine.wave() || before.has(Access::waves_flag)))
    flags |= Access::waves_flag;
  return {mine.bits | flags};
}

// An access, or none where it is of another launch: its block's number is below `first`.
inline Access read_access(const u64& place, u32 first) {
  const Access found = {__atomic_load_n(&place, __ATOMIC_SEQ_CST)};
  return found.block() < first ? Access{0} : found;
}
// Puts an access down; what was there before it.
inline Access put_access(u64& place, Access mine, u32 first) {
  u64 held = __atomic_load_n(&place, __ATOMIC_SEQ_CST);
  for (;;) {
    const Access before = Access{held}.block() < first ? Access{0} : Access{held};
    const Access made = joined(before, mine);
    if (made.bits == held || __atomic_compare_exchange_n(&place, &held, made.bits, true, __ATOMIC_SEQ_CST,
                                                         __ATOMIC_SEQ_CST))
      return before;
  }
}

// Uses of the words of one area, kept from launch to launch, as block numbers tell of which one each is.
class Words {
 public:
  // Of so many words at least, or null where that is too much. It costs what is touched.
  WordUse* of(u64 count) {
    constexpr u64 most = u64(1) << 26;
    if (count > most) return nullptr;
    if (count <= count_) return words_;
    clear();
    void* made = mmap(nullptr, count * sizeof(WordUse), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    count_ = count;
    return words_ = static_cast<WordUse*>(made);
  }
  void clear() {
    if (words_) munmap(words_, count_ * sizeof(WordUse));
    words_ = nullptr;
    count_ = 0;
  }

 private:
  WordUse* words_ = nullptr;
  u64 count_ = 0;
};

}  // namespace tokitai::gfx
