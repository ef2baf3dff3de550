// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The mesh between real processes: they meet, memory passes, sleepers wake. */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "test_mesh.h"

static int alone(void *opaque, const void *in, void *out, size_t bytes)
{
	(void)opaque;
	memcpy(out, in, bytes);
	return 0;
}

static void *opens_often(void *opaque)
{
	struct muster_oob oob = { .rank = 0, .size = 1, .allgather = alone };
	struct heard heard;

	(void)opaque;
	for (int i = 0; i < 1000; i++)
		muster_mesh_close(mesh_open(&oob, &heard));
	return NULL;
}

static void jobs_in_several_threads_leave_the_limit_of_files_alone(void **state)
{
	struct rlimit before, limit, after;
	pthread_t threads[3];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = limit.rlim_max / 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, opens_often, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(after.rlim_cur, limit.rlim_cur);
}

static void passes_memory(struct muster_oob *oob, const void *argument)
{
	struct muster_mesh_message message = { .kind = MUSTER_MESH_REGION, .key = 7,
					       .addr = 1ull << 40, .bytes = 4096 };
	struct heard heard;
	struct muster_mesh *mesh = mesh_open(oob, &heard);
	uint64_t number, numbers[TEST_RANKS_MAX];
	char text[8] = "";
	int fd;

	(void)argument;
	number = muster_mesh_number(mesh);
	EXPECT(!oob->allgather(oob->opaque, &number, numbers, sizeof(number)));
	for (uint32_t rank = 0; rank < oob->size; rank++)
		EXPECT(numbers[rank] == number);
	if (oob->rank == 1) {
		fd = memfd_create("test", MFD_CLOEXEC);
		EXPECT(write(fd, "memory", 7) == 7);
		for (uint32_t rank = 0; rank < oob->size; rank++)
			EXPECT(rank == 1 || !muster_mesh_send(mesh, rank, &message, fd));
		close(fd);
	} else {
		while (!heard.nr)
			muster_mesh_wait(mesh, TEST_EVER_US);
		EXPECT(heard.nr == 1 && heard.from == 1 && heard.fd >= 0);
		EXPECT(heard.message.key == 7 && heard.message.addr == 1ull << 40);
		EXPECT(pread(heard.fd, text, 7, 0) == 7 && !strcmp(text, "memory"));
		close(heard.fd);
	}
	test_barrier(oob);
	muster_mesh_close(mesh);
}

static void ranks_pass_memory(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, passes_memory, NULL), 0);
	assert_int_equal(test_ranks(5, passes_memory, NULL), 0);
}

static void set_limit(rlim_t files)
{
	struct rlimit limit = { .rlim_cur = files, .rlim_max = files };

	EXPECT(!setrlimit(RLIMIT_NOFILE, &limit));
}

/* Let no further file be opened here. */
static void open_no_more(void)
{
	int lowest = dup(0);

	close(lowest);
	set_limit((rlim_t)lowest);
}

/* Let only so many be opened. */
static void open_few_more(rlim_t more)
{
	DIR *open = opendir("/proc/self/fd");

	while (readdir(open))
		more++;
	closedir(open);
	set_limit(more - 3);	/* without . and .. and the folder itself */
}

/* At the limit of open files memory does not arrive; its sender lives all the same. */
static void has_no_descriptor_left(struct muster_oob *oob, const void *argument)
{
	struct muster_mesh_message message = { .kind = MUSTER_MESH_REGION, .key = 7 };
	struct heard heard;
	struct muster_mesh *mesh = mesh_open(oob, &heard);

	(void)argument;
	if (oob->rank == 1)
		open_no_more();
	test_barrier(oob);
	if (oob->rank == 0) {
		EXPECT(!muster_mesh_send(mesh, 1, &message, 0));
		message.key = 8;
		EXPECT(!muster_mesh_send(mesh, 1, &message, -1));
	}
	for (int nr = 1; oob->rank == 1 && nr <= 2; nr++) {
		while (heard.nr < nr && !heard.lost[0])
			muster_mesh_wait(mesh, TEST_EVER_US);
		EXPECT(!heard.lost[0] && heard.fd == -1);
	}
	EXPECT(oob->rank == 0 || heard.message.key == 8);
	test_barrier(oob);
	muster_mesh_close(mesh);
}

static void a_peer_lives_at_our_limit_of_open_files(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, has_no_descriptor_left, NULL), 0);
}

static int count_fds(void)
{
	DIR *open = opendir("/proc/self/fd");
	int nr = 0;

	while (readdir(open))
		nr++;
	closedir(open);
	return nr;
}

/* Rank 0 sends two descriptors, where there is one at most. */
static void sends_two(struct muster_oob *oob, const void *argument)
{
	struct muster_mesh_message message = { .kind = htole32(MUSTER_MESH_REGION) };
	struct iovec part = { &message, sizeof(message) };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} two = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			    .cmsg_len = CMSG_LEN(2 * sizeof(int)) } };
	struct msghdr sent = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &two,
			       .msg_controllen = sizeof(two) };
	struct heard heard;
	struct muster_mesh *mesh = mesh_open(oob, &heard);
	int fds = count_fds();

	(void)argument;
	memset(CMSG_DATA(&two.head), 0, 2 * sizeof(int));
	if (oob->rank == 0)
		EXPECT(sendmsg(mesh->peers[1].fd, &sent, 0) == sizeof(message));
	while (oob->rank == 1 && !heard.nr)
		muster_mesh_wait(mesh, TEST_EVER_US);
	if (oob->rank == 1 && heard.fd >= 0)
		close(heard.fd);
	EXPECT(count_fds() == fds);
	test_barrier(oob);
	muster_mesh_close(mesh);
}

static void what_comes_with_a_message_does_not_stay(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, sends_two, NULL), 0);
}

static void sleeps(struct muster_oob *oob, const void *argument)
{
	struct heard heard;
	struct muster_mesh *mesh = mesh_open(oob, &heard);
	double now = 0, all[2], start;

	(void)argument;
	if (oob->rank == 0) {
		usleep(100000);
		now = test_seconds();
		muster_mesh_wake(mesh, 1);
	} else {
		muster_mesh_wait(mesh, TEST_EVER_US);
		now = start = test_seconds();
		muster_mesh_wait(mesh, 50000);	/* once is once */
		EXPECT(test_seconds() - start > 0.04);
	}
	EXPECT(!oob->allgather(oob->opaque, &now, all, sizeof(now)));
	EXPECT(all[1] >= all[0]);
	muster_mesh_close(mesh);
}

static void a_sleeper_wakes_when_it_is_woken(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, sleeps, NULL), 0);
}

/* Two threads of one rank: while the one sleeps the other takes what comes. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static bool asleep;

static void on_sleep(void *owner, bool begins)
{
	(void)owner;
	if (!begins)
		pthread_mutex_lock(&turn);
	asleep = begins;
	if (begins)
		pthread_mutex_unlock(&turn);
}

static void *sleeps_long(void *opaque)
{
	pthread_mutex_lock(&turn);
	muster_mesh_wait(opaque, TEST_EVER_US);
	pthread_mutex_unlock(&turn);
	return NULL;
}

static void a_sleeper_wakes_though_another_thread_was_quicker(void **state)
{
	static const struct muster_mesh_events events = {
		.message = on_message, .lost = on_lost, .sleeps = on_sleep,
	};
	struct muster_oob oob = { .rank = 0, .size = 1, .allgather = alone };
	struct muster_mesh_config config = { .events = &events, .deadline_us = TEST_EVER_US,
					     .memory_fd = -1 };
	struct muster_mesh *mesh;
	char why[256] = "";

	(void)state;
	assert_int_equal(muster_mesh_open(&oob, &config, &mesh, why, sizeof(why)), 0);
	for (int i = 0; i < 100; i++) {
		pthread_t thread;
		bool sleeps = false;

		asleep = false;
		assert_int_equal(pthread_create(&thread, NULL, sleeps_long, mesh), 0);
		while (!sleeps) {
			pthread_mutex_lock(&turn);
			sleeps = asleep;
			if (sleeps) {
				muster_mesh_wake(mesh, 0);
				muster_mesh_service(mesh);
			}
			pthread_mutex_unlock(&turn);
			sched_yield();		/* the lock is not fair */
		}
		pthread_join(thread, NULL);
	}
	muster_mesh_close(mesh);
}

/* argument: how many messages each sends to each at once, with what memory. */
static void all_talk(struct muster_oob *oob, const void *argument)
{
	struct muster_mesh_message message = { .kind = MUSTER_MESH_WITHDRAW };
	struct heard heard;
	int before = count_fds(), nr = *(const int *)argument, met;
	struct muster_mesh *mesh = mesh_open(oob, &heard);

	met = count_fds() - before;
	EXPECT(met <= (oob->rank ? 6 : 4 + 2 * ((int)oob->size - 1)));
	test_barrier(oob);
	for (int i = 0; i < nr; i++)
		for (uint32_t rank = 0; rank < oob->size; rank++)
			while (rank != oob->rank && muster_mesh_send(mesh, rank, &message, -1))
				muster_mesh_service(mesh);
	while (heard.nr < nr * ((int)oob->size - 1))
		muster_mesh_wait(mesh, TEST_EVER_US);
	EXPECT(heard.nr == nr * ((int)oob->size - 1) && !nr_lost(&heard));
	test_barrier(oob);
	muster_mesh_close(mesh);
}

static void connections_are_made_when_they_are_needed(void **state)
{
	static const int nr[] = { 0, 1, 20 };

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(test_ranks(TEST_RANKS_MAX, all_talk, &nr[i]), 0);
}

/* More connect to rank 1 than it has places for, and these say nothing for a while. */
static void wait_their_turn(struct muster_oob *oob, const void *argument)
{
	struct muster_mesh_message message = { .kind = MUSTER_MESH_WITHDRAW };
	int silent[STRANGERS_MAX];
	struct heard heard;
	struct muster_mesh *mesh = mesh_open(oob, &heard);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	(void)argument;
	memcpy(addr.sun_path, mesh->cards[1].name, NAME_LEN);
	for (int i = 0; oob->rank == 0 && i < STRANGERS_MAX; i++) {
		silent[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		EXPECT(!connect(silent[i], (struct sockaddr *)&addr,
				offsetof(struct sockaddr_un, sun_path) + NAME_LEN));
	}
	test_barrier(oob);
	if (oob->rank == 1)
		muster_mesh_service(mesh);
	test_barrier(oob);
	if (oob->rank > 1)
		EXPECT(!muster_mesh_send(mesh, 1, &message, -1));
	test_barrier(oob);
	muster_mesh_service(mesh);
	test_barrier(oob);
	EXPECT(!nr_lost(&heard));
	for (int i = 0; oob->rank == 0 && i < STRANGERS_MAX; i++)
		close(silent[i]);
	while (oob->rank == 1 && heard.nr < (int)oob->size - 2)
		muster_mesh_wait(mesh, TEST_EVER_US);
	EXPECT(!nr_lost(&heard));
	test_barrier(oob);
	muster_mesh_close(mesh);
}

static void who_comes_waits_for_a_place(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(TEST_RANKS_MAX, wait_their_turn, NULL), 0);
}

static void fails_at_one(struct muster_oob *oob, const void *argument)
{
	static const struct muster_mesh_events events = { .message = on_message, .lost = on_lost };
	struct muster_mesh_config config = { .events = &events, .deadline_us = TEST_EVER_US,
					     .memory_fd = -1 };
	char why[256] = "the disk is on fire";
	struct muster_mesh *mesh;

	(void)argument;
	config.error = oob->rank == 1 ? -EIO : 0;
	EXPECT(muster_mesh_open(oob, &config, &mesh, why, sizeof(why)) == -EIO);
	EXPECT(!strcmp(why, oob->rank == 1 ? "the disk is on fire" : "rank 1: the disk is on fire"));
}

static void all_say_why_one_could_not_open(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(3, fails_at_one, NULL), 0);
}

/*
 * Of another user than root, whose descriptors under way are limited as well: of one
 * for each run of this test, as all processes of a user count together.
 */
static void meets_with_few(struct muster_oob *oob, const void *argument)
{
	struct muster_mesh_message message = { .kind = MUSTER_MESH_WITHDRAW };
	uid_t user = 10000 + (uid_t)getppid() % 50000;
	struct muster_mesh *mesh;
	struct heard heard;

	(void)argument;
	EXPECT(geteuid() || !setresuid(user, user, user));
	open_few_more(2 * oob->size + 6);
	mesh = mesh_open(oob, &heard);
	for (uint32_t rank = 0; rank < oob->size; rank++)
		EXPECT(rank == oob->rank || !muster_mesh_send(mesh, rank, &message, -1));
	while (heard.nr < (int)oob->size - 1)
		muster_mesh_wait(mesh, TEST_EVER_US);
	test_barrier(oob);
	muster_mesh_close(mesh);
}

static void a_mesh_takes_two_descriptors_a_rank(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(TEST_RANKS_MAX, meets_with_few, NULL), 0);
}

/* argument: how many descriptors rank 1 has. */
static void lacks_descriptors(struct muster_oob *oob, const void *argument)
{
	static const struct muster_mesh_events events = { .message = on_message, .lost = on_lost };
	struct muster_mesh_config config = { .events = &events, .deadline_us = TEST_EVER_US,
					     .memory_fd = -1 };
	struct muster_mesh *mesh;
	char why[256] = "";

	if (oob->rank == 1)
		open_few_more(*(const rlim_t *)argument);
	EXPECT(muster_mesh_open(oob, &config, &mesh, why, sizeof(why)) == -EMFILE);
	EXPECT(strstr(why, oob->rank == 1 ? "ulimit -n" : "rank 1: "));
	test_barrier(oob);	/* the exchange is still in step */
}

static void all_hear_who_has_no_descriptor_for_the_mesh(void **state)
{
	(void)state;
	for (rlim_t more = 0; more < 6; more++)
		assert_int_equal(test_ranks(3, lacks_descriptors, &more), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_in_several_threads_leave_the_limit_of_files_alone),
		cmocka_unit_test(ranks_pass_memory),
		cmocka_unit_test(a_peer_lives_at_our_limit_of_open_files),
		cmocka_unit_test(what_comes_with_a_message_does_not_stay),
		cmocka_unit_test(a_sleeper_wakes_when_it_is_woken),
		cmocka_unit_test(a_sleeper_wakes_though_another_thread_was_quicker),
		cmocka_unit_test(connections_are_made_when_they_are_needed),
		cmocka_unit_test(who_comes_waits_for_a_place),
		cmocka_unit_test(a_mesh_takes_two_descriptors_a_rank),
		cmocka_unit_test(all_hear_who_has_no_descriptor_for_the_mesh),
		cmocka_unit_test(all_say_why_one_could_not_open),
	};

	return cmocka_run_group_tests_name("mesh", tests, NULL, NULL);
}
