// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which devices are taken. Part of main.c where the kernel has KUnit. */
#include <kunit/test.h>

struct identity {
	u32 magic, version, node, incarnation;
};

static int identified(struct kunit *test, struct identity says)
{
	struct muster_function *fn = kunit_kzalloc(test, sizeof(*fn), GFP_KERNEL);
	struct muster_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	u32 *regs = kunit_kzalloc(test, MUSTER_REGS_BYTES, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fn);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, regs);
	fn->pdev = kunit_kzalloc(test, sizeof(*fn->pdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fn->pdev);
	fn->regs = (void __iomem *)regs;
	dev->fn = fn;
	regs[MUSTER_REG_MAGIC / 4] = says.magic;
	regs[MUSTER_REG_VERSION / 4] = says.version;
	regs[MUSTER_REG_NODE / 4] = says.node;
	regs[MUSTER_REG_INCARNATION / 4] = says.incarnation;
	return identify(dev);
}

static void another_device_or_version_is_refused(struct kunit *test)
{
	const struct identity good = {
		MUSTER_REG_MAGIC_VALUE, MUSTER_DEVICE_VERSION, MUSTER_NODES_MAX - 1, 1,
	};
	struct identity says = good;

	KUNIT_EXPECT_EQ(test, identified(test, good), 0);
	says.magic = U32_MAX;
	KUNIT_EXPECT_EQ(test, identified(test, says), -ENODEV);
	says = good;
	says.version--;
	KUNIT_EXPECT_EQ(test, identified(test, says), -ENODEV);
	says.version += 2;
	KUNIT_EXPECT_EQ(test, identified(test, says), -ENODEV);
	says = good;
	says.node++;
	KUNIT_EXPECT_EQ(test, identified(test, says), -EIO);
	says = good;
	says.incarnation = 0;
	KUNIT_EXPECT_EQ(test, identified(test, says), -EIO);
}

static struct kunit_case main_cases[] = {
	KUNIT_CASE(another_device_or_version_is_refused),
	{ }
};

static struct kunit_suite main_suite = { .name = "muster-main", .test_cases = main_cases };

kunit_test_suite(main_suite);
