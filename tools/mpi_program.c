// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an MPI program needs (mpi_program.h). The dynamic linker itself is asked for the libraries
 * that it would load; symbols are read from the files.
 */
#include "mpi_program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct mpi_kind kinds[] = {
	{ "openmpi", "Open MPI 4.1", { "libmpi.so.40" }, "OMPI_COMM_WORLD_SIZE" },
	{ "mpich", "MPICH 4.0", { "libmpich.so.12", "libmpi.so.12" }, "PMI_RANK" },
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

const struct mpi_kind *mpi_kind_of_launcher(void)
{
	for (int i = 0; i < KINDS; i++)
		if (getenv(kinds[i].launcher))
			return &kinds[i];
	return NULL;
}

const struct mpi_kind *mpi_kind_named(const char *name)
{
	for (int i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

/* ---- finding ---------------------------------------------------------------------------------- */

static int is_program(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno;
	return S_ISREG(st.st_mode) && !access(path, X_OK) ? 0 : EACCES;
}

int mpi_program_find(const char *name, struct mpi_program *program)
{
	const char *dirs = getenv("PATH") ?: "/usr/bin:/bin";

	*program = (struct mpi_program){ 0 };
	if (strchr(name, '/')) {
		snprintf(program->path, sizeof(program->path), "%s", name);
		return is_program(program->path);
	}
	while (*dirs) {
		size_t len = strcspn(dirs, ":");

		snprintf(program->path, sizeof(program->path), "%.*s/%s", (int)len, dirs, name);
		if (!is_program(program->path))
			return 0;
		dirs += len + (dirs[len] == ':');
	}
	return ENOENT;
}

/* ---- files ------------------------------------------------------------------------------------- */

struct file {
	const char *data;
	size_t bytes;
};

static int file_open(const char *path, struct file *file)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return errno;
	if (fstat(fd, &st) || !st.st_size) {
		err = ENOEXEC;
	} else {
		file->bytes = (size_t)st.st_size;
		file->data = mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file->data == MAP_FAILED)
			err = errno;
	}
	close(fd);
	return err;
}

/* A table of the file, if all of it lies within. */
static const void *part(const struct file *file, uint64_t at, uint64_t nr, size_t size)
{
	if (at > file->bytes || nr > (file->bytes - at) / size)
		return NULL;
	return file->data + at;
}

static const Elf64_Ehdr *elf(const struct file *file)
{
	const Elf64_Ehdr *header = part(file, 0, 1, sizeof(*header));

	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_ident[EI_CLASS] != ELFCLASS64)
		return NULL;
	return header;
}

/* ---- collectives ---------------------------------------------------------------------------------- */

static const char *const collectives[] = {
	"Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Gatherv", "Scatter", "Scatterv",
	"Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw", "Reduce_scatter",
	"Reduce_scatter_block", "Scan", "Exscan", "Neighbor_allgather", "Neighbor_allgatherv",
	"Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw",
};

/* Behind a collective's name: nothing, what makes it persistent, large counts, or Fortran's. */
static const char *ending_of(const char *rest)
{
	static const char *const known[] = { "", "_init", "_c", "_init_c", "_", "_init_",
		"__", "_f08", "_f08_", "_init_f08_" };
	static const char *const means[] = { "", "_init", "_c", "_init_c", "", "_init",
		"", "", "", "_init" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcasecmp(rest, known[i]))
			return means[i];
	return NULL;
}

/* MPI_Iallreduce of MPI_Iallreduce, mpi_iallreduce_ and so on. */
static bool collective_name(const char *symbol, char *name)
{
	bool extension = !strncasecmp(symbol, "MPIX_", 5);
	const char *word = symbol + (extension ? 5 : 4), *ending;

	if (!extension && strncasecmp(symbol, "MPI_", 4))
		return false;
	for (int started = 0; started < 2; started++)
		for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++) {
			const char *base = collectives[i];
			size_t len = strlen(base);

			if ((started && *word != 'I' && *word != 'i') ||
			    strncasecmp(word + started, base, len))
				continue;
			ending = ending_of(word + started + len);
			if (!ending)
				continue;
			snprintf(name, MPI_PROGRAM_NAME, "MPI%s_%s%c%s%s", extension ? "X" : "",
				 started ? "I" : "", base[0] + (started ? 'a' - 'A' : 0), base + 1,
				 ending);
			return true;
		}
	return false;
}

bool mpi_calls_have(const struct mpi_calls *calls, const char *name)
{
	for (int i = 0; i < calls->nr; i++)
		if (!strcmp(calls->names[i], name))
			return true;
	return false;
}

static void take_symbol(const char *symbol, struct mpi_calls *calls)
{
	char name[MPI_PROGRAM_NAME];

	if (collective_name(symbol, name) && !mpi_calls_have(calls, name) &&
	    calls->nr < MPI_PROGRAM_CALLS)
		strcpy(calls->names[calls->nr++], name);
}

static void take_symbols(const struct file *file, const Elf64_Shdr *table,
			 const Elf64_Shdr *strings, bool defined, struct mpi_calls *calls)
{
	const Elf64_Sym *symbols = part(file, table->sh_offset, table->sh_size, 1);
	const char *names = part(file, strings->sh_offset, strings->sh_size, 1);
	size_t nr = table->sh_size / sizeof(*symbols);

	if (!symbols || !names || !strings->sh_size || names[strings->sh_size - 1])
		return;
	for (size_t i = 0; i < nr; i++)
		if ((symbols[i].st_shndx != SHN_UNDEF) == defined &&
		    symbols[i].st_name < strings->sh_size)
			take_symbol(names + symbols[i].st_name, calls);
}

int mpi_calls_read(const char *path, bool defined, struct mpi_calls *calls)
{
	struct file file;
	int err = file_open(path, &file);
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;

	if (err)
		return err;
	header = elf(&file);
	sections = header ? part(&file, header->e_shoff, header->e_shnum, sizeof(*sections)) : NULL;
	for (int i = 0; sections && i < header->e_shnum; i++)
		if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < header->e_shnum)
			take_symbols(&file, &sections[i], &sections[sections[i].sh_link], defined,
				     calls);
	munmap((void *)file.data, file.bytes);
	return 0;
}

/* ---- needs ------------------------------------------------------------------------------------------ */

static bool is_mpi(const char *soname)
{
	return !strncmp(soname, "libmpi.so.", 10) || !strncmp(soname, "libmpich.so.", 12) ||
	       !strncmp(soname, "libmpi_abi.so.", 14);
}

/* Fortran's and C++'s parts of MPI call what programs do not. */
static bool is_of_mpi(const char *soname)
{
	return !strncmp(soname, "libmpi", 6);
}

static void take_need(struct mpi_program *program, const char *soname, const char *path)
{
	if (!is_of_mpi(soname))
		mpi_calls_read(path, false, &program->calls);
	if (!is_mpi(soname))
		return;
	for (int i = 0; i < KINDS; i++)
		for (const char *const *need = kinds[i].needs; *need; need++)
			if (!strcmp(soname, *need)) {
				program->kind = &kinds[i];
				snprintf(program->soname, sizeof(program->soname), "%s", soname);
				return;
			}
	snprintf(program->other, sizeof(program->other), "%s", soname);
}

static pid_t list_start(const char *linker, const char *path, FILE **list)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		execl(linker, linker, "--list", path, NULL);
		_exit(127);
	}
	close(ends[1]);
	*list = fdopen(ends[0], "r");
	return pid;
}

/* Lines are "libx.so.1 => /where/libx.so.1 (0x...)". */
static int take_needs(struct mpi_program *program, const char *linker)
{
	char line[MPI_PROGRAM_LINE], soname[MPI_PROGRAM_LINE], path[MPI_PROGRAM_LINE];
	FILE *list = NULL;
	pid_t pid = list_start(linker, program->path, &list);

	if (pid < 0 || !list)
		return errno;
	while (fgets(line, sizeof(line), list))
		if (sscanf(line, " %1023s => %1023s", soname, path) == 2)
			take_need(program, soname, path);
	fclose(list);
	waitpid(pid, NULL, 0);
	return 0;
}

static int look_at_elf(struct mpi_program *program, const struct file *file,
		       const Elf64_Ehdr *header)
{
	const Elf64_Phdr *segments = part(file, header->e_phoff, header->e_phnum, sizeof(*segments));

	for (int i = 0; segments && i < header->e_phnum; i++) {
		const char *linker = part(file, segments[i].p_offset, segments[i].p_filesz, 1);

		if (segments[i].p_type != PT_INTERP)
			continue;
		if (!linker || !segments[i].p_filesz || linker[segments[i].p_filesz - 1])
			return ENOEXEC;
		mpi_calls_read(program->path, false, &program->calls);
		return take_needs(program, linker);
	}
	program->is_static = true;
	return 0;
}

int mpi_program_look(struct mpi_program *program)
{
	const Elf64_Ehdr *header;
	struct file file;
	int err = file_open(program->path, &file);

	if (err)
		return err;
	header = elf(&file);
	if (header)
		err = look_at_elf(program, &file, header);
	else if (file.bytes > 2 && !memcmp(file.data, "#!", 2))
		program->is_script = true;
	else
		err = ENOEXEC;
	munmap((void *)file.data, file.bytes);
	return err;
}
