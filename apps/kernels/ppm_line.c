#include "apps/kernels/ppm_line.h"

#include <math.h>
#include <stdbool.h>

/* ---- parabolas ---- */

static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Where gas is compressed within two cells parabolas would overshoot: they become flat. */
static void line_flatten(struct ppm_line *line)
{
    const double *p = line->primitive[PPM_PRESSURE];
    const double *u = line->primitive[PPM_ALONG];
    for (int i = 2; i < line->cells - 2; i++) {
        double jump = p[i + 1] - p[i - 1];
        double wide = p[i + 2] - p[i - 2];
        double steepness = fabs(wide) > 1e-12 * p[i] ? jump / wide : 0;
        bool is_shock = fabs(jump) > 0.33 * smaller(p[i + 1], p[i - 1]) && u[i - 1] > u[i + 1];
        line->shock[i] = is_shock ? smaller(1, larger(0, 10 * (steepness - 0.75))) : 0;
    }
    for (int i = 3; i < line->cells - 3; i++) {
        int upstream = p[i + 1] > p[i - 1] ? i - 1 : i + 1;
        line->flat[i] = 1 - larger(line->shock[i], line->shock[upstream]);
    }
}

/* Parabolas that have the cells' averages and stay between their neighbours'. */
static void line_interpolate(struct ppm_line *line, const double *a, double *low, double *high)
{
    for (int i = 1; i < line->cells - 1; i++) {
        double before = a[i] - a[i - 1];
        double after = a[i + 1] - a[i];
        double middle = 0.5 * (before + after);
        double limit = 2 * smaller(fabs(before), fabs(after));
        line->slope[i] = before * after > 0 ? copysign(smaller(fabs(middle), limit), middle) : 0;
    }
    for (int i = 2; i < line->cells - 2; i++) {
        low[i] = a[i - 1] + 0.5 * (a[i] - a[i - 1]) - (line->slope[i] - line->slope[i - 1]) / 6;
        high[i - 1] = low[i];
    }
    for (int i = 3; i < line->cells - 3; i++) {
        double left = a[i] + line->flat[i] * (low[i] - a[i]);
        double right = a[i] + line->flat[i] * (high[i] - a[i]);
        double difference = right - left;
        double six = 6 * (a[i] - 0.5 * (left + right));
        bool is_extreme = (right - a[i]) * (a[i] - left) <= 0;
        bool is_low_over = difference * six > difference * difference;
        bool is_high_over = -(difference * difference) > difference * six;
        low[i] = is_extreme ? a[i] : is_low_over ? 3 * a[i] - 2 * right : left;
        high[i] = is_extreme ? a[i] : is_high_over ? 3 * a[i] - 2 * left : right;
    }
}

enum ppm_end { PPM_LOW, PPM_HIGH };

/* The average of variable `v` over what a wave of `speed` towards an end of cell i brings to it. */
static inline double trace(const struct ppm_line *line, int v, int i, enum ppm_end end, double speed)
{
    double part = larger(speed, 0) * line->ratio;
    double low = line->low[v][i];
    double high = line->high[v][i];
    double curved = (1 - part * (2.0 / 3)) * 6 * (line->primitive[v][i] - 0.5 * (low + high));
    return end == PPM_HIGH ? high - 0.5 * part * (high - low - curved) : low + 0.5 * part * (high - low + curved);
}

/* The state at an end of cell i in the middle of the time step: of the fastest wave, less what slower ones that go
 * there too have not brought, and the others have not at all. */
static inline struct ppm_state end_trace(const struct ppm_line *line, int i, enum ppm_end end)
{
    double sign = end == PPM_HIGH ? 1 : -1;
    double density = line->primitive[PPM_DENSITY][i];
    double speed = sign * line->primitive[PPM_ALONG][i];
    double sound = sqrt(PPM_GAMMA * line->primitive[PPM_PRESSURE][i] / density);
    struct ppm_state state;
    state.value[PPM_DENSITY] = trace(line, PPM_DENSITY, i, end, speed + sound);
    state.value[PPM_ALONG] = trace(line, PPM_ALONG, i, end, speed + sound);
    state.value[PPM_PRESSURE] = trace(line, PPM_PRESSURE, i, end, speed + sound);
    state.value[PPM_ACROSS] = trace(line, PPM_ACROSS, i, end, speed);
    state.value[PPM_ACROSS_TOO] = trace(line, PPM_ACROSS_TOO, i, end, speed);

    double du = state.value[PPM_ALONG] - trace(line, PPM_ALONG, i, end, speed - sound);
    double dp = state.value[PPM_PRESSURE] - trace(line, PPM_PRESSURE, i, end, speed - sound);
    double slow = speed > sound ? 0.5 * (dp / (density * sound) - sign * du) * density / sound : 0;
    double d0 = state.value[PPM_DENSITY] - trace(line, PPM_DENSITY, i, end, speed);
    double p0 = state.value[PPM_PRESSURE] - trace(line, PPM_PRESSURE, i, end, speed);
    double contact = speed > 0 ? d0 - p0 / (sound * sound) : 0;
    state.value[PPM_DENSITY] -= slow + contact;
    state.value[PPM_ALONG] += sign * slow * sound / density;
    state.value[PPM_PRESSURE] -= slow * sound * sound;
    if (state.value[PPM_DENSITY] > 0 && state.value[PPM_PRESSURE] > 0)
        return state;
    for (int v = 0; v < PPM_VARIABLES; v++)
        state.value[v] = line->primitive[v][i];
    return state;
}

/* ---- fluxes ---- */

double ppm_energy(const struct ppm_state *s)
{
    double squares = s->value[PPM_ALONG] * s->value[PPM_ALONG] + s->value[PPM_ACROSS] * s->value[PPM_ACROSS] +
                     s->value[PPM_ACROSS_TOO] * s->value[PPM_ACROSS_TOO];
    return s->value[PPM_PRESSURE] / (PPM_GAMMA - 1) + 0.5 * s->value[PPM_DENSITY] * squares;
}

/* The flux of gas of a density and an energy with velocity `speed` along the axis; `s` has the other velocities. */
static inline struct ppm_state flux_of(const struct ppm_state *s, double density, double speed, double pressure,
                                       double energy_density)
{
    double mass = density * speed;
    return (struct ppm_state){{mass, mass * speed + pressure, mass * s->value[PPM_ACROSS],
                               mass * s->value[PPM_ACROSS_TOO], speed * (energy_density + pressure)}};
}

/* The flux on one side of the contact; `wave` is the speed of the fastest wave there, `contact` that of the contact. */
static inline struct ppm_state flux_beside(const struct ppm_state *s, double wave, double contact, bool is_inside)
{
    double density = s->value[PPM_DENSITY];
    double speed = s->value[PPM_ALONG];
    double pressure = s->value[PPM_PRESSURE];
    if (!is_inside)
        return flux_of(s, density, speed, pressure, ppm_energy(s));
    double inflow = density * (wave - speed);
    double middle = pressure + inflow * (contact - speed);
    double energy_middle = ((wave - speed) * ppm_energy(s) - pressure * speed + middle * contact) / (wave - contact);
    return flux_of(s, inflow / (wave - contact), contact, middle, energy_middle);
}

static inline struct ppm_state flux_between(const struct ppm_state *left, const struct ppm_state *right)
{
    double left_speed = left->value[PPM_ALONG];
    double right_speed = right->value[PPM_ALONG];
    double left_sound = sqrt(PPM_GAMMA * left->value[PPM_PRESSURE] / left->value[PPM_DENSITY]);
    double right_sound = sqrt(PPM_GAMMA * right->value[PPM_PRESSURE] / right->value[PPM_DENSITY]);
    double left_wave = smaller(left_speed - left_sound, right_speed - right_sound);
    double right_wave = larger(left_speed + left_sound, right_speed + right_sound);
    double left_inflow = left->value[PPM_DENSITY] * (left_wave - left_speed);
    double right_inflow = right->value[PPM_DENSITY] * (right_wave - right_speed);
    double contact = (right->value[PPM_PRESSURE] - left->value[PPM_PRESSURE] + left_inflow * left_speed -
                      right_inflow * right_speed) /
                     (left_inflow - right_inflow);
    return contact >= 0 ? flux_beside(left, left_wave, contact, left_wave < 0)
                        : flux_beside(right, right_wave, contact, right_wave > 0);
}

void ppm_line_flux(struct ppm_line *line)
{
    line_flatten(line);
    for (int v = 0; v < PPM_VARIABLES; v++)
        line_interpolate(line, line->primitive[v], line->low[v], line->high[v]);
    for (int i = PPM_DEPTH - 1; i <= line->cells - PPM_DEPTH; i++) {
        line->before[i] = end_trace(line, i, PPM_HIGH);
        line->after[i] = end_trace(line, i, PPM_LOW);
    }
    for (int i = PPM_DEPTH; i <= line->cells - PPM_DEPTH; i++)
        line->flux[i] = flux_between(&line->before[i - 1], &line->after[i]);
}
