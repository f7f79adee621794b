/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rules/source.h"

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		ssize_t written = write(fd, bytes, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		size -= (size_t)written;
	}
	return 0;
}

int image_seal(const char *name, const void *bytes, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	int error = write_all(fd, bytes, size);
	if (error == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		error = -errno;
	if (error != 0) {
		close(fd);
		return error;
	}
	return fd;
}

static int seal_policy(const struct config *config, const struct client_source *clients,
		       size_t client_count, struct image *out)
{
	struct config_source source = config->source;
	void *bytes = NULL;

	source.clients = clients;
	source.client_count = client_count;
	source.generation = out->generation;
	int error = policy_image_build(&source, &bytes, &out->size);
	if (error != 0)
		return error;
	out->policy = image_seal("pinfold-policy", bytes, out->size);
	free(bytes);
	if (out->policy < 0)
		return out->policy;

	void *mapping = mmap(NULL, out->size, PROT_READ, MAP_SHARED, out->policy, 0);
	if (mapping == MAP_FAILED)
		return -errno;
	out->mapping = mapping;
	return policy_image_open(mapping, out->size, &out->opened);
}

static int seal_settings(const struct config *config, struct image *out, char *problem, size_t size)
{
	struct settings *settings = malloc(sizeof(*settings));

	if (settings == NULL)
		return -ENOMEM;
	memcpy(settings, &config->settings, sizeof(*settings));
	settings->version = SETTINGS_VERSION;
	settings->size = sizeof(*settings);
	settings->generation = out->generation;
	int error = settings_read_files(&settings->resolver, problem, size);
	if (error == 0) {
		out->settings = image_seal("pinfold-settings", settings, sizeof(*settings));
		error = out->settings < 0 ? out->settings : 0;
	}
	free(settings);
	return error;
}

int image_build(const struct config *config, const struct client_source *clients,
		size_t client_count, uint64_t generation, struct image *out, char *problem,
		size_t size)
{
	struct image image = IMAGE_EMPTY;
	char why[512] = "";

	image.generation = generation;
	int error = seal_policy(config, clients, client_count, &image);
	if (error == 0)
		error = seal_settings(config, &image, why, sizeof(why));
	if (error != 0) {
		if (why[0] == '\0')
			snprintf(why, sizeof(why), "cannot make the policy image: %s",
				 strerror(-error));
		snprintf(problem, size, "%s", why);
		image_release(&image);
		return error;
	}
	*out = image;
	return 0;
}

void image_release(struct image *image)
{
	if (image->mapping != NULL)
		munmap(image->mapping, image->size);
	if (image->policy >= 0)
		close(image->policy);
	if (image->settings >= 0)
		close(image->settings);
	*image = IMAGE_EMPTY;
}
