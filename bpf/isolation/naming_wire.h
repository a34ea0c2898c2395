/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The messages between the three processes that name a stack, one message per packet:
 *
 *  the asking process <-> opener (root, parses no file) <-> namer (confined, parses files)
 *
 * The three run the same program, so the structs are sent as they are in memory. The opener and the
 * asking process nevertheless check everything that comes from the namer.
 */
#ifndef ISOLATION_NAMING_WIRE_H
#define ISOLATION_NAMING_WIRE_H

#include <stdatomic.h>
#include <stdint.h>

#include "proto/message.h"

enum {
	NAMING_ADDRESSES_MAX = VS_STACK_FRAMES_MAX,
	NAMING_DATA_MAX = 17 * 1024,
	NAMING_MODULES_MAX = 512, /* of one process; addresses in further ones have no module */
	NAMING_BUILD_ID_MAX = 64,
	NAMING_NO_MODULE = UINT32_MAX >> 1,
};

/* Identifies a file and its content. */
struct file_id {
	uint64_t device, inode, mtime_ns, size_bytes;
};

/* ---- asking process and opener ---- */

struct naming_request {
	uint64_t id;
	int32_t pid;
	uint32_t n_addresses, data_bytes, reserved;
	/* addresses, data */
};

enum naming_outcome {
	NAMING_DONE = 0,        /* the frames come from the namer */
	NAMING_GONE = 1,        /* the process is gone: no frames */
	NAMING_WITHOUT = 2,     /* no namer now, or a refused file: frames have module and offset */
	NAMING_UNAVAILABLE = 3, /* the same, permanently: no namer can be confined here */
};

struct naming_answer {
	uint64_t id;
	uint64_t cpu_ns; /* CPU time of the opener and its namers so far, in ns */
	uint32_t n_frames, outcome;
	/* frames */
};

/* ---- opener and namer ---- */

enum naming_kind {
	NAMING_TASK = 1,    /* to the namer: a stack to name */
	NAMING_FRAMES,      /* to the opener: the named frames */
	NAMING_GET_MODULES, /* to the opener; argument: the list that the namer knows */
	NAMING_MODULES,     /* to the namer: the list of modules */
	NAMING_GET_FILE,    /* to the opener; argument: index into the list */
	NAMING_GET_DEBUG,   /* to the opener; argument: size of the build-id that follows */
	NAMING_FILE,        /* to the namer: file_id and descriptor, or argument: errno */
};

struct naming_head {
	uint32_t kind, argument;
};

struct naming_task {
	struct naming_head head;
	int32_t pid;
	uint32_t n_addresses;
	uint64_t start_time; /* identifies the process together with pid */
	uint32_t data_bytes, list;
	/* addresses, data */
};

/* An executable file that a process has mapped. */
struct naming_module {
	uint64_t begin, end; /* addresses of all its mappings */
	/* addresses and file offset of the first executable mapping */
	uint64_t code_begin, code_end, code_offset;
	uint32_t is_vdso, reserved;
	char name[VS_TEXT_MAX]; /* the last component of its path */
};

struct naming_modules {
	struct naming_head head; /* argument: the number of this list */
	uint32_t n, reserved;
	struct naming_module of[NAMING_MODULES_MAX];
};

struct naming_frames {
	struct naming_head head; /* argument: number of frames */
	struct message_stack_frame of[VS_STACK_FRAMES_MAX];
};

struct naming_file {
	struct naming_head head;
	struct file_id id;
};

struct naming_build_id {
	struct naming_head head;
	uint8_t bytes[NAMING_BUILD_ID_MAX];
};

/* Memory that opener and namer share: the file that the namer reads. */
struct naming_place {
	_Atomic uint32_t module; /* index into the list, or NAMING_NO_MODULE */
};

#endif
