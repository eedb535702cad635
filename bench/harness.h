// Timing for benchmark programs: slices of work until the figure is stable, then median and
// spread, printed as one JSON line that bench/run reads. Knows nothing of Stoker; bench_peak.c
// uses it as well as the rows of bench/rows*.c. The line's keys are listed in bench/README.md.
//
// A benchmark program is a table of rows and one call:
//
//     static const bench_row rows[] = {
//         {.name = "tiny_step", .unit = "us", .setup = tiny_setup, .run = tiny_run,
//          .teardown = tiny_free},
//         {.name = "rss", .unit = "MB", .value = rss_value},
//     };
//     int main(int argc, char **argv) { return bench_main(argc, argv, rows, 2); }
#ifndef STOKER_BENCH_HARNESS_H
#define STOKER_BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_options {
    const char *row; // NULL: print the names of all rows
    double seconds;  // measuring time, warm-up not included
    int threads;     // what the program under test may use
} bench_options;

// The functions return 0, or anything else after they have said on stderr what failed.
// A row has either run (timed per iteration) or value (a number it finds out by itself).
typedef struct bench_row {
    const char *name; // as in bench/rows.json
    const char *unit; // timed rows: "ns", "us", "ms" or "s"; others: anything, e.g. "MB"
    int (*setup)(const bench_options *options, void **state); // optional
    int (*run)(void *state, int64_t iterations);
    int (*value)(const bench_options *options, double *value);
    int (*finish)(void *state); // optional: after the timing, for bench_note_* and checks
    void (*teardown)(void *state);
} bench_row;

enum { BENCH_MAX_SAMPLES = 512 };

typedef struct bench_samples {
    int count;
    double value[BENCH_MAX_SAMPLES]; // seconds per iteration
} bench_samples;

typedef struct bench_summary {
    double median, p10, p90, best;
} bench_summary;

// Runs everything: arguments, the row, its line. Returns main's exit code: 0 measured,
// 1 the row failed, 2 wrong arguments, 3 no such row.
int bench_main(int argc, char **argv, const bench_row *rows, size_t row_count);

// Adds a key to the line of the current row; call from setup, value or finish. The text is copied.
void bench_note_text(const char *key, const char *text);
void bench_note_number(const char *key, double number);
void bench_note_numbers(const char *key, int count, const double *numbers); // at most 24
void bench_note_seconds(const char *key, double seconds);                   // in the row's unit

// The parts, for programs that print something else than a row.
double bench_now(void); // seconds, monotonic
int bench_time_slices(int (*run)(void *state, int64_t iterations), void *state, double seconds,
                      bench_samples *out);
bench_summary bench_summarize(const bench_samples *samples);
double bench_peak_rss_mb(void); // of this process image; 0 when the system does not tell

#endif
