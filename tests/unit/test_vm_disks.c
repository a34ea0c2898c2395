/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the search for disks that a VM reaches over a network, in command lines of QEMU as libvirt,
 * Nova and users write them. The command lines and mounts were written for this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "host-collector/fleet/vm_disks.h"

static char root[64];

static void file_write(const char *name, const char *text, size_t bytes)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/42/%s", root, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, bytes, f), bytes);
	fclose(f);
}

static int setup(void **state)
{
	static const char mounts[] =
		"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		"40 22 0:50 / /var/lib/nova/mnt/ab rw,noatime shared:3 - nfs4 nfs1:/export rw\n"
		"41 22 0:51 / /srv/a\\040b rw - nfs [fd00::1]:/vol rw\n"
		"42 22 8:17 / /var/lib/nova/mnt/ab/local rw - xfs /dev/sdb1 rw\n"
		"43 22 0:52 / /ceph rw - ceph 10.0.0.1:6789,10.0.0.2:6789:/ rw\n"
		"44 22 0:53 / /win rw - cifs //filer/share rw\n"
		"broken line\n45 22 - \n";
	char path[128];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/test_vm_disks.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/proc", root);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/proc/42", root);
	mkdir(path, 0755);
	file_write("mountinfo", mounts, sizeof(mounts) - 1);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* An option, and the disks that it contains. */
static size_t disks_of(const char *option, const char *value, struct storage out[VM_DISKS_MAX])
{
	char line[4096];
	const int len = snprintf(line, sizeof(line), "qemu-system-x86_64%c-m%c512%c%s%c%s", 0, 0, 0,
				 option, 0, value);

	file_write("cmdline", line, (size_t)len + 1);
	return vm_disks_read(root, 42, out);
}

static void test_disks(void **state)
{
	static const struct {
		const char *option, *value, *driver, *server, *pool, *source, *mount;
	} cases[] = {
		{"-blockdev",
		 "{\"driver\":\"rbd\",\"pool\":\"volumes\",\"image\":\"volume-1\",\"server\":["
		 "{\"host\":\"10.0.0.1\",\"port\":\"6789\"},{\"host\":\"10.0.0.2\",\"port\":"
		 "\"6789\"}],\"user\":\"cinder\",\"key-secret\":\"s0\",\"node-name\":\"n1\"}",
		 "rbd", "10.0.0.1,10.0.0.2", "volumes", "volume-1", ""},
		{"-blockdev",
		 "{\"driver\":\"iscsi\",\"portal\":\"10.0.0.9:3260\",\"target\":\"iqn.2010-10.org:"
		 "v\",\"lun\":1,\"transport\":\"tcp\",\"node-name\":\"n\"}",
		 "iscsi", "10.0.0.9:3260", "", "iqn.2010-10.org:v", ""},
		{"-blockdev",
		 "{\"driver\":\"nfs\",\"server\":{\"type\":\"inet\",\"host\":\"nfs2\"},\"path\":"
		 "\"/e/disk\"}",
		 "nfs", "nfs2", "", "/e/disk", ""},
		{"-blockdev",
		 "{\"driver\":\"raw\",\"file\":{\"driver\":\"nbd\",\"server\":{\"type\":\"inet\","
		 "\"host\":\"h\",\"port\":\"10809\"},\"export\":\"e\"}}",
		 "nbd", "h", "", "e", ""},
		{"-blockdev",
		 "{\"driver\":\"file\",\"filename\":\"/var/lib/nova/mnt/ab/disk\",\"node-name\":\"x\"}",
		 "nfs", "nfs1", "", "nfs1:/export", "/var/lib/nova/mnt/ab"},
		{"--blockdev", "driver=file,filename=/ceph/disk,node-name=y", "ceph",
		 "10.0.0.1:6789,10.0.0.2:6789", "", "10.0.0.1:6789,10.0.0.2:6789:/", "/ceph"},
		{"-drive", "file=/srv/a b/disk.qcow2,format=qcow2,if=none", "nfs", "[fd00::1]", "",
		 "[fd00::1]:/vol", "/srv/a b"},
		{"-drive", "format=raw,file=/win/d,,isk", "cifs", "filer", "", "//filer/share",
		 "/win"},
		{"-drive",
		 "file=rbd:volumes/volume-2@s:id=cinder:key=SECRET:auth_supported=cephx:mon_host="
		 "10.0.0.1\\:6789\\;10.0.0.2\\:6789:x=y,format=raw",
		 "rbd", "10.0.0.1\\:6789\\;10.0.0.2\\:6789", "volumes", "volume-2", ""},
		{"-drive", "file=iscsi://user%pass@10.0.0.9:3260/iqn.2010-10.org:v/1,if=virtio",
		 "iscsi", "10.0.0.9:3260", "", "iqn.2010-10.org:v/1", ""},
		{"-drive", "file=nbd://h:10809/e?x=y", "nbd", "h:10809", "", "e", ""},
	};
	struct storage disks[VM_DISKS_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (disks_of(cases[i].option, cases[i].value, disks) != 1)
			fail_msg("%s: no disk", cases[i].value);
		assert_string_equal(disks[0].driver, cases[i].driver);
		assert_string_equal(disks[0].server, cases[i].server);
		assert_string_equal(disks[0].pool, cases[i].pool);
		assert_string_equal(disks[0].source, cases[i].source);
		assert_string_equal(disks[0].mount, cases[i].mount);
		assert_string_equal(disks[0].device, "");
	}
}

/* Local disks, a mount below a network file system, and options that are not disks. */
static void test_none(void **state)
{
	static const char *const cases[][2] = {
		{"-drive", "file=/var/lib/libvirt/images/x.qcow2"},
		{"-drive", "file=/var/lib/nova/mnt/ab/local/x"},
		{"-drive", "file=/var/lib/nova/mnt/abc/x"},
		{"-drive", "file=relative,file=/ceph/x"},
		{"-drive", ""},
		{"-drive", "if=none"},
		{"-blockdev", "{\"driver\":\"host_device\",\"filename\":\"/dev/sdb\"}"},
		{"-blockdev", "{\"driver\":\"file\"}"},
		{"-blockdev", "{\"driver\":7,\"filename\":[]}"},
		{"-blockdev", "{\"driver\":"},
		{"-blockdev", "[]"},
		{"-blockdev", "{"},
		{"-device", "{\"driver\":\"rbd\"}"},
	};
	struct storage disks[VM_DISKS_MAX];
	char line[] = "qemu\0-drive";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (disks_of(cases[i][0], cases[i][1], disks))
			fail_msg("%s is a disk", cases[i][1]);
	}
	file_write("cmdline", line, sizeof(line));
	assert_int_equal(vm_disks_read(root, 42, disks), 0);
	assert_int_equal(vm_disks_read(root, 43, disks), 0);
	assert_int_equal(vm_disks_read(root, 0, disks), 0);
}

/* Texts of any length, nesting and number are cut. */
static void test_hostile(void **state)
{
	static char text[300000];
	struct storage disks[VM_DISKS_MAX];
	size_t at = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		memcpy(text + at, "-drive", 7);
		at += 7;
		at += (size_t)snprintf(text + at, 2900, "file=rbd:%0900d/%0900d:mon_host=%0900d", 1,
				       2, 3) +
		      1;
	}
	file_write("cmdline", text, at);
	assert_int_equal(vm_disks_read(root, 42, disks), VM_DISKS_MAX);
	assert_int_equal(strlen(disks[0].pool), sizeof(disks[0].pool) - 1);
	memset(text, '[', sizeof(text));
	memcpy(text, "-blockdev", 10);
	text[10] = '{';
	file_write("cmdline", text, sizeof(text));
	assert_int_equal(vm_disks_read(root, 42, disks), 0);
	for (unsigned seed = 1; seed < 300; seed++) {
		srand(seed);
		for (size_t i = 10; i < 2000; i++)
			text[i] = "{}[]\",:=driver file pool\\\0"[rand() % 26];
		file_write("cmdline", text, 2000);
		vm_disks_read(root, 42, disks);
	}
}

static void test_common(void **state)
{
	struct storage disks[] = {{.driver = "rbd", .server = "a", .pool = "p", .source = "one"},
				  {.driver = "rbd", .server = "a", .pool = "p", .source = "two"}};
	struct storage out;

	(void)state;
	assert_false(vm_disks_common(disks, 0, &out));
	assert_true(vm_disks_common(disks, 1, &out));
	assert_string_equal(out.source, "one");
	assert_true(vm_disks_common(disks, 2, &out));
	assert_string_equal(out.pool, "p");
	assert_string_equal(out.source, "");
	snprintf(disks[1].pool, sizeof(disks[1].pool), "q");
	assert_false(vm_disks_common(disks, 2, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_disks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test(test_common),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
