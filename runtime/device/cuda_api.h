/* The part of the CUDA driver API that libblk uses, declared here so that no toolkit is needed to build.
 *
 * One list gives the table of functions, the names to resolve and (in tests/unit/test_cuda_decl.c, where a cuda.h is
 * installed) the proof that each declaration is NVIDIA's.  Names carry the version suffix that libcuda exports. */
#ifndef BLK_CUDA_API_H
#define BLK_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#ifndef CUDA_VERSION /* cuda.h, when a test includes it first, brings its own */
typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUlib_st *CUlibrary;
typedef int CUdevice_attribute, CUfunction_attribute, CUjit_option, CUjitInputType;
typedef int CUpointer_attribute, CUlaunchAttributeID, CUlibraryOption;
typedef struct CUlaunchAttribute_st {
	CUlaunchAttributeID id;
	uint32_t unused;
	union {
		uint64_t room[8];
		struct {
			unsigned x, y, z;
		} clusterDim;
		int programmaticStreamSerializationAllowed;
	} value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig_st {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
} CUlaunchConfig;
typedef int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
	CUtensorMapFloatOOBfill;
typedef struct CUtensorMap_st {
	_Alignas(64) uint64_t opaque[16];
} CUtensorMap;
#endif

/*      name  parameters */
#define CUDA_CALLS(X)                                                                                                  \
	X(cuInit, (unsigned flags))                                                                                    \
	X(cuDriverGetVersion, (int *version))                                                                          \
	X(cuGetErrorName, (CUresult error, const char **text))                                                         \
	X(cuGetErrorString, (CUresult error, const char **text))                                                       \
	X(cuDeviceGetCount, (int *count))                                                                              \
	X(cuDeviceGet, (CUdevice * device, int ordinal))                                                               \
	X(cuDeviceGetName, (char *name, int room, CUdevice device))                                                    \
	X(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device))                           \
	X(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                                      \
	X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                                            \
	X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                             \
	X(cuCtxGetCurrent, (CUcontext * context))                                                                      \
	X(cuCtxPushCurrent_v2, (CUcontext context))                                                                    \
	X(cuCtxPopCurrent_v2, (CUcontext * context))                                                                   \
	X(cuCtxGetDevice, (CUdevice * device))                                                                         \
	X(cuCtxSynchronize, (void))                                                                                    \
	X(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                                        \
	X(cuMemFree_v2, (CUdeviceptr address))                                                                         \
	X(cuMemAllocHost_v2, (void **memory, size_t bytes))                                                            \
	X(cuMemFreeHost, (void *memory))                                                                               \
	X(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t * bytes, CUdeviceptr address))                          \
	X(cuPointerGetAttribute, (void *value, CUpointer_attribute attribute, CUdeviceptr address))                    \
	X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))                                           \
	X(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                                                 \
	X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                     \
	X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))                       \
	X(cuStreamCreate, (CUstream * stream, unsigned flags))                                                         \
	X(cuStreamSynchronize, (CUstream stream))                                                                      \
	X(cuStreamDestroy_v2, (CUstream stream))                                                                       \
	X(cuEventCreate, (CUevent * event, unsigned flags))                                                            \
	X(cuEventRecord, (CUevent event, CUstream stream))                                                             \
	X(cuEventSynchronize, (CUevent event))                                                                         \
	X(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))                                       \
	X(cuEventDestroy_v2, (CUevent event))                                                                          \
	X(cuLinkCreate_v2, (unsigned noptions, CUjit_option *options, void **values, CUlinkState *state))              \
	X(cuLinkAddData_v2, (CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,       \
				    unsigned noptions, CUjit_option *options, void **values))                          \
	X(cuLinkComplete, (CUlinkState state, void **cubin, size_t *bytes))                                            \
	X(cuLinkDestroy, (CUlinkState state))                                                                          \
	X(cuModuleLoadDataEx,                                                                                          \
		(CUmodule * module, const void *image, unsigned noptions, CUjit_option *options, void **values))       \
	X(cuModuleUnload, (CUmodule module))                                                                           \
	X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))                             \
	X(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function))                       \
	X(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value))                        \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, CUfunction function, int threads, size_t shared)) \
	X(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
				  unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,          \
				  void **parameters, void **extra))

/* What drivers before 12.0 lack: null there. */
#define CUDA_LATER_CALLS(X)                                                                                            \
	X(cuTensorMapEncodeTiled,                                                                                      \
		(CUtensorMap * map, CUtensorMapDataType type, unsigned rank, void *address, const uint64_t *extents,   \
			const uint64_t *strides, const unsigned *box, const unsigned *steps,                           \
			CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,                                  \
			CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill))                               \
	X(cuLaunchKernelEx, (const CUlaunchConfig *launch, CUfunction function, void **parameters, void **extra))      \
	X(cuLibraryLoadData,                                                                                           \
		(CUlibrary * library, const void *code, CUjit_option *options, void **values, unsigned noptions,       \
			CUlibraryOption *library_options, void **library_values, unsigned nlibrary_options))           \
	X(cuLibraryGetModule, (CUmodule * module, CUlibrary library))                                                  \
	X(cuLibraryUnload, (CUlibrary library))

/*      ours  value  cuda.h's */
#define CUDA_NUMBERS(X)                                                                                                \
	X(CUDA_OK, 0, CUDA_SUCCESS)                                                                                    \
	X(CUDA_OUT_OF_MEMORY, 2, CUDA_ERROR_OUT_OF_MEMORY)                                                             \
	X(CUDA_NO_DEVICE, 100, CUDA_ERROR_NO_DEVICE)                                                                   \
	X(CUDA_INVALID_DEVICE, 101, CUDA_ERROR_INVALID_DEVICE)                                                         \
	X(CUDA_INVALID_PTX, 218, CUDA_ERROR_INVALID_PTX)                                                               \
	X(CUDA_NO_JIT, 221, CUDA_ERROR_JIT_COMPILER_NOT_FOUND)                                                         \
	X(CUDA_UNSUPPORTED_PTX, 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)                                               \
	X(CUDA_ILLEGAL_ADDRESS, 700, CUDA_ERROR_ILLEGAL_ADDRESS)                                                       \
	X(CUDA_OUT_OF_RESOURCES, 701, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)                                              \
	X(CUDA_TIMEOUT, 702, CUDA_ERROR_LAUNCH_TIMEOUT)                                                                \
	X(CUDA_ASSERTED, 710, CUDA_ERROR_ASSERT)                                                                       \
	X(CUDA_HARDWARE_STACK, 714, CUDA_ERROR_HARDWARE_STACK_ERROR)                                                   \
	X(CUDA_LAUNCH_FAILED, 719, CUDA_ERROR_LAUNCH_FAILED)                                                           \
	X(CUDA_NO_CLUSTER, 912, CUDA_ERROR_INVALID_CLUSTER_SIZE)                                                       \
	X(CUDA_LAUNCH_CLUSTER, 4, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)                                               \
	X(CUDA_LAUNCH_PDL, 6, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)                                   \
	X(CUDA_ATTRIBUTE_WARP, 10, CU_DEVICE_ATTRIBUTE_WARP_SIZE)                                                      \
	X(CUDA_ATTRIBUTE_SMS, 16, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)                                            \
	X(CUDA_ATTRIBUTE_CLOCK, 36, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)                                             \
	X(CUDA_ATTRIBUTE_BUS, 37, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)                                         \
	X(CUDA_ATTRIBUTE_L2, 38, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)                                                    \
	X(CUDA_ATTRIBUTE_THREADS, 39, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)                              \
	X(CUDA_ATTRIBUTE_MAJOR, 75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)                                      \
	X(CUDA_ATTRIBUTE_MINOR, 76, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)                                      \
	X(CUDA_ATTRIBUTE_SHARED, 97, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)                            \
	X(CUDA_POINTER_RANGE_START, 11, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)                                         \
	X(CUDA_POINTER_RANGE_SIZE, 12, CU_POINTER_ATTRIBUTE_RANGE_SIZE)                                                \
	X(CUDA_FUNCTION_SHARED, 1, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)                                                \
	X(CUDA_FUNCTION_LOCAL, 3, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)                                                  \
	X(CUDA_FUNCTION_REGISTERS, 4, CU_FUNC_ATTRIBUTE_NUM_REGS)                                                      \
	X(CUDA_FUNCTION_DYNAMIC, 8, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)                                   \
	X(CUDA_JIT_ERROR_LOG, 5, CU_JIT_ERROR_LOG_BUFFER)                                                              \
	X(CUDA_JIT_ERROR_BYTES, 6, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)                                                 \
	X(CUDA_JIT_LINE_INFO, 13, CU_JIT_GENERATE_LINE_INFO)                                                           \
	X(CUDA_INPUT_PTX, 1, CU_JIT_INPUT_PTX)                                                                         \
	X(CUDA_MAP_U8, 0, CU_TENSOR_MAP_DATA_TYPE_UINT8)                                                               \
	X(CUDA_MAP_U16, 1, CU_TENSOR_MAP_DATA_TYPE_UINT16)                                                             \
	X(CUDA_MAP_U32, 2, CU_TENSOR_MAP_DATA_TYPE_UINT32)                                                             \
	X(CUDA_MAP_I32, 3, CU_TENSOR_MAP_DATA_TYPE_INT32)                                                              \
	X(CUDA_MAP_U64, 4, CU_TENSOR_MAP_DATA_TYPE_UINT64)                                                             \
	X(CUDA_MAP_I64, 5, CU_TENSOR_MAP_DATA_TYPE_INT64)                                                              \
	X(CUDA_MAP_F16, 6, CU_TENSOR_MAP_DATA_TYPE_FLOAT16)                                                            \
	X(CUDA_MAP_F32, 7, CU_TENSOR_MAP_DATA_TYPE_FLOAT32)                                                            \
	X(CUDA_MAP_F64, 8, CU_TENSOR_MAP_DATA_TYPE_FLOAT64)                                                            \
	X(CUDA_MAP_BF16, 9, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16)                                                          \
	X(CUDA_MAP_TF32, 11, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32)                                                         \
	X(CUDA_MAP_PLAIN, 0, CU_TENSOR_MAP_INTERLEAVE_NONE)                                                            \
	X(CUDA_MAP_SWIZZLE_0, 0, CU_TENSOR_MAP_SWIZZLE_NONE)                                                           \
	X(CUDA_MAP_SWIZZLE_32, 1, CU_TENSOR_MAP_SWIZZLE_32B)                                                           \
	X(CUDA_MAP_SWIZZLE_64, 2, CU_TENSOR_MAP_SWIZZLE_64B)                                                           \
	X(CUDA_MAP_SWIZZLE_128, 3, CU_TENSOR_MAP_SWIZZLE_128B)                                                         \
	X(CUDA_MAP_L2_128, 2, CU_TENSOR_MAP_L2_PROMOTION_L2_128B)                                                      \
	X(CUDA_MAP_ZEROS, 0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)

enum {
#define X(ours, value, theirs) ours = value,
	CUDA_NUMBERS(X)
#undef X
};

typedef struct cuda_api {
	void *library;
#define X(name, parameters) CUresult(*name) parameters;
	CUDA_CALLS(X)
	CUDA_LATER_CALLS(X)
#undef X
} cuda_api;

#endif
