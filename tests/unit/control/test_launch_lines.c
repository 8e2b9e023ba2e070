/* The ranks' output: whole lines, never mixed, byte by byte. */
#include "control/launch/lines.h"
#include "dataplane/status.h"
#include "tests/test.h"

static struct launch_sink sink;
static struct launch_stream a;
static struct launch_stream b;

static int set_up(void **state)
{
    sink = (struct launch_sink){.begin = 0};
    a = (struct launch_stream){.sink = &sink};
    b = (struct launch_stream){.sink = &sink};
    return 0;
}

static int tear_down(void **state)
{
    launch_stream_end(&a);
    launch_stream_end(&b);
    launch_sink_dispose(&sink);
    return 0;
}

static void append(struct launch_stream *stream, const char *text)
{
    assert_int_equal(launch_stream_append(stream, text, strlen(text)), CW_OK);
}

static void expect(const char *text)
{
    assert_int_equal(launch_sink_pending(&sink), strlen(text));
    if (text[0] != 0) {
        assert_memory_equal(sink.bytes + sink.begin, text, strlen(text));
    }
    launch_sink_written(&sink, strlen(text));
}

static void test_lines_wait_for_their_end(void **state)
{
    append(&a, "one, ");
    append(&b, "two\nthr");
    append(&a, "still one\n");
    expect("two\none, still one\n");
    append(&b, "ee\n\n");
    expect("three\n\n");
}

static void test_prompts(void **state)
{
    append(&a, "name? ");
    append(&b, "me");
    assert_int_equal(launch_stream_show(&a), CW_OK);
    expect("name? ");
    assert_int_equal(launch_stream_show(&b), CW_OK); /* a's line is open */
    expect("");
    append(&a, "Ada\nnext? ");
    expect("Ada\n");
    assert_int_equal(launch_stream_show(&b), CW_OK);
    expect("me");
    assert_int_equal(launch_stream_show(&a), CW_OK);
    expect("");
    append(&b, ", too\n");
    expect(", too\n");
    assert_int_equal(launch_stream_show(&a), CW_OK);
    expect("next? ");
    append(&b, "a whole line\n");
    expect("\na whole line\n"); /* the prompt is broken, not mixed with it */
}

static void test_cut_by_stdio_is_no_prompt(void **state)
{
    char block[4096];
    memset(block, 'x', sizeof(block));
    assert_int_equal(launch_stream_append(&a, block, sizeof(block)), CW_OK);
    assert_int_equal(launch_stream_show(&a), CW_OK);
    assert_int_equal(launch_sink_pending(a.sink), 0);
    assert_int_equal(launch_stream_append(&a, "?", 1), CW_OK);
    assert_int_equal(launch_stream_show(&a), CW_OK);
    assert_int_equal(launch_sink_pending(a.sink), sizeof(block) + 1);
}

static void test_last_line_without_end(void **state)
{
    append(&a, "no end");
    expect("");
    assert_int_equal(launch_stream_end(&a), CW_OK);
    expect("no end");
    append(&b, "next\n"); /* not on the same line */
    expect("\nnext\n");
    assert_int_equal(launch_sink_line(&sink, "ours"), CW_OK);
    expect("ours\n");
}

static void test_labels(void **state)
{
    a.label = "[0] ";
    b.label = "[1] ";
    append(&a, "x\ny\nz");
    append(&b, "\n");
    append(&a, "z\n");
    expect("[0] x\n[0] y\n[1] \n[0] zz\n");
}

static void test_long_lines(void **state)
{
    static char text[CW_LAUNCH_LINE_MAX];
    memset(text, 'x', sizeof(text));
    assert_int_equal(launch_stream_append(&a, text, sizeof(text)), CW_OK);
    assert_int_equal(launch_sink_pending(&sink), 0);
    assert_int_equal(launch_stream_append(&a, "y", 1), CW_OK); /* too long: goes out, unchanged */
    assert_int_equal(launch_sink_pending(&sink), sizeof(text) + 1);
    launch_sink_written(&sink, sizeof(text) + 1);
    append(&a, "z\n");
    expect("z\n");
    assert_int_equal(launch_stream_append(&a, text, sizeof(text)), CW_OK);
    append(&a, "y");
    launch_sink_written(&sink, launch_sink_pending(&sink));
    append(&b, "other\n"); /* breaks it */
    expect("\nother\n");
    append(&a, "rest\n");
    expect("rest\n");
}

static void test_any_bytes(void **state)
{
    char bytes[512];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)i;
    }
    for (size_t i = 0; i < sizeof(bytes); i += 64) {
        assert_int_equal(launch_stream_append(&a, bytes + i, 64), CW_OK);
    }
    assert_int_equal(launch_stream_end(&a), CW_OK);
    assert_int_equal(launch_sink_pending(&sink), sizeof(bytes));
    assert_memory_equal(sink.bytes + sink.begin, bytes, sizeof(bytes));
}

/* A reader that is always a little behind: memory does not grow. */
static void test_sink_is_reused(void **state)
{
    append(&a, "line\n");
    for (int i = 0; i < 100000; i++) {
        append(&a, "line\n");
        launch_sink_written(&sink, 5);
    }
    assert_int_equal(launch_sink_pending(&sink), 5);
    assert_in_range(sink.allocated, 1, 65536);
}

int main(void)
{
    return TESTS_RUN_EACH(set_up, tear_down, test_lines_wait_for_their_end, test_prompts,
                          test_cut_by_stdio_is_no_prompt, test_last_line_without_end, test_labels, test_long_lines,
                          test_any_bytes, test_sink_is_reused);
}
