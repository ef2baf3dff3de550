// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Takes the device away and brings it back, many times, under the traffic of WORKERS
 * processes, each with two queue pairs, and two virtual ports in one context. Every time:
 * each process is told, within 5 s of the guest's time; each request that it has posted
 * completes once, and none twice; calls fail with EIO and everything can be destroyed.
 * A process opens the next life by itself, as soon as there is one.
 *
 * usage: stress unbind|reload|unplug|reset TIMES      (root, muster-vm --hotplug --count-time)
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "port.h"
#include "strike.h"

enum {
	WORKERS = 16,
	ENTRIES = 8,			/* requests outstanding in each queue */
	ROUNDS = 16,			/* completions before a life may end */
	BYTES = 4096,
	PAYLOAD = 64,
	HEADER = 40,			/* before each datagram that is received */
	QKEY = 0x22222222,
	LEARN_MS = 5000,		/* in which an open file must have an error */
	STUCK_S = 600,			/* in which nothing at all moved */
	PAUSE_US = 200,
	DIE = 1 << 7, WARN = 1 << 9,	/* of /proc/sys/kernel/tainted */
};

/* One worker, as parent and worker see it. */
struct seat {
	_Atomic uint32_t lives;		/* with traffic, so far */
	_Atomic uint32_t deaths;	/* that it was told of */
	_Atomic uint64_t completions, flushes;
	_Atomic int64_t told_ns;	/* when, last */
	char wrong[160];		/* what it found, before it ended */
};

static struct seat *seats;

/* Requests of one queue: which of them are outstanding. */
struct queue {
	uint64_t posted, completed;
	bool open[ENTRIES];
};

struct life {
	struct pair pair;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct ibv_qp *qps[2];		/* the first sends, the second receives */
	struct queue queues[2];
	uint32_t messages;
	char bytes[BYTES];
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

__attribute__((format(printf, 2, 3), noreturn))
static void wrong(struct seat *seat, const char *fmt, ...)
{
	va_list list;

	va_start(list, fmt);
	vsnprintf(seat->wrong, sizeof(seat->wrong), fmt, list);
	va_end(list);
	_exit(1);
}

/* ---- a life ------------------------------------------------------------------------- */

static int qp_ready(struct ibv_qp *qp)
{
	const int masks[] = { IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN };
	const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	int err = 0;

	for (int i = 0; i < 3 && !err; i++) {
		struct ibv_qp_attr attr = { .qp_state = states[i], .port_num = 1, .qkey = QKEY };

		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | masks[i]);
	}
	return err;
}

static int qps_open(struct life *life)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = life->cq, .recv_cq = life->cq, .qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = ENTRIES, .max_recv_wr = ENTRIES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	for (int i = 0; i < 2; i++) {
		life->qps[i] = ibv_create_qp(life->pair.pd, &attr);
		if (!life->qps[i] || qp_ready(life->qps[i]))
			return -EIO;
	}
	return 0;
}

static int life_open(struct life *life)
{
	struct ibv_ah_attr ah = { .port_num = 1 };
	struct ibv_port_attr port;
	int err;

	memset(life, 0, sizeof(*life));
	err = pair_open(&life->pair);
	if (err)
		return err;
	if (ibv_query_port(life->pair.ctx, 1, &port))
		return -EIO;
	ah.dlid = port.lid;
	life->ah = ibv_create_ah(life->pair.pd, &ah);
	life->mr = ibv_reg_mr(life->pair.pd, life->bytes, BYTES, IBV_ACCESS_LOCAL_WRITE);
	life->cq = ibv_create_cq(life->pair.ctx, 2 * ENTRIES, NULL, life->pair.channel, 0);
	if (!life->ah || !life->mr || !life->cq)
		return -EIO;
	return qps_open(life);
}

/* Everything, as far as there is something: 0, or what did not go. */
static int life_close(struct life *life)
{
	int err = 0;

	for (int i = 0; i < 2; i++)
		err |= life->qps[i] ? ibv_destroy_qp(life->qps[i]) : 0;
	err |= life->cq ? ibv_destroy_cq(life->cq) : 0;
	err |= life->mr ? ibv_dereg_mr(life->mr) : 0;
	err |= life->ah ? ibv_destroy_ah(life->ah) : 0;
	return err | (life->pair.ctx ? pair_close(&life->pair) : 0);
}

/* ---- its requests ------------------------------------------------------------------- */

/* A request's number is its queue's and its place in that. */
static void posted(struct life *life, int i)
{
	struct queue *queue = &life->queues[i];

	queue->open[queue->posted++ % ENTRIES] = true;
}

static bool send_post(struct life *life)
{
	struct ibv_sge sge = { (uintptr_t)life->bytes, PAYLOAD, life->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = life->queues[0].posted, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { life->ah, life->qps[1]->qp_num, QKEY },
	}, *bad;

	if (ibv_post_send(life->qps[0], &wr, &bad))
		return false;
	posted(life, 0);
	return true;
}

static bool receive_post(struct life *life)
{
	struct ibv_sge sge = { (uintptr_t)life->bytes + BYTES / 2, HEADER + PAYLOAD, life->mr->lkey };
	struct ibv_recv_wr wr = {
		.wr_id = life->queues[1].posted | 1ull << 63, .sg_list = &sge, .num_sge = 1,
	}, *bad;

	if (ibv_post_recv(life->qps[1], &wr, &bad))
		return false;
	posted(life, 1);
	return true;
}

static bool room(const struct life *life, int i)
{
	return life->queues[i].posted - life->queues[i].completed < ENTRIES;
}

static bool outstanding(const struct life *life)
{
	return life->queues[0].posted != life->queues[0].completed ||
	       life->queues[1].posted != life->queues[1].completed;
}

static void completed(struct life *life, struct seat *seat, const struct ibv_wc *wc)
{
	struct queue *queue = &life->queues[wc->wr_id >> 63];
	uint64_t place = wc->wr_id & ~(1ull << 63);

	if (place >= queue->posted || queue->posted - place > ENTRIES || !queue->open[place % ENTRIES])
		wrong(seat, "request %llu completed that was not outstanding (%llu posted, status %d)",
		      (unsigned long long)place, (unsigned long long)queue->posted, wc->status);
	if (wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR)
		wrong(seat, "a request completed with status %d", wc->status);
	queue->open[place % ENTRIES] = false;
	queue->completed++;
	seat->completions++;
	seat->flushes += wc->status == IBV_WC_WR_FLUSH_ERR;
}

/* How many. */
static int poll_all(struct life *life, struct seat *seat)
{
	struct ibv_wc wcs[ENTRIES];
	int n = ibv_poll_cq(life->cq, ENTRIES, wcs);

	if (n < 0)
		wrong(seat, "polling failed: %d", n);
	for (int i = 0; i < n; i++)
		completed(life, seat, &wcs[i]);
	return n;
}

/* ---- traffic ------------------------------------------------------------------------ */

static bool told(struct life *life)
{
	struct pollfd fd = { .fd = life->pair.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	bool fatal;

	if (poll(&fd, 1, 0) != 1 || ibv_get_async_event(life->pair.ctx, &event))
		return false;
	fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
	ibv_ack_async_event(&event);
	return fatal;
}

/* The next message between the ports, when the one before has come. */
static void message(struct life *life)
{
	uint32_t i = life->messages;

	if (i && !port_packet(life->pair.vps[1], i - 1))
		return;
	musterdv_doorbell(life->pair.vps[0], MUSTER_DOORBELL_CQ_HEAD, i);
	musterdv_doorbell(life->pair.vps[1], MUSTER_DOORBELL_RQ_HEAD, i);
	pair_put(&life->pair, pair_message(&life->pair, "traffic"));
	pair_ring(&life->pair);
	life->messages++;
}

static void traffic(struct life *life, struct seat *seat)
{
	uint64_t done = 0;

	do {
		while (room(life, 1) && receive_post(life))
			;
		while (room(life, 0) && send_post(life))
			;
		message(life);
		done += poll_all(life, seat);
		if (done >= ROUNDS && life->messages > 1 && seat->lives == seat->deaths)
			seat->lives++;
		usleep(PAUSE_US);
	} while (!told(life));
}

/* What was outstanding completes, what is posted now as well, and then there is nothing more. */
static void aftermath(struct life *life, struct seat *seat)
{
	struct musterdv_job *job;
	int err;

	seat->told_ns = now_ns();
	if (seat->lives == seat->deaths)
		wrong(seat, "the device went away by itself");
	while (outstanding(life))
		poll_all(life, seat);
	if (!send_post(life) || !receive_post(life))
		wrong(seat, "requests at a dead device are refused, not flushed");
	while (outstanding(life))
		poll_all(life, seat);
	if (poll_all(life, seat))
		wrong(seat, "there are more completions than requests");
	err = musterdv_job_create(life->pair.ctx, PORT_JOB, NULL, &job, NULL);
	if (err != -EIO)
		wrong(seat, "a call on a dead device: %s", strerror(-err));
}

/*
 * While there is no device, all of them look for it: at most for half of the processor's time, so that the
 * kernel gets to what it has to end first (RCU's grace periods, and all that is freed behind them).
 */
static void rest(clock_t looked)
{
	usleep((useconds_t)(2 * WORKERS * looked * (1000000 / CLOCKS_PER_SEC)) + 10 * PAUSE_US);
}

static void worker(struct seat *seat)
{
	static struct life life;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		clock_t began = clock();
		bool open = !life_open(&life);

		if (open) {
			traffic(&life, seat);
			aftermath(&life, seat);
		}
		if (life_close(&life))
			wrong(seat, "something of a dead device cannot be destroyed");
		if (open)
			seat->deaths++;
		else
			rest(clock() - began);
	}
}

/* ---- who strikes -------------------------------------------------------------------- */

static pid_t pids[WORKERS];

static void workers_check(void)
{
	for (int i = 0; i < WORKERS; i++)
		if (waitpid(pids[i], NULL, WNOHANG))
			errx(1, "process %d: %s", i, seats[i].wrong[0] ? seats[i].wrong : "it died");
}

static uint64_t sum(size_t offset)
{
	uint64_t total = 0;

	for (int i = 0; i < WORKERS; i++)
		total += *(_Atomic uint64_t *)((char *)&seats[i] + offset);
	return total;
}

/* Until every worker has counted as many, as long as anything at all moves. */
static void wait_for(const char *what, size_t offset, uint32_t count)
{
	int64_t moved = now_ns();
	uint64_t before = 0;

	for (int i = 0; i < WORKERS;) {
		uint64_t all = sum(offsetof(struct seat, completions)) + i;

		if (all != before)
			moved = now_ns();
		before = all;
		workers_check();
		if (now_ns() - moved > STUCK_S * 1000000000ll)
			errx(1, "process %d: nothing moves, and it has not %s", i, what);
		if (*(_Atomic uint32_t *)((char *)&seats[i] + offset) >= count)
			i++;
		else
			usleep(PAUSE_US);
	}
}

static void kernel_check(void)
{
	FILE *file = fopen("/proc/sys/kernel/tainted", "re");
	int taint = 0;

	if (!file || fscanf(file, "%d", &taint) != 1)
		err(1, "/proc/sys/kernel/tainted");
	fclose(file);
	if (taint & (DIE | WARN))
		errx(1, "the kernel has complained");
}

/* Return: how long the slowest took to learn of it. */
static int64_t strike(enum strike how, uint32_t nr)
{
	int64_t slowest = 0, began;
	int error;

	wait_for("worked", offsetof(struct seat, lives), nr);
	began = now_ns();
	error = strike_down(how);
	if (error)
		errx(1, "%s: %s", strike_names[how], strerror(-error));
	wait_for("ended its work", offsetof(struct seat, deaths), nr);
	for (int i = 0; i < WORKERS; i++)
		if (seats[i].told_ns - began > slowest)
			slowest = seats[i].told_ns - began;
	error = strike_up(how);
	if (error)
		errx(1, "%s, and back: %s", strike_names[how], strerror(-error));
	kernel_check();
	return slowest;
}

static void workers_start(void)
{
	seats = mmap(NULL, WORKERS * sizeof(*seats), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seats == MAP_FAILED)
		err(1, "mmap");
	for (int i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			worker(&seats[i]);
		if (pids[i] < 0)
			err(1, "fork");
	}
}

int main(int argc, char **argv)
{
	int64_t slowest = 0;
	uint32_t times;
	int how = 0, error;

	while (argc == 3 && how < STRIKES && strcmp(argv[1], strike_names[how]))
		how++;
	if (argc != 3 || how == STRIKES)
		errx(2, "usage: stress unbind|reload|unplug|reset TIMES");
	times = atoi(argv[2]);
	error = strike_open(how);
	if (error)
		errx(1, "no device to strike at: %s", strerror(-error));
	workers_start();
	for (uint32_t i = 1; i <= times; i++) {
		int64_t took = strike(how, i);

		slowest = took > slowest ? took : slowest;
		if (took > LEARN_MS * 1000000ll)
			errx(1, "%s %u: a process learned of it after %lld ms", argv[1], i,
			     (long long)(took / 1000000));
	}
	wait_for("worked", offsetof(struct seat, lives), times + 1);
	for (int i = 0; i < WORKERS; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	printf("# %s: %u times, %d processes; %llu requests completed once, %llu of them flushed; "
	       "the slowest learned of it in %lld ms\n", argv[1], times, WORKERS,
	       (unsigned long long)sum(offsetof(struct seat, completions)),
	       (unsigned long long)sum(offsetof(struct seat, flushes)),
	       (long long)(slowest / 1000000));
	return 0;
}
