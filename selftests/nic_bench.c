// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What open ports cost one that works, for callgrind (make bench-idle): 8-byte allreduces
 * of two ports of a NIC, by its registers and rings, while so many others are open, each with
 * a context of its own, and idle.
 *
 * usage: nic_bench IDLE OPERATIONS
 */
#include "test_guest.h"

enum { BUSY = 2, WARMUP = 100 };

/* The idle ones share queues, as nothing comes there. */
static void idle_open(struct guest *guest, uint32_t vp)
{
	struct muster_admin_command cmd = vp_command(BUSY);
	const struct place places[] = { { guest, 0, vp } };

	cmd.vp.id = htole32(vp);
	cmd.vp.cq = htole32(BUSY);
	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	context_open(places, 1);
}

static void operations(struct guest *guest, uint32_t begin, uint32_t nr)
{
	for (uint32_t n = begin; n < begin + nr; n++) {
		uint32_t lap = htole32(!(n / CQ & 1));

		for (uint16_t vp = 0; vp < BUSY; vp++)
			allreduce_of(guest, vp, 2 * n, 0, !vp, vp + 0.5);
		for (uint16_t vp = 0; vp < BUSY; vp++) {
			for (int i = 0; cqe(guest, vp, n)->valid != lap; i++) {
				assert_true(i < 1000);
				muster_nic_step(guest->nic);
			}
			assert_int_equal(cqe(guest, vp, n)->status, MUSTER_STATUS_OK);
			doorbell(guest, vp, MUSTER_DOORBELL_CQ_HEAD, n + 1);
		}
	}
}

/* callgrind counts in here, by this name. */
void bench_counted(struct guest *guest, uint32_t nr);
__attribute__((noinline)) void bench_counted(struct guest *guest, uint32_t nr)
{
	operations(guest, WARMUP, nr);
}

int main(int argc, char **argv)
{
	struct guest *guest;

	if (argc != 3 || group_setup(NULL))
		return 2;
	guest = guest_new(0);
	pair_open(guest);
	assert_int_equal(command(guest, mr_command(guest, 1, 0x7000000, 4096, MUSTER_MR_WRITE)).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(command(guest, cq_command(BUSY)).status, MUSTER_ADMIN_OK);
	for (long vp = 0; vp < strtol(argv[1], NULL, 10); vp++)
		idle_open(guest, BUSY + vp);
	operations(guest, 0, WARMUP);
	bench_counted(guest, strtol(argv[2], NULL, 10));
	guest_free(guest);
	return group_teardown(NULL);
}
