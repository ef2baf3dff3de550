// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Guests as child processes. Each QEMU gets its control and rendezvous ports
 * as one end of a socket pair, so that nothing has a name that could be left
 * behind, and its end is seen as the end of a stream. Only the consoles and
 * the wire's sockets lie in a directory of the cluster's own, which goes with
 * it. A guest dies with the runner, whatever ends the runner.
 */
#include "vm.h"

#include "daemon.h"
#include "folder.h"
#include "vm_connections.h"
#include "vm_qemu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MEMORY_MIB = 768,
	BOOT_TIMEOUT_MS = 60000,
	BOOT_TIMEOUT_FAST_MS = 15000,	/* with an accelerator, which may be there and not work */
	SEND_TIMEOUT_MS = 5000,		/* a guest that takes no input for this long is lost */
	CLOCK_STEP_MS = 500,		/* how often a guest's clock is looked at */
};

/* In epoll: a guest's index, and above it the number of a connection, from 1. */
#define CANCEL UINT64_MAX
#define CONNECTION(index, id) ((uint64_t)((id) + 1) << 32 | (index))

struct guest {
	pid_t pid;			/* 0: none or dead */
	bool up;			/* has said hello */
	int control;			/* -1: closed */
	int ports[MUSTER_VM_PORTS_MAX];
	char console[PATH_MAX];
	char count[PATH_MAX];
	size_t have;			/* bytes in buffer */
	char buffer[sizeof(struct vm_frame) + VM_FRAME_MAX];
	uint16_t running[VM_PROGRAMS_MAX];
	unsigned int nr_running;
	struct vm_connections connections;
};

struct muster_vm {
	struct muster_vm_config config;
	struct muster_vm_events events;
	void *arg;
	int epoll;
	bool cancelled;
	char dir[PATH_MAX - 64];
	unsigned int nr_guests;
	struct guest *guests;
	struct call {			/* the program that muster_vm_call() waits for */
		bool active;
		unsigned int guest;
		uint16_t id;
		int result;
	} call;
};

/* ---- a guest's process ----------------------------------------------------- */

static int watch(struct muster_vm *vm, unsigned int index)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = index };
	struct timeval timeout = { .tv_usec = CLOCK_STEP_MS * 1000 };
	int fd = vm->guests[index].control;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return epoll_ctl(vm->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int guest_start(struct muster_vm *vm, unsigned int index)
{
	struct guest *guest = &vm->guests[index];
	unsigned int nr = 1 + vm->config.nr_ports, made;
	int theirs[1 + MUSTER_VM_PORTS_MAX], pair[2], err = 0;
	const struct vm_qemu qemu = {
		.config = &vm->config, .index = index, .dir = vm->dir, .console = guest->console,
		.count = guest->count, .ports = theirs, .nr_ports = nr,
	};

	for (made = 0; made < nr && !err; made++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
			err = -errno;
			break;
		}
		theirs[made] = pair[1];
		if (made)
			guest->ports[made - 1] = pair[0];
		else
			guest->control = pair[0];
	}
	if (!err)
		err = vm_qemu_spawn(&qemu, &guest->pid);
	if (!err)
		err = watch(vm, index);
	while (made)
		close(theirs[--made]);
	return err;
}

static void guest_reap(struct guest *guest)
{
	if (!guest->pid)
		return;
	kill(guest->pid, SIGKILL);
	while (waitpid(guest->pid, NULL, 0) < 0 && errno == EINTR)
		;
	guest->pid = 0;
}

static void program_gone(struct muster_vm *vm, unsigned int index, uint16_t id, int status,
			 int error)
{
	struct guest *guest = &vm->guests[index];
	struct call *call = &vm->call;

	for (unsigned int i = 0; i < guest->nr_running; i++)
		if (guest->running[i] == id)
			guest->running[i--] = guest->running[--guest->nr_running];
	if (call->active && call->guest == index && call->id == id) {
		call->active = false;
		call->result = error ? -error : WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
			WEXITSTATUS(status);
	} else if (error && vm->events.refused) {
		vm->events.refused(vm->arg, index, id, error);
	} else if (!error && vm->events.exited) {
		vm->events.exited(vm->arg, index, id, status);
	}
}

/* Its process is ended, its programs with it, and each told. */
static void guest_lost(struct muster_vm *vm, unsigned int index, const char *why)
{
	struct guest *guest = &vm->guests[index];

	if (guest->control < 0)
		return;
	close(guest->control);
	guest->control = -1;
	vm_connections_close_all(&guest->connections);
	guest_reap(guest);
	fprintf(stderr, "guest %u: %s\n", index, why);
	vm_qemu_console_show(guest->console, index);
	while (guest->nr_running)
		program_gone(vm, index, guest->running[0], SIGKILL, 0);
	if (vm->events.died)
		vm->events.died(vm->arg, index);
}

/* ---- frames ---------------------------------------------------------------- */

/* May a guest whose port is full go on so? Its time begins with the first question. */
static bool may_be_slow(const struct guest *guest, int64_t *deadline)
{
	int64_t now = vm_qemu_clock_ms(guest->pid);

	if (!*deadline)
		*deadline = now + SEND_TIMEOUT_MS;
	return now < *deadline;
}

static int frame_send(struct muster_vm *vm, unsigned int index, const struct vm_frame *frame,
		      const void *data)
{
	struct guest *guest = index < vm->nr_guests ? &vm->guests[index] : NULL;
	const char *parts[2] = { (const char *)frame, data };
	size_t lens[2] = { sizeof(*frame), frame->length };
	int64_t deadline = 0;

	if (!guest)
		return -EINVAL;
	if (guest->control < 0)
		return -EPIPE;
	for (int i = 0; i < 2; i++) {
		while (lens[i]) {
			ssize_t n = send(guest->control, parts[i], lens[i], MSG_NOSIGNAL);

			if (n < 0 && (errno == EINTR ||
				      (errno == EAGAIN && may_be_slow(guest, &deadline))))
				continue;
			if (n < 0) {
				guest_lost(vm, index, "it does not take commands any more");
				return -EPIPE;
			}
			parts[i] += n;
			lens[i] -= n;
		}
	}
	return 0;
}

/* ---- connections to the server ------------------------------------------------ */

static void server_tell(struct muster_vm *vm, unsigned int index)
{
	struct vm_frame frame = { .type = VM_FRAME_LISTEN };

	if (!vm->config.server)
		return;
	frame.length = strlen(vm->config.server);
	frame_send(vm, index, &frame, vm->config.server);
}

static void hang_up(struct muster_vm *vm, unsigned int index, uint16_t id)
{
	struct vm_frame frame = { .type = VM_FRAME_HANGUP, .id = id };

	vm_connections_close(&vm->guests[index].connections, id);
	frame_send(vm, index, &frame, NULL);
}

static void connection_begin(struct muster_vm *vm, unsigned int index, uint16_t id)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = CONNECTION(index, id) };
	const char *server = vm->config.server;
	int fd = server ? daemon_connect(server, SOCK_NONBLOCK) : -1;

	if (fd < 0 || vm_connections_add(&vm->guests[index].connections, id, fd) ||
	    epoll_ctl(vm->epoll, EPOLL_CTL_ADD, fd, &event))
		hang_up(vm, index, id);
}

static void connection_write(struct muster_vm *vm, unsigned int index, uint16_t id, const char *data,
			     size_t len)
{
	int fd = vm_connections_fd(&vm->guests[index].connections, id);

	if (fd >= 0 && vm_connection_write(fd, data, len))
		hang_up(vm, index, id);
}

static void connection_read(struct muster_vm *vm, unsigned int index, uint16_t id)
{
	struct vm_frame frame = { .type = VM_FRAME_MESSAGE, .id = id };
	int fd = vm_connections_fd(&vm->guests[index].connections, id), n;
	static char message[VM_FRAME_MAX];

	if (fd < 0)
		return;
	n = vm_connection_read(fd, message);
	frame.length = n > 0 ? n : 0;
	if (n > 0)
		frame_send(vm, index, &frame, message);
	else if (n < 0)
		hang_up(vm, index, id);
}

/* ---- what a guest says ---------------------------------------------------------- */

static void frame_handle(struct muster_vm *vm, unsigned int index, const struct vm_frame *frame,
			 const char *data)
{
	switch (frame->type) {
	case VM_FRAME_HELLO:
		vm->guests[index].up = true;
		server_tell(vm, index);
		break;
	case VM_FRAME_OUTPUT:
		if (vm->events.output)
			vm->events.output(vm->arg, index, frame->id, frame->status == 2 ? 2 : 1,
					  data, frame->length);
		break;
	case VM_FRAME_EXIT:
		program_gone(vm, index, frame->id, frame->status, 0);
		break;
	case VM_FRAME_REFUSED:
		program_gone(vm, index, frame->id, 0, frame->status > 0 ? frame->status : EIO);
		break;
	case VM_FRAME_DIAL:
		connection_begin(vm, index, frame->id);
		break;
	case VM_FRAME_MESSAGE:
		connection_write(vm, index, frame->id, data, frame->length);
		break;
	case VM_FRAME_HANGUP:
		vm_connections_close(&vm->guests[index].connections, frame->id);
		break;
	}
}

/* Handle the whole frames in the buffer; a handler may end the guest. */
static void frames_take(struct muster_vm *vm, unsigned int index)
{
	struct guest *guest = &vm->guests[index];
	struct vm_frame frame;
	size_t at = 0;

	while (guest->control >= 0 && guest->have - at >= sizeof(frame)) {
		memcpy(&frame, guest->buffer + at, sizeof(frame));
		if (frame.length > VM_FRAME_MAX) {
			guest_lost(vm, index, "its agent talks nonsense");
			return;
		}
		if (guest->have - at - sizeof(frame) < frame.length)
			break;
		frame_handle(vm, index, &frame, guest->buffer + at + sizeof(frame));
		at += sizeof(frame) + frame.length;
	}
	memmove(guest->buffer, guest->buffer + at, guest->have - at);
	guest->have -= at;
}

static void guest_read(struct muster_vm *vm, unsigned int index)
{
	struct guest *guest = &vm->guests[index];
	ssize_t n;

	if (guest->control < 0)
		return;
	n = recv(guest->control, guest->buffer + guest->have, sizeof(guest->buffer) - guest->have,
		 MSG_DONTWAIT);
	if (n > 0) {
		guest->have += n;
		frames_take(vm, index);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		guest_lost(vm, index, guest->up ? "it died" : "it died while it booted");
	}
}

/* ---- the cluster ----------------------------------------------------------- */

static int missing(const char *what, const char *path, const char *how)
{
	fprintf(stderr, "%s is missing (%s): %s\n", what, path, how);
	return -ENOENT;
}

/* The kernel's command line carries the agent's path, and QEMU's options the wire's. */
static int check_config(const struct muster_vm_config *config)
{
	static const char *const files[] = { "qemu-system-x86_64", "vmlinux", "initrd", "kernel" };
	char path[PATH_MAX];

	if (!config->nr_guests || config->nr_guests > MUSTER_VM_GUESTS_MAX ||
	    config->nr_nics > MUSTER_VM_NICS_MAX ||
	    config->nr_ports + config->hotplug > MUSTER_VM_PORTS_MAX) {
		fprintf(stderr, "a cluster has 1 to %d guests of up to %d NICs and %d ports (lines, with those "
			"of --count and --hotplug)\n",
			MUSTER_VM_GUESTS_MAX, MUSTER_VM_NICS_MAX, MUSTER_VM_PORTS_MAX);
		return -EINVAL;
	}
	if (config->agent[0] != '/' || strpbrk(config->agent, " \t\",")) {
		fprintf(stderr, "the agent's path must be absolute, without spaces or commas: %s\n",
			config->agent);
		return -EINVAL;
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", config->dir, files[i]);
		if (access(path, F_OK))
			return missing("a part of the guests", path, "run 'make setup-guest'");
	}
	if (access(config->agent, X_OK))
		return missing("the guest agent", config->agent, "run 'make'");
	return 0;
}

int muster_vm_find(struct muster_vm_config *config)
{
	static char dir[PATH_MAX], agent[PATH_MAX];
	const char *named = getenv("MUSTER_VM_DIR");
	char self[PATH_MAX - 16], path[PATH_MAX];
	int err = muster_folder(self, sizeof(self));

	if (err)
		return err;
	snprintf(agent, sizeof(agent), "%s/guest_agent", self);
	snprintf(path, sizeof(path), "%s/../vm", self);
	if (!realpath(named ? named : path, dir))
		return missing("the folder of the guests", named ? named : path, "run 'make setup-guest'");
	config->dir = dir;
	config->agent = agent;
	return 0;
}

static int cluster_dir(struct muster_vm *vm)
{
	const char *base = getenv("XDG_RUNTIME_DIR");

	if (!base || access(base, W_OK) || strlen(base) > 60)
		base = "/tmp";
	snprintf(vm->dir, sizeof(vm->dir), "%s/muster-vm-XXXXXX", base);
	return mkdtemp(vm->dir) ? 0 : -errno;
}

static void cluster_dir_remove(struct muster_vm *vm)
{
	char path[PATH_MAX + 256];
	DIR *dir = opendir(vm->dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", vm->dir, entry->d_name);
		if (entry->d_name[0] != '.')
			unlink(path);
	}
	if (dir)
		closedir(dir);
	rmdir(vm->dir);
}

static int watch_cancel(struct muster_vm *vm, int operation)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = CANCEL };

	if (!vm->config.cancel_fd)
		return 0;
	return epoll_ctl(vm->epoll, operation, vm->config.cancel_fd, &event) ? -errno : 0;
}

/* It may take as long as it takes, if only it goes on: while it boots, its console tells. */
static int wait_up(struct muster_vm *vm, unsigned int index)
{
	struct guest *guest = &vm->guests[index];
	long long said = -1;
	int64_t deadline = 0;

	while (!guest->up) {
		long long now = vm_qemu_console_bytes(guest->console);

		if (now != said)
			deadline = vm_qemu_clock_ms(guest->pid) + vm->config.boot_timeout_ms;
		said = now;
		if (guest->control < 0)
			return -EIO;
		if (vm->cancelled)
			return -EINTR;
		if (vm_qemu_clock_ms(guest->pid) >= deadline) {
			fprintf(stderr, "guest %u: it said nothing for %u ms (accelerator %s)\n",
				index, vm->config.boot_timeout_ms, vm->config.accel);
			vm_qemu_console_show(guest->console, index);
			return -ETIMEDOUT;
		}
		muster_vm_step(vm, CLOCK_STEP_MS);
	}
	return 0;
}

static struct muster_vm *vm_alloc(const struct muster_vm_config *config,
				  const struct muster_vm_events *events, void *arg)
{
	struct muster_vm *vm = calloc(1, sizeof(*vm));

	if (!vm)
		return NULL;
	vm->guests = calloc(config->nr_guests, sizeof(*vm->guests));
	vm->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!vm->guests || vm->epoll < 0 || cluster_dir(vm)) {
		if (vm->epoll >= 0)
			close(vm->epoll);
		free(vm->guests);
		free(vm);
		return NULL;
	}
	vm->config = *config;
	if (!vm->config.memory_mib)
		vm->config.memory_mib = vm_qemu_memory_mib(config->dir, MEMORY_MIB);
	if (!vm->config.accel)
		vm->config.accel = "tcg";
	if (!vm->config.boot_timeout_ms)
		vm->config.boot_timeout_ms = strncmp(vm->config.accel, "tcg", 3) ?
			BOOT_TIMEOUT_FAST_MS : BOOT_TIMEOUT_MS;
	vm->events = *events;
	vm->arg = arg;
	vm->nr_guests = config->nr_guests;
	for (unsigned int i = 0; i < vm->nr_guests; i++) {
		vm->guests[i].control = -1;
		memset(vm->guests[i].ports, -1, sizeof(vm->guests[i].ports));
		snprintf(vm->guests[i].console, PATH_MAX, "%s/console.%u", vm->dir, i);
		snprintf(vm->guests[i].count, PATH_MAX, "%s/count.%u", vm->dir, i);
	}
	return vm;
}

int muster_vm_start(const struct muster_vm_config *config, const struct muster_vm_events *events,
		    void *arg, struct muster_vm **vmp)
{
	struct muster_vm *vm;
	int err = check_config(config);

	if (err)
		return err;
	vm = vm_alloc(config, events, arg);
	if (!vm)
		return -ENOMEM;
	for (unsigned int i = 0; i < vm->nr_guests && !err; i++)
		err = guest_start(vm, i);
	if (!err)
		err = watch_cancel(vm, EPOLL_CTL_ADD);
	for (unsigned int i = 0; i < vm->nr_guests && !err; i++)
		err = wait_up(vm, i);
	if (!err)
		err = watch_cancel(vm, EPOLL_CTL_DEL);
	if (err) {
		muster_vm_stop(vm);
		return err;
	}
	*vmp = vm;
	return 0;
}

void muster_vm_stop(struct muster_vm *vm)
{
	if (!vm)
		return;
	for (unsigned int i = 0; i < vm->nr_guests; i++) {
		struct guest *guest = &vm->guests[i];

		guest_reap(guest);
		if (guest->control >= 0)
			close(guest->control);
		vm_connections_close_all(&guest->connections);
		for (unsigned int j = 0; j < vm->config.nr_ports; j++)
			if (guest->ports[j] >= 0)
				close(guest->ports[j]);
	}
	cluster_dir_remove(vm);
	close(vm->epoll);
	free(vm->guests);
	free(vm);
}

int muster_vm_fd(const struct muster_vm *vm)
{
	return vm->epoll;
}

void muster_vm_step(struct muster_vm *vm, int timeout_ms)
{
	struct epoll_event events[16];
	int nr = epoll_wait(vm->epoll, events, 16, timeout_ms);

	for (int i = 0; i < nr; i++) {
		uint64_t what = events[i].data.u64;

		if (what == CANCEL)
			vm->cancelled = true;
		else if (what >> 32)
			connection_read(vm, (uint32_t)what, (uint16_t)((what >> 32) - 1));
		else
			guest_read(vm, (uint32_t)what);
	}
}

/* Append a string and its 0 to a frame's data; false if it does not fit. */
static bool append(char *data, uint32_t *len, const char *string)
{
	size_t more = strlen(string) + 1;

	if (more > VM_FRAME_MAX - *len)
		return false;
	memcpy(data + *len, string, more);
	*len += more;
	return true;
}

static bool append_program(char *data, uint32_t *len, const struct muster_vm_program *program)
{
	char count[24];
	size_t nr = 0;

	while (program->argv[nr])
		nr++;
	snprintf(count, sizeof(count), "%zu", nr);
	if (!append(data, len, program->cwd ? program->cwd : "/") || !append(data, len, count))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (!append(data, len, program->argv[i]))
			return false;
	for (char *const *e = program->envp; e && *e; e++)
		if (!append(data, len, *e))
			return false;
	return true;
}

int muster_vm_run(struct muster_vm *vm, unsigned int index, const struct muster_vm_program *program)
{
	struct vm_frame frame = { .type = VM_FRAME_RUN, .id = program->id,
				  .status = program->flags };
	char *data;
	int err;

	if (index >= vm->nr_guests || vm->guests[index].nr_running == VM_PROGRAMS_MAX)
		return -EINVAL;
	data = malloc(VM_FRAME_MAX);
	if (!data)
		return -ENOMEM;
	err = append_program(data, &frame.length, program) ? 0 : -E2BIG;
	if (!err)
		err = frame_send(vm, index, &frame, data);
	if (!err)
		vm->guests[index].running[vm->guests[index].nr_running++] = program->id;
	free(data);
	return err;
}

int muster_vm_signal(struct muster_vm *vm, unsigned int index, uint16_t id, int signal)
{
	struct vm_frame frame = { .type = VM_FRAME_SIGNAL, .id = id, .status = signal };

	return frame_send(vm, index, &frame, NULL);
}

int muster_vm_input(struct muster_vm *vm, unsigned int index, uint16_t id, const void *data,
		    size_t len)
{
	struct vm_frame frame = { .type = VM_FRAME_INPUT, .id = id, .length = len };

	if (len > VM_FRAME_MAX)
		return -E2BIG;
	return frame_send(vm, index, &frame, data);
}

int muster_vm_call(struct muster_vm *vm, unsigned int index,
		   const struct muster_vm_program *program)
{
	int err = muster_vm_run(vm, index, program);

	if (err)
		return err;
	vm->call = (struct call){ .active = true, .guest = index, .id = program->id };
	while (vm->call.active)
		muster_vm_step(vm, -1);
	return vm->call.result;
}

int muster_vm_port_fd(const struct muster_vm *vm, unsigned int index, unsigned int port)
{
	if (index >= vm->nr_guests || port >= vm->config.nr_ports)
		return -EINVAL;
	return vm->guests[index].ports[port];
}

bool muster_vm_alive(const struct muster_vm *vm, unsigned int index)
{
	return index < vm->nr_guests && vm->guests[index].control >= 0;
}

int muster_vm_pid(const struct muster_vm *vm, unsigned int index)
{
	return index < vm->nr_guests ? vm->guests[index].pid : 0;
}

int64_t muster_vm_clock_ms(const struct muster_vm *vm)
{
	int64_t slowest = INT64_MAX, clock;

	for (unsigned int i = 0; i < vm->nr_guests; i++) {
		clock = muster_vm_alive(vm, i) ? vm_qemu_clock_ms(vm->guests[i].pid) : INT64_MAX;
		if (clock < slowest)
			slowest = clock;
	}
	return slowest;
}

uint64_t muster_vm_instructions(const struct muster_vm *vm, unsigned int index)
{
	uint64_t count = 0;
	int fd = open(vm->guests[index].count, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		count = 0;
	close(fd);
	return count;
}
