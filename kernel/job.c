// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Jobs: a JobID and the key that makes a member of it. The key is minted here,
 * from the kernel's randomness, and handed to the first member, who tells the
 * others; the device puts it into every packet and drops those without it.
 */
#include "muster.h"

#include <linux/cred.h>
#include <linux/random.h>

#define UVERBS_MODULE_NAME muster
#include <rdma/uverbs_named_ioctl.h>

static u64 key_mint(void)
{
	u64 key;

	do {
		key = get_random_u64();
	} while (!key);
	return key;
}

static int key_decode(struct uverbs_attr_bundle *attrs, u64 *key)
{
	int err;

	if (!uverbs_attr_is_valid(attrs, MUSTER_ATTR_JOB_CREATE_KEY)) {
		*key = key_mint();
		return 0;
	}
	err = uverbs_copy_from(key, attrs, MUSTER_ATTR_JOB_CREATE_KEY);
	if (err)
		return err;
	return *key ? 0 : -EINVAL;
}

static int UVERBS_HANDLER(MUSTER_METHOD_JOB_CREATE)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs, MUSTER_ATTR_JOB_CREATE_HANDLE);
	struct muster_job *job;
	u32 id;
	u64 key;
	int err;

	err = uverbs_copy_from(&id, attrs, MUSTER_ATTR_JOB_CREATE_ID);
	if (err)
		return err;
	if (id >= MUSTER_JOBS_MAX)
		return -EINVAL;
	err = key_decode(attrs, &key);
	if (err)
		return err;
	job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	if (!job)
		return -ENOMEM;
	job->dev = to_mdev(uobj->context->device);
	job->shown.user = current_uid();
	job->id = id;
	job->key = key;
	err = xa_alloc_cyclic(&job->dev->jobs, &job->shown.number, &job->shown,
			      xa_limit_32b, &job->dev->next_job, GFP_KERNEL_ACCOUNT);
	if (err < 0) {
		kfree_sensitive(job);
		return err;
	}
	muster_netlink_changed();
	uobj->object = job;
	uverbs_finalize_uobj_create(attrs, MUSTER_ATTR_JOB_CREATE_HANDLE);
	return uverbs_copy_to(attrs, MUSTER_ATTR_JOB_CREATE_RESP_KEY, &key, sizeof(key));
}

static int job_cleanup(struct ib_uobject *uobj, enum rdma_remove_reason why,
		       struct uverbs_attr_bundle *attrs)
{
	struct muster_job *job = uobj->object;

	if (atomic_read(&job->users))
		return -EBUSY;
	xa_erase(&job->dev->jobs, job->shown.number);
	muster_netlink_changed();
	kfree_sensitive(job);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(MUSTER_METHOD_JOB_CREATE,
	UVERBS_ATTR_IDR(MUSTER_ATTR_JOB_CREATE_HANDLE, MUSTER_OBJECT_JOB,
			UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MUSTER_ATTR_JOB_CREATE_ID, UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MUSTER_ATTR_JOB_CREATE_KEY, UVERBS_ATTR_TYPE(u64), UA_OPTIONAL),
	UVERBS_ATTR_PTR_OUT(MUSTER_ATTR_JOB_CREATE_RESP_KEY, UVERBS_ATTR_TYPE(u64),
			    UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(MUSTER_METHOD_JOB_DESTROY,
	UVERBS_ATTR_IDR(MUSTER_ATTR_JOB_DESTROY_HANDLE, MUSTER_OBJECT_JOB,
			UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(MUSTER_OBJECT_JOB, UVERBS_TYPE_ALLOC_IDR(job_cleanup),
	&UVERBS_METHOD(MUSTER_METHOD_JOB_CREATE),
	&UVERBS_METHOD(MUSTER_METHOD_JOB_DESTROY));

const struct uapi_definition muster_job_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MUSTER_OBJECT_JOB),
	{ }
};
