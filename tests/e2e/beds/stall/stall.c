// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stalls a CPU on request, for tests.
 *
 *   echo "MODE MS [CPU]" > /proc/stall    stalls for MS. MODE: preempt, irqsoff, softirq, hardirq,
 *                                         irqstorm, softirqstorm or flash
 *   cat /proc/stall                       prints the last stall (see below)
 *
 *   echo "hold KIND MS" > /proc/stall-lock   takes a lock and computes while it has it. KIND: spin,
 *                                            irqsave, write or read
 *   echo "take KIND" > /proc/stall-lock      takes this lock once, and waits for its owner
 *   echo "call MS CPU" > /proc/stall-lock    for MS, makes CPU run a function again and again, and
 *                                            waits for it each time
 *
 * A read of /proc/stall gives "MODE BEGIN_NS END_NS BEGIN_TSC END_TSC", with BEGIN_NS and END_NS on
 * CLOCK_MONOTONIC_RAW. A read of the open file of /proc/stall-lock gives "BEGIN_NS END_NS BEGIN_TSC
 * END_TSC": the time in which the lock was held, waited for, or the function called.
 *
 * Only hardirq and call use CPU; the other modes stall the CPU of the writer. The module prints no
 * messages: a write to the console would reset the watchdogs that a stall is meant to trigger.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

/* One of a storm's interrupts, how many come at once, as raising them costs a nested guest exits,
 * and what they leave the task between: thousands a second. */
enum { STALL_MS_MAX = 60000, STORM_BUSY_US = 150, STORM_BURST = 16, STORM_PAUSE_US = 20 };

/* The firmware ends at 4 GiB; Intel's commands (CFI) to its flash. */
enum { FLASH_BYTES = 256 * 1024, FLASH_PROGRAM = 0x40, FLASH_READ = 0xff };
#define FLASH_ADDRESS (0x100000000ull - FLASH_BYTES)

struct stall {
	const char *mode;
	unsigned int ms, cpu;
	u64 begin_ns, end_ns, begin_tsc, end_tsc;
};

static DEFINE_MUTEX(stall_lock);
static struct stall last = {.mode = "none"};
static DECLARE_COMPLETION(tasklet_done);

static noinline void stall_spin(struct stall *s)
{
	s->begin_ns = ktime_get_raw_ns();
	s->begin_tsc = rdtsc();
	/* The fast accessor: it needs no seqlock retry while a tick we hold up is due. */
	while (ktime_get_raw_fast_ns() < s->begin_ns + s->ms * 1000000ull)
		cpu_relax();
	s->end_tsc = rdtsc();
	s->end_ns = ktime_get_raw_ns();
}

static void stall_preempt(struct stall *s)
{
	preempt_disable();
	stall_spin(s);
	preempt_enable();
}

static void stall_irqsoff(struct stall *s)
{
	unsigned long flags;

	local_irq_save(flags);
	stall_spin(s);
	local_irq_restore(flags);
}

static void stall_tasklet(struct tasklet_struct *t)
{
	stall_spin(&last);
	complete(&tasklet_done);
}
static DECLARE_TASKLET(tasklet, stall_tasklet);

static void stall_softirq(struct stall *s)
{
	reinit_completion(&tasklet_done);
	tasklet_schedule(&tasklet);
	wait_for_completion(&tasklet_done);
}

static void stall_ipi(void *s)
{
	stall_spin(s);
}

static void stall_hardirq(struct stall *s)
{
	smp_call_function_single(s->cpu, stall_ipi, s, 1);
}

/*
 * A device of our own: its interrupts come through the interrupt of irq_work, which needs no timer,
 * so that a guest whose timers are as coarse as its ticks has its storm, too.
 */
static int storm_irq;

static void storm_raise(struct irq_work *work)
{
	for (int i = 0; i < STORM_BURST; i++)
		generic_handle_irq(storm_irq);
}
static DEFINE_IRQ_WORK(storm_work, storm_raise);

static irqreturn_t storm_handle(int irq, void *unused)
{
	udelay(STORM_BUSY_US);
	return IRQ_HANDLED;
}

static void storm_tasklet(struct tasklet_struct *t)
{
	udelay(STORM_BUSY_US);
}
static DECLARE_TASKLET(storm_soft, storm_tasklet);

static void storm_interrupt(void)
{
	irq_work_queue(&storm_work);
}

static void storm_softirq(void)
{
	local_bh_disable();
	tasklet_schedule(&storm_soft);
	local_bh_enable();
}

/* A piece of work that must not be preempted, made long by what comes in between. */
static noinline void stall_storm(struct stall *s, void (*strike)(void))
{
	preempt_disable();
	s->begin_ns = ktime_get_raw_ns();
	s->begin_tsc = rdtsc();
	while (ktime_get_raw_fast_ns() < s->begin_ns + s->ms * 1000000ull) {
		strike();
		udelay(STORM_PAUSE_US);
	}
	s->end_tsc = rdtsc();
	s->end_ns = ktime_get_raw_ns();
	preempt_enable();
}

static void stall_irqstorm(struct stall *s)
{
	stall_storm(s, storm_interrupt);
}

static void stall_softirqstorm(struct stall *s)
{
	stall_storm(s, storm_softirq);
}

static int storm_device_add(void)
{
	int err;

	storm_irq = irq_alloc_desc(NUMA_NO_NODE);
	if (storm_irq < 0)
		return storm_irq;
	irq_set_chip_and_handler(storm_irq, &dummy_irq_chip, handle_simple_irq);
	irq_modify_status(storm_irq, IRQ_NOREQUEST, 0);
	err = request_irq(storm_irq, storm_handle, 0, "stall", &storm_irq);
	if (err)
		irq_free_desc(storm_irq);
	return err;
}

static void storm_device_remove(void)
{
	irq_work_sync(&storm_work);
	free_irq(storm_irq, &storm_irq);
	irq_free_desc(storm_irq);
}

/*
 * Programs a byte of the firmware's flash with what it holds already. QEMU writes it to its disk
 * before the instruction ends, so this lasts as long as that disk takes, whatever was asked for.
 */
static void stall_flash(struct stall *s)
{
	void __iomem *flash = ioremap(FLASH_ADDRESS, FLASH_BYTES);
	u8 held;

	if (!flash)
		return;
	held = readb(flash);
	s->begin_ns = ktime_get_raw_ns();
	s->begin_tsc = rdtsc();
	writeb(FLASH_PROGRAM, flash);
	writeb(held, flash);
	s->end_tsc = rdtsc();
	s->end_ns = ktime_get_raw_ns();
	writeb(FLASH_READ, flash);
	iounmap(flash);
}

static const struct {
	const char *name;
	void (*run)(struct stall *s);
} modes[] = {
	{"preempt", stall_preempt},   {"irqsoff", stall_irqsoff},
	{"softirq", stall_softirq},   {"hardirq", stall_hardirq},
	{"irqstorm", stall_irqstorm}, {"softirqstorm", stall_softirqstorm},
	{"flash", stall_flash},
};

static ssize_t stall_write(struct file *file, const char __user *user, size_t len, loff_t *offset)
{
	unsigned int ms, cpu = 0, i;
	char line[64] = {0}, mode[16];

	if (len >= sizeof(line) || copy_from_user(line, user, len))
		return -EFAULT;
	if (sscanf(line, "%15s %u %u", mode, &ms, &cpu) < 2 || ms > STALL_MS_MAX)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcmp(mode, modes[i].name))
			continue;
		mutex_lock(&stall_lock);
		last = (struct stall){.mode = modes[i].name, .ms = ms, .cpu = cpu};
		modes[i].run(&last);
		mutex_unlock(&stall_lock);
		return len;
	}
	return -EINVAL;
}

static int stall_show(struct seq_file *m, void *unused)
{
	mutex_lock(&stall_lock);
	seq_printf(m, "%s %llu %llu %llu %llu\n", last.mode, last.begin_ns, last.end_ns,
		   last.begin_tsc, last.end_tsc);
	mutex_unlock(&stall_lock);
	return 0;
}

static int stall_open(struct inode *inode, struct file *file)
{
	return single_open(file, stall_show, NULL);
}

/* ---- locks between CPUs ---- */

static DEFINE_SPINLOCK(test_spinlock);
static DEFINE_SPINLOCK(test_irqlock);
static DEFINE_RWLOCK(test_rwlock);

static void lock_begin(struct stall *s)
{
	s->begin_ns = ktime_get_raw_fast_ns();
	s->begin_tsc = rdtsc();
}

static void lock_end(struct stall *s)
{
	s->end_tsc = rdtsc();
	s->end_ns = ktime_get_raw_fast_ns();
}

/* With the lock: who waits for it has waited, who holds it keeps it. */
static void lock_got(struct stall *s)
{
	if (s->ms)
		stall_spin(s);
	else
		lock_end(s);
}

static void lock_spin(struct stall *s)
{
	spin_lock(&test_spinlock);
	lock_got(s);
	spin_unlock(&test_spinlock);
}

static void lock_irqsave(struct stall *s)
{
	unsigned long flags;

	spin_lock_irqsave(&test_irqlock, flags);
	lock_got(s);
	spin_unlock_irqrestore(&test_irqlock, flags);
}

static void lock_write(struct stall *s)
{
	write_lock(&test_rwlock);
	lock_got(s);
	write_unlock(&test_rwlock);
}

static void lock_read(struct stall *s)
{
	read_lock(&test_rwlock);
	lock_got(s);
	read_unlock(&test_rwlock);
}

static void called(void *unused)
{
}

static void call_again_and_again(struct stall *s)
{
	u64 until_ns = ktime_get_raw_fast_ns() + s->ms * 1000000ull;

	while (ktime_get_raw_fast_ns() < until_ns) {
		smp_call_function_single(s->cpu, called, NULL, 1);
		usleep_range(200, 300);
	}
	lock_end(s);
}

static const struct {
	const char *name;
	void (*run)(struct stall *s);
} locks[] = {
	{"spin", lock_spin},
	{"irqsave", lock_irqsave},
	{"write", lock_write},
	{"read", lock_read},
};

static void (*lock_of(const char *kind))(struct stall *s)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(locks); i++) {
		if (!strcmp(locks[i].name, kind))
			return locks[i].run;
	}
	return NULL;
}

static ssize_t locks_write(struct file *file, const char __user *user, size_t len, loff_t *offset)
{
	struct stall *s = ((struct seq_file *)file->private_data)->private;
	void (*run)(struct stall * s) = NULL;
	char line[64] = {0}, kind[16] = "";

	if (len >= sizeof(line) || copy_from_user(line, user, len))
		return -EFAULT;
	*s = (struct stall){};
	if (sscanf(line, "call %u %u", &s->ms, &s->cpu) == 2)
		run = call_again_and_again;
	else if (sscanf(line, "hold %15s %u", kind, &s->ms) == 2 ||
		 sscanf(line, "take %15s", kind) == 1)
		run = lock_of(kind);
	if (!run || s->ms > STALL_MS_MAX)
		return -EINVAL;
	lock_begin(s);
	run(s);
	return len;
}

static int locks_show(struct seq_file *m, void *unused)
{
	const struct stall *s = m->private;

	seq_printf(m, "%llu %llu %llu %llu\n", s->begin_ns, s->end_ns, s->begin_tsc, s->end_tsc);
	return 0;
}

static int locks_open(struct inode *inode, struct file *file)
{
	struct stall *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int err = s ? single_open(file, locks_show, s) : -ENOMEM;

	if (err)
		kfree(s);
	return err;
}

static int locks_release(struct inode *inode, struct file *file)
{
	kfree(((struct seq_file *)file->private_data)->private);
	return single_release(inode, file);
}

static const struct proc_ops locks_ops = {
	.proc_open = locks_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = locks_release,
	.proc_write = locks_write,
};

static const struct proc_ops stall_ops = {
	.proc_open = stall_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = stall_write,
};

static int __init stall_init(void)
{
	int err = storm_device_add();

	if (err)
		return err;
	if (!proc_create("stall", 0600, NULL, &stall_ops))
		goto device;
	if (!proc_create("stall-lock", 0600, NULL, &locks_ops))
		goto entry;
	return 0;
entry:
	remove_proc_entry("stall", NULL);
device:
	storm_device_remove();
	return -ENOMEM;
}

static void __exit stall_exit(void)
{
	remove_proc_entry("stall-lock", NULL);
	remove_proc_entry("stall", NULL);
	tasklet_kill(&tasklet);
	tasklet_kill(&storm_soft);
	storm_device_remove();
}

module_init(stall_init);
module_exit(stall_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Stalls a CPU on request, for tests");
