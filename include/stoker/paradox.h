/* paradox.h - why a small network can be slower on a GPU than on a CPU, shown on the machine at hand. Six causes, each measured
 * as people write it and as it should be, on every device, by turns.
 *
 *     stk_error err;
 *     stk_paradox *p = NULL;
 *     char *text = NULL;
 *     stk_paradox_options o = stk_paradox_options_defaults();
 *     o.only = "5";                                // tiny operations alone
 *     o.seconds = 2;
 *     if (stk_paradox_run(&o, &p, &err) == STK_OK &&
 *         stk_paradox_render(p, STK_REPORT_TEXT, &text, &err) == STK_OK)
 *         puts(text);
 *     stk_text_free(text);
 *     stk_paradox_release(p);
 *
 * Nothing is downloaded and nothing is left behind: data is drawn at random, the record file has no name
 * at all. Rows of src/watch/paradox/experiments.def; doc/paradox.md explains them. */
#ifndef STOKER_PARADOX_H
#define STOKER_PARADOX_H

#include "watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row: a pair of programs that do the same work. */
typedef struct stk_paradox_row {
    const char *id;      /* "1a"; all rows of cause 1 begin with 1 */
    const char *name;    /* "augmentation, pictures in memory" */
    const char *per;     /* what times are per: "picture", "million adds" */
    const char *written; /* as people write it */
    const char *cured;   /* what the other one does instead */
    const char *cause, *cure;
    bool changes_mathematics; /* the two compute different numbers, both right */
} stk_paradox_row;
STK_API int32_t stk_paradox_row_count(void);
STK_API stk_paradox_row stk_paradox_row_at(int32_t index); /* empty texts when there is none */

/* What became of one of the two. */
typedef struct stk_paradox_side {
    double seconds; /* for one `per`; median of the turns */
    /* Shares of its time (making models and programs is "building"); all 0 when there was too little to book. */
    double book[STK_BOOK_COUNT];
} stk_paradox_side;

/* A row on a device. */
typedef struct stk_paradox_cell {
    int32_t row;    /* stk_paradox_row_at */
    int32_t device; /* stk_paradox_device */
    stk_paradox_side written, cured;
    stk_gain gain;
    const char *judged; /* "faster", "slower", "no difference", "too noisy", "failed" */
    char note[160];     /* what else was seen: "the first time ever 35 ms"; "" */
    char trouble[256];  /* why it could not be measured; "" otherwise */
} stk_paradox_cell;

typedef struct stk_paradox stk_paradox;
typedef struct stk_paradox_options {
    const char *only; /* causes or rows: "3,5b"; NULL: all */
    /* By name; 0: cpu:0, all GPUs, and apart:0 where there is one. CPUs behind OpenCL are taken by name only. */
    const char *const *devices;
    int32_t ndevices;
    double seconds; /* of measuring, about; 30 for each device */
    /* NULL, or called between turns, ten times a second at most: how much is done, what is measured; false ends it all with
     * STK_ERR_CANCELLED. */
    bool (*progress)(void *context, double share, const char *doing);
    /* NULL, or called when a row was measured on all devices: its cells, one per device. */
    void (*row)(void *context, const stk_paradox *p, const stk_paradox_cell *cells, int32_t n);
    void *context;
} stk_paradox_options;
STK_API stk_paradox_options stk_paradox_options_defaults(void);

/* Unknown rows and devices are refused with a list of those that exist. */
STK_API STK_MUST_USE stk_status stk_paradox_run(const stk_paradox_options *options,
                                                stk_paradox **out, stk_error *err);
STK_API void stk_paradox_release(stk_paradox *p); /* NULL is fine */

STK_API int32_t stk_paradox_device_count(const stk_paradox *p);
STK_API const stk_device_report *stk_paradox_device(const stk_paradox *p, int32_t index); /* NULL */
STK_API int32_t stk_paradox_cell_count(const stk_paradox *p);
STK_API const stk_paradox_cell *stk_paradox_cell_at(const stk_paradox *p, int32_t index); /* NULL */

/* kind: text, JSON (doc/paradox.md) or HTML. Free with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_paradox_render(const stk_paradox *p, stk_report_kind kind,
                                                   char **text, stk_error *err);
/* HTML into a file, whole or not at all. */
STK_API STK_MUST_USE stk_status stk_paradox_save(const stk_paradox *p, const char *path,
                                                 stk_error *err);
/* The lines of the text: its head with the devices; a row with its cells; what the devices say about each other. */
STK_API STK_MUST_USE stk_status stk_paradox_head(const stk_paradox *p, char **text, stk_error *err);
STK_API STK_MUST_USE stk_status stk_paradox_lines(const stk_paradox *p,
                                                  const stk_paradox_cell *cells, int32_t n,
                                                  char **text, stk_error *err);
STK_API STK_MUST_USE stk_status stk_paradox_foot(const stk_paradox *p, char **text, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
