/* Switch command: commands to a running switch with a topology, by datagrams to PATH.ctl next to its memif socket PATH:
 *
 *    link NAME down | up | KEY=VALUE[,KEY=VALUE...]
 *
 * NAME is a link, or a host for its own link; KEY is rate, delay, queue or loss. It is for both directions.
 *
 * The answer is "ok", or a line with the error. `causeway switch --memif PATH --command "link sea down"` sends one. A
 * frame in flight when a link goes down, or is made slower, still arrives as it would have. The pool does not grow: a
 * delay or rate that needs more room than there was at the start has frames dropped for it, counted as such.
 *
 * Order of calls: switch_command_open, { switch_command_poll }*, switch_command_close. One thread. */
#pragma once

#include "apps/switch/fabric.h"

/* Listens. APP_EXIT_SUCCESS, or an exit code after reporting the error. */
int switch_command_open(const char *memif_path, struct switch_command **command);

/* Carries out what has come; never blocks. */
void switch_command_poll(struct switch_command *command, struct switch_fabric *fabric);

/* Stops listening and removes the socket. NULL is allowed. */
void switch_command_close(struct switch_command *command);

/* The other side: sends a command to the switch at `memif_path`, prints errors. One of enum app_exit. */
int switch_command_send(const char *memif_path, const char *text);
