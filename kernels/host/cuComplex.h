// Stands for <cuComplex.h> on the cpu device: HIP's functions under CUDA's names.
#pragma once

#include <hip/hip_complex.h>

using cuFloatComplex = hipFloatComplex;
using cuDoubleComplex = hipDoubleComplex;
using cuComplex = hipComplex;
#define cuCrealf hipCrealf
#define cuCimagf hipCimagf
#define cuConjf hipConjf
#define cuCabsf hipCabsf
#define cuCaddf hipCaddf
#define cuCsubf hipCsubf
#define cuCmulf hipCmulf
#define cuCdivf hipCdivf
#define cuCfmaf hipCfmaf
#define cuCreal hipCreal
#define cuCimag hipCimag
#define cuConj hipConj
#define cuCabs hipCabs
#define cuCadd hipCadd
#define cuCsub hipCsub
#define cuCmul hipCmul
#define cuCdiv hipCdiv
#define cuCfma hipCfma
#define make_cuFloatComplex make_hipFloatComplex
#define make_cuDoubleComplex make_hipDoubleComplex
#define make_cuComplex make_hipComplex
#define cuComplexDoubleToFloat hipComplexDoubleToFloat
#define cuComplexFloatToDouble hipComplexFloatToDouble
