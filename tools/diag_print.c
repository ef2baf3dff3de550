// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * JSON of the diagnostics. Without memory for it nothing right can be said: they say
 * that, and exit with 1.
 */
#include "diag.h"

#include <stdio.h>
#include <stdlib.h>

#include "version.h"

void diag_set(json_t *object, const char *key, json_t *value)
{
	if (!object || !value || json_object_set_new(object, key, value)) {
		fprintf(stderr, "no memory for '%s'\n", key);
		exit(1);
	}
}

void diag_set_number(json_t *object, const char *key, uint64_t number)
{
	diag_set(object, key, json_integer((json_int_t)number));
}

void diag_set_text(json_t *object, const char *key, const char *text)
{
	char clean[DIAG_WHY_BYTES];
	size_t i;

	for (i = 0; text[i] && i < sizeof(clean) - 1; i++)
		clean[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	clean[i] = 0;
	diag_set(object, key, json_string(clean));
}

json_t *diag_object(const struct diag_tool *tool)
{
	json_t *object = json_object();

	diag_set(object, "schema", json_string("muster/1"));
	diag_set(object, "tool", json_string(tool->name));
	diag_set(object, "version", json_string(MUSTER_VERSION));
	return object;
}

void diag_written(const struct diag_tool *tool)
{
	if (!fflush(stdout) && !ferror(stdout))
		return;
	fprintf(stderr, "%s: the output could not be written\n", tool->name);
	exit(1);
}

void diag_print(const struct diag_tool *tool, const json_t *object)
{
	json_dumpf(object, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	putchar('\n');
	diag_written(tool);
}
