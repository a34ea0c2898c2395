/* SPDX-License-Identifier: GPL-2.0-only */
/* The numbers of the fields of a batch in wire.proto, for its encoder and its decoder. */
#ifndef PROTO_BATCH_FIELDS_H
#define PROTO_BATCH_FIELDS_H

enum batch_field {
	BATCH_CPU = 1,
	BATCH_BASE_TIME = 2,
	BATCH_BASE_SEQ = 3,
	BATCH_TIME_ERR = 4,
	BATCH_WATERMARK = 5,
	BATCH_EMITTED = 6,
	BATCH_DROPPED_KERNEL = 7,
	BATCH_DROPPED_USER = 8,
	BATCH_TYPE = 9,
	BATCH_TIME_LOW = 10,
	BATCH_TIME_HIGH = 11,
	BATCH_COLUMNS = 12,
	BATCH_SEQ_JUMP_INDEX = 13,
	BATCH_SEQ_JUMP = 14,
	BATCH_CHORD_BEGIN = 15,
	BATCH_CHORD_END = 16,
	BATCH_TSC_CPU = 17,
};

enum column_field {
	COLUMN_TYPE = 1,
	COLUMN_PREDICT = 2,
	COLUMN_PID = 3,
	COLUMN_PID2 = 4,
	COLUMN_ARG0 = 5,
	COLUMN_ARG1 = 6,
};

#endif
