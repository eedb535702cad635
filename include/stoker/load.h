/* load.h - from the names of files to what a trainer takes, by the kind of the files:
 *
 *     stk_model *m = NULL;
 *     stk_loaded_data data;
 *     stk_error err;
 *     stk_load_options o = stk_load_defaults();
 *     const char *files[] = {"houses.csv"};      // or an .npz, two .npy, a pipeline's .json, a folder of pictures
 *     o.target = "price";
 *     if (stk_model_load_json("model.json", &m, &err) != STK_OK) {
 *         puts(err.message);
 *     } else if (stk_load_data(m, 1, files, &o, &data, &err) != STK_OK) {
 *         puts(err.message);
 *     } else {
 *         stk_goal goal = stk_default_goal(m, &data.view);
 *         printf("loss %s, metrics %s\n", goal.loss, goal.metrics);
 *         stk_loaded_data_release(&data);        // data.view is what stk_trainer_fit takes
 *     }
 *     stk_model_release(m);
 *
 * .npz      arrays x and y, x_train and y_train, or x0, x1 ... y0, y1 ...: as many as the model has inputs and outputs
 * .npy      several files: the inputs, then the targets; mapped, not read
 * .csv      one column is the target, all others side by side are the input
 * .json     a pipeline (doc/data-files.md)
 * a folder  pictures, with a folder inside per class, in the size that the model wants */
#ifndef STOKER_LOAD_H
#define STOKER_LOAD_H

#include "layers.h"
#include "train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_load_options {
    const char *x, *y;         /* of an .npz: names of arrays, "a,b"; NULL: the usual ones */
    const char *sample_weight; /* of an .npz: the array with one weight per sample; NULL: none */
    const char *target;        /* of a .csv: a column; NULL: the last one */
    bool no_targets;           /* to predict: there need be none */

    /* Of a folder of pictures; other data is cut by stk_fit_options. */
    int64_t batch;        /* 32 */
    bool shuffle;         /* another order in each epoch */
    uint64_t seed;        /* of that order and of the split */
    double validation;    /* share of the files that is left out for validation; 0 */
    bool validation_part; /* that share itself; never shuffled */
} stk_load_options;
STK_API stk_load_options stk_load_defaults(void);

enum { STK_LOAD_ARRAYS = 16 }; /* inputs or outputs at most */

/* The view leads into the struct: hand on pointers to it, do not copy it. */
typedef struct stk_loaded_data {
    stk_tensor *x[STK_LOAD_ARRAYS], *y[STK_LOAD_ARRAYS], *weights;
    stk_dataset *dataset; /* of a pipeline or a folder; then there are no arrays */
    stk_train_data view;
} stk_loaded_data;
STK_API STK_MUST_USE stk_status stk_load_data(const stk_model *model, int32_t n,
                                              const char *const *paths,
                                              const stk_load_options *options, stk_loaded_data *out,
                                              stk_error *err);
STK_API void stk_loaded_data_release(stk_loaded_data *data); /* empties it; NULL is fine */
STK_API bool stk_is_folder(const char *path);

/* Loss and metrics that fit the data: labels that are whole numbers mean a choice among classes, all else is a number
 * to come close to. Texts as stk_trainer_options takes them; they live for ever. */
typedef struct stk_goal {
    const char *loss, *metrics;
} stk_goal;
STK_API stk_goal stk_default_goal(const stk_model *model, const stk_train_data *data);

#ifdef __cplusplus
}
#endif
#endif
