// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One switch between its table of functions and the wire (switch_box.h). What the switch has
 * no place for stays its sender's, whose link sends it again.
 */
#include "switch_box.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { POLL_BUDGET = 256, AGAIN_US = 10000, HURRY_US = 50000 };

/* Who is late says nothing, for as long as he computes; a death is told by the kernel. */
#define SILENCE_US	(365ull * 86400 * 1000000)

struct switch_box_port {
	uint32_t neighbour;		/* on the wire */
	uint32_t life;			/* its; 0: not heard, or it is gone */
	bool lost;
	bool untold;			/* the switch does not know yet that its life is over */
	bool cut;			/* whatever the wire says of it */
	bool unheard;			/* it was met, and is to answer */
};

/* ---- what the switch sees ---------------------------------------------------------- */

static int box_send(void *opaque, uint32_t number, const struct muster_packet *packet,
		    const void *payload)
{
	struct switch_box *box = opaque;
	struct switch_box_port *port = &box->ports[number];

	if (number >= box->nr_ports || (port->lost && !port->untold))
		return -EHOSTUNREACH;
	if (!port->life || port->untold)
		return -EAGAIN;		/* it is yet to come, or its end to be told */
	return box->wire->ops->send_by(box->wire, port->neighbour, port->life, packet, payload);
}

static void box_send_once(void *opaque, uint32_t number, const struct muster_packet *packet,
			  const void *payload)
{
	struct switch_box *box = opaque;

	if (number < box->nr_ports)
		box->wire->ops->send_once(box->wire, box->ports[number].neighbour,
					  box->ports[number].life, packet, payload);
}

static void *box_alloc(void *opaque, size_t bytes)
{
	(void)opaque;
	return calloc(1, bytes);
}

static void box_free(void *opaque, void *p, size_t bytes)
{
	(void)opaque;
	(void)bytes;
	free(p);
}

/* ---- what the wire says ------------------------------------------------------------- */

static uint32_t port_of(const struct switch_box *box, uint32_t neighbour)
{
	uint32_t number = 0;

	while (number < box->nr_ports && box->ports[number].neighbour != neighbour)
		number++;
	return number;
}

static bool take(void *owner, uint32_t neighbour, const struct muster_packet *packet,
		 const void *payload, uint32_t len)
{
	struct switch_box *box = owner;
	uint32_t number = port_of(box, neighbour);

	if (number == box->nr_ports || box->ports[number].cut)
		return true;		/* nobody that is joined to us */
	return muster_switch_lend(box->sw, number, packet, payload, len) != -EAGAIN;
}

/* What has come together was combined where it lay, as far as it goes. */
static void over(void *owner)
{
	muster_switch_give_back(((struct switch_box *)owner)->sw);
}

/* A life is over: switch_box_tell_losses() says so, once all that it had sent before has been taken. */
static void lost(void *owner, uint32_t neighbour, uint32_t present)
{
	struct switch_box *box = owner;
	uint32_t number = port_of(box, neighbour);

	if (number == box->nr_ports || box->ports[number].cut)
		return;
	box->ports[number].life = present;
	box->ports[number].unheard = false;
	box->ports[number].lost = !present;
	box->ports[number].untold = true;
	box->lost = true;
}

int switch_box_cut(struct switch_box *box, uint32_t neighbour)
{
	uint32_t number = port_of(box, neighbour);

	if (number == box->nr_ports)
		return -ENOENT;
	lost(box, neighbour, 0);
	box->ports[number].cut = true;
	return 0;
}

int switch_box_meet(struct switch_box *box, uint32_t neighbour, uint32_t life)
{
	uint32_t number = port_of(box, neighbour);

	if (number == box->nr_ports || box->ports[number].cut)
		return -ENOENT;
	box->ports[number].life = life;
	box->ports[number].unheard = true;
	return box->wire->ops->watch(box->wire, neighbour, life);
}

bool switch_box_gone(const struct switch_box *box, uint32_t number, uint32_t *host)
{
	const struct switch_box_port *port = &box->ports[number];

	*host = port->neighbour;
	return port->neighbour < MUSTER_NODE_AGGREGATION && (port->lost || port->untold);
}

void switch_box_tell_losses(struct switch_box *box)
{
	for (uint32_t i = 0; i < box->nr_ports && box->lost; i++) {
		if (box->ports[i].untold)
			muster_switch_port_lost(box->sw, i);
		box->ports[i].untold = false;
	}
	if (box->lost)
		box->again_us = 0;	/* what follows is said at once */
	box->owes |= box->lost;
	box->lost = false;
}

static void met(void *owner, uint32_t neighbour, uint32_t present)
{
	struct switch_box *box = owner;
	uint32_t number = port_of(box, neighbour);

	if (number == box->nr_ports || box->ports[number].cut)
		return;
	box->ports[number].life = present;
	box->ports[number].lost = box->ports[number].unheard = false;
	box->met = true;
}

/* ---- steps ---------------------------------------------------------------------------- */

/* Who has nothing to send to a switch is to hear all the same that it is gone. */
static void trunks_watch(struct switch_box *box)
{
	for (uint32_t i = 0; i < box->nr_ports; i++)
		if (box->ports[i].neighbour >= MUSTER_NODE_AGGREGATION)
			box->wire->ops->watch(box->wire, box->ports[i].neighbour, box->ports[i].life);
	box->watching = true;
}

/* Those that wait for locks: whoever has waited long enough can give up. */
static void hurry(struct switch_box *box, uint64_t now_us)
{
	struct muster_switch_counters counters;

	muster_switch_counters_get(box->sw, &counters);
	if (!counters.lock_waits) {
		box->hurry_us = UINT64_MAX;
	} else if (box->hurry_us == UINT64_MAX) {
		box->hurry_us = now_us + HURRY_US;
	} else if (now_us >= box->hurry_us) {
		muster_switch_hurry(box->sw);
		box->hurry_us = now_us + HURRY_US;
	}
}

bool switch_box_step(struct switch_box *box, uint64_t now_us)
{
	bool came = box->wire->ops->poll(box->wire, now_us, POLL_BUDGET) > 0;

	hurry(box, now_us);

	if (box->met && !box->watching)
		trunks_watch(box);
	box->owes = muster_switch_step(box->sw);
	box->again_us = now_us + AGAIN_US;
	return came;
}

/* A full link has room when an acknowledgement has come; a host that is awaited may come. */
uint64_t switch_box_due_us(const struct switch_box *box)
{
	uint64_t due_us = box->wire->ops->deadline_us(box->wire);

	if (box->hurry_us < due_us)
		due_us = box->hurry_us;
	return box->owes && box->again_us < due_us ? box->again_us : due_us;
}

/* ---- opening and closing ---------------------------------------------------------------- */

/* Switches have the life that they were started with; hosts say theirs. */
static int ports_open(struct switch_box *box, const struct muster_fabric *fabric)
{
	struct muster_fabric_end end;

	while (muster_fabric_end(fabric, box->number, box->nr_ports, &end))
		box->nr_ports++;
	box->ports = calloc(box->nr_ports, sizeof(*box->ports));
	for (uint32_t port = 0; port < box->nr_ports && box->ports; port++) {
		muster_fabric_end(fabric, box->number, port, &end);
		box->ports[port].neighbour = end.is_host ? end.number :
							   MUSTER_NODE_AGGREGATION + end.number;
		box->ports[port].life = end.is_host ? 0 : box->life;
	}
	return box->ports ? 0 : -ENOMEM;
}

/* Those that are left. */
static int links_check(const struct switch_box *box, const struct muster_fabric *fabric)
{
	struct muster_fabric_end end;

	for (uint32_t port = 0; port < box->nr_ports; port++) {
		if (!muster_fabric_end(fabric, box->number, port, &end) || end.is_host)
			continue;
		if (box->ports[port].cut)
			return -EHOSTUNREACH;
		if (box->ports[port].unheard || box->ports[port].lost)
			return -EAGAIN;
	}
	return 0;
}

int switch_box_ways_lay(struct switch_box *box, const struct muster_fabric *fabric, const bool *without,
			uint32_t way)
{
	uint32_t room = muster_fabric_hosts(fabric) + muster_fabric_switches(fabric);
	struct muster_switch_route *routes = calloc(room, sizeof(*routes));
	struct muster_fabric *around = NULL;
	char why[256];
	int err = routes ? muster_fabric_without(fabric, without, &around, why, sizeof(why)) : -ENOMEM;
	int64_t nr;

	if (!err)
		err = links_check(box, around);
	nr = err ? err : muster_fabric_routes(around, box->number, routes);
	err = nr < 0 ? (int)nr : muster_switch_ways_lay(box->sw, way, routes, (uint32_t)nr);
	muster_fabric_free(around);
	free(routes);
	return err;
}

static int switch_open(struct switch_box *box, const struct muster_fabric *fabric)
{
	static const struct muster_switch_world world = {
		.send = box_send, .send_once = box_send_once, .alloc = box_alloc, .free = box_free,
	};
	bool trunks[MUSTER_SWITCH_RADIX_MAX];
	uint32_t room = muster_fabric_hosts(fabric) + muster_fabric_switches(fabric);
	struct muster_switch_route *routes = calloc(room, sizeof(*routes));
	struct muster_switch_config config = {
		.node = muster_fabric_node(fabric, box->number), .incarnation = box->life,
		.radix = muster_fabric_radix(fabric), .routes = routes, .trunks = trunks,
	};
	int64_t nr = routes ? muster_fabric_routes(fabric, box->number, routes) : -ENOMEM;
	int err = nr < 0 ? (int)nr : 0;

	muster_fabric_trunks(fabric, box->number, trunks);
	config.nr_routes = nr < 0 ? 0 : (uint32_t)nr;
	if (!err)
		err = muster_switch_create(&config, &world, box, &box->sw);
	free(routes);
	return err;
}

const struct muster_wire_events switch_box_events = {
	.take = take, .over = over, .lost = lost, .met = met,
};

int switch_box_make(struct switch_box *box, const struct muster_fabric *fabric, uint32_t number, uint32_t life,
		    char *why, size_t why_len)
{
	int err;

	*box = (struct switch_box){
		.number = number, .node = MUSTER_NODE_AGGREGATION + number, .life = life,
		.hurry_us = UINT64_MAX,
	};
	err = ports_open(box, fabric);
	if (!err)
		err = switch_open(box, fabric);
	if (err)
		strncpy(why, strerror(-err), why_len - 1);
	return err;
}

int switch_box_open(struct switch_box *box, const struct muster_fabric *fabric, uint32_t number,
		    const char *spec, uint32_t life, char *why, size_t why_len)
{
	int err = switch_box_make(box, fabric, number, life, why, why_len);

	if (!err)
		err = muster_wire_socket_open(spec, box->node, life, SILENCE_US, &switch_box_events, box,
					      &box->wire, why, why_len);
	if (err)
		switch_box_close(box);
	return err;
}

void switch_box_close(struct switch_box *box)
{
	if (box->wire)
		box->wire->ops->close(box->wire);
	if (box->sw)
		muster_switch_destroy(box->sw);
	free(box->ports);
	*box = (struct switch_box){ 0 };
}

/* ---- handing over ------------------------------------------------------------------------- */

/* What is written before ports, switch and wire. */
struct heading {
	uint32_t life, nr_ports, port_bytes;
	bool lost, met, watching, owes;
	uint64_t again_us, hurry_us;
};

static int state_write(void *to, void *bytes, size_t len)
{
	return fwrite(bytes, len, 1, to) == 1 ? 0 : -EIO;
}

static int state_read(void *from, void *bytes, size_t len)
{
	return fread(bytes, len, 1, from) == 1 ? 0 : -EIO;
}

int switch_box_save(struct switch_box *box, FILE *to)
{
	const struct muster_switch_store store = { to, state_write };
	struct heading heading = {
		.life = box->life, .nr_ports = box->nr_ports, .port_bytes = sizeof(*box->ports),
		.lost = box->lost, .met = box->met, .watching = box->watching, .owes = box->owes,
		.again_us = box->again_us, .hurry_us = box->hurry_us,
	};
	int err = state_write(to, &heading, sizeof(heading));

	if (!err)
		err = state_write(to, box->ports, box->nr_ports * sizeof(*box->ports));
	if (!err)
		err = muster_switch_save(box->sw, &store);
	return err ? err : muster_wire_socket_save(box->wire, to);
}

static int inside_resume(struct switch_box *box, const struct heading *heading, FILE *from)
{
	const struct muster_switch_store store = { from, state_read };
	int err;

	if (heading->nr_ports != box->nr_ports || heading->port_bytes != sizeof(*box->ports))
		return -EINVAL;
	box->lost = heading->lost;
	box->met = heading->met;
	box->watching = heading->watching;
	box->owes = heading->owes;
	box->again_us = heading->again_us;
	box->hurry_us = heading->hurry_us;
	err = state_read(from, box->ports, box->nr_ports * sizeof(*box->ports));
	return err ? err : muster_switch_restore(box->sw, &store);
}

int switch_box_resume(struct switch_box *box, const struct muster_fabric *fabric, uint32_t number,
		      const char *spec, FILE *from, char *why, size_t why_len)
{
	struct heading heading;
	int err = state_read(from, &heading, sizeof(heading));

	*box = (struct switch_box){ .number = number };
	if (err) {
		strncpy(why, strerror(-err), why_len - 1);
		return err;
	}
	err = switch_box_make(box, fabric, number, heading.life, why, why_len);
	if (!err) {
		err = inside_resume(box, &heading, from);
		if (err)
			strncpy(why, "what was written of it is another program's", why_len - 1);
	}
	if (!err)
		err = muster_wire_socket_resume(spec, box->node, from, &switch_box_events, box, &box->wire, why,
						why_len);
	if (err)
		switch_box_close(box);
	return err;
}
