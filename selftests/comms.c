// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of the tests of many communicators: real process, real library. The shell
 * test starts it under muster-run; it exits 0 when what its name says was seen, and
 * says on stderr what was not.
 *
 * usage: comms many NUMBER | churn NUMBER | split COLOURS | unread NUMBER | neighbours COUNT |
 *              mixed NUMBER | chosen BYTES
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <muster.h>

#include "../userlib/internal.h"
#include "../userlib/local/internal.h"
#include "counted.h"
#include "expect.h"

static struct muster *job;
static struct muster_comm *world;
static uint32_t rank, size;

/* ---- what a process holds ---------------------------------------------------------- */

struct holds {
	size_t bytes;		/* that malloc() was asked for */
	long mappings;
	long files;
};

static long lines_of(const char *path)
{
	FILE *in = fopen(path, "re");
	long lines = 0;
	int c;

	while (in && (c = getc(in)) != EOF)
		lines += c == '\n';
	if (in)
		fclose(in);
	return lines;
}

static long files_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	long nr = 0;

	while (dir && readdir(dir))
		nr++;
	if (dir)
		closedir(dir);
	return nr;
}

/* What was given back, and is kept for the next: how much depends on who was late. */
static size_t kept(void)
{
	return muster_engine_kept(((struct local *)job->dev)->engine);
}

/*
 * Communicators of which this rank still remembers something when all were freed: open for farewells that
 * wait for a pair's credits, or closed until those of others have come.
 */
static uint64_t remembered(void)
{
	return job->nr_comms - 1 + job->nr_closed;
}

enum {
	TURNS_MIN = 20,
	TURNS_STILL = 200,	/* in which none is forgotten: 2 were seen on a busy machine */
};

static uint64_t turns_most;	/* that it took until all farewells were heard */

/* Goes on until no rank remembers any, of which there may be thousands, while that number falls. */
static void farewells_hear(void)
{
	uint64_t turns = 0, still = 0, least = UINT64_MAX;

	for (;; turns++) {
		uint64_t most = remembered();

		EXPECT_OK(muster_allreduce(world, &most, &most, 1, MUSTER_U64, MUSTER_MAX));
		if (!most)
			break;
		still = most < least ? 0 : still + 1;
		least = most < least ? most : least;
		EXPECT(still <= TURNS_STILL, "%" PRIu64 " turns, and still up to %" PRIu64 " are remembered", turns, most);
	}
	turns_most = turns > turns_most ? turns : turns_most;
}

/* When all are through and what they said last has come. */
static struct holds holds_now(void)
{
	farewells_hear();
	for (int i = 0; i < TURNS_MIN; i++)
		EXPECT_OK(muster_barrier(world));
	return (struct holds){ counted_all() - kept(), lines_of("/proc/self/maps"), files_open() };
}

/*
 * Of what engine and library need the most of at once, that depends on who was late, too: on NICs up to 50 KB more
 * were seen with 4,096 of 16 ranks, by the host path none.
 */
enum { LATE_BYTES = 64 << 10, LATE_HOST_BYTES = 16 << 10 };

static size_t late_bytes = LATE_BYTES;

static void expect_no_more(const struct holds *a, const struct holds *b)
{
	EXPECT(b->bytes < a->bytes + late_bytes, "%zu bytes, then %zu", a->bytes, b->bytes);
	EXPECT(b->mappings <= a->mappings + 2 * (long)size, "%ld mappings, then %ld", a->mappings,
	       b->mappings);
	EXPECT(b->files <= a->files + 2 * (long)size, "%ld open files, then %ld", a->files, b->files);
}

/* ---- behaviours ------------------------------------------------------------------------ */

/* The i-th in an order of this rank's own. */
static uint32_t in_order(uint32_t i, uint32_t nr)
{
	uint32_t at = (uint32_t)((uint64_t)(i + (uint64_t)rank * nr / size) % nr);

	return rank % 2 ? nr - 1 - at : at;
}

/* What one costs that is open and idle and has added up: engine and library together. */
static size_t idle_bytes, idle_bytes_all;

enum {
	TIMES = 3,		/* that each adds up */
	WARM = 128,		/* so many are ready to run again at once (MUSTER_WARM_MAX) */
	OWN_BYTES = 1024,	/* of one that rests, */
	MEMBER_BYTES = 16,	/* and of each member */
	WARM_BYTES = 32 << 10,	/* there may be two more of these when it is looked again */
	COUNTED_MIN = 60,	/* of the others, or these count too much */
};

static size_t cost_now(void)
{
	return counted_cost() - kept();
}

/* From the second time on the device keeps it. */
static void add_up(struct muster_comm *comm, uint32_t nr)
{
	for (uint32_t i = 0; i < TIMES; i++) {
		int64_t value = 1;

		EXPECT_OK(muster_allreduce(comm, &value, &value, 1, MUSTER_I64, MUSTER_SUM));
		EXPECT(value == nr, "sum %" PRId64 " of %" PRIu32, value, nr);
	}
}

/* All of one kind are made and used before those that count: who is warm is so by then. */
static void make_and_count(uint32_t nr, struct muster_comm **comms)
{
	size_t before = cost_now(), warm = before;
	uint32_t first = nr * 3 / 5;
	struct muster_op_info info;

	for (uint32_t i = 0; i < nr; i++) {
		EXPECT_OK(muster_comm_dup(world, &comms[i]));
		add_up(comms[i], size);
		if (i + 1 == first)
			warm = cost_now();
	}
	idle_bytes_all = (cost_now() - before) / nr;
	idle_bytes = (cost_now() - warm) / (nr - first);
	EXPECT_OK(muster_barrier(world));	/* who goes on sends what would lie here, and rest no more */
	muster_comm_last(comms[0], &info);
	if (info.path == MUSTER_PATH_HOST)
		late_bytes = LATE_HOST_BYTES;
	EXPECT(info.path != MUSTER_PATH_NIC || first < WARM || nr - first < COUNTED_MIN ||
	       idle_bytes <= OWN_BYTES + MEMBER_BYTES * size + WARM_BYTES / (nr - first),
	       "an idle one of %" PRIu32 " ranks costs %zu bytes", size, idle_bytes);
}

static void round_of_many(uint32_t nr, struct muster_comm **comms, struct muster_request **requests,
			  int64_t *values)
{
	make_and_count(nr, comms);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t at = in_order(i, nr);

		values[at] = (int64_t)at * (rank + 1);
		EXPECT_OK(muster_allreduce_start(comms[at], &values[at], &values[at], 1, MUSTER_I64,
						 MUSTER_SUM, &requests[at]));
	}
	for (uint32_t i = 0; i < nr; i++) {
		EXPECT_OK(muster_wait(requests[i]));
		EXPECT(values[i] == (int64_t)i * size * (size + 1) / 2, "sum %" PRId64 " of %" PRIu32,
		       values[i], i);
	}
	for (uint32_t i = 0; i < nr; i++)
		muster_comm_free(comms[in_order(i, nr)]);
}

enum { ROUNDS_OF_MANY = 4, RANKS_MAX = 64, WAKES = 4, ASLEEP_US = 5000 };

/* Who wakes another is told how to do so at less cost, once, by a file: that belongs to no communicator. */
static void wake_each_other(void)
{
	struct muster_comm *comm;
	char all[RANKS_MAX];

	EXPECT(size <= RANKS_MAX, "more than %d ranks", RANKS_MAX);
	EXPECT_OK(muster_comm_dup(world, &comm));
	EXPECT_OK(muster_comm_schedule(comm, "linear"));
	for (uint32_t i = 0; i < WAKES * size; i++) {
		if (rank == i % size)
			usleep(ASLEEP_US);
		EXPECT_OK(muster_scatter(comm, all, all, 1, MUSTER_U8, i % size));
	}
	muster_comm_free(comm);
}

/* How much more a rank has after the third round than after the second, of all ranks the most. */
static void print_many(uint32_t nr, const struct holds *second, const struct holds *third)
{
	int64_t more[] = { (int64_t)(third->bytes - second->bytes), third->mappings - second->mappings,
			   third->files - second->files };
	struct rusage usage;

	EXPECT_OK(muster_allreduce(world, more, more, 3, MUSTER_I64, MUSTER_MAX));
	getrusage(RUSAGE_SELF, &usage);
	if (rank)
		return;
	printf("%" PRIu32 " communicators of %" PRIu32 " ranks: %zu bytes each at rest (%zu with those that are warm); %ld MiB at most\n",
	       nr, size, idle_bytes, idle_bytes_all, usage.ru_maxrss / 1024);
	printf("after the second round %zu bytes, %ld mappings, %ld files; after the third of any rank at most %" PRId64 ", %" PRId64 " and %" PRId64 " more; farewells were heard after %" PRIu64 " turns\n",
	       second->bytes, second->mappings, second->files, more[0], more[1], more[2], turns_most);
}

/* many: so many, the world among them, are open at once, with an operation on each. */
static void many(uint32_t nr)
{
	struct muster_comm **comms = calloc(nr, sizeof(*comms));
	struct muster_request **requests = calloc(nr, sizeof(*requests));
	int64_t *values = calloc(nr, sizeof(*values));
	struct holds after[ROUNDS_OF_MANY];

	EXPECT(comms && requests && values, "no memory");
	wake_each_other();
	for (int i = 0; i < ROUNDS_OF_MANY; i++) {
		round_of_many(nr - 1, comms, requests, values);
		after[i] = holds_now();
	}
	expect_no_more(&after[1], &after[ROUNDS_OF_MANY - 1]);
	print_many(nr, &after[1], &after[2]);
	free(comms);
	free(requests);
	free(values);
}

/* churn: made, used and freed, again and again: nothing grows. */
static void churn(uint32_t nr)
{
	struct holds before, after;

	for (uint32_t i = 0; i < nr; i++) {
		struct muster_comm *all, *half;
		int64_t value = rank;

		if (i == nr / 2)
			before = holds_now();
		EXPECT_OK(muster_comm_dup(world, &all));
		EXPECT_OK(muster_comm_split(all, (int32_t)(rank % 2), 0, &half));
		muster_comm_free(all);
		EXPECT_OK(muster_comm_offload(half, i % 2 ? MUSTER_OFFLOAD_TRY : MUSTER_OFFLOAD_OFF));
		EXPECT_OK(muster_allreduce(half, &value, &value, 1, MUSTER_I64, MUSTER_SUM));
		muster_comm_free(half);
	}
	after = holds_now();
	expect_no_more(&before, &after);
}

/* split: by so many colours, of neighbours in turn; each counts its own. */
static void split(uint32_t colours)
{
	uint32_t mine = rank % colours;
	struct muster_comm *part;
	int64_t value = rank;

	EXPECT_OK(muster_comm_split(world, (int32_t)mine, -(int32_t)rank, &part));
	EXPECT(muster_comm_size(part) == size / colours + (mine < size % colours), "%" PRIu32 " ranks",
	       muster_comm_size(part));
	EXPECT(muster_comm_rank(part) == (size - 1 - mine) / colours - rank / colours, "rank %" PRIu32,
	       muster_comm_rank(part));
	EXPECT_OK(muster_allreduce(part, &value, &value, 1, MUSTER_I64, MUSTER_MAX));
	EXPECT(value == (size - 1 - mine) / colours * colours + mine, "largest %" PRId64, value);
	muster_comm_free(part);
	EXPECT_OK(muster_barrier(world));
}

/* unread: rank 0 does not look at what the others send it on so many, and works with them on the world. */
static void unread(uint32_t nr)
{
	enum { COUNT = 3000 };
	static double vector[COUNT];
	struct muster_comm **comms = calloc(nr, sizeof(*comms));
	struct muster_request **requests = calloc(nr, sizeof(*requests));

	EXPECT(comms && requests, "no memory");
	EXPECT_OK(muster_comm_offload(world, MUSTER_OFFLOAD_OFF));
	for (uint32_t i = 0; i < nr; i++) {
		EXPECT_OK(muster_comm_dup(world, &comms[i]));
		if (rank)
			EXPECT_OK(muster_allreduce_start(comms[i], vector, vector, 1, MUSTER_F64,
							 MUSTER_SUM, &requests[i]));
	}
	for (int i = 0; i < 50; i++)
		EXPECT_OK(muster_allreduce(world, vector, vector, COUNT, MUSTER_F64, MUSTER_SUM));
	for (uint32_t i = 0; i < nr; i++) {
		if (!rank)
			EXPECT_OK(muster_allreduce_start(comms[i], vector, vector, 1, MUSTER_F64,
							 MUSTER_SUM, &requests[i]));
		EXPECT_OK(muster_wait(requests[i]));
		muster_comm_free(comms[i]);
	}
	free(comms);
	free(requests);
}

enum { AROUND = 4, ROUNDS = 3 };

/* Each tells the next, itself, the one before last and the next again; of few ranks some are the same. */
static uint32_t beside(uint32_t of, uint32_t k, bool source)
{
	static const uint32_t steps[AROUND] = { 1, 0, 2, 1 };

	return (of + (source ? size - steps[k] % size : steps[k])) % size;
}

static int64_t told(uint32_t from, uint32_t block, uint64_t i, int round)
{
	return (int64_t)(from * 1000003ull + block * 7919 + i * 31 + (uint64_t)round);
}

/* Where the block comes from: the same number, unless the source names this rank several times. */
static uint32_t block_of(const uint32_t *sources, uint32_t at)
{
	uint32_t before = 0, block = 0;

	for (uint32_t i = 0; i < at; i++)
		before += sources[i] == sources[at];
	while (beside(sources[at], block, false) != rank || before--)
		block++;
	return block;
}

/* neighbours: blocks of so many elements along a graph, started again and again. */
static void neighbours(uint32_t count)
{
	uint32_t sources[AROUND], destinations[AROUND];
	int64_t *in = calloc((size_t)AROUND * count, sizeof(*in));
	int64_t *out = calloc((size_t)AROUND * count, sizeof(*out));
	struct muster_request *request;

	EXPECT(in && out, "no memory");
	for (uint32_t k = 0; k < AROUND; k++) {
		sources[k] = beside(rank, k, true);
		destinations[k] = beside(rank, k, false);
	}
	EXPECT_OK(muster_comm_neighbours(world, AROUND, sources, AROUND, destinations));
	EXPECT_OK(muster_neighbour_alltoall_init(world, in, out, count, MUSTER_I64, &request));
	for (int round = 0; round < ROUNDS; round++) {
		for (uint64_t i = 0; i < (uint64_t)AROUND * count; i++)
			in[i] = told(rank, (uint32_t)(i / count), i % count, round);
		EXPECT_OK(muster_start(request));
		EXPECT_OK(muster_wait(request));
		for (uint64_t i = 0; i < (uint64_t)AROUND * count; i++) {
			uint32_t at = (uint32_t)(i / count);

			EXPECT(out[i] == told(sources[at], block_of(sources, at), i % count, round),
			       "element %" PRIu64 " of source %" PRIu32, i % count, sources[at]);
		}
	}
	EXPECT_OK(muster_request_free(request));
	free(in);
	free(out);
}

/* ---- operations on communicators that come and go ------------------------------------------ */

enum { MIXED_COMMS = 64, MIXED_MAX = 40, MIXED_LONG = 3000 };

static uint64_t shared_state = 1, own_state;

/* The same with all ranks, or of this rank's own. */
static uint32_t draw(uint64_t *state, uint32_t bound)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % bound;
}

/* A place that has a communicator, or had: of all ranks, of the even or odd ones, backwards. */
struct place {
	struct muster_comm *comm;
	uint32_t kind;
	bool member;
};

enum mixed { MIXED_SUM, MIXED_BROADCAST, MIXED_GATHER, MIXED_EXSCAN, MIXED_BARRIER, MIXED };

struct mixed_call {
	const struct place *place;
	struct muster_request *request;
	enum mixed what;
	uint32_t count, root;
	uint64_t seed;
	int64_t *in, *out;
};

static void place_make(struct place *place)
{
	uint32_t ranks[64], nr = 0;

	place->kind = draw(&shared_state, 3);
	place->member = place->kind < 2 || rank >= 1 || size == 1;
	if (place->kind == 0) {
		EXPECT_OK(muster_comm_dup(world, &place->comm));
	} else if (place->kind == 1) {
		EXPECT_OK(muster_comm_split(world, (int32_t)(rank % 2), -(int32_t)rank, &place->comm));
	} else if (place->member) {	/* all but rank 0, backwards */
		for (uint32_t r = size; r-- > (size > 1);)
			ranks[nr++] = r;
		EXPECT_OK(muster_comm_create_group(world, nr, ranks, 7, &place->comm));
	}
	if (place->comm && draw(&shared_state, 4) == 0)
		EXPECT_OK(muster_comm_offload(place->comm, MUSTER_OFFLOAD_OFF));
	else if (!place->comm)
		draw(&shared_state, 4);
}

static int64_t given(const struct mixed_call *call, uint32_t member, uint32_t i)
{
	return (int64_t)(call->seed % 1000003 * (member + 1) + i * 7);
}

/* By a plain loop over the members. */
static int64_t mixed_right(const struct mixed_call *call, uint32_t i)
{
	uint32_t nr = muster_comm_size(call->place->comm), first = 0;
	int64_t sum = 0;

	if (call->what == MIXED_BROADCAST)
		return given(call, call->root, i);
	if (call->what == MIXED_GATHER)
		return given(call, i / call->count, i % call->count);
	if (call->what == MIXED_EXSCAN)
		nr = muster_comm_rank(call->place->comm);
	while (first < nr)
		sum += given(call, first++, i);
	return sum;
}

static void mixed_start(struct mixed_call *call)
{
	struct muster_comm *comm = call->place->comm;
	uint32_t nr = call->count, me = muster_comm_rank(comm);

	call->root %= muster_comm_size(comm);
	call->in = malloc((nr + 1) * sizeof(*call->in));
	call->out = calloc((size_t)nr * size + 1, sizeof(*call->out));
	EXPECT(call->in && call->out, "no memory");
	for (uint32_t i = 0; i < nr; i++)
		call->in[i] = call->out[i] = given(call, me, i);
	if (call->what == MIXED_SUM)
		EXPECT_OK(muster_allreduce_start(comm, call->in, call->out, nr, MUSTER_I64, MUSTER_SUM,
						 &call->request));
	else if (call->what == MIXED_BROADCAST)
		EXPECT_OK(muster_broadcast_start(comm, call->out, nr, MUSTER_I64, call->root,
						 &call->request));
	else if (call->what == MIXED_GATHER)
		EXPECT_OK(muster_allgather_start(comm, call->in, call->out, nr, MUSTER_I64,
						 &call->request));
	else if (call->what == MIXED_EXSCAN)
		EXPECT_OK(muster_exscan_start(comm, call->in, call->out, nr, MUSTER_I64, MUSTER_SUM,
					      &call->request));
	else
		EXPECT_OK(muster_barrier_start(comm, &call->request));
}

static void mixed_end(struct mixed_call *call)
{
	uint32_t nr = call->what == MIXED_GATHER ? call->count * muster_comm_size(call->place->comm) :
						   call->count;
	bool none = call->what == MIXED_BARRIER ||
		    (call->what == MIXED_EXSCAN && !muster_comm_rank(call->place->comm));

	EXPECT_OK(muster_wait(call->request));
	for (uint32_t i = 0; i < nr && !none; i += 1 + nr / 64)
		EXPECT(call->out[i] == mixed_right(call, i), "element %" PRIu32 " of operation %d of %" PRIu32,
		       i, call->what, call->count);
	free(call->in);
	free(call->out);
}

/* Of one communicator in the order that all share; of several, and to wait, in any of this rank's own. */
static void mixed_play(struct mixed_call *calls, uint32_t nr)
{
	uint32_t left = nr, next[MIXED_MAX];

	for (uint32_t i = 0; i < nr; i++)
		next[i] = i;
	while (left) {
		uint32_t at = draw(&own_state, left), first = 0;

		while (calls[next[first]].place != calls[next[at]].place)
			first++;
		mixed_start(&calls[next[first]]);
		memmove(&next[first], &next[first + 1], (--left - first) * sizeof(next[0]));
	}
	for (uint32_t i = nr; i; i--) {
		uint32_t at = draw(&own_state, i);
		struct mixed_call call = calls[at];

		mixed_end(&call);
		calls[at] = calls[i - 1];
	}
}

/* One communicator comes or goes; some operations on those that there are. Return: how many. */
static uint32_t mixed_round(struct place *places)
{
	struct place *changed = &places[draw(&shared_state, MIXED_COMMS)];
	uint32_t nr = 0, drawn = MIXED_MAX / 2 + draw(&shared_state, MIXED_MAX / 2);
	struct mixed_call calls[MIXED_MAX];

	if (changed->kind == UINT32_MAX) {
		place_make(changed);
	} else {
		if (changed->comm)
			muster_comm_free(changed->comm);
		*changed = (struct place){ .kind = UINT32_MAX };
	}
	for (uint32_t i = 0; i < drawn; i++) {
		struct mixed_call call = {
			.place = &places[draw(&shared_state, MIXED_COMMS)],
			.what = draw(&shared_state, MIXED),
			.count = draw(&shared_state, 200) ? 1 + draw(&shared_state, 16) : MIXED_LONG,
			.root = draw(&shared_state, 64), .seed = shared_state,
		};

		if (call.place->comm)
			calls[nr++] = call;
	}
	mixed_play(calls, nr);
	return drawn;
}

static void places_free(struct place *places)
{
	for (uint32_t i = 0; i < MIXED_COMMS; i++) {
		if (places[i].comm)
			muster_comm_free(places[i].comm);
		places[i] = (struct place){ .kind = UINT32_MAX };
	}
}

/* mixed: so many operations over communicators made and freed at random; nothing grows. */
static void mixed(uint32_t nr)
{
	struct place places[MIXED_COMMS];
	struct holds early = { 0 }, last;
	uint32_t done = 0, made = 0;

	own_state = rank + 1;
	for (uint32_t i = 0; i < MIXED_COMMS; i++)
		places[i] = (struct place){ .kind = UINT32_MAX };
	for (uint32_t part = 0; part < 4; part++) {
		while (done < (part + 1) * (nr / 4)) {
			done += mixed_round(places);
			made++;
		}
		places_free(places);
		last = holds_now();
		if (!part)
			early = last;
	}
	expect_no_more(&early, &last);
	if (!rank)
		printf("%" PRIu32 " operations, %" PRIu32 " times a communicator made or freed: %zu bytes from malloc, %ld mappings, %ld files; after a quarter of it %zu, %ld, %ld\n",
		       done, made, last.bytes, last.mappings, last.files, early.bytes, early.mappings,
		       early.files);
}

enum { GROUP_MAX = 64 };

/* The first so many of the ranks in an order that is drawn; the same on all. Return: whether this one is of them. */
static bool group_draw(uint32_t ranks[GROUP_MAX], uint32_t *nr)
{
	bool is_member = false;

	*nr = 2 + draw(&shared_state, size - 1);
	for (uint32_t r = 0; r < size; r++)
		ranks[r] = r;
	for (uint32_t i = 0; i < *nr; i++) {
		uint32_t at = i + draw(&shared_state, size - i), member = ranks[at];

		ranks[at] = ranks[i];
		ranks[i] = member;
		is_member |= member == rank;
	}
	return is_member;
}

static struct muster_comm *group_of(const uint32_t *ranks, uint32_t nr)
{
	struct muster_comm *comm;

	EXPECT_OK(muster_comm_create_group(world, nr, ranks, 7, &comm));
	add_up(comm, nr);
	return comm;
}

/*
 * groups: so many, of any size and in any order, so that few have the same members. What those of
 * the second part cost that rest is counted: each at most a kibibyte and 16 bytes a member.
 */
static void groups(uint32_t nr)
{
	struct muster_comm **comms = calloc(nr, sizeof(*comms));
	uint32_t ranks[GROUP_MAX], members, first = nr * 3 / 5, made = 0, before = 0, counted = 0;
	size_t most = WARM_BYTES, begun = 0, used;

	EXPECT(comms && size <= GROUP_MAX, "no memory, or more than %d ranks", GROUP_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		if (i == first) {
			begun = cost_now();
			before = made;
		}
		if (!group_draw(ranks, &members))
			continue;
		comms[made++] = group_of(ranks, members);
		if (i < first)
			continue;
		most += OWN_BYTES + MEMBER_BYTES * members;
		counted += members;
	}
	used = cost_now() - begun;
	EXPECT(before < WARM || used <= most, "%" PRIu32 " idle groups cost %zu bytes", made - before, used);
	if (!rank)
		printf("%" PRIu32 " groups of %" PRIu32 " ranks, of %.1f on the average: %zu bytes each at rest, of %zu\n",
		       nr, size, (double)counted / (made - before), used / (made - before),
		       (most - WARM_BYTES) / (made - before));
	while (made)
		muster_comm_free(comms[--made]);
	free(comms);
}

/* chosen: says what ran, which rank 0's environment has chosen. */
static void chosen(uint32_t bytes)
{
	struct muster_op_info info;
	uint8_t *in = calloc(1, bytes), *out = calloc(1, bytes);

	EXPECT_OK(muster_allreduce(world, in, out, bytes, MUSTER_U8, MUSTER_SUM));
	muster_comm_last(world, &info);
	printf("path %d by %s\n", info.path, info.schedule);
	free(in);
	free(out);
}

static const struct {
	const char *name;
	void (*run)(uint32_t nr);
} behaviours[] = {
	{ "many", many }, { "churn", churn }, { "split", split }, { "unread", unread },
	{ "neighbours", neighbours }, { "mixed", mixed }, { "groups", groups }, { "chosen", chosen },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
		if (strcmp(argv[1], behaviours[i].name))
			continue;
		if (muster_init(&job)) {
			fprintf(stderr, "%s\n", muster_error(NULL));
			return 3;
		}
		world = muster_world(job);
		rank = muster_comm_rank(world);
		size = muster_comm_size(world);
		behaviours[i].run((uint32_t)strtoul(argv[2], NULL, 10));
		muster_finalize(job);
		return 0;
	}
	fprintf(stderr, "usage: comms many|churn|split|unread|neighbours|mixed|groups|chosen NUMBER\n");
	return 2;
}
