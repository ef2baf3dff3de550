// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interrupts and the event queue. Vector 0 tells of admin replies, of events and
 * of a device that has stopped; the others of completions. Events name objects
 * by id: an id that nobody has any more is passed over.
 */
#include "muster.h"
#include "trace.h"

#include <linux/dma-mapping.h>
#include <linux/interrupt.h>

static const size_t ring_bytes = MUSTER_EVENT_ENTRIES * sizeof(struct muster_event);

int muster_events_open(struct muster_dev *dev)
{
	struct muster_events *events = &dev->events;

	events->ring = dma_alloc_coherent(&dev->fn->pdev->dev, ring_bytes, &events->dma,
					  GFP_KERNEL);
	if (!events->ring)
		return -ENOMEM;
	muster_reg_write64(dev, MUSTER_REG_EVENT_BASE_LO, events->dma);
	muster_reg_write(dev, MUSTER_REG_EVENT_ENTRIES, MUSTER_EVENT_ENTRIES);
	return 0;
}

void muster_events_close(struct muster_dev *dev)
{
	dma_free_coherent(&dev->fn->pdev->dev, ring_bytes, dev->events.ring, dev->events.dma);
}

static void event_handle(struct muster_dev *dev, const struct muster_event *event)
{
	u32 id = le32_to_cpu(event->id);

	trace_muster_event(dev, event);
	switch (event->kind) {
	case MUSTER_EVENT_VP_ERROR:
		muster_vp_failed(dev, id);
		break;
	case MUSTER_EVENT_CQ_OVERRUN:
		muster_cq_overrun(dev, id);
		break;
	case MUSTER_EVENT_PEER_LOST:
		dev_info_ratelimited(&dev->fn->pdev->dev, "node %u is lost\n", id);
		break;
	case MUSTER_EVENT_QP_ERROR:
		muster_qp_event(dev, id, IB_EVENT_QP_FATAL);
		break;
	case MUSTER_EVENT_QP_ACCESS:
		muster_qp_event(dev, id, IB_EVENT_QP_ACCESS_ERR);
		break;
	case MUSTER_EVENT_QP_DRAINED:
		muster_qp_event(dev, id, IB_EVENT_QP_LAST_WQE_REACHED);
		break;
	case MUSTER_EVENT_SRQ_LIMIT:
		muster_srq_event(dev, id, IB_EVENT_SRQ_LIMIT_REACHED);
		break;
	case MUSTER_EVENT_SRQ_ERROR:
		muster_srq_event(dev, id, IB_EVENT_SRQ_ERR);
		break;
	case MUSTER_EVENT_LINK:
		muster_link_changed(dev);
		break;
	case MUSTER_EVENT_FATAL:
		muster_dev_fence(dev, "device says that it has stopped");
		break;
	default:
		dev_warn_ratelimited(&dev->fn->pdev->dev, "device tells an unknown event %u\n",
				     event->kind);
	}
}

/* At most a ring full at once, so that a babbling device cannot hold the thread. */
static void events_take(struct muster_dev *dev)
{
	struct muster_events *events = &dev->events;
	struct muster_event event;
	int left = MUSTER_EVENT_ENTRIES;

	while (left-- && !READ_ONCE(dev->fenced)) {
		u32 at = events->head % MUSTER_EVENT_ENTRIES;
		u32 valid = le32_to_cpu(READ_ONCE(events->ring[at].valid));

		if (valid != !(events->head & MUSTER_EVENT_ENTRIES))
			break;
		dma_rmb();	/* the rest of the event after its valid word */
		event = events->ring[at];
		events->head++;
		muster_reg_write(dev, MUSTER_REG_EVENT_HEAD, events->head);
		event_handle(dev, &event);
	}
}

static irqreturn_t control_interrupt(int irq, void *arg)
{
	struct muster_dev *dev = arg;

	wake_up_all(&dev->admin.wait);
	return IRQ_WAKE_THREAD;
}

static irqreturn_t control_thread(int irq, void *arg)
{
	struct muster_dev *dev = arg;

	events_take(dev);
	/* A device that is gone reads as all ones, and is fatal too. */
	if (!READ_ONCE(dev->fenced) &&
	    muster_reg_read(dev, MUSTER_REG_STATUS) & MUSTER_STATE_FATAL)
		muster_dev_fence(dev, "device is in fatal state");
	return IRQ_HANDLED;
}

static irqreturn_t completion_interrupt(int irq, void *arg)
{
	muster_cqs_interrupted(arg);
	return IRQ_HANDLED;
}

static void notices_free(struct muster_vector *vector)
{
	dma_free_coherent(&vector->dev->fn->pdev->dev, MUSTER_CQS_MAX, vector->notices,
			  vector->notices_dma);
}

static int vector_open(struct muster_dev *dev, unsigned int nr)
{
	struct muster_vector *vector = &dev->vectors[nr];
	struct pci_dev *pdev = dev->fn->pdev;
	int err;

	vector->dev = dev;
	spin_lock_init(&vector->lock);
	vector->notices = dma_alloc_coherent(&pdev->dev, MUSTER_CQS_MAX, &vector->notices_dma,
					     GFP_KERNEL);
	if (!vector->notices)
		return -ENOMEM;
	err = pci_request_irq(pdev, nr, completion_interrupt, NULL, vector, "muster-cq%u:%s",
			      nr - 1, pci_name(pdev));
	if (err)
		notices_free(vector);
	return err;
}

static int interrupt_open(struct muster_dev *dev, unsigned int nr)
{
	struct pci_dev *pdev = dev->fn->pdev;

	if (nr)
		return vector_open(dev, nr);
	return pci_request_irq(pdev, 0, control_interrupt, control_thread, dev,
			       "muster-control:%s", pci_name(pdev));
}

static void interrupt_close(struct muster_dev *dev, unsigned int nr)
{
	pci_free_irq(dev->fn->pdev, nr, nr ? (void *)&dev->vectors[nr] : dev);
	if (nr)
		notices_free(&dev->vectors[nr]);
}

int muster_interrupts_open(struct muster_dev *dev)
{
	unsigned int nr;
	int err;

	for (nr = 0; nr < dev->fn->nr_vectors; nr++) {
		err = interrupt_open(dev, nr);
		if (err)
			goto err_close;
	}
	return 0;

err_close:
	while (nr--)
		interrupt_close(dev, nr);
	return err;
}

void muster_interrupts_close(struct muster_dev *dev)
{
	unsigned int nr = dev->fn->nr_vectors;

	while (nr--)
		interrupt_close(dev, nr);
}
