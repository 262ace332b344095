/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels.cl uses of OpenCL C, in terms of NVIDIA's instructions, so that clang makes kernels.ptx of that very
 * file (scripts/ptx.sh). OpenCL C, whatever the name's end says. No library of NVIDIA's or of clang's takes part.
 */
typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned long size_t;

#define CLK_LOCAL_MEM_FENCE 1
#define OVERLOAD static __attribute__((overloadable, always_inline))

/* The launch covers exactly the items, in one dimension. */
OVERLOAD size_t get_group_id(uint dimension) {
    (void)dimension;
    return (uint)__nvvm_read_ptx_sreg_ctaid_x();
}
OVERLOAD size_t get_local_id(uint dimension) {
    (void)dimension;
    return (uint)__nvvm_read_ptx_sreg_tid_x();
}
OVERLOAD size_t get_global_id(uint dimension) {
    return get_group_id(dimension) * (uint)__nvvm_read_ptx_sreg_ntid_x() + get_local_id(dimension);
}
OVERLOAD void barrier(uint fences) {
    (void)fences;
    __syncthreads();
}
OVERLOAD uint min(uint a, uint b) {
    return a < b ? a : b;
}
OVERLOAD float fmax(float a, float b) {
    return __nvvm_fmax_f(a, b);
}
OVERLOAD float sqrt(float x) {
    return __nvvm_sqrt_rn_f(x);
}

/* e^x as 2^(x log2 e), the product in two parts so that large x lose nothing: within 2 ulp or so. */
OVERLOAD float exp(float x) {
    const float whole = __builtin_rintf(x * 1.44269504f);
    const float rest = __builtin_fmaf(whole, -1.42860677e-6f, __builtin_fmaf(whole, -0.693145752f, x));
    return __nvvm_ex2_approx_f(rest * 1.44269504f) * __nvvm_ex2_approx_f(whole);
}
OVERLOAD uint atomic_inc(volatile global uint *at) {
    return __sync_fetch_and_add(at, 1u);
}
