// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * usage: fuzz_NAME FILE [TIMES [SEED]]
 *
 * A fuzzer without its engine: runs the inputs that were kept, one in hexadecimal a line, and
 * then what chance makes of them, so many times, by seed (1). So any compiler's sanitizers see
 * them again, and the same ones on any machine. Where an input breaks something it is said, in
 * the same form.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"

enum { INPUT_MAX = 2048, KEPT_MAX = 4096 };

struct input {
	size_t len;
	uint8_t bytes[INPUT_MAX];
};

static struct input *kept[KEPT_MAX];
static size_t nr_kept;
static const struct input *running;
static uint64_t state;

static uint32_t chance(uint32_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % below;
}

/* Where there is a sanitizer. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

/* What broke it, as make fuzz takes it. */
static void show(void)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; running && i < running->len; i++) {
		char pair[] = { digits[running->bytes[i] >> 4], digits[running->bytes[i] & 15] };

		if (write(STDERR_FILENO, pair, 2) != 2)
			break;
	}
	if (running && write(STDERR_FILENO, " broke it\n", 10) != 10)
		_exit(1);
}

static void aborted(int signal)
{
	(void)signal;
	show();
	_exit(1);
}

static void run(const struct input *input)
{
	/* Its own allocation, so that reading past its end is seen. */
	uint8_t *copy = malloc(input->len ? input->len : 1);

	memcpy(copy, input->bytes, input->len);
	running = input;
	LLVMFuzzerTestOneInput(copy, input->len);
	running = NULL;
	free(copy);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void keep(const char *line)
{
	struct input *input = calloc(1, sizeof(*input));

	while (input->len < INPUT_MAX && digit(line[0]) >= 0 && digit(line[1]) >= 0) {
		input->bytes[input->len++] = (uint8_t)(digit(line[0]) << 4 | digit(line[1]));
		line += 2;
	}
	kept[nr_kept++] = input;
}

static int read_all(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t size = 0;

	if (!file) {
		perror(path);
		return 1;
	}
	while (nr_kept < KEPT_MAX && getline(&line, &size, file) > 0)
		if (*line != '#')
			keep(line);
	free(line);
	return fclose(file) || !nr_kept;
}

/* One with some bytes changed, and the end of another one, maybe. */
static void change(struct input *input)
{
	const struct input *other = kept[chance((uint32_t)nr_kept)];

	*input = *kept[chance((uint32_t)nr_kept)];
	if (chance(2) && input->len) {
		size_t at = chance((uint32_t)input->len), len = other->len;

		if (len > INPUT_MAX - at)
			len = INPUT_MAX - at;
		memcpy(input->bytes + at, other->bytes, len);
		input->len = at + len;
	}
	for (uint32_t nr = chance(8); nr && input->len; nr--)
		input->bytes[chance((uint32_t)input->len)] = (uint8_t)chance(256);
}

int main(int argc, char **argv)
{
	static struct input input;
	uint64_t times;

	if (argc < 2 || read_all(argv[1]))
		return 2;
	times = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	state = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	signal(SIGABRT, aborted);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(show);
	printf("%zu kept inputs, and %llu changed ones of seed %llu\n", nr_kept, (unsigned long long)times,
	       (unsigned long long)state);
	fflush(stdout);
	for (size_t i = 0; i < nr_kept; i++)
		run(kept[i]);
	for (; times; times--) {
		change(&input);
		run(&input);
	}
	for (size_t i = 0; i < nr_kept; i++)
		free(kept[i]);
	return 0;
}
