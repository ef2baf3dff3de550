// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Finding and reading the looking pages. A page is one of the open files of its owner;
 * who may open that file is decided by the system, as it does for a debugger that only
 * reads. A process that ends meanwhile is just not there.
 */
#include "look.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_NAME "/memfd:" MUSTER_LOOK_NAME " "

enum { READ_TRIES = 20 };	/* of what is being written while it is read */

/* ---- one page ---------------------------------------------------------------------- */

/* A record whose seq is even and the same before and after; else the last that was seen. */
static bool record_read(int fd, off_t at, size_t bytes, size_t seq_at, void *record)
{
	for (int i = 0; i < READ_TRIES; i++) {
		uint32_t before, after;

		if (pread(fd, record, bytes, at) != (ssize_t)bytes ||
		    pread(fd, &after, sizeof(after), at + (off_t)seq_at) != sizeof(after))
			return false;
		memcpy(&before, (char *)record + seq_at, sizeof(before));
		if (before == after && before % 2 == 0)
			break;
	}
	return true;
}

static bool comms_read(struct look *look, int fd)
{
	struct muster_look *page = look->page;

	for (uint32_t i = 0; i < page->nr_comms; i++)
		if (!record_read(fd, (off_t)offsetof(struct muster_look, comms[i]),
				 sizeof(page->comms[i]), 0, &page->comms[i]))
			return false;
	return true;
}

static void texts_end(struct muster_look *page)
{
	page->device[sizeof(page->device) - 1] = '\0';
	page->wire[sizeof(page->wire) - 1] = '\0';
}

enum page_kind { PAGE_NONE, PAGE_GOOD, PAGE_OTHER, PAGE_NO_MEMORY };

static enum page_kind page_read(struct look *look, int fd)
{
	const size_t head = offsetof(struct muster_look, comms);
	struct muster_look first;
	size_t bytes;

	if (!record_read(fd, 0, head, offsetof(struct muster_look, seq), &first) ||
	    first.magic != MUSTER_LOOK_MAGIC)
		return PAGE_NONE;
	if (first.version != MUSTER_LOOK_VERSION)
		return PAGE_OTHER;
	if (!first.size || first.size > MUSTER_MEMBERS_MAX || first.rank >= first.size ||
	    first.nr_comms > MUSTER_LOOK_COMMS_MAX)
		return PAGE_NONE;
	bytes = head + first.nr_comms * sizeof(struct muster_look_comm);
	look->page = malloc(bytes);
	if (!look->page)
		return PAGE_NO_MEMORY;
	memcpy(look->page, &first, head);
	texts_end(look->page);
	if (comms_read(look, fd))
		return PAGE_GOOD;
	free(look->page);
	return PAGE_NONE;
}

/* It may have any letters, of which the kernel keeps the first bytes alone. */
static void name_set(struct look *look, const char *name, size_t bytes)
{
	size_t len = 0;

	for (; len < bytes && len < sizeof(look->command) - 1 && name[len]; len++)
		look->command[len] = isgraph((unsigned char)name[len]) ? name[len] : '?';
	look->command[len] = '\0';
}

/* State and name; the name is in brackets and may have any letters. */
static void process_read(struct look *look)
{
	char path[64], text[512];
	char *open, *close;
	FILE *file;
	size_t len;

	look->state = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)look->pid);
	file = fopen(path, "re");
	if (!file)
		return;
	len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = '\0';
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open || !close[1])
		return;
	look->state = close[2];
	if (look->page->copied_us)
		name_set(look, look->page->command, sizeof(look->page->command));
	else
		name_set(look, open + 1, (size_t)(close - open - 1));
}

/* ---- all processes ------------------------------------------------------------------- */

static int look_add(struct looks *looks, const struct look *look)
{
	struct look *more = realloc(looks->looks, (looks->nr + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	looks->looks = more;
	more[looks->nr++] = *look;
	return 0;
}

static int file_look(struct looks *looks, pid_t pid, const char *path)
{
	struct look look = { .pid = pid };
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	enum page_kind kind;

	if (fd < 0)
		return 0;
	kind = page_read(&look, fd);
	close(fd);
	looks->nr_other_version += kind == PAGE_OTHER;
	if (kind != PAGE_GOOD)
		return kind == PAGE_NO_MEMORY ? -ENOMEM : 0;
	snprintf(look.path, sizeof(look.path), "%s", path);
	process_read(&look);
	err = look_add(looks, &look);
	if (err)
		free(look.page);
	return err;
}

static int process_look(struct looks *looks, pid_t pid)
{
	char folder[32], path[64], name[sizeof(LINK_NAME)] = "";
	const struct dirent *entry;
	DIR *files;
	int err = 0;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	files = opendir(folder);
	if (!files)
		return 0;	/* not ours to look into, or gone */
	while (!err && (entry = readdir(files))) {
		snprintf(path, sizeof(path), "%s/%d", folder, atoi(entry->d_name));
		if (readlink(path, name, sizeof(name) - 1) == sizeof(name) - 1 &&
		    !strcmp(name, LINK_NAME))
			err = file_look(looks, pid, path);
	}
	closedir(files);
	return err;
}

static bool is_owner(const struct look *look)
{
	const struct muster_look *page = look->page;

	return (page->copied_us ? page->copied_by : page->pid) == (uint32_t)look->pid;
}

/*
 * Children that a rank has forked have its files, too, and so have for a moment those who look,
 * as we do: the owner's is the one that counts.
 */
static bool is_better(const struct look *a, const struct look *b)
{
	return is_owner(a) && !is_owner(b);
}

static int by_job_and_rank(const void *one, const void *other)
{
	const struct look *a = one, *b = other;

	if (a->page->job_name != b->page->job_name)
		return a->page->job_name < b->page->job_name ? -1 : 1;
	if (a->page->rank != b->page->rank)
		return a->page->rank < b->page->rank ? -1 : 1;
	return is_better(b, a) - is_better(a, b);
}

static bool is_same_rank(const struct look *a, const struct look *b)
{
	return a->page->job_name == b->page->job_name && a->page->rank == b->page->rank;
}

static void sort_out(struct looks *looks)
{
	uint32_t nr = 0;

	if (looks->nr)
		qsort(looks->looks, looks->nr, sizeof(*looks->looks), by_job_and_rank);
	for (uint32_t i = 0; i < looks->nr; i++) {
		if (nr && is_same_rank(&looks->looks[nr - 1], &looks->looks[i]))
			free(looks->looks[i].page);
		else
			looks->looks[nr++] = looks->looks[i];
	}
	looks->nr = nr;
}

static int job_add(struct looks *looks, struct look *look)
{
	struct look_job *more = realloc(looks->jobs, (looks->nr_jobs + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	looks->jobs = more;
	more[looks->nr_jobs] = (struct look_job){
		.name = look->page->job_name, .size = look->page->size,
		.ranks = calloc(look->page->size, sizeof(*more->ranks)),
	};
	return more[looks->nr_jobs++].ranks ? 0 : -ENOMEM;
}

static int jobs_make(struct looks *looks)
{
	struct look_job *job = NULL;

	for (uint32_t i = 0; i < looks->nr; i++) {
		struct look *look = &looks->looks[i];

		if (!job || job->name != look->page->job_name) {
			if (job_add(looks, look))
				return -ENOMEM;
			job = &looks->jobs[looks->nr_jobs - 1];
		}
		if (look->page->rank >= job->size)
			continue;
		job->ranks[look->page->rank] = look;
		job->nr++;
	}
	return 0;
}

int looks_read(struct looks *looks)
{
	const struct dirent *entry;
	DIR *all = opendir("/proc");
	int err = 0;

	*looks = (struct looks){ 0 };
	if (!all)
		return -errno;
	while (!err && (entry = readdir(all)))
		if (isdigit((unsigned char)*entry->d_name))
			err = process_look(looks, (pid_t)atoi(entry->d_name));
	closedir(all);
	sort_out(looks);
	if (!err)
		err = jobs_make(looks);
	if (err)
		looks_free(looks);
	return err;
}

void looks_free(struct looks *looks)
{
	for (uint32_t i = 0; i < looks->nr; i++)
		free(looks->looks[i].page);
	for (uint32_t i = 0; i < looks->nr_jobs; i++)
		free(looks->jobs[i].ranks);
	free(looks->looks);
	free(looks->jobs);
	*looks = (struct looks){ 0 };
}

/* ---- questions --------------------------------------------------------------------------- */

static const char *state_words(char state)
{
	switch (state) {
	case 'R': return ", running";
	case 'D': return ", waiting for a disk or the like";
	case 'Z': case 'X': return ", dead";
	default: return ", sleeping elsewhere";
	}
}

struct look_name look_name(const struct look *look, bool with_state)
{
	struct look_name name;

	if (look->page->copied_us)
		snprintf(name.text, sizeof(name.text), "pid %u in the guest of node %u",
			 look->page->pid, look->page->node);
	else
		snprintf(name.text, sizeof(name.text), "pid %d%s", (int)look->pid,
			 with_state ? state_words(look->state) : "");
	return name;
}

const struct muster_look_comm *look_comm_of(const struct look *look, uint32_t context)
{
	for (uint32_t i = 0; i < look->page->nr_comms; i++)
		if (look->page->comms[i].used && look->page->comms[i].context == context)
			return &look->page->comms[i];
	return NULL;
}

static bool is_same_comm(const struct muster_look_comm *a, const struct muster_look_comm *b)
{
	return a->context == b->context && a->life == b->life && a->lead == b->lead;
}

const struct muster_look_comm *look_comm(const struct look *look,
					 const struct muster_look_comm *same)
{
	const struct muster_look_comm *comm = look_comm_of(look, same->context);

	return comm && is_same_comm(comm, same) ? comm : NULL;
}

const struct muster_look_comm *look_comm_closed(const struct look *look,
						const struct muster_look_comm *same)
{
	for (uint32_t i = 0; i < look->page->nr_comms; i++) {
		const struct muster_look_comm *comm = &look->page->comms[i];

		if (!comm->used && comm->size && is_same_comm(comm, same))
			return comm;
	}
	return NULL;
}
