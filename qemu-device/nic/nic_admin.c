// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The admin queue: the driver's commands, but those of completion queues (nic_cq.c), queue pairs,
 * what they share, and counters. Each is copied from guest memory
 * once, decoded and checked completely, then acted on; a command that is
 * refused has changed nothing, and its reply says why and at which byte.
 */
#include "nic_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMMANDS_AT_ONCE = 16,
	MEMBERS_AT_ONCE = 64,	/* read by one access to guest memory */
	MEMBERS_A_STEP = 256,	/* read or added in one step; the others have their turn between */
};

/* Answer of a command: status, and for BAD_PARAMETER the offset of the field. */
struct verdict {
	uint8_t status;
	uint32_t detail;
};

#define OK		((struct verdict){ MUSTER_ADMIN_OK, 0 })
#define REFUSE(why)	((struct verdict){ MUSTER_ADMIN_##why, 0 })
#define BAD(field)	((struct verdict){ MUSTER_ADMIN_BAD_PARAMETER, \
					   offsetof(struct muster_admin_command, field) })

static struct verdict verdict_of(int err)
{
	switch (err) {
	case 0:
		return OK;
	case -EINVAL:
		return REFUSE(BAD_PARAMETER);
	case -ENOENT:
		return REFUSE(NO_OBJECT);
	case -EEXIST:
	case -EBUSY:
		return REFUSE(BUSY);
	case -EIO:
		return REFUSE(DMA);
	default:
		return REFUSE(NO_ROOM);
	}
}

static bool power_of_two(uint32_t n, uint32_t max)
{
	return n && n <= max && !(n & (n - 1));
}

/* ---- virtual ports --------------------------------------------------------- */

static struct verdict vp_create(struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	struct nic_vp vp = {
		.pd = le32toh(cmd->vp.pd),
		.cq = le32toh(cmd->vp.cq),
		.dq_base = le64toh(cmd->vp.dq_base),
		.rq_base = le64toh(cmd->vp.rq_base),
		.status_base = le64toh(cmd->vp.status_base),
		.dq_entries = le32toh(cmd->vp.dq_entries),
		.rq_entries = le32toh(cmd->vp.rq_entries),
		.rq_part_shift = cmd->vp.rq_part_shift,
	};
	uint32_t id = le32toh(cmd->vp.id);
	int err;

	if (vp.dq_base % sizeof(struct muster_desc))
		return BAD(vp.dq_base);
	if (vp.rq_base % sizeof(uint64_t))
		return BAD(vp.rq_base);
	if (vp.status_base % sizeof(struct muster_vp_status))
		return BAD(vp.status_base);
	if (!power_of_two(vp.dq_entries, MUSTER_DQ_ENTRIES_MAX))
		return BAD(vp.dq_entries);
	if (!power_of_two(vp.rq_entries, MUSTER_RQ_ENTRIES_MAX))
		return BAD(vp.rq_entries);
	if (id >= MUSTER_VPS_MAX)
		return BAD(vp.id);
	if (vp.rq_part_shift && (vp.rq_part_shift < 12 || vp.rq_part_shift > 30))
		return BAD(vp.rq_part_shift);
	if (!nic_command_ends(cmd, offsetof(struct muster_admin_vp, reserved)))
		return BAD(vp.reserved);
	if (vp.cq >= MUSTER_CQS_MAX || !nic->cqs[vp.cq] || nic->cqs[vp.cq]->record)
		return REFUSE(NO_OBJECT);
	if (nic->vps[id])
		return REFUSE(BUSY);
	vp.id = id;
	err = nic_vp_create(nic, &vp);
	return err == -EINVAL ? BAD(vp.rq_base) : verdict_of(err);
}

static struct verdict vp_destroy(struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	uint32_t id = le32toh(cmd->id.id);

	if (!nic_command_ends(cmd, 4))
		return BAD(id.reserved);
	if (id >= MUSTER_VPS_MAX || !nic->vps[id])
		return REFUSE(NO_OBJECT);
	nic_vp_destroy(nic, nic->vps[id]);
	return OK;
}

/* ---- memory regions -------------------------------------------------------- */

static struct verdict mr_check(const struct muster_admin_command *cmd, const struct nic_mr *mr,
			       uint32_t id)
{
	static const uint8_t zero[sizeof(cmd->mr.reserved)];
	uint64_t covered;

	if (!mr->length || mr->iova + mr->length < mr->iova)
		return BAD(mr.length);
	if (mr->page_shift < 12 || mr->page_shift > 30)
		return BAD(mr.page_shift);
	if (mr->first_offset >> mr->page_shift)
		return BAD(mr.first_offset);
	if (!mr->nr_pages || mr->nr_pages > MUSTER_MR_PAGES_MAX)
		return BAD(mr.nr_pages);
	/* Pages as many as are needed, neither fewer nor more; no term can overflow. */
	covered = (uint64_t)mr->nr_pages << mr->page_shift;
	if (mr->length > covered || mr->first_offset + mr->length > covered ||
	    (covered - (mr->first_offset + mr->length)) >> mr->page_shift)
		return BAD(mr.nr_pages);
	if (le64toh(cmd->mr.pages) % sizeof(uint64_t))
		return BAD(mr.pages);
	if (id == 0 || id > MUSTER_MRS_MAX)
		return BAD(mr.id);
	if (!mr->access || mr->access & ~MUSTER_MR_ACCESS)
		return BAD(mr.access);
	if (cmd->mr.in_parts > 1)
		return BAD(mr.in_parts);
	if (memcmp(cmd->mr.reserved, zero, sizeof(zero)) || !nic_command_ends(cmd, sizeof(cmd->mr)))
		return BAD(mr.reserved);
	return OK;
}

/* As far as one step goes: nic->registering stays if there is more to do. */
static struct verdict mr_register_on(struct muster_nic *nic)
{
	struct nic_mr *mr = nic->registering;
	int err = nic_mr_read_on(nic, mr);

	if (!err && mr->nr_read < mr->nr_pages)
		return OK;
	nic->registering = NULL;
	if (err)
		nic_mr_free(nic, mr);
	else
		nic->mrs[le32toh(nic->command.mr.id)] = mr;
	return err == -EINVAL ? BAD(mr.pages) : verdict_of(err);
}

static struct verdict mr_register(struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	struct nic_mr config = {
		.iova = le64toh(cmd->mr.iova),
		.length = le64toh(cmd->mr.length),
		.pd = le32toh(cmd->mr.pd),
		.first_offset = le32toh(cmd->mr.first_offset),
		.nr_pages = le32toh(cmd->mr.nr_pages),
		.page_shift = cmd->mr.page_shift,
		.access = cmd->mr.access,
		.list = le64toh(cmd->mr.pages),
		.in_parts = cmd->mr.in_parts,
	};
	uint32_t id = le32toh(cmd->mr.id);
	struct verdict verdict = mr_check(cmd, &config, id);
	int err;

	if (verdict.status)
		return verdict;
	if (nic->mrs[id])
		return REFUSE(BUSY);
	err = nic_mr_begin(nic, &config, &nic->registering);
	return err ? verdict_of(err) : mr_register_on(nic);
}

static struct verdict mr_deregister(struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	uint32_t id = le32toh(cmd->id.id);

	if (!nic_command_ends(cmd, 4))
		return BAD(id.reserved);
	if (id > MUSTER_MRS_MAX || !nic->mrs[id])
		return REFUSE(NO_OBJECT);
	nic_mr_destroy(nic, id);
	return OK;
}

/* ---- contexts -------------------------------------------------------------- */

static int members_read(struct muster_nic *nic, uint64_t addr, uint32_t nr,
			struct muster_member *members)
{
	struct muster_admin_member from[MEMBERS_AT_ONCE];

	if (nic_dma_read(nic, addr, from, nr * sizeof(from[0])))
		return -EIO;
	for (uint32_t i = 0; i < nr; i++) {
		if (from[i].reserved || from[i].reserved2)
			return -EINVAL;
		members[i] = (struct muster_member){
			.node = le32toh(from[i].node),
			.vp = le16toh(from[i].vp),
			.incarnation = le32toh(from[i].incarnation),
		};
	}
	return 0;
}

static int opening_read(struct muster_nic *nic, struct nic_opening *opening, uint32_t nr)
{
	struct muster_member *members = &opening->members[opening->read];
	uint64_t addr = opening->addr + opening->read * sizeof(struct muster_admin_member);
	int err = members_read(nic, addr, nr, members);

	if (err)
		return err;
	opening->read += nr;
	return 0;
}

static int opening_add(struct muster_nic *nic, struct nic_opening *opening, uint32_t nr)
{
	const struct muster_context_config *config = &opening->config;
	const struct muster_member *members = &opening->members[opening->added];
	struct muster_engine *engine = nic_engine_of(nic, config->vp);
	int err = 0;

	if (!opening->begun)
		err = muster_engine_context_begin(engine, config);
	if (err)
		return err;
	opening->begun = true;
	err = muster_engine_context_add(engine, config->vp, config->job, config->context, members, nr);
	for (uint32_t i = 0; i < nr && !err; i++)	/* one that is gone already fails it now */
		if (!nic_watch(nic, members[i].node, members[i].incarnation) &&
		    opening->lost == MUSTER_CULPRIT_NONE)
			opening->lost = opening->added + i;
	opening->added += nr;
	return err;
}

static void opening_end(struct muster_nic *nic, const struct nic_opening *opening)
{
	const struct muster_context_config *config = &opening->config;

	if (opening->lost != MUSTER_CULPRIT_NONE)
		muster_engine_abort(nic_engine_of(nic, config->vp), config->vp, config->job,
				    config->context, MUSTER_STATUS_PEER_LOST, opening->lost);
}

/* As far as one step goes: nic->opening stays if there is more to do. */
static struct verdict context_open_on(struct muster_nic *nic)
{
	struct nic_opening *opening = nic->opening;
	uint32_t nr = opening->config.nr_members, left = MEMBERS_A_STEP, some;
	int err = 0;

	for (; left && !err && opening->added < nr; left -= some) {
		bool reads = opening->read < nr;

		some = nr - (reads ? opening->read : opening->added);
		some = some < MEMBERS_AT_ONCE ? some : MEMBERS_AT_ONCE;
		some = some < left ? some : left;
		err = (reads ? opening_read : opening_add)(nic, opening, some);
	}
	if (!err && opening->added < nr)
		return OK;
	if (!err)
		opening_end(nic, opening);
	nic_admin_drop(nic);
	return verdict_of(err);
}

static struct verdict context_open(struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	const struct muster_admin_context *c = &cmd->context;
	uint32_t vp = le16toh(c->vp), nr = le32toh(c->nr_members), self = le32toh(c->self);
	struct nic_opening *opening;

	if (!nr || nr > MUSTER_MEMBERS_MAX)
		return BAD(context.nr_members);
	if (self >= nr)
		return BAD(context.self);
	if (c->status || c->culprit)
		return BAD(context.status);
	if (!nic_command_ends(cmd, sizeof(*c)))
		return BAD(raw[sizeof(*c)]);
	if (vp >= MUSTER_VPS_MAX || !nic->vps[vp])
		return REFUSE(NO_OBJECT);
	opening = malloc(sizeof(*opening) + nr * sizeof(opening->members[0]));
	if (!opening)
		return REFUSE(NO_ROOM);
	*opening = (struct nic_opening){
		.config = {
			.job = c->job, .context = le32toh(c->context), .life = le32toh(c->life), .vp = vp,
			.job_key = le64toh(c->job_key), .self = self, .nr_members = nr,
		},
		.addr = le64toh(c->members),
		.lost = MUSTER_CULPRIT_NONE,
	};
	nic->opening = opening;
	return context_open_on(nic);
}

static bool context_exists(const struct muster_nic *nic, uint32_t vp, uint8_t job, uint32_t context)
{
	struct muster_context_state state;

	return vp < MUSTER_VPS_MAX && nic->vps[vp] &&
	       !muster_engine_context_query(nic_engine_of(nic, vp), vp, job, context, &state);
}

/* CLOSE and ABORT name a context by VP, job and id, and nothing else. */
static struct verdict context_find(struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	const struct muster_admin_context *c = &cmd->context;

	if (c->job_key || c->members || c->nr_members || c->self || c->life)
		return BAD(context);
	if (!nic_command_ends(cmd, sizeof(*c)))
		return BAD(raw[sizeof(*c)]);
	return context_exists(nic, le16toh(c->vp), c->job, le32toh(c->context)) ? OK : REFUSE(NO_OBJECT);
}

static struct verdict context_close(struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	const struct muster_admin_context *c = &cmd->context;
	struct verdict verdict = context_find(nic, cmd);
	uint16_t vp = le16toh(c->vp);

	if (verdict.status)
		return verdict;
	if (c->status || c->culprit)
		return BAD(context.status);
	muster_engine_context_close(nic_engine_of(nic, vp), vp, c->job, le32toh(c->context));
	return OK;
}

static struct verdict context_abort(struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	const struct muster_admin_context *c = &cmd->context;
	struct verdict verdict = context_find(nic, cmd);
	uint16_t vp = le16toh(c->vp);

	if (verdict.status)
		return verdict;
	if (c->status == MUSTER_STATUS_OK || c->status > MUSTER_STATUS_FLUSHED)
		return BAD(context.status);
	return verdict_of(muster_engine_abort(nic_engine_of(nic, vp), vp, c->job, le32toh(c->context),
					      c->status, le32toh(c->culprit)));
}

/* ---- reduction trees ------------------------------------------------------- */

static struct verdict tree_check(const struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	const struct muster_admin_tree *t = &cmd->tree;
	uint32_t node = le32toh(t->node), payload_max = le16toh(t->payload_max);

	if (node < MUSTER_NODE_AGGREGATION || node >= MUSTER_NODES_MAX)
		return BAD(tree.node);
	if (!t->incarnation)
		return BAD(tree.incarnation);
	if (!t->group)
		return BAD(tree.group);
	if (!payload_max || payload_max > MUSTER_MTU)
		return BAD(tree.payload_max);
	if (t->reserved || !nic_command_ends(cmd, sizeof(*t)))
		return BAD(tree.reserved);
	return context_exists(nic, le16toh(t->vp), t->job, le32toh(t->context)) ? OK : REFUSE(NO_OBJECT);
}

/* As with members: an aggregation node that is gone already fails the context now. */
static struct verdict tree_watch(struct muster_nic *nic, const struct muster_admin_tree *t)
{
	uint16_t vp = le16toh(t->vp);

	if (!nic_watch(nic, le32toh(t->node), le32toh(t->incarnation)))
		muster_engine_abort(nic_engine_of(nic, vp), vp, t->job, le32toh(t->context),
				    MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE);
	return OK;
}

static struct verdict tree_command(struct muster_nic *nic, const struct muster_admin_command *cmd,
				   int (*command)(struct muster_engine *engine, uint16_t vp, uint8_t job,
						  uint32_t context, const struct muster_tree_config *config))
{
	const struct muster_admin_tree *t = &cmd->tree;
	const struct muster_tree_config config = {
		.node = le32toh(t->node),
		.incarnation = le32toh(t->incarnation),
		.tree = le16toh(t->tree),
		.group = le32toh(t->group),
		.key = le64toh(t->key),
		.payload_max = le16toh(t->payload_max),
	};
	struct verdict verdict = tree_check(nic, cmd);
	uint16_t vp = le16toh(t->vp);

	if (!verdict.status)
		verdict = verdict_of(command(nic_engine_of(nic, vp), vp, t->job, le32toh(t->context),
					     &config));
	return verdict.status ? verdict : tree_watch(nic, t);
}

/* ---- the queue ------------------------------------------------------------- */

static struct verdict elsewhere_run(struct muster_nic *nic, const struct muster_admin_command *cmd,
				    int (*command)(struct muster_nic *nic,
						   const struct muster_admin_command *cmd,
						   uint32_t *detail))
{
	uint32_t detail = 0;
	struct verdict verdict = verdict_of(command(nic, cmd, &detail));

	verdict.detail = detail;
	return verdict;
}

static struct verdict command_run(struct muster_nic *nic, const struct muster_admin_command *cmd)
{
	if (cmd->reserved || cmd->reserved2)
		return BAD(reserved);
	switch (cmd->opcode) {
	case MUSTER_ADMIN_NOP:
		return nic_command_ends(cmd, 0) ? OK : BAD(raw);
	case MUSTER_ADMIN_CQ_CREATE:
	case MUSTER_ADMIN_CQ_DESTROY:
	case MUSTER_ADMIN_CQ_MODERATE:
	case MUSTER_ADMIN_CQ_RESIZE:
		return elsewhere_run(nic, cmd, nic_cq_command);
	case MUSTER_ADMIN_VP_CREATE:
		return vp_create(nic, cmd);
	case MUSTER_ADMIN_VP_DESTROY:
		return vp_destroy(nic, cmd);
	case MUSTER_ADMIN_MR_REGISTER:
		return mr_register(nic, cmd);
	case MUSTER_ADMIN_MR_DEREGISTER:
		return mr_deregister(nic, cmd);
	case MUSTER_ADMIN_CONTEXT_OPEN:
		return context_open(nic, cmd);
	case MUSTER_ADMIN_CONTEXT_CLOSE:
		return context_close(nic, cmd);
	case MUSTER_ADMIN_CONTEXT_ABORT:
		return context_abort(nic, cmd);
	case MUSTER_ADMIN_TREE_JOIN:
		return tree_command(nic, cmd, muster_engine_tree_join);
	case MUSTER_ADMIN_TREE_MOVE:
		return tree_command(nic, cmd, muster_engine_tree_move);
	case MUSTER_ADMIN_COUNTERS:
		return elsewhere_run(nic, cmd, nic_counters_command);
	case MUSTER_ADMIN_QP_CREATE ... MUSTER_ADMIN_QP_DESTROY:
	case MUSTER_ADMIN_QP_COUNT:
		return elsewhere_run(nic, cmd, nic_qp_command);
	case MUSTER_ADMIN_SRQ_CREATE ... MUSTER_ADMIN_SRQ_DESTROY:
		return elsewhere_run(nic, cmd, nic_srq_command);
	default:
		return REFUSE(BAD_OPCODE);
	}
}

static int reply_write(struct muster_nic *nic, struct verdict verdict)
{
	uint32_t at = nic->admin_head & (nic->admin_entries - 1);
	struct muster_admin_reply reply = {
		.tag = nic->command.tag,
		.opcode = nic->command.opcode,
		.status = verdict.status,
		.detail = htole32(verdict.detail),
		.valid = htole32(!(nic->admin_head & nic->admin_entries)),
	};

	nic->counts.admin_commands++;
	nic->admin_head++;
	nic->vectors |= 1;
	return nic_entry_write(nic, nic->admin_reply + at * sizeof(reply), &reply, sizeof(reply));
}

static bool unfinished(const struct muster_nic *nic)
{
	return nic->opening || nic->registering;
}

/*
 * Go on with the command that runs, or take the next, and reply to it unless there is
 * more to do: 0, or -EIO when the queue itself is unusable.
 */
static int command_advance(struct muster_nic *nic)
{
	uint32_t at = nic->admin_head & (nic->admin_entries - 1);
	struct verdict verdict;

	if (nic->opening) {
		verdict = context_open_on(nic);
	} else if (nic->registering) {
		verdict = mr_register_on(nic);
	} else {
		if (nic_dma_read(nic, nic->admin_base + at * sizeof(nic->command), &nic->command,
				 sizeof(nic->command)))
			return -EIO;
		verdict = command_run(nic, &nic->command);
	}
	return unfinished(nic) ? 0 : reply_write(nic, verdict);
}

bool nic_admin_run(struct muster_nic *nic)
{
	uint32_t tail = __atomic_load_n(&nic->regs[MUSTER_REG_ADMIN_TAIL / 4], __ATOMIC_ACQUIRE);
	int i = 0;

	if (tail == nic->admin_head)
		return false;
	if (tail - nic->admin_head > nic->admin_entries) {
		nic_fatal(nic);
		return true;
	}
	do {
		if (command_advance(nic)) {
			nic_fatal(nic);
			return true;
		}
	} while (++i < COMMANDS_AT_ONCE && nic->admin_head != tail && !unfinished(nic));
	return true;
}

void nic_admin_drop(struct muster_nic *nic)
{
	if (nic->registering)
		nic_mr_free(nic, nic->registering);
	nic->registering = NULL;
	free(nic->opening);
	nic->opening = NULL;
}
