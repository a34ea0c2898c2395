/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the three processes say to each other to name a stack, one message per packet:
 *
 *   the asking process <-> opener (root, parses no file) <-> namer (confined, parses files)
 *
 * They are the same program, so the structs travel as they are. Whoever receives from the namer
 * checks everything all the same.
 */
#ifndef ISOLATION_NAMING_WIRE_H
#define ISOLATION_NAMING_WIRE_H

#include <stdatomic.h>
#include <stdint.h>

#include "proto/message.h"

enum {
	NAMING_ADDRESSES_MAX = VS_STACK_FRAMES_MAX,
	NAMING_DATA_MAX = 17 * 1024,
	NAMING_MODULES_MAX = 512, /* of one process; others are as if there were no file */
	NAMING_BUILD_ID_MAX = 64,
	NAMING_NO_MODULE = UINT32_MAX >> 1,
};

/* Which file, in which state. */
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
	NAMING_DONE = 0, /* the namer's answer */
	NAMING_GONE = 1, /* no such process any more: no frames */
	NAMING_WITHOUT =
		2, /* no namer, or none for this file: frames have module and offset only */
	NAMING_UNAVAILABLE = 3, /* likewise, for good: the namer cannot be confined here */
};

struct naming_answer {
	uint64_t id;
	uint64_t cpu_ns; /* that opener and namers have used so far */
	uint32_t n_frames, outcome;
	/* frames */
};

/* ---- opener and namer ---- */

enum naming_kind {
	NAMING_TASK = 1,    /* to the namer: a stack to be named */
	NAMING_FRAMES,      /* the answer to it */
	NAMING_GET_MODULES, /* to the opener: argument: the number of the list that is known */
	NAMING_MODULES,
	NAMING_GET_FILE,  /* argument: index into the list */
	NAMING_GET_DEBUG, /* argument: bytes of the build-id, which follows */
	NAMING_FILE,      /* a struct file_id, with the descriptor; argument: errno, then without */
};

struct naming_head {
	uint32_t kind, argument;
};

struct naming_task {
	struct naming_head head;
	int32_t pid;
	uint32_t n_addresses;
	uint64_t start_time; /* with pid: which process */
	uint32_t data_bytes, list;
	/* addresses, data */
};

/* A file of code that a process has mapped. */
struct naming_module {
	uint64_t begin, end;                        /* of all its mappings */
	uint64_t code_begin, code_end, code_offset; /* of the first one with code */
	uint32_t is_vdso, reserved;
	char name[VS_TEXT_MAX]; /* the last part of its path */
};

struct naming_modules {
	struct naming_head head; /* argument: the number of this list */
	uint32_t n, reserved;
	struct naming_module of[NAMING_MODULES_MAX];
};

struct naming_frames {
	struct naming_head head; /* argument: how many */
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

/* Shared by opener and namer: in which file the namer reads. */
struct naming_place {
	_Atomic uint32_t module; /* index into the list; NAMING_NO_MODULE */
};

#endif
