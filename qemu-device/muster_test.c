// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device inside QEMU, without a guest: QEMU's test protocol stands in for
 * the CPU. What nic/nic_*test.c cannot see: PCI, bus mastering, MSI-X, function
 * reset, DMA that aims at devices, the thread, and whether QEMU survives.
 * Run from the top of the checkout; skips (exit 4) where QEMU is not built.
 * MUSTER_NIC_SEED=n MUSTER_NIC_WRITES=n repeat a garbage run.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "muster_regs.h"
#include "test_random.h"

#define QEMU "build/vm/qemu-system-x86_64"

enum {
	/* where this test, as the firmware, puts the BARs */
	REGS = 0xe0000000u,
	DOORBELLS = 0xe1000000u,
	MSIX = 0xe2000000u,
	/* and things in guest memory */
	RAM = 64 << 20,
	ADMIN = 0x100000,
	REPLY = 0x110000,
	EVENT = 0x120000,
	MESSAGES = 0x130000,	/* MSI-X vectors write here */
	LIST = 0x140000,
	PORTS = 0x200000,
	PORT_BYTES = 0x20000,	/* its CQ, then: */
	PORT_DQ = 0x1000,
	PORT_STATUS = 0x2000,
	PORT_RQ = 0x4000,
	ENTRIES = 16,
	PCI_COMMAND = 0x04,
	PCI_COMMAND_MEMORY = 0x2,
	PCI_COMMAND_MASTER = 0x4,
	PCI_CAP_MSIX = 0x11,
	PCI_CAP_EXPRESS = 0x10,
};

struct machine {
	pid_t pid;
	FILE *in, *out;
	char dir[64];		/* of the wire */
	uint32_t node;
	uint32_t slot;		/* PCI address of the device, as in 0xcf8 */
	uint32_t admin_tail;
};

/* ---- QEMU's test protocol -------------------------------------------------- */

/* The answer to a command, without its "OK". */
static uint64_t answer(struct machine *m)
{
	char line[256];

	do {
		if (!fgets(line, sizeof(line), m->in))
			fail_msg("QEMU is gone or silent");
	} while (!strncmp(line, "IRQ", 3));
	if (strncmp(line, "OK", 2))
		fail_msg("QEMU refuses: %s", line);
	return strtoull(line + 2, NULL, 0);
}

__attribute__((format(printf, 2, 3)))
static uint64_t ask(struct machine *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(m->out, fmt, args);
	va_end(args);
	fflush(m->out);
	return answer(m);
}

static uint32_t readl(struct machine *m, uint64_t addr)
{
	return ask(m, "readl 0x%" PRIx64 "\n", addr);
}

static void writel(struct machine *m, uint64_t addr, uint32_t value)
{
	ask(m, "writel 0x%" PRIx64 " 0x%x\n", addr, value);
}

static void memory_write(struct machine *m, uint64_t addr, const void *data, size_t len)
{
	fprintf(m->out, "write 0x%" PRIx64 " 0x%zx 0x", addr, len);
	for (size_t i = 0; i < len; i++)
		fprintf(m->out, "%02x", ((const uint8_t *)data)[i]);
	ask(m, "\n");
}

static uint32_t config_read(struct machine *m, uint32_t reg)
{
	ask(m, "outl 0xcf8 0x%x\n", m->slot | reg);
	return ask(m, "inl 0xcfc\n");
}

static void config_write(struct machine *m, uint32_t reg, uint32_t value)
{
	ask(m, "outl 0xcf8 0x%x\n", m->slot | reg);
	ask(m, "outl 0xcfc 0x%x\n", value);
}

/* Until a word of memory or a register has a value. */
static bool becomes(struct machine *m, uint64_t addr, uint32_t mask, uint32_t value)
{
	for (int i = 0; i < 2000; i++) {
		if ((readl(m, addr) & mask) == value)
			return true;
		usleep(1000);
	}
	return false;
}

/* ---- a machine ------------------------------------------------------------- */

static void qemu_exec(int fd, const struct machine *m, pid_t parent)
{
	char chardev[64], device[160];
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	fcntl(fd, F_SETFD, 0);
	dup2(null, 0);
	dup2(null, 1);
	snprintf(chardev, sizeof(chardev), "socket,id=q,fd=%d", fd);
	snprintf(device, sizeof(device), "muster,node=%u,wire=unix:%s", m->node, m->dir);
	execl(QEMU, QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35",
	      "-accel", "qtest", "-m", "64", "-L", "/usr/share/seabios", "-L", "/usr/share/qemu",
	      "-chardev", chardev, "-object", "qtest,id=qtest,chardev=q,log=/dev/null",
	      "-device", device, NULL);
	_exit(127);
}

static void pci_find(struct machine *m)
{
	for (uint32_t slot = 0; slot < 32; slot++) {
		m->slot = 0x80000000u | slot << 11;
		if (config_read(m, 0) == (MUSTER_PCI_DEVICE << 16 | MUSTER_PCI_VENDOR))
			return;
	}
	fail_msg("there is no Muster device on the bus");
}

static void bars_place(struct machine *m)
{
	config_write(m, 0x10, REGS);
	config_write(m, 0x14, 0);
	config_write(m, 0x18, DOORBELLS);
	config_write(m, 0x1c, 0);
	config_write(m, 0x20, MSIX);
	config_write(m, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

static struct machine *machine_new(uint32_t node, const char *dir)
{
	struct timeval timeout = { .tv_sec = 20 };
	struct machine *m = calloc(1, sizeof(*m));
	pid_t parent = getpid();
	int pair[2];

	assert_non_null(m);
	m->node = node;
	snprintf(m->dir, sizeof(m->dir), "%s", dir);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	m->pid = fork();
	if (m->pid == 0)
		qemu_exec(pair[1], m, parent);
	close(pair[1]);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	m->in = fdopen(pair[0], "r");
	m->out = fdopen(dup(pair[0]), "w");
	pci_find(m);
	bars_place(m);
	return m;
}

/* QEMU must end by being asked to, not have ended before. */
static int machine_free(struct machine *m)
{
	int status;

	kill(m->pid, SIGTERM);
	waitpid(m->pid, &status, 0);
	fclose(m->in);
	fclose(m->out);
	free(m);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		print_error("QEMU ended with status 0x%x\n", status);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int machine_start(void **state)
{
	char dir[] = "/tmp/muster-device-XXXXXX";

	assert_non_null(mkdtemp(dir));
	*state = machine_new(7, dir);
	return 0;
}

/* It leaves no socket behind. */
static int machine_stop(void **state)
{
	char dir[64];
	int err;

	strcpy(dir, ((struct machine *)*state)->dir);
	err = machine_free(*state);
	return rmdir(dir) ? -1 : err;
}

/* At a wire whose names are in no folder: one is free when all who hold its socket have let go of it. */
static int machine_start_unnamed(void **state)
{
	char name[32];

	snprintf(name, sizeof(name), "@muster-device-%d", getpid());
	*state = machine_new(7, name);
	return 0;
}

static int machine_stop_unnamed(void **state)
{
	return machine_free(*state);
}

static void enable(struct machine *m)
{
	writel(m, REGS + MUSTER_REG_ADMIN_BASE_LO, ADMIN);
	writel(m, REGS + MUSTER_REG_ADMIN_REPLY_LO, REPLY);
	writel(m, REGS + MUSTER_REG_ADMIN_ENTRIES, ENTRIES);
	writel(m, REGS + MUSTER_REG_EVENT_BASE_LO, EVENT);
	writel(m, REGS + MUSTER_REG_EVENT_ENTRIES, ENTRIES);
	writel(m, REGS + MUSTER_REG_CONTROL, MUSTER_CONTROL_ENABLE);
	m->admin_tail = 0;
}

/* Run a command: its status, or 255 when no reply comes. */
static uint8_t command(struct machine *m, const struct muster_admin_command *cmd)
{
	uint32_t at = m->admin_tail % ENTRIES, valid = !(m->admin_tail & ENTRIES);
	uint64_t reply = REPLY + at * sizeof(struct muster_admin_reply);

	memory_write(m, ADMIN + at * sizeof(*cmd), cmd, sizeof(*cmd));
	writel(m, REGS + MUSTER_REG_ADMIN_TAIL, ++m->admin_tail);
	if (!becomes(m, reply + offsetof(struct muster_admin_reply, valid), 1, valid))
		return 255;
	return readl(m, reply) >> 24;
}

static uint8_t nop(struct machine *m)
{
	return command(m, &(struct muster_admin_command){ .opcode = MUSTER_ADMIN_NOP });
}

static uint32_t capability(struct machine *m, uint8_t id)
{
	uint32_t at = config_read(m, 0x34) & 0xfc;

	while (at && (config_read(m, at) & 0xff) != id)
		at = config_read(m, at) >> 8 & 0xfc;
	assert_true(at);
	return at;
}

/* Each vector writes its number + 1 to a word of memory of its own. */
static void msix_enable(struct machine *m)
{
	uint32_t cap = capability(m, PCI_CAP_MSIX);

	for (uint32_t i = 0; i < MUSTER_MSIX_VECTORS; i++) {
		writel(m, MSIX + 16 * i, MESSAGES + 4 * i);
		writel(m, MSIX + 16 * i + 4, 0);
		writel(m, MSIX + 16 * i + 8, i + 1);
		writel(m, MSIX + 16 * i + 12, 0);
	}
	config_write(m, cap, (config_read(m, cap) & 0xffff) | 0x80000000u);
}

/* ---- tests ----------------------------------------------------------------- */

static void the_device_is_there_with_its_bars(void **state)
{
	struct machine *m = *state;

	assert_int_equal(readl(m, REGS + MUSTER_REG_MAGIC), MUSTER_REG_MAGIC_VALUE);
	assert_int_equal(readl(m, REGS + MUSTER_REG_NODE), 7);
	assert_int_equal(readl(m, DOORBELLS), 0);
	assert_int_equal(readl(m, DOORBELLS + 2047 * MUSTER_DOORBELL_STRIDE), 0);
	assert_int_equal(config_read(m, capability(m, PCI_CAP_MSIX)) >> 16 & 0x7ff,
			 MUSTER_MSIX_VECTORS - 1);
}

static void commands_are_answered_and_interrupt(void **state)
{
	struct machine *m = *state;

	enable(m);
	assert_int_equal(nop(m), MUSTER_ADMIN_OK);
	assert_int_equal(readl(m, MESSAGES), 0);
	msix_enable(m);
	for (int i = 0; i < 40; i++)
		assert_int_equal(nop(m), MUSTER_ADMIN_OK);
	assert_true(becomes(m, MESSAGES, 0xff, 1));
}

static void without_bus_mastering_memory_stays_untouched(void **state)
{
	struct machine *m = *state;

	config_write(m, PCI_COMMAND, PCI_COMMAND_MEMORY);
	enable(m);
	writel(m, REGS + MUSTER_REG_ADMIN_TAIL, 1);
	assert_true(becomes(m, REGS + MUSTER_REG_STATUS, MUSTER_STATE_FATAL, MUSTER_STATE_FATAL));
	assert_int_equal(readl(m, REPLY + 28), 0);
	config_write(m, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	writel(m, REGS + MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	enable(m);
	assert_int_equal(nop(m), MUSTER_ADMIN_OK);
}

static void dma_never_reaches_a_device(void **state)
{
	static const uint32_t targets[] = { REGS, DOORBELLS, MSIX, 0xfee00000u, 0xfec00000u };
	struct machine *m = *state;

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		enable(m);
		writel(m, REGS + MUSTER_REG_CONTROL, 0);
		writel(m, REGS + MUSTER_REG_ADMIN_REPLY_LO, targets[i]);
		writel(m, REGS + MUSTER_REG_CONTROL, MUSTER_CONTROL_ENABLE);
		writel(m, REGS + MUSTER_REG_ADMIN_TAIL, 1);
		assert_true(becomes(m, REGS + MUSTER_REG_STATUS, MUSTER_STATE_FATAL,
				    MUSTER_STATE_FATAL));
		writel(m, REGS + MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	}
}

static void a_function_reset_brings_a_new_life(void **state)
{
	struct machine *m = *state;
	uint32_t control = capability(m, PCI_CAP_EXPRESS) + 8;

	for (int i = 0; i < 20; i++) {
		uint32_t before = readl(m, REGS + MUSTER_REG_INCARNATION);

		enable(m);
		assert_int_equal(nop(m), MUSTER_ADMIN_OK);
		config_write(m, control, config_read(m, control) | 0x8000);
		bars_place(m);
		assert_int_equal(readl(m, REGS + MUSTER_REG_STATUS), 0);
		assert_int_equal(readl(m, REGS + MUSTER_REG_INCARNATION), before + 1);
		writel(m, REPLY + 28, 0);
	}
}

static void port_open(struct machine *m, uint32_t vp)
{
	uint64_t base = PORTS + vp * PORT_BYTES;
	struct muster_admin_command cq = {
		.opcode = MUSTER_ADMIN_CQ_CREATE,
		.cq = { .base = base, .id = vp, .entries = 16, .vector = 2 + vp },
	};
	struct muster_admin_command create = {
		.opcode = MUSTER_ADMIN_VP_CREATE,
		.vp = { .dq_base = base + PORT_DQ, .status_base = base + PORT_STATUS,
			.rq_base = base + PORT_RQ, .dq_entries = 8, .rq_entries = 4,
			.id = vp, .cq = vp },
	};

	assert_int_equal(command(m, &cq), MUSTER_ADMIN_OK);
	assert_int_equal(command(m, &create), MUSTER_ADMIN_OK);
}

struct place {
	struct machine *m;
	uint32_t vp;
};

static void context_open(const struct place *places, uint32_t nr)
{
	struct muster_admin_member members[2] = { { .vp = 0 } };

	for (uint32_t i = 0; i < nr; i++) {
		port_open(places[i].m, places[i].vp);
		members[i].node = places[i].m->node;
		members[i].vp = places[i].vp;
		members[i].incarnation = readl(places[i].m, REGS + MUSTER_REG_INCARNATION);
	}
	for (uint32_t i = 0; i < nr; i++) {
		struct muster_admin_command open = {
			.opcode = MUSTER_ADMIN_CONTEXT_OPEN,
			.context = { .members = LIST, .nr_members = nr, .self = i,
				     .vp = places[i].vp, .context = 3, .job = 5, .job_key = 99 },
		};

		memory_write(places[i].m, LIST, members, sizeof(members));
		assert_int_equal(command(places[i].m, &open), MUSTER_ADMIN_OK);
	}
}

/* The first message that this port sends. */
static void send_salt(const struct place *from, const struct place *to)
{
	uint64_t doorbells = DOORBELLS + from->vp * MUSTER_DOORBELL_STRIDE;
	struct muster_desc desc = {
		.kind = MUSTER_DESC_MP, .flags = MUSTER_DESC_COLL_END, .dest = to->m->node,
		.src_vp = from->vp, .dst_vp = to->vp, .job = 5, .context = 3, .inline_len = 4,
		.length = 4, .data = "salt",
	};

	memory_write(from->m, PORTS + from->vp * PORT_BYTES + PORT_DQ, &desc, sizeof(desc));
	writel(from->m, doorbells + MUSTER_DOORBELL_CQ_ARM, 0);
	writel(from->m, doorbells + MUSTER_DOORBELL_DQ_TAIL, 1);
}

static void salt_has_come(const struct place *to)
{
	uint64_t slot = PORTS + to->vp * PORT_BYTES + PORT_RQ;

	assert_true(becomes(to->m, slot + offsetof(struct muster_recv_slot, valid), 1, 1));
	assert_int_equal(readl(to->m, slot + offsetof(struct muster_recv_slot, payload)),
			 0x746c6173);
}

static void a_message_passes_between_two_ports_and_interrupts(void **state)
{
	struct machine *m = *state;
	const struct place places[] = { { m, 0 }, { m, 1 } };

	enable(m);
	msix_enable(m);
	context_open(places, 2);
	send_salt(&places[0], &places[1]);
	salt_has_come(&places[1]);
	assert_true(becomes(m, MESSAGES + 4 * 2, 0xff, 3));
	assert_int_equal(readl(m, PORTS + offsetof(struct muster_cqe, valid)), 1);
	assert_int_equal(readl(m, MESSAGES + 4 * 3), 0);
}

static void messages_pass_between_two_machines(void **state)
{
	struct machine *m = *state, *other = machine_new(8, m->dir);
	const struct place places[] = { { m, 0 }, { other, 1 } };

	enable(m);
	enable(other);
	context_open(places, 2);
	send_salt(&places[0], &places[1]);
	salt_has_come(&places[1]);
	send_salt(&places[1], &places[0]);
	salt_has_come(&places[0]);
	assert_int_equal(machine_free(other), 0);
}

static void a_node_number_is_used_once(void **state)
{
	struct machine *m = *state;
	char device[256], line[512] = "";
	FILE *qemu;

	snprintf(device, sizeof(device), QEMU " -nodefaults -display none -machine q35 -accel qtest "
		 "-L /usr/share/seabios -L /usr/share/qemu -device muster,node=7,wire=unix:%s 2>&1",
		 m->dir);
	qemu = popen(device, "r");
	assert_non_null(qemu);
	assert_non_null(fgets(line, sizeof(line), qemu));
	assert_int_not_equal(pclose(qemu), 0);
	assert_non_null(strstr(line, "node 7"));
	assert_non_null(strstr(line, m->dir));
}

/* ---- garbage --------------------------------------------------------------- */

static uint32_t random_value(void)
{
	switch (random32() % 4) {
	case 0:
		return random32() % 20;
	case 1:
		return ADMIN + random32() % 0x100000 / 64 * 64;
	case 2:
		return 1u << random32() % 32;
	default:
		return random32();
	}
}

static uint32_t random_target(void)
{
	switch (random32() % 8) {
	case 0 ... 2:
		return REGS + random32() % 0x48;
	case 3 ... 4:
		return DOORBELLS + random32() % (4 * MUSTER_DOORBELL_STRIDE) / 0x400 * 0x400 +
			random32() % 5 * 4;
	case 5:
		return MSIX + random32() % 0x1000;
	default:
		return ADMIN + random32() % 0x200000;
	}
}

/* The right reset among the garbage keeps the device from being dead most of the time. */
static void garbage_send(struct machine *m)
{
	static const char *const writes[] = { "writeb", "writew", "writel", "writeq" };

	if (random32() % 64 == 0)
		fprintf(m->out, "writel 0x%x 0x%x\n", REGS + MUSTER_REG_CONTROL,
			1 + random32() % 2);
	else if (random32() % 64 == 1)
		fprintf(m->out, "writel 0x%x 0x%x\n", REGS + (random32() % 2 ?
			MUSTER_REG_ADMIN_ENTRIES : MUSTER_REG_EVENT_ENTRIES), ENTRIES);
	else
		fprintf(m->out, "%s 0x%x 0x%x\n", writes[random32() % 8 ? 2 : random32() % 4],
			random_target(), random_value());
}

static void qemu_survives_garbage_and_a_reset_brings_the_device_back(void **state)
{
	enum { BATCH = 100 };	/* answers that wait in the socket */
	const char *seed = getenv("MUSTER_NIC_SEED"), *writes = getenv("MUSTER_NIC_WRITES");
	uint64_t nr = writes ? strtoull(writes, NULL, 0) : 50000;
	struct machine *m = *state;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)ts.tv_nsec << 20 | 1;
	print_message("garbage: MUSTER_NIC_SEED=%" PRIu64 " MUSTER_NIC_WRITES=%" PRIu64 "\n",
		      random_state, nr);
	for (uint64_t i = 0; i < nr; i += BATCH) {
		for (int j = 0; j < BATCH; j++)
			garbage_send(m);
		fflush(m->out);
		for (int j = 0; j < BATCH; j++)
			answer(m);
	}
	bars_place(m);
	writel(m, REGS + MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	for (uint32_t i = 0; i < ENTRIES; i++)
		writel(m, REPLY + i * sizeof(struct muster_admin_reply) + 28, 0);
	enable(m);
	assert_int_equal(nop(m), MUSTER_ADMIN_OK);
}

#define ON_A_MACHINE(test) cmocka_unit_test_setup_teardown(test, machine_start, machine_stop)
#define UNNAMED(test) { #test " at a wire without a folder", test, machine_start_unnamed, machine_stop_unnamed, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_MACHINE(the_device_is_there_with_its_bars),
		ON_A_MACHINE(commands_are_answered_and_interrupt),
		ON_A_MACHINE(without_bus_mastering_memory_stays_untouched),
		ON_A_MACHINE(dma_never_reaches_a_device),
		ON_A_MACHINE(a_function_reset_brings_a_new_life),
		UNNAMED(a_function_reset_brings_a_new_life),
		ON_A_MACHINE(a_message_passes_between_two_ports_and_interrupts),
		ON_A_MACHINE(messages_pass_between_two_machines),
		ON_A_MACHINE(a_node_number_is_used_once),
		ON_A_MACHINE(qemu_survives_garbage_and_a_reset_brings_the_device_back),
	};

	if (access(QEMU, X_OK)) {
		printf("1..0 # SKIP %s is not built; run 'make setup'\n", QEMU);
		return 4;
	}
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
