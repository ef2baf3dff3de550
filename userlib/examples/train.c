// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Trains a small neural network (256 inputs, 512 hidden units, 10 classes), data-parallel: each
 * rank has a part of every batch, and gradients are summed over all ranks. The sum of a layer's
 * gradient is started as soon as that is there, and goes on while the one below is computed.
 * Inputs are random points; their classes are those of a fixed random linear map.
 *
 * usage: train [STEPS [BATCH]] [check]     BATCH: of all ranks; check: rank 0 trains alone, too
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { INPUTS = 256, HIDDEN = 512, CLASSES = 10 };
static const float rate = 0.05f;

/* Weights, or their gradients; bias in the last row. */
struct layers {
	float (*below)[HIDDEN];		/* INPUTS + 1 of them */
	float (*above)[CLASSES];	/* HIDDEN + 1 */
};

enum { BELOW = (INPUTS + 1) * HIDDEN, ABOVE = (HIDDEN + 1) * CLASSES };

struct sample {
	float input[INPUTS + 1];	/* the last is 1, and so below */
	float hidden[HIDDEN + 1];
	float class[CLASSES];		/* what the network says; then how wrong that is */
	uint32_t right;
};

struct training {
	bool alone;
	uint64_t batch;
	struct layers weights, gradients;
	struct ranks_request *below, *above;
	struct sample *samples;		/* this rank's of a batch */
	double loss;			/* of the last batch, mean of its samples */
};

/* From -1 to 1, the same on every rank. */
static float random_float(uint64_t place)
{
	return (float)((double)(ranks_random(place) >> 11) / (1 << 26) / (1 << 26) - 1);
}

/* ---- data ---------------------------------------------------------------------- */

static void make_sample(struct sample *sample, uint64_t number)
{
	float most = -1e9f;

	for (uint64_t i = 0; i < INPUTS; i++)
		sample->input[i] = random_float((number + 1) << 20 | i);
	sample->input[INPUTS] = sample->hidden[HIDDEN] = 1;
	for (uint32_t class = 0; class < CLASSES; class++) {
		float sum = 0;

		for (uint64_t i = 0; i < INPUTS; i++)
			sum += sample->input[i] * random_float(UINT64_C(1) << 60 | class << 10 | i);
		if (sum > most)
			sample->right = class;
		most = fmaxf(most, sum);
	}
}

/* ---- one sample -------------------------------------------------------------------- */

static void forward(const struct layers *weights, struct sample *sample)
{
	float total = 0, *hidden = sample->hidden, *class = sample->class;

	memcpy(hidden, weights->below[INPUTS], sizeof(weights->below[INPUTS]));
	for (uint32_t i = 0; i < INPUTS; i++)
		for (uint32_t h = 0; h < HIDDEN; h++)
			hidden[h] += sample->input[i] * weights->below[i][h];
	for (uint32_t h = 0; h < HIDDEN; h++)
		hidden[h] = fmaxf(hidden[h], 0);
	memset(class, 0, sizeof(sample->class));
	for (uint32_t h = 0; h <= HIDDEN; h++)
		for (uint32_t c = 0; c < CLASSES; c++)
			class[c] += hidden[h] * weights->above[h][c];
	for (uint32_t c = 0; c < CLASSES; c++)
		total += class[c] = expf(class[c]);
	for (uint32_t c = 0; c < CLASSES; c++)
		class[c] /= total;
}

/* Return: the loss. What is left in class is its derivative. */
static double add_above(const struct layers *gradients, struct sample *sample)
{
	double loss = -log((double)sample->class[sample->right]);

	sample->class[sample->right] -= 1;
	for (uint32_t h = 0; h <= HIDDEN; h++)
		for (uint32_t c = 0; c < CLASSES; c++)
			gradients->above[h][c] += sample->hidden[h] * sample->class[c];
	return loss;
}

static void add_below(const struct layers *weights, const struct layers *gradients,
		      const struct sample *sample)
{
	float derivatives[HIDDEN];

	for (uint32_t h = 0; h < HIDDEN; h++) {
		derivatives[h] = 0;
		for (uint32_t c = 0; c < CLASSES; c++)
			derivatives[h] += sample->class[c] * weights->above[h][c];
		derivatives[h] *= sample->hidden[h] > 0;
	}
	for (uint32_t i = 0; i <= INPUTS; i++)
		for (uint32_t h = 0; h < HIDDEN; h++)
			gradients->below[i][h] += sample->input[i] * derivatives[h];
}

/* ---- a batch --------------------------------------------------------------------- */

static void descend(const struct training *training, float *weights, const float *gradients,
		    uint32_t nr)
{
	float step = rate / (float)training->batch;

	for (uint32_t i = 0; i < nr; i++)
		weights[i] -= step * gradients[i];
}

/* This rank's samples; the gradients that it ends with are those of all ranks' samples. */
static double sum_gradients(struct training *training, uint64_t nr)
{
	const struct layers *gradients = &training->gradients;
	double loss = 0;

	memset(gradients->above, 0, ABOVE * sizeof(float));
	memset(gradients->below, 0, BELOW * sizeof(float));
	for (uint64_t i = 0; i < nr; i++) {
		forward(&training->weights, &training->samples[i]);
		loss += add_above(gradients, &training->samples[i]);
	}
	if (!training->alone)
		ranks_start(training->above);
	for (uint64_t i = 0; i < nr; i++)
		add_below(&training->weights, gradients, &training->samples[i]);
	if (training->alone)
		return loss;
	ranks_start(training->below);
	ranks_wait(training->above);
	ranks_wait(training->below);
	return loss;
}

static void step(struct training *training, uint64_t number)
{
	uint64_t first = training->alone ? 0 : ranks_share(training->batch, ranks_rank);
	uint64_t nr = training->alone ? training->batch : ranks_part(training->batch, ranks_rank);
	const struct layers *weights = &training->weights, *gradients = &training->gradients;

	for (uint64_t i = 0; i < nr; i++)
		make_sample(&training->samples[i], number * training->batch + first + i);
	training->loss = sum_gradients(training, nr) / (double)training->batch;
	descend(training, weights->above[0], gradients->above[0], ABOVE);
	descend(training, weights->below[0], gradients->below[0], BELOW);
}

static void open_layers(struct layers *layers, bool alone)
{
	layers->below = alone ? ranks_zeroed(BELOW * sizeof(float)) : ranks_alloc(BELOW * sizeof(float));
	layers->above = alone ? ranks_zeroed(ABOVE * sizeof(float)) : ranks_alloc(ABOVE * sizeof(float));
}

static void open_training(struct training *training, uint64_t batch, bool alone)
{
	*training = (struct training){ .alone = alone, .batch = batch };
	open_layers(&training->weights, alone);
	open_layers(&training->gradients, alone);
	training->samples = ranks_zeroed(batch * sizeof(*training->samples));
	for (uint32_t i = 0; i < BELOW; i++)
		training->weights.below[0][i] = random_float(i) / 8;
	for (uint32_t i = 0; i < ABOVE; i++)
		training->weights.above[0][i] = random_float(BELOW + i) / 16;
	if (alone)
		return;
	training->below = ranks_prepare(training->gradients.below, BELOW, RANKS_F32);
	training->above = ranks_prepare(training->gradients.above, ABOVE, RANKS_F32);
}

static void close_training(struct training *training)
{
	if (training->alone) {
		free(training->weights.below);
		free(training->weights.above);
		free(training->gradients.below);
		free(training->gradients.above);
	} else {
		ranks_free(training->below);
		ranks_free(training->above);
	}
	free(training->samples);
}

static void check(const struct training *training, uint64_t steps)
{
	struct training alone;
	double most = 0;

	open_training(&alone, training->batch, true);
	for (uint64_t i = 0; i < steps; i++)
		step(&alone, i);
	for (uint32_t i = 0; i < BELOW; i++)
		most = fmax(most, fabsf(alone.weights.below[0][i] - training->weights.below[0][i]));
	for (uint32_t i = 0; i < ABOVE; i++)
		most = fmax(most, fabsf(alone.weights.above[0][i] - training->weights.above[0][i]));
	printf("weights apart from those that one rank finds by %.1e\n", most);
	if (!(most < 1e-4))
		ranks_die("the weights are wrong");
	close_training(&alone);
}

int main(int argc, char **argv)
{
	bool checks = argc > 1 && !strcmp(argv[argc - 1], "check");
	struct training training;
	uint64_t steps, batch;
	double loss[2] = { 0 };
	char what[96];

	argc -= checks;
	steps = argc > 1 ? ranks_number(argv[1], 1, 1000000, "STEPS") : 200;
	batch = argc > 2 ? ranks_number(argv[2], 1, 1 << 16, "BATCH") : 32;
	ranks_begin();
	open_training(&training, batch, false);
	ranks_go();
	for (uint64_t i = 0; i < steps; i++) {
		step(&training, i);
		loss[1] = training.loss;
		loss[0] = i ? loss[0] : loss[1];
	}
	ranks_sum(loss, 2, RANKS_F64);
	ranks_stop();
	snprintf(what, sizeof(what), "training: %" PRIu64 " steps of %" PRIu64 ", loss from %.3f to %.3f",
		 steps, batch, loss[0], loss[1]);
	ranks_report(what, training.weights.below, BELOW * sizeof(float));
	if (checks && !ranks_rank)
		check(&training, steps);
	close_training(&training);
	ranks_end();
	return 0;
}
