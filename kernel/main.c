// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The PCI function: probe and remove, and the births and deaths of the device in
 * it. A life ends by fencing first: reset, and bus mastering off. After that the
 * device can touch no memory, so everything may be freed in any order and without
 * asking it; unplugging, unbinding and resets all go this one way.
 */
#include "muster.h"
#include "trace.h"

#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>

/* ---- one life ---------------------------------------------------------------- */

static int reset(struct muster_function *fn)
{
	unsigned long end = jiffies + msecs_to_jiffies(MUSTER_RESET_TIMEOUT_MS);

	writel(MUSTER_CONTROL_RESET, fn->regs + MUSTER_REG_CONTROL);
	while (readl(fn->regs + MUSTER_REG_CONTROL)) {
		if (time_after(jiffies, end)) {
			dev_err(&fn->pdev->dev, "reset does not end\n");
			return -EIO;
		}
		usleep_range(100, 1000);
	}
	return 0;
}

static int identify(struct muster_dev *dev)
{
	struct device *device = &dev->fn->pdev->dev;
	u32 magic = muster_reg_read(dev, MUSTER_REG_MAGIC);
	u32 version = muster_reg_read(dev, MUSTER_REG_VERSION);

	dev->node = muster_reg_read(dev, MUSTER_REG_NODE);
	dev->incarnation = muster_reg_read(dev, MUSTER_REG_INCARNATION);
	dev->capabilities = muster_reg_read(dev, MUSTER_REG_CAPABILITIES);
	if (magic != MUSTER_REG_MAGIC_VALUE) {
		dev_err(device, "not a Muster device: magic is %#x\n", magic);
		return -ENODEV;
	}
	if (version != MUSTER_DEVICE_VERSION) {
		dev_err(device, "device is of version %u, this driver is for version %u\n",
			version, MUSTER_DEVICE_VERSION);
		return -ENODEV;
	}
	if (dev->node >= MUSTER_NODES_MAX || !dev->incarnation) {
		dev_err(device, "device says node %u, incarnation %u\n", dev->node,
			dev->incarnation);
		return -EIO;
	}
	return 0;
}

static struct muster_fault fault_of(struct muster_dev *dev, const char *why)
{
	struct muster_fault fault = {
		.why = why,
		.incarnation = dev->incarnation,
		.status = muster_reg_read(dev, MUSTER_REG_STATUS),
		.events = READ_ONCE(dev->events.head),
		.vps = READ_ONCE(dev->vps_share.used),
		.cqs = READ_ONCE(dev->cqs_share.used),
		.contexts = READ_ONCE(dev->contexts_share.used),
	};

	muster_admin_fault(dev, &fault);
	return fault;
}

/*
 * After this the device does no DMA and will not until its next life, and no
 * command is sent to it. For a reason, the next life follows by itself.
 */
void muster_dev_fence(struct muster_dev *dev, const char *why)
{
	struct muster_function *fn = dev->fn;

	mutex_lock(&dev->fence_lock);
	if (!dev->fenced) {
		if (why)
			dev->fault = fault_of(dev, why);
		/* In this order, so that peers hear of a reset and not of failing DMA. */
		muster_reg_write(dev, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
		muster_reg_read(dev, MUSTER_REG_STATUS);	/* the write has arrived */
		pci_clear_master(fn->pdev);
		WRITE_ONCE(dev->fenced, true);
		trace_muster_fence(dev, why);
		if (why) {
			dev_err(&fn->pdev->dev, "%s: resetting the device\n", why);
			queue_delayed_work(system_long_wq, &fn->recover,
					   msecs_to_jiffies(MUSTER_RECOVER_DELAY_MS));
		}
	}
	mutex_unlock(&dev->fence_lock);
	wake_up_all(&dev->admin.wait);
}

static int enable(struct muster_dev *dev)
{
	struct muster_admin_command nop = { .opcode = MUSTER_ADMIN_NOP };

	pci_set_master(dev->fn->pdev);
	muster_reg_write(dev, MUSTER_REG_CONTROL, MUSTER_CONTROL_ENABLE);
	if ((muster_reg_read(dev, MUSTER_REG_STATUS) & ~MUSTER_STATE_LINK_DOWN) !=
	    MUSTER_STATE_ENABLED) {
		dev_err(&dev->fn->pdev->dev, "device refuses its queues: status is %#x\n",
			muster_reg_read(dev, MUSTER_REG_STATUS));
		return -EIO;
	}
	return muster_admin_run(dev, &nop);
}

static void dev_init(struct muster_dev *dev, struct muster_function *fn)
{
	dev->fn = fn;
	mutex_init(&dev->link_lock);
	mutex_init(&dev->fence_lock);
	xa_init_flags(&dev->vps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->cqs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->srqs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	ida_init(&dev->pds);
	ida_init(&dev->counters);
	xa_init_flags(&dev->jobs, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->contexts, XA_FLAGS_ALLOC);
	mutex_init(&dev->mappings_lock);
	INIT_LIST_HEAD(&dev->mappings);
	muster_share_init(&dev->vps_share, "vps", MUSTER_VPS_MAX);
	muster_share_init(&dev->cqs_share, "cqs", MUSTER_CQS_MAX);
	muster_share_init(&dev->contexts_share, "contexts", MUSTER_CONTEXTS_MAX);
	muster_share_init(&dev->qps_share, "qps", MUSTER_QPS_MAX);
	muster_share_init(&dev->srqs_share, "srqs", MUSTER_SRQS_MAX);
}

/* After its objects: what is left of them is our leak. */
static void dev_free(struct muster_dev *dev)
{
	WARN_ON(!list_empty(&dev->mappings) || !xa_empty(&dev->mrs) || !ida_is_empty(&dev->pds) ||
		!ida_is_empty(&dev->counters) || !xa_empty(&dev->jobs) || !xa_empty(&dev->contexts));
	muster_share_destroy(&dev->srqs_share);
	muster_share_destroy(&dev->qps_share);
	muster_share_destroy(&dev->contexts_share);
	muster_share_destroy(&dev->cqs_share);
	muster_share_destroy(&dev->vps_share);
	mutex_destroy(&dev->mappings_lock);
	xa_destroy(&dev->contexts);
	xa_destroy(&dev->jobs);
	ida_destroy(&dev->counters);
	ida_destroy(&dev->pds);
	xa_destroy(&dev->srqs);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->mrs);
	xa_destroy(&dev->cqs);
	xa_destroy(&dev->vps);
	ib_dealloc_device(&dev->ibdev);
}

static int bring_up(struct muster_function *fn)
{
	struct muster_dev *dev = ib_alloc_device(muster_dev, ibdev);
	int err;

	if (!dev)
		return -ENOMEM;
	dev_init(dev, fn);
	err = reset(fn);
	if (err)
		goto err_free;
	err = identify(dev);
	if (err)
		goto err_free;
	err = muster_admin_open(dev);
	if (err)
		goto err_free;
	err = muster_events_open(dev);
	if (err)
		goto err_admin;
	err = muster_interrupts_open(dev);
	if (err)
		goto err_events;
	err = enable(dev);
	if (err)
		goto err_fence;
	err = muster_ibdev_register(dev);
	if (err)
		goto err_fence;
	fn->dev = dev;
	fn->lives++;
	trace_muster_up(dev);
	return 0;

err_fence:
	muster_dev_fence(dev, NULL);
	muster_interrupts_close(dev);
err_events:
	muster_events_close(dev);
err_admin:
	muster_admin_close(dev);
err_free:
	dev_free(dev);
	return err;
}

static void bring_down(struct muster_function *fn)
{
	struct muster_dev *dev = fn->dev;

	if (!dev)
		return;
	muster_dev_fence(dev, NULL);
	if (dev->fault.why) {
		fn->fault = dev->fault;
		fn->fault_new = true;
	}
	muster_mappings_clear(dev);
	muster_ibdev_unregister(dev);
	muster_interrupts_close(dev);
	muster_events_close(dev);
	muster_admin_close(dev);
	trace_muster_down(dev);
	dev_free(dev);
	fn->dev = NULL;
}

/* ---- resets ------------------------------------------------------------------ */

/* What a life needs may be missing for a while only, so there is always another try. */
static int bring_back(struct muster_function *fn)
{
	int err = bring_up(fn);

	fn->retry = err;
	if (!err) {
		fn->recover_delay_ms = MUSTER_RECOVER_DELAY_MS;
		dev_info(&fn->pdev->dev, "device is up again\n");
		return 0;
	}
	trace_muster_stays_down(fn, err);
	dev_err(&fn->pdev->dev, "device stays down: error %d; next try in %u ms\n", err,
		fn->recover_delay_ms);
	mod_delayed_work(system_long_wq, &fn->recover, msecs_to_jiffies(fn->recover_delay_ms));
	fn->recover_delay_ms = min_t(unsigned int, 2 * fn->recover_delay_ms,
				     MUSTER_RECOVER_DELAY_MAX_MS);
	return err;
}

/*
 * Begin a new life unless there is one, or somebody else will.
 * Return: 0; why it did not begin, and it is tried again.
 */
int muster_function_recover(struct muster_function *fn)
{
	int err = 0;

	mutex_lock(&fn->life);
	if (!fn->removing && !fn->resetting && (!fn->dev || fn->dev->fenced)) {
		bring_down(fn);
		err = bring_back(fn);
	}
	mutex_unlock(&fn->life);
	return err;
}

/* Processes learn of it at once, whoever decides when the next life begins. */
static void recover(struct work_struct *work)
{
	struct muster_function *fn = container_of(work, struct muster_function, recover.work);
	bool lost, retry;

	mutex_lock(&fn->life);
	if (!fn->removing && fn->dev && fn->dev->fenced)
		bring_down(fn);
	lost = fn->fault_new;
	fn->fault_new = false;
	retry = fn->retry;
	mutex_unlock(&fn->life);
	if (lost)
		muster_health_lost(fn);
	else if (retry && !muster_function_recover(fn))
		muster_health_recovered(fn);
}

static void reset_prepare(struct pci_dev *pdev)
{
	struct muster_function *fn = pci_get_drvdata(pdev);

	mutex_lock(&fn->life);
	fn->resetting = true;
	fn->retry = false;
	bring_down(fn);
	mutex_unlock(&fn->life);
}

static void reset_done(struct pci_dev *pdev)
{
	struct muster_function *fn = pci_get_drvdata(pdev);
	int err = -ENODEV;

	mutex_lock(&fn->life);
	fn->resetting = false;
	if (!fn->removing) {
		/* Amid an error of the bus a reset, or binding, may have begun one. */
		bring_down(fn);
		err = bring_back(fn);
	}
	mutex_unlock(&fn->life);
	if (!err)
		muster_health_recovered(fn);
}

/* ---- PCI --------------------------------------------------------------------- */

static int bars_map(struct muster_function *fn)
{
	struct pci_dev *pdev = fn->pdev;
	int err;

	if (pci_resource_len(pdev, MUSTER_BAR_REGS) < MUSTER_REGS_BYTES ||
	    pci_resource_len(pdev, MUSTER_BAR_DOORBELLS) <
	    (resource_size_t)MUSTER_VPS_MAX * MUSTER_DOORBELL_STRIDE) {
		dev_err(&pdev->dev, "BARs are too small\n");
		return -ENODEV;
	}
	err = pci_request_regions(pdev, KBUILD_MODNAME);
	if (err)
		return err;
	fn->regs = pci_iomap(pdev, MUSTER_BAR_REGS, MUSTER_REGS_BYTES);
	if (!fn->regs) {
		pci_release_regions(pdev);
		return -ENOMEM;
	}
	fn->doorbells = pci_resource_start(pdev, MUSTER_BAR_DOORBELLS);
	return 0;
}

static void bars_unmap(struct muster_function *fn)
{
	pci_iounmap(fn->pdev, fn->regs);
	pci_release_regions(fn->pdev);
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct muster_function *fn;
	int err;

	/* A doorbell page must be a page of its own, or neighbours could ring it. */
	BUILD_BUG_ON(PAGE_SIZE != MUSTER_DOORBELL_STRIDE);
	fn = kzalloc(sizeof(*fn), GFP_KERNEL);
	if (!fn)
		return -ENOMEM;
	fn->pdev = pdev;
	mutex_init(&fn->life);
	INIT_DELAYED_WORK(&fn->recover, recover);
	fn->recover_delay_ms = MUSTER_RECOVER_DELAY_MS;
	err = pci_enable_device_mem(pdev);
	if (err)
		goto err_free;
	err = bars_map(fn);
	if (err)
		goto err_disable;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_unmap;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	err = pci_alloc_irq_vectors(pdev, 2, MUSTER_MSIX_VECTORS, PCI_IRQ_MSIX);
	if (err < 0)
		goto err_unmap;
	fn->nr_vectors = err;
	pci_save_state(pdev);
	pci_set_drvdata(pdev, fn);
	err = muster_health_open(fn);
	if (err)
		goto err_vectors;
	mutex_lock(&fn->life);
	err = bring_up(fn);
	fn->removing = err;
	mutex_unlock(&fn->life);
	if (err)
		goto err_health;
	return 0;

err_health:
	cancel_delayed_work_sync(&fn->recover);
	muster_health_close(fn);
err_vectors:
	pci_free_irq_vectors(pdev);
err_unmap:
	bars_unmap(fn);
err_disable:
	pci_disable_device(pdev);
err_free:
	kfree(fn);
	return err;
}

static void remove(struct pci_dev *pdev)
{
	struct muster_function *fn = pci_get_drvdata(pdev);

	mutex_lock(&fn->life);
	fn->removing = true;
	bring_down(fn);
	mutex_unlock(&fn->life);
	cancel_delayed_work_sync(&fn->recover);
	muster_health_close(fn);
	pci_free_irq_vectors(pdev);
	bars_unmap(fn);
	pci_disable_device(pdev);
	kfree(fn);
}

/* The next kernel must find a device that writes to nobody's memory. */
static void shutdown(struct pci_dev *pdev)
{
	struct muster_function *fn = pci_get_drvdata(pdev);

	mutex_lock(&fn->life);
	fn->removing = true;
	if (fn->dev)
		muster_dev_fence(fn->dev, NULL);
	mutex_unlock(&fn->life);
}

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(MUSTER_PCI_VENDOR, MUSTER_PCI_DEVICE) },
	{ }
};

/* ---- errors of the bus, and sleep: each ends a life as a reset does ----------------- */

static pci_ers_result_t error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	reset_prepare(pdev);
	if (state != pci_channel_io_perm_failure)
		return PCI_ERS_RESULT_NEED_RESET;
	dev_err(&pdev->dev, "bus has given the device up: plug it in again\n");
	return PCI_ERS_RESULT_DISCONNECT;
}

/* What was configured when the driver came, saved then: interrupts as well. */
static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	struct muster_function *fn = pci_get_drvdata(pdev);

	pci_restore_state(pdev);
	pci_save_state(pdev);
	if (readl(fn->regs + MUSTER_REG_MAGIC) != MUSTER_REG_MAGIC_VALUE) {
		dev_err(&pdev->dev,
			"device is silent after a reset of its slot: plug it in again\n");
		return PCI_ERS_RESULT_DISCONNECT;
	}
	return PCI_ERS_RESULT_RECOVERED;
}

static const struct pci_error_handlers error_handlers = {
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
	.error_detected = error_detected,
	.slot_reset = slot_reset,
	.resume = reset_done,
};

static int suspend(struct device *device)
{
	reset_prepare(to_pci_dev(device));
	return 0;
}

static int resume(struct device *device)
{
	reset_done(to_pci_dev(device));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(pm_ops, suspend, resume);

static struct pci_driver muster_driver = {
	.name = KBUILD_MODNAME,
	.id_table = ids,
	.probe = probe,
	.remove = remove,
	.shutdown = shutdown,
	.driver.pm = pm_sleep_ptr(&pm_ops),
	.err_handler = &error_handlers,
};

static int __init muster_init(void)
{
	int err = muster_netlink_open();

	if (err)
		return err;
	err = pci_register_driver(&muster_driver);
	if (err)
		muster_netlink_close();
	return err;
}

static void __exit muster_exit(void)
{
	pci_unregister_driver(&muster_driver);
	muster_netlink_close();
}

module_init(muster_init);
module_exit(muster_exit);
MODULE_DEVICE_TABLE(pci, ids);
MODULE_DESCRIPTION("Muster: NIC that carries out collective communication");
MODULE_LICENSE("Dual BSD/GPL");

#if IS_BUILTIN(CONFIG_KUNIT)
#include "main_test.c"
#endif
