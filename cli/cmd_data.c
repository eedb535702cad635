/* stoker data SUBCOMMAND ... - files of records: looking, checking, repairing, converting, measuring. */
#include "data.h"

#include <string.h>

static const struct {
    const char *name;
    int least, most; /* arguments behind the name; most -1: any number */
    int (*run)(const cli_args *args);
} parts[] = {
    {"inspect", 1, 1, data_inspect}, {"head", 1, 1, data_head},
    {"stats", 1, 1, data_stats},     {"verify", 1, -1, data_verify},
    {"repair", 2, 2, data_repair},   {"convert", 2, 2, data_convert},
    {"bench", 1, 1, data_bench},     {"explain", 1, 1, data_explain},
};
enum { PARTS = sizeof parts / sizeof *parts };

static const char *part_name(int index, const void *context)
{
    (void)context;
    return index < PARTS ? parts[index].name : NULL;
}

static int run(const cli_args *args)
{
    for (int i = 0; i < PARTS; i++) {
        if (strcmp(parts[i].name, args->rest[0]) != 0) continue;
        int n = args->nrest - 1;
        if (n < parts[i].least || (parts[i].most >= 0 && n > parts[i].most))
            return cli_usage(args, "%s takes %s%d file%s, here are %d", parts[i].name,
                             parts[i].most < 0 ? "at least " : "", parts[i].least,
                             parts[i].least == 1 ? "" : "s", n);
        return parts[i].run(args);
    }
    const char *near = cli_near(args->rest[0], part_name, NULL);
    return cli_usage(args, "there is no 'data %s'%s%s%s", args->rest[0],
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

bool data_record_options(const cli_args *args, stk_record_options *out)
{
    static const char *const packings[] = {"auto", "none", "gzip", "zlib"};
    *out = stk_record_options_defaults();
    const char *packing = cli_text(args, "compression", "auto");
    for (int i = 0; i < 4; i++)
        if (strcmp(packings[i], packing) == 0) {
            out->compression = (stk_compression)i;
            return true;
        }
    cli_usage(args, "--compression is '%s'; it is one of auto none gzip zlib", packing);
    return false;
}

static const cli_option options[] = {
    {"count", "N", "head: records to show (5)"},
    {"compression", "KIND", "of TFRecord files: auto none gzip zlib"},
    {"shards", "N", "convert: files the records are spread over (1)"},
    {"restart", NULL, "convert: forget what an interrupted run has done"},
    {"seconds", "S", "bench: how long each measurement takes (2)"},
    {"threads", "N", "bench: workers; 0 lets the tuner choose (0)"},
    {NULL, NULL, NULL},
};

const cli_command cli_data = {
    .name = "data",
    .arguments = "SUBCOMMAND FILE...",
    .summary = "look at, check, repair, convert and measure data files",
    .text =
        "inspect FILE            features, types, shapes and sizes\n"
        "head FILE               the first records of a TFRecord file\n"
        "stats FILE              smallest, largest, mean of each feature; balance of classes;\n"
        "                        how many numbers are NaN or infinite\n"
        "verify FILE...          checksums and contents; exit code 4 when something is damaged\n"
        "repair FILE OUT         a new file with the good records of a TFRecord file\n"
        "convert FROM TO         folder of pictures, .csv, .npz or TFRecord to .tfrecord (in "
        "shards);\n"
        "                        TFRecord to .csv or .npz. An interrupted conversion goes on where "
        "it\n"
        "                        was: shards are there whole or not at all.\n"
        "bench PIPELINE.json     elements and bytes per second of each stage, and which one "
        "limits\n"
        "explain PIPELINE.json   the stages and what they hand on\n"
        "\n"
        "FILE is a TFRecord file (plain, GZIP or ZLIB), a .csv, .npy or .npz file.\n",
    .examples = "stoker data inspect train.tfrecord\n"
                "stoker data verify shards/*.tfrecord\n"
                "stoker data convert photos/ photos.tfrecord --shards 8\n"
                "stoker data bench pipeline.json --seconds 5\n",
    .options = options,
    .least = 1,
    .most = -1,
    .run = run,
};
