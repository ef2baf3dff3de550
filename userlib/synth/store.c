// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A file's name is the digest of its instance, whole: topology, places, steps and
 * rounds. It appears under its name only when it is complete. What does not read,
 * or does not verify, is as if it were not there. What the plain encoding did is kept
 * apart, by seed and limit, time-outs too: it is measured, and would only do it again.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store.h"
#include "words.h"

static void path_of(const char *folder, const struct muster_instance *instance,
		    const struct muster_solve_options *options, char *path, size_t len)
{
	char measured[64] = "";
	uint32_t numbers[] = {
		htole32(instance->chunks), htole32(instance->steps), htole32(instance->rounds),
	};
	size_t places = (size_t)instance->chunks * instance->topology->nodes;
	XXH128_hash_t hash;

	hash = XXH3_128bits_withSeed(numbers, sizeof(numbers),
				     muster_topology_hash(instance->topology));
	hash = XXH3_128bits_withSeed(instance->pre, places, hash.low64 ^ hash.high64 << 1);
	hash = XXH3_128bits_withSeed(instance->post, places, hash.low64 ^ hash.high64 << 1);
	if (instance->shape) {
		uint64_t shape = muster_schedule_hash(instance->shape);

		hash = XXH3_128bits_withSeed(&shape, sizeof(shape), hash.low64);
	}
	if (options->plain)
		snprintf(measured, sizeof(measured), "-plain-%u-%u", options->seed,
			 options->cpu_seconds);
	snprintf(path, len, "%s/%016" PRIx64 "%016" PRIx64 "%s.solved", folder,
		 (uint64_t)hash.high64, (uint64_t)hash.low64, measured);
}

/* send STEP CHUNK LINK, or reduce where it combines */
static int read_sends(struct muster_words *words, const struct muster_instance *instance,
		      struct muster_solution *solution)
{
	size_t room = (size_t)instance->chunks * instance->topology->nodes * instance->steps;
	int err;

	solution->sends = calloc(room + 1, sizeof(*solution->sends));
	if (!solution->sends)
		return -ENOMEM;
	while (!(err = muster_words_next(words)) && words->nr == 4 && solution->nr_sends < room) {
		struct muster_send *send = &solution->sends[solution->nr_sends++];

		send->reduce = !strcmp(words->word[0], "reduce");
		err = muster_words_number(words, "step", words->word[1], 0, instance->steps - 1,
					  &send->step);
		if (!err)
			err = muster_words_number(words, "chunk", words->word[2], 0,
						  instance->chunks - 1, &send->chunk);
		if (!err)
			err = muster_words_number(words, "link", words->word[3], 0,
						  instance->topology->nr_links - 1, &send->link);
		if (err)
			return err;
	}
	if (!err && (words->nr != 1 || strcmp(words->word[0], "end")))
		err = muster_words_refuse(words, "\"end\" expected");
	return err;
}

static int read_head(struct muster_words *words, enum muster_proof *proof, double *cpu_seconds)
{
	uint32_t microseconds;
	const char *word;
	int err = muster_words_head(words, "muster-solved", &word);

	if (!err && strcmp(word, "2"))
		err = -EINVAL;
	if (!err)
		err = muster_words_head(words, "microseconds", &word);
	if (!err)
		err = muster_words_number(words, "time", word, 0, UINT32_MAX, &microseconds);
	if (!err)
		err = muster_words_head(words, "proof", &word);
	if (err)
		return err;
	*cpu_seconds = microseconds / 1e6;
	for (*proof = MUSTER_PROOF_UNKNOWN; *proof <= MUSTER_PROOF_REFUTED; ++*proof)
		if (!strcmp(word, muster_proof_name(*proof)))
			return 0;
	return -EINVAL;
}

static int read_answer(FILE *in, const struct muster_instance *instance,
		       struct muster_solved *solved)
{
	struct muster_words *words = calloc(1, sizeof(*words));
	struct muster_solution *solution = calloc(1, sizeof(*solution));
	enum muster_proof proof;
	int err = words && solution ? 0 : -ENOMEM;

	if (!err) {
		*words = (struct muster_words){ .in = in, .why = solved->why,
						.why_len = sizeof(solved->why) };
		err = read_head(words, &proof, &solved->cpu_seconds);
	}
	if (!err && proof == MUSTER_PROOF_FOUND) {
		solution->steps = instance->steps;
		err = read_sends(words, instance, solution);
		if (!err)
			err = muster_solution_verify(instance, solution, solved->why,
						     sizeof(solved->why));
		if (!err) {
			solved->solution = solution;
			solution = NULL;
		}
	}
	if (!err)
		solved->proof = proof;
	muster_solution_free(solution);
	free(words);
	return err;
}

static bool find_answer(const char *path, const struct muster_instance *instance, bool plain,
			struct muster_solved *solved)
{
	FILE *in = fopen(path, "re");
	int err;

	*solved = (struct muster_solved){ .proof = MUSTER_PROOF_UNKNOWN };
	if (!in)
		return false;
	err = read_answer(in, instance, solved);
	fclose(in);
	if (err)
		return false;
	if (!plain)
		solved->cpu_seconds = 0;	/* but it is what was measured, if that is the use */
	solved->kept = true;
	snprintf(solved->why, sizeof(solved->why), "solved before");
	return true;
}

static void keep_answer(const char *folder, const char *path, const struct muster_solved *solved)
{
	char draft[PATH_MAX];
	FILE *out;
	bool good;

	mkdir(folder, 0777);
	snprintf(draft, sizeof(draft), "%s.%d", path, (int)getpid());
	out = fopen(draft, "we");
	if (!out)
		return;
	fprintf(out, "muster-solved 2\nmicroseconds %.0f\nproof %s\n",
		solved->cpu_seconds * 1e6, muster_proof_name(solved->proof));
	for (uint32_t i = 0; solved->solution && i < solved->solution->nr_sends; i++)
		fprintf(out, "%s %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
			solved->solution->sends[i].reduce ? "reduce" : "send",
			solved->solution->sends[i].step, solved->solution->sends[i].chunk,
			solved->solution->sends[i].link);
	fprintf(out, "end\n");
	good = !fflush(out) && !ferror(out);
	if (fclose(out) || !good || rename(draft, path))
		unlink(draft);
}

int muster_store_solve(const char *folder, const struct muster_instance *instance,
		       const struct muster_solve_options *options, struct muster_solved *solved)
{
	char path[PATH_MAX - 32];
	int err;

	if (!folder)
		return muster_solve(instance, options, solved);
	path_of(folder, instance, options, path, sizeof(path));
	if (find_answer(path, instance, options->plain, solved))
		return 0;
	err = muster_solve(instance, options, solved);
	if (!err && (options->plain || solved->proof != MUSTER_PROOF_UNKNOWN))
		keep_answer(folder, path, solved);
	return err;
}
