/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands of muster_trace: each reads its own arguments, argv[0] being its name, and
 * returns the exit status.
 */
#ifndef MUSTER_TOOLS_TRACE_H
#define MUSTER_TOOLS_TRACE_H

int trace_explain(int argc, char **argv);
int trace_record(int argc, char **argv);
int trace_report(int argc, char **argv);

#endif /* MUSTER_TOOLS_TRACE_H */
