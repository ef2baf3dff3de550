// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices: a NIC's counters as its driver shows them to everybody, whatever they are; and the
 * local device, which is the sum of the ranks that one may look into.
 */
#include "stat.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTERS "class/infiniband/%s/ports/1/hw_counters"

/* ---- reading ------------------------------------------------------------------------- */

static void counter_read(struct stat_nic *nic, const char *name)
{
	char line[32];
	int err = muster_sysfs_read(MUSTER_SYSFS, line, sizeof(line), COUNTERS "/%s", nic->nic.name, name);

	if (err && !nic->why[0])
		snprintf(nic->why, sizeof(nic->why), "its counters cannot be read: %s", strerror(-err));
	if (err || nic->nr == STAT_COUNTERS_MAX)
		return;
	snprintf(nic->counters[nic->nr].name, sizeof(nic->counters->name), "%.31s", name);
	nic->counters[nic->nr++].value = strtoull(line, NULL, 10);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_counter(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strcmp(entry->d_name, "lifespan");
}

static void nic_read(struct stat_nic *nic)
{
	char path[256], line[64];
	struct dirent **entries;
	int nr;

	if (!nic->nic.name[0]) {
		snprintf(nic->why, sizeof(nic->why), "%s", nic->nic.driver[0] ?
			 "it is being reset, or dmesg says why it is not up" : "no driver has it");
		return;
	}
	/* The last 24 bits of its GUID are its node. */
	muster_sysfs_read(MUSTER_SYSFS, line, sizeof(line), "class/infiniband/%s/node_guid", nic->nic.name);
	if (strlen(line) == 19)
		nic->node = (strtoul(line + 10, NULL, 16) & 0xff) << 16 | strtoul(line + 15, NULL, 16);
	snprintf(path, sizeof(path), MUSTER_SYSFS "/" COUNTERS, nic->nic.name);
	nr = scandir(path, &entries, is_counter, by_name);
	if (nr < 0)
		snprintf(nic->why, sizeof(nic->why), "its driver shows no counters");
	for (int i = 0; i < nr; i++) {
		counter_read(nic, entries[i]->d_name);
		free(entries[i]);
	}
	if (nr >= 0)
		free(entries);
}

void stat_nics_read(struct stat_sample *sample)
{
	struct muster_sysfs_nic nics[DIAG_NICS_MAX];
	unsigned int nr = muster_sysfs_nics(MUSTER_SYSFS, nics, DIAG_NICS_MAX);

	sample->nr_nics = nr < DIAG_NICS_MAX ? nr : DIAG_NICS_MAX;
	for (unsigned int i = 0; i < sample->nr_nics; i++) {
		sample->nics[i] = (struct stat_nic){ .nic = nics[i] };
		nic_read(&sample->nics[i]);
	}
	stat_taken_read(sample);
}

/* ---- a report ------------------------------------------------------------------------ */

static const struct stat_nic *nic_before(const struct stat_sample *before, const struct stat_nic *nic)
{
	for (uint32_t i = 0; before && i < before->nr_nics; i++)
		if (!strcmp(before->nics[i].nic.pci, nic->nic.pci) && !before->nics[i].why[0])
			return &before->nics[i];
	return NULL;
}

static bool counter_find(const struct stat_nic *nic, const char *name, uint64_t *value)
{
	for (uint32_t i = 0; nic && i < nic->nr; i++)
		if (!strcmp(nic->counters[i].name, name)) {
			*value = nic->counters[i].value;
			return true;
		}
	return false;
}

/* A reset begins at 0: what is there now has come since then, all of it. */
static bool is_reset(const struct stat_nic *nic, const struct stat_nic *before)
{
	uint64_t value;

	for (uint32_t i = 0; before && i < nic->nr; i++)
		if (counter_find(before, nic->counters[i].name, &value) &&
		    nic->counters[i].value < value)
			return true;
	return false;
}

static void set_nic_rate(json_t *device, const char *key, const struct stat_nic *nic,
			 const struct stat_nic *before, const char *name, double unit, double seconds)
{
	uint64_t now = 0, then = 0;

	if (!counter_find(nic, name, &now) || !before) {
		diag_set(device, key, json_null());
		return;
	}
	if (!is_reset(nic, before))
		counter_find(before, name, &then);
	stat_set_rate(device, key, (double)(now - then) / unit, seconds);
}

static json_t *nic_counters(const struct stat_nic *nic)
{
	json_t *counters = json_object();

	for (uint32_t i = 0; i < nic->nr; i++)
		diag_set(counters, nic->counters[i].name,
			 json_integer((json_int_t)nic->counters[i].value));
	return counters;
}

/* Of the ranks of a device: how many, and of how many jobs; they come by job. */
static void set_users(json_t *device, const json_t *ranks, const char *kind, json_int_t node)
{
	const char *last = "", *name;
	json_t *rank;
	size_t i;
	int jobs = 0, nr = 0;

	json_array_foreach(ranks, i, rank) {
		if (strcmp(json_string_value(json_object_get(rank, "device")), kind) ||
		    (node >= 0 && json_integer_value(json_object_get(rank, "node")) != node))
			continue;
		name = json_string_value(json_object_get(rank, "job"));
		jobs += strcmp(name, last) != 0;
		last = name;
		nr++;
	}
	diag_set(device, "jobs", json_integer(jobs));
	diag_set(device, "ranks", json_integer(nr));
}

static json_t *nic_json(const struct stat_nic *nic, const struct stat_nic *before, double seconds,
			const json_t *ranks)
{
	json_t *device = json_object();
	uint64_t dropped;

	diag_set_text(device, "device", nic->nic.name[0] ? nic->nic.name : nic->nic.pci);
	set_users(device, ranks, "verbs", (json_int_t)nic->node);
	set_nic_rate(device, "packets_in_per_s", nic, before, "packets_in", 1, seconds);
	set_nic_rate(device, "packets_out_per_s", nic, before, "packets_out", 1, seconds);
	set_nic_rate(device, "mb_in_per_s", nic, before, "bytes_in", 1e6, seconds);
	set_nic_rate(device, "mb_out_per_s", nic, before, "bytes_out", 1e6, seconds);
	diag_set(device, "dropped", counter_find(nic, "dropped", &dropped) ?
		 json_integer((json_int_t)dropped) : json_null());
	diag_set(device, "note", nic->why[0] ? json_string(nic->why) :
		 is_reset(nic, before) ? json_string("it was reset meanwhile") : json_null());
	diag_set(device, "taken", stat_taken_json(&nic->taken));
	diag_set(device, "counters", nic_counters(nic));
	return device;
}

static void add_up(json_t *device, const char *key, const json_t *ranks)
{
	double sum = 0;
	json_t *rank;
	size_t i;

	json_array_foreach(ranks, i, rank)
		sum += json_number_value(json_object_get(rank, key));
	diag_set(device, key, !strcmp(key, "dropped") ? json_integer((json_int_t)sum) : json_real(sum));
}

static json_t *local_json(const json_t *ranks)
{
	static const char *const sums[] = {
		"packets_in_per_s", "packets_out_per_s", "mb_in_per_s", "mb_out_per_s", "dropped",
	};
	json_t *device = json_object();

	diag_set_text(device, "device", "local");
	set_users(device, ranks, "local", -1);
	for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++)
		add_up(device, sums[i], ranks);
	diag_set(device, "note", json_null());
	return device;
}

json_t *stat_devices(const struct stat_sample *now, const struct stat_sample *before,
		     const struct stat_filter *filter, const json_t *ranks)
{
	double seconds = before ? (double)(now->at_us - before->at_us) / 1e6 : 0;
	json_t *devices = json_array();

	if (!filter->device || !strcmp(filter->device, "local"))
		json_array_append_new(devices, local_json(ranks));
	for (uint32_t i = 0; i < now->nr_nics; i++) {
		const struct stat_nic *nic = &now->nics[i];

		if (!filter->device || !strcmp(filter->device, nic->nic.name) ||
		    !strcmp(filter->device, nic->nic.pci))
			json_array_append_new(devices, nic_json(nic, nic_before(before, nic), seconds,
								ranks));
	}
	return devices;
}
