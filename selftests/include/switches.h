/* SPDX-License-Identifier: GPL-2.0-only */
/* How often threads of the library have slept.  rt.h is included before. */
#ifndef SELFTESTS_SWITCHES_H
#define SELFTESTS_SWITCHES_H

/* Of the thread that begins with @name, or -1; and whether it sleeps. */
static inline long nr_switches_of(const char *name, bool *is_asleep)
{
	char file[300], line[100], state = 0;
	struct dirent *e;
	long nr = -1;
	DIR *dir;
	FILE *f;

	dir = opendir("/proc/self/task");
	ASSERT_NE(NULL, dir);
	while (nr < 0 && (e = readdir(dir))) {
		bool is_it = false;

		snprintf(file, sizeof(file), "/proc/self/task/%s/status",
			 e->d_name);
		f = fopen(file, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (!strncmp(line, "Name:\t", 6))
				is_it = !strncmp(line + 6, name, strlen(name));
			if (!is_it)
				continue;
			sscanf(line, "State: %c", &state);
			sscanf(line, "voluntary_ctxt_switches: %ld", &nr);
		}
		if (f)
			fclose(f);
	}
	closedir(dir);
	*is_asleep = state == 'S';
	return nr;
}

#endif /* SELFTESTS_SWITCHES_H */
