// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arguments of operations: whatever is wrong is found before anything is sent,
 * said in words, and changes nothing. And what an operation says that it did.
 */
#include "testing.h"

static struct test_world *world;
static struct muster_comm *comm;
static struct muster_request *request;
static int32_t in[64], out[64];

static int setup(void **state)
{
	(void)state;
	world = test_joined(2, TEST_RING_MAX);
	comm = world->comms[0];
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_world_free(world);
	return 0;
}

static void refused(int err, int expected, const char *words)
{
	assert_int_equal(err, expected);
	if (!strstr(muster_error(world->jobs[0]), words))
		fail_msg("\"%s\" is not in: %s", words, muster_error(world->jobs[0]));
}

static int allreduce(const void *from, void *to, uint64_t count, int type, int op)
{
	return muster_allreduce_start(comm, from, to, count, type, op, &request);
}

/* After all that was refused, the ranks agree as if nothing had been called. */
static void assert_unchanged(void)
{
	struct muster_request *requests[2];
	int results[2];

	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], in, i ? in : out, 1,
							MUSTER_I32, MUSTER_SUM, &requests[i]), 0);
	test_finish(world, requests, results);
	assert_int_equal(results[0], 0);
	assert_int_equal(results[1], 0);
}

static void test_unknown_types_and_operations_are_refused(void **state)
{
	(void)state;
	refused(allreduce(in, out, 1, 0, MUSTER_SUM), -EINVAL, "no element type 0");
	refused(allreduce(in, out, 1, MUSTER_I64_I32 + 1, MUSTER_SUM), -EINVAL,
		"no element type 20");
	refused(allreduce(in, out, 1, 256 + MUSTER_I32, MUSTER_SUM), -EINVAL,
		"no element type 259");
	refused(allreduce(in, out, 1, -1, MUSTER_SUM), -EINVAL, "no element type");
	refused(allreduce(in, out, 1, MUSTER_I32, 0), -EINVAL, "no operation 0");
	refused(allreduce(in, out, 1, MUSTER_I32, MUSTER_REPLACE + 1), -EINVAL, "no operation 14");
	refused(allreduce(in, out, 1, MUSTER_I32, 256 + 1), -EINVAL, "no operation 257");
	refused(allreduce(in, out, 1, MUSTER_F64, MUSTER_BAND), -EINVAL,
		"allreduce: band is not defined for f64, which has sum, min, max, prod");
	refused(allreduce(in, out, 1, MUSTER_F64_I32, MUSTER_SUM), -EINVAL,
		"sum is not defined for f64_i32, which has minloc, maxloc");
	refused(allreduce(in, out, 1, MUSTER_I32, MUSTER_REPLACE), -EINVAL,
		"replace depends on the order");
	assert_unchanged();
}

static void test_counts_that_overflow_are_refused(void **state)
{
	(void)state;
	refused(allreduce(in, out, 1ull << 61, MUSTER_I64, MUSTER_SUM), -EOVERFLOW,
		"2305843009213693952 elements of 8 bytes");
	refused(allreduce(in, out, UINT64_MAX, MUSTER_I8, MUSTER_SUM), -EOVERFLOW, "elements");
	refused(allreduce((void *)(UINTPTR_MAX - 4), out, 2, MUSTER_I64, MUSTER_SUM), -EFAULT,
		"past the end of memory");
	assert_unchanged();
}

static void test_missing_buffers_are_refused(void **state)
{
	(void)state;
	refused(allreduce(NULL, out, 1, MUSTER_I32, MUSTER_SUM), -EFAULT, "in is NULL");
	refused(allreduce(in, NULL, 1, MUSTER_I32, MUSTER_SUM), -EFAULT, "out is NULL");
	refused(muster_broadcast_start(comm, NULL, 1, MUSTER_I32, 0, &request), -EFAULT,
		"buf is NULL");
	refused(muster_reduce_start(comm, in, NULL, 1, MUSTER_I32, MUSTER_SUM, 0, &request),
		-EFAULT, "out is NULL");
	refused(allreduce((void *)8, out, 64, MUSTER_I32, MUSTER_SUM), -EFAULT,
		"cannot be read by the device");
	refused(muster_barrier_start(comm, NULL), -EINVAL, "request is NULL");
	assert_int_equal(muster_barrier_start(NULL, &request), -EINVAL);
	assert_unchanged();
}

static void test_roots_that_are_not_there_are_refused(void **state)
{
	(void)state;
	refused(muster_broadcast_start(comm, in, 1, MUSTER_I32, 2, &request), -EINVAL,
		"broadcast: root 2, but the communicator has 2 ranks");
	refused(muster_reduce_start(comm, in, out, 1, MUSTER_I32, MUSTER_SUM, UINT32_MAX, &request),
		-EINVAL, "root 4294967295");
	assert_unchanged();
}

static void test_buffers_that_overlap_are_refused(void **state)
{
	(void)state;
	refused(allreduce(in, in + 1, 2, MUSTER_I32, MUSTER_SUM), -EINVAL, "overlap");
	refused(allreduce(in + 1, in, 2, MUSTER_I32, MUSTER_SUM), -EINVAL, "overlap");
	refused(muster_reduce_start(comm, in, in + 3, 4, MUSTER_I32, MUSTER_SUM, 0, &request),
		-EINVAL, "overlap");
	assert_unchanged();
}

static void test_settings_are_checked(void **state)
{
	(void)state;
	refused(muster_comm_offload(comm, 3), -EINVAL, "allowed are off (0), try (1) and force (2)");
	refused(muster_comm_schedule(comm, "magic"), -EINVAL, "no schedule named \"magic\"");
	refused(muster_comm_schedule(comm, "./none.sched"), -ENOENT, "./none.sched");
	assert_unchanged();
}

/* ---- schedule files ------------------------------------------------------------------------ */

static const char *write_file(const char *text)
{
	static char path[] = "/tmp/muster-coll-test-XXXXXX";
	FILE *file;
	int fd;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	fputs(text, file);
	fclose(file);
	return path;
}

static const char *write_schedule(const char *name, enum muster_coll coll, uint32_t ranks)
{
	struct muster_schedule *schedule;
	char why[MUSTER_WHY_MAX], *text;
	const char *path;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_int_equal(muster_schedule_generate(name, coll, ranks, 0, 1024, &schedule, why,
						  sizeof(why)), 0);
	assert_int_equal(muster_schedule_write(schedule, to), 0);
	fclose(to);
	path = write_file(text);
	muster_schedule_free(schedule);
	free(text);
	return path;
}

static void allreduce_everywhere(uint64_t count)
{
	struct muster_request *requests[2];
	static int32_t values[2][64];
	int results[2];

	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], values[i], values[i],
							count, MUSTER_I32, MUSTER_SUM,
							&requests[i]), 0);
	test_finish(world, requests, results);
	assert_int_equal(results[0], 0);
}

static void test_a_schedule_file_serves_what_it_describes(void **state)
{
	const char *path = write_schedule("ring", MUSTER_COLL_ALLREDUCE, 2);
	struct muster_request *requests[2];
	struct muster_op_info info;
	int results[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_comm_schedule(world->comms[i], path), 0);
	remove(path);
	allreduce_everywhere(64);
	muster_comm_last(comm, &info);
	assert_string_equal(info.schedule, "ring");
	for (uint32_t i = 0; i < 2; i++)	/* a barrier is not in it */
		assert_int_equal(muster_barrier_start(world->comms[i], &requests[i]), 0);
	test_finish(world, requests, results);
	muster_comm_last(comm, &info);
	assert_string_equal(info.schedule, "recursive-doubling");
}

static void assert_runs(uint64_t count, const char *schedule, uint32_t sequences)
{
	struct muster_op_info info;

	allreduce_everywhere(count);
	muster_comm_last(comm, &info);
	assert_string_equal(info.schedule, schedule);
	assert_int_equal(info.sequences, sequences);
}

static void test_a_tuning_file_chooses_by_size(void **state)
{
	const char *path;
	char text[300], *file = strdup(write_schedule("ring", MUSTER_COLL_ALLREDUCE, 2));
	uint64_t digests[2];

	(void)state;
	snprintf(text, sizeof(text), "muster-tuning 1\nallreduce 8 recursive-doubling # 2 elements\n"
		 "allreduce 64 nowhere-known\nallreduce 64 binomial barrier memory pulse=64\n"
		 "allreduce 128 rabenseifner\nallreduce 200 %s\nend\n", file);
	path = write_file(text);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_comm_schedule(world->comms[i], path), 0);
	remove(path);
	remove(file);
	free(file);
	assert_runs(2, "recursive-doubling", 1);
	assert_runs(16, "binomial", 2);		/* two steps, one stage each */
	assert_runs(32, "rabenseifner", 1);
	assert_runs(48, "ring", 1);
	assert_runs(64, "recursive-doubling", 1);	/* none of the lines: as suits */
	/* What ranks must do alike is in the signature. */
	for (uint32_t i = 0; i < 2; i++) {
		struct muster_schedule *schedule;
		char why[200];

		assert_int_equal(muster_schedule_by_rank("ring", MUSTER_COLL_ALLREDUCE, 2, 0, 0,
							 &schedule, why, sizeof(why)), 0);
		schedule->variant.memory = i;
		digests[i] = muster_schedule_hash(schedule);
		muster_schedule_free(schedule);
	}
	assert_int_not_equal(digests[0], digests[1]);
}

static void test_a_tuning_file_has_lines_for_numbers_of_ranks(void **state)
{
	const char *path = write_file("muster-tuning 2\nranks 3\nallreduce any ring\nranks 2\n"
				      "allreduce 64 binomial\nranks any\nallreduce any rabenseifner\nend\n");

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_comm_schedule(world->comms[i], path), 0);
	remove(path);
	assert_runs(2, "binomial", 1);
	assert_runs(32, "rabenseifner", 1);
}

static void test_a_list_chooses_by_collective_and_size(void **state)
{
	static const char list[] = "allreduce:8=recursive-doubling,reduce=binomial,allreduce:1K=ring";

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_comm_schedule(world->comms[i], list), 0);
	assert_runs(2, "recursive-doubling", 1);
	assert_runs(32, "ring", 1);
}

static void test_bad_lists_are_refused_with_the_reason(void **state)
{
	static const char *const bad[][2] = {
		{ "allreduce=rign", "item 1: there is no schedule named \"rign\": there are binomial, " },
		{ "allreduce=ring,gossip=ring",
		  "item 2: there is no collective \"gossip\": there are barrier, broadcast, " },
		{ "allreduce:4G=ring", "item 1: \"4G\" is no size" },
		{ "barrier=ring", "item 1: ring does not do barrier" },
		{ "allreduce=ring,", "item 2: \"\", but COLLECTIVE=SCHEDULE" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(muster_comm_schedule(comm, bad[i][0]), -EINVAL, bad[i][1]);
	assert_unchanged();
}

/* Peers that can read the memory of muster_alloc() know it by its region's key. */
static void assert_pinned_apart(bool apart)
{
	struct muster_request *requests[2];
	void *buffers[2];
	int results[2];

	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(muster_alloc(world->comms[i]->job, 4096, &buffers[i]), 0);
		assert_int_equal(muster_allreduce_start(world->comms[i], buffers[i], buffers[i],
							1024, MUSTER_I32, MUSTER_SUM,
							&requests[i]), 0);
		assert_int_equal(requests[i]->out_pin.owned, apart);
	}
	test_finish(world, requests, results);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(results[i], 0);
		muster_free(world->comms[i]->job, buffers[i]);
	}
}

static void test_what_is_pushed_cannot_be_read_by_peers(void **state)
{
	const char *path = write_file("muster-tuning 1\nallreduce any ring push\nend\n");

	(void)state;
	assert_pinned_apart(false);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_comm_schedule(world->comms[i], path), 0);
	remove(path);
	assert_pinned_apart(true);
}

static void test_bad_tuning_files_are_refused_with_the_reason(void **state)
{
	static const char *const bad[][2] = {
		{ "muster-tuning 3\n", "line 1: \"muster-tuning 2\", or 1, expected" },
		{ "muster-tuning 2\nranks 0\n", "line 2: \"ranks 0\": it can be 1 to 65536, or any" },
		{ "muster-tuning 2\nranks -4\n", "line 2: \"ranks -4\": it can be 1" },
		{ "muster-tuning 1\n\nallreduce 4K\nend\n", "line 3: \"COLLECTIVE SIZE SCHEDULE\"" },
		{ "muster-tuning 1\ngossip 4K ring\nend\n", "line 2: there is no collective \"gossip\"" },
		{ "muster-tuning 1\nreduce -1 ring\nend\n", "line 2: \"-1\" is no size" },
		{ "muster-tuning 1\nreduce 4G ring\nend\n", "line 2: \"4G\" is no size" },
		{ "muster-tuning 1\nreduce any ring pulse=100\nend\n",
		  "line 2: pulse=100: it can be 64 to 262144, a multiple of 64" },
		{ "muster-tuning 1\nreduce any ring slowly\nend\n", "line 2: \"slowly\", but there" },
		{ "muster-tuning 1\nreduce any ./nowhere\nend\n",
		  "line 2: ./nowhere: it cannot be opened" },
		{ "muster-tuning 1\nreduce any ring\n", "line 3: the text ends without \"end\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *path = write_file(bad[i][0]);

		refused(muster_comm_schedule(comm, path), -EINVAL, bad[i][1]);
		remove(path);
	}
	assert_unchanged();
}

static void test_bad_schedule_files_are_refused_with_the_reason(void **state)
{
	const char *path = write_file("this is not a schedule\n");

	(void)state;
	refused(muster_comm_schedule(comm, path), -EINVAL, "line 1");
	remove(path);
	path = write_schedule("ring", MUSTER_COLL_ALLREDUCE, 3);
	refused(muster_comm_schedule(comm, path), -EINVAL,
		"it is for 3 ranks, the communicator has 2");
	remove(path);
	/* Its proof would take 1 GiB and find what it lacks. */
	path = write_file("muster-schedule 1\nname x\ncollective allreduce\nranks 65536\n"
			  "chunks 1\nstep 0\n  0 -> 1  chunk 0  reduce\nend\n");
	refused(muster_comm_schedule(comm, path), -EINVAL,
		"it is for 65536 ranks, the communicator has 2");
	remove(path);
	assert_unchanged();
}

/* ---- what it did --------------------------------------------------------------- */

static void test_the_last_operation_says_its_path_and_why(void **state)
{
	struct muster_op_info info;

	(void)state;
	muster_comm_last(comm, &info);
	assert_int_equal(info.path, MUSTER_PATH_NONE);
	assert_string_equal(info.why, "no operation has finished yet");
	allreduce_everywhere(2);
	muster_comm_last(comm, &info);
	assert_int_equal(info.path, MUSTER_PATH_NIC);
	assert_string_equal(info.why, "NIC: offloaded");
	assert_int_equal(info.bytes, 8);
	assert_int_equal(info.sequences, 1);
	assert_true(info.descriptors > 0 && info.steps > 0);
	for (uint32_t i = 0; i < 2; i++)
		muster_comm_offload(world->comms[i], MUSTER_OFFLOAD_OFF);
	allreduce_everywhere(64);
	muster_comm_last(comm, &info);
	assert_int_equal(info.path, MUSTER_PATH_HOST);
	assert_string_equal(info.why, "host: offload is off");
	assert_int_equal(info.sequences, 0);
	assert_int_equal(allreduce(in, out, 0, MUSTER_I32, MUSTER_SUM), 0);
	assert_int_equal(muster_wait(request), 0);
	muster_comm_last(comm, &info);
	assert_int_equal(info.path, MUSTER_PATH_NONE);
	assert_string_equal(info.why, "nothing to do: no elements");
}

/*
 * Rank 0 sends to everyone in one step: more descriptors than a sequence can have. An allreduce
 * is gathered there before, from one after the other.
 */
static const char *write_flat(enum muster_coll coll, uint32_t ranks)
{
	bool gathers = coll == MUSTER_COLL_ALLREDUCE;
	struct muster_schedule flat = { .name = "flat", .coll = coll, .ranks = ranks, .chunks = 4,
					.steps = gathers ? ranks : 1 };
	struct muster_transfer transfers[8 * TEST_RANKS_MAX];
	const char *path;
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	for (uint32_t rank = 1; rank < ranks && gathers; rank++)
		for (uint32_t chunk = 0; chunk < 4; chunk++)
			transfers[flat.nr_transfers++] = (struct muster_transfer){
				.step = rank - 1, .chunk = chunk, .from = rank, .reduce = true };
	for (uint32_t rank = 1; rank < ranks; rank++)
		for (uint32_t chunk = 0; chunk < 4; chunk++)
			transfers[flat.nr_transfers++] = (struct muster_transfer){
				.step = flat.steps - 1, .chunk = chunk, .to = rank };
	flat.transfers = transfers;
	assert_int_equal(muster_schedule_write(&flat, to), 0);
	fclose(to);
	path = write_file(text);
	free(text);
	return path;
}

static void broadcast_everywhere(struct test_world *wide, int expected)
{
	struct muster_request *requests[TEST_RANKS_MAX] = { NULL };
	static int32_t values[TEST_RANKS_MAX][8];
	int results[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < wide->size; i++) {
		memset(values[i], i ? 0 : 7, sizeof(values[i]));
		assert_int_equal(muster_broadcast_start(wide->comms[i], values[i], 8, MUSTER_I32, 0,
							&requests[i]), expected);
		if (expected)
			requests[i] = NULL;
	}
	test_finish(wide, requests, results);
	for (uint32_t i = 0; i < wide->size && !expected; i++)
		assert_memory_equal(values[i], values[0], sizeof(values[i]));
}

static void test_what_the_nic_cannot_do_goes_to_the_host_or_is_refused(void **state)
{
	struct test_world *wide = test_joined(20, TEST_RING_MAX);
	const char *path = write_flat(MUSTER_COLL_BROADCAST, 20);
	struct muster_op_info info;

	(void)state;
	for (uint32_t i = 0; i < wide->size; i++)
		assert_int_equal(muster_comm_schedule(wide->comms[i], path), 0);
	remove(path);
	broadcast_everywhere(wide, 0);
	muster_comm_last(wide->comms[3], &info);
	assert_int_equal(info.path, MUSTER_PATH_HOST);
	assert_non_null(strstr(info.why, "host: step 0"));
	assert_non_null(strstr(info.why, "MUSTER_SEQ_DESCS_MAX"));
	for (uint32_t i = 0; i < wide->size; i++)
		muster_comm_offload(wide->comms[i], MUSTER_OFFLOAD_FORCE);
	broadcast_everywhere(wide, -EOPNOTSUPP);
	assert_non_null(strstr(muster_error(wide->jobs[5]), "offload is forced"));
	test_world_free(wide);
}

static uint32_t not_forced;

static int watching_poll(struct muster_dev *dev, struct muster_cqe *cqe)
{
	struct test_node *node = test_node_of(dev);

	if (!node->node)
		not_forced += node->world->comms[0]->offload != MUSTER_OFFLOAD_FORCE;
	return test_poll(dev, cqe);
}

static void *split_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct test_world *wide = thread->world;
	struct muster_comm *made;

	wide->results[thread->rank] = muster_comm_split(wide->comms[thread->rank], 1, 0, &made);
	return NULL;
}

/* Other threads may use the parent meanwhile. */
static void test_a_split_leaves_its_parents_choices_alone(void **state)
{
	struct test_world *wide = test_joined(20, TEST_RING_MAX);
	const char *path = write_flat(MUSTER_COLL_ALLREDUCE, 20);
	struct muster_dev_ops ops = test_dev_ops;
	struct muster_op_info info;

	(void)state;
	ops.poll = watching_poll;
	for (uint32_t i = 0; i < wide->size; i++) {
		assert_int_equal(muster_comm_schedule(wide->comms[i], path), 0);
		assert_int_equal(muster_comm_offload(wide->comms[i], MUSTER_OFFLOAD_FORCE), 0);
		wide->nodes[i].dev.ops = &ops;
	}
	remove(path);
	not_forced = 0;
	test_all(wide, split_run, NULL);
	for (uint32_t i = 0; i < wide->size; i++) {
		assert_int_equal(wide->results[i], 0);
		muster_comm_last(wide->comms[i], &info);
		assert_string_equal(info.why, "no operation has finished yet");
	}
	assert_int_equal(not_forced, 0);
	test_world_free(wide);
}

static void test_one_rank_alone_copies(void **state)
{
	struct test_world *alone = test_joined(1, TEST_RING_MAX);
	int32_t from[3] = { 1, 2, 3 }, to[3] = { 0 };
	struct muster_op_info info;

	(void)state;
	assert_int_equal(muster_allreduce(alone->comms[0], from, to, 3, MUSTER_I32, MUSTER_MAX), 0);
	assert_memory_equal(from, to, sizeof(to));
	assert_int_equal(muster_reduce(alone->comms[0], from, to, 3, MUSTER_I32, MUSTER_SUM, 0), 0);
	assert_int_equal(muster_broadcast(alone->comms[0], from, 3, MUSTER_I32, 0), 0);
	assert_int_equal(muster_barrier(alone->comms[0]), 0);
	muster_comm_last(alone->comms[0], &info);
	assert_string_equal(info.why, "nothing to do: one rank");
	test_world_free(alone);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_unknown_types_and_operations_are_refused),
		TEST(test_counts_that_overflow_are_refused),
		TEST(test_missing_buffers_are_refused),
		TEST(test_roots_that_are_not_there_are_refused),
		TEST(test_buffers_that_overlap_are_refused),
		TEST(test_settings_are_checked),
		TEST(test_a_schedule_file_serves_what_it_describes),
		TEST(test_a_tuning_file_chooses_by_size),
		TEST(test_a_tuning_file_has_lines_for_numbers_of_ranks),
		TEST(test_what_is_pushed_cannot_be_read_by_peers),
		TEST(test_bad_tuning_files_are_refused_with_the_reason),
		TEST(test_a_list_chooses_by_collective_and_size),
		TEST(test_bad_lists_are_refused_with_the_reason),
		TEST(test_bad_schedule_files_are_refused_with_the_reason),
		TEST(test_the_last_operation_says_its_path_and_why),
		cmocka_unit_test(test_what_the_nic_cannot_do_goes_to_the_host_or_is_refused),
		cmocka_unit_test(test_a_split_leaves_its_parents_choices_alone),
		cmocka_unit_test(test_one_rank_alone_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
