#pragma once

// Include this before anything of Highway: it says for which instruction sets code is generated. By number, since no
// version of Highway names all of them. Left out are sets that would be compiled for no gain in speed (bits 3 to 7:
// AVX-512 with more extensions than the ones we use), older ones than AVX2 (11 to 14: such processors take the code
// without vectors) and sets of unknown vector length (24 to 27: SVE; 37: RISC-V), whose vectors cannot be kept in
// arrays.
#define EINREL_UNUSED_TARGETS (0xF8LL | 0x7800LL | 0xF000000LL | (1LL << 37))
#ifdef EINREL_FEW_TARGETS  // for builds with sanitizers, which take minutes per set: without AVX-512 (8)
#define HWY_DISABLED_TARGETS (EINREL_UNUSED_TARGETS | 0x100LL)
#else
#define HWY_DISABLED_TARGETS EINREL_UNUSED_TARGETS
#endif
