/* Near misses: distances of words, and what a message suggests. */
#include "check.h"

#include "base/spelling.h"

#include <string.h>

static int32_t distance(const char *a, const char *b)
{
    return stk_word_distance(a, strlen(a), b, strlen(b));
}

TEST(distances)
{
    CHECK_EQ_I64(distance("dense", "Dense"), 0);
    CHECK_EQ_I64(distance("", "abc"), 3);
    CHECK_EQ_I64(distance("adm", "adam"), 1);
    CHECK_EQ_I64(distance("tkae", "take"), 1); /* neighbours swapped */
    CHECK_EQ_I64(distance("kitten", "sitting"), 3);
    CHECK_EQ_I64(distance("sitting", "kitten"), 3);
    char long_word[80];
    memset(long_word, 'a', sizeof long_word);
    CHECK_EQ_I64(stk_word_distance(long_word, sizeof long_word, "a", 1), 64);
    CHECK_EQ_I64(stk_word_distance(long_word, 64, long_word, 64), 0);
}

TEST(suggestions)
{
    static const char *const names[] = {"take", "skip", NULL, "batch", "rebatch", "shuffle"};
    enum { COUNT = sizeof names / sizeof *names };
    char text[64];
    stk_did_you_mean("tkae", names, COUNT, text, sizeof text);
    CHECK_STR(text, " Did you mean take?");
    stk_did_you_mean("ebatch", names, COUNT, text, sizeof text);
    CHECK_STR(text, " Did you mean batch or rebatch?");
    stk_did_you_mean("convolve", names, COUNT, text, sizeof text);
    CHECK_STR(text, "");
    char small[20]; /* room for one name, not for two */
    stk_did_you_mean("ebatch", names, COUNT, small, sizeof small);
    CHECK(strlen(small) < sizeof small);
    stk_did_you_mean("tkae", names, COUNT, text, 3);
    CHECK_STR(text, "");
}

TEST_MAIN()
