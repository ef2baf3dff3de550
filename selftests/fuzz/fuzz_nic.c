// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The NIC as a guest and its peers see it: registers, doorbells, commands, descriptors and work
 * requests that are almost right, other bytes in the rings than the driver put there, and packets
 * from nodes that the wire says there are. One NIC lives through all inputs; each begins with a
 * reset, after which ports that know each other open as they did the first time.
 */
#include "fuzz.h"
#include "test_qp.h"
#include "wire.h"

enum {
	ACTS_MAX = 48, PORTS_OPEN = 2, NODES = 3, REGION = 0x7000000, REGION_BYTES = 8192,
	SRQS = QPS + 8 * QP_BYTES, SRQ_BYTES = 0x1000,	/* per queue of shared receives in guest memory */
};

/* ---- a wire that takes everything, in place of the one of sockets ------------------- */

static struct muster_wire wire;

static int wire_send(struct muster_wire *to, uint32_t incarnation,
		     const struct muster_packet *packet, const void *payload)
{
	uint8_t sum = 0;

	(void)to;
	(void)incarnation;
	for (uint32_t i = 0; i < le16toh(packet->length); i++)
		sum += ((const uint8_t *)payload)[i];
	return sum == 0x77 ? -EAGAIN : 0;
}

static int wire_watch(struct muster_wire *to, uint32_t node, uint32_t incarnation)
{
	(void)to;
	(void)incarnation;
	return node < NODES ? 0 : -EHOSTUNREACH;
}

static int wire_poll(struct muster_wire *from, uint64_t now, int budget)
{
	(void)from;
	(void)now;
	(void)budget;
	return 0;
}

static uint64_t wire_deadline_us(struct muster_wire *of)
{
	(void)of;
	return UINT64_MAX;
}

static void wire_close(struct muster_wire *of)
{
	(void)of;
}

int muster_wire_socket_open(const char *spec, uint32_t node, uint32_t incarnation,
			    uint64_t deadline_us, const struct muster_wire_events *events,
			    void *owner, struct muster_wire **result, char *why, size_t why_len)
{
	static const struct muster_wire_ops ops = {
		.send = wire_send, .watch = wire_watch, .poll = wire_poll,
		.deadline_us = wire_deadline_us, .close = wire_close,
	};

	(void)spec;
	(void)incarnation;
	(void)deadline_us;
	(void)why;
	(void)why_len;
	wire = (struct muster_wire){ &ops, events, owner, node };
	*result = &wire;
	return 0;
}

void muster_wire_socket_cable(struct muster_wire *of, bool in)
{
	(void)of;
	(void)in;
}

/* ---- a driver that begins well ------------------------------------------------------ */

/* clang leaves what lies behind an initialized member of a union as it was. */
static struct muster_admin_command whole(struct muster_admin_command cmd)
{
	static const size_t bytes[] = {
		[MUSTER_ADMIN_CQ_CREATE] = sizeof(cmd.cq), [MUSTER_ADMIN_VP_CREATE] = sizeof(cmd.vp),
		[MUSTER_ADMIN_MR_REGISTER] = sizeof(cmd.mr),
		[MUSTER_ADMIN_CONTEXT_OPEN] = sizeof(cmd.context),
		[MUSTER_ADMIN_CONTEXT_CLOSE] = sizeof(cmd.context),
		[MUSTER_ADMIN_CONTEXT_ABORT] = sizeof(cmd.context),
		[MUSTER_ADMIN_COUNTERS] = sizeof(cmd.counters),
		[MUSTER_ADMIN_QP_COUNT] = sizeof(cmd.qp_count),
		[MUSTER_ADMIN_QP_CREATE] = sizeof(cmd.qp),
		[MUSTER_ADMIN_QP_MODIFY] = sizeof(cmd.qp_modify),
		[MUSTER_ADMIN_SRQ_CREATE] = sizeof(cmd.srq),
		[MUSTER_ADMIN_SRQ_LIMIT] = sizeof(cmd.srq_limit),
		[MUSTER_ADMIN_CQ_MODERATE] = sizeof(cmd.cq_moderate),
		[MUSTER_ADMIN_CQ_RESIZE] = sizeof(cmd.cq_resize),
		[MUSTER_ADMIN_TREE_JOIN] = sizeof(cmd.tree), [MUSTER_ADMIN_TREE_MOVE] = sizeof(cmd.tree),
	};
	size_t used = cmd.opcode < sizeof(bytes) / sizeof(bytes[0]) ? bytes[cmd.opcode] : 0;

	if (!used && cmd.opcode)
		used = sizeof(cmd.id.id);
	memset(cmd.raw + used, 0, sizeof(cmd.raw) - used);
	return cmd;
}

static void put(struct guest *guest, struct muster_admin_command cmd)
{
	command_give(guest, whole(cmd));
}

static struct muster_admin_command context_of(struct guest *guest, uint32_t vp)
{
	struct muster_admin_command cmd = context_command(MUSTER_ADMIN_CONTEXT_OPEN, vp);

	cmd.context.job_key = htole64(KEY);
	cmd.context.members = htole64(LIST);
	cmd.context.nr_members = htole32(PORTS_OPEN + 1);
	cmd.context.self = htole32(vp);
	for (uint32_t i = 0; i <= PORTS_OPEN; i++) {	/* the last one elsewhere */
		struct muster_admin_member member = {
			.node = htole32(i / PORTS_OPEN), .vp = htole16(i % PORTS_OPEN),
			.incarnation = htole32(i < PORTS_OPEN ?
					       reg_read(guest, MUSTER_REG_INCARNATION) : 55),
		};

		memcpy(guest->memory + LIST + i * sizeof(member), &member, sizeof(member));
	}
	return cmd;
}

static void pairs_connect(struct guest *guest)
{
	struct muster_admin_reply reply;

	for (uint32_t i = 0; i < 2; i++) {
		put(guest, qp_cq_command(i));
		put(guest, qp_command(i, MUSTER_QP_RC));
		for (uint8_t state = MUSTER_QP_INIT; state <= MUSTER_QP_RTS; state++)
			put(guest, rc_modify_command(i, state, 0, 1 - i));
	}
	settle(guest);
	if (!command_answered(guest, &reply) || reply.status)
		abort();
}

static void begin(struct guest *guest, bool pairs)
{
	struct muster_admin_reply reply;

	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	memset(guest->memory, 0, PORTS + PORTS_OPEN * PORT_BYTES);
	memset(guest->memory + QPS, 0, 2 * QP_BYTES);
	memset(guest->memory + SRQS, 0, (PORTS_OPEN + 1) * SRQ_BYTES);
	enable(guest);
	for (uint32_t vp = 0; vp < PORTS_OPEN; vp++) {
		put(guest, cq_command(vp));
		put(guest, vp_command(vp));
	}
	put(guest, mr_command(guest, 1, REGION, REGION_BYTES, MUSTER_MR_ACCESS));
	settle(guest);
	for (uint32_t vp = 0; vp < PORTS_OPEN; vp++) {
		put(guest, context_of(guest, vp));
		settle(guest);
		if (!command_answered(guest, &reply) || reply.status)
			abort();	/* as good as new */
	}
	if (pairs)
		pairs_connect(guest);
}

/* ---- and goes on almost so ---------------------------------------------------------- */

/* Of shared receives, completion queues and contexts, whole; of all others the opcode and a name. */
static struct muster_admin_command named(uint8_t opcode, uint8_t id, uint8_t more)
{
	struct muster_admin_command cmd = id_command(opcode, more & 0x80 ? qp_number(id) : id);

	if (opcode == MUSTER_ADMIN_SRQ_CREATE)
		cmd.srq = (struct muster_admin_srq){
			.record = htole64(SRQS + id * SRQ_BYTES), .pd = htole32(PD),
			.base = htole64(SRQS + id * SRQ_BYTES + sizeof(struct muster_srq_record)),
			.id = htole32(id), .entries = htole16(QP_ENTRIES) };
	else if (opcode == MUSTER_ADMIN_SRQ_LIMIT)
		cmd.srq_limit = (struct muster_admin_srq_limit){ htole32(id), htole32(more / 64) };
	else if (opcode == MUSTER_ADMIN_CQ_MODERATE)
		cmd.cq_moderate = (struct muster_admin_cq_moderate){
			htole32(QP_CQ + id), htole16(more / 64), htole16(more & 0x80) };
	else if (opcode == MUSTER_ADMIN_CQ_RESIZE)
		cmd.cq_resize = (struct muster_admin_cq_resize){
			htole64(QPS + id * QP_BYTES + QP_CQ_RING + QP_CQ_ENTRIES * sizeof(struct muster_wc)),
			htole32(QP_CQ + id), htole32(4u << more / 64) };
	else if (opcode == MUSTER_ADMIN_TREE_JOIN || opcode == MUSTER_ADMIN_TREE_MOVE)
		cmd.tree = (struct muster_admin_tree){
			.context = htole32(CONTEXT), .node = htole32(MUSTER_NODE_AGGREGATION),
			.incarnation = htole32(55), .group = htole32(1 + more / 64),
			.payload_max = htole16(256), .vp = htole16(id), .job = JOB };
	return cmd;
}

/* A list of one part, behind it. */
static void in_parts(struct guest *guest, struct muster_admin_command *cmd)
{
	const uint64_t list = cmd->mr.pages;

	memcpy(guest->memory + LIST + 0x800, &list, sizeof(list));
	cmd->mr.pages = htole64(LIST + 0x800);
	cmd->mr.in_parts = 1;
}

static void give(struct fuzz *fuzz, struct guest *guest)
{
	uint8_t how = fuzz_byte(fuzz), more = fuzz_byte(fuzz), id = more % (PORTS_OPEN + 1);
	struct muster_admin_command cmd;

	switch (how % 10) {
	case 0:
		cmd = cq_command(id);
		break;
	case 1:
		cmd = vp_command(id);
		break;
	case 2:
		cmd = mr_command(guest, 1 + id, REGION, REGION_BYTES, 1 + more / 4 % 3);
		if (more & 0x80)
			in_parts(guest, &cmd);
		break;
	case 3:
		cmd = context_of(guest, id);
		break;
	case 4:
		cmd = qp_cq_command(id);
		break;
	case 5:
		cmd = qp_command(id, more / 4 % 2 ? MUSTER_QP_RC : MUSTER_QP_UD);
		if (more & 0x80) {
			cmd.qp.rq_entries = 0;
			cmd.qp.srq = htole16(1 + (more / 8 % 2));
		}
		break;
	case 6:
		cmd = more & 0x80 ? rc_modify_command(id, more / 4 % 8, more & 0x40 ? 1 : 0, 1 - id) :
				    qp_modify_command(id, more / 4 % 8);
		break;
	case 7:
		cmd = context_command(more & 4 ? MUSTER_ADMIN_CONTEXT_CLOSE :
				      MUSTER_ADMIN_CONTEXT_ABORT, id);
		cmd.context.status = more & 4 ? 0 : MUSTER_STATUS_ABORTED;
		break;
	case 8:
		cmd = (struct muster_admin_command){
			.opcode = MUSTER_ADMIN_COUNTERS,
			.counters = { .base = htole64(LIST), .bytes = htole32(8 * (more / 4)) },
		};
		break;
	default:
		cmd = named(more / 4 % 24, id, more);
	}
	cmd = whole(cmd);
	fuzz_change(fuzz, &cmd, sizeof(cmd));
	command_give(guest, cmd);
}

static struct muster_desc desc_of(struct fuzz *fuzz, uint32_t vp, bool first)
{
	uint8_t how = fuzz_byte(fuzz);
	struct muster_desc desc = message(how & 0x80 ? 1 : 0, vp, how & 0x80 ? 0 : 1 - vp,
					  first ? "from one" : "");

	desc.flags = htole16(first ? MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CP :
			     MUSTER_DESC_C | MUSTER_DESC_CT | MUSTER_DESC_REDUCE |
			     MUSTER_DESC_COLL_END | (how & 1 ? 0 : MUSTER_DESC_SWAP_LOCAL_DATA));
	desc.signature.type = MUSTER_DTYPE_I32;
	desc.signature.op = MUSTER_REDOP_SUM;
	desc.length = htole64(8);
	if (how & 1) {
		desc.kind = MUSTER_DESC_RDMA;
		desc.inline_len = 0;
		memset(desc.data, 0, sizeof(desc.data));
		desc.length = htole64(REGION_BYTES);
		desc.range.load_key = htole32(1);
		desc.range.load_addr = htole64(REGION);
		desc.range.pulse_len = htole32(1024 << (how >> 1) % 4);
		desc.range.pulse_count = htole32(REGION_BYTES / (1024 << (how >> 1) % 4));
	}
	if (!first) {
		desc.cp_count = 1;
		desc.store_key = htole32(1);
		desc.store_addr = htole64(REGION);
	}
	fuzz_change(fuzz, &desc, sizeof(desc));
	return desc;
}

/* From its own memory to the other port's, of which it may know the key. */
static struct muster_desc write_of(struct fuzz *fuzz, uint32_t vp)
{
	uint8_t how = fuzz_byte(fuzz);
	struct muster_desc desc = message(0, vp, 1 - vp, "");

	desc.kind = MUSTER_DESC_RDMA;
	desc.length = htole64(how * 32);
	desc.range.load_key = htole32(1);
	desc.range.load_addr = htole64(REGION);
	desc.range.remote_key = htole32(1 + how % 3);
	desc.range.remote_addr = htole64(REGION + how * 8);
	fuzz_change(fuzz, &desc, sizeof(desc));
	return desc;
}

static void sequence(struct fuzz *fuzz, struct guest *guest)
{
	uint8_t what;
	uint32_t vp = fuzz_byte(fuzz) % PORTS_OPEN, at;

	memcpy(&at, guest->memory + port(vp, PORT_STATUS), sizeof(at));
	at = le32toh(at);
	what = fuzz_byte(fuzz);
	if (what % 16 == 8) {
		post(guest, vp, at, write_of(fuzz, vp));
	} else if (what % 4) {
		post(guest, vp, at, desc_of(fuzz, vp, true));
		post(guest, vp, at + 1, desc_of(fuzz, vp, false));
		at++;
	} else {
		post(guest, vp, at, message(0, vp, fuzz_byte(fuzz) % PORTS_OPEN, "message"));
	}
	doorbell(guest, vp, MUSTER_DOORBELL_DQ_TAIL, at + 1);
	doorbell(guest, vp, MUSTER_DOORBELL_CQ_ARM, at);
}

static void shared_receive(struct guest *guest, uint32_t id)
{
	struct muster_srq_record *record = (void *)(guest->memory + SRQS + id * SRQ_BYTES);
	uint32_t at = le32toh(record->tail);

	((struct muster_receive *)(record + 1))[at % QP_ENTRIES] = receive_of(0, 4096);
	record->tail = htole32(at + 1);
}

static void work(struct fuzz *fuzz, struct guest *guest)
{
	uint8_t how = fuzz_byte(fuzz), id = how % 2, opcode = how / 4 % (MUSTER_WORK_FETCH_ADD + 1);
	struct muster_work request = how & 0x80 ? datagram_to(0, 1 - id, 0, 64) :
				     rc_work(opcode, 0, opcode < MUSTER_WORK_CMP_SWAP ? how * 16 : 8, 4096);

	fuzz_change(fuzz, &request, sizeof(request));
	qp_receive(guest, 1 - id, receive_of(0, 4096));
	shared_receive(guest, how / 2 % 2);
	qp_put(guest, id, request);
	reg_write(guest, MUSTER_REG_BELLS + MUSTER_BELL_QP, qp_number(id));
	reg_write(guest, MUSTER_REG_BELLS + MUSTER_BELL_CQ, QP_CQ + id);
}

/* From the member that is elsewhere, or from another queue pair. */
static void packet_in(struct fuzz *fuzz, struct guest *guest)
{
	static const uint8_t payload[MUSTER_MTU];
	uint8_t type = fuzz_byte(fuzz) % 11, how = fuzz_byte(fuzz);
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = type, .job = JOB,
		.src_node = htole32(1), .src_member = htole32(PORTS_OPEN), .dst_vp = htole16(how % 2),
		.context = htole32(CONTEXT), .number = htole32(how / 2 % 4), .seq_id = how / 8 % 2,
		.incarnation = htole32(55), .job_key = htole64(KEY),
		.signature = { .type = MUSTER_DTYPE_I32, .op = MUSTER_REDOP_SUM },
		.total = htole32(how & 0x40 ? 1024 : 8), .length = htole16(how & 0x40 ? 1024 : 8),
	};

	if (!wire.events)
		return;
	if (type == MUSTER_PACKET_WRITE) {
		packet.signature = (struct muster_signature){ .digest = htole64(REGION) };
		packet.arg = htole32(1 + how / 4 % 4);
		packet.number = htole32(how % MUSTER_WRITES_OPEN);
		packet.seq_id = how % MUSTER_WRITES_OPEN;
	}
	fuzz_change(fuzz, &packet, sizeof(packet));
	if (le16toh(packet.length) <= sizeof(payload))
		wire.events->receive(wire.owner, &packet, payload, le16toh(packet.length));
	if (how == 0xff)
		wire.events->lost(wire.owner, fuzz_byte(fuzz) % NODES, 0);
	(void)guest;
}

static void scribble(struct fuzz *fuzz, struct guest *guest)
{
	static const struct { uint32_t at, bytes; } parts[] = {
		{ ADMIN, LIST + 0x1000 - ADMIN }, { PORTS, PORTS_OPEN * PORT_BYTES },
		{ QPS, 2 * QP_BYTES }, { SRQS, 2 * SRQ_BYTES },
	};
	uint32_t part = fuzz_byte(fuzz) % 4;

	guest->memory[parts[part].at + fuzz_word(fuzz) % parts[part].bytes] = fuzz_byte(fuzz);
}

static void act(struct fuzz *fuzz, struct guest *guest)
{
	uint8_t what = fuzz_byte(fuzz);

	switch (what % 16) {
	case 0:
		reg_write(guest, fuzz_byte(fuzz) % 0x50 & ~3u, fuzz_word(fuzz));
		break;
	case 1:
		muster_nic_doorbell(guest->nic, fuzz_word(fuzz), fuzz_byte(fuzz), 1 << what / 16 % 4);
		muster_nic_reg_read(guest->nic, fuzz_byte(fuzz), 1 << what / 16 % 4);
		break;
	case 2:
		doorbell(guest, fuzz_byte(fuzz) % (PORTS_OPEN + 1), fuzz_byte(fuzz) % 8 * 4,
			 fuzz_byte(fuzz));
		break;
	case 3:
		scribble(fuzz, guest);
		break;
	case 4:
		packet_in(fuzz, guest);
		break;
	case 5 ... 8:
		give(fuzz, guest);
		break;
	case 9 ... 10:
		sequence(fuzz, guest);
		break;
	case 11:
		work(fuzz, guest);
		break;
	default:
		for (uint8_t turns = 1 + what / 64; turns; turns--)
			muster_nic_step(guest->nic);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz fuzz = { data, len };
	static struct guest *guest;

	if (!guest)
		guest = guest_new(0);
	begin(guest, fuzz_byte(&fuzz) & 1);
	for (int i = 0; fuzz.left && i < ACTS_MAX; i++)
		act(&fuzz, guest);
	return 0;
}
