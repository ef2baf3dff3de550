// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Muster NICs are found in sysfs, here of a test's own, by what they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sysfs.h"

static char root[64];

static void make(const char *path, const char *text)
{
	char whole[256], *slash;
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		mkdir(whole, 0700);
	}
	if (!text) {
		mkdir(whole, 0700);
		return;
	}
	file = fopen(whole, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void make_function(const char *pci, const char *vendor, const char *device, const char *uevent)
{
	char path[128];

	snprintf(path, sizeof(path), "bus/pci/devices/%s/vendor", pci);
	make(path, vendor);
	snprintf(path, sizeof(path), "bus/pci/devices/%s/device", pci);
	make(path, device);
	snprintf(path, sizeof(path), "bus/pci/devices/%s/uevent", pci);
	make(path, uevent);
}

static int setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/muster-sysfs.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void a_machine_without_pci_has_none(void **state)
{
	struct muster_sysfs_nic nics[2];

	(void)state;
	assert_int_equal(muster_sysfs_nics(root, nics, 2), 0);
}

static void a_nic_is_found_whatever_it_is_called(void **state)
{
	struct muster_sysfs_nic nics[4];

	(void)state;
	make_function("0000:00:05.0", "0x1af4\n", "0x10f0\n", "DRIVER=muster\nPCI_CLASS=20800\n");
	make("bus/pci/devices/0000:00:05.0/infiniband/rocep0s5", NULL);
	make("bus/pci/devices/0000:00:05.0/infiniband_verbs/uverbs3", NULL);
	make_function("0000:00:03.0", "0x1af4\n", "0x10f0\n", "PCI_CLASS=20800\n");
	make_function("0000:00:04.0", "0x1af4\n", "0x1000\n", "DRIVER=virtio-pci\n");
	make("bus/pci/devices/0000:00:04.0/infiniband/muster0", NULL);
	assert_int_equal(muster_sysfs_nics(root, nics, 4), 2);
	assert_string_equal(nics[0].pci, "0000:00:03.0");
	assert_string_equal(nics[0].driver, "");
	assert_string_equal(nics[0].name, "");
	assert_string_equal(nics[1].pci, "0000:00:05.0");
	assert_string_equal(nics[1].driver, "muster");
	assert_string_equal(nics[1].name, "rocep0s5");
	assert_string_equal(nics[1].uverbs, "uverbs3");
	assert_int_equal(muster_sysfs_nics(root, nics, 1), 2);
}

static void an_attribute_is_a_line_or_an_error(void **state)
{
	char line[8];

	(void)state;
	make("class/infiniband/muster0/fw_ver", "2\nmore\n");
	make("class/infiniband/muster0/long", "0123456789\n");
	assert_int_equal(muster_sysfs_read(root, line, sizeof(line), "class/infiniband/%s/fw_ver", "muster0"), 0);
	assert_string_equal(line, "2");
	assert_int_equal(muster_sysfs_read(root, line, sizeof(line), "class/infiniband/muster0/long"), 0);
	assert_string_equal(line, "0123456");
	assert_true(muster_sysfs_read(root, line, sizeof(line), "class/infiniband/none") < 0);
	assert_string_equal(line, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_machine_without_pci_has_none, setup, teardown),
		cmocka_unit_test_setup_teardown(a_nic_is_found_whatever_it_is_called, setup, teardown),
		cmocka_unit_test_setup_teardown(an_attribute_is_a_line_or_an_error, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
