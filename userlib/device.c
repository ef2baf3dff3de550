// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The choice of device. The local one is part of the library; the verbs one is a
 * library of its own (verbs/verbs.h), so that programs without a NIC need neither
 * libibverbs nor a provider. It is looked for where the dynamic linker looks, and
 * beside this library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "local.h"
#include "verbs/verbs.h"

#define VERBS_LIBRARY "libmuster-verbs.so.0"

typedef int verbs_open(struct muster_dev **dev, char *why, size_t why_len);

static int local_open(const struct muster_oob *oob, const struct muster_settings *settings,
		      struct muster_dev **dev, char *why, size_t why_len)
{
	const struct muster_local_config config = {
		.wire = settings->wire,
		.fabric = settings->fabric,
		.uplink = settings->uplink,
		.uplink_life = settings->uplink_life,
		.first_host = settings->first_host,
		.rail = settings->rail,
		.alone = settings->mixed,
		.deadline_us = settings->deadline_us,
		/* A rank's own: the others need not have them. */
		.engine = getenv("MUSTER_ENGINE"),
		.dump = getenv("MUSTER_DUMP"),
	};

	return muster_local_open(oob, &config, dev, why, why_len);
}

/* In the folder of whatever file this code is in: libmuster.so, or a program. */
static void *library_beside(void)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info self;
	int len;

	if (!dladdr((void *)library_beside, &self) || !(slash = strrchr(self.dli_fname, '/')))
		return NULL;
	len = snprintf(path, sizeof(path), "%.*s/" VERBS_LIBRARY,
		       (int)(slash - self.dli_fname), self.dli_fname);
	return len < (int)sizeof(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Loaded once and never unloaded: its providers are not made for that. */
int muster_verbs_symbol(const char *name, void **symbol, char *why, size_t why_len)
{
	void *library = dlopen(VERBS_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		snprintf(why, why_len, "%s; 'make provider' builds it, LD_LIBRARY_PATH says where it is",
			 dlerror());
		library = library_beside();
	}
	if (!library)
		return -ENOENT;
	*symbol = dlsym(library, name);
	if (*symbol)
		return 0;
	snprintf(why, why_len, "%s: install it from the same build as libmuster", dlerror());
	return -ENOENT;
}

int muster_device_open(const struct muster_oob *oob, const struct muster_settings *settings,
		       struct muster_dev **dev, char *why, size_t why_len)
{
	verbs_open *open;
	void *symbol;
	int err;

	if (!strcmp(settings->device, "local"))
		return local_open(oob, settings, dev, why, why_len);
	err = muster_verbs_symbol("muster_verbs_open", &symbol, why, why_len);
	if (err)
		return err;
	open = (verbs_open *)symbol;
	return open(dev, why, why_len);
}
