// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The limit of open files, raised for a while (limit.h). What somebody else sets
 * in the meantime stays as it is.
 */
#include "limit.h"

#include <pthread.h>
#include <sys/resource.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* all below, and the limit */
static unsigned int users;
static struct rlimit before, raised;

void muster_limit_raise(void)
{
	pthread_mutex_lock(&lock);
	if (!users++ && !getrlimit(RLIMIT_NOFILE, &before)) {
		raised = before;
		raised.rlim_cur = before.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &raised))
			raised = before;
	}
	pthread_mutex_unlock(&lock);
}

void muster_limit_restore(void)
{
	struct rlimit now;

	pthread_mutex_lock(&lock);
	if (!--users && !getrlimit(RLIMIT_NOFILE, &now) && now.rlim_cur == raised.rlim_cur &&
	    now.rlim_max == raised.rlim_max)
		setrlimit(RLIMIT_NOFILE, &before);
	pthread_mutex_unlock(&lock);
}
