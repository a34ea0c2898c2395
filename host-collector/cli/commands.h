/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands, one file each. main.c lists them in the order of its help. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "proto/program/options.h"
#include "host-collector/cli/simulate_options.h"

extern const struct command command_bugreport;
extern const struct command command_query;
extern const struct command command_record;
extern const struct command command_report;
extern const struct command command_watch;
extern const struct command command_flame;
extern const struct command command_clock;
extern const struct command command_compare;
extern const struct command command_summarize;
extern const struct command command_metrics;
extern const struct command command_events;
extern const struct command command_export;
extern const struct command command_top;
extern const struct command command_import;
extern const struct command command_doctor;
extern const struct command command_daemon;
extern const struct command command_ctl;
extern const struct command command_list;
extern const struct command command_attach;
extern const struct command command_detach;
extern const struct command command_hook;
extern const struct command command_snapshot;
extern const struct command command_config;
extern const struct command command_incidents;
extern const struct command command_ship;

#endif
