/* data.h - what the parts of `stoker data` share. */
#ifndef STK_CLI_DATA_H
#define STK_CLI_DATA_H

#include "cli.h"

#include "stoker/sources.h"

/* One feature over all records that were looked at. */
typedef struct data_feature {
    char *name;
    stk_dtype dtype;
    bool list, mixed;       /* in feature lists; of several types */
    int64_t records, bytes; /* that have it */
    int64_t least, most;    /* values per record */
    int64_t numbers;        /* finite values seen */
    int64_t odd;            /* NaN and infinite ones */
    double low, high, sum;
    int64_t labels; /* distinct small integers, -1: too many or others */
    int64_t label[128], label_count[128];
} data_feature;

typedef struct data_catalog {
    data_feature *features;
    int count, room;
    int64_t examples, others; /* records that are Examples, and that are none */
    bool values;              /* look at the values, too */
    bool no_memory;
} data_catalog;

void data_catalog_add(data_catalog *c, const void *record, size_t size);
void data_catalog_free(data_catalog *c);
data_feature *data_catalog_find(data_catalog *c, const char *name, size_t size, bool make);

/* Progress on stderr when that is a terminal; nothing otherwise. */
typedef struct data_bar {
    const char *what;
    int64_t total, shown;
    bool on;
} data_bar;
void data_bar_start(data_bar *bar, const cli_args *args, const char *what, int64_t total);
void data_bar_show(data_bar *bar, int64_t done);
void data_bar_end(data_bar *bar);

bool data_ends(const char *path, const char *end); /* case does not count */
bool data_is_folder(const char *path);
bool data_is_array(const char *path); /* by its name: .csv, .npy, .npz */
/* Reader options from --compression. false: told. */
bool data_record_options(const cli_args *args, stk_record_options *out);

/* The subcommands; rest[0] is the subcommand's own name. */
int data_inspect(const cli_args *args);
int data_head(const cli_args *args);
int data_stats(const cli_args *args);
int data_verify(const cli_args *args);
int data_repair(const cli_args *args);
int data_convert(const cli_args *args);
int data_bench(const cli_args *args);
int data_explain(const cli_args *args);

#endif
