/* The signatures of Gemmini's library that emitted code calls, as functions that compute in plain C.
 *
 * Argument names and order: include/gemmini.h of ucb-bar/gemmini-rocc-tests at 2c4f9174.  The bodies are this
 * project's own: they walk the tiles that the call states, so that a wrong tile gives a wrong result. */
#ifndef GEMMINI_H
#define GEMMINI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define DIM 16
#define NO_ACTIVATION 0
#define ACC_SCALE_IDENTITY 1.0f
#define MVIN_SCALE_IDENTITY 1.0f
typedef int32_t elem_t;
typedef int32_t acc_t;
typedef float scale_t;
typedef float scale_acc_t;
typedef float acc_scale_t;
enum tiled_matmul_type_t { OS, WS, CPU };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static void tiled_matmul(size_t dim_I, size_t dim_J, size_t dim_K, const elem_t *A, const elem_t *B,
                         const void *D, void *C, size_t stride_A, size_t stride_B, size_t stride_D,
                         size_t stride_C, scale_t A_scale_factor, scale_t B_scale_factor,
                         scale_acc_t D_scale_factor, int act, acc_scale_t scale, acc_scale_t bert_scale,
                         bool repeating_bias, size_t tile_I, size_t tile_J, size_t tile_K, bool transpose_A,
                         bool transpose_B, bool full_C, bool low_D, uint8_t weightA,
                         enum tiled_matmul_type_t type) {
  elem_t *out = (elem_t *)C;
  (void)D, (void)stride_D, (void)A_scale_factor, (void)B_scale_factor, (void)D_scale_factor, (void)act;
  (void)scale, (void)bert_scale, (void)repeating_bias, (void)full_C, (void)low_D, (void)weightA;
  if (transpose_A || transpose_B || type != WS || !tile_I || !tile_J || !tile_K) exit(3);
  if ((tile_I - 1) * DIM >= dim_I || (tile_J - 1) * DIM >= dim_J || (tile_K - 1) * DIM >= dim_K) exit(4);
  for (size_t i0 = 0; i0 < dim_I; i0 += tile_I * DIM)
    for (size_t j0 = 0; j0 < dim_J; j0 += tile_J * DIM)
      for (size_t k0 = 0; k0 < dim_K; k0 += tile_K * DIM)
        for (size_t i = i0; i < least(dim_I, i0 + tile_I * DIM); i++)
          for (size_t j = j0; j < least(dim_J, j0 + tile_J * DIM); j++) {
            acc_t sum = k0 ? out[i * stride_C + j] : 0;
            for (size_t k = k0; k < least(dim_K, k0 + tile_K * DIM); k++)
              sum += A[i * stride_A + k] * B[k * stride_B + j];
            out[i * stride_C + j] = sum;
          }
}

static void tiled_conv(int batch_size, int in_row_dim, int in_col_dim, int in_channels, int out_channels,
                       int out_row_dim, int out_col_dim, int stride, int input_dilation, int kernel_dilation,
                       int padding, int kernel_dim, int in_stride, int weight_stride, int out_stride,
                       bool wrot180, bool trans_output_1203, bool trans_input_3120, bool trans_weight_1203,
                       bool trans_weight_0132, int batches, int porows, int pocols, int pochs, int krows,
                       int kcols, int kchs, const elem_t *input, const elem_t *weights, const acc_t *bias,
                       elem_t *output, int act, acc_scale_t scale, int pool_size, int pool_stride,
                       int pool_padding, enum tiled_matmul_type_t type) {
  (void)bias, (void)act, (void)scale, (void)pool_size, (void)pool_padding;
  if (wrot180 || trans_output_1203 || trans_input_3120 || trans_weight_1203 || trans_weight_0132) exit(3);
  if (input_dilation != 1 || kernel_dilation != 1 || padding || pool_stride || type != WS) exit(3);
#define EACH(x, most, tile) for (int x##0 = 0; x##0 < most; x##0 += tile)
#define INSIDE(x, most, tile) for (int x = x##0; x < most && x < x##0 + tile; x++)
  EACH(b, batch_size, batches) EACH(p, out_row_dim, porows) EACH(q, out_col_dim, pocols)
  EACH(k, out_channels, pochs) EACH(r, kernel_dim, krows) EACH(s, kernel_dim, kcols) EACH(c, in_channels, kchs)
  INSIDE(b, batch_size, batches) INSIDE(p, out_row_dim, porows) INSIDE(q, out_col_dim, pocols)
  INSIDE(k, out_channels, pochs) {
    acc_t *out = &output[((b * out_row_dim + p) * out_col_dim + q) * out_stride + k];
    if (!r0 && !s0 && !c0) *out = 0;
    INSIDE(r, kernel_dim, krows) INSIDE(s, kernel_dim, kcols) INSIDE(c, in_channels, kchs)
      *out += input[((b * in_row_dim + p * stride + r) * in_col_dim + q * stride + s) * in_stride + c] *
              weights[((r * kernel_dim + s) * in_channels + c) * weight_stride + k];
  }
}
#endif
