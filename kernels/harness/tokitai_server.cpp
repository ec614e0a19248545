// The unit that serves kernels. It is built once for a compiler and its flags, and linked to the unit of
// each source.
#include "tokitai_harness.hpp"

int main(int argc, char** argv) { return tokitai::serve(argc, argv, tokitai_program()); }
