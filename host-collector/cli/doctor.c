/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope doctor`: shows what vcpuscope can do on this machine and how to repair what fails. */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/cli/checks.h"
#include "host-collector/cli/commands.h"
#include "host-collector/util/wrap.h"

struct doctor_options {
	const char *format;
	bool json, no_names;
};

static const struct option_spec doctor_option_table[] = {
	{.name = "format",
	 .type = OPTION_CHOICE,
	 .offset = offsetof(struct doctor_options, format),
	 .value = "text|json",
	 .help = "text for people, or json: one object for programs (default text)"},
	{.name = "no-names",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct doctor_options, no_names),
	 .help = "leave out the names of VMs and of programs, for a report to others"},
	{.name = "json",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct doctor_options, json),
	 .replaced_by = "--format json"},
};

static const char *answer_word(const struct check *check, const struct check_result *result)
{
	if (result->answer == CHECK_YES)
		return "yes";
	return check->needed ? "NO" : "no";
}

static void text_print(const struct check *check, const struct check_result *result)
{
	wrap_print(stdout, "%-13s %-4s %s\n", check->name, answer_word(check, result),
		   result->detail);
	if (result->answer == CHECK_NO)
		wrap_print(stdout, "%18s gives: %s\n", "", check->purpose);
	if (*result->without)
		wrap_print(stdout, "%18s without: %s\n", "", result->without);
	if (result->answer == CHECK_NO && *result->remedy)
		wrap_print(stdout, "%18s to do: %s\n", "", result->remedy);
}

static void json_add(struct json_object *list, const struct check *check,
		     const struct check_result *result)
{
	struct json_object *row = json_object_new_object();

	json_object_object_add(row, "name", json_object_new_string(check->name));
	json_object_object_add(row, "ok", json_object_new_boolean(result->answer == CHECK_YES));
	json_object_object_add(row, "needed", json_object_new_boolean(check->needed));
	json_object_object_add(row, "purpose", json_object_new_string(check->purpose));
	json_object_object_add(row, "detail", json_object_new_string(result->detail));
	json_object_object_add(row, "without", json_object_new_string(result->without));
	json_object_object_add(row, "remedy", json_object_new_string(result->remedy));
	json_object_array_add(list, row);
}

static int doctor_run(const struct command *self, int argc, char **argv)
{
	struct doctor_options options = {.format = "text"};
	struct json_object *root = NULL, *list = NULL;
	const char *blocker = NULL;

	if (options_read(self, argc, argv, &options))
		return COMMAND_USAGE;
	options.json |= !strcmp(options.format, "json");
	if (options.json) {
		root = json_object_new_object();
		list = json_object_new_array();
	}
	for (size_t i = 0; i < check_table_len; i++) {
		struct check_result result = {.no_names = options.no_names};

		check_table[i].probe(&result);
		if (check_table[i].needed && result.answer == CHECK_NO && !blocker)
			blocker = check_table[i].name;
		if (options.json)
			json_add(list, &check_table[i], &result);
		else
			text_print(&check_table[i], &result);
	}
	if (options.json) {
		json_object_object_add(root, "schema",
				       json_object_new_string("vcpuscope.doctor/1"));
		json_object_object_add(root, "capture_works", json_object_new_boolean(!blocker));
		json_object_object_add(root, "checks", list);
		puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY |
								  JSON_C_TO_STRING_NOSLASHESCAPE));
		json_object_put(root);
	} else if (blocker) {
		wrap_print(stdout, "\n`vcpuscope record` cannot work here yet: %s (NO above)\n",
			   blocker);
	} else {
		wrap_print(stdout, "\n`vcpuscope record` can work here\n");
	}
	return blocker ? COMMAND_UNSUPPORTED : COMMAND_OK;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check what this machine supports, and how to fix what does not work",
	.options = doctor_option_table,
	.n_options = sizeof(doctor_option_table) / sizeof(doctor_option_table[0]),
	.examples =
		"  sudo vcpuscope doctor\n"
		"  sudo vcpuscope doctor --format json   # for scripts; exit code 0: capture works\n",
	.run = doctor_run,
};
