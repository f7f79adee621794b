/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * One configuration: it loads or there is an error, what loads makes a policy image that opens, and
 * what is printed of it loads and prints the same.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char *print(const struct config *config, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (out == NULL)
		abort();
	config_print(config, out);
	fclose(out);
	return text;
}

static struct config *read_text(const char *text, size_t size)
{
	struct config_findings findings;
	struct config *config = config_read_text("f", text, size, &findings);

	if ((config == NULL) != (findings.errors > 0) || findings.count > 101)
		abort();
	config_findings_free(&findings);
	return config;
}

static void check_image(const struct config *config)
{
	const struct policy_image *opened;
	void *image;
	size_t size;

	if (policy_image_build(&config->source, &image, &size) != 0 ||
	    policy_image_open(image, size, &opened) != 0)
		abort();
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct config *first = read_text((const char *)bytes, size), *second;
	size_t first_size, second_size;

	if (first == NULL)
		return 0;
	check_image(first);
	char *first_text = print(first, &first_size);
	second = read_text(first_text, first_size);
	if (second == NULL)
		abort();
	char *second_text = print(second, &second_size);
	if (first_size != second_size || memcmp(first_text, second_text, first_size) != 0)
		abort();
	free(first_text);
	free(second_text);
	config_free(first);
	config_free(second);
	return 0;
}
