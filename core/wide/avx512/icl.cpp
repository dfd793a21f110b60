// The loops of this folder again, for processors that have more than the first ones with AVX-512.
#define EVERTREE_AVX512_ICL 1

#include "cuts.cpp"
#include "few.cpp"
#include "handful.cpp"
