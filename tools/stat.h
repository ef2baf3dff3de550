/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of muster_stat share: muster_stat.c (options and tables), stat_ranks.c (jobs,
 * ranks and communicators, of their looking pages), stat_devices.c (devices) and stat_taken.c (what is
 * taken of NICs). A sample is what was there at one time; a report is JSON of one sample, with rates since the one before, or since
 * the beginning.
 */
#ifndef MUSTER_STAT_H
#define MUSTER_STAT_H

#include <stdint.h>

#include "diag.h"
#include "look.h"

enum { STAT_COUNTERS_MAX = 64, STAT_UNITS_MAX = 16 };

/* What there are few of, under the driver's name for it. */
struct stat_unit {
	char name[16];
	uint32_t used, max;
};

/* A process as a member of a job. */
struct stat_member {
	uint32_t uid, job, contexts;
};

/* What is taken of a NIC, as its driver's netlink family tells; nothing where there is none. */
struct stat_taken {
	bool known;
	uint32_t index;		/* as netlink has it */
	uint32_t incarnation;
	uint32_t nr_units;
	struct stat_unit units[STAT_UNITS_MAX];
	uint32_t buffers;
	uint64_t buffer_bytes;
	uint32_t nr_members;	/* that we may see */
	struct stat_member *members;
};

/* A NIC's counters, under the driver's names. */
struct stat_nic {
	struct muster_sysfs_nic nic;
	struct stat_taken taken;
	uint64_t node;
	char why[128];		/* not empty: they could not be read */
	uint32_t nr;
	struct {
		char name[32];
		uint64_t value;
	} counters[STAT_COUNTERS_MAX];
};

struct stat_sample {
	uint64_t at_us;
	struct looks looks;
	struct stat_nic nics[DIAG_NICS_MAX];
	uint32_t nr_nics;
};

/* What is asked for; NULL: all. */
struct stat_filter {
	const char *device;
	const char *job;
};

/* stat_devices.c */
void stat_nics_read(struct stat_sample *sample);
json_t *stat_devices(const struct stat_sample *now, const struct stat_sample *before,
		     const struct stat_filter *filter, const json_t *ranks);

/* stat_taken.c */
void stat_taken_read(struct stat_sample *sample);
void stat_taken_free(struct stat_sample *sample);
/** stat_taken_json() - what is taken of a NIC, for "taken"; null where it is not known. */
json_t *stat_taken_json(const struct stat_taken *taken);

/* stat_ranks.c */
json_t *stat_ranks(const struct stat_sample *now, const struct stat_sample *before,
		   const struct stat_filter *filter);
json_t *stat_jobs(const json_t *ranks);

/** stat_set_rate() - a count's growth by the second; null where no time has passed. */
void stat_set_rate(json_t *object, const char *key, double more, double seconds);

#endif /* MUSTER_STAT_H */
