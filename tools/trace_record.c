// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_trace record: has ranks write trace records, reads their rings while they do, and
 * writes what came to a file (trace_file.h). It starts a command and follows the job that
 * comes of it, or attaches to one that runs. Ranks never wait for it: what it is too slow
 * for is lost, counted and said.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "look.h"
#include "ticks.h"
#include "trace.h"
#include "trace_file.h"

enum {
	POLL_US = 2000,			/* between two readings of the rings */
	SCANS_EVERY = 25,		/* of these, a look for ranks and communicators */
	RECORDS_MAX = 1 << 20,		/* of a rank, by default */
	SECONDS_MAX = 1000000,
};

static const char help[] =
	"Usage: muster_trace record [OPTION]... COMMAND [ARGUMENT]...\n"
	"   or: muster_trace record [OPTION]... --pid=PID\n"
	"Records what the ranks of a job do, into a file that Perfetto opens (ui.perfetto.dev)\n"
	"and muster_trace report reads.\n"
	"  -o, --output=FILE   (trace.json)\n"
	"  -p, --pid=PID       the running job that this process is a rank of\n"
	"  -t, --time=SECONDS  how long; by default to the command's end, or 1 with --pid\n"
	"  -n, --records=N     at most, of a rank (1048576); 32 bytes of memory each\n"
	"  -h, --help\n";

static const struct option long_options[] = {
	{ "output", required_argument, NULL, 'o' }, { "pid", required_argument, NULL, 'p' },
	{ "time", required_argument, NULL, 't' }, { "records", required_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' }, { 0 },
};

static struct {
	const char *output;
	pid_t pid;
	double seconds;
	size_t records;
} options;

static volatile sig_atomic_t stopped;

static double number(const char *text, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (!*text || *end || !(value > 0) || value > max)
		errx(2, "%s: a number above 0, up to %.0f, is wanted", text, max);
	return value;
}

static void read_options(int argc, char **argv)
{
	int option;

	options.output = "trace.json";
	options.records = RECORDS_MAX;
	optind = 1;
	while ((option = getopt_long(argc, argv, "+o:p:t:n:h", long_options, NULL)) != -1)
		switch (option) {
		case 'o': options.output = optarg; break;
		case 'p': options.pid = (pid_t)number(optarg, INT32_MAX); break;
		case 't': options.seconds = number(optarg, SECONDS_MAX); break;
		case 'n': options.records = (size_t)number(optarg, 1 << 30); break;
		case 'h': fputs(help, stdout); exit(0);
		default: exit(2);
		}
	if ((optind < argc) == (options.pid != 0))
		errx(2, "record takes either a command or --pid; see muster_trace record --help");
	if (options.pid && !(options.seconds > 0))
		options.seconds = 1;
}

static uint64_t now_ns(void)
{
	return muster_ticks(MUSTER_TRACE_NS);
}

/* ---- the rings ------------------------------------------------------------------------- */

static void record_keep(struct trace_rank *rank, const struct muster_trace_record *record)
{
	struct muster_trace_record *more;
	size_t max;

	if (rank->nr == rank->max) {
		max = rank->max ? 2 * rank->max : 4096;
		max = max < options.records ? max : options.records;
		more = max > rank->max ? realloc(rank->records, max * sizeof(*more)) : NULL;
		if (!more) {
			rank->lost++;
			return;
		}
		rank->records = more;
		rank->max = max;
	}
	rank->records[rank->nr++] = *record;
}

/* The first record that is not overwritten now; what is below is lost. */
static void skip_lost(struct trace_rank *rank, uint64_t written)
{
	if (written - rank->next <= MUSTER_TRACE_RECORDS - 1)
		return;		/* one may be half written: the next one's place */
	rank->lost += written - (MUSTER_TRACE_RECORDS - 1) - rank->next;
	rank->next = written - (MUSTER_TRACE_RECORDS - 1);
}

static void ring_read(struct trace_rank *rank)
{
	const struct muster_trace *ring = &rank->file->trace;
	uint64_t written = __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE);

	while (rank->next < written) {
		struct muster_trace_record record =
			ring->records[rank->next % MUSTER_TRACE_RECORDS];
		uint64_t before = rank->next;

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		skip_lost(rank, __atomic_load_n(&ring->written, __ATOMIC_RELAXED));
		if (rank->next != before)
			continue;	/* it was overwritten while it was read */
		rank->next++;
		record_keep(rank, &record);
	}
}

static void rings_read(struct trace *trace)
{
	for (uint32_t rank = 0; rank < trace->size; rank++)
		if (trace->ranks[rank].file)
			ring_read(&trace->ranks[rank]);
}

/* This process goes on with it; who was too late with that begins anew. */
static void lease_renew(struct muster_trace *ring)
{
	ring->until = muster_ticks(ring->clock) + MUSTER_TRACE_LEASE;
	__atomic_store_n(&ring->on, 1, __ATOMIC_RELEASE);
}

static void leases_renew(struct trace *trace)
{
	for (uint32_t rank = 0; rank < trace->size; rank++)
		if (trace->ranks[rank].file)
			lease_renew(&trace->ranks[rank].file->trace);
}

/* A page that is shorter than it should be would be a fault when it is read. */
static struct muster_look_file *map(const char *path)
{
	struct muster_look_file *file = MAP_FAILED;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd >= 0 && lseek(fd, 0, SEEK_END) == sizeof(*file))
		file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return file == MAP_FAILED ? NULL : file;
}

static void rank_follow(struct trace_rank *rank, const struct look *look)
{
	rank->file = map(look->path);
	if (!rank->file)
		return;
	rank->pid = look->pid;
	if (options.pid)
		rank->next = rank->file->trace.written;	/* what is older is not asked for */
	lease_renew(&rank->file->trace);
}

/* ---- the job ------------------------------------------------------------------------------ */

/* Is it the process, or one of its descendants? */
static bool descends(pid_t pid, pid_t from)
{
	while (pid > 1 && pid != from) {
		char path[64], text[512] = "", *end;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		file = fopen(path, "re");
		if (!file)
			return false;
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
		end = strrchr(text, ')');
		if (!end || sscanf(end + 1, " %*c %d", &pid) != 1)
			return false;
	}
	return pid == from;
}

static bool is_wanted(const struct look_job *job, pid_t child)
{
	for (uint32_t rank = 0; rank < job->size; rank++) {
		const struct look *look = job->ranks[rank];

		if (look && (child ? descends(look->pid, child) : look->pid == options.pid))
			return true;
	}
	return false;
}

static void members_add(struct trace *trace, const struct look *look)
{
	for (uint32_t i = 0; i < look->page->nr_comms; i++) {
		const struct muster_look_comm *comm = &look->page->comms[i];
		const struct trace_member member = {
			comm->context, comm->life, comm->lead, comm->member, look->page->rank,
		};
		struct trace_member *more;
		size_t at = 0;

		while (at < trace->nr_members &&
		       memcmp(&trace->members[at], &member, sizeof(member)))
			at++;
		if (!comm->used || !comm->context || at < trace->nr_members)
			continue;
		more = realloc(trace->members, (at + 1) * sizeof(*more));
		if (!more)
			return;
		trace->members = more;
		more[trace->nr_members++] = member;
	}
}

static void job_follow(struct trace *trace, const struct look_job *job)
{
	if (!trace->ranks) {
		trace->ranks = calloc(job->size, sizeof(*trace->ranks));
		if (!trace->ranks)
			errx(2, "no memory for %u ranks", job->size);
		trace->job = job->name;
		trace->size = job->size;
	}
	for (uint32_t rank = 0; rank < job->size; rank++) {
		if (!job->ranks[rank])
			continue;
		if (!trace->ranks[rank].file)
			rank_follow(&trace->ranks[rank], job->ranks[rank]);
		members_add(trace, job->ranks[rank]);
		strcpy(trace->command, job->ranks[rank]->command);
	}
}

/* The first job that is found is the one. Return: whether it is there. */
static bool scan(struct trace *trace, pid_t child)
{
	struct looks looks;
	bool found = false;

	if (looks_read(&looks))
		return true;	/* or that is not known */
	for (uint32_t i = 0; i < looks.nr_jobs; i++) {
		if (trace->ranks ? trace->job != looks.jobs[i].name ||
				   trace->size != looks.jobs[i].size :
				   !is_wanted(&looks.jobs[i], child))
			continue;
		job_follow(trace, &looks.jobs[i]);
		found = true;
	}
	looks_free(&looks);
	return found;
}

/* Of a job that was not started here: it has ended, or the process that it was to be of has. */
static bool is_over(const struct trace *trace, bool found)
{
	return !found && (trace->ranks || (kill(options.pid, 0) && errno == ESRCH));
}

static void follow(struct trace *trace, pid_t child, int *status)
{
	uint64_t end = options.seconds > 0 ? now_ns() + (uint64_t)(options.seconds * 1e9) : UINT64_MAX;
	bool more = true;

	for (uint32_t turn = 0; more && !stopped && now_ns() < end; turn++) {
		if (child && waitpid(child, status, WNOHANG) == child)
			more = false;
		if (!trace->ranks || turn % SCANS_EVERY == 0)
			more &= !is_over(trace, scan(trace, child)) || child;
		if (trace->ranks) {
			leases_renew(trace);
			rings_read(trace);
		}
		usleep(POLL_US);
	}
	for (uint32_t rank = 0; rank < trace->size; rank++)
		if (trace->ranks[rank].file)
			trace->ranks[rank].file->trace.on = 0;
	if (trace->ranks)
		rings_read(trace);
	if (more && child)
		waitpid(child, status, 0);
}

/* ---- the clock ------------------------------------------------------------------------------ */

/* Both at once, as well as can be. */
struct instant {
	uint64_t ticks;
	uint64_t ns;
};

static struct instant instant_now(void)
{
	const uint32_t clock = muster_ticks_clock();
	struct instant best = { 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		uint64_t before = muster_ticks(clock), ns = now_ns(), after = muster_ticks(clock);

		if (after - before >= least)
			continue;
		least = after - before;
		best = (struct instant){ before + least / 2, ns };
	}
	return best;
}

/* From that clock's time to nanoseconds since the recording began. */
static void rank_convert(struct trace_rank *rank, uint64_t began, double rate)
{
	for (size_t i = 0; i < rank->nr; i++) {
		double since = (double)(int64_t)(rank->records[i].time - began) * rate;

		rank->records[i].time = since > 0 ? (uint64_t)since : 0;
	}
}

static int by_time(const void *one, const void *other)
{
	const struct muster_trace_record *a = one, *b = other;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->kind == MUSTER_TRACE_DONE) - (b->kind == MUSTER_TRACE_DONE);
}

/*
 * Those of this machine have its ticks. Of a guest, those of its NIC and those that the NIC has
 * got from the rank are in one ring, some later than they were.
 */
static void times_convert(struct trace *trace, struct instant from, struct instant to)
{
	double rate = (double)(to.ns - from.ns) / (double)(to.ticks - from.ticks);

	for (uint32_t r = 0; r < trace->size; r++) {
		struct trace_rank *rank = &trace->ranks[r];

		if (!rank->file)
			continue;
		if (rank->file->trace.clock == MUSTER_TRACE_TSC)
			rank_convert(rank, from.ticks, rate);
		else
			rank_convert(rank, from.ns, 1);
		if (rank->file->look.copied_us && rank->nr)
			qsort(rank->records, rank->nr, sizeof(*rank->records), by_time);
	}
}

/* ---- the command ------------------------------------------------------------------------------- */

static void stop(int number_of)
{
	(void)number_of;
	stopped = 1;
}

static pid_t start(char **command)
{
	pid_t child = fork();

	if (child < 0)
		err(2, "no process can be started");
	if (child)
		return child;
	setenv("MUSTER_TRACE", "1", 1);
	execvp(*command, command);
	err(127, "%s", *command);
}

/* Before anything is recorded, so that it is not in vain. What it had stays until then. */
static FILE *file_open(void)
{
	FILE *out = fopen(options.output, "ae");

	if (!out)
		err(2, "%s", options.output);
	return out;
}

/* There is nothing to write: none is left that was not there. */
static void file_leave(FILE *out)
{
	struct stat status;

	if (!fstat(fileno(out), &status) && S_ISREG(status.st_mode) && !status.st_size)
		unlink(options.output);
	fclose(out);
}

static void file_write(const struct trace *trace, FILE *out)
{
	json_t *document = trace_json(trace);
	int failed;

	if (!document)
		errx(2, "no memory for the file");
	if (ftruncate(fileno(out), 0) && errno != EINVAL)	/* as of a pipe */
		err(2, "%s", options.output);
	failed = json_dumpf(document, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(document);
	if (fclose(out) || failed)
		errx(2, "%s: it could not be written", options.output);
}

static void say_what_came(const struct trace *trace)
{
	uint64_t records = 0, lost = 0, ranks = 0;

	for (uint32_t rank = 0; rank < trace->size; rank++) {
		ranks += trace->ranks[rank].pid != 0;
		records += trace->ranks[rank].nr;
		lost += trace->ranks[rank].lost;
	}
	fprintf(stderr, "muster_trace: %llu records of %llu of %u ranks in %s", (unsigned long long)records,
		(unsigned long long)ranks, trace->size, options.output);
	if (lost)
		fprintf(stderr, "; %llu were lost: they came faster than they were read, or there are more than --records",
			(unsigned long long)lost);
	fputc('\n', stderr);
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int trace_record(int argc, char **argv)
{
	struct trace trace = { 0 };
	struct instant from;
	pid_t child = 0;
	int status = 0;
	FILE *out;

	read_options(argc, argv);
	out = file_open();
	from = instant_now();
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	if (optind < argc)
		child = start(&argv[optind]);
	follow(&trace, child, &status);
	if (!trace.ranks) {
		file_leave(out);
		errx(child && status_of(status) ? status_of(status) : 2,
		     "no rank was seen: %s", child ? "the command has started none that you may look into" :
						     "there is no such rank of a job that you may look into");
	}
	times_convert(&trace, from, instant_now());
	file_write(&trace, out);
	say_what_came(&trace);
	return child ? status_of(status) : 0;
}
