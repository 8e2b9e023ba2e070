/* Calls of any port that are more than its driver's. */
#include "dataplane/port/port.h"

#include <unistd.h>

bool cw_port_link_await(struct cw_port *port, uint32_t timeout_ms)
{
    for (uint32_t waited_ms = 0; !cw_port_link_up(port); waited_ms++) {
        if (waited_ms == timeout_ms) {
            return false;
        }
        usleep(1000);
    }
    return true;
}
