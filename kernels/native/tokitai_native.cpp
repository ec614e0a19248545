// The inner loops of large cases: the walk over an output, the operations of formulas, replays of
// products, and the numbers of inputs. What they do is what the numpy code does, which is the reference: see
// tokitai_cli/judge, oracles/formula, spec/inputs and core. Built with -ffp-contract=off: each operation rounds by itself.
#include "tokitai_draws.hpp"
#include "tokitai_intervals.hpp"
#include "tokitai_products.hpp"
#include "tokitai_walk.hpp"
