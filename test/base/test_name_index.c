/* Names that are found again: many of them, of several kinds, entered twice, and without memory. */
#include "base/name_index.h"
#include "check.h"

TEST(finds_what_was_entered)
{
    enum { MANY = 5000 };
    static char text[MANY][16];
    stk_name_index x = {0};
    CHECK(stk_name_index_find(&x, "nothing", 0) == -1);
    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof text[i], "name_%d", i / 2);
        CHECK(stk_name_index_put(&x, text[i], i % 2, i));
    }
    CHECK(x.count == MANY);
    for (int i = 0; i < MANY; i++) CHECK(stk_name_index_find(&x, text[i], i % 2) == i);
    CHECK(stk_name_index_find(&x, "name_0", 2) == -1);
    CHECK(stk_name_index_find(&x, "name_99999", 0) == -1);
    stk_name_index_release(&x);
    CHECK(stk_name_index_find(&x, "name_0", 0) == -1);
}

TEST(the_last_number_counts)
{
    stk_name_index x = {0};
    char local[] = "dense";
    CHECK(stk_name_index_put(&x, "dense", 1, 1));
    CHECK(stk_name_index_put(&x, local, 1, 2));
    local[0] = 'x'; /* the first pointer is the one that is kept */
    CHECK(stk_name_index_find(&x, "dense", 1) == 2);
    CHECK(x.count == 1);
    stk_name_index_release(&x);
}

TEST_MAIN()
