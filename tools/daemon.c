// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the daemons share (daemon.h). They call themselves as they were called.
 */
#include "daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "namespace.h"
#include "version.h"

enum { SLEEP_MAX_US = 1000000, BACKLOG = 1024 };

/* ---- options ---- */

int daemon_misused(const char *what, const char *value)
{
	fprintf(stderr, "%s: %s%s%s%s\nTry '%s --help'.\n", program_invocation_short_name, what,
		value ? " '" : "", value ? value : "", value ? "'" : "",
		program_invocation_short_name);
	return DAEMON_EXIT_USAGE;
}

int daemon_failed(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	return 1;
}

int daemon_number(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number < min || number > max)
		return daemon_misused("this is no number, too small, or too large:", text);
	*value = (uint32_t)number;
	return 0;
}

static int take(const struct daemon_usage *usage, int key, void *options)
{
	switch (key) {
	case 'h':
		fputs(usage->help, stdout);
		return -1;
	case 'V':
		printf("%s " MUSTER_VERSION "\n", program_invocation_short_name);
		return -1;
	case '?':
		fprintf(stderr, "Try '%s --help'.\n", program_invocation_short_name);
		return DAEMON_EXIT_USAGE;
	default:
		return usage->take(key, options);
	}
}

int daemon_options(const struct daemon_usage *usage, int argc, char **argv, void *options)
{
	int key, ret = 0;

	while (!ret && (key = getopt_long(argc, argv, usage->shorts, usage->longs, NULL)) != -1)
		ret = take(usage, key, options);
	if (!ret && optind != argc)
		ret = daemon_misused("what is", argv[optind]);
	return ret;
}

/* ---- counters ---- */

int daemon_report_open(struct daemon_report *report, const char *file, bool json)
{
	report->to = file ? fopen(file, "ae") : stdout;
	report->file = file;
	report->json = json;
	return report->to ? 0 : daemon_failed(file, strerror(errno));
}

/*
 * What has been added goes in one write, as other daemons may append to the same file. Who
 * started us may read no more; but a file was named to be written.
 */
int daemon_report_close(struct daemon_report *report)
{
	bool lost = ferror(report->to);

	errno = EIO;	/* unless it is said otherwise */
	if (!report->file) {
		fflush(report->to);
		return 0;
	}
	lost |= fclose(report->to) != 0;
	return lost ? daemon_failed(report->file, strerror(errno)) : 0;
}

int daemon_report_try(const char *file)
{
	struct daemon_report report;
	int ret = daemon_report_open(&report, file, false);

	return ret ? ret : daemon_report_close(&report);
}

void daemon_report_begin(const struct daemon_report *report, const char *what, uint32_t number)
{
	fprintf(report->to, report->json ? "{\"schema\": \"muster/1\", \"%s\": %" PRIu32 :
					   "%s %" PRIu32 "\n", what, number);
}

void daemon_report_one(const struct daemon_report *report, const char *name, uint64_t value)
{
	fprintf(report->to, report->json ? ", \"%s\": %" PRIu64 : "%-16s %12" PRIu64 "\n", name,
		value);
}

void daemon_report_all(const struct daemon_report *report, const struct daemon_counter *names,
		       size_t nr, const void *counters)
{
	uint64_t value;

	for (size_t i = 0; i < nr; i++) {
		memcpy(&value, (const char *)counters + names[i].at, sizeof(value));
		daemon_report_one(report, names[i].name, value);
	}
}

void daemon_report_end(const struct daemon_report *report)
{
	fputs(report->json ? "}\n" : "\n", report->to);
}

/* ---- waiting ---- */

int daemon_signals(int more)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	if (more)
		sigaddset(&set, more);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);	/* who has seen that we are ready may read no more */
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		daemon_failed("signals", strerror(errno));
	return fd;
}

int daemon_signal(int signals)
{
	struct signalfd_siginfo info;

	return read(signals, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

int daemon_patience_ms(uint64_t deadline_us)
{
	uint64_t now_us = muster_clock_us(), left_us;

	if (deadline_us == UINT64_MAX)
		return -1;
	left_us = deadline_us > now_us ? deadline_us - now_us : 0;
	return (int)((left_us < SLEEP_MAX_US ? left_us : SLEEP_MAX_US) + 999) / 1000;
}

void daemon_ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* ---- who connects ---- */

/* Left by one that was killed: a socket where nobody listens. A file refuses in the same way. */
static bool is_left_over(const struct sockaddr_un *un, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat status;
	bool refused = fd >= 0 && *un->sun_path && !lstat(un->sun_path, &status) &&
		       S_ISSOCK(status.st_mode) &&
		       connect(fd, (const struct sockaddr *)un, len) && errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return refused;
}

static int bind_at(int fd, const struct sockaddr_un *un, socklen_t len)
{
	if (!bind(fd, (const struct sockaddr *)un, len))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (!is_left_over(un, len))
		return -EADDRINUSE;
	unlink(un->sun_path);
	return bind(fd, (const struct sockaddr *)un, len) ? -errno : 0;
}

int daemon_listen(const char *address)
{
	struct sockaddr_un un;
	int len = muster_namespace_address(address, strlen(address), &un), fd, err;

	if (len < 0)
		return len;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = bind_at(fd, &un, (socklen_t)len);
	if (!err && !listen(fd, BACKLOG))
		return fd;
	err = err ? err : -errno;
	close(fd);
	return err;
}

int daemon_connect(const char *address, int flags)
{
	struct sockaddr_un un;
	int len = muster_namespace_address(address, strlen(address), &un), fd, err;

	if (len < 0)
		return len;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&un, (socklen_t)len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

bool daemon_same_user(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.uid == geteuid();
}
