/* Switch wan: where frames go between lines and bridges: across one cluster, or along a route to another one.
 *
 * Between clusters bridges act as mesh ports do: frames from one cluster go to hosts only, never on to a third (split
 * horizon), so broadcast, multicast and unknown addresses reach each cluster once. All multicast goes to all clusters:
 * the members there are unknown here.
 *
 * Order of calls: switch_wan_open, { switch_wan_enter | switch_wan_release }*, switch_wan_close. One thread. */
#pragma once

#include "apps/switch/fabric.h"

/* Makes clusters, bridges, lines and pool of fabric->config, and assigns each port its lines. APP_EXIT_SUCCESS, or an
 * exit code after reporting the error; switch_wan_close is due in both cases. */
int switch_wan_open(struct switch_fabric *fabric);
void switch_wan_close(struct switch_fabric *fabric);

/* A frame has come in by a port at fabric->now_ns; `data` stays the caller's. */
void switch_wan_enter(struct switch_fabric *fabric, uint32_t port, const uint8_t *data, uint32_t length);

/* Lets frames arrive that are due at fabric->now_ns, a bounded number of them. Returns how many. */
uint32_t switch_wan_release(struct switch_fabric *fabric);

/* The lines of a link or host, by its name ("port3" without a topology): both directions, or one and NULL. CW_OK, or
 * CW_ERROR_NOT_FOUND with a line in `error` that says which there are. */
int switch_wan_find(const struct switch_fabric *fabric, const char *name, struct switch_line *lines[2], char *error,
                    size_t error_bytes);
