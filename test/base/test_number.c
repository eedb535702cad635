/* Numbers to text and back. */
#include "check.h"

#include "base/float_env.h"
#include "base/number.h"
#include "base/rng.h"

#include <locale.h>

static double read(const char *text)
{
    double v = -12345;
    CHECK_MSG(stk_parse_double(text, strlen(text), &v), "refused: %s", text);
    return v;
}

TEST(reading_agrees_with_the_c_library)
{
    const char *texts[] = {"0",
                           "-0",
                           "1",
                           "-1.5",
                           ".5",
                           "5.",
                           "+7",
                           "1e10",
                           "1E-10",
                           "1e+5",
                           "1e22",
                           "1e23",
                           "1e-22",
                           "1e-23",
                           "123456789012345678901234567890",
                           "0.1",
                           "0.30000000000000004",
                           "9007199254740993",
                           "9007199254740992",
                           "1.7976931348623157e308",
                           "4.9406564584124654e-324",
                           "2.2250738585072011e-308",
                           "1e400",
                           "-1e400",
                           "1e-400",
                           "1e99999999999999999999",
                           "0e99999999999999999",
                           "0.00000000000000000000000000000000000000001",
                           "100000000000000000000",
                           "3.14159265358979323846264338327950288419716939937510"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double want = strtod(texts[i], NULL), got = read(texts[i]);
        CHECK_MSG(memcmp(&want, &got, 8) == 0, "%s: %.17g, expected %.17g", texts[i], got, want);
    }
}

TEST(what_is_no_number_is_refused)
{
    const char *texts[] = {"",      "-",    "+",   ".",   "e5",  "1e",  "1e+",   "1 ", " 1",
                           "1.2.3", "0x10", "nan", "inf", "1,5", "--1", "1e5.0", "١"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double v;
        int64_t n;
        CHECK_MSG(!stk_parse_double(texts[i], strlen(texts[i]), &v), "taken: '%s'", texts[i]);
        CHECK_MSG(!stk_parse_int64(texts[i], strlen(texts[i]), &n), "taken: '%s'", texts[i]);
    }
    double v;
    CHECK(!stk_parse_double(NULL, 0, &v));
    CHECK(stk_parse_double("12345", 2, &v) && v == 12); /* no further than size */
}

TEST(whole_numbers)
{
    int64_t v = 0;
    CHECK(stk_parse_int64("9223372036854775807", 19, &v) && v == INT64_MAX);
    CHECK(stk_parse_int64("-9223372036854775808", 20, &v) && v == INT64_MIN);
    CHECK(stk_parse_int64("+12", 3, &v) && v == 12);
    CHECK(stk_parse_int64("-0", 2, &v) && v == 0);
    CHECK(!stk_parse_int64("9223372036854775808", 19, &v));
    CHECK(!stk_parse_int64("-9223372036854775809", 20, &v));
    CHECK(!stk_parse_int64("99999999999999999999", 20, &v));
    CHECK(!stk_parse_int64("1.0", 3, &v));
}

TEST(writing_is_short)
{
    char text[STK_NUMBER_TEXT];
    CHECK_STR(stk_double_text(0.1, text), "0.1");
    CHECK_STR(stk_double_text(-0.0, text), "-0");
    CHECK_STR(stk_double_text(1e22, text), "1e+22");
    CHECK_STR(stk_double_text(0.1 + 0.2, text), "0.30000000000000004");
    CHECK_STR(stk_double_text(5e-324, text), "5e-324");
    CHECK_STR(stk_double_text(INFINITY, text), "inf");
    CHECK_STR(stk_double_text(-INFINITY, text), "-inf");
    CHECK_STR(stk_double_text(NAN, text), "nan");
    CHECK_STR(stk_float_text(0.1f, text), "0.1");
    CHECK_STR(stk_float_text(16777217.0f, text), "16777216");
    CHECK_STR(stk_float_text(1e-45f, text), "1e-45");
    CHECK_STR(stk_float_text(3.4028235e38f, text), "3.4028235e+38");
}

TEST(random_bits_survive_the_way)
{
    char text[STK_NUMBER_TEXT];
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t w[4];
        stk_rng_block((stk_rng){1, 1}, i, w);
        double v, back;
        float f, back_f;
        memcpy(&v, w, 8);
        memcpy(&f, &w[2], 4);
        if (!isnan(v) && !isinf(v)) {
            back = read(stk_double_text(v, text));
            CHECK_MSG(memcmp(&v, &back, 8) == 0, "%a -> %s", v, text);
        }
        if (!isnan(f) && !isinf(f)) {
            back_f = (float)read(stk_float_text(f, text));
            CHECK_MSG(memcmp(&f, &back_f, 4) == 0, "%a -> %s", (double)f, text);
        }
    }
}

TEST(subnormals_survive_where_they_count_as_zero)
{
    char text[STK_NUMBER_TEXT];
    stk_float_env was = stk_float_env_enter();
    stk_double_text(0x1.8p-1070, text);
    stk_float_env_leave(was);
    CHECK(read(text) == 0x1.8p-1070);
}

TEST(other_locales_change_nothing)
{
    const char *names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
    for (int i = 0; i < 3; i++) {
        if (!setlocale(LC_ALL, names[i])) continue; /* not installed here */
        char text[STK_NUMBER_TEXT];
        CHECK_STR(stk_double_text(1.5, text), "1.5");
        CHECK(read("0.30000000000000004") == 0.1 + 0.2);
    }
    setlocale(LC_ALL, "C");
}

TEST(long_texts_without_memory)
{
    char text[400];
    memset(text, '1', sizeof text);
    text[1] = '.';
    double v = 0;
    stk_alloc_fail_at(1, false);
    CHECK(stk_parse_double(text, sizeof text, &v));
    stk_alloc_fail_at(0, false);
    CHECK_NEAR(v, 10.0 / 9, 1e-15);
    CHECK(stk_parse_double(text, sizeof text, &v));
    CHECK_NEAR(v, 10.0 / 9, 1e-15);
}

TEST_MAIN()
