// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Jobs, ranks and communicators, as their looking pages show them (muster_look.h): what each
 * has done, how fast, and whom it waits for. Pages are read and not trusted: a number that means
 * nothing is shown as a number.
 */
#include "stat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arith.h"
#include "muster.h"
#include "schedule.h"

/* ---- words ------------------------------------------------------------------------------ */

static const char *const paths[] = { "none", "host", "nic", "switch", "bump" };
static const char *const places[] = { "outside", "waits", "makes", "leaves" };
static const char *const causes[] = {
	"?", "slot", "data", "window", "grant", "wire", "queue", "stream", "credit", "agreement", "bump",
};

#define WORD(words, i) ((i) < sizeof(words) / sizeof(*(words)) ? (words)[i] : "?")

/* A job's, as it is printed and asked for. */
static const char *name_of(uint64_t job, char name[17])
{
	snprintf(name, 17, "%08" PRIx64, job);
	return name;
}

void stat_set_rate(json_t *object, const char *key, double more, double seconds)
{
	diag_set(object, key, seconds > 0 ? json_real(more / seconds) : json_null());
}

static const char *coll_of(const struct muster_look_comm *comm)
{
	return muster_coll_row(comm->signature.coll) ? muster_coll_name(comm->signature.coll) : "?";
}

static double since(uint64_t now_us, uint64_t then_us)
{
	return then_us && now_us > then_us ? (double)(now_us - then_us) / 1e6 : 0;
}

/* ---- communicators ------------------------------------------------------------------------ */

static json_t *wait_json(const struct muster_look_wait *wait, uint8_t path)
{
	bool by_switches = path == MUSTER_PATH_SWITCH && wait->rank == MUSTER_LOOK_NOBODY;
	json_t *json = json_object();

	diag_set(json, "rank", wait->rank == MUSTER_LOOK_NOBODY ? json_null() :
		 json_integer(wait->rank));
	diag_set_text(json, "for", by_switches ? "switches" : WORD(causes, wait->cause));
	return json;
}

/* What its owner has told of the operation that is the oldest now; it tells late, and not of all. */
static json_t *waits_json(const struct muster_look_comm *comm)
{
	json_t *waits = json_array();

	for (uint32_t i = 0; comm->told_us && comm->told == comm->ended && i < comm->waits.nr &&
			     i < MUSTER_LOOK_WAITS_MAX; i++)
		json_array_append_new(waits, wait_json(&comm->waits.waits[i], comm->path));
	return waits;
}

static json_t *operation_json(const struct muster_look_comm *comm, uint64_t now_us)
{
	json_t *json = json_object();

	diag_set_text(json, "collective", coll_of(comm));
	diag_set_number(json, "number", comm->ended);
	diag_set_text(json, "path", WORD(paths, comm->path));
	diag_set_number(json, "bytes", comm->bytes);
	diag_set_number(json, "root", comm->signature.root);
	diag_set(json, "waited_s", json_real(comm->told == comm->ended ?
					     since(now_us, comm->since_us) : 0));
	diag_set(json, "waits", waits_json(comm));
	return json;
}

/* Of the same life; NULL: it was not there. */
static const struct muster_look_comm *comm_before(const struct look *before,
						  const struct muster_look_comm *comm)
{
	const struct muster_look_comm *old = before ? look_comm(before, comm) : NULL;

	return old && comm->ended - old->ended < 1u << 31 ? old : NULL;
}

static double ended_since(const struct look *before, const struct muster_look_comm *comm)
{
	const struct muster_look_comm *old = comm_before(before, comm);

	return (double)(comm->ended - (old ? old->ended : 0));
}

static json_t *comm_json(const struct look *look, const struct look *before,
			 const struct muster_look_comm *comm, uint64_t now_us, double seconds)
{
	json_t *json = json_object();
	char name[17];

	diag_set_text(json, "job", name_of(look->page->job_name, name));
	diag_set_number(json, "rank", look->page->rank);
	diag_set_number(json, "context", comm->context);
	diag_set_number(json, "life", comm->life);
	diag_set_number(json, "lead", comm->lead);
	diag_set_number(json, "member", comm->member);
	diag_set_number(json, "size", comm->size);
	diag_set_number(json, "started", comm->started);
	diag_set_number(json, "ended", comm->ended);
	stat_set_rate(json, "ops_per_s", ended_since(before, comm), seconds);
	diag_set(json, "error", comm->failed ? json_string(strerror((int)comm->failed)) : json_null());
	diag_set(json, "operation", comm->started != comm->ended && !comm->failed ?
		 operation_json(comm, now_us) : json_null());
	return json;
}

static json_t *comms_json(const struct look *look, const struct look *before, uint64_t now_us,
			  double seconds)
{
	json_t *comms = json_array();

	for (uint32_t i = 0; i < look->page->nr_comms; i++)
		if (look->page->comms[i].used)
			json_array_append_new(comms, comm_json(look, before, &look->page->comms[i],
							       now_us, seconds));
	return comms;
}

/* ---- ranks ------------------------------------------------------------------------------- */

#define SET_COUNTER(name, words) diag_set_number(counters, #name, page->counters.name);

static json_t *counters_json(const struct muster_look *page)
{
	json_t *counters = json_object();

	MUSTER_ENGINE_COUNTERS(SET_COUNTER)
	return counters;
}

static uint64_t dropped(const struct muster_engine_counters *c)
{
	return c->drop_malformed + c->drop_stranger + c->drop_duplicate + c->drop_window +
	       c->drop_ring_full;
}

/* Only the local device's engine counts in the page; a NIC counts for all its ports. */
static void set_traffic(json_t *rank, const struct muster_look *page,
			const struct muster_look *before, double seconds)
{
	static const char *const keys[] = {
		"packets_in_per_s", "packets_out_per_s", "mb_in_per_s", "mb_out_per_s", "dropped",
	};
	static const struct muster_engine_counters none;
	const struct muster_engine_counters *now = &page->counters;
	const struct muster_engine_counters *then = before ? &before->counters : &none;

	for (size_t i = 0; strcmp(page->device, "local") && i < sizeof(keys) / sizeof(*keys); i++)
		diag_set(rank, keys[i], json_null());
	if (strcmp(page->device, "local"))
		return;
	stat_set_rate(rank, keys[0], (double)(now->packets_in - then->packets_in), seconds);
	stat_set_rate(rank, keys[1], (double)(now->packets_out - then->packets_out), seconds);
	stat_set_rate(rank, keys[2], (double)(now->bytes_in + now->bytes_referenced - then->bytes_in -
					      then->bytes_referenced) / 1e6, seconds);
	stat_set_rate(rank, keys[3], (double)(now->bytes_out - then->bytes_out) / 1e6, seconds);
	diag_set_number(rank, keys[4], dropped(now));
	diag_set(rank, "counters", counters_json(page));
}

static const struct muster_look_comm *comm_waited_for(const struct look *look)
{
	const struct muster_look_comm *comm = look_comm_of(look, look->page->context);

	return look->page->place == MUSTER_LOOK_WAITS && comm && comm->started != comm->ended ?
	       comm : NULL;
}

static void set_wait(json_t *rank, const struct look *look)
{
	const struct muster_look *page = look->page;
	const struct muster_look_comm *comm = comm_waited_for(look);
	json_t *waits = comm ? waits_json(comm) : json_array();
	char in[96] = "";

	if (comm)
		snprintf(in, sizeof(in), "%s %u of communicator %u", coll_of(comm), comm->ended,
			 comm->context);
	if (page->place == MUSTER_LOOK_MAKES) {
		snprintf(in, sizeof(in), "making a communicator of communicator %u", page->context);
		json_array_append_new(waits, wait_json(&page->wait, MUSTER_PATH_NONE));
	}
	if (page->place == MUSTER_LOOK_LEAVES)
		snprintf(in, sizeof(in), "muster_finalize()");
	diag_set(rank, "in", *in ? json_string(in) : json_null());
	diag_set(rank, "waits", waits);
}

static double ops_of(const struct look *look, const struct look *before)
{
	double ops = 0;

	for (uint32_t i = 0; i < look->page->nr_comms; i++)
		if (look->page->comms[i].used)
			ops += ended_since(before, &look->page->comms[i]);
	return ops;
}

static const struct look *look_before(const struct stat_sample *before, const struct look *look)
{
	for (uint32_t i = 0; before && i < before->looks.nr_jobs; i++) {
		const struct look_job *job = &before->looks.jobs[i];
		const struct look *old;

		if (job->name != look->page->job_name || look->page->rank >= job->size)
			continue;
		old = job->ranks[look->page->rank];
		return old && old->page->began_us == look->page->began_us ? old : NULL;
	}
	return NULL;
}

static json_t *rank_json(const struct stat_sample *now, const struct stat_sample *sample_before,
			 const struct look *look)
{
	const struct look *before = look_before(sample_before, look);
	const struct muster_look *page = look->page;
	double seconds = since(now->at_us, before ? sample_before->at_us : page->began_us);
	char name[17], state[2] = { look->state ? look->state : '-', 0 };
	json_t *rank = json_object();

	diag_set_text(rank, "job", name_of(page->job_name, name));
	diag_set_number(rank, "rank", page->rank);
	diag_set_number(rank, "size", page->size);
	diag_set_number(rank, "pid", (uint64_t)look->pid);
	diag_set_text(rank, "command", look->command);
	diag_set_text(rank, "state", state);
	diag_set_text(rank, "device", page->device);
	diag_set_number(rank, "node", page->node);
	diag_set_number(rank, "vp", page->vp);
	diag_set(rank, "age_s", json_real(since(now->at_us, page->began_us)));
	diag_set_text(rank, "place", WORD(places, page->place));
	stat_set_rate(rank, "ops_per_s", ops_of(look, before), seconds);
	set_traffic(rank, page, before ? before->page : NULL, seconds);
	set_wait(rank, look);
	diag_set(rank, "communicators", comms_json(look, before, now->at_us, seconds));
	return rank;
}

static bool is_asked_for(const struct muster_look *page, const struct stat_filter *filter)
{
	char name[17];

	if (filter->job && strcmp(filter->job, name_of(page->job_name, name)))
		return false;
	return !filter->device || !strcmp(filter->device, "local") == !strcmp(page->device, "local");
}

json_t *stat_ranks(const struct stat_sample *now, const struct stat_sample *before,
		   const struct stat_filter *filter)
{
	json_t *ranks = json_array();

	for (uint32_t i = 0; i < now->looks.nr; i++)
		if (is_asked_for(now->looks.looks[i].page, filter))
			json_array_append_new(ranks, rank_json(now, before, &now->looks.looks[i]));
	return ranks;
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static void add(json_t *job, const char *key, const json_t *rank, const char *of, double weight)
{
	double sum = json_number_value(json_object_get(job, key));

	diag_set(job, key, json_real(sum + weight * json_number_value(json_object_get(rank, of))));
}

/* Its operations are counted once, though all its ranks call them: the mean of those here. */
json_t *stat_jobs(const json_t *ranks)
{
	static const char *const same[] = { "job", "size", "device", "command", "age_s" };
	json_t *jobs = json_array(), *job = NULL, *rank;
	size_t i;

	json_array_foreach(ranks, i, rank) {
		double here;

		if (!job || strcmp(json_string_value(json_object_get(job, "job")),
				   json_string_value(json_object_get(rank, "job")))) {
			job = json_object();
			for (size_t k = 0; k < sizeof(same) / sizeof(*same); k++)
				diag_set(job, same[k], json_incref(json_object_get(rank, same[k])));
			json_array_append_new(jobs, job);
		}
		here = (double)json_integer_value(json_object_get(job, "here"));
		diag_set(job, "here", json_integer((json_int_t)here + 1));
		add(job, "ops_per_s", job, "ops_per_s", here / (here + 1) - 1);
		add(job, "ops_per_s", rank, "ops_per_s", 1 / (here + 1));
		add(job, "mb_per_s", rank, "mb_in_per_s", 1);
		diag_set(job, "waiting", json_integer(json_integer_value(json_object_get(job, "waiting")) +
			 !strcmp(json_string_value(json_object_get(rank, "place")), "waits")));
	}
	return jobs;
}
