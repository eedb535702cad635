/* dialect.h - the language of the kernels: what OpenCL C 1.2 and CUDA C have in common, with names for what they have not. Stands in front of
 * every text.
 *
 * Rules: arrays are a block and an offset in elements; numbers of a problem come by value (params.h); 32-bit indices, checked by the host; no
 * float atomics, so that two runs have the same bits; fused operations are spelled out; barriers only where all of a group arrive.
 *
 *     SK_KERNEL void twice(SK_IN(float, x), SK_OUT(float, y), const sk_lines p)
 *     {
 *         SK_USE_IN(float, x);
 *         SK_USE_OUT(float, y);
 *         int i = SK_ITEM;
 *         if (i < p.n) y[i] = 2.0f * x[i];
 *     }                                                                                                                        */
#if defined(SK_OPENCL)
#pragma OPENCL FP_CONTRACT OFF
#ifdef SK_HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define SK_KERNEL __kernel
#define SK_FN     static inline
#define SK_GLOBAL __global
#define SK_LOCAL  __local
/* The same of a pointer that is an argument of a function. */
#define SK_LOCAL_ARG         __local
#define SK_ITEM              ((int)get_global_id(0))
#define SK_LANE              ((int)get_local_id(0))
#define SK_GROUP             ((int)get_group_id(0))
#define SK_GROUP_Y           ((int)get_group_id(1))
#define SK_GROUP_Z           ((int)get_group_id(2))
#define SK_BARRIER           barrier(CLK_LOCAL_MEM_FENCE)
#define SK_BARRIER_GLOBAL    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define SK_FMA(a, b, c)      fma(a, b, c)
#define SK_BITS_OF_FLOAT(x)  as_uint(x)
#define SK_FLOAT_OF_BITS(x)  as_float(x)
#define SK_DOUBLE_OF_BITS(x) as_double(x)
#define SK_BITS_OF_DOUBLE(x) as_ulong(x)
#define SK_MUL_HIGH(a, b)    mul_hi(a, b)
#define SK_MUL_HIGH64(a, b)  mul_hi(a, b)
typedef long sk_long;
typedef ulong sk_ulong;
typedef uint sk_uint;
#define sk_load_f16(p, i)     vload_half((i), (SK_GLOBAL const half *)(p))
#define sk_store_f16(p, i, v) vstore_half_rte((v), (i), (SK_GLOBAL half *)(p))
#else
#define SK_KERNEL extern "C" __global__
#define SK_FN     static __device__ __forceinline__
#define SK_GLOBAL
#define SK_LOCAL __shared__
#define SK_LOCAL_ARG
#define SK_ITEM              ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define SK_LANE              ((int)threadIdx.x)
#define SK_GROUP             ((int)blockIdx.x)
#define SK_GROUP_Y           ((int)blockIdx.y)
#define SK_GROUP_Z           ((int)blockIdx.z)
#define SK_BARRIER           __syncthreads()
#define SK_BARRIER_GLOBAL    __syncthreads()
#define SK_FMA(a, b, c)      fma(a, b, c)
#define SK_BITS_OF_FLOAT(x)  __float_as_uint(x)
#define SK_FLOAT_OF_BITS(x)  __uint_as_float(x)
#define SK_DOUBLE_OF_BITS(x) __longlong_as_double((long long)(x))
#define SK_BITS_OF_DOUBLE(x) ((unsigned long long)__double_as_longlong(x))
#define SK_MUL_HIGH(a, b)    __umulhi(a, b)
#define SK_MUL_HIGH64(a, b)  __umul64hi(a, b)
#define SK_HAS_F64
#ifndef INFINITY /* NVRTC has no math.h */
#define INFINITY __int_as_float(0x7f800000)
#define NAN      __int_as_float(0x7fc00000)
#endif
typedef long long sk_long;
typedef unsigned long long sk_ulong;
typedef unsigned int sk_uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
#define ulong                 unsigned long long
SK_FN float sk_half_to_float(ushort h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
SK_FN ushort sk_float_to_half(float f)
{
    ushort h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
#define sk_load_f16(p, i)     sk_half_to_float((p)[i])
#define sk_store_f16(p, i, v) ((p)[i] = sk_float_to_half(v))
#endif

#define SK_IN(T, x)      SK_GLOBAL const T *x##_block, sk_long x##_at
#define SK_OUT(T, x)     SK_GLOBAL T *x##_block, sk_long x##_at
#define SK_USE_IN(T, x)  SK_GLOBAL const T *x = x##_block + x##_at
#define SK_USE_OUT(T, x) SK_GLOBAL T *x = x##_block + x##_at

/* ---- element types: as stored <-> as computed ---- */
SK_FN float sk_of_bf16(ushort h) { return SK_FLOAT_OF_BITS((uint)h << 16); }
SK_FN ushort sk_to_bf16(float f)
{
    uint bits = SK_BITS_OF_FLOAT(f);
    uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (ushort)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}
#define sk_load_f32(p, i)      ((p)[i])
#define sk_load_f64(p, i)      ((p)[i])
#define sk_load_bf16(p, i)     sk_of_bf16((p)[i])
#define sk_load_i8(p, i)       ((sk_long)(p)[i])
#define sk_load_u8(p, i)       ((sk_long)(p)[i])
#define sk_load_i16(p, i)      ((sk_long)(p)[i])
#define sk_load_u16(p, i)      ((sk_long)(p)[i])
#define sk_load_i32(p, i)      ((sk_long)(p)[i])
#define sk_load_u32(p, i)      ((sk_long)(p)[i])
#define sk_load_i64(p, i)      ((p)[i])
#define sk_load_u64(p, i)      ((sk_long)(p)[i])
#define sk_load_bool(p, i)     ((int)((p)[i] != 0))
#define sk_store_f32(p, i, v)  ((p)[i] = (v))
#define sk_store_f64(p, i, v)  ((p)[i] = (v))
#define sk_store_bf16(p, i, v) ((p)[i] = sk_to_bf16(v))
#define sk_store_i8(p, i, v)   ((p)[i] = (char)(v))
#define sk_store_u8(p, i, v)   ((p)[i] = (uchar)(v))
#define sk_store_i16(p, i, v)  ((p)[i] = (short)(v))
#define sk_store_u16(p, i, v)  ((p)[i] = (ushort)(v))
#define sk_store_i32(p, i, v)  ((p)[i] = (int)(v))
#define sk_store_u32(p, i, v)  ((p)[i] = (uint)(v))
#define sk_store_i64(p, i, v)  ((p)[i] = (v))
#define sk_store_u64(p, i, v)  ((p)[i] = (sk_ulong)(v))
#define sk_store_bool(p, i, v) ((p)[i] = (uchar)((v) != 0))
#define SK_GLUE_(a, b)         a##b
#define SK_GLUE(a, b)          SK_GLUE_(a, b)
