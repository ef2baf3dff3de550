// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The collective forwarding engine (CFE): it recognizes offload packets, checks
 * them completely, registers operations, and hands what they bring to the state
 * machine (operation.c). Nothing changes when a packet is refused: a host gets an
 * error, anyone else's is counted and dropped.
 */
#include "internal.h"

/* ---- what a packet may say ---- */

static bool all_zero(const uint8_t *p, uint32_t len)
{
	while (len && !p[len - 1])
		len--;
	return !len;
}

static bool elements_valid(const struct muster_bump_header *header)
{
	if (header->operation == MUSTER_BUMP_BARRIER)
		return !header->type && !header->redop && !header->count;
	return (header->type == MUSTER_DTYPE_I32 || header->type == MUSTER_DTYPE_U32 ||
		header->type == MUSTER_DTYPE_F64) && header->redop <= MUSTER_REDOP_LXOR &&
	       muster_arith_supported(header->type, header->redop);
}

static bool root_valid(const struct muster_bump_header *header)
{
	return header->operation == MUSTER_BUMP_REDUCE ?
	       le16toh(header->root) < le16toh(header->ranks) : !header->root;
}

static bool fields_valid(const struct muster_bump_header *header)
{
	return header->operation >= MUSTER_BUMP_ALLREDUCE &&
	       header->operation <= MUSTER_BUMP_SCAN && header->algorithm >= MUSTER_BUMP_RING &&
	       header->algorithm <= MUSTER_BUMP_TORUS && elements_valid(header) &&
	       root_valid(header) && all_zero(header->reserved, sizeof(header->reserved));
}

static uint32_t element_bytes(const struct muster_bump_header *header)
{
	return le16toh(header->count) * (uint32_t)muster_dtype_size(header->type);
}

static bool size_valid(const struct muster_bump_header *header)
{
	return element_bytes(header) <= MUSTER_BUMP_DATA_MAX &&
	       (header->count || header->operation == MUSTER_BUMP_BARRIER);
}

/* Is this element a member of the group so described, and are all members elements? */
static bool member_valid(const struct muster_bump *bump, const struct muster_bump_header *header)
{
	uint32_t hosts = le16toh(header->hosts), first = le16toh(header->first);
	uint32_t stride = le16toh(header->stride), self = bump->config.element;

	return hosts && stride && le16toh(header->ranks) >= hosts &&
	       first + (hosts - 1) * stride < bump->config.nr_elements && self >= first &&
	       (self - first) % stride == 0 && (self - first) / stride < hosts;
}

static bool rank_valid(const struct muster_bump_header *header)
{
	uint32_t rank = le16toh(header->rank), local = header->local_rank;

	return header->local_ranks && header->local_ranks <= MUSTER_BUMP_LOCAL_MAX &&
	       local < header->local_ranks && rank >= local &&
	       rank - local + header->local_ranks <= le16toh(header->ranks);
}

static uint8_t request_check(const struct muster_bump *bump, const struct packet *packet)
{
	const struct muster_bump_header *header = &packet->header;
	uint32_t bytes = header->message == MUSTER_BUMP_ABORT ? 0 : element_bytes(header);

	if (header->version != MUSTER_BUMP_VERSION)
		return MUSTER_BUMP_EVERSION;
	if (!fields_valid(header) || header->status || header->step || header->from || header->to)
		return MUSTER_BUMP_EFIELD;
	if (!size_valid(header) || packet->bytes != bytes)
		return MUSTER_BUMP_ESIZE;
	if (!member_valid(bump, header) || !rank_valid(header))
		return MUSTER_BUMP_EMEMBER;
	return MUSTER_BUMP_OK;
}

static bool step_valid(const struct muster_bump *bump, const struct packet *packet)
{
	const struct muster_bump_header *header = &packet->header;
	uint32_t from = le16toh(header->from), first = le16toh(header->first);

	return header->version == MUSTER_BUMP_VERSION && fields_valid(header) &&
	       size_valid(header) && member_valid(bump, header) &&
	       header->status <= MUSTER_BUMP_ELOST && from < le16toh(header->hosts) &&
	       first + from * le16toh(header->stride) != bump->config.element &&
	       (!packet->bytes || packet->bytes == element_bytes(header));
}

static bool key_find(const struct muster_bump *bump, struct packet *packet)
{
	for (uint32_t i = 0; i < bump->config.nr_keys; i++)
		if (bump->keys[i] == le64toh(packet->header.key)) {
			packet->key = i;
			return true;
		}
	return false;
}

/* ---- from the host ---- */

/* Ranks of a host follow each other; a rank that asks again may do so from elsewhere. */
static uint8_t rank_register(struct operation *op, const struct packet *packet)
{
	const struct muster_bump_header *header = &packet->header;
	struct local_rank *local = &op->local[header->local_rank];
	int first = le16toh(header->rank) - header->local_rank;

	if (op->nr_local && op->nr_local != header->local_ranks)
		return MUSTER_BUMP_EMISMATCH;
	for (uint32_t i = 0; i < op->nr_local; i++)
		if (op->local[i].asked && op->local[i].rank - (int)i != first)
			return MUSTER_BUMP_EMISMATCH;
	op->nr_local = header->local_ranks;
	local->rank = le16toh(header->rank);
	local->origin = packet->origin;
	return MUSTER_BUMP_OK;
}

static void request_again(struct muster_bump *bump, struct operation *op, uint32_t index)
{
	bump->counters.repeated++;
	if (op->phase == OPERATION_COMPLETE || op->phase == OPERATION_FAILED)
		operation_answer(bump, op, index);
}

static void request_register(struct muster_bump *bump, struct operation *op,
			     const struct packet *packet)
{
	struct local_rank *local = &op->local[packet->header.local_rank];

	if (local->asked || op->phase != OPERATION_GATHERING) {
		local->asked = true;
		request_again(bump, op, packet->header.local_rank);
		return;
	}
	local->own = buffer_new(bump, packet->data, packet->bytes);
	if (!local->own)
		return;		/* it is asked again */
	local->asked = true;
	bump->counters.requests++;
	if (++op->nr_asked == op->nr_local) {
		op->phase = OPERATION_RUNNING;
		operation_run(bump, op);
	}
}

/* What has ended stays as it is, and the rank is told how that was. */
static void abort_register(struct muster_bump *bump, struct operation *op,
			   const struct packet *packet)
{
	op->local[packet->header.local_rank].asked = true;
	if (op->phase == OPERATION_COMPLETE || op->phase == OPERATION_FAILED)
		request_again(bump, op, packet->header.local_rank);
	else
		operation_fail(bump, op, MUSTER_BUMP_EABORTED, op->group->self);
}

static void host_take(struct muster_bump *bump, const struct packet *packet)
{
	struct operation *op = NULL;
	uint8_t status = request_check(bump, packet);

	if (!status)
		status = operation_find(bump, packet, &op);
	if (!status)
		status = rank_register(op, packet);
	if (status == MUSTER_BUMP_EMISMATCH)
		operation_fail(bump, op, status, op->group->self);
	if (status == STATUS_NO_MEMORY)
		return;
	if (status) {
		operation_refuse(bump, packet, status);
		return;
	}
	if (packet->header.message == MUSTER_BUMP_ABORT)
		abort_register(bump, op, packet);
	else
		request_register(bump, op, packet);
}

/* ---- from other bumps ---- */

/* The state that the packet is for, of the kind; program.nr: none. */
static uint32_t state_find(const struct operation *op, enum state_kind kind,
			   const struct packet *packet)
{
	uint32_t i = 0;

	while (i < op->program.nr && (op->program.states[i].kind != kind ||
				      op->program.states[i].peer != le16toh(packet->header.from) ||
				      op->program.states[i].step != packet->header.step))
		i++;
	return i;
}

static void data_fill(struct muster_bump *bump, struct operation *op, const struct packet *packet)
{
	uint32_t at = state_find(op, STATE_HEAR, packet);

	if (at == op->program.nr ||
	    packet->bytes != (op->program.states[at].does == DO_NOTHING ? 0 : op->bytes)) {
		bump->counters.dropped_bad++;
		return;
	}
	if (at < op->next || op->heard[at]) {
		bump->counters.duplicates++;
		return;
	}
	op->heard[at] = buffer_new(bump, packet->data, packet->bytes);
	bump->counters.data_in++;
	if (op->phase == OPERATION_RUNNING && at == op->next && op->heard[at])
		operation_run(bump, op);
}

static void data_take(struct muster_bump *bump, const struct packet *packet)
{
	const struct muster_bump_header *header = &packet->header;
	struct operation *op = NULL;
	uint8_t status = operation_find(bump, packet, &op);

	if (status == MUSTER_BUMP_EMISMATCH) {
		operation_fail(bump, op, status, le16toh(header->from));
		if (!header->status)
			operation_deny(bump, packet, status);
	} else if (status) {
		bump->counters.dropped_early++;
	} else if (header->status) {
		operation_fail(bump, op, header->status, le16toh(header->rank));
	} else if (op->phase == OPERATION_FAILED) {
		operation_deny(bump, packet, op->status);
	} else if (op->phase == OPERATION_COMPLETE) {
		bump->counters.duplicates++;
	} else {
		data_fill(bump, op, packet);
	}
}

/* What was sent is sent again; what is not known here is known to be late, or lost. */
static void want_take(struct muster_bump *bump, const struct packet *packet)
{
	struct group *group = group_known(bump, packet);
	uint32_t id = le32toh(packet->header.id), at;
	struct operation *op;

	bump->counters.wants_in++;
	if (!group)
		return;
	op = &group->kept[id % MUSTER_BUMP_KEPT];
	if (op->phase == OPERATION_FREE || (int32_t)(id - op->id) > 0)
		return;
	if (op->id != id) {
		operation_deny(bump, packet, MUSTER_BUMP_ELOST);
		return;
	}
	if (op->phase == OPERATION_FAILED) {
		operation_deny(bump, packet, op->status);
		return;
	}
	at = state_find(op, STATE_SAY, packet);
	if (at < op->program.nr && at >= op->next)
		op->wanted |= 1ull << at;
	if (at < op->program.nr && at < op->next) {
		bump->counters.repaired++;
		operation_say(bump, op, at);
	}
}

static void transit(struct muster_bump *bump, uint32_t port, struct muster_bump_frame *frame,
		    uint16_t to)
{
	uint8_t out = to < bump->config.nr_elements ? bump->routes[to] : MUSTER_BUMP_NO_PORT;

	if (out == MUSTER_BUMP_NO_PORT || out == MUSTER_BUMP_HOST_PORT || out == port ||
	    !frame_age(frame)) {
		bump->counters.dropped_bad++;
		return;
	}
	bump->counters.transit++;
	queues_send(bump, 1u << out, frame);
}

static void neighbour_take(struct muster_bump *bump, uint32_t port,
			   struct muster_bump_frame *frame, const struct packet *packet)
{
	uint16_t to = le16toh(packet->header.to);

	if (to != bump->config.element && to != MUSTER_BUMP_TO_NEIGHBOUR)
		transit(bump, port, frame, to);
	else if (!step_valid(bump, packet))
		bump->counters.dropped_bad++;
	else if (packet->header.message == MUSTER_BUMP_DATA)
		data_take(bump, packet);
	else
		want_take(bump, packet);
}

/* ---- what leaves ---- */

void cfe_answer(struct muster_bump *bump, uint8_t message, const struct origin *origin,
		const struct muster_bump_header *header, const struct buffer *data)
{
	frame_to_host(bump, cipe_pass(message, origin->host_port, data ? data->bytes : 0), origin,
		      header, data);
}

void cfe_send(struct muster_bump *bump, uint8_t message, uint32_t ports,
	      const struct muster_bump_header *header, const struct buffer *data)
{
	frame_to_bumps(bump, cipe_pass(message, bump->config.udp_port, data ? data->bytes : 0),
		       ports, header, data);
}

void cfe_take(struct muster_bump *bump, uint32_t port, struct muster_bump_frame *frame)
{
	struct packet packet = { .port = port };
	enum frame_kind kind = frame_read(bump, frame, &packet);
	uint8_t message = packet.header.message;
	bool host = port == MUSTER_BUMP_HOST_PORT;

	if (kind == FRAME_OTHER) {
		if (!host || !frame_answer_arp(bump, frame))
			queues_pass(bump, port, frame);
	} else if (kind == FRAME_BAD) {
		bump->counters.dropped_bad++;
	} else if (!key_find(bump, &packet)) {
		bump->counters.dropped_key++;
	} else if (host && (message == MUSTER_BUMP_REQUEST || message == MUSTER_BUMP_ABORT)) {
		host_take(bump, &packet);
	} else if (!host && (message == MUSTER_BUMP_DATA || message == MUSTER_BUMP_WANT)) {
		neighbour_take(bump, port, frame, &packet);
	} else {
		bump->counters.dropped_bad++;
	}
}
