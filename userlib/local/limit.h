/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The limit of open files, raised for a while. It is one for the whole process,
 * and jobs in several threads may want it at the same time: the first raises it
 * and the last puts it back.
 */
#ifndef MUSTER_LOCAL_LIMIT_H
#define MUSTER_LOCAL_LIMIT_H

/** muster_limit_raise() - from now on the hard limit counts, where the system lets us. */
void muster_limit_raise(void);

/** muster_limit_restore() - not needed any more here. */
void muster_limit_restore(void);

#endif /* MUSTER_LOCAL_LIMIT_H */
