// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pulls the NIC's cable out and puts it back, some times, and sees that whoever has the device open
 * is told each time, and that the port is then what was told. For a guest of `muster-vm --hotplug`.
 *
 * usage: link
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "monitor.h"
#include "port.h"

enum { TIMES = 5 };

static void link_set(bool up)
{
	char command[160], line[1024];
	int error;

	snprintf(command, sizeof(command), "{\"execute\":\"qom-set\",\"arguments\":{\"path\":"
		 "\"/machine/peripheral/nic0\",\"property\":\"link\",\"value\":%s}}\n",
		 up ? "true" : "false");
	error = monitor_tell(command, "\"return\"", line, sizeof(line));
	if (error)
		errx(1, "link: %s", strerror(-error));
}

static void told(struct ibv_context *ctx, enum ibv_event_type what, enum ibv_port_state state)
{
	struct ibv_async_event event;
	struct ibv_port_attr port;

	if (ibv_get_async_event(ctx, &event))
		err(1, "no event");
	ibv_ack_async_event(&event);
	if (event.event_type != what || event.element.port_num != 1)
		errx(1, "%s instead of %s", ibv_event_type_str(event.event_type), ibv_event_type_str(what));
	if (ibv_query_port(ctx, 1, &port) || port.state != state)
		errx(1, "the port is %s", ibv_port_state_str(port.state));
}

int main(void)
{
	struct ibv_context *ctx = device_open();
	int error = monitor_open();

	if (!ctx || error)
		errx(1, "%s", ctx ? strerror(-error) : "no device");
	for (int i = 0; i < TIMES; i++) {
		link_set(false);
		told(ctx, IBV_EVENT_PORT_ERR, IBV_PORT_DOWN);
		link_set(true);
		told(ctx, IBV_EVENT_PORT_ACTIVE, IBV_PORT_ACTIVE);
	}
	return ibv_close_device(ctx);
}
