// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_hello: is all well with Muster on this machine? A line a check, for any user, and at
 * the end "Test Passed." or the one thing to fix first: what failed first in this order.
 *
 * usage: muster_hello [OPTION]...
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hello.h"

static const struct diag_option options[] = {
	{ 'd', "device", "NAME", "of this device alone: local, or a NIC's name (all)" },
	DIAG_OPTIONS_COMMON,
};

static const struct diag_tool tool = {
	.name = "muster_hello",
	.arguments = "",
	.about = "Check everything on this machine that a job of Muster needs, for the user who asks.\n"
		 "The last line is \"Test Passed.\", or what to fix first.\n",
	.status = "0 passed; 1 not; 2 wrong usage.\n",
	.options = options,
};

static const char *const results[] = { "ok", "none", "skip", "FAIL" };

static const struct {
	const char *name;
	void (*check)(const struct hello_machine *machine, struct hello_line *line);
	bool of_nic;
} checks[] = {
	{ "library", hello_library, false },
	{ "memory", hello_memory, false },
	{ "files", hello_files, false },
	{ "local", hello_run_local, false },
	{ "nic", hello_nic, true },
	{ "module", hello_module, true },
	{ "node", hello_node, true },
	{ "versions", hello_versions, true },
	{ "memlock", hello_memlock, true },
	{ "nic run", hello_run_nic, true },
};

enum { CHECKS = sizeof(checks) / sizeof(*checks) };

void hello_say(struct hello_line *line, enum hello_result result, const char *format, ...)
{
	va_list args;

	line->result = result;
	va_start(args, format);
	vsnprintf(line->text, sizeof(line->text), format, args);
	va_end(args);
}

void hello_cure(struct hello_line *line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(line->cure, sizeof(line->cure), format, args);
	va_end(args);
}

/* What of a NIC failed makes what follows of it needless. */
static void run_all(const struct hello_machine *machine, struct hello_line *lines)
{
	bool nic_failed = false;

	for (size_t i = 0; i < CHECKS; i++) {
		if (checks[i].of_nic && nic_failed)
			hello_say(&lines[i], HELLO_SKIP, "not tried");
		else
			checks[i].check(machine, &lines[i]);
		nic_failed |= checks[i].of_nic && lines[i].result == HELLO_FAIL;
	}
}

static const struct hello_line *first_failed(const struct hello_line *lines)
{
	for (size_t i = 0; i < CHECKS; i++)
		if (lines[i].result == HELLO_FAIL)
			return &lines[i];
	return NULL;
}

static void print_text(const struct hello_line *lines, const struct hello_line *failed)
{
	for (size_t i = 0; i < CHECKS; i++)
		printf("%-9s %-4s  %s\n", checks[i].name, results[lines[i].result], lines[i].text);
	if (failed)
		printf("Fix first: %s\n", failed->cure);
	else
		puts("Test Passed.");
}

static void print_json(const struct hello_line *lines, const struct hello_line *failed)
{
	json_t *all = diag_object(&tool), *array = json_array();

	for (size_t i = 0; i < CHECKS; i++) {
		json_t *one = json_object();

		diag_set_text(one, "check", checks[i].name);
		diag_set_text(one, "result", results[lines[i].result]);
		diag_set_text(one, "text", lines[i].text);
		if (lines[i].result == HELLO_FAIL)
			diag_set_text(one, "cure", lines[i].cure);
		json_array_append_new(array, one);
	}
	diag_set(all, "checks", array);
	diag_set(all, "passed", json_boolean(!failed));
	if (failed)
		diag_set_text(all, "fix_first", failed->cure);
	diag_print(&tool, all);
	json_decref(all);
}

/* The NIC that is asked for, or the first; false: there is none of that name. */
static bool choose(const char *name, struct muster_sysfs_nic *nics, struct hello_machine *machine)
{
	unsigned int nr = muster_sysfs_nics(MUSTER_SYSFS, nics, DIAG_NICS_MAX);

	machine->local_only = name && !strcmp(name, "local");
	if (machine->local_only)
		return true;
	for (unsigned int i = 0; i < nr && i < DIAG_NICS_MAX && !machine->nic; i++)
		if (!name || !strcmp(name, nics[i].name) || !strcmp(name, nics[i].pci))
			machine->nic = &nics[i];
	return machine->nic || !name;
}

int main(int argc, char **argv)
{
	struct muster_sysfs_nic nics[DIAG_NICS_MAX];
	struct hello_line lines[CHECKS] = { 0 };
	struct hello_machine machine = { 0 };
	const struct hello_line *failed;
	const char *name = NULL;
	bool json = false;
	int key;

	while ((key = diag_option(&tool, argc, argv)) != -1)
		switch (key) {
		case 'd': name = optarg; break;
		case 'j': json = true; break;
		}
	if (optind < argc)
		diag_usage(&tool, "there is no argument '%s'", argv[optind]);
	if (!choose(name, nics, &machine)) {
		fprintf(stderr, "%s: there is no device '%s'; muster_devinfo --list says which there are\n",
			tool.name, name);
		return 1;
	}
	signal(SIGXFSZ, SIG_IGN);	/* a limit that is met is an error to be told */
	run_all(&machine, lines);
	failed = first_failed(lines);
	if (json)
		print_json(lines, failed);
	else
		print_text(lines, failed);
	diag_written(&tool);
	return failed ? 1 : 0;
}
