/* stoker paradox - why a GPU can be slower than a CPU, shown on this machine. */
#include "run.h"
#include "show.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DEVICES = 8 };

typedef struct telling {
    const cli_args *args;
    bool bar, headed;
} telling;

static bool draw_progress(void *context, double share, const char *doing)
{
    enum { WIDTH = 30 };
    const telling *t = context;
    char bar[WIDTH + 1] = {0};
    for (int i = 0; i < WIDTH; i++) bar[i] = i < share * WIDTH ? '=' : ' ';
    if (t->bar) fprintf(stderr, "\rmeasuring [%s] %s\x1b[K", bar, doing);
    return true;
}

/* Takes the text over. */
static void print(char *text)
{
    if (text) fputs(text, stdout);
    stk_text_free(text);
    fflush(stdout);
}

/* Rows are shown as they come. */
static void tell_row(void *context, const stk_paradox *p, const stk_paradox_cell *cells, int32_t n)
{
    telling *t = context;
    char *text = NULL;
    stk_error err;
    if (t->bar) fprintf(stderr, "\r\x1b[K");
    if (t->args->json || t->args->quiet) return;
    if (!t->headed && stk_paradox_head(p, &text, &err) == STK_OK) print(text);
    t->headed = true;
    if (stk_paradox_lines(p, cells, n, &text, &err) == STK_OK) print(text);
}

/* There is nothing to save and nothing to put back. */
static void end_at_once(int number)
{
    static const char message[] = "\nstoker paradox: interrupted; nothing was written\n";
    ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);
    (void)ignored, (void)number;
    _exit(CLI_INTERRUPTED);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        struct sigaction now;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(numbers[i], &(struct sigaction){.sa_handler = end_at_once}, NULL);
    }
}

static stk_status tell(const cli_args *args, const stk_paradox *p, stk_error *err)
{
    char *text = NULL;
    const char *html = cli_text(args, "html", NULL);
    stk_status status = STK_OK;
    if (args->json)
        status = stk_paradox_render(p, STK_REPORT_JSON, &text, err);
    else if (!args->quiet)
        status = stk_paradox_foot(p, &text, err);
    if (status != STK_OK) return status;
    print(text);
    if (args->json) putchar('\n');
    if (html) status = stk_paradox_save(p, html, err);
    if (status == STK_OK && html && !args->json && !args->quiet) printf("html: %s\n", html);
    return status;
}

/* "cpu:0,gpu:0" into names; false: too many of them. */
static bool split(char *list, const char *names[MOST_DEVICES], int32_t *n)
{
    char *rest = NULL;
    for (char *word = strtok_r(list, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
        if (*n == MOST_DEVICES) return false;
        names[(*n)++] = word;
    }
    return true;
}

static int measure(const cli_args *args, stk_paradox_options o)
{
    telling t = {.args = args, .bar = cli_wants_bar(args, STDERR_FILENO)};
    stk_paradox *p = NULL;
    stk_error err;
    stk_status status = cli_check_outputs(args, (const char *[]){"html", NULL}, &err);
    o.progress = draw_progress;
    o.row = tell_row;
    o.context = &t;
    catch_signals();
    if (status == STK_OK) status = stk_paradox_run(&o, &p, &err);
    if (t.bar) fprintf(stderr, "\r\x1b[K");
    if (status == STK_OK) status = tell(args, p, &err);
    stk_paradox_release(p);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}

static int run(const cli_args *args)
{
    stk_paradox_options o = stk_paradox_options_defaults();
    const char *names[MOST_DEVICES];
    if (!cli_double(args, "seconds", 0.1, 3600, &o.seconds)) return CLI_USAGE;
    o.only = cli_text(args, "only", NULL);
    o.devices = names;
    char *list = strdup(cli_text(args, "device", ""));
    if (!list) return CLI_MEMORY;
    int code = split(list, names, &o.ndevices)
                   ? measure(args, o)
                   : cli_usage(args, "--device takes %d names at most", MOST_DEVICES);
    free(list);
    return code;
}

static const cli_option OPTIONS[] = {
    {"only", "N,N...", "these causes (3) or rows (5b) alone"},
    {"device", "NAME,...", "these devices (default: cpu:0 and every GPU)"},
    {"seconds", "S", "about how long to measure on each device (default: 30)"},
    {"html", "FILE", "write a page with tables and bars"},
    {NULL, NULL, NULL},
};

const cli_command cli_paradox = {
    .name = "paradox",
    .arguments = "",
    .summary = "why a GPU can be slower than a CPU: six causes and cures, measured here",
    .text =
        "Runs nine small experiments on every device, each as a pair: as people write it, and\n"
        "cured. The two take turns; the gain is told with its 95 % interval, or as too noisy, and\n"
        "beside it where the time of both went.\n"
        "  1  pictures augmented on one thread, from memory (1a) and from TFRecord (1b)\n"
        "  2  making a model and its first step, against a step of one that runs\n"
        "  3  small batches of a small dense net\n"
        "  4  the same net over 100 000 samples, scaled row by row\n"
        "  5  a million tiny adds (5a) and matrix products (5b), called one by one\n"
        "  6  a host function between two convolutions (6a), results read every step (6b)\n"
        "Takes under a minute per device; needs no files and leaves none. CPUs behind OpenCL are\n"
        "measured when --device names them, and never called a GPU.\n",
    .examples = "stoker paradox\n"
                "# tiny batches and tiny operations alone, as a page to look at\n"
                "stoker paradox --only 3,5 --html paradox.html\n"
                "stoker paradox --device cpu:0,opencl:0 --json\n",
    .options = OPTIONS,
    .least = 0,
    .most = 0,
    .run = run,
};
