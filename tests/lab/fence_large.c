/* Puts 60 values of 1,000 bytes into the launcher's table, in PMI-1 as MPICH's client may, and gets those of the next
 * rank behind a fence: enough ranks exceed what one frame between hosts can have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 60, VALUE_BYTES = 1000, LINE_BYTES = 2048 };

static void value_write(char value[VALUE_BYTES + 1], int rank, int key)
{
    memset(value, 'a' + (rank + key) % 26, VALUE_BYTES);
    value[VALUE_BYTES] = 0;
}

/* The next line, which has to begin so. */
static const char *line_await(FILE *from, const char *begin)
{
    static char line[LINE_BYTES];
    if (fgets(line, sizeof(line), from) == NULL || strncmp(line, begin, strlen(begin)) != 0) {
        fprintf(stderr, "the launcher does not answer %s\n", begin);
        exit(1);
    }
    return line;
}

int main(void)
{
    const char *number = getenv("PMI_FD"), *own = getenv("PMI_RANK"), *all = getenv("PMI_SIZE");
    if (number == NULL || own == NULL || all == NULL) {
        return 1;
    }
    FILE *to = fdopen(atoi(number), "w"), *from = fdopen(atoi(number), "r");
    int rank = atoi(own), next = (rank + 1) % atoi(all);
    char value[VALUE_BYTES + 1], name[256] = "";
    fprintf(to, "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_my_kvsname\n");
    fflush(to);
    (void)line_await(from, "cmd=response_to_init");
    (void)sscanf(strstr(line_await(from, "cmd=my_kvsname"), "kvsname="), "kvsname=%255s", name);
    for (int key = 0; key < KEYS; key++) {
        value_write(value, rank, key);
        fprintf(to, "cmd=put kvsname=%s key=large-%d-%d value=%s\n", name, rank, key, value);
        fflush(to);
        (void)line_await(from, "cmd=put_result rc=0");
    }
    fprintf(to, "cmd=barrier_in\n");
    fflush(to);
    (void)line_await(from, "cmd=barrier_out");
    for (int key = 0; key < KEYS; key++) {
        value_write(value, next, key);
        fprintf(to, "cmd=get kvsname=%s key=large-%d-%d\n", name, next, key);
        fflush(to);
        if (strstr(line_await(from, "cmd=get_result rc=0"), value) == NULL) {
            fprintf(stderr, "rank %d has another value of rank %d\n", rank, next);
            return 1;
        }
    }
    fprintf(to, "cmd=finalize\n");
    fflush(to);
    (void)line_await(from, "cmd=finalize_ack");
    if (rank == 0) {
        printf("all found\n");
    }
    return 0;
}
