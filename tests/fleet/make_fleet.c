/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the segments of a simulated fleet with the daemon's own writers of records, and
 * truth.json: the planted causes and the content of the segments. As in real deliveries, some lines
 * are written twice, and an incident has an earlier line before or after its last one.
 *
 * Hosts differ: the run delay of a host is that of the fleet times exp(N(0, 0.12)).
 */
#include <errno.h>
#include <getopt.h>
#include <json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host-collector/fleet/figures_record.h"
#include "host-collector/fleet/incident_record.h"

enum {
	VMS_MAX = 64,
	NODES = 8,
	WAITS_WAKEUP = 1500, /* of a VM and interval */
	WAITS_PREEMPTED = 300,
	DAY_S = 86400,
	HOUR_S = 3600,
	STORAGE_STALLS = 72, /* of a node and day: 3 an hour */
	THEFTS = 400,
	OTHERS = 300,
	INCIDENTS = NODES * STORAGE_STALLS + THEFTS + OTHERS, /* without plants */
	INTERVAL_S = 300,
};

static const char *const kernels[] = {"6.1.0-28-amd64", "6.1.0-29-amd64", "6.12.5-amd64",
				      "6.12.9-amd64"};
static const char *const vmms[] = {"8.2.2", "9.1.0", "9.2.0"};
static const char *const rings[] = {"canary", "early", "main"};
static const char *const microcodes[] = {"0xd0003e7", "0xd0003f5"};
enum { BAD_KERNEL = 3 };

struct vm {
	struct vm_facts facts;
	double pace;
	unsigned vcpus, node;
};

struct host {
	struct host_facts facts;
	double pace;
	unsigned kernel;
	struct vm vms[VMS_MAX];
};

struct plants {
	bool kernel, storage, thief, blind;
};

struct fleet {
	uint64_t random;
	struct plants plants;
	unsigned hosts, vms, intervals, planned, bad_node, blind_host;
	const struct host *thief_host;
	int64_t now_ns;
	FILE *incidents, *figures;
	struct host *all;
	/* what the segments contain, each record once */
	uint64_t n_incidents, n_figures, n_waits, n_storage, n_vmm;
};

/* ---- chance ---- */

/* splitmix64 */
static uint64_t random_bits(struct fleet *f)
{
	uint64_t z = f->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static double uniform(struct fleet *f)
{
	return ((double)(random_bits(f) >> 11) + 0.5) / 9007199254740992.0;
}

static unsigned below(struct fleet *f, unsigned n)
{
	return (unsigned)(random_bits(f) % n);
}

static double normal(struct fleet *f)
{
	return sqrt(-2 * log(uniform(f))) * cos(2 * M_PI * uniform(f));
}

static unsigned poisson(struct fleet *f, double mean)
{
	const double n = mean + sqrt(mean) * normal(f);
	double product = 1;
	unsigned count = 0;

	if (mean > 100)
		return n > 0 ? (unsigned)lround(n) : 0;
	while ((product *= uniform(f)) > exp(-mean))
		count++;
	return count;
}

/* ---- hosts and VMs ---- */

static void hex_fill(struct fleet *f, char *out, size_t digits)
{
	for (size_t i = 0; i < digits; i++)
		out[i] = "0123456789abcdef"[below(f, 16)];
	out[digits] = '\0';
}

static void uuid_fill(struct fleet *f, char out[IDENTITY_UUID_BYTES])
{
	hex_fill(f, out, IDENTITY_UUID_BYTES - 1);
	out[8] = out[13] = out[18] = out[23] = '-';
}

static void label_add(struct host_facts *h, const char *key, const char *value)
{
	struct host_label *l = &h->labels[h->n_labels++];

	snprintf(l->key, sizeof(l->key), "%s", key);
	snprintf(l->value, sizeof(l->value), "%s", value);
}

static unsigned kernel_of(struct fleet *f)
{
	const double u = uniform(f);

	return u < 0.3 ? BAD_KERNEL : u < 0.7 ? 0 : u < 0.95 ? 1 : 2;
}

static void host_fill(struct fleet *f, struct host *h, unsigned number)
{
	const double ring = uniform(f);

	hex_fill(f, h->facts.id, sizeof(h->facts.id) - 1);
	hex_fill(f, h->facts.boot_id, sizeof(h->facts.boot_id) - 1);
	snprintf(h->facts.name, sizeof(h->facts.name), "node%u", number);
	h->kernel = kernel_of(f);
	snprintf(h->facts.kernel, sizeof(h->facts.kernel), "%s", kernels[h->kernel]);
	snprintf(h->facts.cpu_model, sizeof(h->facts.cpu_model), "Simulated CPU");
	snprintf(h->facts.microcode, sizeof(h->facts.microcode), "%s", microcodes[below(f, 2)]);
	label_add(&h->facts, "ring", rings[ring < 0.1 ? 0 : ring < 0.3 ? 1 : 2]);
	label_add(&h->facts, "zone", number % 2 ? "fra1" : "fra2");
	h->pace = exp(0.12 * normal(f));
	for (unsigned i = 0; i < f->vms; i++) {
		struct vm *v = &h->vms[i];

		*v = (struct vm){.pace = exp(0.05 * normal(f)),
				 .vcpus = 1u << (1 + below(f, 3)),
				 .node = below(f, NODES)};
		snprintf(v->facts.name, sizeof(v->facts.name), "vm-%u-%u", number, i);
		uuid_fill(f, v->facts.uuid);
		snprintf(v->facts.vmm, sizeof(v->facts.vmm), "QEMU");
		snprintf(v->facts.vmm_version, sizeof(v->facts.vmm_version), "%s",
			 vmms[below(f, 3)]);
		snprintf(v->facts.owner, sizeof(v->facts.owner), "project%u/user", below(f, 40));
		snprintf(v->facts.cgroup, sizeof(v->facts.cgroup), "/machine.slice/%s.scope",
			 v->facts.name);
	}
}

/* ---- figures ---- */

static void line_write(struct fleet *f, FILE *to, struct json_object *record, double again)
{
	static char line[OUTBOX_LINE_MAX];

	if (!incident_record_line(record, line, sizeof(line))) {
		fputs("make_fleet: no memory, or a record is too long\n", stderr);
		exit(1);
	}
	json_object_put(record);
	fprintf(to, "%s\n", line);
	if (uniform(f) < again)
		fprintf(to, "%s\n", line);
}

static void waits_add(struct fleet *f, struct histogram *h, unsigned n, double median_ns,
		      double sigma, bool bad)
{
	for (unsigned i = 0; i < n; i++) {
		const double z = normal(f);
		/* The planted kernel makes the longest 5 % of the waits 10 % longer. */
		const double slower = bad && z > 1.645 ? 1.10 : 1;

		if (histogram_add(h, (uint64_t)(median_ns * exp(sigma * z) * slower)))
			exit(1);
	}
	f->n_waits += n;
}

static void figures_write(struct fleet *f, const struct host *h, const struct vm *v, unsigned ago)
{
	const bool blind = f->plants.blind && h == &f->all[f->blind_host];
	const bool bad = f->plants.kernel && h->kernel == BAD_KERNEL;
	const int64_t length_ns = INTERVAL_S * 1000000000ll, end = f->now_ns - ago * length_ns;
	const int64_t all_ns = v->vcpus * length_ns;
	static struct figures_counters now;
	struct figures_record r = {.host = &h->facts,
				   .vm = &v->facts,
				   .begin_ns = end - length_ns,
				   .begin_realtime_ns = end - length_ns,
				   .end_realtime_ns = end,
				   .interval_ns = length_ns,
				   .has_agent = true,
				   .up = true,
				   .now = &now};

	now = (struct figures_counters){.host_events = 900000, .guest_events = 500000};
	now.vm.vcpus = v->vcpus;
	waits_add(f, &now.vm.delays[RUN_DELAY_WOKEN], WAITS_WAKEUP, 8e3 * h->pace * v->pace, 1.2,
		  bad);
	waits_add(f, &now.vm.delays[RUN_DELAY_PREEMPTED], WAITS_PREEMPTED, 3e4 * h->pace * v->pace,
		  1.2, bad);
	for (int i = 0; i < 60; i++)
		histogram_add_many(&now.vm.exits, (uint64_t)(1500 * exp(0.6 * normal(f))), 100);
	now.vm.n_reasons = 1;
	now.vm.reasons[0] = (struct metrics_reason){"HLT", 6000, 9000000};
	now.vm.state_ns[VCPU_RUNNABLE] = (int64_t)(now.vm.delays[RUN_DELAY_WOKEN].sum_ns +
						   now.vm.delays[RUN_DELAY_PREEMPTED].sum_ns);
	now.vm.state_ns[VCPU_GUEST] = (int64_t)((double)all_ns * (0.1 + 0.3 * uniform(f)));
	now.vm.state_ns[VCPU_UNKNOWN] = blind ? all_ns / 5 : 0;
	now.host_events_lost = blind ? 300000 : 0;
	now.vm.state_ns[VCPU_HALTED] = all_ns - now.vm.state_ns[VCPU_RUNNABLE] -
				       now.vm.state_ns[VCPU_GUEST] - now.vm.state_ns[VCPU_UNKNOWN];
	line_write(f, f->figures, figures_record_json(&r), 0.02);
	f->n_figures++;
	metrics_vm_fini(&now.vm);
}

/* ---- incidents ---- */

struct planned {
	const struct host *host;
	const struct vm *vm, *thief;
	enum verdict verdict;
	unsigned ago_s_max;
	const struct storage *storage;
};

/* An incident that lasted had lines before the last one. */
static void earlier_write(struct fleet *f, const struct incident_record *r, const char *id)
{
	struct json_object *o = incident_record_json(r, id);

	incident_record_seq(o, 0, true);
	line_write(f, f->incidents, o, 0);
}

static void incident_write(struct fleet *f, const struct planned *t)
{
	static struct incident i;
	struct record_culprit culprit = {{0}, ""};
	struct incident_record r = {.host = &t->host->facts,
				    .vm = &t->vm->facts,
				    .incident = &i,
				    .trigger = "stall",
				    .culprits = &culprit,
				    .storage = t->storage,
				    .numa_node = 0};
	const int64_t ago_ns = (int64_t)(uniform(f) * t->ago_s_max * 1e9);
	const bool lasted = uniform(f) < 0.1, late = uniform(f) < 0.5;
	char id[HOST_ID_BYTES];
	struct json_object *o;

	r.duration_ns = (int64_t)(1.5e8 * exp(0.5 * normal(f)));
	r.begin_realtime_ns = r.begin_ns = f->now_ns - ago_ns - r.duration_ns;
	r.end_realtime_ns = f->now_ns - ago_ns;
	i = (struct incident){.vcpu = below(f, t->vm->vcpus),
			      .kind = GUEST_CPU_TASK,
			      .verdict = t->verdict,
			      .confidence = CONFIDENCE_DECIDED,
			      .n_causes = 1,
			      .causes = {{t->verdict, r.duration_ns}}};
	i.breakdown_ns[t->storage ? VCPU_BLOCKED : VCPU_RUNNABLE] = r.duration_ns;
	if (t->verdict == VERDICT_VCPU_NOT_SCHEDULED) {
		struct report_culprit *c = &i.culprits[i.n_culprits++];

		*c = (struct report_culprit){.host = true,
					     .pid = 4711,
					     .n_tasks = 1,
					     .role = CULPRIT_HELD_PCPU,
					     .share_ns = r.duration_ns * 4 / 5,
					     .cause = t->verdict};
		if (t->thief) {
			snprintf(c->comm, sizeof(c->comm), "CPU 0/KVM");
			snprintf(c->vm.name, sizeof(c->vm.name), "%s", t->thief->facts.name);
			snprintf(culprit.vm_uuid, sizeof(culprit.vm_uuid), "%s",
				 t->thief->facts.uuid);
		} else {
			snprintf(c->comm, sizeof(c->comm), "rsync");
			snprintf(culprit.unit, sizeof(culprit.unit), "backup.service");
		}
	}
	incident_record_id(&r, id);
	if (lasted && !late)
		earlier_write(f, &r, id);
	o = incident_record_json(&r, id);
	if (lasted)
		incident_record_seq(o, 1, false);
	line_write(f, f->incidents, o, 0.02);
	if (lasted && late)
		earlier_write(f, &r, id);
	f->n_incidents++;
	f->n_storage += t->storage != NULL;
	f->n_vmm += t->thief != NULL;
}

static const struct vm *vm_any(struct fleet *f, const struct host **host)
{
	*host = &f->all[below(f, f->hosts)];
	return &(*host)->vms[below(f, f->vms)];
}

static void storage_write(struct fleet *f, unsigned node, unsigned ago_s_max)
{
	struct planned t = {.verdict = VERDICT_STORAGE_BACKEND, .ago_s_max = ago_s_max};
	struct storage s = {.driver = "nfs", .mount = "/var/lib/images", .device = "0:51"};

	snprintf(s.server, sizeof(s.server), "nfs-%02u", node);
	snprintf(s.source, sizeof(s.source), "nfs-%02u:/export", node);
	do {
		t.vm = vm_any(f, &t.host);
	} while (t.vm->node != node);
	t.storage = &s;
	incident_write(f, &t);
}

static void theft_write(struct fleet *f, const struct host *host, const struct vm *thief)
{
	struct planned t = {.verdict = VERDICT_VCPU_NOT_SCHEDULED,
			    .ago_s_max = DAY_S - HOUR_S,
			    .host = host,
			    .thief = thief};

	if (!host)
		t.thief = vm_any(f, &t.host);
	do {
		t.vm = &t.host->vms[below(f, f->vms)];
	} while (t.vm == t.thief);
	incident_write(f, &t);
}

static void others_write(struct fleet *f)
{
	static const enum verdict verdicts[] = {VERDICT_VM_PAUSED, VERDICT_GUEST_SPIN,
						VERDICT_VCPU_NOT_SCHEDULED};
	struct planned t = {.verdict = verdicts[below(f, 3)], .ago_s_max = DAY_S - HOUR_S};

	t.vm = vm_any(f, &t.host);
	incident_write(f, &t);
}

static void incidents_write(struct fleet *f)
{
	const struct incident_sum sum = {.count = 70,
					 .vms = 2,
					 .by_verdict[VERDICT_VM_PAUSED] = 70,
					 .begin_realtime_ns = f->now_ns - 7200000000000,
					 .end_realtime_ns = f->now_ns - 7140000000000};
	const struct outbox_loss loss = {.n = {17, 40, 1}, .number = 1};
	const double scale = (double)f->planned / INCIDENTS;
	unsigned n;

	for (unsigned node = 0; node < NODES; node++) {
		for (n = poisson(f, STORAGE_STALLS * scale); n; n--)
			storage_write(f, node, DAY_S - 60);
	}
	for (n = f->plants.storage ? 60 + below(f, 60) : 0; n; n--)
		storage_write(f, f->bad_node, HOUR_S - 60);
	for (n = poisson(f, THEFTS * scale); n; n--)
		theft_write(f, NULL, NULL);
	for (n = f->plants.thief ? 30 + below(f, 30) : 0; n; n--)
		theft_write(f, f->thief_host, &f->thief_host->vms[0]);
	for (n = poisson(f, OTHERS * scale); n; n--)
		others_write(f);
	line_write(f, f->incidents, incident_sum_json(&f->all[0].facts, &sum), 1);
	f->n_incidents += sum.count;
	if (f->plants.blind)
		line_write(f, f->incidents, incident_loss_json(&f->all[f->blind_host].facts, &loss),
			   1);
}

/* ---- the program ---- */

static FILE *file_open(const char *folder, const char *kind)
{
	char path[4096];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s", folder, kind);
	to = fopen(path, "we");
	if (!to) {
		fprintf(stderr, "make_fleet: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return to;
}

static void truth_write(const struct fleet *f, const char *folder)
{
	FILE *to = file_open(folder, "truth.json");

	fprintf(to,
		"{\"kernel\": \"%s\", \"storage\": \"nfs-%02u\", \"thief\": \"%s\", \"blind\": \"%s\",\n"
		" \"hosts\": %u, \"incidents\": %llu, \"figures\": %llu, \"waits\": %llu, \"storage_stalls\": "
		"%llu,\n \"thefts\": %llu}\n",
		kernels[BAD_KERNEL], f->bad_node, f->thief_host->vms[0].facts.uuid,
		f->all[f->blind_host].facts.id, f->hosts, (unsigned long long)f->n_incidents,
		(unsigned long long)f->n_figures, (unsigned long long)f->n_waits,
		(unsigned long long)f->n_storage, (unsigned long long)f->n_vmm);
	fclose(to);
}

static int usage(void)
{
	fputs("usage: make_fleet [--seed N] [--hosts N] [--vms N] [--intervals N] [--incidents N]\n"
	      "                  [--now NS] [--plant kernel|storage|thief|blind]... FOLDER\n",
	      stderr);
	return 2;
}

static int plant_add(struct plants *p, const char *name)
{
	bool *plant = !strcmp(name, "kernel")    ? &p->kernel
		      : !strcmp(name, "storage") ? &p->storage
		      : !strcmp(name, "thief")   ? &p->thief
		      : !strcmp(name, "blind")   ? &p->blind
						 : NULL;

	if (!plant)
		return -EINVAL;
	*plant = true;
	return 0;
}

static int arguments_read(struct fleet *f, int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", 1, NULL, 's'},      {"hosts", 1, NULL, 'h'}, {"vms", 1, NULL, 'v'},
		{"now", 1, NULL, 'n'},       {"plant", 1, NULL, 'p'}, {"intervals", 1, NULL, 'i'},
		{"incidents", 1, NULL, 'c'}, {NULL, 0, NULL, 0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		const unsigned long long n = optarg ? strtoull(optarg, NULL, 10) : 0;

		if (option == 's')
			f->random = n;
		else if (option == 'h')
			f->hosts = (unsigned)n;
		else if (option == 'v')
			f->vms = (unsigned)n;
		else if (option == 'i')
			f->intervals = (unsigned)n;
		else if (option == 'c')
			f->planned = (unsigned)n;
		else if (option == 'n')
			f->now_ns = (int64_t)n;
		else if (option != 'p' || plant_add(&f->plants, optarg))
			return -EINVAL;
	}
	/* A victim beside the thief, a VM on each storage node. */
	return optind + 1 == argc && f->vms >= 2 && f->vms <= VMS_MAX && f->hosts >= 100 ? 0
											 : -EINVAL;
}

int main(int argc, char **argv)
{
	struct fleet f = {.hosts = 500, .vms = 3, .intervals = 3, .planned = INCIDENTS};
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	f.now_ns = t.tv_sec * 1000000000ll;
	if (arguments_read(&f, argc, argv))
		return usage();
	f.all = calloc(f.hosts, sizeof(*f.all));
	if (!f.all)
		return 1;
	f.incidents = file_open(argv[optind], "incidents-0-0-0.jsonl");
	f.figures = file_open(argv[optind], "figures-0-0-0.jsonl");
	f.bad_node = below(&f, NODES);
	f.blind_host = below(&f, f.hosts);
	for (unsigned h = 0; h < f.hosts; h++)
		host_fill(&f, &f.all[h], h);
	f.thief_host = &f.all[below(&f, f.hosts)];
	for (unsigned h = 0; h < f.hosts; h++) {
		for (unsigned v = 0; v < f.vms; v++) {
			for (unsigned i = 0; i < f.intervals; i++)
				figures_write(&f, &f.all[h], &f.all[h].vms[v], i);
		}
	}
	incidents_write(&f);
	truth_write(&f, argv[optind]);
	free(f.all);
	return fclose(f.incidents) || fclose(f.figures) ? 1 : 0;
}
