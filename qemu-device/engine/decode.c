// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From descriptors and packets to checked, native programs. Everything comes
 * from outside: it is read once, checked completely, and nothing has changed
 * when it is refused. What a field means is told in Documentation/sequence.md.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

#include "arith.h"

static const struct muster_desc_range no_range;

/* ---- descriptors ---- */

static bool fields_valid(const struct context *ctx, const struct muster_desc *desc)
{
	return (desc->kind == MUSTER_DESC_MP || desc->kind == MUSTER_DESC_RDMA) &&
	       !(desc->flags & ~MUSTER_DESC_FLAGS) && !(desc->dest & MUSTER_DEST_RESERVED) &&
	       !desc->signature.reserved && desc->src_vp == ctx->vp && desc->job == ctx->job &&
	       desc->context == ctx->id && desc->signature.type <= MUSTER_DTYPE_LAST &&
	       desc->signature.op <= MUSTER_REDOP_LAST && desc->cp_count <= MUSTER_SOURCES_MAX &&
	       desc->inline_len <= MUSTER_INLINE_MAX;
}

/* CH on the first, CT on the last, C on all; and the same operation throughout. */
static bool belongs(const struct muster_desc *desc, uint32_t i, uint32_t nr,
		    const struct sequence *seq)
{
	return (desc->flags & MUSTER_DESC_C) && !(desc->flags & MUSTER_DESC_CH) == (i != 0) &&
	       (!i || !(desc->flags & MUSTER_DESC_KEEP)) &&
	       !(desc->flags & MUSTER_DESC_CT) == (i != nr - 1) &&
	       desc->stage == seq->stage &&
	       muster_signatures_equal(&desc->signature, &seq->signature);
}

static bool range_valid(uint32_t key, uint64_t addr, uint64_t length)
{
	return !key || addr + length >= addr;
}

/* Equal ranges are worked on in place; other overlaps have no defined result. */
static bool ranges_clash(const struct muster_desc *desc)
{
	const struct muster_desc_range *range = &desc->range;

	return range->load_key && range->load_key == desc->store_key &&
	       range->load_addr != desc->store_addr &&
	       range->load_addr < desc->store_addr + desc->length &&
	       desc->store_addr < range->load_addr + desc->length;
}

static bool reduce_valid(const struct muster_desc *desc, uint32_t pulse_len)
{
	uint32_t size = muster_dtype_size(desc->signature.type);

	if (!(desc->flags & MUSTER_DESC_REDUCE))
		return true;
	return muster_arith_supported(desc->signature.type, desc->signature.op) && desc->length % size == 0 &&
	       pulse_len % size == 0;
}

/* The load range and nothing else. */
static bool range_loads(struct muster_desc_range range, uint64_t length)
{
	bool valid = range_valid(range.load_key, range.load_addr, length) &&
		     (range.load_key || !range.load_addr);

	range.load_key = 0;
	range.load_addr = 0;
	return valid && !memcmp(&range, &no_range, sizeof(no_range));
}

/* Awaits nothing, but combines: its operand has this place in the order. */
static bool has_own_place(const struct muster_desc *desc)
{
	return desc->flags & MUSTER_DESC_REDUCE && !desc->cp_count;
}

/* It would be combined with itself, which no operand is. */
static bool is_own_operand(const struct muster_desc *desc)
{
	return has_own_place(desc) && desc->range.load_key && desc->range.load_key == desc->store_key &&
	       desc->range.load_addr == desc->store_addr;
}

/* What it sends, and nobody combines. */
static bool sends_address(const struct muster_desc *desc)
{
	const uint16_t kinds = MUSTER_DESC_CP | MUSTER_DESC_REDUCE | MUSTER_DESC_SWAP_REMOTE_DATA;

	return !(desc->flags & MUSTER_DESC_SWAP_REMOTE_ADDR) ||
	       ((desc->flags & kinds) == MUSTER_DESC_CP &&
		desc->length == sizeof(struct muster_reference));
}

/* left: the bytes that the descriptor before left inline, or -1. */
static bool inline_valid(const struct muster_desc *desc, const struct sequence *seq, int left)
{
	uint32_t load_key = desc->inline_len ? 0 : desc->range.load_key;

	if (desc->length > MUSTER_MP_MAX || seq->pulse_count != 1 || !sends_address(desc) ||
	    (!desc->inline_len && !range_loads(desc->range, desc->length)) ||
	    (desc->inline_len && seq->kept))
		return false;
	if (desc->flags & MUSTER_DESC_SWAP_LOCAL_DATA)
		return desc->length == (uint64_t)left &&
		       (has_own_place(desc) ? desc->inline_len == desc->length || load_key :
					      !desc->inline_len && !load_key);
	return desc->inline_len == desc->length ||
	       (!desc->inline_len && (desc->cp_count || load_key));
}

/* A whole sequence that does nothing. */
static bool numbers_valid(const struct muster_desc *desc)
{
	const uint16_t flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT;

	return desc->range.numbers <= MUSTER_NUMBERS_MAX && desc->range.pulse_count == 1 &&
	       (desc->flags & ~MUSTER_DESC_COLL_END) == flags && !desc->cp_count && !desc->length &&
	       !desc->range.load_key && !desc->store_key;
}

/* What it loads, to a member's memory; when a packet has come, which may say where, if it awaits one. */
static bool write_valid(const struct muster_desc *desc, const struct sequence *seq)
{
	const struct muster_desc_range *range = &desc->range;
	const uint16_t no = MUSTER_DESC_REDUCE | MUSTER_DESC_FORWARD | MUSTER_DESC_SWAP_REMOTE_DATA;

	if (!range->remote_key)
		return !range->remote_addr;
	return desc->flags & MUSTER_DESC_CP && !(desc->flags & no) && desc->cp_count <= 1 &&
	       !desc->store_key && seq->pulse_count == 1 && (range->load_key || !desc->length) &&
	       range_valid(range->remote_key, range->remote_addr, desc->length);
}

static bool rdma_valid(const struct muster_desc *desc, const struct sequence *seq, uint32_t i)
{
	const struct muster_desc_range *range = &desc->range;
	bool needs_load = (desc->flags & MUSTER_DESC_CP) || desc->store_key;

	if (!write_valid(desc, seq) || desc->inline_len ||
	    (desc->flags & MUSTER_DESC_SWAP_REMOTE_ADDR) ||
	    memcmp(range->reserved, no_range.reserved, sizeof(range->reserved)) ||
	    (desc->flags & MUSTER_DESC_SWAP_LOCAL_DATA) ||
	    !range_valid(range->load_key, range->load_addr, desc->length) || ranges_clash(desc))
		return false;
	if (is_own_operand(desc))
		return false;
	if (range->numbers && !numbers_valid(desc))
		return false;
	if (i && (range->pulse_len != seq->pulse_len || range->pulses_live ||
		  (range->pulse_count && range->pulse_count != seq->pulse_count)))
		return false;
	if (desc->length > (uint64_t)seq->pulse_len * seq->pulse_count)
		return false;
	if (!desc->length)
		return true;
	if (range->remote_key)
		return true;
	return desc->cp_count ? desc->store_key != 0 : !needs_load || range->load_key;
}

/* What it awaits goes on to a member; directly behind it may be others that send the same to more. */
static bool forward_valid(const struct muster_desc *desc, const struct sequence *seq, uint32_t i)
{
	const struct step *before = i ? &seq->steps[i - 1] : NULL;

	if (!(desc->flags & MUSTER_DESC_FORWARD))
		return true;
	if (desc->kind != MUSTER_DESC_RDMA || !(desc->flags & MUSTER_DESC_CP) ||
	    desc->flags & MUSTER_DESC_SWAP_LOCAL_VP)
		return false;
	if (desc->cp_count)
		return true;
	return before && before->flags & MUSTER_DESC_FORWARD && !desc->store_key &&
	       desc->length == before->length &&
	       desc->range.load_key == (before->store_key ? before->store_key : before->load_key) &&
	       desc->range.load_addr == (before->store_key ? before->store_addr : before->load_addr);
}

static int decode_step(const struct context *ctx, const struct muster_desc *desc,
		       const struct sequence *seq, struct step *step)
{
	step->flags = desc->flags;
	step->kind = desc->kind;
	step->type = desc->signature.type;
	step->op = desc->signature.op;
	step->cp_count = desc->cp_count;
	step->slot_first = seq->nr_slots;
	step->slot_dest = MUSTER_FIELD_GET(MUSTER_DEST_SEQ, desc->dest);
	step->length = desc->length;
	step->load_addr = desc->inline_len ? 0 : desc->range.load_addr;
	step->load_key = desc->inline_len ? 0 : desc->range.load_key;
	step->store_addr = desc->store_addr;
	step->store_key = desc->store_key;
	step->writes = desc->kind == MUSTER_DESC_RDMA && desc->range.remote_key;
	step->remote_addr = step->writes ? desc->range.remote_addr : 0;
	step->remote_key = step->writes ? desc->range.remote_key : 0;
	step->brings_data = desc->kind == MUSTER_DESC_MP && desc->inline_len == desc->length &&
			    !step->load_key &&
			    (desc->inline_len || !(desc->flags & MUSTER_DESC_SWAP_LOCAL_DATA));
	step->is_own = has_own_place(desc) &&
		       (desc->kind == MUSTER_DESC_MP ? desc->flags & MUSTER_DESC_SWAP_LOCAL_DATA :
						       step->load_key && step->store_key);
	if (step->brings_data)
		memcpy(step->data, desc->data, sizeof(step->data));

	step->to_tree = false;
	if (!(desc->flags & MUSTER_DESC_CP))
		return 0;
	if (desc->flags & MUSTER_DESC_SWAP_LOCAL_VP)
		return seq->nr_slots + desc->cp_count ? 0 : -EINVAL;
	step->to_tree = muster_tree_find(ctx, desc->dest & MUSTER_DEST_NODE, desc->dst_vp,
					 &step->tree);
	if (step->to_tree)
		return desc->flags & (MUSTER_DESC_FORWARD | MUSTER_DESC_SWAP_REMOTE_ADDR) || step->writes ?
		       -EINVAL : 0;
	step->member_dest = muster_member_find(ctx, desc->dest & MUSTER_DEST_NODE, desc->dst_vp);
	return step->member_dest < ctx->nr_members && step->member_dest != ctx->self ? 0 : -EINVAL;
}

/* What the first descriptor says for all. */
static bool decode_head(const struct muster_desc *desc, struct sequence *seq)
{
	seq->signature = desc->signature;
	seq->stage = desc->stage;
	seq->nr_slots = 0;
	seq->tree_step = NO_TREE;
	seq->kept = desc->flags & MUSTER_DESC_KEEP;
	seq->pulse_len = desc->kind == MUSTER_DESC_RDMA ? desc->range.pulse_len : 0;
	seq->pulse_count = desc->kind == MUSTER_DESC_RDMA ? desc->range.pulse_count : 1;
	seq->pulses_live = MUSTER_PULSES_LIVE;
	if (desc->kind == MUSTER_DESC_RDMA && desc->range.pulses_live)
		seq->pulses_live = desc->range.pulses_live;
	seq->numbers = desc->kind == MUSTER_DESC_RDMA && desc->range.numbers ? desc->range.numbers : 1;
	return seq->pulse_len <= MUSTER_PULSE_MAX && seq->pulse_count &&
	       seq->pulse_count <= MUSTER_PULSE_COUNT_MAX && seq->pulses_live <= MUSTER_TREE_PULSES_LIVE;
}

int muster_decode_sequence(const struct context *ctx, const struct muster_desc *descs, uint32_t nr,
			   struct sequence *seq, uint32_t *bad)
{
	int left = -1;
	uint32_t i, s;

	seq->held_bytes = 0;
	for (i = 0; i < nr; i++) {
		struct muster_desc desc = descs[i];

		*bad = i;
		if (!i && !decode_head(&desc, seq))
			return -EINVAL;
		if (!fields_valid(ctx, &desc) || !belongs(&desc, i, nr, seq) ||
		    !range_valid(desc.store_key, desc.store_addr, desc.length) ||
		    !reduce_valid(&desc, seq->pulse_len) || !forward_valid(&desc, seq, i) ||
		    seq->nr_slots + desc.cp_count > MUSTER_SLOTS_MAX)
			return -EINVAL;
		if (desc.kind == MUSTER_DESC_MP ? !inline_valid(&desc, seq, left) :
						  !rdma_valid(&desc, seq, i))
			return -EINVAL;
		if (decode_step(ctx, &desc, seq, &seq->steps[i]))
			return -EINVAL;

		left = desc.kind == MUSTER_DESC_MP ? (int)desc.length : -1;
		if (desc.flags & MUSTER_DESC_CP && left > seq->held_bytes)
			seq->held_bytes = (uint16_t)left;
		for (s = 0; s < desc.cp_count; s++)
			seq->slot_step[seq->nr_slots++] = i;
		seq->cookie = desc.cookie;
		seq->coll_end = desc.flags & MUSTER_DESC_COLL_END;
		if (seq->steps[i].to_tree && seq->tree_step != NO_TREE)
			return -EINVAL;
		if (seq->steps[i].to_tree)
			seq->tree_step = i;
	}
	seq->nr_steps = nr;
	*bad = muster_tree_check(ctx, seq);
	if (seq->pulses_live > ctx->engine->pulses)
		seq->pulses_live = ctx->engine->pulses;
	return *bad == nr ? 0 : -EINVAL;
}

/* Memory here and there, and nothing else. */
static bool message_writes(const struct muster_desc *desc)
{
	return desc->kind == MUSTER_DESC_RDMA && !desc->inline_len && desc->range.remote_key;
}

static bool write_message_valid(const struct muster_desc *desc)
{
	return desc->length <= MUSTER_WRITE_MAX && !desc->stage && !(desc->dest & MUSTER_DEST_SEQ) &&
	       range_valid(desc->range.remote_key, desc->range.remote_addr, desc->length);
}

/* Inline, or one packet's worth of memory, if it is no write; nothing else is said. */
static bool message_valid(const struct muster_desc *desc)
{
	struct muster_desc_range range = desc->range;

	if (desc->store_key)
		return false;
	if (desc->inline_len)
		return desc->kind == MUSTER_DESC_MP && desc->length == desc->inline_len;
	if (message_writes(desc)) {
		range.remote_key = 0;
		range.remote_addr = 0;
	}
	range.load_key = 0;
	range.load_addr = 0;
	return !memcmp(&range, &no_range, sizeof(no_range)) &&
	       (desc->kind == MUSTER_DESC_MP ? !desc->length && !desc->range.load_key :
		(message_writes(desc) ? write_message_valid(desc) : desc->length <= MUSTER_MTU) &&
		(!desc->length || desc->range.load_key) &&
		range_valid(desc->range.load_key, desc->range.load_addr, desc->length));
}

int muster_decode_message(const struct context *ctx, const struct muster_desc *from,
			  struct message *message)
{
	struct muster_desc desc = *from;

	if (!fields_valid(ctx, &desc) || (desc.flags & ~MUSTER_DESC_COLL_END) ||
	    desc.cp_count || !message_valid(&desc))
		return -EINVAL;
	message->member_dest = muster_member_find(ctx, desc.dest & MUSTER_DEST_NODE, desc.dst_vp);
	if (message->member_dest >= ctx->nr_members || message->member_dest == ctx->self)
		return -EINVAL;

	message->cookie = desc.cookie;
	message->load_addr = desc.inline_len ? 0 : desc.range.load_addr;
	message->load_key = desc.inline_len ? 0 : desc.range.load_key;
	message->signature = desc.signature;
	message->length = desc.length;
	message->slot = MUSTER_FIELD_GET(MUSTER_DEST_SEQ, desc.dest);
	message->stage = desc.stage;
	message->completes = desc.flags & MUSTER_DESC_COLL_END;
	message->left = false;
	message->writes = message_writes(&desc);
	if (message->writes)
		message->out = (struct outgoing){
			.to = { desc.range.remote_addr, desc.range.remote_key, desc.length },
			.addr = desc.range.load_addr, .key = desc.range.load_key,
			.member = message->member_dest,
		};
	if (desc.kind == MUSTER_DESC_MP)
		memcpy(message->data, desc.data, sizeof(message->data));
	return 0;
}

/* ---- packets ---- */

/* A fragment is a whole MTU, or what is left of the message. */
static bool data_valid(const struct muster_packet *packet)
{
	uint32_t left = packet->total - packet->offset;

	return packet->offset <= packet->total && packet->offset % MUSTER_MTU == 0 &&
	       packet->length == (left < MUSTER_MTU ? left : MUSTER_MTU);
}

/* Nothing but those bits. */
static bool packet_answers(const struct muster_packet *packet)
{
	static const struct muster_signature none;

	return !packet->offset && !packet->length && !packet->total && !packet->number && !packet->seq_id &&
	       !packet->stage && muster_signatures_equal(&packet->signature, &none);
}

/* The same of a range that does not end before it begins, and the place that its number has. */
static bool packet_writes(const struct muster_packet *packet)
{
	const struct muster_signature none = { .digest = packet->signature.digest };

	return data_valid(packet) && packet->seq_id == packet->number % MUSTER_WRITES_OPEN &&
	       !packet->pulse && !packet->stage && muster_signatures_equal(&packet->signature, &none) &&
	       range_valid(packet->arg, none.digest, packet->total);
}

/* Of one whose payload is all that it says. */
static bool packet_is_whole(const struct muster_packet *packet)
{
	return !packet->offset && packet->length == packet->total;
}

/* It carries no other flags than these, and at most so many bytes are meant. */
static bool says(const struct muster_packet *packet, uint32_t flags, uint32_t total)
{
	return !(packet->flags & ~flags) && packet->total <= total;
}

/* It names no tree. */
static bool is_plain(const struct muster_packet *packet)
{
	return !(packet->group | packet->tree);
}

static bool data_says(const struct muster_packet *packet)
{
	return says(packet, MUSTER_PACKET_SWAP_DATA | MUSTER_PACKET_SWAP_ADDR | MUSTER_PACKET_COLL_END |
		    MUSTER_PACKET_CREDIT_WANTED, MUSTER_PULSE_MAX) && !packet->arg &&
	       is_plain(packet) && data_valid(packet) &&
	       (!(packet->flags & MUSTER_PACKET_SWAP_ADDR) ||
		packet->total == sizeof(struct muster_reference));
}

static bool rts_says(const struct muster_packet *packet)
{
	return says(packet, MUSTER_PACKET_SWAP_DATA | MUSTER_PACKET_COLL_END | MUSTER_PACKET_CREDIT_WANTED |
		    MUSTER_PACKET_REFERENCE, MUSTER_PULSE_MAX) && !packet->arg &&
	       is_plain(packet) && !packet->offset &&
	       packet->length == (packet->flags & MUSTER_PACKET_REFERENCE ?
				  sizeof(struct muster_reference) : 0);
}

/* WHY and TREE_UP are not for this engine. A result names tree and group; what an ABORT ends may be theirs. */
static bool type_says(const struct muster_packet *packet)
{
	const bool is_empty = !packet->offset && !packet->length;

	switch (packet->type) {
	case MUSTER_PACKET_RTS:
		return rts_says(packet);
	case MUSTER_PACKET_GRANT:
		return says(packet, MUSTER_PACKET_TAKEN, MUSTER_PULSE_MAX) && !packet->arg &&
		       is_plain(packet) && is_empty;
	case MUSTER_PACKET_CREDIT:
		return says(packet, MUSTER_PACKET_CREDIT_WANTED | MUSTER_PACKET_COLL_END, MUSTER_PULSE_MAX) &&
		       !packet->arg && is_plain(packet) && is_empty;
	case MUSTER_PACKET_TREE_DOWN:
		return says(packet, MUSTER_PACKET_ONCE, MUSTER_PULSE_MAX) &&
		       packet->arg <= MUSTER_TREE_PULSES_LIVE &&
		       packet->group && packet_is_whole(packet);
	case MUSTER_PACKET_P2P:
		return says(packet, 0, MUSTER_PULSE_MAX) && !packet->arg && is_plain(packet) &&
		       packet_is_whole(packet);
	case MUSTER_PACKET_ABORT:
		return says(packet, 0, MUSTER_PULSE_MAX) && (packet->group || !packet->tree) && is_empty;
	case MUSTER_PACKET_WRITE:
		return says(packet, 0, MUSTER_WRITE_MAX) && is_plain(packet) && packet_writes(packet);
	case MUSTER_PACKET_WRITTEN:
		return says(packet, 0, MUSTER_PULSE_MAX) && is_plain(packet) && packet_answers(packet);
	default:
		return false;
	}
}

bool muster_decode_packet(const struct muster_packet *packet, uint32_t len)
{
	return packet->version == MUSTER_PACKET_VERSION &&
	       !(packet->reserved | packet->signature.reserved) && packet->length == len &&
	       len <= MUSTER_MTU && packet->seq_id < MUSTER_SLOTS_MAX && packet->dst_vp < MUSTER_VPS_MAX &&
	       (packet->type == MUSTER_PACKET_DATA ? data_says(packet) : type_says(packet));
}
