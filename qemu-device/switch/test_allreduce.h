/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For tests: one allreduce of all hosts over the tree, and the bits that it must give. */
#ifndef MUSTER_SWITCH_TEST_ALLREDUCE_H
#define MUSTER_SWITCH_TEST_ALLREDUCE_H

#include "test_net.h"

enum { OUT = 1 << 18 };	/* where results go in a host's memory */

struct run {
	uint32_t bytes;
	uint8_t type, op;
	bool in_place;
};

static inline struct muster_signature signature_of(const struct run *run)
{
	return (struct muster_signature){ .coll = 4, .type = run->type, .op = run->op, .digest = 7 };
}

static inline void dirty(struct net *net, const struct run *run, uint8_t *inputs)
{
	for (uint32_t host = 0; host < net->w->nr; host++)
		for (uint32_t i = 0; i < run->bytes; i++) {
			uint8_t byte = world_random(net->w, 256);

			inputs[host * run->bytes + i] = byte;
			net->w->nodes[host].memory[i] = byte;
		}
}

static inline void post_inline(struct net *net, const struct run *run, uint32_t host,
			const uint8_t *input)
{
	struct muster_desc d[2] = {
		desc_mp(MUSTER_DESC_CH, 0, NULL),
		desc_mp(MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, NULL),
	};

	d[0].signature = d[1].signature = signature_of(run);
	d[0].length = d[1].length = run->bytes;
	d[0].inline_len = run->bytes;
	memcpy(d[0].data, input, run->bytes);
	desc_to(&d[0], net->group.nodes[host], 0);
	d[0].dst_vp = NET_TREE;
	desc_store(&d[1], run->in_place ? 0 : OUT);
	world_post(net->w, host, d, 2);
}

static inline void post_memory(struct net *net, const struct run *run, uint32_t host)
{
	uint32_t segment = net->payload_max;
	struct muster_desc d[2] = {
		desc_rdma(MUSTER_DESC_CH, 0, run->bytes, segment),
		desc_rdma(MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, run->bytes, segment),
	};

	d[0].signature = d[1].signature = signature_of(run);
	d[0].range.pulses_live = net->pulses;
	desc_load(&d[0], 0);
	desc_to(&d[0], net->group.nodes[host], 0);
	d[0].dst_vp = NET_TREE;
	desc_store(&d[1], run->in_place ? 0 : OUT);
	world_post(net->w, host, d, 2);
}

static inline void expect(struct net *net, const struct run *run, const uint8_t *inputs, uint32_t ended)
{
	uint8_t *value = malloc(run->bytes ? run->bytes : 1);

	net_value(net, net_root(net), run->type, run->op, inputs, run->bytes, value);
	for (uint32_t host = 0; host < net->w->nr; host++) {
		const struct world_node *node = &net->w->nodes[host];

		if (node->nr_cqes != ended || node->cqes[ended - 1].status)
			fail_msg("host %u: %u completions, status %u", host, node->nr_cqes,
				 node->nr_cqes ? node->cqes[node->nr_cqes - 1].status : 0);
		if (memcmp(node->memory + (run->in_place ? 0 : OUT), value, run->bytes))
			fail_msg("host %u has other bits", host);
	}
	free(value);
}

static inline void post_all(struct net *net, const struct run *run, uint8_t *inputs)
{
	dirty(net, run, inputs);
	for (uint32_t host = 0; host < net->w->nr; host++) {
		if (run->bytes <= MUSTER_INLINE_MAX && run->bytes)
			post_inline(net, run, host, inputs + host * run->bytes);
		else
			post_memory(net, run, host);
	}
}

static inline void allreduce(struct net *net, const struct run *run, uint32_t ended)
{
	uint8_t *inputs = malloc(net->w->nr * run->bytes + 1);

	post_all(net, run, inputs);
	net_run(net);
	expect(net, run, inputs, ended);
	free(inputs);
}

#endif /* MUSTER_SWITCH_TEST_ALLREDUCE_H */
