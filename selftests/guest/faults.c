// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each step of using the device (fault_steps.c), with its n-th allocation made to fail, for n = 1
 * and on until the step has no n-th one (/proc/self/fail-nth; copies to and from processes fail in
 * their turn, too). Each says so (ENOMEM, EAGAIN, EFAULT) or succeeds, the device lives on, and
 * everything that stands can be taken away again. A process goes on from one n to the next while
 * what it has built stands; where a step is done that is done once, another one begins anew.
 *
 * usage: faults --list | --once | STEP [N]
 *        their names; all of them, nothing fails; one of them, or one try of it
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_steps.h"

enum {
	TRIES_MAX = 100000,
	WRONG = 1,			/* a try's exit status, when it has said what is wrong */
};

/* How often a step said what, of the failures that it met. */
struct said {
	uint32_t nothing, nomem, again, fault, other;
};

/* What the tries have found, for their parent. */
struct found {
	uint32_t n, last;		/* the present try, and the last one that is wanted */
	bool hit;			/* there was an n-th allocation, and it failed */
	int error;			/* of the step: 0 or -errno */
	struct said said;
};

/* What a try leaves of what its process has built. */
enum left { AS_BEFORE, ONE_MORE, UNKNOWN };

static struct found *found;
static int fail_nth = -1;

/* ---- the n-th allocation ------------------------------------------------------------- */

static void arm(uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	if (write(fail_nth, text, strlen(text)) < 0)
		err(WRONG, "/proc/self/fail-nth");
}

/* Whether it has failed. These calls copy to and from this process: it may be them that fail. */
static bool disarm(void)
{
	char left[16] = "";
	bool hit = pread(fail_nth, left, sizeof(left) - 1, 0) > 0 && atoi(left) == 0;

	while (write(fail_nth, "0", 1) < 0)
		if (errno != EFAULT)
			err(WRONG, "/proc/self/fail-nth");
	return hit;
}

static int run_armed(int (*run)(struct world *), struct world *world)
{
	int error;

	arm(found->n);
	error = run(world);
	found->hit = disarm();
	found->error = error;
	return error;
}

/* ---- steps --------------------------------------------------------------------------- */

static void must(int error, const char *what, const char *name)
{
	if (error)
		errx(WRONG, "%s %s, while nothing fails: %s", what, name, strerror(-error));
}

static void prepare(struct world *world, int nr)
{
	if (fault_steps[nr].before)
		must(fault_steps[nr].before(world), "before", fault_steps[nr].name);
}

static void run(struct world *world, int nr)
{
	prepare(world, nr);
	must(fault_steps[nr].run(world), "in", fault_steps[nr].name);
}

static void take_back(struct world *world, int nr)
{
	if (fault_steps[nr].undo)
		must(fault_steps[nr].undo(world), "taking back", fault_steps[nr].name);
}

/* All that a step comes after. */
static void build(struct world *world, int nr)
{
	for (int i = 0; i < nr && !fault_steps[nr].alone; i++)
		run(world, i);
}

static void clear(struct world *world, int nr)
{
	while (nr-- > 0 && !fault_steps[nr + 1].alone)
		take_back(world, nr);
}

/* How many files this process has open, and mappings of the device's. */
static int handles(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	DIR *dir = opendir("/proc/self/fd");
	char line[256];
	int nr = 0;

	if (!maps || !dir)
		err(WRONG, "/proc/self");
	while (fgets(line, sizeof(line), maps))
		nr += !!strstr(line, "/dev/infiniband/");
	while (readdir(dir))
		nr++;
	closedir(dir);
	fclose(maps);
	return nr;
}

static void nothing_left(int before)
{
	int left = handles() - before;

	if (left)
		errx(WRONG, "%d files or mappings are left", left);
}

/* It may have been done, only the word of it did not get through. */
static bool no_word(int error)
{
	return error == -EFAULT || error == -ENOBUFS;
}

/* What has failed is not there. */
static enum left try_run(struct world *world, int nr)
{
	int error;

	prepare(world, nr);
	error = run_armed(fault_steps[nr].run, world);
	if (fault_steps[nr].ends || (fault_steps[nr].unheard && no_word(error)))
		return UNKNOWN;
	if (error)
		return AS_BEFORE;
	take_back(world, nr);
	return fault_steps[nr].once ? ONE_MORE : AS_BEFORE;
}

/* Of which there was no word, it may be that it cannot be done again: the rest goes as with a process that ends. */
static enum left try_undo(struct world *world, int nr)
{
	int error;

	run(world, nr);
	error = run_armed(fault_steps[nr].undo, world);
	if (error && fault_steps[nr].undo(world)) {
		if (no_word(error))
			return UNKNOWN;
		errx(WRONG, "%s cannot be done again", fault_steps[nr].undo_name);
	}
	if (fault_steps[nr].undone)
		must(fault_steps[nr].undone(world), "after", fault_steps[nr].undo_name);
	return AS_BEFORE;
}

static const char *name_of(int nr, bool undo)
{
	return undo ? fault_steps[nr].undo_name : fault_steps[nr].name;
}

static void said_count(int nr, bool undo)
{
	const struct fault_step *step = &fault_steps[nr];
	const int *also = step->also_says;
	struct said *said = &found->said;
	int error = found->error;

	if (!error)
		said->nothing++;
	else if (error == -ENOMEM)
		said->nomem++;
	else if (error == -EAGAIN && step->maps && !undo)
		said->again++;
	else if (error == -EFAULT)
		said->fault++;
	else if (error == also[0] || error == also[1])
		said->other++;
	else
		errx(WRONG, "%s says: %s", name_of(nr, undo), strerror(-error));
}

/* Whether there is another one to come. */
static bool tried(int nr, bool undo)
{
	if (!found->hit)
		return false;
	said_count(nr, undo);
	return found->n++ < found->last;
}

/* From the present one on, as far as one process comes. */
static void try(int nr, bool undo)
{
	int before = handles(), built;
	struct world world = { };
	enum left left;

	build(&world, nr);
	built = handles();
	do {
		left = (undo ? try_undo : try_run)(&world, nr);
		if (left == AS_BEFORE)
			nothing_left(built);
	} while (tried(nr, undo) && left == AS_BEFORE);
	if (left == UNKNOWN)
		return;
	clear(&world, nr);
	nothing_left(before);
}

static void process(int nr, bool undo)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		/* Of this process, not of its parent. */
		fail_nth = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
		if (fail_nth < 0)
			err(WRONG, "/proc/self/fail-nth");
		try(nr, undo);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		err(1, "fork");
	if (status)
		errx(1, "with failure %u of %s (it said: %s) process ended with %#x", found->n,
		     name_of(nr, undo), strerror(-found->error), status);
}

/* ---- all of them --------------------------------------------------------------------- */

static void sweep(int nr, bool undo, uint32_t first, uint32_t last)
{
	found->n = first;
	found->last = last;
	do
		process(nr, undo);
	while (found->hit && found->n <= last);
}

static void sweep_all(int nr, bool undo)
{
	const struct said *said = &found->said;

	sweep(nr, undo, 1, TRIES_MAX);
	if (found->hit || found->error)
		errx(1, "%s: there is no end of failures, or it says without one: %s", name_of(nr, undo),
		     strerror(-found->error));
	printf("# %s: %u failures; it says ENOMEM %u times, EAGAIN %u, EFAULT %u, another %u, and does it %u\n",
	       name_of(nr, undo), found->n - 1, said->nomem, said->again, said->fault, said->other,
	       said->nothing);
}

/* What a process can do with its file, and take back. */
static void once(void)
{
	struct world world = { };
	int nr = 0;

	while (!fault_steps[nr].ends)
		nr++;
	build(&world, nr);
	clear(&world, nr);
}

static void list(void)
{
	for (const struct fault_step *step = fault_steps; step->name; step++) {
		printf("%s\n", step->name);
		if (step->undo_name)
			printf("%s\n", step->undo_name);
	}
}

static void step_find(const char *name, int *nr, bool *undo)
{
	for (*nr = 0; fault_steps[*nr].name; ++*nr) {
		const struct fault_step *step = &fault_steps[*nr];

		*undo = step->undo_name && !strcmp(name, step->undo_name);
		if (*undo || !strcmp(name, step->name))
			return;
	}
	errx(2, "there is no step '%s'", name);
}

int main(int argc, char **argv)
{
	uint32_t n;
	bool undo;
	int nr;

	if (argc < 2 || argc > 3)
		errx(2, "usage: faults --list | --once | STEP [N]");
	found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (found == MAP_FAILED)
		err(1, "mmap");
	if (!strcmp(argv[1], "--list")) {
		list();
		return 0;
	}
	/* Also so that what is read from files is in memory. */
	once();
	if (!strcmp(argv[1], "--once"))
		return 0;
	step_find(argv[1], &nr, &undo);
	if (argc == 2) {
		sweep_all(nr, undo);
		return 0;
	}
	n = strtoul(argv[2], NULL, 0);
	sweep(nr, undo, n, n);
	printf("# %s: %s\n", found->hit ? "failed" : "nothing failed", strerror(-found->error));
	return 0;
}
