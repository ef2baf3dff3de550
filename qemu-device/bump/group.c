// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Groups and their operations. A group remembers the last MUSTER_BUMP_KEPT
 * operations, by id: those that run, and of those that are over what was answered
 * and what was sent, because others may not have received it yet. A key has a
 * number of groups of its own, so that no job takes another one's.
 */
#include "internal.h"

#include <stddef.h>

/* Who waits repeats what it has asked; whose ranks have said nothing for so long has none. */
enum { SILENT_US = 10000000 };

struct buffer *buffer_new(struct muster_bump *bump, const void *data, uint32_t bytes)
{
	struct buffer *buffer = bump->world.alloc(bump->opaque, sizeof(*buffer) + bytes);

	if (!buffer) {
		bump->counters.dropped_memory++;
		return NULL;
	}
	buffer->refs = 1;
	buffer->bytes = bytes;
	if (data && bytes)
		memcpy(buffer->data, data, bytes);
	return buffer;
}

struct buffer *buffer_get(struct buffer *buffer)
{
	if (buffer)
		buffer->refs++;
	return buffer;
}

void buffer_put(struct muster_bump *bump, struct buffer *buffer)
{
	if (buffer && --buffer->refs == 0)
		bump->world.free(bump->opaque, buffer);
}

/* ---- groups ---- */

static struct group **group_table(struct muster_bump *bump, const struct packet *packet)
{
	return bump->groups[packet->key];
}

struct group *group_known(struct muster_bump *bump, const struct packet *packet)
{
	struct group **table = group_table(bump, packet);

	for (uint32_t i = 0; i < MUSTER_BUMP_GROUPS_MAX; i++)
		if (table[i] && table[i]->number == le32toh(packet->header.group)) {
			table[i]->used = ++bump->clock;
			return table[i];
		}
	return NULL;
}

/* Nothing is lost with a group whose ranks live: others send again what they have sent. */
static bool group_idle(const struct muster_bump *bump, const struct group *group)
{
	if (bump->world.now_us(bump->opaque) - group->asked_us > SILENT_US)
		return true;
	for (uint32_t i = 0; i < MUSTER_BUMP_KEPT; i++)
		if (group->kept[i].phase == OPERATION_GATHERING ||
		    group->kept[i].phase == OPERATION_RUNNING)
			return false;
	return true;
}

static void operation_release(struct muster_bump *bump, struct operation *op)
{
	if (op->phase == OPERATION_RUNNING)
		repair_forget(op);
	if (op->phase == OPERATION_GATHERING || op->phase == OPERATION_RUNNING)
		bump->counters.live--;
	for (uint32_t i = 0; i < MUSTER_BUMP_LOCAL_MAX; i++) {
		buffer_put(bump, op->local[i].own);
		buffer_put(bump, op->local[i].result);
	}
	for (uint32_t i = 0; i < op->program.nr; i++) {
		buffer_put(bump, op->heard[i]);
		buffer_put(bump, op->said[i]);
	}
	for (uint32_t i = 0; i < NR_REGISTERS; i++)
		buffer_put(bump, op->registers[i]);
	memset(op, 0, sizeof(*op));
}

void group_destroy(struct muster_bump *bump, struct group *group)
{
	for (uint32_t i = 0; i < MUSTER_BUMP_KEPT; i++)
		operation_release(bump, &group->kept[i]);
	bump->world.free(bump->opaque, group);
	bump->counters.groups--;
}

/* A free place, or that of the idle group which was used the longest ago. */
static struct group **group_place(struct muster_bump *bump, struct group **table)
{
	struct group **oldest = NULL;

	for (uint32_t i = 0; i < MUSTER_BUMP_GROUPS_MAX; i++) {
		if (!table[i])
			return &table[i];
		if ((!oldest || table[i]->used < (*oldest)->used) && group_idle(bump, table[i]))
			oldest = &table[i];
	}
	if (oldest) {
		group_destroy(bump, *oldest);
		*oldest = NULL;
	}
	return oldest;
}

static void group_describe(struct group *group, const struct muster_bump_header *header)
{
	group->number = le32toh(header->group);
	group->hosts = le16toh(header->hosts);
	group->first = le16toh(header->first);
	group->stride = le16toh(header->stride);
	group->ranks = le16toh(header->ranks);
}

static uint8_t group_make(struct muster_bump *bump, const struct packet *packet,
			  struct group **made)
{
	struct group **free_place = group_place(bump, group_table(bump, packet));
	struct group *group;

	if (!free_place)
		return MUSTER_BUMP_EROOM;
	group = bump->world.alloc(bump->opaque, sizeof(*group));
	if (!group) {
		bump->counters.dropped_memory++;
		return STATUS_NO_MEMORY;
	}
	group_describe(group, &packet->header);
	group->asked_us = bump->world.now_us(bump->opaque);
	group->key = packet->key;
	group->self = (uint16_t)((bump->config.element - group->first) / group->stride);
	group->used = ++bump->clock;
	*free_place = *made = group;
	bump->counters.groups++;
	return MUSTER_BUMP_OK;
}

/* EMISMATCH: there is a group of this number, but described otherwise. */
static uint8_t group_find(struct muster_bump *bump, const struct packet *packet,
			  struct group **found)
{
	struct group *group = group_known(bump, packet);
	struct group asked;

	if (!group)
		return group_make(bump, packet, found);
	*found = group;
	group_describe(&asked, &packet->header);
	return group->hosts == asked.hosts && group->first == asked.first &&
	       group->stride == asked.stride && group->ranks == asked.ranks ?
	       MUSTER_BUMP_OK : MUSTER_BUMP_EMISMATCH;
}

/* ---- operations ---- */

static void operation_make(struct muster_bump *bump, struct group *group,
			   const struct packet *packet, struct operation *op)
{
	const struct muster_bump_header *header = &packet->header;

	op->phase = OPERATION_GATHERING;
	op->id = le32toh(header->id);
	op->group = group;
	op->common = *header;
	op->bytes = le16toh(header->count) * (uint32_t)muster_dtype_size(header->type);
	program_make(&op->program, header->operation, header->algorithm, group->hosts, group->self);
	bump->counters.live++;
}

/* Operation, algorithm, type, and so on to the number of ranks. */
static bool common_equal(const struct muster_bump_header *a, const struct muster_bump_header *b)
{
	size_t begin = offsetof(struct muster_bump_header, operation);

	return !memcmp(&a->operation, &b->operation,
		       offsetof(struct muster_bump_header, rank) - begin);
}

/* A new one takes the place of what is over. */
static uint8_t operation_place(struct muster_bump *bump, struct group *group,
			       const struct packet *packet, struct operation **found)
{
	uint32_t id = le32toh(packet->header.id);
	struct operation *op = &group->kept[id % MUSTER_BUMP_KEPT];

	if (op->phase != OPERATION_FREE && op->id == id) {
		*found = op;
		return common_equal(&op->common, &packet->header) ? MUSTER_BUMP_OK :
								    MUSTER_BUMP_EMISMATCH;
	}
	if (op->phase == OPERATION_GATHERING || op->phase == OPERATION_RUNNING ||
	    (op->phase != OPERATION_FREE && (int32_t)(id - op->id) < 0))
		return MUSTER_BUMP_EWINDOW;
	operation_release(bump, op);
	operation_make(bump, group, packet, op);
	*found = op;
	return MUSTER_BUMP_OK;
}

/* Also where the group does not match there is an operation: it has to fail at all members. */
uint8_t operation_find(struct muster_bump *bump, const struct packet *packet,
		       struct operation **found)
{
	struct group *group = NULL;
	uint8_t status = group_find(bump, packet, &group), placed;

	if (!group)
		return status;
	if (packet->port == MUSTER_BUMP_HOST_PORT)
		group->asked_us = bump->world.now_us(bump->opaque);
	placed = operation_place(bump, group, packet, found);
	return placed ? placed : status;
}
