/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads records of incidents from segments: those of this host, or those that were collected from
 * many hosts. Of the lines with the same incident_id, only the one with the highest seq counts.
 * Because other hosts wrote the files, lines that are not valid records are skipped and counted.
 */
#ifndef FLEET_INCIDENT_LOG_H
#define FLEET_INCIDENT_LOG_H

#include <stddef.h>
#include <stdint.h>

struct json_object;
struct incident_log;

struct incident_log *incident_log_new(void); /* NULL if there is no memory */
void incident_log_free(struct incident_log *l);
/* Adds a file; or a folder: its segments of incidents, also those that are being written and those
 * that were sent. Returns 0 or -errno. */
int incident_log_add(struct incident_log *l, const char *path);
/* Keeps the newest line of each incident, in the order of their begin. Call it after the last file.
 */
void incident_log_sort(struct incident_log *l);
/* Returns the number of incidents. */
size_t incident_log_count(const struct incident_log *l);
/* Returns the index-th record, which the caller owns. Returns NULL past the last, or if the file of
 * the record cannot be read any more. */
struct json_object *incident_log_get(const struct incident_log *l, size_t index);
/* Returns the number of files that were read. */
size_t incident_log_files(const struct incident_log *l);
/* Returns the number of lines that were skipped because they are not valid records. */
uint64_t incident_log_skipped(const struct incident_log *l);
/* Returns the number of records with a newer schema. They are skipped, too; incident_log_skipped()
 * does not count them. */
uint64_t incident_log_newer(const struct incident_log *l);

#endif
