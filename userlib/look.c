// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The looking page (muster_look.h): what other processes of the same user may see of this
 * one. Which operation a communicator is in is written as it changes, which costs some
 * stores. What it waits for is found out only by who has waited for some milliseconds, so
 * nobody pays for it who does not wait.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"
#include "look.h"
#include "rails.h"
#include "ticks.h"

enum { TELL_US = 5000 };	/* between two tellings of what is waited for */

/* ---- the page ------------------------------------------------------------------- */

/* Who hears the name learns nothing of the key. */
static uint64_t name_of(uint64_t key)
{
	key ^= key >> 30;
	key *= 0xbf58476d1ce4e5b9ull;
	key ^= key >> 27;
	key *= 0x94d049bb133111ebull;
	return (key >> 32) ^ (key >> 61);	/* half of it is lost */
}

static void identity_write(const struct muster *job, struct muster_look *look)
{
	look->version = MUSTER_LOOK_VERSION;
	look->pid = (uint32_t)getpid();
	look->job_name = name_of(job->key);
	look->began_us = look->place_us = look->seen_us = muster_now_us(job);
	look->rank = job->oob.rank;
	look->size = job->oob.size;
	look->node = job->dev->address.node;
	look->vp = job->dev->address.vp;
	look->incarnation = job->dev->address.incarnation;
	look->job = job->id;
	snprintf(look->command, sizeof(look->command), "%s", program_invocation_short_name);
	strcpy(look->device, job->settings.device);
	if (!strcmp(job->settings.device, "local"))
		strcpy(look->wire, job->settings.wire);
}

void muster_look_open(struct muster *job)
{
	struct muster_look_file *file;

	job->traced = &job->untraced;
	if (job->dev->ops->now_us || job->whole)
		return;		/* a world of its own: nobody is there to look; or a rail: the whole is looked at */
	job->look_fd = memfd_create(MUSTER_LOOK_NAME, MFD_CLOEXEC);
	if (job->look_fd < 0)
		return;
	if (ftruncate(job->look_fd, sizeof(*file)))
		goto err_close;
	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, job->look_fd, 0);
	if (file == MAP_FAILED)
		goto err_close;
	identity_write(job, &file->look);
	file->trace.clock = muster_ticks_clock();
	file->trace.until = muster_ticks(file->trace.clock) + MUSTER_TRACE_LEASE;
	file->trace.on = job->settings.trace;
	if (job->dev->ops->look)
		job->dev->ops->look(job->dev, file);
	atomic_thread_fence(memory_order_release);
	file->look.magic = MUSTER_LOOK_MAGIC;
	job->look = &file->look;
	job->trace = &file->trace;
	job->traced = &file->trace.on;
	return;

err_close:
	close(job->look_fd);
}

void muster_look_close(struct muster *job)
{
	if (!job->look)
		return;
	munmap(job->look, sizeof(struct muster_look_file));
	close(job->look_fd);
	job->look = NULL;
	job->trace = NULL;
	job->traced = &job->untraced;
}

/* Between these two readers see that it changes. */
static void write_begin(__le32 *seq)
{
	*(volatile __le32 *)seq = *seq + 1;
	atomic_thread_fence(memory_order_release);
}

static void write_end(__le32 *seq)
{
	atomic_thread_fence(memory_order_release);
	*(volatile __le32 *)seq = *seq + 1;
}

/* ---- communicators ------------------------------------------------------------------ */

/* Ids are small and few are in use. */
static struct muster_look_comm *place_find(struct muster *job, uint32_t context)
{
	for (uint32_t i = 0; job->look && i < MUSTER_LOOK_COMMS_MAX; i++) {
		uint32_t place = (context + i) % MUSTER_LOOK_COMMS_MAX;

		if (job->look->comms[place].used)
			continue;
		if (job->look->nr_comms <= place)
			job->look->nr_comms = place + 1;
		return &job->look->comms[place];
	}
	return &job->unseen;
}

void muster_look_comm_open(struct muster_comm *comm)
{
	struct muster_look_comm *look = place_find(comm->job, comm->context);
	uint32_t seq = look->seq;

	comm->look = look;
	write_begin(&look->seq);
	memset(look, 0, sizeof(*look));
	look->seq = seq + 1;
	look->context = comm->context;
	look->life = comm->life;
	look->lead = comm->ranks[0];
	look->member = comm->rank;
	look->size = comm->size;
	look->used = 1;
	write_end(&look->seq);
}

void muster_look_comm_close(struct muster_comm *comm)
{
	comm->look->used = 0;
}

/* ---- waits ---------------------------------------------------------------------------- */

/* Which of its stages the device runs; nr_stages: none of them. */
static uint32_t stage_of(const struct muster_request *request, uint32_t number)
{
	uint32_t nr = request->entry->program->nr_stages;
	uint32_t posted = request->kept ? 1 : request->stage;
	uint32_t back = request->sequence - number;

	return back < posted ? posted - 1 - back : nr;
}

/* The program knows who fills a slot; the engine does not. */
static void sources_fill(const struct muster_request *request, struct muster_look_waits *waits)
{
	const struct muster_program *program = request->entry->program;
	uint32_t stage = stage_of(request, waits->number);

	for (uint32_t i = 0; i < waits->nr && i < MUSTER_LOOK_WAITS_MAX; i++)
		if (waits->waits[i].cause == MUSTER_LOOK_SLOT && stage < program->nr_stages)
			waits->waits[i].rank = program->sources[stage][waits->waits[i].slot];
}

void muster_look_add(struct muster_look_waits *waits, uint8_t cause, uint32_t member)
{
	if (waits->nr < MUSTER_LOOK_WAITS_MAX)
		waits->waits[waits->nr] = (struct muster_look_wait){ .rank = member, .cause = cause };
	waits->nr++;
}

void muster_look_held(const struct muster_comm *comm, struct muster_look_waits *waits)
{
	for (uint32_t i = 0; i < comm->size; i++)
		if (i != comm->rank && muster_member_holds(comm, i))
			muster_look_add(waits, MUSTER_LOOK_WIRE, i);
}

/* The page has what the device told last, which may be of an earlier operation. */
static void told_read(const struct muster_comm *comm, struct muster_look_waits *waits)
{
	const struct muster_request *request = comm->first;

	*waits = comm->look->device;
	if (stage_of(request, waits->number) < request->entry->program->nr_stages)
		sources_fill(request, waits);
	else
		*waits = (struct muster_look_waits){ 0 };
}

static void waits_find(const struct muster_comm *comm, struct muster_look_waits *waits)
{
	const struct muster_request *request = comm->first;
	struct muster_dev *dev = comm->job->dev;

	*waits = (struct muster_look_waits){ 0 };
	if (request->ended) {
		muster_look_held(comm, waits);
	} else if (request->path == MUSTER_PATH_HOST) {
		muster_host_waits(comm, waits);
	} else if (request->path == MUSTER_PATH_BUMP) {
		muster_look_add(waits, MUSTER_LOOK_BUMP, MUSTER_LOOK_NOBODY);
	} else if (!request->entry->program) {
		;	/* it has just become the oldest, and is not begun */
	} else if (!dev->ops->waits) {
		told_read(comm, waits);
	} else if (!dev->ops->waits(dev, comm->job->id, comm->context, waits)) {
		sources_fill(request, waits);
	}
	for (uint32_t i = 0; i < waits->nr && i < MUSTER_LOOK_WAITS_MAX; i++)
		waits->waits[i].rank = waits->waits[i].rank < comm->size ?
				       comm->ranks[waits->waits[i].rank] : MUSTER_LOOK_NOBODY;
}

uint32_t muster_look_nodes(const struct muster_comm *comm, uint32_t nodes[MUSTER_LOOK_WAITS_MAX])
{
	struct muster_look_waits waits;
	uint32_t nr = 0;

	if (!comm->first || !comm->job->dev->ops->waits)
		return 0;
	waits_find(comm, &waits);
	for (uint32_t i = 0; i < waits.nr && i < MUSTER_LOOK_WAITS_MAX; i++)
		if (waits.waits[i].rank != MUSTER_LOOK_NOBODY)
			nodes[nr++] = comm->job->addresses[waits.waits[i].rank].node;
	return nr;
}

static void comm_tell(struct muster_comm *comm, uint64_t now_us)
{
	struct muster_look_comm *look = comm->look;
	struct muster_look_waits waits;

	waits_find(muster_rails_awaited(comm), &waits);
	write_begin(&look->seq);
	if (look->told != look->ended || !look->since_us)
		look->since_us = now_us;
	look->told = look->ended;
	look->told_us = now_us;
	look->waits = waits;
	write_end(&look->seq);
}

static void silent_tell(struct muster *job)
{
	struct muster_look *look = job->look;
	struct muster_look_silence silent[MUSTER_LOOK_SILENT_MAX];
	uint32_t nr = job->dev->ops->silent(job->dev, silent, MUSTER_LOOK_SILENT_MAX);

	if (!nr && !look->nr_silent)
		return;
	write_begin(&look->seq);
	memcpy(look->silent, silent, nr * sizeof(*silent));
	look->nr_silent = nr;
	write_end(&look->seq);
}

static void all_tell(struct muster *job, uint64_t now_us)
{
	job->told_us = now_us;
	if (job->dev->ops->silent)
		silent_tell(job);
	for (int i = 0; i < MUSTER_COMM_BUCKETS; i++)
		for (struct muster_comm *comm = job->comms[i]; comm; comm = comm->next)
			if (comm->first)
				comm_tell(comm, now_us);
}

static void place_write(struct muster *job, enum muster_look_place place, uint32_t context,
			uint32_t rank, uint64_t now_us)
{
	struct muster_look *look = job->look;

	if (look->place == place && look->context == context && look->wait.rank == rank)
		return;
	write_begin(&look->seq);
	look->place = (uint8_t)place;
	look->context = context;
	look->place_us = now_us;
	look->wait = (struct muster_look_wait){ .rank = rank, .cause = MUSTER_LOOK_AGREEMENT };
	write_end(&look->seq);
}

void muster_look_tell(struct muster_comm *comm, uint64_t now_us)
{
	struct muster *job = comm->job;

	if (!job->look)
		return;
	place_write(job, MUSTER_LOOK_WAITS, comm->context, MUSTER_LOOK_NOBODY, now_us);
	muster_look_tested(job, now_us);
}

void muster_look_tested(struct muster *job, uint64_t now_us)
{
	if (job->look)
		job->look->seen_us = now_us;
	muster_look_carried(job, now_us);
}

void muster_look_carried(struct muster *job, uint64_t now_us)
{
	if (job->look && now_us > job->told_us + TELL_US)
		all_tell(job, now_us);
}

void muster_look_wait_for(struct muster_comm *parent, uint32_t rank)
{
	struct muster *job = parent->job;

	if (job->look)
		place_write(job, MUSTER_LOOK_MAKES, parent->context, rank, muster_now_us(job));
}

void muster_look_place(struct muster *job, enum muster_look_place place)
{
	if (job->look && job->look->place != place)
		place_write(job, place, 0, MUSTER_LOOK_NOBODY, muster_now_us(job));
}

/* ---- trace records -------------------------------------------------------------------- */

/* The next record, of now. It is not there before record_end(). */
static inline struct muster_trace_record *record_begin(const struct muster_request *request,
						       struct muster_trace *trace, uint64_t written,
						       uint8_t kind)
{
	struct muster_trace_record *record = &trace->records[written % MUSTER_TRACE_RECORDS];
	const struct muster_comm *comm = request->comm;
	const uint32_t context = comm->context, life = comm->life, number = request->number;

	record->time = trace->now;
	record->context = context;
	record->life = life;
	record->number = number;
	record->kind = kind;
	return record;
}

static inline void record_end(struct muster_trace *trace, uint64_t written)
{
	__atomic_store_n(&trace->written, written + 1, __ATOMIC_RELEASE);
}

static inline void call_record(struct muster_request *request, struct muster_trace *trace)
{
	const struct muster_entry *entry = request->entry;
	const uint64_t written = trace->written, bytes = entry->call.bytes;
	struct muster_trace_record *record;

	if (trace->now > trace->until) {
		trace->on = 0;		/* who recorded is not there any more */
		return;
	}
	record = record_begin(request, trace, written, MUSTER_TRACE_CALL);
	record->member = request->path;
	record->pulse = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
	record->slot = entry->signature.coll;
	record_end(trace, written);
	request->traced = true;
}

static __attribute__((noinline)) void call_slowly(struct muster_request *request)
{
	struct muster_trace *trace = request->job->trace;
	struct muster_dev *dev = request->job->dev;

	if (!dev->recording && dev->ops->record)
		dev->ops->record(dev);
	trace->now = muster_ticks(trace->clock);
	call_record(request, trace);
}

void muster_look_trace_call(struct muster_request *request)
{
	struct muster_trace *trace = request->job->trace;

	if (!request->job->dev->recording || trace->clock != MUSTER_TRACE_TSC) {
		call_slowly(request);
		return;
	}
	trace->now = muster_ticks_tsc();
	call_record(request, trace);
}

void muster_look_trace_done(struct muster_request *request)
{
	struct muster_trace *trace = request->job->trace;
	uint64_t written;

	request->traced = false;
	if (!trace || !trace->on)
		return;		/* the page has gone, or who recorded */
	written = trace->written;
	record_begin(request, trace, written, MUSTER_TRACE_DONE);
	record_end(trace, written);
}
