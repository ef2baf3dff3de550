// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An attempt: a child that encodes, asks Z3, and writes the sends of a model into
 * its pipe. A timer of its CPU time ends it; no answer, or half of one, is no proof.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"
#include "encode.h"

#define MEMORY_MAX_MB	"6000"	/* of Z3, in one attempt */

struct answer {
	uint32_t proof;
	uint32_t steps;
	uint32_t nr_sends;
};

/* Every child begins with a copy of this one, in which nothing is: to make one takes longer than many an answer. */
static Z3_context z3_blank(void)
{
	static Z3_context z3;
	Z3_config config;

	if (z3)
		return z3;
	Z3_global_param_set("memory_max_size", MEMORY_MAX_MB);
	config = Z3_mk_config();
	z3 = Z3_mk_context(config);
	Z3_del_config(config);
	return z3;
}

static Z3_solver make_solver(Z3_context z3, const struct muster_attempt *attempt)
{
	Z3_params params = Z3_mk_params(z3);
	Z3_solver solver;

	Z3_params_inc_ref(z3, params);
	if (attempt->plain)
		solver = Z3_mk_solver(z3);
	else
		solver = Z3_mk_solver_for_logic(z3, Z3_mk_string_symbol(z3, "QF_FD"));
	Z3_solver_inc_ref(z3, solver);
	Z3_params_set_uint(z3, params, Z3_mk_string_symbol(z3, "random_seed"), attempt->seed);
	Z3_solver_set_params(z3, solver, params);
	return solver;
}

static void write_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n <= 0)
			_exit(1);
		at += n;
		len -= n;
	}
}

static void answer(int fd, const struct muster_encoding *encoding, bool plain, Z3_lbool result)
{
	struct answer head = { .proof = MUSTER_PROOF_UNKNOWN };
	struct muster_solution *solution = NULL;

	if (result == Z3_L_FALSE && !encoding->quotient && !encoding->window)
		head.proof = MUSTER_PROOF_REFUTED;
	if (result == Z3_L_TRUE) {
		Z3_model model = Z3_solver_get_model(encoding->z3, encoding->solver);

		solution = encoding->instance->shape ? muster_decode_direct(encoding, model) :
			   plain ? muster_decode_plain(encoding, model) :
				   muster_decode_quick(encoding, model);
		if (!solution)
			_exit(1);
		head = (struct answer){ MUSTER_PROOF_FOUND, solution->steps, solution->nr_sends };
	}
	write_all(fd, &head, sizeof(head));
	if (solution)
		write_all(fd, solution->sends, solution->nr_sends * sizeof(*solution->sends));
}

/* The child never returns. */
static void __attribute__((noreturn)) run(const struct muster_attempt *attempt, Z3_context z3, int fd)
{
	long microseconds = attempt->cpu_seconds * 1e6 + 1;
	struct itimerval limit = { .it_value = {
		.tv_sec = microseconds / 1000000, .tv_usec = microseconds % 1000000,
	} };
	struct muster_encoding encoding = {
		.instance = attempt->instance, .quotient = attempt->quotient,
		.window = attempt->window, .z3 = z3,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setitimer(ITIMER_PROF, &limit, NULL);
	encoding.solver = make_solver(z3, attempt);
	if (attempt->instance->shape ? muster_encode_direct(&encoding) :
	    attempt->plain ? muster_encode_plain(&encoding) : muster_encode_quick(&encoding))
		_exit(1);
	answer(fd, &encoding, attempt->plain, Z3_solver_check(encoding.z3, encoding.solver));
	_exit(0);
}

int muster_attempt_start(struct muster_attempt *attempt)
{
	Z3_context z3 = z3_blank();
	int ends[2];

	if (pipe2(ends, 0))
		return -errno;
	attempt->pid = fork();
	if (attempt->pid < 0) {
		int err = -errno;

		close(ends[0]);
		close(ends[1]);
		attempt->pid = 0;
		return err;
	}
	if (!attempt->pid) {
		close(ends[0]);
		run(attempt, z3, ends[1]);
	}
	close(ends[1]);
	attempt->pipe = ends[0];
	return 0;
}

static bool read_all(int fd, void *data, size_t len)
{
	char *at = data;

	while (len) {
		ssize_t n = read(fd, at, len);

		if (n <= 0)
			return false;
		at += n;
		len -= n;
	}
	return true;
}

static enum muster_proof read_answer(int fd, struct muster_solution **solution)
{
	struct muster_solution *made;
	struct answer head;

	if (!read_all(fd, &head, sizeof(head)))
		return MUSTER_PROOF_UNKNOWN;
	if (head.proof != MUSTER_PROOF_FOUND)
		return head.proof;
	made = calloc(1, sizeof(*made));
	if (made) {
		made->steps = head.steps;
		made->nr_sends = head.nr_sends;
		made->sends = calloc(head.nr_sends + 1, sizeof(*made->sends));
	}
	if (!made || !made->sends ||
	    !read_all(fd, made->sends, made->nr_sends * sizeof(*made->sends))) {
		muster_solution_free(made);
		return MUSTER_PROOF_UNKNOWN;
	}
	*solution = made;
	return MUSTER_PROOF_FOUND;
}

enum muster_proof muster_attempt_end(struct muster_attempt *attempt, bool kill_it,
				     struct muster_solution **solution)
{
	enum muster_proof proof = MUSTER_PROOF_UNKNOWN;
	struct rusage usage = { 0 };

	*solution = NULL;
	if (kill_it)
		kill(attempt->pid, SIGKILL);
	else
		proof = read_answer(attempt->pipe, solution);
	close(attempt->pipe);
	/* What it said is read: the rest would only be its tidying up. */
	kill(attempt->pid, SIGKILL);
	while (wait4(attempt->pid, NULL, 0, &usage) < 0 && errno == EINTR)
		;
	attempt->pid = 0;
	attempt->cpu_seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
			       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	return proof;
}
