// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_devinfo: what devices this machine has and what they can, in the layout of
 * ibv_devinfo. What is printed is the JSON of diag_devices.c, a line each value.
 *
 * usage: muster_devinfo [OPTION]...
 */
#include <stdio.h>
#include <string.h>

#include "diag.h"
#include "muster_regs.h"

enum { VALUE_COLUMN = 40 };

static const struct diag_option options[] = {
	{ 'd', "device", "NAME", "of this device alone: local, or as --list says" },
	{ 'l', "list", NULL, "only their names" },
	{ 'v', "verbose", NULL, "also types, operations and limits" },
	DIAG_OPTIONS_COMMON,
};

static const struct diag_tool tool = {
	.name = "muster_devinfo",
	.arguments = "",
	.about = "Show the devices of this machine that Muster can use: the local device, which every\n"
		 "process has, and Muster NICs.\n",
	.status = "0; 1 there is no such device, or one could not be asked; 2 wrong usage.\n",
	.options = options,
};

/* Tabs up to the column of values, as ibv_devinfo has it. */
static void print_label(int indent, const char *label)
{
	int at = 8 * indent;

	for (int i = 0; i < indent; i++)
		putchar('\t');
	at += printf("%s:", label);
	do {
		putchar('\t');
		at = at / 8 * 8 + 8;
	} while (at < VALUE_COLUMN);
}

static void print_strings(json_t *array)
{
	json_t *value;
	size_t i;

	json_array_foreach(array, i, value)
		printf("%s%s", i ? " " : "", json_string_value(value));
	puts(i ? "" : "none");
}

static void print_object(int indent, json_t *object, bool verbose);
static void print_element(int indent, json_t *object);

static void print_value(int indent, const char *key, json_t *value, bool verbose)
{
	json_t *element;
	size_t i;

	if (json_is_object(value)) {
		print_object(indent, value, verbose);
	} else if (json_is_object(json_array_get(value, 0))) {
		json_array_foreach(value, i, element)
			print_element(indent + 1, element);
	} else {
		print_label(indent, key);
		if (json_is_array(value))
			print_strings(value);
		else if (json_is_string(value))
			puts(json_string_value(value));
		else
			printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
	}
}

/* The first line of what lies in an array stands out, as ibv_devinfo has it. */
static void print_element(int indent, json_t *object)
{
	bool first = true;
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value) {
		print_value(first ? indent : indent + 1, key, value, true);
		first = false;
	}
}

static void print_object(int indent, json_t *object, bool verbose)
{
	static const char *const long_ones[] = { "types", "operations", "limits" };
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value) {
		bool skip = false;

		for (size_t i = 0; i < sizeof(long_ones) / sizeof(*long_ones); i++)
			skip |= !verbose && !strcmp(key, long_ones[i]);
		if (!skip)
			print_value(indent, key, value, verbose);
	}
}

static void print_devices(json_t *devices, bool verbose)
{
	json_t *device;
	size_t i;

	json_array_foreach(devices, i, device) {
		json_t *name = json_object_get(device, "hca_id");

		printf("hca_id:\t%s\n", json_string_value(name));
		json_object_del(device, "hca_id");
		print_object(1, device, verbose);
		putchar('\n');
	}
}

static void print_list(json_t *devices)
{
	json_t *device;
	size_t i, nr = json_array_size(devices);

	printf("%zu HCA%s found:\n", nr, nr == 1 ? "" : "s");
	json_array_foreach(devices, i, device)
		printf("\t%s\n", json_string_value(json_object_get(device, "hca_id")));
	putchar('\n');
}

static bool all_asked(json_t *devices)
{
	json_t *device;
	size_t i;

	json_array_foreach(devices, i, device)
		if (json_object_get(device, "error"))
			return false;
	return true;
}

static void say_if_there_is_no_nic(json_t *devices)
{
	if (json_array_size(devices) == 1)
		fprintf(stderr, "%s: no Muster NIC: there is no PCI device %04x:%04x\n", tool.name,
			MUSTER_PCI_VENDOR, MUSTER_PCI_DEVICE);
}

int main(int argc, char **argv)
{
	bool verbose = false, list = false, json = false, asked;
	const char *name = NULL;
	json_t *devices, *all;
	int key;

	while ((key = diag_option(&tool, argc, argv)) != -1)
		switch (key) {
		case 'd': name = optarg; break;
		case 'l': list = true; break;
		case 'v': verbose = true; break;
		case 'j': json = true; break;
		}
	if (optind < argc)
		diag_usage(&tool, "there is no argument '%s'", argv[optind]);
	if (list && json)
		diag_usage(&tool, "--list is for reading, --json has all");
	devices = diag_devices(name);
	if (name && !json_array_size(devices)) {
		fprintf(stderr, "%s: there is no device '%s'; --list says which there are\n",
			tool.name, name);
		return 1;
	}
	asked = all_asked(devices);
	if (json) {
		all = diag_object(&tool);
		diag_set(all, "devices", json_incref(devices));
		diag_print(&tool, all);
		json_decref(all);
	} else if (list) {
		print_list(devices);
	} else {
		if (!name)
			say_if_there_is_no_nic(devices);
		print_devices(devices, verbose);
	}
	diag_written(&tool);
	json_decref(devices);
	return asked || list ? 0 : 1;
}
