/* A line of gas in one dimension: fluxes through its faces by the piecewise parabolic method. Parabolas, their limits
 * and their traces along the characteristics are those of Colella and Woodward, The Piecewise Parabolic Method for
 * Gas-Dynamical Simulations (1984); fluxes are those of the HLLC solver (Toro, Spruce and Speares, 1994).
 *
 * Invariant
 *  - Gas at rest under one pressure stays unchanged, bit for bit, at any density.
 *
 * Order of calls
 *    cells, ratio and primitive are set; ppm_line_flux fills the rest. */
#pragma once

/* Conserved: density, momentum along x, y and z, energy. Primitive, along the axis of a sweep: density, velocity along
 * the axis, the two others, pressure. */
enum ppm_variable { PPM_DENSITY, PPM_ALONG, PPM_ACROSS, PPM_ACROSS_TOO, PPM_PRESSURE, PPM_VARIABLES };

enum {
    PPM_ENERGY = PPM_VARIABLES - 1,
    PPM_DEPTH = 4,      /* cells before and behind the updated ones: the reach of a flux */
    PPM_LINE_MAX = 264, /* cells of a line with them */
};

#define PPM_GAMMA 1.4 /* ratio of specific heats */

/* Values in a place. */
struct ppm_state {
    double value[PPM_VARIABLES];
};

/* A line of cells with both halos. Cell i's parabola goes from low[i] to high[i]; its traces are the states that its
 * gas brings to the faces: `before` the face with cell i + 1, `after` the face with cell i - 1. */
struct ppm_line {
    int cells;
    double ratio; /* time step / cell's length */
    double primitive[PPM_VARIABLES][PPM_LINE_MAX];
    double slope[PPM_LINE_MAX];
    double shock[PPM_LINE_MAX];
    double flat[PPM_LINE_MAX]; /* remaining share of the parabolas near shocks: 0 to 1 */
    double low[PPM_VARIABLES][PPM_LINE_MAX];
    double high[PPM_VARIABLES][PPM_LINE_MAX];
    struct ppm_state before[PPM_LINE_MAX];
    struct ppm_state after[PPM_LINE_MAX];
    struct ppm_state flux[PPM_LINE_MAX]; /* through the face with cell i - 1 */
};

/* The fluxes through the faces of all cells but the PPM_DEPTH first and last ones. */
void ppm_line_flux(struct ppm_line *line);

/* Kinetic and internal energy per volume. */
double ppm_energy(const struct ppm_state *state);
