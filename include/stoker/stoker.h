/* stoker.h - the whole of Stoker in one include, and the whole of it in one example: a line through points, trained.
 *
 *     stk_error err;
 *     stk_graph *g = NULL;
 *     stk_program *p = NULL;
 *     stk_tensor *x = NULL, *y = NULL, *loss = NULL;
 *     if (stk_graph_new(&g, &err) != STK_OK) puts(err.message);
 *     stk_val in = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){4, 1});
 *     stk_val want = stk_g_input(g, "y", STK_F32, 2, (int64_t[]){4, 1});
 *     stk_val v[2] = {stk_g_variable(g, "slope", STK_F32, 2, (int64_t[]){1, 1}),
 *                     stk_g_variable(g, "offset", STK_F32, 1, (int64_t[]){1})};
 *     stk_val out = stk_g_add(g, stk_g_matmul(g, in, v[0]), v[1]);
 *     stk_val error = stk_g_mean_all(g, stk_g_square(g, stk_g_sub(g, out, want)));
 *     stk_val d[2];
 *     stk_g_gradients(g, error, 2, v, d);
 *     for (int i = 0; i < 2; i++)
 *         stk_g_assign(g, v[i], stk_g_sub(g, v[i], stk_g_mul(g, d[i], stk_g_scalar(g, STK_F32, 0.1))));
 *     stk_g_output(g, "error", error);
 *
 *     if (stk_program_new(g, NULL, &p, &err) != STK_OK) puts(err.message);
 *     stk_tensor_from(STK_F32, 2, (int64_t[]){4, 1}, (float[]){0, 1, 2, 3}, &x, &err);
 *     stk_tensor_from(STK_F32, 2, (int64_t[]){4, 1}, (float[]){1, 3, 5, 7}, &y, &err);   // y = 2x + 1
 *     if (stk_program_feed(p, "x", x, &err) || stk_program_feed(p, "y", y, &err) ||
 *         stk_program_run(p, 500, &err) || stk_program_read(p, "error", &loss, &err))
 *         puts(err.message);
 *     printf("error after 500 steps: %g\n", stk_tensor_at(loss, 0));
 *     stk_tensor_release(loss), stk_tensor_release(x), stk_tensor_release(y);
 *     stk_program_release(p);
 *     stk_graph_release(g);
 *
 * Reading order: status.h (how calls fail), tensor.h, files.h, data.h (where batches come from), device.h, graph.h (build, differentiate, compile, run), nn.h,
 * image.h and recurrent.h (more to build with), eager.h (one operation at a time), layers.h (models of Keras' layers), optim.h, train.h
 * (fit, checkpoints), load.h (data files for a model), watch.h (where the time goes), paradox.h (why a GPU can be
 * slower). */
#ifndef STOKER_STOKER_H
#define STOKER_STOKER_H

#include "status.h"
#include "version.h"
#include "tensor.h"
#include "files.h"
#include "data.h"
#include "csv.h"
#include "picture.h"
#include "records.h"
#include "pixels.h"
#include "sources.h"
#include "device.h"
#include "graph.h"
#include "nn.h"
#include "image.h"
#include "recurrent.h"
#include "eager.h"
#include "calibrate.h"
#include "map_program.h"
#include "cache.h"
#include "selftest.h"
#include "layers.h"
#include "optim.h"
#include "metrics.h"
#include "train.h"
#include "placement.h"
#include "keras.h"
#include "load.h"
#include "watch.h"
#include "paradox.h"

#endif
