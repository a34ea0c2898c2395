/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the daemon's configuration: valid values are taken, and an error names its line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/daemon/config.h"

static int read_text(const char *text, struct daemon_config *out, char *why, size_t why_bytes)
{
	char path[] = "/tmp/test_daemon_config.XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	err = daemon_config_read(path, out, why, why_bytes);
	unlink(path);
	return err;
}

/* out: of an earlier read, or zero. */
static int read_anew(const char *text, struct daemon_config *out, char *why, size_t why_bytes)
{
	daemon_config_fini(out);
	return read_text(text, out, why, why_bytes);
}

static void test_good(void **state)
{
	static struct daemon_config c;
	char why[512] = "", text[DAEMON_PATH_MAX];

	(void)state;
	assert_int_equal(read_anew("# a comment\n[daemon]\ncontrol = /tmp/x.sock\n"
				   "disk_budget = 2G\nfile_size=64M\nfile_time = 10m\n"
				   "[vm web1]\nqmp = /run/web1.qmp\nchannel = /run/web1.sock\n"
				   "record = yes\nlevel = summary\nstacks_over = 5ms\n"
				   "events = kvm:kvm_exit/exit_reason == 48/, kprobe:vfs_read\n"
				   "guest_level = summary\nguest_handlers_over = 50us\n"
				   "[vm db-2.x]\npid = 4711\nchannel_rate = 512K\nblocked = 250ms\n"
				   "interrupt = no\nsteal = 30%\nlibvirt_panic = no\n",
				   &c, why, sizeof(why)),
			 0);
	assert_string_equal(c.control, "/tmp/x.sock");
	/* What is found by KVM's descriptors alone is watched only where somebody wants it. */
	assert_true(daemon_config_discovers(&c, "libvirt"));
	assert_false(daemon_config_discovers(&c, "kvm"));
	assert_string_equal(c.discover_users, "root,libvirt-qemu");
	assert_string_equal(c.libvirt_attach, "no");
	assert_int_equal(c.disk_budget_bytes, 2ull << 30);
	assert_int_equal(c.file_bytes, 64 << 20);
	assert_int_equal(c.file_ns, 600ull * 1000000000);
	assert_int_equal(c.n_vms, 2);
	assert_string_equal(c.vms[0].name, "web1");
	assert_true(c.vms[0].record);
	assert_int_equal(c.vms[0].level, CAPTURE_SUMMARY);
	assert_int_equal(c.vms[0].stacks_over_ns, 5000000);
	assert_string_equal(c.vms[0].events, "kvm:kvm_exit/exit_reason == 48/, kprobe:vfs_read");
	assert_int_equal(c.vms[0].guest_level, CAPTURE_SUMMARY);
	assert_int_equal(c.vms[0].guest_handlers_over_ns, 50000);
	assert_int_equal(c.vms[1].guest_level, CAPTURE_DETAIL);
	assert_int_equal(c.vms[1].pid, 4711);
	assert_int_equal(c.vms[1].bytes_per_s, 512 << 10);
	assert_int_equal(c.vms[0].bytes_per_s, 16 << 20); /* the default */
	assert_int_equal(c.vms[1].triggers[TRIGGER_BLOCKED], 250000000);
	assert_int_equal(c.vms[1].triggers[TRIGGER_INTERRUPT], 0);
	assert_int_equal(c.vms[1].triggers[TRIGGER_STEAL], 30);
	assert_int_equal(c.vms[1].triggers[TRIGGER_LIBVIRT_PANIC], 0);
	assert_int_equal(c.vms[1].triggers[TRIGGER_LIBVIRT_IO_ERROR], 1); /* the default */
	assert_int_equal(c.report_jobs, 2);
	assert_true(c.outbox);
	assert_false(c.ship_evidence);
	assert_string_equal(c.ship, "");
	assert_int_equal(read_anew("[daemon]\nlabels = zone=a, ring=b\nship = /bin/x --to y\n"
				   "figures_every = 1m\n[vm a]\npid = 1\nowner = p/u\n",
				   &c, why, sizeof(why)),
			 0);
	assert_string_equal(c.ship, "/bin/x --to y");
	assert_int_equal(daemon_config_figures_ns(&c), 60000000000);
	assert_string_equal(c.vms[0].owner, "p/u");
	assert_int_equal(read_anew("[daemon]\nlabels = zone\n", &c, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "labels"));
	assert_int_equal(read_anew("[daemon]\nmetrics_vm = no\n", &c, why, sizeof(why)), 0);
	assert_int_equal(daemon_config_figures_ns(&c), 0); /* nobody fetches them */
	assert_false(c.metrics_vm);
	assert_int_equal(read_anew("[daemon]\nship = /bin/x\n", &c, why, sizeof(why)), 0);
	assert_int_equal(daemon_config_figures_ns(&c), 300000000000);
	assert_int_equal(read_anew("[daemon]\nfigures_every = 1s\n", &c, why, sizeof(why)),
			 -EINVAL);
	assert_int_equal(
		read_anew("[daemon]\nship = /bin/x\nfigures_every = no\n", &c, why, sizeof(why)),
		0);
	assert_int_equal(daemon_config_figures_ns(&c), 0);
	assert_int_equal(read_anew("[daemon]\nfile_size = 2M\nreport_jobs = 7\n"
				   "[vm a]\npid = 1\nflight_size = 1M\n"
				   "[vm b]\npid = 2\nflight = no\n",
				   &c, why, sizeof(why)),
			 0);
	assert_int_equal(c.report_jobs, 7);
	assert_int_equal(read_anew("[daemon]\ndiscover = kvm\ndiscover_users = root, 64055\n", &c,
				   why, sizeof(why)),
			 0);
	assert_true(daemon_config_discovers(&c, "kvm"));
	assert_false(daemon_config_discovers(&c, "libvirt"));
	assert_int_equal(read_anew("[daemon]\ndiscover = libvirt,kvm\ndiscover_per_user = 5\n", &c,
				   why, sizeof(why)),
			 0);
	assert_true(daemon_config_discovers(&c, "kvm") && daemon_config_discovers(&c, "libvirt"));
	assert_int_equal(c.discover_per_user, 5);
	assert_int_equal(read_anew("[daemon]\nlibvirt_attach = labelled\n"
				   "control = /run/x/control.sock\n",
				   &c, why, sizeof(why)),
			 0);
	daemon_config_agents(&c, text, sizeof(text));
	assert_string_equal(text, "/run/x/agents.sock");
	assert_int_equal(read_anew("[daemon]\nagents = /a.sock\n", &c, why, sizeof(why)), 0);
	daemon_config_agents(&c, text, sizeof(text));
	assert_string_equal(text, "/a.sock");
	daemon_config_fini(&c);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"control = /x\n", ":1: control: begin with [daemon]"},
		{"[daemon]\ncolour = red\n", ":2: colour: unknown key"},
		{"[daemon]\n\ndisk_budget = 10X\n",
		 ":3: disk_budget: `10X` is wrong: write a size"},
		{"[daemon]\nfile_time = 10\n", ":2: file_time: `10` is wrong: write a time"},
		{"[daemon]\ndisk_budget = 1M\n", "disk_budget: at least twice file_size"},
		{"[daemon]\nfile_size = 1K\n", "file_size: at least 1M"},
		{"[daemon]\nfile_time = 10ms\n", "file_time: at least 1s"},
		{"[daemon]\nfile_size = 1M\ndisk_budget = 64M\n[vm a]\npid = 1\n",
		 "file_size: at least twice flight_size, which is 16M for VM a: write "
		 "file_size = 32M or more"},
		{"[daemon]\nfile_size = 31M\n", "which is 16M for a VM that is attached later"},
		{"[daemon]\nfile_size = 2M\n[vm a]\npid = 1\nflight_size = 1025K\n",
		 "which is 1025K for VM a: write file_size = 2050K or more"},
		{"[daemon]\nlibvirt_attach = yes\n",
		 "libvirt_attach: `yes`: write no, all or labelled"},
		{"[daemon]\nlibvirt_attach = all\ndiscover = kvm\n",
		 "libvirt_attach: no domain is found: write libvirt = auto"},
		{"[daemon]\nlibvirt_attach = all\nlibvirt = no\n",
		 "libvirt_attach: no domain is found"},
		{"[daemon]\nlibvirt_attach = all\nagents = agents.sock\n",
		 "write its path from the root"},
		{"[daemon]\nlibvirt_attach = labelled\nagents = /run/a'b\n",
		 "write its path from the root"},
		{"[daemon]\ndiscover = libvirt,kvmx\n", "discover: `kvmx`: write libvirt, kvm"},
		{"[daemon]\ndiscover_per_user = 0\n", "discover_per_user: 1 to "},
		{"[daemon]\nreport_jobs = 0\n", "report_jobs: 1 to 64"},
		{"[daemon]\nreport_jobs = 65\n", "report_jobs: 1 to 64"},
		{"[vm a/b]\npid = 1\n", ":2: [vm a/b]: no such section"},
		{"[vm ..]\npid = 1\n", "no such section"},
		{"[vm a]\npid = 1\nevents = kvm:kvm_exit//colour/\n",
		 "VM a: events, at character 15: there is no attribute 'colour'"},
		{"[vm a]\npid = 1\nguest_handlers_over = 50us\n",
		 "VM a: guest_handlers_over needs guest_level = summary"},
		{"[vm a]\npid = 1\nguest_level = summary\nguest_handlers_over = 2s\n",
		 "VM a: guest_handlers_over: at most 1s"},
		{"[pair a b]\nfrom = kvm:kvm_exit\n", ":2: [pair a b]: no such section"},
		{"[pair a]\nfrom = kvm:kvm_exit\n", "pair a: to is missing"},
		{"[pair a]\nfrom = kvm:kvm_exit\nto = kvm\n", "pair a: to, at character 4: "},
		{"[pair a]\nform = kvm:kvm_exit\n", "form: unknown key; did you mean from?"},
		{"[pair a]\nfrom = kvm:kvm_exit\nto = kvm:kvm_entry\nthan = 5\n",
		 ":4: than: `5` is wrong: write a time"},
		{"[pair a]\nfrom = kvm:kvm_exit\n[vm b]\npid = 1\n[pair a]\nto = kvm:kvm_entry\n",
		 "[pair a]: twice"},
		{"[virtual]\npid = 1\n", ":2: [virtual]: no such section"},
		{"[vm a]\nrecord = yes\n", "VM a: give either pid or qmp"},
		{"[vm a]\npid = 1\nqmp = /x\n", "VM a: give either pid or qmp"},
		{"[vm a]\npid = one\n", ":2: pid: `one` is wrong: write a number"},
		{"[vm a]\npid = 1\nrecord = true\n",
		 ":3: record: `true` is wrong: write yes or no"},
		{"[vm a]\npid = 1\nchannel = tcp:x\n", "VM a: channel: "},
		{"[vm a]\npid = 1\nchannel = vsock:3:7\n[vm b]\npid = 2\nchannel = vsock:3:7\n",
		 "VM b: channel: VM a waits for the same guests on vsock port 7"},
		{"[vm a]\npid = 1\nchannel = vsock:7\n[vm b]\npid = 2\nchannel = listen:vsock:7\n",
		 "VM b: channel: VM a waits for the same guests on vsock port 7"},
		{"[vm a]\npid = 1\nsteal = 101%\n", ":3: steal: `101%` is wrong: write a share"},
		{"[vm a]\npid = 1\nsteal = 5\n", ":3: steal: `5` is wrong: write a share"},
		{"[vm a]\npid = 1\nblocked = 5\n", ":3: blocked: `5` is wrong: write a time"},
		{"[vm a]\npid = 1\nblocked = 5us\n", "VM a: blocked: at least 1ms, or no"},
		{"[vm a]\npid = 1\nguest_watchdog = 1\n",
		 ":3: guest_watchdog: `1` is wrong: write yes or no"},
		{"[vm a]\npid = 1\n[vm b]\npid = 2\n[vm a]\nlevel = detail\n", ":6: [vm a]: twice"},
		{"[daemon]\nnonsense\n", ":2: neither [section] nor KEY = VALUE"},
	};
	static struct daemon_config c;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char why[512] = "";

		if (read_text(cases[i].text, &c, why, sizeof(why)) != -EINVAL ||
		    !strstr(why, cases[i].says))
			fail_msg("`%s` says `%s`", cases[i].text, why);
		daemon_config_fini(&c);
	}
	assert_int_equal(daemon_config_read("/nowhere/at/all", &c, (char[8]){0}, 8), -ENOENT);
}

/* As many VMs as there may be, and one more. */
static void test_limit(void **state)
{
	struct daemon_config c, copy;
	char *text = malloc((DAEMON_VMS_MAX + 1) * 32), why[512] = "";
	size_t len = 0;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < DAEMON_VMS_MAX; i++)
		len += (size_t)sprintf(text + len, "[vm vm%d]\npid = %d\n", i, i + 1);
	assert_int_equal(read_text(text, &c, why, sizeof(why)), 0);
	assert_int_equal(c.n_vms, DAEMON_VMS_MAX);
	assert_int_equal(daemon_config_copy(&c, &copy), 0);
	daemon_config_fini(&c);
	assert_int_equal(copy.n_vms, DAEMON_VMS_MAX);
	assert_string_equal(copy.vms[DAEMON_VMS_MAX - 1].name, "vm511");
	daemon_config_fini(&copy);
	sprintf(text + len, "[vm more]\npid = 9999\n");
	assert_int_equal(read_text(text, &c, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "[vm more]: more than 512 VMs"));
	daemon_config_fini(&c);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
