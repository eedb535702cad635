/* Near misses of names: Levenshtein's distance, with swaps of neighbouring letters as one step. */
#include "base/spelling.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { LONGEST = 64, MOST = 3 };

static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

static bool same(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

int32_t stk_word_index(const char *const *words, int32_t count, const char *word)
{
    for (int32_t i = 0; i < count; i++)
        if (!strcmp(words[i], word)) return i;
    return -1;
}

int32_t stk_word_distance(const char *a, size_t na, const char *b, size_t nb)
{
    if (na > LONGEST || nb > LONGEST) return LONGEST;
    int32_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= nb; j++) rows[0][j] = (int32_t)j;
    for (size_t i = 1; i <= na; i++) {
        int32_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = (int32_t)i;
        for (size_t j = 1; j <= nb; j++) {
            now[j] = smaller(before[j], now[j - 1]) + 1;
            now[j] = smaller(now[j], before[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                now[j] = smaller(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

void stk_did_you_mean(const char *name, const char *const *names, int32_t count, char *text,
                      size_t size)
{
    size_t length = strlen(name), used = 0;
    int32_t limit = 1 + (int32_t)(length / 3), found = 0;
    if (size) text[0] = 0;
    for (int32_t d = 0; d <= limit && found < MOST; d++)
        for (int32_t i = 0; i < count && found < MOST; i++) {
            if (!names[i] || stk_word_distance(name, length, names[i], strlen(names[i])) != d)
                continue;
            const char *between = found ? " or " : " Did you mean ";
            size_t need = strlen(between) + strlen(names[i]);
            if (used + need + 2 > size) return;
            memcpy(text + used, between, strlen(between));
            memcpy(text + used + strlen(between), names[i], strlen(names[i]));
            used += need;
            found++;
            text[used] = 0;
        }
    if (found) memcpy(text + used, "?", 2);
}
