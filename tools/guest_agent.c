// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * First process of a guest once the host's root is mounted: starts programs
 * for the host, passes their input and output over the control port, and what
 * they say to a server of the host; reports
 * how they end, powers the guest off when told. Also names the virtio ports
 * under /dev/virtio-ports, as udev would. It owns the guest: what it cannot
 * do it says on the console, and without the control port it powers off.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "namespace.h"
#include "vm_connections.h"

enum {
	BACK_S = 60,			/* in which the host is back, if at all */
	FDS = 3 + 2 * VM_PROGRAMS_MAX,	/* control, signals, door, and what programs write to */
};

struct program {
	pid_t pid;		/* 0: free */
	uint16_t id;
	int in, out, err;	/* -1: closed */
};

static struct program programs[VM_PROGRAMS_MAX];
static struct vm_connections connections;
static int control = -1;
static int door = -1;		/* where programs connect to the host's server */
static char frame_data[VM_FRAME_MAX + 1];

static void say(const char *fmt, ...)
{
	char line[256];
	va_list args;
	int fd = open("/dev/console", O_WRONLY | O_NOCTTY);

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	dprintf(fd, "guest agent: %s\n", line);
	close(fd);
}

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

/* ---- the control port ------------------------------------------------------ */

static void control_write(const void *data, size_t len)
{
	while (len) {
		ssize_t n = write(control, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			say("the host is gone: %s", strerror(errno));
			power_off();
		}
		data = (const char *)data + n;
		len -= n;
	}
}

/* After the guest has slept its host is away for as long as it takes to say that it is there. */
static void host_await(void)
{
	struct pollfd fd = { .fd = control, .events = POLLIN };

	for (int i = 0; i < BACK_S * 10; i++) {
		if (poll(&fd, 1, 0) >= 0 && !(fd.revents & POLLHUP))
			return;
		usleep(100000);
	}
	say("the host is gone");
	power_off();
}

static void control_read(void *data, size_t len)
{
	while (len) {
		ssize_t n = read(control, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0) {
			host_await();
			continue;
		}
		if (n < 0) {
			say("the host is gone: %s", strerror(errno));
			power_off();
		}
		data = (char *)data + n;
		len -= n;
	}
}

static void frame_send(uint16_t type, uint16_t id, int32_t status, const void *data, size_t len)
{
	struct vm_frame frame = { .length = len, .type = type, .id = id, .status = status };

	control_write(&frame, sizeof(frame));
	control_write(data, len);
}

/* udev is not there to do it. */
static void ports_name(void)
{
	char path[PATH_MAX], name[128], target[PATH_MAX];
	DIR *dir = opendir("/sys/class/virtio-ports");
	struct dirent *entry;
	FILE *file;

	mkdir("/dev/virtio-ports", 0755);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%127[a-z.0-9]", name) == 1) {
			snprintf(path, sizeof(path), "/dev/virtio-ports/%s", name);
			snprintf(target, sizeof(target), "../%s", entry->d_name);
			if (symlink(target, path) && errno != EEXIST)
				say("cannot name %s: %s", path, strerror(errno));
		}
		fclose(file);
	}
	if (dir)
		closedir(dir);
}

/* The ports appear a moment after their driver is loaded. */
static void control_open(void)
{
	for (int i = 0; i < 500 && control < 0; i++) {
		ports_name();
		control = open("/dev/virtio-ports/" VM_PORT_CONTROL, O_RDWR | O_CLOEXEC);
		if (control < 0)
			usleep(10000);
	}
	if (control < 0) {
		say("there is no port %s", VM_PORT_CONTROL);
		power_off();
	}
}

/* ---- programs -------------------------------------------------------------- */

static struct program *program_find(uint16_t id)
{
	for (int i = 0; i < VM_PROGRAMS_MAX; i++)
		if (programs[i].pid && programs[i].id == id)
			return &programs[i];
	return NULL;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* In the child: becomes the program or reports why not through fail_fd. */
static void program_exec(const char *cwd, char **argv, char **envp, int fail_fd)
{
	sigset_t none;
	int error;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	environ = envp;
	if (!chdir(cwd))
		execvp(argv[0], argv);
	error = errno;
	if (write(fail_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

static pid_t fork_on_pipes(struct program *program, int fail_fd[2], bool *child)
{
	int in[2], out[2], err[2];
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		return -1;	/* the guest is out of descriptors; what leaks here is the least of it */
	pid = fork();
	*child = pid == 0;
	if (*child) {
		setsid();
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		close(fail_fd[0]);
		return 0;
	}
	close(in[0]);
	close(out[1]);
	close(err[1]);
	program->in = in[1];
	program->out = out[0];
	program->err = err[0];
	return pid;
}

static pid_t fork_on_terminal(struct program *program, bool *child)
{
	int master;
	pid_t pid = forkpty(&master, NULL, NULL, NULL);

	*child = pid == 0;
	if (pid > 0) {
		fcntl(master, F_SETFD, FD_CLOEXEC);
		program->in = fcntl(master, F_DUPFD_CLOEXEC, 0);
		program->out = master;
		program->err = -1;
	}
	return pid;
}

static int program_start(struct program *program, uint16_t id, int flags, const char *cwd,
			 char **argv, char **envp)
{
	int fail_fd[2], error = 0;
	bool child = false;
	pid_t pid;

	if (pipe2(fail_fd, O_CLOEXEC))
		return errno;
	if (flags & VM_RUN_TERMINAL)
		pid = fork_on_terminal(program, &child);
	else
		pid = fork_on_pipes(program, fail_fd, &child);
	if (child)
		program_exec(cwd, argv, envp, fail_fd[1]);
	close(fail_fd[1]);
	if (pid < 0)
		error = errno;
	else if (read(fail_fd[0], &error, sizeof(error)) == sizeof(error))
		waitpid(pid, NULL, 0);
	close(fail_fd[0]);
	if (error) {
		fd_close(&program->in);
		fd_close(&program->out);
		fd_close(&program->err);
		return error;
	}
	fcntl(program->in, F_SETFL, O_NONBLOCK);
	fcntl(program->out, F_SETFL, O_NONBLOCK);
	if (program->err >= 0)
		fcntl(program->err, F_SETFL, O_NONBLOCK);
	program->pid = pid;
	program->id = id;
	return 0;
}

/* Cut the strings of a RUN frame into cwd, argv and envp: 0, or -EINVAL for a lying frame. */
static int run_decode(char *data, size_t len, char **cwd, char ***argv, char ***envp)
{
	static char *strings[VM_FRAME_MAX / 2 + 3];
	size_t nr = 0, nr_args;

	if (!len || data[len - 1])
		return -EINVAL;
	for (char *s = data; s < data + len; s += strlen(s) + 1) {
		if (nr == sizeof(strings) / sizeof(strings[0]) - 3)
			return -E2BIG;
		strings[nr++] = s;
	}
	nr_args = nr >= 2 ? strtoul(strings[1], NULL, 10) : 0;
	if (!nr_args || nr_args > nr - 2)
		return -EINVAL;
	*cwd = strings[0];
	*argv = &strings[2];
	memmove(&strings[2 + nr_args + 1], &strings[2 + nr_args],
		(nr - 2 - nr_args) * sizeof(strings[0]));
	strings[2 + nr_args] = NULL;
	strings[nr + 1] = NULL;
	*envp = &strings[2 + nr_args + 1];
	return 0;
}

static void handle_run(const struct vm_frame *frame)
{
	char *cwd, **argv, **envp;
	int err = EBUSY;

	if (run_decode(frame_data, frame->length, &cwd, &argv, &envp)) {
		frame_send(VM_FRAME_REFUSED, frame->id, EINVAL, NULL, 0);
		return;
	}
	for (int i = 0; i < VM_PROGRAMS_MAX && !program_find(frame->id); i++) {
		if (programs[i].pid)
			continue;
		err = program_start(&programs[i], frame->id, frame->status, cwd, argv, envp);
		break;
	}
	if (err)
		frame_send(VM_FRAME_REFUSED, frame->id, err, NULL, 0);
}

static void handle_input(const struct vm_frame *frame)
{
	struct program *program = program_find(frame->id);

	if (!program || program->in < 0)
		return;
	/* A program that does not read its input loses it rather than stall the guest. */
	if (!frame->length || write(program->in, frame_data, frame->length) < 0)
		fd_close(&program->in);
}

/* ---- connections to the host's server ---------------------------------------- */

static void handle_listen(const struct vm_frame *frame)
{
	struct sockaddr_un un;
	int len = muster_namespace_address(frame_data, frame->length, &un);

	if (len < 0) {
		say("nobody can connect to the host: %s", strerror(-len));
		return;
	}
	door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (door < 0 || bind(door, (struct sockaddr *)&un, (socklen_t)len) ||
	    listen(door, VM_CONNECTIONS_MAX))
		say("nobody can connect to the host: %s", strerror(errno));
}

static void hang_up(uint16_t id)
{
	vm_connections_close(&connections, id);
	frame_send(VM_FRAME_HANGUP, id, 0, NULL, 0);
}

/* An abstract address has no permissions, and the server takes us all for the runner. */
static bool is_root(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && !cred.uid;
}

static void connection_accept(void)
{
	static uint16_t id;
	int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && !is_root(fd))
		fd_close(&fd);
	if (fd >= 0 && !vm_connections_add(&connections, ++id, fd))
		frame_send(VM_FRAME_DIAL, id, 0, NULL, 0);
}

static void connection_read(uint16_t id)
{
	static char message[VM_FRAME_MAX];
	int n = vm_connection_read(vm_connections_fd(&connections, id), message);

	if (n > 0)
		frame_send(VM_FRAME_MESSAGE, id, 0, message, n);
	else if (n < 0)
		hang_up(id);
}

static void handle_message(const struct vm_frame *frame)
{
	int fd = vm_connections_fd(&connections, frame->id);

	if (fd >= 0 && vm_connection_write(fd, frame_data, frame->length))
		hang_up(frame->id);
}

/* The numbers first: who hangs up is not in the table any more. */
static void connections_step(const struct pollfd *fds)
{
	uint16_t ids[VM_CONNECTIONS_MAX], nr = 0;

	for (unsigned int i = 0; i < connections.nr; i++)
		if (fds[i].revents)
			ids[nr++] = connections.list[i].id;
	while (nr)
		connection_read(ids[--nr]);
}

/* ---- everything ---------------------------------------------------------------- */

static void handle_frame(void)
{
	struct vm_frame frame;
	struct program *program;

	control_read(&frame, sizeof(frame));
	if (frame.length > VM_FRAME_MAX) {
		say("frame of %u bytes from the host", frame.length);
		power_off();
	}
	control_read(frame_data, frame.length);
	program = program_find(frame.id);
	switch (frame.type) {
	case VM_FRAME_RUN:
		handle_run(&frame);
		break;
	case VM_FRAME_INPUT:
		handle_input(&frame);
		break;
	case VM_FRAME_SIGNAL:
		if (program)
			kill(-program->pid, frame.status);
		break;
	case VM_FRAME_LISTEN:
		handle_listen(&frame);
		break;
	case VM_FRAME_MESSAGE:
		handle_message(&frame);
		break;
	case VM_FRAME_HANGUP:
		vm_connections_close(&connections, frame.id);
		break;
	case VM_FRAME_POWEROFF:
		power_off();
	}
}

/* Pass on what the program wrote; false when there is no more for now. */
static bool pass_output(struct program *program, int *fd, int which)
{
	char data[8192];
	ssize_t n;

	if (*fd < 0)
		return false;
	n = read(*fd, data, sizeof(data));
	if (n > 0) {
		frame_send(VM_FRAME_OUTPUT, program->id, which, data, n);
		return true;
	}
	if (n == 0 || errno != EAGAIN)
		fd_close(fd);
	return false;
}

/* What it left running goes with it, and can no longer write. */
static void program_ended(struct program *program, int status)
{
	kill(-program->pid, SIGKILL);
	while (pass_output(program, &program->out, 1) || pass_output(program, &program->err, 2))
		;
	fd_close(&program->in);
	fd_close(&program->out);
	fd_close(&program->err);
	frame_send(VM_FRAME_EXIT, program->id, status, NULL, 0);
	program->pid = 0;
}

static void reap(int signals)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (read(signals, &info, sizeof(info)) < 0)
		return;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < VM_PROGRAMS_MAX; i++)
			if (programs[i].pid == pid)
				program_ended(&programs[i], status);
}

/* A poll entry with a negative descriptor is skipped by poll(). */
static void step(int signals)
{
	struct pollfd fds[FDS + VM_CONNECTIONS_MAX];

	fds[0] = (struct pollfd){ .fd = control, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = signals, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = door, .events = POLLIN };
	for (int i = 0; i < VM_PROGRAMS_MAX; i++) {
		bool live = programs[i].pid;

		fds[3 + 2 * i] = (struct pollfd){ live ? programs[i].out : -1, POLLIN, 0 };
		fds[4 + 2 * i] = (struct pollfd){ live ? programs[i].err : -1, POLLIN, 0 };
	}
	for (unsigned int i = 0; i < connections.nr; i++)
		fds[FDS + i] = (struct pollfd){ connections.list[i].fd, POLLIN, 0 };
	if (poll(fds, FDS + connections.nr, -1) < 0)
		return;
	for (int i = 0; i < VM_PROGRAMS_MAX; i++) {
		if (fds[3 + 2 * i].revents)
			pass_output(&programs[i], &programs[i].out, 1);
		if (fds[4 + 2 * i].revents)
			pass_output(&programs[i], &programs[i].err, 2);
	}
	connections_step(fds + FDS);
	if (fds[2].revents)
		connection_accept();
	if (fds[1].revents)
		reap(signals);
	/* Who is away leaves nothing to read, and a read would wait for what the host says next. */
	if (fds[0].revents & POLLHUP)
		host_await();
	else if (fds[0].revents)
		handle_frame();
}

/* The kernel gives its first process, as environment, what it does not know itself. */
static void host_name(void)
{
	const char *guest = getenv("muster_guest");
	char name[32];

	snprintf(name, sizeof(name), "guest%.20s", guest ? guest : "");
	sethostname(name, strlen(name));
}

int main(void)
{
	sigset_t chld;
	int signals;

	if (getpid() != 1) {
		fprintf(stderr, "guest_agent runs as the first process of a guest only\n");
		return 2;
	}
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	signal(SIGPIPE, SIG_IGN);
	signals = signalfd(-1, &chld, SFD_CLOEXEC);
	host_name();
	control_open();
	frame_send(VM_FRAME_HELLO, 0, 0, NULL, 0);
	for (;;)
		step(signals);
}
