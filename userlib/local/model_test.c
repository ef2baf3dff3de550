// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An engine's model is read as it is written, and what is wrong is refused with what is allowed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "model.h"

static void expect(const char *text, uint32_t units, uint32_t buffer, uint32_t window, uint32_t pulses)
{
	struct muster_engine_model model;
	char why[256] = "";

	assert_int_equal(muster_model_read("NAME", text, &model, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	assert_int_equal(model.units, units);
	assert_int_equal(model.buffer, buffer);
	assert_int_equal(model.window, window);
	assert_int_equal(model.pulses, pulses);
	assert_int_equal(model.threads, 0);
}

static void test_what_is_said_counts_and_the_rest_is_as_ever(void **state)
{
	(void)state;
	expect(NULL, 0, 0, 0, 0);
	expect("", 0, 0, 0, 0);
	expect("units=2", 2, 0, 0, 0);
	expect("buffer=64K,window=1,pulses=3,units=8", 8, 64 << 10, 1, 3);
	expect("buffer=128M", 0, 128 << 20, 0, 0);
	expect("buffer=0", 0, MUSTER_ENGINE_NO_BUFFER, 0, 0);
	expect("buffer=4096,", 0, 4096, 0, 0);
}

static void test_what_is_wrong_is_refused_with_what_is_allowed(void **state)
{
	static const char *const wrong[] = {
		"units", "units=", "units=0", "units=65", "units=-1", "units= 1", "units=1K0", "units=1;pulses=1",
		"buffer=1000", "buffer=129M", "buffer=5000M", "buffer=99999999999999999999", "window=0",
		"window=9", "pulses=5", "reserve=10", ",", "units=1,,pulses=1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct muster_engine_model model;
		char why[256] = "";

		assert_int_equal(muster_model_read("NAME", wrong[i], &model, why, sizeof(why)), -EINVAL);
		assert_ptr_equal(strstr(why, "NAME="), why);
		assert_non_null(strstr(why, wrong[i]));
		assert_non_null(strstr(why, "allowed is a list of units=1 to 64, buffer=0 to 128M in steps of"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_said_counts_and_the_rest_is_as_ever),
		cmocka_unit_test(test_what_is_wrong_is_refused_with_what_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
