// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * devlink: what the function is, and its health. A device that was fenced for a reason is
 * reported, with what was known of it then as the dump. devlink has it brought back at once,
 * unless the administrator keeps that to himself (auto_recover false). That a life does not
 * begin is no new report: main.c tries again until one does.
 *
 * Locks: devlink's own are taken before fn->life, never after it.
 */
#include "muster.h"

#include <net/devlink.h>

static struct muster_function *function_of(struct devlink *devlink)
{
	return *(struct muster_function **)devlink_priv(devlink);
}

static int info_get(struct devlink *devlink, struct devlink_info_req *req,
		    struct netlink_ext_ack *extack)
{
	struct muster_function *fn = function_of(devlink);
	char text[20];
	int err;

	err = MUSTER_DRIVER_NAME_PUT(req);
	if (err)
		return err;
	snprintf(text, sizeof(text), "node-%u", readl(fn->regs + MUSTER_REG_NODE));
	err = devlink_info_serial_number_put(req, text);
	if (err)
		return err;
	snprintf(text, sizeof(text), "%u", readl(fn->regs + MUSTER_REG_VERSION));
	err = devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW, text);
	if (err)
		return err;
	snprintf(text, sizeof(text), "%u", MUSTER_ABI_VERSION);
	return devlink_info_version_running_put(req, "driver.abi", text);
}

static const struct devlink_ops devlink_ops = {
	.info_get = info_get,
};

/* What the message has no room for is left out: older kernels say so, newer ones remember it. */
static int dump(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg, void *context,
		struct netlink_ext_ack *extack)
{
	struct muster_function *fn = devlink_health_reporter_priv(reporter);
	struct muster_fault fault;

	mutex_lock(&fn->life);
	fault = fn->fault;
	mutex_unlock(&fn->life);
	devlink_fmsg_string_pair_put(fmsg, "why", fault.why ?: "nothing has happened");
	devlink_fmsg_u32_pair_put(fmsg, "incarnation", fault.incarnation);
	devlink_fmsg_u32_pair_put(fmsg, "status", fault.status);
	devlink_fmsg_u32_pair_put(fmsg, "commands", fault.commands);
	devlink_fmsg_u32_pair_put(fmsg, "last_opcode", fault.opcode);
	devlink_fmsg_bool_pair_put(fmsg, "last_answered", fault.answered);
	devlink_fmsg_u32_pair_put(fmsg, "events", fault.events);
	devlink_fmsg_u32_pair_put(fmsg, "vps", fault.vps);
	devlink_fmsg_u32_pair_put(fmsg, "cqs", fault.cqs);
	devlink_fmsg_u32_pair_put(fmsg, "contexts", fault.contexts);
	return 0;
}

static int diagnose(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
		    struct netlink_ext_ack *extack)
{
	struct muster_function *fn = devlink_health_reporter_priv(reporter);
	const char *state = "down";

	mutex_lock(&fn->life);
	if (fn->dev)
		state = READ_ONCE(fn->dev->fenced) ? "fenced" : "up";
	devlink_fmsg_string_pair_put(fmsg, "state", state);
	devlink_fmsg_u32_pair_put(fmsg, "incarnation", fn->dev ? fn->dev->incarnation : 0);
	devlink_fmsg_u32_pair_put(fmsg, "lives", fn->lives);
	mutex_unlock(&fn->life);
	return 0;
}

static int bring_back(struct devlink_health_reporter *reporter, void *context,
		      struct netlink_ext_ack *extack)
{
	return muster_function_recover(devlink_health_reporter_priv(reporter));
}

static int test(struct devlink_health_reporter *reporter, struct netlink_ext_ack *extack)
{
	struct muster_function *fn = devlink_health_reporter_priv(reporter);
	int err = -ENODEV;

	mutex_lock(&fn->life);
	if (fn->dev) {
		muster_dev_fence(fn->dev, "a test of the health reporter");
		err = 0;
	}
	mutex_unlock(&fn->life);
	return err;
}

static const struct devlink_health_reporter_ops reporter_ops = {
	.name = "device",
	.dump = dump,
	.diagnose = diagnose,
	.recover = bring_back,
	.test = test,
};

int muster_health_open(struct muster_function *fn)
{
	fn->devlink = devlink_alloc(&devlink_ops, sizeof(fn), &fn->pdev->dev);
	if (!fn->devlink)
		return -ENOMEM;
	*(struct muster_function **)devlink_priv(fn->devlink) = fn;
	fn->reporter = devlink_health_reporter_create(fn->devlink, &reporter_ops, 0, fn);
	if (IS_ERR(fn->reporter)) {
		devlink_free(fn->devlink);
		return PTR_ERR(fn->reporter);
	}
	devlink_register(fn->devlink);
	return 0;
}

/* Nobody reports any more; nobody asks afterwards. */
void muster_health_close(struct muster_function *fn)
{
	devlink_unregister(fn->devlink);
	devlink_health_reporter_destroy(fn->reporter);
	devlink_free(fn->devlink);
}

/* The device was fenced for fn->fault's reason. Not under fn->life. */
void muster_health_lost(struct muster_function *fn)
{
	devlink_health_report(fn->reporter, fn->fault.why, fn);
}

/* It is up again, and not because devlink wanted it. */
void muster_health_recovered(struct muster_function *fn)
{
	devlink_health_reporter_state_update(fn->reporter, DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
}
