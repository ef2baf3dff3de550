// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The tests of arith_test.c once more, on what a processor without AVX2 runs:
 * both agree with the same reference, hence with each other.
 */
#define CLONES
#include "arith.c"
#include "arith_floats.c"
#include "arith_halves.c"
#include "arith_integers.c"
#include "arith_moves.c"
#include "arith_pairs.c"
#include "arith_rows.c"
#include "arith_test.c"
