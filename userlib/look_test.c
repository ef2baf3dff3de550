// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The looking page: found among the open files by its name, it says which operation each
 * communicator is in, and which rank is waited for.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

static struct test_world *world;

static int setup(void **state)
{
	(void)state;
	world = test_joined(2, TEST_RING_MAX);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_world_free(world);
	return 0;
}

/* As another process would do: by name and content. All ranks of these tests are one process. */
static struct muster_look_file *file_read(uint32_t rank)
{
	struct muster_look_file *file = malloc(sizeof(*file));
	DIR *all = opendir("/proc/self/fd");
	const struct dirent *entry;
	bool found = false;

	while (!found && (entry = readdir(all))) {
		char path[300], name[64] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, name, sizeof(name) - 1) < 0 ||
		    strncmp(name, "/memfd:" MUSTER_LOOK_NAME " ", strlen("/memfd:" MUSTER_LOOK_NAME " ")))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(pread(fd, file, sizeof(*file), 0), sizeof(*file));
		close(fd);
		found = file->look.rank == rank;
	}
	closedir(all);
	assert_true(found);
	return file;
}

static struct muster_look *page_read(uint32_t rank)
{
	return &file_read(rank)->look;		/* which it begins with */
}

/* A test that finds nothing, later than the page says the waits are told again. */
static void test_once(struct muster_request *request)
{
	bool done;

	usleep(20000);
	assert_int_equal(muster_test(request, &done), 0);
	assert_false(done);
}

static void test_the_page_says_who_and_where(void **state)
{
	struct muster_look *look = page_read(1);

	(void)state;
	assert_int_equal(look->magic, MUSTER_LOOK_MAGIC);
	assert_int_equal(look->version, MUSTER_LOOK_VERSION);
	assert_int_equal(look->pid, getpid());
	assert_int_equal(look->size, 2);
	assert_int_equal(look->incarnation, 7);
	assert_true(look->job_name != world->jobs[1]->key);
	assert_true(look->job_name == world->jobs[0]->look->job_name);
	assert_string_equal(look->device, "local");
	assert_int_equal(look->nr_comms, 1);
	assert_int_equal(look->comms[0].used, 1);
	assert_int_equal(look->comms[0].size, 2);
	assert_int_equal(look->comms[0].member, 1);
	free(look);
}

static void start_and_look(struct muster_request **requests, uint8_t cause)
{
	static int32_t in[2] = { 1, 2 }, out[2];
	struct muster_look *look;

	assert_int_equal(muster_allreduce_start(world->comms[0], &in[0], &out[0], 1, MUSTER_I32,
						MUSTER_SUM, &requests[0]), 0);
	test_once(requests[0]);
	look = page_read(0);
	assert_int_equal(look->comms[0].started, 1);
	assert_int_equal(look->comms[0].ended, 0);
	assert_int_equal(look->comms[0].signature.coll, MUSTER_COLL_ALLREDUCE);
	assert_int_equal(look->comms[0].bytes, 4);
	assert_int_equal(look->comms[0].told, 0);
	assert_int_equal(look->comms[0].seq % 2, 0);
	assert_true(look->comms[0].since_us && look->comms[0].told_us >= look->comms[0].since_us);
	assert_int_equal(look->comms[0].waits.nr, 1);
	assert_int_equal(look->comms[0].waits.waits[0].cause, cause);
	assert_int_equal(look->comms[0].waits.waits[0].rank, 1);
	free(look);
	look = page_read(1);
	assert_int_equal(look->comms[0].started, 0);
	free(look);
	assert_int_equal(muster_allreduce_start(world->comms[1], &in[1], &out[1], 1, MUSTER_I32,
						MUSTER_SUM, &requests[1]), 0);
}

static void finish_and_look(struct muster_request **requests, bool counts)
{
	struct muster_look *look;
	int results[2];

	test_finish(world, requests, results);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(results[i], 0);
		look = page_read(i);
		assert_int_equal(look->comms[0].started, 1);
		assert_int_equal(look->comms[0].ended, 1);
		assert_int_equal(look->counters.sequences_ended, counts);
		free(look);
	}
}

static void test_a_wait_on_the_nic_names_the_rank_that_fills_the_slot(void **state)
{
	struct muster_request *requests[2];

	(void)state;
	start_and_look(requests, MUSTER_LOOK_SLOT);
	finish_and_look(requests, true);
}

/* As a NIC does it, which writes into the page: of this operation, of the one before, of none. */
static void test_a_wait_that_the_device_wrote_into_the_page_gets_its_rank(void **state)
{
	struct muster_dev *dev = world->jobs[0]->dev;
	const struct muster_dev_ops *own = dev->ops;
	struct muster_dev_ops ops = *own;
	struct muster_look_waits *device = &world->comms[0]->look->device;
	static int32_t in[2] = { 1, 2 }, out[2];
	struct muster_request *requests[2];
	int results[2];

	(void)state;
	ops.waits = NULL;
	dev->ops = &ops;
	for (int i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], &in[i], &out[i], 1,
							MUSTER_I32, MUSTER_SUM, &requests[i]), 0);
	test_finish(world, requests, results);
	assert_int_equal(muster_allreduce_start(world->comms[0], &in[0], &out[0], 1, MUSTER_I32,
						MUSTER_SUM, &requests[0]), 0);
	for (uint32_t number = 0; number < 3; number++) {
		struct muster_look *look;

		*device = (struct muster_look_waits){ .number = number, .nr = 1 };
		device->waits[0].cause = MUSTER_LOOK_SLOT;
		device->waits[0].rank = MUSTER_LOOK_NOBODY;
		test_once(requests[0]);
		look = page_read(0);
		assert_int_equal(look->comms[0].waits.nr, number == 1);
		assert_int_equal(look->comms[0].waits.waits[0].rank, number == 1);
		free(look);
	}
	dev->ops = own;
	assert_int_equal(muster_allreduce_start(world->comms[1], &in[1], &out[1], 1, MUSTER_I32,
						MUSTER_SUM, &requests[1]), 0);
	test_finish(world, requests, results);
}

static void test_a_wait_on_the_host_path_names_the_rank_whose_stream_is_awaited(void **state)
{
	struct muster_request *requests[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_comm_offload(world->comms[i], MUSTER_OFFLOAD_OFF), 0);
	start_and_look(requests, MUSTER_LOOK_STREAM);
	finish_and_look(requests, false);
}

/* Rank 1 is where one is that made a communicator before: its place there is free again. */
static void test_a_communicator_that_is_closed_is_not_shown(void **state)
{
	struct muster_comm *comm;
	const uint32_t self = 1;
	struct muster_look *look;

	(void)state;
	assert_int_equal(muster_comm_create_group(world->comms[1], 1, &self, 0, &comm), 0);
	look = page_read(1);
	assert_int_equal(look->nr_comms, 2);
	assert_int_equal(look->comms[1].used, 1);
	assert_int_equal(look->comms[1].lead, 1);
	assert_int_equal(look->comms[1].size, 1);
	free(look);
	muster_comm_free(comm);
	look = page_read(1);
	assert_int_equal(look->comms[1].used, 0);
	free(look);
}

static uint32_t count_records(const struct muster_trace *trace, uint8_t kind)
{
	uint32_t nr = 0;

	for (uint64_t i = 0; i < trace->written && i < MUSTER_TRACE_RECORDS; i++)
		nr += trace->records[i].kind == kind;
	return nr;
}

/* Who gives its processor away should know to whom: the device asks while somebody sleeps. */
static void test_a_device_is_told_for_which_nodes_somebody_sleeps(void **state)
{
	static double in[2][100], out[2][100];	/* so long that the engine does not know it */
	struct muster *job = world->jobs[0];
	uint32_t nodes[MUSTER_LOOK_WAITS_MAX];
	struct muster_request *requests[2];
	int results[2];

	(void)state;
	assert_int_equal(muster_allreduce_start(world->comms[0], in[0], out[0], 100, MUSTER_F64,
						MUSTER_SUM, &requests[0]), 0);
	test_once(requests[0]);
	assert_int_equal(job->dev->awaited(job->dev->sleeper, nodes), 0);
	job->dozing = world->comms[0];
	assert_int_equal(job->dev->awaited(job->dev->sleeper, nodes), 1);
	assert_int_equal(nodes[0], job->addresses[1].node);
	assert_int_equal(muster_allreduce_start(world->comms[1], in[1], out[1], 100, MUSTER_F64,
						MUSTER_SUM, &requests[1]), 0);
	test_finish(world, requests, results);
	assert_int_equal(job->dev->awaited(job->dev->sleeper, nodes), 0);
	job->dozing = NULL;
}

/* The switch is thrown from outside, as a recorder does it. */
static void test_records_are_written_while_they_are_wanted(void **state)
{
	static int32_t in[2] = { 1, 2 }, out[2];
	struct muster_request *requests[2];
	struct muster_look_file *file;
	int results[2];

	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		for (uint32_t i = 0; i < 2; i++) {
			world->jobs[i]->trace->on = turn == 1;
			assert_int_equal(muster_allreduce_start(world->comms[i], &in[i], &out[i], 1,
								MUSTER_I32, MUSTER_SUM,
								&requests[i]), 0);
		}
		test_finish(world, requests, results);
	}
	for (uint32_t i = 0; i < 2; i++) {
		file = file_read(i);
		assert_int_equal(count_records(&file->trace, MUSTER_TRACE_CALL), 1);
		assert_int_equal(count_records(&file->trace, MUSTER_TRACE_DONE), 1);
		assert_int_equal(count_records(&file->trace, MUSTER_TRACE_SEND), 1);
		assert_int_equal(count_records(&file->trace, MUSTER_TRACE_RECEIVE_TAKE) +
				 count_records(&file->trace, MUSTER_TRACE_RECEIVE), 1);
		assert_int_equal(count_records(&file->trace, MUSTER_TRACE_RECEIVE_TAKE) +
				 count_records(&file->trace, MUSTER_TRACE_TAKE), 1);
		assert_int_equal(file->trace.records[0].kind, MUSTER_TRACE_CALL);
		assert_int_equal(file->trace.records[0].number, 1);
		assert_int_equal(file->trace.records[0].slot, MUSTER_COLL_ALLREDUCE);
		assert_int_equal(file->trace.records[file->trace.written - 1].kind, MUSTER_TRACE_DONE);
		for (uint32_t r = 0; r < file->trace.written; r++)
			assert_int_equal(file->trace.records[r].life, world->comms[i]->life);
		free(file);
	}
}

/* Who records comes, or goes, in the middle of an operation. */
static void test_an_end_is_recorded_if_its_beginning_was_and_somebody_still_wants_it(void **state)
{
	static int32_t in[2] = { 1, 2 }, out[2];
	struct muster_request *requests[2];
	struct muster_trace *trace = world->jobs[0]->trace;
	int results[2];

	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		for (uint32_t i = 0; i < 2; i++) {
			trace->on = turn == 1;
			assert_int_equal(muster_allreduce_start(world->comms[i], &in[i], &out[i], 1,
								MUSTER_I32, MUSTER_SUM,
								&requests[i]), 0);
			trace->on = turn == 0;
		}
		test_finish(world, requests, results);
		assert_int_equal(count_records(trace, MUSTER_TRACE_CALL), turn >= 1);
		assert_int_equal(count_records(trace, MUSTER_TRACE_DONE), 0);
	}
}

/* The recorder has been killed: it takes back nothing, and does not say that it goes on. */
static void test_records_end_with_their_recorder(void **state)
{
	static int32_t in[2] = { 1, 2 }, out[2];
	struct muster_request *requests[2];
	int results[2];

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < 2; i++) {
			struct muster_trace *trace = world->jobs[i]->trace;

			assert_true(trace->until > trace->now);
			trace->on = 1;
			trace->until = turn ? trace->now : UINT64_MAX;
			assert_int_equal(muster_allreduce_start(world->comms[i], &in[i], &out[i], 1,
								MUSTER_I32, MUSTER_SUM,
								&requests[i]), 0);
		}
		test_finish(world, requests, results);
		for (uint32_t i = 0; i < 2; i++) {
			assert_int_equal(world->jobs[i]->trace->on, !turn);
			assert_int_equal(count_records(world->jobs[i]->trace, MUSTER_TRACE_DONE), 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_page_says_who_and_where, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_wait_on_the_nic_names_the_rank_that_fills_the_slot,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_wait_that_the_device_wrote_into_the_page_gets_its_rank,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_wait_on_the_host_path_names_the_rank_whose_stream_is_awaited,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_device_is_told_for_which_nodes_somebody_sleeps, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_records_are_written_while_they_are_wanted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_an_end_is_recorded_if_its_beginning_was_and_somebody_still_wants_it,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_records_end_with_their_recorder, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_communicator_that_is_closed_is_not_shown, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
