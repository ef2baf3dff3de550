/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Muster NIC as a PCI device of QEMU: BARs, MSI-X, DMA and a thread around
 * the NIC of nic/, which decides everything. The only file that knows QEMU.
 *
 * Locks: `lock` protects the NIC and is taken before QEMU's big lock, never
 * after it: whoever holds the big lock drops it first (nic_lock()). Doorbells
 * and plain registers take neither. The NIC's thread holds `lock` while it
 * steps and takes the big lock only to raise an interrupt. Its helpers take the
 * lock of the engines, and no other.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/event_notifier.h"
#include "qemu/guest-random.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/rcu.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "qom/object.h"
#include "sysemu/sysemu.h"

#include "nic/nic.h"

/* QEMU itself is built without; this file is not. */
#pragma GCC diagnostic error "-Wall"

#define TYPE_MUSTER "muster"
OBJECT_DECLARE_SIMPLE_TYPE(MusterState, MUSTER)

#define DEADLINE_MS_DEFAULT 10000
#define AER_OFFSET PCI_CONFIG_SPACE_SIZE    /* the first of what only PCI Express has */

/* A thread that steps engines beside the NIC's, whenever that does. */
struct helper {
    MusterState *m;
    QemuThread thread;
    QemuSemaphore go;
};

struct MusterState {
    PCIDevice pci;
    MemoryRegion regs;
    MemoryRegion doorbells;
    Notifier exit;

    struct muster_nic *nic;
    QemuMutex lock;         /* the NIC; see above */
    unsigned int waiting;   /* atomic: threads that want `lock`; the NIC's lets them */
    QemuThread thread;
    EventNotifier wake;
    bool sleeping;          /* atomic: the thread sleeps or is about to */
    bool polling;           /* atomic: the same, by its wire's socket; begins with `lock` held */
    bool stop;              /* atomic */

    struct helper *helpers; /* one less than engine_threads */
    QemuMutex engines;      /* among the engines that step at once; the innermost but for the big lock */
    QemuSemaphore done;
    void (*run)(void *arg, uint32_t i);     /* what helpers do: this, */
    void *run_arg;
    uint32_t run_next, run_nr;              /* atomic: for those from here on; before this */

    /* properties */
    uint32_t node;
    char *wire;
    uint32_t uplink, uplink_life;           /* of a network of switches; 0: none */
    char *dump;
    uint32_t deadline_ms;
    uint32_t units, buffer, window, pulses; /* of the engine; a buffer of 0: none */
    uint32_t engine_threads;
    bool link;              /* may be set at any time */
};

/* ---- the NIC's world ---- */

/* Only memory may answer: a device that is reached by DMA could call us back. */
static const MemTxAttrs memory_only = { .memory = 1 };

static int world_dma_read(void *opaque, uint64_t addr, void *buf, uint32_t len)
{
    MusterState *m = opaque;

    return pci_dma_rw(&m->pci, addr, buf, len, DMA_DIRECTION_TO_DEVICE, memory_only) ? -EIO : 0;
}

static int world_dma_write(void *opaque, uint64_t addr, const void *buf, uint32_t len)
{
    MusterState *m = opaque;

    return pci_dma_rw(&m->pci, addr, (void *)buf, len, DMA_DIRECTION_FROM_DEVICE,
                      memory_only) ? -EIO : 0;
}

/* In the NIC's thread, or in a vCPU's within nic_lock(): neither holds the big lock. */
static void world_interrupt(void *opaque, uint32_t vector)
{
    MusterState *m = opaque;

    qemu_mutex_lock_iothread();
    if (msix_enabled(&m->pci)) {
        msix_notify(&m->pci, vector);
    }
    qemu_mutex_unlock_iothread();
}

static uint64_t world_now_us(void *opaque)
{
    return get_clock() / 1000;
}

static void world_kick(void *opaque)
{
    MusterState *m = opaque;

    smp_mb();   /* what was rung, before whether the thread sleeps */
    if (qatomic_read(&m->sleeping) && qatomic_xchg(&m->sleeping, false)) {
        event_notifier_set(&m->wake);
    }
}

static void world_lock(void *opaque)
{
    MusterState *m = opaque;

    qemu_mutex_lock(&m->engines);
}

static void world_unlock(void *opaque)
{
    MusterState *m = opaque;

    qemu_mutex_unlock(&m->engines);
}

/* Whoever is there takes the next, so a helper that comes late holds nobody up. */
static void run_all(MusterState *m)
{
    uint32_t i;

    while ((i = qatomic_fetch_inc(&m->run_next)) < m->run_nr) {
        m->run(m->run_arg, i);
    }
}

static void world_parallel(void *opaque, void (*run)(void *arg, uint32_t i), void *arg, uint32_t nr)
{
    MusterState *m = opaque;

    m->run = run;
    m->run_arg = arg;
    m->run_nr = nr;
    qatomic_set(&m->run_next, 0);
    for (uint32_t i = 0; i + 1 < m->engine_threads; i++) {
        qemu_sem_post(&m->helpers[i].go);
    }
    run_all(m);
    for (uint32_t i = 0; i + 1 < m->engine_threads; i++) {
        qemu_sem_wait(&m->done);
    }
}

static const struct muster_nic_world world = {
    .dma_read = world_dma_read,
    .dma_write = world_dma_write,
    .interrupt = world_interrupt,
    .now_us = world_now_us,
    .parallel = world_parallel,
    .lock = world_lock,
    .unlock = world_unlock,
    .kick = world_kick,
};

/* ---- the thread ---- */

/*
 * Keep the NIC's thread out. Drops the big lock meanwhile: see the top. The thread does not sleep
 * then either: while it waits for the wire's socket, that is kept though a reset closes it, and its
 * name with it, which the next life is to have. Before it sleeps again it steps, and so sees what was
 * done here.
 */
static bool nic_lock(MusterState *m)
{
    bool big = qemu_mutex_iothread_locked();

    if (big) {
        qemu_mutex_unlock_iothread();
    }
    qatomic_inc(&m->waiting);
    qemu_mutex_lock(&m->lock);
    qatomic_dec(&m->waiting);
    event_notifier_set(&m->wake);
    while (qatomic_read(&m->polling)) {
        g_usleep(10);
    }
    return big;
}

static void nic_unlock(MusterState *m, bool big)
{
    qemu_mutex_unlock(&m->lock);
    if (big) {
        qemu_mutex_lock_iothread();
    }
}

/* sleeps: afterwards, if there is nothing to do */
static uint64_t thread_step(MusterState *m, int *fd, bool sleeps)
{
    uint64_t wait_us;

    while (qatomic_read(&m->waiting)) {
        g_usleep(10);
    }
    qemu_mutex_lock(&m->lock);
    wait_us = muster_nic_step(m->nic);
    *fd = muster_nic_fd(m->nic);
    qatomic_set(&m->polling, sleeps && wait_us);
    qemu_mutex_unlock(&m->lock);
    return wait_us;
}

static void thread_sleep(MusterState *m, int wire_fd, uint64_t wait_us)
{
    GPollFD fds[2] = {
        { .fd = event_notifier_get_fd(&m->wake), .events = G_IO_IN },
        { .fd = wire_fd, .events = G_IO_IN },
    };

    qemu_poll_ns(fds, wire_fd < 0 ? 1 : 2,
                 wait_us >= INT64_MAX / 1000 ? -1 : (int64_t)wait_us * 1000);
    event_notifier_test_and_clear(&m->wake);
    qatomic_set(&m->polling, false);
}

static void *thread_main(void *opaque)
{
    MusterState *m = opaque;
    uint64_t wait_us;
    int fd;

    rcu_register_thread();
    while (!qatomic_read(&m->stop)) {
        if (thread_step(m, &fd, false) == 0) {
            continue;
        }
        /* Whoever rings from here on wakes us; what was rung before, this step sees. */
        qatomic_set(&m->sleeping, true);
        smp_mb();
        wait_us = qatomic_read(&m->stop) ? 0 : thread_step(m, &fd, true);
        if (wait_us) {
            thread_sleep(m, fd, wait_us);
        }
        qatomic_set(&m->sleeping, false);
    }
    rcu_unregister_thread();
    return NULL;
}

/* ---- its helpers ---- */

static void *helper_main(void *opaque)
{
    struct helper *helper = opaque;
    MusterState *m = helper->m;

    rcu_register_thread();
    for (;;) {
        qemu_sem_wait(&helper->go);
        if (!m->run) {
            break;
        }
        run_all(m);
        qemu_sem_post(&m->done);
    }
    rcu_unregister_thread();
    return NULL;
}

static void helpers_start(MusterState *m)
{
    qemu_mutex_init(&m->engines);
    qemu_sem_init(&m->done, 0);
    m->helpers = g_new0(struct helper, m->engine_threads);
    for (uint32_t i = 0; i + 1 < m->engine_threads; i++) {
        m->helpers[i].m = m;
        qemu_sem_init(&m->helpers[i].go, 0);
        qemu_thread_create(&m->helpers[i].thread, "muster-engine", helper_main, &m->helpers[i],
                           QEMU_THREAD_JOINABLE);
    }
}

/* With the NIC's thread, which alone gives them work. */
static void helpers_stop(MusterState *m)
{
    m->run = NULL;
    for (uint32_t i = 0; i + 1 < m->engine_threads; i++) {
        qemu_sem_post(&m->helpers[i].go);
        qemu_thread_join(&m->helpers[i].thread);
        qemu_sem_destroy(&m->helpers[i].go);
    }
    g_free(m->helpers);
    m->helpers = NULL;
    qemu_sem_destroy(&m->done);
    qemu_mutex_destroy(&m->engines);
}

static void thread_stop(MusterState *m)
{
    bool big = qemu_mutex_iothread_locked();

    if (qatomic_xchg(&m->stop, true)) {
        return;
    }
    event_notifier_set(&m->wake);
    if (big) {
        qemu_mutex_unlock_iothread();
    }
    qemu_thread_join(&m->thread);
    helpers_stop(m);
    if (big) {
        qemu_mutex_lock_iothread();
    }
}

/* QEMU ends without unrealizing its devices; the vCPUs have stopped, the wire's socket is left. */
static void muster_at_exit(Notifier *notifier, void *data)
{
    MusterState *m = container_of(notifier, MusterState, exit);

    thread_stop(m);
    muster_nic_destroy(m->nic);
    m->nic = NULL;
}

/* ---- BARs ---- */

static uint64_t regs_read(void *opaque, hwaddr addr, unsigned size)
{
    MusterState *m = opaque;

    return muster_nic_reg_read(m->nic, addr, size);
}

static void regs_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
    MusterState *m = opaque;
    bool big;

    if (addr != MUSTER_REG_CONTROL) {
        muster_nic_reg_write(m->nic, addr, value, size);
        return;
    }
    big = nic_lock(m);
    muster_nic_reg_write(m->nic, addr, value, size);
    nic_unlock(m, big);
}

static uint64_t doorbell_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void doorbell_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
    MusterState *m = opaque;

    muster_nic_doorbell(m->nic, addr, value, size);
}

/* Every access comes through as the guest made it; the NIC ignores the odd ones. */
#define ANY_ACCESS { .min_access_size = 1, .max_access_size = 8, .unaligned = true }

static const MemoryRegionOps regs_ops = {
    .read = regs_read,
    .write = regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = ANY_ACCESS,
    .impl = ANY_ACCESS,
};

static const MemoryRegionOps doorbell_ops = {
    .read = doorbell_read,
    .write = doorbell_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = ANY_ACCESS,
    .impl = ANY_ACCESS,
};

static void bars_init(MusterState *m)
{
    memory_region_init_io(&m->regs, OBJECT(m), &regs_ops, m, "muster-regs", MUSTER_REGS_BYTES);
    pci_register_bar(&m->pci, MUSTER_BAR_REGS, PCI_BASE_ADDRESS_MEM_TYPE_64, &m->regs);
    memory_region_init_io(&m->doorbells, OBJECT(m), &doorbell_ops, m, "muster-doorbells",
                          (uint64_t)MUSTER_VPS_MAX * MUSTER_DOORBELL_STRIDE);
    /* While CONTROL acts without the big lock, another vCPU may ring: that is no recursion. */
    m->regs.disable_reentrancy_guard = true;
    m->doorbells.disable_reentrancy_guard = true;
    pci_register_bar(&m->pci, MUSTER_BAR_DOORBELLS, PCI_BASE_ADDRESS_MEM_TYPE_64,
                     &m->doorbells);
}

/* ---- life ---- */

static void muster_reset(DeviceState *dev)
{
    MusterState *m = MUSTER(dev);
    bool big = nic_lock(m);

    muster_nic_reset(m->nic);
    nic_unlock(m, big);
}

static void config_write(PCIDevice *pci, uint32_t addr, uint32_t value, int len)
{
    pci_default_write_config(pci, addr, value, len);
    pcie_cap_flr_write_config(pci, addr, value, len);
    pcie_aer_write_config(pci, addr, value, len);
}

static bool nic_create(MusterState *m, Error **errp)
{
    struct muster_nic_config config = {
        .node = m->node,
        .wire = m->wire,
        .uplink = m->uplink,
        .uplink_life = m->uplink_life,
        .deadline_us = (uint64_t)m->deadline_ms * 1000,
        .dump = m->dump,
        .model = {
            .units = m->units,
            .buffer = m->buffer ? m->buffer : MUSTER_ENGINE_NO_BUFFER,
            .window = m->window,
            .pulses = m->pulses,
            .threads = m->engine_threads,
        },
    };
    char why[256] = "";
    int err;

    if (!m->wire) {
        error_setg(errp, "muster: wire is missing; give wire=unix:DIR, udp:HOST:PORT or udp:@FILE");
        return false;
    }
    if (qemu_guest_getrandom(&config.incarnation, sizeof(config.incarnation), errp) ||
        qemu_guest_getrandom(config.hash_key, sizeof(config.hash_key), errp)) {
        return false;
    }
    err = muster_nic_create(&config, &world, m, &m->nic, why, sizeof(why));
    if (err) {
        error_setg(errp, "muster: node %u: %s", m->node, why[0] ? why : strerror(-err));
        return false;
    }
    muster_nic_link_set(m->nic, m->link);
    return true;
}

static bool pci_init(MusterState *m, Error **errp)
{
    pci_config_set_interrupt_pin(m->pci.config, 0);
    bars_init(m);
    if (msix_init_exclusive_bar(&m->pci, MUSTER_MSIX_VECTORS, MUSTER_BAR_MSIX, errp)) {
        return false;
    }
    for (unsigned int i = 0; i < MUSTER_MSIX_VECTORS; i++) {
        msix_vector_use(&m->pci, i);
    }
    if (pcie_endpoint_cap_init(&m->pci, 0) < 0) {
        error_setg(errp, "muster: this needs a PCI Express slot");
        goto err_msix;
    }
    if (pcie_aer_init(&m->pci, PCI_ERR_VER, AER_OFFSET, PCI_ERR_SIZEOF, errp) < 0) {
        goto err_cap;
    }
    pcie_cap_deverr_init(&m->pci);
    pcie_cap_flr_init(&m->pci);
    return true;

err_cap:
    pcie_cap_exit(&m->pci);
err_msix:
    msix_uninit_exclusive_bar(&m->pci);
    return false;
}

static void pci_uninit(PCIDevice *pci)
{
    pcie_aer_exit(pci);
    pcie_cap_exit(pci);
    msix_uninit_exclusive_bar(pci);
}

static void muster_realize(PCIDevice *pci, Error **errp)
{
    MusterState *m = MUSTER(pci);
    int err;

    if (!nic_create(m, errp)) {
        return;
    }
    if (!pci_init(m, errp)) {
        goto err_destroy_nic;
    }
    err = event_notifier_init(&m->wake, 0);
    if (err) {
        error_setg_errno(errp, -err, "muster: no event descriptor");
        goto err_exit_pci;
    }
    qemu_mutex_init(&m->lock);
    m->exit.notify = muster_at_exit;
    qemu_add_exit_notifier(&m->exit);
    helpers_start(m);
    qemu_thread_create(&m->thread, "muster", thread_main, m, QEMU_THREAD_JOINABLE);
    return;

err_exit_pci:
    pci_uninit(pci);
err_destroy_nic:
    muster_nic_destroy(m->nic);
    m->nic = NULL;
}

/*
 * While this has dropped the big lock, another vCPU may write the slot's control, and would
 * unparent the device below our caller, who is about to: a slot leaves alone what is partially
 * hotplugged.
 */
static void muster_exit(PCIDevice *pci)
{
    MusterState *m = MUSTER(pci);
    bool partially = pci->partially_hotplugged;
    bool big;

    pci->partially_hotplugged = true;
    thread_stop(m);
    qemu_remove_exit_notifier(&m->exit);
    big = nic_lock(m);
    muster_nic_close(m->nic);
    nic_unlock(m, big);
    pci->partially_hotplugged = partially;
    pci_uninit(pci);
}

/*
 * Unplugged: a vCPU that was within an access (nic_lock() drops the big lock there), or still
 * has the address, ends that before memory regions and what they are of go.
 */
static void muster_finalize(Object *obj)
{
    MusterState *m = MUSTER(obj);

    if (m->nic) {
        qemu_mutex_destroy(&m->lock);
        event_notifier_cleanup(&m->wake);
        muster_nic_destroy(m->nic);
    }
}

static bool link_get(Object *obj, Error **errp)
{
    return MUSTER(obj)->link;
}

static void link_set(Object *obj, bool up, Error **errp)
{
    MusterState *m = MUSTER(obj);
    bool big;

    m->link = up;
    if (!DEVICE(obj)->realized) {
        return;
    }
    /* While this drops the big lock the device may be unplugged. */
    object_ref(obj);
    big = nic_lock(m);
    muster_nic_link_set(m->nic, up);
    nic_unlock(m, big);
    object_unref(obj);
}

static void muster_instance_init(Object *obj)
{
    MUSTER(obj)->link = true;
}

static Property muster_properties[] = {
    DEFINE_PROP_UINT32("node", MusterState, node, 0),
    DEFINE_PROP_STRING("wire", MusterState, wire),
    DEFINE_PROP_UINT32("uplink", MusterState, uplink, 0),
    DEFINE_PROP_UINT32("uplink-life", MusterState, uplink_life, 0),
    DEFINE_PROP_STRING("dump", MusterState, dump),
    DEFINE_PROP_UINT32("deadline-ms", MusterState, deadline_ms, DEADLINE_MS_DEFAULT),
    DEFINE_PROP_UINT32("units", MusterState, units, MUSTER_UNITS),
    DEFINE_PROP_SIZE32("buffer", MusterState, buffer, MUSTER_BUFFER_BYTES),
    DEFINE_PROP_UINT32("window", MusterState, window, MUSTER_WINDOW),
    DEFINE_PROP_UINT32("pulses", MusterState, pulses, 0),
    DEFINE_PROP_UINT32("engine-threads", MusterState, engine_threads, 1),
    DEFINE_PROP_END_OF_LIST(),
};

static const VMStateDescription muster_vmstate = {
    .name = TYPE_MUSTER,
    .unmigratable = 1,
};

static void muster_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

    pc->realize = muster_realize;
    pc->exit = muster_exit;
    pc->config_write = config_write;
    pc->vendor_id = MUSTER_PCI_VENDOR;
    pc->device_id = MUSTER_PCI_DEVICE;
    pc->class_id = PCI_CLASS_NETWORK_OTHER;
    dc->desc = "Muster collective offload NIC";
    dc->reset = muster_reset;
    dc->vmsd = &muster_vmstate;
    device_class_set_props(dc, muster_properties);
    object_class_property_add_bool(klass, "link", link_get, link_set);
    object_class_property_set_description(klass, "link", "whether the cable is in");
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo muster_type = {
    .name = TYPE_MUSTER,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(MusterState),
    .instance_init = muster_instance_init,
    .instance_finalize = muster_finalize,
    .class_init = muster_class_init,
    .interfaces = (InterfaceInfo[]) { { INTERFACE_PCIE_DEVICE }, { } },
};

static void muster_register_types(void)
{
    type_register_static(&muster_type);
}
type_init(muster_register_types)
