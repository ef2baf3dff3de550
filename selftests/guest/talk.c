// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A connection between two queue pairs of this process, for who counts what goes over it. Says
 * "ready A B", their numbers, and does what each line of its input says, until that ends:
 *
 *   send      a message of 100 bytes from A to B
 *   receive   a receive for one of them at B
 *
 * For each that has completed there is a line, "sent" or "received".
 */
#include "qp_ends.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { SEND = 1, RECEIVE = 2 };

static void *completions_tell(void *arg)
{
	struct end *end = arg;
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(end->cq, 1, &wc);

		assert_true(n >= 0);
		if (n) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			puts(wc.wr_id == SEND ? "sent" : "received");
			fflush(stdout);
		} else {
			usleep(1000);
		}
	}
	return NULL;
}

int main(void)
{
	struct end *end;
	pthread_t teller;
	void *state;
	char line[16];

	/* What fails here shall end this process: there is no test. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	two_connected_ends(&state);
	end = state;
	assert_int_equal(pthread_create(&teller, NULL, completions_tell, end), 0);
	printf("ready %u %u\n", end->qps[0]->qp_num, end->qps[1]->qp_num);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "send\n"))
			assert_int_equal(send(end, 0, SEND), 0);
		else
			assert_int_equal(receive(end, 1, RECEIVE), 0);
	}
	return 0;
}
