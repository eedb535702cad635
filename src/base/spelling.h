/* spelling.h - names that were probably meant: what a message says after "there is no ...". */
#ifndef STK_BASE_SPELLING_H
#define STK_BASE_SPELLING_H

#include <stddef.h>
#include <stdint.h>

/* Place of a word in a list; -1: not there. */
int32_t stk_word_index(const char *const *words, int32_t count, const char *word);

/* Insertions, deletions, changes and swaps of neighbours that lead from one word to the other; upper and lower case are the
 * same. Words of more than 64 letters are that far from all others. */
int32_t stk_word_distance(const char *a, size_t na, const char *b, size_t nb);

/* The names of a list (NULLs are passed over) that are spelled nearly like `name`: " Did you mean Dense or Dot?", or "". */
void stk_did_you_mean(const char *name, const char *const *names, int32_t count, char *text,
                      size_t size);

#endif
