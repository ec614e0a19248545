// Behind what votes_off.h stands in front of.
#pragma pop_macro("__any")
#pragma pop_macro("__all")
