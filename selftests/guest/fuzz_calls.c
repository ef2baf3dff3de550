// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs of calls. One begins with nothing but an open file and a domain, and all that it has made is let
 * go of at its end.
 */
#include "fuzz_state.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 3, MAPS = 16 };

static const char *const names[FUZZ_KINDS] = {
	"open", "close", "pd_alloc", "pd_dealloc", "mr_reg", "mr_dereg", "channel", "cq_create",
	"cq_destroy", "cq_arm", "vp_create", "qp_create", "qp_destroy", "qp_modify", "qp_query",
	"job_create", "job_destroy", "context_open", "context_close", "context_abort", "map",
	"unmap", "remap", "protect", "ring", "bell", "query", "command", "ioctl", "fork", "event",
	"srq_create", "srq_destroy", "srq_modify", "srq_query", "cq_create_ex", "cq_moderate", "cq_resize",
	"qp_create_ex", "query_ex", "memory", "context_tree",
};

struct map {
	char *at;			/* NULL: none */
	size_t bytes;
};

struct fuzz_file *fuzz_file;
uint64_t fuzz_bend;

static struct fuzz_file files[FILES];
static struct map maps[MAPS];
static uint32_t nr_maps;
/* What was registered, by this program or by one before. */
static struct memory {
	char *at;			/* NULL: none */
	bool spoilt;
} memories[FUZZ_CALLS_MAX];
static uint32_t nr_memories;		/* of this program */

uint64_t fuzz_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

uint32_t fuzz_odd_number(uint64_t *state)
{
	static const uint32_t odd[] = { 0, 1, 2, 3, 7, 8, 64, 511, 512, 513, 2047, 2048, 4095, 4096,
		4097, 65535, 65536, 1u << 20, INT32_MAX, 1u << 31, UINT32_MAX - 1, UINT32_MAX };
	uint64_t r = fuzz_random(state);

	return r % 4 ? odd[r / 4 % (sizeof(odd) / sizeof(odd[0]))] : r >> 32;
}

struct fuzz_call fuzz_call_new(uint64_t *state)
{
	/* What makes objects comes more often than what takes them away. */
	static const uint8_t likely[] = { PD_ALLOC, MR_REG, CQ_CREATE, VP_CREATE, QP_CREATE, JOB_CREATE,
		CONTEXT_OPEN, MAP, MAP, RING, RING, BELL, QP_MODIFY, SRQ_CREATE, CQ_CREATE_EX, QP_CREATE_EX,
		MEMORY };
	uint64_t r = fuzz_random(state);
	struct fuzz_call call = {
		.kind = r % 2 ? likely[r / 2 % sizeof(likely)] : r / 2 % FUZZ_KINDS,
	};

	for (int i = 0; i < FUZZ_ARGS - 1; i++)
		call.args[i] = fuzz_odd_number(state);
	r = fuzz_random(state);
	call.args[FUZZ_ARGS - 1] = r % 4 ? 0 : r >> 32;
	/* It takes the time of ten others. */
	if (call.kind == FORK && r / 4 % 4)
		call.kind = RING;
	return call;
}

void fuzz_file_close(void)
{
	if (fuzz_file->fd >= 0)
		close(fuzz_file->fd);
	if (fuzz_file->async > 0)
		close(fuzz_file->async);
	fuzz_file->fd = -1;
	fuzz_file->async = 0;
}

/* ---- memory that is registered ----------------------------------------------------------- */

/* With a page on either side that nobody can register. */
char *fuzz_memory_new(void)
{
	struct memory *memory = &memories[nr_memories++];

	if (!memory->at) {
		memory->at = mmap(NULL, FUZZ_MEMORY_BYTES + 2 * FUZZ_PAGE, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory->at == MAP_FAILED)
			_exit(1);
		mprotect(memory->at + FUZZ_PAGE, FUZZ_MEMORY_BYTES, PROT_READ | PROT_WRITE);
	}
	return memory->at + FUZZ_PAGE;
}

/* The kernel tells the driver of it, if the region is watched. */
static void memory_spoil(const uint32_t *args)
{
	struct memory *memory = &memories[args[0] % (nr_memories ? nr_memories : 1)];
	char *at = memory->at + FUZZ_PAGE * (1 + args[1] % (FUZZ_MEMORY_BYTES / FUZZ_PAGE - 1));
	size_t bytes = FUZZ_PAGE * (1 + args[2] % 3);

	if (!nr_memories)
		return;
	memory->spoilt = true;
	switch (args[1] / 64 % 6) {
	case 0:
		munmap(at, bytes);
		break;
	case 1:
		madvise(at, bytes, MADV_DONTNEED);
		break;
	case 2:
		mprotect(at, bytes, args[2] / 4 % 4);
		break;
	case 3:
		mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 4:
		mremap(at, bytes, bytes + FUZZ_PAGE * (args[2] % 2), MREMAP_MAYMOVE);
		break;
	default:
		madvise(at, bytes, MADV_FREE);
	}
}

/* What is left of memory goes that is not as it was. */
static void memories_end(void)
{
	for (; nr_memories; nr_memories--) {
		struct memory *memory = &memories[nr_memories - 1];

		if (!memory->spoilt)
			continue;
		munmap(memory->at, FUZZ_MEMORY_BYTES + 2 * FUZZ_PAGE);
		*memory = (struct memory){ };
	}
}

/* ---- memory that is mapped --------------------------------------------------------------- */

static void map(const uint32_t *args)
{
	uint32_t nr = fuzz_file->nr_offsets < FUZZ_OFFSETS ? fuzz_file->nr_offsets : FUZZ_OFFSETS;
	struct map *to = &maps[nr_maps % MAPS];
	uint64_t offset = (uint64_t)args[0] * FUZZ_PAGE, bytes = FUZZ_PAGE;
	int prot = args[1] % 8 < 6 ? (args[1] % 2 ? PROT_READ : PROT_WRITE) : args[1] / 8 % 8;

	if (nr && args[0] % 8) {
		offset = fuzz_file->offsets[args[0] / 8 % nr].offset;
		bytes = fuzz_file->offsets[args[0] / 8 % nr].bytes;
	}
	if (args[2] % 8 == 0)
		bytes = args[2] % (64 * FUZZ_PAGE);
	if (to->at)
		munmap(to->at, to->bytes);
	to->at = mmap(NULL, bytes, prot, args[2] % 16 == 1 ? MAP_PRIVATE : MAP_SHARED, fuzz_file->fd, offset);
	to->bytes = bytes;
	if (to->at == MAP_FAILED)
		to->at = NULL;
	else
		nr_maps++;
}

static struct map *map_chosen(uint32_t which)
{
	struct map *of = &maps[which % (nr_maps && nr_maps < MAPS ? nr_maps : MAPS)];

	return of->at ? of : NULL;
}

static void unmap(struct map *of, const uint32_t *args)
{
	size_t bytes = args[1] % 2 ? of->bytes : args[1] % 4 * FUZZ_PAGE;

	bytes = bytes < of->bytes ? bytes : of->bytes;
	munmap(of->at, bytes);
	if (bytes >= of->bytes)
		of->at = NULL;
}

static void remap(struct map *of, const uint32_t *args)
{
	size_t bytes = args[1] % 2 ? of->bytes : (args[1] % 8 + 1) * FUZZ_PAGE;
	char *at = mremap(of->at, of->bytes, bytes, args[2] % 2);

	if (at == MAP_FAILED)
		return;
	of->at = at;
	of->bytes = bytes;
}

static sigjmp_buf fault;
static volatile sig_atomic_t may_fault;

static void on_fault(int number)
{
	if (!may_fault)
		signal(number, SIG_DFL);
	else
		siglongjmp(fault, 1);
}

/* A descriptor, or a request, as far as it goes; the rest is odd. Not where the jump comes back to. */
static void __attribute__((noinline)) write_ring(struct map *of, const uint32_t *args)
{
	uint64_t state = ((uint64_t)args[2] << 32 | args[1]) | 1;
	uint32_t *words = (uint32_t *)of->at;
	size_t first = args[0] / 16 % 16 * 32, nr = of->bytes / 4;

	for (size_t i = first; i < first + 64 && i < nr; i++)
		words[i] = fuzz_random(&state) % 2 ? fuzz_random(&state) % 8 : fuzz_odd_number(&state);
}

static void ring(struct map *of, const uint32_t *args)
{
	may_fault = !sigsetjmp(fault, 1);
	if (may_fault)
		write_ring(of, args);
	may_fault = false;
}

static void bell(struct map *of, const uint32_t *args)
{
	may_fault = !sigsetjmp(fault, 1);
	if (may_fault)
		*(volatile uint32_t *)(of->at + args[1] % (of->bytes < FUZZ_PAGE ? 4 : FUZZ_PAGE) / 4 * 4) = args[2];
	may_fault = false;
}

static void forked(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (child > 0)
		waitpid(child, NULL, 0);
}

static void event(void)
{
	struct pollfd fd = { .fd = fuzz_file->async, .events = POLLIN };
	char text[64];

	if (fuzz_file->async > 0 && poll(&fd, 1, 0) == 1 && read(fuzz_file->async, text, sizeof(text)) < 0)
		fuzz_file_close();
}

/* ---- programs ---------------------------------------------------------------------------- */

static void memory_run(const struct fuzz_call *call)
{
	struct map *of = map_chosen(call->args[0]);

	if (!of)
		return;
	switch (call->kind) {
	case UNMAP:
		unmap(of, call->args);
		break;
	case REMAP:
		remap(of, call->args);
		break;
	case PROTECT:
		mprotect(of->at, of->bytes, call->args[1] % 8);
		break;
	case RING:
		ring(of, call->args);
		break;
	case BELL:
		bell(of, call->args);
		break;
	}
}

static void call_run(const struct fuzz_call *call)
{
	fuzz_bend = call->args[FUZZ_ARGS - 1];
	fuzz_file = &files[call->args[2] % 8 ? 0 : call->args[2] / 8 % FILES];
	fuzz_verbs_run(call);
	fuzz_ioctl_run(call);
	switch (call->kind) {
	case MAP:
		map(call->args);
		break;
	case FORK:
		forked();
		break;
	case EVENT:
		event();
		break;
	case MEMORY:
		memory_spoil(call->args);
		break;
	default:
		memory_run(call);
	}
}

void fuzz_program_run(const struct fuzz_program *program)
{
	/* Without a domain there is hardly anything. */
	static const struct fuzz_call begin[] = { { .kind = OPEN }, { .kind = PD_ALLOC } };

	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	for (int i = 0; i < FILES; i++)
		files[i].fd = -1;
	fuzz_bend = 0;
	fuzz_file = &files[0];
	for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		fuzz_verbs_run(&begin[i]);
	for (uint32_t i = 0; i < program->nr; i++)
		call_run(&program->calls[i]);
	for (int i = 0; i < MAPS; i++)
		if (maps[i].at)
			munmap(maps[i].at, maps[i].bytes);
	for (int i = 0; i < FILES; i++) {
		for (uint32_t j = 0; j < files[i].nr_objects[CHANNEL] && j < FUZZ_OBJECTS; j++)
			close(files[i].objects[CHANNEL][j]);
		fuzz_file = &files[i];
		fuzz_file_close();
	}
	memories_end();
	memset(maps, 0, sizeof(maps));
	memset(files, 0, sizeof(files));
	nr_maps = 0;
}

void fuzz_program_print(const struct fuzz_program *program, FILE *to)
{
	for (uint32_t i = 0; i < program->nr; i++) {
		const struct fuzz_call *call = &program->calls[i];

		fprintf(to, "%s %u %u %u %u\n", names[call->kind], call->args[0], call->args[1],
			call->args[2], call->args[3]);
	}
	fprintf(to, "end\n");
}

bool fuzz_program_read(struct fuzz_program *program, FILE *from)
{
	char line[128], name[32];

	program->nr = 0;
	while (fgets(line, sizeof(line), from) && program->nr < FUZZ_CALLS_MAX) {
		struct fuzz_call *call = &program->calls[program->nr];

		if (sscanf(line, "%31s %u %u %u %u", name, &call->args[0], &call->args[1],
			   &call->args[2], &call->args[3]) != 1 + FUZZ_ARGS)
			return program->nr;
		for (call->kind = 0; call->kind < FUZZ_KINDS && strcmp(name, names[call->kind]);)
			call->kind++;
		program->nr += call->kind < FUZZ_KINDS;
	}
	return program->nr;
}
