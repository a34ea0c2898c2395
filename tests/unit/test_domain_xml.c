/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the owner of a libvirt domain, from the metadata of Nova and KubeVirt. The XML was
 * written for this test, after the sources of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <json.h>

#include "host-collector/libvirt/domain_xml.h"

#define NOVA(version, owner)                                                                       \
	"<domain type='kvm'><name>instance-00000001</name><metadata><nova:instance "               \
	"xmlns:nova=\"http://openstack.org/xmlns/libvirt/nova/" version "\">"                      \
	"<nova:package version=\"27.1.0\"/><nova:name>web</nova:name>" owner                       \
	"</nova:instance></metadata></domain>"
#define OWNER(user, project) "<nova:owner>" user project "</nova:owner>"
#define KUBEVIRT(name, uri)                                                                        \
	"<domain type='kvm' id='1'><name>" name "</name><metadata><kubevirt xmlns=\"" uri          \
	"\"><uid>5f2e</uid></kubevirt></metadata></domain>"

static void test_owner(void **state)
{
	static const struct {
		const char *xml, *manager, *owner;
	} cases[] = {
		{NOVA("1.1", OWNER("<nova:user uuid=\"u1\">alice</nova:user>",
				   "<nova:project uuid=\"p1\">shop</nova:project>")),
		 "nova", "shop/alice"},
		{NOVA("1.0", OWNER("<nova:user uuid=\"u1\"/>", "<nova:project uuid=\"p1\"/>")),
		 "nova", "p1/u1"},
		{NOVA("1.1", OWNER("", "<nova:project uuid=\"p1\">shop</nova:project>")), "nova",
		 "shop"},
		{NOVA("1.1", ""), "", ""},
		{KUBEVIRT("default_vm-a", "http://kubevirt.io"), "kubevirt", "default/vm-a"},
		{KUBEVIRT("vm-a", "http://kubevirt.io"), "kubevirt", "vm-a"},
		{KUBEVIRT("default_vm-a", "http://other.io"), "", ""},
		{"<domain><name>a_b</name></domain>", "", ""},
		{"<domain><metadata><instance><owner><project>x</project></owner></instance>"
		 "</metadata></domain>",
		 "", ""},
		{"no XML", "", ""},
		{"", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_object *out = json_object_new_object(), *value = NULL;

		domain_xml_owner(cases[i].xml, out);
		json_object_object_get_ex(out, "manager", &value);
		assert_string_equal(value ? json_object_get_string(value) : "", cases[i].manager);
		value = NULL;
		json_object_object_get_ex(out, "owner", &value);
		assert_string_equal(value ? json_object_get_string(value) : "", cases[i].owner);
		json_object_put(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_owner)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
