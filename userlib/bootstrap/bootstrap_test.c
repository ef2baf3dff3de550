// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bootstrap and hub, between real processes: each test forks ranks that report
 * what muster_bootstrap_env() told them through memory that all share.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bootstrap.h"
#include "door.h"
#include "hub.h"

enum {
	RANKS_MAX = 8,
	TEST_SECONDS_MAX = 300,	/* a deadline that is long on any machine */
	NO_REPORT = -1,		/* a rank's err before it has one: setup() fills reports with ones */
};

struct report {
	int err;
	char why[MUSTER_HUB_WHY_MAX];
};

static struct report *reports;	/* shared with the ranks */
static char name[64];

static void env_set(const char *rank, const char *size)
{
	setenv("MUSTER_RANK", rank, 1);
	setenv("MUSTER_SIZE", size, 1);
	setenv("MUSTER_RENDEZVOUS", name, 1);
	setenv("MUSTER_DEADLINE", "2000", 1);
}

/* What a rank does once it has joined; its result is reported. */
typedef int (*rank_fn)(struct muster_oob *oob, struct report *report);

static void rank_main(int slot, rank_fn fn)
{
	struct report *report = &reports[slot];
	struct muster_oob oob;

	report->err = muster_bootstrap_env(&oob, report->why, sizeof(report->why));
	if (report->err)
		exit(0);
	if (fn)
		report->err = fn(&oob, report);
	if (report->err)
		snprintf(report->why, sizeof(report->why), "%s", muster_bootstrap_error(&oob));
	muster_bootstrap_close(&oob);
	exit(0);
}

static pid_t rank_start(int slot, const char *rank, const char *size, rank_fn fn)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	env_set(rank, size);
	if (getenv("TEST_DEADLINE"))
		setenv("MUSTER_DEADLINE", getenv("TEST_DEADLINE"), 1);
	rank_main(slot, fn);
	return 0;
}

static void ranks_wait(int nr)
{
	int status;

	while (nr--) {
		assert_true(wait(&status) > 0);
		assert_true((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
			    (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	}
}

static void deadline_set(uint32_t seconds)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", seconds);
	setenv("TEST_DEADLINE", text, 1);
}

static int setup(void **state)
{
	static int nr;

	(void)state;
	snprintf(name, sizeof(name), "unix:muster-bootstrap-test-%d-%d", getpid(), nr++);
	memset(reports, 0xff, RANKS_MAX * sizeof(*reports));
	unsetenv("TEST_DEADLINE");
	return 0;
}

static int env_try(char *why)
{
	struct muster_oob oob;
	int err = muster_bootstrap_env(&oob, why, MUSTER_HUB_WHY_MAX);

	if (!err)
		muster_bootstrap_close(&oob);
	return err;
}

static void names_the_variable_that_is_missing(void **state)
{
	static const char *const names[] = { "MUSTER_RANK", "MUSTER_SIZE", "MUSTER_RENDEZVOUS" };
	char why[MUSTER_HUB_WHY_MAX];

	(void)state;
	for (int i = 0; i < 3; i++) {
		env_set("0", "1");
		unsetenv(names[i]);
		assert_int_equal(env_try(why), -EINVAL);
		assert_ptr_equal(strstr(why, names[i]), why);
		assert_non_null(strstr(why, "is not set"));
		assert_non_null(strstr(why, "muster-run"));
	}
	env_set("0", "1");
	assert_int_equal(env_try(why), 0);
}

static void quotes_a_variable_that_is_wrong_and_says_what_is_expected(void **state)
{
	static const struct {
		const char *variable, *value, *expected;
	} cases[] = {
		{ "MUSTER_RANK", "", "from 0 to 3" },
		{ "MUSTER_RANK", "one", "from 0 to 3" },
		{ "MUSTER_RANK", "-1", "from 0 to 3" },
		{ "MUSTER_RANK", "+1", "from 0 to 3" },
		{ "MUSTER_RANK", " 1", "from 0 to 3" },
		{ "MUSTER_RANK", "1x", "from 0 to 3" },
		{ "MUSTER_RANK", "4", "from 0 to 3" },
		{ "MUSTER_RANK", "18446744073709551617", "from 0 to 3" },
		{ "MUSTER_SIZE", "0", "from 1 to" },
		{ "MUSTER_SIZE", "4294967300", "from 1 to" },
		{ "MUSTER_SIZE", "four", "from 1 to" },
		{ "MUSTER_RENDEZVOUS", "", "unix:NAME" },
		{ "MUSTER_RENDEZVOUS", "unix:", "unix:NAME" },
		{ "MUSTER_RENDEZVOUS", "tcp:localhost:1", "IPv4 address" },
		{ "MUSTER_RENDEZVOUS", "tcp:127.0.0.1:0", "IPv4 address" },
		{ "MUSTER_RENDEZVOUS", "fd:x", "fd:NUMBER" },
		{ "MUSTER_RENDEZVOUS", "fd:77777", "no such descriptor" },
		{ "MUSTER_RENDEZVOUS", "/etc/passwd", "not a character device" },
		{ "MUSTER_DEADLINE", "soon", "seconds" },
		{ "MUSTER_DEADLINE", "-1", "seconds" },
		{ "MUSTER_DEADLINE", "1e999", "seconds" },
		{ "MUSTER_DEADLINE", "nan", "seconds" },
	};
	char why[MUSTER_HUB_WHY_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		env_set("1", "4");
		setenv(cases[i].variable, cases[i].value, 1);
		assert_int_equal(env_try(why), -EINVAL);
		assert_ptr_equal(strstr(why, cases[i].variable), why);
		assert_non_null(strstr(why, cases[i].value));
		assert_non_null(strstr(why, cases[i].expected));
	}
}

static int gathers(struct muster_oob *oob, struct report *report)
{
	uint64_t all[RANKS_MAX];
	uint8_t *big = malloc((size_t)oob->size << 18);
	int err = 0;

	(void)report;
	for (uint64_t round = 0; round < 100 && !err; round++) {
		uint64_t mine = round * 1000 + oob->rank;

		err = oob->allgather(oob->opaque, &mine, all, sizeof(mine));
		for (uint32_t r = 0; r < oob->size && !err; r++)
			if (all[r] != round * 1000 + r)
				err = -EIO;
	}
	memset(big, oob->rank, 1 << 18);
	if (!err)	/* more than a socket holds; and from where it is gathered to */
		err = oob->allgather(oob->opaque, big, big, 1 << 18);
	for (uint32_t i = 0; i < oob->size << 18 && !err; i++)
		if (big[i] != i >> 18)
			err = -EIO;
	if (!err)
		err = oob->allgather(oob->opaque, NULL, NULL, 0);
	free(big);
	return err;
}

static void gathers_every_ranks_data_by_rank(void **state)
{
	static const char *const sizes[] = { "1", "2", "5" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		int nr = atoi(sizes[i]);

		setup(NULL);
		for (int r = nr; r-- > 0;)	/* rank 0 last: the others wait for it */
			rank_start(r, (char[]){ '0' + r, 0 }, sizes[i], gathers);
		ranks_wait(nr);
		for (int r = 0; r < nr; r++)
			assert_int_equal(reports[r].err, 0);
	}
}

static void all_report_two_processes_of_one_rank(void **state)
{
	(void)state;
	rank_start(0, "0", "3", NULL);
	rank_start(1, "1", "3", NULL);
	rank_start(2, "1", "3", NULL);
	ranks_wait(3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(reports[i].err, -EINVAL);
		assert_non_null(strstr(reports[i].why, "two processes say that they are rank 1"));
	}
}

static void all_report_a_rank_with_another_size(void **state)
{
	(void)state;
	rank_start(0, "0", "3", NULL);
	rank_start(1, "1", "4", NULL);
	ranks_wait(2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reports[i].err, -EINVAL);
		assert_non_null(strstr(reports[i].why, "rank 1 (process"));
		assert_non_null(strstr(reports[i].why, "MUSTER_SIZE=4, the others 3"));
	}
}

/* Whichever comes second: unless one had given up before, which a longer deadline helps. */
static void a_second_rank_0_is_told_that_the_name_is_taken(void **state)
{
	int told = -1;

	(void)state;
	for (uint32_t seconds = 1; told < 0 && seconds < TEST_SECONDS_MAX; seconds *= 4) {
		deadline_set(seconds);
		rank_start(0, "0", "2", NULL);
		rank_start(1, "0", "2", NULL);
		ranks_wait(2);
		for (int i = 0; i < 2; i++)
			if (reports[i].err == -EINVAL)
				told = i;
	}
	assert_true(told >= 0);
	assert_non_null(strstr(reports[told].why, "is taken"));
}

/* Where rank 2 is late as well, a longer deadline helps. */
static void all_name_the_ranks_that_did_not_come(void **state)
{
	bool late = true;

	(void)state;
	for (uint32_t seconds = 1; late && seconds < TEST_SECONDS_MAX; seconds *= 4) {
		deadline_set(seconds);
		rank_start(0, "0", "4", NULL);
		rank_start(2, "2", "4", NULL);
		ranks_wait(2);
		late = strstr(reports[0].why, "rank(s) 1, 2, 3") || strstr(reports[2].why, "rank 0 of");
	}
	assert_int_equal(reports[0].err, -ETIMEDOUT);
	assert_int_equal(reports[2].err, -ETIMEDOUT);
	assert_non_null(strstr(reports[0].why, "rank(s) 1, 3 of 4"));
	assert_non_null(strstr(reports[2].why, "rank(s) 1, 3 of 4"));
}

static void names_rank_0_when_nobody_listens(void **state)
{
	(void)state;
	setenv("TEST_DEADLINE", "0.2", 1);
	rank_start(1, "1", "2", NULL);
	ranks_wait(1);
	assert_int_equal(reports[1].err, -ETIMEDOUT);
	assert_non_null(strstr(reports[1].why, "rank 0 of 2"));
}

static const char *file_name(void)
{
	snprintf(name, sizeof(name), "file:/tmp/muster-bootstrap-test-%d", getpid());
	return name + 5;
}

/* As a host that is gone: with one in its queue, a listener drops who comes. */
static int nobody_listen(struct muster_place *place, int *waits)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(address);

	*place = (struct muster_place){ .address = "127.0.0.1" };
	inet_pton(AF_INET, place->address, &address.sin_addr);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	*waits = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*waits, (struct sockaddr *)&address, len), 0);
	place->port = address.sin_port;
	return fd;
}

/* The system alone would try for two minutes, which is longer than the deadline here. */
static void a_file_that_leads_to_a_host_that_is_gone_is_read_again(void **state)
{
	const char *path = file_name();
	struct muster_place gone;
	int waits, fd = nobody_listen(&gone, &waits);

	(void)state;
	deadline_set(64);
	assert_int_equal(muster_place_write(&gone, path), 0);
	rank_start(1, "1", "2", gathers);
	usleep(200000);		/* it has read the file, mostly */
	rank_start(0, "0", "2", gathers);
	ranks_wait(2);
	for (int r = 0; r < 2; r++)
		assert_int_equal(reports[r].err, 0);
	close(waits);
	close(fd);
}

static void a_job_that_gives_up_leaves_the_file_of_the_next(void **state)
{
	const char *path = file_name();
	struct muster_place next = { .address = "127.0.0.1", .port = 1, .key = { { 1, 2 } } }, there;

	(void)state;
	unlink(path);
	deadline_set(2);
	rank_start(0, "0", "2", NULL);
	while (muster_place_read(&there, path) && reports[0].err == NO_REPORT)	/* or it gave up */
		usleep(1000);
	assert_int_equal(muster_place_write(&next, path), 0);
	ranks_wait(1);
	assert_int_equal(reports[0].err, -ETIMEDOUT);
	assert_int_equal(muster_place_read(&there, path), 0);
	assert_memory_equal(&there.key, &next.key, sizeof(next.key));
	unlink(path);
}

/* A child of rank 2 keeps its sockets open, which must not hide the death. */
static int dies_or_gathers(struct muster_oob *oob, struct report *report)
{
	(void)report;
	if (oob->rank == 2) {
		if (fork() == 0) {
			usleep(1500000);
			_exit(0);
		}
		kill(getpid(), SIGKILL);
	}
	return oob->allgather(oob->opaque, "x", (char[RANKS_MAX]){ 0 }, 1);
}

static void all_name_a_rank_that_dies_before_it_gathers(void **state)
{
	(void)state;
	for (int r = 0; r < 4; r++)
		rank_start(r, (char[]){ '0' + r, 0 }, "4", dies_or_gathers);
	ranks_wait(4);
	for (int r = 0; r < 4; r++) {
		if (r == 2)
			continue;
		assert_int_equal(reports[r].err, -ECONNRESET);
		assert_non_null(strstr(reports[r].why, "rank 2 "));
	}
}

static int gathers_other_lengths(struct muster_oob *oob, struct report *report)
{
	char in[64] = { 0 }, out[64 * RANKS_MAX];

	(void)report;
	return oob->allgather(oob->opaque, in, out, oob->rank == 1 ? 16 : 8);
}

static void all_name_a_rank_that_gathers_another_length(void **state)
{
	(void)state;
	for (int r = 0; r < 2; r++)
		rank_start(r, (char[]){ '0' + r, 0 }, "2", gathers_other_lengths);
	ranks_wait(2);
	for (int r = 0; r < 2; r++) {
		assert_int_equal(reports[r].err, -EPROTO);
		assert_non_null(strstr(reports[r].why, "the ranks called different things"));
	}
}

static void a_launchers_hub_serves_ranks_over_descriptors(void **state)
{
	struct muster_hub *hub;
	int pairs[3][2];

	(void)state;
	assert_int_equal(muster_hub_create(3, &hub), 0);
	for (int r = 0; r < 3; r++)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[r]), 0);
	for (int r = 0; r < 3; r++) {
		snprintf(name, sizeof(name), "fd:%d", pairs[r][1]);
		rank_start(r, (char[]){ '0' + r, 0 }, "3", gathers);
	}
	for (int r = 0; r < 3; r++) {
		close(pairs[r][1]);
		assert_int_equal(muster_hub_add(hub, pairs[r][0], 0), 0);
	}
	while (!muster_hub_gone(hub))
		assert_int_equal(muster_hub_step(hub, 1000), 0);
	ranks_wait(3);
	for (int r = 0; r < 3; r++)
		assert_int_equal(reports[r].err, 0);
	muster_hub_destroy(hub);
}

static void garbage_at_the_rendezvous_is_refused_by_rank_and_hub(void **state)
{
	struct muster_hub *hub;
	char garbage[100];
	int to_rank[2], to_hub[2];

	(void)state;
	memset(garbage, 0x5a, sizeof(garbage));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to_rank), 0);
	assert_int_equal(write(to_rank[0], garbage, sizeof(garbage)), sizeof(garbage));
	snprintf(name, sizeof(name), "fd:%d", to_rank[1]);
	rank_start(0, "0", "2", NULL);
	ranks_wait(1);
	assert_int_equal(reports[0].err, -EPROTO);
	close(to_rank[0]);
	close(to_rank[1]);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to_hub), 0);
	assert_int_equal(muster_hub_create(2, &hub), 0);
	assert_int_equal(muster_hub_add(hub, to_hub[0], 0), 0);
	assert_int_equal(write(to_hub[1], garbage, sizeof(garbage)), sizeof(garbage));
	assert_int_equal(muster_hub_step(hub, 1000), -EPROTO);
	muster_hub_destroy(hub);
	close(to_hub[1]);
}

/* Where a step meets the limit of open files, it says so, and not "try again" for ever. */
static void step_under_limit(struct muster_hub *hub, rlim_t files, int expected)
{
	struct rlimit limit, low;
	int err;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	err = muster_hub_step(hub, 1000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(err, expected);
	assert_non_null(strstr(muster_hub_error(hub), "ulimit -n"));
	muster_hub_destroy(hub);
}

static void the_limit_of_open_files_is_named(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr);
	struct muster_hub *hub;
	int pair[2], to_hub, fd;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(muster_hub_create(2, &hub), 0);
	assert_int_equal(muster_hub_add(hub, pair[0], 0), 0);
	step_under_limit(hub, 2, -EINVAL);	/* to poll so many is refused */
	close(pair[1]);

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(listen(fd, 2), 0);
	to_hub = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(to_hub, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(muster_hub_create(2, &hub), 0);
	muster_hub_listen(hub, fd);
	step_under_limit(hub, to_hub + 1, -EMFILE);	/* and so is to accept */
	close(to_hub);
}

/* Of a namespace whose only host this is: packets pass, or do not. */
static int loopback(bool up)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = ioctl(fd, SIOCSIFFLAGS, &lo);

	close(fd);
	return err;
}

static int gathers_beside_a_silent_host(struct muster_oob *oob, struct report *report)
{
	int err = oob->allgather(oob->opaque, "x", (char[RANKS_MAX]){ 0 }, 1);

	(void)report;
	alarm(TEST_SECONDS_MAX);	/* a hang */
	if (!err && oob->rank == 1) {
		sleep(1);		/* until all is acknowledged: nothing is under way */
		loopback(false);
		pause();
	}
	return err ? err : oob->allgather(oob->opaque, "x", (char[RANKS_MAX]){ 0 }, 1);
}

/* Where they did not meet in time, a longer deadline helps. The last test: it leaves the network. */
static void a_host_that_goes_silent_between_gathers_is_named(void **state)
{
	int status;

	(void)state;
	if (unshare(CLONE_NEWNET)) {
		print_message("needs the right to make a network namespace\n");
		skip();
	}
	setenv("MUSTER_KEY", "a-secret-of-enough-characters", 1);
	snprintf(name, sizeof(name), "tcp:127.0.0.1:7000");
	reports[0].err = -ETIMEDOUT;
	for (uint32_t seconds = 4; reports[0].err == -ETIMEDOUT && seconds < TEST_SECONDS_MAX;
	     seconds *= 4) {
		pid_t silent;

		assert_int_equal(loopback(true), 0);
		deadline_set(seconds);
		reports[0].err = -1;
		silent = rank_start(1, "1", "2", gathers_beside_a_silent_host);
		waitpid(rank_start(0, "0", "2", gathers_beside_a_silent_host), &status, 0);
		kill(silent, SIGKILL);
		ranks_wait(1);
	}
	assert_int_equal(reports[0].err, -ECONNRESET);
	assert_non_null(strstr(reports[0].why, "rank 1 has died or left"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(names_the_variable_that_is_missing, setup),
		cmocka_unit_test_setup(quotes_a_variable_that_is_wrong_and_says_what_is_expected,
				       setup),
		cmocka_unit_test_setup(gathers_every_ranks_data_by_rank, setup),
		cmocka_unit_test_setup(all_report_two_processes_of_one_rank, setup),
		cmocka_unit_test_setup(all_report_a_rank_with_another_size, setup),
		cmocka_unit_test_setup(a_second_rank_0_is_told_that_the_name_is_taken, setup),
		cmocka_unit_test_setup(all_name_the_ranks_that_did_not_come, setup),
		cmocka_unit_test_setup(names_rank_0_when_nobody_listens, setup),
		cmocka_unit_test_setup(a_file_that_leads_to_a_host_that_is_gone_is_read_again,
				       setup),
		cmocka_unit_test_setup(a_job_that_gives_up_leaves_the_file_of_the_next, setup),
		cmocka_unit_test_setup(all_name_a_rank_that_dies_before_it_gathers, setup),
		cmocka_unit_test_setup(all_name_a_rank_that_gathers_another_length, setup),
		cmocka_unit_test_setup(a_launchers_hub_serves_ranks_over_descriptors, setup),
		cmocka_unit_test_setup(the_limit_of_open_files_is_named, setup),
		cmocka_unit_test_setup(garbage_at_the_rendezvous_is_refused_by_rank_and_hub,
				       setup),
		cmocka_unit_test_setup(a_host_that_goes_silent_between_gathers_is_named, setup),
	};

	reports = mmap(NULL, RANKS_MAX * sizeof(*reports), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reports == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests_name("bootstrap", tests, NULL, NULL);
}
