// In front of CCCL's headers, which have functions of their own under the names of HIP's votes.
#pragma push_macro("__any")
#pragma push_macro("__all")
#undef __any
#undef __all
