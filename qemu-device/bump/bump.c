// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The bump as a whole: its configuration, and the input arbiter, which serves the
 * ports in turn, one frame each.
 */
#include "internal.h"

#include <errno.h>

enum { REPAIR_DEFAULT_US = 2000 };

static bool config_valid(const struct muster_bump_config *config)
{
	return config->nr_elements && config->nr_elements <= MUSTER_BUMP_HOSTS_MAX &&
	       config->element < config->nr_elements && config->nr_ports &&
	       config->nr_ports <= MUSTER_BUMP_PORTS_MAX && config->nr_keys &&
	       config->nr_keys <= MUSTER_BUMP_KEYS_MAX && config->keys && config->routes &&
	       config->neighbours && !(config->open_ports >> config->nr_ports);
}

int muster_bump_create(const struct muster_bump_config *config,
		       const struct muster_bump_world *world, void *opaque,
		       struct muster_bump **created)
{
	struct muster_bump *bump;

	if (!config_valid(config))
		return -EINVAL;
	for (uint32_t i = 0; i < config->nr_elements; i++)
		if (config->routes[i] >= config->nr_ports &&
		    config->routes[i] != MUSTER_BUMP_NO_PORT)
			return -EINVAL;
	bump = world->alloc(opaque, sizeof(*bump));
	if (!bump)
		return -ENOMEM;
	bump->config = *config;
	bump->world = *world;
	bump->opaque = opaque;
	memcpy(bump->routes, config->routes, config->nr_elements);
	memcpy(bump->neighbours, config->neighbours,
	       config->nr_ports * sizeof(*config->neighbours));
	memcpy(bump->keys, config->keys, config->nr_keys * sizeof(*config->keys));
	if (!bump->config.udp_port)
		bump->config.udp_port = MUSTER_BUMP_PORT;
	if (!bump->config.repair_us)
		bump->config.repair_us = REPAIR_DEFAULT_US;
	bump->want_us = UINT64_MAX;
	*created = bump;
	return 0;
}

void muster_bump_free(struct muster_bump *bump)
{
	if (!bump)
		return;
	for (uint32_t key = 0; key < MUSTER_BUMP_KEYS_MAX; key++)
		for (uint32_t i = 0; i < MUSTER_BUMP_GROUPS_MAX; i++)
			if (bump->groups[key][i])
				group_destroy(bump, bump->groups[key][i]);
	bump->world.free(bump->opaque, bump);
}

/* Input arbiter: round robin, beginning after the port that was served last. */
static bool arbitrate(struct muster_bump *bump, struct muster_bump_frame *frame)
{
	for (uint32_t i = 0; i < bump->config.nr_ports; i++) {
		if (++bump->turn >= bump->config.nr_ports)
			bump->turn = 0;
		if (bump->world.receive(bump->opaque, bump->turn, frame))
			return true;
	}
	return false;
}

bool muster_bump_step(struct muster_bump *bump)
{
	struct muster_bump_frame frame = { 0 };
	bool came = arbitrate(bump, &frame);

	if (came)
		cfe_take(bump, bump->turn, &frame);
	if (bump->live)
		repair_overdue(bump);
	return came;
}

uint64_t muster_bump_deadline_us(const struct muster_bump *bump)
{
	return bump->live ? bump->want_us : UINT64_MAX;
}

const struct muster_bump_counters *muster_bump_counters(const struct muster_bump *bump)
{
	return &bump->counters;
}
