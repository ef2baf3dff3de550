// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Looking pages of processes in a guest, as a process of the host finds them: by name among
 * the open files of who runs the NIC.
 */
#include "test_guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#include "muster_look.h"

enum {
	PAGE_KEY = 2,
	IOVA = 0x9000000,
	COMMS = 3,
	PAGE_BYTES = offsetof(struct muster_look, comms) + COMMS * sizeof(struct muster_look_comm),
};

#define LINK "/memfd:" MUSTER_LOOK_NAME " "

/* The page in guest memory, of which it takes one; with records it takes many, in another order. */
static struct muster_look *page(struct guest *guest)
{
	return (void *)(guest->memory + DATA + PAGE_KEY * 0x10000);
}

/* How many files are shown; the last one's name. */
static uint32_t shown(char *path, size_t len)
{
	DIR *all = opendir("/proc/self/fd");
	const struct dirent *entry;
	uint32_t nr = 0;

	while ((entry = readdir(all))) {
		char name[sizeof(LINK)] = "", link[300];

		snprintf(link, sizeof(link), "/proc/self/fd/%s", entry->d_name);
		if (readlink(link, name, sizeof(name) - 1) < 0 || strcmp(name, LINK))
			continue;
		snprintf(path, len, "%s", link);
		nr++;
	}
	closedir(all);
	return nr;
}

static uint32_t nr_shown(void)
{
	char path[300];

	return shown(path, sizeof(path));
}

/* As another process reads it; with its first communicators. */
static void shown_read(void *look)
{
	char path[300];
	int fd;

	assert_int_equal(shown(path, sizeof(path)), 1);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, look, PAGE_BYTES, 0), PAGE_BYTES);
	close(fd);
}

/* Until another copy is there: by the clock, which the NIC goes by. */
static void copy_await(struct guest *guest, struct muster_look *look)
{
	uint64_t before = look->copied_us;

	do {
		settle(guest);
		usleep(1000);
		shown_read(look);
	} while (look->copied_us == before);
}

/* For this long a copy would have been made many times. */
static void copies_pass(struct guest *guest)
{
	for (int i = 0; i < 30; i++) {
		settle(guest);
		usleep(10000);
	}
}

static void page_write(struct guest *guest)
{
	struct muster_look *look = page(guest);

	look->version = MUSTER_LOOK_VERSION;
	look->pid = 77;
	look->rank = 1;
	look->size = 2;
	look->job = JOB;
	look->began_us = 4000000;
	look->seen_us = 5000000;
	look->nr_comms = 1;
	look->comms[0] = (struct muster_look_comm){
		.used = 1, .context = CONTEXT, .size = 2, .path = 2, .started = 1,
		.told_us = 4500000,
	};
	look->magic = MUSTER_LOOK_MAGIC;
}

static void region_give(struct guest *guest, uint32_t bytes)
{
	command(guest, mr_command(guest, PAGE_KEY, IOVA, bytes, MUSTER_MR_READ | MUSTER_MR_WRITE));
}

static void page_ring(struct guest *guest, uint32_t vp)
{
	doorbell(guest, vp, MUSTER_DOORBELL_CLOCK, 5000000);
	doorbell(guest, vp, MUSTER_DOORBELL_LOOK, PAGE_KEY);
	settle(guest);
}

static void page_open(struct guest *guest)
{
	port_open(guest, 0);
	region_give(guest, PAGE_BYTES);
	page_write(guest);
	page_ring(guest, 0);
}

static struct muster_look *room(void)
{
	struct muster_look *look = calloc(1, sizeof(*look));

	assert_non_null(look);
	return look;
}

static void a_page_is_shown_in_times_of_the_host(void **state)
{
	struct guest *guest = *state;
	struct muster_look *look = room();
	uint64_t before, after;

	before = now_us(guest);
	page_open(guest);
	after = now_us(guest);
	copy_await(guest, look);
	assert_int_equal(look->magic, MUSTER_LOOK_MAGIC);
	assert_int_equal(look->pid, 77);
	assert_int_equal(look->seq % 2, 0);
	assert_true(look->copied_us >= before);
	assert_int_equal(look->copied_by, getpid());
	/* It began a second before it rang. */
	assert_true(look->began_us >= before - 1000000 && look->began_us <= after - 1000000);
	assert_int_equal(look->comms[0].told_us - look->began_us, 500000);
	assert_int_equal(look->comms[0].since_us, 0);
	assert_int_equal(look->nr_hidden, 0);
	page(guest)->place = MUSTER_LOOK_LEAVES;
	copy_await(guest, look);
	assert_int_equal(look->place, MUSTER_LOOK_LEAVES);
	assert_int_equal(look->began_us - (look->seen_us - 1000000), 0);
	free(look);
}

static void of_several_rings_of_the_clock_the_least_late_counts(void **state)
{
	struct guest *guest = *state;
	struct muster_look *look = room();
	uint64_t before, after;

	port_open(guest, 0);
	region_give(guest, PAGE_BYTES);
	page_write(guest);
	doorbell(guest, 0, MUSTER_DOORBELL_CLOCK, 5000000 - 70000);	/* it was held up */
	before = now_us(guest);
	doorbell(guest, 0, MUSTER_DOORBELL_CLOCK, 5000000);
	after = now_us(guest);
	doorbell(guest, 0, MUSTER_DOORBELL_CLOCK, 5000000 - 9000);
	doorbell(guest, 0, MUSTER_DOORBELL_LOOK, PAGE_KEY);
	copy_await(guest, look);
	assert_true(look->seen_us >= before && look->seen_us <= after);
	free(look);
}

/* It got no processor for a second, and believes that there was none. */
static void a_clock_that_lost_time_is_followed(void **state)
{
	struct guest *guest = *state;
	struct muster_look *look = room();
	uint64_t began, first;

	page_open(guest);
	began = now_us(guest);
	copy_await(guest, look);
	first = look->seen_us;
	do {
		doorbell(guest, 0, MUSTER_DOORBELL_CLOCK,
			 (uint32_t)(5000000 - 1000000 + now_us(guest) - began));
		copy_await(guest, look);
	} while (look->seen_us == first);
	assert_true(look->seen_us >= first + 999000);
	free(look);
}

static void what_is_being_written_is_not_copied(void **state)
{
	struct guest *guest = *state;
	struct muster_look *look = room();

	page_open(guest);
	copy_await(guest, look);
	page(guest)->comms[0].seq = 1;
	page(guest)->comms[0].ended = 1;
	copy_await(guest, look);
	assert_int_equal(look->comms[0].ended, 0);
	page(guest)->seq = 1;
	page(guest)->rank = 0;
	copies_pass(guest);
	shown_read(look);
	assert_int_equal(look->rank, 1);
	page(guest)->comms[0].seq = 2;
	page(guest)->seq = 2;
	copy_await(guest, look);
	assert_int_equal(look->comms[0].ended, 1);
	assert_int_equal(look->rank, 0);
	free(look);
}

/* One context of both; the first has its port already. */
static void join(struct guest **guests)
{
	const struct place places[] = { { guests[0], 0, 0 }, { guests[1], 1, 0 } };

	port_open(guests[1], 0);
	for (int i = 0; i < 2; i++)
		command(guests[i], mr_command(guests[i], 1, 0x7000000, 4096, MUSTER_MR_WRITE));
	context_open(places, 2);
}

/* The owner alone knows who fills a slot. */
static void the_owner_is_told_what_the_engine_waits_for(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	struct muster_look_comm *comm = &page(guests[0])->comms[0];
	struct muster_look *look = room();

	(void)state;
	page_open(guests[0]);
	join(guests);
	post_allreduce(guests[0], 1, 1.25);
	while (!comm->device.nr)
		copy_await(guests[0], look);
	assert_int_equal(comm->device.nr, 1);
	assert_int_equal(comm->device.number, 0);
	assert_int_equal(comm->device.waits[0].cause, MUSTER_LOOK_SLOT);
	assert_int_equal(comm->device.waits[0].rank, MUSTER_LOOK_NOBODY);
	assert_int_equal(comm->waits.nr, 0);
	post_allreduce(guests[1], 0, 2.5);
	while (comm->device.nr) {
		copy_await(guests[0], look);
		settle(guests[1]);
	}
	assert_int_equal(look->counters.sequences_posted, 1);
	free(look);
	guest_free(guests[0]);
	guest_free(guests[1]);
}

static void a_full_completion_queue_is_told(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	struct muster_look_comm *comm = &page(guests[0])->comms[0];
	struct muster_look *look = room();

	(void)state;
	page_open(guests[0]);
	join(guests);
	for (uint32_t i = 0; i < CQ; i++) {	/* nobody reads these */
		post(guests[0], 0, i, message(1, 0, 0, "x"));
		doorbell(guests[0], 0, MUSTER_DOORBELL_DQ_TAIL, i + 1);
	}
	settle(guests[0]);
	allreduce_at(guests[0], CQ, 1, 1.25);
	post_allreduce(guests[1], 0, 2.5);
	while (!comm->device.nr || comm->device.waits[0].cause != MUSTER_LOOK_QUEUE) {
		copy_await(guests[0], look);
		settle(guests[1]);
	}
	doorbell(guests[0], 0, MUSTER_DOORBELL_CQ_HEAD, CQ);
	while (comm->device.nr)
		copy_await(guests[0], look);
	assert_int_equal(cqe(guests[0], 0, CQ)->kind, MUSTER_CQE_SEQUENCE);
	free(look);
	guest_free(guests[0]);
	guest_free(guests[1]);
}

static void a_page_goes_with_its_region_its_port_and_its_nic(void **state)
{
	struct guest *guest = *state;

	page_open(guest);
	assert_int_equal(nr_shown(), 1);
	doorbell(guest, 0, MUSTER_DOORBELL_LOOK, 0);
	settle(guest);
	assert_int_equal(nr_shown(), 0);
	page_ring(guest, 0);
	assert_int_equal(nr_shown(), 1);
	command(guest, id_command(MUSTER_ADMIN_MR_DEREGISTER, PAGE_KEY));
	while (nr_shown())
		settle(guest);
	region_give(guest, PAGE_BYTES);
	page_ring(guest, 0);
	assert_int_equal(nr_shown(), 1);
	command(guest, id_command(MUSTER_ADMIN_VP_DESTROY, 0));
	assert_int_equal(nr_shown(), 0);
	assert_int_equal(command(guest, vp_command(0)).status, MUSTER_ADMIN_OK);
	page_ring(guest, 0);
	assert_int_equal(nr_shown(), 1);
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	assert_int_equal(nr_shown(), 0);
}

static void what_a_guest_says_is_not_believed(void **state)
{
	struct guest *guest = *state;
	struct muster_look *look = room();

	port_open(guest, 0);
	port_open(guest, 1);
	page_ring(guest, 0);		/* there is no such region */
	assert_int_equal(nr_shown(), 0);
	region_give(guest, offsetof(struct muster_look, comms) - 1);
	page_ring(guest, 0);
	assert_int_equal(nr_shown(), 0);
	command(guest, id_command(MUSTER_ADMIN_MR_DEREGISTER, PAGE_KEY));
	region_give(guest, PAGE_BYTES);
	page_ring(guest, 0);		/* there is nothing in it */
	copies_pass(guest);
	shown_read(look);
	assert_int_equal(look->magic, 0);
	page_write(guest);
	page(guest)->nr_comms = 0xffffffff;
	page(guest)->comms[0].context = 0xdeadbeef;
	copy_await(guest, look);
	assert_int_equal(look->nr_comms, COMMS);
	assert_int_equal(look->nr_hidden, 0xffffffff - COMMS);
	free(look);
}

/* ---- trace records ---------------------------------------------------------------------- */

/* A region of the whole file; what is at an offset of it does not cross pages. */
static void *whole(struct guest *guest, uint64_t offset)
{
	const uint64_t nr = (sizeof(struct muster_look_file) + 4095) / 4096;

	return guest->memory + DATA + PAGE_KEY * 0x10000 + (nr - 1 - offset / 4096) * 4096 + offset % 4096;
}

static struct muster_trace *ring(struct guest *guest)
{
	return whole(guest, offsetof(struct muster_look_file, trace));
}

static void record_put(struct guest *guest, uint8_t kind, uint64_t time_us)
{
	uint64_t nr = ring(guest)->written;
	struct muster_trace_record record = {
		.time = time_us * 1000, .number = (uint32_t)nr, .kind = kind,
	};

	memcpy(whole(guest, offsetof(struct muster_look_file, trace.records) +
		     nr % MUSTER_TRACE_RECORDS * sizeof(record)), &record, sizeof(record));
	ring(guest)->written++;
}

static void traced_open(struct guest *guest)
{
	port_open(guest, 0);
	region_give(guest, sizeof(struct muster_look_file));
	page_write(guest);
	memcpy(whole(guest, 0), page(guest), PAGE_BYTES);
	ring(guest)->on = 1;
	page_ring(guest, 0);
}

/* What is shown, once it is recorded: as the owner has it, until who records says otherwise. */
static struct muster_look_file *recorded(struct guest *guest)
{
	struct muster_look_file *file;
	char path[300];
	int fd;

	assert_int_equal(shown(path, sizeof(path)), 1);
	fd = open(path, O_RDWR);
	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(file != MAP_FAILED);
	close(fd);
	while (!file->trace.on)
		settle(guest);
	return file;
}

static uint32_t nr_of_kind(const struct muster_trace *trace, uint8_t kind)
{
	uint32_t nr = 0;

	for (uint64_t i = 0; i < trace->written && i < MUSTER_TRACE_RECORDS; i++)
		nr += trace->records[i].kind == kind;
	return nr;
}

static void records_of_owner_and_engine_are_of_one_clock(void **state)
{
	struct guest *guests[2] = { guest_new(0), guest_new(1) };
	struct muster_look_file *file;
	uint64_t before, after;

	(void)state;
	before = muster_clock_us();
	traced_open(guests[0]);
	after = muster_clock_us();
	join(guests);
	file = recorded(guests[0]);
	assert_int_equal(file->trace.clock, MUSTER_TRACE_NS);
	record_put(guests[0], MUSTER_TRACE_CALL, 5000000);
	post_allreduce(guests[0], 1, 1.25);
	post_allreduce(guests[1], 0, 2.5);
	while (!cqe(guests[0], 0, 0)->valid || !file->trace.written ||
	       !nr_of_kind(&file->trace, MUSTER_TRACE_CALL)) {
		settle(guests[0]);
		settle(guests[1]);
	}
	assert_int_equal(nr_of_kind(&file->trace, MUSTER_TRACE_SEND), 1);
	assert_int_equal(nr_of_kind(&file->trace, MUSTER_TRACE_RECEIVE_TAKE) +
			 nr_of_kind(&file->trace, MUSTER_TRACE_RECEIVE), 1);
	assert_int_equal(nr_of_kind(&file->trace, MUSTER_TRACE_RECEIVE_TAKE) +
			 nr_of_kind(&file->trace, MUSTER_TRACE_TAKE), 1);
	for (uint32_t i = 0; i < file->trace.written; i++) {
		const struct muster_trace_record *record = &file->trace.records[i];

		assert_true(record->time / 1000 >= before && record->time / 1000 <= muster_clock_us());
		if (record->kind == MUSTER_TRACE_CALL)
			assert_true(record->time / 1000 <= after);
	}
	munmap(file, sizeof(*file));
	guest_free(guests[0]);
	guest_free(guests[1]);
}

static void who_records_on_the_host_switches_the_owner(void **state)
{
	struct guest *guest = *state;
	struct muster_look_file *file;

	traced_open(guest);
	file = recorded(guest);
	for (uint32_t on = 0; on < 4; on++) {
		file->trace.on = on % 2;
		while (ring(guest)->on != on % 2)
			settle(guest);
	}
	/* By its own clock the owner would end it. */
	ring(guest)->until = 0;
	while (!ring(guest)->until)
		settle(guest);
	/* Who recorded has been killed. */
	file->trace.until = 0;
	while (file->trace.on || ring(guest)->on)
		settle(guest);
	munmap(file, sizeof(*file));
}

/* More than are copied at once, and more than the ring holds. */
static void the_last_records_come_though_the_port_is_gone(void **state)
{
	struct guest *guest = *state;
	struct muster_look_file *file;

	traced_open(guest);
	file = recorded(guest);
	for (int i = 0; i < MUSTER_TRACE_RECORDS + 1000; i++)
		record_put(guest, MUSTER_TRACE_DONE, 5000000);
	command(guest, id_command(MUSTER_ADMIN_VP_DESTROY, 0));
	assert_int_equal(nr_shown(), 0);
	assert_int_equal(file->trace.written, MUSTER_TRACE_RECORDS);
	assert_int_equal(file->trace.records[MUSTER_TRACE_RECORDS - 1].number,
			 MUSTER_TRACE_RECORDS + 999);
	munmap(file, sizeof(*file));
}

/* Whose a record of the engine is would not be known. */
static void of_two_processes_the_engine_records_nothing(void **state)
{
	struct guest *guest = *state;
	struct muster_look_file *file;

	traced_open(guest);
	file = recorded(guest);
	port_open(guest, 1);
	page_ring(guest, 1);
	assert_int_equal(nr_shown(), 2);
	context_open((struct place[]){ { guest, 0, 0 }, { guest, 0, 1 } }, 2);
	post(guest, 0, 0, message(0, 0, 1, "x"));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
	assert_int_equal(file->trace.written, 0);
	doorbell(guest, 1, MUSTER_DOORBELL_LOOK, 0);
	settle(guest);
	post(guest, 0, 1, message(0, 0, 1, "x"));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 2);
	settle(guest);
	assert_true(file->trace.written > 0);
	munmap(file, sizeof(*file));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(a_page_is_shown_in_times_of_the_host),
		WITH_GUEST(of_several_rings_of_the_clock_the_least_late_counts),
		WITH_GUEST(a_clock_that_lost_time_is_followed),
		WITH_GUEST(what_is_being_written_is_not_copied),
		cmocka_unit_test(the_owner_is_told_what_the_engine_waits_for),
		cmocka_unit_test(a_full_completion_queue_is_told),
		WITH_GUEST(a_page_goes_with_its_region_its_port_and_its_nic),
		WITH_GUEST(what_a_guest_says_is_not_believed),
		cmocka_unit_test(records_of_owner_and_engine_are_of_one_clock),
		WITH_GUEST(who_records_on_the_host_switches_the_owner),
		WITH_GUEST(the_last_records_come_though_the_port_is_gone),
		WITH_GUEST(of_two_processes_the_engine_records_nothing),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
