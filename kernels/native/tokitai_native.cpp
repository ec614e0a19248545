// The inner loops of large cases: the walk over an output, and the operations of formulas.
// What they do is what the numpy code does, which is the reference: see tokitai_cli/judge and
// tokitai_cli/oracles/formula. Built with -ffp-contract=off: each operation rounds by itself.
#include "tokitai_intervals.hpp"
#include "tokitai_walk.hpp"
