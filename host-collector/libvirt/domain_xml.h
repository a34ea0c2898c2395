/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Extracts the agent's channel and the settings from the XML of a libvirt domain. libvirt generates
 * the XML, but the values in it come from the user who defined the domain and are not trusted.
 */
#ifndef LIBVIRT_DOMAIN_XML_H
#define LIBVIRT_DOMAIN_XML_H

struct json_object;

/* Adds "channel": {"mode", "path"} to `out` if the domain has the agent's port. */
void domain_xml_channel(const char *text, struct json_object *out);
/* Adds "settings": {KEY: VALUE} to `out`, from <vcpuscope:settings KEY="VALUE" .../>. Adds nothing
 * if `text` is not valid XML. */
void domain_xml_settings(const char *text, struct json_object *out);
/* Adds "manager" and "owner" to `out` if the domain's metadata is that of Nova or KubeVirt: "nova"
 * and "PROJECT/USER", "kubevirt" and "NAMESPACE/NAME". */
void domain_xml_owner(const char *text, struct json_object *out);
/* Returns the XML of the channel, which the caller frees with free(); NULL if the domain has
 * none. */
char *domain_xml_channel_element(const char *text);

#endif
