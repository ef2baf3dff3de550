/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU plugin that counts the instructions a guest executes, on all its vCPUs
 * together, into a file of one 64-bit number that others map: what offload
 * saves a guest is counted, because a clock under emulation flatters.
 * usage: -plugin libmuster-count.so,into=PATH. Exact with one vCPU.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static uint64_t *count;

/* Added inline at the start of each block: no call, no lock. */
static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, count,
                                             qemu_plugin_tb_n_insns(tb));
}

static void *map_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *p = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(*count)) == 0) {
        p = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    return p == MAP_FAILED ? NULL : p;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                           int argc, char **argv)
{
    if (argc != 1 || strncmp(argv[0], "into=", 5) != 0) {
        fprintf(stderr, "muster-count: give into=PATH and nothing else\n");
        return -1;
    }
    count = map_file(argv[0] + 5);
    if (!count) {
        fprintf(stderr, "muster-count: cannot map %s\n", argv[0] + 5);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    return 0;
}
