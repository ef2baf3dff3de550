// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The path by the bump in the wire (Documentation/bump.md): an operation is one datagram
 * for each 1,408 bytes, its result what the network answers. One operation of a
 * communicator runs at a time. What is not answered is asked again; the answers come with
 * the library's progress. Who waits for late ranks waits; a bump that says nothing at all,
 * not even to what it always answers, is lost after the deadline.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bump_path.h"
#include "message.h"
#include "muster_bump.h"

enum {
	AGAIN_US = 20000,	/* until what is not answered is asked again, and twice as long */
	AGAIN_MAX_US = 500000,
	DOUBT_US = 100000,	/* who asks so seldom also asks whether the bump is there */
	DOUBTS_MIN = 8,
	SLEEP_US = 1000,	/* the device has nobody else to look after it */
};

/* One communicator's operation. */
struct muster_bump_run {
	struct muster_bump_run *next;	/* of those that go on */
	struct muster_request *request;	/* NULL: nothing runs */
	struct muster_bump_header ask;
	uint32_t id;			/* of the first piece */
	uint32_t ids;			/* that were used */
	uint32_t pieces;
	uint32_t missing;		/* a bit for each that is not answered */
	uint64_t again_us;		/* when they are asked for again */
	uint64_t wait_us;
	uint64_t refused_us;		/* since when the bump refuses it; 0: it does not */
};

struct muster_bump {
	int fd;
	uint32_t group;			/* and the communicator's life is a group */
	struct muster_bump_header ask;
	struct muster_bump_run *runs;
	uint64_t doubt_us;		/* since when it was asked in vain; 0: it was not */
	uint32_t doubts;
};

struct datagram {
	struct muster_bump_header header;
	uint8_t data[MUSTER_BUMP_DATA_MAX];
};

/* ---- what it can do: from what all ranks share ----------------------------------------- */

static enum muster_bump_operation operation_of(enum muster_coll coll)
{
	switch (coll) {
	case MUSTER_COLL_ALLREDUCE: return MUSTER_BUMP_ALLREDUCE;
	case MUSTER_COLL_REDUCE: return MUSTER_BUMP_REDUCE;
	case MUSTER_COLL_BARRIER: return MUSTER_BUMP_BARRIER;
	default: return 0;
	}
}

static bool combines(uint32_t type, uint32_t op)
{
	if (type == MUSTER_F64)
		return op >= MUSTER_SUM && op <= MUSTER_MAX;
	return (type == MUSTER_I32 || type == MUSTER_U32) && op >= MUSTER_SUM && op <= MUSTER_LXOR;
}

/* Their orders of combining; what goes around a ring has that of what is told to all. */
static const struct order {
	const char *schedule;
	enum muster_bump_algorithm algorithm;
} orders[] = {
	{ "recursive-doubling", MUSTER_BUMP_DOUBLING }, { "binomial", MUSTER_BUMP_TREE },
	{ "direct", MUSTER_BUMP_RING },
};

/* Of those that it has the one of the operation's schedule; NULL: none. A barrier has no order. */
static const struct order *order_of(const struct muster_entry *entry)
{
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (!strcmp(entry->schedule->name, orders[i].schedule))
			return &orders[entry->call.coll == MUSTER_COLL_BARRIER ? 0 : i];
	return NULL;
}

static bool has_all_ranks(const struct muster_comm *comm)
{
	for (uint32_t i = 0; i < comm->size; i++)
		if (comm->ranks[i] != i)
			return false;
	return comm->size == comm->job->oob.size;
}

/*
 * A bump has room for so many groups of a job. Which communicators have one all ranks must say
 * alike: were it those that ask first, each bump could be full of what waits for another's.
 */
static bool has_group(const struct muster_comm *comm)
{
	return comm->life - comm->job->world->life < MUSTER_BUMP_GROUPS_MAX;
}

const char *muster_bump_cannot(const struct muster_comm *comm, const struct muster_entry *entry)
{
	const struct muster_call *call = &entry->call;

	if (!comm->job->bump)
		return comm->job->no_bump;
	if (!operation_of(call->coll))
		return "it has no such collective";
	if (call->coll != MUSTER_COLL_BARRIER && !combines(call->type, call->op))
		return "it has no such type or operation";
	if (entry->in_order)
		return "it does not have a tree's order";
	if (call->bytes > MUSTER_BUMP_WINDOW * MUSTER_BUMP_DATA_MAX)
		return "it takes at most 22528 bytes";
	if (!has_all_ranks(comm))
		return "it serves communicators of all ranks";
	if (!has_group(comm))
		return "it serves the first 16 communicators";
	if (!order_of(entry) && (call->type == MUSTER_F64 || muster_comm_is_told(comm)))
		return "it does not have this schedule";
	return muster_comm_is_told_file(comm, entry) ?
	       "it does not read files of schedules" : NULL;
}

/* The same tree of the same operands, or operations that do not mind. */
static bool same_bits(const struct muster_comm *comm, const struct muster_entry *entry)
{
	return entry->call.type != MUSTER_F64 ||
	       (!entry->call.root && le16toh(comm->job->bump->ask.hosts) == comm->size);
}

const char *muster_bump_why(const struct muster_comm *comm, const struct muster_entry *entry)
{
	return same_bits(comm, entry) ? "bump: offloaded" :
	       "bump: offloaded; rounded in its own order, not that of the other paths";
}

const char *muster_bump_schedule(const struct muster_entry *entry)
{
	return (order_of(entry) ? order_of(entry) : &orders[0])->schedule;
}

/* ---- asking -------------------------------------------------------------------------------- */

static uint32_t piece_bytes(const struct muster_bump_run *run, uint32_t piece)
{
	uint64_t left = run->request->entry->call.bytes - piece * (uint64_t)MUSTER_BUMP_DATA_MAX;

	return left < MUSTER_BUMP_DATA_MAX ? (uint32_t)left : MUSTER_BUMP_DATA_MAX;
}

/* What does not leave is asked again. */
static void piece_send(struct muster_bump *bump, const struct muster_bump_run *run, uint32_t piece)
{
	const struct muster_call *call = &run->request->entry->call;
	uint32_t bytes = piece_bytes(run, piece);
	struct datagram datagram = { .header = run->ask };

	datagram.header.id = htole32(run->id + piece);
	if (bytes) {
		datagram.header.count = htole16(bytes / (call->type == MUSTER_F64 ? 8 : 4));
		memcpy(datagram.data, run->request->in + piece * (size_t)MUSTER_BUMP_DATA_MAX, bytes);
	}
	send(bump->fd, &datagram, sizeof(datagram.header) + bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void pieces_send(struct muster_bump *bump, struct muster_bump_run *run)
{
	for (uint32_t piece = 0; piece < run->pieces; piece++)
		if (run->missing & 1u << piece)
			piece_send(bump, run, piece);
	run->again_us = muster_now_us(run->request->job) + run->wait_us;
}

/* There is no version 0: it says so, whatever it is doing. */
static void doubt(struct muster_bump *bump, uint64_t now)
{
	struct muster_bump_header header = bump->ask;

	header.version = 0;
	send(bump->fd, &header, sizeof(header), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!bump->doubts++)
		bump->doubt_us = now;
}

/* The other ranks are told, if there is a way. */
static void withdraw(struct muster_bump *bump, const struct muster_bump_run *run)
{
	struct muster_bump_header header = run->ask;

	header.message = MUSTER_BUMP_ABORT;
	for (uint32_t piece = 0; piece < run->pieces; piece++) {
		header.id = htole32(run->id + piece);
		if (run->missing & 1u << piece) {
			header.count = htole16(piece_bytes(run, piece) /
					       (header.type == MUSTER_F64 ? 8 : 4));
			send(bump->fd, &header, sizeof(header), MSG_DONTWAIT | MSG_NOSIGNAL);
		}
	}
}

static void run_end(struct muster_bump *bump, struct muster_bump_run *run)
{
	struct muster_bump_run **place = &bump->runs;

	while (*place != run)
		place = &(*place)->next;
	*place = run->next;
	run->request = NULL;
}

static int run_begin(struct muster_request *request)
{
	const struct muster_call *call = &request->entry->call;
	struct muster_comm *comm = request->comm;
	struct muster_bump *bump = request->job->bump;
	struct muster_bump_run *run = comm->bump;
	const struct order *order;

	if (!run)
		run = comm->bump = calloc(1, sizeof(*run));
	if (!run)
		return muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM, "no memory for an operation by the bump"));
	run->ask = bump->ask;
	run->ask.group = htole32(bump->group + comm->life);
	run->ask.operation = (uint8_t)operation_of(call->coll);
	order = order_of(request->entry);
	run->ask.algorithm = (uint8_t)(order ? order : &orders[0])->algorithm;
	run->ask.type = (uint8_t)call->type;
	run->ask.redop = (uint8_t)call->op;
	run->ask.root = htole16((uint16_t)call->root);
	run->pieces = call->bytes ? (uint32_t)((call->bytes - 1) / MUSTER_BUMP_DATA_MAX + 1) : 1;
	run->missing = (1u << run->pieces) - 1;
	run->id = ++run->ids;		/* 0 was the first barrier's (muster_bump_open()) */
	run->ids += run->pieces - 1;
	run->wait_us = AGAIN_US;
	run->refused_us = 0;
	run->request = request;
	run->next = bump->runs;
	bump->runs = run;
	request->state = MUSTER_REQUEST_RUNNING;
	pieces_send(bump, run);
	return 0;
}

int muster_bump_advance(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	int err = 0;

	if (request != comm->first)
		return MUSTER_RUN_AGAIN;
	if (request->state == MUSTER_REQUEST_QUEUED) {
		if (muster_channel_open(comm))
			return -ENOMEM;
		if (muster_channel_left(comm, request->number) ||
		    muster_channel_clashes(comm, request->number))
			return MUSTER_RUN_AGAIN;
		err = run_begin(request);
	}
	if (err)
		return err;
	if (comm->bump->missing)
		return MUSTER_RUN_AGAIN;
	run_end(request->job->bump, comm->bump);
	return MUSTER_RUN_DONE;
}

void muster_bump_cancel(struct muster_comm *comm)
{
	struct muster_bump *bump = comm->job->bump;

	if (!comm->bump || !comm->bump->request)
		return;
	withdraw(bump, comm->bump);
	run_end(bump, comm->bump);
}

/* ---- what the bump says ----------------------------------------------------------------------- */

static struct muster_bump_run *run_find(const struct muster_bump *bump,
					const struct muster_bump_header *header, uint32_t *piece)
{
	struct muster_bump_run *run = bump->runs;

	while (run && (run->ask.group != header->group || run->ask.rank != header->rank ||
		       le32toh(header->id) - run->id >= run->pieces))
		run = run->next;
	if (!run)
		return NULL;
	*piece = le32toh(header->id) - run->id;
	return run->missing & 1u << *piece ? run : NULL;
}

static void response_take(struct muster_bump_run *run, uint32_t piece,
			  const struct datagram *datagram, size_t bytes)
{
	struct muster_request *request = run->request;
	bool wanted = request->entry->call.coll != MUSTER_COLL_REDUCE ||
		      request->comm->rank == request->entry->call.root;

	if (bytes != piece_bytes(run, piece))
		return;
	if (wanted && bytes)
		memcpy(request->out + piece * (size_t)MUSTER_BUMP_DATA_MAX, datagram->data, bytes);
	run->missing &= ~(1u << piece);
	run->wait_us = AGAIN_US;
	run->refused_us = 0;
	if (!run->missing)
		muster_comm_activate(request->comm);
}

/*
 * There may be room in a while. That the others called something else or have given up,
 * they say themselves, with the reason: a word from each is asked for.
 */
static void refused(struct muster_bump_run *run, uint8_t status, int err)
{
	struct muster_comm *comm = run->request->comm;
	struct muster *job = comm->job;
	uint64_t now = muster_now_us(job);

	if (!run->refused_us) {
		run->refused_us = now;
		if (err != -ENOSPC)
			muster_channel_probe(comm);
	}
	if (now - run->refused_us < job->settings.deadline_us)
		return;
	muster_fail(job, err, "the bump at %s has refused %s for %g s (error %u)", job->settings.bump,
		    muster_coll_name(run->request->entry->call.coll),
		    (double)job->settings.deadline_us / 1e6, status);
	muster_comm_give_up(comm, err);
}

static uint32_t culprit_of(const struct muster_bump *bump, const struct muster_bump_header *header)
{
	return le16toh(header->from) * (uint32_t)bump->ask.local_ranks;
}

static void error_take(struct muster_bump *bump, struct muster_bump_run *run,
		       const struct muster_bump_header *header)
{
	struct muster_comm *comm = run->request->comm;
	struct muster *job = comm->job;

	switch (header->status) {
	case MUSTER_BUMP_EVERSION:	/* to what doubt() asks */
		break;
	case MUSTER_BUMP_EWINDOW:
	case MUSTER_BUMP_EROOM:
		refused(run, header->status, -ENOSPC);
		break;
	case MUSTER_BUMP_EMISMATCH:
		refused(run, header->status, -EPROTO);
		break;
	case MUSTER_BUMP_EABORTED:
		refused(run, header->status, -ECONNABORTED);
		break;
	case MUSTER_BUMP_ELOST:
		muster_fail(job, -ECONNRESET, "the bump of rank %u no longer has what another needs: it was restarted, or out of the window",
			    culprit_of(bump, header));
		muster_comm_give_up(comm, -ECONNRESET);
		break;
	default:
		muster_fail(job, -EPROTO, "the bump at %s refuses %s (error %u)", job->settings.bump,
			    muster_coll_name(run->request->entry->call.coll), header->status);
		muster_comm_give_up(comm, -EPROTO);
	}
}

static bool datagram_take(struct muster_bump *bump)
{
	struct datagram datagram;
	struct muster_bump_run *run;
	ssize_t got = recv(bump->fd, &datagram, sizeof(datagram), MSG_DONTWAIT);
	uint32_t piece;

	if (got < 0)
		return false;
	if (got < (ssize_t)sizeof(datagram.header) ||
	    datagram.header.magic != htole32(MUSTER_BUMP_MAGIC))
		return true;
	bump->doubts = 0;
	run = run_find(bump, &datagram.header, &piece);
	if (run && datagram.header.message == MUSTER_BUMP_RESPONSE)
		response_take(run, piece, &datagram, (size_t)got - sizeof(datagram.header));
	else if (run && datagram.header.message == MUSTER_BUMP_ERROR)
		error_take(bump, run, &datagram.header);
	return true;
}

static void ask_again(struct muster_bump *bump, struct muster_bump_run *run, uint64_t now)
{
	struct muster *job = run->request->job;

	if (bump->doubts > DOUBTS_MIN && now - bump->doubt_us > job->settings.deadline_us) {
		muster_fail(job, -ECONNRESET, "the bump at %s has said nothing for %g s",
			    job->settings.bump, (double)job->settings.deadline_us / 1e6);
		muster_comm_give_up(run->request->comm, -ECONNRESET);
		return;
	}
	if (run->wait_us < AGAIN_MAX_US)
		run->wait_us *= 2;
	if (run->wait_us > DOUBT_US)
		doubt(bump, now);
	pieces_send(bump, run);
}

bool muster_bump_progress(struct muster *job)
{
	struct muster_bump *bump = job->bump;
	bool some = false;
	uint64_t now;

	if (!bump || !bump->runs)
		return false;
	while (datagram_take(bump))
		some = true;
	now = muster_now_us(job);
	for (struct muster_bump_run *run = bump->runs, *next; run; run = next) {
		next = run->next;
		if (run->missing && now >= run->again_us)
			ask_again(bump, run, now);
	}
	return some;
}

bool muster_bump_wait(struct muster *job, uint64_t timeout_us)
{
	struct pollfd fd = { .fd = job->bump ? job->bump->fd : -1, .events = POLLIN };
	const struct timespec sleep = { .tv_nsec = (timeout_us < SLEEP_US ? timeout_us : SLEEP_US) * 1000 };

	if (!job->bump || !job->bump->runs)
		return false;
	muster_dev_sleep_begin(job->dev);
	ppoll(&fd, 1, &sleep, NULL);
	muster_dev_sleep_end(job->dev);
	return true;
}

/* ---- opening and closing ------------------------------------------------------------------------- */

static int cannot_open(struct muster *job, int err, const char *what)
{
	snprintf(job->no_bump, sizeof(job->no_bump), "the bump at %.64s %s", job->settings.bump, what);
	return err;
}

static int socket_open(struct muster_bump *bump, const struct muster_settings *settings)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char address[sizeof(settings->bump)], *port;

	strcpy(address, settings->bump);
	port = strchr(address, ':');	/* it was checked */
	*port++ = '\0';
	to.sin_port = htons((uint16_t)atoi(port));
	inet_pton(AF_INET, address, &to.sin_addr);
	bump->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bump->fd < 0 || connect(bump->fd, (struct sockaddr *)&to, sizeof(to)))
		return -errno;
	return 0;
}

/* 1: the answer; 0: not yet; -errno. */
static int barrier_hear(struct muster *job, const struct muster_bump_header *ask)
{
	struct datagram datagram;
	struct muster_bump_header *header = &datagram.header;
	ssize_t got = recv(job->bump->fd, &datagram, sizeof(datagram), 0);
	char what[64];

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (got < (ssize_t)sizeof(*header) || header->magic != ask->magic ||
	    header->group != ask->group || header->id != ask->id || header->rank != ask->rank)
		return 0;
	if (header->message == MUSTER_BUMP_RESPONSE)
		return 1;
	if (header->message != MUSTER_BUMP_ERROR)
		return 0;
	snprintf(what, sizeof(what), "answers with error %u", header->status);
	return cannot_open(job, -EPROTO, what);
}

/* It works at all ranks, or it is not used by any. */
static int barrier(struct muster *job)
{
	struct muster_bump_header ask = job->bump->ask;
	struct pollfd fd = { .fd = job->bump->fd, .events = POLLIN };
	uint64_t end_us = muster_now_us(job) + job->settings.deadline_us / 2;
	int ret = 0;

	ask.group = htole32(job->bump->group + job->world->life);
	ask.operation = MUSTER_BUMP_BARRIER;
	ask.algorithm = MUSTER_BUMP_DOUBLING;
	while (!ret && muster_now_us(job) < end_us) {
		if (send(job->bump->fd, &ask, sizeof(ask), 0) < 0 && errno != EAGAIN &&
		    errno != ENOBUFS)
			ret = -errno;
		else if (poll(&fd, 1, AGAIN_US / 1000) > 0)
			ret = barrier_hear(job, &ask);
	}
	if (ret > 0)
		return 0;
	if (!ret)
		return cannot_open(job, -ETIMEDOUT, "does not answer");
	return *job->no_bump ? ret : cannot_open(job, ret, strerror(-ret));
}

int muster_bump_open(struct muster *job)
{
	const struct muster_settings *settings = &job->settings;
	struct muster_bump *bump;
	int err;

	if (!*settings->bump || job->oob.size == 1)
		return 0;
	bump = calloc(1, sizeof(*bump));
	if (!bump)
		return cannot_open(job, -ENOMEM, strerror(ENOMEM));
	bump->group = (uint32_t)(job->key >> 8);
	bump->ask = (struct muster_bump_header){
		.magic = htole32(MUSTER_BUMP_MAGIC), .version = MUSTER_BUMP_VERSION,
		.message = MUSTER_BUMP_REQUEST, .stride = htole16(1),
		.hosts = htole16(settings->bump_hosts ? settings->bump_hosts : (uint16_t)job->oob.size),
		.ranks = htole16((uint16_t)job->oob.size), .rank = htole16((uint16_t)job->oob.rank),
		.local_rank = settings->bump_local_rank, .local_ranks = settings->bump_local_ranks,
		.key = htole64(settings->bump_key),
	};
	job->bump = bump;
	err = socket_open(bump, settings);
	if (err)
		cannot_open(job, err, strerror(-err));
	else
		err = barrier(job);
	if (err)
		muster_bump_close(job);
	return err;
}

void muster_bump_close(struct muster *job)
{
	if (!job->bump)
		return;
	if (job->bump->fd >= 0)
		close(job->bump->fd);
	free(job->bump);
	job->bump = NULL;
}
