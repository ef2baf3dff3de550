// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What drives operations on: completions and messages are taken from the device and given
 * to whom they concern, and what waits for room is tried again. Test and wait do so until
 * their request is done; a wait that takes long sleeps, asks the others and may give up.
 */
#include <errno.h>
#include <time.h>

#include "again.h"
#include "bump_path.h"
#include "message.h"
#include "pair.h"
#include "restart.h"
#include "stats.h"
#include "ticks.h"
#include "tree.h"

/* ---- what the device has --------------------------------------------------------------- */

/*
 * The device's word is checked: only the oldest operation that has not can end, and with
 * its last sequence. Those before that tell their end to make room for others.
 */
static void sequence_take(struct muster_comm *comm, const struct muster_cqe *cqe)
{
	struct muster_request *request = comm->first;

	while (request && request->ended)
		request = request->next;
	if (cqe->status) {
		muster_comm_fail_status(comm, cqe->status, cqe->culprit, cqe->by, &cqe->other,
					&cqe->signature);
		return;
	}
	if (cqe->number - comm->sequences_ended < comm->sequences - comm->sequences_ended)
		comm->sequences_ended = cqe->number + 1;
	if (comm->trees && muster_lock_hear(comm, cqe))
		return;
	if (request && muster_path_is_posted(request->path) && request->cookie == cqe->cookie &&
	    comm->unposted != request && cqe->number == request->sequence) {
		request->ended = true;
		muster_ended_finish(comm);
	}
}

static void control_left(struct muster *job)
{
	muster_control_left(job);
	muster_turn_news(job);		/* there is room for another one */
}

/* What libraries tell each other names no collective. */
static void sent_take(struct muster_comm *comm, const struct muster_cqe *cqe)
{
	if (cqe->signature.coll)
		muster_channel_sent(comm, cqe->number, cqe->status);
	else if (comm == comm->job->world)
		control_left(comm->job);
}

static void completion_take(struct muster *job, const struct muster_cqe *cqe)
{
	struct muster_comm *comm = muster_comm_find(job, cqe->job, cqe->context);

	if (!comm)
		return;
	if (cqe->kind == MUSTER_CQE_SEQUENCE)
		sequence_take(comm, cqe);
	else if (cqe->kind == MUSTER_CQE_SEND)
		sent_take(comm, cqe);
	else if (cqe->kind == MUSTER_CQE_CONTEXT && cqe->status)
		muster_comm_fail_status(comm, cqe->status, cqe->culprit, cqe->by, &cqe->other,
					&cqe->signature);
}

static void message_take(struct muster *job, const struct muster_packet *packet)
{
	struct muster_comm *comm = muster_comm_find(job, packet->job, packet->context);

	if (!comm || packet->src_member >= comm->size || packet->src_member == comm->rank)
		return;
	if (packet->stage == MUSTER_STAGE_FRAGMENT) {
		muster_pair_read(job, comm->ranks[packet->src_member], 1);
		muster_channel_receive(comm, packet, job->payload);
	} else if (comm == job->world && packet->stage == MUSTER_STAGE_CONTROL &&
		   packet->length == sizeof(struct muster_control)) {
		muster_control_receive(job, packet->src_member, job->payload);
		muster_turn_news(job);
	}
}

static bool messages_take(struct muster *job)
{
	struct muster_packet packet;
	bool some = false;

	while (job->dev->ops->recv(job->dev, &packet, job->payload)) {
		message_take(job, &packet);
		some = true;
	}
	return some;
}

void muster_device_empty(struct muster *job)
{
	struct muster_cqe cqe;

	while (job->dev->ops->poll(job->dev, &cqe))
		completion_take(job, &cqe);
	messages_take(job);
}

static bool rails_progress(struct muster *job);

static inline bool progress(struct muster *job)
{
	struct muster_dev *dev = job->dev;
	struct muster_cqe cqe;
	bool some = dev->ops->poll(dev, &cqe);

	if (some && !muster_again_end(job, &cqe))
		completion_take(job, &cqe);
	/* The end of a sequence is what somebody waits for; messages can wait, but not for ever. */
	if (!some || cqe.kind != MUSTER_CQE_SEQUENCE || muster_again_lets_others(cqe.number))
		some |= messages_take(job);
	if (job->next_rail)
		some |= rails_progress(job->next_rail);
	if (job->bump)
		some |= muster_bump_progress(job);
	muster_pairs_flush(job);
	if (job->manager && ++job->polls % MUSTER_LOOK_POLLS == 0)
		muster_manager_look(job);
	if (job->active)
		muster_comms_visit(job);
	return some;
}

/* Which goes on to the next one. */
static __attribute__((noinline)) bool rails_progress(struct muster *rail)
{
	return progress(rail);
}

bool muster_progress(struct muster *job)
{
	MUSTER_TURN(job);
	return progress(muster_job_whole(job));
}

bool muster_in_the_way(struct muster *job)
{
	MUSTER_TURN(job);
	return job->dev->ops->in_the_way && job->dev->ops->in_the_way(job->dev);
}

/* ---- test and wait ----------------------------------------------------------------------- */

uint64_t muster_now_us(const struct muster *job)
{
	struct timespec now;

	if (job->dev->ops->now_us)
		return job->dev->ops->now_us(job->dev);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* It may have become another operation's since; as long as it has not, say so. */
static int fail_freed(struct muster_request *request)
{
	return muster_fail(request->job, -EINVAL, "the request was finished and freed before: give it to muster_wait() once, or to muster_test() until it says done");
}

/* Each rank asks all others: the more there are, the less often. */
static uint64_t doubt_us(const struct muster_comm *comm)
{
	return MUSTER_DOUBT_US * (1 + (uint64_t)comm->size / MUSTER_DOUBT_RANKS);
}

/*
 * One that runs for long compares notes with the others, whether its caller waits or only
 * looks now and then: ranks that called different things may hear of it in no other way.
 */
static void doubt(struct muster_comm *comm, uint64_t now_us)
{
	struct muster_warm *warm = comm->warm;
	bool is_new;

	if (!comm->first)	/* another thread has it begun anew */
		return;
	is_new = !warm->doubt_us || warm->doubted != comm->first->number;
	if (!is_new && now_us < warm->doubt_us)
		return;
	warm->doubted = comm->first->number;
	warm->doubt_us = now_us + doubt_us(comm);
	if (!is_new)
		muster_channel_probe(comm);
}

static void tested_at(struct muster_comm *comm, uint64_t now_us)
{
	muster_look_tested(comm->job, now_us);
	doubt(comm, now_us);
}

static __attribute__((noinline)) void tested_now(struct muster_comm *comm)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	tested_at(comm, (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
}

/*
 * Who tests again and again looks at the clock now and then, who tests now and then each time:
 * the time to some milliseconds will do.
 */
static void tested(struct muster_comm *comm)
{
	struct muster *job = comm->job;
	uint64_t ticks;

	if (job->dev->ops->now_us) {
		tested_at(comm, job->dev->ops->now_us(job->dev));
		return;
	}
	if (job->counts_ticks) {
		ticks = muster_ticks_tsc();
		if (ticks - comm->warm->tested < MUSTER_TICKS_FEW)
			return;
		comm->warm->tested = ticks;
	}
	tested_now(comm);
}

int muster_test(struct muster_request *request, bool *done)
{
	MUSTER_TURN(request ? request->job : NULL);
	if (!request || !done)
		return -EINVAL;
	if (request->state == MUSTER_REQUEST_FREE) {
		*done = true;
		return fail_freed(request);
	}
	if (request->state == MUSTER_REQUEST_IDLE) {	/* as after its last wait */
		*done = true;
		return 0;
	}
	if (request->job->has_lost)
		muster_restarts_join(request->job);
	if (request->state != MUSTER_REQUEST_DONE)
		muster_progress(request->job);
	*done = request->state == MUSTER_REQUEST_DONE;
	if (!*done)
		tested(request->comm);
	return *done ? muster_request_end(request) : 0;
}

void muster_sleep(struct muster *job, uint64_t us)
{
	job = muster_job_whole(job);
	if (job->manager)
		muster_manager_look(job);
	if (muster_turn_follow(job, us))
		return;
	us = muster_turn_sleep_us(job, us);
	if (!muster_bump_wait(job, us))
		job->dev->ops->wait(job->dev, us);
	muster_turn_lead_end(job);
}

/* Ask all members where they are, and wait a while for their answers. */
static void ask(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	uint64_t end_us = muster_now_us(request->job) + MUSTER_PROBE_US;

	muster_channel_probe(comm);
	while (request->state != MUSTER_REQUEST_DONE && muster_channel_silent(comm) &&
	       muster_now_us(request->job) < end_us)
		if (!muster_progress(request->job))
			muster_sleep(request->job, MUSTER_SLEEP_US);
}

/* Give the buffers back to a caller who does not want to wait longer: the operation must end. */
static void give_up(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	struct muster *job = request->job;
	char names[MUSTER_WHY_MAX];
	uint32_t who;

	ask(request);
	if (request->state == MUSTER_REQUEST_DONE)
		return;
	who = muster_channel_who_is_late(comm, request->number, names, sizeof(names));
	muster_fail(job, -ETIMEDOUT, "%s waited longer than MUSTER_LATE_TIMEOUT (%g s): %s",
		    muster_coll_name(muster_call_coll(&request->entry->call)),
		    (double)job->settings.late_us / 1e6, names);
	muster_comm_give_up_for(comm, -ETIMEDOUT, who);
}

/* Whoever sleeps at the moment; several threads may, and one of them says for whom. */
static uint32_t awaited(void *sleeper, uint32_t nodes[MUSTER_LOOK_WAITS_MAX])
{
	struct muster *job = sleeper;

	return job->dozing ? muster_look_nodes(job->dozing, nodes) : 0;
}

void muster_progress_open(struct muster *job)
{
	job->dev->awaited = awaited;
	job->dev->sleeper = job;
}

/* Sleep a little, since *since_us (0: not yet). A wait that takes too long ends here. */
static void doze(struct muster_request *request, uint64_t *since_us)
{
	struct muster *job = request->job;
	uint64_t late_us = job->settings.late_us;
	uint64_t sleep_us = MUSTER_SLEEP_US;
	uint64_t now = muster_now_us(job);

	if (!*since_us)
		*since_us = now;
	if (now != *since_us)
		muster_look_tell(request->comm, now);
	if (late_us && now - *since_us >= late_us) {
		give_up(request);
		return;
	}
	doubt(request->comm, now);
	if (late_us && late_us - (now - *since_us) < sleep_us)
		sleep_us = late_us - (now - *since_us);
	request->awaited = true;
	job->dozing = request->comm;
	muster_sleep(job, sleep_us);
	job->dozing = NULL;
}

static __attribute__((noinline)) int wait_for(struct muster_request *request)
{
	MUSTER_TURN(request ? request->job : NULL);
	uint64_t since_us = 0, began_us;
	uint32_t idle = 0;

	if (!request)
		return -EINVAL;
	if (request->state == MUSTER_REQUEST_FREE)
		return fail_freed(request);
	if (request->state == MUSTER_REQUEST_IDLE)
		return 0;
	began_us = request->job->stats ? muster_now_us(request->job) : 0;
	while (request->state != MUSTER_REQUEST_DONE) {
		muster_turn_pass(request->job);
		if (__builtin_expect(request->job->has_lost, 0))
			muster_restarts_join(request->job);
		if (progress(request->job))
			idle = 0;
		else if (request->state != MUSTER_REQUEST_DONE && ++idle > request->job->spin_polls)
			doze(request, &since_us);
	}
	if (began_us)
		muster_stats_waited(request->job, muster_now_us(request->job) - began_us);
	if (since_us)
		muster_look_place(request->job, MUSTER_LOOK_OUTSIDE);
	return muster_request_end(request);
}

/* Its end is mostly what comes next, and soon: a few looks for that alone. */
static inline bool ends_soon(struct muster *job)
{
	struct muster_cqe cqe;

	for (int i = 0; i < MUSTER_AGAIN_POLLS; i++) {
		if (!job->dev->ops->poll(job->dev, &cqe))
			continue;
		if (muster_again_end(job, &cqe))
			return true;
		completion_take(job, &cqe);
		return false;
	}
	return false;
}

int muster_wait(struct muster_request *request)
{
	if (request && !request->job->turn && request->job->again == request &&
	    !muster_again_lets_others(request->sequence) && ends_soon(request->job)) {
		request->state = MUSTER_REQUEST_FREE;
		return 0;
	}
	return wait_for(request);
}
