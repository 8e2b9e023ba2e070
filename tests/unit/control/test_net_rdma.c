/* CAUSEWAY_RDMA, and the line that names a port of an RDMA device. */
#include "control/net/rdma.h"

#include "dataplane/status.h"
#include "tests/test.h"

enum { ERROR_ROOM = 200 };

static void wishes_are_read(void **state)
{
    static const struct {
        const char *text;
        int status;
        bool is_off;
        const char *name;
    } rows[] = {
        {NULL, CW_OK, false, ""},
        {"", CW_OK, false, ""},
        {"auto", CW_OK, false, ""},
        {"off", CW_OK, true, ""},
        {"mlx5_0", CW_OK, false, "mlx5_0"},
        {"offline", CW_OK, false, "offline"},
        {"mlx5_0,mlx5_1", CW_ERROR_ARGUMENT, false, ""},
        {"../mlx5_0", CW_ERROR_ARGUMENT, false, ""},
        {"mlx5 0", CW_ERROR_ARGUMENT, false, ""},
        {"a name that is longer than the kernel lets any RDMA device have, of all", CW_ERROR_ARGUMENT, false, ""},
        {"0123456789012345678901234567890123456789012345678901234567890123", CW_ERROR_ARGUMENT, false, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_net_rdma rdma;
        char error[ERROR_ROOM] = "";
        int status = cw_net_rdma_read(rows[i].text, &rdma, error, sizeof(error));
        assert_true_msg(status == rows[i].status && rdma.is_off == rows[i].is_off &&
                            strcmp(rdma.name, rows[i].name) == 0,
                        "'%s': %d, off %d, '%s'", rows[i].text, status, rdma.is_off, rdma.name);
        assert_true((strstr(error, "auto, off or the name of one is wanted") != NULL) == (status != CW_OK));
    }
}

static void none_is_found_where_it_is_off(void **state)
{
    struct cw_net_rdma rdma = {.is_off = true};
    struct cw_verbs_port port;
    struct cw_ip ip = {{0}};
    char error[ERROR_ROOM] = "";
    assert_int_equal(cw_net_rdma_find(&rdma, &ip, &port, error, sizeof(error)), CW_ERROR_NOT_FOUND);
    assert_string_equal(error, "CAUSEWAY_RDMA is off");
    rdma = (struct cw_net_rdma){.name = "nosuch_0"};
    int status = cw_net_rdma_find(&rdma, &ip, &port, error, sizeof(error));
    assert_true(status == CW_ERROR_NOT_FOUND || status == CW_ERROR_UNSUPPORTED);
    assert_true(status != CW_ERROR_NOT_FOUND || strstr(error, "nosuch_0") != NULL);
}

static void ports_are_reported(void **state)
{
    struct cw_verbs_port port = {.name = "mlx5_0",
                                 .number = 1,
                                 .kind = CW_VERBS_ROCE_V2,
                                 .gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9, [15] = 1},
                                 .mtu_bytes = 4096,
                                 .is_up = true};
    char text[CW_VERBS_TEXT_BYTES];
    cw_verbs_port_write(&port, text);
    assert_string_equal(text, "mlx5_0 port 1: RoCE v2, GID ::ffff:10.9.0.1, MTU 4096");
    port = (struct cw_verbs_port){
        .name = "ib0", .number = 2, .kind = CW_VERBS_INFINIBAND, .lid = 17, .mtu_bytes = 2048, .is_up = false};
    cw_verbs_port_write(&port, text);
    assert_string_equal(text, "ib0 port 2: InfiniBand, GID none, LID 17, MTU 2048, down");
    memset(port.name, 'x', sizeof(port.name) - 1); /* the longest text fits */
    memset(port.gid, 0xee, sizeof(port.gid));
    cw_verbs_port_write(&port, text);
    assert_string_equal(text + strlen(text) - 6, ", down");
}

int main(void)
{
    return TESTS_RUN(wishes_are_read, none_is_found_where_it_is_off, ports_are_reported);
}
