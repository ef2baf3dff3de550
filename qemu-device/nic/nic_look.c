// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Looking pages of processes in the guest (muster_look.h), shown to processes of the host: a
 * page lies in a memory region of its owner's, and a copy of it in an anonymous file of this
 * process, as a rank of the host has one. The copy is made now and then, with times of the
 * host's clock. The page is copied and not believed. In return its owner is told what the engine
 * waits for; it alone knows the rank that fills a slot.
 *
 * Behind the page may be the ring of its owner's trace records, which are copied too, into the
 * one that the engine writes: so all are in one place and of one clock.
 */
#include "nic_internal.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "muster_look.h"

enum {
	LOOKS_MAX = 64,		/* pages of a NIC that are shown; each is an open file */
	EVERY_US = 50000,
	MORE_US = 1000,		/* or so often, while records wait */
	RECORDS_AT_ONCE = 256,
	SHIFT_US = 20000,	/* a clock that has moved by less has not */
	PATH_NIC = 2,		/* enum muster_path */
	HEAD = offsetof(struct muster_look, comms),
	TRACE = offsetof(struct muster_look_file, trace),
};

/* What is read of struct muster_trace. */
struct trace_head {
	__le32 on;
	__le32 clock;
	__le64 written;
	__le64 now;
	__le64 until;
};

_Static_assert(offsetof(struct muster_trace, written) == offsetof(struct trace_head, written), "");
_Static_assert(offsetof(struct muster_trace, until) == offsetof(struct trace_head, until), "");

struct nic_look {
	uint32_t key;
	uint64_t iova;
	uint32_t max_comms;	/* which the region holds */
	uint64_t ahead_us;	/* we are, of the guest's clock, modulo 2^64; for what is timed exactly */
	uint64_t ahead_page_us;	/* about that, so that what stands in the page keeps its time */
	bool timed;
	bool has_trace;
	bool switched;		/* `on` is the host's, and told to the owner */
	uint64_t nr_records;	/* of the owner's that are copied */
	int fd;
	struct muster_look_file *file;
	struct muster_look owner;	/* its head as it was read last */
};

/* ---- life -------------------------------------------------------------------------- */

static bool file_open(struct nic_look *look)
{
	look->fd = memfd_create(MUSTER_LOOK_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (look->fd < 0)
		return false;
	/* Who opens it to record must not be able to take it from under us. */
	if (ftruncate(look->fd, sizeof(*look->file)) ||
	    fcntl(look->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		goto err_close;
	look->file = mmap(NULL, sizeof(*look->file), PROT_READ | PROT_WRITE, MAP_SHARED, look->fd, 0);
	if (look->file != MAP_FAILED)
		return true;

err_close:
	close(look->fd);
	return false;
}

/* The engine has one ring: of several processes it would not be known whose a record is. */
static void trace_put(struct muster_nic *nic)
{
	nic->trace = NULL;
	for (uint32_t i = 0; i < nic->nr_vps && nic->nr_looks == 1; i++) {
		struct nic_vp *vp = nic->vps[nic->vp_ids[i]];

		if (vp->look)
			nic->trace = &vp->look->file->trace;
	}
	nic_engines_trace(nic, NULL);	/* until the next step */
}

static int look_show(struct muster_nic *nic, struct nic_vp *vp, uint64_t now_us, bool *more);
static int records_copy(struct muster_nic *nic, const struct nic_vp *vp, bool *more);

void nic_look_close(struct muster_nic *nic, struct nic_vp *vp)
{
	struct nic_look *look = vp->look;
	bool more = false;
	int err;

	if (!look)
		return;
	/* Who has it open sees how it ended. Its owner may go on writing, so not all that comes. */
	err = look_show(nic, vp, nic->world->now_us(nic->opaque), &more);
	for (int i = 0; i < MUSTER_TRACE_RECORDS / RECORDS_AT_ONCE && !err && more; i++) {
		more = false;
		err = records_copy(nic, vp, &more);
	}
	munmap(look->file, sizeof(*look->file));
	close(look->fd);
	free(look);
	vp->look = NULL;
	nic->nr_looks--;
	trace_put(nic);
}

void nic_look_open(struct muster_nic *nic, struct nic_vp *vp, uint32_t key)
{
	uint64_t iova, bytes;
	struct nic_look *look;

	if (key && vp->look && vp->look->key == key)
		return;
	nic_look_close(nic, vp);
	if (nic_mr_range(nic, vp->id, key, &iova, &bytes) || bytes < HEAD ||
	    nic->nr_looks == LOOKS_MAX)
		return;
	look = calloc(1, sizeof(*look));
	if (!look)
		return;
	look->key = key;
	look->iova = iova;
	look->has_trace = bytes >= sizeof(struct muster_look_file);
	bytes = (bytes - HEAD) / sizeof(struct muster_look_comm);
	look->max_comms = bytes < MUSTER_LOOK_NIC_COMMS ? bytes : MUSTER_LOOK_NIC_COMMS;
	if (!file_open(look)) {
		free(look);
		return;
	}
	look->file->trace.clock = MUSTER_TRACE_NS;
	vp->look = look;
	nic->nr_looks++;
	nic->looks_due_us = 0;
	trace_put(nic);
}

/* ---- copies -------------------------------------------------------------------------- */

static int part_read(struct muster_nic *nic, const struct nic_vp *vp, uint64_t at, void *part,
		     uint32_t bytes)
{
	return nic_mr_read(nic, vp->id, vp->look->key, vp->look->iova + at, part, bytes);
}

/* What has a seq that says whether it was being written meanwhile: 1; 0: it was; or -EFAULT. */
static int record_read(struct muster_nic *nic, const struct nic_vp *vp, uint64_t at, void *record,
		       uint32_t bytes, uint32_t seq_at)
{
	uint32_t before, after;
	int err = part_read(nic, vp, at, record, bytes);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!err)
		err = part_read(nic, vp, at + seq_at, &after, sizeof(after));
	if (err)
		return err;
	memcpy(&before, (const uint8_t *)record + seq_at, sizeof(before));
	return before == after && before % 2 == 0;
}

/* The copy has a seq of its own, which is odd in the record, too, until all of it is there. */
static void record_show(void *shown, void *record, uint32_t bytes, __le32 *seq)
{
	uint32_t was = *seq, odd = was + 1;

	__atomic_store_n(seq, odd, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy((uint8_t *)record + ((uint8_t *)seq - (uint8_t *)shown), &odd, sizeof(odd));
	memcpy(shown, record, bytes);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(seq, was + 2, __ATOMIC_RELAXED);
}

static void time_shift(const struct nic_look *look, __le64 *time)
{
	if (*time)
		*time += look->ahead_page_us;
}

/* What the NIC waits for in a communicator's oldest operation; its owner adds who fills slots. */
static int device_tell(struct muster_nic *nic, const struct nic_vp *vp, uint64_t at,
		       const struct muster_look_comm *comm)
{
	const struct nic_look *look = vp->look;
	struct muster_look_waits waits;

	if (!comm->used || comm->path != PATH_NIC || comm->started == comm->ended || comm->failed)
		return 0;
	if (muster_engine_waits(nic_engine_of(nic, vp->id), vp->id, look->owner.job, comm->context, &waits))
		memset(&waits, 0, sizeof(waits));
	if (!memcmp(&waits, &comm->device, sizeof(waits)))
		return 0;
	return nic_mr_write(nic, vp->id, look->key,
			    look->iova + at + offsetof(struct muster_look_comm, device), &waits,
			    sizeof(waits));
}

static int comm_show(struct muster_nic *nic, const struct nic_vp *vp, uint32_t i)
{
	const uint64_t at = HEAD + (uint64_t)i * sizeof(struct muster_look_comm);
	struct muster_look_comm *shown = &vp->look->file->look.comms[i], comm;
	int ret = record_read(nic, vp, at, &comm, sizeof(comm), 0);

	if (ret <= 0)
		return ret;
	ret = device_tell(nic, vp, at, &comm);
	time_shift(vp->look, &comm.told_us);
	time_shift(vp->look, &comm.since_us);
	record_show(shown, &comm, sizeof(comm), &shown->seq);
	return ret;
}

/* Of the lag, 32 bits are known; the first time seen_us, which is of about now, has the others. */
static void clock_read(const struct muster_nic *nic, struct nic_look *look, uint16_t vp,
		       uint64_t now_us)
{
	const struct nic_doorbell *doorbell = &nic->doorbells[vp];

	if (!look->timed)
		look->ahead_us = now_us - look->owner.seen_us;
	if (__atomic_load_n(&doorbell->clocked, __ATOMIC_ACQUIRE))
		look->ahead_us += (uint64_t)(int64_t)(int32_t)
			(__atomic_load_n(&doorbell->lag_us, __ATOMIC_RELAXED) - (uint32_t)look->ahead_us);
	if (!look->timed || llabs((int64_t)(look->ahead_us - look->ahead_page_us)) > SHIFT_US)
		look->ahead_page_us = look->ahead_us;
	look->timed = true;
}

static void head_show(const struct muster_nic *nic, struct nic_look *look, uint32_t nr,
		      uint64_t now_us)
{
	struct muster_look *owner = &look->owner;

	time_shift(look, &owner->began_us);
	time_shift(look, &owner->place_us);
	time_shift(look, &owner->seen_us);
	owner->nr_hidden = owner->nr_comms - nr;
	owner->nr_comms = nr;
	owner->copied_us = now_us;
	owner->copied_by = (uint32_t)getpid();
	nic_engines_count(nic, &owner->counters);
	record_show(&look->file->look, owner, HEAD, &look->file->look.seq);
}

/* ---- trace records --------------------------------------------------------------------- */

static int record_copy(struct muster_nic *nic, const struct nic_vp *vp)
{
	struct nic_look *look = vp->look;
	struct muster_trace *trace = &look->file->trace;
	uint64_t place = look->nr_records % MUSTER_TRACE_RECORDS;
	struct muster_trace_record record;
	int err = part_read(nic, vp, TRACE + offsetof(struct muster_trace, records) +
			    place * sizeof(record), &record, sizeof(record));

	if (err)
		return err;
	record.time += look->ahead_us * 1000;
	trace->records[trace->written % MUSTER_TRACE_RECORDS] = record;
	__atomic_store_n(&trace->written, trace->written + 1, __ATOMIC_RELEASE);
	look->nr_records++;
	return 0;
}

bool nic_trace_lasts(struct muster_trace *trace, uint64_t now_ns)
{
	if (trace->on && now_ns > trace->until)
		trace->on = 0;		/* who recorded is not there any more */
	return trace->on;
}

static int trace_write(struct muster_nic *nic, const struct nic_vp *vp, uint64_t at,
		       const void *from, uint32_t bytes)
{
	return nic_mr_write(nic, vp->id, vp->look->key, vp->look->iova + TRACE + at, from, bytes);
}

/*
 * At first the owner says whether records are wanted, from then on who records; and until when,
 * which the owner is told again and again, as it ends by itself otherwise.
 */
static int trace_switch(struct muster_nic *nic, const struct nic_vp *vp,
			const struct trace_head *head)
{
	const uint64_t now_ns = nic->world->now_us(nic->opaque) * 1000;
	struct nic_look *look = vp->look;
	struct muster_trace *trace = &look->file->trace;
	__le64 until;
	__le32 on;
	int err = 0;

	if (!look->switched) {
		trace->until = now_ns + MUSTER_TRACE_LEASE;
		trace->on = head->on;
	}
	look->switched = true;
	on = nic_trace_lasts(trace, now_ns);
	until = trace->until - look->ahead_us * 1000;
	if (on && (int64_t)(until - head->until) > (int64_t)MUSTER_TRACE_LEASE / 4)
		err = trace_write(nic, vp, offsetof(struct muster_trace, until), &until, sizeof(until));
	return err || head->on == on ? err :
	       trace_write(nic, vp, offsetof(struct muster_trace, on), &on, sizeof(on));
}

static int records_copy(struct muster_nic *nic, const struct nic_vp *vp, bool *more)
{
	struct nic_look *look = vp->look;
	struct trace_head head;
	int err = part_read(nic, vp, TRACE, &head, sizeof(head));

	if (err)
		return err;
	err = trace_switch(nic, vp, &head);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (head.written - look->nr_records > MUSTER_TRACE_RECORDS)
		look->nr_records = head.written - MUSTER_TRACE_RECORDS;
	for (int i = 0; i < RECORDS_AT_ONCE && !err && look->nr_records != head.written; i++)
		err = record_copy(nic, vp);
	*more |= !err && look->nr_records != head.written;
	return err;
}

/* ---- all of it --------------------------------------------------------------------------- */

/* 0, also when the page cannot be copied now; -EFAULT: it is there no more. */
static int look_show(struct muster_nic *nic, struct nic_vp *vp, uint64_t now_us, bool *more)
{
	struct muster_look *owner = &vp->look->owner;
	int ret = record_read(nic, vp, 0, owner, HEAD, offsetof(struct muster_look, seq));
	uint32_t nr;

	*more = false;
	if (ret <= 0)
		return ret;
	if (owner->magic != MUSTER_LOOK_MAGIC || owner->version != MUSTER_LOOK_VERSION)
		return 0;
	clock_read(nic, vp->look, vp->id, now_us);
	nr = owner->nr_comms < vp->look->max_comms ? owner->nr_comms : vp->look->max_comms;
	for (uint32_t i = 0; i < nr && ret >= 0; i++)
		ret = comm_show(nic, vp, i);
	if (ret < 0)
		return ret;
	head_show(nic, vp->look, nr, now_us);
	return vp->look->has_trace ? records_copy(nic, vp, more) : 0;
}

uint64_t nic_looks_run(struct muster_nic *nic)
{
	bool more = false, any = false;
	uint64_t now_us;

	if (!nic->nr_looks)
		return UINT64_MAX;
	now_us = nic->world->now_us(nic->opaque);
	if (now_us < nic->looks_due_us)
		return nic->looks_due_us - now_us;
	for (uint32_t i = 0; i < nic->nr_vps; i++) {
		struct nic_vp *vp = nic->vps[nic->vp_ids[i]];

		if (!vp->look)
			continue;
		if (look_show(nic, vp, now_us, &more))
			nic_look_close(nic, vp);
		any |= more;
	}
	nic->looks_due_us = now_us + (any ? MORE_US : EVERY_US);
	return nic->looks_due_us - now_us;
}
