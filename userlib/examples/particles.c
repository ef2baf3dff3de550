// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Molecular dynamics of a molten salt, with the collectives of its big sisters: all ranks gather
 * everybody's particles, 28 bytes each (three coordinates and a charge), and each rank adds up
 * forces between pairs in its share of the cells, and the charges of its particles on a mesh.
 * Of 8192 particles, forces are a sum of 196,608 bytes, the mesh one of 524,288, and a histogram
 * of distances one of 98,304, the lengths of DL_POLY in the paper on streaming aggregation.
 *
 * usage: particles [STEPS [PARTICLES]] [check]   check: rank 0 computes alone, too, by all pairs
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum {
	MESH_X = 64, MESH_Y = 32, MESH_Z = 32, NEXT_Y = MESH_Z, NEXT_X = MESH_Y * MESH_Z,
	MESH = MESH_X * NEXT_X,
	SWEEPS = 2,			/* of the mesh's potential */
	KINDS = 3, BINS = 4096,		/* of distances: + +, + -, - - */
	ENERGIES = 3,			/* of pairs, on the mesh, of motion */
};
static const double density = 0.5, reach = 2.5, screening = 1.2, time_step = 0.002;
static const int mesh_sides[3] = { MESH_X, MESH_Y, MESH_Z };

struct particle {
	double at[3];
	int32_t charge;
} __attribute__((packed));
_Static_assert(sizeof(struct particle) == 28, "three doubles and an integer");

struct cells {
	int sides;		/* in each direction; 1: there is one, of all */
	uint32_t *begins;
	uint32_t *members;
};

struct world {
	bool alone;
	uint64_t nr, first, end;	/* of all particles; those of this rank */
	double side;
	struct particle *all;
	uint64_t *bytes;		/* of each rank's particles */
	double (*at)[3], (*forces)[3], (*speeds)[3];
	double *mesh, *histogram;
	double energies[ENERGIES];
	struct cells cells;
};

static void *allocate(const struct world *world, size_t bytes)
{
	return world->alone ? ranks_zeroed(bytes) : ranks_alloc(bytes);
}

static void sum(const struct world *world, double *values, uint64_t nr)
{
	if (!world->alone)
		ranks_sum(values, nr, RANKS_F64);
}

/* ---- pairs ----------------------------------------------------------------------- */

static uint32_t cell_of(const struct world *world, const double at[3])
{
	uint32_t cell = 0;

	for (int d = 0; d < 3; d++) {
		int place = (int)(at[d] / world->side * world->cells.sides);

		cell = cell * world->cells.sides + (place < world->cells.sides ? place : 0);
	}
	return cell;
}

static void fill_cells(struct world *world)
{
	struct cells *cells = &world->cells;
	uint32_t nr = cells->sides * cells->sides * cells->sides, at = 0;

	memset(cells->begins, 0, (nr + 1) * sizeof(*cells->begins));
	for (uint64_t i = 0; i < world->nr; i++)
		cells->begins[cell_of(world, world->at[i])]++;
	for (uint32_t cell = 0; cell <= nr; cell++)
		cells->begins[cell] = at += cells->begins[cell];
	for (uint64_t i = world->nr; i-- > 0; )
		cells->members[--cells->begins[cell_of(world, world->at[i])]] = i;
}

/* A core that repels, and a screened charge. */
static void add_pair(struct world *world, uint32_t i, uint32_t j)
{
	double apart[3], square = 0, distance, sixth, core, charge, force;
	int32_t charges = world->all[i].charge + world->all[j].charge;

	for (int d = 0; d < 3; d++) {
		apart[d] = world->at[i][d] - world->at[j][d];
		apart[d] -= world->side * rint(apart[d] / world->side);
		square += apart[d] * apart[d];
	}
	distance = sqrt(square);
	if (distance >= reach)
		return;
	sixth = 1 / (square * square * square);
	core = sixth * sixth / 16;
	charge = (charges ? 1 : -1) * exp(-screening * distance) / distance;
	world->energies[0] += core + charge;
	force = (12 * core + charge * (1 + screening * distance)) / square;
	for (int d = 0; d < 3; d++) {
		world->forces[i][d] += force * apart[d];
		world->forces[j][d] -= force * apart[d];
	}
	world->histogram[(charges + 2) / 2 * BINS + (int)(distance / reach * BINS)]++;
}

/* Each pair of neighbouring cells once: of two the one with the lower number has it. */
static void add_cell(struct world *world, uint32_t cell)
{
	const struct cells *cells = &world->cells;
	int sides = cells->sides, x = cell / (sides * sides), y = cell / sides % sides, z = cell % sides;

	for (int way = 0; way < 27; way++) {
		uint32_t other = ((x + way / 9 - 1 + sides) % sides * sides +
				  (y + way / 3 % 3 - 1 + sides) % sides) * sides +
				 (z + way % 3 - 1 + sides) % sides;

		if (other < cell || (sides == 1 && way))
			continue;
		for (uint32_t i = cells->begins[cell]; i < cells->begins[cell + 1]; i++)
			for (uint32_t j = other == cell ? i + 1 : cells->begins[other];
			     j < cells->begins[other + 1]; j++)
				add_pair(world, cells->members[i], cells->members[j]);
	}
}

static void add_pairs(struct world *world)
{
	uint32_t nr = world->cells.sides * world->cells.sides * world->cells.sides;
	uint64_t end = world->alone ? nr : ranks_share(nr, ranks_rank + 1);

	memset(world->forces, 0, world->nr * sizeof(*world->forces));
	memset(world->histogram, 0, KINDS * BINS * sizeof(double));
	fill_cells(world);
	for (uint64_t cell = world->alone ? 0 : ranks_share(nr, ranks_rank); cell < end; cell++)
		add_cell(world, cell);
	sum(world, world->forces[0], 3 * world->nr);
	sum(world, world->histogram, KINDS * BINS);
}

/* ---- the mesh ---------------------------------------------------------------------- */

/* The point nearest to a place, moved by one in a direction. */
static uint32_t point(const struct world *world, const double at[3], int direction, int by)
{
	uint32_t index = 0;

	for (int d = 0; d < 3; d++) {
		int place = (int)(at[d] / world->side * mesh_sides[d]) + (d == direction ? by : 0);

		index = index * mesh_sides[d] + (place + mesh_sides[d]) % mesh_sides[d];
	}
	return index;
}

/* A few steps towards the potential: each point takes the mean of its neighbours. */
static void smooth(double *potential, const double *charges)
{
	static double before[MESH];

	memcpy(potential, charges, sizeof(before));
	for (int sweep = 0; sweep < SWEEPS; sweep++) {
		memcpy(before, potential, sizeof(before));
		for (uint32_t i = 0; i < MESH; i++)
			potential[i] = charges[i] + (before[(i + 1) % MESH] + before[(i - 1) % MESH] +
				       before[(i + NEXT_Y) % MESH] + before[(i - NEXT_Y) % MESH] +
				       before[(i + NEXT_X) % MESH] + before[(i - NEXT_X) % MESH]) / 7;
	}
}

static void add_mesh(struct world *world)
{
	static double potential[MESH];

	memset(world->mesh, 0, MESH * sizeof(double));
	for (uint64_t i = world->first; i < world->end; i++)
		world->mesh[point(world, world->at[i], 0, 0)] += world->all[i].charge;
	sum(world, world->mesh, MESH);
	smooth(potential, world->mesh);
	for (uint64_t i = world->first; i < world->end; i++) {
		double charge = world->all[i].charge * 0.01;

		world->energies[1] += charge / 2 * potential[point(world, world->at[i], 0, 0)];
		for (int d = 0; d < 3; d++)
			world->forces[i][d] -= charge * mesh_sides[d] / world->side / 2 *
				(potential[point(world, world->at[i], d, 1)] -
				 potential[point(world, world->at[i], d, -1)]);
	}
}

/* ---- steps ------------------------------------------------------------------------ */

static void step(struct world *world)
{
	memset(world->energies, 0, sizeof(world->energies));
	if (!world->alone)
		ranks_gather(world->all, world->bytes, RANKS_BYTE);
	for (uint64_t i = 0; i < world->nr; i++)
		memcpy(world->at[i], world->all[i].at, sizeof(world->at[i]));
	add_pairs(world);
	add_mesh(world);
	for (uint64_t i = world->first; i < world->end; i++)
		for (int d = 0; d < 3; d++) {
			world->speeds[i][d] += time_step * world->forces[i][d];
			world->energies[2] += world->speeds[i][d] * world->speeds[i][d] / 2;
			world->all[i].at[d] = fmod(world->all[i].at[d] + time_step * world->speeds[i][d] +
						   world->side, world->side);
		}
	sum(world, world->energies, ENERGIES);
}

/* Rock salt, shaken a little: so many places in each direction that all have one. */
static void place_particles(struct world *world)
{
	uint64_t sides = 1;

	while (sides * sides * sides < world->nr)
		sides++;
	for (uint64_t i = 0; i < world->nr; i++) {
		uint64_t place[3] = { i / sides / sides, i / sides % sides, i % sides };

		for (int d = 0; d < 3; d++)
			world->all[i].at[d] = world->side / (double)sides * ((double)place[d] + 0.4 +
					      0.2 * (double)ranks_random(3 * i + d) / 0x1p64);
		world->all[i].charge = (place[0] + place[1] + place[2]) % 2 ? 1 : -1;
	}
}

/* Alone there is one cell: of all particles each pair is looked at. */
static void open_world(struct world *world, uint64_t nr, bool alone)
{
	*world = (struct world){ .alone = alone, .nr = nr };
	world->side = cbrt((double)nr / density);
	world->cells.sides = alone || world->side < 3 * reach ? 1 : (int)(world->side / reach);
	world->first = alone ? 0 : ranks_share(nr, ranks_rank);
	world->end = alone ? nr : ranks_share(nr, ranks_rank + 1);
	world->all = allocate(world, nr * sizeof(*world->all));
	world->bytes = allocate(world, ranks_size * sizeof(*world->bytes));
	for (uint32_t i = 0; i < ranks_size; i++)
		world->bytes[i] = ranks_part(nr, i) * sizeof(*world->all);
	world->at = allocate(world, nr * sizeof(*world->at));
	world->forces = allocate(world, nr * sizeof(*world->forces));
	world->speeds = allocate(world, nr * sizeof(*world->speeds));
	world->mesh = allocate(world, MESH * sizeof(double));
	world->histogram = allocate(world, KINDS * BINS * sizeof(double));
	world->cells.begins = allocate(world, (nr + 28) * sizeof(uint32_t));
	world->cells.members = allocate(world, nr * sizeof(uint32_t));
	place_particles(world);
}

static void check(const struct world *world, uint64_t steps)
{
	static struct world alone;
	double most = 0;

	open_world(&alone, world->nr, true);
	for (uint64_t i = 0; i < steps; i++)
		step(&alone);
	for (int i = 0; i < ENERGIES; i++)
		most = fmax(most, fabs(alone.energies[i] / world->energies[i] - 1));
	printf("energies apart from those of all pairs by one rank by %.1e\n", most);
	if (!(most < 1e-9) || memcmp(alone.histogram, world->histogram, KINDS * BINS * sizeof(double)))
		ranks_die("energies or distances are wrong");
}

int main(int argc, char **argv)
{
	bool checks = argc > 1 && !strcmp(argv[argc - 1], "check");
	static struct world world;
	uint64_t steps, nr;
	char what[64];

	argc -= checks;
	steps = argc > 1 ? ranks_number(argv[1], 1, 1000000, "STEPS") : 100;
	nr = argc > 2 ? ranks_number(argv[2], 8, 1 << 24, "PARTICLES") : 8192;
	ranks_begin();
	open_world(&world, nr, false);
	ranks_go();
	for (uint64_t i = 0; i < steps; i++)
		step(&world);
	ranks_stop();
	snprintf(what, sizeof(what), "particles: %" PRIu64 ", %" PRIu64 " steps", nr, steps);
	ranks_report(what, world.energies, sizeof(world.energies));
	if (checks && !ranks_rank)
		check(&world, steps);
	ranks_end();
	return 0;
}
