/* options.h - options of optimizers, schedules, losses and metrics, by table.
 *
 * A row says how an option is called, which member of a C struct it fills, and what numbers fit. One reader serves both
 * writings, text and Keras' JSON:
 *
 *     adam:lr=1e-3,amsgrad=true            name, then name=value pairs (stk_options_text)
 *     {"learning_rate": 0.001, ...}        the "config" object of a Keras class (stk_options_json)
 *
 * Defaults are written as text as well, one per class, so that a class's row shows what it takes. */
#ifndef STK_OPTIM_OPTIONS_H
#define STK_OPTIM_OPTIONS_H

#include "base/json.h"
#include "base/memory.h"

#include <stddef.h>

typedef enum stk_option_kind {
    STK_OPTION_REAL,  /* double */
    STK_OPTION_INT,   /* int64_t */
    STK_OPTION_BOOL,  /* bool */
    STK_OPTION_CHOICE /* int64_t: place in `choices`, "roc|pr" */
} stk_option_kind;

typedef struct stk_option {
    const char *name, *alias; /* alias NULL: none */
    stk_option_kind kind;
    size_t offset;
    double low, high; /* what fits, both included */
    double none;      /* what None is kept as; NaN: the option cannot be None */
    const char *choices;
} stk_option;
#define STK_OPTION(type, member, alias_, kind_, low_, high_, none_)                                \
    {                                                                                              \
        .name = #member, .alias = (alias_), .kind = STK_OPTION_##kind_,                            \
        .offset = offsetof(type, member), .low = (low_), .high = (high_), .none = (none_)          \
    }

#define STK_OPTION_WORDS(type, member, choices_, none_)                                            \
    {                                                                                              \
        .name = #member, .kind = STK_OPTION_CHOICE, .offset = offsetof(type, member),              \
        .none = (none_), .choices = (choices_)                                                     \
    }

/* A set of rows. `takes` lists the names that one class has, split by spaces; NULL: all of them. */
typedef struct stk_options {
    const stk_option *rows;
    int32_t count;
    const char *takes;
    const char *what; /* "optimizer 'adam'", for messages */
} stk_options;

/* Appends to `takes` the names that "a=1,b=2" has: "a b". */
void stk_options_names(const char *defaults, char *takes, size_t size);
/* Fills one member from the text of a value. */
STK_MUST_USE stk_status stk_options_set(const stk_options *o, const char *name, size_t name_size,
                                        const char *value, size_t value_size, void *out,
                                        stk_error *err);
/* "a=1,b=2": all pairs. */
STK_MUST_USE stk_status stk_options_text(const stk_options *o, const char *text, void *out,
                                         stk_error *err);
/* A JSON value into the member `name`. */
STK_MUST_USE stk_status stk_options_json(const stk_options *o, const stk_json *value, void *out,
                                         stk_error *err);
/* Are the numbers of a struct that was filled by hand in range? */
STK_MUST_USE stk_status stk_options_check(const stk_options *o, const void *in, stk_error *err);
/* All members of `takes`, in that order, into an open JSON object. */
void stk_options_write(const stk_options *o, const void *in, stk_json_writer *w);

/* A class among several: its index by name, alias or Keras class, or -1 and a message that lists what exists. Upper and lower
 * case, '_' and '-' do not count. */
typedef struct stk_names {
    const char *what; /* "optimizer" */
    int32_t count;
    const char *(*name)(int32_t index, int32_t which); /* which: 0 is the main one; NULL ends */
} stk_names;
int32_t stk_names_find(const stk_names *names, const char *text, size_t size, stk_error *err);

#endif
