/* SPDX-License-Identifier: GPL-2.0-or-later */

/* One URL: no crash, and nothing in the result that the header does not allow. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = malloc(size + 1);
	struct url url;

	if (text == NULL)
		abort();
	if (size > 0)
		memcpy(text, bytes, size);
	text[size] = '\0';
	if (url_parse(text, &url) == 0) {
		if (url.scheme != URL_OTHER && !url.malformed &&
		    (url.port == 0 || url.target == NULL || url.target[0] != '/' ||
		     (url.host.kind != HOST_NAME && url.host.kind != HOST_LITERAL)))
			abort();
		if (url.target != NULL &&
		    (strlen(url.target) != url.target_length || strchr(url.target, '#') != NULL))
			abort();
		url_deinit(&url);
	}
	free(text);
	return 0;
}
