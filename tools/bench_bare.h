/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For bench_mpi.c: what two processes can do at best when nothing is between them but the machine. Their
 * memory is private; a block goes from one to the other through shared memory, where one copies it in and the
 * other out, both at once, or with BARE_CMA by the kernel's copies (process_vm_readv(2)). Sums are those of
 * limits.h, of memory that both have.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits.h"

enum {
	CHUNK_BYTES = 128 << 10,	/* of 8 to 512 KiB, 2 to 8 of them, none took clearly less */
	CHUNKS = 4,
};

/* What one side gives the other. */
struct bare_way {
	_Alignas(128) _Atomic uint64_t filled;	/* chunks, of all operations */
	_Alignas(128) _Atomic uint64_t emptied;
	_Alignas(4096) unsigned char chunks[CHUNKS][CHUNK_BYTES];
};

struct bare_block {
	void *at;
	size_t bytes;
};

struct bare_shared {
	struct bare_way ways[2];	/* by who gives */
	pid_t pids[2];
	struct bare_block gives[2], takes[2];
	double values[2][BATCHES_MAX];
};

static int rank;
static pid_t child;
static struct limits limits;
static struct bare_shared *shared;

static void begin(double **in, double **out)
{
	int fd = limits_create(), ret;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (fd < 0 || shared == MAP_FAILED)
		err(1, "shared memory");
	child = fork();
	if (child < 0)
		err(1, "fork");
	rank = child ? 0 : 1;
	shared->pids[rank] = getpid();
	ret = limits_open(&limits, fd, (uint32_t)rank);
	if (ret)
		errx(1, "shared memory: %s", strerror(-ret));
	limit_barrier(&limits);
	*in = limits.in;
	*out = limits.out;
}

static void end(void)
{
	int status;

	if (!child)
		exit(0);
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the other side has failed");
}

static void barrier(void)
{
	limit_barrier(&limits);
}

static void most(double *values, size_t count)
{
	memcpy(shared->values[rank], values, count * sizeof(*values));
	barrier();
	for (size_t i = 0; i < count; i++)
		if (shared->values[!rank][i] > values[i])
			values[i] = shared->values[!rank][i];
	barrier();
}

static void sum(const double *in, double *out, size_t count)
{
	size_t bytes = count * sizeof(*in);

	(void)out;
	if (bytes <= LIMITS_EXCHANGE_MAX)
		limit_exchange(&limits, bytes);
	else
		limit_allreduce(&limits, bytes);
}

#ifdef BARE_CMA
typedef ssize_t copy_fn(pid_t pid, const struct iovec *here, unsigned long nr_here, const struct iovec *there,
			unsigned long nr_there, unsigned long flags);

static void copied(copy_fn *copy, void *here, void *there, size_t bytes)
{
	struct iovec own = { here, bytes }, others = { there, bytes };

	if (copy(shared->pids[!rank], &own, 1, &others, 1, 0) != (ssize_t)bytes)
		err(1, "the kernel's copy of another's memory");
}

/* Each reads what it gets; where one side alone gives, it writes half of it. */
static void swap(struct bare_block give, struct bare_block take)
{
	struct bare_block other;

	shared->gives[rank] = give;
	shared->takes[rank] = take;
	barrier();
	if (take.bytes && give.bytes) {
		copied(process_vm_readv, take.at, shared->gives[!rank].at, take.bytes);
	} else if (take.bytes) {
		copied(process_vm_readv, take.at, shared->gives[!rank].at, take.bytes / 2);
	} else if (give.bytes) {
		other = shared->takes[!rank];
		copied(process_vm_writev, (char *)give.at + give.bytes / 2, (char *)other.at + give.bytes / 2,
		       give.bytes - give.bytes / 2);
	}
	barrier();
}
#else
static size_t chunk_bytes(const struct bare_block *block)
{
	return block->bytes < CHUNK_BYTES ? block->bytes : CHUNK_BYTES;
}

static void advance(struct bare_block *block, size_t bytes)
{
	block->at = (char *)block->at + bytes;
	block->bytes -= bytes;
}

static void swap(struct bare_block give, struct bare_block take)
{
	struct bare_way *to = &shared->ways[rank], *from = &shared->ways[!rank];
	uint64_t filled = to->filled, emptied = from->emptied;
	size_t bytes;

	while (give.bytes || take.bytes) {
		if (give.bytes && filled - atomic_load_explicit(&to->emptied, memory_order_acquire) < CHUNKS) {
			bytes = chunk_bytes(&give);
			memcpy(to->chunks[filled % CHUNKS], give.at, bytes);
			atomic_store_explicit(&to->filled, ++filled, memory_order_release);
			advance(&give, bytes);
		}
		if (take.bytes && atomic_load_explicit(&from->filled, memory_order_acquire) > emptied) {
			bytes = chunk_bytes(&take);
			memcpy(take.at, from->chunks[emptied % CHUNKS], bytes);
			atomic_store_explicit(&from->emptied, ++emptied, memory_order_release);
			advance(&take, bytes);
		}
	}
}
#endif

static const struct bare_block nothing;

static void broadcast(const double *in, double *out, size_t count)
{
	struct bare_block message = { out, count * sizeof(*out) };

	(void)in;
	swap(rank ? nothing : message, rank ? message : nothing);
}

static void gather(const double *in, double *out, size_t count)
{
	size_t bytes = count * sizeof(*in);

	memcpy(out + (size_t)rank * count, in, bytes);
	swap((struct bare_block){ (void *)in, bytes }, (struct bare_block){ out + (size_t)!rank * count, bytes });
}

static void exchange(const double *in, double *out, size_t count)
{
	size_t bytes = count * sizeof(*in);

	memcpy(out + (size_t)rank * count, in + (size_t)rank * count, bytes);
	swap((struct bare_block){ (void *)(in + (size_t)!rank * count), bytes },
	     (struct bare_block){ out + (size_t)!rank * count, bytes });
}
