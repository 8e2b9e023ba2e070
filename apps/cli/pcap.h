/* pcap: a file of Ethernet frames that tcpdump, Wireshark and tshark read (pcap-savefile(5), nanoseconds, the byte
 * order of this machine).
 *
 * Order of calls: app_pcap_open, { app_pcap_write }*, app_pcap_close. One thread. The file is complete when it is
 * closed; up to a megabyte is in memory before. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct app_pcap;

/* Begins a file. NULL with errno: it cannot be written, or there is no memory. */
struct app_pcap *app_pcap_open(const char *path);
/* Adds a frame. `time_ns`: since 1970, or virtual. app_pcap_close reports its errors. */
void app_pcap_write(struct app_pcap *pcap, uint64_t time_ns, const uint8_t *frame, uint32_t length);
/* Writes the rest. False: not all could be written. NULL is allowed, and true. */
bool app_pcap_close(struct app_pcap *pcap);
