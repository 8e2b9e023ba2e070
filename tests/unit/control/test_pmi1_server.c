/* The PMI-1 server: requests of clients, in pieces or at once, and malicious clients. */
#include "control/bootstrap/pmi1_line.h"
#include "control/bootstrap/pmi1_server.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { RANDOM_ROUNDS = 3000 };
#define INIT   "cmd=init pmi_version=1 pmi_subversion=1\n"
#define INITED "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"

static struct cw_pmi1_server *server_of(uint32_t count)
{
    static const uint32_t app_numbers[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    const struct cw_pmi1_server_config config = {
        .client_count = count, .universe_size = 9, .job = "job", .app_numbers = app_numbers};
    struct cw_pmi1_server *server = NULL;
    assert_int_equal(cw_pmi1_server_create(&config, &server), CW_OK);
    return server;
}

static int feed(struct cw_pmi1_server *server, uint32_t client, const char *text)
{
    return cw_pmi1_server_receive(server, client, text, strlen(text));
}

static void expect(struct cw_pmi1_server *server, uint32_t client, const char *text)
{
    const char *bytes;
    size_t count = cw_pmi1_server_pending(server, client, &bytes);
    assert_int_equal(count, strlen(text));
    assert_memory_equal(bytes, text, count);
    cw_pmi1_server_sent(server, client, count);
}

static void talk(struct cw_pmi1_server *server, uint32_t client, const char *question, const char *answer)
{
    assert_int_equal(feed(server, client, question), CW_OK);
    expect(server, client, answer);
}

static void test_questions(void **state)
{
    static const struct {
        const char *question;
        const char *answer;
    } rows[] = {
        {"cmd=get_maxes\n", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 causeway_batch=64\n"},
        {"cmd=get_appnum\n", "cmd=appnum appnum=1\n"},
        {"cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=job\n"},
        {"cmd=get_universe_size\n", "cmd=universe_size size=9\n"},
        {"cmd=get kvsname=job key=PMI_process_mapping\n", "cmd=get_result rc=0 msg=success value=(vector,(0,1,4))\n"},
        {"cmd=put kvsname=job key=a value=b=c\n", "cmd=put_result rc=0 msg=success\n"},
        {"cmd=get kvsname=job key=a\n", "cmd=get_result rc=0 msg=success value=b=c\n"},
        {"cmd=put kvsname=job key=a value=d\n", "cmd=put_result rc=0 msg=success\n"},
        {"cmd=get kvsname=job key=a\n", "cmd=get_result rc=0 msg=success value=d\n"},
        {"cmd=get kvsname=job key=none\n", "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"},
        {"cmd=get kvsname=other key=a\n", "cmd=get_result rc=-1 msg=no_such_table value=unknown\n"},
        {"cmd=get kvsname=job\n", "cmd=get_result rc=-1 msg=bad_key value=unknown\n"},
        {"cmd=put kvsname=job key=a\n", "cmd=put_result rc=-1 msg=bad_value\n"},
        {"cmd=publish_name service=a\n", "cmd=publish_result rc=-1 msg=not_supported_by_causeway_run\n"},
        {"mcmd=spawn\nnprocs=1\nexecname=a\nendcmd\n", "cmd=spawn_result rc=-1 msg=not_supported_by_causeway_run\n"},
        {"cmd=finalize\n", "cmd=finalize_ack rc=0\n"},
        {INIT, INITED},
    };
    struct cw_pmi1_server *server = server_of(4);
    talk(server, 2, INIT, INITED);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        talk(server, 2, rows[i].question, rows[i].answer);
    }
    assert_int_equal(cw_pmi1_server_count(server, CW_PMI1_CLIENT_ACTIVE), 1);
    assert_int_equal(cw_pmi1_server_count(server, CW_PMI1_CLIENT_NEW), 3);
    cw_pmi1_server_destroy(server);
}

/* One byte at a time, and all at once. */
static void test_pieces(void **state)
{
    struct cw_pmi1_server *server = server_of(1);
    const char *text = INIT "cmd=get_appnum\ncmd=get_appnum\n";
    for (size_t i = 0; text[i] != 0; i++) {
        assert_int_equal(cw_pmi1_server_receive(server, 0, text + i, 1), CW_OK);
    }
    expect(server, 0, INITED "cmd=appnum appnum=0\ncmd=appnum appnum=0\n");
    talk(server, 0, text, INITED "cmd=appnum appnum=0\ncmd=appnum appnum=0\n");
    cw_pmi1_server_destroy(server);
}

static void test_barrier(void **state)
{
    struct cw_pmi1_server *server = server_of(3);
    uint32_t client;
    for (uint32_t i = 0; i < 3; i++) {
        talk(server, i, INIT, INITED);
        assert_true(cw_pmi1_server_next(server, &client));
        assert_int_equal(client, i);
    }
    for (int round = 0; round < 3; round++) {
        talk(server, 1, "cmd=barrier_in\n", "");
        talk(server, 0, "cmd=barrier_in\n", "");
        assert_true(cw_pmi1_server_waits(server, 0));
        assert_false(cw_pmi1_server_waits(server, 2));
        assert_false(cw_pmi1_server_next(server, &client));
        assert_int_equal(feed(server, 2, "cmd=barrier_in\n"), CW_OK);
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(cw_pmi1_server_next(server, &client));
            assert_int_equal(client, i);
            expect(server, i, "cmd=barrier_out rc=0\n");
        }
        assert_false(cw_pmi1_server_next(server, &client));
    }
    cw_pmi1_server_destroy(server);
}

static void test_abort(void **state)
{
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        {"cmd=abort exitcode=7\n", 7},     {"cmd=abort exitcode=0\n", 0},
        {"cmd=abort exitcode=256\n", 255}, {"cmd=abort\n", 1},
        {"cmd=abort exitcode=-1\n", 255},  {"cmd=abort exitcode=x\n", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_pmi1_server *server = server_of(2);
        uint32_t client = 0;
        int code = -1;
        talk(server, 1, INIT, INITED);
        assert_false(cw_pmi1_server_aborted(server, &client, &code));
        talk(server, 1, rows[i].text, "");
        talk(server, 0, INIT, INITED);
        talk(server, 0, "cmd=abort exitcode=3\n", "");
        assert_true(cw_pmi1_server_aborted(server, &client, &code));
        assert_int_equal(client, 1);
        assert_int_equal(code, rows[i].code);
        cw_pmi1_server_destroy(server);
    }
}

static void test_nonsense_fails_one_client(void **state)
{
    static const char *const texts[] = {
        "cmd=get_maxes\n",
        "\n",
        "hello\n",
        "cmd\n",
        "GET / HTTP/1.1\r\n",
        INIT "cmd=nothing\n",
        INIT "cmd=barrier_in\ncmd=get_appnum\n",
        INIT "cmd=finalize\ncmd=get_appnum\n",
        INIT "\x01\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct cw_pmi1_server *server = server_of(2);
        assert_int_not_equal(feed(server, 0, texts[i]), CW_OK);
        assert_int_equal(cw_pmi1_server_state(server, 0), CW_PMI1_CLIENT_FAILED);
        assert_true(strlen(cw_pmi1_server_failure(server)) > 0);
        assert_int_not_equal(feed(server, 0, INIT), CW_OK);
        talk(server, 1, INIT, INITED);
        assert_int_equal(feed(server, 1, "cmd=barrier_in\n"), CW_OK);
        assert_true(cw_pmi1_server_waits(server, 1));
        cw_pmi1_server_destroy(server);
    }
}

static void test_limits(void **state)
{
    struct cw_pmi1_server *server = server_of(1);
    char text[CW_PMI1_LINE_MAX + 2];
    talk(server, 0, INIT, INITED);
    snprintf(text, sizeof(text), "cmd=put kvsname=job key=a value=%01023d\n", 0);
    talk(server, 0, text, "cmd=put_result rc=0 msg=success\n");
    snprintf(text, sizeof(text), "cmd=put kvsname=job key=a value=%01024d\n", 0);
    talk(server, 0, text, "cmd=put_result rc=-1 msg=bad_value\n");
    snprintf(text, sizeof(text), "cmd=put kvsname=job key=%064d value=a\n", 0);
    talk(server, 0, text, "cmd=put_result rc=-1 msg=bad_key\n");
    /* the mapping is one of the keys, "a" another */
    for (int i = 0; i < CW_PMI1_SERVER_KEYS - 2; i++) {
        snprintf(text, sizeof(text), "cmd=put kvsname=job key=k%d value=x\n", i);
        talk(server, 0, text, "cmd=put_result rc=0 msg=success\n");
    }
    talk(server, 0, "cmd=put kvsname=job key=more value=x\n", "cmd=put_result rc=-1 msg=table_full\n");
    memset(text, 'a', sizeof(text));
    assert_int_equal(cw_pmi1_server_receive(server, 0, text, sizeof(text)), CW_ERROR_LIMIT);
    cw_pmi1_server_destroy(server);
}

static void test_bad_configs(void **state)
{
    static const struct cw_pmi1_server_config configs[] = {
        {.client_count = 0, .job = "job"},
        {.client_count = CW_PMI1_SERVER_CLIENTS_MAX + 1, .job = "job"},
        {.client_count = 1},
        {.client_count = 1, .job = "a job"},
        {.client_count = 1, .job = "job", .process_mapping = "a b"},
    };
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct cw_pmi1_server *server = NULL;
        assert_int_equal(cw_pmi1_server_create(&configs[i], &server), CW_ERROR_ARGUMENT);
        assert_null(server);
    }
    cw_pmi1_server_destroy(NULL);
}

/* Words that go together in any order, cut anywhere, with a byte changed now and then. */
static void test_random(void **state)
{
    static const char *const words[] = {"cmd=put",
                                        "cmd=get",
                                        "cmd=init pmi_version=1",
                                        "cmd=barrier_in",
                                        "cmd=abort",
                                        "kvsname=job",
                                        "key=a",
                                        "value=b",
                                        "mcmd=spawn",
                                        "endcmd",
                                        "cmd=finalize",
                                        "\n",
                                        "\n",
                                        " ",
                                        "=",
                                        "key="};
    struct cw_random random;
    cw_random_seed(&random, 41);
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        struct cw_pmi1_server *server = server_of(2);
        for (uint32_t client = 0; client < 2; client++) {
            feed(server, client, INIT);
        }
        for (int i = 0; i < 40; i++) {
            char text[64];
            uint64_t draw = cw_random_next(&random);
            uint32_t client = draw & 1;
            int length = snprintf(text, sizeof(text), "%s%s", words[(draw >> 1) % 16], draw >> 5 & 1 ? " " : "\n");
            if ((draw >> 6 & 31) == 0) {
                text[(draw >> 11) % (uint64_t)length] = (char)(draw >> 40);
            }
            cw_pmi1_server_receive(server, client, text, (size_t)length);
            while (cw_pmi1_server_next(server, &client)) {
                const char *bytes;
                size_t count = cw_pmi1_server_pending(server, client, &bytes);
                assert_true(count == 0 || bytes[count - 1] == '\n');
                cw_pmi1_server_sent(server, client, count / 2);
            }
        }
        cw_pmi1_server_destroy(server);
    }
}

int main(void)
{
    return TESTS_RUN(test_questions, test_pieces, test_barrier, test_abort, test_nonsense_fails_one_client, test_limits,
                     test_bad_configs, test_random);
}
