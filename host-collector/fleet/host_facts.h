/* SPDX-License-Identifier: GPL-2.0-only */
/* What each record says about the host (docs/fleet.md). */
#ifndef FLEET_HOST_FACTS_H
#define FLEET_HOST_FACTS_H

#include <stddef.h>
#include <stdint.h>

enum { HOST_LABELS_MAX = 16, HOST_ID_BYTES = 33 };

struct host_label {
	char key[32], value[64];
};

struct host_facts {
	char id[HOST_ID_BYTES], boot_id[HOST_ID_BYTES];
	char name[65], kernel[65];
	char cpu_model[65], microcode[32]; /* "": unknown */
	size_t n_labels;
	struct host_label labels[HOST_LABELS_MAX];
};

/* Reads the facts, without labels. root: "" for this machine; a folder for tests. */
void host_facts_read(const char *root, struct host_facts *out);
/* Parses "zone=fra1, rack=r12" and sets the labels. Keys consist of letters, digits and '_'.
 * Returns 0, or -EINVAL with one line in `why`. */
int host_labels_parse(const char *text, struct host_facts *out, char *why, size_t why_bytes);
/* Returns the NUMA node of a pCPU, or -1 if it is unknown. */
int host_numa_node(const char *root, unsigned pcpu);
/* Returns the kernel's bound on the error of CLOCK_REALTIME in ns, or UINT64_MAX if the clock is
 * not synchronized. */
uint64_t host_clock_error_ns(void);
/* Writes 32 hexadecimal digits: the first half of the SHA-256 of `bytes` bytes. */
void fleet_hash(const void *data, size_t bytes, char out[HOST_ID_BYTES]);
/* Writes the SHA-256 of a file as 64 hexadecimal digits, and its size. Returns 0 or -errno. */
int fleet_file_hash(const char *path, char out[65], uint64_t *bytes);

#endif
