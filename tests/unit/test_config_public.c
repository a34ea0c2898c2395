/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the public form of the configuration: it shows only valid numbers and choices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/daemon/config_public.h"

static const char *name_replace(void *context, const char *name, char *out, size_t out_bytes)
{
	(void)name;
	snprintf(out, out_bytes, "vm-%d", ++*(int *)context);
	return out;
}

static void expect(const char *text, const char *wanted)
{
	char *shown = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&shown, &bytes);
	int n = 0;

	assert_non_null(out);
	assert_int_equal(config_public_write(text, name_replace, &n, out), 0);
	fclose(out);
	assert_string_equal(shown, wanted);
	free(shown);
}

static void test_plain_values_are_shown(void **state)
{
	(void)state;
	expect("[daemon]\ndisk_budget = 10G ; mine\nlibvirt = auto\ndiscover = libvirt,kvm\n"
	       "outbox = yes\n[vm shop]\nlevel = summary\nsteal = 50%\npid = 4711\n"
	       "[pair shop]\nthan = 1ms\nkey = vcpu\n",
	       "[daemon]\ndisk_budget = 10G\nlibvirt = auto\ndiscover = libvirt,kvm\n"
	       "outbox = yes\n[vm vm-1]\nlevel = summary\nsteal = 50%\npid = 4711\n"
	       "[pair pair-1]\nthan = 1ms\nkey = vcpu\n");
}

static void test_texts_are_removed(void **state)
{
	(void)state;
	expect("; comment\n[daemon]\non_incident = curl secret\nship =\nlibvirt = qemu+ssh://u@h/\n"
	       "metrics = listen:tcp:10.1.2.3:9757\nlabels = zone=secret\n"
	       "page = listen:tcp:10.1.2.3:80\npage_token = /secret\npage_hosts = secret\n"
	       "[vm a]\nchannel = listen:tls:secret:7431\npsk = /secret\npsk_identity = secret\n"
	       "[vm b]\nqmp = /secret\nowner = secret\nevents = secret\n"
	       "[pair p]\nfrom = secret\nkey = secret\n",
	       "[daemon]\non_incident = (removed)\nship = \nlibvirt = (removed)\n"
	       "metrics = listen:tcp:(removed)\nlabels = (removed)\n"
	       "page = listen:tcp:(removed)\npage_token = (removed)\npage_hosts = (removed)\n"
	       "[vm vm-1]\nchannel = listen:tls:(removed)\npsk = (removed)\n"
	       "psk_identity = (removed)\n"
	       "[vm vm-2]\nqmp = (removed)\nowner = (removed)\nevents = (removed)\n"
	       "[pair pair-1]\nfrom = (removed)\nkey = (removed)\n");
}

/* A secret in the wrong place, or beside it. */
static void test_what_is_wrong_is_not_shown(void **state)
{
	(void)state;
	expect("stall = secret\n[daemon]\ndisk_budget = secret\nsecret = 1\npsk = 10\n"
	       "report_jobs = 2\n secret\n[secret]\na = b\n[vm a]\nstall = 1ms secret\nsecret\n",
	       "[(unknown section)]\n[daemon]\ndisk_budget = (removed: not valid)\n"
	       "; (unknown key)\n; (unknown key)\nreport_jobs = 2\n"
	       "report_jobs = (removed: not valid)\n[(unknown section)]\n"
	       "[vm vm-1]\nstall = (removed: not valid)\n"
	       "; line 12: neither [section] nor KEY = VALUE\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_values_are_shown),
		cmocka_unit_test(test_texts_are_removed),
		cmocka_unit_test(test_what_is_wrong_is_not_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
