// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of a job that hangs on purpose: after some operations the rank VICTIM does what
 * is named, and the others go on. Each rank says its process id when it has come there. It
 * ends well when the ranks get SIGUSR1 (or SIGCONT, if one was stopped), or when asked to.
 * Who cannot give the one a signal gives it to all: SIGUSR1 to its process group continues it, too.
 * Of several kinds the next begins when the one before is over, with the next rank as victim.
 * In a guest, SIGUSR2 resets the NIC of rank VICTIM.
 *
 * usage: hangs KIND[,KIND]... VICTIM [BYTES]
 */
#include <err.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <muster.h>

#include "clock.h"

static struct muster *job;
static struct muster_comm *world, *other;
static uint32_t rank, size, victim;
static uint64_t count = 1;
static double *in, *out;
static uint32_t step;
static bool several;			/* steps: then all get each signal */
static volatile sig_atomic_t signals;
static int deaf = -1;			/* a socket that drops what somebody sends */

static void wake(int number)
{
	(void)number;
	signals++;
	if (deaf >= 0)
		setsockopt(deaf, SOL_SOCKET, SO_DETACH_FILTER, &deaf, sizeof(deaf));
}

static void parent_continue(int number)
{
	(void)number;
	kill(getppid(), SIGCONT);
}

static void nic_reset(int number)
{
	int fd = open("/sys/class/infiniband/muster0/device/reset", O_WRONLY);

	(void)number;
	if (fd >= 0 && write(fd, "1", 1) == 1)
		close(fd);
}

/* Who is stopped cannot do it itself. */
static void waker_start(void)
{
	const char *own = getenv("MUSTER_RANK");

	signal(SIGUSR2, SIG_IGN);
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, parent_continue);
	if (own && strtoul(own, NULL, 10) == victim)
		signal(SIGUSR2, nic_reset);
	for (;;)
		pause();
}

static bool is_over(void)
{
	return (uint32_t)signals > step;
}

/* Of several steps one that fails is over when all are told so: nobody hears of a rank that left for that. */
static void need(int error)
{
	if (!error)
		return;
	warnx("rank %u: %s", rank, muster_error(job));
	while (several && !is_over())
		usleep(10000);
	exit(1);
}

static void allreduce(struct muster_comm *comm)
{
	need(muster_allreduce(comm, in, out, count, MUSTER_F64, MUSTER_SUM));
}

static void compute(void)
{
	while (!is_over())
		;
}

/* Of several steps the signal that ended the last one may come late. */
static void stop(void)
{
	do
		raise(SIGSTOP);
	while (several && !is_over());
}

static void sleep_elsewhere(void)
{
	while (!is_over())
		usleep(10000);
}

/* The victim computes; or sleeps; then calls what all others have called. */
static void computes(void)
{
	if (rank == victim)
		compute();
	allreduce(world);
}

static void sleeps(void)
{
	if (rank == victim)
		sleep_elsewhere();
	allreduce(world);
}

static void stops(void)
{
	if (rank == victim)
		stop();
	allreduce(world);
}

/* All others call it on the world; the victim on another communicator. */
static void calls_another(void)
{
	allreduce(rank == victim ? other : world);
}

/* One rank waits for the victim on a communicator of the two, the others for that rank. */
static void waits_elsewhere(void)
{
	uint32_t both[2] = { victim, (victim + 1) % size };
	struct muster_comm *pair;

	if (rank == both[0] || rank == both[1]) {
		need(muster_comm_create_group(world, 2, both, 0, &pair));
		if (rank == victim)
			stop();
		need(muster_barrier(pair));
		muster_comm_free(pair);
	}
	allreduce(world);
}

/* A root that others do not follow runs out of the window. */
static void does_not_follow(void)
{
	if (rank == victim)
		sleep_elsewhere();
	for (int i = 0; i < 100; i++)
		need(muster_broadcast(world, out, count, MUSTER_F64, (victim + 1) % size));
}

static void makes(void)
{
	struct muster_comm *comm;

	if (rank == victim)
		sleep_elsewhere();
	need(muster_comm_dup(world, &comm));
	muster_comm_free(comm);
}

static void tests(void)
{
	struct muster_request *request;
	bool done = false;

	if (rank == victim)
		sleep_elsewhere();
	need(muster_allreduce_start(world, in, out, count, MUSTER_F64, MUSTER_SUM, &request));
	while (!done) {
		usleep(5000);
		need(muster_test(request, &done));
	}
}

static double now_us(void)
{
	return (double)muster_clock_ns() / 1e3;
}

/*
 * 100 operations; before each the next rank in turn is 20 ms late, by its clock, and not by
 * what a timer makes of it: nothing hangs. At the end each says when it has called them, as
 * who is not late may be so all the same on a busy machine.
 */
static void straggles(void)
{
	double called[100], until;

	for (uint32_t i = 0; i < 100; i++) {
		until = now_us() + (i % size == rank ? 20000 : 0);
		while ((called[i] = now_us()) < until)
			;
		allreduce(world);
	}
	for (uint32_t i = 0; i < 100; i++)
		printf("call %u %u %.1f\n", i + 17, rank, called[i]);
}

/* ---- links ---------------------------------------------------------------------------- */

/* This rank's socket of the wire over UDP. Return: its port. */
static uint16_t wire_find(void)
{
	for (deaf = 3; deaf < 1024; deaf++) {
		struct sockaddr_in name;
		socklen_t bytes = sizeof(name);

		if (!getsockname(deaf, (struct sockaddr *)&name, &bytes) &&
		    name.sin_family == AF_INET)
			return ntohs(name.sin_port);
	}
	errx(1, "this takes MUSTER_WIRE=udp");
}

/* From now on nothing arrives here that `peer` sends: ports count up by rank. */
static void drop_from(uint32_t peer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),		/* the port it comes from */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wire_find() - rank + peer, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (setsockopt(deaf, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		err(1, "no filter");
}

/*
 * `deaf_one` hears nothing of `of`, and, if both, `of` nothing of it. That is so before
 * anybody goes on, which they say to each other by way of a third.
 */
static void cut_link(uint32_t deaf_one, uint32_t of, bool both)
{
	const uint32_t ends[2] = { deaf_one, of }, by = (victim + 2) % size;
	struct muster_comm *pairs[2] = { NULL, NULL };

	for (int i = 0; i < 2; i++)
		if (rank == ends[i] || rank == by)
			need(muster_comm_create_group(world, 2, (uint32_t[]){ ends[i], by }, 0,
						      &pairs[i]));
	if (rank == deaf_one)
		drop_from(of);
	if (rank == of && both)
		drop_from(deaf_one);
	for (int turn = 0; turn < 4; turn++)
		if (pairs[turn % 2])
			need(muster_barrier(pairs[turn % 2]));
}

/* Who is beside another in a ring, and exchanges with it when distances double. */
static uint32_t neighbour(uint32_t of)
{
	return of ^ 1;
}

/* The victim hears nothing of its neighbour; or neither of the other. */
static void cut_one_way(void)
{
	cut_link(victim, neighbour(victim), false);
}

static void cut_both_ways(void)
{
	cut_link(victim, neighbour(victim), true);
}

static void all_call(void)
{
	allreduce(world);
}

/* The root hears nothing of the victim, to which it sends: its credits do not come. */
static void cut_from_the_root(void)
{
	cut_link((victim + size - 1) % size, victim, false);
}

static void withholds(void)
{
	for (int i = 0; i < 100; i++)
		need(muster_broadcast(world, out, count, MUSTER_F64, (victim + size - 1) % size));
}

/* ---- what nobody reads ----------------------------------------------------------------- */

/*
 * The victim starts them, and does not come back to go on with them. Several, as others may be
 * waiting already, and one that all have come to may end as it starts.
 */
static void starts(void)
{
	enum { STARTS = 16 };
	struct muster_request *requests[STARTS];
	double one = 1, sums[STARTS];

	for (int i = 0; i < STARTS; i++) {
		need(muster_allreduce_start(world, &one, &sums[i], 1, MUSTER_F64, MUSTER_SUM,
					    &requests[i]));
		if (rank != victim)
			need(muster_wait(requests[i]));
	}
	if (rank == victim)
		sleep_elsewhere();
	for (int i = 0; i < STARTS && rank == victim; i++)
		need(muster_wait(requests[i]));
}

enum { FLOOD_COMMS = 48, FLOOD_TIMES = 4, FLOOD_BYTES = 4096 };

/* More than the way to the victim takes, which does not look: all others wait for the last. */
static void floods(void)
{
	static char from[FLOOD_BYTES], to[FLOOD_BYTES * 4];
	struct muster_request *requests[FLOOD_COMMS * FLOOD_TIMES];
	struct muster_comm *comms[FLOOD_COMMS];
	int nr = 0;

	for (int i = 0; i < FLOOD_COMMS; i++)
		need(muster_comm_dup(world, &comms[i]));
	need(muster_barrier(other));
	if (rank == victim)
		sleep_elsewhere();
	for (int i = 0; i < FLOOD_COMMS; i++)
		for (int j = 0; j < FLOOD_TIMES; j++)
			need(muster_gather_start(comms[i], from, to, FLOOD_BYTES, MUSTER_U8, victim,
						 &requests[nr++]));
	while (nr--)
		need(muster_wait(requests[nr]));
	for (int i = 0; i < FLOOD_COMMS; i++)
		muster_comm_free(comms[i]);
}

/* ---- who is not there -------------------------------------------------------------------- */

/* Nothing of the victim can be seen, as of a rank of somebody else. */
static void hides(void)
{
	char path[64], name[64];

	for (int fd = 3; fd < 1024 && rank == victim; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		name[0] = '\0';
		if (readlink(path, name, sizeof(name) - 1) > 0 && !strncmp(name, "/memfd:muster-look", 18))
			close(fd);
	}
	sleeps();
}

/* The others are told, and stay. */
static void outlive(void)
{
	if (!muster_allreduce(world, in, out, count, MUSTER_F64, MUSTER_SUM))
		errx(1, "rank %u: it should have failed", rank);
	printf("%u: %s\n", rank, muster_error(job));
	fflush(stdout);
	sleep_elsewhere();
}

/*
 * The library's own thread goes on with what the victim's neighbour has started, which only
 * computes: it keeps nobody (MUSTER_PROGRESS=thread).
 */
static void carried(void)
{
	struct muster_request *request;

	if (rank == victim)
		sleep_elsewhere();
	need(muster_allreduce_start(world, in, out, count, MUSTER_F64, MUSTER_SUM, &request));
	if (rank == neighbour(victim))
		sleep_elsewhere();
	need(muster_wait(request));
}

/* When it is asked to; it may be killed instead. */
static void leaves(void)
{
	if (rank == victim) {
		sleep_elsewhere();
		muster_finalize(job);
		exit(0);
	}
	outlive();
}

/* Nothing hangs, and somebody always waits for somebody, until all have heard of the end. */
static void runs(void)
{
	struct muster_comm *comm;

	do {
		need(muster_comm_dup(world, &comm));
		*in = is_over();
		allreduce(comm);
		muster_comm_free(comm);
	} while (!*out);
}

static const struct kind {
	const char *name;
	void (*run)(void);
	void (*prepare)(void);		/* before it is said that all are there; or NULL */
} kinds[] = {
	{ "computes", computes, NULL },
	{ "sleeps", sleeps, NULL },
	{ "stops", stops, NULL },
	{ "another", calls_another, NULL },
	{ "elsewhere", waits_elsewhere, NULL },
	{ "window", does_not_follow, NULL },
	{ "makes", makes, NULL },
	{ "tests", tests, NULL },
	{ "straggles", straggles, NULL },
	{ "one-way", all_call, cut_one_way },
	{ "cut", all_call, cut_both_ways },
	{ "withholds", withholds, cut_from_the_root },
	{ "starts", starts, NULL },
	{ "floods", floods, NULL },
	{ "carried", carried, NULL },
	{ "hides", hides, NULL },
	{ "leaves", leaves, NULL },
	{ "runs", runs, NULL },
};

static const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	errx(2, "%s: there is no such kind of hang", name);
}

/* A step begins when all are through the one before. */
static void run(char *names)
{
	char *rest, *name = strtok_r(names, ",", &rest);

	while (name) {
		kind_find(name)->run();
		name = strtok_r(NULL, ",", &rest);
		if (!several)
			continue;
		victim = (victim + 1) % size;
		step++;
		need(muster_barrier(other));
		printf("%u step %u\n", rank, step);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: hangs KIND[,KIND]... VICTIM [BYTES]");
	victim = (uint32_t)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		count = strtoul(argv[3], NULL, 10) / sizeof(*in);
	several = strchr(argv[1], ',');
	signal(SIGUSR1, wake);
	waker_start();
	if (muster_init(&job))
		errx(1, "%s", muster_error(NULL));
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);
	in = calloc(count, sizeof(*in));
	out = calloc(count, sizeof(*out));
	if (!in || !out)
		errx(1, "no memory");
	need(muster_comm_dup(world, &other));
	for (int i = 0; i < 17; i++)
		allreduce(world);
	/* Over UDP what is lost is sent again by calls alone: nobody leaves now who may owe it. */
	need(muster_barrier(other));
	if (!several && kind_find(argv[1])->prepare)
		kind_find(argv[1])->prepare();
	printf("%u pid %d\n", rank, (int)getpid());
	fflush(stdout);
	run(argv[1]);
	free(in);
	free(out);
	muster_finalize(job);
	return 0;
}
