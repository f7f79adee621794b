/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The pin table with a million live pins: memory in all, and the processor time of each call. Run by hand:
 *
 *     ninja -C build tests/bench/pins && build/tests/bench/pins
 *
 * Wanted: at most 256 MiB, private index included, and a look-up under 1 µs.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pins.h"

#define PINS    1000000u
#define CLIENTS 1000u
#define LOOKS   2000000u

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Resident memory of this process, shared pages that it touched included. */
static double resident_mib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long total, resident = 0;

	if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	if (file != NULL)
		fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

static struct client_key client_of(uint32_t number)
{
	struct address address = address_ipv4(10, 0, (uint8_t)(number >> 8), (uint8_t)number);

	return client_key_of_address(&address);
}

static struct address address_of(uint32_t number)
{
	return address_ipv4((uint8_t)(1 + (number >> 24)), (uint8_t)(number >> 16),
			    (uint8_t)(number >> 8), (uint8_t)number);
}

static struct name name_of(uint32_t number)
{
	struct name name;

	name.length = (uint8_t)snprintf(name.text, sizeof(name.text), "host-%u.zone-%u.example.com",
					number, number % 977);
	return name;
}

static uint32_t scatter(uint32_t number)
{
	return (uint32_t)((uint64_t)number * 2654435761u % PINS);
}

static void fill(struct pins_writer *writer, const char *what, uint64_t expiry)
{
	double start = now_ns();

	for (uint32_t i = 0; i < PINS; i++) {
		uint32_t number = scatter(i);
		struct client_key client = client_of(number % CLIENTS);
		struct address address = address_of(number);
		struct name name = name_of(number);
		if (pins_put(writer, &client, &name, &address, expiry + number, 1) != 0)
			exit(EXIT_FAILURE);
	}
	printf("%-34s %7.0f ns\n", what, (now_ns() - start) / PINS);
}

static void look(const struct pins_table *table, const char *what, uint32_t offset, uint32_t spread)
{
	struct pin pins[PINS_PER_ADDRESS_MAX];
	double start = now_ns();
	size_t found = 0;

	for (uint32_t i = 0; i < LOOKS; i++) {
		uint32_t number = scatter(i) % spread;
		struct client_key client = client_of(number % CLIENTS);
		struct address address = address_of(number + offset);
		found += pins_find(table, &client, &address, pins, PINS_PER_ADDRESS_MAX);
	}
	printf("%-34s %7.0f ns   (%zu found)\n", what, (now_ns() - start) / LOOKS, found);
}

int main(void)
{
	const uint8_t seed[16] = {1, 2, 3};
	struct pins_limits limits = {.capacity = PINS, .per_client = PINS};
	struct pins_writer *writer;
	struct pins_table *table;
	struct stat stat;
	int writable, readable;
	double before = resident_mib(), start;

	if (pins_create(&limits, seed, &writable, &readable) != 0 ||
	    pins_writer_open(writable, &writer) != 0 || pins_map(readable, &table) != 0)
		return EXIT_FAILURE;
	printf("%-34s %7.1f MiB\n", "empty, resident", resident_mib() - before);
	fill(writer, "put, new", 1000000);
	fstat(writable, &stat);
	printf("%-34s %7.1f MiB\n", "full, shared", (double)stat.st_blocks * 512 / 1048576);
	printf("%-34s %7.1f MiB\n", "full, in all", resident_mib() - before);
	fill(writer, "put, same second", 1000001);
	fill(writer, "put, a minute later", 1060000);
	look(table, "find, all over the table", 0, PINS);
	look(table, "find, thousand addresses", 0, 1000);
	look(table, "find, not there", 0x20000000, PINS);
	start = now_ns();
	pins_writer_close(writer);
	if (pins_writer_open(writable, &writer) != 0)
		return EXIT_FAILURE;
	printf("%-34s %7.0f ms\n", "open a full table", (now_ns() - start) / 1e6);
	start = now_ns();
	for (uint32_t i = 0; i < PINS / 10; i++) {
		struct client_key client = client_of(i % CLIENTS);
		struct address address = address_of(i + 0x10000000);
		struct name name = name_of(i);
		pins_put(writer, &client, &name, &address, 9000000, 1);
	}
	printf("%-34s %7.0f ns\n", "put, with an eviction", (now_ns() - start) / (PINS / 10));
	return EXIT_SUCCESS;
}
