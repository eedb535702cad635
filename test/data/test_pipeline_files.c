/* Pipeline files: every op, expressions, functions that are lists of ops, and messages that say where and what fits. */
#include "pipelines.h"
#include "temporary.h"

#include "data/json/expression.h"

#include <unistd.h>

/* ' for ", so that JSON is readable here. */
static stk_dataset *pipeline(const char *text, stk_error *err)
{
    static char json[8192];
    snprintf(json, sizeof json, "%s", text);
    for (char *c = json; *c; c++)
        if (*c == '\'') *c = '"';
    return stk_data_pipeline(json, strlen(json), NULL, err);
}

static void gives_at(int line, const char *json, const char *expected)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        static collect c;
        stk_error err = {.code = STK_OK};
        stk_stream_options o = stk_stream_options_defaults();
        o.threads = threads;
        stk_dataset *ds = pipeline(json, &err);
        if (!CHECK_MSG(ds != NULL, "line %d: %s", line, err.message)) return;
        run_all(ds, &o, &c);
        CHECK_MSG(strcmp(c.text, expected) == 0, "line %d: gives %s, expected %s", line, c.text,
                  expected);
    }
}
#define GIVES(json, expected) gives_at(__LINE__, json, expected)

static void fails_at(int line, const char *json, const char *part)
{
    stk_error err = {.code = STK_OK};
    stk_dataset *ds = pipeline(json, &err);
    CHECK_MSG(!ds, "line %d: it was accepted", line);
    CHECK_MSG(strstr(err.message, part) != NULL, "line %d: \"%s\" has no \"%s\"", line, err.message,
              part);
    stk_dataset_release(ds);
}
#define FAILS(json, part) fails_at(__LINE__, json, part)

TEST(filters)
{
    GIVES("[{'op': 'range', 'stop': 9}, {'op': 'filter', 'where': '$0 % 3 != 0 and $0 > 1'}]",
          "2|4|5|7|8|");
    GIVES("[{'op': 'range', 'stop': 9}, {'op': 'take_while', 'where': '$0 * 2 < 7'}]", "0|1|2|3|");
    GIVES("[{'op': 'range', 'stop': 20}, {'op': 'map', 'to': '$0 // 3 % 2'}, {'op': 'unique'}]",
          "0|1|");
    GIVES("[{'op': 'range', 'stop': 8}, {'op': 'window', 'size': 3, 'drop_remainder': true}, "
          "{'op': 'filter', 'where': 'sum($0) > 5'}]",
          "3,4,5|");
}

TEST(maps)
{
    GIVES("[{'op': 'range', 'stop': 4}, {'op': 'map', 'to': ['$0 / 2', 'index * 10', 'not $0']}]",
          "0;0;1|0.5;10;0|1;20;0|1.5;30;0|");
    GIVES("[{'op': 'range', 'stop': 3}, {'op': 'map', 'to': {'x': '$0', 'twice': '2 * $0'}}, "
          "{'op': 'map', 'to': 'float32(twice) - x'}]",
          "0|1|2|");
    GIVES("[{'op': 'range', 'stop': 6}, {'op': 'batch', 'size': 3}, {'op': 'map', 'to': "
          "['where($0 > 2, $0, -$0)', 'mean($0)', '$0[-1]', 'len($0)', 'max($0, 2)']}]",
          "0,-1,-2;1;2;3;2,2,2|3,4,5;4;5;3;3,4,5|");
    GIVES("[{'op': 'range', 'stop': 4}, {'op': 'map', 'to': '$0 + 0.5'}, {'op': 'batch', 'size': "
          "3}]",
          "0.5,1.5,2.5|3.5|");
}

TEST(scans_and_reductions)
{
    GIVES("[{'op': 'range', 'stop': 5}, {'op': 'scan', 'state': {'sum': 0}, 'next': {'sum': 'sum + "
          "$0'}, 'give': 'sum'}]",
          "0|1|3|6|10|");
    GIVES("[{'op': 'range', 'stop': 4}, {'op': 'scan', 'state': {'last': -1}, 'next': {'last': "
          "'$0'}, 'give': ['last', '$0 * 2']}]",
          "0;0|1;2|2;4|3;6|");
    GIVES("[{'op': 'range', 'stop': 5}, {'op': 'reduce', 'state': {'n': 0, 'sum': 0.0}, 'next': "
          "{'n': 'n + 1', 'sum': 'sum + $0'}}, {'op': 'map', 'to': 'sum / n'}]",
          "2|");
    GIVES("[{'op': 'range', 'stop': 0}, {'op': 'reduce', 'state': {'n': 7}, 'next': {}}]", "7|");
}

TEST(datasets_of_datasets)
{
    GIVES("[{'op': 'range', 'stop': 4}, {'op': 'flat_map', 'ops': [{'op': 'range', 'stop': "
          "{'element': 0}}]}]",
          "0|0|1|0|1|2|");
    GIVES("[{'op': 'range', 'stop': 3}, {'op': 'flat_map', 'ops': [{'op': 'repeat', 'times': 2}]}]",
          "0|0|1|1|2|2|");
    GIVES("[{'op': 'range', 'start': 1, 'stop': 5}, {'op': 'interleave', 'cycle': 2, 'ops': "
          "[{'op': 'repeat', 'times': {'element': 0}}]}]",
          "1|2|2|3|3|4|3|4|4|4|");
    GIVES("[{'op': 'range', 'stop': 7}, {'op': 'window', 'size': 3, 'shift': 2, 'nested': true}, "
          "{'op': 'flat_map', 'ops': [{'op': 'batch', 'size': 3, 'drop_remainder': true}]}]",
          "0,1,2|2,3,4|4,5,6|");
    GIVES("[{'op': 'range', 'stop': 4}, {'op': 'map', 'to': {'x': '$0', 'y': '$0 * 10'}}, {'op': "
          "'window', 'size': 3, 'shift': 1, 'nested': true, 'drop_remainder': true}, {'op': "
          "'flat_map', 'ops': [{'op': 'zip', 'inputs': [[{'op': 'element', 'part': 'x'}, {'op': "
          "'batch', 'size': 3}], [{'op': 'element', 'part': 'y'}, {'op': 'skip', 'count': 2}]]}]}]",
          "0,1,2;20|1,2,3;30|");
    GIVES("[{'op': 'range', 'stop': 4}, {'op': 'map', 'to': {'x': '$0', 'y': '$0 * 10'}}, {'op': "
          "'window', 'size': 2, 'nested': true}, {'op': 'enumerate'}, {'op': 'flat_map', 'ops': "
          "[{'op': 'skip', 'count': 1}]}]",
          "0;1;10|1;3;30|");
    GIVES("[{'op': 'range', 'stop': 8}, {'op': 'group_by_window', 'key': '$0 % 3', 'size': 2, "
          "'ops': [{'op': 'batch', 'size': 10}]}]",
          "0,3|1,4|2,5|6|7|");
}

TEST(choices_and_samples)
{
    GIVES("[{'op': 'choose_from_datasets', 'inputs': [[{'op': 'range', 'stop': 9}], [{'op': "
          "'range', 'start': 10, 'stop': 19}]], 'choice': [{'op': 'range', 'stop': 5}, {'op': "
          "'map', 'to': '$0 % 2'}]}]",
          "0|10|1|11|2|");
    static collect c;
    stk_error err;
    run_all(pipeline("[{'op': 'range', 'stop': 3000}, {'op': 'rejection_resample', 'class': '$0 % "
                     "3', 'target': [0.2, 0.2, 0.6], 'initial': [1, 1, 1]}]",
                     &err),
            NULL, &c);
    int64_t twos = 0;
    for (const char *s = c.text; *s; s++)
        twos += s[0] == '2' && s[1] == ';' && (s == c.text || s[-1] == '|');
    CHECK_MSG(fabs((double)twos / (double)c.elements - 0.6) < 0.05, "%d of %d", (int)twos,
              (int)c.elements);
    GIVES("[{'op': 'range', 'stop': 6}, {'op': 'flat_map', 'ops': [{'op': 'repeat', 'times': "
          "{'element': 0}}, {'op': 'batch', 'size': 9}]}, {'op': 'bucket_by_sequence_length', "
          "'length': 'len($0)', 'boundaries': [3], 'sizes': [2, 2], 'values': [-1]}]",
          "1,-1,2,2|3,3,3,-1,4,4,4,4|5,5,5,5,5|");
}

TEST(files_of_an_interleave)
{
    static collect c;
    stk_error err;
    char json[1024];
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(temporary(i ? "b.lines" : "a.lines"), "w");
        for (int k = 0; k < 2; k++) fprintf(f, "%c%d\n", i ? 'b' : 'a', k);
        fclose(f);
    }
    snprintf(
        json, sizeof json,
        "[{\"op\": \"list_files\", \"pattern\": \"%s\"}, {\"op\": \"interleave\", \"cycle\": 2, "
        "\"ops\": [{\"op\": \"text_lines\", \"files\": {\"element\": 0}}]}, {\"op\": \"filter\", "
        "\"where\": \"$0 != 'b1' and len($0) == 2\"}]",
        temporary("*.lines"));
    run_all(stk_data_pipeline(json, strlen(json), NULL, &err), NULL, &c);
    CHECK_STR(c.text, "a0|b0|a1|");
}

TEST(messages_say_where)
{
    FAILS("[{'op': 'range', 'stop': 3}, {'op': 'batch', 'size': 0}]",
          "ops[1] (batch): \"size\" is 0");
    FAILS("[{'op': 'range', 'stop': 3}, {'op': 'zip', 'inputs': [[{'op': 'range'}, {'op': "
          "'tkae'}]]}]",
          "ops[1].inputs[0].ops[1] (tkae): there is no op \"tkae\"");
    FAILS("[{'op': 'range', 'stop': 3}, {'op': 'flat_map', 'ops': [{'op': 'batch', 'siez': 2}]}]",
          "ops[1].ops[0] (batch): it has no option \"siez\"; it knows size drop_remainder");
    FAILS("[{'op': 'range', 'stop': 3}, {'op': 'filter', 'where': 'label < 5'}]",
          "there is no field \"label\"; there are $0");
    FAILS("[{'op': 'range', 'stop': 3}, {'op': 'filter', 'where': '$0 <'}]",
          "column 5: expected a value");
    FAILS("[{'op': 'range', 'stop': 3}, {'op': 'filter', 'where': '$1'}]",
          "there are fields $0 to $0");
    FAILS(
        "[{'op': 'range', 'stop': 3}, {'op': 'batch', 'size': 2}, {'op': 'filter', 'where': '$0'}]",
        "must give one number");
    FAILS("[{'op': 'range', 'stop': 3}, {'op': 'map', 'to': 'squareroot($0)'}]",
          "no function squareroot()");
    FAILS("[{'op': 'range', 'stop': 3}, {'op': 'scan', 'state': {'a': 1}, 'next': {'b': 'a'}}]",
          "\"next\" has \"b\"");
    FAILS("[{'op': 'range', 'stop': {'element': 0}}]", "flat_map and interleave only");
    FAILS("[{'op': 'element'}]", "flat_map and interleave only");
    FAILS("[{'op': 'range', 'stop': 3}, {'op': 'flat_map', 'ops': [{'op': 'range', 'stop': "
          "{'element': 'x'}}]}]",
          "give a name or a number of 0..0");
    FAILS(
        "[{'op': 'range', 'stop': 9}, {'op': 'window', 'size': 2, 'nested': true}, {'op': 'batch', "
        "'size': 2}]",
        "is a dataset; open it with flat_map");
    FAILS("{}", "expected {\"ops\": [...]}");
    FILE *f = fopen(temporary("wrong.json"), "w");
    fputs("[{\"op\": \"range\", \"stop\": true}]", f);
    fclose(f);
    stk_error err;
    CHECK(!stk_data_pipeline_file(temporary("wrong.json"), &err));
    CHECK_CONTAINS(err.message, "wrong.json: ops[0] (range): \"stop\" is a ");
    CHECK_CONTAINS(err.message, "it takes a whole number");
}

/* Functions may fail for later elements only; then the element fails, with its place. */
TEST(later_elements_may_fail)
{
    static collect c;
    stk_error err;
    run_all(pipeline("[{'op': 'range', 'stop': 4}, {'op': 'map', 'to': '6 // ($0 - 2)'}]", &err),
            NULL, &c);
    CHECK_STR(c.text, "-3|-6|!|6|");
    CHECK_CONTAINS(c.error.message, "divided by zero");
    run_all(pipeline("[{'op': 'range', 'stop': 4}, {'op': 'flat_map', 'ops': [{'op': 'repeat', "
                     "'times': 1}, {'op': 'shard', 'shards': 2, 'index': {'element': 0}}]}]",
                     &err),
            NULL, &c);
    CHECK_STR(c.text, "0|!|!|");
    CHECK_CONTAINS(c.error.message, "ops[1].ops[1] (shard)");
}

static double value_of(const char *text)
{
    stk_error err;
    stk_expression *e = NULL;
    stk_tensor *out = NULL;
    double value = NAN;
    static const stk_schema none = {0, NULL, "()"};
    if (!CHECK_MSG(stk_expression_new(text, &none, 0, &e, &err) == STK_OK, "%s", err.message))
        return value;
    if (CHECK_OK(stk_expression_run(e, NULL, 3, &out, &err))) value = stk_tensor_at(out, 0);
    stk_tensor_release(out);
    stk_expression_free(e);
    return value;
}

/* As Python computes them. */
TEST(expressions_are_pythons)
{
    CHECK(value_of("1 + 2 * 3") == 7);
    CHECK(value_of("(1 + 2) * 3") == 9);
    CHECK(value_of("7 // -2") == -4);
    CHECK(value_of("7 % -2") == -1);
    CHECK(value_of("-7 // 2") == -4);
    CHECK(value_of("-7 % 2") == 1);
    CHECK(value_of("-2 ** 2") == -4);
    CHECK(value_of("2 ** 3 ** 2") == 512);
    CHECK(value_of("10 - 3 - 2") == 5);
    CHECK(value_of("1 < 2 and not 3 == 4") == 1);
    CHECK(value_of("not 1 or 1") == 1);
    CHECK(value_of("7 / 2") == 3.5);
    CHECK(value_of("9007199254740993 - 9007199254740992") == 1); /* beyond 2^53 */
    CHECK(value_of("index") == 3);
    CHECK(value_of("min(3, 2.5)") == 2.5);
    CHECK(value_of("int64(-2.7)") == -2);
    CHECK(value_of("round(2.5) + floor(-0.5) + ceil(0.2)") == 2);
    CHECK(value_of("len('four')") == 4);
    CHECK(value_of("'a' == 'a'") == 1);
    CHECK(value_of("where(0, 1, 2)") == 2);
    CHECK(value_of("uint8(255) + 1") == 256);
}

static stk_status everything(void)
{
    stk_error err = {.code = STK_OK};
    stk_dataset *ds = pipeline(
        "[{'op': 'range', 'stop': 9}, {'op': 'map', 'to': {'x': '$0', 'y': '$0 / 2'}}, "
        "{'op': 'filter', 'where': 'x != 3'}, {'op': 'scan', 'state': {'s': 0}, 'next': "
        "{'s': 's + x'}, 'give': ['s', 'y']}, {'op': 'window', 'size': 3, 'nested': true}, "
        "{'op': 'flat_map', 'ops': [{'op': 'batch', 'size': 3}]}, {'op': "
        "'interleave', 'cycle': 2, 'ops': [{'op': 'unbatch'}]}, {'op': 'group_by_window', "
        "'key': '$0 % 2', 'size': 2, 'ops': [{'op': 'batch', 'size': 2}]}, {'op': "
        "'reduce', 'state': {'n': 0}, 'next': {'n': 'n + len($0)'}}]",
        &err);
    if (!ds) return err.code;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = 1;
    stk_stream *s = NULL;
    stk_tensor *part = NULL;
    bool end = false;
    stk_status status = stk_dataset_stream(ds, &o, &s, &err);
    if (status == STK_OK) status = stk_stream_next(s, &part, &end, &err);
    if (status == STK_OK && !end) {
        CHECK_EQ_I64(stk_tensor_at(part, 0), 8);
        stk_tensor_release(part);
    }
    stk_stream_release(s);
    stk_dataset_release(ds);
    return status;
}

TEST(without_memory_nothing_leaks) { OOM_LOOP(everything()); }

TEST_MAIN()
