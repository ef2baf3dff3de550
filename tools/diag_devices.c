// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The devices of this machine, as JSON: what sysfs shows to everybody, and what a NIC says
 * when it is opened. The local device is in every process, and needs nothing.
 */
#include "diag.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "muster_regs.h"
#include "verbs/verbs.h"
#include "version.h"

/* ---- what every device has: the engine -------------------------------------------- */

static const struct {
	uint32_t bit;
	const char *name;
} capabilities[] = {
	{ MUSTER_CAP_WRITE, "write" }, { MUSTER_CAP_PULSES, "pulses" },
	{ MUSTER_CAP_NUMBERS, "numbers" }, { MUSTER_CAP_FORWARD, "forward" },
	{ MUSTER_CAP_KEEP, "keep" }, { MUSTER_CAP_PROGRAM, "program" }, { MUSTER_CAP_TREE, "tree" },
	{ MUSTER_CAP_RAILS, "rails" }, { MUSTER_CAP_WHY, "why" },
	{ MUSTER_CAP_TRACE, "trace" }, { MUSTER_CAP_QP, "qp" },
	{ MUSTER_CAP_VECTOR_NAMES, "vector_names" },
};

static const struct {
	const char *name;
	uint64_t value;
} limits[] = {
	{ "jobs_max", MUSTER_JOBS_MAX }, { "nodes_max", MUSTER_NODES_MAX },
	{ "vps_max", MUSTER_VPS_MAX }, { "slots_max", MUSTER_SLOTS_MAX },
	{ "sources_max", MUSTER_SOURCES_MAX }, { "seq_descs_max", MUSTER_SEQ_DESCS_MAX },
	{ "seq_queue_max", MUSTER_SEQ_QUEUE_MAX }, { "kept_max", MUSTER_KEPT_MAX },
	{ "kept_descs_max", MUSTER_KEPT_DESCS_MAX }, { "program_descs_max", MUSTER_PROGRAM_DESCS_MAX },
	{ "mp_max", MUSTER_MP_MAX }, { "inline_max", MUSTER_INLINE_MAX },
	{ "window", MUSTER_WINDOW }, { "pulse_max", MUSTER_PULSE_MAX },
	{ "write_max", MUSTER_WRITE_MAX }, { "writes_open", MUSTER_WRITES_OPEN },
	{ "pulses_live", MUSTER_PULSES_LIVE }, { "tree_pulses_live", MUSTER_TREE_PULSES_LIVE },
	{ "pulse_count_max", MUSTER_PULSE_COUNT_MAX }, { "numbers_max", MUSTER_NUMBERS_MAX },
	{ "mtu", MUSTER_MTU }, { "units", MUSTER_UNITS }, { "units_max", MUSTER_UNITS_MAX },
	{ "buffer_bytes", MUSTER_BUFFER_BYTES }, { "contexts_max", MUSTER_CONTEXTS_MAX },
	{ "members_max", MUSTER_MEMBERS_MAX },
};

static void add_string(json_t *array, const char *text)
{
	if (json_array_append_new(array, json_string(text))) {
		fprintf(stderr, "no memory for '%s'\n", text);
		exit(1);
	}
}

static json_t *capabilities_json(uint32_t bits)
{
	json_t *array = json_array();

	for (size_t i = 0; i < sizeof(capabilities) / sizeof(*capabilities); i++)
		if (bits & capabilities[i].bit)
			add_string(array, capabilities[i].name);
	return array;
}

#define ADD_NAME(symbol, number, name, ...) add_string(array, name);

static json_t *types_json(void)
{
	json_t *array = json_array();

	MUSTER_DTYPES(ADD_NAME)
	return array;
}

static json_t *operations_json(void)
{
	json_t *array = json_array();

	MUSTER_REDOPS(ADD_NAME)
	return array;
}

static json_t *limits_json(void)
{
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		diag_set(object, limits[i].name, json_integer((json_int_t)limits[i].value));
	return object;
}

static void set_engine(json_t *device, uint32_t bits)
{
	diag_set(device, "capabilities", capabilities_json(bits));
	diag_set(device, "types", types_json());
	diag_set(device, "operations", operations_json());
	diag_set(device, "limits", limits_json());
}

/* ---- the local device ---------------------------------------------------------------- */

static json_t *local_json(void)
{
	static const char *const wires[] = { "ring", "unix", "udp" };
	json_t *device = json_object(), *array = json_array();

	diag_set_text(device, "hca_id", "local");
	diag_set_text(device, "transport", "Muster, in the process");
	diag_set_text(device, "fw_ver", MUSTER_VERSION);
	for (size_t i = 0; i < sizeof(wires) / sizeof(*wires); i++)
		add_string(array, wires[i]);
	diag_set(device, "wires", array);
	set_engine(device, MUSTER_ENGINE_CAPABILITIES);
	return device;
}

/* ---- a NIC --------------------------------------------------------------------------- */

typedef int verbs_query(const char *name, struct muster_verbs_info *info, char *why,
			size_t why_len);

int diag_query(const char *name, struct muster_verbs_info *info, char *why, size_t why_len)
{
	void *symbol;
	int err = muster_verbs_symbol("muster_verbs_query", &symbol, why, why_len);

	return err ? err : ((verbs_query *)symbol)(name, info, why, why_len);
}

/* The kernel's "4: ACTIVE" as ibv_devinfo prints it. */
static void set_state(json_t *port, const char *key, const char *before, const char *name)
{
	char line[64], text[128], *colon;

	muster_sysfs_read(MUSTER_SYSFS, line, sizeof(line), "class/infiniband/%s/ports/1/%s", name, key);
	colon = strstr(line, ": ");
	if (colon)
		*colon = 0;
	snprintf(text, sizeof(text), "%s%s (%s)", before, colon ? colon + 2 : "unknown",
		 colon ? line : "?");
	diag_set_text(port, key, text);
}

static void set_port(json_t *device, const char *name)
{
	json_t *port = json_object(), *ports = json_array();

	diag_set_number(port, "port", 1);
	set_state(port, "state", "PORT_", name);
	set_state(port, "phys_state", "", name);
	diag_set_number(port, "max_mtu", MUSTER_MTU);
	json_array_append_new(ports, port);
	diag_set(device, "ports", ports);
}

/* What the kernel shows to everybody. */
static void set_shown(json_t *device, const char *name)
{
	static const char *const attributes[] = { "fw_ver", "node_guid", "sys_image_guid" };
	char line[128];

	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		muster_sysfs_read(MUSTER_SYSFS, line, sizeof(line), "class/infiniband/%s/%s", name,
				  attributes[i]);
		diag_set_text(device, attributes[i], line);
	}
}

static void set_asked(json_t *device, const struct muster_verbs_info *info)
{
	char text[32];
	json_t *own;

	snprintf(text, sizeof(text), "0x%04x", info->vendor_id);
	diag_set_text(device, "vendor_id", text);
	diag_set_number(device, "vendor_part_id", info->vendor_part_id);
	snprintf(text, sizeof(text), "0x%X", info->hw_ver);
	diag_set_text(device, "hw_ver", text);
	diag_set_number(device, "node", info->node);
	diag_set_number(device, "incarnation", info->incarnation);
	set_engine(device, info->capabilities);
	own = json_object_get(device, "limits");
	diag_set_number(own, "vps_max", info->vps_max);
	diag_set_number(own, "contexts_max", info->contexts_max);
	diag_set_number(own, "dq_entries_max", info->dq_entries_max);
	diag_set_number(own, "rq_entries_max", info->rq_entries_max);
	diag_set_number(own, "cq_entries_max", info->cq_entries_max);
	diag_set_number(own, "cqs_max", info->cqs_max);
	diag_set_number(own, "mrs_max", info->mrs_max);
	diag_set_number(own, "mr_bytes_max", info->mr_bytes_max);
}

int diag_file_opens(const struct muster_sysfs_nic *nic, char *why, size_t why_len)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", nic->uverbs);
	if (!access(path, R_OK | W_OK))
		return 0;
	snprintf(why, why_len, "%s: %s; it is for everybody where rdma-core's udev rules are, or after chmod 666",
		 path, strerror(errno));
	return -errno;
}

/* Or why it cannot be asked, and what to do. */
static int ask(const struct muster_sysfs_nic *nic, struct muster_verbs_info *info, char *why,
	       size_t why_len)
{
	int err = -ENODEV;

	if (!nic->driver[0])
		snprintf(why, why_len, "no driver has it: load muster.ko");
	else if (!nic->name[0])
		snprintf(why, why_len, "its driver has not made it an RDMA device: it is being reset, or dmesg says why");
	else if (!nic->uverbs[0])
		snprintf(why, why_len, "there is no file to open it by: modprobe ib_uverbs");
	else
		err = diag_file_opens(nic, why, why_len);
	return err ? err : diag_query(nic->name, info, why, why_len);
}

static json_t *nic_json(const struct muster_sysfs_nic *nic)
{
	struct muster_verbs_info info;
	char why[DIAG_WHY_BYTES] = "";
	json_t *device = json_object();

	diag_set_text(device, "hca_id", nic->name[0] ? nic->name : nic->pci);
	diag_set_text(device, "transport", "Muster NIC");
	diag_set_text(device, "pci", nic->pci);
	if (nic->driver[0])
		diag_set_text(device, "driver", nic->driver);
	if (nic->name[0])
		set_shown(device, nic->name);
	if (ask(nic, &info, why, sizeof(why)))
		diag_set_text(device, "error", why);
	else
		set_asked(device, &info);
	if (nic->name[0])
		set_port(device, nic->name);
	return device;
}

static bool is_asked_for(const struct muster_sysfs_nic *nic, const char *name)
{
	return !name || !strcmp(name, nic->name) || !strcmp(name, nic->pci);
}

json_t *diag_devices(const char *name)
{
	struct muster_sysfs_nic nics[DIAG_NICS_MAX];
	unsigned int nr = muster_sysfs_nics(MUSTER_SYSFS, nics, DIAG_NICS_MAX);
	json_t *devices = json_array();

	if (!name || !strcmp(name, "local"))
		json_array_append_new(devices, local_json());
	for (unsigned int i = 0; i < nr && i < DIAG_NICS_MAX; i++)
		if (is_asked_for(&nics[i], name))
			json_array_append_new(devices, nic_json(&nics[i]));
	return devices;
}
